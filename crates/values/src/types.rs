//! The types a column can have, and their names and numbers in PostgreSQL.
//! Clients decide how to read a result from `oid`, `typlen` and `typmod`, so
//! these are PostgreSQL's own.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::other_type::{KeyPart, OtherType, USERS_TYPES, forms};
use crate::value_error::ValueError;

/// The most decimal digits that a `numeric` has in its small form.
pub const NUMERIC_DIGITS_MAX: u8 = 38;

/// The greatest precision of a `numeric(precision, scale)`, and the greatest scale.
const NUMERIC_PRECISION_MAX: i64 = 1000;

/// The longest `varchar(n)` and `char(n)`, in characters, as in PostgreSQL.
pub const TEXT_LENGTH_MAX: u32 = 10_485_760;

/// The most digits of a second that a timestamp has.
pub const SECOND_DIGITS_MAX: u8 = 6;

/// The offset PostgreSQL adds to a length before it calls it a typmod.
const TYPMOD_OFFSET: i32 = 4;

/// The type of a column or of an expression.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum DataType {
    /// `boolean`
    Boolean,
    /// `smallint`, 16 bits
    SmallInt,
    /// `integer`, 32 bits
    Integer,
    /// `bigint`, 64 bits
    BigInt,
    /// `real`, 32 bits
    Real,
    /// `double precision`, 64 bits
    Double,
    /// `numeric(precision, scale)`
    Numeric {
        /// Decimal digits in all; 0 means unconstrained.
        precision: u16,
        /// Decimal digits after the point; negative ones are rounded away before it.
        scale: i16,
    },
    /// `text`
    Text,
    /// `character varying(n)`; 0 means no limit.
    Varchar(u32),
    /// `character(n)`; 0 is PostgreSQL's `bpchar` without a length.
    Char(u32),
    /// `bytea`
    Bytea,
    /// `date`
    Date,
    /// `timestamp without time zone`
    Timestamp,
    /// `timestamp with time zone`
    TimestampTz,
    /// `uuid`
    Uuid,
    /// `timestamp(p) without time zone`: so many digits of a second
    TimestampTo(u8),
    /// `timestamp(p) with time zone`
    TimestampTzTo(u8),
    /// A type of [`OtherType`]: bytes to the storage.
    Other {
        /// Its number in `pg_type`.
        oid: u32,
        /// Its modifier; -1 for none.
        modifier: i32,
    },
}

impl DataType {
    /// `numeric` without precision.
    pub const NUMERIC: Self = Self::Numeric {
        precision: 0,
        scale: 0,
    };

    /// `numeric(precision, scale)`.
    ///
    /// # Errors
    /// 22023 when the precision is not within 1 to 1000, or the scale not within -1000 to 1000.
    pub fn numeric(precision: i64, scale: i64) -> Result<Self, ValueError> {
        let refused = |what: &str, given: i64, least: i64| {
            let most = NUMERIC_PRECISION_MAX;
            let message = format!("NUMERIC {what} {given} must be between {least} and {most}");
            ValueError::new("22023", message)
        };
        if !(1..=NUMERIC_PRECISION_MAX).contains(&precision) {
            return Err(refused("precision", precision, 1));
        }
        if !(-NUMERIC_PRECISION_MAX..=NUMERIC_PRECISION_MAX).contains(&scale) {
            return Err(refused("scale", scale, -NUMERIC_PRECISION_MAX));
        }
        Ok(Self::Numeric {
            precision: precision as u16,
            scale: scale as i16,
        })
    }

    /// The digits after the point of a `numeric` whose values all have the small form: it has a
    /// fixed width.
    #[must_use]
    pub fn small_scale(&self) -> Option<u8> {
        const MOST: u16 = NUMERIC_DIGITS_MAX as u16;
        match *self {
            Self::Numeric {
                precision: 1..=MOST,
                scale,
            } => u8::try_from(scale)
                .ok()
                .filter(|scale| *scale <= NUMERIC_DIGITS_MAX),
            _ => None,
        }
    }

