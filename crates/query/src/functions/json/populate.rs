//! Rows of JSON's objects: `json_populate_record` and its like, where a row
//! that is not NULL says which columns there are.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use super::make::field_name;
use crate::call::Call;
use crate::datum::{Datum, Record};
use crate::domain;
use crate::error::{QueryError, Result};
use crate::types::array::{Array, DIMENSIONS_MAX};
use crate::types::domain::{base_of, is_domain};
use crate::types::json::{DEPTH_MAX, Event, Reader, quote};
use crate::types::user::columns_of;
use crate::types::{self, ids};

/// A part of a text: as it is written, and a string's own characters.
#[derive(Clone, Debug)]
struct Part<'a> {
    raw: &'a str,
    string: Option<Cow<'a, str>>,
}

impl<'a> Part<'a> {
    fn is_null(&self) -> bool {
        self.raw == "null"
    }

    fn is_array(&self) -> bool {
        self.raw.starts_with('[')
    }

    fn is_object(&self) -> bool {
        self.raw.starts_with('{')
    }

    /// The values of a container, and their keys in an object.
    fn parts(&self) -> Result<Vec<(Cow<'a, str>, Self)>> {
        let mut reader = Reader::new(self.raw, true, DEPTH_MAX);
        reader.next()?;
        let mut parts = Vec::new();
        let mut key = Cow::Borrowed("");
        let mut start = 0;
        while let Some(token) = reader.next()? {
            let level = reader.level();
            let event = match token.event {
                Event::Key(found) => {
                    if level == 1 {
                        key = found;
                    }
                    continue;
                }
                event => event,
            };
            if event.begins_value() && level == 1 + usize::from(!event.ends_value()) {
                start = token.start;
            }
            if event.ends_value() && level == 1 {
                let part = Self {
                    raw: &self.raw[start..token.end],
                    string: match event {
                        Event::String(text) => Some(text),
                        _ => None,
                    },
                };
                parts.push((std::mem::take(&mut key), part));
            }
        }
        Ok(parts)
    }
}

/// The whole of a text.
fn whole(text: &str) -> Part<'_> {
    Part {
        raw: text.trim_matches([' ', '\t', '\n', '\r']),
        string: None,
    }
}

/// A row with what an object says of its columns.
fn record(call: &Call<'_>, object: &Part<'_>, base: &Arc<Record>) -> Result<Datum> {
    if !object.is_object() {
        return Err(QueryError::invalid_parameter(format!(
            "cannot call populate_composite on {}",
            if object.is_array() {
                "an array"
            } else {
                "a scalar"
            }
        )));
    }
    let fields: HashMap<_, _> = object.parts()?.into_iter().collect();
    let modifier = |place: usize| {
        let modifiers = base.modifiers.as_deref();
        modifiers.map_or(-1, |modifiers| modifiers[place])
    };
    let mut values = Vec::with_capacity(base.values.len());
    for (place, (oid, value)) in base.types.iter().zip(&base.values).enumerate() {
        let column = field_name(base, place);
        values.push(match fields.get(&*column) {
            None => {
                domain::check(call, *oid, value)?;
                value.clone()
            }
            Some(part) => field(call, (*oid, modifier(place)), Some(&column), value, part)?,
        });
    }
    Ok(Datum::Record(Arc::new(Record {
        modifiers: base.modifiers.clone(),
        types: Arc::clone(&base.types),
        names: base.names.clone(),
        values,
    })))
}

/// The value of a column.
fn field(
    call: &Call<'_>,
    (oid, modifier): (u32, i32),
    column: Option<&str>,
    base: &Datum,
    part: &Part<'_>,
) -> Result<Datum> {
    if is_domain(oid) {
        let value = field(call, base_of(oid, modifier), column, base, part)?;
        return domain::check(call, oid, &value).map(|()| value);
    }
    if part.is_null() {
        return Ok(Datum::Null);
    }
    if part.string.is_none() {
        if let Some(element) = types::element_of(oid) {
            return Filler {
                call,
                element,
                modifier,
                column,
                elements: Vec::new(),
                lengths: Vec::new(),
                open: Vec::new(),
            }
            .fill(part);
        }
        if let Some(base) = row_of(oid, base) {
            return record(call, part, &base);
        }
        if oid == ids::RECORD {
            return Err(no_row("json_populate_record"));
        }
    }
    match &part.string {
        Some(text) if matches!(oid, ids::JSON | ids::JSONB) => {
            let mut quoted = String::new();
            quote(text, &mut quoted);
            types::input(call, oid, &quoted, -1)
        }
        Some(text) => types::input(call, oid, text, modifier),
        None => types::input(call, oid, part.raw, modifier),
    }
}

