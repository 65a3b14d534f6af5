//! A partition's image in files (docs/internals/format.md, "A partition's image"): frames,
//! each checksummed together with all before it, written through one buffer and
//! read through one, so that neither takes memory in proportion to the data.
//!
//! What is in the frames is `capture`'s to say and `restart::images`' to read.

use std::sync::Arc;

use thermocline_device::{AlignedBuffer, Device, DeviceFile, Mutation, OpenMode, SECTOR_BYTES};

use crate::format::manifest::ImageFile;
use crate::ground::error::{Error, Result};

/// First bytes of an image file.
pub(crate) const IMAGE_MAGIC: &[u8; 8] = b"TCPARTI2";
/// Before a frame's body: its length and the checksum.
pub(crate) const FRAME_HEAD: usize = 8;
/// More than any frame has but the end: the largest tuple and some. Who writes keeps to it
/// as who reads does: a file that nobody can read must not get into a manifest.
const FRAME_BYTES_MAX: usize = 16 << 20;
/// The end has a line for each range of uncommitted rows, and is one frame. It may be so
/// long because it is the file's last: a damaged length passes for it only where the file
/// ends just there.
const END_BYTES_MAX: usize = 1 << 30;
/// What is written or read at once.
pub(crate) const BUFFER_BYTES: usize = 256 << 10;

/// What a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Frame {
    /// Which partition, which checkpoint. The first.
    Head = 0,
    /// Pages of a row directory.
    Words = 1,
    /// Pages of a hash index.
    Lines = 2,
    /// Nodes of a B+tree.
    Nodes = 3,
    /// Nodes of the B+tree of a hash index's duplicates.
    Duplicates = 4,
    /// Tuples that were changed so late that they are in no block.
    Tuples = 5,
    /// What tables and indexes there are. The last.
    End = 6,
}

impl Frame {
    /// From a frame's first byte.
    pub fn of(byte: u8) -> Option<Self> {
        [
            Frame::Head,
            Frame::Words,
            Frame::Lines,
            Frame::Nodes,
            Frame::Duplicates,
            Frame::Tuples,
            Frame::End,
        ]
        .into_iter()
        .find(|frame| *frame as u8 == byte)
    }
}

/// Begins a frame; where it begins, for [`end_frame`].
pub(crate) fn begin_frame(out: &mut Vec<u8>, frame: Frame) -> usize {
    let at = out.len();
    out.extend_from_slice(&[0; FRAME_HEAD]);
    out.push(frame as u8);
    at
}

/// Ends the frame that began at `at`. One that is too long is refused when it is written.
pub(crate) fn end_frame(out: &mut [u8], at: usize) {
    let bytes = u32::try_from(out.len() - at - FRAME_HEAD).unwrap_or(u32::MAX);
    out[at..at + 4].copy_from_slice(&bytes.to_le_bytes());
}

/// Whether a reader takes a frame of so many bytes.
fn is_frame_length(bytes: usize, is_end: bool) -> bool {
    let most = if is_end {
        END_BYTES_MAX
    } else {
        FRAME_BYTES_MAX
    };
    (1..=most).contains(&bytes)
}

/// Writes an image file. The file is made with the first frame.
pub(crate) struct ImageWriter<'a> {
    device: &'a dyn Device,
    name: String,
    file: Option<Arc<dyn DeviceFile>>,
    buffer: AlignedBuffer,
    buffered: usize,
    /// Bytes written to the file.
    written: u64,
    crc: u32,
}

impl<'a> ImageWriter<'a> {
    pub fn new(device: &'a dyn Device, name: String) -> Self {
        ImageWriter {
            device,
            name,
            file: None,
            buffer: AlignedBuffer::new_zeroed(BUFFER_BYTES),
            buffered: 0,
            written: 0,
            crc: 0,
        }
    }

    /// Bytes handed over so far.
    pub fn bytes(&self) -> u64 {
        self.written + self.buffered as u64
    }

    /// Writes whole frames, and gives each its checksum. An error, before anything of them
    /// is written, if one is longer than a reader takes.
    pub fn write(&mut self, frames: &mut [u8]) -> Result<()> {
        let mut at = 0;
        while at < frames.len() {
            let mut bytes = [0; 4];
            bytes.copy_from_slice(&frames[at..at + 4]);
            let bytes = u32::from_le_bytes(bytes) as usize;
            let is_end = frames.get(at + FRAME_HEAD) == Some(&(Frame::End as u8));
            if !is_frame_length(bytes, is_end) {
                let what = format!("{}: a frame of {bytes} bytes", self.name);
                return Err(Error::Internal(what));
            }
            let end = at + FRAME_HEAD + bytes;
            self.crc = crc32c::crc32c_append(self.crc, &frames[at + FRAME_HEAD..end]);
            frames[at + 4..at + FRAME_HEAD].copy_from_slice(&self.crc.to_le_bytes());
            at = end;
        }
        self.append(frames)
    }

