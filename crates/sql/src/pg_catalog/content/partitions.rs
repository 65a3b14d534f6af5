//! Declared partitions: `pg_partitioned_table` and `pg_inherits`.

use thermocline_engine::{Catalog, PartitionStrategy, Table};

use super::Filler;
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::oids::{check_oid, index_constraint_oid};
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

/// The constraint of a partition's table that this one of the partition stands for: its number, 0
/// for a check, which is not linked. `None`: it is the partition's own.
pub(super) fn inherited(catalog: &Catalog, table: &Table, constraint: u32) -> Option<u32> {
    let parent = catalog.table(table.partition_of?)?;
    if let Some(key) = table.foreign_keys.iter().find(|key| key.oid == constraint) {
        let mut above = parent.foreign_keys.iter();
        let above = above.find(|above| above.table == key.table && above.columns == key.columns);
        return above.map(|above| above.oid);
    }
    let mut checks = table.checks.iter().enumerate();
    if let Some((_, check)) = checks.find(|(at, _)| check_oid(table, *at) == constraint) {
        let mut above = parent.checks.iter();
        return above.any(|above| above.name == check.name).then_some(0);
    }
    let all = parent.partitioned.iter().flat_map(|by| &by.partitions);
    let mut links = all.flat_map(|partition| &partition.indexes);
    let numbered = |table: &Table, oid: u32| {
        let index = table.indexes.iter().find(|index| index.oid == oid);
        index
            .filter(|index| index.constraint)
            .map(index_constraint_oid)
    };
    let link = links.find(|(_, own)| numbered(table, *own) == Some(constraint));
    numbered(parent, link?.0)
}
