//! Temperature: how warm a tuple is, hot or cold, in three bits of its directory word.
//!
//! Every use of a tuple makes it one degree warmer, wherever it lies; when a sweep of the
//! evictor's hand over everything finds too little to evict, all tuples become one degree
//! cooler. So a degree is an access more than the rate at which memory turns over, and the
//! counts of tuples that are in memory and of those that are not can be compared: what is
//! at [`EVICT`] or below may leave, what has reached [`ADMIT`] while it was cold may come
//! back (004 §3.1 and 000 §4.2 as one notion). No list, no ghost entries, no sketch.
//!
//! A hot set that moves shows in cold tuples being asked for again; then
//! [`ShiftDetector`] says to forget what was hot. A scan does not show there.
//!
//! Here are the rules alone; the engine carries them out, the benchmark of policies too.

/// The warmest; three bits.
pub const MAX: u8 = 7;
/// A fetched tuple becomes hot at this temperature, if memory is scarce.
pub const ADMIT: u8 = 3;
/// A hot tuple of at most this temperature may be evicted.
pub const EVICT: u8 = 1;
/// The temperature of a tuple that was inserted or changed.
pub const WRITTEN: u8 = EVICT + 1;

/// The share of misses on cold tuples that were used not long ago, beyond what is usual,
/// that says that the hot set has moved: a factor and an amount, and never less than the
/// last. A scan meets such tuples, too, if much of the data is in memory.
const SHIFT_FACTOR: f64 = 1.5;
const SHIFT_SHARE: f64 = 0.1;
const SHIFT_SHARE_MIN: f64 = 0.4;
/// How much a window counts in what is usual.
const USUAL_WEIGHT: f64 = 0.1;
/// Windows in which each hot tuple could have been used once.
const WINDOWS_A_PASS: u64 = 16;

/// What [`ShiftDetector::observe`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shift {
    /// Nothing out of the ordinary.
    None,
    /// The hot set has begun to move: hot tuples should cool to [`EVICT`].
    Begun,
}

/// Notices that the hot set moves.
#[derive(Debug)]
pub struct ShiftDetector {
    accesses: u64,
    returns: u64,
    usual: f64,
    /// Accesses for which tuples are let in at their second use.
    left: u64,
}

impl Default for ShiftDetector {
    fn default() -> Self {
        ShiftDetector {
            accesses: 0,
            returns: 0,
            usual: 1.0,
            left: 0,
        }
    }
}

impl ShiftDetector {
    /// A detector that takes anything for usual at first.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes `accesses` into account, of which `returns` were misses on cold tuples
    /// warmer than 0, while `hot` tuples were in memory. `full`: memory was scarce; else
    /// misses say nothing.
    pub fn observe(&mut self, accesses: u64, returns: u64, hot: u64, full: bool) -> Shift {
        self.accesses += accesses;
        self.returns += returns;
        if self.accesses < (hot / WINDOWS_A_PASS).max(1) {
            return Shift::None;
        }
        let share = self.returns as f64 / self.accesses as f64;
        self.left = self.left.saturating_sub(self.accesses);
        (self.accesses, self.returns) = (0, 0);
        if !full {
            return Shift::None;
        }
        let unusual = (self.usual * SHIFT_FACTOR + SHIFT_SHARE).max(SHIFT_SHARE_MIN);
        let begun = self.left == 0 && share > unusual;
        self.usual += (share - self.usual) * USUAL_WEIGHT;
        if begun {
            self.left = hot * 2;
            return Shift::Begun;
        }
        Shift::None
    }

    /// Whether the hot set is moving: fetched tuples come in at their second use and are
    /// then as warm as what was just written.
    pub fn is_shifting(&self) -> bool {
        self.left > 0
    }
}

/// The temperature that a cold tuple which was fetched comes in with, or `None` if it is to
/// be used where it is. `room`: memory is not scarce. `shifting`: as the detector says.
#[inline]
pub fn admitted(temperature: u8, room: bool, shifting: bool) -> Option<u8> {
    if shifting && temperature >= 2 {
        return Some(temperature.max(WRITTEN));
    }
    (room || temperature >= ADMIT).then_some(temperature)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_share_of_returns_is_no_shift_and_a_jump_is() {
        let mut detector = ShiftDetector::new();
        for _ in 0..100 {
            assert_eq!(detector.observe(1000, 150, 10_000, true), Shift::None);
        }
        assert_eq!(detector.observe(1000, 900, 10_000, true), Shift::Begun);
        assert!(detector.is_shifting());
        // Two passes over the hot tuples later it is over.
        for _ in 0..20 {
            assert_eq!(detector.observe(1000, 150, 10_000, true), Shift::None);
        }
        assert!(!detector.is_shifting());
    }

    #[test]
    fn misses_on_what_was_never_used_or_in_ample_memory_are_no_shift() {
        let mut detector = ShiftDetector::new();
        for _ in 0..100 {
            detector.observe(1000, 50, 10_000, true);
        }
        // A scan: all misses, none of them returns.
        assert_eq!(detector.observe(1000, 50, 10_000, true), Shift::None);
        assert_eq!(detector.observe(1000, 900, 10_000, false), Shift::None);
        // A scan where much is in memory meets what was used not long ago.
        assert_eq!(detector.observe(1000, 300, 10_000, true), Shift::None);
        // Too few accesses to say.
        assert_eq!(detector.observe(10, 10, 10_000, true), Shift::None);
    }

    #[test]
    fn what_is_let_in() {
        assert_eq!(admitted(0, true, false), Some(0));
        assert_eq!(admitted(ADMIT - 1, false, false), None);
        assert_eq!(admitted(ADMIT, false, false), Some(ADMIT));
        assert_eq!(admitted(1, false, true), None);
        assert_eq!(admitted(2, false, true), Some(WRITTEN));
        assert_eq!(admitted(MAX, false, true), Some(MAX));
    }
}
