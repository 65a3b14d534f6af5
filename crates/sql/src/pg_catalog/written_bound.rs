//! Keys and bounds of declared partitions as PostgreSQL writes them.

use thermocline_engine::{Catalog, PartitionBound, PartitionDef, PartitionedBy, RangeEnd, Table};
use thermocline_values::types::DataType;
use thermocline_values::value::Value;

use super::quote_ident;
use crate::styles::Styles;

/// `RANGE (a, b)`
pub(crate) fn key(table: &Table, by: &PartitionedBy) -> String {
    let columns = by
        .columns
        .iter()
        .map(|column| quote_ident(&table.columns[*column].name));
    let columns: Vec<String> = columns.map(|name| name.to_string()).collect();
    format!("{} ({})", by.strategy.name(), columns.join(", "))
}

/// `FOR VALUES FROM (1) TO (10)`
fn bound(parent: &Table, by: &PartitionedBy, bound: &PartitionBound) -> String {
    match bound {
        PartitionBound::Default => "DEFAULT".to_owned(),
        PartitionBound::Hash { modulus, remainder } => {
            format!("FOR VALUES WITH (modulus {modulus}, remainder {remainder})")
        }
        PartitionBound::List(values) => {
            let data_type = &parent.columns[by.columns[0]].data_type;
            let texts: Vec<String> = values
                .iter()
                .map(|value| literal(value, data_type))
                .collect();
            format!("FOR VALUES IN ({})", texts.join(", "))
        }
        PartitionBound::Range { from, to } => {
            format!(
                "FOR VALUES FROM ({}) TO ({})",
                ends(parent, from),
                ends(parent, to)
            )
        }
    }
}

/// The bound of a partition.
pub(crate) fn of_table(catalog: &Catalog, table: &Table) -> Option<String> {
    let (parent, by, partition) = within(catalog, table)?;
    Some(bound(parent, by, &partition.bound))
}

/// What the rows of a partition satisfy, by its bound and those of the tables that it is below.
pub(crate) fn constraint_of(catalog: &Catalog, table: &Table) -> Option<String> {
    let (parent, by, partition) = within(catalog, table)?;
    let own = constraint(parent, by, &partition.bound)?;
    Some(match constraint_of(catalog, parent) {
        Some(above) => format!("({above} AND {own})"),
        None => own,
    })
}

/// The indexes of a table that are there because the table has them that it is a partition of.
pub(crate) fn linked_indexes(catalog: &Catalog, table: &Table) -> Vec<u32> {
    let partition = within(catalog, table).map(|(_, _, partition)| partition);
    let links = partition.iter().flat_map(|partition| &partition.indexes);
    links.map(|(_, own)| *own).collect()
}

/// A table or an index among partitions, and those that it is below, the nearest first; none of what
/// is no partition and has none.
pub(crate) fn ancestors(catalog: &Catalog, oid: u32) -> Vec<u32> {
    let mut found = vec![oid];
    let mut tables = catalog.tables.values();
    let has = |table: &&std::sync::Arc<Table>| table.indexes.iter().any(|index| index.oid == oid);
    let (mut of, mut index) = match catalog.table(oid) {
        Some(table) => (table, None),
        None => match tables.find(has) {
            Some(table) => (table, Some(oid)),
            None => return Vec::new(),
        },
    };
    if of.partitioned.is_none() && of.partition_of.is_none() {
        return Vec::new();
    }
    while let Some(parent) = of.partition_of.and_then(|oid| catalog.table(oid)) {
        if let Some(own) = index {
            let all = parent.partitioned.iter().flat_map(|by| &by.partitions);
            let mut links = all.flat_map(|partition| &partition.indexes);
            let Some((above, _)) = links.find(|(_, linked)| *linked == own) else {
                break;
            };
            index = Some(*above);
        }
        found.push(index.unwrap_or(parent.oid));
        of = parent;
    }
    found
}

