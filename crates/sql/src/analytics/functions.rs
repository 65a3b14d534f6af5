//! Functions that give DataFusion PostgreSQL's arithmetic: integers that
//! overflow with 22003, division that refuses zero, exact quotients and
//! averages, rounding when a cast drops digits, and PostgreSQL's text of a
//! value. All are immutable and strict: NULL in, NULL out.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, Datum, Decimal128Array, Float32Array,
    Float64Array, PrimitiveArray, Scalar, StringViewBuilder, UInt32Array, new_null_array,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::kernels::numeric;
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType as ArrowType, Decimal128Type, Float32Type, Float64Type, i256,
};
use datafusion::arrow::error::ArrowError;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use thermocline_storage::text_format;

use super::call_name::call_name;
use super::rows::ColumnReader;
use super::types::{QUOTIENT_SCALE, UNCONSTRAINED_SCALE, is_text};
use crate::error::SqlError;

/// The decimal type of quotients and averages.
pub(crate) const QUOTIENT: ArrowType =
    ArrowType::Decimal128(DECIMAL128_MAX_PRECISION, QUOTIENT_SCALE);
/// The decimal type that holds every bigint.
pub(crate) const BIGINT_AS_NUMERIC: ArrowType = ArrowType::Decimal128(19, 0);
/// Products whose digits may not fit keep at most this many decimal places.
const PRODUCT_SCALE_MAX: i8 = 14;

/// What a function does.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Operation {
    /// `+` of integers.
    Add,
    /// `-` of integers.
    Subtract,
    /// `*` of integers.
    Multiply,
    /// `%` of integers.
    Modulo,
    /// `/` of numbers.
    Divide,
    /// A sum by a count: exact unless the sum is a float.
    Average,
    /// `*` of decimals whose product may not fit.
    MultiplyNumeric,
    /// A number rounded to an integer, as a cast to an integer type does:
    /// floats half to even, decimals half away from zero.
    RoundToInteger,
    /// The text that a cast of a value gives.
    Text,
    /// The text that a result shows; it differs for booleans.
    OutputText,
    /// A value that is fixed for the statement, such as `now()`.
    Constant(ScalarValue),
}

/// A function of ours.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PgFunction {
    name: String,
    operation: Operation,
    signature: Signature,
}

impl PgFunction {
    /// The function of an operation.
    pub(crate) fn udf(operation: Operation) -> Arc<ScalarUDF> {
        let (name, arguments) = match &operation {
            Operation::Add => ("tc_add", 2),
            Operation::Subtract => ("tc_subtract", 2),
            Operation::Multiply => ("tc_multiply", 2),
            Operation::Modulo => ("tc_modulo", 2),
            Operation::Divide => ("tc_divide", 2),
            Operation::Average => ("tc_average", 2),
            Operation::MultiplyNumeric => ("tc_multiply_numeric", 2),
            Operation::RoundToInteger => ("tc_round", 1),
            Operation::Text => ("tc_text", 1),
            Operation::OutputText => ("tc_output_text", 1),
            Operation::Constant(_) => ("tc_constant", 0),
        };
        Self::named(name, operation, arguments)
    }

    /// A function without arguments that returns `value`.
    pub(crate) fn constant(name: &str, value: ScalarValue) -> Arc<ScalarUDF> {
        Self::named(name, Operation::Constant(value), 0)
    }

    fn named(name: &str, operation: Operation, arguments: usize) -> Arc<ScalarUDF> {
        let signature = match arguments {
            0 => Signature::nullary(Volatility::Immutable),
            count => Signature::any(count, Volatility::Immutable),
        };
        Arc::new(ScalarUDF::new_from_impl(Self {
            name: name.to_owned(),
            operation,
            signature,
        }))
    }

    /// A call.
    pub(crate) fn call(operation: Operation, arguments: Vec<Expr>) -> Expr {
        Self::udf(operation).call(arguments)
    }
}

/// The integer type that two integers are computed in.
fn wider_integer(left: &ArrowType, right: &ArrowType) -> ArrowType {
    let width = |arrow: &ArrowType| match arrow {
        ArrowType::Int8 | ArrowType::UInt8 | ArrowType::Int16 => 0,
        ArrowType::UInt16 | ArrowType::Int32 => 1,
        ArrowType::Null => -1,
        _ => 2,
    };
    match width(left).max(width(right)) {
        0 => ArrowType::Int16,
        1 => ArrowType::Int32,
        _ => ArrowType::Int64,
    }
}

