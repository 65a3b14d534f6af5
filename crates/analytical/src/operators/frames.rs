//! The frames of a window's rows, within one partition.

use std::sync::Arc;

use thermocline_query::call::Call;
use thermocline_query::datum::Datum;
use thermocline_query::error::{QueryError, Result};
use thermocline_query::functions::{self, Body};
use thermocline_query::tree::{Exclusion, Expr, FrameUnit};
use thermocline_query::types::ids;

use crate::evaluate::{Context, RowValues};
use crate::sort_key::{self, Direction};

/// The bound of a frame.
#[derive(Clone, Debug)]
pub enum Edge {
    /// The partition's.
    Unbounded,
    /// So many before.
    Preceding(Expr),
    /// The current row, or its peers.
    Current,
    /// So many after.
    Following(Expr),
}

/// How frames are made.
#[derive(Clone, Debug)]
pub struct Frame {
    /// What the bounds count.
    pub unit: FrameUnit,
    /// Where a frame begins.
    pub start: Edge,
    /// Where it ends.
    pub end: Edge,
    /// What is left out.
    pub exclusion: Exclusion,
    /// The first key of the order, for a range.
    pub order: Option<(Expr, Direction)>,
}

/// The rows that are equal in the order.
pub struct Peers {
    /// For each row its group.
    pub group: Vec<usize>,
    /// Where groups begin; the last entry is the number of rows.
    pub starts: Vec<usize>,
}

impl Peers {
    /// Of rows with these keys.
    pub fn new<'k>(keys: impl Iterator<Item = &'k [u8]>) -> Self {
        let (mut group, mut starts) = (Vec::new(), Vec::new());
        let mut before: Option<&[u8]> = None;
        for key in keys {
            if before != Some(key) {
                starts.push(group.len());
            }
            before = Some(key);
            group.push(starts.len() - 1);
        }
        starts.push(group.len());
        Self { group, starts }
    }

    /// The rows of a row's group.
    #[must_use]
    pub fn of(&self, row: usize) -> (usize, usize) {
        let group = self.group[row];
        (self.starts[group], self.starts[group + 1])
    }
}

fn count_of(value: &Datum, end: bool) -> Result<usize> {
    let which = if end { "ending" } else { "starting" };
    let count = match value {
        Datum::Null => {
            return Err(QueryError::new(
                "22004",
                format!("frame {which} offset must not be null"),
            ));
        }
        Datum::Int2(count) => i64::from(*count),
        Datum::Int4(count) => i64::from(*count),
        Datum::Int8(count) => *count,
        _ => return Err(QueryError::internal("an offset that is no number")),
    };
    usize::try_from(count).map_err(|_| {
        QueryError::new(
            "22013",
            format!("frame {which} offset must not be negative"),
        )
    })
}

impl Frame {
    /// The frames of all rows, from first to last plus one.
    ///
    /// # Errors
    /// 22013 and others of offsets.
    pub fn bounds(
        &self,
        context: &Context,
        rows: &[&dyn RowValues],
        peers: &Peers,
    ) -> Result<Vec<(usize, usize)>> {
        let Some(first) = rows.first() else {
            return Ok(Vec::new());
        };
        let offset = |edge: &Edge| match edge {
            Edge::Preceding(expr) | Edge::Following(expr) => {
                context.evaluator.evaluate(expr, *first).map(Some)
            }
            _ => Ok(None),
        };
        let offsets = [offset(&self.start)?, offset(&self.end)?];
        let mut counts = [0, 0];
        let mut range = None;
        for (end, value) in offsets.iter().enumerate() {
            let Some(value) = value else { continue };
            if self.unit != FrameUnit::Range {
                counts[end] = count_of(value, end == 1)?;
            } else if value.is_null() {
                count_of(value, end == 1)?;
            } else if range.is_none() {
                range = Some(self.range(context, rows)?);
            }
        }
        let mut bounds = Vec::with_capacity(rows.len());
        for row in 0..rows.len() {
            let edge = |edge: &Edge, end: bool| -> Result<usize> {
                let place = usize::from(end);
                if let (Some(range), Some(offset)) = (&range, &offsets[place]) {
                    let before = matches!(edge, Edge::Preceding(_));
                    return range.edge(context, row, peers, offset, before, end);
                }
                Ok(self.edge(edge, end, counts[place], row, rows.len(), peers))
            };
            let start = edge(&self.start, false)?;
            let end = edge(&self.end, true)?;
            bounds.push((start, end.max(start)));
        }
        Ok(bounds)
    }

