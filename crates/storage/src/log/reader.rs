//! Reading the log back: finding its end when it is opened, and its records.
//!
//! Guarantees: each record given is as it was written, in order, without a gap;
//! a damaged one before the end is an error that names file and offset.
//! Where a sector is shared by groups, the one beside it has all of them but the newest:
//! the reader goes on there when a group that it expects is not valid where it looked first.
//! How the end is told from damage: flushes are serial, so behind a torn group
//! there is nothing. A bad record with a valid group header behind it in the last
//! segment, or before the place where the next segment says it continues, is
//! damage. (A damaged last group can't be told from a torn one.)

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use thermocline_device::{AlignedBuffer, Device, DeviceFile, Mutation, OpenMode, SECTOR_BYTES};

use super::segment::{
    FIRST_LSN, GROUP_HEADER_BYTES, GroupHeader, Lsn, RECORD_HEADER_BYTES, SegmentHeader,
};
use super::segment::{
    decode_record, parse_segment_name, parse_spare_name, place_behind, segment_name,
};
use super::window::Window;
use super::{LogError, LogOptions};

const BAD_RECORD: &str = "record checksum does not match";
const MISSING: &str = "a group is missing";
const SECTOR: u64 = SECTOR_BYTES as u64;
/// What is wrong with a segment that is right, but not here.
pub(super) const OTHER_DATABASE: &str = "segment of another database";

/// A segment and its link to the one before.
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentRef {
    pub first: Lsn,
    pub previous_end: Lsn,
}

/// A record of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogRecord<'a> {
    /// Where it starts.
    pub start: Lsn,
    /// Where it ends: what `append` returned.
    pub end: Lsn,
    /// What was appended.
    pub payload: &'a [u8],
}

/// The records from some LSN to the end of the log, one after the other.
pub struct LogTail {
    device: Arc<dyn Device>,
    database: u128,
    segments: VecDeque<SegmentRef>,
    reader: Option<SegmentReader>,
    from: Lsn,
    until: Lsn,
}

impl LogTail {
    pub(super) fn new(
        device: Arc<dyn Device>,
        database: u128,
        segments: Vec<SegmentRef>,
        from: Option<Lsn>,
        until: Lsn,
    ) -> Result<Self, LogError> {
        let from = from.unwrap_or_else(|| segments.first().map_or(until, |s| s.first));
        let begin = segments.partition_point(|s| s.first <= from);
        let between = segments.first().is_some_and(|s| s.previous_end <= from);
        let mut segments = VecDeque::from(segments);
        if begin == 0 && !between && from < until {
            return Err(LogError::Missing { lsn: from });
        }
        segments.drain(..begin.saturating_sub(1));
        Ok(Self {
            device,
            database,
            segments,
            reader: None,
            from,
            until,
        })
    }

    /// Where the tail ends.
    pub fn end(&self) -> Lsn {
        self.until
    }

    /// The next record, `None` at the end.
    #[expect(clippy::should_implement_trait, reason = "it lends the payload")]
    pub fn next(&mut self) -> Result<Option<LogRecord<'_>>, LogError> {
        loop {
            let Some(reader) = &mut self.reader else {
                if !self.open_next()? {
                    return Ok(None);
                }
                continue;
            };
            if reader.lsn >= self.until {
                return Ok(None);
            }
            let segment_end = self.segments.front().map(|next| next.previous_end);
            if segment_end == Some(reader.lsn) {
                self.open_next()?;
                continue;
            }
            match reader.next_record()? {
                Found::Invalid { offset, what, .. } => return Err(reader.corrupt(offset, what)),
                Found::Record { start, .. } if start < self.from => {}
                Found::Record { start, payload } => {
                    // Taken anew: the loop above keeps its own borrow of the reader.
                    let reader = self.reader.as_ref();
                    let payload = reader.and_then(|r| r.window.held(payload));
                    let Some(payload) = payload else {
                        unreachable!("a record found lies in the window");
                    };
                    let end = start + (RECORD_HEADER_BYTES + payload.len()) as u64;
                    return Ok(Some(LogRecord {
                        start,
                        end,
                        payload,
                    }));
                }
            }
        }
    }

    fn open_next(&mut self) -> Result<bool, LogError> {
        let Some(segment) = self.segments.pop_front() else {
            return Ok(false);
        };
        let reader = SegmentReader::open(&*self.device, self.database, segment.first)?;
        if let Some(before) = &self.reader
            && reader.previous_end != before.lsn
        {
            return Err(reader.corrupt(0, "the segment does not continue the one before"));
        }
        self.reader = Some(reader);
        Ok(true)
    }
}

