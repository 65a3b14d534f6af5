//! Functions: those of the library, and users'.

use thermocline_engine::authority::Object;
use thermocline_engine::{FunctionLanguage, FunctionVolatility};
use thermocline_query::functions::{self, Volatility};
use thermocline_query::types::domain::base;
use thermocline_query::types::{element_of, ids};

use super::Filler;
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::functions::outputs;
use crate::pg_catalog::io_functions::IO_FUNCTIONS;
use crate::pg_catalog::oids;
use crate::pg_catalog::quote_ident;
use crate::pg_catalog::relations::Relation;
use crate::pg_catalog::session::SystemSession;

/// The languages, as `pg_language` numbers them.
const INTERNAL: u32 = 12;
const SQL: u32 = 14;
pub(super) const PLPGSQL: u32 = 13_500;

fn list(types: impl Iterator<Item = u32>) -> Datum {
    Datum::array(types.map(Datum::oid))
}

fn names<'n>(names: impl Iterator<Item = &'n str> + Clone) -> Datum {
    match names.clone().any(|name| !name.is_empty()) {
        true => Datum::array(names.map(Datum::text)),
        false => Datum::Null,
    }
}

/// A setting of a function as `proconfig` has it.
fn setting((name, values): &(String, Vec<String>)) -> Datum {
    let values: Vec<String> = match values.as_slice() {
        [one] if name != "search_path" => vec![one.clone()],
        several => several.iter().map(|value| quote_ident(value)).collect(),
    };
    Datum::text(format!("{name}={}", values.join(", ")))
}

/// `pg_proc`
pub(super) fn functions(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "oid",
            "proname",
            "pronamespace",
            "proowner",
            "prolang",
            "procost",
            "prorows",
            "provariadic",
            "prokind",
            "proisstrict",
            "proretset",
            "provolatile",
            "proparallel",
            "pronargs",
            "pronargdefaults",
            "prorettype",
            "proargtypes",
            "proallargtypes",
            "proargmodes",
            "proargnames",
            "prosrc",
            "proacl",
            "prosecdef",
            "proconfig",
        ],
    );
    let rows = |gives_rows: bool| Datum::Float(if gives_rows { 1000.0 } else { 0.0 });
    let built_in = functions::all().map(|function| {
        let kind = match () {
            () if function.is_aggregate() => "a",
            () if function.is_window() => "w",
            () => "f",
        };
        let gives_rows = function.returns_set();
        filler.row([
            Datum::oid(function.oid),
            Datum::text(function.name),
            Datum::oid(oids::PG_CATALOG),
            Datum::oid(oids::OWNER),
            Datum::oid(INTERNAL),
            Datum::Float(1.0),
            rows(gives_rows),
            Datum::oid(function.variadic),
            Datum::text(kind),
            Datum::Bool(function.strict),
            Datum::Bool(gives_rows),
            Datum::text(match function.volatility {
                Volatility::Immutable => "i",
                Volatility::Stable => "s",
                Volatility::Volatile => "v",
            }),
            Datum::text("s"),
            Datum::Int(function.arguments.len() as i64),
            Datum::Int(function.optional as i64),
            Datum::oid(function.result),
            list(function.arguments.iter().copied()),
            Datum::Null,
            Datum::Null,
            names(function.argument_names.iter().copied()),
            Datum::text(function.name),
            Datum::Null,
            Datum::Bool(false),
            Datum::Null,
        ])
    });
    let io = IO_FUNCTIONS.iter();
    let io = io.filter(|function| functions::by_oid(function.oid).is_none());
    let io = io.map(|function| {
        filler.row([
            Datum::oid(function.oid),
            Datum::text(function.name),
            Datum::oid(oids::PG_CATALOG),
            Datum::oid(oids::OWNER),
            Datum::oid(INTERNAL),
            Datum::Float(1.0),
            rows(false),
            Datum::Int(0),
            Datum::text("f"),
            Datum::Bool(true),
            Datum::Bool(false),
            Datum::text("i"),
            Datum::text("s"),
            Datum::Int(function.arguments.len() as i64),
            Datum::Int(0),
            Datum::oid(function.result),
            list(function.arguments.iter().copied()),
            Datum::Null,
            Datum::Null,
            Datum::Null,
            Datum::text(function.name),
            Datum::Null,
            Datum::Bool(false),
            Datum::Null,
        ])
    });
    let own = session.catalog.functions.values().map(|def| {
        let inputs = def.arguments.len();
        let outputs = outputs(def);
        let with_columns = def.arguments.iter().chain(&outputs);
        let (all, modes) = match outputs.is_empty() {
            false if def.procedure.is_some() => {
                let parameters = def.parameters();
                let modes = parameters
                    .iter()
                    .map(|(mode, _)| Datum::text(mode.to_string()));
                (
                    list(parameters.iter().map(|(_, of)| of.type_oid)),
                    Datum::array(modes),
                )
            }
            true if !def.variadic => (Datum::Null, Datum::Null),
            _ => {
                let column = if def.returns_set { "t" } else { "o" };
                let modes = (1..=inputs).map(|at| match def.variadic && at == inputs {
                    true => "v",
                    false => "i",
                });
                let modes = modes.chain(outputs.iter().map(|_| column));
                (
                    list(with_columns.clone().map(|of| of.type_oid)),
                    Datum::array(modes.map(Datum::text)),
                )
            }
        };
        let defaults = def.arguments.iter().filter(|of| of.default.is_some());
        filler.row([
            Datum::oid(def.oid),
            Datum::text(&def.name),
            session
                .schema_oid(&def.schema)
                .map_or(Datum::Int(0), Datum::oid),
            Datum::oid(session.catalog.authority.owner(&Object::Function(def.oid))),
            Datum::oid(match def.language {
                FunctionLanguage::Sql => SQL,
                FunctionLanguage::PlPgSql => PLPGSQL,
            }),
            Datum::Float(100.0),
            rows(def.returns_set),
            Datum::oid(match def.arguments.last() {
                Some(last) if def.variadic => match last.type_oid {
                    ids::ANYARRAY => ids::ANYELEMENT,
                    oid => element_of(base(oid)).unwrap_or(0),
                },
                _ => 0,
            }),
            Datum::text(if def.procedure.is_some() { "p" } else { "f" }),
            Datum::Bool(def.strict),
            Datum::Bool(def.returns_set),
            Datum::text(match def.volatility {
                FunctionVolatility::Immutable => "i",
                FunctionVolatility::Stable => "s",
                FunctionVolatility::Volatile => "v",
            }),
            Datum::text("u"),
            Datum::Int(inputs as i64),
            Datum::Int(defaults.count() as i64),
            Datum::oid(if def.result == 0 {
                ids::VOID
            } else {
                def.result
            }),
            list(def.types()),
            all,
            modes,
            match def.procedure {
                Some(_) => {
                    let parameters = def.parameters();
                    let named = parameters.iter();
                    names(named.map(|(_, of)| of.name.as_deref().unwrap_or("")))
                }
                None => names(with_columns.map(|of| of.name.as_deref().unwrap_or(""))),
            },
            Datum::text(&def.body),
            session.acl(&Object::Function(def.oid)),
            Datum::Bool(def.definer),
            match def.settings.is_empty() {
                true => Datum::Null,
                false => Datum::array(def.settings.iter().map(setting)),
            },
        ])
    });
    built_in.chain(io).chain(own).collect()
}
