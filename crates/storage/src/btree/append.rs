//! Adding many entries behind all that are there. Leaves are laid out once and are full, as those
//! that ascending inserts leave behind. No place is looked for but that of each leaf.

use super::layout::{Entries, bytes_for, bytes_of_prefix, slot_bytes};
use super::node::{NO_NODE, NODE_BYTES, SPLIT_ENTRIES_MIN};
use super::{BTree, KEY_BYTES_MAX, KeyTooLong, LEFT_ENTRIES_MIN, NODE_OWN_BYTES};

/// Entries that are laid out together.
const ENTRIES_AT_ONCE: usize = 4096;

impl BTree {
    /// Whether entries from this key on may be appended: all keys that are there are below it. Not
    /// if the last leaf is empty beside others: what it is for may begin further on.
    #[must_use]
    pub fn ends_before(&self, key: &[u8]) -> bool {
        let leaf = self.last_leaf();
        let node = self.node(leaf);
        match node.len().checked_sub(1) {
            Some(last) => *[node.prefix(), node.suffix(last)].concat() < *key,
            None => leaf == self.root,
        }
    }

    /// Adds entries that ascend, by key and then by row, to a tree that ends before the first
    /// ([`BTree::ends_before`]).
    ///
    /// # Errors
    /// [`KeyTooLong`]; the entries before that one are there.
    pub fn append<'k>(
        &mut self,
        entries: impl IntoIterator<Item = (&'k [u8], u32)>,
    ) -> Result<(), KeyTooLong> {
        let mut left = entries.into_iter().peekable();
        while left.peek().is_some() {
            let leaf = self.last_leaf();
            let mut gathered = std::mem::take(&mut self.scratch);
            gathered.clear();
            self.node(leaf).take_apart(&mut gathered);
            let before = gathered.list.len();
            let fits = |(key, _): &(&[u8], u32)| key.len() <= KEY_BYTES_MAX;
            while gathered.list.len() < before + ENTRIES_AT_ONCE
                && let Some((key, row)) = left.next_if(fits)
            {
                let end = gathered.list.len();
                debug_assert!(
                    end == 0 || (gathered.key(end - 1), gathered.list[end - 1].row) < (key, row),
                    "an entry is not behind the one before"
                );
                gathered.insert(end, key, row, NO_NODE);
            }
            let added = gathered.list.len() - before;
            if added > 0 {
                self.lay_out_behind(leaf, &gathered);
                self.len += added;
            }
            self.scratch = gathered;
            if let Some((key, _)) = left.peek().filter(|entry| !fits(entry)) {
                return Err(KeyTooLong {
                    key_bytes: key.len(),
                });
            }
        }
        Ok(())
    }

    pub(super) fn last_leaf(&self) -> u32 {
        let mut id = self.root;
        while self.node(id).level > 0 {
            let node = self.node(id);
            id = node.child(node.len());
        }
        id
    }

    /// Makes leaves of `entries`, of which the last one of the tree is the first.
    fn lay_out_behind(&mut self, leaf: u32, entries: &Entries) {
        let (mut bounds, mut end) = (vec![0], 0);
        while end < entries.list.len() {
            end = end_of_leaf(entries, end);
            bounds.push(end);
        }
        let newest = entries.list[end - 1].row;
        let full = bounds.len() - 2;
        self.lay_out_parts(leaf, entries, &bounds, newest, full);
    }
}

/// Where the leaf ends that begins at `first`: it is full, or what it has would take more together
/// with the next entry than a node of its own.
fn end_of_leaf(entries: &Entries, first: usize) -> usize {
    let head = entries.key(first);
    let (mut prefix, mut keys, mut before) = (head.len(), 0, 0);
    let (mut low, mut high, mut variable) = (u32::MAX, 0, false);
    for (at, entry) in entries.list.iter().enumerate().skip(first) {
        let (key, count) = (entries.key(at), at + 1 - first);
        let pairs = head[..prefix].iter().zip(key);
        prefix = pairs.take_while(|(a, b)| a == b).count();
        keys += key.len();
        variable |= key.len() != head.len();
        (low, high) = (low.min(entry.row), high.max(entry.row));
        let slot = slot_bytes(0, bytes_for(high - low), variable);
        let bytes = bytes_of_prefix(prefix) + keys - prefix * count + slot * count;
        let own = key.len() - prefix + slot;
        let widens = count > LEFT_ENTRIES_MIN && bytes - own > before + NODE_OWN_BYTES;
        if count >= SPLIT_ENTRIES_MIN && (bytes > NODE_BYTES || widens) {
            return at;
        }
        before = bytes;
    }
    entries.list.len()
}
