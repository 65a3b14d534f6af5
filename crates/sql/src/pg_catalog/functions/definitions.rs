//! Definitions as PostgreSQL writes them: constraints, indexes, the sequence
//! of a column.

use thermocline_engine::TypeKind;
use thermocline_engine::catalog::{
    ForeignKeyDef, IndexDef, IndexKind, KeyOrder, ReferenceAction, Table,
};

use super::shown::condition_shown;
use super::{quote_ident, shown};
use crate::ddl::is_operation;
use crate::error::{Result, SqlError};
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::oids::{check_oid, domain_check_oid, index_constraint_oid};
use crate::pg_catalog::session::{Names, SystemSession};

fn check_text(expression: &str, pretty: bool) -> String {
    let whole = parenthesised(expression);
    match pretty {
        true => format!("CHECK {whole}"),
        false => format!("CHECK ({whole})"),
    }
}

fn columns(table: &Table, index: &IndexDef) -> String {
    named(table, &index.columns)
}

fn named(table: &Table, columns: &[usize]) -> String {
    let names: Vec<String> = columns
        .iter()
        .map(|&column| quote_ident(&table.columns[column].name))
        .collect();
    names.join(", ")
}

/// `FOREIGN KEY (a) REFERENCES p(b) ON DELETE CASCADE`
fn foreign_key(session: &SystemSession, table: &Table, key: &ForeignKeyDef) -> String {
    let mut text = format!("FOREIGN KEY ({})", named(table, &key.columns));
    if let Some(parent) = session.catalog.table(key.table) {
        let name = session.relation_name(parent.oid).unwrap_or_default();
        let referenced = named(parent, &key.referenced);
        text += &format!(" REFERENCES {name}({referenced})");
    }
    if key.match_full {
        text += " MATCH FULL";
    }
    for (event, action) in [("UPDATE", key.on_update), ("DELETE", key.on_delete)] {
        if action != ReferenceAction::NoAction {
            text += &format!(" ON {event} {}", action_name(action));
        }
    }
    if !key.set_columns.is_empty() {
        text += &format!(" ({})", named(table, &key.set_columns));
    }
    if key.deferrable {
        text += " DEFERRABLE";
    }
    if key.deferred {
        text += " INITIALLY DEFERRED";
    }
    if !key.validated {
        text += " NOT VALID";
    }
    text
}

/// An action as SQL writes it.
pub(crate) const fn action_name(action: ReferenceAction) -> &'static str {
    match action {
        ReferenceAction::NoAction => "NO ACTION",
        ReferenceAction::Restrict => "RESTRICT",
        ReferenceAction::Cascade => "CASCADE",
        ReferenceAction::SetNull => "SET NULL",
        ReferenceAction::SetDefault => "SET DEFAULT",
    }
}

/// ` INCLUDE (c)`, if an index has such columns.
fn include(table: &Table, index: &IndexDef) -> String {
    match index.include.is_empty() {
        true => String::new(),
        false => format!(" INCLUDE ({})", named(table, &index.include)),
    }
}

/// ` NULLS NOT DISTINCT`, if an index says so.
const fn nulls_not_distinct(index: &IndexDef) -> &'static str {
    match index.nulls_equal {
        true => " NULLS NOT DISTINCT",
        false => "",
    }
}

/// `PRIMARY KEY (a, b)`, `UNIQUE (a)`, `CHECK ((a > 0))`; `pretty` leaves out
/// the inner parentheses.
pub(super) fn constraint(session: &SystemSession, oid: u32, pretty: bool) -> Option<String> {
    for table in session.catalog.tables.values() {
        for index in &table.indexes {
            if index.constraint && index_constraint_oid(index) == oid {
                let kind = if index.primary {
                    "PRIMARY KEY"
                } else {
                    "UNIQUE"
                };
                let include = include(table, index);
                let nulls = nulls_not_distinct(index);
                return Some(format!(
                    "{kind}{nulls} ({}){include}",
                    columns(table, index)
                ));
            }
        }
        let mut keys = table.foreign_keys.iter();
        if let Some(key) = keys.find(|key| key.oid == oid) {
            return Some(foreign_key(session, table, key));
        }
        for (number, check) in table.checks.iter().enumerate() {
            if check_oid(table, number) == oid {
                let not_valid = if check.validated { "" } else { " NOT VALID" };
                let text = check_text(&shown(session, &check.expression), pretty);
                return Some(text + not_valid);
            }
        }
    }
    for def in session.catalog.types.values() {
        let TypeKind::Domain(domain) = &def.kind else {
            continue;
        };
        let mut checks = domain.checks.iter().enumerate();
        let check = checks.find(|(number, _)| domain_check_oid(def.oid, *number) == oid);
        if let Some((_, check)) = check {
            let not_valid = if check.valid { "" } else { " NOT VALID" };
            return Some(
                check_text(&condition_shown(session, &check.expression), pretty) + not_valid,
            );
        }
    }
    None
}

