//! Rows that are found first and changed one by one, with other statements between: those of tables
//! with triggers. All of it is a part of the caller's transaction.
//!
//! A row that was found is locked. So if it is another when it is to be changed, the transaction has
//! done that itself.

use std::collections::HashSet;

use thermocline_engine::{Access, Charge, RowId, Scope, Table};
use thermocline_values::cast::CastContext;
use thermocline_values::types::DataType;
use thermocline_values::value::{Value, ValueRef};

use super::insert::{Encoded, conflicting, second_time, store_free};
use super::lookup::{Keys, Lookup, visit};
use super::pace::Pace;
use super::row::{
    ConflictRow, NewRow, TupleRow, null_violation, verify_checks, with_values, write_row,
};
use super::{ExecContext, Stop, bulk, reference, run};
use crate::error::Result;
use crate::expr::{CastPath, Datum, EvalContext, Expr, NoRow, RowAccess};
use crate::output::RowWriter;
use crate::plan::{Check, ConflictUpdate, InsertTarget, OutputExpr, Reference, Source};

/// What a found row takes beside its tuple, in bytes.
const FOUND_BYTES: usize = 64;

/// A row that was found and locked.
#[derive(Debug)]
pub(crate) struct FoundRow {
    pub(crate) row: RowId,
    pub(crate) tuple: Box<[u8]>,
}

impl FoundRow {
    pub(super) fn new(row: RowId, tuple: &[u8]) -> Self {
        Self {
            row,
            tuple: tuple.into(),
        }
    }
}

/// What rows take, in bytes.
pub(super) fn bytes_of(found: &[FoundRow]) -> u64 {
    let bytes = |one: &FoundRow| FOUND_BYTES + one.tuple.len();
    found.iter().map(bytes).sum::<usize>() as u64
}

/// Finds the rows of a source and locks them.
pub(crate) async fn find(
    source: &Source,
    context: &mut ExecContext<'_>,
    parameters: &[Value],
    charge: &mut Charge,
) -> Result<Vec<FoundRow>> {
    let evaluation = evaluation_of(context, parameters);
    let lookup = Lookup::of(source, &evaluation)?;
    if matches!(lookup.keys, Keys::Nothing) {
        return Ok(Vec::new());
    }
    if bulk::is_wanted(source, context) {
        return bulk::find_locked(source, context, &evaluation, charge).await;
    }
    let table = &*source.table;
    let keys = &lookup.keys;
    let (db, options) = (context.db, context.options);
    let (mut buffer, mut rows, mut found) = (Vec::new(), Vec::new(), Vec::new());
    let body = |access: &mut Access<'_>| -> std::result::Result<(), Stop> {
        rows.clear();
        found.clear();
        let mut pace = Pace::new(db, options, !matches!(keys, Keys::Row(_)));
        let (buffer, pace) = (&mut buffer, &mut pace);
        visit(access, source, keys, &evaluation, buffer, pace, |row, _| {
            rows.push(row);
            Ok(std::ops::ControlFlow::Continue(()))
        })?;
        for row in &rows {
            pace.row()?;
            access.lock(table, *row)?;
            if let Some(tuple) = access.tuple(table, *row)? {
                found.push(FoundRow::new(*row, tuple));
            }
        }
        Ok(())
    };
    let txn = context.txn.as_deref_mut();
    match run(context.db, txn, context.options, lookup.scope, body).await {
        Err(error) if error.takes_long => {
            bulk::find_locked(source, context, &evaluation, charge).await
        }
        ran => {
            ran?;
            charge.grow(bytes_of(&found))?;
            Ok(found)
        }
    }
}

pub(crate) fn evaluation_of<'a>(
    context: &ExecContext<'a>,
    parameters: &'a [Value],
) -> EvalContext<'a> {
    EvalContext {
        parameters,
        now_us: context.now_us,
        session: context.session,
        styles: context.styles,
        outer: None,
    }
}

