//! Damage that can't be survived: a bit of a file that flips, a write that the device says
//! it made and did not make, or made elsewhere. It must be named, and give no other rows.

use std::sync::Arc;

use thermocline_device::{Device, OpenMode};
use thermocline_engine::check::{CheckEvent, check};
use thermocline_engine::{Database, Error};

use crate::faults::names_a_file;
use crate::model::{Model, State};
use crate::round::{Found, Round, Tally, open};
use crate::world::Habits;

impl Round {
    /// What a check of the directory finds.
    pub fn check(&self) -> Option<String> {
        let mut found = None;
        let checked = check(&self.config.device, &mut |event| {
            if let CheckEvent::Found(finding) = event {
                found.get_or_insert(finding.to_string());
            }
        });
        found.or(checked.err().map(|error| error.to_string()))
    }

    /// A file is cut short, or a part of it is lost, or all of it: that is an error that names
    /// the file, of which a check knows, too; or no harm to what was there before the last
    /// checkpoint.
    pub fn cut(&mut self, model: &Model, tally: &mut Tally) -> Result<(), String> {
        let prefix = self.chance.pick(&[
            "blocks",
            "tablespaces",
            "checkpoint-",
            "manifest",
            "log-",
            "log-",
        ]);
        let is_log = prefix == "log-";
        if is_log && model.checkpointed == 0 {
            // What the log has of the life before no checkpoint of this one tells of.
            return Ok(());
        }
        let failed = |error| format!("the simulated device failed: {error}");
        let names = self.device.list().map_err(failed)?;
        let names: Vec<String> = names
            .into_iter()
            .filter(|n| n.starts_with(prefix))
            .collect();
        if names.is_empty() {
            return Ok(());
        }
        let name = &names[self.chance.below(names.len())];
        let file = self.device.open(name, OpenMode::Existing).map_err(failed)?;
        let length = file.len().map_err(failed)?;
        let left = match self.chance.percent(20) {
            true => 0,
            // Little of a segment of the log is taken.
            false if is_log && self.chance.percent(70) => {
                self.chance.below(length.clamp(1, 24 << 10) as usize) as u64
            }
            false => self.chance.below(length.max(1) as usize) as u64,
        };
        let damage = match self.chance.below(10) {
            0..6 => {
                file.set_len(left).map_err(failed)?;
                file.sync_data().map_err(failed)?;
                format!("{name} was cut to {left} of {length} bytes")
            }
            6..9 => {
                let lost = (1 + self.chance.below(20_000) as u64).min(length - left);
                file.write_at(&vec![0; lost as usize], left)
                    .map_err(failed)?;
                file.sync_data().map_err(failed)?;
                format!("{name} lost {lost} bytes at {left} of {length}")
            }
            _ => {
                drop(file);
                self.device.remove(name).map_err(failed)?;
                self.device.sync_directory().map_err(failed)?;
                format!("{name} was removed")
            }
        };
        // A check does not know that a round's blocks begin far behind the file's beginning.
        let simulator = self.config.simulator.as_ref();
        let is_far = simulator.is_some_and(|simulator| simulator.origin().block_sector > 0);
        let is_found = self.check().is_some() || is_far && name == "blocks";
        let from = match is_log {
            true => model.checkpointed,
            false => model.acknowledged(),
        };
        let found = match open(&self.config).map(|db| Found::read(&db)) {
            Ok(Ok(found)) => found,
            Err(Error::Corrupt(what)) | Ok(Err(Error::Corrupt(what)))
                if what.contains(name.as_str()) || is_log && what.contains("log-") =>
            {
                tally.damage_named += 1;
                return match is_found {
                    true => Ok(()),
                    false => Err(format!("{damage}, and a check finds nothing: {what}")),
                };
            }
            // A tablespace whose file is not what it was is not there; all else is.
            Ok(Err(error @ Error::Io(..)))
                if name.starts_with("blocks-") && error.to_string().contains(name.as_str()) =>
            {
                tally.damage_named += 1;
                return match is_found {
                    true => Ok(()),
                    false => Err(format!("{damage}, and a check finds nothing: {error}")),
                };
            }
            Err(error) | Ok(Err(error)) => return Err(format!("{damage}: {error}")),
        };
        let mut prefixes = model.prefixes(from);
        match prefixes.any(|state| found.difference(&state).is_none()) {
            true => Ok(()),
            false => Err(format!("{damage}, and the rows are wrong")),
        }
    }

