//! Prepared statements and plans. A text is parsed once. A statement is bound
//! once and again only when the catalog, the search path, the role or the size of a
//! table it scans has changed. SQL's PREPARE and the protocol's Parse share
//! one name space. Texts of the simple protocol that come again are kept too.

use crate::analysis::StatementFacts;
use std::sync::{Arc, OnceLock};
use thermocline_query::functions::clock;

use bytes::BytesMut;
use hashbrown::HashMap;
use parking_lot::Mutex;
use thermocline_engine::{Catalog, Charge, Database, Table};
use thermocline_values::types::DataType;

use super::plpgsql::{Asked, CallsBefore};
use super::shelf::{Place, Shelf};
use crate::bind::{Bound, SMALL_TABLE_ROWS};
use crate::error::{Result, SqlError};
use crate::messages;
use crate::output::{Formats, OutputColumn};
use crate::parse::secret::HIDDEN_TEXT;
use crate::parse::{self, Query, Statement};
use crate::settings::Settings;
use crate::statement_statistics::query_id;
use crate::styles::Styles;

/// A longer RowDescription is written anew each time: a plan's charge has room for this.
const DESCRIPTION_BYTES_MAX: usize = 1 << 10;

/// A statement, parsed, with the plan it was last given.
pub(super) struct Prepared {
    /// What its client calls it; empty for the unnamed one.
    pub(super) name: Box<str>,
    /// The text it was parsed from, for the positions of errors: its own.
    pub(super) text: Arc<str>,
    /// What its client sent, that alone or with others.
    message: Arc<str>,
    /// How many characters of that come before its own text.
    pub(super) before: u32,
    query_id: OnceLock<i64>,
    /// The statement; `None` for an empty one.
    pub(super) statement: Option<Statement>,
    /// The parameters' types as the client declared them; 0 for not at all.
    pub(super) declared: Vec<u32>,
    /// Its client knows the shape of its rows, which must not change then.
    described: bool,
    /// It is sent anew each time, and means what it says then. A prepared statement goes on to
    /// mean what it meant when it was prepared.
    is_anew: bool,
    planned: Mutex<Option<Arc<Planned>>>,
    /// The columns of the plan it was last given; kept when the statement leaves memory.
    known: Arc<KnownColumns>,
    /// How deep the statement's tree is; whatever walks it needs the stack for that.
    pub(super) depth: u32,
    charge: Option<Charge>,
}

impl Drop for Prepared {
    fn drop(&mut self) {
        if crate::stack::is_deep(self.depth) {
            crate::stack::with_room(self.depth, || {
                self.statement = None;
                *self.planned.get_mut() = None;
            });
        }
    }
}

/// Of the last plan: none if there was no plan, no columns if it had none.
type KnownColumns = Mutex<Option<Option<Arc<[OutputColumn]>>>>;

/// A bound query and what it was bound to.
pub(super) struct Planned {
    pub(super) bound: Bound,
    /// The types that parameter values are converted to.
    pub(super) parameters: Vec<DataType>,
    /// The numbers that ParameterDescription gives.
    pub(super) parameter_oids: Vec<u32>,
    /// The result's columns.
    pub(super) columns: Option<Arc<[OutputColumn]>>,
    /// RowDescription of these columns as texts, if it is short; drivers ask each time.
    pub(super) description: OnceLock<Box<[u8]>>,
    /// The catalog it was bound against, which may be a transaction's own.
    pub(super) catalog: Arc<Catalog>,
    /// The settings that it depends on.
    pub(super) settings: PlanSettings,
    /// Tables whose size the plan was chosen by, and whether they were small.
    pub(super) sizes: Vec<(u32, bool)>,
    /// The variables of PL/pgSQL that its parameters are.
    pub(super) asked: Option<Arc<[Asked]>>,
    /// The calls that are made before it.
    pub(super) calls: Option<Arc<CallsBefore>>,
    /// What its plans over partitions are charged.
    pub(super) of_partitions: Option<Charge>,
    /// Literals in it say what the time was when it was planned (`now`, `today`).
    pub(super) of_the_moment: bool,
}

