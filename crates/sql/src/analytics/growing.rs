//! Functions whose result may be far larger than their arguments. What a batch of them will take
//! is worked out first: a value beyond PostgreSQL's greatest is 54000, a batch that the
//! analytical memory has no room for 53200; only then is it made.
//!
//! `repeat`, `lpad`, `rpad`, `replace` and `||` are our own, by the rules of the storage floor;
//! others are DataFusion's, behind a bound of their size.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringViewBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef, Int64Type};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use parking_lot::Mutex;
use thermocline_storage::functions::{
    VALUE_BYTES_MAX, pad_to, padded_bytes, repeated_bytes, replaced_bytes,
};

use super::call_name::call_name;
use super::types::is_text;
use crate::error::SqlError;

/// A batch up to here is made without asking, in bytes.
const SMALL_BYTES: u64 = 1 << 20;
/// The most that the values of a batch may have together: some arrays count bytes in 32 bits.
const BATCH_BYTES_MAX: u64 = i32::MAX as u64;
/// What an element of an array takes.
const ELEMENT_BYTES: u64 = 16;

/// The memory of what the functions of one statement make.
pub(super) struct Growth {
    pool: Arc<dyn MemoryPool>,
    /// Of the largest batches, until the statement ends.
    reservation: Mutex<Option<MemoryReservation>>,
}

impl fmt::Debug for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Growth").finish_non_exhaustive()
    }
}

impl Growth {
    pub(super) fn new(pool: Arc<dyn MemoryPool>) -> Arc<Self> {
        Arc::new(Self {
            pool,
            reservation: Mutex::default(),
        })
    }

    /// Room for a batch of values of so many bytes.
    pub(super) fn make_room(&self, bytes: u64) -> Result<()> {
        if bytes <= SMALL_BYTES {
            return Ok(());
        }
        if bytes > BATCH_BYTES_MAX {
            return Err(too_much(bytes));
        }
        let mut reservation = self.reservation.lock();
        let reservation =
            reservation.get_or_insert_with(|| MemoryConsumer::new("values").register(&self.pool));
        // The next function may make as much of it.
        let wanted = bytes as usize * 2;
        if reservation.size() < wanted {
            reservation.try_resize(wanted)?;
        }
        Ok(())
    }
}

#[cold]
fn too_much(bytes: u64) -> DataFusionError {
    DataFusionError::ResourcesExhausted(format!(
        "The values that a function makes of some rows take {bytes} bytes or more."
    ))
}

/// Adds up what the values of a batch will take.
#[derive(Default)]
struct Total(u64);

impl Total {
    fn add(&mut self, bytes: u64) -> Result<()> {
        if bytes > VALUE_BYTES_MAX {
            let error = SqlError::new("54000", "requested length too large");
            return Err(DataFusionError::External(Box::new(error)));
        }
        self.0 = self.0.saturating_add(bytes);
        match self.0 {
            ..=BATCH_BYTES_MAX => Ok(()),
            bytes => Err(too_much(bytes)),
        }
    }
}

/// An argument for a batch. A constant is there once: spread over the rows, a long one would be
/// memory that nobody has asked for.
struct Argument {
    array: ArrayRef,
    is_constant: bool,
}

impl Argument {
    fn new(argument: &ColumnarValue) -> Result<Self> {
        Ok(match argument {
            ColumnarValue::Array(array) => Self {
                array: Arc::clone(array),
                is_constant: false,
            },
            ColumnarValue::Scalar(scalar) => Self {
                array: scalar.to_array()?,
                is_constant: true,
            },
        })
    }

    fn cast(self, wanted: &ArrowType) -> Result<Self> {
        Ok(Self {
            array: cast(&self.array, wanted)?,
            is_constant: self.is_constant,
        })
    }

    /// Where the value of a row is.
    fn place(&self, row: usize) -> usize {
        if self.is_constant { 0 } else { row }
    }

    fn is_null(&self, row: usize) -> bool {
        self.array.is_null(self.place(row))
    }

    /// The text of a row, where these are texts.
    fn text(&self, row: usize) -> &str {
        self.array.as_string_view().value(self.place(row))
    }
}

