//! A group of a hash index on its way from one geometry to the next.
//!
//! The new lines are filled here, side by side, and then put in their place.
//! Where a group splits, the two new ones lie one behind the other.

use super::line::{Line, Window, filter_bit};
use super::side::{Stray, align_top};
use super::{GROUP_LINES, Geometry, PROBE_LINES_MAX};

const LINES_MAX: usize = 2 * GROUP_LINES as usize;

pub(super) struct Swept {
    pub lines: [Line; LINES_MAX],
    /// Entries for which there was no room, or no hash bit to split by.
    pub strays: Vec<Stray>,
    group: u64,
    old: Geometry,
    new: Geometry,
}

impl Swept {
    pub fn new(group: u64, old: Geometry, new: Geometry) -> Self {
        Self {
            lines: [Line::EMPTY; LINES_MAX],
            strays: Vec::new(),
            group,
            old,
            new,
        }
    }

    /// Moves the entries of one of the group's old lines.
    pub fn take(&mut self, line: &Line) {
        for index in 0..line.len() {
            let (window, row) = (line.window(index), line.row(index));
            if self.old.level == self.new.level {
                self.put(0, window, row);
            } else if let Some((half, window)) = window.split() {
                self.put(half, window, row);
            } else {
                self.strays.push(Stray {
                    prefix: align_top(self.group, self.old.level),
                    known_bits: self.old.level as u8,
                    spread: window.spread,
                    row,
                });
            }
        }
    }

    #[inline]
    fn put(&mut self, half: u64, window: Window, row: u32) {
        let group_lines = self.new.lines as usize;
        let first = half as usize * group_lines;
        let lines = &mut self.lines[first..first + group_lines];
        let home = self.new.home(window.spread) as usize;
        for tried in 0..group_lines.min(PROBE_LINES_MAX as usize) {
            let at = home + tried;
            let line = &mut lines[if at < group_lines {
                at
            } else {
                at - group_lines
            }];
            if line.push(window, row) {
                return;
            }
            line.passed |= filter_bit(window.spread);
        }
        let level = self.new.level;
        let group = self.group << (level - self.old.level) | half;
        self.strays.push(Stray {
            prefix: align_top(group, level) | window.known().checked_shr(level).unwrap_or(0),
            known_bits: (level + window.valid_bits()) as u8,
            spread: window.spread,
            row,
        });
    }
}
