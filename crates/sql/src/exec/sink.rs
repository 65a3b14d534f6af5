//! Where a SELECT's rows end up: straight in the output, in a sort, or in an
//! aggregation. LIMIT and OFFSET are counted here.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use thermocline_values::value::{Value, ValueRef};

use super::aggregate::Groups;
use super::row::{write_row, write_value};
use crate::error::{Result, SqlError};
use crate::expr::{EvalContext, Expr, NoRow, RowAccess};
use crate::output::RowWriter;
use crate::plan::{OutputExpr, SelectPlan, SortKey};

/// LIMIT and OFFSET of one execution.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    pub(crate) offset: u64,
    pub(crate) limit: u64,
}

impl Window {
    pub(crate) fn of(
        limit: Option<&Expr>,
        offset: Option<&Expr>,
        context: &EvalContext<'_>,
    ) -> Result<Self> {
        let count = |expr: Option<&Expr>, sqlstate, what: &str| -> Result<Option<u64>> {
            let Some(expr) = expr else {
                return Ok(None);
            };
            match expr.evaluate(&NoRow, context)?.as_ref() {
                ValueRef::BigInt(count) => match u64::try_from(count) {
                    Ok(count) => Ok(Some(count)),
                    Err(_) => Err(SqlError::new(
                        sqlstate,
                        format!("{what} must not be negative"),
                    )),
                },
                _ => Ok(None),
            }
        };
        Ok(Self {
            limit: count(limit, "2201W", "LIMIT")?.unwrap_or(u64::MAX),
            offset: count(offset, "2201X", "OFFSET")?.unwrap_or(0),
        })
    }

    /// The rows that matter.
    pub(crate) const fn end(&self) -> u64 {
        self.offset.saturating_add(self.limit)
    }
}

/// Takes rows and writes the result.
pub(crate) struct Sink<'a> {
    output: &'a [OutputExpr],
    sort: &'a [SortKey],
    /// The outputs that are evaluated when the rows are in order, and only of those that LIMIT
    /// leaves: what changes from call to call, such as `nextval`. As PostgreSQL does it.
    late: Vec<usize>,
    having: Option<&'a Expr>,
    groups: Option<Groups<'a>>,
    sorted: Vec<(Vec<Value>, Vec<Value>)>,
    sorted_bytes: usize,
    window: Window,
    seen: u64,
    context: EvalContext<'a>,
}

impl<'a> Sink<'a> {
    pub(crate) fn new(plan: &'a SelectPlan, window: Window, context: EvalContext<'a>) -> Self {
        Self {
            output: &plan.output,
            sort: &plan.sort,
            late: late_outputs(plan),
            having: plan
                .aggregate
                .as_ref()
                .and_then(|aggregate| aggregate.having.as_ref()),
            groups: plan.aggregate.as_ref().map(Groups::new),
            sorted: Vec::new(),
            sorted_bytes: 0,
            window,
            seen: 0,
            context,
        }
    }

    /// The next row; breaks when no other row matters.
    pub(crate) fn row<R: RowAccess + ?Sized>(
        &mut self,
        row: &R,
        rows: &mut RowWriter,
    ) -> Result<ControlFlow<()>> {
        if let Some(groups) = &mut self.groups {
            let next = groups.row(row, &self.context)?;
            rows.holds_beside(groups.bytes())?;
            return Ok(next);
        }
        self.emit(row, rows)
    }

