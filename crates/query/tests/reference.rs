//! The pages on types, functions and operators are printed from the tables that names are
//! resolved by, and compared with the pages that are there.

#[path = "../../thermocline/tests/support/printed.rs"]
mod printed;

use std::collections::{BTreeMap, BTreeSet};

use thermocline_query::casts::{self, Method};
use thermocline_query::functions::{self, AggregateKind, Body, Function};
use thermocline_query::operators;
use thermocline_query::types::{self, Type, format_type, ids};

fn code(text: &str) -> String {
    format!("`{text}`")
}

#[test]
fn reference_types_are_as_the_code_has_them() {
    let is_pseudo = |one: &&Type| one.category == b'P';
    let mut table =
        String::from("| type | in `pg_type` | bytes | sorted, compared | modifiers | arrays |\n");
    table.push_str("|---|---|---|---|---|---|\n");
    let mut all: Vec<&Type> = types::all().filter(|one| !is_pseudo(one)).collect();
    all.sort_by_key(|one| one.full_name);
    let yes = |yes: bool| if yes { "yes" } else { "" }.to_owned();
    for one in all {
        let bytes = match one.length {
            length if length > 0 => length.to_string(),
            _ => "varies".to_owned(),
        };
        table.push_str(&printed::row(&[
            code(one.full_name),
            code(one.name),
            bytes,
            yes(one.compare.is_some()),
            yes(one.modifier_in.is_some()),
            yes(one.array != 0),
        ]));
    }
    let pseudo: BTreeSet<String> = types::all()
        .filter(is_pseudo)
        .map(|one| code(one.name))
        .collect();
    let pseudo: Vec<String> = pseudo.into_iter().collect();
    let page = "docs/reference/types.md";
    printed::compare(page, "types", &table);
    printed::compare(page, "pseudo-types", &pseudo.join(", "));
}

/// What operators, casts, types and indexes call under names that nobody writes.
fn inner() -> BTreeSet<u32> {
    let operators = operators::OPERATORS.iter().map(|one| one.function);
    let casts = casts::CASTS.iter().filter_map(|one| match one.method {
        Method::Function(oid) => Some(oid),
        _ => None,
    });
    operators.chain(casts).collect()
}

fn is_written(function: &Function, inner: &BTreeSet<u32>) -> bool {
    let named = |oid: &u32| matches!(*oid, ids::CSTRING | ids::INTERNAL);
    let of_a_type = ["_send", "_larger", "_smaller"];
    !inner.contains(&function.oid)
        && !function.name.starts_with('_')
        && !of_a_type.iter().any(|end| function.name.ends_with(end))
        && !function.arguments.iter().any(named)
        && !named(&function.result)
}

/// `name(integer, text)`, with what may be left out in brackets.
fn signature(function: &Function) -> String {
    let direct = match function.body {
        Body::Aggregate(aggregate) => match aggregate.kind {
            AggregateKind::OrderedSet { direct } => Some(direct),
            AggregateKind::Hypothetical => Some(function.arguments.len()),
            AggregateKind::Normal => None,
        },
        _ => None,
    };
    let least = function.arguments.len() - function.optional;
    let mut shown = String::new();
    for (place, oid) in function.arguments.iter().enumerate() {
        let is_last = place + 1 == function.arguments.len();
        let before = match (direct == Some(place), place) {
            (true, 0) => "ORDER BY ",
            (true, _) => " ORDER BY ",
            (false, 0) => "",
            (false, _) => ", ",
        };
        if place == least {
            shown.push('[');
        }
        shown.push_str(before);
        if is_last && function.variadic != 0 {
            shown.push_str("VARIADIC ");
        }
        shown.push_str(&format_type(*oid, -1));
    }
    if function.optional > 0 {
        shown.push(']');
    }
    let rows = match function.body {
        Body::Set(_) | Body::ServerSet => "setof ",
        _ => "",
    };
    let result = match function.columns {
        [] => format_type(function.result, -1),
        columns => {
            let columns = columns.iter();
            let columns: Vec<String> = columns
                .map(|(name, oid)| format!("{name} {}", format_type(*oid, -1)))
                .collect();
            format!("({})", columns.join(", "))
        }
    };
    format!("`({shown})` → `{rows}{result}`")
}

#[test]
fn reference_functions_are_as_the_code_has_them() {
    let inner = inner();
    type Belongs = fn(&Body) -> bool;
    let parts: [(&str, Belongs); 3] = [
        ("functions", |body| {
            !matches!(body, Body::Aggregate(_) | Body::Window(_))
        }),
        ("aggregates", |body| matches!(body, Body::Aggregate(_))),
        ("window functions", |body| matches!(body, Body::Window(_))),
    ];
    let page = "docs/reference/functions.md";
    for (part, belongs) in parts {
        let mut by_name: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for function in functions::all() {
            if belongs(&function.body) && is_written(function, &inner) {
                by_name
                    .entry(function.name)
                    .or_default()
                    .insert(signature(function));
            }
        }
        let mut table = String::from("| name | arguments → result |\n|---|---|\n");
        for (name, signatures) in by_name {
            let signatures: Vec<String> = signatures.into_iter().collect();
            table.push_str(&printed::row(&[code(name), signatures.join("<br>")]));
        }
        printed::compare(page, part, &table);
    }
}

#[test]
fn reference_operators_are_as_the_code_has_them() {
    let mut by_sign: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for one in operators::OPERATORS {
        let left = match one.left {
            0 => String::new(),
            oid => format_type(oid, -1),
        };
        let result = format_type(one.result, -1);
        let operands = format!("{left} {} {}", one.name, format_type(one.right, -1));
        by_sign
            .entry(one.name)
            .or_default()
            .insert(format!("`{}` → `{result}`", operands.trim()));
    }
    let mut table = String::from("| operator | operands → result |\n|---|---|\n");
    for (sign, shapes) in by_sign {
        let shapes: Vec<String> = shapes.into_iter().collect();
        table.push_str(&printed::row(&[code(sign), shapes.join("<br>")]));
    }
    printed::compare("docs/reference/functions.md", "operators", &table);
}
