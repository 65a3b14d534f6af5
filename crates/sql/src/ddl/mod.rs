//! DDL: statements that change the catalog become the engine's changes, in
//! the session's transaction or one of their own. Names that PostgreSQL makes
//! up are made up its way, errors are its errors. What a statement does in
//! several changes happens in one transaction: all or nothing.

mod alter_table;
mod attribute;
mod check;
mod column_type;
mod comment;
mod create_table;
mod default_privileges;
mod dependents;
mod domain;
mod drop;
mod drop_column;
mod foreign_key;
mod function;
mod generated;
mod grant;
mod hanging;
mod identity;
mod index;
mod label;
mod like;
mod lock;
mod materialized;
mod mentioned;
mod named;
mod names;
mod options;
mod owned;
mod partition;
mod partition_bound;
mod partition_changes;
mod place;
mod rename;
mod residence;
mod rewrite;
mod rights;
mod role;
mod schema;
mod sequence;
mod session_settings;
mod set_schema;
mod tablespace;
mod temporary;
mod trigger;
mod user_type;
mod using_index;
mod verify;
mod view;
mod view_query;

use default_privileges::owned_by_its_maker;
pub(crate) use index::column_names as index_column_names;
pub(crate) use materialized::MADE;
pub(crate) use mentioned::{columns as columns_of, is_operation};
pub(crate) use named::{Named, Place, places, places_in_condition, places_in_query, replaced};
pub(crate) use names::truncated as truncated_name;
pub(crate) use place::{CreationPlace, find_relation};
pub(crate) use residence::columns_of as columns_of_residence;
pub(crate) use temporary::{drop_schema_with_all, drop_tables_with_all};
pub(crate) use user_type::type_named;

use std::pin::Pin;
use std::sync::Arc;

use thermocline_engine::authority::{DefaultsOf, FIRST_ROLE_OID};
use thermocline_engine::ddl::Change;
use thermocline_engine::{Catalog, Database, RunOptions, Table, Transaction, ViewDef};

use crate::bind::{BindContext, TypeNames};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::expr::SessionInfo;
use crate::parse::statement::{Ddl, OnCommit};
use crate::privilege::Actor;
use crate::styles::Styles;
use crate::temporary::{not_others, path_within};

/// What a DDL statement is run with.
pub(crate) struct Definition<'a> {
    pub(crate) db: &'a Arc<Database>,
    pub(crate) txn: &'a mut Transaction,
    pub(crate) options: &'a RunOptions,
    pub(crate) search_path: &'a [String],
    /// Where new relations go; see [`crate::settings::Settings::creation_path`].
    pub(crate) creation_path: &'a [String],
    /// What new tables are kept in that do not say it.
    pub(crate) access_method: Option<&'a str>,
    /// Where the evicted rows of new tables go that do not say it.
    pub(crate) tablespace: Option<&'a str>,
    /// Whether the body of a function is looked at when it is made.
    pub(crate) checks_bodies: bool,
    pub(crate) session: &'a dyn SessionInfo,
    /// Who it is run as,
    pub(crate) role: &'a Arc<str>,
    /// and how its dates, times and numbers look,
    pub(crate) styles: &'a Arc<Styles>,
    /// and whose session it is.
    pub(crate) session_user: &'a str,
    pub(crate) now_us: i64,
    /// The tables that a TRUNCATE empties, whose triggers are called before it: those are all that
    /// is wanted of it now. None: it is carried out.
    pub(crate) truncates: Option<Vec<Arc<Table>>>,
    /// NOTICEs for the client.
    pub(crate) notices: Vec<SqlError>,
    /// What a commit does with the tables that were made, where it does something.
    pub(crate) on_commit: Vec<(u32, OnCommit)>,
}

/// A definition that is carried out; it gives the command tag.
type Carried<'a> = Pin<Box<dyn Future<Output = Result<&'static str>> + Send + 'a>>;

/// Runs a DDL statement and returns its command tag.
///
/// # Errors
/// As PostgreSQL; the transaction is to be rolled back then.
pub(crate) async fn run(statement: &Ddl, definition: &mut Definition<'_>) -> Result<&'static str> {
    definition.lock_named(statement).await?;
    let db = definition.db;
    // What a definition asks of rows is asked of all.
    db.all_there(definition.options).await?;
    db.begin_ddl(definition.txn)?;
    carried_out(statement, definition).await
}

/// A definition as it is carried out, each in a future of its own: that of all would be on the stack.
fn carried_out<'a>(statement: &'a Ddl, definition: &'a mut Definition<'_>) -> Carried<'a> {
    match statement {
        Ddl::CreateTable(create) => Box::pin(definition.create_table(create)),
        Ddl::CreateSequence(create) => Box::pin(definition.create_sequence(create)),
        Ddl::AlterSequence {
            name,
            if_exists,
            change,
        } => Box::pin(definition.alter_sequence(name, *if_exists, change)),
        Ddl::Role(command) => Box::pin(definition.role_command(command)),
        Ddl::Grant(command) => Box::pin(definition.grant(command)),
        Ddl::DefaultPrivileges(command) => Box::pin(definition.default_privileges(command)),
        Ddl::OwnedBy(command) => Box::pin(definition.owned_by(command)),
        Ddl::Owner { owned, role } => Box::pin(definition.change_owner(owned, role)),
        Ddl::TableOf(table) => Box::pin(definition.create_table_of(table)),
        Ddl::Materialized(create) => Box::pin(definition.create_materialized(create)),
        Ddl::Refresh(refresh) => Box::pin(definition.refresh(refresh)),
        Ddl::Comment(comment) => Box::pin(definition.comment(comment)),
        Ddl::View(command) => Box::pin(definition.view_command(command)),
        Ddl::Type(command) => Box::pin(definition.type_command(command)),
        Ddl::Domain(command) => Box::pin(definition.domain_command(command)),
        Ddl::Function(command) => Box::pin(definition.function_command(command)),
        Ddl::Trigger(command) => Box::pin(definition.trigger_command(command)),
        Ddl::AlterTable(alter) => Box::pin(definition.alter_table(alter)),
        Ddl::CreateIndex(create) => Box::pin(definition.create_index(create)),
        Ddl::RenameIndex {
            name,
            if_exists,
            to,
        } => Box::pin(definition.rename_index(name, *if_exists, to)),
        Ddl::AttachIndex { name, partition } => Box::pin(definition.attach_index(name, partition)),
        Ddl::Tablespace(change) => Box::pin(definition.tablespace_change(change)),
        Ddl::Truncate(truncate) => Box::pin(definition.truncate(truncate)),
        Ddl::CreateSchema(create) => Box::pin(definition.create_schema(create)),
        Ddl::SetSchema(of) => Box::pin(definition.set_schema(of)),
        Ddl::Drop(drop) => Box::pin(definition.drop_objects(drop)),
    }
}

