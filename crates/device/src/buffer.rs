//! Memory that direct I/O accepts: its address and its length are multiples of a sector.
//!
//! Guarantees: always initialised (zeroed when made), owned by one holder, never moved
//! on the heap while that holder lives. So a device may fill it while its handle moves
//! from thread to thread. Assumes that who gives the address to the kernel keeps the
//! buffer until the kernel is done (`uring.rs` does).
//!
//! A large buffer is a mapping of its own: what was never written to costs no memory, and
//! what was can be given back while the buffer stays ([`AlignedBuffer::forget`]).
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::RefCell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// The unit of direct I/O in bytes: offsets, lengths and addresses are multiples of it.
pub const SECTOR_BYTES: usize = 4096;

/// The largest buffer that a thread keeps, and how many: 512 KiB at most.
const KEPT_BYTES_MAX: usize = 4 * SECTOR_BYTES;
const KEPT_MAX: usize = 32;
/// Buffers from here on are mappings of their own.
const MAPPED_BYTES_MIN: usize = 512 << 10;

thread_local! {
    static KEPT: RefCell<Vec<AlignedBuffer>> = const { RefCell::new(Vec::new()) };
}

/// A heap buffer aligned to [`SECTOR_BYTES`], whose length is a multiple of it.
pub struct AlignedBuffer {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the buffer owns its memory alone, as a `Box<[u8]>` does, and bytes are `Send`.
unsafe impl Send for AlignedBuffer {}
// SAFETY: shared access only reads, and writing needs `&mut`.
unsafe impl Sync for AlignedBuffer {}

impl AlignedBuffer {
    /// A buffer of `len` zero bytes. `len` must be a multiple of [`SECTOR_BYTES`]; it may be zero.
    ///
    /// # Panics
    /// When `len` is not a multiple of a sector.
    #[must_use]
    pub fn new_zeroed(len: usize) -> AlignedBuffer {
        assert!(
            len.is_multiple_of(SECTOR_BYTES),
            "a buffer of {len} bytes is not whole sectors"
        );
        let layout = Self::layout(len);
        if len == 0 {
            return AlignedBuffer {
                start: layout.dangling_ptr(),
                len,
            };
        }
        let memory = if len >= MAPPED_BYTES_MIN {
            crate::sys::map_zeroed(len).ok()
        } else {
            // SAFETY: the layout's size is not zero.
            NonNull::new(unsafe { alloc_zeroed(layout) })
        };
        match memory {
            Some(start) => AlignedBuffer { start, len },
            None => handle_alloc_error(layout),
        }
    }

    /// As [`AlignedBuffer::new_zeroed`], but it may hold what an earlier buffer of this
    /// thread held: for reads, which fill it or fail.
    ///
    /// # Panics
    /// When `len` is not a multiple of a sector.
    #[must_use]
    pub fn used(len: usize) -> AlignedBuffer {
        let kept = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            let place = kept.iter().rposition(|buffer| buffer.len == len)?;
            Some(kept.swap_remove(place))
        });
        let kept = kept.ok().flatten();
        kept.unwrap_or_else(|| AlignedBuffer::new_zeroed(len))
    }

    /// Keeps the buffer for [`AlignedBuffer::used`], if it is small and few are kept.
    pub fn keep(self) {
        if (1..=KEPT_BYTES_MAX).contains(&self.len) {
            // A thread that ends keeps nothing.
            let _ = KEPT.try_with(|kept| {
                let mut kept = kept.borrow_mut();
                if kept.len() < KEPT_MAX {
                    kept.push(self);
                }
            });
        }
    }

    /// Frees what this thread keeps: whoever wants the same again begins with none. A device that leaves
    /// a buffer as it was otherwise shows what an earlier database of the thread has read.
    pub fn free_kept() {
        let _ = KEPT.try_with(|kept| kept.borrow_mut().clear());
    }

    /// Makes all bytes zero; a large buffer's memory goes back to the system until it is
    /// written to again.
    pub fn forget(&mut self) {
        if self.len < MAPPED_BYTES_MIN || !crate::sys::forget_pages(self.as_mut_slice()) {
            self.fill(0);
        }
    }

    fn layout(len: usize) -> Layout {
        match Layout::from_size_align(len, SECTOR_BYTES) {
            Ok(layout) => layout,
            Err(_) => panic!("a buffer of {len} bytes is larger than the address space"),
        }
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the buffer has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: `start` leads to `len` initialised bytes that live as long as `self`
        // (or dangles, well aligned, when `len` is 0).
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// All bytes, to be written.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`; `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        if self.len >= MAPPED_BYTES_MIN {
            // SAFETY: mapped in `new_zeroed` with this length, and unmapped only here.
            unsafe { crate::sys::unmap(self.start, self.len) };
        } else if self.len != 0 {
            // SAFETY: allocated in `new_zeroed` with this same layout, and freed only here.
            unsafe { dealloc(self.start.as_ptr(), Self::layout(self.len)) }
        }
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.as_mut_slice()
    }
}