    fn append(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let taken = bytes.len().min(BUFFER_BYTES - self.buffered);
            let (now, later) = bytes.split_at(taken);
            self.buffer[self.buffered..self.buffered + taken].copy_from_slice(now);
            self.buffered += taken;
            bytes = later;
            if self.buffered == BUFFER_BYTES {
                self.flush(BUFFER_BYTES)?;
            }
        }
        Ok(())
    }

    fn flush(&mut self, bytes: usize) -> Result<()> {
        let failed = |e| Error::io(e, format!("writing {}", self.name));
        let file = match &self.file {
            Some(file) => file,
            None => {
                let file = self
                    .device
                    .open(&self.name, OpenMode::Create)
                    .map_err(failed)?;
                // An attempt that failed may have left one.
                file.set_len(0).map_err(failed)?;
                self.file.insert(file)
            }
        };
        file.write_at(&self.buffer[..bytes], self.written)
            .map_err(failed)?;
        self.written += bytes as u64;
        self.buffered = 0;
        Ok(())
    }

    /// Writes the rest and syncs.
    pub fn finish(mut self) -> Result<ImageFile> {
        let bytes = self.bytes();
        let padded = self.buffered.next_multiple_of(SECTOR_BYTES);
        self.buffer[self.buffered..padded].fill(0);
        self.flush(padded)?;
        if let Some(file) = &self.file {
            // The padding was for direct I/O.
            file.set_len(bytes)
                .and_then(|()| match Mutation::ImageNotSynced.is_made() {
                    true => Ok(()),
                    false => file.sync_data(),
                })
                .map_err(|e| Error::io(e, format!("syncing {}", self.name)))?;
        }
        Ok(ImageFile {
            file: self.name,
            bytes,
            crc: self.crc,
        })
    }
}

/// Reads the frames of an image file, each verified before it is handed out.
pub(crate) struct ImageReader<'a> {
    name: &'a str,
    file: Arc<dyn DeviceFile>,
    buffer: AlignedBuffer,
    /// What of the buffer is still to be read.
    from: usize,
    to: usize,
    /// Bytes that the file has according to the manifest, and how many of these
    /// are in the buffer or behind it.
    bytes: u64,
    fetched: u64,
    /// Where the frame began that was read last.
    at: u64,
    crc: u32,
    crc_wanted: u32,
    frame: Vec<u8>,
}

impl<'a> ImageReader<'a> {
    /// Opens a file that the manifest names.
    pub fn open(device: &dyn Device, image: &'a ImageFile) -> Result<Self> {
        let failed = |e| Error::reading(e, &image.file);
        let file = device
            .open(&image.file, OpenMode::Existing)
            .map_err(failed)?;
        let there = file.len().map_err(failed)?;
        if there != image.bytes {
            return Err(Error::Corrupt(format!(
                "{}: it has {there} bytes, and the manifest says {}",
                image.file, image.bytes
            )));
        }
        Ok(ImageReader {
            name: &image.file,
            file,
            buffer: AlignedBuffer::new_zeroed(BUFFER_BYTES),
            from: 0,
            to: 0,
            bytes: image.bytes,
            fetched: 0,
            at: 0,
            crc: 0,
            crc_wanted: image.crc,
            frame: Vec::new(),
        })
    }

    /// The next frame; `None` after the last.
    pub fn next(&mut self) -> Result<Option<(Frame, &[u8])>> {
        self.at = self.fetched - (self.to - self.from) as u64;
        if self.at == self.bytes {
            if self.crc != self.crc_wanted {
                return Err(self.damaged("it is not the file that the manifest names"));
            }
            return Ok(None);
        }
        let mut head = [0; FRAME_HEAD];
        self.fill(&mut head)?;
        let [l0, l1, l2, l3, c0, c1, c2, c3] = head;
        let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        let is_end = self.at + (FRAME_HEAD + length) as u64 == self.bytes;
        if !is_frame_length(length, is_end) {
            return Err(self.damaged("a frame's length is wrong"));
        }
        let mut frame = std::mem::take(&mut self.frame);
        frame.resize(length, 0);
        let filled = self.fill(&mut frame);
        self.frame = frame;
        filled?;
        self.crc = crc32c::crc32c_append(self.crc, &self.frame);
        if self.crc != u32::from_le_bytes([c0, c1, c2, c3]) {
            return Err(self.damaged("a frame's checksum is wrong"));
        }
        match Frame::of(self.frame[0]) {
            Some(frame) => Ok(Some((frame, &self.frame[1..]))),
            None => Err(self.damaged("a frame of no known kind")),
        }
    }

    /// An error that names the file and the frame.
    pub fn damaged(&self, what: impl std::fmt::Display) -> Error {
        Error::Corrupt(format!("{}: at byte {}: {what}", self.name, self.at))
    }

