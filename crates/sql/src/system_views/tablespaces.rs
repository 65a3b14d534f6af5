//! The view `thermocline_tablespaces`.

use thermocline_engine::tablespace::Measured;
use thermocline_engine::{Database, TablespaceReport};

use super::int;
use crate::pg_catalog::Datum;

/// Its rows: the data directory first.
pub(super) fn tablespaces(db: &Database) -> Vec<Vec<Datum>> {
    let row = |report: TablespaceReport| {
        let name = match report.oid {
            0 => "pg_default",
            _ => report.name.as_str(),
        };
        let state = match (&report.missing, report.refuses) {
            (Some(why), _) => Datum::text(why),
            (None, true) => Datum::text("refusing"),
            (None, false) => Datum::text("there"),
        };
        let measured = |figure: fn(Measured) -> f64| {
            let figure = report.measured.map(figure);
            figure.map_or(Datum::Null, Datum::Float)
        };
        vec![
            Datum::text(name),
            Datum::oid(match report.oid {
                0 => crate::pg_catalog::DEFAULT_TABLESPACE,
                oid => oid,
            }),
            Datum::text(&report.directory),
            state,
            Datum::text(report.device.map_or("", |kind| kind.name())),
            Datum::Bool(report.emulated.is_some()),
            measured(|measured| measured.read_us),
            measured(|measured| measured.reads_per_second),
            measured(|measured| measured.write_mb_s),
            measured(|measured| measured.sync_us),
            report.capacity.map_or(Datum::Null, int),
            int(report.tables),
            int(report.blocks),
            int(report.block_bytes),
            int(report.leaving_blocks),
            int(report.coming_blocks),
            int(report.file_bytes),
            int(report.free_bytes),
        ]
    };
    db.tablespace_reports().into_iter().map(row).collect()
}
