//! Paths into `jsonb`: `jsonb_path_query` and its like.

mod arithmetic;
mod execute;
mod keyvalue;
mod moment;
mod predicate;
mod subscript;

use self::execute::{Execution, Value};
use super::Function;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::ids;
use crate::types::jsonb::Jsonb;

/// The functions of this file.
pub(super) static FUNCTIONS: &[Function] = &[
    Function::row(
        4005,
        "jsonb_path_exists",
        &[ids::JSONB, ids::JSONPATH, ids::JSONB, ids::BOOL],
        ids::BOOL,
        jsonb_path_exists,
    )
    .defaults(&[Some("{}"), Some("false")])
    .named(&["target", "path", "vars", "silent"]),
    Function::row(
        4010,
        "jsonb_path_exists_opr",
        &[ids::JSONB, ids::JSONPATH],
        ids::BOOL,
        jsonb_path_exists_opr,
    ),
    Function::row(
        1177,
        "jsonb_path_exists_tz",
        &[ids::JSONB, ids::JSONPATH, ids::JSONB, ids::BOOL],
        ids::BOOL,
        jsonb_path_exists_tz,
    )
    .stable()
    .defaults(&[Some("{}"), Some("false")])
    .named(&["target", "path", "vars", "silent"]),
    Function::row(
        4009,
        "jsonb_path_match",
        &[ids::JSONB, ids::JSONPATH, ids::JSONB, ids::BOOL],
        ids::BOOL,
        jsonb_path_match,
    )
    .defaults(&[Some("{}"), Some("false")])
    .named(&["target", "path", "vars", "silent"]),
    Function::row(
        4011,
        "jsonb_path_match_opr",
        &[ids::JSONB, ids::JSONPATH],
        ids::BOOL,
        jsonb_path_match_opr,
    ),
    Function::row(
        2030,
        "jsonb_path_match_tz",
        &[ids::JSONB, ids::JSONPATH, ids::JSONB, ids::BOOL],
        ids::BOOL,
        jsonb_path_match_tz,
    )
    .stable()
    .defaults(&[Some("{}"), Some("false")])
    .named(&["target", "path", "vars", "silent"]),
    Function::set(
        4006,
        "jsonb_path_query",
        &[ids::JSONB, ids::JSONPATH, ids::JSONB, ids::BOOL],
        ids::JSONB,
        jsonb_path_query,
    )
    .defaults(&[Some("{}"), Some("false")])
    .named(&["target", "path", "vars", "silent"]),
    Function::row(
        4007,
        "jsonb_path_query_array",
        &[ids::JSONB, ids::JSONPATH, ids::JSONB, ids::BOOL],
        ids::JSONB,
        jsonb_path_query_array,
    )
    .defaults(&[Some("{}"), Some("false")])
    .named(&["target", "path", "vars", "silent"]),
    Function::row(
        1180,
        "jsonb_path_query_array_tz",
        &[ids::JSONB, ids::JSONPATH, ids::JSONB, ids::BOOL],
        ids::JSONB,
        jsonb_path_query_array_tz,
    )
    .stable()
    .defaults(&[Some("{}"), Some("false")])
    .named(&["target", "path", "vars", "silent"]),
    Function::row(
        4008,
        "jsonb_path_query_first",
        &[ids::JSONB, ids::JSONPATH, ids::JSONB, ids::BOOL],
        ids::JSONB,
        jsonb_path_query_first,
    )
    .defaults(&[Some("{}"), Some("false")])
    .named(&["target", "path", "vars", "silent"]),
    Function::row(
        2023,
        "jsonb_path_query_first_tz",
        &[ids::JSONB, ids::JSONPATH, ids::JSONB, ids::BOOL],
        ids::JSONB,
        jsonb_path_query_first_tz,
    )
    .stable()
    .defaults(&[Some("{}"), Some("false")])
    .named(&["target", "path", "vars", "silent"]),
    Function::set(
        1179,
        "jsonb_path_query_tz",
        &[ids::JSONB, ids::JSONPATH, ids::JSONB, ids::BOOL],
        ids::JSONB,
        jsonb_path_query_tz,
    )
    .stable()
    .defaults(&[Some("{}"), Some("false")])
    .named(&["target", "path", "vars", "silent"]),
];

