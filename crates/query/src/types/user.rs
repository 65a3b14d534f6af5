//! Types that users make. What a number means is told to the whole process ([`register`]), since
//! values are read and shown where no catalog is at hand. Who told it keeps it ([`UserType`]) for
//! as long as there is such a type. A number says by itself of which class its type is.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, RwLock, Weak};

use super::domain::Domain;
use super::{Type, ids};
use crate::call::Call;
use crate::datum::{Datum, Record};
use crate::error::{QueryError, Result};

/// The first number of such a type, and the first behind them.
pub const NUMBERS: std::ops::Range<u32> = 0x2000_0000..0x4000_0000;
/// The bits of a number that say the class.
const CLASS_BITS: u32 = 7;
/// What is added to a type's number for its arrays'.
const ARRAY: u32 = 1;
/// The highest byte of the number of the type of a table's rows; the others are the table's. Such types are
/// not told: what their columns are, the catalog at hand says.
pub const ROW_TYPES: u32 = 0x7000_0000;

/// The classes of types that users make.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// `CREATE TYPE … AS ENUM`
    Enum,
    /// `CREATE TYPE … AS (…)`, and the rows of a table
    Composite,
    /// `CREATE DOMAIN`
    Domain,
}

impl Class {
    /// A number for a type of this class, made of any number.
    #[must_use]
    pub const fn number(self, any: u32) -> u32 {
        let room = (NUMBERS.end - NUMBERS.start) / (CLASS_BITS + 1);
        NUMBERS.start + (any % room) * (CLASS_BITS + 1) + self.bits()
    }

    const fn bits(self) -> u32 {
        match self {
            Self::Enum => 0,
            Self::Composite => 2,
            Self::Domain => 4,
        }
    }

    /// The class of the type of this number; none for arrays and for types that are built in.
    #[must_use]
    pub const fn of(oid: u32) -> Option<Self> {
        if oid >> 24 == ROW_TYPES >> 24 {
            return Some(Self::Composite);
        }
        if oid < NUMBERS.start || oid >= NUMBERS.end {
            return None;
        }
        match oid & CLASS_BITS {
            0 => Some(Self::Enum),
            2 => Some(Self::Composite),
            4 => Some(Self::Domain),
            _ => None,
        }
    }
}

/// The number of the elements' type, if this is the number of an array of such a type.
#[must_use]
pub const fn element(oid: u32) -> Option<u32> {
    match Class::of(oid.wrapping_sub(ARRAY)) {
        Some(_) if oid < NUMBERS.end => Some(oid - ARRAY),
        _ => None,
    }
}

/// The number of the arrays' type of such a type.
#[must_use]
pub const fn array(oid: u32) -> Option<u32> {
    match Class::of(oid) {
        Some(_) if oid < NUMBERS.end => Some(oid + ARRAY),
        Some(_) => Some(0),
        None => None,
    }
}

/// A type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UserType {
    /// Its number.
    pub oid: u32,
    /// Its name.
    pub name: Arc<str>,
    /// What it is.
    pub kind: Kind,
}

/// What a type is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The labels of an enum with the places that order them, in that order.
    Enum(Vec<(u64, Arc<str>)>),
    /// A row of these columns.
    Composite(Columns),
    /// Another type's values with conditions.
    Domain(Domain),
}

/// The columns of a composite type.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Columns {
    /// Their names.
    pub names: Arc<[Arc<str>]>,
    /// The numbers of their types.
    pub types: Arc<[u32]>,
    /// Their types' modifiers.
    pub modifiers: Arc<[i32]>,
    /// Of each column that there ever was, whether it is there still. Tables keep the values of all.
    pub kept: Arc<[bool]>,
}

impl Columns {
    /// The row of these values.
    #[must_use]
    pub fn row(&self, values: Vec<Datum>) -> Record {
        Record {
            types: Arc::clone(&self.types),
            names: Some(Arc::clone(&self.names)),
            modifiers: Some(Arc::clone(&self.modifiers)),
            values,
        }
    }

    /// The row of NULLs.
    #[must_use]
    pub fn nulls(&self) -> Record {
        self.row(vec![Datum::Null; self.types.len()])
    }

    fn typed(&self) -> Vec<(u32, i32)> {
        let types = self.types.iter().copied();
        types.zip(self.modifiers.iter().copied()).collect()
    }
}

/// By number what was told, the newest last.
static KNOWN: LazyLock<RwLock<HashMap<u32, Vec<Weak<UserType>>>>> = LazyLock::new(RwLock::default);

