//! Queries that read no table, by `thermocline_query`: PostgreSQL's grammar, its analysis,
//! its types and its functions, computed row by row. What they can't do yet (aggregates,
//! subqueries, orders, functions that only this crate has) is left to others.

mod environment;
mod run;

use pg_raw_parse::Node;
use thermocline_query::analyze::{Analyzed, Catalog, Stored, Variables, analyze};
use thermocline_query::functions::Body;
use thermocline_query::tree::{Distinctness, Expr, ExprKind, From, Query, RelationKind};
use thermocline_query::types::{self, ids};

use crate::error::SqlError;
use crate::expr::SessionInfo;
use crate::styles::Styles;
use crate::typed::{TypedQuery, positioned};

pub(crate) use environment::{StatementEnvironment, numbered};
pub(crate) use run::execute;

/// The functions that the session answers, of those whose rows say that the server does.
pub(crate) const SESSION_FUNCTIONS: [&str; 15] = [
    "current_database",
    "current_schema",
    "current_setting",
    "current_user",
    "pg_backend_pid",
    "pg_cancel_backend",
    "pg_is_in_recovery",
    "pg_notify",
    "pg_reload_conf",
    "pg_stat_statements_reset",
    "pg_terminate_backend",
    "pg_trigger_depth",
    "session_user",
    "set_config",
    "version",
];

/// The functions of sequences, which the session answers in changes of rows.
pub(crate) const OF_SEQUENCES: [&str; 4] = ["currval", "lastval", "nextval", "setval"];

/// The functions of advisory locks.
pub(crate) const ADVISORY: [&str; 11] = [
    "pg_advisory_lock",
    "pg_advisory_lock_shared",
    "pg_advisory_unlock",
    "pg_advisory_unlock_all",
    "pg_advisory_unlock_shared",
    "pg_advisory_xact_lock",
    "pg_advisory_xact_lock_shared",
    "pg_try_advisory_lock",
    "pg_try_advisory_lock_shared",
    "pg_try_advisory_xact_lock",
    "pg_try_advisory_xact_lock_shared",
];

/// Functions that only wait.
const SLEEPS: [&str; 3] = ["pg_sleep", "pg_sleep_for", "pg_sleep_until"];

/// Functions that show another time each time they are called.
const CLOCKS: [&str; 2] = ["clock_timestamp", "timeofday"];

/// Whether an expression calls one of these functions; what it is told how long to sleep does not
/// count.
fn calls(expr: &Expr, names: &[&str]) -> bool {
    if let ExprKind::Call(call) = &expr.kind {
        let name = &call.function.name;
        if names.contains(name) || SLEEPS.contains(name) {
            return names.contains(name);
        }
    }
    let mut found = false;
    expr.children(&mut |child| found = found || calls(child, names));
    found
}

/// Whether a query sleeps and shows what the clock says. It is run again after the sleep: all its
/// clocks would show the time behind it.
fn has_wrong_clock(query: &Query) -> bool {
    let (mut sleeps, mut clocks) = (false, false);
    query.exprs(&mut |expr| {
        sleeps = sleeps || calls(expr, &SLEEPS);
        clocks = clocks || calls(expr, &CLOCKS);
    });
    sleeps && clocks
}

/// Whether a query shows names of types by their numbers, which users' types have in the catalog.
fn names_types(query: &Query) -> bool {
    let mut found = false;
    query.exprs(&mut |expr| found = found || calls(expr, &["format_type"]));
    found
}

/// A catalog without relations: whoever names one is for others.
struct NoRelations<'a> {
    variables: Option<&'a dyn Variables>,
}

impl Catalog for NoRelations<'_> {
    fn variables(&self) -> Option<&dyn Variables> {
        self.variables
    }

    fn relation(
        &self,
        _: Option<&str>,
        _: &str,
    ) -> thermocline_query::error::Result<Option<Stored>> {
        Ok(None)
    }
}

/// Analyses a query that reads no table, if it is done here; `None` leaves it to others.
pub(crate) fn bind(
    statement: Node<'_>,
    text: &str,
    declared: &[u32],
    session: &dyn SessionInfo,
    (now_us, styles): (i64, &Styles),
    variables: Option<&dyn Variables>,
) -> Option<Result<TypedQuery, SqlError>> {
    if !is_plain(statement) {
        return None;
    }
    let environment = StatementEnvironment::new(session, now_us, styles);
    let relations = NoRelations { variables };
    let analyzed = match analyze(statement, &relations, &environment, declared) {
        Ok(analyzed) => analyzed,
        // What is not known here may be known to others.
        Err(error) if matches!(error.sqlstate, "0A000" | "42883" | "42704" | "42P01") => {
            return None;
        }
        Err(error) => return Some(Err(positioned(error, text))),
    };
    if cfg!(feature = "analytics") && names_types(&analyzed.query) {
        return None;
    }
    if has_wrong_clock(&analyzed.query) {
        let message = "the clock's time beside pg_sleep in one query is not supported";
        return Some(Err(SqlError::unsupported(
            message,
            "Ask for the time in queries of their own.",
        )));
    }
    is_done_here(&analyzed)
        .then(|| Ok(TypedQuery::of(analyzed).of_the_moment(environment.has_told_time())))
}

