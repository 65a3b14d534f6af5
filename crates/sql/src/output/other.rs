//! Types that no column has and a result can: their values arrive as texts, already formatted,
//! and are re-encoded here when a client asked for the binary format (asyncpg, pgx and
//! tokio-postgres always do).

use thermocline_query::types::{self, ids};

use crate::error::Result;
use crate::styles::Styles;

/// Such a type, by its number in `pg_type`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct OtherType(pub u32);

impl OtherType {
    /// `name`
    pub const NAME: Self = Self(ids::NAME);
    /// `void`
    pub const VOID: Self = Self(ids::VOID);

    /// The type's number in `pg_type`.
    #[must_use]
    pub const fn oid(self) -> u32 {
        self.0
    }

    /// PostgreSQL's length of the type in bytes; -1 when it varies.
    #[must_use]
    pub fn typlen(self) -> i16 {
        types::by_oid(self.0).map_or(-1, |row| row.length)
    }

    /// Writes `text`, which is of these styles, in the binary format of the type.
    ///
    /// # Errors
    /// 42883 for a type without a binary form, 22P02 for text that is not of the type.
    pub fn write_binary(self, text: &str, styles: &Styles, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::VOID => Ok(()),
            Self(oid) => styles.write_binary(oid, text, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn array_literals_are_taken_apart() {
        let elements = |text: &str| {
            let mut out = Vec::new();
            let written = OtherType(ids::TEXT_ARRAY).write_binary(text, Styles::plain(), &mut out);
            written.map(|()| out).map_err(|error| error.sqlstate)
        };
        let mut expected: Vec<u8> = [1i32, 1, 25, 4, 1]
            .iter()
            .flat_map(|word| word.to_be_bytes())
            .collect();
        for element in [Some("1"), None, Some("a, \"b\""), Some("c")] {
            let length = element.map_or(-1, |text| text.len() as i32);
            expected.extend(length.to_be_bytes());
            expected.extend(element.unwrap_or_default().bytes());
        }
        assert_eq!(elements(r#"{1,NULL,"a, \"b\"", c }"#), Ok(expected));
        let none: Vec<u8> = [0i32, 0, 25].iter().flat_map(|n| n.to_be_bytes()).collect();
        assert_eq!(elements("{}"), Ok(none));
        assert_eq!(elements("1,2"), Err("22P02"));
        assert_eq!(elements("{\"a}"), Err("22P02"));
    }

    #[test]
    fn an_array_of_integers_in_binary() {
        let mut out = Vec::new();
        OtherType(ids::INT4_ARRAY)
            .write_binary("{7,NULL}", Styles::plain(), &mut out)
            .unwrap();
        let expected: Vec<u8> = [1i32, 1, 23, 2, 1, 4, 7, -1]
            .iter()
            .flat_map(|word| word.to_be_bytes())
            .collect();
        assert_eq!(out, expected);
    }

    #[test]
    fn a_time_of_day_in_binary() {
        let mut out = Vec::new();
        OtherType(ids::TIME)
            .write_binary("01:00:00.5", Styles::plain(), &mut out)
            .unwrap();
        assert_eq!(out, 3_600_500_000i64.to_be_bytes());
    }
}
