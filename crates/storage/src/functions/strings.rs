//! Functions of texts. Positions and lengths count characters, not bytes.
//! Cases are mapped as Unicode has it. A `char` argument is without its
//! trailing blanks, as when PostgreSQL converts it to text.

use super::{Function, growing, strict, wrong_arguments};
use crate::text_format::write_text;
use crate::types::DataType;
use crate::value::Value;
use crate::value_error::ValueError;

/// The longest value there is, in bytes, as in PostgreSQL.
pub const VALUE_BYTES_MAX: u64 = 0x3fff_ffff;

pub(super) fn lookup(name: &str, types: &[DataType]) -> Option<Function> {
    use DataType::{Bytea, Integer, Text};
    match (name, types) {
        ("concat", _) => {
            return Some(Function {
                arguments: types.to_vec(),
                result: Text,
                call: concat,
                strict: false,
                size: Some(joined_size),
            });
        }
        ("||", [Bytea, Bytea]) => {
            return Some(growing(&[Bytea, Bytea], Bytea, join_bytes, joined_size));
        }
        // Anything may be joined to a text.
        ("||", [left, right]) if left.is_text() || right.is_text() => {
            return Some(growing(&[Text, Text], Text, join, joined_size));
        }
        ("length" | "octet_length", [Bytea]) => {
            return Some(strict(&[Bytea], Integer, byte_length));
        }
        // The blanks of a char(n) count in bytes, but are not in its value.
        ("octet_length", [DataType::Char(_)]) => return None,
        _ => {}
    }
    // The others take texts, then counts; lpad and rpad take a text after them.
    let is_count = |data_type: &DataType| matches!(data_type, DataType::SmallInt | Integer);
    let arguments: Option<Vec<DataType>> = types
        .iter()
        .map(|data_type| match data_type {
            _ if data_type.is_text() => Some(Text),
            _ if is_count(data_type) => Some(Integer),
            _ => None,
        })
        .collect();
    let arguments = arguments?;
    type Call = fn(&[Value]) -> Result<Value, ValueError>;
    let of_text = |call: Call| Some(strict(&arguments, Text, call));
    let large = |call: Call, size| Some(growing(&arguments, Text, call, size));
    let to_integer = |call: Call| Some(strict(&arguments, Integer, call));
    match (name, arguments.as_slice()) {
        ("length" | "char_length" | "character_length", [Text]) => to_integer(character_length),
        ("octet_length", [Text]) => to_integer(byte_length),
        ("lower", [Text]) => of_text(lower),
        ("upper", [Text]) => of_text(upper),
        ("reverse", [Text]) => of_text(reverse),
        ("trim" | "btrim", [Text] | [Text, Text]) => of_text(trim_both),
        ("ltrim", [Text] | [Text, Text]) => of_text(trim_left),
        ("rtrim", [Text] | [Text, Text]) => of_text(trim_right),
        ("replace", [Text, Text, Text]) => large(replace, replaced_size),
        ("strpos" | "position", [Text, Text]) => to_integer(position),
        ("substr" | "substring", [Text, Integer] | [Text, Integer, Integer]) => of_text(substring),
        ("left", [Text, Integer]) => of_text(left),
        ("right", [Text, Integer]) => of_text(right),
        ("repeat", [Text, Integer]) => large(repeat, repeated_size),
        ("lpad", [Text, Integer] | [Text, Integer, Text]) => large(pad_left, padded_size),
        ("rpad", [Text, Integer] | [Text, Integer, Text]) => large(pad_right, padded_size),
        ("split_part", [Text, Text, Integer]) => of_text(split_part),
        _ => None,
    }
}

#[cold]
fn too_large() -> ValueError {
    ValueError::new("54000", "requested length too large")
}

/// The bytes of a text or a bytea; of another value about as many as its text has.
fn bytes_of(value: &Value) -> u64 {
    match value {
        Value::Text(text) => text.len() as u64,
        Value::Bytea(bytes) => 2 * bytes.len() as u64,
        Value::Null => 0,
        _ => 64,
    }
}

