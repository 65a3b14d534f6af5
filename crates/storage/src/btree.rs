//! The B+tree: an ordered index from keys (bytes that sort as the values do)
//! to row ids.
//!
//! Entries are (key, row) pairs, ordered by key and then row, so that a key may
//! have any number of rows; a unique index asks [`BTree::get_first`] before it
//! inserts. Nodes keep the prefix that their keys share once, leaves what their
//! rows share, and they take memory as they fill. Keys inserted in ascending
//! order leave leaves behind that are full, or whose keys and rows would all take
//! more bytes with the next one: integers and their rows take two or three bytes.
//!
//! Assumes the partition's lock. Does not survive a crash: checkpoints save
//! its nodes as pages ([`crate::changed_pages::Paged`]); damage in what is read
//! back is an error.

mod append;
mod layout;
mod node;
mod scan;
mod snapshot;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;

use crate::changed_pages::ChangedPages;
use layout::Entries;
use node::{NO_NODE, NODE_BYTES, Node, SPLIT_ENTRIES_MIN};
pub use scan::{Position, RowsEqual};

/// The longest key an index takes.
pub const KEY_BYTES_MAX: usize = 2048;

const CHUNK_NODES: usize = 256;
/// A node that uses less than this share of its bytes looks for a neighbour to
/// merge with, and merges if both fill no more than `MERGE_BYTES_MAX`.
const UNDERFULL_BYTES: usize = NODE_BYTES / 3;
const MERGE_BYTES_MAX: usize = NODE_BYTES * 3 / 4;
/// What a node takes beside the data it needs: itself, its separator above it,
/// and what is free of its data.
const NODE_OWN_BYTES: usize = 80;
/// A leaf with fewer entries is not left behind because the next would widen
/// them: scans go from leaf to leaf.
const LEFT_ENTRIES_MIN: usize = 32;

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
    fingers: Fingers,
}

/// Where entries were inserted last: several clients may each insert ascending keys, not all
/// at the right edge, and leave full leaves behind nevertheless.
#[derive(Default)]
struct Fingers {
    /// Leaves, and the index behind the entry inserted last.
    places: [(u32, u32); FINGERS],
    next: usize,
}

const FINGERS: usize = 8;

impl Fingers {
    /// Notes an insert. Whether the one before it in the leaf was right before it.
    fn goes_on(&mut self, leaf: u32, index: usize) -> bool {
        let (index, behind) = (index as u32, index as u32 + 1);
        match self.places.iter_mut().find(|place| place.0 == leaf) {
            Some(place) => std::mem::replace(&mut place.1, behind) == index,
            None => {
                self.point(leaf, behind);
                false
            }
        }
    }

