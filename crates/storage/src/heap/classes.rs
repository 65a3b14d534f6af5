//! The pages of a heap by size class, and which class a new tuple goes to.

use std::ops::{Index, IndexMut};

use super::size_class::{
    CLASSES, SIZE_CLASSES, class_of_payload, fitted_class_of_payload, is_fitted,
};
use crate::arena::TuplePtr;

/// The pages of one size class, named by their span.
#[derive(Default)]
pub(super) struct Pages {
    pub class: usize,
    pub all: Vec<u32>,
    /// Pages with a free slot; the last is allocated from.
    pub partial: Vec<u32>,
    pub spare: Option<u32>,
    /// Slots in use in these pages.
    pub live: usize,
    /// The heap's slots of this class in pages that it shares.
    pub common: Vec<TuplePtr>,
    /// Where the next sample of `evacuate` begins.
    pub evacuate_cursor: usize,
}

/// The pages of the classes in use: most tables use few, and there may be many heaps.
pub(super) struct Classes {
    /// Where a class is in `used`, up to the last that is.
    places: Vec<u16>,
    pub used: Vec<Pages>,
    /// Stands for the classes that are not.
    none: Pages,
}

const UNUSED: u16 = u16::MAX;
const _: () = assert!(CLASSES < UNUSED as usize);
/// Bytes of tuples of one class from which on fitted pages pay: what is left half
/// empty of a few of them is little beside that.
const FITTED_FROM_BYTES: usize = 1 << 20;

impl Classes {
    pub fn new() -> Self {
        Classes {
            places: Vec::new(),
            used: Vec::new(),
            none: Pages::default(),
        }
    }

    /// The class for a new tuple, `None` if it is too long: a fitted one where
    /// there are many tuples of about its size.
    #[inline]
    pub fn for_new(&self, len: usize) -> Option<usize> {
        let ordinary = class_of_payload(len)?;
        let Some(fitted) = fitted_class_of_payload(len) else {
            return Some(ordinary);
        };
        let many = |class: usize| {
            self[class].live * SIZE_CLASSES[class].slot_bytes as usize >= FITTED_FROM_BYTES
        };
        Some(if many(fitted) || many(ordinary) {
            fitted
        } else {
            ordinary
        })
    }

    /// Whether there are so few tuples of a class that another one goes to a common page: less
    /// than such a page holds. Many are better off in pages that can be emptied.
    #[inline]
    pub fn are_few(&self, class: usize) -> bool {
        let capacity = SIZE_CLASSES[class].capacity as usize;
        !is_fitted(class) && capacity > 1 && self[class].common.len() < capacity
    }

    #[inline]
    fn place(&self, class: usize) -> usize {
        usize::from(self.places.get(class).copied().unwrap_or(UNUSED))
    }
}

impl Index<usize> for Classes {
    type Output = Pages;

    #[inline]
    fn index(&self, class: usize) -> &Pages {
        self.used.get(self.place(class)).unwrap_or(&self.none)
    }
}

impl IndexMut<usize> for Classes {
    #[inline]
    fn index_mut(&mut self, class: usize) -> &mut Pages {
        let place = self.place(class);
        if place < self.used.len() {
            return &mut self.used[place];
        }
        self.begin(class)
    }
}

impl Classes {
    #[cold]
    fn begin(&mut self, class: usize) -> &mut Pages {
        if self.places.len() <= class {
            self.places.resize(class + 1, UNUSED);
        }
        self.places[class] = self.used.len() as u16;
        self.used.push(Pages {
            class,
            ..Pages::default()
        });
        let last = self.used.len() - 1;
        &mut self.used[last]
    }
}