/// The function of this name that stands in the place of `function`, which is DataFusion's.
pub(super) fn bounded(function: Arc<ScalarUDF>, growth: &Arc<Growth>) -> Arc<ScalarUDF> {
    let name = function.name();
    if let Some(text) = Text::by_name(name) {
        return text.udf(growth);
    }
    let bound = match name {
        "array_to_string" | "array_join" | "list_to_string" | "list_join" => Bound::Joined,
        "concat_ws" => Bound::Separated,
        "concat" | "overlay" | "array_concat" | "array_cat" | "list_concat" | "list_cat"
        | "array_append" | "array_prepend" | "list_append" | "list_prepend" | "make_array"
        | "array_replace" | "array_replace_all" | "list_replace" => Bound::Sum(2),
        "translate" | "upper" | "lower" | "initcap" | "reverse" | "encode" | "decode" => {
            Bound::Sum(4)
        }
        "string_to_array" | "string_to_list" | "flatten" => Bound::Sum(ELEMENT_BYTES),
        "array_repeat" | "list_repeat" | "array_resize" | "list_resize" => Bound::Elements(1),
        "range" | "generate_series" | "gen_series" => Bound::Series,
        "regexp_replace" => Bound::Matches,
        _ => return function,
    };
    Arc::new(ScalarUDF::new_from_impl(Bounded {
        function,
        bound,
        growth: Arc::clone(growth),
    }))
}

/// `left || right`.
pub(super) fn joined(left: Expr, right: Expr, growth: &Arc<Growth>) -> Expr {
    Text::Join.udf(growth).call(vec![left, right])
}

/// A function of texts of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Text {
    Repeat,
    PadLeft,
    PadRight,
    Replace,
    Join,
}

impl Text {
    fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "repeat" => Self::Repeat,
            "lpad" => Self::PadLeft,
            "rpad" => Self::PadRight,
            "replace" => Self::Replace,
            _ => return None,
        })
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Repeat => "repeat",
            Self::PadLeft => "lpad",
            Self::PadRight => "rpad",
            Self::Replace => "replace",
            Self::Join => "tc_join",
        }
    }

    fn udf(self, growth: &Arc<Growth>) -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::new_from_impl(TextFunction {
            text: self,
            signature: Signature::user_defined(Volatility::Immutable),
            growth: Arc::clone(growth),
        }))
    }

    /// The types of the arguments: texts, and a count where there is one.
    fn arguments(self, given: usize) -> Option<&'static [ArrowType]> {
        const TEXTS: [ArrowType; 3] = [
            ArrowType::Utf8View,
            ArrowType::Utf8View,
            ArrowType::Utf8View,
        ];
        const COUNTED: [ArrowType; 3] =
            [ArrowType::Utf8View, ArrowType::Int64, ArrowType::Utf8View];
        match (self, given) {
            (Self::Repeat, 2) => Some(&COUNTED[..2]),
            (Self::PadLeft | Self::PadRight, 2 | 3) => Some(&COUNTED[..given]),
            (Self::Replace, 3) => Some(&TEXTS),
            (Self::Join, 2) => Some(&TEXTS[..2]),
            _ => None,
        }
    }

    /// The bytes of the result at their most.
    fn size(self, value: &str, number: i64, second: &str, third: &str) -> u64 {
        match self {
            Self::Repeat => repeated_bytes(value, number),
            Self::PadLeft | Self::PadRight => padded_bytes(value, number, third),
            Self::Replace => match replaced_bytes(value, second, third) {
                bytes if bytes <= SMALL_BYTES || second.is_empty() => bytes,
                _ => {
                    let times = value.matches(second).count() as u64;
                    value.len() as u64 + times.saturating_mul(third.len() as u64)
                }
            },
            Self::Join => value.len() as u64 + second.len() as u64,
        }
    }

    fn write(
        self,
        out: &mut String,
        value: &str,
        number: i64,
        second: &str,
        third: &str,
    ) -> Result<()> {
        match self {
            Self::Repeat => (0..number).for_each(|_| out.push_str(value)),
            Self::PadLeft | Self::PadRight => {
                pad_to(out, value, number, third, self == Self::PadLeft)
                    .map_err(|error| DataFusionError::External(Box::new(SqlError::from(error))))?;
            }
            Self::Replace if second.is_empty() => out.push_str(value),
            Self::Replace => {
                let mut parts = value.split(second);
                out.push_str(parts.next().unwrap_or_default());
                for part in parts {
                    out.push_str(third);
                    out.push_str(part);
                }
            }
            Self::Join => {
                out.push_str(value);
                out.push_str(second);
            }
        }
        Ok(())
    }
}

