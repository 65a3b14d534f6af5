//! Subscripts of arrays and comparisons of rows, which have no function to
//! call by its name with texts.

use std::fmt::Write as _;
use std::sync::Arc;

use thermocline_query::call::{Call, Environment, Plain};
use thermocline_query::datum::{Datum, Record};
use thermocline_query::error::Result;
use thermocline_query::functions::{self, Body};
use thermocline_query::types::array::{self, Array};
use thermocline_query::types::{self, ids};

use super::{Answer, ask, oracle, quoted};

const ARRAYS: &[&str] = &[
    "{}",
    "{1}",
    "{1,2,3}",
    "{NULL,2}",
    "[-1:1]={7,8,9}",
    "{{1,2},{3,4}}",
    "[0:1][5:7]={{1,2,3},{4,NULL,6}}",
    "{{{1},{2}},{{3},{4}}}",
];

type Bound = (Option<i32>, Option<i32>);

const SLICES: &[&[Bound]] = &[
    &[(Some(1), Some(2))],
    &[(None, None)],
    &[(None, Some(0))],
    &[(Some(-3), None)],
    &[(Some(2), Some(1))],
    &[(Some(5), Some(6))],
    &[(Some(-2_147_483_648), Some(2_147_483_647))],
    &[(Some(1), Some(2)), (Some(1), Some(1))],
    &[(Some(0), Some(1)), (Some(6), None)],
    &[(None, None), (None, Some(6))],
    &[(Some(1), Some(1)), (Some(2), Some(2)), (None, Some(1))],
];

const SUBSCRIPTS: &[&[i32]] = &[
    &[1],
    &[0],
    &[-1],
    &[3],
    &[6],
    &[-5],
    &[2_147_483_647],
    &[-2_147_483_648],
    &[1, 2],
    &[0, 5],
    &[1, 7],
    &[2, 2, 1],
    &[1, 1, 1, 1, 1, 1, 1],
];

fn brackets(subscripts: &[i32]) -> String {
    subscripts
        .iter()
        .map(|value| format!("[{value}]"))
        .collect()
}

fn colons(bounds: &[Bound]) -> String {
    let text = |bound: Option<i32>| bound.map_or_else(String::new, |bound| bound.to_string());
    bounds
        .iter()
        .map(|(lower, upper)| format!("[{}:{}]", text(*lower), text(*upper)))
        .collect()
}

fn answer(call: &Call<'_>, oid: u32, result: Result<Datum>) -> Answer {
    let shown = result.and_then(|value| match value {
        Datum::Null => Ok(None),
        value => types::to_text(call, oid, &value).map(Some),
    });
    match shown {
        Ok(text) => Answer::Rows(vec![text]),
        Err(error) => Answer::Error(error.sqlstate.to_owned()),
    }
}

