//! `jsonpath`: the language of paths into jsonb.

mod parse;
mod print;
mod regex;
mod scan;

use std::sync::Arc;

use super::numeric::Numeric;
use super::{Type, ids, json};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};

pub use self::regex::Pattern;

/// The first byte of the binary form.
const VERSION: u8 = 1;
/// How deep the expressions of a path may be nested.
const DEPTH_MAX: usize = 400;

/// A path.
#[derive(Clone, Debug)]
pub struct JsonPath {
    /// Structural errors are forgiven, arrays are wrapped and unwrapped.
    pub lax: bool,
    /// The expression.
    pub root: Chain,
    /// About what the expression takes, in bytes.
    pub bytes: usize,
}

/// An expression: an item and what is applied to it, one after the other.
#[derive(Clone, Debug)]
pub struct Chain {
    /// The items, at least one.
    pub items: Vec<Item>,
    /// How many expressions are within each other here.
    depth: usize,
}

/// One item of a path.
#[derive(Clone, Debug)]
pub enum Item {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number
    Number(Numeric),
    /// A string
    String(Arc<str>),
    /// `$name`
    Variable(Arc<str>),
    /// `$`
    Root,
    /// `@`
    Current,
    /// `last`
    Last,
    /// `.key`
    Key(Arc<str>),
    /// `.*`
    AnyKey,
    /// `[*]`
    AnyArray,
    /// `[1, 2 to 3]`
    Subscripts(Vec<(Chain, Option<Chain>)>),
    /// `.**{1 to 2}`; the greatest number is `last`
    Any {
        /// The first level.
        first: u32,
        /// The last level.
        last: u32,
    },
    /// `.size()` and its like
    Method(Method),
    /// `.datetime("template")`
    Datetime(Option<Arc<str>>),
    /// `?(predicate)`
    Filter(Box<Chain>),
    /// `a + b`, `a == b`, `a && b`
    Binary(Operator, Box<(Chain, Chain)>),
    /// `+a`
    Plus(Box<Chain>),
    /// `-a`
    Minus(Box<Chain>),
    /// `!(a)`
    Not(Box<Chain>),
    /// `(a) is unknown`
    IsUnknown(Box<Chain>),
    /// `exists (a)`
    Exists(Box<Chain>),
    /// `a like_regex "pattern" flag "flags"`
    LikeRegex(Box<Chain>, Arc<Pattern>),
}

/// A method without arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// `.type()`
    Type,
    /// `.size()`
    Size,
    /// `.abs()`
    Abs,
    /// `.floor()`
    Floor,
    /// `.ceiling()`
    Ceiling,
    /// `.double()`
    Double,
    /// `.keyvalue()`
    KeyValue,
}

impl Method {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Type => "type",
            Self::Size => "size",
            Self::Abs => "abs",
            Self::Floor => "floor",
            Self::Ceiling => "ceiling",
            Self::Double => "double",
            Self::KeyValue => "keyvalue",
        }
    }
}

/// An operator between two expressions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operator {
    /// `||`
    Or,
    /// `&&`
    And,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `>`
    Greater,
    /// `<=`
    LessOrEqual,
    /// `>=`
    GreaterOrEqual,
    /// `starts with`
    StartsWith,
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
}

impl Operator {
    /// How it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Or => "||",
            Self::And => "&&",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::Greater => ">",
            Self::LessOrEqual => "<=",
            Self::GreaterOrEqual => ">=",
            Self::StartsWith => "starts with",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Modulo => "%",
        }
    }
}

impl Item {
    /// Whether this is true, false or unknown.
    #[must_use]
    pub const fn is_predicate(&self) -> bool {
        match self {
            Self::Binary(operator, _) => !matches!(
                operator,
                Operator::Add
                    | Operator::Subtract
                    | Operator::Multiply
                    | Operator::Divide
                    | Operator::Modulo
            ),
            Self::Not(_) | Self::IsUnknown(_) | Self::Exists(_) | Self::LikeRegex(..) => true,
            _ => false,
        }
    }
}

/// The types of this file.
pub const TYPES: &[Type] = &[Type {
    array: ids::JSONPATH_ARRAY,
    input,
    output,
    receive,
    send,
    ..Type::new(ids::JSONPATH, "jsonpath", "jsonpath")
}];

fn input(_: &Call<'_>, text: &str, _: i32) -> Result<Datum> {
    Ok(Datum::JsonPath(Arc::new(JsonPath::parse(text)?)))
}

fn output(_: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    value.as_jsonpath().write(out);
    Ok(())
}

fn receive(call: &Call<'_>, bytes: &[u8], modifier: i32) -> Result<Datum> {
    match bytes.split_first() {
        Some((&VERSION, text)) => input(call, json::utf8(text)?, modifier),
        Some((version, _)) => Err(QueryError::internal(format!(
            "unsupported jsonpath version number: {version}"
        ))),
        None => Err(QueryError::new("08P01", "no data left in message")),
    }
}

fn send(_: &Call<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    let mut text = String::new();
    value.as_jsonpath().write(&mut text);
    out.push(VERSION);
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match JsonPath::parse(text) {
            Ok(path) => {
                let mut out = String::new();
                path.write(&mut out);
                out
            }
            Err(error) => format!("{}: {}", error.sqlstate, error.message),
        }
    }

    #[test]
    fn deep_paths_are_refused() {
        for text in [
            format!("{}1{}", "(".repeat(5000), ")".repeat(5000)),
            format!("{}$", "-".repeat(5000)),
            format!("1{}", "+1".repeat(5000)),
            format!("${}", "?(@.a".repeat(5000)),
            format!("$ ? (@ == 1{})", " && @ == 1".repeat(5000)),
        ] {
            assert!(shown(&text).starts_with("54001"), "{text:.20}");
        }
        assert!(shown(&format!("${}", ".a".repeat(5000))).starts_with("$.\"a\""));
    }
}
