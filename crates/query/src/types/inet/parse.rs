//! Reads the text forms of `inet` and `cidr`: whole and shortened addresses,
//! with and without the length of a prefix.

use std::net::IpAddr;

use super::Inet;

/// The bytes of a text, one after another; zero is the end.
#[derive(Clone, Copy)]
struct Text<'a> {
    bytes: &'a [u8],
    place: usize,
}

impl Text<'_> {
    /// The byte that comes next.
    fn peek(&self) -> u8 {
        self.bytes.get(self.place).copied().unwrap_or(0)
    }

    /// Takes the byte that comes next.
    fn next(&mut self) -> u8 {
        let byte = self.peek();
        self.place += 1;
        byte
    }
}

/// Bytes of an address as they are found.
struct Found<const N: usize> {
    bytes: [u8; N],
    count: usize,
}

impl<const N: usize> Found<N> {
    const fn new() -> Self {
        Self {
            bytes: [0; N],
            count: 0,
        }
    }

    fn push(&mut self, byte: u8) -> Option<()> {
        *self.bytes.get_mut(self.count)? = byte;
        self.count += 1;
        Some(())
    }
}

/// Reads an `inet`.
pub(super) fn inet(bytes: &[u8]) -> Option<Inet> {
    if bytes.contains(&b':') {
        ipv6(bytes)
    } else {
        inet_ipv4(bytes)
    }
}

/// Reads a `cidr`, whose bits beyond the prefix are not looked at.
pub(super) fn cidr(bytes: &[u8]) -> Option<Inet> {
    if bytes.contains(&b':') {
        ipv6(bytes)
    } else {
        cidr_ipv4(bytes)
    }
}

/// A decimal number of one byte, which begins with the digit `first`; gives what follows, too.
fn octet(text: &mut Text<'_>, first: u8) -> Option<(u8, u8)> {
    let (mut value, mut byte) = (0_u8, first);
    while byte.is_ascii_digit() {
        value = value.checked_mul(10)?.checked_add(byte - b'0')?;
        byte = text.next();
    }
    Some((value, byte))
}

/// The prefix after `/`, nothing behind it; `None` where there is no prefix but the end.
fn ipv4_prefix(text: &mut Text<'_>, byte: u8, some: bool) -> Option<Option<u8>> {
    if byte == 0 {
        return Some(None);
    }
    if byte != b'/' || !text.peek().is_ascii_digit() || !some {
        return None;
    }
    let mut value = 0_u32;
    let mut byte = text.next();
    while byte.is_ascii_digit() {
        value = value
            .saturating_mul(10)
            .saturating_add(u32::from(byte - b'0'));
        byte = text.next();
    }
    if byte != 0 || value > 32 {
        return None;
    }
    Some(Some(u8::try_from(value).ok()?))
}

fn inet_ipv4(bytes: &[u8]) -> Option<Inet> {
    let mut text = Text { bytes, place: 0 };
    let mut found = Found::<4>::new();
    let mut byte = text.next();
    while byte.is_ascii_digit() {
        let (value, next) = octet(&mut text, byte)?;
        found.push(value)?;
        byte = next;
        match byte {
            0 | b'/' => break,
            b'.' => byte = text.next(),
            _ => return None,
        }
    }
    let prefix = match ipv4_prefix(&mut text, byte, found.count > 0)? {
        Some(prefix) => prefix,
        None if found.count == 4 => 32,
        None => return None,
    };
    if found.count == 0 || usize::from(prefix / 8) > found.count {
        return None;
    }
    Some(Inet {
        address: IpAddr::from(found.bytes),
        prefix,
    })
}

