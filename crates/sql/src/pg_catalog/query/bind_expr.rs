//! Binding of expressions.

use std::sync::Arc;

use sqlparser::ast::{
    self, BinaryOperator, CastKind, Expr as AstExpr, Query, TrimWhereField, UnaryOperator, Value,
    ValueWithSpan,
};
use thermocline_storage::numeric::Numeric;

use super::bind::Binder;
use super::cast::cast;
use super::coerce::{coerce, coerce_pair, common_type, no_operator, require_boolean};
use super::expr::{Comparison, Expr, Operator, Test, Typed};
use super::functions::Function;
use crate::analytics::{folded, plain_operator};
use crate::error::{Result, SqlError};
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::pg_type::{PgType, cast_type};

/// What part of an expression the executor does not do.
pub(super) fn unsupported(expr: &AstExpr) -> SqlError {
    let text = expr.to_string();
    let short: String = text.chars().take(60).collect();
    SqlError::unsupported(format!("{short} in a query of system catalogs"))
}

pub(super) fn constant(value: impl Into<Datum>, data_type: PgType) -> Typed {
    Typed::new(Expr::Constant(value.into()), data_type)
}

fn number(text: &str) -> Result<Typed> {
    if let Ok(value) = text.parse::<i64>() {
        let data_type = if i32::try_from(value).is_ok() {
            PgType::INT4
        } else {
            PgType::INT8
        };
        return Ok(constant(value, data_type));
    }
    Ok(constant(
        Datum::Numeric(Numeric::parse(text)?),
        PgType::NUMERIC,
    ))
}

/// The comparison that an operator is.
pub(super) fn comparison(op: &BinaryOperator) -> Option<Comparison> {
    Some(match op {
        BinaryOperator::Eq => Comparison::Equal,
        BinaryOperator::NotEq => Comparison::NotEqual,
        BinaryOperator::Lt => Comparison::Less,
        BinaryOperator::LtEq => Comparison::LessEqual,
        BinaryOperator::Gt => Comparison::Greater,
        BinaryOperator::GtEq => Comparison::GreaterEqual,
        _ => return None,
    })
}

pub(super) fn pattern(op: &BinaryOperator) -> Option<Operator> {
    let matches = |insensitive, negated| Operator::Match {
        insensitive,
        negated,
    };
    let like = |insensitive, negated| Operator::Like {
        insensitive,
        negated,
    };
    Some(match op {
        BinaryOperator::PGRegexMatch => matches(false, false),
        BinaryOperator::PGRegexIMatch => matches(true, false),
        BinaryOperator::PGRegexNotMatch => matches(false, true),
        BinaryOperator::PGRegexNotIMatch => matches(true, true),
        BinaryOperator::PGLikeMatch => like(false, false),
        BinaryOperator::PGILikeMatch => like(true, false),
        BinaryOperator::PGNotLikeMatch => like(false, true),
        BinaryOperator::PGNotILikeMatch => like(true, true),
        _ => return None,
    })
}