/// A session's settings, as far as plans depend on them.
#[derive(Clone)]
pub(super) struct PlanSettings {
    pub(super) search_path: Arc<[String]>,
    /// Who it is bound for, whose rights are looked at then.
    pub(super) role: Arc<str>,
    /// Whether `thermocline.path` is `analytical`.
    pub(super) analytical_only: bool,
    /// By which literals are read, and what functions it may have.
    pub(super) styles: Arc<Styles>,
}

impl PlanSettings {
    pub(super) fn of(settings: &Settings) -> Self {
        Self {
            search_path: settings.search_path(),
            role: settings.role(),
            analytical_only: settings.analytical_only(),
            styles: settings.styles(),
        }
    }

    pub(super) fn are_same(&self, other: &Self) -> bool {
        let (path, others) = (&self.search_path, &other.search_path);
        self.analytical_only == other.analytical_only
            && (Arc::ptr_eq(&self.styles, &other.styles) || self.styles.is_same(&other.styles))
            && (Arc::ptr_eq(&self.role, &other.role) || self.role == other.role)
            && (Arc::ptr_eq(path, others) || path == others)
    }
}

impl Planned {
    /// Whether functions are called before it runs.
    pub(super) fn calls_functions(&self) -> bool {
        self.calls.is_some()
    }

    /// The same, whose literals say what the time is, if so.
    pub(super) fn of_the_moment(mut self, of_the_moment: bool) -> Self {
        self.of_the_moment = of_the_moment;
        self
    }

    /// RowDescription, or NoData.
    pub(super) fn describe(&self, formats: &Formats, out: &mut BytesMut) {
        let Some(columns) = &self.columns else {
            messages::no_data(out);
            return;
        };
        if *formats == Formats::Text {
            if let Some(description) = self.description.get() {
                out.extend_from_slice(description);
                return;
            }
            let begin = out.len();
            messages::row_description(out, columns, formats);
            let written = &out[begin..];
            if written.len() <= DESCRIPTION_BYTES_MAX {
                self.description.get_or_init(|| written.into());
            }
            return;
        }
        messages::row_description(out, columns, formats);
    }

    fn is_current(&self, db: &Database, catalog: &Arc<Catalog>, settings: &PlanSettings) -> bool {
        Arc::ptr_eq(&self.catalog, catalog)
            && self.settings.are_same(settings)
            && self.sizes.iter().all(|(oid, small)| {
                let table = catalog.table(*oid);
                table.is_some_and(|table| (db.row_estimate(table) <= SMALL_TABLE_ROWS) == *small)
            })
    }
}

impl Prepared {
    /// Of one parsed statement, or none.
    pub(super) fn new(text: Arc<str>, statement: Option<Statement>, declared: Vec<u32>) -> Self {
        Self {
            name: Box::default(),
            message: Arc::clone(&text),
            text,
            before: 0,
            query_id: OnceLock::new(),
            statement,
            declared,
            described: true,
            is_anew: false,
            planned: Mutex::new(None),
            known: Arc::default(),
            depth: 0,
            charge: None,
        }
    }

    /// The same, which came in the same message as another.
    pub(super) fn of_message(mut self, other: &Self) -> Self {
        self.message = Arc::clone(&other.message);
        self
    }

    /// The same, with what it holds charged for as long as it is there.
    pub(super) fn charged(mut self, charge: Charge) -> Self {
        self.charge = Some(charge);
        self
    }

    /// The same, whose tree is so deep.
    pub(super) fn of_depth(mut self, depth: u32) -> Self {
        self.depth = depth;
        self
    }

    /// The same, of whose rows nobody was told.
    pub(super) fn undescribed(mut self) -> Self {
        self.described = false;
        self
    }

    /// The same, which is counted as another.
    pub(super) fn of_query_id(self, query_id: i64) -> Self {
        let _ = self.query_id.set(query_id);
        self
    }

    /// The same, with a name.
    pub(super) fn named(mut self, name: &str) -> Self {
        self.name = Box::from(name);
        self
    }

