//! A scan over row groups. What lies in a group is handed out a part at a time as columns, and not row by
//! row: so whoever wants vectors needs no tuples.
//!
//! Which rows of a group are the table's is said by runs of the row directory, collected under the
//! partition's lock and pinned there. What the scan asks is answered first by the group's directory, then
//! on the chunks of the columns that are asked about. The others are read where a row has all that is
//! asked. Rows that may have it are given out: whoever asked looks again.

use std::sync::Arc;

use thermocline_storage::block_store::{BlockInfo, BlockPin, BlockStore};
use thermocline_storage::columns::{COLUMNS_EXTENT, ColumnTest, GroupReader, Matching};
use thermocline_storage::row_directory::ColdAddress;

use crate::catalog::Table;
use crate::ground::error::{Error, Result};
use crate::ground::row_id::RowId;
use crate::rows::column_use::TableUse;
use crate::rows::planned_read::PlannedRead;
use crate::rows::row_group::{Group, GroupCounts, RowGroups};

/// Rows of a group that are handed out at a time.
const PART_ROWS_MAX: usize = 8192;
const PART_ROWS_MIN: usize = 512;
/// What a row of a part is taken to have when it is made of what the scan may give out at a time.
const PART_ROW_BYTES: u64 = 128;

/// Takes the rows of a scan.
pub trait ScanSink {
    /// A row. May be called under the partition's lock: it must be short and must not call the database.
    fn tuple(&mut self, row: RowId, tuple: &[u8]);

    /// Rows of a group, without a lock. False: they are wanted as tuples.
    ///
    /// # Errors
    /// The chunks are not what was written.
    fn group(&mut self, rows: &GroupRows<'_>) -> Result<bool> {
        let _ = rows;
        Ok(false)
    }
}

/// Some rows of a group.
pub struct GroupRows<'a> {
    /// What reads them: columns that the scan does not want may not be there.
    pub reader: &'a GroupReader<'a>,
    /// Their positions, ascending.
    pub positions: &'a [u16],
    partition: u16,
    malformed: &'a dyn Fn() -> Error,
}

impl GroupRows<'_> {
    /// The number of the row at a position.
    #[must_use]
    pub fn row(&self, position: u16) -> RowId {
        let row = self.reader.row(usize::from(position)).unwrap_or_default();
        RowId::new(self.partition, row)
    }

    /// The error of a chunk that is not what was written.
    #[must_use]
    pub fn malformed(&self) -> Error {
        (self.malformed)()
    }
}

/// Consecutive rows at consecutive positions of a group.
#[derive(Clone, Copy, Debug)]
struct Run {
    block: u32,
    slot: u16,
    count: u32,
    row: u32,
}

/// Runs of rows as the directory has them, and what keeps their blocks.
pub(crate) struct RunsTaken {
    _pin: BlockPin,
    runs: Vec<Run>,
    blocks: Vec<BlockInfo>,
}

