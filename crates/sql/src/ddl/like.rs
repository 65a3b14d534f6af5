//! CREATE TABLE (LIKE other …): columns as another table or a view has them.

use std::sync::Arc;

use thermocline_engine::authority::{Object, Privileges};
use thermocline_engine::{ColumnDef, SequenceDef, Table, ViewDef};
use thermocline_query::types::domain::is_domain;

use super::check::CheckConstraint;
use super::create_table::{ColumnPart, KeyConstraint, Parts, PlainIndex};
use super::{Definition, find_relation};
use crate::bind;
use crate::error::{Result, SqlError};
use crate::parse::index::CreateIndex;
use crate::parse::sequence::SequenceOptions;
use crate::parse::table::Like;
use crate::privilege::denied;
use crate::temporary::not_others;
use crate::typed::held;

impl Definition<'_> {
    /// Adds the columns of a LIKE clause, and what it includes.
    ///
    /// # Errors
    /// 42P01 and 42809 for what is no table and no view, 42501 for what may not be read.
    pub(super) fn like(&self, like: &Like, parts: &mut Parts) -> Result<()> {
        let catalog = self.catalog();
        let Some((schema, relation)) = find_relation(&catalog, self.search_path, &like.name) else {
            return Err(SqlError::undefined_table(&like.name.join(".")));
        };
        not_others(&schema, self.search_path)?;
        if let Some(table) = catalog.table_by_name(&schema, &relation) {
            self.may_read(&Object::Table(table.oid), &relation)?;
            return self.like_table(table, like, parts);
        }
        if let Some(view) = catalog.view_by_name(&schema, &relation) {
            self.may_read(&Object::Table(view.oid), &relation)?;
            return like_view(view, parts);
        }
        let message = format!("relation \"{relation}\" is invalid in LIKE clause");
        Err(SqlError::new("42809", message)
            .with_detail("LIKE takes the columns of a table or a view."))
    }

    fn may_read(&self, object: &Object, name: &str) -> Result<()> {
        let actor = self.actor()?;
        let granted = actor.authority().privileges(actor.role(), object);
        match actor.owns(object) || granted.contains(Privileges::SELECT) {
            true => Ok(()),
            false => Err(denied("table", name)),
        }
    }

    fn like_table(&self, table: &Arc<Table>, like: &Like, parts: &mut Parts) -> Result<()> {
        let catalog = self.catalog();
        for (_, column) in table.live_columns() {
            let mut def = ColumnDef {
                domain: column.domain,
                not_null: column.not_null,
                ..ColumnDef::new(&column.name, column.data_type)
            };
            let mut sequence = None;
            if column.identity.is_some() && like.identity {
                def.identity = column.identity;
                let numbers = column.sequence.and_then(|oid| catalog.sequences.get(&oid));
                sequence = Some(numbers.map(|numbers| options(numbers)).unwrap_or_default());
            } else if column.generated {
                def.generated = like.generated;
                def.default = column.default.clone().filter(|_| like.generated);
            } else if like.defaults {
                def.default.clone_from(&column.default);
            }
            parts.columns.push(ColumnPart { def, sequence });
        }
        if like.constraints {
            parts
                .checks
                .extend(table.checks.iter().map(|check| CheckConstraint {
                    name: Some(check.name.clone()),
                    column: None,
                    expression: check.expression.clone(),
                    validated: true,
                }));
        }
        if like.indexes {
            let named = |column: &usize| table.columns[*column].name.clone();
            for index in &table.indexes {
                let mut columns = index.columns.iter();
                let computed = columns.any(|column| !table.columns[*column].is_seen());
                let plain = index.include.is_empty() && index.order.is_empty();
                let has_more = !plain || index.nulls_equal;
                if computed || (!index.constraint && has_more) {
                    let like = CreateIndex::like(&table.def, index, Vec::new());
                    parts.computed_indexes.push(like);
                    continue;
                }
                let columns = index.columns.iter().map(named).collect();
                if !index.constraint {
                    parts.indexes.push(PlainIndex {
                        columns,
                        unique: index.unique,
                        kind: index.kind,
                    });
                    continue;
                }
                parts.keys.push(KeyConstraint {
                    name: None,
                    columns,
                    include: index.include.iter().map(named).collect(),
                    primary: index.primary,
                    nulls_equal: index.nulls_equal,
                });
            }
        }
        Ok(())
    }
}

fn like_view(view: &ViewDef, parts: &mut Parts) -> Result<()> {
    for column in &view.columns {
        let data_type = match is_domain(column.type_oid) {
            true => held(column.type_oid, column.modifier)
                .ok_or_else(|| SqlError::internal("a domain of no type"))?,
            false => bind::column_type(column.type_oid, column.modifier)?,
        };
        let def = ColumnDef {
            domain: is_domain(column.type_oid).then_some(column.type_oid),
            ..ColumnDef::new(&column.name, data_type)
        };
        let sequence = None;
        parts.columns.push(ColumnPart { def, sequence });
    }
    Ok(())
}

/// What makes a sequence like this one.
fn options(numbers: &SequenceDef) -> SequenceOptions {
    SequenceOptions {
        start: Some(numbers.start),
        increment: Some(numbers.increment),
        min: Some(Some(numbers.min)),
        max: Some(Some(numbers.max)),
        cache: Some(numbers.cache),
        cycle: Some(numbers.cycle),
        ..SequenceOptions::default()
    }
}
