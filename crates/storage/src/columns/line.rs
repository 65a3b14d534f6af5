//! Integers as a straight line and what each differs from it, in as few bits as the largest
//! difference needs.
//!
//! A line whose slope is zero is a *frame of reference*; without differences it is a *constant*. A
//! serial number, and a row's number in a row group, are lines without differences. No form that
//! has 64 bits a value at most can lose by it, so there is no plain one.
//!
//! ```text
//! 0 base i64 | 8 slope i64 | 16 bits u8 | 17 differences, bits each | 8 zeros
//! ```
//!
//! How many there are the reader knows. Sums wrap, so that any integers have a line.

/// Bytes before the differences, and after them: a difference is read with its neighbours.
pub(super) const HEADER_BYTES: usize = 17;
const PADDING_BYTES: usize = 8;

/// The line that integers are closest to, of those that are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fit {
    base: i64,
    slope: i64,
    bits: u8,
}

impl Fit {
    /// The better of the level line and the one from the first to the last.
    pub fn of(values: &[i64]) -> Self {
        let level = Self::along(values, 0);
        let slope = match values {
            [first, .., last] => {
                let rise = i128::from(*last) - i128::from(*first);
                let run = values.len() as i128 - 1;
                // To the nearest, so that what jumps now and then is close to it, too.
                i64::try_from((rise + run.signum() * run / 2).div_euclid(run)).unwrap_or(0)
            }
            _ => 0,
        };
        match slope {
            0 => level,
            _ => [level, Self::along(values, slope)]
                .into_iter()
                .min_by_key(|fit| fit.bits)
                .unwrap_or(level),
        }
    }

    fn along(values: &[i64], slope: i64) -> Self {
        let (mut low, mut high) = (i128::MAX, i128::MIN);
        for (place, value) in values.iter().enumerate() {
            let difference = i128::from(*value) - i128::from(slope) * place as i128;
            (low, high) = (low.min(difference), high.max(difference));
        }
        let base = i64::try_from(low);
        match (base, u64::try_from(high.saturating_sub(low))) {
            (Ok(base), Ok(range)) => Self {
                base,
                slope,
                bits: (u64::BITS - range.leading_zeros()) as u8,
            },
            // No values, or none that this slope fits.
            _ => Self {
                base: 0,
                slope: 0,
                bits: if values.is_empty() { 0 } else { 64 },
            },
        }
    }

    /// Bytes of so many values.
    pub fn bytes(self, count: usize) -> usize {
        HEADER_BYTES + packed_bytes(count, self.bits) + PADDING_BYTES
    }

    /// Appends the values.
    pub fn write(self, values: &[i64], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.base.to_le_bytes());
        out.extend_from_slice(&self.slope.to_le_bytes());
        out.push(self.bits);
        let end = out.len() + packed_bytes(values.len(), self.bits) + PADDING_BYTES;
        let (mut held, mut held_bits) = (0u128, 0);
        if self.bits > 0 {
            for (place, value) in values.iter().enumerate() {
                let line = self
                    .base
                    .wrapping_add(self.slope.wrapping_mul(place as i64));
                let difference = value.wrapping_sub(line).cast_unsigned();
                held |= u128::from(difference) << held_bits;
                held_bits += u32::from(self.bits);
                if held_bits >= u64::BITS {
                    out.extend_from_slice(&(held as u64).to_le_bytes());
                    held >>= u64::BITS;
                    held_bits -= u64::BITS;
                }
            }
            out.extend_from_slice(&(held as u64).to_le_bytes());
        }
        // Cuts what of the last eight bytes is not needed, or adds what is missing.
        out.resize(end, 0);
    }
}

fn packed_bytes(count: usize, bits: u8) -> usize {
    (count * usize::from(bits)).div_ceil(8)
}

/// Integers that [`Fit::write`] wrote.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    base: i64,
    slope: i64,
    bits: u32,
    mask: u64,
    count: usize,
    packed: &'a [u8],
}

impl<'a> Line<'a> {
    /// So many integers at the beginning of `bytes`, and what follows them. `None`: that is not
    /// what is there.
    pub fn read(bytes: &'a [u8], count: usize) -> Option<(Self, &'a [u8])> {
        let (header, rest) = bytes.split_first_chunk()?;
        let line = Line::headed(header, count)?;
        let (packed, rest) = rest.split_at_checked(line.bytes() - HEADER_BYTES)?;
        Some((Self { packed, ..line }, rest))
    }

