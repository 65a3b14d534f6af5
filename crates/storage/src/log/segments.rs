//! The segment files of a log, and the spares: those found, made ahead of need,
//! given up and reused.
//!
//! Guarantees: a spare's space is allocated and synced before it is offered; a
//! file that is recycled is offered only once its old name is durably gone.
//! Survives: a full device, told from all other failures by [`Stop`].

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use thermocline_device::{AlignedBuffer, Device, DeviceFile, OpenMode, StopPoint, stop_at};

use super::reader::SegmentRef;
use super::segment::{parse_spare_name, segment_name, spare_name};
use super::{LogError, LogOptions, Lsn};

/// Zeros written at a time: a commit that comes meanwhile waits for this long.
const FILL_BYTES: u64 = 512 << 10;

/// Writes zeros over the next piece of a file from `offset` on; where it ends.
///
/// An fdatasync after writes to blocks that are allocated, but were never written,
/// has to sync the file system's journal too: several times the latency of a commit.
pub(super) fn fill_piece(
    file: &dyn DeviceFile,
    name: &str,
    offset: u64,
    end: u64,
) -> Result<u64, LogError> {
    let bytes = FILL_BYTES.min(end - offset);
    let zeros = AlignedBuffer::new_zeroed(bytes as usize);
    match file.write_at(&zeros[..], offset) {
        Ok(()) => Ok(offset + bytes),
        // It is for speed only; the log's own writes will meet the full device.
        Err(error) if is_full(&error) => Ok(end),
        Err(error) => Err(LogError::io(name, "fill")(error)),
    }
}

/// Why a group is not written.
pub(super) enum Stop {
    Full,
    Fatal(LogError),
}

