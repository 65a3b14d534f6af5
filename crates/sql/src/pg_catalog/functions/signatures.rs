//! Functions as PostgreSQL writes them: arguments, results, whole definitions.

use thermocline_engine::{FunctionArgument, FunctionDef, FunctionVolatility};
use thermocline_query::functions::{self, Function};
use thermocline_query::types::format_type;

use super::quote_ident;
use crate::pg_catalog::session::SystemSession;

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

fn argument(of: &FunctionArgument, with_default: bool) -> String {
    let name = of
        .name
        .as_deref()
        .map(|name| format!("{} ", quote_ident(name)));
    let default = of.default.as_deref().filter(|_| with_default);
    let default = default.map(|text| format!(" DEFAULT {text}"));
    format!(
        "{}{}{}",
        name.unwrap_or_default(),
        format_type(of.type_oid, -1),
        default.unwrap_or_default()
    )
}

/// `pg_get_function_arguments`, and `pg_get_function_identity_arguments` without defaults.
pub(super) fn arguments(session: &SystemSession, oid: u32, with_defaults: bool) -> Option<String> {
    Some(match known(session, oid)? {
        Known::Own(def) => {
            let inputs = def.arguments.iter().map(|of| argument(of, with_defaults));
            let columns = def.columns.iter().filter(|_| !def.returns_set);
            let columns = columns.map(|of| format!("OUT {}", argument(of, false)));
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

/// `pg_get_function_result`
pub(super) fn result(session: &SystemSession, oid: u32) -> Option<String> {
    let set = |gives_rows: bool| if gives_rows { "SETOF " } else { "" };
    Some(match known(session, oid)? {
        Known::Own(def) if def.returns_set && !def.columns.is_empty() => {
            let columns: Vec<String> = def.columns.iter().map(|of| argument(of, false)).collect();
            format!("TABLE({})", columns.join(", "))
        }
        Known::Own(def) => format!("{}{}", set(def.returns_set), format_type(def.result, -1)),
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
    let options = format!("{volatility}{strict}");
    let options = match options.is_empty() {
        true => String::new(),
        false => format!("{options}\n"),
    };
    let mut quote = "$function$".to_owned();
    while def.body.contains(&quote) {
        quote = quote.replacen("$function", "$functionx", 1);
    }
    Some(format!(
        "CREATE OR REPLACE FUNCTION {}.{}({})\n RETURNS {}\n LANGUAGE sql\n{options}AS {quote}{}{quote}\n",
        quote_ident(&def.schema),
        quote_ident(&def.name),
        arguments(session, oid, true)?,
        result(session, oid)?,
        def.body
    ))
}
