//! The names of temporary schemas. A session that makes something temporary has a schema of its
//! own for it, `pg_temp_N`; it calls it `pg_temp`, and its names hide others.
//!
//! A session's search path names its temporary schema and no other one ([`crate::settings`]), so
//! that whoever has the path knows which is the session's. Relations of other sessions are seen
//! in the catalogs, and cannot be read or written.

use std::borrow::Cow;

use crate::error::{Result, SqlError};

/// What every session calls its own.
pub(crate) const ALIAS: &str = "pg_temp";
const PREFIX: &str = "pg_temp_";

/// The name of the schema with this number.
pub(crate) fn schema_named(number: u32) -> String {
    format!("{PREFIX}{number}")
}

/// The number of a temporary schema.
pub(crate) fn number_of(schema: &str) -> Option<u32> {
    schema.strip_prefix(PREFIX)?.parse().ok()
}

/// Whether what is in the schema is temporary, whosever it is.
pub(crate) fn is_temporary(schema: &str) -> bool {
    schema.starts_with(PREFIX)
}

/// The session's temporary schema, which need not be there.
pub(crate) fn own(search_path: &[String]) -> Option<&str> {
    let mut path = search_path.iter();
    path.find(|schema| is_temporary(schema)).map(String::as_str)
}

/// The session's temporary schema where it comes before all others, `pg_catalog` among them.
pub(crate) fn first(search_path: &[String]) -> Option<&str> {
    let first = search_path.first()?;
    is_temporary(first).then_some(first)
}

/// The schema that a name is qualified with.
pub(crate) fn meant<'a>(schema: &'a str, search_path: &'a [String]) -> &'a str {
    match schema {
        ALIAS => own(search_path).unwrap_or(schema),
        schema => schema,
    }
}

/// Whether the schema is another session's.
pub(crate) fn is_others(schema: &str, search_path: &[String]) -> bool {
    is_temporary(schema) && own(search_path) != Some(schema)
}

/// 0A000 for what is another session's.
pub(crate) fn not_others(schema: &str, search_path: &[String]) -> Result<()> {
    match is_others(schema, search_path) {
        false => Ok(()),
        true => Err(SqlError::unsupported(
            "cannot access temporary tables of other sessions",
            "Use a table that is not temporary.",
        )),
    }
}

/// The path by which what belongs to a relation of this schema means its names: what is not
/// temporary knows nothing that is.
pub(crate) fn path_within<'a>(schema: &str, search_path: &'a [String]) -> Cow<'a, [String]> {
    if is_temporary(schema) || own(search_path).is_none() {
        return Cow::Borrowed(search_path);
    }
    let lasting = search_path.iter().filter(|schema| !is_temporary(schema));
    Cow::Owned(lasting.cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_says_which_schema_is_the_sessions() {
        let path = ["pg_temp_3".to_owned(), "public".to_owned()];
        assert_eq!(meant("pg_temp", &path), "pg_temp_3");
        assert_eq!(meant("pg_temp", &path[1..]), "pg_temp");
        assert_eq!(meant("app", &path), "app");
        assert!(is_others("pg_temp_4", &path) && !is_others("pg_temp_3", &path));
        assert!(is_others("pg_temp_3", &path[1..]) && !is_others("public", &path));
        assert_eq!(*path_within("public", &path), path[1..]);
        assert_eq!(*path_within("pg_temp_3", &path), path);
        assert_eq!(number_of(&schema_named(7)), Some(7));
    }
}
