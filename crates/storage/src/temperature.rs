//! Temperature: how warm a tuple is, hot or cold, in three bits of its directory word.
//!
//! Every use of a tuple makes it one degree warmer, wherever it lies. When a sweep of the
//! evictor's hand over everything finds too little to evict, all tuples become one degree
//! cooler. So a degree is an access more than the rate at which memory turns over. So the
//! counts of tuples that are in memory and of those that are not can be compared: what is
//! at [`EVICT`] or below may leave, what has reached [`ADMIT`] while it was cold may come
//! back (004 §3.1 and 000 §4.2 as one notion). No list, no ghost entries, no sketch.
//!
//! All this supposes that some tuples are known to be warm. Where that is not so, counts
//! of uses decide nothing: [`HotSet`] notices it, and says to learn, which is to take in
//! whatever is used in place of what is not. Thus after a load, whose last rows fill
//! memory, used or not; and when the hot set moves, which shows in cold tuples being asked
//! for again. A scan does not show in either.
//!
//! Here are the rules alone; the engine carries them out, the benchmark of policies too.

/// The warmest; three bits.
pub const MAX: u8 = 7;
/// A fetched tuple becomes hot at this temperature, if memory is scarce.
pub const ADMIT: u8 = 3;
/// A hot tuple of at most this temperature may be evicted.
pub const EVICT: u8 = 1;
/// The least temperature of a tuple that was inserted, or changed in memory.
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
/// If less than this share of the hot tuples is as warm as what is let in, none of them is
/// known to be better than what is cold.
const KNOWN_SHARE: f64 = 0.1;
/// Learning takes so many accesses as a multiple of the hot tuples: no more, since under
/// uniform use there is nothing to learn.
const LEARN_PASSES: u64 = 4;

/// What [`HotSet::observe`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shift {
    /// Nothing out of the ordinary.
    None,
    /// The hot set has begun to move: all hot tuples should cool to 0.
    Begun,
}

/// Whether it is known which tuples are the warm ones.
#[derive(Debug)]
pub struct HotSet {
    accesses: u64,
    returns: u64,
    usual: f64,
    /// Hot tuples that the hand has met, and those of them that were warm.
    met: u64,
    warm: u64,
    /// Enough of them were, since it was last learned.
    known: bool,
    /// Accesses for which learning goes on.
    left: u64,
}

impl Default for HotSet {
    fn default() -> Self {
        HotSet {
            accesses: 0,
            returns: 0,
            usual: 1.0,
            met: 0,
            warm: 0,
            known: true,
            left: 0,
        }
    }
}

impl HotSet {
    /// Takes anything for usual at first.
    pub fn new() -> Self {
        Self::default()
    }

    /// The hand has met a hot tuple of this temperature.
    #[inline]
    pub fn met(&mut self, temperature: u8) {
        self.met += 1;
        self.warm += u64::from(temperature >= ADMIT);
    }

    /// The hand has passed everything once, while `hot` tuples were in memory. If it met
    /// hardly one that is warm, learning begins; but not again before it has met some.
    pub fn round_over(&mut self, hot: u64) {
        // What a round of few tuples says, it says together with the next.
        if self.met < (hot / 2).max(1) {
            return;
        }
        if self.warm as f64 >= self.met as f64 * KNOWN_SHARE {
            self.known = true;
        } else if self.known && !self.is_learning() {
            self.learn(hot);
        }
        (self.met, self.warm) = (0, 0);
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
        let begun = !self.is_learning() && share > unusual;
        self.usual += (share - self.usual) * USUAL_WEIGHT;
        if begun {
            self.learn(hot);
            return Shift::Begun;
        }
        Shift::None
    }

    fn learn(&mut self, hot: u64) {
        self.known = false;
        self.left = hot * LEARN_PASSES;
    }

    /// Whether it is being learned which tuples are warm.
    #[inline]
    pub fn is_learning(&self) -> bool {
        self.left > 0
    }

    /// A hot tuple of at most this temperature may be evicted.
    #[inline]
    pub fn evictable(&self) -> u8 {
        if self.is_learning() { 0 } else { EVICT }
    }
}

