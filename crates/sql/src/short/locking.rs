//! SELECT … FOR UPDATE and FOR SHARE. Rows of one table that the short path finds are locked as
//! they are found. Otherwise a query gives what is selected and, behind it, the keys of the rows
//! to lock, and each is then locked by its key. By its number in a table without one.

use std::collections::BTreeMap;
use std::sync::Arc;

use thermocline_engine::Table;
use thermocline_engine::authority::Privileges;
use thermocline_query::tree::{self, ExprKind, Query, RelationKind};
use thermocline_values::types::DataType;

use super::expression::Lowering;
use super::partitions::needs_key;
use super::{Planner, target};
use crate::error::{Result, SqlError};
use crate::plan::{
    KeyLock, LockMode, LockedRows, LockingRead, RowLock, ShortPlan, locking, row_numbered,
    source_by_key,
};
use crate::typed::calls;
use crate::typed::row_number::gives_rows;

impl Planner<'_> {
    /// The plan of a query that may lock rows, none of which is within another of its queries.
    ///
    /// # Errors
    /// 42501 without the rights; 0A000 for rows that cannot be locked.
    pub(super) fn locking(&mut self, mut query: Query) -> Result<ShortPlan> {
        let locks = locks_of(&query);
        for relation in locks.keys() {
            self.may_lock(&query, *relation)?;
        }
        if let Ok(plan) = self.select(&query, locks.get(&0).copied())?
            && !calls(&query)
        {
            return Ok(ShortPlan::Select(Arc::new(plan)));
        }
        let mut key_locks = Vec::new();
        for (relation, lock) in &locks {
            if let Some(table) = self.lockable(&query, *relation)? {
                key_locks.push(self.key_lock(&mut query, *relation, &table, *lock)?);
            }
        }
        query.locks.clear();
        // Rows that are passed over do not count.
        let skips = locks.values().any(|lock| lock.locked == LockedRows::Skip);
        let (mut limit, mut offset) = (None, None);
        if skips {
            let count = |count: tree::Expr| Lowering::of_no_row().row(&count);
            limit = query.limit.take().map(count).transpose()?;
            offset = query.offset.take().map(count).transpose()?;
        }
        let waits = locks.values().all(|lock| lock.locked == LockedRows::Wait);
        Ok(ShortPlan::LockingRead(Arc::new(LockingRead {
            query: self.read_query(query)?,
            locks: key_locks,
            limit,
            offset,
            waits,
            own_parameters: self.befores.types().len(),
        })))
    }

    fn table_of(&self, query: &Query, relation: usize) -> Option<Arc<Table>> {
        match query.relations.get(relation)?.kind {
            RelationKind::Table(oid) => self.context.catalog.table(oid).cloned(),
            _ => None,
        }
    }

    fn may_lock(&self, query: &Query, relation: usize) -> Result<()> {
        match (self.context.actor, self.table_of(query, relation)) {
            (_, Some(table)) if table.is_materialized() => {
                let message = format!("cannot lock rows in materialized view \"{}\"", table.name);
                Err(SqlError::new("42809", message))
            }
            (Some(actor), Some(table)) => {
                let needs = Privileges::SELECT | Privileges::UPDATE;
                actor.need_some_column(self.context.catalog, &table, needs)
            }
            _ => Ok(()),
        }
    }

    /// The table whose rows are to be locked; none for a relation without rows of its own.
    fn lockable(&self, query: &Query, relation: usize) -> Result<Option<Arc<Table>>> {
        let of = &query.relations[relation];
        match of.kind {
            RelationKind::Table(_) => {}
            RelationKind::Subquery(..) => {
                return Err(SqlError::unsupported(
                    "FOR UPDATE of rows of a subquery or a view is not supported",
                    "Lock the rows in the query that reads the table.",
                ));
            }
            RelationKind::Common { .. }
            | RelationKind::Functions { .. }
            | RelationKind::Values(..) => return Ok(None),
        }
        if !query.from.iter().any(|from| gives_rows(from, relation)) {
            return Err(SqlError::unsupported(
                "FOR UPDATE cannot be applied to the nullable side of an outer join",
                "Name the other tables behind OF.",
            ));
        }
        match self.table_of(query, relation) {
            Some(table) => Ok(Some(table)),
            None => Err(SqlError::new(
                "42809",
                format!("cannot lock rows in relation \"{}\"", of.alias),
            )),
        }
    }

    /// How the rows of a table are locked that the query finds, which gives their keys, too.
    fn key_lock(
        &self,
        query: &mut Query,
        relation: usize,
        table: &Arc<Table>,
        lock: RowLock,
    ) -> Result<KeyLock> {
        let own_parameters = self.befores.types().len();
        let column = |column: usize, data_type: DataType| {
            let kind = ExprKind::Column {
                level: 0,
                relation,
                column,
            };
            let expr = tree::Expr::new(kind, data_type.oid(), -1);
            target(expr.with_modifier(data_type.typmod()))
        };
        if let Some(primary) = table.indexes.iter().find(|index| index.primary) {
            let columns = &primary.columns;
            let key: Vec<DataType> = columns
                .iter()
                .map(|column| table.columns[*column].data_type)
                .collect();
            let keys = columns.iter().zip(&key);
            let keys = keys.map(|(place, data_type)| column(*place, *data_type));
            query.targets.extend(keys);
            let source = source_by_key(table, columns, own_parameters);
            let context = &self.context;
            return Ok(KeyLock {
                key,
                plan: self.over_each(context, source, |_, source| Ok(locking(source, lock)))?,
            });
        }
        if table.partitioned.is_some() {
            return Err(needs_key(table));
        }
        let number = query.relations[relation].number_rows();
        query.targets.push(column(number, DataType::BigInt));
        Ok(KeyLock {
            key: vec![DataType::BigInt],
            plan: locking(row_numbered(table, own_parameters), lock),
        })
    }
}

/// How each relation is locked: of several clauses the strongest counts; NOWAIT before SKIP
/// LOCKED, as in PostgreSQL.
fn locks_of(query: &Query) -> BTreeMap<usize, RowLock> {
    const FOR_NO_KEY_UPDATE: u8 = 3;
    let mut locks: BTreeMap<usize, RowLock> = BTreeMap::new();
    for lock in &query.locks {
        let before = locks.get(&lock.relation);
        let mode = match lock.strength >= FOR_NO_KEY_UPDATE {
            true => LockMode::Update,
            false => before.map_or(LockMode::Share, |before| before.mode),
        };
        let locked = match (lock.wait, before.map(|before| before.locked)) {
            (2, _) | (_, Some(LockedRows::Refuse)) => LockedRows::Refuse,
            (1, _) | (_, Some(LockedRows::Skip)) => LockedRows::Skip,
            _ => LockedRows::Wait,
        };
        locks.insert(lock.relation, RowLock { mode, locked });
    }
    locks
}
