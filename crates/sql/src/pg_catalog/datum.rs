//! Values of catalog queries. Whole numbers of every width, `oid` and the
//! types shown by name are one kind of value; their static type says how they
//! are shown. Texts and arrays are shared, since catalog rows are copied often.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use thermocline_storage::numeric::Numeric;
use thermocline_storage::value::Value;

/// A value.
#[derive(Debug, Clone, Default)]
pub(crate) enum Datum {
    #[default]
    Null,
    Bool(bool),
    /// smallint, integer, bigint, oid, regclass, …
    Int(i64),
    Float(f64),
    Numeric(Numeric),
    /// text, name, "char", json, …
    Text(Arc<str>),
    /// Arrays and vectors.
    Array(Arc<[Datum]>),
    Record(Arc<[Datum]>),
    /// Dates, timestamps, bytea, uuid.
    Scalar(Value),
}

impl Datum {
    pub(crate) fn text(text: impl AsRef<str>) -> Self {
        Self::Text(Arc::from(text.as_ref()))
    }

    pub(crate) fn oid(oid: u32) -> Self {
        Self::Int(i64::from(oid))
    }

    pub(crate) fn array(elements: impl IntoIterator<Item = Self>) -> Self {
        Self::Array(elements.into_iter().collect())
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    pub(crate) fn is_true(&self) -> bool {
        matches!(self, Self::Bool(true))
    }

    pub(crate) fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Numeric(value) => value.to_i64(),
            Self::Float(value) => Some(*value as i64),
            _ => None,
        }
    }

    pub(crate) fn as_oid(&self) -> Option<u32> {
        self.as_int().and_then(|value| u32::try_from(value).ok())
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(elements) => Some(elements),
            _ => None,
        }
    }

    fn as_float(&self) -> Option<f64> {
        match self {
            Self::Int(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            Self::Numeric(value) => Some(value.to_f64()),
            _ => None,
        }
    }

    /// The order of two values that are not NULL; numbers of all kinds have
    /// one order, texts are compared by their bytes.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a.cmp(b),
            (Self::Text(a), Self::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Numeric(a), Self::Numeric(b)) => a.cmp(b),
            (Self::Numeric(a), Self::Int(b)) => a.cmp(&Numeric::from(*b)),
            (Self::Int(a), Self::Numeric(b)) => Numeric::from(*a).cmp(b),
            (Self::Array(a), Self::Array(b)) | (Self::Record(a), Self::Record(b)) => a
                .iter()
                .zip(b.iter())
                .map(|(a, b)| a.compare_nulls_last(b))
                .find(|order| order.is_ne())
                .unwrap_or_else(|| a.len().cmp(&b.len())),
            (Self::Scalar(a), Self::Scalar(b)) => a.cmp(b),
            _ => match (self.as_float(), other.as_float()) {
                (Some(a), Some(b)) => thermocline_storage::value::compare_doubles(a, b),
                _ => self.rank().cmp(&other.rank()),
            },
        }
    }

    /// The order with NULL as the largest value.
    pub(crate) fn compare_nulls_last(&self, other: &Self) -> Ordering {
        match (self.is_null(), other.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => self.compare(other),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Bool(_) => 0,
            Self::Int(_) | Self::Float(_) | Self::Numeric(_) => 1,
            Self::Text(_) => 2,
            Self::Scalar(_) => 3,
            Self::Array(_) => 4,
            Self::Record(_) => 5,
            Self::Null => 6,
        }
    }
}

/// Equality that groups and joins use: NULL equals NULL.
impl PartialEq for Datum {
    fn eq(&self, other: &Self) -> bool {
        self.compare_nulls_last(other).is_eq()
    }
}

impl Eq for Datum {}

impl Hash for Datum {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Null => 6u8.hash(state),
            Self::Bool(value) => value.hash(state),
            Self::Text(text) => text.hash(state),
            Self::Array(elements) | Self::Record(elements) => {
                elements.len().hash(state);
                elements.iter().for_each(|element| element.hash(state));
            }
            Self::Scalar(value) => value.hash(state),
            // Equal numbers of different kinds hash alike.
            Self::Int(_) | Self::Float(_) | Self::Numeric(_) => {
                let value = self.as_float().unwrap_or(0.0);
                (if value == 0.0 { 0.0f64 } else { value })
                    .to_bits()
                    .hash(state);
            }
        }
    }
}

impl From<Value> for Datum {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Boolean(value) => Self::Bool(value),
            Value::SmallInt(value) => Self::Int(i64::from(value)),
            Value::Integer(value) => Self::Int(i64::from(value)),
            Value::BigInt(value) => Self::Int(value),
            Value::Real(value) => Self::Float(f64::from(value)),
            Value::Double(value) => Self::Float(value),
            Value::Numeric(value) => Self::Numeric(value),
            Value::Text(text) => Self::Text(text.into()),
            other => Self::Scalar(other),
        }
    }
}

impl From<bool> for Datum {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Datum {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl<T: Into<Self>> From<Option<T>> for Datum {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl PartialOrd for Datum {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Datum {
    fn cmp(&self, other: &Self) -> Ordering {
        self.compare_nulls_last(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_numbers_are_equal_whatever_their_kind() {
        use std::collections::HashSet;
        let numbers = [
            Datum::Int(5),
            Datum::Float(5.0),
            Datum::Numeric(Numeric::parse("5.00").unwrap()),
        ];
        let set: HashSet<Datum> = numbers.into_iter().collect();
        assert_eq!(set.len(), 1);
    }

    #[test]
    fn null_is_the_largest() {
        assert!(Datum::Null.compare_nulls_last(&Datum::Int(1)).is_gt());
        assert!(
            Datum::array([Datum::Int(1), Datum::Null])
                > Datum::array([Datum::Int(1), Datum::Int(9)])
        );
    }
}
