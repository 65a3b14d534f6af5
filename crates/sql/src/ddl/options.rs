//! `WITH (…)` and USING of CREATE TABLE: how rows are spread, whether they may
//! leave memory, what the primary key is made of.

use std::collections::BTreeMap;

use thermocline_engine::IndexKind;
use thermocline_engine::catalog::{AccessMethod, UNLOAD_PRIORITY, UNLOAD_PRIORITY_MAX};
use thermocline_engine::table_policy::check_option;

use super::tablespace::OPTION;
use crate::error::{Result, SqlError};

/// What `WITH (…)` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TableOptions {
    /// partition_key: the columns whose hash chooses the partition.
    pub(super) partition_key: Option<Vec<String>>,
    /// evictable: cold rows may leave memory.
    pub(super) evictable: bool,
    /// primary_key: what it is made of.
    pub(super) primary_key: IndexKind,
    /// cold_tablespace: its name.
    pub(super) tablespace: Option<String>,
    /// What USING says.
    pub(super) access_method: AccessMethod,
    /// All of them as text, for `\d+`; those of the table's policy are read from there.
    pub(super) texts: BTreeMap<String, String>,
}

impl Default for TableOptions {
    fn default() -> Self {
        Self {
            partition_key: None,
            evictable: true,
            primary_key: IndexKind::BTree,
            tablespace: None,
            access_method: AccessMethod::default(),
            texts: BTreeMap::new(),
        }
    }
}

/// Options of PostgreSQL's that mean nothing here.
const IGNORED: [&str; 4] = [
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
        "cow" | "lsm" | "nvm" | "nvm_cow" | "nvm_lsm" => Err(SqlError::unsupported(
            format!("access method \"{name}\" is not supported yet"),
            "Use memory, which is the default, or columns.",
        )),
        _ => Err(SqlError::new(
            "42704",
            format!("access method \"{name}\" does not exist"),
        )),
    }
}

/// Reads `name = value` pairs.
pub(super) fn read(options: &[(String, String)]) -> Result<TableOptions> {
    let mut read = TableOptions::default();
    for (name, value) in options {
        match name.as_str() {
            "partition_key" => {
                let columns = value
                    .split(',')
                    .map(|column| column.trim().trim_matches('"').to_owned())
                    .filter(|column| !column.is_empty())
                    .collect();
                read.partition_key = Some(columns);
            }
            OPTION => {
                read.tablespace = Some(value.clone());
                // The table has its number: a tablespace may get another name.
                continue;
            }
            "evictable" => read.evictable = boolean(name, value)?,
            "primary_key" => {
                read.primary_key = match value.as_str() {
                    "btree" => IndexKind::BTree,
                    "hash" => IndexKind::Hash,
                    _ => return Err(invalid(name, value).with_hint("Use btree or hash.")),
                };
            }
            "oids" if boolean(name, value)? => {
                return Err(SqlError::unsupported(
                    "tables declared WITH OIDS are not supported",
                    "Declare a column of your own.",
                ));
            }
            "fillfactor" => bounded(name, value, 10, 100)?,
            UNLOAD_PRIORITY => bounded(name, value, 0, UNLOAD_PRIORITY_MAX.into())?,
            _ if IGNORED.contains(&name.as_str()) || name.starts_with("autovacuum_") => {}
            _ => match check_option(name, value) {
                Some(Ok(())) => {}
                Some(Err(may_be)) => {
                    return Err(invalid(name, value).with_hint(format!("Valid values: {may_be}.")));
                }
                None => return Err(unrecognized(name)),
            },
        }
        read.texts.insert(name.clone(), value.clone());
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

/// A whole number within bounds, which are shown.
fn bounded(name: &str, value: &str, least: i64, most: i64) -> Result<()> {
    let number: i64 = value.trim().parse().map_err(|_| {
        let message = format!("invalid value for integer option \"{name}\": {value}");
        SqlError::new("22023", message)
    })?;
    if (least..=most).contains(&number) {
        return Ok(());
    }
    let message = format!("value {value} out of bounds for option \"{name}\"");
    let detail = format!("Valid values are between \"{least}\" and \"{most}\".");
    Err(SqlError::new("22023", message).with_detail(detail))
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
        "Known options are partition_key, evictable, primary_key, and for the policy identification, \
         alru_sample, offline_sample, timing, retrieval, read_unit, access, merge, merge_unit, block_size, \
         compression, compaction, fill_factor and policy, and of column tables unload_priority; \
         fillfactor is accepted and ignored.",
    )
}
