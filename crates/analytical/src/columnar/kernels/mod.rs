//! Functions over columns. A kernel gives what its function gives for each row whose arguments
//! are all there, or gives up (`None`) where one of them is unusual; errors are never its own.

mod cast;
mod compare;
pub mod decimal;
mod float;
mod integer;
mod like;
mod moment;
mod text;

use std::collections::HashMap;
use std::sync::LazyLock;

use datafusion::arrow::buffer::{BooleanBuffer, NullBuffer};
use thermocline_query::datum::Datum;
use thermocline_query::functions::{self, Function};
use thermocline_query::operators::{OPERATORS, Operator};

pub use self::compare::order;
use super::vector::{Data, Decimals, Texts, Vector};

/// What a kernel is given. Where all arguments are single there is one row.
pub struct Arguments<'v, 'a> {
    /// The arguments.
    pub vectors: &'v [Vector<'a>],
    /// Rows whose arguments are all there.
    pub nulls: Option<&'v NullBuffer>,
    /// How many rows.
    pub count: usize,
}

/// A function of columns.
pub type Kernel = for<'a> fn(&Arguments<'_, 'a>) -> Option<Data<'a>>;

/// An argument's values: one for all rows, or one a row.
#[derive(Clone, Copy)]
pub enum Side<'v, T> {
    One(T),
    Many(&'v [T]),
}

impl<'v, 'a> Arguments<'v, 'a> {
    /// Whether a row's value will be seen.
    #[inline]
    fn is_valid(&self, row: usize) -> bool {
        self.nulls.is_none_or(|nulls| nulls.is_valid(row))
    }

