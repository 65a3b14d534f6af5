//! Functions that give rows: `generate_series`, `unnest`.

use super::{Body, Function};
use crate::call::{Call, SMALL_VALUE_BYTES};
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::numeric::Numeric;
use crate::types::{self, ids};

/// The functions of this file.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    Function::set(1066, "generate_series", &[ids::INT4, ids::INT4, ids::INT4], ids::INT4, generate_series_step_int4),
    Function::set(1067, "generate_series", &[ids::INT4, ids::INT4], ids::INT4, generate_series_int4),
    Function::set(1068, "generate_series", &[ids::INT8, ids::INT8, ids::INT8], ids::INT8, generate_series_step_int8),
    Function::set(1069, "generate_series", &[ids::INT8, ids::INT8], ids::INT8, generate_series_int8),
    Function::set(3259, "generate_series", &[ids::NUMERIC, ids::NUMERIC, ids::NUMERIC], ids::NUMERIC, generate_series_step_numeric),
    Function::set(3260, "generate_series", &[ids::NUMERIC, ids::NUMERIC], ids::NUMERIC, generate_series_numeric),
    Function::set(1191, "generate_subscripts", &[ids::ANYARRAY, ids::INT4, ids::BOOL], ids::INT4, generate_subscripts),
    Function::set(1192, "generate_subscripts", &[ids::ANYARRAY, ids::INT4], ids::INT4, generate_subscripts_nodir),
    Function::set(2331, "unnest", &[ids::ANYARRAY], ids::ANYELEMENT, array_unnest),
];

/// `numeric_add`, which another family computes.
const NUMERIC_ADD: u32 = 1724;

/// Rows that are asked for room as they grow.
struct Rows<'a> {
    call: &'a Call<'a>,
    rows: Vec<Datum>,
    /// For how many rows there is room.
    room: usize,
}

impl<'a> Rows<'a> {
    const fn new(call: &'a Call<'a>) -> Self {
        Self {
            call,
            rows: Vec::new(),
            room: SMALL_VALUE_BYTES / size_of::<Datum>(),
        }
    }

    /// Asks for room for this many rows.
    fn reserve(&mut self, rows: usize) -> Result<()> {
        if rows > self.room {
            let bytes = rows.saturating_mul(size_of::<Datum>());
            self.call.environment.room(bytes)?;
            self.room = rows;
        }
        let more = rows.saturating_sub(self.rows.len());
        self.rows
            .try_reserve(more)
            .map_err(|_| QueryError::new("53200", "out of memory"))
    }

    fn push(&mut self, row: Datum) -> Result<()> {
        let count = self.rows.len();
        if count >= self.room {
            self.reserve(count.saturating_mul(2))?;
        }
        if count % 4096 == 4095 {
            self.call.environment.check_interrupted()?;
        }
        self.rows.push(row);
        Ok(())
    }
}

#[cold]
fn zero_step() -> QueryError {
    QueryError::invalid_parameter("step size cannot equal zero")
}

/// All numbers from `start` to `stop`.
fn integers(
    call: &Call<'_>,
    start: i64,
    stop: i64,
    step: i64,
    datum: impl Fn(i64) -> Datum,
) -> Result<Vec<Datum>> {
    if step == 0 {
        return Err(zero_step());
    }
    let steps = (i128::from(stop) - i128::from(start)) / i128::from(step);
    let forward = if step > 0 {
        start <= stop
    } else {
        start >= stop
    };
    if !forward {
        return Ok(Vec::new());
    }
    let mut rows = Rows::new(call);
    rows.reserve(usize::try_from(steps).map_or(usize::MAX, |steps| steps.saturating_add(1)))?;
    let mut value = start;
    loop {
        rows.push(datum(value))?;
        match value.checked_add(step) {
            Some(next) if (step > 0 && next <= stop) || (step < 0 && next >= stop) => value = next,
            _ => return Ok(rows.rows),
        }
    }
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "between two numbers of four bytes"
)]
fn series_int4(call: &Call<'_>, start: i32, stop: i32, step: i32) -> Result<Vec<Datum>> {
    integers(call, start.into(), stop.into(), step.into(), |value| {
        Datum::Int4(value as i32)
    })
}

