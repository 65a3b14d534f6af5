//! Types whose values are bytes to the storage: another floor makes and reads them. What the
//! storage knows of such a type is its names, whether its values have a width, and which of their
//! bytes order and equal as the values do.

use std::sync::OnceLock;

use crate::arithmetic::Operator;
use crate::text_format;
use crate::types::DataType;
use crate::value::Value;
use crate::value_error::ValueError;

/// Which bytes of a value are its key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyPart {
    /// None: the type has no order, or none that its bytes have. No index is over it.
    None,
    /// So many at the front; what follows does not tell two equal values apart.
    First(usize),
    /// All but so many at the end, which do not tell two equal values apart.
    AllBut(usize),
    /// All of them.
    Whole,
}

/// What the storage knows of such a type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OtherType {
    /// Its number in `pg_type`
    pub oid: u32,
    /// Its name in `pg_type`
    pub typname: &'static str,
    /// Its name in SQL without a modifier
    pub full_name: &'static str,
    /// PostgreSQL's length of its values in bytes; -1 when it varies
    pub length: i16,
    /// The bytes that each value takes in a tuple, if all take as many
    pub width: Option<usize>,
    /// Which bytes are the key
    pub key: KeyPart,
}

impl OtherType {
    /// The type of this number, if it is one of these.
    #[must_use]
    pub fn of(oid: u32) -> Option<&'static Self> {
        if USERS_TYPES.contains(&oid) {
            return match oid & USERS_CLASS_BITS {
                0 => Some(&ENUM),
                2 => Some(&ROW),
                1 | 3 | 5 => Some(&USERS_ARRAY),
                _ => None,
            };
        }
        let place = OTHER_TYPES.binary_search_by_key(&oid, |row| row.oid);
        place.ok().map(|place| &OTHER_TYPES[place])
    }

    /// The bytes of a value by which it is ordered and compared.
    #[must_use]
    pub fn key_of<'a>(&self, value: &'a [u8]) -> &'a [u8] {
        match self.key {
            KeyPart::First(bytes) => value.get(..bytes).unwrap_or(value),
            KeyPart::AllBut(bytes) => {
                let length = value.len().saturating_sub(bytes);
                value.get(..length).unwrap_or(value)
            }
            KeyPart::None | KeyPart::Whole => value,
        }
    }
}

/// What reads and shows the values: the floor that knows the types.
pub trait OtherForms: Sync {
    /// The bytes of the value that a text says.
    ///
    /// # Errors
    /// As the type's input function in PostgreSQL.
    fn parse_text(&self, oid: u32, modifier: i32, text: &str) -> Result<Vec<u8>, ValueError>;

    /// The bytes of the value in PostgreSQL's binary form.
    ///
    /// # Errors
    /// As the type's receive function in PostgreSQL.
    fn parse_binary(&self, oid: u32, modifier: i32, form: &[u8]) -> Result<Vec<u8>, ValueError>;

    /// The name of a type that a user made, or of its arrays.
    fn type_name(&self, oid: u32) -> String;

    /// Appends a value's text.
    fn write_text(&self, oid: u32, bytes: &[u8], out: &mut Vec<u8>);

    /// Appends a value's binary form.
    fn write_binary(&self, oid: u32, bytes: &[u8], out: &mut Vec<u8>);

    /// The numeric that a text says, where it has not the small form, or not the column's.
    ///
    /// # Errors
    /// As PostgreSQL's input function.
    fn numeric_of_text(&self, modifier: i32, text: &str) -> Result<Value, ValueError>;

    /// The numeric of a binary form, likewise.
    ///
    /// # Errors
    /// As PostgreSQL's receive function.
    fn numeric_of_binary(&self, modifier: i32, form: &[u8]) -> Result<Value, ValueError>;

    /// What an operator makes of two numbers, of which the small form does not hold one or the
    /// result.
    ///
    /// # Errors
    /// As PostgreSQL's operators.
    fn calculate(
        &self,
        operator: Operator,
        left: &Value,
        right: &Value,
    ) -> Result<Value, ValueError>;

