//! Constraints that a row violates, in PostgreSQL's words.

use thermocline_values::text_format::write_text;
use thermocline_values::value::ValueRef;

use super::Table;
use crate::ground::error::Error;

impl Table {
    /// A tuple has a key of a unique index that another row has.
    pub(crate) fn unique_violation(&self, index: usize, tuple: &[u8]) -> Error {
        let def = &self.def.indexes[index];
        Error::UniqueViolation {
            schema: self.def.schema.as_str().into(),
            table: self.def.name.clone(),
            constraint: def.name.clone(),
            detail: format!(
                "{} already exists.",
                shown(self, self.def.key_of(def), tuple)
            ),
            building: false,
        }
    }

    /// 23503: a row of this table, `tuple`, refers to a row that is not there.
    #[must_use]
    pub fn reference_violation(&self, foreign_key: usize, parent: &Table, tuple: &[u8]) -> Error {
        let def = &self.def.foreign_keys[foreign_key];
        Error::ForeignKeyViolation {
            schema: self.def.schema.as_str().into(),
            table: self.def.name.as_str().into(),
            constraint: def.name.as_str().into(),
            referenced: None,
            detail: format!(
                "{} is not present in table \"{}\".",
                shown(self, &def.columns, tuple),
                parent.def.name
            )
            .into(),
        }
    }

    /// 23503: rows of this table refer to the key that `old`, a tuple of `parent`, had.
    #[must_use]
    pub fn still_referenced(&self, foreign_key: usize, parent: &Table, old: &[u8]) -> Error {
        let def = &self.def.foreign_keys[foreign_key];
        Error::ForeignKeyViolation {
            schema: self.def.schema.as_str().into(),
            table: self.def.name.as_str().into(),
            constraint: def.name.as_str().into(),
            referenced: Some(parent.def.name.as_str().into()),
            detail: format!(
                "{} is still referenced from table \"{}\".",
                shown(parent, &def.referenced, old),
                self.def.name
            )
            .into(),
        }
    }
}

/// `Key (a, b)=(1, 2)`
fn shown(table: &Table, columns: &[usize], tuple: &[u8]) -> String {
    let mut names = Vec::with_capacity(columns.len());
    let mut values = Vec::with_capacity(columns.len());
    for &column in columns {
        let def = &table.def.columns[column];
        let mut text = Vec::new();
        match table.value(tuple, column) {
            ValueRef::Null => text.extend_from_slice(b"null"),
            value => write_text(value, &def.data_type, &mut text),
        }
        names.push(def.shown());
        values.push(String::from_utf8_lossy(&text).into_owned());
    }
    format!("Key ({})=({})", names.join(", "), values.join(", "))
}
