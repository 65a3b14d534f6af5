//! INSERT: rows that are written out or that a query gives, and what a conflict does.

use std::collections::BTreeSet;
use std::sync::Arc;

use thermocline_engine::authority::Privileges;
use thermocline_engine::{Identity, IndexDef, Table};
use thermocline_query::change::{Arbiter, Conflict, Given, Inference, Insert, Overriding, Source};
use thermocline_query::implied::{conjuncts, is_implied};
use thermocline_query::tree::{self, Column, Query, Target};
use thermocline_values::types::DataType;

use super::expression::Lowering;
use super::{Changer, computed, generated_always};
use crate::analysis::may_read_all;
use crate::bind::default_text;
use crate::ddl::columns_of;
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::plan::{
    ConflictPlan, ConflictUpdate, InsertPlan, InsertSource, InsertTarget, Reference, Routes,
    ShortPlan, replaces, unique_within_partition,
};
use crate::typed::{calls, held};

impl Changer<'_, '_> {
    pub(super) fn insert(
        &mut self,
        insert: Insert,
        returning: Option<Vec<Target>>,
    ) -> Result<ShortPlan> {
        let table = Arc::clone(&self.table);
        if let Some(actor) = self.context.actor {
            let catalog = self.context.catalog;
            actor.need_some_column(catalog, &table, Privileges::INSERT)?;
        }
        for column in &insert.columns {
            self.needs(*column, Privileges::INSERT)?;
        }
        let shown = returning.iter().flatten().map(|target| &target.expr);
        self.may_read(&insert.scope, shown)?;
        let scope = insert.scope;
        let source = match insert.source {
            Source::Rows(rows) => {
                let mut values = Vec::with_capacity(rows.len());
                for row in rows {
                    values.push(self.values(&insert.columns, row, insert.overriding, &scope)?);
                }
                InsertSource::Values(values)
            }
            Source::Query(query) => {
                for column in &insert.columns {
                    self.may_insert(*column, insert.overriding)?;
                }
                self.rows_of(*query)?
            }
        };
        let conflict = insert.conflict;
        let conflict = conflict.map(|conflict| self.conflict(conflict, &scope));
        let conflict = conflict.transpose()?;
        let returning = self.lifted_targets(returning, &scope)?;
        let relations = [(&*table, 0)];
        let lowering = Lowering::of_tables(&relations);
        let returning = self.returned(returning.as_deref(), &lowering)?;
        let mut target = InsertTarget {
            conflict,
            returning,
            ..self.insert_target(insert.columns)?
        };
        target.routes = Routes::of(&self.context, &target)?;
        Ok(ShortPlan::Insert(Arc::new(InsertPlan {
            target: Arc::new(target),
            source,
        })))
    }

    /// The table as what rows with values for these columns go into.
    pub(super) fn insert_target(&self, columns: Vec<usize>) -> Result<InsertTarget> {
        let table = &self.table;
        let mut defaults = Vec::new();
        for (column, def) in table.live_columns() {
            let catalog = self.context.catalog;
            let has_default = def.identity.is_some() || default_text(catalog, table, def).is_some();
            if !columns.contains(&column) && has_default {
                defaults.push((column, self.default_of(column)?));
            }
        }
        Ok(InsertTarget {
            checks: self.context.checks_of(table)?,
            unique_within_partition: unique_within_partition(table),
            references: Reference::of(self.context.catalog, table, |_| true),
            table: Arc::clone(table),
            columns,
            defaults,
            generated: self.context.generated_of(table)?,
            conflict: None,
            returning: None,
            routes: None,
        })
    }

    /// The rows that a query gives.
    fn rows_of(&self, query: Query) -> Result<InsertSource> {
        if let Some(actor) = self.planner.context.actor {
            may_read_all(&query, Some(actor), self.planner.context.catalog)?;
        }
        if let Some(flat) = self.planner.flattened(&query)
            && let Ok(plan) = self.planner.select(&flat, None)?
            && !calls(&query)
        {
            let shown = flat.columns();
            let held =
                |column: &Column| held(column.oid, column.modifier).unwrap_or(DataType::Text);
            let types = shown.iter().map(held).collect();
            let plan = ShortPlan::Select(Arc::new(plan));
            return Ok(InsertSource::Query(Arc::new(plan), types));
        }
        Ok(InsertSource::Analytical(self.planner.read_query(query)?))
    }

    /// The values of one row.
    fn values(
        &mut self,
        columns: &[usize],
        row: Vec<Given>,
        overriding: Overriding,
        scope: &Query,
    ) -> Result<Vec<Expr>> {
        let lowering = Lowering::of_no_row();
        let mut values = Vec::with_capacity(row.len());
        for (column, given) in columns.iter().zip(row) {
            let is_identity = self.table.columns[*column].identity.is_some();
            values.push(match given {
                Given::Value(mut expr) if !is_identity || overriding != Overriding::User => {
                    self.may_insert(*column, overriding)?;
                    self.planner.lift(&mut expr, scope)?;
                    lowering.row(&expr)?
                }
                _ => self.default_of(*column)?,
            });
        }
        Ok(values)
    }

    /// 428C9 for a value for a column that is always generated.
    pub(super) fn may_insert(&self, column: usize, overriding: Overriding) -> Result<()> {
        let def = &self.table.columns[column];
        if def.generated {
            return Err(given(&def.name).with_detail(computed(&def.name)));
        }
        match (def.identity, overriding) {
            (Some(Identity::Always), Overriding::None) => Err(given(&def.name)
                .with_detail(generated_always(&def.name))
                .with_hint("Use OVERRIDING SYSTEM VALUE to override.")),
            (Some(_), Overriding::User) => Err(SqlError::unsupported(
                "OVERRIDING USER VALUE with a query is not supported",
                "Leave the identity column out of the list.",
            )),
            _ => Ok(()),
        }
    }