    fn point(&mut self, leaf: u32, behind: u32) {
        self.places[self.next] = (leaf, behind);
        self.next = (self.next + 1) % FINGERS;
    }
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
            fingers: Fingers::default(),
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
        let (leaf, index) = self.place_for(key, row)?;
        let node = self.node(leaf);
        if index < node.len() && node.row(index) == row && node.has_key(index, key) {
            return Ok(false);
        }
        self.insert_at(leaf, index, key, row);
        Ok(true)
    }

    /// Adds an entry of a key that no row has yet; false, and nothing is added, if one has it. One
    /// way down the tree instead of two.
    ///
    /// # Errors
    /// [`KeyTooLong`].
    pub fn insert_unique(&mut self, key: &[u8], row: u32) -> Result<bool, KeyTooLong> {
        let (leaf, index) = self.place_for(key, row)?;
        // Rows of one key are side by side, wherever among them this one belongs.
        let is_there = self.entry_at_or_after_has((leaf, index), key)
            || self.entry_before_has((leaf, index), key);
        if is_there {
            return Ok(false);
        }
        self.insert_at(leaf, index, key, row);
        Ok(true)
    }

    /// Where an entry belongs.
    fn place_for(&self, key: &[u8], row: u32) -> Result<(u32, usize), KeyTooLong> {
        if key.len() > KEY_BYTES_MAX {
            return Err(KeyTooLong {
                key_bytes: key.len(),
            });
        }
        let leaf = self.descend(key, u64::from(row), 0);
        Ok((leaf, self.node(leaf).rank(key, u64::from(row))))
    }

    fn insert_at(&mut self, leaf: u32, index: usize, key: &[u8], row: u32) {
        let ascends = self.fingers.goes_on(leaf, index);
        self.insert_into(leaf, index, key, row, NO_NODE, ascends);
        self.len += 1;
    }

    /// Removes an entry; false if it is not there.
    pub fn remove(&mut self, key: &[u8], row: u32) -> bool {
        let leaf = self.descend(key, u64::from(row), 0);
        let node = self.node(leaf);
        let index = node.rank(key, u64::from(row));
        if index == node.len() || node.row(index) != row || !node.has_key(index, key) {
            return false;
        }
        let node = self.node_mut(leaf);
        let before_bytes = node.data.len();
        node.remove(index);
        let (after_bytes, underfull) = (node.data.len(), node.is_underfull(UNDERFULL_BYTES));
        self.data_bytes = self.data_bytes + after_bytes - before_bytes;
        self.len -= 1;
        if !underfull {
            return true;
        }
        let mut level = 0;
        while self.merge_underfull(key, row, level) {
            level += 1;
        }
        while self.node(self.root).level > 0 && self.node(self.root).len() == 0 {
            let root = self.root;
            self.root = self.node(root).first_child();
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

    /// Inserts an entry in its place. `ascends`: the one inserted before it in this leaf lies
    /// right before it.
    fn insert_into(
        &mut self,
        id: u32,
        index: usize,
        key: &[u8],
        row: u32,
        child: u32,
        ascends: bool,
    ) {
        let node = self.node_mut(id);
        let before_bytes = node.data.len();
        let inserted = node.insert_in_place(index, key, row, child);
        let grown_bytes = node.data.len() - before_bytes;
        self.data_bytes += grown_bytes;
        if inserted {
            return;
        }
        let node = self.node(id);
        let (count, level) = (node.len(), node.level);
        let at_right_edge = index == count && node.next == NO_NODE;
        let at_left_edge = index == 0 && node.prev == NO_NODE;
        let mut entries = std::mem::take(&mut self.scratch);
        entries.clear();
        self.node(id).take_apart(&mut entries);
        entries.insert(index, key, row, child);

        let mut bounds = vec![0, count + 1];
        // What ascends will go on ascending: leave the full node full.
        let cut = match (at_right_edge, at_left_edge) {
            (true, _) => Some(count),
            (_, true) => Some(1),
            // What was there goes out of the way of what comes, and that fills the leaf.
            _ if ascends => Some(count.min(index + 1)),
            _ => None,
        };
        if let Some(cut) = cut
            && count >= SPLIT_ENTRIES_MIN
            && is_full(&entries, level, index)
        {
            bounds.insert(1, cut);
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
        let left_full = level == 0 && index == count && bounds == [0, count, count + 1];
        self.lay_out_parts(id, &entries, &bounds, row, usize::from(left_full));
        self.scratch = entries;
        if left_full {
            self.fingers.point(self.node(id).next, 1);
        }
    }

    /// Lays out `entries` in node `id` and, beyond the first part, in new right
    /// neighbours, which the parents learn of. `full`: so many from the left on expect nothing
    /// more.
    fn lay_out_parts(
        &mut self,
        id: u32,
        entries: &Entries,
        bounds: &[usize],
        newest: u32,
        full: usize,
    ) {
        let level = self.node(id).level;
        self.lay_out(id, entries, bounds[0]..bounds[1], newest, full > 0);
        let mut left = id;
        for (number, part) in bounds.windows(2).enumerate().skip(1) {
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
                node.set_first_child(entries.list[first].child);
            }
            self.lay_out(right, entries, first + moves_up..end, newest, number < full);
            let (key, row) = (entries.key(first).to_vec(), entries.list[first].row);
            self.insert_separator(level + 1, &key, row, right);
            left = right;
        }
    }

    fn insert_separator(&mut self, level: u8, key: &[u8], row: u32, child: u32) {
        if self.node(self.root).level < level {
            let mut root = Node::empty(level);
            root.set_first_child(self.root);
            self.root = self.add_node(root);
        }
        let parent = self.descend(key, u64::from(row), level);
        let index = self.node(parent).rank(key, u64::from(row));
        self.insert_into(parent, index, key, row, child, false);
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
        let last = node.len() - 1;
        if !self.node(node.child(at)).is_underfull(UNDERFULL_BYTES) {
            return false;
        }
        let beside = [Some(at), at.checked_sub(1)];
        let mut separators = beside.into_iter().flatten().filter(|s| *s <= last);
        separators.any(|separator| self.merge(parent, separator))
    }

    /// Merges the two neighbours beside a separator of `parent`; false if they
    /// do not fit one node, or would take more memory in it than in two.
    fn merge(&mut self, parent: u32, separator: usize) -> bool {
        let above = self.node(parent);
        let (left, right) = (above.child(separator), above.child(separator + 1));
        let (l, r) = (self.node(left), self.node(right));
        let level = l.level;
        let emptied = level == 0 && (l.len() == 0 || r.len() == 0);
        if !emptied {
            let bytes = l.used_bytes() + r.used_bytes();
            if bytes > MERGE_BYTES_MAX || level == 0 && !l.joins_within(r, bytes + NODE_OWN_BYTES) {
                return false;
            }
        }
        let mut entries = std::mem::take(&mut self.scratch);
        entries.clear();
        self.node(left).take_apart(&mut entries);
        if level > 0 {
            let above = self.node(parent);
            let key = [above.prefix(), above.suffix(separator)].concat();
            let (end, child) = (entries.list.len(), self.node(right).first_child());
            entries.insert(end, &key, above.row(separator), child);
        }
        self.node(right).take_apart(&mut entries);
        let count = entries.list.len();
        // Without their separate prefixes they may need more than before.
        let fits = emptied || entries.node_bytes(0, count, level) <= NODE_BYTES;
        if fits {
            self.lay_out(left, &entries, 0..count, u32::MAX, false);
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

    fn lay_out(
        &mut self,
        id: u32,
        entries: &Entries,
        part: Range<usize>,
        newest: u32,
        linear: bool,
    ) {
        let node = self.node_mut(id);
        let before_bytes = node.data.len();
        node.lay_out(entries, part, newest, linear);
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

/// Whether a node is full for the entry that came in: there is no room, or it came in at an
/// end and the others would take more bytes with it than a node of its own.
fn is_full(entries: &Entries, level: u8, index: usize) -> bool {
    let count = entries.list.len();
    if entries.node_bytes(0, count, level) > NODE_BYTES {
        return true;
    }
    let inside = index > 0 && index + 1 < count;
    if level > 0 || inside || count <= LEFT_ENTRIES_MIN {
        return false;
    }
    // As they would be in a leaf that is left full.
    let first = usize::from(index == 0);
    let whole = entries.layout(0, count, 0, true);
    let others = entries.layout(first, first + count - 1, 0, true).bytes;
    whole.bytes - whole.bytes_of_entry(entries.key(index).len()) > others + NODE_OWN_BYTES
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
