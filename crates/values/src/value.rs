//! Values, owned and borrowed, and their one total order.
//!
//! The order is PostgreSQL's: NULL is larger than everything, NaN larger than
//! every number and equal to itself, -0 equal to 0, texts by their bytes (the
//! "C" collation). A `char(n)` value is kept without its trailing blanks, which
//! makes its comparison ignore them; printing pads it again. Values of
//! different types have an order too, so that sorting never fails, but it
//! means nothing: `compare::compare` promotes first.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

use crate::numeric::Numeric;
use crate::numeric::long::{self, LONG};
use crate::other_type::OtherType;
use crate::types::DataType;

/// A date or timestamp later than all others, PostgreSQL's `infinity`.
pub const DATE_INFINITY: i32 = i32::MAX;
/// A date earlier than all others, PostgreSQL's `-infinity`.
pub const DATE_NEGATIVE_INFINITY: i32 = i32::MIN;
/// A timestamp later than all others, PostgreSQL's `infinity`.
pub const TIMESTAMP_INFINITY: i64 = i64::MAX;
/// A timestamp earlier than all others, PostgreSQL's `-infinity`.
pub const TIMESTAMP_NEGATIVE_INFINITY: i64 = i64::MIN;

/// A value that owns its bytes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub enum Value {
    /// SQL's NULL, of any type.
    #[default]
    Null,
    /// `boolean`
    Boolean(bool),
    /// `smallint`
    SmallInt(i16),
    /// `integer`
    Integer(i32),
    /// `bigint`
    BigInt(i64),
    /// `real`
    Real(#[serde(with = "bits_of_f32")] f32),
    /// `double precision`
    Double(#[serde(with = "bits_of_f64")] f64),
    /// `numeric` of up to 38 digits; others are `Other` with the number [`LONG`]
    Numeric(#[serde(with = "numeric_as_text")] Numeric),
    /// `text`, `varchar` and `char` (this last without trailing blanks)
    Text(String),
    /// `bytea`
    Bytea(Vec<u8>),
    /// `date`: days since 2000-01-01
    Date(i32),
    /// `timestamp`: microseconds since 2000-01-01
    Timestamp(i64),
    /// `timestamptz`: microseconds since 2000-01-01 UTC
    TimestampTz(i64),
    /// `uuid`
    Uuid([u8; 16]),
    /// A type of [`OtherType`], by its number: its bytes
    Other(u32, Vec<u8>),
}

/// A value whose text or bytes are somebody else's.
#[derive(Clone, Copy, Debug, Default)]
pub enum ValueRef<'a> {
    /// SQL's NULL, of any type.
    #[default]
    Null,
    /// `boolean`
    Boolean(bool),
    /// `smallint`
    SmallInt(i16),
    /// `integer`
    Integer(i32),
    /// `bigint`
    BigInt(i64),
    /// `real`
    Real(f32),
    /// `double precision`
    Double(f64),
    /// `numeric` of up to 38 digits; others are `Other` with the number [`LONG`]
    Numeric(Numeric),
    /// `text`, `varchar` and `char` (this last without trailing blanks)
    Text(&'a str),
    /// `bytea`
    Bytea(&'a [u8]),
    /// `date`: days since 2000-01-01
    Date(i32),
    /// `timestamp`: microseconds since 2000-01-01
    Timestamp(i64),
    /// `timestamptz`: microseconds since 2000-01-01 UTC
    TimestampTz(i64),
    /// `uuid`
    Uuid([u8; 16]),
    /// A type of [`OtherType`], by its number: its bytes
    Other(u32, &'a [u8]),
}

impl Value {
    /// The same value, borrowed.
    #[must_use]
    #[inline]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Null => ValueRef::Null,
            Self::Boolean(value) => ValueRef::Boolean(*value),
            Self::SmallInt(value) => ValueRef::SmallInt(*value),
            Self::Integer(value) => ValueRef::Integer(*value),
            Self::BigInt(value) => ValueRef::BigInt(*value),
            Self::Real(value) => ValueRef::Real(*value),
            Self::Double(value) => ValueRef::Double(*value),
            Self::Numeric(value) => ValueRef::Numeric(*value),
            Self::Text(value) => ValueRef::Text(value),
            Self::Bytea(value) => ValueRef::Bytea(value),
            Self::Date(value) => ValueRef::Date(*value),
            Self::Timestamp(value) => ValueRef::Timestamp(*value),
            Self::TimestampTz(value) => ValueRef::TimestampTz(*value),
            Self::Uuid(value) => ValueRef::Uuid(*value),
            Self::Other(oid, value) => ValueRef::Other(*oid, value),
        }
    }

    /// The type that the value has by itself; NULL has none.
    #[must_use]
    pub const fn data_type(&self) -> Option<DataType> {
        Some(match self {
            Self::Null => return None,
            Self::Boolean(_) => DataType::Boolean,
            Self::SmallInt(_) => DataType::SmallInt,
            Self::Integer(_) => DataType::Integer,
            Self::BigInt(_) => DataType::BigInt,
            Self::Real(_) => DataType::Real,
            Self::Double(_) => DataType::Double,
            Self::Numeric(_) => DataType::NUMERIC,
            Self::Text(_) => DataType::Text,
            Self::Bytea(_) => DataType::Bytea,
            Self::Date(_) => DataType::Date,
            Self::Timestamp(_) => DataType::Timestamp,
            Self::TimestampTz(_) => DataType::TimestampTz,
            Self::Uuid(_) => DataType::Uuid,
            Self::Other(LONG, _) => DataType::NUMERIC,
            Self::Other(oid, _) => DataType::Other {
                oid: *oid,
                modifier: -1,
            },
        })
    }

    /// Whether this is NULL.
    #[must_use]
    #[inline]
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }
}

impl ValueRef<'_> {
    /// The same value, with its own copy of text or bytes.
    #[must_use]
    pub fn to_owned(&self) -> Value {
        match *self {
            Self::Null => Value::Null,
            Self::Boolean(value) => Value::Boolean(value),
            Self::SmallInt(value) => Value::SmallInt(value),
            Self::Integer(value) => Value::Integer(value),
            Self::BigInt(value) => Value::BigInt(value),
            Self::Real(value) => Value::Real(value),
            Self::Double(value) => Value::Double(value),
            Self::Numeric(value) => Value::Numeric(value),
            Self::Text(value) => Value::Text(value.to_string()),
            Self::Bytea(value) => Value::Bytea(value.to_vec()),
            Self::Date(value) => Value::Date(value),
            Self::Timestamp(value) => Value::Timestamp(value),
            Self::TimestampTz(value) => Value::TimestampTz(value),
            Self::Uuid(value) => Value::Uuid(value),
            Self::Other(oid, value) => Value::Other(oid, value.to_vec()),
        }
    }

    /// Whether this is NULL.
    #[must_use]
    #[inline]
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The place of the value's type among the types, NULL last.
    const fn rank(&self) -> u8 {
        match self {
            Self::Boolean(_) => 0,
            Self::SmallInt(_) => 1,
            Self::Integer(_) => 2,
            Self::BigInt(_) => 3,
            Self::Real(_) => 4,
            Self::Double(_) => 5,
            Self::Numeric(_) | Self::Other(LONG, _) => 6,
            Self::Text(_) => 7,
            Self::Bytea(_) => 8,
            Self::Date(_) => 9,
            Self::Timestamp(_) => 10,
            Self::TimestampTz(_) => 11,
            Self::Uuid(_) => 12,
            Self::Other(..) => 13,
            Self::Null => 14,
        }
    }
}

