//! Binding and evaluation against PostgreSQL: names, types, values and errors
//! below were printed by PostgreSQL 15 (errors as `SQLSTATE: message`).

use std::sync::{Arc, LazyLock};

use thermocline_device::SimulatedDevice;
use thermocline_engine::{Config, Database};
use thermocline_values::text_format::write_text;
use thermocline_values::types::DataType;
use thermocline_values::value::Value;

use super::{BindContext, Bound};
use crate::error::{Result, SqlError};
use crate::expr::{EvalContext, NoRow, NoSession};
use crate::output::ColumnType;
use crate::plan::{Plan, ShortPlan};
use crate::styles::Styles;

/// A database without a table.
static EMPTY: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let config = Config::new(Arc::new(SimulatedDevice::new())).memory_limit(1 << 30);
    Database::open(config).expect("opens")
});

fn bound(sql: &str) -> Result<Bound> {
    let search_path = ["public".to_owned()];
    let catalog = EMPTY.catalog();
    crate::short::bind_text(sql, &BindContext::new(&catalog, &search_path), &EMPTY)
}

/// Name, type and value of `SELECT expression`.
fn selected(expression: &str, parameters: &[Value]) -> Result<(String, String, String)> {
    let bound = bound(&format!("SELECT {expression}"))?;
    let Plan::Short(ShortPlan::Select(select)) = &bound.plan else {
        return Err(SqlError::new("-----", format!("{:?}", bound.plan)));
    };
    let column = &bound.columns.as_ref().expect("a SELECT has columns")[0];
    let ColumnType::Scalar(data_type) = column.data_type else {
        return Err(SqlError::new("-----", "not a scalar"));
    };
    let context = EvalContext {
        parameters,
        now_us: 844_000_000_000_000,
        session: &NoSession,
        styles: Styles::plain(),
        outer: None,
    };
    let value = select.output[0].expr.evaluate(&NoRow, &context)?;
    let shown = if value.is_null() {
        "NULL".to_owned()
    } else {
        let mut out = Vec::new();
        write_text(value.as_ref(), &data_type, &mut out);
        String::from_utf8(out).expect("text output is UTF-8")
    };
    Ok((column.name.clone(), data_type.to_string(), shown))
}

