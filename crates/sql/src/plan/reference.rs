//! Foreign keys as statements that change rows see them: which row a row refers to, and how rows
//! are found that refer to another.

use std::sync::Arc;

use thermocline_engine::{Catalog, ForeignKeyDef, IndexKind, Table, TableDef};
use thermocline_values::value::ValueRef;

use super::{Fit, fit};

/// A foreign key of a table that rows are stored in.
#[derive(Clone, Debug)]
pub struct Reference {
    /// Its place among the table's.
    pub number: usize,
    /// The table referred to.
    pub parent: Arc<Table>,
    /// The place of the index referred to among its.
    index: usize,
    /// The referring columns in the order of the index.
    columns: Vec<usize>,
}

/// What a row refers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReferredTo {
    /// Nothing: there is a NULL in it.
    Nothing,
    /// Some of it is NULL, and MATCH FULL does not allow that.
    Mixed,
    /// No row can have the key: its columns' types have no such value.
    NoRow,
    /// The row with the key that was appended.
    Key,
}

impl Reference {
    /// The foreign keys of a table, by its number and those of its columns of which `touched`
    /// is one.
    pub(crate) fn of(
        catalog: &Catalog,
        table: &Arc<Table>,
        touched: impl Fn(&usize) -> bool,
    ) -> Vec<Self> {
        let keys = table.foreign_keys.iter().enumerate();
        let keys = keys.filter(|(_, key)| key.columns.iter().any(&touched));
        keys.filter_map(|(number, key)| Self::new(catalog, table, number, key))
            .collect()
    }

    fn new(
        catalog: &Catalog,
        table: &Arc<Table>,
        number: usize,
        key: &ForeignKeyDef,
    ) -> Option<Self> {
        let parent = match key.table == table.oid {
            true => table,
            false => catalog.table(key.table)?,
        };
        let index = parent.unique_over(&key.referenced)?;
        let referring = |column: &usize| {
            let at = key.referenced.iter().position(|of| of == column)?;
            key.columns.get(at).copied()
        };
        let columns = parent.indexes[index].columns.iter().map(referring);
        Some(Self {
            number,
            index,
            columns: columns.collect::<Option<_>>()?,
            parent: Arc::clone(parent),
        })
    }

    /// Appends the key that a tuple of `table` refers to.
    pub(crate) fn key(&self, table: &Table, tuple: &[u8], out: &mut Vec<u8>) -> ReferredTo {
        let value = |column: &usize| table.value(tuple, *column);
        let nulls = self
            .columns
            .iter()
            .filter(|column| value(column) == ValueRef::Null);
        match nulls.count() {
            0 => {}
            some if table.foreign_keys[self.number].match_full && some < self.columns.len() => {
                return ReferredTo::Mixed;
            }
            _ => return ReferredTo::Nothing,
        }
        let mut values = Vec::with_capacity(self.columns.len());
        let referred = &self.parent.indexes[self.index].columns;
        for (column, to) in self.columns.iter().zip(referred) {
            match fit(value(column), self.parent.columns[*to].data_type) {
                Fit::Exact(value) => values.push(value),
                _ => return ReferredTo::NoRow,
            }
        }
        self.parent.encode_index_key(self.index, &values, out);
        ReferredTo::Key
    }

    /// The partition of the row with a key; none: it may be in any.
    pub(crate) fn partition(&self, key: &[u8]) -> Option<u16> {
        self.parent.partition_of_index_key(self.index, key)
    }
}

/// An index by which the rows are found that refer to a key.
pub(crate) struct ReferringIndex {
    /// Its place among the table's.
    pub index: usize,
    /// For its leading columns, which of the foreign key's they are.
    pub order: Vec<usize>,
    /// They are all of its columns.
    pub whole: bool,
}

/// The best index over the columns of a foreign key, if there is one.
pub(crate) fn referring_index(table: &TableDef, key: &ForeignKeyDef) -> Option<ReferringIndex> {
    let width = key.columns.len();
    let over = |index: usize| {
        let def = &table.indexes[index];
        let whole = def.columns.len() == width;
        let leading = def.columns.get(..width)?;
        if !whole && def.kind != IndexKind::BTree {
            return None;
        }
        let place = |column: &usize| key.columns.iter().position(|of| of == column);
        let order = leading.iter().map(place).collect::<Option<Vec<_>>>()?;
        Some(ReferringIndex {
            index,
            order,
            whole,
        })
    };
    let found: Vec<ReferringIndex> = (0..table.indexes.len()).filter_map(over).collect();
    let local = |index: &ReferringIndex| {
        index.whole && table.indexes[index.index].columns == table.partition_key
    };
    let at = found
        .iter()
        .position(local)
        .or_else(|| found.iter().position(|index| index.whole))
        .unwrap_or(0);
    found.into_iter().nth(at)
}

/// Whether a change of these columns may take away keys that foreign keys refer to.
pub(crate) fn takes_keys(table: &Table, assigned: impl Fn(&usize) -> bool) -> bool {
    let mut unique = table.indexes.iter().filter(|index| index.unique);
    table.is_referenced() && unique.any(|index| index.columns.iter().any(&assigned))
}
