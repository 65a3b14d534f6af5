//! Statements within a statement that run before it: a query that locks rows, and the changes of
//! a WITH list. Each is bound for the short path; what it gives goes into the statement as
//! arrays, one for each of its columns, which the query that stands in its place unnests.
//!
//! In PostgreSQL a statement does not see what its WITH list changes. Here the changes come first,
//! so a statement that reads what its list changes is refused.

use std::ops::ControlFlow;

use sqlparser::ast::{
    self, ObjectName, SetExpr, Statement, Visit, VisitMut, Visitor, VisitorMut, With,
};
use thermocline_engine::authority::Privileges;
use thermocline_query::functions::{self, Function, Volatility};
use thermocline_query::types::{array_of, element_of, format_type, ids};
use thermocline_storage::types::DataType;

use super::by_query::{parameters_of, quoted};
use super::scope::{find_table, folded, name_parts};
use super::source;
use super::typed::Binder;
use super::{Bindable, BoundPlan, Refusal};
use crate::error::SqlError;
use crate::output::{ColumnType, OutputColumn};
use crate::plan::{Before, BeforeColumn, ShortPlan};

/// What was taken out of a statement so far.
#[derive(Default)]
pub(super) struct TakenOut {
    /// The statement's own parameters; those of the arrays come behind them.
    own_parameters: usize,
    before: Vec<Before>,
    /// The tables that they change.
    changed: Vec<u32>,
}

/// Whether statements within this one are to run before it.
pub(super) fn has_inner(statement: &Statement) -> bool {
    struct Inner {
        depth: usize,
    }
    impl Visitor for Inner {
        type Break = ();
        fn pre_visit_query(&mut self, query: &ast::Query) -> ControlFlow<()> {
            self.depth += 1;
            match self.depth > 1 && is_inner(query) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
        fn post_visit_query(&mut self, _: &ast::Query) -> ControlFlow<()> {
            self.depth -= 1;
            ControlFlow::Continue(())
        }
    }
    let depth = usize::from(!matches!(statement, Statement::Query(_)));
    statement.visit(&mut Inner { depth }).is_break()
}

fn is_inner(query: &ast::Query) -> bool {
    !query.locks.is_empty() || is_change(&query.body)
}

fn is_change(body: &SetExpr) -> bool {
    matches!(
        body,
        SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_)
    )
}

