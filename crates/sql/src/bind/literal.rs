//! Literals: numbers, strings, typed strings, spans of time.

use sqlparser::ast::{self, DateTimeField, Value as Literal, ValueWithSpan};
use thermocline_storage::numeric::Numeric;
use thermocline_storage::text_format::parse_text;
use thermocline_storage::types::DataType;
use thermocline_storage::value::Value;

use super::typed::{Binder, Type, Typed};
use super::{Bindable, Refusal, data_type};
use crate::error::SqlError;
use crate::expr::{Expr, Interval};

impl Binder<'_> {
    pub(super) fn literal(&mut self, literal: &ValueWithSpan) -> Bindable<Typed> {
        let mut typed = match &literal.value {
            Literal::Number(digits, _) => number(digits)?,
            Literal::Boolean(value) => Typed::boolean(Expr::Constant(Value::Boolean(*value))),
            Literal::Null => Typed::unknown(Expr::Constant(Value::Null)),
            Literal::Placeholder(name) => match name.strip_prefix('$').map(str::parse) {
                Some(Ok(number)) => self
                    .parameter(number)
                    .map_err(|refusal| refusal.at(self.context.sql, literal.span))?,
                _ => {
                    let error = SqlError::syntax(format!("syntax error at or near \"{name}\""));
                    return Err(Refusal::from(error).at(self.context.sql, literal.span));
                }
            },
            other => match string(other) {
                Some(text) => Typed::unknown(Expr::Constant(Value::Text(text.to_owned()))),
                None => return Err(Refusal::declined("this kind of literal")),
            },
        };
        typed.span = literal.span;
        Ok(typed)
    }

    /// `DATE '2020-01-01'` and the like.
    pub(super) fn typed_string(&mut self, typed: &ast::TypedString) -> Bindable<Typed> {
        if let ast::DataType::Interval { fields, precision } = &typed.data_type {
            if fields.is_some() || precision.is_some() {
                return Err(Refusal::declined("an interval of fields"));
            }
            return self.interval_literal(string(&typed.value.value), None);
        }
        let target = data_type(&typed.data_type, self.context.type_names())?;
        let literal = self.literal(&typed.value)?;
        let expr = self.explicit(literal, target)?;
        Ok(Typed::known(expr, target))
    }

    pub(super) fn interval(&mut self, interval: &ast::Interval) -> Bindable<Typed> {
        if interval.last_field.is_some()
            || interval.leading_precision.is_some()
            || interval.fractional_seconds_precision.is_some()
        {
            return Err(Refusal::declined("an interval with two fields"));
        }
        let text = match &*interval.value {
            ast::Expr::Value(value) => string(&value.value),
            _ => None,
        };
        self.interval_literal(text, interval.leading_field.as_ref())
    }

    fn interval_literal(
        &self,
        text: Option<&str>,
        field: Option<&DateTimeField>,
    ) -> Bindable<Typed> {
        // A field cuts what is beside it off.
        let cut = field.is_some() && text.is_some_and(|text| text.trim().parse::<i32>().is_err());
        if cut || self.context.literals.are_signs_shared() {
            return Err(Refusal::declined("an interval of this style"));
        }
        interval_literal(text, field)
    }
}

/// The text of a string literal of any kind.
pub(super) fn string(literal: &Literal) -> Option<&str> {
    match literal {
        Literal::SingleQuotedString(text)
        | Literal::EscapedStringLiteral(text)
        | Literal::UnicodeStringLiteral(text)
        | Literal::NationalStringLiteral(text) => Some(text),
        Literal::DollarQuotedString(text) => Some(&text.value),
        _ => None,
    }
}

/// A number is the smallest of integer, bigint and numeric that holds it.
pub(super) fn number(digits: &str) -> Bindable<Typed> {
    if let Ok(value) = digits.parse::<i32>() {
        return Ok(Typed::known(
            Expr::Constant(Value::Integer(value)),
            DataType::Integer,
        ));
    }
    if let Ok(value) = digits.parse::<i64>() {
        return Ok(Typed::known(
            Expr::Constant(Value::BigInt(value)),
            DataType::BigInt,
        ));
    }
    let value = parse_text(&DataType::NUMERIC, digits)?;
    Ok(Typed::known(Expr::Constant(value), DataType::NUMERIC))
}

