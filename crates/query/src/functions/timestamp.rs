//! Functions and operators of `timestamp` and `timestamptz`.

use std::time::{SystemTime, UNIX_EPOCH};

use super::date::padded;
use super::time::general;
use super::{Function, date, interval, time};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::datetime::show::{DAYS, MONTHS, SpanFields};
use crate::types::datetime::{
    self, DAY, Fields, SECOND, interval_out_of_range, is_finite, is_timestamp, month_days,
    timestamp_out_of_range, unix_of, zone,
};
use crate::types::ids;
use crate::types::interval::Interval;
use crate::types::timestamp::{
    date_of_timestamptz, fields, local_fields, moved, plus, rounded, timestamp_of_date,
    timestamp_of_timestamptz, timestamptz_of_date, timestamptz_of_timestamp, zoned_plus,
};

/// The functions of this file.
pub(super) static FUNCTIONS: &[Function] = &[
    Function::row(
        1199,
        "age",
        &[ids::TIMESTAMPTZ, ids::TIMESTAMPTZ],
        ids::INTERVAL,
        timestamptz_age,
    ),
    Function::row(
        1386,
        "age",
        &[ids::TIMESTAMPTZ],
        ids::INTERVAL,
        timestamptz_age_today,
    )
    .stable(),
    Function::row(
        2058,
        "age",
        &[ids::TIMESTAMP, ids::TIMESTAMP],
        ids::INTERVAL,
        timestamp_age,
    ),
    Function::row(
        2059,
        "age",
        &[ids::TIMESTAMP],
        ids::INTERVAL,
        timestamp_age_today,
    )
    .stable(),
    Function::row(
        2649,
        "clock_timestamp",
        &[],
        ids::TIMESTAMPTZ,
        clock_timestamp,
    )
    .volatile(),
    Function::set(
        938,
        "generate_series",
        &[ids::TIMESTAMP, ids::TIMESTAMP, ids::INTERVAL],
        ids::TIMESTAMP,
        generate_series_timestamp,
    ),
    Function::set(
        939,
        "generate_series",
        &[ids::TIMESTAMPTZ, ids::TIMESTAMPTZ, ids::INTERVAL],
        ids::TIMESTAMPTZ,
        generate_series_timestamptz,
    )
    .stable(),
    Function::row(
        2548,
        "interval_pl_timestamp",
        &[ids::INTERVAL, ids::TIMESTAMP],
        ids::TIMESTAMP,
        interval_pl_timestamp,
    ),
    Function::row(
        2549,
        "interval_pl_timestamptz",
        &[ids::INTERVAL, ids::TIMESTAMPTZ],
        ids::TIMESTAMPTZ,
        interval_pl_timestamptz,
    )
    .stable(),
    Function::row(
        1389,
        "isfinite",
        &[ids::TIMESTAMPTZ],
        ids::BOOL,
        timestamptz_finite,
    ),
    Function::row(
        2048,
        "isfinite",
        &[ids::TIMESTAMP],
        ids::BOOL,
        timestamp_finite,
    ),
    Function::row(
        3461,
        "make_timestamp",
        &[
            ids::INT4,
            ids::INT4,
            ids::INT4,
            ids::INT4,
            ids::INT4,
            ids::FLOAT8,
        ],
        ids::TIMESTAMP,
        make_timestamp,
    )
    .named(&["year", "month", "mday", "hour", "min", "sec"]),
    Function::row(
        3462,
        "make_timestamptz",
        &[
            ids::INT4,
            ids::INT4,
            ids::INT4,
            ids::INT4,
            ids::INT4,
            ids::FLOAT8,
        ],
        ids::TIMESTAMPTZ,
        make_timestamptz,
    )
    .stable()
    .named(&["year", "month", "mday", "hour", "min", "sec"]),
    Function::row(
        3463,
        "make_timestamptz",
        &[
            ids::INT4,
            ids::INT4,
            ids::INT4,
            ids::INT4,
            ids::INT4,
            ids::FLOAT8,
            ids::TEXT,
        ],
        ids::TIMESTAMPTZ,
        make_timestamptz_at_timezone,
    )
    .stable()
    .named(&["year", "month", "mday", "hour", "min", "sec", "timezone"]),
    Function::row(1299, "now", &[], ids::TIMESTAMPTZ, now).stable(),
    Function::row(
        2648,
        "statement_timestamp",
        &[],
        ids::TIMESTAMPTZ,
        statement_timestamp,
    )
    .stable(),
    Function::row(274, "timeofday", &[], ids::TEXT, timeofday).volatile(),
    Function::row(
        1961,
        "timestamp",
        &[ids::TIMESTAMP, ids::INT4],
        ids::TIMESTAMP,
        timestamp_scale,
    ),
    Function::row(
        2027,
        "timestamp",
        &[ids::TIMESTAMPTZ],
        ids::TIMESTAMP,
        timestamptz_timestamp,
    )
    .stable(),
    Function::row(
        2031,
        "timestamp_mi",
        &[ids::TIMESTAMP, ids::TIMESTAMP],
        ids::INTERVAL,
        timestamp_mi,
    ),
    Function::row(
        2033,
        "timestamp_mi_interval",
        &[ids::TIMESTAMP, ids::INTERVAL],
        ids::TIMESTAMP,
        timestamp_mi_interval,
    ),
    Function::row(
        2032,
        "timestamp_pl_interval",
        &[ids::TIMESTAMP, ids::INTERVAL],
        ids::TIMESTAMP,
        timestamp_pl_interval,
    ),
    Function::row(
        1967,
        "timestamptz",
        &[ids::TIMESTAMPTZ, ids::INT4],
        ids::TIMESTAMPTZ,
        timestamptz_scale,
    ),
    Function::row(
        2028,
        "timestamptz",
        &[ids::TIMESTAMP],
        ids::TIMESTAMPTZ,
        timestamp_timestamptz,
    )
    .stable(),
    Function::row(
        1188,
        "timestamptz_mi",
        &[ids::TIMESTAMPTZ, ids::TIMESTAMPTZ],
        ids::INTERVAL,
        timestamptz_mi,
    ),
    Function::row(
        1190,
        "timestamptz_mi_interval",
        &[ids::TIMESTAMPTZ, ids::INTERVAL],
        ids::TIMESTAMPTZ,
        timestamptz_mi_interval,
    )
    .stable(),
    Function::row(
        1189,
        "timestamptz_pl_interval",
        &[ids::TIMESTAMPTZ, ids::INTERVAL],
        ids::TIMESTAMPTZ,
        timestamptz_pl_interval,
    )
    .stable(),
    Function::row(
        1158,
        "to_timestamp",
        &[ids::FLOAT8],
        ids::TIMESTAMPTZ,
        float8_timestamptz,
    ),
    Function::row(2647, "transaction_timestamp", &[], ids::TIMESTAMPTZ, now).stable(),
];