/// An execution of the path that the arguments name; errors are kept silent
/// where an argument says so, and for operators.
fn execution<'a>(call: &'a Call<'a>, arguments: &'a [Datum], zoned: bool) -> Result<Execution<'a>> {
    let variables = match arguments.get(2) {
        None => None,
        Some(variables) => match variables.as_jsonb() {
            Jsonb::Object(pairs) => Some(pairs),
            _ => {
                return Err(QueryError::invalid_parameter(
                    "\"vars\" argument is not an object",
                )
                .with_detail(
                    "Jsonpath parameters should be encoded as key-value pairs of \"vars\" object.",
                ));
            }
        },
    };
    Ok(Execution::new(
        call,
        arguments[0].as_jsonb(),
        arguments[1].as_jsonpath(),
        variables,
        !is_silent(arguments),
        zoned,
    ))
}

fn is_silent(arguments: &[Datum]) -> bool {
    !matches!(arguments.get(3), Some(Datum::Bool(false)))
}

fn exists(call: &Call<'_>, arguments: &[Datum], zoned: bool) -> Result<Datum> {
    let exists = execution(call, arguments, zoned)?.exists()?;
    Ok(exists.map_or(Datum::Null, Datum::Bool))
}

fn found(call: &Call<'_>, arguments: &[Datum], zoned: bool) -> Result<Vec<Value>> {
    execution(call, arguments, zoned)?.values()
}

fn matches(call: &Call<'_>, arguments: &[Datum], zoned: bool) -> Result<Datum> {
    match found(call, arguments, zoned)?.as_slice() {
        [Value::Json(Jsonb::Bool(value))] => Ok(Datum::Bool(*value)),
        [Value::Json(Jsonb::Null)] => Ok(Datum::Null),
        _ if is_silent(arguments) => Ok(Datum::Null),
        _ => Err(QueryError::new(
            "22038",
            "single boolean result is expected",
        )),
    }
}

fn query(call: &Call<'_>, arguments: &[Datum], zoned: bool) -> Result<Vec<Datum>> {
    found(call, arguments, zoned)?
        .into_iter()
        .map(|value| Ok(value.into_json()?.into()))
        .collect()
}

fn query_array(call: &Call<'_>, arguments: &[Datum], zoned: bool) -> Result<Datum> {
    let items = found(call, arguments, zoned)?
        .into_iter()
        .map(Value::into_json)
        .collect::<Result<_>>()?;
    Ok(Jsonb::array(items)?.into())
}

fn query_first(call: &Call<'_>, arguments: &[Datum], zoned: bool) -> Result<Datum> {
    match found(call, arguments, zoned)?.into_iter().next() {
        Some(value) => Ok(value.into_json()?.into()),
        None => Ok(Datum::Null),
    }
}

fn jsonb_path_exists(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    exists(call, arguments, false)
}

fn jsonb_path_exists_opr(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    exists(call, arguments, false)
}

fn jsonb_path_exists_tz(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    exists(call, arguments, true)
}

fn jsonb_path_match(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    matches(call, arguments, false)
}

fn jsonb_path_match_opr(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    matches(call, arguments, false)
}

fn jsonb_path_match_tz(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    matches(call, arguments, true)
}

fn jsonb_path_query(call: &Call<'_>, arguments: &[Datum]) -> Result<Vec<Datum>> {
    query(call, arguments, false)
}

fn jsonb_path_query_tz(call: &Call<'_>, arguments: &[Datum]) -> Result<Vec<Datum>> {
    query(call, arguments, true)
}

fn jsonb_path_query_array(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    query_array(call, arguments, false)
}

fn jsonb_path_query_array_tz(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    query_array(call, arguments, true)
}

fn jsonb_path_query_first(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    query_first(call, arguments, false)
}

fn jsonb_path_query_first_tz(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    query_first(call, arguments, true)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::call::Plain;
    use crate::types::jsonb::DEPTH_MAX;
    use crate::types::jsonpath::JsonPath;

    fn found_by(json: &str, path: &str) -> Result<Vec<Datum>> {
        let environment = Plain::default();
        let call = Call::new(&environment, &[], ids::JSONB);
        let arguments = [
            Jsonb::parse(&call, json)?.into(),
            Datum::JsonPath(Arc::new(JsonPath::parse(path)?)),
            Jsonb::parse(&call, "{}")?.into(),
            Datum::Bool(false),
        ];
        jsonb_path_query(&call, &arguments)
    }

    #[test]
    fn deep_walks_end() {
        let deep = format!("{}1{}", "[".repeat(DEPTH_MAX), "]".repeat(DEPTH_MAX));
        assert_eq!(found_by(&deep, "$.**").unwrap().len(), DEPTH_MAX + 1);
        for path in [
            format!("${}", "[*]".repeat(5000)),
            format!("${}", "[0]".repeat(5000)),
        ] {
            assert_eq!(found_by(&deep, &path).unwrap_err().sqlstate, "54001");
        }
    }
}
