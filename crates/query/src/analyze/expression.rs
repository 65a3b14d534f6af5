//! Expressions: each kind of node.

use crate::types::domain::{base, is_domain};
use pg_raw_parse::Node;
use pg_raw_parse::nodes::{
    A_ArrayExpr, BoolExpr, BooleanTest, CaseExpr, ColumnRef, NullTest, ParamRef, SQLValueFunction,
    TypeCast,
};
use pg_raw_parse::raw::{BoolExprType, BoolTestType, MinMaxOp, NullTestType, SQLValueFunctionOp};

use super::Analyzer;
use super::aggregate::least_level;
use super::coerce::{cannot_cast, common_modifier, common_type};
use crate::casts::Context;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::functions;
use crate::tree::{Case, Expr, ExprKind, Now};
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
                super::order::check_ordered(&Expr::new(ExprKind::Element, oid, expr.location))?;
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
                // It belongs to the innermost query that its arguments name columns of.
                let named = arguments
                    .iter()
                    .filter_map(|argument| least_level(argument, 0));
                let level = named.min().unwrap_or(0);
                for argument in &mut arguments {
                    argument.raise_levels(level, -level.cast_signed());
                }
                let owner = self.levels.len().checked_sub(1 + level);
                let Some(owner) = owner.and_then(|owner| self.levels.get_mut(owner)) else {
                    return Err(QueryError::internal("GROUPING of no query"));
                };
                owner.groupings.push(arguments);
                owner.has_aggregates = true;
                let pending = owner.groupings.len() - 1;
                Ok(Expr::new(
                    ExprKind::Grouping(vec![pending], level),
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
            Node::XmlExpr(expr) => Err(QueryError::unsupported(
                "unsupported XML feature",
                "Keep XML as text, and read it in the application.",
            )
            .at(expr.location)),
            other => Err(QueryError::unsupported(
                format!("an expression by {} is not supported", kind_of(other)),
                "Write it with functions and operators.",
            )),
        }
    }

    /// A member of a row: `t.*` gives several.
    pub(super) fn row_part(&mut self, node: Node<'_>) -> Result<Vec<Expr>> {
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
                if let Some(columns) = self.columns_of_variable(&names, column.location)? {
                    return Ok(columns.into_iter().map(|(_, expr)| expr).collect());
                }
                return Err(self.missing_item(name, column.location));
            };
            return Ok(item
                .columns
                .into_iter()
                .map(|(_, mut expr)| {
                    expr.raise_levels(0, up.cast_signed());
                    expr
                })
                .collect());
        }
        // What a literal is in a row, the row's own type may say yet.
        Ok(vec![self.expr(node)?])
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
                let whole: Vec<&str> = schema.into_iter().chain([name]).collect();
                if let Some(row) = self.variable(&whole, location)? {
                    return Ok(row);
                }
                return Err(self.missing_item(name, location));
            };
            return Ok(self.whole_row(&item, up, location));
        }
        if self.variables.is_none() {
            return self.column_named(&names, location);
        }
        let variable = self.variable(&names, location);
        let column = self.column_named(&names, location);
        self.either(&names.join("."), variable, column, location)
    }

    /// The column, the row or the argument of a function of SQL that a name means.
    fn column_named(&mut self, names: &[&str], location: i32) -> Result<Expr> {
        match names {
            [name] => {
                if let Some(expr) = self.column(name, location)? {
                    return Ok(expr);
                }
                if let Some(expr) = self.open_system_column(name, location)? {
                    return Ok(expr);
                }
                if let Some((item, up)) = self.item(None, name, location)? {
                    return Ok(self.whole_row(&item, up, location));
                }
                if let Some(argument) = self.argument(None, name, location) {
                    return Ok(argument);
                }
                Err(QueryError::undefined_column(name, &format!("\"{name}\"")).at(location))
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
            if let Some(argument) = self.argument(Some(table), name, location) {
                return Ok(argument);
            }
            // A column of an argument that is a row.
            if let Some(row) = self.argument(None, table, location) {
                return self.field_named(row, name, location);
            }
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
        Err(QueryError::undefined_column(name, &shown).at(location))
    }

    fn parameter(&mut self, parameter: &ParamRef) -> Result<Expr> {
        if self.variables.is_some() {
            let name = format!("${}", parameter.number);
            let missing = || QueryError::new("42P02", format!("there is no parameter {name}"));
            let variable = self.variable(&[&name], parameter.location)?;
            return variable.ok_or_else(|| missing().at(parameter.location));
        }
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
        let value = Expr::new(ExprKind::Parameter(at), base(oid), parameter.location);
        match is_domain(oid) {
            false => Ok(value),
            true => {
                let kind = ExprKind::Checked(Box::new(value));
                Ok(Expr::new(kind, oid, parameter.location))
            }
        }
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
                let element = types::element_of(oid).unwrap_or(0);
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
}

/// What an expression that is not analysed is written with.
#[cold]
fn kind_of(node: Node<'_>) -> &'static str {
    match node {
        Node::XmlSerialize(_) => "XMLSERIALIZE",
        Node::JsonObjectConstructor(_) => "JSON_OBJECT",
        Node::JsonArrayConstructor(_) | Node::JsonArrayQueryConstructor(_) => "JSON_ARRAY",
        Node::JsonObjectAgg(_) => "JSON_OBJECTAGG",
        Node::JsonArrayAgg(_) => "JSON_ARRAYAGG",
        Node::JsonIsPredicate(_) => "IS JSON",
        Node::JsonParseExpr(_) => "JSON()",
        Node::JsonScalarExpr(_) => "JSON_SCALAR",
        Node::JsonSerializeExpr(_) => "JSON_SERIALIZE",
        Node::JsonFuncExpr(_) => "JSON_EXISTS, JSON_QUERY or JSON_VALUE",
        Node::MergeSupportFunc(_) => "MERGE_ACTION",
        _ => "a clause of a later PostgreSQL",
    }
}