    /// A number as another type of numbers has it, where the small form of a numeric does not
    /// do.
    ///
    /// # Errors
    /// As PostgreSQL's casts.
    fn convert(&self, value: &Value, to: &DataType) -> Result<Value, ValueError>;
}

static FORMS: OnceLock<&'static dyn OtherForms> = OnceLock::new();

/// Says, once for the process, who reads and shows the values.
pub fn set_forms(forms: &'static dyn OtherForms) {
    FORMS.get_or_init(|| forms);
}

/// Who reads and shows the values.
pub(crate) fn forms() -> &'static dyn OtherForms {
    FORMS.get().copied().unwrap_or(&NoForms)
}

/// Where no floor above is: values are shown as their bytes, and not read.
struct NoForms;

impl OtherForms for NoForms {
    fn parse_text(&self, oid: u32, _: i32, _: &str) -> Result<Vec<u8>, ValueError> {
        Err(unread(oid))
    }

    fn parse_binary(&self, oid: u32, _: i32, _: &[u8]) -> Result<Vec<u8>, ValueError> {
        Err(unread(oid))
    }

    fn type_name(&self, oid: u32) -> String {
        format!("type {oid}")
    }

    fn write_text(&self, _: u32, bytes: &[u8], out: &mut Vec<u8>) {
        text_format::write_hex(bytes, out);
    }

    fn write_binary(&self, _: u32, bytes: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(bytes);
    }

    fn numeric_of_text(&self, _: i32, _: &str) -> Result<Value, ValueError> {
        Err(ValueError::numeric_overflow())
    }

    fn numeric_of_binary(&self, _: i32, _: &[u8]) -> Result<Value, ValueError> {
        Err(ValueError::numeric_overflow())
    }

    fn calculate(&self, _: Operator, _: &Value, _: &Value) -> Result<Value, ValueError> {
        Err(ValueError::numeric_overflow())
    }

    fn convert(&self, _: &Value, _: &DataType) -> Result<Value, ValueError> {
        Err(ValueError::numeric_overflow())
    }
}

#[cold]
fn unread(oid: u32) -> ValueError {
    let name = OtherType::of(oid).map_or("unknown", |other| other.full_name);
    ValueError::new(
        "XX000",
        format!("values of type {name} were read before their readers were there"),
    )
}

/// A value that varies in length and that no index is over.
const fn plain(oid: u32, typname: &'static str, full_name: &'static str) -> OtherType {
    OtherType {
        oid,
        typname,
        full_name,
        length: -1,
        width: None,
        key: KeyPart::None,
    }
}

/// A value of so many bytes, all of them its key.
const fn fixed(oid: u32, typname: &'static str, full_name: &'static str, length: i16) -> OtherType {
    let width = match length {
        1 | 2 | 4 | 8 | 16 => Some(length as usize),
        _ => None,
    };
    OtherType {
        length,
        width,
        key: KeyPart::Whole,
        ..plain(oid, typname, full_name)
    }
}

/// A value that varies in length, all of it its key.
const fn ordered(
    oid: u32,
    typname: &'static str,
    full_name: &'static str,
    length: i16,
) -> OtherType {
    OtherType {
        length,
        key: KeyPart::Whole,
        ..plain(oid, typname, full_name)
    }
}

/// The numbers of types that users make, whose lowest bits say their class.
pub const USERS_TYPES: std::ops::Range<u32> = 0x2000_0000..0x4000_0000;
const USERS_CLASS_BITS: u32 = 7;

/// An enum: its values' places, the highest byte first.
static ENUM: OtherType = OtherType {
    width: Some(8),
    ..fixed(3500, "anyenum", "an enum", 4)
};
/// A row of a composite type.
static ROW: OtherType = plain(2249, "record", "a row");
/// An array of a type that a user made.
static USERS_ARRAY: OtherType = plain(2277, "anyarray", "an array");

