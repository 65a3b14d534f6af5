//! Backups, made while everything else goes on: into a good place, cut off there, into wrong
//! places, which stay as they were. And what comes of each by a restore, compared with the model
//! at the backup's place in the log.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use thermocline_device::{Device, OpenMode, SimulatedDevice};
use thermocline_engine::backup::{BackupOptions, RestoreOptions, RestoreReport, restore};
use thermocline_engine::{Config, Database, Error, Result as EngineResult};

use crate::model::{Model, State};
use crate::numbers::{self, Numbers};
use crate::round::{Found, Round, Tally, open};
use crate::world::World;

/// Files of strangers, some with names that a backup gives to its own.
const STRANGERS: [&str; 8] = [
    "notes.txt",
    "log-0000000000001000",
    "log-unfinished",
    "checkpoint-00000001-0000",
    "blocks-00000001",
    "packs-00000001",
    "backup-new",
    "blocks",
];
const STRANGERS_WORDS: &[u8] = b"a stranger's";

/// A backup that was made.
#[derive(Clone, Debug)]
struct Made {
    generation: u64,
    lsn: u64,
    /// Commits that were acknowledged when it began, and had to be made when it ended.
    commits: (usize, usize),
    /// The same of the steps of sequences.
    numbers: BTreeMap<u32, (usize, usize)>,
}

/// A backup of an earlier life, and what it holds.
struct Kept {
    generation: u64,
    state: State,
}

/// Where backups go.
#[derive(Clone, Default)]
pub struct Places {
    /// Theirs.
    good: SimulatedDevice,
    /// Another database's.
    other: SimulatedDevice,
    /// Where closed segments of the log go, if they go anywhere.
    pub archive: Option<SimulatedDevice>,
    made: Rc<RefCell<Vec<Made>>>,
    kept: Rc<RefCell<Vec<Kept>>>,
}

fn shared(device: &SimulatedDevice) -> Arc<dyn Device> {
    Arc::new(device.clone())
}

/// The names and lengths of a directory's files, and how often anything was written.
fn looks(device: &SimulatedDevice) -> (Vec<(String, u64)>, u64) {
    let length = |name: &String| {
        let file = device.open(name, OpenMode::Existing);
        file.and_then(|file| file.len()).unwrap_or(u64::MAX)
    };
    let names = device.list().unwrap_or_default();
    let files = names.into_iter().map(|name| (name.clone(), length(&name)));
    (files.collect(), device.counters().snapshot().writes)
}

fn stranger(name: &str) -> SimulatedDevice {
    let device = SimulatedDevice::new();
    let made = device.open(name, OpenMode::CreateNew).and_then(|file| {
        file.write_at(STRANGERS_WORDS, 0)?;
        file.sync_data()
    });
    if let Err(error) = made.and_then(|()| device.sync_directory()) {
        panic!("the simulated device failed: {error}");
    }
    device
}

impl World {
    /// A turn of somebody who makes backups.
    pub fn back_up(self: &Rc<Self>) {
        // It begins with a checkpoint, and there is one at a time.
        if self.backing_up.replace(true) {
            return;
        }
        if !self.in_checkpoint.replace(true) {
            match self.percent(20) {
                true => self.back_up_wrongly(),
                false => self.back_up_well(),
            }
            self.in_checkpoint.set(false);
        }
        self.backing_up.set(false);
    }

    fn back_up_well(self: &Rc<Self>) {
        let target = &self.places.good;
        if self.percent(15) {
            target.halt_after(self.below(40) as u64);
        }
        let acknowledged = self.model.borrow().acknowledged();
        let books = self.numbers.borrow();
        let told = books.iter().map(|(oid, numbers)| (*oid, numbers.told()));
        let told: BTreeMap<u32, usize> = told.collect();
        drop(books);
        self.say(|| "a backup".into());
        let made = self.db.backup(
            &shared(target),
            &BackupOptions::default(),
            &mut |_done, _of| {
                // The checkpoint is made; others may come.
                self.in_checkpoint.set(false);
                self.others();
                self.in_checkpoint.set(true);
            },
        );
        self.say(|| format!("a backup ends: {made:?}"));
        match made {
            Ok(report) => {
                let books = self.numbers.borrow();
                let steps = told.into_iter().map(|(oid, told)| {
                    let most = books.get(&oid).map_or(told, Numbers::len);
                    (oid, (told, most))
                });
                self.backups.set(self.backups.get() + 1);
                self.places.made.borrow_mut().push(Made {
                    generation: report.generation,
                    lsn: report.lsn,
                    commits: (acknowledged, self.model.borrow().commits.len()),
                    numbers: steps.collect(),
                });
            }
            Err(Error::Io(..)) if target.is_halted() => {}
            Err(error) => self.check_error("a backup", &error, false),
        }
        if target.is_halted() {
            target.crash(self.with_chance(crate::chance::Chance::next));
        } else {
            target.forget_halt();
        }
    }

