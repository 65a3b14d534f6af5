//! Executions counted for `pg_stat_statements`.

use std::sync::Arc;
use std::time::Instant;

use super::Session;
use super::prepared::{Kept, Prepared};
use crate::parse::Statement;
use crate::statement_statistics::Execution;

impl Session {
    /// Before a statement that is counted.
    pub(super) fn begin_count(&mut self) {
        self.rows_processed = 0;
        // What a statement that failed has left.
        let _ = self.context.reads.take();
    }

    /// What a statement that has run is counted as: EXECUTE as the statement it executed; PREPARE
    /// and DEALLOCATE not at all.
    pub(super) fn counted_as(&self, prepared: &Arc<Prepared>) -> Option<Arc<Prepared>> {
        match &prepared.statement {
            Some(Statement::Prepare { .. } | Statement::Deallocate(_)) | None => None,
            Some(Statement::Execute { name, .. }) => match self.statements.get(name) {
                Ok(Kept::Here(executed)) => Some(executed),
                _ => None,
            },
            Some(_) => Some(Arc::clone(prepared)),
        }
    }

    /// Counts an execution that went well; `is_call` is false where a portal goes on.
    pub(super) fn count_execution(&self, began: Instant, prepared: &Prepared, is_call: bool) {
        let (hot, cold) = self.context.reads.take();
        let execution = Execution {
            time: began.elapsed(),
            is_call,
            rows: self.rows_processed,
            hot,
            cold,
        };
        let query_id = prepared.query_id();
        let source = prepared.shown_text();
        self.context.settings(|settings| {
            if settings.tracks_statements() {
                self.engine.sessions.statements().count(
                    &mut self.context.statements.lock(),
                    query_id,
                    settings.role_name(),
                    &execution,
                    source,
                );
            }
        });
    }
}
