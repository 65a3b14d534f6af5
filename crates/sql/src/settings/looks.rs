//! The values of `TimeZone` and `DateStyle`: what they take, and how SHOW writes it.

use thermocline_query::call::{Call, Plain};
use thermocline_query::datum::Datum;
use thermocline_query::types::{self, ids};

use crate::error::SqlError;
use crate::styles::zone_name;

const HOUR: f64 = 3600.0;
const SECOND_MICROS: i64 = 1_000_000;

/// A time zone: a name, hours east of Greenwich, or the word INTERVAL with a span.
///
/// # Errors
/// `invalid` with a reason, or for what is none.
pub(super) fn time_zone(value: &str, invalid: impl Fn() -> SqlError) -> Result<String, SqlError> {
    let interval = value
        .get(.."interval".len())
        .filter(|word| word.eq_ignore_ascii_case("interval"));
    if let Some(word) = interval {
        let text = value.get(word.len()..).unwrap_or_default().trim();
        let text = text
            .strip_prefix('\'')
            .and_then(|text| text.strip_suffix('\''));
        return of_interval(text.ok_or_else(&invalid)?, invalid);
    }
    let number = value.trim_start();
    if !number.is_empty()
        && number
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'+' | b'-' | b'e' | b'E'))
        && let Ok(hours) = number.parse::<f64>()
    {
        return fixed((hours * HOUR) as i64).ok_or_else(invalid);
    }
    zone_name(value).ok_or_else(invalid)
}

fn of_interval(text: &str, invalid: impl Fn() -> SqlError) -> Result<String, SqlError> {
    let plain = Plain::default();
    let call = Call::new(&plain, &[], ids::INTERVAL);
    let Datum::Interval(interval) = types::input(&call, ids::INTERVAL, text, -1)? else {
        return Err(invalid());
    };
    if interval.months != 0 {
        return Err(invalid().with_detail("Cannot specify months in time zone interval."));
    }
    if interval.days != 0 {
        return Err(invalid().with_detail("Cannot specify days in time zone interval."));
    }
    fixed(interval.micros / SECOND_MICROS).ok_or_else(invalid)
}

/// The name of a zone so many seconds east of Greenwich.
fn fixed(east: i64) -> Option<String> {
    let distance = east.unsigned_abs();
    let (hours, minutes, seconds) = (distance / 3600, distance / 60 % 60, distance % 60);
    let mut shown = format!("{hours:02}");
    if minutes != 0 || seconds != 0 {
        shown.push_str(&format!(":{minutes:02}"));
    }
    if seconds != 0 {
        shown.push_str(&format!(":{seconds:02}"));
    }
    let (name, rule) = if east < 0 { ('-', '+') } else { ('+', '-') };
    zone_name(&format!("<{name}{shown}>{rule}{shown}"))
}

/// `DateStyle`: a style and an order of what is ambiguous, either of which stays as it is
/// where it is not given. `reset` is what DEFAULT stands for.
///
/// # Errors
/// `invalid` with a reason.
pub(super) fn date_style(
    value: &str,
    current: &str,
    reset: &str,
    invalid: impl Fn() -> SqlError,
) -> Result<String, SqlError> {
    let (mut style, mut order) = (None, None);
    let mut conflict = false;
    let mut set = |place: &mut Option<String>, chosen: &str| {
        conflict |= place.as_deref().is_some_and(|known| known != chosen);
        *place = Some(chosen.to_owned());
    };
    // An order that a style brings along is no choice.
    let mut implied = None;
    let words: Vec<&str> = match value.trim() {
        "" => Vec::new(),
        value => value.split(',').map(str::trim).collect(),
    };
    for word in words {
        let lower = word.trim_matches('"').to_ascii_lowercase();
        match lower.as_str() {
            "" => return Err(invalid().with_detail("List syntax is invalid.")),
            "iso" => set(&mut style, "ISO"),
            "sql" => set(&mut style, "SQL"),
            _ if lower.starts_with("postgres") => set(&mut style, "Postgres"),
            "german" => {
                set(&mut style, "German");
                implied = Some("DMY".to_owned());
            }
            "ymd" => set(&mut order, "YMD"),
            "dmy" => set(&mut order, "DMY"),
            _ if lower.starts_with("euro") => set(&mut order, "DMY"),
            "mdy" | "us" => set(&mut order, "MDY"),
            _ if lower.starts_with("noneuro") => set(&mut order, "MDY"),
            "default" => {
                let (its_style, its_order) = reset.split_once(", ").unwrap_or((reset, "MDY"));
                style.get_or_insert_with(|| its_style.to_owned());
                order.get_or_insert_with(|| its_order.to_owned());
            }
            _ => {
                let detail = format!("Unrecognized key word: \"{word}\".");
                return Err(invalid().with_detail(detail));
            }
        }
    }
    if conflict {
        return Err(invalid().with_detail("Conflicting \"datestyle\" specifications."));
    }
    let (its_style, its_order) = current.split_once(", ").unwrap_or((current, "MDY"));
    let style = style.unwrap_or_else(|| its_style.to_owned());
    let order = order.or(implied).unwrap_or_else(|| its_order.to_owned());
    Ok(format!("{style}, {order}"))
}
