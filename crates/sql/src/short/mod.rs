//! From typed trees to the short path's plans: queries over one table, INSERT, UPDATE and DELETE,
//! and queries that lock rows or have changes in their WITH, as `thermocline_query::analyze`
//! understood them.
//!
//! | file | what it does |
//! |---|---|
//! | `expression` | an expression over a row of the changed table |
//! | `before` | what runs before the statement, and how it goes in |
//! | `select` | queries over one table that the short path runs |
//! | `pull_up` | views and queries in FROM, as their table |
//! | `join` | queries over several tables, by nested loops |
//! | `group` | their groups and aggregates |
//! | `locking` | rows that are locked |
//! | `update` | UPDATE and DELETE, in place or of rows that a query finds |
//! | `insert` | INSERT with its conflict |
//! | `merge` | MERGE |
//! | `partitions` | partitioned tables, partition by partition |
//! | `subquery_first` | queries without FROM over a subquery |
//! | `shown` | expressions as EXPLAIN shows them |
//!
//! Names and types are settled before; which index finds the rows is `plan::choose`'s.

mod before;
mod expression;
mod group;
mod insert;
mod join;
mod locking;
mod merge;
mod partitions;
mod pull_up;
mod select;
mod shown;
mod subquery_first;
mod update;

use std::collections::BTreeSet;
use std::sync::Arc;

use thermocline_engine::authority::{Object, Privileges};
use thermocline_engine::{CHECK_OPTION, Catalog, Database, Identity, Table, ViewDef};
use thermocline_query::analyze::{Analyzed, AnalyzedStatement, OF_NO_TABLE};
use thermocline_query::called_last::called_last;
use thermocline_query::change::{Change, ChangeKind, Given, Source, Statement, Via};
use thermocline_query::parse::parse;
use thermocline_query::tree::{self, ExprKind, Query, RelationKind, Target};
use thermocline_query::types::domain::base;
use thermocline_query::walk::columns_read;
use thermocline_values::types::DataType;

use crate::analysis::{self, SessionFacts};
use crate::bind::{BindContext, Bound, Command};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::output::{ColumnType, OtherType, OutputColumn};
use crate::plan::{Check, CheckOf, Computed, OutputExpr, Plan, ReadQuery, Reason, ShortPlan};
use crate::privilege::Actor;
use crate::typed::{TypedQuery, calls, held, positioned, query_of};
use before::Befores;
pub(crate) use expression::{Lowering, is_volatile, not_of_a_row};
pub(crate) use subquery_first::behind_a_subquery;

/// The plan of a statement. `tables` are those that it names.
///
/// # Errors
/// 42501 without the rights; 0A000 for what no plan does; what defaults and checks raise.
pub(crate) fn statement(
    analyzed: AnalyzedStatement,
    tables: &[Arc<Table>],
    context: &BindContext<'_>,
) -> Result<Bound> {
    let AnalyzedStatement {
        statement,
        parameters,
        ..
    } = analyzed;
    let mut planner = Planner {
        context: *context,
        tables,
        befores: Befores::new(parameters),
    };
    let (command, plan, columns) = match statement {
        Statement::Query(query) => planner.reading(*query)?,
        Statement::Change(change) => planner.with_list(*change)?,
    };
    Ok(Bound {
        parameters: parameter_types(planner.befores.own_types()),
        columns,
        plan: Plan::Short(planner.befores.before(plan)),
        catalog_version: context.catalog.version,
        command,
    })
}

/// The plan of a query that only reads, or why the short path does not run it.
///
/// # Errors
/// 42501 without the right to read a column.
pub(crate) fn reading(
    typed: &TypedQuery,
    context: &BindContext<'_>,
) -> Result<std::result::Result<Bound, Reason>> {
    let query = &typed.query;
    let planner = Planner::new(context, typed);
    if let Some(plan) = planner.over_one(query)? {
        return Ok(Ok(Bound {
            parameters: parameter_types(&typed.parameters),
            columns: Some(shown_columns(&query.columns())),
            plan: Plan::Short(plan),
            catalog_version: context.catalog.version,
            command: Command::Select,
        }));
    }
    let planned = match planner.select(query, None)? {
        Ok(plan) => Ok(plan),
        // Of one table without a subquery that reason says more.
        Err(reason) => match planner.joined(query)? {
            Err(_) if query.relations.len() < 2 => Err(reason),
            joined => joined,
        },
    };
    Ok(planned.map(|plan| Bound {
        parameters: parameter_types(&typed.parameters),
        columns: Some(shown_columns(&query.columns())),
        plan: Plan::Short(ShortPlan::Select(Arc::new(plan))),
        catalog_version: context.catalog.version,
        command: Command::Select,
    }))
}