/// Expression, column name, type, value or error.
const POSTGRESQL: &[(&str, &str, &str, &str)] = &[
    ("1 + 2", "?column?", "integer", "3"),
    ("2147483647 + 1", "", "", "22003: integer out of range"),
    ("2147483648 + 1", "?column?", "bigint", "2147483649"),
    (
        "9223372036854775807 + 1",
        "",
        "",
        "22003: bigint out of range",
    ),
    ("-2147483648", "?column?", "integer", "-2147483648"),
    ("7 / 2", "?column?", "integer", "3"),
    ("-7 / 2", "?column?", "integer", "-3"),
    ("-7 % 3", "?column?", "integer", "-1"),
    ("7.0 / 2", "?column?", "numeric", "3.5000000000000000"),
    ("1 / 3.0", "?column?", "numeric", "0.33333333333333333333"),
    ("10 / 0", "", "", "22012: division by zero"),
    ("1.50 + 2", "?column?", "numeric", "3.50"),
    ("1.10 * 1.10", "?column?", "numeric", "1.2100"),
    ("2.5::int4", "int4", "integer", "3"),
    ("3.5::int4", "int4", "integer", "4"),
    ("(-2.5)::int4", "int4", "integer", "-3"),
    ("2.5::float8::int4", "int4", "integer", "2"),
    ("1e10", "?column?", "numeric", "10000000000"),
    ("'12' + 1", "?column?", "integer", "13"),
    (
        "'abc' + 1",
        "",
        "",
        r#"22P02: invalid input syntax for type integer: "abc""#,
    ),
    ("'a' || 1", "?column?", "text", "a1"),
    ("'a' || NULL", "?column?", "text", "NULL"),
    (
        "1 || 2",
        "",
        "",
        "42883: operator does not exist: integer || integer",
    ),
    (
        "'a'::text + 1",
        "",
        "",
        "42883: operator does not exist: text + integer",
    ),
    (
        "'a' + 'b'",
        "",
        "",
        "42725: operator is not unique: unknown + unknown",
    ),
    ("true AND NULL", "?column?", "boolean", "NULL"),
    ("false AND NULL", "?column?", "boolean", "f"),
    ("true OR NULL", "?column?", "boolean", "t"),
    ("NULL OR NULL", "?column?", "boolean", "NULL"),
    ("NOT NULL", "?column?", "boolean", "NULL"),
    ("1 = 1.0", "?column?", "boolean", "t"),
    ("1 = '1'", "?column?", "boolean", "t"),
    ("1 < 2.5", "?column?", "boolean", "t"),
    (
        "1 = 'x'",
        "",
        "",
        r#"22P02: invalid input syntax for type integer: "x""#,
    ),
    ("'a' = 'a  '::char(3)", "?column?", "boolean", "t"),
    ("'a '::text = 'a '::char(2)", "?column?", "boolean", "f"),
    ("NULL IS NULL", "?column?", "boolean", "t"),
    ("1 IS DISTINCT FROM NULL", "?column?", "boolean", "t"),
    ("NULL IS NOT DISTINCT FROM NULL", "?column?", "boolean", "t"),
    ("(1 = NULL) IS TRUE", "?column?", "boolean", "f"),
    ("(1 = NULL) IS NOT FALSE", "?column?", "boolean", "t"),
    ("(1 = NULL) IS UNKNOWN", "?column?", "boolean", "t"),
    ("5 BETWEEN 1 AND 10", "?column?", "boolean", "t"),
    ("5 NOT BETWEEN 1 AND 10", "?column?", "boolean", "f"),
    ("3 IN (1, 2, 3)", "?column?", "boolean", "t"),
    ("3 IN (1, 2, NULL)", "?column?", "boolean", "NULL"),
    ("3 NOT IN (1, 2)", "?column?", "boolean", "t"),
    ("3 NOT IN (1, NULL)", "?column?", "boolean", "NULL"),
    ("3 IN (1, 2.5, 3.0)", "?column?", "boolean", "t"),
    ("'abc' LIKE 'a%'", "?column?", "boolean", "t"),
    ("'abc' LIKE 'A%'", "?column?", "boolean", "f"),
    ("'abc' ILIKE 'A_C'", "?column?", "boolean", "t"),
    (r#"'a%c' LIKE 'a\%c'"#, "?column?", "boolean", "t"),
    ("'a%c' LIKE 'a!%c' ESCAPE '!'", "?column?", "boolean", "t"),
    ("'abc' NOT LIKE '%d%'", "?column?", "boolean", "t"),
    ("CASE WHEN 1 = 1 THEN 'x' ELSE 'y' END", "case", "text", "x"),
    (
        "CASE 2 WHEN 1 THEN 'one' WHEN 2 THEN 'two' END",
        "case",
        "text",
        "two",
    ),
    (
        "CASE WHEN false THEN 1 ELSE 2.5 END",
        "case",
        "numeric",
        "2.5",
    ),
    (
        "CASE WHEN true THEN 1 ELSE 'x' END",
        "",
        "",
        r#"22P02: invalid input syntax for type integer: "x""#,
    ),
    ("coalesce(NULL, 2, 3)", "coalesce", "integer", "2"),
    ("coalesce(NULL, 'a')", "coalesce", "text", "a"),
    (
        "coalesce(1, 'x'::text)",
        "",
        "",
        "42804: COALESCE types integer and text cannot be matched",
    ),
    ("nullif(1, 1)", "nullif", "integer", "NULL"),
    ("nullif(1, 2)", "nullif", "integer", "1"),
    ("greatest(1, 2.5, NULL)", "greatest", "numeric", "2.5"),
    ("least(3, NULL, 2)", "least", "integer", "2"),
    ("CAST('42' AS integer)", "int4", "integer", "42"),
    ("'42'::int8", "int8", "bigint", "42"),
    (
        "'2020-02-30'::date",
        "",
        "",
        r#"22008: date/time field value out of range: "2020-02-30""#,
    ),
    ("'2020-02-29'::date + 1", "?column?", "date", "2020-03-01"),
    (
        "'2020-03-01'::date - '2020-02-28'::date",
        "?column?",
        "integer",
        "2",
    ),
    (
        "'2020-01-31'::date + interval '1 month'",
        "?column?",
        "timestamp without time zone",
        "2020-02-29 00:00:00",
    ),
    (
        "'2020-01-31 10:00'::timestamp - interval '1 day 2 hours'",
        "?column?",
        "timestamp without time zone",
        "2020-01-30 08:00:00",
    ),
    (
        "timestamp '2020-01-01' + '90 minutes'",
        "?column?",
        "timestamp without time zone",
        "2020-01-01 01:30:00",
    ),
    (
        "date '2020-01-01' < timestamp '2020-01-01 00:00:01'",
        "?column?",
        "boolean",
        "t",
    ),
    (
        "extract(year from date '2020-05-06')",
        "extract",
        "numeric",
        "2020",
    ),
    (
        "extract(epoch from timestamp '1970-01-02 00:00:00')",
        "extract",
        "numeric",
        "86400.000000",
    ),
    (
        "substring('hello' from 2 for 3)",
        "substring",
        "text",
        "ell",
    ),
    ("substring('hello', 2)", "substring", "text", "ello"),
    ("substr('hello', 2, 2)", "substr", "text", "el"),
    ("trim('  x ')", "btrim", "text", "x"),
    ("trim(leading 'x' from 'xxy')", "ltrim", "text", "y"),
    ("position('l' in 'hello')", "position", "integer", "3"),
    ("length('héllo')", "length", "integer", "5"),
    ("upper('abc')", "upper", "text", "ABC"),
    ("lower('ABC')", "lower", "text", "abc"),
    ("round(2.567, 2)", "round", "numeric", "2.57"),
    ("round(2.5)", "round", "numeric", "3"),
    ("round(2.5::float8)", "round", "double precision", "2"),
    ("abs(-5)", "abs", "integer", "5"),
    ("ceil(2.1)", "ceil", "numeric", "3"),
    ("floor(-2.1)", "floor", "numeric", "-3"),
    ("mod(7, 3)", "mod", "integer", "1"),
    ("power(2, 10)", "power", "double precision", "1024"),
    ("sqrt(2)", "sqrt", "double precision", "1.4142135623730951"),
    ("replace('aXbX', 'X', 'y')", "replace", "text", "ayby"),
    ("concat('a', 1, NULL, true)", "concat", "text", "a1t"),
    ("left('hello', 2)", "left", "text", "he"),
    ("right('hello', 2)", "right", "text", "lo"),
    ("lpad('7', 3, '0')", "lpad", "text", "007"),
    ("'abc'::varchar(2)", "varchar", "character varying(2)", "ab"),
    ("'abc'::char(5)", "bpchar", "character(5)", "abc  "),
    ("123.456::numeric(5,2)", "numeric", "numeric(5,2)", "123.46"),
    (
        "12345.6::numeric(5,2)",
        "",
        "",
        "22003: numeric field overflow",
    ),
    ("1::bool", "bool", "boolean", "t"),
    ("true::int", "int4", "integer", "1"),
    ("'yes'::bool", "bool", "boolean", "t"),
    ("1.0::float4", "float4", "real", "1"),
    (
        "0.1::float4 + 0.2::float8",
        "?column?",
        "double precision",
        "0.30000000149011613",
    ),
    ("1::smallint + 1::smallint", "?column?", "smallint", "2"),
    (
        "32767::smallint + 1::smallint",
        "",
        "",
        "22003: smallint out of range",
    ),
    ("1::smallint + 1", "?column?", "integer", "2"),
    ("1::bigint * 2", "?column?", "bigint", "2"),
    (r#"'\x0102'::bytea"#, "bytea", "bytea", r#"\x0102"#),
    (
        "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid",
        "uuid",
        "uuid",
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    ),
    ("- (5)", "?column?", "integer", "-5"),
    ("+ 3.0", "?column?", "numeric", "3.0"),
    (
        "- 'x'::text",
        "",
        "",
        "42883: operator does not exist: - text",
    ),
    (
        "extract(dow from date '2020-05-06')",
        "extract",
        "numeric",
        "3",
    ),
    (
        "date_trunc('month', timestamp '2020-05-06 07:08:09')",
        "date_trunc",
        "timestamp without time zone",
        "2020-05-01 00:00:00",
    ),
    (
        "'2020-01-01'::date = '2020-01-01'",
        "?column?",
        "boolean",
        "t",
    ),
    (
        "1 = true",
        "",
        "",
        "42883: operator does not exist: integer = boolean",
    ),
    ("'1' = 1::bigint", "?column?", "boolean", "t"),
    ("1 + 1.5::float8", "?column?", "double precision", "2.5"),
    (
        "2::numeric ^ 2",
        "?column?",
        "numeric",
        "4.0000000000000000",
    ),
    ("5::float4 / 2", "?column?", "double precision", "2.5"),
    ("now() > '2000-01-01'", "?column?", "boolean", "t"),
];

#[test]
fn expressions_have_postgresqls_names_types_and_values() {
    let mut wrong = Vec::new();
    for (expression, name, data_type, value) in POSTGRESQL {
        let wanted = (
            (*name).to_owned(),
            (*data_type).to_owned(),
            (*value).to_owned(),
        );
        let got = selected(expression, &[]).unwrap_or_else(|error| {
            let message = format!("{}: {}", error.sqlstate, error.message);
            (String::new(), String::new(), message)
        });
        if got != wanted {
            wrong.push(format!(
                "{expression}\n   wanted {wanted:?}\n   got    {got:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn parameters_take_the_type_of_the_other_side() {
    let types = |sql: &str| bound(sql).expect("binds").parameters;
    assert_eq!(types("SELECT $1 + 1"), [DataType::Integer]);
    assert_eq!(types("SELECT $1 = 1.5"), [DataType::NUMERIC]);
    assert_eq!(types("SELECT $1"), [DataType::Text]);
    assert_eq!(types("SELECT $1::bigint"), [DataType::BigInt]);
    assert_eq!(
        types("SELECT $2 || 'x', $1 AND true"),
        [DataType::Boolean, DataType::Text]
    );
    assert_eq!(types("SELECT 1 LIMIT $1"), [DataType::BigInt]);
}

#[test]
fn parameters_are_evaluated() {
    let (_, data_type, value) = selected("$1 + 1", &[Value::Integer(41)]).expect("evaluates");
    assert_eq!((data_type.as_str(), value.as_str()), ("integer", "42"));
}

#[test]
fn errors_carry_their_position() {
    let error = bound("SELECT 1,\n  foo FROM bar").expect_err("no table");
    assert_eq!((error.sqlstate, error.position), ("42P01", Some(22)));
    assert_eq!(error.message, "relation \"bar\" does not exist");
    let error = bound("SELECT foo").expect_err("no column");
    assert_eq!((error.sqlstate, error.position), ("42703", Some(8)));
    assert_eq!(error.message, "column \"foo\" does not exist");
    let error = bound("SELECT 1 = 'x'").expect_err("no number");
    assert_eq!((error.sqlstate, error.position), ("22P02", Some(12)));
}

#[test]
fn what_the_short_path_cannot_do_is_declined_with_a_reason() {
    for (sql, reason) in [
        ("SELECT DISTINCT 1", "DISTINCT"),
        ("WITH a AS (SELECT 1) SELECT * FROM a", "WITH"),
        ("SELECT 1 UNION SELECT 2", "a set operation"),
        ("SELECT (SELECT 1)", "a subquery"),
        ("SELECT * FROM pg_class", "a system catalog"),
        ("SELECT * FROM pg_catalog.pg_type t", "a system catalog"),
        ("SELECT row_number() OVER ()", "a window function"),
        ("SELECT count(*)", "an aggregate without FROM"),
        ("SELECT generate_series(1, 2)", "a set in the select list"),
    ] {
        let error = bound(sql).expect_err(sql);
        assert_eq!(
            (error.sqlstate, &*error.message),
            ("0A000", reason),
            "{sql}"
        );
    }
}
