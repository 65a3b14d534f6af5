//! From a path and the parameters to keys: which bytes are looked up, between
//! which bounds, in which partitions. Done once an execution, outside of the
//! partitions' locks.

use std::ops::{Bound, ControlFlow};

use thermocline_engine::{Access, Direction, RowId, Scope, Table};
use thermocline_storage::key;
use thermocline_values::value::{Value, ValueRef};

use super::Stop;
use super::pace::Pace;
use super::row::TupleRow;
use crate::error::Result;
use crate::expr::{Datum, EvalContext, NoRow};
use crate::plan::{Fit, KeyBound, KeyChoice, Path, Probe, Source, fit};

/// An interval of keys.
pub(crate) type KeyRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// What is looked for.
pub(crate) enum Keys {
    /// No row can match.
    Nothing,
    /// All rows.
    Scan,
    /// One full key of an index.
    Point(Vec<u8>),
    /// Several full keys.
    Points(Vec<Vec<u8>>),
    /// Intervals of a B+tree.
    Ranges(Vec<KeyRange>),
    /// One row.
    Row(RowId),
}

impl Keys {
    /// Evaluates the keys of `source`.
    ///
    /// # Errors
    /// What the expressions in them raise.
    pub(crate) fn of(source: &Source, context: &EvalContext<'_>) -> Result<Self> {
        match &source.path {
            Path::Scan => Ok(Self::Scan),
            Path::Row(number) => Ok(match number.evaluate(&NoRow, context)?.as_ref() {
                ValueRef::BigInt(number) => Self::Row(RowId::numbered(number.cast_unsigned())),
                _ => Self::Nothing,
            }),
            Path::Probe(probe) => keys_of(&source.table, probe, context),
        }
    }
}

/// Keys and where to look for them.
pub(crate) struct Lookup {
    pub(crate) keys: Keys,
    pub(crate) scope: Scope,
}

impl Lookup {
    /// Evaluates the keys of `source`.
    ///
    /// # Errors
    /// What the expressions in them raise.
    pub(crate) fn of(source: &Source, context: &EvalContext<'_>) -> Result<Self> {
        let table = &*source.table;
        let keys = Keys::of(source, context)?;
        if let Keys::Row(row) = keys {
            return Ok(Self {
                keys,
                scope: Scope::One(row.partition()),
            });
        }
        // One hash serves both when the index is over the partition key.
        if let (Path::Probe(probe), Keys::Point(bytes)) = (&source.path, &keys)
            && let Some(partition) = table.partition_of_index_key(probe.index, bytes)
        {
            return Ok(Self {
                keys,
                scope: Scope::One(partition),
            });
        }
        let scope = match &source.partition {
            None => Scope::All,
            Some(choices) => {
                let partitions = partitions_of(table, choices, context)?;
                match partitions.as_slice() {
                    [] => return Ok(Self::nothing()),
                    [one] => Scope::One(*one),
                    _ => Scope::Many(partitions),
                }
            }
        };
        if matches!(keys, Keys::Nothing) {
            return Ok(Self::nothing());
        }
        Ok(Self { keys, scope })
    }

    const fn nothing() -> Self {
        Self {
            keys: Keys::Nothing,
            scope: Scope::All,
        }
    }
}

/// Indexes of up to this many columns are looked up without allocating values.
const INLINE_COLUMNS: usize = 8;

