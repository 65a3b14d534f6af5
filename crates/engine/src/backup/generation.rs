//! What a generation of a backup looks like (docs/internals/format.md, "Backups").
//!
//! `backup-N` describes generation N: JSON and its checksum, as the manifest, put
//! in place by a rename when all that it names is durable. `packs-N` says in
//! which pack each block lies, `blocks-N` is the pack of the blocks that were
//! new. Images and log keep the names they have in a data directory.

use serde::{Deserialize, Serialize};
use thermocline_device::Device;

use crate::format::manifest::{Manifest, decode_checked, encode_checked, read_file, write_file};
use crate::ground::error::{Error, Result};

/// The format of backups that this build writes and reads.
pub(super) const FORMAT_VERSION: u32 = 1;
const PREFIX: &str = "backup-";
/// A generation's description until it is whole.
pub(super) const NEW: &str = "backup-new";
const ENTRY_BYTES: usize = 20;

/// A generation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Generation {
    pub format: u32,
    pub generation: u64,
    /// Sixteen bytes in hexadecimal.
    pub database_id: String,
    /// The state is that at this LSN.
    pub lsn: u64,
    /// And of this moment, in microseconds since 1970.
    pub time_us: i64,
    /// The log's first segment.
    pub log: String,
    /// The checkpoint's files.
    pub files: Vec<CopiedFile>,
    /// The file that says where the blocks are.
    pub index: String,
    pub index_crc: u32,
    /// Length of the database's file of blocks.
    pub file_bytes: u64,
    /// Block ids from here on were not given out.
    pub id_ceiling: u32,
    pub manifest: Manifest,
}

/// A file as it was copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CopiedFile {
    pub file: String,
    pub bytes: u64,
    /// CRC-32C of all of it.
    pub crc: u32,
}

/// Where a block is in the backup, and where in a data directory; in sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PackedBlock {
    pub id: u32,
    /// The generation whose pack it is in.
    pub pack: u32,
    pub pack_offset: u32,
    pub sectors: u32,
    pub offset: u32,
}

/// A generation, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GenerationReport {
    /// Its number.
    pub generation: u64,
    /// The state is that at this LSN.
    pub lsn: u64,
    /// And of this moment, in microseconds since 1970.
    pub time_us: i64,
}

/// The generations in a backup's directory, oldest first.
///
/// # Errors
/// One is damaged or of another format; the device fails.
pub fn generations(target: &dyn Device) -> Result<Vec<GenerationReport>> {
    let all = Generation::read_all(target)?;
    let reports = all.iter().map(|g| GenerationReport {
        generation: g.generation,
        lsn: g.lsn,
        time_us: g.time_us,
    });
    Ok(reports.collect())
}

/// The name of the pack of a generation.
pub(super) fn pack_name(number: u64) -> String {
    format!("blocks-{number:08}")
}

/// The name of the file that says where the blocks of a generation are.
pub(super) fn index_name(number: u64) -> String {
    format!("packs-{number:08}")
}

/// A number as it is in a file's name: eight digits at least.
pub(super) fn number_of(digits: &str) -> Option<u64> {
    let whole = digits.len() >= 8 && digits.bytes().all(|digit| digit.is_ascii_digit());
    digits.parse().ok().filter(|_| whole)
}

fn names(target: &dyn Device) -> Result<Vec<String>> {
    target
        .list()
        .map_err(|e| Error::io(e, "listing the backup's directory"))
}

impl Generation {
    /// The number of the generation that a file describes, by the file's name.
    pub fn number_in(name: &str) -> Option<u64> {
        number_of(name.strip_prefix(PREFIX)?)
    }

    /// All generations, oldest first.
    pub fn read_all(target: &dyn Device) -> Result<Vec<Self>> {
        let mut all = Vec::new();
        for name in names(target)? {
            let Some(number) = Self::number_in(&name) else {
                continue;
            };
            let generation: Generation = decode_checked(
                &name,
                &read_file(target, &name)?,
                FORMAT_VERSION..=FORMAT_VERSION,
            )?;
            if number != generation.generation {
                return Err(Error::Corrupt(format!(
                    "{name}: it is generation {}",
                    generation.generation
                )));
            }
            all.push(generation);
        }
        all.sort_by_key(|g| g.generation);
        Ok(all)
    }

    /// Makes it one of the generations.
    pub fn write(&self, target: &dyn Device) -> Result<()> {
        target
            .sync_directory()
            .map_err(|e| Error::io(e, "syncing the backup's directory"))?;
        write_file(target, NEW, &encode_checked(self)?)?;
        let name = format!("{PREFIX}{:08}", self.generation);
        target
            .rename(NEW, &name)
            .and_then(|()| target.sync_directory())
            .map_err(|e| Error::io(e, format!("renaming {name}")))
    }

    /// Where its blocks are.
    pub fn blocks(&self, target: &dyn Device) -> Result<Vec<PackedBlock>> {
        let bytes = read_file(target, &self.index)?;
        if crc32c::crc32c(&bytes) != self.index_crc || bytes.len() % ENTRY_BYTES != 0 {
            return Err(Error::Corrupt(format!(
                "{}: its checksum is wrong",
                self.index
            )));
        }
        let blocks = bytes.chunks_exact(ENTRY_BYTES).map(|entry| {
            let field = |at: usize| {
                let bytes = entry[at * 4..].first_chunk().copied();
                u32::from_le_bytes(bytes.unwrap_or_default())
            };
            PackedBlock {
                id: field(0),
                pack: field(1),
                pack_offset: field(2),
                sectors: field(3),
                offset: field(4),
            }
        });
        Ok(blocks.collect())
    }
}

/// Writes where the blocks of a generation are; the file's name and checksum.
pub(super) fn write_index(
    target: &dyn Device,
    number: u64,
    blocks: &[PackedBlock],
) -> Result<(String, u32)> {
    let mut bytes = Vec::with_capacity(blocks.len() * ENTRY_BYTES);
    for b in blocks {
        for field in [b.id, b.pack, b.pack_offset, b.sectors, b.offset] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
    }
    let name = index_name(number);
    write_file(target, &name, &bytes)?;
    Ok((name, crc32c::crc32c(&bytes)))
}
