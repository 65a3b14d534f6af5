//! `thermocline_column_use`: how each column of a column table is used.

use thermocline_engine::{ColumnUseReport, Database};

use super::int;
use crate::pg_catalog::Datum;

/// Its rows.
pub(super) fn column_use(db: &Database) -> Vec<Vec<Datum>> {
    let row = |report: ColumnUseReport| {
        let used = report.used;
        vec![
            Datum::text(&report.schema),
            Datum::text(&report.table),
            Datum::oid(report.oid),
            Datum::text(&report.column),
            Datum::Bool(report.is_indexed),
            int(used.projections),
            int(used.conditions),
            int(used.chunks),
            int(used.chunk_values),
            int(used.chunk_bytes),
            int(used.single_values),
            int(used.device_reads),
            int(used.device_bytes),
        ]
    };
    db.column_use_reports().into_iter().map(row).collect()
}
