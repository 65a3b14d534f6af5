//! About how many rows a plan gives: known of tables, guessed of what is made of them. The guesses of
//! conditions are those of systems without statistics; a unique key tells how many rows have a value.

use std::collections::HashMap;

use datafusion::common::{JoinType, ScalarValue};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{BinaryExpr, Expr, FetchType, LogicalPlan, Operator};

/// The share of rows that equal a constant, where nothing is known of the column.
const EQUAL: f64 = 0.05;
/// ... that are on one side of one.
const RANGE: f64 = 0.33;
/// ... of which any other condition is true.
const OTHER: f64 = 0.25;
/// Rows of what nothing is known of.
const UNKNOWN_ROWS: f64 = 1000.0;
/// Values of a column of so many rows, where nothing is known of it: one to so many.
const ROWS_TO_A_VALUE: f64 = 10.0;

/// About how many rows there are, and of columns with unique values how many values.
#[derive(Default)]
pub(crate) struct Estimate {
    pub rows: f64,
    distinct: HashMap<String, f64>,
}

impl Estimate {
    /// So many rows, of whose columns nothing is known.
    fn of(rows: f64) -> Self {
        Self {
            rows,
            distinct: HashMap::new(),
        }
    }
}

/// See the head of this file.
pub(crate) fn estimate(plan: &LogicalPlan) -> Estimate {
    let mut estimate = unbounded(plan);
    estimate.rows = estimate.rows.max(1.0);
    estimate
}

fn unbounded(plan: &LogicalPlan) -> Estimate {
    match plan {
        LogicalPlan::TableScan(scan) => {
            let provider = source_as_provider(&scan.source).ok();
            let statistics = provider.and_then(|provider| provider.statistics());
            let Some(statistics) = statistics else {
                return Estimate::of(UNKNOWN_ROWS);
            };
            let schema = scan.source.schema();
            let columns = schema.fields().iter().zip(&statistics.column_statistics);
            let known = columns.filter_map(|(field, column)| {
                let distinct = *column.distinct_count.get_value()?;
                Some((field.name().clone(), distinct as f64))
            });
            let rows = statistics.num_rows.get_value();
            Estimate {
                rows: rows.map_or(UNKNOWN_ROWS, |rows| *rows as f64),
                distinct: known.collect(),
            }
        }
        LogicalPlan::Projection(projection) => {
            let inner = estimate(&projection.input);
            let named = projection.expr.iter().filter_map(|expr| {
                let name = expr.schema_name().to_string();
                let Expr::Column(column) = expr.clone().unalias() else {
                    return None;
                };
                Some((name, *inner.distinct.get(&column.name)?))
            });
            let distinct = named.collect();
            Estimate {
                rows: inner.rows,
                distinct,
            }
        }
        LogicalPlan::Filter(filter) => {
            let mut inner = estimate(&filter.input);
            inner.rows *= share(&filter.predicate, &inner);
            inner
        }
        LogicalPlan::Limit(limit) => {
            let mut inner = estimate(&limit.input);
            if let Ok(FetchType::Literal(Some(fetch))) = limit.get_fetch_type() {
                inner.rows = inner.rows.min(fetch as f64);
            }
            inner
        }
        LogicalPlan::Aggregate(aggregate) => {
            let inner = estimate(&aggregate.input);
            if aggregate.group_expr.is_empty() {
                return Estimate::of(1.0);
            }
            let rows = (inner.rows / ROWS_TO_A_VALUE).max(1.0);
            if let [Expr::Column(column)] = aggregate.group_expr.as_slice() {
                let known = inner.distinct.get(&column.name).copied();
                return Estimate {
                    rows: known.map_or(rows, |known| known.min(inner.rows)),
                    distinct: HashMap::from([(column.name.clone(), known.unwrap_or(rows))]),
                };
            }
            Estimate::of(rows)
        }
        LogicalPlan::Join(join) => {
            let (left, right) = (estimate(&join.left), estimate(&join.right));
            let rows = match join.join_type {
                JoinType::Inner | JoinType::Full => left.rows.max(right.rows),
                JoinType::Left | JoinType::LeftMark => left.rows,
                JoinType::Right | JoinType::RightMark => right.rows,
                JoinType::LeftSemi | JoinType::LeftAnti => left.rows / 2.0,
                JoinType::RightSemi | JoinType::RightAnti => right.rows / 2.0,
            };
            let mut distinct = left.distinct;
            distinct.extend(right.distinct);
            Estimate { rows, distinct }
        }
        LogicalPlan::Union(union) => {
            let rows = union.inputs.iter().map(|input| estimate(input).rows);
            Estimate::of(rows.sum())
        }
        LogicalPlan::Values(values) => Estimate::of(values.values.len() as f64),
        LogicalPlan::EmptyRelation(_) => Estimate::of(1.0),
        plan => {
            let mut inputs = plan.inputs().into_iter();
            let first = inputs.next().map(estimate);
            first.unwrap_or_else(|| Estimate::of(UNKNOWN_ROWS))
        }
    }
}