    /// The type's number in `pg_type`.
    #[must_use]
    pub const fn oid(&self) -> u32 {
        match self {
            Self::Boolean => 16,
            Self::Bytea => 17,
            Self::BigInt => 20,
            Self::SmallInt => 21,
            Self::Integer => 23,
            Self::Text => 25,
            Self::Real => 700,
            Self::Double => 701,
            Self::Char(_) => 1042,
            Self::Varchar(_) => 1043,
            Self::Date => 1082,
            Self::Timestamp | Self::TimestampTo(_) => 1114,
            Self::TimestampTz | Self::TimestampTzTo(_) => 1184,
            Self::Numeric { .. } => 1700,
            Self::Uuid => 2950,
            Self::Other { oid, .. } => *oid,
        }
    }

    /// The type with this number and modifier, if it is one of ours.
    #[must_use]
    pub fn from_oid(oid: u32, typmod: i32) -> Option<Self> {
        let length = || u32::try_from(typmod.saturating_sub(TYPMOD_OFFSET)).unwrap_or(0);
        let digits = || {
            u8::try_from(typmod)
                .ok()
                .filter(|digits| *digits <= SECOND_DIGITS_MAX)
        };
        Some(match oid {
            16 => Self::Boolean,
            17 => Self::Bytea,
            20 => Self::BigInt,
            21 => Self::SmallInt,
            23 => Self::Integer,
            25 => Self::Text,
            700 => Self::Real,
            701 => Self::Double,
            1042 => Self::Char(length()),
            1043 => Self::Varchar(length()),
            1082 => Self::Date,
            1114 => digits().map_or(Self::Timestamp, Self::TimestampTo),
            1184 => digits().map_or(Self::TimestampTz, Self::TimestampTzTo),
            1700 if typmod < TYPMOD_OFFSET => Self::NUMERIC,
            1700 => {
                let packed = length();
                // The scale has 11 bits with a sign.
                let scale = i64::from((packed & 0x7ff) ^ 0x400) - 0x400;
                Self::numeric(i64::from(packed >> 16), scale).ok()?
            }
            2950 => Self::Uuid,
            _ => {
                OtherType::of(oid)?;
                let modifier = typmod.max(-1);
                Self::Other { oid, modifier }
            }
        })
    }

    /// PostgreSQL's modifier of the type; -1 when there is none.
    #[must_use]
    pub const fn typmod(&self) -> i32 {
        match self {
            Self::Varchar(length) | Self::Char(length) if *length > 0 => {
                *length as i32 + TYPMOD_OFFSET
            }
            Self::Numeric { precision, scale } if *precision > 0 => {
                (((*precision as i32) << 16) | (*scale as i32 & 0x7ff)) + TYPMOD_OFFSET
            }
            Self::TimestampTo(digits) | Self::TimestampTzTo(digits) => *digits as i32,
            Self::Other { modifier, .. } => *modifier,
            _ => -1,
        }
    }

    /// PostgreSQL's length of the type in bytes; -1 when it varies.
    #[must_use]
    pub fn typlen(&self) -> i16 {
        match self {
            Self::Boolean => 1,
            Self::SmallInt => 2,
            Self::Integer | Self::Real | Self::Date => 4,
            Self::BigInt
            | Self::Double
            | Self::Timestamp
            | Self::TimestampTz
            | Self::TimestampTo(_)
            | Self::TimestampTzTo(_) => 8,
            Self::Uuid => 16,
            Self::Numeric { .. } | Self::Text | Self::Varchar(_) | Self::Char(_) | Self::Bytea => {
                -1
            }
            Self::Other { oid, .. } => OtherType::of(*oid).map_or(-1, |other| other.length),
        }
    }

    /// The bytes that every value of the type takes in a tuple and in a key,
    /// or `None` when they vary. A numeric of up to 38 digits has a fixed scale
    /// and so a fixed width, which lets an update overwrite it in place.
    #[must_use]
    pub fn fixed_width(&self) -> Option<usize> {
        match self {
            Self::Numeric { precision, .. } => self.small_scale().map(|_| match precision {
                1..=9 => 4,
                10..=18 => 8,
                _ => 16,
            }),
            Self::Other { oid, .. } => OtherType::of(*oid)?.width,
            _ => match self.typlen() {
                -1 => None,
                length => Some(length as usize),
            },
        }
    }

