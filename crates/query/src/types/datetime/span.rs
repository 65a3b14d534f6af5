//! Reads spans: intervals in words, in clock form and as ISO 8601 writes them.

use super::split::{Bad, Kind, Split, double, fraction, int, long};
use super::words::{self, Unit, Word};
use super::{DAY, HOUR, MINUTE, SECOND, point, truncated};
use crate::call::IntervalStyle;
use crate::types::interval::{Interval, range};

/// A span as far as it was read.
#[derive(Clone, Copy, Default)]
struct Parts {
    years: i32,
    months: i32,
    days: i32,
    micros: i64,
}

impl Parts {
    fn add_fraction_micros(&mut self, fraction: f64, scale: i64) -> Option<()> {
        if fraction == 0.0 {
            return Some(());
        }
        let exact = fraction * scale as f64;
        let mut micros = truncated(exact);
        let rest = exact - micros as f64;
        if rest > 0.5 {
            micros = micros.wrapping_add(1);
        } else if rest < -0.5 {
            micros = micros.wrapping_sub(1);
        }
        self.micros = self.micros.checked_add(micros)?;
        Some(())
    }

    fn add_fraction_days(&mut self, fraction: f64, scale: i32) -> Option<()> {
        if fraction == 0.0 {
            return Some(());
        }
        let exact = fraction * f64::from(scale);
        let days = exact as i32;
        self.days = self.days.checked_add(days)?;
        self.add_fraction_micros(exact - f64::from(days), DAY)
    }

    fn add_micros(&mut self, whole: i64, fraction: f64, scale: i64) -> Option<()> {
        self.micros = self.micros.checked_add(whole.checked_mul(scale)?)?;
        self.add_fraction_micros(fraction, scale)
    }

    fn add_days(&mut self, whole: i64, scale: i32) -> Option<()> {
        let days = i32::try_from(whole).ok()?.checked_mul(scale)?;
        self.days = self.days.checked_add(days)?;
        Some(())
    }

    fn add_months(&mut self, whole: i64, fraction: f64) -> Option<()> {
        self.months = self.months.checked_add(i32::try_from(whole).ok()?)?;
        self.add_fraction_days(fraction, 30)
    }

    fn add_years(&mut self, whole: i64, fraction: f64, scale: i32) -> Option<()> {
        let years = i32::try_from(whole).ok()?.checked_mul(scale)?;
        self.years = self.years.checked_add(years)?;
        let months = (fraction * f64::from(scale) * 12.0).round_ties_even() as i32;
        self.months = self.months.checked_add(months)?;
        Some(())
    }

    fn add_day(&mut self, whole: i64, fraction: f64) -> Option<()> {
        self.add_days(whole, 1)?;
        self.add_fraction_micros(fraction, DAY)
    }

    fn add_week(&mut self, whole: i64, fraction: f64) -> Option<()> {
        self.add_days(whole, 7)?;
        self.add_fraction_days(fraction, 7)
    }

    /// The interval; `None` where its months don't fit.
    fn interval(self) -> Option<Interval> {
        let months = i64::from(self.years) * 12 + i64::from(self.months);
        Some(Interval {
            months: i32::try_from(months).ok()?,
            days: self.days,
            micros: self.micros,
        })
    }

    fn negated(self) -> Option<Self> {
        Some(Self {
            years: self.years.checked_neg()?,
            months: self.months.checked_neg()?,
            days: self.days.checked_neg()?,
            micros: self.micros.checked_neg()?,
        })
    }
}

/// Which units have come, as bits.
mod part {
    pub const YEAR: u32 = 1 << 2;
    pub const MONTH: u32 = 1 << 1;
    pub const DAY: u32 = 1 << 3;
    pub const HOUR: u32 = 1 << 10;
    pub const MINUTE: u32 = 1 << 11;
    pub const SECOND: u32 = 1 << 12;
    pub const MILLISECOND: u32 = 1 << 13;
    pub const MICROSECOND: u32 = 1 << 14;
    pub const SECONDS: u32 = SECOND | MILLISECOND | MICROSECOND;
    pub const WEEK: u32 = 1 << 24;
    pub const DECADE: u32 = 1 << 25;
    pub const CENTURY: u32 = 1 << 26;
    pub const MILLENNIUM: u32 = 1 << 27;
    pub const TIME: u32 = HOUR | MINUTE | SECONDS;
}