/// By their numbers.
static OTHER_TYPES: &[OtherType] = &[
    fixed(18, "char", "\"char\"", 1),
    ordered(19, "name", "name", 64),
    fixed(26, "oid", "oid", 4),
    plain(114, "json", "json"),
    plain(199, "_json", "json[]"),
    ordered(650, "cidr", "cidr", -1),
    plain(651, "_cidr", "cidr[]"),
    fixed(774, "macaddr8", "macaddr8", 8),
    plain(775, "_macaddr8", "macaddr8[]"),
    fixed(829, "macaddr", "macaddr", 6),
    ordered(869, "inet", "inet", -1),
    plain(1000, "_bool", "boolean[]"),
    plain(1001, "_bytea", "bytea[]"),
    plain(1002, "_char", "\"char\"[]"),
    plain(1003, "_name", "name[]"),
    plain(1005, "_int2", "smallint[]"),
    plain(1007, "_int4", "integer[]"),
    plain(1009, "_text", "text[]"),
    plain(1014, "_bpchar", "character[]"),
    plain(1015, "_varchar", "character varying[]"),
    plain(1016, "_int8", "bigint[]"),
    plain(1021, "_float4", "real[]"),
    plain(1022, "_float8", "double precision[]"),
    plain(1028, "_oid", "oid[]"),
    plain(1040, "_macaddr", "macaddr[]"),
    plain(1041, "_inet", "inet[]"),
    fixed(1083, "time", "time without time zone", 8),
    plain(1115, "_timestamp", "timestamp without time zone[]"),
    plain(1182, "_date", "date[]"),
    plain(1183, "_time", "time without time zone[]"),
    plain(1185, "_timestamptz", "timestamp with time zone[]"),
    OtherType {
        length: 16,
        key: KeyPart::First(16),
        ..plain(1186, "interval", "interval")
    },
    plain(1187, "_interval", "interval[]"),
    plain(1231, "_numeric", "numeric[]"),
    fixed(1266, "timetz", "time with time zone", 12),
    plain(1270, "_timetz", "time with time zone[]"),
    plain(1560, "bit", "bit"),
    plain(1561, "_bit", "bit[]"),
    plain(1562, "varbit", "bit varying"),
    plain(1563, "_varbit", "bit varying[]"),
    plain(2951, "_uuid", "uuid[]"),
    plain(3802, "jsonb", "jsonb"),
    plain(3807, "_jsonb", "jsonb[]"),
    ordered(3904, "int4range", "int4range", -1),
    plain(3905, "_int4range", "int4range[]"),
    OtherType {
        key: KeyPart::AllBut(4),
        ..plain(3906, "numrange", "numrange")
    },
    plain(3907, "_numrange", "numrange[]"),
    ordered(3908, "tsrange", "tsrange", -1),
    plain(3909, "_tsrange", "tsrange[]"),
    ordered(3910, "tstzrange", "tstzrange", -1),
    plain(3911, "_tstzrange", "tstzrange[]"),
    ordered(3912, "daterange", "daterange", -1),
    plain(3913, "_daterange", "daterange[]"),
    ordered(3926, "int8range", "int8range", -1),
    plain(3927, "_int8range", "int8range[]"),
    plain(4072, "jsonpath", "jsonpath"),
    plain(4073, "_jsonpath", "jsonpath[]"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_found_by_their_numbers() {
        assert!(OTHER_TYPES.is_sorted_by_key(|row| row.oid));
        for row in OTHER_TYPES {
            assert_eq!(OtherType::of(row.oid), Some(row));
        }
        assert_eq!(OtherType::of(25), None);
    }

    #[test]
    fn a_key_is_all_of_a_value_or_its_front() {
        let interval = OtherType::of(1186).unwrap();
        assert_eq!(interval.key_of(&[7; 32]), [7; 16]);
        assert_eq!(OtherType::of(1083).unwrap().key_of(&[7; 8]), [7; 8]);
        let numrange = OtherType::of(3906).unwrap();
        assert_eq!(numrange.key_of(&[7; 9]), [7; 5]);
        assert_eq!(numrange.key_of(&[7; 3]), [0; 0]);
    }
}
