//! Why the short path does not run a query, as EXPLAIN says it.

use std::fmt;

use thermocline_values::types::DataType;

/// See the head of this file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reason {
    /// `thermocline.path` says so.
    Setting,
    /// It is the source of a new table.
    NewTable,
    /// Rows that it finds are changed or locked.
    FindsRows,
    /// It began on the short path, and takes long.
    TakesLong,
    /// It began on the short path, and reads more evicted rows than a statement may hold.
    ReadsEvicted,
    /// The session calls functions for its rows.
    Calls,
    /// It has this clause or form.
    Form(&'static str),
    /// Values of this type have an order that the storage does not know.
    Order(DataType),
    /// It reads most of this table, which is large: no index bounds the rows.
    LargeScan(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting => f.write_str("thermocline.path is analytical"),
            Self::NewTable => f.write_str("the source of a table"),
            Self::FindsRows => f.write_str("a query finds its rows"),
            Self::TakesLong => f.write_str("it takes long"),
            Self::ReadsEvicted => {
                f.write_str("it reads more evicted rows than a statement may hold")
            }
            Self::Calls => f.write_str("the session calls functions for its rows"),
            Self::Form(form) => f.write_str(form),
            Self::Order(data_type) => write!(f, "an order of values of type {data_type}"),
            Self::LargeScan(table) => write!(
                f,
                "table \"{table}\" is large and no index bounds the rows; a scan of it"
            ),
        }
    }
}
