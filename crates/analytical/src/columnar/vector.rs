//! Columns while an expression is computed: dense, and of few kinds. Whole numbers of all widths
//! are 64 bits, floating ones are doubles, dates and moments are whole numbers.

use std::sync::Arc;

use datafusion::arrow::buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use thermocline_query::datum::Datum;
use thermocline_query::types::ids;

use crate::form::Form;

/// What a node makes of a batch takes at most so much beyond its words: nobody is asked for this
/// room. With more the batch is given up, since the row evaluator needs one row's values at a time.
pub const MADE_BYTES_MAX: usize = 4 << 20;

/// How a type's values stand here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Truth values
    Bool,
    /// Whole numbers, dates, times, moments, numbers of objects
    Int,
    /// `float4`, `float8`
    Float,
    /// `numeric`
    Numeric,
    /// All texts, also `bpchar` with its padding
    Text,
    /// All else
    Datum,
}

impl Kind {
    /// The kind of a type's values.
    pub fn of(oid: u32) -> Self {
        match Form::of(oid) {
            Form::Bool => Self::Bool,
            Form::Char
            | Form::Int2
            | Form::Int4
            | Form::Int8
            | Form::Oid
            | Form::Date
            | Form::Time
            | Form::Timestamp
            | Form::TimestampTz => Self::Int,
            Form::Float4 | Form::Float8 => Self::Float,
            Form::Text => Self::Text,
            Form::Opaque if oid == ids::NUMERIC => Self::Numeric,
            Form::Opaque if oid == ids::BPCHAR => Self::Text,
            Form::Bytea | Form::Uuid | Form::Opaque => Self::Datum,
        }
    }
}

/// The digits after the point of a column's numbers.
#[derive(Clone, Debug)]
pub enum Scales {
    /// All have so many.
    All(u16),
    /// Each has its own.
    Each(Arc<Vec<u16>>),
}

impl Scales {
    /// That of a row.
    #[inline]
    pub fn get(&self, at: usize) -> u16 {
        match self {
            Self::All(scale) => *scale,
            Self::Each(scales) => scales.get(at).copied().unwrap_or_default(),
        }
    }

    /// Of the scales of rows, which are often the same.
    pub fn of(scales: Vec<u16>) -> Self {
        match scales.split_first() {
            None => Self::All(0),
            Some((first, rest)) if rest.iter().all(|scale| scale == first) => Self::All(*first),
            Some(_) => Self::Each(Arc::new(scales)),
        }
    }
}

/// Numbers of at most 38 digits.
#[derive(Clone, Debug)]
pub struct Decimals {
    /// All digits, as whole numbers.
    pub digits: ScalarBuffer<i128>,
    /// How many of them stand after the point.
    pub scales: Scales,
}

impl Decimals {
    /// A row's number.
    #[inline]
    pub fn get(&self, at: usize) -> (i128, u16) {
        (
            self.digits.get(at).copied().unwrap_or_default(),
            self.scales.get(at),
        )
    }
}

/// Texts, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Made {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Made {
    /// For so many texts.
    pub fn with_capacity(count: usize, bytes: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(bytes),
            ends: Vec::with_capacity(count),
        }
    }

    /// Appends a text of these parts.
    pub fn push(&mut self, parts: &[&[u8]]) {
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        self.ends.push(self.bytes.len());
    }

    /// Whether it is no more than is made of a batch.
    pub const fn is_moderate(&self) -> bool {
        self.bytes.len() <= MADE_BYTES_MAX
    }

    fn get(&self, at: usize) -> &[u8] {
        let start = match at {
            0 => 0,
            at => self.ends.get(at - 1).copied().unwrap_or_default(),
        };
        let end = self.ends.get(at).copied().unwrap_or(start);
        self.bytes.get(start..end).unwrap_or_default()
    }
}

/// A column of texts, as bytes.
#[derive(Clone, Debug)]
pub enum Texts<'a> {
    /// Parts of what came in.
    Borrowed(Arc<Vec<&'a [u8]>>),
    /// Made here.
    Made(Arc<Made>),
}

impl<'a> Texts<'a> {
    /// A row's text.
    #[inline]
    pub fn get(&self, at: usize) -> &[u8] {
        match self {
            Self::Borrowed(texts) => texts.get(at).copied().unwrap_or_default(),
            Self::Made(made) => made.get(at),
        }
    }

