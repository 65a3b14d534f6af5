//! Aggregation in memory, with PostgreSQL's result types: sums of integers do
//! not overflow on the way, averages are numeric with its scale.

use std::collections::HashMap;
use std::ops::ControlFlow;

use thermocline_values::arithmetic::{Operator, calculate};
use thermocline_values::numeric::Numeric;
use thermocline_values::types::DataType;
use thermocline_values::value::{Value, ValueRef};
use thermocline_values::value_error::ValueError;

use super::sink::kept_bytes;
use crate::error::Result;
use crate::expr::{EvalContext, RowAccess, base_type};
use crate::plan::{AggregateCall, AggregateFunction, AggregatePlan};

/// The state of one aggregate call over one group.
#[derive(Clone)]
enum Accumulator {
    Count(i64),
    /// Sum (or sum and count for avg) of integers.
    Integers {
        sum: i128,
        count: i64,
    },
    Numerics {
        sum: Numeric,
        count: i64,
    },
    /// Of numerics, once the sum or one of them has not the small form.
    LongNumerics {
        sum: Value,
        count: i64,
    },
    Reals {
        sum: f32,
        count: i64,
    },
    Doubles {
        sum: f64,
        count: i64,
    },
    Extreme(Value),
    Truth(Option<bool>),
}

impl Accumulator {
    fn new(call: &AggregateCall) -> Self {
        use AggregateFunction as F;
        match (call.function, base_type(call.argument_type)) {
            (F::Count, _) => Self::Count(0),
            (F::Minimum | F::Maximum, _) => Self::Extreme(Value::Null),
            (F::BoolAnd | F::BoolOr, _) => Self::Truth(None),
            (F::Sum, DataType::Real) => Self::Reals { sum: 0.0, count: 0 },
            (F::Sum | F::Average, DataType::Real | DataType::Double) => {
                Self::Doubles { sum: 0.0, count: 0 }
            }
            (F::Sum | F::Average, DataType::Numeric { .. }) => Self::Numerics {
                sum: Numeric::ZERO,
                count: 0,
            },
            (F::Sum | F::Average, _) => Self::Integers { sum: 0, count: 0 },
        }
    }

    fn add(&mut self, function: AggregateFunction, value: ValueRef<'_>) -> Result<()> {
        if value.is_null() {
            return Ok(());
        }
        match self {
            Self::Count(count) => *count += 1,
            Self::Integers { sum, count } => {
                *sum += match value {
                    ValueRef::SmallInt(number) => i128::from(number),
                    ValueRef::Integer(number) => i128::from(number),
                    ValueRef::BigInt(number) => i128::from(number),
                    _ => 0,
                };
                *count += 1;
            }
            Self::Numerics { sum, count } => {
                let added = match value {
                    ValueRef::Numeric(number) => sum.add(number).ok(),
                    _ => None,
                };
                match added {
                    Some(added) => {
                        *sum = added;
                        *count += 1;
                    }
                    None => {
                        *self = Self::LongNumerics {
                            sum: plus(&Value::Numeric(*sum), value)?,
                            count: *count + 1,
                        }
                    }
                }
            }
            Self::LongNumerics { sum, count } => {
                *sum = plus(sum, value)?;
                *count += 1;
            }
            Self::Reals { sum, count } => {
                if let ValueRef::Real(number) = value {
                    *sum += number;
                }
                *count += 1;
            }
            Self::Doubles { sum, count } => {
                *sum += match value {
                    ValueRef::Real(number) => f64::from(number),
                    ValueRef::Double(number) => number,
                    _ => 0.0,
                };
                *count += 1;
            }
            Self::Extreme(best) => {
                let better = best.is_null()
                    || if function == AggregateFunction::Maximum {
                        value > best.as_ref()
                    } else {
                        value < best.as_ref()
                    };
                if better {
                    *best = value.to_owned();
                }
            }
            Self::Truth(truth) => {
                if let ValueRef::Boolean(value) = value {
                    *truth = Some(match truth {
                        None => value,
                        Some(so_far) if function == AggregateFunction::BoolAnd => *so_far && value,
                        Some(so_far) => *so_far || value,
                    });
                }
            }
        }
        Ok(())
    }

