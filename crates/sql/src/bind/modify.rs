//! UPDATE and DELETE of one table.

use std::sync::Arc;

use sqlparser::ast::{self, FromTable, SelectItem, TableWithJoins};
use thermocline_engine::Table;
use thermocline_engine::authority::Privileges;

use super::typed::Binder;
use super::{Bindable, BoundPlan, Refusal, has_one_form};
use crate::expr::Expr;
use crate::output::OutputColumn;
use crate::plan::{DeletePlan, OutputExpr, Path, ShortPlan, Source, UpdatePlan, choose};

pub(super) type Returning = (Option<Vec<OutputExpr>>, Option<Vec<OutputColumn>>);

impl Binder<'_> {
    pub(super) fn update(&mut self, update: &ast::Update) -> Bindable<BoundPlan> {
        if update.or.is_some()
            || update.output.is_some()
            || !update.order_by.is_empty()
            || update.limit.is_some()
        {
            return Err(Refusal::declined("this form of UPDATE"));
        }
        if update.from.is_some() || self.with.is_some() {
            return self.update_by_query(update, Refusal::declined("UPDATE … FROM or WITH"));
        }
        self.update_in_place(update)
            .or_else(|refusal| self.update_by_query(update, refusal))
    }

    fn update_in_place(&mut self, update: &ast::Update) -> Bindable<BoundPlan> {
        let table = self.modified(&update.table, Privileges::UPDATE)?;
        let assignments = self.assignments(&table, &update.assignments)?;
        let condition = self.modified_rows(update.selection.as_ref())?;
        let (returning, columns) = self.returning(update.returning.as_deref())?;
        let (source, _) = choose(&table, condition, &[], || false);
        let plan = UpdatePlan {
            overwrites: overwrites(&source, &assignments),
            source,
            checks: self.checks_of(&table)?,
            leaves_partition: leaves_partition(&table, &assignments),
            assignments,
            returning,
        };
        Ok((ShortPlan::Update(Arc::new(plan)), columns))
    }

    pub(super) fn delete(&mut self, delete: &ast::Delete) -> Bindable<BoundPlan> {
        if !delete.tables.is_empty()
            || delete.output.is_some()
            || !delete.order_by.is_empty()
            || delete.limit.is_some()
        {
            return Err(Refusal::declined("this form of DELETE"));
        }
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
        let [from] = from.as_slice() else {
            return Err(Refusal::declined("DELETE from several tables"));
        };
        if delete.using.is_some() || self.with.is_some() {
            let refusal = Refusal::declined("DELETE … USING or WITH");
            return self.delete_by_query(delete, from, refusal);
        }
        self.delete_in_place(delete, from)
            .or_else(|refusal| self.delete_by_query(delete, from, refusal))
    }

    fn delete_in_place(
        &mut self,
        delete: &ast::Delete,
        from: &TableWithJoins,
    ) -> Bindable<BoundPlan> {
        let table = self.modified(from, Privileges::DELETE)?;
        let condition = self.modified_rows(delete.selection.as_ref())?;
        let (returning, columns) = self.returning(delete.returning.as_deref())?;
        let (source, _) = choose(&table, condition, &[], || false);
        let plan = DeletePlan {
            by_key: returning.is_none() && whole_key(&source).is_some(),
            source,
            returning,
        };
        Ok((ShortPlan::Delete(Arc::new(plan)), columns))
    }

    pub(super) fn modified(
        &mut self,
        target: &TableWithJoins,
        needs: Privileges,
    ) -> Bindable<Arc<Table>> {
        if !target.joins.is_empty() {
            return Err(Refusal::declined("a join as the target"));
        }
        let relation = self.relation(&target.relation, needs)?;
        let table = Arc::clone(&relation.table);
        self.relations = vec![relation];
        Ok(table)
    }

    fn modified_rows(&mut self, selection: Option<&ast::Expr>) -> Bindable<Option<Expr>> {
        selection
            .map(|selection| self.condition_of(selection, "WHERE"))
            .transpose()
    }

    pub(super) fn returning(&mut self, items: Option<&[SelectItem]>) -> Bindable<Returning> {
        Ok(match items {
            None => (None, None),
            Some(items) => {
                let (output, columns) = self.select_list(items)?;
                (Some(output), Some(columns))
            }
        })
    }
}

/// The columns of the key and their values, if one row is named by its whole key and the
/// engine may be able to do without what it was.
pub(crate) fn whole_key(source: &Source) -> Option<Vec<(usize, Expr)>> {
    let table = &*source.table;
    let Path::Probe(probe) = &source.path else {
        return None;
    };
    if !table.knows_keys() || !probe.is_exact(table) || source.filter.is_some() {
        return None;
    }
    let columns = &table.indexes[probe.index].columns;
    let mut key = Vec::with_capacity(columns.len());
    for (column, choice) in columns.iter().zip(&probe.keys) {
        let [part] = choice.as_slice() else {
            return None;
        };
        if !has_one_form(table.columns[*column].data_type) {
            return None;
        }
        key.push((*column, part.expr.clone()));
    }
    Some(key)
}

/// The columns of the key and their values, if one row is named by its whole key and given
/// all its other columns anew, with values that may be evaluated whether it is there or not.
pub(crate) fn overwrites(
    source: &Source,
    assignments: &[(usize, Expr)],
) -> Option<Vec<(usize, Expr)>> {
    let key = whole_key(source)?;
    let table = &*source.table;
    let is_key = |column: usize| key.iter().any(|(of_key, _)| *of_key == column);
    let assigned = |column: usize| assignments.iter().any(|(assigned, _)| *assigned == column);
    let whole = table.live_columns().all(|(c, _)| assigned(c) != is_key(c));
    let given = assignments.iter().all(|(_, expr)| is_given(expr));
    (whole && given).then_some(key)
}

/// Whether a value is known without a row and without an effect.
pub(super) fn is_given(expr: &Expr) -> bool {
    let mut given = true;
    expr.walk(&mut |part| {
        given &= matches!(
            part,
            Expr::Constant(_) | Expr::Parameter(_) | Expr::Cast(..) | Expr::Now(_)
        );
    });
    given
}

/// Whether the assignments may move a row to another partition, or make it
/// clash with a row of another partition.
pub(crate) fn leaves_partition(table: &Table, assignments: &[(usize, Expr)]) -> bool {
    let assigned = |column: &usize| assignments.iter().any(|(assigned, _)| assigned == column);
    let moves = table.partition_key.iter().any(assigned);
    let clashes = table.indexes.iter().any(|index| {
        index.unique
            && index.columns.iter().any(assigned)
            && (table.partition_key.is_empty()
                || !table
                    .partition_key
                    .iter()
                    .all(|column| index.columns.contains(column)))
    });
    moves || clashes
}
