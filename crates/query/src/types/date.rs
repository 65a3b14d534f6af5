//! `date` and its text forms.

use super::datetime::point::{self, Meaning};
use super::datetime::split::{DATE_ROOM, Split};
use super::datetime::{self, Fields, show};
use super::{Type, ids};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};

/// `-infinity`
pub const EARLY: i32 = i32::MIN;
/// `infinity`
pub const LATE: i32 = i32::MAX;

/// The types of this file.
pub const TYPES: &[Type] = &[Type {
    length: 4,
    category: b'D',
    array: ids::DATE_ARRAY,
    input,
    output,
    receive,
    send,
    compare: Some(|a, b| a.as_date().cmp(&b.as_date())),
    ..Type::new(ids::DATE, "date", "date")
}];

/// Whether a date is no infinity.
#[must_use]
#[inline]
pub const fn is_finite(date: i32) -> bool {
    date != EARLY && date != LATE
}

/// A finite date taken apart.
#[must_use]
pub fn fields_of(date: i32) -> Fields {
    let mut fields = Fields::default();
    fields.set_julian(date.wrapping_add(datetime::EPOCH_JULIAN));
    fields
}

/// The date; `None` where there is none.
#[must_use]
pub fn of_fields(fields: &Fields) -> Option<i32> {
    if !fields.is_countable() {
        return None;
    }
    let date = fields.julian().checked_sub(datetime::EPOCH_JULIAN)?;
    datetime::is_date(date).then_some(date)
}

fn input(call: &Call<'_>, text: &str, _: i32) -> Result<Datum> {
    let point = Split::new(text, DATE_ROOM)
        .and_then(|split| point::date_time(call, &split))
        .map_err(|bad| bad.error(text, "date"))?;
    let fields = match point.meaning {
        Meaning::Early => return Ok(Datum::Date(EARLY)),
        Meaning::Late => return Ok(Datum::Date(LATE)),
        Meaning::Epoch => point::epoch(),
        Meaning::Fields => point.fields,
    };
    of_fields(&fields)
        .map(Datum::Date)
        .ok_or_else(|| QueryError::new("22008", format!("date out of range: \"{text}\"")))
}

fn output(call: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    match value.as_date() {
        EARLY => out.push_str("-infinity"),
        LATE => out.push_str("infinity"),
        date => show::date(out, &fields_of(date), call.settings()),
    }
    Ok(())
}

fn receive(_: &Call<'_>, bytes: &[u8], _: i32) -> Result<Datum> {
    let date = i32::from_be_bytes(datetime::received(bytes)?);
    if is_finite(date) && !datetime::is_date(date) {
        return Err(datetime::date_out_of_range());
    }
    Ok(Datum::Date(date))
}

fn send(_: &Call<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(&value.as_date().to_be_bytes());
    Ok(())
}
