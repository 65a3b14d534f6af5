//! The log in other places: a stretch of it copied into another directory, as
//! far as some moment; closed segments kept in an archive.
//!
//! A copy has the same LSNs, group for group, so that times keep their meaning.
//! Guarantees: what is copied was verified; a segment in an archive is whole, or
//! not there.

use std::io::ErrorKind;
use std::sync::Arc;

use thermocline_device::{Device, DeviceFile, OpenMode, SECTOR_BYTES};

use super::reader::{Found, GroupRead, SegmentReader};
use super::segment::{
    GROUP_HEADER_BYTES, GroupHeader, RECORD_HEADER_BYTES, SegmentHeader, parse_segment_name,
    place_behind, segment_name, u32_at,
};
use super::stream::LogStream;
use super::{LogError, Lsn};

/// Bytes written at a time.
const WRITE_BYTES: usize = 1 << 20;
/// A copy goes on in a new segment after this many bytes.
const SEGMENT_BYTES: u64 = 64 << 20;
/// The name of a segment's copy until it is whole.
pub const UNFINISHED_SEGMENT: &str = "log-unfinished";

/// A segment to which nothing will be added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClosedSegment {
    /// LSN of its first record.
    pub first: Lsn,
    /// Where its last record ends.
    pub end: Lsn,
}

/// How far a copy goes; whatever comes first.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CopyUntil {
    /// Records that end beyond this LSN are left out.
    pub lsn: Option<Lsn>,
    /// Groups closed after this time, in microseconds since 1970, are left out:
    /// every commit acknowledged by then is in, and none begun after it.
    pub time_us: Option<i64>,
}

/// What was copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Copied {
    /// Where the copy ends.
    pub end: Lsn,
    /// The time of its last group; None if it has none.
    pub time_us: Option<i64>,
    /// Bytes on the device.
    pub bytes: u64,
}

/// Copies the stream from `from` on into new segments in `target`, for database
/// `database`, and makes them durable. The first segment begins at `from`.
///
/// # Errors
/// The stream is damaged or has a gap, or a device fails.
pub fn copy_log(
    stream: &mut LogStream,
    target: &dyn Device,
    database: u128,
    until: CopyUntil,
) -> Result<Copied, LogError> {
    let from = stream.position();
    let mut writer = SegmentWriter::create(target, database, from, stream.behind)?;
    let mut copied = Copied {
        end: from,
        time_us: None,
        bytes: 0,
    };
    while until.lsn.is_none_or(|lsn| copied.end < lsn) {
        let Some(mut group) = stream.next()? else {
            break;
        };
        if until.time_us.is_some_and(|time| group.time_us > time) {
            break;
        }
        if let Some(lsn) = until.lsn {
            cut_end(&mut group, lsn);
        }
        if group.records.is_empty() {
            break;
        }
        if group.first != copied.end || writer.offset > SEGMENT_BYTES {
            copied.bytes += writer.finish()?;
            writer = SegmentWriter::create(target, database, group.first, copied.end)?;
        }
        writer.push(&group)?;
        copied.end = group.end;
        copied.time_us = Some(group.time_us);
    }
    copied.bytes += writer.finish()?;
    target
        .sync_directory()
        .map_err(LogError::io("log", "sync directory"))?;
    Ok(copied)
}

/// Copies a closed segment into an archive, unless it is there. Whether it was
/// not.
///
/// # Errors
/// The segment is damaged, or a device fails; a full archive among that.
pub fn archive_segment(
    source: &dyn Device,
    archive: &dyn Device,
    database: u128,
    segment: ClosedSegment,
) -> Result<bool, LogError> {
    let name = segment_name(segment.first);
    let names = archive.list().map_err(LogError::io("archive", "list"))?;
    if names.contains(&name) {
        // Not another database's, though.
        SegmentReader::open(archive, database, segment.first)?;
        return Ok(false);
    }
    let mut reader = SegmentReader::open(source, database, segment.first)?;
    let (first, previous_end) = (segment.first, reader.previous_end);
    let mut writer = SegmentWriter::create(archive, database, first, previous_end)?;
    while reader.lsn < segment.end {
        match reader.next_group()? {
            Ok(group) => writer.push(&group)?,
            Err(Found::Invalid { offset, what, .. }) => return Err(reader.corrupt(offset, what)),
            Err(Found::Record { .. }) => break,
        }
    }
    writer.finish()?;
    archive
        .sync_directory()
        .map_err(LogError::io("archive", "sync directory"))?;
    Ok(true)
}

