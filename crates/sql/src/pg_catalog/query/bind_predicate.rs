//! Binding of predicates: IS, IN, BETWEEN, LIKE, ANY and ALL.

use std::sync::Arc;

use sqlparser::ast::{BinaryOperator, Expr as AstExpr, Query, ValueWithSpan};

use super::bind::Binder;
use super::bind_expr::{comparison, constant, negate_if, pattern, single_column, unsupported};
use super::coerce::{coerce, coerce_pair};
use super::expr::{Comparison, Expr, Operator, Test, Typed};
use crate::analytics::plain_operator;
use crate::error::Result;
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::pg_type::PgType;

impl Binder<'_> {
    pub(super) fn is_null(&mut self, inner: &AstExpr, negated: bool) -> Result<Typed> {
        let typed = self.expr(inner)?;
        let is_null = Typed::new(Expr::IsNull(Box::new(typed.expr)), PgType::BOOL);
        Ok(negate_if(is_null, negated))
    }

    pub(super) fn is_bool(
        &mut self,
        inner: &AstExpr,
        wanted: Option<bool>,
        negated: bool,
    ) -> Result<Typed> {
        let typed = self.expr(inner)?;
        let typed = coerce(typed, PgType::BOOL, self)?;
        let is = Expr::IsBool(Box::new(typed.expr), wanted, negated);
        Ok(Typed::new(is, PgType::BOOL))
    }

    pub(super) fn distinct(
        &mut self,
        left: &AstExpr,
        right: &AstExpr,
        negated: bool,
    ) -> Result<Typed> {
        let (left, right) = (self.expr(left)?, self.expr(right)?);
        let (left, right) = coerce_pair(left, right, "=", self)?;
        let distinct = Expr::IsDistinct(Box::new(left.expr), Box::new(right.expr));
        Ok(negate_if(Typed::new(distinct, PgType::BOOL), negated))
    }

    pub(super) fn in_list(
        &mut self,
        inner: &AstExpr,
        list: &[AstExpr],
        negated: bool,
    ) -> Result<Typed> {
        let mut value = self.expr(inner)?;
        let mut items = Vec::with_capacity(list.len());
        for item in list {
            let item = self.expr(item)?;
            let (left, right) = coerce_pair(value, item, "=", self)?;
            value = left;
            items.push(right.expr);
        }
        let found = Typed::new(Expr::InList(Box::new(value.expr), items), PgType::BOOL);
        Ok(negate_if(found, negated))
    }

    pub(super) fn between(
        &mut self,
        inner: &AstExpr,
        low: &AstExpr,
        high: &AstExpr,
        negated: bool,
    ) -> Result<Typed> {
        let (value, low, high) = (self.expr(inner)?, self.expr(low)?, self.expr(high)?);
        let (value, low) = coerce_pair(value, low, ">=", self)?;
        let (value, high) = coerce_pair(value, high, "<=", self)?;
        let above = Expr::Compare(
            Comparison::GreaterEqual,
            Box::new(value.expr.clone()),
            Box::new(low.expr),
        );
        let below = Expr::Compare(
            Comparison::LessEqual,
            Box::new(value.expr),
            Box::new(high.expr),
        );
        let both = Expr::And(Box::new(above), Box::new(below));
        Ok(negate_if(Typed::new(both, PgType::BOOL), negated))
    }

    pub(super) fn like(
        &mut self,
        inner: &AstExpr,
        pattern: &AstExpr,
        escape: Option<&ValueWithSpan>,
        insensitive: bool,
        negated: bool,
    ) -> Result<Typed> {
        let (value, mut pattern) = (self.text(inner)?, self.text(pattern)?);
        if let Some(escape) = escape {
            let escape = escape.value.clone().into_string().unwrap_or_default();
            // Written with the default escape character instead.
            let arguments = vec![
                pattern,
                constant(Datum::text("\\"), PgType::TEXT),
                constant(Datum::text("\\\\"), PgType::TEXT),
            ];
            pattern = if escape == "\\" {
                arguments
                    .into_iter()
                    .next()
                    .unwrap_or_else(|| constant(Datum::Null, PgType::TEXT))
            } else {
                let doubled = self.call("replace", arguments)?;
                if escape.is_empty() {
                    doubled
                } else {
                    let arguments = vec![
                        doubled,
                        constant(Datum::text(escape), PgType::TEXT),
                        constant(Datum::text("\\"), PgType::TEXT),
                    ];
                    self.call("replace", arguments)?
                }
            };
        }
        let operator = Operator::Like {
            insensitive,
            negated,
        };
        Ok(Typed::new(
            Expr::Operate(
                operator,
                PgType::BOOL,
                Box::new(value.expr),
                Box::new(pattern.expr),
            ),
            PgType::BOOL,
        ))
    }

    pub(super) fn quantified(
        &mut self,
        left: &AstExpr,
        op: &BinaryOperator,
        right: &AstExpr,
        all: bool,
        whole: &AstExpr,
    ) -> Result<Typed> {
        let plain = match op {
            BinaryOperator::PGCustomBinaryOperator(parts) => {
                plain_operator(parts).ok_or_else(|| unsupported(whole))?
            }
            other => other.clone(),
        };
        let test = match (comparison(&plain), pattern(&plain)) {
            (Some(comparison), _) => Test::Comparison(comparison),
            (None, Some(operator)) => Test::Operator(operator),
            (None, None) => return Err(unsupported(whole)),
        };
        let value = self.expr(left)?;
        let mut inner = right;
        while let AstExpr::Nested(nested) = inner {
            inner = nested;
        }
        if let AstExpr::Subquery(query) = inner {
            return self.quantified_query(value, test, all, query, &plain.to_string());
        }
        let array = self.expr(inner)?;
        let (value, array) = match (value.is_unknown(), array.is_unknown()) {
            (true, false) => {
                let element = array.data_type.element().unwrap_or(PgType::TEXT);
                (coerce(value, element, self)?, array)
            }
            (false, true) => {
                let target = value.data_type.array();
                (value, coerce(array, target, self)?)
            }
            (true, true) => (
                coerce(value, PgType::TEXT, self)?,
                coerce(array, PgType::TEXT_ARRAY, self)?,
            ),
            (false, false) => (value, array),
        };
        Ok(Typed::new(
            Expr::Quantified {
                test,
                all,
                value: Box::new(value.expr),
                array: Box::new(array.expr),
            },
            PgType::BOOL,
        ))
    }

    pub(super) fn quantified_query(
        &mut self,
        value: Typed,
        test: Test,
        all: bool,
        query: &Query,
        op: &str,
    ) -> Result<Typed> {
        let plan = self.subquery(query)?;
        let data_type = single_column(&plan)?;
        let other = Typed::new(Expr::Constant(Datum::Null), data_type);
        let (value, _) = coerce_pair(value, other, op, self)?;
        Ok(Typed::new(
            Expr::QuantifiedQuery {
                test,
                all,
                value: Box::new(value.expr),
                query: Arc::new(plan),
            },
            PgType::BOOL,
        ))
    }
}