fn joined_size(arguments: &[Value]) -> u64 {
    arguments.iter().map(bytes_of).sum()
}

/// The bytes of `value` with each `from` replaced by `to`, at most.
#[must_use]
pub fn replaced_bytes(value: &str, from: &str, to: &str) -> u64 {
    let times = (value.len() / from.len().max(1)) as u64;
    value.len() as u64 + times.saturating_mul(to.len().saturating_sub(from.len()) as u64)
}

/// The bytes of `value`, so many times.
#[must_use]
pub fn repeated_bytes(value: &str, count: i64) -> u64 {
    (value.len() as u64).saturating_mul(u64::try_from(count).unwrap_or(0))
}

/// The bytes of `value` filled up to so many characters, at most.
#[must_use]
pub fn padded_bytes(value: &str, target: i64, fill: &str) -> u64 {
    let target = u64::try_from(target).unwrap_or(0);
    let widest = fill.chars().map(char::len_utf8).max().unwrap_or(0) as u64;
    (value.len() as u64).saturating_add(target.saturating_mul(widest))
}

fn replaced_size(arguments: &[Value]) -> u64 {
    match arguments {
        [Value::Text(value), Value::Text(from), Value::Text(to)] => replaced_bytes(value, from, to),
        _ => 0,
    }
}

fn repeated_size(arguments: &[Value]) -> u64 {
    match arguments {
        [Value::Text(value), Value::Integer(count)] => repeated_bytes(value, i64::from(*count)),
        _ => 0,
    }
}

fn padded_size(arguments: &[Value]) -> u64 {
    match arguments {
        [Value::Text(value), Value::Integer(target)] => {
            padded_bytes(value, i64::from(*target), " ")
        }
        [
            Value::Text(value),
            Value::Integer(target),
            Value::Text(fill),
        ] => padded_bytes(value, i64::from(*target), fill),
        _ => 0,
    }
}

/// 54000 for what no value may have.
fn refuse_large(bytes: u64) -> Result<(), ValueError> {
    match bytes > VALUE_BYTES_MAX {
        true => Err(too_large()),
        false => Ok(()),
    }
}

fn text(text: impl Into<String>) -> Result<Value, ValueError> {
    Ok(Value::Text(text.into()))
}

fn length(count: usize) -> Result<Value, ValueError> {
    i32::try_from(count)
        .map(Value::Integer)
        .map_err(|_| too_large())
}

fn concat(arguments: &[Value]) -> Result<Value, ValueError> {
    refuse_large(joined_size(arguments))?;
    let mut out = Vec::new();
    for value in arguments {
        write_text(value.as_ref(), &DataType::Text, &mut out);
    }
    String::from_utf8(out)
        .map(Value::Text)
        .map_err(|_| wrong_arguments("concat"))
}

fn join(arguments: &[Value]) -> Result<Value, ValueError> {
    match arguments {
        [Value::Text(a), Value::Text(b)] => {
            refuse_large(a.len() as u64 + b.len() as u64)?;
            text([a.as_str(), b].concat())
        }
        _ => Err(wrong_arguments("||")),
    }
}

fn join_bytes(arguments: &[Value]) -> Result<Value, ValueError> {
    match arguments {
        [Value::Bytea(a), Value::Bytea(b)] => {
            refuse_large(a.len() as u64 + b.len() as u64)?;
            Ok(Value::Bytea([a.as_slice(), b].concat()))
        }
        _ => Err(wrong_arguments("||")),
    }
}

fn character_length(arguments: &[Value]) -> Result<Value, ValueError> {
    match arguments {
        [Value::Text(value)] => length(value.chars().count()),
        _ => Err(wrong_arguments("length")),
    }
}

fn byte_length(arguments: &[Value]) -> Result<Value, ValueError> {
    match arguments {
        [Value::Text(value)] => length(value.len()),
        [Value::Bytea(value)] => length(value.len()),
        _ => Err(wrong_arguments("octet_length")),
    }
}

