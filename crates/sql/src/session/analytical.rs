//! The way to the analytical side, and what stands in its place in a build
//! without it. A result is a stream; nothing here holds more than a batch.

use std::sync::Arc;

use sqlparser::ast;
use thermocline_engine::{Catalog, Snapshot};
use thermocline_storage::value::Value;

use super::context::SessionContext;
use super::engine::Engine;
use super::prepared::Planned;
use crate::error::Result;
use crate::output::{OutputColumn, RowWriter};
use crate::typed::TypedQuery;

/// An analytical query, with all it is run with.
#[cfg_attr(
    not(feature = "analytics"),
    expect(dead_code, reason = "without the analytical side it is only refused")
)]
pub(super) struct AnalyticalQuery<'a> {
    pub(super) engine: &'a Engine,
    pub(super) context: &'a SessionContext,
    pub(super) statement: &'a ast::Statement,
    /// The query, where it was analysed already.
    pub(super) typed: Option<&'a Arc<TypedQuery>>,
    pub(super) catalog: &'a Arc<Catalog>,
    pub(super) declared: &'a [u32],
}

#[cfg(feature = "analytics")]
mod present {
    use thermocline_engine::Charge;
    use thermocline_storage::types::DataType;

    use super::super::prepared::parameter_oids;
    use super::{
        AnalyticalQuery, Arc, OutputColumn, Planned, Result, RowWriter, SessionContext, Snapshot,
        Value,
    };
    use crate::analytics::{RowStream, SessionFacts};
    use crate::error::SqlError;

    /// The rows of an analytical query.
    pub(in crate::session) struct AnalyticalRows(RowStream);

    /// What a query needs before it runs.
    pub(in crate::session) struct Needs {
        facts: SessionFacts,
        /// None: it only reads catalogs, and needs no turn.
        pub(in crate::session) turn_bytes: Option<u64>,
        /// Operators of others have much memory.
        pub(in crate::session) crowded: bool,
    }

    impl AnalyticalRows {
        /// What the rows consist of.
        pub(in crate::session) fn columns(&self) -> &[OutputColumn] {
            self.0.columns()
        }

        /// The same, for others to keep.
        pub(in crate::session) fn shared_columns(&self) -> Arc<[OutputColumn]> {
            Arc::clone(self.0.columns())
        }

        /// Whether it has a turn, and what belongs to one.
        pub(in crate::session) fn is_live(&self) -> bool {
            self.0.is_live()
        }

        /// Nobody reads for a while.
        pub(in crate::session) fn rest(&mut self) {
            self.0.rest();
        }

        /// A part of what its turn is charged, the first time.
        pub(in crate::session) fn set_aside(&mut self, bytes: u64) -> Option<Charge> {
            self.0.set_aside(bytes)
        }

        /// Writes up to `rows_max` further rows, fewer where they are long; 0 when there are
        /// no more.
        pub(in crate::session) async fn next(
            &mut self,
            rows: &mut RowWriter,
            rows_max: usize,
        ) -> Result<usize> {
            self.0.next_batch(rows, rows_max).await
        }

        /// Up to `rows_max` further rows as values.
        pub(in crate::session) async fn next_values(
            &mut self,
            rows_max: usize,
        ) -> Result<Vec<Vec<Value>>> {
            self.0.next_values(rows_max).await
        }
    }

    impl AnalyticalQuery<'_> {
        /// Settles the parameters and columns of a plan.
        pub(in crate::session) async fn describe(&self, planned: &mut Planned) -> Result<()> {
            let (parameters, columns) = self
                .engine
                .analytics
                .describe(
                    self.statement,
                    self.catalog,
                    &self.declared(),
                    &self.facts()?,
                )
                .await?;
            planned.parameter_oids = parameter_oids(&parameters, self.declared);
            planned.parameters = parameters;
            planned.columns = Some(Arc::from(columns));
            Ok(())
        }

        /// What it is about to need.
        pub(in crate::session) fn prepare(&self) -> Result<Needs> {
            let facts = self.facts()?;
            // What reads catalogs has a thread of its own.
            let turn_bytes = match self.typed {
                Some(_) => None,
                None => Some(self.engine.analytics.turn_bytes()),
            };
            let crowded = self.engine.analytics.is_crowded();
            Ok(Needs {
                facts,
                turn_bytes,
                crowded,
            })
        }

        /// Begins to run, with the turn that it needed.
        pub(in crate::session) async fn rows(
            &self,
            needs: &Needs,
            parameters: &[Value],
            snapshot: Snapshot,
            turn: Option<Charge>,
        ) -> Result<AnalyticalRows> {
            let analytics = &self.engine.analytics;
            let stream = match (self.typed, turn) {
                (Some(typed), _) => {
                    analytics
                        .execute_typed(typed, self.catalog, parameters, &needs.facts)
                        .await?
                }
                (None, Some(turn)) => {
                    analytics
                        .execute(
                            self.statement,
                            self.catalog,
                            &self.declared(),
                            parameters,
                            &needs.facts,
                            (snapshot, turn),
                        )
                        .await?
                }
                (None, None) => return Err(SqlError::internal("a statement without a turn")),
            };
            for change in stream.setting_changes() {
                let value = std::slice::from_ref(&change.value);
                self.context.set(&change.name, Some(value), change.local)?;
            }
            Ok(AnalyticalRows(stream))
        }

