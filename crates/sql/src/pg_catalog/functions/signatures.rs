//! Functions as PostgreSQL writes them: arguments, results, whole definitions.

use thermocline_engine::{FunctionArgument, FunctionDef, FunctionVolatility};
use thermocline_query::functions::{self, Function, quoted_literal};
use thermocline_query::types::format_type;

use super::quote_ident;
use crate::error::{Result, SqlError};
use crate::pg_catalog::io_functions;
use crate::pg_catalog::session::{Names, SystemSession};

/// One of users', or of the library.
enum Known<'a> {
    Own(&'a FunctionDef),
    BuiltIn(&'static Function),
}

fn known(session: &SystemSession, oid: u32) -> Option<Known<'_>> {
    let own = session.catalog.functions.get(&oid);
    let own = own.map(|def| Known::Own(def));
    own.or_else(|| functions::by_oid(oid).map(Known::BuiltIn))
}

/// The name of a type, with its schema where that is needed.
fn type_shown(session: &SystemSession, oid: u32) -> String {
    let own = session.type_name(oid);
    own.unwrap_or_else(|| format_type(oid, -1))
}

fn argument(session: &SystemSession, of: &FunctionArgument, with_default: bool) -> String {
    let name = of
        .name
        .as_deref()
        .map(|name| format!("{} ", quote_ident(name)));
    let default = of.default.as_deref().filter(|_| with_default);
    let default = default.map(|text| format!(" DEFAULT {text}"));
    format!(
        "{}{}{}",
        name.unwrap_or_default(),
        type_shown(session, of.type_oid),
        default.unwrap_or_default()
    )
}

/// `pg_get_function_arguments`, and `pg_get_function_identity_arguments` without defaults.
pub(super) fn arguments(session: &SystemSession, oid: u32, with_defaults: bool) -> Option<String> {
    Some(match known(session, oid)? {
        Known::Own(def) if def.procedure.is_some() => {
            let parameters = def.parameters().into_iter();
            let shown = parameters.map(|(mode, of)| {
                let mode = match mode {
                    'o' => "OUT",
                    'b' => "INOUT",
                    _ => "IN",
                };
                format!("{mode} {}", argument(session, of, with_defaults))
            });
            shown.collect::<Vec<_>>().join(", ")
        }
        Known::Own(def) => {
            let last = def.arguments.len().saturating_sub(1);
            let inputs = def.arguments.iter().enumerate().map(|(at, of)| {
                let variadic = if def.variadic && at == last {
                    "VARIADIC "
                } else {
                    ""
                };
                format!("{variadic}{}", argument(session, of, with_defaults))
            });
            let outputs = outputs(def);
            let columns = outputs.iter().filter(|_| !def.returns_set);
            let columns = columns.map(|of| format!("OUT {}", argument(session, of, false)));
            inputs.chain(columns).collect::<Vec<_>>().join(", ")
        }
        Known::BuiltIn(function) => {
            let types = function.arguments.iter().enumerate();
            let shown = types.map(|(at, oid)| {
                let is_last = at + 1 == function.arguments.len();
                let variadic = if is_last && function.variadic != 0 {
                    "VARIADIC "
                } else {
                    ""
                };
                let name = function
                    .argument_names
                    .get(at)
                    .filter(|name| !name.is_empty());
                let name = name.map(|name| format!("{name} ")).unwrap_or_default();
                format!("{variadic}{name}{}", format_type(*oid, -1))
            });
            shown.collect::<Vec<_>>().join(", ")
        }
    })
}

/// What `regproc` writes: the name, with its schema unless it is found without.
pub(super) fn name(session: &SystemSession, oid: u32) -> Option<String> {
    let Some(known) = known(session, oid) else {
        return io_functions::by_oid(oid).map(|function| function.name.to_owned());
    };
    Some(match known {
        Known::Own(def) => {
            let name = quote_ident(&def.name);
            match session.is_visible_function(oid) {
                true => name,
                false => format!("{}.{name}", quote_ident(&def.schema)),
            }
        }
        Known::BuiltIn(function) => function.name.to_owned(),
    })
}

/// What `regprocedure` writes: the arguments' types, too.
pub(super) fn procedure(session: &SystemSession, oid: u32) -> Option<String> {
    let shown = |types: &[u32]| types.iter().map(|of| format_type(*of, -1)).collect();
    let types: Vec<String> = match known(session, oid) {
        Some(Known::Own(def)) => def.types().map(|of| type_shown(session, of)).collect(),
        Some(Known::BuiltIn(function)) => shown(function.arguments),
        None => shown(&io_functions::by_oid(oid)?.arguments),
    };
    Some(format!("{}({})", name(session, oid)?, types.join(",")))
}