fn keys_of(table: &Table, probe: &Probe, context: &EvalContext<'_>) -> Result<Keys> {
    let exact = probe.is_exact(table);
    let bounds = if exact {
        Bounds::default()
    } else {
        match Bounds::of(table, probe, context)? {
            Some(bounds) => bounds,
            None => return Ok(Keys::Nothing),
        }
    };
    let columns = &table.indexes[probe.index].columns;
    let width = probe.keys.len();
    if width <= INLINE_COLUMNS && probe.keys.iter().all(|choice| choice.len() == 1) {
        let mut given = [const { Datum::NULL }; INLINE_COLUMNS];
        for (datum, choice) in given.iter_mut().zip(&probe.keys) {
            *datum = choice[0].expr.evaluate(&NoRow, context)?;
        }
        let mut values = [ValueRef::Null; INLINE_COLUMNS];
        for (number, column) in columns[..width].iter().enumerate() {
            match fit(given[number].as_ref(), table.columns[*column].data_type) {
                Fit::Exact(value) => values[number] = value,
                _ => return Ok(Keys::Nothing),
            }
        }
        let values = &values[..width];
        return Ok(if exact {
            let mut key = Vec::with_capacity(32);
            table.encode_index_key(probe.index, values, &mut key);
            Keys::Point(key)
        } else {
            Keys::Ranges(vec![bounds.behind(table, probe.index, values)])
        });
    }
    let mut points = Vec::new();
    let mut ranges = Vec::new();
    combinations(table, columns, &probe.keys, context, |values| {
        if exact {
            let mut key = Vec::with_capacity(32);
            table.encode_index_key(probe.index, values, &mut key);
            points.push(key);
        } else {
            ranges.push(bounds.behind(table, probe.index, values));
        }
    })?;
    Ok(if exact {
        points.sort_unstable();
        points.dedup();
        match points.len() {
            0 => Keys::Nothing,
            1 => Keys::Point(points.swap_remove(0)),
            _ => Keys::Points(points),
        }
    } else if ranges.is_empty() {
        Keys::Nothing
    } else {
        Keys::Ranges(ranges)
    })
}

