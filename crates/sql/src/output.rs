//! Where rows go. A statement writes each value of a result once, into the
//! form its receiver wants: PostgreSQL's DataRow messages, the lines of a
//! COPY, or values for the embedded library. [`RowWriter`] is one concrete
//! type, so that no row pays for a virtual call, and it can be rewound, since
//! the engine may run a statement's body more than once. What a session has it write is
//! charged to the session's account while it grows, and is refused in time.

use std::sync::Arc;

use bytes::BytesMut;
use thermocline_values::types::DataType;
use thermocline_values::value::{Value, ValueRef};
use thermocline_values::{binary_format, text_format};

use thermocline_engine::Charge;
use thermocline_engine::spill::Spill;

use crate::copy::CopyEncoder;
use crate::error::{Result, SqlError};
use crate::styles::Styles;

mod column;
mod formats;
mod kept_row;
mod other;
mod pieces;

pub(crate) use kept_row::{kept_row, write_kept_row};
pub(crate) use pieces::{PIECE_BYTES, Pieces};

pub use column::{ColumnType, OutputColumn};
pub use formats::Formats;
pub use other::OtherType;

/// A place in a writer's output to go back to.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    pieces: usize,
    bytes: usize,
    rows: u64,
}

enum Sink {
    /// DataRow messages.
    Wire(Formats),
    /// CopyData messages, one a row, as clients expect them.
    Copy(CopyEncoder),
    /// Values, for the embedded library and for further use.
    Values {
        rows: Vec<Vec<Value>>,
        row: Vec<Value>,
        /// What all of them take.
        bytes: usize,
    },
    /// Values as bytes (`kept_row.rs`), for portals.
    Kept,
}

/// Takes the rows of a result, value by value.
pub struct RowWriter {
    sink: Sink,
    buffer: Vec<u8>,
    row_start: usize,
    column: usize,
    rows: u64,
    /// Whole rows that came before those in the buffer.
    pieces: Pieces,
    /// The buffer becomes a piece when it is so long.
    piece_bytes: usize,
    /// Bytes that the statement holds beside its rows, up to which nothing is charged.
    work_bytes: usize,
    /// Where they are not the plain ones.
    styles: Option<Arc<Styles>>,
    refused: Option<SqlError>,
    /// Only so many values of a row are for the client.
    shown: Option<usize>,
    /// What the last row had behind them.
    hidden: Option<Vec<i64>>,
}

/// What a statement may hold beside its rows without a charge, and the steps beyond it.
const WORK_BYTES: usize = 64 << 10;

/// A row that has more is charged while it grows, in bytes.
const LARGE_ROW_BYTES: usize = 1 << 20;
/// The longest row there is, in bytes, as in PostgreSQL; a message can be twice as long.
const ROW_BYTES_MAX: usize = 0x3fff_ffff;

/// The bytes of a DataRow before its first value: tag, length, column count.
const ROW_HEADER_BYTES: usize = 7;

impl RowWriter {
    /// Writes DataRow messages behind what is in `buffer`.
    #[must_use]
    pub fn wire(buffer: Vec<u8>, formats: Formats) -> Self {
        Self::new(Sink::Wire(formats), buffer)
    }

    /// Writes the rows of a COPY TO.
    #[must_use]
    pub(crate) fn copy(buffer: Vec<u8>, encoder: CopyEncoder) -> Self {
        Self::new(Sink::Copy(encoder), buffer)
    }

    /// Keeps values.
    #[must_use]
    pub fn values() -> Self {
        let sink = Sink::Values {
            rows: Vec::new(),
            row: Vec::new(),
            bytes: 0,
        };
        Self::new(sink, Vec::new())
    }

    /// Keeps values as bytes, for [`write_kept_row`].
    #[must_use]
    pub(crate) fn kept() -> Self {
        let mut writer = Self::new(Sink::Kept, Vec::new());
        writer.piece_bytes = PIECE_BYTES;
        writer
    }

    /// The same, with what it holds charged; see [`Self::check`].
    #[must_use]
    pub(crate) fn charged(mut self, charge: Charge) -> Self {
        self.pieces = Pieces::charged(charge);
        self.piece_bytes = PIECE_BYTES;
        self
    }

