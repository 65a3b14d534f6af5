//! The first two sectors of the blocks' file: whose it is, and which block ids
//! may have been given out.
//!
//! Guarantees: an id is below a ceiling that was durable before the id was used.
//! After a crash ids begin at the ceiling, so that none is used twice, even for
//! blocks that no checkpoint knows of. Survives a torn write of one sector, as
//! the two are written in turn.

use thermocline_device::{AlignedBuffer, DeviceFile, SECTOR_BYTES};

use super::BlockStoreError;

/// Sectors before the first block.
pub(super) const SUPERBLOCK_SECTORS: u64 = 2;

/// Ids reserved at a time; at most this many are lost at a restart.
const RESERVED_IDS: u32 = 16_384;

const MAGIC: u32 = 0x5443_4253; // "TCBS"
const VERSION: u32 = 1;
const CRC_AT: usize = 40;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Superblock {
    pub database: u128,
    /// Counts the writes; tells the newer of the two sectors.
    pub sequence: u64,
    /// No id from here on was given out.
    pub id_ceiling: u32,
}

impl Superblock {
    pub fn new(database: u128) -> Self {
        Self {
            database,
            sequence: 0,
            id_ceiling: 1,
        }
    }

    /// The next superblock, which lets more ids be used; `None` at the last.
    pub fn reserve_ids(&self) -> Option<Self> {
        let id_ceiling = self.id_ceiling.saturating_add(RESERVED_IDS);
        (id_ceiling > self.id_ceiling).then_some(Self {
            database: self.database,
            sequence: self.sequence + 1,
            id_ceiling,
        })
    }

    /// Writes it over the older of the two; counts once it is synced.
    pub fn write(&self, file: &dyn DeviceFile) -> Result<(), BlockStoreError> {
        let mut sector = AlignedBuffer::new_zeroed(SECTOR_BYTES);
        sector[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        sector[4..8].copy_from_slice(&VERSION.to_le_bytes());
        sector[8..24].copy_from_slice(&self.database.to_le_bytes());
        sector[24..32].copy_from_slice(&self.sequence.to_le_bytes());
        sector[32..36].copy_from_slice(&self.id_ceiling.to_le_bytes());
        let crc = crc32c::crc32c(&sector[..CRC_AT]);
        sector[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
        let offset = self.sequence % SUPERBLOCK_SECTORS * SECTOR_BYTES as u64;
        file.write_at(&sector[..], offset)
            .map_err(BlockStoreError::io("write superblock"))
    }

    /// The newer valid superblock; `None` when neither was ever written whole.
    pub fn read(file: &dyn DeviceFile, database: u128) -> Result<Option<Self>, BlockStoreError> {
        let mut sectors = AlignedBuffer::new_zeroed(SUPERBLOCK_SECTORS as usize * SECTOR_BYTES);
        let length = file.len().map_err(BlockStoreError::io("length"))?;
        if length < sectors.len() as u64 {
            return Ok(None);
        }
        file.read_at(&mut sectors[..], 0)
            .map_err(BlockStoreError::io("read superblock"))?;
        let newest = sectors
            .chunks_exact(SECTOR_BYTES)
            .filter_map(Self::decode)
            .max_by_key(|(superblock, _)| superblock.sequence);
        match newest {
            None => Ok(None),
            Some((_, version)) if version != VERSION => {
                Err(BlockStoreError::Corrupt("superblock version is not known"))
            }
            Some((superblock, _)) if superblock.database != database => {
                Err(BlockStoreError::Corrupt("blocks of another database"))
            }
            Some((superblock, _)) => Ok(Some(superblock)),
        }
    }

    fn decode(sector: &[u8]) -> Option<(Self, u32)> {
        let u32_at = |at: usize| Some(u32::from_le_bytes(*sector.get(at..)?.first_chunk()?));
        let valid = u32_at(0)? == MAGIC && u32_at(CRC_AT)? == crc32c::crc32c(&sector[..CRC_AT]);
        let superblock = Self {
            database: u128::from_le_bytes(*sector.get(8..)?.first_chunk()?),
            sequence: u64::from_le_bytes(*sector.get(24..)?.first_chunk()?),
            id_ceiling: u32_at(32)?,
        };
        valid.then_some((superblock, u32_at(4)?))
    }
}
