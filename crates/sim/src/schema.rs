//! The tables of a round: what they look like, and how their rows become tuples.

use std::collections::BTreeMap;

use thermocline_engine::catalog::AccessMethod;
use thermocline_engine::{
    ColumnDef, Database, IndexDef, IndexKind, TUPLE_BYTES_MAX, Table, TableDef,
};
use thermocline_values::types::DataType;
use thermocline_values::value::{Value, ValueRef};

use crate::chance::Chance;

/// Tables a round may have at most, `t0` and so on.
pub const SLOTS: usize = 3;

/// Columns that a table is made with.
const COLUMNS: usize = 4;
/// Columns that a table may have beside those.
pub const ADDED_MAX: usize = 5;

/// Bytes of large values: around spans of the arena, a group of the log and the largest row.
const LARGE_BYTES: [usize; 8] = [
    16_384,
    32_768,
    65_700,
    131_100,
    262_200,
    524_300,
    900_000,
    TUPLE_BYTES_MAX - 100,
];

/// A row of any table: `(id bigint primary key, a integer, u bigint, v text)`, and integers
/// that were added later.
#[derive(Clone, PartialEq, Eq)]
pub struct Row {
    pub a: Option<i32>,
    pub u: Option<i64>,
    pub v: String,
    /// Of columns that were added after the row was written it has none: they read as what
    /// the table says is missing.
    pub added: Vec<Option<i32>>,
}

impl Row {
    /// Whether this, a row of the model, is what a table with these added columns has as `found`.
    pub fn reads_as(&self, found: &Row, missing: &[Option<i32>]) -> bool {
        let later = missing.get(self.added.len()..).unwrap_or_default();
        let added = self.added.iter().chain(later);
        (self.a, self.u, &self.v) == (found.a, found.u, &found.v) && added.eq(&found.added)
    }
}

impl std::fmt::Debug for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let begin = &self.v[..self.v.len().min(8)];
        let (a, u, length) = (self.a, self.u, self.v.len());
        write!(f, "({a:?}, {u:?}, {begin}… {length}, {:?})", self.added)
    }
}

/// A secondary index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexShape {
    pub name: String,
    /// The column's position: 1 is `a`, 2 is `u`.
    pub column: usize,
    pub unique: bool,
    pub hash: bool,
}

/// A table as it was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    pub primary_hash: bool,
    /// Rows are spread over the partitions instead of going by their key.
    pub spread: bool,
    pub indexes: Vec<IndexShape>,
    /// Values are about so long, in bytes.
    pub value_bytes: usize,
    /// Some values are much longer.
    pub large: bool,
    /// Columns added, and what rows from before have there.
    pub added: Vec<Option<i32>>,
    /// It is a column table.
    pub columns: bool,
}

impl Shape {
    /// A random table.
    pub fn random(chance: &mut Chance, slot: usize) -> Shape {
        let spread = chance.percent(15);
        let mut shape = Shape {
            // A unique hash index finds a key only where its hash leads.
            primary_hash: !spread && chance.percent(55),
            spread,
            indexes: Vec::new(),
            value_bytes: chance.pick(&[8, 60, 300, 300, 1500, 6000, 14_000]),
            large: false,
            added: Vec::new(),
            columns: chance.percent(35),
        };
        if chance.percent(40) {
            shape
                .indexes
                .push(IndexShape::random(chance, slot, 1, false));
        }
        if chance.percent(25) {
            shape
                .indexes
                .push(IndexShape::random(chance, slot, 2, true));
        }
        shape
    }

    /// Whether no two rows may have the same `u`.
    pub fn unique_u(&self) -> bool {
        self.indexes.iter().any(|i| i.unique && i.column == 2)
    }
}

impl IndexShape {
    /// A random index over a column.
    pub fn random(chance: &mut Chance, slot: usize, column: usize, unique: bool) -> IndexShape {
        IndexShape {
            name: format!("t{slot}_i{}", chance.below(1000)),
            column,
            unique,
            hash: !unique && chance.percent(30),
        }
    }

    /// Its definition.
    pub fn def(&self, db: &Database) -> IndexDef {
        IndexDef {
            oid: db.allocate_oid(),
            name: self.name.clone(),
            columns: vec![self.column],
            unique: self.unique,
            primary: false,
            constraint: false,
            kind: kind(self.hash),
            include: Vec::new(),
            nulls_equal: false,
            order: Vec::new(),
        }
    }

    /// Whether this definition is it.
    pub fn is(&self, def: &IndexDef) -> bool {
        def.name == self.name
            && def.columns == [self.column]
            && def.unique == self.unique
            && def.kind == kind(self.hash)
    }
}

fn kind(hash: bool) -> IndexKind {
    match hash {
        true => IndexKind::Hash,
        false => IndexKind::BTree,
    }
}

/// The table's name.
pub fn name(slot: usize) -> String {
    format!("t{slot}")
}

fn column(name: &str, data_type: DataType, not_null: bool, missing: Value) -> ColumnDef {
    ColumnDef {
        not_null,
        missing,
        ..ColumnDef::new(name, data_type)
    }
}

fn integer(value: Option<i32>) -> Value {
    value.map_or(Value::Null, Value::Integer)
}

/// A column that is added.
pub fn added_column(name: &str, missing: Option<i32>) -> ColumnDef {
    column(name, DataType::Integer, false, integer(missing))
}

