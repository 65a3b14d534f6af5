//! What was read of row groups and stays in memory, encoded as it is: chunks of columns, whole or by
//! pages. A column that is used is hot, chunk by chunk. There is room for so many bytes. What leaves
//! first is what its table lets go first, and of that what was not used for longest (CLOCK).
//!
//! One lock, taken for a chunk or a page and not for a tuple. Blocks never change and their ids are never
//! used again, so nothing in here is ever wrong; what is of a block that is gone leaves by disuse.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use parking_lot::Mutex;
use thermocline_storage::columns::{ColumnPlace, Directory};

/// What there may be of a block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Piece {
    /// Its directory.
    Directory,
    /// The checksums of its pages.
    Sums,
    /// A chunk, by its number.
    Chunk(usize),
    /// Where the parts of a column lie.
    Place(usize),
    /// A page.
    Page(usize),
}

type Key = (u32, Piece);
/// What an entry takes beside its bytes.
const ENTRY_BYTES: u64 = 112;

/// When something leaves, beside others: the higher the sooner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Leaves(u8);

impl Leaves {
    /// By the table's `unload_priority`; what was loaded by command leaves after the rest of it.
    pub fn new(priority: u8, is_loaded: bool) -> Self {
        Leaves((priority * 2 + u8::from(!is_loaded)).min(QUEUES as u8 - 1))
    }
}

/// Keys may stand in line that are not there any more: so many, beside as many as there are.
const STALE_MAX: usize = 1024;
/// Ten priorities, loaded or not.
const QUEUES: usize = 20;

#[derive(Clone)]
enum Part {
    Directory(Arc<Directory>),
    Bytes(Arc<[u8]>),
    Place(Arc<ColumnPlace>),
}

struct Entry {
    part: Part,
    bytes: u64,
    used: bool,
    leaves: Leaves,
}

/// See the module's head.
pub(crate) struct ColumnCache {
    inner: Mutex<Inner>,
}

struct Inner {
    entries: HashMap<Key, Entry>,
    /// By when they leave. The one that has been there for longest, or was used when it was looked
    /// at, is first. Some are of entries that were dropped.
    order: [VecDeque<Key>; QUEUES],
    bytes: u64,
    room: u64,
}

impl ColumnCache {
    /// With room for so many bytes.
    pub fn new(room: u64) -> Self {
        ColumnCache {
            inner: Mutex::new(Inner {
                entries: HashMap::new(),
                order: Default::default(),
                bytes: 0,
                room,
            }),
        }
    }

    /// Bytes that it holds.
    pub fn bytes(&self) -> u64 {
        self.inner.lock().bytes
    }

    /// Bytes that it may hold.
    pub fn room(&self) -> u64 {
        self.inner.lock().room
    }

    /// Gives it room for so many bytes; what is beyond leaves.
    pub fn set_room(&self, room: u64) {
        let mut inner = self.inner.lock();
        inner.room = room;
        inner.give_up(0);
    }

    pub fn directory(&self, block: u32) -> Option<Arc<Directory>> {
        match self.inner.lock().get((block, Piece::Directory))? {
            Part::Directory(directory) => Some(directory),
            Part::Bytes(_) | Part::Place(_) => None,
        }
    }

    /// A chunk, a page, or the sums.
    pub fn get(&self, block: u32, piece: Piece) -> Option<Arc<[u8]>> {
        match self.inner.lock().get((block, piece))? {
            Part::Bytes(bytes) => Some(bytes),
            Part::Directory(_) | Part::Place(_) => None,
        }
    }

    pub fn place(&self, block: u32, column: usize) -> Option<Arc<ColumnPlace>> {
        match self.inner.lock().get((block, Piece::Place(column)))? {
            Part::Place(place) => Some(place),
            Part::Directory(_) | Part::Bytes(_) => None,
        }
    }

    /// Bytes of a piece, if it is here. To ask is no use of it.
    pub fn bytes_of(&self, block: u32, piece: Piece) -> u64 {
        let inner = self.inner.lock();
        let entry = inner.entries.get(&(block, piece));
        entry.map_or(0, |entry| entry.bytes)
    }

