//! What an expression that is kept as its text mentions: columns and types; and a column's new name
//! in it.

use pg_raw_parse::Node;
use pg_raw_parse::nodes::ColumnRef;
use pg_raw_parse::walk::{Recurse, walk_manual};
use thermocline_engine::TableDef;
use thermocline_query::parse::parse;

use super::dependents::quote_ident;
use crate::error::{Result, SqlError};
use crate::parse::depth_of;
use crate::parse::scan::{Token, Tokens};

pub(super) const BEFORE: &str = "SELECT ";

/// Visits all nodes of an expression.
///
/// # Errors
/// 42601 and 54001 of the text.
pub(super) fn in_expression(text: &str, visit: &mut dyn FnMut(Node<'_>)) -> Result<()> {
    let depth = depth_of(text)?;
    crate::stack::with_room(depth, || in_parsed(&format!("{BEFORE}{text}"), visit))
}

/// Visits all nodes of a query.
///
/// # Errors
/// As [`in_expression`].
pub(super) fn in_query(text: &str, visit: &mut dyn FnMut(Node<'_>)) -> Result<()> {
    let depth = depth_of(text)?;
    crate::stack::with_room(depth, || in_parsed(text, visit))
}

fn in_parsed(text: &str, visit: &mut dyn FnMut(Node<'_>)) -> Result<()> {
    let parsed = parse(text)?;
    let statement = parsed.statements().stmts().next();
    let statement = statement.ok_or_else(|| SqlError::internal("an empty expression"))?;
    walk_manual::<()>(statement, |node| {
        // The walker does not go into these.
        if let Node::TypeCast(cast) = node
            && let Some(name) = cast.type_name()
        {
            visit(Node::TypeName(name));
        }
        if !matches!(node, Node::TypeName(_)) {
            visit(node);
        }
        Recurse::yes()
    });
    Ok(())
}

/// Whether an expression is an operation, and stands in parentheses within others.
pub(crate) fn is_operation(text: &str) -> bool {
    let Ok(depth) = depth_of(text) else {
        return false;
    };
    crate::stack::with_room(depth, || {
        let Ok(parsed) = parse(&format!("{BEFORE}{text}")) else {
            return false;
        };
        let Some(Node::SelectStmt(select)) = parsed.statements().stmts().next() else {
            return false;
        };
        let mut targets = select.target_list().iter();
        let (first, None) = (targets.next(), targets.next()) else {
            return false;
        };
        matches!(
            first.map(|target| target.val()),
            Some(
                Node::A_Expr(_)
                    | Node::BoolExpr(_)
                    | Node::NullTest(_)
                    | Node::BooleanTest(_)
                    | Node::CollateClause(_)
            )
        )
    })
}

/// The column that a reference names, whatever it is qualified by.
fn column_of(reference: &ColumnRef) -> Option<&str> {
    reference.fields().iter().next_back()?.as_str()
}

/// The columns of a table that an expression reads.
///
/// # Errors
/// As [`in_expression`].
pub(crate) fn columns(text: &str, def: &TableDef) -> Result<Vec<usize>> {
    let mut found: Vec<usize> = Vec::new();
    in_expression(text, &mut |node| {
        if let Node::ColumnRef(reference) = node {
            let column = column_of(reference).and_then(|name| def.column_named(name));
            found.extend(column.filter(|column| !found.contains(column)));
        }
    })?;
    Ok(found)
}

/// An expression with a column's new name.
///
/// # Errors
/// As [`in_expression`].
pub(super) fn renamed(text: &str, old: &str, new: &str) -> Result<String> {
    let mut places = Vec::new();
    in_expression(text, &mut |node| {
        if let Node::ColumnRef(reference) = node
            && column_of(reference) == Some(old)
            && let Ok(at) = usize::try_from(reference.location)
        {
            places.push((at.saturating_sub(BEFORE.len()), reference.fields().len()));
        }
    })?;
    places.sort_unstable();
    let mut written = String::with_capacity(text.len());
    let mut copied = 0;
    for (at, names) in places {
        let Some((from, to)) = last_name(text, at, names) else {
            return Err(SqlError::internal("a column's name is not at its place"));
        };
        written.push_str(&text[copied..from]);
        written.push_str(&quote_ident(new));
        copied = to;
    }
    written.push_str(&text[copied..]);
    Ok(written)
}

/// Whether a reference names a column with its table before it.
fn is_of(reference: &ColumnRef, table: &TableDef) -> bool {
    let names: Vec<Option<&str>> = reference
        .fields()
        .iter()
        .map(|name| name.as_str())
        .collect();
    let (own, schema) = (Some(table.name.as_str()), Some(table.schema.as_str()));
    match names.as_slice() {
        [of, Some(_)] => *of == own,
        [within, of, Some(_)] => *within == schema && *of == own,
        _ => false,
    }
}

/// An expression over a table without the table's name before its columns: the table may get
/// another one.
///
/// # Errors
/// As [`in_expression`].
pub(super) fn unqualified(text: &str, table: &TableDef) -> Result<String> {
    let mut left_out = Vec::new();
    if text.contains('.') {
        in_expression(text, &mut |node| {
            if let Node::ColumnRef(reference) = node
                && is_of(reference, table)
                && let Ok(at) = usize::try_from(reference.location)
            {
                let at = at.saturating_sub(BEFORE.len());
                let last = last_name(text, at, reference.fields().len());
                left_out.extend(last.map(|(name, _)| at..name));
            }
        })?;
    }
    left_out.sort_unstable_by_key(|part| part.start);
    let mut written = String::with_capacity(text.len());
    let mut copied = 0;
    for part in left_out {
        written.push_str(&text[copied..part.start]);
        copied = part.end;
    }
    written.push_str(&text[copied..]);
    Ok(written)
}

/// Where the last of so many names that begin at this byte is.
pub(super) fn last_name(text: &str, at: usize, names: usize) -> Option<(usize, usize)> {
    let mut tokens = Tokens::new(text.get(at..)?);
    let mut place = None;
    let mut left = names;
    while left > 0 {
        let token = tokens.next()?;
        if let Token::Word(name) | Token::Quoted(name) = token {
            let end = at + tokens.at();
            place = Some((end - name.len(), end));
            left -= 1;
        }
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_its_new_name_wherever_it_is_read() {
        for (text, renamed_text) in [
            ("a > 0 AND b < a", "c > 0 AND b < c"),
            ("t.a + \"a\" + s.t.a", "t.c + c + s.t.c"),
            ("a(a) > 'a' OR aa = A", "a(c) > 'a' OR aa = c"),
            ("b", "b"),
            ("(é.a).f = 1", "(é.c).f = 1"),
        ] {
            assert_eq!(renamed(text, "a", "c").unwrap(), renamed_text, "{text}");
        }
        assert_eq!(renamed("a", "a", "Of c").unwrap(), "\"Of c\"");
    }
}
