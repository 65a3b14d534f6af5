//! A command: what the log says of a deterministic procedure's call in place of
//! the rows it changed (004 §2; docs/internals/format.md, "Log records").
//!
//! Run again on the same partition in the same state it does the same. The
//! state is the same because a partition's records are applied in the order in
//! which they were appended under its lock, and because a command is of one
//! partition. What the state does not say is in the record: the time, and the
//! numbers of inserted rows, which later records go by. A digest of the changes
//! tells when a procedure did not keep its promise.

use std::sync::Arc;

use thermocline_values::binary_format::{parse_binary, write_binary};
use thermocline_values::types::DataType;
use thermocline_values::value::Value;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::format::record::Reader;
use crate::ground::byte_parts::ByteParts;
use crate::ground::error::{Error, Result};

/// A command as it was read from the log.
#[derive(Debug, PartialEq)]
pub(crate) struct Command {
    pub partition: u16,
    /// The call's time, in microseconds since 2000-01-01 UTC.
    pub now_us: i64,
    pub name: String,
    pub arguments: Vec<Value>,
    /// See [`digest`].
    pub digest: u64,
    /// Storage and number of each inserted row, in order.
    pub inserted: Vec<(u32, u32)>,
}

/// What is known before the run: partition, time, name, arguments.
pub(crate) fn head(
    partition: u16,
    now_us: i64,
    name: &str,
    arguments: &[Value],
) -> Result<Arc<[u8]>> {
    let mut out = Vec::with_capacity(64);
    out.extend_from_slice(&partition.to_le_bytes());
    out.extend_from_slice(&now_us.to_le_bytes());
    let (Ok(name_bytes), Ok(count)) = (u8::try_from(name.len()), u16::try_from(arguments.len()))
    else {
        return Err(Error::TooLarge(format!(
            "a call of {name} with {} arguments",
            arguments.len()
        )));
    };
    out.push(name_bytes);
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(&count.to_le_bytes());
    let mut bytes = Vec::new();
    for argument in arguments {
        let Some(data_type) = argument.data_type() else {
            push_number(&mut out, 0);
            continue;
        };
        // PostgreSQL's number of the type, and its binary form.
        push_number(&mut out, data_type.oid());
        bytes.clear();
        write_binary(argument.as_ref(), &data_type, &mut bytes);
        let length = u32::try_from(bytes.len())
            .map_err(|_| Error::TooLarge(format!("an argument of {name}")))?;
        push_number(&mut out, length);
        out.extend_from_slice(&bytes);
    }
    Ok(out.into())
}

/// What is known after the run: the digest of its changes, the inserted rows.
pub(crate) fn tail(changes: &ByteParts, inserted: impl Iterator<Item = (u32, u32)>) -> Vec<u8> {
    let mut out = Vec::with_capacity(32);
    out.extend_from_slice(&digest(changes).to_le_bytes());
    let mut last = 0u32;
    for (storage, row) in inserted {
        push_number(&mut out, storage);
        // Most follow each other.
        let step = row.wrapping_sub(last) as i32;
        push_number(&mut out, ((step << 1) ^ (step >> 31)) as u32);
        last = row;
    }
    out
}

/// Tells the changes of a run (as a record of values has them) from others.
pub(crate) fn digest(changes: &ByteParts) -> u64 {
    if let Some(changes) = changes.whole() {
        return xxh3_64(changes);
    }
    let mut digest = Xxh3::new();
    changes.iter().for_each(|part| digest.update(part));
    digest.digest()
}

impl Command {
    pub fn parse(body: &[u8]) -> Result<Command> {
        let mut reader = Reader(body);
        let partition = reader.u16()?;
        let now_us = reader.u64()? as i64;
        let name_bytes = reader.u8()?.into();
        let name = std::str::from_utf8(reader.take(name_bytes)?)
            .map_err(|_| Error::Corrupt("a command's name is not UTF-8".into()))?
            .to_owned();
        let count = reader.u16()?;
        let mut arguments = Vec::with_capacity(count.into());
        for _ in 0..count {
            let oid = number(&mut reader)?;
            if oid == 0 {
                arguments.push(Value::Null);
                continue;
            }
            let data_type = DataType::from_oid(oid, -1)
                .ok_or_else(|| Error::Corrupt(format!("a command's argument of type {oid}")))?;
            let length = number(&mut reader)? as usize;
            arguments.push(parse_binary(&data_type, reader.take(length)?)?);
        }
        let digest = reader.u64()?;
        let mut inserted = Vec::new();
        let mut row = 0u32;
        while !reader.0.is_empty() {
            let storage = number(&mut reader)?;
            let step = number(&mut reader)?;
            row = row.wrapping_add((step >> 1) ^ (step & 1).wrapping_neg());
            inserted.push((storage, row));
        }
        Ok(Command {
            partition,
            now_us,
            name,
            arguments,
            digest,
            inserted,
        })
    }
}

/// Seven bits a byte, the lowest first.
fn push_number(out: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn number(reader: &mut Reader<'_>) -> Result<u32> {
    let mut number = 0u64;
    for shift in (0..35).step_by(7) {
        let byte = reader.u8()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return u32::try_from(number)
                .map_err(|_| Error::Corrupt("a number of a command is too large".into()));
        }
    }
    Err(Error::Corrupt("a number of a command has no end".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(all: &[&[u8]]) -> ByteParts {
        let mut parts = ByteParts::default();
        for bytes in all {
            parts.keep(bytes);
        }
        parts
    }

    #[test]
    fn a_digest_is_that_of_all_changes_together() {
        let all: Vec<Vec<u8>> = (1..5).map(|n| vec![n; 100_000 * usize::from(n)]).collect();
        let slices: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
        assert_eq!(digest(&parts(&slices)), xxh3_64(&all.concat()));
    }

    fn sample() -> (Command, Vec<u8>) {
        let command = Command {
            partition: 513,
            now_us: -7,
            name: "pay".into(),
            arguments: vec![
                Value::Null,
                Value::BigInt(-1),
                Value::Text("é".repeat(100)),
                Value::Boolean(true),
                Value::Bytea(vec![0, 255]),
            ],
            digest: digest(&parts(&[b"changes"])),
            inserted: vec![(3, 5), (3, 6), (9, 0), (3, u32::MAX - 1), (3, 1)],
        };
        let mut bytes = head(513, -7, "pay", &command.arguments)
            .expect("small")
            .to_vec();
        bytes.extend(tail(
            &parts(&[b"changes"]),
            command.inserted.iter().copied(),
        ));
        (command, bytes)
    }

    #[test]
    fn a_command_comes_back_as_it_was_written() {
        let (command, bytes) = sample();
        assert_eq!(Command::parse(&bytes).expect("valid"), command);
    }

    #[test]
    fn consecutive_rows_take_two_bytes_each() {
        let few = tail(&ByteParts::default(), [(1, 1000)].into_iter()).len();
        let more = tail(&ByteParts::default(), (1000..1010).map(|row| (1, row))).len();
        assert_eq!(more - few, 18);
    }

    #[test]
    fn a_cut_command_is_corruption_not_a_panic() {
        let (command, bytes) = sample();
        for length in 0..bytes.len() {
            match Command::parse(&bytes[..length]) {
                Err(_) => {}
                Ok(shorter) => assert!(shorter.inserted.len() < command.inserted.len()),
            }
        }
    }
}
