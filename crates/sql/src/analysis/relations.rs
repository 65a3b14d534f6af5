//! The relations as analysis asks for them by name: users' tables and views and the system's
//! relations, with the rights that it takes to read them.
//!
//! In a statement names are looked up along the search path, by the session's rights. Within a
//! view they mean what they meant when it was made ([`ViewDef`]), under the names that their
//! columns had then, by the rights of the view's owner.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use thermocline_engine::authority::{Object, Privileges};
use thermocline_engine::catalog::{FIRST_USER_OID, Table};
use thermocline_engine::{
    Catalog, FunctionArgument, FunctionDef, FunctionLanguage, FunctionVolatility, SequenceDef,
    ViewDef, ViewFunction, ViewRead, ViewType,
};
use thermocline_query::analyze::{
    self, Argument, Language, Mention, SqlFunction, Stored, Variables, told_columns,
};
use thermocline_query::error::{QueryError, Result};
use thermocline_query::tree::Column;
use thermocline_query::types::ids;

use crate::ddl::type_named;
use crate::parse::depth::too_deep;
use crate::pg_catalog::{self, SystemEnvironment, row_type_oid};
use crate::privilege::Actor;
use crate::temporary;

/// Views that read each other are no deeper than this.
const NESTED_MAX: u32 = 1000;

/// What analysis has come across.
#[derive(Default)]
pub(super) struct Found {
    /// The users' tables, those below views among them.
    pub(super) tables: RefCell<Vec<Arc<Table>>>,
    /// Whether there was a view,
    pub(super) views: Cell<bool>,
    /// or a relation that shows the session's own cursors or statements.
    pub(super) own: Cell<bool>,
    /// What a new view reads,
    pub(super) reads: RefCell<Vec<ViewRead>>,
    /// what the names of types in it mean,
    pub(super) types: RefCell<Vec<ViewType>>,
    /// and which functions the names of functions may mean, with those that they do.
    functions: RefCell<Vec<(ViewFunction, bool)>>,
}

impl Found {
    /// The functions that a new view calls.
    pub(super) fn called(&self) -> Vec<ViewFunction> {
        let all = self.functions.take().into_iter();
        let called = all.filter(|(_, is_called)| *is_called);
        called.map(|(function, _)| function).collect()
    }
}

/// Whose names they are.
enum Names {
    /// A statement's.
    Statement,
    /// Those of a view that is being made: whether its owner may read what it names is asked
    /// when it is read.
    Making,
    /// A view's, read by its owner's rights, or by the reader's if it says so.
    View(Arc<ViewDef>, Actor),
}

/// See the head of this file.
pub(super) struct Relations<'a> {
    environment: &'a SystemEnvironment,
    found: &'a Found,
    names: Names,
    nested: u32,
    /// Views are relations as tables are: their queries are not looked at.
    flat: bool,
    /// What is around a statement.
    around: Around<'a>,
}

/// What is around a statement.
#[derive(Clone, Copy, Default)]
pub(crate) struct Around<'a> {
    /// The variables of the body of PL/pgSQL that it stands in.
    pub(crate) variables: Option<&'a dyn Variables>,
    /// Functions of PL/pgSQL may be called before it.
    pub(crate) takes_calls: bool,
    /// It is the query that a CALL stands for: procedures are functions in it.
    pub(crate) is_call: bool,
    /// It is of a REFRESH of this materialized view, whose query is the relation [`FRESH`].
    pub(crate) refreshes: Option<u32>,
    /// It is only planned: nobody reads what it names.
    pub(crate) only_planned: bool,
    /// It is the body of this function, which is being made.
    pub(crate) makes: Option<&'a SqlFunction>,
}

/// What a REFRESH calls the query of its view.
pub(crate) const FRESH: &str = "(fresh rows)";

