//! ALTER TABLE: its operations one after the other, in one transaction.

use std::sync::Arc;

use sqlparser::ast::{self, AlterColumnOperation, AlterTableOperation, RenameTableNameKind};
use thermocline_engine::ddl::Change;
use thermocline_engine::{IndexKind, Table, TableDef, ViewDef};
use thermocline_storage::value::Value;

use super::create_table::{
    COLUMNS_MAX, Constraint, Parts, column_part, named_check, not_systems, position,
    table_constraint,
};
use super::rewrite::NewType;
use super::verify::contains_null;
use super::{Definition, exists, names, options};
use crate::bind;
use crate::error::{Result, SqlError};
use crate::expr::{EvalContext, Expr, NoRow};
use crate::parse::grant::Owned;
use crate::parse::tokens::{fold, fold_parts};
use crate::parse::view::AlterView;

impl Definition<'_> {
    pub(super) async fn alter_table(&mut self, alter: &ast::AlterTable) -> Result<&'static str> {
        const TAG: &str = "ALTER TABLE";
        let parts = fold_parts(&alter.name);
        if alter.if_exists && self.find_relation(&parts).is_none() {
            let name = parts.join(".");
            self.notice(
                "42P01",
                format!("relation \"{name}\" does not exist, skipping"),
            );
            return Ok(TAG);
        }
        if let Some(view) = self.find_view(&parts) {
            for operation in &alter.operations {
                let (catalog, oid) = (self.catalog(), view.oid);
                let view = catalog.views.get(&oid);
                let view = view.ok_or_else(|| SqlError::internal("the altered view is gone"))?;
                self.alter_as_table(view, operation).await?;
            }
            return Ok(TAG);
        }
        let oid = self.find_table(&alter.name)?.oid;
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
            self.alter_types(&table, &types).await?;
        }
        for operation in of_pass(Pass::DropColumn).chain(of_pass(Pass::Rest)) {
            let table = self.current(oid)?;
            self.alter(&table, operation).await?;
        }
        Ok(TAG)
    }

    async fn alter(&mut self, table: &Arc<Table>, operation: &AlterTableOperation) -> Result<()> {
        use AlterTableOperation as Operation;
        match operation {
            Operation::AddColumn {
                if_not_exists,
                column_def,
                ..
            } => self.add_column(table, column_def, *if_not_exists).await,
            Operation::AddConstraint { constraint, .. } => {
                self.add_constraint(table, constraint).await
            }
            Operation::DropConstraint {
                if_exists, name, ..
            } => self.drop_constraint(table, &fold(name), *if_exists).await,
            Operation::AlterColumn { column_name, op } => {
                self.alter_column(table, &fold(column_name), op).await
            }
            Operation::RenameTable {
                table_name: RenameTableNameKind::To(name) | RenameTableNameKind::As(name),
            } => {
                let name = fold_parts(name).pop().unwrap_or_default();
                self.rename_table(table, &name).await
            }
            Operation::RenameColumn {
                old_column_name,
                new_column_name,
            } => {
                self.rename_column(table, &fold(old_column_name), &fold(new_column_name))
                    .await
            }
            Operation::RenameConstraint { old_name, new_name } => {
                self.rename_constraint(table, &fold(old_name), &fold(new_name))
                    .await
            }
            Operation::OwnerTo { new_owner } => {
                let role = role_named(new_owner);
                let name = vec![table.schema.clone(), table.name.clone()];
                self.change_owner(&Owned::Table(name), &role).await?;
                Ok(())
            }
            Operation::SetOptionsParens { options } => self.set_options(table, options).await,
            Operation::DropColumn {
                column_names,
                if_exists,
                drop_behavior,
                ..
            } => {
                let cascade = matches!(drop_behavior, Some(ast::DropBehavior::Cascade));
                for name in column_names {
                    let table = self.current(table.oid)?;
                    self.drop_column(&table, &fold(name), *if_exists, cascade)
                        .await?;
                }
                Ok(())
            }
            other => Err(SqlError::unsupported(format!(
                "ALTER TABLE {other} is not supported"
            ))),
        }
    }

    /// ALTER TABLE of a view: what ALTER VIEW does.
    async fn alter_as_table(
        &mut self,
        view: &ViewDef,
        operation: &AlterTableOperation,
    ) -> Result<()> {
        use AlterTableOperation as Operation;
        let change = match operation {
            Operation::RenameTable {
                table_name: RenameTableNameKind::To(name) | RenameTableNameKind::As(name),
            } => AlterView::Rename(fold_parts(name).pop().unwrap_or_default()),
            Operation::RenameColumn {
                old_column_name,
                new_column_name,
            } => AlterView::RenameColumn(fold(old_column_name), fold(new_column_name)),
            Operation::OwnerTo { new_owner } => {
                let name = vec![view.schema.clone(), view.name.clone()];
                self.change_owner(&Owned::View(name), &role_named(new_owner))
                    .await?;
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
        column: &ast::ColumnDef,
        if_not_exists: bool,
    ) -> Result<()> {
        let mut parts = Parts::default();
        let catalog = self.catalog();
        let names = self.type_names(&catalog);
        let mut part = column_part(column, &mut std::iter::empty(), names, &mut parts)?;
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
                self.rewrite(table, def, &[(position, expression)]).await?;
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
        let altered = self.current(oid)?;
        self.check_expressions(&altered)
    }

    /// What rows that are there have in a new column.
    fn value_of_rows(
        &self,
        table: &Table,
        column: &thermocline_engine::ColumnDef,
    ) -> Result<RowsValue> {
        let (name, data_type) = (&column.name, column.data_type);
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
        let context = EvalContext {
            parameters: &[],
            now_us: self.now_us,
            session: self.session,
            styles: self.styles,
        };
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
        constraint: &ast::TableConstraint,
    ) -> Result<()> {
        match table_constraint(constraint)? {
            Constraint::Key(key) => self.add_key(table.oid, &key).await,
            Constraint::Check(check) => self.add_check(table.oid, *check).await,
        }
    }

    async fn add_key(&mut self, oid: u32, key: &super::create_table::KeyConstraint) -> Result<()> {
        let table = self.current(oid)?;
        let mut def = table.def.clone();
        let kind = match def.options.get("primary_key").map(String::as_str) {
            Some("hash") if key.primary => IndexKind::Hash,
            _ => IndexKind::BTree,
        };
        let index = self.key_index(&mut def, key, kind, &mut Vec::new())?;
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

    async fn add_check(
        &mut self,
        oid: u32,
        check: super::create_table::CheckConstraint,
    ) -> Result<()> {
        let table = self.current(oid)?;
        let named = named_check(&table.def, check)?;
        let condition = self.kept(&table.schema, |context| {
            bind::bind_check(&named.expression, &table, context)
        })?;
        self.verify_check(&table, &named.name, &condition).await?;
        let mut def = table.def.clone();
        def.checks.push(named);
        self.apply(Change::AlterTable(def)).await
    }

    async fn drop_constraint(
        &mut self,
        table: &Arc<Table>,
        name: &str,
        if_exists: bool,
    ) -> Result<()> {
        let mut def = table.def.clone();
        if let Some(at) = def.checks.iter().position(|check| check.name == name) {
            def.checks.remove(at);
            return self.apply(Change::AlterTable(def)).await;
        }
        let index = def
            .indexes
            .iter()
            .find(|index| index.constraint && index.name == name);
        if let Some(index) = index {
            let change = Change::DropIndex {
                table: table.oid,
                index: index.oid,
            };
            return self.apply(change).await;
        }
        let message = format!(
            "constraint \"{name}\" of relation \"{}\" does not exist",
            table.name
        );
        if if_exists {
            self.notice("42704", format!("{message}, skipping"));
            return Ok(());
        }
        Err(SqlError::new("42704", message))
    }

    async fn alter_column(
        &mut self,
        table: &Arc<Table>,
        name: &str,
        operation: &AlterColumnOperation,
    ) -> Result<()> {
        let column = table
            .column_named(name)
            .ok_or_else(|| no_column(name, &table.def))?;
        let mut def = table.def.clone();
        match operation {
            AlterColumnOperation::SetDefault { value } => {
                if def.columns[column].identity.is_some() {
                    return Err(SqlError::syntax(format!(
                        "column \"{name}\" of relation \"{}\" is an identity column",
                        table.name
                    )));
                }
                let text = value.to_string();
                let data_type = def.columns[column].data_type;
                self.kept(&table.schema, |context| {
                    bind::bind_default(&text, name, data_type, context)
                })?;
                let of_domain = def.columns[column].domain.is_some();
                let said = of_domain || !text.eq_ignore_ascii_case("null");
                def.columns[column].default = said.then_some(text);
                self.apply(Change::AlterTable(def)).await
            }
            AlterColumnOperation::DropDefault => {
                def.columns[column].default = None;
                self.apply(Change::AlterTable(def)).await
            }
            AlterColumnOperation::SetNotNull => {
                if def.columns[column].not_null {
                    return Ok(());
                }
                self.verify_not_null(table, column).await?;
                self.set_nullability(table, &[column], true).await
            }
            AlterColumnOperation::DropNotNull => {
                let in_primary_key = table
                    .indexes
                    .iter()
                    .any(|index| index.primary && index.columns.contains(&column));
                if in_primary_key {
                    return Err(SqlError::new(
                        "42P16",
                        format!("column \"{name}\" is in a primary key"),
                    ));
                }
                if def.columns[column].identity.is_some() {
                    return Err(SqlError::syntax(format!(
                        "column \"{name}\" of relation \"{}\" is an identity column",
                        table.name
                    )));
                }
                if !def.columns[column].not_null {
                    return Ok(());
                }
                self.set_nullability(table, &[column], false).await
            }
            other => Err(SqlError::unsupported(format!(
                "ALTER COLUMN {other} is not supported yet"
            ))),
        }
    }

    /// Changes whether columns take NULL. The keys of an index over such a
    /// column are written otherwise then, so it is built anew.
    async fn set_nullability(
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

    async fn rename_table(&mut self, table: &Arc<Table>, name: &str) -> Result<()> {
        let name = names::truncated(name);
        if self.catalog().relation_exists(&table.schema, &name) {
            return Err(exists(&name));
        }
        let mut def = table.def.clone();
        def.name = name;
        self.apply(Change::AlterTable(def)).await
    }

    async fn rename_column(&mut self, table: &Arc<Table>, old: &str, new: &str) -> Result<()> {
        let mut def = table.def.clone();
        let column = position(&def, old)?;
        let new = names::truncated(new);
        not_systems(&new)?;
        if def.column_named(&new).is_some() {
            return Err(SqlError::new(
                "42701",
                format!(
                    "column \"{new}\" of relation \"{}\" already exists",
                    def.name
                ),
            ));
        }
        for check in &mut def.checks {
            check.expression = renamed_in(&check.expression, old, &new)?;
        }
        if let Some(key) = def.options.get_mut("partition_key") {
            let renamed: Vec<&str> = key
                .split(',')
                .map(|column| {
                    if column.trim() == old {
                        new.as_str()
                    } else {
                        column
                    }
                })
                .collect();
            *key = renamed.join(",");
        }
        def.columns[column].name = new;
        self.apply(Change::AlterTable(def)).await
    }

    async fn rename_constraint(&mut self, table: &Arc<Table>, old: &str, new: &str) -> Result<()> {
        let mut def = table.def.clone();
        let new = names::truncated(new);
        if let Some(check) = def.checks.iter_mut().find(|check| check.name == old) {
            check.name = new;
        } else if let Some(index) = def
            .indexes
            .iter_mut()
            .find(|index| index.constraint && index.name == old)
        {
            if self.catalog().relation_exists(&table.schema, &new) {
                return Err(exists(&new));
            }
            index.name = new;
        } else {
            return Err(SqlError::new(
                "42704",
                format!(
                    "constraint \"{old}\" for table \"{}\" does not exist",
                    table.name
                ),
            ));
        }
        self.apply(Change::AlterTable(def)).await
    }

    async fn set_options(&mut self, table: &Arc<Table>, given: &[ast::SqlOption]) -> Result<()> {
        let read = options::read(given)?;
        let is_taken = |name: &str| read.taken.iter().any(|taken| taken == name);
        let is_given = |name| read.texts.contains_key(name) || is_taken(name);
        if ["partition_key", "primary_key"].into_iter().any(is_given) {
            return Err(SqlError::unsupported(
                "partition_key and primary_key are chosen when the table is created",
            ));
        }
        let mut def = table.def.clone();
        if read.texts.contains_key("evictable") {
            def.evictable = read.evictable;
        }
        for name in &read.taken {
            if def.options.remove(name).is_some() && name == "evictable" {
                def.evictable = true;
            }
        }
        def.options.extend(read.texts);
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

fn pass(operation: &AlterTableOperation) -> Pass {
    match operation {
        AlterTableOperation::DropConstraint { .. } => Pass::Loosen,
        AlterTableOperation::DropColumn { .. } => Pass::DropColumn,
        AlterTableOperation::AlterColumn { op, .. } => match op {
            AlterColumnOperation::DropDefault | AlterColumnOperation::DropNotNull => Pass::Loosen,
            AlterColumnOperation::SetDataType { .. } => Pass::Type,
            _ => Pass::Rest,
        },
        _ => Pass::Rest,
    }
}

fn new_type(operation: &AlterTableOperation) -> Option<NewType<'_>> {
    match operation {
        AlterTableOperation::AlterColumn {
            column_name,
            op:
                AlterColumnOperation::SetDataType {
                    data_type, using, ..
                },
        } => Some(NewType {
            column: fold(column_name),
            data_type,
            using: using.as_ref(),
        }),
        _ => None,
    }
}

/// The role that OWNER TO names.
fn role_named(owner: &ast::Owner) -> String {
    match owner {
        ast::Owner::Ident(name) => fold(name),
        ast::Owner::CurrentRole | ast::Owner::CurrentUser => "current_user".to_owned(),
        ast::Owner::SessionUser => "session_user".to_owned(),
    }
}

/// A CHECK's text with a column's new name.
fn renamed_in(expression: &str, old: &str, new: &str) -> Result<String> {
    use std::ops::ControlFlow;
    let (mut expression, depth) = crate::parse::expression(expression)?;
    crate::stack::with_room(depth, || {
        let _ = ast::visit_expressions_mut(&mut expression, |inner| {
            let ident = match inner {
                ast::Expr::Identifier(ident) => Some(ident),
                ast::Expr::CompoundIdentifier(parts) => parts.last_mut(),
                _ => None,
            };
            if let Some(ident) = ident.filter(|ident| fold(ident) == old) {
                *ident = ast::Ident::with_quote('"', new);
            }
            ControlFlow::<()>::Continue(())
        });
        let renamed = expression.to_string();
        drop(expression);
        Ok(renamed)
    })
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
