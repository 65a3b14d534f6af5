//! Generated columns: what they are computed by is kept as a text, as defaults are, and bound over
//! the row's other columns. A row that is stored has them computed ([`BindContext::generated_of`]);
//! of a row that is changed those that read a changed column ([`BindContext::generated_by`]).

use std::sync::Arc;

use thermocline_engine::Table;
use thermocline_query::analyze::Wanted;
use thermocline_query::immutable::is_immutable;
use thermocline_query::tree::{self, ExprKind};
use thermocline_values::types::DataType;

use super::BindContext;
use super::scalar::{Clause, analysed, wanted_by};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::temporary::path_within;

/// Binds what a generated column of this name and type is computed by.
///
/// # Errors
/// As PostgreSQL: 42P17 for what may change by itself, for other generated columns and for the
/// whole row; 42P10 for system columns; 42804 when the type does not suit.
pub(crate) fn bind_generated(
    text: &str,
    table: &Arc<Table>,
    column: &str,
    data_type: DataType,
    context: &BindContext<'_>,
) -> Result<Expr> {
    let wanted = wanted_by(column, data_type);
    let bound = analysed(text, Some(table), wanted, Clause::Generation, context);
    bound.map(|(expr, _)| expr).map_err(|error| {
        match error.missing_column.as_deref() {
            Some("tableoid") => SqlError::unsupported(
                "tableoid in a column generation expression is not supported",
                "Write the table's name as a constant.",
            ),
            // One that is added is not there yet.
            Some(name) if name == column => of_generated(column),
            _ => error,
        }
    })
}

/// The type of an expression over a table's columns, before it is fitted to a column.
///
/// # Errors
/// As [`bind_generated`].
pub(crate) fn type_of_generation(
    text: &str,
    table: &Arc<Table>,
    context: &BindContext<'_>,
) -> Result<(u32, i32)> {
    let clause = Clause::Generation;
    let (_, typed) = analysed(text, Some(table), Wanted::Value, clause, context)?;
    Ok((typed.oid, typed.modifier))
}

/// 42P17 unless a column may be computed by the expression.
pub(super) fn check_generation(expr: &tree::Expr, table: &Table) -> Result<()> {
    if expr.any(&mut |expr| matches!(expr.kind, ExprKind::WholeRow { .. })) {
        let message = "cannot use whole-row variable in column generation expression";
        return Err(SqlError::new("42P17", message)
            .with_detail("This would cause the generated column to depend on its own value."));
    }
    match generated_read(expr, table) {
        Some(name) => Err(of_generated(name)),
        None => Ok(()),
    }
}

/// 42P17 unless the expression gives the same value for the same row, always.
pub(super) fn check_immutable(expr: &tree::Expr) -> Result<()> {
    match is_immutable(expr) {
        true => Ok(()),
        false => Err(SqlError::new(
            "42P17",
            "generation expression is not immutable",
        )),
    }
}

/// 42P10 for the WHERE of a COPY that reads a generated column, which the data does not have.
pub(super) fn check_copy_filter(expr: &tree::Expr, table: &Table) -> Result<()> {
    let whole = expr.any(&mut |expr| matches!(expr.kind, ExprKind::WholeRow { .. }));
    let mut seen = table.live_columns().map(|(_, column)| column);
    let first = seen.find(|column| column.generated);
    let read = match whole {
        true => first.map(|def| &*def.name),
        false => generated_read(expr, table),
    };
    let Some(name) = read else {
        return Ok(());
    };
    let message = "generated columns are not supported in COPY FROM WHERE conditions";
    Err(SqlError::new("42P10", message)
        .with_detail(format!("Column \"{name}\" is a generated column.")))
}

/// A generated column that the expression reads.
pub(super) fn generated_read<'t>(expr: &tree::Expr, table: &'t Table) -> Option<&'t str> {
    let mut read = None;
    expr.any(&mut |expr| {
        if let ExprKind::Column { column, .. } = expr.kind {
            let def = table.columns.get(column);
            read = def.filter(|def| def.generated).map(|def| &*def.name);
        }
        read.is_some()
    });
    read
}

#[cold]
fn of_generated(column: &str) -> SqlError {
    let message =
        format!("cannot use generated column \"{column}\" in column generation expression");
    SqlError::new("42P17", message)
        .with_detail("A generated column cannot reference another generated column.")
}

impl BindContext<'_> {
    /// The generated columns of a table, and what each is computed by.
    pub(crate) fn generated_of(&self, table: &Arc<Table>) -> Result<Vec<(usize, Expr)>> {
        let mut all = Vec::new();
        for (place, column) in table.columns.iter().enumerate() {
            let Some(text) = column.generation() else {
                continue;
            };
            let path = path_within(&table.schema, self.search_path);
            let context = BindContext {
                search_path: &path,
                actor: None,
                ..self.of_kept()
            };
            let (name, data_type) = (&column.name, column.data_type);
            let expr = bind_generated(text, table, name, data_type, &context)?;
            all.push((place, expr));
        }
        Ok(all)
    }

    /// Those that are computed by one of the columns for which a change gives values.
    pub(crate) fn generated_by(
        &self,
        table: &Arc<Table>,
        assignments: &[(usize, Expr)],
    ) -> Result<Vec<(usize, Expr)>> {
        let mut all = self.generated_of(table)?;
        all.retain(|(_, expr)| {
            let mut reads = false;
            expr.walk(&mut |part| {
                if let Expr::Column(column) = part {
                    reads |= assignments.iter().any(|(to, _)| to == column);
                }
            });
            reads
        });
        Ok(all)
    }
}
