//! Bind, perhaps Describe, Execute and Sync, all there at once: what drivers send for a prepared
//! statement. Such a batch is handed out and answered as one, without a portal that is kept and
//! looked up between its messages. Anything else (other messages between, named portals, a part
//! of the rows) goes message by message, and means the same.

use bytes::BytesMut;
use thermocline_sql::error::SqlError;

use crate::config::KEPT_BUFFER_BYTES;
use crate::message::Bind;

/// Bytes before a message's body: its tag and its length.
const HEAD_BYTES: usize = 5;
/// Describe of the unnamed portal.
const DESCRIBE: &[u8] = b"D\0\0\0\x06P\0";
/// Execute of the unnamed portal for all rows, and Sync.
const EXECUTE_AND_SYNC: &[u8] = b"E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04";

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Batch {
    bytes: BytesMut,
    /// The length of the Bind message.
    bind_bytes: usize,
    /// Whether there is a Describe.
    pub(crate) describes: bool,
}

impl Batch {
    /// Takes the batch that `buffer` begins with, if it does.
    pub(crate) fn take(buffer: &mut BytesMut, max_message_bytes: usize) -> Option<Self> {
        let [b'B', a, b, c, d, 0, ..] = buffer[..] else {
            return None;
        };
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if length > max_message_bytes.min(KEPT_BUFFER_BYTES) {
            return None;
        }
        let bind_bytes = 1 + length;
        let rest = buffer.get(bind_bytes.max(HEAD_BYTES)..)?;
        let described = rest.strip_prefix(DESCRIBE);
        let rest = described.unwrap_or(rest).strip_prefix(EXECUTE_AND_SYNC)?;
        let describes = described.is_some();
        let bytes = match rest.len() {
            0 => std::mem::take(buffer),
            left => buffer.split_to(buffer.len() - left),
        };
        Some(Self {
            bytes,
            bind_bytes,
            describes,
        })
    }

    /// How many messages it is.
    pub(crate) fn messages(&self) -> u64 {
        3 + u64::from(self.describes)
    }

    /// The fields of its Bind.
    ///
    /// # Errors
    /// 08P01, 22021.
    pub(crate) fn bind(&self) -> Result<Bind<'_>, SqlError> {
        Bind::read(&self.bytes[HEAD_BYTES..self.bind_bytes.max(HEAD_BYTES)])
    }

    /// All its messages.
    pub(crate) fn into_bytes(self) -> BytesMut {
        self.bytes
    }

    /// The memory that it lay in, without it.
    pub(crate) fn into_buffer(mut self) -> BytesMut {
        self.bytes.clear();
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use bytes::BufMut;

    use super::*;

    fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        let mut message = BytesMut::new();
        message.put_u8(tag);
        message.put_u32(4 + body.len() as u32);
        message.put_slice(body);
        message.to_vec()
    }

    /// A Bind of `portal` and the statement `s`, with one parameter `7`.
    fn bind(portal: &str) -> Vec<u8> {
        let mut body = portal.as_bytes().to_vec();
        body.extend_from_slice(b"\0s\0\0\0\0\x01\0\0\0\x017\0\0");
        message(b'B', &body)
    }

    fn execute(portal: &str, rows: u8) -> Vec<u8> {
        let mut body = portal.as_bytes().to_vec();
        body.extend_from_slice(&[0, 0, 0, 0, rows]);
        message(b'E', &body)
    }

    fn take(messages: &[Vec<u8>]) -> (Option<Batch>, Vec<u8>) {
        let mut buffer = BytesMut::from(&messages.concat()[..]);
        let batch = Batch::take(&mut buffer, 1 << 20);
        (batch, buffer.to_vec())
    }

    #[test]
    fn one_statement_is_taken_whole_and_what_follows_stays() {
        let (describe, sync) = (message(b'D', b"P\0"), message(b'S', b""));
        for described in [false, true] {
            let mut messages = vec![bind("")];
            messages.extend(described.then(|| describe.clone()));
            messages.extend([execute("", 0), sync.clone()]);
            for next in [Vec::new(), bind(""), b"Q\0\0".to_vec()] {
                let mut sent = messages.clone();
                sent.push(next.clone());
                let (batch, left) = take(&sent);
                let batch = batch.unwrap();
                assert_eq!((batch.describes, left), (described, next));
                assert_eq!(batch.messages(), messages.len() as u64);
                let bind = batch.bind().unwrap();
                assert_eq!((bind.portal, bind.statement), ("", "s"));
                assert_eq!(bind.parameters.as_slice(), [Some(&b"7"[..])]);
                let buffer = batch.into_buffer();
                assert!(buffer.is_empty() && buffer.capacity() > 0);
            }
        }
    }

    #[test]
    fn all_else_stays_where_it_is() {
        let sync = message(b'S', b"");
        let others: &[&[Vec<u8>]] = &[
            &[bind("p"), execute("", 0), sync.clone()],
            &[bind(""), execute("p", 0), sync.clone()],
            &[bind(""), execute("", 5), sync.clone()],
            &[bind(""), execute("", 0), message(b'H', b"")],
            &[bind(""), execute("", 0)],
            &[
                bind(""),
                message(b'D', b"Ss\0"),
                execute("", 0),
                sync.clone(),
            ],
            &[bind(""), bind(""), execute("", 0), sync.clone()],
            &[execute("", 0), sync.clone()],
        ];
        for messages in others {
            let (batch, left) = take(messages);
            assert!(batch.is_none() && left == messages.concat(), "{messages:?}");
        }
        // Every beginning of one, and lengths that are lies.
        let whole = [bind(""), execute("", 0), sync].concat();
        for length in 0..whole.len() {
            let mut buffer = BytesMut::from(&whole[..length]);
            assert!(Batch::take(&mut buffer, 1 << 20).is_none());
            assert_eq!(buffer.len(), length);
        }
        for length in [0u32, 1, 4, u32::MAX] {
            let mut lie = whole.clone();
            lie[1..5].copy_from_slice(&length.to_be_bytes());
            assert!(Batch::take(&mut BytesMut::from(&lie[..]), 1 << 20).is_none());
        }
        assert!(Batch::take(&mut BytesMut::from(&whole[..]), 4).is_none());
    }
}