fn hex(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

fn cidr_ipv4(bytes: &[u8]) -> Option<Inet> {
    let mut text = Text { bytes, place: 0 };
    let mut found = Found::<4>::new();
    let mut byte = text.next();
    let after = bytes.get(2).copied().unwrap_or(0);
    if byte == b'0' && matches!(text.peek(), b'x' | b'X') && hex(after).is_some() {
        text.next();
        let mut half = None;
        byte = text.next();
        while let Some(digit) = hex(byte) {
            half = match half {
                None => Some(digit),
                Some(high) => {
                    found.push((high << 4) | digit)?;
                    None
                }
            };
            byte = text.next();
        }
        if let Some(high) = half {
            found.push(high << 4)?;
        }
    } else if byte.is_ascii_digit() {
        loop {
            let (value, next) = octet(&mut text, byte)?;
            found.push(value)?;
            byte = next;
            if matches!(byte, 0 | b'/') {
                break;
            }
            if byte != b'.' || !text.peek().is_ascii_digit() {
                return None;
            }
            byte = text.next();
        }
    } else {
        return None;
    }
    let prefix = match ipv4_prefix(&mut text, byte, found.count > 0)? {
        Some(prefix) => prefix,
        None => {
            // The classes of old, widened to the bytes that are written.
            let class = match found.bytes[0] {
                240.. => 32,
                224..=239 => 8,
                192..=223 => 24,
                128..=191 => 16,
                _ => 8,
            };
            let written = u8::try_from(found.count * 8).ok()?;
            match class.max(written) {
                8 if found.bytes[0] == 224 => 4,
                prefix => prefix,
            }
        }
    };
    Some(Inet {
        address: IpAddr::from(found.bytes),
        prefix,
    })
}

/// A prefix's length up to the end, without zeros before it.
fn ipv6_prefix(bytes: &[u8]) -> Option<u8> {
    let (mut value, mut digits) = (0_u32, 0);
    for byte in bytes {
        if !byte.is_ascii_digit() || (digits > 0 && value == 0) {
            return None;
        }
        digits += 1;
        value = value * 10 + u32::from(byte - b'0');
        if value > 128 {
            return None;
        }
    }
    if digits == 0 {
        return None;
    }
    u8::try_from(value).ok()
}

/// The last four bytes of an IPv6 address in decimal, up to the end, and a prefix behind them.
fn embedded_ipv4(bytes: &[u8]) -> Option<([u8; 4], Option<u8>)> {
    let mut found = Found::<4>::new();
    let (mut value, mut digits) = (0_u32, 0);
    for (place, byte) in bytes.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                if digits > 0 && value == 0 {
                    return None;
                }
                digits += 1;
                value = value * 10 + u32::from(byte - b'0');
                if value > 255 {
                    return None;
                }
            }
            b'.' | b'/' => {
                found.push(u8::try_from(value).ok()?)?;
                if *byte == b'/' {
                    let prefix = ipv6_prefix(bytes.get(place + 1..)?)?;
                    return Some((found.bytes, Some(prefix)));
                }
                (value, digits) = (0, 0);
            }
            _ => return None,
        }
    }
    if digits == 0 {
        return None;
    }
    found.push(u8::try_from(value).ok()?)?;
    Some((found.bytes, None))
}

fn ipv6(bytes: &[u8]) -> Option<Inet> {
    let mut text = Text { bytes, place: 0 };
    let mut found = Found::<16>::new();
    let mut zeros = None;
    let mut prefix = None;
    if text.peek() == b':' {
        text.next();
        if text.peek() != b':' {
            return None;
        }
    }
    let mut token = text.place;
    let (mut value, mut digits) = (0_u16, 0);
    loop {
        let byte = text.next();
        if byte == 0 {
            break;
        }
        if let Some(digit) = hex(byte) {
            value = (value << 4) | u16::from(digit);
            digits += 1;
            if digits > 4 {
                return None;
            }
            continue;
        }
        match byte {
            b':' => {
                token = text.place;
                if digits == 0 {
                    if zeros.is_some() {
                        return None;
                    }
                    zeros = Some(found.count);
                    continue;
                }
                if text.peek() == 0 {
                    return None;
                }
                push_word(&mut found, value)?;
                (value, digits) = (0, 0);
            }
            b'.' if found.count + 4 <= 16 => {
                let (address, bits) = embedded_ipv4(bytes.get(token..)?)?;
                for byte in address {
                    found.push(byte)?;
                }
                prefix = bits;
                digits = 0;
                break;
            }
            b'/' => {
                prefix = Some(ipv6_prefix(bytes.get(text.place..)?)?);
                break;
            }
            _ => return None,
        }
    }
    if digits > 0 {
        push_word(&mut found, value)?;
    }
    match zeros {
        Some(_) if found.count == 16 => return None,
        Some(zeros) => {
            // What follows the two colons belongs to the end.
            found.bytes.get_mut(zeros..)?.rotate_right(16 - found.count);
        }
        None if found.count == 16 => {}
        None => return None,
    }
    Some(Inet {
        address: IpAddr::from(found.bytes),
        prefix: prefix.unwrap_or(128),
    })
}

fn push_word(found: &mut Found<16>, word: u16) -> Option<()> {
    let [high, low] = word.to_be_bytes();
    if found.count + 2 > 16 {
        return None;
    }
    found.push(high)?;
    found.push(low)
}
