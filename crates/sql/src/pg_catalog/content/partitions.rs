//! Declared partitions: `pg_partitioned_table` and `pg_inherits`.

use thermocline_engine::PartitionStrategy;

use super::Filler;
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::relations::Relation;
use crate::pg_catalog::session::SystemSession;

pub(super) fn partitioned(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let columns = [
        "partrelid",
        "partstrat",
        "partnatts",
        "partdefid",
        "partattrs",
    ];
    let filler = Filler::new(relation, &columns);
    let tables = session.catalog.tables.values();
    let all = tables.filter_map(|table| Some((table, table.partitioned.as_ref()?)));
    let row = all.map(|(table, by)| {
        let strategy = match by.strategy {
            PartitionStrategy::Range => "r",
            PartitionStrategy::List => "l",
            PartitionStrategy::Hash => "h",
        };
        let mut partitions = by.partitions.iter();
        let default = partitions.find(|of| of.bound == thermocline_engine::PartitionBound::Default);
        let attributes = by
            .columns
            .iter()
            .map(|column| Datum::Int(*column as i64 + 1));
        filler.row([
            Datum::oid(table.oid),
            Datum::text(strategy),
            Datum::Int(by.columns.len() as i64),
            Datum::oid(default.map_or(0, |of| of.table)),
            Datum::array(attributes.collect::<Vec<_>>()),
        ])
    });
    row.collect()
}

pub(super) fn inherits(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(relation, &["inhrelid", "inhparent", "inhseqno"]);
    let row = |child: u32, parent: u32| {
        filler.row([Datum::oid(child), Datum::oid(parent), Datum::Int(1)])
    };
    let mut rows = Vec::new();
    for table in session.catalog.tables.values() {
        for partition in table.partitioned.iter().flat_map(|by| &by.partitions) {
            rows.push(row(partition.table, table.oid));
            let indexes = partition.indexes.iter();
            rows.extend(indexes.map(|(parent, own)| row(*own, *parent)));
        }
    }
    rows
}
