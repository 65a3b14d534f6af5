//! Operators: which types they take, what unknown operands become, and the
//! error when there is no such operator.

use sqlparser::ast::{BinaryOperator, UnaryOperator};
use sqlparser::tokenizer::Span;
use thermocline_storage::arithmetic::{self, Operator};
use thermocline_storage::cast::CastContext;
use thermocline_storage::functions;
use thermocline_storage::types::DataType;
use thermocline_storage::value::Value;

use super::typed::{Binder, Type, Typed, convert, fold, is_implicit, number_rank};
use super::{Bindable, Refusal};
use crate::error::SqlError;
use crate::expr::{Comparison, Expr, FunctionCall, Interval, base_type};

impl Binder<'_> {
    pub(super) fn binary(
        &mut self,
        operator: &BinaryOperator,
        left: Typed,
        right: Typed,
    ) -> Bindable<Typed> {
        let compares = matches!(
            operator,
            BinaryOperator::Eq
                | BinaryOperator::NotEq
                | BinaryOperator::Lt
                | BinaryOperator::LtEq
                | BinaryOperator::Gt
                | BinaryOperator::GtEq
        );
        // Which operator is meant is not told by these rules.
        if !compares && (left.is_other() || right.is_other()) {
            return Err(Refusal::declined(format!("operator {operator}")));
        }
        let comparison = match operator {
            BinaryOperator::Eq => Comparison::Equal,
            BinaryOperator::NotEq => Comparison::NotEqual,
            BinaryOperator::Lt => Comparison::Less,
            BinaryOperator::LtEq => Comparison::LessOrEqual,
            BinaryOperator::Gt => Comparison::Greater,
            BinaryOperator::GtEq => Comparison::GreaterOrEqual,
            BinaryOperator::Plus => return self.arithmetic(Operator::Add, left, right),
            BinaryOperator::Minus => return self.arithmetic(Operator::Subtract, left, right),
            BinaryOperator::Multiply => return self.arithmetic(Operator::Multiply, left, right),
            BinaryOperator::Divide => return self.arithmetic(Operator::Divide, left, right),
            BinaryOperator::Modulo => return self.arithmetic(Operator::Remainder, left, right),
            BinaryOperator::StringConcat => return self.concatenation(left, right),
            BinaryOperator::PGExp => {
                return self.builtin("power", vec![left, right], Span::empty());
            }
            BinaryOperator::PGLikeMatch => return self.like(left, right, Some('\\'), false, false),
            BinaryOperator::PGILikeMatch => return self.like(left, right, Some('\\'), true, false),
            BinaryOperator::PGNotLikeMatch => {
                return self.like(left, right, Some('\\'), false, true);
            }
            BinaryOperator::PGNotILikeMatch => {
                return self.like(left, right, Some('\\'), true, true);
            }
            other => return Err(Refusal::declined(format!("operator {other}"))),
        };
        self.compare(comparison, left, right)
    }

    pub(super) fn compare(
        &mut self,
        comparison: Comparison,
        left: Typed,
        right: Typed,
    ) -> Bindable<Typed> {
        let span = left.span;
        let (left, right) = self.aligned(comparison.symbol(), left, right)?;
        let mut typed = Typed::boolean(Expr::Compare(comparison, Box::new(left), Box::new(right)));
        typed.span = span;
        Ok(typed)
    }

    /// Both operands in the one type they are compared in.
    pub(super) fn aligned(
        &mut self,
        symbol: &str,
        left: Typed,
        right: Typed,
    ) -> Bindable<(Expr, Expr)> {
        let (left, right) = self.paired(left, right)?;
        let (Some(from_left), Some(from_right)) = (left.data_type(), right.data_type()) else {
            return Err(Refusal::declined("a comparison of intervals"));
        };
        let (a, b) = (base_type(from_left), base_type(from_right));
        let target = if a == b {
            a
        } else if a.is_text() && b.is_text() {
            DataType::Text
        } else if let (Some(rank_a), Some(rank_b)) = (number_rank(a), number_rank(b)) {
            let wider = if rank_a < rank_b { b } else { a };
            // A real among other numbers is compared as a double.
            if wider == DataType::Real {
                DataType::Double
            } else {
                wider
            }
        } else if is_implicit(a, b) {
            b
        } else if is_implicit(b, a) {
            a
        } else {
            return Err(no_binary(symbol, &left, &right));
        };
        super::with_order(target)?;
        Ok((
            convert(left.expr, from_left, target, CastContext::Explicit)?,
            convert(right.expr, from_right, target, CastContext::Explicit)?,
        ))
    }

    /// An unknown operand takes the type of the other one.
    fn paired(&mut self, left: Typed, right: Typed) -> Bindable<(Typed, Typed)> {
        match (left.ty, right.ty) {
            (Type::Unknown, Type::Unknown) => Ok((
                self.settle(left, DataType::Text)?,
                self.settle(right, DataType::Text)?,
            )),
            (Type::Unknown, Type::Known(data_type)) => Ok((self.settle(left, data_type)?, right)),
            (Type::Known(data_type), Type::Unknown | Type::Interval(_)) => {
                Ok((left, self.settle(right, data_type)?))
            }
            (Type::Interval(_), Type::Known(data_type)) => {
                Ok((self.settle(left, data_type)?, right))
            }
            _ => Ok((left, right)),
        }
    }

    fn arithmetic(&mut self, operator: Operator, left: Typed, right: Typed) -> Bindable<Typed> {
        let symbol = operator.symbol();
        if let Some(moved) = self.moved_by_interval(operator, &left, &right)? {
            return Ok(moved);
        }
        if left.ty == Type::Unknown && right.ty == Type::Unknown {
            let message = format!("operator is not unique: unknown {symbol} unknown");
            let error = SqlError::new("42725", message).with_hint(
                "Could not choose a best candidate operator. You might need to add explicit type casts.",
            );
            return Err(Refusal::from(error).at(self.context.sql, left.span));
        }
        // A number of days is what is added to a date.
        let (left, right) = match (left.ty, right.ty) {
            (Type::Known(DataType::Date), Type::Unknown) if operator == Operator::Add => {
                (left, self.settle(right, DataType::Integer)?)
            }
            (Type::Unknown, Type::Known(DataType::Date)) if operator == Operator::Add => {
                (self.settle(left, DataType::Integer)?, right)
            }
            _ => self.paired(left, right)?,
        };
        let (Some(from_left), Some(from_right)) = (left.data_type(), right.data_type()) else {
            return Err(Refusal::declined("arithmetic with intervals"));
        };
        let (a, b) = (base_type(from_left), base_type(from_right));
        let Some(result) = arithmetic::result_type(operator, &a, &b) else {
            if is_time(a) && is_time(b) {
                return Err(Refusal::declined("a difference of timestamps"));
            }
            return Err(no_binary(symbol, &left, &right));
        };
        let span = left.span;
        let expr = Expr::Arithmetic(operator, Box::new(left.expr), Box::new(right.expr));
        let mut typed = Typed::known(expr, base_type(result));
        typed.span = span;
        Ok(typed)
    }

    /// A date or timestamp plus or minus a constant interval.
    fn moved_by_interval(
        &mut self,
        operator: Operator,
        left: &Typed,
        right: &Typed,
    ) -> Bindable<Option<Typed>> {
        let (operand, interval) = match (operator, left.ty, right.ty) {
            (Operator::Add, Type::Known(data_type), Type::Unknown)
                if data_type.is_timestamp() && self.context.literals.are_signs_shared() =>
            {
                return Err(Refusal::declined("an interval of this style"));
            }
            (Operator::Add, Type::Interval(interval), Type::Known(_)) => (right, interval),
            (Operator::Add, Type::Known(_), Type::Interval(interval)) => (left, interval),
            (Operator::Subtract, Type::Known(_), Type::Interval(interval)) => (
                left,
                Interval {
                    months: interval.months.saturating_neg(),
                    days: interval.days.saturating_neg(),
                    time_us: interval.time_us.saturating_neg(),
                },
            ),
            // `timestamp + '1 day'`: PostgreSQL takes the literal as interval.
            (Operator::Add, Type::Known(data_type), Type::Unknown)
                if data_type.is_timestamp() && !self.context.literals.are_signs_shared() =>
            {
                let Expr::Constant(Value::Text(text)) = &right.expr else {
                    return Err(Refusal::declined("an interval parameter"));
                };
                match super::literal::parse_interval(text, None) {
                    Some(interval) => (left, interval),
                    None => return Err(Refusal::declined("this form of interval")),
                }
            }
            _ => return Ok(None),
        };
        let Some(data_type) = operand.data_type().filter(|data_type| is_time(*data_type)) else {
            return Err(no_binary(operator.symbol(), left, right));
        };
        let (operand, result) = if data_type == DataType::Date {
            let timestamp = convert(
                operand.expr.clone(),
                data_type,
                DataType::Timestamp,
                CastContext::Explicit,
            )?;
            (timestamp, DataType::Timestamp)
        } else {
            (operand.expr.clone(), base_type(data_type))
        };
        let expr = Expr::AddInterval {
            operand: Box::new(operand),
            interval,
        };
        Ok(Some(Typed::known(expr, result)))
    }

    /// `||`: text with anything, or bytes with bytes.
    fn concatenation(&mut self, left: Typed, right: Typed) -> Bindable<Typed> {
        let bytes = [&left, &right]
            .iter()
            .any(|typed| typed.data_type() == Some(DataType::Bytea));
        let unknown = if bytes {
            DataType::Bytea
        } else {
            DataType::Text
        };
        let left = self.settle(left, unknown)?;
        let right = self.settle(right, unknown)?;
        let (Some(from_left), Some(from_right)) = (left.data_type(), right.data_type()) else {
            return Err(Refusal::declined("an interval as text"));
        };
        let Some(function) = functions::lookup("||", &[from_left, from_right]) else {
            return Err(no_binary("||", &left, &right));
        };
        self.without_styles("||", &[from_left, from_right], &function)?;
        let mut arguments = Vec::with_capacity(2);
        for (number, typed) in [left, right].into_iter().enumerate() {
            let from = typed.data_type().unwrap_or(unknown);
            let to = function.arguments.get(number).copied().unwrap_or(from);
            arguments.push(convert(typed.expr, from, to, CastContext::Explicit)?);
        }
        let result = function.result;
        let call = FunctionCall {
            name: "||".to_owned(),
            function,
            arguments,
        };
        Ok(Typed::known(Expr::Function(Box::new(call)), result))
    }

    pub(super) fn like(
        &mut self,
        operand: Typed,
        pattern: Typed,
        escape: Option<char>,
        case_insensitive: bool,
        negated: bool,
    ) -> Bindable<Typed> {
        let symbol = match (case_insensitive, negated) {
            (false, false) => "~~",
            (false, true) => "!~~",
            (true, false) => "~~*",
            (true, true) => "!~~*",
        };
        let operand = self.settle(operand, DataType::Text)?;
        let pattern = self.settle(pattern, DataType::Text)?;
        let is_text = |typed: &Typed| {
            typed
                .data_type()
                .is_some_and(|data_type| data_type.is_text())
        };
        if !is_text(&operand) || !is_text(&pattern) {
            return Err(no_binary(symbol, &operand, &pattern));
        }
        Ok(Typed::boolean(Expr::Like {
            operand: Box::new(operand.expr),
            pattern: Box::new(pattern.expr),
            escape,
            case_insensitive,
            negated,
        }))
    }

    pub(super) fn unary(&mut self, operator: UnaryOperator, operand: Typed) -> Bindable<Typed> {
        match operator {
            UnaryOperator::Not => {
                let condition = self.condition(operand, "NOT")?;
                Ok(Typed::boolean(Expr::Not(Box::new(condition))))
            }
            UnaryOperator::Plus | UnaryOperator::Minus => {
                let span = operand.span;
                let operand = self.settle(operand, DataType::Double)?;
                let Some(data_type) = operand.data_type().filter(DataType::is_number) else {
                    return Err(no_operator(format!("{operator} {}", operand.type_name())).into());
                };
                let data_type = base_type(data_type);
                let mut typed = if operator == UnaryOperator::Plus {
                    Typed::known(operand.expr, data_type)
                } else if matches!(operand.expr, Expr::Constant(_)) {
                    Typed::known(fold(Expr::Negate(Box::new(operand.expr)))?, data_type)
                } else {
                    Typed::known(Expr::Negate(Box::new(operand.expr)), data_type)
                };
                typed.span = span;
                Ok(typed)
            }
            other => Err(Refusal::declined(format!("operator {other}"))),
        }
    }
}

#[cold]
fn no_binary(symbol: &str, left: &Typed, right: &Typed) -> Refusal {
    no_operator(format!(
        "{} {symbol} {}",
        left.type_name(),
        right.type_name()
    ))
    .into()
}

#[cold]
fn no_operator(signature: String) -> SqlError {
    SqlError::new("42883", format!("operator does not exist: {signature}")).with_hint(
        "No operator matches the given name and argument types. You might need to add explicit type casts.",
    )
}

const fn is_time(data_type: DataType) -> bool {
    matches!(data_type, DataType::Date) || data_type.is_timestamp()
}
