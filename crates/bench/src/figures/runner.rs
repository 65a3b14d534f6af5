//! Conducts all runs that figures need, each in a process of its own, and keeps their results.
//!
//! Guarantees: a run whose result is there, of the same settings and commit, is not run again;
//! so it may be killed at any moment and goes on where it was. What it made for the runs is
//! removed when it ends, and what a killed one left is removed by the next.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use thermocline_device::{Device, DirectoryLock, FileDevice, IoEngine, lock_directory};

use super::measure::{can_emulate, load_of, remove};
use super::outcome::Outcome;
use super::setting::{Run, What};
use crate::{Result, machine, size};

/// A run that takes longer is given up.
const RUN_MAX: Duration = Duration::from_secs(900);
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// Room that is left to others.
const ROOM_LEFT_BYTES: u64 = 512 << 20;
/// A guess for runs until some are over.
const RUN_GUESS: Duration = Duration::from_secs(6);

/// Where results and data lie.
pub(super) struct Places {
    /// The JSON files of runs.
    pub runs: PathBuf,
    /// Where data may be made; removed in the end.
    pub work: PathBuf,
    _lock: DirectoryLock,
}

impl Places {
    /// Takes them, alone.
    pub fn take(out: &Path, data: &Path) -> Result<Self> {
        let runs = out.join("runs");
        let lock = lock_directory(&runs).map_err(|error| {
            format!(
                "{}: {error}; give another --out, or end the other",
                runs.display()
            )
        })?;
        let name = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let of_out = name(&runs).to_string_lossy().replace('/', "-");
        Ok(Places {
            runs,
            work: data.join(format!("thermocline-figures{of_out}")),
            _lock: lock,
        })
    }
}

/// The results of runs that were made before or now.
#[derive(Default)]
pub(super) struct Results {
    by_key: BTreeMap<String, Outcome>,
    /// Runs that failed, and how.
    pub failed: Vec<String>,
}

impl Results {
    /// Those trials of a setting that are there.
    pub fn of(&self, what: &What, trials: u32) -> Vec<&Outcome> {
        let runs = (0..trials).map(|trial| Run {
            what: what.clone(),
            trial,
        });
        let keys = runs.filter_map(|run| run.key().ok());
        keys.filter_map(|key| self.by_key.get(&key)).collect()
    }

    pub fn all(&self) -> impl Iterator<Item = &Outcome> {
        self.by_key.values()
    }

    fn put(&mut self, key: String, outcome: Outcome) {
        let _ = self.by_key.insert(key, outcome);
    }
}

/// All runs for these settings, each once; those that share a load lie together.
pub(super) fn plan(whats: impl Iterator<Item = What>, trials: u32) -> Result<Vec<(String, Run)>> {
    let mut keys = BTreeSet::new();
    let mut runs = Vec::new();
    for what in whats {
        for trial in 0..trials {
            let run = Run {
                what: what.clone(),
                trial,
            };
            let key = run.key()?;
            if keys.insert(key.clone()) {
                runs.push((key, run));
            }
        }
    }
    // Stable: within a load the figures' order.
    runs.sort_by_key(|(_, run)| run.what.load());
    Ok(runs)
}

/// What is there of a plan. Whatever is of another commit does not count, unless `any_commit`.
pub(super) fn found(places: &Places, runs: &[(String, Run)], any_commit: bool) -> Results {
    let commit = machine::commit();
    let mut results = Results::default();
    let mut others = 0;
    for (key, run) in runs {
        let Some(outcome) = Outcome::read(&file_of(places, key)) else {
            continue;
        };
        if outcome.run != *run {
            continue;
        }
        if any_commit || outcome.commit == commit {
            results.put(key.clone(), outcome);
        } else {
            others += 1;
        }
    }
    if others > 0 {
        let commit = commit.unwrap_or_else(|| "unknown".into());
        eprintln!("{others} runs are of another commit than {commit}, and are made anew");
    }
    results
}