/// The plan of a query whose columns have calls: they are computed over the rows of one without. Or why the
/// short path does not run it.
///
/// # Errors
/// As [`reading`].
pub(crate) fn calling(
    typed: &TypedQuery,
    context: &BindContext<'_>,
) -> Result<std::result::Result<Bound, Reason>> {
    let Some(last) = called_last(&typed.query).filter(|last| !calls(&last.below)) else {
        return Ok(Err(Reason::Calls));
    };
    let below = typed.with_query(last.below);
    let (bound, rows) = match reading(&below, context)? {
        Ok(Bound {
            plan: Plan::Short(rows),
            columns: Some(columns),
            ..
        }) => (columns, rows),
        _ => return Ok(Err(Reason::Calls)),
    };
    let targets = last.targets.into_iter().map(|target| target.expr);
    let plan = Computed {
        rows,
        given: bound.into(),
        targets: targets.collect(),
        columns: typed.output_columns(),
        parameters: typed.parameters.clone(),
    };
    Ok(Ok(Bound {
        parameters: parameter_types(&typed.parameters),
        columns: Some(typed.output_columns()),
        plan: Plan::Short(ShortPlan::Computed(Arc::new(plan))),
        catalog_version: context.catalog.version,
        command: Command::Select,
    }))
}

/// In which types tables hold values of parameters of these types; others come as texts.
fn parameter_types(oids: &[u32]) -> Vec<DataType> {
    let held = |oid: &u32| held(*oid, -1).unwrap_or(DataType::Text);
    oids.iter().map(held).collect()
}

/// The plan of a query or a change of rows without a session: its types are settled by the text
/// alone.
///
/// # Errors
/// As PostgreSQL's analysis; 0A000 for what no plan of the short path does.
pub fn bind_text(sql: &str, context: &BindContext<'_>, db: &Arc<Database>) -> Result<Bound> {
    crate::typed::stored::register();
    let parsed = parse(sql).map_err(|error| positioned(error, sql))?;
    let text = query_of(&parsed).ok_or_else(|| SqlError::syntax("an empty statement"))?;
    let facts = SessionFacts {
        search_path: context.search_path.to_vec(),
        creation_path: context.search_path.to_vec(),
        ..SessionFacts::default()
    };
    let bound = analysis::bind_statement(
        text,
        sql,
        &[],
        (&db.catalog(), db, facts),
        analysis::Around::default(),
    )?;
    match bound.into_reading() {
        Ok(typed) => reading(&typed, context)?
            .map_err(|reason| SqlError::unsupported(reason.to_string(), "Run it in a session.")),
        Err(bound) => statement(bound.analyzed, &bound.tables, context),
    }
}

/// A statement, or one that runs before it, planned: what it does, how, and its columns.
type Planned = (Command, ShortPlan, Option<Vec<OutputColumn>>);

/// A statement on its way to a plan: what all its parts share.
struct Planner<'a> {
    context: BindContext<'a>,
    /// The tables that the statement names.
    tables: &'a [Arc<Table>],
    befores: Befores,
}

impl<'a> Planner<'a> {
    /// Of a query.
    fn new(context: &BindContext<'a>, typed: &'a TypedQuery) -> Self {
        Self {
            context: *context,
            tables: &typed.tables,
            befores: Befores::new(typed.parameters.clone()),
        }
    }
}

