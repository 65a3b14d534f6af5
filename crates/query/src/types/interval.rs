//! `interval` and its arithmetic.

use std::cmp::Ordering;

use super::datetime::{self, DAY, HOUR, MINUTE, interval_out_of_range, show, span};
use super::{Type, ids};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};

/// A span of time: its parts are kept apart, since a month and a day have no fixed length.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interval {
    /// Months, years included.
    pub months: i32,
    /// Days, weeks included.
    pub days: i32,
    /// Microseconds, hours included.
    pub micros: i64,
}

/// The fields that a modifier keeps, as bits in its left half.
pub mod range {
    /// Months.
    pub const MONTH: i32 = 1 << 1;
    /// Years.
    pub const YEAR: i32 = 1 << 2;
    /// Days.
    pub const DAY: i32 = 1 << 3;
    /// Hours.
    pub const HOUR: i32 = 1 << 10;
    /// Minutes.
    pub const MINUTE: i32 = 1 << 11;
    /// Seconds.
    pub const SECOND: i32 = 1 << 12;
    /// What is shorter than a day.
    pub const TIME: i32 = HOUR | MINUTE | SECOND;
    /// All.
    pub const FULL: i32 = 0x7fff;
}

/// The right half of a modifier without a precision.
const FULL_PRECISION: i32 = 0xffff;

/// The types of this file.
pub const TYPES: &[Type] = &[Type {
    length: 16,
    category: b'T',
    preferred: true,
    array: ids::INTERVAL_ARRAY,
    input,
    output,
    receive,
    send,
    compare: Some(|a, b| a.as_interval().order(&b.as_interval())),
    modifier_in: Some(modifier_in),
    modifier_out: Some(modifier_out),
    fit: Some(|_, value, modifier, _| fitted(value.as_interval(), modifier).map(Datum::Interval)),
    ..Type::new(ids::INTERVAL, "interval", "interval")
}];

impl Interval {
    /// Months of 30 days, and days of 24 hours: what intervals are compared by.
    #[must_use]
    pub fn length(&self) -> i128 {
        let days = i64::from(self.months) * 30 + i64::from(self.days);
        i128::from(days) * i128::from(DAY) + i128::from(self.micros)
    }

    /// The order, by [`length`](Self::length).
    #[must_use]
    pub fn order(&self, other: &Self) -> Ordering {
        self.length().cmp(&other.length())
    }

    /// With each part negated, as far as it can be.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self {
            months: self.months.wrapping_neg(),
            days: self.days.wrapping_neg(),
            micros: self.micros.wrapping_neg(),
        }
    }

    /// With each part negated.
    ///
    /// # Errors
    /// 22008 out of range.
    pub fn negated(self) -> Result<Self> {
        let negated = || {
            Some(Self {
                months: self.months.checked_neg()?,
                days: self.days.checked_neg()?,
                micros: self.micros.checked_neg()?,
            })
        };
        negated().ok_or_else(interval_out_of_range)
    }

    /// The sum, part by part.
    ///
    /// # Errors
    /// 22008 out of range.
    pub fn plus(self, other: Self) -> Result<Self> {
        let sum = || {
            Some(Self {
                months: self.months.checked_add(other.months)?,
                days: self.days.checked_add(other.days)?,
                micros: self.micros.checked_add(other.micros)?,
            })
        };
        sum().ok_or_else(interval_out_of_range)
    }

    /// The difference, part by part.
    ///
    /// # Errors
    /// 22008 out of range.
    pub fn minus(self, other: Self) -> Result<Self> {
        let difference = || {
            Some(Self {
                months: self.months.checked_sub(other.months)?,
                days: self.days.checked_sub(other.days)?,
                micros: self.micros.checked_sub(other.micros)?,
            })
        };
        difference().ok_or_else(interval_out_of_range)
    }

    /// The product; fractions of months become days, those of days seconds.
    ///
    /// # Errors
    /// 22008 out of range.
    pub fn times(self, factor: f64) -> Result<Self> {
        self.scaled(|part| part * factor)
            .ok_or_else(interval_out_of_range)
    }

    /// The quotient, as [`times`](Self::times).
    ///
    /// # Errors
    /// 22012 for 0, 22008 out of range.
    pub fn over(self, divisor: f64) -> Result<Self> {
        if divisor == 0.0 {
            return Err(QueryError::division_by_zero());
        }
        self.scaled(|part| part / divisor)
            .ok_or_else(interval_out_of_range)
    }

    fn scaled(self, scale: impl Fn(f64) -> f64) -> Option<Self> {
        const DAY_SECONDS: f64 = 86_400.0;
        let whole = |number: f64| {
            (-2_147_483_648.0..2_147_483_648.0)
                .contains(&number)
                .then_some(number as i32)
        };
        let rounded = |number: f64| (number * 1e6).round_ties_even() / 1e6;
        let (exact_months, exact_days) =
            (scale(f64::from(self.months)), scale(f64::from(self.days)));
        let (months, mut days) = (whole(exact_months)?, whole(exact_days)?);
        let rest_days = rounded((exact_months - f64::from(months)) * 30.0);
        let whole_rest = rest_days as i32;
        let mut rest_seconds = rounded(
            (exact_days - f64::from(days) + rest_days - f64::from(whole_rest)) * DAY_SECONDS,
        );
        if rest_seconds.abs() >= DAY_SECONDS {
            let more = (rest_seconds / DAY_SECONDS) as i32;
            days = days.checked_add(more)?;
            rest_seconds -= f64::from(more) * DAY_SECONDS;
        }
        days = days.checked_add(whole_rest)?;
        let micros = (scale(self.micros as f64) + rest_seconds * 1e6).round_ties_even();
        let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&micros);
        fits.then_some(Self {
            months,
            days,
            micros: micros as i64,
        })
    }
}

