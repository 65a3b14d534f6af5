//! What the indexes' snapshots share: reading little-endian fields from a
//! byte slice that may be cut short or damaged.
//!
//! Guarantees: damage is an error, never a panic or an endless loop. It does not
//! find every flipped bit; the file around a snapshot is checksummed.

use std::fmt;

/// A snapshot that cannot be what an index wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Corrupt(pub &'static str);

impl fmt::Display for Corrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "index snapshot is corrupt: {}", self.0)
    }
}

impl std::error::Error for Corrupt {}

pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], Corrupt> {
        let (taken, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or(Corrupt("cut short"))?;
        self.rest = rest;
        Ok(taken)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Corrupt> {
        let (taken, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(Corrupt("cut short"))?;
        self.rest = rest;
        Ok(*taken)
    }

    pub fn u32(&mut self) -> Result<u32, Corrupt> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub fn u64(&mut self) -> Result<u64, Corrupt> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    pub fn end(&self) -> Result<(), Corrupt> {
        match self.rest {
            [] => Ok(()),
            _ => Err(Corrupt("bytes left over")),
        }
    }
}
