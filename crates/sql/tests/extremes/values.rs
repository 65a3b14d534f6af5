//! Extreme values of all types, as SQL writes them.

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

/// The types, each with a table's column of it and its extreme values.
pub const TYPES: &[(&str, &[&str])] = &[
    ("smallint", &["'-32768'", "'32767'", "'0'", "'-1'", "'1'"]),
    (
        "int",
        &[
            "'-2147483648'",
            "'2147483647'",
            "'0'",
            "'-1'",
            "'1'",
            "'7'",
            "'-5'",
            "'100000'",
        ],
    ),
    (
        "bigint",
        &[
            "'-9223372036854775808'",
            "'9223372036854775807'",
            "'0'",
            "'-1'",
            "'4294967296'",
        ],
    ),
    (
        "numeric",
        &[
            "'0'",
            "'-1'",
            "'0.5'",
            "'99999999999999999999999999999999999999'",
            "'-99999999999999999999999999999999999999'",
            "'0.00000000000000000000000000000000000001'",
            "'NaN'",
            "'1e30'",
            "'-0.0'",
            "'2'",
            "'12345.678'",
        ],
    ),
    (
        "real",
        &[
            "'NaN'",
            "'Infinity'",
            "'-Infinity'",
            "'-0.0'",
            "'3.4e38'",
            "'1e-45'",
            "'0'",
            "'-1.5'",
        ],
    ),
    (
        "float8",
        &[
            "'NaN'",
            "'Infinity'",
            "'-Infinity'",
            "'-0.0'",
            "'1.7e308'",
            "'-1.7e308'",
            "'5e-324'",
            "'0'",
            "'0.5'",
            "'9.3e18'",
        ],
    ),
    (
        "text",
        &[
            "''",
            "'a'",
            "'é'",
            "'日本語'",
            "'😀'",
            "'%'",
            "'\\'",
            "'['",
            "'('",
            "'*'",
            "'(?'",
            "'a{1000,}'",
            "'NaN'",
            "'infinity'",
            "'-1'",
            "'2024-02-30'",
            "'century'",
            "'year'",
            "'microseconds'",
            "'g'",
            "'base64'",
            "'hex'",
            "'UTC'",
            "'{1,2}'",
            "'[1,2]'",
            "' '",
            "E'\\n\\t'",
            "repeat('x', 100000)",
            "repeat('é', 3000)",
            "'%s %I'",
            "'YYYY-MM-DD'",
            "'999D99'",
            "'t'",
            "'pg_class'",
            "'a.b.c.d'",
            "'1 month'",
        ],
    ),
    ("varchar(3)", &["''", "'abc'", "'日本語'"]),
    ("char(5)", &["''", "'a'", "'ab   '"]),
    ("bytea", &["''", "'\\x'", "'\\x00ff'", "'\\xdeadbeef'"]),
    (
        "date",
        &[
            "'4713-01-01 BC'",
            "'5874897-12-31'",
            "'infinity'",
            "'-infinity'",
            "'2000-01-01'",
            "'1969-12-31'",
            "'2024-02-29'",
        ],
    ),
    (
        "timestamp",
        &[
            "'4713-01-01 00:00:00 BC'",
            "'294276-12-31 23:59:59.999999'",
            "'infinity'",
            "'-infinity'",
            "'2000-01-01 00:00:00'",
            "'1999-12-31 23:59:59.999999'",
            "'0001-01-01'",
        ],
    ),
    (
        "timestamptz",
        &[
            "'4713-01-01 00:00:00+00 BC'",
            "'294276-12-31 23:59:59.999999+00'",
            "'infinity'",
            "'-infinity'",
            "'2024-02-29 12:00:00+15:59'",
        ],
    ),
    (
        "interval",
        &[
            "'0'",
            "'178000000 years'",
            "'-178000000 years'",
            "'2147483647 days'",
            "'1 month'",
            "'-1 day'",
            "'2147483647 months'",
            "'2562047788 hours'",
            "'1 year 2 months 3 days 04:05:06.789'",
        ],
    ),
    ("boolean", &["'t'", "'f'"]),
    (
        "uuid",
        &[
            "'00000000-0000-0000-0000-000000000000'",
            "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
        ],
    ),
    ("oid", &["'0'", "'1259'", "'4294967295'"]),
    (
        "int[]",
        &[
            "'{}'",
            "'{1,2,3}'",
            "'{NULL}'",
            "'{-2147483648,2147483647}'",
        ],
    ),
    ("text[]", &["'{}'", "'{a,NULL,\"\"}'", "'{%,(}'"]),
];

/// The types that tables have columns of.
pub const COLUMNS: &[&str] = &[
    "smallint",
    "int",
    "bigint",
    "numeric",
    "real",
    "float8",
    "text",
    "varchar(3)",
    "char(5)",
    "bytea",
    "date",
    "timestamp",
    "timestamptz",
    "boolean",
    "uuid",
];

/// The column of a type.
pub fn column(data_type: &str) -> String {
    let name: String = data_type
        .chars()
        .filter(|c| c.is_ascii_alphanumeric())
        .collect();
    format!("c_{name}")
}

/// A value of the type.
pub fn value(random: &mut StdRng, data_type: &str) -> String {
    if random.random_ratio(1, 12) {
        return format!("null::{data_type}");
    }
    let of = TYPES.iter().find(|(name, _)| *name == data_type);
    let values = of.map_or(&["''"][..], |(_, values)| *values);
    let value = values.choose(random).unwrap();
    // A quoted literal takes whatever type is wanted.
    match random.random_ratio(1, 4) {
        true => (*value).to_owned(),
        false => format!("({value})::{data_type}"),
    }
}

/// The tables, full of extreme values: `x` by key, `y` to join it with.
pub fn tables(random: &mut StdRng) -> Vec<String> {
    let columns: Vec<String> = COLUMNS
        .iter()
        .map(|data_type| format!("{} {data_type}", column(data_type)))
        .collect();
    let mut statements = vec![
        format!("create table x (k int primary key, {})", columns.join(", ")),
        "create table y (k int primary key, n int)".to_owned(),
    ];
    for key in 0..12 {
        let row: Vec<String> = COLUMNS
            .iter()
            .map(|data_type| {
                let (_, values) = TYPES.iter().find(|(name, _)| name == data_type).unwrap();
                match random.random_ratio(1, 10) {
                    true => "null".to_owned(),
                    false => (*values.choose(random).unwrap()).to_owned(),
                }
            })
            .collect();
        statements.push(format!("insert into x values ({key}, {})", row.join(", ")));
        statements.push(format!("insert into y values ({key}, {key})"));
    }
    statements
}
