//! Passwords as PostgreSQL keeps them: SCRAM-SHA-256 verifiers (RFC 5802 and 7677),
//! `SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey`. A password itself is kept nowhere, and
//! nothing here prints one.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Iterations of a new verifier, PostgreSQL's number.
pub const ITERATIONS: u32 = 4096;
/// The most iterations taken in a verifier that is given ready: a client has to do them.
const ITERATIONS_MAX: u32 = 10_000_000;
/// Bytes of a new verifier's salt.
const SALT_BYTES: usize = 16;
/// What a SHA-256 gives.
pub type Hash = [u8; 32];

const PREFIX: &str = "SCRAM-SHA-256$";

/// Something that must not be seen in a log, whoever prints what holds it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// What the server knows of a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier {
    /// How often the password was hashed.
    pub iterations: u32,
    /// What it was hashed with.
    pub salt: Vec<u8>,
    /// The hash of what the client proves to know.
    pub stored_key: Hash,
    /// What the server proves itself with.
    pub server_key: Hash,
}

impl Verifier {
    /// Of a password, with a salt of chance.
    #[must_use]
    pub fn of_password(password: &str) -> Self {
        Self::with_salt(password, &rand::random::<[u8; SALT_BYTES]>(), ITERATIONS)
    }

    fn with_salt(password: &str, salt: &[u8], iterations: u32) -> Self {
        let normalized = normalized(password);
        let mut salted = Hash::default();
        pbkdf2::pbkdf2_hmac::<Sha256>(normalized.as_bytes(), salt, iterations, &mut salted);
        Self {
            iterations,
            salt: salt.to_vec(),
            stored_key: hash(&keyed(&salted, &[b"Client Key"])),
            server_key: keyed(&salted, &[b"Server Key"]),
        }
    }

    /// A verifier as it is kept; `None` if the text is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (costs, keys) = text.strip_prefix(PREFIX)?.split_once('$')?;
        let (iterations, salt) = costs.split_once(':')?;
        let (stored_key, server_key) = keys.split_once(':')?;
        let iterations = iterations.parse().ok();
        Some(Self {
            iterations: iterations.filter(|n| (1..=ITERATIONS_MAX).contains(n))?,
            salt: STANDARD.decode(salt).ok().filter(|salt| !salt.is_empty())?,
            stored_key: STANDARD.decode(stored_key).ok()?.try_into().ok()?,
            server_key: STANDARD.decode(server_key).ok()?.try_into().ok()?,
        })
    }

    /// Whether a client's proof for this exchange is that of the password.
    #[must_use]
    pub fn accepts(&self, auth_message: &[&[u8]], proof: &Hash) -> bool {
        let signature = keyed(&self.stored_key, auth_message);
        let mut client_key = *proof;
        for (byte, mask) in client_key.iter_mut().zip(signature) {
            *byte ^= mask;
        }
        hash(&client_key).ct_eq(&self.stored_key).into()
    }

    /// What proves to the client that the server knows the password, too.
    #[must_use]
    pub fn signature(&self, auth_message: &[&[u8]]) -> Hash {
        keyed(&self.server_key, auth_message)
    }
}

impl fmt::Display for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{PREFIX}{}:{}${}:{}",
            self.iterations,
            STANDARD.encode(&self.salt),
            STANDARD.encode(self.stored_key),
            STANDARD.encode(self.server_key)
        )
    }
}

/// What is kept for a password given in SQL: a ready verifier as it is, or else a new one.
/// None for one that PostgreSQL takes for no password.
#[must_use]
pub fn verifier_text(password: &str) -> Option<String> {
    if password.is_empty() {
        return None;
    }
    Some(match Verifier::parse(password) {
        Some(_) => password.to_owned(),
        None => Verifier::of_password(password).to_string(),
    })
}

/// HMAC-SHA-256 of a message in pieces.
#[must_use]
pub fn keyed(key: &[u8], message: &[&[u8]]) -> Hash {
    // An HMAC takes a key of any length.
    let mut mac = match Hmac::<Sha256>::new_from_slice(key) {
        Ok(mac) => mac,
        Err(_) => return Hash::default(),
    };
    for piece in message {
        mac.update(piece);
    }
    mac.finalize().into_bytes().into()
}

fn hash(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

/// As the standard wants passwords (RFC 4013); what it forbids is taken as it is, as PostgreSQL
/// does.
fn normalized(password: &str) -> String {
    match stringprep::saslprep(password) {
        Ok(normalized) => normalized.into_owned(),
        Err(_) => password.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_standard() {
        // RFC 7677, section 3: user "user", password "pencil".
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let verifier = Verifier::with_salt("pencil", &salt, 4096);
        let nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let message = format!(
            "n=user,r=rOprNGfwEbeRWgbNEkqO,r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r={nonce}"
        );
        let proof = STANDARD
            .decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
            .unwrap();
        let proof: Hash = proof.try_into().unwrap();
        assert!(verifier.accepts(&[message.as_bytes()], &proof));
        let mut wrong = proof;
        wrong[31] ^= 1;
        assert!(!verifier.accepts(&[message.as_bytes()], &wrong));
        let signature = STANDARD.encode(verifier.signature(&[message.as_bytes()]));
        assert_eq!(signature, "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    }

    #[test]
    fn a_verifier_comes_back_from_its_text_and_is_taken_ready() {
        let text = verifier_text("secret").unwrap();
        assert_eq!(Verifier::parse(&text).unwrap().to_string(), text);
        assert_eq!(verifier_text(&text).unwrap(), text, "a ready one");
        assert_ne!(verifier_text("secret").unwrap(), text, "salts differ");
        assert!(verifier_text("").is_none());
    }

    #[test]
    fn what_is_no_verifier_is_a_password() {
        for text in [
            "SCRAM-SHA-256$4096:$a:b",
            "SCRAM-SHA-256$0:c2FsdA==$a:b",
            "SCRAM-SHA-256$4096:c2FsdA==$AAAA:AAAA",
            "md5abc",
        ] {
            assert!(Verifier::parse(text).is_none(), "{text}");
        }
    }
}
