//! Maps that catalogs are made of. A catalog is copied with each definition, and the copy shares
//! what is the same. So a copy takes no time, many of them no memory, and what differs between
//! two is found by what they do not share.

use std::sync::Arc;

use imbl::OrdMap;
use imbl::ordmap::DiffItem;

/// Objects of one kind by their numbers; a copy shares them.
pub type Objects<T> = OrdMap<u32, Arc<T>>;

/// The number of an object, and the object as it was and as it is.
pub(crate) type Changed<'a, T> = (u32, Option<&'a Arc<T>>, Option<&'a Arc<T>>);

/// The objects that are not the same in two catalogs, in the order of their numbers. What both
/// share is passed over without a look.
pub(crate) fn changes<'a, T: PartialEq>(
    old: &'a Objects<T>,
    new: &'a Objects<T>,
) -> impl Iterator<Item = Changed<'a, T>> {
    old.diff(new).map(|change| match change {
        DiffItem::Add(oid, new) => (*oid, None, Some(new)),
        DiffItem::Update { old, new } => (*new.0, Some(old.1), Some(new.1)),
        DiffItem::Remove(oid, old) => (*oid, Some(old), None),
    })
}

/// Keeps these entries of a map.
pub(crate) fn retain<K: Ord + Clone, V: Clone>(
    map: &mut OrdMap<K, V>,
    is_kept: impl Fn(&K, &V) -> bool,
) {
    let gone = map.iter().filter(|(key, value)| !is_kept(key, value));
    let gone: Vec<K> = gone.map(|(key, _)| key.clone()).collect();
    for key in gone {
        map.remove(&key);
    }
}

/// The entries of a map that are not as they were; those that are gone without a value.
pub(crate) fn changed_entries<K: Ord + Clone, V: PartialEq + Clone>(
    old: &OrdMap<K, V>,
    new: &OrdMap<K, V>,
) -> Vec<(K, Option<V>)> {
    let entry = |change| match change {
        DiffItem::Add(key, value)
        | DiffItem::Update {
            new: (key, value), ..
        } => (K::clone(key), Some(V::clone(value))),
        DiffItem::Remove(key, _) => (key.clone(), None),
    };
    old.diff(new).map(entry).collect()
}

/// Makes of a map what it was when [`changed_entries`] looked.
pub(crate) fn apply_entries<K: Ord + Clone, V: Clone>(
    map: &mut OrdMap<K, V>,
    changed: Vec<(K, Option<V>)>,
) {
    for (key, value) in changed {
        match value {
            Some(value) => map.insert(key, value),
            None => map.remove(&key),
        };
    }
}