/// PostgreSQL's order of doubles: NaN equals itself and exceeds all others.
#[must_use]
#[inline]
pub fn compare_doubles(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b)
        .unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

impl Ord for ValueRef<'_> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        match (*self, *other) {
            (Self::Boolean(a), Self::Boolean(b)) => a.cmp(&b),
            (Self::SmallInt(a), Self::SmallInt(b)) => a.cmp(&b),
            (Self::Integer(a), Self::Integer(b)) | (Self::Date(a), Self::Date(b)) => a.cmp(&b),
            (Self::BigInt(a), Self::BigInt(b))
            | (Self::Timestamp(a), Self::Timestamp(b))
            | (Self::TimestampTz(a), Self::TimestampTz(b)) => a.cmp(&b),
            (Self::Real(a), Self::Real(b)) => compare_doubles(a.into(), b.into()),
            (Self::Double(a), Self::Double(b)) => compare_doubles(a, b),
            (Self::Numeric(a), Self::Numeric(b)) => a.cmp(&b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Bytea(a), Self::Bytea(b)) => a.cmp(b),
            (Self::Uuid(a), Self::Uuid(b)) => a.cmp(&b),
            (Self::Other(a_type, a), Self::Other(b_type, b)) => {
                (a_type, key_of(a_type, a)).cmp(&(b_type, key_of(b_type, b)))
            }
            (Self::Numeric(_), Self::Other(LONG, _)) | (Self::Other(LONG, _), Self::Numeric(_)) => {
                compare_keys(*self, *other)
            }
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

