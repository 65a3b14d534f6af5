//! Scalar functions on values, for the statements that run without the
//! analytical engine: in DEFAULT, VALUES, SET and WHERE. A function is looked
//! up once by name and argument types when a statement is bound, and called by
//! pointer for each tuple. Results and errors are PostgreSQL's; `coalesce`,
//! `nullif` and `case` are not functions, since they do not evaluate all their
//! arguments. Functions of numbers are not here: `thermocline_query` has them. No result is
//! larger than PostgreSQL's values may be (54000, before it is allocated).

mod dates;
mod pattern;
mod strings;
#[cfg(test)]
mod tests;

pub use pattern::like_match;
pub use strings::{VALUE_BYTES_MAX, pad_to, padded_bytes, repeated_bytes, replaced_bytes};

use crate::cast::{CastContext, coerce};
use crate::compare::{common_type, compare};
use crate::types::DataType;
use crate::value::Value;
use crate::value_error::ValueError;

/// A function for arguments of certain types.
#[derive(Clone, Debug)]
pub struct Function {
    /// The types that `call` expects its arguments in.
    pub arguments: Vec<DataType>,
    /// The type of the result.
    pub result: DataType,
    /// Computes the result.
    pub call: fn(&[Value]) -> Result<Value, ValueError>,
    /// Whether the result is NULL if any argument is, without a call.
    pub strict: bool,
    /// How many bytes the result has at most, if that may be much more than the arguments have:
    /// known before they are allocated.
    pub size: Option<fn(&[Value]) -> u64>,
}

impl Function {
    /// Converts the arguments, which are of the types that the function was
    /// looked up with, and calls the function.
    ///
    /// # Errors
    /// What the conversion or the function gives.
    pub fn invoke(
        &self,
        mut arguments: Vec<Value>,
        types: &[DataType],
    ) -> Result<Value, ValueError> {
        if self.strict && arguments.iter().any(Value::is_null) {
            return Ok(Value::Null);
        }
        for (argument, (from, to)) in arguments.iter_mut().zip(types.iter().zip(&self.arguments)) {
            if from != to {
                *argument = coerce(std::mem::take(argument), from, to, CastContext::Explicit)?;
            }
        }
        (self.call)(&arguments)
    }
}

/// A strict function.
fn strict(
    arguments: &[DataType],
    result: DataType,
    call: fn(&[Value]) -> Result<Value, ValueError>,
) -> Function {
    Function {
        arguments: arguments.to_vec(),
        result,
        call,
        strict: true,
        size: None,
    }
}

/// A strict function whose result may be large.
fn growing(
    arguments: &[DataType],
    result: DataType,
    call: fn(&[Value]) -> Result<Value, ValueError>,
    size: fn(&[Value]) -> u64,
) -> Function {
    Function {
        size: Some(size),
        ..strict(arguments, result, call)
    }
}

/// The names of all functions.
pub const NAMES: &[&str] = &[
    "greatest",
    "least",
    "concat",
    "||",
    "length",
    "octet_length",
    "char_length",
    "character_length",
    "lower",
    "upper",
    "reverse",
    "trim",
    "btrim",
    "ltrim",
    "rtrim",
    "replace",
    "strpos",
    "position",
    "substr",
    "substring",
    "left",
    "right",
    "repeat",
    "lpad",
    "rpad",
    "split_part",
    "date_trunc",
    "date_part",
    "extract",
];

/// The function of that name for arguments of these types, or `None` if there
/// is none. Names are in lower case, as the parser leaves them.
#[must_use]
pub fn lookup(name: &str, types: &[DataType]) -> Option<Function> {
    // Whoever goes through the names has gone through all functions.
    if !NAMES.contains(&name) {
        return None;
    }
    match name {
        "greatest" => extreme(types, greatest),
        "least" => extreme(types, least),
        _ => strings::lookup(name, types).or_else(|| dates::lookup(name, types)),
    }
}

/// The functions called with other values than they were looked up for.
#[cold]
fn wrong_arguments(name: &str) -> ValueError {
    ValueError::new(
        "42883",
        format!("function {name} does not exist for these argument types"),
    )
}

fn extreme(
    types: &[DataType],
    call: fn(&[Value]) -> Result<Value, ValueError>,
) -> Option<Function> {
    let (first, others) = types.split_first()?;
    let common = others
        .iter()
        .try_fold(*first, |common, other| common_type(&common, other))?;
    Some(Function {
        arguments: vec![common; types.len()],
        result: common,
        call,
        strict: false,
        size: None,
    })
}

/// The value that no other precedes in this order; NULLs do not take part.
fn extreme_of(arguments: &[Value], order: std::cmp::Ordering) -> Value {
    let mut found = &Value::Null;
    for value in arguments {
        if found.is_null() || compare(value.as_ref(), found.as_ref()) == Some(order) {
            found = value;
        }
    }
    found.clone()
}

fn greatest(arguments: &[Value]) -> Result<Value, ValueError> {
    Ok(extreme_of(arguments, std::cmp::Ordering::Greater))
}

fn least(arguments: &[Value]) -> Result<Value, ValueError> {
    Ok(extreme_of(arguments, std::cmp::Ordering::Less))
}
