//! Time zones: how far they are from Greenwich at a time, by name or by rules.
//! `jiff` knows the zones; it counts to the year 9999, and what is later is
//! looked up some multiples of 400 years before, when the calendar is the same.

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};

use super::{DAY_SECONDS, Fields, SECOND, UNIX_JULIAN, fields_of, unix_of};
use crate::call::Settings;
use crate::error::{QueryError, Result};
use crate::types::datetime::words;

/// 400 years, in seconds: the calendar repeats.
const CYCLE: i64 = 146_097 * DAY_SECONDS;
/// The start of the year 9990; what is later is looked up before.
const LAST: i64 = 253_086_768_000;
/// The start of the year 2100: abbreviations are looked for up to then.
const ABBREVIATIONS_END: i64 = 4_102_444_800;
/// Summer time where a rule names it but doesn't say when: the rule of the United States.
const DEFAULT_RULE: &str = "M3.2.0,M11.1.0";

fn timestamp(unix: i64) -> Timestamp {
    let beyond = (unix - LAST).max(0);
    let cycles = (beyond + CYCLE - 1) / CYCLE;
    Timestamp::from_second(unix - cycles * CYCLE).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// The seconds that a zone is east of Greenwich at a Unix time.
#[must_use]
pub fn east_at(zone: &TimeZone, unix: i64) -> i32 {
    match zone.to_fixed_offset() {
        Ok(offset) => offset.seconds(),
        Err(_) => zone.to_offset(timestamp(unix)).seconds(),
    }
}

/// The zone's abbreviation at a Unix time, and whether that is summer time.
#[must_use]
pub fn abbreviation_at(zone: &TimeZone, unix: i64) -> (String, bool) {
    if let Ok(offset) = zone.to_fixed_offset() {
        let name = if zone.iana_name().is_some() {
            "UTC".to_owned()
        } else {
            numeric_name(offset.seconds())
        };
        return (name, false);
    }
    let info = zone.to_offset_info(timestamp(unix));
    (info.abbreviation().to_owned(), info.dst().is_dst())
}

/// The abbreviation that a session shows at a Unix time. Rules may have a name that `jiff` does
/// not take, of few letters or of none: it stands in the setting.
#[must_use]
pub fn shown_abbreviation(settings: &Settings, unix: i64) -> String {
    let zone = &settings.time_zone;
    let name = settings.time_zone_name.as_str();
    let offset = name.find(|letter: char| matches!(letter, '0'..='9' | '+' | '-'));
    match (offset, name.strip_prefix('<')) {
        (Some(_), Some(quoted)) if zone.to_fixed_offset().is_ok() => {
            let end = quoted.find('>').unwrap_or(quoted.len());
            quoted.get(..end).unwrap_or_default().to_owned()
        }
        (Some(end), None) if zone.iana_name().is_none() && zone.to_fixed_offset().is_ok() => {
            name.get(..end).unwrap_or_default().to_owned()
        }
        _ => abbreviation_at(zone, unix).0,
    }
}

/// The name of a fixed zone: `+05:30`
fn numeric_name(east: i32) -> String {
    let sign = if east < 0 { '-' } else { '+' };
    let seconds = east.unsigned_abs();
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (minute, second) {
        (0, 0) => format!("{sign}{hour:02}"),
        (_, 0) => format!("{sign}{hour:02}:{minute:02}"),
        _ => format!("{sign}{hour:02}:{minute:02}:{second:02}"),
    }
}

/// A timestamp as the zone's clocks show it, and how many seconds they are west of Greenwich.
#[must_use]
pub fn fields_in(timestamp: i64, zone: &TimeZone) -> Option<(Fields, i32)> {
    let mut fields = fields_of(timestamp)?;
    let unix = unix_of(timestamp);
    let east = east_at(zone, unix);
    if east != 0 {
        let local = unix + i64::from(east);
        let julian = local.div_euclid(DAY_SECONDS) + i64::from(UNIX_JULIAN);
        fields.set_julian(julian as i32);
        let micros = fields.micros;
        fields.set_time(local.rem_euclid(DAY_SECONDS) * SECOND + i64::from(micros));
    }
    Some((fields, -east))
}

/// How many seconds west of Greenwich the zone's clocks are when they show
/// this, and the Unix time. A time that they skip is told by the clocks
/// before, one that they show twice by the clocks after. 0 for a date that
/// can't be counted.
fn local(zone: &TimeZone, fields: &Fields) -> (i32, i64) {
    if !fields.is_countable() {
        return (0, 0);
    }
    let days = i64::from(fields.julian()) - i64::from(UNIX_JULIAN);
    let shown = days * DAY_SECONDS + fields.day_seconds();
    let result = |east: i32| (-east, shown - i64::from(east));
    if let Ok(offset) = zone.to_fixed_offset() {
        return result(offset.seconds());
    }
    let earlier = shown - DAY_SECONDS;
    let (before, after) = (east_at(zone, earlier), east_at(zone, shown + DAY_SECONDS));
    if before == after {
        return result(before);
    }
    let start = timestamp(earlier);
    let shift = earlier - start.as_second();
    let Some(change) = zone
        .following(start)
        .find(|change| change.offset().seconds() != before)
    else {
        return result(before);
    };
    let after = change.offset().seconds();
    let boundary = change.timestamp().as_second() + shift;
    let (by_before, by_after) = (shown - i64::from(before), shown - i64::from(after));
    if by_before < boundary && by_after < boundary {
        result(before)
    } else if by_before > boundary && by_after >= boundary {
        result(after)
    } else if by_before > by_after {
        result(before)
    } else {
        result(after)
    }
}

/// How many seconds west of Greenwich the zone's clocks are when they show this.
#[must_use]
pub fn local_west(zone: &TimeZone, fields: &Fields) -> i32 {
    local(zone, fields).0
}

/// What a zone means by an abbreviation at or near a Unix time: seconds west
/// of Greenwich, and whether that is summer time.
#[must_use]
pub fn abbreviation_in(zone: &TimeZone, unix: i64, name: &[u8]) -> Option<(i32, bool)> {
    let is = |abbreviation: &str| abbreviation.as_bytes().eq_ignore_ascii_case(name);
    let at = timestamp(unix.min(ABBREVIATIONS_END));
    let info = zone.to_offset_info(at);
    if is(info.abbreviation()) {
        return Some((-info.offset().seconds(), info.dst().is_dst()));
    }
    if let Some(change) = zone.preceding(at).find(|change| is(change.abbreviation())) {
        return Some((-change.offset().seconds(), change.dst().is_dst()));
    }
    zone.following(at)
        .take_while(|change| change.timestamp().as_second() < ABBREVIATIONS_END)
        .find(|change| is(change.abbreviation()))
        .map(|change| (-change.offset().seconds(), change.dst().is_dst()))
}

/// As [`local_west`], of clocks that an abbreviation names.
#[must_use]
pub fn abbreviation_west(zone: &TimeZone, fields: &Fields, name: &[u8]) -> i32 {
    let (west, unix) = local(zone, fields);
    abbreviation_in(zone, unix, name).map_or(west, |found| found.0)
}

/// As [`abbreviation_west`], at a timestamp; with whether it is summer time.
///
/// # Errors
/// 22008 for a timestamp out of range.
pub fn abbreviation_west_at(zone: &TimeZone, timestamp: i64, name: &[u8]) -> Result<(i32, bool)> {
    let unix = unix_of(timestamp);
    if let Some(found) = abbreviation_in(zone, unix, name) {
        return Ok(found);
    }
    let (fields, _) = fields_in(timestamp, zone).ok_or_else(super::timestamp_out_of_range)?;
    Ok((local_west(zone, &fields), abbreviation_at(zone, unix).1))
}

/// The seconds east of Greenwich of a zone that never moved.
#[must_use]
pub fn fixed_east(zone: &TimeZone) -> Option<i32> {
    if let Ok(offset) = zone.to_fixed_offset() {
        return Some(offset.seconds());
    }
    if zone.following(Timestamp::MIN).next().is_some() {
        return None;
    }
    Some(zone.to_offset(Timestamp::UNIX_EPOCH).seconds())
}

/// The zone that an abbreviation refers to.
///
/// # Errors
/// F0000 where there is none.
pub fn of_abbreviation(zone: &str, abbreviation: &[u8]) -> Result<TimeZone> {
    named(zone).ok_or_else(|| {
        let abbreviation = String::from_utf8_lossy(abbreviation);
        QueryError::new("F0000", format!("time zone \"{zone}\" not recognized")).with_detail(
            format!(
                "This time zone name appears in the configuration file for time zone abbreviation \"{abbreviation}\"."
            ),
        )
    })
}

/// A zone so many seconds east of Greenwich.
#[must_use]
pub fn fixed(east: i32) -> Option<TimeZone> {
    Offset::from_seconds(east).ok().map(TimeZone::fixed)
}

/// The zone of this name, in any case: of the zones' database, or by rules
/// as POSIX writes them.
#[must_use]
pub fn named(name: &str) -> Option<TimeZone> {
    if name.is_empty() || name.len() > 255 {
        return None;
    }
    let plain = match name.split_at_checked("posix/".len()) {
        Some((prefix, rest)) if prefix.eq_ignore_ascii_case("posix/") => rest,
        _ => name,
    };
    if !plain.eq_ignore_ascii_case("Etc/Unknown")
        && let Ok(zone) = jiff::tz::db().get(plain)
    {
        return Some(zone);
    }
    posix(&name.to_ascii_uppercase())
}

/// The names of the zones' database.
pub fn names() -> impl Iterator<Item = String> {
    jiff::tz::db().available().map(|name| name.to_string())
}

/// What an argument names, as `AT TIME ZONE` reads it.
#[derive(Clone, Debug)]
pub enum Named {
    /// An abbreviation, so many seconds east of Greenwich.
    East(i32),
    /// An abbreviation that this zone gives a meaning.
    Abbreviation(TimeZone),
    /// A zone.
    Zone(TimeZone),
}

/// Reads the name of a zone or an abbreviation.
///
/// # Errors
/// 22023 where it is none.
pub fn read(name: &str) -> Result<Named> {
    use super::abbreviations::{Abbreviation, find};
    let lowered = words::lowered(name);
    match find(lowered.as_bytes()) {
        Some(Abbreviation::Fixed(east, _)) => Ok(Named::East(east)),
        Some(Abbreviation::Dynamic(zone)) => {
            of_abbreviation(zone, lowered.as_bytes()).map(Named::Abbreviation)
        }
        None => named(name)
            .map(Named::Zone)
            .or_else(|| far_west(name).map(|west| Named::East(-west)))
            .ok_or_else(|| {
                QueryError::invalid_parameter(format!("time zone \"{name}\" not recognized"))
            }),
    }
}

/// Reads rules as POSIX writes them, a little more freely: `EST5EDT`,
/// `<+03>-3`, `+3`. The text is in upper case.
fn posix(text: &str) -> Option<TimeZone> {
    if text.starts_with(':') || !text.is_ascii() {
        return None;
    }
    let (standard, rest) = rule_name(text)?;
    if rest.is_empty() {
        return None;
    }
    let (standard_west, rest) = rule_offset(rest, 167)?;
    if rest.is_empty() {
        let rules = format!("<{standard}>{}", rule_seconds(standard_west));
        return TimeZone::posix(&rules)
            .ok()
            .or_else(|| fixed(-standard_west));
    }
    let (summer, rest) = rule_name(rest)?;
    if summer.is_empty() {
        return None;
    }
    let (summer_west, rest) = match rest.chars().next() {
        None | Some(',' | ';') => (standard_west - 3600, rest),
        Some(_) => rule_offset(rest, 167)?,
    };
    let rule = match rest.chars().next() {
        None => DEFAULT_RULE,
        Some(',' | ';') => rest.get(1..)?,
        Some(_) => return None,
    };
    let rules = format!(
        "<{}>{}<{}>{},{rule}",
        sound_name(standard, "STD"),
        rule_seconds(standard_west),
        sound_name(summer, "DST"),
        rule_seconds(summer_west),
    );
    TimeZone::posix(&rules).ok()
}

/// The distance of a zone by rules that have nothing else, in seconds west of
/// Greenwich: `jiff` knows none that are farther than a day.
fn far_west(text: &str) -> Option<i32> {
    let (_, rest) = rule_name(text)?;
    let (west, rest) = rule_offset(rest, 167)?;
    rest.is_empty().then_some(west)
}

/// An abbreviation that `jiff` takes.
fn sound_name<'a>(name: &'a str, other: &'a str) -> &'a str {
    let sound = (3..=30).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-'));
    if sound { name } else { other }
}

/// The abbreviation at the start, and what follows.
fn rule_name(text: &str) -> Option<(&str, &str)> {
    if let Some(quoted) = text.strip_prefix('<') {
        return quoted.split_once('>');
    }
    let end = text
        .find(|letter: char| letter.is_ascii_digit() || matches!(letter, ',' | '-' | '+'))
        .unwrap_or(text.len());
    text.split_at_checked(end)
}

/// The distance at the start, in seconds west of Greenwich, and what follows.
fn rule_offset(text: &str, hours_max: i32) -> Option<(i32, &str)> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (hours, mut rest) = rule_number(rest, hours_max)?;
    let mut seconds = hours * 3600;
    if let Some(after) = rest.strip_prefix(':') {
        let (minutes, after) = rule_number(after, 59)?;
        seconds += minutes * 60;
        rest = after;
        if let Some(after) = rest.strip_prefix(':') {
            let (more, after) = rule_number(after, 60)?;
            seconds += more;
            rest = after;
        }
    }
    Some((if negative { -seconds } else { seconds }, rest))
}

