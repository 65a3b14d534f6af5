//! Dates and timestamps. Time zones are the evaluator's, and so are infinities and years before
//! our era.

use thermocline_query::datum::Datum;
use thermocline_query::functions::Function;
use thermocline_query::operators::Operator;
use thermocline_query::types::datetime::{
    DAY, EPOCH_JULIAN, date_of, is_date, is_timestamp, julian_of,
};
use thermocline_query::types::ids;
use thermocline_query::types::interval::Interval;
use thermocline_query::types::timestamp::{plus, timestamp_of_date};

use super::{Arguments, Kernel, decimal};
use crate::columnar::vector::Data;

/// The kernel of an operator of dates and timestamps.
pub fn of(operator: &Operator) -> Option<Kernel> {
    Some(match (operator.left, operator.name, operator.right) {
        (ids::DATE, "+", ids::INT4) => later::<false>,
        (ids::DATE, "-", ids::INT4) => later::<true>,
        (ids::DATE, "-", ids::DATE) => days,
        (ids::DATE, "+", ids::INTERVAL) => moved::<true, false>,
        (ids::DATE, "-", ids::INTERVAL) => moved::<true, true>,
        (ids::TIMESTAMP, "+", ids::INTERVAL) => moved::<false, false>,
        (ids::TIMESTAMP, "-", ids::INTERVAL) => moved::<false, true>,
        _ => return None,
    })
}

/// The kernel of a function of dates and timestamps.
pub fn of_function(function: &Function) -> Option<Kernel> {
    Some(match (function.name, function.arguments) {
        ("extract", [ids::TEXT, ids::DATE]) => extracted::<true>,
        ("extract", [ids::TEXT, ids::TIMESTAMP]) => extracted::<false>,
        ("date_part", [ids::TEXT, ids::DATE]) => part::<true>,
        ("date_part", [ids::TEXT, ids::TIMESTAMP]) => part::<false>,
        ("date_trunc", [ids::TEXT, ids::TIMESTAMP]) => cut,
        _ => return None,
    })
}

/// A date of the calendar's, whose start is a timestamp, too.
fn usual(date: i64) -> Option<i32> {
    let date = i32::try_from(date).ok().filter(|date| is_date(*date))?;
    is_timestamp(i64::from(date).checked_mul(DAY)?).then_some(date)
}

fn later<'a, const BACK: bool>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let dates = arguments.map2(arguments.ints(0)?, arguments.ints(1)?, |date, days| {
        let date = i64::from(usual(date)?);
        usual(if BACK { date - days } else { date + days }).map(i64::from)
    })?;
    Some(Data::Int(dates.into()))
}

fn days<'a>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let days = arguments.map2(arguments.ints(0)?, arguments.ints(1)?, |a, b| {
        Some(i64::from(usual(a)?) - i64::from(usual(b)?))
    })?;
    Some(Data::Int(days.into()))
}

fn moved<'a, const OF_DATE: bool, const BACK: bool>(
    arguments: &Arguments<'_, 'a>,
) -> Option<Data<'a>> {
    let interval: Interval = match arguments.one_datum(1)? {
        Datum::Interval(interval) if BACK => interval.reversed(),
        Datum::Interval(interval) => *interval,
        _ => return None,
    };
    let moments = arguments.map(arguments.ints(0)?, |moment| {
        let moment = match OF_DATE {
            true => timestamp_of_date(usual(moment)?).ok()?,
            false => Some(moment).filter(|moment| is_timestamp(*moment))?,
        };
        plus(moment, interval).ok()
    })?;
    Some(Data::Int(moments.into()))
}

/// A part of a date that is asked for by name.
#[derive(Clone, Copy)]
enum Unit {
    Year,
    Quarter,
    Month,
    Day,
}

fn unit(arguments: &Arguments<'_, '_>) -> Option<Unit> {
    Some(match arguments.one_text(0)? {
        b"year" => Unit::Year,
        b"quarter" => Unit::Quarter,
        b"month" => Unit::Month,
        b"day" => Unit::Day,
        _ => return None,
    })
}

/// Year, month and day of a date or timestamp.
fn fields<const OF_DATE: bool>(moment: i64) -> Option<(i32, i32, i32)> {
    let date = match OF_DATE {
        true => usual(moment)?,
        false => {
            let moment = Some(moment).filter(|moment| is_timestamp(*moment))?;
            usual(moment.div_euclid(DAY))?
        }
    };
    let (year, month, day) = date_of(date.checked_add(EPOCH_JULIAN)?);
    (year > 0).then_some((year, month, day))
}

fn number<const OF_DATE: bool>(unit: Unit, moment: i64) -> Option<i64> {
    let (year, month, day) = fields::<OF_DATE>(moment)?;
    Some(i64::from(match unit {
        Unit::Year => year,
        Unit::Quarter => (month - 1) / 3 + 1,
        Unit::Month => month,
        Unit::Day => day,
    }))
}

fn extracted<'a, const OF_DATE: bool>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let unit = unit(arguments)?;
    let numbers = arguments.map(arguments.ints(1)?, |moment| {
        number::<OF_DATE>(unit, moment).map(i128::from)
    })?;
    Some(decimal::at(numbers, 0))
}

fn part<'a, const OF_DATE: bool>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let unit = unit(arguments)?;
    let numbers = arguments.map(arguments.ints(1)?, |moment| {
        number::<OF_DATE>(unit, moment).map(|n| n as f64)
    })?;
    Some(Data::Float(numbers.into()))
}

fn cut<'a>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let unit = unit(arguments)?;
    let moments = arguments.map(arguments.ints(1)?, |moment| {
        let (year, month, day) = fields::<false>(moment)?;
        let (month, day) = match unit {
            Unit::Year => (1, 1),
            Unit::Quarter => ((month - 1) / 3 * 3 + 1, 1),
            Unit::Month => (month, 1),
            Unit::Day => (month, day),
        };
        let days = i64::from(julian_of(year, month, day)) - i64::from(EPOCH_JULIAN);
        days.checked_mul(DAY).filter(|moment| is_timestamp(*moment))
    })?;
    Some(Data::Int(moments.into()))
}
