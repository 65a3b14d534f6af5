//! Whether conditions imply another, as PostgreSQL asks it of a query and a partial index
//! (`predicate_implied_by`): by simple rules, so that no is no proof. Yes is one: wherever all
//! conditions are true, the other is.
//!
//! What is decided by comparing constants is decided for types whose operators have the order of
//! [`crate::types::compare`].

use std::cmp::Ordering;

use crate::datum::Datum;
use crate::tree::{Expr, ExprKind, FunctionCall};
use crate::types::ids;

/// More values of a list than these are not looked at one by one.
const LIST_MAX: usize = 100;

/// Whether `wanted` is true wherever all of `given` are. All functions in them are immutable, or what
/// they are of is the same in both.
#[must_use]
pub fn is_implied(wanted: &Expr, given: &[&Expr]) -> bool {
    match &wanted.kind {
        ExprKind::And(parts) => parts.iter().all(|part| is_implied(part, given)),
        ExprKind::Or(parts) => {
            given.iter().any(|given| implies(given, wanted))
                || parts.iter().any(|part| is_implied(part, given))
        }
        _ => given.iter().any(|given| implies(given, wanted)),
    }
}

/// The conditions that have to be true for this one to be.
pub fn conjuncts<'e>(condition: &'e Expr, found: &mut Vec<&'e Expr>) {
    match &condition.kind {
        ExprKind::And(parts) => parts.iter().for_each(|part| conjuncts(part, found)),
        _ => found.push(condition),
    }
}

fn implies(given: &Expr, wanted: &Expr) -> bool {
    match &given.kind {
        ExprKind::And(parts) => return parts.iter().any(|part| implies(part, wanted)),
        ExprKind::Or(parts) => {
            return given.same(wanted) || parts.iter().all(|part| is_implied(wanted, &[part]));
        }
        _ => {}
    }
    if given.same(wanted) || says_same(given, wanted) {
        return true;
    }
    if let ExprKind::IsNull(of, false) = &wanted.kind {
        return !is_row(of) && is_null_with(given, of);
    }
    let Some(wanted) = Test::of(wanted) else {
        return false;
    };
    Test::of(given).is_some_and(|given| given.implies(&wanted))
}

/// Whether both are the same said of a boolean: `a` and `a = true`, `NOT a` and `a = false`.
fn says_same(one: &Expr, other: &Expr) -> bool {
    let (of, is) = boolean(one);
    let (other, is_other) = boolean(other);
    is == is_other && of.same(other)
}

fn boolean(expr: &Expr) -> (&Expr, bool) {
    match &expr.kind {
        ExprKind::Not(inner) => {
            let (of, is) = boolean(inner);
            (of, !is)
        }
        ExprKind::Call(call) if call.function.name == "booleq" => match call.arguments.as_slice() {
            [
                of,
                Expr {
                    kind: ExprKind::Constant(Datum::Bool(value)),
                    ..
                },
            ]
            | [
                Expr {
                    kind: ExprKind::Constant(Datum::Bool(value)),
                    ..
                },
                of,
            ] => {
                let (of, is) = boolean(of);
                (of, is == *value)
            }
            _ => (expr, true),
        },
        _ => (expr, true),
    }
}

/// Whether NULL is asked of its columns, and not of the value.
fn is_row(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Row(_) | ExprKind::WholeRow { .. })
        || expr.oid == ids::RECORD
        || crate::types::user::Class::of(expr.oid) == Some(crate::types::user::Class::Composite)
}

/// Whether the expression is not true where `of` is NULL.
fn is_null_with(expr: &Expr, of: &Expr) -> bool {
    if expr.same(of) {
        return true;
    }
    match &expr.kind {
        ExprKind::Call(call) => {
            call.function.strict && call.arguments.iter().any(|part| is_null_with(part, of))
        }
        ExprKind::Relabel(inner) | ExprKind::Fit(inner, _) | ExprKind::Not(inner) => {
            is_null_with(inner, of)
        }
        // Of no value at all, ALL is true.
        ExprKind::AnyOfArray(list) => {
            list.any && list.function.strict && is_null_with(&list.value, of)
        }
        _ => false,
    }
}

/// The comparisons of one order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Less,
    AtMost,
    Equal,
    AtLeast,
    Greater,
    NotEqual,
}

impl Sign {
    fn of(operator: &str) -> Option<Self> {
        Some(match operator {
            "<" => Self::Less,
            "<=" => Self::AtMost,
            "=" => Self::Equal,
            ">=" => Self::AtLeast,
            ">" => Self::Greater,
            "<>" => Self::NotEqual,
            _ => return None,
        })
    }

