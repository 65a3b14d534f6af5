//! `thermocline_columns`: what each column of a column table takes, and how it is encoded.

use thermocline_engine::{ColumnReport, Database};

use super::int;
use crate::error::Result;
use crate::pg_catalog::Datum;

/// The rows of the view. Directories of row groups that are not in memory are read.
///
/// # Errors
/// The device's; XX001 where a directory is damaged.
pub(crate) fn columns(db: &Database) -> Result<Vec<Vec<Datum>>> {
    let row = |report: ColumnReport| {
        let encodings = report.encodings.iter();
        let encodings: Vec<String> = encodings
            .map(|(encoding, groups)| format!("{encoding} {groups}"))
            .collect();
        vec![
            Datum::text(&report.schema),
            Datum::text(&report.table),
            Datum::oid(report.oid),
            Datum::text(&report.column),
            int(report.main_rows),
            int(report.delta_rows),
            int(report.groups),
            int(report.nulls),
            int(report.device_bytes),
            int(report.memory_bytes),
            Datum::text(encodings.join(", ")),
            int(report.scanned.groups),
            int(report.scanned.skipped),
            Datum::text(report.state()),
            int(report.unload_priority.into()),
        ]
    };
    Ok(db.column_reports()?.into_iter().map(row).collect())
}
