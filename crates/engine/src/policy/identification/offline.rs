//! Off-line identification (000 §3.1, after Levandoski et al., ICDE 2013): a share of all uses is
//! logged. An analysis of the log estimates how often each row is used, by exponential smoothing,
//! and lists the cold ones. What leaves is taken from that list. When it is used up eviction
//! waits for the next analysis.
//!
//! The evictor's thread analyses, in the turns in which it looks for rows. So others run between,
//! the log needs no lock of its own, and no row leaves that no analysis has named. Where memory is
//! full meanwhile, statements that need more of it wait as for any eviction. An analysis goes over
//! the log once and over the rows twice, and ends.
//!
//! The log is in memory, and bounded by the number of hot rows: the oldest records go first. A use
//! is drawn, and not counted out: what uses ten rows again and again would have the same one
//! logged each time. The numbers drawn are the same in each run. That a row becomes hot is known
//! of each, and needs no log: it adds to the estimate what one use of many is worth in records.

use std::collections::VecDeque;

use super::super::share::Share;
use super::lru::LOOK_COST;
use super::{Identify, Rounds, Seen, Turn, Words};

/// Records of a part of the log: 4 KiB.
const PART_RECORDS: usize = 1024;
/// Parts that the log may have in any case, ...
const PARTS_MIN: usize = 4;
/// ... and so many records for each hot row.
const RECORDS_A_ROW: usize = 1;
/// A record counts less by the e-th part when so many more, for each hot row, are behind it. Of
/// fewer the estimates are left to chance, of more a hot set that moves is noticed late.
const SMOOTHED_A_ROW: f64 = 8.0;
/// An analysis lists this part of the hot rows, ...
const LIST_DIVISOR: u32 = 16;
/// ... and so many in any case.
const LIST_MIN: u32 = 64;
/// An estimate below this, in records, is none: chunks without any are given up.
const ESTIMATE_MIN: f32 = 1e-2;
/// Rows of a chunk: 16 KiB of estimates.
const CHUNK_ROWS: usize = 4096;
/// To let a chunk of estimates age takes about as long as so many steps of a hand.
const CHUNK_COST: u32 = 64;
/// Estimates are told apart by their upper bits: exponent, and an eighth of it.
const RANK_SHIFT: u32 = 20;
const RANKS: usize = 1 << (31 - RANK_SHIFT);

/// Rows that were used, the last ones of those that were logged.
#[derive(Default)]
struct Log {
    parts: VecDeque<Vec<u32>>,
    /// Records of the first part that are read.
    read: usize,
}

impl Log {
    #[inline]
    fn push(&mut self, row: u32, parts_max: usize) {
        match self.parts.back_mut() {
            Some(part) if part.len() < PART_RECORDS => part.push(row),
            _ => self.begin_part(row, parts_max),
        }
    }

    #[cold]
    fn begin_part(&mut self, row: u32, parts_max: usize) {
        let mut part = Vec::new();
        while self.parts.len() >= parts_max {
            part = self.parts.pop_front().unwrap_or_default();
            self.read = 0;
        }
        part.clear();
        part.reserve_exact(PART_RECORDS);
        part.push(row);
        self.parts.push_back(part);
    }

    /// The oldest record, which goes.
    fn take(&mut self) -> Option<u32> {
        let part = self.parts.front()?;
        let row = part.get(self.read).copied();
        self.read += 1;
        if self.read >= part.len() {
            self.parts.pop_front();
            self.read = 0;
        }
        row
    }

    fn bytes(&self) -> usize {
        self.parts.len() * PART_RECORDS * size_of::<u32>()
    }
}

/// What is known of some neighbouring rows.
struct Chunk {
    /// Records of each row, the older ones smoothed away.
    estimates: [f32; CHUNK_ROWS],
    /// A bit for each row that was given out.
    given: [u64; CHUNK_ROWS / 64],
}

/// What is known of rows.
#[derive(Default)]
struct Known {
    chunks: Vec<Option<Box<Chunk>>>,
}