    /// The same, whose texts are of these styles.
    #[must_use]
    pub(crate) fn styled(mut self, styles: Arc<Styles>) -> Self {
        self.styles = Some(styles).filter(|styles| !styles.is_plain());
        self
    }

    /// The same, which sends only so many values of each row; those behind them are numbers, see
    /// [`Self::take_hidden`].
    #[must_use]
    pub(crate) fn hiding(mut self, shown: Option<usize>) -> Self {
        self.shown = shown;
        self
    }

    /// The numbers that the last row had and its client does not get.
    pub(crate) fn take_hidden(&mut self) -> Option<Vec<i64>> {
        self.hidden.take()
    }

    fn new(sink: Sink, buffer: Vec<u8>) -> Self {
        Self {
            sink,
            row_start: buffer.len(),
            buffer,
            column: 0,
            rows: 0,
            pieces: Pieces::default(),
            piece_bytes: usize::MAX,
            work_bytes: WORK_BYTES,
            styles: None,
            refused: None,
            shown: None,
            hidden: None,
        }
    }

    /// Begins a row of `columns` values.
    #[inline]
    pub fn begin_row(&mut self, columns: usize) {
        self.row_start = self.buffer.len();
        self.column = 0;
        match &mut self.sink {
            Sink::Wire(_) => {
                let count = (columns as u16).to_be_bytes();
                self.buffer
                    .extend_from_slice(&[b'D', 0, 0, 0, 0, count[0], count[1]]);
            }
            Sink::Copy(encoder) => {
                self.buffer.extend_from_slice(&[b'd', 0, 0, 0, 0]);
                encoder.begin_row(columns, self.rows == 0, &mut self.buffer);
            }
            Sink::Values { row, .. } => row.reserve_exact(columns),
            Sink::Kept => self.buffer.push(kept_row::ROW),
        }
    }

    /// The next value of the row. NULL may come this way too.
    #[inline]
    pub fn value(&mut self, value: ValueRef<'_>, data_type: &DataType) {
        if matches!(value, ValueRef::Null) {
            return self.null();
        }
        let bytes = match value {
            ValueRef::Text(text) => text.len(),
            // As text, two digits each.
            ValueRef::Bytea(bytes) => bytes.len() * 2,
            // As text, about as much again.
            ValueRef::Other(_, bytes) => bytes.len() * 2,
            _ => 0,
        };
        if !self.has_room(bytes) {
            return self.null();
        }
        match &mut self.sink {
            Sink::Wire(formats) => {
                let start = self.buffer.len();
                self.buffer.extend_from_slice(&[0; 4]);
                if formats.is_binary(self.column) {
                    binary_format::write_binary(value, data_type, &mut self.buffer);
                } else if let Some(styles) = &self.styles {
                    if let Err(error) = styles.write(value, data_type, &mut self.buffer) {
                        self.refused.get_or_insert(error);
                    }
                } else {
                    text_format::write_text(value, data_type, &mut self.buffer);
                }
                close_length(&mut self.buffer, start);
            }
            Sink::Copy(encoder) => {
                let styles = self.styles.as_deref();
                let buffer = &mut self.buffer;
                if let Err(error) = encoder.value(self.column, value, data_type, styles, buffer) {
                    self.refused.get_or_insert(error);
                }
            }
            Sink::Values { row, bytes, .. } => {
                *bytes += match value {
                    ValueRef::Text(text) => text.len(),
                    ValueRef::Bytea(value) | ValueRef::Other(_, value) => value.len(),
                    _ => 0,
                };
                row.push(value.to_owned());
            }
            Sink::Kept => kept_row::write(value, &mut self.buffer),
        }
        self.column += 1;
    }

    /// The next value of the row, of a type of catalog queries, as text; it is
    /// re-encoded if the client wants binary.
    ///
    /// # Errors
    /// When the type has no binary form or the text is not of the type.
    pub fn other(&mut self, text: &str, other_type: OtherType) -> Result<()> {
        if !self.is_binary() {
            self.text(text);
            return Ok(());
        }
        let start = self.buffer.len();
        self.buffer.extend_from_slice(&[0; 4]);
        let styles = self.styles.as_deref().unwrap_or_else(|| Styles::plain());
        other_type.write_binary(text, styles, &mut self.buffer)?;
        close_length(&mut self.buffer, start);
        self.column += 1;
        Ok(())
    }