fn timestamp_finite(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(is_finite(a[0].as_timestamp())))
}

fn timestamptz_finite(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(is_finite(a[0].as_timestamptz())))
}

fn now(call: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::TimestampTz(call.environment.transaction_time()))
}

fn statement_timestamp(call: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::TimestampTz(call.environment.statement_time()))
}

/// What the machine's clock shows: microseconds since 2000-01-01 UTC.
#[must_use]
pub fn clock() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_micros())
        .unwrap_or(i64::MAX)
        .saturating_add(datetime::UNIX_EPOCH)
}

fn clock_timestamp(_: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::TimestampTz(clock()))
}

/// `Tue Nov 24 14:49:50.123456 2026 UTC`
fn timeofday(call: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    let now = clock();
    let settings = call.settings();
    let (fields, _) = local_fields(now, settings)?;
    let zone = zone::shown_abbreviation(settings, unix_of(now));
    let name = |names: &[&'static str], at: i32| {
        usize::try_from(at)
            .ok()
            .and_then(|at| names.get(at).copied())
            .unwrap_or_default()
    };
    let Fields {
        year,
        month,
        day,
        hour,
        minute,
        second,
        micros,
    } = fields;
    Ok(Datum::text(format!(
        "{} {} {day:02} {hour:02}:{minute:02}:{second:02}.{micros:06} {year} {zone}",
        name(&DAYS, fields.weekday()),
        name(&MONTHS, month - 1),
    )))
}

fn timestamp_scale(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    rounded(a[0].as_timestamp(), a[1].as_int4()).map(Datum::Timestamp)
}

fn timestamptz_scale(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    rounded(a[0].as_timestamptz(), a[1].as_int4()).map(Datum::TimestampTz)
}

fn timestamptz_timestamp(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    timestamp_of_timestamptz(a[0].as_timestamptz(), call.settings()).map(Datum::Timestamp)
}

