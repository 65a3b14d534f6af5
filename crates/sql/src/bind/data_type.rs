//! Type names of SQL to types. Synonyms are PostgreSQL's.

use std::sync::LazyLock;

use thermocline_query::analyze::{Catalog, Stored, written_type};
use thermocline_query::error::{QueryError, Result as QueryResult};
use thermocline_query::types::format_type;
use thermocline_values::types::DataType;

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

impl Catalog for TypeNames<'_> {
    fn relation(&self, _: Option<&str>, _: &str) -> QueryResult<Option<Stored>> {
        Ok(None)
    }

    fn user_type(&self, schema: Option<&str>, name: &str) -> Option<u32> {
        type_named(self.catalog, self.search_path, schema, name)
    }
}

/// The type of a column of this number and modifier.
///
/// # Errors
/// 0A000 for a type that no column can have.
pub(crate) fn column_type(oid: u32, modifier: i32) -> Result<DataType> {
    DataType::from_oid(oid, modifier).ok_or_else(|| {
        let name = format_type(oid, -1);
        SqlError::unsupported(
            format!("columns of type {name} are not supported"),
            "Use a type of docs/reference/sql.md, for instance text.",
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
