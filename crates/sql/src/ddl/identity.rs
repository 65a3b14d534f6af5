//! ALTER TABLE … ALTER COLUMN … ADD GENERATED, SET GENERATED and DROP IDENTITY.

use std::sync::Arc;

use thermocline_engine::Table;
use thermocline_engine::catalog::Identity;
use thermocline_engine::ddl::Change;

use super::Definition;
use super::alter_table::column_named;
use crate::error::{Result, SqlError};
use crate::parse::sequence::SequenceOptions;
use crate::parse::statement::AlterSequence;

const fn identity(always: bool) -> Identity {
    match always {
        true => Identity::Always,
        false => Identity::ByDefault,
    }
}

/// 55000, as PostgreSQL says it of a column.
fn not_so(table: &Table, name: &str, what: &str) -> SqlError {
    let message = format!("column \"{name}\" of relation \"{}\" {what}", table.name);
    SqlError::new("55000", message)
}

impl Definition<'_> {
    pub(super) async fn add_identity(
        &mut self,
        table: &Arc<Table>,
        name: &str,
        always: bool,
        options: &SequenceOptions,
    ) -> Result<()> {
        let position = column_named(table, name)?;
        let mut def = table.def.clone();
        let column = &mut def.columns[position];
        if !column.data_type.is_integer() {
            return Err(SqlError::new(
                "22023",
                "identity column type must be smallint, integer, or bigint",
            ));
        }
        if !column.not_null {
            let what = "must be declared NOT NULL before identity can be added";
            return Err(not_so(table, name, what));
        }
        if column.identity.is_some() {
            return Err(not_so(table, name, "is already an identity column"));
        }
        if column.default.is_some() {
            return Err(not_so(table, name, "already has a default value"));
        }
        column.identity = Some(identity(always));
        let sequence =
            self.owned_sequence(&table.def, column, position, options, &mut Vec::new())?;
        self.apply(Change::CreateSequence(sequence)).await?;
        self.apply(Change::AlterTable(def)).await
    }

    pub(super) async fn set_identity(
        &mut self,
        table: &Arc<Table>,
        name: &str,
        options: &SequenceOptions,
    ) -> Result<()> {
        let position = column_named(table, name)?;
        let mut def = table.def.clone();
        let column = &mut def.columns[position];
        let (Some(old), Some(sequence)) = (column.identity, column.sequence) else {
            return Err(not_so(table, name, "is not an identity column"));
        };
        if let Some(always) = options.always {
            column.identity = Some(identity(always));
        }
        if column.identity != Some(old) {
            self.apply(Change::AlterTable(def)).await?;
        }
        let of_sequence = SequenceOptions {
            always: None,
            ..options.clone()
        };
        if of_sequence == SequenceOptions::default() {
            return Ok(());
        }
        let catalog = self.catalog();
        let sequence = catalog.sequences.get(&sequence);
        let sequence =
            sequence.ok_or_else(|| SqlError::internal("an identity's sequence is gone"))?;
        let named = [sequence.schema.clone(), sequence.name.clone()];
        let change = AlterSequence::Options(of_sequence);
        self.alter_sequence(&named, false, &change).await?;
        Ok(())
    }

    pub(super) async fn drop_identity(
        &mut self,
        table: &Arc<Table>,
        name: &str,
        if_exists: bool,
    ) -> Result<()> {
        let position = column_named(table, name)?;
        let mut def = table.def.clone();
        let column = &mut def.columns[position];
        if column.identity.take().is_none() {
            let error = not_so(table, name, "is not an identity column");
            if if_exists {
                self.notice("00000", format!("{}, skipping", error.message));
                return Ok(());
            }
            return Err(error);
        }
        let sequence = column.sequence.take();
        self.apply(Change::AlterTable(def)).await?;
        match sequence {
            Some(sequence) => self.apply(Change::DropSequence(sequence)).await,
            None => Ok(()),
        }
    }
}
