//! What evaluates expressions: the row evaluator, behind a trait. Its expressions are *bound*:
//! every column in them is `Column { level: 0, relation: 0, column: n }`, where n is the number
//! of a plan's column.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use thermocline_query::call::Environment;
use thermocline_query::datum::Datum;
use thermocline_query::error::{QueryError, Result};
use thermocline_query::evaluate::{Evaluator, Row};
use thermocline_query::tree::{Expr, ExprKind};

use crate::form::{ColumnReader, Form};

/// A row that an expression is evaluated over.
pub trait RowValues {
    /// The value of a plan's column.
    ///
    /// # Errors
    /// XX000 for a column that the row does not have.
    fn column(&self, id: usize) -> Result<Datum>;
}

/// Evaluates bound expressions.
pub trait Evaluate: Send + Sync {
    /// The value of `expr` over `row`.
    ///
    /// # Errors
    /// As the expression's in PostgreSQL.
    fn evaluate(&self, expr: &Expr, row: &dyn RowValues) -> Result<Datum>;
}

/// What plans need to compute.
#[derive(Clone)]
pub struct Context {
    /// The server, for functions.
    pub environment: Arc<dyn Environment>,
    /// The evaluator, with the statement's parameters.
    pub evaluator: Arc<dyn Evaluate>,
}

/// The row evaluator of `query`, with a statement's parameters.
struct RowEvaluator {
    environment: Arc<dyn Environment>,
    parameters: Arc<[Datum]>,
}

struct Adapted<'a>(&'a dyn RowValues);

impl Row for Adapted<'_> {
    fn column(&self, _: usize, _: usize, column: usize) -> Result<Datum> {
        self.0.column(column)
    }

    fn whole_row(&self, _: usize, _: usize) -> Result<Datum> {
        Err(QueryError::internal("a whole row is a column here"))
    }
}

impl Evaluate for RowEvaluator {
    fn evaluate(&self, expr: &Expr, row: &dyn RowValues) -> Result<Datum> {
        let evaluator = Evaluator {
            environment: self.environment.as_ref(),
            parameters: &self.parameters,
        };
        evaluator.evaluate(expr, &Adapted(row))
    }
}

impl Context {
    /// Computes by `query`'s evaluator, with these parameters.
    #[must_use]
    pub fn new(environment: Arc<dyn Environment>, parameters: Arc<[Datum]>) -> Self {
        let evaluator = Arc::new(RowEvaluator {
            environment: Arc::clone(&environment),
            parameters,
        });
        Self {
            environment,
            evaluator,
        }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Context")
    }
}

/// The name of a plan's column.
#[must_use]
pub fn name_of(id: usize) -> String {
    format!("c{id}")
}

/// The columns that bound expressions use, each once, in the order of their numbers.
pub fn columns_of<'e>(exprs: impl IntoIterator<Item = &'e Expr>) -> Vec<usize> {
    fn walk(expr: &Expr, found: &mut Vec<usize>) {
        if let ExprKind::Column { column, .. } = &expr.kind {
            found.push(*column);
        }
        expr.children(&mut |child| walk(child, found));
    }
    let mut found = Vec::new();
    for expr in exprs {
        walk(expr, &mut found);
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// A bound column.
#[must_use]
pub const fn column(id: usize, oid: u32) -> Expr {
    let kind = ExprKind::Column {
        level: 0,
        relation: 0,
        column: id,
    };
    Expr::new(kind, oid, -1)
}

/// The number of a bound column, if the expression is nothing else.
#[must_use]
pub const fn as_column(expr: &Expr) -> Option<usize> {
    match &expr.kind {
        ExprKind::Column { column, .. } => Some(*column),
        _ => None,
    }
}

/// The rows of a batch, as far as some columns go.
#[derive(Debug)]
pub struct BatchRows {
    readers: Vec<(usize, ColumnReader)>,
}

impl BatchRows {
    /// The columns of these numbers and types.
    ///
    /// # Errors
    /// XX000 where the batch has them not.
    pub fn new(batch: &RecordBatch, columns: &[(usize, u32)]) -> Result<Self> {
        let readers = columns.iter().map(|(id, oid)| {
            let array = batch
                .column_by_name(&name_of(*id))
                .ok_or_else(|| missing(*id))?;
            let reader = ColumnReader::new(Form::of(*oid), Arc::clone(array))?;
            Ok((*id, reader))
        });
        Ok(Self {
            readers: readers.collect::<Result<_>>()?,
        })
    }

    /// One of its rows.
    #[must_use]
    pub const fn row(&self, row: usize) -> BatchRow<'_> {
        BatchRow { rows: self, row }
    }
}

#[cold]
fn missing(id: usize) -> QueryError {
    QueryError::internal(format!("there is no column c{id} in the plan"))
}

/// A row of a batch.
pub struct BatchRow<'a> {
    rows: &'a BatchRows,
    row: usize,
}

impl RowValues for BatchRow<'_> {
    fn column(&self, id: usize) -> Result<Datum> {
        let readers = &self.rows.readers;
        match readers.iter().find(|(column, _)| *column == id) {
            Some((_, reader)) => reader.get(self.row),
            None => Err(missing(id)),
        }
    }
}

/// Rows of columns whose numbers are their places.
#[derive(Debug)]
pub struct PlacedRows {
    readers: Vec<ColumnReader>,
}

impl PlacedRows {
    /// Of these columns.
    #[must_use]
    pub const fn of(readers: Vec<ColumnReader>) -> Self {
        Self { readers }
    }

    /// One of them.
    #[must_use]
    pub const fn row(&self, row: usize) -> PlacedRow<'_> {
        PlacedRow { rows: self, row }
    }
}

/// A row of columns whose numbers are their places.
pub struct PlacedRow<'a> {
    rows: &'a PlacedRows,
    row: usize,
}

impl RowValues for PlacedRow<'_> {
    fn column(&self, place: usize) -> Result<Datum> {
        match self.rows.readers.get(place) {
            Some(reader) => reader.get(self.row),
            None => Err(missing(place)),
        }
    }
}

/// Bound expressions whose columns have their places among `columns`, which are in their order,
/// as numbers.
#[must_use]
pub fn placed(exprs: &[Expr], columns: &[usize]) -> Vec<Expr> {
    fn walk(expr: &mut Expr, columns: &[usize]) {
        if let ExprKind::Column { column, .. } = &mut expr.kind
            && let Ok(place) = columns.binary_search(column)
        {
            *column = place;
        }
        expr.children_mut(&mut |child| walk(child, columns));
    }
    let mut exprs = exprs.to_vec();
    exprs.iter_mut().for_each(|expr| walk(expr, columns));
    exprs
}

/// A row without columns.
pub struct NoRow;

impl RowValues for NoRow {
    fn column(&self, id: usize) -> Result<Datum> {
        Err(missing(id))
    }
}