/// Calls `each` with the values of each whole key that a source asks for; false: it asks for no
/// whole keys.
pub(super) fn whole_keys(
    source: &Source,
    context: &EvalContext<'_>,
    each: impl FnMut(&[ValueRef<'_>]),
) -> Result<bool> {
    let table = &*source.table;
    let Path::Probe(probe) = &source.path else {
        return Ok(false);
    };
    if !probe.is_exact(table) {
        return Ok(false);
    }
    let columns = &table.indexes[probe.index].columns;
    combinations(table, columns, &probe.keys, context, each)?;
    Ok(true)
}

/// Calls `each` with every combination of the values that the columns may
/// have, each once; values that a column's type has not are left out.
fn combinations(
    table: &Table,
    columns: &[usize],
    choices: &[KeyChoice],
    context: &EvalContext<'_>,
    mut each: impl FnMut(&[ValueRef<'_>]),
) -> Result<()> {
    let mut alternatives = Vec::with_capacity(choices.len());
    for (choice, column) in choices.iter().zip(columns) {
        let data_type = table.columns[*column].data_type;
        let mut values = Vec::with_capacity(choice.len());
        for part in choice {
            let value = part.expr.evaluate(&NoRow, context)?;
            if let Fit::Exact(value) = fit(value.as_ref(), data_type) {
                values.push(value.to_owned());
            }
        }
        values.sort_unstable();
        values.dedup();
        alternatives.push(values);
    }
    let total: usize = alternatives.iter().map(Vec::len).product();
    let mut values = vec![ValueRef::Null; alternatives.len()];
    for number in 0..total {
        let mut rest = number;
        for (value, column) in values.iter_mut().zip(&alternatives).rev() {
            *value = column[rest % column.len()].as_ref();
            rest /= column.len();
        }
        each(&values);
    }
    Ok(())
}

/// The interval of the column behind the prefix.
struct Bounds {
    lower: Bound<Value>,
    upper: Bound<Value>,
    /// NULLs, which are the last keys, are outside.
    not_null: bool,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            lower: Bound::Unbounded,
            upper: Bound::Unbounded,
            not_null: false,
        }
    }
}

impl Bounds {
    /// `None`: no value lies between the bounds.
    fn of(table: &Table, probe: &Probe, context: &EvalContext<'_>) -> Result<Option<Self>> {
        let column = table.indexes[probe.index].columns[probe.keys.len()];
        let def = &table.columns[column];
        let mut bounds = Self {
            not_null: !def.not_null && (probe.lower.is_some() || probe.upper.is_some()),
            ..Self::default()
        };
        if let Some(KeyBound { part, inclusive }) = &probe.lower {
            let value = part.expr.evaluate(&NoRow, context)?;
            bounds.lower = match fit(value.as_ref(), def.data_type) {
                Fit::Exact(value) if *inclusive => Bound::Included(value.to_owned()),
                Fit::Exact(value) => Bound::Excluded(value.to_owned()),
                Fit::After(value) => Bound::Excluded(value),
                Fit::Below => Bound::Unbounded,
                Fit::Above | Fit::Null => return Ok(None),
            };
        }
        if let Some(KeyBound { part, inclusive }) = &probe.upper {
            let value = part.expr.evaluate(&NoRow, context)?;
            bounds.upper = match fit(value.as_ref(), def.data_type) {
                Fit::Exact(value) if *inclusive => Bound::Included(value.to_owned()),
                Fit::Exact(value) => Bound::Excluded(value.to_owned()),
                Fit::After(value) => Bound::Included(value),
                Fit::Above => Bound::Unbounded,
                Fit::Below | Fit::Null => return Ok(None),
            };
        }
        Ok(Some(bounds))
    }

    /// The interval of whole keys that begin with `prefix`. Keys may have more
    /// columns behind the bounded one: a bound is a prefix of them too.
    fn behind(&self, table: &Table, index: usize, prefix: &[ValueRef<'_>]) -> KeyRange {
        let encode = |last: Option<ValueRef<'_>>| {
            let mut key = Vec::with_capacity(32);
            match last {
                None => table.encode_index_key(index, prefix, &mut key),
                Some(last) => {
                    let mut values = prefix.to_vec();
                    values.push(last);
                    table.encode_index_key(index, &values, &mut key);
                }
            }
            key
        };
        let lower = match &self.lower {
            Bound::Included(value) => Bound::Included(encode(Some(value.as_ref()))),
            Bound::Excluded(value) => after(encode(Some(value.as_ref())), Bound::Included),
            Bound::Unbounded if prefix.is_empty() => Bound::Unbounded,
            Bound::Unbounded => Bound::Included(encode(None)),
        };
        let upper = match &self.upper {
            Bound::Excluded(value) => Bound::Excluded(encode(Some(value.as_ref()))),
            Bound::Included(value) => after(encode(Some(value.as_ref())), Bound::Excluded),
            Bound::Unbounded if self.not_null => Bound::Excluded(encode(Some(ValueRef::Null))),
            Bound::Unbounded => after(encode(None), Bound::Excluded),
        };
        (lower, upper)
    }
}

/// The bound after all keys that begin with `key`.
fn after(mut key: Vec<u8>, bound: fn(Vec<u8>) -> Bound<Vec<u8>>) -> Bound<Vec<u8>> {
    if key::prefix_successor(&mut key) {
        bound(key)
    } else {
        Bound::Unbounded
    }
}

fn partitions_of(
    table: &Table,
    choices: &[KeyChoice],
    context: &EvalContext<'_>,
) -> Result<Vec<u16>> {
    let mut partitions = Vec::new();
    combinations(table, &table.partition_key, choices, context, |values| {
        partitions.extend(table.partition_of_values(values));
    })?;
    partitions.sort_unstable();
    partitions.dedup();
    Ok(partitions)
}

/// Calls `each` with every row that `source` and its filter admit, in the
/// path's order, until it breaks, or until the statement leaves.
pub(crate) fn visit(
    access: &mut Access<'_>,
    source: &Source,
    keys: &Keys,
    context: &EvalContext<'_>,
    found: &mut Vec<RowId>,
    pace: &mut Pace<'_>,
    mut each: impl FnMut(RowId, &TupleRow<'_>) -> std::result::Result<ControlFlow<()>, Stop>,
) -> std::result::Result<(), Stop> {
    let table = &*source.table;
    let filter = source.filter.as_ref();
    let mut admitted = |row: RowId, tuple: &[u8]| {
        let tuple = TupleRow { table, tuple };
        pace.row_or_leave()?;
        match filter {
            Some(filter) if !filter.accepts(&tuple, context)? => Ok(ControlFlow::Continue(())),
            _ => each(row, &tuple),
        }
    };
    let (index, backward) = match &source.path {
        Path::Probe(probe) => (probe.index, probe.backward),
        Path::Scan | Path::Row(_) => (0, false),
    };
    match keys {
        Keys::Nothing => Ok(()),
        Keys::Point(key) => point(access, table, index, key, found, &mut admitted).map(|_| ()),
        Keys::Points(points) => {
            for key in points {
                if point(access, table, index, key, found, &mut admitted)?.is_break() {
                    break;
                }
            }
            Ok(())
        }
        Keys::Row(row) => match access.tuple(table, *row)? {
            Some(tuple) => admitted(*row, tuple).map(|_| ()),
            None => Ok(()),
        },
        Keys::Scan => {
            let mut stop = None;
            access.scan(table, &mut |row, tuple| {
                Ok(flow(admitted(row, tuple), &mut stop))
            })?;
            stop.map_or(Ok(()), Err)
        }
        Keys::Ranges(ranges) => {
            let direction = if backward {
                Direction::Descending
            } else {
                Direction::Ascending
            };
            // A join holds all partitions; its looks may be for one.
            let only = match &source.partition {
                Some(choices) if access.holds_several() => {
                    match partitions_of(table, choices, context)?.as_slice() {
                        [one] => Some(*one),
                        _ => None,
                    }
                }
                _ => None,
            };
            for (lower, upper) in ranges {
                if is_empty(lower, upper) {
                    continue;
                }
                let mut stop = None;
                let mut broke = false;
                let bounds = (
                    lower.as_ref().map(Vec::as_slice),
                    upper.as_ref().map(Vec::as_slice),
                );
                access.range_in(only, table, index, bounds, direction, &mut |row, tuple| {
                    let next = flow(admitted(row, tuple), &mut stop);
                    broke |= next.is_break();
                    Ok(next)
                })?;
                if let Some(stop) = stop {
                    return Err(stop);
                }
                if broke {
                    break;
                }
            }
            Ok(())
        }
    }
}

/// An interval that begins after it ends; B+trees need not expect one.
fn is_empty(lower: &Bound<Vec<u8>>, upper: &Bound<Vec<u8>>) -> bool {
    match (lower, upper) {
        (Bound::Included(lower) | Bound::Excluded(lower), Bound::Excluded(upper)) => lower >= upper,
        (Bound::Included(lower), Bound::Included(upper)) => lower > upper,
        (Bound::Excluded(lower), Bound::Included(upper)) => lower >= upper,
        _ => false,
    }
}

fn point(
    access: &mut Access<'_>,
    table: &Table,
    index: usize,
    key: &[u8],
    found: &mut Vec<RowId>,
    admitted: &mut impl FnMut(RowId, &[u8]) -> std::result::Result<ControlFlow<()>, Stop>,
) -> std::result::Result<ControlFlow<()>, Stop> {
    // Other unique indexes may have many rows of one key, with a NULL in it.
    if table.def.indexes[index].primary {
        return match access.get(table, index, key)? {
            Some((row, tuple)) => admitted(row, tuple),
            None => Ok(ControlFlow::Continue(())),
        };
    }
    found.clear();
    access.find(table, index, key, found)?;
    for row in found.iter() {
        let Some(tuple) = access.tuple(table, *row)? else {
            continue;
        };
        if admitted(*row, tuple)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Keeps a failure for after the engine's scan, which it ends.
fn flow(
    result: std::result::Result<ControlFlow<()>, Stop>,
    stop: &mut Option<Stop>,
) -> ControlFlow<()> {
    match result {
        Ok(flow) => flow,
        Err(error) => {
            *stop = Some(error);
            ControlFlow::Break(())
        }
    }
}
