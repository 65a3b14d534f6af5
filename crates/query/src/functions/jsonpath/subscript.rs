//! Subscripts in paths.

use super::execute::{Execution, Found, Status, Value, ends};
use crate::error::{QueryError, Result};
use crate::types::jsonb::Jsonb;
use crate::types::jsonpath::{Chain, Item};

impl Execution<'_> {
    pub(super) fn subscripts(
        &mut self,
        subscripts: &[(Chain, Option<Chain>)],
        rest: &[Item],
        value: &Value,
        found: &mut Found,
    ) -> Result<Status> {
        let elements = match value {
            Value::Json(Jsonb::Array(elements)) => Some(elements),
            _ if self.lax => None,
            _ => {
                return self.structural(
                    "22039",
                    "jsonpath array accessor can only be applied to an array",
                );
            }
        };
        let size = elements.map_or(1, |elements| {
            i32::try_from(elements.len()).unwrap_or(i32::MAX)
        });
        self.length = size;
        let mut status = Status::Nothing;
        for (from, to) in subscripts {
            let Some(from) = self.index(&from.items, value)? else {
                return Ok(Status::Error);
            };
            let to = match to {
                None => from,
                Some(to) => match self.index(&to.items, value)? {
                    Some(to) => to,
                    None => return Ok(Status::Error),
                },
            };
            if !self.forgiving && (from < 0 || from > to || to >= size) {
                return self.fail(|| {
                    QueryError::new("22033", "jsonpath array subscript is out of bounds")
                });
            }
            status = Status::Nothing;
            for place in from.max(0)..=to.min(size - 1) {
                let element = match elements {
                    None => value.clone(),
                    Some(elements) => {
                        match usize::try_from(place).ok().and_then(|at| elements.get(at)) {
                            Some(element) => Value::Json(element.clone()),
                            None => continue,
                        }
                    }
                };
                status = self.next(rest, &element, found)?;
                if ends(status, found) {
                    break;
                }
            }
            if ends(status, found) {
                break;
            }
        }
        Ok(status)
    }

    /// A subscript's number.
    fn index(&mut self, items: &[Item], value: &Value) -> Result<Option<i32>> {
        let mut found = Some(Vec::new());
        if self.start(items, value, &mut found)? == Status::Error {
            return Ok(None);
        }
        let message = match found.as_deref() {
            Some([value]) => match value.as_number() {
                Some(number) => {
                    let whole = number.trunc(0)?;
                    match whole.to_i64().and_then(|whole| i32::try_from(whole).ok()) {
                        Some(index) => return Ok(Some(index)),
                        None => "jsonpath array subscript is out of integer range",
                    }
                }
                None => "jsonpath array subscript is not a single numeric value",
            },
            _ => "jsonpath array subscript is not a single numeric value",
        };
        self.fail(|| QueryError::new("22033", message))?;
        Ok(None)
    }
}
