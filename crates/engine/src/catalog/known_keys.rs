//! What is known of a row's key without reading the row, by the definition of its table.

use thermocline_values::types::DataType;

use super::definitions::{IndexDef, IndexKind, TableDef};

/// The place of the index that the fingerprints in cold words are of.
pub(super) fn fingerprint_index(def: &TableDef) -> Option<usize> {
    let oid = def.fingerprinted?;
    let is_it = |index: &IndexDef| index.oid == oid && index.kind == IndexKind::Hash;
    def.indexes.iter().position(is_it)
}

/// See [`Table::knows_keys`](super::Table::knows_keys).
pub(super) fn knows_keys(def: &TableDef) -> bool {
    let [index] = def.indexes.as_slice() else {
        return false;
    };
    let is_integer = |column: &usize| {
        matches!(
            def.columns[*column].data_type,
            DataType::Integer | DataType::BigInt
        )
    };
    let keeps_keys = match index.kind {
        _ if def.computes(index) => false,
        IndexKind::BTree => true,
        IndexKind::Hash => {
            // The fingerprint is a part of what is known of the key.
            fingerprint_index(def).is_some()
                && index.columns.len() == 1
                && index.columns.iter().all(is_integer)
        }
    };
    let in_key = |column| index.columns.contains(column);
    let tells_partition = !def.partition_key.is_empty() && def.partition_key.iter().all(in_key);
    keeps_keys && index.unique && tells_partition
}
