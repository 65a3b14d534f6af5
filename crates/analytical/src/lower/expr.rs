//! Bound expressions in DataFusion: native where that means the same and cannot fail, so that
//! filters and join keys are seen by its optimiser; else as a function of ours.

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr as DfExpr, Operator, lit};
use thermocline_query::datum::Datum;
use thermocline_query::error::Result;
use thermocline_query::tree::{ArrayComparison, Expr, ExprKind, FunctionCall};
use thermocline_query::types::ids;

use super::Lowerer;
use crate::evaluate::{NoRow, columns_of};
use crate::form::Form;
use crate::sort_key::has_order;
use crate::udf::{RowFunction, column, is_volatile};

/// The conditions that are all to be true. What all branches of an OR have in common is one of
/// them, so that `(a = b AND …) OR (a = b AND …)` has its join key.
pub(super) fn conjuncts(expr: Expr) -> Vec<Expr> {
    match expr.kind {
        ExprKind::And(parts) => parts.into_iter().flat_map(conjuncts).collect(),
        ExprKind::Or(parts) => {
            let mut branches: Vec<Vec<Expr>> = parts.into_iter().map(conjuncts).collect();
            let mut common = taken_from_all(&mut branches);
            // A branch that is nothing but what all have decides.
            if !branches.iter().any(Vec::is_empty) {
                let branches = branches.into_iter().filter_map(all_of).collect();
                common.push(Expr::new(ExprKind::Or(branches), ids::BOOL, -1));
            }
            common
        }
        _ => vec![expr],
    }
}

/// Takes from all branches the conditions that each of them has.
fn taken_from_all(branches: &mut [Vec<Expr>]) -> Vec<Expr> {
    let Some((first, others)) = branches.split_first_mut() else {
        return Vec::new();
    };
    let is_in = |branch: &Vec<Expr>, expr: &Expr| branch.iter().any(|other| other.same(expr));
    let common: Vec<Expr> = first
        .extract_if(.., |expr| {
            !is_volatile(expr) && others.iter().all(|branch| is_in(branch, expr))
        })
        .collect();
    for branch in others {
        branch.retain(|expr| !common.iter().any(|taken| taken.same(expr)));
    }
    common
}

/// All of these.
pub(super) fn all_of(mut parts: Vec<Expr>) -> Option<Expr> {
    match parts.len() {
        0 | 1 => parts.pop(),
        _ => Some(Expr::new(ExprKind::And(parts), ids::BOOL, -1)),
    }
}

fn binary(left: DfExpr, operator: Operator, right: DfExpr) -> DfExpr {
    DfExpr::BinaryExpr(BinaryExpr::new(Box::new(left), operator, Box::new(right)))
}

/// Values of these types equal, and are ordered, as Arrow does it.
fn is_comparable(oid: u32) -> bool {
    Form::of(oid).is_exact() && !matches!(oid, ids::JSON | ids::XID | ids::CID)
}

fn as_int8(expr: DfExpr, form: Form) -> DfExpr {
    match form {
        Form::Int8 => expr,
        _ => match expr {
            DfExpr::Literal(value, _) => {
                let wide = value.cast_to(&DataType::Int64);
                wide.map_or_else(|_| DfExpr::Literal(value, None), lit)
            }
            other => DfExpr::Cast(Cast::new(Box::new(other), DataType::Int64)),
        },
    }
}

