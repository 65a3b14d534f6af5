//! Functions and operators of `time` and `timetz`.

use super::Function;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::datetime::{DAY, MINUTE, SECOND, is_finite, zone};
use crate::types::ids;
use crate::types::interval::Interval;
use crate::types::time::{TimeTz, fields_of, rounded};
use crate::types::timestamp::{fields, local_fields, time_of_timestamptz, timetz_of_timestamptz};

/// The functions of this file.
pub(super) static FUNCTIONS: &[Function] = &[
    Function::row(1370, "interval", &[ids::TIME], ids::INTERVAL, time_interval),
    Function::row(
        1848,
        "interval_pl_time",
        &[ids::INTERVAL, ids::TIME],
        ids::TIME,
        interval_pl_time,
    ),
    Function::row(
        2547,
        "interval_pl_timetz",
        &[ids::INTERVAL, ids::TIMETZ],
        ids::TIMETZ,
        interval_pl_timetz,
    ),
    Function::row(
        3847,
        "make_time",
        &[ids::INT4, ids::INT4, ids::FLOAT8],
        ids::TIME,
        make_time,
    )
    .named(&["hour", "min", "sec"]),
    Function::row(1316, "time", &[ids::TIMESTAMP], ids::TIME, timestamp_time),
    Function::row(1419, "time", &[ids::INTERVAL], ids::TIME, interval_time),
    Function::row(1968, "time", &[ids::TIME, ids::INT4], ids::TIME, time_scale),
    Function::row(
        2019,
        "time",
        &[ids::TIMESTAMPTZ],
        ids::TIME,
        timestamptz_time,
    )
    .stable(),
    Function::row(2046, "time", &[ids::TIMETZ], ids::TIME, timetz_time),
    Function::row(
        1748,
        "time_mi_interval",
        &[ids::TIME, ids::INTERVAL],
        ids::TIME,
        time_mi_interval,
    ),
    Function::row(
        1690,
        "time_mi_time",
        &[ids::TIME, ids::TIME],
        ids::INTERVAL,
        time_mi_time,
    ),
    Function::row(
        1747,
        "time_pl_interval",
        &[ids::TIME, ids::INTERVAL],
        ids::TIME,
        time_pl_interval,
    ),
    Function::row(
        1296,
        "timedate_pl",
        &[ids::TIME, ids::DATE],
        ids::TIMESTAMP,
        timedate_pl,
    ),
    Function::row(
        1388,
        "timetz",
        &[ids::TIMESTAMPTZ],
        ids::TIMETZ,
        timestamptz_timetz,
    )
    .stable(),
    Function::row(
        1969,
        "timetz",
        &[ids::TIMETZ, ids::INT4],
        ids::TIMETZ,
        timetz_scale,
    ),
    Function::row(2047, "timetz", &[ids::TIME], ids::TIMETZ, time_timetz).stable(),
    Function::row(
        1750,
        "timetz_mi_interval",
        &[ids::TIMETZ, ids::INTERVAL],
        ids::TIMETZ,
        timetz_mi_interval,
    ),
    Function::row(
        1749,
        "timetz_pl_interval",
        &[ids::TIMETZ, ids::INTERVAL],
        ids::TIMETZ,
        timetz_pl_interval,
    ),
    Function::row(
        1298,
        "timetzdate_pl",
        &[ids::TIMETZ, ids::DATE],
        ids::TIMESTAMPTZ,
        timetzdate_pl,
    ),
];

/// A time of day moved around the clock.
pub(super) fn on_clock(time: i64, micros: i64) -> i64 {
    time.wrapping_add(micros).rem_euclid(DAY)
}

fn interval(micros: i64) -> Datum {
    Datum::Interval(Interval {
        micros,
        ..Interval::default()
    })
}

fn time_interval(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(interval(a[0].as_time()))
}

fn interval_time(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Time(on_clock(0, a[0].as_interval().micros)))
}

fn time_mi_time(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(interval(a[0].as_time().wrapping_sub(a[1].as_time())))
}

fn time_pl_interval(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let micros = a[1].as_interval().micros;
    Ok(Datum::Time(on_clock(a[0].as_time(), micros)))
}

fn interval_pl_time(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let micros = a[0].as_interval().micros;
    Ok(Datum::Time(on_clock(a[1].as_time(), micros)))
}

fn time_mi_interval(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let micros = a[1].as_interval().micros.wrapping_neg();
    Ok(Datum::Time(on_clock(a[0].as_time(), micros)))
}

