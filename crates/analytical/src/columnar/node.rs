//! The compiled form of a bound expression, and how it is made.

use thermocline_query::datum::Datum;
use thermocline_query::functions::{Body, Function, Volatility};
use thermocline_query::tree::{ArrayComparison, Expr, ExprKind, FunctionCall};
use thermocline_query::types::ids;

use super::input::constant;
use super::kernels::{self, Kernel};
use super::set::Set;
use super::vector::{Kind, Vector};
use crate::evaluate::{Context, NoRow, columns_of};
use crate::form::Form;

/// Expressions that lie deeper are the row evaluator's, whose stack grows.
const DEPTH_MAX: usize = 48;

/// An expression over columns.
pub enum Node {
    /// A column, by its place.
    Column(usize),
    /// The same value for all rows.
    Constant(Vector<'static>),
    /// The operand of the innermost CASE.
    Operand,
    /// A strict function; the flag says that it seldom gives up.
    Call(Kernel, Vec<Self>, bool),
    /// All are true, or any (the flag) is.
    Connected(Vec<Self>, bool),
    /// Not true.
    Not(Box<Self>),
    /// `IS NULL`, or not.
    IsNull(Box<Self>, bool),
    /// Whether the value is this one, or is not.
    Is(Box<Self>, Option<bool>, bool),
    /// Whether a difference is wanted: the equality, and what it compares.
    Distinct(Kernel, Box<[Self; 2]>, bool),
    /// The first, if the two are not equal.
    NullIf(Kernel, Box<[Self; 2]>),
    /// CASE: operand, conditions and values, the value otherwise.
    Case(Option<Box<Self>>, Vec<(Self, Self)>, Box<Self>),
    /// The first that is not NULL.
    Coalesce(Vec<Self>),
    /// The greatest (the flag) or the least, of a type.
    Extreme(Vec<Self>, u32, bool),
    /// Whether a value is in a list.
    InSet(Box<Self>, Set),
    /// Numbers of objects as `int4`, and the other way (the flag).
    Signed(Box<Self>, bool),
    /// Fitted to a modifier: the type, the modifier, whether a cast is written.
    Fit(Box<Self>, u32, i32, bool),
    /// What has no kernel: computed row by row. The flag says that it reads no columns.
    Rows(Box<Expr>, bool),
}

/// Makes nodes.
pub struct Compiler<'c> {
    /// For parameters, and constants of arrays.
    pub context: &'c Context,
}

/// Whether an expression may be computed twice, and in any order.
pub fn is_repeatable(expr: &Expr) -> bool {
    let repeatable = |function: &Function| {
        function.volatility != Volatility::Volatile && matches!(function.body, Body::Row(_))
    };
    !expr.any(&mut |expr| match &expr.kind {
        ExprKind::Call(call) | ExprKind::NullIf(call) | ExprKind::Distinct(call, _) => {
            !repeatable(call.function)
        }
        ExprKind::AnyOfArray(call) => !repeatable(call.function),
        ExprKind::Subquery(_)
        | ExprKind::Aggregate(_)
        | ExprKind::Window(_)
        | ExprKind::Grouping(..)
        | ExprKind::SubqueryColumn(_) => true,
        _ => false,
    })
}

impl Node {
    /// Whether it is worth computing by columns.
    pub const fn is_worth_it(&self) -> bool {
        !matches!(
            self,
            Self::Rows(..) | Self::Column(_) | Self::Constant(_) | Self::Operand
        )
    }

    /// Whether it seldom gives up, so that it may be computed for rows that do not reach it.
    pub fn is_sure(&self) -> bool {
        match self {
            Self::Column(_) | Self::Constant(_) | Self::Operand => true,
            Self::Call(_, arguments, sure) => *sure && arguments.iter().all(Self::is_sure),
            Self::Connected(parts, _) => parts.iter().all(Self::is_sure),
            Self::Not(inner)
            | Self::IsNull(inner, _)
            | Self::Is(inner, ..)
            | Self::InSet(inner, _) => inner.is_sure(),
            _ => false,
        }
    }
}

