//! Arithmetic, order and casts of floating numbers.

use std::cmp::Ordering;

use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::float::compare_f64;

#[cold]
pub(super) fn overflow() -> QueryError {
    QueryError::new("22003", "value out of range: overflow")
}

#[cold]
pub(super) fn underflow() -> QueryError {
    QueryError::new("22003", "value out of range: underflow")
}

/// The four operations of a width, with PostgreSQL's errors.
macro_rules! checked {
    ($module:ident $float:ty) => {
        pub(super) mod $module {
            use super::{QueryError, Result, overflow, underflow};

            #[inline]
            pub(in super::super) fn add(a: $float, b: $float) -> Result<$float> {
                let n = a + b;
                if n.is_infinite() && !a.is_infinite() && !b.is_infinite() {
                    return Err(overflow());
                }
                Ok(n)
            }

            #[inline]
            pub(in super::super) fn subtract(a: $float, b: $float) -> Result<$float> {
                let n = a - b;
                if n.is_infinite() && !a.is_infinite() && !b.is_infinite() {
                    return Err(overflow());
                }
                Ok(n)
            }

            #[inline]
            pub(in super::super) fn multiply(a: $float, b: $float) -> Result<$float> {
                let n = a * b;
                if n.is_infinite() && !a.is_infinite() && !b.is_infinite() {
                    return Err(overflow());
                }
                if n == 0.0 && a != 0.0 && b != 0.0 {
                    return Err(underflow());
                }
                Ok(n)
            }

            #[inline]
            pub(in super::super) fn divide(a: $float, b: $float) -> Result<$float> {
                if b == 0.0 && !a.is_nan() {
                    return Err(QueryError::division_by_zero());
                }
                let n = a / b;
                if n.is_infinite() && !a.is_infinite() {
                    return Err(overflow());
                }
                if n == 0.0 && a != 0.0 && !b.is_infinite() {
                    return Err(underflow());
                }
                Ok(n)
            }
        }
    };
}

checked!(single f32);
checked!(double f64);

macro_rules! operations {
    ($left:ident $right:ident $module:ident $float:ty, $result:ident: $add:ident $sub:ident $mul:ident $div:ident) => {
        operations!(@ $left $right $module $float, $result: $add add, $sub subtract, $mul multiply, $div divide);
    };
    (@ $left:ident $right:ident $module:ident $float:ty, $result:ident: $($name:ident $operation:ident),*) => {
        $(
            pub(super) fn $name(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
                $module::$operation(<$float>::from(a[0].$left()), <$float>::from(a[1].$right())).map(Datum::$result)
            }
        )*
    };
}

operations!(as_float4 as_float4 single f32, Float4: float4pl float4mi float4mul float4div);
operations!(as_float8 as_float8 double f64, Float8: float8pl float8mi float8mul float8div);
operations!(as_float4 as_float8 double f64, Float8: float48pl float48mi float48mul float48div);
operations!(as_float8 as_float4 double f64, Float8: float84pl float84mi float84mul float84div);

macro_rules! comparisons {
    ($left:ident $right:ident: $eq:ident $ne:ident $lt:ident $le:ident $gt:ident $ge:ident $cmp:ident) => {
        comparisons!(@ $left $right: $eq is_eq, $ne is_ne, $lt is_lt, $le is_le, $gt is_gt, $ge is_ge);
        pub(super) fn $cmp(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            let order = compare_f64(a[0].$left().into(), a[1].$right().into());
            Ok(Datum::Int4(order as i32))
        }
    };
    (@ $left:ident $right:ident: $($name:ident $test:ident),*) => {
        $(
            pub(super) fn $name(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
                Ok(Datum::Bool(compare_f64(a[0].$left().into(), a[1].$right().into()).$test()))
            }
        )*
    };
}

comparisons!(as_float4 as_float4: float4eq float4ne float4lt float4le float4gt float4ge btfloat4cmp);
comparisons!(as_float8 as_float8: float8eq float8ne float8lt float8le float8gt float8ge btfloat8cmp);
comparisons!(as_float4 as_float8: float48eq float48ne float48lt float48le float48gt float48ge btfloat48cmp);
comparisons!(as_float8 as_float4: float84eq float84ne float84lt float84le float84gt float84ge btfloat84cmp);

