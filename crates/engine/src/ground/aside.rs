//! Work that takes long, on a thread of its own: whoever asked for it may be on an executor that has
//! other things to do.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::thread;

use parking_lot::Mutex;

use crate::ground::error::{Error, Result};

/// Where the thread leaves what came of it.
struct Outcome<T> {
    result: Option<T>,
    waiting: Option<Waker>,
}

/// Does it on a thread of this name. A caller who stops waiting does not end it.
///
/// # Errors
/// There is no thread to be had.
pub(crate) async fn aside<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let outcome = Arc::new(Mutex::new(Outcome {
        result: None,
        waiting: None,
    }));
    let left = outcome.clone();
    thread::Builder::new()
        .name(name.into())
        .spawn(move || {
            let result = work();
            let waiting = {
                let mut outcome = left.lock();
                outcome.result = Some(result);
                outcome.waiting.take()
            };
            if let Some(waker) = waiting {
                waker.wake();
            }
        })
        .map_err(|e| Error::io(e, "starting a thread"))?;
    Ok(poll_fn(|context| {
        let mut outcome = outcome.lock();
        match outcome.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                outcome.waiting = Some(context.waker().clone());
                Poll::Pending
            }
        }
    })
    .await)
}

#[cfg(test)]
mod tests {
    use thermocline_device::block_on;

    use super::*;

    #[test]
    fn what_comes_of_it_is_given_to_who_waits() {
        let name = block_on(aside("apart", || {
            thread::current().name().map(str::to_owned)
        }));
        assert_eq!(name.expect("there is a thread").as_deref(), Some("apart"));
    }
}
