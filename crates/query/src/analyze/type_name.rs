//! Names of types.

use pg_raw_parse::nodes::TypeName;
use pg_raw_parse::{ConstValue, Node};

use super::call_before::CallsBefore;
use super::sql_function::Bodies;
use super::{Analyzer, Catalog};
use crate::call::Plain;
use crate::error::{QueryError, Result};
use crate::parse::parse;
use crate::types::{self, ids};

impl Analyzer<'_> {
    /// The number and the modifier of a type that is written.
    pub(super) fn type_of(&self, name: &TypeName) -> Result<(u32, i32)> {
        let parts: Vec<&str> = name.names().iter().filter_map(|part| part.sval()).collect();
        let shown = parts.join(".");
        if name.pct_type {
            return Err(
                QueryError::unsupported("%TYPE is not supported", "Name the type itself.")
                    .at(name.location),
            );
        }
        let (schema, last) = match parts.as_slice() {
            [last] => (None, *last),
            [schema, last] => (Some(*schema), *last),
            _ => {
                return Err(QueryError::new(
                    "42601",
                    format!("improper qualified name (too many dotted names): {shown}"),
                )
                .at(name.location));
            }
        };
        let built_in = match schema {
            None | Some("pg_catalog") => types::oid_named(last),
            Some("information_schema") => match last {
                "cardinal_number" => Some(ids::INT4),
                "character_data" | "sql_identifier" | "yes_or_no" => Some(ids::VARCHAR),
                "time_stamp" => Some(ids::TIMESTAMPTZ),
                _ => None,
            },
            Some(_) => None,
        };
        let oid = match built_in.or_else(|| self.catalog.user_type(schema, last)) {
            Some(oid) => oid,
            None => {
                return Err(
                    QueryError::new("42704", format!("type \"{shown}\" does not exist"))
                        .at(name.location),
                );
            }
        };
        let modifier = self.modifier(name, oid, &shown)?;
        if name.array_bounds().is_empty() {
            return Ok((oid, modifier));
        }
        match types::array_of(oid) {
            0 => Err(QueryError::new(
                "42704",
                format!("could not find array type for data type {shown}"),
            )
            .at(name.location)),
            array => Ok((array, modifier)),
        }
    }

    fn modifier(&self, name: &TypeName, oid: u32, shown: &str) -> Result<i32> {
        if name.typmods().is_empty() {
            return Ok(name.typemod.max(-1));
        }
        let Some(read) = types::by_oid(oid).and_then(|row| row.modifier_in) else {
            return Err(QueryError::new(
                "42601",
                format!("type modifier is not allowed for type \"{shown}\""),
            )
            .at(name.location));
        };
        let mut given = Vec::new();
        for node in name.typmods().iter() {
            let value = match node {
                Node::A_Const(constant) => match constant.val() {
                    Some(ConstValue::Integer(value)) => Some(value),
                    Some(ConstValue::Float(text) | ConstValue::String(text)) => text.parse().ok(),
                    _ => None,
                },
                _ => None,
            };
            given.push(value.ok_or_else(|| {
                QueryError::new(
                    "42601",
                    "type modifiers must be simple constants or identifiers",
                )
                .at(name.location)
            })?);
        }
        read(&given).map_err(|error| error.at(name.location))
    }
}

/// The number and the modifier of the type that a text names.
///
/// # Errors
/// 42601 for a text that is none, 42704 and others of a type's name and modifiers.
pub fn written_type(text: &str, catalog: &dyn Catalog) -> Result<(u32, i32)> {
    let parsed = parse(&format!("SELECT NULL::{text}"))?;
    let mut statements = parsed.statements().stmts();
    let cast = match (statements.next(), statements.next()) {
        (Some(Node::SelectStmt(select)), None) if select.from_clause().is_empty() => {
            let mut targets = select.target_list().iter();
            match (targets.next(), targets.next()) {
                (Some(target), None) if target.name().is_none() => Some(target.val()),
                _ => None,
            }
        }
        _ => None,
    };
    let name = match cast {
        Some(Node::TypeCast(cast)) => cast.type_name(),
        _ => None,
    };
    let name = name.ok_or_else(|| QueryError::new("42601", "invalid type name"))?;
    let analyzer = Analyzer {
        catalog,
        environment: &Plain::default(),
        parameters: Vec::new(),
        levels: Vec::new(),
        takes_changes: false,
        named: None,
        variables: None,
        calls: CallsBefore::default(),
        bodies: Bodies::default(),
        given: None,
        given_name: None,
        rows_given: Vec::new(),
    };
    analyzer.type_of(name)
}
