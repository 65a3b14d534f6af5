//! Triggers FOR EACH STATEMENT: those before a statement are called when it begins, those behind it
//! are noted when it has changed its rows. What foreign keys do is a part of the statement: a
//! table's triggers are called once for all of it.

use std::sync::Arc;

use thermocline_engine::{Table, TriggerEvent};

use super::super::plpgsql::{RowShape, TriggerCall};
use super::super::{SendFuture, Session};
use super::call::Changed;
use super::change::{assigned_by, columns_of};
use crate::error::Result;
use crate::plan::ShortPlan;

/// What a statement does to a table, and which columns it names.
pub(in crate::session) struct Does {
    table: Arc<Table>,
    event: TriggerEvent,
    assigned: Vec<usize>,
}

impl Does {
    pub(in crate::session) fn new(table: &Arc<Table>, event: TriggerEvent) -> Self {
        Self {
            table: Arc::clone(table),
            event,
            assigned: Vec::new(),
        }
    }

    /// What a plan does to tables with triggers.
    pub(in crate::session) fn of(plan: &ShortPlan) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        add(plan, &mut all);
        // As PostgreSQL: what inserts comes first, then what updates, then what deletes.
        all.sort_by_key(|one| match one.event {
            TriggerEvent::Insert => 0,
            TriggerEvent::Update => 1,
            TriggerEvent::Delete | TriggerEvent::Truncate => 2,
        });
        all
    }
}

fn add(plan: &ShortPlan, all: &mut Vec<Does>) {
    let mut push = |table: &Arc<Table>, event, assigned: Vec<usize>| {
        let same = |one: &&mut Does| one.event == event && one.table.oid == table.oid;
        match all.iter_mut().find(same) {
            Some(one) => one.assigned.extend(assigned),
            None => all.push(Does {
                assigned,
                ..Does::new(table, event)
            }),
        }
    };
    match plan {
        ShortPlan::Insert(insert) => {
            let target = &insert.target;
            push(&target.table, TriggerEvent::Insert, Vec::new());
            let conflict = target.conflict.as_ref();
            if let Some(update) = conflict.and_then(|conflict| conflict.update.as_ref()) {
                let assigned = columns_of(&update.assignments);
                push(&target.table, TriggerEvent::Update, assigned);
            }
        }
        ShortPlan::Update(update) => {
            push(
                &update.source.table,
                TriggerEvent::Update,
                assigned_by(update),
            );
        }
        ShortPlan::Delete(delete) => {
            push(&delete.source.table, TriggerEvent::Delete, Vec::new());
        }
        ShortPlan::ByQuery(plan) => add(&plan.change, all),
        ShortPlan::CurrentOf(plan) => add(&plan.change, all),
        ShortPlan::Merge(plan) => plan.actions.iter().flatten().for_each(|one| add(one, all)),
        _ => {}
    }
}

impl Session {
    /// Calls the triggers before a statement.
    pub(in crate::session) fn before_statement<'s>(
        &'s mut self,
        does: &'s [Does],
    ) -> SendFuture<'s, Result<()>> {
        Box::pin(async move {
            for one in does.iter().filter(|one| one.table.fires(one.event)) {
                self.lock_for_triggers(&one.table).await?;
            }
            for one in does {
                if one.table.fires(one.event) && self.triggers.tell(one.table.oid, one.event) {
                    self.call_before_statement(one).await?;
                }
            }
            Ok(())
        })
    }

    async fn call_before_statement(&mut self, does: &Does) -> Result<()> {
        let shape = RowShape::of(&does.table);
        let changed = Changed::of(&does.table, &shape, does.event, Some(&does.assigned));
        if changed.of_statement(true).next().is_none() {
            return Ok(());
        }
        let db = Arc::clone(&self.engine.db);
        let transaction = self.transaction.of_block(&db);
        let held = transaction.map(|transaction| transaction.hold_expected());
        let mut called = Ok(());
        for (_, trigger) in changed.of_statement(true) {
            let call = TriggerCall {
                table: &does.table,
                trigger,
                event: does.event,
                rows: None,
            };
            called = match self.meets_condition(call).await {
                Ok(true) => self.call_trigger(call).await.map(drop),
                Ok(false) => Ok(()),
                Err(error) => Err(error),
            };
            called = called.and_then(|()| self.is_not_redefined(&does.table));
            if called.is_err() {
                break;
            }
        }
        if let (Some(held), Some(transaction)) = (held, self.transaction.of_block(&db)) {
            transaction.resume_expected(held);
        }
        called
    }

    /// Notes the triggers behind a statement, which has changed its rows. Those of one that
    /// inserts and updates are called for the updates first.
    pub(in crate::session) fn behind_statement<'s>(
        &'s mut self,
        does: &'s [Does],
    ) -> SendFuture<'s, Result<()>> {
        Box::pin(async move {
            for one in does.iter().rev() {
                if !one.table.fires(one.event) {
                    continue;
                }
                let shape = RowShape::of(&one.table);
                let changed = Changed::of(&one.table, &shape, one.event, Some(&one.assigned));
                let mut wanted = Vec::new();
                for (at, trigger) in changed.of_statement(false) {
                    let call = TriggerCall {
                        table: &one.table,
                        trigger,
                        event: one.event,
                        rows: None,
                    };
                    if self.meets_condition(call).await? {
                        wanted.push(at);
                    }
                }
                if !wanted.is_empty() {
                    self.triggers.forget_statement(one.table.oid, one.event);
                    self.note_statement(&changed, wanted)?;
                }
            }
            Ok(())
        })
    }
}
