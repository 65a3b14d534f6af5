//! Space that is kept for making room: on a full device rows can be deleted and tables dropped,
//! and the checkpoint that gives their space back has room for its own files.
//!
//! The last part of the log's segment is kept for records that make room (`Log::append_reserved`).
//! The device has a file, `reserve`. Its space is given back when a checkpoint begins on a device
//! that is short, or a start finds no room for a segment of the log. It is taken again when there
//! is plenty. Nothing depends on the file: it has no contents, and may be missing.

use std::sync::Arc;

use parking_lot::Mutex;
use thermocline_device::{Device, OpenMode};

use crate::format::manifest::RESERVE;

/// It is taken where at least so many times its size is free.
const FREE_TIMES: u64 = 4;

/// The space that is kept.
pub(crate) struct Reserve {
    device: Arc<dyn Device>,
    /// Bytes to keep; 0: none.
    wanted: u64,
    /// Bytes of the file.
    held: Mutex<u64>,
}

impl Reserve {
    /// Finds what a former process has kept.
    pub fn open(device: Arc<dyn Device>, wanted: u64) -> Self {
        let found = device
            .open(RESERVE, OpenMode::Existing)
            .and_then(|file| file.len());
        Reserve {
            held: Mutex::new(found.unwrap_or(0)),
            device,
            wanted,
        }
    }

    /// Bytes to keep.
    pub fn wanted(&self) -> u64 {
        self.wanted
    }

    /// Takes what is wanted, if the device has plenty. One that has not, or fails, is no error
    /// here: who needs its space next will hear.
    pub fn take(&self) {
        let mut held = self.held.lock();
        let plenty = (self.wanted - self.wanted.min(*held)).saturating_mul(FREE_TIMES);
        if *held >= self.wanted || !self.device.free_bytes().is_ok_and(|free| free >= plenty) {
            return;
        }
        let file = self.device.open(RESERVE, OpenMode::Create);
        if file.and_then(|file| file.set_len(self.wanted)).is_ok() {
            *held = self.wanted;
        }
    }

    /// Gives back all but `kept` bytes.
    pub fn give(&self, kept: u64) {
        let mut held = self.held.lock();
        if *held <= kept {
            return;
        }
        let file = self.device.open(RESERVE, OpenMode::Existing);
        if file.and_then(|file| file.set_len(kept)).is_ok() {
            *held = kept;
        }
    }

    /// Before the log is opened: lets it have a segment, if the device has no room for one.
    pub fn let_log_have(&self, segment_bytes: u64) {
        if self
            .device
            .free_bytes()
            .is_ok_and(|free| free < segment_bytes)
        {
            let held = *self.held.lock();
            self.give(held.saturating_sub(segment_bytes + segment_bytes / 8));
        }
    }
}
