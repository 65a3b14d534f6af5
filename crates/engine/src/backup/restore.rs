//! A data directory out of a backup, and out of the log that was kept since: as
//! of the backup, of an LSN, or of a moment.
//!
//! The new directory is a database of its own: it gets a new id, so that its log
//! and the old one's are never mixed up. Its manifest comes last; a restore that
//! is cut off leaves a directory without one, which is refused.
//!
//! The blocks of tablespaces come into the new directory, too, each in a file of its own: where the
//! tablespaces were is the old database's.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;
use thermocline_device::{AlignedBuffer, Clock, Device, DeviceFile, OpenMode, SECTOR_BYTES};
use thermocline_storage::block::verify_records;
use thermocline_storage::block_store::{
    BlockStore, BlockStoreOptions, HOME, blocks_of_table, file_named,
};
use thermocline_storage::log::{CopyUntil, LogStream, copy_log};

use super::generation::{Generation, PackedBlock, pack_name};
use super::{Meter, copy_file};
use crate::format::manifest::{Manifest, new_database_id};
use crate::format::places::{Place, Places, unnamed_place, write_places};
use crate::ground::error::{Error, Result, log_broken, store_failed};
use crate::parts::tablespaces::file_name;
use crate::restart::images::read_block_table;

/// Files of a directory that hold no data.
const SETTINGS: &str = "thermocline.toml";

/// What is to be restored.
#[derive(Clone, Default)]
pub struct RestoreOptions {
    /// Of this generation; None: of the newest that is not too new.
    pub generation: Option<u64>,
    /// Directories with log: an archive, what is left of the data directory.
    pub logs: Vec<Arc<dyn Device>>,
    /// As of this LSN.
    pub to_lsn: Option<u64>,
    /// As of this moment, in microseconds since 1970.
    pub to_time_us: Option<i64>,
}

/// What was restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestoreReport {
    /// The generation that it is made of.
    pub generation: u64,
    /// The state is that at this LSN.
    pub lsn: u64,
    /// The time of the last commits in it, in microseconds since 1970.
    pub time_us: i64,
    /// Bytes copied.
    pub bytes: u64,
}

/// Makes a data directory in `target`, which must be empty, out of a backup.
/// `observe` is told bytes done and bytes in all.
///
/// Without an LSN or a moment it is the state of the generation, or, with logs,
/// the last one that they lead to.
///
/// # Errors
/// 55000 when `target` is not empty or no generation is old enough; damage and
/// gaps are named; the devices' errors.
pub fn restore(
    backup: &Arc<dyn Device>,
    target: &Arc<dyn Device>,
    options: &RestoreOptions,
    clock: &dyn Clock,
    observe: &mut dyn FnMut(u64, u64),
) -> Result<RestoreReport> {
    let present = target
        .list()
        .map_err(|e| Error::io(e, "listing the new directory"))?;
    if let Some(file) = present.iter().find(|f| *f != SETTINGS) {
        return Err(Error::catalog(
            "55000",
            format!("the new directory is not empty, and has {file}"),
        ));
    }
    let generation = choose(Generation::read_all(&**backup)?, options)?;
    let from = u128::from_str_radix(&generation.database_id, 16)
        .map_err(|_| Error::Corrupt("the backup's database id".into()))?;
    let database = new_database_id(clock);
    let blocks = generation.blocks(&**backup)?;
    let files = generation.files.iter().map(|f| f.bytes);
    let packed = blocks.iter().map(|b| u64::from(b.sectors));
    let mut meter = Meter {
        clock,
        begun: clock.now(),
        rate: None,
        done: 0,
        total: files.sum::<u64>() + packed.sum::<u64>() * SECTOR_BYTES as u64,
        observe,
    };
    for file in &generation.files {
        copy_file(&**backup, &**target, &file.file, Some(file), &mut meter)?;
    }
    restore_blocks(backup, target, &generation, database, &mut meter)?;

    let mut directories = vec![backup.clone()];
    directories.extend(options.logs.iter().cloned());
    let stream = LogStream::open(&directories, from, generation.manifest.log_start);
    let mut stream = stream.map_err(log_broken)?;
    let until = CopyUntil {
        lsn: match (options.to_lsn, options.to_time_us) {
            (Some(lsn), _) => Some(lsn),
            // Without more log it is the backup's own state, not a later one's.
            (None, None) if options.logs.is_empty() => Some(generation.lsn),
            (None, _) => None,
        },
        time_us: options.to_time_us,
    };
    let copied = copy_log(&mut stream, &**target, database, until).map_err(log_broken)?;
    if copied.end < generation.lsn {
        return Err(Error::Corrupt(format!(
            "the backup's log ends at LSN {}, before its state at LSN {}",
            copied.end, generation.lsn
        )));
    }
    meter.advance(copied.bytes);
    let mut manifest = generation.manifest;
    manifest.database_id = format!("{database:032x}");
    target
        .sync_directory()
        .map_err(|e| Error::io(e, "syncing the new directory"))?;
    manifest.write(&**target)?;
    Ok(RestoreReport {
        generation: generation.generation,
        lsn: copied.end,
        time_us: copied.time_us.unwrap_or(generation.time_us),
        bytes: meter.done,
    })
}