/// Fills an array from arrays within each other.
struct Filler<'a> {
    call: &'a Call<'a>,
    element: u32,
    /// The elements' modifier.
    modifier: i32,
    column: Option<&'a str>,
    elements: Vec<Datum>,
    /// The lengths of the dimensions, as far as they are known; empty before
    /// their number is.
    lengths: Vec<Option<usize>>,
    /// The places in the arrays that are open, for messages.
    open: Vec<usize>,
}

impl Filler<'_> {
    fn fill(mut self, part: &Part<'_>) -> Result<Datum> {
        if !part.is_array() {
            return Err(self.expected_array());
        }
        self.level(part)?;
        if self.elements.is_empty() {
            return Ok(Datum::Array(Arc::new(Array::of(self.element, Vec::new()))));
        }
        let dimensions = self
            .lengths
            .iter()
            .map(|length| (i32::try_from(length.unwrap_or(0)).unwrap_or(i32::MAX), 1))
            .collect();
        Ok(Datum::Array(Arc::new(Array {
            element: self.element,
            dimensions,
            elements: self.elements,
        })))
    }

    fn level(&mut self, part: &Part<'_>) -> Result<()> {
        let depth = self.open.len();
        if depth >= DIMENSIONS_MAX {
            return Err(QueryError::new(
                "54000",
                format!(
                    "number of array dimensions ({}) exceeds the maximum allowed ({DIMENSIONS_MAX})",
                    depth + 1
                ),
            ));
        }
        let parts = part.parts()?;
        if self.lengths.is_empty() && !parts.first().is_some_and(|(_, part)| part.is_array()) {
            self.lengths = vec![None; depth + 1];
        }
        self.open.push(0);
        for (place, (_, part)) in parts.iter().enumerate() {
            self.open[depth] = place;
            if !self.lengths.is_empty() && depth + 1 == self.lengths.len() {
                let value = field(
                    self.call,
                    (self.element, self.modifier),
                    None,
                    &Datum::Null,
                    part,
                )?;
                self.elements.push(value);
            } else if part.is_array() {
                self.level(part)?;
            } else {
                return Err(self.expected_array());
            }
        }
        self.open.pop();
        match self.lengths.get_mut(depth) {
            Some(Some(length)) if *length != parts.len() => Err(QueryError::new(
                "22P02",
                "malformed JSON array",
            )
            .with_detail("Multidimensional arrays must have sub-arrays with matching dimensions.")),
            Some(length) => {
                *length = Some(parts.len());
                Ok(())
            }
            None => Ok(()),
        }
    }

    #[cold]
    fn expected_array(&self) -> QueryError {
        let error = QueryError::new("22P02", "expected JSON array");
        let places: String = self.open.iter().map(|place| format!("[{place}]")).collect();
        match (self.column, places.as_str()) {
            (Some(column), "") => error.with_hint(format!("See the value of key \"{column}\".")),
            (Some(column), places) => error.with_hint(format!(
                "See the array element {places} of key \"{column}\"."
            )),
            (None, "") => error,
            (None, places) => error.with_hint(format!("See the array element {places}.")),
        }
    }
}

#[cold]
fn no_row(name: &str) -> QueryError {
    QueryError::unsupported(
        format!("could not determine row type for result of {name}"),
        "Provide a non-null record argument, or call the function in the FROM clause using a column definition list.",
    )
}

/// The text of an argument of `json` or `jsonb`.
fn argument_text(value: &Datum) -> Option<Cow<'_, str>> {
    match value {
        Datum::Text(text) => Some(Cow::Borrowed(text)),
        Datum::Jsonb(tree) => {
            let mut out = String::new();
            tree.write(&mut out);
            Some(Cow::Owned(out))
        }
        _ => None,
    }
}

/// The row that a value is, or the NULLs that stand for a NULL of a composite type.
fn row_of(oid: u32, value: &Datum) -> Option<Arc<Record>> {
    match value {
        Datum::Record(record) => Some(Arc::clone(record)),
        Datum::Null => Some(Arc::new(columns_of(oid).ok()?.nulls())),
        _ => None,
    }
}

/// The row whose columns are filled.
fn base(call: &Call<'_>, name: &str, arguments: &[Datum]) -> Result<Arc<Record>> {
    let oid = call.arguments.first().copied().unwrap_or(ids::RECORD);
    row_of(oid, &arguments[0]).ok_or_else(|| wrong_base(call, name))
}

fn populate(call: &Call<'_>, name: &str, arguments: &[Datum]) -> Result<Datum> {
    let base = base(call, name, arguments)?;
    match argument_text(&arguments[1]) {
        None => Ok(arguments[0].clone()),
        Some(text) => filled(call, &whole(&text), &base),
    }
}

