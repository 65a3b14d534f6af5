//! How a scan comes to its rows: through all of them, or by the keys of an index. The keys are what
//! constants of the filters bound, or what the other side of a join has ([`super::learned`]); how
//! many rows they lead to is counted in the index. Whatever is read this way is asked again above.

use std::ops::Bound;
use std::sync::Arc;

use datafusion::logical_expr::Expr as DfExpr;
use thermocline_analytical::pushed::{Asked, Comparison as Sign, conditions};
use thermocline_engine::{IndexKeys, Result as EngineResult, Snapshot, Table};
use thermocline_query::datum::Datum;
use thermocline_values::types::DataType;
use thermocline_values::value::Value;
use tokio::sync::OnceCell;

use super::learned::Learned;
use crate::exec::{Keys, Lookup};
use crate::expr::{Comparison, EvalContext, Expr};
use crate::plan::{Source, choose};
use crate::typed::value;

/// Of so many rows of a table one may be read by its key before reading all is better.
const ROWS_TO_ONE_BY_KEY: u64 = 10;
/// ... of a table of columns, whose groups are read much faster than rows of them.
const ROWS_OF_COLUMNS_TO_ONE_BY_KEY: u64 = 200;
/// So few are read by their keys however small the table is.
const ROWS_BY_KEY_ALWAYS: u64 = 64;

/// Looking for a key costs as much as reading so many rows one after the other.
const ROWS_TO_A_PROBE: u64 = 6;
/// So often keys are looked for however small the table is.
const PROBES_ALWAYS: u64 = 256;

/// How many rows of a table of so many are read by their keys.
pub(super) fn rows_by_key(table: &Table, rows: u64) -> u64 {
    let to_one = match table.is_columns() {
        true => ROWS_OF_COLUMNS_TO_ONE_BY_KEY,
        false => ROWS_TO_ONE_BY_KEY,
    };
    (rows / to_one).max(ROWS_BY_KEY_ALWAYS)
}

/// How often indexes are asked for keys of a table of so many rows: that, and what it costs to find out
/// how many rows they lead to, is as much as reading some rows.
pub(super) fn probes_by_key(rows: u64) -> u64 {
    (rows / ROWS_TO_A_PROBE).max(PROBES_ALWAYS)
}

/// See the head of this file.
#[derive(Default)]
pub(super) struct Way {
    /// What constants bound, and the entries that the index has of it.
    bound: Option<(Arc<IndexKeys>, u64)>,
    /// Columns that equal a constant.
    pub equal: Vec<(usize, Value)>,
    /// What joins tell.
    learned: Vec<Arc<Learned>>,
    chosen: OnceCell<Option<Arc<IndexKeys>>>,
}

impl Way {
    /// What these filters of a scan say. `rows`: about how many the table has.
    ///
    /// # Errors
    /// As a scan's.
    pub async fn of(
        table: &Arc<Table>,
        filters: &[DfExpr],
        snapshot: &Snapshot,
        rows: u64,
    ) -> EngineResult<Self> {
        let conjuncts = conjuncts(table, filters);
        let equal = conjuncts.iter().filter_map(|conjunct| match conjunct {
            Expr::Compare(Comparison::Equal, column, constant) => match (&**column, &**constant) {
                (Expr::Column(column), Expr::Constant(value)) => Some((*column, value.clone())),
                _ => None,
            },
            _ => None,
        });
        let mut way = Self {
            equal: equal.collect(),
            ..Self::default()
        };
        let partitions = snapshot.database().partitions();
        let keys = keys_of(table, conjuncts);
        if let Some(keys) = keys.filter(|keys| keys.probes(partitions) <= probes_by_key(rows)) {
            let most = rows_by_key(table, rows);
            let count = snapshot.count_keys(table, &keys, most).await?;
            way.bound = (count <= most).then(|| (Arc::new(keys), count));
        }
        Ok(way)
    }

