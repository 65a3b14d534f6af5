//! Parts of moments and spans: `extract`, `date_part`, `date_trunc` and `date_bin`.

use super::Function;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::datetime::show::SpanFields;
use crate::types::datetime::words::{self, Moment, Unit, Word};
use crate::types::datetime::zone::{self, Named};
use crate::types::datetime::{
    self, DAY, DAY_SECONDS, EPOCH_JULIAN, Fields, SECOND, UNIX_EPOCH, UNIX_JULIAN, fields_of,
    interval_out_of_range, is_finite, is_timestamp, timestamp_out_of_range,
};
use crate::types::interval::Interval;
use crate::types::numeric::Numeric;
use crate::types::timestamp::{moved, timestamp_of_date};
use crate::types::{date, format_type, ids, time};

/// The functions of this file.
pub(super) static FUNCTIONS: &[Function] = &[
    Function::row(
        6177,
        "date_bin",
        &[ids::INTERVAL, ids::TIMESTAMP, ids::TIMESTAMP],
        ids::TIMESTAMP,
        timestamp_bin,
    ),
    Function::row(
        6178,
        "date_bin",
        &[ids::INTERVAL, ids::TIMESTAMPTZ, ids::TIMESTAMPTZ],
        ids::TIMESTAMPTZ,
        timestamptz_bin,
    ),
    Function::row(
        1171,
        "date_part",
        &[ids::TEXT, ids::TIMESTAMPTZ],
        ids::FLOAT8,
        timestamptz_part,
    )
    .stable(),
    Function::row(
        1172,
        "date_part",
        &[ids::TEXT, ids::INTERVAL],
        ids::FLOAT8,
        interval_part,
    ),
    Function::row(
        1273,
        "date_part",
        &[ids::TEXT, ids::TIMETZ],
        ids::FLOAT8,
        timetz_part,
    ),
    Function::row(
        1384,
        "date_part",
        &[ids::TEXT, ids::DATE],
        ids::FLOAT8,
        date_part_date,
    ),
    Function::row(
        1385,
        "date_part",
        &[ids::TEXT, ids::TIME],
        ids::FLOAT8,
        time_part_double,
    ),
    Function::row(
        2021,
        "date_part",
        &[ids::TEXT, ids::TIMESTAMP],
        ids::FLOAT8,
        timestamp_part,
    ),
    Function::row(
        1217,
        "date_trunc",
        &[ids::TEXT, ids::TIMESTAMPTZ],
        ids::TIMESTAMPTZ,
        timestamptz_trunc,
    )
    .stable(),
    Function::row(
        1218,
        "date_trunc",
        &[ids::TEXT, ids::INTERVAL],
        ids::INTERVAL,
        interval_trunc,
    ),
    Function::row(
        1284,
        "date_trunc",
        &[ids::TEXT, ids::TIMESTAMPTZ, ids::TEXT],
        ids::TIMESTAMPTZ,
        timestamptz_trunc_zone,
    )
    .stable(),
    Function::row(
        2020,
        "date_trunc",
        &[ids::TEXT, ids::TIMESTAMP],
        ids::TIMESTAMP,
        timestamp_trunc,
    ),
    Function::row(
        6199,
        "extract",
        &[ids::TEXT, ids::DATE],
        ids::NUMERIC,
        extract_date,
    ),
    Function::row(
        6200,
        "extract",
        &[ids::TEXT, ids::TIME],
        ids::NUMERIC,
        extract_time,
    ),
    Function::row(
        6201,
        "extract",
        &[ids::TEXT, ids::TIMETZ],
        ids::NUMERIC,
        extract_timetz,
    ),
    Function::row(
        6202,
        "extract",
        &[ids::TEXT, ids::TIMESTAMP],
        ids::NUMERIC,
        extract_timestamp,
    ),
    Function::row(
        6203,
        "extract",
        &[ids::TEXT, ids::TIMESTAMPTZ],
        ids::NUMERIC,
        extract_timestamptz,
    )
    .stable(),
    Function::row(
        6204,
        "extract",
        &[ids::TEXT, ids::INTERVAL],
        ids::NUMERIC,
        extract_interval,
    ),
];

/// The number `unscaled` / 10^`scale`.
fn decimal(unscaled: i128, scale: u16) -> Datum {
    Datum::Numeric(Numeric::from_parts(unscaled, scale))
}

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Unit(Unit),
    Epoch,
    /// A word for another moment, which is no part.
    Moment,
    Unknown,
}

