//! The tables of a round: what they look like, and how their rows become tuples.

use std::collections::BTreeMap;

use thermocline_engine::{ColumnDef, Database, IndexDef, IndexKind, Table, TableDef};
use thermocline_storage::types::DataType;
use thermocline_storage::value::{Value, ValueRef};

use crate::chance::Chance;

/// Tables a round may have at most, `t0` and so on.
pub const SLOTS: usize = 3;

/// A row of any table: `(id bigint primary key, a integer, u bigint, v text)`.
#[derive(Clone, PartialEq, Eq)]
pub struct Row {
    pub a: Option<i32>,
    pub u: Option<i64>,
    pub v: String,
}

impl std::fmt::Debug for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let begin = &self.v[..self.v.len().min(8)];
        write!(f, "({:?}, {:?}, {begin}… {})", self.a, self.u, self.v.len())
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

/// The definition of a table.
pub fn table_def(db: &Database, slot: usize, shape: &Shape) -> TableDef {
    let column = |name: &str, data_type, not_null| ColumnDef {
        name: name.into(),
        data_type,
        not_null,
        default: None,
        identity: None,
        sequence: None,
        missing: Value::Null,
        added_in: 0,
    };
    let mut indexes = vec![IndexDef {
        oid: db.allocate_oid(),
        name: format!("t{slot}_pkey"),
        columns: vec![0],
        unique: true,
        primary: true,
        constraint: true,
        kind: kind(shape.primary_hash),
    }];
    indexes.extend(shape.indexes.iter().map(|index| index.def(db)));
    TableDef {
        oid: db.allocate_oid(),
        storage: 0,
        schema: "public".into(),
        name: name(slot),
        columns: vec![
            column("id", DataType::BigInt, true),
            column("a", DataType::Integer, false),
            column("u", DataType::BigInt, false),
            column("v", DataType::Text, false),
        ],
        indexes,
        checks: Vec::new(),
        partition_key: if shape.spread { vec![] } else { vec![0] },
        evictable: true,
        options: BTreeMap::new(),
        fingerprinted: None,
        lost: Vec::new(),
    }
}

/// A row's tuple.
pub fn encode(table: &Table, id: i64, row: &Row) -> Vec<u8> {
    let mut tuple = Vec::new();
    let a = row.a.map_or(ValueRef::Null, ValueRef::Integer);
    let u = row.u.map_or(ValueRef::Null, ValueRef::BigInt);
    table.encode_tuple(
        &[ValueRef::BigInt(id), a, u, ValueRef::Text(&row.v)],
        &mut tuple,
    );
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
    Some((id, Row { a, u, v: v.into() }))
}

/// A row's columns, as a procedure writes them.
pub fn values_of_row(id: i64, row: &Row) -> Vec<Value> {
    vec![
        Value::BigInt(id),
        row.a.map_or(Value::Null, Value::Integer),
        row.u.map_or(Value::Null, Value::BigInt),
        Value::Text(row.v.clone()),
    ]
}

/// The row in the columns that a procedure read; `None` when it is no row of ours.
pub fn row_of_values(values: &[Value]) -> Option<Row> {
    let [Value::BigInt(_), a, u, Value::Text(v)] = values else {
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
    Some(Row { a, u, v: v.clone() })
}

/// The primary key of a row.
pub fn key(table: &Table, id: i64) -> Vec<u8> {
    let mut key = Vec::new();
    table.encode_index_key(0, &[ValueRef::BigInt(id)], &mut key);
    key
}

/// A random row. Each value tells itself apart in every few bytes, so that no sector of
/// one passes for a sector of another.
pub fn random_row(chance: &mut Chance, shape: &Shape, ids: usize) -> Row {
    let stamp = format!("{:016x}.", chance.next());
    let bytes = shape.value_bytes / 2 + chance.below(shape.value_bytes);
    let mut v = stamp.repeat(bytes / stamp.len() + 1);
    v.truncate(bytes);
    Row {
        a: (!chance.percent(10)).then(|| chance.below(20) as i32),
        u: (!chance.percent(20)).then(|| chance.below(ids * 4) as i64),
        v,
    }
}
