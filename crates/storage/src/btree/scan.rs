//! Reading a B+tree: point look-ups, range scans in both directions, and
//! positions that callers step through one by one (to merge several trees).
//!
//! A [`Position`] is good until the tree changes; after that, begin again
//! behind the last entry seen (`resume`, [`BTree::seek_beyond`]).

use std::ops::{Bound, ControlFlow};

use super::BTree;
use super::node::{NO_NODE, ROW_AFTER_ALL};

/// Where an entry is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    leaf: u32,
    slot: u32,
}

/// A place between entries: before all that are not below (key, row); `None` is
/// the end of the tree on the side in question.
type Gap<'a> = Option<(&'a [u8], u64)>;

fn lower_gap(bound: Bound<&[u8]>) -> Gap<'_> {
    match bound {
        Bound::Included(key) => Some((key, 0)),
        Bound::Excluded(key) => Some((key, ROW_AFTER_ALL)),
        Bound::Unbounded => None,
    }
}

fn upper_gap(bound: Bound<&[u8]>) -> Gap<'_> {
    match bound {
        Bound::Included(key) => Some((key, ROW_AFTER_ALL)),
        Bound::Excluded(key) => Some((key, 0)),
        Bound::Unbounded => None,
    }
}

impl BTree {
    /// The lowest row id of exactly this key.
    #[inline]
    pub fn get_first(&self, key: &[u8]) -> Option<u32> {
        self.rows_equal(key).next()
    }

