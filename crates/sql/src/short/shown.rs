//! Expressions as EXPLAIN shows them.

use std::fmt::Write;

use thermocline_engine::Table;
use thermocline_query::call::{Call, Plain};
use thermocline_query::tree::{Expr, ExprKind};
use thermocline_query::types::{self, format_type, ids};

/// The expression's text, with the names of its tables' columns.
pub(super) fn shown(expr: &Expr, relations: &[(&Table, usize)]) -> String {
    let mut out = String::new();
    show(expr, relations, &mut out);
    out
}

fn list(exprs: &[Expr], between: &str, relations: &[(&Table, usize)], out: &mut String) {
    for (number, expr) in exprs.iter().enumerate() {
        if number > 0 {
            out.push_str(between);
        }
        show(expr, relations, out);
    }
}

fn show(expr: &Expr, relations: &[(&Table, usize)], out: &mut String) {
    let nested = |expr: &Expr, out: &mut String| show(expr, relations, out);
    match &expr.kind {
        ExprKind::Constant(value) if value.is_null() => out.push_str("NULL"),
        ExprKind::Constant(value) => {
            let plain = Plain::default();
            let call = Call::new(&plain, &[], expr.oid);
            let text = types::to_text(&call, expr.oid, value).unwrap_or_default();
            match expr.oid {
                ids::INT2 | ids::INT4 | ids::INT8 | ids::NUMERIC | ids::BOOL => out.push_str(&text),
                _ => {
                    let _ = write!(out, "'{}'", text.replace('\'', "''"));
                }
            }
        }
        ExprKind::Parameter(number) => {
            let _ = write!(out, "${}", number + 1);
        }
        ExprKind::Column {
            relation, column, ..
        } => match relations.get(*relation) {
            Some((table, _)) => out.push_str(table.columns[*column].shown()),
            None => out.push_str("?column?"),
        },
        ExprKind::Call(call) => match (call.operator, call.arguments.as_slice()) {
            (Some(sign), [left, right]) => {
                out.push('(');
                nested(left, out);
                let _ = write!(out, " {sign} ");
                nested(right, out);
                out.push(')');
            }
            (Some(sign), [only]) => {
                let _ = write!(out, "({sign} ");
                nested(only, out);
                out.push(')');
            }
            (_, arguments) => {
                let _ = write!(out, "{}(", call.function.name);
                list(arguments, ", ", relations, out);
                out.push(')');
            }
        },
        ExprKind::Relabel(inner)
        | ExprKind::ThroughText(inner)
        | ExprKind::Checked(inner)
        | ExprKind::Fit(inner, _) => {
            nested(inner, out);
            let _ = write!(out, "::{}", format_type(expr.oid, expr.modifier));
        }
        ExprKind::And(parts) | ExprKind::Or(parts) => {
            let between = match &expr.kind {
                ExprKind::And(_) => " AND ",
                _ => " OR ",
            };
            out.push('(');
            list(parts, between, relations, out);
            out.push(')');
        }
        ExprKind::Not(inner) => {
            out.push_str("NOT ");
            nested(inner, out);
        }
        ExprKind::IsNull(inner, wanted) => {
            nested(inner, out);
            out.push_str(if *wanted { " IS NULL" } else { " IS NOT NULL" });
        }
        ExprKind::Row(parts) => {
            out.push_str("ROW(");
            list(parts, ", ", relations, out);
            out.push(')');
        }
        ExprKind::Array(parts, _) => {
            out.push_str("ARRAY[");
            list(parts, ", ", relations, out);
            out.push(']');
        }
        // The rest by what it is computed from.
        _ => {
            out.push_str("(…");
            expr.children(&mut |child| {
                out.push(' ');
                show(child, relations, out);
            });
            out.push(')');
        }
    }
}
