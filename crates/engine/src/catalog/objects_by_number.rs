//! Maps that catalogs are made of. A catalog is copied with each definition, and the copy shares
//! what is the same. So a copy takes no time, many of them no memory, and what differs between
//! two is found by what they do not share.

use std::cmp::Ordering;
use std::sync::Arc;

use imbl::OrdMap;
use imbl::ordmap::DiffItem;

/// Objects of one kind by their numbers; a copy shares them.
pub type Objects<T> = OrdMap<u32, Arc<T>>;

/// The number of an object, and the object as it was and as it is.
pub(crate) type Changed<'a, T> = (u32, Option<&'a Arc<T>>, Option<&'a Arc<T>>);

/// The objects that are not the same in two catalogs, in the order of their numbers.
pub(crate) fn changes<'a, T>(
    old: &'a Objects<T>,
    new: &'a Objects<T>,
) -> impl Iterator<Item = Changed<'a, T>> {
    let same = old.ptr_eq(new);
    let of = |all: &'a Objects<T>| all.iter().filter(move |_| !same).peekable();
    let (mut old, mut new) = (of(old), of(new));
    std::iter::from_fn(move || {
        loop {
            let (oid, order) = match (old.peek(), new.peek()) {
                (None, None) => return None,
                (Some((oid, _)), None) => (**oid, Ordering::Less),
                (None, Some((oid, _))) => (**oid, Ordering::Greater),
                (Some((old, _)), Some((new, _))) => (**old.min(new), old.cmp(new)),
            };
            let before = order.is_le().then(|| old.next()).flatten();
            let after = order.is_ge().then(|| new.next()).flatten();
            match (before.map(|(_, it)| it), after.map(|(_, it)| it)) {
                (Some(before), Some(after)) if Arc::ptr_eq(before, after) => {}
                (before, after) => return Some((oid, before, after)),
            }
        }
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