/// Tells what a number means from now on, for as long as what is given back is kept; then it means
/// again what was told before, if that is kept.
pub fn register(told: UserType) -> Arc<UserType> {
    let mut known = KNOWN.write().unwrap_or_else(|broken| broken.into_inner());
    // Those that are gone leave when there is no room left beside them.
    if known.len() == known.capacity() {
        known.retain(|_, meanings| meanings.iter().any(|meaning| meaning.strong_count() > 0));
    }
    let meanings = known.entry(told.oid).or_default();
    meanings.retain(|meaning| meaning.strong_count() > 0);
    if let Some(same) = meanings.last().and_then(Weak::upgrade)
        && *same == told
    {
        return same;
    }
    let told = Arc::new(told);
    meanings.push(Arc::downgrade(&told));
    told
}

/// The type of this number.
#[must_use]
pub fn by_oid(oid: u32) -> Option<Arc<UserType>> {
    let known = KNOWN.read().unwrap_or_else(|broken| broken.into_inner());
    known.get(&oid)?.iter().rev().find_map(Weak::upgrade)
}

/// What is common to the types of a class; nothing is to domains, whose values are other types'.
pub(super) const fn row(class: Class) -> Option<&'static Type> {
    match class {
        Class::Enum => Some(&ENUM),
        Class::Composite => Some(&COMPOSITE),
        Class::Domain => None,
    }
}

/// A type's name as SQL writes it.
pub(super) fn name(oid: u32) -> String {
    by_oid(oid).map_or_else(|| "???".to_owned(), |known| quoted(&known.name))
}

