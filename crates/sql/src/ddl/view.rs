//! CREATE [OR REPLACE] VIEW and ALTER VIEW.

use std::collections::HashSet;
use std::sync::Arc;

use thermocline_engine::authority::Object;
use thermocline_engine::ddl::Change;
use thermocline_engine::{CHECK_OPTION, Catalog, DEFINITION_BYTES_MAX, ViewColumn, ViewDef};
use thermocline_query::types::format_type;

use super::view_query::{ViewQuery, view_query};
use super::{Definition, exists, names};
use crate::error::{Result, SqlError};
use crate::parse::depth::{DEPTH_MAX, too_deep};
use crate::parse::view::{AlterView, CreateView, ViewCommand};
use crate::privilege::not_owner;
use crate::temporary::is_temporary;

/// The columns that a relation may have.
const COLUMNS_MAX: usize = 1600;

impl Definition<'_> {
    pub(super) async fn view_command(&mut self, command: &ViewCommand) -> Result<&'static str> {
        match command {
            ViewCommand::Create(create) => self.create_view(create).await,
            ViewCommand::Alter {
                name,
                if_exists,
                change,
            } => self.alter_view(name, *if_exists, change).await,
        }
    }

    async fn create_view(&mut self, create: &CreateView) -> Result<&'static str> {
        const TAG: &str = "CREATE VIEW";
        fits_catalog("the query of a view", &create.query)?;
        let (mut schema, mut name) = self.new_name(&create.name, create.temporary).await?;
        let mut old = self.replaced(create, &schema, &name)?;
        let query = self.view_query(create).await?;
        if !is_temporary(&schema) && self.reads_temporary(&query) {
            let message = format!("view \"{name}\" will be a temporary view");
            self.notice("00000", message);
            (schema, name) = self.new_name(&create.name, true).await?;
            old = self.replaced(create, &schema, &name)?;
        }
        // Who waited may find another one.
        let now = self.replaced(create, &schema, &name)?;
        if now != old {
            return Err(SqlError::new("40001", "the view was changed meanwhile"));
        }
        let columns = named_columns(&query, &create.columns)?;
        let (oid, known) = match &old {
            Some(old) => (old.oid, old.columns.as_slice()),
            None => (self.db.allocate_oid(), &[][..]),
        };
        fits(known, &columns)?;
        let def = ViewDef {
            oid,
            schema,
            name,
            columns,
            query: create.query.to_string(),
            reads: query.reads,
            obstacle: query.obstacle,
            // The view and the columns that it gives are levels, too.
            depth: create.depth + 2,
            types: query.types,
            functions: query.functions,
            options: create.options.clone(),
        };
        if def.option(CHECK_OPTION).is_some()
            && let Some(refused) = query.unchecked
        {
            return Err(refused);
        }
        if reads_itself(&self.catalog(), &def) {
            return Err(SqlError::new(
                "42P17",
                format!(
                    "infinite recursion detected in rules for relation \"{}\"",
                    def.name
                ),
            ));
        }
        let change = match old {
            Some(_) => Change::ReplaceView(def),
            None => Change::CreateView(def),
        };
        self.apply(change).await?;
        match self.catalog().deepest_view() > DEPTH_MAX {
            true => Err(too_deep()),
            false => Ok(TAG),
        }
    }

    /// Whether a query reads what goes with the session.
    pub(super) fn reads_temporary(&self, query: &ViewQuery) -> bool {
        let catalog = self.catalog();
        query.reads.iter().any(|read| {
            let table = catalog.table(read.oid).map(|table| &table.schema);
            let view = || catalog.views.get(&read.oid).map(|view| &view.schema);
            let schema = table.or_else(view);
            schema.is_some_and(|schema| is_temporary(schema))
        })
    }

    /// The view in whose place a new one comes.
    fn replaced(
        &self,
        create: &CreateView,
        schema: &str,
        name: &str,
    ) -> Result<Option<Arc<ViewDef>>> {
        let catalog = self.catalog();
        if !catalog.relation_exists(schema, name) {
            return Ok(None);
        }
        if !create.replace {
            return Err(exists(name));
        }
        let Some(old) = catalog.view_by_name(schema, name) else {
            return Err(SqlError::new("42809", format!("\"{name}\" is not a view")));
        };
        match self.actor()?.owns(&Object::Table(old.oid)) {
            true => Ok(Some(Arc::clone(old))),
            false => Err(not_owner("view", name)),
        }
    }

    /// The query, analysed, with the tables that it reads locked as reading them does: what
    /// it means is what it means then.
    pub(super) async fn view_query(&mut self, create: &CreateView) -> Result<ViewQuery> {
        loop {
            let catalog = self.catalog();
            let query = view_query(self, &catalog, create)?;
            for read in &query.reads {
                let table = self.db.catalog().table(read.oid).cloned();
                if let Some(table) = table {
                    let (db, options) = (self.db, self.options);
                    let mode = thermocline_engine::LockMode::AccessShare;
                    db.lock_table(self.txn, options, &table, mode, true).await?;
                }
            }
            if Arc::ptr_eq(&catalog, &self.catalog()) {
                return Ok(query);
            }
        }
    }

    async fn alter_view(
        &mut self,
        name: &[String],
        if_exists: bool,
        change: &AlterView,
    ) -> Result<&'static str> {
        const TAG: &str = "ALTER VIEW";
        let Some((schema, relation)) = self.find_relation(name) else {
            let shown = name.join(".");
            let message = format!("relation \"{shown}\" does not exist");
            if if_exists {
                self.notice("42P01", format!("{message}, skipping"));
                return Ok(TAG);
            }
            return Err(SqlError::new("42P01", message));
        };
        let catalog = self.catalog();
        let view = catalog.view_by_name(&schema, &relation);
        let view =
            view.ok_or_else(|| SqlError::new("42809", format!("\"{relation}\" is not a view")))?;
        self.change_view(view, change).await?;
        Ok(TAG)
    }

    /// Changes a view's names and options.
    pub(super) async fn change_view(&mut self, view: &ViewDef, change: &AlterView) -> Result<()> {
        if !self.actor()?.owns(&Object::Table(view.oid)) {
            return Err(not_owner("view", &view.name));
        }
        let catalog = self.catalog();
        let mut def = view.clone();
        match change {
            AlterView::Rename(name) => {
                def.name = names::truncated(name);
                if catalog.relation_exists(&def.schema, &def.name) {
                    return Err(exists(&def.name));
                }
            }
            AlterView::RenameColumn(old, new) => {
                let new = names::truncated(new);
                let mut columns = def.columns.iter();
                let place = columns.position(|column| column.name == *old);
                let place = place.ok_or_else(|| {
                    SqlError::new("42703", format!("column \"{old}\" does not exist"))
                })?;
                if def.columns.iter().any(|column| column.name == new) {
                    let message = format!(
                        "column \"{new}\" of relation \"{}\" already exists",
                        def.name
                    );
                    return Err(SqlError::new("42701", message));
                }
                def.columns[place].name = new;
            }
            AlterView::SetOptions(options) => {
                // Whether its rows can be told from others is known where it is made.
                if options.iter().any(|(name, _)| name == CHECK_OPTION) {
                    return Err(SqlError::unsupported(
                        "ALTER VIEW ... SET (check_option) is not supported",
                        "Use CREATE OR REPLACE VIEW ... WITH CHECK OPTION.",
                    ));
                }
                for (name, value) in options {
                    def.options.retain(|(known, _)| known != name);
                    def.options.push((name.clone(), value.clone()));
                }
            }
            AlterView::ResetOptions(names) => {
                def.options.retain(|(known, _)| !names.contains(known));
            }
        }
        self.apply(Change::ReplaceView(def)).await
    }
}

