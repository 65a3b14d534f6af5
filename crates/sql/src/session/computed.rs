//! SELECT whose columns have calls (`plan::Computed`): the query below gives the rows, which are kept. Then each is
//! computed by itself, again after each call. So what a call changes changes no row of the statement.

use thermocline_engine::{ChargeKind, give_way};
use thermocline_query::datum::Datum;
use thermocline_query::error::Result as QueryResult;
use thermocline_query::evaluate::{Evaluator, Row};
use thermocline_values::value::Value;

use super::plpgsql::of_result;
use super::{SendFuture, Session};
use crate::error::Result;
use crate::one_row::StatementEnvironment;
use crate::output::RowWriter;
use crate::plan::Computed;
use crate::styles::Styles;
use crate::typed::{arguments_of, write_value};

/// Rows between two looks at cancels and time limits.
const PAUSE_ROWS: usize = 256;

/// The columns of a row that was kept.
struct Kept(Vec<Datum>);

impl Row for Kept {
    fn column(&self, _: usize, _: usize, column: usize) -> QueryResult<Datum> {
        Ok(self.0.get(column).cloned().unwrap_or_default())
    }

    fn whole_row(&self, _: usize, _: usize) -> QueryResult<Datum> {
        Ok(Datum::Null)
    }
}

impl Session {
    /// Runs the plan; how many rows there were.
    pub(super) fn compute<'a>(
        &'a mut self,
        plan: &'a Computed,
        styles: &'a Styles,
        parameters: &'a [Value],
        rows: &'a mut RowWriter,
    ) -> SendFuture<'a, Result<u64>> {
        Box::pin(async move {
            let charge = self.account.nothing(ChargeKind::Result);
            let mut below = RowWriter::values().charged(charge);
            self.run_short(&plan.rows, styles, parameters, &mut below)
                .await?;
            below.check()?;
            let context = std::sync::Arc::clone(&self.context);
            let now = context.transaction_us();
            let environment = StatementEnvironment::new(&*context, now, styles);
            let known = arguments_of(&plan.parameters, parameters, &environment)?;
            let options = self.options();
            let mut count = 0;
            for (number, row) in below.take_values().into_iter().enumerate() {
                if number % PAUSE_ROWS == PAUSE_ROWS - 1 {
                    self.check_interrupted(&options)?;
                    give_way().await;
                }
                let values = row.iter().zip(&*plan.given);
                let values = values.map(|(value, column)| of_result(self, value, column));
                let row = Kept(values.collect::<Result<_>>()?);
                self.context.begin_waits();
                let values = loop {
                    let evaluator = Evaluator {
                        environment: &environment,
                        parameters: &known,
                    };
                    let values = plan.targets.iter().map(|of| evaluator.evaluate(of, &row));
                    let error = match values.collect::<QueryResult<Vec<Datum>>>() {
                        Ok(values) => break values,
                        Err(error) => environment.told(error),
                    };
                    if let Some(wait) = error.wait {
                        self.begin_with(wait);
                    }
                    self.wait_of(&error, &options).await?;
                };
                rows.begin_row(values.len());
                for (value, column) in values.iter().zip(&plan.columns) {
                    let of_type = (column.type_oid, column.type_modifier);
                    write_value(rows, &environment, of_type, value)?;
                }
                rows.end_row();
                rows.check()?;
                count += 1;
            }
            Ok(count)
        })
    }
}
