//! From a typed query tree to a plan. Every column of a plan has a number, which is never used
//! twice; expressions are *bound* to numbers before they go into a plan.
//!
//! A query within another is lowered over a *domain*: the different values of the columns of
//! queries further out that it refers to ("Unnesting Arbitrary Queries", Neumann and Kemper). The
//! domain is joined in where the query's own rows begin, its columns go through all operators as
//! one more grouping key, and the result is joined back by them.

mod aggregate;
mod bind;
mod expr;
mod from;
mod ground;
mod join;
mod member;
mod native_group;
mod order;
mod plan;
mod query;
mod scope;
mod semi;
mod set_operation;
mod subquery;
mod targets;
mod window;
mod with;

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::logical_expr::LogicalPlan;
use thermocline_query::call::Environment;
use thermocline_query::datum::Datum;
use thermocline_query::error::{QueryError, Result};
use thermocline_query::tree::{Query, Relation};

use crate::evaluate::Context;
use crate::operators::shared::Generation;
use scope::Scope;

/// Where the rows of tables come from.
pub trait Tables {
    /// A stored table, for a relation of a query: its columns, in the forms of [`crate::form::Form`], under different names.
    ///
    /// # Errors
    /// As the caller's.
    fn table(&self, oid: u32, relation: &Relation) -> Result<Arc<dyn TableProvider>>;

    /// The rows of a relation that are made in memory; `None` for a stored table.
    fn rows(&self, oid: u32) -> Option<Result<Vec<Vec<Datum>>>>;
}

/// A query as a plan.
#[derive(Clone)]
pub struct Lowered {
    /// The plan.
    pub plan: LogicalPlan,
    /// The types of its columns, in the order of the result.
    pub types: Vec<u32>,
    /// The server, which tells whether the statement is to go on.
    pub environment: Arc<dyn Environment>,
}

/// The plan of a query.
///
/// # Errors
/// 0A000 for what has no plan, and what limits and the like fail with.
pub fn lower(query: &Query, tables: &dyn Tables, context: &Context) -> Result<Lowered> {
    let mut lowerer = Lowerer {
        tables,
        context: context.clone(),
        types: Vec::new(),
        scopes: Vec::new(),
        renames: HashMap::new(),
        outside: Vec::new(),
        generation: Generation::default(),
    };
    let (relation, outputs) = lowerer.query(&ground::grounded(query), None, true)?;
    let types = outputs.iter().map(|id| lowerer.types[*id]).collect();
    let exprs = outputs.iter().map(|id| crate::udf::column(*id)).collect();
    Ok(Lowered {
        plan: plan::project(&relation, exprs)?,
        types,
        environment: Arc::clone(&context.environment),
    })
}

/// A relation of a plan and its columns.
#[derive(Clone, Debug)]
pub(crate) struct Rel {
    plan: LogicalPlan,
    columns: Vec<usize>,
}

/// What is lowered, as far as it is.
pub(crate) struct Lowerer<'t> {
    tables: &'t dyn Tables,
    context: Context,
    /// The type of each column.
    types: Vec<u32>,
    /// The queries around, the innermost last.
    scopes: Vec<Scope>,
    /// What columns of queries further out are called here: within a domain.
    renames: HashMap<usize, usize>,
    /// What they are called outside of each domain around.
    outside: Vec<HashMap<usize, usize>>,
    /// The recursion that is being lowered.
    generation: Generation,
}

impl Lowerer<'_> {
    /// A new column.
    fn fresh(&mut self, oid: u32) -> usize {
        self.types.push(oid);
        self.types.len() - 1
    }

    /// The columns with their types.
    fn typed(&self, ids: &[usize]) -> Vec<(usize, u32)> {
        ids.iter().map(|id| (*id, self.types[*id])).collect()
    }

    /// What a column is called here.
    fn current(&self, id: usize) -> usize {
        self.renames.get(&id).copied().unwrap_or(id)
    }
}

#[cold]
fn contradiction(what: &str) -> QueryError {
    QueryError::internal(format!("a query tree that contradicts itself: {what}"))
}
