//! The threads that connections live on: one for each core, each with a runtime of its own.
//!
//! A connection stays on the thread that it was given to, and so does all that it waits for: no
//! message is handed from one thread to another, and nobody is woken to look for work that
//! somebody has done by then. What takes long does not run here: analytical statements have
//! threads of their own, and statements of many rows give way after each turn.
//!
//! A thread with one connection lets it write the log, and is held up by the device meanwhile
//! ([`Alone`]). A connection that comes then is given to another. One thread alone never does so.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use thermocline_engine::Alone;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

/// How many tasks run between two looks at the sockets. A turn of a long statement takes up to
/// a millisecond: more of them, and who has just sent something would wait for long.
const TASKS_BETWEEN_LOOKS: u32 = 2;

type Life = Pin<Box<dyn Future<Output = ()> + Send>>;
/// Begins a life on the thread that it is given to.
type Newcomer = Box<dyn FnOnce() -> Life + Send>;

/// See the head of this file. Its threads end with it, each when its last connection has ended.
pub(crate) struct Crew {
    hands: Vec<Hand>,
    /// Whether all are to end where they are.
    at_once: watch::Sender<bool>,
}

/// A thread, as others see it.
struct Hand {
    newcomers: mpsc::UnboundedSender<Newcomer>,
    /// Connections that live there, and whether the only one holds it up.
    alone: Alone,
    ended: oneshot::Receiver<()>,
}

/// Counts a connection as long as it lives.
struct Living(Arc<AtomicUsize>);

impl Drop for Living {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Crew {
    /// Starts so many threads.
    ///
    /// # Errors
    /// The system has no threads or descriptors left.
    pub(crate) fn start(threads: usize) -> io::Result<Self> {
        let (at_once, _) = watch::channel(false);
        let hands = (0..threads.max(1))
            .map(|number| Hand::start(number, threads > 1, at_once.subscribe()))
            .collect::<io::Result<_>>()?;
        Ok(Self { hands, at_once })
    }

    /// Gives a connection to the thread that has the fewest, and to one that is held up only if
    /// all are. `begin` is called there.
    pub(crate) fn give<F>(&self, begin: impl FnOnce() -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let freest = self.hands.iter().min_by_key(|hand| {
            let Alone { living, held_up } = &hand.alone;
            (held_up.load(Relaxed), living.load(Relaxed))
        });
        let Some(hand) = freest else { return };
        hand.alone.living.fetch_add(1, Relaxed);
        let living = Living(Arc::clone(&hand.alone.living));
        let newcomer: Newcomer = Box::new(move || {
            let life = begin();
            Box::pin(async move {
                let _living = living;
                life.await;
            })
        });
        if hand.newcomers.send(newcomer).is_err() {
            tracing::error!("a thread for connections has ended; its connection is closed");
        }
    }

    /// Connections that live.
    pub(crate) fn living(&self) -> usize {
        self.hands
            .iter()
            .map(|hand| hand.alone.living.load(Relaxed))
            .sum()
    }

    /// Nobody is given a connection any more; waits until the last has ended. May be given up
    /// and called again.
    pub(crate) async fn drain(&mut self) {
        for hand in &mut self.hands {
            let (nobody, _) = mpsc::unbounded_channel();
            hand.newcomers = nobody;
        }
        while let Some(hand) = self.hands.last_mut() {
            // An error: it has ended as well.
            let _ = (&mut hand.ended).await;
            self.hands.pop();
        }
    }

    /// Ends connections where they are.
    pub(crate) fn end_at_once(&self) {
        self.at_once.send_replace(true);
    }
}

impl Hand {
    fn start(
        number: usize,
        may_be_held_up: bool,
        at_once: watch::Receiver<bool>,
    ) -> io::Result<Self> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .event_interval(TASKS_BETWEEN_LOOKS)
            .on_thread_park(thermocline_device::return_memory_if_asked)
            .build()?;
        let (newcomers, coming) = mpsc::unbounded_channel();
        let (tell, ended) = oneshot::channel();
        let alone = Alone::default();
        let here = alone.clone();
        std::thread::Builder::new()
            .name(format!("connections-{number}"))
            .spawn(move || {
                if may_be_held_up {
                    here.live_here();
                }
                live(&runtime, coming, at_once);
                // Nobody waits for it any more, perhaps.
                let _ = tell.send(());
            })?;
        Ok(Self {
            newcomers,
            alone,
            ended,
        })
    }
}

fn live(
    runtime: &Runtime,
    mut coming: mpsc::UnboundedReceiver<Newcomer>,
    mut at_once: watch::Receiver<bool>,
) {
    runtime.block_on(async {
        let mut lives = JoinSet::new();
        let mut is_open = true;
        while is_open || !lives.is_empty() {
            tokio::select! {
                biased;
                newcomer = coming.recv(), if is_open => match newcomer {
                    Some(begin) => drop(lives.spawn(begin())),
                    None => is_open = false,
                },
                Some(ended) = lives.join_next() => if let Err(error) = ended {
                    tracing::error!("a connection's task failed: {error}");
                },
                _ = at_once.wait_for(|at_once| *at_once) => break,
            }
        }
        lives.shutdown().await;
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::thread::{ThreadId, current};
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn connections_are_dealt_out_evenly_and_stay_where_they_are() {
        let mut crew = Crew::start(2).unwrap();
        let seen = Arc::<Mutex<Vec<(ThreadId, ThreadId)>>>::default();
        for _ in 0..10 {
            let seen = Arc::clone(&seen);
            crew.give(move || async move {
                let first = current().id();
                tokio::time::sleep(Duration::from_millis(20)).await;
                seen.lock().unwrap().push((first, current().id()));
            });
        }
        assert_eq!(crew.living(), 10);
        crew.drain().await;
        let seen = seen.lock().unwrap();
        assert_eq!(seen.len(), 10);
        assert!(seen.iter().all(|(first, last)| first == last));
        let first = seen[0].0;
        assert_eq!(seen.iter().filter(|(on, _)| *on == first).count(), 5);
    }

    #[tokio::test]
    async fn who_comes_is_not_given_to_a_thread_that_is_held_up() {
        let mut crew = Crew::start(2).unwrap();
        crew.hands[0].alone.held_up.store(true, Relaxed);
        for _ in 0..3 {
            crew.give(|| async {});
        }
        assert_eq!(crew.hands[0].alone.living.load(Relaxed), 0);
        // Where all are, somebody has to.
        crew.hands[1].alone.held_up.store(true, Relaxed);
        crew.give(|| async {});
        crew.drain().await;
    }

    #[tokio::test]
    async fn a_crew_waits_for_the_last_and_ends_it_when_it_must() {
        let mut crew = Crew::start(2).unwrap();
        crew.give(std::future::pending::<()>);
        crew.give(|| async { panic!("in a connection") });
        let patience = Duration::from_millis(50);
        assert!(timeout(patience, crew.drain()).await.is_err());
        crew.end_at_once();
        crew.drain().await;
        assert_eq!(crew.living(), 0);
    }
}