#[derive(Debug)]
struct TextFunction {
    text: Text,
    signature: Signature,
    growth: Arc<Growth>,
}

impl PartialEq for TextFunction {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for TextFunction {}

impl Hash for TextFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl ScalarUDFImpl for TextFunction {
    fn name(&self) -> &str {
        self.text.name()
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        call_name(self.name(), arguments)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[ArrowType]) -> Result<Vec<ArrowType>> {
        let wanted = self.text.arguments(given.len()).filter(|wanted| {
            wanted.iter().zip(given).all(|(wanted, given)| match given {
                ArrowType::Null => true,
                given if *wanted == ArrowType::Int64 => given.is_integer(),
                given => is_text(given),
            })
        });
        wanted.map(<[ArrowType]>::to_vec).ok_or_else(|| {
            let name = self.text.name();
            let message = format!("function {name} does not exist for these argument types");
            DataFusionError::External(Box::new(SqlError::new("42883", message)))
        })
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::Utf8View)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = arguments.number_rows;
        let is_constant = arguments
            .args
            .iter()
            .all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { rows };
        // Numbers among the texts stand in the second place.
        let mut numbers: Option<Argument> = None;
        let mut texts: Vec<Argument> = Vec::with_capacity(3);
        let wanted = self.text.arguments(arguments.args.len()).unwrap_or(&[]);
        for (argument, wanted) in arguments.args.iter().zip(wanted) {
            let argument = Argument::new(argument)?.cast(wanted)?;
            match wanted {
                ArrowType::Int64 => numbers = Some(argument),
                _ => texts.push(argument),
            }
        }
        let nulls = |row: usize| texts.iter().chain(&numbers).any(|given| given.is_null(row));
        let counted = numbers.is_some();
        let number = |row: usize| match &numbers {
            Some(numbers) => {
                let place = numbers.place(row);
                numbers.array.as_primitive::<Int64Type>().value(place)
            }
            None => 0,
        };
        let text = |at: usize, row: usize| match texts.get(at) {
            Some(texts) => texts.text(row),
            None if counted => " ",
            None => "",
        };
        let parts = |row: usize| match counted {
            true => (text(0, row), number(row), "", text(1, row)),
            false => (text(0, row), 0, text(1, row), text(2, row)),
        };
        let mut total = Total::default();
        for row in (0..rows).filter(|row| !nulls(*row)) {
            let (value, number, second, third) = parts(row);
            total.add(self.text.size(value, number, second, third))?;
        }
        self.growth.make_room(total.0)?;
        let mut builder = StringViewBuilder::with_capacity(rows);
        let mut out = String::new();
        for row in 0..rows {
            if nulls(row) {
                builder.append_null();
                continue;
            }
            let (value, number, second, third) = parts(row);
            out.clear();
            self.text.write(&mut out, value, number, second, third)?;
            builder.append_value(&out);
        }
        let array: ArrayRef = Arc::new(builder.finish());
        match is_constant {
            true => Ok(ColumnarValue::Scalar(
                datafusion::common::ScalarValue::try_from_array(&array, 0)?,
            )),
            false => Ok(ColumnarValue::Array(array)),
        }
    }
}

/// What the result of a function of DataFusion's takes at its most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Bound {
    /// So many times all arguments together.
    Sum(u64),
    /// All arguments together, and the first as often as there are arguments.
    Separated,
    /// The elements of a list, with the other arguments as often as there are elements.
    Joined,
    /// As many elements as the argument at this place says.
    Elements(usize),
    /// The numbers from one argument to another.
    Series,
    /// A text with matches replaced.
    Matches,
}