fn timestamp_timestamptz(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    timestamptz_of_timestamp(a[0].as_timestamp(), call.settings()).map(Datum::TimestampTz)
}

fn difference(a: i64, b: i64) -> Result<Datum> {
    if !is_finite(a) || !is_finite(b) {
        return Err(QueryError::new(
            "22008",
            "cannot subtract infinite timestamps",
        ));
    }
    let span = Interval {
        micros: a.wrapping_sub(b),
        ..Interval::default()
    };
    interval::justified_hours(span).map(Datum::Interval)
}

fn timestamp_mi(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    difference(a[0].as_timestamp(), a[1].as_timestamp())
}

fn timestamptz_mi(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    difference(a[0].as_timestamptz(), a[1].as_timestamptz())
}

fn timestamp_pl_interval(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    plus(a[0].as_timestamp(), a[1].as_interval()).map(Datum::Timestamp)
}

fn interval_pl_timestamp(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    plus(a[1].as_timestamp(), a[0].as_interval()).map(Datum::Timestamp)
}

fn timestamp_mi_interval(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    plus(a[0].as_timestamp(), a[1].as_interval().reversed()).map(Datum::Timestamp)
}

fn timestamptz_pl_interval(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    zoned_plus(a[0].as_timestamptz(), a[1].as_interval(), call.settings()).map(Datum::TimestampTz)
}

fn interval_pl_timestamptz(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    zoned_plus(a[1].as_timestamptz(), a[0].as_interval(), call.settings()).map(Datum::TimestampTz)
}

fn timestamptz_mi_interval(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let interval = a[1].as_interval().reversed();
    zoned_plus(a[0].as_timestamptz(), interval, call.settings()).map(Datum::TimestampTz)
}

/// The years, months, days and so on from one moment to another, as a calendar counts them.
fn age(after: bool, a: &Fields, b: &Fields) -> Result<Datum> {
    let (late, early) = if after { (a, b) } else { (b, a) };
    let mut micros = late.micros - early.micros;
    let mut seconds = late.second - early.second;
    let mut minutes = late.minute - early.minute;
    let mut hours = late.hour - early.hour;
    let mut days = late.day - early.day;
    let mut months = late.month - early.month;
    let mut years = late.year - early.year;
    let borrow = |part: &mut i32, next: &mut i32, size: i32| {
        while *part < 0 {
            *part += size;
            *next -= 1;
        }
    };
    borrow(&mut micros, &mut seconds, SECOND as i32);
    borrow(&mut seconds, &mut minutes, 60);
    borrow(&mut minutes, &mut hours, 60);
    borrow(&mut hours, &mut days, 24);
    borrow(&mut days, &mut months, month_days(early.year, early.month));
    borrow(&mut months, &mut years, 12);
    let sign = if after { 1 } else { -1 };
    SpanFields {
        years: years * sign,
        months: months * sign,
        days: days * sign,
        hours: i64::from(hours * sign),
        minutes: minutes * sign,
        seconds: seconds * sign,
        micros: micros * sign,
    }
    .interval()
    .map(Datum::Interval)
    .ok_or_else(interval_out_of_range)
}

fn timestamp_age(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (first, second) = (a[0].as_timestamp(), a[1].as_timestamp());
    age(first >= second, &fields(first)?, &fields(second)?)
}

fn timestamptz_age(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (first, second) = (a[0].as_timestamptz(), a[1].as_timestamptz());
    let settings = call.settings();
    age(
        first >= second,
        &local_fields(first, settings)?.0,
        &local_fields(second, settings)?.0,
    )
}

fn today(call: &Call<'_>) -> Result<i32> {
    date_of_timestamptz(call.environment.transaction_time(), call.settings())
}

fn timestamp_age_today(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let today = Datum::Timestamp(timestamp_of_date(today(call)?)?);
    timestamp_age(call, &[today, a[0].clone()])
}

fn timestamptz_age_today(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let today = timestamptz_of_date(today(call)?, call.settings())?;
    timestamptz_age(call, &[Datum::TimestampTz(today), a[0].clone()])
}

