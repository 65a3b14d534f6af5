//! The binder's state, and expressions on their way to a type: PostgreSQL
//! leaves literals and parameters *unknown* until their surroundings say what
//! they are.

use sqlparser::tokenizer::Span;
use thermocline_query::types::ids;
use thermocline_storage::cast::CastContext;
use thermocline_storage::types::DataType;
use thermocline_storage::value::Value;

use super::aggregate::Aggregation;
use super::scope::Relation;
use super::{BindContext, Bindable, Refusal};
use crate::error::SqlError;
use crate::expr::{CastPath, EvalContext, Expr, Interval, NoRow, base_type};
use crate::output::OtherType;
use crate::styles;
use crate::typed::value;

/// What is known of an expression's type.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Type {
    /// Settled.
    Known(DataType),
    /// A string literal, NULL or a parameter that nothing has settled yet.
    Unknown,
    /// A constant span of time; only to be added to a date or timestamp.
    Interval(Interval),
}

/// An expression and what is known of its type.
#[derive(Clone, Debug)]
pub(crate) struct Typed {
    pub(crate) expr: Expr,
    pub(crate) ty: Type,
    /// The type a client is told, where it is not one that columns have.
    pub(crate) other: Option<OtherType>,
    /// Where it stands in the statement.
    pub(crate) span: Span,
}

impl Typed {
    pub(crate) fn known(expr: Expr, data_type: DataType) -> Self {
        Self {
            expr,
            ty: Type::Known(data_type),
            other: None,
            span: Span::empty(),
        }
    }

    pub(crate) fn unknown(expr: Expr) -> Self {
        Self {
            expr,
            ty: Type::Unknown,
            other: None,
            span: Span::empty(),
        }
    }

    pub(crate) fn boolean(expr: Expr) -> Self {
        Self::known(expr, DataType::Boolean)
    }

    /// Whether its type is one whose values are the storage's bytes.
    pub(super) fn is_other(&self) -> bool {
        matches!(self.ty, Type::Known(DataType::Other { .. }))
    }

    /// The settled type, if there is one.
    pub(crate) fn data_type(&self) -> Option<DataType> {
        match self.ty {
            Type::Known(data_type) => Some(data_type),
            _ => None,
        }
    }

    /// The type's name in messages.
    pub(crate) fn type_name(&self) -> &'static str {
        match self.ty {
            Type::Known(data_type) => data_type.base_name(),
            Type::Unknown => "unknown",
            Type::Interval(_) => "interval",
        }
    }
}

/// What binding one statement keeps in mind.
pub(crate) struct Binder<'a> {
    pub(crate) context: &'a BindContext<'a>,
    /// Types of the parameters, as far as they are settled.
    parameters: Vec<Option<DataType>>,
    /// The relations whose columns names may mean.
    pub(crate) relations: Vec<Relation>,
    /// Set while select list, HAVING and ORDER BY of an aggregation are bound.
    pub(crate) aggregation: Option<Aggregation>,
}

impl<'a> Binder<'a> {
    pub(crate) fn new(context: &'a BindContext<'a>) -> Self {
        Self {
            context,
            parameters: context.parameters.to_vec(),
            relations: Vec::new(),
            aggregation: None,
        }
    }

    /// The parameters' types; what nothing settled is text.
    pub(crate) fn settled_parameters(&self) -> Vec<DataType> {
        self.parameters
            .iter()
            .map(|parameter| parameter.unwrap_or(DataType::Text))
            .collect()
    }

    /// The numbers of the parameters' types; 0 for what is not settled.
    pub(super) fn parameter_oids(&self) -> Vec<u32> {
        let oid = |parameter: &Option<DataType>| parameter.map_or(0, |data_type| data_type.oid());
        self.parameters.iter().map(oid).collect()
    }

    /// Settles the type of a parameter (counted from 0), if nothing has.
    pub(super) fn settle_parameter(&mut self, number: usize, data_type: DataType) {
        if self.parameters.len() <= number {
            self.parameters.resize(number + 1, None);
        }
        self.parameters[number].get_or_insert(data_type);
    }

    /// `$number`, counted from 1.
    pub(crate) fn parameter(&mut self, number: usize) -> Bindable<Typed> {
        if number == 0 || number > usize::from(u16::MAX) {
            let message = format!("there is no parameter ${number}");
            return Err(SqlError::new("42P02", message).into());
        }
        if self.parameters.len() < number {
            self.parameters.resize(number, None);
        }
        let expr = Expr::Parameter(number - 1);
        Ok(match self.parameters[number - 1] {
            Some(data_type) => Typed::known(expr, data_type),
            None => Typed::unknown(expr),
        })
    }

