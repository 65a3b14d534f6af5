//! Subscripts: `a[1]`, `a[1:2]`, and assignment to them.

use super::{Array, DIMENSIONS_MAX, check_bounds, count, room, subscript_error, too_many};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::Result;

/// The place of an element among all.
fn offset(dimensions: &[(i32, i32)], subscripts: &[i32]) -> Option<usize> {
    let mut place = 0_usize;
    for ((length, lower), subscript) in dimensions.iter().zip(subscripts) {
        let index = i64::from(*subscript) - i64::from(*lower);
        if index < 0 || index >= i64::from(*length) {
            return None;
        }
        place = place
            .checked_mul(usize::try_from(*length).ok()?)?
            .checked_add(usize::try_from(index).ok()?)?;
    }
    Some(place)
}

/// The element at these subscripts; NULL where there is none.
#[must_use]
pub fn get(array: &Array, subscripts: &[i32]) -> Datum {
    if array.dimensions.is_empty() || array.dimensions.len() != subscripts.len() {
        return Datum::Null;
    }
    offset(&array.dimensions, subscripts)
        .and_then(|place| array.elements.get(place))
        .cloned()
        .unwrap_or_default()
}

/// The upper bound of a dimension.
const fn upper_of((length, lower): (i32, i32)) -> i32 {
    // Both passed `check_bounds`.
    lower.wrapping_add(length).wrapping_sub(1)
}

/// The places of all elements of a box within an array, in order.
fn places(dimensions: &[(i32, i32)], bounds: &[(i32, i32)], mut take: impl FnMut(usize)) {
    let mut at: Vec<i32> = bounds.iter().map(|(lower, _)| *lower).collect();
    loop {
        if let Some(place) = offset(dimensions, &at) {
            take(place);
        }
        let mut level = bounds.len();
        loop {
            let Some(next) = level.checked_sub(1) else {
                return;
            };
            level = next;
            if at[level] < bounds[level].1 {
                at[level] += 1;
                break;
            }
            at[level] = bounds[level].0;
        }
    }
}

/// The elements between bounds: `a[1:2][:3]`, a lower and an upper bound for
/// each subscript; `None` stands for the array's own. Bounds begin at 1 again.
///
/// # Errors
/// 53200 where there is no room.
pub fn slice(
    call: &Call<'_>,
    array: &Array,
    subscripts: &[(Option<i32>, Option<i32>)],
) -> Result<Array> {
    if array.dimensions.is_empty() || array.dimensions.len() < subscripts.len() {
        return Ok(Array::empty(array.element));
    }
    let mut bounds = Vec::with_capacity(array.dimensions.len());
    for (level, dimension) in array.dimensions.iter().enumerate() {
        let own = (dimension.1, upper_of(*dimension));
        let (lower, upper) = subscripts.get(level).copied().unwrap_or_default();
        let bound = (
            lower.map_or(own.0, |lower| lower.max(own.0)),
            upper.map_or(own.1, |upper| upper.min(own.1)),
        );
        if bound.0 > bound.1 {
            return Ok(Array::empty(array.element));
        }
        bounds.push(bound);
    }
    let dimensions: Vec<_> = bounds
        .iter()
        .map(|(lower, upper)| (upper.wrapping_sub(*lower).wrapping_add(1), 1))
        .collect();
    let items = count(&dimensions)?;
    room(call, items)?;
    let elements = if let ([(lower, _)], [(_, first)]) = (&bounds[..], &array.dimensions[..]) {
        let from = usize::try_from(i64::from(*lower) - i64::from(*first)).unwrap_or(0);
        array
            .elements
            .get(from..from.saturating_add(items))
            .unwrap_or_default()
            .to_vec()
    } else {
        let mut elements = Vec::with_capacity(items);
        places(&array.dimensions, &bounds, |place| {
            elements.push(array.elements.get(place).cloned().unwrap_or_default());
        });
        elements
    };
    Ok(Array {
        element: array.element,
        dimensions,
        elements,
    })
}

/// Makes a one-dimensional array reach from `lower` to `upper`, with NULLs between.
fn extend(call: &Call<'_>, array: &mut Array, lower: i32, upper: i32) -> Result<()> {
    let Some((length, first)) = array.dimensions.first_mut() else {
        return Ok(());
    };
    let (mut before, mut after) = (0, 0);
    if lower < *first {
        before = first.checked_sub(lower).ok_or_else(too_many)?;
        *length = length.checked_add(before).ok_or_else(too_many)?;
        *first = lower;
    }
    let end = first.wrapping_add(*length);
    if upper >= end {
        after = upper
            .checked_sub(end)
            .and_then(|after| after.checked_add(1))
            .ok_or_else(too_many)?;
        *length = length.checked_add(after).ok_or_else(too_many)?;
    }
    let items = count(&array.dimensions)?;
    check_bounds(&array.dimensions)?;
    if before > 0 {
        room(call, items)?;
        let before = usize::try_from(before).unwrap_or(0);
        array
            .elements
            .splice(..0, std::iter::repeat_n(Datum::Null, before));
    }
    if after > 0 {
        if items > array.elements.capacity() {
            room(call, items)?;
        }
        array.elements.resize(items, Datum::Null);
    }
    Ok(())
}

