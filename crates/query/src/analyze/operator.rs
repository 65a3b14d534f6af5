//! Operators: comparisons and all else that a sign means, of rows and with arrays, too.

use super::Analyzer;
use super::coerce::{can_coerce, cannot_cast, common_type};
use super::resolve::{FoundOperator, element_type, generic_types, operator};
use crate::casts::Context;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::functions;
use crate::tree::{ArrayComparison, Comparison, Expr, ExprKind, FunctionCall, RowComparison};
use crate::types::{self, format_type, ids};
use pg_raw_parse::Node;
use pg_raw_parse::nodes::A_Expr;
use pg_raw_parse::raw::A_Expr_Kind;
use std::sync::Arc;

impl Analyzer<'_> {
    pub(super) fn operation(&mut self, expr: &A_Expr) -> Result<Expr> {
        let sign = expr
            .name()
            .iter()
            .filter_map(Node::as_str)
            .next_back()
            .unwrap_or_default();
        let location = expr.location;
        match expr.kind {
            A_Expr_Kind::AEXPR_OP => {
                // A row beside a query is compared with its row.
                if let (Node::RowExpr(_), Node::SubLink(link)) = (expr.lexpr(), expr.rexpr())
                    && link.sub_link_type == pg_raw_parse::raw::SubLinkType::EXPR_SUBLINK
                {
                    let left = self.expr(expr.lexpr())?;
                    return self.row_subquery(left, sign, link, location);
                }
                if matches!(expr.lexpr(), Node::None) {
                    let right = self.expr(expr.rexpr())?;
                    return self.operator_call(sign, None, right, location);
                }
                let left = self.expr(expr.lexpr())?;
                let right = self.expr(expr.rexpr())?;
                self.binary(sign, left, right, location)
            }
            A_Expr_Kind::AEXPR_LIKE | A_Expr_Kind::AEXPR_ILIKE | A_Expr_Kind::AEXPR_SIMILAR => {
                let left = self.expr(expr.lexpr())?;
                let right = self.expr(expr.rexpr())?;
                self.binary(sign, left, right, location)
            }
            A_Expr_Kind::AEXPR_OP_ANY | A_Expr_Kind::AEXPR_OP_ALL => {
                let left = self.expr(expr.lexpr())?;
                let right = self.expr(expr.rexpr())?;
                let any = expr.kind == A_Expr_Kind::AEXPR_OP_ANY;
                self.array_comparison(sign, left, right, any, location)
            }
            A_Expr_Kind::AEXPR_DISTINCT | A_Expr_Kind::AEXPR_NOT_DISTINCT => {
                let left = self.expr(expr.lexpr())?;
                let right = self.expr(expr.rexpr())?;
                let wanted = expr.kind == A_Expr_Kind::AEXPR_DISTINCT;
                self.distinct_from(left, right, wanted, location)
            }
            A_Expr_Kind::AEXPR_NULLIF => {
                let left = self.expr(expr.lexpr())?;
                let right = self.expr(expr.rexpr())?;
                let call = self.operator_call("=", Some(left), right, location)?;
                let ExprKind::Call(call) = call.kind else {
                    return Err(QueryError::internal("an operator is a call"));
                };
                let (oid, modifier) = (call.arguments[0].oid, call.arguments[0].modifier);
                Ok(Expr::new(ExprKind::NullIf(call), oid, location).with_modifier(modifier))
            }
            A_Expr_Kind::AEXPR_IN => self.in_list(expr, sign == "<>"),
            _ => self.between(expr),
        }
    }

    /// An operator between two expressions, rows among them.
    pub(super) fn binary(
        &mut self,
        sign: &str,
        left: Expr,
        right: Expr,
        location: i32,
    ) -> Result<Expr> {
        // A row that is cast is a value.
        let are_rows = left.oid == ids::RECORD && right.oid == ids::RECORD;
        match (left.kind, right.kind) {
            (ExprKind::Row(lefts), ExprKind::Row(rights)) if are_rows => {
                self.compare_rows(sign, lefts, rights, location)
            }
            (left_kind, right_kind) => {
                let left = Expr {
                    kind: left_kind,
                    ..left
                };
                let right = Expr {
                    kind: right_kind,
                    ..right
                };
                self.operator_call(sign, Some(left), right, location)
            }
        }
    }

    pub(super) fn operator_call(
        &mut self,
        sign: &str,
        left: Option<Expr>,
        right: Expr,
        location: i32,
    ) -> Result<Expr> {
        let left_oid = left.as_ref().map_or(0, |left| left.oid);
        let row = match operator(sign, left_oid, right.oid) {
            FoundOperator::One(row) => row,
            other => {
                let shown = match left_oid {
                    0 => format!("{sign} {}", format_type(right.oid, -1)),
                    oid => format!(
                        "{} {sign} {}",
                        format_type(oid, -1),
                        format_type(right.oid, -1)
                    ),
                };
                let error = match other {
                    FoundOperator::Ambiguous => QueryError::new("42725", format!("operator is not unique: {shown}"))
                        .with_hint("Could not choose a best candidate operator. You might need to add explicit type casts."),
                    _ if left_oid == 0 => QueryError::new("42883", format!("operator does not exist: {shown}"))
                        .with_hint("No operator matches the given name and argument type. You might need to add an explicit type cast."),
                    _ => QueryError::new("42883", format!("operator does not exist: {shown}"))
                        .with_hint("No operator matches the given name and argument types. You might need to add explicit type casts."),
                };
                return Err(error.at(location));
            }
        };
        let Some(function) = functions::by_oid(row.function) else {
            let shown = match left_oid {
                0 => format!("{sign} {}", format_type(right.oid, -1)),
                oid => format!(
                    "{} {sign} {}",
                    format_type(oid, -1),
                    format_type(right.oid, -1)
                ),
            };
            return Err(QueryError::unsupported(
                format!("operator {shown} is not supported"),
                "Use a function, or cast an operand.",
            )
            .at(location));
        };
        let mut given = Vec::with_capacity(2);
        let mut declared = Vec::with_capacity(2);
        if let Some(left) = left {
            given.push(left);
            declared.push(row.left);
        }
        given.push(right);
        declared.push(row.right);
        let actual: Vec<u32> = given.iter().map(|expr| expr.oid).collect();
        let Some(generic) = generic_types(&declared, &actual) else {
            return Err(QueryError::internal("an operator's types do not agree").at(location));
        };
        let mut arguments = Vec::with_capacity(2);
        for (expr, declared) in given.into_iter().zip(declared) {
            let place = expr.location;
            let wanted = generic.actual(declared, expr.oid)?;
            arguments.push(
                self.coerce(expr, wanted, -1, Context::Implicit)
                    .map_err(|error| error.at(place))?,
            );
        }
        let result = generic.result(row.result)?;
        let call = FunctionCall {
            function,
            operator: Some(row.name),
            types: arguments.iter().map(|argument| argument.oid).collect(),
            arguments,
        };
        Ok(Expr::new(ExprKind::Call(Box::new(call)), result, location))
    }

    /// `x op ANY (array)`
    pub(super) fn array_comparison(
        &mut self,
        sign: &str,
        left: Expr,
        right: Expr,
        any: bool,
        location: i32,
    ) -> Result<Expr> {
        let element = match right.oid {
            ids::UNKNOWN => ids::UNKNOWN,
            array => element_type(array).ok_or_else(|| {
                QueryError::new("42809", "op ANY/ALL (array) requires array on right side")
                    .at(location)
            })?,
        };
        // The operator is found as between the value and an element, which stands in for the array.
        let stand_in = Expr::new(ExprKind::Element, element, location);
        let found = match element {
            ids::UNKNOWN => {
                let unknown = Expr::new(ExprKind::Constant(Datum::Null), ids::UNKNOWN, location);
                self.operator_call(sign, Some(left), unknown, location)?
            }
            _ => self.operator_call(sign, Some(left), stand_in, location)?,
        };
        if found.oid != ids::BOOL {
            return Err(QueryError::new(
                "42809",
                "op ANY/ALL (array) requires operator to yield boolean",
            )
            .at(location));
        }
        let ExprKind::Call(call) = found.kind else {
            return Err(QueryError::internal("an operator is a call"));
        };
        let FunctionCall {
            function,
            operator,
            mut arguments,
            types: argument_types,
        } = *call;
        let wanted_element = argument_types[1];
        arguments.truncate(1);
        let value = arguments.remove(0);
        let wanted = types::array_of(wanted_element);
        if wanted == 0 {
            return Err(QueryError::new(
                "42704",
                format!(
                    "could not find array type for data type {}",
                    format_type(wanted_element, -1)
                ),
            )
            .at(location));
        }
        let source = right.oid;
        let array = match right.oid {
            ids::INT2VECTOR | ids::OIDVECTOR if element == wanted_element => right,
            _ => self
                .coerce_to(right, wanted, -1, Context::Implicit)?
                .ok_or_else(|| cannot_cast(source, wanted).at(location))?,
        };
        let comparison = ArrayComparison {
            function,
            operator: operator.unwrap_or_default(),
            any,
            types: [value.oid, wanted_element],
            value,
            array,
        };
        Ok(Expr::new(
            ExprKind::AnyOfArray(Box::new(comparison)),
            ids::BOOL,
            location,
        ))
    }

    pub(super) fn in_list(&mut self, expr: &A_Expr, negated: bool) -> Result<Expr> {
        let location = expr.location;
        let left = self.expr(expr.lexpr())?;
        let Some(list) = expr.rexpr().as_node_list() else {
            return Err(QueryError::internal("IN has a list"));
        };
        let mut members = Vec::with_capacity(list.len());
        for node in list.iter() {
            members.push(self.expr(node)?);
        }
        let sign = if negated { "<>" } else { "=" };
        // What does not depend on a row becomes one array.
        let is_row = matches!(left.kind, ExprKind::Row(_)) || left.oid == ids::RECORD;
        let mut constant = Vec::new();
        let mut others = Vec::new();
        for member in members {
            let varies = member.any(&mut |expr| {
                matches!(
                    expr.kind,
                    ExprKind::Column { .. }
                        | ExprKind::WholeRow { .. }
                        | ExprKind::Subquery(_)
                        | ExprKind::Row(_)
                )
            });
            match varies || is_row {
                true => others.push(member),
                false => constant.push(member),
            }
        }
        let mut parts = Vec::new();
        if constant.len() > 1 {
            let mut all: Vec<&Expr> = vec![&left];
            all.extend(&constant);
            let scalar = common_type(&all, "IN").ok().filter(|oid| {
                *oid != ids::RECORD
                    && types::array_of(*oid) != 0
                    && all
                        .iter()
                        .all(|expr| can_coerce(&[expr.oid], &[*oid], Context::Implicit))
            });
            if let Some(oid) = scalar {
                let mut elements = Vec::with_capacity(constant.len());
                for member in std::mem::take(&mut constant) {
                    elements.push(self.coerce_to_common(member, oid, "IN")?);
                }
                let array = constant_array(elements, oid, location);
                parts.push(self.array_comparison(sign, left.clone(), array, !negated, location)?);
            }
        }
        for member in constant.into_iter().chain(others) {
            parts.push(self.binary(sign, left.clone(), member, location)?);
        }
        let mut checked = Vec::with_capacity(parts.len());
        for part in parts {
            checked.push(self.coerce_to_bool(part, "IN")?);
        }
        Ok(match (checked.len(), negated) {
            (1, _) => checked.remove(0),
            (_, true) => Expr::new(ExprKind::And(checked), ids::BOOL, location),
            (_, false) => Expr::new(ExprKind::Or(checked), ids::BOOL, location),
        })
    }

    pub(super) fn between(&mut self, expr: &A_Expr) -> Result<Expr> {
        let location = expr.location;
        let value = self.expr(expr.lexpr())?;
        let list = expr.rexpr();
        let Some(list) = list.as_node_list().filter(|list| list.len() == 2) else {
            return Err(QueryError::internal("BETWEEN has two bounds"));
        };
        let low = self.expr(list.get(0).unwrap_or(Node::None))?;
        let high = self.expr(list.get(1).unwrap_or(Node::None))?;
        let mut within = |low: &Expr, high: &Expr, negated: bool| -> Result<Expr> {
            let (first, second) = if negated { ("<", ">") } else { (">=", "<=") };
            let parts = vec![
                self.binary(first, value.clone(), low.clone(), location)?,
                self.binary(second, value.clone(), high.clone(), location)?,
            ];
            let kind = if negated {
                ExprKind::Or(parts)
            } else {
                ExprKind::And(parts)
            };
            Ok(Expr::new(kind, ids::BOOL, location))
        };
        Ok(match expr.kind {
            A_Expr_Kind::AEXPR_BETWEEN => within(&low, &high, false)?,
            A_Expr_Kind::AEXPR_NOT_BETWEEN => within(&low, &high, true)?,
            A_Expr_Kind::AEXPR_BETWEEN_SYM => {
                let parts = vec![within(&low, &high, false)?, within(&high, &low, false)?];
                Expr::new(ExprKind::Or(parts), ids::BOOL, location)
            }
            _ => {
                let parts = vec![within(&low, &high, true)?, within(&high, &low, true)?];
                Expr::new(ExprKind::And(parts), ids::BOOL, location)
            }
        })
    }

    pub(super) fn distinct_from(
        &mut self,
        left: Expr,
        right: Expr,
        wanted: bool,
        location: i32,
    ) -> Result<Expr> {
        let is_null = |expr: &Expr| matches!(expr.kind, ExprKind::Constant(Datum::Null));
        if is_null(&right) || is_null(&left) {
            let tested = if is_null(&right) { left } else { right };
            return Ok(Expr::new(
                ExprKind::IsNull(Box::new(tested), !wanted),
                ids::BOOL,
                location,
            ));
        }
        if let (ExprKind::Row(lefts), ExprKind::Row(rights)) = (&left.kind, &right.kind) {
            if lefts.len() != rights.len() {
                return Err(QueryError::new(
                    "42601",
                    "unequal number of entries in row expressions",
                )
                .at(location));
            }
            let mut parts = Vec::new();
            for (left, right) in lefts.clone().into_iter().zip(rights.clone()) {
                parts.push(self.distinct_from(left, right, wanted, location)?);
            }
            return Ok(match (parts.len(), wanted) {
                (1, _) => parts.remove(0),
                (_, true) => Expr::new(ExprKind::Or(parts), ids::BOOL, location),
                (_, false) => Expr::new(ExprKind::And(parts), ids::BOOL, location),
            });
        }
        let call = self.operator_call("=", Some(left), right, location)?;
        let ExprKind::Call(call) = call.kind else {
            return Err(QueryError::internal("an operator is a call"));
        };
        Ok(Expr::new(
            ExprKind::Distinct(call, wanted),
            ids::BOOL,
            location,
        ))
    }

    pub(super) fn compare_rows(
        &mut self,
        sign: &str,
        lefts: Vec<Expr>,
        rights: Vec<Expr>,
        location: i32,
    ) -> Result<Expr> {
        if lefts.len() != rights.len() {
            return Err(
                QueryError::new("42601", "unequal number of entries in row expressions")
                    .at(location),
            );
        }
        if lefts.is_empty() {
            return Err(QueryError::unsupported(
                "cannot compare rows of zero length",
                "Give the rows at least one field.",
            )
            .at(location));
        }
        let mut parts = Vec::with_capacity(lefts.len());
        for (left, right) in lefts.into_iter().zip(rights) {
            let part = self.operator_call(sign, Some(left), right, location)?;
            if part.oid != ids::BOOL {
                return Err(QueryError::new(
                    "42804",
                    format!(
                        "row comparison operator must yield type boolean, not type {}",
                        format_type(part.oid, -1)
                    ),
                )
                .at(location));
            }
            parts.push(part);
        }
        if parts.len() == 1 {
            return Ok(parts.remove(0));
        }
        let comparison = match sign {
            "=" => return Ok(Expr::new(ExprKind::And(parts), ids::BOOL, location)),
            "<>" => return Ok(Expr::new(ExprKind::Or(parts), ids::BOOL, location)),
            // Texts are ordered by their bytes in any case.
            "<" | "~<~" => Comparison::Less,
            "<=" | "~<=~" => Comparison::LessOrEqual,
            ">=" | "~>=~" => Comparison::GreaterOrEqual,
            ">" | "~>~" => Comparison::Greater,
            _ => {
                return Err(QueryError::unsupported(
                    format!("could not determine interpretation of row comparison operator {sign}"),
                    "Row comparison operators must be associated with btree operator families.",
                )
                .at(location));
            }
        };
        let mut pairs = Vec::with_capacity(parts.len());
        for part in parts {
            let ExprKind::Call(mut call) = part.kind else {
                continue;
            };
            let right = call.arguments.pop();
            let left = call.arguments.pop();
            let (Some(left), Some(right)) = (left, right) else {
                continue;
            };
            // The operator may take two types: the pair is compared as their common one.
            let oid = common_type(&[&left, &right], "ROW")?;
            let left = self.coerce_to_common(left, oid, "ROW")?;
            let right = self.coerce_to_common(right, oid, "ROW")?;
            pairs.push((left, right));
        }
        let comparison = RowComparison { comparison, pairs };
        Ok(Expr::new(
            ExprKind::RowComparison(Box::new(comparison)),
            ids::BOOL,
            location,
        ))
    }
}

/// An array of elements of one type; of constants alone, a constant.
pub(crate) fn constant_array(elements: Vec<Expr>, element: u32, location: i32) -> Expr {
    let oid = types::array_of(element);
    let values: Option<Vec<Datum>> = elements
        .iter()
        .map(|expr| match &expr.kind {
            ExprKind::Constant(value) => Some(value.clone()),
            _ => None,
        })
        .collect();
    let kind = match values {
        Some(values) => {
            let array = crate::types::array::Array::of(element, values);
            ExprKind::Constant(Datum::Array(Arc::new(array)))
        }
        None => ExprKind::Array(elements, false),
    };
    Expr::new(kind, oid, location)
}