fn zoned_on_clock(time: TimeTz, micros: i64) -> Datum {
    Datum::TimeTz(TimeTz {
        micros: on_clock(time.micros, micros),
        zone: time.zone,
    })
}

fn timetz_pl_interval(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let micros = a[1].as_interval().micros;
    Ok(zoned_on_clock(a[0].as_timetz(), micros))
}

fn interval_pl_timetz(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let micros = a[0].as_interval().micros;
    Ok(zoned_on_clock(a[1].as_timetz(), micros))
}

fn timetz_mi_interval(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let micros = a[1].as_interval().micros.wrapping_neg();
    Ok(zoned_on_clock(a[0].as_timetz(), micros))
}

fn time_scale(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Time(rounded(a[0].as_time(), a[1].as_int4())))
}

fn timetz_scale(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let TimeTz { micros, zone } = a[0].as_timetz();
    let micros = rounded(micros, a[1].as_int4());
    Ok(Datum::TimeTz(TimeTz { micros, zone }))
}

fn timestamp_time(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let timestamp = a[0].as_timestamp();
    if !is_finite(timestamp) {
        return Ok(Datum::Null);
    }
    Ok(Datum::Time(fields(timestamp)?.day_micros()))
}

fn timestamptz_time(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let timestamp = a[0].as_timestamptz();
    if !is_finite(timestamp) {
        return Ok(Datum::Null);
    }
    time_of_timestamptz(timestamp, call.settings()).map(Datum::Time)
}

fn timestamptz_timetz(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let timestamp = a[0].as_timestamptz();
    if !is_finite(timestamp) {
        return Ok(Datum::Null);
    }
    timetz_of_timestamptz(timestamp, call.settings()).map(Datum::TimeTz)
}

fn timetz_time(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Time(a[0].as_timetz().micros))
}

/// In the session's zone, as today.
fn time_timetz(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let micros = a[0].as_time();
    let settings = call.settings();
    let (mut fields, _) = local_fields(call.environment.transaction_time(), settings)?;
    let time = fields_of(micros);
    (fields.hour, fields.minute, fields.second) = (time.hour, time.minute, time.second);
    Ok(Datum::TimeTz(TimeTz {
        micros,
        zone: zone::local_west(&settings.time_zone, &fields),
    }))
}

fn timedate_pl(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    super::date::with_time(a[1].as_date(), a[0].as_time()).map(Datum::Timestamp)
}

fn timetzdate_pl(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    super::date::datetimetz_timestamptz(call, &[a[1].clone(), a[0].clone()])
}

/// The time of day of numbers.
pub(super) fn made(hour: i32, minute: i32, second: f64) -> Result<i64> {
    let micros = (second * SECOND as f64).round_ties_even();
    let total = (i64::from(hour) * 60 + i64::from(minute)) * MINUTE;
    let fits = (0..=24).contains(&hour)
        && (0..60).contains(&minute)
        && (0.0..=60e6).contains(&micros)
        && total + micros as i64 <= DAY;
    if !fits {
        let minute = super::date::padded(minute);
        let second = general(second, 2);
        return Err(QueryError::new(
            "22008",
            format!("time field value out of range: {hour}:{minute}:{second}"),
        ));
    }
    Ok(total + micros as i64)
}

fn make_time(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    made(a[0].as_int4(), a[1].as_int4(), a[2].as_float8()).map(Datum::Time)
}

/// A number as C's `%g`, with zeros before it to a width.
pub(super) fn general(number: f64, width: usize) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number < 0.0 {
            "-Infinity"
        } else {
            "Infinity"
        }
        .to_owned();
    }
    let scientific = format!("{number:.5e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| {
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text.to_owned()
        }
    };
    let shown = if (-4..6).contains(&exponent) {
        let places = usize::try_from(5 - exponent).unwrap_or(0);
        trimmed(&format!("{number:.places$}"))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", trimmed(digits), exponent.unsigned_abs())
    };
    let (sign, digits) = match shown.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", shown.as_str()),
    };
    let width = width.saturating_sub(sign.len());
    format!("{sign}{digits:0>width$}")
}

#[cfg(test)]
mod tests {
    use super::general;

    #[test]
    fn numbers_in_general_form() {
        let shown: Vec<_> = [0.0, 1.5, -1.7, 61.0, 1e10, 1.0e-5, 100_000.0, 1_000_000.0]
            .iter()
            .map(|number| general(*number, 2))
            .collect();
        let wanted = [
            "00", "1.5", "-1.7", "61", "1e+10", "1e-05", "100000", "1e+06",
        ];
        assert_eq!(shown, wanted);
    }
}
