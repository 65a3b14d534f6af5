//! Functions of texts. Positions and lengths count characters, not bytes.
//! Cases are mapped as Unicode has it. A `char` argument is without its
//! trailing blanks, as when PostgreSQL converts it to text.

use super::{Function, strict, wrong_arguments};
use crate::text_format::write_text;
use crate::types::DataType;
use crate::value::Value;
use crate::value_error::ValueError;

/// The longest text a function makes, in bytes.
const RESULT_LIMIT_BYTES: usize = 64 << 20;

pub(super) fn lookup(name: &str, types: &[DataType]) -> Option<Function> {
    use DataType::{Bytea, Integer, Text};
    match (name, types) {
        ("concat", _) => {
            return Some(Function {
                arguments: types.to_vec(),
                result: Text,
                call: concat,
                strict: false,
            });
        }
        ("||", [Bytea, Bytea]) => return Some(strict(&[Bytea, Bytea], Bytea, join_bytes)),
        // Anything may be joined to a text.
        ("||", [left, right]) if left.is_text() || right.is_text() => {
            return Some(strict(&[Text, Text], Text, join));
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
        ("replace", [Text, Text, Text]) => of_text(replace),
        ("strpos" | "position", [Text, Text]) => to_integer(position),
        ("substr" | "substring", [Text, Integer] | [Text, Integer, Integer]) => of_text(substring),
        ("left", [Text, Integer]) => of_text(left),
        ("right", [Text, Integer]) => of_text(right),
        ("repeat", [Text, Integer]) => of_text(repeat),
        ("lpad", [Text, Integer] | [Text, Integer, Text]) => of_text(pad_left),
        ("rpad", [Text, Integer] | [Text, Integer, Text]) => of_text(pad_right),
        ("split_part", [Text, Text, Integer]) => of_text(split_part),
        _ => None,
    }
}

#[cold]
fn too_large() -> ValueError {
    ValueError::new("54000", "requested length too large")
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
        [Value::Text(a), Value::Text(b)] => text([a.as_str(), b].concat()),
        _ => Err(wrong_arguments("||")),
    }
}

fn join_bytes(arguments: &[Value]) -> Result<Value, ValueError> {
    match arguments {
        [Value::Bytea(a), Value::Bytea(b)] => Ok(Value::Bytea([a.as_slice(), b].concat())),
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
            let growth = to.len().saturating_sub(from.len());
            if growth.saturating_mul(value.len() / from.len()) > RESULT_LIMIT_BYTES {
                return Err(too_large());
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
            if value.len().saturating_mul(count) > RESULT_LIMIT_BYTES {
                return Err(too_large());
            }
            text(value.repeat(count))
        }
        _ => Err(wrong_arguments("repeat")),
    }
}

/// The text cut to the length, and what is to be added to reach it.
fn padding<'a>(arguments: &'a [Value], name: &str) -> Result<(&'a str, String), ValueError> {
    let (value, target, fill) = match arguments {
        [Value::Text(value), Value::Integer(target)] => (value, *target, " "),
        [
            Value::Text(value),
            Value::Integer(target),
            Value::Text(fill),
        ] => (value, *target, fill.as_str()),
        _ => return Err(wrong_arguments(name)),
    };
    let target = usize::try_from(target).unwrap_or(0);
    if target.saturating_mul(4) > RESULT_LIMIT_BYTES {
        return Err(too_large());
    }
    let missing = target.saturating_sub(value.chars().count());
    let added = match fill {
        "" => String::new(),
        fill => fill.chars().cycle().take(missing).collect(),
    };
    Ok((slice(value, 0, target), added))
}

fn pad_left(arguments: &[Value]) -> Result<Value, ValueError> {
    let (value, added) = padding(arguments, "lpad")?;
    text(added + value)
}

fn pad_right(arguments: &[Value]) -> Result<Value, ValueError> {
    let (value, added) = padding(arguments, "rpad")?;
    text([value, &added].concat())
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
