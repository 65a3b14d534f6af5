//! Functions that PostgreSQL has in extensions, and that are built in here: `uuid-ossp`, and the
//! digests and random bytes of `pgcrypto`. CREATE EXTENSION finds these extensions there.

use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};
use uuid::Uuid;

use super::Function;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::ids;

/// An extension that is built in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extension {
    /// The number of its row; PostgreSQL's for `plpgsql`.
    pub oid: u32,
    /// Its name
    pub name: &'static str,
    /// The version that PostgreSQL 15 has.
    pub version: &'static str,
    /// What it is for, in PostgreSQL's words.
    pub comment: &'static str,
}

/// All of them. Their rows' numbers are below those of objects that a dump writes.
pub static EXTENSIONS: [Extension; 4] = [
    Extension {
        oid: 13_568,
        name: "plpgsql",
        version: "1.0",
        comment: "PL/pgSQL procedural language",
    },
    Extension {
        oid: 15_801,
        name: "pg_stat_statements",
        version: "1.10",
        comment: "track planning and execution statistics of all SQL statements executed",
    },
    Extension {
        oid: 15_802,
        name: "pgcrypto",
        version: "1.3",
        comment: "cryptographic functions",
    },
    Extension {
        oid: 15_803,
        name: "uuid-ossp",
        version: "1.1",
        comment: "generate universally unique identifiers (UUIDs)",
    },
];

/// The functions of this file. PostgreSQL numbers those of extensions as they come; these
/// numbers are no other's.
pub(super) static FUNCTIONS: &[Function] = &[
    Function::row(15_901, "uuid_generate_v4", &[], ids::UUID, |_, _| {
        Ok(Datum::Uuid(Uuid::new_v4().into_bytes()))
    })
    .volatile(),
    Function::row(
        15_902,
        "uuid_generate_v3",
        &[ids::UUID, ids::TEXT],
        ids::UUID,
        |_, a| named(3, &Md5::digest(name_bytes(a))),
    )
    .named(&["namespace", "name"]),
    Function::row(
        15_903,
        "uuid_generate_v5",
        &[ids::UUID, ids::TEXT],
        ids::UUID,
        |_, a| named(5, &Sha1::digest(name_bytes(a))),
    )
    .named(&["namespace", "name"]),
    Function::row(15_904, "uuid_nil", &[], ids::UUID, |_, _| {
        Ok(Datum::Uuid(Uuid::nil().into_bytes()))
    }),
    Function::row(15_905, "uuid_ns_dns", &[], ids::UUID, |_, _| {
        Ok(Datum::Uuid(Uuid::NAMESPACE_DNS.into_bytes()))
    }),
    Function::row(15_906, "uuid_ns_url", &[], ids::UUID, |_, _| {
        Ok(Datum::Uuid(Uuid::NAMESPACE_URL.into_bytes()))
    }),
    Function::row(15_907, "uuid_ns_oid", &[], ids::UUID, |_, _| {
        Ok(Datum::Uuid(Uuid::NAMESPACE_OID.into_bytes()))
    }),
    Function::row(15_908, "uuid_ns_x500", &[], ids::UUID, |_, _| {
        Ok(Datum::Uuid(Uuid::NAMESPACE_X500.into_bytes()))
    }),
    Function::row(
        15_911,
        "digest",
        &[ids::TEXT, ids::TEXT],
        ids::BYTEA,
        digest,
    ),
    Function::row(
        15_912,
        "digest",
        &[ids::BYTEA, ids::TEXT],
        ids::BYTEA,
        digest,
    ),
    Function::row(
        15_913,
        "hmac",
        &[ids::TEXT, ids::TEXT, ids::TEXT],
        ids::BYTEA,
        hmac,
    ),
    Function::row(
        15_914,
        "hmac",
        &[ids::BYTEA, ids::BYTEA, ids::TEXT],
        ids::BYTEA,
        hmac,
    ),
    Function::row(
        15_915,
        "gen_random_bytes",
        &[ids::INT4],
        ids::BYTEA,
        random_bytes,
    )
    .volatile(),
];

/// Whether PostgreSQL has the function in an extension, and so in the schema `public`.
pub(crate) fn is_of_extension(name: &str) -> bool {
    FUNCTIONS.iter().any(|function| function.name == name)
}

/// What a UUID of a name is the digest of.
fn name_bytes(a: &[Datum]) -> Vec<u8> {
    [&a[0].as_uuid()[..], a[1].as_text().as_bytes()].concat()
}

/// The UUID of a digest (RFC 4122, 4.3).
fn named(version: u8, digest: &[u8]) -> Result<Datum> {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    bytes[6] = bytes[6] & 0x0f | version << 4;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Ok(Datum::Uuid(bytes))
}

/// The bytes of a text or of bytes.
fn bytes(value: &Datum) -> &[u8] {
    match value {
        Datum::Text(text) => text.as_bytes(),
        value => value.as_bytes(),
    }
}

/// Its name without capitals and hyphens: `SHA-1` is `sha1`.
fn algorithm(name: &str) -> String {
    name.replace('-', "").to_ascii_lowercase()
}

fn digest(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let data = bytes(&a[0]);
    let made = |digest: &[u8]| Ok(Datum::bytes(digest));
    match algorithm(a[1].as_text()).as_str() {
        "md5" => made(&Md5::digest(data)),
        "sha1" => made(&Sha1::digest(data)),
        "sha224" => made(&Sha224::digest(data)),
        "sha256" => made(&Sha256::digest(data)),
        "sha384" => made(&Sha384::digest(data)),
        "sha512" => made(&Sha512::digest(data)),
        _ => Err(no_algorithm(a[1].as_text())),
    }
}

fn hmac(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (data, key) = (bytes(&a[0]), bytes(&a[1]));
    match algorithm(a[2].as_text()).as_str() {
        "md5" => keyed::<Hmac<Md5>>(data, key),
        "sha1" => keyed::<Hmac<Sha1>>(data, key),
        "sha224" => keyed::<Hmac<Sha224>>(data, key),
        "sha256" => keyed::<Hmac<Sha256>>(data, key),
        "sha384" => keyed::<Hmac<Sha384>>(data, key),
        "sha512" => keyed::<Hmac<Sha512>>(data, key),
        _ => Err(no_algorithm(a[2].as_text())),
    }
}

fn keyed<M: Mac + KeyInit>(data: &[u8], key: &[u8]) -> Result<Datum> {
    let mut mac = <M as KeyInit>::new_from_slice(key)
        .map_err(|_| QueryError::internal("a key that HMAC does not take"))?;
    mac.update(data);
    Ok(Datum::bytes(&mac.finalize().into_bytes()[..]))
}

#[cold]
fn no_algorithm(name: &str) -> QueryError {
    QueryError::invalid_parameter(format!("Cannot use \"{name}\": No such hash algorithm"))
}

/// As many as PostgreSQL's gives at once.
const RANDOM_BYTES_MAX: usize = 1024;

fn random_bytes(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let count = usize::try_from(a[0].as_int4()).unwrap_or(0);
    if !(1..=RANDOM_BYTES_MAX).contains(&count) {
        return Err(QueryError::new("39000", "Length not in range"));
    }
    let mut bytes = vec![0; count];
    getrandom::fill(&mut bytes)
        .map_err(|error| QueryError::internal(format!("no random bytes: {error}")))?;
    Ok(Datum::bytes(bytes))
}
