//! One block out and back, by phase (004 §5.5).
//!
//! * Construct: tuples are copied out of the heap, their index entries are changed, and their
//!   memory is given up.
//! * Write, with its sync; fetch.
//! * Merge, of all tuples of the block or of one.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thermocline_device::{AlignedBuffer, Device};
use thermocline_storage::arena::{Arena, TuplePtr};
use thermocline_storage::block::{BlockBuilder, each_record};
use thermocline_storage::hash_index::HashIndex;
use thermocline_storage::heap::Heap;
use thermocline_storage::key_hash::key_hash;

use super::super::setting::MergesBack;
use super::ms;
use crate::Result;

const ROW_BYTES: usize = 1000;
/// Blocks before time is taken: memory is there then.
const WARM_UP: u32 = 2;
/// The row that is asked for, where only one comes back.
const ASKED_FOR: u32 = 1;

/// A heap with the tuples of one block, and their index.
struct Table {
    heap: Heap,
    index: HashIndex,
    tuples: Vec<TuplePtr>,
}

fn hash(row: u32) -> u64 {
    key_hash(&row.to_be_bytes())
}

impl Table {
    fn of(rows: u32) -> Result<Self> {
        let arena = Arena::reserve_for(rows as usize * ROW_BYTES * 4 + (64 << 20))?;
        let mut table = Table {
            heap: Heap::new(Arc::new(arena)),
            index: HashIndex::new(),
            tuples: Vec::new(),
        };
        for row in 0..rows {
            table.index.insert(hash(row), row);
        }
        table.fill(rows)?;
        Ok(table)
    }

    fn insert(&mut self, row: u32, payload: &[u8]) -> io::Result<TuplePtr> {
        let none = || io::Error::from(io::ErrorKind::OutOfMemory);
        self.heap.insert(row, 0, payload).ok_or_else(none)
    }

    /// Gives each row its tuple again.
    fn fill(&mut self, rows: u32) -> Result<()> {
        self.tuples.clear();
        for row in 0..rows {
            let tuple = self.insert(row, &[row as u8; ROW_BYTES])?;
            self.tuples.push(tuple);
        }
        Ok(())
    }

    /// The paper's tombstone: the entry of the row leads elsewhere.
    fn update_index(&mut self, row: u32) {
        self.index.remove(hash(row), row);
        self.index.insert(hash(row), row);
    }
}

/// The mean milliseconds of each phase.
pub(in super::super) fn measure(
    device: &dyn Device,
    merges: MergesBack,
    block_bytes: u32,
    repetitions: u32,
) -> Result<Vec<(String, f64)>> {
    let file = device.temporary()?;
    let block_bytes = block_bytes as usize;
    let mut builder = BlockBuilder::new(AlignedBuffer::new_zeroed(block_bytes));
    let mut rows = 0;
    while builder.try_push(rows, &[0; ROW_BYTES], 0).is_some() {
        rows += 1;
    }
    builder.clear();
    let mut table = Table::of(rows)?;
    let mut times = [Duration::ZERO; 4];
    for repetition in 0..repetitions + WARM_UP {
        let id = repetition + 1;
        let begin = Instant::now();
        for (row, tuple) in (0..rows).zip(std::mem::take(&mut table.tuples)) {
            let pushed = builder.try_push(row, table.heap.payload(tuple), 0);
            pushed.ok_or("a tuple does not fit its block")?;
            table.heap.free(tuple);
            table.update_index(row);
        }
        let block = builder.finish(id, 1, 0, 1);
        let constructed = begin.elapsed();
        let offset = u64::from(repetition) * block_bytes as u64;
        let begin = Instant::now();
        file.write_at(block, offset)?;
        file.sync_data()?;
        let written = begin.elapsed();
        let mut buffer = AlignedBuffer::new_zeroed(block.len());
        let begin = Instant::now();
        file.read_at(&mut buffer, offset)?;
        let fetched = begin.elapsed();
        let begin = Instant::now();
        let mut failed = None;
        each_record(&buffer, id, |record| {
            if merges == MergesBack::Tuple && record.row != ASKED_FOR {
                return;
            }
            match table.insert(record.row, record.payload) {
                Ok(tuple) => table.tuples.push(tuple),
                Err(error) => failed = Some(error),
            }
            table.update_index(record.row);
        })
        .map_err(|error| format!("a block came back damaged: {error}"))?;
        let merged = begin.elapsed();
        if let Some(error) = failed {
            return Err(error.into());
        }
        builder.clear();
        if merges == MergesBack::Tuple {
            let back = std::mem::take(&mut table.tuples);
            back.into_iter().for_each(|tuple| table.heap.free(tuple));
            table.fill(rows)?;
        }
        if repetition >= WARM_UP {
            let of_this = [constructed, written, fetched, merged];
            (times.iter_mut().zip(of_this)).for_each(|(sum, one)| *sum += one);
        }
    }
    drop(file);
    device.remove_temporary()?;
    let names = ["construct_ms", "write_ms", "fetch_ms", "merge_ms"];
    let mean = |time: Duration| ms(time) / f64::from(repetitions.max(1));
    let values = names.into_iter().zip(times);
    Ok(values
        .map(|(name, time)| (name.to_owned(), mean(time)))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use thermocline_device::MemoryDevice;

    #[test]
    fn a_block_goes_out_and_comes_back_by_either_merge() {
        for merges in [MergesBack::Block, MergesBack::Tuple] {
            let device = MemoryDevice::new();
            let values = measure(&device, merges, 64 << 10, 3).expect("it runs");
            let names: Vec<&str> = values.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, ["construct_ms", "write_ms", "fetch_ms", "merge_ms"]);
            assert!(values.iter().all(|(_, ms)| *ms > 0.0), "{values:?}");
        }
    }
}