/// A name, in quotes where it needs them.
fn quoted(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_' || byte.is_ascii_digit();
    let begins = name
        .bytes()
        .next()
        .is_some_and(|byte| !byte.is_ascii_digit());
    match begins && name.bytes().all(is_plain) {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

static ENUM: Type = Type {
    length: 4,
    category: b'E',
    input: read,
    output: |call, value, out| {
        out.push_str(&label(call.result, value.as_enum())?);
        Ok(())
    },
    receive: |call, bytes, modifier| match std::str::from_utf8(bytes) {
        Ok(text) => read(call, text, modifier),
        Err(_) => Err(QueryError::new(
            "22021",
            "invalid byte sequence for encoding \"UTF8\"",
        )),
    },
    send: |call, value, out| {
        out.extend_from_slice(label(call.result, value.as_enum())?.as_bytes());
        Ok(())
    },
    compare: Some(|a, b| a.as_enum().cmp(&b.as_enum())),
    ..Type::new(ids::ANYENUM, "anyenum", "anyenum")
};

static COMPOSITE: Type = Type {
    category: b'C',
    input: |call, text, _| {
        let columns = columns_of(call.result)?;
        let values = super::record::read(call, text, &columns.typed())?;
        Ok(Datum::Record(columns.row(values).into()))
    },
    output: super::record::output,
    receive: |call, bytes, _| {
        let columns = columns_of(call.result)?;
        let values = super::record::read_binary(call, bytes, &columns.typed())?;
        Ok(Datum::Record(columns.row(values).into()))
    },
    send: super::record::send,
    ..Type::new(ids::RECORD, "record", "record")
};

fn known(oid: u32) -> Result<Arc<UserType>> {
    by_oid(oid).ok_or_else(|| match Class::of(oid) {
        Some(Class::Composite) if oid >= NUMBERS.end => QueryError::unsupported(
            "input of the row type of a table is not supported",
            "Make a composite type of the same columns, and use that.",
        ),
        _ => QueryError::internal(format!("there is no type {oid}")),
    })
}

/// The columns of the composite type of this number.
///
/// # Errors
/// 0A000 for the rows of a table, XX000 where there is no such type.
pub fn columns_of(oid: u32) -> Result<Columns> {
    match &known(super::domain::base(oid))?.kind {
        Kind::Composite(columns) => Ok(columns.clone()),
        Kind::Enum(_) | Kind::Domain(_) => Err(QueryError::internal("the type has no columns")),
    }
}

/// The labels of the enum of this number, with their places, in their order.
///
/// # Errors
/// XX000 where there is none.
pub(crate) fn labels_of<T>(oid: u32, pick: impl FnOnce(&[(u64, Arc<str>)]) -> T) -> Result<T> {
    match &known(super::domain::base(oid))?.kind {
        Kind::Enum(labels) => Ok(pick(labels)),
        Kind::Composite(_) | Kind::Domain(_) => Err(QueryError::internal("the type has no labels")),
    }
}

/// The label of a value of the enum.
fn label(oid: u32, place: u64) -> Result<Arc<str>> {
    let found = labels_of(oid, |labels| {
        let found = labels.binary_search_by_key(&place, |(place, _)| *place);
        found.map(|at| Arc::clone(&labels[at].1))
    })?;
    match found {
        Ok(label) => Ok(label),
        Err(_) => Err(QueryError::new(
            "22P03",
            format!("invalid internal value for enum: {place}"),
        )),
    }
}

fn read(call: &Call<'_>, text: &str, _: i32) -> Result<Datum> {
    let place = labels_of(call.result, |labels| {
        let found = labels.iter().find(|(_, label)| **label == *text);
        found.map(|(place, _)| *place)
    })?;
    place.map(Datum::Enum).ok_or_else(|| {
        let name = name(call.result);
        let message = format!("invalid input value for enum {name}: \"{text}\"");
        QueryError::new("22P02", message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Plain;
    use crate::types::{array_of, category, compare, element_of, format_type, input, to_text};

    fn mood(number: u32) -> UserType {
        let label = |place: u64, text: &str| (place, Arc::from(text));
        UserType {
            oid: Class::Enum.number(number),
            name: Arc::from("mood"),
            kind: Kind::Enum(vec![
                label(10, "sad"),
                label(15, "so \"so\""),
                label(20, "happy"),
            ]),
        }
    }

    #[test]
    fn values_are_read_shown_and_ordered_by_their_places() {
        let kept = register(mood(7));
        let plain = Plain::default();
        let call = Call::new(&plain, &[], 0);
        let happy = input(&call, kept.oid, "happy", -1).unwrap();
        let sad = input(&call, kept.oid, "sad", -1).unwrap();
        assert_eq!(to_text(&call, kept.oid, &happy).unwrap(), "happy");
        assert_eq!(
            compare(kept.oid, &sad, &happy),
            Ok(std::cmp::Ordering::Less)
        );
        let unknown = input(&call, kept.oid, "Happy", -1).unwrap_err();
        assert_eq!(
            unknown.message,
            "invalid input value for enum mood: \"Happy\""
        );
        let array = array_of(kept.oid);
        assert_eq!((category(array), element_of(array)), (b'A', Some(kept.oid)));
        assert_eq!(format_type(array, -1), "mood[]");
        let text = "{happy,\"so \\\"so\\\"\",NULL,sad}";
        let all = input(&call, array, text, -1).unwrap();
        assert_eq!(to_text(&call, array, &all).unwrap(), text);
    }

    #[test]
    fn rows_are_read_by_their_columns() {
        let kept = register(UserType {
            oid: Class::Composite.number(9),
            name: Arc::from("pair"),
            kind: Kind::Composite(Columns {
                names: Arc::new([Arc::from("a"), Arc::from("b")]),
                types: Arc::new([ids::INT4, ids::TEXT]),
                modifiers: Arc::new([-1, -1]),
                kept: Arc::new([true, true]),
            }),
        });
        let plain = Plain::default();
        let call = Call::new(&plain, &[], 0);
        let row = input(&call, kept.oid, "(7,\"x y\")", -1).unwrap();
        assert_eq!(to_text(&call, kept.oid, &row).unwrap(), "(7,\"x y\")");
        let mut bytes = Vec::new();
        crate::types::send(&call, kept.oid, &row, &mut bytes).unwrap();
        let back = crate::types::receive(&call, kept.oid, &bytes, -1).unwrap();
        assert_eq!(
            compare(kept.oid, &row, &back),
            Ok(std::cmp::Ordering::Equal)
        );
        let error = input(&call, kept.oid, "(7)", -1).unwrap_err();
        assert_eq!(error.message, "malformed record literal: \"(7)\"");
        let rows = input(&call, array_of(kept.oid), "{\"(1,)\"}", -1).unwrap();
        assert_eq!(
            to_text(&call, array_of(kept.oid), &rows).unwrap(),
            "{\"(1,)\"}"
        );
    }

    #[test]
    fn a_meaning_ends_with_who_told_it() {
        let kept = register(mood(8));
        assert!(Arc::ptr_eq(&kept, &register(mood(8))));
        let oid = kept.oid;
        let renamed = UserType {
            name: Arc::from("Mood"),
            ..mood(8)
        };
        let renamed = register(renamed);
        assert_eq!(format_type(oid, -1), "\"Mood\"");
        drop(renamed);
        assert_eq!(format_type(oid, -1), "mood");
        drop(kept);
        assert!(by_oid(oid).is_none());
    }

    #[test]
    fn numbers_say_their_class() {
        let number = Class::Enum.number(u32::MAX);
        assert!(NUMBERS.contains(&number));
        assert_eq!(Class::of(number), Some(Class::Enum));
        assert_eq!(array(number).and_then(element), Some(number));
        assert_eq!((Class::of(number + 1), element(number)), (None, None));
        assert_eq!((Class::of(25), element(1009)), (None, None));
        let domain = Class::Domain.number(u32::MAX);
        assert!(
            super::super::domain::is_domain(domain) && !super::super::domain::is_domain(number)
        );
        let rows = ROW_TYPES | 20_000;
        assert_eq!(Class::of(rows), Some(Class::Composite));
        assert_eq!((array(rows), element(rows + 1)), (Some(0), None));
    }
}
