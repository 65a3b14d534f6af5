//! Tables of a workload, written once: as SQL for any server, and as a definition for the
//! engine in this process.
//!
//! Columns are a text as in `CREATE TABLE`: `"w_id integer, w_tax numeric(4,4)"`, with a comma
//! and a blank between two. A column is NOT NULL unless its text ends with ` null`.

use std::sync::Arc;

use thermocline_engine::catalog::{ColumnDef, IndexDef, IndexKind, TableDef};
use thermocline_engine::ddl::Change;
use thermocline_engine::{Database, Isolation, RunOptions, block_on};
use thermocline_values::types::DataType;

use crate::Result;

/// A table of a workload.
#[derive(Debug, Clone, Copy)]
pub struct TableSpec {
    /// Its name, in `public`.
    pub name: &'static str,
    /// Its columns.
    pub columns: &'static str,
    /// The columns of the primary key; none: there is no key.
    pub primary: &'static [&'static str],
    /// The columns whose values choose a row's partition (in Thermocline).
    pub partition: &'static [&'static str],
    /// The primary key is ordered (in Thermocline).
    pub ordered: bool,
    /// Other ordered indexes: name and columns.
    pub indexes: &'static [(&'static str, &'static [&'static str])],
    /// Cold rows may leave memory (in Thermocline).
    pub evictable: bool,
}

/// A column, read from its text.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Name.
    pub name: String,
    /// Type.
    pub data_type: DataType,
    /// NULL is refused.
    pub not_null: bool,
}

impl TableSpec {
    /// A table with an unordered primary key, whose rows may leave memory.
    pub const fn new(
        name: &'static str,
        columns: &'static str,
        primary: &'static [&'static str],
        partition: &'static [&'static str],
    ) -> Self {
        TableSpec {
            name,
            columns,
            primary,
            partition,
            ordered: false,
            indexes: &[],
            evictable: true,
        }
    }

    /// The columns, read.
    pub fn parsed_columns(&self) -> Result<Vec<Column>> {
        self.columns.split(", ").map(column).collect()
    }

    /// The places of named columns.
    fn places(&self, columns: &[Column], names: &[&str]) -> Result<Vec<usize>> {
        let place = |name: &&str| {
            let found = columns.iter().position(|column| column.name == **name);
            found.ok_or_else(|| format!("{} has no column {name}", self.name).into())
        };
        names.iter().map(place).collect()
    }

    /// The statements that make it; `ours` adds what only Thermocline has.
    pub fn sql(&self, ours: bool) -> String {
        let columns: Vec<String> = (self.columns.split(", "))
            .map(|column| match column.strip_suffix(" null") {
                Some(nullable) => nullable.to_owned(),
                None => format!("{column} NOT NULL"),
            })
            .collect();
        let mut sql = format!("CREATE TABLE {} ({}", self.name, columns.join(", "));
        if !self.primary.is_empty() {
            sql += &format!(", PRIMARY KEY ({})", self.primary.join(", "));
        }
        sql += ")";
        if ours {
            let mut with = vec![format!("evictable = {}", self.evictable)];
            if !self.partition.is_empty() && self.partition != self.primary {
                with.push(format!("partition_key = '{}'", self.partition.join(", ")));
            }
            if self.ordered && !self.primary.is_empty() {
                with.push("primary_key = btree".to_owned());
            }
            sql += &format!(" WITH ({})", with.join(", "));
        }
        for (name, columns) in self.indexes {
            let columns = columns.join(", ");
            sql += &format!(";\nCREATE INDEX {name} ON {} ({columns})", self.name);
        }
        sql
    }

    fn definition(&self, db: &Database) -> Result<TableDef> {
        let columns = self.parsed_columns()?;
        let mut indexes = Vec::new();
        if !self.primary.is_empty() {
            indexes.push(IndexDef {
                oid: db.allocate_oid(),
                name: format!("{}_pkey", self.name),
                columns: self.places(&columns, self.primary)?,
                unique: true,
                primary: true,
                constraint: true,
                kind: match self.ordered {
                    true => IndexKind::BTree,
                    false => IndexKind::Hash,
                },
                include: Vec::new(),
                nulls_equal: false,
                order: Vec::new(),
            });
        }
        for (name, names) in self.indexes {
            indexes.push(IndexDef {
                oid: db.allocate_oid(),
                name: (*name).into(),
                columns: self.places(&columns, names)?,
                unique: false,
                primary: false,
                constraint: false,
                kind: IndexKind::BTree,
                include: Vec::new(),
                nulls_equal: false,
                order: Vec::new(),
            });
        }
        let partition_key = self.places(&columns, self.partition)?;
        let columns = (columns.into_iter())
            .map(|column| ColumnDef {
                not_null: column.not_null,
                ..ColumnDef::new(column.name, column.data_type)
            })
            .collect();
        Ok(TableDef {
            indexes,
            partition_key,
            evictable: self.evictable,
            ..TableDef::new(db.allocate_oid(), self.name, columns)
        })
    }

    /// Makes it in the engine.
    pub fn create(&self, db: &Arc<Database>) -> Result<()> {
        let (definition, options) = (self.definition(db)?, RunOptions::new());
        block_on(async {
            let mut txn = db.begin(Isolation::ReadCommitted, false);
            db.ddl(&mut txn, &options, Change::CreateTable(definition))
                .await?;
            db.commit(txn, &options).await
        })?;
        Ok(())
    }
}

