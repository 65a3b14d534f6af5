//! The manifest: which files make up the last checkpoint (docs/internals/format.md).
//!
//! One JSON line and its CRC-32C in hexadecimal on the next. It is written to
//! a temporary name, synced, renamed over `manifest`, and the directory synced:
//! at any moment there is one whole manifest or none.

use std::ops::RangeInclusive;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thermocline_device::{Clock, Device, OpenMode, StopPoint, stop_at};

use crate::catalog::{CatalogImage, TableDef};
use crate::ground::error::{Error, Result};

/// The file's name.
pub(crate) const MANIFEST: &str = "manifest";
const MANIFEST_NEW: &str = "manifest.new";
/// The file that says where tablespaces lie ([`super::places`]).
pub(crate) const PLACES: &str = "tablespaces";
/// The file whose space is kept for making room ([`crate::parts::reserve`]).
pub(crate) const RESERVE: &str = "reserve";
/// The format that this build writes.
pub(crate) const FORMAT_VERSION: u32 = 20;
/// The oldest that it reads: the same without roles and rights, lost layouts, the log's end,
/// dropped columns, users' types and functions, column tables, foreign keys, tablespaces, checksums of pages,
/// generated columns, indexes over expressions. Nor had it triggers, settings of sessions, default privileges,
/// checks that are NOT VALID, declared partitions, materialized views, and compressed blocks; and
/// its log had whole catalogs. A build that does not know them must not
/// open what has them, and lose them.
const FORMAT_OLDEST: u32 = 5;

/// Files of a directory that hold settings, not data.
const SETTINGS: [&str; 2] = ["thermocline.toml", "thermocline.auto.toml"];

/// Whether a file of this name in a data directory is the database's own.
pub(crate) fn is_file_name(name: &str) -> bool {
    let beginnings = ["checkpoint-", "log-", MANIFEST, "blocks-", PLACES];
    ["blocks", RESERVE].contains(&name)
        || SETTINGS.contains(&name)
        || beginnings.iter().any(|begin| name.starts_with(begin))
}

/// What a checkpoint is made of.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub format: u32,
    /// Sixteen bytes in hexadecimal.
    pub database_id: String,
    /// Number of the checkpoint.
    pub checkpoint: u64,
    pub partitions: Vec<PartitionFiles>,
    /// The file with the block table.
    pub blocks: String,
    pub catalog: CatalogImage,
    /// Catalog records before this are in `catalog`.
    pub catalog_lsn: u64,
    /// Value and whether it was given out.
    pub sequences: Vec<(u32, i64, bool)>,
    /// Tables that transactions still open had made.
    pub drafts: Vec<TableDef>,
    /// The log is needed from here on; 0: all of it.
    pub log_start: u64,
    /// The log was durable up to here. 0 in manifests of format 5, which do not say.
    #[serde(default)]
    pub log_end: u64,
    /// Transactions are numbered from here on.
    pub last_transaction: u64,
}

/// What every description has.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

/// A partition's image: a base and the deltas on top of it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct PartitionFiles {
    /// The base first. None: the partition held nothing.
    pub files: Vec<ImageFile>,
    /// Changes logged before this are in the image.
    pub cut: u64,
}

impl PartitionFiles {
    /// The name of the file that was written last; empty if there is none.
    pub fn newest(&self) -> &str {
        self.files.last().map_or("", |file| &file.file)
    }

    /// Bytes of the files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

/// A file of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ImageFile {
    pub file: String,
    /// Its length.
    pub bytes: u64,
    /// CRC-32C of its frames' bodies.
    pub crc: u32,
}

impl Manifest {
    /// Reads the manifest; None if there is none: a new directory.
    pub fn read(device: &dyn Device) -> Result<Option<Self>> {
        let files = device
            .list()
            .map_err(|e| Error::io(e, "listing the data directory"))?;
        if !files.iter().any(|f| f == MANIFEST) {
            // It is the first file of a directory, and durable before the others.
            let orphan = files
                .iter()
                .find(|f| *f == "blocks" || f.starts_with("checkpoint-") || f.starts_with("log-"));
            return match orphan {
                None => Ok(None),
                Some(file) => Err(Error::Corrupt(format!(
                    "manifest: it is missing, though {file} is there"
                ))),
            };
        }
        let bytes = read_file(device, MANIFEST)?;
        let manifest: Manifest = decode_checked(MANIFEST, &bytes, FORMAT_OLDEST..=FORMAT_VERSION)?;
        manifest.catalog.check(MANIFEST)?;
        for draft in &manifest.drafts {
            draft.check(MANIFEST)?;
        }
        let partitions = manifest.partitions.len();
        if !partitions.is_power_of_two() || partitions > usize::from(u16::MAX) {
            let what = format!("{MANIFEST}: {partitions} partitions are not a power of two");
            return Err(Error::Corrupt(what));
        }
        Ok(Some(manifest))
    }