/// What a name means.
enum Meaning<'c> {
    Table(&'c Arc<Table>),
    View(&'c Arc<ViewDef>),
    Sequence(&'c Arc<SequenceDef>),
}

impl<'a> Relations<'a> {
    /// Of a statement.
    pub(super) fn of_statement(environment: &'a SystemEnvironment, found: &'a Found) -> Self {
        let (names, nested) = (Names::Statement, 0);
        Self {
            environment,
            found,
            names,
            nested,
            flat: false,
            around: Around::default(),
        }
    }

    /// The same, with this around.
    pub(super) fn within_body(mut self, around: Around<'a>) -> Self {
        self.around = around;
        self
    }

    /// Of a view that is there, for what it names itself.
    pub(super) fn named_by_view(
        environment: &'a SystemEnvironment,
        found: &'a Found,
        view: Arc<ViewDef>,
        reader: Actor,
    ) -> Self {
        Self {
            names: Names::View(view, reader),
            flat: true,
            ..Self::of_statement(environment, found)
        }
    }

    /// Of a view that is being made.
    pub(super) fn of_new_view(environment: &'a SystemEnvironment, found: &'a Found) -> Self {
        let names = Names::Making;
        Self {
            names,
            ..Self::of_statement(environment, found)
        }
    }

    fn catalog(&self) -> &Arc<Catalog> {
        &self.environment.session().catalog
    }

    /// A user's relation by name; `pg_catalog` is searched before.
    fn named(&self, schema: Option<&str>, name: &str) -> Option<Meaning<'_>> {
        let within = |schema: &str| {
            let catalog = self.catalog();
            let view = || catalog.view_by_name(schema, name).map(Meaning::View);
            let sequence = || {
                catalog
                    .sequence_by_name(schema, name)
                    .map(Meaning::Sequence)
            };
            let table = catalog.table_by_name(schema, name);
            table.map(Meaning::Table).or_else(view).or_else(sequence)
        };
        let path = &self.environment.session().facts.search_path;
        match schema {
            Some(schema) => within(temporary::meant(schema, path)),
            None if pg_catalog::is_relation(Some("pg_catalog"), name) => {
                temporary::first(path).and_then(within)
            }
            None => path.iter().find_map(|schema| within(schema)),
        }
    }

    /// A relation of the system.
    fn system(&self, schema: Option<&str>, name: &str, search_path: &[String]) -> Option<Stored> {
        let stored = pg_catalog::stored(schema, name, search_path)?;
        if matches!(name, "pg_cursors" | "pg_prepared_statements") {
            self.found.own.set(true);
        }
        Some(stored)
    }

    /// What a name that a view wrote meant when it was made.
    fn read(&self, view: &ViewDef, schema: Option<&str>, name: &str) -> Result<Option<Stored>> {
        let mut reads = view.reads.iter();
        let read = reads
            .find(|read| read.written_schema.as_deref() == schema && read.written == name)
            .ok_or_else(|| QueryError::internal(format!("{name} is no name of the view")))?;
        if read.oid < FIRST_USER_OID {
            return Ok(self.system(Some(&read.schema), name, &[]));
        }
        let catalog = self.catalog();
        let meaning = match (catalog.table(read.oid), catalog.views.get(&read.oid)) {
            (Some(table), _) => Meaning::Table(table),
            (None, Some(view)) => Meaning::View(view),
            (None, None) => return Err(QueryError::internal("what a view reads is gone")),
        };
        let mut stored = self.stored(&meaning)?;
        if self.flat {
            stored.view = None;
        }
        // Columns are only ever added behind those that there were.
        if stored.columns.len() < read.columns.len() {
            return Err(QueryError::internal("a column that a view reads is gone"));
        }
        stored.columns.truncate(read.columns.len());
        let live = |(column, _): &(&mut Column, &String)| !column.is_dropped();
        let both = stored.columns.iter_mut().zip(&read.columns);
        for (column, name) in both.filter(live) {
            column.name = Arc::from(name.as_str());
        }
        let known = |place: &usize| *place < read.columns.len();
        if !stored.primary_key.iter().all(known) {
            stored.primary_key.clear();
        }
        stored.schema = Arc::from(read.schema.as_str());
        Ok(Some(stored))
    }

    /// Notes a table, and the partitions that its rows lie in.
    fn found_table(&self, table: &Arc<Table>) {
        let mut tables = self.found.tables.borrow_mut();
        let mut note = |table: &Arc<Table>| {
            if !tables.iter().any(|other| other.oid == table.oid) {
                tables.push(Arc::clone(table));
            }
        };
        note(table);
        if table.partitioned.is_some() {
            self.catalog().leaves_of(table).iter().for_each(note);
        }
    }

    /// A relation, if it may be read.
    fn stored(&self, meaning: &Meaning<'_>) -> Result<Stored> {
        let catalog = self.catalog();
        let session = self.environment.session();
        let (actor, reader) = match &self.names {
            Names::Statement | Names::Making => (&session.facts.actor, None),
            // Whose statement it is is asked anew each time.
            Names::View(view, reader) => (reader, (!view.is_invokers()).then(|| reader.role())),
        };
        let asks = !matches!(self.names, Names::Making);
        let (schema, needs) = match meaning {
            Meaning::Table(table) => (&table.schema, Privileges::USAGE),
            Meaning::View(view) => (&view.schema, Privileges::USAGE),
            Meaning::Sequence(sequence) => (&sequence.schema, Privileges::USAGE),
        };
        if reader.is_none() {
            temporary::not_others(schema, &session.facts.search_path)?;
        }
        actor.need_schema(catalog, schema, needs)?;
        Ok(match meaning {
            Meaning::Table(table) => {
                if asks {
                    actor.need_some_column(catalog, table, Privileges::SELECT)?;
                    if !self.flat && !self.around.only_planned {
                        is_populated(table)?;
                    }
                }
                self.found_table(table);
                Stored {
                    reader,
                    ..stored_table(table)
                }
            }
            Meaning::View(view) => {
                if asks {
                    actor.need_view(catalog, view, Privileges::SELECT)?;
                }
                self.found.views.set(true);
                stored_view(view)
            }
            Meaning::Sequence(sequence) => {
                if !asks {
                    return Err(QueryError::unsupported(
                        format!(
                            "a view that reads sequence \"{}\" is not supported",
                            sequence.name
                        ),
                        "Read the sequence by itself.",
                    ));
                }
                actor.need_sequence(catalog, sequence, Privileges::SELECT)?;
                self.found.views.set(true);
                stored_sequence(sequence)
            }
        })
    }
}

impl analyze::Catalog for Relations<'_> {
    fn relation(&self, schema: Option<&str>, name: &str) -> Result<Option<Stored>> {
        if let Names::View(view, _) = &self.names {
            return self.read(view, schema, name);
        }
        let refreshed = self.around.refreshes.filter(|_| name == FRESH);
        if let Some(view) = refreshed.and_then(|oid| self.catalog().view_of(oid)) {
            self.found.views.set(true);
            return Ok(Some(stored_view(view)));
        }
        let search_path = &self.environment.session().facts.search_path;
        match self.named(schema, name) {
            Some(meaning) => {
                let mut stored = self.stored(&meaning)?;
                if let Some(temporary::ALIAS) = schema {
                    // Columns are qualified with it, too.
                    stored.schema = Arc::from(temporary::ALIAS);
                }
                Ok(Some(stored))
            }
            None => Ok(self.system(schema, name, search_path)),
        }
    }

    fn changed(&self, schema: Option<&str>, name: &str) -> Result<Option<Stored>> {
        let session = self.environment.session();
        match self.named(schema, name) {
            Some(Meaning::Table(table)) => {
                temporary::not_others(&table.schema, &session.facts.search_path)?;
                let actor = &session.facts.actor;
                actor.need_schema(self.catalog(), &table.schema, Privileges::USAGE)?;
                if table.is_materialized() {
                    let message = format!("cannot change materialized view \"{}\"", table.name);
                    return Err(QueryError::new("42809", message));
                }
                self.found_table(table);
                Ok(Some(stored_table(table)))
            }
            // Who may change what it shows is asked where that is known.
            Some(Meaning::View(view)) => {
                temporary::not_others(&view.schema, &session.facts.search_path)?;
                self.found.views.set(true);
                Ok(Some(stored_view(view)))
            }
            Some(Meaning::Sequence(sequence)) => {
                let message = format!("cannot change sequence \"{}\"", sequence.name);
                Err(QueryError::new("42809", message))
            }
            None => match pg_catalog::stored(schema, name, &session.facts.search_path) {
                None => Ok(None),
                Some(_) => Err(QueryError::unsupported(
                    format!("changes of system relation \"{name}\" are not supported"),
                    "Use CREATE, ALTER, DROP, COMMENT or GRANT, which change it.",
                )),
            },
        }
    }

    fn mentioned(&self, mention: &Mention<'_>) {
        let Names::Making = self.names else { return };
        let place = u32::try_from(mention.at).unwrap_or(0);
        let mut reads = self.found.reads.borrow_mut();
        let same = |read: &&mut ViewRead| {
            read.written_schema.as_deref() == mention.schema && read.written == mention.name
        };
        if let Some(known) = reads.iter_mut().find(same) {
            if known.places.iter().all(|(at, _)| *at != place) {
                known.places.push((place, mention.aliased));
            }
            return;
        }
        let Ok(Some(stored)) = self.relation(mention.schema, mention.name) else {
            return;
        };
        let columns = stored.columns.iter();
        reads.push(ViewRead {
            written_schema: mention.schema.map(str::to_owned),
            written: mention.name.to_owned(),
            oid: stored.oid,
            schema: stored.schema.to_string(),
            columns: columns.map(|column| column.name.to_string()).collect(),
            places: vec![(place, mention.aliased)],
        });
    }

    fn within(&self, view: u32) -> Result<Box<dyn analyze::Catalog + '_>> {
        if self.nested >= NESTED_MAX {
            return Err(too_deep().into());
        }
        let catalog = self.catalog();
        if catalog.sequences.contains_key(&view) {
            let nested = self.nested + 1;
            return Ok(Box::new(Relations {
                nested,
                ..Relations::of_statement(self.environment, self.found)
            }));
        }
        let def = catalog.view_of(view);
        let def = def.ok_or_else(|| QueryError::internal("a view that is not there"))?;
        let reader = match def.is_invokers() {
            // Of the statement, also where a view of somebody else reads this one.
            true => self.environment.session().facts.actor.clone(),
            false => Actor::numbered(catalog.authority.owner(&Object::Table(view)), catalog)?,
        };
        Ok(Box::new(Relations {
            environment: self.environment,
            found: self.found,
            names: Names::View(Arc::clone(def), reader),
            nested: self.nested + 1,
            flat: self.flat,
            around: Around {
                only_planned: self.around.only_planned,
                ..Around::default()
            },
        }))
    }

    fn composite(&self, oid: u32) -> Option<Vec<Column>> {
        composite(self.catalog(), oid)
    }

    fn functions(&self, schema: Option<&str>, name: &str) -> Vec<SqlFunction> {
        let catalog = self.catalog();
        let made = self.around.makes.filter(|made| *made.name == *name);
        if catalog.functions.is_empty() && made.is_none() {
            return Vec::new();
        }
        if let Names::View(view, _) = &self.names {
            let is_it =
                |of: &&ViewFunction| of.written == name && of.written_schema.as_deref() == schema;
            let named = view.functions.iter().filter(is_it);
            let named = named.filter_map(|of| catalog.functions.get(&of.oid));
            return named.map(|def| called(def)).collect();
        }
        let path = &self.environment.session().facts.search_path;
        let named = functions_named(catalog, path, schema, name);
        let is_meant = |def: &&Arc<FunctionDef>| self.around.is_call || def.procedure.is_none();
        let named = named.filter(is_meant).map(|def| called(def));
        let named: Vec<SqlFunction> = made.cloned().into_iter().chain(named).collect();
        if matches!(self.names, Names::Making) {
            let mut functions = self.found.functions.borrow_mut();
            for function in &named {
                let function = ViewFunction {
                    written_schema: schema.map(str::to_owned),
                    written: name.to_owned(),
                    oid: function.oid,
                };
                if functions.iter().all(|(known, _)| *known != function) {
                    functions.push((function, false));
                }
            }
        }
        named
    }

    fn of_bodies(&self) -> Option<Box<dyn analyze::Catalog + '_>> {
        // What a body names is looked up when it is called, by whoever calls it.
        let is_view = !matches!(self.names, Names::Statement);
        is_view.then(|| {
            let relations = Relations {
                nested: self.nested,
                around: Around {
                    only_planned: self.around.only_planned,
                    ..Around::default()
                },
                ..Relations::of_statement(self.environment, self.found)
            };
            Box::new(relations) as _
        })
    }

    fn takes_queries(&self) -> bool {
        // What the functions of a view read is not what it reads itself.
        !self.flat
    }

    fn variables(&self) -> Option<&dyn Variables> {
        self.around.variables
    }

    fn takes_calls(&self) -> bool {
        self.around.takes_calls
    }

    fn may_call(&self, function: &SqlFunction) -> Result<()> {
        if matches!(self.names, Names::Making) {
            let mut functions = self.found.functions.borrow_mut();
            let meant = functions
                .iter_mut()
                .filter(|(of, _)| of.oid == function.oid);
            meant.for_each(|(_, is_called)| *is_called = true);
        }
        // Nor is one asked for that is being made.
        if self.flat || function.oid == 0 {
            return Ok(());
        }
        let actor = &self.environment.session().facts.actor;
        Ok(actor.need_function(function.oid, &function.name)?)
    }

    fn user_type(&self, schema: Option<&str>, name: &str) -> Option<u32> {
        let session = self.environment.session();
        match &self.names {
            Names::Statement => session.user_type(schema, name),
            Names::Making => {
                // Of the types of tables' rows no view keeps what their names mean.
                let catalog = self.catalog();
                let oid = type_named(catalog, &session.facts.search_path, schema, name)?;
                let named = ViewType {
                    written_schema: schema.map(str::to_owned),
                    written: name.to_owned(),
                    oid,
                };
                let mut types = self.found.types.borrow_mut();
                if !types.contains(&named) {
                    types.push(named);
                }
                Some(oid)
            }
            Names::View(view, _) => {
                let mut named = view.types.iter();
                let is_it = |named: &&ViewType| {
                    named.written_schema.as_deref() == schema && named.written == name
                };
                named.find(is_it).map(|named| named.oid)
            }
        }
    }
}

