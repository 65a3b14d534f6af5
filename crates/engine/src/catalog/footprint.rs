//! What the definition of a table takes in memory.

use thermocline_storage::key::KeyShape;

use crate::catalog::trigger::TriggerDef;
use crate::catalog::{ColumnDef, ForeignKeyDef, IndexDef, KeyOrder, Table};

impl Table {
    /// About what the definition takes in memory, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        let names = self.def.name.len() + self.def.schema.len();
        let column = |column: &ColumnDef| 2 * size_of::<ColumnDef>() + 4 * column.name.len();
        let index = |index: &IndexDef| {
            size_of::<IndexDef>()
                + size_of::<KeyShape>()
                + 64
                + index.name.len()
                + index.order.len() * size_of::<KeyOrder>()
        };
        let columns = self.def.columns.iter().map(column).sum::<usize>();
        let indexes = self.def.indexes.iter().map(index).sum::<usize>();
        let key = |key: &ForeignKeyDef| {
            size_of::<ForeignKeyDef>() + size_of::<KeyShape>() + 64 + key.name.len()
        };
        let indexes = indexes + self.def.foreign_keys.iter().map(key).sum::<usize>();
        let triggers = self.def.triggers.iter().map(TriggerDef::memory_bytes);
        // Once as it is stored, and once as a view.
        let query = self.view.iter().map(|view| 2 * view.memory_bytes());
        let parts = names + query.sum::<usize>() + columns + indexes + triggers.sum::<usize>();
        size_of::<Table>() + 128 + self.asked_for.bytes() + parts
    }
}
