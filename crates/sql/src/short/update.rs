//! UPDATE and DELETE. Where the row itself gives all that is asked for, it is changed in place.
//! Otherwise a query finds the rows' primary keys and what the row does not give, and each row is
//! changed by its key. Rows of a table without one are found by their numbers.

use crate::typed::row_number::gives_rows;
use crate::typed::{has_call, held};
use std::sync::Arc;

use thermocline_engine::authority::Privileges;
use thermocline_query::change::Given;
use thermocline_query::tree::{self, ExprKind, Query, Relation, Target};
use thermocline_query::walk::expr_reads_rows_out;
use thermocline_values::types::DataType;

use super::expression::Lowering;
use super::partitions::needs_key;
use super::{Changer, row_of, target};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::plan::{
    ByQuery, CurrentOf, DeletePlan, InsertTarget, LockMode, LockedRows, OutputExpr, Routes,
    RowLock, ShortPlan, Source, UpdatePlan, choose, locking, row_numbered, source_by_key,
    whole_key,
};

/// What names a row of the table.
pub(super) enum Key {
    /// Its primary key, of these columns.
    Columns(Vec<usize>),
    /// Its number: the table has no primary key.
    Row,
}

/// What a query finds beside the rows' keys.
pub(super) struct Found {
    /// Its columns, the key's before all.
    pub(super) selected: Vec<tree::Expr>,
    /// What they are stored as, and the table's column.
    pub(super) stored: Vec<(DataType, String)>,
    /// The columns that are changed: what is found of them is what they were.
    changed: Vec<usize>,
}

impl Changer<'_, '_> {
    pub(super) fn update(
        &mut self,
        query: Query,
        mut assignments: Vec<(usize, Given)>,
        cursor: Option<Arc<str>>,
        returning: Option<Vec<Target>>,
    ) -> Result<ShortPlan> {
        self.leave_computed(&mut assignments)?;
        let values = assignments.iter().filter_map(|(_, given)| match given {
            Given::Value(expr) => Some(expr),
            Given::Default => None,
        });
        let shown = returning.iter().flatten().map(|target| &target.expr);
        self.may_read(&query, values.clone().chain(shown))?;
        let table = Arc::clone(&self.table);
        let relations = [(&*table, 0)];
        let lowering = Lowering::of_tables(&relations);
        let alone = query.relations.len() == 1 && query.with.is_empty();
        if let Some(cursor) = cursor {
            self.stands_on_one()?;
            if !alone {
                return Err(with_others());
            }
            for (_, given) in &mut assignments {
                if let Given::Value(expr) = given {
                    self.planner.lift(expr, &query)?;
                }
            }
            let returning = self.lifted_targets(returning, &query)?;
            let assignments = self.assigned(assignments, &lowering)?;
            let returning = self.returned(returning.as_deref(), &lowering)?;
            let source = row_numbered(&table, self.planner.befores.types().len());
            let plan = self.update_plan(source, assignments, returning)?;
            return Ok(self.of_cursor(cursor, plan));
        }
        let of_row = query.filter.iter().chain(values);
        if !alone
            || !of_row.clone().all(|expr| lowering.gives(expr))
            || self.is_wide(&query, &lowering)?
            || of_row.clone().any(has_call) && !self.finds_one_row(&query, &lowering)?
        {
            return self.update_by_query(query, assignments, returning);
        }
        let moves = self.changes_key(&assignments);
        let scope = Query::default();
        let returning = self.lifted_targets(returning, &scope)?;
        let condition = query.filter.as_ref();
        let condition = condition.map(|filter| lowering.row(filter)).transpose()?;
        let assignments = self.assigned(assignments, &lowering)?;
        let returning = self.returned(returning.as_deref(), &lowering)?;
        let (source, _) = choose(&table, condition, &[], || false);
        let into = self.moved_into(moves, returning.as_ref())?;
        self.planner
            .over_each(&self.context, source, |context, source| {
                let (assignments, returning) = (assignments.clone(), returning.clone());
                Ok(ShortPlan::Update(Arc::new(UpdatePlan {
                    moves: into.clone(),
                    ..UpdatePlan::of(context, source, assignments, returning)?
                })))
            })
    }

    /// Where rows go that belong to other partitions then.
    fn moved_into(
        &self,
        moves: bool,
        returning: Option<&Vec<OutputExpr>>,
    ) -> Result<Option<Arc<InsertTarget>>> {
        if !moves {
            return Ok(None);
        }
        let given = self
            .table
            .live_columns()
            .filter(|(_, column)| !column.generated);
        let mut target = self.insert_target(given.map(|(place, _)| place).collect())?;
        target.returning = returning.cloned();
        target.routes = Routes::of(&self.context, &target)?;
        Ok(Some(Arc::new(target)))
    }