fn lower(arguments: &[Value]) -> Result<Value, ValueError> {
    match arguments {
        [Value::Text(value)] => text(value.to_lowercase()),
        _ => Err(wrong_arguments("lower")),
    }
}

fn upper(arguments: &[Value]) -> Result<Value, ValueError> {
    match arguments {
        [Value::Text(value)] => text(value.to_uppercase()),
        _ => Err(wrong_arguments("upper")),
    }
}

fn reverse(arguments: &[Value]) -> Result<Value, ValueError> {
    match arguments {
        [Value::Text(value)] => text(value.chars().rev().collect::<String>()),
        _ => Err(wrong_arguments("reverse")),
    }
}

/// The text to trim and the characters to trim off it.
fn trimming<'a>(arguments: &'a [Value], name: &str) -> Result<(&'a str, &'a str), ValueError> {
    match arguments {
        [Value::Text(value)] => Ok((value, " ")),
        [Value::Text(value), Value::Text(characters)] => Ok((value, characters)),
        _ => Err(wrong_arguments(name)),
    }
}

fn trim_both(arguments: &[Value]) -> Result<Value, ValueError> {
    let (value, characters) = trimming(arguments, "btrim")?;
    text(value.trim_matches(|c| characters.contains(c)))
}

fn trim_left(arguments: &[Value]) -> Result<Value, ValueError> {
    let (value, characters) = trimming(arguments, "ltrim")?;
    text(value.trim_start_matches(|c| characters.contains(c)))
}

fn trim_right(arguments: &[Value]) -> Result<Value, ValueError> {
    let (value, characters) = trimming(arguments, "rtrim")?;
    text(value.trim_end_matches(|c| characters.contains(c)))
}

fn replace(arguments: &[Value]) -> Result<Value, ValueError> {
    match arguments {
        [Value::Text(value), Value::Text(from), _] if from.is_empty() => text(value.as_str()),
        [Value::Text(value), Value::Text(from), Value::Text(to)] => {
            // The estimate is of a text that is nothing but what is replaced.
            if replaced_bytes(value, from, to) > VALUE_BYTES_MAX {
                let times = value.matches(from.as_str()).count() as u64;
                refuse_large(value.len() as u64 + times.saturating_mul(to.len() as u64))?;
            }
            text(value.replace(from, to))
        }
        _ => Err(wrong_arguments("replace")),
    }
}

fn position(arguments: &[Value]) -> Result<Value, ValueError> {
    match arguments {
        [Value::Text(value), Value::Text(part)] => match value.find(part.as_str()) {
            Some(index) => length(value[..index].chars().count() + 1),
            None => Ok(Value::Integer(0)),
        },
        _ => Err(wrong_arguments("strpos")),
    }
}

/// The characters from one position to before another, counted from 0.
fn slice(value: &str, begin: usize, end: usize) -> &str {
    let offset = |position| {
        value
            .char_indices()
            .nth(position)
            .map_or(value.len(), |(index, _)| index)
    };
    let (begin, end) = (offset(begin), offset(end));
    value.get(begin..end).unwrap_or_default()
}

fn substring(arguments: &[Value]) -> Result<Value, ValueError> {
    // Positions count from 1, and those before it count too.
    let (value, begin, end) = match arguments {
        [Value::Text(value), Value::Integer(begin)] => (value, i64::from(*begin), i64::MAX),
        [
            Value::Text(value),
            Value::Integer(begin),
            Value::Integer(count),
        ] => {
            if *count < 0 {
                return Err(ValueError::new(
                    "22011",
                    "negative substring length not allowed",
                ));
            }
            let begin = i64::from(*begin);
            (value, begin, begin + i64::from(*count))
        }
        _ => return Err(wrong_arguments("substr")),
    };
    let position = |at: i64| usize::try_from(at.max(1) - 1).unwrap_or(usize::MAX);
    text(slice(value, position(begin), position(end)))
}