impl Definition<'_> {
    /// Carries out one change, if it may be: there is no other way to the engine.
    pub(crate) async fn apply(&mut self, change: Change) -> Result<()> {
        rights::check(&change, &self.actor()?, &self.catalog())?;
        self.apply_unasked(change).await
    }

    /// Carries out a change that comes with another, which was asked for.
    async fn apply_unasked(&mut self, change: Change) -> Result<()> {
        let actor = self.actor()?;
        let made = rights::made_by(&change);
        self.db.ddl(self.txn, self.options, change).await?;
        let role = actor.role();
        let has_defaults = |of: &DefaultsOf| of.role == role;
        match made {
            // What is nobody's is the first role's.
            Some(made)
                if role != FIRST_ROLE_OID
                    || actor.authority().defaults.keys().any(has_defaults) =>
            {
                self.lock_authority().await?;
                let catalog = self.catalog();
                let mut authority = (*catalog.authority).clone();
                if let Some(object) = made.object(&catalog) {
                    owned_by_its_maker(&mut authority, &catalog, object, role);
                }
                let owned = Change::Authorize(Box::new(authority));
                Ok(self.db.ddl(self.txn, self.options, owned).await?)
            }
            _ => Ok(()),
        }
    }

    /// Who the statement is run as, with the rights there are by now.
    pub(crate) fn actor(&self) -> Result<Actor> {
        Actor::named(self.role, &self.catalog())
    }

    /// The catalog with the changes made so far.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.txn.catalog()
    }

    fn notice(&mut self, sqlstate: &'static str, message: String) {
        self.notices.push(SqlError::new(sqlstate, message));
    }

    /// Where the statement finds users' types.
    fn type_names<'c>(&'c self, catalog: &'c Catalog) -> TypeNames<'c> {
        TypeNames {
            catalog,
            search_path: self.search_path,
        }
    }

    /// What defaults and checks are bound against, by this search path.
    fn bind_context<'c>(&'c self, catalog: &'c Catalog, path: &'c [String]) -> BindContext<'c> {
        BindContext::new(catalog, path)
            .styled(self.styles)
            .of_kept()
    }

    /// Binds a default or a check that is to be kept as text. Its literals are read in the plain
    /// styles from then on, and must not say something else by those of the session.
    fn kept(&self, schema: &str, bind: impl Fn(&BindContext<'_>) -> Result<Expr>) -> Result<Expr> {
        let catalog = self.catalog();
        let path = path_within(schema, self.search_path);
        let kept = self.bind_context(&catalog, &path);
        if self.styles.is_plain() {
            return bind(&kept);
        }
        let meant = bind(&BindContext {
            styles: self.styles,
            ..kept
        })?;
        match bind(&kept) {
            Ok(bound) if bound == meant => Ok(bound),
            _ => Err(SqlError::unsupported(
                "a constant of a default or a check cannot depend on TimeZone, DateStyle or IntervalStyle",
                "Write it in the style ISO, and a time with its zone.",
            )),
        }
    }

    /// The schema and name of a relation that is there, of any kind.
    fn find_relation(&self, parts: &[String]) -> Option<(String, String)> {
        find_relation(&self.catalog(), self.search_path, parts)
    }

    /// The view of this name, if it is one.
    fn find_view(&self, parts: &[String]) -> Option<Arc<ViewDef>> {
        let (schema, relation) = self.find_relation(parts)?;
        self.catalog().view_by_name(&schema, &relation).cloned()
    }

    /// The table of this name.
    fn find_table(&self, parts: &[String]) -> Result<Arc<Table>> {
        let Some((schema, relation)) = self.find_relation(parts) else {
            return Err(SqlError::undefined_table(&parts.join(".")));
        };
        not_others(&schema, self.search_path)?;
        self.catalog()
            .table_by_name(&schema, &relation)
            .cloned()
            .ok_or_else(|| SqlError::new("42809", format!("\"{relation}\" is not a table")))
    }

    /// As [`Self::find_table`], without materialized views.
    fn find_plain_table(&self, parts: &[String]) -> Result<Arc<Table>> {
        let table = self.find_table(parts)?;
        match table.is_materialized() {
            false => Ok(table),
            true => {
                let message = format!("\"{}\" is not a table", table.name);
                Err(SqlError::new("42809", message))
            }
        }
    }
}

#[cold]
fn no_schema(name: &str) -> SqlError {
    SqlError::new("3F000", format!("schema \"{name}\" does not exist"))
}

#[cold]
fn exists(name: &str) -> SqlError {
    SqlError::new("42P07", format!("relation \"{name}\" already exists"))
}
