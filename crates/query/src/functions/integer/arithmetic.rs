//! Arithmetic, bits and order of whole numbers.

use std::cmp::Ordering;

use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};

/// Comparisons of two types, and their order as a number.
macro_rules! comparisons {
    ($left:ident $right:ident $wide:ty: $eq:ident $ne:ident $lt:ident $le:ident $gt:ident $ge:ident) => {
        comparisons!(@ $left $right $wide: $eq ==, $ne !=, $lt <, $le <=, $gt >, $ge >=);
    };
    ($left:ident $right:ident $wide:ty: $eq:ident $ne:ident $lt:ident $le:ident $gt:ident $ge:ident $cmp:ident) => {
        comparisons!($left $right $wide: $eq $ne $lt $le $gt $ge);
        pub(super) fn $cmp(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            let order = <$wide>::from(a[0].$left()).cmp(&<$wide>::from(a[1].$right()));
            Ok(Datum::Int4(number(order)))
        }
    };
    (@ $left:ident $right:ident $wide:ty: $($name:ident $sign:tt),*) => {
        $(
            pub(super) fn $name(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
                Ok(Datum::Bool(<$wide>::from(a[0].$left()) $sign <$wide>::from(a[1].$right())))
            }
        )*
    };
}

comparisons!(as_int2 as_int2 i16: int2eq int2ne int2lt int2le int2gt int2ge);
comparisons!(as_int4 as_int4 i32: int4eq int4ne int4lt int4le int4gt int4ge btint4cmp);
comparisons!(as_int8 as_int8 i64: int8eq int8ne int8lt int8le int8gt int8ge btint8cmp);
comparisons!(as_int2 as_int4 i32: int24eq int24ne int24lt int24le int24gt int24ge btint24cmp);
comparisons!(as_int4 as_int2 i32: int42eq int42ne int42lt int42le int42gt int42ge btint42cmp);
comparisons!(as_int2 as_int8 i64: int28eq int28ne int28lt int28le int28gt int28ge btint28cmp);
comparisons!(as_int8 as_int2 i64: int82eq int82ne int82lt int82le int82gt int82ge btint82cmp);
comparisons!(as_int4 as_int8 i64: int48eq int48ne int48lt int48le int48gt int48ge btint48cmp);
comparisons!(as_int8 as_int4 i64: int84eq int84ne int84lt int84le int84gt int84ge btint84cmp);

pub(super) fn btint2cmp(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    // PostgreSQL gives the difference.
    let difference = i32::from(a[0].as_int2()) - i32::from(a[1].as_int2());
    Ok(Datum::Int4(difference))
}

const fn number(order: Ordering) -> i32 {
    order as i32
}

#[cold]
fn out_of_range<T>(name: &str) -> Result<T> {
    Err(QueryError::out_of_range(name))
}

/// The four operations of two types.
macro_rules! operations {
    ($left:ident $right:ident $wide:ty, $result:ident, $name:literal: $add:ident $sub:ident $mul:ident $div:ident) => {
        operations!(@ $left $right $wide, $result, $name: $add checked_add, $sub checked_sub, $mul checked_mul);
        pub(super) fn $div(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            let (x, y) = (<$wide>::from(a[0].$left()), <$wide>::from(a[1].$right()));
            if y == 0 {
                return Err(QueryError::division_by_zero());
            }
            match x.checked_div(y) {
                Some(n) => Ok(Datum::$result(n)),
                None => out_of_range($name),
            }
        }
    };
    (@ $left:ident $right:ident $wide:ty, $result:ident, $name:literal: $($function:ident $checked:ident),*) => {
        $(
            pub(super) fn $function(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
                match <$wide>::from(a[0].$left()).$checked(<$wide>::from(a[1].$right())) {
                    Some(n) => Ok(Datum::$result(n)),
                    None => out_of_range($name),
                }
            }
        )*
    };
}

operations!(as_int2 as_int2 i16, Int2, "smallint": int2pl int2mi int2mul int2div);
operations!(as_int4 as_int4 i32, Int4, "integer": int4pl int4mi int4mul int4div);
operations!(as_int8 as_int8 i64, Int8, "bigint": int8pl int8mi int8mul int8div);
operations!(as_int2 as_int4 i32, Int4, "integer": int24pl int24mi int24mul int24div);
operations!(as_int4 as_int2 i32, Int4, "integer": int42pl int42mi int42mul int42div);
operations!(as_int2 as_int8 i64, Int8, "bigint": int28pl int28mi int28mul int28div);
operations!(as_int8 as_int2 i64, Int8, "bigint": int82pl int82mi int82mul int82div);
operations!(as_int4 as_int8 i64, Int8, "bigint": int48pl int48mi int48mul int48div);
operations!(as_int8 as_int4 i64, Int8, "bigint": int84pl int84mi int84mul int84div);

