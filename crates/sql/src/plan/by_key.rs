//! One row, by its key or its number, which are parameters behind a statement's own; and how such
//! a row is locked.

use std::sync::Arc;

use thermocline_engine::Table;
use thermocline_values::value::Value;

use super::{ColumnsUsed, Path, RowLock, SelectPlan, ShortPlan, Source, choose};
use crate::expr::{Comparison, Expr};

/// The row whose key is the parameters behind the statement's own.
pub(crate) fn source_by_key(table: &Arc<Table>, key: &[usize], own_parameters: usize) -> Source {
    let equal = |(number, column): (usize, &usize)| {
        Expr::Compare(
            Comparison::Equal,
            Box::new(Expr::Column(*column)),
            Box::new(Expr::Parameter(own_parameters + number)),
        )
    };
    let condition = Expr::And(key.iter().enumerate().map(equal).collect());
    choose(table, Some(condition), &[], || false).0
}

/// The row whose number is a parameter.
pub(crate) fn row_numbered(table: &Arc<Table>, parameter: usize) -> Source {
    Source {
        table: Arc::clone(table),
        path: Path::Row(Expr::Parameter(parameter)),
        filter: None,
        // By the number alone a row is found.
        condition: Some(Expr::Constant(Value::Boolean(false))),
        partition: None,
    }
}

/// How the rows of a source are locked; it gives as many rows, without columns.
pub(crate) fn locking(source: Source, lock: RowLock) -> ShortPlan {
    ShortPlan::Select(Arc::new(SelectPlan {
        source: Some(source),
        joins: Vec::new(),
        departures: Arc::default(),
        condition: None,
        aggregate: None,
        output: Vec::new(),
        sort: Vec::new(),
        limit: None,
        offset: None,
        lock: Some(lock),
        numbered: false,
        used: ColumnsUsed::default(),
    }))
}
