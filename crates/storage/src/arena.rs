//! The arena: one reserved range of virtual memory from which every heap
//! takes its spans.
//!
//! Guarantees: a span is aligned to its own size within the region, and is
//! never handed out twice. It goes back to the system when it is freed, but for
//! a bounded number of bytes kept warm for the next request. `used_bytes` is
//! what the region can cost in resident memory. Assumes anonymous memory is
//! zero-filled on first touch and after `MADV_DONTNEED` (Linux). An exhausted
//! region is an answer (`None`), not a failure. Nothing here survives a crash.
//!
//! Where the system allows it, memory that is handed out in whole huge pages gets
//! them ([`Arena::join_pages`]): a row that is not in the processor's caches is not in
//! its address cache either, and to walk the small pages' tables takes as long again.
//!
//! Unsafe: the region is mapped once and unmapped on drop; spans are plain
//! addresses inside it, so that the only unsafe acts are the system calls.
#![allow(unsafe_code)]

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

mod books;
mod chunks;

use books::Books;
use chunks::{CHUNK_BYTES, Chunks};

/// Bytes of the smallest span (order 0).
pub const SPAN_BYTES_MIN: usize = 16 * 1024;
/// The highest order: spans of 4 MiB.
pub const ORDER_MAX: u8 = 8;
/// Bytes of the largest span.
pub const SPAN_BYTES_MAX: usize = SPAN_BYTES_MIN << ORDER_MAX;
/// Addresses count units of this many bytes from the region's base.
pub const ADDRESS_UNIT_BYTES: usize = 8;
/// Addresses that [`Arena::reserve_for`] takes at most, unless the memory needs more: the books of
/// a region take a two-thousandth of it in addresses, too.
pub const REGION_BYTES_MAX: usize = 1 << 40;
/// Free bytes kept resident for reuse unless told otherwise.
pub const CACHE_LIMIT_BYTES_DEFAULT: usize = 4 * 1024 * 1024;
/// Mapped behind the region, so that no tuple length a heap accepts can lead
/// outside of the mapping even from a stray address.
pub(crate) const GUARD_BYTES: usize = SPAN_BYTES_MAX;

const ORDERS: usize = ORDER_MAX as usize + 1;
const UNITS_MAX_SPAN: u32 = 1 << ORDER_MAX;
const STATE_INSIDE: u8 = 0;
const STATE_FREE: u8 = 0x40;
const STATE_USED: u8 = 0x80;

/// The address of a tuple: 8-byte units from the region's base, below 2^40.
/// Never zero, because every span begins with its page's header.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TuplePtr(pub u64);

impl TuplePtr {
    /// Bits that an address may take in a directory word.
    pub const BITS: u32 = 40;
}

/// A run of memory handed out by [`Arena::alloc_span`]: its index in units of
/// [`SPAN_BYTES_MIN`] from the region's base.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span(pub u32);

/// The region and the buddy allocator of its spans, shared by all partitions.
pub struct Arena {
    base: NonNull<u8>,
    region_bytes: usize,
    mapping: NonNull<u8>,
    mapping_bytes: usize,
    used_bytes: AtomicUsize,
    /// Whether full chunks may have huge pages.
    huge_pages: bool,
    spans: Mutex<Spans>,
}

// SAFETY: the mapping is fixed for the arena's life; all mutable state is
// behind the mutex or atomic, and the arena itself never touches span memory.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

/// The buddy allocator's books, kept outside of the spans so that a free span
/// need not be resident.
struct Spans {
    books: Books,
    heads: [u32; ORDERS],
    /// Units from here on have never been handed out.
    frontier: u32,
    units: u32,
    cached: [Vec<u32>; ORDERS],
    cached_bytes: usize,
    cache_limit_bytes: usize,
    chunks: Chunks,
}

