//! INSERT, UPDATE and DELETE of tables with triggers, row by row.

use std::collections::HashSet;
use std::sync::Arc;

use thermocline_engine::{
    ChargeKind, Database, Error, LockMode, RowId, RunOptions, Table, TriggerEvent, give_way,
};
use thermocline_values::types::DataType;
use thermocline_values::value::Value;

use super::super::plpgsql::RowShape;
use super::super::transaction::TransactionState;
use super::super::{SendFuture, Session, SessionContext};
use super::call::Changed;
use crate::error::{Result, SqlError};
use crate::exec::one_by_one::{self as rows_of, FoundRow, Stored};
use crate::exec::{ExecContext, TupleRow};
use crate::expr::{EvalContext, Expr};
use crate::output::RowWriter;
use crate::plan::{DeletePlan, InsertPlan, InsertSource, InsertTarget, ShortPlan, UpdatePlan};
use crate::styles::Styles;

/// Rows between two pauses.
const ROWS: usize = 64;

/// What statements are run with.
struct Around<'s> {
    db: Arc<Database>,
    context: Arc<SessionContext>,
    options: RunOptions,
    now_us: i64,
    styles: &'s Styles,
    parameters: &'s [Value],
}

impl Around<'_> {
    fn exec<'e>(&'e self, transaction: &'e mut TransactionState) -> ExecContext<'e> {
        ExecContext {
            db: &self.db,
            txn: transaction.of_block(&self.db),
            options: &self.options,
            now_us: self.now_us,
            session: &*self.context,
            styles: self.styles,
            may_leave: false,
        }
    }

    fn evaluation(&self) -> EvalContext<'_> {
        EvalContext {
            parameters: self.parameters,
            now_us: self.now_us,
            session: &*self.context,
            styles: self.styles,
            outer: None,
        }
    }
}

/// An INSERT under way.
struct Inserting<'a> {
    target: &'a InsertTarget,
    shape: RowShape,
    /// The columns that ON CONFLICT DO UPDATE names.
    assigned: Vec<usize>,
    /// The rows that it has stored or changed, where it may meet them again.
    touched: HashSet<RowId>,
}

impl<'a> Inserting<'a> {
    fn of(target: &'a InsertTarget) -> Self {
        let conflict = target.conflict.as_ref();
        let update = conflict.and_then(|conflict| conflict.update.as_ref());
        Self {
            target,
            shape: RowShape::of(&target.table),
            assigned: update.map_or_else(Vec::new, |update| columns_of(&update.assignments)),
            touched: HashSet::new(),
        }
    }
}

pub(super) fn columns_of(assignments: &[(usize, Expr)]) -> Vec<usize> {
    assignments.iter().map(|(column, _)| *column).collect()
}

/// The columns that an UPDATE changes: those that it names, and those that are computed of them.
pub(super) fn assigned_by(plan: &UpdatePlan) -> Vec<usize> {
    let mut all = columns_of(&plan.assignments);
    for (column, expr) in &plan.generated {
        let mut reads = false;
        expr.walk(&mut |part| {
            if let Expr::Column(column) = part {
                reads |= plan.assignments.iter().any(|(to, _)| to == column);
            }
        });
        if reads {
            all.push(*column);
        }
    }
    all
}

#[cold]
fn changed_by_trigger(event: TriggerEvent) -> SqlError {
    let what = match event {
        TriggerEvent::Delete => "deleted",
        _ => "updated",
    };
    let message = format!(
        "tuple to be {what} was already modified by an operation triggered by the current command"
    );
    SqlError::new("27000", message).with_hint(
        "Consider using an AFTER trigger instead of a BEFORE trigger to propagate changes to \
         other rows.",
    )
}

/// The definition cannot change while its rows do, unless a trigger's function changes it.
fn in_use(error: SqlError, table: &Table) -> SqlError {
    match error.stale_plan {
        false => error,
        true => redefined(table),
    }
}

#[cold]
fn redefined(table: &Table) -> SqlError {
    let message = format!(
        "cannot ALTER TABLE \"{}\" because it is being used by active queries in this session",
        table.name
    );
    SqlError::new("55006", message)
}