/// The name of a part, and what it means for a value of this type.
struct Name {
    lowered: String,
    asked: Asked,
    of: u32,
}

impl Name {
    fn read(name: &str, of: u32) -> Self {
        let lowered = words::lowered(name);
        let word =
            words::of_span(lowered.as_bytes()).or_else(|| words::of_moment(lowered.as_bytes()));
        let asked = match word {
            Some(Word::Unit(unit)) => Asked::Unit(unit),
            Some(Word::Moment(Moment::Epoch)) => Asked::Epoch,
            Some(Word::Moment(_)) => Asked::Moment,
            _ => Asked::Unknown,
        };
        Self { lowered, asked, of }
    }

    /// A unit to cut at, of spans alone.
    fn read_unit(name: &str, of: u32) -> Result<(Self, Unit)> {
        let lowered = words::lowered(name);
        let unit = match words::of_span(lowered.as_bytes()) {
            Some(Word::Unit(unit)) => Some(unit),
            _ => None,
        };
        let name = Self {
            lowered,
            asked: Asked::Unknown,
            of,
        };
        match unit {
            Some(unit) => Ok((name, unit)),
            None => Err(name.unknown()),
        }
    }

    #[cold]
    fn unknown(&self) -> QueryError {
        QueryError::invalid_parameter(format!(
            "unit \"{}\" not recognized for type {}",
            self.lowered,
            format_type(self.of, -1)
        ))
    }

    #[cold]
    fn unsupported(&self) -> QueryError {
        QueryError::unsupported(
            format!(
                "unit \"{}\" not supported for type {}",
                self.lowered,
                format_type(self.of, -1)
            ),
            "Use a unit that the type has, or cast the value.",
        )
    }
}

/// A part's value.
#[derive(Clone, Copy)]
enum Part {
    Null,
    /// `-Infinity`, or `Infinity`.
    Infinite(bool),
    Whole(i64),
    /// Seconds of the minute and microseconds, with so many digits after the
    /// point: 6 as seconds, 3 as milliseconds.
    Seconds(i64, i64, u16),
    /// Microseconds as seconds; the second number is the `double`.
    Epoch(i128, f64),
    /// A Julian day and the microseconds of the day.
    Julian(i64, Fields),
}

impl Part {
    /// As `extract` gives it.
    fn numeric(self) -> Datum {
        match self {
            Self::Null => Datum::Null,
            Self::Infinite(true) => Datum::Numeric(Numeric::NegativeInfinity),
            Self::Infinite(false) => Datum::Numeric(Numeric::Infinity),
            Self::Whole(number) => decimal(i128::from(number), 0),
            Self::Seconds(seconds, micros, scale) => {
                decimal(i128::from(seconds * SECOND + micros), scale)
            }
            Self::Epoch(micros, _) => decimal(micros, 6),
            Self::Julian(julian, fields) => {
                // The scale of the quotient: 16 significant digits, in groups of four.
                let micros = i128::from(fields.day_micros());
                let scale = match micros {
                    0..=9_999 => 28,
                    10_000..=99_999_999 => 24,
                    _ => 20,
                };
                let one = 10_i128.pow(u32::from(scale));
                let day = i128::from(DAY);
                let fraction = (micros * one * 2 + day) / (day * 2);
                decimal(i128::from(julian) * one + fraction, scale)
            }
        }
    }

    /// As `date_part` gives it.
    fn double(self) -> Datum {
        let number = match self {
            Self::Null => return Datum::Null,
            Self::Infinite(true) => f64::NEG_INFINITY,
            Self::Infinite(false) => f64::INFINITY,
            Self::Whole(number) => number as f64,
            Self::Seconds(seconds, micros, 3) => seconds as f64 * 1000.0 + micros as f64 / 1000.0,
            Self::Seconds(seconds, micros, _) => seconds as f64 + micros as f64 / 1e6,
            Self::Epoch(_, number) => number,
            Self::Julian(julian, fields) => {
                let seconds = fields.day_seconds() as f64 + f64::from(fields.micros) / 1e6;
                julian as f64 + seconds / DAY_SECONDS as f64
            }
        };
        Datum::Float8(number)
    }
}

/// The parts of a time of day; `None` for other units.
fn time_part(unit: Unit, fields: &Fields) -> Option<Part> {
    let (second, micros) = (i64::from(fields.second), i64::from(fields.micros));
    Some(match unit {
        Unit::Microsecond => Part::Whole(fields.second_micros()),
        Unit::Millisecond => Part::Seconds(second, micros, 3),
        Unit::Second => Part::Seconds(second, micros, 6),
        Unit::Minute => Part::Whole(i64::from(fields.minute)),
        Unit::Hour => Part::Whole(i64::from(fields.hour)),
        _ => return None,
    })
}