    /// So many integers whose differences are elsewhere. `None`: that is no header.
    pub fn headed(header: &[u8; HEADER_BYTES], count: usize) -> Option<Line<'static>> {
        let (base, rest) = header.split_first_chunk()?;
        let (slope, rest) = rest.split_first_chunk()?;
        let bits = u32::from(*rest.first()?);
        let mask = u64::MAX.checked_shr(u64::BITS.checked_sub(bits)?);
        Some(Line {
            base: i64::from_le_bytes(*base),
            slope: i64::from_le_bytes(*slope),
            bits,
            mask: mask.unwrap_or(0),
            count,
            packed: &[],
        })
    }

    /// Bytes of the header, the differences and the zeros.
    pub fn bytes(&self) -> usize {
        HEADER_BYTES + packed_bytes(self.count, self.bits as u8) + PADDING_BYTES
    }

    /// Bits of a difference.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Whether all are the same, for whoever would store less then.
    pub fn is_constant(&self) -> bool {
        self.bits == 0 && self.slope == 0
    }

    /// How many integers there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// The integer at a place; zero beyond the last.
    #[inline]
    pub fn get(&self, place: usize) -> i64 {
        if self.bits == 0 {
            return self.with(place, 0, 0, 0);
        }
        let (at, shift) = self.locate(place);
        let Some(bytes) = self.packed.get(at..).and_then(<[u8]>::first_chunk::<8>) else {
            return self.with(place, 0, 0, 0);
        };
        let last = match shift + self.bits > u64::BITS {
            true => self.packed.get(at + 8).copied().unwrap_or(0),
            false => 0,
        };
        self.with(place, u64::from_le_bytes(*bytes), last, shift)
    }

    /// The byte and the bit within it where the difference of a place begins.
    #[inline]
    pub fn locate(&self, place: usize) -> (usize, u32) {
        // A damaged chunk may ask for any place.
        let bit = place.wrapping_mul(self.bits as usize);
        (bit / 8, (bit % 8) as u32)
    }

    /// The integer at a place, of the nine bytes that its difference begins in.
    #[inline]
    pub fn with(&self, place: usize, low: u64, last: u8, shift: u32) -> i64 {
        let line = self
            .base
            .wrapping_add(self.slope.wrapping_mul(place as i64));
        let mut difference = low >> shift;
        if shift + self.bits > u64::BITS {
            difference |= u64::from(last) << (u64::BITS - shift);
        }
        line.wrapping_add((difference & self.mask).cast_signed())
    }

    /// The first place whose integer is above `value`, of ascending ones.
    pub fn first_above(&self, value: i64) -> usize {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low.midpoint(high);
            match self.get(middle) > value {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(values: &[i64]) -> Fit {
        let fit = Fit::of(values);
        let mut bytes = Vec::new();
        fit.write(values, &mut bytes);
        assert_eq!(bytes.len(), fit.bytes(values.len()));
        bytes.extend_from_slice(b"rest");
        let (line, rest) = Line::read(&bytes, values.len()).expect("is there");
        assert_eq!(rest, b"rest");
        let read: Vec<i64> = (0..values.len()).map(|place| line.get(place)).collect();
        assert_eq!(read, values);
        fit
    }

    #[test]
    fn what_is_regular_takes_no_bits() {
        assert_eq!(round_trip(&[]).bits, 0);
        assert_eq!(round_trip(&[7; 100]).bits, 0);
        let serial: Vec<i64> = (5..1000).collect();
        assert_eq!(round_trip(&serial).bits, 0);
        let descending: Vec<i64> = (0..1000).map(|n| 1 - n * 3).collect();
        assert_eq!(round_trip(&descending).bits, 0);
        assert_eq!(round_trip(&[1_000_000, 1_000_003, 1_000_000]).bits, 2);
    }

    #[test]
    fn any_integers_have_a_line() {
        round_trip(&[i64::MIN, i64::MAX, 0, -1]);
        round_trip(&[i64::MAX, i64::MIN]);
        round_trip(&[i64::MIN]);
        round_trip(&[i64::MAX, i64::MAX, i64::MIN, i64::MIN, 3]);
    }

    #[test]
    fn what_is_cut_off_is_not_read() {
        let mut bytes = Vec::new();
        Fit::of(&[1, 5, 2]).write(&[1, 5, 2], &mut bytes);
        for length in 0..bytes.len() {
            assert!(Line::read(&bytes[..length], 3).is_none());
        }
    }

    proptest! {
        #[test]
        fn integers_come_back(
            values in prop::collection::vec(any::<i64>(), 0..200),
            shift in 0u32..64,
            slope in -1000i64..1000,
        ) {
            let values: Vec<i64> = (0..).zip(values)
                .map(|(place, value)| (value >> shift).wrapping_add(slope * place))
                .collect();
            round_trip(&values);
        }

        #[test]
        fn the_first_above_is_found(mut values in prop::collection::vec(-50i64..50, 0..60), wanted in -60i64..60) {
            values.sort_unstable();
            let mut bytes = Vec::new();
            Fit::of(&values).write(&values, &mut bytes);
            let (line, _) = Line::read(&bytes, values.len()).expect("is there");
            prop_assert_eq!(line.first_above(wanted), values.partition_point(|v| *v <= wanted));
        }
    }
}
