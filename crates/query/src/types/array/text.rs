//! The text form of arrays: `{1,NULL,"a b"}`, `[0:1]={5,6}`.

use super::{
    Array, DIMENSIONS_MAX, check_bounds, count, room, subscript_error, too_many_dimensions,
};
use crate::call::{Call, SMALL_VALUE_BYTES};
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::Element;
use crate::types::domain::is_domain;

const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

#[cold]
fn malformed(text: &str) -> QueryError {
    QueryError::new("22P02", format!("malformed array literal: \"{text}\""))
}

#[cold]
fn malformed_as(text: &str, detail: &str) -> QueryError {
    malformed(text).with_detail(detail)
}

#[cold]
fn unexpected(text: &str, found: char) -> QueryError {
    malformed(text).with_detail(format!("Unexpected \"{found}\" character."))
}

/// The byte at a place; zero beyond the end.
fn at(bytes: &[u8], place: usize) -> u8 {
    bytes.get(place).copied().unwrap_or(0)
}

/// A whole number as C's `atoi` reads it: what follows is left, what is too large is cut.
#[allow(clippy::cast_possible_truncation, reason = "as C does")]
fn number(bytes: &[u8]) -> i32 {
    let (negative, digits) = match bytes.first() {
        Some(b'-') => (true, &bytes[1..]),
        Some(b'+') => (false, &bytes[1..]),
        _ => (false, bytes),
    };
    let mut value = 0_i64;
    for byte in digits.iter().take_while(|byte| byte.is_ascii_digit()) {
        let digit = i64::from(byte - b'0');
        let next = value.checked_mul(10).and_then(|value| {
            if negative {
                value.checked_sub(digit)
            } else {
                value.checked_add(digit)
            }
        });
        match next {
            Some(next) => value = next,
            None => return if negative { i64::MIN } else { i64::MAX } as i32,
        }
    }
    value as i32
}

/// Where the signs and digits from `from` on end.
fn number_end(bytes: &[u8], mut from: usize) -> usize {
    while matches!(at(bytes, from), b'0'..=b'9' | b'-' | b'+') {
        from += 1;
    }
    from
}

/// Reads the bounds before the braces: `[1:2][0:3]`; gives where they end, too.
fn bounds(text: &str) -> Result<(Vec<(i32, i32)>, usize)> {
    let bytes = text.as_bytes();
    let (mut given, mut place) = (Vec::new(), 0);
    loop {
        while is_space(at(bytes, place)) {
            place += 1;
        }
        if at(bytes, place) != b'[' {
            return Ok((given, place));
        }
        place += 1;
        if given.len() >= DIMENSIONS_MAX {
            return Err(too_many_dimensions(given.len() + 1));
        }
        let mut end = number_end(bytes, place);
        if end == place {
            return Err(malformed_as(
                text,
                "\"[\" must introduce explicitly-specified array dimensions.",
            ));
        }
        let mut lower = 1;
        if at(bytes, end) == b':' {
            lower = number(&bytes[place..end]);
            place = end + 1;
            end = number_end(bytes, place);
            if end == place {
                return Err(malformed_as(text, "Missing array dimension value."));
            }
        }
        if at(bytes, end) != b']' {
            return Err(malformed_as(text, "Missing \"]\" after array dimensions."));
        }
        let upper = number(&bytes[place..end]);
        place = end + 1;
        if upper < lower {
            return Err(subscript_error(
                "upper bound cannot be less than lower bound",
            ));
        }
        // A length beyond its type becomes negative, which `count` refuses.
        given.push((upper.wrapping_sub(lower).wrapping_add(1), lower));
    }
}

pub(in crate::types) fn input(
    call: &Call<'_>,
    element: Element,
    text: &str,
    modifier: i32,
) -> Result<Datum> {
    let bytes = text.as_bytes();
    let (given, mut place) = bounds(text)?;
    let dimensions = if given.is_empty() {
        if at(bytes, place) != b'{' {
            return Err(malformed_as(
                text,
                "Array value must start with \"{\" or dimension information.",
            ));
        }
        let lengths = measure(&text[place..])?;
        lengths.into_iter().map(|length| (length, 1)).collect()
    } else {
        if at(bytes, place) != b'=' {
            return Err(malformed_as(text, "Missing \"=\" after array dimensions."));
        }
        place += 1;
        while is_space(at(bytes, place)) {
            place += 1;
        }
        if at(bytes, place) != b'{' {
            return Err(malformed_as(text, "Array contents must start with \"{\"."));
        }
        let lengths = measure(&text[place..])?;
        if !lengths.iter().eq(given.iter().map(|(length, _)| length)) {
            return Err(malformed_as(
                text,
                "Specified array dimensions do not match array contents.",
            ));
        }
        given
    };
    let items = count(&dimensions)?;
    check_bounds(&dimensions)?;
    if items == 0 {
        return Ok(Datum::Array(Array::empty(element.oid).into()));
    }
    room(call, items)?;
    let elements = read(
        call,
        element,
        modifier,
        text,
        &bytes[place..],
        &dimensions,
        items,
    )?;
    Ok(Datum::Array(
        Array {
            element: element.oid,
            dimensions,
            elements,
        }
        .into(),
    ))
}

