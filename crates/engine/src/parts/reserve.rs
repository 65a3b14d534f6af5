//! Space that is kept for making room: on a full device rows can be deleted and tables dropped,
//! and the checkpoint that gives their space back has room for its own files.
//!
//! The last half of the log's segment is kept for records that make room (`Log::append_reserved`).
//! The device has a file, `reserve`, which keeps its space from everybody. What makes room gets as
//! much of it as it needs at a time: what is given back and not used yet, other programs may take.
//! Ordinary growth leaves as much free as the file lacks ([`KeptSpace`]), and a checkpoint makes it
//! whole again when there is space. The file has no contents, and may be missing: nothing is kept
//! then.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use thermocline_device::{Device, KeptSpace, OpenMode};

use crate::format::manifest::RESERVE;

/// It is taken for the first time where at least so many times its size is free.
const FREE_TIMES: u64 = 4;

/// Of what it wants, compaction may have one part of so many.
const COMPACTION_PARTS: u64 = 8;

/// Beyond what is needed so much is left for what the file system keeps of its files.
const BESIDE_BYTES: u64 = 128 << 10;

/// It is given at least in so many parts.
const STEPS: u64 = 32;

/// What space is wanted for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SpaceUse {
    /// More rows.
    Growth,
    /// Copying what lives out of blocks that mostly hold what doesn't: more comes back later.
    Compaction,
    /// A checkpoint, or the log of what makes room: more comes back then.
    MakingRoom,
}

/// The space that is kept.
pub(crate) struct Reserve {
    device: Arc<dyn Device>,
    /// Bytes to keep; 0: none.
    wanted: u64,
    /// Bytes of the file, if there is one.
    held: Mutex<Option<u64>>,
    /// The most that it had.
    most: AtomicU64,
    kept: Arc<KeptSpace>,
}

impl Reserve {
    /// Finds what a former process has kept.
    pub fn open(device: Arc<dyn Device>, wanted: u64) -> Self {
        let found = device
            .open(RESERVE, OpenMode::Existing)
            .and_then(|file| file.len());
        let reserve = Reserve {
            most: AtomicU64::new(found.as_ref().copied().unwrap_or(0)),
            held: Mutex::new(found.ok()),
            kept: Arc::new(KeptSpace::new(device.clone())),
            device,
            wanted,
        };
        reserve.keep_the_rest(*reserve.held.lock());
        reserve
    }

    /// Bytes to keep.
    pub fn wanted(&self) -> u64 {
        self.wanted
    }

    /// What growth leaves free while the file does not have it.
    pub fn kept(&self) -> &Arc<KeptSpace> {
        &self.kept
    }

    /// Whether so many more bytes may be taken for this. What makes room gets them here, if they
    /// are not free.
    pub fn allows(&self, space_use: SpaceUse, bytes: u64) -> bool {
        let least = match space_use {
            SpaceUse::Growth => return self.kept.leaves(bytes),
            SpaceUse::Compaction => self.wanted - self.wanted / COMPACTION_PARTS,
            SpaceUse::MakingRoom => 0,
        };
        self.give_for(bytes, least) || self.kept.leaves(bytes)
    }

    /// Takes what is wanted where the device has plenty, and up to what it had where it has not;
    /// gives back what is more. A device that has nothing, or fails, is no error: who needs its
    /// space next will hear.
    pub fn take(&self) {
        let mut held = self.held.lock();
        let has = held.unwrap_or(0);
        if has > self.wanted {
            return self.set_file(&mut held, OpenMode::Existing, self.wanted);
        }
        let missing = self.wanted - has;
        let Ok(free) = self.device.free_bytes() else {
            return;
        };
        let takes = match free >= missing.saturating_mul(FREE_TIMES) {
            true => missing,
            // Others would take it at once.
            false => self.most.load(Ordering::Relaxed).saturating_sub(has),
        };
        let takes = takes.min(missing).min(free.saturating_sub(BESIDE_BYTES));
        if takes > 0 {
            self.set_file(&mut held, OpenMode::Create, has + takes);
        }
    }

    /// Sees to it that so many bytes are free, and keeps at least so many. Whether they are.
    fn give_for(&self, bytes: u64, least: u64) -> bool {
        let needed = bytes.saturating_add(BESIDE_BYTES);
        let is_free = || self.device.free_bytes().is_ok_and(|free| free >= needed);
        if self.wanted == 0 || is_free() {
            return true;
        }
        let mut held = self.held.lock();
        let has = held.unwrap_or(0);
        let free = self.device.free_bytes().unwrap_or(0);
        let (missing, most) = (needed.saturating_sub(free), has.saturating_sub(least));
        if missing > most {
            return false;
        }
        let gives = missing.max(self.wanted / STEPS).min(most);
        self.set_file(&mut held, OpenMode::Existing, has - gives);
        is_free()
    }

    fn set_file(&self, held: &mut Option<u64>, mode: OpenMode, bytes: u64) {
        // What the file is about to give back is kept before others can take it.
        self.keep_the_rest(Some(held.unwrap_or(bytes).min(bytes)));
        let file = self.device.open(RESERVE, mode);
        if file.and_then(|file| file.set_len(bytes)).is_ok() {
            *held = Some(bytes);
            self.most.fetch_max(bytes, Ordering::Relaxed);
        }
        self.keep_the_rest(*held);
    }

    fn keep_the_rest(&self, held: Option<u64>) {
        let rest = held.map_or(0, |held| self.wanted.saturating_sub(held));
        self.kept.set(rest);
    }

    /// Before the log is opened: lets it have a segment, if the device has no room for one.
    pub fn let_log_have(&self, segment_bytes: u64) {
        self.give_for(segment_bytes, 0);
    }
}
