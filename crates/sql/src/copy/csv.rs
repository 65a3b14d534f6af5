//! Records of the csv format: a newline inside quotes does not end a record,
//! quotes may begin anywhere in a field, NULL is a string without quotes.

use super::CopyOptions;
use super::decode::Record;
use crate::error::{Result, SqlError};

/// How far the end of a record was looked for.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Scan {
    pub(super) offset: usize,
    pub(super) quoted: bool,
    /// Newlines inside quotes.
    pub(super) newlines: u64,
}

/// Where the record ends: at a newline outside quotes.
pub(super) fn record_end(rest: &[u8], options: &CopyOptions, scan: &mut Scan) -> Option<usize> {
    let escaped = options.escape != options.quote;
    while let Some(&byte) = rest.get(scan.offset) {
        if scan.quoted && escaped && byte == options.escape {
            // What follows is of the value; it may not have come yet.
            rest.get(scan.offset + 1)?;
            scan.offset += 2;
            continue;
        }
        if byte == options.quote {
            scan.quoted = !scan.quoted;
        } else if byte == b'\n' {
            if !scan.quoted {
                return Some(scan.offset);
            }
            scan.newlines += 1;
        }
        scan.offset += 1;
    }
    None
}

/// Cuts a record into its fields and takes the quotes off.
///
/// # Errors
/// 22P04 for a quote that is not closed.
pub(super) fn split(line: &[u8], options: &CopyOptions, record: &mut Record) -> Result<()> {
    let mut at = 0;
    loop {
        let start = record.bytes.len();
        let mut was_quoted = false;
        let mut quoted = false;
        let more = loop {
            let Some(&byte) = line.get(at) else {
                break false;
            };
            at += 1;
            if !quoted {
                if byte == options.delimiter {
                    break true;
                }
                if byte == options.quote {
                    quoted = true;
                    was_quoted = true;
                    continue;
                }
            } else {
                let next = line.get(at).copied();
                if byte == options.escape
                    && next.is_some_and(|next| next == options.quote || next == options.escape)
                {
                    record.bytes.extend(next);
                    at += 1;
                    continue;
                }
                if byte == options.quote {
                    quoted = false;
                    continue;
                }
            }
            record.bytes.push(byte);
        };
        if quoted {
            return Err(SqlError::new("22P04", "unterminated CSV quoted field"));
        }
        let index = record.fields.len();
        let is_null_string = record.bytes[start..] == *options.null.as_bytes();
        let null = is_null_string
            && if was_quoted {
                options.force_null.contains(index)
            } else {
                !options.force_not_null.contains(index)
            };
        if null {
            record.bytes.truncate(start);
            record.fields.push(None);
        } else {
            record.fields.push(Some(start..record.bytes.len()));
        }
        if !more {
            return Ok(());
        }
    }
}
