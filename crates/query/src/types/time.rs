//! `time` and `timetz`.

use std::cmp::Ordering;

use super::datetime::point::{self, Point};
use super::datetime::split::{DATE_ROOM, Split};
use super::datetime::{self, DAY, Fields, SECOND, show};
use super::{Type, ids};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};

/// A time of day and where it is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeTz {
    /// Microseconds since midnight, there.
    pub micros: i64,
    /// Seconds west of Greenwich, as PostgreSQL keeps them.
    pub zone: i32,
}

impl TimeTz {
    /// The order: first by the moment, then by the zone.
    #[must_use]
    pub fn order(&self, other: &Self) -> Ordering {
        let moment = |time: &Self| {
            time.micros
                .wrapping_add(i64::from(time.zone).wrapping_mul(SECOND))
        };
        moment(self)
            .cmp(&moment(other))
            .then(self.zone.cmp(&other.zone))
    }
}

/// The types of this file.
pub const TYPES: &[Type] = &[
    Type {
        length: 8,
        category: b'D',
        array: ids::TIME_ARRAY,
        input,
        output,
        receive,
        send,
        compare: Some(|a, b| a.as_time().cmp(&b.as_time())),
        modifier_in: Some(|modifiers| modifier_in(modifiers, "TIME", "")),
        modifier_out: Some(modifier_out),
        fit: Some(|_, value, modifier, _| Ok(Datum::Time(rounded(value.as_time(), modifier)))),
        ..Type::new(ids::TIME, "time", "time without time zone")
    },
    Type {
        length: 12,
        category: b'D',
        array: ids::TIMETZ_ARRAY,
        input: zoned_input,
        output: zoned_output,
        receive: zoned_receive,
        send: zoned_send,
        compare: Some(|a, b| a.as_timetz().order(&b.as_timetz())),
        modifier_in: Some(|modifiers| modifier_in(modifiers, "TIME", " WITH TIME ZONE")),
        modifier_out: Some(modifier_out),
        fit: Some(|_, value, modifier, _| {
            let TimeTz { micros, zone } = value.as_timetz();
            let micros = rounded(micros, modifier);
            Ok(Datum::TimeTz(TimeTz { micros, zone }))
        }),
        ..Type::new(ids::TIMETZ, "timetz", "time with time zone")
    },
];

/// Reads the precision of a time or a timestamp. PostgreSQL warns that more
/// than six digits are six.
pub(super) fn modifier_in(modifiers: &[i32], name: &str, zone: &str) -> Result<i32> {
    match modifiers {
        [digits] if *digits < 0 => Err(QueryError::invalid_parameter(format!(
            "{name}({digits}){zone} precision must not be negative"
        ))),
        [digits] => Ok((*digits).min(6)),
        _ => Err(QueryError::invalid_parameter("invalid type modifier")),
    }
}

/// Shows the precision of a time or a timestamp.
pub(super) fn modifier_out(modifier: i32) -> String {
    format!("({modifier})")
}

/// Rounds a time to so many digits; -1 for all.
#[must_use]
pub fn rounded(micros: i64, digits: i32) -> i64 {
    datetime::round_micros(micros, digits)
}

/// A time of day taken apart.
#[must_use]
pub fn fields_of(micros: i64) -> Fields {
    let mut fields = Fields::default();
    fields.set_time(micros);
    fields
}

fn read(call: &Call<'_>, text: &str, type_name: &str) -> Result<Point> {
    Split::new(text, DATE_ROOM)
        .and_then(|split| point::time_only(call, &split))
        .map_err(|bad| bad.error(text, type_name))
}

fn input(call: &Call<'_>, text: &str, modifier: i32) -> Result<Datum> {
    let point = read(call, text, "time")?;
    Ok(Datum::Time(rounded(point.fields.day_micros(), modifier)))
}

fn output(_: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    show::time(out, &fields_of(value.as_time()));
    Ok(())
}

fn checked(micros: i64) -> Result<i64> {
    if (0..=DAY).contains(&micros) {
        Ok(micros)
    } else {
        Err(QueryError::new("22008", "time out of range"))
    }
}

fn receive(_: &Call<'_>, bytes: &[u8], modifier: i32) -> Result<Datum> {
    let micros = checked(i64::from_be_bytes(datetime::received(bytes)?))?;
    Ok(Datum::Time(rounded(micros, modifier)))
}

fn send(_: &Call<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(&value.as_time().to_be_bytes());
    Ok(())
}

fn zoned_input(call: &Call<'_>, text: &str, modifier: i32) -> Result<Datum> {
    let point = read(call, text, "time with time zone")?;
    Ok(Datum::TimeTz(TimeTz {
        micros: rounded(point.fields.day_micros(), modifier),
        zone: point.west,
    }))
}

fn zoned_output(_: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    let time = value.as_timetz();
    show::time(out, &fields_of(time.micros));
    show::numeric_zone(out, time.zone);
    Ok(())
}

fn zoned_receive(_: &Call<'_>, bytes: &[u8], modifier: i32) -> Result<Datum> {
    let bytes: [u8; 12] = datetime::received(bytes)?;
    let (micros, zone) = bytes.split_at(8);
    let micros = checked(i64::from_be_bytes(datetime::received(micros)?))?;
    let zone = i32::from_be_bytes(datetime::received(zone)?);
    if !(-57_599..=57_599).contains(&zone) {
        return Err(QueryError::new(
            "22009",
            "time zone displacement out of range",
        ));
    }
    Ok(Datum::TimeTz(TimeTz {
        micros: rounded(micros, modifier),
        zone,
    }))
}

fn zoned_send(_: &Call<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    let time = value.as_timetz();
    out.extend_from_slice(&time.micros.to_be_bytes());
    out.extend_from_slice(&time.zone.to_be_bytes());
    Ok(())
}
