//! A count-min sketch (000 §4.2, §5.2): about how often each of very many items was met, in few
//! bytes, and which estimate the items that were met most have.
//!
//! Four rows of counters of a byte; an item has one in each, and its estimate is the least of them.
//! Only counters at the least are raised (*conservative update*), so that items which share
//! counters with others spoil little. So that what was met long ago is forgotten, all counters are
//! halved each [`WINDOW_A_COUNTER`] items a counter of a row.
//!
//! The cut comes from a histogram: how many items have come to each estimate. It is halved with
//! the counters: what had come to twice an estimate has come to it.
//!
//! Guarantees: an estimate is never below how often an item was added, counted up to [`COUNT_MAX`]
//! and halved when the counters were. Several threads may add at once: then some of what they add is
//! lost, and nothing else.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering::Relaxed};

/// Rows of counters.
const ROWS: usize = 4;
/// The highest estimate.
pub const COUNT_MAX: u8 = u8::MAX;
/// Items that are added, for each counter of a row, until all are halved.
const WINDOW_A_COUNTER: u32 = 4;
/// Items for each counter of a row: 10 million in 128 KiB.
const ITEMS_A_COUNTER: u64 = 400;
/// Counters of a row.
const WIDTH_MIN: u64 = 256;
const WIDTH_MAX: u64 = 1 << 22;
/// A sketch for so many times as many items as there are by now is still good.
const OUTGROWN: u64 = 4;

/// See the module's head.
pub struct CountMin {
    counters: Box<[AtomicU8]>,
    mask: u64,
    /// Items added since the last halving.
    added: AtomicU32,
    /// Items that have come to each estimate.
    reached: [AtomicU32; COUNT_MAX as usize + 1],
    is_halving: AtomicBool,
}

impl CountMin {
    /// A sketch for about so many items.
    #[must_use]
    pub fn new(items: u64) -> Self {
        let width = width_for(items);
        let counters = (0..width * ROWS as u64).map(|_| AtomicU8::new(0));
        CountMin {
            counters: counters.collect(),
            mask: width - 1,
            added: AtomicU32::new(0),
            reached: std::array::from_fn(|_| AtomicU32::new(0)),
            is_halving: AtomicBool::new(false),
        }
    }

    /// Whether there are many more items by now than it is made for.
    #[must_use]
    pub fn is_outgrown(&self, items: u64) -> bool {
        width_for(items) >= (self.mask + 1) * OUTGROWN
    }

    /// Bytes of memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.counters.len()
    }

    /// An item is met; its estimate by now.
    pub fn add(&self, item: u64) -> u8 {
        let places = self.places(item);
        let before = self.least(&places);
        if before == COUNT_MAX {
            return before;
        }
        let now = before + 1;
        for place in places {
            let counter = &self.counters[place];
            if counter.load(Relaxed) < now {
                counter.store(now, Relaxed);
            }
        }
        self.reached[usize::from(now)].fetch_add(1, Relaxed);
        let window = (self.mask as u32 + 1) * WINDOW_A_COUNTER;
        if self.added.fetch_add(1, Relaxed) + 1 >= window {
            self.halve();
        }
        self.least(&places)
    }

    /// About how often an item was met.
    #[must_use]
    pub fn estimate(&self, item: u64) -> u8 {
        self.least(&self.places(item))
    }

    /// The least estimate that no more than `share` (above 0, at most 1) of the items have reached,
    /// those that were met most.
    #[must_use]
    pub fn cut(&self, share: f64) -> u8 {
        // Items that share counters with others begin above 1: what most have reached is all.
        let reached = |estimate: usize| self.reached[estimate].load(Relaxed);
        let (mut all, mut at) = (0, 1);
        for estimate in 1..self.reached.len() {
            if reached(estimate) > all {
                (all, at) = (reached(estimate), estimate);
            }
        }
        let most = f64::from(all) * share;
        let cut = (at..self.reached.len()).find(|estimate| f64::from(reached(*estimate)) <= most);
        cut.map_or(COUNT_MAX, |estimate| estimate as u8)
    }

    fn places(&self, item: u64) -> [usize; ROWS] {
        let hash = mixed(item);
        let (first, step) = (hash, (hash >> 32) | 1);
        std::array::from_fn(|row| {
            let place = first.wrapping_add(step.wrapping_mul(row as u64)) & self.mask;
            row * (self.mask as usize + 1) + place as usize
        })
    }

    fn least(&self, places: &[usize; ROWS]) -> u8 {
        let counts = places
            .iter()
            .map(|place| self.counters[*place].load(Relaxed));
        counts.min().unwrap_or(0)
    }

    fn halve(&self) {
        if self.is_halving.swap(true, Relaxed) {
            return;
        }
        for counter in &self.counters {
            counter.store(counter.load(Relaxed) / 2, Relaxed);
        }
        for estimate in 1..self.reached.len() {
            let before = self.reached.get(2 * estimate);
            let before = before.map_or(0, |reached| reached.load(Relaxed));
            self.reached[estimate].store(before, Relaxed);
        }
        self.added.store(0, Relaxed);
        self.is_halving.store(false, Relaxed);
    }
}

