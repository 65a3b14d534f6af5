//! Evaluation. Three-valued logic is `Option<bool>`; comparisons look at
//! borrowed values of one type; errors are PostgreSQL's.

use std::cmp::Ordering;

use thermocline_storage::value::{Value, ValueRef};
use thermocline_storage::{arithmetic, datetime, functions};
use uuid::Uuid;

use super::{Comparison, EvalContext, Expr, FunctionCall, Interval, RowAccess, TransactionTime};
use crate::error::{Result, SqlError};

/// From here on an expression asks for room before it makes a value, in bytes.
const LARGE_VALUE_BYTES: u64 = 64 << 10;

/// A value that is borrowed where it existed before.
#[derive(Clone, Debug)]
pub enum Datum<'a> {
    /// Someone else's, or small enough to copy.
    Ref(ValueRef<'a>),
    /// New.
    Owned(Value),
}

impl<'a> Datum<'a> {
    /// NULL.
    pub const NULL: Self = Self::Ref(ValueRef::Null);

    /// The value, borrowed.
    #[must_use]
    #[inline]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Ref(value) => *value,
            Self::Owned(value) => value.as_ref(),
        }
    }

    /// The value, owned; copies only what is borrowed.
    #[must_use]
    #[inline]
    pub fn into_value(self) -> Value {
        match self {
            Self::Ref(value) => value.to_owned(),
            Self::Owned(value) => value,
        }
    }

    /// Whether this is NULL.
    #[must_use]
    #[inline]
    pub fn is_null(&self) -> bool {
        self.as_ref().is_null()
    }

    #[inline]
    const fn truth(value: Option<bool>) -> Self {
        match value {
            Some(value) => Self::Ref(ValueRef::Boolean(value)),
            None => Self::NULL,
        }
    }
}

impl Comparison {
    /// What the order of the two sides makes of the comparison.
    #[must_use]
    #[inline]
    pub const fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

impl Expr {
    /// The value for this row.
    ///
    /// # Errors
    /// What the operators and functions in it raise.
    pub fn evaluate<'a, R: RowAccess + ?Sized>(
        &'a self,
        row: &'a R,
        context: &EvalContext<'a>,
    ) -> Result<Datum<'a>> {
        Ok(match self {
            Self::Column(column) => Datum::Ref(row.column(*column)),
            Self::Constant(value) => Datum::Ref(value.as_ref()),
            Self::Parameter(number) => match context.parameters.get(*number) {
                Some(value) => Datum::Ref(value.as_ref()),
                None => return Err(missing_parameter(*number)),
            },
            Self::Compare(..)
            | Self::And(_)
            | Self::Or(_)
            | Self::Not(_)
            | Self::IsNull { .. }
            | Self::IsTruth { .. }
            | Self::Distinct { .. }
            | Self::InList { .. }
            | Self::Like { .. } => Datum::truth(self.truth(row, context)?),
            Self::Arithmetic(operator, left, right) => {
                let left = left.evaluate(row, context)?;
                let right = right.evaluate(row, context)?;
                if left.is_null() || right.is_null() {
                    return Ok(Datum::NULL);
                }
                let result =
                    arithmetic::calculate(*operator, &left.into_value(), &right.into_value())?;
                Datum::Owned(result)
            }
            Self::Negate(operand) => {
                let operand = operand.evaluate(row, context)?;
                if operand.is_null() {
                    return Ok(Datum::NULL);
                }
                Datum::Owned(arithmetic::negate(&operand.into_value())?)
            }
            Self::Cast(path, operand) => {
                path.apply(operand.evaluate(row, context)?, context.styles)?
            }
            Self::Case { arms, otherwise } => {
                for (condition, result) in arms {
                    if condition.truth(row, context)? == Some(true) {
                        return result.evaluate(row, context);
                    }
                }
                otherwise.evaluate(row, context)?
            }
            Self::Coalesce(operands) => {
                for operand in operands {
                    let value = operand.evaluate(row, context)?;
                    if !value.is_null() {
                        return Ok(value);
                    }
                }
                Datum::NULL
            }
            Self::Extreme { operands, greatest } => {
                let wanted = if *greatest {
                    Ordering::Greater
                } else {
                    Ordering::Less
                };
                let mut best = Datum::NULL;
                for operand in operands {
                    let value = operand.evaluate(row, context)?;
                    if !value.is_null()
                        && (best.is_null() || value.as_ref().cmp(&best.as_ref()) == wanted)
                    {
                        best = value;
                    }
                }
                best
            }
            Self::AddInterval { operand, interval } => {
                let operand = operand.evaluate(row, context)?;
                match operand.as_ref() {
                    ValueRef::TimestampTz(at) if !context.styles.is_plain() => {
                        let moved = context.styles.moved(at, *interval)?;
                        Datum::Ref(ValueRef::TimestampTz(moved))
                    }
                    value => Datum::Ref(add_interval(value, *interval)?),
                }
            }
            Self::Function(call) => Datum::Owned(call.evaluate(row, context)?),
            Self::Deep(depth, expr) => {
                crate::stack::with_room(*depth, || expr.evaluate(row, context))?
            }
            Self::Now(kind) => Datum::Ref(match kind {
                TransactionTime::TimestampTz => ValueRef::TimestampTz(context.now_us),
                TransactionTime::Timestamp => {
                    ValueRef::Timestamp(context.styles.local(context.now_us)?)
                }
                TransactionTime::Date => {
                    let days = context
                        .styles
                        .local(context.now_us)?
                        .div_euclid(86_400_000_000);
                    ValueRef::Date(i32::try_from(days).unwrap_or(i32::MAX))
                }
            }),
            Self::Analysed(analysed) => analysed.evaluate(row, context)?,
            Self::RandomUuid => Datum::Ref(ValueRef::Uuid(Uuid::new_v4().into_bytes())),
            Self::NextValue(sequence) => {
                Datum::Ref(ValueRef::BigInt(context.session.next_value(*sequence)?))
            }
            Self::Session(name, arguments) => {
                let mut values = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    values.push(argument.evaluate(row, context)?.into_value());
                }
                Datum::Owned(context.session.call(name, &values)?)
            }
        })
    }

    /// The value of a condition; `None` is NULL.
    ///
    /// # Errors
    /// As [`Expr::evaluate`].
    pub fn truth<R: RowAccess + ?Sized>(
        &self,
        row: &R,
        context: &EvalContext<'_>,
    ) -> Result<Option<bool>> {
        Ok(match self {
            Self::Compare(comparison, left, right) => {
                let left = left.evaluate(row, context)?;
                let right = right.evaluate(row, context)?;
                let (left, right) = (left.as_ref(), right.as_ref());
                if left.is_null() || right.is_null() {
                    None
                } else {
                    Some(comparison.holds(left.cmp(&right)))
                }
            }
            Self::And(operands) => {
                let mut all = Some(true);
                for operand in operands {
                    match operand.truth(row, context)? {
                        Some(false) => return Ok(Some(false)),
                        Some(true) => {}
                        None => all = None,
                    }
                }
                all
            }
            Self::Or(operands) => {
                let mut any = Some(false);
                for operand in operands {
                    match operand.truth(row, context)? {
                        Some(true) => return Ok(Some(true)),
                        Some(false) => {}
                        None => any = None,
                    }
                }
                any
            }
            Self::Not(operand) => operand.truth(row, context)?.map(|value| !value),
            Self::IsNull { operand, negated } => {
                Some(operand.evaluate(row, context)?.is_null() != *negated)
            }
            Self::IsTruth {
                operand,
                wanted,
                negated,
            } => Some((operand.truth(row, context)? == Some(*wanted)) != *negated),
            Self::Distinct {
                left,
                right,
                negated,
            } => {
                let left = left.evaluate(row, context)?;
                let right = right.evaluate(row, context)?;
                Some((left.as_ref() != right.as_ref()) != *negated)
            }
            Self::InList {
                operand,
                list,
                negated,
            } => {
                let operand = operand.evaluate(row, context)?;
                if operand.is_null() {
                    return Ok(None);
                }
                let mut found = Some(false);
                for element in list {
                    let element = element.evaluate(row, context)?;
                    if element.is_null() {
                        found = None;
                    } else if element.as_ref() == operand.as_ref() {
                        found = Some(true);
                        break;
                    }
                }
                found.map(|value| value != *negated)
            }
            Self::Like {
                operand,
                pattern,
                escape,
                case_insensitive,
                negated,
            } => {
                let operand = operand.evaluate(row, context)?;
                let pattern = pattern.evaluate(row, context)?;
                match (operand.as_ref(), pattern.as_ref()) {
                    (ValueRef::Text(text), ValueRef::Text(pattern)) => {
                        let matches =
                            functions::like_match(pattern, text, *escape, *case_insensitive)?;
                        Some(matches != *negated)
                    }
                    _ => None,
                }
            }
            Self::Deep(depth, expr) => {
                crate::stack::with_room(*depth, || expr.truth(row, context))?
            }
            other => match other.evaluate(row, context)?.as_ref() {
                ValueRef::Boolean(value) => Some(value),
                _ => None,
            },
        })
    }

    /// Whether the condition is true for this row; NULL is not.
    ///
    /// # Errors
    /// As [`Expr::evaluate`].
    #[inline]
    pub fn accepts<R: RowAccess + ?Sized>(
        &self,
        row: &R,
        context: &EvalContext<'_>,
    ) -> Result<bool> {
        Ok(self.truth(row, context)? == Some(true))
    }
}