    fn ints(&self, at: usize) -> Option<Side<'v, i64>> {
        let vector = self.vectors.get(at)?;
        match &vector.data {
            Data::Int(values) if vector.single => Some(Side::One(*values.first()?)),
            Data::Int(values) => Some(Side::Many(values)),
            _ => None,
        }
    }

    fn floats(&self, at: usize) -> Option<Side<'v, f64>> {
        let vector = self.vectors.get(at)?;
        match &vector.data {
            Data::Float(values) if vector.single => Some(Side::One(*values.first()?)),
            Data::Float(values) => Some(Side::Many(values)),
            _ => None,
        }
    }

    /// Digits, and the numbers that they are of.
    fn numerics(&self, at: usize) -> Option<(Side<'v, i128>, &'v Decimals)> {
        let vector = self.vectors.get(at)?;
        match &vector.data {
            Data::Numeric(values) if vector.single => {
                Some((Side::One(*values.digits.first()?), values))
            }
            Data::Numeric(values) => Some((Side::Many(&values.digits), values)),
            _ => None,
        }
    }

    fn texts(&self, at: usize) -> Option<(&'v Texts<'a>, bool)> {
        let vector = self.vectors.get(at)?;
        match &vector.data {
            Data::Text(texts) => Some((texts, vector.single)),
            _ => None,
        }
    }

    /// A text that is the same for all rows.
    fn one_text(&self, at: usize) -> Option<&'v [u8]> {
        match self.texts(at)? {
            (texts, true) => Some(texts.get(0)),
            _ => None,
        }
    }

    /// Another value that is the same for all rows.
    fn one_datum(&self, at: usize) -> Option<&'v Datum> {
        let vector = self.vectors.get(at)?;
        match &vector.data {
            Data::Datum(values) if vector.single => values.first(),
            _ => None,
        }
    }

    /// A value of each row; given up where one that will be seen has none.
    fn map<T: Copy, R: Default>(
        &self,
        side: Side<'_, T>,
        f: impl Fn(T) -> Option<R>,
    ) -> Option<Vec<R>> {
        let one = |(row, value)| match f(value) {
            Some(value) => Some(value),
            None if self.is_valid(row) => None,
            None => Some(R::default()),
        };
        match side {
            Side::One(value) => (0..self.count).map(|row| one((row, value))).collect(),
            Side::Many(values) => values.iter().copied().enumerate().map(one).collect(),
        }
    }

    /// As [`Self::map`], of two arguments.
    fn map2<T: Copy, U: Copy, R: Default>(
        &self,
        left: Side<'_, T>,
        right: Side<'_, U>,
        f: impl Fn(T, U) -> Option<R>,
    ) -> Option<Vec<R>> {
        let mut out = Vec::with_capacity(self.count);
        let mut one = |row: usize, value: Option<R>| match value {
            Some(value) => {
                out.push(value);
                Some(())
            }
            None if self.is_valid(row) => None,
            None => {
                out.push(R::default());
                Some(())
            }
        };
        match (left, right) {
            (Side::One(a), Side::One(b)) => {
                (0..self.count).try_for_each(|row| one(row, f(a, b)))?;
            }
            (Side::One(a), Side::Many(b)) => {
                let mut rows = b.iter().enumerate();
                rows.try_for_each(|(row, b)| one(row, f(a, *b)))?;
            }
            (Side::Many(a), Side::One(b)) => {
                let mut rows = a.iter().enumerate();
                rows.try_for_each(|(row, a)| one(row, f(*a, b)))?;
            }
            (Side::Many(a), Side::Many(b)) => {
                let mut rows = a.iter().zip(b).enumerate();
                rows.try_for_each(|(row, (a, b))| one(row, f(*a, *b)))?;
            }
        }
        Some(out)
    }

    /// A truth of each row.
    fn test2<T: Copy, U: Copy>(
        &self,
        left: Side<'_, T>,
        right: Side<'_, U>,
        f: impl Fn(T, U) -> bool,
    ) -> BooleanBuffer {
        match (left, right) {
            (Side::One(a), Side::One(b)) => BooleanBuffer::collect_bool(self.count, |_| f(a, b)),
            (Side::One(a), Side::Many(b)) => {
                BooleanBuffer::collect_bool(b.len(), |row| f(a, b[row]))
            }
            (Side::Many(a), Side::One(b)) => {
                BooleanBuffer::collect_bool(a.len(), |row| f(a[row], b))
            }
            (Side::Many(a), Side::Many(b)) => {
                let count = a.len().min(b.len());
                let (a, b) = (&a[..count], &b[..count]);
                BooleanBuffer::collect_bool(count, |row| f(a[row], b[row]))
            }
        }
    }

    /// A truth of each row's text.
    fn test_texts(&self, at: usize, f: impl Fn(&[u8]) -> bool) -> Option<BooleanBuffer> {
        let (texts, single) = self.texts(at)?;
        if single {
            let truth = f(texts.get(0));
            return Some(BooleanBuffer::collect_bool(self.count, |_| truth));
        }
        Some(BooleanBuffer::collect_bool(self.count, |row| {
            f(texts.get(row))
        }))
    }
}

/// Kernels by the functions' numbers.
static KERNELS: LazyLock<HashMap<u32, Kernel>> = LazyLock::new(|| {
    let of_operator = |operator: &Operator| -> Option<Kernel> {
        compare::of(operator)
            .or_else(|| integer::of(operator))
            .or_else(|| float::of(operator))
            .or_else(|| decimal::of(operator))
            .or_else(|| moment::of(operator))
            .or_else(|| like::of(operator))
            .or_else(|| text::of(operator))
    };
    let of_function = |function: &Function| -> Option<Kernel> {
        cast::of(function)
            .or_else(|| decimal::of_function(function))
            .or_else(|| text::of_function(function))
            .or_else(|| moment::of_function(function))
    };
    let operators = OPERATORS
        .iter()
        .filter_map(|operator| Some((operator.function, of_operator(operator)?)));
    let functions =
        functions::all().filter_map(|function| Some((function.oid, of_function(function)?)));
    functions.chain(operators).collect()
});

/// The kernel of a function. All of them are strict.
pub fn of(function: &Function) -> Option<Kernel> {
    let kernel = KERNELS.get(&function.oid).copied();
    kernel.filter(|_| function.strict)
}
