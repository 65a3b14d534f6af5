//! Bound queries.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::aggregate::AggregateCall;
use super::expr::{Expr, Order, SetCall};
use crate::pg_catalog::pg_type::PgType;
use crate::pg_catalog::relations::Relation;

/// A column of a result or of something in FROM.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub name: String,
    pub data_type: PgType,
    /// The catalog table and column number it is taken from.
    pub origin: Option<(u32, i16)>,
}

/// A query: its common table expressions, body, order and limits.
#[derive(Debug)]
pub(crate) struct QueryPlan {
    pub ctes: Vec<Cte>,
    pub body: Body,
    pub columns: Vec<Column>,
    /// Orders over the body's rows, for bodies that are not a plain select.
    pub order: Vec<Order>,
    pub limit: Option<Expr>,
    pub offset: Option<Expr>,
}

/// A common table expression.
#[derive(Debug)]
pub(crate) struct Cte {
    /// Under this number its rows are kept.
    pub id: usize,
    pub start: QueryPlan,
    /// The recursive part, and whether duplicates stay (`UNION ALL`).
    pub step: Option<(QueryPlan, bool)>,
}

/// What a query computes before order and limits.
#[derive(Debug)]
pub(crate) enum Body {
    Select(Box<Select>),
    Values(Vec<Vec<Expr>>),
    Nested(Box<QueryPlan>),
    Set {
        operation: SetOperation,
        all: bool,
        left: Box<QueryPlan>,
        right: Box<QueryPlan>,
    },
}

/// Set operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetOperation {
    Union,
    Intersect,
    Except,
}

/// A window function call.
#[derive(Debug)]
pub(crate) struct WindowCall {
    pub function: WindowFunction,
    pub partition: Vec<Expr>,
    pub order: Vec<Order>,
}

/// Window functions.
#[derive(Debug)]
pub(crate) enum WindowFunction {
    RowNumber,
    Rank,
    DenseRank,
    Aggregate(AggregateCall),
}

/// `SELECT … FROM … WHERE … GROUP BY … HAVING`.
#[derive(Debug)]
pub(crate) struct Select {
    pub from: From,
    /// Grouping expressions; `None` when rows are not grouped.
    pub group: Option<Vec<Expr>>,
    pub aggregates: Vec<AggregateCall>,
    pub having: Option<Expr>,
    pub windows: Vec<WindowCall>,
    pub sets: Vec<SetCall>,
    pub output: Vec<Expr>,
    /// Orders, evaluated over the same row as the output.
    pub order: Vec<Order>,
    pub distinct: Distinct,
}

/// Which of equal rows stay.
#[derive(Debug)]
pub(crate) enum Distinct {
    No,
    Rows,
    On(Vec<Expr>),
}

/// The FROM clause and WHERE: inner items joined in any order, then the left
/// joins in theirs. A row has room for the columns of all items from the start.
#[derive(Debug, Default)]
pub(crate) struct From {
    pub width: usize,
    pub inner: Vec<Item>,
    pub left: Vec<LeftJoin>,
    pub conditions: Vec<Condition>,
}

/// `LEFT JOIN item ON conditions`.
#[derive(Debug)]
pub(crate) struct LeftJoin {
    pub item: Item,
    pub conditions: Vec<Condition>,
}

/// Something in FROM and where its columns are in the row.
#[derive(Debug)]
pub(crate) struct Item {
    pub source: Source,
    pub offset: usize,
    pub width: usize,
    /// The columns of other items that must be there before it is read.
    pub needs: BTreeSet<usize>,
}

/// Where rows come from.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    Relation(Arc<Relation>),
    /// The rows of a common table expression.
    Cte(usize),
    Query(Arc<QueryPlan>),
    /// Set-returning functions in lock-step, with a number at the end if asked.
    Functions {
        calls: Vec<SetCall>,
        ordinality: bool,
    },
    /// A join tree of its own.
    Joined(Arc<From>),
}

/// A condition and the columns of the row it looks at.
#[derive(Debug, Clone)]
pub(crate) struct Condition {
    pub expr: Expr,
    pub uses: BTreeSet<usize>,
    /// For `a = b`: both sides, with the columns each looks at.
    pub equality: Option<(Side, Side)>,
}

/// A side of an equality.
#[derive(Debug, Clone)]
pub(crate) struct Side {
    pub expr: Expr,
    pub uses: BTreeSet<usize>,
}