impl Lowerer<'_> {
    /// An expression's value.
    pub(super) fn scalar(&self, expr: &Expr) -> DfExpr {
        self.native(expr)
            .unwrap_or_else(|| RowFunction::value(expr, &|id| self.types[id], &self.context))
    }

    /// Two operands in forms that Arrow compares as PostgreSQL does.
    fn operands(&self, left: &Expr, right: &Expr) -> Option<(DfExpr, DfExpr)> {
        if !is_comparable(left.oid) || !is_comparable(right.oid) {
            return None;
        }
        let (of_left, of_right) = (Form::of(left.oid), Form::of(right.oid));
        let (native_left, native_right) = (self.native(left)?, self.native(right)?);
        if of_left == of_right {
            return Some((native_left, native_right));
        }
        (of_left.is_integer() && of_right.is_integer()).then(|| {
            (
                as_int8(native_left, of_left),
                as_int8(native_right, of_right),
            )
        })
    }

    /// The native form of an expression that cannot fail.
    pub(super) fn native(&self, expr: &Expr) -> Option<DfExpr> {
        let many = |parts: &[Expr], operator| {
            let mut parts = parts.iter().map(|part| self.native(part));
            let first = parts.next()??;
            parts.try_fold(first, |all, part| Some(binary(all, operator, part?)))
        };
        match &expr.kind {
            ExprKind::Column { column: id, .. } => Some(column(*id)),
            ExprKind::Constant(value) => self.literal(value, expr.oid),
            ExprKind::Parameter(_) => {
                let value = self.context.evaluator.evaluate(expr, &NoRow).ok()?;
                self.literal(&value, expr.oid)
            }
            ExprKind::Relabel(inner) if Form::of(inner.oid) == Form::of(expr.oid) => {
                self.native(inner)
            }
            ExprKind::And(parts) => many(parts, Operator::And),
            ExprKind::Or(parts) => many(parts, Operator::Or),
            ExprKind::Not(inner) => Some(DfExpr::Not(Box::new(self.native(inner)?))),
            ExprKind::IsNull(inner, wanted) if inner.oid != ids::RECORD => {
                let inner = Box::new(self.native(inner)?);
                Some(match wanted {
                    true => DfExpr::IsNull(inner),
                    false => DfExpr::IsNotNull(inner),
                })
            }
            ExprKind::Is(inner, value, wanted) => {
                let inner = Box::new(self.native(inner)?);
                Some(match (value, wanted) {
                    (Some(true), true) => DfExpr::IsTrue(inner),
                    (Some(true), false) => DfExpr::IsNotTrue(inner),
                    (Some(false), true) => DfExpr::IsFalse(inner),
                    (Some(false), false) => DfExpr::IsNotFalse(inner),
                    (None, true) => DfExpr::IsNull(inner),
                    (None, false) => DfExpr::IsNotNull(inner),
                })
            }
            ExprKind::Call(call) => self.comparison(call),
            ExprKind::AnyOfArray(comparison) => self.in_list(comparison),
            _ => None,
        }
    }

    fn literal(&self, value: &Datum, oid: u32) -> Option<DfExpr> {
        Form::of(oid).scalar(value).ok().map(lit)
    }

    fn comparison(&self, call: &FunctionCall) -> Option<DfExpr> {
        let operator = match call.operator? {
            "=" => Operator::Eq,
            "<>" => Operator::NotEq,
            "<" => Operator::Lt,
            "<=" => Operator::LtEq,
            ">" => Operator::Gt,
            ">=" => Operator::GtEq,
            _ => return None,
        };
        let [left, right] = call.arguments.as_slice() else {
            return None;
        };
        let (left, right) = self.operands(left, right)?;
        Some(binary(left, operator, right))
    }

    fn in_list(&self, comparison: &ArrayComparison) -> Option<DfExpr> {
        let ExprKind::Constant(Datum::Array(array)) = &comparison.array.kind else {
            return None;
        };
        let value = &comparison.value;
        let negated = match (comparison.operator, comparison.any) {
            ("=", true) => false,
            ("<>", false) => true,
            _ => return None,
        };
        let same = Form::of(value.oid) == Form::of(array.element);
        if !same || !is_comparable(value.oid) || array.elements.is_empty() {
            return None;
        }
        let list = array.elements.iter();
        let list = list.map(|element| self.literal(element, array.element));
        Some(DfExpr::InList(InList {
            expr: Box::new(self.native(value)?),
            list: list.collect::<Option<_>>()?,
            negated,
        }))
    }

    /// What is equal on the two sides of a condition, as keys of a join.
    pub(super) fn key_pair(
        &self,
        condition: &Expr,
        is_left: &dyn Fn(usize) -> bool,
        is_right: &dyn Fn(usize) -> bool,
    ) -> Option<(DfExpr, DfExpr)> {
        let ExprKind::Call(call) = &condition.kind else {
            return None;
        };
        let [a, b] = call.arguments.as_slice() else {
            return None;
        };
        if call.operator != Some("=") {
            return None;
        }
        let of = |expr: &Expr, side: &dyn Fn(usize) -> bool| {
            let columns = columns_of([expr]);
            !columns.is_empty() && columns.into_iter().all(side)
        };
        let (left, right) = if of(a, is_left) && of(b, is_right) {
            (a, b)
        } else if of(b, is_left) && of(a, is_right) {
            (b, a)
        } else {
            return None;
        };
        let (of_left, of_right) = (Form::of(left.oid), Form::of(right.oid));
        if is_comparable(left.oid) && is_comparable(right.oid) {
            if of_left == of_right {
                return Some((self.scalar(left), self.scalar(right)));
            }
            if of_left.is_integer() && of_right.is_integer() {
                let (left, right) = (self.scalar(left), self.scalar(right));
                return Some((as_int8(left, of_left), as_int8(right, of_right)));
            }
        }
        (left.oid == right.oid && has_order(left.oid)).then(|| {
            let key = |expr| RowFunction::key(expr, &|id| self.types[id], &self.context);
            (key(left), key(right))
        })
    }

    /// A filter of conditions that are asked in their order. What may fail is asked only where
    /// what stands before it, and refers to nothing else, is true.
    pub(super) fn predicate(&self, conditions: &[Expr]) -> Option<DfExpr> {
        let mut parts = Vec::new();
        for (place, condition) in conditions.iter().enumerate() {
            if let Some(native) = self.native(condition) {
                parts.push(native);
                continue;
            }
            if let Some(pair) = self.equality(condition) {
                parts.push(pair);
                continue;
            }
            let columns = columns_of([condition]);
            let mut guarded: Vec<Expr> = conditions[..place]
                .iter()
                .filter(|before| columns_of([*before]).iter().all(|id| columns.contains(id)))
                .cloned()
                .collect();
            guarded.push(condition.clone());
            let guarded = all_of(guarded).unwrap_or_else(|| condition.clone());
            parts.push(RowFunction::value(
                &guarded,
                &|id| self.types[id],
                &self.context,
            ));
        }
        let mut parts = parts.into_iter();
        let first = parts.next()?;
        Some(parts.fold(first, |all, part| binary(all, Operator::And, part)))
    }

    /// An equality whose sides refer to different columns: it may become a join's key.
    fn equality(&self, condition: &Expr) -> Option<DfExpr> {
        let ExprKind::Call(call) = &condition.kind else {
            return None;
        };
        let left = columns_of(call.arguments.first());
        let right = columns_of(call.arguments.get(1));
        if left.iter().any(|id| right.contains(id)) {
            return None;
        }
        let pair = self.key_pair(condition, &|id| left.contains(&id), &|id| {
            right.contains(&id)
        });
        pair.map(|(left, right)| binary(left, Operator::Eq, right))
    }

    /// The value of an expression without columns.
    pub(super) fn constant(&self, expr: &Expr) -> Result<Datum> {
        self.context.evaluator.evaluate(expr, &NoRow)
    }
}
