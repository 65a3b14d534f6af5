//! Which huge pages' worth of the region are handed out whole, and which of them lie in
//! a huge page: books only, the system calls are the arena's.
//!
//! A chunk gets a huge page when all of it was handed out at two looks, and keeps it
//! until a part of it goes back to the system.

use super::{ORDER_MAX, SPAN_BYTES_MIN};

/// Bytes of a huge page.
pub(super) const CHUNK_BYTES: usize = 2 << 20;
/// Units of a chunk.
const CHUNK_UNITS: u32 = (CHUNK_BYTES / SPAN_BYTES_MIN) as u32;
/// Looks that go through all chunks.
const LOOKS_A_ROUND: usize = 10;

const _: () = assert!(CHUNK_UNITS < 1 << ORDER_MAX && CHUNK_UNITS <= u8::MAX as u32);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pages {
    Small,
    /// Small, and the chunk was full at the last look.
    SmallAndFull,
    Huge,
}

#[derive(Clone, Copy)]
struct Chunk {
    /// Units handed out, or free and still resident.
    taken: u8,
    pages: Pages,
}

const EMPTY: Chunk = Chunk {
    taken: 0,
    pages: Pages::Small,
};

/// The chunks of a region, in the order of their addresses.
pub(super) struct Chunks {
    /// As far as any was handed out: of a large region most never are.
    chunks: Vec<Chunk>,
    /// The chunk that is looked at next.
    hand: usize,
    huge: usize,
}

impl Chunks {
    pub fn new() -> Self {
        Self {
            chunks: Vec::new(),
            hand: 0,
            huge: 0,
        }
    }

    /// The chunks that a span touches, and how many units of each.
    fn of(&mut self, unit: u32, order: u8) -> (&mut [Chunk], u8) {
        let units = 1 << order;
        let first = unit / CHUNK_UNITS;
        let last = (unit + units - 1) / CHUNK_UNITS;
        if self.chunks.len() <= last as usize {
            self.chunks.resize(last as usize + 1, EMPTY);
        }
        let chunks = &mut self.chunks[first as usize..=last as usize];
        (chunks, units.min(CHUNK_UNITS) as u8)
    }

    /// Notes that a span may be resident from now on.
    pub fn take(&mut self, unit: u32, order: u8) {
        let (chunks, units) = self.of(unit, order);
        chunks.iter_mut().for_each(|chunk| chunk.taken += units);
    }

    /// Notes that a span is going back to the system; whether it lies in a huge page.
    pub fn give(&mut self, unit: u32, order: u8) -> bool {
        let (chunks, units) = self.of(unit, order);
        let mut huge = 0;
        for chunk in chunks {
            chunk.taken -= units;
            huge += usize::from(chunk.pages == Pages::Huge);
            chunk.pages = Pages::Small;
        }
        self.huge -= huge;
        huge > 0
    }

    /// How many chunks below the frontier, in units, one look goes through.
    pub fn look(frontier: u32) -> usize {
        (frontier.div_ceil(CHUNK_UNITS) as usize).div_ceil(LOOKS_A_ROUND)
    }

    /// Looks at one chunk: the first byte of one that is to get a huge page.
    pub fn next(&mut self, frontier: u32) -> Option<usize> {
        let end = frontier.div_ceil(CHUNK_UNITS) as usize;
        let at = if self.hand < end { self.hand } else { 0 };
        self.hand = at + 1;
        let chunk = self.chunks.get_mut(at).filter(|_| at < end)?;
        if u32::from(chunk.taken) < CHUNK_UNITS {
            return None;
        }
        match chunk.pages {
            Pages::Small => chunk.pages = Pages::SmallAndFull,
            Pages::SmallAndFull => {
                chunk.pages = Pages::Huge;
                self.huge += 1;
                return Some(at * CHUNK_BYTES);
            }
            Pages::Huge => {}
        }
        None
    }

    /// Notes that the chunk at this byte got no huge page after all.
    pub fn stays_small(&mut self, at: usize) {
        self.chunks[at / CHUNK_BYTES].pages = Pages::Small;
        self.huge -= 1;
    }

    /// Bytes in huge pages.
    pub fn huge_bytes(&self) -> usize {
        self.huge * CHUNK_BYTES
    }
}
