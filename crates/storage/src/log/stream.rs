//! One stream of groups out of the segments of several directories: a backup,
//! an archive, what is left of a data directory. They may overlap, and where one
//! is damaged another may go on.
//!
//! Guarantees: groups come in order, without a gap, verified. A gap, and damage
//! that no other directory makes up for, are errors, never an early end.

use std::sync::Arc;

use thermocline_device::{Device, Mutation};

use super::reader::{Found, GroupRead, OTHER_DATABASE, SegmentReader};
use super::segment::{RECORD_HEADER_BYTES, parse_segment_name, u32_at};
use super::{LogError, Lsn};

/// The segments of one of the directories.
struct Source {
    device: Arc<dyn Device>,
    /// Their first LSNs, ascending.
    firsts: Vec<Lsn>,
    /// The position at which this directory was found to have nothing more.
    spent_at: Option<Lsn>,
}

/// Reads the groups from a position on.
pub struct LogStream {
    database: u128,
    sources: Vec<Source>,
    position: Lsn,
    /// Where the last record before the stream's first ends.
    pub(super) behind: Lsn,
    reader: Option<SegmentReader>,
    damage: Option<LogError>,
}

impl LogStream {
    /// The stream from `position` on, out of all segments of these directories.
    /// Those of another database are left out.
    ///
    /// # Errors
    /// A directory can't be listed.
    pub fn open(
        directories: &[Arc<dyn Device>],
        database: u128,
        position: Lsn,
    ) -> Result<Self, LogError> {
        let mut sources = Vec::new();
        for device in directories {
            let names = device.list().map_err(LogError::io("log", "list"))?;
            let mut firsts: Vec<Lsn> = names.iter().filter_map(|n| parse_segment_name(n)).collect();
            firsts.sort_unstable();
            sources.push(Source {
                device: device.clone(),
                firsts,
                spent_at: None,
            });
        }
        Ok(Self {
            database,
            sources,
            position,
            behind: position,
            reader: None,
            damage: None,
        })
    }

    /// The stream of a log that is open, which knows what was before it: a copy that begins
    /// at a start of the database says then where the log ended before.
    pub fn behind(mut self, end: Lsn) -> Self {
        self.behind = end;
        self
    }

    /// Where the next group begins.
    pub fn position(&self) -> Lsn {
        self.position
    }

    /// The next group; None at the end.
    pub(super) fn next(&mut self) -> Result<Option<GroupRead>, LogError> {
        loop {
            let Some(reader) = &mut self.reader else {
                if !self.open_next()? {
                    return Ok(None);
                }
                continue;
            };
            match reader.next_group()? {
                Ok(group) if group.end <= self.position => {}
                Ok(group) if group.first <= self.position => {
                    let group = without_start(group, self.position);
                    self.position = group.end;
                    self.damage = None;
                    return Ok(Some(group));
                }
                // What this segment has begins later.
                Ok(_) => self.reader = None,
                Err(Found::Invalid { offset, what, next }) => {
                    if reader.lsn >= self.position && reader.has_group_after(next)? {
                        self.damage.get_or_insert(reader.corrupt(offset, what));
                    }
                    self.reader = None;
                }
                Err(Found::Record { .. }) => self.reader = None,
            }
        }
    }

    /// Opens the next segment that may hold the position; false at the end.
    fn open_next(&mut self) -> Result<bool, LogError> {
        let at = self.position;
        while let Some(source) = self.sources.iter_mut().find(|s| s.spent_at != Some(at)) {
            source.spent_at = Some(at);
            let behind = source.firsts.partition_point(|first| *first <= at);
            let Some(first) = behind.checked_sub(1).map(|i| source.firsts[i]) else {
                continue;
            };
            let opened = SegmentReader::open(&*source.device, self.database, first);
            if let Some(reader) = self.unless_damaged(opened)? {
                self.reader = Some(reader);
                return Ok(true);
            }
        }
        // After a start of the database the stream goes on at a higher LSN.
        let mut later = false;
        for number in 0..self.sources.len() {
            let source = &self.sources[number];
            let behind = source.firsts.partition_point(|first| *first <= at);
            let Some(&first) = source.firsts.get(behind) else {
                continue;
            };
            let opened = SegmentReader::open(&*source.device, self.database, first);
            match self.unless_damaged(opened)? {
                // Between the end of a segment and the next one's first LSN lies no record. A
                // database that was opened and never written to stands there.
                Some(reader)
                    if reader.previous_end == at
                        || reader.previous_end < at && !Mutation::StartTakenForGap.is_made() =>
                {
                    self.position = first;
                    self.reader = Some(reader);
                    return Ok(true);
                }
                Some(_) => later = true,
                None => {}
            }
        }
        match self.damage.take() {
            Some(error) => Err(error),
            None if later => Err(LogError::Missing { lsn: at }),
            None => Ok(false),
        }
    }

    /// Keeps damage in mind, for the case that no other directory makes up for it.
    fn unless_damaged(
        &mut self,
        opened: Result<SegmentReader, LogError>,
    ) -> Result<Option<SegmentReader>, LogError> {
        match opened {
            Ok(reader) => Ok(Some(reader)),
            Err(LogError::Corrupt { what, .. }) if what == OTHER_DATABASE => Ok(None),
            Err(error @ LogError::Corrupt { .. }) => {
                self.damage.get_or_insert(error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// The group's records from `position` on.
fn without_start(mut group: GroupRead, position: Lsn) -> GroupRead {
    while group.first < position {
        let bytes = u32_at(&group.records, 0).unwrap_or(0) as usize + RECORD_HEADER_BYTES;
        group.records.drain(..bytes.min(group.records.len()));
        group.first += bytes as u64;
    }
    group
}