    pub fn put_directory(&self, block: u32, directory: &Arc<Directory>, leaves: Leaves) {
        let bytes = (size_of::<Directory>() + directory.chunks() * 64) as u64;
        let part = Part::Directory(directory.clone());
        let mut inner = self.inner.lock();
        inner.put((block, Piece::Directory), part, bytes, leaves);
    }

    /// Keeps a chunk, a page, or the sums.
    pub fn put(&self, block: u32, piece: Piece, bytes: &Arc<[u8]>, leaves: Leaves) {
        let part = Part::Bytes(bytes.clone());
        let length = bytes.len() as u64;
        let mut inner = self.inner.lock();
        inner.put((block, piece), part, length, leaves);
    }

    pub fn put_place(&self, block: u32, column: usize, place: &Arc<ColumnPlace>, leaves: Leaves) {
        let part = Part::Place(place.clone());
        let bytes = size_of::<ColumnPlace>() as u64;
        let mut inner = self.inner.lock();
        inner.put((block, Piece::Place(column)), part, bytes, leaves);
    }

    /// Lets go of a piece.
    pub fn drop_piece(&self, block: u32, piece: Piece) {
        let mut inner = self.inner.lock();
        if let Some(entry) = inner.entries.remove(&(block, piece)) {
            inner.bytes -= entry.bytes;
        }
    }
}

impl Inner {
    fn get(&mut self, key: Key) -> Option<Part> {
        let entry = self.entries.get_mut(&key)?;
        entry.used = true;
        Some(entry.part.clone())
    }

    fn put(&mut self, key: Key, part: Part, bytes: u64, leaves: Leaves) {
        let bytes = bytes + ENTRY_BYTES;
        if let Some(entry) = self.entries.get_mut(&key) {
            // What was read by itself may be loaded by command now, or the other way round.
            if entry.leaves != leaves {
                entry.leaves = leaves;
                self.stand_in_line(key, leaves);
            }
            return;
        }
        if bytes > self.room {
            return;
        }
        self.give_up(bytes);
        let entry = Entry {
            part,
            bytes,
            used: false,
            leaves,
        };
        self.entries.insert(key, entry);
        self.stand_in_line(key, leaves);
        self.bytes += bytes;
    }

    fn stand_in_line(&mut self, key: Key, leaves: Leaves) {
        self.order[usize::from(leaves.0)].push_back(key);
        let standing: usize = self.order.iter().map(VecDeque::len).sum();
        if standing <= 2 * self.entries.len() + STALE_MAX {
            return;
        }
        // What was dropped, or has another place by now, does not stay in line for good.
        for (queue, order) in self.order.iter_mut().enumerate() {
            let mut seen = HashSet::new();
            order.retain(|key| {
                let entry = self.entries.get(key);
                entry.is_some_and(|entry| usize::from(entry.leaves.0) == queue) && seen.insert(*key)
            });
        }
    }

