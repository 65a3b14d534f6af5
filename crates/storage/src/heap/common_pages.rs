//! Pages that the heaps of a partition have in common. A heap's first tuples of a class lie there,
//! as many as one page holds, side by side with those of other tables.
//!
//! A tuple there is its heap's alone: read, changed and moved by that heap only. The pages are
//! those of one more heap, which has slots and knows no tuples. Each heap lists its slots, so
//! that it can give them back when its table goes.
//!
//! Assumes that all heaps over the same pages are of one partition, so that nobody waits for
//! the mutex. `evacuate` leaves these pages alone: a page goes back when its last tuple leaves.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::size_class::SIZE_CLASSES;
use super::{COMMON, Heap, PAYLOAD_BITS};
use crate::arena::{Arena, TuplePtr};

/// Slots of a class that a heap may have in common pages: positions have the bits that a
/// tuple's length leaves.
const SLOTS_MAX: u32 = 1 << (COMMON.trailing_zeros() - PAYLOAD_BITS);

const _: () = {
    let mut class = 0;
    while class < SIZE_CLASSES.len() {
        let capacity = SIZE_CLASSES[class].capacity;
        assert!(super::is_fitted(class) || capacity <= SLOTS_MAX);
        class += 1;
    }
};

/// The pages in common; clones are the same pages.
#[derive(Clone)]
pub struct CommonPages(Arc<Mutex<Heap>>);

impl CommonPages {
    /// No pages yet, over this arena.
    pub fn new(arena: Arc<Arena>) -> Self {
        CommonPages(Arc::new(Mutex::new(Heap::new(arena))))
    }

    /// The arena that they lie in.
    pub fn arena(&self) -> Arc<Arena> {
        self.slots().arena.clone()
    }

    /// Bytes of the spans of all pages.
    pub fn allocated_bytes(&self) -> usize {
        self.slots().allocated_bytes
    }

    pub(super) fn is_live_slot(&self, ptr: TuplePtr) -> bool {
        self.slots().is_live_slot(ptr)
    }

    fn slots(&self) -> MutexGuard<'_, Heap> {
        self.0.lock()
    }
}

impl Heap {
    /// A slot in a common page, and what a tuple's length says of it beside the payload's.
    #[cold]
    pub(super) fn take_common_slot(&mut self, class: usize) -> Option<(TuplePtr, u32)> {
        let ptr = self.common.as_ref()?.slots().take_slot(class)?;
        let listed = &mut self.classes[class].common;
        let kind = COMMON | (listed.len() as u32) << PAYLOAD_BITS;
        listed.push(ptr);
        self.common_bytes += SIZE_CLASSES[class].slot_bytes as usize;
        Some((ptr, kind))
    }

    /// Gives back a slot that is listed at this position.
    #[cold]
    pub(super) fn give_common_slot(&mut self, class: usize, position: usize, ptr: TuplePtr) {
        let listed = &mut self.classes[class].common;
        assert!(
            listed.get(position) == Some(&ptr),
            "a tuple's header is corrupt"
        );
        listed.swap_remove(position);
        if let Some(&other) = listed.get(position) {
            let header = self.header_mut(other);
            let kind = COMMON | (position as u32) << PAYLOAD_BITS;
            header.len = kind | header.payload_bytes() as u32;
        }
        self.common_bytes -= SIZE_CLASSES[class].slot_bytes as usize;
        self.give_to_common(class, ptr);
    }

    /// Has the common pages take back a slot that is not listed any more.
    pub(super) fn give_to_common(&self, class: usize, ptr: TuplePtr) {
        let Some(common) = &self.common else {
            unreachable!("slots were taken there");
        };
        let mut slots = common.slots();
        let page = slots.give_slot(class, ptr);
        if slots.page(page).live == 0 {
            slots.remove_partial(class, page);
            slots.release_page(class, page);
        }
    }
}