impl Known {
    fn chunk_mut(&mut self, row: u32) -> &mut Chunk {
        let number = row as usize / CHUNK_ROWS;
        if self.chunks.len() <= number {
            self.chunks.resize_with(number + 1, || None);
        }
        self.chunks[number].get_or_insert_with(|| {
            Box::new(Chunk {
                estimates: [0.0; CHUNK_ROWS],
                given: [0; CHUNK_ROWS / 64],
            })
        })
    }

    fn chunk(&self, row: u32) -> Option<&Chunk> {
        self.chunks.get(row as usize / CHUNK_ROWS)?.as_deref()
    }

    fn add(&mut self, row: u32, weight: f32) {
        self.chunk_mut(row).estimates[row as usize % CHUNK_ROWS] += weight;
    }

    /// How warm a row is, among others; 0: it is not known.
    fn rank(&self, row: u32) -> usize {
        let chunk = self.chunk(row);
        let estimate = chunk.map_or(0.0, |chunk| chunk.estimates[row as usize % CHUNK_ROWS]);
        (estimate.to_bits() >> RANK_SHIFT) as usize
    }

    fn is_given(&self, row: u32) -> bool {
        let at = row as usize % CHUNK_ROWS;
        let chunk = self.chunk(row);
        chunk.is_some_and(|chunk| chunk.given[at / 64] >> (at % 64) & 1 != 0)
    }

    fn set_given(&mut self, row: u32, given: bool) {
        if self.is_given(row) != given {
            let at = row as usize % CHUNK_ROWS;
            self.chunk_mut(row).given[at / 64] ^= 1 << (at % 64);
        }
    }

    fn bytes(&self) -> usize {
        let chunks = self.chunks.iter().flatten().count();
        chunks * size_of::<Chunk>() + self.chunks.capacity() * size_of::<usize>()
    }
}

/// How far an analysis is.
enum Analysis {
    /// There is none under way.
    Rests,
    /// The log is read. So much does its next record count, and each by this factor more than the
    /// one before.
    Reads { weight: f32, growth: f32 },
    /// All estimates are divided by the last record's weight, from this chunk on.
    Ages { chunk: usize, by: f32 },
    /// Hot rows are counted by their ranks, from this row on.
    Counts { row: u32, ranks: Vec<u32> },
    /// Those of a lower rank are listed, and some of this one.
    Lists { left: u32, below: usize, same: u32 },
}

/// See the module's head.
pub struct Offline {
    /// The share of uses that are logged.
    sample: Share,
    /// What the next use is drawn by.
    drawn: u64,
    log: Log,
    /// Hot rows at the last analysis; before that, row numbers that were seen.
    hot: u32,
    is_counted: bool,
    known: Known,
    analysis: Analysis,
    /// Cold rows, in the order in which they leave.
    list: VecDeque<u32>,
    /// Where the list's end was found: of rows of the same rank others come next.
    hand: u32,
}

impl Offline {
    /// This share of uses is logged.
    #[must_use]
    pub fn new(sample: Share) -> Self {
        Offline {
            sample,
            drawn: 1,
            log: Log::default(),
            hot: 0,
            is_counted: false,
            known: Known::default(),
            analysis: Analysis::Rests,
            list: VecDeque::new(),
            hand: 0,
        }
    }

    #[inline]
    fn is_drawn(&mut self) -> bool {
        let next = self.drawn.wrapping_mul(6_364_136_223_846_793_005);
        self.drawn = next.wrapping_add(1_442_695_040_888_963_407);
        let drawn = (self.drawn >> 32) * u64::from(Share::WHOLE.millionths());
        drawn >> 32 < u64::from(self.sample.millionths())
    }

    fn share(&self) -> f64 {
        f64::from(self.sample.millionths()) / f64::from(Share::WHOLE.millionths())
    }

    /// An analysis begins. The more rows are hot, the longer a record counts.
    fn begin(&mut self) {
        let records = f64::from(self.hot.max(LIST_MIN)) * SMOOTHED_A_ROW;
        self.analysis = Analysis::Reads {
            weight: 1.0,
            growth: (1.0 + 1.0 / records) as f32,
        };
    }

