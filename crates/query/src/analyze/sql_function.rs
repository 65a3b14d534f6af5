//! Functions that users make, of SQL. A call becomes what the body says, with what is given in the
//! place of the arguments: an expression where the body is no more than that, a subquery where it
//! reads anything, a query in FROM where it gives rows. Nothing is called when the statement runs.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use pg_raw_parse::Node;

use super::call_before::CallsBefore;
use super::coerce::{can_coerce, is_polymorphic};
use super::fitting::{Fitting, fitting};
use super::given_arguments::{around, is_plain, mentions, over_arguments, put_into};
use super::resolve::{generic_types, select};
use super::scope::Clause;
use super::{Analyzer, Catalog};
use crate::call::Environment;
use crate::casts::Context;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::parse::parse;
use crate::tree::{Case, Column, Expr, ExprKind, Query, Subquery, SubqueryKind};
use crate::types::domain::base;
use crate::types::{array_of, format_type, ids};

/// How many calls a statement may have, those in bodies counted each time.
const CALLS_MAX: u32 = 5000;

/// The bodies around a call, and how many calls there were.
#[derive(Clone, Debug, Default)]
pub(super) struct Bodies {
    /// The functions, by name and body.
    around: Vec<(Arc<str>, Arc<str>)>,
    calls: Rc<Cell<u32>>,
}

impl Bodies {
    /// Whether there is no body around.
    pub(super) fn is_empty(&self) -> bool {
        self.around.is_empty()
    }

    /// Whether the body of this function is around.
    fn has(&self, function: &SqlFunction) -> bool {
        let mut around = self.around.iter();
        around.any(|(name, body)| *name == function.name && *body == function.body)
    }

    /// With one more body around.
    ///
    /// # Errors
    /// 54001 for too many calls.
    fn within(&self, function: &SqlFunction) -> Result<Self> {
        let own = (Arc::clone(&function.name), Arc::clone(&function.body));
        self.calls.set(self.calls.get() + 1);
        if self.calls.get() > CALLS_MAX {
            return Err(QueryError::new("54001", "stack depth limit exceeded")
                .with_hint("Too many functions of SQL are called in each other."));
        }
        let mut within = self.clone();
        within.around.push(own);
        Ok(within)
    }
}

/// A user's function.
#[derive(Clone, Debug)]
pub struct SqlFunction {
    /// Its number; 0 for one that is to be made.
    pub oid: u32,
    /// Its name.
    pub name: Arc<str>,
    /// Its arguments.
    pub arguments: Vec<Argument>,
    /// The number of the type that it gives, of a row where it gives several.
    pub result: u32,
    /// It gives any number of rows.
    pub returns_set: bool,
    /// The columns of its rows, where they are declared with it.
    pub columns: Vec<Column>,
    /// It gives NULL where an argument is NULL.
    pub strict: bool,
    /// Its last argument is an array, which any number of arguments are gathered in.
    pub variadic: bool,
    /// The text of its body.
    pub body: Arc<str>,
    /// What the body is written in.
    pub language: Language,
    /// The name of its only OUT argument, which the body knows, and which its column has in FROM.
    pub out: Option<Arc<str>>,
    /// It may change nothing.
    pub reads_only: bool,
    /// It runs as its owner.
    pub definer: bool,
    /// Settings that hold while it runs, each with its values.
    pub settings: Arc<[(String, Vec<String>)]>,
}

/// What a body is written in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Language {
    /// SQL: one query, which takes the place of the call.
    #[default]
    Sql,
    /// SQL: statements that run one after the other.
    Statements,
    /// PL/pgSQL
    PlPgSql,
}

impl Language {
    /// Of a body of SQL: one query that gives `result`, or statements.
    #[must_use]
    pub fn of_sql(body: &str, result: u32, has_columns: bool) -> Self {
        let is_nothing = result == ids::VOID || result == ids::RECORD && !has_columns;
        // What cannot be read is refused by whoever needs it.
        let is_query = || parse(body).map_or(true, |parsed| body_of(&parsed).is_ok());
        match !is_nothing && is_query() {
            true => Self::Sql,
            false => Self::Statements,
        }
    }
}

/// Whether a statement of a body gives rows.
///
/// # Errors
/// 42601 for what is no statement.
pub fn gives_rows(text: &str) -> Result<bool> {
    let parsed = parse(text)?;
    Ok(match parsed.statements().stmts().next() {
        Some(Node::SelectStmt(select)) => select.into_clause().is_none(),
        Some(Node::InsertStmt(insert)) => insert.returning_clause().is_some(),
        Some(Node::UpdateStmt(update)) => update.returning_clause().is_some(),
        Some(Node::DeleteStmt(delete)) => delete.returning_clause().is_some(),
        _ => false,
    })
}

