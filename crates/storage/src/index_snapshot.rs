//! What the saved pages of indexes share: reading little-endian fields from a
//! byte slice that may be cut short or damaged.
//!
//! Guarantees: damage is an error, never a panic or an endless loop. It does not
//! find every flipped bit; the file around the pages is checksummed.

use std::fmt;

/// Bytes that cannot be what an index wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Corrupt(pub &'static str);

impl fmt::Display for Corrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "saved pages are corrupt: {}", self.0)
    }
}

impl std::error::Error for Corrupt {}

/// Reads fields one after the other.
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// So many bytes.
    ///
    /// # Errors
    /// There are fewer; the same of the other methods.
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], Corrupt> {
        let (taken, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or(Corrupt("cut short"))?;
        self.rest = rest;
        Ok(taken)
    }

    /// So many bytes as an array.
    ///
    /// # Errors
    /// See [`Reader::bytes`].
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Corrupt> {
        let (taken, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(Corrupt("cut short"))?;
        self.rest = rest;
        Ok(*taken)
    }

    /// A byte.
    ///
    /// # Errors
    /// See [`Reader::bytes`].
    pub fn u8(&mut self) -> Result<u8, Corrupt> {
        self.array().map(u8::from_le_bytes)
    }

    /// A little-endian number.
    ///
    /// # Errors
    /// See [`Reader::bytes`].
    pub fn u32(&mut self) -> Result<u32, Corrupt> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// A little-endian number.
    ///
    /// # Errors
    /// See [`Reader::bytes`].
    pub fn u64(&mut self) -> Result<u64, Corrupt> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Bytes left.
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Checks that nothing is left.
    ///
    /// # Errors
    /// Something is.
    pub fn end(&self) -> Result<(), Corrupt> {
        match self.rest {
            [] => Ok(()),
            _ => Err(Corrupt("bytes left over")),
        }
    }
}
