//! What follows an expression: fields of rows, subscripts of arrays and of `jsonb`.

use super::Analyzer;
use super::resolve::element_type;
use crate::casts::Context;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::functions;
use crate::tree::{Expr, ExprKind, Subscript};
use crate::types::array::{DIMENSIONS_MAX, too_many_dimensions};
use crate::types::{self, format_type, ids};
use pg_raw_parse::Node;
use pg_raw_parse::nodes::A_Indirection;

impl Analyzer<'_> {
    pub(super) fn indirection(&mut self, indirection: &A_Indirection) -> Result<Expr> {
        let mut expr = self.expr(indirection.arg())?;
        let steps: Vec<Node<'_>> = indirection.indirection().iter().collect();
        let mut at = 0;
        while at < steps.len() {
            let run = steps[at..]
                .iter()
                .take_while(|step| matches!(step, Node::A_Indices(_)))
                .count();
            if run > 0 {
                expr = self.subscripts(expr, &steps[at..at + run])?;
                at += run;
            } else {
                let location = expr.location;
                expr = self.step(expr, steps[at], location)?;
                at += 1;
            }
        }
        Ok(expr)
    }

    /// A field of a row.
    pub(super) fn step(&mut self, expr: Expr, step: Node<'_>, location: i32) -> Result<Expr> {
        if let Some(name) = step.as_str() {
            return self.field_named(expr, name, location);
        }
        if matches!(step, Node::A_Indices(_)) {
            return self.subscripts(expr, &[step]);
        }
        Err(QueryError::new("42601", "row expansion via \"*\" is not supported here").at(location))
    }

    /// The field of this name of a row.
    pub(super) fn field_named(&mut self, expr: Expr, name: &str, _: i32) -> Result<Expr> {
        if let Some(columns) = self.row_columns(&expr)
            && let Some(at) = columns.iter().position(|column| *column.name == *name)
        {
            let (oid, modifier) = (columns[at].oid, columns[at].modifier);
            let location = expr.location;
            return Ok(
                Expr::new(ExprKind::Field(Box::new(expr), at), oid, location)
                    .with_modifier(modifier),
            );
        }
        let place = expr.location;
        let source = expr.oid;
        if !functions::named(name).is_empty()
            && let Ok(call) = self.call_named(name, vec![expr], place)
        {
            return Ok(call);
        }
        Err(match source {
            ids::RECORD => QueryError::new(
                "42703",
                format!("could not identify column \"{name}\" in record data type"),
            ),
            oid if super::coerce::is_composite(oid) => QueryError::new(
                "42703",
                format!(
                    "column \"{name}\" not found in data type {}",
                    format_type(oid, -1)
                ),
            ),
            oid => QueryError::new(
                "42809",
                format!(
                    "column notation .{name} applied to type {}, which is not a composite type",
                    format_type(oid, -1)
                ),
            ),
        }
        .at(place))
    }

    pub(super) fn subscripts(&mut self, value: Expr, steps: &[Node<'_>]) -> Result<Expr> {
        let location = value.location;
        let shown = value.oid;
        let value = self.as_base(value);
        if value.oid == ids::NAME
            && let [Node::A_Indices(indices)] = steps
            && !indices.is_slice
        {
            return self.letter(value, indices.uidx());
        }
        let is_json = value.oid == ids::JSONB;
        let element = element_type(value.oid);
        if element.is_none() && !is_json {
            return Err(QueryError::new(
                "42804",
                format!(
                    "cannot subscript type {} because it does not support subscripting",
                    format_type(shown, -1)
                ),
            )
            .at(location));
        }
        if !is_json && steps.len() > DIMENSIONS_MAX {
            return Err(too_many_dimensions(steps.len()).at(location));
        }
        let slice = steps
            .iter()
            .any(|step| matches!(step, Node::A_Indices(indices) if indices.is_slice));
        if is_json && slice {
            return Err(
                QueryError::new("42804", "jsonb subscript does not support slices").at(location),
            );
        }
        let mut bounds = Vec::new();
        for step in steps {
            let Node::A_Indices(indices) = step else {
                continue;
            };
            let bound = |analyzer: &mut Self, node: Node<'_>| -> Result<Option<Expr>> {
                if matches!(node, Node::None) {
                    return Ok(None);
                }
                let expr = analyzer.expr(node)?;
                let (source, place) = (expr.oid, expr.location);
                let coerced = if is_json {
                    match source {
                        ids::INT2 | ids::INT4 => {
                            analyzer.coerce_to(expr, ids::INT4, -1, Context::Assignment)?
                        }
                        _ if source == ids::UNKNOWN || types::category(source) == b'S' => {
                            analyzer.coerce_to(expr, ids::TEXT, -1, Context::Assignment)?
                        }
                        _ => None,
                    }
                } else {
                    analyzer.coerce_to(expr, ids::INT4, -1, Context::Assignment)?
                };
                coerced.map(Some).ok_or_else(|| {
                    let message = match is_json {
                        true => format!(
                            "subscript type {} is not supported",
                            format_type(source, -1)
                        ),
                        false => "array subscript must have type integer".to_owned(),
                    };
                    QueryError::new("42804", message).at(place)
                })
            };
            let lower = bound(self, indices.lidx())?;
            let upper = bound(self, indices.uidx())?;
            // In a slice `[i]` means `[1:i]`.
            let lower = match (slice && !indices.is_slice, lower) {
                (true, None) => Some(Expr::constant(Datum::Int4(1), ids::INT4)),
                (_, lower) => lower,
            };
            bounds.push((lower, upper));
        }
        let (oid, modifier) = match (is_json, slice, element) {
            (true, ..) => (ids::JSONB, -1),
            (_, true, _) => (value.oid, value.modifier),
            (_, false, element) => (element.unwrap_or(0), value.modifier),
        };
        let subscript = Subscript {
            value,
            bounds,
            slice,
        };
        Ok(
            Expr::new(ExprKind::Subscript(Box::new(subscript)), oid, location)
                .with_modifier(modifier),
        )
    }

    /// A letter of a name, counted from 0, where the place is a constant: so `pg_dump` looks for
    /// array types. Behind the name's end are zeros, and nothing outside of its 64 bytes.
    fn letter(&mut self, name: Expr, place: Node<'_>) -> Result<Expr> {
        let location = name.location;
        let place = self.expr(place)?;
        let ExprKind::Constant(Datum::Int4(number)) = place.kind else {
            let message = "a place in a name that is no integer constant is not supported";
            return Err(QueryError::unsupported(
                message,
                "Cast the name to text, and use substr().",
            )
            .at(place.location));
        };
        let constant = |number| Expr::constant(Datum::Int4(number), ids::INT4);
        let letter = match number {
            0..64 => {
                let from = self.coerce_to(name, ids::TEXT, -1, Context::Explicit)?;
                let from = from.ok_or_else(|| QueryError::internal("a name is no text"))?;
                let arguments = vec![from, constant(number + 1), constant(1)];
                self.call_named("substr", arguments, location)?
            }
            _ => Expr::constant(Datum::Null, ids::TEXT),
        };
        let letter = self.coerce_to(letter, ids::CHAR, -1, Context::Explicit)?;
        letter.ok_or_else(|| QueryError::internal("a text is no letter"))
    }
}