    /// Texts that are parts of texts of this column.
    pub fn parts(&self, count: usize, part: impl Fn(usize, &[u8]) -> (usize, usize)) -> Self {
        let cut = |at: usize, text: &[u8]| {
            let (start, end) = part(at, text);
            start.min(text.len())..end.clamp(start.min(text.len()), text.len())
        };
        match self {
            Self::Borrowed(texts) => {
                let parts: Vec<&'a [u8]> = (0..count)
                    .map(|at| {
                        let text: &'a [u8] = texts.get(at).copied().unwrap_or_default();
                        &text[cut(at, text)]
                    })
                    .collect();
                Self::Borrowed(Arc::new(parts))
            }
            Self::Made(made) => {
                let mut parts = Made::with_capacity(count, made.bytes.len());
                for at in 0..count {
                    let text = made.get(at);
                    parts.push(&[&text[cut(at, text)]]);
                }
                Self::Made(Arc::new(parts))
            }
        }
    }
}

/// The values of a column; where a row is NULL stands any value of the type.
#[derive(Clone, Debug)]
pub enum Data<'a> {
    /// Truth values
    Bool(BooleanBuffer),
    /// Whole numbers
    Int(ScalarBuffer<i64>),
    /// Floating numbers
    Float(ScalarBuffer<f64>),
    /// Decimal numbers
    Numeric(Decimals),
    /// Texts
    Text(Texts<'a>),
    /// All else
    Datum(Arc<Vec<Datum>>),
}

/// A column.
#[derive(Clone, Debug)]
pub struct Vector<'a> {
    /// Its values.
    pub data: Data<'a>,
    /// Which of them are there.
    pub nulls: Option<NullBuffer>,
    /// Whether it is one value that stands for all rows.
    pub single: bool,
}

/// Where a row of a new column comes from: a column and its row there.
pub type Source = (u32, u32);
/// No column: NULL.
pub const NOWHERE: Source = (u32::MAX, 0);

impl<'a> Vector<'a> {
    /// A column of these values.
    pub fn new(data: Data<'a>, nulls: Option<NullBuffer>) -> Self {
        Self {
            data,
            nulls: nulls.filter(|nulls| nulls.null_count() > 0),
            single: false,
        }
    }