    fn conflict(&mut self, conflict: Conflict, scope: &Query) -> Result<ConflictPlan> {
        let table = Arc::clone(&self.table);
        let arbiters = self.arbiters(&conflict.arbiter)?;
        let of_any = matches!(conflict.arbiter, Arbiter::All);
        if !matches!(conflict.arbiter, Arbiter::All) {
            // Whether it is there tells of rows.
            let indexes = arbiters.iter().map(|number| &table.indexes[*number]);
            for column in indexes.flat_map(|index| &index.columns) {
                let def = &table.columns[*column];
                match def.computed() {
                    None => self.needs(*column, Privileges::SELECT)?,
                    Some(text) => {
                        for column in columns_of(text, &table)? {
                            self.needs(column, Privileges::SELECT)?;
                        }
                    }
                }
            }
        }
        let Some(update) = conflict.update else {
            return Ok(ConflictPlan {
                arbiters,
                of_any,
                update: None,
            });
        };
        let mut assignments = update.assignments;
        self.leave_computed(&mut assignments)?;
        for (_, given) in &mut assignments {
            if let Given::Value(expr) = given {
                self.planner.lift(expr, scope)?;
            }
        }
        let mut filter = update.filter;
        if let Some(filter) = &mut filter {
            self.planner.lift(filter, scope)?;
        }
        let values = assignments.iter().filter_map(|(_, given)| match given {
            Given::Value(expr) => Some(expr),
            Given::Default => None,
        });
        // Of the row that was to be inserted, too.
        self.may_read(scope, values.chain(&filter))?;
        let relations = [(&*table, 0), (&*table, table.columns.len())];
        let lowering = Lowering::of_tables(&relations);
        let assignments = self.assigned(assignments, &lowering)?;
        let filter = filter.map(|filter| lowering.row(&filter)).transpose()?;
        let generated = self.context.generated_by(&table, &assignments)?;
        Ok(ConflictPlan {
            arbiters,
            of_any,
            update: Some(ConflictUpdate {
                replaces: filter.is_none() && replaces(&table, &assignments),
                refers: refers(&table, assignments.iter().chain(&generated)),
                assignments,
                generated,
                filter,
            }),
        })
    }
}

#[cold]
fn given(column: &str) -> SqlError {
    let message = format!("cannot insert a non-DEFAULT value into column \"{column}\"");
    SqlError::new("428C9", message)
}

/// Whether a row may refer to other rows, or be in another partition, with these columns changed.
fn refers<'c>(table: &Table, changed: impl Iterator<Item = &'c (usize, Expr)> + Clone) -> bool {
    let referring = table.foreign_keys.iter().flat_map(|key| &key.columns);
    let mut columns = referring.chain(&table.partition_key);
    columns.any(|column| changed.clone().any(|(to, _)| to == column))
}

impl Changer<'_, '_> {
    /// The unique indexes that tell a conflict.
    fn arbiters(&self, arbiter: &Arbiter) -> Result<Vec<usize>> {
        let table = &self.table;
        let indexes = table.indexes.iter().enumerate();
        let unique = indexes.filter(|(_, index)| index.unique);
        match arbiter {
            Arbiter::All => Ok(unique.map(|(number, _)| number).collect()),
            Arbiter::Of(inference) => {
                let mut found = Vec::new();
                for (number, index) in unique {
                    if self.is_meant(inference, index)? {
                        found.push(number);
                    }
                }
                match found.is_empty() {
                    false => Ok(found),
                    true => Err(SqlError::new(
                        "42P10",
                        "there is no unique or exclusion constraint matching the ON CONFLICT specification",
                    )),
                }
            }
            Arbiter::Constraint(name) => {
                let mut constraints = unique.filter(|(_, index)| index.constraint);
                let found = constraints.find(|(_, index)| index.name == **name);
                found.map(|(number, _)| vec![number]).ok_or_else(|| {
                    let message = format!(
                        "constraint \"{name}\" for table \"{}\" does not exist",
                        table.name
                    );
                    SqlError::new("42704", message)
                })
            }
        }
    }

    /// Whether ON CONFLICT means an index: it has these columns and expressions, no others, and
    /// what is said of rows implies its predicate.
    fn is_meant(&self, inference: &Inference, index: &IndexDef) -> Result<bool> {
        let table = &self.table;
        let is_seen = |column: &&usize| table.columns[**column].is_seen();
        let columns: BTreeSet<usize> = index.columns.iter().filter(is_seen).copied().collect();
        if columns != inference.columns.iter().copied().collect() {
            return Ok(false);
        }
        let shape = self.context.index_shape(table, index)?;
        let has = |expr: &tree::Expr| shape.expressions.iter().any(|(_, own)| own.same(expr));
        let named = |own: &tree::Expr| inference.exprs.iter().any(|expr| expr.same(own));
        if !inference.exprs.iter().all(has) || !shape.expressions.iter().all(|(_, own)| named(own))
        {
            return Ok(false);
        }
        let mut given = Vec::new();
        let filter = inference.filter.iter();
        filter.for_each(|filter| conjuncts(filter, &mut given));
        let predicate = shape.predicate.as_ref();
        Ok(predicate.is_none_or(|(_, predicate)| is_implied(predicate, &given)))
    }
}