    /// Whether its text must not be kept or shown.
    pub(super) fn is_secret(&self) -> bool {
        self.statement.as_ref().is_some_and(Statement::is_secret)
    }

    /// The text that may be shown.
    pub(super) fn shown_text(&self) -> &str {
        match self.is_secret() {
            true => HIDDEN_TEXT,
            false => &self.text,
        }
    }

    /// What its client sent, as it may be shown.
    pub(super) fn shown_message(&self) -> Arc<str> {
        match self.is_secret() {
            true => Arc::from(HIDDEN_TEXT),
            false => Arc::clone(&self.message),
        }
    }

    /// The number of the statement's shape.
    pub(super) fn query_id(&self) -> i64 {
        *self.query_id.get_or_init(|| query_id(self.shown_text()))
    }

    /// Of the simple protocol, which describes the rows each time.
    pub(super) fn simple(message: &Arc<str>, part: parse::Part<'_>) -> Self {
        let text = match part.before == 0 && part.text.len() == message.len() {
            true => Arc::clone(message),
            false => Arc::from(part.text),
        };
        let mut simple = Self::new(text, Some(part.statement), Vec::new());
        simple.described = false;
        simple.is_anew = true;
        simple.message = Arc::clone(message);
        simple.before = part.before;
        simple.of_depth(part.depth)
    }

    /// The query, if it is one.
    pub(super) fn query(&self) -> Option<&Query> {
        match &self.statement {
            Some(Statement::Query(query)) => Some(query),
            _ => None,
        }
    }

    /// The plan it was last given, if that still holds.
    pub(super) fn current_plan(
        &self,
        db: &Database,
        catalog: &Arc<Catalog>,
        settings: &PlanSettings,
    ) -> Option<Arc<Planned>> {
        let planned = self.planned.lock();
        planned
            .as_ref()
            .filter(|planned| !(self.is_anew && planned.of_the_moment))
            .filter(|planned| planned.is_current(db, catalog, settings))
            .cloned()
    }

    /// Keeps a plan. A statement that was described must go on to give rows
    /// of the same shape.
    pub(super) fn keep(&self, planned: Planned) -> Result<Arc<Planned>> {
        let mut known = self.known.lock();
        if let Some(before) = known.as_ref().filter(|_| self.described) {
            let shape = |columns: &Option<Arc<[OutputColumn]>>| -> Option<Vec<u32>> {
                let columns = columns.as_ref()?;
                Some(columns.iter().map(|column| column.type_oid).collect())
            };
            if shape(before) != shape(&planned.columns) {
                return Err(SqlError::unsupported(
                    "cached plan must not change result type",
                    "Prepare the statement again.",
                ));
            }
        }
        *known = Some(planned.columns.clone());
        let planned = Arc::new(planned);
        *self.planned.lock() = Some(Arc::clone(&planned));
        Ok(planned)
    }

    /// The columns of the plan it was last given.
    pub(super) fn known_columns(&self) -> Option<Arc<[OutputColumn]>> {
        self.known.lock().clone().flatten()
    }

    /// Forgets the plan (DISCARD PLANS).
    pub(super) fn forget_plan(&self) {
        *self.planned.lock() = None;
        *self.known.lock() = None;
    }
}

/// The sizes of tables that a plan was chosen by.
pub(super) struct Sizes<'a> {
    db: &'a Database,
    small: Mutex<Vec<(u32, bool)>>,
}

impl<'a> Sizes<'a> {
    pub(super) fn of(db: &'a Database) -> Self {
        Self {
            db,
            small: Mutex::default(),
        }
    }

    /// About how many rows a table has, which the plan depends on from now on.
    pub(super) fn of_table(&self, table: &Table) -> u64 {
        let rows = self.db.row_estimate(table);
        let mut small = self.small.lock();
        small.push((table.oid, rows <= SMALL_TABLE_ROWS));
        rows
    }

    /// The tables, and whether they were small.
    pub(super) fn taken(self) -> Vec<(u32, bool)> {
        self.small.into_inner()
    }
}

