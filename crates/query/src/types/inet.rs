//! `inet` and `cidr`.

mod parse;

use std::cmp::Ordering;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::array::Message;
use super::{Type, ids};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};

/// An address and the length of its network's prefix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Inet {
    /// The address.
    pub address: IpAddr,
    /// The bits of the prefix.
    pub prefix: u8,
}

/// The types of this file.
pub const TYPES: &[Type] = &[
    Type {
        category: b'I',
        preferred: true,
        array: ids::INET_ARRAY,
        input: input_inet,
        output: output_inet,
        receive: receive_inet,
        send: send_inet,
        compare: Some(compare),
        ..Type::new(ids::INET, "inet", "inet")
    },
    Type {
        category: b'I',
        array: ids::CIDR_ARRAY,
        input: input_cidr,
        output: output_cidr,
        receive: receive_cidr,
        send: send_cidr,
        compare: Some(compare),
        ..Type::new(ids::CIDR, "cidr", "cidr")
    },
];

impl Inet {
    /// How many bits an address of this family has.
    #[must_use]
    pub const fn bits(&self) -> u8 {
        match self.address {
            IpAddr::V4(_) => 32,
            IpAddr::V6(_) => 128,
        }
    }

    /// The address as a number.
    #[must_use]
    pub fn number(&self) -> u128 {
        match self.address {
            IpAddr::V4(address) => u128::from(u32::from(address)),
            IpAddr::V6(address) => u128::from(address),
        }
    }

    /// Ones where the first `prefix` bits of such an address are.
    #[must_use]
    pub fn mask(&self, prefix: u8) -> u128 {
        let bits = u32::from(self.bits());
        let all = u128::MAX >> (128 - bits);
        // No bit is left of a shift by all.
        let host = all.checked_shr(u32::from(prefix).min(bits)).unwrap_or(0);
        all & !host
    }

    /// An address of the same family.
    #[must_use]
    pub fn with(&self, number: u128, prefix: u8) -> Self {
        let address = match self.address {
            IpAddr::V4(_) => {
                let number = u32::try_from(number & u128::from(u32::MAX)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from(number))
            }
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from(number)),
        };
        Self { address, prefix }
    }

    /// The address without the bits beyond the prefix.
    #[must_use]
    pub fn network(&self, prefix: u8) -> Self {
        self.with(self.number() & self.mask(prefix), prefix)
    }

    /// Whether no bit beyond the prefix is set.
    fn is_network(&self) -> bool {
        self.number() & !self.mask(self.prefix) == 0
    }

    /// Whether both are of one family.
    #[must_use]
    pub const fn same_family(&self, other: &Self) -> bool {
        self.bits() == other.bits()
    }

    /// Whether both agree in their first `prefix` bits; they are of one family.
    #[must_use]
    pub fn agrees(&self, other: &Self, prefix: u8) -> bool {
        (self.number() ^ other.number()) & self.mask(prefix) == 0
    }

    /// Appends the address, all of it.
    pub fn write_host(&self, out: &mut String) {
        match self.address {
            // Writing to a string can't fail.
            IpAddr::V4(address) => {
                let _ = write!(out, "{address}");
            }
            IpAddr::V6(address) => write_ipv6(address, out),
        }
    }

    /// Appends the address, and the prefix unless it is all of it.
    pub fn write(&self, out: &mut String) {
        self.write_host(out);
        if self.prefix != self.bits() {
            let _ = write!(out, "/{}", self.prefix);
        }
    }
}

/// Appends an IPv6 address as PostgreSQL writes it.
fn write_ipv6(address: Ipv6Addr, out: &mut String) {
    let words = address.segments();
    // The longest run of zeros, the first of those.
    let (mut best, mut run) = ((0, 0), (0, 0));
    for (place, word) in words.iter().enumerate() {
        if *word != 0 {
            run = (0, 0);
            continue;
        }
        run = if run.1 == 0 {
            (place, 1)
        } else {
            (run.0, run.1 + 1)
        };
        if run.1 > best.1 {
            best = run;
        }
    }
    if best.1 < 2 {
        best = (words.len(), 0);
    }
    let end = best.0 + best.1;
    for (place, word) in words.iter().enumerate() {
        if best.1 > 0 && (best.0..end).contains(&place) {
            if place == best.0 {
                out.push(':');
            }
            continue;
        }
        if place != 0 {
            out.push(':');
        }
        let holds_ipv4 = place == 6
            && best.0 == 0
            && (best.1 == 6
                || (best.1 == 7 && words[7] != 1)
                || (best.1 == 5 && words[5] == 0xffff));
        if holds_ipv4 {
            let [.., a, b, c, d] = address.octets();
            let _ = write!(out, "{a}.{b}.{c}.{d}");
            return;
        }
        let _ = write!(out, "{word:x}");
    }
    if best.1 > 0 && end == words.len() {
        out.push(':');
    }
}