/// The unit of the next number to the left.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Nothing named one.
    Unnamed,
    Unit(Unit),
    /// A number can't come here.
    Nothing,
}

/// Reads an interval; `fields` are those of its modifier.
///
/// # Errors
/// Where it is none.
pub fn interval(text: &str, fields: i32, style: IntervalStyle) -> Result<Interval, Bad> {
    let read = Split::new(text, super::split::INTERVAL_ROOM)
        .and_then(|split| in_words(&split, fields, style));
    let read = match read {
        Err(Bad::Format) => iso(text.as_bytes()),
        read => read,
    };
    let parts = read.map_err(|bad| match bad {
        Bad::Field => Bad::Interval,
        bad => bad,
    })?;
    parts
        .interval()
        .ok_or_else(|| Bad::Query(super::interval_out_of_range()))
}

/// The unit of a last number without one.
fn default_unit(fields: i32) -> Unit {
    if fields == range::YEAR {
        Unit::Year
    } else if fields & !(range::YEAR | range::MONTH) == 0 && fields != 0 {
        Unit::Month
    } else if fields == range::DAY {
        Unit::Day
    } else if fields & range::SECOND != 0 || fields & range::TIME == 0 {
        Unit::Second
    } else if fields & range::MINUTE != 0 {
        Unit::Minute
    } else {
        Unit::Hour
    }
}

fn in_words(split: &Split, fields: i32, style: IntervalStyle) -> Result<Parts, Bad> {
    let mut parts = Parts::default();
    let mut came = 0;
    let mut ago = false;
    let mut next = Next::Unnamed;
    // The standard's sign holds for all fields that have none.
    let sign = |at: usize| split.field(at).first().copied();
    let negative = style == IntervalStyle::SqlStandard
        && sign(0) == Some(b'-')
        && !(1..split.len()).any(|at| matches!(sign(at), Some(b'-' | b'+')));
    // From right to left: units before their numbers.
    for at in (0..split.len()).rev() {
        let field = split.field(at);
        let one = match split.kind(at) {
            Some(Kind::Time) => {
                parts.micros = clock(field, fields)?;
                if negative {
                    parts.micros = -parts.micros.abs();
                }
                next = Next::Unit(Unit::Day);
                part::TIME
            }
            Some(Kind::Zone) if field.contains(&b':') => {
                match clock(field.get(1..).unwrap_or_default(), fields) {
                    Ok(micros) => {
                        parts.micros = if field.first() == Some(&b'-') || negative {
                            -micros
                        } else {
                            micros
                        };
                        next = Next::Unit(Unit::Day);
                        part::TIME
                    }
                    // Not a time of day; a number with a colon is none, either.
                    Err(_) => number(&mut parts, field, &mut next, fields, negative)?,
                }
            }
            Some(Kind::Zone | Kind::Date | Kind::Number) => {
                number(&mut parts, field, &mut next, fields, negative)?
            }
            Some(Kind::Text | Kind::Special) => match words::of_span(field) {
                Some(Word::Ignored) => {
                    next = Next::Unnamed;
                    continue;
                }
                Some(Word::Unit(unit)) => {
                    next = Next::Unit(unit);
                    0
                }
                Some(Word::Ago) => {
                    ago = true;
                    next = Next::Nothing;
                    0
                }
                _ => return Err(Bad::Format),
            },
            None => return Err(Bad::Format),
        };
        if one & came != 0 {
            return Err(Bad::Format);
        }
        came |= one;
    }
    if came == 0 {
        return Err(Bad::Format);
    }
    if ago {
        parts = parts.negated().ok_or(Bad::Field)?;
    }
    Ok(parts)
}

