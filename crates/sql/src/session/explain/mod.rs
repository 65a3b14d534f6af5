//! EXPLAIN: the plan, which path the statement takes and why. With ANALYZE the
//! statement runs, its changes included, and its rows are counted.

mod shown;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use thermocline_engine::GroupCounts;
use thermocline_values::value::Value;

use self::shown::Shown;
use super::analytical::AnalyticalQuery;
use super::prepared::{Planned, Prepared};
use super::run::{Answer, Run, boxed};
use super::utility::{explain_column, send_texts};
use super::{Client, Session};
use crate::error::{Result, SqlError};
use crate::messages;
use crate::output::RowWriter;
use crate::parse::statement::{Explain, Query, Statement};
use crate::plan::Plan;

impl Session {
    pub(super) async fn explain(
        &mut self,
        explain: &Explain,
        run: &Run<'_>,
        client: &mut Client,
    ) -> Result<()> {
        let planning = Instant::now();
        let (prepared, planned, given) = match &*explain.statement {
            Statement::Query(query) => {
                let prepared = Prepared::new(
                    Arc::clone(&run.prepared.text),
                    Some((*explain.statement).clone()),
                    run.prepared.declared.clone(),
                );
                let prepared = Arc::new(prepared.of_depth(run.prepared.depth));
                let planned = match explain.analyze {
                    true => self.plan(&prepared, query).await?,
                    false => {
                        let mut lookup = self.lookup();
                        lookup.only_planned = true;
                        crate::stack::with_room(prepared.depth, || lookup.plan(&prepared, query))?
                    }
                };
                (prepared, planned, None)
            }
            Statement::Execute { name, arguments } => {
                let given = self.given_arguments(name, arguments).await?;
                (given.0, given.1, Some(given.2))
            }
            _ => return Err(nothing_to_explain()),
        };
        let Some(query) = prepared.query() else {
            return Err(nothing_to_explain());
        };
        let parameters = given.as_deref().unwrap_or(run.parameters);
        let makes_rows = planned.bound.plan.typed().is_some_and(|typed| typed.calls);
        if planned.calls_functions() || explain.analyze && makes_rows {
            return Err(SqlError::unsupported(
                "EXPLAIN of a statement that calls a function of PL/pgSQL is not supported",
                "Explain the statements of the function one by one.",
            ));
        }
        let planning = planning.elapsed();
        let analytical = match &planned.bound.plan {
            Plan::Analytical { typed, .. } if !explain.analyze => {
                let analytical = AnalyticalQuery {
                    engine: &self.engine,
                    context: &self.context,
                    typed,
                    catalog: &planned.catalog,
                    own: Arc::default(),
                };
                analytical.explain().await?
            }
            _ => Vec::new(),
        };
        let mut shown = Shown::of(planned.bound.plan.explain());
        shown.operators = analytical;
        if explain.analyze {
            self.check_read_only(&planned)?;
            let began = Instant::now();
            self.context.explains.store(true, Ordering::Relaxed);
            let counted = self
                .counted((query, prepared.depth), &planned, parameters)
                .await;
            self.context.explains.store(false, Ordering::Relaxed);
            let Counted {
                rows,
                groups,
                operators,
            } = counted?;
            let milliseconds = |time: std::time::Duration| time.as_secs_f64() * 1000.0;
            let facts = &mut shown.facts;
            if let Some(operators) = operators {
                if matches!(planned.bound.plan, Plan::Short(_)) {
                    shown.went_on = true;
                    facts.push(("Path taken", "analytical, after a try".to_owned()));
                }
                shown.operators = operators;
            }
            facts.push(("Rows", rows.to_string()));
            if groups.groups > 0 {
                let GroupCounts { groups, skipped } = groups;
                facts.push(("Row Groups", format!("{groups}, skipped: {skipped}")));
            }
            let planning = format!("{:.3} ms", milliseconds(planning));
            facts.push(("Planning Time", planning));
            let took = format!("{:.3} ms", milliseconds(began.elapsed()));
            facts.push(("Execution Time", took));
        }
        let lines = crate::stack::with_room(prepared.depth, || match explain.json {
            true => vec![shown.json()],
            false => shown.lines(),
        });
        let table: Vec<Vec<String>> = lines.into_iter().map(|line| vec![line]).collect();
        send_texts(&[explain_column(explain)], &table, run, client);
        messages::command_complete(&mut client.out, "EXPLAIN");
        Ok(())
    }

    /// Runs the statement, and counts its rows instead of sending them.
    async fn counted(
        &mut self,
        (query, depth): (&Query, u32),
        planned: &Planned,
        parameters: &[Value],
    ) -> Result<Counted> {
        let mut rows = RowWriter::values();
        // It may go on elsewhere than it began.
        let answer = boxed(self.answer_now(query, planned, parameters, &mut rows)).await?;
        let mut counted = Counted::default();
        let mut stream = match answer {
            Answer::Whole(count) => {
                counted.rows = count;
                return Ok(counted);
            }
            Answer::Stream(stream) => stream,
            Answer::Kept(_) => {
                return Err(SqlError::internal("EXPLAIN of rows that calls make"));
            }
        };
        let options = self.options();
        loop {
            let taken = self.next_values(&mut stream, 1024, &options).await?.len();
            if taken == 0 {
                counted.groups = stream.group_counts();
                let operators = || stream.operators();
                counted.operators = Some(crate::stack::with_room(depth, operators));
                return Ok(counted);
            }
            counted.rows += taken as u64;
        }
    }
}

/// What came of a statement.
#[derive(Default)]
struct Counted {
    rows: u64,
    groups: GroupCounts,
    /// The operators of the analytical path, if it went there.
    operators: Option<Vec<String>>,
}

#[cold]
fn nothing_to_explain() -> SqlError {
    SqlError::unsupported(
        "EXPLAIN of a command that is neither a query nor a change of rows is not supported",
        "Explain the query itself.",
    )
}