/// The expression in parentheses, once.
pub(super) fn parenthesised(expression: &str) -> String {
    let trimmed = expression.trim();
    let mut depth = 0;
    let whole = trimmed.starts_with('(')
        && trimmed.char_indices().all(|(at, character)| {
            match character {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            depth > 0 || at + 1 == trimmed.len()
        });
    if whole {
        trimmed.to_owned()
    } else {
        format!("({trimmed})")
    }
}

/// A part of an index's keys, as a definition shows it.
fn key_part(session: &SystemSession, table: &Table, column: usize) -> String {
    let def = &table.columns[column];
    let Some(hidden) = &def.hidden else {
        return quote_ident(&def.name);
    };
    let text = shown(session, &hidden.text);
    match is_operation(&text) && text.starts_with('(') {
        true => format!("({text})"),
        false => text,
    }
}

/// The expressions that an index is over, as `pg_get_expr` shows them.
pub(crate) fn index_expressions(
    session: &SystemSession,
    table: &Table,
    index: &IndexDef,
) -> Option<String> {
    let hidden = table.key_of(index).iter();
    let hidden = hidden.filter_map(|column| table.columns[*column].hidden.as_ref());
    let texts: Vec<String> = hidden.map(|of| shown(session, &of.text)).collect();
    match texts.as_slice() {
        [] => None,
        // Whoever shows it adds the parentheses.
        [one] => Some(without_parentheses(one).to_owned()),
        several => Some(several.join(", ")),
    }
}

/// An expression of an index without the parentheses that it is kept in.
fn without_parentheses(text: &str) -> &str {
    let inner = text.strip_prefix('(');
    inner
        .and_then(|text| text.strip_suffix(')'))
        .unwrap_or(text)
}

/// The predicate of an index.
pub(crate) fn index_predicate(
    session: &SystemSession,
    table: &Table,
    index: &IndexDef,
) -> Option<String> {
    let hidden = table.columns[table.predicate_of(index)?].hidden.as_ref()?;
    Some(shown(session, &hidden.text))
}

/// What follows a part of a key that is ordered so.
const fn order_name(order: KeyOrder) -> &'static str {
    match (order.descending, order.nulls_first) {
        (false, false) => "",
        (false, true) => " NULLS FIRST",
        (true, true) => " DESC",
        (true, false) => " DESC NULLS LAST",
    }
}

/// The statement that makes an index, or with `column` (from 1) that column.
pub(crate) fn index(session: &SystemSession, oid: u32, column: i64) -> Option<String> {
    let (table, index) = session.index(oid)?;
    let key = table.key_of(index);
    if column > 0 {
        let at = usize::try_from(column - 1).ok()?;
        let column = *key.iter().chain(&index.include).nth(at)?;
        return Some(key_part(session, table, column));
    }
    let parts = key.iter().enumerate().map(|(at, column)| {
        let order = index.order.get(at).copied().unwrap_or(KeyOrder::DEFAULT);
        key_part(session, table, *column) + order_name(order)
    });
    let parts: Vec<String> = parts.collect();
    let include = include(table, index) + nulls_not_distinct(index);
    let predicate = index_predicate(session, table, index);
    let predicate = predicate.map_or_else(String::new, |text| {
        format!(" WHERE {}", parenthesised(&text))
    });
    let unique = if index.unique { "UNIQUE " } else { "" };
    // Its partitions have indexes with definitions of their own.
    let only = if table.partitioned.is_some() {
        "ONLY "
    } else {
        ""
    };
    let method = match index.kind {
        IndexKind::BTree => "btree",
        IndexKind::Hash => "hash",
    };
    Some(format!(
        "CREATE {unique}INDEX {} ON {only}{}.{} USING {method} ({}){include}{predicate}",
        quote_ident(&index.name),
        quote_ident(&table.schema),
        quote_ident(&table.name),
        parts.join(", ")
    ))
}

/// The sequence that a column owns, qualified.
pub(super) fn serial_sequence(
    session: &SystemSession,
    table_name: &str,
    column_name: &str,
) -> Result<Datum> {
    let oid = session.relation_by_name(table_name).ok_or_else(|| {
        SqlError::new("42P01", format!("relation \"{table_name}\" does not exist"))
    })?;
    let Some(table) = session.catalog.table(oid) else {
        return Ok(Datum::Null);
    };
    let position = table.column_named(column_name).ok_or_else(|| {
        SqlError::new(
            "42703",
            format!(
                "column \"{column_name}\" of relation \"{}\" does not exist",
                table.name
            ),
        )
    })?;
    let mut sequences = session.catalog.sequences.values();
    let sequence = sequences.find(|sequence| sequence.owned_by == Some((oid, position)));
    Ok(sequence.map_or(Datum::Null, |sequence| {
        Datum::text(format!(
            "{}.{}",
            quote_ident(&sequence.schema),
            quote_ident(&sequence.name)
        ))
    }))
}

/// The privileges an object has when nothing was granted.
pub(super) fn acl_default(
    session: &SystemSession,
    kind: Option<&str>,
    owner: Option<u32>,
) -> Datum {
    let (Some(kind), Some(owner)) = (kind, owner) else {
        return Datum::Null;
    };
    let owner = session.role_name(owner).unwrap_or_default();
    let own = |privileges: &str| Datum::text(format!("{owner}={privileges}/{owner}"));
    let all = |privileges: &str| Datum::text(format!("={privileges}/{owner}"));
    match kind {
        "r" => Datum::array([own("arwdDxt")]),
        "s" => Datum::array([own("rwU")]),
        "d" => Datum::array([all("Tc"), own("CTc")]),
        "f" => Datum::array([all("X"), own("X")]),
        "l" | "T" => Datum::array([all("U"), own("U")]),
        "n" => Datum::array([own("UC")]),
        "t" => Datum::array([own("C")]),
        _ => Datum::array([]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_in_parentheses_once() {
        assert_eq!(parenthesised("a > 0"), "(a > 0)");
        assert_eq!(parenthesised("(a > 0)"), "(a > 0)");
        assert_eq!(
            parenthesised("(a > 0) and (b > 0)"),
            "((a > 0) and (b > 0))"
        );
    }
}
