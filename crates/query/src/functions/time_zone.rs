//! `AT TIME ZONE`, and the zones and abbreviations that there are.

use super::Function;
use crate::call::Call;
use crate::datum::{Datum, Record};
use crate::error::{QueryError, Result};
use crate::types::datetime::abbreviations::{ABBREVIATIONS, Abbreviation};
use crate::types::datetime::point::numeric_zone;
use crate::types::datetime::split::Bad;
use crate::types::datetime::zone::{self, Named};
use crate::types::datetime::{
    DAY, Fields, SECOND, is_finite, is_timestamp, show, timestamp_out_of_range, unix_of,
};
use crate::types::ids;
use crate::types::interval::Interval;
use crate::types::time::TimeTz;
use crate::types::timestamp::{fields, moved};

/// The functions of this file.
pub(super) static FUNCTIONS: &[Function] = &[
    Function::set(
        2599,
        "pg_timezone_abbrevs",
        &[],
        ids::RECORD,
        pg_timezone_abbrevs,
    )
    .stable()
    .columns(&[
        ("abbrev", ids::TEXT),
        ("utc_offset", ids::INTERVAL),
        ("is_dst", ids::BOOL),
    ]),
    Function::set(
        2856,
        "pg_timezone_names",
        &[],
        ids::RECORD,
        pg_timezone_names,
    )
    .stable()
    .columns(&[
        ("name", ids::TEXT),
        ("abbrev", ids::TEXT),
        ("utc_offset", ids::INTERVAL),
        ("is_dst", ids::BOOL),
    ]),
    Function::row(
        1026,
        "timezone",
        &[ids::INTERVAL, ids::TIMESTAMPTZ],
        ids::TIMESTAMP,
        timestamptz_izone,
    ),
    Function::row(
        1159,
        "timezone",
        &[ids::TEXT, ids::TIMESTAMPTZ],
        ids::TIMESTAMP,
        timestamptz_zone,
    ),
    Function::row(
        2037,
        "timezone",
        &[ids::TEXT, ids::TIMETZ],
        ids::TIMETZ,
        timetz_zone,
    )
    .stable(),
    Function::row(
        2038,
        "timezone",
        &[ids::INTERVAL, ids::TIMETZ],
        ids::TIMETZ,
        timetz_izone,
    ),
    Function::row(
        2069,
        "timezone",
        &[ids::TEXT, ids::TIMESTAMP],
        ids::TIMESTAMPTZ,
        timestamp_zone,
    ),
    Function::row(
        2070,
        "timezone",
        &[ids::INTERVAL, ids::TIMESTAMP],
        ids::TIMESTAMPTZ,
        timestamp_izone,
    ),
];

/// How far a zone is west of Greenwich when its clocks show this. The zone is a
/// name, an abbreviation or a number with a sign that is meant as ISO means it.
pub(super) fn plain_west(name: &str, fields: &Fields) -> Result<i32> {
    if name.starts_with(|letter: char| letter.is_ascii_digit()) {
        return Err(QueryError::invalid_parameter(format!(
            "invalid input syntax for type numeric time zone: \"{name}\""
        ))
        .with_hint("Numeric time zones must have \"-\" or \"+\" as first character."));
    }
    match numeric_zone(name.as_bytes()) {
        Ok(west) => return Ok(west),
        Err(Bad::Displacement) => {
            return Err(QueryError::invalid_parameter(format!(
                "numeric time zone \"{name}\" out of range"
            )));
        }
        Err(_) => {}
    }
    Ok(match zone::read(name)? {
        Named::East(east) => -east,
        Named::Abbreviation(zone) => zone::abbreviation_west(&zone, fields, name.as_bytes()),
        Named::Zone(zone) => zone::local_west(&zone, fields),
    })
}

fn checked(timestamp: i64) -> Result<i64> {
    if is_timestamp(timestamp) {
        Ok(timestamp)
    } else {
        Err(timestamp_out_of_range())
    }
}

/// The seconds east of Greenwich that an interval stands for.
fn east_of_interval(call: &Call<'_>, interval: Interval) -> Result<i32> {
    if interval.months != 0 || interval.days != 0 {
        let mut shown = String::new();
        show::interval(&mut shown, interval, call.settings().interval_style);
        return Err(QueryError::invalid_parameter(format!(
            "interval time zone \"{shown}\" must not include months or days"
        )));
    }
    Ok((interval.micros / SECOND) as i32)
}

