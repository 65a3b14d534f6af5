//! ALTER TABLE: its operations one after the other, in one transaction.

use std::sync::Arc;

use thermocline_engine::ddl::Change;
use thermocline_engine::{IndexKind, Table, TableDef, ViewDef};
use thermocline_values::value::Value;

use super::create_table::{COLUMNS_MAX, Parts, column_part};
use super::foreign_key::no_constraint;
use super::generated::is_generated;
use super::materialized::may_alter;
use super::partition_bound::covers_key;
use super::rewrite::NewType;
use super::sequence::next_of;
use super::trigger::are_of_no_trigger;
use super::verify::contains_null;
use super::{Definition, options, rights};
use crate::bind;
use crate::error::{Result, SqlError};
use crate::expr::{EvalContext, Expr, NoRow};
use crate::parse::constraint::TableConstraint;
use crate::parse::grant::Owned;
use crate::parse::table::{AlterOperation, AlterTable, Column};
use crate::parse::view::{AlterView, are_views};

impl Definition<'_> {
    pub(super) async fn alter_table(&mut self, alter: &AlterTable) -> Result<&'static str> {
        let tag = match alter.materialized {
            true => "ALTER MATERIALIZED VIEW",
            false => "ALTER TABLE",
        };
        if alter.if_exists && self.find_relation(&alter.name).is_none() {
            let name = alter.name.join(".");
            self.notice(
                "42P01",
                format!("relation \"{name}\" does not exist, skipping"),
            );
            return Ok(tag);
        }
        if alter.materialized {
            self.is_materialized(&alter.name)?;
        }
        if let Some(view) = self.find_view(&alter.name) {
            for operation in &alter.operations {
                let (catalog, oid) = (self.catalog(), view.oid);
                let view = catalog.views.get(&oid);
                let view = view.ok_or_else(|| SqlError::internal("the altered view is gone"))?;
                self.alter_as_table(view, operation).await?;
            }
            return Ok(tag);
        }
        if Box::pin(self.alter_sequence_as_table(alter)).await? {
            return Ok(tag);
        }
        let table = self.find_table(&alter.name)?;
        let oid = table.oid;
        if alter.only && table.partitioned.is_some() {
            return Box::pin(self.alter_only(&table, alter)).await.map(|()| tag);
        }
        may_alter(&table, &alter.operations)?;
        // As PostgreSQL: first what stands in the way of new types, then these, all at once, which
        // may be made of columns that go, then what comes.
        let of_pass = |wanted: Pass| {
            let all = alter.operations.iter();
            all.filter(move |operation| pass(operation) == wanted)
        };
        for operation in of_pass(Pass::Loosen) {
            // Each operation sees what the ones before it have done.
            let table = self.current(oid)?;
            self.alter(&table, operation).await?;
        }
        let types: Vec<NewType<'_>> = of_pass(Pass::Type).filter_map(new_type).collect();
        if !types.is_empty() {
            let table = self.current(oid)?;
            for operation in of_pass(Pass::Type) {
                self.may_alter_partition(&table, operation)?;
            }
            for oid in std::iter::once(oid).chain(self.below(oid)) {
                let table = self.current(oid)?;
                self.lock_whole(&table).await?;
                keeps_key(&table, types.iter().map(|of| of.column))?;
                are_of_no_trigger(&table, types.iter().map(|of| of.column))?;
                self.alter_types(&table, &types).await?;
            }
        }
        for operation in of_pass(Pass::DropColumn).chain(of_pass(Pass::Rest)) {
            let table = self.current(oid)?;
            self.alter(&table, operation).await?;
        }
        Ok(tag)
    }

    /// Does something to a table and to its partitions.
    async fn alter(&mut self, table: &Arc<Table>, operation: &AlterOperation) -> Result<()> {
        self.may_alter_partition(table, operation)?;
        Box::pin(self.alter_alone(table, operation)).await?;
        match table.partitioned {
            Some(_) => Box::pin(self.alter_below(table, operation)).await,
            None => Ok(()),
        }
    }

    /// Does something to a table by itself.
    pub(super) async fn alter_alone(
        &mut self,
        table: &Arc<Table>,
        operation: &AlterOperation,
    ) -> Result<()> {
        use AlterOperation as Operation;
        match operation {
            Operation::AddColumn {
                column,
                if_not_exists,
            } => self.add_column(table, column, *if_not_exists).await,
            Operation::AddConstraint(constraint) => self.add_constraint(table, constraint).await,
            Operation::AddUsingIndex(using) => Box::pin(self.add_using_index(table, using)).await,
            Operation::DropConstraint {
                name,
                if_exists,
                cascade,
            } => {
                self.drop_constraint(table, name, *if_exists, *cascade)
                    .await
            }
            Operation::ValidateConstraint(name) => self.validate_constraint(table, name).await,
            Operation::AlterConstraint {
                name,
                deferrable,
                deferred,
            } => {
                self.alter_constraint(table, name, (*deferrable, *deferred))
                    .await
            }
            Operation::Default { column, default } => {
                self.set_default(table, column, default.as_deref()).await
            }
            Operation::AddIdentity {
                column,
                always,
                options,
            } => Box::pin(self.add_identity(table, column, *always, options)).await,
            Operation::SetIdentity { column, options } => {
                Box::pin(self.set_identity(table, column, options)).await
            }
            Operation::DropIdentity { column, if_exists } => {
                Box::pin(self.drop_identity(table, column, *if_exists)).await
            }
            Operation::DropExpression { column, if_exists } => {
                self.drop_expression(table, column, *if_exists).await
            }
            Operation::NotNull { column, not_null } => {
                self.set_not_null(table, column, *not_null).await
            }
            // Types change all at once.
            Operation::Type { .. } | Operation::Accepted { column: None } => Ok(()),
            Operation::Accepted {
                column: Some(column),
            } => column_named(table, column).map(drop),
            Operation::Rename(name) => self.rename_table(table, name).await,
            Operation::RenameColumn { from, to } => self.rename_column(table, from, to).await,
            Operation::RenameConstraint { from, to } => {
                self.rename_constraint(table, from, to).await
            }
            Operation::Owner(role) => {
                let name = vec![table.schema.clone(), table.name.clone()];
                self.change_owner(&Owned::Table(name), role).await?;
                Ok(())
            }
            Operation::Triggers { which, enabled } => {
                Box::pin(self.enable_triggers(table, which, *enabled)).await
            }
            Operation::AttachPartition(attached) => {
                Box::pin(self.attach_partition(table, attached)).await
            }
            Operation::DetachPartition(detach) => {
                Box::pin(self.detach_partition(table, &detach.table)).await
            }
            Operation::AccessMethod(method) => {
                self.set_access_method(table, method.as_deref()).await
            }
            Operation::Tablespace(name) => self.set_tablespace(table, name).await,
            Operation::SetOptions(options) => self.set_options(table, options).await,
            Operation::ResetOptions(names) => self.reset_options(table, names).await,
            Operation::Residence { columns, to } => {
                self.set_residence(table, columns.as_deref(), *to).await
            }
            Operation::DropColumn {
                name,
                if_exists,
                cascade,
            } => self.drop_column(table, name, *if_exists, *cascade).await,
        }
    }

    /// Another kind of table for the same rows, which are written anew.
    async fn set_access_method(&mut self, table: &Arc<Table>, method: Option<&str>) -> Result<()> {
        let method = method.map(options::access_method).transpose()?;
        let mut def = table.def.clone();
        def.access_method = method.unwrap_or_default();
        match def.access_method == table.access_method {
            true => rights::check(&Change::AlterTable(def), &self.actor()?, &self.catalog()),
            false => self.rewrite(table, def, &[], "ALTER TABLE").await,
        }
    }

    /// ALTER TABLE of a view: what ALTER VIEW does.
    async fn alter_as_table(&mut self, view: &ViewDef, operation: &AlterOperation) -> Result<()> {
        use AlterOperation as Operation;
        let change = match operation {
            Operation::Rename(name) => AlterView::Rename(name.clone()),
            Operation::RenameColumn { from, to } => {
                AlterView::RenameColumn(from.clone(), to.clone())
            }
            Operation::SetOptions(options) => {
                are_views(options)?;
                AlterView::SetOptions(options.clone())
            }
            Operation::ResetOptions(names) => AlterView::ResetOptions(names.clone()),
            Operation::Owner(role) => {
                let name = vec![view.schema.clone(), view.name.clone()];
                self.change_owner(&Owned::View(name), role).await?;
                return Ok(());
            }
            _ => {
                let message = format!("\"{}\" is not a table", view.name);
                return Err(SqlError::new("42809", message)
                    .with_detail("This operation is not supported for views."));
            }
        };
        self.change_view(view, &change).await
    }

    async fn add_column(
        &mut self,
        table: &Arc<Table>,
        column: &Column,
        if_not_exists: bool,
    ) -> Result<()> {
        let mut parts = Parts::default();
        let catalog = self.catalog();
        let names = self.type_names(&catalog);
        let mut part = column_part(column, &table.name, names, &mut parts)?;
        let name = part.def.name.clone();
        if table.column_named(&name).is_some() {
            let message = format!(
                "column \"{name}\" of relation \"{}\" already exists",
                table.name
            );
            if if_not_exists {
                self.notice("42701", format!("{message}, skipping"));
                return Ok(());
            }
            return Err(SqlError::new("42701", message));
        }
        let mut def = table.def.clone();
        let position = def.columns.len();
        if position >= COLUMNS_MAX {
            let message = format!("tables can have at most {COLUMNS_MAX} columns");
            return Err(SqlError::new("54011", message));
        }
        if let Some(options) = part.sequence.take() {
            let mut made = Vec::new();
            let sequence =
                self.owned_sequence(&def, &mut part.def, position, &options, &mut made)?;
            self.apply(Change::CreateSequence(sequence)).await?;
        }
        if let Some(default) = &mut part.def.default {
            *default = self.of_table(default, &table.def)?;
        }
        match self.value_of_rows(table, &part.def)? {
            RowsValue::Same(value) => {
                part.def.missing = value;
                let is_null = part.def.missing == Value::Null;
                def.columns.push(part.def);
                if def.columns[position].not_null && is_null && self.db.row_estimate(table) > 0 {
                    return Err(contains_null(&def, position));
                }
                self.apply(Change::AlterTable(def)).await?;
            }
            RowsValue::Own(expression) => {
                def.columns.push(part.def);
                let values = [(position, expression)];
                self.rewrite(table, def, &values, "ALTER TABLE").await?;
            }
        }
        let oid = table.oid;
        self.verify_new_domain(oid, position).await?;
        for key in &parts.keys {
            self.add_key(oid, key).await?;
        }
        for check in parts.checks {
            self.add_check(oid, check).await?;
        }
        for (key, column) in &parts.foreign_keys {
            self.add_foreign_key(oid, key, column.as_deref(), false)
                .await?;
        }
        let altered = self.current(oid)?;
        self.check_expressions(&altered)
    }

    /// What rows that are there have in a new column.
    fn value_of_rows(
        &self,
        table: &Arc<Table>,
        column: &thermocline_engine::ColumnDef,
    ) -> Result<RowsValue> {
        let (name, data_type) = (&column.name, column.data_type);
        if let Some(text) = column.generation() {
            return Ok(RowsValue::Own(self.kept(&table.schema, |context| {
                bind::bind_generated(text, table, name, data_type, context)
            })?));
        }
        let catalog = self.catalog();
        let default = bind::default_text(&catalog, table, column);
        let expression = match (bind::takes_next_of(column), default) {
            (Some(sequence), _) => bind::bind_next_value(sequence, name, data_type)?,
            (None, Some((default, schema))) => self.kept(schema, |context| {
                bind::bind_default(default, name, data_type, context)
            })?,
            (None, None) => return Ok(RowsValue::Same(Value::Null)),
        };
        if expression.is_volatile() {
            return Ok(RowsValue::Own(expression));
        }
        let context = EvalContext::without_parameters(self.now_us, self.session, self.styles);
        let value = expression.evaluate(&NoRow, &context)?;
        Ok(RowsValue::Same(value.into_value()))
    }

    /// The table as it is now in this transaction.
    pub(super) fn current(&self, oid: u32) -> Result<Arc<Table>> {
        self.catalog()
            .table(oid)
            .cloned()
            .ok_or_else(|| SqlError::internal("the altered table is gone"))
    }

    async fn add_constraint(
        &mut self,
        table: &Arc<Table>,
        constraint: &TableConstraint,
    ) -> Result<()> {
        let mut parts = Parts::default();
        parts.add(constraint, None);
        for key in &parts.keys {
            self.add_key(table.oid, key).await?;
        }
        for check in parts.checks {
            self.add_check(table.oid, check).await?;
        }
        for (key, column) in &parts.foreign_keys {
            self.add_foreign_key(table.oid, key, column.as_deref(), false)
                .await?;
        }
        Ok(())
    }

    pub(super) async fn add_key(
        &mut self,
        oid: u32,
        key: &super::create_table::KeyConstraint,
    ) -> Result<()> {
        let table = self.current(oid)?;
        let mut def = table.def.clone();
        let kind = match def.options.get("primary_key").map(String::as_str) {
            Some("hash") if key.primary => IndexKind::Hash,
            _ => IndexKind::BTree,
        };
        let index = self.key_index(&mut def, key, kind, &mut Vec::new())?;
        covers_key(&table.def, &index.columns, Some(key.primary))?;
        if key.primary {
            let nullable: Vec<usize> = index
                .columns
                .iter()
                .copied()
                .filter(|column| !table.columns[*column].not_null)
                .collect();
            for column in &nullable {
                self.verify_not_null(&table, *column).await?;
            }
            self.set_nullability(&table, &nullable, true).await?;
        }
        self.apply(Change::CreateIndex { table: oid, index }).await
    }

    async fn drop_constraint(
        &mut self,
        table: &Arc<Table>,
        name: &str,
        if_exists: bool,
        cascade: bool,
    ) -> Result<()> {
        let mut def = table.def.clone();
        if def.foreign_keys.iter().any(|key| key.name == name) {
            for oid in std::iter::once(table.oid).chain(self.below(table.oid)) {
                let table = self.current(oid)?;
                self.lock_whole(&table).await?;
                self.drop_foreign_key(oid, name).await?;
            }
            return Ok(());
        }
        if let Some(at) = def.checks.iter().position(|check| check.name == name) {
            def.checks.remove(at);
            self.apply(Change::AlterTable(def)).await?;
            return self.drop_check_below(table.oid, name).await;
        }
        let index = def
            .indexes
            .iter()
            .find(|index| index.constraint && index.name == name);
        if let Some(index) = index {
            let what = format!("constraint {name} on table {}", table.name);
            self.free_of_need(table, index.oid, &what, cascade).await?;
            for (table, index) in self.indexes_below(table, index.oid) {
                let table = self.current(table)?;
                self.lock_whole(&table).await?;
                let table = table.oid;
                self.apply(Change::DropIndex { table, index }).await?;
            }
            let change = Change::DropIndex {
                table: table.oid,
                index: index.oid,
            };
            return self.apply(change).await;
        }
        let error = no_constraint(name, table);
        if if_exists {
            self.notice("42704", format!("{}, skipping", error.message));
            return Ok(());
        }
        Err(error)
    }

    async fn set_default(
        &mut self,
        table: &Arc<Table>,
        name: &str,
        default: Option<&str>,
    ) -> Result<()> {
        let mut def = table.def.clone();
        let column = column_named(table, name)?;
        if def.columns[column].generated {
            return Err(is_generated(table, name, default.is_none()));
        }
        if let Some(text) = default {
            if def.columns[column].identity.is_some() {
                return Err(is_identity(table, name));
            }
            let data_type = def.columns[column].data_type;
            self.kept(&table.schema, |context| {
                bind::bind_default(text, name, data_type, context)
            })?;
        }
        let of_domain = def.columns[column].domain.is_some();
        let said = default.filter(|text| of_domain || !text.eq_ignore_ascii_case("null"));
        let said = said.map(|text| self.with_schemas(text, &table.schema));
        let altered = &mut def.columns[column];
        altered.default = said.transpose()?;
        if altered.identity.is_none() {
            // Its own sequence gives the next value only where the default says so.
            let catalog = self.catalog();
            let next = altered.default.as_deref().and_then(|text| {
                let mut own = catalog.sequences.values();
                own.find(|sequence| {
                    sequence.owned_by == Some((table.oid, column)) && next_of(sequence) == text
                })
            });
            altered.sequence = next.map(|sequence| sequence.oid);
        }
        self.apply(Change::AlterTable(def)).await
    }

    async fn set_not_null(&mut self, table: &Arc<Table>, name: &str, not_null: bool) -> Result<()> {
        let column = column_named(table, name)?;
        let def = &table.columns[column];
        if !not_null {
            let mut indexes = table.indexes.iter();
            if indexes.any(|index| index.primary && index.columns.contains(&column)) {
                let message = format!("column \"{name}\" is in a primary key");
                return Err(SqlError::new("42P16", message));
            }
            if def.identity.is_some() {
                return Err(is_identity(table, name));
            }
        }
        if def.not_null == not_null {
            return Ok(());
        }
        if not_null {
            self.verify_not_null(table, column).await?;
        }
        self.set_nullability(table, &[column], not_null).await
    }

    /// Changes whether columns take NULL. The keys of an index over such a
    /// column are written otherwise then, so it is built anew.
    pub(super) async fn set_nullability(
        &mut self,
        table: &Arc<Table>,
        columns: &[usize],
        not_null: bool,
    ) -> Result<()> {
        if columns.is_empty() {
            return Ok(());
        }
        let touched = |of: &[usize]| of.iter().any(|column| columns.contains(column));
        if touched(&table.partition_key) && self.db.row_estimate(table) > 0 {
            return Err(SqlError::unsupported(
                "NOT NULL of a column of the partition key cannot be changed while there are rows",
                "Create the table anew with the column as it is to be, and move the rows there.",
            ));
        }
        let rebuilt: Vec<_> = table
            .indexes
            .iter()
            .filter(|index| touched(&index.columns))
            .cloned()
            .collect();
        for index in &rebuilt {
            let change = Change::DropIndex {
                table: table.oid,
                index: index.oid,
            };
            self.apply(change).await?;
        }
        let mut def = self.current(table.oid)?.def.clone();
        for column in columns {
            def.columns[*column].not_null = not_null;
        }
        self.apply(Change::AlterTable(def)).await?;
        for mut index in rebuilt {
            index.oid = self.db.allocate_oid();
            let change = Change::CreateIndex {
                table: table.oid,
                index,
            };
            self.apply(change).await?;
        }
        Ok(())
    }

    async fn set_options(&mut self, table: &Arc<Table>, given: &[(String, String)]) -> Result<()> {
        let read = options::read(given)?;
        if read.texts.keys().any(|name| is_for_good(name)) {
            return Err(chosen_for_good());
        }
        let mut def = table.def.clone();
        if read.texts.contains_key("evictable") {
            def.evictable = read.evictable;
        }
        if let Some(name) = &read.tablespace {
            def.tablespace = self.tablespace_named(name)?;
        }
        def.options.extend(read.texts);
        self.apply(Change::AlterTable(def)).await
    }

    async fn reset_options(&mut self, table: &Arc<Table>, names: &[String]) -> Result<()> {
        if names.iter().any(|name| is_for_good(name)) {
            return Err(chosen_for_good());
        }
        let mut def = table.def.clone();
        for name in names {
            if name == super::tablespace::OPTION {
                def.tablespace = 0;
            }
            if def.options.remove(name).is_some() && name == "evictable" {
                def.evictable = true;
            }
        }
        self.apply(Change::AlterTable(def)).await
    }
}

