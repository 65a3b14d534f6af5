//! The shapes that statements grow in.

/// How a statement of a size is made.
pub enum Shape {
    /// An expression, for the select list.
    Expression(fn(usize) -> String),
    /// A statement.
    Query(fn(usize) -> String),
    /// Statements of one message.
    Message(fn(usize) -> String),
}

use Shape::{Expression, Message, Query};

fn nested(open: &str, inner: &str, close: &str, size: usize) -> String {
    format!("{}{inner}{}", open.repeat(size), close.repeat(size))
}

fn list(size: usize, separator: &str, item: impl Fn(usize) -> String) -> String {
    let items: Vec<String> = (0..size).map(item).collect();
    items.join(separator)
}

/// All of them.
pub const SHAPES: &[(&str, Shape)] = &[
    ("selects", Message(|n| "select 1;".repeat(n))),
    (
        "selects by key",
        Message(|n| list(n, ";", |i| format!("select * from t where id = {i}"))),
    ),
    (
        "joins of one message",
        Message(|n| "select * from t join u using (id);\n".repeat(n)),
    ),
    (
        "queries that one grammar reads",
        Message(|n| "select id from t order by id fetch first 1 rows with ties;\n".repeat(n)),
    ),
    (
        "prepared statements",
        Message(|n| {
            list(n, ";", |i| {
                format!("prepare s{i} as select {i}; deallocate s{i}")
            })
        }),
    ),
    (
        "changes of one message",
        Message(|n| {
            list(n, ";", |i| format!("insert into u values ({}, {i})", i + 9))
                + ";delete from u where id > 8"
        }),
    ),
    (
        "settings",
        Message(|n| list(n, ";", |i| format!("set application_name = 'é{i}'"))),
    ),
    ("sum", Expression(|n| format!("1{}", "+1".repeat(n)))),
    (
        "sum of a column",
        Expression(|n| format!("t.relnatts{}", "+1".repeat(n)).replace("t.relnatts", "1")),
    ),
    (
        "product on the right",
        Expression(|n| format!("1{}", "+1*2".repeat(n))),
    ),
    (
        "concatenation",
        Expression(|n| format!("'a'{}", "||'b'".repeat(n))),
    ),
    ("parentheses", Expression(|n| nested("(", "1", ")", n))),
    (
        "parentheses with a sum",
        Expression(|n| nested("(1+", "1", ")", n)),
    ),
    ("arrays", Expression(|n| nested("array[", "1", "]", n))),
    (
        "arrays in parentheses",
        Expression(|n| nested("array[(", "1", ")]", n)),
    ),
    (
        "array of many",
        Expression(|n| format!("array[{}]", list(n, ",", |i| i.to_string()))),
    ),
    (
        "case",
        Expression(|n| nested("case when true then ", "1", " else 2 end", n)),
    ),
    (
        "case of an operand",
        Expression(|n| nested("case ", "1", " when 1 then 2 else 3 end", n)),
    ),
    (
        "case of many",
        Expression(|n| {
            format!(
                "case {} end",
                list(n, " ", |i| format!("when 1 = {i} then {i}"))
            )
        }),
    ),
    ("functions", Expression(|n| nested("abs(", "1", ")", n))),
    (
        "functions of text",
        Expression(|n| nested("upper(", "'a'", ")", n)),
    ),
    (
        "coalesce",
        Expression(|n| nested("coalesce(", "1", ", 2)", n)),
    ),
    ("nullif", Expression(|n| nested("nullif(", "1", ", 2)", n))),
    (
        "greatest",
        Expression(|n| nested("greatest(", "1", ", 2)", n)),
    ),
    (
        "position",
        Expression(|n| {
            nested(
                "position(",
                "'a'",
                " in 'b')::text || upper('c')",
                n.min(400),
            )
        }),
    ),
    (
        "between",
        Expression(|n| nested("(", "true", " between false and true)", n)),
    ),
    ("not", Expression(|n| format!("{}true", "not ".repeat(n)))),
    ("minus", Expression(|n| format!("{}1", "- ".repeat(n)))),
    ("casts", Expression(|n| format!("1{}", "::int".repeat(n)))),
    (
        "casts back and forth",
        Expression(|n| format!("1{}", "::text::int".repeat(n))),
    ),
    (
        "cast()",
        Expression(|n| nested("cast(", "1", " as int)", n)),
    ),
    ("cast() cut off", Expression(|n| "cast(".repeat(n))),
    (
        "extract cut off",
        Expression(|n| "extract(year from ".repeat(n)),
    ),
    ("array cut off", Expression(|n| "array[".repeat(n))),
    (
        "subqueries",
        Expression(|n| nested("(select ", "1", ")", n)),
    ),
    (
        "exists",
        Expression(|n| nested("exists (select ", "1", ")", n)),
    ),
    (
        "in list",
        Expression(|n| format!("1 in ({})", list(n, ",", |i| i.to_string()))),
    ),
    (
        "and",
        Expression(|n| format!("true{}", " and true".repeat(n))),
    ),
    (
        "or of and",
        Expression(|n| format!("true{}", " and 1 = 1 or 2 = 2".repeat(n))),
    ),
    (
        "and of in",
        Expression(|n| format!("true{}", " and 1 in (1, 2)".repeat(n))),
    ),
    ("is null", Expression(|n| nested("(", "1", " is null)", n))),
    (
        "is distinct from",
        Expression(|n| format!("1{}", " is distinct from 1".repeat(n))),
    ),
    (
        "like",
        Expression(|n| format!("'a'{}", " like 'b'".repeat(n))),
    ),
    (
        "row values",
        Expression(|n| format!("({}) = (1)", list(n, ",", |i| i.to_string()))),
    ),
    ("dots", Expression(|n| format!("a{}", ".a".repeat(n)))),
    (
        "select list",
        Expression(|n| list(n, ",", |i| i.to_string())),
    ),
    (
        "stars",
        Query(|n| format!("select {} from t", list(n, ",", |_| "*".to_owned()))),
    ),
    (
        "stars of stars",
        Query(|n| {
            format!(
                "select * from {}",
                nested("(select *, * from ", "t", ") t", n)
            )
        }),
    ),
    ("literal", Expression(|n| format!("'{}'", "é".repeat(n)))),
    (
        "dollar quotes",
        Expression(|n| format!("$${}$$", "x ".repeat(n))),
    ),
    ("number", Expression(|n| "7".repeat(n))),
    ("fraction", Expression(|n| format!("0.{}", "7".repeat(n)))),
    (
        "identifier",
        Expression(|n| format!("1 as \"{}\"", "i".repeat(n))),
    ),
    (
        "comments",
        Expression(|n| format!("{} 1", nested("/* ", "", " */", n))),
    ),
    (
        "line comments",
        Expression(|n| format!("{}1", "-- x\n".repeat(n))),
    ),
    (
        "blank lines",
        Expression(|n| format!("{}1", "\n \t".repeat(n))),
    ),
    ("statements", Query(|n| "select 1;".repeat(n.min(1 << 12)))),
    (
        "empty statements",
        Query(|n| format!("{}select 1", ";".repeat(n))),
    ),
    (
        "values",
        Query(|n| format!("values {}", list(n, ",", |i| format!("({i})")))),
    ),
    (
        "values of many",
        Query(|n| format!("values ({})", list(n, ",", |i| i.to_string()))),
    ),
    (
        "insert",
        Query(|n| {
            format!(
                "insert into u values {} on conflict do nothing",
                list(n, ",", |i| format!("({i}, 2)"))
            )
        }),
    ),
    (
        "in list of a key",
        Query(|n| {
            format!(
                "select * from t where id in ({})",
                list(n, ",", |i| i.to_string())
            )
        }),
    ),
    (
        "or of keys",
        Query(|n| format!("select * from t where id = 1{}", " or id = 2".repeat(n))),
    ),
    (
        "or in a join",
        Query(|n| {
            format!(
                "select * from t join u using (id) where u.a = 1{}",
                " or u.a = 2".repeat(n)
            )
        }),
    ),
    (
        "joins",
        Query(|n| {
            format!(
                "select t.id from t{}",
                list(n, "", |i| format!(" join u u{i} on u{i}.id = t.id"))
            )
        }),
    ),
    (
        "cross joins",
        Query(|n| {
            format!(
                "select 1 from {}",
                list(n, ",", |i| format!("(select 1 as a) x{i}"))
            )
        }),
    ),
    (
        "union",
        Query(|n| format!("select 1{}", " union all select 1".repeat(n))),
    ),
    (
        "union of a table",
        Query(|n| format!("select a from t{}", " union select a from u".repeat(n))),
    ),
    (
        "with",
        Query(|n| {
            format!(
                "with {} select * from t",
                list(n, ",", |i| format!("x{i} as (select * from t)"))
            )
        }),
    ),
    (
        "with in each other",
        Query(|n| {
            let tables = list(n, ",", |i| match i {
                0 => "x0 as (select id from t)".to_owned(),
                i => format!("x{i} as (select * from x{})", i - 1),
            });
            format!("with {tables} select * from x{}", n - 1)
        }),
    ),
    (
        "with twice in each other",
        Query(|n| {
            let tables = list(n, ",", |i| match i {
                0 => "x0 as (select id from t)".to_owned(),
                i => format!("x{i} as (select a.id from x{0} a, x{0} b)", i - 1),
            });
            format!("with {tables} select count(*) from x{}", n - 1)
        }),
    ),
    (
        "from in parentheses",
        Query(|n| {
            let mut sql = "t".to_owned();
            for level in 0..n.min(2000) {
                sql = format!("((select 1 as id from {sql}) x{level} join u using (id))");
            }
            format!("select 1 from {sql}")
        }),
    ),
    (
        "subqueries in from",
        Query(|n| format!("select 1 from {}", nested("(select * from ", "t", ") t", n))),
    ),
    (
        "subqueries in where",
        Query(|n| {
            format!(
                "select 1 from t where {}",
                nested("id in (select id from u where ", "true", ")", n)
            )
        }),
    ),
    (
        "order by",
        Query(|n| {
            format!(
                "select a from t order by {}",
                list(n, ",", |i| format!("a + {i}"))
            )
        }),
    ),
    (
        "order by a sum",
        Query(|n| {
            format!(
                "select id from t join u using (id) order by u.a{}",
                "+1".repeat(n)
            )
        }),
    ),
    (
        "group by",
        Query(|n| {
            format!(
                "select count(*) from t group by {}",
                list(n, ",", |i| format!("a + {i}"))
            )
        }),
    ),
    (
        "group by a sum",
        Query(|n| format!("select a{0}, count(*) from t group by a{0}", "+1".repeat(n))),
    ),
    (
        "group by parts",
        Query(|n| {
            format!(
                "select count(*) from t group by cube ({})",
                list(n, ",", |i| format!("a + {i}"))
            )
        }),
    ),
    (
        "update",
        Query(|n| format!("update t set a = 1{} where id = 1", "+1".repeat(n))),
    ),
    (
        "delete",
        Query(|n| format!("delete from t where id = 77{}", " and a = 1".repeat(n))),
    ),
    (
        "explain",
        Query(|n| format!("{}select 1", "explain ".repeat(n))),
    ),
    (
        "windows",
        Query(|n| {
            format!(
                "select {} from t",
                list(n, ",", |i| format!("sum(a) over (partition by a + {i})"))
            )
        }),
    ),
];
