//! Casts between numbers, between texts, between dates and moments.

use thermocline_query::functions::Function;
use thermocline_query::types::ids;
use thermocline_query::types::numeric::Numeric;
use thermocline_query::types::timestamp::{date_of_timestamp, timestamp_of_date};

use super::integer::within;
use super::{Arguments, Kernel, decimal};
use crate::columnar::output::without_padding;
use crate::columnar::vector::Data;

/// The kernel of a function that casts.
pub fn of(function: &Function) -> Option<Kernel> {
    let [from] = function.arguments else {
        return None;
    };
    Some(match (*from, function.name, function.result) {
        (ids::INT2 | ids::INT4 | ids::INT8, "int2", ids::INT2) => whole::<16>,
        (ids::INT2 | ids::INT4 | ids::INT8, "int4", ids::INT4) => whole::<32>,
        (ids::INT2 | ids::INT4 | ids::INT8, "int8", ids::INT8) => whole::<64>,
        (ids::INT2 | ids::INT4 | ids::INT8, "numeric", ids::NUMERIC) => numeric_of_whole,
        (ids::INT2 | ids::INT4 | ids::INT8, "float8", ids::FLOAT8) => double_of_whole,
        (ids::INT2 | ids::INT4 | ids::INT8, "float4", ids::FLOAT4) => single_of_whole,
        (ids::FLOAT4, "float8", ids::FLOAT8) => same,
        (ids::FLOAT8, "float4", ids::FLOAT4) => single_of_double,
        (ids::FLOAT4 | ids::FLOAT8, "int2", ids::INT2) => whole_of_double::<16>,
        (ids::FLOAT4 | ids::FLOAT8, "int4", ids::INT4) => whole_of_double::<32>,
        (ids::FLOAT4 | ids::FLOAT8, "int8", ids::INT8) => whole_of_double::<64>,
        (ids::FLOAT8, "numeric", ids::NUMERIC) => numeric_of_double,
        (ids::FLOAT4, "numeric", ids::NUMERIC) => numeric_of_single,
        (ids::NUMERIC, "int2", ids::INT2) => whole_of_numeric::<16>,
        (ids::NUMERIC, "int4", ids::INT4) => whole_of_numeric::<32>,
        (ids::NUMERIC, "int8", ids::INT8) => whole_of_numeric::<64>,
        (ids::NUMERIC, "float8", ids::FLOAT8) => double_of_numeric,
        (ids::BPCHAR, "text", ids::TEXT) => without_blanks,
        (ids::NAME, "text", ids::TEXT)
        | (ids::NAME, "varchar", ids::VARCHAR)
        | (ids::NAME, "bpchar", ids::BPCHAR) => same,
        (ids::DATE, "timestamp", ids::TIMESTAMP) => timestamp,
        (ids::TIMESTAMP, "date", ids::DATE) => date,
        _ => return None,
    })
}

fn same<'a>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    Some(arguments.vectors.first()?.data.clone())
}

fn whole<'a, const BITS: u32>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let numbers = arguments.map(arguments.ints(0)?, within::<BITS>)?;
    Some(Data::Int(numbers.into()))
}

fn numeric_of_whole<'a>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let digits = arguments.map(arguments.ints(0)?, |n| Some(i128::from(n)))?;
    Some(decimal::at(digits, 0))
}

fn double_of_whole<'a>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let numbers = arguments.map(arguments.ints(0)?, |n| Some(n as f64))?;
    Some(Data::Float(numbers.into()))
}

fn single_of_whole<'a>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let numbers = arguments.map(arguments.ints(0)?, |n| Some(f64::from(n as f32)))?;
    Some(Data::Float(numbers.into()))
}

fn single_of_double<'a>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let numbers = arguments.map(arguments.floats(0)?, |wide| {
        let n = wide as f32;
        (n.is_finite() && (n != 0.0 || wide == 0.0)).then_some(f64::from(n))
    })?;
    Some(Data::Float(numbers.into()))
}

fn whole_of_double<'a, const BITS: u32>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    // Beyond 64 bits lies what is far from fitting, and what does not is none.
    let bound = 2.0_f64.powi(63);
    let numbers = arguments.map(arguments.floats(0)?, |n| {
        let n = n.round_ties_even();
        (n >= -bound && n < bound)
            .then_some(n as i64)
            .and_then(within::<BITS>)
    })?;
    Some(Data::Int(numbers.into()))
}

fn numeric_of_double<'a>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let parts = arguments.map(arguments.floats(0)?, |n| Numeric::from_f64(n).to_parts())?;
    Some(decimal::collected(parts))
}

fn numeric_of_single<'a>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let parts = arguments.map(arguments.floats(0)?, |n| {
        Numeric::from_f32(n as f32).to_parts()
    })?;
    Some(decimal::collected(parts))
}

/// Something of each number.
fn of_numeric<T: Default>(
    arguments: &Arguments<'_, '_>,
    f: impl Fn(&Numeric) -> Option<T>,
) -> Option<Vec<T>> {
    let (_, numbers) = arguments.numerics(0)?;
    let vector = arguments.vectors.first()?;
    (0..arguments.count)
        .map(|row| {
            let (n, scale) = numbers.get(vector.place(row));
            match f(&Numeric::from_parts(n, scale)) {
                None if !arguments.is_valid(row) => Some(T::default()),
                value => value,
            }
        })
        .collect()
}

fn whole_of_numeric<'a, const BITS: u32>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let numbers = of_numeric(arguments, |n| within::<BITS>(n.to_i64()?))?;
    Some(Data::Int(numbers.into()))
}

fn double_of_numeric<'a>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let numbers = of_numeric(arguments, |number| {
        let n = number.to_f64();
        (n.is_finite() && (n != 0.0 || number.is_zero())).then_some(n)
    })?;
    Some(Data::Float(numbers.into()))
}

fn without_blanks<'a>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let (texts, _) = arguments.texts(0)?;
    let kept = texts.parts(arguments.count, |_, text| (0, without_padding(text).len()));
    Some(Data::Text(kept))
}

fn timestamp<'a>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let moments = arguments.map(arguments.ints(0)?, |date| {
        timestamp_of_date(date as i32).ok()
    })?;
    Some(Data::Int(moments.into()))
}

fn date<'a>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let dates = arguments.map(arguments.ints(0)?, |moment| {
        date_of_timestamp(moment).ok().map(i64::from)
    })?;
    Some(Data::Int(dates.into()))
}