    /// Whether the condition is too long for plans over each partition.
    fn is_wide(&self, query: &Query, lowering: &Lowering<'_>) -> Result<bool> {
        if self.table.partitioned.is_none() {
            return Ok(false);
        }
        let condition = query.filter.as_ref().map(|filter| lowering.row(filter));
        let condition = condition.transpose()?;
        Ok(self
            .planner
            .is_found_by_query(&self.table, condition.as_ref()))
    }

    /// Whether the condition names one row at most.
    fn finds_one_row(&self, query: &Query, lowering: &Lowering<'_>) -> Result<bool> {
        let condition = query.filter.as_ref().map(|filter| lowering.row(filter));
        let (source, _) = choose(&self.table, condition.transpose()?, &[], || false);
        Ok(source.is_one_row())
    }

    /// Whether rows of a partitioned table may belong to other partitions then.
    pub(super) fn changes_key(&self, assignments: &[(usize, Given)]) -> bool {
        if self.table.partitioned.is_none() {
            return false;
        }
        let catalog = self.context.catalog;
        let leaves = catalog.leaves_of(&self.table);
        let mut above = leaves.iter().flat_map(|leaf| {
            let above = catalog.partition_ancestors(leaf);
            above
                .take_while(|of| of.oid != self.table.oid)
                .chain([&self.table])
        });
        above.any(|table| {
            let key = table.partitioned.as_ref().map_or(&[][..], |by| &by.columns);
            assignments.iter().any(|(column, _)| key.contains(column))
        })
    }

    /// 0A000 for WHERE CURRENT OF with a partitioned table.
    fn stands_on_one(&self) -> Result<()> {
        match self.table.partitioned {
            None => Ok(()),
            Some(_) => Err(SqlError::unsupported(
                "WHERE CURRENT OF a row of a partitioned table is not supported",
                "Name the row by its primary key.",
            )),
        }
    }

    fn update_plan(
        &mut self,
        source: Source,
        assignments: Vec<(usize, Expr)>,
        returning: Option<Vec<OutputExpr>>,
    ) -> Result<ShortPlan> {
        let plan = UpdatePlan::of(&self.context, source, assignments, returning)?;
        Ok(ShortPlan::Update(Arc::new(plan)))
    }

    /// The change of the row that a cursor stands on.
    fn of_cursor(&self, cursor: Arc<str>, change: ShortPlan) -> ShortPlan {
        ShortPlan::CurrentOf(Arc::new(CurrentOf {
            cursor,
            table: Arc::clone(&self.table),
            change,
            own_parameters: self.planner.befores.types().len(),
        }))
    }

    pub(super) fn delete(
        &mut self,
        query: Query,
        cursor: Option<Arc<str>>,
        returning: Option<Vec<Target>>,
    ) -> Result<ShortPlan> {
        let table = Arc::clone(&self.table);
        if let Some(actor) = self.context.actor {
            actor.need_table(self.context.catalog, &table, Privileges::DELETE)?;
        }
        let shown = returning.iter().flatten().map(|target| &target.expr);
        self.may_read(&query, shown)?;
        let relations = [(&*table, 0)];
        let lowering = Lowering::of_tables(&relations);
        let alone = query.relations.len() == 1 && query.with.is_empty();
        if let Some(cursor) = cursor {
            self.stands_on_one()?;
            if !alone {
                return Err(with_others());
            }
            let returning = self.lifted_targets(returning, &query)?;
            let plan = DeletePlan {
                by_key: false,
                returning: self.returned(returning.as_deref(), &lowering)?,
                source: row_numbered(&table, self.planner.befores.types().len()),
            };
            return Ok(self.of_cursor(cursor, ShortPlan::Delete(Arc::new(plan))));
        }
        if !alone
            || !query.filter.iter().all(|expr| lowering.gives(expr))
            || self.is_wide(&query, &lowering)?
            || query.filter.iter().any(has_call) && !self.finds_one_row(&query, &lowering)?
        {
            return self.delete_by_query(query, returning);
        }
        let returning = self.lifted_targets(returning, &Query::default())?;
        let condition = query.filter.as_ref();
        let condition = condition.map(|filter| lowering.row(filter)).transpose()?;
        let returning = self.returned(returning.as_deref(), &lowering)?;
        let (source, _) = choose(&table, condition, &[], || false);
        self.planner.over_each(&self.context, source, |_, source| {
            let table = &source.table;
            Ok(ShortPlan::Delete(Arc::new(DeletePlan {
                by_key: returning.is_none()
                    && !table.is_referenced()
                    && whole_key(&source).is_some(),
                source,
                returning: returning.clone(),
            })))
        })
    }

