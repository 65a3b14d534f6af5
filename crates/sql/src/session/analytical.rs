//! The way to the analytical side, and what stands in its place in a build
//! without it. A result is a stream; nothing here holds more than a batch.

use std::sync::Arc;

use thermocline_engine::{Catalog, Charge, GroupCounts, RunOptions, ScanNotes, Snapshot};
use thermocline_values::value::Value;

use super::context::SessionContext;
use super::engine::Engine;
use crate::analysis::Own;
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
    pub(super) context: &'a Arc<SessionContext>,
    pub(super) typed: &'a Arc<TypedQuery>,
    pub(super) catalog: &'a Arc<Catalog>,
    /// What its session alone shows.
    pub(super) own: Arc<Own>,
}

/// What a query is let in with.
#[cfg_attr(
    not(feature = "analytics"),
    expect(dead_code, reason = "without the analytical side it is only refused")
)]
pub(crate) struct Admitted {
    /// What it sees.
    pub(crate) snapshot: Snapshot,
    /// Its memory.
    pub(crate) charge: Charge,
    /// Where it says what it has read.
    pub(crate) notes: Option<Arc<ScanNotes>>,
}

#[cfg(feature = "analytics")]
mod present {
    use std::sync::atomic::Ordering;

    use super::{
        Admitted, AnalyticalQuery, Arc, Charge, GroupCounts, OutputColumn, Result, RowWriter,
        RunOptions, SessionContext, Value,
    };
    use crate::analysis::{Numbers, SessionFacts};
    use crate::analytics::RowStream;
    use crate::expr::SessionInfo;

    /// The rows of an analytical query, and the session that draws numbers for them.
    pub(in crate::session) struct AnalyticalRows(RowStream, Arc<SessionContext>);

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
            let count = self.0.next_batch(rows, rows_max).await?;
            self.1.keep_numbers(RunOptions::new).await?;
            Ok(count)
        }

        /// Up to `rows_max` further rows as values.
        pub(in crate::session) async fn next_values(
            &mut self,
            rows_max: usize,
        ) -> Result<Vec<Vec<Value>>> {
            let values = self.0.next_values(rows_max).await?;
            self.1.keep_numbers(RunOptions::new).await?;
            Ok(values)
        }

        /// Its operators with what they counted, where EXPLAIN asks.
        pub(in crate::session) fn operators(&self) -> Vec<String> {
            self.0.operators()
        }

        /// Row groups of column tables that were come to, and those that were passed over.
        pub(in crate::session) fn group_counts(&self) -> GroupCounts {
            self.0.group_counts()
        }
    }

    impl AnalyticalQuery<'_> {
        /// What it is about to need.
        pub(in crate::session) fn prepare(&self) -> Result<Needs> {
            let analytics = &self.engine.analytics;
            Ok(Needs {
                facts: self.facts()?,
                turn_bytes: self.typed.needs_turn().then(|| analytics.turn_bytes()),
                crowded: analytics.is_crowded(),
            })
        }

        /// Begins to run, with what it was let in with, where it needed to be.
        pub(in crate::session) async fn rows(
            &self,
            needs: &Needs,
            parameters: &[Value],
            admitted: Option<Admitted>,
        ) -> Result<AnalyticalRows> {
            let analytics = &self.engine.analytics;
            let (typed, catalog) = (self.typed, self.catalog);
            let stream = analytics.execute(typed, catalog, parameters, &needs.facts, admitted);
            let stream = stream.await?;
            for change in stream.setting_changes() {
                let value = std::slice::from_ref(&change.value);
                self.context.set(&change.name, Some(value), change.local)?;
            }
            Ok(AnalyticalRows(stream, Arc::clone(self.context)))
        }

        /// The plan, one line a row.
        pub(in crate::session) async fn explain(&self) -> Result<Vec<String>> {
            let analytics = &self.engine.analytics;
            let (typed, catalog) = (self.typed, self.catalog);
            analytics.explain(typed, catalog, &self.facts()?).await
        }

        fn facts(&self) -> Result<SessionFacts> {
            let facts = facts(self.context, self.engine)?;
            let context: Arc<dyn SessionInfo> = self.context.clone();
            Ok(SessionFacts {
                own: Arc::clone(&self.own),
                numbers: Some(Numbers(context)),
                ..facts
            })
        }
    }

    fn facts(context: &SessionContext, engine: &super::Engine) -> Result<SessionFacts> {
        let (search_path, creation_path, settings, styles) = context.settings(|settings| {
            (
                settings.search_path(),
                settings.creation_path(),
                settings.clone(),
                settings.styles(),
            )
        });
        Ok(SessionFacts {
            actor: context.actor()?,
            session_user: context.session_user(),
            database: context.database.clone(),
            search_path: search_path.to_vec(),
            creation_path: creation_path.to_vec(),
            process_id: context.process_id,
            trigger_depth: context.triggers_around(),
            explains: context.explains.load(Ordering::Relaxed),
            now_us: context.transaction_us(),
            styles,
            settings: Some(Arc::new(settings)),
            transactions: engine.sessions.transactions(),
            own: Arc::default(),
            sessions: Some(Arc::clone(&engine.sessions)),
            numbers: None,
        })
    }
}

#[cfg(not(feature = "analytics"))]
mod absent {
    use super::{
        Admitted, AnalyticalQuery, Arc, Charge, GroupCounts, OutputColumn, Result, RowWriter, Value,
    };
    use crate::error::SqlError;

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

        pub(in crate::session) fn operators(&self) -> Vec<String> {
            match *self {}
        }

        pub(in crate::session) fn group_counts(&self) -> GroupCounts {
            match *self {}
        }
    }

    fn refusal() -> SqlError {
        SqlError::unsupported(
            "joins, aggregates and other large queries are not supported in a build without \"analytics\"",
            "Build with the feature \"analytics\".",
        )
    }

    impl AnalyticalQuery<'_> {
        pub(in crate::session) fn prepare(&self) -> Result<Needs> {
            Err(refusal())
        }

        pub(in crate::session) async fn rows(
            &self,
            _: &Needs,
            _: &[Value],
            _: Option<Admitted>,
        ) -> Result<AnalyticalRows> {
            Err(refusal())
        }

        pub(in crate::session) async fn explain(&self) -> Result<Vec<String>> {
            Err(refusal())
        }
    }
}

#[cfg(not(feature = "analytics"))]
pub(super) use absent::AnalyticalRows;
#[cfg(feature = "analytics")]
pub(super) use present::AnalyticalRows;
