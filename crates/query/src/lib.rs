//! From the text of a statement to a typed query tree, by PostgreSQL's rules;
//! and the types, functions, operators and casts that every executor calls.
//! One meaning for a statement: names and overloads are resolved here alone.
//!
//! | module | what lives there |
//! |---|---|
//! | `datum` | a value of any type |
//! | `types` | rows of `pg_type`: text and binary forms, order, one file a type |
//! | `functions` | rows of `pg_proc` and their bodies, one file a family |
//! | `operators`, `casts` | rows of `pg_operator` and `pg_cast` |
//! | `given` | trees with constants for parameters |
//! | `domain` | whether a value is one of a domain |
//! | `immutable` | whether an expression may be computed once and kept |
//! | `implied` | whether conditions imply another |
//! | `change` | what statements that change rows mean |
//! | `serial` | values as bytes |
//! | `call` | what a function knows beside its arguments |
//! | `called_last` | columns with calls of the session, computed behind ORDER BY and LIMIT |
//!
//! No tables, no sessions, no execution of plans: those are `engine`, `sql` and DataFusion.

pub mod analyze;
pub mod call;
pub mod called_last;
pub mod casts;
pub mod change;
pub mod datum;
mod debug;
pub mod domain;
pub mod error;
pub mod evaluate;
pub mod functions;
mod given;
pub mod immutable;
pub mod implied;
pub mod operators;
pub mod parse;
pub mod serial;
pub mod size;
pub mod tree;
pub mod types;
pub mod walk;
mod with;
