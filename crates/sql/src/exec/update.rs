//! UPDATE. The rows are found first and changed then, so that a changed key
//! does not bring a row back into the scan. A new tuple is a patched copy of
//! the old one when only columns of fixed width change.

use thermocline_engine::{Access, Charge, ChargeKind, RowId, RunOptions, Scope, Table};
use thermocline_values::types::DataType;
use thermocline_values::value::{Value, ValueRef};

use super::lookup::{Keys, Lookup, visit};
use super::pace::Pace;
use super::row::{TupleRow, null_violation, verify_checks, write_row};
use super::{ExecContext, Stop, Touched, bulk, insert_rows, overwrite, reference, run};
use crate::error::{Result, SqlError};
use crate::expr::{Datum, EvalContext, Expr, RowAccess};
use crate::output::RowWriter;
use crate::plan::{Check, InsertTarget, UpdatePlan};
use crate::session::bytes_of;

/// An UPDATE of more rows makes one tuple first, to see how long that takes.
const ROWS_UNTRIED: usize = 16;

/// Makes new tuples from old ones; its buffer is used again from row to row.
#[derive(Default)]
pub(crate) struct Rewriter {
    tuple: Vec<u8>,
    /// What a new tuple refers to.
    key: Vec<u8>,
    /// The tuple without what is computed of it.
    before: Vec<u8>,
}

/// What makes a new tuple of an old one.
#[derive(Clone, Copy)]
pub(crate) struct RowChange<'a> {
    /// Columns and their new values.
    pub(crate) assignments: &'a [(usize, Expr)],
    /// Generated columns, computed of the row with these.
    pub(crate) generated: &'a [(usize, Expr)],
    /// What the new row must satisfy.
    pub(crate) checks: &'a [Check],
}

impl Rewriter {
    /// The tuple made last.
    pub(crate) fn tuple(&self) -> &[u8] {
        &self.tuple
    }

    /// Makes the tuple that the change, evaluated over `row`, makes of `old`.
    ///
    /// # Errors
    /// 23502, 23514, and what the expressions raise.
    pub(crate) fn rewrite<R: RowAccess + ?Sized>(
        &mut self,
        table: &Table,
        old: &[u8],
        change: &RowChange<'_>,
        row: &R,
        context: &EvalContext<'_>,
    ) -> Result<()> {
        let assignments = change.assignments;
        self.tuple.clear();
        self.tuple.extend_from_slice(old);
        let mut patched = true;
        let mut null_column = None;
        for (column, expr) in assignments {
            let value = expr.evaluate(row, context)?;
            if value.is_null() && table.columns[*column].not_null {
                null_column.get_or_insert(*column);
            }
            if !table
                .layouts
                .patch(&mut self.tuple, *column, value.as_ref())
            {
                patched = false;
                break;
            }
        }
        if !patched {
            null_column = self.encode(table, old, assignments, row, context)?;
        }
        if !change.generated.is_empty() {
            null_column = null_column.or(self.compute(table, change.generated, context)?);
        }
        let new = TupleRow {
            table,
            tuple: &self.tuple,
        };
        if let Some(column) = null_column {
            return Err(null_violation(table, column, &new, context.styles));
        }
        verify_checks(change.checks, table, &new, context)
    }

    /// Makes the tuple that an UPDATE makes of `old`.
    fn of_plan(&mut self, plan: &UpdatePlan, old: &[u8], context: &EvalContext<'_>) -> Result<()> {
        let table = &*plan.source.table;
        let row = TupleRow { table, tuple: old };
        let change = RowChange {
            assignments: &plan.assignments,
            generated: &plan.generated,
            checks: &plan.checks,
        };
        self.rewrite(table, old, &change, &row, context)
    }

    /// Computes generated columns of the tuple that was made. Returns one that must not be NULL
    /// and is.
    fn compute(
        &mut self,
        table: &Table,
        generated: &[(usize, Expr)],
        context: &EvalContext<'_>,
    ) -> Result<Option<usize>> {
        std::mem::swap(&mut self.tuple, &mut self.before);
        let row = TupleRow {
            table,
            tuple: &self.before,
        };
        let mut null_column = None;
        let mut computed = Vec::with_capacity(generated.len());
        self.tuple.clear();
        self.tuple.extend_from_slice(&self.before);
        let mut patched = true;
        for (column, expr) in generated {
            let value = expr.evaluate(&row, context)?;
            if value.is_null() && table.columns[*column].not_null {
                null_column.get_or_insert(*column);
            }
            let layouts = &table.layouts;
            patched = patched && layouts.patch(&mut self.tuple, *column, value.as_ref());
            computed.push((*column, value));
        }
        if !patched {
            let columns = 0..table.columns.len();
            let mut values: Vec<ValueRef<'_>> = columns.map(|column| row.column(column)).collect();
            for (column, value) in &computed {
                values[*column] = value.as_ref();
            }
            self.tuple.clear();
            table.encode_tuple(&values, &mut self.tuple);
        }
        Ok(null_column)
    }