/// Whether the file of a segment's name in a directory is a segment of this database.
///
/// # Errors
/// The device fails.
pub fn is_segment_of(device: &dyn Device, name: &str, database: u128) -> Result<bool, LogError> {
    let Some(first) = parse_segment_name(name) else {
        return Ok(false);
    };
    match SegmentReader::open(device, database, first) {
        Ok(_) => Ok(true),
        Err(error @ LogError::Io { .. }) => Err(error),
        Err(_) => Ok(false),
    }
}

/// Leaves out the records that end beyond `lsn`.
fn cut_end(group: &mut GroupRead, lsn: Lsn) {
    let mut kept = 0;
    while let Some(bytes) = u32_at(&group.records, kept) {
        let next = kept + bytes as usize + RECORD_HEADER_BYTES;
        if group.first + next as u64 > lsn {
            break;
        }
        kept = next;
    }
    group.records.truncate(kept);
    group.end = group.first + kept as u64;
}

/// Writes groups into one segment file, which gets its name when it is whole.
struct SegmentWriter<'a> {
    device: &'a dyn Device,
    file: Arc<dyn DeviceFile>,
    first: Lsn,
    database: u128,
    pending: Vec<u8>,
    /// Where a small group can be put beside the last one; the end, if it can't.
    used: usize,
    /// Where `pending` goes.
    offset: u64,
    sequence: u64,
}

impl<'a> SegmentWriter<'a> {
    fn create(
        device: &'a dyn Device,
        database: u128,
        first: Lsn,
        previous_end: Lsn,
    ) -> Result<Self, LogError> {
        let file = device
            .open(UNFINISHED_SEGMENT, OpenMode::Create)
            .and_then(|file| file.set_len(0).map(|()| file))
            .map_err(LogError::io(UNFINISHED_SEGMENT, "create"))?;
        let mut pending = vec![0; SECTOR_BYTES];
        let header = SegmentHeader {
            first,
            previous_end,
            database,
        };
        header.encode(&mut pending);
        let used = pending.len();
        Ok(Self {
            device,
            file,
            first,
            database,
            pending,
            used,
            offset: 0,
            sequence: 0,
        })
    }

    fn push(&mut self, group: &GroupRead) -> Result<(), LogError> {
        let header = GroupHeader {
            first: group.first,
            sequence: self.sequence,
            time_us: group.time_us,
            bytes: group.records.len() as u32,
        };
        let beside = place_behind(self.used as u64) as usize;
        let bytes = header.whole_bytes() as usize;
        let at = if beside + bytes <= self.pending.len() {
            beside
        } else {
            if self.pending.len() >= WRITE_BYTES {
                self.write()?;
            }
            self.pending.len()
        };
        if at == self.pending.len() {
            self.pending.resize(at + header.device_bytes() as usize, 0);
        }
        header.encode(self.database, &mut self.pending[at..]);
        let records = at + GROUP_HEADER_BYTES;
        self.pending[records..at + bytes].copy_from_slice(&group.records);
        // Only a group that is in one sector shares it.
        self.used = match bytes <= SECTOR_BYTES {
            true => at + bytes,
            false => self.pending.len(),
        };
        self.sequence += 1;
        Ok(())
    }

    fn write(&mut self) -> Result<(), LogError> {
        self.file
            .write_at(&self.pending, self.offset)
            .map_err(LogError::io(UNFINISHED_SEGMENT, "write"))?;
        self.offset += self.pending.len() as u64;
        self.pending.clear();
        self.used = 0;
        Ok(())
    }

    /// Makes the segment durable, but for its name; its bytes.
    fn finish(mut self) -> Result<u64, LogError> {
        self.write()?;
        self.file
            .sync_data()
            .map_err(LogError::io(UNFINISHED_SEGMENT, "sync"))?;
        let name = segment_name(self.first);
        // A longer copy may replace a shorter one; nobody else's file, though.
        let replaces = match SegmentReader::open(self.device, self.database, self.first) {
            Err(LogError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(()),
            other => other.map(drop),
        };
        replaces?;
        self.device
            .rename(UNFINISHED_SEGMENT, &name)
            .map_err(LogError::io(&name, "rename"))?;
        Ok(self.offset)
    }
}
