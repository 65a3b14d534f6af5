//! A run of this process, watched: its resident memory and the operations of its
//! threads, sampled every 10 ms.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use crate::{Result, rss};

/// Samples from the beginning of a window of 100 ms to its end.
const WINDOW: usize = 10;

/// A thread's operations, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Count(AtomicU64);

impl Count {
    /// One more; only the thread whose count it is may say so.
    #[inline]
    pub fn add(&self) {
        self.0.store(self.get() + 1, Ordering::Relaxed);
    }

    /// How many there were.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A moment of a run.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// When it was.
    pub at: Instant,
    /// The resident bytes of this process.
    pub resident: u64,
    /// The operations of all threads so far.
    pub operations: u64,
}

/// Runs a thread for each count; the first error of any.
pub fn on_threads(
    counts: &[Count],
    work: impl Fn(usize, &Count) -> Result<()> + Sync,
) -> Result<()> {
    thread::scope(|scope| {
        let start = |(number, count)| {
            let work = &work;
            scope.spawn(move || work(number, count))
        };
        let threads: Vec<_> = counts.iter().enumerate().map(start).collect();
        let ended: Vec<_> = (threads.into_iter().map(|thread| thread.join())).collect();
        ended
            .into_iter()
            .try_for_each(|ended| ended.map_err(|_| "a thread panicked")?)
    })
}

/// What is sampled while something runs; `counts` are those of its threads.
pub fn watch(counts: &[Count], run: impl FnOnce() -> Result<()>) -> Result<Vec<Sample>> {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let sampler = scope.spawn(|| sample_until(&over, counts));
        let ended = run();
        over.store(true, Ordering::Relaxed);
        let samples = sampler.join().map_err(|_| "the sampler panicked")?;
        ended.and(samples)
    })
}

fn sample_until(over: &AtomicBool, counts: &[Count]) -> Result<Vec<Sample>> {
    let mut samples = Vec::new();
    let mut due = Instant::now();
    while !over.load(Ordering::Relaxed) {
        samples.push(Sample {
            resident: rss::resident_bytes(std::process::id())
                .ok_or("the kernel does not tell this process's resident memory")?,
            operations: counts.iter().map(Count::get).sum(),
            at: Instant::now(),
        });
        // One that is late makes the others no earlier.
        due = (due + rss::SAMPLE_INTERVAL).max(Instant::now());
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    Ok(samples)
}

/// Operations a second in all windows of 100 ms that lie between two moments.
pub fn windows(samples: &[Sample], from: Instant, to: Instant) -> Vec<f64> {
    let first = samples.partition_point(|sample| sample.at < from);
    let last = samples.partition_point(|sample| sample.at <= to);
    let between = samples.get(first..last).unwrap_or_default();
    let ends = between.iter().zip(between.iter().skip(WINDOW));
    ends.map(|(first, last)| {
        (last.operations - first.operations) as f64 / (last.at - first.at).as_secs_f64()
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_threads_do_and_take_is_in_the_samples() {
        let counts: [Count; 2] = Default::default();
        let samples = watch(&counts, || {
            on_threads(&counts, |number, count| {
                let taken = vec![1u8; (number + 1) << 24];
                (0..1000).for_each(|_| count.add());
                thread::sleep(5 * rss::SAMPLE_INTERVAL);
                assert!(taken.iter().all(|byte| *byte == 1));
                Ok(())
            })
        });
        let samples = samples.expect("nothing fails");
        let (first, last) = (samples[0], samples[samples.len() - 1]);
        assert_eq!(last.operations, 2000);
        let highest = samples.iter().map(|sample| sample.resident).max();
        assert!(
            highest > Some(first.resident + (32 << 20)),
            "{highest:?} after {}",
            first.resident
        );
    }

    #[test]
    fn an_error_and_a_panic_of_a_thread_are_the_runs() {
        let counts: [Count; 2] = Default::default();
        let failing = |number, _: &Count| match number {
            1 => Err("no".into()),
            _ => Ok(()),
        };
        let ended = watch(&counts, || on_threads(&counts, failing));
        assert_eq!(ended.expect_err("it fails").to_string(), "no");
        let ended = on_threads(&counts, |number, _| {
            assert_eq!(number, 0, "the other one panics");
            Ok(())
        });
        assert!(ended.is_err());
    }

    #[test]
    fn a_stall_shows_in_the_lowest_window() {
        let begin = Instant::now();
        let after = |number: u32| begin + number * rss::SAMPLE_INTERVAL;
        // 1000 operations a second, and none from the 200th to the 300th ms.
        let samples: Vec<Sample> = (0..60)
            .map(|number| Sample {
                at: after(number),
                resident: 0,
                operations: u64::from(number.min(20) + number.saturating_sub(30)) * 10,
            })
            .collect();
        let lowest = |from, to| {
            let rates = windows(&samples, after(from), after(to));
            rates.into_iter().reduce(f64::min)
        };
        assert_eq!(lowest(0, 59), Some(0.0));
        let steady = lowest(0, 20).expect("a window");
        assert!((steady - 1000.0).abs() < 1.0, "{steady}");
        assert_eq!(lowest(50, 59), None, "no whole window");
        assert_eq!(
            windows(&[], begin, begin + Duration::from_secs(1)),
            Vec::<f64>::new()
        );
    }
}
