//! The words of dates and times: months, days, `now`, units and the like.

/// A unit of time, and other things that can be asked of a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
    Julian,
    DayOfWeek,
    DayOfYear,
    IsoYear,
    IsoDayOfWeek,
    Zone,
    ZoneHour,
    ZoneMinute,
    /// What follows a `t`: a time of day.
    TimeOfDay,
}

/// A word that stands for a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Moment {
    Early,
    Late,
    Epoch,
    Now,
    Yesterday,
    Today,
    Tomorrow,
    Midnight,
}

/// What a word means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Word {
    /// A moment.
    Moment(Moment),
    /// A month, from 1.
    Month(i32),
    /// `am` or, if true, `pm`.
    Half(bool),
    /// `ad` or, if true, `bc`.
    Era(bool),
    /// A day of the week.
    Weekday,
    /// A unit.
    Unit(Unit),
    /// `t`: a time of day follows.
    TimeMark,
    /// `dst`: summer time.
    SummerMark,
    /// `ago`
    Ago,
    /// `at`, `on`
    Ignored,
}

use Unit::{
    Century, Day, DayOfWeek, DayOfYear, Decade, Hour, IsoDayOfWeek, IsoYear, Julian, Microsecond,
    Millennium, Millisecond, Minute, Quarter, Second, Week, Year, Zone, ZoneHour, ZoneMinute,
};

/// The words of moments, in order.
static MOMENTS: &[(&str, Word)] = &[
    ("-infinity", Word::Moment(Moment::Early)),
    ("ad", Word::Era(false)),
    ("allballs", Word::Moment(Moment::Midnight)),
    ("am", Word::Half(false)),
    ("apr", Word::Month(4)),
    ("april", Word::Month(4)),
    ("at", Word::Ignored),
    ("aug", Word::Month(8)),
    ("august", Word::Month(8)),
    ("bc", Word::Era(true)),
    ("d", Word::Unit(Day)),
    ("dec", Word::Month(12)),
    ("december", Word::Month(12)),
    ("dow", Word::Unit(DayOfWeek)),
    ("doy", Word::Unit(DayOfYear)),
    ("dst", Word::SummerMark),
    ("epoch", Word::Moment(Moment::Epoch)),
    ("feb", Word::Month(2)),
    ("february", Word::Month(2)),
    ("fri", Word::Weekday),
    ("friday", Word::Weekday),
    ("h", Word::Unit(Hour)),
    ("infinity", Word::Moment(Moment::Late)),
    ("isodow", Word::Unit(IsoDayOfWeek)),
    ("isoyear", Word::Unit(IsoYear)),
    ("j", Word::Unit(Julian)),
    ("jan", Word::Month(1)),
    ("january", Word::Month(1)),
    ("jd", Word::Unit(Julian)),
    ("jul", Word::Month(7)),
    ("julian", Word::Unit(Julian)),
    ("july", Word::Month(7)),
    ("jun", Word::Month(6)),
    ("june", Word::Month(6)),
    ("m", Word::Unit(Unit::Month)),
    ("mar", Word::Month(3)),
    ("march", Word::Month(3)),
    ("may", Word::Month(5)),
    ("mm", Word::Unit(Minute)),
    ("mon", Word::Weekday),
    ("monday", Word::Weekday),
    ("nov", Word::Month(11)),
    ("november", Word::Month(11)),
    ("now", Word::Moment(Moment::Now)),
    ("oct", Word::Month(10)),
    ("october", Word::Month(10)),
    ("on", Word::Ignored),
    ("pm", Word::Half(true)),
    ("s", Word::Unit(Second)),
    ("sat", Word::Weekday),
    ("saturday", Word::Weekday),
    ("sep", Word::Month(9)),
    ("sept", Word::Month(9)),
    ("september", Word::Month(9)),
    ("sun", Word::Weekday),
    ("sunday", Word::Weekday),
    ("t", Word::TimeMark),
    ("thu", Word::Weekday),
    ("thur", Word::Weekday),
    ("thurs", Word::Weekday),
    ("thursday", Word::Weekday),
    ("today", Word::Moment(Moment::Today)),
    ("tomorrow", Word::Moment(Moment::Tomorrow)),
    ("tue", Word::Weekday),
    ("tues", Word::Weekday),
    ("tuesday", Word::Weekday),
    ("wed", Word::Weekday),
    ("wednesday", Word::Weekday),
    ("weds", Word::Weekday),
    ("y", Word::Unit(Year)),
    ("yesterday", Word::Moment(Moment::Yesterday)),
];