impl Compiler<'_> {
    /// The form of an expression; `None` where the whole is the row evaluator's.
    pub fn node(&self, expr: &Expr, depth: usize, operand: Option<u32>) -> Option<Node> {
        let kernel = match depth < DEPTH_MAX {
            true => self.with_kernel(expr, depth + 1, operand),
            false => None,
        };
        kernel.or_else(|| Self::by_rows(expr, operand))
    }

    fn by_rows(expr: &Expr, operand: Option<u32>) -> Option<Node> {
        let is_operand = |expr: &Expr| matches!(expr.kind, ExprKind::CaseOperand);
        if operand.is_some() && expr.any(&mut |expr| is_operand(expr)) {
            return None;
        }
        // A constant that has no form here would be given up for each batch.
        if matches!(expr.kind, ExprKind::Constant(_) | ExprKind::Parameter(_)) {
            return None;
        }
        let single = columns_of([expr]).is_empty();
        Some(Node::Rows(Box::new(expr.clone()), single))
    }

    fn all(&self, exprs: &[Expr], depth: usize, operand: Option<u32>) -> Option<Vec<Node>> {
        exprs
            .iter()
            .map(|expr| self.node(expr, depth, operand))
            .collect()
    }

    fn pair(
        &self,
        call: &FunctionCall,
        depth: usize,
        operand: Option<u32>,
    ) -> Option<(Kernel, Box<[Node; 2]>)> {
        let kernel = kernels::of(call.function)?;
        let nodes = self.all(&call.arguments, depth, operand)?;
        Some((kernel, Box::new(<[Node; 2]>::try_from(nodes).ok()?)))
    }

    fn with_kernel(&self, expr: &Expr, depth: usize, operand: Option<u32>) -> Option<Node> {
        let node = |expr: &Expr| self.node(expr, depth, operand).map(Box::new);
        let kind = Kind::of(expr.oid);
        let of_kind = |parts: &[Expr]| parts.iter().all(|part| Kind::of(part.oid) == kind);
        Some(match &expr.kind {
            ExprKind::Column { column, .. } => Node::Column(*column),
            ExprKind::Constant(value) => Node::Constant(constant(expr.oid, value.clone())?),
            ExprKind::Parameter(_) => {
                let value = self.context.evaluator.evaluate(expr, &NoRow).ok()?;
                Node::Constant(constant(expr.oid, value)?)
            }
            ExprKind::CaseOperand if operand == Some(expr.oid) => Node::Operand,
            ExprKind::Call(call) => {
                let kernel = kernels::of(call.function)?;
                let arguments = self.all(&call.arguments, depth, operand)?;
                let sure = matches!(kind, Kind::Bool);
                Node::Call(kernel, arguments, sure)
            }
            ExprKind::Relabel(inner) => {
                let (from, to) = (Form::of(inner.oid), Form::of(expr.oid));
                match (from, to) {
                    (Form::Oid, Form::Int4) => Node::Signed(node(inner)?, true),
                    (Form::Int4, Form::Oid) if !matches!(expr.oid, ids::XID | ids::CID) => {
                        Node::Signed(node(inner)?, false)
                    }
                    _ if Kind::of(inner.oid) == kind
                        && kind != Kind::Datum
                        && (from == to || kind == Kind::Text) =>
                    {
                        *node(inner)?
                    }
                    _ => return None,
                }
            }
            ExprKind::Fit(inner, explicit) if Kind::of(inner.oid) == kind => {
                if expr.modifier < 0 {
                    *node(inner)?
                } else if matches!(expr.oid, ids::NUMERIC | ids::VARCHAR | ids::BPCHAR) {
                    Node::Fit(node(inner)?, expr.oid, expr.modifier, *explicit)
                } else {
                    return None;
                }
            }
            ExprKind::And(parts) => Node::Connected(self.all(parts, depth, operand)?, false),
            ExprKind::Or(parts) => Node::Connected(self.all(parts, depth, operand)?, true),
            ExprKind::Not(inner) => Node::Not(node(inner)?),
            ExprKind::IsNull(inner, wanted)
                if Kind::of(inner.oid) != Kind::Datum
                    || matches!(
                        inner.oid,
                        ids::BYTEA | ids::UUID | ids::INTERVAL | ids::JSONB
                    ) =>
            {
                Node::IsNull(node(inner)?, *wanted)
            }
            ExprKind::Is(inner, value, wanted) => Node::Is(node(inner)?, *value, *wanted),
            ExprKind::Distinct(call, wanted) => {
                let (kernel, nodes) = self.pair(call, depth, operand)?;
                Node::Distinct(kernel, nodes, *wanted)
            }
            ExprKind::NullIf(call) if of_kind(call.arguments.get(..1)?) => {
                let (kernel, nodes) = self.pair(call, depth, operand)?;
                Node::NullIf(kernel, nodes)
            }
            ExprKind::Case(case) => {
                let mut branches = Vec::with_capacity(case.branches.len());
                let within = case.operand.as_ref().map(|of| of.oid).or(operand);
                for (condition, value) in &case.branches {
                    if Kind::of(value.oid) != kind {
                        return None;
                    }
                    let condition = self.node(condition, depth, within)?;
                    branches.push((condition, *node(value)?));
                }
                if Kind::of(case.otherwise.oid) != kind {
                    return None;
                }
                let of = match &case.operand {
                    Some(of) => Some(node(of)?),
                    None => None,
                };
                Node::Case(of, branches, node(&case.otherwise)?)
            }
            ExprKind::Coalesce(parts) if of_kind(parts) => {
                Node::Coalesce(self.all(parts, depth, operand)?)
            }
            ExprKind::Extreme(parts, greatest) if of_kind(parts) && kind != Kind::Datum => {
                Node::Extreme(self.all(parts, depth, operand)?, expr.oid, *greatest)
            }
            ExprKind::AnyOfArray(comparison) => {
                let set = self.set(comparison)?;
                Node::InSet(node(&comparison.value)?, set)
            }
            _ => return None,
        })
    }

    /// The list of an `IN` or `NOT IN`.
    fn set(&self, comparison: &ArrayComparison) -> Option<Set> {
        let negated = match (comparison.operator, comparison.any) {
            ("=", true) => false,
            ("<>", false) => true,
            _ => return None,
        };
        // What reads no row is the same for all of them: a list of parameters, too.
        let array = &comparison.array;
        let is_operand = &mut |expr: &Expr| matches!(expr.kind, ExprKind::CaseOperand);
        if !columns_of([array]).is_empty() || !is_repeatable(array) || array.any(is_operand) {
            return None;
        }
        kernels::of(comparison.function)?;
        let array = self
            .context
            .evaluator
            .evaluate(&comparison.array, &NoRow)
            .ok()?;
        let Datum::Array(array) = array else {
            return None;
        };
        Set::new(comparison.function, &array, negated)
    }
}