/// The timestamp of numbers.
fn made(a: &[Datum]) -> Result<i64> {
    let at = |at: usize| a[at].as_int4();
    let second = a[5].as_float8();
    let shown_date = || {
        let (month, day) = (padded(at(1)), padded(at(2)));
        format!("{}-{month}-{day}", at(0))
    };
    let date_error =
        |message: &str| QueryError::new("22008", format!("{message}: {}", shown_date()));
    let fields =
        date::made(at(0), at(1), at(2)).map_err(|_| date_error("date field value out of range"))?;
    if !fields.is_countable() {
        return Err(date_error("date out of range"));
    }
    let time = time::made(at(3), at(4), second)?;
    let days = i128::from(fields.julian()) - i128::from(datetime::EPOCH_JULIAN);
    let micros = days * i128::from(DAY) + i128::from(time);
    i64::try_from(micros)
        .ok()
        .filter(|timestamp| is_timestamp(*timestamp))
        .ok_or_else(|| {
            let (date, minute, second) = (shown_date(), padded(at(4)), general(second, 2));
            QueryError::new(
                "22008",
                format!("timestamp out of range: {date} {}:{minute}:{second}", at(3)),
            )
        })
}

fn make_timestamp(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    made(a).map(Datum::Timestamp)
}

fn make_timestamptz(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    timestamptz_of_timestamp(made(a)?, call.settings()).map(Datum::TimestampTz)
}

fn make_timestamptz_at_timezone(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let timestamp = made(a)?;
    let west = super::time_zone::plain_west(a[6].as_text(), &fields(timestamp)?)?;
    let timestamp = moved(timestamp, west);
    if !is_timestamp(timestamp) {
        return Err(timestamp_out_of_range());
    }
    Ok(Datum::TimestampTz(timestamp))
}

/// `to_timestamp(seconds)`, since 1970-01-01 UTC
fn float8_timestamptz(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let seconds = a[0].as_float8();
    if seconds.is_nan() {
        return Err(QueryError::new("22008", "timestamp cannot be NaN"));
    }
    if seconds.is_infinite() {
        return Ok(Datum::TimestampTz(if seconds < 0.0 {
            i64::MIN
        } else {
            i64::MAX
        }));
    }
    let first = unix_of(datetime::TIMESTAMP_FIRST) as f64;
    let end = unix_of(datetime::TIMESTAMP_END) as f64;
    let beyond = |shown: f64| {
        let shown = general(shown, 0);
        QueryError::new("22008", format!("timestamp out of range: \"{shown}\""))
    };
    if !(first..end).contains(&seconds) {
        return Err(beyond(seconds));
    }
    let start = datetime::UNIX_EPOCH / SECOND;
    let micros = ((seconds + start as f64) * SECOND as f64).round_ties_even();
    let timestamp = datetime::truncated(micros);
    if !is_timestamp(timestamp) {
        return Err(beyond(seconds));
    }
    Ok(Datum::TimestampTz(timestamp))
}

/// From `start` to `end`, step by step.
fn series(
    call: &Call<'_>,
    start: i64,
    end: i64,
    step: Interval,
    next: impl Fn(i64) -> Result<i64>,
    datum: impl Fn(i64) -> Datum,
) -> Result<Vec<Datum>> {
    let length = step.length();
    if length == 0 {
        return Err(QueryError::invalid_parameter("step size cannot equal zero"));
    }
    let mut rows = Vec::new();
    let mut current = start;
    while if length > 0 {
        current <= end
    } else {
        current >= end
    } {
        if rows.len() == rows.capacity() {
            let more = rows.len().max(64);
            call.room((rows.len() + more) * size_of::<Datum>())?;
            call.environment.check_interrupted()?;
            rows.reserve_exact(more);
        }
        if rows.len() % 4096 == 4095 {
            call.environment.check_interrupted()?;
        }
        rows.push(datum(current));
        current = next(current)?;
    }
    Ok(rows)
}

fn generate_series_timestamp(call: &Call<'_>, a: &[Datum]) -> Result<Vec<Datum>> {
    let step = a[2].as_interval();
    series(
        call,
        a[0].as_timestamp(),
        a[1].as_timestamp(),
        step,
        |current| plus(current, step),
        Datum::Timestamp,
    )
}

fn generate_series_timestamptz(call: &Call<'_>, a: &[Datum]) -> Result<Vec<Datum>> {
    let step = a[2].as_interval();
    series(
        call,
        a[0].as_timestamptz(),
        a[1].as_timestamptz(),
        step,
        |current| zoned_plus(current, step, call.settings()),
        Datum::TimestampTz,
    )
}
