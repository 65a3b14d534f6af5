//! Sockets whose client was not let in yet: those that say nothing, that say who they are, that
//! are asked for a password, that cancel a statement or are being refused. There is a bounded
//! number of them, and soon room for one more: the oldest that is silent gives way, of the
//! address that has most of them. So nobody keeps others out by connecting, and least of all
//! an administrator on the machine itself. A session never gives way.
//!
//! Nobody gives way to whom the server has not listened for a moment: of many that connect at
//! once, as the pool of an application does, the last wait in the kernel's queue.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use crate::gate::Peer;

/// How often it is asked whether somebody has been silent for long enough.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Why a socket has to leave before its client was let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// Newer ones need its place.
    GivesWay,
    /// The server stops.
    Stopping,
}

/// Whom a socket counts for: who has one address mostly has others near by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    /// The Unix socket.
    Local,
    V4(Ipv4Addr),
    /// The network, 64 bits of it.
    V6(u64),
}

impl Origin {
    fn of(peer: &Peer) -> Self {
        let Peer::Tcp { client, .. } = peer else {
            return Self::Local;
        };
        match client.ip().to_canonical() {
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => Self::V6((address.to_bits() >> 64) as u64),
        }
    }
}

struct Waiting {
    origin: Origin,
    /// It has said what it wants.
    has_spoken: bool,
    /// Since when the server listens, or since it has spoken; none: it was not listened to yet.
    since: Option<Instant>,
    leaves: watch::Sender<Option<Leaves>>,
}

struct Places {
    waiting: BTreeMap<u64, Waiting>,
    last: u64,
    closed: bool,
}

/// See the head of this file.
pub(crate) struct Anteroom {
    places: Mutex<Places>,
    /// A place is free.
    freed: Notify,
    sockets_max: usize,
    /// How long nobody has to give way.
    patience: Duration,
}

/// A socket's place, until it is dropped.
pub(crate) struct Place {
    anteroom: Arc<Anteroom>,
    number: u64,
    leaves: watch::Receiver<Option<Leaves>>,
}

impl Anteroom {
    pub(crate) fn new(sockets_max: usize, patience: Duration) -> Self {
        Self {
            places: Mutex::new(Places {
                waiting: BTreeMap::new(),
                last: 0,
                closed: false,
            }),
            freed: Notify::new(),
            sockets_max,
            patience,
        }
    }

    /// Waits until there is a place for one more, or somebody who gives way.
    pub(crate) async fn room(&self) {
        while !self.has_room() {
            let _ = timeout(LOOK_AGAIN, self.freed.notified()).await;
        }
    }

    fn has_room(&self) -> bool {
        let places = self.places.lock();
        places.waiting.len() < self.sockets_max || places.leaver(self.patience).is_some()
    }

    /// A place for one more; another one may have to give way. See [`Anteroom::room`].
    pub(crate) fn enter(self: &Arc<Self>, peer: &Peer) -> Place {
        let mut places = self.places.lock();
        places.last += 1;
        let number = places.last;
        let leaves = watch::Sender::new(places.closed.then_some(Leaves::Stopping));
        let place = Place {
            anteroom: Arc::clone(self),
            number,
            leaves: leaves.subscribe(),
        };
        let waiting = Waiting {
            origin: Origin::of(peer),
            has_spoken: false,
            since: None,
            leaves,
        };
        places.waiting.insert(number, waiting);
        if places.waiting.len() > self.sockets_max
            && let Some(leaver) = places.leaver(self.patience)
            && let Some(waiting) = places.waiting.remove(&leaver)
        {
            waiting.leaves.send_replace(Some(Leaves::GivesWay));
        }
        place
    }

    /// The server stops.
    pub(crate) fn close(&self) {
        let mut places = self.places.lock();
        places.closed = true;
        for waiting in places.waiting.values() {
            waiting.leaves.send_replace(Some(Leaves::Stopping));
        }
    }
}

impl Places {
    /// Who is to give way to the next.
    fn leaver(&self, patience: Duration) -> Option<u64> {
        let mut counts: BTreeMap<Origin, usize> = BTreeMap::new();
        for waiting in self.waiting.values() {
            *counts.entry(waiting.origin).or_default() += 1;
        }
        let most = counts.values().copied().max()?;
        let now = Instant::now();
        let heard_out = |waiting: &Waiting| {
            let since = waiting.since;
            since.is_some_and(|since| now.duration_since(since) >= patience)
        };
        self.waiting
            .iter()
            .filter(|(_, waiting)| counts.get(&waiting.origin) == Some(&most))
            .filter(|(_, waiting)| heard_out(waiting))
            .min_by_key(|(number, waiting)| (waiting.has_spoken, **number))
            .map(|(number, _)| *number)
    }
}