    const fn mirrored(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::AtMost => Self::AtLeast,
            Self::AtLeast => Self::AtMost,
            Self::Greater => Self::Less,
            same => same,
        }
    }

    /// Whether `x sign a` implies `x wanted b`, where `order` is that of a to b.
    fn implies(self, wanted: Self, order: Ordering) -> bool {
        use Ordering::{Equal, Greater, Less};
        match (self, wanted) {
            (Self::Equal, Self::Less) => order == Less,
            (Self::Equal, Self::AtMost) => order != Greater,
            (Self::Equal, Self::Equal) | (Self::NotEqual, Self::NotEqual) => order == Equal,
            (Self::Equal, Self::AtLeast) => order != Less,
            (Self::Equal, Self::Greater) => order == Greater,
            (Self::Equal, Self::NotEqual) => order != Equal,
            (Self::Less, Self::Less | Self::AtMost | Self::NotEqual)
            | (Self::AtMost, Self::AtMost) => order != Greater,
            (Self::AtMost, Self::Less | Self::NotEqual) => order == Less,
            (Self::Greater, Self::Greater | Self::AtLeast | Self::NotEqual)
            | (Self::AtLeast, Self::AtLeast) => order != Less,
            (Self::AtLeast, Self::Greater | Self::NotEqual) => order == Greater,
            _ => false,
        }
    }
}

/// A value compared with a constant, or with any of several.
struct Test<'e> {
    of: &'e Expr,
    sign: Sign,
    /// The type by whose order they are compared.
    oid: u32,
    constants: Vec<Datum>,
}

impl<'e> Test<'e> {
    fn of(expr: &'e Expr) -> Option<Self> {
        match &expr.kind {
            ExprKind::Call(call) => Self::of_call(call),
            ExprKind::AnyOfArray(list) if list.any && list.types[0] == list.types[1] => {
                let ExprKind::Constant(Datum::Array(array)) = &list.array.kind else {
                    return None;
                };
                let oid = ordered(list.types[0])?;
                let is_equal = Sign::of(list.operator) == Some(Sign::Equal);
                let is_short = array.elements.len() <= LIST_MAX;
                (is_equal && is_short && !array.has_null()).then(|| Self {
                    of: &list.value,
                    sign: Sign::Equal,
                    oid,
                    constants: array.elements.clone(),
                })
            }
            _ => None,
        }
    }

    fn of_call(call: &'e FunctionCall) -> Option<Self> {
        let sign = Sign::of(call.operator?)?;
        let [left, right] = call.arguments.as_slice() else {
            return None;
        };
        let oid = match *call.types {
            [left, right] if left == right => ordered(left)?,
            _ => return None,
        };
        let (of, sign, constant) = match (&left.kind, &right.kind) {
            (_, ExprKind::Constant(constant)) => (left, sign, constant),
            (ExprKind::Constant(constant), _) => (right, sign.mirrored(), constant),
            _ => return None,
        };
        (!constant.is_null()).then(|| Self {
            of,
            sign,
            oid,
            constants: vec![constant.clone()],
        })
    }

    fn implies(&self, wanted: &Self) -> bool {
        let is_so = |given: &Datum, wanted_by: &Datum| {
            let order = crate::types::compare(self.oid, given, wanted_by);
            order.is_ok_and(|order| self.sign.implies(wanted.sign, order))
        };
        self.oid == wanted.oid
            && self.of.same(wanted.of)
            && self
                .constants
                .iter()
                .all(|given| wanted.constants.iter().any(|wanted| is_so(given, wanted)))
    }
}

/// The type, if its operators have the order that its values have here.
fn ordered(oid: u32) -> Option<u32> {
    matches!(
        oid,
        ids::BOOL
            | ids::INT2
            | ids::INT4
            | ids::INT8
            | ids::NUMERIC
            | ids::FLOAT4
            | ids::FLOAT8
            | ids::TEXT
            | ids::DATE
            | ids::TIMESTAMP
            | ids::TIMESTAMPTZ
            | ids::UUID
    )
    .then_some(oid)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNS: [Sign; 6] = [
        Sign::Less,
        Sign::AtMost,
        Sign::Equal,
        Sign::AtLeast,
        Sign::Greater,
        Sign::NotEqual,
    ];

    impl Sign {
        fn is_true(self, value: i32, of: i32) -> bool {
            match self {
                Self::Less => value < of,
                Self::AtMost => value <= of,
                Self::Equal => value == of,
                Self::AtLeast => value >= of,
                Self::Greater => value > of,
                Self::NotEqual => value != of,
            }
        }
    }

    /// Constants are even, so that there are values between any two and beyond all.
    #[test]
    fn a_comparison_implies_another_where_no_value_says_otherwise() {
        for given in SIGNS {
            for wanted in SIGNS {
                for (a, b) in [(2, 4), (4, 4), (4, 2)] {
                    let said = given.implies(wanted, a.cmp(&b));
                    let mut values = (-3..10).filter(|value| given.is_true(*value, a));
                    let is_so = values.all(|value| wanted.is_true(value, b));
                    assert_eq!(said, is_so, "{a} and {b}");
                }
            }
        }
    }
}