/// Whether a query of what calls before it give is computed here.
pub(crate) fn takes(query: &Query) -> bool {
    is_simple(query)
}

/// The line of EXPLAIN.
pub(crate) fn shown(typed: &TypedQuery) -> &'static str {
    match typed.query.from.is_empty() {
        true => "Result",
        false => match typed.query.relations.first().map(|relation| &relation.kind) {
            Some(RelationKind::Values(..)) => "Values Scan",
            _ => "Function Scan",
        },
    }
}

/// Makes the tables of names, so that no statement waits for them.
pub(crate) fn prepare() {
    let _ = types::by_oid(ids::INT4);
    let _ = types::oid_named("int4");
    let _ = types::element_of(ids::INT4_ARRAY);
    crate::typed::stored::register();
    let _ = thermocline_query::functions::named("abs");
    let _ = thermocline_query::functions::by_oid(0);
    let _ = thermocline_query::operators::named("+");
    let _ = thermocline_query::casts::between(ids::INT4, ids::INT8);
}

/// VALUES of more rows are the analytical side's, which gives way.
const VALUES_ROWS_MAX: usize = 256;

/// Whether a statement is a plain query; what it reads is told by its analysis.
fn is_plain(statement: Node<'_>) -> bool {
    let Node::SelectStmt(select) = statement else {
        return false;
    };
    select.larg().is_none()
        && select.with_clause().is_none()
        && select.into_clause().is_none()
        && select.locking_clause().is_empty()
        && select.from_clause().iter().all(is_no_table)
        && select.values_lists().iter().count() <= VALUES_ROWS_MAX
}

/// Whether a member of FROM is none of those that name a relation.
fn is_no_table(member: Node<'_>) -> bool {
    matches!(member, Node::RangeFunction(_) | Node::RangeSubselect(_))
}

fn is_done_here(analyzed: &Analyzed) -> bool {
    is_simple(&analyzed.query)
}

fn is_simple(query: &Query) -> bool {
    let plain = query.group.is_none()
        && query.having.is_none()
        && query.windows.is_empty()
        && query.order.is_empty()
        && query.distinct == Distinctness::All
        && !query.with_ties;
    let source = match (query.from.as_slice(), query.relations.as_slice()) {
        ([], []) => true,
        ([From::Relation(0)], [one]) => match &one.kind {
            RelationKind::Functions { .. } => true,
            RelationKind::Values(rows, is_lateral) => {
                !is_lateral
                    && rows
                        .iter()
                        .flatten()
                        .all(|value| is_known(value) && !gives_rows(value))
            }
            _ => false,
        },
        _ => false,
    };
    let mut known = true;
    query.exprs(&mut |expr| known = known && is_known(expr));
    // A set within an expression is no row form's.
    let sets = query.targets.iter().all(|target| {
        let mut within = false;
        target
            .expr
            .children(&mut |child| within = within || gives_rows(child));
        !within
    });
    let shown = query.targets.iter().all(|target| {
        let oid = types::element_of(target.expr.oid).unwrap_or(target.expr.oid);
        types::by_oid(oid).is_some()
    });
    plain && source && known && sets && shown
}

fn gives_rows(expr: &Expr) -> bool {
    expr.any(&mut |expr| match &expr.kind {
        ExprKind::Call(call) => call.function.returns_set(),
        _ => false,
    })
}

/// Whether the type's values are shown by names that a catalog gives.
fn is_of_catalog(oid: u32) -> bool {
    matches!(
        oid,
        ids::REGCLASS
            | ids::REGTYPE
            | ids::REGPROC
            | ids::REGPROCEDURE
            | ids::REGOPER
            | ids::REGOPERATOR
            | ids::REGNAMESPACE
            | ids::REGROLE
            | ids::REGCOLLATION
            | ids::ACLITEM
    )
}

/// Whether all functions and types of an expression are answered here.
fn is_known(expr: &Expr) -> bool {
    !expr.any(&mut |expr| match &expr.kind {
        ExprKind::Call(call) if call.function.name == "pg_typeof" => false,
        _ if is_of_catalog(expr.oid) => true,
        ExprKind::Call(call) => match call.function.body {
            Body::Server => {
                let name = &call.function.name;
                !SESSION_FUNCTIONS.contains(name)
                    && !SLEEPS.contains(name)
                    && !ADVISORY.contains(name)
            }
            Body::ServerSet => true,
            // Its rows may be without end: they are for an operator that stops.
            Body::Set(_) => call.function.name == "generate_series",
            _ => false,
        },
        ExprKind::Subquery(_) | ExprKind::Aggregate(_) | ExprKind::Window(_) => true,
        _ => false,
    })
}