impl FunctionCall {
    fn evaluate<R: RowAccess + ?Sized>(&self, row: &R, context: &EvalContext<'_>) -> Result<Value> {
        let mut values = Vec::with_capacity(self.arguments.len());
        for argument in &self.arguments {
            let value = argument.evaluate(row, context)?.into_value();
            if self.function.strict && value.is_null() {
                return Ok(Value::Null);
            }
            values.push(value);
        }
        if let Some(size) = self.function.size {
            let bytes = size(&values);
            if (LARGE_VALUE_BYTES..=functions::VALUE_BYTES_MAX).contains(&bytes) {
                context.session.room_for_value(bytes)?;
            }
        }
        Ok((self.function.call)(&values)?)
    }
}

#[cold]
fn missing_parameter(number: usize) -> SqlError {
    SqlError::new("42P02", format!("there is no parameter ${}", number + 1))
}

fn add_interval(value: ValueRef<'_>, interval: Interval) -> Result<ValueRef<'static>> {
    let add = |timestamp: i64| -> Result<i64> {
        if timestamp == i64::MAX || timestamp == i64::MIN {
            return Ok(timestamp);
        }
        let out_of_range = || SqlError::new("22008", "timestamp out of range");
        let moved = if interval.months == 0 {
            timestamp
        } else {
            datetime::add_months(timestamp, interval.months)?
        };
        i64::from(interval.days)
            .checked_mul(86_400_000_000)
            .and_then(|days_us| moved.checked_add(days_us))
            .and_then(|moved| moved.checked_add(interval.time_us))
            .ok_or_else(out_of_range)
    };
    Ok(match value {
        ValueRef::Timestamp(timestamp) => ValueRef::Timestamp(add(timestamp)?),
        ValueRef::TimestampTz(timestamp) => ValueRef::TimestampTz(add(timestamp)?),
        _ => ValueRef::Null,
    })
}
