//! A small executor for queries of the system catalogs. What tools send is
//! full of shapes that an analytical planner does not take: subqueries that
//! lean on the row around them, set-returning functions in the select list,
//! LATERAL, arrays with subscripts, `regclass` casts, recursion inside an
//! expression. The tables are small and in memory, so a tree of bound
//! expressions, joined in the order that keeps intermediate results small, is
//! enough and gives PostgreSQL's types exactly.
//!
//! Binding settles names and types; execution only computes. The rows that a
//! query may go through are bounded by [`WORK_MAX`].

mod aggregate;
mod bind;
mod bind_access;
mod bind_expr;
mod bind_from;
mod bind_function;
mod bind_predicate;
mod cast;
mod coerce;
mod eval;
mod expr;
mod from;
mod functions;
mod operator;
mod plan;
mod run;
mod scope;
mod set_returning;
mod text;

pub(crate) use bind::Binder;
pub(crate) use bind_from::find_relation;
pub(crate) use functions::{NAMES as FUNCTION_NAMES, index_definition, quote_ident};
pub(crate) use plan::QueryPlan;
pub(crate) use run::Run;
pub(crate) use text::{Names, datum_text, scalar_value};

/// Rows and function calls after which a catalog query gives up.
pub(crate) const WORK_MAX: u64 = 50_000_000;
