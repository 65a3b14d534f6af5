//! Running a query that reads no table.

use std::ops::ControlFlow;

use thermocline_query::call::Environment;
use thermocline_query::datum::Datum;
use thermocline_query::evaluate::{Evaluator, NoRow, Row};
use thermocline_query::tree::{Expr, RelationKind};
use thermocline_values::value::Value;

use super::{StatementEnvironment, gives_rows};
use crate::error::{Result, SqlError};
use crate::exec::ExecContext;
use crate::output::RowWriter;
use crate::typed::{TypedQuery, write_value};

/// The values of one row of the functions or the VALUES in FROM.
struct FunctionRow<'a> {
    values: &'a [Datum],
    types: &'a [u32],
}

impl Row for FunctionRow<'_> {
    fn column(&self, _: usize, _: usize, column: usize) -> thermocline_query::error::Result<Datum> {
        Ok(self.values.get(column).cloned().unwrap_or_default())
    }

    fn whole_row(&self, _: usize, _: usize) -> thermocline_query::error::Result<Datum> {
        Ok(Datum::Record(std::sync::Arc::new(
            thermocline_query::datum::Record {
                modifiers: None,
                types: self.types.into(),
                names: None,
                values: self.values.to_vec(),
            },
        )))
    }
}

/// Runs the plan; its rows go to `rows`, their number comes back.
pub(crate) fn execute(
    plan: &TypedQuery,
    context: &ExecContext<'_>,
    parameters: &[Value],
    rows: &mut RowWriter,
) -> Result<u64> {
    let environment = StatementEnvironment::new(context.session, context.now_us, context.styles);
    let done = run(plan, &environment, parameters, rows);
    done.map_err(|error| environment.awaited.told(error))
}

fn run(
    plan: &TypedQuery,
    environment: &StatementEnvironment<'_>,
    parameters: &[Value],
    rows: &mut RowWriter,
) -> Result<u64> {
    let parameters = plan.arguments(parameters, environment)?;
    let evaluator = Evaluator {
        environment,
        parameters: &parameters,
    };
    let query = &plan.query;
    let mut left_out = bound(&evaluator, query.offset.as_ref(), "OFFSET")?.unwrap_or(0);
    let mut wanted = bound(&evaluator, query.limit.as_ref(), "LIMIT")?.unwrap_or(u64::MAX);
    let before = rows.rows();
    let mut writer = Writer {
        evaluator,
        environment,
        rows,
    };
    let mut one = |row: &dyn Row| -> Result<ControlFlow<()>> {
        if let Some(filter) = &query.filter
            && !matches!(writer.evaluator.evaluate(filter, row)?, Datum::Bool(true))
        {
            return Ok(ControlFlow::Continue(()));
        }
        writer.targets(plan, row, &mut left_out, &mut wanted)
    };
    match query
        .relations
        .first()
        .map(|relation| (&relation.kind, &relation.columns))
    {
        Some((RelationKind::Functions { calls, ordinality }, columns)) => {
            let types: Vec<u32> = columns.iter().map(|column| column.oid).collect();
            let mut lists = Vec::with_capacity(calls.len());
            for (call, width) in calls {
                lists.push((evaluator.rows(call, &NoRow)?, *width));
            }
            let length = lists.iter().map(|(list, _)| list.len()).max().unwrap_or(0);
            for at in 0..length {
                let mut values = Vec::with_capacity(types.len());
                for (list, width) in &lists {
                    spread(list.get(at), *width, &mut values);
                }
                if *ordinality {
                    values.push(Datum::Int8(at as i64 + 1));
                }
                let row = FunctionRow {
                    values: &values,
                    types: &types,
                };
                if one(&row)?.is_break() {
                    break;
                }
            }
        }
        Some((RelationKind::Values(lines, _), columns)) => {
            let types: Vec<u32> = columns.iter().map(|column| column.oid).collect();
            for line in lines {
                let values = line.iter().map(|value| evaluator.evaluate(value, &NoRow));
                let values = values.collect::<thermocline_query::error::Result<Vec<Datum>>>()?;
                let row = FunctionRow {
                    values: &values,
                    types: &types,
                };
                if one(&row)?.is_break() {
                    break;
                }
            }
        }
        _ => {
            let _ = one(&NoRow)?;
        }
    }
    Ok(rows.rows() - before)
}

