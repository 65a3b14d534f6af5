//! Comparisons with arrays and of rows.

use super::{Evaluator, Scope};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::functions::Body;
use crate::tree::{ArrayComparison, Comparison, RowComparison};
use crate::types::{self, ids};

impl Evaluator<'_> {
    /// `x op ANY (array)`: true if it is for one element, NULL if it is for none and NULL for one.
    pub(super) fn any_of_array(
        &self,
        comparison: &ArrayComparison,
        scope: Scope<'_>,
    ) -> Result<Datum> {
        let value = self.value(&comparison.value, scope)?;
        let array = self.value(&comparison.array, scope)?;
        let Datum::Array(array) = &array else {
            return Ok(Datum::Null);
        };
        let decisive = comparison.any;
        if array.elements.is_empty() {
            return Ok(Datum::Bool(!decisive));
        }
        let strict = comparison.function.strict;
        if value.is_null() && strict {
            return Ok(Datum::Null);
        }
        let context = Call::new(self.environment, &comparison.types, ids::BOOL);
        let Body::Row(body) = comparison.function.body else {
            return Err(QueryError::internal("an operator has a row form"));
        };
        let mut arguments = [value, Datum::Null];
        let mut unknown = false;
        for (at, element) in array.elements.iter().enumerate() {
            if at % 4096 == 4095 {
                self.environment.check_interrupted()?;
            }
            if element.is_null() && strict {
                unknown = true;
                continue;
            }
            arguments[1] = element.clone();
            match body(&context, &arguments)? {
                Datum::Bool(answer) if answer == decisive => return Ok(Datum::Bool(decisive)),
                Datum::Null => unknown = true,
                _ => {}
            }
        }
        Ok(if unknown {
            Datum::Null
        } else {
            Datum::Bool(!decisive)
        })
    }

    /// `(a, b) < (c, d)`: by the first pair that differs.
    pub(super) fn row_comparison(
        &self,
        comparison: &RowComparison,
        scope: Scope<'_>,
    ) -> Result<Datum> {
        for (left, right) in &comparison.pairs {
            let oid = left.oid;
            let (left, right) = (self.value(left, scope)?, self.value(right, scope)?);
            if left.is_null() || right.is_null() {
                return Ok(Datum::Null);
            }
            let order = types::compare(oid, &left, &right)?;
            if order.is_ne() {
                return Ok(Datum::Bool(match comparison.comparison {
                    Comparison::Less | Comparison::LessOrEqual => order.is_lt(),
                    Comparison::Greater | Comparison::GreaterOrEqual => order.is_gt(),
                }));
            }
        }
        Ok(Datum::Bool(matches!(
            comparison.comparison,
            Comparison::LessOrEqual | Comparison::GreaterOrEqual
        )))
    }
}
