//! The heap: the hot tuples of one table in one partition.
//!
//! A tuple is a 16-byte header (payload length, row id, address of a clean copy
//! on a device) and its payload, in a slot of its size class. Pages are spans of
//! the arena; free slots are chained through the pages themselves. A page
//! that becomes empty goes back to the arena, and `evacuate` makes pages empty,
//! which is how memory returns after tuples were evicted or deleted.
//!
//! The first tuples of a size, a page's worth, lie in pages that the heaps of a partition have
//! in common ([`CommonPages`]). So a small table takes what its tuples take, not a page for each
//! size of tuples in each partition.
//!
//! Assumes the partition's lock, and that a `TuplePtr` passed in came from this
//! heap and was not freed since. A pointer that did not cannot lead outside of
//! the arena (checked in every build). That it names a live slot is checked
//! in debug builds on every access and in all builds on `free` and `overwrite`.
//! Memory that runs out is `None`, with the heap unchanged.
//!
//! Unsafe: the heap reads and writes spans that it alone owns; every access
//! goes through the five accessors under "The unsafe part".
#![allow(unsafe_code)]

mod classes;
mod common_pages;
mod evacuation;
mod size_class;
#[cfg(test)]
mod tests;

use std::ptr::NonNull;
use std::sync::Arc;

use crate::arena::{ADDRESS_UNIT_BYTES, Arena, SPAN_BYTES_MIN, Span, TuplePtr, prefetch_address};

use classes::Classes;
pub use common_pages::CommonPages;
pub use evacuation::Evacuated;
pub use size_class::PAYLOAD_BYTES_MAX;
use size_class::{
    CLASSES, PAGE_HEADER_BYTES, SIZE_CLASSES, SizeClass, TUPLE_HEADER_BYTES, class_of_payload,
    fitted_class_of_payload, is_fitted,
};

/// The length in the header of a slot that holds no tuple.
const LEN_FREE: u32 = u32::MAX;
/// Bits of the length that are the payload's; above them is where the tuple is in its class's
/// `common`, if it is there.
const PAYLOAD_BITS: u32 = 21;
const PAYLOAD_MASK: u32 = (1 << PAYLOAD_BITS) - 1;
/// In the length: the slot is one of a page that heaps have in common.
const COMMON: u32 = 1 << 30;
/// In the length: the slot is one of a fitted class.
const FITTED: u32 = 1 << 31;
const NOWHERE: u32 = u32::MAX;
/// Pages of at most this order are kept as a class's spare when empty.
const SPARE_ORDER_MAX: u8 = 2;

#[derive(Clone, Copy)]
#[repr(C)]
struct TupleHeader {
    /// Bytes of the payload, and which kind of slot it is in.
    len: u32,
    /// The row id; in a free slot the next free one (units from the page).
    row: u32,
    cold: u64,
}

impl TupleHeader {
    /// Bytes of the payload; more than any has for a free slot.
    #[inline(always)]
    fn payload_bytes(&self) -> usize {
        (self.len & PAYLOAD_MASK) as usize
    }

    /// Where the tuple is in its class's `common`; None if its page is the heap's own.
    #[inline(always)]
    fn common_position(&self) -> Option<usize> {
        let position = (self.len & !(FITTED | COMMON)) >> PAYLOAD_BITS;
        (self.len & COMMON != 0).then_some(position as usize)
    }

    /// The class that a payload of `bytes` would have in this slot's kind of pages.
    #[inline]
    fn class_for(&self, bytes: usize) -> Option<usize> {
        if self.len & FITTED != 0 {
            fitted_class_of_payload(bytes)
        } else {
            class_of_payload(bytes)
        }
    }

    /// The slot's class.
    #[inline]
    fn class(&self) -> Option<usize> {
        self.class_for(self.payload_bytes())
    }
}

#[repr(C, align(64))]
struct PageHeader {
    class: u32,
    live: u32,
    /// First free slot in units from the page's start; 0 is none.
    free_head: u32,
    /// Slots from this unit on were never used.
    fresh: u32,
    /// Where the page is in its class's `pages` and `partial`.
    position: u32,
    partial_position: u32,
}

const _: () = assert!(size_of::<TupleHeader>() == TUPLE_HEADER_BYTES);
const _: () = assert!(size_of::<PageHeader>() == PAGE_HEADER_BYTES);
const _: () = assert!(PAYLOAD_BYTES_MAX < PAYLOAD_MASK as usize);

