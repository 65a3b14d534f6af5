//! EXPLAIN: the plan, which path the statement takes and why. With ANALYZE the
//! statement runs, its changes included, and its rows are counted.

use std::sync::Arc;
use std::time::Instant;

use thermocline_engine::GroupCounts;
use thermocline_values::types::DataType;

use super::analytical::AnalyticalQuery;
use super::prepared::Prepared;
use super::run::{Answer, Run, boxed};
use super::utility::send_texts;
use super::{Client, Session};
use crate::error::{Result, SqlError};
use crate::messages;
use crate::output::{OutputColumn, RowWriter};
use crate::parse::statement::{Explain, Statement};
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
                let planned = self.plan(&prepared, query).await?;
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
        if planned.calls.is_some() {
            return Err(SqlError::unsupported(
                "EXPLAIN of a statement that calls a function of PL/pgSQL is not supported",
                "Explain the statements of the function one by one.",
            ));
        }
        let planning = planning.elapsed();
        let mut lines = planned.bound.plan.explain();
        if let Plan::Analytical { typed, .. } = &planned.bound.plan {
            let analytical = AnalyticalQuery {
                engine: &self.engine,
                context: &self.context,
                typed,
                catalog: &planned.catalog,
                own: Arc::default(),
            };
            let mut plan = analytical.explain().await?;
            plan.append(&mut lines);
            lines = plan;
        }
        if explain.analyze {
            self.check_read_only(&planned)?;
            let began = Instant::now();
            let mut groups = GroupCounts::default();
            let mut rows = RowWriter::values();
            // It may go on elsewhere than it began.
            let answer = boxed(self.answer_now(query, &planned, parameters, &mut rows)).await?;
            let count = match answer {
                Answer::Whole(count) => count,
                Answer::Stream(mut stream) => {
                    if matches!(planned.bound.plan, Plan::Short(_)) {
                        lines.push("Path taken: analytical, after a try".to_owned());
                    }
                    let options = self.options();
                    let mut count = 0;
                    loop {
                        let next = stream.next_values(1024);
                        let taken = self.engine.db.interruptible(&options, next).await??.len();
                        if taken == 0 {
                            groups = stream.group_counts();
                            break count;
                        }
                        count += taken as u64;
                    }
                }
            };
            let milliseconds = |time: std::time::Duration| time.as_secs_f64() * 1000.0;
            lines.push(format!("Rows: {count}"));
            if groups.groups > 0 {
                let GroupCounts { groups, skipped } = groups;
                lines.push(format!("Row Groups: {groups}, skipped: {skipped}"));
            }
            lines.push(format!("Planning Time: {:.3} ms", milliseconds(planning)));
            lines.push(format!(
                "Execution Time: {:.3} ms",
                milliseconds(began.elapsed())
            ));
        }
        let columns = [OutputColumn::scalar("QUERY PLAN", DataType::Text)];
        let table: Vec<Vec<String>> = lines.into_iter().map(|line| vec![line]).collect();
        send_texts(&columns, &table, run, client);
        messages::command_complete(&mut client.out, "EXPLAIN");
        Ok(())
    }
}

#[cold]
fn nothing_to_explain() -> SqlError {
    SqlError::unsupported(
        "EXPLAIN of a command that is neither a query nor a change of rows is not supported",
        "Explain the query itself.",
    )
}
