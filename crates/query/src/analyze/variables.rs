//! Names that mean variables of a program around the statement (PL/pgSQL). Each becomes a
//! parameter. One that means a column, too, is ambiguous, as in PostgreSQL, unless the program says
//! which is meant.

use std::sync::Arc;

use super::{Analyzer, QueryError, Result};
use crate::tree::{Expr, ExprKind};
use crate::types::domain::{base, is_domain};

/// What a name means that a variable has, and a column, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Conflict {
    /// An error.
    #[default]
    Error,
    /// The column.
    Column,
    /// The variable.
    Variable,
}

/// What names beside those of columns mean.
pub trait Variables {
    /// What is meant where both have a name.
    fn conflict(&self) -> Conflict;

    /// An analysis begins: which parameters there are is said anew.
    fn begin(&self);

    /// What a name of these parts means, `None` if it is no variable.
    ///
    /// # Errors
    /// 42703 for a row that has no such column.
    fn named(&self, parts: &[&str]) -> Result<Option<Variable>>;

    /// The columns of the row that a name of these parts means, `None` if it means none.
    ///
    /// # Errors
    /// 55000 for a row that has no columns yet.
    fn row(&self, parts: &[&str]) -> Result<Option<Columns<Variable>>>;
}

/// The columns of a row, by their names.
pub type Columns<T> = Vec<(Arc<str>, T)>;

/// A variable, as a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Which parameter it is, from 0.
    pub parameter: usize,
    /// The number of its type.
    pub oid: u32,
    /// Its modifier.
    pub modifier: i32,
}

impl Analyzer<'_> {
    /// The variable that a name means.
    pub(super) fn variable(&mut self, parts: &[&str], location: i32) -> Result<Option<Expr>> {
        let Some(variables) = self.variables else {
            return Ok(None);
        };
        let found = variables.named(parts)?;
        Ok(found.map(|found| self.parameter_of(found, location)))
    }

    /// The columns of a variable that is a row: `name.*`
    pub(super) fn columns_of_variable(
        &mut self,
        parts: &[&str],
        location: i32,
    ) -> Result<Option<Columns<Expr>>> {
        let Some(variables) = self.variables else {
            return Ok(None);
        };
        let columns = variables.row(parts)?;
        Ok(columns.map(|columns| {
            let columns = columns.into_iter();
            let column = |(name, found)| (name, self.parameter_of(found, location));
            columns.map(column).collect()
        }))
    }

    fn parameter_of(&mut self, found: Variable, location: i32) -> Expr {
        let Variable {
            parameter,
            oid,
            modifier,
        } = found;
        if self.parameters.len() <= parameter {
            self.parameters.resize(parameter + 1, 0);
        }
        self.parameters[parameter] = oid;
        let value = Expr::new(ExprKind::Parameter(parameter), base(oid), location);
        match is_domain(oid) {
            false => value.with_modifier(modifier),
            true => Expr::new(ExprKind::Checked(Box::new(value)), oid, location),
        }
    }

    /// What a name means, given what it means as a variable and as a column.
    pub(super) fn either(
        &self,
        name: &str,
        variable: Result<Option<Expr>>,
        column: Result<Expr>,
        location: i32,
    ) -> Result<Expr> {
        match (variable, column) {
            (Ok(None), column) | (Err(_), column @ Ok(_)) => column,
            (Ok(Some(variable)), Ok(column)) => {
                match self.variables.map_or(Conflict::Error, Variables::conflict) {
                    Conflict::Column => Ok(column),
                    Conflict::Variable => Ok(variable),
                    Conflict::Error => Err(QueryError::new(
                        "42702",
                        format!("column reference \"{name}\" is ambiguous"),
                    )
                    .with_detail("It could refer to either a PL/pgSQL variable or a table column.")
                    .at(location)),
                }
            }
            (Ok(Some(variable)), Err(error)) if is_missing(&error) => Ok(variable),
            (Err(error), Err(missing)) if is_missing(&missing) => Err(error),
            (_, Err(error)) => Err(error),
        }
    }
}

/// Whether a name means no column.
fn is_missing(error: &QueryError) -> bool {
    matches!(error.sqlstate, "42703" | "42P01" | "3F000")
}
