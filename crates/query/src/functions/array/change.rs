//! Arrays made of others: longer, shorter, filled, with other elements.

use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::functions::record::stored_size;
use crate::types::array::{self, Array, BYTES_MAX, DIMENSIONS_MAX, Equality};
use crate::types::{element_of, format_type};

/// The elements' type of the call's result.
fn element_type(call: &Call<'_>, element: usize) -> u32 {
    element_of(call.result).unwrap_or_else(|| call.arguments.get(element).copied().unwrap_or(0))
}

/// The bounds of an array of one dimension that gets one more element, and a
/// copy of its elements with room for it at the end.
fn longer(call: &Call<'_>, array: &Datum, element: usize) -> Result<Array> {
    let Datum::Array(array) = array else {
        return Ok(Array::empty(element_type(call, element)));
    };
    if array.dimensions.len() > 1 {
        return Err(QueryError::new(
            "22000",
            "argument must be empty or one-dimensional array",
        ));
    }
    let items = array.elements.len().saturating_add(1);
    array::room(call, items)?;
    Ok(Array {
        element: array.element,
        dimensions: array.dimensions.clone(),
        elements: Vec::with_capacity(items),
    })
}

#[cold]
fn integer_out_of_range() -> QueryError {
    QueryError::out_of_range("integer")
}

pub(super) fn array_append(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let mut result = longer(call, &arguments[0], 1)?;
    match result.dimensions.first_mut() {
        None => result.dimensions.push((1, 1)),
        Some((length, lower)) => {
            lower
                .checked_add(*length)
                .ok_or_else(integer_out_of_range)?;
            *length = length.checked_add(1).ok_or_else(array::too_many)?;
            array::check_bounds(&result.dimensions)?;
        }
    }
    if let Datum::Array(array) = &arguments[0] {
        result.elements.extend_from_slice(&array.elements);
    }
    result.elements.push(arguments[1].clone());
    Ok(Datum::Array(result.into()))
}

pub(super) fn array_prepend(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let mut result = longer(call, &arguments[1], 0)?;
    match result.dimensions.first_mut() {
        None => result.dimensions.push((1, 1)),
        Some((length, lower)) => {
            lower.checked_sub(1).ok_or_else(integer_out_of_range)?;
            *length = length.checked_add(1).ok_or_else(array::too_many)?;
        }
    }
    result.elements.push(arguments[0].clone());
    if let Datum::Array(array) = &arguments[1] {
        result.elements.extend_from_slice(&array.elements);
    }
    Ok(Datum::Array(result.into()))
}

pub(super) fn array_cat(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let (a, b) = match (&arguments[0], &arguments[1]) {
        (Datum::Array(a), Datum::Array(b)) => (a, b),
        (Datum::Null, other) | (other, _) => return Ok(other.clone()),
    };
    let incompatible = |detail: String| {
        QueryError::new("2202E", "cannot concatenate incompatible arrays").with_detail(detail)
    };
    if a.element != b.element {
        return Err(
            QueryError::new("42804", "cannot concatenate incompatible arrays").with_detail(
                format!(
                    "Arrays with element types {} and {} are not compatible for concatenation.",
                    format_type(a.element, -1),
                    format_type(b.element, -1)
                ),
            ),
        );
    }
    if a.dimensions.is_empty() && !b.dimensions.is_empty() {
        return Ok(arguments[1].clone());
    }
    if b.dimensions.is_empty() {
        return Ok(arguments[0].clone());
    }
    let (depth_a, depth_b) = (a.dimensions.len(), b.dimensions.len());
    let mut dimensions;
    if depth_a == depth_b {
        if a.dimensions[1..] != b.dimensions[1..] {
            return Err(incompatible(
                "Arrays with differing element dimensions are not compatible for concatenation."
                    .to_owned(),
            ));
        }
        dimensions = a.dimensions.clone();
        dimensions[0].0 = dimensions[0].0.wrapping_add(b.dimensions[0].0);
    } else {
        let (inner, outer) = if depth_a < depth_b { (a, b) } else { (b, a) };
        if inner.dimensions.len() + 1 != outer.dimensions.len() {
            return Err(incompatible(format!(
                "Arrays of {depth_a} and {depth_b} dimensions are not compatible for concatenation."
            )));
        }
        if inner.dimensions != outer.dimensions[1..] {
            return Err(incompatible(
                "Arrays with differing dimensions are not compatible for concatenation.".to_owned(),
            ));
        }
        dimensions = outer.dimensions.clone();
        dimensions[0].0 = dimensions[0].0.wrapping_add(1);
    }
    let items = array::count(&dimensions)?;
    array::check_bounds(&dimensions)?;
    array::room(call, items)?;
    let mut elements = Vec::with_capacity(items);
    elements.extend_from_slice(&a.elements);
    elements.extend_from_slice(&b.elements);
    Ok(Datum::Array(
        Array {
            element: a.element,
            dimensions,
            elements,
        }
        .into(),
    ))
}

