//! Integers of a chunk: as a line with differences, as runs, or as numbers in a sorted
//! dictionary, whichever is smallest.
//!
//! ```text
//! 0 form u8 | line:       the integers
//!           | runs:       count u32, ends of the runs, their values
//!           | dictionary: count u32, the distinct values in order, a number for each integer
//! ```

use super::line::{Fit, Line};

/// Of integers that take fewer bits than this no dictionary is tried.
const DICTIONARY_BITS_MIN: usize = 6;

/// How a chunk is encoded, for whoever looks at it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoding {
    /// There is one value, or none.
    Constant,
    /// Differences from a line: frame of reference, or with a slope.
    FrameOfReference,
    /// Runs of equal values.
    RunLength,
    /// A sorted dictionary, and numbers in it.
    Dictionary,
    /// The bytes, one value's behind the other's.
    Plain,
}

impl Encoding {
    /// As a view shows it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::FrameOfReference => "frame of reference",
            Self::RunLength => "run length",
            Self::Dictionary => "dictionary",
            Self::Plain => "plain",
        }
    }
}

/// Appends integers in their smallest form.
pub(super) fn write(values: &[i64], out: &mut Vec<u8>) {
    let fit = Fit::of(values);
    let line_bytes = fit.bytes(values.len());
    let mut best = line_bytes;
    let mut ends = Vec::new();
    for (place, pair) in values.windows(2).enumerate() {
        if pair[0] != pair[1] {
            ends.push(place as i64 + 1);
        }
    }
    // A run takes two bytes at least, unless there is one alone.
    let runs = (ends.len() < values.len() / 4 && !ends.is_empty()).then(|| {
        ends.push(values.len() as i64);
        let of_run = |end: &i64| values[*end as usize - 1];
        let run_values: Vec<i64> = ends.iter().map(of_run).collect();
        (Fit::of(&ends), Fit::of(&run_values), run_values)
    });
    let runs = runs.filter(|(ends_fit, values_fit, run_values)| {
        let count = run_values.len();
        let bytes = 4 + ends_fit.bytes(count) + values_fit.bytes(count);
        let is_best = bytes < best;
        best = best.min(bytes);
        is_best
    });
    let is_worth_it = best * 8 > values.len() * DICTIONARY_BITS_MIN;
    let distinct = is_worth_it.then(|| {
        let mut distinct = values.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        distinct
    });
    let dictionary = distinct.filter(|distinct| {
        let bits = usize::BITS - distinct.len().saturating_sub(1).leading_zeros();
        let numbers = (values.len() * bits as usize).div_ceil(8);
        4 + Fit::of(distinct).bytes(distinct.len()) + numbers + Fit::of(&[]).bytes(0) < best
    });
    if let Some(distinct) = dictionary {
        let number = |value| distinct.partition_point(|other| other < value) as i64;
        let numbers: Vec<i64> = values.iter().map(number).collect();
        out.push(Integers::DICTIONARY);
        out.extend_from_slice(&(distinct.len() as u32).to_le_bytes());
        Fit::of(&distinct).write(&distinct, out);
        Fit::of(&numbers).write(&numbers, out);
    } else if let Some((ends_fit, values_fit, run_values)) = runs {
        out.push(Integers::RUNS);
        out.extend_from_slice(&(run_values.len() as u32).to_le_bytes());
        ends_fit.write(&ends, out);
        values_fit.write(&run_values, out);
    } else {
        out.push(Integers::LINE);
        fit.write(values, out);
    }
}

/// Integers that [`write`] wrote.
#[derive(Clone, Copy, Debug)]
pub(super) enum Integers<'a> {
    Line(Line<'a>),
    Runs { ends: Line<'a>, values: Line<'a> },
    Dictionary { values: Line<'a>, numbers: Line<'a> },
}

/// The forms, as the first byte says them.
impl Integers<'_> {
    pub const LINE: u8 = 0;
    pub const RUNS: u8 = 1;
    pub const DICTIONARY: u8 = 2;
}

impl<'a> Integers<'a> {
    /// So many integers at the beginning of `bytes`, and what follows them.
    pub fn read(bytes: &'a [u8], count: usize) -> Option<(Self, &'a [u8])> {
        let (form, rest) = bytes.split_first()?;
        if *form == Self::LINE {
            let (line, rest) = Line::read(rest, count)?;
            return Some((Self::Line(line), rest));
        }
        let (few, rest) = rest.split_first_chunk()?;
        let few = u32::from_le_bytes(*few) as usize;
        let (first, rest) = Line::read(rest, few)?;
        Some(match *form {
            Self::RUNS => {
                let (values, rest) = Line::read(rest, few)?;
                (
                    Self::Runs {
                        ends: first,
                        values,
                    },
                    rest,
                )
            }
            Self::DICTIONARY => {
                let (numbers, rest) = Line::read(rest, count)?;
                let values = first;
                (Self::Dictionary { values, numbers }, rest)
            }
            _ => return None,
        })
    }

    /// The integer at a place.
    #[inline]
    pub fn get(&self, place: usize) -> i64 {
        match self {
            Self::Line(line) => line.get(place),
            Self::Runs { ends, values } => values.get(ends.first_above(place as i64)),
            Self::Dictionary { values, numbers } => values.get(numbers.get(place) as usize),
        }
    }

    /// How they are encoded.
    pub fn encoding(&self) -> Encoding {
        match self {
            Self::Line(line) if line.is_constant() => Encoding::Constant,
            Self::Line(_) => Encoding::FrameOfReference,
            Self::Runs { .. } => Encoding::RunLength,
            Self::Dictionary { .. } => Encoding::Dictionary,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(values: &[i64]) -> Encoding {
        let mut bytes = Vec::new();
        write(values, &mut bytes);
        bytes.extend_from_slice(b"rest");
        let (read, rest) = Integers::read(&bytes, values.len()).expect("is there");
        assert_eq!(rest, b"rest");
        let back: Vec<i64> = (0..values.len()).map(|place| read.get(place)).collect();
        assert_eq!(back, values);
        for length in 0..bytes.len() - b"rest".len() {
            assert!(Integers::read(&bytes[..length], values.len()).is_none());
        }
        read.encoding()
    }

    #[test]
    fn the_smallest_form_is_chosen() {
        assert_eq!(round_trip(&[]), Encoding::Constant);
        assert_eq!(round_trip(&[4; 50]), Encoding::Constant);
        let small: Vec<i64> = (0..500).map(|n| n * 7919 % 13).collect();
        assert_eq!(round_trip(&small), Encoding::FrameOfReference);
        let runs: Vec<i64> = (0..2000).map(|n| n / 100 * 7919 % 1013).collect();
        assert_eq!(round_trip(&runs), Encoding::RunLength);
        let few: Vec<i64> = (0..2000).map(|n| (n * 7919 % 13) << 40).collect();
        assert_eq!(round_trip(&few), Encoding::Dictionary);
    }

    proptest! {
        #[test]
        fn integers_come_back(
            values in prop::collection::vec((any::<i64>(), 1usize..40), 0..40),
            shift in 0u32..64,
        ) {
            let repeat = |(value, times): (i64, usize)| vec![value >> shift; times];
            let values: Vec<i64> = values.into_iter().flat_map(repeat).collect();
            round_trip(&values);
        }

        #[test]
        fn few_integers_come_back(values in prop::collection::vec(0usize..5, 0..300), few in prop::array::uniform5(any::<i64>())) {
            let values: Vec<i64> = values.into_iter().map(|number| few[number]).collect();
            round_trip(&values);
        }
    }
}
