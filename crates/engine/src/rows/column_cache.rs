//! Chunks of columns that were read and stay in memory, encoded as they are: a column that is used
//! is hot, chunk by chunk. There is room for so many bytes, and what was not used for longest
//! leaves first (CLOCK).
//!
//! One lock, taken for a chunk and not for a tuple. Blocks never change and their ids are never
//! used again, so nothing in here is ever wrong; what is of a block that is gone leaves by disuse.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashMap;
use parking_lot::Mutex;
use thermocline_storage::columns::Directory;

/// A block, and a chunk of it; the directory is the last of all.
type Key = (u32, u16);
const DIRECTORY: u16 = u16::MAX;
/// What an entry takes beside its bytes.
const ENTRY_BYTES: u64 = 96;

#[derive(Clone)]
enum Part {
    Directory(Arc<Directory>),
    Chunk(Arc<[u8]>),
}

struct Entry {
    part: Part,
    bytes: u64,
    used: bool,
}

/// See the module's head.
pub(crate) struct ColumnCache {
    inner: Mutex<Inner>,
}

struct Inner {
    entries: HashMap<Key, Entry>,
    /// The one that has been there for longest, or was used when it was looked at, is first.
    order: VecDeque<Key>,
    bytes: u64,
    room: u64,
}

impl ColumnCache {
    /// With room for so many bytes.
    pub fn new(room: u64) -> Self {
        ColumnCache {
            inner: Mutex::new(Inner {
                entries: HashMap::new(),
                order: VecDeque::new(),
                bytes: 0,
                room,
            }),
        }
    }

    /// Bytes that it holds.
    pub fn bytes(&self) -> u64 {
        self.inner.lock().bytes
    }

    /// Gives it room for so many bytes; what is beyond leaves.
    pub fn set_room(&self, room: u64) {
        let mut inner = self.inner.lock();
        inner.room = room;
        inner.give_up(0);
    }

    pub fn directory(&self, block: u32) -> Option<Arc<Directory>> {
        match self.inner.lock().get((block, DIRECTORY))? {
            Part::Directory(directory) => Some(directory),
            Part::Chunk(_) => None,
        }
    }

    pub fn chunk(&self, block: u32, number: usize) -> Option<Arc<[u8]>> {
        match self.inner.lock().get((block, number as u16))? {
            Part::Chunk(bytes) => Some(bytes),
            Part::Directory(_) => None,
        }
    }

    /// Bytes of a chunk, if it is here. To ask is no use of it.
    pub fn chunk_bytes(&self, block: u32, number: usize) -> u64 {
        let inner = self.inner.lock();
        let entry = inner.entries.get(&(block, number as u16));
        entry.map_or(0, |entry| entry.bytes)
    }

    pub fn put_directory(&self, block: u32, directory: &Arc<Directory>) {
        let bytes = (size_of::<Directory>() + directory.chunks() * 64) as u64;
        let part = Part::Directory(directory.clone());
        self.inner.lock().put((block, DIRECTORY), part, bytes);
    }

    pub fn put_chunk(&self, block: u32, number: usize, bytes: &Arc<[u8]>) {
        let part = Part::Chunk(bytes.clone());
        let length = bytes.len() as u64;
        self.inner.lock().put((block, number as u16), part, length);
    }
}

impl Inner {
    fn get(&mut self, key: Key) -> Option<Part> {
        let entry = self.entries.get_mut(&key)?;
        entry.used = true;
        Some(entry.part.clone())
    }

    fn put(&mut self, key: Key, part: Part, bytes: u64) {
        let bytes = bytes + ENTRY_BYTES;
        if bytes > self.room || self.entries.contains_key(&key) {
            return;
        }
        self.give_up(bytes);
        let used = false;
        self.entries.insert(key, Entry { part, bytes, used });
        self.order.push_back(key);
        self.bytes += bytes;
    }

    /// Lets what is least used leave until there is room for so many bytes more.
    fn give_up(&mut self, more: u64) {
        while self.bytes + more > self.room
            && let Some(key) = self.order.pop_front()
        {
            let used = self
                .entries
                .get_mut(&key)
                .map(|e| std::mem::take(&mut e.used));
            if used == Some(true) {
                self.order.push_back(key);
            } else if let Some(entry) = self.entries.remove(&key) {
                self.bytes -= entry.bytes;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_used_leaves_first_and_the_room_is_kept() {
        let chunk: Arc<[u8]> = vec![0; 1000 - ENTRY_BYTES as usize].into();
        let cache = ColumnCache::new(3000);
        for number in 0..3 {
            cache.put_chunk(7, number, &chunk);
        }
        assert_eq!(cache.bytes(), 3000);
        assert!(cache.chunk(7, 0).is_some());
        cache.put_chunk(8, 0, &chunk);
        assert_eq!(cache.bytes(), 3000);
        assert!(cache.chunk(7, 1).is_none(), "it was not used");
        assert!(cache.chunk(7, 0).is_some() && cache.chunk(7, 2).is_some());
        cache.put_chunk(9, 0, &vec![0; 4000].into());
        assert!(cache.chunk(9, 0).is_none(), "larger than all room");
        cache.put_chunk(7, 0, &chunk);
        assert_eq!(cache.bytes(), 3000, "it is there");
        cache.set_room(1500);
        assert_eq!(cache.bytes(), 1000);
        cache.set_room(0);
        assert_eq!((cache.bytes(), cache.inner.lock().order.len()), (0, 0));
    }
}
