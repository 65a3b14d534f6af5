//! Parts of a statement as texts that mean the same wherever they are read again: expressions and
//! types that a catalog keeps. The deparser of libpg_query writes them.

use pg_raw_parse::nodes::{SelectStmt, TypeCast, TypeName};
use pg_raw_parse::{Node, deparse, make};

use crate::error::{QueryError, Result};

/// An expression as a text. The stack must have room for it.
///
/// # Errors
/// XX000 for what cannot be written.
pub fn expression(node: Node<'_>) -> Result<String> {
    let select = make::owned(|mem| {
        let target = mem.make_res_target(None, mem.empty(), mem.make_unique(node));
        let mut select = mem.make_node::<SelectStmt>();
        let targets = mem.make_list(&[target]);
        select.as_mut().set_target_list(targets);
        select
    });
    behind(&select, "SELECT ")
}

/// A query or a change of rows as a text. The stack must have room for it.
///
/// # Errors
/// XX000 for what cannot be written.
pub fn statement(node: Node<'_>) -> Result<String> {
    let written = deparse(node).map_err(|error| unwritable(&error))?;
    Ok(written.as_str().to_owned())
}

/// A type with its modifiers, as it was named.
///
/// # Errors
/// XX000 for what cannot be written.
pub fn type_name(name: &TypeName) -> Result<String> {
    let select = make::owned(|mem| {
        let mut cast = mem.make_node::<TypeCast>();
        cast.as_mut().set_arg(mem.make_null().uncast());
        cast.as_mut()
            .set_type_name(mem.make_unique(name).as_option());
        let target = mem.make_res_target(None, mem.empty(), cast.uncast());
        let mut select = mem.make_node::<SelectStmt>();
        let targets = mem.make_list(&[target]);
        select.as_mut().set_target_list(targets);
        select
    });
    behind(&select, "SELECT NULL::")
}

/// The text of a SELECT behind these words.
fn behind(select: &SelectStmt, words: &str) -> Result<String> {
    let written = deparse(select).map_err(|error| unwritable(&error))?;
    let text = written.as_str();
    text.strip_prefix(words)
        .map(str::to_owned)
        .ok_or_else(|| QueryError::new("XX000", format!("a part of a statement became \"{text}\"")))
}

#[cold]
fn unwritable(error: &pg_raw_parse::Error) -> QueryError {
    QueryError::new("XX000", format!("a part of a statement: {error}"))
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    #[test]
    fn expressions_are_written_as_they_are_read() {
        for (text, written) in [
            ("a>0 and B<>'x''y'", "a > 0 AND b <> 'x''y'"),
            ("(a+1)*2", "(a + 1) * 2"),
            ("now()", "now()"),
            ("current_timestamp", "current_timestamp"),
            ("nextval('s'::regclass)", "nextval('s'::regclass)"),
            ("-2147483648", "-2147483648"),
            ("array['x, y']", "ARRAY['x, y']"),
            ("interval '1 day'", "'1 day'::interval"),
            ("date '2024-01-01'", "'2024-01-01'::date"),
            ("trim(both from x)", "TRIM (BOTH  FROM x)"),
            ("extract(year from d)", "extract ('year' FROM d)"),
            ("\"Value\" is not null", "\"Value\" IS NOT NULL"),
            (
                "case when a then 1 else 2 end",
                "CASE WHEN a THEN 1 ELSE 2 END",
            ),
            ("null", "NULL"),
            ("x'1f'", "x'1f'"),
            ("e'a\\nb'", "'a\nb'"),
            ("e'a\\\\b'", "E'a\\\\b'"),
        ] {
            let statement = format!("SELECT {text}");
            let parsed = parse(&statement).unwrap();
            let Some(Node::SelectStmt(select)) = parsed.statements().stmts().next() else {
                panic!("{text}");
            };
            let Some(target) = select.target_list().first() else {
                panic!("{text}");
            };
            let shown = expression(target.val()).unwrap();
            assert_eq!(shown, written, "{text}");
            let again = parse(&format!("SELECT {shown}")).unwrap();
            let Some(Node::SelectStmt(select)) = again.statements().stmts().next() else {
                panic!("{shown}");
            };
            let Some(target) = select.target_list().first() else {
                panic!("{shown}");
            };
            assert_eq!(expression(target.val()).unwrap(), shown, "{text}");
        }
    }

    #[test]
    fn types_are_written_as_they_are_read() {
        for (text, written) in [
            ("int", "int"),
            ("integer[3][]", "int[3][]"),
            ("character varying(5)[]", "varchar(5)[]"),
            ("char", "char(1)"),
            ("char(3)", "char(3)"),
            ("\"char\"", "\"char\""),
            ("bpchar", "bpchar"),
            ("bpchar(4)", "bpchar(4)"),
            ("numeric(10,2)", "numeric(10, 2)"),
            ("interval day to second(3)", "interval day to second(3)"),
            ("interval(2)", "interval(2)"),
            (
                "timestamp(3) with time zone",
                "timestamp (3) with time zone",
            ),
            ("time without time zone", "time"),
            ("float(20)", "real"),
            ("bit varying(3)", "pg_catalog.varbit(3)"),
            ("S.\"My Type\"", "s.\"My Type\""),
            ("serial", "serial"),
            ("json", "pg_catalog.json"),
            ("boolean", "boolean"),
            ("double precision", "double precision"),
        ] {
            let read = |text: &str| {
                let parsed = parse(&format!("SELECT NULL::{text}")).unwrap();
                let Some(Node::SelectStmt(select)) = parsed.statements().stmts().next() else {
                    panic!("{text}");
                };
                let Some(target) = select.target_list().first() else {
                    panic!("{text}");
                };
                let Node::TypeCast(cast) = target.val() else {
                    panic!("{text}");
                };
                type_name(cast.type_name().unwrap()).unwrap()
            };
            let shown = read(text);
            assert_eq!(shown, written, "{text}");
            assert_eq!(read(&shown), shown, "{text}");
        }
    }
}