    /// The next value of the row, text that needs no re-encoding.
    pub fn text(&mut self, text: &str) {
        if !self.has_room(text.len()) {
            return self.null();
        }
        match &mut self.sink {
            Sink::Wire(_) => return self.raw(text.as_bytes()),
            Sink::Copy(encoder) => encoder.text(self.column, text, &mut self.buffer),
            Sink::Values { row, bytes, .. } => {
                *bytes += text.len();
                row.push(Value::Text(text.to_owned()));
            }
            Sink::Kept => kept_row::write(ValueRef::Text(text), &mut self.buffer),
        }
        self.column += 1;
    }

    /// The next value of the row, bytes in the format the client asked for
    /// (see [`Self::is_binary`]).
    pub fn raw(&mut self, bytes: &[u8]) {
        match &mut self.sink {
            Sink::Wire(_) => {
                let length = bytes.len() as i32;
                self.buffer.extend_from_slice(&length.to_be_bytes());
                self.buffer.extend_from_slice(bytes);
            }
            Sink::Copy(encoder) => encoder.raw(self.column, bytes, &mut self.buffer),
            Sink::Values { row, .. } => row.push(Value::Bytea(bytes.to_vec())),
            Sink::Kept => kept_row::write(ValueRef::Bytea(bytes), &mut self.buffer),
        }
        self.column += 1;
    }

    /// Whether the row may have so many bytes more. If not the row is refused: see
    /// [`Self::check`].
    #[inline]
    pub(crate) fn has_room(&mut self, bytes: usize) -> bool {
        let row = self.buffer.len() - self.row_start;
        row + bytes <= LARGE_ROW_BYTES || self.make_room(row + bytes)
    }

    #[cold]
    fn make_room(&mut self, row: usize) -> bool {
        let room = if row > ROW_BYTES_MAX {
            let message =
                format!("a row of the result exceeds the maximum of {ROW_BYTES_MAX} bytes");
            Err(SqlError::new("54000", message))
        } else {
            // A buffer that grows is there twice.
            let beside = self.row_start + 2 * row;
            self.pieces.charge_beside(beside.max(self.work_bytes))
        };
        match room {
            Ok(()) => true,
            Err(error) => {
                self.refused.get_or_insert(error);
                false
            }
        }
    }

    /// NULL as the next value of the row.
    #[inline]
    pub fn null(&mut self) {
        match &mut self.sink {
            Sink::Wire(_) => self.buffer.extend_from_slice(&(-1i32).to_be_bytes()),
            Sink::Copy(encoder) => encoder.null(self.column, &mut self.buffer),
            Sink::Values { row, .. } => row.push(Value::Null),
            Sink::Kept => kept_row::write(ValueRef::Null, &mut self.buffer),
        }
        self.column += 1;
    }

