//! CREATE and REFRESH MATERIALIZED VIEW, as far as definitions go, and what ALTER refuses of them.
//! The session runs the query and stores its rows (`session/materialized.rs`).

use std::collections::HashSet;
use std::sync::Arc;

use thermocline_engine::authority::Object;
use thermocline_engine::ddl::Change;
use thermocline_engine::{ColumnDef, MaterializedDef, Table, ViewColumn};
use thermocline_query::types::domain::{base_of, is_domain};
use thermocline_query::types::format_type;
use thermocline_values::types::DataType;

use super::create_table::{COLUMNS_MAX, ColumnPart, Parts};
use super::options::{self, access_method};
use super::view::fits_catalog;
use super::{Definition, dependents::quote_ident, exists, names};
use crate::error::{Result, SqlError};
use crate::parse::depth::{DEPTH_MAX, too_deep};
use crate::parse::materialized::{CreateMaterialized, Refresh};
use crate::parse::table::AlterOperation;
use crate::parse::trigger::Which;
use crate::privilege::not_owner;
use crate::temporary::not_others;

/// The tag of a CREATE whose query is to run.
pub(crate) const MADE: &str = "SELECT";

impl Definition<'_> {
    /// Makes the view, without rows. The tag says whether its query is to run now.
    pub(super) async fn create_materialized(
        &mut self,
        create: &CreateMaterialized,
    ) -> Result<&'static str> {
        const TAG: &str = "CREATE MATERIALIZED VIEW";
        let view = &create.view;
        fits_catalog("the query of a view", &view.query)?;
        let mut options = options::read(&create.options)?;
        if let Some(method) = create.access_method.as_deref().or(self.access_method) {
            options.access_method = access_method(method)?;
        }
        let (schema, name) = self.new_name(&view.name, false).await?;
        if self.catalog().relation_exists(&schema, &name) {
            if create.if_not_exists {
                let message = format!("relation \"{name}\" already exists, skipping");
                self.notice("42P07", message);
                return Ok(TAG);
            }
            return Err(exists(&name));
        }
        let query = self.view_query(view).await?;
        if self.reads_temporary(&query) {
            return Err(SqlError::unsupported(
                "materialized views must not use temporary tables or views",
                "CREATE TEMPORARY TABLE ... AS has the rows of such a query.",
            ));
        }
        let columns = table_columns(&query.columns, &view.columns)?;
        let columns = columns.into_iter().map(|def| ColumnPart {
            def,
            sequence: None,
        });
        let parts = Parts {
            columns: columns.collect(),
            ..Parts::default()
        };
        let said = create.tablespace.as_deref();
        let tablespace = match said.or(options.tablespace.as_deref()) {
            Some(name) => self.tablespace_named(name)?,
            None => self.tablespace_by_default(),
        };
        let (mut def, _) = self.table_def(&schema, &name, parts, options)?;
        def.tablespace = tablespace;
        def.materialized = Some(Box::new(MaterializedDef {
            query: view.query.to_string(),
            columns: query.columns,
            reads: query.reads,
            types: query.types,
            functions: query.functions,
            // The view and the columns that it gives are levels, too.
            depth: view.depth + 2,
            populated: create.with_data,
        }));
        self.apply(Change::CreateTable(def)).await?;
        if self.catalog().deepest_view() > DEPTH_MAX {
            return Err(too_deep());
        }
        Ok(if create.with_data { MADE } else { TAG })
    }

    /// Looks whether a view may be refreshed, and takes its rows away unless only those that differ
    /// are to change.
    pub(super) async fn refresh(&mut self, refresh: &Refresh) -> Result<&'static str> {
        const TAG: &str = "REFRESH MATERIALIZED VIEW";
        let table = self.refreshed(&refresh.name)?;
        if refresh.concurrently {
            if !table.is_populated() {
                return Err(SqlError::unsupported(
                    "CONCURRENTLY cannot be used when the materialized view is not populated",
                    "Leave CONCURRENTLY out the first time.",
                ));
            }
            if !has_unique_key(&table) {
                let (schema, name) = (quote_ident(&table.schema), quote_ident(&table.name));
                let message =
                    format!("cannot refresh materialized view \"{schema}.{name}\" concurrently");
                return Err(SqlError::new("55000", message).with_hint(
                    "Create a unique index with no WHERE clause on one or more columns of the materialized view.",
                ));
            }
        }
        self.nothing_is_pending(&table, TAG)?;
        if refresh.concurrently {
            return Ok(TAG);
        }
        // Who may refresh it needs no right to change it.
        let emptied = Change::Truncate {
            tables: vec![table.oid],
            restart_identity: false,
        };
        self.db.ddl(self.txn, self.options, emptied).await?;
        let mut def = self.current(table.oid)?.def.clone();
        if let Some(of) = def.materialized.as_mut()
            && of.populated != refresh.with_data
        {
            of.populated = refresh.with_data;
            self.db
                .ddl(self.txn, self.options, Change::AlterTable(def))
                .await?;
        }
        Ok(TAG)
    }

    /// The materialized view of this name, if it is the actor's.
    fn refreshed(&self, name: &[String]) -> Result<Arc<Table>> {
        let Some((schema, relation)) = self.find_relation(name) else {
            return Err(SqlError::undefined_table(&name.join(".")));
        };
        not_others(&schema, self.search_path)?;
        let catalog = self.catalog();
        let Some(table) = catalog.table_by_name(&schema, &relation) else {
            let message = format!("\"{relation}\" is not a table or materialized view");
            return Err(SqlError::new("42809", message));
        };
        if !self.actor()?.owns(&Object::Table(table.oid)) {
            return Err(not_owner(table.kind(), &table.name));
        }
        match table.is_materialized() {
            true => Ok(Arc::clone(table)),
            false => Err(SqlError::unsupported(
                format!("\"{relation}\" is not a materialized view"),
                "A table has the rows that statements give it.",
            )),
        }
    }

    /// 42809 unless an ALTER MATERIALIZED VIEW names one.
    pub(super) fn is_materialized(&self, name: &[String]) -> Result<()> {
        let Some((schema, relation)) = self.find_relation(name) else {
            return Err(SqlError::undefined_table(&name.join(".")));
        };
        let catalog = self.catalog();
        let table = catalog.table_by_name(&schema, &relation);
        match table.is_some_and(|table| table.is_materialized()) {
            true => Ok(()),
            false => {
                let message = format!("\"{relation}\" is not a materialized view");
                Err(SqlError::new("42809", message))
            }
        }
    }
}

