//! Analysis of queries against the catalog: users' tables and the system's relations.

use std::collections::BTreeSet;
use std::sync::Arc;

use pg_raw_parse::Node;
use thermocline_engine::authority::{FIRST_ROLE_OID, Privileges};
use thermocline_engine::{Catalog, Database, Table, ViewDef, ViewFunction, ViewRead, ViewType};
use thermocline_query::analyze::{
    self, Analyzed, AnalyzedStatement, CreateFunction, Language, analyze, analyze_statement,
};
use thermocline_query::change::Statement;
use thermocline_query::functions::Body;
use thermocline_query::parse::parse;
use thermocline_query::tree::{Expr, ExprKind, Query};
use thermocline_query::types::element_of;
use thermocline_query::walk::{columns_read, columns_read_by};

use super::facts::SessionFacts;
use super::indexed::Indexed;
pub(crate) use super::relations::Around;
use super::relations::{FRESH, Found, Relations};
use crate::error::{Result, SqlError};
use crate::one_row::OF_SEQUENCES;
use crate::pg_catalog::{self, SystemEnvironment, quote_ident};
use crate::plpgsql;
use crate::privilege::Actor;
use crate::stack;
use crate::styles::Styles;
use crate::typed::{TypedQuery, positioned};

/// A statement, analysed, and what it came across.
pub(crate) struct BoundStatement {
    /// The statement.
    pub(crate) analyzed: AnalyzedStatement,
    /// The users' tables that it names.
    pub(crate) tables: Vec<Arc<Table>>,
    /// It shows the session's own cursors or statements.
    shows_own: bool,
    /// Its literals say what the time is (`now`, `today`).
    pub(crate) of_the_moment: bool,
    /// How deep its tree is, if views stand in it.
    depth: u32,
}

impl BoundStatement {
    /// The query, if it is one that only reads: for whoever locks and changes nothing.
    pub(crate) fn into_reading(self) -> Result<TypedQuery, Self> {
        match &self.analyzed.statement {
            Statement::Query(query) if !query.locks_rows() => self.into_query(),
            _ => Err(self),
        }
    }

    /// The query, which may lock rows, if it changes none.
    pub(crate) fn into_query(self) -> Result<TypedQuery, Self> {
        match self.analyzed.statement {
            Statement::Query(query) if !changes_rows(&query) => {
                let analyzed = Analyzed {
                    query: *query,
                    parameters: self.analyzed.parameters,
                };
                let typed = TypedQuery::of(analyzed).of_depth(self.depth);
                Ok(typed.showing_own(self.shows_own).over(self.tables))
            }
            statement => Err(Self {
                analyzed: AnalyzedStatement {
                    statement,
                    ..self.analyzed
                },
                ..self
            }),
        }
    }
}

fn changes_rows(query: &Query) -> bool {
    query.with.iter().any(|common| common.change.is_some())
}

/// Analyses a query or a change of rows.
///
/// # Errors
/// As PostgreSQL's analysis; 0A000 for what is not done.
pub(crate) fn bind_statement(
    statement: Node<'_>,
    text: &str,
    declared: &[u32],
    (catalog, db, facts): (&Arc<Catalog>, &Arc<Database>, SessionFacts),
    around: Around<'_>,
) -> Result<BoundStatement> {
    let environment = SystemEnvironment::new(catalog, db, facts, None);
    let found = Found::default();
    let relations = Relations::of_statement(&environment, &found).within_body(around);
    let depth = depth_with_views(catalog);
    let analyzed = stack::with_room(depth, || {
        let analyzed = analyze_statement(statement, &relations, &environment, declared);
        let mut analyzed = analyzed.map_err(|error| positioned(error, text))?;
        may_read(&mut analyzed.statement, &found, &environment)?;
        let facts = &environment.session().facts;
        let indexed = Indexed {
            tables: &found.tables.borrow(),
            catalog,
            search_path: &facts.search_path,
            actor: &facts.actor,
        };
        indexed.look(&mut analyzed.statement)?;
        Ok::<_, SqlError>(analyzed)
    })?;
    Ok(BoundStatement {
        analyzed,
        shows_own: found.own.get(),
        of_the_moment: environment.has_told_time(),
        depth: match found.views.get() {
            true => depth,
            false => 0,
        },
        tables: found.tables.take(),
    })
}

