//! Columns of a group as vectors: of the rows at some positions, without a tuple in between. What
//! was decoded once for many rows, as a dictionary, is given out once.
//!
//! Positions ascend. A column that is NULL throughout, or whose chunk is not there, is
//! [`Vector::Nothing`].

use super::integers::Integers;
use super::reader::{GroupReader, Values};
use super::strings::{Plain, Strings};

/// A column of a group.
pub enum Vector<'a> {
    /// NULL throughout.
    Nothing,
    /// Integers: the bytes of values of up to eight bytes, the sign extended.
    Integers(IntegerVector<'a>),
    /// Strings one behind the other.
    Strings(StringVector<'a>),
    /// Few strings, and their numbers.
    Dictionary(StringVector<'a>, IntegerVector<'a>),
}

/// Integers of a column.
#[derive(Clone, Copy)]
pub struct IntegerVector<'a>(Integers<'a>);

/// Strings of a column, or of its dictionary.
#[derive(Clone, Copy)]
pub struct StringVector<'a>(Plain<'a>);

impl IntegerVector<'_> {
    /// Calls `each` with the integers at these positions.
    #[inline]
    pub fn each(&self, positions: &[u16], mut each: impl FnMut(i64)) {
        match &self.0 {
            Integers::Line(line) if line.is_constant() => {
                let value = line.get(0);
                positions.iter().for_each(|_| each(value));
            }
            Integers::Line(line) => {
                for position in positions {
                    each(line.get(usize::from(*position)));
                }
            }
            Integers::Runs { ends, values } => {
                let Some(first) = positions.first() else {
                    return;
                };
                let mut run = ends.first_above(i64::from(*first));
                let (mut end, mut value) = (ends.get(run), values.get(run));
                for position in positions {
                    while i64::from(*position) >= end && run + 1 < ends.len() {
                        run += 1;
                        (end, value) = (ends.get(run), values.get(run));
                    }
                    each(value);
                }
            }
            Integers::Dictionary { values, numbers } => {
                // As few as make decoding all of them worth it.
                let distinct: Option<Vec<i64>> = (values.len() <= positions.len())
                    .then(|| (0..values.len()).map(|n| values.get(n)).collect());
                for position in positions {
                    let number = numbers.get(usize::from(*position)) as usize;
                    each(match &distinct {
                        Some(distinct) => distinct.get(number).copied().unwrap_or(0),
                        None => values.get(number),
                    });
                }
            }
        }
    }
}

impl<'a> StringVector<'a> {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One of them; `None` where the chunk is not what was written.
    #[must_use]
    #[inline]
    pub fn get(&self, place: usize) -> Option<&'a [u8]> {
        self.0.get(place)
    }
}

impl<'a> GroupReader<'a> {
    /// Whether rows are kept whole beside the columns: vectors do not have them.
    #[must_use]
    pub fn has_odd(&self) -> bool {
        self.odd.is_some()
    }

    /// How many columns the group has.
    #[must_use]
    pub fn column_count(&self) -> usize {
        self.columns.len()
    }

    /// A column, if the group has it.
    #[must_use]
    pub fn vector(&self, column: usize) -> Option<Vector<'a>> {
        Some(match self.columns.get(column)?.values {
            Values::Nothing => Vector::Nothing,
            Values::Integers(integers) => Vector::Integers(IntegerVector(integers)),
            Values::Strings(Strings::Plain(plain)) => Vector::Strings(StringVector(plain)),
            Values::Strings(Strings::Dictionary { distinct, numbers }) => {
                Vector::Dictionary(StringVector(distinct), IntegerVector(numbers))
            }
        })
    }

    /// Writes over `out` which of these positions are not NULL, if any is.
    #[must_use]
    pub fn validity(&self, column: usize, positions: &[u16], out: &mut Vec<bool>) -> bool {
        out.clear();
        let Some(nulls) = self.columns.get(column).and_then(|column| column.nulls) else {
            return false;
        };
        IntegerVector(nulls).each(positions, |null| out.push(null == 0));
        out.iter().any(|valid| !valid)
    }
}