    /// Whether every value of the type takes the same number of bytes.
    #[must_use]
    pub fn is_fixed_width(&self) -> bool {
        self.fixed_width().is_some()
    }

    /// The type's full SQL name without its modifier, as error messages use it.
    #[must_use]
    pub fn base_name(&self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::SmallInt => "smallint",
            Self::Integer => "integer",
            Self::BigInt => "bigint",
            Self::Real => "real",
            Self::Double => "double precision",
            Self::Numeric { .. } => "numeric",
            Self::Text => "text",
            Self::Varchar(_) => "character varying",
            Self::Char(_) => "character",
            Self::Bytea => "bytea",
            Self::Date => "date",
            Self::Timestamp | Self::TimestampTo(_) => "timestamp without time zone",
            Self::TimestampTz | Self::TimestampTzTo(_) => "timestamp with time zone",
            Self::Uuid => "uuid",
            Self::Other { oid, .. } => OtherType::of(*oid).map_or("???", |other| other.full_name),
        }
    }

    /// The type's name in `pg_type`.
    #[must_use]
    pub fn typname(&self) -> &'static str {
        match self {
            Self::Boolean => "bool",
            Self::SmallInt => "int2",
            Self::Integer => "int4",
            Self::BigInt => "int8",
            Self::Real => "float4",
            Self::Double => "float8",
            Self::Numeric { .. } => "numeric",
            Self::Text => "text",
            Self::Varchar(_) => "varchar",
            Self::Char(_) => "bpchar",
            Self::Bytea => "bytea",
            Self::Date => "date",
            Self::Timestamp | Self::TimestampTo(_) => "timestamp",
            Self::TimestampTz | Self::TimestampTzTo(_) => "timestamptz",
            Self::Uuid => "uuid",
            Self::Other { oid, .. } => OtherType::of(*oid).map_or("???", |other| other.typname),
        }
    }

    /// The other floor's type whose values are bytes here.
    #[must_use]
    pub fn other(&self) -> Option<&'static OtherType> {
        match self {
            Self::Other { oid, .. } => OtherType::of(*oid),
            _ => None,
        }
    }

    /// Whether an index may be over values of the type.
    #[must_use]
    pub fn has_key(&self) -> bool {
        self.other().is_none_or(|other| other.key != KeyPart::None)
    }

    /// `smallint`, `integer` or `bigint`.
    #[must_use]
    pub const fn is_integer(&self) -> bool {
        matches!(self, Self::SmallInt | Self::Integer | Self::BigInt)
    }

    /// Any type that arithmetic knows: integers, floats, numeric.
    #[must_use]
    pub const fn is_number(&self) -> bool {
        self.is_integer() || matches!(self, Self::Real | Self::Double | Self::Numeric { .. })
    }

    /// `timestamp` or `timestamptz`, with a precision or without.
    #[must_use]
    pub const fn is_timestamp(&self) -> bool {
        matches!(
            self,
            Self::Timestamp | Self::TimestampTz | Self::TimestampTo(_) | Self::TimestampTzTo(_)
        )
    }

    /// `text`, `character varying` or `character`.
    #[must_use]
    pub const fn is_text(&self) -> bool {
        matches!(self, Self::Text | Self::Varchar(_) | Self::Char(_))
    }
}

