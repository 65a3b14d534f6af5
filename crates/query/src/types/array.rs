//! Arrays of any type: their order, equality and making. Their text and
//! binary forms and their subscripts are in the files of `array/`.

mod binary;
pub mod subscript;
mod text;

use std::cmp::Ordering;

use super::{Element, Type, ids};
use crate::call::{Call, SMALL_VALUE_BYTES};
use crate::datum::Datum;
use crate::error::{QueryError, Result};

pub(super) use binary::{Message, send_value};
pub(super) use binary::{receive, send};
pub use subscript::{get, set, set_slice, slice};
pub(super) use text::{input, output};

/// The most dimensions of an array.
pub const DIMENSIONS_MAX: usize = 6;
/// The most elements of an array.
pub const ITEMS_MAX: usize = 134_217_727;
/// The most bytes of an array's elements as PostgreSQL stores them.
pub const BYTES_MAX: usize = crate::call::VALUE_BYTES_MAX;

/// An array: its elements in row-major order.
#[derive(Clone, Debug, Default)]
pub struct Array {
    /// The number of the elements' type.
    pub element: u32,
    /// Length and lower bound of each dimension; none for an empty array.
    pub dimensions: Vec<(i32, i32)>,
    /// The elements.
    pub elements: Vec<Datum>,
}

impl Array {
    /// An array of one dimension, from 1.
    #[must_use]
    pub fn of(element: u32, elements: Vec<Datum>) -> Self {
        let dimensions = match elements.len() {
            0 => Vec::new(),
            length => vec![(i32::try_from(length).unwrap_or(i32::MAX), 1)],
        };
        Self {
            element,
            dimensions,
            elements,
        }
    }

    /// An array without elements.
    #[must_use]
    pub const fn empty(element: u32) -> Self {
        Self {
            element,
            dimensions: Vec::new(),
            elements: Vec::new(),
        }
    }

    /// Whether an element is NULL.
    #[must_use]
    pub fn has_null(&self) -> bool {
        self.elements.iter().any(Datum::is_null)
    }

    /// The first dimension's length; 0 for an empty array.
    #[must_use]
    pub fn length(&self) -> i32 {
        self.dimensions.first().map_or(0, |(length, _)| *length)
    }
}

/// How many elements an array of these dimensions has.
///
/// # Errors
/// 54000 beyond [`ITEMS_MAX`].
pub fn count(dimensions: &[(i32, i32)]) -> Result<usize> {
    let mut items = usize::from(!dimensions.is_empty());
    for (length, _) in dimensions {
        let product = usize::try_from(*length)
            .ok()
            .and_then(|length| items.checked_mul(length));
        match product {
            // PostgreSQL looks at each product on its way for what a machine word holds.
            Some(product) if product <= i32::MAX as usize => items = product,
            _ => return Err(too_many()),
        }
    }
    if items > ITEMS_MAX {
        return Err(too_many());
    }
    Ok(items)
}

/// Checks that each dimension's upper bound is a subscript.
///
/// # Errors
/// 54000
pub fn check_bounds(dimensions: &[(i32, i32)]) -> Result<()> {
    for (length, lower) in dimensions {
        if length.checked_add(*lower).is_none() {
            return Err(QueryError::new(
                "54000",
                format!("array lower bound is too large: {lower}"),
            ));
        }
    }
    Ok(())
}

/// Asks for room for this many elements.
///
/// # Errors
/// 54000 beyond [`ITEMS_MAX`], 53200 where there is no room.
pub fn room(call: &Call<'_>, items: usize) -> Result<()> {
    if items > ITEMS_MAX {
        return Err(too_many());
    }
    let bytes = items.saturating_mul(size_of::<Datum>());
    if bytes > SMALL_VALUE_BYTES {
        call.environment.room(bytes)?;
    }
    Ok(())
}

