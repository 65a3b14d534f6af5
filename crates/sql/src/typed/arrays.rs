//! Columns of rows as arrays, by which rows go into a query as its parameters.

use thermocline_query::datum::Datum;
use thermocline_query::types::array::Array;
use thermocline_query::types::{array_of, ids};
use thermocline_values::types::DataType;
use thermocline_values::value::Value;

use super::value::{to_query, to_stored};
use crate::error::Result;
use crate::plan::BeforeColumn;
use crate::styles::Styles;

/// The values of a column, in the order of the rows.
///
/// # Errors
/// XX000 for bytes that are no value.
pub(crate) fn of_column(
    rows: &[Vec<Value>],
    at: usize,
    column: &BeforeColumn,
    styles: &Styles,
) -> Result<Value> {
    let values = rows.iter().map(|row| row.get(at).unwrap_or(&Value::Null));
    let (element, elements) = match column {
        BeforeColumn::Typed(data_type) => {
            let of = |value: &Value| Ok(to_query(value.as_ref(), data_type)?);
            let elements: Result<Vec<Datum>> = values.map(of).collect();
            (data_type.oid(), elements?)
        }
        BeforeColumn::Text(data_type) => {
            let of = |value: &Value| {
                if value.is_null() {
                    return Ok(Datum::Null);
                }
                let mut text = Vec::new();
                styles.write(value.as_ref(), data_type, &mut text)?;
                Ok(Datum::text(&*String::from_utf8_lossy(&text)))
            };
            let elements: Result<Vec<Datum>> = values.map(of).collect();
            (ids::TEXT, elements?)
        }
    };
    let data_type = DataType::Other {
        oid: array_of(element),
        modifier: -1,
    };
    to_stored(
        &Datum::Array(Array::of(element, elements).into()),
        &data_type,
    )
}