/// The values of a row of VALUES, with its defaults and without what is generated.
pub(crate) fn given_by(
    target: &InsertTarget,
    exprs: &[Expr],
    context: &EvalContext<'_>,
) -> Result<Vec<Value>> {
    let given = exprs.iter();
    let given = given.map(|expr| Ok(expr.evaluate(&NoRow, context)?.into_value()));
    with_defaults(target, given, context)
}

/// The same of values of these types, one for each of the target's columns.
pub(crate) fn given_as(
    target: &InsertTarget,
    types: &[DataType],
    values: &[Value],
    context: &EvalContext<'_>,
) -> Result<Vec<Value>> {
    let columns = target.columns.iter().zip(types).zip(values);
    let given = columns.map(|((column, from), value)| {
        let path = CastPath {
            from: *from,
            to: target.table.columns[*column].data_type,
            context: CastContext::Assignment,
        };
        Ok(super::insert::fitted(value.as_ref(), &path, context.styles)?.into_value())
    });
    with_defaults(target, given, context)
}

fn with_defaults(
    target: &InsertTarget,
    given: impl Iterator<Item = Result<Value>>,
    context: &EvalContext<'_>,
) -> Result<Vec<Value>> {
    let mut row = vec![Value::Null; target.table.columns.len()];
    for (column, value) in target.columns.iter().zip(given) {
        row[*column] = value?;
    }
    for (column, default) in &target.defaults {
        row[*column] = default.evaluate(&NoRow, context)?.into_value();
    }
    Ok(row)
}

/// The values that a change makes of a tuple, without what is computed of it.
pub(crate) fn changed<R: RowAccess + ?Sized>(
    table: &Table,
    old: &[u8],
    assignments: &[(usize, Expr)],
    row: &R,
    context: &EvalContext<'_>,
) -> Result<Vec<Value>> {
    let columns = 0..table.columns.len();
    let mut values: Vec<Value> = columns
        .map(|column| table.value(old, column).to_owned())
        .collect();
    for (column, expr) in assignments {
        values[*column] = expr.evaluate(row, context)?.into_value();
    }
    Ok(values)
}

/// The values that ON CONFLICT DO UPDATE makes of a row; none where its WHERE is not true.
pub(crate) fn changed_by_conflict(
    table: &Table,
    (existing, excluded): (&[u8], &[u8]),
    update: &ConflictUpdate,
    context: &EvalContext<'_>,
) -> Result<Option<Vec<Value>>> {
    let row = ConflictRow {
        table,
        existing,
        excluded,
    };
    if let Some(filter) = &update.filter
        && !filter.accepts(&row, context)?
    {
        return Ok(None);
    }
    changed(table, existing, &update.assignments, &row, context).map(Some)
}

/// Computes what is generated of a row's values, looks at its constraints, and makes its tuple.
pub(crate) fn finished(
    table: &Table,
    values: &[Value],
    generated: &[(usize, Expr)],
    checks: &[Check],
    context: &EvalContext<'_>,
) -> Result<Box<[u8]>> {
    let values = values.iter();
    let mut row: Vec<Datum<'_>> = values.map(|value| Datum::Ref(value.as_ref())).collect();
    let mut computed = Vec::with_capacity(generated.len());
    for (column, expr) in generated {
        let value = expr.evaluate(&NewRow(&row), context)?.into_value();
        computed.push((*column, value));
    }
    for (column, value) in computed {
        row[column] = Datum::Owned(value);
    }
    for (column, def) in table.columns.iter().enumerate() {
        if def.not_null && row[column].is_null() {
            let row = NewRow(&row);
            return Err(null_violation(table, column, &row, context.styles));
        }
    }
    verify_checks(checks, table, &NewRow(&row), context)?;
    let mut tuple = Vec::new();
    with_values(&row, |values: &[ValueRef<'_>]| {
        table.encode_tuple(values, &mut tuple);
    });
    Ok(tuple.into())
}

/// What became of a row that was to be inserted.
pub(crate) enum Stored {
    New(RowId),
    /// This one has its key, and is to be changed.
    Conflict(FoundRow),
    Skipped,
}