fn file_of(places: &Places, key: &str) -> PathBuf {
    places.runs.join(format!("{key}.json"))
}

/// Refuses what this machine cannot do, before any run.
pub(super) fn check(places: &Places, runs: &[&Run]) -> Result<()> {
    let work = &places.work;
    let in_work = |error: &dyn std::fmt::Display| format!("{}: {error}", work.display());
    remove(work)?;
    fs::create_dir_all(work).map_err(|error| in_work(&error))?;
    let needed = runs.iter().map(|run| run.what.disk_bytes()).max();
    let needed = needed.unwrap_or(0) + ROOM_LEFT_BYTES;
    let device = FileDevice::open(work, IoEngine::Auto).map_err(|error| in_work(&error))?;
    let free = device.free_bytes().map_err(|error| in_work(&error))?;
    drop(device);
    if free < needed {
        return Err(format!(
            "{}: {} are free, and the runs need {}; free some, or give another directory with --dir",
            work.display(),
            size::display(free),
            size::display(needed)
        )
        .into());
    }
    let mut tried = Vec::new();
    for medium in runs.iter().filter_map(|run| run.what.medium()) {
        if !tried.contains(&medium) {
            tried.push(medium);
            can_emulate(medium, work)?;
        }
    }
    Ok(())
}

/// Makes the runs that are missing. One that fails is noted, and the others go on.
pub(super) fn conduct(
    places: &Places,
    runs: &[(String, Run)],
    results: &mut Results,
) -> Result<()> {
    let there = |key: &String, results: &Results| results.by_key.contains_key(key);
    let missing: Vec<&(String, Run)> = runs
        .iter()
        .filter(|(key, _)| !there(key, results))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let to_check: Vec<&Run> = missing.iter().map(|(_, run)| run).collect();
    check(places, &to_check)?;
    let bar = progress_bar(runs.len(), runs.len() - missing.len());
    let begin = Instant::now();
    for (done, (key, run)) in missing.iter().enumerate() {
        let mean = match done {
            0 => RUN_GUESS,
            done => begin.elapsed() / done as u32,
        };
        let left = mean * (missing.len() - done) as u32;
        let number = runs.len() - missing.len() + done + 1;
        tell(&bar, number, runs.len(), left, &run.what.to_string());
        remove_other_loads(&places.work, &run.what.load())?;
        let file = file_of(places, key);
        let made = load(run, places, &file).and_then(|()| child(run, places, &file, &[]));
        match made {
            Ok(()) => match Outcome::read(&file) {
                Some(outcome) => results.put(key.clone(), outcome),
                None => results.failed.push(format!("{}: no result", run.what)),
            },
            Err(error) => {
                let failed = format!("{}: {error}", run.what);
                match bar.is_hidden() {
                    true => eprintln!("{failed}"),
                    false => bar.println(&failed),
                }
                results.failed.push(failed);
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    remove(&places.work)
}

/// A bar for a terminal; elsewhere nothing but what [`tell`] says.
fn progress_bar(runs: usize, done: usize) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(runs as u64).with_position(done as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}") {
        bar.set_style(style);
    }
    bar
}

fn tell(bar: &ProgressBar, number: usize, of: usize, left: Duration, what: &str) {
    let left = left.as_secs().div_ceil(60);
    match bar.is_hidden() {
        true => eprintln!("[{number}/{of}] {what}; about {left} min left"),
        false => bar.set_message(format!("about {left} min left; {what}")),
    }
}

/// Only the load of the next run is kept.
fn remove_other_loads(work: &Path, load: &str) -> Result<()> {
    let kept = format!("load-{load}");
    for entry in fs::read_dir(work).map_err(|error| format!("{}: {error}", work.display()))? {
        let entry = entry?;
        if entry.file_name().to_string_lossy() != kept.as_str() && entry.path().is_dir() {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

/// The words of this process's command line before the command's own name.
fn program() -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    let words = std::env::args().skip(1);
    let before = words.take_while(|word| word != super::COMMAND);
    command.args(before);
    Ok(command)
}

/// Loads what the run needs, if that is not there.
fn load(run: &Run, places: &Places, result: &Path) -> Result<()> {
    match load_of(&run.what, &places.work) {
        Some(place) if !place.exists() => child(run, places, result, &["--load"]),
        _ => Ok(()),
    }
}

fn child(run: &Run, places: &Places, result: &Path, more: &[&str]) -> Result<()> {
    let mut child = program()?
        .arg(super::RUN_COMMAND)
        .arg("--run")
        .arg(serde_json::to_string(run)?)
        .arg("--work")
        .arg(&places.work)
        .arg("--result")
        .arg(result)
        .args(more)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut stderr = child.stderr.take();
    // A child that says much must not wait for who does not listen.
    let reader = thread::spawn(move || {
        let mut text = String::new();
        if let Some(stderr) = &mut stderr {
            // What cannot be read is not told.
            let _ = stderr.read_to_string(&mut text);
        }
        text
    });
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if begin.elapsed() > RUN_MAX {
            child.kill()?;
            child.wait()?;
            break None;
        }
        thread::sleep(LOOK_INTERVAL);
    };
    let text = reader.join().unwrap_or_default();
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    match status {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(last.map_or(status.to_string(), str::to_owned).into()),
        None => Err(format!("not over after {} s", RUN_MAX.as_secs()).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::setting::Links;

    fn chain(zipf: f64) -> What {
        What::Chain {
            links: Links::None,
            rows: 10,
            updates: 10,
            zipf,
        }
    }

    fn outcome(run: &Run, commit: Option<String>) -> Outcome {
        Outcome {
            run: run.clone(),
            commit,
            date: None,
            device: None,
            values: [("elapsed_ms".to_owned(), 1.0)].into(),
            moments: Vec::new(),
        }
    }

    #[test]
    fn a_setting_that_two_figures_need_is_run_once_a_trial() {
        let whats = [chain(1.0), chain(0.5), chain(1.0)];
        let runs = plan(whats.into_iter(), 3).expect("a plan");
        assert_eq!(runs.len(), 6);
    }

    #[test]
    fn what_is_there_is_used_unless_it_is_of_another_commit_or_damaged() {
        let directory = tempfile::tempdir().expect("a directory");
        let places = Places::take(directory.path(), directory.path()).expect("it is free");
        assert!(Places::take(directory.path(), directory.path()).is_err());
        let runs = plan([chain(1.0), chain(0.5), chain(1.5)].into_iter(), 1).expect("a plan");
        let write = |at: usize, commit| {
            let (key, run) = &runs[at];
            let written = outcome(run, commit).write(&file_of(&places, key));
            written.expect("it is written");
        };
        write(0, machine::commit());
        write(1, Some("another".into()));
        fs::write(file_of(&places, &runs[2].0), "{ \"run\": ").expect("it is written");
        let results = found(&places, &runs, false);
        assert_eq!(results.of(&runs[0].1.what, 1).len(), 1);
        assert_eq!(results.all().count(), 1);
        assert_eq!(found(&places, &runs, true).all().count(), 2);
    }

    #[test]
    fn room_that_is_not_there_is_said_before_any_run() {
        let directory = tempfile::tempdir().expect("a directory");
        let places = Places::take(directory.path(), directory.path()).expect("it is free");
        let scale = crate::figures::scale::Scale::full();
        let work = scale.ycsb(crate::ycsb_core::Mix::C, 1 << 30, 1.0);
        let on = scale.database(
            crate::figures::setting::Medium::Hdd,
            work,
            crate::figures::setting::Choices::generic(),
        );
        let run = Run {
            what: What::Database(Box::new(on)),
            trial: 0,
        };
        let refused = check(&places, &[&run]).expect_err("no disk is so large");
        assert!(refused.to_string().contains("--dir"), "{refused}");
        remove(&places.work).expect("it goes");
    }
}