/// Reads the fields and the precision of `interval ... (p)`: their bits come
/// first, as PostgreSQL's parser gives them.
fn modifier_in(modifiers: &[i32]) -> Result<i32> {
    let invalid = || QueryError::invalid_parameter("invalid INTERVAL type modifier");
    let (fields, precision) = match modifiers {
        [fields] => (*fields, None),
        [fields, precision] => (*fields, Some(*precision)),
        _ => return Err(invalid()),
    };
    if fields != range::FULL && range_name(fields).is_none() {
        return Err(invalid());
    }
    match precision {
        None if fields == range::FULL => Ok(-1),
        None => Ok(fields << 16 | FULL_PRECISION),
        Some(digits) if digits < 0 => Err(QueryError::invalid_parameter(format!(
            "INTERVAL({digits}) precision must not be negative"
        ))),
        Some(digits) => Ok(fields << 16 | digits.min(6)),
    }
}

fn range_name(fields: i32) -> Option<&'static str> {
    use range::{DAY, HOUR, MINUTE, MONTH, SECOND, YEAR};
    const NAMES: &[(i32, &str)] = &[
        (YEAR, " year"),
        (MONTH, " month"),
        (DAY, " day"),
        (HOUR, " hour"),
        (MINUTE, " minute"),
        (SECOND, " second"),
        (YEAR | MONTH, " year to month"),
        (DAY | HOUR, " day to hour"),
        (DAY | HOUR | MINUTE, " day to minute"),
        (DAY | HOUR | MINUTE | SECOND, " day to second"),
        (HOUR | MINUTE, " hour to minute"),
        (HOUR | MINUTE | SECOND, " hour to second"),
        (MINUTE | SECOND, " minute to second"),
    ];
    NAMES.iter().find(|row| row.0 == fields).map(|row| row.1)
}

const fn range_of(modifier: i32) -> i32 {
    modifier >> 16 & range::FULL
}

fn modifier_out(modifier: i32) -> String {
    if modifier < 0 {
        return String::new();
    }
    let name = range_name(range_of(modifier)).unwrap_or_default();
    match modifier & FULL_PRECISION {
        FULL_PRECISION => name.to_owned(),
        precision => format!("{name}({precision})"),
    }
}

/// Leaves away what the modifier has no field for, and rounds to its precision.
///
/// # Errors
/// 22023 for a precision that can't be, XX000 for fields that can't be.
pub fn fitted(mut interval: Interval, modifier: i32) -> Result<Interval> {
    if modifier < 0 {
        return Ok(interval);
    }
    let fields = range_of(modifier);
    if fields != range::FULL {
        if range_name(fields).is_none() {
            return Err(QueryError::internal(format!(
                "unrecognized interval typmod: {modifier}"
            )));
        }
        if fields & (range::DAY | range::TIME) == 0 {
            if fields & range::MONTH == 0 {
                interval.months = interval.months / 12 * 12;
            }
            interval.days = 0;
            interval.micros = 0;
        } else if fields & range::TIME == 0 {
            interval.micros = 0;
        } else if fields & (range::MINUTE | range::SECOND) == 0 {
            interval.micros = interval.micros / HOUR * HOUR;
        } else if fields & range::SECOND == 0 {
            interval.micros = interval.micros / MINUTE * MINUTE;
        }
    }
    let precision = modifier & FULL_PRECISION;
    if precision != FULL_PRECISION {
        if precision > 6 {
            return Err(QueryError::invalid_parameter(format!(
                "interval({precision}) precision must be between 0 and 6"
            )));
        }
        interval.micros = datetime::round_micros(interval.micros, precision);
    }
    Ok(interval)
}

fn input(call: &Call<'_>, text: &str, modifier: i32) -> Result<Datum> {
    let fields = if modifier < 0 {
        range::FULL
    } else {
        range_of(modifier)
    };
    let interval = span::interval(text, fields, call.settings().interval_style)
        .map_err(|bad| bad.error(text, "interval"))?;
    fitted(interval, modifier).map(Datum::Interval)
}

fn output(call: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    show::interval(out, value.as_interval(), call.settings().interval_style);
    Ok(())
}

fn receive(_: &Call<'_>, bytes: &[u8], modifier: i32) -> Result<Datum> {
    let bytes: [u8; 16] = datetime::received(bytes)?;
    let (micros, rest) = bytes.split_at(8);
    let (days, months) = rest.split_at(4);
    let interval = Interval {
        months: i32::from_be_bytes(datetime::received(months)?),
        days: i32::from_be_bytes(datetime::received(days)?),
        micros: i64::from_be_bytes(datetime::received(micros)?),
    };
    fitted(interval, modifier).map(Datum::Interval)
}

fn send(_: &Call<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    let interval = value.as_interval();
    out.extend_from_slice(&interval.micros.to_be_bytes());
    out.extend_from_slice(&interval.days.to_be_bytes());
    out.extend_from_slice(&interval.months.to_be_bytes());
    Ok(())
}