fn timestamp_zone(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (name, timestamp) = (a[0].as_text(), a[1].as_timestamp());
    if !is_finite(timestamp) {
        return Ok(Datum::TimestampTz(timestamp));
    }
    let west = match zone::read(name)? {
        Named::East(east) => -east,
        Named::Abbreviation(zone) => {
            zone::abbreviation_west(&zone, &fields(timestamp)?, name.as_bytes())
        }
        Named::Zone(zone) => zone::local_west(&zone, &fields(timestamp)?),
    };
    checked(moved(timestamp, west)).map(Datum::TimestampTz)
}

fn timestamp_izone(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let timestamp = a[1].as_timestamp();
    if !is_finite(timestamp) {
        return Ok(Datum::TimestampTz(timestamp));
    }
    let east = east_of_interval(call, a[0].as_interval())?;
    checked(moved(timestamp, east.wrapping_neg())).map(Datum::TimestampTz)
}

fn timestamptz_zone(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (name, timestamp) = (a[0].as_text(), a[1].as_timestamptz());
    if !is_finite(timestamp) {
        return Ok(Datum::Timestamp(timestamp));
    }
    let west = west_at(name, timestamp)?;
    checked(moved(timestamp, west.wrapping_neg())).map(Datum::Timestamp)
}

/// How far a zone, by name or abbreviation, is west of Greenwich at a time.
fn west_at(name: &str, timestamp: i64) -> Result<i32> {
    Ok(match zone::read(name)? {
        Named::East(east) => -east,
        Named::Abbreviation(zone) => {
            zone::abbreviation_west_at(&zone, timestamp, name.as_bytes())?.0
        }
        Named::Zone(zone) => -zone::east_at(&zone, unix_of(timestamp)),
    })
}

fn timestamptz_izone(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let timestamp = a[1].as_timestamptz();
    if !is_finite(timestamp) {
        return Ok(Datum::Timestamp(timestamp));
    }
    let east = east_of_interval(call, a[0].as_interval())?;
    checked(moved(timestamp, east)).map(Datum::Timestamp)
}

/// The same moment on clocks elsewhere.
fn told(time: TimeTz, west: i32) -> Datum {
    let moved = i64::from(time.zone.wrapping_sub(west)).wrapping_mul(SECOND);
    Datum::TimeTz(TimeTz {
        micros: time.micros.wrapping_add(moved).rem_euclid(DAY),
        zone: west,
    })
}

fn timetz_zone(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let west = west_at(a[0].as_text(), call.environment.transaction_time())?;
    Ok(told(a[1].as_timetz(), west))
}

fn timetz_izone(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let east = east_of_interval(call, a[0].as_interval())?;
    Ok(told(a[1].as_timetz(), east.wrapping_neg()))
}

fn offset(east: i32) -> Datum {
    Datum::Interval(Interval {
        micros: i64::from(east) * SECOND,
        ..Interval::default()
    })
}

fn record(types: &[u32], names: &[&str], values: Vec<Datum>) -> Datum {
    Datum::Record(
        Record {
            modifiers: None,
            types: types.into(),
            names: Some(names.iter().map(|name| (*name).into()).collect()),
            values,
        }
        .into(),
    )
}

fn pg_timezone_abbrevs(call: &Call<'_>, _: &[Datum]) -> Result<Vec<Datum>> {
    let now = call.environment.transaction_time();
    let row = |(name, meaning): &(&str, Abbreviation)| {
        let (east, summer) = match meaning {
            Abbreviation::Fixed(east, summer) => (*east, *summer),
            Abbreviation::Dynamic(zone) => {
                let zone = zone::of_abbreviation(zone, name.as_bytes())?;
                let (west, summer) = zone::abbreviation_west_at(&zone, now, name.as_bytes())?;
                (-west, summer)
            }
        };
        Ok(record(
            &[ids::TEXT, ids::INTERVAL, ids::BOOL],
            &["abbrev", "utc_offset", "is_dst"],
            vec![
                Datum::text(name.to_ascii_uppercase()),
                offset(east),
                Datum::Bool(summer),
            ],
        ))
    };
    ABBREVIATIONS.iter().map(row).collect()
}

fn pg_timezone_names(call: &Call<'_>, _: &[Datum]) -> Result<Vec<Datum>> {
    let unix = unix_of(call.environment.transaction_time());
    let mut rows = Vec::new();
    for name in jiff::tz::db().available() {
        let Some(zone) = zone::named(name.as_str()) else {
            continue;
        };
        let (abbreviation, summer) = zone::abbreviation_at(&zone, unix);
        rows.push(record(
            &[ids::TEXT, ids::TEXT, ids::INTERVAL, ids::BOOL],
            &["name", "abbrev", "utc_offset", "is_dst"],
            vec![
                Datum::text(name.as_str()),
                Datum::text(abbreviation),
                offset(zone::east_at(&zone, unix)),
                Datum::Bool(summer),
            ],
        ));
    }
    Ok(rows)
}