/// A time with colons, in microseconds.
fn clock(text: &[u8], fields: i32) -> Result<i64, Bad> {
    let clock = point::clock(text, fields == range::MINUTE | range::SECOND)?;
    clock
        .hour
        .checked_mul(HOUR)
        .and_then(|micros| micros.checked_add(i64::from(clock.micros)))
        .and_then(|micros| {
            micros.checked_add(i64::from(clock.minute) * MINUTE + i64::from(clock.second) * SECOND)
        })
        .ok_or(Bad::Field)
}

/// A number, in its unit.
fn number(
    parts: &mut Parts,
    field: &[u8],
    next: &mut Next,
    fields: i32,
    negative: bool,
) -> Result<u32, Bad> {
    if *next == Next::Unnamed {
        *next = Next::Unit(default_unit(fields));
    }
    let (whole, rest) = long(field);
    let mut whole = whole.ok_or(Bad::Field)?;
    let mut fraction_part = 0.0;
    let minus = field.first() == Some(&b'-');
    match rest.first() {
        None => {}
        Some(b'-') => {
            // years-months
            let (months, rest) = int(rest.get(1..).unwrap_or_default());
            let months = months
                .filter(|months| (0..12).contains(months))
                .ok_or(Bad::Field)?;
            if !rest.is_empty() {
                return Err(Bad::Format);
            }
            *next = Next::Unit(Unit::Month);
            let months = i64::from(if minus { -months } else { months });
            whole = whole
                .checked_mul(12)
                .and_then(|whole| whole.checked_add(months))
                .ok_or(Bad::Field)?;
        }
        Some(b'.') => {
            fraction_part = fraction(rest)?;
            if minus {
                fraction_part = -fraction_part;
            }
        }
        Some(_) => return Err(Bad::Format),
    }
    if negative {
        if whole > 0 {
            whole = -whole;
        }
        if fraction_part > 0.0 {
            fraction_part = -fraction_part;
        }
    }
    let Next::Unit(unit) = *next else {
        return Err(Bad::Format);
    };
    let part = fraction_part;
    let (done, came) = match unit {
        Unit::Microsecond => (parts.add_micros(whole, part, 1), part::MICROSECOND),
        Unit::Millisecond => (parts.add_micros(whole, part, 1000), part::MILLISECOND),
        Unit::Second => (
            parts.add_micros(whole, part, SECOND),
            if part == 0.0 {
                part::SECOND
            } else {
                part::SECONDS
            },
        ),
        Unit::Minute => (parts.add_micros(whole, part, MINUTE), part::MINUTE),
        Unit::Hour => {
            *next = Next::Unit(Unit::Day);
            (parts.add_micros(whole, part, HOUR), part::HOUR)
        }
        Unit::Day => (parts.add_day(whole, part), part::DAY),
        Unit::Week => (parts.add_week(whole, part), part::WEEK),
        Unit::Month => (parts.add_months(whole, part), part::MONTH),
        Unit::Year => (parts.add_years(whole, part, 1), part::YEAR),
        Unit::Decade => (parts.add_years(whole, part, 10), part::DECADE),
        Unit::Century => (parts.add_years(whole, part, 100), part::CENTURY),
        Unit::Millennium => (parts.add_years(whole, part, 1000), part::MILLENNIUM),
        _ => return Err(Bad::Format),
    };
    done.ok_or(Bad::Field)?;
    Ok(came)
}

/// A number of ISO 8601: its whole part, its fraction and what follows.
fn iso_number(text: &[u8]) -> Result<(i64, f64, &[u8]), Bad> {
    if !matches!(text.first(), Some(b'0'..=b'9' | b'-' | b'.')) {
        return Err(Bad::Format);
    }
    let (number, rest) = double(text).ok_or(Bad::Format)?;
    if !(-1.0e15..=1.0e15).contains(&number) {
        return Err(Bad::Field);
    }
    let whole = number.trunc();
    Ok((whole as i64, number - whole, rest))
}

/// How many digits the number's whole part has.
fn iso_width(text: &[u8]) -> usize {
    text.strip_prefix(b"-")
        .unwrap_or(text)
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count()
}

