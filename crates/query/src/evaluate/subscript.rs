//! Subscripts of arrays and of `jsonb`.

use std::sync::Arc;

use super::{Evaluator, Scope};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::Result;
use crate::functions;
use crate::tree::{Expr, Subscript};
use crate::types::array::{Array, subscript};
use crate::types::ids;

/// `jsonb #> text[]`
const JSONB_EXTRACT_PATH: u32 = 3217;

impl Evaluator<'_> {
    pub(super) fn subscript(&self, of: &Subscript, oid: u32, scope: Scope<'_>) -> Result<Datum> {
        let value = self.value(&of.value, scope)?;
        if value.is_null() {
            return Ok(Datum::Null);
        }
        let mut bounds = Vec::with_capacity(of.bounds.len());
        for (lower, upper) in &of.bounds {
            let bound = |expr: &Option<Expr>| -> Result<Option<Option<Datum>>> {
                let Some(expr) = expr else {
                    return Ok(Some(None));
                };
                let value = self.value(expr, scope)?;
                Ok((!value.is_null()).then_some(Some(value)))
            };
            // A subscript that is NULL gives NULL.
            let (Some(lower), Some(upper)) = (bound(lower)?, bound(upper)?) else {
                return Ok(Datum::Null);
            };
            bounds.push((lower, upper));
        }
        let call = Call::new(self.environment, &[], oid);
        if let Datum::Jsonb(_) = &value {
            let path = bounds
                .iter()
                .map(|(_, upper)| match upper {
                    Some(Datum::Int4(at)) => Datum::text(at.to_string()),
                    Some(key) => key.clone(),
                    None => Datum::Null,
                })
                .collect();
            let path = Datum::Array(Arc::new(Array::of(ids::TEXT, path)));
            let Some(functions::Body::Row(body)) =
                functions::by_oid(JSONB_EXTRACT_PATH).map(|function| function.body)
            else {
                return Ok(Datum::Null);
            };
            return body(&call, &[value, path]);
        }
        let Datum::Array(array) = &value else {
            return Ok(Datum::Null);
        };
        let number = |bound: &Option<Datum>| match bound {
            Some(Datum::Int4(at)) => Some(*at),
            _ => None,
        };
        if of.slice {
            let pairs: Vec<(Option<i32>, Option<i32>)> = bounds
                .iter()
                .map(|(lower, upper)| (number(lower), number(upper)))
                .collect();
            return Ok(Datum::Array(Arc::new(subscript::slice(
                &call, array, &pairs,
            )?)));
        }
        let places: Vec<i32> = bounds
            .iter()
            .filter_map(|(_, upper)| number(upper))
            .collect();
        Ok(subscript::get(array, &places))
    }
}