    /// A step of the analysis. False: nothing is hot that could be listed.
    fn analyse<W: Words>(&mut self, words: &W, turn: &mut Turn) -> bool {
        match &mut self.analysis {
            Analysis::Rests => self.begin(),
            Analysis::Reads { weight, growth } => match self.log.take() {
                Some(row) => {
                    self.known.add(row, *weight);
                    *weight *= *growth;
                }
                None => {
                    let by = 1.0 / *weight;
                    self.analysis = Analysis::Ages { chunk: 0, by };
                }
            },
            Analysis::Ages { chunk, by } => match self.known.chunks.get_mut(*chunk) {
                Some(known) => {
                    *chunk += 1;
                    if known.as_deref_mut().is_some_and(|known| !age(known, *by)) {
                        *known = None;
                    }
                    turn.step(CHUNK_COST);
                }
                None => {
                    let ranks = vec![0; RANKS];
                    self.analysis = Analysis::Counts { row: 0, ranks };
                }
            },
            Analysis::Counts { .. } => return self.count(words),
            Analysis::Lists { .. } => self.list(words),
        }
        true
    }

    /// Looks at a row to be counted. False: none is there, of all.
    fn count<W: Words>(&mut self, words: &W) -> bool {
        let Analysis::Counts { row, ranks } = &mut self.analysis else {
            return true;
        };
        if *row < words.end() {
            let settled = words.settled_from(*row);
            if settled == 0 && is_hot(words, *row) && !self.known.is_given(*row) {
                ranks[self.known.rank(*row)] += 1;
            }
            *row += settled.max(1);
            return true;
        }
        let hot: u32 = ranks.iter().sum();
        let most = (hot / LIST_DIVISOR).max(LIST_MIN).min(hot);
        let mut same = most;
        let below = ranks.iter().position(|&of_rank| {
            let is_last = same <= of_rank;
            same = if is_last { same } else { same - of_rank };
            is_last
        });
        (self.hot, self.is_counted) = (hot, true);
        self.list = VecDeque::with_capacity(most as usize);
        self.analysis = match below {
            Some(below) if hot > 0 => Analysis::Lists {
                left: words.end(),
                below,
                same,
            },
            _ => Analysis::Rests,
        };
        hot > 0
    }

    /// Looks at a row to be listed.
    fn list<W: Words>(&mut self, words: &W) {
        let Analysis::Lists { left, below, same } = &mut self.analysis else {
            return;
        };
        if *left == 0 || self.list.len() == self.list.capacity() {
            self.analysis = Analysis::Rests;
            return;
        }
        let row = match self.hand < words.end() {
            true => self.hand,
            false => 0,
        };
        let settled = words.settled_from(row).min(*left);
        self.hand = row + settled.max(1);
        *left -= settled.max(1);
        if settled > 0 || !is_hot(words, row) || self.known.is_given(row) {
            return;
        }
        let rank = self.known.rank(row);
        let is_listed = rank < *below || rank == *below && *same > 0;
        if is_listed {
            *same -= u32::from(rank == *below);
            self.list.push_back(row);
        }
    }
}

/// Old records count less. Whether anything is known still.
fn age(chunk: &mut Chunk, by: f32) -> bool {
    let mut known = false;
    for estimate in &mut chunk.estimates {
        let aged = *estimate * by;
        *estimate = if aged < ESTIMATE_MIN { 0.0 } else { aged };
        known |= *estimate > 0.0;
    }
    known || chunk.given.iter().any(|bits| *bits != 0)
}

fn is_hot<W: Words>(words: &W, row: u32) -> bool {
    matches!(words.seen(row), Seen::Hot(_))
}

impl Identify for Offline {
    /// A row that was given out and stays may be listed again.
    const ROUNDS: u64 = 4;

    #[inline]
    fn used(&mut self, row: u32, _: u64) {
        if self.is_drawn() {
            let records = RECORDS_A_ROW * self.hot as usize;
            self.log.push(row, (records / PART_RECORDS).max(PARTS_MIN));
        }
    }

