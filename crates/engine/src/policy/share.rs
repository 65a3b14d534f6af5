//! A part of something, as settings say it.

use std::fmt;

/// A share, in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u32);

impl Share {
    /// All of it.
    pub const WHOLE: Share = Share(1_000_000);

    pub(super) const fn fixed(millionths: u32) -> Share {
        assert!(millionths > 0 && millionths <= Self::WHOLE.0);
        Share(millionths)
    }

    /// So many millionths; None for nothing, and for more than all.
    #[must_use]
    pub fn of_millionths(millionths: u32) -> Option<Share> {
        (1..=Self::WHOLE.0)
            .contains(&millionths)
            .then_some(Share(millionths))
    }

    /// In millionths.
    #[must_use]
    pub fn millionths(self) -> u32 {
        self.0
    }

    /// This share of a number.
    #[must_use]
    pub fn of(self, all: u64) -> u64 {
        let part = u128::from(all) * u128::from(self.0) / u128::from(Self::WHOLE.0);
        u64::try_from(part).unwrap_or(u64::MAX)
    }

    /// `0.01`; None for 0 and below, beyond 1, and what is no number.
    pub(crate) fn read(text: &str, whole: f64) -> Option<Share> {
        let share: f64 = text.trim().parse().ok()?;
        let millionths = share / whole * f64::from(Self::WHOLE.0);
        let in_range = millionths >= 1.0 && millionths <= f64::from(Self::WHOLE.0);
        in_range.then_some(Share(millionths.round() as u32))
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", f64::from(self.0) / f64::from(Self::WHOLE.0))
    }
}
