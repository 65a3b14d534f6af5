//! CREATE and DROP FUNCTION: kept as their texts, which PostgreSQL's grammar has read once. What
//! the types in them mean is known when they are carried out.

use super::statement::{Ddl, Statement};

/// A command about functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FunctionCommand {
    /// CREATE [OR REPLACE] FUNCTION or PROCEDURE: its text.
    Create(Box<str>),
    /// DROP FUNCTION: its text.
    Drop(Box<str>),
}

pub(super) fn create(text: &str) -> Statement {
    Statement::Ddl(Ddl::Function(FunctionCommand::Create(text.trim().into())))
}

pub(super) fn drop(text: &str) -> Statement {
    Statement::Ddl(Ddl::Function(FunctionCommand::Drop(text.trim().into())))
}