/// The parts of a zone; `None` for other units.
fn zone_part(unit: Unit, west: i32) -> Option<Part> {
    let east = i64::from(west.wrapping_neg());
    Some(Part::Whole(match unit {
        Unit::Zone => east,
        Unit::ZoneMinute => east / 60 % 60,
        Unit::ZoneHour => east / 3600,
        _ => return None,
    }))
}

/// The parts of a date; `None` for other units.
fn date_part(unit: Unit, fields: &Fields) -> Option<Part> {
    let &Fields {
        year, month, day, ..
    } = fields;
    let counted = |year: i32| if year > 0 { year } else { year - 1 };
    let grouped = |size: i32| {
        if year > 0 {
            (year + size - 1) / size
        } else {
            -((size - year) / size)
        }
    };
    Some(Part::Whole(i64::from(match unit {
        Unit::Day => day,
        Unit::Month => month,
        Unit::Quarter => (month - 1) / 3 + 1,
        Unit::Week => datetime::iso_week(year, month, day).1,
        Unit::Year => counted(year),
        Unit::Decade if year >= 0 => year / 10,
        Unit::Decade => -((9 - year) / 10),
        Unit::Century => grouped(100),
        Unit::Millennium => grouped(1000),
        Unit::IsoYear => counted(datetime::iso_week(year, month, day).0),
        Unit::DayOfWeek => fields.weekday(),
        Unit::IsoDayOfWeek => (fields.weekday() + 6) % 7 + 1,
        Unit::DayOfYear => fields.year_day(),
        _ => return None,
    })))
}

/// The part of an infinite timestamp or date; `None` for units that none has.
fn infinite_part(asked: Asked, negative: bool) -> Option<Part> {
    let unit = match asked {
        Asked::Epoch => return Some(Part::Infinite(negative)),
        Asked::Unit(unit) => unit,
        Asked::Moment | Asked::Unknown => return None,
    };
    match unit {
        Unit::Year
        | Unit::Decade
        | Unit::Century
        | Unit::Millennium
        | Unit::Julian
        | Unit::IsoYear => Some(Part::Infinite(negative)),
        Unit::TimeOfDay => None,
        _ => Some(Part::Null),
    }
}

/// The part of a timestamp; with time zone, `local` shows it there.
fn timestamp_part_of(
    name: &Name,
    timestamp: i64,
    local: impl FnOnce() -> Option<(Fields, Option<i32>)>,
) -> Result<Part> {
    if name.asked == Asked::Unknown {
        return Err(name.unknown());
    }
    if !is_finite(timestamp) {
        return infinite_part(name.asked, timestamp == i64::MIN).ok_or_else(|| name.unsupported());
    }
    let unit = match name.asked {
        Asked::Unit(unit) => unit,
        Asked::Epoch => {
            return Ok(match timestamp.checked_sub(UNIX_EPOCH) {
                Some(micros) => Part::Epoch(micros.into(), micros as f64 / 1e6),
                None => {
                    // PostgreSQL divides here, with four digits after the point.
                    let micros = i128::from(timestamp) - i128::from(UNIX_EPOCH);
                    let double = timestamp as f64 - UNIX_EPOCH as f64;
                    Part::Epoch((micros + 50) / 100 * 100, double / 1e6)
                }
            });
        }
        Asked::Moment | Asked::Unknown => return Err(name.unsupported()),
    };
    let (fields, west) = local().ok_or_else(timestamp_out_of_range)?;
    if unit == Unit::Julian {
        return Ok(Part::Julian(i64::from(fields.julian()), fields));
    }
    time_part(unit, &fields)
        .or_else(|| date_part(unit, &fields))
        .or_else(|| zone_part(unit, west?))
        .ok_or_else(|| name.unsupported())
}

fn of_timestamp(a: &[Datum]) -> Result<Part> {
    let timestamp = a[1].as_timestamp();
    let name = Name::read(a[0].as_text(), ids::TIMESTAMP);
    timestamp_part_of(&name, timestamp, || Some((fields_of(timestamp)?, None)))
}