fn input_inet(_: &Call<'_>, text: &str, _: i32) -> Result<Datum> {
    match parse::inet(text.as_bytes()) {
        Some(value) => Ok(Datum::Inet(value)),
        None => Err(QueryError::invalid_text("inet", text)),
    }
}

fn input_cidr(_: &Call<'_>, text: &str, _: i32) -> Result<Datum> {
    match parse::cidr(text.as_bytes()) {
        Some(value) if value.is_network() => Ok(Datum::Inet(value)),
        Some(_) => Err(
            QueryError::new("22P02", format!("invalid cidr value: \"{text}\""))
                .with_detail("Value has bits set to right of mask."),
        ),
        None => Err(QueryError::invalid_text("cidr", text)),
    }
}

fn output_inet(_: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    value.as_inet().write(out);
    Ok(())
}

fn output_cidr(_: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    let value = value.as_inet();
    value.write_host(out);
    let _ = write!(out, "/{}", value.prefix);
    Ok(())
}

fn receive(bytes: &[u8], name: &str, is_cidr: bool) -> Result<Datum> {
    let invalid = |what: &str| {
        QueryError::new(
            "22P03",
            format!("invalid {what} in external \"{name}\" value"),
        )
    };
    let mut message = Message::new(bytes);
    let bits = match message.byte()? {
        2 => 32,
        3 => 128,
        _ => return Err(invalid("address family")),
    };
    let prefix = message.byte()?;
    if prefix > bits {
        return Err(invalid("bits"));
    }
    message.byte()?;
    if message.byte()? != bits / 8 {
        return Err(invalid("length"));
    }
    let address = if bits == 32 {
        IpAddr::from(message.bytes::<4>()?)
    } else {
        IpAddr::from(message.bytes::<16>()?)
    };
    message.end()?;
    let value = Inet { address, prefix };
    if is_cidr && !value.is_network() {
        return Err(QueryError::new("22P03", "invalid external \"cidr\" value")
            .with_detail("Value has bits set to right of mask."));
    }
    Ok(Datum::Inet(value))
}

fn receive_inet(_: &Call<'_>, bytes: &[u8], _: i32) -> Result<Datum> {
    receive(bytes, "inet", false)
}

fn receive_cidr(_: &Call<'_>, bytes: &[u8], _: i32) -> Result<Datum> {
    receive(bytes, "cidr", true)
}

fn send(value: Inet, is_cidr: bool, out: &mut Vec<u8>) {
    let head = |family, bytes| [family, value.prefix, u8::from(is_cidr), bytes];
    match value.address {
        IpAddr::V4(address) => {
            out.extend_from_slice(&head(2, 4));
            out.extend_from_slice(&address.octets());
        }
        IpAddr::V6(address) => {
            out.extend_from_slice(&head(3, 16));
            out.extend_from_slice(&address.octets());
        }
    }
}

fn send_inet(_: &Call<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    send(value.as_inet(), false, out);
    Ok(())
}

fn send_cidr(_: &Call<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    send(value.as_inet(), true, out);
    Ok(())
}

/// The order: by family, the bits that both prefixes have, the prefixes' lengths, all bits.
pub(crate) fn compare(a: &Datum, b: &Datum) -> Ordering {
    let (a, b) = (a.as_inet(), b.as_inet());
    a.bits().cmp(&b.bits()).then_with(|| {
        let mask = a.mask(a.prefix.min(b.prefix));
        (a.number() & mask)
            .cmp(&(b.number() & mask))
            .then(a.prefix.cmp(&b.prefix))
            .then_with(|| a.number().cmp(&b.number()))
    })
}