/// The words of spans, in order.
static UNITS: &[(&str, Word)] = &[
    ("@", Word::Ignored),
    ("ago", Word::Ago),
    ("c", Word::Unit(Century)),
    ("cent", Word::Unit(Century)),
    ("centuries", Word::Unit(Century)),
    ("century", Word::Unit(Century)),
    ("d", Word::Unit(Day)),
    ("day", Word::Unit(Day)),
    ("days", Word::Unit(Day)),
    ("dec", Word::Unit(Decade)),
    ("decade", Word::Unit(Decade)),
    ("decades", Word::Unit(Decade)),
    ("decs", Word::Unit(Decade)),
    ("h", Word::Unit(Hour)),
    ("hour", Word::Unit(Hour)),
    ("hours", Word::Unit(Hour)),
    ("hr", Word::Unit(Hour)),
    ("hrs", Word::Unit(Hour)),
    ("m", Word::Unit(Minute)),
    ("microsecon", Word::Unit(Microsecond)),
    ("mil", Word::Unit(Millennium)),
    ("millennia", Word::Unit(Millennium)),
    ("millennium", Word::Unit(Millennium)),
    ("millisecon", Word::Unit(Millisecond)),
    ("mils", Word::Unit(Millennium)),
    ("min", Word::Unit(Minute)),
    ("mins", Word::Unit(Minute)),
    ("minute", Word::Unit(Minute)),
    ("minutes", Word::Unit(Minute)),
    ("mon", Word::Unit(Unit::Month)),
    ("mons", Word::Unit(Unit::Month)),
    ("month", Word::Unit(Unit::Month)),
    ("months", Word::Unit(Unit::Month)),
    ("ms", Word::Unit(Millisecond)),
    ("msec", Word::Unit(Millisecond)),
    ("msecond", Word::Unit(Millisecond)),
    ("mseconds", Word::Unit(Millisecond)),
    ("msecs", Word::Unit(Millisecond)),
    ("qtr", Word::Unit(Quarter)),
    ("quarter", Word::Unit(Quarter)),
    ("s", Word::Unit(Second)),
    ("sec", Word::Unit(Second)),
    ("second", Word::Unit(Second)),
    ("seconds", Word::Unit(Second)),
    ("secs", Word::Unit(Second)),
    ("timezone", Word::Unit(Zone)),
    ("timezone_h", Word::Unit(ZoneHour)),
    ("timezone_m", Word::Unit(ZoneMinute)),
    ("us", Word::Unit(Microsecond)),
    ("usec", Word::Unit(Microsecond)),
    ("usecond", Word::Unit(Microsecond)),
    ("useconds", Word::Unit(Microsecond)),
    ("usecs", Word::Unit(Microsecond)),
    ("w", Word::Unit(Week)),
    ("week", Word::Unit(Week)),
    ("weeks", Word::Unit(Week)),
    ("y", Word::Unit(Year)),
    ("year", Word::Unit(Year)),
    ("years", Word::Unit(Year)),
    ("yr", Word::Unit(Year)),
    ("yrs", Word::Unit(Year)),
];

/// Looks at the first ten bytes alone, as PostgreSQL: `microseconds` is `microsecon`.
fn find(table: &[(&str, Word)], word: &[u8]) -> Option<Word> {
    let word = word.get(..10).unwrap_or(word);
    table
        .binary_search_by(|row| row.0.as_bytes().cmp(word))
        .ok()
        .and_then(|at| table.get(at))
        .map(|row| row.1)
}

/// What a word means within a moment; it is in lower case.
#[must_use]
pub fn of_moment(word: &[u8]) -> Option<Word> {
    find(MOMENTS, word)
}

/// What a word means within a span; it is in lower case.
#[must_use]
pub fn of_span(word: &[u8]) -> Option<Word> {
    find(UNITS, word)
}

/// A name as PostgreSQL shortens it: ASCII in lower case, at most 63 bytes.
#[must_use]
pub fn lowered(name: &str) -> String {
    let mut lowered = name.to_ascii_lowercase();
    if lowered.len() > 63 {
        let mut end = 63;
        while !lowered.is_char_boundary(end) {
            end -= 1;
        }
        lowered.truncate(end);
    }
    lowered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_in_order() {
        for table in [MOMENTS, UNITS] {
            assert!(table.is_sorted_by(|a, b| a.0 < b.0));
        }
        let abbreviations = super::super::abbreviations::ABBREVIATIONS;
        assert!(abbreviations.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(
            of_span(b"milliseconds"),
            Some(Word::Unit(Unit::Millisecond))
        );
    }
}