/// All columns that a query names may be read, as in PostgreSQL also those that no row of the
/// result needs. What a change names is asked where its plan is made, but for views.
fn may_read(
    statement: &mut Statement,
    found: &Found,
    environment: &SystemEnvironment,
) -> Result<()> {
    let session = environment.session();
    let (actor, catalog) = (&session.facts.actor, &session.catalog);
    let has_views = found.views.get();
    let mut done = Ok(());
    match statement {
        Statement::Query(query) if has_views || !actor.is_superuser() => {
            done = may_read_all(query, Some(actor), catalog);
        }
        Statement::Change(change) if has_views => change.queries_mut(&mut |query| {
            if done.is_ok() {
                done = may_read_all(query, None, catalog);
            }
        }),
        _ => {}
    }
    done
}

/// 42501 unless the columns that a query names may be read: by this actor, and those that a view
/// names by its owner.
pub(crate) fn may_read_all(query: &Query, actor: Option<&Actor>, catalog: &Catalog) -> Result<()> {
    for (reader, table, column) in columns_read_by(query) {
        let Some(table) = catalog.table(table) else {
            continue;
        };
        let needs = Privileges::SELECT;
        match (reader, actor) {
            (Some(reader), _) => {
                Actor::numbered(reader, catalog)?.need_column(table, column, needs)?;
            }
            (None, Some(actor)) => actor.need_column(table, column, needs)?,
            (None, None) => {}
        }
    }
    Ok(())
}

/// What a CREATE FUNCTION makes, its body analysed.
///
/// # Errors
/// As PostgreSQL's analysis; 0A000 for what is not done.
pub(crate) fn create_function(
    text: &str,
    catalog: &Arc<Catalog>,
    db: &Arc<Database>,
    facts: SessionFacts,
    checks_body: bool,
) -> Result<CreateFunction> {
    let mut search_path = facts.search_path.clone();
    let environment = SystemEnvironment::new(catalog, db, facts, None);
    let found = Found::default();
    let relations = Relations::of_statement(&environment, &found);
    let create = analyze::create_function(text, &relations);
    let create = create.map_err(|error| positioned(error, text))?;
    let around = Around {
        makes: Some(&create.function),
        ..Around::default()
    };
    let relations = Relations::of_statement(&environment, &found).within_body(around);
    if !checks_body {
        return Ok(create);
    }
    if create.function.language != Language::Sql {
        let mut settings = create.function.settings.iter();
        if let Some((_, path)) = settings.find(|(name, _)| name == "search_path") {
            search_path = path.clone();
        }
        plpgsql::check(&create.function, catalog, &search_path)?;
        return Ok(create);
    }
    stack::with_room(depth_with_views(catalog), || {
        analyze::check_function(&create.function, &relations, &environment)
    })
    .map_err(|mut error| {
        // Its place is in the body.
        error.location = None;
        SqlError::from(error)
    })?;
    Ok(create)
}

/// What a statement says of functions, by one of `analyze`'s readings of it
/// ([`analyze::drop_function`], [`analyze::alter_function`]).
///
/// # Errors
/// 42704 for a type that is not there; the reading's own.
pub(crate) fn of_functions<T>(
    text: &str,
    catalog: &Arc<Catalog>,
    db: &Arc<Database>,
    facts: SessionFacts,
    read: impl FnOnce(&str, &dyn analyze::Catalog) -> thermocline_query::error::Result<T>,
) -> Result<T> {
    let environment = SystemEnvironment::new(catalog, db, facts, None);
    let found = Found::default();
    let relations = Relations::of_statement(&environment, &found);
    read(text, &relations).map_err(|error| positioned(error, text))
}

/// How deep a statement's tree gets when views stand in it.
fn depth_with_views(catalog: &Catalog) -> u32 {
    match (stack::depth(), catalog.deepest_view()) {
        // What any thread has room for serves a shallow statement over shallow views, too.
        (0, views) if !stack::is_deep(views) => 0,
        (depth, views) => depth.max(stack::SHALLOW) + views,
    }
}