/// A function of DataFusion's behind a bound.
#[derive(Debug)]
struct Bounded {
    function: Arc<ScalarUDF>,
    bound: Bound,
    growth: Arc<Growth>,
}

impl PartialEq for Bounded {
    fn eq(&self, other: &Self) -> bool {
        self.function == other.function
    }
}

impl Eq for Bounded {}

impl Hash for Bounded {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.function.hash(state);
    }
}

impl Bounded {
    fn size(&self, arguments: &ScalarFunctionArgs) -> Result<u64> {
        let rows = arguments.number_rows as u64;
        let mut total = Total::default();
        match self.bound {
            Bound::Sum(times) => {
                for argument in &arguments.args {
                    total.0 += batch_bytes(argument, rows)?.saturating_mul(times);
                }
            }
            Bound::Separated => {
                let times = arguments.args.len() as u64;
                for argument in &arguments.args {
                    total.0 += batch_bytes(argument, rows)?.saturating_mul(times);
                }
            }
            Bound::Joined => {
                let [first, others @ ..] = arguments.args.as_slice() else {
                    return Ok(0);
                };
                total.0 = batch_bytes(first, rows)?.saturating_mul(2);
                let lists = Argument::new(first)?;
                let others = others
                    .iter()
                    .map(|other| Argument::new(other)?.cast(&ArrowType::Utf8View))
                    .collect::<Result<Vec<_>>>()?;
                let Some(values) = lists.array.as_list_opt::<i32>() else {
                    return Ok(total.0);
                };
                for row in (0..arguments.number_rows).filter(|row| !lists.is_null(*row)) {
                    // Lists in the list are joined, too.
                    let mut elements = values.value(lists.place(row));
                    while let Some(inner) = elements.as_list_opt::<i32>() {
                        elements = Arc::clone(inner.values());
                    }
                    let between = others.iter().filter(|other| !other.is_null(row));
                    let between: usize = between.map(|other| other.text(row).len()).sum();
                    let elements = elements.len() as u64;
                    total.add(elements.saturating_mul(between as u64))?;
                }
            }
            Bound::Elements(at) => {
                let bytes = match arguments.args.first() {
                    Some(ColumnarValue::Array(array)) => text_bytes(array) / rows.max(1),
                    Some(ColumnarValue::Scalar(scalar)) => text_bytes(&scalar.to_array()?),
                    None => 0,
                };
                for count in integers(arguments, at)? {
                    let count = u64::try_from(count).unwrap_or(0);
                    total.add(count.saturating_mul(bytes + ELEMENT_BYTES))?;
                }
            }
            Bound::Series => {
                let (from, to) = match arguments.args.len() {
                    1 => (vec![0; arguments.number_rows], integers(arguments, 0)?),
                    _ => (integers(arguments, 0)?, integers(arguments, 1)?),
                };
                let steps = integers(arguments, 2)?;
                for (row, (from, to)) in from.iter().zip(&to).enumerate() {
                    let step = steps.get(row).map_or(1, |step| step.unsigned_abs().max(1));
                    total.add((to.abs_diff(*from) / step).saturating_mul(ELEMENT_BYTES))?;
                }
            }
            Bound::Matches => {
                let of = |at: usize| -> Result<Option<Argument>> {
                    match arguments.args.get(at) {
                        Some(argument) if is_text(&argument.data_type()) => {
                            Argument::new(argument)?
                                .cast(&ArrowType::Utf8View)
                                .map(Some)
                        }
                        _ => Ok(None),
                    }
                };
                let (Some(texts), Some(patterns), Some(others)) = (of(0)?, of(1)?, of(2)?) else {
                    return Ok(0);
                };
                let flags = of(3)?;
                for row in 0..arguments.number_rows {
                    let (value, other) = (texts.text(row), others.text(row));
                    let all = flags
                        .as_ref()
                        .is_some_and(|flags| flags.text(row).contains('g'));
                    let mut times = if all { value.len() as u64 + 1 } else { 1 };
                    if times.saturating_mul(other.len() as u64) > SMALL_BYTES
                        && let Ok(pattern) = regex::Regex::new(patterns.text(row))
                    {
                        times = times.min(pattern.find_iter(value).count() as u64);
                    }
                    // What the groups put in is part of the text, each group at most all of it.
                    let groups = 1 + other.matches(['\\', '$']).count() as u64;
                    let bytes = groups.saturating_mul(value.len() as u64);
                    total.add(bytes.saturating_add(times.saturating_mul(other.len() as u64)))?;
                }
            }
        }
        Ok(total.0)
    }
}

