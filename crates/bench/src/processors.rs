//! What the host of a virtual machine takes of its processors. A figure that was measured
//! meanwhile says little about what was measured.

use std::fs;

/// Time of all processors since the machine's start, in the kernel's ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Processors {
    all: u64,
    idle: u64,
    stolen: u64,
}

impl Processors {
    /// As it is now; zeros where the kernel does not tell.
    pub fn read() -> Self {
        Self::parse(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// The first line: user, nice, system, idle, waiting, interrupts (two), stolen; time of
    /// guests, which follows, is in user already.
    fn parse(stat: &str) -> Self {
        let first = stat.lines().next().unwrap_or_default();
        let ticks = first.split_whitespace().skip(1).take(8);
        let ticks: Vec<u64> = ticks.filter_map(|tick| tick.parse().ok()).collect();
        Processors {
            all: ticks.iter().sum(),
            idle: ticks.iter().skip(3).take(2).sum(),
            stolen: ticks.get(7).copied().unwrap_or(0),
        }
    }

    /// The share of all processors that the host took since `before`, from 0 to 1.
    pub fn stolen_since(&self, before: &Self) -> f64 {
        let all = self.all.saturating_sub(before.all);
        self.stolen.saturating_sub(before.stolen) as f64 / all.max(1) as f64
    }

    /// The share of all processors that was used since `before`, by whomever, from 0 to 1.
    pub fn used_since(&self, before: &Self) -> f64 {
        let all = self.all.saturating_sub(before.all);
        let idle = self.idle.saturating_sub(before.idle);
        all.saturating_sub(idle) as f64 / all.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_what_was_stolen_of_all_ticks_between_two_readings() {
        let before = Processors::parse("cpu  100 0 50 800 0 0 10 40 7 0\ncpu0 1 2 3\n");
        let after = Processors::parse("cpu  150 0 60 820 0 0 10 60 9 0\n");
        assert_eq!(after.stolen_since(&before), 0.2);
        assert_eq!(after.used_since(&before), 0.8);
        assert_eq!(before.stolen_since(&before), 0.0);
    }

    #[test]
    fn where_nothing_is_told_nothing_was_stolen() {
        let (none, some) = (Processors::parse(""), Processors::parse("cpu 1 2 3"));
        assert_eq!(some.stolen_since(&none), 0.0);
        assert_eq!(none.stolen_since(&some), 0.0);
    }
}