/// The error of a body that gives something else than is declared.
#[cold]
#[must_use]
pub fn mismatch(result: u32) -> QueryError {
    let declared = format_type(result, -1);
    let message = format!("return type mismatch in function declared to return {declared}");
    QueryError::new("42P13", message)
}

/// The same where it is another number of columns.
#[cold]
#[must_use]
pub fn wrong_width(result: u32, declared: usize, given: usize) -> QueryError {
    mismatch(result).with_detail(match declared {
        1 => "Final statement must return exactly one column.",
        _ if declared < given => "Final statement returns too many columns.",
        _ => "Final statement returns too few columns.",
    })
}

/// An argument of a function.
#[derive(Clone, Debug)]
pub struct Argument {
    /// Its name, if it has one.
    pub name: Option<Arc<str>>,
    /// The number of its type.
    pub oid: u32,
    /// The SQL text of what it is where nothing is given.
    pub default: Option<Arc<str>>,
}

/// What a user's function in FROM gives, beside the expression that its call becomes.
#[derive(Clone, Debug)]
pub(super) enum Given {
    /// Rows. The expression only holds their place.
    Rows(Box<Query>),
    /// A row: the columns of its OUT arguments.
    Columns(Vec<Column>),
    /// Rows of a call that is made before the statement.
    Before,
}

/// What the names of arguments mean within a body.
#[derive(Clone, Debug)]
pub(super) struct Named {
    function: Arc<str>,
    arguments: Vec<Option<Arc<str>>>,
}

/// Analyses the body of a function that is to be made. Of one with arguments of any type only
/// the grammar is asked.
///
/// # Errors
/// As PostgreSQL's analysis of the body; 42P13 where it gives something else than is declared;
/// 0A000 for what no call could become.
pub fn check_function(
    function: &SqlFunction,
    catalog: &dyn Catalog,
    environment: &dyn Environment,
) -> Result<()> {
    let parsed = parse(&function.body)?;
    body_of(&parsed)?;
    let types: Vec<u32> = function.arguments.iter().map(|of| of.oid).collect();
    if types.iter().any(|oid| is_polymorphic(*oid)) {
        return Ok(());
    }
    let analyzer = Analyzer {
        catalog,
        environment,
        parameters: Vec::new(),
        levels: Vec::new(),
        takes_changes: false,
        named: None,
        variables: None,
        calls: CallsBefore::default(),
        bodies: Bodies::default(),
        given: None,
        given_name: None,
        rows_given: Vec::new(),
    };
    let columns = &function.columns;
    let body = analyzer.body(function, &types, function.result, columns);
    body.map(|_| ())
}

/// The query that a body is.
fn body_of(parsed: &crate::parse::Parsed) -> Result<&pg_raw_parse::nodes::SelectStmt> {
    let mut statements = parsed.statements().stmts();
    match (statements.next(), statements.next()) {
        (Some(Node::SelectStmt(select)), None) if select.into_clause().is_none() => Ok(select),
        _ => Err(QueryError::internal("a body that is no query")),
    }
}

