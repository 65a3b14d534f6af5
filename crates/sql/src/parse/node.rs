//! What the nodes of PostgreSQL's syntax tree say, as texts and names of our own.

use pg_raw_parse::list::{CastNodeList, NodeList};
use pg_raw_parse::nodes::{
    self, CollateClause, DefElem, DropBehavior, RangeVar, RoleSpec, RoleSpecType, TypeName,
};
use pg_raw_parse::{ConstValue, Node};
use thermocline_query::parse::written;

use crate::error::{Result, SqlError};

/// The relation's name, with what it is qualified by.
pub(super) fn relation(relation: Option<&RangeVar>) -> Vec<String> {
    let Some(relation) = relation else {
        return Vec::new();
    };
    let parts = [
        relation.catalogname(),
        relation.schemaname(),
        relation.relname(),
    ];
    parts.into_iter().flatten().map(str::to_owned).collect()
}

/// Whether what is made is of the session: TEMPORARY.
pub(super) fn is_temporary(relation: Option<&RangeVar>) -> bool {
    relation.is_some_and(|relation| relation.relpersistence as u8 == b't')
}

/// Whether a new relation is UNLOGGED.
pub(super) fn is_unlogged(relation: Option<&RangeVar>) -> bool {
    relation.is_some_and(|relation| relation.relpersistence as u8 == b'u')
}

/// The strings of a list.
pub(super) fn strings(list: &NodeList) -> Vec<String> {
    list.iter().filter_map(string).collect()
}

/// The strings of a list of strings.
pub(super) fn names(list: &CastNodeList<nodes::String>) -> Vec<String> {
    let strings = list.iter().filter_map(nodes::String::sval);
    strings.map(str::to_owned).collect()
}

fn string(node: Node<'_>) -> Option<String> {
    node.as_str().map(str::to_owned)
}

/// The name of an object, whatever node it is in.
pub(super) fn name(node: Node<'_>) -> Vec<String> {
    match node {
        Node::String(name) => name.sval().map(str::to_owned).into_iter().collect(),
        Node::NodeList(list) => strings(list),
        Node::RangeVar(range) => relation(Some(range)),
        Node::TypeName(name) => names(name.names()),
        Node::ObjectWithArgs(object) => strings(object.objname()),
        _ => Vec::new(),
    }
}

/// A role's name; CURRENT_USER and the like as words.
pub(super) fn role(role: &RoleSpec) -> String {
    match role.roletype {
        RoleSpecType::ROLESPEC_CURRENT_ROLE => "current_role",
        RoleSpecType::ROLESPEC_CURRENT_USER => "current_user",
        RoleSpecType::ROLESPEC_SESSION_USER => "session_user",
        RoleSpecType::ROLESPEC_PUBLIC => "public",
        _ => role.rolename().unwrap_or_default(),
    }
    .to_owned()
}

/// The roles of a list.
pub(super) fn roles(list: &NodeList) -> Vec<String> {
    let roles = list.iter().filter_map(|node| match node {
        Node::RoleSpec(spec) => Some(role(spec)),
        _ => None,
    });
    roles.collect()
}

pub(super) const fn cascades(behavior: DropBehavior::Type) -> bool {
    behavior == DropBehavior::DROP_CASCADE
}

/// The text of a type.
pub(super) fn type_text(name: Option<&TypeName>) -> Result<String> {
    let name = name.ok_or_else(|| SqlError::internal("a type without a name"))?;
    if name.setof {
        return Err(SqlError::new(
            "42P16",
            "a column cannot be declared SETOF".to_owned(),
        ));
    }
    Ok(written::type_name(name)?)
}

/// Checks a collation: strings compare by their bytes.
pub(super) fn collation(clause: Option<&CollateClause>) -> Result<()> {
    let Some(clause) = clause else {
        return Ok(());
    };
    let parts = strings(clause.collname());
    match parts.last().map(String::as_str) {
        Some("C" | "POSIX" | "default" | "ucs_basic") => Ok(()),
        other => Err(SqlError::unsupported(
            format!(
                "collation \"{}\" is not supported",
                other.unwrap_or_default()
            ),
            "Strings compare by their bytes: use the collation \"C\".",
        )),
    }
}

/// A DefElem's name.
pub(super) fn option_name(option: &DefElem) -> &str {
    option.defname().unwrap_or_default()
}

/// The text of an option's value: a word, a string, a number, a list with commas; `None` for an
/// option without one.
pub(super) fn option_text(option: &DefElem) -> Option<String> {
    value_text(option.arg())
}

/// The text of a value; `None` where there is none.
pub(super) fn value_text(node: Node<'_>) -> Option<String> {
    Some(match node {
        Node::None => return None,
        Node::String(text) => text.sval().unwrap_or_default().to_owned(),
        Node::Integer(number) => number.ival.to_string(),
        Node::Float(number) => number.fval().unwrap_or_default().to_owned(),
        Node::Boolean(truth) => truth.boolval.to_string(),
        Node::A_Star(_) => "*".to_owned(),
        Node::A_Const(constant) => constant_text(constant.val()?),
        Node::NodeList(list) => {
            let parts: Vec<String> = list.iter().filter_map(value_text).collect();
            parts.join(",")
        }
        Node::TypeName(name) => names(name.names()).join("."),
        _ => return None,
    })
}

/// The text of a constant.
pub(super) fn constant_text(constant: ConstValue<'_>) -> String {
    match constant {
        ConstValue::Integer(number) => number.to_string(),
        ConstValue::Float(text) | ConstValue::String(text) | ConstValue::BitString(text) => {
            text.to_owned()
        }
        ConstValue::Boolean(truth) => truth.to_string(),
        _ => String::new(),
    }
}

/// The whole number that an option has.
///
/// # Errors
/// 22003 for one that is no bigint, 42601 for what is none.
pub(super) fn integer(option: &DefElem) -> Result<i64> {
    let text = option_text(option).unwrap_or_default();
    text.parse().map_err(|_| {
        let is_number = text
            .trim_start_matches('-')
            .bytes()
            .all(|byte| byte.is_ascii_digit());
        match is_number && !text.is_empty() {
            true => SqlError::new(
                "22003",
                format!("value \"{text}\" is out of range for type bigint"),
            ),
            false => SqlError::syntax(format!("{} requires a numeric value", option_name(option))),
        }
    })
}

/// Whether an option that is true or false is true; without a value it is.
///
/// # Errors
/// 42601 for another value.
pub(super) fn boolean(option: &DefElem) -> Result<bool> {
    let Some(text) = option_text(option) else {
        return Ok(true);
    };
    match text.to_lowercase().as_str() {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => {
            let name = option_name(option);
            Err(SqlError::syntax(format!("{name} requires a Boolean value")))
        }
    }
}
