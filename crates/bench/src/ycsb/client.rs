//! What a client does: one operation after the other until the time is over.
//!
//! Several clients share a thread. One that waits (for the device, the log, the
//! network) lets others go on; while none waits, none is interrupted, so that
//! the hot path is measured without the cost of switching.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::task::Poll;
use std::time::Instant;

use futures::stream::{FuturesUnordered, StreamExt};
use rand::RngExt;

use super::Options;
use super::keys::KeyChooser;
use super::measure::{Phase, Tally};
use crate::Result;

/// Bytes of noise that payloads are cut from.
const NOISE_BYTES: usize = 256 << 10;

/// Executes operations. `Some(true)`: a tuple was not in memory; `None`: that
/// can't be seen from here.
pub(super) trait Client {
    async fn read(&mut self, key: u64) -> Result<Option<bool>>;
    async fn update(&mut self, key: u64, payload: &[u8]) -> Result<Option<bool>>;
}

/// Random bytes; a payload is a window into them, so that choosing one costs
/// nothing and what is written can't be compressed.
pub(super) struct Noise(Vec<u8>);

impl Noise {
    pub fn new(chooser: &mut KeyChooser, row_bytes: usize) -> Self {
        let mut bytes = vec![0; NOISE_BYTES + row_bytes];
        chooser.random().fill(&mut bytes[..]);
        Noise(bytes)
    }

    pub fn payload(&self, choice: u64, row_bytes: usize) -> &[u8] {
        let start = choice as usize % NOISE_BYTES;
        &self.0[start..start + row_bytes]
    }
}

/// Runs a thread's clients to the end of the run.
pub(super) async fn run_clients<C: Client>(
    clients: Vec<C>,
    options: &Options,
    thread: usize,
    phase: &Phase,
) -> Result<Tally> {
    let tally = RefCell::new(Tally::new()?);
    let waiting = Cell::new(0usize);
    let first_seed = options.seed + ((thread as u64) << 32);
    let mut noise_chooser = KeyChooser::new(options.rows, options.zipf, !first_seed)?;
    let noise = Noise::new(&mut noise_chooser, options.row_bytes);
    let mut tasks = FuturesUnordered::new();
    for (number, client) in clients.into_iter().enumerate() {
        let chooser = KeyChooser::new(options.rows, options.zipf, first_seed + number as u64)?;
        tasks.push(run_client(
            client, chooser, options, &noise, phase, &waiting, &tally,
        ));
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

async fn run_client<C: Client>(
    mut client: C,
    mut chooser: KeyChooser,
    options: &Options,
    noise: &Noise,
    phase: &Phase,
    waiting: &Cell<usize>,
    tally: &RefCell<Tally>,
) -> Result<()> {
    while !phase.is_stopped() {
        let key = chooser.key();
        let reads = chooser.random().random_bool(options.reads);
        let choice: u64 = chooser.random().random();
        let measured = phase.is_measuring();
        let begin = Instant::now();
        waiting.set(waiting.get() + 1);
        let outcome = if reads {
            client.read(key).await
        } else {
            let payload = noise.payload(choice, options.row_bytes);
            client.update(key, payload).await
        };
        waiting.set(waiting.get() - 1);
        let missed = outcome?;
        if measured && phase.is_measuring() {
            tally.borrow_mut().record(begin.elapsed(), reads, missed);
        }
        if waiting.get() > 0 {
            let_others_go_on().await;
        }
    }
    Ok(())
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

        async fn update(&mut self, key: u64, payload: &[u8]) -> Result<Option<bool>> {
            assert_eq!(payload.len(), 100);
            if self.operations > 100_000 {
                return Err("the model is tired".into());
            }
            self.read(key).await
        }
    }

    fn run(reads: f64, tasks: usize) -> Result<Tally> {
        let options = Options {
            rows: 1000,
            row_bytes: 100,
            zipf: 0.0,
            reads,
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
            runtime.block_on(run_clients(clients, &options, 0, &phase))
        })
    }

    #[test]
    fn misses_and_operations_are_counted_and_waiting_clients_overlap() {
        let one = run(0.5, 1).expect("the model works");
        let many = run(0.5, 16).expect("the model works");
        for tally in [&one, &many] {
            let share = tally.miss_share().expect("the model says what missed");
            assert!((0.05..0.15).contains(&share), "{share}");
        }
        assert!(many.operations() > 4 * one.operations());
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
        let ended = runtime.block_on(run_clients(vec![Failing], &Options::default(), 0, &phase));
        assert!(ended.is_err());
        assert!(phase.is_stopped());
    }
}
