//! Counters of the server. Each is one relaxed atomic, added to once a system
//! call or once a connection, not once a row. A snapshot is not one instant;
//! every single number in it is exact.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! metrics {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// What the server did since it started.
        #[derive(Debug, Default)]
        pub struct Metrics {
            $(pub(crate) $name: AtomicU64,)*
        }

        /// The numbers of [`Metrics`] at one time.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct MetricsSnapshot {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Metrics {
            /// The numbers now.
            #[must_use]
            pub fn snapshot(&self) -> MetricsSnapshot {
                MetricsSnapshot { $($name: self.$name.load(Relaxed),)* }
            }
        }

        impl MetricsSnapshot {
            /// Every counter with its name, in the order of this file.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }
    };
}

metrics! {
    /// Sockets accepted.
    connections_accepted,
    /// Sessions that are open now.
    connections_open,
    /// Clients refused because too many were there.
    connections_refused,
    /// Clients that were not let in for another reason, or never said who they are.
    startups_failed,
    /// CancelRequests, matching or not.
    cancel_requests,
    /// Clients that were gone while their statement ran.
    clients_vanished,
    /// Sessions that ended in a panic.
    panics,
    /// Messages received after start-up.
    messages_received,
    /// Bytes received.
    received_bytes,
    /// Bytes sent.
    sent_bytes,
    /// Read system calls that returned bytes.
    reads,
    /// Write system calls that took bytes.
    writes,
    /// Memory that network buffers hold now, in bytes.
    buffer_bytes,
}

impl Metrics {
    pub(crate) fn add(counter: &AtomicU64, more: u64) {
        counter.fetch_add(more, Relaxed);
    }

    pub(crate) fn subtract(counter: &AtomicU64, less: u64) {
        counter.fetch_sub(less, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_names_every_counter() {
        let metrics = Metrics::default();
        Metrics::add(&metrics.writes, 3);
        Metrics::subtract(&metrics.writes, 1);
        let snapshot = metrics.snapshot();
        assert_eq!(snapshot.writes, 2);
        assert!(snapshot.iter().any(|entry| entry == ("writes", 2)));
    }
}
