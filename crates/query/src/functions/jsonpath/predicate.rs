//! Predicates of paths: true, false or unknown (`None`).

use std::cmp::Ordering;

use super::execute::{Execution, Status, Value};
use super::moment::Moment;
use crate::error::{QueryError, Result};
use crate::types::jsonb::Jsonb;
use crate::types::jsonpath::{Chain, Item, Operator};

impl Execution<'_> {
    /// The truth of an expression that is a predicate alone.
    pub(super) fn predicate(&mut self, chain: &Chain, value: &Value) -> Result<Option<bool>> {
        match chain.items.as_slice() {
            [item] => self.truth(item, value),
            _ => Err(QueryError::internal(
                "boolean jsonpath item cannot have next item",
            )),
        }
    }

    /// The truth of a predicate.
    pub(super) fn truth(&mut self, item: &Item, value: &Value) -> Result<Option<bool>> {
        self.enter()?;
        let truth = match item {
            Item::Binary(Operator::And, sides) => match self.predicate(&sides.0, value)? {
                Some(false) => Some(false),
                left => match self.predicate(&sides.1, value)? {
                    Some(true) => left,
                    right => right,
                },
            },
            Item::Binary(Operator::Or, sides) => match self.predicate(&sides.0, value)? {
                Some(true) => Some(true),
                left => match self.predicate(&sides.1, value)? {
                    Some(false) => left,
                    right => right,
                },
            },
            Item::Not(inner) => self.predicate(inner, value)?.map(|truth| !truth),
            Item::IsUnknown(inner) => Some(self.predicate(inner, value)?.is_none()),
            Item::Exists(inner) => self.exists_in(inner, value)?,
            Item::Binary(operator, sides) => {
                let unwrap = *operator != Operator::StartsWith;
                let left = self.quiet_operand(&sides.0, value, true)?;
                let right = match left {
                    Some(_) => self.quiet_operand(&sides.1, value, unwrap)?,
                    None => None,
                };
                match (left, right) {
                    (Some(left), Some(right)) => self.pairs(&left, &right, *operator)?,
                    _ => None,
                }
            }
            Item::LikeRegex(operand, pattern) => match self.quiet_operand(operand, value, true)? {
                Some(values) => {
                    let mut verdict = Verdict::new(self.lax);
                    for value in &values {
                        let truth = value
                            .as_string()
                            .map(|text| pattern.matches(self.call, text))
                            .transpose()?;
                        if verdict.take(truth) {
                            break;
                        }
                    }
                    verdict.result()
                }
                None => None,
            },
            _ => {
                return Err(QueryError::internal("invalid boolean jsonpath item type"));
            }
        };
        self.leave();
        Ok(truth)
    }

    /// Without raising errors.
    fn quietly<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let raising = std::mem::replace(&mut self.raising, false);
        let result = run(self);
        self.raising = raising;
        result
    }

    fn quiet_operand(
        &mut self,
        chain: &Chain,
        value: &Value,
        unwrap: bool,
    ) -> Result<Option<Vec<Value>>> {
        self.quietly(|execution| execution.operand(&chain.items, value, unwrap))
    }

    fn exists_in(&mut self, chain: &Chain, value: &Value) -> Result<Option<bool>> {
        let mut found = if self.lax { None } else { Some(Vec::new()) };
        let status = self.quietly(|execution| execution.start(&chain.items, value, &mut found))?;
        Ok(match (status, found) {
            (Status::Error, _) => None,
            (_, Some(found)) => Some(!found.is_empty()),
            (status, None) => Some(status == Status::Found),
        })
    }

    /// Whether any pair of two lists' values is as the operator wants it.
    fn pairs(
        &mut self,
        left: &[Value],
        right: &[Value],
        operator: Operator,
    ) -> Result<Option<bool>> {
        let mut verdict = Verdict::new(self.lax);
        for (at, a) in left.iter().enumerate() {
            if at % 256 == 255 {
                self.call.environment.check_interrupted()?;
            }
            for b in right {
                let truth = if operator == Operator::StartsWith {
                    match (a.as_string(), b.as_string()) {
                        (Some(text), Some(initial)) => Some(text.starts_with(initial)),
                        _ => None,
                    }
                } else {
                    self.compared(a, b, operator)?
                };
                if verdict.take(truth) {
                    return Ok(verdict.result());
                }
            }
        }
        Ok(verdict.result())
    }

    fn compared(&self, a: &Value, b: &Value, operator: Operator) -> Result<Option<bool>> {
        let order = match (a, b) {
            (Value::Json(a), Value::Json(b)) => match (a, b) {
                (Jsonb::Null, Jsonb::Null) => Ordering::Equal,
                (Jsonb::Null, _) | (_, Jsonb::Null) => {
                    return Ok(Some(operator == Operator::NotEqual));
                }
                (Jsonb::Bool(a), Jsonb::Bool(b)) => a.cmp(b),
                (Jsonb::Number(a), Jsonb::Number(b)) => a.cmp(b),
                (Jsonb::String(a), Jsonb::String(b)) => a.cmp(b),
                _ => return Ok(None),
            },
            (Value::Moment(a), Value::Moment(b)) => {
                match Moment::compare(self.call, a, b, self.zoned)? {
                    Some(order) => order,
                    None => return Ok(None),
                }
            }
            (Value::Json(Jsonb::Null), _) | (_, Value::Json(Jsonb::Null)) => {
                return Ok(Some(operator == Operator::NotEqual));
            }
            _ => return Ok(None),
        };
        Ok(Some(match operator {
            Operator::Equal => order.is_eq(),
            Operator::NotEqual => order.is_ne(),
            Operator::Less => order.is_lt(),
            Operator::Greater => order.is_gt(),
            Operator::LessOrEqual => order.is_le(),
            _ => order.is_ge(),
        }))
    }
}

/// What the truths of many values come to: true if one is. In strict mode
/// one that is unknown makes all unknown.
struct Verdict {
    lax: bool,
    found: bool,
    unknown: bool,
}

impl Verdict {
    const fn new(lax: bool) -> Self {
        Self {
            lax,
            found: false,
            unknown: false,
        }
    }

    /// Takes one truth; whether the rest does not matter.
    fn take(&mut self, truth: Option<bool>) -> bool {
        match truth {
            None => {
                self.unknown = true;
                !self.lax
            }
            Some(true) => {
                self.found = true;
                self.lax
            }
            Some(false) => false,
        }
    }

    const fn result(&self) -> Option<bool> {
        if self.unknown && !(self.lax && self.found) {
            None
        } else {
            Some(self.found)
        }
    }
}
