//! The contents of a simulated file: what is seen, what is durable, and what lies between.
//!
//! Guarantees: `live` is `durable` with all `pending` changes done in order. What survives a
//! crash is `durable` with a random part of them: any set of the written pieces, and of the
//! changes of length the first few (file systems keep a journal of those, in order).

use std::collections::BTreeMap;
use std::ops::Range;

use crate::SECTOR_BYTES;
use crate::random::SplitMix64;

const SECTOR: u64 = SECTOR_BYTES as u64;

type Sector = Box<[u8; SECTOR_BYTES]>;

/// Bytes of a file; sectors that were never written take no memory and read as zeros.
#[derive(Clone, Debug, Default)]
pub(super) struct SparseImage {
    len: u64,
    sectors: BTreeMap<u64, Sector>,
    punched: Punched,
}

/// The sectors below a file's length whose space was given back: a bit each.
#[derive(Clone, Debug, Default)]
struct Punched {
    bits: Vec<u64>,
    count: u64,
}

impl Punched {
    /// Each word that these sectors lie in, and which of its bits they are.
    fn words(sectors: Range<u64>) -> impl Iterator<Item = (usize, u64)> {
        let words = sectors.start / 64..sectors.end.div_ceil(64);
        words.map(move |word| {
            let first = sectors.start.saturating_sub(word * 64);
            let beyond = (sectors.end - word * 64).min(64);
            (word as usize, u64::MAX >> (64 - (beyond - first)) << first)
        })
    }

    fn count_in(&self, sectors: Range<u64>) -> u64 {
        let words =
            Self::words(sectors).map_while(|(word, mask)| Some(self.bits.get(word)? & mask));
        words.map(|bits| u64::from(bits.count_ones())).sum()
    }

    fn insert(&mut self, sectors: Range<u64>) {
        let words = sectors.end.div_ceil(64) as usize;
        if self.bits.len() < words {
            self.bits.resize(words, 0);
        }
        for (word, mask) in Self::words(sectors) {
            self.count += u64::from((mask & !self.bits[word]).count_ones());
            self.bits[word] |= mask;
        }
    }

    fn remove(&mut self, sectors: Range<u64>) {
        for (word, mask) in Self::words(sectors) {
            let Some(bits) = self.bits.get_mut(word) else {
                return;
            };
            self.count -= u64::from((*bits & mask).count_ones());
            *bits &= !mask;
        }
    }

    /// Forgets all sectors from this one on.
    fn cut(&mut self, sectors: u64) {
        let end = self.bits.len() as u64 * 64;
        if sectors < end {
            self.remove(sectors..end);
            self.bits.truncate(sectors.div_ceil(64) as usize);
        }
    }
}

impl SparseImage {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Space taken on the device.
    pub(super) fn allocated_bytes(&self) -> u64 {
        (self.len.div_ceil(SECTOR) - self.punched.count) * SECTOR
    }

    /// Space that the file would take in addition if this range were written.
    pub(super) fn growth_bytes(&self, offset: u64, bytes: usize) -> u64 {
        if bytes == 0 {
            return 0;
        }
        let end = offset + bytes as u64;
        let beyond = end
            .div_ceil(SECTOR)
            .saturating_sub(self.len.div_ceil(SECTOR));
        let refilled = self.punched.count_in(offset / SECTOR..end.div_ceil(SECTOR));
        (beyond + refilled) * SECTOR
    }

