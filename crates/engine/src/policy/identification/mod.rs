//! Identification: which hot rows of a table in a partition are to leave memory next (000 §3.1,
//! 004 §3.1). Each policy is a file here that carries out [`Identify`]; adding one is that file,
//! and its line in each list of this one.
//!
//! Guarantees: a row that is hot is given out by [`Identify::next`] sooner or later, and one that
//! was given out is not again until it is said to be hot. Assumes the partition's lock. A row may
//! go without a word, when it is deleted: whoever carries out a policy looks whether a row is
//! still hot before giving it out.
//!
//! Policies know rows by their numbers, and see words through [`Words`]: the engine's are words
//! of a row directory, the benchmark's are its own. What all tables have in common is in
//! [`Rounds`]. A policy is chosen by a match: none for the words that a hand passes, one for each
//! tuple that leaves.

mod hand;
mod lru;
mod off;
mod offline;
mod rounds;
mod s3_fifo;
#[cfg(test)]
mod tests;

use hand::{Clock, Fifo, Temperature};
pub use lru::Lru;
pub use off::Off;
pub use offline::Offline;
pub use rounds::Rounds;
use s3_fifo::S3Fifo;
use thermocline_storage::temperature;

use super::share::Share;

/// How cold tuples are found (000 §3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identification {
    /// Uses are counted, hot or cold, and the count of a tuple decides whether
    /// it leaves and whether it comes back
    /// ([`thermocline_storage::temperature`]).
    Temperature,
    /// A hand sweeps over the row directory; a tuple that was used since its
    /// last visit stays.
    Clock,
    /// The hand sweeps, but use does not count.
    Fifo,
    /// The tuple used longest ago leaves (004 §3.1).
    Lru,
    /// As `Lru`, but of the transactions only a share counts (004 §3.1).
    ALru,
    /// A small queue sorts out what is used once; what is used again, there or
    /// soon after it left, comes into a larger one (Yang et al., SOSP 2023).
    S3Fifo,
    /// A share of uses is logged, and an analysis of the log says which tuples are cold (000 §3.1).
    Offline,
    /// Nothing leaves memory, and nothing is kept for finding what could.
    Off,
}

impl Identification {
    /// All of them, by the names that settings use.
    pub const NAMES: [(&str, Identification); 8] = [
        ("temperature", Identification::Temperature),
        ("clock", Identification::Clock),
        ("fifo", Identification::Fifo),
        ("lru", Identification::Lru),
        ("alru", Identification::ALru),
        ("s3fifo", Identification::S3Fifo),
        ("offline", Identification::Offline),
        ("off", Identification::Off),
    ];

    /// What it may be, in words.
    pub const MAY_BE: &str = "temperature, clock, fifo, lru, alru, s3fifo, offline or off";

    /// The order of no rows.
    #[must_use]
    pub fn order(self, samples: Samples) -> Order {
        match self {
            Identification::Temperature => Order::Temperature(Temperature::default()),
            Identification::Clock => Order::Clock(Clock::default()),
            Identification::Fifo => Order::Fifo(Fifo::default()),
            Identification::Lru => Order::Lru(Lru::new(Share::WHOLE)),
            Identification::ALru => Order::Lru(Lru::new(samples.alru)),
            Identification::S3Fifo => Order::S3Fifo(S3Fifo::default()),
            Identification::Offline => Order::Offline(Offline::new(samples.offline).into()),
            Identification::Off => Order::Off(Off),
        }
    }

    /// The share that it goes by, if it goes by one.
    #[must_use]
    pub fn sample(self, samples: Samples) -> Option<Share> {
        match self {
            Identification::ALru => Some(samples.alru),
            Identification::Offline => Some(samples.offline),
            _ => None,
        }
    }

    /// Whether it goes by what is learned of how tuples are used.
    #[must_use]
    pub fn learns(self) -> bool {
        self == Identification::Temperature
    }
}

/// How much of what happens policies look at that look at a share of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Samples {
    /// Of transactions, by [`Identification::ALru`].
    pub alru: Share,
    /// Of uses, by [`Identification::Offline`].
    pub offline: Share,
}

/// What a policy does, for the rows of one table in one partition.
pub trait Identify {
    /// Whoever looks for a block's worth of tuples gives up when so many times as many rows were
    /// passed as there are: by then every hot row was given out that could be.
    const ROUNDS: u64;

    /// [`Self::ROUNDS`].
    fn rounds(&self) -> u64 {
        Self::ROUNDS
    }

    /// A hot row is used. That it is a degree warmer its word says already. `by`: the number of
    /// the transaction, which no two have that follow each other.
    fn used(&mut self, row: u32, by: u64);

    /// A row is hot now and was not, or was given out and stays.
    fn became_hot(&mut self, row: u32);

    /// A row is hot now, since it lay in the block of one that was asked for.
    fn came_along(&mut self, row: u32) {
        self.became_hot(row);
    }

    /// A hot row of which it may not have been told, since it was made later than the row became
    /// hot. It has not been used meanwhile unless it was told so.
    fn adopt(&mut self, _row: u32) {}

    /// A row is hot no more, and was: it is on a device only.
    fn left(&mut self, row: u32);

