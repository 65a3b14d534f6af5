//! INSERT, UPDATE and DELETE; MERGE is in a file of its own.

use std::sync::Arc;

use pg_raw_parse::Node;
use pg_raw_parse::list::NodeList;
use pg_raw_parse::nodes::{
    DeleteStmt, InferClause, InsertStmt, OnConflictClause, RangeVar, ResTarget, ReturningClause,
    SelectStmt, UpdateStmt,
};
use pg_raw_parse::raw::{OnConflictAction, OverridingKind, SetOperation};

use super::assign::{Assigned, nothing, part_default, steps_of, unchecked};
use super::call_before::{CallBefore, CallsBefore};
use super::change_view::{Through, Verb};
use super::coerce::returns_set;
use super::scope::{Clause, Item, Level};
use super::sql_function::Bodies;
use super::{Analyzer, Catalog, Stored};
use crate::call::Environment;
use crate::change::{
    Arbiter, Change, ChangeKind, Conflict, ConflictUpdate, Given, Inference, Insert, Overriding,
    Source, Statement, Via,
};
use crate::error::{QueryError, Result};
use crate::tree::{Column, Expr, ExprKind, From, Query, Relation, RelationKind, Target};
use crate::types::ids;

/// A statement, analysed.
#[derive(Clone, Debug)]
pub struct AnalyzedStatement {
    /// What it is.
    pub statement: Statement,
    /// The numbers of its parameters' types, those of calls behind its own.
    pub parameters: Vec<u32>,
    /// The calls that are made before it.
    pub calls: Vec<CallBefore>,
}

/// Analyses a query, INSERT, UPDATE or DELETE, any of which may have changes of rows in its WITH.
/// `declared` are the parameters' types as far as the client gave any (0 for none).
///
/// # Errors
/// As PostgreSQL's analysis; 0A000 for other statements, and for what is not done.
pub fn analyze_statement(
    statement: Node<'_>,
    catalog: &dyn Catalog,
    environment: &dyn Environment,
    declared: &[u32],
) -> Result<AnalyzedStatement> {
    if let Some(variables) = catalog.variables() {
        variables.begin();
    }
    let mut analyzer = Analyzer {
        catalog,
        environment,
        parameters: declared.to_vec(),
        levels: Vec::new(),
        takes_changes: true,
        named: None,
        variables: catalog.variables(),
        calls: CallsBefore {
            are_taken: catalog.takes_calls(),
            ..CallsBefore::default()
        },
        bodies: Bodies::default(),
        given: None,
        given_name: None,
        rows_given: Vec::new(),
    };
    let mut statement = match statement {
        Node::SelectStmt(select) => {
            let mut query = analyzer.query(select, None)?;
            analyzer.settle_parameters(&mut query)?;
            Statement::Query(Box::new(query))
        }
        other => {
            analyzer.levels.push(Level::default());
            let mut change = analyzer.change(other)?;
            analyzer.settled()?;
            super::settle_change(&mut change, &analyzer.parameters);
            Statement::Change(Box::new(change))
        }
    };
    let calls = analyzer.settle_calls(&mut statement);
    Ok(AnalyzedStatement {
        statement,
        parameters: analyzer.parameters,
        calls,
    })
}

/// A column that an INSERT gives a value for, and how that is written: a part of it, perhaps.
pub(super) type InsertTarget<'n> = (usize, Option<&'n ResTarget>);

/// The table of a change.
pub(super) struct Changed {
    pub(super) table: u32,
    pub(super) columns: Vec<Column>,
    pub(super) name: String,
    /// The view that was named in its place.
    pub(super) through: Option<Through>,
}