const LINE_BYTES: usize = 64;
/// Of a long tuple the processor asks for the rest by itself.
const LINES_ASKED_FOR_MAX: usize = 8;
/// How often the usual length of a tuple is looked at, in tuples.
const LINES_COUNTED_AFTER: usize = 256;

/// The tuples of one table in one partition.
pub struct Heap {
    arena: Arc<Arena>,
    base: NonNull<u8>,
    region_units: u64,
    classes: Classes,
    /// Where the first tuples of each class go; None where all have pages of their own.
    common: Option<CommonPages>,
    /// Bytes of the slots that this heap has in common pages.
    common_bytes: usize,
    /// Bytes of the spans of the heap's own pages.
    allocated_bytes: usize,
    /// Bytes of the slots of all own pages, and of those in use.
    page_slot_bytes: usize,
    slot_bytes: usize,
    live_bytes: usize,
    tuples: usize,
    /// Cache lines that a tuple has on the average, as far as they are asked for.
    usual_lines: usize,
}

// SAFETY: the spans belong to this heap alone, `&self` only reads them, and the
// arena outlives the heap.
unsafe impl Send for Heap {}
// SAFETY: as above.
unsafe impl Sync for Heap {}

impl Heap {
    /// An empty heap over `arena` that has all its pages alone; takes no span yet.
    pub fn new(arena: Arc<Arena>) -> Self {
        Self {
            base: arena.base(),
            region_units: (arena.region_bytes() / ADDRESS_UNIT_BYTES) as u64,
            arena,
            classes: Classes::new(),
            common: None,
            common_bytes: 0,
            allocated_bytes: 0,
            page_slot_bytes: 0,
            slot_bytes: 0,
            live_bytes: 0,
            tuples: 0,
            usual_lines: 1,
        }
    }

    /// An empty heap whose first tuples lie in these pages; takes no memory yet.
    pub fn sharing(common: &CommonPages) -> Self {
        let mut heap = Self::new(common.arena());
        heap.common = Some(common.clone());
        heap
    }

    /// Stores a tuple. `cold` is the address of an identical copy on a device,
    /// 0 for none. `None` when the arena is exhausted or the payload is longer
    /// than [`PAYLOAD_BYTES_MAX`].
    #[inline]
    pub fn insert(&mut self, row: u32, cold: u64, payload: &[u8]) -> Option<TuplePtr> {
        self.insert_with(row, cold, payload.len(), |place| {
            place.copy_from_slice(payload)
        })
    }