    /// Ends the row.
    #[inline]
    pub fn end_row(&mut self) {
        match &mut self.sink {
            Sink::Wire(_) => {
                if let Some(shown) = self.shown {
                    self.hide(shown);
                }
                let start = self.row_start;
                let length = (self.buffer.len() - start - 1) as u32;
                let count = (self.column as u16).to_be_bytes();
                debug_assert_eq!(count, [self.buffer[start + 5], self.buffer[start + 6]]);
                debug_assert!(length as usize >= ROW_HEADER_BYTES - 1);
                self.buffer[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
            }
            Sink::Copy(encoder) => {
                encoder.end_row(&mut self.buffer);
                let start = self.row_start;
                let length = (self.buffer.len() - start - 1) as u32;
                self.buffer[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
            }
            Sink::Values { rows, row, bytes } => {
                *bytes += size_of_val(row.as_slice());
                rows.push(std::mem::take(row));
                let held = *bytes;
                if let Err(error) = self.holds_beside(held) {
                    self.refused.get_or_insert(error);
                }
            }
            Sink::Kept => {}
        }
        self.rows += 1;
        if self.buffer.len() >= self.piece_bytes {
            self.close_piece();
        }
    }

    /// Takes the values behind the first `shown` out of the row.
    fn hide(&mut self, shown: usize) {
        let row = &self.buffer[self.row_start + ROW_HEADER_BYTES..];
        let mut from = row;
        let mut value = || {
            let (length, rest) = from.split_first_chunk()?;
            let length = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0);
            let (value, rest) = rest.split_at_checked(length)?;
            from = rest;
            Some((value, row.len() - rest.len()))
        };
        let mut end = 0;
        for _ in 0..shown {
            end = value().map_or(end, |(_, behind)| behind);
        }
        let mut hidden = Vec::with_capacity(self.column.saturating_sub(shown));
        while let Some((value, _)) = value() {
            let binary = || value.try_into().ok().map(i64::from_be_bytes);
            let text = || std::str::from_utf8(value).ok()?.parse().ok();
            let number = match matches!(&self.sink, Sink::Wire(formats) if formats.is_binary(shown))
            {
                true => binary(),
                false => text(),
            };
            hidden.extend(number);
        }
        self.buffer
            .truncate(self.row_start + ROW_HEADER_BYTES + end);
        let count = (shown as u16).to_be_bytes();
        self.buffer[self.row_start + 5..self.row_start + 7].copy_from_slice(&count);
        self.column = shown;
        self.hidden = Some(hidden);
    }

    #[cold]
    fn close_piece(&mut self) {
        // The next one has room for as much.
        let next = Vec::with_capacity(PIECE_BYTES + PIECE_BYTES / 8);
        let piece = std::mem::replace(&mut self.buffer, next);
        self.row_start = 0;
        if let Err(error) = self.pieces.push(piece) {
            self.refused.get_or_insert(error);
        }
    }

    /// Says how much the statement holds beside its rows, for sorting and grouping.
    ///
    /// # Errors
    /// 53200 where the account has no room for it.
    #[inline]
    pub(crate) fn holds_beside(&mut self, bytes: usize) -> Result<()> {
        if bytes <= self.work_bytes || !self.pieces.is_charged() {
            return Ok(());
        }
        self.work_bytes = bytes + bytes / 4 + WORK_BYTES;
        self.pieces.charge_beside(self.work_bytes)
    }

    /// Whether what was written so far has been charged.
    ///
    /// # Errors
    /// 53200 where the account had no room for it.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        match &self.refused {
            None => Ok(()),
            Some(error) => Err(error.clone()),
        }
    }

    /// Whether the next value is wanted in binary.
    #[must_use]
    pub fn is_binary(&self) -> bool {
        match &self.sink {
            Sink::Wire(formats) => formats.is_binary(self.column),
            Sink::Copy(encoder) => encoder.is_binary(),
            Sink::Values { .. } | Sink::Kept => false,
        }
    }

    /// Whether values are kept as values, for the embedded library.
    pub(crate) fn keeps_values(&self) -> bool {
        matches!(self.sink, Sink::Values { .. })
    }

    /// The rows written so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// This place, to come back to.
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark {
            pieces: self.pieces.count(),
            bytes: self.buffer.len(),
            rows: self.rows,
        }
    }

    /// Forgets what was written since `mark`.
    pub fn rewind(&mut self, mark: Mark) {
        if let Some(piece) = self.pieces.truncate(mark.pieces) {
            self.buffer = piece;
        }
        self.buffer.truncate(mark.bytes);
        if let Sink::Values { rows, row, .. } = &mut self.sink {
            let forgotten = (self.rows - mark.rows) as usize;
            rows.truncate(rows.len().saturating_sub(forgotten));
            row.clear();
        }
        self.refused = None;
        self.work_bytes = WORK_BYTES;
        self.rows = mark.rows;
        self.column = 0;
    }

    /// The bytes waiting to be sent.
    #[must_use]
    pub fn bytes_buffered(&self) -> usize {
        match &self.sink {
            Sink::Values { bytes, .. } => *bytes,
            _ => self.buffer.len() + self.pieces.memory_bytes(),
        }
    }

    /// The bytes written so far, of a writer that charges nobody; DataRow messages or COPY
    /// lines.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// The first rows that were not taken yet, as bytes that end with a row. Marks taken
    /// before are void.
    ///
    /// # Errors
    /// Those of a temporary file that they lay in.
    pub(crate) fn next_piece(&mut self) -> Result<Option<Vec<u8>>> {
        match self.pieces.is_empty() {
            true => Ok(None),
            false => self.pieces.pop(),
        }
    }

    /// The rows behind all pieces.
    pub(crate) fn take_bytes(&mut self) -> Vec<u8> {
        self.row_start = 0;
        std::mem::take(&mut self.buffer)
    }

    /// Gives a buffer back that was taken; what is in it is forgotten.
    pub(crate) fn reuse(&mut self, mut buffer: Vec<u8>) {
        if self.buffer.is_empty() {
            buffer.clear();
            self.buffer = buffer;
        }
    }

    /// Moves all that was written to `out`.
    ///
    /// # Errors
    /// As [`Self::next_piece`].
    pub(crate) fn move_to(&mut self, out: &mut BytesMut) -> Result<()> {
        while let Some(piece) = self.next_piece()? {
            out.extend_from_slice(&piece);
        }
        out.extend_from_slice(&self.buffer);
        self.clear_bytes();
        Ok(())
    }

    /// Whether so many rows wait that they should not do so in memory.
    pub(crate) fn waits_large(&self) -> bool {
        self.pieces.is_large()
    }

    /// Moves whole pieces into a temporary file.
    ///
    /// # Errors
    /// Those of [`Pieces::spill`]; what was not moved is still in memory.
    pub(crate) fn spill(&mut self, spill: &Arc<Spill>) -> Result<()> {
        self.pieces.spill(spill)
    }

    /// All that was written and not taken, the last piece apart.
    pub(crate) fn into_pieces(self) -> (Pieces, Vec<u8>) {
        (self.pieces, self.buffer)
    }

    /// Empties the buffer after its bytes were sent; no row may be open.
    /// Marks taken before are void.
    pub fn clear_bytes(&mut self) {
        self.buffer.clear();
        self.row_start = 0;
    }

    /// The kept values, emptying the writer; nothing for the other kinds.
    pub fn take_values(&mut self) -> Vec<Vec<Value>> {
        match &mut self.sink {
            Sink::Values { rows, bytes, .. } => {
                *bytes = 0;
                std::mem::take(rows)
            }
            _ => Vec::new(),
        }
    }

    /// The buffer, for further use.
    #[must_use]
    pub fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }
}