impl RunsTaken {
    /// Begin before the first word is read.
    pub fn begin(blocks: &BlockStore) -> Self {
        RunsTaken {
            _pin: blocks.pin(),
            runs: Vec::new(),
            blocks: Vec::new(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Adds a row. The partition's lock is held.
    #[inline]
    pub fn push(&mut self, row: u32, address: ColdAddress, blocks: &BlockStore) -> Result<()> {
        self.push_run(row, address, 1, blocks)
    }

    /// Adds so many rows at one position after the other.
    #[inline]
    pub fn push_run(
        &mut self,
        row: u32,
        address: ColdAddress,
        count: u32,
        blocks: &BlockStore,
    ) -> Result<()> {
        if let Some(last) = self.runs.last_mut()
            && last.block == address.block
            && u32::from(last.slot) + last.count == u32::from(address.slot)
            && last.row + last.count == row
        {
            last.count += count;
            return Ok(());
        }
        self.begin_run(row, address, count, blocks)
    }

    fn begin_run(
        &mut self,
        row: u32,
        address: ColdAddress,
        count: u32,
        blocks: &BlockStore,
    ) -> Result<()> {
        let block = address.block;
        let place = self.blocks.binary_search_by_key(&block, |info| info.id);
        if let Err(place) = place {
            let info = blocks.info(block).ok_or_else(|| {
                Error::Corrupt(format!(
                    "the directory's row {row} refers to block {block}, which the block table lacks"
                ))
            })?;
            self.blocks.insert(place, info);
        }
        self.runs.push(Run {
            block,
            slot: address.slot,
            count,
            row,
        });
        Ok(())
    }
}

/// See the module's head.
pub(crate) struct GroupScan {
    /// The columns that are given out; all, where nothing is said.
    columns: Option<Arc<[usize]>>,
    tests: Arc<[ColumnTest]>,
    part_rows: usize,
    opened: Option<Opened>,
    taken: Option<Taken>,
    /// Counts what is decoded, as soon as there is a group.
    uses: Option<TableUse>,
    pub counts: GroupCounts,
}

/// The group that the scan came to last.
struct Opened {
    group: Group,
    /// The positions that may have what is asked.
    matching: Matching,
    /// Whether all columns that are given out are there.
    is_complete: bool,
    /// The columns that conditions took for themselves, whose chunks are counted.
    asked: Vec<usize>,
    /// Whether the chunks of all others are counted.
    is_counted: bool,
    /// It has columns that the table has not, and others in their places: its rows are tuples.
    by_tuples: bool,
}

/// What a turn has found, and how much of it was given out.
struct Taken {
    partition: u16,
    runs: RunsTaken,
    next: usize,
    /// Positions of the opened group that are still to be given out.
    positions: Vec<u16>,
    given: usize,
}

impl GroupScan {
    /// A scan that gives out these columns of the rows that may have what is asked, in parts by the bytes
    /// that it may give out at a time.
    pub fn new(columns: Option<&[usize]>, tests: Arc<[ColumnTest]>, part_bytes: u64) -> Self {
        let part_rows = usize::try_from(part_bytes / PART_ROW_BYTES).unwrap_or(PART_ROWS_MAX);
        GroupScan {
            columns: columns.map(Arc::from),
            tests,
            part_rows: part_rows.clamp(PART_ROWS_MIN, PART_ROWS_MAX),
            opened: None,
            taken: None,
            uses: None,
            counts: GroupCounts::default(),
        }
    }

    /// Whether there are groups to be gone through.
    pub fn has_more(&self) -> bool {
        self.taken.is_some()
    }

    /// Takes over what a turn has found.
    pub fn take(&mut self, partition: u16, mut runs: RunsTaken) {
        if runs.is_empty() {
            return;
        }
        runs.runs.sort_unstable_by_key(|run| (run.block, run.slot));
        self.taken = Some(Taken {
            partition,
            runs,
            next: 0,
            positions: Vec::new(),
            given: 0,
        });
    }

    /// Gives out a part of a group, or passes over one.
    pub async fn step(
        &mut self,
        groups: &RowGroups,
        table: &Table,
        sink: &mut impl ScanSink,
    ) -> Result<()> {
        let Some(taken) = &mut self.taken else {
            return Ok(());
        };
        if taken.given == taken.positions.len() {
            let Some(first) = taken.runs.runs.get(taken.next).copied() else {
                self.taken = None;
                return Ok(());
            };
            let runs = &taken.runs.runs[taken.next..];
            let count = runs.iter().take_while(|run| run.block == first.block);
            let end = taken.next + count.count();
            let read = taken.read_of(first)?;
            let (columns, tests) = (self.columns.as_deref(), &*self.tests);
            let uses = self.uses.get_or_insert_with(|| groups.uses(read.storage));
            let opened = match self.opened.take() {
                Some(opened) if opened.group.block == first.block => opened,
                _ => {
                    self.counts.groups += 1;
                    let opened = open(groups, table, &read, columns, tests, uses).await?;
                    self.counts.skipped += u64::from(opened.is_passed_over());
                    groups.count(read.storage, opened.is_passed_over());
                    opened
                }
            };
            let opened = self.opened.insert(opened);
            let runs = &taken.runs.runs[taken.next..end];
            taken.next = end;
            taken.given = 0;
            taken.positions.clear();
            if opened.is_passed_over() {
                return Ok(());
            }
            opened.positions(runs, &mut taken.positions);
            if taken.positions.is_empty() {
                return Ok(());
            }
            if !opened.is_complete {
                groups.load(&read, &mut opened.group, columns).await?;
                opened.is_complete = true;
            }
            opened.count(uses, columns, taken.positions.len());
            check_rows(groups, &opened.group, &read, runs, &taken.positions)?;
        }
        let Some(opened) = &self.opened else {
            return Ok(());
        };
        let end = (taken.given + self.part_rows).min(taken.positions.len());
        let positions = &taken.positions[taken.given..end];
        taken.given = end;
        let read = taken.read_of(taken.runs.runs[taken.next - 1])?;
        let malformed = || groups.malformed(&read);
        let reader = opened.group.reader().ok_or_else(malformed)?;
        let rows = GroupRows {
            reader: &reader,
            positions,
            partition: taken.partition,
            malformed: &malformed,
        };
        if opened.by_tuples || !sink.group(&rows)? {
            let mut tuple = Vec::new();
            for position in positions {
                let put = reader.tuple(usize::from(*position), &mut tuple);
                put.ok_or_else(malformed)?;
                sink.tuple(rows.row(*position), &tuple);
            }
        }
        Ok(())
    }
}

impl Taken {
    /// The read of a run's first row.
    fn read_of(&self, run: Run) -> Result<PlannedRead> {
        let blocks = &self.runs.blocks;
        let place = blocks.binary_search_by_key(&run.block, |info| info.id);
        let info = place.ok().and_then(|place| blocks.get(place));
        let info = info.ok_or_else(|| Error::Corrupt("a run of no block".to_owned()))?;
        Ok(PlannedRead {
            row: RowId::new(self.partition, run.row),
            address: ColdAddress {
                block: run.block,
                slot: run.slot,
                extent: COLUMNS_EXTENT,
            },
            storage: info.table,
            tablespace: info.tablespace,
            block_offset: info.offset,
            block_bytes: info.device_bytes,
            compressed: false,
            whole: false,
        })
    }
}

/// Opens a group as far as it takes to see which of its rows may have what is asked.
async fn open(
    groups: &RowGroups,
    table: &Table,
    read: &PlannedRead,
    columns: Option<&[usize]>,
    tests: &[ColumnTest],
    uses: &TableUse,
) -> Result<Opened> {
    let mut group = match tests {
        [] => groups.group(read, columns).await?,
        _ => groups.opened(read).await?,
    };
    let directory = &group.directory;
    let version = directory.layout_version();
    let own = version.and_then(|version| table.layouts.columns_of(version));
    let by_tuples = own != Some(directory.columns());
    let (mut matching, mut asked) = (None, Vec::new());
    if !tests.is_empty() && !by_tuples {
        matching = Some(Vec::new());
        if directory.may_have(tests) {
            asked.extend(tests.iter().map(|test| test.column));
            asked.sort_unstable();
            asked.dedup();
            groups.load(read, &mut group, Some(&asked)).await?;
            let malformed = || groups.malformed(read);
            let reader = group.reader().ok_or_else(malformed)?;
            matching = reader.matching(tests).ok_or_else(malformed)?;
            uses.count_chunks(&group.directory, &asked);
            uses.count_values(&group.directory, &asked, group.directory.rows());
        }
    }
    Ok(Opened {
        group,
        matching,
        is_complete: tests.is_empty(),
        asked,
        is_counted: false,
        by_tuples,
    })
}

impl Opened {
    /// Whether no row has what is asked.
    fn is_passed_over(&self) -> bool {
        self.matching.as_ref().is_some_and(Vec::is_empty)
    }

    /// Counts that so many rows of these columns are given out; of all, where nothing is said.
    fn count(&mut self, uses: &TableUse, columns: Option<&[usize]>, rows: usize) {
        let directory = &self.group.directory;
        let mut given: Vec<usize> = match columns {
            Some(columns) => columns.into(),
            None => (0..directory.columns()).collect(),
        };
        uses.count_values(directory, &given, rows);
        if !std::mem::replace(&mut self.is_counted, true) {
            given.retain(|column| !self.asked.contains(column));
            uses.count_chunks(directory, &given);
        }
    }

    /// Writes the positions of these runs that may have what is asked.
    fn positions(&self, runs: &[Run], out: &mut Vec<u16>) {
        for run in runs {
            let first = u32::from(run.slot);
            let end = first + run.count;
            match &self.matching {
                None => out.extend((first..end).map(|slot| slot as u16)),
                Some(matching) => {
                    let from = matching.partition_point(|slot| u32::from(*slot) < first);
                    let rest = matching.get(from..).unwrap_or(&[]);
                    let count = rest.partition_point(|slot| u32::from(*slot) < end);
                    out.extend_from_slice(&rest[..count]);
                }
            }
        }
    }
}

/// Checks that the rows at these positions are those that the directory has there.
fn check_rows(
    groups: &RowGroups,
    group: &Group,
    read: &PlannedRead,
    runs: &[Run],
    positions: &[u16],
) -> Result<()> {
    let reader = group.reader().ok_or_else(|| groups.malformed(read))?;
    let mut runs = runs.iter();
    let mut run = runs.next();
    for position in positions {
        while let Some(here) = run
            && u32::from(here.slot) + here.count <= u32::from(*position)
        {
            run = runs.next();
        }
        let expected = run.map(|run| run.row + u32::from(*position - run.slot));
        let found = reader.row(usize::from(*position));
        if found != expected {
            let (found, expected) = (found.unwrap_or_default(), expected.unwrap_or_default());
            return Err(groups.other_row(read, *position, found, expected));
        }
    }
    Ok(())
}

impl std::fmt::Debug for GroupScan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GroupScan")
            .field("columns", &self.columns)
            .field("tests", &self.tests)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}