/// A row with what an object says of its columns, as the type of the row that was given.
fn filled(call: &Call<'_>, object: &Part<'_>, base: &Arc<Record>) -> Result<Datum> {
    let row = record(call, object, base)?;
    let given = call.arguments.first().copied().unwrap_or(ids::RECORD);
    domain::check(call, given, &row).map(|()| row)
}

/// What is said of a base that is no row.
#[cold]
fn wrong_base(call: &Call<'_>, name: &str) -> QueryError {
    match call.arguments.first() {
        Some(&ids::RECORD) | None => no_row(name),
        Some(_) => QueryError::new(
            "42804",
            format!("first argument of {name} must be a row type"),
        ),
    }
}

fn populate_set(call: &Call<'_>, name: &str, arguments: &[Datum]) -> Result<Vec<Datum>> {
    let base = base(call, name, arguments)?;
    let Some(text) = argument_text(&arguments[1]) else {
        return Ok(Vec::new());
    };
    let whole = whole(&text);
    if !whole.is_array() {
        let found = match (whole.is_object(), arguments[1].clone()) {
            (true, Datum::Jsonb(_)) => "a non-array",
            (true, _) => "an object",
            (false, Datum::Jsonb(_)) => "a non-array",
            (false, _) => "a scalar",
        };
        return Err(QueryError::invalid_parameter(format!(
            "cannot call {name} on {found}"
        )));
    }
    whole
        .parts()?
        .iter()
        .map(|(_, part)| {
            if !part.is_object() {
                return Err(QueryError::invalid_parameter(format!(
                    "argument of {name} must be an array of objects"
                )));
            }
            filled(call, part, &base)
        })
        .collect()
}

pub(super) fn json_populate_record(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    populate(call, "json_populate_record", arguments)
}

pub(super) fn json_populate_recordset(call: &Call<'_>, arguments: &[Datum]) -> Result<Vec<Datum>> {
    populate_set(call, "json_populate_recordset", arguments)
}

pub(in super::super) fn jsonb_populate_record(
    call: &Call<'_>,
    arguments: &[Datum],
) -> Result<Datum> {
    populate(call, "jsonb_populate_record", arguments)
}

pub(in super::super) fn jsonb_populate_recordset(
    call: &Call<'_>,
    arguments: &[Datum],
) -> Result<Vec<Datum>> {
    populate_set(call, "jsonb_populate_recordset", arguments)
}

/// `json_to_record` and its like: of what columns the row is, the analysis says by a call of
/// `json_populate_record` in its place ([`POPULATING`]).
pub(in super::super) fn without_columns<T>(name: &str) -> Result<T> {
    Err(no_row(name))
}

/// The functions that make rows of the columns that are listed behind them, and those that fill
/// a row with its columns.
pub(crate) const POPULATING: [(u32, u32); 4] =
    [(3204, 3960), (3205, 3961), (3490, 3209), (3491, 3475)];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Plain;

    #[test]
    fn columns_come_from_fields() {
        let environment = Plain::default();
        let call = Call::new(&environment, &[ids::RECORD, ids::JSON], ids::RECORD);
        let base = Datum::Record(Arc::new(Record {
            modifiers: None,
            types: [ids::INT4, ids::TEXT, ids::JSON, ids::INT4_ARRAY].into(),
            names: Some(["a".into(), "b".into(), "c".into(), "d".into()].into()),
            values: vec![Datum::Int4(1), Datum::Null, Datum::Null, Datum::Null],
        }));
        let json =
            Datum::text(" {\"b\": [1, 2], \"c\": \"x\\n\", \"d\": [[1, 2], [3, null]], \"e\": 1}");
        let row = json_populate_record(&call, &[base.clone(), json]).unwrap();
        let [
            Datum::Int4(1),
            Datum::Text(b),
            Datum::Text(c),
            Datum::Array(d),
        ] = row.as_record().values.as_slice()
        else {
            panic!("{row:?}")
        };
        assert_eq!((&**b, &**c), ("[1, 2]", "\"x\\n\""));
        assert_eq!(d.dimensions, [(2, 1), (2, 1)]);
        for (text, message) in [
            ("[]", "cannot call populate_composite on an array"),
            ("{\"d\": [[1], [1, 2]]}", "malformed JSON array"),
            ("{\"d\": 1}", "expected JSON array"),
            ("{\"d\": [[1], 2]}", "expected JSON array"),
        ] {
            let error =
                json_populate_record(&call, &[base.clone(), Datum::text(text)]).unwrap_err();
            assert_eq!(error.message, message);
        }
    }
}