/// The temperature of a tuple that was changed: what is changed in memory stays for a while,
/// what was evicted only if its uses say so.
#[inline]
pub fn of_changed(temperature: u8, was_evicted: bool) -> u8 {
    if was_evicted {
        temperature
    } else {
        temperature.max(WRITTEN)
    }
}

/// Whether a cold tuple that was fetched becomes hot; else it is to be used where it is.
/// `room`: memory is not scarce. `learning`: as [`HotSet`] says; then any use will do.
#[inline]
pub fn is_admitted(temperature: u8, room: bool, learning: bool) -> bool {
    room || temperature >= if learning { 1 } else { ADMIT }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_share_of_returns_is_no_shift_and_a_jump_is() {
        let mut set = HotSet::new();
        for _ in 0..100 {
            assert_eq!(set.observe(1000, 150, 10_000, true), Shift::None);
        }
        assert_eq!(set.observe(1000, 900, 10_000, true), Shift::Begun);
        assert!(set.is_learning());
        // It is no other shift that misses abound meanwhile, and some passes over the hot
        // tuples later it is over.
        for _ in 0..LEARN_PASSES * 10 {
            assert!(set.is_learning());
            assert_eq!(set.observe(1000, 900, 10_000, true), Shift::None);
        }
        assert!(!set.is_learning());
    }

    #[test]
    fn misses_on_what_was_never_used_or_in_ample_memory_are_no_shift() {
        let mut set = HotSet::new();
        for _ in 0..100 {
            set.observe(1000, 50, 10_000, true);
        }
        // A scan: all misses, none of them returns.
        assert_eq!(set.observe(1000, 50, 10_000, true), Shift::None);
        assert_eq!(set.observe(1000, 900, 10_000, false), Shift::None);
        // A scan where much is in memory meets what was used not long ago.
        assert_eq!(set.observe(1000, 300, 10_000, true), Shift::None);
        // Too few accesses to say.
        assert_eq!(set.observe(10, 10, 10_000, true), Shift::None);
    }

    /// A round of the hand over 1000 hot tuples, of which some are warm.
    fn round(set: &mut HotSet, warm: u64) {
        for number in 0..1000 {
            set.met(if number < warm { ADMIT } else { ADMIT - 1 });
        }
        set.round_over(1000);
    }

    #[test]
    fn it_is_learned_once_when_nothing_is_known_to_be_warm() {
        let mut set = HotSet::new();
        round(&mut set, 100);
        assert!(!set.is_learning());
        assert_eq!(set.evictable(), EVICT);
        round(&mut set, 99);
        assert!(set.is_learning());
        assert_eq!(set.evictable(), 0);
        // A load that goes on is no use of tuples: learning is still to come.
        round(&mut set, 0);
        for _ in 0..LEARN_PASSES {
            assert!(set.is_learning());
            set.observe(1000, 900, 1000, true);
        }
        assert!(!set.is_learning());
        // Nothing was to be learned.
        round(&mut set, 0);
        assert!(!set.is_learning());
        // What was known has been lost.
        round(&mut set, 500);
        round(&mut set, 0);
        assert!(set.is_learning());
    }

    #[test]
    fn few_hot_tuples_say_nothing_until_there_are_more() {
        let mut set = HotSet::new();
        for _ in 0..5 {
            assert!(!set.is_learning());
            (0..100).for_each(|_| set.met(0));
            set.round_over(1000);
        }
        assert!(set.is_learning());
    }

    #[test]
    fn what_is_changed_stays_if_it_was_in_memory() {
        assert_eq!(of_changed(0, false), WRITTEN);
        assert_eq!(of_changed(MAX, false), MAX);
        assert!(of_changed(EVICT, true) <= EVICT);
        assert_eq!(of_changed(MAX, true), MAX);
    }

    #[test]
    fn what_is_let_in() {
        assert!(is_admitted(0, true, false));
        assert!(!is_admitted(ADMIT - 1, false, false));
        assert!(is_admitted(ADMIT, false, false));
        assert!(!is_admitted(0, false, true));
        assert!(is_admitted(1, false, true));
    }
}
