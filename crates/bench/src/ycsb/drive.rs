//! Clients on threads, from the start of warm-up to the end of measuring.

use std::thread;
use std::time::Duration;

use super::Options;
use super::client::{Client, Noise, run_clients};
use super::keys::KeyChooser;
use super::measure::{Measured, Phase, Tally, Warmup};
use crate::{Result, runtime};

/// Runs the clients that `clients_of` makes for each of `options.threads`
/// threads. An error or a panic of one ends the run of all.
pub fn drive<C: Client, T>(
    options: &Options,
    phase: &Phase,
    warmup: Warmup,
    clients_of: impl AsyncFn(usize) -> Result<Vec<C>> + Sync,
    counters: impl Fn() -> T,
) -> Result<(Measured<T>, Tally)> {
    let mut noise_chooser = KeyChooser::new(1, 0.0, !options.seed)?;
    let noise = Noise::new(&mut noise_chooser, options.row_bytes);
    let run_thread = |number: usize| -> Result<Tally> {
        let run = async {
            let clients = clients_of(number).await?;
            run_clients(clients, options, number, &noise, phase).await
        };
        match options.url {
            Some(_) => runtime()?.block_on(run),
            // In this process the thread does its own reads.
            None => thermocline_engine::block_on(run),
        }
    };
    let (measured, tallies) = thread::scope(|scope| {
        let threads: Vec<_> = (0..options.threads)
            .map(|number| {
                let run_thread = &run_thread;
                scope.spawn(move || {
                    let _stop = StopOnDrop(phase);
                    run_thread(number)
                })
            })
            .collect();
        let seconds = Duration::from_secs(options.seconds);
        let measured = phase.conduct(warmup, seconds, counters);
        let tallies: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().map_err(|_| "a client thread panicked"))
            .collect();
        (measured, tallies)
    });
    let mut all = Tally::new()?;
    for tally in tallies {
        all.add(&tally??)?;
    }
    Ok((measured, all))
}

/// Stops the others when a thread ends: in good order it ends last anyway.
struct StopOnDrop<'a>(&'a Phase);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}