/// The records from `start` (None: the beginning) to the end of a log that nobody
/// has open; nothing is changed.
pub fn read_tail(
    device: &Arc<dyn Device>,
    options: &LogOptions,
    start: Option<Lsn>,
) -> Result<LogTail, LogError> {
    recover(device, options, start).map(|(_, tail)| tail)
}

/// What a log's directory tells when it is opened.
pub(super) struct Recovered {
    pub segments: Vec<SegmentRef>,
    pub spares: Vec<String>,
    /// Where the stream ends.
    pub end: Lsn,
    /// LSN of the next record; beyond any in a group that was torn.
    pub next: Lsn,
    /// Bytes of the files that are needed.
    pub tail_bytes: u64,
    /// Sequence of the next group.
    pub sequence: u64,
}

/// Finds the segments and the end of the log.
pub(super) fn recover(
    device: &Arc<dyn Device>,
    options: &LogOptions,
    start: Option<Lsn>,
) -> Result<(Recovered, LogTail), LogError> {
    let names = device.list().map_err(LogError::io("log", "list"))?;
    let mut firsts: Vec<Lsn> = names.iter().filter_map(|n| parse_segment_name(n)).collect();
    firsts.sort_unstable();
    let spares = names
        .into_iter()
        .filter(|name| parse_spare_name(name).is_some())
        .collect();

    let mut segments = Vec::with_capacity(firsts.len());
    let mut tail_bytes = 0;
    let needed = start.map_or(0, |start| firsts.partition_point(|first| *first <= start));
    for (i, &first) in firsts.iter().enumerate() {
        // What the checkpoint doesn't need may be there for an archive. It may be half truncated,
        // too, or damaged, and that is no reason not to open.
        let opened = SegmentReader::open(&**device, options.database, first);
        let previous_end = match (opened, i + 1 < needed) {
            (Ok(reader), is_old) => {
                tail_bytes += if is_old { 0 } else { reader.file_bytes };
                reader.previous_end
            }
            (Err(_), true) => first,
            (Err(error), false) => return Err(error),
        };
        segments.push(SegmentRef {
            first,
            previous_end,
        });
    }
    let (end, sequence) = match segments.last() {
        Some(last) => find_end(&**device, options.database, last.first)?,
        None => (FIRST_LSN, 0),
    };
    // A checkpoint of a database that was never written to names the first LSN,
    // for which no segment was made yet.
    let unused = firsts.is_empty() && start == Some(FIRST_LSN);
    // Between the end of a segment and the next one's first LSN lies no record.
    let between = |lsn| segments.first().is_some_and(|s| s.previous_end <= lsn);
    if let Some(lsn) = start
        && needed == 0
        && !unused
        && !between(lsn)
    {
        return Err(LogError::Missing { lsn });
    }
    if end < options.reaches && !Mutation::LogEndBelieved.is_made() {
        let first = segments.last().map_or(options.reaches, |last| last.first);
        return Err(LogError::EndsEarly {
            file: segment_name(first),
            end,
            reaches: options.reaches,
        });
    }
    let next = if segments.is_empty() {
        FIRST_LSN
    } else {
        // The rest of a torn group may still be on the device: its LSNs are not
        // used again, so that a recycled file can't pass it off for a new one.
        let reached = end.max(start.unwrap_or(0)).max(options.goes_on_at);
        (reached / options.segment_bytes + 2) * options.segment_bytes
    };
    let tail = LogTail::new(
        Arc::clone(device),
        options.database,
        segments.clone(),
        start,
        end,
    )?;
    let recovered = Recovered {
        segments,
        spares,
        end,
        next,
        tail_bytes,
        sequence,
    };
    Ok((recovered, tail))
}

/// The end of the stream in the last segment, and the next group's sequence.
fn find_end(device: &dyn Device, database: u128, first: Lsn) -> Result<(Lsn, u64), LogError> {
    let mut reader = SegmentReader::open(device, database, first)?;
    // A process that was killed may have left groups that were never synced.
    // What is taken for the log's from now on has to survive the next crash.
    reader
        .file
        .sync_data()
        .map_err(LogError::io(&reader.name, "sync"))?;
    device
        .sync_directory()
        .map_err(LogError::io("log", "sync directory"))?;
    loop {
        if let Found::Invalid { offset, what, next } = reader.next_record()? {
            if reader.has_group_after(next)? {
                return Err(reader.corrupt(offset, what));
            }
            return Ok((reader.lsn, reader.sequence.map_or(0, |last| last + 1)));
        }
    }
}

pub(super) enum Found {
    /// A record; its payload as a range of file offsets.
    Record { start: Lsn, payload: Range<u64> },
    /// None at `offset`; a group behind it could begin at `next`.
    Invalid {
        offset: u64,
        what: &'static str,
        next: u64,
    },
}

