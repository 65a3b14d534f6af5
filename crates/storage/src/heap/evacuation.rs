//! How memory comes back from a heap of which many tuples have left: pages with few of them are
//! emptied into others.

use super::size_class::{PAGE_HEADER_BYTES, SIZE_CLASSES};
use super::{Heap, LEN_FREE, NOWHERE, slot_at};
use crate::arena::{ADDRESS_UNIT_BYTES, TuplePtr};

/// How many pages `evacuate` looks at to find an empty one.
const EVACUATE_SAMPLE_PAGES: usize = 64;

/// What [`Heap::evacuate`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Evacuated {
    /// Bytes of payload moved.
    pub moved_bytes: usize,
    /// Bytes of pages returned to the arena.
    pub released_bytes: usize,
}

impl Heap {
    /// Empties sparsely filled pages of its own into others of their class and releases
    /// them, moving up to about `max_bytes` of slots. Calls `moved(row, old,
    /// new)` for each tuple moved; `old` is no longer valid then. Never takes a
    /// span. Does nothing where no page can be gained.
    pub fn evacuate(
        &mut self,
        max_bytes: usize,
        moved: &mut dyn FnMut(u32, TuplePtr, TuplePtr),
    ) -> Evacuated {
        let mut done = Evacuated::default();
        for place in 0..self.classes.used.len() {
            let class = self.classes.used[place].class;
            let shape = &SIZE_CLASSES[class];
            loop {
                let pages = &self.classes[class];
                let slots = pages.all.len() * shape.capacity as usize;
                let gains_a_page = slots - pages.live >= shape.capacity as usize;
                if done.moved_bytes >= max_bytes || !gains_a_page || pages.all.len() < 2 {
                    break;
                }
                if let Some(spare) = self.classes[class].spare.take() {
                    done.released_bytes += self.release_page(class, spare);
                    continue;
                }
                let Some(page) = self.emptiest_page(class) else {
                    break;
                };
                if !self.empty_page(class, page, &mut done, moved) {
                    break;
                }
            }
        }
        done
    }

    /// The emptiest page of a sample of the class's partial pages.
    fn emptiest_page(&mut self, class: usize) -> Option<u32> {
        let pages = &mut self.classes[class];
        let count = pages.partial.len();
        if count < 2 {
            return None;
        }
        let first = pages.evacuate_cursor % count;
        pages.evacuate_cursor = first + EVACUATE_SAMPLE_PAGES;
        let sample = EVACUATE_SAMPLE_PAGES.min(count);
        (0..sample)
            .map(|step| self.classes[class].partial[(first + step) % count])
            .min_by_key(|&page| self.page(page).live)
    }

    /// Moves all tuples of `page` to other pages with room. False when these
    /// are full before it is empty.
    fn empty_page(
        &mut self,
        class: usize,
        page: u32,
        done: &mut Evacuated,
        moved: &mut dyn FnMut(u32, TuplePtr, TuplePtr),
    ) -> bool {
        self.remove_partial(class, page);
        let shape = &SIZE_CLASSES[class];
        let slot_units = shape.slot_bytes / ADDRESS_UNIT_BYTES as u32;
        let mut unit = (PAGE_HEADER_BYTES / ADDRESS_UNIT_BYTES) as u32;
        let end = self.page(page).fresh;
        while unit < end && !self.classes[class].partial.is_empty() {
            let old = slot_at(page, unit);
            unit += slot_units;
            let header = *self.header(old);
            if header.len == LEN_FREE {
                continue;
            }
            let Some(new) = self.take_slot(class) else {
                break;
            };
            *self.header_mut(new) = header;
            self.copy_payload(old, new, header.payload_bytes());
            // The page stays out of the partial list while it is emptied.
            self.page_mut(page).partial_position = NOWHERE - 1;
            self.give_slot(class, old);
            self.page_mut(page).partial_position = NOWHERE;
            done.moved_bytes += shape.slot_bytes as usize;
            moved(header.row, old, new);
        }
        if self.page(page).live > 0 {
            self.add_partial(class, page);
            return false;
        }
        done.released_bytes += self.release_page(class, page);
        true
    }
}
