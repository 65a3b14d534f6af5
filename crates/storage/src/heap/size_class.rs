//! Size classes of the heap: slot sizes about a sixteenth apart, and the span
//! that a page of each class takes.
//!
//! Guarantees: a slot wastes at most a sixteenth of itself (the rounding to 16
//! bytes of the smallest apart), a page's tail at most a sixteenth of the page
//! (an eighth of the largest span). Everything is computed at compile time.

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
const SIXTEENTHS: usize = class_of_slot(LARGEST_SIXTEENTHS) + 1;
/// How many classes there are.
pub(super) const CLASSES: usize = SIXTEENTHS + PER_LARGEST_SPAN.len();

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

pub(super) const SIZE_CLASSES: [SizeClass; CLASSES] = size_classes();

/// The longest payload a heap takes.
pub const PAYLOAD_BYTES_MAX: usize =
    SIZE_CLASSES[CLASSES - 1].slot_bytes as usize - TUPLE_HEADER_BYTES;

/// The class for a payload of `bytes`, `None` if it is too long.
#[inline]
pub(super) fn class_of_payload(bytes: usize) -> Option<usize> {
    let slot_bytes = bytes + TUPLE_HEADER_BYTES;
    if slot_bytes <= LARGEST_SIXTEENTHS {
        return Some(class_of_slot(slot_bytes));
    }
    (SIXTEENTHS..CLASSES).find(|&class| slot_bytes <= SIZE_CLASSES[class].slot_bytes as usize)
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
    while class < CLASSES {
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
        loop {
            let span_bytes = Arena::span_bytes(order);
            let capacity = (span_bytes - PAGE_HEADER_BYTES) / slot_bytes;
            let waste = span_bytes - capacity * slot_bytes;
            if waste <= span_bytes / 16 || order == ORDER_MAX {
                classes[class] = SizeClass {
                    slot_bytes: slot_bytes as u32,
                    capacity: capacity as u32,
                    order,
                };
                break;
            }
            order += 1;
        }
        class += 1;
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_payload_has_the_smallest_class_that_holds_it() {
        const { assert!(PAYLOAD_BYTES_MAX >= (1024 + 64) * 1024) };
        assert_eq!(class_of_payload(PAYLOAD_BYTES_MAX), Some(CLASSES - 1));
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
        for (class, pair) in SIZE_CLASSES.windows(2).enumerate() {
            let (small, large) = (pair[0].slot_bytes, pair[1].slot_bytes);
            assert_eq!(large % 16, 0);
            let step = large - small;
            let fitted = class + 1 >= SIXTEENTHS;
            assert!(
                step <= 16 || step <= small / 16 || fitted,
                "step {step} after {small}"
            );
        }
        for class in &SIZE_CLASSES {
            let span_bytes = Arena::span_bytes(class.order);
            let used = (class.slot_bytes * class.capacity) as usize;
            assert!(used + PAGE_HEADER_BYTES <= span_bytes);
            let most = match class.order {
                ORDER_MAX => span_bytes / 8,
                _ => span_bytes / 16,
            };
            assert!(span_bytes - used <= most, "{}", class.slot_bytes);
            if class.slot_bytes <= 960 {
                assert_eq!(class.order, 0);
            }
        }
    }
}
