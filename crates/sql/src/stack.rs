//! Stack for statements that are nested deeply. How deep the tree of a statement can get is
//! known before it is parsed (`parse::depth`) and has a limit. Whatever walks such a tree
//! (parsing, binding, planning, evaluation, dropping it) has the stack for that depth. A
//! thread's own stack serves the ordinary ones; for others a piece is mapped, of which only
//! what is used takes memory, and given back.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;

/// What walkers take for each level of the tree at their most, estimated: planning a subquery
/// takes the most, and far more without optimisation. `tests/statement_size` goes to the limit.
const LEVEL_BYTES: usize = if cfg!(debug_assertions) {
    384 << 10
} else {
    64 << 10
};
/// What a walker takes whatever the depth.
const BASE_BYTES: usize = 512 << 10;
/// What an ordinary statement takes, with the calls up to the next [`apart`].
const APART_BYTES: usize = BASE_BYTES + SHALLOW as usize * LEVEL_BYTES;
/// Up to this depth a thread's own stack serves, however much of it is in use.
pub(crate) const SHALLOW: u32 = 8;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Whether trees of this depth need room of their own.
#[inline]
pub(crate) const fn is_deep(depth: u32) -> bool {
    depth > SHALLOW
}

/// The depth that the running code has room for, if that is more than any thread has.
pub(crate) fn depth() -> u32 {
    DEPTH.get()
}

/// Runs `walk`, which goes as deep as `depth`, with the stack for it.
pub(crate) fn with_room<T>(depth: u32, walk: impl FnOnce() -> T) -> T {
    if !is_deep(depth) || DEPTH.get() >= depth {
        return walk();
    }
    /// Puts the depth back, after a panic, too.
    struct Before(u32);
    impl Drop for Before {
        fn drop(&mut self) {
            DEPTH.set(self.0);
        }
    }
    let bytes = BASE_BYTES + depth as usize * LEVEL_BYTES;
    stacker::maybe_grow(bytes, bytes, || {
        let _before = Before(DEPTH.replace(depth));
        walk()
    })
}

/// Runs a future that goes as deep as `depth` each time it is polled.
pub(crate) async fn roomy<T>(depth: u32, mut future: Pin<Box<impl Future<Output = T>>>) -> T {
    poll_fn(|context| with_room(depth, || future.as_mut().poll(context))).await
}

/// Runs a future that may stand in others like it, each time it is polled with a stack that has
/// room for ordinary statements: what those around it use is not known.
pub(crate) async fn apart<T>(mut future: Pin<Box<impl Future<Output = T>>>) -> T {
    /// Puts the depth back, after a panic, too.
    struct Before(u32);
    impl Drop for Before {
        fn drop(&mut self) {
            DEPTH.set(self.0);
        }
    }
    poll_fn(|context| {
        stacker::maybe_grow(APART_BYTES, 2 * APART_BYTES, || {
            let _before = Before(DEPTH.replace(0));
            future.as_mut().poll(context)
        })
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recurse(levels: u32) -> u32 {
        let ballast = std::hint::black_box([levels; 1024]);
        match levels {
            0 => 0,
            _ => recurse(levels - 1) + ballast[17] / ballast[42],
        }
    }

    #[test]
    fn what_is_deep_has_room_and_what_is_shallow_no_new_stack() {
        let levels = std::thread::Builder::new()
            .stack_size(1 << 20)
            .spawn(|| {
                let outside = depth();
                let levels = with_room(1000, || {
                    assert_eq!(depth(), 1000);
                    recurse(10_000)
                });
                assert_eq!((outside, depth()), (0, 0));
                levels
            })
            .unwrap()
            .join()
            .unwrap();
        assert_eq!(levels, 10_000);
        with_room(SHALLOW, || assert_eq!(depth(), 0));
    }

    #[test]
    fn a_panic_leaves_the_depth_as_it_was() {
        let caught = std::panic::catch_unwind(|| with_room(100, || panic!("in the depth")));
        assert!(caught.is_err());
        assert_eq!(depth(), 0);
    }
}