impl Changed {
    pub(super) fn assigned(&self) -> Assigned<'_> {
        Assigned {
            table: &self.name,
            columns: &self.columns,
            through: self.through.as_ref(),
        }
    }

    /// The places of the columns that there are.
    fn live(&self) -> Vec<usize> {
        if let Some(through) = &self.through {
            return through.order.clone();
        }
        let columns = self.columns.iter().enumerate();
        let live = columns.filter(|(_, column)| !column.is_dropped());
        live.map(|(place, _)| place).collect()
    }

    /// The view in the table's place, and the rows that the statement sees.
    fn seen(
        &self,
        assignments: &[(usize, Given)],
        (filter, cursor): (Option<Expr>, &Option<Arc<str>>),
        returning: &Option<Vec<Target>>,
    ) -> Result<(Option<Via>, Option<Expr>)> {
        let Some(through) = &self.through else {
            return Ok((None, filter));
        };
        if cursor.is_some() {
            return Err(QueryError::unsupported(
                "WHERE CURRENT OF with a view is not supported",
                "Change the row in the table of the view.",
            ));
        }
        let mut is_column = |expr: &Expr| matches!(expr.kind, ExprKind::Column { .. });
        let reads = filter.is_some()
            || returning.is_some()
            || assignments.iter().any(|(_, given)| match given {
                Given::Value(expr) => expr.any(&mut is_column),
                Given::Default => false,
            });
        Ok((Some(through.via(reads)), through.rows(filter)))
    }
}

