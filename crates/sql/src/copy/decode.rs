//! The input of a COPY FROM, cut into records and fields. Data is pushed as it
//! comes from the client; a record is given out once it is whole. Bytes are
//! kept only of the record that is not whole yet, up to
//! [`RECORD_BYTES_MAX`]; malformed input is an error, never a panic.

use std::ops::Range;

use super::encode::BINARY_HEADER;
use super::{CopyFormat, CopyOptions, csv, text};
use crate::error::{Result, SqlError};

/// The longest record, in bytes.
pub(crate) const RECORD_BYTES_MAX: usize = 64 << 20;

/// One record: its fields, `None` for NULL, as ranges of `bytes`.
#[derive(Default)]
pub(crate) struct Record {
    pub(crate) bytes: Vec<u8>,
    pub(crate) fields: Vec<Option<Range<usize>>>,
    /// The line it began on, from 1; for binary the row's number.
    pub(crate) line: u64,
}

impl Record {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.fields.clear();
    }

    /// The bytes of a field; `None` for NULL.
    pub(crate) fn field(&self, index: usize) -> Option<&[u8]> {
        let range = self.fields.get(index)?.clone()?;
        self.bytes.get(range)
    }
}

/// Where the input stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Before the header line or the signature.
    Start,
    Records,
    /// Behind `\.` or the binary trailer.
    End,
}

/// Cuts the input of a COPY FROM into records.
pub(crate) struct CopyDecoder {
    options: CopyOptions,
    /// The names of the columns that come.
    columns: Vec<String>,
    buffer: Vec<u8>,
    /// What of `buffer` was given out.
    taken: usize,
    /// csv: how far a record's end was looked for, and in which state.
    pub(super) scan: csv::Scan,
    line: u64,
    stage: Stage,
    finished: bool,
    /// Lines end in CR LF; found out at the first.
    carriage_returns: Option<bool>,
}

impl CopyDecoder {
    pub(crate) fn new(options: CopyOptions, columns: Vec<String>) -> Self {
        Self {
            options,
            columns,
            buffer: Vec::new(),
            taken: 0,
            scan: csv::Scan::default(),
            line: 0,
            stage: Stage::Start,
            finished: false,
            carriage_returns: None,
        }
    }