        /// The plan, one line a row.
        pub(in crate::session) async fn explain(&self) -> Result<Vec<String>> {
            if let Some(typed) = self.typed {
                let analytics = &self.engine.analytics;
                return analytics
                    .explain_typed(typed, self.catalog, &self.facts()?)
                    .await;
            }
            self.engine
                .analytics
                .explain(
                    self.statement,
                    self.catalog,
                    &self.declared(),
                    &self.facts()?,
                )
                .await
        }

        fn declared(&self) -> Vec<Option<DataType>> {
            self.declared
                .iter()
                .map(|oid| DataType::from_oid(*oid, -1))
                .collect()
        }

        fn facts(&self) -> Result<SessionFacts> {
            facts(self.context, self.engine)
        }
    }

    fn facts(context: &SessionContext, engine: &super::Engine) -> Result<SessionFacts> {
        let (search_path, settings) =
            context.settings(|settings| (settings.search_path(), settings.all()));
        let actor = context.actor()?;
        let mut activity = engine.sessions.activity();
        for session in &mut activity {
            session.is_visible = actor.may_read_statements_of(&session.user);
        }
        Ok(SessionFacts {
            actor,
            session_user: context.session_user(),
            database: context.database.clone(),
            search_path: search_path.to_vec(),
            process_id: context.process_id,
            now_us: context.transaction_us(),
            settings: Arc::new(
                settings
                    .into_iter()
                    .map(|(name, value, description)| (name, value, description.to_owned()))
                    .collect(),
            ),
            activity: Arc::new(activity),
            transactions: engine.sessions.transactions(),
            sessions: Some(Arc::clone(&engine.sessions)),
        })
    }
}

#[cfg(not(feature = "analytics"))]
mod absent {
    use thermocline_engine::Charge;

    use super::{AnalyticalQuery, Arc, OutputColumn, Planned, Result, RowWriter, Snapshot, Value};
    use crate::error::SqlError;
    use crate::plan::Plan;

    /// What a query needs before it runs; none runs in this build.
    pub(in crate::session) struct Needs {
        pub(in crate::session) turn_bytes: Option<u64>,
        pub(in crate::session) crowded: bool,
    }

    /// The rows of an analytical query; there are none in this build.
    pub(in crate::session) enum AnalyticalRows {}

    impl AnalyticalRows {
        pub(in crate::session) fn columns(&self) -> &[OutputColumn] {
            match *self {}
        }

        pub(in crate::session) fn shared_columns(&self) -> Arc<[OutputColumn]> {
            match *self {}
        }

        pub(in crate::session) fn is_live(&self) -> bool {
            match *self {}
        }

        pub(in crate::session) fn rest(&mut self) {
            match *self {}
        }

        pub(in crate::session) fn set_aside(&mut self, _: u64) -> Option<Charge> {
            match *self {}
        }

        pub(in crate::session) async fn next(
            &mut self,
            _: &mut RowWriter,
            _: usize,
        ) -> Result<usize> {
            match *self {}
        }

        pub(in crate::session) async fn next_values(
            &mut self,
            _: usize,
        ) -> Result<Vec<Vec<Value>>> {
            match *self {}
        }
    }

    fn refusal(reason: &str) -> SqlError {
        SqlError::unsupported("this build has no analytical queries")
            .with_detail(format!("The short path does not run {reason}."))
            .with_hint("Build with the feature \"analytics\".")
    }

    impl AnalyticalQuery<'_> {
        pub(in crate::session) async fn describe(&self, planned: &mut Planned) -> Result<()> {
            Err(match &planned.bound.plan {
                Plan::Analytical { reason, .. } => refusal(reason),
                Plan::Short(_) => SqlError::internal("a short plan is described when bound"),
            })
        }

        pub(in crate::session) fn prepare(&self) -> Result<Needs> {
            Err(refusal("it"))
        }

        pub(in crate::session) async fn rows(
            &self,
            _: &Needs,
            _: &[Value],
            _: Snapshot,
            _: Option<Charge>,
        ) -> Result<AnalyticalRows> {
            Err(refusal("it"))
        }

        pub(in crate::session) async fn explain(&self) -> Result<Vec<String>> {
            Err(refusal("it"))
        }
    }
}

#[cfg(not(feature = "analytics"))]
pub(super) use absent::AnalyticalRows;
#[cfg(feature = "analytics")]
pub(super) use present::AnalyticalRows;