    /// The slow way: all columns are decoded and encoded again. Returns a
    /// column that must not be NULL and is.
    fn encode<R: RowAccess + ?Sized>(
        &mut self,
        table: &Table,
        old: &[u8],
        assignments: &[(usize, Expr)],
        row: &R,
        context: &EvalContext<'_>,
    ) -> Result<Option<usize>> {
        let mut assigned: Vec<Datum<'_>> = Vec::with_capacity(assignments.len());
        for (_, expr) in assignments {
            assigned.push(expr.evaluate(row, context)?);
        }
        let mut values: Vec<ValueRef<'_>> = (0..table.columns.len())
            .map(|column| table.value(old, column))
            .collect();
        let mut null_column = None;
        for ((column, _), value) in assignments.iter().zip(&assigned) {
            values[*column] = value.as_ref();
            if value.is_null() && table.columns[*column].not_null {
                null_column.get_or_insert(*column);
            }
        }
        self.tuple.clear();
        table.encode_tuple(&values, &mut self.tuple);
        Ok(null_column)
    }
}

pub(super) async fn update(
    plan: &UpdatePlan,
    context: &mut ExecContext<'_>,
    parameters: &[Value],
    rows: &mut RowWriter,
) -> Result<u64> {
    let evaluation = EvalContext {
        parameters,
        now_us: context.now_us,
        session: context.session,
        styles: context.styles,
        outer: None,
    };
    let lookup = Lookup::of(&plan.source, &evaluation)?;
    if matches!(lookup.keys, Keys::Nothing) {
        return Ok(0);
    }
    let mut rewriter = Rewriter::default();
    if context.txn.is_none()
        && let Keys::Point(key) = &lookup.keys
        && let Some(values) = &plan.overwrites
        && overwrite::make_tuple(plan, values, &evaluation, &mut rewriter.tuple)?
    {
        let at = (lookup.scope, key.as_slice());
        return overwrite::overwrite(plan, context, &evaluation, at, &rewriter.tuple, rows).await;
    }
    if plan.moves.is_some() {
        return Err(SqlError::internal("rows that may move, without where to"));
    }
    if bulk::is_wanted(&plan.source, context) {
        return bulk::change(
            &plan.source,
            context,
            &evaluation,
            plan.leaves_partition,
            rows,
            |access, row, rows| change(access, plan, row, &evaluation, &mut rewriter, rows),
        )
        .await;
    }
    let mark = rows.mark();
    let keys = &lookup.keys;
    let mut found = Vec::new();
    let mut targets: Vec<RowId> = Vec::new();
    let (db, options) = (context.db, context.options);
    let body = |access: &mut Access<'_>| -> std::result::Result<u64, Stop> {
        rows.rewind(mark);
        targets.clear();
        let mut pace = Pace::new(db, options, !matches!(keys, Keys::Row(_)));
        visit(
            access,
            &plan.source,
            keys,
            &evaluation,
            &mut found,
            &mut pace,
            |row, _| {
                targets.push(row);
                Ok(std::ops::ControlFlow::Continue(()))
            },
        )?;
        let is_volatile = |(_, expr): &(usize, Expr)| expr.is_volatile();
        if targets.len() > ROWS_UNTRIED
            && !plan.assignments.iter().any(is_volatile)
            && let Some(old) = access.tuple(&plan.source.table, targets[0])?
        {
            pace.begin();
            rewriter.of_plan(plan, old, &evaluation)?;
            pace.leave_before(targets.len())?;
        }
        let mut changed = 0;
        for row in &targets {
            pace.row()?;
            changed += u64::from(change(
                access,
                plan,
                *row,
                &evaluation,
                &mut rewriter,
                rows,
            )?);
        }
        Ok(changed)
    };
    let scope = if plan.leaves_partition {
        Scope::All
    } else {
        lookup.scope
    };
    let txn = context.txn.as_deref_mut();
    match run(context.db, txn, context.options, scope, body).await {
        Err(error) if error.takes_long => {
            rows.rewind(mark);
            let change = |access: &mut Access<'_>, row, rows: &mut RowWriter| {
                change(access, plan, row, &evaluation, &mut rewriter, rows)
            };
            let leaves_partition = plan.leaves_partition;
            bulk::change(
                &plan.source,
                context,
                &evaluation,
                leaves_partition,
                rows,
                change,
            )
            .await
        }
        ran => ran,
    }
}