    /// The checkpoint's files.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let images = self.partitions.iter().flat_map(|p| &p.files);
        let images = images.map(|image| image.file.as_str());
        images
            .chain([self.blocks.as_str()])
            .filter(|file| !file.is_empty())
    }

    /// Bytes of all images.
    pub fn image_bytes(&self) -> u64 {
        self.partitions.iter().map(PartitionFiles::bytes).sum()
    }

    /// Makes this the manifest.
    pub fn write(&self, device: &dyn Device) -> Result<()> {
        self.put_in_place(device)?;
        Self::sync_name(device)
    }

    /// Writes this and renames it over the manifest that is there. After an error the old
    /// one is still there.
    pub fn put_in_place(&self, device: &dyn Device) -> Result<()> {
        write_file(device, MANIFEST_NEW, &encode_checked(self)?)?;
        stop_at(StopPoint::ManifestBeforeRename);
        device
            .rename(MANIFEST_NEW, MANIFEST)
            .map_err(|e| Error::io(e, "renaming the manifest"))?;
        stop_at(StopPoint::ManifestAfterRename);
        Ok(())
    }

    /// Makes the rename durable. After an error a restart may find either manifest.
    pub fn sync_name(device: &dyn Device) -> Result<()> {
        device
            .sync_directory()
            .map_err(|e| Error::io(e, "syncing the data directory"))
    }
}

/// A number that no other database has.
pub(crate) fn new_database_id(clock: &dyn Clock) -> u128 {
    let time = clock.unix_time_us() as u64;
    let hash = |seed: u64| xxhash_rust::xxh3::xxh3_64_with_seed(&time.to_le_bytes(), seed);
    (u128::from(hash(u64::from(std::process::id()))) << 64) | u128::from(hash(time))
}

/// A description as one line of JSON, and its checksum on the next.
pub(crate) fn encode_checked(description: &impl Serialize) -> Result<Vec<u8>> {
    let mut text = serde_json::to_string(description)
        .map_err(|error| Error::Internal(format!("encoding a description: {error}")))?;
    let crc = crc32c::crc32c(text.as_bytes());
    text.push_str(&format!("\n{crc:08x}\n"));
    Ok(text.into_bytes())
}

/// Reads what [`encode_checked`] made of a description that has one of these `formats`.
pub(crate) fn decode_checked<T: DeserializeOwned>(
    file: &str,
    bytes: &[u8],
    formats: RangeInclusive<u32>,
) -> Result<T> {
    let text = String::from_utf8_lossy(bytes);
    let (line, crc) = text
        .split_once('\n')
        .ok_or_else(|| Error::Corrupt(format!("{file}: it ends too early")))?;
    if u32::from_str_radix(crc.trim(), 16).ok() != Some(crc32c::crc32c(line.as_bytes())) {
        return Err(Error::Corrupt(format!("{file}: its checksum is wrong")));
    }
    let wrong = |error| Error::Corrupt(format!("{file}: {error}"));
    // The number alone, first: another format has other fields.
    let found: Format = serde_json::from_str(line).map_err(wrong)?;
    if !formats.contains(&found.format) {
        let format = formats.end();
        return Err(Error::Corrupt(format!(
            "{file}: format {} is not the format {format} of this program; copy the data out with \
             the program that wrote it, and in with this one",
            found.format
        )));
    }
    serde_json::from_str(line).map_err(wrong)
}

/// Writes a whole file and syncs it.
pub(crate) fn write_file(device: &dyn Device, name: &str, bytes: &[u8]) -> Result<()> {
    let write = || {
        let file = device.open(name, OpenMode::Create)?;
        file.set_len(bytes.len() as u64)?;
        for (number, piece) in bytes.chunks(1 << 20).enumerate() {
            file.write_at(piece, (number as u64) << 20)?;
        }
        file.sync_data()
    };
    write().map_err(|e| Error::io(e, format!("writing {name}")))
}

/// Reads a whole file.
pub(crate) fn read_file(device: &dyn Device, name: &str) -> Result<Vec<u8>> {
    let read = || {
        let file = device.open(name, OpenMode::Existing)?;
        let mut bytes = vec![0; file.len()? as usize];
        file.read_at(&mut bytes, 0)?;
        Ok(bytes)
    };
    read().map_err(|e| Error::reading(e, name))
}
