//! What a log segment looks like on the device: every byte of it.
//!
//! A segment is a header sector followed by flush groups. A group has a header and
//! whole records back to back. It begins at a sector, or in the sector of the group
//! before, if that has room for all of it: then the whole sector is written again,
//! not in its place but in the sector beside it, and the next time back in the first.
//! So no write ever touches the only sector that holds an acknowledged record.
//!
//! Survives:
//!
//! * torn writes: each record and each header has a checksum, and the sector beside has all
//!   but the newest group;
//! * stale groups of a recycled file: their LSNs are lower, and part of each checksum;
//! * files of another database: its id is part of each header's checksum.
//!
//! Assumes: writes to sectors other than those being written change nothing.

use thermocline_device::{Mutation, SECTOR_BYTES};

/// Position in the endless stream of record bytes. Never 0. One that may have
/// reached the device is never given to another record, not even after a crash.
pub type Lsn = u64;

/// LSN of the first record of a new database.
pub const FIRST_LSN: Lsn = 4096;

/// Bytes before each record's payload: length and checksum.
pub const RECORD_HEADER_BYTES: usize = 8;

/// The largest payload that one record can hold (1 GiB).
pub const RECORD_BYTES_MAX: usize = 1 << 30;

/// Bytes of the header at the start of each flush group.
pub(super) const GROUP_HEADER_BYTES: usize = 40;

/// In the sector of another group, a group begins at a multiple of this.
const GROUP_ALIGNMENT: u64 = 8;

const SEGMENT_MAGIC: u32 = 0x5443_4C53; // "TCLS"
const SEGMENT_VERSION: u32 = 3;
/// The version before: each group begins at a sector.
const SEGMENT_VERSION_BEFORE: u32 = 2;
const SEGMENT_HEADER_BYTES: usize = 48;
const GROUP_MAGIC: u32 = 0x5443_4C47; // "TCLG"
const NAME_PREFIX: &str = "log-";
const SPARE_PREFIX: &str = "log-spare-";

/// The little-endian `u32` at `at`, or `None` past the end.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let field = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*field))
}

/// The little-endian `u64` at `at`, or `None` past the end.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let field = bytes.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*field))
}

/// `bytes` rounded up to whole sectors.
pub(super) fn round_to_sectors(bytes: u64) -> u64 {
    bytes.next_multiple_of(SECTOR_BYTES as u64)
}

/// Where a group can begin behind one that ends at `end`, in the same sector.
pub(super) fn place_behind(end: u64) -> u64 {
    end.next_multiple_of(GROUP_ALIGNMENT)
}

/// The name of the segment whose first record is at `first`.
pub(super) fn segment_name(first: Lsn) -> String {
    format!("{NAME_PREFIX}{first:016x}")
}

/// The first LSN in a segment's name, or `None` for any other file.
pub(super) fn parse_segment_name(name: &str) -> Option<Lsn> {
    let digits = name.strip_prefix(NAME_PREFIX)?;
    let lower = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
    if digits.len() != 16 || !digits.bytes().all(lower) {
        return None;
    }
    Lsn::from_str_radix(digits, 16).ok()
}

/// The name of the `number`th spare segment: allocated, holding nothing.
pub(super) fn spare_name(number: u64) -> String {
    format!("{SPARE_PREFIX}{number}")
}

/// The number in a spare's name, or `None` for any other file.
pub(super) fn parse_spare_name(name: &str) -> Option<u64> {
    name.strip_prefix(SPARE_PREFIX)?.parse().ok()
}

/// The header sector of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SegmentHeader {
    /// LSN of the first record of the segment.
    pub first: Lsn,
    /// Where the stream ended in the segment before: the link of the chain.
    pub previous_end: Lsn,
    /// The database the segment belongs to.
    pub database: u128,
}

impl SegmentHeader {
    /// Writes the header into the sector `out`, the rest of which is zeroed.
    pub fn encode(&self, out: &mut [u8]) {
        assert!(out.len() == SECTOR_BYTES, "a segment header is one sector");
        out.fill(0);
        out[0..4].copy_from_slice(&SEGMENT_MAGIC.to_le_bytes());
        out[4..8].copy_from_slice(&SEGMENT_VERSION.to_le_bytes());
        out[8..16].copy_from_slice(&self.first.to_le_bytes());
        out[16..24].copy_from_slice(&self.previous_end.to_le_bytes());
        out[24..40].copy_from_slice(&self.database.to_le_bytes());
        let crc = crc32c::crc32c(&out[..40]);
        out[40..44].copy_from_slice(&crc.to_le_bytes());
    }

    /// Reads a header, or says what is wrong with it.
    pub fn decode(bytes: &[u8]) -> Result<Self, &'static str> {
        let header = bytes
            .first_chunk::<SEGMENT_HEADER_BYTES>()
            .ok_or("segment header is cut short")?;
        if u32_at(header, 0) != Some(SEGMENT_MAGIC) {
            return Err("not a log segment");
        }
        if u32_at(header, 40) != Some(crc32c::crc32c(&header[..40])) {
            return Err("segment header checksum does not match");
        }
        if ![Some(SEGMENT_VERSION), Some(SEGMENT_VERSION_BEFORE)].contains(&u32_at(header, 4)) {
            return Err("segment version is not known");
        }
        let mut database = [0; 16];
        database.copy_from_slice(&header[24..40]);
        Ok(Self {
            first: u64_at(header, 8).ok_or("segment header is cut short")?,
            previous_end: u64_at(header, 16).ok_or("segment header is cut short")?,
            database: u128::from_le_bytes(database),
        })
    }
}