/// The precision and scale of a decimal, or those that hold an integer type.
pub(crate) fn decimal_shape(arrow: &ArrowType) -> (u8, i8) {
    match arrow {
        ArrowType::Decimal128(precision, scale) => (*precision, *scale),
        ArrowType::Int8 | ArrowType::Int16 | ArrowType::UInt8 => (5, 0),
        ArrowType::Int32 | ArrowType::UInt16 => (10, 0),
        ArrowType::UInt64 => (20, 0),
        _ => (19, 0),
    }
}

fn as_decimal(arrow: &ArrowType) -> ArrowType {
    let (precision, scale) = decimal_shape(arrow);
    ArrowType::Decimal128(precision, scale)
}

/// Whether `left * right` needs [`Operation::MultiplyNumeric`].
pub(crate) fn product_may_not_fit(left: &ArrowType, right: &ArrowType) -> bool {
    let ((left_digits, left_scale), (right_digits, right_scale)) =
        (decimal_shape(left), decimal_shape(right));
    left_digits + right_digits >= DECIMAL128_MAX_PRECISION
        && left_scale + right_scale > PRODUCT_SCALE_MAX
}

fn product_scale(left: i8, right: i8) -> i8 {
    if left >= QUOTIENT_SCALE || right >= QUOTIENT_SCALE {
        QUOTIENT_SCALE
    } else if left == UNCONSTRAINED_SCALE || right == UNCONSTRAINED_SCALE {
        UNCONSTRAINED_SCALE
    } else {
        left.max(right).max(PRODUCT_SCALE_MAX)
    }
}

impl ScalarUDFImpl for PgFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        call_name(self.name(), arguments)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[ArrowType]) -> Result<ArrowType> {
        Ok(match (&self.operation, arguments) {
            (Operation::Constant(value), _) => value.data_type(),
            (Operation::Text | Operation::OutputText, _) => ArrowType::Utf8View,
            (Operation::RoundToInteger, [arrow]) => arrow.clone(),
            (Operation::Divide, [left, right]) => match (left, right) {
                (ArrowType::Float32, ArrowType::Float32) => ArrowType::Float32,
                _ if left.is_floating() || right.is_floating() => ArrowType::Float64,
                _ if is_decimal(left) || is_decimal(right) => QUOTIENT,
                _ => wider_integer(left, right),
            },
            (Operation::Average, [sum, _]) if sum.is_floating() => ArrowType::Float64,
            (Operation::Average, _) => QUOTIENT,
            (Operation::MultiplyNumeric, [left, right]) => ArrowType::Decimal128(
                DECIMAL128_MAX_PRECISION,
                product_scale(decimal_shape(left).1, decimal_shape(right).1),
            ),
            (_, [left, right]) => wider_integer(left, right),
            _ => {
                return Err(DataFusionError::Internal(format!(
                    "arguments of {}",
                    self.name
                )));
            }
        })
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let return_type = arguments.return_field.data_type().clone();
        match (&self.operation, arguments.args.as_slice()) {
            (Operation::Constant(value), _) => Ok(ColumnarValue::Scalar(value.clone())),
            (Operation::Text, [value]) => unary(value, text),
            (Operation::OutputText, [value]) => unary(value, output_text),
            (Operation::RoundToInteger, [value]) => unary(value, round_to_integer),
            (Operation::Divide | Operation::Average, [left, right]) if is_decimal(&return_type) => {
                let left = left.cast_to(&as_decimal(&left.data_type()), None)?;
                let right = right.cast_to(&as_decimal(&right.data_type()), None)?;
                decimals(
                    &left,
                    &right,
                    arguments.number_rows,
                    quotient,
                    QUOTIENT_SCALE,
                )
            }
            (Operation::MultiplyNumeric, [left, right]) => {
                let left = left.cast_to(&as_decimal(&left.data_type()), None)?;
                let right = right.cast_to(&as_decimal(&right.data_type()), None)?;
                let scale = decimal_shape(&return_type).1;
                decimals(&left, &right, arguments.number_rows, product, scale)
            }
            (Operation::Divide, [_, divisor]) if return_type.is_floating() => {
                refuse_zero(divisor)?;
                kernel(&arguments.args, &return_type, numeric::div)
            }
            (Operation::Divide | Operation::Average, _) => {
                kernel(&arguments.args, &return_type, numeric::div)
            }
            (Operation::Modulo, _) => kernel(&arguments.args, &return_type, numeric::rem),
            (Operation::Add, _) => kernel(&arguments.args, &return_type, numeric::add),
            (Operation::Subtract, _) => kernel(&arguments.args, &return_type, numeric::sub),
            (Operation::Multiply, _) => kernel(&arguments.args, &return_type, numeric::mul),
            _ => Err(DataFusionError::Internal(format!(
                "arguments of {}",
                self.name
            ))),
        }
    }
}

