//! A statement under watch. While it runs, its connection still notices that
//! the client has gone (and has the session end: nobody waits for the answer), and a
//! panic in it ends this connection and no other.
//!
//! A statement that is done at its first poll, as most are, costs neither a
//! read nor a timer.

use std::any::Any;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use thermocline_engine::{Cancel, SessionEnd};

use crate::metrics::Metrics;
use crate::socket::Socket;

/// The session panicked, with these words; its state is not to be trusted any more.
#[derive(Debug)]
pub(crate) struct Panicked(pub(crate) String);

/// Runs `statement` to its end. `cancel` is used when the client has been gone
/// for longer than `grace`. The caller has pinned the statement: as a value it would be copied
/// on the way down, and it is large.
pub(crate) async fn watched<T>(
    socket: &Socket,
    cancel: &Cancel,
    grace: Duration,
    statement: Pin<&mut impl Future<Output = T>>,
) -> Result<T, Panicked> {
    let mut statement = pin!(guarded(statement));
    let mut watch = pin!(watch(socket, cancel, grace));
    poll_fn(|context| {
        if let Poll::Ready(outcome) = statement.as_mut().poll(context) {
            return Poll::Ready(outcome);
        }
        // The session reads by itself during COPY and finds the end itself.
        // Whatever wakes it comes by here again.
        if !socket.is_copying() {
            let Poll::Pending = watch.as_mut().poll(context);
        }
        Poll::Pending
    })
    .await
}

/// The outcome of `future`, or that it panicked.
pub(crate) async fn guarded<T>(
    mut future: Pin<&mut impl Future<Output = T>>,
) -> Result<T, Panicked> {
    poll_fn(|context| {
        // Unwind safety: after a panic nothing of the session is used again,
        // it is only dropped.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(Poll::Ready(outcome)) => Poll::Ready(Ok(outcome)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(panic) => Poll::Ready(Err(Panicked(words(&*panic).to_owned()))),
        }
    })
    .await
}

fn words(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

async fn watch(socket: &Socket, cancel: &Cancel, grace: Duration) -> Infallible {
    socket.ended().await;
    // A client may close its sending side and still want the answers
    // (`printf … | nc`): one that is nearly there is let through.
    tokio::time::sleep(grace).await;
    tracing::debug!("the client is gone, its session ends");
    Metrics::add(&socket.metrics().clients_vanished, 1);
    cancel.end_session(SessionEnd::ClientLost);
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_becomes_an_outcome() {
        let session = pin!(async {
            tokio::task::yield_now().await;
            if true {
                panic!("inside the session");
            }
        });
        let panicked = guarded(session)
            .await
            .err()
            .map(|Panicked(words): Panicked| words);
        assert_eq!(panicked.as_deref(), Some("inside the session"));
        assert!(matches!(guarded(pin!(async { 7 })).await, Ok(7)));
    }
}