impl Planner<'_> {
    /// A query that locks rows, or whose WITH changes some.
    fn reading(&mut self, mut query: Query) -> Result<Planned> {
        let columns = shown_columns(&query.columns());
        self.take_list(&mut query.with)?;
        forget_unread(&mut query);
        self.take_locked(&mut query)?;
        self.reads_unchanged(&query)?;
        let plan = self.locking(query)?;
        Ok((Command::Select, plan, Some(columns)))
    }

    /// A change with its WITH.
    fn with_list(&mut self, mut change: Change) -> Result<Planned> {
        self.take_list(change.with_mut())?;
        self.change(change)
    }

    /// A change whose WITH has no changes of its own any more.
    fn change(&mut self, mut change: Change) -> Result<Planned> {
        if let ChangeKind::Insert(insert) = &mut change.kind
            && let Source::Query(query) = &mut insert.source
        {
            query.with.clone_from(&insert.scope.with);
        }
        change.queries_mut(&mut forget_unread);
        let mut taken = Ok(());
        change.queries_mut(&mut |query| {
            if taken.is_ok() {
                taken = self.take_locked(query);
            }
        });
        change.exprs_mut(&mut |expr| {
            if taken.is_ok() {
                taken = self.take_locked_of(expr);
            }
        });
        std::mem::replace(&mut taken, Ok(()))?;
        self.changes_unchanged(&mut change)?;
        change.exprs_mut(&mut |expr| {
            if taken.is_ok() {
                taken = self.context.may_use_sequences(expr);
            }
        });
        taken?;
        spell_out_rows(&mut change);
        let Some(table) = self.context.catalog.table(change.table).cloned() else {
            return Err(SqlError::internal("a change of a table that is not there"));
        };
        if let (Some(via), true) = (&change.via, table.is_materialized()) {
            return Err(shows_no_table(via, &change.kind, self.context.catalog)?);
        }
        let context = self.context;
        let (actor, check);
        let context = match &change.via {
            None => context,
            Some(via) => {
                actor = changes_as(via, &change.kind, &context)?;
                check = check_option(via, &table, &context)?;
                BindContext {
                    actor: actor.as_ref(),
                    through: check.as_ref(),
                    ..context
                }
            }
        };
        let columns = change.columns().map(|columns| shown_columns(&columns));
        let mut changer = Changer {
            context,
            table,
            planner: self,
        };
        let returning = change.returning;
        let (command, plan) = match change.kind {
            ChangeKind::Insert(insert) => (Command::Insert, changer.insert(*insert, returning)?),
            ChangeKind::Update {
                query,
                assignments,
                cursor,
            } => (
                Command::Update,
                changer.update(*query, assignments, cursor, returning)?,
            ),
            ChangeKind::Delete { query, cursor } => {
                (Command::Delete, changer.delete(*query, cursor, returning)?)
            }
            ChangeKind::Merge(merge) => (Command::Merge, changer.merge(*merge)?),
        };
        Ok((command, plan, columns))
    }

    /// A query whose rows a change takes.
    ///
    /// # Errors
    /// 0A000 where it calls a function that the analytical side does not answer.
    fn read_query(&self, query: Query) -> Result<ReadQuery> {
        analysis::answered(&query)?;
        let is_held = |output: &OutputExpr| matches!(output.column_type, ColumnType::Scalar(_));
        let calls = calls(&query);
        let short = self.joined(&query)?.ok();
        let short = short.filter(|plan| plan.output.iter().all(is_held));
        let short = short.filter(|_| !calls);
        let named = tables_of(&query);
        let catalog = self.context.catalog;
        let is_named = |table: &Table| {
            let mut above = catalog.partition_ancestors(table);
            named.contains(&table.oid) || above.any(|of| named.contains(&of.oid))
        };
        let tables = self.tables.iter().filter(|table| is_named(table));
        let tables = tables.cloned().collect();
        let typed = TypedQuery::of(Analyzed {
            query,
            parameters: self.befores.types().to_vec(),
        });
        Ok(ReadQuery {
            typed: Arc::new(typed.over(tables).calling_last()),
            reason: Reason::FindsRows,
            short: short.map(|plan| ShortPlan::Select(Arc::new(plan))),
        })
    }
}

/// Leaves out a WITH that nothing refers to.
fn forget_unread(query: &mut Query) {
    if query.with.iter().all(|common| common.references == 0) {
        query.with.clear();
    }
}

/// The view that a table is changed through.
fn view_of<'c>(via: &Via, catalog: &'c Catalog) -> Result<&'c ViewDef> {
    let view = catalog.views.get(&via.view);
    let view = view.ok_or_else(|| SqlError::internal("a change of a view that is not there"))?;
    Ok(view)
}

