//! SELECT … FOR UPDATE and FOR SHARE of rows that only a query finds: with joins, subqueries, a
//! WITH list. The query gives what is selected and, behind it, the primary keys of the rows to
//! lock; each is then locked by its key.

use std::sync::Arc;

use sqlparser::ast::{
    self, GroupByExpr, Ident, JoinOperator, NonBlock, ObjectName, SelectItem, SetExpr, TableFactor,
};
use thermocline_engine::authority::Privileges;

use super::aggregate::calls_aggregate;
use super::by_query::{locking, parameters_of, source_by_key};
use super::scope::{find_table, folded, name_parts};
use super::select::{around, row_lock};
use super::typed::Binder;
use super::{Bindable, BoundPlan, Refusal};
use crate::error::SqlError;
use crate::plan::{KeyLock, LockingRead, ReadQuery, RowLock, ShortPlan};

/// A relation of FROM, and whether an outer join may put NULLs for its row.
struct Listed<'q> {
    factor: &'q TableFactor,
    nullable: bool,
}

impl Binder<'_> {
    /// A query; what the short path declines of those that lock rows is found by a query, and so
    /// is what stands behind other statements.
    pub(super) fn locking_read(&mut self, query: &ast::Query) -> Bindable<BoundPlan> {
        match self.query(query) {
            Err(Refusal::Declined { reason, .. })
                if !query.locks.is_empty() || self.has_before() =>
            {
                Ok((self.found_and_locked(query, reason)?, None))
            }
            bound => bound,
        }
    }

    /// The plan of a query that only another finds the rows of, for this reason; its columns are
    /// known when that is analysed.
    pub(super) fn found_and_locked(
        &mut self,
        query: &ast::Query,
        reason: String,
    ) -> Bindable<ShortPlan> {
        self.relations.clear();
        self.aggregation = None;
        let mut read = query.clone();
        read.locks.clear();
        let own_parameters = parameters_of(&query.to_string());
        let mut locks = Vec::new();
        let select = match (&*query.body, &mut *read.body) {
            (SetExpr::Select(select), SetExpr::Select(read)) => Some((select, read)),
            _ => None,
        };
        match select {
            _ if query.locks.is_empty() => {}
            Some((select, read)) => {
                check_lockable(select)?;
                let mut listed = Vec::new();
                for table in &select.from {
                    list(table, &mut listed);
                }
                check_named(query, &listed)?;
                for relation in &listed {
                    let Some(lock) = lock_of(query, relation) else {
                        continue;
                    };
                    let (lock, keys) = self.key_lock(query, relation, lock, own_parameters)?;
                    locks.extend(lock);
                    read.projection.extend(keys);
                }
            }
            None => {
                let message = "FOR UPDATE is not allowed with UNION/INTERSECT/EXCEPT";
                return Err(SqlError::unsupported(message).into());
            }
        }
        // Rows that are passed over do not count.
        let skips = |lock: &ast::LockClause| lock.nonblock == Some(NonBlock::SkipLocked);
        let (mut limit, mut offset) = (None, None);
        if query.locks.iter().any(skips) {
            let around = around(query)?;
            limit = self.row_count(around.limit)?;
            offset = self.row_count(around.offset)?;
            read.limit_clause = None;
            read.fetch = None;
        }
        let waits = query.locks.iter().all(|lock| lock.nonblock.is_none());
        let query = ReadQuery {
            text: read.to_string(),
            declared: self.declared_oids(),
            typed: None,
            reason,
        };
        let plan = LockingRead {
            query,
            locks,
            limit,
            offset,
            waits,
            own_parameters,
        };
        Ok(ShortPlan::LockingRead(Arc::new(plan)))
    }

    /// How rows of a relation are locked, and its key's columns; nothing for one without rows of
    /// its own.
    fn key_lock(
        &self,
        query: &ast::Query,
        relation: &Listed<'_>,
        lock: RowLock,
        own_parameters: usize,
    ) -> Bindable<(Option<KeyLock>, Vec<SelectItem>)> {
        let TableFactor::Table {
            name,
            alias,
            args: None,
            ..
        } = relation.factor
        else {
            return Err(Refusal::declined("a row lock on what is not a table"));
        };
        if let Some(list) = &query.with
            && super::before::is_of_list(name, list)
        {
            return Ok((None, Vec::new()));
        }
        if relation.nullable {
            let message = "FOR UPDATE cannot be applied to the nullable side of an outer join";
            return Err(SqlError::unsupported(message).into());
        }
        let needs = Privileges::SELECT | Privileges::UPDATE;
        let table = find_table(self.context, name, needs)?;
        let Some(primary) = table.indexes.iter().find(|index| index.primary) else {
            let message = format!(
                "locking rows of table \"{}\" by a query is not supported: it has no primary key",
                table.name
            );
            return Err(SqlError::unsupported(message).into());
        };
        if alias
            .as_ref()
            .is_some_and(|alias| !alias.columns.is_empty())
        {
            return Err(Refusal::declined(
                "a row lock on a table whose columns are renamed",
            ));
        }
        let qualifier = match alias {
            Some(alias) => folded(&alias.name),
            None => table.name.clone(),
        };
        let item = |column: &usize| {
            let parts = [&qualifier, &table.columns[*column].name];
            let parts = parts.map(|part| Ident::with_quote('"', part.as_str()));
            SelectItem::UnnamedExpr(ast::Expr::CompoundIdentifier(parts.to_vec()))
        };
        let source = source_by_key(table, &primary.columns, own_parameters);
        let key_lock = KeyLock {
            key: primary
                .columns
                .iter()
                .map(|column| table.columns[*column].data_type)
                .collect(),
            plan: locking(source, lock),
        };
        Ok((Some(key_lock), primary.columns.iter().map(item).collect()))
    }
}