/// What a definition says of its added columns.
pub fn missing_of(def: &TableDef) -> Vec<Option<i32>> {
    let added = def.columns.iter().skip(COLUMNS);
    let missing = added.map(|column| match &column.missing {
        Value::Integer(value) => Some(*value),
        _ => None,
    });
    missing.collect()
}

/// The definition of a table, which has these options.
pub fn table_def(
    db: &Database,
    slot: usize,
    shape: &Shape,
    options: BTreeMap<String, String>,
) -> TableDef {
    let column = |name, data_type, not_null| column(name, data_type, not_null, Value::Null);
    let mut indexes = vec![IndexDef {
        oid: db.allocate_oid(),
        name: format!("t{slot}_pkey"),
        columns: vec![0],
        unique: true,
        primary: true,
        constraint: true,
        kind: kind(shape.primary_hash),
        include: Vec::new(),
        nulls_equal: false,
        order: Vec::new(),
    }];
    indexes.extend(shape.indexes.iter().map(|index| index.def(db)));
    TableDef {
        indexes,
        partition_key: if shape.spread { vec![] } else { vec![0] },
        options,
        access_method: match shape.columns {
            true => AccessMethod::Columns,
            false => AccessMethod::Memory,
        },
        ..TableDef::new(
            db.allocate_oid(),
            name(slot),
            vec![
                column("id", DataType::BigInt, true),
                column("a", DataType::Integer, false),
                column("u", DataType::BigInt, false),
                column("v", DataType::Text, false),
            ],
        )
    }
}

/// A row's tuple.
pub fn encode(table: &Table, id: i64, row: &Row) -> Vec<u8> {
    let mut tuple = Vec::new();
    let values = values_of_row(table, id, row);
    let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
    table.encode_tuple(&values, &mut tuple);
    tuple
}

/// A tuple's row; `None` when it is no tuple of ours.
pub fn decode(table: &Table, tuple: &[u8]) -> Option<(i64, Row)> {
    let ValueRef::BigInt(id) = table.value(tuple, 0) else {
        return None;
    };
    let a = match table.value(tuple, 1) {
        ValueRef::Null => None,
        ValueRef::Integer(a) => Some(a),
        _ => return None,
    };
    let u = match table.value(tuple, 2) {
        ValueRef::Null => None,
        ValueRef::BigInt(u) => Some(u),
        _ => return None,
    };
    let ValueRef::Text(v) = table.value(tuple, 3) else {
        return None;
    };
    let added = (COLUMNS..table.def.columns.len()).map(|at| match table.value(tuple, at) {
        ValueRef::Null => Some(None),
        ValueRef::Integer(value) => Some(Some(value)),
        _ => None,
    });
    let (v, added) = (v.into(), added.collect::<Option<_>>()?);
    Some((id, Row { a, u, v, added }))
}

/// A row's columns, as a table has them by now.
pub fn values_of_row(table: &Table, id: i64, row: &Row) -> Vec<Value> {
    let mut values = vec![
        Value::BigInt(id),
        integer(row.a),
        row.u.map_or(Value::Null, Value::BigInt),
        Value::Text(row.v.clone()),
    ];
    values.extend(row.added.iter().map(|value| integer(*value)));
    let later = table.def.columns.iter().skip(values.len());
    values.extend(later.map(|column| column.missing.clone()));
    values
}

/// The row in the columns that a procedure read; `None` when it is no row of ours.
pub fn row_of_values(values: &[Value]) -> Option<Row> {
    let [Value::BigInt(_), a, u, Value::Text(v), added @ ..] = values else {
        return None;
    };
    let a = match a {
        Value::Null => None,
        Value::Integer(a) => Some(*a),
        _ => return None,
    };
    let u = match u {
        Value::Null => None,
        Value::BigInt(u) => Some(*u),
        _ => return None,
    };
    let added = added.iter().map(|value| match value {
        Value::Null => Some(None),
        Value::Integer(value) => Some(Some(*value)),
        _ => None,
    });
    let (v, added) = (v.clone(), added.collect::<Option<_>>()?);
    Some(Row { a, u, v, added })
}

/// The primary key of a row.
pub fn key(table: &Table, id: i64) -> Vec<u8> {
    let mut key = Vec::new();
    table.encode_index_key(0, &[ValueRef::BigInt(id)], &mut key);
    key
}

/// A random row that is large.
pub fn large_row(chance: &mut Chance, shape: &Shape, ids: usize) -> Row {
    let bytes = chance.pick(&LARGE_BYTES) - chance.below(300);
    row_of(chance, shape, ids, bytes)
}

/// A random row. Each value tells itself apart in every few bytes, so that no sector of
/// one passes for a sector of another.
pub fn random_row(chance: &mut Chance, shape: &Shape, ids: usize) -> Row {
    let bytes = match shape.large && chance.percent(12) {
        true => chance.pick(&LARGE_BYTES) - chance.below(300),
        false => shape.value_bytes / 2 + chance.below(shape.value_bytes),
    };
    row_of(chance, shape, ids, bytes)
}

/// A random row whose text has so many bytes.
fn row_of(chance: &mut Chance, shape: &Shape, ids: usize, bytes: usize) -> Row {
    let stamp = format!("{:016x}.", chance.next());
    let mut v = stamp.repeat(bytes / stamp.len() + 1);
    v.truncate(bytes);
    Row {
        a: (!chance.percent(10)).then(|| chance.below(20) as i32),
        u: (!chance.percent(20)).then(|| chance.below(ids * 4) as i64),
        v,
        added: (shape.added.iter())
            .map(|_| (!chance.percent(30)).then(|| chance.below(1000) as i32))
            .collect(),
    }
}
