//! INSERT. Rows are evaluated, checked and encoded once, before the partitions
//! are locked: then their partitions are known, and a body that is run again
//! takes no second sequence value. INSERT … SELECT and COPY FROM come here
//! with values.

use std::borrow::Cow;
use std::ops::Range;

use thermocline_engine::{Access, Error, Isolation, RowId, Scope, Table, give_way};
use thermocline_values::cast::CastContext;
use thermocline_values::types::DataType;
use thermocline_values::value::{Value, ValueRef};

use super::partitions::routed;
use super::reference::Referring;
use super::row::{
    ConflictRow, NewRow, TupleRow, null_violation, verify_checks, with_values, write_row,
};
use super::touched::Touched;
use super::update::{Rewriter, RowChange};
use super::{ExecContext, Stop, run};
use crate::error::{Result, SqlError};
use crate::expr::{CastPath, Datum, EvalContext, NoRow};
use crate::output::RowWriter;
use crate::plan::{ConflictPlan, InsertPlan, InsertSource, InsertTarget, ReferredTo};
use crate::styles::Styles;

/// At most this many rows are stored in one run.
pub(crate) const CHUNK_ROWS_MAX: usize = 1_000;
/// At most about this many bytes of tuples are stored in one run.
pub(crate) const CHUNK_BYTES_MAX: usize = 256 << 10;

/// Rows ready to be stored: encoded, one after the other.
#[derive(Default)]
pub(super) struct Encoded {
    bytes: Vec<u8>,
    tuples: Vec<Range<usize>>,
    partitions: Vec<u16>,
}

impl Encoded {
    /// One tuple.
    pub(super) fn of(table: &Table, tuple: &[u8], spread: u16) -> Self {
        Self {
            partitions: vec![table.partition_of_tuple(tuple).unwrap_or(spread)],
            tuples: std::iter::once(0..tuple.len()).collect(),
            bytes: tuple.to_vec(),
        }
    }

    /// The parts of bounded size, as ranges of tuples.
    fn chunks(&self) -> Vec<Range<usize>> {
        let mut chunks = Vec::new();
        let mut start = 0;
        for (number, tuple) in self.tuples.iter().enumerate() {
            let bytes = tuple.end - self.tuples[start].start;
            let rows = number - start;
            if rows > 0 && (rows >= CHUNK_ROWS_MAX || bytes > CHUNK_BYTES_MAX) {
                chunks.push(start..number);
                start = number;
            }
        }
        if start < self.tuples.len() {
            chunks.push(start..self.tuples.len());
        }
        chunks
    }

    /// Adds the partitions of what the rows refer to; false: it may be in any.
    fn add_referred(
        &self,
        target: &InsertTarget,
        rows: Range<usize>,
        partitions: &mut Vec<u16>,
    ) -> bool {
        let mut key = Vec::new();
        for reference in &target.references {
            for tuple in &self.tuples[rows.clone()] {
                key.clear();
                let tuple = &self.bytes[tuple.clone()];
                if reference.key(&target.table, tuple, &mut key) != ReferredTo::Key {
                    continue;
                }
                let Some(partition) = reference.partition(&key) else {
                    return false;
                };
                partitions.push(partition);
            }
        }
        true
    }

    pub(super) fn scope(&self, target: &InsertTarget, rows: Range<usize>) -> Scope {
        if !target.unique_within_partition && target.table.indexes.iter().any(|index| index.unique)
            || target
                .conflict
                .as_ref()
                .and_then(|conflict| conflict.update.as_ref())
                .is_some_and(|update| update.refers)
        {
            return Scope::All;
        }
        let mut partitions = self.partitions[rows.clone()].to_vec();
        if !self.add_referred(target, rows, &mut partitions) {
            return Scope::All;
        }
        partitions.sort_unstable();
        partitions.dedup();
        match partitions.as_slice() {
            [one] => Scope::One(*one),
            _ => Scope::Many(partitions),
        }
    }
}

/// Rows that go into the same table.
type Batch<'a> = (&'a InsertTarget, Encoded);

/// Evaluates, checks and encodes rows.
struct Encoder<'a> {
    target: &'a InsertTarget,
    context: EvalContext<'a>,
    /// Where rows of a table without partition key go.
    spread: u16,
    out: Vec<Batch<'a>>,
}

impl<'a> Encoder<'a> {
    fn new(target: &'a InsertTarget, context: EvalContext<'a>, spread: u16) -> Self {
        Self {
            target,
            context,
            spread,
            out: Vec::new(),
        }
    }