    /// The line of the last record, from 1.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// Bytes of input that are no whole record yet.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.buffer.len() - self.taken
    }

    /// Bytes that the input takes in memory with so many more, while it grows.
    pub(crate) fn bytes_with(&self, more: usize) -> usize {
        let needed = self.pending_bytes() + more;
        match needed > self.buffer.capacity() {
            // The old buffer is there until the new one is filled.
            true => self.buffer.capacity() + 2 * needed.max(self.buffer.capacity()),
            false => self.buffer.capacity(),
        }
    }

    /// Adds input.
    ///
    /// # Errors
    /// 54000 when a record grows too long.
    pub(crate) fn push(&mut self, data: &[u8]) -> Result<()> {
        if self.stage == Stage::End {
            return Ok(());
        }
        if self.taken > 0 {
            self.buffer.drain(..self.taken);
            self.taken = 0;
        }
        if self.buffer.len() + data.len() > RECORD_BYTES_MAX {
            return Err(SqlError::new(
                "54000",
                format!("a row of the COPY data is longer than {RECORD_BYTES_MAX} bytes"),
            ));
        }
        self.buffer.extend_from_slice(data);
        Ok(())
    }

    /// No more input comes.
    pub(crate) fn finish(&mut self) {
        self.finished = true;
    }

    /// Reads the next record into `record`; false when more input is needed
    /// or there is none.
    ///
    /// # Errors
    /// 22P04 for input that is not of the format.
    pub(crate) fn next(&mut self, record: &mut Record) -> Result<bool> {
        loop {
            match (self.stage, self.options.format) {
                (Stage::End, _) => return Ok(false),
                (_, CopyFormat::Binary) => return self.next_binary(record),
                (Stage::Start, _) => {
                    if !self.options.header {
                        self.stage = Stage::Records;
                        continue;
                    }
                    if !self.next_line(record)? {
                        return Ok(false);
                    }
                    if self.stage == Stage::Start {
                        self.stage = Stage::Records;
                    }
                    if self.options.header_match {
                        self.check_header(record)?;
                    }
                }
                (Stage::Records, _) => {
                    if !self.next_line(record)? {
                        return Ok(false);
                    }
                    if self.stage == Stage::End {
                        return Ok(false);
                    }
                    self.check_fields(record)?;
                    return Ok(true);
                }
            }
        }
    }

    /// Reads the next line, whatever the number of its fields.
    fn next_line(&mut self, record: &mut Record) -> Result<bool> {
        let rest = &self.buffer[self.taken..];
        let csv = self.options.format == CopyFormat::Csv;
        let found = if csv {
            csv::record_end(rest, &self.options, &mut self.scan)
        } else {
            text::line_end(rest, &mut self.scan.offset)
        };
        let (end, next) = match found {
            Some(end) => (end, end + 1),
            None if !self.finished || rest.is_empty() => return Ok(false),
            None if csv && self.scan.quoted => {
                self.line += 1;
                return Err(SqlError::new("22P04", "unterminated CSV quoted field"));
            }
            None => (rest.len(), rest.len()),
        };
        let mut line = &rest[..end];
        self.line += 1;
        record.line = self.line;
        if csv {
            self.line += self.scan.newlines;
        }
        self.scan = csv::Scan::default();
        let crlf = *self
            .carriage_returns
            .get_or_insert(line.last() == Some(&b'\r'));
        if crlf {
            line = line.strip_suffix(b"\r").unwrap_or(line);
        }
        record.clear();
        if line == b"\\." {
            self.stage = Stage::End;
        } else if csv {
            csv::split(line, &self.options, record)?;
        } else {
            text::split(line, &self.options, record);
        }
        self.taken += next;
        Ok(true)
    }

    fn check_fields(&self, record: &Record) -> Result<()> {
        let expected = self.columns.len();
        let found = record.fields.len();
        if found < expected {
            return Err(SqlError::new(
                "22P04",
                format!("missing data for column \"{}\"", self.columns[found]),
            ));
        }
        // A table without columns has empty lines.
        let empty = expected == 0 && found == 1 && record.bytes.is_empty();
        if found > expected && !empty {
            return Err(SqlError::new(
                "22P04",
                "extra data after last expected column",
            ));
        }
        Ok(())
    }

    fn check_header(&self, record: &Record) -> Result<()> {
        if record.fields.len() != self.columns.len() {
            return Err(SqlError::new(
                "22P04",
                format!(
                    "wrong number of fields in header line: got {}, expected {}",
                    record.fields.len(),
                    self.columns.len()
                ),
            ));
        }
        for (at, column) in self.columns.iter().enumerate() {
            let name = record.field(at).unwrap_or_default();
            if name != column.as_bytes() {
                return Err(SqlError::new(
                    "22P04",
                    format!(
                        "column name mismatch in header line field {}: got \"{}\", expected \"{column}\"",
                        at + 1,
                        String::from_utf8_lossy(name)
                    ),
                ));
            }
        }
        Ok(())
    }

    fn next_binary(&mut self, record: &mut Record) -> Result<bool> {
        if self.stage == Stage::Start {
            let rest = &self.buffer[self.taken..];
            let Some(header) = rest.get(..BINARY_HEADER.len()) else {
                return self.incomplete(rest.is_empty() && self.line == 0);
            };
            let signature = BINARY_HEADER.len() - 8;
            if header[..signature] != BINARY_HEADER[..signature] {
                return Err(SqlError::new("22P04", "COPY file signature not recognized"));
            }
            if header[signature] != 0 || header[signature + 1] != 0 {
                return Err(SqlError::new(
                    "22P04",
                    "unrecognized critical flags in COPY file header",
                ));
            }
            let extension = be_u32(&header[signature + 4..]) as usize;
            if rest.len() < BINARY_HEADER.len() + extension {
                return self.incomplete(false);
            }
            self.taken += BINARY_HEADER.len() + extension;
            self.stage = Stage::Records;
        }
        let rest = &self.buffer[self.taken..];
        let Some(head) = rest.get(..2) else {
            return self.incomplete(rest.is_empty());
        };
        let count = i16::from_be_bytes([head[0], head[1]]);
        if count == -1 {
            self.stage = Stage::End;
            return Ok(false);
        }
        if usize::try_from(count) != Ok(self.columns.len()) {
            self.line += 1;
            return Err(SqlError::new(
                "22P04",
                format!(
                    "row field count is {count}, expected {}",
                    self.columns.len()
                ),
            ));
        }
        record.clear();
        if !is_whole(&rest[2..], self.columns.len()) {
            return self.incomplete(false);
        }
        let mut at = 2;
        for _ in 0..self.columns.len() {
            let Some(head) = rest.get(at..at + 4) else {
                return self.incomplete(false);
            };
            let length = be_u32(head) as i32;
            at += 4;
            if length == -1 {
                record.fields.push(None);
                continue;
            }
            let Ok(length) = usize::try_from(length) else {
                return Err(SqlError::new("22P04", "invalid field size"));
            };
            let Some(bytes) = rest.get(at..at + length) else {
                return self.incomplete(false);
            };
            let start = record.bytes.len();
            record.bytes.extend_from_slice(bytes);
            record.fields.push(Some(start..start + length));
            at += length;
        }
        self.taken += at;
        self.line += 1;
        record.line = self.line;
        Ok(true)
    }

    /// More input is needed; if there is none, it ended too early.
    fn incomplete(&self, fine: bool) -> Result<bool> {
        if self.finished && !fine {
            return Err(SqlError::new("22P04", "unexpected EOF in COPY data"));
        }
        Ok(false)
    }
}

/// Whether so many fields are there. What is no length ends it, as it is an error.
fn is_whole(fields: &[u8], count: usize) -> bool {
    let mut at = 0;
    for _ in 0..count {
        let Some(head) = fields.get(at..at + 4) else {
            return false;
        };
        at += 4;
        match be_u32(head) as i32 {
            -1 => {}
            length => match usize::try_from(length) {
                Ok(length) => at += length,
                Err(_) => return true,
            },
        }
    }
    at <= fields.len()
}

fn be_u32(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .take(4)
        .fold(0, |number, byte| number << 8 | u32::from(*byte))
}