fn is_decimal(arrow: &ArrowType) -> bool {
    matches!(arrow, ArrowType::Decimal128(..) | ArrowType::Decimal256(..))
}

#[cold]
fn sql_error(sqlstate: &'static str, message: impl Into<String>) -> DataFusionError {
    DataFusionError::External(Box::new(SqlError::new(sqlstate, message)))
}

/// 22003 for the integer type of a computation.
#[cold]
fn out_of_range(arrow: &ArrowType) -> DataFusionError {
    let name = match arrow {
        ArrowType::Int16 => "smallint",
        ArrowType::Int32 => "integer",
        ArrowType::Int64 => "bigint",
        _ => return sql_error("22003", "value overflows numeric format"),
    };
    sql_error("22003", format!("{name} out of range"))
}

type Kernel = fn(&dyn Datum, &dyn Datum) -> Result<ArrayRef, ArrowError>;

/// Runs an Arrow kernel on both arguments, cast to `arrow`.
fn kernel(arguments: &[ColumnarValue], arrow: &ArrowType, kernel: Kernel) -> Result<ColumnarValue> {
    let run = |left: &dyn Datum, right: &dyn Datum| {
        kernel(left, right).map_err(|error| match error {
            ArrowError::ArithmeticOverflow(_) => out_of_range(arrow),
            ArrowError::DivideByZero => sql_error("22012", "division by zero"),
            other => other.into(),
        })
    };
    let [left, right] = arguments else {
        return Err(DataFusionError::Internal(
            "two arguments expected".to_owned(),
        ));
    };
    match (left.cast_to(arrow, None)?, right.cast_to(arrow, None)?) {
        (ColumnarValue::Array(left), ColumnarValue::Array(right)) => {
            run(&left, &right).map(ColumnarValue::Array)
        }
        (ColumnarValue::Array(left), ColumnarValue::Scalar(right)) => {
            let right = Scalar::new(right.to_array()?);
            run(&left, &right).map(ColumnarValue::Array)
        }
        (ColumnarValue::Scalar(left), ColumnarValue::Array(right)) => {
            let left = Scalar::new(left.to_array()?);
            run(&left, &right).map(ColumnarValue::Array)
        }
        (ColumnarValue::Scalar(left), ColumnarValue::Scalar(right)) => {
            let result = run(&left.to_array()?, &right.to_array()?)?;
            Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(
                &result, 0,
            )?))
        }
    }
}

/// 22012 if a float divisor holds a zero.
fn refuse_zero(divisor: &ColumnarValue) -> Result<()> {
    let array = divisor.to_array(1)?;
    let array = cast(&array, &ArrowType::Float64)?;
    let values = array.as_primitive::<Float64Type>();
    if values.iter().flatten().any(|value| value == 0.0) {
        return Err(sql_error("22012", "division by zero"));
    }
    Ok(())
}

fn unary(
    value: &ColumnarValue,
    function: fn(&ArrayRef) -> Result<ArrayRef>,
) -> Result<ColumnarValue> {
    match value {
        ColumnarValue::Array(array) => function(array).map(ColumnarValue::Array),
        ColumnarValue::Scalar(scalar) => {
            let result = function(&scalar.to_array()?)?;
            Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(
                &result, 0,
            )?))
        }
    }
}

fn text(array: &ArrayRef) -> Result<ArrayRef> {
    if is_text(array.data_type()) || *array.data_type() == ArrowType::Boolean {
        return Ok(cast(array, &ArrowType::Utf8View)?);
    }
    output_text(array)
}