/// The value of LIMIT or OFFSET; none for NULL.
fn bound(evaluator: &Evaluator<'_>, expr: Option<&Expr>, clause: &str) -> Result<Option<u64>> {
    match expr {
        Some(expr) => count_of_rows(&evaluator.evaluate(expr, &NoRow)?, clause),
        None => Ok(None),
    }
}

/// How many rows the value of a LIMIT or an OFFSET says; none for NULL.
///
/// # Errors
/// 2201W and 2201X for less than none.
pub(crate) fn count_of_rows(value: &Datum, clause: &str) -> Result<Option<u64>> {
    let Datum::Int8(count) = value else {
        return Ok(None);
    };
    let sqlstate = if clause == "LIMIT" { "2201W" } else { "2201X" };
    u64::try_from(*count)
        .map(Some)
        .map_err(|_| SqlError::new(sqlstate, format!("{clause} must not be negative")))
}

/// The columns of one row that a function gave; NULLs where it gave fewer rows than another.
fn spread(row: Option<&Datum>, width: usize, values: &mut Vec<Datum>) {
    match row {
        Some(Datum::Record(record)) if width != 1 || record.values.len() == 1 => {
            values.extend((0..width).map(|at| record.values.get(at).cloned().unwrap_or_default()));
        }
        Some(value) if width == 1 => values.push(value.clone()),
        _ => values.extend(std::iter::repeat_n(Datum::Null, width)),
    }
}

struct Writer<'a, 'r> {
    evaluator: Evaluator<'a>,
    environment: &'a StatementEnvironment<'a>,
    rows: &'r mut RowWriter,
}

impl Writer<'_, '_> {
    /// The rows of the targets over one row: several where a target gives several.
    fn targets(
        &mut self,
        plan: &TypedQuery,
        row: &dyn Row,
        left_out: &mut u64,
        wanted: &mut u64,
    ) -> Result<ControlFlow<()>> {
        let targets: Vec<&Expr> = plan
            .query
            .targets
            .iter()
            .filter(|target| !target.hidden)
            .map(|target| &target.expr)
            .collect();
        if !plan.query.has_set_targets {
            if *wanted == 0 {
                return Ok(ControlFlow::Break(()));
            }
            let mut values = Vec::with_capacity(targets.len());
            for target in &targets {
                values.push(self.evaluator.evaluate(target, row)?);
            }
            return self.row(&targets, &values, left_out, wanted);
        }
        // In step, as long as the longest; what gives one value gives it each time.
        let mut lists = Vec::with_capacity(targets.len());
        for target in &targets {
            let is_set = gives_rows(target);
            lists.push((self.evaluator.rows(target, row)?, is_set));
        }
        let sets = lists.iter().filter(|(_, is_set)| *is_set);
        let length = sets.map(|(list, _)| list.len()).max().unwrap_or(0);
        for at in 0..length {
            if at % 1024 == 1023 {
                self.environment.check_interrupted()?;
            }
            let values: Vec<Datum> = lists
                .iter()
                .map(|(list, is_set)| {
                    let at = if *is_set { at } else { 0 };
                    list.get(at).cloned().unwrap_or_default()
                })
                .collect();
            if self.row(&targets, &values, left_out, wanted)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn row(
        &mut self,
        targets: &[&Expr],
        values: &[Datum],
        left_out: &mut u64,
        wanted: &mut u64,
    ) -> Result<ControlFlow<()>> {
        if *left_out > 0 {
            *left_out -= 1;
            return Ok(ControlFlow::Continue(()));
        }
        if *wanted == 0 {
            return Ok(ControlFlow::Break(()));
        }
        *wanted -= 1;
        self.rows.begin_row(targets.len());
        for (target, value) in targets.iter().zip(values) {
            write_value(
                self.rows,
                self.environment,
                (target.oid, target.modifier),
                value,
            )?;
        }
        self.rows.end_row();
        self.rows.check()?;
        Ok(ControlFlow::Continue(()))
    }
}