/// Removes the elements that are not distinct from `search`, or replaces them.
fn replace(
    call: &Call<'_>,
    value: &Datum,
    search: &Datum,
    replacement: Option<&Datum>,
) -> Result<Datum> {
    let Datum::Array(array) = value else {
        return Ok(Datum::Null);
    };
    if array.elements.is_empty() {
        return Ok(value.clone());
    }
    if replacement.is_none() && array.dimensions.len() > 1 {
        return Err(QueryError::unsupported(
            "removing elements from multidimensional arrays is not supported",
            "Unnest the array, and gather what is left with array_agg.",
        ));
    }
    let equality = Equality::of(array.element)?;
    array::room(call, array.elements.len())?;
    let mut elements = Vec::with_capacity(array.elements.len());
    let mut changed = false;
    for (number, element) in array.elements.iter().enumerate() {
        if number % 4096 == 4095 {
            call.environment.check_interrupted()?;
        }
        let same = match (element, search) {
            (Datum::Null, Datum::Null) => true,
            (Datum::Null, _) | (_, Datum::Null) => false,
            (element, search) => equality.test(element, search)?,
        };
        if !same {
            elements.push(element.clone());
            continue;
        }
        changed = true;
        if let Some(replacement) = replacement {
            elements.push(replacement.clone());
        }
    }
    if !changed {
        return Ok(value.clone());
    }
    if elements.is_empty() {
        return Ok(Datum::Array(Array::empty(array.element).into()));
    }
    let mut dimensions = array.dimensions.clone();
    if replacement.is_none()
        && let Some((length, _)) = dimensions.first_mut()
    {
        *length = i32::try_from(elements.len()).unwrap_or(i32::MAX);
    }
    Ok(Datum::Array(
        Array {
            element: array.element,
            dimensions,
            elements,
        }
        .into(),
    ))
}

pub(super) fn array_remove(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    replace(call, &arguments[0], &arguments[1], None)
}

pub(super) fn array_replace(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    replace(call, &arguments[0], &arguments[1], Some(&arguments[2]))
}

#[cold]
fn no_dimensions() -> QueryError {
    QueryError::new("22004", "dimension array or low bound array cannot be null")
}

#[cold]
fn wrong_subscripts(detail: &str) -> QueryError {
    QueryError::new("2202E", "wrong number of array subscripts").with_detail(detail)
}

/// The numbers of an array of one dimension.
fn numbers(array: &Array) -> Result<Vec<i32>> {
    if array.dimensions.len() > 1 {
        return Err(wrong_subscripts("Dimension array must be one dimensional."));
    }
    array
        .elements
        .iter()
        .map(|value| match value {
            Datum::Int4(value) => Ok(*value),
            _ => Err(QueryError::new("22004", "dimension values cannot be null")),
        })
        .collect()
}

fn fill(call: &Call<'_>, value: &Datum, lengths: &Array, lower: Option<&Array>) -> Result<Datum> {
    let element = element_type(call, 0);
    let lengths = numbers(lengths)?;
    if lengths.len() > DIMENSIONS_MAX {
        return Err(array::too_many_dimensions(lengths.len()));
    }
    let lower = match lower {
        None => vec![1; lengths.len()],
        Some(lower) => {
            let lower = numbers(lower)?;
            if lower.len() != lengths.len() {
                return Err(wrong_subscripts(
                    "Low bound array has different size than dimensions array.",
                ));
            }
            lower
        }
    };
    let dimensions: Vec<(i32, i32)> = lengths.into_iter().zip(lower).collect();
    let items = array::count(&dimensions)?;
    array::check_bounds(&dimensions)?;
    if items == 0 {
        return Ok(Datum::Array(Array::empty(element).into()));
    }
    if !value.is_null() {
        let bytes = stored_size(call, element, value)?.next_multiple_of(4);
        if bytes.saturating_mul(items) > BYTES_MAX {
            return Err(QueryError::new(
                "54000",
                format!("array size exceeds the maximum allowed ({BYTES_MAX})"),
            ));
        }
    }
    array::room(call, items)?;
    Ok(Datum::Array(
        Array {
            element,
            dimensions,
            elements: vec![value.clone(); items],
        }
        .into(),
    ))
}

pub(super) fn array_fill(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let Datum::Array(lengths) = &arguments[1] else {
        return Err(no_dimensions());
    };
    fill(call, &arguments[0], lengths, None)
}

pub(super) fn array_fill_with_lower_bounds(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let (Datum::Array(lengths), Datum::Array(lower)) = (&arguments[1], &arguments[2]) else {
        return Err(no_dimensions());
    };
    fill(call, &arguments[0], lengths, Some(lower))
}

pub(super) fn trim_array(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let (array, count) = (arguments[0].as_array(), arguments[1].as_int4());
    let length = array.length();
    if count < 0 || count > length {
        return Err(QueryError::new(
            "2202E",
            format!("number of elements to trim must be between 0 and {length}"),
        ));
    }
    let lower = array.dimensions.first().map_or(1, |(_, lower)| *lower);
    let upper = lower
        .wrapping_add(length)
        .wrapping_sub(count)
        .wrapping_sub(1);
    let result = array::slice(call, array, &[(None, Some(upper))])?;
    Ok(Datum::Array(result.into()))
}