    /// A bit of a file flips: that is an error that names the file, or no harm.
    pub fn rot(&mut self, model: &Model, tally: &mut Tally) -> Result<(), String> {
        let prefix =
            self.chance
                .pick(&["blocks", "tablespaces", "checkpoint-", "manifest", "log-"]);
        let seed = self.chance.next();
        if prefix == "log-" && model.acknowledged() == 0 {
            // The log's last group may be of the life before, of whose commits this model
            // knows nothing; and damage there is not told from a torn write.
            return Ok(());
        }
        let Some((file, offset)) = self.device.flip_random_bit(prefix, seed) else {
            return Ok(());
        };
        let is_found = self.check().is_some();
        let mut told = |error: Error| match &error {
            Error::Corrupt(what) if what.contains(&file) && is_found => {
                tally.damage_named += 1;
                Ok(())
            }
            // A tablespace whose file is not what it was is not there; all else is.
            Error::Io(..) if file.starts_with("blocks-") && is_found => {
                tally.damage_named += 1;
                match error.to_string().contains(&file) {
                    true => Ok(()),
                    false => Err(format!("{file} was damaged, and the error is: {error}")),
                }
            }
            Error::Corrupt(what) if what.contains(&file) => Err(format!(
                "a bit of byte {offset} of {file} flipped, and a check finds nothing: {error}"
            )),
            _ => Err(format!(
                "a bit of byte {offset} of {file} flipped, and the error is: {error}"
            )),
        };
        let found = match open(&self.config).map(|db| Found::read(&db)) {
            Err(error) | Ok(Err(error)) => return told(error),
            Ok(Ok(found)) => found,
        };
        // A damaged last group of the log is not told from a torn one.
        let from = match prefix {
            "log-" => 0,
            _ => model.acknowledged(),
        };
        match model
            .prefixes(from)
            .any(|state| found.difference(&state).is_none())
        {
            true => Ok(()),
            false => Err(format!(
                "a bit of byte {offset} of {file} flipped, and the rows are wrong"
            )),
        }
    }

    /// A life whose device says that it wrote what it did not write, or wrote elsewhere. What
    /// is read must be right or an error that names the file; in that life and after it.
    pub fn lied_to(
        &mut self,
        db: Arc<Database>,
        state: State,
        tally: &mut Tally,
    ) -> Result<(), String> {
        self.habits = Habits {
            faulty: true,
            lies: 1 + self.chance.below(3),
            checkpoints: self.habits.checkpoints.max(5),
            ..self.habits
        };
        tally.lives += 1;
        let world = self.world(db, state);
        world.live();
        if self.chance.percent(50) {
            self.close(&world);
        }
        self.count(&world, tally);
        self.crash();
        self.device.set_stalls(false);
        let (model, failure) = world.end();
        if let Some(failure) = failure {
            return Err(failure);
        }
        tally.recoveries += 1;
        let found = match open(&self.config).map(|db| Found::read(&db)) {
            Ok(Ok(found)) => found,
            Err(Error::Corrupt(what) | Error::Io(_, what))
            | Ok(Err(Error::Corrupt(what) | Error::Io(_, what)))
                if names_a_file(&what) =>
            {
                tally.damage_named += 1;
                return Ok(());
            }
            Err(error) | Ok(Err(error)) => {
                return Err(format!("the device lied, and the error is: {error}"));
            }
        };
        match model
            .prefixes(model.acknowledged())
            .any(|state| found.difference(&state).is_none())
        {
            true => Ok(()),
            false => Err("the device lied, and the rows are wrong".into()),
        }
    }
}