    /// Fills the buffer with what is there, zeros past the end.
    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) {
        for (sector, within, piece) in pieces(offset, buffer.len()) {
            let to = &mut buffer[piece.clone()];
            match self.sectors.get(&sector) {
                Some(from) => to.copy_from_slice(&from[within..within + piece.len()]),
                None => to.fill(0),
            }
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8], offset: u64) {
        if !bytes.is_empty() {
            let end = offset + bytes.len() as u64;
            self.punched.remove(offset / SECTOR..end.div_ceil(SECTOR));
            self.len = self.len.max(end);
        }
        for (sector, within, piece) in pieces(offset, bytes.len()) {
            let to = self
                .sectors
                .entry(sector)
                .or_insert_with(|| Box::new([0; SECTOR_BYTES]));
            to[within..within + piece.len()].copy_from_slice(&bytes[piece]);
        }
    }

    /// Flips a bit; false where nothing was ever written.
    fn flip_bit(&mut self, offset: u64, bit: u8) -> bool {
        if offset >= self.len {
            return false;
        }
        let Some(sector) = self.sectors.get_mut(&(offset / SECTOR)) else {
            return false;
        };
        sector[(offset % SECTOR) as usize] ^= 1 << bit;
        true
    }

    pub(super) fn set_len(&mut self, len: u64) {
        if len < self.len {
            let kept = len.div_ceil(SECTOR);
            self.sectors.split_off(&kept);
            self.punched.cut(kept);
            if let Some(last) = self.sectors.get_mut(&(len / SECTOR)) {
                last[(len % SECTOR) as usize..].fill(0);
            }
        }
        self.len = len;
    }

    pub(super) fn punch(&mut self, offset: u64, bytes: u64) {
        let end = offset.saturating_add(bytes).min(self.len);
        if offset >= end {
            return;
        }
        let whole = offset.div_ceil(SECTOR)..end / SECTOR;
        if whole.is_empty() {
            self.clear(offset, end - offset);
            return;
        }
        self.clear(offset, whole.start * SECTOR - offset);
        self.clear(whole.end * SECTOR, end - whole.end * SECTOR);
        self.sectors
            .extract_if(whole.clone(), |_, _| true)
            .for_each(drop);
        self.punched.insert(whole);
    }

    /// Makes zeros of a range within a sector or two.
    fn clear(&mut self, offset: u64, bytes: u64) {
        for (sector, within, piece) in pieces(offset, bytes as usize) {
            if let Some(contents) = self.sectors.get_mut(&sector) {
                contents[within..within + piece.len()].fill(0);
            }
        }
    }
}

/// Cuts a range at sectors: sector, where in the sector, where in the range.
fn pieces(offset: u64, bytes: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == bytes {
            return None;
        }
        let position = offset + done as u64;
        let within = (position % SECTOR) as usize;
        let piece = done..bytes.min(done + SECTOR_BYTES - within);
        done = piece.end;
        Some((position / SECTOR, within, piece))
    })
}

/// Something that was done to a file.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Write { offset: u64, bytes: Vec<u8> },
    SetLen(u64),
    Punch { offset: u64, bytes: u64 },
}

impl Change {
    fn apply(&self, image: &mut SparseImage) {
        match self {
            Change::Write { offset, bytes } => image.write(bytes, *offset),
            Change::SetLen(len) => image.set_len(*len),
            Change::Punch { offset, bytes } => image.punch(*offset, *bytes),
        }
    }
}

#[derive(Debug)]
struct Pending {
    change: Change,
    /// The new length, if the change changed it.
    len_after: Option<u64>,
}

/// A simulated file, without its name.
#[derive(Debug, Default)]
pub(super) struct Inode {
    live: SparseImage,
    durable: SparseImage,
    pending: Vec<Pending>,
    pub(super) open_handles: usize,
}

impl Inode {
    /// What a reader sees.
    pub(super) fn live(&self) -> &SparseImage {
        &self.live
    }

