//! Functions and operators of `date`.

use super::Function;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::date::{is_finite, of_fields};
use crate::types::datetime::point::{YearForm, check_date};
use crate::types::datetime::{Fields, SECOND, date_out_of_range, is_date, is_timestamp};
use crate::types::ids;
use crate::types::interval::Interval;
use crate::types::timestamp::{
    date_of_timestamp, date_of_timestamptz, plus, timestamp_of_date, timestamptz_of_date,
    timestamptz_of_timestamp,
};

/// The functions of this file.
pub(super) static FUNCTIONS: &[Function] = &[
    Function::row(
        1178,
        "date",
        &[ids::TIMESTAMPTZ],
        ids::DATE,
        timestamptz_date,
    )
    .stable(),
    Function::row(2029, "date", &[ids::TIMESTAMP], ids::DATE, timestamp_date),
    Function::row(1140, "date_mi", &[ids::DATE, ids::DATE], ids::INT4, date_mi),
    Function::row(
        2072,
        "date_mi_interval",
        &[ids::DATE, ids::INTERVAL],
        ids::TIMESTAMP,
        date_mi_interval,
    ),
    Function::row(
        1142,
        "date_mii",
        &[ids::DATE, ids::INT4],
        ids::DATE,
        date_mii,
    ),
    Function::row(
        2071,
        "date_pl_interval",
        &[ids::DATE, ids::INTERVAL],
        ids::TIMESTAMP,
        date_pl_interval,
    ),
    Function::row(
        1141,
        "date_pli",
        &[ids::DATE, ids::INT4],
        ids::DATE,
        date_pli,
    ),
    Function::row(
        1272,
        "datetime_pl",
        &[ids::DATE, ids::TIME],
        ids::TIMESTAMP,
        datetime_timestamp,
    ),
    Function::row(
        1297,
        "datetimetz_pl",
        &[ids::DATE, ids::TIMETZ],
        ids::TIMESTAMPTZ,
        datetimetz_timestamptz,
    ),
    Function::row(
        2550,
        "integer_pl_date",
        &[ids::INT4, ids::DATE],
        ids::DATE,
        integer_pl_date,
    ),
    Function::row(
        2546,
        "interval_pl_date",
        &[ids::INTERVAL, ids::DATE],
        ids::TIMESTAMP,
        interval_pl_date,
    ),
    Function::row(1373, "isfinite", &[ids::DATE], ids::BOOL, date_finite),
    Function::row(
        3846,
        "make_date",
        &[ids::INT4, ids::INT4, ids::INT4],
        ids::DATE,
        make_date,
    )
    .named(&["year", "month", "day"]),
    Function::row(
        2024,
        "timestamp",
        &[ids::DATE],
        ids::TIMESTAMP,
        date_timestamp,
    ),
    Function::row(
        2025,
        "timestamp",
        &[ids::DATE, ids::TIME],
        ids::TIMESTAMP,
        datetime_timestamp,
    ),
    Function::row(
        1174,
        "timestamptz",
        &[ids::DATE],
        ids::TIMESTAMPTZ,
        date_timestamptz,
    )
    .stable(),
    Function::row(
        1176,
        "timestamptz",
        &[ids::DATE, ids::TIME],
        ids::TIMESTAMPTZ,
        date_time_timestamptz,
    )
    .stable(),
    Function::row(
        1359,
        "timestamptz",
        &[ids::DATE, ids::TIMETZ],
        ids::TIMESTAMPTZ,
        datetimetz_timestamptz,
    ),
];

fn date_finite(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(is_finite(a[0].as_date())))
}

fn date_mi(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (a, b) = (a[0].as_date(), a[1].as_date());
    if !is_finite(a) || !is_finite(b) {
        return Err(QueryError::new("22008", "cannot subtract infinite dates"));
    }
    Ok(Datum::Int4(a.wrapping_sub(b)))
}

/// A date so many days later.
fn later(date: i32, days: Option<i32>) -> Result<Datum> {
    if !is_finite(date) {
        return Ok(Datum::Date(date));
    }
    days.filter(|date| is_date(*date))
        .map(Datum::Date)
        .ok_or_else(date_out_of_range)
}

