//! Callers on threads, from the start of warm-up to the end of measuring, and a look at
//! everything each second.
//!
//! Callers of one thread take turns: one that waits lets others go on, one that never does
//! gives way after a few operations. In an open loop operations have times at which they
//! begin; a latency is counted from there, so that waiting behind others shows in it.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use futures::stream::{FuturesUnordered, StreamExt};
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::caller::Caller;
use super::tally::Tally;
use super::{Settings, Workload};
use crate::measure::Phase;
use crate::watch::Count;
use crate::{Result, runtime};

/// A caller that never waits lets others go on after so many operations.
const OPERATIONS_A_TURN: u64 = 4;
/// Between two looks at whether the run is over.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// Between two samples.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);

/// What was driven.
pub(super) struct Driven<T> {
    /// Operations that began and ended while the run was measuring.
    pub measured: Tally,
    /// All operations, warm-up included.
    pub all: Tally,
    /// How long was measured.
    pub elapsed: Duration,
    /// Moments of measuring, the beginning first: when, operations so far, and the counters.
    pub samples: Vec<(Duration, u64, T)>,
}

/// Drives the callers that `callers_of` makes for each thread. An error or a panic of one
/// ends the run of all.
pub(super) fn drive<W: Workload, C: Caller<W::Operation>, T>(
    workload: &W,
    settings: &Settings,
    trial: u32,
    callers_of: impl AsyncFn(usize) -> Result<Vec<C>> + Sync,
    counters: impl Fn() -> T,
) -> Result<Driven<T>> {
    let phase = Phase::default();
    let counts: Vec<Count> = (0..settings.threads).map(|_| Count::default()).collect();
    let kinds = workload.kinds().len();
    let run_thread = |number: usize| -> Result<(Tally, Tally)> {
        let _stop = StopOnDrop(&phase);
        let run = async {
            let callers = callers_of(number).await?;
            let thread = Thread {
                workload,
                settings,
                phase: &phase,
                count: &counts[number],
                seed: settings.seed + (u64::from(trial) << 40),
                measured: RefCell::new(Tally::new(kinds)?),
                all: RefCell::new(Tally::new(kinds)?),
            };
            let mut tasks = FuturesUnordered::new();
            for (caller, number) in callers.into_iter().zip(settings.callers_of(number)) {
                tasks.push(thread.caller(caller, number));
            }
            while let Some(ended) = tasks.next().await {
                if ended.is_err() {
                    phase.stop();
                }
                ended?;
            }
            drop(tasks);
            Ok((thread.measured.into_inner(), thread.all.into_inner()))
        };
        match settings.url {
            Some(_) => runtime()?.block_on(run),
            // In this process the thread does its own reads.
            None => thermocline_engine::block_on(run),
        }
    };
    let operations = || counts.iter().map(Count::get).sum::<u64>();
    let (elapsed, samples, ended) = thread::scope(|scope| {
        let start = |number| {
            let run_thread = &run_thread;
            scope.spawn(move || run_thread(number))
        };
        let threads: Vec<_> = (0..settings.threads).map(start).collect();
        pass(
            &phase,
            Instant::now() + Duration::from_secs(settings.warmup),
        );
        let begin = Instant::now();
        let mut samples = vec![(Duration::ZERO, operations(), counters())];
        phase.measure();
        for second in 1..=settings.seconds {
            pass(&phase, begin + SAMPLE_INTERVAL * second as u32);
            samples.push((begin.elapsed(), operations(), counters()));
            if phase.is_stopped() {
                break;
            }
        }
        phase.stop();
        let elapsed = begin.elapsed();
        let ended: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        (elapsed, samples, ended)
    });
    let (mut measured, mut all) = (Tally::new(kinds)?, Tally::new(kinds)?);
    for ended in ended {
        let (one, whole) = ended.map_err(|_| "a caller's thread panicked")??;
        measured.add(&one)?;
        all.add(&whole)?;
    }
    Ok(Driven {
        measured,
        all,
        elapsed,
        samples,
    })
}

fn pass(phase: &Phase, end: Instant) {
    while !phase.is_stopped() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        thread::sleep(left.min(LOOK_INTERVAL));
    }
}

/// Stops the others when a thread ends: in good order it ends last anyway.
struct StopOnDrop<'a>(&'a Phase);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// What the callers of a thread share.
struct Thread<'a, W> {
    workload: &'a W,
    settings: &'a Settings,
    phase: &'a Phase,
    count: &'a Count,
    seed: u64,
    measured: RefCell<Tally>,
    all: RefCell<Tally>,
}

impl<W: Workload> Thread<'_, W> {
    async fn caller<C: Caller<W::Operation>>(&self, mut caller: C, number: usize) -> Result<()> {
        let (workload, phase) = (self.workload, self.phase);
        let mut thinking = StdRng::seed_from_u64(!self.seed ^ number as u64);
        let mut schedule = (self.settings.rate).map(|rate| {
            let callers = self.settings.callers as f64;
            let first = Duration::from_secs_f64(number as f64 / rate);
            (
                Instant::now() + first,
                Duration::from_secs_f64(callers / rate),
            )
        });
        let drawer = workload.drawer(number, self.settings.callers, self.seed);
        for (turn, operation) in (1u64..).zip(drawer) {
            let mut begin = Instant::now();
            if let Some((due, interval)) = &mut schedule {
                while *due > Instant::now() && !phase.is_stopped() {
                    let left = due.saturating_duration_since(Instant::now());
                    caller.rest(left.min(LOOK_INTERVAL)).await?;
                }
                begin = *due;
                *due += *interval;
            }
            if phase.is_stopped() {
                return Ok(());
            }
            let measured = phase.is_measuring();
            let (ended, retries) = caller.run(&operation).await?;
            let (kind, latency) = (workload.kind_of(&operation), begin.elapsed());
            self.all.borrow_mut().record(kind, latency, ended, retries);
            self.count.add();
            if measured && phase.is_measuring() {
                self.measured
                    .borrow_mut()
                    .record(kind, latency, ended, retries);
            }
            if self.settings.think {
                let end = Instant::now() + workload.think(&operation, &mut thinking);
                while end > Instant::now() && !phase.is_stopped() {
                    let left = end.saturating_duration_since(Instant::now());
                    caller.rest(left.min(LOOK_INTERVAL)).await?;
                }
            }
            if turn.is_multiple_of(OPERATIONS_A_TURN) {
                let_others_go_on().await;
            }
        }
        Err("a workload ran out of operations".into())
    }
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
