//! Views: queries that have a name.
//!
//! A view keeps the text that it was made of, for good, and beside it what the names in the
//! text meant then: objects by their numbers, with the columns that they had. A name that means
//! something else by now, a renamed table or column, a column that was added and what the
//! reader's search path says change nothing about a view.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::objects_by_number::Objects;

/// The longest text of a view's query or of a function's body, in bytes: catalogs are in memory as
/// a whole.
pub const DEFINITION_BYTES_MAX: usize = 1 << 20;

/// A view.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ViewDef {
    /// Object id; stays for the view's life.
    pub oid: u32,
    /// Schema's name.
    pub schema: String,
    /// Name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<ViewColumn>,
    /// The query's text.
    pub query: String,
    /// What the names in the text mean.
    pub reads: Vec<ViewRead>,
    /// Why no view of such a query takes changes in PostgreSQL; None where one would.
    pub obstacle: Option<String>,
    /// How deep the tree of its query is, without those of the views that it reads.
    pub depth: u32,
    /// What the names of users' types in the text mean.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<ViewType>,
    /// The users' functions that the names in the text mean.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<ViewFunction>,
    /// `WITH (…)`: names and values, in the order in which they were said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<(String, String)>,
}

/// The option that says that rows which a view would not show are refused: `local` or `cascaded`.
pub const CHECK_OPTION: &str = "check_option";
/// The option that says by whose rights a view reads: by the reader's.
pub const SECURITY_INVOKER: &str = "security_invoker";

/// A type that a view's query names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ViewType {
    /// The schema, where one is written.
    pub written_schema: Option<String>,
    /// The name as it is written.
    pub written: String,
    /// The type's number.
    pub oid: u32,
}

/// A user's function that a view's query calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ViewFunction {
    /// The schema, where one is written.
    pub written_schema: Option<String>,
    /// The name as it is written.
    pub written: String,
    /// The function's number.
    pub oid: u32,
}

/// A view's column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ViewColumn {
    /// Its name.
    pub name: String,
    /// The name that the query gives it.
    pub written: String,
    /// The number of its type.
    pub type_oid: u32,
    /// Its type's modifier.
    pub modifier: i32,
}

/// A relation that a view's query names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ViewRead {
    /// The schema, where one is written.
    pub written_schema: Option<String>,
    /// The name as it is written.
    pub written: String,
    /// The relation's object id.
    pub oid: u32,
    /// Its schema when the view was made.
    pub schema: String,
    /// The columns that it had then.
    pub columns: Vec<String>,
    /// The bytes at which it is written, and whether an alias follows.
    pub places: Vec<(u32, bool)>,
}

/// What a materialized view has beside what a table has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MaterializedDef {
    /// The query's text.
    pub query: String,
    /// The columns as the query gives them. The table's have names of their own.
    pub columns: Vec<ViewColumn>,
    /// What the names in the text mean.
    pub reads: Vec<ViewRead>,
    /// What the names of users' types in the text mean.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<ViewType>,
    /// The users' functions that the names in the text mean.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<ViewFunction>,
    /// How deep the tree of its query is, without those of the views that it reads.
    pub depth: u32,
    /// The query has run. Nobody may read the rows before.
    pub populated: bool,
}

impl ViewDef {
    /// Whether its query names the relation of this number.
    #[must_use]
    pub fn reads(&self, oid: u32) -> bool {
        self.reads.iter().any(|read| read.oid == oid)
    }

    /// What one of its options says.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&str> {
        let mut options = self.options.iter();
        let said = options.find(|(option, _)| option == name);
        said.map(|(_, value)| value.as_str())
    }

    /// Whether it reads by the rights of whoever reads it, not by its owner's.
    #[must_use]
    pub fn is_invokers(&self) -> bool {
        let said = self.option(SECURITY_INVOKER);
        said.is_some_and(|value| is_yes(value) == Some(true))
    }

    /// About what it takes in memory, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let column = |column: &ViewColumn| {
            size_of::<ViewColumn>() + column.name.len() + column.written.len()
        };
        let read = |read: &ViewRead| {
            let names = read.columns.iter().map(|name| 24 + name.len());
            size_of::<ViewRead>() + 16 * read.places.len() + names.sum::<usize>()
        };
        let named = |named: &ViewType| size_of::<ViewType>() + 2 * named.written.len();
        let columns = self.columns.iter().map(column).sum::<usize>()
            + self.types.iter().map(named).sum::<usize>();
        let called = |of: &ViewFunction| size_of::<ViewFunction>() + 2 * of.written.len();
        let columns = columns + self.functions.iter().map(called).sum::<usize>();
        let reads = self.reads.iter().map(read).sum::<usize>();
        let options = self.options.iter();
        let options = options.map(|(name, value)| 48 + name.len() + value.len());
        size_of::<Self>() + 128 + self.query.len() + columns + reads + options.sum::<usize>()
    }
}

/// The truth that an option's text says, as PostgreSQL reads it; None where it says none.
#[must_use]
pub fn is_yes(text: &str) -> Option<bool> {
    let text = text.trim().to_ascii_lowercase();
    let begins = |word: &str, least: usize| text.len() >= least && word.starts_with(&text);
    if begins("true", 1) || begins("yes", 1) || text == "on" || text == "1" {
        Some(true)
    } else if begins("false", 1) || begins("no", 1) || begins("off", 2) || text == "0" {
        Some(false)
    } else {
        None
    }
}

/// How deep the deepest tree of a view's query is, with those of the views that it reads.
/// `all` has those of materialized views beside them.
pub(crate) fn deepest(views: &Objects<ViewDef>, all: &[&Arc<ViewDef>]) -> u32 {
    let mut known = HashMap::new();
    // Each view is known before those that read it, at the latest after as many rounds as
    // there are views; a circle, of which there is none, is never known.
    for _ in 0..=views.len() {
        let before = known.len();
        for view in all {
            let read = view.reads.iter().map(|read| read.oid);
            // What reads a materialized view reads rows.
            let below = read.filter(|oid| views.contains_key(oid));
            let mut below = below.map(|oid| known.get(&oid).copied());
            let below = below.try_fold(0u32, |most, depth| depth.map(|depth| most.max(depth)));
            if let Some(below) = below {
                known.insert(view.oid, view.depth.saturating_add(below));
            }
        }
        if known.len() == before {
            break;
        }
    }
    known.values().copied().max().unwrap_or(0)
}