impl Stop {
    /// For calls that promise nothing when they fail, unlike a sync.
    pub fn of(error: LogError) -> Self {
        match &error {
            LogError::Io { source, .. } if is_full(source) => Self::Full,
            _ => Self::Fatal(error),
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// A segment file that is allocated and holds nothing yet.
pub(super) struct Spare {
    pub name: String,
    pub bytes: u64,
    /// How much of it was written once, from its start.
    pub filled_bytes: u64,
}

/// The segments in the directory, and the spares.
pub(super) struct Segments {
    device: Arc<dyn Device>,
    state: Mutex<SegmentsState>,
    /// The device is short of space: one spare is enough.
    frugal: AtomicBool,
}

struct SegmentsState {
    list: Vec<SegmentRef>,
    spares: VecDeque<Spare>,
    next_spare: u64,
    /// Sixteenths of a segment: how many are given up at a time, the most of late.
    given_up: usize,
}

impl SegmentsState {
    /// How many spares to keep once `retired` more segments were given up. What is
    /// removed has to be made and filled again, which costs as much as writing it.
    fn spares_wanted(&mut self, retired: usize, options: &LogOptions) -> usize {
        let retired = retired * 16;
        let fading = self.given_up - self.given_up / 8;
        self.given_up = fading.max(retired);
        self.given_up.div_ceil(16).clamp(
            *options.spare_segments.start(),
            *options.spare_segments.end(),
        )
    }
}

impl Segments {
    /// Takes over the segments found, and the spares whose allocation was ended.
    pub fn new(
        device: Arc<dyn Device>,
        list: Vec<SegmentRef>,
        spare_names: Vec<String>,
        options: &LogOptions,
    ) -> Result<Self, LogError> {
        let mut spares = VecDeque::new();
        let mut next_spare = 0;
        for name in spare_names {
            next_spare = next_spare.max(parse_spare_name(&name).unwrap_or(0) + 1);
            let bytes = device
                .open(&name, OpenMode::Existing)
                .and_then(|file| file.len())
                .map_err(LogError::io(&name, "open"))?;
            if bytes == options.segment_bytes && spares.len() < *options.spare_segments.end() {
                spares.push_back(Spare {
                    name,
                    bytes,
                    filled_bytes: 0,
                });
            } else {
                device
                    .remove(&name)
                    .map_err(LogError::io(&name, "remove"))?;
            }
        }
        Ok(Self {
            device,
            state: Mutex::new(SegmentsState {
                list,
                spares,
                next_spare,
                given_up: 0,
            }),
            frugal: AtomicBool::new(false),
        })
    }

    /// Whether one spare is enough.
    pub fn be_frugal(&self, is_frugal: bool) {
        self.frugal.store(is_frugal, Ordering::Relaxed);
    }

    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    pub fn list(&self) -> Vec<SegmentRef> {
        self.state.lock().list.clone()
    }

    /// Notes a segment that was begun.
    pub fn push(&self, segment: SegmentRef) {
        self.state.lock().list.push(segment);
    }

    pub fn has_spare(&self) -> bool {
        !self.state.lock().spares.is_empty()
    }

    pub fn take_spare(&self, bytes: u64) -> Option<Spare> {
        let mut state = self.state.lock();
        let at = state.spares.iter().position(|spare| spare.bytes >= bytes)?;
        state.spares.remove(at)
    }

    pub fn give_spare(&self, spare: Spare) {
        self.state.lock().spares.push_back(spare);
    }

    fn next_spare_name(&self) -> String {
        let mut state = self.state.lock();
        state.next_spare += 1;
        spare_name(state.next_spare - 1)
    }

    pub fn create_spare(&self, bytes: u64) -> Result<Spare, Stop> {
        let name = self.next_spare_name();
        let file = self
            .device
            .open(&name, OpenMode::CreateNew)
            .map_err(|e| Stop::of(LogError::io(&name, "create")(e)))?;
        if let Err(error) = file.set_len(bytes) {
            self.device
                .remove(&name)
                .map_err(|e| Stop::Fatal(LogError::io(&name, "remove")(e)))?;
            return Err(Stop::of(LogError::io(&name, "allocate")(error)));
        }
        file.sync_data()
            .map_err(|e| Stop::Fatal(LogError::io(&name, "sync")(e)))?;
        Ok(Spare {
            name,
            bytes,
            filled_bytes: 0,
        })
    }

    /// Fills the next piece of a spare; `false` when all are filled.
    pub fn fill_piece(&self) -> Result<bool, LogError> {
        let unfilled = |s: &&mut Spare| s.filled_bytes < s.bytes;
        let mut state = self.state.lock();
        let Some(spare) = state.spares.iter_mut().find(unfilled) else {
            return Ok(false);
        };
        let file = self
            .device
            .open(&spare.name, OpenMode::Existing)
            .map_err(LogError::io(&spare.name, "open"))?;
        spare.filled_bytes = fill_piece(&*file, &spare.name, spare.filled_bytes, spare.bytes)?;
        Ok(true)
    }

    /// Renames or removes the segments of which no record ends after `lsn`.
    /// What is returned may be reused once the directory is synced.
    pub fn retire(&self, lsn: Lsn, options: &LogOptions) -> Result<Option<Vec<Spare>>, LogError> {
        let mut state = self.state.lock();
        let mut recycled = Vec::new();
        let later = state.list.iter().skip(1);
        let retired = later.take_while(|next| next.previous_end <= lsn).count();
        let is_frugal = self.frugal.load(Ordering::Relaxed);
        if retired == 0 && !is_frugal {
            return Ok(None);
        }
        // What is needed still, and then what fits beside it.
        let held = (state.list.len() - retired) as u64;
        let fit = (options.files_bytes_max / options.segment_bytes).saturating_sub(held);
        let most = if is_frugal { 1 } else { fit.max(1) as usize };
        let wanted = state.spares_wanted(retired, options).min(most);
        let kept = wanted.min(state.spares.len());
        for spare in state.spares.split_off(kept) {
            self.device
                .remove(&spare.name)
                .map_err(LogError::io(&spare.name, "remove"))?;
        }
        for _ in 0..retired {
            let name = segment_name(state.list[0].first);
            let bytes = self
                .device
                .open(&name, OpenMode::Existing)
                .and_then(|file| file.len())
                .map_err(LogError::io(&name, "open"))?;
            let kept = state.spares.len() + recycled.len();
            if bytes == options.segment_bytes && kept < wanted {
                let spare = spare_name(state.next_spare);
                state.next_spare += 1;
                self.device
                    .rename(&name, &spare)
                    .map_err(LogError::io(&name, "rename"))?;
                recycled.push(Spare {
                    name: spare,
                    bytes,
                    filled_bytes: bytes,
                });
            } else {
                self.device
                    .remove(&name)
                    .map_err(LogError::io(&name, "remove"))?;
            }
            state.list.remove(0);
            stop_at(StopPoint::LogTruncate);
        }
        Ok(Some(recycled))
    }
}