    /// Adds the row whose target columns `given` yields in their order.
    fn add(
        &mut self,
        row: &mut Vec<Datum<'a>>,
        given: impl FnMut(usize) -> Result<Datum<'a>>,
    ) -> Result<()> {
        let table = &*self.target.table;
        row.clear();
        row.resize(table.columns.len(), Datum::NULL);
        for (column, value) in self.target.columns.iter().zip((0..).map(given)) {
            row[*column] = value?;
        }
        for (column, default) in &self.target.defaults {
            row[*column] = default.evaluate(&NoRow, &self.context)?;
        }
        let target = routed(self.target, row, self.context.styles)?;
        let table = &*target.table;
        for (column, expr) in &target.generated {
            let value = expr.evaluate(&NewRow(row), &self.context)?.into_value();
            row[*column] = Datum::Owned(value);
        }
        for (column, def) in table.columns.iter().enumerate() {
            if def.not_null && row[column].is_null() {
                return Err(null_violation(
                    table,
                    column,
                    &NewRow(row),
                    self.context.styles,
                ));
            }
        }
        verify_checks(&target.checks, table, &NewRow(row), &self.context)?;
        let spread = self.spread;
        let out = self.batch_of(target);
        let start = out.bytes.len();
        let bytes = &mut out.bytes;
        with_values(row, |values| table.encode_tuple(values, bytes));
        let tuple = &out.bytes[start..];
        let partition = table.partition_of_tuple(tuple).unwrap_or(spread);
        out.partitions.push(partition);
        out.tuples.push(start..out.bytes.len());
        Ok(())
    }

    /// Where rows of this table are added: to those before, unless they are shown in their order.
    fn batch_of(&mut self, target: &'a InsertTarget) -> &mut Encoded {
        let is_ordered = self.target.returning.is_some();
        let mut batches = self.out.iter().rev().take(match is_ordered {
            true => 1,
            false => usize::MAX,
        });
        let behind = batches.position(|(of, _)| std::ptr::eq(*of, target));
        let at = match behind {
            Some(behind) => self.out.len() - 1 - behind,
            None => {
                self.out.push((target, Encoded::default()));
                self.out.len() - 1
            }
        };
        &mut self.out[at].1
    }
}

pub(super) async fn insert(
    plan: &InsertPlan,
    context: &mut ExecContext<'_>,
    parameters: &[Value],
    rows: &mut RowWriter,
) -> Result<u64> {
    match &plan.source {
        InsertSource::Values(values) => {
            let evaluation = EvalContext {
                parameters,
                now_us: context.now_us,
                session: context.session,
                styles: context.styles,
                outer: None,
            };
            let mut encoder = Encoder::new(&plan.target, evaluation, context.db.spread());
            let mut row: Vec<Datum<'_>> = Vec::with_capacity(plan.target.table.columns.len());
            for exprs in values {
                encoder.add(&mut row, |position| {
                    exprs[position].evaluate(&NoRow, &evaluation)
                })?;
            }
            let mut touched = Touched::of(&plan.target, values.len(), context.options);
            store_all(&encoder.out, &mut touched, context, parameters, rows).await
        }
        InsertSource::Query(query, types) => {
            let mut source = RowWriter::values();
            Box::pin(super::execute(query, context, parameters, &mut source)).await?;
            let values = source.take_values();
            let target = &*plan.target;
            let mut touched = Touched::of(target, values.len(), context.options);
            let stores = insert_rows(
                target,
                (types, &values),
                &mut touched,
                context,
                parameters,
                rows,
            );
            stores.await
        }
        InsertSource::Analytical(query) => Err(SqlError::internal(format!(
            "the source of the INSERT is not a short query ({})",
            query.reason
        ))),
    }
}

/// Stores rows of values of `types`, one value for each of the target's
/// columns: the rows of a COPY FROM, or of a query that ran elsewhere. Without
/// a transaction they are one, however many they are. `touched` is the statement's. Returns the rows
/// stored.
///
/// # Errors
/// As INSERT: 23502, 23505, 23514, 22001, …
pub async fn insert_rows(
    target: &InsertTarget,
    (types, values): (&[DataType], &[Vec<Value>]),
    touched: &mut Touched,
    context: &mut ExecContext<'_>,
    parameters: &[Value],
    rows: &mut RowWriter,
) -> Result<u64> {
    if types.len() != target.columns.len() {
        return Err(if types.len() > target.columns.len() {
            SqlError::syntax("INSERT has more expressions than target columns")
        } else {
            SqlError::syntax("INSERT has more target columns than expressions")
        });
    }
    let paths: Vec<CastPath> = types
        .iter()
        .zip(&target.columns)
        .map(|(from, column)| CastPath {
            from: *from,
            to: target.table.columns[*column].data_type,
            context: CastContext::Assignment,
        })
        .collect();
    let evaluation = EvalContext {
        parameters,
        now_us: context.now_us,
        session: context.session,
        styles: context.styles,
        outer: None,
    };
    let mut encoder = Encoder::new(target, evaluation, context.db.spread());
    let mut row: Vec<Datum<'_>> = Vec::with_capacity(target.table.columns.len());
    for given in values {
        encoder.add(&mut row, |position| {
            let value = given.get(position).map_or(ValueRef::Null, Value::as_ref);
            fitted(value, &paths[position], context.styles)
        })?;
    }
    store_all(&encoder.out, touched, context, parameters, rows).await
}