impl Analyzer<'_> {
    /// The call of a user's function, if one of these is meant; `exactly` if only one whose
    /// arguments are of the very types.
    pub(super) fn call_sql(
        &mut self,
        functions: &[SqlFunction],
        arguments: &[Expr],
        (names, is_array): (&[&str], bool),
        exactly: bool,
        location: i32,
    ) -> Result<Option<Expr>> {
        let given: Vec<u32> = arguments.iter().map(|argument| argument.oid).collect();
        let candidates: Vec<Fitting<'_>> = functions
            .iter()
            .filter_map(|function| fitting(function, given.len(), names, is_array))
            .collect();
        let bases: Vec<u32> = given.iter().map(|oid| base(*oid)).collect();
        let same = |one: &&Fitting<'_>| one.types == given || one.types == bases;
        let chosen = match candidates.iter().find(same) {
            Some(exact) => Some(exact),
            None if exactly => None,
            None => {
                let fits = |one: &&Fitting<'_>| can_coerce(&given, &one.types, Context::Implicit);
                let fitting: Vec<&Fitting<'_>> = candidates.iter().filter(fits).collect();
                match fitting.as_slice() {
                    [] => None,
                    [one] => Some(*one),
                    several => {
                        let types: Vec<&[u32]> =
                            several.iter().map(|one| one.types.as_slice()).collect();
                        select(&bases, &types).map(|at| several[at])
                    }
                }
            }
        };
        match chosen {
            Some(chosen) => self.called(chosen, arguments.to_vec(), location).map(Some),
            None => Ok(None),
        }
    }

    fn called(
        &mut self,
        chosen: &Fitting<'_>,
        arguments: Vec<Expr>,
        location: i32,
    ) -> Result<Expr> {
        let function = chosen.function;
        self.catalog.may_call(function)?;
        let given: Vec<u32> = arguments.iter().map(|argument| argument.oid).collect();
        let Some(generic) = generic_types(&chosen.types, &given) else {
            return Err(QueryError::internal("a function's types do not agree").at(location));
        };
        let mut cast = Vec::with_capacity(arguments.len());
        for (argument, declared) in arguments.into_iter().zip(&chosen.types) {
            let wanted = generic.actual(*declared, argument.oid)?;
            let argument = self.coerce(argument, wanted, -1, Context::Implicit)?;
            cast.push(self.decide_unknown(argument)?);
        }
        if chosen.gathered > 0 {
            let elements = cast.split_off(cast.len() - chosen.gathered);
            let element = elements.first().map_or(ids::UNKNOWN, |one| one.oid);
            let array = array_of(base(element));
            cast.push(Expr::new(ExprKind::Array(elements, false), array, location));
        }
        let mut ordered = Vec::with_capacity(function.arguments.len());
        for (argument, place) in function.arguments.iter().zip(&chosen.places) {
            ordered.push(match place {
                Some(place) => cast[*place].clone(),
                None => self.default_of(argument)?,
            });
        }
        let result = generic.result(function.result)?;
        let mut columns = function.columns.clone();
        for column in &mut columns {
            column.oid = generic.result(column.oid)?;
        }
        if columns.len() > 1 {
            self.rows_given.push((location, columns.clone()));
        }
        if self.level().clause == Clause::FromFunction {
            self.given_name = function.out.clone().map(|name| (location, name));
        }
        // It calls itself, or is computed over groups: no query takes its place.
        let is_called = function.language != Language::Sql
            || self.bodies.has(function)
            || !function.returns_set && ordered.iter().any(is_of_groups);
        if is_called {
            return self.call_body(function, ordered, (result, columns), location);
        }
        let types: Vec<u32> = ordered.iter().map(|argument| argument.oid).collect();
        let body = self.body(function, &types, result, &columns);
        let is_more = |body: &Result<Query>| body.as_ref().is_ok_and(|query| !is_expression(query));
        let calls_itself = body.as_ref().is_ok_and(|query| calls(query, function.oid));
        let needs_query = body.is_err() || is_more(&body);
        if calls_itself || !self.catalog.takes_queries() && needs_query {
            return self.call_body(function, ordered, (result, columns), location);
        }
        let mut query = body.map_err(|mut error| {
            // Its place is in another text.
            error.location = u32::try_from(location).ok();
            error
        })?;
        let level = self.level();
        let in_from = level.clause == Clause::FromFunction && level.from_call == location;
        if function.returns_set && !in_from {
            return self.call_body(function, ordered, (result, columns), location);
        }
        if function.returns_set {
            return self.set(query, ordered, function.strict, location);
        }
        if !columns.is_empty() && in_from {
            self.given = Some(Given::Columns(columns.clone()));
        }
        let may_stand = |(at, given): (usize, &Expr)| {
            is_plain(given) || !function.strict && mentions(&query.targets[0].expr, at) <= 1
        };
        if is_expression(&query)
            && ordered.iter().enumerate().all(may_stand)
            && let Some(target) = query.targets.pop()
        {
            let mut expr = target.expr;
            put_into(&mut expr, 0, &ordered);
            expr.location = location;
            return Ok(match function.strict && !ordered.is_empty() {
                true => null_for_null(expr, &ordered),
                false => expr,
            });
        }
        if !self.catalog.takes_queries() {
            return self.call_body(function, ordered, (result, columns), location);
        }
        self.value_of(function, query, ordered, location)
    }

    /// A query of one row as a value.
    fn value_of(
        &mut self,
        function: &SqlFunction,
        mut query: Query,
        arguments: Vec<Expr>,
        location: i32,
    ) -> Result<Expr> {
        let Some(shown) = query.targets.first().map(|target| target.expr.oid) else {
            return Err(QueryError::internal("a body without a column"));
        };
        let one_row = query.group.is_some() && query.set_operation.is_none();
        if !one_row && query.limit.is_none() {
            query.limit = Some(Expr::constant(Datum::Int8(1), ids::INT8));
        }
        let subquery = Subquery {
            kind: SubqueryKind::Scalar,
            query: over_arguments(query, &arguments, function.strict),
            test: None,
        };
        let kind = ExprKind::Subquery(Box::new(subquery));
        Ok(Expr::new(kind, shown, location))
    }

    /// The rows of a function in FROM, which takes them from here.
    fn set(
        &mut self,
        query: Query,
        arguments: Vec<Expr>,
        strict: bool,
        location: i32,
    ) -> Result<Expr> {
        if matches!(self.given, Some(Given::Rows(_))) {
            return Err(not_at_the_top(location));
        }
        let query = over_arguments(query, &arguments, strict);
        let shown = query.columns();
        let oid = match shown.as_slice() {
            [one] => one.oid,
            _ => ids::RECORD,
        };
        self.given = Some(Given::Rows(Box::new(query)));
        Ok(Expr::new(ExprKind::Constant(Datum::Null), oid, location))
    }

    fn default_of(&mut self, argument: &Argument) -> Result<Expr> {
        let Some(text) = &argument.default else {
            return Err(QueryError::internal("an argument without a value"));
        };
        let parsed = parse(&format!("SELECT {text}"))?;
        let mut analyzer = self.apart(None, self.bodies.clone());
        // A literal is what the argument takes it for.
        let query = analyzer.query_undecided(body_of(&parsed)?)?;
        let Some(target) = query.targets.into_iter().next() else {
            return Err(QueryError::internal("a default without a value"));
        };
        let value = analyzer.coerce_to(target.expr, argument.oid, -1, Context::Assignment)?;
        value.ok_or_else(|| QueryError::new("42804", format!("DEFAULT {text} is of another type")))
    }

    /// An analysis of another text, with the same surroundings.
    fn apart(&self, named: Option<Named>, bodies: Bodies) -> Analyzer<'_> {
        Analyzer {
            catalog: self.catalog,
            environment: self.environment,
            parameters: Vec::new(),
            levels: Vec::new(),
            takes_changes: false,
            named,
            variables: None,
            calls: CallsBefore::default(),
            bodies,
            given: None,
            given_name: None,
            rows_given: Vec::new(),
        }
    }

    /// The body as a query whose parameters are the arguments, and whose columns are of the types
    /// that the function gives.
    fn body(
        &self,
        function: &SqlFunction,
        types: &[u32],
        result: u32,
        columns: &[Column],
    ) -> Result<Query> {
        let bodies = self.bodies.within(function)?;
        let parsed = parse(&function.body)?;
        let select = body_of(&parsed)?;
        let named = Named {
            function: Arc::clone(&function.name),
            arguments: function
                .arguments
                .iter()
                .map(|of| of.name.clone())
                .collect(),
        };
        let own = self.catalog.of_bodies();
        let mut analyzer = self.apart(Some(named), bodies);
        if let Some(own) = &own {
            analyzer.catalog = &**own;
        }
        analyzer.parameters = types.to_vec();
        let query = analyzer.query(select, None)?;
        if analyzer.parameters.len() > types.len() {
            let message = format!("there is no parameter ${}", types.len() + 1);
            return Err(QueryError::new("42P02", message));
        }
        if query.locks_rows() {
            return Err(QueryError::unsupported(
                "row locks in the body of a function are not supported",
                "Lock the rows in the statement that calls the function.",
            ));
        }
        analyzer.as_declared(function, query, result, columns)
    }

    /// The query with the columns that the function is declared to give; of one that gives a row,
    /// with that row as its only column.
    fn as_declared(
        &mut self,
        function: &SqlFunction,
        query: Query,
        result: u32,
        columns: &[Column],
    ) -> Result<Query> {
        let shown = query.columns();
        let declared: Vec<Column> = match columns {
            [] => match self.catalog.composite(base(result)) {
                // A row, or its columns one by one.
                Some(columns) if shown.len() != 1 || shown[0].oid != result => columns,
                _ => vec![Column {
                    name: Arc::clone(&function.name),
                    oid: result,
                    modifier: -1,
                    origin: None,
                }],
            },
            columns => columns.to_vec(),
        };
        let mismatch = || mismatch(result);
        if declared.len() != shown.len() {
            return Err(wrong_width(result, declared.len(), shown.len()));
        }
        let fits = declared.iter().zip(&shown).all(|(to, from)| {
            to.oid == from.oid && (to.modifier < 0 || to.modifier == from.modifier)
        });
        let as_row = !function.returns_set && declared.len() > 1;
        if fits && !as_row {
            let mut query = query;
            let shown = query.targets.iter_mut().filter(|target| !target.hidden);
            for (target, column) in shown.zip(&declared) {
                target.name = Arc::clone(&column.name);
            }
            return Ok(query);
        }
        let mut values = Vec::with_capacity(declared.len());
        let direct = is_expression(&query);
        let inner: Vec<&Expr> = query.targets.iter().map(|target| &target.expr).collect();
        for (at, (to, from)) in declared.iter().zip(&shown).enumerate() {
            let kind = ExprKind::Column {
                level: 0,
                relation: 0,
                column: at,
            };
            let column = match direct {
                true => inner[at].clone(),
                false => Expr::new(kind, from.oid, -1).with_modifier(from.modifier),
            };
            let value = self.coerce_to(column, to.oid, to.modifier, Context::Assignment)?;
            values.push(value.ok_or_else(|| {
                mismatch().with_detail(format!(
                    "Actual return type is {}.",
                    format_type(from.oid, -1)
                ))
            })?);
        }
        let name = |at: usize| Arc::clone(&declared[at].name);
        let target = |(at, expr): (usize, Expr)| crate::tree::Target {
            expr,
            name: name(at),
            hidden: false,
            origin: None,
        };
        let targets = match as_row {
            true => {
                let row = Expr::new(ExprKind::Row(values), ids::RECORD, -1);
                let row = self.coerce_to(row, result, -1, Context::Explicit)?;
                let row = row.ok_or_else(mismatch)?;
                vec![crate::tree::Target {
                    name: Arc::clone(&function.name),
                    ..target((0, row))
                }]
            }
            false => values.into_iter().enumerate().map(target).collect(),
        };
        Ok(match direct {
            true => Query { targets, ..query },
            false => Query {
                targets,
                ..around(query)
            },
        })
    }

    /// What a name means as an argument of the function whose body this is.
    pub(super) fn argument(
        &self,
        function: Option<&str>,
        name: &str,
        location: i32,
    ) -> Option<Expr> {
        let named = self.named.as_ref()?;
        if function.is_some_and(|function| *function != *named.function) {
            return None;
        }
        let mut all = named.arguments.iter();
        let at = all.position(|argument| argument.as_deref() == Some(name))?;
        let oid = *self.parameters.get(at)?;
        Some(Expr::new(ExprKind::Parameter(at), base(oid), location))
    }
}

