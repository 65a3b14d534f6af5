//! Whether definitions that were read from a device make sense: what is derived from them takes
//! that for granted. Checksums tell what is damaged; this is for what is not, and is wrong.

use thermocline_storage::tuple::LAYOUTS_MAX;

use super::partitioning::{PartitionBound, PartitionStrategy, PartitionedBy};
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
        if let Some(by) = &self.partitioned {
            return by.fault(self.columns.len());
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

impl PartitionedBy {
    /// What is wrong with it in a table of so many columns, in words.
    fn fault(&self, columns: usize) -> Option<&'static str> {
        if self.columns.is_empty() || self.columns.iter().any(|column| *column >= columns) {
            return Some("it is partitioned by a column that it has not");
        }
        let fits = |bound: &PartitionBound| match (self.strategy, bound) {
            (_, PartitionBound::Default) => true,
            (PartitionStrategy::Range, PartitionBound::Range { from, to }) => {
                from.len() == self.columns.len() && to.len() == self.columns.len()
            }
            (PartitionStrategy::List, PartitionBound::List(_)) => self.columns.len() == 1,
            (PartitionStrategy::Hash, PartitionBound::Hash { modulus, .. }) => *modulus > 0,
            _ => false,
        };
        let mut partitions = self.partitions.iter();
        let all = partitions.all(|partition| fits(&partition.bound));
        (!all).then_some("a partition has a bound that is none of its key")
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

    /// Checks a definition that was read; `place` is where.
    pub(crate) fn check(&self, place: &str) -> Result<()> {
        match self.fault() {
            Some(fault) => Err(wrong(place, "sequence", &self.name, fault)),
            None => Ok(()),
        }
    }
}

impl CatalogImage {
    /// Checks a catalog that was read; `place` is where.
    pub(crate) fn check(&self, place: &str) -> Result<()> {
        let (mut tables, mut sequences) = (self.tables.iter(), self.sequences.iter());
        tables.try_for_each(|table| table.check(place))?;
        sequences.try_for_each(|sequence| sequence.check(place))
    }
}

fn wrong(place: &str, kind: &str, name: &str, fault: &str) -> Error {
    Error::Corrupt(format!("{place}: {kind} \"{name}\": {fault}"))
}
