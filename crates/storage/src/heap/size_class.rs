//! Size classes of the heap: slot sizes about a sixteenth apart, and the span
//! that a page of each class takes.
//!
//! Where a heap has many tuples of about one size, a sixteenth is much: behind
//! the ordinary classes there are *fitted* ones, some sixty-fourth apart, in longer
//! pages. Tuples of mixed lengths would leave too many of those half empty, so
//! the heap takes them only where they pay.
//!
//! A tuple above [`SHARED_MAX`] has a page to itself. In a longer page one that stays would
//! keep the memory of all that have left. A page of its own goes back whole, and what of its
//! span lies behind the tuple is never touched: it takes addresses, of which there are plenty,
//! and no memory.
//!
//! Guarantees: a slot wastes at most a sixteenth of itself (the rounding to 16
//! bytes of the smallest apart), a shared page's tail at most a sixteenth of the page. A fitted slot wastes a thirty-second (the rounding to 8 bytes
//! of the smallest apart), its page's tail a thirty-second. Everything is computed at compile time.

use crate::arena::{Arena, ORDER_MAX};

/// Bytes of a page's header; slots begin behind it.
pub(super) const PAGE_HEADER_BYTES: usize = 64;
/// Bytes of a tuple's header in memory.
pub(super) const TUPLE_HEADER_BYTES: usize = 16;

const SMALLEST: usize = 32;
/// Up to here slots are 16 bytes apart.
const LARGEST_STEPPED: usize = 256;
const STEPPED: usize = (LARGEST_STEPPED - SMALLEST) / 16 + 1;
/// Slots from here on divide a span of 4 MiB evenly.
const LARGEST_SIXTEENTHS: usize = 512 * 1024;
const PER_LARGEST_SPAN: [usize; 5] = [7, 6, 5, 4, 3];
/// Longer slots are alone in their pages.
pub(super) const SHARED_MAX: usize = 64 * 1024;
const SIXTEENTHS: usize = class_of_slot(LARGEST_SIXTEENTHS) + 1;
const ORDINARY: usize = SIXTEENTHS + PER_LARGEST_SPAN.len();
/// Fitted slots are larger than the first and at most the last; up to the one between, a power
/// of two, they are 8 bytes apart.
const FITTED_ABOVE: usize = 64;
const FITTED_BY_8: usize = 2048;
const FITTED_LARGEST: usize = 4096;
const FITTED: usize = fitted_of_slot(FITTED_LARGEST) + 1;
/// The highest order of a fitted class's pages, and which share of one its tail
/// may be if a higher order has less.
const FITTED_ORDER_MAX: u8 = 3;
const FITTED_TAIL: usize = 48;
/// How many classes there are: the ordinary ones, then the fitted ones.
pub(super) const CLASSES: usize = ORDINARY + FITTED;

/// What all pages of a class have in common.
#[derive(Clone, Copy)]
pub(super) struct SizeClass {
    /// Bytes of a slot, header included.
    pub slot_bytes: u32,
    /// Slots in a page.
    pub capacity: u32,
    /// Order of a page's span.
    pub order: u8,
}

impl SizeClass {
    /// Bytes of all slots of a page.
    pub fn page_slot_bytes(&self) -> usize {
        (self.slot_bytes * self.capacity) as usize
    }
}

pub(super) const SIZE_CLASSES: [SizeClass; CLASSES] = size_classes();

/// The longest payload a heap takes.
pub const PAYLOAD_BYTES_MAX: usize =
    SIZE_CLASSES[ORDINARY - 1].slot_bytes as usize - TUPLE_HEADER_BYTES;

/// The ordinary class for a payload of `bytes`, `None` if it is too long.
#[inline]
pub(super) fn class_of_payload(bytes: usize) -> Option<usize> {
    let slot_bytes = bytes + TUPLE_HEADER_BYTES;
    if slot_bytes <= LARGEST_SIXTEENTHS {
        return Some(class_of_slot(slot_bytes));
    }
    (SIXTEENTHS..ORDINARY).find(|&class| slot_bytes <= SIZE_CLASSES[class].slot_bytes as usize)
}

/// The fitted class for a payload of `bytes`, if there is one.
#[inline]
pub(super) fn fitted_class_of_payload(bytes: usize) -> Option<usize> {
    let slot_bytes = bytes + TUPLE_HEADER_BYTES;
    let fits = slot_bytes > FITTED_ABOVE && slot_bytes <= FITTED_LARGEST;
    fits.then(|| ORDINARY + fitted_of_slot(slot_bytes))
}