/// The share of rows of which a condition is true.
fn share(condition: &Expr, of: &Estimate) -> f64 {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::And => share(left, of) * share(right, of),
            Operator::Or => (share(left, of) + share(right, of)).min(1.0),
            Operator::Eq => equal(left, of).min(equal(right, of)),
            Operator::NotEq => 1.0 - EQUAL,
            Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => RANGE,
            _ => OTHER,
        },
        Expr::InList(list) => {
            let some = (equal(&list.expr, of) * list.list.len() as f64).min(0.5);
            if list.negated { 1.0 - some } else { some }
        }
        Expr::Not(inner) => 1.0 - share(inner, of),
        Expr::IsNull(_) => EQUAL,
        Expr::IsNotNull(_) => 1.0 - EQUAL,
        Expr::Literal(ScalarValue::Boolean(Some(value)), _) => f64::from(u8::from(*value)),
        Expr::Column(_) => 0.5,
        _ => OTHER,
    }
}

/// The share of rows in which this has one of its values.
fn equal(expr: &Expr, of: &Estimate) -> f64 {
    let column = match expr {
        Expr::Column(column) => column,
        Expr::Cast(cast) => match cast.expr.as_ref() {
            Expr::Column(column) => column,
            _ => return EQUAL,
        },
        _ => return EQUAL,
    };
    let known = of.distinct.get(&column.name);
    known.map_or(EQUAL, |distinct| 1.0 / distinct.max(1.0))
}

/// Columns that keys of joins make equal to each other, and how many values they have.
#[derive(Default)]
pub(crate) struct Classes {
    class_of: HashMap<String, usize>,
    distinct: Vec<Option<f64>>,
}

impl Classes {
    /// Both sides of a key are of one class.
    pub fn join(&mut self, left: &Expr, right: &Expr) {
        let sides = [left, right].map(Expr::column_refs);
        let class = self.distinct.len();
        self.distinct.push(None);
        for column in sides.iter().flatten() {
            // Whatever a column was equal to before is of the class, too.
            if let Some(before) = self.class_of.insert(column.name.clone(), class) {
                let others = self.class_of.values_mut().filter(|of| **of == before);
                others.for_each(|of| *of = class);
            }
        }
    }

    /// The class of a side of a key.
    pub fn of(&self, side: &Expr) -> usize {
        let mut names = side.column_refs().into_iter();
        let class = names.find_map(|column| self.class_of.get(&column.name));
        class.copied().unwrap_or_default()
    }

    /// Takes what is known of a relation's columns.
    pub fn learn(&mut self, estimate: &Estimate) {
        for (name, distinct) in &estimate.distinct {
            if let Some(class) = self.class_of.get(name) {
                let known = &mut self.distinct[*class];
                *known = Some(known.map_or(*distinct, |known| known.max(*distinct)));
            }
        }
    }

    /// How many values a class has, of two relations of which the smaller one has so many rows.
    pub fn distinct(&self, class: usize, rows: f64) -> f64 {
        let known = self.distinct.get(class).copied().flatten();
        known.unwrap_or(rows / ROWS_TO_A_VALUE).max(1.0)
    }
}
