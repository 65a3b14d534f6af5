//! What a scan asks of columns, and which rows of a group have it: answered by what the directory
//! knows of the values, then on the chunks as they are encoded. A constant, a run and a word of a
//! dictionary are each looked at once, however many rows have them.
//!
//! Guarantees that no row is passed over that has what is asked. Odd tuples, and columns that a
//! group has not, are not looked at: their rows are given out, and whoever asks looks again.

use super::directory::Directory;
use super::integers::Integers;
use super::reader::{GroupReader, Values};
use super::strings::Strings;
use crate::tuple::PartPlace;

/// Something that is asked of one column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ColumnTest {
    /// The column's place in the table.
    pub column: usize,
    /// What is asked.
    pub test: Test,
}

/// Strings of bytes from the first one on, up to the second one, which is not among them.
pub type ByteRange = (Vec<u8>, Option<Vec<u8>>);

/// What is asked of a value. Ranges are ascending, and no two of them overlap; NULL is in none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Test {
    /// Whether it is NULL, or is not.
    Null(bool),
    /// That it is within one of these ranges, ends included: of values that are kept as integers
    /// in their order.
    Integers(Vec<(i64, i64)>),
    /// That its [`float_key`] is within one of these ranges, ends included.
    Floats(Vec<(i64, i64)>),
    /// That its bytes are within one of these ranges.
    Bytes(Vec<ByteRange>),
}

/// An integer in the order that PostgreSQL gives floating-point numbers: both zeros are the same,
/// and NaN is above all others.
#[must_use]
#[inline]
pub fn float_key(value: f64) -> i64 {
    if value.is_nan() {
        return i64::MAX;
    }
    // The negative zero becomes the other one.
    let bits = (value + 0.0).to_bits().cast_signed();
    bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
}

#[inline]
fn is_within(ranges: &[(i64, i64)], value: i64) -> bool {
    ranges
        .iter()
        .any(|(low, high)| *low <= value && value <= *high)
}

fn has_bytes(ranges: &[ByteRange], value: &[u8]) -> bool {
    ranges.iter().any(|(low, high)| {
        value >= low.as_slice() && high.as_ref().is_none_or(|high| value < high.as_slice())
    })
}

impl Directory {
    /// Whether there may be a row that has all that is asked.
    #[must_use]
    pub fn may_have(&self, tests: &[ColumnTest]) -> bool {
        self.odd > 0 || tests.iter().all(|test| self.may_have_one(test))
    }

    fn may_have_one(&self, test: &ColumnTest) -> bool {
        let Some(zone) = self.zone(test.column) else {
            return true;
        };
        let all_null = zone.nulls == self.rows;
        match (&test.test, zone.range) {
            (Test::Null(true), _) => zone.nulls > 0,
            _ if all_null => false,
            (Test::Integers(ranges), Some((least, greatest))) => {
                let overlaps = |(low, high): &(i64, i64)| *low <= greatest && least <= *high;
                ranges.iter().any(overlaps)
            }
            _ => true,
        }
    }
}

/// Positions of a group: all of them, or some in ascending order.
pub type Matching = Option<Vec<u16>>;