/// The bytes of an argument's texts in a batch of so many rows.
pub(super) fn batch_bytes(argument: &ColumnarValue, rows: u64) -> Result<u64> {
    Ok(match argument {
        ColumnarValue::Array(array) => text_bytes(array),
        ColumnarValue::Scalar(scalar) => text_bytes(&scalar.to_array()?).saturating_mul(rows),
    })
}

/// The bytes of texts, or of whatever else there is in memory.
fn text_bytes(array: &ArrayRef) -> u64 {
    match array.data_type() {
        ArrowType::Utf8View => {
            let views = array.as_string_view();
            views.iter().flatten().map(|text| text.len() as u64).sum()
        }
        _ => array.get_array_memory_size() as u64,
    }
}

/// The integers of an argument; none if it is something else.
fn integers(arguments: &ScalarFunctionArgs, at: usize) -> Result<Vec<i64>> {
    let Some(argument) = arguments.args.get(at) else {
        return Ok(Vec::new());
    };
    if !argument.data_type().is_integer() {
        return Ok(Vec::new());
    }
    let array = cast(
        &argument.to_array(arguments.number_rows)?,
        &ArrowType::Int64,
    )?;
    let numbers = array.as_primitive::<Int64Type>();
    Ok(numbers.iter().map(Option::unwrap_or_default).collect())
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        call_name(self.name(), arguments)
    }

    fn signature(&self) -> &Signature {
        self.function.signature()
    }

    fn coerce_types(&self, given: &[ArrowType]) -> Result<Vec<ArrowType>> {
        self.function.coerce_types(given)
    }

    fn return_type(&self, given: &[ArrowType]) -> Result<ArrowType> {
        self.function.return_type(given)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.function.return_field_from_args(arguments)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.growth.make_room(self.size(&arguments)?)?;
        self.function.invoke_with_args(arguments)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::Field;
    use datafusion::common::ScalarValue;
    use datafusion::common::config::ConfigOptions;
    use datafusion::execution::memory_pool::UnboundedMemoryPool;
    use datafusion::functions::regex::regexp_replace;
    use datafusion::functions_nested::string::array_to_string_udf;

    use super::*;

    /// Calls a function with these arguments for as many rows as no memory would hold copies.
    fn call(function: Arc<ScalarUDF>, arguments: Vec<ScalarValue>) -> Result<ColumnarValue> {
        const ROWS: usize = 1 << 30;
        let growth = Growth::new(Arc::new(UnboundedMemoryPool::default()));
        let fields = arguments
            .iter()
            .map(|argument| Arc::new(Field::new("", argument.data_type(), true)))
            .collect();
        let function = bounded(function, &growth);
        function.invoke_with_args(ScalarFunctionArgs {
            args: arguments.into_iter().map(ColumnarValue::Scalar).collect(),
            arg_fields: fields,
            number_rows: ROWS,
            return_field: Arc::new(Field::new("", ArrowType::Utf8View, true)),
            config_options: Arc::new(ConfigOptions::default()),
        })
    }

    #[test]
    fn the_constants_of_a_batch_are_not_copied_to_find_out_its_size() {
        let text = |bytes: usize| ScalarValue::Utf8View(Some("x".repeat(bytes)));
        let list = ScalarValue::List(ScalarValue::new_list_nullable(
            &vec![text(1); 100_000],
            &ArrowType::Utf8View,
        ));
        let joined = call(array_to_string_udf(), vec![list, text(1000)]);
        let replaced = call(regexp_replace(), vec![text(100_000), text(1), text(1000)]);
        for refused in [joined, replaced] {
            let error = refused.unwrap_err();
            assert!(
                matches!(error, DataFusionError::ResourcesExhausted(_)),
                "{error}"
            );
        }
    }
}
