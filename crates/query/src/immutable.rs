//! Whether an expression's value depends on the values that it reads alone: not on settings, the
//! time, or what a database holds. PostgreSQL asks that of what it computes once and keeps.
//!
//! The words of functions count ([`Volatility`]), and those of the types where a value goes through
//! its text: how a time or an array is written depends on settings, or on its elements' type.

use crate::functions::{Function, Volatility};
use crate::tree::{Expr, ExprKind, FunctionCall};
use crate::types::domain::base;
use crate::types::user::Class;
use crate::types::{element_of, ids};

/// Whether the expression gives the same value for the same columns, always.
#[must_use]
pub fn is_immutable(expr: &Expr) -> bool {
    !expr.any(&mut |expr| match &expr.kind {
        ExprKind::Call(call) => !is_fixed(call),
        ExprKind::Distinct(call, _) | ExprKind::NullIf(call) => !is_fixed(call),
        ExprKind::AnyOfArray(comparison) => !by_its_word(comparison.function),
        ExprKind::ThroughText(inner) => is_written_freely(inner.oid) || is_read_freely(expr.oid),
        ExprKind::Now(_) | ExprKind::Subquery(_) => true,
        _ => false,
    })
}

fn by_its_word(function: &Function) -> bool {
    function.volatility == Volatility::Immutable
}

/// Whether a call's answer never changes. `text || anything` is as fixed as the text of that.
fn is_fixed(call: &FunctionCall) -> bool {
    match call.function.name {
        "textanycat" | "anytextcat" => !call.types.iter().any(|oid| is_written_freely(*oid)),
        _ => by_its_word(call.function),
    }
}

/// Whether the text of a value of this type depends on more than the value.
fn is_written_freely(oid: u32) -> bool {
    let oid = base(oid);
    element_of(oid).is_some()
        || matches!(Class::of(oid), Some(Class::Enum | Class::Composite))
        || matches!(
            oid,
            ids::ACLITEM
                | ids::DATE
                | ids::INTERVAL
                | ids::RECORD
                | ids::REGCLASS
                | ids::REGCOLLATION
                | ids::REGNAMESPACE
                | ids::REGOPER
                | ids::REGOPERATOR
                | ids::REGPROC
                | ids::REGPROCEDURE
                | ids::REGROLE
                | ids::REGTYPE
                | ids::TIMESTAMP
                | ids::TIMESTAMPTZ
        )
}

/// Whether what a text means as a value of this type depends on more than the text.
fn is_read_freely(oid: u32) -> bool {
    is_written_freely(oid) || matches!(base(oid), ids::TIME | ids::TIMETZ | ids::XML)
}
