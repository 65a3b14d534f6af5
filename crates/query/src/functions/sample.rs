//! What decides which rows TABLESAMPLE keeps: chance, by a hash of the row's number and a seed. So
//! the same seed keeps the same rows, as long as nothing changes them.

use super::Function;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::ids;

/// Row by row (BERNOULLI). PostgreSQL has no such function; the number is no other's.
pub(crate) const BY_ROWS: u32 = 15_891;
/// Neighbours together (SYSTEM).
pub(crate) const BY_GROUPS: u32 = 15_892;
/// So many rows, of following numbers, are kept or left together: 2 to this power.
const GROUP_BITS: u32 = 6;

/// The functions of this file: a row's number, the share in percent, the seed.
pub(super) static FUNCTIONS: &[Function] = &[
    Function::row(
        BY_ROWS,
        "bernoulli",
        &[ids::INT8, ids::FLOAT4, ids::FLOAT8],
        ids::BOOL,
        |_: &Call<'_>, a| is_kept(a, 0),
    )
    .called_on_null(),
    Function::row(
        BY_GROUPS,
        "system",
        &[ids::INT8, ids::FLOAT4, ids::FLOAT8],
        ids::BOOL,
        |_: &Call<'_>, a| is_kept(a, GROUP_BITS),
    )
    .called_on_null(),
];

fn is_kept(a: &[Datum], bits: u32) -> Result<Datum> {
    if a[1].is_null() {
        let message = "TABLESAMPLE parameter cannot be null";
        return Err(QueryError::new("2202H", message));
    }
    if a[2].is_null() {
        let message = "TABLESAMPLE REPEATABLE parameter cannot be null";
        return Err(QueryError::new("2202G", message));
    }
    let percent = f64::from(a[1].as_float4());
    if !(0.0..=100.0).contains(&percent) {
        let message = "sample percentage must be between 0 and 100";
        return Err(QueryError::new("2202H", message));
    }
    // A call by name can give this; a row of a table has a number.
    if a[0].is_null() {
        return Ok(Datum::Null);
    }
    let number = a[0].as_int8().cast_unsigned() >> bits;
    let hash = mixed(number ^ mixed(a[2].as_float8().to_bits()));
    // The upper 53 bits are a number from 0 to 1, without 1.
    let chance = (hash >> 11) as f64 / (1_u64 << 53) as f64;
    Ok(Datum::Bool(chance * 100.0 < percent))
}

/// A number of which each bit depends on all bits of another (the end of splitmix64).
const fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_without_a_number_is_neither_kept_nor_left() {
        let arguments = [Datum::Null, Datum::Float4(1.0), Datum::Float8(1.0)];
        for bits in [0, GROUP_BITS] {
            assert!(is_kept(&arguments, bits).expect("is an answer").is_null());
        }
    }
}
