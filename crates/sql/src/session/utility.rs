//! The commands that are no queries: transaction control, settings,
//! prepared statements, cursors, DDL and what is only accepted.

use std::pin::Pin;
use std::sync::Arc;

use thermocline_engine::backup::BackupOptions;
use thermocline_engine::{Table, TriggerEvent};
use thermocline_query::types::ids;
use thermocline_values::types::DataType;
use thermocline_values::value::ValueRef;

use super::prepared::Prepared;
use super::run::{Run, counted};
use super::transaction::Block;
use super::triggers::Does;
use super::{Client, Session};
use crate::bind;
use crate::ddl::{self, Definition};
use crate::error::{Result, SqlError};
use crate::messages;
use crate::output::{OutputColumn, RowWriter};
use crate::parse::statement::{Accepted, Ddl, Explain, Modes, Named, Set, Statement};
use crate::settings::{self, Settings};

impl Session {
    /// Runs a statement that is no query. A future of its own: some run other statements.
    pub(super) fn run_utility<'s>(
        &'s mut self,
        statement: &'s Statement,
        run: &'s Run<'s>,
        client: &'s mut Client,
    ) -> Pin<Box<dyn Future<Output = Result<()>> + Send + 's>> {
        match statement {
            // Each transaction has two of these, and the future of all the others is large.
            Statement::Begin { .. } | Statement::Commit { .. } | Statement::Rollback { .. } => {
                Box::pin(self.bound(statement, client))
            }
            _ => Box::pin(self.utility(statement, run, client)),
        }
    }

    /// BEGIN, COMMIT or ROLLBACK.
    async fn bound(&mut self, statement: &Statement, client: &mut Client) -> Result<()> {
        let tag = match statement {
            Statement::Begin { modes, start } => {
                self.begin(*modes, client)?;
                if *start { "START TRANSACTION" } else { "BEGIN" }
            }
            Statement::Commit { chain } => self.end(true, *chain, client).await?,
            Statement::Rollback { chain } => self.end(false, *chain, client).await?,
            _ => return Err(SqlError::internal("no bound of a transaction")),
        };
        messages::command_complete(&mut client.out, tag);
        Ok(())
    }

    async fn utility(
        &mut self,
        statement: &Statement,
        run: &Run<'_>,
        client: &mut Client,
    ) -> Result<()> {
        let tag = match statement {
            Statement::Query(_)
            | Statement::Begin { .. }
            | Statement::Commit { .. }
            | Statement::Rollback { .. } => {
                return Err(SqlError::internal(
                    "a query, or the bound of a transaction, is no utility",
                ));
            }
            Statement::Savepoint(name) => {
                self.transaction
                    .savepoint(name, &self.engine.db, &self.context)?;
                "SAVEPOINT"
            }
            Statement::Release(name) => {
                self.transaction.release(name)?;
                self.release_cursors(self.transaction.savepoints());
                "RELEASE"
            }
            Statement::RollbackTo(name) => {
                self.transaction.rollback_to(name, &self.context).await?;
                self.close_cursors_behind(self.transaction.savepoints());
                "ROLLBACK"
            }
            Statement::SetTransaction(modes) => {
                self.set_transaction(*modes, client)?;
                "SET"
            }
            Statement::SetSessionCharacteristics(modes) => {
                self.set_characteristics(*modes)?;
                "SET"
            }
            Statement::Set(set) => {
                self.set(set, client)?;
                "SET"
            }
            Statement::Reset(name) => {
                match name.as_str() {
                    "role" | "session_authorization" => self.context.assume(name, None, false)?,
                    name => self.context.set(name, None, false)?,
                }
                "RESET"
            }
            Statement::ResetAll => {
                self.context.settings(Settings::reset_all);
                "RESET"
            }
            Statement::AlterSystem(alter) => {
                self.context
                    .actor()?
                    .need_superuser("execute ALTER SYSTEM")?;
                self.alter_system(alter)?;
                "ALTER SYSTEM"
            }
            Statement::Show(_) | Statement::ShowAll => {
                self.show(statement, run, client)?;
                "SHOW"
            }
            Statement::Discard(what) => self.discard(what).await?,
            Statement::Prepare {
                name,
                types,
                statement,
            } => {
                self.prepare(name, types, statement, run.prepared).await?;
                "PREPARE"
            }
            Statement::Execute { name, arguments } => {
                return self.execute_prepared(name, arguments, run, client).await;
            }
            Statement::Call(call) => return self.call(call, run, client).await,
            Statement::Do(body) => return self.run_do(body, client).await,
            Statement::Deallocate(Some(name)) => {
                if !self.statements.remove(name) {
                    return Err(SqlError::new(
                        "26000",
                        format!("prepared statement \"{name}\" does not exist"),
                    ));
                }
                "DEALLOCATE"
            }
            Statement::Deallocate(None) => {
                self.statements.clear();
                "DEALLOCATE ALL"
            }
            Statement::Declare(declare) => {
                self.declare(declare, run).await?;
                "DECLARE CURSOR"
            }
            Statement::Fetch(fetch) => return self.fetch(fetch, run, client).await,
            Statement::CloseCursor(Some(name)) => {
                if self.portals.remove(name).is_none() {
                    return Err(no_cursor(name));
                }
                "CLOSE CURSOR"
            }
            Statement::CloseCursor(None) => {
                self.portals.clear();
                "CLOSE CURSOR ALL"
            }
            Statement::Copy(copy) => return self.copy(copy, run, client).await,
            Statement::Lock(lock) => {
                self.lock_tables(lock).await?;
                "LOCK TABLE"
            }
            Statement::SetConstraints { names, deferred } => {
                self.warn_outside_block("SET CONSTRAINTS", client);
                self.set_constraints(names.as_deref(), *deferred).await?;
                "SET CONSTRAINTS"
            }
            Statement::Listen(channel) => {
                self.context.listen(channel)?;
                "LISTEN"
            }
            Statement::Unlisten(channel) => {
                self.context.unlisten(channel.as_deref());
                "UNLISTEN"
            }
            Statement::Notify { channel, payload } => {
                self.context.notify(channel, payload)?;
                "NOTIFY"
            }
            Statement::Accepted(command) => {
                self.accept(command, client)?;
                if command.tag == "VACUUM" {
                    self.merge_deltas(&command.named, client).await?;
                }
                command.tag
            }
            Statement::Checkpoint => {
                self.context.actor()?.need_superuser("do CHECKPOINT")?;
                self.engine.db.checkpoint().await?;
                "CHECKPOINT"
            }
            Statement::Backup {
                directory,
                max_rate,
            } => {
                self.context.actor()?.need_superuser("make a backup")?;
                self.back_up(directory, *max_rate, client).await?;
                "BACKUP"
            }
            Statement::Tablespace(command) => self.tablespace(command, client).await?,
            Statement::Residence(command) => self.residence(command, client).await?,
            Statement::Explain(explain) => return self.explain(explain, run, client).await,
            Statement::TableAs(create) => return self.table_as(create, client).await,
            Statement::Ddl(ddl) => match self.define(ddl, client).await? {
                ddl::MADE => {
                    counted(client, b"SELECT ", self.rows_processed);
                    return Ok(());
                }
                tag => tag,
            },
        };
        messages::command_complete(&mut client.out, tag);
        Ok(())
    }

    /// A generation of a backup; a notice says what it holds.
    async fn back_up(
        &mut self,
        directory: &str,
        max_rate: Option<u64>,
        client: &mut Client,
    ) -> Result<()> {
        self.need_by_itself("BACKUP")?;
        if !directory.starts_with('/') {
            return Err(
                SqlError::new("42602", "relative path not allowed for BACKUP")
                    .with_detail("BACKUP writes into a directory of the server's machine.")
                    .with_hint("Give the path from the root on."),
            );
        }
        let options = BackupOptions {
            bytes_per_second: max_rate.map(|kilobytes| kilobytes << 10),
        };
        let made = self.engine.db.backup_to(directory, &options).await?;
        let said = format!(
            "generation {} at LSN {}: {} of {} blocks are new, {} bytes copied",
            made.generation, made.lsn, made.blocks_copied, made.blocks, made.bytes_copied
        );
        self.notify(client, "NOTICE", &SqlError::new("00000", said));
        Ok(())
    }

    fn begin(&mut self, modes: Modes, client: &mut Client) -> Result<()> {
        if self.transaction.block() == Block::Explicit {
            let warning = SqlError::new("25001", "there is already a transaction in progress");
            self.notify(client, "WARNING", &warning);
            return self.transaction.set_modes(modes);
        }
        self.transaction.begin(Block::Explicit, &self.context);
        self.transaction.set_modes(modes)
    }

    /// COMMIT and ROLLBACK; a failed transaction is rolled back by both.
    async fn end(
        &mut self,
        commit: bool,
        chain: bool,
        client: &mut Client,
    ) -> Result<&'static str> {
        let tag = if commit { "COMMIT" } else { "ROLLBACK" };
        if self.transaction.block() != Block::Explicit {
            if chain {
                return Err(SqlError::new(
                    "25P01",
                    format!("{tag} AND CHAIN can only be used in transaction blocks"),
                ));
            }
            let warning = SqlError::new("25P01", "there is no transaction in progress");
            self.notify(client, "WARNING", &warning);
            if self.transaction.block() == Block::None {
                return Ok(tag);
            }
        }
        let modes = Modes {
            isolation: Some(self.transaction.isolation(&self.context)),
            read_only: Some(self.transaction.is_read_only(&self.context)),
            deferrable: Some(self.transaction.is_deferrable(&self.context)),
        };
        self.close_transaction_portals();
        let committed = if commit {
            if let Err(error) = self.settle_deferred().await {
                self.settle_held(false);
                return Err(error);
            }
            let options = self.options();
            self.transaction
                .commit(&self.engine.db, &options, &self.context)
                .await
        } else {
            self.transaction
                .rollback(&self.engine.db, &self.context)
                .await;
            Ok(false)
        };
        self.settle_held(matches!(committed, Ok(true)));
        self.count_transaction(matches!(committed, Ok(true)));
        let committed = committed?;
        if chain {
            self.transaction.begin(Block::Explicit, &self.context);
            self.transaction.set_modes(modes)?;
        }
        Ok(if committed { "COMMIT" } else { "ROLLBACK" })
    }

    fn set_transaction(&mut self, modes: Modes, client: &mut Client) -> Result<()> {
        if self.warn_outside_block("SET TRANSACTION", client) {
            return Ok(());
        }
        self.transaction.set_modes(modes)
    }

    fn set_characteristics(&mut self, modes: Modes) -> Result<()> {
        self.context.settings(|settings| {
            if let Some(isolation) = modes.isolation {
                let value = [isolation.name().to_owned()];
                settings.set("default_transaction_isolation", Some(&value), false)?;
            }
            if let Some(read_only) = modes.read_only {
                let value = [if read_only { "on" } else { "off" }.to_owned()];
                settings.set("default_transaction_read_only", Some(&value), false)?;
            }
            if let Some(deferrable) = modes.deferrable {
                let value = [if deferrable { "on" } else { "off" }.to_owned()];
                settings.set("default_transaction_deferrable", Some(&value), false)?;
            }
            Ok(())
        })
    }

    fn set(&mut self, set: &Set, client: &mut Client) -> Result<()> {
        if set.local {
            self.warn_outside_block("SET LOCAL", client);
        }
        let one = set.value.as_deref().and_then(<[String]>::first);
        match (set.name.as_str(), one) {
            ("transaction_isolation", Some(level)) => {
                let isolation = crate::parse::statement::IsolationLevel::from_name(level);
                self.set_transaction(
                    Modes {
                        isolation,
                        ..Modes::default()
                    },
                    client,
                )
            }
            ("transaction_read_only", Some(value)) => self.set_transaction(
                Modes {
                    read_only: Some(matches!(value.as_str(), "on" | "true" | "1")),
                    ..Modes::default()
                },
                client,
            ),
            ("role" | "session_authorization", name) => {
                let name = name.map(String::as_str);
                self.context.assume(&set.name, name, set.local)
            }
            _ => self.context.set(&set.name, set.value.as_deref(), set.local),
        }
    }

    /// The value of a setting, those of the transaction included.
    fn shown(&self, name: &str) -> Result<String> {
        match name {
            "transaction_isolation" => {
                Ok(self.transaction.isolation(&self.context).name().to_owned())
            }
            "transaction_read_only" => {
                let read_only = self.transaction.is_read_only(&self.context);
                Ok(if read_only { "on" } else { "off" }.to_owned())
            }
            "transaction_deferrable" => {
                let deferrable = self.transaction.is_deferrable(&self.context);
                Ok(if deferrable { "on" } else { "off" }.to_owned())
            }
            _ => self.context.settings(|settings| settings.show(name)),
        }
    }

    fn show(&mut self, statement: &Statement, run: &Run<'_>, client: &mut Client) -> Result<()> {
        let mut table = Vec::new();
        match statement {
            Statement::Show(name) => table.push(vec![self.shown(name)?]),
            _ => {
                for (name, value, description) in self.context.settings(|settings| settings.all()) {
                    table.push(vec![name, value, description.to_owned()]);
                }
            }
        }
        let columns = command_columns(statement).unwrap_or_default();
        send_texts(&columns, &table, run, client);
        Ok(())
    }

    async fn discard(&mut self, what: &str) -> Result<&'static str> {
        Ok(match what {
            "plans" => {
                self.statements.forget_plans();
                "DISCARD PLANS"
            }
            "sequences" => {
                self.context.discard_sequences();
                "DISCARD SEQUENCES"
            }
            "temp" | "temporary" => {
                self.discard_temporary().await?;
                "DISCARD TEMP"
            }
            _ => {
                self.need_by_itself("DISCARD ALL")?;
                self.portals.clear();
                self.statements.clear();
                self.texts.clear();
                self.unnamed_texts.clear();
                self.shapes.clear();
                self.context.settings(Settings::reset_all);
                self.context.discard_sequences();
                self.context.unlisten(None);
                self.context.end_advisory_of_session();
                self.discard_temporary().await?;
                "DISCARD ALL"
            }
        })
    }

    async fn prepare(
        &mut self,
        name: &str,
        types: &[String],
        statement: &Statement,
        from: &Prepared,
    ) -> Result<()> {
        let catalog = self.transaction.catalog(&self.engine.db);
        let search_path = self.context.settings(|settings| settings.search_path());
        let names = bind::TypeNames {
            catalog: &catalog,
            search_path: &search_path,
        };
        let declared = types
            .iter()
            .map(|text| bind::type_of_text(text, names).map(|(oid, _)| oid))
            .collect::<Result<Vec<u32>>>()?;
        let charge = self.charge_prepared(&from.text).await?;
        let text = Arc::clone(&from.text);
        let prepared = Prepared::new(text, Some(statement.clone()), declared);
        let prepared = prepared.of_message(from).of_depth(from.depth);
        let prepared = prepared.named(name);
        if let Some(query) = prepared.query() {
            self.plan(&prepared, query).await?;
        }
        self.statements.insert(prepared, charge, true)
    }

    fn accept(&mut self, command: &Accepted, client: &mut Client) -> Result<()> {
        if command.outside_transaction {
            self.need_by_itself(command.tag)?;
        }
        let catalog = self.transaction.catalog(&self.engine.db);
        let search_path = self.context.settings(|settings| settings.search_path());
        for Named { relation, columns } in &command.named {
            let system = match relation.as_slice() {
                [relation] => relation.starts_with("pg_"),
                [.., schema, _] => {
                    matches!(
                        schema.as_str(),
                        "pg_catalog" | "pg_toast" | "information_schema"
                    )
                }
                [] => true,
            };
            if system {
                continue;
            }
            let Some((schema, name)) = ddl::find_relation(&catalog, &search_path, relation) else {
                return Err(SqlError::undefined_table(&relation.join(".")));
            };
            if let Some(table) = catalog.table_by_name(&schema, &name) {
                let missing = |column: &&String| table.column_named(column).is_none();
                if let Some(column) = columns.iter().find(missing) {
                    let message =
                        format!("column \"{column}\" of relation \"{name}\" does not exist");
                    return Err(SqlError::new("42703", message));
                }
            }
        }
        if let Some(notice) = &command.notice {
            self.notify(client, "NOTICE", &SqlError::new("00000", notice.clone()));
        }
        Ok(())
    }

    /// Runs a DDL statement, in a transaction of its own if there is none.
    pub(super) async fn define(
        &mut self,
        statement: &Ddl,
        client: &mut Client,
    ) -> Result<&'static str> {
        let own = self.transaction.block() == Block::None;
        if matches!(statement, Ddl::CreateIndex(create) if create.concurrently) {
            self.need_by_itself("CREATE INDEX CONCURRENTLY")?;
        }
        self.check_writable("DDL")?;
        self.context.take_temporary_schema();
        if own {
            self.transaction.begin(Block::Implicit, &self.context);
        }
        let tag = match statement {
            Ddl::Truncate(_) => Box::pin(self.truncate(statement, client)).await?,
            Ddl::Materialized(_) | Ddl::Refresh(_) => {
                Box::pin(self.materialized(statement, own, client)).await?
            }
            _ => {
                let done = Box::pin(self.carry_out(statement, None, client)).await;
                done.map_err(over_rows)?.0
            }
        };
        if own {
            self.end_implicit().await?;
        }
        Ok(tag)
    }

    /// TRUNCATE, and what triggers are to do.
    async fn truncate(&mut self, statement: &Ddl, client: &mut Client) -> Result<&'static str> {
        let looked = self.carry_out(statement, Some(Vec::new()), client).await?;
        let does = |table: &Arc<Table>| Does::new(table, TriggerEvent::Truncate);
        let mut does: Vec<Does> = looked.1.iter().flatten().map(does).collect();
        let mark = self.triggers.begin();
        self.before_statement(&does).await?;
        let (tag, _) = self.carry_out(statement, None, client).await?;
        // Those are called the other way round.
        does.reverse();
        self.behind_statement(&does).await?;
        self.fire_after().await?;
        self.triggers.end(mark);
        self.tell_notices(client);
        Ok(tag)
    }

    /// Carries out a definition; or only looks at which tables it empties.
    pub(super) async fn carry_out(
        &mut self,
        statement: &Ddl,
        truncates: Option<Vec<Arc<Table>>>,
        client: &mut Client,
    ) -> Result<(&'static str, Option<Vec<Arc<Table>>>)> {
        let options = self.options();
        let (search_path, creation_path, role, styles, method, tablespace, bodies) =
            self.context.settings(|settings| {
                (
                    settings.search_path(),
                    settings.creation_path(),
                    settings.role(),
                    settings.styles(),
                    settings.get("default_table_access_method"),
                    settings.get("default_tablespace"),
                    settings.get("check_function_bodies"),
                )
            });
        let session_user = self.context.session_user();
        let now_us = self.context.transaction_us();
        let Self {
            engine,
            transaction,
            context,
            ..
        } = self;
        let txn = transaction
            .of_block(&engine.db)
            .ok_or_else(|| SqlError::internal("a block without a transaction"))?;
        let mut definition = Definition {
            db: &engine.db,
            txn,
            options: &options,
            search_path: &search_path,
            creation_path: &creation_path,
            access_method: method.as_deref(),
            tablespace: tablespace.as_deref(),
            checks_bodies: bodies.as_deref() != Some("off"),
            session: &**context,
            role: &role,
            styles: &styles,
            session_user: &session_user,
            now_us,
            truncates,
            notices: Vec::new(),
            on_commit: Vec::new(),
        };
        let outcome = ddl::run(statement, &mut definition).await;
        // What a TRUNCATE empties is told of before the triggers are called.
        let is_told = definition.truncates.is_some() || !matches!(statement, Ddl::Truncate(_));
        let mut notices = std::mem::take(&mut definition.notices);
        notices.retain(|_| is_told);
        let on_commit = std::mem::take(&mut definition.on_commit);
        let truncates = definition.truncates.take();
        self.transaction.on_commit.extend(on_commit);
        for notice in &notices {
            self.notify(client, "NOTICE", notice);
        }
        Ok((outcome?, truncates))
    }

    /// The columns of a command's rows, if it has any.
    pub(super) fn utility_columns(
        &self,
        prepared: &Prepared,
    ) -> Result<Option<Arc<[OutputColumn]>>> {
        Ok(match &prepared.statement {
            Some(Statement::Fetch(fetch)) if !fetch.skip => self
                .portals
                .get(&fetch.cursor)
                .ok_or_else(|| no_cursor(&fetch.cursor))?
                .planned
                .as_ref()
                .and_then(|planned| planned.columns.clone()),
            Some(Statement::Call(call)) => self.call_columns(call, &prepared.declared)?,
            Some(Statement::Execute { name, .. }) => self.statements.known_columns(name)?,
            Some(Statement::Show(name)) => {
                // A name that is none is an error already here.
                self.shown(name)?;
                command_columns(&Statement::Show(name.clone())).map(Arc::from)
            }
            Some(statement) => command_columns(statement).map(Arc::from),
            None => None,
        })
    }
}

