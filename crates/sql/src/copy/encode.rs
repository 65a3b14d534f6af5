//! How the rows of a COPY TO are written: the escapes of the text format, the
//! quotes of csv, the lengths of binary. Rows come through a `RowWriter`, so a
//! COPY TO takes the same way as a SELECT. What is written here, `decode`
//! reads back; a property test holds the two to it.

use thermocline_values::binary_format;
use thermocline_values::types::DataType;
use thermocline_values::value::ValueRef;

use super::options::ColumnChoice;
use super::{CopyFormat, CopyOptions};
use crate::error::Result;
use crate::styles::Styles;

/// The first bytes of a binary COPY: signature, flags, extension length.
pub(crate) const BINARY_HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// The last bytes of a binary COPY.
pub(crate) const BINARY_TRAILER: &[u8] = b"\xff\xff";

/// Writes rows in the format of a COPY.
pub(crate) struct CopyEncoder {
    options: CopyOptions,
    columns: usize,
    /// A value's text before it is escaped.
    scratch: Vec<u8>,
}

impl CopyEncoder {
    pub(crate) fn new(options: CopyOptions) -> Self {
        Self {
            options,
            columns: 0,
            scratch: Vec::new(),
        }
    }

    pub(crate) fn is_binary(&self) -> bool {
        self.options.format == CopyFormat::Binary
    }

    /// The header line, if there is to be one.
    pub(crate) fn header(&mut self, names: &[String]) -> Option<Vec<u8>> {
        if self.is_binary() || !self.options.header {
            return None;
        }
        let mut line = Vec::new();
        self.columns = names.len();
        // FORCE_QUOTE is about values.
        let forced = std::mem::replace(&mut self.options.force_quote, ColumnChoice::None);
        for (column, name) in names.iter().enumerate() {
            self.text(column, name, &mut line);
        }
        self.options.force_quote = forced;
        line.push(b'\n');
        Some(line)
    }

    /// What comes after `rows` rows.
    pub(crate) fn trailer(options: &CopyOptions, rows: u64) -> Option<Vec<u8>> {
        if options.format != CopyFormat::Binary {
            return None;
        }
        let mut trailer = Vec::new();
        if rows == 0 {
            trailer.extend_from_slice(BINARY_HEADER);
        }
        trailer.extend_from_slice(BINARY_TRAILER);
        Some(trailer)
    }

    /// Begins a row; the first one of a binary COPY brings the signature, as
    /// clients that read message by message expect it.
    pub(crate) fn begin_row(&mut self, columns: usize, first: bool, out: &mut Vec<u8>) {
        self.columns = columns;
        if self.is_binary() {
            if first {
                out.extend_from_slice(BINARY_HEADER);
            }
            out.extend_from_slice(&(columns as i16).to_be_bytes());
        }
    }

    pub(crate) fn end_row(&mut self, out: &mut Vec<u8>) {
        if !self.is_binary() {
            out.push(b'\n');
        }
    }

    pub(crate) fn null(&mut self, column: usize, out: &mut Vec<u8>) {
        if self.is_binary() {
            out.extend_from_slice(&(-1i32).to_be_bytes());
        } else {
            self.delimiter(column, out);
            out.extend_from_slice(self.options.null.as_bytes());
        }
    }

    pub(crate) fn value(
        &mut self,
        column: usize,
        value: ValueRef<'_>,
        data_type: &DataType,
        styles: Option<&Styles>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if self.is_binary() {
            let start = out.len();
            out.extend_from_slice(&[0; 4]);
            binary_format::write_binary(value, data_type, out);
            let length = (out.len() - start - 4) as i32;
            out[start..start + 4].copy_from_slice(&length.to_be_bytes());
            return Ok(());
        }
        self.delimiter(column, out);
        // Numbers, dates and the like have nothing to escape behind a tab.
        let plain = self.options.format == CopyFormat::Text
            && self.options.delimiter == b'\t'
            && !data_type.is_text()
            && *data_type != DataType::Bytea
            && data_type.other().is_none();
        let styles = styles.unwrap_or_else(|| Styles::plain());
        if plain {
            return styles.write(value, data_type, out);
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        let written = styles.write(value, data_type, &mut scratch);
        self.escaped(column, &scratch, out);
        self.scratch = scratch;
        written
    }

    pub(crate) fn text(&mut self, column: usize, text: &str, out: &mut Vec<u8>) {
        self.raw(column, text.as_bytes(), out);
    }

    pub(crate) fn raw(&mut self, column: usize, bytes: &[u8], out: &mut Vec<u8>) {
        if self.is_binary() {
            out.extend_from_slice(&(bytes.len() as i32).to_be_bytes());
            out.extend_from_slice(bytes);
        } else {
            self.delimiter(column, out);
            self.escaped(column, bytes, out);
        }
    }

    fn delimiter(&self, column: usize, out: &mut Vec<u8>) {
        if column > 0 {
            out.push(self.options.delimiter);
        }
    }

    fn escaped(&self, column: usize, bytes: &[u8], out: &mut Vec<u8>) {
        match self.options.format {
            CopyFormat::Csv => self.quoted(column, bytes, out),
            _ => escape_text(bytes, self.options.delimiter, out),
        }
    }

    fn quoted(&self, column: usize, bytes: &[u8], out: &mut Vec<u8>) {
        let options = &self.options;
        let special = |byte: &u8| {
            *byte == options.delimiter || *byte == options.quote || matches!(byte, b'\n' | b'\r')
        };
        let quote = options.force_quote.contains(column)
            || bytes == options.null.as_bytes()
            || (self.columns == 1 && bytes == b"\\.")
            || bytes.iter().any(special);
        if !quote {
            out.extend_from_slice(bytes);
            return;
        }
        out.push(options.quote);
        for &byte in bytes {
            if byte == options.quote || byte == options.escape {
                out.push(options.escape);
            }
            out.push(byte);
        }
        out.push(options.quote);
    }
}

/// The text format's escapes.
fn escape_text(bytes: &[u8], delimiter: u8, out: &mut Vec<u8>) {
    for &byte in bytes {
        let letter = match byte {
            b'\\' => b'\\',
            0x08 => b'b',
            0x0c => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x0b => b'v',
            _ if byte == delimiter => byte,
            _ => {
                out.push(byte);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', letter]);
    }
}
