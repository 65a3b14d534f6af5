//! The way to the analytical side, and what stands in its place in a build
//! without it. A result is a stream; nothing here holds more than a batch.

use std::sync::Arc;

use thermocline_engine::{Catalog, Charge, GroupCounts, RunOptions, ScanNotes, Snapshot};
use thermocline_values::value::Value;

use super::Session;
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
        RunOptions, Session, SessionContext, Value,
    };
    use crate::analysis::{Calls, Numbers, SessionFacts};
    use crate::analytics::RowStream;
    use crate::error::SqlError;
    use crate::expr::SessionInfo;
    use crate::session::calling::AskedCalls;
    use crate::session::kept::KeptRows;
    use thermocline_engine::ChargeKind;

    /// Rows that are kept at a time, of a query whose functions the session calls.
    const KEPT_ROWS: usize = 256;

    /// The rows of an analytical query, the session that draws numbers for them, and the calls that the
    /// query asks for.
    pub(in crate::session) struct AnalyticalRows(
        RowStream,
        Arc<SessionContext>,
        Option<AskedCalls>,
    );

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
            self.calls_nothing()?;
            let count = self.0.next_batch(rows, rows_max).await?;
            self.1.keep_numbers(RunOptions::new).await?;
            Ok(count)
        }

        /// Up to `rows_max` further rows as values.
        pub(in crate::session) async fn next_values(
            &mut self,
            rows_max: usize,
        ) -> Result<Vec<Vec<Value>>> {
            self.calls_nothing()?;
            let values = self.0.next_values(rows_max).await?;
            self.1.keep_numbers(RunOptions::new).await?;
            Ok(values)
        }

        /// Calls are made by whoever takes the rows: here nobody would.
        fn calls_nothing(&self) -> Result<()> {
            match &self.2 {
                None => Ok(()),
                Some(_) => Err(SqlError::internal("calls that nobody makes")),
            }
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
            Ok(AnalyticalRows(stream, Arc::clone(self.context), None))
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

    impl Session {
        /// Has a query run whose functions are called meanwhile: what it was let in with.
        pub(in crate::session) async fn calling_rows(
            &mut self,
            query: &AnalyticalQuery<'_>,
            (mut needs, options): (Needs, &RunOptions),
            parameters: &[Value],
            admitted: Option<Admitted>,
        ) -> Result<AnalyticalRows> {
            let (mut calls, asking) = AskedCalls::new();
            needs.facts.calls = Some(Calls(asking));
            let rows = query.rows(&needs, parameters, admitted);
            let AnalyticalRows(stream, context, _) =
                self.with_calls(&mut calls, options, rows).await?;
            Ok(AnalyticalRows(stream, context, Some(calls)))
        }

        /// Up to `rows_max` further rows as values, as [`AnalyticalRows::next_values`]; the functions that
        /// they need are called.
        pub(in crate::session) async fn next_values(
            &mut self,
            rows: &mut AnalyticalRows,
            rows_max: usize,
            options: &RunOptions,
        ) -> Result<Vec<Vec<Value>>> {
            let Some(mut calls) = rows.2.take() else {
                let next = rows.next_values(rows_max);
                return self.engine.db.interruptible(options, next).await?;
            };
            let next = rows.next_values(rows_max);
            let values = self.with_calls(&mut calls, options, next).await;
            rows.2 = Some(calls);
            values
        }

        /// All rows of a query whose functions are called meanwhile.
        pub(in crate::session) async fn kept_of(
            &mut self,
            mut rows: AnalyticalRows,
        ) -> Result<KeptRows> {
            let spill = Arc::clone(self.engine.db.spill());
            let options = self.options();
            let mut kept = KeptRows::charged(self.account.nothing(ChargeKind::Result));
            let Some(mut calls) = rows.2.take() else {
                return Err(SqlError::internal("a query that calls nothing"));
            };
            loop {
                let mut written = RowWriter::kept();
                let next = rows.next(&mut written, KEPT_ROWS);
                if self.with_calls(&mut calls, &options, next).await? == 0 {
                    kept.seal()?;
                    return Ok(kept);
                }
                kept.append(written, &spill)?;
            }
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
            calls: None,
        })
    }
}

#[cfg(not(feature = "analytics"))]
mod absent {
    use super::{
        Admitted, AnalyticalQuery, Arc, Charge, GroupCounts, OutputColumn, Result, RowWriter,
        RunOptions, Session, Value,
    };
    use crate::error::SqlError;
    use crate::session::kept::KeptRows;

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

    impl Session {
        pub(in crate::session) async fn calling_rows(
            &mut self,
            _: &AnalyticalQuery<'_>,
            _: (Needs, &RunOptions),
            _: &[Value],
            _: Option<Admitted>,
        ) -> Result<AnalyticalRows> {
            Err(refusal())
        }

        pub(in crate::session) async fn next_values(
            &mut self,
            rows: &mut AnalyticalRows,
            _: usize,
            _: &RunOptions,
        ) -> Result<Vec<Vec<Value>>> {
            match *rows {}
        }

        pub(in crate::session) async fn kept_of(
            &mut self,
            rows: AnalyticalRows,
        ) -> Result<KeptRows> {
            match rows {}
        }
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