fn width_for(items: u64) -> u64 {
    let width = (items / ITEMS_A_COUNTER).clamp(WIDTH_MIN, WIDTH_MAX);
    width.next_power_of_two()
}

fn mixed(item: u64) -> u64 {
    let item = (item ^ (item >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let item = (item ^ (item >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    item ^ (item >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against true counts, halved when the sketch is.
        #[test]
        fn an_estimate_is_never_below_what_was_added(
            items in proptest::collection::vec(0u64..3000, 1..6000),
            often in 0u64..20,
        ) {
            let sketch = CountMin::new(0);
            let mut counts: HashMap<u64, u64> = HashMap::new();
            for (at, item) in items.iter().enumerate() {
                // Every third is one of a few.
                let item = if at % 3 == 0 { item % (often + 1) } else { *item };
                let count = counts.entry(item).or_default();
                *count = (*count + 1).min(COUNT_MAX.into());
                sketch.add(item);
                if sketch.added.load(Relaxed) == 0 {
                    counts.values_mut().for_each(|count| *count /= 2);
                }
            }
            for (item, count) in &counts {
                let estimate = u64::from(sketch.estimate(*item));
                prop_assert!(estimate >= *count, "{}: {} {}", item, estimate, count);
            }
            // Nobody else's counters are raised without need.
            let all: u64 = counts.values().sum();
            let estimates: u64 = (0..1000).map(|item| u64::from(sketch.estimate(item + (1 << 40)))).sum();
            prop_assert!(estimates <= 1000 * (1 + all / 256), "{} {}", estimates, all);
        }
    }

    #[test]
    fn with_few_items_estimates_are_exact_and_the_cut_is_that_of_their_counts() {
        let sketch = CountMin::new(1 << 20);
        // Item i is met i times.
        for item in 1u64..=100 {
            (0..item).for_each(|_| {
                sketch.add(item);
            });
        }
        assert!((1..=100).all(|item| u64::from(sketch.estimate(item)) == item));
        assert_eq!(sketch.cut(1.0), 1);
        // 20 items were met 81 times or more.
        assert_eq!(sketch.cut(0.2), 81);
        assert_eq!(sketch.cut(0.05), 96);
    }

    /// A sketch of 1 KiB and 40 000 items: those above the cut are mostly those that are asked for most.
    #[test]
    fn what_is_above_the_cut_is_what_is_asked_for_most() {
        const ITEMS: u64 = 40_000;
        let sketch = CountMin::new(ITEMS);
        let mut state = 7u64;
        let mut draw = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            // Half of the draws are of the first fiftieth.
            let (half, item) = (state >> 63, mixed(state) >> 16);
            if half == 0 {
                item % (ITEMS / 50)
            } else {
                item % ITEMS
            }
        };
        (0..20_000).for_each(|_| {
            sketch.add(draw());
        });
        let (mut hot, mut cold) = ((0u32, 0u32), (0u32, 0u32));
        for _ in 0..100_000 {
            let item = draw();
            let above = u32::from(sketch.add(item) >= sketch.cut(0.2));
            let of = if item < ITEMS / 50 {
                &mut hot
            } else {
                &mut cold
            };
            *of = (of.0 + above, of.1 + 1);
        }
        let share = |of: (u32, u32)| f64::from(of.0) / f64::from(of.1);
        assert!(
            share(hot) > 1.5 * share(cold),
            "{} {}",
            share(hot),
            share(cold)
        );
    }

    #[test]
    fn a_sketch_has_a_hundred_kilobytes_for_ten_million_items() {
        let sketch = CountMin::new(10_000_000);
        assert!(
            (100_000..140_000).contains(&sketch.bytes()),
            "{}",
            sketch.bytes()
        );
        assert!(!sketch.is_outgrown(20_000_000));
        assert!(sketch.is_outgrown(100_000_000));
        assert!(CountMin::new(0).bytes() < 3 << 10);
    }
}