    /// Gives an unknown expression the type `target` (of a length or
    /// precision nothing is taken); known ones stay as they are.
    pub(crate) fn settle(&mut self, typed: Typed, target: DataType) -> Bindable<Typed> {
        if let (Type::Interval(interval), DataType::Other { oid, .. }) = (typed.ty, target)
            && oid == ids::INTERVAL
        {
            // Which fields a column keeps is asked when it is assigned.
            let whole = base_type(target);
            let mut settled = Typed::known(Expr::Constant(value::of_interval(&interval)), whole);
            settled.span = typed.span;
            return Ok(settled);
        }
        if typed.ty != Type::Unknown {
            return Ok(typed);
        }
        let target = base_type(target);
        let span = typed.span;
        let settled = match typed.expr {
            Expr::Parameter(number) => {
                // The same parameter may have been settled since it was met.
                let known = *self.parameters[number].get_or_insert(target);
                let mut settled = Typed::known(Expr::Parameter(number), known);
                settled.span = span;
                return Ok(settled);
            }
            Expr::Constant(Value::Text(text)) => {
                match self.context.literals.read(&target, &text, None) {
                    Ok(value) => Expr::Constant(value),
                    Err(error) => return Err(Refusal::from(error).at(self.context.sql, span)),
                }
            }
            other => other,
        };
        let mut settled = Typed::known(settled, target);
        settled.span = span;
        Ok(settled)
    }

    /// The expression and its type; what is still unknown becomes text.
    pub(crate) fn settled(&mut self, typed: Typed) -> Bindable<(Expr, DataType)> {
        let typed = self.settle(typed, DataType::Text)?;
        match typed.ty {
            Type::Known(data_type) => Ok((typed.expr, data_type)),
            _ => Err(Refusal::declined("an interval as a value")),
        }
    }

    /// Converts to `target` where PostgreSQL does so by itself.
    pub(crate) fn implicit(&mut self, typed: Typed, target: DataType) -> Bindable<Option<Expr>> {
        let typed = self.settle(typed, target)?;
        Ok(match typed.ty {
            Type::Known(from) if is_implicit(from, target) => {
                Some(convert(typed.expr, from, target, CastContext::Assignment)?)
            }
            _ => None,
        })
    }

    /// A condition: boolean, or 42804 naming `clause`.
    pub(crate) fn condition(&mut self, typed: Typed, clause: &str) -> Bindable<Expr> {
        let span = typed.span;
        let typed = self.settle(typed, DataType::Boolean)?;
        match typed.ty {
            Type::Known(DataType::Boolean) => Ok(typed.expr),
            _ => {
                let message = format!(
                    "argument of {clause} must be type boolean, not type {}",
                    typed.type_name()
                );
                Err(Refusal::from(SqlError::new("42804", message)).at(self.context.sql, span))
            }
        }
    }

    /// Converts to the type of a column that it is assigned to.
    pub(crate) fn assigned(
        &mut self,
        typed: Typed,
        column: &str,
        target: DataType,
    ) -> Bindable<Expr> {
        let span = typed.span;
        let typed = self.settle(typed, target)?;
        let from = match typed.ty {
            Type::Known(from) if is_assignable(from, target) => from,
            _ => {
                let message = format!(
                    "column \"{column}\" is of type {} but expression is of type {}",
                    target.base_name(),
                    typed.type_name()
                );
                let error = SqlError::new("42804", message)
                    .with_hint("You will need to rewrite or cast the expression.");
                return Err(Refusal::from(error).at(self.context.sql, span));
            }
        };
        convert(typed.expr, from, target, CastContext::Assignment)
    }

    /// `CAST(typed AS target)`.
    pub(crate) fn explicit(&mut self, typed: Typed, target: DataType) -> Bindable<Expr> {
        let span = typed.span;
        let typed = self.settle(typed, target)?;
        let from = match typed.ty {
            Type::Known(from) if is_explicit(from, target) => from,
            _ => {
                let message = format!(
                    "cannot cast type {} to {}",
                    typed.type_name(),
                    target.base_name()
                );
                return Err(
                    Refusal::from(SqlError::new("42846", message)).at(self.context.sql, span)
                );
            }
        };
        convert(typed.expr, from, target, CastContext::Explicit)
            .map_err(|refusal| refusal.at(self.context.sql, span))
    }

