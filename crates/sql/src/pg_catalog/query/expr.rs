//! Bound expressions: no names, every type settled.

use std::sync::Arc;

use super::plan::QueryPlan;
use super::set_returning::SetFunction;
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::pg_type::PgType;

/// Comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

/// Other operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    BitAnd,
    BitOr,
    Concat,
    ConcatArrays,
    Match { insensitive: bool, negated: bool },
    Like { insensitive: bool, negated: bool },
    Contains,
    Overlaps,
}

/// What is compared with what in `ANY`, `ALL` and `IN`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Test {
    Comparison(Comparison),
    Operator(Operator),
}

/// An expression.
#[derive(Debug, Clone)]
pub(crate) enum Expr {
    Constant(Datum),
    /// `$n`, from 0.
    Parameter(usize),
    /// A column of the row `depth` queries out.
    Column {
        depth: usize,
        index: usize,
    },
    /// The result of an aggregate of the query `depth` queries out.
    Aggregate {
        depth: usize,
        index: usize,
    },
    Window(usize),
    /// A value of a set-returning function of the select list.
    Set(usize),
    Compare(Comparison, Box<Expr>, Box<Expr>),
    Operate(Operator, PgType, Box<Expr>, Box<Expr>),
    Negate(Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Not(Box<Expr>),
    IsNull(Box<Expr>),
    /// `IS [NOT] TRUE` and so on: what the value must be, and the negation.
    IsBool(Box<Expr>, Option<bool>, bool),
    IsDistinct(Box<Expr>, Box<Expr>),
    InList(Box<Expr>, Vec<Expr>),
    /// `x op ANY|ALL (array)`.
    Quantified {
        test: Test,
        all: bool,
        value: Box<Expr>,
        array: Box<Expr>,
    },
    /// `x op ANY|ALL (query)`, `x IN (query)`.
    QuantifiedQuery {
        test: Test,
        all: bool,
        value: Box<Expr>,
        query: Arc<QueryPlan>,
    },
    Exists(Arc<QueryPlan>),
    Scalar(Arc<QueryPlan>),
    ArrayOfQuery(Arc<QueryPlan>),
    Case {
        branches: Vec<(Expr, Expr)>,
        otherwise: Option<Box<Expr>>,
    },
    Coalesce(Vec<Expr>),
    Cast {
        value: Box<Expr>,
        from: PgType,
        to: PgType,
    },
    Array(Vec<Expr>),
    Row(Vec<Expr>),
    /// An element; the lower bound of the array is 0 for vectors, else 1.
    Subscript {
        array: Box<Expr>,
        index: Box<Expr>,
        lower_bound: i64,
    },
    /// A field of a record.
    Field(Box<Expr>, usize),
    Call {
        function: super::functions::Function,
        arguments: Vec<(Expr, PgType)>,
    },
}

/// A call of a set-returning function.
#[derive(Debug, Clone)]
pub(crate) struct SetCall {
    pub function: SetFunction,
    pub arguments: Vec<(Expr, PgType)>,
}

/// An expression and its type.
#[derive(Debug, Clone)]
pub(crate) struct Typed {
    pub expr: Expr,
    pub data_type: PgType,
}

impl Typed {
    pub(crate) fn new(expr: Expr, data_type: PgType) -> Self {
        Self { expr, data_type }
    }

    /// A quoted literal or NULL that nothing has given a type, or a parameter
    /// whose type is not known yet.
    pub(crate) fn is_unknown(&self) -> bool {
        self.data_type == PgType::UNKNOWN
    }
}

/// The order of rows by an expression.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub expr: Expr,
    pub descending: bool,
    pub nulls_first: bool,
}