/// The columns of SHOW and EXPLAIN.
fn command_columns(statement: &Statement) -> Option<Vec<OutputColumn>> {
    let text = |name: &str| OutputColumn::scalar(name, DataType::Text);
    match statement {
        Statement::Show(name) => {
            let shown = settings::find(name).map_or(name.as_str(), |setting| setting.name);
            Some(vec![text(shown)])
        }
        Statement::ShowAll => Some(vec![text("name"), text("setting"), text("description")]),
        Statement::Explain(explain) => Some(vec![explain_column(explain)]),
        _ => None,
    }
}

/// The one column of EXPLAIN.
pub(super) fn explain_column(explain: &Explain) -> OutputColumn {
    let data_type = match explain.json {
        true => DataType::from_oid(ids::JSON, -1).unwrap_or(DataType::Text),
        false => DataType::Text,
    };
    OutputColumn::scalar("QUERY PLAN", data_type)
}

/// Sends rows of texts.
pub(super) fn send_texts(
    columns: &[OutputColumn],
    table: &[Vec<String>],
    run: &Run<'_>,
    client: &mut Client,
) {
    if run.describe {
        messages::row_description(&mut client.out, columns, run.formats);
    }
    let mut rows = RowWriter::wire(Vec::new(), run.formats.clone());
    for row in table {
        rows.begin_row(row.len());
        for value in row {
            rows.value(ValueRef::Text(value), &DataType::Text);
        }
        rows.end_row();
    }
    client.out.extend_from_slice(rows.bytes());
}

#[cold]
pub(super) fn no_cursor(name: &str) -> SqlError {
    SqlError::new("34000", format!("cursor \"{name}\" does not exist"))
}

/// A definition does not wait, and makes no calls: what it computes for the rows that are there has none.
#[cold]
fn over_rows(error: SqlError) -> SqlError {
    match error.wait {
        None => error,
        Some(_) => SqlError::unsupported(
            "a definition cannot call a function of PL/pgSQL for the rows that are there, nor sleep",
            "Add the column without it and UPDATE the rows; add a CHECK with NOT VALID.",
        ),
    }
}