fn of_timestamptz(call: &Call<'_>, a: &[Datum]) -> Result<Part> {
    let timestamp = a[1].as_timestamptz();
    let name = Name::read(a[0].as_text(), ids::TIMESTAMPTZ);
    timestamp_part_of(&name, timestamp, || {
        let (fields, west) = zone::fields_in(timestamp, &call.settings().time_zone)?;
        Some((fields, Some(west)))
    })
}

fn of_date(a: &[Datum]) -> Result<Part> {
    let date = a[1].as_date();
    let name = Name::read(a[0].as_text(), ids::DATE);
    if name.asked == Asked::Unknown {
        return Err(name.unknown());
    }
    let part = if date::is_finite(date) {
        match name.asked {
            Asked::Unit(Unit::Julian) => {
                Some(Part::Whole(i64::from(date) + i64::from(EPOCH_JULIAN)))
            }
            Asked::Unit(unit) => date_part(unit, &date::fields_of(date)),
            Asked::Epoch => {
                let days = i64::from(date) + i64::from(EPOCH_JULIAN) - i64::from(UNIX_JULIAN);
                Some(Part::Whole(days * DAY_SECONDS))
            }
            Asked::Moment | Asked::Unknown => None,
        }
    } else {
        match name.asked {
            Asked::Unit(
                Unit::Microsecond
                | Unit::Millisecond
                | Unit::Second
                | Unit::Minute
                | Unit::Hour
                | Unit::Zone
                | Unit::ZoneHour
                | Unit::ZoneMinute,
            ) => None,
            asked => infinite_part(asked, date == date::EARLY),
        }
    };
    part.ok_or_else(|| name.unsupported())
}

/// The part of a time of day; the second number is its zone.
fn of_clock(name: &Name, micros: i64, west: Option<i32>) -> Result<Part> {
    match name.asked {
        Asked::Unit(unit) => time_part(unit, &time::fields_of(micros))
            .or_else(|| zone_part(unit, west?))
            .ok_or_else(|| name.unsupported()),
        Asked::Epoch => {
            let west = west.unwrap_or(0);
            let total = i128::from(micros) + i128::from(west) * i128::from(SECOND);
            Ok(Part::Epoch(total, micros as f64 / 1e6 + f64::from(west)))
        }
        Asked::Moment | Asked::Unknown => Err(name.unknown()),
    }
}

fn of_time(a: &[Datum]) -> Result<Part> {
    let name = Name::read(a[0].as_text(), ids::TIME);
    of_clock(&name, a[1].as_time(), None)
}

fn of_timetz(a: &[Datum]) -> Result<Part> {
    let name = Name::read(a[0].as_text(), ids::TIMETZ);
    let time = a[1].as_timetz();
    of_clock(&name, time.micros, Some(time.zone))
}

fn of_interval(a: &[Datum]) -> Result<Part> {
    let name = Name::read(a[0].as_text(), ids::INTERVAL);
    let interval = a[1].as_interval();
    let unit = match name.asked {
        Asked::Unit(unit) => unit,
        Asked::Epoch => {
            // Years of 365.25 days, months of 30.
            let (years, months) = (interval.months / 12, interval.months % 12);
            let quarters =
                i128::from(years) * 1461 + i128::from(months) * 120 + i128::from(interval.days) * 4;
            let micros = quarters * i128::from(DAY / 4) + i128::from(interval.micros);
            let mut double = interval.micros as f64 / 1e6;
            double += 365.25 * 86_400.0 * f64::from(years);
            double += 30.0 * 86_400.0 * f64::from(months);
            double += 86_400.0 * f64::from(interval.days);
            return Ok(Part::Epoch(micros, double));
        }
        Asked::Moment | Asked::Unknown => return Err(name.unknown()),
    };
    let fields = SpanFields::of(interval);
    let (seconds, micros) = (i64::from(fields.seconds), i64::from(fields.micros));
    Ok(match unit {
        Unit::Microsecond => Part::Whole(fields.second_micros()),
        Unit::Millisecond => Part::Seconds(seconds, micros, 3),
        Unit::Second => Part::Seconds(seconds, micros, 6),
        Unit::Minute => Part::Whole(i64::from(fields.minutes)),
        Unit::Hour => Part::Whole(fields.hours),
        Unit::Day => Part::Whole(i64::from(fields.days)),
        Unit::Month => Part::Whole(i64::from(fields.months)),
        Unit::Quarter => Part::Whole(i64::from(fields.months / 3 + 1)),
        Unit::Year => Part::Whole(i64::from(fields.years)),
        Unit::Decade => Part::Whole(i64::from(fields.years / 10)),
        Unit::Century => Part::Whole(i64::from(fields.years / 100)),
        Unit::Millennium => Part::Whole(i64::from(fields.years / 1000)),
        _ => return Err(name.unsupported()),
    })
}