    fn fill(&mut self, out: &mut [u8]) -> Result<()> {
        let mut filled = 0;
        while filled < out.len() {
            if self.from == self.to {
                let rest = (self.bytes - self.fetched).min(BUFFER_BYTES as u64) as usize;
                if rest == 0 {
                    return Err(self.damaged("a frame ends beyond the file's end"));
                }
                self.file
                    .read_at(&mut self.buffer[..rest], self.fetched)
                    .map_err(|e| Error::reading(e, self.name))?;
                (self.from, self.to) = (0, rest);
                self.fetched += rest as u64;
            }
            let taken = (out.len() - filled).min(self.to - self.from);
            out[filled..filled + taken].copy_from_slice(&self.buffer[self.from..self.from + taken]);
            self.from += taken;
            filled += taken;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use thermocline_device::SimulatedDevice;

    fn write(device: &SimulatedDevice, bodies: &[Vec<u8>]) -> ImageFile {
        let mut writer = ImageWriter::new(device, "checkpoint-1".into());
        let mut frames = Vec::new();
        for body in bodies {
            let at = begin_frame(&mut frames, Frame::Words);
            frames.extend_from_slice(body);
            end_frame(&mut frames, at);
        }
        writer.write(&mut frames).expect("writes");
        assert_eq!(writer.bytes(), frames.len() as u64);
        writer.finish().expect("finishes")
    }

    fn read(device: &SimulatedDevice, image: &ImageFile) -> Result<Vec<Vec<u8>>> {
        let mut reader = ImageReader::open(device, image)?;
        let mut bodies = Vec::new();
        while let Some((frame, body)) = reader.next()? {
            assert_eq!(frame, Frame::Words);
            bodies.push(body.to_vec());
        }
        Ok(bodies)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn frames_come_back_and_damage_is_an_error(
            sizes in prop::collection::vec(prop_oneof![0usize..200, 0usize..300_000], 1..8),
            flip in any::<(prop::sample::Index, u8)>(),
        ) {
            let bodies: Vec<Vec<u8>> = sizes
                .iter()
                .enumerate()
                .map(|(number, size)| vec![number as u8; *size])
                .collect();
            let device = SimulatedDevice::new();
            let image = write(&device, &bodies);
            prop_assert_eq!(read(&device, &image).expect("reads"), bodies);

            let file = device.open(&image.file, OpenMode::Existing).expect("opens");
            let mut whole = vec![0; image.bytes as usize];
            file.read_at(&mut whole, 0).expect("reads");
            let (at, bits) = (flip.0.index(whole.len()), flip.1.max(1));
            file.write_at(&[whole[at] ^ bits], at as u64).expect("writes");
            let error = read(&device, &image).expect_err("damage is found");
            prop_assert!(error.to_string().contains("checkpoint-1"), "{}", error);
        }
    }

    /// The writer took any length, and no start could read the image then.
    #[test]
    fn what_a_reader_would_not_take_is_not_written() {
        let device = SimulatedDevice::new();
        let frame = |kind, bytes| {
            let mut frames = Vec::new();
            let at = begin_frame(&mut frames, kind);
            frames.resize(at + FRAME_HEAD + bytes, 7);
            end_frame(&mut frames, at);
            frames
        };
        for (kind, bytes, fits) in [
            (Frame::Tuples, FRAME_BYTES_MAX, true),
            (Frame::Tuples, FRAME_BYTES_MAX + 1, false),
            (Frame::Words, FRAME_BYTES_MAX + 1, false),
            (Frame::End, FRAME_BYTES_MAX + 1, true),
        ] {
            let mut writer = ImageWriter::new(&device, "checkpoint-1".into());
            writer.write(&mut frame(Frame::Head, 20)).expect("writes");
            let written = writer.write(&mut frame(kind, bytes));
            assert_eq!(written.is_ok(), fits, "{kind:?} of {bytes}");
            if !fits {
                assert_eq!(writer.bytes(), 28, "nothing of it is written");
                continue;
            }
            let image = writer.finish().expect("finishes");
            let mut reader = ImageReader::open(&device, &image).expect("opens");
            assert_eq!(
                reader.next().expect("reads").map(|f| f.0),
                Some(Frame::Head)
            );
            let (read, body) = reader.next().expect("reads").expect("there is another");
            assert_eq!((read, body.len()), (kind, bytes - 1));
            assert!(reader.next().expect("reads").is_none());
        }
    }

    #[test]
    fn another_whole_file_of_the_same_name_is_refused() {
        let device = SimulatedDevice::new();
        let image = write(&device, &[vec![1; 100]]);
        write(&device, &[vec![2; 100]]);
        assert!(read(&device, &image).is_err());
        let longer = ImageFile {
            bytes: 1 << 20,
            ..image
        };
        assert!(read(&device, &longer).is_err());
    }
}