fn rule_number(text: &str, most: i32) -> Option<(i32, &str)> {
    let end = text
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    let number = digits.parse().ok().filter(|number| *number <= most)?;
    Some((number, rest))
}

fn rule_seconds(west: i32) -> String {
    let sign = if west < 0 { "-" } else { "" };
    let seconds = west.unsigned_abs();
    format!(
        "{sign}{}:{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn west(name: &str, year: i32, month: i32, day: i32, hour: i32) -> i32 {
        let fields = Fields {
            year,
            month,
            day,
            hour,
            minute: 30,
            ..Fields::default()
        };
        local_west(&named(name).unwrap(), &fields)
    }

    #[test]
    fn clocks_that_change() {
        // Skipped, and shown twice.
        assert_eq!(west("America/New_York", 2024, 3, 10, 2), 5 * 3600);
        assert_eq!(west("America/New_York", 2024, 11, 3, 1), 5 * 3600);
        assert_eq!(west("America/New_York", 2024, 7, 1, 1), 4 * 3600);
        assert_eq!(west("America/New_York", 12_024, 7, 1, 1), 4 * 3600);
        assert_eq!(west("EST5EDT4,M3.2.0,M11.1.0", 2024, 7, 1, 1), 4 * 3600);
        assert_eq!(west("+3", 2024, 7, 1, 1), 3 * 3600);
        assert!(named("nowhere").is_none());
    }
}
