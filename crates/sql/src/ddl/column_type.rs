//! The types that columns are declared as.

use thermocline_query::types::domain::is_domain;
use thermocline_values::types::DataType;

use crate::bind::{self, TypeNames};
use crate::error::{Result, SqlError};
use crate::typed::held;

/// What a column is declared as.
pub(super) struct Declared {
    pub(super) data_type: DataType,
    /// The domain that was named.
    pub(super) domain: Option<u32>,
    /// It is one of the serial types.
    pub(super) serial: bool,
}

/// The type of a column, from its text.
pub(super) fn column_type(text: &str, names: TypeNames<'_>) -> Result<Declared> {
    let serial = match text {
        "serial" | "serial4" => Some(DataType::Integer),
        "bigserial" | "serial8" => Some(DataType::BigInt),
        "smallserial" | "serial2" => Some(DataType::SmallInt),
        _ => None,
    };
    if let Some(data_type) = serial {
        return Ok(Declared {
            data_type,
            domain: None,
            serial: true,
        });
    }
    let (oid, modifier) = bind::type_of_text(text, names)?;
    let domain = is_domain(oid).then_some(oid);
    let data_type = match domain {
        Some(_) => held(oid, modifier).ok_or_else(|| SqlError::internal("a domain of no type"))?,
        None => bind::column_type(oid, modifier)?,
    };
    Ok(Declared {
        data_type,
        domain,
        serial: false,
    })
}
