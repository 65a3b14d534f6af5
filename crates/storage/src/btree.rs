//! The B+tree: an ordered index from keys (bytes that sort as the values do)
//! to row ids.
//!
//! Entries are (key, row) pairs, ordered by key and then row, so that a key may
//! have any number of rows; a unique index asks [`BTree::get_first`] before it
//! inserts. Nodes keep the prefix that their keys share once and take memory as
//! they fill. Rows inserted in ascending order leave full leaves behind.
//!
//! Assumes the partition's lock. Does not survive a crash: checkpoints save
//! its nodes as pages ([`crate::changed_pages::Paged`]); damage in what is read
//! back is an error.

mod node;
mod scan;
mod snapshot;
#[cfg(test)]
mod tests;

use std::fmt;

use crate::changed_pages::ChangedPages;
use node::{Entries, NO_NODE, NODE_BYTES, Node, SPLIT_ENTRIES_MIN};
pub use scan::{Position, RowsEqual};

/// The longest key an index takes.
pub const KEY_BYTES_MAX: usize = 2048;

const CHUNK_NODES: usize = 256;
/// A node that uses less than this share of its bytes looks for a neighbour to
/// merge with, and merges if both fill no more than `MERGE_BYTES_MAX`.
const UNDERFULL_BYTES: usize = NODE_BYTES / 3;
const MERGE_BYTES_MAX: usize = NODE_BYTES * 3 / 4;

/// A key longer than [`KEY_BYTES_MAX`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyTooLong {
    /// Bytes of the key.
    pub key_bytes: usize,
}

impl fmt::Display for KeyTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.key_bytes;
        write!(f, "index key of {bytes} bytes exceeds {KEY_BYTES_MAX}")
    }
}

impl std::error::Error for KeyTooLong {}

/// An ordered index of (key, row) pairs.
pub struct BTree {
    /// Chunked, so that growth does not copy.
    nodes: Vec<Vec<Node>>,
    free: Vec<u32>,
    root: u32,
    len: usize,
    data_bytes: usize,
    changed: ChangedPages,
    scratch: Entries,
}

impl Default for BTree {
    fn default() -> Self {
        Self::new()
    }
}

impl BTree {
    /// An empty tree.
    pub fn new() -> Self {
        let mut tree = Self {
            nodes: Vec::new(),
            free: Vec::new(),
            root: 0,
            len: 0,
            data_bytes: 0,
            changed: ChangedPages::default(),
            scratch: Entries::default(),
        };
        tree.root = tree.add_node(Node::empty(0));
        tree
    }

    /// Number of (key, row) pairs.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of memory taken.
    pub fn bytes(&self) -> usize {
        let nodes: usize = self.nodes.iter().map(Vec::capacity).sum();
        self.data_bytes
            + nodes * size_of::<Node>()
            + self.nodes.capacity() * size_of::<Vec<Node>>()
            + self.free.capacity() * size_of::<u32>()
            + self.changed.bytes()
    }

    /// Adds an entry; false if this very pair was there already.
    ///
    /// # Errors
    /// [`KeyTooLong`].
    pub fn insert(&mut self, key: &[u8], row: u32) -> Result<bool, KeyTooLong> {
        if key.len() > KEY_BYTES_MAX {
            return Err(KeyTooLong {
                key_bytes: key.len(),
            });
        }
        let leaf = self.descend(key, u64::from(row), 0);
        let node = self.node(leaf);
        let index = node.rank(key, u64::from(row));
        if index < node.len() && node.row(index) == row && node.has_key(index, key) {
            return Ok(false);
        }
        self.insert_into(leaf, index, key, row, NO_NODE);
        self.len += 1;
        Ok(true)
    }

    /// Removes an entry; false if it is not there.
    pub fn remove(&mut self, key: &[u8], row: u32) -> bool {
        let leaf = self.descend(key, u64::from(row), 0);
        let node = self.node(leaf);
        let index = node.rank(key, u64::from(row));
        if index == node.len() || node.row(index) != row || !node.has_key(index, key) {
            return false;
        }
        self.node_mut(leaf).remove(index);
        self.len -= 1;
        let mut level = 0;
        while self.merge_underfull(key, row, level) {
            level += 1;
        }
        while self.node(self.root).level > 0 && self.node(self.root).len() == 0 {
            let root = self.root;
            self.root = self.node(root).first_child;
            self.drop_node(root);
        }
        true
    }

