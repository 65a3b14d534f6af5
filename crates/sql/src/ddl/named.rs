//! The names in texts that are kept, where they stand and what they mean. A text is kept with the
//! schemas of what it names written out, so that it means the same by any search path. Whoever
//! shows it writes those names as they are seen by then.

use pg_raw_parse::nodes::{A_Const, FuncCall};
use pg_raw_parse::{ConstValue, Node};
use thermocline_engine::{Catalog, FunctionDef, TableDef};
use thermocline_query::functions;

use super::Definition;
use super::dependents::quote_ident;
use super::mentioned::{BEFORE, in_expression, in_query, last_name, unqualified};
use super::place::find_relation;
use super::sequence::quoted;
use super::user_type::find_type;
use crate::analysis::functions_named;
use crate::error::Result;
use crate::parse::scan::{Token, Tokens};
use crate::session::qualified;
use crate::temporary::path_within;

/// The functions whose first argument is a relation.
const OF_RELATIONS: [&str; 3] = ["nextval", "currval", "setval"];

/// What a name in a text names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// A type: the schema, where it is written, and the name.
    Type(Option<String>, String),
    /// A relation, as a constant: its text, and whether the cast to `regclass` is written.
    Relation(String, bool),
    /// The value that a domain's condition is about.
    Value,
    /// A type of the grammar's, by PostgreSQL's whole name.
    Short(&'static str),
    /// A function that is not the system's: the schema, where it is written, the name, and how many arguments
    /// the call has.
    Function(Option<String>, String, usize),
}

/// Words for types that the grammar knows, and the names that PostgreSQL shows.
const SHORT: [(&str, &str); 11] = [
    ("bool", "boolean"),
    ("float4", "real"),
    ("float8", "double precision"),
    ("int", "integer"),
    ("int2", "smallint"),
    ("int4", "integer"),
    ("int8", "bigint"),
    ("timestamptz", "timestamp with time zone"),
    ("timetz", "time with time zone"),
    ("varbit", "bit varying"),
    ("varchar", "character varying"),
];

/// A name in a text, and the bytes that it takes there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) named: Named,
}

