//! Type names of SQL to types. Synonyms are PostgreSQL's.

use std::sync::LazyLock;

use sqlparser::ast::{self, CharacterLength, ExactNumberInfo, TimezoneInfo};
use thermocline_query::analyze::{Catalog, Stored, written_type};
use thermocline_query::error::{QueryError, Result as QueryResult};
use thermocline_query::types::format_type;
use thermocline_storage::types::{DataType, TEXT_LENGTH_MAX};

use crate::ddl::type_named;
use crate::error::{Result, SqlError};

/// Where the names of users' types are looked up.
#[derive(Clone, Copy)]
pub struct TypeNames<'a> {
    /// The types there are.
    pub catalog: &'a thermocline_engine::Catalog,
    /// Where unqualified names are looked for, in this order.
    pub search_path: &'a [String],
}

impl TypeNames<'_> {
    /// No user has made any.
    #[must_use]
    pub fn of_none() -> Self {
        static NONE: LazyLock<thermocline_engine::Catalog> =
            LazyLock::new(thermocline_engine::Catalog::empty);
        Self {
            catalog: &NONE,
            search_path: &[],
        }
    }
}

/// The type that `name` names; a type that no column can have is an error.
///
/// # Errors
/// 0A000 for a type that PostgreSQL has and this database has not, 42704 for
/// an unknown one, 22023 for lengths and precisions out of bounds.
pub fn data_type(name: &ast::DataType, names: TypeNames<'_>) -> Result<DataType> {
    use ast::DataType as Sql;
    Ok(match name {
        Sql::Bool | Sql::Boolean => DataType::Boolean,
        Sql::SmallInt(_) | Sql::Int2(_) => DataType::SmallInt,
        Sql::Int(_) | Sql::Integer(_) | Sql::Int4(_) => DataType::Integer,
        Sql::BigInt(_) | Sql::Int8(_) => DataType::BigInt,
        Sql::Real | Sql::Float4 => DataType::Real,
        Sql::Float8 | Sql::DoublePrecision | Sql::Double(_) | Sql::Float(ExactNumberInfo::None) => {
            DataType::Double
        }
        Sql::Float(ExactNumberInfo::Precision(bits)) => match bits {
            1..=24 => DataType::Real,
            25..=53 => DataType::Double,
            0 => return Err(invalid("precision for type float must be at least 1 bit")),
            _ => {
                return Err(invalid(
                    "precision for type float must be less than 54 bits",
                ));
            }
        },
        Sql::Numeric(info) | Sql::Decimal(info) | Sql::Dec(info) => numeric(info)?,
        Sql::Text => DataType::Text,
        Sql::Varchar(length) | Sql::CharacterVarying(length) | Sql::CharVarying(length) => {
            DataType::Varchar(text_length(length.as_ref(), "varchar")?.unwrap_or(0))
        }
        Sql::Char(length) | Sql::Character(length) => {
            DataType::Char(text_length(length.as_ref(), "char")?.unwrap_or(1))
        }
        Sql::Bytea => DataType::Bytea,
        Sql::Date => DataType::Date,
        Sql::Timestamp(None, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            DataType::Timestamp
        }
        Sql::Timestamp(None, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => {
            DataType::TimestampTz
        }
        Sql::Uuid => DataType::Uuid,
        Sql::Custom(custom_name, modifiers) => custom(
            &custom_name.to_string(),
            modifiers,
            &name.to_string(),
            names,
        )?,
        other => analysed(&other.to_string(), names)?,
    })
}

fn custom(name: &str, modifiers: &[String], text: &str, names: TypeNames<'_>) -> Result<DataType> {
    let folded = name.to_lowercase();
    let bare = folded
        .strip_prefix("pg_catalog.")
        .unwrap_or(&folded)
        .trim_matches('"');
    let number = |at: usize| -> Result<Option<u64>> {
        modifiers
            .get(at)
            .map(|text| {
                text.parse()
                    .map_err(|_| invalid("type modifiers must be numbers"))
            })
            .transpose()
    };
    Ok(match bare {
        "bool" => DataType::Boolean,
        "int2" => DataType::SmallInt,
        "int4" => DataType::Integer,
        "int8" => DataType::BigInt,
        "float4" => DataType::Real,
        "float8" => DataType::Double,
        "text" => DataType::Text,
        "bytea" => DataType::Bytea,
        "date" => DataType::Date,
        "timestamp" if modifiers.is_empty() => DataType::Timestamp,
        "timestamptz" if modifiers.is_empty() => DataType::TimestampTz,
        "uuid" => DataType::Uuid,
        "varchar" => DataType::Varchar(bounded(number(0)?, "varchar")?.unwrap_or(0)),
        "bpchar" => DataType::Char(bounded(number(0)?, "char")?.unwrap_or(0)),
        "numeric" | "decimal" if modifiers.is_empty() => DataType::NUMERIC,
        _ => return analysed(text, names),
    })
}

impl Catalog for TypeNames<'_> {
    fn relation(&self, _: Option<&str>, _: &str) -> QueryResult<Option<Stored>> {
        Ok(None)
    }

    fn user_type(&self, schema: Option<&str>, name: &str) -> Option<u32> {
        type_named(self.catalog, self.search_path, schema, name)
    }
}

/// A type that the analyzer knows by this text.
fn analysed(text: &str, names: TypeNames<'_>) -> Result<DataType> {
    let (oid, modifier) = type_of_text(text, names)?;
    DataType::from_oid(oid, modifier).ok_or_else(|| {
        let name = format_type(oid, -1);
        SqlError::unsupported(
            format!("columns of type {name} are not supported"),
            "Store the value as text, and cast it where it is used.",
        )
    })
}

/// The number and the modifier of the type that a text names.
///
/// # Errors
/// 42704 and others of a type's name and modifiers.
pub(crate) fn type_of_text(text: &str, names: TypeNames<'_>) -> Result<(u32, i32)> {
    written_type(text, &names).map_err(without_place)
}

/// An error whose place is in another text than the statement's.
fn without_place(error: QueryError) -> SqlError {
    SqlError::from(error)
}

fn numeric(info: &ExactNumberInfo) -> Result<DataType> {
    match *info {
        ExactNumberInfo::None => Ok(DataType::NUMERIC),
        ExactNumberInfo::Precision(precision) => exact(precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => exact(precision, scale),
    }
}

fn exact(precision: u64, scale: i64) -> Result<DataType> {
    let precision = i64::try_from(precision).unwrap_or(i64::MAX);
    Ok(DataType::numeric(precision, scale)?)
}

fn text_length(length: Option<&CharacterLength>, type_name: &str) -> Result<Option<u32>> {
    match length {
        None | Some(CharacterLength::Max) => Ok(None),
        Some(CharacterLength::IntegerLength { length, .. }) => bounded(Some(*length), type_name),
    }
}

fn bounded(length: Option<u64>, type_name: &str) -> Result<Option<u32>> {
    match length {
        None => Ok(None),
        Some(0) => Err(invalid(&format!(
            "length for type {type_name} must be at least 1"
        ))),
        Some(length) if length > u64::from(TEXT_LENGTH_MAX) => Err(invalid(&format!(
            "length for type {type_name} cannot exceed {TEXT_LENGTH_MAX}"
        ))),
        Some(length) => Ok(Some(length as u32)),
    }
}

#[cold]
fn invalid(message: &str) -> SqlError {
    SqlError::new("22023", message)
}
