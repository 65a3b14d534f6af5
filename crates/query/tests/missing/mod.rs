//! What PostgreSQL has over types that are here and we don't: functions, and
//! the functions of operators and casts. And what our rows of `pg_proc` say
//! otherwise than PostgreSQL's.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

use thermocline_query::casts::{CASTS, Method};
use thermocline_query::functions::{self, Body, Function, Volatility};
use thermocline_query::operators::OPERATORS;
use thermocline_query::types::{self, ids};
use tokio_postgres::{Client, SimpleQueryMessage};

/// All functions but those of types' forms, of indexes and of aggregates' states.
const PROCEDURES: &str = "
select p.oid, proname, proargtypes, prorettype, proisstrict, provolatile, provariadic,
       pronargdefaults, proretset, prokind, coalesce(proallargtypes, proargtypes::oid[])
from pg_proc p
where pronamespace = 'pg_catalog'::regnamespace and prokind in ('f', 'a', 'w')
  and proname !~ '^binary_upgrade_'
  and not exists (select from pg_type where p.oid in
      (typinput, typoutput, typreceive, typsend, typmodin, typmodout, typanalyze, typsubscript))
  and not exists (select from pg_amproc join pg_opfamily f on f.oid = amprocfamily
      join pg_am m on m.oid = opfmethod where amproc = p.oid and amname not in ('btree', 'hash'))
  and (exists (select from pg_operator where oprcode = p.oid)
      or not exists (select from pg_aggregate where p.oid in
      (aggtransfn, aggfinalfn, aggcombinefn, aggserialfn, aggdeserialfn, aggmtransfn,
       aggminvtransfn, aggmfinalfn)))
order by 2, 1";

/// A row of PostgreSQL's `pg_proc`.
struct Procedure {
    oid: u32,
    name: String,
    arguments: Vec<u32>,
    result: u32,
    strict: bool,
    volatility: char,
    variadic: u32,
    defaults: usize,
    set: bool,
    kind: char,
    all_arguments: Vec<u32>,
}

fn numbers(text: &str) -> Vec<u32> {
    text.split(|char: char| !char.is_ascii_digit())
        .filter_map(|number| number.parse().ok())
        .collect()
}

/// The numbers of an array's elements, without the bounds before it.
fn elements(text: &str) -> Vec<u32> {
    numbers(text.rsplit('=').next().unwrap_or(text))
}

async fn procedures(client: &Client) -> Vec<Procedure> {
    let messages = client.simple_query(PROCEDURES).await.expect("pg_proc");
    messages
        .iter()
        .filter_map(|message| {
            let SimpleQueryMessage::Row(row) = message else {
                return None;
            };
            let text = |column| row.get(column).unwrap_or_default();
            let first = |column| text(column).chars().next().unwrap_or(' ');
            Some(Procedure {
                oid: text(0).parse().ok()?,
                name: text(1).to_owned(),
                arguments: numbers(text(2)),
                result: text(3).parse().ok()?,
                strict: text(4) == "t",
                volatility: first(5),
                variadic: text(6).parse().ok()?,
                defaults: text(7).parse().ok()?,
                set: text(8) == "t",
                kind: first(9),
                all_arguments: elements(text(10)),
            })
        })
        .collect()
}

/// Whether a type is here and can be written in a call.
fn is_here(oid: u32) -> bool {
    let known = types::by_oid(oid).is_some() || types::element_of(oid).is_some();
    known && !matches!(oid, ids::INTERNAL | ids::CSTRING | ids::TRIGGER)
}

/// What a function is listed under: its first argument's type, or its result's.
fn family(procedure: &Procedure) -> String {
    let oid = procedure.arguments.first().unwrap_or(&procedure.result);
    types::format_type(*oid, -1)
}

fn signature(procedure: &Procedure) -> String {
    let arguments: Vec<_> = procedure
        .arguments
        .iter()
        .map(|oid| types::format_type(*oid, -1))
        .collect();
    format!(
        "{} {}({})",
        procedure.oid,
        procedure.name,
        arguments.join(", ")
    )
}

