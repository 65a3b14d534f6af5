//! Chunks: zeroed memory in pieces of 32, 48 and 64 KiB, for what grows row by row (the row
//! directory, the hash index).
//!
//! They lie side by side in mappings of 4 MiB, shared by all tables. A general allocator
//! puts such powers of two into pages of its own with headers: mimalloc took 1.30 times the
//! memory for chunks of 64 KiB and 1.39 times for those of 32. Shorter pieces, which small
//! tables begin with, are the allocator's.
//!
//! Guarantees: a chunk is zero when it is made and nobody else's while it lives; its memory
//! goes back to the system when it is dropped, its addresses are used again. What was never
//! written to takes no memory. Survives nothing.
//!
//! Unsafe: a chunk owns its memory alone, as a `Box<[T]>` does, and [`Plain`] says that zero
//! bytes are values.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use parking_lot::Mutex;
use thermocline_device::{forget_pages, map_zeroed};

/// Bytes of the chunks that lie in slabs.
const PIECES: [usize; 3] = [32 << 10, 48 << 10, 64 << 10];
const SLAB_BYTES: usize = 4 << 20;

/// What may lie in a chunk.
///
/// # Safety
/// Zero bytes are a value of the type, and nothing has to be done when it is dropped.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: numbers.
unsafe impl Plain for u16 {}

/// A slice of its own, zeroed when made; the empty one takes no memory.
pub(crate) struct Chunk<T: Plain> {
    start: NonNull<T>,
    len: usize,
}

// SAFETY: a chunk owns its memory alone, and shared access only reads.
unsafe impl<T: Plain + Send> Send for Chunk<T> {}
// SAFETY: as above.
unsafe impl<T: Plain + Sync> Sync for Chunk<T> {}

/// The free pieces of each length, as addresses.
struct Slabs {
    free: [Vec<usize>; PIECES.len()],
}

static SLABS: Mutex<Slabs> = Mutex::new(Slabs {
    free: [const { Vec::new() }; PIECES.len()],
});

impl<T: Plain> Chunk<T> {
    /// A chunk of `len` zero values.
    pub fn zeroed(len: usize) -> Self {
        let layout = Self::layout(len);
        if layout.size() == 0 {
            return Self::default();
        }
        let start = match piece_of(layout.size()) {
            Some(piece) => take(piece),
            // SAFETY: the layout's size is not zero.
            None => NonNull::new(unsafe { alloc_zeroed(layout) }),
        };
        let Some(start) = start else {
            handle_alloc_error(layout);
        };
        let start = start.cast();
        Self { start, len }
    }

    /// The first `len` values of `from` and zeros behind it, `len` in all.
    pub fn resized(from: &[T], len: usize) -> Self {
        let mut chunk = Self::zeroed(len);
        let kept = from.len().min(len);
        chunk[..kept].copy_from_slice(&from[..kept]);
        chunk
    }

    fn layout(len: usize) -> Layout {
        const { assert!(align_of::<T>() <= 4096, "pieces begin at pages") };
        match Layout::array::<T>(len) {
            Ok(layout) => layout,
            Err(_) => panic!("a chunk of {len} is larger than the address space"),
        }
    }
}

impl<T: Plain> Default for Chunk<T> {
    fn default() -> Self {
        Self {
            start: NonNull::dangling(),
            len: 0,
        }
    }
}

impl<T: Plain> Drop for Chunk<T> {
    fn drop(&mut self) {
        let layout = Self::layout(self.len);
        if layout.size() == 0 {
            return;
        }
        match piece_of(layout.size()) {
            // SAFETY: `zeroed` took the piece for a chunk of this length, and nobody uses it
            // any more.
            Some(piece) => unsafe { give_back(piece, self.start.cast()) },
            // SAFETY: `zeroed` allocated it with this layout.
            None => unsafe { dealloc(self.start.as_ptr().cast(), layout) },
        }
    }
}

