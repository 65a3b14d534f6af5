//! Conversions. The rules are the storage floor's `cast`; here are the common
//! ones that need no allocation: integers among themselves, texts that fit.

use thermocline_values::cast::{self, CastContext};
use thermocline_values::types::DataType;
use thermocline_values::value::ValueRef;

use super::Datum;
use crate::error::Result;
use crate::styles::{self, Styles};
use crate::typed::value;

/// From which type to which, and by which rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CastPath {
    /// The operand's type.
    pub from: DataType,
    /// The result's type.
    pub to: DataType,
    /// Whether the statement asked for it (`CAST`), or storing needs it.
    pub context: CastContext,
}

impl CastPath {
    /// Converts `value`.
    ///
    /// # Errors
    /// As PostgreSQL: 22003, 22001, 22P02, 22007, …
    #[inline]
    pub fn apply<'a>(&self, value: Datum<'a>, styles: &Styles) -> Result<Datum<'a>> {
        if let Datum::Ref(borrowed) = &value
            && let Some(converted) = self.without_allocation(*borrowed)
        {
            return Ok(Datum::Ref(converted));
        }
        if let (DataType::Other { .. }, DataType::Other { oid, modifier }) = (self.from, self.to)
            && self.from.oid() == oid
        {
            return Ok(Datum::Owned(value::fitted(
                value.as_ref(),
                oid,
                modifier,
                self.context,
            )?));
        }
        if !styles.is_plain() && styles::matter(self.from, self.to) {
            return Ok(Datum::Owned(styles.convert(value.as_ref(), self)?));
        }
        let converted = cast::coerce(value.into_value(), &self.from, &self.to, self.context)?;
        Ok(Datum::Owned(converted))
    }

    fn without_allocation<'a>(&self, value: ValueRef<'a>) -> Option<ValueRef<'a>> {
        match (value, self.to) {
            (ValueRef::Null, _) => Some(ValueRef::Null),
            (ValueRef::SmallInt(number), DataType::Integer) => {
                Some(ValueRef::Integer(number.into()))
            }
            (ValueRef::SmallInt(number), DataType::BigInt) => Some(ValueRef::BigInt(number.into())),
            (ValueRef::Integer(number), DataType::BigInt) => Some(ValueRef::BigInt(number.into())),
            (ValueRef::Integer(number), DataType::Double) => Some(ValueRef::Double(number.into())),
            (ValueRef::Real(number), DataType::Double) => Some(ValueRef::Double(number.into())),
            (ValueRef::BigInt(number), DataType::Integer) => {
                i32::try_from(number).ok().map(ValueRef::Integer)
            }
            (ValueRef::Integer(number), DataType::SmallInt) => {
                i16::try_from(number).ok().map(ValueRef::SmallInt)
            }
            (ValueRef::Text(_), DataType::Text | DataType::Varchar(0)) => Some(value),
            // Bytes bound the characters from above: no counting for most.
            (ValueRef::Text(text), DataType::Varchar(length)) => {
                (text.len() <= length as usize).then_some(value)
            }
            (ValueRef::Text(text), DataType::Char(length)) => {
                let trimmed = text.trim_end_matches(' ');
                (length == 0 || trimmed.len() <= length as usize).then_some(ValueRef::Text(trimmed))
            }
            _ => None,
        }
    }
}