/// 54000 for a text that is too long for a catalog.
pub(super) fn fits_catalog(what: &str, text: &str) -> Result<()> {
    match text.len() > DEFINITION_BYTES_MAX {
        false => Ok(()),
        true => Err(SqlError::new(
            "54000",
            format!("{what} is longer than {DEFINITION_BYTES_MAX} bytes"),
        )),
    }
}

/// The view's columns, the first under the names that are given.
fn named_columns(query: &ViewQuery, given: &[String]) -> Result<Vec<ViewColumn>> {
    if given.len() > query.columns.len() {
        return Err(SqlError::syntax(
            "CREATE VIEW specifies more column names than columns",
        ));
    }
    if query.columns.is_empty() {
        let message = "view must have at least one column";
        return Err(SqlError::new("42P16", message));
    }
    if query.columns.len() > COLUMNS_MAX {
        let message = format!("tables can have at most {COLUMNS_MAX} columns");
        return Err(SqlError::new("54011", message));
    }
    let mut columns = query.columns.clone();
    for (column, name) in columns.iter_mut().zip(given) {
        column.name = names::truncated(name);
    }
    let mut seen = HashSet::new();
    for column in &columns {
        if !seen.insert(column.name.as_str()) {
            let message = format!("column \"{}\" specified more than once", column.name);
            return Err(SqlError::new("42701", message));
        }
    }
    Ok(columns)
}

/// A view that replaces another has its columns, and more behind them at most.
fn fits(old: &[ViewColumn], new: &[ViewColumn]) -> Result<()> {
    if new.len() < old.len() {
        return Err(SqlError::new("42P16", "cannot drop columns from view"));
    }
    for (old, new) in old.iter().zip(new) {
        if old.name != new.name {
            let message = format!(
                "cannot change name of view column \"{}\" to \"{}\"",
                old.name, new.name
            );
            return Err(SqlError::new("42P16", message).with_hint(
                "Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead.",
            ));
        }
        if (old.type_oid, old.modifier) != (new.type_oid, new.modifier) {
            return Err(SqlError::new(
                "42P16",
                format!(
                    "cannot change data type of view column \"{}\" from {} to {}",
                    old.name,
                    format_type(old.type_oid, old.modifier),
                    format_type(new.type_oid, new.modifier)
                ),
            ));
        }
    }
    Ok(())
}

/// Whether a view would read itself, by way of others.
fn reads_itself(catalog: &Catalog, def: &ViewDef) -> bool {
    let mut seen = HashSet::new();
    let mut next: Vec<u32> = def.reads.iter().map(|read| read.oid).collect();
    while let Some(oid) = next.pop() {
        if oid == def.oid {
            return true;
        }
        if let (true, Some(view)) = (seen.insert(oid), catalog.views.get(&oid)) {
            next.extend(view.reads.iter().map(|read| read.oid));
        }
    }
    false
}
