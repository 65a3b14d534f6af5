//! Parts of a text of `json`: `->`, `#>`, lengths and kinds.

use std::sync::Arc;

use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::array::Array;
use crate::types::json::{DEPTH_MAX, Event, Reader};
use crate::types::jsonb::index_of;

/// One step of a path: the key that it means in an object, the place in an array.
struct Step<'a> {
    key: Option<&'a str>,
    index: Option<i32>,
}

/// The texts of a path; `None` where one of them is NULL.
pub(in super::super) fn path_of(path: &Array) -> Option<Vec<&str>> {
    path.elements
        .iter()
        .map(|step| match step {
            Datum::Text(text) => Some(&**text),
            _ => None,
        })
        .collect()
}

/// Where the search is, level by level.
struct Search<'a> {
    steps: Vec<Step<'a>>,
    /// Whether the way to this level is the path's.
    on_path: Vec<bool>,
    /// Whether the value that is open at this level is the step's.
    matched: Vec<bool>,
    /// The place of the value in the array that is open at this level.
    places: Vec<i64>,
    /// The place in that array that is wanted.
    wanted: Vec<i64>,
}

impl Search<'_> {
    /// A value begins below `level` containers: whether it is what the path leads to.
    fn begins(&mut self, level: usize, key: Option<&str>) -> bool {
        let Some(above) = level.checked_sub(1) else {
            return self.steps.is_empty();
        };
        let Some(step) = self.steps.get(above) else {
            return false;
        };
        let matched = match key {
            Some(key) => step.key == Some(key),
            None => {
                self.places[above] += 1;
                step.index.is_some() && self.places[above] == self.wanted[above]
            }
        } && self.on_path[above];
        self.matched[above] = matched;
        if matched && level < self.steps.len() {
            self.on_path[level] = true;
            return false;
        }
        matched
    }

    /// It ends: whether it was what the path leads to.
    fn ends(&mut self, level: usize) -> bool {
        let Some(above) = level.checked_sub(1) else {
            return self.steps.is_empty();
        };
        if !self.matched.get(above).copied().unwrap_or(false) {
            return false;
        }
        self.matched[above] = false;
        if level < self.steps.len() {
            self.on_path[level] = false;
            return false;
        }
        true
    }
}

/// The value at a path: as it is written, or as a text.
fn extract(text: &str, steps: Vec<Step<'_>>, as_text: bool) -> Result<Datum> {
    let count = steps.len();
    let wanted = steps
        .iter()
        .map(|step| step.index.map_or(0, i64::from))
        .collect();
    let mut search = Search {
        steps,
        on_path: vec![false; count],
        matched: vec![false; count],
        places: vec![-1; count],
        wanted,
    };
    if let Some(first) = search.on_path.first_mut() {
        *first = true;
    }
    let mut reader = Reader::new(text, true, DEPTH_MAX);
    let mut found = Datum::Null;
    let mut start = 0;
    // The key of the value that comes, where it is one of an object.
    let mut key = None;
    loop {
        let before = reader.clone_at_array(&search.steps);
        let Some(token) = reader.next()? else {
            return Ok(found);
        };
        let event = match token.event {
            Event::Key(found) => {
                key = Some(found);
                continue;
            }
            event => event,
        };
        if event.begins_value() {
            let level = reader.level() - usize::from(!event.ends_value());
            if search.begins(level, key.take().as_deref()) {
                found = Datum::Null;
                start = if level == 0 && event.ends_value() {
                    0
                } else {
                    token.start
                };
            }
            if matches!(event, Event::ArrayStart) && level < count {
                search.places[level] = -1;
                // As in PostgreSQL, the first array at this level that is long enough says
                // what place a negative number means, be it on the path or not.
                if let (Some(before), wanted @ ..0) = (before, search.wanted[level]) {
                    let length = count_elements(before)?;
                    if -wanted <= length {
                        search.wanted[level] += length;
                    }
                }
            }
        }
        if event.ends_value() && search.ends(reader.level()) {
            found = match event {
                Event::String(text) if as_text => Datum::text(text),
                Event::Null if as_text => Datum::Null,
                _ => Datum::text(&text[start..token.end]),
            };
        }
    }
}

/// How many elements the array has that the reader comes to next.
fn count_elements(mut reader: Reader<'_>) -> Result<i64> {
    let level = reader.level();
    let mut count = 0;
    while let Some(token) = reader.next()? {
        let open = reader.level();
        if token.event.ends_value() {
            if open == level {
                break;
            }
            if open == level + 1 {
                count += 1;
            }
        }
    }
    Ok(count)
}

