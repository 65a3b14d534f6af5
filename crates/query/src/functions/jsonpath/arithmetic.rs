//! Numbers in paths: operators and methods.

use super::execute::{Execution, Found, Status, Value, ends};
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::jsonb::Jsonb;
use crate::types::jsonpath::{Chain, Item, Method, Operator};
use crate::types::numeric::Numeric;
use crate::types::{self, ids};

impl Execution<'_> {
    pub(super) fn binary(
        &mut self,
        operator: Operator,
        sides: &(Chain, Chain),
        rest: &[Item],
        value: &Value,
        found: &mut Found,
    ) -> Result<Status> {
        let Some(left) = self.operand(&sides.0.items, value, true)? else {
            return Ok(Status::Error);
        };
        let Some(right) = self.operand(&sides.1.items, value, true)? else {
            return Ok(Status::Error);
        };
        let single = |values: &[Value]| match values {
            [value] => value.as_number().cloned(),
            _ => None,
        };
        let wrong = |side: &str| {
            QueryError::new(
                "22038",
                format!(
                    "{side} operand of jsonpath operator {} is not a single numeric value",
                    operator.name()
                ),
            )
        };
        let Some(left) = single(&left) else {
            return self.fail(|| wrong("left"));
        };
        let Some(right) = single(&right) else {
            return self.fail(|| wrong("right"));
        };
        let computed = match operator {
            Operator::Add => left.add(&right),
            Operator::Subtract => left.sub(&right),
            Operator::Multiply => left.mul(&right),
            Operator::Divide => left.div(&right),
            _ => left.rem(&right),
        };
        match computed {
            Ok(number) => self.next(rest, &Jsonb::Number(number).into(), found),
            Err(error) => self.fail(|| error),
        }
    }

    pub(super) fn unary(
        &mut self,
        minus: bool,
        operand: &Chain,
        rest: &[Item],
        value: &Value,
        found: &mut Found,
    ) -> Result<Status> {
        let Some(values) = self.operand(&operand.items, value, true)? else {
            return Ok(Status::Error);
        };
        let only_asked = found.is_none() && rest.is_empty();
        let mut status = Status::Nothing;
        for value in &values {
            let Some(number) = value.as_number() else {
                if only_asked {
                    continue;
                }
                return self.fail(|| {
                    QueryError::new(
                        "2203B",
                        format!(
                            "operand of unary jsonpath operator {} is not a numeric value",
                            if minus { "-" } else { "+" }
                        ),
                    )
                });
            };
            let number = if minus {
                number.negate()
            } else {
                number.clone()
            };
            let next = self.next(rest, &Jsonb::Number(number).into(), found)?;
            if ends(next, found) {
                return Ok(next);
            }
            if next == Status::Found {
                status = next;
            }
        }
        Ok(status)
    }

    /// `.abs()`, `.floor()`, `.ceiling()`, `.double()`
    pub(super) fn numeric_method(
        &mut self,
        method: Method,
        rest: &[Item],
        value: &Value,
        found: &mut Found,
    ) -> Result<Status> {
        if method == Method::Double {
            return self.double(rest, value, found);
        }
        let Some(number) = value.as_number() else {
            return self.fail(|| {
                QueryError::new(
                    "22036",
                    format!(
                        "jsonpath item method .{}() can only be applied to a numeric value",
                        method.name()
                    ),
                )
            });
        };
        let number = match method {
            Method::Floor => number.floor()?,
            Method::Ceiling => number.ceil()?,
            _ => number.abs(),
        };
        self.next(rest, &Jsonb::Number(number).into(), found)
    }

    fn double(&mut self, rest: &[Item], value: &Value, found: &mut Found) -> Result<Status> {
        let read = |text: &str| match types::input(self.call, ids::FLOAT8, text, -1) {
            Ok(Datum::Float8(number)) if number.is_finite() => Some(number),
            _ => None,
        };
        match value {
            Value::Json(Jsonb::Number(number)) => {
                if read(&number.to_string()).is_none() {
                    return self.fail(|| {
                        QueryError::new(
                            "22036",
                            "numeric argument of jsonpath item method .double() is out of range for type double precision",
                        )
                    });
                }
                self.next(rest, value, found)
            }
            Value::Json(Jsonb::String(text)) => match read(text) {
                Some(number) => {
                    let number = Jsonb::Number(Numeric::from_f64(number));
                    self.next(rest, &number.into(), found)
                }
                None => self.fail(|| {
                    QueryError::new(
                        "22036",
                        "string argument of jsonpath item method .double() is not a valid representation of a double precision number",
                    )
                }),
            },
            _ => self.fail(|| {
                QueryError::new(
                    "22036",
                    "jsonpath item method .double() can only be applied to a string or numeric value",
                )
            }),
        }
    }
}