/// The name that PostgreSQL's `format_type(oid, typmod)` gives.
impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Numeric { precision, scale } if *precision > 0 => {
                write!(f, "numeric({precision},{scale})")
            }
            Self::Varchar(length) if *length > 0 => write!(f, "character varying({length})"),
            Self::Char(0) => f.write_str("bpchar"),
            Self::Char(length) => write!(f, "character({length})"),
            Self::TimestampTo(digits) => write!(f, "timestamp({digits}) without time zone"),
            Self::TimestampTzTo(digits) => write!(f, "timestamp({digits}) with time zone"),
            Self::Other { oid, .. } if USERS_TYPES.contains(oid) => {
                f.write_str(&forms().type_name(*oid))
            }
            other => f.write_str(other.base_name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [DataType; 23] = [
        DataType::Boolean,
        DataType::SmallInt,
        DataType::Integer,
        DataType::BigInt,
        DataType::Real,
        DataType::Double,
        DataType::NUMERIC,
        DataType::Numeric {
            precision: 12,
            scale: 2,
        },
        DataType::Text,
        DataType::Varchar(0),
        DataType::Varchar(10),
        DataType::Char(0),
        DataType::Char(1),
        DataType::Char(24),
        DataType::Bytea,
        DataType::Date,
        DataType::Timestamp,
        DataType::TimestampTz,
        DataType::TimestampTo(3),
        DataType::TimestampTzTo(0),
        DataType::Uuid,
        DataType::Other {
            oid: 3802,
            modifier: -1,
        },
        DataType::Other {
            oid: 1083,
            modifier: 3,
        },
    ];

    #[test]
    fn oid_and_typmod_lead_back_to_the_type() {
        for data_type in ALL {
            assert_eq!(
                DataType::from_oid(data_type.oid(), data_type.typmod()),
                Some(data_type)
            );
        }
        assert_eq!(DataType::from_oid(2249, -1), None);
        let long = DataType::numeric(50, -3).unwrap();
        assert_eq!(DataType::from_oid(1700, long.typmod()), Some(long));
        assert_eq!(DataType::from_oid(1700, (1001 << 16) + 4), None);
    }

    #[test]
    fn names_and_modifiers_are_those_of_format_type() {
        let numeric = DataType::numeric(12, 2).unwrap();
        assert_eq!(numeric.to_string(), "numeric(12,2)");
        assert_eq!(numeric.typmod(), 786_438);
        assert_eq!(DataType::NUMERIC.to_string(), "numeric");
        assert_eq!(DataType::Varchar(10).to_string(), "character varying(10)");
        assert_eq!(DataType::Varchar(10).typmod(), 14);
        assert_eq!(DataType::Varchar(0).to_string(), "character varying");
        assert_eq!(DataType::Char(0).to_string(), "bpchar");
        assert_eq!(DataType::Char(1).to_string(), "character(1)");
        assert_eq!(
            DataType::Timestamp.to_string(),
            "timestamp without time zone"
        );
        let millis = DataType::TimestampTzTo(3);
        assert_eq!(millis.to_string(), "timestamp(3) with time zone");
        assert_eq!((millis.typmod(), millis.oid()), (3, 1184));
    }

    #[test]
    fn precision_out_of_bounds_is_refused() {
        assert_eq!(DataType::numeric(1001, 0).unwrap_err().sqlstate, "22023");
        assert_eq!(DataType::numeric(0, 0).unwrap_err().sqlstate, "22023");
        assert_eq!(DataType::numeric(3, -1001).unwrap_err().sqlstate, "22023");
        assert!(DataType::numeric(1000, 1000).is_ok());
    }

    #[test]
    fn a_numeric_with_a_precision_has_a_fixed_width() {
        assert_eq!(DataType::numeric(9, 2).unwrap().fixed_width(), Some(4));
        assert_eq!(DataType::numeric(12, 2).unwrap().fixed_width(), Some(8));
        assert_eq!(DataType::numeric(19, 2).unwrap().fixed_width(), Some(16));
        assert_eq!(DataType::numeric(3, 5).unwrap().fixed_width(), Some(4));
        assert_eq!(DataType::numeric(39, 2).unwrap().fixed_width(), None);
        assert_eq!(DataType::numeric(3, -1).unwrap().fixed_width(), None);
        assert_eq!(DataType::NUMERIC.fixed_width(), None);
        assert!(DataType::Uuid.is_fixed_width());
        assert!(!DataType::Char(3).is_fixed_width());
    }
}