    /// Lets what leaves first leave until there is room for so many bytes more.
    fn give_up(&mut self, more: u64) {
        for queue in (0..QUEUES).rev() {
            while self.bytes + more > self.room
                && let Some(key) = self.order[queue].pop_front()
            {
                // Of what was dropped, or has its place in another queue now, nothing is left to do.
                let here = |entry: &&mut Entry| usize::from(entry.leaves.0) == queue;
                let Some(entry) = self.entries.get_mut(&key).filter(here) else {
                    continue;
                };
                if std::mem::take(&mut entry.used) {
                    self.order[queue].push_back(key);
                } else if let Some(entry) = self.entries.remove(&key) {
                    self.bytes -= entry.bytes;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: Leaves = Leaves(11);

    #[test]
    fn what_is_not_used_leaves_first_and_the_room_is_kept() {
        let chunk: Arc<[u8]> = vec![0; 1000 - ENTRY_BYTES as usize].into();
        let cache = ColumnCache::new(3000);
        let put = |block, number, chunk| cache.put(block, Piece::Chunk(number), chunk, CHUNK);
        let has = |block, number| cache.get(block, Piece::Chunk(number)).is_some();
        for number in 0..3 {
            put(7, number, &chunk);
        }
        assert_eq!(cache.bytes(), 3000);
        assert!(has(7, 0));
        put(8, 0, &chunk);
        assert_eq!(cache.bytes(), 3000);
        assert!(!has(7, 1), "it was not used");
        assert!(has(7, 0) && has(7, 2));
        let large: Arc<[u8]> = vec![0; 4000].into();
        put(9, 0, &large);
        assert!(!has(9, 0), "larger than all room");
        put(7, 0, &chunk);
        assert_eq!(cache.bytes(), 3000, "it is there");
        assert!(cache.get(7, Piece::Page(0)).is_none(), "another piece");
        cache.set_room(1500);
        assert_eq!(cache.bytes(), 1000);
        cache.set_room(0);
        let waiting: usize = cache.inner.lock().order.iter().map(VecDeque::len).sum();
        assert_eq!((cache.bytes(), waiting), (0, 0));
    }

    #[test]
    fn a_higher_priority_leaves_before_whatever_use_there_is() {
        let chunk: Arc<[u8]> = vec![0; 1000 - ENTRY_BYTES as usize].into();
        let cache = ColumnCache::new(4000);
        let piece = Piece::Chunk(0);
        cache.put(1, piece, &chunk, Leaves::new(0, false));
        cache.put(2, piece, &chunk, Leaves::new(9, false));
        cache.put(3, piece, &chunk, Leaves::new(5, true));
        cache.put(4, piece, &chunk, Leaves::new(5, false));
        assert!(cache.get(2, piece).is_some(), "it is used");
        for room in [3000, 2000, 1000] {
            cache.set_room(room);
        }
        assert!(cache.get(1, piece).is_some(), "the last to leave");
        assert_eq!(cache.bytes(), 1000);
        // Two leave in this order: the higher priority, then what was not loaded.
        cache.set_room(4000);
        for (block, leaves) in [(2, (9, false)), (3, (5, true)), (4, (5, false))] {
            cache.put(block, piece, &chunk, Leaves::new(leaves.0, leaves.1));
        }
        cache.set_room(3000);
        assert_eq!(cache.bytes_of(2, piece), 0);
        cache.set_room(2000);
        assert_eq!(cache.bytes_of(4, piece), 0);
        assert_eq!(cache.bytes_of(3, piece), 1000);
    }

    #[test]
    fn what_is_dropped_or_loaded_again_is_counted_once() {
        let chunk: Arc<[u8]> = vec![0; 1000 - ENTRY_BYTES as usize].into();
        let cache = ColumnCache::new(2000);
        let piece = Piece::Page(3);
        cache.put(1, piece, &chunk, Leaves::new(5, false));
        cache.drop_piece(1, piece);
        cache.drop_piece(1, piece);
        assert_eq!(cache.bytes(), 0);
        cache.put(1, piece, &chunk, Leaves::new(5, false));
        cache.put(1, piece, &chunk, Leaves::new(5, true));
        cache.put(2, piece, &chunk, Leaves::new(5, false));
        cache.set_room(1000);
        assert_eq!(
            (cache.bytes_of(1, piece), cache.bytes_of(2, piece)),
            (1000, 0)
        );
        assert_eq!(cache.bytes(), 1000);
        // However often it comes and goes, it stands in line a bounded number of times.
        for _ in 0..10 * STALE_MAX {
            cache.drop_piece(1, piece);
            cache.put(1, piece, &chunk, Leaves::new(5, false));
            cache.put(1, piece, &chunk, Leaves::new(5, true));
        }
        let inner = cache.inner.lock();
        let standing: usize = inner.order.iter().map(VecDeque::len).sum();
        assert!(standing <= STALE_MAX + 2, "{standing}");
        assert_eq!((inner.bytes, inner.entries.len()), (1000, 1));
    }
}