/// The query of a view that is being made.
pub(crate) struct NewView {
    /// Its query.
    pub(crate) query: Query,
    /// What it reads.
    pub(crate) reads: Vec<ViewRead>,
    /// The users' types that it names.
    pub(crate) types: Vec<ViewType>,
    /// The users' functions that it calls by name.
    pub(crate) functions: Vec<ViewFunction>,
}

/// Analyses the query of a view that is to be made. `text` is the query's, and errors are
/// placed in it.
///
/// # Errors
/// As PostgreSQL's analysis; 0A000 for what a view cannot keep.
pub(crate) fn bind_view(
    text: &str,
    catalog: &Arc<Catalog>,
    db: &Arc<Database>,
    facts: &SessionFacts,
) -> Result<NewView> {
    stack::with_room(depth_with_views(catalog), || {
        let now = analyzed_view(text, catalog, db, facts.clone(), Around::default())?;
        // A literal that says another thing each day is read when the view is made, and by us
        // whenever it is used.
        let later = SessionFacts {
            now_us: facts.now_us + 40_000_000_000_000,
            ..facts.clone()
        };
        let later = analyzed_view(text, catalog, db, later, Around::default())?;
        if !facts.styles.is_plain() {
            // Nor one that says another thing in other sessions.
            let plain = SessionFacts {
                styles: Styles::plain_shared(),
                ..facts.clone()
            };
            let plain = analyzed_view(text, catalog, db, plain, Around::default());
            if !plain.is_ok_and(|plain| format!("{:?}", plain.query) == format!("{:?}", now.query))
            {
                return Err(SqlError::unsupported(
                    "a constant of a view cannot depend on TimeZone, DateStyle or IntervalStyle",
                    "Write it in the style ISO, and a time with its zone.",
                ));
            }
        }
        match format!("{:?}", now.query) == format!("{:?}", later.query) {
            true => Ok(now),
            false => Err(SqlError::unsupported(
                "a view cannot have a constant that is of the moment, such as 'now' or 'today'",
                "Use CURRENT_TIMESTAMP or CURRENT_DATE, or write the moment itself.",
            )),
        }
    })
}

/// The columns of tables that the query of a view reads, or those of views in it: the tables'
/// numbers and the columns' positions.
///
/// # Errors
/// As PostgreSQL's analysis.
pub(crate) fn columns_of_view(
    view: &ViewDef,
    catalog: &Arc<Catalog>,
    db: &Arc<Database>,
    facts: SessionFacts,
) -> Result<BTreeSet<(u32, usize)>> {
    let text = format!("SELECT FROM {}", quote_ident(FRESH));
    let around = Around {
        refreshes: Some(view.oid),
        ..Around::default()
    };
    stack::with_room(depth_with_views(catalog), || {
        let NewView { query, .. } = analyzed_view(&text, catalog, db, facts, around)?;
        Ok(columns_read(&query))
    })
}

/// What the query of a view needs by itself.
#[derive(Default)]
pub(crate) struct NeededByView {
    /// Columns of tables and views: the relations' numbers and the columns' positions.
    pub(crate) columns: BTreeSet<(u32, usize)>,
    /// The types that constants and casts are of.
    pub(crate) types: BTreeSet<u32>,
}

/// What the query of a view needs, without what the views that it reads need.
///
/// # Errors
/// As PostgreSQL's analysis.
pub(crate) fn needed_by_view(
    view: &Arc<ViewDef>,
    catalog: &Arc<Catalog>,
    db: &Arc<Database>,
    facts: SessionFacts,
) -> Result<NeededByView> {
    stack::with_room(depth_with_views(catalog), || {
        let text = &view.query;
        let parsed = parse(text).map_err(|error| positioned(error, text))?;
        let statement = parsed.statements().stmts().next();
        let statement = statement.ok_or_else(|| SqlError::internal("a view of no query"))?;
        let owner = Actor::numbered(FIRST_ROLE_OID, catalog)?;
        let environment = SystemEnvironment::new(catalog, db, facts, None);
        let found = Found::default();
        let relations = Relations::named_by_view(&environment, &found, Arc::clone(view), owner);
        let analyzed = analyze(statement, &relations, &environment, &[]);
        let Analyzed { query, .. } = analyzed.map_err(|error| positioned(error, text))?;
        let mut types = BTreeSet::new();
        types_of_query(&query, &mut types);
        Ok(NeededByView {
            columns: columns_read(&query),
            types,
        })
    })
}