/// The names of types and relations in an expression, in the order of their places.
///
/// # Errors
/// 42601 and 54001 of the text.
pub(crate) fn places(text: &str) -> Result<Vec<Place>> {
    // What names something that is no column is a cast or a call.
    if !text.contains("::") && !text.contains('(') {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    in_expression(text, &mut |node| look(text, BEFORE.len(), node, &mut found))?;
    Ok(sorted(found))
}

/// The same, of a domain's condition, and where its value stands.
///
/// # Errors
/// As [`places`].
pub(crate) fn places_in_condition(text: &str) -> Result<Vec<Place>> {
    let mut found = Vec::new();
    in_expression(text, &mut |node| {
        look(text, BEFORE.len(), node, &mut found);
        if let Node::ColumnRef(column) = node
            && let Some(from) = usize::try_from(column.location).ok()
            && let Some(from) = from.checked_sub(BEFORE.len())
            && let Some((_, to)) = last_name(text, from, 1)
            && text.get(from..to) == Some("value")
        {
            let named = Named::Value;
            found.push(Place { from, to, named });
        }
    })?;
    Ok(sorted(found))
}

/// The same, of a query.
///
/// # Errors
/// As [`places`].
pub(crate) fn places_in_query(text: &str) -> Result<Vec<Place>> {
    let mut found = Vec::new();
    in_query(text, &mut |node| look(text, 0, node, &mut found))?;
    Ok(sorted(found))
}

fn sorted(mut found: Vec<Place>) -> Vec<Place> {
    found.sort_by_key(|place| place.from);
    found.dedup_by_key(|place| place.from);
    found
}

/// Notes what a node names. Its places count from so many bytes before the text.
fn look(text: &str, before: usize, node: Node<'_>, found: &mut Vec<Place>) {
    let at = |location: i32| usize::try_from(location).ok()?.checked_sub(before);
    match node {
        Node::TypeName(name) => {
            let parts = name.names().iter().filter_map(|part| part.sval());
            let parts: Vec<&str> = parts.collect();
            let from = at(name.location);
            let (schema, name_of) = match parts.as_slice() {
                ["pg_catalog", _] => {
                    found.extend(from.and_then(|from| short(text, from)));
                    return;
                }
                [one] => (None, *one),
                [schema, one] => (Some((*schema).to_owned()), *one),
                _ => return,
            };
            let place = from.and_then(|from| {
                let (_, to) = last_name(text, from, parts.len())?;
                let named = Named::Type(schema, name_of.to_owned());
                Some(Place { from, to, named })
            });
            found.extend(place);
        }
        Node::TypeCast(cast) => {
            let names = cast.type_name().map(|name| name.names());
            let last = names.and_then(|names| names.iter().next_back()?.sval());
            if let (Some("regclass"), Node::A_Const(constant)) = (last, cast.arg()) {
                found.extend(relation(text, constant, at(constant.location), true));
            }
        }
        Node::FuncCall(call) => {
            let name = call
                .funcname()
                .iter()
                .next_back()
                .and_then(|name| name.as_str());
            if name.is_some_and(|name| OF_RELATIONS.contains(&name))
                && let Some(Node::A_Const(constant)) = call.args().iter().next()
            {
                found.extend(relation(text, constant, at(constant.location), false));
            }
            found.extend(at(call.location).and_then(|from| function(text, call, from)));
        }
        _ => {}
    }
}

/// A call of a function that is not the system's.
fn function(text: &str, call: &FuncCall, from: usize) -> Option<Place> {
    let parts = call.funcname().iter().filter_map(Node::as_str);
    let parts: Vec<&str> = parts.collect();
    let (schema, name) = match parts.as_slice() {
        [one] if functions::named(one).is_empty() => (None, *one),
        [schema, one] if *schema != "pg_catalog" => (Some((*schema).to_owned()), *one),
        _ => return None,
    };
    let (_, to) = last_name(text, from, parts.len())?;
    let named = Named::Function(schema, name.to_owned(), call.args().len());
    Some(Place { from, to, named })
}

/// A type that is written in one word, where PostgreSQL shows another name.
fn short(text: &str, from: usize) -> Option<Place> {
    let (_, to) = last_name(text, from, 1)?;
    let known = SHORT
        .iter()
        .find(|(word, _)| text.get(from..to) == Some(word));
    let (_, shown) = known?;
    // The digits of seconds stand amid the words.
    let fits = !shown.contains("time zone") || !text[to..].starts_with('(');
    let named = Named::Short(shown);
    fits.then_some(Place { from, to, named })
}

fn relation(text: &str, constant: &A_Const, from: Option<usize>, cast: bool) -> Option<Place> {
    let (Some(ConstValue::String(name)), Some(from)) = (constant.val(), from) else {
        return None;
    };
    let mut tokens = Tokens::new(text.get(from..)?);
    let Some(Token::Constant(_)) = tokens.next() else {
        return None;
    };
    Some(Place {
        from,
        to: from + tokens.at(),
        named: Named::Relation(name.to_owned(), cast),
    })
}

/// A text with others in the places of names.
pub(crate) fn replaced(
    text: &str,
    places: &[Place],
    by: impl Fn(&Named) -> Option<String>,
) -> String {
    let mut written = String::with_capacity(text.len());
    let mut copied = 0;
    for place in places {
        if let Some(new) = by(&place.named) {
            written.push_str(&text[copied..place.from]);
            written.push_str(&new);
            copied = place.to;
        }
    }
    written.push_str(&text[copied..]);
    written
}

/// An expression as it is kept: with the schemas of what it names by this path. What is not there
/// stays as it is; whoever binds the text says so.
///
/// # Errors
/// As [`places`].
fn with_schemas(text: &str, catalog: &Catalog, path: &[String]) -> Result<String> {
    let places = places(text)?;
    Ok(replaced(text, &places, |named| match named {
        Named::Type(schema, name) => {
            let def = find_type(catalog, path, schema.as_deref(), name)?;
            let (schema, name) = (quote_ident(&def.schema), quote_ident(&def.name));
            Some(format!("{schema}.{name}"))
        }
        Named::Relation(name, cast) => {
            let (schema, name) = find_relation(catalog, path, &qualified(name))?;
            let cast = if *cast { "" } else { "::regclass" };
            Some(format!("'{}'{cast}", quoted(&schema, &name)))
        }
        Named::Function(schema, name, _) => {
            let def = functions_named(catalog, path, schema.as_deref(), name).next()?;
            let (schema, name) = (quote_ident(&def.schema), quote_ident(&def.name));
            Some(format!("{schema}.{name}"))
        }
        Named::Value | Named::Short(_) => None,
    }))
}

/// Whether an expression that is kept calls this function.
///
/// # Errors
/// As [`places`].
pub(super) fn calls(text: &str, def: &FunctionDef) -> Result<bool> {
    if !text.contains(&def.name) {
        return Ok(false);
    }
    let required = def.arguments.iter().filter(|of| of.default.is_none());
    let fits = required.count()..=def.arguments.len();
    Ok(places(text)?.iter().any(|place| match &place.named {
        Named::Function(Some(schema), name, given) => {
            *schema == def.schema && *name == def.name && fits.contains(given)
        }
        _ => false,
    }))
}

impl Definition<'_> {
    /// An expression over a table, as it is kept.
    pub(super) fn of_table(&self, text: &str, table: &TableDef) -> Result<String> {
        self.with_schemas(&unqualified(text, table)?, &table.schema)
    }

    /// An expression of what is in this schema, as it is kept.
    pub(super) fn with_schemas(&self, text: &str, schema: &str) -> Result<String> {
        let path = path_within(schema, self.search_path);
        with_schemas(text, &self.catalog(), &path)
    }
}