    fn became_hot(&mut self, row: u32) {
        self.known.set_given(row, false);
        if !self.is_counted {
            self.hot = self.hot.max(row.saturating_add(1));
        }
        let now = match self.analysis {
            Analysis::Reads { weight, .. } => weight,
            _ => 1.0,
        };
        self.known.add(row, now * self.share() as f32);
    }

    fn came_along(&mut self, row: u32) {
        self.known.set_given(row, false);
    }

    fn left(&mut self, row: u32) {
        self.known.set_given(row, false);
    }

    fn next<W: Words>(&mut self, words: &mut W, _: &mut Rounds, turn: &mut Turn) -> Option<u32> {
        loop {
            let is_listed = matches!(self.analysis, Analysis::Rests) && !self.list.is_empty();
            // Hot rows are looked at one after the other; those of the list and the log lie apart.
            let in_order = matches!(
                self.analysis,
                Analysis::Counts { .. } | Analysis::Lists { .. }
            );
            if !turn.step(if in_order { 1 } else { LOOK_COST }) {
                return None;
            }
            if is_listed {
                turn.pass(1);
                let row = self.list.pop_front()?;
                if is_hot(words, row) {
                    self.known.set_given(row, true);
                    return Some(row);
                }
            } else if !self.analyse(words, turn) {
                turn.end();
                return None;
            }
        }
    }

    fn is_next(&mut self, row: u32) {
        self.known.set_given(row, false);
        self.list.push_front(row);
    }

    fn round_over(&mut self, _: &Rounds) {}

    fn keeps(&self, _: u32) -> Option<bool> {
        None
    }