/// The numbers of the types that a client is told of its parameters: what it declared itself,
/// else what was inferred.
pub(super) fn parameter_oids(inferred: &[DataType], declared: &[u32]) -> Vec<u32> {
    let inferred: Vec<u32> = inferred.iter().map(DataType::oid).collect();
    declared_oids(&inferred, declared)
}

/// As [`parameter_oids`], of types' numbers.
pub(super) fn declared_oids(inferred: &[u32], declared: &[u32]) -> Vec<u32> {
    (0..inferred.len().max(declared.len()))
        .map(|at| match (declared.get(at), inferred.get(at)) {
            (Some(oid), _) if *oid != 0 && *oid != UNKNOWN_OID => *oid,
            (_, Some(oid)) => *oid,
            (_, None) => DataType::Text.oid(),
        })
        .collect()
}

/// PostgreSQL's type `unknown`.
const UNKNOWN_OID: u32 = 705;

/// A named statement: here, or to be made again from its text.
pub(super) struct Named {
    name: Box<str>,
    text: Arc<str>,
    declared: Vec<u32>,
    known: Arc<KnownColumns>,
    made: Made,
    place: Arc<Place<Prepared>>,
}

/// How a named statement came about.
pub(super) struct Made {
    /// What its client sent.
    text: Arc<str>,
    parameters: Box<[u32]>,
    from_sql: bool,
    us: i64,
}

impl Made {
    /// Now, by PREPARE or by a message of the protocol.
    pub(super) fn now(prepared: &Prepared, from_sql: bool) -> Self {
        let planned = prepared.planned.lock();
        let parameters = planned.as_ref().map(|planned| &planned.parameter_oids);
        Self {
            text: prepared.shown_message(),
            parameters: parameters.unwrap_or(&prepared.declared).as_slice().into(),
            from_sql,
            us: clock(),
        }
    }
}

impl Named {
    /// The text it was parsed from.
    pub(super) fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Parses it again. What has no plan yet gets one when it is used.
    pub(super) fn remake(&self, charge: Charge) -> Result<Arc<Prepared>> {
        let (parsed, depth) = parse::parse_measured(&self.text)?;
        // Of a text of SQL it is the PREPARE of this name.
        let statement = parsed.into_iter().find_map(|statement| match statement {
            Statement::Prepare {
                name, statement, ..
            } => (*name == *self.name).then_some(*statement),
            other => Some(other),
        });
        let mut made = Prepared::new(Arc::clone(&self.text), statement, self.declared.clone());
        made.known = Arc::clone(&self.known);
        let made = Arc::new(made.of_depth(depth).named(&self.name));
        self.place.put(Arc::clone(&made), charge);
        Ok(made)
    }
}

/// The named statements and the unnamed one.
pub(super) struct Statements {
    shelf: Arc<Shelf>,
    named: HashMap<String, Arc<Named>>,
    unnamed: Option<Arc<Prepared>>,
}

/// See [`Statements::get`].
pub(super) enum Kept {
    Here(Arc<Prepared>),
    Left(Arc<Named>),
}

impl Statements {
    pub(super) fn new(shelf: Arc<Shelf>) -> Self {
        Self {
            shelf,
            named: HashMap::new(),
            unnamed: None,
        }
    }

    /// The statement, if it has not left memory.
    pub(super) fn get(&self, name: &str) -> Result<Kept> {
        if name.is_empty() {
            let unnamed = self.unnamed.clone().map(Kept::Here);
            return unnamed.ok_or_else(|| unknown(name));
        }
        let named = self.named.get(name).ok_or_else(|| unknown(name))?;
        Ok(match named.place.get(&self.shelf) {
            Some(here) => Kept::Here(here),
            None => Kept::Left(Arc::clone(named)),
        })
    }

    /// The columns of the plan that the statement was last given.
    pub(super) fn known_columns(&self, name: &str) -> Result<Option<Arc<[OutputColumn]>>> {
        if name.is_empty() {
            let unnamed = self.unnamed.as_ref().ok_or_else(|| unknown(name))?;
            return Ok(unnamed.known_columns());
        }
        let named = self.named.get(name).ok_or_else(|| unknown(name))?;
        Ok(named.known.lock().clone().flatten())
    }

