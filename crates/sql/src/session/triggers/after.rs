//! What AFTER triggers are called for, until the statement ends. Each statement has its own part of
//! the queue, behind those of the statements around it.

use std::sync::Arc;

use thermocline_engine::{Charge, ChargeKind, Table, TriggerEvent};

use super::super::plpgsql::{RowShape, Rows, TriggerCall};
use super::super::{SendFuture, Session};
use super::call::Changed;
use crate::error::{Result, SqlError};

/// What an event takes beside its tuples, in bytes.
const EVENT_BYTES: usize = 192;

/// A change that triggers are called for.
struct Event {
    table: Arc<Table>,
    shape: RowShape,
    event: TriggerEvent,
    /// The places of the triggers in the table's list.
    triggers: Box<[usize]>,
    old: Option<Box<[u8]>>,
    new: Option<Box<[u8]>>,
}

impl Event {
    fn is_of_statement(&self) -> bool {
        self.old.is_none() && self.new.is_none()
    }

    fn bytes(&self) -> usize {
        let tuple = |tuple: &Option<Box<[u8]>>| tuple.as_ref().map_or(0, |tuple| tuple.len());
        EVENT_BYTES + tuple(&self.old) + tuple(&self.new)
    }
}

/// Where the own part of a statement begins.
#[derive(Clone, Copy, Default)]
struct Part {
    events: usize,
    told: usize,
}

/// What there was when a statement began, and which part the statement around it has.
#[derive(Clone, Copy, Default)]
pub(in crate::session) struct Mark {
    here: Part,
    around: Part,
}

/// See the head of this file.
#[derive(Default)]
pub(in crate::session) struct Queue {
    events: Vec<Event>,
    bytes: u64,
    charge: Option<Charge>,
    /// The tables whose triggers for a statement were called before it, by what they are for.
    told: Vec<(u32, TriggerEvent)>,
    /// The part of the statement that runs.
    own: Part,
}

impl Queue {
    /// A statement of the client begins: what one before it has left behind is forgotten.
    pub(in crate::session) fn clear(&mut self) {
        if !self.events.is_empty() || !self.told.is_empty() || self.own.events > 0 {
            *self = Self::default();
        }
    }

    /// A statement begins.
    pub(in crate::session) fn begin(&mut self) -> Mark {
        let here = Part {
            events: self.events.len(),
            told: self.told.len(),
        };
        let around = std::mem::replace(&mut self.own, here);
        Mark { here, around }
    }

    /// Forgets what came since the statement began, which begins anew.
    pub(in crate::session) fn back_to(&mut self, mark: Mark) {
        let gone = self.events.get(mark.here.events..).unwrap_or_default();
        self.bytes -= gone.iter().map(Event::bytes).sum::<usize>() as u64;
        self.events.truncate(mark.here.events);
        self.told.truncate(mark.here.told);
        self.own = mark.here;
        if self.events.is_empty() {
            (self.events, self.charge) = (Vec::new(), None);
        }
    }

    /// The statement is over.
    pub(in crate::session) fn end(&mut self, mark: Mark) {
        if self.events.len() > mark.here.events || self.told.len() > mark.here.told {
            self.back_to(mark);
        }
        self.own = mark.around;
    }

    /// Whether the statement that runs has events.
    pub(in crate::session) fn has_own(&self) -> bool {
        self.events.len() > self.own.events
    }

    /// Notes that the triggers for a statement are called; false where they have been.
    pub(super) fn tell(&mut self, table: u32, event: TriggerEvent) -> bool {
        let own = self.told.get(self.own.told..).unwrap_or_default();
        let is_new = !own.contains(&(table, event));
        if is_new {
            self.told.push((table, event));
        }
        is_new
    }

    /// Leaves out the calls for the statement that are noted: others come behind them.
    pub(super) fn forget_statement(&mut self, table: u32, event: TriggerEvent) {
        for one in self.events.iter_mut().skip(self.own.events) {
            if one.is_of_statement() && one.table.oid == table && one.event == event {
                one.triggers = Box::default();
            }
        }
    }
}

impl Session {
    /// Notes a change of a row for the AFTER triggers that are for it.
    pub(super) async fn note_after(
        &mut self,
        changed: &Changed<'_>,
        old: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<()> {
        if !changed.any(false) {
            return Ok(());
        }
        let (table, shape) = (changed.table, changed.shape);
        let old_row = old.map(|tuple| changed.row_of(tuple)).transpose()?;
        let new_row = new.map(|tuple| changed.row_of(tuple)).transpose()?;
        let mut wanted = Vec::new();
        for (at, trigger) in changed.triggers(false) {
            let call = TriggerCall {
                table,
                trigger,
                event: changed.event,
                rows: Some(Rows {
                    shape,
                    old: old_row.as_deref(),
                    new: new_row.as_deref(),
                }),
            };
            if trigger.condition.is_none() || self.meets_condition(call).await? {
                wanted.push(at);
            }
        }
        if wanted.is_empty() {
            return Ok(());
        }
        self.push_event(Event {
            table: Arc::clone(table),
            shape: shape.clone(),
            event: changed.event,
            triggers: wanted.into(),
            old: old.map(Into::into),
            new: new.map(Into::into),
        })
    }

    /// Notes the calls behind a statement.
    pub(super) fn note_statement(
        &mut self,
        changed: &Changed<'_>,
        triggers: Vec<usize>,
    ) -> Result<()> {
        self.push_event(Event {
            table: Arc::clone(changed.table),
            shape: changed.shape.clone(),
            event: changed.event,
            triggers: triggers.into(),
            old: None,
            new: None,
        })
    }

    fn push_event(&mut self, event: Event) -> Result<()> {
        let bytes = self.triggers.bytes + event.bytes() as u64;
        let charge = self
            .triggers
            .charge
            .get_or_insert_with(|| self.account.nothing(ChargeKind::Result));
        if bytes > charge.bytes() {
            // By steps: they are many.
            charge.resize(bytes + bytes / 4)?;
        }
        self.triggers.bytes = bytes;
        self.triggers.events.push(event);
        Ok(())
    }

    /// Calls the AFTER triggers for what the statement that runs has changed.
    pub(in crate::session) fn fire_after(&mut self) -> SendFuture<'_, Result<()>> {
        Box::pin(async move {
            let mut at = self.triggers.own.events;
            while let Some(event) = self.triggers.events.get_mut(at) {
                let (table, shape) = (Arc::clone(&event.table), event.shape.clone());
                let (old, new) = (event.old.clone(), event.new.clone());
                let (kind, wanted) = (event.event, event.triggers.clone());
                let changed = Changed::of(&table, &shape, kind, None);
                let old = old.map(|tuple| changed.row_of(&tuple)).transpose()?;
                let new = new.map(|tuple| changed.row_of(&tuple)).transpose()?;
                for at in wanted {
                    let trigger = table.triggers.get(at);
                    let trigger = trigger.ok_or_else(|| SqlError::internal("no such trigger"))?;
                    let rows = Rows {
                        shape: &shape,
                        old: old.as_deref(),
                        new: new.as_deref(),
                    };
                    let call = TriggerCall {
                        table: &table,
                        trigger,
                        event: kind,
                        rows: trigger.row.then_some(rows),
                    };
                    self.call_trigger(call).await?;
                    if kind != TriggerEvent::Truncate {
                        self.is_not_redefined(&table)?;
                    }
                }
                at += 1;
            }
            Ok(())
        })
    }
}