/// The types of a query's constants and casts.
fn types_of_query(query: &Query, found: &mut BTreeSet<u32>) {
    query.exprs(&mut |expr| {
        let mut list = None;
        expr.any(&mut |expr| {
            match &expr.kind {
                // The constants of IN (…), which PostgreSQL does not make an array of.
                ExprKind::AnyOfArray(any) => list = Some(std::ptr::from_ref(&any.array)),
                ExprKind::Constant(_) if list == Some(std::ptr::from_ref(expr)) => {
                    found.insert(element_of(expr.oid).unwrap_or(expr.oid));
                }
                ExprKind::Constant(_)
                | ExprKind::Relabel(_)
                | ExprKind::ThroughText(_)
                | ExprKind::Checked(_)
                | ExprKind::ArrayCast(..)
                | ExprKind::RowCast(..) => {
                    found.insert(expr.oid);
                }
                ExprKind::Subquery(subquery) => types_of_query(&subquery.query, found),
                _ => {}
            }
            false
        });
    });
}

fn analyzed_view(
    text: &str,
    catalog: &Arc<Catalog>,
    db: &Arc<Database>,
    facts: SessionFacts,
    around: Around<'_>,
) -> Result<NewView> {
    let parsed = parse(text).map_err(|error| positioned(error, text))?;
    let mut statements = parsed.statements().stmts();
    let (Some(statement), None) = (statements.next(), statements.next()) else {
        return Err(SqlError::internal("a view is of one query"));
    };
    let Node::SelectStmt(select) = statement else {
        let word = text.split_whitespace().next().unwrap_or_default();
        let message = format!("syntax error at or near \"{word}\"");
        return Err(SqlError::syntax(message).with_position(Some(1)));
    };
    if select.into_clause().is_some() {
        return Err(SqlError::unsupported(
            "views must not contain SELECT INTO",
            "Leave the INTO clause out.",
        ));
    }
    let environment = SystemEnvironment::new(catalog, db, facts, None);
    let found = Found::default();
    let relations = Relations::of_new_view(&environment, &found).within_body(around);
    let analyzed = analyze(statement, &relations, &environment, &[]);
    let Analyzed { query, parameters } = analyzed.map_err(|error| positioned(error, text))?;
    if !parameters.is_empty() {
        return Err(SqlError::new("42P02", "there is no parameter $1"));
    }
    answered(&query)?;
    Ok(NewView {
        query,
        reads: found.reads.take(),
        types: found.types.take(),
        functions: found.called(),
    })
}

/// 0A000 where a query calls a function that nobody answers.
pub(crate) fn answered(query: &Query) -> Result<()> {
    match unanswered(query) {
        None => Ok(()),
        Some(name) => Err(SqlError::unsupported(
            format!("function {name} is not supported"),
            "Leave the call out, or compute its result in the application.",
        )),
    }
}

/// A function that a query calls and that nobody answers.
fn unanswered(query: &Query) -> Option<&'static str> {
    fn of_expr(expr: &Expr, draws: bool, found: &mut Option<&'static str>) {
        expr.any(&mut |expr| {
            match &expr.kind {
                ExprKind::Call(call)
                    if matches!(call.function.body, Body::Server | Body::ServerSet)
                        && !pg_catalog::is_answered(call.function.name)
                        && !(draws && OF_SEQUENCES.contains(&call.function.name)) =>
                {
                    *found = Some(call.function.name);
                }
                ExprKind::Subquery(subquery) => *found = found.or(unanswered(&subquery.query)),
                _ => {}
            }
            found.is_some()
        });
    }
    let mut found = None;
    // Numbers are drawn when rows are in order, and only of those that LIMIT leaves.
    let draws = query.order.is_empty() && query.limit.is_none() && query.offset.is_none();
    query.exprs(&mut |expr| of_expr(expr, draws, &mut found));
    found
}
