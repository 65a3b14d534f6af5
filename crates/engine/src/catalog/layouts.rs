//! The layouts that the tuples of a table may have, by their numbers: numbers are only ever added
//! while the storage lives (`storages`).

use thermocline_storage::tuple::{ColumnShape, LAYOUTS_MAX, Layouts};
use thermocline_values::types::DataType;

use super::definitions::{ColumnDef, LostLayout, TableDef};
use crate::ground::error::{Error, Result};

/// Columns count as nullable in tuples whatever the definition says: SET NOT NULL must not
/// change what is stored.
fn shape(data_type: DataType) -> ColumnShape {
    ColumnShape {
        data_type,
        nullable: true,
    }
}

/// The layouts that tuples of this definition may have.
pub(crate) fn layouts(def: &TableDef) -> Layouts {
    let own = def.columns.iter().filter(|column| column.added_in == 0);
    let own: Vec<ColumnShape> = own.map(|column| shape(column.data_type)).collect();
    let mut layouts = Layouts::new(&own);
    let mut lost = def.lost.iter().peekable();
    for column in def.columns.iter().filter(|column| column.added_in > 0) {
        while let Some(next) = lost.next_if(|lost| lost.version < column.added_in) {
            add_lost(&mut layouts, next);
        }
        layouts.add_column(shape(column.data_type), column.missing.clone());
    }
    lost.for_each(|lost| add_lost(&mut layouts, lost));
    layouts
}

fn add_lost(layouts: &mut Layouts, lost: &LostLayout) {
    let others: Vec<ColumnShape> = lost.columns.iter().map(|of| shape(*of)).collect();
    layouts.add_lost(&others);
}

impl TableDef {
    fn columns_before(&self, version: u16) -> impl Iterator<Item = &ColumnDef> {
        self.columns.iter().filter(move |c| c.added_in < version)
    }

    fn has_layout(&self, version: u16) -> bool {
        version == 0
            || self.columns.iter().any(|c| c.added_in == version)
            || self.lost.iter().any(|lost| lost.version == version)
    }

    /// Types of all columns of a layout.
    fn layout(&self, version: u16) -> Vec<DataType> {
        let lost = self.lost.iter().find(|lost| lost.version == version);
        let others = lost.map_or(&[][..], |lost| &lost.columns);
        let own = self.columns_before(match lost {
            Some(_) => version,
            None => version + 1,
        });
        own.map(|c| c.data_type)
            .chain(others.iter().copied())
            .collect()
    }

    /// The largest number that a layout has.
    fn newest_layout(&self) -> u16 {
        let columns = self.columns.iter().map(|c| c.added_in);
        columns
            .chain(self.lost.iter().map(|l| l.version))
            .max()
            .unwrap_or(0)
    }

    /// Whether each layout of `other` is known here.
    pub(crate) fn has_layouts_of(&self, other: &TableDef) -> bool {
        (1..=other.newest_layout()).all(|version| self.has_layout(version))
    }

    /// Takes over the layouts of `other`, a definition of the same storage, that are not
    /// known here.
    pub(crate) fn keep_layouts_of(&mut self, other: &TableDef) {
        for version in 1..=other.newest_layout() {
            if self.has_layout(version) || !other.has_layout(version) {
                continue;
            }
            let own = self.columns_before(version).count();
            let columns = other.layout(version).into_iter().skip(own).collect();
            self.lost.push(LostLayout { version, columns });
        }
        self.lost.sort_by_key(|lost| lost.version);
    }

    /// Numbers the columns that this has and `before` has not, above all numbers that are
    /// known there and in `known`, by which the storage is read. The newest is taken again if
    /// it is of the same columns and lost.
    pub(crate) fn number_columns_after(
        &mut self,
        before: &TableDef,
        known: &TableDef,
    ) -> Result<()> {
        let first = before.columns.len().min(self.columns.len());
        // In none of the layouts that there are.
        for column in &mut self.columns[first..] {
            column.added_in = u16::MAX;
        }
        self.lost.clone_from(&before.lost);
        self.keep_layouts_of(known);
        for position in first..self.columns.len() {
            let newest = self.newest_layout_before(position);
            let wanted: Vec<DataType> = self.columns[..=position]
                .iter()
                .map(|c| c.data_type)
                .collect();
            let again = self.lost.iter().any(|lost| lost.version == newest)
                && self.layout(newest) == wanted;
            if again {
                self.lost.retain(|lost| lost.version != newest);
            }
            let version = newest + u16::from(!again);
            if usize::from(version) >= LAYOUTS_MAX {
                return Err(Error::catalog(
                    "54000",
                    format!(
                        "cannot add another column to table \"{}\": its rows have {LAYOUTS_MAX} \
                         layouts, the most there can be; copy the rows into a new table",
                        self.name
                    ),
                ));
            }
            self.columns[position].added_in = version;
        }
        Ok(())
    }

    fn newest_layout_before(&self, position: usize) -> u16 {
        let columns = self.columns[..position].iter().map(|c| c.added_in);
        let lost = self.lost.iter().map(|lost| lost.version);
        columns.chain(lost).max().unwrap_or(0)
    }
}