    /// About how many rows there are, where an index knows.
    pub fn rows(&self) -> Option<u64> {
        self.bound.as_ref().map(|(_, rows)| *rows)
    }

    /// Whether a join tells it keys.
    pub fn learns(&self) -> bool {
        !self.learned.is_empty()
    }

    /// The same, with what a join will tell, and not yet chosen.
    pub fn with(&self, learned: Option<Arc<Learned>>) -> Self {
        Self {
            bound: self.bound.clone(),
            equal: self.equal.clone(),
            learned: self.learned.iter().cloned().chain(learned).collect(),
            chosen: OnceCell::new(),
        }
    }

    /// The keys to read by; `None`: all rows are read.
    ///
    /// # Errors
    /// As a scan's.
    pub async fn choose(
        &self,
        table: &Arc<Table>,
        snapshot: &Snapshot,
        rows: u64,
    ) -> EngineResult<Option<Arc<IndexKeys>>> {
        let choice = async {
            let mut best = self.bound.clone();
            let most = rows_by_key(table, rows);
            for learned in &self.learned {
                if best
                    .as_ref()
                    .is_some_and(|(_, count)| *count <= ROWS_BY_KEY_ALWAYS)
                {
                    break;
                }
                let Some(keys) = learned.keys().await else {
                    continue;
                };
                let most = best.as_ref().map_or(most, |(_, count)| *count);
                let count = snapshot.count_keys(table, &keys, most).await?;
                if count <= most {
                    best = Some((Arc::new(keys), count));
                }
            }
            Ok(best.map(|(keys, _)| keys))
        };
        self.chosen.get_or_try_init(|| choice).await.cloned()
    }

    /// As EXPLAIN shows it: an index's name, and where its keys come from.
    pub fn shown<'t>(&self, table: &'t Table) -> Vec<(&'t str, &'static str)> {
        let name = |index: usize| table.indexes[index].name.as_str();
        let bound = self
            .bound
            .iter()
            .map(|(keys, _)| (name(keys.index()), "constants"));
        let learned = self.learned.iter().map(|one| (name(one.index()), "a join"));
        bound.chain(learned).collect()
    }
}

/// Whether an index may bound the rows of which a filter is true.
pub(super) fn may_bound(table: &Arc<Table>, filter: &DfExpr) -> bool {
    let leads = |column: &usize| {
        let mut indexes = table.indexes.iter();
        indexes.any(|index| index.columns.contains(column))
    };
    let columns = conjuncts(table, std::slice::from_ref(filter)).into_iter();
    let columns = columns.filter_map(|conjunct| match conjunct {
        Expr::Compare(_, column, _)
        | Expr::InList {
            operand: column, ..
        } => match *column {
            Expr::Column(column) => Some(column),
            _ => None,
        },
        _ => None,
    });
    columns.into_iter().any(|column| leads(&column))
}

/// What filters ask of columns that keys can tell, as the short path's conditions.
fn conjuncts(table: &Table, filters: &[DfExpr]) -> Vec<Expr> {
    let place = |name: &str| table.columns.iter().position(|column| column.name == name);
    let oid = |name: &str| Some(table.columns.get(place(name)?)?.data_type.oid());
    let mut conjuncts = Vec::new();
    for condition in filters.iter().flat_map(|filter| conditions(filter, &oid)) {
        let Some(column) = place(&condition.column) else {
            continue;
        };
        let of = table.columns[column].data_type;
        let constant = |value: &Datum| constant_of(value, of).map(Expr::Constant);
        let operand = Box::new(Expr::Column(column));
        match &condition.asked {
            Asked::Compare(sign, value) => {
                if let (Some(sign), Some(value)) = (comparison(*sign), constant(value)) {
                    conjuncts.push(Expr::Compare(sign, operand, Box::new(value)));
                }
            }
            Asked::In(values) => {
                let list: Option<Vec<Expr>> = values.iter().map(constant).collect();
                if let Some(list) = list {
                    conjuncts.push(Expr::InList {
                        operand,
                        list,
                        negated: false,
                    });
                }
            }
            Asked::Null(_) => {}
        }
    }
    conjuncts
}