/// Notes that a socket is listened to, and that it is not silent any more.
pub(crate) struct Speaker {
    anteroom: Arc<Anteroom>,
    number: u64,
}

impl Speaker {
    /// The server listens to the client.
    pub(crate) fn is_listened_to(&self) {
        self.note(false);
    }

    /// The client has said what it wants.
    pub(crate) fn has_spoken(&self) {
        self.note(true);
    }

    fn note(&self, has_spoken: bool) {
        let mut places = self.anteroom.places.lock();
        if let Some(waiting) = places.waiting.get_mut(&self.number) {
            waiting.has_spoken = has_spoken;
            waiting.since = Some(Instant::now());
        }
    }
}

impl Place {
    pub(crate) fn speaker(&self) -> Speaker {
        Speaker {
            anteroom: Arc::clone(&self.anteroom),
            number: self.number,
        }
    }

    /// Waits until the socket has to leave.
    pub(crate) async fn left(&mut self) -> Leaves {
        match self.leaves.wait_for(Option::is_some).await.map(|why| *why) {
            Ok(Some(why)) => why,
            // Who took its place away has said so before.
            Ok(None) | Err(_) => Leaves::GivesWay,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.anteroom.places.lock().waiting.remove(&self.number);
        self.anteroom.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(address: &str) -> Peer {
        Peer::Tcp {
            client: format!("{address}:1").parse().unwrap(),
            server: None,
        }
    }

    /// Has a silent socket enter that is listened to at once.
    fn enter(anteroom: &Arc<Anteroom>, peer: &Peer) -> Place {
        let place = anteroom.enter(peer);
        place.speaker().is_listened_to();
        place
    }

    fn leaves(place: &Place) -> Option<Leaves> {
        *place.leaves.borrow()
    }

    #[test]
    fn the_oldest_silent_one_of_the_fullest_address_gives_way() {
        let anteroom = Arc::new(Anteroom::new(4, Duration::ZERO));
        let crowd: Vec<_> = (0..3)
            .map(|_| enter(&anteroom, &from("10.0.0.1")))
            .collect();
        let lone = enter(&anteroom, &from("10.0.0.2"));
        crowd[0].speaker().has_spoken();
        let _local = enter(&anteroom, &Peer::Unix { uid: None });
        assert_eq!(leaves(&crowd[1]), Some(Leaves::GivesWay));
        let _more = enter(&anteroom, &from("10.0.0.1"));
        assert_eq!(
            leaves(&crowd[2]),
            Some(Leaves::GivesWay),
            "its own pay for it"
        );
        let _more = enter(&anteroom, &from("10.0.0.1"));
        assert_eq!(leaves(&crowd[0]), None);
        assert_eq!(leaves(&lone), None);
        assert_eq!(anteroom.places.lock().waiting.len(), 4);
    }

    #[test]
    fn who_has_spoken_gives_way_when_all_have() {
        let anteroom = Arc::new(Anteroom::new(2, Duration::ZERO));
        let first = enter(&anteroom, &from("10.0.0.1"));
        let second = enter(&anteroom, &from("10.0.0.1"));
        first.speaker().has_spoken();
        second.speaker().has_spoken();
        let third = enter(&anteroom, &from("10.0.0.1"));
        assert_eq!(leaves(&first), Some(Leaves::GivesWay));
        drop(second);
        let _fourth = enter(&anteroom, &from("10.0.0.1"));
        assert_eq!(leaves(&third), None, "there was room");
    }

    #[test]
    fn a_stop_is_told_to_all_and_to_who_comes_later() {
        let anteroom = Arc::new(Anteroom::new(2, Duration::ZERO));
        let before = enter(&anteroom, &from("[::1]"));
        anteroom.close();
        let after = enter(&anteroom, &from("[::1]"));
        assert_eq!(leaves(&before), Some(Leaves::Stopping));
        assert_eq!(leaves(&after), Some(Leaves::Stopping));
    }

    #[tokio::test]
    async fn nobody_gives_way_who_was_not_heard_out() {
        let patience = Duration::from_millis(30);
        let anteroom = Arc::new(Anteroom::new(2, patience));
        let unheard = anteroom.enter(&from("10.0.0.1"));
        let heard = enter(&anteroom, &from("10.0.0.1"));
        let begin = Instant::now();
        anteroom.room().await;
        assert!(begin.elapsed() >= patience);
        let third = anteroom.enter(&from("10.0.0.1"));
        assert_eq!(leaves(&heard), Some(Leaves::GivesWay));
        assert_eq!(leaves(&unheard), None, "the server did not listen");
        assert!(timeout(2 * patience, anteroom.room()).await.is_err());
        drop(third);
        anteroom.room().await;
    }
}