fn output_text(array: &ArrayRef) -> Result<ArrayRef> {
    let reader = ColumnReader::new(array, None);
    let mut builder = StringViewBuilder::with_capacity(array.len());
    let mut bytes = Vec::new();
    for row in 0..array.len() {
        if array.is_null(row) {
            builder.append_null();
            continue;
        }
        bytes.clear();
        match reader.scalar(row) {
            Some((value, data_type)) => text_format::write_text(value, &data_type, &mut bytes),
            None => bytes.extend_from_slice(reader.other_text(row)?.as_bytes()),
        }
        builder.append_value(String::from_utf8_lossy(&bytes));
    }
    Ok(Arc::new(builder.finish()))
}

fn map_floats<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    round: impl Fn(T::Native) -> T::Native,
) -> PrimitiveArray<T> {
    array.as_primitive::<T>().unary(round)
}

fn round_to_integer(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        ArrowType::Float32 => {
            let rounded: Float32Array = map_floats::<Float32Type>(array, f32::round_ties_even);
            Arc::new(rounded)
        }
        ArrowType::Float64 => {
            let rounded: Float64Array = map_floats::<Float64Type>(array, f64::round_ties_even);
            Arc::new(rounded)
        }
        ArrowType::Decimal128(precision, scale) if *scale > 0 => {
            let unit = power_of_ten(*scale)?;
            let rounded: Decimal128Array = array.as_primitive::<Decimal128Type>().unary(|value| {
                let half = unit / 2 * value.signum();
                value.saturating_add(half) / unit * unit
            });
            Arc::new(rounded.with_precision_and_scale(*precision, *scale)?)
        }
        _ => Arc::clone(array),
    })
}

fn power_of_ten(exponent: i8) -> Result<i128> {
    u32::try_from(exponent)
        .ok()
        .and_then(|exponent| 10i128.checked_pow(exponent))
        .ok_or_else(|| out_of_range(&ArrowType::Null))
}

fn wide_power_of_ten(exponent: i8) -> Result<i256> {
    u32::try_from(exponent)
        .ok()
        .and_then(|exponent| i256::from_i128(10).checked_pow(exponent))
        .ok_or_else(|| out_of_range(&ArrowType::Null))
}

/// `value / divisor`, rounded half away from zero; `divisor` is not 0.
fn divide_rounded(value: i256, divisor: i256) -> Option<i256> {
    let quotient = value.checked_div(divisor)?;
    let remainder = value.checked_sub(quotient.checked_mul(divisor)?)?;
    let twice = remainder.checked_mul(i256::from_i128(2))?;
    let magnitude = |number: i256| {
        if number.is_negative() {
            number.wrapping_neg()
        } else {
            number
        }
    };
    if magnitude(twice) < magnitude(divisor) {
        return Some(quotient);
    }
    let one = if value.is_negative() == divisor.is_negative() {
        i256::ONE
    } else {
        i256::MINUS_ONE
    };
    quotient.checked_add(one)
}

/// `left / right` at [`QUOTIENT_SCALE`].
fn quotient(
    (left, left_scale): (i128, i8),
    (right, right_scale): (i128, i8),
    scale: i8,
) -> Result<i128> {
    if right == 0 {
        return Err(sql_error("22012", "division by zero"));
    }
    let shift = scale + right_scale - left_scale;
    if shift >= 0 {
        let factor = wide_power_of_ten(shift)?;
        if let (Some(narrow), false) = (factor.to_i128(), left == 0)
            && let Some(scaled) = left.checked_mul(narrow)
        {
            let (whole, rest) = (scaled / right, scaled % right);
            let up = rest.unsigned_abs() >= right.unsigned_abs().div_ceil(2);
            let one = if (scaled < 0) == (right < 0) { 1 } else { -1 };
            return Ok(if up { whole + one } else { whole });
        }
        i256::from_i128(left)
            .checked_mul(factor)
            .and_then(|scaled| divide_rounded(scaled, i256::from_i128(right)))
    } else {
        i256::from_i128(right)
            .checked_mul(wide_power_of_ten(-shift)?)
            .and_then(|divisor| divide_rounded(i256::from_i128(left), divisor))
    }
    .and_then(i256::to_i128)
    .ok_or_else(|| out_of_range(&ArrowType::Null))
}

