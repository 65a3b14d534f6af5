//! A function of DataFusion that gives bytes which equal where PostgreSQL's values of a type do:
//! keys that rows are grouped by. They have no order; for that there is `sort_key`. NULL is NULL.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::builder::BinaryViewBuilder;
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr as DfExpr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use thermocline_query::error::Result;
use thermocline_query::types::ids;

use crate::errors::external;
use crate::form::{ColumnReader, Form};
use crate::sort_key;
use thermocline_query::serial;

/// Before the key of a number that is not short.
const LONG: u8 = 1;
/// Before that of one that is.
const SHORT: u8 = 0;

/// The key of a value of a type.
struct EqualKey {
    oid: u32,
    name: String,
    signature: Signature,
}

/// The key of an expression's value.
#[must_use]
pub fn equal_key(expr: DfExpr, oid: u32) -> DfExpr {
    let function = EqualKey {
        oid,
        name: format!("k{oid}"),
        signature: Signature::any(1, Volatility::Immutable),
    };
    DfExpr::ScalarFunction(ScalarFunction::new_udf(
        Arc::new(ScalarUDF::new_from_impl(function)),
        vec![expr],
    ))
}

/// Without zeros at the end of what stands after the point, a number has one short form or none.
fn numeric(bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let mut short = serial::read_short_numeric(bytes);
    if short.is_none() {
        let parts = serial::read_numeric(bytes)?.canonical().to_parts();
        short = parts.and_then(|(unscaled, scale)| Some((i64::try_from(unscaled).ok()?, scale)));
    }
    let Some((mut unscaled, mut scale)) = short else {
        out.push(LONG);
        return sort_key::key(ids::NUMERIC, &serial::read(bytes)?, out);
    };
    if unscaled == 0 {
        scale = 0;
    }
    while scale > 0 && unscaled % 10 == 0 {
        unscaled /= 10;
        scale -= 1;
    }
    out.push(SHORT);
    out.extend(unscaled.to_le_bytes());
    out.extend(scale.to_le_bytes());
    Ok(())
}

/// -0 is 0, and what is not a number equals itself.
fn float(value: f64, out: &mut Vec<u8>) {
    let bits = match value {
        value if value.is_nan() => f64::NAN.to_bits(),
        0.0 => 0,
        value => value.to_bits(),
    };
    out.extend(bits.to_le_bytes());
}

impl EqualKey {
    fn keys(&self, array: &ArrayRef) -> Result<ArrayRef> {
        let reader = ColumnReader::new(Form::of(self.oid), Arc::clone(array))?;
        let mut keys = BinaryViewBuilder::with_capacity(array.len());
        let mut key = Vec::new();
        for row in 0..array.len() {
            if array.is_null(row) {
                keys.append_null();
                continue;
            }
            key.clear();
            match self.oid {
                ids::NUMERIC => numeric(array.as_binary_view().value(row), &mut key)?,
                ids::BPCHAR => {
                    let text = serial::text(array.as_binary_view().value(row))?;
                    key.extend(text.trim_end_matches(' ').as_bytes());
                }
                ids::FLOAT4 => {
                    let value = array.as_primitive::<Float32Type>().value(row);
                    float(f64::from(value), &mut key);
                }
                ids::FLOAT8 => float(array.as_primitive::<Float64Type>().value(row), &mut key),
                oid => sort_key::key(oid, &reader.get(row)?, &mut key)?,
            }
            keys.append_value(&key);
        }
        Ok(Arc::new(keys.finish()))
    }
}

impl fmt::Debug for EqualKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl PartialEq for EqualKey {
    fn eq(&self, other: &Self) -> bool {
        self.oid == other.oid
    }
}

impl Eq for EqualKey {}

impl Hash for EqualKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.oid.hash(state);
    }
}

impl ScalarUDFImpl for EqualKey {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DfResult<DataType> {
        Ok(DataType::BinaryView)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        let keys = arrays.first().map(|array| self.keys(array));
        match keys {
            Some(keys) => Ok(ColumnarValue::Array(keys.map_err(external)?)),
            None => Err(external(thermocline_query::error::QueryError::internal(
                "the key of nothing",
            ))),
        }
    }
}
