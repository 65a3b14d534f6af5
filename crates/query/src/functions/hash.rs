//! PostgreSQL's hashes of values (`hashtext`), which applications take locks by.

use thermocline_values::hash;

use super::Function;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::Result;
use crate::types::ids;

/// The functions of this file.
pub(super) static FUNCTIONS: &[Function] = &[
    Function::row(400, "hashtext", &[ids::TEXT], ids::INT4, short),
    Function::row(
        448,
        "hashtextextended",
        &[ids::TEXT, ids::INT8],
        ids::INT8,
        extended,
    ),
    Function::row(455, "hashname", &[ids::NAME], ids::INT4, short),
    Function::row(449, "hashint2", &[ids::INT2], ids::INT4, short),
    Function::row(450, "hashint4", &[ids::INT4], ids::INT4, short),
    Function::row(
        425,
        "hashint4extended",
        &[ids::INT4, ids::INT8],
        ids::INT8,
        extended,
    ),
    Function::row(949, "hashint8", &[ids::INT8], ids::INT4, short),
    Function::row(
        442,
        "hashint8extended",
        &[ids::INT8, ids::INT8],
        ids::INT8,
        extended,
    ),
];

fn of(value: &Datum, seed: u64) -> u64 {
    match value {
        Datum::Int2(value) => hash::word(seed, i32::from(*value).cast_unsigned()),
        Datum::Int4(value) => hash::word(seed, value.cast_unsigned()),
        Datum::Int8(value) => hash::long(seed, *value),
        Datum::Text(text) => hash::bytes(seed, text.as_bytes()),
        // None of the types above has others.
        _ => hash::bytes(seed, &[]),
    }
}

fn short(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4((of(&a[0], 0) as u32).cast_signed()))
}

fn extended(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let seed = match a[1] {
        Datum::Int8(seed) => seed.cast_unsigned(),
        _ => 0,
    };
    Ok(Datum::Int8(of(&a[0], seed).cast_signed()))
}