const fn comparison(sign: Sign) -> Option<Comparison> {
    Some(match sign {
        Sign::Equal => Comparison::Equal,
        Sign::Less => Comparison::Less,
        Sign::AtMost => Comparison::LessOrEqual,
        Sign::Greater => Comparison::Greater,
        Sign::AtLeast => Comparison::GreaterOrEqual,
        Sign::Other => return None,
    })
}

/// A constant that keys of a column of this type can be compared with.
pub(super) fn constant_of(value: &Datum, of: DataType) -> Option<Value> {
    let value = match value {
        Datum::Numeric(number) => value::of_numeric(number).ok()?,
        value => value::borrowed(value)?.to_owned(),
    };
    let is_number = of.is_integer() || matches!(of, DataType::Numeric { .. });
    let suits = match value {
        Value::SmallInt(_) | Value::Integer(_) | Value::BigInt(_) | Value::Numeric(_) => is_number,
        Value::Text(_) => matches!(of, DataType::Text | DataType::Varchar(_)),
        Value::Bytea(_) => matches!(of, DataType::Bytea),
        Value::Uuid(_) => matches!(of, DataType::Uuid),
        Value::Boolean(_) => matches!(of, DataType::Boolean),
        Value::Date(_) => matches!(of, DataType::Date),
        Value::Timestamp(_) => matches!(of, DataType::Timestamp | DataType::TimestampTo(_)),
        Value::TimestampTz(_) => {
            matches!(of, DataType::TimestampTz | DataType::TimestampTzTo(_))
        }
        _ => false,
    };
    suits.then_some(value)
}

/// The values of the lists that filters ask for.
pub(super) fn listed(table: &Table, filters: &[DfExpr]) -> usize {
    let lists = conjuncts(table, filters).into_iter();
    let lists = lists.filter_map(|conjunct| match conjunct {
        Expr::InList { list, .. } => Some(list.len()),
        _ => None,
    });
    lists.sum()
}

/// What filters ask of a table with one index; `None`: nothing.
pub(super) fn source_in(table: &Arc<Table>, filters: &[DfExpr]) -> Option<Source> {
    let conjuncts = conjuncts(table, filters);
    let asked = (!conjuncts.is_empty()).then_some(Expr::And(conjuncts))?;
    Some(choose(table, Some(asked), &[], || false).0)
}

/// The keys of the index that bounds the rows best, by what is known of indexes alone.
fn keys_of(table: &Arc<Table>, conjuncts: Vec<Expr>) -> Option<IndexKeys> {
    if conjuncts.is_empty() {
        return None;
    }
    let (source, _) = choose(table, Some(Expr::And(conjuncts)), &[], || false);
    let crate::plan::Path::Probe(probe) = &source.path else {
        return None;
    };
    let index = probe.index;
    let columns = table.indexes[index].columns.len();
    let points = |points: Vec<Vec<u8>>| {
        let points = points.into_iter().map(Vec::into_boxed_slice).collect();
        IndexKeys::points(table, index, points, columns)
    };
    match Lookup::of(&source, &EvalContext::none()).ok()?.keys {
        Keys::Nothing => Some(points(Vec::new())),
        Keys::Point(point) => Some(points(vec![point])),
        Keys::Points(all) => Some(points(all)),
        Keys::Ranges(ranges) => {
            let all = |range: &(Bound<Vec<u8>>, Bound<Vec<u8>>)| {
                matches!(range, (Bound::Unbounded, Bound::Unbounded))
            };
            let is_bounded = !ranges.iter().any(all);
            is_bounded.then(|| IndexKeys::intervals(table, index, ranges))
        }
        Keys::Scan | Keys::Row(_) => None,
    }
}
