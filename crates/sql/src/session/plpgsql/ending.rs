//! COMMIT and ROLLBACK in the body of a procedure. They end the transaction of the CALL, and
//! another begins.

use super::Machine;
use crate::error::{Result, SqlError};

impl Machine<'_> {
    pub(super) async fn end_transaction(&mut self, commits: bool) -> Result<()> {
        let session = &mut *self.session;
        // Rights and settings of its own hold for one transaction.
        let is_within = self.compiled.within.is_some();
        if !session.plpgsql.may_end || session.plpgsql.depth != 1 || is_within {
            return Err(SqlError::new("2D000", "invalid transaction termination"));
        }
        if session.transaction.has_savepoints() {
            let what = if commits { "commit" } else { "roll back" };
            let message = format!("cannot {what} while a subtransaction is active");
            return Err(SqlError::new("2D000", message));
        }
        match commits {
            true => session.end_implicit().await?,
            false => {
                let (engine, context) = (&session.engine, &session.context);
                session.transaction.rollback(&engine.db, context).await;
            }
        }
        session.begin_own();
        let catalog = session.transaction.catalog(&session.engine.db);
        let began_us = session.transaction.began_us();
        session.context.begin_transaction(&catalog, began_us);
        let options = session.options();
        session.check_interrupted(&options)
    }
}
