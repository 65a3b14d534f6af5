//! Whether definitions that were read from a device make sense: what is derived from them takes
//! that for granted. Checksums tell what is damaged; this is for what is not, and is wrong.

use thermocline_storage::tuple::LAYOUTS_MAX;

use super::{CatalogImage, SequenceDef, TableDef};
use crate::ground::error::{Error, Result};

impl TableDef {
    /// What is wrong with it, in words.
    fn fault(&self) -> Option<&'static str> {
        let is_column = |column: &usize| *column < self.columns.len();
        let all = self.indexes.iter();
        let mut indexed = all.flat_map(|index| index.columns.iter().chain(&index.include));
        if !indexed.all(is_column) {
            return Some("an index is of a column that it has not");
        }
        if !self.partition_key.iter().all(is_column) {
            return Some("its partition key is of a column that it has not");
        }
        let added = self.columns.iter().map(|column| column.added_in);
        let mut layouts = added.chain(self.lost.iter().map(|lost| lost.version));
        if layouts.any(|version| usize::from(version) >= LAYOUTS_MAX) {
            return Some("the number of a layout is too large");
        }
        if self.columns.len() > usize::from(u16::MAX) {
            return Some("it has too many columns");
        }
        let triggers = self.triggers.iter();
        if !triggers.flat_map(|trigger| &trigger.columns).all(is_column) {
            return Some("a trigger is for a column that it has not");
        }
        let mut columns = self.columns.iter();
        if columns.any(|column| column.generated && column.default.is_none()) {
            return Some("a generated column is computed by nothing");
        }
        None
    }

    /// Checks a definition that was read; `place` is where.
    pub(crate) fn check(&self, place: &str) -> Result<()> {
        match self.fault() {
            Some(fault) => Err(wrong(place, "table", &self.name, fault)),
            None => Ok(()),
        }
    }
}

impl SequenceDef {
    fn fault(&self) -> Option<&'static str> {
        match (self.increment, self.min <= self.max) {
            (0, _) => Some("its step is 0"),
            (_, false) => Some("its smallest value is above its largest"),
            _ => None,
        }
    }
}

impl CatalogImage {
    /// Checks a catalog that was read; `place` is where.
    pub(crate) fn check(&self, place: &str) -> Result<()> {
        self.tables
            .iter()
            .try_for_each(|table| table.check(place))?;
        for sequence in &self.sequences {
            if let Some(fault) = sequence.fault() {
                return Err(wrong(place, "sequence", &sequence.name, fault));
            }
        }
        Ok(())
    }
}

fn wrong(place: &str, kind: &str, name: &str, fault: &str) -> Error {
    Error::Corrupt(format!("{place}: {kind} \"{name}\": {fault}"))
}