    fn finish(self, call: &AggregateCall) -> Result<Value> {
        let average = call.function == AggregateFunction::Average;
        Ok(match self {
            Self::Count(count) => Value::BigInt(count),
            Self::Extreme(value) => value,
            Self::Truth(truth) => truth.map_or(Value::Null, Value::Boolean),
            Self::Integers { count: 0, .. }
            | Self::Numerics { count: 0, .. }
            | Self::Reals { count: 0, .. }
            | Self::Doubles { count: 0, .. } => Value::Null,
            Self::Integers { sum, count } if average => {
                average_of(Value::Numeric(Numeric::new(sum, 0)?), count)?
            }
            Self::Integers { sum, .. } if call.argument_type == DataType::BigInt => {
                Value::Numeric(Numeric::new(sum, 0)?)
            }
            Self::Integers { sum, .. } => {
                Value::BigInt(i64::try_from(sum).map_err(|_| ValueError::out_of_range("bigint"))?)
            }
            Self::Numerics { sum, count } if average => average_of(Value::Numeric(sum), count)?,
            Self::Numerics { sum, .. } => Value::Numeric(sum),
            Self::LongNumerics { sum, count } if average => average_of(sum, count)?,
            Self::LongNumerics { sum, .. } => sum,
            Self::Reals { sum, .. } => Value::Real(sum),
            Self::Doubles { sum, count } if average => Value::Double(sum / count as f64),
            Self::Doubles { sum, .. } => Value::Double(sum),
        })
    }
}

#[cold]
fn plus(sum: &Value, value: ValueRef<'_>) -> Result<Value> {
    Ok(calculate(Operator::Add, sum, &value.to_owned())?)
}

fn average_of(sum: Value, count: i64) -> Result<Value> {
    Ok(calculate(Operator::Divide, &sum, &Value::BigInt(count))?)
}

/// What a group takes beside its keys and results.
const GROUP_BYTES: usize = 128;

/// The groups of one execution, in the order in which they were met.
pub(crate) struct Groups<'a> {
    plan: &'a AggregatePlan,
    positions: HashMap<Vec<Value>, usize>,
    groups: Vec<(Vec<Value>, Vec<Accumulator>)>,
    bytes: usize,
}

impl<'a> Groups<'a> {
    pub(crate) fn new(plan: &'a AggregatePlan) -> Self {
        let mut groups = Self {
            plan,
            positions: HashMap::new(),
            groups: Vec::new(),
            bytes: 0,
        };
        // Without GROUP BY there is one group even of no rows.
        if plan.groups.is_empty() {
            groups.begin(Vec::new());
        }
        groups
    }

    fn begin(&mut self, keys: Vec<Value>) -> usize {
        let accumulators: Vec<Accumulator> = self.plan.calls.iter().map(Accumulator::new).collect();
        // The keys are in the map, too.
        self.bytes += 2 * kept_bytes(&keys) + size_of_val(&accumulators[..]) + GROUP_BYTES;
        self.groups.push((keys, accumulators));
        self.groups.len() - 1
    }

    /// About what the groups take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a row to its group; breaks when no other row matters.
    pub(crate) fn row<R: RowAccess + ?Sized>(
        &mut self,
        row: &R,
        context: &EvalContext<'_>,
    ) -> Result<ControlFlow<()>> {
        let plan = self.plan;
        let position = if plan.groups.is_empty() {
            0
        } else {
            let mut keys = Vec::with_capacity(plan.groups.len());
            for group in &plan.groups {
                keys.push(group.evaluate(row, context)?.into_value());
            }
            match self.positions.get(&keys) {
                Some(position) => *position,
                None => {
                    let position = self.begin(keys.clone());
                    self.positions.insert(keys, position);
                    position
                }
            }
        };
        let mut decided = plan.first_row_decides;
        let (_, accumulators) = &mut self.groups[position];
        for (call, accumulator) in plan.calls.iter().zip(accumulators) {
            if let Some(filter) = &call.filter
                && !filter.accepts(row, context)?
            {
                continue;
            }
            match &call.argument {
                None => accumulator.add(call.function, ValueRef::Boolean(true))?,
                Some(argument) => {
                    let value = argument.evaluate(row, context)?;
                    decided &= !value.is_null();
                    accumulator.add(call.function, value.as_ref())?;
                }
            }
        }
        Ok(if decided {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        })
    }

    /// A row a group: its keys, then the results.
    pub(crate) fn finish(self) -> Result<Vec<Vec<Value>>> {
        let mut rows = Vec::with_capacity(self.groups.len());
        for (mut row, accumulators) in self.groups {
            for (call, accumulator) in self.plan.calls.iter().zip(accumulators) {
                row.push(accumulator.finish(call)?);
            }
            rows.push(row);
        }
        Ok(rows)
    }
}
