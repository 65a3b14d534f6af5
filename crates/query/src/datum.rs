//! A value of any of PostgreSQL's types, as expressions compute with it. What
//! is larger than a word is shared, since constants and columns are copied
//! often. A datum does not know its type: the expression it comes from does.

use std::sync::Arc;

use crate::types::array::Array;
use crate::types::bit::BitString;
use crate::types::inet::Inet;
use crate::types::interval::Interval;
use crate::types::jsonb::Jsonb;
use crate::types::jsonpath::JsonPath;
use crate::types::numeric::Numeric;
use crate::types::range::Range;
use crate::types::time::TimeTz;

/// A value.
#[derive(Clone, Debug, Default)]
pub enum Datum {
    /// SQL's NULL, of any type.
    #[default]
    Null,
    /// `bool`
    Bool(bool),
    /// `"char"`, one byte
    Char(u8),
    /// `int2`
    Int2(i16),
    /// `int4`
    Int4(i32),
    /// `int8`
    Int8(i64),
    /// `oid` and all that is a number of an object: `regclass`, `regtype`, …; `xid`, `cid`
    Oid(u32),
    /// `float4`
    Float4(f32),
    /// `float8`
    Float8(f64),
    /// `numeric`
    Numeric(Numeric),
    /// `text`, `varchar`, `bpchar` (with its padding), `name`, `json`, `cstring`, `unknown`
    Text(Arc<str>),
    /// `bytea`
    Bytea(Arc<[u8]>),
    /// `date`: days since 2000-01-01; the least and the greatest number are the infinities
    Date(i32),
    /// `time`: microseconds since midnight
    Time(i64),
    /// `timetz`
    TimeTz(TimeTz),
    /// `timestamp`: microseconds since 2000-01-01; least and greatest are the infinities
    Timestamp(i64),
    /// `timestamptz`: microseconds since 2000-01-01 UTC, as `timestamp`
    TimestampTz(i64),
    /// `interval`
    Interval(Interval),
    /// `uuid`
    Uuid([u8; 16]),
    /// `jsonb`
    Jsonb(Arc<Jsonb>),
    /// `jsonpath`
    JsonPath(Arc<JsonPath>),
    /// An array of any type; `int2vector`, `oidvector`
    Array(Arc<Array>),
    /// A row: composite types and `record`
    Record(Arc<Record>),
    /// `inet`, `cidr`
    Inet(Inet),
    /// `macaddr` (six bytes, then two of zero), `macaddr8`
    MacAddr([u8; 8]),
    /// `bit`, `varbit`
    Bit(Arc<BitString>),
    /// `int4range`, `numrange`, …
    Range(Arc<Range>),
    /// A value of an enum: its place among the labels.
    Enum(u64),
}

/// A row's values and their types.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The numbers of the columns' types.
    pub types: Arc<[u32]>,
    /// The columns' names; `f1`, `f2`, … where nothing gave them any.
    pub names: Option<Arc<[Arc<str>]>>,
    /// The modifiers of the columns' types, where something said them: by them values are read
    /// (`json_populate_record`).
    pub modifiers: Option<Arc<[i32]>>,
    /// The columns' values.
    pub values: Vec<Datum>,
}

impl Datum {
    /// A text.
    #[must_use]
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::Text(text.into())
    }

    /// Bytes.
    #[must_use]
    pub fn bytes(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self::Bytea(bytes.into())
    }

    /// Whether this is NULL.
    #[must_use]
    #[inline]
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }
}

/// Reads the value that a function's signature promises; another one is a
/// defect of this crate, which ends the statement with XX000.
macro_rules! accessors {
    ($($name:ident, $variant:ident, $type:ty;)*) => {
        impl Datum {
            $(
                /// The value, which is of this type by the function's signature.
                ///
                /// # Panics
                /// If it is of another type, which is this crate's own mistake.
                #[must_use]
                #[inline]
                #[track_caller]
                pub fn $name(&self) -> $type {
                    match self {
                        Self::$variant(value) => value.clone(),
                        other => unexpected(stringify!($variant), other),
                    }
                }
            )*
        }
    };
}

accessors! {
    as_bool, Bool, bool;
    as_char, Char, u8;
    as_int2, Int2, i16;
    as_int4, Int4, i32;
    as_int8, Int8, i64;
    as_oid, Oid, u32;
    as_float4, Float4, f32;
    as_float8, Float8, f64;
    as_date, Date, i32;
    as_time, Time, i64;
    as_timetz, TimeTz, TimeTz;
    as_timestamp, Timestamp, i64;
    as_timestamptz, TimestampTz, i64;
    as_interval, Interval, Interval;
    as_uuid, Uuid, [u8; 16];
    as_inet, Inet, Inet;
    as_macaddr, MacAddr, [u8; 8];
    as_enum, Enum, u64;
}

/// As `accessors`, for what is borrowed.
macro_rules! borrowing {
    ($($name:ident, $variant:ident, $type:ty;)*) => {
        impl Datum {
            $(
                /// The value, which is of this type by the function's signature.
                ///
                /// # Panics
                /// If it is of another type, which is this crate's own mistake.
                #[must_use]
                #[inline]
                #[track_caller]
                pub fn $name(&self) -> &$type {
                    match self {
                        Self::$variant(value) => value,
                        other => unexpected(stringify!($variant), other),
                    }
                }
            )*
        }
    };
}

borrowing! {
    as_text, Text, str;
    as_bytes, Bytea, [u8];
    as_numeric, Numeric, Numeric;
    as_jsonb, Jsonb, Jsonb;
    as_jsonpath, JsonPath, JsonPath;
    as_array, Array, Array;
    as_record, Record, Record;
    as_bit, Bit, BitString;
    as_range, Range, Range;
}

#[cold]
#[track_caller]
fn unexpected(wanted: &str, found: &Datum) -> ! {
    panic!("a value of {wanted} was promised, not {found:?}")
}
