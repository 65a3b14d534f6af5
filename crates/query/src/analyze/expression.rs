//! Expressions: each kind of node.

use std::sync::Arc;

use pg_raw_parse::Node;
use pg_raw_parse::nodes::{
    A_ArrayExpr, A_Expr, A_Indirection, BoolExpr, BooleanTest, CaseExpr, ColumnRef, NullTest,
    ParamRef, SQLValueFunction, TypeCast,
};
use pg_raw_parse::raw::{
    A_Expr_Kind, BoolExprType, BoolTestType, MinMaxOp, NullTestType, SQLValueFunctionOp,
};

use super::Analyzer;
use super::coerce::{can_coerce, cannot_cast, common_modifier, common_type};
use super::resolve::{FoundOperator, element_type, generic_types, operator};
use crate::casts::Context;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::functions;
use crate::tree::{
    ArrayComparison, Case, Comparison, Expr, ExprKind, FunctionCall, Now, RowComparison, Subscript,
};
use crate::types::{self, format_type, ids};

impl Analyzer<'_> {
    /// Any expression.
    pub(super) fn expr(&mut self, node: Node<'_>) -> Result<Expr> {
        stacker::maybe_grow(128 << 10, 4 << 20, || self.expr_here(node))
    }

    fn expr_here(&mut self, node: Node<'_>) -> Result<Expr> {
        match node {
            Node::ColumnRef(column) => self.column_ref(column),
            Node::ParamRef(parameter) => self.parameter(parameter),
            Node::A_Const(constant) => self.constant(constant),
            Node::TypeCast(cast) => self.type_cast(cast),
            Node::CollateClause(collate) => {
                let expr = self.expr(collate.arg())?;
                let names: Vec<&str> = collate.collname().iter().filter_map(Node::as_str).collect();
                match names.last() {
                    Some(&("C" | "POSIX" | "default" | "ucs_basic")) => self.decide_unknown(expr),
                    _ => Err(QueryError::new(
                        "42704",
                        format!(
                            "collation \"{}\" for encoding \"UTF8\" does not exist",
                            names.join(".")
                        ),
                    )
                    .at(collate.location)),
                }
            }
            Node::A_Expr(expr) => self.operation(expr),
            Node::BoolExpr(expr) => self.boolean(expr),
            Node::FuncCall(call) => self.call(call),
            Node::SubLink(link) => self.subquery(link),
            Node::CaseExpr(case) => self.case(case),
            Node::RowExpr(row) => {
                let mut parts = Vec::new();
                for node in row.args().iter() {
                    parts.extend(self.row_part(node)?);
                }
                if parts.len() > 1664 {
                    return Err(QueryError::new(
                        "54011",
                        "ROW expressions can have at most 1664 entries",
                    )
                    .at(row.location));
                }
                Ok(Expr::new(ExprKind::Row(parts), ids::RECORD, row.location))
            }
            Node::CoalesceExpr(expr) => {
                let parts = self.several(expr.args(), Some("COALESCE"))?;
                let (parts, oid, modifier) = self.as_common(parts, "COALESCE")?;
                Ok(
                    Expr::new(ExprKind::Coalesce(parts), oid, expr.location)
                        .with_modifier(modifier),
                )
            }
            Node::MinMaxExpr(expr) => {
                let greatest = expr.op == MinMaxOp::IS_GREATEST;
                let name = if greatest { "GREATEST" } else { "LEAST" };
                let parts = self.several(expr.args(), None)?;
                let (parts, oid, modifier) = self.as_common(parts, name)?;
                super::select::check_ordered(&Expr::new(ExprKind::Element, oid, expr.location))?;
                Ok(
                    Expr::new(ExprKind::Extreme(parts, greatest), oid, expr.location)
                        .with_modifier(modifier),
                )
            }
            Node::SQLValueFunction(function) => self.sql_value(function),
            Node::NullTest(test) => self.null_test(test),
            Node::BooleanTest(test) => self.boolean_test(test),
            Node::A_ArrayExpr(array) => self.array(array, None),
            Node::A_Indirection(indirection) => self.indirection(indirection),
            Node::GroupingFunc(grouping) => {
                let mut arguments = Vec::new();
                for node in grouping.args().iter() {
                    arguments.push(self.expr(node)?);
                }
                let level = self.level();
                level.groupings.push(arguments);
                level.has_aggregates = true;
                let pending = level.groupings.len() - 1;
                Ok(Expr::new(
                    ExprKind::Grouping(vec![pending]),
                    ids::INT4,
                    grouping.location,
                ))
            }
            Node::SetToDefault(_) => Err(QueryError::new(
                "42601",
                "DEFAULT is not allowed in this context",
            )),
            Node::NamedArgExpr(argument) => self.expr(argument.arg()),
            Node::None => Err(QueryError::internal("an expression is missing")),
            Node::XmlExpr(expr) => {
                Err(QueryError::unsupported("unsupported XML feature").at(expr.location))
            }
            _ => Err(QueryError::unsupported(
                "this kind of expression is not supported",
            )),
        }
    }

    /// A member of a row: `t.*` gives several.
    fn row_part(&mut self, node: Node<'_>) -> Result<Vec<Expr>> {
        if let Node::ColumnRef(column) = node
            && matches!(column.fields().iter().next_back(), Some(Node::A_Star(_)))
        {
            let names: Vec<&str> = column.fields().iter().filter_map(Node::as_str).collect();
            let (schema, name) = match names.as_slice() {
                [name] => (None, *name),
                [schema, name] => (Some(*schema), *name),
                _ => {
                    return Err(QueryError::new(
                        "42601",
                        "row expansion via \"*\" is not supported here",
                    )
                    .at(column.location));
                }
            };
            let Some((item, up)) = self.item(schema, name, column.location)? else {
                return Err(self.missing_item(name, column.location));
            };
            return Ok(item
                .columns
                .into_iter()
                .map(|(_, mut expr)| {
                    expr.raise_levels(0, up);
                    expr
                })
                .collect());
        }
        let expr = self.expr(node)?;
        Ok(vec![self.decide_unknown(expr)?])
    }

    fn several(
        &mut self,
        nodes: &pg_raw_parse::list::NodeList,
        no_sets: Option<&'static str>,
    ) -> Result<Vec<Expr>> {
        let before = self.level().no_sets;
        if no_sets.is_some() {
            self.level().no_sets = no_sets;
        }
        let exprs = nodes.iter().map(|node| self.expr(node)).collect();
        self.level().no_sets = before;
        exprs
    }

    /// All as their common type, with their common modifier.
    fn as_common(&mut self, exprs: Vec<Expr>, construct: &str) -> Result<(Vec<Expr>, u32, i32)> {
        let borrowed: Vec<&Expr> = exprs.iter().collect();
        let oid = common_type(&borrowed, construct)?;
        let modifier = common_modifier(&borrowed, oid);
        let exprs = exprs
            .into_iter()
            .map(|expr| self.coerce_to_common(expr, oid, construct))
            .collect::<Result<_>>()?;
        Ok((exprs, oid, modifier))
    }

    fn column_ref(&mut self, column: &ColumnRef) -> Result<Expr> {
        let location = column.location;
        let mut names: Vec<&str> = column.fields().iter().filter_map(Node::as_str).collect();
        let star = names.len() != column.fields().len();
        if star {
            let Some(name) = names.pop() else {
                return Err(QueryError::new(
                    "42601",
                    "row expansion via \"*\" is not supported here",
                )
                .at(location));
            };
            let schema = names.pop();
            let Some((item, up)) = self.item(schema, name, location)? else {
                return Err(self.missing_item(name, location));
            };
            return Ok(self.whole_row(&item, up, location));
        }
        match names.as_slice() {
            [name] => {
                if let Some(expr) = self.column(name, location)? {
                    return Ok(expr);
                }
                if let Some(expr) = self.open_system_column(name, location) {
                    return Ok(expr);
                }
                if let Some((item, up)) = self.item(None, name, location)? {
                    return Ok(self.whole_row(&item, up, location));
                }
                Err(
                    QueryError::new("42703", format!("column \"{name}\" does not exist"))
                        .at(location),
                )
            }
            [table, name] => self.qualified_column(None, table, name, location),
            [schema, table, name] | [_, schema, table, name] => {
                self.qualified_column(Some(schema), table, name, location)
            }
            _ => Err(QueryError::new(
                "42601",
                format!(
                    "improper qualified name (too many dotted names): {}",
                    names.join(".")
                ),
            )
            .at(location)),
        }
    }

    fn qualified_column(
        &mut self,
        schema: Option<&str>,
        table: &str,
        name: &str,
        location: i32,
    ) -> Result<Expr> {
        let Some((item, up)) = self.item(schema, table, location)? else {
            return Err(self.missing_item(table, location));
        };
        if let Some(expr) = self.item_column(&item, up, name, location)? {
            return Ok(expr);
        }
        // `t.f` is `f(t)`, too.
        if !functions::named(name).is_empty() {
            let row = self.whole_row(&item, up, location);
            if let Ok(call) = self.call_named(name, vec![row], location) {
                return Ok(call);
            }
        }
        let shown = match schema {
            Some(schema) => format!("{schema}.{table}.{name}"),
            None => format!("{table}.{name}"),
        };
        Err(QueryError::new("42703", format!("column {shown} does not exist")).at(location))
    }

    fn parameter(&mut self, parameter: &ParamRef) -> Result<Expr> {
        let number = usize::try_from(parameter.number).unwrap_or(0);
        if number == 0 || number > 65535 {
            return Err(QueryError::new(
                "42P02",
                format!("there is no parameter ${}", parameter.number),
            )
            .at(parameter.location));
        }
        if self.parameters.len() < number {
            self.parameters.resize(number, 0);
        }
        let at = number - 1;
        let oid = match self.parameters[at] {
            0 => ids::UNKNOWN,
            oid => oid,
        };
        if self.parameters[at] == 0 {
            self.parameters[at] = ids::UNKNOWN;
        }
        Ok(Expr::new(ExprKind::Parameter(at), oid, parameter.location))
    }

    fn type_cast(&mut self, cast: &TypeCast) -> Result<Expr> {
        let Some(name) = cast.type_name() else {
            return Err(QueryError::internal("a cast names a type"));
        };
        let (oid, modifier) = self.type_of(name)?;
        let location = if cast.location >= 0 {
            cast.location
        } else {
            name.location
        };
        let expr = match cast.arg() {
            Node::A_ArrayExpr(array) if types::element_of(oid).is_some() => {
                self.array(array, Some((oid, modifier)))?
            }
            other => self.expr(other)?,
        };
        self.cast(expr, oid, modifier, location)
    }

    /// A cast that is written.
    pub(super) fn cast(
        &mut self,
        expr: Expr,
        oid: u32,
        modifier: i32,
        location: i32,
    ) -> Result<Expr> {
        let source = expr.oid;
        match self.coerce_to(expr, oid, modifier, Context::Explicit)? {
            Some(cast) => Ok(cast),
            None => Err(cannot_cast(source, oid).at(location)),
        }
    }

    fn operation(&mut self, expr: &A_Expr) -> Result<Expr> {
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
        match (left.kind, right.kind) {
            (ExprKind::Row(lefts), ExprKind::Row(rights)) => {
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
            return Err(
                QueryError::unsupported(format!("operator {shown} is not supported")).at(location),
            );
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
            let wanted = generic.actual(declared, expr.oid);
            let place = expr.location;
            arguments.push(
                self.coerce(expr, wanted, -1, Context::Implicit)
                    .map_err(|error| error.at(place))?,
            );
        }
        let result = generic
            .result(row.result)
            .map_err(|error| error.at(location))?;
        let call = FunctionCall {
            function,
            operator: Some(row.name),
            types: arguments.iter().map(|argument| argument.oid).collect(),
            arguments,
        };
        Ok(Expr::new(ExprKind::Call(Box::new(call)), result, location))
    }

    /// `x op ANY (array)`
    fn array_comparison(
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

    fn in_list(&mut self, expr: &A_Expr, negated: bool) -> Result<Expr> {
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

    fn between(&mut self, expr: &A_Expr) -> Result<Expr> {
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

    fn distinct_from(
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
            return Err(QueryError::unsupported("cannot compare rows of zero length").at(location));
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
            "<" => Comparison::Less,
            "<=" => Comparison::LessOrEqual,
            ">=" => Comparison::GreaterOrEqual,
            ">" => Comparison::Greater,
            _ => {
                return Err(QueryError::unsupported(format!(
                    "could not determine interpretation of row comparison operator {sign}"
                ))
                .with_hint(
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

    fn boolean(&mut self, expr: &BoolExpr) -> Result<Expr> {
        let name = match expr.boolop {
            BoolExprType::AND_EXPR => "AND",
            BoolExprType::OR_EXPR => "OR",
            _ => "NOT",
        };
        let mut parts = Vec::new();
        for node in expr.args().iter() {
            let part = self.expr(node)?;
            parts.push(self.coerce_to_bool(part, name)?);
        }
        let kind = match expr.boolop {
            BoolExprType::AND_EXPR => ExprKind::And(parts),
            BoolExprType::OR_EXPR => ExprKind::Or(parts),
            _ => match parts.pop() {
                Some(part) => ExprKind::Not(Box::new(part)),
                None => return Err(QueryError::internal("NOT of nothing")),
            },
        };
        Ok(Expr::new(kind, ids::BOOL, expr.location))
    }

    fn case(&mut self, case: &CaseExpr) -> Result<Expr> {
        let before = self.level().no_sets;
        self.level().no_sets = Some("CASE");
        let result = self.case_here(case);
        self.level().no_sets = before;
        result
    }

    fn case_here(&mut self, case: &CaseExpr) -> Result<Expr> {
        let operand = match case.arg() {
            Node::None => None,
            node => {
                let expr = self.expr(node)?;
                Some(self.decide_unknown(expr)?)
            }
        };
        let mut conditions = Vec::new();
        let mut values = Vec::new();
        for node in case.args().iter() {
            let Node::CaseWhen(when) = node else {
                continue;
            };
            let condition = self.expr(when.expr())?;
            let condition = match &operand {
                Some(operand) => {
                    let stand_in = Expr::new(ExprKind::CaseOperand, operand.oid, operand.location)
                        .with_modifier(operand.modifier);
                    self.operator_call("=", Some(stand_in), condition, when.location)?
                }
                None => condition,
            };
            conditions.push(self.coerce_to_bool(condition, "CASE/WHEN")?);
            values.push(self.expr(when.result())?);
        }
        let otherwise = match case.defresult() {
            Node::None => Expr::new(ExprKind::Constant(Datum::Null), ids::UNKNOWN, -1),
            node => self.expr(node)?,
        };
        let mut all = vec![otherwise];
        all.extend(values);
        let (mut all, oid, modifier) = self.as_common(all, "CASE/WHEN")?;
        let otherwise = all.remove(0);
        let case_expr = Case {
            operand,
            branches: conditions.into_iter().zip(all).collect(),
            otherwise,
        };
        Ok(
            Expr::new(ExprKind::Case(Box::new(case_expr)), oid, case.location)
                .with_modifier(modifier),
        )
    }

    fn sql_value(&mut self, function: &SQLValueFunction) -> Result<Expr> {
        use SQLValueFunctionOp as Op;
        let location = function.location;
        let precision = function.typmod;
        let now = |now: Now, oid: u32| {
            Ok(Expr::new(ExprKind::Now(now), oid, location).with_modifier(precision.min(6)))
        };
        let name = match function.op {
            Op::SVFOP_CURRENT_DATE => return now(Now::Date, ids::DATE),
            Op::SVFOP_CURRENT_TIME | Op::SVFOP_CURRENT_TIME_N => {
                return now(Now::TimeTz, ids::TIMETZ);
            }
            Op::SVFOP_CURRENT_TIMESTAMP | Op::SVFOP_CURRENT_TIMESTAMP_N => {
                return now(Now::TimestampTz, ids::TIMESTAMPTZ);
            }
            Op::SVFOP_LOCALTIME | Op::SVFOP_LOCALTIME_N => return now(Now::Time, ids::TIME),
            Op::SVFOP_LOCALTIMESTAMP | Op::SVFOP_LOCALTIMESTAMP_N => {
                return now(Now::Timestamp, ids::TIMESTAMP);
            }
            Op::SVFOP_CURRENT_ROLE | Op::SVFOP_CURRENT_USER | Op::SVFOP_USER => "current_user",
            Op::SVFOP_SESSION_USER => "session_user",
            Op::SVFOP_CURRENT_CATALOG => "current_database",
            _ => "current_schema",
        };
        self.call_named(name, Vec::new(), location)
    }

    fn null_test(&mut self, test: &NullTest) -> Result<Expr> {
        let expr = self.expr(test.arg())?;
        let expr = self.decide_unknown(expr)?;
        let wanted = test.nulltesttype == NullTestType::IS_NULL;
        Ok(Expr::new(
            ExprKind::IsNull(Box::new(expr), wanted),
            ids::BOOL,
            test.location,
        ))
    }

    fn boolean_test(&mut self, test: &BooleanTest) -> Result<Expr> {
        let (value, positive, name) = match test.booltesttype {
            BoolTestType::IS_TRUE => (Some(true), true, "IS TRUE"),
            BoolTestType::IS_NOT_TRUE => (Some(true), false, "IS NOT TRUE"),
            BoolTestType::IS_FALSE => (Some(false), true, "IS FALSE"),
            BoolTestType::IS_NOT_FALSE => (Some(false), false, "IS NOT FALSE"),
            BoolTestType::IS_UNKNOWN => (None, true, "IS UNKNOWN"),
            _ => (None, false, "IS NOT UNKNOWN"),
        };
        let expr = self.expr(test.arg())?;
        let expr = self.coerce_to_bool(expr, name)?;
        Ok(Expr::new(
            ExprKind::Is(Box::new(expr), value, positive),
            ids::BOOL,
            test.location,
        ))
    }

    /// `ARRAY[…]`; `target` is the array type that a cast around it names.
    fn array(&mut self, array: &A_ArrayExpr, target: Option<(u32, i32)>) -> Result<Expr> {
        let location = array.location;
        let mut nested = false;
        let mut elements = Vec::new();
        for node in array.elements().iter() {
            let element = match node {
                Node::A_ArrayExpr(inner) => {
                    nested = true;
                    self.array(inner, target)?
                }
                other => self.expr(other)?,
            };
            nested |= types::element_of(element.oid).is_some();
            elements.push(element);
        }
        let (element, modifier) = match target {
            Some((oid, modifier)) => {
                let element = types::element_of(oid).map_or(0, |row| row.oid);
                (if nested { oid } else { element }, modifier)
            }
            None if elements.is_empty() => {
                return Err(
                    QueryError::new("42P18", "cannot determine type of empty array")
                        .with_hint(
                            "Explicitly cast to the desired type, for example ARRAY[]::integer[].",
                        )
                        .at(location),
                );
            }
            None => {
                let borrowed: Vec<&Expr> = elements.iter().collect();
                (common_type(&borrowed, "ARRAY")?, -1)
            }
        };
        let oid = if nested {
            element
        } else {
            types::array_of(element)
        };
        if oid == 0 {
            return Err(QueryError::new(
                "42704",
                format!(
                    "could not find array type for data type {}",
                    format_type(element, -1)
                ),
            )
            .at(location));
        }
        let mut coerced = Vec::with_capacity(elements.len());
        for expr in elements {
            let source = expr.oid;
            let place = expr.location;
            let expr = match target {
                Some(_) => self
                    .coerce_to(expr, element, modifier, Context::Explicit)?
                    .ok_or_else(|| cannot_cast(source, element).at(place))?,
                None => self.coerce_to_common(expr, element, "ARRAY")?,
            };
            coerced.push(expr);
        }
        Ok(Expr::new(ExprKind::Array(coerced, nested), oid, location).with_modifier(modifier))
    }

    fn indirection(&mut self, indirection: &A_Indirection) -> Result<Expr> {
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
        if matches!(step, Node::A_Indices(_)) {
            return self.subscripts(expr, &[step]);
        }
        let Some(name) = step.as_str() else {
            return Err(
                QueryError::new("42601", "row expansion via \"*\" is not supported here")
                    .at(location),
            );
        };
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

    fn subscripts(&mut self, value: Expr, steps: &[Node<'_>]) -> Result<Expr> {
        let location = value.location;
        let is_json = value.oid == ids::JSONB;
        let element = element_type(value.oid);
        if element.is_none() && !is_json {
            return Err(QueryError::new(
                "42804",
                format!(
                    "cannot subscript type {} because it does not support subscripting",
                    format_type(value.oid, -1)
                ),
            )
            .at(location));
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
}

/// An array of elements of one type; of constants alone, a constant.
fn constant_array(elements: Vec<Expr>, element: u32, location: i32) -> Expr {
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