impl fmt::Debug for AlignedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlignedBuffer({} bytes)", self.len)
    }
}

/// Whether direct I/O accepts these bytes at this offset.
pub(crate) fn is_aligned(bytes: &[u8], offset: u64) -> bool {
    (bytes.as_ptr() as usize).is_multiple_of(SECTOR_BYTES)
        && bytes.len().is_multiple_of(SECTOR_BYTES)
        && offset.is_multiple_of(SECTOR_BYTES as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_zeroed_and_writable_to_the_last_byte() {
        for sectors in [0, 1, 3, 64, MAPPED_BYTES_MIN / SECTOR_BYTES] {
            let mut buffer = AlignedBuffer::new_zeroed(sectors * SECTOR_BYTES);
            assert_eq!(buffer.len(), sectors * SECTOR_BYTES);
            assert_eq!(buffer.is_empty(), sectors == 0);
            assert!((buffer.as_ptr() as usize).is_multiple_of(SECTOR_BYTES));
            assert!(buffer.iter().all(|&byte| byte == 0));
            buffer.fill(7);
            assert!(buffer.iter().all(|&byte| byte == 7));
        }
    }

    #[test]
    fn a_kept_buffer_is_used_again_for_its_length_only() {
        let mut buffer = AlignedBuffer::new_zeroed(2 * SECTOR_BYTES);
        buffer.fill(5);
        buffer.keep();
        assert_eq!(AlignedBuffer::used(SECTOR_BYTES)[0], 0);
        let again = AlignedBuffer::used(2 * SECTOR_BYTES);
        assert!(again.len() == 2 * SECTOR_BYTES && again.iter().all(|&byte| byte == 5));
        assert_eq!(AlignedBuffer::used(2 * SECTOR_BYTES)[0], 0, "it is in use");
        for _ in 0..2 * KEPT_MAX {
            AlignedBuffer::new_zeroed(SECTOR_BYTES).keep();
        }
        AlignedBuffer::new_zeroed(2 * KEPT_BYTES_MAX).keep();
        assert_eq!(KEPT.with(|kept| kept.borrow().len()), KEPT_MAX);
        AlignedBuffer::free_kept();
        assert_eq!(KEPT.with(|kept| kept.borrow().len()), 0);
    }

    #[test]
    fn a_buffer_that_was_forgotten_is_zero_and_can_be_used() {
        for len in [0, SECTOR_BYTES, MAPPED_BYTES_MIN, 4 * MAPPED_BYTES_MIN] {
            let mut buffer = AlignedBuffer::new_zeroed(len);
            buffer.fill(3);
            buffer.forget();
            assert!(buffer.iter().all(|&byte| byte == 0), "{len}");
            buffer.fill(4);
            assert!(buffer.iter().all(|&byte| byte == 4), "{len}");
        }
    }

    #[test]
    fn a_large_buffer_takes_only_the_memory_that_is_written_to() {
        const LEN: usize = 256 << 20;
        let resident = || crate::resident_bytes().unwrap_or(0);
        let before = resident();
        let mut buffer = AlignedBuffer::new_zeroed(LEN);
        assert!(resident() < before + LEN as u64 / 2);
        buffer.fill(1);
        assert!(resident() > before + LEN as u64 / 2);
        buffer.forget();
        assert!(resident() < before + LEN as u64 / 2);
    }

    #[test]
    fn a_buffer_keeps_its_bytes_when_it_moves_to_another_thread() {
        let mut buffer = AlignedBuffer::new_zeroed(SECTOR_BYTES);
        buffer[SECTOR_BYTES - 1] = 9;
        let buffer = std::thread::spawn(move || buffer).join().unwrap();
        assert_eq!(buffer[SECTOR_BYTES - 1], 9);
    }

    #[test]
    #[should_panic(expected = "not whole sectors")]
    fn a_length_that_is_not_whole_sectors_is_refused() {
        let _ = AlignedBuffer::new_zeroed(100);
    }
}