/// The error of a function that gives rows, as an argument of another one in FROM.
#[cold]
pub(super) fn not_at_the_top(location: i32) -> QueryError {
    QueryError::unsupported(
        "set-returning functions must appear at top level of FROM",
        "Call the function in a FROM item of its own, and the other one on its columns.",
    )
    .at(location)
}

/// Whether a query has a call of this function, which the session makes.
fn calls(query: &Query, function: u32) -> bool {
    let mut found = false;
    query.exprs(&mut |expr| {
        found = found
            || expr.any(&mut |expr| match &expr.kind {
                ExprKind::Subquery(subquery) => calls(&subquery.query, function),
                _ => expr.called_number() == Some(function),
            });
    });
    found
}

/// Whether a query is one expression over nothing.
fn is_expression(query: &Query) -> bool {
    query.relations.is_empty()
        && query.with.is_empty()
        && query.filter.is_none()
        && query.group.is_none()
        && query.having.is_none()
        && query.windows.is_empty()
        && query.limit.is_none()
        && query.offset.is_none()
        && query.order.is_empty()
        && !query.has_set_targets
        && query.set_operation.is_none()
        && query.targets.iter().all(|target| !target.hidden)
}

/// Whether an expression is over groups or a window of the query at hand.
fn is_of_groups(expr: &Expr) -> bool {
    expr.any(&mut |expr| {
        matches!(
            expr.kind,
            ExprKind::Aggregate(_) | ExprKind::Window(_) | ExprKind::Grouping(..)
        )
    })
}

/// NULL where one of the arguments is.
fn null_for_null(expr: Expr, arguments: &[Expr]) -> Expr {
    let (oid, modifier, location) = (expr.oid, expr.modifier, expr.location);
    let is_null = |argument: &Expr| {
        let kind = ExprKind::IsNull(Box::new(argument.clone()), true);
        Expr::new(kind, ids::BOOL, -1)
    };
    let any = ExprKind::Or(arguments.iter().map(is_null).collect());
    let case = Case {
        operand: None,
        branches: vec![(
            Expr::new(any, ids::BOOL, -1),
            Expr::constant(Datum::Null, oid),
        )],
        otherwise: expr,
    };
    Expr::new(ExprKind::Case(Box::new(case)), oid, location).with_modifier(modifier)
}