    /// The same, whose texts are parts of this one's.
    pub fn borrowed<'b>(&'b self) -> Vector<'b>
    where
        'a: 'b,
    {
        let Data::Text(Texts::Made(made)) = &self.data else {
            return self.clone();
        };
        let texts = (0..made.ends.len()).map(|at| made.get(at));
        Vector {
            data: Data::Text(Texts::Borrowed(Arc::new(texts.collect()))),
            nulls: self.nulls.clone(),
            single: self.single,
        }
    }

    /// The place of a row's value.
    #[inline]
    pub const fn place(&self, row: usize) -> usize {
        if self.single { 0 } else { row }
    }

    /// Whether a row is not NULL.
    #[inline]
    pub fn is_valid(&self, row: usize) -> bool {
        match &self.nulls {
            Some(nulls) => nulls.is_valid(self.place(row)),
            None => true,
        }
    }

    /// A row's truth value.
    #[inline]
    pub fn truth(&self, row: usize) -> Option<bool> {
        match &self.data {
            Data::Bool(values) if self.is_valid(row) => Some(values.value(self.place(row))),
            _ => None,
        }
    }

    /// Its rows at these places.
    pub fn gather(&self, rows: &[u32]) -> Self {
        if self.single {
            return self.clone();
        }
        self.take(rows.len(), |at| rows[at] as usize)
    }

    /// With a value for each of so many rows.
    pub fn spread(self, count: usize) -> Self {
        if self.single {
            self.take(count, |_| 0)
        } else {
            self
        }
    }

    fn take(&self, count: usize, row: impl Fn(usize) -> usize) -> Self {
        let rows = 0..count;
        let data = match &self.data {
            Data::Bool(values) => Data::Bool(BooleanBuffer::collect_bool(count, |at| {
                values.value(row(at))
            })),
            Data::Int(values) => {
                let values: &[i64] = values;
                Data::Int(rows.map(|at| values[row(at)]).collect::<Vec<_>>().into())
            }
            Data::Float(values) => {
                let values: &[f64] = values;
                Data::Float(rows.map(|at| values[row(at)]).collect::<Vec<_>>().into())
            }
            Data::Numeric(values) => {
                let digits: &[i128] = &values.digits;
                let scales = match &values.scales {
                    Scales::All(scale) => Scales::All(*scale),
                    Scales::Each(scales) => {
                        Scales::of((0..count).map(|at| scales[row(at)]).collect())
                    }
                };
                Data::Numeric(Decimals {
                    digits: rows.map(|at| digits[row(at)]).collect::<Vec<_>>().into(),
                    scales,
                })
            }
            Data::Text(Texts::Borrowed(texts)) => {
                let texts = rows.map(|at| texts[row(at)]).collect();
                Data::Text(Texts::Borrowed(Arc::new(texts)))
            }
            Data::Text(Texts::Made(made)) => {
                let mut taken = Made::with_capacity(count, 0);
                rows.for_each(|at| taken.push(&[made.get(row(at))]));
                Data::Text(Texts::Made(Arc::new(taken)))
            }
            Data::Datum(values) => {
                let values = rows.map(|at| values[row(at)].clone()).collect();
                Data::Datum(Arc::new(values))
            }
        };
        let nulls = self.nulls.as_ref().map(|nulls| {
            NullBuffer::new(BooleanBuffer::collect_bool(count, |at| {
                nulls.is_valid(row(at))
            }))
        });
        Self::new(data, nulls)
    }

    /// A column whose rows come from others' rows; `None` if these are of different kinds.
    pub fn assembled(parts: &[Self], from: &[Source]) -> Option<Self> {
        let valid = |(part, row): &Source| match parts.get(*part as usize) {
            Some(part) => part.is_valid(*row as usize),
            None => false,
        };
        let place = |(part, row): &Source| {
            let part = parts.get(*part as usize)?;
            Some((&part.data, part.place(*row as usize)))
        };
        macro_rules! collected {
            ($kind:ident, $none:expr, |$values:ident, $at:ident| $value:expr) => {
                from.iter()
                    .map(|source| match place(source) {
                        Some((Data::$kind($values), $at)) => Some($value),
                        Some(_) => None,
                        None => Some($none),
                    })
                    .collect::<Option<Vec<_>>>()?
            };
        }
        let data = match &parts.first()?.data {
            Data::Bool(_) => {
                let values = collected!(Bool, false, |values, at| values.value(at));
                Data::Bool(BooleanBuffer::from(values))
            }
            Data::Int(_) => Data::Int(collected!(Int, 0, |values, at| values[at]).into()),
            Data::Float(_) => Data::Float(collected!(Float, 0.0, |values, at| values[at]).into()),
            Data::Numeric(_) => {
                let digits = collected!(Numeric, 0, |values, at| values.digits[at]);
                let scales = collected!(Numeric, 0, |values, at| values.scales.get(at));
                Data::Numeric(Decimals {
                    digits: digits.into(),
                    scales: Scales::of(scales),
                })
            }
            Data::Text(_) => {
                let borrowed = parts
                    .iter()
                    .all(|part| matches!(part.data, Data::Text(Texts::Borrowed(_))));
                if borrowed {
                    let texts = from.iter().map(|source| match place(source) {
                        Some((Data::Text(Texts::Borrowed(texts)), at)) => texts[at],
                        _ => &[],
                    });
                    Data::Text(Texts::Borrowed(Arc::new(texts.collect())))
                } else {
                    let mut made = Made::with_capacity(from.len(), 0);
                    for source in from {
                        match place(source) {
                            Some((Data::Text(texts), at)) => made.push(&[texts.get(at)]),
                            Some(_) => return None,
                            None => made.push(&[]),
                        }
                    }
                    Data::Text(Texts::Made(Arc::new(made)))
                }
            }
            Data::Datum(_) => {
                let values = collected!(Datum, Datum::Null, |values, at| values[at].clone());
                Data::Datum(Arc::new(values))
            }
        };
        let nulls = BooleanBuffer::collect_bool(from.len(), |at| valid(&from[at]));
        Some(Self::new(data, Some(NullBuffer::new(nulls))))
    }
}
