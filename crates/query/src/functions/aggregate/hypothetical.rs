//! Hypothetical sets: where a row would stand among those that came, by `rank`, `dense_rank`,
//! `percent_rank`, `cume_dist`.

use std::cmp::Ordering;

use super::super::{Aggregate, AggregateKind, AggregateState, SortKey};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::size;
use crate::types;

/// Which place of the row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Rank,
    DenseRank,
    PercentRank,
    CumulativeDistribution,
}

/// The rows in order, all keys of a row together; for `dense_rank` each once.
struct Rows {
    place: Place,
    keys: Vec<u32>,
    values: Vec<Datum>,
    held: usize,
    rows: u64,
    direct: Vec<Datum>,
    order: Vec<SortKey>,
}

impl Rows {
    fn state(call: &Call<'_>, place: Place) -> Box<dyn AggregateState> {
        let keys = call.arguments[call.arguments.len() / 2..].to_vec();
        Box::new(Self {
            place,
            keys,
            values: Vec::new(),
            held: 0,
            rows: 0,
            direct: Vec::new(),
            order: Vec::new(),
        })
    }

    /// The order of two rows.
    fn compare(&self, a: &[Datum], b: &[Datum]) -> Result<Ordering> {
        for (at, (a, b)) in a.iter().zip(b).enumerate() {
            let key = self.order.get(at).copied().unwrap_or_default();
            let nulls = if key.nulls_first {
                Ordering::Less
            } else {
                Ordering::Greater
            };
            let order = match (a.is_null(), b.is_null()) {
                (true, true) => Ordering::Equal,
                (true, false) => nulls,
                (false, true) => nulls.reverse(),
                (false, false) => {
                    let oid = self.keys.get(at).copied().unwrap_or(0);
                    let order = types::compare(oid, a, b)?;
                    if key.descending {
                        order.reverse()
                    } else {
                        order
                    }
                }
            };
            if order != Ordering::Equal {
                return Ok(order);
            }
        }
        Ok(Ordering::Equal)
    }

    fn is_again(&self, row: &[Datum]) -> Result<bool> {
        let Some(start) = self.values.len().checked_sub(row.len()) else {
            return Ok(false);
        };
        Ok(self.compare(&self.values[start..], row)? == Ordering::Equal)
    }

    /// How many of the rows stand before the hypothetical one; with its peers, if asked.
    fn before(&self, with_peers: bool) -> Result<usize> {
        let width = self.keys.len().max(1);
        // They are in order.
        let (mut low, mut high) = (0, self.values.len() / width);
        while low < high {
            let middle = low + (high - low) / 2;
            let row = &self.values[middle * width..(middle + 1) * width];
            let order = self.compare(row, &self.direct)?;
            if order == Ordering::Less || (with_peers && order == Ordering::Equal) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }
}

impl AggregateState for Rows {
    fn update(&mut self, _: &Call<'_>, arguments: &[Datum]) -> Result<()> {
        if arguments.len() != self.keys.len() {
            return Err(QueryError::internal(
                "wrong number of arguments in hypothetical-set function",
            ));
        }
        self.rows += 1;
        if self.place == Place::DenseRank && self.is_again(arguments)? {
            return Ok(());
        }
        self.held += arguments.iter().map(size::beyond).sum::<usize>();
        self.values.extend_from_slice(arguments);
        Ok(())
    }

    fn finish(&mut self, _: &Call<'_>, direct: &[Datum], order: &[SortKey]) -> Result<()> {
        if direct.len() != self.keys.len() {
            return Err(QueryError::internal(
                "wrong number of arguments in hypothetical-set function",
            ));
        }
        self.direct = direct.to_vec();
        self.order = order.to_vec();
        Ok(())
    }

    #[allow(clippy::cast_precision_loss, reason = "as PostgreSQL does")]
    fn value(&self, _: &Call<'_>) -> Result<Datum> {
        let before = self.before(self.place == Place::CumulativeDistribution)?;
        let rank = i64::try_from(before).unwrap_or(i64::MAX).saturating_add(1);
        Ok(match self.place {
            Place::Rank | Place::DenseRank => Datum::Int8(rank),
            Place::PercentRank if self.rows == 0 => Datum::Float8(0.0),
            Place::PercentRank => Datum::Float8((rank - 1) as f64 / self.rows as f64),
            Place::CumulativeDistribution => Datum::Float8(rank as f64 / (self.rows + 1) as f64),
        })
    }

    fn bytes(&self) -> usize {
        self.held
            + self.values.capacity() * size_of::<Datum>()
            + size::values(&self.direct)
            + size_of_val(self.order.as_slice())
    }
}

/// `rank`
pub(super) static RANK: Aggregate = Aggregate {
    kind: AggregateKind::Hypothetical,
    new: |call| Rows::state(call, Place::Rank),
};
/// `dense_rank`
pub(super) static DENSE_RANK: Aggregate = Aggregate {
    kind: AggregateKind::Hypothetical,
    new: |call| Rows::state(call, Place::DenseRank),
};
/// `percent_rank`
pub(super) static PERCENT_RANK: Aggregate = Aggregate {
    kind: AggregateKind::Hypothetical,
    new: |call| Rows::state(call, Place::PercentRank),
};
/// `cume_dist`
pub(super) static CUME_DIST: Aggregate = Aggregate {
    kind: AggregateKind::Hypothetical,
    new: |call| Rows::state(call, Place::CumulativeDistribution),
};
