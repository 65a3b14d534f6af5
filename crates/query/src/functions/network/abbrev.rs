//! The short form of networks: `10.1/16`, `2001:db8/32`. Its peculiarities are
//! PostgreSQL's, which has them from an old library.

use std::fmt::Write as _;
use std::net::IpAddr;

use crate::types::inet::Inet;

/// A network in its short form.
pub(super) fn network(value: &Inet) -> String {
    let mut out = String::new();
    match value.address {
        IpAddr::V4(address) => ipv4(address.octets(), value.prefix, &mut out),
        IpAddr::V6(_) => {
            // The bits beyond the prefix are not shown.
            if let IpAddr::V6(address) = value.network(value.prefix).address {
                ipv6(address.octets(), value.prefix, &mut out);
            }
        }
    }
    // Writing to a string can't fail.
    let _ = write!(out, "/{}", value.prefix);
    out
}

fn ipv4(bytes: [u8; 4], prefix: u8, out: &mut String) {
    if prefix == 0 {
        out.push('0');
        return;
    }
    let shown = usize::from(prefix).div_ceil(8);
    for (place, byte) in bytes.iter().take(shown).enumerate() {
        if place > 0 {
            out.push('.');
        }
        let bits = usize::from(prefix) - 8 * place;
        let byte = if bits < 8 {
            byte & (0xff << (8 - bits))
        } else {
            *byte
        };
        let _ = write!(out, "{byte}");
    }
}

/// Where the zeros lie that are left out, and how many words they are: the
/// count goes on beyond a word that is not zero unless the run was the longest.
fn zeros(words: &[u16]) -> (usize, usize) {
    let (mut best, mut run) = ((0, 0), (0, 0));
    for (place, word) in words.iter().enumerate() {
        if *word == 0 {
            if run.1 == 0 {
                run.0 = place;
            }
            run.1 += 1;
        } else if run.1 > best.1 {
            best = run;
            run.1 = 0;
        }
    }
    if run.1 > best.1 { run } else { best }
}

fn ipv6(bytes: [u8; 16], prefix: u8, out: &mut String) {
    if prefix == 0 {
        out.push_str("::");
        return;
    }
    let mut words = [0_u16; 8];
    for (word, pair) in words.iter_mut().zip(bytes.chunks_exact(2)) {
        *word = u16::from_be_bytes([pair[0], pair[1]]);
    }
    let count = usize::from(prefix).div_ceil(16).max(2);
    let (from, length) = zeros(&words[..count]);
    let holds_ipv4 = length != count
        && from == 0
        && (length == 6
            || (length == 5 && words[5] == 0xffff)
            || (length == 7 && bytes[14] != 0 && bytes[15] != 1));
    for (place, word) in words[..count].iter().enumerate() {
        if length > 0 && (from..from + length).contains(&place) {
            if place == from {
                out.push(':');
            }
            if place == count - 1 {
                out.push(':');
            }
            continue;
        }
        if holds_ipv4 && place > 5 {
            let [high, low] = word.to_be_bytes();
            out.push(if place == 6 { ':' } else { '.' });
            let _ = write!(out, "{high}");
            if place != 7 || prefix > 120 {
                let _ = write!(out, ".{low}");
            }
            continue;
        }
        if !out.is_empty() {
            out.push(':');
        }
        let _ = write!(out, "{word:x}");
    }
}