/// What rows that are there have in a new column.
enum RowsValue {
    /// All the same.
    Same(Value),
    /// Each its own.
    Own(Expr),
}

/// When an operation is done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    Loosen,
    Type,
    DropColumn,
    Rest,
}

fn pass(operation: &AlterOperation) -> Pass {
    match operation {
        AlterOperation::DropConstraint { .. }
        | AlterOperation::Default { default: None, .. }
        | AlterOperation::DropExpression { .. }
        | AlterOperation::NotNull {
            not_null: false, ..
        } => Pass::Loosen,
        AlterOperation::DropColumn { .. } => Pass::DropColumn,
        AlterOperation::Type { .. } => Pass::Type,
        _ => Pass::Rest,
    }
}

fn new_type(operation: &AlterOperation) -> Option<NewType<'_>> {
    match operation {
        AlterOperation::Type {
            column,
            type_text,
            using,
        } => Some(NewType {
            column,
            data_type: type_text,
            using: using.as_deref(),
        }),
        _ => None,
    }
}

/// 42P16 for another type of a column of a partition key.
fn keeps_key<'c>(table: &Table, mut columns: impl Iterator<Item = &'c str>) -> Result<()> {
    let Some(by) = &table.partitioned else {
        return Ok(());
    };
    let in_key = |name: &&str| {
        table
            .column_named(name)
            .is_some_and(|at| by.columns.contains(&at))
    };
    match columns.find(in_key) {
        None => Ok(()),
        Some(name) => Err(SqlError::new(
            "42P16",
            format!(
                "cannot alter column \"{name}\" because it is part of the partition key of relation \"{}\"",
                table.name
            ),
        )),
    }
}

/// Whether an option is chosen when a table is created, and stays.
fn is_for_good(option: &str) -> bool {
    matches!(option, "partition_key" | "primary_key")
}

#[cold]
fn chosen_for_good() -> SqlError {
    SqlError::unsupported(
        "partition_key and primary_key are chosen when the table is created",
        "Create another table with them, and move the rows there.",
    )
}

pub(super) fn column_named(table: &Table, name: &str) -> Result<usize> {
    let column = table.column_named(name);
    column.ok_or_else(|| no_column(name, &table.def))
}

#[cold]
fn is_identity(table: &Table, column: &str) -> SqlError {
    SqlError::syntax(format!(
        "column \"{column}\" of relation \"{}\" is an identity column",
        table.name
    ))
}

#[cold]
pub(super) fn no_column(name: &str, table: &TableDef) -> SqlError {
    SqlError::new(
        "42703",
        format!(
            "column \"{name}\" of relation \"{}\" does not exist",
            table.name
        ),
    )
}