pub(super) struct SegmentReader {
    file: Arc<dyn DeviceFile>,
    pub name: String,
    database: u128,
    pub previous_end: Lsn,
    file_bytes: u64,
    window: Window,
    /// Where the next group begins, if it lies in the same sector as the last.
    offset: u64,
    /// The rest of the group being read, as file offsets.
    group: Range<u64>,
    group_time_us: i64,
    pub lsn: Lsn,
    sequence: Option<u64>,
}

/// A group read back whole, or as far as its records are valid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct GroupRead {
    /// LSN of its first record.
    pub first: Lsn,
    /// Where its last record ends.
    pub end: Lsn,
    /// When it was closed.
    pub time_us: i64,
    /// Its records, headers included.
    pub records: Vec<u8>,
}

impl SegmentReader {
    pub fn open(device: &dyn Device, database: u128, first: Lsn) -> Result<Self, LogError> {
        let name = segment_name(first);
        let file = device
            .open(&name, OpenMode::Existing)
            .map_err(LogError::io(&name, "open"))?;
        let file_bytes = file.len().map_err(LogError::io(&name, "length"))?;
        let mut reader = Self {
            file,
            name,
            database,
            previous_end: first,
            file_bytes: file_bytes - file_bytes % SECTOR,
            window: Window::default(),
            offset: SECTOR,
            group: 0..0,
            group_time_us: 0,
            lsn: first,
            sequence: None,
        };
        if reader.file_bytes < SECTOR {
            return Err(reader.corrupt(0, "segment header is cut short"));
        }
        // One sector: the chain is walked by headers alone.
        let mut sector = AlignedBuffer::new_zeroed(SECTOR_BYTES);
        reader
            .file
            .read_at(&mut sector[..], 0)
            .map_err(LogError::io(&reader.name, "read"))?;
        let header = SegmentHeader::decode(&sector[..]).map_err(|what| reader.corrupt(0, what))?;
        if header.database != database {
            return Err(reader.corrupt(0, OTHER_DATABASE));
        }
        if header.first != first || header.previous_end > first {
            return Err(reader.corrupt(0, "segment header does not fit the file's name"));
        }
        reader.previous_end = header.previous_end;
        Ok(reader)
    }

    pub fn corrupt(&self, offset: u64, what: &'static str) -> LogError {
        LogError::Corrupt {
            file: self.name.clone(),
            offset,
            what,
        }
    }

    fn load(&mut self, offset: u64, bytes: u64) -> Result<(), LogError> {
        self.window
            .load(&*self.file, self.file_bytes, offset, bytes)
            .map_err(LogError::io(&self.name, "read"))
    }

    fn next_record(&mut self) -> Result<Found, LogError> {
        while self.group.is_empty() {
            if let Some(invalid) = self.enter_group()? {
                return Ok(invalid);
            }
        }
        let bytes = self.window.held(self.group.clone()).unwrap_or_default();
        let Some(payload) = decode_record(bytes, self.lsn) else {
            return Ok(Found::Invalid {
                offset: self.group.start,
                what: BAD_RECORD,
                next: self.offset.next_multiple_of(SECTOR),
            });
        };
        let start = self.lsn;
        let at = self.group.start + RECORD_HEADER_BYTES as u64;
        let payload = at..at + payload.len() as u64;
        self.group.start = payload.end;
        self.lsn += payload.end - at + RECORD_HEADER_BYTES as u64;
        Ok(Found::Record { start, payload })
    }

    /// The valid records of the next group, or why there is none.
    pub fn next_group(&mut self) -> Result<Result<GroupRead, Found>, LogError> {
        let mut group = match self.next_record()? {
            invalid @ Found::Invalid { .. } => return Ok(Err(invalid)),
            Found::Record { start, payload } => GroupRead {
                first: start,
                end: self.lsn,
                time_us: self.group_time_us,
                records: self.record_bytes(&payload),
            },
        };
        while !self.group.is_empty() {
            match self.next_record()? {
                // The next call says so again.
                Found::Invalid { .. } => break,
                Found::Record { payload, .. } => {
                    group.records.extend(self.record_bytes(&payload));
                    group.end = self.lsn;
                }
            }
        }
        Ok(Ok(group))
    }

    fn record_bytes(&self, payload: &Range<u64>) -> Vec<u8> {
        let whole = payload.start - RECORD_HEADER_BYTES as u64..payload.end;
        self.window.held(whole).unwrap_or_default().to_vec()
    }

    /// Goes on to the next group, or says why there is none.
    fn enter_group(&mut self) -> Result<Option<Found>, LogError> {
        let mut here = None;
        if !self.offset.is_multiple_of(SECTOR) {
            match self.enter_at(self.offset)? {
                Ok(()) => return Ok(None),
                Err(invalid) => here = Some(invalid),
            }
        }
        if self.enter_in_pair()?.is_none() {
            return Ok(None);
        }
        // A writer may have gone on since this was read.
        self.window.forget();
        let Some(beside) = self.enter_in_pair()? else {
            return Ok(None);
        };
        // Where a later group stands in its place, it was before that.
        Ok(Some(match (here, beside) {
            (
                Some(Found::Invalid { offset, what, .. }),
                Found::Invalid {
                    what: MISSING,
                    next,
                    ..
                },
            ) => Found::Invalid { offset, what, next },
            (_, beside) => beside,
        }))
    }