    /// The type that all of `operands` are brought to for CASE, COALESCE and
    /// the like, and the operands in it.
    pub(crate) fn common(
        &mut self,
        operands: Vec<Typed>,
        construct: &str,
    ) -> Bindable<(Vec<Expr>, DataType)> {
        let mut common: Option<DataType> = None;
        for operand in &operands {
            let Some(data_type) = operand.data_type() else {
                if matches!(operand.ty, Type::Interval(_)) {
                    return Err(Refusal::declined("an interval as a value"));
                }
                continue;
            };
            common = Some(match common {
                None => data_type,
                Some(so_far) if so_far == data_type => so_far,
                Some(so_far) => {
                    let (a, b) = (base_type(so_far), base_type(data_type));
                    let (up, down) = (is_implicit(a, b), is_implicit(b, a));
                    if a == b || down {
                        a
                    } else if up && !is_preferred(a) {
                        b
                    } else {
                        let message = format!(
                            "{construct} types {} and {} cannot be matched",
                            so_far.base_name(),
                            data_type.base_name()
                        );
                        return Err(Refusal::from(SqlError::new("42804", message))
                            .at(self.context.sql, operand.span));
                    }
                }
            });
        }
        let common = common.unwrap_or(DataType::Text);
        let mut exprs = Vec::with_capacity(operands.len());
        for operand in operands {
            let known = self.settle(operand, common)?;
            let from = known.data_type().unwrap_or(common);
            exprs.push(convert(known.expr, from, common, CastContext::Explicit)?);
        }
        Ok((exprs, common))
    }
}

/// PostgreSQL's preferred type of each category.
const fn is_preferred(data_type: DataType) -> bool {
    matches!(
        data_type,
        DataType::Double
            | DataType::Text
            | DataType::TimestampTz
            | DataType::TimestampTzTo(_)
            | DataType::Boolean
    )
}

/// The place of a number type among the number types, smallest first.
pub(crate) const fn number_rank(data_type: DataType) -> Option<u8> {
    Some(match data_type {
        DataType::SmallInt => 0,
        DataType::Integer => 1,
        DataType::BigInt => 2,
        DataType::Numeric { .. } => 3,
        DataType::Real => 4,
        DataType::Double => 5,
        _ => return None,
    })
}

/// Conversions that PostgreSQL makes unasked anywhere.
pub(crate) fn is_implicit(from: DataType, to: DataType) -> bool {
    let (from, to) = (base_type(from), base_type(to));
    if from == to || from.is_text() && to.is_text() {
        return true;
    }
    if let (Some(from), Some(to)) = (number_rank(from), number_rank(to)) {
        return from < to;
    }
    matches!(
        (from, to),
        (DataType::Date, DataType::Timestamp | DataType::TimestampTz)
            | (DataType::Timestamp, DataType::TimestampTz)
    )
}

/// Conversions that storing into a column may make.
fn is_assignable(from: DataType, to: DataType) -> bool {
    let (from, to) = (base_type(from), base_type(to));
    is_implicit(from, to)
        || to.is_text()
        || (from.is_number() && to.is_number())
        || matches!(
            (from, to),
            (DataType::TimestampTz, DataType::Timestamp | DataType::Date)
                | (DataType::Timestamp, DataType::Date)
        )
}

/// Conversions that a CAST may make.
fn is_explicit(from: DataType, to: DataType) -> bool {
    is_assignable(from, to)
        || from.is_text()
        || matches!(
            (from, to),
            (DataType::Integer, DataType::Boolean) | (DataType::Boolean, DataType::Integer)
        )
}

/// Whether every value of `from` is as it stands a value of `to`.
fn needs_no_cast(from: DataType, to: DataType) -> bool {
    if from == to {
        return true;
    }
    match (from, to) {
        (DataType::Varchar(from), DataType::Varchar(to)) => to == 0 || from != 0 && from <= to,
        (DataType::Char(from), DataType::Char(to)) => to == 0 || from != 0 && from <= to,
        (_, DataType::Text | DataType::Varchar(0)) => from.is_text(),
        (DataType::Numeric { .. }, DataType::Numeric { precision, .. }) => precision == 0,
        (DataType::TimestampTo(_), DataType::Timestamp)
        | (DataType::TimestampTzTo(_), DataType::TimestampTz) => true,
        _ => false,
    }
}

/// `expr` converted from one type to another; constants are converted at once.
pub(crate) fn convert(
    expr: Expr,
    from: DataType,
    to: DataType,
    context: CastContext,
) -> Bindable<Expr> {
    if needs_no_cast(from, to) {
        return Ok(expr);
    }
    // What depends on the session's settings may be asked for again under others.
    let constant = matches!(expr, Expr::Constant(_)) && !styles::matter(from, to);
    let cast = Expr::Cast(Box::new(CastPath { from, to, context }), Box::new(expr));
    if constant { fold(cast) } else { Ok(cast) }
}

/// The value of an expression that depends on nothing, as a constant.
pub(crate) fn fold(expr: Expr) -> Bindable<Expr> {
    let value = expr.evaluate(&NoRow, &EvalContext::none())?.into_value();
    Ok(Expr::Constant(value))
}
