//! `to_char`, `to_date` and `to_timestamp`: patterns of dates and times.

use super::Function;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::Result;
use crate::types::datetime::pattern::read::{date_of, moment, timestamptz_of};
use crate::types::datetime::pattern::write::Value;
use crate::types::datetime::show::SpanFields;
use crate::types::datetime::{is_finite, unix_of, zone};
use crate::types::ids;
use crate::types::timestamp::{fields, local_fields};

/// The functions of this file.
pub(super) static FUNCTIONS: &[Function] = &[
    Function::row(
        1768,
        "to_char",
        &[ids::INTERVAL, ids::TEXT],
        ids::TEXT,
        interval_to_char,
    )
    .stable(),
    Function::row(
        1770,
        "to_char",
        &[ids::TIMESTAMPTZ, ids::TEXT],
        ids::TEXT,
        timestamptz_to_char,
    )
    .stable(),
    Function::row(
        2049,
        "to_char",
        &[ids::TIMESTAMP, ids::TEXT],
        ids::TEXT,
        timestamp_to_char,
    )
    .stable(),
    Function::row(1780, "to_date", &[ids::TEXT, ids::TEXT], ids::DATE, to_date).stable(),
    Function::row(
        1778,
        "to_timestamp",
        &[ids::TEXT, ids::TEXT],
        ids::TIMESTAMPTZ,
        to_timestamp,
    )
    .stable(),
];

/// The longest field is that many times as long as its name.
const FIELD_GROWTH: usize = 12;

fn written(call: &Call<'_>, value: &Value, pattern: &str) -> Result<Datum> {
    call.room(pattern.len().saturating_mul(FIELD_GROWTH))?;
    value.write(pattern).map(Datum::text)
}

fn timestamp_to_char(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (timestamp, pattern) = (a[0].as_timestamp(), a[1].as_text());
    if pattern.is_empty() || !is_finite(timestamp) {
        return Ok(Datum::Null);
    }
    let value = Value::moment(&fields(timestamp)?, None);
    written(call, &value, pattern)
}

fn timestamptz_to_char(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (timestamp, pattern) = (a[0].as_timestamptz(), a[1].as_text());
    if pattern.is_empty() || !is_finite(timestamp) {
        return Ok(Datum::Null);
    }
    let settings = call.settings();
    let (fields, west) = local_fields(timestamp, settings)?;
    let name = zone::shown_abbreviation(settings, unix_of(timestamp));
    let value = Value::moment(&fields, Some((west, name)));
    written(call, &value, pattern)
}

fn interval_to_char(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let pattern = a[1].as_text();
    if pattern.is_empty() {
        return Ok(Datum::Null);
    }
    let value = Value::span(&SpanFields::of(a[0].as_interval()));
    written(call, &value, pattern)
}

fn to_date(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let text = a[0].as_text();
    let moment = moment(text, a[1].as_text(), false)?;
    date_of(&moment.fields, text).map(Datum::Date)
}

fn to_timestamp(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let moment = moment(a[0].as_text(), a[1].as_text(), false)?;
    timestamptz_of(call, &moment).map(Datum::TimestampTz)
}
