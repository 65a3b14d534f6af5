//! Records of the text format: fields between delimiters, backslash escapes.

use super::CopyOptions;
use super::decode::Record;

/// Where the line ends: at a newline that no backslash precedes. `offset`
/// remembers what was looked at before.
pub(super) fn line_end(rest: &[u8], offset: &mut usize) -> Option<usize> {
    let mut at = *offset;
    while let Some(byte) = rest.get(at) {
        match byte {
            b'\n' => return Some(at),
            b'\\' if at + 1 < rest.len() => at += 2,
            // The backslash's other half has not come yet.
            b'\\' => break,
            _ => at += 1,
        }
    }
    *offset = at;
    None
}

/// Cuts a line into its fields and takes the escapes out.
pub(super) fn split(line: &[u8], options: &CopyOptions, record: &mut Record) {
    let mut rest = line;
    loop {
        let end = field_end(rest, options.delimiter);
        let raw = &rest[..end];
        if raw == options.null.as_bytes() {
            record.fields.push(None);
        } else {
            let start = record.bytes.len();
            unescape(raw, &mut record.bytes);
            record.fields.push(Some(start..record.bytes.len()));
        }
        if end == rest.len() {
            return;
        }
        rest = &rest[end + 1..];
    }
}

fn field_end(rest: &[u8], delimiter: u8) -> usize {
    let mut at = 0;
    while let Some(byte) = rest.get(at) {
        if *byte == delimiter {
            return at;
        }
        at += if *byte == b'\\' { 2 } else { 1 };
    }
    rest.len()
}

fn unescape(raw: &[u8], out: &mut Vec<u8>) {
    if !raw.contains(&b'\\') {
        out.extend_from_slice(raw);
        return;
    }
    let mut at = 0;
    while let Some(&byte) = raw.get(at) {
        at += 1;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let Some(&letter) = raw.get(at) else {
            out.push(b'\\');
            break;
        };
        at += 1;
        match letter {
            b'b' => out.push(0x08),
            b'f' => out.push(0x0c),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'v' => out.push(0x0b),
            b'0'..=b'7' => {
                let mut number = u32::from(letter - b'0');
                for _ in 0..2 {
                    match raw.get(at) {
                        Some(digit @ b'0'..=b'7') => {
                            number = number * 8 + u32::from(digit - b'0');
                            at += 1;
                        }
                        _ => break,
                    }
                }
                out.push((number & 0xff) as u8);
            }
            b'x' if raw.get(at).is_some_and(u8::is_ascii_hexdigit) => {
                let mut number = 0;
                for _ in 0..2 {
                    match raw
                        .get(at)
                        .and_then(|digit| char::from(*digit).to_digit(16))
                    {
                        Some(digit) => {
                            number = number * 16 + digit;
                            at += 1;
                        }
                        None => break,
                    }
                }
                out.push(number as u8);
            }
            other => out.push(other),
        }
    }
}
