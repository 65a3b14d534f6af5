//! Which definition reads the rows of a storage.
//!
//! The tuples of a storage name the layout that they have by its number, and so the numbers
//! are only ever added to while the storage lives: a number that was given to rows means the
//! same columns for good. That holds though the column that it came with was rolled back,
//! and whatever became of the transaction. What was ever announced here is in each
//! checkpoint's manifest (`drafts`) and, from the checkpoint on, in the log. So what an
//! image, the log or a block has of a storage can be read as long as it is there.

use std::sync::Arc;

use imbl::OrdMap;
use parking_lot::{RwLock, RwLockReadGuard};
use thermocline_device::Mutation;

use crate::catalog::Table;
use crate::catalog::objects_by_number::retain;

/// The definition that reads each storage: the committed one, or that of the transaction that
/// changes it; with all layouts that the storage's rows ever had.
#[derive(Default)]
pub(crate) struct Storages(RwLock<TablesByStorage>);

/// Tables by their storages; a copy shares them.
pub(crate) type TablesByStorage = OrdMap<u32, Arc<Table>>;

impl Storages {
    /// As they are now.
    pub fn read(&self) -> RwLockReadGuard<'_, TablesByStorage> {
        self.0.read()
    }

    /// Has this definition read its storage's rows, those of layouts that only the definition
    /// before knows, too.
    pub fn put(&self, table: &Arc<Table>) {
        put_in(&mut self.0.write(), table);
    }

    /// A storage's rows are gone.
    pub fn remove(&self, storage: u32) {
        self.0.write().remove(&storage);
    }

    /// Only these storages have rows.
    pub fn retain(&self, is_kept: impl Fn(u32) -> bool) {
        retain(&mut self.0.write(), |storage, _| is_kept(*storage));
    }
}

/// See [`Storages::put`].
pub(crate) fn put_in(storages: &mut TablesByStorage, table: &Arc<Table>) {
    let storage = table.def.storage;
    let known = storages
        .get(&storage)
        .filter(|_| !Mutation::LayoutsForgotten.is_made());
    let table = match known.filter(|known| !table.def.has_layouts_of(&known.def)) {
        None => table.clone(),
        Some(known) => {
            let mut def = table.def.clone();
            def.keep_layouts_of(&known.def);
            Arc::new(table.redefined(def))
        }
    };
    storages.insert(storage, table);
}
