//! Bound expressions: names and types are settled, so that evaluating one
//! needs a row, the parameters and the session, and nothing of the engine.
//! CHECK, DEFAULT, `COPY … WHERE` and the short path evaluate the same trees.
//!
//! Evaluating borrows from the row and from the expression; only a value that
//! did not exist before (a concatenation, say) is allocated.

mod analysed;
mod cast;
mod context;
mod evaluate;

pub use analysed::Analysed;
pub use cast::CastPath;
pub(crate) use context::JoinedRow;
pub use context::{EvalContext, NoRow, NoSession, RowAccess, SessionInfo};
pub use evaluate::Datum;

use std::sync::Arc;

use thermocline_values::arithmetic::Operator;
use thermocline_values::types::DataType;
use thermocline_values::value::Value;

use crate::typed::has_call;

/// How two values of one type are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparison {
    /// The comparison with its sides exchanged.
    #[must_use]
    pub const fn mirrored(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            same => same,
        }
    }

    /// The operator's spelling.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "<>",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }
}

/// The clock readings that do not change within a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransactionTime {
    /// `now()`, `CURRENT_TIMESTAMP`
    TimestampTz,
    /// `LOCALTIMESTAMP`
    Timestamp,
    /// `CURRENT_DATE`
    Date,
}

/// A bound expression.
#[derive(Clone, Debug)]
pub enum Expr {
    /// A value known when the statement was bound.
    Constant(Value),
    /// `$n`, counted from 0; already of the type the statement gave it.
    Parameter(usize),
    /// A column of the row.
    Column(usize),
    /// In a join: a column of the tables before, as it is called.
    Outer(usize, Arc<str>),
    /// Two values of the same type; NULL if one is.
    Compare(Comparison, Box<Expr>, Box<Expr>),
    /// All are true.
    And(Vec<Expr>),
    /// One is true.
    Or(Vec<Expr>),
    /// Three-valued NOT.
    Not(Box<Expr>),
    /// `IS [NOT] NULL`
    IsNull {
        /// What is looked at.
        operand: Box<Expr>,
        /// `IS NOT NULL`
        negated: bool,
    },
    /// `IS [NOT] TRUE`, `IS [NOT] FALSE`
    IsTruth {
        /// What is looked at.
        operand: Box<Expr>,
        /// TRUE or FALSE.
        wanted: bool,
        /// With NOT.
        negated: bool,
    },
    /// `[NOT] IN (list)`; all of one type.
    InList {
        /// What is looked for.
        operand: Box<Expr>,
        /// Where.
        list: Vec<Expr>,
        /// `NOT IN`
        negated: bool,
    },
    /// `CASE WHEN condition THEN result … ELSE otherwise END`
    Case {
        /// Conditions and results.
        arms: Vec<(Expr, Expr)>,
        /// When no condition is true.
        otherwise: Box<Expr>,
    },
    /// The first that is not NULL.
    Coalesce(Vec<Expr>),
    /// `+ - * / %` with operands as PostgreSQL's operator takes them.
    Arithmetic(Operator, Box<Expr>, Box<Expr>),
    /// A conversion.
    Cast(Box<CastPath>, Box<Expr>),
    /// The transaction's time.
    Now(TransactionTime),
    /// What only `thermocline_query` has a form for.
    Analysed(Arc<Analysed>),
    /// `gen_random_uuid()`
    RandomUuid,
    /// `nextval` of a sequence known when the statement was bound.
    NextValue(u32),
    /// An expression of this depth; of a CHECK or DEFAULT, which statements evaluate that are
    /// not deep themselves.
    Deep(u32, Box<Expr>),
}

impl Expr {
    /// The constant `value`.
    #[must_use]
    pub const fn constant(value: Value) -> Self {
        Self::Constant(value)
    }

    /// The constant true.
    pub const TRUE: Self = Self::Constant(Value::Boolean(true));

    /// How many parts it has, itself among them.
    pub(crate) fn parts(&self) -> usize {
        let mut count = 0;
        self.walk(&mut |_| count += 1);
        count
    }

    /// Calls `visit` with this expression and everything below it.
    pub fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a Self)) {
        visit(self);
        match self {
            Self::Constant(_)
            | Self::Parameter(_)
            | Self::Column(_)
            | Self::Outer(..)
            | Self::Now(_)
            | Self::RandomUuid
            | Self::NextValue(_) => {}
            Self::Compare(_, left, right) | Self::Arithmetic(_, left, right) => {
                left.walk(visit);
                right.walk(visit);
            }
            Self::And(list) | Self::Or(list) | Self::Coalesce(list) => {
                list.iter().for_each(|each| each.walk(visit));
            }
            Self::Not(operand)
            | Self::IsNull { operand, .. }
            | Self::IsTruth { operand, .. }
            | Self::Cast(_, operand) => operand.walk(visit),
            Self::InList { operand, list, .. } => {
                operand.walk(visit);
                list.iter().for_each(|each| each.walk(visit));
            }
            Self::Case { arms, otherwise } => {
                for (condition, result) in arms {
                    condition.walk(visit);
                    result.walk(visit);
                }
                otherwise.walk(visit);
            }
            Self::Analysed(analysed) => {
                analysed
                    .arguments
                    .iter()
                    .for_each(|(each, _)| each.walk(visit));
            }
            Self::Deep(depth, expr) => crate::stack::with_room(*depth, || expr.walk(visit)),
        }
    }

    /// Whether a column of the row is read.
    #[must_use]
    pub fn reads_row(&self) -> bool {
        let mut reads = false;
        self.walk(&mut |each| reads |= matches!(each, Self::Column(_)));
        reads
    }

    /// Whether evaluating it twice may give two values or change something.
    #[must_use]
    pub fn is_volatile(&self) -> bool {
        let mut volatile = false;
        self.walk(&mut |each| {
            volatile |= match each {
                Self::RandomUuid | Self::NextValue(_) => true,
                Self::Analysed(analysed) => analysed.volatile,
                _ => false,
            };
        });
        volatile
    }

    /// Whether it calls functions that only the session runs.
    pub(crate) fn has_call(&self) -> bool {
        let mut calls = false;
        self.walk(&mut |each| {
            calls |= match each {
                Self::Analysed(analysed) => has_call(&analysed.expr),
                _ => false,
            };
        });
        calls
    }

    /// Whether the value depends on nothing outside the expression.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        let mut constant = true;
        self.walk(&mut |each| {
            constant &= !matches!(
                each,
                Self::Parameter(_)
                    | Self::Column(_)
                    | Self::Outer(..)
                    | Self::Now(_)
                    // It may ask for the time.
                    | Self::Analysed(_)
                    | Self::RandomUuid
                    | Self::NextValue(_)
            );
        });
        constant
    }
}

/// Two expressions that say the same.
impl PartialEq for Expr {
    fn eq(&self, other: &Self) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}

/// The type in which values of `data_type` are compared and passed on: the
/// same without its length or precision.
#[must_use]
pub const fn base_type(data_type: DataType) -> DataType {
    match data_type {
        DataType::Numeric { .. } => DataType::NUMERIC,
        DataType::Varchar(_) => DataType::Varchar(0),
        DataType::Char(_) => DataType::Char(0),
        DataType::TimestampTo(_) => DataType::Timestamp,
        DataType::TimestampTzTo(_) => DataType::TimestampTz,
        DataType::Other { oid, .. } => DataType::Other { oid, modifier: -1 },
        other => other,
    }
}