    /// The new values over the row; those that it does not give are refused.
    pub(super) fn assigned(
        &mut self,
        assignments: Vec<(usize, Given)>,
        lowering: &Lowering<'_>,
    ) -> Result<Vec<(usize, Expr)>> {
        let mut assigned = Vec::with_capacity(assignments.len());
        for (column, given) in assignments {
            let value = match given {
                Given::Default => self.default_of(column)?,
                Given::Value(expr) => lowering.row(&expr)?,
            };
            assigned.push((column, value));
        }
        Ok(assigned)
    }

    pub(super) fn lifted_targets(
        &mut self,
        targets: Option<Vec<Target>>,
        scope: &Query,
    ) -> Result<Option<Vec<Target>>> {
        let mut targets = targets;
        for target in targets.iter_mut().flatten() {
            self.planner.lift(&mut target.expr, scope)?;
        }
        Ok(targets)
    }

    fn update_by_query(
        &mut self,
        query: Query,
        assignments: Vec<(usize, Given)>,
        returning: Option<Vec<Target>>,
    ) -> Result<ShortPlan> {
        let table = Arc::clone(&self.table);
        let relations = [(&*table, 0)];
        let lowering = Lowering::of_tables(&relations);
        let moves = self.changes_key(&assignments);
        let (key, mut found) = self.by_key()?;
        found.changed = assignments.iter().map(|(column, _)| *column).collect();
        let mut assigned = Vec::with_capacity(assignments.len());
        for (column, given) in assignments {
            let value = match given {
                Given::Default => self.default_of(column)?,
                Given::Value(expr) if lowering.gives(&expr) => lowering.row(&expr)?,
                Given::Value(expr) => {
                    let def = &table.columns[column];
                    self.selected(&mut found, expr, (def.data_type, def.name.clone()))
                }
            };
            assigned.push((column, value));
        }
        let returning = self.returned_of_found(returning, &query, &mut found, &lowering)?;
        let change = self.updated_by(&key, assigned, returning, moves)?;
        self.by_query(query, &key, found, change)
    }

    /// The change of the row that a key names. `moves`: it may belong to another partition then.
    pub(super) fn updated_by(
        &mut self,
        key: &Key,
        assigned: Vec<(usize, Expr)>,
        returning: Option<Vec<OutputExpr>>,
        moves: bool,
    ) -> Result<ShortPlan> {
        let source = self.source_by(key);
        let into = self.moved_into(moves, returning.as_ref())?;
        self.planner
            .over_each(&self.context, source, |context, source| {
                let (assigned, returning) = (assigned.clone(), returning.clone());
                Ok(ShortPlan::Update(Arc::new(UpdatePlan {
                    overwrites: None,
                    moves: into.clone(),
                    ..UpdatePlan::of(context, source, assigned, returning)?
                })))
            })
    }

    /// The deletion of the row that a key names.
    pub(super) fn deleted_by(
        &self,
        key: &Key,
        returning: Option<&Vec<OutputExpr>>,
    ) -> Result<ShortPlan> {
        let source = self.source_by(key);
        self.planner.over_each(&self.context, source, |_, source| {
            Ok(ShortPlan::Delete(Arc::new(DeletePlan {
                by_key: false,
                source,
                returning: returning.cloned(),
            })))
        })
    }

    fn delete_by_query(
        &mut self,
        query: Query,
        returning: Option<Vec<Target>>,
    ) -> Result<ShortPlan> {
        let table = Arc::clone(&self.table);
        let relations = [(&*table, 0)];
        let lowering = Lowering::of_tables(&relations);
        let (key, mut found) = self.by_key()?;
        let returning = self.returned_of_found(returning, &query, &mut found, &lowering)?;
        let change = self.deleted_by(&key, returning.as_ref())?;
        self.by_query(query, &key, found, change)
    }

    /// What names the table's rows, and how a query finds that.
    ///
    /// # Errors
    /// 0A000 for a partitioned table without a primary key.
    pub(super) fn by_key(&self) -> Result<(Key, Found)> {
        let table = &self.table;
        let column = |column: usize, data_type: DataType| {
            let kind = ExprKind::Column {
                level: 0,
                relation: 0,
                column,
            };
            tree::Expr::new(kind, data_type.oid(), -1).with_modifier(data_type.typmod())
        };
        let of_column = |place: &usize| {
            let def = &table.columns[*place];
            let stored = (def.data_type, def.name.clone());
            (column(*place, def.data_type), stored)
        };
        let primary = table.indexes.iter().find(|index| index.primary);
        let (key, found): (Key, Vec<_>) = match primary {
            Some(primary) => {
                let columns = primary.columns.clone();
                let found = columns.iter().map(of_column).collect();
                (Key::Columns(columns), found)
            }
            None if table.partitioned.is_some() => return Err(needs_key(table)),
            None => {
                let number = column(table.columns.len(), DataType::BigInt);
                (Key::Row, vec![(number, (DataType::BigInt, String::new()))])
            }
        };
        let (selected, stored) = found.into_iter().unzip();
        let found = Found {
            selected,
            stored,
            changed: Vec::new(),
        };
        Ok((key, found))
    }