    /// The row ids of exactly this key, ascending.
    #[inline]
    pub fn rows_equal(&self, key: &[u8]) -> RowsEqual<'_> {
        let leaf = self.descend(key, 0, 0);
        let node = self.node(leaf);
        let slot = node.rank(key, 0);
        if slot < node.len() {
            // The usual case asks for no second search: one row, or none.
            let mut end = slot;
            while end < node.len() && end < slot + 2 && node.has_key(end, key) {
                end += 1;
            }
            if end < slot + 2 && end < node.len() {
                return RowsEqual::within(self, leaf, slot, end);
            }
        }
        // The key's rows may go on in the next leaf, or begin there.
        let (last_leaf, last_slot) = self.gap_place(Some((key, ROW_AFTER_ALL)), true);
        RowsEqual {
            tree: self,
            leaf,
            slot,
            last_leaf,
            last_slot,
        }
    }

    /// Calls `visit(key, row)` for the entries within the bounds, in order of
    /// (key, row) or against it, until it breaks.
    pub fn scan(
        &self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        ascending: bool,
        visit: impl FnMut(&[u8], u32) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.scan_from(lower, upper, ascending, None, visit)
    }

    /// As [`BTree::scan`], beginning behind the entry `resume`, which need not
    /// exist any more.
    pub fn scan_from(
        &self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        ascending: bool,
        resume: Option<(&[u8], u32)>,
        visit: impl FnMut(&[u8], u32) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let (mut low, mut high) = (lower_gap(lower), upper_gap(upper));
        match resume {
            Some((key, row)) if ascending => low = low.max(Some((key, u64::from(row) + 1))),
            Some((key, row)) => {
                let here = (key, u64::from(row));
                high = Some(high.map_or(here, |high| high.min(here)));
            }
            None => {}
        }
        if let (Some(low), Some(high)) = (low, high)
            && low >= high
        {
            return ControlFlow::Continue(());
        }
        let first = self.gap_place(low, false);
        let last = self.gap_place(high, true);
        if ascending {
            self.scan_up(first, last, visit)
        } else {
            self.scan_down(first, last, visit)
        }
    }

    /// The first entry within a bound: the lower one when `ascending`, else the
    /// upper one. `None` if no entry is within.
    pub fn seek(&self, bound: Bound<&[u8]>, ascending: bool) -> Option<Position> {
        if ascending {
            self.entry_at_or_after(self.gap_place(lower_gap(bound), false))
        } else {
            self.entry_before(self.gap_place(upper_gap(bound), true))
        }
    }

    /// The next entry in the direction behind (key, row), which need not exist.
    pub fn seek_beyond(&self, key: &[u8], row: u32, ascending: bool) -> Option<Position> {
        let row = u64::from(row);
        if ascending {
            self.entry_at_or_after(self.gap_place(Some((key, row + 1)), false))
        } else {
            self.entry_before(self.gap_place(Some((key, row)), true))
        }
    }

    /// The next entry in the direction.
    pub fn advance(&self, position: Position, ascending: bool) -> Option<Position> {
        let Position { leaf, slot } = position;
        if ascending {
            self.entry_at_or_after((leaf, slot as usize + 1))
        } else {
            self.entry_before((leaf, slot as usize))
        }
    }

    /// The row of the entry at `position`; its key replaces what `key` holds.
    pub fn entry(&self, position: Position, key: &mut Vec<u8>) -> u32 {
        let node = self.node(position.leaf);
        let slot = position.slot as usize;
        key.clear();
        key.extend_from_slice(node.prefix());
        key.extend_from_slice(node.suffix(slot));
        node.row(slot)
    }

    /// The leaf and slot of the first entry behind a gap. The slot may be one
    /// beyond the leaf's last.
    fn gap_place(&self, gap: Gap<'_>, none_is_end: bool) -> (u32, usize) {
        if let Some((key, row)) = gap {
            let leaf = self.descend(key, row, 0);
            return (leaf, self.node(leaf).rank(key, row));
        }
        let mut id = self.root;
        loop {
            let node = self.node(id);
            let last = if none_is_end { node.len() } else { 0 };
            if node.level == 0 {
                return (id, last);
            }
            id = node.child(last);
        }
    }

    fn entry_at_or_after(&self, place: (u32, usize)) -> Option<Position> {
        let (mut leaf, mut slot) = place;
        loop {
            let node = self.node(leaf);
            if slot < node.len() {
                let slot = slot as u32;
                return Some(Position { leaf, slot });
            }
            (leaf, slot) = (node.next, 0);
            if leaf == NO_NODE {
                return None;
            }
        }
    }

    fn entry_before(&self, place: (u32, usize)) -> Option<Position> {
        let (mut leaf, mut slot) = place;
        loop {
            if let Some(slot) = slot.checked_sub(1) {
                let slot = slot as u32;
                return Some(Position { leaf, slot });
            }
            leaf = self.node(leaf).prev;
            if leaf == NO_NODE {
                return None;
            }
            slot = self.node(leaf).len();
        }
    }

    /// Whether the first entry from a place on has this key.
    pub(super) fn entry_at_or_after_has(&self, place: (u32, usize), key: &[u8]) -> bool {
        self.entry_at_or_after(place)
            .is_some_and(|at| self.node(at.leaf).has_key(at.slot as usize, key))
    }

    /// Whether the last entry before a place has this key.
    pub(super) fn entry_before_has(&self, place: (u32, usize), key: &[u8]) -> bool {
        self.entry_before(place)
            .is_some_and(|at| self.node(at.leaf).has_key(at.slot as usize, key))
    }

    fn scan_up(
        &self,
        first: (u32, usize),
        last: (u32, usize),
        mut visit: impl FnMut(&[u8], u32) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let (mut leaf, mut slot) = first;
        let mut key = Vec::with_capacity(64);
        while leaf != NO_NODE {
            let node = self.node(leaf);
            let end = if leaf == last.0 { last.1 } else { node.len() };
            key.clear();
            key.extend_from_slice(node.prefix());
            let rows = node.rows();
            while slot < end {
                key.truncate(node.prefix_len as usize);
                key.extend_from_slice(node.suffix(slot));
                visit(&key, rows.at(slot))?;
                slot += 1;
            }
            if leaf == last.0 {
                break;
            }
            (leaf, slot) = (node.next, 0);
        }
        ControlFlow::Continue(())
    }

    fn scan_down(
        &self,
        first: (u32, usize),
        last: (u32, usize),
        mut visit: impl FnMut(&[u8], u32) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let (mut leaf, mut end) = last;
        let mut key = Vec::with_capacity(64);
        loop {
            let node = self.node(leaf);
            let start = if leaf == first.0 { first.1 } else { 0 };
            key.clear();
            key.extend_from_slice(node.prefix());
            let rows = node.rows();
            while end > start {
                end -= 1;
                key.truncate(node.prefix_len as usize);
                key.extend_from_slice(node.suffix(end));
                visit(&key, rows.at(end))?;
            }
            if leaf == first.0 || node.prev == NO_NODE {
                return ControlFlow::Continue(());
            }
            leaf = node.prev;
            end = self.node(leaf).len();
        }
    }
}

/// The rows of one key.
pub struct RowsEqual<'a> {
    tree: &'a BTree,
    leaf: u32,
    slot: usize,
    last_leaf: u32,
    last_slot: usize,
}

impl<'a> RowsEqual<'a> {
    fn within(tree: &'a BTree, leaf: u32, slot: usize, end: usize) -> Self {
        Self {
            tree,
            leaf,
            slot,
            last_leaf: leaf,
            last_slot: end,
        }
    }
}

impl Iterator for RowsEqual<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        loop {
            let node = self.tree.node(self.leaf);
            if self.leaf == self.last_leaf {
                if self.slot >= self.last_slot {
                    return None;
                }
            } else if self.slot >= node.len() {
                (self.leaf, self.slot) = (node.next, 0);
                continue;
            }
            self.slot += 1;
            return Some(node.row(self.slot - 1));
        }
    }
}