#[cold]
pub(crate) fn too_many() -> QueryError {
    QueryError::new(
        "54000",
        format!("array size exceeds the maximum allowed ({ITEMS_MAX})"),
    )
}

#[cold]
pub(crate) fn too_many_dimensions(dimensions: usize) -> QueryError {
    QueryError::new(
        "54000",
        format!(
            "number of array dimensions ({dimensions}) exceeds the maximum allowed ({DIMENSIONS_MAX})"
        ),
    )
}

#[cold]
fn subscript_error(message: &str) -> QueryError {
    QueryError::new("2202E", message)
}

/// An array of arrays: `ARRAY[[…], […]]`, of parts that are arrays or NULL.
///
/// # Errors
/// 2202E where the parts differ in their dimensions, 54000 where they are too
/// many, 42804 where their elements are of another type.
pub fn construct(call: &Call<'_>, element: u32, parts: &[Datum]) -> Result<Array> {
    let mismatch = || {
        subscript_error(
            "multidimensional arrays must have array expressions with matching dimensions",
        )
    };
    let mut first: Option<&Array> = None;
    let (mut empty, mut outer, mut items) = (false, 0_i32, 0_usize);
    for part in parts {
        let Datum::Array(array) = part else {
            empty = true;
            continue;
        };
        if array.element != element {
            return Err(
                QueryError::new("42804", "cannot merge incompatible arrays").with_detail(format!(
                    "Array with element type {} cannot be included in ARRAY construct with element type {}.",
                    super::format_type(array.element, -1),
                    super::format_type(element, -1),
                )),
            );
        }
        if array.dimensions.is_empty() {
            empty = true;
            continue;
        }
        match first {
            None => {
                if array.dimensions.len() >= DIMENSIONS_MAX {
                    return Err(too_many_dimensions(array.dimensions.len() + 1));
                }
                first = Some(array);
            }
            Some(first) if first.dimensions != array.dimensions => return Err(mismatch()),
            Some(_) => {}
        }
        outer = outer.saturating_add(1);
        items = items.saturating_add(array.elements.len());
    }
    let Some(first) = first else {
        return Ok(Array::empty(element));
    };
    if empty {
        return Err(mismatch());
    }
    let mut dimensions = vec![(outer, 1)];
    dimensions.extend_from_slice(&first.dimensions);
    count(&dimensions)?;
    check_bounds(&dimensions)?;
    room(call, items)?;
    let mut elements = Vec::with_capacity(items);
    for part in parts {
        elements.extend_from_slice(&part.as_array().elements);
    }
    Ok(Array {
        element,
        dimensions,
        elements,
    })
}

/// How two elements are found equal.
#[derive(Clone, Copy)]
pub enum Equality {
    /// By the type's order.
    Order(fn(&Datum, &Datum) -> Ordering),
    /// As numbers of a type that has no order.
    Number,
    /// Column by column.
    Record,
    /// Element by element.
    Array,
}

impl Equality {
    /// How values of this type are found equal.
    ///
    /// # Errors
    /// 42883 where they can't be.
    pub fn of(oid: u32) -> Result<Self> {
        match super::by_oid(oid) {
            Some(Type {
                compare: Some(compare),
                ..
            }) => Ok(Self::Order(*compare)),
            Some(row) if row.oid == ids::RECORD => Ok(Self::Record),
            Some(_) if matches!(oid, ids::XID | ids::CID) => Ok(Self::Number),
            Some(row) if row.element != 0 && row.category == b'A' => Ok(Self::Array),
            None if super::element_of(oid).is_some() => Ok(Self::Array),
            _ => Err(QueryError::new(
                "42883",
                format!(
                    "could not identify an equality operator for type {}",
                    super::format_type(oid, -1)
                ),
            )),
        }
    }