/// Stores a tuple, unless another row has its key and ON CONFLICT says what then. `touched` are
/// the rows that the statement has stored or changed before.
pub(crate) async fn store(
    target: &InsertTarget,
    tuple: &[u8],
    touched: &HashSet<RowId>,
    context: &mut ExecContext<'_>,
    parameters: &[Value],
    rows: &mut RowWriter,
) -> Result<Stored> {
    let table = &*target.table;
    let evaluation = evaluation_of(context, parameters);
    let scope = Encoded::of(table, tuple, context.db.spread()).scope(target, 0..1);
    let mark = rows.mark();
    let mut key = Vec::new();
    let body = |access: &mut Access<'_>| -> std::result::Result<Stored, Stop> {
        rows.rewind(mark);
        if let Some(conflict) = &target.conflict
            && let Some(existing) = conflicting(access, table, &conflict.arbiters, tuple)?
        {
            if conflict.update.is_none() {
                return Ok(Stored::Skipped);
            }
            if touched.contains(&existing) {
                return Err(second_time());
            }
            access.lock(table, existing)?;
            let found = access.tuple(table, existing)?;
            return Ok(match found {
                Some(old) => Stored::Conflict(FoundRow::new(existing, old)),
                None => Stored::Skipped,
            });
        }
        let arbiters = target.conflict.as_ref();
        let arbiters = arbiters.map_or(&[][..], |conflict| &conflict.arbiters);
        let row = store_free(access, table, arbiters, tuple)?;
        if !target.references.is_empty() && !access.evicted() {
            reference::expect(access, table, &target.references, (row, tuple), &mut key)?;
        }
        if let Some(returning) = &target.returning {
            write_row(returning, &TupleRow { table, tuple }, &evaluation, rows)?;
        }
        Ok(Stored::New(row))
    };
    let txn = context.txn.as_deref_mut();
    run(context.db, txn, context.options, scope, body).await
}

/// How rows of a table are changed.
#[derive(Clone, Copy)]
pub(crate) struct Change<'a> {
    pub(crate) table: &'a Table,
    /// What the new row refers to.
    pub(crate) references: &'a [Reference],
    pub(crate) returning: Option<&'a [OutputExpr]>,
    /// The new row may be in another partition, or clash with a row of one.
    pub(crate) leaves_partition: bool,
}

/// Puts a tuple in the place of a row that was found, or deletes the row; its number then, none
/// where it is not the one that was found.
pub(crate) async fn change(
    change: Change<'_>,
    found: &FoundRow,
    new: Option<&[u8]>,
    context: &mut ExecContext<'_>,
    parameters: &[Value],
    rows: &mut RowWriter,
) -> Result<Option<RowId>> {
    let table = change.table;
    let evaluation = evaluation_of(context, parameters);
    let mark = rows.mark();
    let mut key = Vec::new();
    let body = |access: &mut Access<'_>| -> std::result::Result<Option<RowId>, Stop> {
        rows.rewind(mark);
        match access.tuple(table, found.row)? {
            Some(now) if *now == *found.tuple => {}
            _ => return Ok(None),
        }
        let row = match new {
            Some(tuple) => access.update(table, found.row, tuple)?,
            None => {
                access.delete(table, found.row)?;
                found.row
            }
        };
        if let (Some(tuple), false, false) = (new, change.references.is_empty(), access.evicted()) {
            reference::expect(access, table, change.references, (row, tuple), &mut key)?;
        }
        if let Some(returning) = change.returning {
            let tuple = new.unwrap_or(&found.tuple);
            write_row(returning, &TupleRow { table, tuple }, &evaluation, rows)?;
        }
        Ok(Some(row))
    };
    let scope = match change.leaves_partition {
        true => Scope::All,
        false => Scope::One(found.row.partition()),
    };
    let txn = context.txn.as_deref_mut();
    run(context.db, txn, context.options, scope, body).await
}