    /// Into a place that is not for backups: nothing is written there.
    fn back_up_wrongly(self: &Rc<Self>) {
        let (target, what) = match self.below(3) {
            0 => (self.device.clone(), "its own directory"),
            1 => (self.other_database(), "another database's directory"),
            _ => {
                let name = STRANGERS[self.below(STRANGERS.len())];
                (stranger(name), "a stranger's directory")
            }
        };
        let before = looks(&target);
        let none = BackupOptions::default();
        let refused = self.db.backup(&shared(&target), &none, &mut |_, _| {});
        let after = looks(&target);
        if self.device.is_halted() {
            return;
        }
        match refused {
            Err(error) if error.sqlstate() == "55000" && before == after => {}
            // The device had a fault to come, and this met it.
            Err(error @ (Error::Io(..) | Error::DiskFull(_))) if before == after => {
                self.check_error("a backup that is refused", &error, false);
            }
            _ => self.fail(format!(
                "a backup went into {what}: {refused:?}; before {before:?}, after {after:?}"
            )),
        }
    }

    /// The directory of another database, which is made the first time.
    fn other_database(&self) -> SimulatedDevice {
        let other = &self.places.other;
        if other.list().is_ok_and(|names| names.is_empty()) {
            let mut config = Config::new(shared(other)).partitions(1);
            config.memory_limit = 64 << 30;
            config.background = false;
            match Database::open(config) {
                Ok(db) => drop(db),
                Err(error) => self.fail(format!("another database: {error}")),
            }
        }
        other.clone()
    }

    /// A closed segment of the log goes to the archive.
    pub fn archive(&self) {
        if self.places.archive.is_some()
            && let Err(error) = self.db.archive_log()
        {
            self.check_error("archiving", &error, false);
        }
    }
}

impl Round {
    /// Restores from the backups of the life that has just ended, and some of those before it.
    pub fn check_backups(&mut self, model: &Model, tally: &mut Tally) -> Result<(), String> {
        // What was never durable is gone, and all handles with it.
        self.places.good.crash(self.chance.next());
        for made in self.places.made.take() {
            let wanted = RestoreOptions {
                generation: Some(made.generation),
                ..RestoreOptions::default()
            };
            let what = format!("backup {}", made.generation);
            let (copy, report) = self.restored(&what, &wanted)?;
            tally.restores += 1;
            if report.lsn != made.lsn {
                return Err(format!(
                    "{what} is of LSN {}, and restored to {}",
                    made.lsn, report.lsn
                ));
            }
            let (least, most) = model.commits_at(made.lsn);
            let commits = (least.max(made.commits.0), most.min(made.commits.1));
            let (db, state) = self.compare_restored(&what, &copy, model, commits)?;
            numbers::compare(&db, &self.numbers, |oid, numbers| {
                let steps = made.numbers.get(&oid);
                steps.map_or((0, numbers.len()), |steps| *steps)
            })
            .map_err(|wrong| format!("{what}: {wrong}"))?;
            let generation = made.generation;
            self.places
                .kept
                .borrow_mut()
                .push(Kept { generation, state });
            if self.chance.percent(40) {
                self.restore_further(&made, model, tally)?;
            }
        }
        self.check_kept(tally)?;
        if self.chance.percent(40) {
            self.restore_kept_further(model, tally)?;
        }
        match self.chance.percent(10) {
            true => self.rot_backup(tally),
            false => Ok(()),
        }
    }

    /// A backup of a database that was opened and never written to.
    pub fn back_up_at_rest(&self, db: &Arc<Database>, state: &State) -> Result<(), String> {
        let target = shared(&self.places.good);
        let made = db.backup(&target, &BackupOptions::default(), &mut |_, _| {});
        let made = made.map_err(|error| format!("a backup after a start: {error}"))?;
        self.places.kept.borrow_mut().push(Kept {
            generation: made.generation,
            state: state.clone(),
        });
        Ok(())
    }

    /// One of an earlier life holds what it held.
    fn check_kept(&mut self, tally: &mut Tally) -> Result<(), String> {
        let kept = self.places.kept.borrow();
        if let Some(kept) = kept.get(self.chance.below(kept.len() * 2)) {
            let what = format!("backup {} of before", kept.generation);
            let wanted = RestoreOptions {
                generation: Some(kept.generation),
                ..RestoreOptions::default()
            };
            let (copy, _) = self.restored(&what, &wanted)?;
            tally.restores += 1;
            let found = self.read_restored(&what, &copy)?.1;
            if let Some(difference) = found.difference(&kept.state) {
                return Err(format!("{what}: {difference}"));
            }
        }
        Ok(())
    }

    /// A backup of an earlier life, and all the log since.
    fn restore_kept_further(&mut self, model: &Model, tally: &mut Tally) -> Result<(), String> {
        let Some(archive) = &self.places.archive else {
            return Ok(());
        };
        let kept = self.places.kept.borrow();
        let Some(kept) = kept.get(self.chance.below(kept.len().max(1))) else {
            return Ok(());
        };
        let wanted = RestoreOptions {
            generation: Some(kept.generation),
            logs: vec![shared(archive), shared(&self.device)],
            ..RestoreOptions::default()
        };
        let what = format!("backup {} of before, and the log since", kept.generation);
        let (copy, _) = self.restored(&what, &wanted)?;
        tally.restores += 1;
        let commits = (model.acknowledged(), model.commits.len());
        self.compare_restored(&what, &copy, model, commits)?;
        Ok(())
    }