/// Whether a class is a fitted one.
#[inline]
pub(super) const fn is_fitted(class: usize) -> bool {
    class >= ORDINARY
}

/// Classes 8 bytes apart, and the logarithm of where they end.
const BY_8: usize = (FITTED_BY_8 - FITTED_ABOVE) / 8;
const BY_8_LOG2: usize = FITTED_BY_8.ilog2() as usize;

/// 8 bytes apart up to 2 KiB, then a sixty-fourth.
const fn fitted_of_slot(slot_bytes: usize) -> usize {
    let last = slot_bytes - 1;
    if last < FITTED_BY_8 {
        return (last - FITTED_ABOVE) / 8;
    }
    let top = last.ilog2() as usize;
    BY_8 + (top - BY_8_LOG2) * 64 + ((last >> (top - 6)) & 63)
}

const fn slot_of_fitted(fitted: usize) -> usize {
    if fitted < BY_8 {
        return FITTED_ABOVE + (fitted + 1) * 8;
    }
    let above = fitted - BY_8;
    (64 + above % 64 + 1) << (above / 64 + BY_8_LOG2 - 6)
}

#[inline]
const fn class_of_slot(slot_bytes: usize) -> usize {
    if slot_bytes <= SMALLEST {
        return 0;
    }
    let last = slot_bytes - 1;
    if slot_bytes <= LARGEST_STEPPED {
        return last / 16 - 1;
    }
    let top = last.ilog2() as usize;
    STEPPED + (top - LARGEST_STEPPED.ilog2() as usize) * 16 + ((last >> (top - 4)) & 15)
}

const fn size_classes() -> [SizeClass; CLASSES] {
    let mut classes = [SizeClass {
        slot_bytes: 0,
        capacity: 0,
        order: 0,
    }; CLASSES];
    let mut class = 0;
    while class < ORDINARY {
        let slot_bytes = if class < STEPPED {
            SMALLEST + class * 16
        } else if class < SIXTEENTHS {
            let top = LARGEST_STEPPED.ilog2() as usize + (class - STEPPED) / 16;
            (16 + (class - STEPPED) % 16 + 1) << (top - 4)
        } else {
            let room = Arena::span_bytes(ORDER_MAX) - PAGE_HEADER_BYTES;
            room / PER_LARGEST_SPAN[class - SIXTEENTHS] / 16 * 16
        };
        let mut order = 0;
        if slot_bytes > SHARED_MAX {
            while Arena::span_bytes(order) < slot_bytes + PAGE_HEADER_BYTES {
                order += 1;
            }
            classes[class] = SizeClass {
                slot_bytes: slot_bytes as u32,
                capacity: 1,
                order,
            };
            class += 1;
            continue;
        }
        while order < ORDER_MAX && tail(slot_bytes, order) > Arena::span_bytes(order) / 16 {
            order += 1;
        }
        classes[class] = shape(slot_bytes, order);
        class += 1;
    }
    while class < CLASSES {
        let slot_bytes = slot_of_fitted(class - ORDINARY);
        let (mut best, mut order) = (0, 0);
        while order <= FITTED_ORDER_MAX {
            if of_longest(slot_bytes, order) < of_longest(slot_bytes, best) {
                best = order;
            }
            if tail(slot_bytes, order) <= Arena::span_bytes(order) / FITTED_TAIL {
                break;
            }
            order += 1;
        }
        classes[class] = shape(slot_bytes, best);
        class += 1;
    }
    classes
}

const fn shape(slot_bytes: usize, order: u8) -> SizeClass {
    SizeClass {
        slot_bytes: slot_bytes as u32,
        capacity: ((Arena::span_bytes(order) - PAGE_HEADER_BYTES) / slot_bytes) as u32,
        order,
    }
}

/// Bytes of a page that no slot covers, its header included.
const fn tail(slot_bytes: usize, order: u8) -> usize {
    let span_bytes = Arena::span_bytes(order);
    span_bytes - shape(slot_bytes, order).capacity as usize * slot_bytes
}