/// Puts the blocks into the new directory: the home's, and those of each tablespace.
fn restore_blocks(
    backup: &Arc<dyn Device>,
    target: &Arc<dyn Device>,
    generation: &Generation,
    database: u128,
    meter: &mut Meter<'_>,
) -> Result<()> {
    let blocks = generation.blocks(&**backup)?;
    let store = BlockStoreOptions::new(database);
    let ceiling = generation.id_ceiling;
    let file = BlockStore::make_file(&**target, &store, ceiling, generation.file_bytes);
    let file = file.map_err(store_failed)?;
    let tablespaces = tablespaces_of(&generation.manifest, &**target)?;
    let (mut elsewhere, mut at_home) = (Vec::new(), Vec::new());
    for block in blocks {
        match tablespaces.get(&block.id) {
            None | Some(&HOME) => at_home.push(block),
            Some(number) => elsewhere.push((*number, block)),
        }
    }
    unpack(&**backup, &*file, at_home, generation.file_bytes, meter)?;
    let mut places = Places::new();
    let defs = &generation.manifest.catalog.tablespaces;
    let mut named: BTreeMap<u16, (u32, String)> = (defs.iter())
        .map(|def| (def.number, (def.oid, def.name.clone())))
        .collect();
    for number in elsewhere.iter().map(|(number, _)| *number) {
        // One that was made while the checkpoint was: only the log knows what it is called.
        let unnamed = || (unnamed_place(number), file_named(number));
        named.entry(number).or_insert_with(unnamed);
    }
    for (number, (oid, name)) in named {
        let place = Place {
            number,
            name,
            directory: String::new(),
            // What was emulated there is not here, nor is its limit.
            options: Default::default(),
        };
        let of_it = elsewhere.extract_if(.., |(of, _)| *of == number);
        let of_it: Vec<PackedBlock> = of_it.map(|(_, block)| block).collect();
        let sectors = of_it
            .iter()
            .map(|b| u64::from(b.offset) + u64::from(b.sectors));
        let bytes = sectors.max().unwrap_or(2) * SECTOR_BYTES as u64;
        let store = BlockStoreOptions {
            name: file_name(&place),
            ..BlockStoreOptions::new(database)
        };
        let file = BlockStore::make_file(&**target, &store, 1, bytes).map_err(store_failed)?;
        unpack(&**backup, &*file, of_it, bytes, meter)?;
        places.insert(oid, place);
    }
    if !places.is_empty() {
        write_places(&**target, &places)?;
    }
    Ok(())
}

fn choose(generations: Vec<Generation>, options: &RestoreOptions) -> Result<Generation> {
    let oldest = generations.first().map(|g| (g.lsn, g.time_us));
    let Some((lsn, time_us)) = oldest else {
        return Err(Error::catalog("55000", "the directory has no backup"));
    };
    let fits = |g: &Generation| {
        options
            .generation
            .is_none_or(|number| g.generation == number)
            && options.to_lsn.is_none_or(|lsn| g.lsn <= lsn)
            && options.to_time_us.is_none_or(|time| g.time_us <= time)
    };
    generations.into_iter().rev().find(fits).ok_or_else(|| {
        Error::catalog(
            "55000",
            format!(
                "no generation of the backup is old enough; the oldest is of LSN {lsn}, \
                 {time_us} microseconds after 1970"
            ),
        )
    })
}

/// The numbers of the tablespaces that blocks lie in, by the blocks' ids.
fn tablespaces_of(manifest: &Manifest, target: &dyn Device) -> Result<HashMap<u32, u16>> {
    let table = read_block_table(target, manifest)?.unwrap_or_default();
    if table.is_empty() {
        return Ok(HashMap::new());
    }
    let blocks = blocks_of_table(&table).map_err(store_failed)?;
    let lies = blocks.into_iter().map(|block| (block.id, block.tablespace));
    Ok(lies.collect())
}

/// Puts the blocks where the Block Table says, and gives back what is between.
fn unpack(
    backup: &dyn Device,
    file: &dyn DeviceFile,
    mut blocks: Vec<PackedBlock>,
    file_bytes: u64,
    meter: &mut Meter<'_>,
) -> Result<()> {
    blocks.sort_unstable_by_key(|block| block.offset);
    const SECTOR: u64 = SECTOR_BYTES as u64;
    let writing = |e| Error::io(e, "writing blocks");
    let mut packs: HashMap<u32, Arc<dyn DeviceFile>> = HashMap::new();
    let mut end = 2 * SECTOR;
    for block in &blocks {
        let name = pack_name(u64::from(block.pack));
        let failed = |e| Error::io(e, format!("reading {name} of the backup"));
        let pack = match packs.get(&block.pack) {
            Some(pack) => pack.clone(),
            None => {
                let pack = backup.open(&name, OpenMode::Existing).map_err(failed)?;
                packs.insert(block.pack, pack.clone());
                pack
            }
        };
        let at = u64::from(block.pack_offset) * SECTOR;
        let mut bytes = AlignedBuffer::new_zeroed(block.sectors as usize * SECTOR_BYTES);
        pack.read_at(&mut bytes[..], at).map_err(failed)?;
        verify_records(&bytes, block.id)
            .map_err(|error| Error::Corrupt(format!("{name} at byte {at}: {error}")))?;
        let offset = u64::from(block.offset) * SECTOR;
        if offset > end {
            file.punch_hole(end, offset - end).map_err(writing)?;
        }
        file.write_at(&bytes[..], offset).map_err(writing)?;
        end = offset + bytes.len() as u64;
        meter.advance(bytes.len() as u64);
    }
    if file_bytes > end {
        file.punch_hole(end, file_bytes - end).map_err(writing)?;
    }
    file.sync_data().map_err(writing)
}