    fn emit<R: RowAccess + ?Sized>(
        &mut self,
        row: &R,
        rows: &mut RowWriter,
    ) -> Result<ControlFlow<()>> {
        if !self.sort.is_empty() {
            self.keep(row)?;
            rows.holds_beside(self.sorted_bytes)?;
            return Ok(ControlFlow::Continue(()));
        }
        if self.seen >= self.window.end() {
            return Ok(ControlFlow::Break(()));
        }
        if self.seen >= self.window.offset {
            write_row(self.output, row, &self.context, rows)?;
        }
        self.seen += 1;
        Ok(if self.seen >= self.window.end() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        })
    }

    fn keep<R: RowAccess + ?Sized>(&mut self, row: &R) -> Result<()> {
        let mut values = Vec::with_capacity(self.output.len());
        for (place, output) in self.output.iter().enumerate() {
            values.push(match self.late.contains(&place) {
                true => Value::Null,
                false => output.expr.evaluate(row, &self.context)?.into_value(),
            });
        }
        let mut keys = Vec::with_capacity(self.sort.len());
        for key in self.sort {
            keys.push(match key.shown {
                Some(place) => values[place].clone(),
                None => key.expr.evaluate(row, &self.context)?.into_value(),
            });
        }
        self.sorted_bytes += kept_bytes(&keys) + kept_bytes(&values);
        self.sorted.push((keys, values));
        // With a LIMIT only the first rows are worth their memory.
        let end = usize::try_from(self.window.end()).unwrap_or(usize::MAX);
        if self.sorted.len() > end.saturating_mul(2).saturating_add(1024) {
            self.order();
            self.sorted.truncate(end);
            let rows = self.sorted.iter();
            self.sorted_bytes = rows
                .map(|(keys, values)| kept_bytes(keys) + kept_bytes(values))
                .sum();
        }
        Ok(())
    }

    fn order(&mut self) {
        let sort = self.sort;
        self.sorted.sort_by(|(a, _), (b, _)| compare(sort, a, b));
    }

    /// Writes what was kept.
    pub(crate) fn finish(mut self, rows: &mut RowWriter) -> Result<()> {
        if let Some(groups) = self.groups.take() {
            let having = self.having;
            for row in groups.finish()? {
                let accepted = match having {
                    Some(having) => having.accepts(&row, &self.context)?,
                    None => true,
                };
                if accepted && self.emit(&row, rows)?.is_break() {
                    break;
                }
            }
        }
        if self.sort.is_empty() {
            return Ok(());
        }
        self.order();
        let skip = usize::try_from(self.window.offset).unwrap_or(usize::MAX);
        let take = usize::try_from(self.window.limit).unwrap_or(usize::MAX);
        let end = skip.saturating_add(take);
        for (number, (_, values)) in self.sorted.iter_mut().take(end).enumerate() {
            for place in &self.late {
                // It reads nothing of the row.
                let value = self.output[*place].expr.evaluate(&NoRow, &self.context)?;
                values[*place] = value.into_value();
            }
            if number < skip {
                continue;
            }
            rows.begin_row(values.len());
            for (value, output) in values.iter().zip(self.output) {
                write_value(value.as_ref(), &output.column_type, rows)?;
            }
            rows.end_row();
            rows.check()?;
        }
        Ok(())
    }
}

fn late_outputs(plan: &SelectPlan) -> Vec<usize> {
    if plan.sort.is_empty() {
        return Vec::new();
    }
    let outputs = plan.output.iter().enumerate().filter(|(place, output)| {
        let is_asked = plan.sort.iter().any(|key| key.shown == Some(*place));
        !is_asked && output.expr.is_volatile() && !output.expr.reads_row()
    });
    outputs.map(|(place, _)| place).collect()
}

/// What a list of values takes.
pub(super) fn kept_bytes(values: &[Value]) -> usize {
    let heap = |value: &Value| match value {
        Value::Text(text) => text.capacity(),
        Value::Bytea(bytes) | Value::Other(_, bytes) => bytes.capacity(),
        _ => 0,
    };
    size_of::<Vec<Value>>() + size_of_val(values) + values.iter().map(heap).sum::<usize>()
}

pub(super) fn compare(sort: &[SortKey], a: &[Value], b: &[Value]) -> Ordering {
    for (key, (a, b)) in sort.iter().zip(a.iter().zip(b)) {
        let order = match (a.is_null(), b.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) if key.nulls_first => Ordering::Less,
            (true, false) => Ordering::Greater,
            (false, true) if key.nulls_first => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) if key.descending => b.cmp(a),
            (false, false) => a.cmp(b),
        };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}