fn date_pli(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let date = a[0].as_date();
    later(date, date.checked_add(a[1].as_int4()))
}

fn integer_pl_date(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let date = a[1].as_date();
    later(date, date.checked_add(a[0].as_int4()))
}

fn date_mii(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let date = a[0].as_date();
    later(date, date.checked_sub(a[1].as_int4()))
}

fn date_plus(date: i32, interval: Interval) -> Result<Datum> {
    plus(timestamp_of_date(date)?, interval).map(Datum::Timestamp)
}

fn date_pl_interval(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    date_plus(a[0].as_date(), a[1].as_interval())
}

fn interval_pl_date(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    date_plus(a[1].as_date(), a[0].as_interval())
}

fn date_mi_interval(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    date_plus(a[0].as_date(), a[1].as_interval().reversed())
}

fn date_timestamp(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    timestamp_of_date(a[0].as_date()).map(Datum::Timestamp)
}

fn date_timestamptz(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    timestamptz_of_date(a[0].as_date(), call.settings()).map(Datum::TimestampTz)
}

fn timestamp_date(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    date_of_timestamp(a[0].as_timestamp()).map(Datum::Date)
}

fn timestamptz_date(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    date_of_timestamptz(a[0].as_timestamptz(), call.settings()).map(Datum::Date)
}

/// A date and a time of day together.
pub(super) fn with_time(date: i32, time: i64) -> Result<i64> {
    let start = timestamp_of_date(date)?;
    if !is_finite(date) {
        return Ok(start);
    }
    start
        .checked_add(time)
        .filter(|timestamp| is_timestamp(*timestamp))
        .ok_or_else(crate::types::datetime::timestamp_out_of_range)
}

fn datetime_timestamp(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    with_time(a[0].as_date(), a[1].as_time()).map(Datum::Timestamp)
}

fn date_time_timestamptz(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let timestamp = with_time(a[0].as_date(), a[1].as_time())?;
    timestamptz_of_timestamp(timestamp, call.settings()).map(Datum::TimestampTz)
}

pub(super) fn datetimetz_timestamptz(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (date, time) = (a[0].as_date(), a[1].as_timetz());
    let start = timestamp_of_date(date)?;
    if !is_finite(date) {
        return Ok(Datum::TimestampTz(start));
    }
    let time = time
        .micros
        .wrapping_add(i64::from(time.zone).wrapping_mul(SECOND));
    start
        .checked_add(time)
        .filter(|timestamp| is_timestamp(*timestamp))
        .map(Datum::TimestampTz)
        .ok_or_else(|| QueryError::new("22008", "date out of range for timestamp"))
}

/// Checks the date of numbers; negative years are BC. The second fields are
/// what an error tells of where the calendar doesn't reach.
pub(super) fn made(year: i32, month: i32, day: i32) -> std::result::Result<Fields, Fields> {
    let mut fields = Fields {
        year: if year < 0 { year.wrapping_neg() } else { year },
        month,
        day,
        ..Fields::default()
    };
    let form = if year < 0 {
        YearForm::Era
    } else {
        YearForm::Plain
    };
    match check_date(&mut fields, form) {
        Ok(()) => Ok(fields),
        Err(_) => Err(fields),
    }
}

fn make_date(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let show = |fields: &Fields| {
        let Fields {
            year, month, day, ..
        } = fields;
        format!("{year}-{}-{}", padded(*month), padded(*day))
    };
    match made(a[0].as_int4(), a[1].as_int4(), a[2].as_int4()) {
        Ok(fields) => of_fields(&fields).map(Datum::Date).ok_or_else(|| {
            let message = format!("date out of range: {}", show(&fields));
            QueryError::new("22008", message)
        }),
        Err(fields) => {
            let message = format!("date field value out of range: {}", show(&fields));
            Err(QueryError::new("22008", message))
        }
    }
}

/// A number as C's `%02d`.
pub(super) fn padded(number: i32) -> String {
    format!("{number:02}")
}