    fn bytes(&self) -> usize {
        let ranks = match &self.analysis {
            Analysis::Counts { ranks, .. } => ranks.capacity(),
            _ => 0,
        };
        let numbers = ranks + self.list.capacity();
        self.log.bytes() + self.known.bytes() + numbers * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Rows;
    use super::*;

    /// So many hot rows, of which it knows nothing but that they are.
    fn hot(rows: u32, sample: Share) -> (Offline, Rows) {
        let mut order = Offline::new(sample);
        (0..rows).for_each(|row| order.became_hot(row));
        (order, Rows::hot(rows as usize))
    }

    fn next(order: &mut Offline, rows: &mut Rows) -> Option<u32> {
        order.next(rows, &mut Rounds::default(), &mut Turn::new(u32::MAX, 0))
    }

    fn leaves(order: &mut Offline, rows: &mut Rows) -> Option<u32> {
        let row = next(order, rows)?;
        rows.0[row as usize] = Seen::Cold(0);
        order.left(row);
        Some(row)
    }

    #[test]
    fn rows_leave_by_how_often_they_were_used() {
        let (mut order, mut rows) = hot(4 * LIST_MIN, Share::WHOLE);
        // Each of the first was used once, of the second twice, and so on.
        for uses in 1..4 {
            (uses * LIST_MIN..4 * LIST_MIN).for_each(|row| order.used(row, 0));
        }
        for quarter in 0..4 {
            let left = (0..LIST_MIN).map(|_| leaves(&mut order, &mut rows));
            let mut left: Vec<u32> = left.map(|row| row.expect("there are rows")).collect();
            left.sort_unstable();
            let expected = quarter * LIST_MIN..(quarter + 1) * LIST_MIN;
            assert_eq!(left, expected.collect::<Vec<_>>());
        }
        assert_eq!(leaves(&mut order, &mut rows), None);
    }

    #[test]
    fn nothing_leaves_before_an_analysis_has_ended_and_it_goes_on_from_turn_to_turn() {
        let (mut order, mut rows) = hot(1000, Share::WHOLE);
        (0..1000).for_each(|row| order.used(row, 0));
        let mut turns = 0;
        let row = loop {
            let mut turn = Turn::new(10, 0);
            let found = order.next(&mut rows, &mut Rounds::default(), &mut turn);
            assert_eq!(turn.passed(), u64::from(found.is_some()));
            turns += 1;
            if found.is_some() {
                break found;
            }
            let rests = matches!(order.analysis, Analysis::Rests);
            assert!(!rests || !order.list.is_empty());
        };
        // The log and the rows once, and then rows until enough are listed.
        assert!((430..460).contains(&turns), "{turns}");
        assert_eq!(row, Some(0));
        let listed = (1..LIST_MIN).map(|_| next(&mut order, &mut rows));
        assert!(listed.flatten().eq(1..LIST_MIN), "and no other analysis");
        assert!(order.list.is_empty());
    }

    /// The definition: with each record all estimates lose the same part, and its row's gains one.
    #[test]
    fn estimates_are_exponentially_smoothed_counts() {
        let (mut order, mut rows) = hot(200, Share::WHOLE);
        let part = 1.0 / (200.0 * SMOOTHED_A_ROW);
        let mut model = [1.0f64; 200];
        let mut drawn = 7u64;
        for _ in 0..3 {
            for _ in 0..1500 {
                drawn = drawn
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let row = ((drawn >> 40) % 14 * ((drawn >> 50) % 14)) as u32;
                order.used(row, 0);
                model.iter_mut().for_each(|row| *row /= 1.0 + part);
                model[row as usize] += 1.0;
            }
            // What is given out stays, which is a use.
            let stays = next(&mut order, &mut rows).expect("all are hot");
            order.became_hot(stays);
            model[stays as usize] += 1.0;
            order.list.clear();
        }
        let known = order.known.chunk(0).expect("rows are known");
        for (row, expected) in model.iter().enumerate() {
            let found = f64::from(known.estimates[row]);
            assert!(
                (found - expected).abs() < expected * 0.01,
                "{row}: {found}, {expected}"
            );
        }
    }

    #[test]
    fn the_log_keeps_the_last_uses_and_is_bounded() {
        let (mut order, mut rows) = hot(10_000, Share::WHOLE);
        (0..100_000).for_each(|use_| order.used(use_ / 10, 0));
        let parts = 10_000 / PART_RECORDS;
        assert_eq!(order.log.parts.len(), parts);
        assert_eq!(order.log.bytes(), parts * PART_RECORDS * 4);
        assert!(order.log.take() > Some(8_000), "the oldest are gone");
        assert!(next(&mut order, &mut rows).is_some());
        assert_eq!(order.log.bytes(), 0, "what was read is gone");
    }

    #[test]
    fn about_the_share_of_uses_is_logged_that_was_asked_for() {
        for millionths in [1_000, 100_000, 1_000_000] {
            let mut order = Offline::new(Share::of_millionths(millionths).expect("a share"));
            let drawn = (0..1_000_000).filter(|_| order.is_drawn()).count() as f64;
            let expected = f64::from(millionths);
            assert!(
                (drawn - expected).abs() <= expected * 0.1,
                "{millionths}: {drawn}"
            );
        }
    }

    #[test]
    fn what_was_given_out_is_not_listed_until_it_is_said_to_be_hot() {
        let (mut order, mut rows) = hot(100, Share::WHOLE);
        let given: Vec<_> = (0..100).map(|_| next(&mut order, &mut rows)).collect();
        assert!(given.iter().all(Option::is_some));
        assert_eq!(next(&mut order, &mut rows), None);
        order.came_along(40);
        assert_eq!(next(&mut order, &mut rows), Some(40));
        assert_eq!(next(&mut order, &mut rows), None);
    }

    #[test]
    fn what_is_not_used_for_long_is_forgotten_with_its_memory() {
        let (mut order, mut rows) = hot(100, Share::WHOLE);
        rows.0.resize(3 * CHUNK_ROWS, Seen::Gone);
        order.became_hot(2 * CHUNK_ROWS as u32);
        let before = order.known.bytes();
        for _ in 0..20 {
            (0..100_000).for_each(|use_| order.used(use_ % 100, 0));
            order.list.clear();
            assert!(next(&mut order, &mut rows).is_some());
        }
        assert_eq!(order.known.bytes(), before - size_of::<Chunk>());
    }
}
