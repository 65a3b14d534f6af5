//! CREATE, DROP and ALTER TRIGGER, and ALTER TABLE … ENABLE and DISABLE TRIGGER.

use std::sync::Arc;

use pg_raw_parse::Node;
use thermocline_engine::authority::{FIRST_ROLE_OID, Object, Privileges};
use thermocline_engine::ddl::Change;
use thermocline_engine::{FunctionDef, Table, TriggerDef, TriggerEvent};
use thermocline_query::types::{format_type, ids};

use super::alter_table::{column_named, no_column};
use super::dependents::quote_ident;
use super::view_query::facts;
use super::{Definition, mentioned, names};
use crate::error::{Result, SqlError};
use crate::parse::trigger::{CreateTrigger, TriggerCommand, Which};
use crate::privilege::{Actor, denied};

/// Which rows a condition may read.
#[derive(Clone, Copy)]
struct Readable {
    old: bool,
    new: bool,
}

impl Definition<'_> {
    pub(super) async fn trigger_command(
        &mut self,
        command: &TriggerCommand,
    ) -> Result<&'static str> {
        match command {
            TriggerCommand::Create(create) => self.create_trigger(create).await,
            TriggerCommand::Drop {
                table,
                name,
                if_exists,
            } => self.drop_trigger(table, name, *if_exists).await,
            TriggerCommand::Rename { table, name, to } => {
                self.rename_trigger(table, name, to).await
            }
        }
    }

    async fn create_trigger(&mut self, create: &CreateTrigger) -> Result<&'static str> {
        if let Some(view) = self.find_view(&create.table) {
            return Err(of_view(create, &view.name));
        }
        let table = self.find_table(&create.table)?;
        if table.is_materialized() {
            let message = format!("relation \"{}\" cannot have triggers", table.name);
            let why = "This operation is not supported for materialized views.";
            return Err(SqlError::new("42809", message).with_detail(why));
        }
        let actor = self.actor()?;
        actor.need_table(&self.catalog(), &table, Privileges::TRIGGER)?;
        let function = self.trigger_function(&create.function)?;
        let may = actor.is_superuser()
            || actor
                .authority()
                .privileges(actor.role(), &Object::Function(function.oid))
                .contains(Privileges::EXECUTE);
        if !may {
            return Err(denied("function", &function.name));
        }
        if table.partitioned.is_some() || table.partition_of.is_some() {
            return Err(SqlError::unsupported(
                "triggers of partitioned tables and of partitions are not supported",
                "Have the application do what they would do.",
            ));
        }
        if create.row && create.events.contains(&TriggerEvent::Truncate) {
            return Err(SqlError::unsupported(
                "TRUNCATE FOR EACH ROW triggers are not supported",
                "Make the trigger FOR EACH STATEMENT.",
            ));
        }
        let mut columns = Vec::with_capacity(create.columns.len());
        for name in &create.columns {
            let column = table.column_named(name);
            let column = column.ok_or_else(|| no_column(name, &table.def))?;
            if columns.contains(&column) {
                let message = format!("column \"{name}\" specified more than once");
                return Err(SqlError::new("42701", message));
            }
            columns.push(column);
        }
        let condition = match &create.condition {
            Some(condition) => {
                self.check_condition(create, condition, &table)?;
                Some(self.with_schemas(condition, &table.schema)?)
            }
            None => None,
        };
        let name = names::truncated(&create.name);
        let old = table.triggers.iter().find(|old| old.name == name);
        if old.is_some() && !create.replace {
            return Err(exists(&name, &table));
        }
        let trigger = TriggerDef {
            oid: old.map_or_else(|| self.db.allocate_oid(), |old| old.oid),
            name,
            function: function.oid,
            before: create.before,
            row: create.row,
            events: create.events.clone(),
            columns,
            condition,
            arguments: create.arguments.clone(),
            disabled: false,
        };
        let change = Change::CreateTrigger {
            table: table.oid,
            trigger,
        };
        self.apply(change).await?;
        Ok("CREATE TRIGGER")
    }

    /// The function without arguments of this name, which gives a trigger.
    fn trigger_function(&self, name: &[String]) -> Result<Arc<FunctionDef>> {
        let function = self.found_function(&(name.to_vec(), Some(Vec::new())))?;
        match function.result == ids::TRIGGER {
            true => Ok(function),
            false => {
                let name = &function.name;
                let message = format!("function {name} must return type trigger");
                Err(SqlError::new("42P17", message))
            }
        }
    }

    /// Looks whether a condition is one over the rows that the trigger has.
    fn check_condition(
        &self,
        create: &CreateTrigger,
        condition: &str,
        table: &Arc<Table>,
    ) -> Result<()> {
        let readable = Readable {
            old: !create.events.contains(&TriggerEvent::Insert),
            new: !create.events.contains(&TriggerEvent::Delete),
        };
        let mut checked = Ok(());
        mentioned::in_expression(condition, &mut |node| {
            if checked.is_ok() {
                checked = check_node(node, create, readable, table);
            }
        })?;
        checked?;
        self.is_condition(condition, table)
    }

    /// Looks whether a text is a condition, as a query over two of the table's rows.
    fn is_condition(&self, condition: &str, table: &Table) -> Result<()> {
        let catalog = self.catalog();
        let name = format!(
            "{}.{}",
            quote_ident(&table.schema),
            quote_ident(&table.name)
        );
        let query = format!("SELECT ({condition}) FROM {name} AS old, {name} AS new");
        // Whoever may make a trigger may not be allowed to read the table.
        let facts = crate::analysis::SessionFacts {
            actor: Actor::numbered(FIRST_ROLE_OID, &catalog)?,
            ..facts(self)?
        };
        let bound = crate::analysis::bind_view(&query, &catalog, self.db, &facts);
        let bound = bound.map_err(|mut error| {
            // Its place is in another text.
            error.position = None;
            error
        })?;
        let columns = bound.query.columns();
        match columns.first().map(|column| column.oid) {
            Some(ids::BOOL) => Ok(()),
            other => {
                let shown = format_type(other.unwrap_or_default(), -1);
                let message = format!("argument of WHEN must be type boolean, not type {shown}");
                Err(SqlError::new("42804", message))
            }
        }
    }

    async fn drop_trigger(
        &mut self,
        parts: &[String],
        name: &str,
        if_exists: bool,
    ) -> Result<&'static str> {
        const TAG: &str = "DROP TRIGGER";
        if if_exists && self.find_relation(parts).is_none() {
            let shown = parts.join(".");
            let message = format!("relation \"{shown}\" does not exist, skipping");
            self.notice("00000", message);
            return Ok(TAG);
        }
        let table = self.find_table(parts)?;
        let mut def = table.def.clone();
        let Some(at) = def.triggers.iter().position(|one| one.name == name) else {
            let error = no_trigger(name, &table);
            if !if_exists {
                return Err(error);
            }
            let message = format!(
                "trigger \"{name}\" for relation \"{}\" does not exist, skipping",
                table.name
            );
            self.notice("00000", message);
            return Ok(TAG);
        };
        def.triggers.remove(at);
        self.apply(Change::AlterTable(def)).await?;
        Ok(TAG)
    }

    async fn rename_trigger(
        &mut self,
        parts: &[String],
        name: &str,
        to: &str,
    ) -> Result<&'static str> {
        let table = self.find_table(parts)?;
        let to = names::truncated(to);
        let mut def = table.def.clone();
        if def.triggers.iter().any(|one| one.name == to) {
            return Err(exists(&to, &table));
        }
        let trigger = def.triggers.iter_mut().find(|one| one.name == name);
        trigger.ok_or_else(|| no_trigger(name, &table))?.name = to;
        def.triggers.sort_by(|one, other| one.name.cmp(&other.name));
        self.apply(Change::AlterTable(def)).await?;
        Ok("ALTER TRIGGER")
    }

    /// Drops the triggers that need something which goes, or refuses to.
    pub(super) async fn drop_triggers_of(
        &mut self,
        what: &str,
        needs: impl Fn(&Table, &TriggerDef) -> Result<bool>,
        cascade: bool,
    ) -> Result<()> {
        let catalog = self.catalog();
        let mut found: Vec<(Arc<Table>, Vec<u32>)> = Vec::new();
        let mut shown = Vec::new();
        for table in catalog.tables.values() {
            let mut own = Vec::new();
            for trigger in &table.triggers {
                if needs(table, trigger)? {
                    own.push(trigger.oid);
                    let (name, of) = (quote_ident(&trigger.name), quote_ident(&table.name));
                    shown.push(format!("trigger {name} on table {of}"));
                }
            }
            if !own.is_empty() {
                found.push((Arc::clone(table), own));
            }
        }
        if found.is_empty() {
            return Ok(());
        }
        if !cascade {
            let lines = shown.iter().map(|one| format!("{one} depends on {what}"));
            let message = format!("cannot drop {what} because other objects depend on it");
            return Err(SqlError::new("2BP01", message)
                .with_detail(lines.collect::<Vec<_>>().join("\n"))
                .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
        let lines: Vec<String> = shown
            .iter()
            .map(|one| format!("drop cascades to {one}"))
            .collect();
        self.notices.push(match lines.as_slice() {
            [line] => SqlError::new("00000", line.as_str()),
            lines => {
                let message = format!("drop cascades to {} other objects", lines.len());
                SqlError::new("00000", message).with_detail(lines.join("\n"))
            }
        });
        for (table, triggers) in found {
            let mut def = table.def.clone();
            def.triggers.retain(|one| !triggers.contains(&one.oid));
            // Who owns what goes owns what hangs on it.
            let change = Change::AlterTable(def);
            self.db.ddl(self.txn, self.options, change).await?;
        }
        Ok(())
    }

    /// ENABLE and DISABLE TRIGGER.
    pub(super) async fn enable_triggers(
        &mut self,
        table: &Arc<Table>,
        which: &Which,
        enabled: bool,
    ) -> Result<()> {
        let mut def = table.def.clone();
        match which {
            Which::All => {
                for trigger in &mut def.triggers {
                    trigger.disabled = !enabled;
                }
            }
            Which::Named(name) => {
                let trigger = def.triggers.iter_mut().find(|one| one.name == *name);
                trigger.ok_or_else(|| no_trigger(name, table))?.disabled = !enabled;
            }
        }
        self.apply(Change::AlterTable(def)).await
    }
}

/// Whether a trigger names a column, or reads it in its condition.
pub(super) fn needs_column(table: &Table, trigger: &TriggerDef, column: usize) -> Result<bool> {
    if trigger.columns.contains(&column) {
        return Ok(true);
    }
    let Some(condition) = &trigger.condition else {
        return Ok(false);
    };
    Ok(mentioned::columns(condition, &table.def)?.contains(&column))
}

/// 0A000 where a trigger needs one of the columns whose types are to change.
pub(super) fn are_of_no_trigger<'n>(
    table: &Table,
    names: impl Iterator<Item = &'n str>,
) -> Result<()> {
    for name in names {
        is_of_no_trigger(table, column_named(table, name)?)?;
    }
    Ok(())
}