impl Binder<'_> {
    /// Binds an expression.
    pub(super) fn expr(&mut self, expr: &AstExpr) -> Result<Typed> {
        match expr {
            AstExpr::Value(value) => self.value(value),
            AstExpr::Identifier(ident) => self.column(None, None, &folded(ident)),
            AstExpr::CompoundIdentifier(parts) => {
                let parts: Vec<String> = parts.iter().map(folded).collect();
                match parts.as_slice() {
                    [table, column] => self.column(None, Some(table), column),
                    [schema, table, column] | [_, schema, table, column] => {
                        self.column(Some(schema), Some(table), column)
                    }
                    _ => Err(unsupported(expr)),
                }
            }
            AstExpr::Nested(inner) | AstExpr::Collate { expr: inner, .. } => self.expr(inner),
            AstExpr::BinaryOp { left, op, right } => self.binary(left, op, right, expr),
            AstExpr::UnaryOp { op, expr: inner } => self.unary(op, inner, expr),
            AstExpr::Cast {
                kind: CastKind::Cast | CastKind::DoubleColon,
                expr: inner,
                data_type,
                ..
            } => {
                let target = cast_type(data_type)?;
                self.cast(inner, target)
            }
            AstExpr::TypedString(typed) => {
                let target = cast_type(&typed.data_type)?;
                let text = typed.value.clone().into_string().unwrap_or_default();
                coerce(constant(Datum::text(text), PgType::UNKNOWN), target, self)
            }
            AstExpr::IsNull(inner) => self.is_null(inner, false),
            AstExpr::IsNotNull(inner) => self.is_null(inner, true),
            AstExpr::IsTrue(inner) => self.is_bool(inner, Some(true), false),
            AstExpr::IsNotTrue(inner) => self.is_bool(inner, Some(true), true),
            AstExpr::IsFalse(inner) => self.is_bool(inner, Some(false), false),
            AstExpr::IsNotFalse(inner) => self.is_bool(inner, Some(false), true),
            AstExpr::IsUnknown(inner) => self.is_bool(inner, None, false),
            AstExpr::IsNotUnknown(inner) => self.is_bool(inner, None, true),
            AstExpr::IsDistinctFrom(left, right) => self.distinct(left, right, false),
            AstExpr::IsNotDistinctFrom(left, right) => self.distinct(left, right, true),
            AstExpr::InList {
                expr: inner,
                list,
                negated,
            } => self.in_list(inner, list, *negated),
            AstExpr::InSubquery {
                expr: inner,
                subquery,
                negated,
            } => {
                let value = self.expr(inner)?;
                let test = Test::Comparison(Comparison::Equal);
                let found = self.quantified_query(value, test, false, subquery, "=")?;
                Ok(negate_if(found, *negated))
            }
            AstExpr::Between {
                expr: inner,
                negated,
                low,
                high,
            } => self.between(inner, low, high, *negated),
            AstExpr::Like {
                negated,
                expr: inner,
                pattern,
                escape_char,
                ..
            } => self.like(inner, pattern, escape_char.as_ref(), false, *negated),
            AstExpr::ILike {
                negated,
                expr: inner,
                pattern,
                escape_char,
                ..
            } => self.like(inner, pattern, escape_char.as_ref(), true, *negated),
            AstExpr::AnyOp {
                left,
                compare_op,
                right,
                ..
            } => self.quantified(left, compare_op, right, false, expr),
            AstExpr::AllOp {
                left,
                compare_op,
                right,
            } => self.quantified(left, compare_op, right, true, expr),
            AstExpr::Exists { subquery, negated } => {
                let plan = self.subquery(subquery)?;
                let exists = Typed::new(Expr::Exists(Arc::new(plan)), PgType::BOOL);
                Ok(negate_if(exists, *negated))
            }
            AstExpr::Subquery(query) => {
                let plan = self.subquery(query)?;
                let data_type = single_column(&plan)?;
                Ok(Typed::new(Expr::Scalar(Arc::new(plan)), data_type))
            }
            AstExpr::Case {
                operand,
                conditions,
                else_result,
                ..
            } => self.case(operand.as_deref(), conditions, else_result.as_deref()),
            AstExpr::Function(function) => self.function(function),
            AstExpr::Array(array) => self.array(&array.elem),
            AstExpr::Tuple(fields) => {
                let fields = fields
                    .iter()
                    .map(|field| Ok(self.expr(field)?.expr))
                    .collect::<Result<Vec<_>>>()?;
                Ok(Typed::new(Expr::Row(fields), PgType::RECORD))
            }
            AstExpr::CompoundFieldAccess { root, access_chain } => {
                self.access(root, access_chain, expr)
            }
            AstExpr::Trim {
                expr: inner,
                trim_where,
                trim_what,
                ..
            } => {
                let name = match trim_where {
                    Some(TrimWhereField::Leading) => "ltrim",
                    Some(TrimWhereField::Trailing) => "rtrim",
                    _ => "btrim",
                };
                let mut arguments = vec![self.text(inner)?];
                if let Some(what) = trim_what {
                    arguments.push(self.text(what)?);
                }
                self.call(name, arguments)
            }
            AstExpr::Substring {
                expr: inner,
                substring_from,
                substring_for,
                ..
            } => {
                let mut arguments = vec![self.text(inner)?];
                match substring_from {
                    Some(from) => arguments.push(self.expr(from)?),
                    None => arguments.push(constant(1i64, PgType::INT4)),
                }
                if let Some(length) = substring_for {
                    arguments.push(self.expr(length)?);
                }
                self.call("substring", arguments)
            }
            AstExpr::Position { expr: inner, r#in } => {
                let arguments = vec![self.text(r#in)?, self.text(inner)?];
                self.call("strpos", arguments)
            }
            AstExpr::Extract {
                field, expr: inner, ..
            } => {
                let field = constant(Datum::text(field.to_string().to_lowercase()), PgType::TEXT);
                let arguments = vec![field, self.expr(inner)?];
                self.call("extract", arguments)
            }
            AstExpr::Floor { expr: inner, .. } => {
                let argument = self.expr(inner)?;
                self.call("floor", vec![argument])
            }
            AstExpr::Ceil { expr: inner, .. } => {
                let argument = self.expr(inner)?;
                self.call("ceil", vec![argument])
            }
            other => Err(unsupported(other)),
        }
    }

    fn value(&mut self, value: &ValueWithSpan) -> Result<Typed> {
        Ok(match &value.value {
            Value::Number(text, _) => number(text)?,
            Value::Boolean(value) => constant(*value, PgType::BOOL),
            Value::Null => constant(Datum::Null, PgType::UNKNOWN),
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => {
                constant(Datum::text(text), PgType::UNKNOWN)
            }
            Value::DollarQuotedString(text) => constant(Datum::text(&text.value), PgType::UNKNOWN),
            Value::Placeholder(name) => {
                let index = name
                    .strip_prefix('$')
                    .and_then(|number| number.parse::<usize>().ok())
                    .and_then(|number| number.checked_sub(1))
                    .filter(|index| *index < usize::from(u16::MAX))
                    .ok_or_else(|| {
                        SqlError::new("42P02", format!("there is no parameter {name}"))
                    })?;
                if self.parameters.len() <= index {
                    self.parameters.resize(index + 1, None);
                }
                let known = self.parameters.get(index).copied().flatten();
                Typed::new(Expr::Parameter(index), known.unwrap_or(PgType::UNKNOWN))
            }
            other => return Err(SqlError::unsupported(format!("the literal {other}"))),
        })
    }

    /// A column, of this query or one around it.
    fn column(&mut self, schema: Option<&str>, table: Option<&str>, name: &str) -> Result<Typed> {
        for (depth, scope) in self.scopes.iter_mut().rev().enumerate() {
            if let Some((index, column)) = scope.find(schema, table, name)? {
                scope.used.insert(index);
                return Ok(Typed::new(Expr::Column { depth, index }, column.data_type));
            }
        }
        let known = |table: &str| self.scopes.iter().any(|scope| scope.table(table).is_some());
        Err(match table {
            Some(table) if known(table) => {
                SqlError::new("42703", format!("column {table}.{name} does not exist"))
            }
            Some(table) => SqlError::new(
                "42P01",
                format!("missing FROM-clause entry for table \"{table}\""),
            ),
            None => match self.whole_row(name) {
                Some(row) => return Ok(row),
                None => SqlError::undefined_column(name),
            },
        })
    }

    /// A table's name as a value is its row.
    fn whole_row(&mut self, name: &str) -> Option<Typed> {
        for (depth, scope) in self.scopes.iter_mut().rev().enumerate() {
            let Some(table) = scope.table(name) else {
                continue;
            };
            let range = table.offset..table.offset + table.columns.len();
            scope.used.extend(range.clone());
            let fields = range.map(|index| Expr::Column { depth, index }).collect();
            return Some(Typed::new(Expr::Row(fields), PgType::RECORD));
        }
        None
    }

    /// A text operand.
    pub(super) fn text(&mut self, expr: &AstExpr) -> Result<Typed> {
        let typed = self.expr(expr)?;
        if typed.data_type.is_text() && !typed.is_unknown() {
            return Ok(typed);
        }
        coerce(typed, PgType::TEXT, self)
    }

    fn cast(&mut self, inner: &AstExpr, target: PgType) -> Result<Typed> {
        let typed = self.expr(inner)?;
        if let (Expr::Parameter(_), true) = (&typed.expr, typed.is_unknown()) {
            return coerce(typed, target, self);
        }
        if let (Expr::Constant(value), true) = (&typed.expr, typed.is_unknown()) {
            let value = cast(value.clone(), PgType::UNKNOWN, target, self.session)?;
            return Ok(Typed::new(Expr::Constant(value), target));
        }
        if typed.data_type == target {
            return Ok(typed);
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

    fn unary(&mut self, op: &UnaryOperator, inner: &AstExpr, whole: &AstExpr) -> Result<Typed> {
        match op {
            UnaryOperator::Not => {
                let typed = self.expr(inner)?;
                let typed = require_boolean(typed, self)?;
                Ok(negate_if(typed, true))
            }
            UnaryOperator::Plus => self.expr(inner),
            UnaryOperator::Minus => {
                let typed = self.expr(inner)?;
                match typed.expr {
                    Expr::Constant(Datum::Int(value)) => {
                        Ok(constant(value.wrapping_neg(), typed.data_type))
                    }
                    expr => Ok(Typed::new(Expr::Negate(Box::new(expr)), typed.data_type)),
                }
            }
            _ => Err(unsupported(whole)),
        }
    }

    fn binary(
        &mut self,
        left: &AstExpr,
        op: &BinaryOperator,
        right: &AstExpr,
        whole: &AstExpr,
    ) -> Result<Typed> {
        if let BinaryOperator::PGCustomBinaryOperator(parts) = op {
            let plain = plain_operator(parts).ok_or_else(|| unsupported(whole))?;
            return self.binary(left, &plain, right, whole);
        }
        if matches!(op, BinaryOperator::And | BinaryOperator::Or) {
            let left = self.condition(left)?;
            let right = self.condition(right)?;
            let (left, right) = (Box::new(left), Box::new(right));
            let expr = match op {
                BinaryOperator::And => Expr::And(left, right),
                _ => Expr::Or(left, right),
            };
            return Ok(Typed::new(expr, PgType::BOOL));
        }
        let (left, right) = (self.expr(left)?, self.expr(right)?);
        if let Some(comparison) = comparison(op) {
            let (left, right) = coerce_pair(left, right, &op.to_string(), self)?;
            return Ok(Typed::new(
                Expr::Compare(comparison, Box::new(left.expr), Box::new(right.expr)),
                PgType::BOOL,
            ));
        }
        let operate = |operator, result, left: Typed, right: Typed| {
            Ok(Typed::new(
                Expr::Operate(operator, result, Box::new(left.expr), Box::new(right.expr)),
                result,
            ))
        };
        if let Some(operator) = pattern(op) {
            let left = self.as_text(left)?;
            let right = self.as_text(right)?;
            return operate(operator, PgType::BOOL, left, right);
        }
        match op {
            BinaryOperator::StringConcat => {
                let (l, r) = (left.data_type, right.data_type);
                if l.element().is_some() || r.element().is_some() {
                    let array = if l.element().is_some() { l } else { r };
                    let left = if left.is_unknown() {
                        coerce(left, array, self)?
                    } else {
                        left
                    };
                    let right = if right.is_unknown() {
                        coerce(right, array, self)?
                    } else {
                        right
                    };
                    return operate(Operator::ConcatArrays, array, left, right);
                }
                let left = coerce(left, PgType::TEXT, self)?;
                let right = coerce(right, PgType::TEXT, self)?;
                operate(Operator::Concat, PgType::TEXT, left, right)
            }
            BinaryOperator::Plus
            | BinaryOperator::Minus
            | BinaryOperator::Multiply
            | BinaryOperator::Divide
            | BinaryOperator::Modulo
            | BinaryOperator::BitwiseAnd
            | BinaryOperator::BitwiseOr => {
                let target = match common_type(&[left.data_type, right.data_type]) {
                    PgType::UNKNOWN => PgType::INT4,
                    common => common,
                };
                if !target.is_number() {
                    return Err(unsupported(whole));
                }
                let left = if left.is_unknown() {
                    coerce(left, target, self)?
                } else {
                    left
                };
                let right = if right.is_unknown() {
                    coerce(right, target, self)?
                } else {
                    right
                };
                if !left.data_type.is_number() || !right.data_type.is_number() {
                    return Err(no_operator(
                        left.data_type,
                        &op.to_string(),
                        right.data_type,
                    ));
                }
                let operator = match op {
                    BinaryOperator::Plus => Operator::Add,
                    BinaryOperator::Minus => Operator::Subtract,
                    BinaryOperator::Multiply => Operator::Multiply,
                    BinaryOperator::Divide => Operator::Divide,
                    BinaryOperator::Modulo => Operator::Modulo,
                    BinaryOperator::BitwiseAnd => Operator::BitAnd,
                    _ => Operator::BitOr,
                };
                operate(operator, target, left, right)
            }
            BinaryOperator::AtArrow | BinaryOperator::PGOverlap => {
                let (left, right) = coerce_pair(left, right, &op.to_string(), self)?;
                let operator = match op {
                    BinaryOperator::AtArrow => Operator::Contains,
                    _ => Operator::Overlaps,
                };
                operate(operator, PgType::BOOL, left, right)
            }
            _ => Err(unsupported(whole)),
        }
    }

    fn as_text(&mut self, typed: Typed) -> Result<Typed> {
        if typed.data_type.is_text() && !typed.is_unknown() {
            return Ok(typed);
        }
        coerce(typed, PgType::TEXT, self)
    }

    /// A subquery of an expression; what it looks at outside of itself is
    /// noted in the scopes as always.
    pub(super) fn subquery(&mut self, query: &Query) -> Result<super::plan::QueryPlan> {
        let allowed = self.collected.last_mut().map(|collected| {
            (
                std::mem::replace(&mut collected.sets_allowed, false),
                std::mem::replace(&mut collected.aggregates_allowed, false),
            )
        });
        let plan = self.query(query);
        if let (Some(collected), Some((sets, aggregates))) = (self.collected.last_mut(), allowed) {
            collected.sets_allowed = sets;
            collected.aggregates_allowed = aggregates;
        }
        plan
    }

    fn case(
        &mut self,
        operand: Option<&AstExpr>,
        conditions: &[ast::CaseWhen],
        otherwise: Option<&AstExpr>,
    ) -> Result<Typed> {
        let operand = operand.map(|operand| self.expr(operand)).transpose()?;
        let mut tests = Vec::new();
        let mut results = Vec::new();
        for when in conditions {
            let test = match &operand {
                None => self.condition(&when.condition)?,
                Some(operand) => {
                    let value = self.expr(&when.condition)?;
                    let (left, right) = coerce_pair(operand.clone(), value, "=", self)?;
                    Expr::Compare(Comparison::Equal, Box::new(left.expr), Box::new(right.expr))
                }
            };
            tests.push(test);
            results.push(self.expr(&when.result)?);
        }
        let has_otherwise = otherwise.is_some();
        if let Some(otherwise) = otherwise {
            results.push(self.expr(otherwise)?);
        }
        let (mut results, data_type) = self.unified(results)?;
        let otherwise = match has_otherwise {
            true => results.pop().map(Box::new),
            false => None,
        };
        Ok(Typed::new(
            Expr::Case {
                branches: tests.into_iter().zip(results).collect(),
                otherwise,
            },
            data_type,
        ))
    }

    /// Expressions in their common type.
    pub(super) fn unified(&mut self, values: Vec<Typed>) -> Result<(Vec<Expr>, PgType)> {
        let types: Vec<PgType> = values.iter().map(|typed| typed.data_type).collect();
        let common = match common_type(&types) {
            PgType::UNKNOWN => PgType::TEXT,
            common => common,
        };
        let values = values
            .into_iter()
            .map(|typed| Ok(coerce(typed, common, self)?.expr))
            .collect::<Result<Vec<_>>>()?;
        Ok((values, common))
    }

    fn array(&mut self, elements: &[AstExpr]) -> Result<Typed> {
        let elements = elements
            .iter()
            .map(|element| self.expr(element))
            .collect::<Result<Vec<_>>>()?;
        let (elements, data_type) = self.unified(elements)?;
        Ok(Typed::new(Expr::Array(elements), data_type.array()))
    }

    /// A call of a plain function with bound arguments.
    pub(super) fn call(&mut self, name: &str, arguments: Vec<Typed>) -> Result<Typed> {
        let arguments = arguments
            .into_iter()
            .map(|typed| {
                if typed.is_unknown() && !matches!(typed.expr, Expr::Constant(Datum::Null)) {
                    coerce(typed, PgType::TEXT, self)
                } else {
                    Ok(typed)
                }
            })
            .collect::<Result<Vec<_>>>()?;
        let types: Vec<PgType> = arguments.iter().map(|typed| typed.data_type).collect();
        let function = Function::by_name(name, &types)
            .ok_or_else(|| super::bind_function::no_function(name, &types))?;
        let result = function.result(&types);
        let arguments = arguments
            .into_iter()
            .map(|typed| (typed.expr, typed.data_type))
            .collect();
        Ok(Typed::new(
            Expr::Call {
                function,
                arguments,
            },
            result,
        ))
    }
}

/// `NOT`, if asked.
pub(super) fn negate_if(typed: Typed, negated: bool) -> Typed {
    if negated {
        Typed::new(Expr::Not(Box::new(typed.expr)), PgType::BOOL)
    } else {
        typed
    }
}

/// The type of the one column of a subquery.
pub(super) fn single_column(plan: &super::plan::QueryPlan) -> Result<PgType> {
    match plan.columns.as_slice() {
        [column] => Ok(column.data_type),
        _ => Err(SqlError::syntax("subquery must return only one column")),
    }
}