fn generate_series_int4(call: &Call<'_>, arguments: &[Datum]) -> Result<Vec<Datum>> {
    series_int4(call, arguments[0].as_int4(), arguments[1].as_int4(), 1)
}

fn generate_series_step_int4(call: &Call<'_>, arguments: &[Datum]) -> Result<Vec<Datum>> {
    series_int4(
        call,
        arguments[0].as_int4(),
        arguments[1].as_int4(),
        arguments[2].as_int4(),
    )
}

fn generate_series_int8(call: &Call<'_>, arguments: &[Datum]) -> Result<Vec<Datum>> {
    integers(
        call,
        arguments[0].as_int8(),
        arguments[1].as_int8(),
        1,
        Datum::Int8,
    )
}

fn generate_series_step_int8(call: &Call<'_>, arguments: &[Datum]) -> Result<Vec<Datum>> {
    integers(
        call,
        arguments[0].as_int8(),
        arguments[1].as_int8(),
        arguments[2].as_int8(),
        Datum::Int8,
    )
}

/// Refuses what no series can reach.
fn check_finite(value: &Datum, what: &str) -> Result<()> {
    let reason = match value.as_numeric() {
        Numeric::NaN => "NaN",
        Numeric::Infinity | Numeric::NegativeInfinity => "infinity",
        _ => return Ok(()),
    };
    Err(QueryError::invalid_parameter(format!(
        "{what} cannot be {reason}"
    )))
}

fn series_numeric(
    call: &Call<'_>,
    start: &Datum,
    stop: &Datum,
    step: &Datum,
) -> Result<Vec<Datum>> {
    check_finite(start, "start value")?;
    check_finite(stop, "stop value")?;
    check_finite(step, "step size")?;
    let zero = types::input(call, ids::NUMERIC, "0", -1)?;
    let direction = types::compare(ids::NUMERIC, step, &zero)?;
    if direction.is_eq() {
        return Err(zero_step());
    }
    let Some(Body::Row(add)) = super::by_oid(NUMERIC_ADD).map(|function| function.body) else {
        return Err(QueryError::internal("there is no addition of numeric"));
    };
    let adding = Call::new(
        call.environment,
        &[ids::NUMERIC, ids::NUMERIC],
        ids::NUMERIC,
    );
    let mut rows = Rows::new(call);
    let mut value = start.clone();
    while types::compare(ids::NUMERIC, &value, stop)? != direction {
        let next = add(&adding, &[value.clone(), step.clone()])?;
        rows.push(value)?;
        value = next;
    }
    Ok(rows.rows)
}

fn generate_series_numeric(call: &Call<'_>, arguments: &[Datum]) -> Result<Vec<Datum>> {
    let one = types::input(call, ids::NUMERIC, "1", -1)?;
    series_numeric(call, &arguments[0], &arguments[1], &one)
}

fn generate_series_step_numeric(call: &Call<'_>, arguments: &[Datum]) -> Result<Vec<Datum>> {
    series_numeric(call, &arguments[0], &arguments[1], &arguments[2])
}

fn subscripts(call: &Call<'_>, arguments: &[Datum], reverse: bool) -> Result<Vec<Datum>> {
    let Some((length, lower)) = super::array::dimension(&arguments[0], &arguments[1]) else {
        return Ok(Vec::new());
    };
    let upper = lower.wrapping_add(length).wrapping_sub(1);
    if reverse {
        series_int4(call, upper, lower, -1)
    } else {
        series_int4(call, lower, upper, 1)
    }
}

fn generate_subscripts_nodir(call: &Call<'_>, arguments: &[Datum]) -> Result<Vec<Datum>> {
    subscripts(call, arguments, false)
}

fn generate_subscripts(call: &Call<'_>, arguments: &[Datum]) -> Result<Vec<Datum>> {
    subscripts(call, arguments, arguments[2].as_bool())
}

fn array_unnest(call: &Call<'_>, arguments: &[Datum]) -> Result<Vec<Datum>> {
    let array = arguments[0].as_array();
    let mut rows = Rows::new(call);
    rows.reserve(array.elements.len())?;
    rows.rows.extend_from_slice(&array.elements);
    Ok(rows.rows)
}
