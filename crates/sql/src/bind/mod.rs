//! Binding: the names of a statement are looked up in the catalog, its types
//! are settled as PostgreSQL settles them, its access path is chosen. What
//! comes out holds no names any more and is executed many times.
//!
//! What the short path does not run is refused with the reason: a pure SELECT is the analytical
//! side's then. A [`Bound`] is good for the catalog version it was made for.

mod aggregate;
mod analysed;
mod data_type;
mod dialect;
mod expression;
mod function;
mod literal;
mod operator;
mod projection;
mod refusal;
mod scalar;
mod scope;
mod select;
#[cfg(test)]
mod tests;
mod typed;
mod view;

pub(crate) use data_type::type_of_text;
pub use data_type::{TypeNames, data_type};
pub use dialect::rewrite;
pub use function::{session_function, session_function_names};
pub use scalar::{
    bind_check, bind_condition, bind_default, bind_next_value, bind_scalar, bind_value_over,
    insert_target,
};
pub(crate) use scalar::{default_text, domain_checks, domain_condition, takes_next_of};

pub(crate) use refusal::{Bindable, Refusal};
pub(crate) use scope::is_system_column;

// What `short` has of the binder.
pub(crate) use {
    analysed::{is_volatile, not_of_a_row},
    typed::Binder,
};

use sqlparser::ast::Statement;
use thermocline_engine::{Catalog, Table};
use thermocline_storage::types::DataType;

use crate::error::Result;
use crate::output::{ColumnType, OutputColumn};
use crate::plan::{Plan, ShortPlan};
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
    /// Types that the client declared for `$1`, `$2`, …
    pub parameters: &'a [Option<DataType>],
    /// The text the statement was parsed from, for the positions of errors;
    /// empty when it is not known.
    pub sql: &'a str,
    /// The number of live rows of a table. Without it every table is small:
    /// no SELECT from one table is declined for the size of its scan.
    pub row_estimate: Option<&'a dyn Fn(&Table) -> u64>,
    /// Who is to have the rights that the statement needs. None for what belongs to
    /// a table itself: its defaults and checks.
    pub actor: Option<&'a Actor>,
    /// How dates, times and numbers look where the statement runs.
    pub styles: &'a Styles,
    /// By which styles literals are read. What is kept as text is always read in the plain ones.
    pub literals: &'a Styles,
}

impl<'a> BindContext<'a> {
    /// A context without declared types, text and sizes.
    #[must_use]
    pub fn new(catalog: &'a Catalog, search_path: &'a [String]) -> Self {
        Self {
            catalog,
            search_path,
            parameters: &[],
            sql: "",
            row_estimate: None,
            actor: None,
            styles: Styles::plain(),
            literals: Styles::plain(),
        }
    }

    /// Where it finds users' types.
    #[must_use]
    pub const fn type_names(&self) -> TypeNames<'a> {
        TypeNames {
            catalog: self.catalog,
            search_path: self.search_path,
        }
    }

    /// The same, for a session of these styles.
    #[must_use]
    pub const fn styled(mut self, styles: &'a Styles) -> Self {
        self.styles = styles;
        self.literals = styles;
        self
    }

    /// The same, for an expression that is kept as text.
    #[must_use]
    pub fn of_kept(mut self) -> Self {
        self.literals = Styles::plain();
        self
    }

    /// Whether the short path may scan the table.
    pub(crate) fn is_small(&self, table: &Table) -> bool {
        self.row_estimate
            .is_none_or(|estimate| estimate(table) <= SMALL_TABLE_ROWS)
    }
}

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

/// Binds a SELECT or VALUES for the short path.
///
/// # Errors
/// As PostgreSQL when names or types do not fit; 0A000 for what the short path does not run.
pub fn bind(statement: &Statement, context: &BindContext<'_>) -> Result<Bound> {
    bindable(statement, context).map_err(|refusal| match refusal {
        Refusal::Error(error) | Refusal::Declined { error, .. } => *error,
    })
}

/// The same; what is declined may be another path's.
pub(crate) fn bindable(statement: &Statement, context: &BindContext<'_>) -> Bindable<Bound> {
    let Statement::Query(query) = statement else {
        return Err(Refusal::declined("this statement"));
    };
    let mut binder = typed::Binder::new(context);
    let (plan, columns) = binder.query(query)?;
    Ok(Bound {
        parameters: binder.settled_parameters(),
        columns,
        plan: Plan::Short(plan),
        catalog_version: context.catalog.version,
        command: Command::Select,
    })
}

type BoundPlan = (ShortPlan, Option<Vec<OutputColumn>>);

/// Whether a query only reads: no lock clause and no INTO in it. What changes rows is no tree.
pub(crate) fn is_pure(statement: &Statement) -> bool {
    use sqlparser::ast::{Query, SetExpr, Visit, Visitor};
    use std::ops::ControlFlow;

    struct Writes;
    fn body_writes(body: &SetExpr) -> bool {
        match body {
            SetExpr::SetOperation { left, right, .. } => body_writes(left) || body_writes(right),
            SetExpr::Select(select) => select.into.is_some(),
            _ => false,
        }
    }
    impl Visitor for Writes {
        type Break = ();
        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            if query.locks.is_empty() && !body_writes(&query.body) {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        }
    }
    matches!(statement, Statement::Query(_)) && statement.visit(&mut Writes).is_continue()
}

/// Declines what compares values of a type whose order the storage does not know.
fn with_order(data_type: DataType) -> Bindable<()> {
    match data_type.has_key() {
        true => Ok(()),
        false => Err(Refusal::declined(format!(
            "an order of values of type {data_type}"
        ))),
    }
}

impl ColumnType {
    fn with_order(self) -> Bindable<()> {
        match self {
            Self::Scalar(data_type) => with_order(data_type),
            // A text is at hand, whose order is another.
            Self::Other(_) => Err(Refusal::declined("an order of this type")),
        }
    }
}
