//! PostgreSQL's types as its catalogs number them: the built-in rows of
//! `pg_type`, names as `format_type` gives them, and names as casts use them.
//! The rows are PostgreSQL 15's own (`data/types.tsv`).

use std::collections::HashMap;
use std::sync::LazyLock;

use sqlparser::ast;
use thermocline_storage::types::DataType;

use crate::analytics::{folded, last_part};
use crate::error::{Result, SqlError};
use crate::output::{ColumnType, OtherType};

/// A type and its modifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PgType {
    /// Number in `pg_type`.
    pub oid: u32,
    /// Modifier; -1 when there is none.
    pub typmod: i32,
}

macro_rules! types {
    ($($name:ident = $oid:literal),* $(,)?) => {
        impl PgType {
            $(pub(crate) const $name: Self = Self { oid: $oid, typmod: -1 };)*
        }
    };
}

types! {
    BOOL = 16, CHAR = 18, NAME = 19, INT8 = 20, INT2 = 21,
    INT4 = 23, TEXT = 25, OID = 26, JSON = 114,
    FLOAT8 = 701, UNKNOWN = 705,
    INET = 869, INT4_ARRAY = 1007, TEXT_ARRAY = 1009,
    NAME_ARRAY = 1003, ACLITEM_ARRAY = 1034, DATE = 1082,
    TIMESTAMPTZ = 1184, INTERVAL = 1186, NUMERIC = 1700, REGCLASS = 2205,
    REGTYPE = 2206, RECORD = 2249, VOID = 2278, JSONB = 3802,
    REGNAMESPACE = 4089,
}

/// A row of `pg_type`.
#[derive(Debug)]
pub(crate) struct TypeRow {
    pub oid: u32,
    pub name: &'static str,
    pub length: i16,
    pub by_value: bool,
    /// `b` base, `p` pseudo, `r` range.
    pub kind: &'static str,
    pub category: &'static str,
    pub preferred: bool,
    pub delimiter: &'static str,
    pub element: u32,
    pub array: u32,
    pub alignment: &'static str,
    pub storage: &'static str,
    pub collation: u32,
}

/// The built-in types, by number.
pub(crate) static TYPES: LazyLock<Vec<TypeRow>> = LazyLock::new(|| {
    include_str!("data/types.tsv")
        .lines()
        .filter_map(|line| {
            let fields: Vec<&'static str> = line.split('\t').collect();
            let &[
                oid,
                name,
                length,
                by_value,
                kind,
                category,
                preferred,
                delimiter,
                element,
                array,
                alignment,
                storage,
                collation,
            ] = fields.as_slice()
            else {
                return None;
            };
            Some(TypeRow {
                oid: oid.parse().ok()?,
                name,
                length: length.parse().ok()?,
                by_value: by_value == "t",
                kind,
                category,
                preferred: preferred == "t",
                delimiter,
                element: element.parse().ok()?,
                array: array.parse().ok()?,
                alignment,
                storage,
                collation: collation.parse().ok()?,
            })
        })
        .collect()
});

static BY_OID: LazyLock<HashMap<u32, usize>> = LazyLock::new(|| {
    TYPES
        .iter()
        .enumerate()
        .map(|(at, row)| (row.oid, at))
        .collect()
});
static BY_NAME: LazyLock<HashMap<&'static str, u32>> =
    LazyLock::new(|| TYPES.iter().map(|row| (row.name, row.oid)).collect());

/// The row of a built-in type.
pub(crate) fn type_row(oid: u32) -> Option<&'static TypeRow> {
    BY_OID.get(&oid).and_then(|&at| TYPES.get(at))
}

impl PgType {
    /// The type with this number, without modifier.
    pub(crate) const fn of(oid: u32) -> Self {
        Self { oid, typmod: -1 }
    }

    /// The type of a column of ours.
    pub(crate) const fn of_column(data_type: &DataType) -> Self {
        Self {
            oid: data_type.oid(),
            typmod: data_type.typmod(),
        }
    }

    /// The type of the elements, if this is an array or a vector.
    pub(crate) fn element(self) -> Option<Self> {
        match self.oid {
            22 => Some(Self::INT2),
            30 => Some(Self::OID),
            _ => {
                let row = type_row(self.oid)?;
                (row.category == "A" && row.element != 0).then(|| Self::of(row.element))
            }
        }
    }