    /// The row whose key is the parameters behind the statement's own.
    pub(super) fn source_by(&self, key: &Key) -> Source {
        let own_parameters = self.planner.befores.types().len();
        match key {
            Key::Columns(columns) => source_by_key(&self.table, columns, own_parameters),
            Key::Row => row_numbered(&self.table, own_parameters),
        }
    }

    /// A value that the query gives, as a parameter of the change.
    pub(super) fn selected(
        &self,
        found: &mut Found,
        expr: tree::Expr,
        stored: (DataType, String),
    ) -> Expr {
        found.selected.push(expr);
        found.stored.push(stored);
        Expr::Parameter(self.planner.befores.types().len() + found.selected.len() - 1)
    }

    /// RETURNING: what the changed row gives, and what the query found beside it.
    fn returned_of_found(
        &mut self,
        returning: Option<Vec<Target>>,
        query: &Query,
        found: &mut Found,
        lowering: &Lowering<'_>,
    ) -> Result<Option<Vec<OutputExpr>>> {
        let mut returning = returning;
        for target in returning.iter_mut().flatten() {
            self.take_found(&mut target.expr, query, found)?;
        }
        self.returned(returning.as_deref(), lowering)
    }

    /// Puts parameters where an expression has what the query gives: other tables' columns, and
    /// subqueries.
    fn take_found(&self, expr: &mut tree::Expr, query: &Query, found: &mut Found) -> Result<()> {
        if let ExprKind::WholeRow { level: 0, relation } = expr.kind
            && query.from.iter().any(|from| gives_rows(from, relation))
        {
            expr.kind = row_of(&query.relations[relation], relation);
        }
        let is_found = match &expr.kind {
            ExprKind::Column {
                level: 0, relation, ..
            } => *relation > 0,
            ExprKind::WholeRow { .. } | ExprKind::Subquery(_) => true,
            _ => false,
        };
        if !is_found {
            let mut done = Ok(());
            expr.children_mut(&mut |child| {
                if done.is_ok() {
                    done = self.take_found(child, query, found);
                }
            });
            return done;
        }
        if matches!(expr.kind, ExprKind::Subquery(_))
            && expr_reads_rows_out(expr, 0)
            && !found.changed.is_empty()
        {
            return Err(SqlError::unsupported(
                "a subquery over the changed row is not supported in RETURNING",
                "Read the row in the next statement of the transaction.",
            ));
        }
        let (oid, modifier, location) = (expr.oid, expr.modifier, expr.location);
        let Some(data_type) = held(oid, modifier) else {
            let message = format!(
                "RETURNING a value of type {} of another table is not supported",
                thermocline_query::types::format_type(oid, modifier)
            );
            return Err(SqlError::unsupported(message, "Cast it to text."));
        };
        let number = self.planner.befores.types().len() + found.selected.len();
        let parameter = tree::Expr::new(ExprKind::Parameter(number), oid, location);
        let taken = std::mem::replace(expr, parameter.with_modifier(modifier));
        found.selected.push(taken);
        found.stored.push((data_type, "?column?".to_owned()));
        Ok(())
    }

    fn by_query(
        &self,
        mut query: Query,
        key: &Key,
        found: Found,
        change: ShortPlan,
    ) -> Result<ShortPlan> {
        query.targets = found.selected.into_iter().map(target).collect();
        let key_columns = self.key_found(&mut query, key)?;
        Ok(ShortPlan::ByQuery(Arc::new(ByQuery {
            query: self.planner.read_query(query)?,
            own_parameters: self.planner.befores.types().len(),
            targets: found.stored,
            key_columns,
            change,
            lock: self.lock_by(key)?,
        })))
    }

    /// Has a query give what names the table's rows; how many of its columns that is.
    pub(super) fn key_found(&self, query: &mut Query, key: &Key) -> Result<usize> {
        Ok(match key {
            Key::Columns(columns) => columns.len(),
            Key::Row => {
                query.relations.first_mut().map(Relation::number_rows);
                1
            }
        })
    }

    /// How a row is locked by its key.
    pub(super) fn lock_by(&self, key: &Key) -> Result<ShortPlan> {
        let lock = RowLock {
            mode: LockMode::Update,
            locked: LockedRows::Wait,
        };
        let source = self.source_by(key);
        let context = &self.context;
        self.planner
            .over_each(context, source, |_, source| Ok(locking(source, lock)))
    }
}

#[cold]
fn with_others() -> SqlError {
    SqlError::unsupported(
        "WHERE CURRENT OF beside other tables is not supported",
        "Ask for their values by subqueries.",
    )
}