/// The same, of the defaults and checks of a table.
///
/// # Errors
/// As [`places`].
pub(super) fn table_with_schemas(
    def: &mut TableDef,
    catalog: &Catalog,
    path: &[String],
) -> Result<()> {
    let own = def.clone();
    for default in def
        .columns
        .iter_mut()
        .filter_map(|column| column.default.as_mut())
    {
        *default = with_schemas(&unqualified(default, &own)?, catalog, path)?;
    }
    for check in &mut def.checks {
        let expression = unqualified(&check.expression, &own)?;
        check.expression = with_schemas(&expression, catalog, path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(text: &str) -> String {
        let places = places(text).unwrap();
        replaced(text, &places, |named| {
            Some(match named {
                Named::Type(schema, name) => format!("<{schema:?} {name}>"),
                Named::Relation(name, cast) => format!("<{name} {cast}>"),
                Named::Value => "VALUE".to_owned(),
                Named::Short(name) => format!("<{name}>"),
                Named::Function(schema, name, count) => format!("<{schema:?} {name} {count}>"),
            })
        })
    }

    #[test]
    fn names_are_found_where_they_stand() {
        for (text, found) in [
            ("nextval('s')", "nextval(<s false>)"),
            (
                "nextval('a.s'::regclass) + 1",
                "nextval(<a.s true>::<None regclass>) + 1",
            ),
            ("'x'::mood = m", "'x'::<None mood> = m"),
            ("'x'::app.\"Mood\"[] = m", "'x'::<Some(\"app\") Mood>[] = m"),
            (
                "'x'::varchar(3) = 'é'::a.b",
                "'x'::<character varying>(3) = 'é'::<Some(\"a\") b>",
            ),
            ("a > 0 AND lower(b) = 'x'", "a > 0 AND lower(b) = 'x'"),
            ("mine(a, lower(b)) > 0", "<None mine 2>(a, lower(b)) > 0"),
            ("app.\"My f\"() = 1", "<Some(\"app\") My f 0>() = 1"),
        ] {
            assert_eq!(marked(text), found, "{text}");
        }
    }
}