    /// The array of this type.
    pub(crate) fn array(self) -> Self {
        match type_row(self.oid) {
            Some(row) if row.array != 0 => Self::of(row.array),
            _ => Self::TEXT_ARRAY,
        }
    }

    /// Types whose values are whole numbers.
    pub(crate) fn is_integer(self) -> bool {
        matches!(self.oid, 20 | 21 | 23) || self.is_oid()
    }

    /// `oid` and what is shown by name but stored as one.
    pub(crate) fn is_oid(self) -> bool {
        matches!(
            self.oid,
            26 | 28 | 24 | 2202 | 2203 | 2204 | 2205 | 2206 | 3734 | 3769 | 4089 | 4096 | 4191
        )
    }

    /// Types shown by the name of the object.
    pub(crate) fn is_reg(self) -> bool {
        self.is_oid() && !matches!(self.oid, 26 | 28)
    }

    /// Types that arithmetic knows.
    pub(crate) fn is_number(self) -> bool {
        matches!(self.oid, 20 | 21 | 23 | 26 | 700 | 701 | 1700)
    }

    /// Types whose values are kept as text.
    pub(crate) fn is_text(self) -> bool {
        matches!(
            self.oid,
            18 | 19
                | 25
                | 114
                | 194
                | 705
                | 1033
                | 1042
                | 1043
                | 3802
                | 1083
                | 1186
                | 269
                | 3361
                | 3402
        )
    }

    /// How a result announces the type.
    pub(crate) fn column_type(self) -> ColumnType {
        if let Some(data_type) = DataType::from_oid(self.oid, self.typmod) {
            return ColumnType::Scalar(data_type);
        }
        ColumnType::Other(match self.oid {
            26 => OtherType::Oid,
            19 => OtherType::Name,
            18 => OtherType::InternalChar,
            2205 => OtherType::Regclass,
            2206 => OtherType::Regtype,
            24 => OtherType::Regproc,
            4089 => OtherType::Regnamespace,
            4096 => OtherType::Regrole,
            28 => OtherType::Xid,
            1186 => OtherType::Interval,
            1083 => OtherType::Time,
            114 => OtherType::Json,
            3802 => OtherType::Jsonb,
            2249 => OtherType::Record,
            2278 => OtherType::Void,
            22 => OtherType::Int2Vector,
            30 => OtherType::OidVector,
            194 => OtherType::PgNodeTree,
            1033 => OtherType::AclItem,
            1028 => OtherType::OidArray,
            1003 => OtherType::NameArray,
            1002 => OtherType::InternalCharArray,
            2211 => OtherType::RegtypeArray,
            1034 => OtherType::AclItemArray,
            2277 => OtherType::AnyArray,
            _ => match self
                .element()
                .and_then(|element| DataType::from_oid(element.oid, -1))
            {
                Some(element) => OtherType::ArrayOf(element),
                None => OtherType::Unknown,
            },
        })
    }
}

/// What `format_type(oid, typmod)` says.
pub(crate) fn format_type(oid: u32, typmod: Option<i32>) -> String {
    if oid == 0 {
        return "-".to_owned();
    }
    let modifier = typmod.unwrap_or(-1);
    if let Some(data_type) = DataType::from_oid(oid, modifier) {
        return match (data_type, typmod) {
            (DataType::Char(0), Some(_)) => "bpchar".to_owned(),
            (DataType::Char(0), None) => "character".to_owned(),
            _ => data_type.to_string(),
        };
    }
    let Some(row) = type_row(oid) else {
        return "???".to_owned();
    };
    if row.category == "A" && row.element != 0 && !matches!(oid, 22 | 30) {
        return format!("{}[]", format_type(row.element, typmod));
    }
    match row.name {
        "char" => "\"char\"".to_owned(),
        "time" => "time without time zone".to_owned(),
        "timetz" => "time with time zone".to_owned(),
        "bit" => "bit".to_owned(),
        "varbit" => "bit varying".to_owned(),
        name => name.to_owned(),
    }
}