impl Analyzer<'_> {
    /// A change in the level at hand.
    pub(super) fn change(&mut self, statement: Node<'_>) -> Result<Change> {
        match statement {
            Node::InsertStmt(insert) => self.insert(insert),
            Node::UpdateStmt(update) => self.update(update),
            Node::DeleteStmt(delete) => self.delete(delete),
            Node::MergeStmt(merge) => self.merge(merge),
            _ => Err(QueryError::internal("a change of rows that is none")),
        }
    }

    fn update(&mut self, update: &UpdateStmt) -> Result<Change> {
        if let Some(with) = update.with_clause() {
            self.with_clause(with)?;
        }
        let (changed, item) = self.changed(update.relation(), Verb::Update)?;
        let from = self.members_beside(update.from_clause(), item)?;
        let assignments = self.assignments(update.target_list().iter(), &changed.assigned())?;
        let (filter, cursor) = self.rows_of(update.where_clause())?;
        let returning = self.returning(update.returning_clause())?;
        let (via, filter) = changed.seen(&assignments, (filter, &cursor), &returning)?;
        let query = Box::new(self.found(from, filter));
        Ok(Change {
            table: changed.table,
            via,
            kind: ChangeKind::Update {
                query,
                assignments,
                cursor,
            },
            returning,
        })
    }

    fn delete(&mut self, delete: &DeleteStmt) -> Result<Change> {
        if let Some(with) = delete.with_clause() {
            self.with_clause(with)?;
        }
        let (changed, item) = self.changed(delete.relation(), Verb::Delete)?;
        let from = self.members_beside(delete.using_clause(), item)?;
        let (filter, cursor) = self.rows_of(delete.where_clause())?;
        let returning = self.returning(delete.returning_clause())?;
        let (via, filter) = changed.seen(&[], (filter, &cursor), &returning)?;
        let query = Box::new(self.found(from, filter));
        Ok(Change {
            table: changed.table,
            via,
            kind: ChangeKind::Delete { query, cursor },
            returning,
        })
    }

    /// The query of what was found, from the level at hand.
    pub(super) fn found(&mut self, from: Vec<From>, filter: Option<Expr>) -> Query {
        let level = self.level();
        Query {
            with: std::mem::take(&mut level.with),
            relations: std::mem::take(&mut level.relations),
            windows: std::mem::take(&mut level.windows),
            from,
            filter,
            ..Query::default()
        }
    }

    /// The table of a change as a relation of the level at hand.
    pub(super) fn changed(
        &mut self,
        range: Option<&RangeVar>,
        verb: Verb,
    ) -> Result<(Changed, Item)> {
        let Some(range) = range else {
            return Err(QueryError::internal("a change of no table"));
        };
        let (name, schema) = (range.relname().unwrap_or_default(), range.schemaname());
        let stored = self.catalog.changed(schema, name);
        let stored = stored.map_err(|error| error.at(range.location))?;
        let Some(stored) = stored else {
            let shown = schema.map(|schema| format!("{schema}."));
            let shown = format!("{}{name}", shown.unwrap_or_default());
            let message = format!("relation \"{shown}\" does not exist");
            return Err(QueryError::new("42P01", message).at(range.location));
        };
        stored.with_all(range)?;
        let alias = range.alias().and_then(|alias| alias.aliasname());
        if let Some(text) = &stored.view {
            let changed = self.changed_view(&stored, text, (name, alias), verb);
            return changed.map_err(|error| error.at(range.location));
        }
        let item = self.add_table(&stored, alias.unwrap_or(name), alias.is_some());
        let changed = Changed {
            table: stored.oid,
            columns: stored.columns,
            name: name.to_owned(),
            through: None,
        };
        Ok((changed, item))
    }

    fn add_table(&mut self, stored: &Stored, alias: &str, hidden: bool) -> Item {
        let relation = Relation {
            kind: RelationKind::Table(stored.oid),
            alias: Arc::from(alias),
            columns: stored.columns.clone(),
            reader: None,
        };
        let schema = (!hidden).then(|| Arc::clone(&stored.schema));
        let (place, item) = self.add_relation(relation, schema);
        self.level().keys.insert(place, stored.primary_key.clone());
        if stored.is_partitioned {
            self.level().partitioned.push(place);
        }
        item
    }

    /// The changed table and what stands beside it in FROM or USING, which does not see it.
    fn members_beside(
        &mut self,
        nodes: &pg_raw_parse::list::NodeList,
        item: Item,
    ) -> Result<Vec<From>> {
        let members = self.members_of_from(nodes)?;
        super::from::check_unique(&self.level().items, &item)?;
        self.level().items.insert(0, item);
        let mut from = vec![From::Relation(0)];
        from.extend(members);
        Ok(from)
    }

    /// WHERE: a condition, or the cursor on whose row it is.
    fn rows_of(&mut self, node: Node<'_>) -> Result<(Option<Expr>, Option<Arc<str>>)> {
        if let Node::CurrentOfExpr(current) = node {
            return Ok((None, current.cursor_name().map(Arc::from)));
        }
        Ok((self.condition(node, Clause::Where)?, None))
    }

    fn returning(&mut self, clause: Option<&ReturningClause>) -> Result<Option<Vec<Target>>> {
        let Some(clause) = clause else {
            return Ok(None);
        };
        if !clause.options().is_empty() {
            return Err(QueryError::unsupported(
                "names for old and new rows in RETURNING are not supported",
                "Name the columns of the table.",
            ));
        }
        let before = std::mem::replace(&mut self.level().clause, Clause::Returning);
        let written = clause.exprs().iter().filter_map(|node| match node {
            Node::ResTarget(target) => Some(target),
            _ => None,
        });
        let mut targets = self.targets_of(written)?;
        self.level().clause = before;
        for target in &mut targets {
            let nothing = Expr::constant(crate::datum::Datum::Null, 0);
            let expr = std::mem::replace(&mut target.expr, nothing);
            target.expr = self.decide_unknown(expr)?;
        }
        Ok(Some(targets))
    }

    fn insert(&mut self, insert: &InsertStmt) -> Result<Change> {
        if let Some(with) = insert.with_clause() {
            self.with_clause(with)?;
        }
        // The table is not seen by the source, which has a scope of its own.
        self.levels.push(Level::default());
        let changed = self.changed(insert.relation(), Verb::Insert);
        let own = self.levels.pop().unwrap_or_default();
        let (changed, mut item) = changed?;
        let (targets, explicit) = self.insert_targets(insert.cols(), &changed)?;
        let (columns, source) = self.insert_source(insert, &changed, targets, explicit)?;

        let outer = self.level();
        outer.relations = own.relations;
        outer.keys = own.keys;
        item.lateral_only = false;
        outer.items = vec![item.clone()];
        let conflict = match insert.on_conflict_clause() {
            None => None,
            Some(clause) => match &changed.through {
                Some(through) => return Err(through.no_conflict()),
                None => Some(self.conflict(clause, &changed)?),
            },
        };
        self.level().items = vec![item];
        let returning = self.returning(insert.returning_clause())?;
        let scope = self.found(Vec::new(), None);
        let insert = Insert {
            columns,
            source,
            overriding: overriding(insert.override_),
            conflict,
            scope,
        };
        let through = changed.through.as_ref();
        Ok(Change {
            table: changed.table,
            via: through.map(|through| through.via(returning.is_some())),
            kind: ChangeKind::Insert(Box::new(insert)),
            returning,
        })
    }

    /// The columns and parts of columns that values are for, in the values' order; and whether they
    /// are written.
    pub(super) fn insert_targets<'n>(
        &mut self,
        written: &'n NodeList,
        changed: &Changed,
    ) -> Result<(Vec<InsertTarget<'n>>, bool)> {
        let mut targets: Vec<InsertTarget<'_>> = Vec::new();
        for node in written.iter() {
            let Node::ResTarget(target) = node else {
                continue;
            };
            let place = changed.assigned().place(target)?;
            let is_whole = |target: &Option<&ResTarget>| {
                target.is_none_or(|target| target.indirection().is_empty())
            };
            let mut before = targets.iter().filter(|(known, _)| *known == place);
            if before.any(|(_, known)| is_whole(known) || target.indirection().is_empty()) {
                let name = target.name().unwrap_or_default();
                let message = format!("column \"{name}\" specified more than once");
                return Err(QueryError::new("42701", message).at(target.location));
            }
            targets.push((place, Some(target)));
        }
        if targets.is_empty() {
            if let Some(through) = &changed.through {
                through.check_all()?;
            }
            let all = changed.live().into_iter();
            return Ok((all.map(|place| (place, None)).collect(), false));
        }
        Ok((targets, true))
    }

    fn insert_source(
        &mut self,
        insert: &InsertStmt,
        changed: &Changed,
        mut targets: Vec<InsertTarget<'_>>,
        explicit: bool,
    ) -> Result<(Vec<usize>, Source)> {
        let select = match insert.select_stmt() {
            Node::SelectStmt(select) => select,
            Node::None => return Ok((Vec::new(), Source::Rows(vec![Vec::new()]))),
            _ => {
                return Err(QueryError::unsupported(
                    "INSERT from anything but VALUES or a query is not supported",
                    "Use VALUES or SELECT.",
                ));
            }
        };
        if !is_plain_values(select) {
            return self.insert_query(select, changed, targets, explicit);
        }
        let single = select.values_lists().len() == 1;
        self.level().clause = match single {
            true => Clause::ValuesOfOneRow,
            false => Clause::Values,
        };
        let mut rows = Vec::new();
        let mut columns = Vec::new();
        for (number, row) in select.values_lists().iter().enumerate() {
            let Some(row) = row.as_node_list() else {
                continue;
            };
            let mut given = Vec::with_capacity(row.len());
            for node in row.iter() {
                match node {
                    Node::ColumnRef(column)
                        if matches!(column.fields().iter().next_back(), Some(Node::A_Star(_))) =>
                    {
                        given.extend(self.row_part(node)?.into_iter().map(Given::Value));
                    }
                    node => given.push(self.given(node)?),
                }
            }
            if number == 0 {
                fit_width(&mut targets, given.len(), explicit)?;
            } else if given.len() != targets.len() {
                let message = "VALUES lists must all be the same length";
                return Err(QueryError::new("42601", message));
            }
            let (into, given) = self.gathered(&targets, given, changed)?;
            columns = into;
            rows.push(given);
        }
        self.level().clause = Clause::default();
        let gives_set = |given: &Given| matches!(given, Given::Value(expr) if returns_set(expr));
        match rows.pop() {
            Some(row) if single && row.iter().any(gives_set) => {
                let source = self.source_of_targets(Vec::new(), &columns, row, changed);
                Ok((columns, Source::Query(Box::new(source))))
            }
            last => {
                rows.extend(last);
                Ok((columns, Source::Rows(rows)))
            }
        }
    }

    /// The query that gives these values for these columns, over the rows of `from`.
    fn source_of_targets(
        &mut self,
        from: Vec<Relation>,
        columns: &[usize],
        given: Vec<Given>,
        changed: &Changed,
    ) -> Query {
        let targets = columns.iter().zip(given).map(|(column, given)| Target {
            expr: match given {
                Given::Value(expr) => expr,
                Given::Default => nothing(&changed.columns[*column]),
            },
            name: Arc::clone(&changed.columns[*column].name),
            hidden: false,
            origin: None,
        });
        let targets: Vec<Target> = targets.collect();
        Query {
            with: self.level().with.clone(),
            from: (0..from.len()).map(From::Relation).collect(),
            relations: from,
            has_set_targets: targets.iter().any(|target| returns_set(&target.expr)),
            targets,
            ..Query::default()
        }
    }

    /// A query as the source.
    fn insert_query(
        &mut self,
        select: &SelectStmt,
        changed: &Changed,
        mut targets: Vec<InsertTarget<'_>>,
        explicit: bool,
    ) -> Result<(Vec<usize>, Source)> {
        let query = self.query_undecided(select)?;
        let shown = query.columns();
        fit_width(&mut targets, shown.len(), explicit)?;
        let inner: Vec<&Expr> = query
            .targets
            .iter()
            .filter(|target| !target.hidden)
            .map(|target| &target.expr)
            .collect();
        let is_set = query.set_operation.is_some();
        let mut given = Vec::with_capacity(shown.len());
        for (at, column) in shown.iter().enumerate() {
            // A literal has no type yet, and gets the column's.
            let undecided = column.oid == ids::UNKNOWN && !is_set;
            given.push(Given::Value(match (&inner[at].kind, undecided) {
                (ExprKind::Constant(_) | ExprKind::Parameter(_), true) => inner[at].clone(),
                _ => {
                    let kind = ExprKind::Column {
                        level: 0,
                        relation: 0,
                        column: at,
                    };
                    let location = inner[at].location;
                    Expr::new(kind, column.oid, location).with_modifier(column.modifier)
                }
            }));
        }
        let relation = Relation {
            kind: RelationKind::Subquery(Box::new(query), false),
            alias: Arc::from("source"),
            columns: shown,
            reader: None,
        };
        let (columns, given) = self.gathered(&targets, given, changed)?;
        let source = self.source_of_targets(vec![relation], &columns, given, changed);
        Ok((columns, Source::Query(Box::new(source))))
    }

    /// The values as those of whole columns: several may be for parts of one.
    pub(super) fn gathered(
        &mut self,
        targets: &[InsertTarget<'_>],
        values: Vec<Given>,
        changed: &Changed,
    ) -> Result<(Vec<usize>, Vec<Given>)> {
        let mut columns: Vec<usize> = Vec::with_capacity(targets.len());
        let mut given: Vec<Given> = Vec::with_capacity(targets.len());
        for ((place, target), value) in targets.iter().zip(values) {
            let column = &changed.columns[*place];
            let steps = target.map(steps_of).unwrap_or_default();
            let value = match (value, target) {
                (Given::Default, Some(target)) if !steps.is_empty() => {
                    return Err(part_default(&steps, target.location));
                }
                (Given::Default, _) => Given::Default,
                (Given::Value(value), _) => {
                    let known = columns.iter().position(|known| known == place);
                    let container = match known {
                        Some(at) => {
                            columns.remove(at);
                            match given.remove(at) {
                                Given::Value(before) => unchecked(before),
                                Given::Default => nothing(column),
                            }
                        }
                        None => nothing(column),
                    };
                    Given::Value(self.assigned(column, container, &steps, value)?)
                }
            };
            columns.push(*place);
            given.push(value);
        }
        Ok((columns, given))
    }

    /// The index that ON CONFLICT means.
    fn inference(&mut self, infer: &InferClause, changed: &Changed) -> Result<Inference> {
        let mut columns = Vec::new();
        let mut exprs = Vec::new();
        for node in infer.index_elems().iter() {
            let Node::IndexElem(element) = node else {
                continue;
            };
            let Some(name) = element.name() else {
                let expr = self.expr(element.expr())?;
                let expr = self.decide_unknown(expr)?;
                match expr.kind {
                    ExprKind::Column {
                        level: 0, column, ..
                    } => columns.push(column),
                    _ => exprs.push(expr),
                }
                continue;
            };
            let mut live = changed.live().into_iter();
            let found = live.find(|place| *changed.columns[*place].name == *name);
            columns.push(found.ok_or_else(|| {
                let message = format!("column \"{name}\" does not exist");
                QueryError::new("42703", message).at(infer.location)
            })?);
        }
        let filter = self.condition(infer.where_clause(), Clause::Where)?;
        Ok(Inference {
            columns,
            exprs,
            filter,
        })
    }

    fn conflict(&mut self, clause: &OnConflictClause, changed: &Changed) -> Result<Conflict> {
        let arbiter = match clause.infer() {
            None => Arbiter::All,
            Some(infer) => match infer.conname() {
                Some(name) => Arbiter::Constraint(Arc::from(name)),
                None => Arbiter::Of(Box::new(self.inference(infer, changed)?)),
            },
        };
        if clause.action != OnConflictAction::ONCONFLICT_UPDATE {
            return Ok(Conflict {
                arbiter,
                update: None,
            });
        }
        if matches!(arbiter, Arbiter::All) {
            let message =
                "ON CONFLICT DO UPDATE requires inference specification or constraint name";
            return Err(QueryError::new("42601", message)
                .with_hint("For example, ON CONFLICT (column_name).")
                .at(clause.location));
        }
        let excluded = Relation {
            kind: RelationKind::Table(changed.table),
            alias: Arc::from("excluded"),
            columns: changed.columns.clone(),
            reader: None,
        };
        let (_, item) = self.add_relation(excluded, None);
        super::from::check_unique(&self.level().items, &item)?;
        self.level().items.push(item);
        let assignments = self.assignments(clause.target_list().iter(), &changed.assigned())?;
        let filter = self.condition(clause.where_clause(), Clause::Where)?;
        Ok(Conflict {
            arbiter,
            update: Some(ConflictUpdate {
                assignments,
                filter,
            }),
        })
    }
}

/// Whether a source is rows that are written out, and nothing else.
fn is_plain_values(select: &SelectStmt) -> bool {
    !select.values_lists().is_empty()
        && select.op == SetOperation::SETOP_NONE
        && select.with_clause().is_none()
        && select.sort_clause().is_empty()
        && matches!(select.limit_count(), Node::None)
        && matches!(select.limit_offset(), Node::None)
        && select.locking_clause().is_empty()
}

/// OVERRIDING
pub(super) const fn overriding(kind: OverridingKind::Type) -> Overriding {
    match kind {
        OverridingKind::OVERRIDING_USER_VALUE => Overriding::User,
        OverridingKind::OVERRIDING_SYSTEM_VALUE => Overriding::System,
        _ => Overriding::None,
    }
}

/// As many targets as there are values.
pub(super) fn fit_width(
    targets: &mut Vec<InsertTarget<'_>>,
    width: usize,
    explicit: bool,
) -> Result<()> {
    if width > targets.len() {
        let message = "INSERT has more expressions than target columns";
        return Err(QueryError::new("42601", message));
    }
    if width < targets.len() && explicit {
        let message = "INSERT has more target columns than expressions";
        return Err(QueryError::new("42601", message));
    }
    targets.truncate(width);
    Ok(())
}
