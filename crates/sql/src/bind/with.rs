//! WITH before an INSERT, UPDATE or DELETE: the list goes to the query that the change reads by.

use sqlparser::ast::{self, SetExpr, Statement, With};

use super::typed::Binder;
use super::{Bindable, BoundPlan, Command, Refusal};
use crate::error::SqlError;

/// The change that a WITH stands before.
pub(crate) fn changed(query: &ast::Query) -> Option<(&With, &Statement)> {
    let with = query.with.as_ref()?;
    match &*query.body {
        SetExpr::Insert(change) | SetExpr::Update(change) | SetExpr::Delete(change) => {
            Some((with, change))
        }
        _ => None,
    }
}

impl Binder<'_> {
    /// Binds a change, which sees the list that stands before it.
    pub(super) fn change(
        &mut self,
        change: &Statement,
        list: Option<&With>,
    ) -> Bindable<(Command, BoundPlan)> {
        self.with = list.cloned();
        Ok(match (change, list) {
            (Statement::Insert(insert), None) => (Command::Insert, self.insert(insert)?),
            (Statement::Insert(insert), Some(list)) => {
                (Command::Insert, self.insert(&insert_with(list, insert)?)?)
            }
            (Statement::Update(update), _) => (Command::Update, self.update(update)?),
            (Statement::Delete(delete), _) => (Command::Delete, self.delete(delete)?),
            _ => return Err(SqlError::unsupported("this statement cannot be bound").into()),
        })
    }
}

/// The INSERT with the list in its source.
fn insert_with(with: &With, insert: &ast::Insert) -> Bindable<ast::Insert> {
    let mut insert = insert.clone();
    let Some(source) = &mut insert.source else {
        return Ok(insert);
    };
    match &mut source.with {
        None => source.with = Some(with.clone()),
        Some(own) => {
            let name = |table: &ast::Cte| table.alias.name.value.clone();
            let twice = |table: &ast::Cte| own.cte_tables.iter().any(|t| name(t) == name(table));
            if own.recursive != with.recursive || with.cte_tables.iter().any(twice) {
                return Err(Refusal::declined("this WITH within a WITH"));
            }
            own.cte_tables.splice(0..0, with.cte_tables.iter().cloned());
        }
    }
    Ok(insert)
}