impl GroupReader<'_> {
    /// The positions whose rows may have all that is asked: those that have it, and those of odd
    /// tuples. The chunks of the columns must be there.
    ///
    /// `None`: the chunks are not what was written.
    #[must_use]
    pub fn matching(&self, tests: &[ColumnTest]) -> Option<Matching> {
        let mut matching: Matching = None;
        for test in tests {
            self.keep(test, &mut matching)?;
        }
        if let Some(positions) = &mut matching {
            let odd = self.odd_positions();
            if !odd.is_empty() {
                positions.extend(odd);
                positions.sort_unstable();
                positions.dedup();
            }
        }
        Some(matching)
    }

    /// Takes out positions whose rows have not what is asked.
    fn keep(&self, test: &ColumnTest, matching: &mut Matching) -> Option<()> {
        let Some(column) = self.columns.get(test.column) else {
            return Some(());
        };
        let part = self.directory.shape.parts.get(test.column)?;
        let nulls = column.nulls.as_ref();
        let is_null = |position: usize| nulls.is_some_and(|nulls| nulls.get(position) != 0);
        if let Test::Null(wanted) = &test.test {
            match (&column.values, nulls) {
                (Values::Nothing, _) if *wanted => {}
                (Values::Nothing, _) => *matching = Some(Vec::new()),
                (_, None) if *wanted => *matching = Some(Vec::new()),
                (_, None) => {}
                _ => self.retain(matching, |position| is_null(position) == *wanted),
            }
            return Some(());
        }
        match (&column.values, &test.test) {
            (Values::Nothing, _) => *matching = Some(Vec::new()),
            (Values::Integers(integers), Test::Integers(ranges)) => {
                self.keep_integers(integers, matching, |value| is_within(ranges, value));
            }
            (Values::Integers(integers), Test::Floats(ranges)) => {
                let is_real = matches!(part.place, PartPlace::Fixed { width: 4, .. });
                let key = |bits: i64| match is_real {
                    true => float_key(f64::from(f32::from_bits(bits as u32))),
                    false => float_key(f64::from_bits(bits.cast_unsigned())),
                };
                self.keep_integers(integers, matching, |bits| is_within(ranges, key(bits)));
            }
            (Values::Strings(strings), Test::Bytes(ranges)) => match strings {
                Strings::Plain(plain) => self.retain(matching, |position| {
                    plain
                        .get(position)
                        .is_some_and(|value| has_bytes(ranges, value))
                }),
                Strings::Dictionary { distinct, numbers } => {
                    let count = distinct.len();
                    let has: Option<Vec<bool>> = (0..count)
                        .map(|number| Some(has_bytes(ranges, distinct.get(number)?)))
                        .collect();
                    let has = has?;
                    self.keep_integers(numbers, matching, |number| {
                        usize::try_from(number).is_ok_and(|number| has.get(number) == Some(&true))
                    });
                }
            },
            // Asked as if it were of another type: not answered here.
            _ => return Some(()),
        }
        if nulls.is_some() {
            self.retain(matching, |position| !is_null(position));
        }
        Some(())
    }

    /// Takes out positions whose integers this is not true of.
    fn keep_integers(
        &self,
        integers: &Integers<'_>,
        matching: &mut Matching,
        has: impl Fn(i64) -> bool,
    ) {
        match integers {
            Integers::Line(line) if line.is_constant() => {
                if !has(line.get(0)) {
                    *matching = Some(Vec::new());
                }
            }
            Integers::Line(line) => self.retain(matching, |position| has(line.get(position))),
            Integers::Runs { ends, values } => {
                let mut run = 0;
                let mut end = 0;
                let mut has_run = false;
                // Positions come in ascending order.
                self.retain(matching, |position| {
                    while position as i64 >= end && run < ends.len() {
                        end = ends.get(run);
                        has_run = has(values.get(run));
                        run += 1;
                    }
                    has_run
                });
            }
            Integers::Dictionary { values, numbers } => {
                let has: Vec<bool> = (0..values.len()).map(|n| has(values.get(n))).collect();
                if has.iter().all(|has| *has) {
                    return;
                }
                self.retain(matching, |position| {
                    has.get(numbers.get(position) as usize) == Some(&true)
                });
            }
        }
    }

    /// Keeps the positions of which this is true. It is asked in their order.
    fn retain(&self, matching: &mut Matching, mut has: impl FnMut(usize) -> bool) {
        match matching {
            Some(positions) => positions.retain(|position| has(usize::from(*position))),
            None => {
                let rows = self.directory.rows();
                let mut positions = vec![0; rows];
                let mut count = 0;
                for position in 0..rows {
                    // Written whether it stays or not: nothing to predict.
                    positions[count] = position as u16;
                    count += usize::from(has(position));
                }
                positions.truncate(count);
                *matching = Some(positions);
            }
        }
    }
}