    /// As [`Heap::insert`], letting `fill` write the `len` bytes in place. It
    /// finds arbitrary bytes there.
    #[inline]
    pub fn insert_with(
        &mut self,
        row: u32,
        cold: u64,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Option<TuplePtr> {
        let class = self.classes.for_new(len)?;
        let (ptr, kind) = if self.common.is_some() && self.classes.are_few(class) {
            self.take_common_slot(class)?
        } else {
            let kind = if is_fitted(class) { FITTED } else { 0 };
            (self.take_slot(class)?, kind)
        };
        *self.header_mut(ptr) = TupleHeader {
            len: len as u32 | kind,
            row,
            cold,
        };
        self.live_bytes += TUPLE_HEADER_BYTES + len;
        self.tuples += 1;
        if self.tuples.is_multiple_of(LINES_COUNTED_AFTER) {
            let lines = (self.live_bytes / self.tuples).div_ceil(LINE_BYTES);
            self.usual_lines = lines.clamp(1, LINES_ASKED_FOR_MAX);
        }
        fill(self.bytes_mut(ptr, len));
        Some(ptr)
    }

    /// The tuple's payload.
    #[inline]
    pub fn payload(&self, ptr: TuplePtr) -> &[u8] {
        let len = self.header(ptr).payload_bytes();
        self.bytes(ptr, len)
    }

    /// The tuple's payload, to be changed in place. A caller that changes it
    /// says so with `set_cold(ptr, 0)`.
    #[inline]
    pub fn payload_mut(&mut self, ptr: TuplePtr) -> &mut [u8] {
        let len = self.header(ptr).payload_bytes();
        self.bytes_mut(ptr, len)
    }

    /// The row id the tuple was stored with.
    #[inline]
    pub fn row(&self, ptr: TuplePtr) -> u32 {
        self.header(ptr).row
    }

    /// The address word of the clean copy on a device; 0 when there is none.
    #[inline]
    pub fn cold(&self, ptr: TuplePtr) -> u64 {
        self.header(ptr).cold
    }

    /// Says where a clean copy is, or with 0 that there is none.
    #[inline]
    pub fn set_cold(&mut self, ptr: TuplePtr, cold: u64) {
        self.header_mut(ptr).cold = cold;
    }

    /// Puts another payload in the tuple's place, if its slot is one for so many bytes: false,
    /// and the tuple is unchanged, if it is not. The row id stays; the cold address becomes 0, for
    /// the copy is no longer the tuple. Takes no memory, so that the way back is open, too.
    pub fn overwrite(&mut self, ptr: TuplePtr, payload: &[u8]) -> bool {
        let header = *self.header(ptr);
        assert!(header.len != LEN_FREE, "overwrote a tuple that was freed");
        let stays = header.class_for(payload.len());
        if stays.is_none() || stays != header.class() {
            return false;
        }
        *self.header_mut(ptr) = TupleHeader {
            len: payload.len() as u32 | header.len & !PAYLOAD_MASK,
            row: header.row,
            cold: 0,
        };
        self.live_bytes = self.live_bytes - header.payload_bytes() + payload.len();
        self.bytes_mut(ptr, payload.len()).copy_from_slice(payload);
        true
    }

    /// Frees a tuple; its page goes back to the arena if it was the last one.
    pub fn free(&mut self, ptr: TuplePtr) {
        let header = *self.header(ptr);
        assert!(header.len != LEN_FREE, "freed a tuple twice");
        self.live_bytes -= TUPLE_HEADER_BYTES + header.payload_bytes();
        self.tuples -= 1;
        let class = header.class().unwrap_or(CLASSES);
        assert!(class < CLASSES, "a tuple's length is corrupt");
        if let Some(position) = header.common_position() {
            return self.give_common_slot(class, position, ptr);
        }
        let page = self.give_slot(class, ptr);
        if self.page(page).live == 0 {
            self.retire_page(class, page);
        }
    }

    /// Asks for the cache lines of a tuple, as many as tuples here usually have.
    #[inline]
    pub fn prefetch(&self, ptr: TuplePtr) {
        let offset = ptr.0 as usize * ADDRESS_UNIT_BYTES;
        let first = self.base.as_ptr().wrapping_add(offset);
        for line in 0..self.usual_lines {
            prefetch_address(first.wrapping_add(line * LINE_BYTES));
        }
    }

    /// Bytes of the spans this heap holds alone, and of its slots in common pages.
    pub fn allocated_bytes(&self) -> usize {
        self.allocated_bytes + self.common_bytes
    }

    /// Bytes of headers and payloads of live tuples.
    pub fn live_bytes(&self) -> usize {
        self.live_bytes
    }

    /// Number of live tuples.
    pub fn tuples(&self) -> usize {
        self.tuples
    }

    /// Share of the slots that are free in the heap's own pages, in bytes, 0 to 1: what evacuation
    /// can hope for.
    pub fn fragmentation(&self) -> f64 {
        if self.page_slot_bytes == 0 {
            return 0.0;
        }
        (self.page_slot_bytes - self.slot_bytes) as f64 / self.page_slot_bytes as f64
    }

    // Slots and pages.

    fn take_slot(&mut self, class: usize) -> Option<TuplePtr> {
        let shape = &SIZE_CLASSES[class];
        let page = match self.classes[class].partial.last() {
            Some(&page) => page,
            None => self.open_page(class)?,
        };
        let slot_units = shape.slot_bytes / ADDRESS_UNIT_BYTES as u32;
        let free_head = self.page(page).free_head;
        let unit = if free_head != 0 {
            let next = self.header(slot_at(page, free_head)).row;
            self.page_mut(page).free_head = next;
            free_head
        } else {
            let header = self.page_mut(page);
            let fresh = header.fresh;
            header.fresh += slot_units;
            fresh
        };
        let header = self.page_mut(page);
        header.live += 1;
        if header.live == shape.capacity {
            header.partial_position = NOWHERE;
            self.classes[class].partial.pop();
        }
        self.classes[class].live += 1;
        self.slot_bytes += shape.slot_bytes as usize;
        Some(slot_at(page, unit))
    }

    /// Marks a slot free and its page partial; the page may be empty then.
    fn give_slot(&mut self, class: usize, ptr: TuplePtr) -> u32 {
        let shape = &SIZE_CLASSES[class];
        let (page, unit) = page_of(ptr, shape);
        let header = self.page(page);
        assert!(
            header.class == class as u32 && header.live > 0,
            "a tuple's length does not fit its page"
        );
        let free_head = header.free_head;
        *self.header_mut(ptr) = TupleHeader {
            len: LEN_FREE,
            row: free_head,
            cold: 0,
        };
        let header = self.page_mut(page);
        header.free_head = unit;
        header.live -= 1;
        if header.partial_position == NOWHERE {
            self.add_partial(class, page);
        }
        self.classes[class].live -= 1;
        self.slot_bytes -= shape.slot_bytes as usize;
        page
    }

    fn open_page(&mut self, class: usize) -> Option<u32> {
        let page = match self.classes[class].spare.take() {
            Some(page) => page,
            None => {
                let shape = &SIZE_CLASSES[class];
                let page = self.arena.alloc_span(shape.order)?.0;
                self.allocated_bytes += Arena::span_bytes(shape.order);
                self.page_slot_bytes += shape.page_slot_bytes();
                let pages = &mut self.classes[class];
                let position = pages.all.len() as u32;
                pages.all.push(page);
                *self.page_mut(page) = PageHeader {
                    class: class as u32,
                    live: 0,
                    free_head: 0,
                    fresh: (PAGE_HEADER_BYTES / ADDRESS_UNIT_BYTES) as u32,
                    position,
                    partial_position: NOWHERE,
                };
                page
            }
        };
        self.add_partial(class, page);
        Some(page)
    }

    /// Takes an empty page out of use: kept as the spare of a class that has
    /// other pages and none yet, else returned.
    fn retire_page(&mut self, class: usize, page: u32) {
        self.remove_partial(class, page);
        let header = self.page_mut(page);
        header.free_head = 0;
        header.fresh = (PAGE_HEADER_BYTES / ADDRESS_UNIT_BYTES) as u32;
        let pages = &mut self.classes[class];
        let keep = SIZE_CLASSES[class].order <= SPARE_ORDER_MAX && pages.live > 0;
        if keep && pages.spare.is_none() {
            pages.spare = Some(page);
            return;
        }
        self.release_page(class, page);
        if !keep && let Some(spare) = self.classes[class].spare.take() {
            self.release_page(class, spare);
        }
    }

    /// Returns an empty page that is in no list of partial pages.
    fn release_page(&mut self, class: usize, page: u32) -> usize {
        let header = self.page(page);
        assert!(header.live == 0, "released a page with live tuples");
        let position = header.position as usize;
        let pages = &mut self.classes[class];
        assert!(
            pages.all.get(position) == Some(&page),
            "a page's header is corrupt"
        );
        pages.all.swap_remove(position);
        if let Some(&other) = pages.all.get(position) {
            self.page_mut(other).position = position as u32;
        }
        let shape = &SIZE_CLASSES[class];
        self.arena.free_span(Span(page), shape.order);
        self.allocated_bytes -= Arena::span_bytes(shape.order);
        self.page_slot_bytes -= shape.page_slot_bytes();
        Arena::span_bytes(shape.order)
    }

    fn add_partial(&mut self, class: usize, page: u32) {
        let partial = &mut self.classes[class].partial;
        let position = partial.len() as u32;
        partial.push(page);
        self.page_mut(page).partial_position = position;
    }

    fn remove_partial(&mut self, class: usize, page: u32) {
        let position = self.page(page).partial_position as usize;
        let partial = &mut self.classes[class].partial;
        assert!(
            partial.get(position) == Some(&page),
            "a page's header is corrupt"
        );
        partial.swap_remove(position);
        if let Some(&other) = partial.get(position) {
            self.page_mut(other).partial_position = position as u32;
        }
        self.page_mut(page).partial_position = NOWHERE;
    }

    // The unsafe part. `ptr` and `page` are checked to lie in the region; lengths
    // are at most PAYLOAD_BYTES_MAX, which the guard behind the region covers.

    #[inline(always)]
    fn place(&self, ptr: TuplePtr) -> NonNull<u8> {
        assert!(ptr.0 < self.region_units, "a tuple pointer leads nowhere");
        // SAFETY: the offset is inside the region.
        unsafe { self.base.add(ptr.0 as usize * ADDRESS_UNIT_BYTES) }
    }

    #[inline(always)]
    fn header(&self, ptr: TuplePtr) -> &TupleHeader {
        // SAFETY: in the region, aligned to 8, initialised (any bits are a
        // header), and written only under `&mut self`.
        unsafe { self.place(ptr).cast().as_ref() }
    }

    #[inline(always)]
    fn header_mut(&mut self, ptr: TuplePtr) -> &mut TupleHeader {
        // SAFETY: as `header`; `&mut self` makes it the only reference.
        unsafe { self.place(ptr).cast().as_mut() }
    }

    #[inline(always)]
    fn bytes(&self, ptr: TuplePtr, len: usize) -> &[u8] {
        assert!(len <= PAYLOAD_BYTES_MAX, "read a tuple that was freed");
        debug_assert!(self.is_live_slot(ptr), "not a live tuple of this heap");
        // SAFETY: the header is in the region and the guard behind it is longer
        // than any payload; written only under `&mut self`.
        unsafe {
            let start = self.place(ptr).add(TUPLE_HEADER_BYTES);
            std::slice::from_raw_parts(start.as_ptr(), len)
        }
    }

    #[inline(always)]
    fn bytes_mut(&mut self, ptr: TuplePtr, len: usize) -> &mut [u8] {
        assert!(len <= PAYLOAD_BYTES_MAX, "wrote a tuple that was freed");
        debug_assert!(self.is_live_slot(ptr), "not a live tuple of this heap");
        // SAFETY: as `bytes`; `&mut self` makes it the only reference.
        unsafe {
            let start = self.place(ptr).add(TUPLE_HEADER_BYTES);
            std::slice::from_raw_parts_mut(start.as_ptr(), len)
        }
    }

    fn copy_payload(&mut self, from: TuplePtr, to: TuplePtr, len: usize) {
        assert!(len <= PAYLOAD_BYTES_MAX, "moved a tuple that was freed");
        let (from, to) = (self.place(from), self.place(to));
        // SAFETY: two slots of one class, one in use and one just taken, are
        // disjoint; both are in the region.
        unsafe {
            let from = from.add(TUPLE_HEADER_BYTES);
            to.add(TUPLE_HEADER_BYTES)
                .copy_from_nonoverlapping(from, len);
        }
    }

    #[inline(always)]
    fn page(&self, page: u32) -> &PageHeader {
        // SAFETY: a span's start is aligned to 16 KiB and holds a header that
        // `open_page` wrote (any bits are one).
        unsafe { self.place(page_start(page)).cast().as_ref() }
    }

    #[inline(always)]
    fn page_mut(&mut self, page: u32) -> &mut PageHeader {
        // SAFETY: as `page`; `&mut self` makes it the only reference.
        unsafe { self.place(page_start(page)).cast().as_mut() }
    }

    /// The debug-mode checker: `ptr` is a slot in use of a page of this heap.
    fn is_live_slot(&self, ptr: TuplePtr) -> bool {
        let tuple = self.header(ptr);
        let Some(class) = tuple.class() else {
            return false;
        };
        if let (Some(position), Some(common)) = (tuple.common_position(), &self.common) {
            let listed = self.classes[class].common.get(position) == Some(&ptr);
            return listed && common.is_live_slot(ptr);
        }
        let shape = &SIZE_CLASSES[class];
        let (page, unit) = page_of(ptr, shape);
        let header = self.page(page);
        let first = (PAGE_HEADER_BYTES / ADDRESS_UNIT_BYTES) as u32;
        let slot_units = shape.slot_bytes / ADDRESS_UNIT_BYTES as u32;
        header.class == class as u32
            && self.classes[class].all.get(header.position as usize) == Some(&page)
            && (first..header.fresh).contains(&unit)
            && (unit - first).is_multiple_of(slot_units)
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        for place in 0..self.classes.used.len() {
            let pages = &mut self.classes.used[place];
            let (class, slots) = (pages.class, std::mem::take(&mut pages.common));
            for ptr in slots {
                self.give_to_common(class, ptr);
            }
        }
        for pages in &self.classes.used {
            for &page in &pages.all {
                self.arena
                    .free_span(Span(page), SIZE_CLASSES[pages.class].order);
            }
        }
    }
}

const UNITS_PER_SPAN_MIN: u64 = (SPAN_BYTES_MIN / ADDRESS_UNIT_BYTES) as u64;

#[inline(always)]
fn page_start(page: u32) -> TuplePtr {
    TuplePtr(u64::from(page) * UNITS_PER_SPAN_MIN)
}

#[inline(always)]
fn slot_at(page: u32, unit: u32) -> TuplePtr {
    TuplePtr(page_start(page).0 + u64::from(unit))
}

/// The page of a slot, which its class's span size and the alignment of spans
/// give away, and the slot's unit in it.
#[inline(always)]
fn page_of(ptr: TuplePtr, shape: &SizeClass) -> (u32, u32) {
    let span_units = UNITS_PER_SPAN_MIN << shape.order;
    let start = ptr.0 & !(span_units - 1);
    ((start / UNITS_PER_SPAN_MIN) as u32, (ptr.0 - start) as u32)
}