/// Stores rows in one transaction, whatever tables they go into.
async fn store_all(
    batches: &[Batch<'_>],
    touched: &mut Touched,
    context: &mut ExecContext<'_>,
    parameters: &[Value],
    rows: &mut RowWriter,
) -> Result<u64> {
    if let [(target, encoded)] = batches {
        return store(target, encoded, touched, context, parameters, rows).await;
    }
    let mut own = None;
    if batches.len() > 1 && context.txn.is_none() {
        own = Some(context.db.begin(Isolation::ReadCommitted, false));
    }
    let mut count = 0;
    for (target, encoded) in batches {
        let mut inner = context.within(own.as_mut());
        count += store(target, encoded, touched, &mut inner, parameters, rows).await?;
    }
    if let Some(own) = own {
        context.db.commit(own, context.options).await?;
    }
    Ok(count)
}

/// A value as one of a column.
pub(super) fn fitted<'v>(
    value: ValueRef<'v>,
    path: &CastPath,
    styles: &Styles,
) -> Result<Datum<'v>> {
    if matches!(value, ValueRef::Text(_)) && !path.from.is_text() {
        // What the sender has no other form for: a number of more digits than it holds.
        let read = CastPath {
            from: DataType::Text,
            context: CastContext::Explicit,
            ..*path
        };
        return read.apply(Datum::Ref(value), styles);
    }
    match path.from == path.to {
        true => Ok(Datum::Ref(value)),
        false => path.apply(Datum::Ref(value), styles),
    }
}

/// Stores encoded rows, in parts of bounded size.
async fn store(
    target: &InsertTarget,
    encoded: &Encoded,
    touched: &mut Touched,
    context: &mut ExecContext<'_>,
    parameters: &[Value],
    rows: &mut RowWriter,
) -> Result<u64> {
    touched.expect(encoded.tuples.len())?;
    let evaluation = EvalContext {
        parameters,
        now_us: context.now_us,
        session: context.session,
        styles: context.styles,
        outer: None,
    };
    let update = target
        .conflict
        .as_ref()
        .and_then(|conflict| conflict.update.as_ref());
    let update_refers = update.is_some_and(|update| update.refers);
    let chunks = encoded.chunks();
    let mut own = None;
    if chunks.len() > 1 && context.txn.is_none() {
        own = Some(context.db.begin(Isolation::ReadCommitted, false));
    }
    let one_shot = own.is_none() && context.txn.is_none();
    let mut count = 0;
    for chunk in chunks {
        let mark = rows.mark();
        let scope = encoded.scope(target, chunk.clone());
        let mut writer = Rewriter::default();
        let mut referring = Referring::default();
        let body = |access: &mut Access<'_>| -> std::result::Result<u64, Stop> {
            rows.rewind(mark);
            touched.begin_part();
            referring.clear();
            let mut stored = 0;
            for tuple in &encoded.tuples[chunk.clone()] {
                let tuple = &encoded.bytes[tuple.clone()];
                let outcome = match &target.conflict {
                    None => Outcome::Stored(access.insert(&target.table, tuple)?),
                    Some(conflict) if one_shot && conflict.replaces() => {
                        replace(access, target, tuple, touched)?
                    }
                    Some(conflict) => resolve(
                        access,
                        target,
                        conflict,
                        tuple,
                        &evaluation,
                        touched,
                        &mut writer,
                    )?,
                };
                let (row, shown) = match outcome {
                    Outcome::Skipped => continue,
                    Outcome::Stored(row) => (row, tuple),
                    Outcome::Updated(row) => (row, writer.tuple()),
                };
                let references = &target.references;
                match outcome {
                    // It refers to what it did.
                    Outcome::Updated(_) if !update_refers => {}
                    Outcome::Updated(_) => {
                        referring.add(references, row, Cow::Owned(shown.to_vec()));
                    }
                    _ => referring.add(references, row, Cow::Borrowed(tuple)),
                }
                stored += 1;
                if let Some(returning) = &target.returning {
                    let row = TupleRow {
                        table: &target.table,
                        tuple: shown,
                    };
                    write_row(returning, &row, &evaluation, rows)?;
                }
            }
            if !access.evicted() {
                referring.expect(access, &target.table, &target.references)?;
            }
            Ok(stored)
        };
        let txn = match own.as_mut() {
            Some(own) => Some(own),
            None => context.txn.as_deref_mut(),
        };
        count += run(context.db, txn, context.options, scope, body).await?;
        touched.end_part();
        if chunk.end < encoded.tuples.len() {
            give_way().await;
        }
    }
    if let Some(own) = own {
        context.db.commit(own, context.options).await?;
    }
    Ok(count)
}

