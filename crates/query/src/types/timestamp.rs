//! `timestamp` and `timestamptz`, and what one is of the other in a session's
//! time zone.

use std::cmp::Ordering;

use super::datetime::point::{self, Meaning};
use super::datetime::split::{Split, TIMESTAMP_ROOM};
use super::datetime::{
    self, DAY, EPOCH_JULIAN, Fields, SECOND, UNIX_EPOCH, fields_of, is_finite, is_timestamp, show,
    timestamp_out_of_range, zone,
};
use super::interval::Interval;
use super::time::{TimeTz, modifier_in, modifier_out};
use super::{Type, date, ids};
use crate::call::{Call, Settings};
use crate::datum::Datum;
use crate::error::{QueryError, Result};

/// The types of this file.
pub const TYPES: &[Type] = &[
    Type {
        length: 8,
        category: b'D',
        array: ids::TIMESTAMP_ARRAY,
        input,
        output,
        receive,
        send,
        compare: Some(|a, b| a.as_timestamp().cmp(&b.as_timestamp())),
        modifier_in: Some(|modifiers| modifier_in(modifiers, "TIMESTAMP", "")),
        modifier_out: Some(modifier_out),
        fit: Some(|_, value, modifier, _| {
            rounded(value.as_timestamp(), modifier).map(Datum::Timestamp)
        }),
        ..Type::new(ids::TIMESTAMP, "timestamp", "timestamp without time zone")
    },
    Type {
        length: 8,
        category: b'D',
        preferred: true,
        array: ids::TIMESTAMPTZ_ARRAY,
        input: zoned_input,
        output: zoned_output,
        receive: zoned_receive,
        send: zoned_send,
        compare: Some(|a, b| a.as_timestamptz().cmp(&b.as_timestamptz())),
        modifier_in: Some(|modifiers| modifier_in(modifiers, "TIMESTAMP", " WITH TIME ZONE")),
        modifier_out: Some(modifier_out),
        fit: Some(|_, value, modifier, _| {
            rounded(value.as_timestamptz(), modifier).map(Datum::TimestampTz)
        }),
        ..Type::new(ids::TIMESTAMPTZ, "timestamptz", "timestamp with time zone")
    },
];

/// Rounds a timestamp to so many digits; -1 for all.
///
/// # Errors
/// 22023 for digits that can't be.
pub fn rounded(timestamp: i64, digits: i32) -> Result<i64> {
    if !is_finite(timestamp) || matches!(digits, -1 | 6) {
        return Ok(timestamp);
    }
    if !(0..=6).contains(&digits) {
        return Err(QueryError::invalid_parameter(format!(
            "timestamp({digits}) precision must be between 0 and 6"
        )));
    }
    Ok(datetime::round_micros(timestamp, digits))
}

fn read(call: &Call<'_>, text: &str, type_name: &str, zoned: bool) -> Result<i64> {
    let point = Split::new(text, TIMESTAMP_ROOM)
        .and_then(|split| point::date_time(call, &split))
        .map_err(|bad| bad.error(text, type_name))?;
    match point.meaning {
        Meaning::Early => Ok(i64::MIN),
        Meaning::Late => Ok(i64::MAX),
        Meaning::Epoch => Ok(UNIX_EPOCH),
        Meaning::Fields => point
            .fields
            .timestamp(if zoned { point.west } else { 0 })
            .ok_or_else(|| QueryError::new("22008", format!("timestamp out of range: \"{text}\""))),
    }
}

fn input(call: &Call<'_>, text: &str, modifier: i32) -> Result<Datum> {
    let timestamp = read(call, text, "timestamp", false)?;
    rounded(timestamp, modifier).map(Datum::Timestamp)
}

fn output(call: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    show::timestamp(out, value.as_timestamp(), call.settings())
}

fn received(bytes: &[u8], modifier: i32) -> Result<i64> {
    let timestamp = i64::from_be_bytes(datetime::received(bytes)?);
    if is_finite(timestamp) && !is_timestamp(timestamp) {
        return Err(timestamp_out_of_range());
    }
    rounded(timestamp, modifier)
}

fn receive(_: &Call<'_>, bytes: &[u8], modifier: i32) -> Result<Datum> {
    received(bytes, modifier).map(Datum::Timestamp)
}

fn send(_: &Call<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(&value.as_timestamp().to_be_bytes());
    Ok(())
}

