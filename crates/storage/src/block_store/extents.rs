//! Free space of the blocks' file, in sectors. Guarantees: extents never overlap
//! and never touch; giving back what is already free is a broken invariant.

use std::collections::BTreeMap;

/// The free extents by offset.
#[derive(Default)]
pub(super) struct FreeExtents {
    extents: BTreeMap<u64, u64>,
    sectors: u64,
}

impl FreeExtents {
    /// Takes `sectors` from the first extent that has them.
    pub fn take(&mut self, sectors: u64) -> Option<u64> {
        assert!(sectors > 0, "nothing is not taken");
        let (&offset, &length) = self
            .extents
            .iter()
            .find(|(_, length)| **length >= sectors)?;
        self.extents.remove(&offset);
        if length > sectors {
            self.extents.insert(offset + sectors, length - sectors);
        }
        self.sectors -= sectors;
        Some(offset)
    }

    /// Gives an extent back, and joins it with its neighbours.
    pub fn give(&mut self, mut offset: u64, sectors: u64) {
        assert!(sectors > 0, "nothing is not given back");
        self.sectors += sectors;
        let mut end = offset + sectors;
        if let Some((&before, &length)) = self.extents.range(..offset).next_back() {
            assert!(before + length <= offset, "an extent is freed once");
            if before + length == offset {
                self.extents.remove(&before);
                offset = before;
            }
        }
        if let Some((&after, &length)) = self.extents.range(offset..).next() {
            assert!(end <= after, "an extent is freed once");
            if after == end {
                self.extents.remove(&after);
                end += length;
            }
        }
        self.extents.insert(offset, end - offset);
    }

    /// Where the free extent begins that ends at `end`; `end` when there is none.
    pub fn tail_start(&self, end: u64) -> u64 {
        match self.extents.last_key_value() {
            Some((&offset, &length)) if offset + length == end => offset,
            _ => end,
        }
    }

    /// Forgets the free space from `from` to the end.
    pub fn cut(&mut self, from: u64) {
        if let Some((offset, length)) = self.extents.pop_last() {
            assert!(
                offset <= from && from <= offset + length,
                "only the tail is cut"
            );
            self.sectors -= offset + length - from;
            if from > offset {
                self.extents.insert(offset, from - offset);
            }
        }
    }

    /// Free sectors.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Number of extents.
    pub fn count(&self) -> usize {
        self.extents.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn extents_agree_with_a_bitmap(
            steps in prop::collection::vec((any::<bool>(), 1u64..9, any::<prop::sample::Index>()), 0..200)
        ) {
            let mut bitmap = [true; 128];
            let mut extents = FreeExtents::default();
            extents.give(0, 128);
            let mut taken: Vec<(u64, u64)> = Vec::new();
            for (take, sectors, pick) in steps {
                if take {
                    let first_fit = bitmap
                        .windows(sectors as usize)
                        .position(|window| window.iter().all(|free| *free));
                    let got = extents.take(sectors);
                    prop_assert_eq!(got, first_fit.map(|at| at as u64));
                    if let Some(offset) = got {
                        bitmap[offset as usize..(offset + sectors) as usize].fill(false);
                        taken.push((offset, sectors));
                    }
                } else if !taken.is_empty() {
                    let (offset, sectors) = taken.swap_remove(pick.index(taken.len()));
                    bitmap[offset as usize..(offset + sectors) as usize].fill(true);
                    extents.give(offset, sectors);
                }
                let runs = bitmap.chunk_by(|a, b| a == b).filter(|run| run[0]).count();
                prop_assert_eq!(extents.count(), runs);
                prop_assert_eq!(extents.sectors(), bitmap.iter().filter(|f| **f).count() as u64);
                let tail = bitmap.iter().rev().take_while(|free| **free).count() as u64;
                prop_assert_eq!(extents.tail_start(128), 128 - tail);
            }
        }
    }
}