    // Structure.

    fn node(&self, id: u32) -> &Node {
        &self.nodes[id as usize / CHUNK_NODES][id as usize % CHUNK_NODES]
    }

    fn node_mut(&mut self, id: u32) -> &mut Node {
        self.changed.mark(id as usize);
        &mut self.nodes[id as usize / CHUNK_NODES][id as usize % CHUNK_NODES]
    }

    /// The node at `level` whose range (key, row) falls in.
    fn descend(&self, key: &[u8], row: u64, level: u8) -> u32 {
        let mut id = self.root;
        let mut node = self.node(id);
        while node.level > level {
            id = node.child(node.rank(key, row + 1));
            node = self.node(id);
        }
        id
    }

    fn insert_into(&mut self, id: u32, index: usize, key: &[u8], row: u32, child: u32) {
        let node = self.node_mut(id);
        if node.insert_in_place(index, key, row, child) {
            return;
        }
        let (count, level) = (node.len(), node.level);
        let at_right_edge = index == count && node.next == NO_NODE;
        let at_left_edge = index == 0 && node.prev == NO_NODE;
        let mut entries = std::mem::take(&mut self.scratch);
        entries.clear();
        self.node(id).take_apart(&mut entries);
        entries.insert(index, key, row, child);

        let mut bounds = vec![0, count + 1];
        if entries.node_bytes(0, count + 1, level) > NODE_BYTES {
            if at_right_edge && count >= SPLIT_ENTRIES_MIN {
                // What ascends will go on ascending: leave the full node full.
                bounds.insert(1, count);
            } else if at_left_edge && count >= SPLIT_ENTRIES_MIN {
                bounds.insert(1, 1);
            }
        }
        let mut part = 0;
        while part + 1 < bounds.len() {
            let (first, end) = (bounds[part], bounds[part + 1]);
            let fits = entries.node_bytes(first, end, level) <= NODE_BYTES;
            if fits || end - first < SPLIT_ENTRIES_MIN {
                part += 1;
            } else {
                bounds.insert(part + 1, split_point(&entries, first, end, index));
            }
        }
        self.lay_out_parts(id, &entries, &bounds);
        self.scratch = entries;
    }

    /// Lays out `entries` in node `id` and, beyond the first part, in new right
    /// neighbours, which the parents learn of.
    fn lay_out_parts(&mut self, id: u32, entries: &Entries, bounds: &[usize]) {
        let level = self.node(id).level;
        self.lay_out(id, entries, bounds[0], bounds[1]);
        let mut left = id;
        for part in bounds[1..].windows(2) {
            let (first, end) = (part[0], part[1]);
            let right = self.add_node(Node::empty(level));
            let after = std::mem::replace(&mut self.node_mut(left).next, right);
            if after != NO_NODE {
                self.node_mut(after).prev = right;
            }
            let node = self.node_mut(right);
            (node.prev, node.next) = (left, after);
            // An inner node's first separator moves up, its child stays.
            let moves_up = usize::from(level > 0);
            if level > 0 {
                node.first_child = entries.list[first].child;
            }
            self.lay_out(right, entries, first + moves_up, end);
            let (key, row) = (entries.key(first).to_vec(), entries.list[first].row);
            self.insert_separator(level + 1, &key, row, right);
            left = right;
        }
    }

    fn insert_separator(&mut self, level: u8, key: &[u8], row: u32, child: u32) {
        if self.node(self.root).level < level {
            let mut root = Node::empty(level);
            root.first_child = self.root;
            self.root = self.add_node(root);
        }
        let parent = self.descend(key, u64::from(row), level);
        let index = self.node(parent).rank(key, u64::from(row));
        self.insert_into(parent, index, key, row, child);
    }

