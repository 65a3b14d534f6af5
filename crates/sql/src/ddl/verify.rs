//! Do the rows that are there satisfy a new constraint? All of them are read
//! at the transaction's snapshot, in bounded memory.

use std::sync::Arc;

use thermocline_engine::{Table, TableDef};
use thermocline_values::value::ValueRef;

use super::Definition;
use crate::error::{Result, SqlError};
use crate::expr::{EvalContext, Expr, RowAccess};

/// The columns of a row as it is stored.
pub(super) struct Stored<'a> {
    pub(super) table: &'a Table,
    pub(super) tuple: &'a [u8],
}

impl RowAccess for Stored<'_> {
    fn column(&self, column: usize) -> ValueRef<'_> {
        self.table.value(self.tuple, column)
    }
}

impl Definition<'_> {
    /// 23502 if a row has NULL in the column.
    pub(super) async fn verify_not_null(
        &mut self,
        table: &Arc<Table>,
        column: usize,
    ) -> Result<()> {
        match self.has_null(table, column).await? {
            false => Ok(()),
            true => Err(contains_null(table, column)),
        }
    }

    /// Whether a row has NULL in the column.
    pub(super) async fn has_null(&mut self, table: &Arc<Table>, column: usize) -> Result<bool> {
        self.any_row(table, |tuple| {
            Ok(matches!(table.value(tuple, column), ValueRef::Null))
        })
        .await
    }

    /// 23514 if a row violates the condition.
    pub(super) async fn verify_check(
        &mut self,
        table: &Arc<Table>,
        name: &str,
        condition: &Expr,
    ) -> Result<()> {
        if !self.some_row_is_not(table, condition).await? {
            return Ok(());
        }
        Err(SqlError::new(
            "23514",
            format!(
                "check constraint \"{name}\" of relation \"{}\" is violated by some row",
                table.name
            ),
        )
        .with_table(&table.schema, &table.name)
        .with_constraint(name))
    }

    /// Whether the condition is false of some row.
    pub(super) async fn some_row_is_not(
        &mut self,
        table: &Arc<Table>,
        condition: &Expr,
    ) -> Result<bool> {
        let session = self.session;
        let (now_us, styles) = (self.now_us, self.styles);
        self.any_row(table, |tuple| {
            let context = EvalContext {
                parameters: &[],
                now_us,
                session,
                styles,
                outer: None,
            };
            let row = Stored { table, tuple };
            // NULL satisfies a CHECK.
            Ok(condition.truth(&row, &context)? == Some(false))
        })
        .await
    }

    /// Whether some row of the table is as `matches` says.
    pub(super) async fn any_row(
        &mut self,
        table: &Arc<Table>,
        matches: impl Fn(&[u8]) -> Result<bool> + Send + Sync,
    ) -> Result<bool> {
        // Rows that the transaction is too old to see, too.
        let snapshot = self.txn.snapshot_of_now()?;
        for partition in 0..self.db.partitions() {
            let mut scan = snapshot.scan(table, partition);
            loop {
                let mut found = Ok(false);
                let more = scan
                    .next_chunk(&mut |_, tuple| {
                        if let Ok(false) = found {
                            found = matches(tuple);
                        }
                    })
                    .await?;
                if found? {
                    return Ok(true);
                }
                if !more {
                    break;
                }
                self.options.cancel.check()?;
            }
        }
        Ok(false)
    }
}

/// 23502 for a column that takes no NULL and of which a row has one.
#[cold]
pub(super) fn contains_null(table: &TableDef, column: usize) -> SqlError {
    let name = &table.columns[column].name;
    let message = format!(
        "column \"{name}\" of relation \"{}\" contains null values",
        table.name
    );
    SqlError::new("23502", message)
        .with_table(&table.schema, &table.name)
        .with_column(name.clone())
}