/// 42809 where an action changes what of a materialized view only its query says.
pub(super) fn may_alter(table: &Table, operations: &[AlterOperation]) -> Result<()> {
    if !table.is_materialized() {
        return Ok(());
    }
    let mut refused = operations.iter().filter_map(refused_action);
    match refused.next() {
        None => Ok(()),
        Some(action) => {
            let name = &table.name;
            let message =
                format!("ALTER action {action} cannot be performed on relation \"{name}\"");
            let why = "This operation is not supported for materialized views.";
            Err(SqlError::new("42809", message).with_detail(why))
        }
    }
}

/// The name of an action that no materialized view takes.
fn refused_action(operation: &AlterOperation) -> Option<&'static str> {
    use AlterOperation as Operation;
    Some(match operation {
        Operation::AccessMethod(_)
        | Operation::Tablespace(_)
        | Operation::Rename(_)
        | Operation::RenameColumn { .. }
        // There is none to be found.
        | Operation::RenameConstraint { .. }
        | Operation::Owner(_)
        | Operation::SetOptions(_)
        | Operation::ResetOptions(_)
        | Operation::Residence { .. }
        | Operation::Accepted { .. } => return None,
        Operation::AddColumn { .. } => "ADD COLUMN",
        Operation::DropColumn { .. } => "DROP COLUMN",
        Operation::AddConstraint(_) | Operation::AddUsingIndex(_) => "ADD CONSTRAINT",
        Operation::DropConstraint { .. } => "DROP CONSTRAINT",
        Operation::ValidateConstraint(_) => "VALIDATE CONSTRAINT",
        Operation::AlterConstraint { .. } => "ALTER CONSTRAINT",
        Operation::Default { .. } => "ALTER COLUMN ... SET DEFAULT",
        Operation::AddIdentity { .. } => "ALTER COLUMN ... ADD IDENTITY",
        Operation::SetIdentity { .. } => "ALTER COLUMN ... SET",
        Operation::DropIdentity { .. } => "ALTER COLUMN ... DROP IDENTITY",
        Operation::DropExpression { .. } => "ALTER COLUMN ... DROP EXPRESSION",
        Operation::NotNull { not_null: true, .. } => "ALTER COLUMN ... SET NOT NULL",
        Operation::NotNull { .. } => "ALTER COLUMN ... DROP NOT NULL",
        Operation::Type { .. } => "ALTER COLUMN ... SET DATA TYPE",
        Operation::AttachPartition(_) => "ATTACH PARTITION",
        Operation::DetachPartition(_) => "DETACH PARTITION",
        Operation::Triggers { which, enabled } => match (which, enabled) {
            (Which::Named(_), true) => "ENABLE TRIGGER",
            (Which::Named(_), false) => "DISABLE TRIGGER",
            (_, true) => "ENABLE TRIGGER ALL",
            (_, false) => "DISABLE TRIGGER ALL",
        },
    })
}

/// Whether it has a unique index of columns and of all rows, as PostgreSQL asks: it matches rows by it.
fn has_unique_key(table: &Table) -> bool {
    let mut all = table.indexes.iter().filter(|index| index.unique);
    all.any(|index| {
        let mut columns = index.columns.iter();
        columns.all(|column| table.columns[*column].is_seen())
    })
}

/// The columns of the table for those of the query, the first under the names that are given.
fn table_columns(columns: &[ViewColumn], given: &[String]) -> Result<Vec<ColumnDef>> {
    if given.len() > columns.len() {
        return Err(SqlError::syntax("too many column names were specified"));
    }
    if columns.is_empty() {
        return Err(SqlError::unsupported(
            "a materialized view of a query without columns is not supported",
            "Name at least one column.",
        ));
    }
    if columns.len() > COLUMNS_MAX {
        let message = format!("tables can have at most {COLUMNS_MAX} columns");
        return Err(SqlError::new("54011", message));
    }
    let mut seen = HashSet::new();
    let mut named = Vec::with_capacity(columns.len());
    for (at, column) in columns.iter().enumerate() {
        let name = names::truncated(given.get(at).unwrap_or(&column.name));
        if !seen.insert(name.clone()) {
            let message = format!("column \"{name}\" specified more than once");
            return Err(SqlError::new("42701", message));
        }
        let (oid, modifier) = base_of(column.type_oid, column.modifier);
        let data_type = DataType::from_oid(oid, modifier)
            .filter(|of| !matches!(of, DataType::Char(0)))
            .ok_or_else(|| {
                let of = format_type(oid, modifier);
                SqlError::unsupported(
                    format!("column \"{name}\" of type {of} is not supported"),
                    "Cast it in the query, for example to text.",
                )
            })?;
        let domain = Some(column.type_oid).filter(|oid| is_domain(*oid));
        named.push(ColumnDef {
            domain,
            ..ColumnDef::new(name, data_type)
        });
    }
    Ok(named)
}