/// Fills in the length before a value that begins at `start + 4`.
#[inline]
fn close_length(buffer: &mut [u8], start: usize) {
    let length = (buffer.len() - start - 4) as i32;
    buffer[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_in_text_and_binary() {
        let mut rows = RowWriter::wire(Vec::new(), Formats::Each([false, true, true].into()));
        rows.begin_row(3);
        rows.value(ValueRef::Integer(-5), &DataType::Integer);
        rows.value(ValueRef::Integer(5), &DataType::Integer);
        rows.null();
        rows.end_row();
        assert_eq!(
            rows.bytes(),
            b"D\0\0\0\x18\0\x03\0\0\0\x02-5\0\0\0\x04\0\0\0\x05\xff\xff\xff\xff"
        );
        assert_eq!(rows.rows(), 1);
    }

    #[test]
    fn rewinding_forgets_rows_and_bytes() {
        let mut rows = RowWriter::wire(Vec::new(), Formats::Text);
        let mark = rows.mark();
        rows.begin_row(1);
        rows.value(ValueRef::Integer(1), &DataType::Integer);
        rows.end_row();
        rows.begin_row(1);
        rows.rewind(mark);
        assert_eq!((rows.rows(), rows.bytes_buffered()), (0, 0));

        let mut rows = RowWriter::values();
        let mark = rows.mark();
        for number in 0..3 {
            rows.begin_row(1);
            rows.value(ValueRef::Integer(number), &DataType::Integer);
            rows.end_row();
        }
        rows.rewind(mark);
        rows.begin_row(1);
        rows.null();
        rows.end_row();
        assert_eq!(rows.take_values(), [[Value::Null]]);
    }

    #[test]
    fn format_codes_are_none_one_or_each() {
        assert_eq!(Formats::from_codes(&[], 3), Ok(Formats::Text));
        assert_eq!(Formats::from_codes(&[1], 3), Ok(Formats::Binary));
        assert_eq!(
            Formats::from_codes(&[1, 0], 2),
            Ok(Formats::Each([true, false].into()))
        );
        assert_eq!(
            Formats::from_codes(&[1, 0], 3).unwrap_err().sqlstate,
            "08P01"
        );
        assert_eq!(Formats::from_codes(&[2], 1).unwrap_err().sqlstate, "22023");
    }
}
