//! The binary form of ranges: a byte of flags, then the ends that are not missing, each with its
//! length.

use std::ops::Bound;

use super::text::element;
use super::{Range, bound};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::array::{Message, send_value};
use crate::types::{self};

const EMPTY: u8 = 0x01;
const LOWER_INCLUDED: u8 = 0x02;
const UPPER_INCLUDED: u8 = 0x04;
const LOWER_MISSING: u8 = 0x08;
const UPPER_MISSING: u8 = 0x10;

pub(super) fn receive(call: &Call<'_>, bytes: &[u8], modifier: i32) -> Result<Datum> {
    let element = element(call)?;
    let mut message = Message::new(bytes);
    let flags = message.byte()?;
    let mut end = |missing, included| -> Result<Bound<Datum>> {
        if flags & (EMPTY | missing) != 0 {
            return Ok(Bound::Unbounded);
        }
        let Some(bytes) = message.value()? else {
            return Err(QueryError::new(
                "08P01",
                "insufficient data left in message",
            ));
        };
        let value = types::receive(call, element, bytes, modifier)?;
        Ok(bound(value, flags & included != 0))
    };
    let lower = end(LOWER_MISSING, LOWER_INCLUDED)?;
    let upper = end(UPPER_MISSING, UPPER_INCLUDED)?;
    message
        .end()
        .map_err(|_| QueryError::new("08P01", "invalid message format"))?;
    let range = match flags & EMPTY {
        0 => Range::new(element, lower, upper)?,
        _ => Range::empty(element),
    };
    Ok(Datum::Range(range.into()))
}

pub(super) fn send(call: &Call<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    let range = value.as_range();
    let Some(ends) = &range.ends else {
        out.push(EMPTY);
        return Ok(());
    };
    let flag = |bound: &Bound<Datum>, included, missing| match bound {
        Bound::Included(_) => included,
        Bound::Excluded(_) => 0,
        Bound::Unbounded => missing,
    };
    out.push(
        flag(&ends.lower, LOWER_INCLUDED, LOWER_MISSING)
            | flag(&ends.upper, UPPER_INCLUDED, UPPER_MISSING),
    );
    for bound in [&ends.lower, &ends.upper] {
        if let Some(value) = super::value(bound) {
            send_value(out, |out| types::send(call, range.element, value, out))?;
        }
    }
    Ok(())
}