/// 55000 for a change of a view that shows a materialized one.
#[cold]
fn shows_no_table(via: &Via, kind: &ChangeKind, catalog: &Catalog) -> Result<SqlError> {
    let what = match kind {
        ChangeKind::Insert(_) => "insert into",
        ChangeKind::Delete { .. } => "delete from",
        ChangeKind::Update { .. } | ChangeKind::Merge(_) => "update",
    };
    let message = format!("cannot {what} view \"{}\"", view_of(via, catalog)?.name);
    Ok(SqlError::new("55000", message)
        .with_detail(OF_NO_TABLE)
        .with_hint("Change its tables, and refresh the materialized view."))
}

/// What the rows must be that come through a view WITH CHECK OPTION.
fn check_option(via: &Via, table: &Table, context: &BindContext<'_>) -> Result<Option<Check>> {
    let view = view_of(via, context.catalog)?;
    let (Some(_), Some(shows)) = (view.option(CHECK_OPTION), &via.shows) else {
        return Ok(None);
    };
    let relations = [(table, 0)];
    Ok(Some(Check {
        name: view.name.clone(),
        condition: Lowering::of_tables(&relations).row(shows)?,
        of: CheckOf::View,
    }))
}

/// By whose rights the table of a view is changed: its owner's, unless the view is the reader's.
///
/// # Errors
/// 42501 where the statement's role may not change the view.
fn changes_as(via: &Via, kind: &ChangeKind, context: &BindContext<'_>) -> Result<Option<Actor>> {
    let (Some(actor), catalog) = (context.actor, context.catalog) else {
        return Ok(None);
    };
    let view = view_of(via, catalog)?;
    let mut needs = match kind {
        ChangeKind::Insert(_) => Privileges::INSERT,
        ChangeKind::Update { .. } => Privileges::UPDATE,
        ChangeKind::Delete { .. } => Privileges::DELETE,
        // It changes no views.
        ChangeKind::Merge(_) => Privileges::NONE,
    };
    if via.reads {
        needs |= Privileges::SELECT;
    }
    actor.need_view(catalog, view, needs)?;
    if view.is_invokers() {
        return Ok(Some(actor.clone()));
    }
    let owner = catalog.authority.owner(&Object::Table(via.view));
    Actor::numbered(owner, catalog).map(Some)
}

/// A change on its way to a plan.
struct Changer<'c, 'a> {
    planner: &'c mut Planner<'a>,
    context: BindContext<'c>,
    table: Arc<Table>,
}

impl Changer<'_, '_> {
    /// The rights that an expression's columns of the changed table need.
    fn may_read<'e>(
        &self,
        query: &Query,
        exprs: impl Iterator<Item = &'e tree::Expr>,
    ) -> Result<()> {
        let Some(actor) = self.context.actor else {
            return Ok(());
        };
        let mut all = query.clone();
        all.targets.extend(exprs.map(|expr| target(expr.clone())));
        for (table, column) in columns_read(&all) {
            if table == self.table.oid {
                actor.need_column(&self.table, column, Privileges::SELECT)?;
            }
        }
        Ok(())
    }

    fn needs(&self, column: usize, needs: Privileges) -> Result<()> {
        match self.context.actor {
            Some(actor) => actor.need_column(&self.table, column, needs),
            None => Ok(()),
        }
    }

    /// What the column gets where nothing is given.
    fn default_of(&self, column: usize) -> Result<Expr> {
        self.context.default_of(&self.table, column)
    }

    /// Looks whether columns may be assigned, and leaves those out that are computed.
    ///
    /// # Errors
    /// 42501 without the right to; 428C9 for a value for a column that is always generated.
    fn leave_computed(&self, assignments: &mut Vec<(usize, Given)>) -> Result<()> {
        for (column, given) in &*assignments {
            self.needs(*column, Privileges::UPDATE)?;
            let def = &self.table.columns[*column];
            let name = &def.name;
            let detail = match (def.generated, def.identity) {
                _ if matches!(given, Given::Default) => continue,
                (true, _) => computed(name),
                (false, Some(Identity::Always)) => generated_always(name),
                (false, _) => continue,
            };
            let message = format!("column \"{name}\" can only be updated to DEFAULT");
            return Err(SqlError::new("428C9", message).with_detail(detail));
        }
        assignments.retain(|(column, _)| !self.table.columns[*column].generated);
        Ok(())
    }

    /// The list of results over rows of the changed table; what no row gives is refused.
    fn returned(
        &self,
        targets: Option<&[Target]>,
        lowering: &Lowering<'_>,
    ) -> Result<Option<Vec<OutputExpr>>> {
        let Some(targets) = targets else {
            return Ok(None);
        };
        let mut output = Vec::with_capacity(targets.len());
        for target in targets {
            output.push(OutputExpr {
                expr: lowering.row(&target.expr)?,
                column_type: column_type(target.expr.oid, target.expr.modifier),
            });
        }
        Ok(Some(output))
    }
}

