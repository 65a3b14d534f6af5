//! The types: a row of `pg_type` and what makes, shows, sends and orders its
//! values, one file a type or a family of types. Arrays are made of their
//! elements' rows (`array.rs`).

pub mod array;
pub mod bit;
pub mod boolean;
pub mod bytea;
pub mod date;
pub mod datetime;
pub mod domain;
pub mod float;
mod hash;
pub mod ids;
pub mod inet;
pub mod integer;
pub mod interval;
pub mod json;
pub mod jsonb;
pub mod jsonpath;
pub mod macaddr;
pub mod numeric;
pub mod oid;
pub mod pseudo;
pub mod range;
pub mod record;
pub mod text;
pub mod time;
pub mod timestamp;
pub mod user;
pub mod uuid;

pub use hash::hash;

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::LazyLock;

use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};

/// See [`Type::modifier_in`].
pub type ModifierIn = fn(&[i32]) -> Result<i32>;
/// See [`Type::fit`].
pub type Fit = fn(&Call<'_>, &Datum, i32, bool) -> Result<Datum>;

/// A base type or a pseudo-type: a row of `pg_type`.
pub struct Type {
    /// Its number.
    pub oid: u32,
    /// Its name in `pg_type`.
    pub name: &'static str,
    /// Its name in SQL without a modifier, as `format_type` gives it.
    pub full_name: &'static str,
    /// The bytes of a value; -1 when they vary, -2 for a C string.
    pub length: i16,
    /// `typcategory`
    pub category: u8,
    /// `typispreferred`
    pub preferred: bool,
    /// The number of the type of its arrays; 0 for none.
    pub array: u32,
    /// Its elements' type, where it can be subscripted (`name`, `int2vector`); 0 for none.
    pub element: u32,
    /// Reads a value's text form, and fits it to the modifier (-1 for none).
    pub input: fn(&Call<'_>, &str, i32) -> Result<Datum>,
    /// Appends a value's text form.
    pub output: fn(&Call<'_>, &Datum, &mut String) -> Result<()>,
    /// Reads a value's binary form.
    pub receive: fn(&Call<'_>, &[u8], i32) -> Result<Datum>,
    /// Appends a value's binary form.
    pub send: fn(&Call<'_>, &Datum, &mut Vec<u8>) -> Result<()>,
    /// The order of two values that are not NULL (its default B-tree operator class).
    pub compare: Option<fn(&Datum, &Datum) -> Ordering>,
    /// Reads the modifiers in parentheses: `varchar(3)`, `numeric(5,2)`.
    pub modifier_in: Option<ModifierIn>,
    /// The modifier as `format_type` shows it: `(3)`.
    pub modifier_out: Option<fn(i32) -> String>,
    /// Fits a value to the modifier: `varchar(3)` cuts, `numeric(5,2)` rounds. The flag is for an
    /// explicit cast, where a text that is too long is cut.
    pub fit: Option<Fit>,
}

impl Type {
    /// A type without values of its own: pseudo-types, and the base for others.
    #[must_use]
    pub const fn new(oid: u32, name: &'static str, full_name: &'static str) -> Self {
        Self {
            oid,
            name,
            full_name,
            length: -1,
            category: b'U',
            preferred: false,
            array: 0,
            element: 0,
            input: pseudo::input,
            output: pseudo::output,
            receive: pseudo::receive,
            send: pseudo::send,
            compare: None,
            modifier_in: None,
            modifier_out: None,
            fit: None,
        }
    }
}

/// All base types, by file.
static FAMILIES: &[&[Type]] = &[
    bit::TYPES,
    boolean::TYPES,
    bytea::TYPES,
    date::TYPES,
    float::TYPES,
    inet::TYPES,
    integer::TYPES,
    interval::TYPES,
    json::TYPES,
    jsonb::TYPES,
    jsonpath::TYPES,
    macaddr::TYPES,
    numeric::TYPES,
    oid::TYPES,
    pseudo::TYPES,
    range::TYPES,
    record::TYPES,
    text::TYPES,
    time::TYPES,
    timestamp::TYPES,
    uuid::TYPES,
];

static BY_OID: LazyLock<HashMap<u32, &'static Type>> =
    LazyLock::new(|| all().map(|row| (row.oid, row)).collect());

/// The element type of each array type.
static BY_ARRAY: LazyLock<HashMap<u32, &'static Type>> = LazyLock::new(|| {
    all()
        .filter(|row| row.array != 0)
        .map(|row| (row.array, row))
        .collect()
});

static BY_NAME: LazyLock<HashMap<&'static str, &'static Type>> =
    LazyLock::new(|| all().map(|row| (row.name, row)).collect());

/// All base types and pseudo-types; their arrays are not among them.
pub fn all() -> impl Iterator<Item = &'static Type> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// The base type with this number. For a type that a user made it is what is common to its class,
/// and for a domain what is known of the type at its bottom.
#[must_use]
pub fn by_oid(oid: u32) -> Option<&'static Type> {
    match user::Class::of(oid) {
        Some(user::Class::Domain) => match domain::base(oid) {
            base if base == oid => None,
            base => by_oid(base),
        },
        Some(class) => user::row(class),
        None => BY_OID.get(&oid).copied(),
    }
}

/// Whether the type, or that of its elements, is one that no user made.
#[must_use]
pub fn is_built_in(oid: u32) -> bool {
    BY_OID.contains_key(&oid) || BY_ARRAY.contains_key(&oid)
}

/// The base type with this name; `_x` is the array of `x`, whose number is given.
#[must_use]
pub fn oid_named(name: &str) -> Option<u32> {
    if let Some(row) = BY_NAME.get(name) {
        return Some(row.oid);
    }
    let element = BY_NAME.get(name.strip_prefix('_')?)?;
    (element.array != 0).then_some(element.array)
}

/// The number of the elements' type of an array type (`_int4`, not `int2vector`) or of a domain
/// over one, or `None`.
#[must_use]
pub fn element_of(oid: u32) -> Option<u32> {
    let oid = domain::base(oid);
    user::element(oid).or_else(|| BY_ARRAY.get(&oid).map(|row| row.oid))
}

/// The type of an array's elements: its number, and what is known of it or of its class.
#[derive(Clone, Copy)]
pub(crate) struct Element {
    pub(crate) oid: u32,
    pub(crate) row: &'static Type,
}

impl Element {
    /// The type of this number.
    pub(crate) fn new(oid: u32) -> Option<Self> {
        by_oid(oid).map(|row| Self { oid, row })
    }

    /// The type of the elements of the array type of this number.
    pub(crate) fn of(array: u32) -> Option<Self> {
        element_of(array).and_then(Self::new)
    }
}

/// The number of the array type over these elements; 0 for none.
#[must_use]
pub fn array_of(element: u32) -> u32 {
    if domain::is_domain(element) && by_oid(element).is_none() {
        // Over an array: there are no arrays of these here.
        return 0;
    }
    user::array(element).unwrap_or_else(|| by_oid(element).map_or(0, |row| row.array))
}

/// The type's category; arrays are `A`.
#[must_use]
pub fn category(oid: u32) -> u8 {
    match by_oid(oid) {
        Some(row) => row.category,
        None if element_of(oid).is_some() => b'A',
        None => b'U',
    }
}

/// Whether the type is the preferred one of its category.
#[must_use]
pub fn is_preferred(oid: u32) -> bool {
    !domain::is_domain(oid) && by_oid(oid).is_some_and(|row| row.preferred)
}

/// The type's name with its modifier, as PostgreSQL's `format_type`.
#[must_use]
pub fn format_type(oid: u32, modifier: i32) -> String {
    if user::Class::of(oid).is_some() {
        return user::name(oid);
    }
    let (row, brackets) = match (by_oid(oid), element_of(oid)) {
        (Some(row), _) => (row, ""),
        (None, Some(element)) if user::Class::of(element).is_some() => {
            return format!("{}[]", user::name(element));
        }
        (None, Some(element)) => match by_oid(element) {
            Some(row) => (row, "[]"),
            None => return "???".to_owned(),
        },
        (None, None) => return "???".to_owned(),
    };
    let shown = match row.modifier_out {
        Some(modifier_out) if modifier >= 0 => modifier_out(modifier),
        _ => String::new(),
    };
    // A modifier stands before what follows the first word: timestamp(3) without time zone.
    let name = match row.full_name.split_once(' ') {
        Some((first, rest)) if matches!(first, "timestamp" | "time") => {
            format!("{first}{shown} {rest}")
        }
        _ if oid == ids::BPCHAR && modifier >= 0 => format!("character{shown}"),
        _ => format!("{}{shown}", row.full_name),
    };
    format!("{name}{brackets}")
}

/// Reads a value's text form.
///
/// # Errors
/// 22P02 and others of the type.
pub fn input(call: &Call<'_>, oid: u32, text: &str, modifier: i32) -> Result<Datum> {
    if domain::is_domain(oid) {
        let (base, modifier) = domain::base_of(oid, modifier);
        let value = input(call, base, text, modifier)?;
        return crate::domain::check(call, oid, &value).map(|()| value);
    }
    match (by_oid(oid), Element::of(oid)) {
        (Some(row), _) => (row.input)(&call.making(oid), text, modifier),
        (None, Some(element)) => array::input(&call.making(element.oid), element, text, modifier),
        (None, None) => Err(unknown(oid)),
    }
}

/// Appends a value's text form.
///
/// # Errors
/// 0A000 for a type without values.
pub fn output(call: &Call<'_>, oid: u32, value: &Datum, out: &mut String) -> Result<()> {
    let oid = domain::base(oid);
    match (by_oid(oid), Element::of(oid)) {
        (Some(row), _) => (row.output)(&call.making(oid), value, out),
        (None, Some(element)) => array::output(&call.making(element.oid), element, value, out),
        (None, None) => Err(unknown(oid)),
    }
}

/// A value's text form.
///
/// # Errors
/// As [`output`].
pub fn to_text(call: &Call<'_>, oid: u32, value: &Datum) -> Result<String> {
    let mut out = String::new();
    output(call, oid, value, &mut out)?;
    Ok(out)
}

/// Reads a value's binary form.
///
/// # Errors
/// 22P03 and others of the type.
pub fn receive(call: &Call<'_>, oid: u32, bytes: &[u8], modifier: i32) -> Result<Datum> {
    if domain::is_domain(oid) {
        let (base, modifier) = domain::base_of(oid, modifier);
        let value = receive(call, base, bytes, modifier)?;
        return crate::domain::check(call, oid, &value).map(|()| value);
    }
    match (by_oid(oid), Element::of(oid)) {
        (Some(row), _) => (row.receive)(&call.making(oid), bytes, modifier),
        (None, Some(element)) => {
            array::receive(&call.making(element.oid), element, bytes, modifier)
        }
        (None, None) => Err(unknown(oid)),
    }
}

/// Appends a value's binary form.
///
/// # Errors
/// 0A000 for a type without one.
pub fn send(call: &Call<'_>, oid: u32, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    let oid = domain::base(oid);
    match (by_oid(oid), Element::of(oid)) {
        (Some(row), _) => (row.send)(&call.making(oid), value, out),
        (None, Some(element)) => array::send(&call.making(element.oid), element, value, out),
        (None, None) => Err(unknown(oid)),
    }
}

/// The order of two values of a type that are not NULL.
///
/// # Errors
/// 42883 where the type has no order.
pub fn compare(oid: u32, a: &Datum, b: &Datum) -> Result<Ordering> {
    let oid = domain::base(oid);
    match (by_oid(oid), Element::of(oid)) {
        (Some(row), _) => match row.compare {
            Some(compare) => Ok(compare(a, b)),
            None if row.oid == ids::RECORD => record::compare(a, b),
            None => Err(without_order(oid)),
        },
        (None, Some(element)) => array::compare(element, a, b),
        (None, None) => Err(unknown(oid)),
    }
}

/// Fits a value to a modifier.
///
/// # Errors
/// 22001, 22003 and others of the type.
pub fn fit(
    call: &Call<'_>,
    oid: u32,
    value: &Datum,
    modifier: i32,
    explicit: bool,
) -> Result<Datum> {
    if modifier < 0 || value.is_null() {
        return Ok(value.clone());
    }
    match (by_oid(oid), Element::of(oid)) {
        (Some(row), _) => match row.fit {
            Some(fit) => fit(call, value, modifier, explicit),
            None => Ok(value.clone()),
        },
        (None, Some(element)) => array::fit(call, element, value, modifier, explicit),
        (None, None) => Err(unknown(oid)),
    }
}

#[cold]
fn without_order(oid: u32) -> QueryError {
    QueryError::new(
        "42883",
        format!(
            "could not identify a comparison function for type {}",
            format_type(oid, -1)
        ),
    )
}

#[cold]
fn unknown(oid: u32) -> QueryError {
    QueryError::internal(format!("there is no type {oid}"))
}