    /// Merges the node at `level` on the way to (key, row) with a neighbour if
    /// it is underfull and both fit one node. True if the parent lost a child
    /// and may be underfull itself.
    fn merge_underfull(&mut self, key: &[u8], row: u32, level: u8) -> bool {
        let root = self.node(self.root);
        if root.level <= level {
            return false;
        }
        let parent = self.descend(key, u64::from(row), level + 1);
        let node = self.node(parent);
        if node.len() == 0 {
            // An only child: its parent is to be merged first.
            return true;
        }
        let at = node.rank(key, u64::from(row) + 1);
        let id = node.child(at);
        if self.node(id).used_bytes() >= UNDERFULL_BYTES {
            return false;
        }
        let separator = if at < node.len() { at } else { at - 1 };
        let (left, right) = (node.child(separator), node.child(separator + 1));
        self.merge(parent, separator, left, right)
    }

    /// Merges two neighbours under `parent`; false if they do not fit one node.
    fn merge(&mut self, parent: u32, separator: usize, left: u32, right: u32) -> bool {
        let (l, r) = (self.node(left), self.node(right));
        let level = l.level;
        let emptied = level == 0 && (l.len() == 0 || r.len() == 0);
        if !emptied && l.used_bytes() + r.used_bytes() > MERGE_BYTES_MAX {
            return false;
        }
        let mut entries = std::mem::take(&mut self.scratch);
        entries.clear();
        self.node(left).take_apart(&mut entries);
        if level > 0 {
            let above = self.node(parent);
            let key = [above.prefix(), above.suffix(separator)].concat();
            let (end, child) = (entries.list.len(), self.node(right).first_child);
            entries.insert(end, &key, above.row(separator), child);
        }
        self.node(right).take_apart(&mut entries);
        let count = entries.list.len();
        // Without their separate prefixes they may need more than before.
        let fits = emptied || entries.node_bytes(0, count, level) <= NODE_BYTES;
        if fits {
            self.lay_out(left, &entries, 0, count);
            let after = self.node(right).next;
            self.node_mut(left).next = after;
            if after != NO_NODE {
                self.node_mut(after).prev = left;
            }
            self.drop_node(right);
            self.node_mut(parent).remove(separator);
        }
        self.scratch = entries;
        fits
    }

    fn lay_out(&mut self, id: u32, entries: &Entries, first: usize, end: usize) {
        let node = self.node_mut(id);
        let before_bytes = node.data.len();
        node.lay_out(entries, first, end);
        let after_bytes = node.data.len();
        self.data_bytes = self.data_bytes + after_bytes - before_bytes;
    }

    fn add_node(&mut self, node: Node) -> u32 {
        self.data_bytes += node.data.len();
        if let Some(id) = self.free.pop() {
            *self.node_mut(id) = node;
            return id;
        }
        let id = self.node_count();
        self.changed.mark(id as usize);
        match self.nodes.last_mut() {
            Some(chunk) if chunk.len() < CHUNK_NODES => chunk.push(node),
            // The first grows by itself: a small table's tree is small.
            None => self.nodes.push(vec![node]),
            Some(_) => {
                let mut chunk = Vec::with_capacity(CHUNK_NODES);
                chunk.push(node);
                self.nodes.push(chunk);
            }
        }
        id
    }

    /// Nodes, used and free.
    fn node_count(&self) -> u32 {
        let last = self.nodes.last().map_or(CHUNK_NODES, Vec::len);
        (self.nodes.len() * CHUNK_NODES + last - CHUNK_NODES) as u32
    }

    fn drop_node(&mut self, id: u32) {
        self.data_bytes -= self.node(id).data.len();
        *self.node_mut(id) = Node::empty(0);
        self.free.push(id);
    }
}

/// Where to cut `first..end`, in the middle by bytes. Where the new entry at
/// `index` came in at an end and broke the others' common prefix, it goes alone.
fn split_point(entries: &Entries, first: usize, end: usize, index: usize) -> usize {
    let total = |from: usize, to: usize| -> usize {
        let sizes = entries.list[from..to]
            .iter()
            .map(|e| e.key_len as usize + 4);
        sizes.sum()
    };
    if index == first && entries.node_bytes(first + 1, end, 0) <= NODE_BYTES / 2 {
        return first + 1;
    }
    if index + 1 == end && entries.node_bytes(first, end - 1, 0) <= NODE_BYTES / 2 {
        return end - 1;
    }
    let half = total(first, end) / 2;
    let mut middle = first + 1;
    let mut bytes = total(first, middle);
    while middle + 1 < end && bytes < half {
        bytes += total(middle, middle + 1);
        middle += 1;
    }
    middle
}