macro_rules! one_width {
    ($as:ident $variant:ident: $abs:ident $um:ident $up:ident $larger:ident $smaller:ident) => {
        pub(super) fn $abs(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            Ok(Datum::$variant(a[0].$as().abs()))
        }
        pub(super) fn $um(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            Ok(Datum::$variant(-a[0].$as()))
        }
        pub(super) fn $up(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            Ok(Datum::$variant(a[0].$as()))
        }
        pub(super) fn $larger(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            let (x, y) = (a[0].$as(), a[1].$as());
            let greater = compare_f64(x.into(), y.into()) == Ordering::Greater;
            Ok(Datum::$variant(if greater { x } else { y }))
        }
        pub(super) fn $smaller(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            let (x, y) = (a[0].$as(), a[1].$as());
            let less = compare_f64(x.into(), y.into()) == Ordering::Less;
            Ok(Datum::$variant(if less { x } else { y }))
        }
    };
}

one_width!(as_float4 Float4: float4abs float4um float4up float4larger float4smaller);
one_width!(as_float8 Float8: float8abs float8um float8up float8larger float8smaller);

/// Casts to whole numbers: a half goes to the even side, and the bounds are checked after that.
macro_rules! to_whole {
    ($($name:ident: $as:ident $variant:ident $int:ty, $type_name:literal;)*) => {
        $(
            pub(super) fn $name(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
                let n = f64::from(a[0].$as()).round_ties_even();
                let least = <$int>::MIN as f64;
                if n >= least && n < -least {
                    Ok(Datum::$variant(n as $int))
                } else {
                    Err(QueryError::out_of_range($type_name))
                }
            }
        )*
    };
}

to_whole! {
    dtoi2: as_float8 Int2 i16, "smallint";
    dtoi4: as_float8 Int4 i32, "integer";
    dtoi8: as_float8 Int8 i64, "bigint";
    ftoi2: as_float4 Int2 i16, "smallint";
    ftoi4: as_float4 Int4 i32, "integer";
    ftoi8: as_float4 Int8 i64, "bigint";
}

macro_rules! of_whole {
    ($($name:ident: $as:ident $variant:ident $float:ty;)*) => {
        $(
            pub(super) fn $name(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
                Ok(Datum::$variant(a[0].$as() as $float))
            }
        )*
    };
}

of_whole! {
    i2tod: as_int2 Float8 f64;
    i4tod: as_int4 Float8 f64;
    i8tod: as_int8 Float8 f64;
    i2tof: as_int2 Float4 f32;
    i4tof: as_int4 Float4 f32;
    i8tof: as_int8 Float4 f32;
}

pub(super) fn ftod(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Float8(a[0].as_float4().into()))
}

pub(super) fn dtof(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let wide = a[0].as_float8();
    let n = wide as f32;
    if n.is_infinite() && !wide.is_infinite() {
        return Err(overflow());
    }
    if n == 0.0 && wide != 0.0 {
        return Err(underflow());
    }
    Ok(Datum::Float4(n))
}

/// Whether a value lies within a distance of a base: what the frames of windows ask.
fn in_range(value: f64, base: f64, offset: f64, a: &[Datum]) -> Result<Datum> {
    let (below, less) = (a[3].as_bool(), a[4].as_bool());
    if offset.is_nan() || offset < 0.0 {
        return Err(QueryError::new(
            "22013",
            "invalid preceding or following size in window function",
        ));
    }
    // What is not a number is in the range of its like alone.
    if value.is_nan() {
        return Ok(Datum::Bool(base.is_nan() || !less));
    }
    if base.is_nan() {
        return Ok(Datum::Bool(less));
    }
    // An infinity less itself is near all.
    if offset.is_infinite() && base.is_infinite() && (base > 0.0) == below {
        return Ok(Datum::Bool(true));
    }
    let bound = if below { base - offset } else { base + offset };
    Ok(Datum::Bool(if less {
        value <= bound
    } else {
        value >= bound
    }))
}

pub(super) fn in_range_float8_float8(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    in_range(a[0].as_float8(), a[1].as_float8(), a[2].as_float8(), a)
}

pub(super) fn in_range_float4_float8(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    in_range(
        a[0].as_float4().into(),
        a[1].as_float4().into(),
        a[2].as_float8(),
        a,
    )
}