fn interval_literal(text: Option<&str>, field: Option<&DateTimeField>) -> Bindable<Typed> {
    let Some(text) = text else {
        return Err(Refusal::declined("an interval that is not a literal"));
    };
    let unit = field.map(|field| field.to_string().to_lowercase());
    let Some(interval) = parse_interval(text, unit.as_deref()) else {
        let message = format!("invalid input syntax for type interval: \"{text}\"");
        return Err(Refusal::declined_with(
            "this form of interval",
            SqlError::new("22007", message),
        ));
    };
    let mut typed = Typed::unknown(Expr::Constant(Value::Null));
    typed.ty = Type::Interval(interval);
    Ok(typed)
}

/// Parses `1 day`, `2 hours 30 min`, `-1 month`, `01:30:00`, and a bare number
/// of `unit`s.
pub(super) fn parse_interval(text: &str, unit: Option<&str>) -> Option<Interval> {
    let mut interval = Interval::default();
    let mut words = text.split_ascii_whitespace().peekable();
    words.peek()?;
    while let Some(word) = words.next() {
        if word.contains(':') {
            interval.time_us = interval.time_us.checked_add(clock_us(word)?)?;
            continue;
        }
        if word.eq_ignore_ascii_case("ago") {
            interval = Interval {
                months: interval.months.checked_neg()?,
                days: interval.days.checked_neg()?,
                time_us: interval.time_us.checked_neg()?,
            };
            continue;
        }
        let split = word
            .find(|character: char| character.is_ascii_alphabetic())
            .unwrap_or(word.len());
        let (amount, attached) = word.split_at(split);
        let amount = Numeric::parse(amount).ok()?;
        let name = if attached.is_empty() {
            match words.peek() {
                Some(next) if next.starts_with(|first: char| first.is_ascii_alphabetic()) => {
                    words.next()?
                }
                _ => unit.unwrap_or("second"),
            }
        } else {
            attached
        };
        add_unit(&mut interval, amount, &name.to_ascii_lowercase())?;
    }
    Some(interval)
}

fn add_unit(interval: &mut Interval, amount: Numeric, name: &str) -> Option<()> {
    let times = |factor: i64| -> Option<i64> {
        let product = amount.mul(Numeric::from(factor)).ok()?;
        product.round(0).ok()?.to_i64()
    };
    let whole = |factor: i64| -> Option<i32> {
        let number = amount
            .to_i64()
            .filter(|_| amount.floor().is_ok_and(|floor| floor.cmp(&amount).is_eq()))?;
        i32::try_from(number.checked_mul(factor)?).ok()
    };
    let mut time = |factor: i64| -> Option<()> {
        interval.time_us = interval.time_us.checked_add(times(factor)?)?;
        Some(())
    };
    match name {
        "microsecond" | "microseconds" | "us" | "usec" => time(1)?,
        "millisecond" | "milliseconds" | "ms" | "msec" => time(1_000)?,
        "second" | "seconds" | "sec" | "secs" | "s" => time(1_000_000)?,
        "minute" | "minutes" | "min" | "mins" | "m" => time(60_000_000)?,
        "hour" | "hours" | "hr" | "hrs" | "h" => time(3_600_000_000)?,
        "day" | "days" | "d" => interval.days = interval.days.checked_add(whole(1)?)?,
        "week" | "weeks" | "w" => interval.days = interval.days.checked_add(whole(7)?)?,
        "month" | "months" | "mon" | "mons" => {
            interval.months = interval.months.checked_add(whole(1)?)?;
        }
        "year" | "years" | "yr" | "yrs" | "y" => {
            interval.months = interval.months.checked_add(whole(12)?)?;
        }
        "decade" | "decades" => interval.months = interval.months.checked_add(whole(120)?)?,
        "century" | "centuries" => {
            interval.months = interval.months.checked_add(whole(1200)?)?;
        }
        _ => return None,
    }
    Some(())
}

/// `[-]hours:minutes[:seconds[.fraction]]` in microseconds.
fn clock_us(word: &str) -> Option<i64> {
    let (negative, digits) = match word.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, word.strip_prefix('+').unwrap_or(word)),
    };
    let mut parts = digits.split(':');
    let hours: i64 = parts.next()?.parse().ok()?;
    let minutes: i64 = parts.next()?.parse().ok()?;
    let seconds = Numeric::parse(parts.next().unwrap_or("0")).ok()?;
    if parts.next().is_some() || !(0..60).contains(&minutes) || hours < 0 {
        return None;
    }
    let seconds_us = seconds
        .mul(Numeric::from(1_000_000))
        .ok()?
        .round(0)
        .ok()?
        .to_i64()?;
    let time_us = hours
        .checked_mul(3_600_000_000)?
        .checked_add(minutes * 60_000_000)?
        .checked_add(seconds_us)?;
    Some(if negative { -time_us } else { time_us })
}