impl Arena {
    /// Reserves `bytes` (rounded up to 4 MiB) of address space. Takes no memory
    /// but what the allocator's books touch.
    ///
    /// # Errors
    /// The system's, or `InvalidInput` for a region that is empty or beyond
    /// what a [`TuplePtr`] can name.
    pub fn reserve(bytes: usize) -> io::Result<Self> {
        let limit_bytes = ADDRESS_UNIT_BYTES << TuplePtr::BITS;
        if bytes == 0 || bytes > limit_bytes {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        let region_bytes = bytes.next_multiple_of(SPAN_BYTES_MAX);
        let mapping_bytes = region_bytes + SPAN_BYTES_MAX + GUARD_BYTES;
        let mapping = thermocline_device::map_zeroed(mapping_bytes)?;
        let slack = mapping.addr().get().next_multiple_of(SPAN_BYTES_MAX) - mapping.addr().get();
        // SAFETY: `slack` is below SPAN_BYTES_MAX, which the mapping has over
        // the region and its guard.
        let base = unsafe { mapping.add(slack) };
        let huge_pages = thermocline_device::huge_pages_when_asked();
        if !huge_pages {
            // SAFETY: the range is our own mapping. Advice may be refused where the
            // kernel has no huge pages; then there is nothing to advise about.
            unsafe {
                libc::madvise(
                    mapping.as_ptr().cast(),
                    mapping_bytes,
                    libc::MADV_NOHUGEPAGE,
                )
            };
        }

        let units = region_bytes / SPAN_BYTES_MIN;
        Ok(Self {
            base,
            region_bytes,
            mapping,
            mapping_bytes,
            used_bytes: AtomicUsize::new(0),
            huge_pages,
            spans: Mutex::new(Spans {
                books: Books::new(units),
                heads: [0; ORDERS],
                frontier: 0,
                units: units as u32,
                cached: std::array::from_fn(|_| Vec::new()),
                cached_bytes: 0,
                cache_limit_bytes: CACHE_LIMIT_BYTES_DEFAULT,
                chunks: Chunks::new(),
            }),
        })
    }

    /// Reserves addresses for `memory_bytes` of spans, however the spans are mixed and in whichever
    /// order they come and go: even if each of the largest spans' worth of addresses is kept
    /// from being one by the smallest span. Where that is more than [`REGION_BYTES_MAX`], or the
    /// system gives less, as much as there is, but twice the memory.
    ///
    /// # Errors
    /// As [`Arena::reserve`].
    pub fn reserve_for(memory_bytes: usize) -> io::Result<Self> {
        let least = memory_bytes.saturating_mul(2);
        let mut bytes = memory_bytes
            .saturating_mul(SPAN_BYTES_MAX / SPAN_BYTES_MIN)
            .clamp(least, least.max(REGION_BYTES_MAX));
        loop {
            match Self::reserve(bytes) {
                Err(error) if bytes <= least => return Err(error),
                Err(_) => bytes = (bytes / 2).max(least),
                reserved => return reserved,
            }
        }
    }

    /// Leaves out the addresses below `bytes`, of which none was handed out yet: for tests.
    #[doc(hidden)]
    pub fn begin_at(&self, bytes: usize) {
        let mut spans = self.spans.lock();
        if spans.frontier == 0 {
            spans.frontier = (bytes / SPAN_BYTES_MAX) as u32 * UNITS_MAX_SPAN;
        }
    }

    /// Bytes of a span of `order`.
    pub const fn span_bytes(order: u8) -> usize {
        SPAN_BYTES_MIN << order
    }

    /// Hands out a span of `16 KiB << order`, or `None` when the region is
    /// exhausted. Its contents are arbitrary.
    pub fn alloc_span(&self, order: u8) -> Option<Span> {
        assert!(order <= ORDER_MAX, "no spans of order {order}");
        let bytes = Self::span_bytes(order);
        let mut spans = self.spans.lock();
        if let Some(unit) = spans.cached[order as usize].pop() {
            spans.cached_bytes -= bytes;
            spans.books.set_state(unit, STATE_USED | order);
            return Some(Span(unit));
        }
        let mut unit = spans.take(order);
        if unit.is_none() && spans.cached_bytes > 0 {
            // What is cached may be the neighbours we need to join.
            self.release_cached_down_to(&mut spans, 0);
            unit = spans.take(order);
        }
        let unit = unit?;
        spans.books.set_state(unit, STATE_USED | order);
        spans.chunks.take(unit, order);
        self.used_bytes.fetch_add(bytes, Ordering::Relaxed);
        Some(Span(unit))
    }

    /// Takes back a span of `order`. The caller no longer touches it.
    pub fn free_span(&self, span: Span, order: u8) {
        let bytes = Self::span_bytes(order);
        let is_huge = {
            let mut spans = self.spans.lock();
            let state = spans.books.state(span.0);
            assert!(
                state == STATE_USED | order,
                "freed a span that is not handed out with this order"
            );
            spans.books.set_state(span.0, STATE_INSIDE);
            if spans.cached_bytes + bytes <= spans.cache_limit_bytes {
                spans.cached[order as usize].push(span.0);
                spans.cached_bytes += bytes;
                return;
            }
            spans.chunks.give(span.0, order)
        };
        // The system call is made outside of the lock: the span is in no list.
        self.return_to_system(span.0, bytes, is_huge);
        self.spans.lock().give(span.0, order);
    }

    /// Bytes that the region may keep resident: spans handed out and cached.
    pub fn used_bytes(&self) -> usize {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// Free bytes kept resident for the next request.
    pub fn cached_bytes(&self) -> usize {
        self.spans.lock().cached_bytes
    }

    /// Bytes of the region.
    pub fn region_bytes(&self) -> usize {
        self.region_bytes
    }

    /// Returns all cached spans to the system; says how many bytes.
    pub fn release_cached(&self) -> usize {
        let mut spans = self.spans.lock();
        self.release_cached_down_to(&mut spans, 0)
    }

    /// Sets how many free bytes may stay resident.
    pub fn set_cache_limit_bytes(&self, limit_bytes: usize) {
        let mut spans = self.spans.lock();
        spans.cache_limit_bytes = limit_bytes;
        self.release_cached_down_to(&mut spans, limit_bytes);
    }

    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    fn release_cached_down_to(&self, spans: &mut Spans, limit_bytes: usize) -> usize {
        let mut released_bytes = 0;
        for order in (0..=ORDER_MAX).rev() {
            while spans.cached_bytes > limit_bytes {
                let Some(unit) = spans.cached[order as usize].pop() else {
                    break;
                };
                let bytes = Self::span_bytes(order);
                spans.cached_bytes -= bytes;
                released_bytes += bytes;
                let is_huge = spans.chunks.give(unit, order);
                self.return_to_system(unit, bytes, is_huge);
                spans.give(unit, order);
            }
        }
        released_bytes
    }

    /// Looks at a tenth of all chunks, and gives huge pages to those that were full at
    /// the last look, too, and are resident but for a sixteenth: to `most` at most. To be
    /// called ten times a second or less often. Each takes the kernel a fraction of a
    /// millisecond, for which nobody else gets or frees a span.
    pub fn join_pages(&self, most: usize) {
        if !self.huge_pages {
            return;
        }
        let mut looks = Chunks::look(self.spans.lock().frontier);
        let mut tried = 0;
        while tried < most && looks > 0 {
            let mut spans = self.spans.lock();
            let frontier = spans.frontier;
            let mut full = None;
            while full.is_none() && looks > 0 {
                full = spans.chunks.next(frontier);
                looks -= 1;
            }
            let Some(at) = full else {
                break;
            };
            tried += 1;
            // What is refused once may be given another time: the kernel may be short.
            if !self.join(at) {
                spans.chunks.stays_small(at);
            }
        }
    }

    /// Bytes of the region in huge pages.
    pub fn huge_bytes(&self) -> usize {
        self.spans.lock().chunks.huge_bytes()
    }

    /// Gives the chunk at this byte of the region a huge page, unless that would make
    /// much resident that nobody has touched. Whether it has one.
    fn join(&self, at: usize) -> bool {
        if self.resident_bytes(at, CHUNK_BYTES) < CHUNK_BYTES / 16 * 15 {
            return false;
        }
        // SAFETY: the chunk lies in our mapping, and what is in it stays the same.
        unsafe {
            let start = self.base.add(at);
            libc::madvise(start.as_ptr().cast(), CHUNK_BYTES, libc::MADV_COLLAPSE) == 0
        }
    }

    /// Resident bytes of a part of the region that is at most 2 MiB; 0 if the system
    /// does not tell.
    fn resident_bytes(&self, at: usize, bytes: usize) -> usize {
        const PAGE_BYTES_MIN: usize = 4096;
        let mut pages = [0u8; CHUNK_BYTES / PAGE_BYTES_MIN];
        assert!(at + bytes <= self.region_bytes && bytes <= CHUNK_BYTES);
        // SAFETY: the part lies in our mapping, and there is a byte for each of its pages,
        // of which the system's are no smaller.
        let outcome = unsafe {
            let start = self.base.add(at);
            libc::mincore(start.as_ptr().cast(), bytes, pages.as_mut_ptr())
        };
        if outcome != 0 {
            return 0;
        }
        pages.iter().filter(|page| **page & 1 == 1).count() * PAGE_BYTES_MIN
    }

    fn return_to_system(&self, unit: u32, bytes: usize, is_huge: bool) {
        // SAFETY: the span lies in our mapping.
        let start = unsafe { self.base.add(unit as usize * SPAN_BYTES_MIN) };
        let advise = |advice| {
            // SAFETY: the span lies in our mapping and nobody holds it.
            unsafe { libc::madvise(start.as_ptr().cast(), bytes, advice) == 0 }
        };
        if is_huge && bytes < CHUNK_BYTES {
            // Splits the huge page at once; else all of it would stay until the kernel
            // runs short.
            advise(libc::MADV_FREE);
        }
        assert!(
            advise(libc::MADV_DONTNEED),
            "the system refused to take back our memory"
        );
        self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours; heaps hold the arena by `Arc`, so none
        // outlives it.
        unsafe { libc::munmap(self.mapping.as_ptr().cast(), self.mapping_bytes) };
    }
}

impl Spans {
    fn take(&mut self, order: u8) -> Option<u32> {
        let found = (order..=ORDER_MAX).find(|&o| self.heads[o as usize] != 0);
        let (unit, mut have) = match found {
            Some(have) => {
                let unit = self.heads[have as usize] - 1;
                self.unlink(unit, have);
                (unit, have)
            }
            None if self.frontier + UNITS_MAX_SPAN <= self.units => {
                let unit = self.frontier;
                self.frontier += UNITS_MAX_SPAN;
                (unit, ORDER_MAX)
            }
            None => return None,
        };
        while have > order {
            have -= 1;
            self.link(unit + (1 << have), have);
        }
        Some(unit)
    }

    fn give(&mut self, unit: u32, order: u8) {
        let (mut unit, mut order) = (unit, order);
        while order < ORDER_MAX {
            let buddy = unit ^ (1 << order);
            if self.books.state(buddy) != STATE_FREE | order {
                break;
            }
            self.unlink(buddy, order);
            unit &= buddy;
            order += 1;
        }
        self.link(unit, order);
    }

    fn link(&mut self, unit: u32, order: u8) {
        let head = self.heads[order as usize];
        self.books.set_links(unit, [0, head]);
        if head != 0 {
            let [_, after] = self.books.links(head - 1);
            self.books.set_links(head - 1, [unit + 1, after]);
        }
        self.heads[order as usize] = unit + 1;
        self.books.set_state(unit, STATE_FREE | order);
    }

    fn unlink(&mut self, unit: u32, order: u8) {
        let [before, after] = self.books.links(unit);
        if before == 0 {
            self.heads[order as usize] = after;
        } else {
            let [first, _] = self.books.links(before - 1);
            self.books.set_links(before - 1, [first, after]);
        }
        if after != 0 {
            let [_, last] = self.books.links(after - 1);
            self.books.set_links(after - 1, [before, last]);
        }
        self.books.set_state(unit, STATE_INSIDE);
    }
}

/// Asks the processor to fetch the cache line that `place` begins in. A hint:
/// it changes nothing that a program can see.
#[inline(always)]
pub(crate) fn prefetch_line<T>(place: &T) {
    prefetch_address(std::ptr::from_ref(place).cast());
}

#[inline(always)]
pub(crate) fn prefetch_address(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch does not fault, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: usize = 1024 * 1024;

    fn resident_bytes_of(arena: &Arena) -> usize {
        let chunks = (0..arena.region_bytes()).step_by(CHUNK_BYTES);
        chunks.map(|at| arena.resident_bytes(at, CHUNK_BYTES)).sum()
    }

    fn touch(arena: &Arena, span: Span, order: u8) {
        // SAFETY: the span was handed out to this test and lies in the region.
        unsafe {
            arena
                .base()
                .add(span.0 as usize * SPAN_BYTES_MIN)
                .write_bytes(0xAB, Arena::span_bytes(order));
        }
    }

    #[test]
    fn freed_spans_leave_resident_memory() {
        let arena = Arena::reserve(64 * MIB).unwrap();
        arena.set_cache_limit_bytes(0);
        let spans: Vec<_> = (0..100).map(|_| arena.alloc_span(2).unwrap()).collect();
        for &span in &spans {
            touch(&arena, span, 2);
        }
        assert_eq!(arena.used_bytes(), 100 * 64 * 1024);
        assert_eq!(resident_bytes_of(&arena), 100 * 64 * 1024);
        for span in spans {
            arena.free_span(span, 2);
        }
        assert_eq!(arena.used_bytes(), 0);
        assert_eq!(resident_bytes_of(&arena), 0);
    }

    #[test]
    fn the_cache_is_counted_bounded_and_given_back() {
        let arena = Arena::reserve(64 * MIB).unwrap();
        arena.set_cache_limit_bytes(40 * 1024);
        let spans: Vec<_> = (0..8).map(|_| arena.alloc_span(0).unwrap()).collect();
        for span in spans {
            touch(&arena, span, 0);
            arena.free_span(span, 0);
        }
        assert_eq!(arena.cached_bytes(), 32 * 1024);
        assert_eq!(arena.used_bytes(), 32 * 1024);
        assert_eq!(arena.release_cached(), 32 * 1024);
        assert_eq!(arena.used_bytes(), 0);
        assert_eq!(resident_bytes_of(&arena), 0);
    }

    /// Looks at every chunk as often as it takes to give huge pages to full ones.
    fn join_all(arena: &Arena) {
        for _ in 0..40 {
            arena.join_pages(usize::MAX);
        }
    }

    #[test]
    fn full_chunks_get_huge_pages_until_a_part_is_freed() {
        let arena = Arena::reserve(64 * MIB).unwrap();
        arena.set_cache_limit_bytes(0);
        let spans: Vec<_> = (0..300).map(|_| arena.alloc_span(2).unwrap()).collect();
        for (number, &span) in spans.iter().enumerate() {
            touch(&arena, span, 2);
            // SAFETY: as in `touch`.
            unsafe {
                *arena
                    .base()
                    .add(span.0 as usize * SPAN_BYTES_MIN)
                    .cast()
                    .as_mut() = number;
            }
        }
        join_all(&arena);
        if !thermocline_device::huge_pages_when_asked() || arena.huge_bytes() == 0 {
            eprintln!("SKIPPED: this system gives no huge pages");
            assert_eq!(arena.huge_bytes(), 0);
            return;
        }
        // 300 spans of 64 KiB are nine chunks and a rest.
        assert_eq!(arena.huge_bytes(), 9 * CHUNK_BYTES);
        assert_eq!(resident_bytes_of(&arena), 300 * 64 * 1024);
        for span in spans.iter().step_by(2) {
            arena.free_span(*span, 2);
        }
        assert_eq!(arena.huge_bytes(), 0);
        assert_eq!(resident_bytes_of(&arena), 150 * 64 * 1024);
        for (number, span) in spans.iter().enumerate().skip(1).step_by(2) {
            // SAFETY: as in `touch`; it was written above.
            let bytes = unsafe {
                let start = arena.base().add(span.0 as usize * SPAN_BYTES_MIN);
                std::slice::from_raw_parts(start.as_ptr(), Arena::span_bytes(2))
            };
            assert_eq!(bytes[..8], number.to_ne_bytes());
            assert!(bytes[8..].iter().all(|byte| *byte == 0xAB));
        }
        // Full chunks join anew.
        let again: Vec<_> = (0..150).map(|_| arena.alloc_span(2).unwrap()).collect();
        again.iter().for_each(|span| touch(&arena, *span, 2));
        join_all(&arena);
        assert_eq!(arena.huge_bytes(), 9 * CHUNK_BYTES);
        for span in spans.into_iter().skip(1).step_by(2).chain(again) {
            arena.free_span(span, 2);
        }
        assert_eq!(arena.huge_bytes(), 0);
        assert_eq!(resident_bytes_of(&arena), 0);
    }

    #[test]
    fn what_was_not_touched_gets_no_huge_page() {
        let arena = Arena::reserve(64 * MIB).unwrap();
        let small: Vec<_> = (0..128).map(|_| arena.alloc_span(0).unwrap()).collect();
        let large = arena.alloc_span(ORDER_MAX).unwrap();
        small.iter().for_each(|span| touch(&arena, *span, 0));
        touch(&arena, large, 0);
        let before = resident_bytes_of(&arena);
        join_all(&arena);
        assert_eq!(resident_bytes_of(&arena), before);
        // The large span is in nobody's way.
        let allowed = thermocline_device::huge_pages_when_asked();
        assert!(!allowed || [0, CHUNK_BYTES].contains(&arena.huge_bytes()));
    }

    #[test]
    fn an_exhausted_region_answers_none_and_recovers() {
        let arena = Arena::reserve(8 * MIB).unwrap();
        let small: Vec<_> = std::iter::from_fn(|| arena.alloc_span(0)).collect();
        assert_eq!(small.len(), 8 * MIB / SPAN_BYTES_MIN);
        assert_eq!(arena.alloc_span(ORDER_MAX), None);
        for span in small {
            arena.free_span(span, 0);
        }
        // Half of it is in the cache, and must be joined again for this.
        assert!(arena.alloc_span(ORDER_MAX).is_some());
        assert!(arena.alloc_span(ORDER_MAX).is_some());
        assert_eq!(arena.alloc_span(0), None);
    }

    #[test]
    fn addresses_are_enough_for_the_worst_mix_of_spans() {
        let memory_bytes = 4 * MIB;
        let arena = Arena::reserve_for(memory_bytes).unwrap();
        arena.set_cache_limit_bytes(0);
        // One small span is left of each large span's worth, in as many as memory has room for.
        let mut kept = Vec::new();
        for _ in 0..memory_bytes / SPAN_BYTES_MIN - ORDER_MAX as usize {
            let first = arena.alloc_span(ORDER_MAX).unwrap();
            arena.free_span(first, ORDER_MAX);
            let small: Vec<_> = std::iter::from_fn(|| arena.alloc_span(0))
                .take(SPAN_BYTES_MAX / SPAN_BYTES_MIN)
                .collect();
            let last = small.len() - 1;
            small[..last].iter().for_each(|s| arena.free_span(*s, 0));
            kept.push(small[last]);
        }
        assert!(arena.used_bytes() < memory_bytes);
        assert!(arena.alloc_span(ORDER_MAX).is_some());
        // What goes back joins, whichever way it was cut.
        kept.into_iter().for_each(|span| arena.free_span(span, 0));
        let whole = arena.region_bytes() / SPAN_BYTES_MAX - 1;
        assert!((0..whole).all(|_| arena.alloc_span(ORDER_MAX).is_some()));
        assert_eq!(arena.alloc_span(0), None);
    }

    #[test]
    #[should_panic(expected = "not handed out")]
    fn freeing_twice_is_caught() {
        let arena = Arena::reserve(4 * MIB).unwrap();
        let span = arena.alloc_span(1).unwrap();
        arena.free_span(span, 1);
        arena.free_span(span, 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn spans_are_aligned_and_disjoint(
            steps in prop::collection::vec((0u8..=ORDER_MAX, any::<bool>(), any::<u16>()), 1..300),
            cache_limit_bytes in 0usize..2 * MIB,
        ) {
            let arena = Arena::reserve(32 * MIB).unwrap();
            arena.set_cache_limit_bytes(cache_limit_bytes);
            let mut held: Vec<(Span, u8)> = Vec::new();
            let words = |span: Span, order: u8| {
                (0..Arena::span_bytes(order)).step_by(4096).map(move |at| {
                    let at = span.0 as usize * SPAN_BYTES_MIN + at;
                    (at, (at as u32).wrapping_mul(0x9E37_79B9))
                })
            };
            for (order, take, which) in steps {
                if take || held.is_empty() {
                    if let Some(span) = arena.alloc_span(order) {
                        let units = 1u32 << order;
                        prop_assert_eq!(span.0 % units, 0);
                        for &(other, other_order) in &held {
                            let apart = span.0 + units <= other.0
                                || other.0 + (1 << other_order) <= span.0;
                            prop_assert!(apart);
                        }
                        for (at, word) in words(span, order) {
                            // SAFETY: as in `touch`.
                            unsafe { arena.base().add(at).cast().write(word) };
                        }
                        held.push((span, order));
                    }
                } else {
                    let (span, order) = held.swap_remove(which as usize % held.len());
                    for (at, word) in words(span, order) {
                        // SAFETY: as in `touch`; it was written when it was handed out.
                        let found: u32 = unsafe { arena.base().add(at).cast().read() };
                        prop_assert_eq!(found, word);
                    }
                    arena.free_span(span, order);
                }
                let held_bytes: usize = held.iter().map(|h| Arena::span_bytes(h.1)).sum();
                prop_assert_eq!(arena.used_bytes(), held_bytes + arena.cached_bytes());
                prop_assert!(arena.cached_bytes() <= cache_limit_bytes);
                arena.join_pages(2);
                prop_assert!(arena.huge_bytes() <= arena.used_bytes());
            }
            for (span, order) in held {
                arena.free_span(span, order);
            }
            arena.release_cached();
            prop_assert_eq!(arena.used_bytes(), 0);
            prop_assert_eq!(arena.huge_bytes(), 0);
            for _ in 0..8 {
                prop_assert!(arena.alloc_span(ORDER_MAX).is_some());
            }
        }
    }
}