    /// A statement that is kept, and charged where it is, becomes the unnamed one.
    pub(super) fn set_unnamed(&mut self, prepared: Arc<Prepared>) {
        self.unnamed = Some(prepared);
    }

    pub(super) fn insert(
        &mut self,
        prepared: Prepared,
        charge: Charge,
        from_sql: bool,
    ) -> Result<()> {
        if prepared.name.is_empty() {
            self.unnamed = Some(Arc::new(prepared.charged(charge)));
            return Ok(());
        }
        let name = prepared.name.to_string();
        if self.named.contains_key(&name) {
            return Err(SqlError::new(
                "42P05",
                format!("prepared statement \"{name}\" already exists"),
            ));
        }
        let named = Named {
            name: prepared.name.clone(),
            text: Arc::clone(&prepared.text),
            declared: prepared.declared.clone(),
            known: Arc::clone(&prepared.known),
            made: Made::now(&prepared, from_sql),
            place: self.shelf.place(Arc::new(prepared), charge),
        };
        self.named.insert(name, Arc::new(named));
        Ok(())
    }

    /// Forgets a statement; false when there was none of this name.
    pub(super) fn remove(&mut self, name: &str) -> bool {
        if name.is_empty() {
            self.unnamed.take().is_some()
        } else {
            self.named.remove(name).is_some()
        }
    }

    /// What `pg_prepared_statements` shows.
    pub(super) fn facts(&self) -> Vec<StatementFacts> {
        let facts = |named: &Arc<Named>| StatementFacts {
            name: named.name.to_string(),
            text: Arc::clone(&named.made.text),
            parameters: named.made.parameters.to_vec(),
            from_sql: named.made.from_sql,
            made_us: named.made.us,
        };
        self.named.values().map(facts).collect()
    }

    /// Forgets all named statements.
    pub(super) fn clear(&mut self) {
        self.named.clear();
    }

    pub(super) fn forget_plans(&self) {
        for named in self.named.values() {
            match named.place.look() {
                Some(prepared) => prepared.forget_plan(),
                None => *named.known.lock() = None,
            }
        }
        if let Some(prepared) = &self.unnamed {
            prepared.forget_plan();
        }
    }
}

#[cold]
fn unknown(name: &str) -> SqlError {
    let message = if name.is_empty() {
        "unnamed prepared statement does not exist".to_owned()
    } else {
        format!("prepared statement \"{name}\" does not exist")
    };
    SqlError::new("26000", message)
}

#[cfg(test)]
mod tests {
    use thermocline_device::SimulatedDevice;
    use thermocline_engine::{ChargeKind, Config};

    use super::*;

    #[test]
    fn what_a_client_declares_is_what_it_is_told() {
        assert_eq!(declared_oids(&[23, 25], &[]), [23, 25]);
        assert_eq!(declared_oids(&[23, 25], &[20, 705]), [20, 25]);
        assert_eq!(declared_oids(&[], &[1028]), [1028]);
    }

    #[test]
    fn names_of_statements() {
        let config = Config::new(Arc::new(SimulatedDevice::new())).memory_limit(1 << 30);
        let db = Database::open(config).unwrap();
        let account = db.clients().open();
        let mut statements = Statements::new(Arc::default());
        let prepared = |name: &str| Prepared::new("".into(), None, Vec::new()).named(name);
        let charge = || account.charge(ChargeKind::Plan, 1000).unwrap();
        assert_eq!(statements.get("").err().unwrap().sqlstate, "26000");
        statements.insert(prepared(""), charge(), false).unwrap();
        statements.insert(prepared(""), charge(), false).unwrap();
        statements.insert(prepared("a"), charge(), true).unwrap();
        let again = statements.insert(prepared("a"), charge(), true);
        assert_eq!(again.unwrap_err().sqlstate, "42P05");
        assert_eq!(account.total(), 2000);
        assert!(statements.remove("a") && !statements.remove("a"));
        assert_eq!(account.total(), 1000);
        db.close().unwrap();
    }
}