/// The functions and procedures that a name may mean by this path.
pub(crate) fn functions_named<'c>(
    catalog: &'c Catalog,
    path: &'c [String],
    schema: Option<&'c str>,
    name: &'c str,
) -> impl Iterator<Item = &'c Arc<FunctionDef>> {
    let schemas: Vec<&str> = match schema {
        Some(schema) => vec![temporary::meant(schema, path)],
        None => path.iter().map(String::as_str).collect(),
    };
    let named = move |schema| catalog.functions_named(schema, name);
    schemas.into_iter().flat_map(named)
}

/// The columns of a composite type, a table's rows among them.
pub(crate) fn composite(catalog: &Catalog, oid: u32) -> Option<Vec<Column>> {
    let of_rows = || {
        let mut tables = catalog.tables.values();
        let table = tables.find(|table| row_type_oid(table.oid) == oid)?;
        let columns = stored_table(table).columns.into_iter();
        Some(columns.filter(|column| !column.is_dropped()).collect())
    };
    told_columns(oid).or_else(of_rows)
}

/// 55000 for a materialized view whose query has not run.
fn is_populated(table: &Table) -> Result<()> {
    match table.is_populated() {
        true => Ok(()),
        false => {
            let message = format!(
                "materialized view \"{}\" has not been populated",
                table.name
            );
            let hint = "Use the REFRESH MATERIALIZED VIEW command.";
            Err(QueryError::new("55000", message).with_hint(hint))
        }
    }
}