#[tokio::test]
async fn subscripts_are_those_of_postgresql() {
    let Some(client) = oracle().await else { return };
    client
        .batch_execute("create temp table subscripts (a int4[])")
        .await
        .expect("a table");
    let environment: &dyn Environment = &Plain::default();
    let call = Call::new(environment, &[], ids::INT4_ARRAY);
    let read = |text: &str| -> Array {
        let value = types::input(&call, ids::INT4_ARRAY, text, -1).expect("an array");
        value.as_array().clone()
    };
    let mut questions: Vec<(String, Answer)> = Vec::new();
    for text in ARRAYS {
        let array = read(text);
        let shown = quoted(Some(text));
        let assign = |target: String, value: &str| {
            format!(
                "delete from subscripts; insert into subscripts values ({shown});
                 update subscripts set a{target} = {value}; select a from subscripts"
            )
        };
        for subscripts in SUBSCRIPTS {
            if subscripts.len() <= 6 {
                questions.push((
                    format!("select ({shown}::int4[]){}", brackets(subscripts)),
                    answer(&call, ids::INT4, Ok(array::get(&array, subscripts))),
                ));
            }
            let set = array::set(&call, array.clone(), subscripts, Datum::Int4(9));
            if subscripts.len() <= 6 {
                questions.push((
                    assign(brackets(subscripts), "9"),
                    answer(
                        &call,
                        ids::INT4_ARRAY,
                        set.map(|array| Datum::Array(array.into())),
                    ),
                ));
            }
        }
        for bounds in SLICES {
            let slice = array::slice(&call, &array, bounds);
            questions.push((
                format!("select ({shown}::int4[]){}", colons(bounds)),
                answer(
                    &call,
                    ids::INT4_ARRAY,
                    slice.map(|array| Datum::Array(array.into())),
                ),
            ));
            for source in ["{}", "{5}", "{5,NULL}", "{{5,6},{7,8}}"] {
                let set = array::set_slice(&call, array.clone(), bounds, &read(source));
                questions.push((
                    assign(colons(bounds), &quoted(Some(source))),
                    answer(
                        &call,
                        ids::INT4_ARRAY,
                        set.map(|array| Datum::Array(array.into())),
                    ),
                ));
            }
        }
    }
    let mut report = String::new();
    for (sql, ours) in questions {
        let theirs = ask(&client, &sql).await;
        if theirs != ours {
            writeln!(
                report,
                "{sql}\n    PostgreSQL {theirs:?}\n    ours       {ours:?}"
            )
            .unwrap();
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

/// Rows: the types of their columns and their texts.
type Row = &'static [(u32, Option<&'static str>)];

const ROWS: &[Row] = &[
    &[(ids::INT4, Some("1")), (ids::TEXT, Some("a"))],
    &[(ids::INT4, Some("1")), (ids::TEXT, Some("b c"))],
    &[(ids::INT4, Some("2")), (ids::TEXT, None)],
    &[(ids::INT4, None), (ids::TEXT, None)],
    &[(ids::INT4, None), (ids::TEXT, Some(""))],
    &[(ids::INT4, Some("1"))],
    &[(ids::TEXT, Some("1")), (ids::INT4, None)],
    &[(ids::NUMERIC, Some("1.0")), (ids::TEXT, Some("a\\\"),("))],
    &[(ids::INT4_ARRAY, Some("{1,NULL}")), (ids::JSON, Some("1"))],
    &[(ids::INT4_ARRAY, Some("{1,NULL}")), (ids::JSON, None)],
    &[],
];

/// The function of rows with this number.
fn body_of(oid: u32) -> fn(&Call<'_>, &[Datum]) -> Result<Datum> {
    functions::all()
        .filter(|function| function.oid == oid)
        .find_map(|function| match function.body {
            Body::Row(body) => Some(body),
            _ => None,
        })
        .expect("a function of rows")
}

#[tokio::test]
async fn rows_compare_as_by_postgresql() {
    let Some(client) = oracle().await else { return };
    let environment: &dyn Environment = &Plain::default();
    let call = Call::new(environment, &[ids::RECORD, ids::RECORD], ids::BOOL);
    let value = |row: Row| -> Datum {
        let values = row
            .iter()
            .map(|(oid, text)| match text {
                Some(text) => types::input(&call, *oid, text, -1).expect("a value"),
                None => Datum::Null,
            })
            .collect();
        Datum::Record(Arc::new(Record {
            modifiers: None,
            types: row.iter().map(|(oid, _)| *oid).collect(),
            names: None,
            values,
        }))
    };
    let written = |row: Row| -> String {
        let columns: Vec<_> = row
            .iter()
            .map(|(oid, text)| format!("{}::{}", quoted(*text), types::format_type(*oid, -1)))
            .collect();
        format!("row({})", columns.join(", "))
    };
    let mut report = String::new();
    let mut check = |sql: String, theirs: Answer, ours: Answer| {
        if theirs != ours {
            writeln!(
                report,
                "{sql}\n    PostgreSQL {theirs:?}\n    ours       {ours:?}"
            )
            .unwrap();
        }
    };
    for a in ROWS {
        for (sql, ours) in [
            (
                format!("select {}::text", written(a)),
                answer(&call, ids::RECORD, Ok(value(a))),
            ),
            (format!("select pg_column_size({})", written(a)), {
                let call = Call::new(environment, &[ids::RECORD], ids::INT4);
                let body = body_of(1269);
                answer(&call, ids::INT4, body(&call, &[value(a)]))
            }),
        ] {
            check(sql.clone(), ask(&client, &sql).await, ours);
        }
        for b in ROWS {
            for (name, oid) in [
                ("record_eq", 2981),
                ("record_lt", 2983),
                ("record_ge", 2986),
            ] {
                let body = body_of(oid);
                let sql = format!("select {name}({}, {})", written(a), written(b));
                let ours = answer(&call, ids::BOOL, body(&call, &[value(a), value(b)]));
                check(sql.clone(), ask(&client, &sql).await, ours);
            }
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

/// Texts of types, right ones and wrong ones.
const TEXTS: &[(u32, &[&str])] = &[
    (
        ids::INT4_ARRAY,
        &[
            " { 1 , 2 } ",
            "{1,2",
            "{1,,2}",
            "{,1}",
            "{1,}",
            "{}}",
            "{1}x",
            "{{1},{2,3}}",
            "{{1},2}",
            "{1,{2}}",
            "{{{1}},{2}}",
            "{{},{}}",
            "{{}}",
            "{{1,2},{}}",
            "{ }",
            "{null,NULL,Null}",
            "{\"NULL\"}",
            "{1\"2\"}",
            "{\"1\"2}",
            "{\"1\"\"2\"}",
            "{\\1}",
            "{1\\",
            "{1}\\",
            "}",
            "{1 2}",
            "[1:2]={1,2}",
            "[1:2] = {1,2}",
            "[1:2]= {1,2}",
            "[1:2]{1,2}",
            "[1:3]={1,2}",
            "[1:2]={{1,2}}",
            "[2]={1,2}",
            "[]={1}",
            "[1:]={1}",
            "[1={1}",
            "[1:0]={}",
            "[2:1]={1}",
            "[-2:-1]={1,2}",
            "[+1:+2]={1,2}",
            "[1-5:2]={1,2}",
            "[99999999999:99999999999]={1}",
            "[2147483647:2147483647]={1}",
            "[2147483646:2147483646]={1}",
            "[-2147483648:2147483647]={1}",
            "[1:1][1:1][1:1][1:1][1:1][1:1]={{{{{{1}}}}}}",
            "[1:1][1:1][1:1][1:1][1:1][1:1][1:1]={1}",
            "{{{{{{{1}}}}}}}",
            "{{{{{{1}}}}}}",
            " [1:2] [1:1]={{1},{2}}",
            "[1:2]=1",
            "[1:1]={}",
            "{x}",
            "{99999999999}",
        ],
    ),
    (
        ids::TEXT_ARRAY,
        &[
            "{ a b , \"c \" , d\\  }",
            "{\"a\\\"b\",c\\\\d}",
            "{\u{e9}\\\u{e9} ,\"\u{4e2d}\"}",
            "{a\tb,\"{}\",\"\"}",
            "{nulL,\"null\",nul}",
            "{a{b}",
            "{a\\{b}",
            "{\u{b}x\u{c}}",
            "{\u{a0}}",
        ],
    ),
    (
        ids::INET,
        &[
            "1.2.3.4.",
            "1.2.3",
            "1.2.3.",
            "10/8",
            "10/9",
            "10/16",
            "1.2/16",
            "1.2.3.4/33",
            "1.2.3.4/032",
            "1.2.3.4/",
            "1.2.3.4/ 8",
            "256.1.1.1",
            "01.002.0003.4",
            "1..2",
            " 1.2.3.4",
            "1.2.3.4 ",
            "1.2.3.4.5",
            "/8",
            "0x0a000001",
            "::",
            "::/0",
            ":",
            ":::",
            "::1/128",
            "::1/129",
            "::1/01",
            "::1/",
            "1:2:3:4:5:6:7:8",
            "1:2:3:4:5:6:7:8:9",
            "1:2:3:4:5:6:7",
            "1::2::3",
            "::1.2.3.4",
            "::ffff:1.2.3.4",
            "::ffff:1.2.3.4/96",
            "::1.2.3.04",
            "::1.2.3",
            "1:2:3:4:5:6:1.2.3.4",
            "1:2:3:4:5:6:7:1.2.3.4",
            "::ffff:0:0",
            "::2",
            "::1:2",
            "0:0:0:0:0:0:0:0",
            "1:0:0:2:0:0:0:3",
            "1:0:0:2:3:0:0:4",
            "12345::",
            "1:",
            "::g",
            "2001:DB8::FF",
            "1:2:3:4:5:6:7::",
            "::2:3:4:5:6:7:8",
            "1:2:3:4:5:6:7:8::",
            "fe80::1%eth0",
        ],
    ),
    (
        ids::CIDR,
        &[
            "10",
            "10.1",
            "10.1.2",
            "10.1.2.3",
            "10.1.2.3/8",
            "128",
            "192",
            "224",
            "240",
            "224.1",
            "192.168.1",
            "192.168.1/25",
            "192.168.1.129/25",
            "0x0a",
            "0x0a0",
            "0X0A01/16",
            "0x0a0102030405",
            "0x",
            "10.",
            "10.1.",
            "10/33",
            "10/x",
            "::",
            "::/0",
            "2001:db8::/32",
            "2001:db8::1/32",
            "::1",
        ],
    ),
    (
        ids::MACADDR,
        &[
            "08:00:2b:01:02:03",
            "08-00-2b-01-02-03",
            "08002b:010203",
            "08002b-010203",
            "0800.2b01.0203",
            "0800-2b01-0203",
            "08002b010203",
            "8:0:2B:1:2:3",
            " 08:00:2b:01:02:03  ",
            "08:00:2b:01:02:03x",
            "08:00:2b:01:02",
            "08:00:2b:01:02:100",
            "0x8:0:0:0:0:0",
            "-1:0:0:0:0:0",
            "-ffffffff:0:0:0:0:0",
            "100000001:0:0:0:0:0",
            "fffffffffffffffffff:0:0:0:0:0",
            " 1: 2: 3: 4: 5: 6",
            "1 :2:3:4:5:6",
            "08002b0102030",
            "08002b01020",
            "0x0x0x0x0x0x",
            "08002b01-0203",
            "",
            "not even close",
        ],
    ),
    (
        ids::MACADDR8,
        &[
            "08:00:2b:01:02:03",
            "08:00:2b:01:02:03:04:05",
            "08-00-2b-01-02-03-04-05",
            "08002b:0102030405",
            "0800.2b01.0203.0405",
            "08002b0102030405",
            "08:00-2b:01:02:03",
            "  08:00:2b:01:02:03:04:05   ",
            "08:00:2b:01:02:03 04:05",
            "08:00:2b:01:02",
            "08:00:2b:01:02:03:04:05:",
            "08002b01020304056",
            "08:00:2b:01:02:03:04:05:06",
            "8:0:2b:1:2:3",
            "gg:00:2b:01:02:03",
            "08:00:2b:01:02:03\u{e9}",
        ],
    ),
    (ids::RECORD_ARRAY, &["{}", "{1}", "{NULL}"]),
];

#[tokio::test]
async fn texts_are_read_as_by_postgresql() {
    let Some(client) = oracle().await else { return };
    let environment: &dyn Environment = &Plain::default();
    let call = Call::new(environment, &[], ids::TEXT);
    let mut report = String::new();
    for (oid, texts) in TEXTS {
        for text in *texts {
            let sql = format!("select {}::{}", quoted(Some(text)), super::sql_name(*oid));
            let theirs = match client.simple_query(&sql).await {
                Ok(_) => match ask(&client, &sql).await {
                    Answer::Rows(rows) => format!("{rows:?}"),
                    Answer::Error(code) => code,
                },
                Err(error) => match error.as_db_error() {
                    Some(error) => format!(
                        "{} {} {:?}",
                        error.code().code(),
                        error.message(),
                        error.detail()
                    ),
                    None => error.to_string(),
                },
            };
            let read = types::input(&call, *oid, text, -1)
                .and_then(|value| types::to_text(&call, *oid, &value));
            let ours = match read {
                Ok(text) => format!("{:?}", [Some(text)]),
                Err(error) => {
                    format!(
                        "{} {} {:?}",
                        error.sqlstate,
                        error.message,
                        error.detail.as_deref()
                    )
                }
            };
            if theirs != ours {
                writeln!(
                    report,
                    "{sql}\n    PostgreSQL {theirs}\n    ours       {ours}"
                )
                .unwrap();
            }
        }
    }
    assert!(report.is_empty(), "\n{report}");
}
