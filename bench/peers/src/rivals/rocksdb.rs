//! RocksDB, as its tuning guide has it for point reads on a small machine.
//!
//! * Bloom filters of 10 bits a key but in the last level (each key that is asked for is
//!   there), no compression. 4 kB blocks with a hash index inside. Two memtables of 1/32 of
//!   the limit each, a first level and files in proportion to them.
//! * `rocksdb`: a block cache (HyperClock) of 74% of the limit, which holds indexes and
//!   filters, too, so that they are within the limit. `rocksdb-row-cache`: a row cache of
//!   62% and a block cache of 12%. The process then comes near the limit.
//! * Direct reads, flushes and compactions; the variants named `…-buffered` use the
//!   page cache, with half those caches, so that there is room for it.
//! * Relaxed: the log is gathered and written to the system each 10 ms, by a thread of
//!   ours. Synchronous: each commit syncs it; RocksDB groups those of its threads itself.

use std::sync::Arc;

use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, DataBlockIndexType, Options, WriteBatch,
    WriteOptions,
};
use thermocline_bench::Result;

use super::every::Every;
use super::{Key, LOG_INTERVAL, Rival, RivalClient, Setup};

/// RocksDB, with rows cached rather than blocks or not, and with direct reads or not.
pub struct Rocks<const ROW_CACHE: bool, const DIRECT: bool> {
    db: Arc<DB>,
    write: WriteOptions,
    _flusher: Option<Every>,
}

impl<const ROW_CACHE: bool, const DIRECT: bool> Rocks<ROW_CACHE, DIRECT> {
    fn options(setup: &Setup<'_>) -> Options {
        let reads = if DIRECT { 1.0 } else { 0.5 };
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_compression_type(DBCompressionType::None);
        options.set_use_direct_reads(DIRECT);
        options.set_use_direct_io_for_flush_and_compaction(DIRECT);
        options.set_advise_random_on_open(true);
        options.set_compaction_readahead_size(1 << 20);
        options.set_max_background_jobs(2);
        options.set_max_open_files(-1);
        let memtable_bytes = setup.cache_bytes(1.0 / 32.0);
        options.set_write_buffer_size(memtable_bytes as usize);
        // Four memtables make the level that they are merged into.
        options.set_max_bytes_for_level_base(4 * memtable_bytes);
        options.set_target_file_size_base(memtable_bytes);
        options.set_optimize_filters_for_hits(true);
        options.set_manual_wal_flush(!setup.synchronous);
        options.set_level_compaction_dynamic_level_bytes(true);
        let block_share = if ROW_CACHE { 0.12 } else { 0.74 };
        let mut blocks = BlockBasedOptions::default();
        let cache =
            Cache::new_hyper_clock_cache(setup.cache_bytes(block_share * reads) as usize, 0);
        blocks.set_block_cache(&cache);
        blocks.set_cache_index_and_filter_blocks(true);
        blocks.set_cache_index_and_filter_blocks_with_high_priority(true);
        blocks.set_pin_l0_filter_and_index_blocks_in_cache(true);
        blocks.set_bloom_filter(10.0, false);
        blocks.set_data_block_index_type(DataBlockIndexType::BinaryAndHash);
        options.set_block_based_table_factory(&blocks);
        if ROW_CACHE {
            let rows = Cache::new_lru_cache(setup.cache_bytes(0.62 * reads) as usize);
            options.set_row_cache(&rows);
        }
        options
    }
}

impl<const ROW_CACHE: bool, const DIRECT: bool> Rival for Rocks<ROW_CACHE, DIRECT> {
    type Client<'a> = &'a Self;

    fn open(setup: &Setup<'_>) -> Result<Self> {
        let db = DB::open(&Self::options(setup), setup.directory.join("db"))?;
        let db = Arc::new(db);
        let flusher = (!setup.synchronous && setup.writes).then(|| {
            let db = db.clone();
            Every::new(LOG_INTERVAL, move || {
                // A log that fails here fails the next commit, too.
                let _ = db.flush_wal(false);
            })
        });
        let mut write = WriteOptions::default();
        write.set_sync(setup.synchronous);
        Ok(Rocks {
            db,
            write,
            _flusher: flusher,
        })
    }

    fn client(&self) -> Result<&Self> {
        Ok(self)
    }

    fn load(&self, rows: &[(Key, &[u8])]) -> Result<()> {
        let mut batch = WriteBatch::default();
        for (key, value) in rows {
            batch.put(key, value);
        }
        let mut write = WriteOptions::default();
        write.disable_wal(true);
        Ok(self.db.write_opt(batch, &write)?)
    }

    fn finish_load(&self) -> Result<()> {
        self.db.flush()?;
        // One sorted run: the best that reads can find.
        self.db.compact_range::<&[u8], &[u8]>(None, None);
        Ok(())
    }
}

impl<const ROW_CACHE: bool, const DIRECT: bool> RivalClient for &Rocks<ROW_CACHE, DIRECT> {
    fn read(&mut self, key: &Key, value: &mut Vec<u8>) -> Result<bool> {
        let found = self.db.get_pinned(key)?;
        if let Some(found) = &found {
            value.extend_from_slice(found);
        }
        Ok(found.is_some())
    }

    fn update(&mut self, key: &Key, value: &[u8]) -> Result<()> {
        Ok(self.db.put_opt(key, value, &self.write)?)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn rows_are_kept() {
        super::super::check::keeps_rows::<super::Rocks<false, true>>(true);
        super::super::check::keeps_rows::<super::Rocks<true, false>>(true);
    }
}
