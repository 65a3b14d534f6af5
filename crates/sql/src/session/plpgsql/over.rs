//! Calls of functions for each row of a query (`thermocline_query::analyze::CallsOver`). The query's rows
//! are kept first, so that the functions run their own statements meanwhile, and see what those of
//! earlier rows did, as in PostgreSQL.

use std::sync::Arc;

use thermocline_engine::ChargeKind;
use thermocline_query::analyze::{self, OverRow};
use thermocline_query::datum::Datum;
use thermocline_query::tree::Expr;
use thermocline_values::value::Value;

use super::rows::FoundRows;
use crate::error::Result;
use crate::one_row::{StatementEnvironment, count_of_rows};
use crate::output::{PIECE_BYTES, RowWriter};
use crate::parse::Query;
use crate::session::kept::KeptRows;
use crate::session::prepared::Planned;
use crate::session::run::Answer;
use crate::session::{SendFuture, Session};
use crate::typed::{arguments_of, write_value};

/// What calls make of a query's rows.
#[derive(Debug)]
pub(in crate::session) struct CallsOver {
    over: analyze::CallsOver,
    /// The types of the statement's own parameters.
    own: Vec<u32>,
}

impl CallsOver {
    /// Of a statement with parameters of these types.
    pub(in crate::session) fn new(over: analyze::CallsOver, types: &[u32]) -> Self {
        Self {
            over,
            own: types.to_vec(),
        }
    }

    /// How many columns the statement has.
    pub(in crate::session) fn shown(&self) -> usize {
        self.over.shown
    }

    /// Where a row's columns begin among what is known.
    fn row(&self) -> usize {
        self.own.len() + self.over.calls.len()
    }
}

impl Session {
    /// Answers a query whose rows are computed by calls. All of it is one transaction.
    pub(in crate::session) fn answer_over<'a>(
        &'a mut self,
        over: &'a CallsOver,
        (query, planned): (&'a Query, &'a Planned),
        parameters: &'a [Value],
    ) -> SendFuture<'a, Result<Answer>> {
        Box::pin(async move {
            let own = self.begin_own();
            // All calls are a part of one statement.
            let outer = self.plpgsql.deadline;
            self.plpgsql.deadline = self.options().deadline;
            let kept = self
                .answer_over_rows(over, (query, planned), parameters)
                .await;
            self.plpgsql.deadline = outer;
            let kept = kept?;
            if own {
                self.end_implicit().await?;
            }
            Ok(Answer::Kept(kept))
        })
    }

    fn answer_over_rows<'a>(
        &'a mut self,
        over: &'a CallsOver,
        (query, planned): (&'a Query, &'a Planned),
        parameters: &'a [Value],
    ) -> SendFuture<'a, Result<KeptRows>> {
        Box::pin(async move {
            let charge = self.account.nothing(ChargeKind::Result);
            let mut under = RowWriter::kept().charged(charge);
            let answer = self.answer_now(query, planned, parameters, &mut under);
            let answer = answer.await?;
            let columns = planned.bound.columns.clone().unwrap_or_default();
            let found = self.found(answer, under, columns.into()).await?;
            self.compute_over(over, found, parameters).await
        })
    }

    /// Computes what the statement shows of these rows.
    async fn compute_over(
        &mut self,
        over: &CallsOver,
        mut found: FoundRows,
        parameters: &[Value],
    ) -> Result<KeptRows> {
        let spill = Arc::clone(self.engine.db.spill());
        let mut kept = KeptRows::charged(self.account.nothing(ChargeKind::Result));
        let mut rows = RowWriter::kept();
        let mut known = {
            let styles = self.context.styles();
            let now = self.context.transaction_us();
            let environment = StatementEnvironment::new(&*self.context, now, &styles);
            arguments_of(&over.own, parameters, &environment)?
        };
        let columns = found.shown().clone();
        known.resize(over.row() + columns.len(), Datum::Null);
        let of = &over.over;
        let mut left_out = self
            .rows_of(of.offset.as_ref(), &known, "OFFSET")
            .await?
            .unwrap_or(0);
        let wanted = self
            .rows_of(of.limit.as_ref(), &known, "LIMIT")
            .await?
            .unwrap_or(u64::MAX);
        let mut count = 0;
        while count < wanted
            && let Some(row) = found.next(self)?
        {
            self.check_interrupted(&self.options())?;
            known.truncate(over.row());
            known.extend(row);
            let mut fulfils = true;
            for condition in &of.conditions {
                let value = self.computed_over(over, condition, &mut known).await?;
                fulfils = matches!(value, Datum::Bool(true));
                if !fulfils {
                    break;
                }
            }
            if !fulfils {
                continue;
            }
            if left_out > 0 {
                left_out -= 1;
                continue;
            }
            count += 1;
            for (place, column) in &of.columns {
                let value = self.computed_over(over, column, &mut known).await?;
                known[over.row() + place] = value;
            }
            let styles = self.context.styles();
            let now = self.context.transaction_us();
            let environment = StatementEnvironment::new(&*self.context, now, &styles);
            rows.begin_row(of.shown);
            let shown = known[over.row()..].iter().zip(&*columns).take(of.shown);
            for (value, column) in shown {
                let of_type = (column.type_oid, column.type_modifier);
                write_value(&mut rows, &environment, of_type, value)?;
            }
            rows.end_row();
            rows.check()?;
            if rows.bytes_buffered() > PIECE_BYTES {
                kept.append(std::mem::replace(&mut rows, RowWriter::kept()), &spill)?;
            }
        }
        kept.append(rows, &spill)?;
        kept.seal()?;
        Ok(kept)
    }

    /// The value of an expression over a row, behind the calls that it needs.
    async fn computed_over(
        &mut self,
        over: &CallsOver,
        of: &OverRow,
        known: &mut [Datum],
    ) -> Result<Datum> {
        for place in &of.calls {
            let given = self.call_before(&over.over.calls[*place], known).await?;
            let value = given.into_iter().next().map(|typed| typed.value);
            known[over.own.len() + place] = value.unwrap_or_default();
        }
        self.value_over(&of.expr, known).await
    }

    /// How many rows a LIMIT or an OFFSET says; none for NULL.
    async fn rows_of(
        &mut self,
        expr: Option<&Expr>,
        known: &[Datum],
        clause: &str,
    ) -> Result<Option<u64>> {
        match expr {
            Some(expr) => count_of_rows(&self.value_over(expr, known).await?, clause),
            None => Ok(None),
        }
    }
}