/// The function that a text names: alone, or with its arguments' types.
///
/// # Errors
/// 42725 where several have the name; 22P02 for a text without types, 42704 for a type that is
/// not there.
pub(super) fn number(session: &SystemSession, text: &str, typed: bool) -> Result<Option<u32>> {
    if !typed {
        let found = session.functions_by_name(text);
        return match found.as_slice() {
            [] => Ok(io_functions::named(text).map(|function| function.oid)),
            [one] => Ok(Some(*one)),
            _ => {
                let message = format!("more than one function named \"{text}\"");
                Err(SqlError::new("42725", message))
            }
        };
    }
    let written = text
        .trim()
        .strip_suffix(')')
        .and_then(|text| text.split_once('('));
    let Some((name, types)) = written else {
        return Err(SqlError::new("22P02", "expected a left parenthesis"));
    };
    let types = types
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    let types: Vec<u32> = types
        .map(|name| {
            let missing = || SqlError::new("42704", format!("type \"{name}\" does not exist"));
            session.type_by_name(name).ok_or_else(missing)
        })
        .collect::<Result<_>>()?;
    let mut found = session.functions_by_name(name).into_iter();
    let found = found.find(|oid| match known(session, *oid) {
        Some(Known::Own(def)) => def.types().eq(types.iter().copied()),
        Some(Known::BuiltIn(function)) => function.arguments.iter().eq(types.iter()),
        None => false,
    });
    let io = || io_functions::named(name).filter(|function| function.arguments == types);
    Ok(found.or_else(|| io().map(|function| function.oid)))
}

/// What a function gives by names: the columns of its rows, or its only OUT argument.
pub(crate) fn outputs(def: &FunctionDef) -> Vec<FunctionArgument> {
    let out = def.out.iter().map(|name| FunctionArgument {
        name: Some(name.clone()),
        type_oid: def.result,
        default: None,
    });
    def.columns.iter().cloned().chain(out).collect()
}

/// `pg_get_function_result`
pub(super) fn result(session: &SystemSession, oid: u32) -> Option<String> {
    let set = |gives_rows: bool| if gives_rows { "SETOF " } else { "" };
    Some(match known(session, oid)? {
        Known::Own(def) if def.procedure.is_some() => return None,
        Known::Own(def) if def.returns_set && !outputs(def).is_empty() => {
            let columns: Vec<String> = outputs(def)
                .iter()
                .map(|of| argument(session, of, false))
                .collect();
            format!("TABLE({})", columns.join(", "))
        }
        Known::Own(def) => {
            let shown = type_shown(session, def.result);
            format!("{}{shown}", set(def.returns_set))
        }
        Known::BuiltIn(function) => {
            let shown = format_type(function.result, -1);
            format!("{}{shown}", set(function.returns_set()))
        }
    })
}

/// `pg_get_functiondef`
pub(super) fn definition(session: &SystemSession, oid: u32) -> Option<String> {
    let Known::Own(def) = known(session, oid)? else {
        return None;
    };
    let volatility = match def.volatility {
        FunctionVolatility::Immutable => " IMMUTABLE",
        FunctionVolatility::Stable => " STABLE",
        FunctionVolatility::Volatile => "",
    };
    let strict = if def.strict { " STRICT" } else { "" };
    let definer = if def.definer { " SECURITY DEFINER" } else { "" };
    let mut options = format!("{volatility}{strict}{definer}");
    if !options.is_empty() {
        options.push('\n');
    }
    for (name, values) in &def.settings {
        let values: Vec<String> = values.iter().map(|value| quoted_literal(value)).collect();
        options.push_str(&format!(
            " SET {} TO {}\n",
            quote_ident(name),
            values.join(", ")
        ));
    }
    let (kind, word) = match def.procedure {
        Some(_) => ("PROCEDURE", "procedure"),
        None => ("FUNCTION", "function"),
    };
    let mut quote = format!("${word}$");
    while def.body.contains(&quote) {
        quote = quote.replacen(word, &format!("{word}x"), 1);
    }
    let returns = result(session, oid).map_or_else(String::new, |of| format!(" RETURNS {of}\n"));
    Some(format!(
        "CREATE OR REPLACE {kind} {}.{}({})\n{returns} LANGUAGE {}\n{options}AS {quote}{}{quote}\n",
        quote_ident(&def.schema),
        quote_ident(&def.name),
        arguments(session, oid, true)?,
        def.language.name(),
        def.body
    ))
}