#[derive(Clone, Copy)]
enum Outcome {
    /// As it was given.
    Stored(RowId),
    Updated(RowId),
    Skipped,
}

/// Stores a row or does what ON CONFLICT says.
fn resolve(
    access: &mut Access<'_>,
    target: &InsertTarget,
    conflict: &ConflictPlan,
    tuple: &[u8],
    context: &EvalContext<'_>,
    touched: &mut Touched,
    writer: &mut Rewriter,
) -> std::result::Result<Outcome, Stop> {
    let table = &*target.table;
    let Some(existing) = conflicting(access, table, &conflict.arbiters, tuple)? else {
        let row = store_free(access, table, &conflict.arbiters, tuple)?;
        touched.add(table, row);
        return Ok(Outcome::Stored(row));
    };
    let Some(update) = &conflict.update else {
        return Ok(Outcome::Skipped);
    };
    touched.verify(table, existing)?;
    // The row is locked first, so that what is read of it stays so.
    access.lock(table, existing)?;
    let Some(old) = access.tuple(table, existing)? else {
        return Ok(Outcome::Skipped);
    };
    let row = ConflictRow {
        table,
        existing: old,
        excluded: tuple,
    };
    if let Some(filter) = &update.filter
        && !filter.accepts(&row, context)?
    {
        return Ok(Outcome::Skipped);
    }
    let change = RowChange {
        assignments: &update.assignments,
        generated: &update.generated,
        checks: &target.checks,
    };
    writer.rewrite(table, old, &change, &row, context)?;
    let row = access.update(table, existing, writer.tuple())?;
    // It lies elsewhere if its partition key has changed.
    touched.add(table, row);
    Ok(Outcome::Updated(row))
}

/// Stores a row in the place of the one with its key, or as a new one.
fn replace(
    access: &mut Access<'_>,
    target: &InsertTarget,
    tuple: &[u8],
    touched: &mut Touched,
) -> std::result::Result<Outcome, Stop> {
    let table = &*target.table;
    let mut key = Vec::with_capacity(32);
    table.index_key_of(0, tuple, &mut key);
    let replaced = match table.never_conflicts(0, tuple) {
        true => None,
        false => access.overwrite(table, 0, &key, tuple)?,
    };
    let row = match replaced {
        Some(row) => {
            touched.verify(table, row)?;
            row
        }
        // The run will be taken back.
        None if access.evicted() => return Ok(Outcome::Skipped),
        None => access.insert(table, tuple)?,
    };
    touched.add(table, row);
    Ok(Outcome::Stored(row))
}

pub(super) fn second_time() -> Stop {
    let message = "ON CONFLICT DO UPDATE command cannot affect row a second time";
    SqlError::new("21000", message)
        .with_hint(
            "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.",
        )
        .into()
}

/// Stores a row of which no arbiter has the key, as far as the transaction sees.
///
/// # Errors
/// 40001 where another transaction has taken the key since the snapshot: ON CONFLICT cannot say
/// what then, since that row is not seen.
pub(super) fn store_free(
    access: &mut Access<'_>,
    table: &Table,
    arbiters: &[usize],
    tuple: &[u8],
) -> std::result::Result<RowId, Stop> {
    let is_arbiter = |name: &str| {
        let mut names = arbiters.iter().map(|index| &table.indexes[*index].name);
        names.any(|arbiter| arbiter == name)
    };
    let stored = access.insert(table, tuple);
    Ok(stored.map_err(|error| match error {
        Error::UniqueViolation { constraint, .. } if is_arbiter(&constraint) => {
            Error::Serialization("concurrent update")
        }
        error => error,
    })?)
}

/// The row that holds a key of `tuple` in one of the arbiter indexes.
pub(super) fn conflicting(
    access: &mut Access<'_>,
    table: &Table,
    arbiters: &[usize],
    tuple: &[u8],
) -> std::result::Result<Option<RowId>, Stop> {
    let mut found = Vec::new();
    let mut key = Vec::new();
    for index in arbiters {
        if table.never_conflicts(*index, tuple) {
            continue;
        }
        key.clear();
        table.index_key_of(*index, tuple, &mut key);
        access.find(table, *index, &key, &mut found)?;
        if let Some(row) = found.first() {
            return Ok(Some(*row));
        }
    }
    Ok(None)
}
