//! What rows that were just stored refer to.

use std::borrow::Cow;

use thermocline_engine::{Access, RowId, Table};

use super::Stop;
use crate::error::SqlError;
use crate::plan::{Reference, ReferredTo};

/// Rows that a run has stored and that refer to others: those are looked for when all are stored,
/// as they may be among them.
#[derive(Default)]
pub(super) struct Referring<'a> {
    rows: Vec<(RowId, Cow<'a, [u8]>)>,
    key: Vec<u8>,
}

impl<'a> Referring<'a> {
    /// Forgets all: the run begins again.
    pub(super) fn clear(&mut self) {
        self.rows.clear();
    }

    /// Notes a row that was stored.
    pub(super) fn add(&mut self, references: &[Reference], row: RowId, tuple: Cow<'a, [u8]>) {
        if !references.is_empty() {
            self.rows.push((row, tuple));
        }
    }

    /// Expects all that the rows refer to.
    ///
    /// # Errors
    /// 23503.
    pub(super) fn expect(
        &mut self,
        access: &mut Access<'_>,
        table: &Table,
        references: &[Reference],
    ) -> std::result::Result<(), Stop> {
        for (row, tuple) in &self.rows {
            expect(access, table, references, (*row, tuple), &mut self.key)?;
        }
        Ok(())
    }
}

/// Expects what one row refers to.
pub(super) fn expect(
    access: &mut Access<'_>,
    table: &Table,
    references: &[Reference],
    (row, tuple): (RowId, &[u8]),
    key: &mut Vec<u8>,
) -> std::result::Result<(), Stop> {
    for reference in references {
        let parent = &*reference.parent;
        key.clear();
        match reference.key(table, tuple, key) {
            ReferredTo::Nothing => {}
            ReferredTo::Key => {
                access.expect_parent((table, row, tuple), reference.number, (parent, key))?;
            }
            ReferredTo::NoRow => {
                return Err(table
                    .reference_violation(reference.number, parent, tuple)
                    .into());
            }
            ReferredTo::Mixed => return Err(mixed(table, reference).into()),
        }
    }
    Ok(())
}

#[cold]
fn mixed(table: &Table, reference: &Reference) -> SqlError {
    let name = &table.foreign_keys[reference.number].name;
    let message = format!(
        "insert or update on table \"{}\" violates foreign key constraint \"{name}\"",
        table.name
    );
    SqlError::new("23503", message)
        .with_detail("MATCH FULL does not allow mixing of null and nonnull key values.")
        .with_table(&table.schema, &table.name)
        .with_constraint(name)
}