fn zoned_input(call: &Call<'_>, text: &str, modifier: i32) -> Result<Datum> {
    let timestamp = read(call, text, "timestamp with time zone", true)?;
    rounded(timestamp, modifier).map(Datum::TimestampTz)
}

fn zoned_output(call: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    show::timestamptz(out, value.as_timestamptz(), call.settings())
}

fn zoned_receive(_: &Call<'_>, bytes: &[u8], modifier: i32) -> Result<Datum> {
    received(bytes, modifier).map(Datum::TimestampTz)
}

fn zoned_send(_: &Call<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(&value.as_timestamptz().to_be_bytes());
    Ok(())
}

/// A timestamp taken apart.
///
/// # Errors
/// 22008 out of range.
pub fn fields(timestamp: i64) -> Result<Fields> {
    fields_of(timestamp).ok_or_else(timestamp_out_of_range)
}

/// A timestamp with time zone as the session's clocks show it, and how many
/// seconds they are west of Greenwich.
///
/// # Errors
/// 22008 out of range.
pub fn local_fields(timestamp: i64, settings: &Settings) -> Result<(Fields, i32)> {
    zone::fields_in(timestamp, &settings.time_zone).ok_or_else(timestamp_out_of_range)
}

/// The date of a timestamp; infinities stay such.
///
/// # Errors
/// 22008 out of range.
pub fn date_of_timestamp(timestamp: i64) -> Result<i32> {
    match timestamp {
        i64::MIN => Ok(date::EARLY),
        i64::MAX => Ok(date::LATE),
        _ => Ok(fields(timestamp)?.julian() - EPOCH_JULIAN),
    }
}

/// The date that the session's calendar shows; infinities stay such.
///
/// # Errors
/// 22008 out of range.
pub fn date_of_timestamptz(timestamp: i64, settings: &Settings) -> Result<i32> {
    match timestamp {
        i64::MIN => Ok(date::EARLY),
        i64::MAX => Ok(date::LATE),
        _ => Ok(local_fields(timestamp, settings)?.0.julian() - EPOCH_JULIAN),
    }
}

/// The time of day that the session's clocks show, of a finite timestamp.
///
/// # Errors
/// 22008 out of range.
pub fn time_of_timestamptz(timestamp: i64, settings: &Settings) -> Result<i64> {
    Ok(local_fields(timestamp, settings)?.0.day_micros())
}

/// As [`time_of_timestamptz`], with where the clocks are.
///
/// # Errors
/// 22008 out of range.
pub fn timetz_of_timestamptz(timestamp: i64, settings: &Settings) -> Result<TimeTz> {
    let (fields, zone) = local_fields(timestamp, settings)?;
    Ok(TimeTz {
        micros: fields.day_micros(),
        zone,
    })
}

/// What the session's calendar and clocks show; infinities stay such.
///
/// # Errors
/// 22008 out of range.
pub fn timestamp_of_timestamptz(timestamp: i64, settings: &Settings) -> Result<i64> {
    if !is_finite(timestamp) {
        return Ok(timestamp);
    }
    let (fields, _) = local_fields(timestamp, settings)?;
    fields.timestamp(0).ok_or_else(timestamp_out_of_range)
}

/// Moves a timestamp by seconds; it may leave its range.
#[must_use]
pub fn moved(timestamp: i64, seconds: i32) -> i64 {
    timestamp.wrapping_add(i64::from(seconds).wrapping_mul(SECOND))
}

/// When the session's calendar and clocks show this; infinities stay such.
/// Beyond the range of timestamps the error says which way.
fn zoned(timestamp: i64, settings: &Settings) -> Result<Result<i64, Ordering>> {
    if !is_finite(timestamp) {
        return Ok(Ok(timestamp));
    }
    let west = zone::local_west(&settings.time_zone, &fields(timestamp)?);
    let result = moved(timestamp, west);
    Ok(if is_timestamp(result) {
        Ok(result)
    } else if result < datetime::TIMESTAMP_FIRST {
        Err(Ordering::Less)
    } else {
        Err(Ordering::Greater)
    })
}

/// When the session's calendar and clocks show this; infinities stay such.
///
/// # Errors
/// 22008 out of range.
pub fn timestamptz_of_timestamp(timestamp: i64, settings: &Settings) -> Result<i64> {
    zoned(timestamp, settings)?.map_err(|_| timestamp_out_of_range())
}

/// The order of a moment that may be beyond all finite ones and a timestamp.
fn order_beyond(moment: Result<i64, Ordering>, timestamp: i64) -> Ordering {
    match moment {
        Ok(moment) => moment.cmp(&timestamp),
        Err(Ordering::Less) if timestamp == i64::MIN => Ordering::Greater,
        Err(Ordering::Greater) if timestamp == i64::MAX => Ordering::Less,
        Err(way) => way,
    }
}

