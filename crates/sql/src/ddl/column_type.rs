//! The types that columns are declared as.

use sqlparser::ast;
use thermocline_query::analyze::Catalog;
use thermocline_query::types::domain::is_domain;
use thermocline_storage::types::DataType;

use crate::bind::{self, TypeNames};
use crate::error::{Result, SqlError};
use crate::parse::tokens::fold_parts;
use crate::typed::held;

/// What a column is declared as.
pub(super) struct Declared {
    pub(super) data_type: DataType,
    /// The domain that was named.
    pub(super) domain: Option<u32>,
    /// It is one of the serial types.
    pub(super) serial: bool,
}

/// The type of a column.
pub(super) fn column_type(name: &ast::DataType, names: TypeNames<'_>) -> Result<Declared> {
    let declared = |data_type, domain, serial| Declared {
        data_type,
        domain,
        serial,
    };
    if let ast::DataType::Custom(custom, _) = name {
        let parts = fold_parts(custom);
        if let [bare] = parts.as_slice() {
            let serial = match bare.as_str() {
                "serial" | "serial4" => Some(DataType::Integer),
                "bigserial" | "serial8" => Some(DataType::BigInt),
                "smallserial" | "serial2" => Some(DataType::SmallInt),
                _ => None,
            };
            if let Some(data_type) = serial {
                return Ok(declared(data_type, None, true));
            }
        }
        let domain = match parts.as_slice() {
            [name] => names.user_type(None, name),
            [schema, name] => names.user_type(Some(schema), name),
            _ => None,
        };
        if let Some(domain) = domain.filter(|oid| is_domain(*oid)) {
            let (oid, modifier) = bind::type_of_text(&name.to_string(), names)?;
            if oid == domain {
                let data_type = held(oid, modifier);
                let data_type =
                    data_type.ok_or_else(|| SqlError::internal("a domain of no type"))?;
                return Ok(declared(data_type, Some(domain), false));
            }
        }
    }
    Ok(declared(bind::data_type(name, names)?, None, false))
}
