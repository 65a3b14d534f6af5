//! Typed queries on DataFusion: a query tree becomes a plan whose types are all said, and the
//! plan gives rows of datums. DataFusion's SQL planner and its coercion are never asked.
//!
//! | module | what lives there |
//! |---|---|
//! | `form`, `numeric_view` | how values stand in Arrow columns |
//! | `sort_key` | bytes that order and equal as PostgreSQL's values do |
//! | `evaluate` | what evaluates expressions, over rows of a batch |
//! | `equal_key` | bytes that equal as PostgreSQL's values do, made fast |
//! | `columnar` | expressions over whole columns |
//! | `udf` | whole expressions as one function of DataFusion |
//! | `aggregates` | aggregates of our own within DataFusion's grouping |
//! | `operators` | operators of our own: groups, windows, functions that give rows, recursion |
//! | `ending` | joins end with their statement |
//! | `nulls_equal` | keeps joins of which NULL equals NULL from rules that mix them with others |
//! | `lower` | from the query tree to the plan |
//! | `projections_down` | what is computed stays above filters and limits |
//! | `join_order`, `cardinality` | the order of inner joins, and how many rows a plan gives |
//! | `pushed` | what a filter asks of single columns, for scans |
//! | `run` | from the plan to rows |
//!
//! No sessions, no catalog, no engine: tables are the caller's.

pub mod aggregates;
mod cardinality;
pub mod columnar;
pub mod ending;
pub mod equal_key;
pub mod errors;
pub mod evaluate;
pub mod form;
mod join_order;
pub mod lower;
mod nulls_equal;
pub mod numeric_view;
pub mod operators;
mod projections_down;
pub mod pushed;
pub mod run;
pub mod sort_key;
pub mod udf;