impl Binder<'_> {
    pub(super) fn has_before(&self) -> bool {
        !self.taken_out.before.is_empty()
    }

    /// The numbers of the parameters' types for a query that may unnest what was taken out; 0 for
    /// what is not settled.
    pub(super) fn declared_oids(&self) -> Vec<u32> {
        let mut declared = self.parameter_oids();
        let taken = &self.taken_out;
        if !taken.before.is_empty() {
            declared.resize(taken.own_parameters, 0);
            let columns = taken.before.iter().flat_map(|before| &before.columns);
            declared.extend(columns.map(BeforeColumn::array_oid));
        }
        declared
    }

    /// The statement without those that run before it, which the binder keeps.
    pub(super) fn take_out(&mut self, whole: &Statement) -> Bindable<Statement> {
        self.taken_out.own_parameters = parameters_of(&whole.to_string());
        let mut statement = whole.clone();
        if let Some(place) = list_of(&mut statement)
            && let Some(mut list) = place.take()
        {
            self.check_read_once(&list, whole)?;
            self.take_out_of_list(&mut list)?;
            *place = Some(list).filter(|list| !list.cte_tables.is_empty());
        }
        // A change without its list stands alone.
        if let Statement::Query(query) = &mut statement
            && query.with.is_none()
            && let SetExpr::Insert(change) | SetExpr::Update(change) | SetExpr::Delete(change) =
                &mut *query.body
        {
            statement = change.clone();
        }
        let depth = usize::from(!matches!(statement, Statement::Query(_)));
        self.take_out_below(&mut statement, depth)?;
        self.check_statement(&statement)?;
        self.with = None;
        Ok(statement)
    }

    /// Each part of a WITH list sees those before it.
    fn take_out_of_list(&mut self, list: &mut With) -> Bindable<()> {
        let mut seen = With {
            cte_tables: Vec::new(),
            ..list.clone()
        };
        for mut part in std::mem::take(&mut list.cte_tables) {
            self.take_out_below(&mut *part.query, 0)?;
            if is_inner(&part.query) {
                if list.recursive {
                    return Err(Refusal::declined(
                        "WITH RECURSIVE beside a change or a row lock",
                    ));
                }
                let Some(given) = self.taken(&part.query)? else {
                    continue;
                };
                *part.query = given;
            }
            seen.cte_tables.push(part);
            self.with = Some(seen.clone());
        }
        *list = seen;
        Ok(())
    }

    /// Refuses a part of a WITH list that changes read and something else reads, too, where it may
    /// give one this and the other that: it is computed for each of them.
    fn check_read_once(&self, list: &With, statement: &Statement) -> Bindable<()> {
        for part in list.cte_tables.iter().filter(|part| !is_inner(&part.query)) {
            let is_part = |name: &ObjectName| {
                name_parts(name).is_ok_and(|name| name == [folded(&part.alias.name)])
            };
            let mut uses = 0;
            reads(statement, &mut |name| {
                uses += usize::from(is_part(name));
                false
            });
            let mut changes = list
                .cte_tables
                .iter()
                .filter(|other| is_inner(&other.query));
            let by_change = changes.any(|change| reads(&change.query, &mut |name| is_part(name)));
            if uses > 1 && by_change && !self.is_steady(&part.query, list) {
                let name = folded(&part.alias.name);
                let message = format!(
                    "WITH part \"{name}\" is read by a change and once more, which is not supported"
                );
                return Err(SqlError::unsupported(message)
                    .with_hint("Make it a statement of its own before, in one transaction.")
                    .into());
            }
        }
        Ok(())
    }

    /// Whether a query gives the same each time in a statement, whatever others commit: it reads
    /// nothing and calls nothing volatile.
    fn is_steady(&self, query: &ast::Query, list: &With) -> bool {
        struct Calls;
        impl Visitor for Calls {
            type Break = ();
            fn pre_visit_expr(&mut self, expr: &ast::Expr) -> ControlFlow<()> {
                let ast::Expr::Function(call) = expr else {
                    return ControlFlow::Continue(());
                };
                let name = name_parts(&call.name).ok().and_then(|mut name| name.pop());
                let named = name.map_or(&[][..], |name| functions::named(&name));
                let is_volatile = |f: &&Function| f.volatility == Volatility::Volatile;
                match named.iter().any(is_volatile) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            }
        }
        let reads_rows = reads(query, &mut |name| {
            is_of_list(name, list)
                || !matches!(
                    find_table(self.context, name, Privileges::NONE),
                    Err(Refusal::Error(_))
                )
        });
        !reads_rows && query.visit(&mut Calls).is_continue()
    }

    /// Takes the queries that lock rows out of a tree whose top has this depth.
    fn take_out_below(&mut self, tree: &mut impl VisitMut, depth: usize) -> Bindable<()> {
        struct Taker<'b, 'a> {
            binder: &'b mut Binder<'a>,
            depth: usize,
        }
        impl VisitorMut for Taker<'_, '_> {
            type Break = Refusal;
            fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<Refusal> {
                self.depth += 1;
                if self.depth == 1 || !is_inner(query) {
                    return ControlFlow::Continue(());
                }
                match self.binder.taken(query) {
                    Ok(Some(given)) => {
                        *query = given;
                        ControlFlow::Continue(())
                    }
                    Ok(None) => ControlFlow::Break(Refusal::declined("a change as a subquery")),
                    Err(refusal) => ControlFlow::Break(refusal),
                }
            }
            fn post_visit_query(&mut self, _: &mut ast::Query) -> ControlFlow<Refusal> {
                self.depth -= 1;
                ControlFlow::Continue(())
            }
        }
        let mut taker = Taker {
            binder: self,
            depth,
        };
        match tree.visit(&mut taker) {
            ControlFlow::Break(refusal) => Err(refusal),
            ControlFlow::Continue(()) => Ok(()),
        }
    }

    /// Binds one and keeps it; the query for its place, if it gives columns.
    fn taken(&mut self, inner: &ast::Query) -> Bindable<Option<ast::Query>> {
        match &*inner.body {
            SetExpr::Insert(insert) => self.check_statement(insert)?,
            _ => self.check_unchanged(inner)?,
        }
        let (plan, columns) = self.bound_inner(inner)?;
        self.relations.clear();
        self.aggregation = None;
        if let Some(table) = plan.changed_table() {
            self.taken_out.changed.push(table.oid);
        }
        let taken = &mut self.taken_out;
        let so_far: usize = taken.before.iter().map(|b| b.columns.len()).sum();
        let first = taken.own_parameters + so_far + 1;
        let columns = columns.unwrap_or_default();
        let given = given(first, &columns);
        let columns = columns.iter().map(before_column).collect();
        taken.before.push(Before { plan, columns });
        given.map(|text| source::one_query(&text)).transpose()
    }

    fn bound_inner(&mut self, inner: &ast::Query) -> Bindable<BoundPlan> {
        let no_lists = |reason| match inner.with {
            None => Ok(()),
            Some(_) => Err(Refusal::declined(reason)),
        };
        match &*inner.body {
            SetExpr::Insert(change) | SetExpr::Update(change) | SetExpr::Delete(change) => {
                no_lists("a WITH within a WITH that changes rows")?;
                let list = self.with.clone();
                Ok(self.change(change, list.as_ref())?.1)
            }
            _ => {
                no_lists("a WITH before a row lock")?;
                if let Some(list) = &self.with
                    && reads(inner, &mut |name| is_of_list(name, list))
                {
                    return Err(Refusal::declined("a row lock on what a WITH gives"));
                }
                match self.query(inner) {
                    Err(Refusal::Declined { reason, .. }) => {
                        // For its size, if at all: its columns are as of a small one.
                        let (_, columns) = self.as_if_small(|binder| binder.query(inner))?;
                        Ok((self.found_and_locked(inner, reason)?, columns))
                    }
                    bound => bound,
                }
            }
        }
    }

    /// As [`Self::check_unchanged`]; but an INSERT without a conflict may add to what was changed.
    fn check_statement(&self, statement: &Statement) -> Bindable<()> {
        match statement {
            Statement::Query(query) => match &*query.body {
                SetExpr::Insert(insert) => {
                    if let Some(list) = &query.with {
                        self.check_unchanged(list)?;
                    }
                    self.check_statement(insert)
                }
                _ => self.check_unchanged(statement),
            },
            Statement::Insert(insert) if insert.on.is_none() => {
                if let Some(source) = &insert.source {
                    self.check_unchanged(source)?;
                }
                match &insert.returning {
                    Some(returning) => self.check_unchanged(returning),
                    None => Ok(()),
                }
            }
            other => self.check_unchanged(other),
        }
    }

    /// Refuses to read or change again what a part of the WITH list has changed.
    fn check_unchanged(&self, tree: &impl Visit) -> Bindable<()> {
        if self.taken_out.changed.is_empty() {
            return Ok(());
        }
        let list = self.with.as_ref();
        let meets = reads(tree, &mut |name| {
            if list.is_some_and(|list| is_of_list(name, list)) {
                return false;
            }
            match find_table(self.context, name, Privileges::NONE) {
                Ok(table) => self.taken_out.changed.contains(&table.oid),
                // A view may read it.
                Err(Refusal::Declined { .. }) => true,
                Err(Refusal::Error(_)) => false,
            }
        });
        match meets {
            false => Ok(()),
            true => Err(SqlError::unsupported(
                "a statement that reads or changes what its WITH list changes is not supported",
            )
            .with_hint("Make them two statements of one transaction.")
            .into()),
        }
    }
}