    /// Whether two values that are not NULL are equal.
    ///
    /// # Errors
    /// Of columns or elements that can't be compared.
    #[inline]
    pub fn test(self, a: &Datum, b: &Datum) -> Result<bool> {
        match self {
            Self::Order(compare) => Ok(compare(a, b) == Ordering::Equal),
            Self::Number => Ok(matches!((a, b), (Datum::Oid(a), Datum::Oid(b)) if a == b)),
            Self::Record => super::record::equal(a, b),
            Self::Array => equal(a, b),
        }
    }
}

#[cold]
pub(crate) fn different_elements() -> QueryError {
    QueryError::new("42804", "cannot compare arrays of different element types")
}

/// Whether two arrays are equal: bounds and elements; NULLs are equal to each other.
///
/// # Errors
/// 42883 where the elements can't be compared.
pub fn equal(a: &Datum, b: &Datum) -> Result<bool> {
    let (a, b) = (a.as_array(), b.as_array());
    if a.element != b.element {
        return Err(different_elements());
    }
    if a.dimensions != b.dimensions {
        return Ok(false);
    }
    let equality = Equality::of(a.element)?;
    for (a, b) in a.elements.iter().zip(&b.elements) {
        let same = match (a, b) {
            (Datum::Null, Datum::Null) => true,
            (Datum::Null, _) | (_, Datum::Null) => false,
            (a, b) => equality.test(a, b)?,
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The order of two arrays: by their first elements that differ, then their
/// number, then dimensions and bounds. NULL is the largest element.
pub(super) fn compare(element: Element, a: &Datum, b: &Datum) -> Result<Ordering> {
    let (a, b) = (a.as_array(), b.as_array());
    if a.element != b.element {
        return Err(different_elements());
    }
    let row = element.row;
    if row.compare.is_none() && row.oid != ids::RECORD && row.element == 0 {
        return Err(super::without_order(element.oid));
    }
    for (a, b) in a.elements.iter().zip(&b.elements) {
        let order = match (a, b) {
            (Datum::Null, Datum::Null) => Ordering::Equal,
            (Datum::Null, _) => Ordering::Greater,
            (_, Datum::Null) => Ordering::Less,
            (a, b) => match row.compare {
                Some(compare) => compare(a, b),
                None if row.element != 0 => order(a, b)?,
                None => super::compare(element.oid, a, b)?,
            },
        };
        if order.is_ne() {
            return Ok(order);
        }
    }
    let lengths = |array: &Array| array.dimensions.iter().map(|d| d.0).collect::<Vec<_>>();
    let bounds = |array: &Array| array.dimensions.iter().map(|d| d.1).collect::<Vec<_>>();
    Ok(a.elements
        .len()
        .cmp(&b.elements.len())
        .then_with(|| a.dimensions.len().cmp(&b.dimensions.len()))
        .then_with(|| lengths(a).cmp(&lengths(b)))
        .then_with(|| bounds(a).cmp(&bounds(b))))
}

/// The order of two arrays, by the type of elements that they know themselves.
///
/// # Errors
/// 42883 where the elements have no order, 42804 where they differ in type.
pub fn order(a: &Datum, b: &Datum) -> Result<Ordering> {
    let element = a.as_array().element;
    match Element::new(element) {
        Some(element) => compare(element, a, b),
        None => Err(super::unknown(element)),
    }
}

/// Fits every element to the modifier.
pub(super) fn fit(
    call: &Call<'_>,
    element: Element,
    value: &Datum,
    modifier: i32,
    explicit: bool,
) -> Result<Datum> {
    let (Some(fit), Datum::Array(array)) = (element.row.fit, value) else {
        return Ok(value.clone());
    };
    room(call, array.elements.len())?;
    let mut elements = Vec::with_capacity(array.elements.len());
    for value in &array.elements {
        elements.push(match value {
            Datum::Null => Datum::Null,
            value => fit(call, value, modifier, explicit)?,
        });
    }
    Ok(Datum::Array(
        Array {
            element: array.element,
            dimensions: array.dimensions.clone(),
            elements,
        }
        .into(),
    ))
}
