//! Evaluation. Three-valued logic is `Option<bool>`; comparisons look at
//! borrowed values of one type; errors are PostgreSQL's.

use std::cmp::Ordering;

use thermocline_values::arithmetic;
use thermocline_values::value::{Value, ValueRef};
use uuid::Uuid;

use super::{Comparison, EvalContext, Expr, RowAccess, TransactionTime};
use crate::error::{Result, SqlError};

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
            Self::Outer(column, _) => Datum::Ref(match context.outer {
                Some(outer) => outer.value(*column),
                None => return Err(SqlError::internal("a join's column without its row")),
            }),
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
            | Self::InList { .. } => Datum::truth(self.truth(row, context)?),
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

#[cold]
fn missing_parameter(number: usize) -> SqlError {
    SqlError::new("42P02", format!("there is no parameter ${}", number + 1))
}
