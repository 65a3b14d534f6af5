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

/// The scale that all of these views of short numerics have; `None` where two differ, or one is of
/// another value. Without a branch for a view, so that many are looked at together.
#[must_use]
pub fn common_scale(views: &[u128]) -> Option<u16> {
    const UNSCALED: u128 = (u64::MAX as u128) << HEAD_BITS;
    let first = *views.first()?;
    let (_, scale) = read_short_numeric_view(first)?;
    let differing = views.iter().fold(0, |bits, view| bits | (view ^ first));
    (differing & !UNSCALED == 0).then_some(scale)
}

/// The unscaled number of the view of a short numeric.
#[must_use]
#[inline]
pub const fn unscaled_of_view(view: u128) -> i64 {
    (view >> HEAD_BITS) as i64
}

/// The unscaled number and the scale of a short numeric, from its view.
#[must_use]
#[inline]
pub const fn read_short_numeric_view(view: u128) -> Option<(i64, u16)> {
    if view as u64 & ((1 << HEAD_BITS) - 1) != HEAD {
        return None;
    }
    Some((
        unscaled_of_view(view),
        (view >> (HEAD_BITS + u64::BITS)) as u16,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_with_one_scale_are_known_and_no_others() {
        let views = [0, 1, -7, i64::MAX, i64::MIN].map(|number| short_numeric_view(number, 2));
        assert_eq!(common_scale(&views), Some(2));
        for (view, number) in views.iter().zip([0, 1, -7, i64::MAX, i64::MIN]) {
            assert_eq!(unscaled_of_view(*view), number);
            assert_eq!(read_short_numeric_view(*view), Some((number, 2)));
        }
        for other in [
            short_numeric_view(5, 3),
            0,
            views[1] ^ 1,
            views[1] ^ 1 << 40,
        ] {
            for place in 0..views.len() {
                let mut others = views;
                others[place] = other;
                assert_eq!(common_scale(&others), None, "{other:x} at {place}");
            }
        }
        assert_eq!(common_scale(&[]), None);
    }
}