/// The header at the start of each flush group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct GroupHeader {
    /// LSN of the group's first record.
    pub first: Lsn,
    /// Counts the groups of a database; a gap means that one was lost.
    pub sequence: u64,
    /// When it was closed, in microseconds since 1970: its records were appended
    /// before, and none was durable.
    pub time_us: i64,
    /// Bytes of records that follow the header, without the padding.
    pub bytes: u32,
}

impl GroupHeader {
    /// Bytes of header and records.
    pub fn whole_bytes(&self) -> u64 {
        GROUP_HEADER_BYTES as u64 + u64::from(self.bytes)
    }

    /// Bytes of the group on the device if it begins at a sector: header, records, padding.
    pub fn device_bytes(&self) -> u64 {
        round_to_sectors(self.whole_bytes())
    }

    /// Writes the header into the first bytes of `out`.
    pub fn encode(&self, database: u128, out: &mut [u8]) {
        out[0..4].copy_from_slice(&GROUP_MAGIC.to_le_bytes());
        out[4..8].copy_from_slice(&self.bytes.to_le_bytes());
        out[8..16].copy_from_slice(&self.first.to_le_bytes());
        out[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        out[24..32].copy_from_slice(&self.time_us.to_le_bytes());
        let crc = group_crc(&out[..32], database);
        out[32..36].copy_from_slice(&crc.to_le_bytes());
        out[36..40].fill(0);
    }

    /// The header at the start of `bytes`, or `None` when there is no valid one.
    pub fn decode(database: u128, bytes: &[u8]) -> Option<Self> {
        let header = bytes.first_chunk::<GROUP_HEADER_BYTES>()?;
        if u32_at(header, 0)? != GROUP_MAGIC
            || u32_at(header, 32)? != group_crc(&header[..32], database)
        {
            return None;
        }
        Some(Self {
            first: u64_at(header, 8)?,
            sequence: u64_at(header, 16)?,
            time_us: u64_at(header, 24)? as i64,
            bytes: u32_at(header, 4)?,
        })
    }
}

fn group_crc(header: &[u8], database: u128) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(header), &database.to_le_bytes())
}

/// Checksum of a payload in pieces: what can be had before the LSN is known.
pub(super) fn payload_crc(pieces: &[&[u8]]) -> u32 {
    pieces
        .iter()
        .fold(0, |crc, piece| crc32c::crc32c_append(crc, piece))
}

/// Checksum of a record: its payload, then its LSN.
pub(super) fn record_crc(payload_crc: u32, start: Lsn) -> u32 {
    crc32c::crc32c_append(payload_crc, &start.to_le_bytes())
}

/// The payload of the record at `start`, when `bytes` begins with a valid one.
pub(super) fn decode_record(bytes: &[u8], start: Lsn) -> Option<&[u8]> {
    let length = u32_at(bytes, 0)? as usize;
    let crc = u32_at(bytes, 4)?;
    let payload = bytes.get(RECORD_HEADER_BYTES..RECORD_HEADER_BYTES.checked_add(length)?)?;
    let valid = record_crc(crc32c::crc32c(payload), start) == crc;
    (valid || Mutation::LogChecksumSkipped.is_made()).then_some(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_strangers_are_left_alone() {
        assert_eq!(parse_segment_name(&segment_name(0xabc)), Some(0xabc));
        assert_eq!(parse_segment_name("log-spare-1"), None);
        assert_eq!(parse_segment_name("log-+00000000000001"), None);
        assert_eq!(parse_segment_name("blocks"), None);
        assert_eq!(parse_spare_name(&spare_name(7)), Some(7));
        assert_eq!(parse_spare_name(&segment_name(7)), None);
    }

    #[test]
    fn headers_notice_each_flipped_bit() {
        let segment = SegmentHeader {
            first: 1 << 40,
            previous_end: 99,
            database: 7 << 100,
        };
        let mut sector = vec![0xff; SECTOR_BYTES];
        segment.encode(&mut sector);
        assert_eq!(SegmentHeader::decode(&sector), Ok(segment));
        for bit in 0..44 * 8 {
            sector[bit / 8] ^= 1 << (bit % 8);
            assert!(SegmentHeader::decode(&sector).is_err(), "bit {bit}");
            sector[bit / 8] ^= 1 << (bit % 8);
        }
        let group = GroupHeader {
            first: 5000,
            sequence: 3,
            time_us: 1_790_000_000_000_000,
            bytes: 70_000,
        };
        group.encode(1, &mut sector);
        assert_eq!(GroupHeader::decode(1, &sector), Some(group));
        assert_eq!(GroupHeader::decode(2, &sector), None, "another database");
        for bit in 0..36 * 8 {
            sector[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(GroupHeader::decode(1, &sector), None, "bit {bit}");
            sector[bit / 8] ^= 1 << (bit % 8);
        }
        assert_eq!(group.device_bytes(), 73_728);
    }
}
