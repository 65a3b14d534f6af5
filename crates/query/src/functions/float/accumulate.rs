//! The transition functions of PostgreSQL's statistics over floats, which its own regression tests
//! call: a state is an array of counts, sums and sums of squared differences (Youngs and Cramer).

use super::arithmetic::overflow;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::array::Array;
use crate::types::ids;

/// The numbers of a state.
fn state<const LENGTH: usize>(array: &Datum, caller: &str) -> Result<[f64; LENGTH]> {
    let wrong = || {
        let message = format!("{caller}: expected {LENGTH}-element float8 array");
        QueryError::new("XX000", message)
    };
    let array = array.as_array();
    let is_plain = array.dimensions.len() == 1 && array.elements.len() == LENGTH;
    if !is_plain || array.elements.iter().any(Datum::is_null) {
        return Err(wrong());
    }
    let mut numbers = [0.0; LENGTH];
    for (number, element) in numbers.iter_mut().zip(&array.elements) {
        *number = element.as_float8();
    }
    Ok(numbers)
}

fn as_array(numbers: &[f64]) -> Datum {
    let elements = numbers.iter().map(|number| Datum::Float8(*number));
    Datum::Array(Array::of(ids::FLOAT8, elements.collect()).into())
}

/// A sum that is infinite though nothing in it was.
fn checked(sum: f64, of: &[f64]) -> Result<f64> {
    match sum.is_infinite() && of.iter().all(|part| !part.is_infinite()) {
        true => Err(overflow()),
        false => Ok(sum),
    }
}

/// NaN for a sum of squares to which something infinite was added.
fn squares(sum: f64, of: &[f64]) -> Result<f64> {
    let sum = checked(sum, of)?;
    Ok(if sum.is_infinite() { f64::NAN } else { sum })
}

pub(super) fn float8_accum(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let [count, sum, sum_squares] = state::<3>(&arguments[0], "float8_accum")?;
    let value = arguments[1].as_float8();
    let (new_count, new_sum) = (count + 1.0, sum + value);
    let new_squares = if count > 0.0 {
        let off = value * new_count - new_sum;
        let squared = sum_squares + off * off / (new_count * count);
        checked(new_sum, &[sum, value])?;
        match new_sum.is_infinite() {
            true => f64::NAN,
            false => squares(squared, &[sum, value])?,
        }
    } else if value.is_finite() {
        sum_squares
    } else {
        f64::NAN
    };
    Ok(as_array(&[new_count, new_sum, new_squares]))
}

pub(super) fn float8_combine(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let left = state::<3>(&arguments[0], "float8_combine")?;
    let right = state::<3>(&arguments[1], "float8_combine")?;
    if left[0] == 0.0 {
        return Ok(as_array(&right));
    }
    if right[0] == 0.0 {
        return Ok(as_array(&left));
    }
    let count = left[0] + right[0];
    let sum = checked(left[1] + right[1], &[left[1], right[1]])?;
    let off = left[1] / left[0] - right[1] / right[0];
    let both = left[2] + right[2] + left[0] * right[0] * off * off / count;
    let sum_squares = checked(both, &[left[2], right[2]])?;
    Ok(as_array(&[count, sum, sum_squares]))
}

pub(super) fn float8_regr_accum(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let [count, sum_x, squares_x, sum_y, squares_y, products] =
        state::<6>(&arguments[0], "float8_regr_accum")?;
    let (y, x) = (arguments[1].as_float8(), arguments[2].as_float8());
    let (new_count, new_x, new_y) = (count + 1.0, sum_x + x, sum_y + y);
    let (mut new_squares_x, mut new_squares_y, mut new_products) = (squares_x, squares_y, products);
    if count > 0.0 {
        let (off_x, off_y) = (x * new_count - new_x, y * new_count - new_y);
        let scale = 1.0 / (new_count * count);
        checked(new_x, &[sum_x, x])?;
        checked(new_y, &[sum_y, y])?;
        new_squares_x = squares(squares_x + off_x * off_x * scale, &[sum_x, x])?;
        new_squares_y = squares(squares_y + off_y * off_y * scale, &[sum_y, y])?;
        new_products = squares(products + off_x * off_y * scale, &[sum_x, x, sum_y, y])?;
    } else {
        if !x.is_finite() {
            (new_squares_x, new_products) = (f64::NAN, f64::NAN);
        }
        if !y.is_finite() {
            (new_squares_y, new_products) = (f64::NAN, f64::NAN);
        }
    }
    Ok(as_array(&[
        new_count,
        new_x,
        new_squares_x,
        new_y,
        new_squares_y,
        new_products,
    ]))
}

pub(super) fn float8_regr_combine(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let left = state::<6>(&arguments[0], "float8_regr_combine")?;
    let right = state::<6>(&arguments[1], "float8_regr_combine")?;
    if left[0] == 0.0 {
        return Ok(as_array(&right));
    }
    if right[0] == 0.0 {
        return Ok(as_array(&left));
    }
    let count = left[0] + right[0];
    let weight = left[0] * right[0] / count;
    let off_x = left[1] / left[0] - right[1] / right[0];
    let off_y = left[3] / left[0] - right[3] / right[0];
    let together = |at: usize, beside: f64| {
        let sum = left[at] + right[at] + beside;
        checked(sum, &[left[at], right[at]])
    };
    Ok(as_array(&[
        count,
        together(1, 0.0)?,
        together(2, weight * off_x * off_x)?,
        together(3, 0.0)?,
        together(4, weight * off_y * off_y)?,
        together(5, weight * off_x * off_y)?,
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Plain;

    fn called(
        function: fn(&Call<'_>, &[Datum]) -> Result<Datum>,
        arguments: &[Datum],
    ) -> Result<Vec<f64>> {
        let plain = Plain::default();
        let call = Call::new(&plain, &[], ids::FLOAT8_ARRAY);
        let state = function(&call, arguments)?;
        Ok(state
            .as_array()
            .elements
            .iter()
            .map(Datum::as_float8)
            .collect())
    }

    /// As PostgreSQL 15 has them.
    #[test]
    fn states_go_on_and_together() {
        let value = |number: f64| Datum::Float8(number);
        let state = as_array(&[4.0, 140.0, 2900.0]);
        assert_eq!(
            called(float8_accum, &[state, value(100.0)]).unwrap(),
            [5.0, 240.0, 6280.0]
        );
        let state = as_array(&[4.0, 140.0, 2900.0, 1290.0, 83075.0, 15050.0]);
        assert_eq!(
            called(float8_regr_accum, &[state, value(200.0), value(100.0)]).unwrap(),
            [5.0, 240.0, 6280.0, 1490.0, 95080.0, 8680.0]
        );
        let (left, right) = (
            as_array(&[3.0, 60.0, 200.0]),
            as_array(&[2.0, 180.0, 200.0]),
        );
        assert_eq!(
            called(float8_combine, &[left.clone(), right]).unwrap(),
            [5.0, 240.0, 6280.0]
        );
        let none = as_array(&[0.0, 0.0, 0.0]);
        assert_eq!(
            called(float8_combine, &[none, left]).unwrap(),
            [3.0, 60.0, 200.0]
        );
        let large = as_array(&[1.0, f64::MAX, 0.0]);
        assert_eq!(
            called(float8_accum, &[large, value(f64::MAX)])
                .unwrap_err()
                .sqlstate,
            "22003"
        );
        let short = as_array(&[1.0]);
        assert!(called(float8_accum, &[short, value(1.0)]).is_err());
    }
}
