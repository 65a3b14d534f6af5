//! Entries of an index on their way into it. Gathered and in order they go in one behind the other:
//! a B+tree finds the place of each where the one before went, and its leaves become full.

use crate::catalog::IndexKind;
use crate::ground::error::Result;
use crate::rows::index::{Index, Unique};

/// Byte strings, one behind the other.
#[derive(Default)]
pub(super) struct Strings {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Strings {
    pub fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.ends.push(self.bytes.len());
    }

    #[inline]
    pub fn get(&self, at: u32) -> &[u8] {
        let at = at as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[at]]
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|at| self.get(at))
    }

    pub fn len(&self) -> u32 {
        self.ends.len() as u32
    }

    /// Empties it; memory for so many bytes and strings is kept, if it has no more.
    pub fn clear(&mut self, kept: usize) {
        if self.bytes.capacity() + self.ends.capacity() > kept {
            *self = Self::default();
        }
        self.bytes.clear();
        self.ends.clear();
    }

    /// Their places in the order of the strings.
    pub fn order(&self) -> Vec<u32> {
        // Most keys begin with the byte that says that there is a value.
        let first = self.bytes.first();
        let skipped = usize::from(self.iter().all(|string| string.first() == first));
        let head = |string: &[u8]| {
            let mut head = [0; size_of::<u64>()];
            let rest = &string[skipped.min(string.len())..];
            let bytes = rest.len().min(head.len());
            head[..bytes].copy_from_slice(&rest[..bytes]);
            u64::from_be_bytes(head)
        };
        let mut heads: Vec<(u64, u32)> = self.iter().map(head).zip(0..).collect();
        // What is sorted in part takes less time so.
        heads.sort_by(|(a, one), (b, other)| {
            a.cmp(b).then_with(|| self.get(*one).cmp(self.get(*other)))
        });
        heads.into_iter().map(|(_, at)| at).collect()
    }
}

/// See the module's head.
#[derive(Default)]
pub(super) struct Entries {
    keys: Strings,
    rows: Vec<u32>,
}

impl Entries {
    pub fn push(&mut self, key: &[u8], row: u32) {
        self.keys.push(key);
        self.rows.push(row);
    }

    /// The entries, in the order in which an index takes them best.
    fn ordered(&self, kind: IndexKind) -> impl Iterator<Item = (&[u8], u32)> {
        let order = match kind {
            IndexKind::BTree => self.keys.order(),
            IndexKind::Hash => (0..self.keys.len()).collect(),
        };
        let entry = |at: u32| (self.keys.get(at), self.rows[at as usize]);
        order.into_iter().map(entry)
    }

    /// Adds all to an index in which rows may have the same key.
    pub fn add_to(&self, index: &mut Index) -> Result<()> {
        let mut entries = self.ordered(index.kind()).peekable();
        let first = entries.peek().map(|(key, _)| *key);
        if first.is_some_and(|first| index.ends_before(first)) {
            return index.append(entries);
        }
        entries.try_for_each(|(key, row)| index.insert(key, row))
    }

    /// Adds all to a unique index, and says of each how unique its key is.
    pub fn add_to_unique(
        &self,
        index: &mut Index,
        mut each: impl FnMut(&[u8], u32, Unique),
    ) -> Result<()> {
        let mut entries = self.ordered(index.kind()).peekable();
        let first = entries.peek().map(|(key, _)| *key);
        if first.is_some_and(|first| index.ends_before(first)) {
            let mut before = None;
            return index.append(entries.filter(|(key, row)| {
                let is_new = before.replace(*key) != Some(*key);
                let unique = if is_new { Unique::Yes } else { Unique::No };
                each(key, *row, unique);
                is_new
            }));
        }
        for (key, row) in entries {
            let unique = index.insert_unique(key, row)?;
            each(key, row, unique);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_order_is_that_of_the_strings(
            strings in prop::collection::vec(prop::collection::vec(0u8..3, 0..12), 0..80),
            with_head in any::<bool>(),
        ) {
            let mut list = Strings::default();
            let strings = strings.into_iter().map(|mut string| {
                if with_head {
                    string.insert(0, 1);
                }
                string
            });
            let mut strings: Vec<Vec<u8>> = strings.collect();
            strings.iter().for_each(|string| list.push(string));
            let ordered: Vec<&[u8]> = list.order().into_iter().map(|at| list.get(at)).collect();
            strings.sort();
            prop_assert_eq!(ordered, strings);
        }
    }
}