fn extract_timestamp(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    of_timestamp(a).map(Part::numeric)
}

fn timestamp_part(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    of_timestamp(a).map(Part::double)
}

fn extract_timestamptz(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    of_timestamptz(call, a).map(Part::numeric)
}

fn timestamptz_part(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    of_timestamptz(call, a).map(Part::double)
}

fn extract_date(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    of_date(a).map(Part::numeric)
}

/// That of the date's start, as a timestamp.
fn date_part_date(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let start = Datum::Timestamp(timestamp_of_date(a[1].as_date())?);
    timestamp_part(call, &[a[0].clone(), start])
}

fn extract_time(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    of_time(a).map(Part::numeric)
}

fn time_part_double(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    of_time(a).map(Part::double)
}

fn extract_timetz(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    of_timetz(a).map(Part::numeric)
}

fn timetz_part(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    of_timetz(a).map(Part::double)
}

fn extract_interval(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    of_interval(a).map(Part::numeric)
}

fn interval_part(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    of_interval(a).map(Part::double)
}

/// The units at which can be cut, the finest first.
fn fineness(unit: Unit) -> Option<usize> {
    const UNITS: [Unit; 12] = [
        Unit::Microsecond,
        Unit::Millisecond,
        Unit::Second,
        Unit::Minute,
        Unit::Hour,
        Unit::Day,
        Unit::Month,
        Unit::Quarter,
        Unit::Year,
        Unit::Decade,
        Unit::Century,
        Unit::Millennium,
    ];
    UNITS.iter().position(|other| *other == unit)
}

/// Cuts a moment at a unit; whether its date may have changed.
fn cut(fields: &mut Fields, unit: Unit) -> Option<bool> {
    if unit == Unit::Week {
        let (year, week) = datetime::iso_week(fields.year, fields.month, fields.day);
        fields.set_julian(datetime::julian_of_week(year, week));
        fields.set_time(0);
        return Some(true);
    }
    let fineness_of = |unit| fineness(unit).unwrap_or(usize::MAX);
    let wanted = fineness(unit)?;
    let at_least = |unit| wanted >= fineness_of(unit);
    let year = fields.year;
    let grouped = |size: i32| {
        if year > 0 {
            (year + size - 1) / size * size - (size - 1)
        } else {
            -((size - year) / size) * size + 1
        }
    };
    match unit {
        Unit::Millennium => fields.year = grouped(1000),
        Unit::Century => fields.year = grouped(100),
        Unit::Decade if year > 0 => fields.year = year / 10 * 10,
        Unit::Decade => fields.year = -((9 - year) / 10) * 10,
        Unit::Millisecond => fields.micros = fields.micros / 1000 * 1000,
        _ => {}
    }
    if at_least(Unit::Year) {
        fields.month = 1;
    }
    if at_least(Unit::Quarter) {
        fields.month = (fields.month - 1) / 3 * 3 + 1;
    }
    if at_least(Unit::Month) {
        fields.day = 1;
    }
    if at_least(Unit::Day) {
        fields.hour = 0;
    }
    if at_least(Unit::Hour) {
        fields.minute = 0;
    }
    if at_least(Unit::Minute) {
        fields.second = 0;
    }
    if at_least(Unit::Second) {
        fields.micros = 0;
    }
    Some(at_least(Unit::Day))
}

fn timestamp_trunc(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let timestamp = a[1].as_timestamp();
    if !is_finite(timestamp) {
        return Ok(a[1].clone());
    }
    let (name, unit) = Name::read_unit(a[0].as_text(), ids::TIMESTAMP)?;
    let mut fields = fields_of(timestamp).ok_or_else(timestamp_out_of_range)?;
    cut(&mut fields, unit).ok_or_else(|| name.unsupported())?;
    fields
        .timestamp(0)
        .map(Datum::Timestamp)
        .ok_or_else(timestamp_out_of_range)
}

fn cut_in(units: &str, timestamp: i64, zone: &jiff::tz::TimeZone) -> Result<Datum> {
    let (name, unit) = Name::read_unit(units, ids::TIMESTAMPTZ)?;
    let (mut fields, mut west) =
        zone::fields_in(timestamp, zone).ok_or_else(timestamp_out_of_range)?;
    if cut(&mut fields, unit).ok_or_else(|| name.unsupported())? {
        west = zone::local_west(zone, &fields);
    }
    zoned(&fields, west)
}

