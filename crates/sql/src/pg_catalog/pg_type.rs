//! PostgreSQL's types as its catalogs number them: the built-in rows of
//! `pg_type`, names as `format_type` gives them, and names as casts use them.
//! The rows are PostgreSQL 15's own (`data/types.tsv`).

use std::collections::HashMap;
use std::sync::LazyLock;
use thermocline_engine::ColumnDef;

use thermocline_query::types::user;
use thermocline_values::types::DataType;

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
    BOOL = 16, INT8 = 20, INT2 = 21, OID = 26,
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
    pub(crate) fn of_column(column: &ColumnDef) -> Self {
        Self {
            oid: column.type_oid(),
            typmod: column.type_modifier(),
        }
    }

    /// The type of the elements, if this is an array or a vector.
    pub(crate) fn element(self) -> Option<Self> {
        match self.oid {
            22 => Some(Self::INT2),
            30 => Some(Self::OID),
            _ if let Some(element) = user::element(self.oid) => Some(Self::of(element)),
            _ => {
                let row = type_row(self.oid)?;
                (row.category == "A" && row.element != 0).then(|| Self::of(row.element))
            }
        }
    }
}

/// What `format_type(oid, typmod)` says.
pub(crate) fn format_type(oid: u32, typmod: Option<i32>) -> String {
    if oid == 0 {
        return "-".to_owned();
    }
    let modifier = typmod.unwrap_or(-1);
    if let Some(data_type) = DataType::from_oid(oid, modifier)
        && data_type.other().is_none()
    {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_types_are_there() {
        let int4 = type_row(23).unwrap();
        assert_eq!((int4.name, int4.length, int4.array), ("int4", 4, 1007));
        assert_eq!(PgType::of(1007).element(), Some(PgType::of(23)));
        assert_eq!(
            PgType {
                oid: 22,
                typmod: -1
            }
            .element(),
            Some(PgType::INT2)
        );
        assert_eq!(PgType::of(25).element(), None);
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