    /// Behind the sector that was written last may be the one beside it; or the first of the
    /// two is torn, and the second has what it had.
    fn enter_in_pair(&mut self) -> Result<Option<Found>, LogError> {
        let sector = self.offset.next_multiple_of(SECTOR);
        let invalid = match self.enter_in_sector(sector)? {
            Ok(()) => return Ok(None),
            Err(invalid) => invalid,
        };
        let beside = self.enter_in_sector(sector + SECTOR)?;
        Ok(beside.err().map(|_| invalid))
    }

    /// Enters the expected group at the beginning of a sector, or behind groups that stand
    /// there once more.
    fn enter_in_sector(&mut self, sector: u64) -> Result<Result<(), Found>, LogError> {
        let mut at = sector;
        loop {
            let invalid = match self.enter_at(at)? {
                Ok(()) => return Ok(Ok(())),
                Err(invalid) => invalid,
            };
            match self.header_at(at) {
                Some(header) if header.first < self.lsn => {
                    at = place_behind(at + header.whole_bytes());
                }
                _ => return Ok(Err(invalid)),
            }
            if at >= sector + SECTOR {
                return Ok(Err(invalid));
            }
        }
    }

    /// The header of a group that begins here, if its sector is held.
    fn header_at(&self, offset: u64) -> Option<GroupHeader> {
        let sector_end = (offset + 1).next_multiple_of(SECTOR);
        let rest = self.window.held(offset..sector_end)?;
        GroupHeader::decode(self.database, rest)
    }

    /// Enters the group that begins at `offset`, if it is the expected one. One that lies in
    /// a sector is verified whole: it may stand in the sector beside it, too.
    fn enter_at(&mut self, offset: u64) -> Result<Result<(), Found>, LogError> {
        let sector = offset - offset % SECTOR;
        let invalid = |what, next| Ok(Err(Found::Invalid { offset, what, next }));
        if sector + SECTOR > self.file_bytes {
            return invalid("the segment is at its end", sector);
        }
        self.load(sector, SECTOR)?;
        let Some(header) = self.header_at(offset) else {
            return invalid("there is no group header", sector + SECTOR);
        };
        let expected = self.sequence.map_or(header.sequence, |last| last + 1);
        if header.first != self.lsn || header.sequence != expected {
            // The sector again: the group itself shows that one is missing.
            return invalid(MISSING, sector);
        }
        let end = offset + header.whole_bytes();
        let device_end = end.next_multiple_of(SECTOR);
        if device_end > self.file_bytes || (offset != sector && end > sector + SECTOR) {
            return invalid(
                "a group passes its segment's or its sector's end",
                sector + SECTOR,
            );
        }
        self.load(sector, device_end - sector)?;
        let records = offset + GROUP_HEADER_BYTES as u64..end;
        if end <= sector + SECTOR
            && let Err(bad) = self.verify(records.clone())
        {
            return Ok(Err(Found::Invalid {
                offset: bad,
                what: BAD_RECORD,
                next: sector + SECTOR,
            }));
        }
        self.group = records;
        self.offset = place_behind(end);
        self.group_time_us = header.time_us;
        self.sequence = Some(header.sequence);
        Ok(Ok(()))
    }

    /// Verifies all records of a group; where the first bad one begins.
    fn verify(&self, mut records: Range<u64>) -> Result<(), u64> {
        let mut lsn = self.lsn;
        while !records.is_empty() {
            let bytes = self.window.held(records.clone()).unwrap_or_default();
            let payload = decode_record(bytes, lsn).ok_or(records.start)?;
            let bytes = (RECORD_HEADER_BYTES + payload.len()) as u64;
            records.start += bytes;
            lsn += bytes;
        }
        Ok(())
    }

    /// Whether a group of the stream's continuation lies at or behind `offset`.
    pub fn has_group_after(&mut self, mut offset: u64) -> Result<bool, LogError> {
        while offset + SECTOR <= self.file_bytes {
            self.load(offset, SECTOR)?;
            let sector = self.window.held(offset..offset + SECTOR);
            let header = sector.and_then(|s| GroupHeader::decode(self.database, s));
            // A recycled file has old groups in it: those have lower LSNs.
            if header.is_some_and(|header| header.first >= self.lsn) {
                return Ok(true);
            }
            offset += SECTOR;
        }
        Ok(false)
    }
}