/// A function as analysis calls it.
pub(crate) fn called(def: &FunctionDef) -> SqlFunction {
    let argument = |of: &FunctionArgument| Argument {
        name: of.name.as_deref().map(Arc::from),
        oid: of.type_oid,
        default: of.default.as_deref().map(Arc::from),
    };
    let column = |of: &FunctionArgument| Column {
        name: Arc::from(of.name.as_deref().unwrap_or_default()),
        oid: of.type_oid,
        modifier: -1,
        origin: None,
    };
    SqlFunction {
        oid: def.oid,
        name: Arc::from(def.name.as_str()),
        arguments: def.arguments.iter().map(argument).collect(),
        result: def.result,
        returns_set: def.returns_set,
        columns: def.columns.iter().map(column).collect(),
        strict: def.strict,
        variadic: def.variadic,
        body: Arc::from(def.body.as_str()),
        language: match def.language {
            FunctionLanguage::Sql => {
                Language::of_sql(&def.body, def.result, !def.columns.is_empty())
                    .around(def.definer || !def.settings.is_empty())
            }
            FunctionLanguage::PlPgSql => Language::PlPgSql,
        },
        out: def.out.as_deref().map(Arc::from),
        reads_only: def.volatility != FunctionVolatility::Volatile,
        definer: def.definer,
        settings: def.settings.as_slice().into(),
    }
}

