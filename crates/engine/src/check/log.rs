//! The log from where a restart needs it on: each record's checksum and place
//! in the stream, and that what it says can be read.

use std::sync::Arc;

use thermocline_device::{Device, SystemClock};
use thermocline_storage::log::{self, LogError, LogOptions};

use super::Check;
use crate::catalog::Table;
use crate::catalog::storages::{TablesByStorage, put_in};
use crate::format::command::Command;
use crate::format::definitions::{LoggedCatalog, decode_catalog, decode_table};
use crate::format::manifest::Manifest;
use crate::format::record::{RecordKind, RowChange, changes, parse_commit_body, parse_record};
use crate::ground::error::{Error, Result};

/// Records between two words of progress.
const RECORDS_A_WORD: u64 = 1024;

/// The names of the log's segments, in order.
pub(super) fn segments(device: &dyn Device) -> Result<Vec<String>> {
    let files = device
        .list()
        .map_err(|e| Error::io(e, "listing the data directory"))?;
    Ok(files.into_iter().filter(|f| log::is_segment(f)).collect())
}

impl Check<'_> {
    pub(super) fn check_log(
        &mut self,
        manifest: &Manifest,
        database: u128,
        mut tables: TablesByStorage,
    ) -> Result<()> {
        let start = Some(manifest.log_start).filter(|lsn| *lsn > 0);
        let options = LogOptions {
            reaches: manifest.log_end,
            ..LogOptions::new(database, Arc::new(SystemClock::default()))
        };
        let mut tail = match log::read_tail(self.device, &options, start) {
            Ok(tail) => tail,
            Err(error) => return self.found_in_log(error),
        };
        self.report.log_end = tail.end();
        let mut bytes = 0;
        loop {
            let record = match tail.next() {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(error) => return self.found_in_log(error),
            };
            self.report.log_records += 1;
            bytes += record.end - record.start;
            let said = check_record(record.payload, record.end, manifest, &mut tables);
            if let Err(error) = said {
                let what = format!("record at LSN {}: {error}", record.start);
                self.found("log", None, None, what);
            }
            if self.report.log_records.is_multiple_of(RECORDS_A_WORD) {
                self.advance(std::mem::take(&mut bytes));
            }
        }
        self.advance(bytes);
        Ok(())
    }

    fn found_in_log(&mut self, error: LogError) -> Result<()> {
        match error {
            LogError::Corrupt { file, offset, what } => {
                self.found(&file, Some(offset), None, what.to_owned());
            }
            LogError::EndsEarly { ref file, .. } => {
                self.found(&file.clone(), None, None, error.to_string());
            }
            LogError::Missing { .. } => self.found("log", None, None, error.to_string()),
            LogError::Io { doing, source } => {
                return self.found_in("log", None, Error::io(source, doing));
            }
        }
        Ok(())
    }
}

/// Reads a record as a restart would; definitions in it go to `tables`.
fn check_record(
    payload: &[u8],
    lsn: u64,
    manifest: &Manifest,
    tables: &mut TablesByStorage,
) -> Result<()> {
    let partitions = manifest.partitions.len() as u16;
    let (kind, _, body) = parse_record(payload)?;
    let (row_changes, catalog) = match kind {
        RecordKind::Commit => parse_commit_body(body)?,
        RecordKind::Provisional => (body, &[][..]),
        RecordKind::Abort | RecordKind::Draft | RecordKind::Sequence => (&[][..], &[][..]),
        RecordKind::Command => {
            let command = Command::parse(body)?;
            if command.partition >= partitions {
                return Err(Error::Corrupt(format!(
                    "a call of {} names partition {}",
                    command.name, command.partition
                )));
            }
            (&[][..], &[][..])
        }
    };
    for change in changes(row_changes) {
        let change = change?;
        if change.partition() >= partitions {
            let partition = change.partition();
            return Err(Error::Corrupt(format!("it names partition {partition}")));
        }
        if let (RowChange::Put { row, tuple, .. }, Some(table)) =
            (&change, tables.get(&change.storage()))
            && lsn > manifest.partitions[usize::from(row.partition())].cut
            && !table.layouts.validate(tuple)
        {
            return Err(Error::Corrupt(format!(
                "row {row} holds no tuple of table {}",
                table.def.name
            )));
        }
    }
    if lsn <= manifest.catalog_lsn {
        return Ok(());
    }
    if !catalog.is_empty() {
        let defined = match decode_catalog(catalog)? {
            LoggedCatalog::Whole(image) => image.tables,
            LoggedCatalog::Change(change) => change.tables().to_vec(),
        };
        for def in defined {
            put_in(tables, &Arc::new(Table::new(def, partitions)));
        }
    }
    if kind == RecordKind::Draft {
        let def = decode_table(body)?;
        put_in(tables, &Arc::new(Table::new(def, partitions)));
    }
    Ok(())
}
