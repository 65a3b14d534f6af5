//! What a statement is planned against, and what comes of it: a [`Bound`] holds no names any more,
//! is executed many times, and is good for the catalog version it was made for. Here are
//! expressions outside of queries, too, and names of types; queries are `short`'s.

mod data_type;
mod generated;
mod index_key;
mod scalar;
#[cfg(test)]
mod tests;

pub use data_type::TypeNames;
pub(crate) use data_type::{column_type, type_of_text};
pub(crate) use generated::{bind_generated, type_of_generation};
pub(crate) use index_key::{IndexShape, index_expression, index_predicate};
pub use scalar::{
    Clause, bind_argument, bind_check, bind_default, bind_filter, bind_next_value, bind_value_over,
    insert_target,
};
pub(crate) use scalar::{default_text, domain_checks, domain_condition, next_of, takes_next_of};

use thermocline_engine::{Catalog, Table};
use thermocline_values::types::DataType;

use crate::error::Result;
use crate::output::OutputColumn;
use crate::plan::{Check, Plan};
use crate::privilege::Actor;
use crate::styles::Styles;

/// Up to this many rows a table is small: the short path may scan it.
pub const SMALL_TABLE_ROWS: u64 = 10_000;

/// What a statement is bound against.
#[derive(Clone, Copy)]
pub struct BindContext<'a> {
    /// The tables, indexes and sequences there are.
    pub catalog: &'a Catalog,
    /// Where unqualified names are looked for, in this order.
    pub search_path: &'a [String],
    /// The number of live rows of a table. Without it every table is small:
    /// no SELECT from one table is declined for the size of its scan.
    pub row_estimate: Option<&'a (dyn Fn(&Table) -> u64 + Sync)>,
    /// Who is to have the rights that the statement needs. None for what belongs to
    /// a table itself: its defaults and checks.
    pub actor: Option<&'a Actor>,
    /// What a view shows, whose table is changed through it and gets no other rows.
    pub through: Option<&'a Check>,
    /// By which styles literals are read. What is kept as text is always read in the plain ones.
    pub styles: &'a Styles,
    /// Charges bytes of plans over partitions before they are made.
    pub partitions: Option<&'a (dyn Fn(u64) -> Result<()> + Sync)>,
}

impl<'a> BindContext<'a> {
    /// A context without sizes, for whoever has all rights.
    #[must_use]
    pub fn new(catalog: &'a Catalog, search_path: &'a [String]) -> Self {
        Self {
            catalog,
            search_path,
            row_estimate: None,
            actor: None,
            through: None,
            styles: Styles::plain(),
            partitions: None,
        }
    }

    /// The same, for a session of these styles.
    #[must_use]
    pub const fn styled(mut self, styles: &'a Styles) -> Self {
        self.styles = styles;
        self
    }

    /// The same, for an expression that is kept as text.
    #[must_use]
    pub fn of_kept(mut self) -> Self {
        self.styles = Styles::plain();
        self
    }

    /// Before plans over so many partitions are made, with expressions of so many parts in each.
    ///
    /// # Errors
    /// 53200 where the session has no room for them.
    pub(crate) fn charge_partitions(&self, count: usize, parts: usize) -> Result<()> {
        let bytes = PARTITION_PLAN_BYTES + parts as u64 * EXPRESSION_PART_BYTES;
        self.partitions
            .map_or(Ok(()), |charge| charge(count as u64 * bytes))
    }

    /// Whether the short path may scan the table.
    pub(crate) fn is_small(&self, table: &Table) -> bool {
        self.row_estimate
            .is_none_or(|estimate| estimate(table) <= SMALL_TABLE_ROWS)
    }
}

/// What the plan over one partition takes beside expressions, in bytes.
const PARTITION_PLAN_BYTES: u64 = 2 << 10;
/// What each part of an expression takes there: in the condition, the filter and the keys.
const EXPRESSION_PART_BYTES: u64 = 256;

/// What a statement does, for its command tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// `SELECT`, `VALUES`
    Select,
    /// `INSERT`
    Insert,
    /// `UPDATE`
    Update,
    /// `DELETE`
    Delete,
    /// `MERGE`
    Merge,
}

/// A statement whose names and types are settled.
#[derive(Clone, Debug)]
pub struct Bound {
    /// The types of `$1`, `$2`, …
    pub parameters: Vec<DataType>,
    /// The result's columns; `None` when the statement returns no rows.
    pub columns: Option<Vec<OutputColumn>>,
    /// How it is run.
    pub plan: Plan,
    /// The catalog it was bound against.
    pub catalog_version: u64,
    /// What it does.
    pub command: Command,
}

/// Whether every table has a column of this name in PostgreSQL, so that none can be made.
pub(crate) fn is_system_column(name: &str) -> bool {
    matches!(
        name,
        "ctid" | "xmin" | "xmax" | "cmin" | "cmax" | "tableoid"
    )
}
