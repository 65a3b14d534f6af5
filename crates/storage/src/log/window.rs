//! A part of a segment file in memory, read ahead: whole sectors, through one buffer.

use std::ops::Range;

use thermocline_device::{AlignedBuffer, DeviceFile};

/// Bytes read at once.
const WINDOW_BYTES: usize = 1 << 20;

/// A part of the file in memory, read ahead.
#[derive(Default)]
pub(super) struct Window {
    buffer: Option<AlignedBuffer>,
    range: Range<u64>,
}

impl Window {
    /// These bytes of the file, if they are held.
    pub fn held(&self, range: Range<u64>) -> Option<&[u8]> {
        if range.start < self.range.start || range.end > self.range.end {
            return None;
        }
        let from = (range.start - self.range.start) as usize;
        let to = (range.end - self.range.start) as usize;
        self.buffer.as_ref()?.get(from..to)
    }

    /// Holds nothing from here on.
    pub fn forget(&mut self) {
        self.range = 0..0;
    }

    /// Makes the sectors from `offset` on held, `bytes` of them at least.
    pub fn load(
        &mut self,
        file: &dyn DeviceFile,
        file_bytes: u64,
        offset: u64,
        bytes: u64,
    ) -> std::io::Result<()> {
        if self.held(offset..offset + bytes).is_some() {
            return Ok(());
        }
        assert!(
            offset + bytes <= file_bytes,
            "the reader stays in its segment"
        );
        let wanted = bytes.max(WINDOW_BYTES as u64).min(file_bytes - offset);
        let mut buffer = match self.buffer.take() {
            Some(buffer) if buffer.len() as u64 >= wanted => buffer,
            _ => AlignedBuffer::new_zeroed(wanted as usize),
        };
        self.range = 0..0;
        file.read_at(&mut buffer[..wanted as usize], offset)?;
        self.buffer = Some(buffer);
        self.range = offset..offset + wanted;
        Ok(())
    }
}
