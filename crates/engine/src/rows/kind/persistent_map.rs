//! For tests: the smallest kind that is persistent, an array of integers that a file has in place,
//! as memory that keeps its bytes would. Before a commit's record, what its run changes is written
//! in two steps: an entry with what the places had, under a new number; then the places. The
//! record names the number. Nothing is replayed: at a restart the entries that no record names are
//! undone, the last first.
//!
//! Entries go when the log is durable that names them, with a checkpoint; what they were is kept
//! in the file that says up to which number all holds. There are so many places, and no more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use thermocline_device::{Device, DeviceFile, OpenMode};
use thermocline_storage::log::Lsn;

use super::tests::{decode, encode, exists};
use crate::format::manifest::{read_file, write_file};
use crate::ground::error::{Error, Result};

/// Integers that there are.
const PLACES: usize = 64;
/// Bytes of a place: its own sector, so that a crash that tears a write leaves its neighbours.
const PLACE_BYTES: usize = 512;

/// See the module's head.
pub(crate) struct PersistentMap {
    device: Arc<dyn Device>,
    name: String,
    file: Arc<dyn DeviceFile>,
    /// What the places hold; 0: nothing.
    places: Vec<i64>,
    /// What the run under way has changed: places and what they held.
    before: Vec<(usize, i64)>,
    /// Whether the file may have them as the run has made them.
    is_prepared: bool,
    /// Something could not be taken back.
    is_broken: bool,
    /// The last entry that was written, named or not.
    written: u64,
    /// Entries that the log names, with the place.
    named: Vec<(u64, Lsn)>,
    /// Up to this number all holds.
    kept: u64,
    /// At a restart: the numbers that the log names.
    seen: BTreeSet<u64>,
}

impl PersistentMap {
    pub fn open(device: &Arc<dyn Device>, name: String) -> Result<Self> {
        let is_new = !exists(&**device, &name)?;
        let failed = |e| Error::io(e, "opening a persistent map");
        if is_new {
            let none = vec![0; PLACES * PLACE_BYTES];
            write_file(&**device, &name, &none)?;
            device.sync_directory().map_err(failed)?;
        }
        let mut map = PersistentMap {
            file: device.open(&name, OpenMode::Existing).map_err(failed)?,
            device: device.clone(),
            places: vec![0; PLACES],
            before: Vec::new(),
            is_prepared: false,
            is_broken: false,
            written: 0,
            named: Vec::new(),
            kept: 0,
            seen: BTreeSet::new(),
            name,
        };
        let holds = map.holds();
        if exists(&**device, &holds)? {
            let kept = decode(&read_file(&**device, &holds)?, &holds)?;
            map.kept = kept.first().map_or(0, |(number, _)| *number as u64);
        }
        map.written = map.kept;
        let bytes = read_file(&**device, &map.name)?;
        for (place, bytes) in map.places.iter_mut().zip(bytes.chunks(PLACE_BYTES)) {
            let mut value = [0; 8];
            value.copy_from_slice(&bytes[..8]);
            *place = i64::from_le_bytes(value);
        }
        Ok(map)
    }

    pub fn entries(&self) -> BTreeMap<i64, i64> {
        let all = (0..).zip(self.places.iter().copied());
        all.filter(|(_, value)| *value != 0).collect()
    }

    pub fn put(&mut self, key: i64, value: i64) {
        let place = key as usize;
        self.before.push((place, self.places[place]));
        self.places[place] = value;
    }

    pub fn undo(&mut self) {
        let changed: Vec<usize> = self.before.iter().map(|(place, _)| *place).collect();
        for (place, value) in self.before.drain(..).rev() {
            self.places[place] = value;
        }
        if std::mem::take(&mut self.is_prepared) && self.take_back(&changed).is_err() {
            // The entry is still there, and undoes them at the next start: none may follow it.
            self.is_broken = true;
        }
    }

    fn take_back(&self, changed: &[usize]) -> Result<()> {
        self.flush(changed)?;
        let removed = self.device.remove(&self.entry(self.written));
        removed.map_err(|e| Error::io(e, "removing an entry"))?;
        self.sync_names()
    }

