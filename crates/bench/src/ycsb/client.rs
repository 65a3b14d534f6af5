//! What a client does: one operation after the other until the time is over.
//!
//! Several clients share a thread. One that waits (for the device, the log, the
//! network) lets others go on. While none waits, none is interrupted, so that
//! the hot path is measured without the cost of switching.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::task::Poll;
use std::time::Instant;

use futures::stream::{FuturesUnordered, StreamExt};
use rand::RngExt;

use super::Options;
use super::keys::{KeyChooser, Scatter};
use super::measure::{Phase, Progress, Tally};
use crate::Result;

/// Bytes of noise that payloads are cut from.
const NOISE_BYTES: usize = 256 << 10;

/// A client that never waits lets others go on after so many operations, if any waits.
const OPERATIONS_A_TURN: u32 = 4;

/// New rows are scattered over this many keys above those that were loaded.
const INSERT_KEYS: u64 = 1 << 40;

/// Executes operations. `Some(true)`: a tuple was not in memory; `None`: that
/// can't be seen from here.
// A client stays on its thread: nobody needs its futures to be `Send`.
#[allow(async_fn_in_trait)]
pub trait Client {
    /// Reads a row and copies its payload.
    async fn read(&mut self, key: u64) -> Result<Option<bool>>;
    /// Reads rows together and copies their payloads.
    async fn read_many(&mut self, keys: &[u64]) -> Result<()> {
        Err(format!("this client can't read {} rows together", keys.len()).into())
    }
    /// Replaces a row's payload.
    async fn update(&mut self, key: u64, payload: &[u8]) -> Result<Option<bool>>;
    /// Inserts a row that was not there.
    async fn insert(&mut self, key: u64, _payload: &[u8]) -> Result<Option<bool>> {
        Err(format!("this client can't insert row {key}").into())
    }
}

/// Random bytes; a payload is a window into them, so that choosing one costs
/// nothing and what is written can't be compressed.
#[derive(Debug)]
pub struct Noise(Vec<u8>);

impl Noise {
    /// Noise for payloads of this size.
    pub fn new(chooser: &mut KeyChooser, row_bytes: usize) -> Self {
        let mut bytes = vec![0; NOISE_BYTES + row_bytes];
        chooser.random().fill(&mut bytes[..]);
        Noise(bytes)
    }

    /// One of the payloads.
    pub fn payload(&self, choice: u64, row_bytes: usize) -> &[u8] {
        let start = choice as usize % NOISE_BYTES;
        &self.0[start..start + row_bytes]
    }
}

/// Runs a thread's clients to the end of the run. All threads share the noise.
pub async fn run_clients<C: Client>(
    clients: Vec<C>,
    options: &Options,
    thread: usize,
    noise: &Noise,
    phase: &Phase,
) -> Result<Tally> {
    let tally = RefCell::new(Tally::new()?);
    let progress = Progress::new(phase);
    let waiting = Cell::new(0usize);
    let first_seed = options.seed + ((thread as u64) << 32);
    let mut tasks = FuturesUnordered::new();
    for (number, client) in clients.into_iter().enumerate() {
        let chooser = KeyChooser::new(options.rows, options.zipf, first_seed + number as u64)?;
        let run = Run {
            options,
            noise,
            phase,
            progress: &progress,
            waiting: &waiting,
            tally: &tally,
        };
        tasks.push(async move {
            match options.batch {
                1 => run.client(client, chooser).await,
                batch => run.batches(client, chooser, batch).await,
            }
        });
    }
    while let Some(ended) = tasks.next().await {
        if ended.is_err() {
            phase.stop();
        }
        ended?;
    }
    drop(tasks);
    Ok(tally.into_inner())
}

/// What the clients of a thread share.
struct Run<'a> {
    options: &'a Options,
    noise: &'a Noise,
    phase: &'a Phase,
    progress: &'a Progress<'a>,
    waiting: &'a Cell<usize>,
    tally: &'a RefCell<Tally>,
}

