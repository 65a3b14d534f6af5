//! Calling a procedure by its name: one transaction, tried again when the catalog changed meanwhile.

use thermocline_values::value::Value;

use crate::database::Database;
use crate::format::command;
use crate::ground::error::{Error, Result};
use crate::ground::scope::Scope;
use crate::procedure::{Procedure, UNIX_TO_2000_US, no_such_procedure};
use crate::transaction::RunOptions;

impl Database {
    /// Makes a procedure callable. One that is declared deterministic must be in
    /// [`crate::Config::procedures`] when the database is opened next: its
    /// commands may be in the log.
    ///
    /// # Errors
    /// As [`Procedures::register`](crate::Procedures::register).
    pub fn register_procedure(&self, procedure: Procedure) -> Result<()> {
        self.procedures().register(procedure)
    }

    /// Calls a procedure: one transaction. Returns when its commit, and every
    /// commit whose result it saw, is durable as the options ask.
    ///
    /// # Errors
    /// 42883 if there is no such procedure with parameters for these arguments;
    /// what the body returned; what any statement may fail with. After an error
    /// nothing of the call is kept.
    pub async fn call(
        &self,
        options: &RunOptions,
        name: &str,
        arguments: &[Value],
    ) -> Result<Vec<Value>> {
        let procedure = self
            .procedures()
            .get(name)
            .ok_or_else(|| no_such_procedure(name, arguments))?;
        let arguments = procedure.arguments(arguments)?;
        let now_us = self.clock().unix_time_us() - UNIX_TO_2000_US;
        loop {
            let planned = self.catalog();
            let scope = procedure.scope(&planned, &arguments)?;
            let command = match scope {
                Scope::One(partition) if procedure.deterministic => {
                    Some(command::head(partition, now_us, name, &arguments)?)
                }
                _ => None,
            };
            let called = self
                .one_shot(options, scope, |access| {
                    // Under the lock it stays as it is.
                    let catalog = access.catalog();
                    if catalog.version != planned.version {
                        return Err(Error::StalePlan);
                    }
                    access.log_as(command.clone());
                    procedure.run(access, &catalog, now_us, &arguments)
                })
                .await;
            match called {
                // The tables changed before the partitions were held.
                Err(Error::StalePlan) if self.catalog().version != planned.version => {}
                other => return other,
            }
        }
    }
}