fn is_of_no_trigger(table: &Table, column: usize) -> Result<()> {
    for trigger in &table.triggers {
        if needs_column(table, trigger, column)? {
            let detail = format!(
                "trigger {} on table {} depends on column \"{}\"",
                quote_ident(&trigger.name),
                quote_ident(&table.name),
                table.columns[column].name
            );
            return Err(SqlError::unsupported(
                "cannot alter type of a column used in a trigger definition",
                "Drop the trigger, and create it again afterwards.",
            )
            .with_detail(detail));
        }
    }
    Ok(())
}

/// Looks at a node of a condition: a column is one of a row that the trigger has.
fn check_node(
    node: Node<'_>,
    create: &CreateTrigger,
    readable: Readable,
    table: &Table,
) -> Result<()> {
    let reference = match node {
        Node::SubLink(_) => {
            return Err(SqlError::unsupported(
                "cannot use subquery in trigger WHEN condition",
                "Ask in the trigger's function, by IF.",
            ));
        }
        Node::ColumnRef(reference) => reference,
        _ => return Ok(()),
    };
    let fields: Vec<Node<'_>> = reference.fields().iter().collect();
    let first = fields.first().and_then(|field| field.as_str());
    let (Some(row @ ("old" | "new")), [_, rest @ ..]) = (first, fields.as_slice()) else {
        let name = first.unwrap_or_default();
        return Err(match fields.len() {
            1 if table.column_named(name).is_some() => {
                SqlError::new("42702", format!("column reference \"{name}\" is ambiguous"))
            }
            1 => SqlError::new("42703", format!("column \"{name}\" does not exist")),
            _ => SqlError::new(
                "42P01",
                format!("missing FROM-clause entry for table \"{name}\""),
            ),
        });
    };
    if !create.row {
        let message = "statement trigger's WHEN condition cannot reference column values";
        return Err(SqlError::new("42P17", message));
    }
    if row == "old" && !readable.old {
        let message = "INSERT trigger's WHEN condition cannot reference OLD values";
        return Err(SqlError::new("42P17", message));
    }
    if row == "new" && !readable.new {
        let message = "DELETE trigger's WHEN condition cannot reference NEW values";
        return Err(SqlError::new("42P17", message));
    }
    let generated = table.live_columns().find(|(_, column)| column.generated);
    let Some(name) = rest.first().and_then(|field| field.as_str()) else {
        // The whole row.
        return match (row, create.before, generated) {
            ("new", true, Some((_, column))) => Err(reads_generated()
                .with_detail(
                    "A whole-row reference is used and the table contains generated columns.",
                )
                .with_column(column.name.clone())),
            _ => Ok(()),
        };
    };
    let column = table.column_named(name);
    let column = column.ok_or_else(|| {
        let message = format!("column {row}.{name} does not exist");
        SqlError::new("42703", message)
    })?;
    if row == "new" && create.before && table.columns[column].generated {
        let detail = format!("Column \"{name}\" is a generated column.");
        return Err(reads_generated().with_detail(detail));
    }
    Ok(())
}

#[cold]
fn reads_generated() -> SqlError {
    let message = "BEFORE trigger's WHEN condition cannot reference NEW generated columns";
    SqlError::new("42P17", message)
}

#[cold]
fn exists(name: &str, table: &Table) -> SqlError {
    let message = format!(
        "trigger \"{name}\" for relation \"{}\" already exists",
        table.name
    );
    SqlError::new("42710", message)
}

#[cold]
fn no_trigger(name: &str, table: &Table) -> SqlError {
    let message = format!(
        "trigger \"{name}\" for table \"{}\" does not exist",
        table.name
    );
    SqlError::new("42704", message)
}

/// Triggers of views are not done.
#[cold]
fn of_view(create: &CreateTrigger, view: &str) -> SqlError {
    match create.row {
        true => SqlError::new("42809", format!("\"{view}\" is a view"))
            .with_detail("Views cannot have row-level BEFORE or AFTER triggers."),
        false => SqlError::unsupported(
            "triggers of views are not supported",
            "Make a trigger of the view's table.",
        ),
    }
}