/// Refuses what has no rows of tables to lock.
fn check_lockable(select: &ast::Select) -> Bindable<()> {
    let grouped = match &select.group_by {
        GroupByExpr::Expressions(groups, _) => !groups.is_empty(),
        GroupByExpr::All(_) => true,
    };
    for (found, what) in [
        (select.distinct.is_some(), "DISTINCT clause"),
        (grouped, "GROUP BY clause"),
        (select.having.is_some(), "HAVING clause"),
        (calls_aggregate(&select.projection), "aggregate functions"),
    ] {
        if found {
            let message = format!("FOR UPDATE is not allowed with {what}");
            return Err(SqlError::unsupported(message).into());
        }
    }
    Ok(())
}

fn list<'q>(table: &'q ast::TableWithJoins, listed: &mut Vec<Listed<'q>>) {
    let first = listed.len();
    list_factor(&table.relation, listed);
    for join in &table.joins {
        let right = listed.len();
        list_factor(&join.relation, listed);
        let (left_is, right_is) = match join.join_operator {
            JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => (false, true),
            JoinOperator::Right(_) | JoinOperator::RightOuter(_) => (true, false),
            JoinOperator::FullOuter(_) => (true, true),
            _ => (false, false),
        };
        for (number, relation) in listed[first..].iter_mut().enumerate() {
            relation.nullable |= if first + number < right {
                left_is
            } else {
                right_is
            };
        }
    }
}

fn list_factor<'q>(factor: &'q TableFactor, listed: &mut Vec<Listed<'q>>) {
    match factor {
        TableFactor::NestedJoin {
            table_with_joins,
            alias: None,
        } => list(table_with_joins, listed),
        factor => listed.push(Listed {
            factor,
            nullable: false,
        }),
    }
}

/// What a relation of FROM is called.
fn name_of(factor: &TableFactor) -> Option<String> {
    match factor {
        TableFactor::Table { name, alias, .. } => match alias {
            Some(alias) => Some(folded(&alias.name)),
            None => name_parts(name).ok()?.pop(),
        },
        TableFactor::Derived { alias, .. } | TableFactor::Function { alias, .. } => {
            alias.as_ref().map(|alias| folded(&alias.name))
        }
        _ => None,
    }
}

/// How a relation is locked: by the clauses that name it or none.
fn lock_of(query: &ast::Query, relation: &Listed<'_>) -> Option<RowLock> {
    let shown = name_of(relation.factor);
    let names = |of: &ObjectName| name_parts(of).is_ok_and(|mut of| of.pop() == shown);
    let clauses = query.locks.iter();
    row_lock(clauses.filter(|lock| lock.of.as_ref().is_none_or(names)))
}

/// Refuses a clause that names nothing of FROM.
fn check_named(query: &ast::Query, listed: &[Listed<'_>]) -> Bindable<()> {
    for of in query.locks.iter().filter_map(|lock| lock.of.as_ref()) {
        let name = name_parts(of)?.pop().unwrap_or_default();
        let mut shown = listed
            .iter()
            .filter_map(|relation| name_of(relation.factor));
        if !shown.any(|shown| shown == name) {
            return Err(unlisted(&name));
        }
    }
    Ok(())
}

/// 42P01 for what a lock clause names and FROM does not.
pub(super) fn unlisted(name: &str) -> Refusal {
    let message = format!("relation \"{name}\" in FOR UPDATE clause not found in FROM clause");
    SqlError::new("42P01", message).into()
}
