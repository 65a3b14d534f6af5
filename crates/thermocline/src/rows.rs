//! What a statement returned. The session writes PostgreSQL's messages, here
//! they are read back: rows in binary, so that no number is printed and parsed
//! on the way; text for the types that only the system catalogs have.

use bytes::Buf;
use thermocline_sql::SqlError;
use thermocline_values::binary_format::parse_binary;
use thermocline_values::types::DataType;
use thermocline_values::value::Value;

/// A column of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type; none for a type that only the system catalogs have, whose
    /// values are given as text.
    pub data_type: Option<DataType>,
}

/// What a statement returned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    columns: Vec<Column>,
    values: Vec<Value>,
    tag: String,
}

impl Rows {
    pub(crate) fn new(columns: Vec<Column>) -> Self {
        Self {
            columns,
            ..Self::default()
        }
    }

    /// The columns; none if the statement returns no rows.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values
            .len()
            .checked_div(self.columns.len())
            .unwrap_or(0)
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows in order.
    pub fn iter(&self) -> impl Iterator<Item = &[Value]> {
        self.values.chunks_exact(self.columns.len().max(1))
    }

    /// The value of a row (from 0) in the column of this name.
    #[must_use]
    pub fn get(&self, row: usize, column: &str) -> Option<&Value> {
        let column = self.columns.iter().position(|other| other.name == column)?;
        self.iter().nth(row)?.get(column)
    }

    /// The statement's tag, e.g. `INSERT 0 1`.
    #[must_use]
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// How many rows the statement returned or changed.
    #[must_use]
    pub fn affected(&self) -> u64 {
        self.tag
            .rsplit(' ')
            .next()
            .and_then(|count| count.parse().ok())
            .unwrap_or(0)
    }

    /// Takes in the messages of one executed statement.
    pub(crate) fn take(&mut self, mut messages: &[u8]) -> Result<(), SqlError> {
        while !messages.is_empty() {
            let (tag, mut body) = message(&mut messages)?;
            match tag {
                b'D' => self.row(&mut body)?,
                b'C' => string(&mut body)?.clone_into(&mut self.tag),
                // Notices, and the answers to messages without content.
                _ => {}
            }
        }
        Ok(())
    }

    fn row(&mut self, body: &mut &[u8]) -> Result<(), SqlError> {
        let count = usize::from(body.try_get_u16().map_err(|_| unreadable())?);
        if count != self.columns.len() {
            return Err(unreadable());
        }
        for column in &self.columns {
            let length = body.try_get_i32().map_err(|_| unreadable())?;
            let Ok(length) = usize::try_from(length) else {
                self.values.push(Value::Null);
                continue;
            };
            let (bytes, rest) = body.split_at_checked(length).ok_or_else(unreadable)?;
            *body = rest;
            self.values.push(match &column.data_type {
                Some(data_type) => parse_binary(data_type, bytes)?,
                None => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
            });
        }
        Ok(())
    }
}

/// Parameter types and columns, from the messages of a description.
pub(crate) fn description(
    mut messages: &[u8],
) -> Result<(Vec<Option<DataType>>, Vec<Column>), SqlError> {
    let (mut parameters, mut columns) = (Vec::new(), Vec::new());
    while !messages.is_empty() {
        let (tag, mut body) = message(&mut messages)?;
        let counted = matches!(tag, b't' | b'T');
        let count = if counted {
            body.try_get_u16().map_err(|_| unreadable())?
        } else {
            0
        };
        for _ in 0..count {
            if tag == b't' {
                let oid = body.try_get_u32().map_err(|_| unreadable())?;
                parameters.push(plain(oid, -1));
            } else {
                columns.push(column(&mut body)?);
            }
        }
    }
    Ok((parameters, columns))
}

/// A type that has a [`Value`] of its own; values of others are texts.
fn plain(oid: u32, modifier: i32) -> Option<DataType> {
    DataType::from_oid(oid, modifier).filter(|data_type| data_type.other().is_none())
}

fn column(body: &mut &[u8]) -> Result<Column, SqlError> {
    let name = string(body)?.to_owned();
    // table oid 4, column 2, type oid 4, size 2, modifier 4, format 2
    let (fields, rest) = body.split_at_checked(18).ok_or_else(unreadable)?;
    *body = rest;
    let oid = (&fields[6..10]).get_u32();
    let modifier = (&fields[12..16]).get_i32();
    Ok(Column {
        name,
        data_type: plain(oid, modifier),
    })
}

fn message<'a>(messages: &mut &'a [u8]) -> Result<(u8, &'a [u8]), SqlError> {
    let tag = messages.try_get_u8().map_err(|_| unreadable())?;
    let length = messages.try_get_u32().map_err(|_| unreadable())? as usize;
    let body_bytes = length.checked_sub(4).ok_or_else(unreadable)?;
    let (body, rest) = messages
        .split_at_checked(body_bytes)
        .ok_or_else(unreadable)?;
    *messages = rest;
    Ok((tag, body))
}

fn string<'a>(body: &mut &'a [u8]) -> Result<&'a str, SqlError> {
    let end = body
        .iter()
        .position(|byte| *byte == 0)
        .ok_or_else(unreadable)?;
    let text = std::str::from_utf8(&body[..end]).map_err(|_| unreadable())?;
    *body = &body[end + 1..];
    Ok(text)
}

#[cold]
fn unreadable() -> SqlError {
    SqlError::internal("the session wrote a message that cannot be read")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::{BufMut, BytesMut};
    use thermocline_sql::messages;

    #[test]
    fn rows_are_read_back_as_values() {
        let columns = vec![
            Column {
                name: "id".into(),
                data_type: Some(DataType::Integer),
            },
            Column {
                name: "kind".into(),
                data_type: None,
            },
        ];
        let mut out = BytesMut::new();
        messages::message(&mut out, b'D', |out| {
            out.put_u16(2);
            out.put_i32(4);
            out.put_i32(7);
            out.put_i32(-1);
        });
        messages::command_complete(&mut out, "SELECT 1");
        let mut rows = Rows::new(columns);
        rows.take(&out).unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!(rows.affected(), 1);
        assert_eq!(rows.get(0, "id"), Some(&Value::Integer(7)));
        assert_eq!(rows.get(0, "kind"), Some(&Value::Null));
        assert_eq!(rows.get(1, "id"), None);
        assert_eq!(rows.iter().next().unwrap().len(), 2);
        for cut in 1..out.len() {
            let mut rows = Rows::new(rows.columns.clone());
            // A cut at a message's end is a shorter answer, else an error.
            let whole = cut == 5 + 2 + 8 + 4;
            assert_eq!(rows.take(&out[..cut]).is_ok(), whole, "{cut}");
        }
    }
}
