//! What a panic means for the process. Where one may leave something half done that others
//! would go on with, the process stops: a restart finds all that was acknowledged. A panic that
//! leaves everything as it was is its own statement's misfortune.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// See [`go_on_after_panics`].
static GOES_ON: AtomicBool = AtomicBool::new(false);

/// Has the process go on whatever panics: for simulators, which throw a database away that
/// panicked and want to tell of it.
pub fn go_on_after_panics() {
    GOES_ON.store(true, Ordering::Relaxed);
}

/// Stops the process if this thread panics while it lasts.
#[derive(Debug)]
pub struct StopsOnPanic {
    what: &'static str,
    /// It began during a panic, which is not its own.
    excused: bool,
}

impl StopsOnPanic {
    /// `what` would be half done.
    #[inline]
    #[must_use]
    pub fn while_in(what: &'static str) -> Self {
        StopsOnPanic {
            what,
            excused: thread::panicking(),
        }
    }
}

impl Drop for StopsOnPanic {
    #[inline]
    fn drop(&mut self) {
        if thread::panicking() && !self.excused {
            stop_after_panic(self.what);
        }
    }
}

/// Stops the process: `what` is half done after a panic.
#[cold]
pub fn stop_after_panic(what: &str) {
    if GOES_ON.load(Ordering::Relaxed) {
        return;
    }
    // The panic itself was told by its hook.
    eprintln!(
        "thermocline: a panic in {what}: the process stops; start it again, nothing acknowledged is lost"
    );
    std::process::abort();
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn what_begins_during_a_panic_is_not_its_cause() {
        struct Late;
        impl Drop for Late {
            fn drop(&mut self) {
                drop(StopsOnPanic::while_in("a roll-back"));
            }
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let _late = Late;
            panic!("earlier");
        }));
        assert!(outcome.is_err());
    }
}