/// The tails of as many pages as the longest fitted page is long.
const fn of_longest(slot_bytes: usize, order: u8) -> usize {
    tail(slot_bytes, order) << (FITTED_ORDER_MAX - order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_payload_has_the_smallest_class_that_holds_it() {
        const { assert!(PAYLOAD_BYTES_MAX >= (1024 + 64) * 1024) };
        assert_eq!(class_of_payload(PAYLOAD_BYTES_MAX), Some(ORDINARY - 1));
        assert_eq!(class_of_payload(PAYLOAD_BYTES_MAX + 1), None);
        let mut bytes = 0;
        while bytes <= PAYLOAD_BYTES_MAX {
            let class = class_of_payload(bytes).unwrap();
            let slot_bytes = bytes + TUPLE_HEADER_BYTES;
            assert!(slot_bytes <= SIZE_CLASSES[class].slot_bytes as usize);
            if class > 0 {
                assert!(slot_bytes > SIZE_CLASSES[class - 1].slot_bytes as usize);
            }
            bytes += 1 + bytes / 997;
        }
    }

    #[test]
    fn classes_are_a_sixteenth_apart_and_fill_their_pages() {
        for (class, pair) in SIZE_CLASSES[..ORDINARY].windows(2).enumerate() {
            let (small, large) = (pair[0].slot_bytes, pair[1].slot_bytes);
            assert_eq!(large % 16, 0);
            let step = large - small;
            let fitted = class + 1 >= SIXTEENTHS;
            assert!(
                step <= 16 || step <= small / 16 || fitted,
                "step {step} after {small}"
            );
        }
        for class in &SIZE_CLASSES[..ORDINARY] {
            let span_bytes = Arena::span_bytes(class.order);
            let used = (class.slot_bytes * class.capacity) as usize;
            assert!(used + PAGE_HEADER_BYTES <= span_bytes);
            if class.slot_bytes as usize > SHARED_MAX {
                assert_eq!(class.capacity, 1, "{}", class.slot_bytes);
                assert!(used + PAGE_HEADER_BYTES > span_bytes / 2);
                continue;
            }
            assert!(span_bytes - used <= span_bytes / 16, "{}", class.slot_bytes);
            if class.slot_bytes <= 960 {
                assert_eq!(class.order, 0);
            }
        }
    }

    #[test]
    fn fitted_classes_waste_half_as_much_and_hold_what_they_are_chosen_for() {
        assert_eq!(fitted_class_of_payload(FITTED_ABOVE - 16), None);
        assert_eq!(fitted_class_of_payload(FITTED_LARGEST - 15), None);
        let (mut fitted_bytes, mut ordinary_bytes) = (0.0, 0.0);
        for bytes in FITTED_ABOVE - 15..=FITTED_LARGEST - 16 {
            let class = fitted_class_of_payload(bytes).unwrap();
            let shape = &SIZE_CLASSES[class];
            let slot_bytes = bytes + TUPLE_HEADER_BYTES;
            let waste = shape.slot_bytes as usize - slot_bytes;
            assert_eq!(shape.slot_bytes % 8, 0);
            let most = if slot_bytes <= FITTED_BY_8 { 8 } else { 16 };
            assert!(waste < most || waste < slot_bytes / 32, "{bytes}: {waste}");
            let below = class.checked_sub(1).filter(|below| *below >= ORDINARY);
            assert!(
                below.is_none_or(|below| (SIZE_CLASSES[below].slot_bytes as usize) < slot_bytes)
            );
            let span_bytes = Arena::span_bytes(shape.order);
            let used = (shape.slot_bytes * shape.capacity) as usize;
            assert!(used + PAGE_HEADER_BYTES <= span_bytes && shape.order <= FITTED_ORDER_MAX);
            assert!(span_bytes - used <= span_bytes / 32, "{}", shape.slot_bytes);
            let per_tuple = |shape: &SizeClass| {
                Arena::span_bytes(shape.order) as f64 / f64::from(shape.capacity)
            };
            fitted_bytes += per_tuple(shape) / slot_bytes as f64;
            ordinary_bytes +=
                per_tuple(&SIZE_CLASSES[class_of_payload(bytes).unwrap()]) / slot_bytes as f64;
        }
        let tuples = (FITTED_LARGEST - FITTED_ABOVE) as f64;
        assert!(fitted_bytes / tuples < 1.025, "{}", fitted_bytes / tuples);
        assert!(
            ordinary_bytes > fitted_bytes * 1.025,
            "{}",
            ordinary_bytes / tuples
        );
    }
}