fn column(text: &str) -> Result<Column> {
    let (text, not_null) = match text.strip_suffix(" null") {
        Some(text) => (text, false),
        None => (text, true),
    };
    let wrong = || format!("not a column of a workload's table: \"{text}\"");
    let (name, data_type) = text.split_once(' ').ok_or_else(wrong)?;
    let (base, arguments) = match data_type.split_once('(') {
        Some((base, rest)) => (base, rest.strip_suffix(')').ok_or_else(wrong)?),
        None => (data_type, ""),
    };
    let numbers: Vec<i64> = (arguments.split(',').filter(|number| !number.is_empty()))
        .map(|number| number.parse().map_err(|_| wrong()))
        .collect::<std::result::Result<_, _>>()?;
    let data_type = match (base, numbers.as_slice()) {
        ("smallint", []) => DataType::SmallInt,
        ("integer", []) => DataType::Integer,
        ("bigint", []) => DataType::BigInt,
        ("boolean", []) => DataType::Boolean,
        ("text", []) => DataType::Text,
        ("bytea", []) => DataType::Bytea,
        ("timestamp", []) => DataType::Timestamp,
        ("varchar", [length]) => DataType::Varchar(u32::try_from(*length)?),
        ("char", [length]) => DataType::Char(u32::try_from(*length)?),
        ("numeric", [precision, scale]) => {
            DataType::numeric(*precision, *scale).map_err(|error| error.to_string())?
        }
        _ => return Err(wrong().into()),
    };
    Ok(Column {
        name: name.to_owned(),
        data_type,
        not_null,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: TableSpec = TableSpec {
        name: "orders",
        columns: "o_w_id integer, o_id integer, o_sum numeric(12,2), o_note varchar(20) null",
        primary: &["o_w_id", "o_id"],
        partition: &["o_w_id"],
        ordered: true,
        indexes: &[("orders_sum", &["o_w_id", "o_sum"])],
        evictable: false,
    };

    #[test]
    fn one_text_is_sql_for_any_server_and_more_for_ours() {
        assert_eq!(
            TABLE.sql(false),
            "CREATE TABLE orders (o_w_id integer NOT NULL, o_id integer NOT NULL, \
             o_sum numeric(12,2) NOT NULL, o_note varchar(20), PRIMARY KEY (o_w_id, o_id));\n\
             CREATE INDEX orders_sum ON orders (o_w_id, o_sum)"
        );
        let ours = TABLE.sql(true);
        assert!(ours.contains(
            "WITH (evictable = false, partition_key = 'o_w_id', primary_key = btree);\n"
        ));
    }

    #[test]
    fn columns_are_read_and_what_is_none_is_refused() {
        let columns = TABLE.parsed_columns().expect("it can be read");
        assert_eq!(columns.len(), 4);
        assert_eq!(columns[2].data_type, DataType::numeric(12, 2).expect("one"));
        assert!(columns[2].not_null && !columns[3].not_null);
        for wrong in ["name", "name money", "name varchar", "name numeric(12,2"] {
            assert!(column(wrong).is_err(), "{wrong}");
        }
    }
}