    /// A bit of a backup flips: that is an error that names the file, or no harm.
    fn rot_backup(&mut self, tally: &mut Tally) -> Result<(), String> {
        let Some(kept) = self.places.kept.take().pop() else {
            return Ok(());
        };
        let seed = self.chance.next();
        let damaged = std::mem::take(&mut self.places.good);
        let Some((file, offset)) = damaged.flip_random_bit("", seed) else {
            return Ok(());
        };
        let copy = SimulatedDevice::new();
        let wanted = RestoreOptions {
            generation: Some(kept.generation),
            ..RestoreOptions::default()
        };
        let clock = &*self.config.clock;
        let target = shared(&copy);
        let restored = restore(&shared(&damaged), &target, &wanted, clock, &mut |_, _| {});
        let what = format!("a bit of byte {offset} of {file} in the backup flipped");
        match restored {
            Ok(_) => {}
            // Of the log it may be seen only where its records end too early.
            Err(Error::Corrupt(said))
                if said.contains(&file) || file.starts_with("log-") && said.contains("log") =>
            {
                tally.damage_named += 1;
                return Ok(());
            }
            Err(error) => return Err(format!("{what}, and the error is: {error}")),
        }
        let found = self.read_restored(&what, &copy)?.1;
        match found.difference(&kept.state) {
            None => Ok(()),
            Some(difference) => Err(format!("{what}: {difference}")),
        }
    }

    /// To a place in the log behind the backup, by the archive and what is left of the data
    /// directory.
    fn restore_further(&self, made: &Made, model: &Model, tally: &mut Tally) -> Result<(), String> {
        let Some(archive) = &self.places.archive else {
            return Ok(());
        };
        let ends = model.commits.iter().map(|commit| commit.log_end);
        let ends: Vec<u64> = ends.filter(|end| *end >= made.lsn).collect();
        let last = model.acknowledged();
        let place = self.chance.clone().below(ends.len() + 1);
        let to_lsn = ends.get(place).copied();
        let wanted = RestoreOptions {
            generation: Some(made.generation),
            logs: vec![shared(archive), shared(&self.device)],
            to_lsn,
            ..RestoreOptions::default()
        };
        let what = format!("backup {} up to {to_lsn:?}", made.generation);
        let (copy, _) = self.restored(&what, &wanted)?;
        tally.restores += 1;
        let (least, most) = match to_lsn {
            // Of what was not acknowledged the crash may have left less.
            Some(lsn) => {
                let (least, most) = model.commits_at(lsn);
                (least.min(last), most)
            }
            None => (last, model.commits.len()),
        };
        let least = least.max(made.commits.0);
        self.compare_restored(&what, &copy, model, (least, most))?;
        Ok(())
    }

    fn restored(
        &self,
        what: &str,
        wanted: &RestoreOptions,
    ) -> Result<(SimulatedDevice, RestoreReport), String> {
        let copy = SimulatedDevice::new();
        let good = shared(&self.places.good);
        let clock = &*self.config.clock;
        let report = restore(&good, &shared(&copy), wanted, clock, &mut |_, _| {});
        let report = report.map_err(|error| format!("{what} can't be restored: {error}"))?;
        // All of it is durable.
        copy.crash_losing_all();
        Ok((copy, report))
    }

    fn read_restored(
        &self,
        what: &str,
        copy: &SimulatedDevice,
    ) -> Result<(Arc<Database>, Found), String> {
        let mut config = self.config.clone();
        config.device = shared(copy);
        config.archive = None;
        let read = || -> EngineResult<(Arc<Database>, Found, Vec<String>)> {
            let db = open(&config)?;
            let problems = db.verify()?.problems;
            let found = Found::read(&db)?;
            Ok((db, found, problems))
        };
        let (db, found, problems) = read().map_err(|error| format!("{what}: {error}"))?;
        match problems.is_empty() {
            true => Ok((db, found)),
            false => Err(format!("{what}: {}", problems.join("; "))),
        }
    }

    /// The state that a restored directory holds, which is that after so many commits.
    fn compare_restored(
        &self,
        what: &str,
        copy: &SimulatedDevice,
        model: &Model,
        (least, most): (usize, usize),
    ) -> Result<(Arc<Database>, State), String> {
        let (db, found) = self.read_restored(what, copy)?;
        let mut wrong = Vec::new();
        let states = model.prefixes(least).enumerate();
        for (further, state) in states.take_while(|(n, _)| least + n <= most) {
            match found.difference(&state) {
                None => return Ok((db, state)),
                Some(difference) => wrong.push(format!("not {}: {difference}", least + further)),
            }
        }
        wrong.truncate(3);
        Err(format!(
            "{what}: it must be of {least} to {most} commits: {}",
            wrong.join("; ")
        ))
    }
}