/// A copy of the reader where an array might need to be counted.
trait Ahead<'a> {
    fn clone_at_array(&self, steps: &[Step<'_>]) -> Option<Reader<'a>>;
}

impl<'a> Ahead<'a> for Reader<'a> {
    fn clone_at_array(&self, steps: &[Step<'_>]) -> Option<Reader<'a>> {
        steps
            .get(self.level())
            .is_some_and(|step| step.index.is_some_and(|index| index < 0))
            .then(|| self.clone())
    }
}

fn by_key(arguments: &[Datum], as_text: bool) -> Result<Datum> {
    let step = Step {
        key: Some(arguments[1].as_text()),
        index: None,
    };
    extract(arguments[0].as_text(), vec![step], as_text)
}

fn by_index(arguments: &[Datum], as_text: bool) -> Result<Datum> {
    let step = Step {
        key: None,
        index: Some(arguments[1].as_int4()),
    };
    extract(arguments[0].as_text(), vec![step], as_text)
}

fn by_path(arguments: &[Datum], as_text: bool) -> Result<Datum> {
    let Some(path) = path_of(arguments[1].as_array()) else {
        return Ok(Datum::Null);
    };
    let steps = path
        .into_iter()
        .map(|step| Step {
            key: Some(step),
            index: index_of(step).filter(|index| *index != i32::MIN),
        })
        .collect();
    extract(arguments[0].as_text(), steps, as_text)
}

pub(super) fn json_object_field(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    by_key(arguments, false)
}

pub(super) fn json_object_field_text(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    by_key(arguments, true)
}

pub(super) fn json_array_element(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    by_index(arguments, false)
}

pub(super) fn json_array_element_text(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    by_index(arguments, true)
}

pub(super) fn json_extract_path(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    by_path(arguments, false)
}

pub(super) fn json_extract_path_text(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    by_path(arguments, true)
}

pub(super) fn json_array_length(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let text = arguments[0].as_text();
    let mut reader = Reader::new(text, false, DEPTH_MAX);
    match reader.next()?.map(|token| token.event) {
        Some(Event::ArrayStart) => {}
        Some(Event::ObjectStart) => {
            return Err(QueryError::invalid_parameter(
                "cannot get array length of a non-array",
            ));
        }
        _ => {
            return Err(QueryError::invalid_parameter(
                "cannot get array length of a scalar",
            ));
        }
    }
    let count = count_elements(Reader::new(text, false, DEPTH_MAX))?;
    Ok(Datum::Int4(i32::try_from(count).unwrap_or(i32::MAX)))
}

pub(super) fn json_typeof(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let text = arguments[0].as_text();
    let first = text
        .trim_start_matches([' ', '\t', '\n', '\r'])
        .bytes()
        .next();
    let kind: Arc<str> = match first {
        Some(b'{') => "object",
        Some(b'[') => "array",
        Some(b'"') => "string",
        Some(b't' | b'f') => "boolean",
        Some(b'n') => "null",
        _ => "number",
    }
    .into();
    Ok(Datum::Text(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, path: &[&str], as_text: bool) -> Option<String> {
        let steps = path
            .iter()
            .map(|step| Step {
                key: Some(step),
                index: index_of(step),
            })
            .collect();
        match extract(text, steps, as_text).unwrap() {
            Datum::Text(text) => Some(text.to_string()),
            _ => None,
        }
    }

    #[test]
    fn paths_lead_to_the_last_of_equal_keys() {
        let text = " {\"a\": 1, \"b\": {\"c\": [1, [2,\"x\\n\"], null]}, \"a\" : {\"x\": 3} } ";
        for (path, json, plain) in [
            (&[][..], Some(text.trim()), Some(text.trim())),
            (&["a"], Some("{\"x\": 3}"), Some("{\"x\": 3}")),
            (&["b", "c", "0"], Some("1"), Some("1")),
            (&["b", "c", "-2", "1"], Some("\"x\\n\""), Some("x\n")),
            (&["b", "c", "2"], Some("null"), None),
            (&["b", "c", "-4"], None, None),
            (&["b", "c", "3"], None, None),
            (&["c"], None, None),
            (&["a", "x", "y"], None, None),
        ] {
            assert_eq!(at(text, path, false).as_deref(), json, "{path:?}");
            assert_eq!(at(text, path, true).as_deref(), plain, "{path:?}");
        }
        assert_eq!(at(" 1 ", &[], false).as_deref(), Some(" 1"));
    }
}
