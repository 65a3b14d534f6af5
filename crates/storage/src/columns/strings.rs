//! Strings of bytes in a chunk: one behind the other, or a sorted dictionary and a number for
//! each, whichever is smaller.
//!
//! ```text
//! 0 form u8 | plain:      the end of each within the bytes (integers), the bytes
//!           | dictionary: count u32, ends and bytes of the distinct ones in order, numbers (integers)
//! ```
//!
//! The numbers are integers like others: long runs of one string are runs there.

use std::collections::HashMap;

use super::integers::{self, Encoding, Integers};

/// The forms, as the first byte says them.
pub(super) const PLAIN: u8 = 0;
pub(super) const DICTIONARY: u8 = 1;

/// A dictionary is tried as long as at most one string in so many is new.
const DISTINCT_DIVISOR: usize = 2;

/// Appends strings in their smaller form.
pub(super) fn write(values: &[&[u8]], out: &mut Vec<u8>) {
    let begin = out.len();
    out.push(PLAIN);
    write_plain(values.iter().copied(), out);
    let Some(distinct) = distinct(values) else {
        return;
    };
    let numbers: HashMap<&[u8], i64> = distinct.iter().copied().zip(0..).collect();
    let mut dictionary = vec![DICTIONARY];
    dictionary.extend_from_slice(&(distinct.len() as u32).to_le_bytes());
    write_plain(distinct.iter().copied(), &mut dictionary);
    let numbers: Vec<i64> = (values.iter()).map(|value| numbers[value]).collect();
    integers::write(&numbers, &mut dictionary);
    if dictionary.len() < out.len() - begin {
        out.truncate(begin);
        out.extend_from_slice(&dictionary);
    }
}

/// The distinct strings in order, if there are few enough.
fn distinct<'v>(values: &[&'v [u8]]) -> Option<Vec<&'v [u8]>> {
    let most = (values.len() / DISTINCT_DIVISOR).max(1);
    let mut seen: std::collections::HashSet<&[u8]> = std::collections::HashSet::new();
    for value in values {
        seen.insert(value);
        if seen.len() > most {
            return None;
        }
    }
    let mut distinct: Vec<&[u8]> = seen.into_iter().collect();
    distinct.sort_unstable();
    Some(distinct)
}

fn write_plain<'v>(values: impl Iterator<Item = &'v [u8]> + Clone, out: &mut Vec<u8>) {
    let mut end = 0;
    let ends = values.clone().map(|value| {
        end += value.len() as i64;
        end
    });
    let ends: Vec<i64> = ends.collect();
    integers::write(&ends, out);
    for value in values {
        out.extend_from_slice(value);
    }
}

/// Strings one behind the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plain<'a> {
    count: usize,
    ends: Integers<'a>,
    bytes: &'a [u8],
}

impl<'a> Plain<'a> {
    fn read(bytes: &'a [u8], count: usize) -> Option<(Self, &'a [u8])> {
        let (ends, rest) = Integers::read(bytes, count)?;
        let length = match count {
            0 => 0,
            _ => usize::try_from(ends.get(count - 1)).ok()?,
        };
        let (bytes, rest) = rest.split_at_checked(length)?;
        Some((Self { count, ends, bytes }, rest))
    }

    /// How many strings there are.
    pub fn len(&self) -> usize {
        self.count
    }

    #[inline]
    pub fn get(&self, place: usize) -> Option<&'a [u8]> {
        let begin = match place {
            0 => 0,
            _ => self.ends.get(place - 1),
        };
        let (begin, end) = (begin as usize, self.ends.get(place) as usize);
        self.bytes.get(begin..end)
    }
}

/// Strings that [`write`] wrote.
#[derive(Clone, Copy, Debug)]
pub(super) enum Strings<'a> {
    Plain(Plain<'a>),
    Dictionary {
        distinct: Plain<'a>,
        numbers: Integers<'a>,
    },
}

impl<'a> Strings<'a> {
    /// So many strings at the beginning of `bytes`, and what follows them.
    pub fn read(bytes: &'a [u8], count: usize) -> Option<(Self, &'a [u8])> {
        let (form, rest) = bytes.split_first()?;
        match *form {
            PLAIN => {
                let (plain, rest) = Plain::read(rest, count)?;
                Some((Self::Plain(plain), rest))
            }
            DICTIONARY => {
                let (few, rest) = rest.split_first_chunk()?;
                let (distinct, rest) = Plain::read(rest, u32::from_le_bytes(*few) as usize)?;
                let (numbers, rest) = Integers::read(rest, count)?;
                Some((Self::Dictionary { distinct, numbers }, rest))
            }
            _ => None,
        }
    }

    /// The string at a place; `None` where the chunk is not what was written.
    #[inline]
    pub fn get(&self, place: usize) -> Option<&'a [u8]> {
        match self {
            Self::Plain(plain) => plain.get(place),
            Self::Dictionary { distinct, numbers } => distinct.get(numbers.get(place) as usize),
        }
    }

    /// How they are encoded.
    pub fn encoding(&self) -> Encoding {
        match self {
            Self::Plain(_) => Encoding::Plain,
            Self::Dictionary { numbers, .. } => match numbers.encoding() {
                Encoding::Constant => Encoding::Constant,
                Encoding::RunLength => Encoding::RunLength,
                _ => Encoding::Dictionary,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(values: &[&[u8]]) -> (Encoding, usize) {
        let mut bytes = Vec::new();
        write(values, &mut bytes);
        let length = bytes.len();
        bytes.extend_from_slice(b"rest");
        let (read, rest) = Strings::read(&bytes, values.len()).expect("is there");
        assert_eq!(rest, b"rest");
        for (place, value) in values.iter().enumerate() {
            assert_eq!(read.get(place), Some(*value));
        }
        (read.encoding(), length)
    }

    #[test]
    fn the_smaller_form_is_chosen() {
        assert_eq!(round_trip(&[]).0, Encoding::Plain);
        let (encoding, length) = round_trip(&[b"all the same, and long enough".as_slice(); 1000]);
        assert_eq!(encoding, Encoding::Constant);
        assert!(length < 200, "{length}");
        let texts: Vec<String> = (0..1000).map(|n| format!("state {}", n * 7 % 11)).collect();
        let texts: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
        let (encoding, length) = round_trip(&texts);
        assert_eq!(encoding, Encoding::Dictionary);
        assert!(length < 1000, "half a byte each: {length}");
        let texts: Vec<String> = (0..1000).map(|n| format!("comment {n}")).collect();
        let texts: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
        assert_eq!(round_trip(&texts).0, Encoding::Plain);
    }

    #[test]
    fn strings_of_one_width_need_no_ends() {
        let values: Vec<[u8; 16]> = (0..100u128).map(|n| (n << 70 | n).to_le_bytes()).collect();
        let values: Vec<&[u8]> = values.iter().map(<[u8; 16]>::as_slice).collect();
        assert!(round_trip(&values).1 < 1600 + 64);
    }

    proptest! {
        #[test]
        fn strings_come_back(values in prop::collection::vec(prop::collection::vec(0u8..3, 0..6), 0..100)) {
            let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
            round_trip(&values);
        }
    }
}
