//! The functions by which PostgreSQL reads and writes values of its types. Here nobody can call them,
//! but drivers tell types by them: an array is what `array_in` reads. The rows are PostgreSQL 15's
//! own (`data/io_functions.tsv`, `data/io_of_types.tsv`).

use std::collections::HashMap;
use std::sync::LazyLock;

use thermocline_engine::{TypeDef, TypeKind};
use thermocline_query::types::domain::base;

/// A function that reads or writes values.
#[derive(Debug)]
pub(crate) struct IoFunction {
    pub oid: u32,
    pub name: &'static str,
    pub arguments: Vec<u32>,
    pub result: u32,
}

/// The numbers of the functions of a type: `typinput`, `typoutput`, `typreceive`, `typsend`.
pub(crate) type IoOfType = [u32; 4];

/// Of arrays, of rows and of enums.
pub(crate) const ARRAY: IoOfType = [750, 751, 2400, 2401];
pub(crate) const ROW: IoOfType = [2290, 2291, 2402, 2403];
const ENUM: IoOfType = [3506, 3507, 3532, 3533];
/// What reads a domain; it is written as what is below.
const DOMAIN_IN: u32 = 2597;
const DOMAIN_RECV: u32 = 2598;

/// All of them, by number.
pub(crate) static IO_FUNCTIONS: LazyLock<Vec<IoFunction>> = LazyLock::new(|| {
    let lines = include_str!("data/io_functions.tsv").lines();
    lines
        .filter_map(|line| {
            let mut fields = line.split('\t');
            Some(IoFunction {
                oid: fields.next()?.parse().ok()?,
                name: fields.next()?,
                arguments: numbers(fields.next()?.split(' ')),
                result: fields.next()?.parse().ok()?,
            })
        })
        .collect()
});

static OF_TYPES: LazyLock<HashMap<u32, IoOfType>> = LazyLock::new(|| {
    let lines = include_str!("data/io_of_types.tsv").lines();
    lines
        .filter_map(|line| {
            let all = numbers(line.split('\t'));
            let (oid, functions) = all.split_first()?;
            Some((*oid, functions.try_into().ok()?))
        })
        .collect()
});

fn numbers<'t>(fields: impl Iterator<Item = &'t str>) -> Vec<u32> {
    fields.filter_map(|field| field.parse().ok()).collect()
}

/// Those of a built-in type.
pub(crate) fn of_type(oid: u32) -> IoOfType {
    OF_TYPES.get(&oid).copied().unwrap_or_default()
}

/// Those of a user's type.
pub(crate) fn of_users(def: &TypeDef) -> IoOfType {
    match &def.kind {
        TypeKind::Enum(_) => ENUM,
        TypeKind::Composite(_) => ROW,
        TypeKind::Domain(domain) => {
            let [_, output, _, send] = match base(domain.below) {
                below if of_type(below) != IoOfType::default() => of_type(below),
                // Of users' types, arrays among them, drivers do not ask so far.
                _ => ARRAY,
            };
            [DOMAIN_IN, output, DOMAIN_RECV, send]
        }
    }
}

/// The one of this number.
pub(crate) fn by_oid(oid: u32) -> Option<&'static IoFunction> {
    let place = IO_FUNCTIONS.binary_search_by_key(&oid, |function| function.oid);
    place.ok().map(|place| &IO_FUNCTIONS[place])
}

/// The one of this name, which may have the schema before it.
pub(crate) fn named(name: &str) -> Option<&'static IoFunction> {
    let name = name.strip_prefix("pg_catalog.").unwrap_or(name);
    IO_FUNCTIONS.iter().find(|function| function.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pg_catalog::pg_type::TYPES;

    #[test]
    fn each_type_has_functions_that_are_there() {
        for row in TYPES.iter().filter(|row| row.oid < 10_000) {
            for oid in of_type(row.oid).into_iter().filter(|oid| *oid != 0) {
                assert!(by_oid(oid).is_some(), "{}: {oid}", row.name);
            }
        }
        let of = |name: &str| named(name).map(|function| function.oid);
        assert_eq!(of("pg_catalog.array_in"), Some(ARRAY[0]));
        assert_eq!(
            (of("record_in"), of("enum_send")),
            (Some(ROW[0]), Some(ENUM[3]))
        );
        assert_eq!(
            (of("domain_in"), of("domain_recv")),
            (Some(DOMAIN_IN), Some(DOMAIN_RECV))
        );
        assert!(IO_FUNCTIONS.is_sorted_by_key(|function| function.oid));
    }
}
