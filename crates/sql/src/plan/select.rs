//! SELECT: what becomes of rows, in which order, and how they are locked.

use std::sync::Arc;

use thermocline_values::value::Value;

use super::{AggregatePlan, ColumnsUsed, Departures, JoinStep, OutputExpr, Path, Source};
use crate::expr::Expr;

/// How strongly `SELECT … FOR …` locks. The engine has one kind of row lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockMode {
    /// FOR SHARE, FOR KEY SHARE
    Share,
    /// FOR UPDATE, FOR NO KEY UPDATE
    Update,
}

/// What is done with rows that another transaction has locked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockedRows {
    /// They are waited for.
    Wait,
    /// NOWAIT: the statement fails, 55P03.
    Refuse,
    /// SKIP LOCKED: they are passed over.
    Skip,
}

/// How `SELECT … FOR …` locks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowLock {
    /// How strongly.
    pub mode: LockMode,
    /// What others have locked.
    pub locked: LockedRows,
}

/// A key of ORDER BY.
#[derive(Clone, Debug)]
pub struct SortKey {
    /// What is ordered by.
    pub expr: Expr,
    /// The place of the output that it is, if evaluating it again would give another value.
    pub shown: Option<usize>,
    /// From the largest.
    pub descending: bool,
    /// NULLs before all others.
    pub nulls_first: bool,
}

/// SELECT from one table or from none.
#[derive(Clone, Debug)]
pub struct SelectPlan {
    /// The rows; `None` without FROM, which is one row.
    pub source: Option<Source>,
    /// The tables whose rows are joined to them, one after the other.
    pub joins: Vec<JoinStep>,
    /// How often it has left the short path.
    pub departures: Arc<Departures>,
    /// The condition of a SELECT without FROM.
    pub condition: Option<Expr>,
    /// Aggregation between the rows and the output.
    pub aggregate: Option<AggregatePlan>,
    /// The select list.
    pub output: Vec<OutputExpr>,
    /// What is left to sort in memory.
    pub sort: Vec<SortKey>,
    /// LIMIT.
    pub limit: Option<Expr>,
    /// OFFSET.
    pub offset: Option<Expr>,
    /// FOR UPDATE, FOR SHARE.
    pub lock: Option<RowLock>,
    /// Behind the table's columns there is the row's number. Only where an index bounds the rows.
    pub numbered: bool,
    /// What statistics of columns count.
    pub used: ColumnsUsed,
}

impl SelectPlan {
    /// Whether running it twice may do something twice, or give two answers.
    pub(crate) fn is_volatile(&self) -> bool {
        let joined = self.joins.iter();
        let sources = self
            .source
            .iter()
            .chain(joined.clone().map(|step| &step.source));
        let conditions = sources
            .filter_map(|source| source.condition.as_ref())
            .chain(joined.filter_map(|step| step.after.as_ref()));
        let calls = self.aggregate.iter().flat_map(|aggregate| &aggregate.calls);
        let arguments = calls.flat_map(|call| call.argument.iter().chain(&call.filter));
        let grouped = self
            .aggregate
            .iter()
            .flat_map(|aggregate| aggregate.groups.iter().chain(&aggregate.having));
        let shown = self.output.iter().map(|output| &output.expr);
        let sorted = self.sort.iter().map(|key| &key.expr);
        let mut all = shown.chain(sorted).chain(conditions);
        all.any(Expr::is_volatile) || arguments.chain(grouped).any(Expr::is_volatile)
    }

    /// Whether so few rows are looked at that how many there are does not matter.
    pub(crate) fn ends_early(&self, source: &Source) -> bool {
        if let Some(aggregate) = &self.aggregate {
            return aggregate.first_row_decides && source.filter.is_none();
        }
        let limited = match &self.limit {
            Some(Expr::Constant(Value::BigInt(limit))) => *limit <= 10_000,
            Some(Expr::Constant(_)) | None => false,
            Some(_) => true,
        };
        limited
            && self.sort.is_empty()
            && (source.filter.is_none() || matches!(source.path, Path::Probe(_)))
    }

    pub(super) fn calls_sequences(&self) -> bool {
        self.output.iter().any(|output| {
            let mut calls = false;
            output.expr.walk(&mut |expr| {
                calls |= match expr {
                    Expr::NextValue(_) => true,
                    Expr::Analysed(analysed) => analysed.calls(&["nextval", "setval"]),
                    _ => false,
                };
            });
            calls
        })
    }
}
