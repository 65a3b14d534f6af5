//! For tests: the smallest kind that is rooted, a map of integers. Every commit writes the whole
//! map to a file of its own, the *root*, whose number the log names. Nothing is replayed.
//!
//! A second file says which root holds without the log; a checkpoint writes it. Roots before that
//! one go then. A root that the log does not name, of a commit that failed or was cut off by a
//! crash, is never looked at: its number is used again after a restart, or not at all.

use std::collections::BTreeMap;
use std::sync::Arc;

use thermocline_device::Device;
use thermocline_storage::log::Lsn;

use super::tests::{decode, encode, exists};
use crate::format::manifest::{read_file, write_file};
use crate::ground::error::{Error, Result};

/// See the module's head.
pub(crate) struct RootedMap {
    device: Arc<dyn Device>,
    name: String,
    entries: BTreeMap<i64, i64>,
    /// What the run under way has changed: keys and what they had.
    before: Vec<(i64, Option<i64>)>,
    /// The last root that was written, named or not.
    written: u64,
    /// Roots that the log names, with the place, and that do not hold without it yet.
    named: Vec<(u64, Lsn)>,
    /// The root that holds without the log; 0: there is none.
    kept: u64,
}

impl RootedMap {
    pub fn open(device: &Arc<dyn Device>, name: String) -> Result<Self> {
        let mut map = RootedMap {
            device: device.clone(),
            entries: BTreeMap::new(),
            before: Vec::new(),
            written: 0,
            named: Vec::new(),
            kept: 0,
            name,
        };
        if exists(&**device, &map.name)? {
            let kept = decode(&read_file(&**device, &map.name)?, &map.name)?;
            map.kept = kept.first().map_or(0, |(root, _)| *root as u64);
            map.load(map.kept)?;
        }
        Ok(map)
    }

    pub fn entries(&self) -> &BTreeMap<i64, i64> {
        &self.entries
    }

    pub fn put(&mut self, key: i64, value: i64) {
        let before = self.entries.insert(key, value);
        self.before.push((key, before));
    }

    pub fn undo(&mut self) {
        for (key, before) in self.before.drain(..).rev() {
            match before {
                Some(value) => self.entries.insert(key, value),
                None => self.entries.remove(&key),
            };
        }
    }

    pub fn prepare(&mut self) -> Result<u64> {
        self.written += 1;
        let entries: Vec<_> = self.entries.iter().map(|(k, v)| (*k, *v)).collect();
        write_file(&*self.device, &self.root(self.written), &encode(&entries))?;
        self.sync_names()?;
        Ok(self.written)
    }

    pub fn committed(&mut self, lsn: Lsn) {
        self.before.clear();
        self.named.push((self.written, lsn));
    }

    pub fn named(&mut self, root: u64) -> Result<()> {
        if root > self.kept {
            self.load(root)?;
            self.named.push((root, 0));
        }
        Ok(())
    }

    pub fn log_is_applied(&mut self) -> Result<()> {
        assert!(self.before.is_empty(), "nothing runs at a restart");
        Ok(())
    }

    pub fn log_is_durable(&mut self, lsn: Lsn) -> Result<()> {
        let durable = self.named.iter().rev().find(|(_, at)| *at <= lsn);
        let Some(&(root, _)) = durable else {
            return Ok(());
        };
        let new = format!("{}-new", self.name);
        write_file(&*self.device, &new, &encode(&[(root as i64, 0)]))?;
        let renamed = self.device.rename(&new, &self.name);
        renamed.map_err(|e| Error::io(e, "renaming which root holds"))?;
        self.sync_names()?;
        let gone = std::mem::replace(&mut self.kept, root);
        self.named.retain(|(number, _)| *number > root);
        for root in gone.max(1)..root {
            if exists(&*self.device, &self.root(root))? {
                let removed = self.device.remove(&self.root(root));
                removed.map_err(|e| Error::io(e, "removing a root"))?;
            }
        }
        Ok(())
    }

    pub fn bytes(&self) -> usize {
        self.entries.len() * size_of::<(i64, i64)>()
    }

    fn root(&self, number: u64) -> String {
        format!("{}-root-{number}", self.name)
    }

    fn load(&mut self, root: u64) -> Result<()> {
        let name = self.root(root);
        let bytes = read_file(&*self.device, &name)?;
        self.entries = decode(&bytes, &name)?.into_iter().collect();
        self.written = root;
        Ok(())
    }

    fn sync_names(&self) -> Result<()> {
        let synced = self.device.sync_directory();
        synced.map_err(|e| Error::io(e, "syncing names"))
    }
}
