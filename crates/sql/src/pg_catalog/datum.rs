//! Values of catalog queries. Whole numbers of every width, `oid` and the
//! types shown by name are one kind of value; their static type says how they
//! are shown. Texts and arrays are shared, since catalog rows are copied often.

use std::sync::Arc;

use thermocline_values::value::Value;

/// A value.
#[derive(Debug, Clone, Default)]
pub(crate) enum Datum {
    #[default]
    Null,
    Bool(bool),
    /// smallint, integer, bigint, oid, regclass, …
    Int(i64),
    Float(f64),
    /// text, name, "char", json, …
    Text(Arc<str>),
    /// Arrays and vectors.
    Array(Arc<[Datum]>),
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