/// The table that a table is a partition of, and what that one says of it.
fn within<'c>(
    catalog: &'c Catalog,
    table: &Table,
) -> Option<(&'c Table, &'c PartitionedBy, &'c PartitionDef)> {
    let parent = catalog.table(table.partition_of?)?;
    let by = parent.partitioned.as_ref()?;
    let mut partitions = by.partitions.iter();
    let partition = partitions.find(|partition| partition.table == table.oid)?;
    Some((parent, by, partition))
}

/// What the rows of a partition satisfy: `((a IS NOT NULL) AND (a >= 1) AND (a < 10))`; none for
/// bounds that PostgreSQL has no such form for here.
fn constraint(parent: &Table, by: &PartitionedBy, bound: &PartitionBound) -> Option<String> {
    let named = |column: &usize| quote_ident(&parent.columns[*column].name);
    let typed = |column: usize, value: &Value| {
        let data_type = &parent.columns[column].data_type;
        match literal(value, data_type) {
            text if text.starts_with('\'') => format!("{text}::{data_type}"),
            text => text,
        }
    };
    let [column] = by.columns.as_slice() else {
        return None;
    };
    let name = named(column);
    match bound {
        PartitionBound::Range { from, to } => {
            let mut parts = vec![format!("({name} IS NOT NULL)")];
            let mut end = |sign: &str, end: Option<&RangeEnd>| {
                if let Some(RangeEnd::Value(value)) = end {
                    parts.push(format!("({name} {sign} {})", typed(*column, value)));
                }
            };
            end(">=", from.first());
            end("<", to.first());
            Some(match parts.as_slice() {
                [one] => one.clone(),
                all => format!("({})", all.join(" AND ")),
            })
        }
        PartitionBound::List(values) => {
            let has_null = values.contains(&Value::Null);
            let others = values.iter().filter(|value| **value != Value::Null);
            let others: Vec<String> = others.map(|value| typed(*column, value)).collect();
            let asked = match others.as_slice() {
                [] => return Some(format!("({name} IS NULL)")),
                [one] => format!("({name} = {one})"),
                all => format!("({name} = ANY (ARRAY[{}]))", all.join(", ")),
            };
            Some(match has_null {
                true => format!("(({name} IS NULL) OR {asked})"),
                false => format!("(({name} IS NOT NULL) AND {asked})"),
            })
        }
        PartitionBound::Hash { modulus, remainder } => Some(format!(
            "satisfies_hash_partition('{}'::oid, {modulus}, {remainder}, {name})",
            parent.oid
        )),
        PartitionBound::Default => None,
    }
}

/// `1, MAXVALUE`
pub(crate) fn ends(parent: &Table, ends: &[RangeEnd]) -> String {
    let by = parent.partitioned.as_ref();
    let columns = by.map_or(&[][..], |by| &by.columns);
    let texts = ends.iter().zip(columns).map(|(end, column)| match end {
        RangeEnd::Least => "MINVALUE".to_owned(),
        RangeEnd::Greatest => "MAXVALUE".to_owned(),
        RangeEnd::Value(value) => literal(value, &parent.columns[*column].data_type),
    });
    texts.collect::<Vec<_>>().join(", ")
}

fn literal(value: &Value, data_type: &DataType) -> String {
    if matches!(value, Value::Null) {
        return "NULL".to_owned();
    }
    let mut text = Vec::new();
    if Styles::plain_shared()
        .write(value.as_ref(), data_type, &mut text)
        .is_err()
    {
        return "NULL".to_owned();
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    let is_number = data_type.is_integer()
        || matches!(
            data_type,
            DataType::Numeric { .. } | DataType::Real | DataType::Double
        );
    let is_plain = |text: &str| {
        let mut bytes = text.bytes();
        bytes.all(|byte| byte.is_ascii_digit() || b"+-eE.".contains(&byte))
    };
    match value {
        Value::Boolean(true) => "true".to_owned(),
        Value::Boolean(false) => "false".to_owned(),
        _ if is_number && is_plain(&text) && !text.starts_with('-') => text,
        _ => format!("'{}'", text.replace('\'', "''")),
    }
}
