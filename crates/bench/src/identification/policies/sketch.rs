//! A count-min sketch with counters of four bits: how often a tuple was used of late,
//! never too low but for ageing.

const ROWS: usize = 4;
/// Counters of a row for each tuple that fits memory; Caffeine's proportion.
const COUNTERS_PER_TUPLE: usize = 4;
const COUNTERS_PER_WORD: usize = 16;
const COUNT_MAX: u64 = 15;
/// All counters are halved every so many uses, by tuples that fit memory.
const AGE: usize = 10;

/// Bits of a sketch for this capacity.
pub(super) fn bits(capacity: usize) -> usize {
    ROWS * width(capacity) * u64::BITS as usize / COUNTERS_PER_WORD
}

/// Counters of a row.
fn width(capacity: usize) -> usize {
    (capacity.next_power_of_two() * COUNTERS_PER_TUPLE).max(COUNTERS_PER_WORD)
}

/// Counts uses.
#[derive(Debug)]
pub(super) struct Sketch {
    width: usize,
    words: Vec<u64>,
    uses: usize,
    age: usize,
}

impl Sketch {
    pub fn new(capacity: usize) -> Self {
        let width = width(capacity);
        Sketch {
            width,
            words: vec![0; ROWS * width / COUNTERS_PER_WORD],
            uses: 0,
            age: capacity * AGE,
        }
    }

    /// A tuple was used.
    pub fn count(&mut self, tuple: u32) {
        for row in 0..ROWS {
            let (word, shift) = self.counter(row, tuple);
            if self.words[word] >> shift & COUNT_MAX < COUNT_MAX {
                self.words[word] += 1 << shift;
            }
        }
        self.uses += 1;
        if self.uses == self.age {
            self.uses = 0;
            for word in &mut self.words {
                *word = *word >> 1 & 0x7777_7777_7777_7777;
            }
        }
    }

    /// How often a tuple was used.
    pub fn uses(&self, tuple: u32) -> u64 {
        let count = |row| {
            let (word, shift) = self.counter(row, tuple);
            self.words[word] >> shift & COUNT_MAX
        };
        (0..ROWS).map(count).min().unwrap_or(0)
    }

    fn counter(&self, row: usize, tuple: u32) -> (usize, usize) {
        let mut hash = (u64::from(tuple) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        hash ^= (row as u64 + 1).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        hash = (hash ^ hash >> 30).wrapping_mul(0x94D0_49BB_1331_11EB);
        hash ^= hash >> 31;
        let place = row * self.width + (hash as usize & (self.width - 1));
        (place / COUNTERS_PER_WORD, place % COUNTERS_PER_WORD * 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_kept_up_to_15_and_halved_with_age() {
        let mut sketch = Sketch::new(100);
        for _ in 0..7 {
            sketch.count(1);
        }
        for _ in 0..40 {
            sketch.count(2);
        }
        assert_eq!((sketch.uses(1), sketch.uses(2), sketch.uses(3)), (7, 15, 0));
        for _ in 0..100 * AGE - 47 {
            sketch.count(4);
        }
        assert_eq!((sketch.uses(1), sketch.uses(2)), (3, 7));
    }
}