/// The number of the type of this name, as `regtype` reads it.
pub(crate) fn type_by_name(text: &str) -> Option<u32> {
    let name = text.trim();
    let name = name.strip_prefix("pg_catalog.").unwrap_or(name);
    if let Some(element) = name.strip_suffix("[]") {
        let row = type_row(type_by_name(element)?)?;
        return (row.array != 0).then_some(row.array);
    }
    let folded;
    let name = match name
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
    {
        Some(quoted) => quoted,
        None => {
            folded = name.to_lowercase();
            match folded.as_str() {
                "char" => "bpchar",
                name => name,
            }
        }
    };
    let bare = name.split('(').next().unwrap_or(name).trim();
    let synonym = match bare {
        "integer" | "int" => "int4",
        "bigint" => "int8",
        "smallint" => "int2",
        "real" => "float4",
        "double precision" => "float8",
        "boolean" => "bool",
        "character varying" => "varchar",
        "character" => "bpchar",
        "decimal" => "numeric",
        "timestamp without time zone" => "timestamp",
        "timestamp with time zone" => "timestamptz",
        "time without time zone" => "time",
        "time with time zone" => "timetz",
        "bit varying" => "varbit",
        name => name,
    };
    BY_NAME.get(synonym).copied()
}

/// The type that a cast names.
pub(crate) fn cast_type(name: &ast::DataType) -> Result<PgType> {
    if let ast::DataType::Array(element) = name {
        return match element {
            ast::ArrayElemTypeDef::AngleBracket(element)
            | ast::ArrayElemTypeDef::SquareBracket(element, _)
            | ast::ArrayElemTypeDef::Parenthesis(element) => Ok(cast_type(element)?.array()),
            ast::ArrayElemTypeDef::None => Err(SqlError::unsupported("an array of no type")),
        };
    }
    if let ast::DataType::Custom(name, modifiers) = name
        && modifiers.is_empty()
        && let Some(ident) = name.0.last().and_then(|part| part.as_ident())
    {
        let quoted = ident.quote_style.is_some();
        let text = folded(ident);
        let oid = match text.as_str() {
            "char" if quoted => Some(18),
            _ => type_by_name(&text),
        };
        if let Some(oid) = oid {
            return Ok(PgType::of(oid));
        }
    }
    match name {
        ast::DataType::Regclass => return Ok(PgType::REGCLASS),
        ast::DataType::Interval { .. } => return Ok(PgType::INTERVAL),
        ast::DataType::JSON => return Ok(PgType::JSON),
        ast::DataType::JSONB => return Ok(PgType::JSONB),
        ast::DataType::Time(..) => return Ok(PgType::of(1083)),
        ast::DataType::Char(None) if name.to_string().starts_with('"') => return Ok(PgType::CHAR),
        _ => {}
    }
    if let Ok(data_type) = crate::bind::data_type(name) {
        return Ok(PgType::of_column(&data_type));
    }
    let text = match name {
        ast::DataType::Custom(name, _) => last_part(name).unwrap_or_default(),
        other => other.to_string().to_lowercase(),
    };
    type_by_name(&text)
        .map(PgType::of)
        .ok_or_else(|| SqlError::new("42704", format!("type \"{text}\" does not exist")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_types_are_there() {
        let int4 = type_row(23).unwrap();
        assert_eq!((int4.name, int4.length, int4.array), ("int4", 4, 1007));
        assert_eq!(PgType::of(1007).element(), Some(PgType::INT4));
        assert_eq!(
            PgType {
                oid: 22,
                typmod: -1
            }
            .element(),
            Some(PgType::INT2)
        );
        assert_eq!(PgType::TEXT.array(), PgType::TEXT_ARRAY);
        assert_eq!(PgType::TEXT.element(), None);
    }

    #[test]
    fn format_type_speaks_as_postgresql() {
        for (oid, typmod, expected) in [
            (23, Some(-1), "integer"),
            (1043, Some(14), "character varying(10)"),
            (1043, None, "character varying"),
            (1700, Some(786_438), "numeric(12,2)"),
            (1184, Some(-1), "timestamp with time zone"),
            (1007, None, "integer[]"),
            (1015, Some(14), "character varying(10)[]"),
            (18, None, "\"char\""),
            (26, None, "oid"),
            (22, None, "int2vector"),
            (0, None, "-"),
        ] {
            assert_eq!(format_type(oid, typmod), expected);
        }
    }

    #[test]
    fn types_are_found_by_their_names() {
        for (name, oid) in [
            ("integer", Some(23)),
            ("int4", Some(23)),
            ("pg_catalog.int4", Some(23)),
            ("\"char\"", Some(18)),
            ("char", Some(1042)),
            ("character varying(10)", Some(1043)),
            ("int4[]", Some(1007)),
            ("hstore", None),
        ] {
            assert_eq!(type_by_name(name), oid, "{name}");
        }
    }
}
