//! Partial indexes: which rows have entries there. The first column of such an index is NULL for rows
//! beyond its predicate. These cost it nothing.

use thermocline_storage::key::begins_with_null;

use super::{IndexDef, Table, TableDef};

/// Which indexes of a table are partial ones.
pub(super) fn partial(def: &TableDef) -> Vec<bool> {
    let is_partial = |index: &IndexDef| def.predicate_of(index).is_some();
    def.indexes.iter().map(is_partial).collect()
}

impl Table {
    /// Whether a row with this key of `index` has an entry there: those beyond the predicate of a
    /// partial index have none.
    #[inline]
    pub(crate) fn has_entry(&self, index: usize, key: &[u8]) -> bool {
        !(self.partial[index] && begins_with_null(key))
    }
}
