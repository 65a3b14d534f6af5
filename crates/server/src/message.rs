//! The fields of the messages that clients send. Everything borrows from the
//! message; lists of usual length need no allocation. Nothing is believed: a
//! length that exceeds the message, a string without its end or text that is
//! not UTF-8 is an error of that message. The connection stays usable, because
//! the frame around it was whole.

use std::ffi::CStr;

use thermocline_sql::error::SqlError;

type Result<T> = std::result::Result<T, SqlError>;

/// Reads the fields of one message in order.
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) fn new(body: &'a [u8]) -> Self {
        Self { rest: body }
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        match self.rest.split_at_checked(count) {
            Some((bytes, rest)) => {
                self.rest = rest;
                Ok(bytes)
            }
            None => Err(SqlError::protocol("insufficient data left in message")),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        match self.rest.split_first_chunk() {
            Some((bytes, rest)) => {
                self.rest = rest;
                Ok(*bytes)
            }
            None => Err(SqlError::protocol("insufficient data left in message")),
        }
    }

    pub(crate) fn byte(&mut self) -> Result<u8> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    pub(crate) fn int16(&mut self) -> Result<i16> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    pub(crate) fn count16(&mut self) -> Result<usize> {
        Ok(usize::from(u16::from_be_bytes(self.array()?)))
    }

    pub(crate) fn int32(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    /// A string that ends in a zero byte.
    pub(crate) fn string(&mut self) -> Result<&'a str> {
        let string = CStr::from_bytes_until_nul(self.rest)
            .map_err(|_| SqlError::protocol("invalid string in message"))?
            .to_bytes();
        self.rest = &self.rest[string.len() + 1..];
        std::str::from_utf8(string).map_err(|error| encoding_error(string, error.valid_up_to()))
    }

    /// All fields must have been read.
    pub(crate) fn end(&self) -> Result<()> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(SqlError::protocol("invalid message format"))
        }
    }
}

#[cold]
fn encoding_error(string: &[u8], at: usize) -> SqlError {
    let shown: Vec<String> = string[at..]
        .iter()
        .take(3)
        .map(|byte| format!("0x{byte:02x}"))
        .collect();
    SqlError::new(
        "22021",
        format!(
            "invalid byte sequence for encoding \"UTF8\": {}",
            shown.join(" ")
        ),
    )
}

/// A list that needs no allocation while it has at most `N` members.
pub(crate) struct List<T, const N: usize> {
    inline: [T; N],
    spilled: Vec<T>,
    length: usize,
}

impl<T: Copy + Default, const N: usize> List<T, N> {
    fn read(length: usize, mut next: impl FnMut() -> Result<T>) -> Result<Self> {
        let mut list = Self {
            inline: [T::default(); N],
            spilled: Vec::new(),
            length,
        };
        if length <= N {
            for member in &mut list.inline[..length] {
                *member = next()?;
            }
        } else {
            // No capacity from the count alone: it may be a lie.
            for _ in 0..length {
                list.spilled.push(next()?);
            }
        }
        Ok(list)
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        if self.length <= N {
            &self.inline[..self.length]
        } else {
            &self.spilled
        }
    }
}

/// Parse: a statement's name, its text, and the types of parameters that the
/// client knows (0 where it does not).
pub(crate) struct Parse<'a> {
    pub(crate) name: &'a str,
    pub(crate) sql: &'a str,
    pub(crate) parameter_oids: List<u32, 16>,
}

impl<'a> Parse<'a> {
    pub(crate) fn read(body: &'a [u8]) -> Result<Self> {
        let mut fields = Fields::new(body);
        let name = fields.string()?;
        let sql = fields.string()?;
        let count = fields.count16()?;
        let parameter_oids = List::read(count, || Ok(fields.int32()?.cast_unsigned()))?;
        fields.end()?;
        Ok(Self {
            name,
            sql,
            parameter_oids,
        })
    }
}

/// Bind: a portal made from a statement and its parameters.
pub(crate) struct Bind<'a> {
    pub(crate) portal: &'a str,
    pub(crate) statement: &'a str,
    pub(crate) parameter_formats: List<i16, 16>,
    pub(crate) parameters: List<Option<&'a [u8]>, 16>,
    pub(crate) result_formats: List<i16, 16>,
}