/// Changes rows of a partition that may belong to another then. Such a row is deleted here, and added
/// to `moved`, which is for [`move_in`].
pub(super) async fn move_out(
    plan: &UpdatePlan,
    context: &mut ExecContext<'_>,
    parameters: &[Value],
    rows: &mut RowWriter,
    moved: &mut Moved,
) -> Result<u64> {
    let evaluation = EvalContext {
        parameters,
        now_us: context.now_us,
        session: context.session,
        styles: context.styles,
        outer: None,
    };
    let lookup = Lookup::of(&plan.source, &evaluation)?;
    let Some(into) = plan
        .moves
        .as_ref()
        .filter(|_| !matches!(lookup.keys, Keys::Nothing))
    else {
        return Ok(0);
    };
    let table = &*plan.source.table;
    let checks = plan.checks.iter().cloned();
    let (stays, others): (Vec<Check>, Vec<Check>) = checks.partition(|check| check.of.is_bound());
    let (mark, before) = (rows.mark(), moved.rows.len());
    let (keys, mut found, mut targets) = (&lookup.keys, Vec::new(), Vec::new());
    let mut rewriter = Rewriter::default();
    let (db, options) = (context.db, context.options);
    let body = |access: &mut Access<'_>| -> std::result::Result<u64, Stop> {
        rows.rewind(mark);
        targets.clear();
        moved.rows.truncate(before);
        let mut pace = Pace::new(db, options, false);
        let source = &plan.source;
        visit(
            access,
            source,
            keys,
            &evaluation,
            &mut found,
            &mut pace,
            |row, _| {
                targets.push(row);
                Ok(std::ops::ControlFlow::Continue(()))
            },
        )?;
        let mut changed = 0;
        for row in &targets {
            pace.row()?;
            let Some(old) = access.tuple(table, *row)? else {
                continue;
            };
            let change = RowChange {
                assignments: &plan.assignments,
                generated: &plan.generated,
                checks: &others,
            };
            rewriter.rewrite(
                table,
                old,
                &change,
                &TupleRow { table, tuple: old },
                &evaluation,
            )?;
            let tuple = rewriter.tuple();
            if verify_checks(&stays, table, &TupleRow { table, tuple }, &evaluation).is_err() {
                let value = |column: &usize| table.value(tuple, *column).to_owned();
                moved.add(into.columns.iter().map(value).collect())?;
                access.delete(table, *row)?;
                continue;
            }
            let row = access.update(table, *row, tuple)?;
            if !plan.references.is_empty() && !access.evicted() {
                let new = (row, rewriter.tuple.as_slice());
                reference::expect(access, table, &plan.references, new, &mut rewriter.key)?;
            }
            if let Some(returning) = &plan.returning {
                let new = TupleRow {
                    table,
                    tuple: rewriter.tuple(),
                };
                write_row(returning, &new, &evaluation, rows)?;
            }
            changed += 1;
        }
        Ok(changed)
    };
    run(db, context.txn.as_deref_mut(), options, Scope::All, body).await
}

/// Rows on their way from one partition to others, charged.
pub(super) struct Moved {
    rows: Vec<Vec<Value>>,
    charge: Option<Charge>,
}

impl Moved {
    /// None yet, on the account of a statement.
    pub(super) fn new(options: &RunOptions) -> Self {
        let account = options.account.as_ref();
        Self {
            rows: Vec::new(),
            charge: account.map(|account| account.nothing(ChargeKind::Result)),
        }
    }

    fn add(&mut self, row: Vec<Value>) -> Result<()> {
        if let Some(charge) = &mut self.charge {
            charge.grow(bytes_of(&row))?;
        }
        self.rows.push(row);
        Ok(())
    }
}

/// Inserts what [`move_out`] has deleted, where it belongs now.
pub(super) async fn move_in(
    into: &InsertTarget,
    moved: &Moved,
    context: &mut ExecContext<'_>,
    parameters: &[Value],
    rows: &mut RowWriter,
) -> Result<u64> {
    if moved.rows.is_empty() {
        return Ok(0);
    }
    let types = into
        .columns
        .iter()
        .map(|column| into.table.columns[*column].data_type);
    let types: Vec<DataType> = types.collect();
    let given = (&types[..], &moved.rows[..]);
    insert_rows(
        into,
        given,
        &mut Touched::default(),
        context,
        parameters,
        rows,
    )
    .await
}

/// Changes one row; false when it is not there (any more).
fn change(
    access: &mut Access<'_>,
    plan: &UpdatePlan,
    row: RowId,
    context: &EvalContext<'_>,
    rewriter: &mut Rewriter,
    rows: &mut RowWriter,
) -> std::result::Result<bool, Stop> {
    let table = &*plan.source.table;
    let Some(old) = access.tuple(table, row)? else {
        return Ok(false);
    };
    rewriter.of_plan(plan, old, context)?;
    let row = access.update(table, row, rewriter.tuple())?;
    if !plan.references.is_empty() && !access.evicted() {
        let new = (row, rewriter.tuple.as_slice());
        reference::expect(access, table, &plan.references, new, &mut rewriter.key)?;
    }
    if let Some(returning) = &plan.returning {
        let new = TupleRow {
            table,
            tuple: rewriter.tuple(),
        };
        write_row(returning, &new, context, rows)?;
    }
    Ok(true)
}
