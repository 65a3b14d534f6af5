//! `WITH (…)` and USING of CREATE TABLE: how rows are spread, whether they may
//! leave memory, what the primary key is made of.

use std::collections::BTreeMap;

use sqlparser::ast::{CreateTableOptions, Expr, SqlOption, Value, ValueWithSpan};
use thermocline_engine::IndexKind;
use thermocline_engine::catalog::AccessMethod;

use crate::error::{Result, SqlError};
use crate::parse::tokens::fold;

/// What `WITH (…)` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TableOptions {
    /// partition_key: the columns whose hash chooses the partition.
    pub(super) partition_key: Option<Vec<String>>,
    /// evictable: cold rows may leave memory.
    pub(super) evictable: bool,
    /// primary_key: what it is made of.
    pub(super) primary_key: IndexKind,
    /// What USING says.
    pub(super) access_method: AccessMethod,
    /// All of them as text, for `\d+`.
    pub(super) texts: BTreeMap<String, String>,
}

impl Default for TableOptions {
    fn default() -> Self {
        Self {
            partition_key: None,
            evictable: true,
            primary_key: IndexKind::BTree,
            access_method: AccessMethod::default(),
            texts: BTreeMap::new(),
        }
    }
}

/// Options of PostgreSQL's that mean nothing here.
const IGNORED: [&str; 5] = [
    "fillfactor",
    "parallel_workers",
    "toast_tuple_target",
    "oids",
    "user_catalog_table",
];

/// The access method that USING names.
pub(super) fn access_method(name: &str) -> Result<AccessMethod> {
    match name {
        "memory" | "heap" => Ok(AccessMethod::Memory),
        "columns" | "column" => Ok(AccessMethod::Columns),
        "cow" | "lsm" | "nvm" | "nvm_cow" | "nvm_lsm" => Err(SqlError::unsupported(format!(
            "access method \"{name}\" is not supported yet"
        ))
        .with_hint("Use memory, which is the default, or columns.")),
        _ => Err(SqlError::new(
            "42704",
            format!("access method \"{name}\" does not exist"),
        )),
    }
}

/// Reads the options of CREATE TABLE.
pub(super) fn table_options(options: &CreateTableOptions) -> Result<TableOptions> {
    match options {
        CreateTableOptions::None => Ok(TableOptions::default()),
        CreateTableOptions::With(options) => read(options),
        _ => Err(SqlError::syntax("table options are written WITH (…)")),
    }
}

/// Reads `name = value` pairs.
pub(super) fn read(options: &[SqlOption]) -> Result<TableOptions> {
    let mut read = TableOptions::default();
    for option in options {
        let (name, value) = match option {
            SqlOption::KeyValue { key, value } => (fold(key), value_text(value)?),
            SqlOption::Ident(key) => (fold(key), "true".to_owned()),
            other => return Err(unrecognized(&other.to_string())),
        };
        match name.as_str() {
            "partition_key" => {
                let columns = value
                    .split(',')
                    .map(|column| column.trim().to_owned())
                    .filter(|column| !column.is_empty())
                    .collect();
                read.partition_key = Some(columns);
            }
            "evictable" => read.evictable = boolean(&name, &value)?,
            "primary_key" => {
                read.primary_key = match value.as_str() {
                    "btree" => IndexKind::BTree,
                    "hash" => IndexKind::Hash,
                    _ => return Err(invalid(&name, &value).with_hint("Use btree or hash.")),
                };
            }
            _ if IGNORED.contains(&name.as_str()) || name.starts_with("autovacuum_") => {}
            _ => return Err(unrecognized(&name)),
        }
        read.texts.insert(name, value);
    }
    Ok(read)
}

fn boolean(name: &str, value: &str) -> Result<bool> {
    match value.to_lowercase().as_str() {
        "true" | "on" | "yes" | "1" => Ok(true),
        "false" | "off" | "no" | "0" => Ok(false),
        _ => Err(invalid(name, value)),
    }
}

/// The text of an option's value: a name, a string, a number, a list.
fn value_text(value: &Expr) -> Result<String> {
    match value {
        Expr::Identifier(ident) => Ok(fold(ident)),
        Expr::Nested(inner) => value_text(inner),
        Expr::Tuple(parts) => Ok(parts
            .iter()
            .map(value_text)
            .collect::<Result<Vec<_>>>()?
            .join(",")),
        Expr::Value(ValueWithSpan { value, .. }) => Ok(match value {
            Value::Number(digits, _) => digits.clone(),
            Value::SingleQuotedString(text) => text.clone(),
            Value::Boolean(value) => value.to_string(),
            other => other.to_string(),
        }),
        other => Err(invalid("storage", &other.to_string())),
    }
}

#[cold]
fn invalid(name: &str, value: &str) -> SqlError {
    SqlError::new(
        "22023",
        format!("invalid value for option \"{name}\": \"{value}\""),
    )
}

#[cold]
fn unrecognized(name: &str) -> SqlError {
    SqlError::new("22023", format!("unrecognized parameter \"{name}\"")).with_hint(
        "Known are partition_key, evictable and primary_key; fillfactor is accepted and ignored.",
    )
}