    pub fn prepare(&mut self) -> Result<u64> {
        if self.is_broken {
            return Err(Error::Internal("a change could not be taken back".into()));
        }
        self.written += 1;
        self.is_prepared = true;
        let before: Vec<_> = self.before.iter().map(|(p, v)| (*p as i64, *v)).collect();
        write_file(&*self.device, &self.entry(self.written), &encode(&before))?;
        self.sync_names()?;
        let changed: Vec<usize> = self.before.iter().map(|(place, _)| *place).collect();
        self.flush(&changed)?;
        Ok(self.written)
    }

    pub fn committed(&mut self, lsn: Lsn) {
        self.before.clear();
        self.is_prepared = false;
        self.named.push((self.written, lsn));
    }

    pub fn named(&mut self, number: u64) -> Result<()> {
        self.seen.insert(number);
        Ok(())
    }

    pub fn log_is_applied(&mut self) -> Result<()> {
        let mut last = self.kept;
        let mut entries = BTreeSet::new();
        let beginning = self.entry_beginning();
        let files = self.device.list();
        for file in files.map_err(|e| Error::io(e, "listing entries"))? {
            let number = file.strip_prefix(&beginning).and_then(|n| n.parse().ok());
            entries.extend(number.filter(|number: &u64| *number > self.kept));
        }
        for number in entries.into_iter().rev() {
            last = last.max(number);
            if self.seen.contains(&number) {
                continue;
            }
            let name = self.entry(number);
            // An entry that is not whole was cut off, and its places not written yet.
            if let Ok(before) = decode(&read_file(&*self.device, &name)?, &name) {
                for (place, value) in before.into_iter().rev() {
                    self.places[place as usize] = value;
                    self.flush(&[place as usize])?;
                }
            }
            let removed = self.device.remove(&name);
            removed.map_err(|e| Error::io(e, "removing an entry"))?;
        }
        self.sync_names()?;
        self.written = last;
        self.named = self.seen.iter().map(|number| (*number, 0)).collect();
        self.seen.clear();
        Ok(())
    }

    pub fn log_is_durable(&mut self, lsn: Lsn) -> Result<()> {
        let durable = self.named.iter().rev().find(|(_, at)| *at <= lsn);
        let Some(number) = durable
            .map(|(number, _)| *number)
            .filter(|n| *n > self.kept)
        else {
            return Ok(());
        };
        let (holds, new) = (self.holds(), format!("{}-new", self.name));
        write_file(&*self.device, &new, &encode(&[(number as i64, 0)]))?;
        let renamed = self.device.rename(&new, &holds);
        renamed.map_err(|e| Error::io(e, "renaming what holds"))?;
        self.sync_names()?;
        let gone = std::mem::replace(&mut self.kept, number);
        self.named.retain(|(named, _)| *named > number);
        for entry in gone + 1..=number {
            if exists(&*self.device, &self.entry(entry))? {
                let removed = self.device.remove(&self.entry(entry));
                removed.map_err(|e| Error::io(e, "removing an entry"))?;
            }
        }
        Ok(())
    }

    pub fn bytes(&self) -> usize {
        self.places.len() * size_of::<i64>()
    }

    fn flush(&self, places: &[usize]) -> Result<()> {
        let write = || {
            for place in places {
                let mut sector = [0; PLACE_BYTES];
                sector[..8].copy_from_slice(&self.places[*place].to_le_bytes());
                self.file.write_at(&sector, (place * PLACE_BYTES) as u64)?;
            }
            self.file.sync_data()
        };
        write().map_err(|e| Error::io(e, "flushing places"))
    }

    fn holds(&self) -> String {
        format!("{}-holds", self.name)
    }

    fn entry_beginning(&self) -> String {
        format!("{}-entry-", self.name)
    }

    fn entry(&self, number: u64) -> String {
        format!("{}{number}", self.entry_beginning())
    }

    fn sync_names(&self) -> Result<()> {
        let synced = self.device.sync_directory();
        synced.map_err(|e| Error::io(e, "syncing names"))
    }
}
