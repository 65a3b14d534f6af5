//! Values on their way to a client.

use crate::typed::held;
use thermocline_query::call::{Call, Environment};
use thermocline_query::datum::Datum;
use thermocline_query::types::domain::base_of;
use thermocline_query::types::{self, ids};
use thermocline_values::types::DataType;
use thermocline_values::value::{Value, ValueRef};

use super::value;
use crate::error::Result;
use crate::output::RowWriter;

/// Writes a value of this type and modifier as the next of its row.
pub(crate) fn write_value(
    rows: &mut RowWriter,
    environment: &dyn Environment,
    (oid, modifier): (u32, i32),
    value: &Datum,
) -> Result<()> {
    if value.is_null() {
        rows.null();
        return Ok(());
    }
    let (oid, modifier) = base_of(oid, modifier);
    let held = match oid {
        ids::NUMERIC | ids::BPCHAR => None,
        _ => held(oid, modifier),
    };
    // Who keeps values gets them as tables hold them: `name` and `json` are bytes there.
    let kept_as_bytes = rows.keeps_values() && held.is_some_and(|of| of.other().is_some());
    if let (Some(data_type), Some(value), false) = (held, value::borrowed(value), kept_as_bytes) {
        rows.value(value, &data_type);
        return Ok(());
    }
    if rows.keeps_values()
        && let Datum::Numeric(number) = value
    {
        rows.value(value::of_numeric(number)?.as_ref(), &DataType::NUMERIC);
        return Ok(());
    }
    if rows.keeps_values()
        && let Some(data_type @ DataType::Other { .. }) = held
        && let Value::Other(_, bytes) = value::to_stored(value, &data_type)?
    {
        rows.value(ValueRef::Other(oid, &bytes), &data_type);
        return Ok(());
    }
    let call = Call::new(environment, &[], oid);
    if rows.is_binary() {
        let mut bytes = Vec::new();
        types::send(&call, oid, value, &mut bytes)?;
        rows.raw(&bytes);
        return Ok(());
    }
    let text = types::to_text(&call, oid, value)?;
    rows.text(&text);
    Ok(())
}