/// What was read last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Nothing,
    LevelStarted,
    Element,
    Quoted,
    QuotedEnd,
    ElementDelimited,
    LevelEnd,
    LevelDelimited,
}

/// The lengths of an array's dimensions, from its braces; none for an empty
/// one. All that can be wrong with braces, quotes and commas is found here.
fn measure(text: &str) -> Result<Vec<i32>> {
    let bytes = text.as_bytes();
    let (mut level, mut depth) = (0_usize, 1_usize);
    let mut lengths = [0_i32; DIMENSIONS_MAX];
    // The number of elements of the braces that are open at each level, and of those before.
    let (mut here, mut before) = ([1_i32; DIMENSIONS_MAX], [0_i32; DIMENSIONS_MAX]);
    let (mut in_quotes, mut empty, mut done) = (false, true, false);
    let mut state = State::Nothing;
    let mut place = 0;
    while !done {
        loop {
            if matches!(state, State::Element | State::Quoted) {
                empty = false;
            }
            let mut item_done = false;
            match at(bytes, place) {
                0 => return Err(malformed_as(text, "Unexpected end of input.")),
                b'\\' => {
                    if !matches!(
                        state,
                        State::LevelStarted
                            | State::Element
                            | State::Quoted
                            | State::ElementDelimited
                    ) {
                        return Err(unexpected(text, '\\'));
                    }
                    if state != State::Quoted {
                        state = State::Element;
                    }
                    place += 1;
                    if at(bytes, place) == 0 {
                        return Err(malformed_as(text, "Unexpected end of input."));
                    }
                }
                b'"' => {
                    if !matches!(
                        state,
                        State::LevelStarted | State::Quoted | State::ElementDelimited
                    ) {
                        return Err(malformed_as(text, "Unexpected array element."));
                    }
                    in_quotes = !in_quotes;
                    state = if in_quotes {
                        State::Quoted
                    } else {
                        State::QuotedEnd
                    };
                }
                _ if in_quotes => {}
                b'{' => {
                    if !matches!(
                        state,
                        State::Nothing | State::LevelStarted | State::LevelDelimited
                    ) {
                        return Err(unexpected(text, '{'));
                    }
                    state = State::LevelStarted;
                    if level >= DIMENSIONS_MAX {
                        return Err(too_many_dimensions(level + 1));
                    }
                    lengths[level] = 0;
                    level += 1;
                    depth = depth.max(level);
                }
                b'}' => {
                    let allowed =
                        matches!(state, State::Element | State::QuotedEnd | State::LevelEnd)
                            || (level == 1 && state == State::LevelStarted);
                    if !allowed || level == 0 {
                        return Err(unexpected(text, '}'));
                    }
                    state = State::LevelEnd;
                    level -= 1;
                    if before[level] != 0 && here[level] != before[level] {
                        return Err(malformed_as(
                            text,
                            "Multidimensional arrays must have sub-arrays with matching dimensions.",
                        ));
                    }
                    before[level] = here[level];
                    here[level] = 1;
                    if level == 0 {
                        done = true;
                        item_done = true;
                    } else {
                        lengths[level - 1] = lengths[level - 1].saturating_add(1);
                    }
                }
                b',' => {
                    if !matches!(state, State::Element | State::QuotedEnd | State::LevelEnd) {
                        return Err(unexpected(text, ','));
                    }
                    state = if state == State::LevelEnd {
                        State::LevelDelimited
                    } else {
                        State::ElementDelimited
                    };
                    item_done = true;
                    if let Some(here) = level.checked_sub(1).and_then(|top| here.get_mut(top)) {
                        *here = here.saturating_add(1);
                    }
                }
                byte if !is_space(byte) => {
                    if !matches!(
                        state,
                        State::LevelStarted | State::Element | State::ElementDelimited
                    ) {
                        return Err(malformed_as(text, "Unexpected array element."));
                    }
                    state = State::Element;
                }
                _ => {}
            }
            place += 1;
            if item_done {
                break;
            }
        }
        lengths[depth - 1] = lengths[depth - 1].saturating_add(1);
    }
    if bytes[place..].iter().any(|byte| !is_space(*byte)) {
        return Err(malformed_as(text, "Junk after closing right brace."));
    }
    Ok(if empty {
        Vec::new()
    } else {
        lengths[..depth].to_vec()
    })
}

