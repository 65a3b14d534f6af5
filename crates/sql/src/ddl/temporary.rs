//! Dropping what is temporary, whoever it belongs to, with all that hangs on it: when its session
//! ends, at a commit that drops it, and what was left behind by a crash.

use std::sync::Arc;

use thermocline_engine::ddl::Change;
use thermocline_engine::{Database, RunOptions, Transaction};

use super::dependents::{dependents, drop_views};
use crate::error::Result;

/// Drops tables and the views that read them.
///
/// # Errors
/// Those of the engine; the transaction is to be rolled back then.
pub(crate) async fn drop_tables_with_all(
    db: &Arc<Database>,
    txn: &mut Transaction,
    options: &RunOptions,
    tables: &[u32],
) -> Result<()> {
    db.begin_ddl(txn)?;
    let views = dependents(&txn.catalog(), tables, &|_, _| true);
    let views: Vec<u32> = views.iter().map(|one| one.view.oid).collect();
    drop_views(db, txn, options, &views).await?;
    for table in tables {
        db.ddl(txn, options, Change::DropTable(*table)).await?;
    }
    Ok(())
}

/// Drops a schema and what is in it, if it is there.
///
/// # Errors
/// Those of the engine; the transaction is to be rolled back then.
pub(crate) async fn drop_schema_with_all(
    db: &Arc<Database>,
    txn: &mut Transaction,
    options: &RunOptions,
    schema: &str,
) -> Result<()> {
    db.begin_ddl(txn)?;
    let catalog = txn.catalog();
    if catalog.schema(schema).is_none() {
        return Ok(());
    }
    let tables = catalog.tables.values();
    let tables: Vec<u32> = tables
        .filter(|table| table.schema == schema)
        .map(|table| table.oid)
        .collect();
    drop_tables_with_all(db, txn, options, &tables).await?;
    let catalog = txn.catalog();
    let views = catalog.views.values();
    let views: Vec<u32> = views
        .filter(|view| view.schema == schema)
        .map(|view| view.oid)
        .collect();
    drop_views(db, txn, options, &views).await?;
    // Those that a dropped table owned are gone with it.
    let sequences = catalog.sequences.values();
    for sequence in sequences.filter(|sequence| sequence.schema == schema) {
        let change = Change::DropSequence(sequence.oid);
        db.ddl(txn, options, change).await?;
    }
    let change = Change::DropSchema(schema.to_owned());
    Ok(db.ddl(txn, options, change).await?)
}
