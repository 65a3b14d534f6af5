//! DROP COLUMN. The column keeps its place in the definition and in the tuples there are, so no
//! row is written anew, unless the rows lie by its values.

use std::sync::Arc;

use thermocline_engine::authority::Object;
use thermocline_engine::comment::CommentOn;
use thermocline_engine::ddl::Change;
use thermocline_engine::{Catalog, Table, TriggerDef};

use super::create_table::primary_key;
use super::dependents::quote_ident;
use super::index::indexes_over;
use super::trigger::needs_column;
use super::{Definition, mentioned};
use crate::error::{Result, SqlError};

impl Definition<'_> {
    /// Drops a column with the indexes and checks over it and the sequences that it owns.
    ///
    /// # Errors
    /// 42703; 42P16 for a column of a partition key that was chosen; 2BP01 where views read it, or
    /// others are computed by it, and `cascade` is not given.
    pub(super) async fn drop_column(
        &mut self,
        table: &Arc<Table>,
        name: &str,
        if_exists: bool,
        cascade: bool,
    ) -> Result<()> {
        let Some(column) = table.column_named(name) else {
            if if_exists {
                let relation = &table.name;
                self.notice(
                    "00000",
                    format!(
                        "column \"{name}\" of relation \"{relation}\" does not exist, skipping"
                    ),
                );
                return Ok(());
            }
            return Err(super::alter_table::no_column(name, &table.def));
        };
        let chosen = table.options.get("partition_key");
        let divides = table.partitioned.as_ref();
        if chosen.is_some_and(|key| key.split(',').any(|part| part.trim() == name))
            || divides.is_some_and(|by| by.columns.contains(&column))
        {
            let message = format!(
                "cannot drop column \"{name}\" because it is part of the partition key of relation \"{}\"",
                table.name
            );
            return Err(SqlError::new("42P16", message));
        }
        let oid = table.oid;
        super::rights::check(
            &Change::AlterTable(table.def.clone()),
            &self.actor()?,
            &self.catalog(),
        )?;
        let what = format!("column {name} of table {}", quote_ident(&table.name));
        let needs = |of: &Table, trigger: &TriggerDef| {
            Ok(of.oid == oid && needs_column(of, trigger, column)?)
        };
        self.drop_triggers_of(&what, needs, cascade).await?;
        let table = &self.current(oid)?;
        self.drop_computed(table, column, cascade).await?;
        let table = &self.current(oid)?;
        self.drop_readers(table, column, cascade).await?;
        let own = table.foreign_keys.iter();
        let own = own.filter(|key| key.columns.contains(&column));
        for key in own {
            self.drop_foreign_key(oid, &key.name).await?;
        }
        let what = format!("column {name} of table {}", table.name);
        for index in indexes_over(table, column)? {
            self.free_of_need(table, index, &what, cascade).await?;
            self.drop_index(oid, index).await?;
        }
        let table = self.current(oid)?;
        let mut def = table.def.clone();
        let kept = def.checks.iter().map(|check| {
            let columns = mentioned::columns(&check.expression, &table.def)?;
            Ok(!columns.contains(&column))
        });
        let mut kept = kept.collect::<Result<Vec<bool>>>()?.into_iter();
        def.checks.retain(|_| kept.next().unwrap_or(true));
        let lies_by_it = def.partition_key.contains(&column);
        if lies_by_it {
            def.partition_key = primary_key(&def).to_vec();
        }
        def.drop_column(column);
        match lies_by_it {
            true => self.rewrite(&table, def, &[], "ALTER TABLE").await?,
            false => self.apply(Change::AlterTable(def)).await?,
        }
        self.forget_column(oid, column, cascade).await
    }

    /// What else the catalog has of a column that is gone: its sequences, comment and rights.
    async fn forget_column(&mut self, oid: u32, column: usize, cascade: bool) -> Result<()> {
        let catalog = self.catalog();
        let owned = catalog.sequences.values();
        let owned = owned.filter(|sequence| sequence.owned_by == Some((oid, column)));
        for sequence in owned.map(|sequence| sequence.oid) {
            self.drop_sequence(sequence, cascade).await?;
        }
        let on = CommentOn::Relation {
            oid,
            column: column as u32 + 1,
        };
        if catalog.comments.contains_key(&on) {
            self.apply(Change::Comment { on, text: None }).await?;
        }
        let has_rights = |catalog: &Catalog| {
            let rights = catalog.authority.rights(&Object::Table(oid));
            rights.is_some_and(|rights| rights.columns.contains_key(&column))
        };
        if has_rights(&catalog) {
            self.lock_authority().await?;
            let mut authority = (*self.catalog().authority).clone();
            let rights = authority.rights_mut(Object::Table(oid));
            rights.columns.remove(&column);
            self.authorize(authority).await?;
        }
        Ok(())
    }
}