/// The order of a timestamp and one with time zone.
///
/// # Errors
/// 22008 out of range.
pub fn compare_zoned(timestamp: i64, zoned_one: i64, settings: &Settings) -> Result<Ordering> {
    Ok(order_beyond(zoned(timestamp, settings)?, zoned_one))
}

/// The order of a date and a timestamp.
#[must_use]
pub fn compare_date(date: i32, timestamp: i64) -> Ordering {
    order_beyond(start_of(date), timestamp)
}

/// The order of a date and a timestamp with time zone.
#[must_use]
pub fn compare_date_zoned(date: i32, timestamp: i64, settings: &Settings) -> Ordering {
    order_beyond(zoned_start_of(date, settings), timestamp)
}

/// A date's start, as a timestamp; beyond their range the error says which way.
fn start_of(date: i32) -> Result<i64, Ordering> {
    match date {
        date::EARLY => Ok(i64::MIN),
        date::LATE => Ok(i64::MAX),
        date if date >= datetime::TIMESTAMP_END_DATE => Err(Ordering::Greater),
        date => Ok(i64::from(date) * DAY),
    }
}

fn zoned_start_of(date: i32, settings: &Settings) -> Result<i64, Ordering> {
    let start = start_of(date)?;
    if !is_finite(start) {
        return Ok(start);
    }
    let west = zone::local_west(&settings.time_zone, &date::fields_of(date));
    let start = moved(start, west);
    if is_timestamp(start) {
        Ok(start)
    } else if start < datetime::TIMESTAMP_FIRST {
        Err(Ordering::Less)
    } else {
        Err(Ordering::Greater)
    }
}

#[cold]
fn date_beyond_timestamps() -> QueryError {
    QueryError::new("22008", "date out of range for timestamp")
}

/// A date's start; infinities stay such.
///
/// # Errors
/// 22008 out of range.
pub fn timestamp_of_date(date: i32) -> Result<i64> {
    start_of(date).map_err(|_| date_beyond_timestamps())
}

/// A date's start in the session's time zone; infinities stay such.
///
/// # Errors
/// 22008 out of range.
pub fn timestamptz_of_date(date: i32, settings: &Settings) -> Result<i64> {
    zoned_start_of(date, settings).map_err(|_| date_beyond_timestamps())
}

/// A timestamp that lasts `interval` longer: first by its months, then its
/// days, then the rest.
///
/// # Errors
/// 22008 out of range.
pub fn plus(timestamp: i64, interval: Interval) -> Result<i64> {
    plus_in(timestamp, interval, None)
}

/// As [`plus`], of a timestamp with time zone: months and days are moved on
/// the session's calendar.
///
/// # Errors
/// 22008 out of range.
pub fn zoned_plus(timestamp: i64, interval: Interval, settings: &Settings) -> Result<i64> {
    plus_in(timestamp, interval, Some(&settings.time_zone))
}

fn plus_in(timestamp: i64, interval: Interval, zone: Option<&jiff::tz::TimeZone>) -> Result<i64> {
    if !is_finite(timestamp) {
        return Ok(timestamp);
    }
    let mut result = timestamp;
    let apart = |timestamp| match zone {
        None => fields(timestamp),
        Some(zone) => zone::fields_in(timestamp, zone)
            .map(|found| found.0)
            .ok_or_else(timestamp_out_of_range),
    };
    let together = |fields: &Fields| {
        let west = zone.map_or(0, |zone| zone::local_west(zone, fields));
        fields.timestamp(west).ok_or_else(timestamp_out_of_range)
    };
    if interval.months != 0 {
        let mut fields = apart(result)?;
        fields
            .add_months(interval.months)
            .ok_or_else(timestamp_out_of_range)?;
        result = together(&fields)?;
    }
    if interval.days != 0 {
        let mut fields = apart(result)?;
        let first = if zone.is_some() { -1 } else { 0 };
        let julian = fields
            .julian()
            .checked_add(interval.days)
            .filter(|julian| *julian >= first)
            .ok_or_else(timestamp_out_of_range)?;
        fields.set_julian(julian);
        result = together(&fields)?;
    }
    result
        .checked_add(interval.micros)
        .filter(|result| is_timestamp(*result))
        .ok_or_else(timestamp_out_of_range)
}
