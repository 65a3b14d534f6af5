//! Expressions, form by form.

use sqlparser::ast::{self, CastKind, CeilFloorKind, DateTimeField, TrimWhereField};
use sqlparser::tokenizer::Span;
use thermocline_engine::authority::Privileges;
use thermocline_storage::types::DataType;
use thermocline_storage::value::Value;

use super::scope::find_column;
use super::typed::{Binder, Type, Typed};
use super::{Bindable, Refusal, data_type, literal};
use crate::error::SqlError;
use crate::expr::{Comparison, Expr};

impl Binder<'_> {
    /// Binds an expression.
    pub(crate) fn expression(&mut self, ast: &ast::Expr) -> Bindable<Typed> {
        if self.aggregation.is_some()
            && let Some(typed) = self.grouped(ast)?
        {
            return Ok(typed);
        }
        match ast {
            ast::Expr::Nested(inner) => self.expression(inner),
            ast::Expr::Value(value) => self.literal(value),
            ast::Expr::Identifier(ident) => self.column(std::slice::from_ref(ident)),
            ast::Expr::CompoundIdentifier(parts) => self.column(parts),
            ast::Expr::TypedString(typed) => self.typed_string(typed),
            ast::Expr::Interval(interval) => self.interval(interval),
            ast::Expr::BinaryOp { left, op, right } => self.binary_expression(left, op, right),
            ast::Expr::UnaryOp { op, expr } => {
                // A minus belongs to the digits behind it: -2147483648 is an
                // integer.
                if let (ast::UnaryOperator::Minus, ast::Expr::Value(value)) = (op, &**expr)
                    && let ast::Value::Number(digits, _) = &value.value
                {
                    let mut typed = literal::number(&format!("-{digits}"))?;
                    typed.span = value.span;
                    return Ok(typed);
                }
                let operand = self.expression(expr)?;
                self.unary(*op, operand)
            }
            ast::Expr::IsNull(operand) => self.is_null(operand, false),
            ast::Expr::IsNotNull(operand) => self.is_null(operand, true),
            ast::Expr::IsTrue(operand) => self.is_truth(operand, true, false, "IS TRUE"),
            ast::Expr::IsNotTrue(operand) => self.is_truth(operand, true, true, "IS NOT TRUE"),
            ast::Expr::IsFalse(operand) => self.is_truth(operand, false, false, "IS FALSE"),
            ast::Expr::IsNotFalse(operand) => self.is_truth(operand, false, true, "IS NOT FALSE"),
            ast::Expr::IsUnknown(operand) => self.is_null(operand, false),
            ast::Expr::IsNotUnknown(operand) => self.is_null(operand, true),
            ast::Expr::IsDistinctFrom(left, right) => self.distinct(left, right, false),
            ast::Expr::IsNotDistinctFrom(left, right) => self.distinct(left, right, true),
            ast::Expr::InList {
                expr,
                list,
                negated,
            } => self.in_list(expr, list, *negated),
            ast::Expr::Between {
                expr,
                negated,
                low,
                high,
            } => self.between(expr, low, high, *negated),
            ast::Expr::Like {
                negated,
                any: false,
                expr,
                pattern,
                escape_char,
            } => self.like_expression(expr, pattern, escape_char.as_ref(), false, *negated),
            ast::Expr::ILike {
                negated,
                any: false,
                expr,
                pattern,
                escape_char,
            } => self.like_expression(expr, pattern, escape_char.as_ref(), true, *negated),
            ast::Expr::Case {
                operand,
                conditions,
                else_result,
                ..
            } => self.case(operand.as_deref(), conditions, else_result.as_deref()),
            ast::Expr::Cast {
                kind: CastKind::Cast | CastKind::DoubleColon,
                expr,
                data_type: target,
                array: false,
                format: None,
            } => self.cast(expr, target),
            ast::Expr::Function(function) => self.function(function),
            ast::Expr::Extract { field, expr, .. } => self.extract(field, expr),
            ast::Expr::Ceil {
                expr,
                field: CeilFloorKind::DateTimeField(DateTimeField::NoDateTime),
            } => self.builtin_of("ceil", &[expr]),
            ast::Expr::Floor {
                expr,
                field: CeilFloorKind::DateTimeField(DateTimeField::NoDateTime),
            } => self.builtin_of("floor", &[expr]),
            ast::Expr::Position { expr, r#in } => self.builtin_of("position", &[r#in, expr]),
            ast::Expr::Substring {
                expr,
                substring_from,
                substring_for,
                ..
            } => {
                let one = one();
                let mut arguments: Vec<&ast::Expr> = vec![expr];
                match (substring_from.as_deref(), substring_for.as_deref()) {
                    (Some(from), length) => {
                        arguments.push(from);
                        arguments.extend(length);
                    }
                    (None, Some(length)) => arguments.extend([&one, length]),
                    (None, None) => {}
                }
                self.builtin_of("substring", &arguments)
            }
            ast::Expr::Trim {
                trim_where,
                trim_what,
                expr,
                trim_characters,
            } => {
                let name = match trim_where {
                    None | Some(TrimWhereField::Both) => "btrim",
                    Some(TrimWhereField::Leading) => "ltrim",
                    Some(TrimWhereField::Trailing) => "rtrim",
                };
                let mut arguments: Vec<&ast::Expr> = vec![expr];
                arguments.extend(trim_what.as_deref());
                arguments.extend(trim_characters.iter().flatten());
                self.builtin_of(name, &arguments)
            }
            ast::Expr::Collate { expr, collation }
                if collation.to_string().to_lowercase().ends_with("default")
                    || collation.to_string().contains("\"C\"") =>
            {
                self.expression(expr)
            }
            ast::Expr::Subquery(_) | ast::Expr::Exists { .. } | ast::Expr::InSubquery { .. } => {
                Err(Refusal::declined("a subquery"))
            }
            ast::Expr::AnyOp { .. } | ast::Expr::AllOp { .. } | ast::Expr::Array(_) => {
                Err(Refusal::declined("an array"))
            }
            ast::Expr::AtTimeZone { .. } => Err(Refusal::declined("AT TIME ZONE")),
            ast::Expr::Tuple(_) => Err(Refusal::declined("a row value")),
            other => Err(Refusal::declined(format!("the expression {other}"))),
        }
    }

    fn column(&mut self, parts: &[ast::Ident]) -> Bindable<Typed> {
        let found = find_column(&self.relations, parts, self.context.sql)?;
        let (relation, column) = (found.relation, found.column);
        let span = parts.first().map_or(Span::empty(), |ident| ident.span);
        self.need_column(&relation.table, column, Privileges::SELECT)?;
        if self.aggregation.is_some() {
            let name = format!("{}.{}", relation.alias, relation.column_name(column));
            let error = SqlError::new(
                "42803",
                format!(
                    "column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function"
                ),
            );
            let refusal = if self.groups_by_primary_key() {
                Refusal::declined_with("a column that the primary key determines", error)
            } else {
                error.into()
            };
            return Err(refusal.at(self.context.sql, span));
        }
        let mut typed = Typed::known(
            Expr::Column(relation.offset + column),
            relation.table.columns[column].data_type,
        );
        typed.span = span;
        Ok(typed)
    }

    /// AND and OR take their operands flat: parsers nest a long chain deeply.
    fn binary_expression(
        &mut self,
        left: &ast::Expr,
        operator: &ast::BinaryOperator,
        right: &ast::Expr,
    ) -> Bindable<Typed> {
        use ast::BinaryOperator::{And, Or};
        if !matches!(operator, And | Or) {
            let left = self.expression(left)?;
            let right = self.expression(right)?;
            return self.binary(operator, left, right);
        }
        let clause = if *operator == And { "AND" } else { "OR" };
        let mut operands = vec![right];
        let mut rest = left;
        while let ast::Expr::BinaryOp { left, op, right } = rest {
            if op != operator {
                break;
            }
            operands.push(right);
            rest = left;
        }
        operands.push(rest);
        let mut conditions = Vec::with_capacity(operands.len());
        for operand in operands.into_iter().rev() {
            let typed = self.expression(operand)?;
            conditions.push(self.condition(typed, clause)?);
        }
        Ok(Typed::boolean(if *operator == And {
            Expr::And(conditions)
        } else {
            Expr::Or(conditions)
        }))
    }

    fn is_null(&mut self, operand: &ast::Expr, negated: bool) -> Bindable<Typed> {
        let operand = self.expression(operand)?;
        let (operand, _) = self.settled(operand)?;
        Ok(Typed::boolean(Expr::IsNull {
            operand: Box::new(operand),
            negated,
        }))
    }

    fn is_truth(
        &mut self,
        operand: &ast::Expr,
        wanted: bool,
        negated: bool,
        clause: &str,
    ) -> Bindable<Typed> {
        let operand = self.expression(operand)?;
        let operand = self.condition(operand, clause)?;
        Ok(Typed::boolean(Expr::IsTruth {
            operand: Box::new(operand),
            wanted,
            negated,
        }))
    }

    fn distinct(&mut self, left: &ast::Expr, right: &ast::Expr, negated: bool) -> Bindable<Typed> {
        let left = self.expression(left)?;
        let right = self.expression(right)?;
        let (left, right) = self.aligned("=", left, right)?;
        Ok(Typed::boolean(Expr::Distinct {
            left: Box::new(left),
            right: Box::new(right),
            negated,
        }))
    }

    fn in_list(
        &mut self,
        operand: &ast::Expr,
        list: &[ast::Expr],
        negated: bool,
    ) -> Bindable<Typed> {
        let operand = self.expression(operand)?;
        let mut elements = Vec::with_capacity(list.len());
        let mut shared: Option<Expr> = None;
        let mut uniform = true;
        for element in list {
            let element = self.expression(element)?;
            let (left, right) = self.aligned("=", operand.clone(), element)?;
            uniform &= shared.as_ref().is_none_or(|shared| *shared == left);
            shared.get_or_insert_with(|| left.clone());
            elements.push((left, right));
        }
        if let (true, Some(shared)) = (uniform, shared) {
            return Ok(Typed::boolean(Expr::InList {
                operand: Box::new(shared),
                list: elements.into_iter().map(|(_, right)| right).collect(),
                negated,
            }));
        }
        // Elements of several types: each is compared in its own.
        let any = Expr::Or(
            elements
                .into_iter()
                .map(|(left, right)| {
                    Expr::Compare(Comparison::Equal, Box::new(left), Box::new(right))
                })
                .collect(),
        );
        Ok(Typed::boolean(if negated {
            Expr::Not(Box::new(any))
        } else {
            any
        }))
    }

    fn between(
        &mut self,
        operand: &ast::Expr,
        low: &ast::Expr,
        high: &ast::Expr,
        negated: bool,
    ) -> Bindable<Typed> {
        let operand = self.expression(operand)?;
        let low = self.expression(low)?;
        let high = self.expression(high)?;
        let low = self.compare(Comparison::GreaterOrEqual, operand.clone(), low)?;
        let high = self.compare(Comparison::LessOrEqual, operand, high)?;
        let both = Expr::And(vec![low.expr, high.expr]);
        Ok(Typed::boolean(if negated {
            Expr::Not(Box::new(both))
        } else {
            both
        }))
    }

    fn like_expression(
        &mut self,
        operand: &ast::Expr,
        pattern: &ast::Expr,
        escape: Option<&ast::ValueWithSpan>,
        case_insensitive: bool,
        negated: bool,
    ) -> Bindable<Typed> {
        let escape = match escape {
            None => Some('\\'),
            Some(value) => {
                let Some(text) = literal::string(&value.value) else {
                    return Err(Refusal::declined("an ESCAPE that is not a literal"));
                };
                let mut characters = text.chars();
                let escape = characters.next();
                if characters.next().is_some() {
                    let error = SqlError::new("22025", "invalid escape string")
                        .with_hint("Escape string must be empty or one character.");
                    return Err(error.into());
                }
                escape
            }
        };
        let operand = self.expression(operand)?;
        let pattern = self.expression(pattern)?;
        self.like(operand, pattern, escape, case_insensitive, negated)
    }

    fn case(
        &mut self,
        operand: Option<&ast::Expr>,
        conditions: &[ast::CaseWhen],
        else_result: Option<&ast::Expr>,
    ) -> Bindable<Typed> {
        let operand = operand
            .map(|operand| self.expression(operand))
            .transpose()?;
        let mut tests = Vec::with_capacity(conditions.len());
        let mut results = Vec::with_capacity(conditions.len() + 1);
        for when in conditions {
            let condition = self.expression(&when.condition)?;
            tests.push(match &operand {
                Some(operand) => {
                    self.compare(Comparison::Equal, operand.clone(), condition)?
                        .expr
                }
                None => self.condition(condition, "CASE/WHEN")?,
            });
            results.push(self.expression(&when.result)?);
        }
        results.push(match else_result {
            Some(result) => self.expression(result)?,
            None => Typed::unknown(Expr::Constant(Value::Null)),
        });
        // The type of ELSE has the first word.
        results.rotate_right(1);
        let (mut results, common) = self.common(results, "CASE")?;
        results.rotate_left(1);
        let otherwise = results.pop().unwrap_or(Expr::Constant(Value::Null));
        Ok(Typed::known(
            Expr::Case {
                arms: tests.into_iter().zip(results).collect(),
                otherwise: Box::new(otherwise),
            },
            common,
        ))
    }

    fn cast(&mut self, operand: &ast::Expr, target: &ast::DataType) -> Bindable<Typed> {
        if let ast::DataType::Interval { fields, precision } = target {
            if fields.is_some() || precision.is_some() || self.context.literals.are_signs_shared() {
                return Err(Refusal::declined("a cast to an interval of fields"));
            }
            let operand = self.expression(operand)?;
            if let (Type::Unknown, Expr::Constant(Value::Text(text))) = (operand.ty, &operand.expr)
                && let Some(interval) = literal::parse_interval(text, None)
            {
                let mut typed = Typed::unknown(Expr::Constant(Value::Null));
                typed.ty = Type::Interval(interval);
                return Ok(typed);
            }
            return Err(Refusal::declined("a cast to interval"));
        }
        let target = match data_type(target, self.context.type_names()) {
            Ok(target) => target,
            Err(error) => return Err(Refusal::declined_with("a cast to a type of its own", error)),
        };
        let operand = self.expression(operand)?;
        let span = operand.span;
        let mut typed = Typed::known(self.explicit(operand, target)?, target);
        typed.span = span;
        Ok(typed)
    }

    fn extract(&mut self, field: &DateTimeField, operand: &ast::Expr) -> Bindable<Typed> {
        let operand = self.expression(operand)?;
        if operand.ty == Type::Unknown {
            let error = SqlError::new(
                "42725",
                "function pg_catalog.extract(unknown, unknown) is not unique",
            )
            .with_hint(
                "Could not choose a best candidate function. You might need to add explicit type casts.",
            );
            return Err(error.into());
        }
        let field = Typed::known(
            Expr::Constant(Value::Text(field.to_string().to_lowercase())),
            DataType::Text,
        );
        self.builtin("extract", vec![field, operand], Span::empty())
    }

    fn builtin_of(&mut self, name: &str, arguments: &[&ast::Expr]) -> Bindable<Typed> {
        let mut bound = Vec::with_capacity(arguments.len());
        for argument in arguments {
            bound.push(self.expression(argument)?);
        }
        self.builtin(name, bound, Span::empty())
    }
}

fn one() -> ast::Expr {
    ast::Expr::Value(ast::Value::Number("1".to_owned(), false).into())
}
