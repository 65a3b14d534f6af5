//! The store against a model: no two blocks overlap, no id comes twice, no space
//! comes back early; and what a crash, a full device and a failed sync leave.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use std::io;

use thermocline_device::{Operation, SimulatedDevice};

use super::*;
use crate::block::{BlockBuilder, records};

const GROW_BYTES: u64 = 16 * SECTOR;

fn options() -> BlockStoreOptions {
    BlockStoreOptions {
        grow_bytes: GROW_BYTES,
        ..BlockStoreOptions::new(7)
    }
}

fn sized(sectors: usize) -> NewBlock {
    NewBlock {
        device_bytes: sectors * SECTOR_BYTES,
        records: 1000,
        table: 3,
        partition: 4,
        tablespace: HOME,
        compressed: false,
    }
}

fn fill(id: u32, sectors: usize) -> AlignedBuffer {
    let mut bytes = AlignedBuffer::new_zeroed(sectors * SECTOR_BYTES);
    bytes
        .chunks_exact_mut(4)
        .for_each(|word| word.copy_from_slice(&id.to_le_bytes()));
    bytes
}

fn put(store: &BlockStore, sectors: usize) -> u32 {
    let (id, _) = store.allocate(sized(sectors)).unwrap();
    store.write(id, &fill(id, sectors)).unwrap();
    id
}

fn checkpoint(store: &BlockStore) -> (u64, Vec<u8>) {
    let epoch = store.begin_checkpoint();
    let mut table = Vec::new();
    store.sync().unwrap();
    store.write_to(epoch, &mut table);
    (epoch, table)
}

#[derive(Clone, Debug)]
enum Act {
    Put(usize),
    Free(prop::sample::Index),
    Kill(prop::sample::Index, u32),
    Checkpoint,
    Pin,
    Unpin(prop::sample::Index),
    Crash(u64),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (1usize..12).prop_map(Act::Put),
        4 => any::<prop::sample::Index>().prop_map(Act::Free),
        2 => (any::<prop::sample::Index>(), 0u32..500).prop_map(|(i, b)| Act::Kill(i, b)),
        2 => Just(Act::Checkpoint),
        1 => Just(Act::Pin),
        1 => any::<prop::sample::Index>().prop_map(Act::Unpin),
        1 => any::<u64>().prop_map(Act::Crash),
    ]
}

/// What has to stay on the device: blocks by id, with their sectors.
type Kept = BTreeMap<u32, usize>;