impl Session {
    /// Runs an INSERT, UPDATE or DELETE of a table with triggers; how many rows it has changed.
    pub(in crate::session) fn change_with_triggers<'s>(
        &'s mut self,
        plan: &'s ShortPlan,
        styles: &'s Styles,
        parameters: &'s [Value],
        rows: &'s mut RowWriter,
    ) -> SendFuture<'s, Result<u64>> {
        Box::pin(async move {
            let Some(table) = plan.changed_table() else {
                return Err(SqlError::internal("triggers of no table"));
            };
            let around = self.around(styles, parameters);
            self.lock_for_triggers(table).await?;
            let changed = match plan {
                ShortPlan::Insert(plan) => self.insert_one_by_one(plan, &around, rows).await,
                ShortPlan::Update(plan) => self.update_one_by_one(plan, &around, rows).await,
                ShortPlan::Delete(plan) => self.delete_one_by_one(plan, &around, rows).await,
                _ => Err(SqlError::internal("a change that is none of rows")),
            };
            changed.map_err(|error| in_use(error, table))
        })
    }

    fn around<'s>(&self, styles: &'s Styles, parameters: &'s [Value]) -> Around<'s> {
        Around {
            db: Arc::clone(&self.engine.db),
            context: Arc::clone(&self.context),
            options: self.options(),
            now_us: self.context.transaction_us(),
            styles,
            parameters,
        }
    }

    /// Keeps a table as it is defined before the first trigger is called: a statement that is to be
    /// planned anew has done nothing yet.
    pub(super) async fn lock_for_triggers(&mut self, table: &Arc<Table>) -> Result<()> {
        let db = Arc::clone(&self.engine.db);
        let options = self.options();
        let Some(txn) = self.transaction.of_block(&db) else {
            return Err(SqlError::internal("triggers without a transaction"));
        };
        db.lock_table(txn, &options, table, LockMode::RowExclusive, true)
            .await?;
        match self.is_as_it_was(table) {
            true => Ok(()),
            false => Err(Error::StalePlan.into()),
        }
    }

    fn is_as_it_was(&self, table: &Arc<Table>) -> bool {
        let now = self.transaction.catalog(&self.engine.db);
        let now = now.table(table.oid);
        now.is_some_and(|now| Arc::ptr_eq(now, table))
    }

    /// 55006 where the function of a trigger has defined its table anew.
    pub(super) fn is_not_redefined(&self, table: &Arc<Table>) -> Result<()> {
        match self.is_as_it_was(table) {
            true => Ok(()),
            false => Err(redefined(table)),
        }
    }

    /// Computes something, again after each wait that it asks for.
    async fn computed<T>(
        &mut self,
        around: &Around<'_>,
        compute: impl Fn(&EvalContext<'_>) -> Result<T>,
    ) -> Result<T> {
        self.context.begin_waits();
        loop {
            match compute(&around.evaluation()) {
                Err(error) => match error.wait {
                    Some(wait) => self.wait(wait, &around.options).await?,
                    None => return Err(error),
                },
                computed => return computed,
            }
        }
    }

    /// From time to time looks at cancels and time limits, and lets others go first.
    async fn pause(&mut self, row: usize, around: &Around<'_>) -> Result<()> {
        if row.is_multiple_of(ROWS) {
            self.check_interrupted(&around.options)?;
            give_way().await;
        }
        Ok(())
    }

    async fn insert_one_by_one(
        &mut self,
        plan: &InsertPlan,
        around: &Around<'_>,
        rows: &mut RowWriter,
    ) -> Result<u64> {
        let target = &*plan.target;
        let mut inserting = Inserting::of(target);
        let (types, found) = match &plan.source {
            InsertSource::Values(values) => {
                let mut count = 0;
                for (at, exprs) in values.iter().enumerate() {
                    self.pause(at, around).await?;
                    let given =
                        |context: &EvalContext<'_>| rows_of::given_by(target, exprs, context);
                    let given = self.computed(around, given).await?;
                    let stored = self.insert_row(&mut inserting, given, around, rows).await?;
                    count += u64::from(stored);
                }
                return Ok(count);
            }
            InsertSource::Query(query, types) => {
                let charge = self.account.nothing(ChargeKind::Result);
                let mut source = RowWriter::values().charged(charge);
                let with = (&around.options, around.styles);
                self.run_plan(query, with, around.parameters, &mut source, false)
                    .await?;
                return self
                    .insert_values(&mut inserting, types, &source.take_values(), around, rows)
                    .await;
            }
            InsertSource::Analytical(query) => {
                let columns = target.columns.iter();
                let column = |column: &usize| {
                    let def = &target.table.columns[*column];
                    (def.data_type, def.name.clone())
                };
                let wanted: Vec<(DataType, String)> = columns.map(column).collect();
                let mut charge = self.account.nothing(ChargeKind::Result);
                let query = (query, &wanted[..]);
                let found = self.found_by(query, around.parameters, None, &mut charge);
                let found = found.await?;
                let types: Vec<DataType> = wanted.iter().map(|(data_type, _)| *data_type).collect();
                (types, (found, charge))
            }
        };
        let (found, _charge) = found;
        self.insert_values(&mut inserting, &types, &found, around, rows)
            .await
    }

    async fn insert_values(
        &mut self,
        inserting: &mut Inserting<'_>,
        types: &[DataType],
        values: &[Vec<Value>],
        around: &Around<'_>,
        rows: &mut RowWriter,
    ) -> Result<u64> {
        let target = inserting.target;
        let mut count = 0;
        for (at, values) in values.iter().enumerate() {
            self.pause(at, around).await?;
            let given =
                |context: &EvalContext<'_>| rows_of::given_as(target, types, values, context);
            let given = self.computed(around, given).await?;
            let stored = self.insert_row(inserting, given, around, rows).await?;
            count += u64::from(stored);
        }
        Ok(count)
    }

    /// Stores the rows of a COPY; an error says which of them it is about.
    pub(in crate::session) fn copy_with_triggers<'s>(
        &'s mut self,
        target: &'s InsertTarget,
        types: &'s [DataType],
        values: &'s [Vec<Value>],
        styles: &'s Styles,
    ) -> SendFuture<'s, Result<u64, (SqlError, usize)>> {
        Box::pin(async move {
            let around = self.around(styles, &[]);
            let mut inserting = Inserting::of(target);
            let mut nothing = RowWriter::values();
            let mut count = 0;
            for (at, row) in values.iter().enumerate() {
                let row = std::slice::from_ref(row);
                let stored = self
                    .insert_values(&mut inserting, types, row, &around, &mut nothing)
                    .await;
                count += stored.map_err(|error| (in_use(error, &target.table), at))?;
            }
            Ok(count)
        })
    }

    /// Stores a row of an INSERT, or does what ON CONFLICT says; whether it is stored or changed.
    async fn insert_row(
        &mut self,
        inserting: &mut Inserting<'_>,
        mut values: Vec<Value>,
        around: &Around<'_>,
        rows: &mut RowWriter,
    ) -> Result<bool> {
        let target = inserting.target;
        let shape = inserting.shape.clone();
        let table = &target.table;
        let changed = Changed::of(table, &shape, TriggerEvent::Insert, None);
        if !self
            .call_before_row(&changed, None, Some(&mut values))
            .await?
        {
            return Ok(false);
        }
        let tuple = {
            let finished = |context: &EvalContext<'_>| {
                rows_of::finished(table, &values, &target.generated, &target.checks, context)
            };
            self.computed(around, finished).await?
        };
        let start = rows.mark();
        self.context.begin_waits();
        let stored = loop {
            let mut exec = around.exec(&mut self.transaction);
            let touched = &inserting.touched;
            let stores =
                rows_of::store(target, &tuple, touched, &mut exec, around.parameters, rows);
            match stores.await {
                Ok(stored) => break stored,
                Err(error) => self.wait_of(&error, &around.options).await?,
            }
            rows.rewind(start);
        };
        match stored {
            Stored::Skipped => Ok(false),
            Stored::New(row) => {
                if target.conflict.is_some() {
                    inserting.touched.insert(row);
                }
                self.note_after(&changed, None, Some(&tuple)).await?;
                Ok(true)
            }
            Stored::Conflict(found) => {
                self.update_conflicting(inserting, &found, &tuple, around, rows)
                    .await
            }
        }
    }

    async fn update_conflicting(
        &mut self,
        inserting: &mut Inserting<'_>,
        found: &FoundRow,
        excluded: &[u8],
        around: &Around<'_>,
        rows: &mut RowWriter,
    ) -> Result<bool> {
        let target = inserting.target;
        let table = &target.table;
        let conflict = target.conflict.as_ref();
        let Some(update) = conflict.and_then(|conflict| conflict.update.as_ref()) else {
            return Ok(false);
        };
        let both = (&*found.tuple, excluded);
        let values =
            |context: &EvalContext<'_>| rows_of::changed_by_conflict(table, both, update, context);
        let Some(values) = self.computed(around, values).await? else {
            return Ok(false);
        };
        inserting.touched.insert(found.row);
        let shape = inserting.shape.clone();
        let assigned = inserting.assigned.clone();
        let changed = Changed::of(table, &shape, TriggerEvent::Update, Some(&assigned));
        let change = rows_of::Change {
            table,
            references: &target.references,
            returning: target.returning.as_deref(),
            leaves_partition: true,
        };
        let computed = (&target.generated[..], &target.checks[..]);
        self.update_row(&changed, change, (found, values), computed, around, rows)
            .await
    }

    /// Changes a row that was found to these values; false where a trigger leaves it out.
    async fn update_row(
        &mut self,
        changed: &Changed<'_>,
        change: rows_of::Change<'_>,
        (found, mut values): (&FoundRow, Vec<Value>),
        (generated, checks): (&[(usize, Expr)], &[crate::plan::Check]),
        around: &Around<'_>,
        rows: &mut RowWriter,
    ) -> Result<bool> {
        let table = changed.table;
        let old = Some(&*found.tuple);
        if !self
            .call_before_row(changed, old, Some(&mut values))
            .await?
        {
            return Ok(false);
        }
        let finished = |context: &EvalContext<'_>| {
            rows_of::finished(table, &values, generated, checks, context)
        };
        let tuple = self.computed(around, finished).await?;
        let done = self
            .change_row(change, found, Some(&*tuple), around, rows)
            .await?;
        if !done {
            return Err(changed_by_trigger(TriggerEvent::Update));
        }
        self.note_after(changed, old, Some(&tuple)).await?;
        Ok(true)
    }

    /// Changes a row to a tuple, or removes it; false where it is not what was found.
    async fn change_row(
        &mut self,
        change: rows_of::Change<'_>,
        found: &FoundRow,
        new: Option<&[u8]>,
        around: &Around<'_>,
        rows: &mut RowWriter,
    ) -> Result<bool> {
        let start = rows.mark();
        self.context.begin_waits();
        loop {
            let mut exec = around.exec(&mut self.transaction);
            let parameters = around.parameters;
            match rows_of::change(change, found, new, &mut exec, parameters, rows).await {
                Ok(done) => return Ok(done.is_some()),
                Err(error) => self.wait_of(&error, &around.options).await?,
            }
            rows.rewind(start);
        }
    }

    async fn update_one_by_one(
        &mut self,
        plan: &UpdatePlan,
        around: &Around<'_>,
        rows: &mut RowWriter,
    ) -> Result<u64> {
        let table = &plan.source.table;
        let shape = RowShape::of(table);
        let assigned = assigned_by(plan);
        let changed = Changed::of(table, &shape, TriggerEvent::Update, Some(&assigned));
        let change = rows_of::Change {
            table,
            references: &plan.references,
            returning: plan.returning.as_deref(),
            leaves_partition: plan.leaves_partition,
        };
        let mut charge = self.account.nothing(ChargeKind::Result);
        let found = self.find_rows(&plan.source, around, &mut charge).await?;
        let mut count = 0;
        for (at, found) in found.iter().enumerate() {
            self.pause(at, around).await?;
            let tuple = &*found.tuple;
            let values = |context: &EvalContext<'_>| {
                let row = TupleRow { table, tuple };
                rows_of::changed(table, tuple, &plan.assignments, &row, context)
            };
            let values = self.computed(around, values).await?;
            let computed = (&plan.generated[..], &plan.checks[..]);
            let done = self
                .update_row(&changed, change, (found, values), computed, around, rows)
                .await?;
            count += u64::from(done);
        }
        Ok(count)
    }

    async fn delete_one_by_one(
        &mut self,
        plan: &DeletePlan,
        around: &Around<'_>,
        rows: &mut RowWriter,
    ) -> Result<u64> {
        let table = &plan.source.table;
        let shape = RowShape::of(table);
        let changed = Changed::of(table, &shape, TriggerEvent::Delete, None);
        let change = rows_of::Change {
            table,
            references: &[],
            returning: plan.returning.as_deref(),
            leaves_partition: false,
        };
        let mut charge = self.account.nothing(ChargeKind::Result);
        let found = self.find_rows(&plan.source, around, &mut charge).await?;
        let mut count = 0;
        for (at, found) in found.iter().enumerate() {
            self.pause(at, around).await?;
            let old = Some(&*found.tuple);
            if !self.call_before_row(&changed, old, None).await? {
                continue;
            }
            if !self.change_row(change, found, None, around, rows).await? {
                return Err(changed_by_trigger(TriggerEvent::Delete));
            }
            self.note_after(&changed, old, None).await?;
            count += 1;
        }
        Ok(count)
    }

    async fn find_rows(
        &mut self,
        source: &crate::plan::Source,
        around: &Around<'_>,
        charge: &mut thermocline_engine::Charge,
    ) -> Result<Vec<FoundRow>> {
        self.context.begin_waits();
        loop {
            let mut exec = around.exec(&mut self.transaction);
            let found = rows_of::find(source, &mut exec, around.parameters, charge).await;
            match found {
                Err(error) => match error.wait {
                    Some(wait) => self.wait(wait, &around.options).await?,
                    None => return Err(error),
                },
                found => return found,
            }
        }
    }
}
