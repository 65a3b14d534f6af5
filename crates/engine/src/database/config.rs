//! What a database is opened with: its settings, and the procedures that can be called.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use thermocline_device::Device;

use crate::parts::settings::Settings;
use crate::procedure::Procedures;

/// What a database is opened with. The settings are fields of it, by way of [`Settings`].
#[derive(Clone)]
pub struct Config {
    /// All but the procedures.
    pub settings: Settings,
    /// The procedures that can be called; those whose commands may be in the log
    /// have to be there when the database is opened.
    pub procedures: Procedures,
}

impl Deref for Config {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.settings
    }
}

impl DerefMut for Config {
    fn deref_mut(&mut self) -> &mut Settings {
        &mut self.settings
    }
}

impl Config {
    /// Defaults over a device.
    pub fn new(device: Arc<dyn Device>) -> Self {
        Config {
            settings: Settings::new(device),
            procedures: Procedures::new(),
        }
    }

    /// Sets `memory_limit`, in bytes.
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.settings.memory_limit = bytes;
        self
    }

    /// Sets the number of partitions.
    pub fn partitions(mut self, partitions: u16) -> Self {
        self.settings.partitions = partitions;
        self
    }
}
