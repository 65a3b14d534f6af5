//! Values fitted to the modifiers of their types.

use std::sync::Arc;

use thermocline_query::call::SMALL_VALUE_BYTES;
use thermocline_query::types::ids;
use thermocline_query::types::numeric::Numeric;

use super::kernels::decimal;
use super::vector::{Data, MADE_BYTES_MAX, Made, Texts, Vector};

/// A modifier is above this.
const MODIFIER_BASE: i32 = 4;

/// Each value, of `numeric`, `varchar` or `bpchar`, fitted to a modifier. Given up where one does
/// not fit.
pub fn fitted<'a>(
    value: Vector<'a>,
    count: usize,
    oid: u32,
    modifier: i32,
    explicit: bool,
) -> Option<Vector<'a>> {
    let data = match (&value.data, oid) {
        (Data::Numeric(numbers), ids::NUMERIC) => {
            let parts = (0..count).map(|row| {
                if !value.is_valid(row) {
                    return Some((0, 0));
                }
                let (n, scale) = numbers.get(row);
                let fit = Numeric::from_parts(n, scale).fit(modifier);
                fit.ok()?.to_parts()
            });
            decimal::collected(parts.collect::<Option<_>>()?)
        }
        (Data::Text(texts), ids::VARCHAR | ids::BPCHAR) => {
            let Some(length) = usize::try_from(modifier - MODIFIER_BASE).ok() else {
                return Some(value);
            };
            let texts = cut(texts, &value, count, length, explicit)?;
            Data::Text(match oid {
                ids::BPCHAR => padded(&texts, count, length)?,
                _ => texts,
            })
        }
        _ => return None,
    };
    Some(Vector { data, ..value })
}

/// The bytes of a text's first characters.
fn end(text: &[u8], characters: usize) -> usize {
    if text.len() <= characters {
        return text.len();
    }
    let mut starts = text
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte & 0xc0 != 0x80);
    starts.nth(characters).map_or(text.len(), |(at, _)| at)
}

fn cut<'a>(
    texts: &Texts<'a>,
    value: &Vector<'a>,
    count: usize,
    length: usize,
    explicit: bool,
) -> Option<Texts<'a>> {
    let fits = |row: usize| {
        let text = texts.get(row);
        let kept = end(text, length);
        kept == text.len() || explicit || text[kept..].iter().all(|byte| *byte == b' ')
    };
    if (0..count).any(|row| value.is_valid(row) && !fits(row)) {
        return None;
    }
    Some(texts.parts(count, |_, text| (0, end(text, length))))
}

fn padded<'a>(texts: &Texts<'a>, count: usize, length: usize) -> Option<Texts<'a>> {
    // For what is large the evaluator asks for room.
    if length > SMALL_VALUE_BYTES / 4 {
        return None;
    }
    let mut made = Made::with_capacity(count, (count * length).min(MADE_BYTES_MAX));
    let blanks = vec![b' '; length];
    for row in 0..count {
        if !made.is_moderate() {
            return None;
        }
        let text = texts.get(row);
        let characters = text.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
        made.push(&[text, &blanks[characters.min(length)..]]);
    }
    Some(Texts::Made(Arc::new(made)))
}