    fn edge(
        &self,
        edge: &Edge,
        end: bool,
        count: usize,
        row: usize,
        rows: usize,
        peers: &Peers,
    ) -> usize {
        let group = peers.group[row];
        let groups = peers.starts.len() - 1;
        match (edge, self.unit) {
            (Edge::Unbounded, _) => {
                if end {
                    rows
                } else {
                    0
                }
            }
            (Edge::Current, FrameUnit::Rows) => row + usize::from(end),
            (Edge::Current, _) => peers.starts[group + usize::from(end)],
            (Edge::Preceding(_), FrameUnit::Groups) => match group.checked_sub(count) {
                Some(group) => peers.starts[group + usize::from(end)],
                None => 0,
            },
            (Edge::Following(_), FrameUnit::Groups) => {
                let group = group.saturating_add(count);
                if group >= groups {
                    rows
                } else {
                    peers.starts[group + usize::from(end)]
                }
            }
            (Edge::Preceding(_), _) => (row + usize::from(end)).saturating_sub(count),
            (Edge::Following(_), _) => row
                .saturating_add(count)
                .saturating_add(usize::from(end))
                .min(rows),
        }
    }

    fn range(&self, context: &Context, rows: &[&dyn RowValues]) -> Result<Range> {
        let Some((expr, direction)) = &self.order else {
            return Err(QueryError::internal("a range without an order"));
        };
        let mut oid = expr.oid;
        let mut values = Vec::with_capacity(rows.len());
        for row in rows {
            let value = context.evaluator.evaluate(expr, *row)?;
            values.push(match value {
                // Compared as timestamps, since an interval may be less than a day.
                Datum::Date(i32::MIN) => Datum::Timestamp(i64::MIN),
                Datum::Date(i32::MAX) => Datum::Timestamp(i64::MAX),
                Datum::Date(days) => {
                    Datum::Timestamp(i64::from(days).saturating_mul(86_400_000_000))
                }
                value => value,
            });
        }
        if oid == ids::DATE {
            oid = ids::TIMESTAMP;
        }
        let keys = values.iter().map(|value| {
            let mut key = Vec::new();
            sort_key::directed(oid, value, *direction, &mut key).map(|()| key)
        });
        let keys = keys.collect::<Result<Vec<_>>>()?;
        let is_value = |value: &Datum| !value.is_null();
        let first = values.iter().position(is_value).unwrap_or(0);
        let last = values.iter().rposition(is_value).map_or(first, |at| at + 1);
        Ok(Range {
            oid,
            direction: *direction,
            keys,
            values,
            first,
            last,
        })
    }
}

/// A partition's values in their order.
struct Range {
    oid: u32,
    direction: Direction,
    keys: Vec<Vec<u8>>,
    values: Vec<Datum>,
    /// Where the values that are not NULL begin and end.
    first: usize,
    last: usize,
}

/// A value so far away from another.
enum Far {
    At(Datum),
    /// Below or above all.
    Beyond(bool),
    /// Infinite and not to be told: all are in range but what is not a number. The least and the
    /// greatest other value.
    All([Datum; 2]),
}

impl Range {
    fn edge(
        &self,
        context: &Context,
        row: usize,
        peers: &Peers,
        offset: &Datum,
        before: bool,
        end: bool,
    ) -> Result<usize> {
        let value = &self.values[row];
        if value.is_null() {
            let (start, stop) = peers.of(row);
            return Ok(if end { stop } else { start });
        }
        let minus = before != self.direction.descending;
        let far = match far(context, self.oid, value, offset, minus)? {
            Far::All([least, greatest]) => Far::At(if end == self.direction.descending {
                least
            } else {
                greatest
            }),
            far => far,
        };
        Ok(match far {
            Far::All(_) => self.first,
            Far::Beyond(above) if above != self.direction.descending => self.last,
            Far::Beyond(_) => self.first,
            Far::At(bound) => {
                let mut key = Vec::new();
                sort_key::directed(self.oid, &bound, self.direction, &mut key)?;
                match end {
                    false => self.keys.partition_point(|other| *other < key),
                    true => self.keys.partition_point(|other| *other <= key),
                }
                .clamp(self.first, self.last)
            }
        })
    }
}