impl<T: Plain> Deref for Chunk<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `len` values, zero or written since, that live as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Plain> DerefMut for Chunk<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as `deref`; `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

/// Which of [`PIECES`] this is, if it is one.
fn piece_of(bytes: usize) -> Option<usize> {
    PIECES.iter().position(|piece| *piece == bytes)
}

/// A piece of zeros that nobody has; `None` when the system has no room for another slab.
fn take(piece: usize) -> Option<NonNull<u8>> {
    let mut slabs = SLABS.lock();
    if slabs.free[piece].is_empty() {
        let slab = map_slab()?;
        // The first is given out first.
        let pieces = (0..SLAB_BYTES / PIECES[piece]).rev();
        slabs.free[piece].extend(pieces.map(|number| slab + number * PIECES[piece]));
    }
    let address = slabs.free[piece].pop()?;
    NonNull::new(std::ptr::with_exposed_provenance_mut(address))
}

/// Takes a piece back, and its memory with it.
///
/// # Safety
/// [`take`] gave it, for the same `piece`, and nobody uses it any more.
unsafe fn give_back(piece: usize, start: NonNull<u8>) {
    // SAFETY: the piece is the caller's alone, initialised, and stays mapped.
    let bytes = unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), PIECES[piece]) };
    if !forget_pages(bytes) {
        bytes.fill(0);
    }
    let mut slabs = SLABS.lock();
    slabs.free[piece].push(start.as_ptr().expose_provenance());
}

/// The address of a new mapping of zeros. It stays for good.
fn map_slab() -> Option<usize> {
    let slab = map_zeroed(SLAB_BYTES).ok()?.as_ptr();
    // SAFETY: our own mapping. Advice may be refused where there are no huge pages.
    unsafe { libc::madvise(slab.cast(), SLAB_BYTES, libc::MADV_NOHUGEPAGE) };
    Some(slab.expose_provenance())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // SAFETY: numbers.
    unsafe impl Plain for u64 {}

    proptest! {
        /// Of some length; a chunk is dropped, or its numbers are looked at.
        #[test]
        fn chunks_begin_as_zeros_and_are_nobody_elses(
            steps in prop::collection::vec((0usize..5, any::<bool>(), any::<usize>()), 1..300),
        ) {
            let mut chunks: Vec<(Chunk<u64>, u64)> = Vec::new();
            for (number, (length, makes, which)) in (1u64..).zip(steps) {
                if makes || chunks.is_empty() {
                    let len = [0, 3, PIECES[0] / 8, PIECES[1] / 8, PIECES[2] / 8][length];
                    let mut chunk = Chunk::zeroed(len);
                    prop_assert!(chunk.len() == len && chunk.iter().all(|value| *value == 0));
                    chunk.fill(number);
                    chunks.push((chunk, number));
                } else {
                    let (chunk, number) = chunks.swap_remove(which % chunks.len());
                    prop_assert!(chunk.iter().all(|value| *value == number));
                }
            }
        }
    }

    #[test]
    fn threads_share_the_slabs() {
        std::thread::scope(|scope| {
            for thread in 1..5u64 {
                scope.spawn(move || {
                    for round in 0..50 {
                        let mut chunks: Vec<Chunk<u64>> = (0..20)
                            .map(|_| Chunk::zeroed(PIECES[round % 3] / 8))
                            .collect();
                        for chunk in &mut chunks {
                            assert!(chunk.iter().all(|value| *value == 0));
                            chunk.fill(thread);
                        }
                        assert!(
                            chunks
                                .iter()
                                .all(|c| c.iter().all(|value| *value == thread))
                        );
                    }
                });
            }
        });
    }

    #[test]
    fn a_chunk_takes_what_is_written_to_and_gives_it_back() {
        let resident = || thermocline_device::resident_bytes().expect("this kernel says");
        const CHUNKS: usize = 4096;
        const BYTES: u64 = (CHUNKS * PIECES[2]) as u64;
        let before = resident();
        let mut chunks: Vec<Chunk<u64>> = (0..CHUNKS).map(|_| Chunk::zeroed(8192)).collect();
        assert!(resident() < before + BYTES / 2);
        chunks.iter_mut().for_each(|chunk| chunk.fill(1));
        assert!(resident() > before + BYTES / 2);
        drop(chunks);
        assert!(resident() < before + BYTES / 2);
    }

    #[test]
    fn a_chunk_is_resized_by_a_copy() {
        let chunk = Chunk::resized(&[1u64, 2, 3], 2);
        assert_eq!(*chunk, [1, 2]);
        assert_eq!(*Chunk::resized(&chunk, 4), [1, 2, 0, 0]);
        assert!(Chunk::resized(&chunk, 0).is_empty());
    }
}