impl<'a> Bind<'a> {
    pub(crate) fn read(body: &'a [u8]) -> Result<Self> {
        let mut fields = Fields::new(body);
        let portal = fields.string()?;
        let statement = fields.string()?;
        let formats = fields.count16()?;
        let parameter_formats = List::read(formats, || fields.int16())?;
        let count = fields.count16()?;
        if formats > 1 && formats != count {
            return Err(SqlError::protocol(format!(
                "bind message has {formats} parameter formats but {count} parameters"
            )));
        }
        let parameters = List::read(count, || match fields.int32()? {
            -1 => Ok(None),
            length => {
                let length = usize::try_from(length)
                    .map_err(|_| SqlError::protocol("invalid length of a parameter"))?;
                fields.bytes(length).map(Some)
            }
        })?;
        let results = fields.count16()?;
        let result_formats = List::read(results, || fields.int16())?;
        fields.end()?;
        Ok(Self {
            portal,
            statement,
            parameter_formats,
            parameters,
            result_formats,
        })
    }
}

/// Describe and Close: a statement or a portal, by name.
pub(crate) enum Target<'a> {
    Statement(&'a str),
    Portal(&'a str),
}

impl<'a> Target<'a> {
    /// `what` is the message's name, for the error.
    pub(crate) fn read(body: &'a [u8], what: &str) -> Result<Self> {
        let mut fields = Fields::new(body);
        let kind = fields.byte()?;
        let name = fields.string()?;
        fields.end()?;
        match kind {
            b'S' => Ok(Self::Statement(name)),
            b'P' => Ok(Self::Portal(name)),
            other => Err(SqlError::protocol(format!(
                "invalid {what} message subtype {other}"
            ))),
        }
    }
}

/// Execute: a portal and how many rows to return at most (0: all).
pub(crate) struct Execute<'a> {
    pub(crate) portal: &'a str,
    pub(crate) max_rows: u32,
}

impl<'a> Execute<'a> {
    pub(crate) fn read(body: &'a [u8]) -> Result<Self> {
        let mut fields = Fields::new(body);
        let portal = fields.string()?;
        // PostgreSQL takes a negative count for "all".
        let max_rows = u32::try_from(fields.int32()?).unwrap_or(0);
        fields.end()?;
        Ok(Self { portal, max_rows })
    }
}

/// Query and CopyFail: one string.
pub(crate) fn only_string(body: &[u8]) -> Result<&str> {
    let mut fields = Fields::new(body);
    let string = fields.string()?;
    fields.end()?;
    Ok(string)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bind(parameters: usize) -> Vec<u8> {
        let mut body = b"portal\0statement\0\0\x01\0\x01".to_vec();
        body.extend((parameters as u16).to_be_bytes());
        for index in 0..parameters {
            if index == 1 {
                body.extend((-1i32).to_be_bytes());
            } else {
                body.extend(2i32.to_be_bytes());
                body.extend((index as u16).to_be_bytes());
            }
        }
        body.extend(b"\0\0");
        body
    }

    #[test]
    fn bind_is_read_with_few_and_with_many_parameters() {
        for count in [0, 2, 16, 17, 300] {
            let body = bind(count);
            let bind = Bind::read(&body).unwrap();
            assert_eq!((bind.portal, bind.statement), ("portal", "statement"));
            assert_eq!(bind.parameter_formats.as_slice(), [1]);
            assert_eq!(bind.parameters.as_slice().len(), count);
            for (index, parameter) in bind.parameters.as_slice().iter().enumerate() {
                let bytes = (index as u16).to_be_bytes();
                let expected = (index != 1).then_some(&bytes[..]);
                assert_eq!(*parameter, expected);
            }
            assert!(bind.result_formats.as_slice().is_empty());
        }
    }

    #[test]
    fn every_shortened_message_is_an_error_and_no_panic() {
        let body = bind(20);
        for length in 0..body.len() {
            assert!(Bind::read(&body[..length]).is_err(), "{length} bytes");
        }
        let parse = b"s1\0select $1\0\0\x01\0\0\0\x17";
        assert_eq!(Parse::read(parse).unwrap().parameter_oids.as_slice(), [23]);
        for length in 0..parse.len() {
            assert!(Parse::read(&parse[..length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn a_longer_message_is_an_error() {
        assert_eq!(only_string(b"select 1\0x").unwrap_err().sqlstate, "08P01");
        assert_eq!(only_string(b"select 1").unwrap_err().sqlstate, "08P01");
        assert_eq!(only_string(b"select 1\0").unwrap(), "select 1");
    }

    #[test]
    fn text_that_is_not_utf8_is_named() {
        let error = only_string(b"select '\xff\xfe'\0").unwrap_err();
        assert_eq!(error.sqlstate, "22021");
        assert!(error.message.ends_with("0xff 0xfe 0x27"), "{error}");
    }

    #[test]
    fn a_negative_parameter_length_is_an_error() {
        let mut body = b"\0\0\0\0\0\x01".to_vec();
        body.extend((-2i32).to_be_bytes());
        body.extend(b"\0\0");
        assert_eq!(Bind::read(&body).err().unwrap().sqlstate, "08P01");
    }
}