#[cold]
fn negative() -> QueryError {
    QueryError::new(
        "22013",
        "invalid preceding or following size in window function",
    )
}

fn far(context: &Context, oid: u32, value: &Datum, offset: &Datum, minus: bool) -> Result<Far> {
    let whole = |value: &Datum| match value {
        Datum::Int2(value) => Some(i128::from(*value)),
        Datum::Int4(value) => Some(i128::from(*value)),
        Datum::Int8(value) => Some(i128::from(*value)),
        _ => None,
    };
    if let (Some(base), Some(by)) = (whole(value), whole(offset)) {
        if by < 0 {
            return Err(negative());
        }
        let bound = if minus { base - by } else { base + by };
        let fitted = match value {
            Datum::Int2(_) => i16::try_from(bound).ok().map(Datum::Int2),
            Datum::Int4(_) => i32::try_from(bound).ok().map(Datum::Int4),
            _ => i64::try_from(bound).ok().map(Datum::Int8),
        };
        return Ok(fitted.map_or(Far::Beyond(!minus), Far::At));
    }
    let float = |value: &Datum| match value {
        Datum::Float4(value) => Some(f64::from(*value)),
        Datum::Float8(value) => Some(*value),
        _ => None,
    };
    if let (Some(base), Some(by)) = (float(value), float(offset)) {
        if by.is_nan() || by < 0.0 {
            return Err(negative());
        }
        let bound = if minus { base - by } else { base + by };
        if bound.is_nan() && !base.is_nan() {
            let ends = [f64::NEG_INFINITY, f64::INFINITY];
            return Ok(Far::All(ends.map(Datum::Float8)));
        }
        return Ok(Far::At(Datum::Float8(bound)));
    }
    if let (Datum::Numeric(base), Datum::Numeric(by)) = (value, offset) {
        use thermocline_query::types::numeric::Numeric;
        if by.sign() < 0 || matches!(by, Numeric::NaN) {
            return Err(negative());
        }
        let bound = if minus { base.sub(by)? } else { base.add(by)? };
        if matches!(bound, Numeric::NaN) && !matches!(base, Numeric::NaN) {
            let ends = [Numeric::NegativeInfinity, Numeric::Infinity];
            return Ok(Far::All(ends.map(Datum::Numeric)));
        }
        return Ok(Far::At(Datum::Numeric(bound)));
    }
    if let Datum::Interval(by) = offset {
        let mut key = Vec::new();
        sort_key::key(ids::INTERVAL, offset, &mut key)?;
        let mut zero = Vec::new();
        let nothing = Datum::Interval(thermocline_query::types::interval::Interval::default());
        sort_key::key(ids::INTERVAL, &nothing, &mut zero)?;
        if key < zero {
            return Err(negative());
        }
        if let Datum::Time(base) = value {
            // A time does not come around.
            let bound = if minus {
                base.checked_sub(by.micros)
            } else {
                base.checked_add(by.micros)
            };
            return Ok(bound.map_or(Far::Beyond(!minus), |bound| Far::At(Datum::Time(bound))));
        }
        let name = match (oid, minus) {
            (ids::TIMESTAMP, false) => "timestamp_pl_interval",
            (ids::TIMESTAMP, true) => "timestamp_mi_interval",
            (ids::TIMESTAMPTZ, false) => "timestamptz_pl_interval",
            (ids::TIMESTAMPTZ, true) => "timestamptz_mi_interval",
            (ids::INTERVAL, false) => "interval_pl",
            (ids::INTERVAL, true) => "interval_mi",
            _ => return Err(unsupported(oid)),
        };
        let Some(Body::Row(body)) = functions::named(name).first().map(|function| function.body)
        else {
            return Err(unsupported(oid));
        };
        let types: Arc<[u32]> = Arc::new([oid, ids::INTERVAL]);
        let call = Call::new(context.environment.as_ref(), &types, oid);
        return Ok(Far::At(body(&call, &[value.clone(), offset.clone()])?));
    }
    Err(unsupported(oid))
}

#[cold]
fn unsupported(oid: u32) -> QueryError {
    QueryError::unsupported(
        format!(
            "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {}",
            thermocline_query::types::format_type(oid, -1)
        ),
        "Use ROWS, or order by a number or a time.",
    )
}