/// The array with another element: `a[1] = …`. An array of one dimension
/// grows where the subscript lies outside; an empty one takes the subscripts
/// for its bounds.
///
/// # Errors
/// 2202E for wrong subscripts, 54000 for an array that were too large.
pub fn set(call: &Call<'_>, mut array: Array, subscripts: &[i32], value: Datum) -> Result<Array> {
    if subscripts.is_empty() || subscripts.len() > DIMENSIONS_MAX {
        return Err(subscript_error("wrong number of array subscripts"));
    }
    if array.dimensions.is_empty() {
        array.dimensions = subscripts.iter().map(|lower| (1, *lower)).collect();
        check_bounds(&array.dimensions)?;
        array.elements = vec![value];
        return Ok(array);
    }
    if array.dimensions.len() != subscripts.len() {
        return Err(subscript_error("wrong number of array subscripts"));
    }
    if let [subscript] = subscripts {
        extend(call, &mut array, *subscript, *subscript)?;
    }
    let place = offset(&array.dimensions, subscripts)
        .and_then(|place| array.elements.get_mut(place))
        .ok_or_else(|| subscript_error("array subscript out of range"))?;
    *place = value;
    Ok(array)
}

/// The array with other elements between bounds: `a[1:2] = …`. The source's
/// elements are taken in order, whatever its shape.
///
/// # Errors
/// 2202E for wrong subscripts or too few elements, 54000 for an array that were too large.
pub fn set_slice(
    call: &Call<'_>,
    mut array: Array,
    subscripts: &[(Option<i32>, Option<i32>)],
    source: &Array,
) -> Result<Array> {
    let too_small = || subscript_error("source array too small");
    if array.dimensions.is_empty() {
        let mut dimensions = Vec::with_capacity(subscripts.len());
        for bounds in subscripts {
            let (Some(lower), Some(upper)) = *bounds else {
                return Err(
                    subscript_error("array slice subscript must provide both boundaries")
                        .with_detail(
                            "When assigning to a slice of an empty array value, slice boundaries must be fully specified.",
                        ),
                );
            };
            let length = upper
                .checked_sub(lower)
                .and_then(|length| length.checked_add(1))
                .ok_or_else(too_many)?;
            dimensions.push((length, lower));
        }
        let items = count(&dimensions)?;
        let Some(elements) = source.elements.get(..items) else {
            return Err(too_small());
        };
        if dimensions.len() > DIMENSIONS_MAX {
            return Err(super::too_many_dimensions(dimensions.len()));
        }
        check_bounds(&dimensions)?;
        if items == 0 {
            return Ok(array);
        }
        room(call, items)?;
        array.dimensions = dimensions;
        array.elements = elements.to_vec();
        return Ok(array);
    }
    if array.dimensions.len() < subscripts.len() {
        return Err(subscript_error("wrong number of array subscripts"));
    }
    let one = array.dimensions.len() == 1;
    let mut bounds = Vec::with_capacity(array.dimensions.len());
    for (level, dimension) in array.dimensions.iter().enumerate() {
        let own = (dimension.1, upper_of(*dimension));
        let (lower, upper) = subscripts.get(level).copied().unwrap_or_default();
        let bound = (lower.unwrap_or(own.0), upper.unwrap_or(own.1));
        if bound.0 > bound.1 {
            return Err(subscript_error(
                "upper bound cannot be less than lower bound",
            ));
        }
        if !one && (bound.0 < own.0 || bound.1 > own.1) {
            return Err(subscript_error("array subscript out of range"));
        }
        bounds.push(bound);
    }
    // Whether there are enough is known before the array grows.
    let lengths: Vec<_> = bounds
        .iter()
        .map(|(lower, upper)| {
            upper
                .checked_sub(*lower)
                .and_then(|length| length.checked_add(1))
                .map(|length| (length, 1))
                .ok_or_else(too_many)
        })
        .collect::<Result<_>>()?;
    let items = count(&lengths)?;
    if items > source.elements.len() {
        return Err(too_small());
    }
    if one {
        extend(call, &mut array, bounds[0].0, bounds[0].1)?;
    }
    let mut values = source.elements.iter();
    let Array {
        dimensions,
        elements,
        ..
    } = &mut array;
    places(dimensions, &bounds, |place| {
        if let (Some(element), Some(value)) = (elements.get_mut(place), values.next()) {
            element.clone_from(value);
        }
    });
    Ok(array)
}