/// Numerics of which one has not the small form.
#[cold]
fn compare_keys(a: ValueRef<'_>, b: ValueRef<'_>) -> Ordering {
    let order = long::with_key(a, |a| long::with_key(b, |b| a.cmp(b)));
    order.flatten().unwrap_or(Ordering::Equal)
}

impl PartialOrd for ValueRef<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ValueRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for ValueRef<'_> {}

impl Hash for ValueRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.rank().hash(state);
        match *self {
            Self::Null => {}
            Self::Boolean(value) => value.hash(state),
            Self::SmallInt(value) => value.hash(state),
            Self::Integer(value) | Self::Date(value) => value.hash(state),
            Self::BigInt(value) | Self::Timestamp(value) | Self::TimestampTz(value) => {
                value.hash(state);
            }
            Self::Real(value) => canonical_double(value.into()).to_bits().hash(state),
            Self::Double(value) => canonical_double(value).to_bits().hash(state),
            Self::Numeric(value) => value.hash(state),
            Self::Text(value) => value.hash(state),
            Self::Bytea(value) => value.hash(state),
            Self::Uuid(value) => value.hash(state),
            // As the small form, if it has one of another scale.
            Self::Other(LONG, value) => match long::narrow(value) {
                Some(small) => small.hash(state),
                None => long::key_of(value).hash(state),
            },
            Self::Other(oid, value) => key_of(oid, value).hash(state),
        }
    }
}

/// The bytes that order and equal as the values do.
fn key_of(oid: u32, value: &[u8]) -> &[u8] {
    if oid == LONG {
        return long::key_of(value);
    }
    OtherType::of(oid).map_or(value, |other| other.key_of(value))
}

/// One bit pattern for all NaNs and for both zeros.
#[must_use]
#[inline]
pub fn canonical_double(value: f64) -> f64 {
    if value.is_nan() {
        f64::NAN
    } else if value == 0.0 {
        0.0
    } else {
        value
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_ref().cmp(&other.as_ref())
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.as_ref() == other.as_ref()
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_ref().hash(state);
    }
}

/// Formats such as JSON have no NaN and no infinity; the bits survive.
mod bits_of_f64 {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(value.to_bits())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        u64::deserialize(from).map(f64::from_bits)
    }
}

/// As `bits_of_f64`.
mod bits_of_f32 {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &f32, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u32(value.to_bits())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f32, D::Error> {
        u32::deserialize(from).map(f32::from_bits)
    }
}

/// Formats such as JSON have no integers of 128 bits.
mod numeric_as_text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::numeric::Numeric;

    pub(super) fn serialize<S: Serializer>(value: &Numeric, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(value)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Numeric, D::Error> {
        let text = String::deserialize(from)?;
        Numeric::parse(&text).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::hash_map::DefaultHasher;

    use super::*;

    fn hash(value: &Value) -> u64 {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn a_value_takes_32_bytes() {
        assert_eq!(size_of::<Value>(), 32);
        assert_eq!(size_of::<ValueRef<'_>>(), 32);
    }

    #[test]
    fn nan_and_null_are_the_greatest_and_equal_themselves() {
        let nan = Value::Double(f64::NAN);
        assert!(nan > Value::Double(f64::INFINITY));
        assert_eq!(nan, Value::Double(-f64::NAN));
        assert_eq!(hash(&nan), hash(&Value::Double(-f64::NAN)));
        assert!(Value::Null > nan);
        assert_eq!(Value::Null, Value::Null);
    }

    #[test]
    fn equal_values_hash_alike() {
        let (a, b) = (Value::Double(-0.0), Value::Double(0.0));
        assert_eq!(a, b);
        assert_eq!(hash(&a), hash(&b));
        let a = Value::Numeric(Numeric::parse("1.0").unwrap());
        let b = Value::Numeric(Numeric::parse("1.000").unwrap());
        assert_eq!(a, b);
        assert_eq!(hash(&a), hash(&b));
    }

    #[test]
    fn texts_are_ordered_by_their_bytes() {
        assert!(Value::Text("Z".into()) < Value::Text("a".into()));
        assert!(Value::Text("a".into()) < Value::Text("é".into()));
        assert!(Value::Text("a".into()) < Value::Text("aa".into()));
    }

    #[test]
    fn borrowing_and_owning_are_inverse() {
        for value in [
            Value::Null,
            Value::Text("warm".into()),
            Value::Bytea(vec![0, 255]),
            Value::Uuid([7; 16]),
            Value::Date(DATE_INFINITY),
            Value::TimestampTz(TIMESTAMP_NEGATIVE_INFINITY),
        ] {
            assert_eq!(value.as_ref().to_owned(), value);
        }
    }
}