/// `left * right`, rounded to `scale`.
fn product(
    (left, left_scale): (i128, i8),
    (right, right_scale): (i128, i8),
    scale: i8,
) -> Result<i128> {
    let natural = i256::from_i128(left).checked_mul(i256::from_i128(right));
    let drop = left_scale + right_scale - scale;
    let scaled = if drop >= 0 {
        let divisor = wide_power_of_ten(drop)?;
        natural.and_then(|value| divide_rounded(value, divisor))
    } else {
        let factor = wide_power_of_ten(-drop)?;
        natural.and_then(|value| value.checked_mul(factor))
    };
    scaled
        .and_then(i256::to_i128)
        .ok_or_else(|| out_of_range(&ArrowType::Null))
}

type DecimalFunction = fn((i128, i8), (i128, i8), i8) -> Result<i128>;

/// Applies a function to pairs of decimals; the result has `scale`.
fn decimals(
    left: &ColumnarValue,
    right: &ColumnarValue,
    rows: usize,
    function: DecimalFunction,
    scale: i8,
) -> Result<ColumnarValue> {
    let scalar = matches!(
        (left, right),
        (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_))
    );
    let rows = if scalar { 1 } else { rows };
    let (left_scale, right_scale) = (
        decimal_shape(&left.data_type()).1,
        decimal_shape(&right.data_type()).1,
    );
    let (left, right) = (left.to_array(1)?, right.to_array(1)?);
    let (left, right) = (spread(left, rows)?, spread(right, rows)?);
    let (left, right) = (
        left.as_primitive::<Decimal128Type>(),
        right.as_primitive::<Decimal128Type>(),
    );
    let nulls = NullBuffer::union(left.nulls(), right.nulls());
    let mut values = Vec::with_capacity(rows);
    for row in 0..rows {
        if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            values.push(0);
            continue;
        }
        values.push(function(
            (left.value(row), left_scale),
            (right.value(row), right_scale),
            scale,
        )?);
    }
    let result = Decimal128Array::new(values.into(), nulls)
        .with_precision_and_scale(DECIMAL128_MAX_PRECISION, scale)?;
    result
        .validate_decimal_precision(DECIMAL128_MAX_PRECISION)
        .map_err(|_| out_of_range(&ArrowType::Null))?;
    let result: ArrayRef = Arc::new(result);
    if scalar {
        return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(
            &result, 0,
        )?));
    }
    Ok(ColumnarValue::Array(result))
}

/// An array of one row repeated `rows` times; longer ones as they are.
fn spread(array: ArrayRef, rows: usize) -> Result<ArrayRef> {
    if array.len() == rows {
        return Ok(array);
    }
    if array.is_empty() {
        return Ok(new_null_array(array.data_type(), rows));
    }
    let indices = UInt32Array::from_value(0, rows);
    Ok(take(&array, &indices, None)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_round_half_away_from_zero() {
        let at_2 = |left: (i128, i8), right: (i128, i8)| quotient(left, right, 2).unwrap();
        assert_eq!(at_2((1, 0), (3, 0)), 33);
        assert_eq!(at_2((2, 0), (3, 0)), 67);
        assert_eq!(at_2((-2, 0), (3, 0)), -67);
        assert_eq!(at_2((1, 0), (-8, 0)), -13);
        assert_eq!(at_2((125, 3), (1, 0)), 13);
        assert_eq!(at_2((0, 2), (7, 0)), 0);
        assert_eq!(at_2((123_456, 5), (1, 0)), 123);
    }

    #[test]
    fn wide_quotients_and_products_agree_with_narrow_ones() {
        let large = 10i128.pow(30);
        assert_eq!(
            quotient((large, 0), (large / 2, 0), 20).unwrap(),
            2 * 10i128.pow(20)
        );
        assert_eq!(product((15, 1), (25, 1), 20).unwrap(), 375 * 10i128.pow(18));
        assert_eq!(product((-15, 1), (15, 1), 1).unwrap(), -23);
        assert!(product((large, 0), (large, 0), 0).is_err());
    }

    #[test]
    fn zero_divisors_are_refused() {
        let Err(DataFusionError::External(error)) = quotient((1, 0), (0, 2), 20) else {
            panic!("a division by zero succeeded");
        };
        assert!(error.to_string().contains("division by zero"));
    }
}