fn generated_always(column: &str) -> String {
    format!("Column \"{column}\" is an identity column defined as GENERATED ALWAYS.")
}

fn computed(column: &str) -> String {
    format!("Column \"{column}\" is a generated column.")
}

/// A column of a query of ours.
fn target(expr: tree::Expr) -> Target {
    Target {
        expr,
        name: Arc::from("?column?"),
        hidden: false,
        origin: None,
    }
}

/// The type in which a value is written.
fn column_type(oid: u32, modifier: i32) -> ColumnType {
    match held(oid, modifier) {
        Some(data_type) => ColumnType::Scalar(data_type),
        None => ColumnType::Other(OtherType(base(oid))),
    }
}

/// Has rows of the changed table, and of the row that was to be inserted, stand as rows of their
/// columns: they are never the NULL that an outer join gives.
fn spell_out_rows(change: &mut Change) {
    let (relations, known) = match &mut change.kind {
        ChangeKind::Insert(insert) => {
            (insert.scope.relations.clone(), insert.scope.relations.len())
        }
        ChangeKind::Update { query, .. } | ChangeKind::Delete { query, .. } => {
            let relations = query.relations.clone();
            if let Some(filter) = &mut query.filter {
                spell_out(filter, &relations[..1]);
            }
            (relations, 1)
        }
        // A row that matches nothing has NULL in its place.
        ChangeKind::Merge(_) => return,
    };
    change.exprs_mut(&mut |expr| spell_out(expr, &relations[..known]));
}

/// Rows of these relations as rows of their columns.
fn spell_out(expr: &mut tree::Expr, relations: &[tree::Relation]) {
    if let ExprKind::WholeRow { level: 0, relation } = expr.kind
        && let Some(of) = relations.get(relation)
    {
        expr.kind = row_of(of, relation);
        return;
    }
    expr.children_mut(&mut |child| spell_out(child, relations));
}

/// The row of a relation's columns.
fn row_of(of: &tree::Relation, relation: usize) -> ExprKind {
    let columns = of.columns.iter().enumerate();
    let live = columns.filter(|(_, column)| !column.is_dropped());
    let column = |(place, column): (usize, &tree::Column)| {
        let kind = ExprKind::Column {
            level: 0,
            relation,
            column: place,
        };
        tree::Expr::new(kind, column.oid, -1).with_modifier(column.modifier)
    };
    ExprKind::Row(live.map(column).collect())
}

fn shown_columns(columns: &[tree::Column]) -> Vec<OutputColumn> {
    let column = |column: &tree::Column| {
        let data_type = column_type(column.oid, column.modifier);
        let mut shown = OutputColumn::new(&*column.name, data_type);
        if let Some((table, number)) = column.origin {
            (shown.table_oid, shown.column_number) = (table, number);
        }
        shown
    };
    columns.iter().map(column).collect()
}

/// The numbers of the tables that a query names, and those within it.
fn tables_of(query: &Query) -> BTreeSet<u32> {
    fn of_query(query: &Query, found: &mut BTreeSet<u32>) {
        for common in &query.with {
            of_query(&common.query, found);
        }
        for relation in &query.relations {
            match &relation.kind {
                RelationKind::Table(oid) => {
                    found.insert(*oid);
                }
                RelationKind::Subquery(inner, _) => of_query(inner, found),
                _ => {}
            }
        }
        query.exprs(&mut |expr| {
            expr.any(&mut |expr| {
                if let ExprKind::Subquery(subquery) = &expr.kind {
                    of_query(&subquery.query, found);
                }
                false
            });
        });
    }
    let mut found = BTreeSet::new();
    of_query(query, &mut found);
    found
}
