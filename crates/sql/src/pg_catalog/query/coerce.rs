//! Types that meet: what a quoted literal, an open parameter and two operands
//! become, by PostgreSQL's rules.

use super::bind::Binder;
use super::cast::cast;
use super::expr::{Expr, Typed};
use crate::error::{Result, SqlError};
use crate::pg_catalog::pg_type::{PgType, format_type};

/// Conditions must be boolean.
pub(super) fn require_boolean(typed: Typed, binder: &mut Binder<'_>) -> Result<Typed> {
    if typed.is_unknown() {
        return coerce(typed, PgType::BOOL, binder);
    }
    if typed.data_type == PgType::BOOL {
        return Ok(typed);
    }
    Err(SqlError::new(
        "42804",
        format!(
            "argument of WHERE must be type boolean, not type {}",
            format_type(typed.data_type.oid, None)
        ),
    ))
}

/// The type that values of all these types can take.
pub(super) fn common_type(types: &[PgType]) -> PgType {
    let mut common = PgType::UNKNOWN;
    for data_type in types {
        common = match (common, *data_type) {
            (PgType::UNKNOWN, other) | (other, PgType::UNKNOWN) => other,
            (a, b) if a.oid == b.oid => PgType {
                oid: a.oid,
                typmod: if a.typmod == b.typmod { a.typmod } else { -1 },
            },
            (a, b) if a.is_number() && b.is_number() => {
                let rank = |data_type: PgType| match data_type.oid {
                    21 => 0,
                    23 => 1,
                    26 => 2,
                    20 => 3,
                    1700 => 4,
                    700 => 5,
                    _ => 6,
                };
                if rank(a) >= rank(b) { a } else { b }
            }
            (a, b) if a.is_text() && b.is_text() => PgType::TEXT,
            (a, _) => a,
        };
    }
    common
}

/// `typed` as a value of type `target`; a quoted literal is read now, an open
/// parameter takes the type.
pub(super) fn coerce(typed: Typed, target: PgType, binder: &mut Binder<'_>) -> Result<Typed> {
    if typed.data_type.oid == target.oid {
        return Ok(typed);
    }
    if typed.is_unknown() {
        return match typed.expr {
            Expr::Parameter(index) => {
                if let Some(known) = binder.parameters.get_mut(index) {
                    *known = Some(target);
                }
                Ok(Typed::new(Expr::Parameter(index), target))
            }
            Expr::Constant(value) => {
                let value = cast(value, PgType::UNKNOWN, target, binder.session)?;
                Ok(Typed::new(Expr::Constant(value), target))
            }
            expr => Ok(Typed::new(
                Expr::Cast {
                    value: Box::new(expr),
                    from: PgType::TEXT,
                    to: target,
                },
                target,
            )),
        };
    }
    let same_values = (typed.data_type.is_integer() && target.is_integer())
        || (typed.data_type.is_text() && target.is_text());
    if same_values {
        return Ok(Typed::new(typed.expr, target));
    }
    Ok(Typed::new(
        Expr::Cast {
            value: Box::new(typed.expr),
            from: typed.data_type,
            to: target,
        },
        target,
    ))
}

pub(super) fn no_operator(left: PgType, op: &str, right: PgType) -> SqlError {
    SqlError::new(
        "42883",
        format!(
            "operator does not exist: {} {op} {}",
            format_type(left.oid, None),
            format_type(right.oid, None)
        ),
    )
}

/// Both operands of a comparison in types that compare.
pub(super) fn coerce_pair(
    left: Typed,
    right: Typed,
    op: &str,
    binder: &mut Binder<'_>,
) -> Result<(Typed, Typed)> {
    match (left.is_unknown(), right.is_unknown()) {
        (true, true) => Ok((
            coerce(left, PgType::TEXT, binder)?,
            coerce(right, PgType::TEXT, binder)?,
        )),
        (true, false) => {
            let target = right.data_type;
            Ok((coerce(left, target, binder)?, right))
        }
        (false, true) => {
            let target = left.data_type;
            Ok((left, coerce(right, target, binder)?))
        }
        (false, false) => {
            let (l, r) = (left.data_type, right.data_type);
            let comparable = l.oid == r.oid
                || (l.is_text() && r.is_text())
                || ((l.is_number() || l.is_oid()) && (r.is_number() || r.is_oid()))
                || (l.element().is_some() && r.element().is_some())
                || (matches!(l.oid, 1082 | 1114 | 1184) && matches!(r.oid, 1082 | 1114 | 1184));
            if !comparable {
                return Err(no_operator(l, op, r));
            }
            if l.oid != r.oid && matches!(l.oid, 1082 | 1114 | 1184) {
                let target = if l.oid > r.oid { l } else { r };
                return Ok((
                    coerce(left, target, binder)?,
                    coerce(right, target, binder)?,
                ));
            }
            Ok((left, right))
        }
    }
}
