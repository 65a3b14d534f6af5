//! Functions and operators of ranges.
//!
//! | module | functions |
//! |---|---|
//! | `compare` | how two ranges, or a range and a value, lie to each other |
//! | `combine` | ranges of two ranges, and `range_intersect_agg` |

mod combine;
mod compare;

use std::ops::Bound;

use super::Function;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::ids;
use crate::types::range::{Ends, Range, bound, value};

pub(super) use combine::INTERSECT_AGGREGATE;

/// Both operands of an operator of two ranges.
const TWO: &[u32] = &[ids::ANYRANGE, ids::ANYRANGE];

/// A function that says something of one range.
const fn asks(
    oid: u32,
    name: &'static str,
    body: fn(&Call<'_>, &[Datum]) -> Result<Datum>,
) -> Function {
    Function::row(oid, name, &[ids::ANYRANGE], ids::BOOL, body)
}

/// A function that compares two ranges.
const fn compares(
    oid: u32,
    name: &'static str,
    body: fn(&Call<'_>, &[Datum]) -> Result<Datum>,
) -> Function {
    Function::row(oid, name, TWO, ids::BOOL, body)
}

/// A function that makes one range of two.
const fn combines(
    oid: u32,
    name: &'static str,
    body: fn(&Call<'_>, &[Datum]) -> Result<Datum>,
) -> Function {
    Function::row(oid, name, TWO, ids::ANYRANGE, body)
}

/// A function that makes a range of two ends, with or without what says whether they are in it.
const fn makes(oid: u32, name: &'static str, arguments: &'static [u32], result: u32) -> Function {
    Function::row(oid, name, arguments, result, make).called_on_null()
}

/// The functions of this folder.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    makes(3840, "int4range", &[ids::INT4, ids::INT4], ids::INT4RANGE),
    makes(3841, "int4range", &[ids::INT4, ids::INT4, ids::TEXT], ids::INT4RANGE),
    makes(3844, "numrange", &[ids::NUMERIC, ids::NUMERIC], ids::NUMRANGE),
    makes(3845, "numrange", &[ids::NUMERIC, ids::NUMERIC, ids::TEXT], ids::NUMRANGE),
    makes(3933, "tsrange", &[ids::TIMESTAMP, ids::TIMESTAMP], ids::TSRANGE),
    makes(3934, "tsrange", &[ids::TIMESTAMP, ids::TIMESTAMP, ids::TEXT], ids::TSRANGE),
    makes(3937, "tstzrange", &[ids::TIMESTAMPTZ, ids::TIMESTAMPTZ], ids::TSTZRANGE),
    makes(3938, "tstzrange", &[ids::TIMESTAMPTZ, ids::TIMESTAMPTZ, ids::TEXT], ids::TSTZRANGE),
    makes(3941, "daterange", &[ids::DATE, ids::DATE], ids::DATERANGE),
    makes(3942, "daterange", &[ids::DATE, ids::DATE, ids::TEXT], ids::DATERANGE),
    makes(3945, "int8range", &[ids::INT8, ids::INT8], ids::INT8RANGE),
    makes(3946, "int8range", &[ids::INT8, ids::INT8, ids::TEXT], ids::INT8RANGE),
    Function::row(3848, "lower", &[ids::ANYRANGE], ids::ANYELEMENT, |_, a| Ok(end(&a[0], lower))),
    Function::row(3849, "upper", &[ids::ANYRANGE], ids::ANYELEMENT, |_, a| Ok(end(&a[0], upper))),
    asks(3850, "isempty", |_, a| Ok(Datum::Bool(a[0].as_range().ends.is_none()))),
    asks(3851, "lower_inc", |_, a| ask(&a[0], lower, |end| matches!(end, Bound::Included(_)))),
    asks(3852, "upper_inc", |_, a| ask(&a[0], upper, |end| matches!(end, Bound::Included(_)))),
    asks(3853, "lower_inf", |_, a| ask(&a[0], lower, |end| matches!(end, Bound::Unbounded))),
    asks(3854, "upper_inf", |_, a| ask(&a[0], upper, |end| matches!(end, Bound::Unbounded))),
    compares(3855, "range_eq", compare::eq),
    compares(3856, "range_ne", compare::ne),
    compares(3857, "range_overlaps", compare::overlaps),
    Function::row(3858, "range_contains_elem", &[ids::ANYRANGE, ids::ANYELEMENT], ids::BOOL, compare::contains_element),
    compares(3859, "range_contains", compare::contains),
    Function::row(3860, "elem_contained_by_range", &[ids::ANYELEMENT, ids::ANYRANGE], ids::BOOL, compare::element_contained_by),
    compares(3861, "range_contained_by", compare::contained_by),
    compares(3862, "range_adjacent", compare::adjacent),
    compares(3863, "range_before", compare::before),
    compares(3864, "range_after", compare::after),
    compares(3865, "range_overleft", compare::over_left),
    compares(3866, "range_overright", compare::over_right),
    combines(3867, "range_union", combine::union),
    combines(3868, "range_intersect", combine::intersect),
    combines(3869, "range_minus", combine::minus),
    Function::row(3870, "range_cmp", TWO, ids::INT4, compare::cmp),
    compares(3871, "range_lt", compare::lt),
    compares(3872, "range_le", compare::le),
    compares(3873, "range_ge", compare::ge),
    compares(3874, "range_gt", compare::gt),
    combines(4057, "range_merge", combine::merge),
    // Ranges are always in their one form.
    Function::row(3914, "int4range_canonical", &[ids::INT4RANGE], ids::INT4RANGE, |_, a| Ok(a[0].clone())),
    Function::row(3915, "daterange_canonical", &[ids::DATERANGE], ids::DATERANGE, |_, a| Ok(a[0].clone())),
    Function::row(3928, "int8range_canonical", &[ids::INT8RANGE], ids::INT8RANGE, |_, a| Ok(a[0].clone())),
];

const fn lower(ends: &Ends) -> &Bound<Datum> {
    &ends.lower
}

const fn upper(ends: &Ends) -> &Bound<Datum> {
    &ends.upper
}

/// The value of an end; NULL for one that is missing, and of an empty range.
fn end(range: &Datum, which: fn(&Ends) -> &Bound<Datum>) -> Datum {
    let ends = range.as_range().ends.as_ref();
    ends.and_then(|ends| value(which(ends)).cloned())
        .unwrap_or_default()
}

/// Whether an end is such a one; of an empty range none is.
fn ask(
    range: &Datum,
    which: fn(&Ends) -> &Bound<Datum>,
    is: fn(&Bound<Datum>) -> bool,
) -> Result<Datum> {
    let ends = range.as_range().ends.as_ref();
    Ok(Datum::Bool(ends.is_some_and(|ends| is(which(ends)))))
}

/// Whether the lower and the upper end are in the range, by the constructors' last argument.
fn flags(text: &str) -> Result<(bool, bool)> {
    match text {
        "[]" => Ok((true, true)),
        "[)" => Ok((true, false)),
        "(]" => Ok((false, true)),
        "()" => Ok((false, false)),
        _ => Err(QueryError::new("42601", "invalid range bound flags")
            .with_hint("Valid values are \"[]\", \"[)\", \"(]\", and \"()\".")),
    }
}

/// A range of its ends: NULL for one that is missing.
fn make(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let (with_lower, with_upper) = match arguments.get(2) {
        None => (true, false),
        Some(Datum::Null) => {
            return Err(QueryError::new(
                "22000",
                "range constructor flags argument must not be null",
            ));
        }
        Some(text) => flags(text.as_text())?,
    };
    let element = call.arguments.first().copied().unwrap_or(0);
    let range = Range::new(
        element,
        bound(arguments[0].clone(), with_lower),
        bound(arguments[1].clone(), with_upper),
    )?;
    Ok(Datum::Range(range.into()))
}

#[cfg(test)]
mod tests;