/// As `cut_in`, where clocks never change.
fn cut_east(units: &str, timestamp: i64, east: i32) -> Result<Datum> {
    let (name, unit) = Name::read_unit(units, ids::TIMESTAMPTZ)?;
    let mut fields = fields_of(moved(timestamp, east)).ok_or_else(timestamp_out_of_range)?;
    cut(&mut fields, unit).ok_or_else(|| name.unsupported())?;
    zoned(&fields, east.wrapping_neg())
}

fn zoned(fields: &Fields, west: i32) -> Result<Datum> {
    fields
        .timestamp(west)
        .map(Datum::TimestampTz)
        .ok_or_else(timestamp_out_of_range)
}

fn timestamptz_trunc(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let timestamp = a[1].as_timestamptz();
    if !is_finite(timestamp) {
        return Ok(a[1].clone());
    }
    cut_in(a[0].as_text(), timestamp, &call.settings().time_zone)
}

fn timestamptz_trunc_zone(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let timestamp = a[1].as_timestamptz();
    if !is_finite(timestamp) {
        return Ok(a[1].clone());
    }
    let units = a[0].as_text();
    match zone::read(a[2].as_text())? {
        Named::East(east) => cut_east(units, timestamp, east),
        Named::Abbreviation(zone) | Named::Zone(zone) => cut_in(units, timestamp, &zone),
    }
}

fn interval_trunc(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (name, unit) = Name::read_unit(a[0].as_text(), ids::INTERVAL)?;
    let mut fields = SpanFields::of(a[1].as_interval());
    let wanted = fineness(unit).ok_or_else(|| {
        let error = name.unsupported();
        if unit == Unit::Week {
            error.with_detail("Months usually have fractional weeks.")
        } else {
            error
        }
    })?;
    let at_least = |unit| wanted >= fineness(unit).unwrap_or(usize::MAX);
    match unit {
        Unit::Millennium => fields.years = fields.years / 1000 * 1000,
        Unit::Century => fields.years = fields.years / 100 * 100,
        Unit::Decade => fields.years = fields.years / 10 * 10,
        Unit::Quarter => fields.months = fields.months / 3 * 3,
        Unit::Millisecond => fields.micros = fields.micros / 1000 * 1000,
        _ => {}
    }
    if at_least(Unit::Year) {
        fields.months = 0;
    }
    if at_least(Unit::Month) {
        fields.days = 0;
    }
    if at_least(Unit::Day) {
        fields.hours = 0;
    }
    if at_least(Unit::Hour) {
        fields.minutes = 0;
    }
    if at_least(Unit::Minute) {
        fields.seconds = 0;
    }
    if at_least(Unit::Second) {
        fields.micros = 0;
    }
    fields
        .interval()
        .map(Datum::Interval)
        .ok_or_else(interval_out_of_range)
}

/// The start of the stride, counted from `origin`, that a timestamp falls into.
fn bin(stride: Interval, timestamp: i64, origin: i64) -> Result<i64> {
    if !is_finite(timestamp) {
        return Ok(timestamp);
    }
    if !is_finite(origin) {
        return Err(QueryError::new("22008", "origin out of range"));
    }
    if stride.months != 0 {
        return Err(QueryError::unsupported(
            "timestamps cannot be binned into intervals containing months or years",
            "Use an interval of days, hours or less.",
        ));
    }
    let length = i64::from(stride.days)
        .checked_mul(DAY)
        .and_then(|micros| micros.checked_add(stride.micros))
        .ok_or_else(interval_out_of_range)?;
    if length <= 0 {
        return Err(QueryError::new("22008", "stride must be greater than zero"));
    }
    let since = timestamp
        .checked_sub(origin)
        .ok_or_else(interval_out_of_range)?;
    let rest = since % length;
    let start = origin.wrapping_add(since - rest);
    if rest >= 0 {
        return Ok(start);
    }
    start
        .checked_sub(length)
        .filter(|start| is_timestamp(*start))
        .ok_or_else(timestamp_out_of_range)
}

fn timestamp_bin(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    bin(a[0].as_interval(), a[1].as_timestamp(), a[2].as_timestamp()).map(Datum::Timestamp)
}

fn timestamptz_bin(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    bin(
        a[0].as_interval(),
        a[1].as_timestamptz(),
        a[2].as_timestamptz(),
    )
    .map(Datum::TimestampTz)
}