/// The text and how many of its characters a count means, from the one end if
/// it is positive, all but so many from the other if negative.
fn counted<'a>(arguments: &'a [Value], name: &str) -> Result<(&'a str, usize, usize), ValueError> {
    match arguments {
        [Value::Text(value), Value::Integer(count)] => {
            let length = value.chars().count();
            let magnitude = count.unsigned_abs() as usize;
            let taken = if *count < 0 {
                length.saturating_sub(magnitude)
            } else {
                magnitude.min(length)
            };
            Ok((value, length, taken))
        }
        _ => Err(wrong_arguments(name)),
    }
}

fn left(arguments: &[Value]) -> Result<Value, ValueError> {
    let (value, _, taken) = counted(arguments, "left")?;
    text(slice(value, 0, taken))
}

fn right(arguments: &[Value]) -> Result<Value, ValueError> {
    let (value, length, taken) = counted(arguments, "right")?;
    text(slice(value, length - taken, length))
}

fn repeat(arguments: &[Value]) -> Result<Value, ValueError> {
    match arguments {
        [Value::Text(value), Value::Integer(count)] => {
            let count = usize::try_from(*count).unwrap_or(0);
            refuse_large((value.len() as u64).saturating_mul(count as u64))?;
            text(value.repeat(count))
        }
        _ => Err(wrong_arguments("repeat")),
    }
}

/// Cuts a text to a number of characters, or fills it up to them with others.
fn pad(arguments: &[Value], name: &str, at_left: bool) -> Result<Value, ValueError> {
    let (value, target, fill) = match arguments {
        [Value::Text(value), Value::Integer(target)] => (value, *target, " "),
        [
            Value::Text(value),
            Value::Integer(target),
            Value::Text(fill),
        ] => (value, *target, fill.as_str()),
        _ => return Err(wrong_arguments(name)),
    };
    let mut out = String::new();
    pad_to(&mut out, value, i64::from(target), fill, at_left)?;
    text(out)
}

/// `lpad` and `rpad` into `out`.
///
/// # Errors
/// 54000 for a text that no value may have.
pub fn pad_to(
    out: &mut String,
    value: &str,
    target: i64,
    fill: &str,
    at_left: bool,
) -> Result<(), ValueError> {
    let target = usize::try_from(target).unwrap_or(0);
    let kept = slice(value, 0, target);
    let missing = match fill.is_empty() {
        true => 0,
        false => target.saturating_sub(value.chars().count()),
    };
    let added = padded_bytes("", missing as i64, fill);
    refuse_large(added.saturating_add(kept.len() as u64))?;
    out.reserve(added as usize + kept.len());
    if !at_left {
        out.push_str(kept);
    }
    let length = fill.chars().count().max(1);
    out.push_str(&fill.repeat(missing / length));
    out.extend(fill.chars().take(missing % length));
    if at_left {
        out.push_str(kept);
    }
    Ok(())
}

fn pad_left(arguments: &[Value]) -> Result<Value, ValueError> {
    pad(arguments, "lpad", true)
}

fn pad_right(arguments: &[Value]) -> Result<Value, ValueError> {
    pad(arguments, "rpad", false)
}

fn split_part(arguments: &[Value]) -> Result<Value, ValueError> {
    match arguments {
        [_, _, Value::Integer(0)] => {
            Err(ValueError::new("22023", "field position must not be zero"))
        }
        [
            Value::Text(value),
            Value::Text(separator),
            Value::Integer(field),
        ] => {
            let skip = (field.unsigned_abs() - 1) as usize;
            let part = if separator.is_empty() {
                // An empty separator separates nothing.
                (skip == 0).then_some(value.as_str())
            } else if *field > 0 {
                value.split(separator.as_str()).nth(skip)
            } else {
                value.rsplit(separator.as_str()).nth(skip)
            };
            text(part.unwrap_or_default())
        }
        _ => Err(wrong_arguments("split_part")),
    }
}