fn stored_table(table: &Table) -> Stored {
    let columns = table.columns.iter().enumerate();
    let columns = columns.map(|(at, column)| Column {
        name: Arc::from(column.name.as_str()),
        oid: match column.is_seen() {
            true => column.type_oid(),
            false => 0,
        },
        modifier: column.type_modifier(),
        origin: i16::try_from(at + 1).ok().map(|number| (table.oid, number)),
    });
    let primary = table.indexes.iter().find(|index| index.primary);
    Stored {
        oid: table.oid,
        schema: Arc::from(table.schema.as_str()),
        columns: columns.collect(),
        primary_key: primary.map_or_else(Vec::new, |index| index.columns.clone()),
        row_type: 0,
        view: None,
        reader: None,
        is_partitioned: table.partitioned.is_some(),
    }
}

/// A sequence, read like a table of one row.
fn stored_sequence(sequence: &SequenceDef) -> Stored {
    let columns = [
        ("last_value", ids::INT8),
        ("log_cnt", ids::INT8),
        ("is_called", ids::BOOL),
    ];
    let column = |(name, oid): (&str, u32)| Column {
        name: Arc::from(name),
        oid,
        modifier: -1,
        origin: None,
    };
    let oid = sequence.oid;
    let query = format!(
        "SELECT pg_catalog.thermocline_sequence_value({oid}), 0::pg_catalog.int8, \
         pg_catalog.thermocline_sequence_is_called({oid})"
    );
    Stored {
        oid,
        schema: Arc::from(sequence.schema.as_str()),
        columns: columns.into_iter().map(column).collect(),
        primary_key: Vec::new(),
        row_type: 0,
        view: Some(Arc::from(query)),
        reader: None,
        is_partitioned: false,
    }
}

fn stored_view(view: &ViewDef) -> Stored {
    let columns = view.columns.iter().enumerate();
    let columns = columns.map(|(at, column)| Column {
        name: Arc::from(column.name.as_str()),
        oid: column.type_oid,
        modifier: column.modifier,
        origin: i16::try_from(at + 1).ok().map(|number| (view.oid, number)),
    });
    Stored {
        oid: view.oid,
        schema: Arc::from(view.schema.as_str()),
        columns: columns.collect(),
        primary_key: Vec::new(),
        row_type: 0,
        view: Some(Arc::from(view.query.as_str())),
        reader: None,
        is_partitioned: false,
    }
}
