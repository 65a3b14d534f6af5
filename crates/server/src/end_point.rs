//! What a SCRAM exchange is bound to: the hash of the server's certificate, by the hash
//! function of its signature (RFC 5929, tls-server-end-point). Of a certificate only the
//! outermost layer is read: a sequence of what is signed, the signature's algorithm, the
//! signature.

use sha2::{Digest, Sha256, Sha384, Sha512};

/// Signature algorithms by object identifier (DER), RSA's and that with elliptic curves.
const SHA256: [&[u8]; 2] = [
    &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b],
    &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02],
];
const SHA384: [&[u8]; 2] = [
    &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0c],
    &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x03],
];
const SHA512: [&[u8]; 2] = [
    &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0d],
    &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x04],
];

/// The hash, if the certificate's algorithm has one that is known here; otherwise no binding
/// is offered.
pub(crate) fn end_point_hash(certificate: &[u8]) -> Option<Vec<u8>> {
    let (whole, _) = element(certificate, 0x30)?;
    let (_, rest) = element(whole, 0x30)?;
    let (algorithm, _) = element(rest, 0x30)?;
    let (identifier, _) = element(algorithm, 0x06)?;
    if SHA256.contains(&identifier) {
        Some(Sha256::digest(certificate).to_vec())
    } else if SHA384.contains(&identifier) {
        Some(Sha384::digest(certificate).to_vec())
    } else if SHA512.contains(&identifier) {
        Some(Sha512::digest(certificate).to_vec())
    } else {
        None
    }
}

/// The content of the element with this tag that `bytes` begin with, and what follows it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x83 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let length = digits
                .iter()
                .fold(0usize, |sum, digit| sum << 8 | usize::from(*digit));
            (length, rest)
        }
        _ => return None,
    };
    if found != tag {
        return None;
    }
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_certificate_has_no_hash() {
        for bytes in [
            &[][..],
            &[0x30],
            &[0x30, 0x85],
            &[0x30, 0x02, 0x30, 0x05],
            b"text",
        ] {
            assert_eq!(end_point_hash(bytes), None);
        }
        let certificate = [
            &[0x30, 0x11, 0x30, 0x00, 0x30, 0x0a, 0x06, 0x08][..],
            SHA256[1],
            &[0x03, 0x01, 0x00],
        ]
        .concat();
        assert_eq!(
            end_point_hash(&certificate).map(|hash| hash.len()),
            Some(32)
        );
    }
}
