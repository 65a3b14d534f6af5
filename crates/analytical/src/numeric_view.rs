//! Short numerics as views of an Arrow column: `serial`'s bytes of one stand within a view itself.

use thermocline_query::serial::{SHORT_NUMERIC_BYTES, short_numeric};

/// What a view of a short numeric has in its lowest 48 bits: the length, then the tags.
const HEAD: u64 = {
    let [tag, form, ..] = short_numeric(0, 0);
    SHORT_NUMERIC_BYTES as u64 | (tag as u64) << 32 | (form as u64) << 40
};
const HEAD_BITS: u32 = 48;

/// The view of the numeric `unscaled` / 10^`scale`.
#[must_use]
#[inline]
pub const fn short_numeric_view(unscaled: i64, scale: u16) -> u128 {
    HEAD as u128
        | ((unscaled as u64) as u128) << HEAD_BITS
        | (scale as u128) << (HEAD_BITS + u64::BITS)
}

/// The unscaled number and the scale of a short numeric, from its view.
#[must_use]
#[inline]
pub const fn read_short_numeric_view(view: u128) -> Option<(i64, u16)> {
    if view as u64 & ((1 << HEAD_BITS) - 1) != HEAD {
        return None;
    }
    Some((
        (view >> HEAD_BITS) as i64,
        (view >> (HEAD_BITS + u64::BITS)) as u16,
    ))
}