impl Run<'_> {
    async fn client<C: Client>(self, mut client: C, mut chooser: KeyChooser) -> Result<()> {
        let options = self.options;
        let mut in_turn = 0;
        while !self.phase.is_stopped() {
            let key = chooser.key();
            let reads =
                options.inserts_from.is_none() && chooser.random().random_bool(options.reads);
            let choice: u64 = chooser.random().random();
            let measured = self.phase.is_measuring();
            let begin = Instant::now();
            self.progress.count(begin, 1);
            self.waiting.set(self.waiting.get() + 1);
            let outcome = if reads {
                client.read(key).await
            } else {
                let payload = self.noise.payload(choice, options.row_bytes);
                match options.inserts_from {
                    None => client.update(key, payload).await,
                    Some(first) => {
                        let number = first + self.phase.next_insert();
                        client.insert(new_key(options.rows, number), payload).await
                    }
                }
            };
            self.waiting.set(self.waiting.get() - 1);
            let missed = outcome?;
            if measured && self.phase.is_measuring() {
                self.tally
                    .borrow_mut()
                    .record(begin.elapsed(), reads, missed);
            }
            in_turn += 1;
            if self.waiting.get() > 0 && in_turn >= OPERATIONS_A_TURN {
                in_turn = 0;
                let_others_go_on().await;
            }
        }
        Ok(())
    }

    /// Reads `batch` rows at once; each has taken as long as all.
    async fn batches<C: Client>(
        self,
        mut client: C,
        mut chooser: KeyChooser,
        batch: usize,
    ) -> Result<()> {
        let mut keys = Vec::with_capacity(batch);
        while !self.phase.is_stopped() {
            keys.clear();
            keys.extend((0..batch).map(|_| chooser.key()));
            let measured = self.phase.is_measuring();
            let begin = Instant::now();
            self.progress.count(begin, batch as u64);
            self.waiting.set(self.waiting.get() + 1);
            let outcome = client.read_many(&keys).await;
            self.waiting.set(self.waiting.get() - 1);
            outcome?;
            if measured && self.phase.is_measuring() {
                let (elapsed, mut tally) = (begin.elapsed(), self.tally.borrow_mut());
                keys.iter().for_each(|_| tally.record(elapsed, true, None));
            }
            if self.waiting.get() > 0 {
                let_others_go_on().await;
            }
        }
        Ok(())
    }
}

/// The key of an inserted row: above those that were loaded, in no order.
fn new_key(rows: u64, number: u64) -> u64 {
    rows + Scatter::new(INSERT_KEYS).key(number)
}

/// Is ready at its second poll.
fn let_others_go_on() -> impl Future<Output = ()> {
    let mut polled = false;
    poll_fn(move |context| {
        if polled {
            return Poll::Ready(());
        }
        polled = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Misses each tenth key, and waits for it.
    struct Model {
        operations: u64,
    }

    impl Client for Model {
        async fn read(&mut self, key: u64) -> Result<Option<bool>> {
            self.operations += 1;
            if key.is_multiple_of(10) {
                tokio::time::sleep(Duration::from_millis(1)).await;
                return Ok(Some(true));
            }
            Ok(Some(false))
        }

        async fn read_many(&mut self, keys: &[u64]) -> Result<()> {
            assert_eq!(keys.len(), 16);
            self.operations += 16;
            tokio::time::sleep(Duration::from_millis(1)).await;
            Ok(())
        }

        async fn update(&mut self, key: u64, payload: &[u8]) -> Result<Option<bool>> {
            assert_eq!(payload.len(), 100);
            if self.operations > 100_000 {
                return Err("the model is tired".into());
            }
            self.read(key).await
        }
    }

    fn run(reads: f64, tasks: usize, batch: usize) -> Result<Tally> {
        let options = Options {
            rows: 1000,
            row_bytes: 100,
            zipf: 0.0,
            reads,
            batch,
            ..Options::default()
        };
        let phase = Phase::default();
        phase.measure();
        let runtime = crate::runtime()?;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(200));
                phase.stop();
            });
            let clients = (0..tasks).map(|_| Model { operations: 0 }).collect();
            let noise = Noise::new(&mut KeyChooser::new(1, 0.0, 1)?, options.row_bytes);
            runtime.block_on(run_clients(clients, &options, 0, &noise, &phase))
        })
    }

    #[test]
    fn misses_and_operations_are_counted_and_waiting_clients_overlap() {
        let one = run(0.5, 1, 1).expect("the model works");
        let many = run(0.5, 16, 1).expect("the model works");
        for tally in [&one, &many] {
            let share = tally.miss_share().expect("the model says what missed");
            assert!((0.05..0.15).contains(&share), "{share}");
        }
        assert!(many.operations() > 4 * one.operations());
    }

    #[test]
    fn each_row_of_a_batch_is_an_operation() {
        let tally = run(1.0, 4, 16).expect("the model works");
        assert!(tally.operations() > 0 && tally.operations().is_multiple_of(16));
        assert_eq!(tally.miss_share(), None);
    }

    #[test]
    fn an_error_ends_the_run() {
        struct Failing;
        impl Client for Failing {
            async fn read(&mut self, _: u64) -> Result<Option<bool>> {
                Err("no".into())
            }
            async fn update(&mut self, _: u64, _: &[u8]) -> Result<Option<bool>> {
                Err("no".into())
            }
        }
        let phase = Phase::default();
        let runtime = crate::runtime().expect("a runtime");
        let options = Options::default();
        let mut chooser = KeyChooser::new(1, 0.0, 1).expect("valid");
        let noise = Noise::new(&mut chooser, options.row_bytes);
        let ended = runtime.block_on(run_clients(vec![Failing], &options, 0, &noise, &phase));
        assert!(ended.is_err());
        assert!(phase.is_stopped());
    }
}