#[tokio::test]
async fn what_is_missing_is_told() {
    let Some(client) = super::oracle().await else {
        return;
    };
    let listed = std::env::var("MISSING").is_ok();
    let mut families: BTreeMap<String, (usize, Vec<String>)> = BTreeMap::new();
    let (mut all, mut missing) = (0, 0);
    for procedure in procedures(&client).await {
        let here = procedure
            .arguments
            .iter()
            .chain(&procedure.all_arguments)
            .chain([&procedure.result])
            .all(|oid| is_here(*oid));
        if !here {
            continue;
        }
        all += 1;
        let (count, list) = families.entry(family(&procedure)).or_default();
        *count += 1;
        if functions::by_oid(procedure.oid).is_none() {
            missing += 1;
            list.push(signature(&procedure));
        }
    }
    eprintln!("functions: {missing} of {all} are missing");
    for (family, (count, list)) in families.iter().filter(|(_, (_, list))| !list.is_empty()) {
        eprintln!("    {family}: {} of {count}", list.len());
        for signature in list.iter().filter(|_| listed) {
            eprintln!("        {signature}");
        }
    }
    let without = |oid: u32| functions::by_oid(oid).is_none();
    let operators: Vec<_> = OPERATORS
        .iter()
        .filter(|operator| without(operator.function))
        .collect();
    eprintln!(
        "operators: the functions of {} of {} are missing",
        operators.len(),
        OPERATORS.len()
    );
    for operator in operators.iter().filter(|_| listed) {
        eprintln!(
            "        {} {} {}: {}",
            types::format_type(operator.left, -1),
            operator.name,
            types::format_type(operator.right, -1),
            operator.function
        );
    }
    let casts: Vec<_> = CASTS
        .iter()
        .filter(|cast| matches!(cast.method, Method::Function(oid) if without(oid)))
        .collect();
    eprintln!(
        "casts: the functions of {} of {} are missing",
        casts.len(),
        CASTS.len()
    );
    for cast in casts.iter().filter(|_| listed) {
        eprintln!(
            "        {} to {}: {:?}",
            types::format_type(cast.source, -1),
            types::format_type(cast.target, -1),
            cast.method
        );
    }
}

/// How a row differs from PostgreSQL's.
fn differences(function: &Function, procedure: &Procedure) -> Vec<String> {
    let volatility = match function.volatility {
        Volatility::Immutable => 'i',
        Volatility::Stable => 's',
        Volatility::Volatile => 'v',
    };
    let mut differences = Vec::new();
    let mut check = |what: &str, same: bool, theirs: String| {
        if !same {
            differences.push(format!("{what} is {theirs}"));
        }
    };
    check(
        "name",
        function.name == procedure.name,
        procedure.name.clone(),
    );
    check(
        "arguments",
        function.arguments == procedure.arguments,
        format!("{:?}", procedure.arguments),
    );
    check(
        "result",
        function.result == procedure.result,
        procedure.result.to_string(),
    );
    check(
        "volatility",
        volatility == procedure.volatility,
        procedure.volatility.to_string(),
    );
    check(
        "variadic",
        function.variadic == procedure.variadic,
        procedure.variadic.to_string(),
    );
    check(
        "the number of defaults",
        function.optional == procedure.defaults,
        procedure.defaults.to_string(),
    );
    check(
        "aggregate",
        function.is_aggregate() == (procedure.kind == 'a'),
        procedure.kind.to_string(),
    );
    if !function.is_aggregate() {
        check(
            "strict",
            function.strict == procedure.strict,
            procedure.strict.to_string(),
        );
    }
    if !matches!(function.body, Body::Server) {
        check(
            "returning a set",
            function.returns_set() == procedure.set,
            procedure.set.to_string(),
        );
    }
    differences
}

#[tokio::test]
async fn rows_of_functions_are_those_of_postgresql() {
    let Some(client) = super::oracle().await else {
        return;
    };
    let mut report = String::new();
    let mut seen = HashSet::new();
    for procedure in procedures(&client).await {
        seen.insert(procedure.oid);
        let Some(function) = functions::by_oid(procedure.oid) else {
            continue;
        };
        for difference in differences(function, &procedure) {
            writeln!(report, "{}: {difference}", signature(&procedure)).unwrap();
        }
    }
    assert!(report.is_empty(), "\n{report}");
}