fn list_of(statement: &mut Statement) -> Option<&mut Option<With>> {
    match statement {
        Statement::Query(query) => Some(&mut query.with),
        Statement::Insert(insert) => insert.source.as_deref_mut().map(|source| &mut source.with),
        _ => None,
    }
}

/// Whether a relation in the tree is so.
fn reads(tree: &impl Visit, so: &mut dyn FnMut(&ObjectName) -> bool) -> bool {
    struct Names<'a>(&'a mut dyn FnMut(&ObjectName) -> bool);
    impl Visitor for Names<'_> {
        type Break = ();
        fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
            match (self.0)(name) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
    }
    tree.visit(&mut Names(so)).is_break()
}

pub(super) fn is_of_list(name: &ObjectName, list: &With) -> bool {
    let Ok(name) = name_parts(name) else {
        return false;
    };
    let mut parts = list.cte_tables.iter();
    parts.any(|part| name == [folded(&part.alias.name)])
}

fn before_column(column: &OutputColumn) -> BeforeColumn {
    match column.data_type {
        ColumnType::Scalar(data_type) if element_of(data_type.oid()).is_none() => {
            BeforeColumn::Typed(data_type)
        }
        ColumnType::Scalar(data_type) => BeforeColumn::Text(data_type),
        ColumnType::Other(_) => BeforeColumn::Text(DataType::Text),
    }
}

/// The query that unnests the arrays, the first of which is this parameter.
fn given(first: usize, columns: &[OutputColumn]) -> Option<String> {
    if columns.is_empty() {
        return None;
    }
    let mut shown = Vec::with_capacity(columns.len());
    let mut arrays = Vec::with_capacity(columns.len());
    let mut names = Vec::with_capacity(columns.len());
    for (at, column) in columns.iter().enumerate() {
        let name = quoted(&column.name);
        shown.push(match before_column(column) {
            BeforeColumn::Typed(_) => format!("c{at} AS {name}"),
            BeforeColumn::Text(data_type) => {
                format!(
                    "CAST(c{at} AS {}) AS {name}",
                    format_type(data_type.oid(), -1)
                )
            }
        });
        arrays.push(format!("${}", first + at));
        names.push(format!("c{at}"));
    }
    Some(format!(
        "SELECT {} FROM unnest({}) AS given ({})",
        shown.join(", "),
        arrays.join(", "),
        names.join(", ")
    ))
}

impl BeforeColumn {
    /// The number of the type of the array of its values.
    fn array_oid(&self) -> u32 {
        match self {
            Self::Typed(data_type) => array_of(data_type.oid()),
            Self::Text(_) => array_of(ids::TEXT),
        }
    }
}

impl TakenOut {
    /// The plan behind those that run before it.
    pub(super) fn before(self, plan: ShortPlan) -> ShortPlan {
        plan.behind(self.before, self.own_parameters)
    }
}