    /// The sectors that hold something, in order.
    pub(super) fn written_sectors(&self) -> impl Iterator<Item = u64> + '_ {
        self.live.sectors.keys().copied()
    }

    /// Flips a bit of what is seen, and of what is durable there.
    pub(super) fn flip_bit(&mut self, offset: u64, bit: u8) -> bool {
        self.durable.flip_bit(offset, bit);
        self.live.flip_bit(offset, bit)
    }

    pub(super) fn change(&mut self, change: Change) {
        let len_before = self.live.len();
        change.apply(&mut self.live);
        let len = self.live.len();
        self.pending.push(Pending {
            change,
            len_after: (len != len_before).then_some(len),
        });
    }

    /// A sync that succeeds: all changes so far are durable.
    pub(super) fn persist_all(&mut self) {
        for pending in self.pending.drain(..) {
            pending.change.apply(&mut self.durable);
        }
    }

    /// A sync that fails, or a crash: a random part of the changes becomes durable, and the
    /// rest never will, not even by a later sync, for the kernel believes the pages clean.
    pub(super) fn persist_some(&mut self, random: &mut SplitMix64, atomic_bytes: u64) {
        // Nothing, all, and three shades between: each is seen in a few crashes.
        let share = random.below(5);
        let len_changes = self.pending.iter().filter(|p| p.len_after.is_some());
        let len_changes_kept = random.below(len_changes.count() as u64 + 1);
        let mut len = self.durable.len();
        let mut len_changes_seen = 0;
        for pending in std::mem::take(&mut self.pending) {
            let keeps_len = pending.len_after.is_none() || len_changes_seen < len_changes_kept;
            match &pending.change {
                Change::Write { offset, bytes } => {
                    let mut done = 0;
                    while done < bytes.len() {
                        let position = offset + done as u64;
                        let until_boundary = (atomic_bytes - position % atomic_bytes) as usize;
                        let end = bytes.len().min(done + until_boundary);
                        if random.below(4) < share {
                            self.durable.write(&bytes[done..end], position);
                        }
                        done = end;
                    }
                }
                Change::SetLen(_) if keeps_len => pending.change.apply(&mut self.durable),
                Change::SetLen(_) => {}
                Change::Punch { .. } => {
                    if random.below(4) < share {
                        pending.change.apply(&mut self.durable);
                    }
                }
            }
            if let Some(len_after) = pending.len_after {
                len_changes_seen += 1;
                if keeps_len {
                    len = len_after;
                }
            }
        }
        self.durable.set_len(len);
    }

    /// Forgets all changes that are not durable.
    pub(super) fn persist_nothing(&mut self) {
        self.pending.clear();
    }

    /// After a crash: what is seen is what is durable.
    pub(super) fn restart(&mut self) {
        assert!(
            self.pending.is_empty(),
            "a change outlived the crash undecided"
        );
        self.live = self.durable.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn changes() -> impl Strategy<Value = Vec<Change>> {
        let change = prop_oneof![
            4 => (0..20_000_u64, prop::collection::vec(1..=255_u8, 0..9_000))
                .prop_map(|(offset, bytes)| Change::Write { offset, bytes }),
            1 => (0..30_000_u64).prop_map(Change::SetLen),
            1 => (0..20_000_u64, 0..20_000_u64)
                .prop_map(|(offset, bytes)| Change::Punch { offset, bytes }),
        ];
        prop::collection::vec(change, 1..12)
    }

    proptest! {
        #[test]
        fn an_image_is_as_a_vector_of_bytes(changes in changes()) {
            let mut image = SparseImage::default();
            let mut model: Vec<u8> = Vec::new();
            for change in changes {
                if let Change::Write { offset, bytes } = &change {
                    let before = image.allocated_bytes();
                    let growth = image.growth_bytes(*offset, bytes.len());
                    change.apply(&mut image);
                    prop_assert_eq!(image.allocated_bytes(), before + growth);
                } else {
                    change.apply(&mut image);
                }
                match change {
                    Change::Write { offset, bytes } => {
                        let end = offset as usize + bytes.len();
                        if !bytes.is_empty() && model.len() < end {
                            model.resize(end, 0);
                        }
                        if !bytes.is_empty() {
                            model[offset as usize..end].copy_from_slice(&bytes);
                        }
                    }
                    Change::SetLen(len) => model.resize(len as usize, 0),
                    Change::Punch { offset, bytes } => {
                        let end = model.len().min((offset + bytes) as usize);
                        if (offset as usize) < end {
                            model[offset as usize..end].fill(0);
                        }
                    }
                }
                prop_assert_eq!(image.len(), model.len() as u64);
                let mut seen = vec![1; model.len()];
                image.read(&mut seen, 0);
                prop_assert_eq!(&seen, &model);
            }
        }

        #[test]
        fn a_sync_makes_durable_exactly_what_is_live(changes in changes(), seed: u64) {
            let mut inode = Inode::default();
            for change in changes {
                inode.change(change);
            }
            inode.persist_all();
            inode.persist_some(&mut SplitMix64::new(seed), SECTOR);
            let mut before = vec![0; inode.live.len() as usize];
            inode.live.read(&mut before, 0);
            inode.restart();
            let mut after = vec![1; inode.live.len() as usize];
            inode.live.read(&mut after, 0);
            prop_assert_eq!(before, after);
        }
    }
}