fn pick(kept: &Kept, index: prop::sample::Index) -> Option<u32> {
    (!kept.is_empty()).then(|| *kept.keys().nth(index.index(kept.len())).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn blocks_never_overlap_and_ids_never_come_twice(acts in prop::collection::vec(act(), 1..120)) {
        let device = SimulatedDevice::new();
        let mut store = BlockStore::open(&device, options(), None).unwrap();
        let mut live = Kept::new();
        let mut named: Option<(Kept, Vec<u8>)> = None;
        let mut pins: Vec<(BlockPin, Kept)> = Vec::new();
        let mut ids = BTreeSet::new();
        for act in acts {
            match act {
                Act::Put(sectors) => {
                    let id = put(&store, sectors);
                    prop_assert!(ids.insert(id), "id {} was used before", id);
                    live.insert(id, sectors);
                }
                Act::Free(index) => if let Some(id) = pick(&live, index) {
                    store.free(id).unwrap();
                    live.remove(&id);
                    prop_assert!(store.info(id).is_none());
                    prop_assert!(store.free(id).is_err());
                },
                Act::Kill(index, bytes) => if let Some(id) = pick(&live, index) {
                    let before = store.info(id).unwrap().live_records;
                    let bytes = bytes.min(before);
                    prop_assert_eq!(store.sub_live(id, bytes), Some(before - bytes));
                },
                Act::Checkpoint => {
                    let (epoch, table) = checkpoint(&store);
                    named = Some((live.clone(), table));
                    store.release_up_to(epoch).unwrap();
                }
                Act::Pin => pins.push((store.pin(), live.clone())),
                Act::Unpin(index) => if !pins.is_empty() {
                    pins.swap_remove(index.index(pins.len()));
                },
                Act::Crash(seed) => {
                    device.crash(seed);
                    pins.clear();
                    let table = named.as_ref().map(|(_, table)| &table[..]);
                    store = BlockStore::open(&device, options(), table).unwrap();
                    live = named.as_ref().map(|(kept, _)| kept.clone()).unwrap_or_default();
                }
            }
            // All that anybody may still read is there: the live, the checkpoint's, the pinned.
            let kept = [&live].into_iter()
                .chain(named.as_ref().map(|(kept, _)| kept))
                .chain(pins.iter().map(|(_, kept)| kept));
            let places = store.ids.lock().pending.iter()
                .map(|p| (p.id, p.entry.info(p.id)))
                .chain(store.blocks().into_iter().map(|info| (info.id, info)))
                .collect::<BTreeMap<_, _>>();
            for (id, sectors) in kept.flatten() {
                let place = places.get(id);
                prop_assert!(place.is_some(), "block {} is gone", id);
                let mut bytes = AlignedBuffer::new_zeroed(sectors * SECTOR_BYTES);
                store.volumes().file(HOME).unwrap().read_at(&mut bytes[..], place.unwrap().offset).unwrap();
                prop_assert_eq!(&bytes[..], &fill(*id, *sectors)[..], "block {}", id);
            }
            let sums = store.statistics();
            prop_assert_eq!(
                sums.device_bytes + sums.pending_bytes + sums.free_bytes,
                sums.file_bytes - SUPERBLOCK_SECTORS * SECTOR
            );
        }
    }

    #[test]
    fn a_damaged_table_is_an_error_or_makes_sense(
        at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>()
    ) {
        let device = SimulatedDevice::new();
        let store = BlockStore::open(&device, options(), None).unwrap();
        (1..9).for_each(|sectors| { put(&store, sectors); });
        let (_, mut table) = checkpoint(&store);
        let position = at.index(table.len());
        table[position] = byte;
        if let Ok(store) = BlockStore::open(&device, options(), Some(&table)) {
            let sums = store.statistics();
            prop_assert_eq!(sums.device_bytes + sums.free_bytes, sums.file_bytes - 2 * SECTOR);
        }
        table.truncate(cut.index(table.len()));
        prop_assert!(BlockStore::open(&device, options(), Some(&table)).is_err());
    }
}

#[test]
fn a_built_block_comes_back_after_a_crash() {
    let device = SimulatedDevice::new();
    let store = BlockStore::open(&device, options(), None).unwrap();
    let mut builder = BlockBuilder::new(AlignedBuffer::new_zeroed(1 << 20));
    let (slot, extent) = builder.try_push(11, &[5; 9000], 2).unwrap();
    let new = NewBlock {
        device_bytes: builder.device_bytes(),
        records: builder.record_bytes() as u32,
        table: 3,
        partition: 4,
        tablespace: HOME,
        compressed: false,
    };
    let (id, _) = store.allocate(new).unwrap();
    store.write(id, builder.finish(id, 3, 4, 99)).unwrap();
    let (_, table) = checkpoint(&store);
    device.crash_losing_all();

    let store = BlockStore::open(&device, options(), Some(&table)).unwrap();
    let block = store.read(id).unwrap();
    assert_eq!(records(&block, id).unwrap().0.created_lsn, 99);
    let (at, bytes) = crate::block::sector_range(slot, extent);
    let record = crate::block::read_record(&block[at..at + bytes], id, slot, at).unwrap();
    assert_eq!(
        (record.row, record.flags, record.payload),
        (11, 2, &[5; 9000][..])
    );
    let info = store.info(id).unwrap();
    assert_eq!((info.table, info.partition, info.live_share()), (3, 4, 1.0));
    assert!(store.set_live(id, 0) && !store.set_live(id + 1, 0));
    assert_eq!(store.info(id).unwrap().live_share(), 0.0);
}

#[test]
fn a_block_freed_while_a_checkpoint_is_taken_stays_in_that_checkpoint() {
    let device = SimulatedDevice::new();
    let store = BlockStore::open(&device, options(), None).unwrap();
    let id = put(&store, 2);
    let epoch = store.begin_checkpoint();
    // A partition has written down its address; only then is the block freed.
    store.free(id).unwrap();
    store.sync().unwrap();
    let mut table = Vec::new();
    store.write_to(epoch, &mut table);
    assert_eq!(store.release_up_to(epoch).unwrap(), 0);
    device.crash_losing_all();
    let restored = BlockStore::open(&device, options(), Some(&table)).unwrap();
    assert_eq!(restored.read(id).unwrap()[..], fill(id, 2)[..]);
}

#[test]
fn a_pin_holds_what_was_freed_after_it() {
    let device = SimulatedDevice::new();
    let store = BlockStore::open(&device, options(), None).unwrap();
    let (early, late) = (put(&store, 1), put(&store, 1));
    store.free(early).unwrap();
    let first = store.begin_checkpoint();
    let pin = store.pin();
    store.free(late).unwrap();
    let second = store.begin_checkpoint();
    assert_eq!(store.release_up_to(first).unwrap(), SECTOR);
    assert_eq!(store.release_up_to(second).unwrap(), 0, "pinned");
    drop(pin);
    assert_eq!(store.release_up_to(second).unwrap(), SECTOR);
}

#[test]
fn a_full_device_is_an_error_and_freed_space_heals_it() {
    let device = SimulatedDevice::new();
    let store = BlockStore::open(&device, options(), None).unwrap();
    device.set_capacity_bytes(Some(GROW_BYTES + 5 * SECTOR));
    let mut ids = Vec::new();
    let full = loop {
        match store.allocate(sized(3)) {
            Ok((id, _)) => ids.push(id),
            Err(error) => break error,
        }
    };
    assert!(matches!(full, BlockStoreError::StorageFull), "{full}");
    assert_eq!(ids.len(), 6, "the last five sectors are used too");
    store.free(ids[0]).unwrap();
    let epoch = store.begin_checkpoint();
    store.release_up_to(epoch).unwrap();
    assert!(store.allocate(sized(3)).is_ok());
}

#[test]
fn the_file_shrinks_when_its_tail_is_free() {
    let device = SimulatedDevice::new();
    let store = BlockStore::open(&device, options(), None).unwrap();
    let ids: Vec<u32> = (0..40).map(|_| put(&store, 4)).collect();
    assert!(store.statistics().file_bytes > 10 * GROW_BYTES);
    for id in &ids[1..] {
        store.free(*id).unwrap();
    }
    let epoch = store.begin_checkpoint();
    store.release_up_to(epoch).unwrap();
    assert_eq!(store.statistics().file_bytes, GROW_BYTES);
    assert_eq!(
        store.volumes().file(HOME).unwrap().len().unwrap(),
        GROW_BYTES
    );
    assert_eq!(store.read(ids[0]).unwrap()[..], fill(ids[0], 4)[..]);
}

#[test]
fn a_failed_sync_is_not_tried_again() {
    let device = SimulatedDevice::new();
    let store = BlockStore::open(&device, options(), None).unwrap();
    put(&store, 1);
    device.fail_next(Operation::Sync, io::ErrorKind::Other);
    assert!(matches!(store.sync(), Err(BlockStoreError::Io { .. })));
    assert!(matches!(store.sync(), Err(BlockStoreError::Failed)));
}

#[test]
fn blocks_of_another_database_and_lost_superblocks_are_refused() {
    let device = SimulatedDevice::new();
    let store = BlockStore::open(&device, options(), None).unwrap();
    put(&store, 1);
    let (_, table) = checkpoint(&store);
    let other = BlockStoreOptions {
        database: 8,
        ..options()
    };
    let refused = BlockStore::open(&device, other, Some(&table));
    assert!(matches!(refused, Err(BlockStoreError::Corrupt(_))));
    let zeros = AlignedBuffer::new_zeroed(2 * SECTOR_BYTES);
    store
        .volumes()
        .file(HOME)
        .unwrap()
        .write_at(&zeros[..], 0)
        .unwrap();
    let refused = BlockStore::open(&device, options(), Some(&table));
    assert!(matches!(refused, Err(BlockStoreError::Corrupt(_))));
}

/// A store whose blocks begin there.
fn far(first_sector: u64, first_id: u32) -> BlockStoreOptions {
    BlockStoreOptions {
        first_sector,
        first_id,
        ..options()
    }
}

#[test]
fn blocks_to_both_sides_of_four_gigabytes_come_back() {
    let device = SimulatedDevice::new();
    let far = far((1 << 32) / SECTOR - 7, (1 << 16) - 4);
    let store = BlockStore::open(&device, far.clone(), None).unwrap();
    let ids: Vec<u32> = (0..8).map(|_| put(&store, 3)).collect();
    let ends = ids.iter().map(|id| store.info(*id).unwrap().offset);
    assert!(ends.clone().any(|at| at < 1 << 32) && ends.clone().any(|at| at > 1 << 32));
    assert!(ids[0] < 1 << 16 && ids[7] > 1 << 16);
    let (_, table) = checkpoint(&store);
    device.crash_losing_all();
    let store = BlockStore::open(&device, far, Some(&table)).unwrap();
    for id in &ids {
        assert_eq!(store.read(*id).unwrap()[..], fill(*id, 3)[..]);
    }
    // What is free again is free there, and nowhere before the first block.
    store.free(ids[2]).unwrap();
    let epoch = store.begin_checkpoint();
    store.release_up_to(epoch).unwrap();
    let (_, offset) = store.allocate(sized(2)).unwrap();
    assert!(offset >= (1 << 32) - 7 * SECTOR);
}

#[test]
fn beyond_the_last_sector_the_device_counts_as_full() {
    let device = SimulatedDevice::new();
    let far = far(u64::from(u32::MAX) - 4, 1);
    let store = BlockStore::open(&device, far.clone(), None).unwrap();
    let ids = [put(&store, 3), put(&store, 3)];
    // The last begins below 2^32 and ends beyond it.
    let last = store.info(ids[1]).unwrap();
    assert_eq!(last.offset / SECTOR, u64::from(u32::MAX) - 1);
    for _ in 0..3 {
        let full = store.allocate(sized(1)).unwrap_err();
        assert!(matches!(full, BlockStoreError::StorageFull), "{full}");
    }
    let (_, table) = checkpoint(&store);
    device.crash_losing_all();
    let store = BlockStore::open(&device, far, Some(&table)).unwrap();
    assert_eq!(store.read(ids[1]).unwrap()[..], fill(ids[1], 3)[..]);
    store.free(ids[0]).unwrap();
    let epoch = store.begin_checkpoint();
    store.release_up_to(epoch).unwrap();
    assert!(store.allocate(sized(3)).is_ok());
}

#[test]
fn the_last_id_is_used_and_none_comes_again() {
    let device = SimulatedDevice::new();
    let far = far(2, u32::MAX - 3);
    let store = BlockStore::open(&device, far.clone(), None).unwrap();
    let ids: Vec<u32> = (0..3).map(|_| put(&store, 1)).collect();
    assert_eq!(ids, [u32::MAX - 3, u32::MAX - 2, u32::MAX - 1]);
    let refused = store.allocate(sized(1)).unwrap_err();
    assert!(matches!(refused, BlockStoreError::OutOfIds), "{refused}");
    let mut seen = 0;
    store.each_block(|_| seen += 1);
    assert_eq!(seen, 3);
    let (_, table) = checkpoint(&store);
    device.crash_losing_all();
    let store = BlockStore::open(&device, far, Some(&table)).unwrap();
    let refused = store.allocate(sized(1)).unwrap_err();
    assert!(matches!(refused, BlockStoreError::OutOfIds), "{refused}");
    assert_eq!(store.read(ids[2]).unwrap()[..], fill(ids[2], 1)[..]);
}