    /// The hot row that is to leave next, as long as the turn lasts: it is nobody's from now on,
    /// and will be said to have left, or to be hot.
    fn next<W: Words>(
        &mut self,
        words: &mut W,
        rounds: &mut Rounds,
        turn: &mut Turn,
    ) -> Option<u32>;

    /// The row that was given out last cannot leave yet, and is the next one again.
    fn is_next(&mut self, row: u32);

    /// All rows were passed once: what follows from what all hands have found by now.
    fn round_over(&mut self, rounds: &Rounds);

    /// Whether it keeps this row as one that is hot and was not given out; None: it keeps none.
    fn keeps(&self, row: u32) -> Option<bool>;

    /// Bytes that it keeps beside the words.
    fn bytes(&self) -> usize;
}

/// What a policy sees of rows, and does to them.
pub trait Words {
    /// All rows have numbers below this.
    fn end(&self) -> u32;
    /// So many rows from this one on are cold, without a look at each; 0: a look is needed.
    fn settled_from(&self, row: u32) -> u32;
    /// What a row is.
    fn seen(&self, row: u32) -> Seen;
    /// A row, of which `seen` was said just now, cools to this temperature.
    fn cool(&mut self, row: u32, to: u8);
}

/// What a row is, with its temperature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// It is in memory.
    Hot(u8),
    /// It is on a device only.
    Cold(u8),
    /// It is not there.
    Gone,
}

/// A turn under the partition's lock: how long it lasts, and what was passed in this and the
/// turns before it.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    steps: u32,
    passed: u64,
}

impl Turn {
    /// Takes a step of a look at a word that the policy did not ask for.
    #[inline]
    pub(crate) fn looks(&mut self) -> bool {
        self.step(1)
    }

    /// Lasts for so many steps, each a look at a word. `passed`: by the turns before.
    #[must_use]
    pub fn new(steps: u32, passed: u64) -> Self {
        Turn { steps, passed }
    }

    /// Rows that were passed.
    #[must_use]
    pub fn passed(&self) -> u64 {
        self.passed
    }

    /// Takes as many steps as a look costs, if the turn has any left.
    #[inline]
    fn step(&mut self, cost: u32) -> bool {
        let goes_on = self.steps > 0;
        self.steps = self.steps.saturating_sub(cost);
        goes_on
    }

    #[inline]
    fn pass(&mut self, rows: u32) {
        self.passed += u64::from(rows);
    }

    /// There is nothing to find: the search is over.
    fn end(&mut self) {
        (self.steps, self.passed) = (0, u64::MAX);
    }
}

/// The rows of one table in one partition in the order of a policy.
#[allow(missing_docs)]
pub enum Order {
    Temperature(Temperature),
    Clock(Clock),
    Fifo(Fifo),
    Lru(Lru),
    S3Fifo(S3Fifo),
    /// Apart, since it is larger than all others.
    Offline(Box<Offline>),
    Off(Off),
}

/// What is to be done with whichever policy it is.
macro_rules! with {
    ($order:expr, $policy:ident => $does:expr) => {
        match $order {
            Order::Temperature($policy) => $does,
            Order::Clock($policy) => $does,
            Order::Fifo($policy) => $does,
            Order::Lru($policy) => $does,
            Order::S3Fifo($policy) => $does,
            Order::Offline($policy) => $does,
            Order::Off($policy) => $does,
        }
    };
}

/// See [`Identify`].
#[allow(missing_docs)]
impl Order {
    /// [`Identify::ROUNDS`].
    #[must_use]
    pub fn rounds(&self) -> u64 {
        with!(self, policy => policy.rounds())
    }

    #[inline]
    pub fn used(&mut self, row: u32, by: u64) {
        with!(self, policy => policy.used(row, by));
    }

    pub fn came_along(&mut self, row: u32) {
        with!(self, policy => policy.came_along(row));
    }

    pub fn adopt(&mut self, row: u32) {
        with!(self, policy => policy.adopt(row));
    }

    /// Whether it keeps rows beside their words, and has to be told of those that are hot when it
    /// is made.
    #[must_use]
    pub fn keeps_rows(&self) -> bool {
        matches!(self, Order::Lru(_) | Order::S3Fifo(_))
    }

    /// How warm a new row is. Where nothing leaves it is as warm as can be, so that no use
    /// is ever written down.
    #[inline]
    #[must_use]
    pub fn warmth_of_new(&self) -> u8 {
        match self {
            Order::Off(_) => temperature::MAX,
            _ => temperature::WRITTEN,
        }
    }

    #[inline]
    pub fn became_hot(&mut self, row: u32) {
        with!(self, policy => policy.became_hot(row));
    }

    #[inline]
    pub fn left(&mut self, row: u32) {
        with!(self, policy => policy.left(row));
    }

    #[inline]
    pub fn next<W: Words>(
        &mut self,
        words: &mut W,
        rounds: &mut Rounds,
        turn: &mut Turn,
    ) -> Option<u32> {
        with!(self, policy => policy.next(words, rounds, turn))
    }

    pub fn is_next(&mut self, row: u32) {
        with!(self, policy => policy.is_next(row));
    }

    #[must_use]
    pub fn keeps(&self, row: u32) -> Option<bool> {
        with!(self, policy => policy.keeps(row))
    }

    #[must_use]
    pub fn bytes(&self) -> usize {
        with!(self, policy => policy.bytes())
    }
}