/// What one type has by itself.
macro_rules! one_type {
    ($as:ident $variant:ident $int:ty, $name:literal, $bits:literal: $modulo:ident $abs:ident $um:ident $up:ident
     $larger:ident $smaller:ident $and:ident $or:ident $xor:ident $not:ident $shl:ident $shr:ident) => {
        pub(super) fn $modulo(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            let (x, y) = (a[0].$as(), a[1].$as());
            if y == 0 {
                return Err(QueryError::division_by_zero());
            }
            Ok(Datum::$variant(x.wrapping_rem(y)))
        }
        pub(super) fn $abs(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            match a[0].$as().checked_abs() {
                Some(n) => Ok(Datum::$variant(n)),
                None => out_of_range($name),
            }
        }
        pub(super) fn $um(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            match a[0].$as().checked_neg() {
                Some(n) => Ok(Datum::$variant(n)),
                None => out_of_range($name),
            }
        }
        pub(super) fn $up(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            Ok(Datum::$variant(a[0].$as()))
        }
        pub(super) fn $larger(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            Ok(Datum::$variant(a[0].$as().max(a[1].$as())))
        }
        pub(super) fn $smaller(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            Ok(Datum::$variant(a[0].$as().min(a[1].$as())))
        }
        pub(super) fn $and(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            Ok(Datum::$variant(a[0].$as() & a[1].$as()))
        }
        pub(super) fn $or(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            Ok(Datum::$variant(a[0].$as() | a[1].$as()))
        }
        pub(super) fn $xor(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            Ok(Datum::$variant(a[0].$as() ^ a[1].$as()))
        }
        pub(super) fn $not(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            Ok(Datum::$variant(!a[0].$as()))
        }
        // The processor takes the last bits of the distance; a `smallint` is shifted as an `integer`.
        pub(super) fn $shl(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            let distance = a[1].as_int4().cast_unsigned() & ($bits - 1);
            Ok(Datum::$variant((i64::from(a[0].$as()) << distance) as $int))
        }
        pub(super) fn $shr(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            let distance = a[1].as_int4().cast_unsigned() & ($bits - 1);
            Ok(Datum::$variant((i64::from(a[0].$as()) >> distance) as $int))
        }
    };
}

one_type!(as_int2 Int2 i16, "smallint", 32: int2mod int2abs int2um int2up int2larger int2smaller int2and int2or int2xor int2not int2shl int2shr);
one_type!(as_int4 Int4 i32, "integer", 32: int4mod int4abs int4um int4up int4larger int4smaller int4and int4or int4xor int4not int4shl int4shr);
one_type!(as_int8 Int8 i64, "bigint", 64: int8mod int8abs int8um int8up int8larger int8smaller int8and int8or int8xor int8not int8shl int8shr);

pub(super) fn int4inc(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    match a[0].as_int4().checked_add(1) {
        Some(n) => Ok(Datum::Int4(n)),
        None => out_of_range("integer"),
    }
}

pub(super) fn int8inc(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    match a[0].as_int8().checked_add(1) {
        Some(n) => Ok(Datum::Int8(n)),
        None => out_of_range("bigint"),
    }
}

pub(super) fn int8dec(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    match a[0].as_int8().checked_sub(1) {
        Some(n) => Ok(Datum::Int8(n)),
        None => out_of_range("bigint"),
    }
}

/// Casts between the widths.
macro_rules! casts {
    ($($name:ident: $as:ident $variant:ident $int:ty, $type_name:literal;)*) => {
        $(
            pub(super) fn $name(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
                match <$int>::try_from(a[0].$as()) {
                    Ok(n) => Ok(Datum::$variant(n)),
                    Err(_) => out_of_range($type_name),
                }
            }
        )*
    };
}

casts! {
    i4toi2: as_int4 Int2 i16, "smallint";
    int82: as_int8 Int2 i16, "smallint";
    int84: as_int8 Int4 i32, "integer";
}

pub(super) fn i2toi4(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(a[0].as_int2().into()))
}

pub(super) fn int28(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int8(a[0].as_int2().into()))
}

pub(super) fn int48(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int8(a[0].as_int4().into()))
}

fn greatest_common_divisor(a: i64, b: i64) -> u64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn least_common_multiple(a: i64, b: i64) -> u128 {
    if a == 0 || b == 0 {
        return 0;
    }
    let parts = a.unsigned_abs() / greatest_common_divisor(a, b);
    u128::from(parts) * u128::from(b.unsigned_abs())
}

pub(super) fn int4gcd(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let divisor = greatest_common_divisor(a[0].as_int4().into(), a[1].as_int4().into());
    match i32::try_from(divisor) {
        Ok(n) => Ok(Datum::Int4(n)),
        Err(_) => out_of_range("integer"),
    }
}

pub(super) fn int8gcd(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    match i64::try_from(greatest_common_divisor(a[0].as_int8(), a[1].as_int8())) {
        Ok(n) => Ok(Datum::Int8(n)),
        Err(_) => out_of_range("bigint"),
    }
}

pub(super) fn int4lcm(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let multiple = least_common_multiple(a[0].as_int4().into(), a[1].as_int4().into());
    match i32::try_from(multiple) {
        Ok(n) => Ok(Datum::Int4(n)),
        Err(_) => out_of_range("integer"),
    }
}

pub(super) fn int8lcm(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    match i64::try_from(least_common_multiple(a[0].as_int8(), a[1].as_int8())) {
        Ok(n) => Ok(Datum::Int8(n)),
        Err(_) => out_of_range("bigint"),
    }
}

/// Whether a value lies within a distance of a base: what the frames of windows ask.
macro_rules! in_range {
    ($($name:ident: $as:ident $offset:ident;)*) => {
        $(
            pub(super) fn $name(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
                let (value, base) = (i128::from(a[0].$as()), i128::from(a[1].$as()));
                let offset = i128::from(a[2].$offset());
                if offset < 0 {
                    return Err(QueryError::new(
                        "22013",
                        "invalid preceding or following size in window function",
                    ));
                }
                let bound = if a[3].as_bool() { base - offset } else { base + offset };
                Ok(Datum::Bool(if a[4].as_bool() { value <= bound } else { value >= bound }))
            }
        )*
    };
}

in_range! {
    in_range_int2_int2: as_int2 as_int2;
    in_range_int2_int4: as_int2 as_int4;
    in_range_int2_int8: as_int2 as_int8;
    in_range_int4_int2: as_int4 as_int2;
    in_range_int4_int4: as_int4 as_int4;
    in_range_int4_int8: as_int4 as_int8;
    in_range_int8_int8: as_int8 as_int8;
}