/// Reads an interval as ISO 8601 writes it, in either form.
fn iso(text: &[u8]) -> Result<Parts, Bad> {
    let mut parts = Parts::default();
    let Some((b'P', mut text)) = text.split_first() else {
        return Err(Bad::Format);
    };
    if text.is_empty() {
        return Err(Bad::Format);
    }
    let (mut date, mut any) = (true, false);
    while let Some(first) = text.first() {
        if *first == b'T' {
            (date, any) = (false, false);
            text = text.get(1..).unwrap_or_default();
            continue;
        }
        let start = text;
        let (whole, part, rest) = iso_number(text)?;
        let unit = rest.first().copied();
        text = rest.get(1..).unwrap_or_default();
        let done = match (date, unit) {
            (true, Some(b'Y')) => parts.add_years(whole, part, 1),
            (true, Some(b'M')) => parts.add_months(whole, part),
            (true, Some(b'W')) => parts.add_week(whole, part),
            (true, Some(b'D')) => parts.add_day(whole, part),
            (true, None | Some(b'T')) if iso_width(start) == 8 && !any => {
                let done = parts
                    .add_years(whole / 10_000, 0.0, 1)
                    .and_then(|()| parts.add_months(whole / 100 % 100, 0.0))
                    .and_then(|()| parts.add_day(whole % 100, part));
                done.ok_or(Bad::Field)?;
                date = false;
                continue;
            }
            (true, None | Some(b'T' | b'-')) => {
                if any {
                    return Err(Bad::Format);
                }
                parts.add_years(whole, part, 1).ok_or(Bad::Field)?;
                if unit == Some(b'-') {
                    text = iso_date(&mut parts, text)?;
                }
                date = false;
                continue;
            }
            (false, Some(b'H')) => parts.add_micros(whole, part, HOUR),
            (false, Some(b'M')) => parts.add_micros(whole, part, MINUTE),
            (false, Some(b'S')) => parts.add_micros(whole, part, SECOND),
            (false, None) if iso_width(start) == 6 && !any => {
                let done = parts
                    .add_micros(whole / 10_000, 0.0, HOUR)
                    .and_then(|()| parts.add_micros(whole / 100 % 100, 0.0, MINUTE))
                    .and_then(|()| parts.add_micros(whole % 100, 0.0, SECOND))
                    .and_then(|()| parts.add_fraction_micros(part, 1));
                done.ok_or(Bad::Field)?;
                return Ok(parts);
            }
            (false, None | Some(b':')) => {
                if any {
                    return Err(Bad::Format);
                }
                parts.add_micros(whole, part, HOUR).ok_or(Bad::Field)?;
                if unit.is_some() {
                    iso_time(&mut parts, text)?;
                }
                return Ok(parts);
            }
            _ => return Err(Bad::Format),
        };
        done.ok_or(Bad::Field)?;
        any = true;
    }
    Ok(parts)
}

/// The months and days of `years-months-days`; gives what follows a `T`.
fn iso_date<'a>(parts: &mut Parts, text: &'a [u8]) -> Result<&'a [u8], Bad> {
    let (whole, part, rest) = iso_number(text)?;
    parts.add_months(whole, part).ok_or(Bad::Field)?;
    let rest = match rest.first() {
        None | Some(b'T') => return Ok(rest),
        Some(b'-') => rest.get(1..).unwrap_or_default(),
        Some(_) => return Err(Bad::Format),
    };
    let (whole, part, rest) = iso_number(rest)?;
    parts.add_day(whole, part).ok_or(Bad::Field)?;
    match rest.first() {
        None | Some(b'T') => Ok(rest),
        Some(_) => Err(Bad::Format),
    }
}

/// The minutes and seconds of `hours:minutes:seconds`.
fn iso_time(parts: &mut Parts, text: &[u8]) -> Result<(), Bad> {
    let (whole, part, rest) = iso_number(text)?;
    parts.add_micros(whole, part, MINUTE).ok_or(Bad::Field)?;
    let rest = match rest.split_first() {
        None => return Ok(()),
        Some((b':', rest)) => rest,
        Some(_) => return Err(Bad::Format),
    };
    let (whole, part, rest) = iso_number(rest)?;
    parts.add_micros(whole, part, SECOND).ok_or(Bad::Field)?;
    if rest.is_empty() {
        Ok(())
    } else {
        Err(Bad::Format)
    }
}