/// Reads the elements of an array whose dimensions are known.
fn read(
    call: &Call<'_>,
    element: Element,
    modifier: i32,
    text: &str,
    bytes: &[u8],
    dimensions: &[(i32, i32)],
    items: usize,
) -> Result<Vec<Datum>> {
    let depth = dimensions.len();
    let mut steps = [1_usize; DIMENSIONS_MAX];
    for level in (0..depth - 1).rev() {
        let length = usize::try_from(dimensions[level + 1].0).unwrap_or(0);
        steps[level] = steps[level + 1].saturating_mul(length);
    }
    let mut index = [0_usize; DIMENSIONS_MAX];
    let offset = |index: &[usize; DIMENSIONS_MAX]| -> usize {
        (0..depth)
            .map(|level| index[level].saturating_mul(steps[level]))
            .sum()
    };
    // In the usual order elements are appended; what was left out is NULL.
    let mut elements: Vec<Datum> = Vec::with_capacity(items);
    let mut item = Vec::new();
    let (mut level, mut place, mut done, mut read) = (0_usize, 0, false, 0_usize);
    while !done {
        let (mut in_quotes, mut leading, mut quoted) = (false, true, false);
        let mut item_place = None;
        let mut end = 0;
        item.clear();
        loop {
            let byte = at(bytes, place);
            place += 1;
            match byte {
                0 => return Err(malformed(text)),
                b'\\' => {
                    let next = at(bytes, place);
                    if next == 0 {
                        return Err(malformed(text));
                    }
                    item.push(next);
                    place += 1;
                    leading = false;
                    quoted = true;
                    end = item.len();
                }
                b'"' => {
                    in_quotes = !in_quotes;
                    if in_quotes {
                        leading = false;
                    } else {
                        end = item.len();
                    }
                    quoted = true;
                }
                byte if in_quotes => item.push(byte),
                b'{' => {
                    if level >= depth {
                        return Err(malformed(text));
                    }
                    index[level] = 0;
                    level += 1;
                }
                b'}' => {
                    if level == 0 {
                        return Err(malformed(text));
                    }
                    item_place.get_or_insert_with(|| offset(&index));
                    level -= 1;
                    index[level] = 0;
                    if level == 0 {
                        done = true;
                        break;
                    }
                    index[level - 1] += 1;
                }
                b',' => {
                    item_place.get_or_insert_with(|| offset(&index));
                    index[depth - 1] += 1;
                    break;
                }
                byte if is_space(byte) => {
                    if !leading {
                        item.push(byte);
                    }
                }
                byte => {
                    item.push(byte);
                    leading = false;
                    end = item.len();
                }
            }
        }
        item.truncate(end);
        let item_place = item_place.unwrap_or(items);
        if item_place >= items {
            return Err(malformed(text));
        }
        let value = if !quoted && item.eq_ignore_ascii_case(b"NULL") {
            crate::domain::check(call, element.oid, &Datum::Null)?;
            Datum::Null
        } else {
            let item = std::str::from_utf8(&item).map_err(|_| malformed(text))?;
            match is_domain(element.oid) {
                true => crate::types::input(call, element.oid, item, modifier)?,
                false => (element.row.input)(call, item, modifier)?,
            }
        };
        if item_place >= elements.len() {
            elements.resize(item_place, Datum::Null);
            elements.push(value);
        } else {
            elements[item_place] = value;
        }
        read += 1;
        if read.is_multiple_of(4096) {
            call.environment.check_interrupted()?;
        }
    }
    elements.resize(items, Datum::Null);
    Ok(elements)
}

/// Whether an element's text can't stand in an array as it is.
fn needs_quotes(text: &str) -> bool {
    text.is_empty()
        || text
            .bytes()
            .any(|byte| matches!(byte, b'"' | b'\\' | b'{' | b'}' | b',') || is_space(byte))
        || text.eq_ignore_ascii_case("NULL")
}

pub(in crate::types) fn output(
    call: &Call<'_>,
    element: Element,
    value: &Datum,
    out: &mut String,
) -> Result<()> {
    let array = value.as_array();
    if array.elements.is_empty() {
        out.push_str("{}");
        return Ok(());
    }
    if array.dimensions.iter().any(|(_, lower)| *lower != 1) {
        for (length, lower) in &array.dimensions {
            let upper = i64::from(*lower) + i64::from(*length) - 1;
            out.push_str(&format!("[{lower}:{upper}]"));
        }
        out.push('=');
    }
    let begin = out.len();
    let mut asked = SMALL_VALUE_BYTES;
    let depth = array.dimensions.len();
    let mut index = [0_i32; DIMENSIONS_MAX];
    // From which dimension on braces are to be opened before the next element.
    let mut open = 0;
    for (number, value) in array.elements.iter().enumerate() {
        for _ in open..depth {
            out.push('{');
        }
        let start = out.len();
        if value.is_null() {
            out.push_str("NULL");
        } else {
            (element.row.output)(call, value, out)?;
            if needs_quotes(&out[start..]) {
                let text = out.split_off(start);
                out.push('"');
                for char in text.chars() {
                    if matches!(char, '"' | '\\') {
                        out.push('\\');
                    }
                    out.push(char);
                }
                out.push('"');
            }
        }
        let length = out.len() - begin;
        if length > asked {
            asked = length.saturating_mul(2);
            call.room(asked.min(crate::call::VALUE_BYTES_MAX).max(length))?;
        }
        if number % 4096 == 4095 {
            call.environment.check_interrupted()?;
        }
        open = 0;
        for level in (0..depth).rev() {
            index[level] += 1;
            if index[level] < array.dimensions[level].0 {
                out.push(',');
                open = level + 1;
                break;
            }
            index[level] = 0;
            out.push('}');
        }
    }
    Ok(())
}
