//! Comparisons.

use std::cmp::Ordering;

use datafusion::arrow::buffer::BooleanBuffer;
use thermocline_query::operators::Operator;
use thermocline_query::types::float::compare_f64;
use thermocline_query::types::ids;
use thermocline_query::types::timestamp::compare_date;

use super::{Arguments, Kernel, Side, decimal};
use crate::columnar::output::without_padding;
use crate::columnar::vector::{Data, Scales, Vector};

const EQUAL: u8 = 0;
const DIFFERENT: u8 = 1;
const LESS: u8 = 2;
const LESS_OR_EQUAL: u8 = 3;
const GREATER: u8 = 4;
const GREATER_OR_EQUAL: u8 = 5;

/// The kernel of an operator that compares.
pub fn of(operator: &Operator) -> Option<Kernel> {
    macro_rules! kernel {
        ($kernel:ident) => {
            match operator.name {
                "=" => $kernel::<EQUAL>,
                "<>" => $kernel::<DIFFERENT>,
                "<" => $kernel::<LESS>,
                "<=" => $kernel::<LESS_OR_EQUAL>,
                ">" => $kernel::<GREATER>,
                ">=" => $kernel::<GREATER_OR_EQUAL>,
                _ => return None,
            }
        };
    }
    let (left, right) = (operator.left, operator.right);
    let both = |types: &[u32]| types.contains(&left) && types.contains(&right);
    let same = left == right;
    Some(match left {
        _ if both(&[ids::INT2, ids::INT4, ids::INT8]) => kernel!(ints),
        ids::DATE | ids::TIME | ids::TIMESTAMP | ids::TIMESTAMPTZ | ids::OID | ids::CHAR
            if same =>
        {
            kernel!(ints)
        }
        _ if both(&[ids::FLOAT4, ids::FLOAT8]) => kernel!(floats),
        ids::NUMERIC if same => kernel!(numerics),
        _ if both(&[ids::TEXT, ids::NAME]) => kernel!(texts),
        ids::BPCHAR if same => kernel!(padded),
        ids::BOOL if same => kernel!(truths),
        ids::DATE if right == ids::TIMESTAMP => kernel!(date_and_timestamp),
        ids::TIMESTAMP if right == ids::DATE => kernel!(timestamp_and_date),
        _ => return None,
    })
}

#[inline]
const fn holds<const SIGN: u8>(order: Ordering) -> bool {
    match SIGN {
        EQUAL => order.is_eq(),
        DIFFERENT => order.is_ne(),
        LESS => order.is_lt(),
        LESS_OR_EQUAL => order.is_le(),
        GREATER => order.is_gt(),
        _ => order.is_ge(),
    }
}

#[inline]
fn whole<const SIGN: u8, T: Ord>(a: T, b: T) -> bool {
    match SIGN {
        EQUAL => a == b,
        DIFFERENT => a != b,
        LESS => a < b,
        LESS_OR_EQUAL => a <= b,
        GREATER => a > b,
        _ => a >= b,
    }
}

#[inline]
fn bytes<const SIGN: u8>(a: &[u8], b: &[u8]) -> bool {
    match SIGN {
        EQUAL => a == b,
        DIFFERENT => a != b,
        _ => holds::<SIGN>(a.cmp(b)),
    }
}

fn ints<'a, const SIGN: u8>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let (left, right) = (arguments.ints(0)?, arguments.ints(1)?);
    let truths = arguments.test2(left, right, whole::<SIGN, i64>);
    Some(Data::Bool(truths))
}

fn floats<'a, const SIGN: u8>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let (left, right) = (arguments.floats(0)?, arguments.floats(1)?);
    let truths = arguments.test2(left, right, |a, b| holds::<SIGN>(compare_f64(a, b)));
    Some(Data::Bool(truths))
}

fn numerics<'a, const SIGN: u8>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let ((left, of_left), (right, of_right)) = (arguments.numerics(0)?, arguments.numerics(1)?);
    if let (Scales::All(a), Scales::All(b)) = (&of_left.scales, &of_right.scales) {
        if a == b {
            let truths = arguments.test2(left, right, whole::<SIGN, i128>);
            return Some(Data::Bool(truths));
        }
        // A constant is brought to the column's scale once.
        if let (Side::Many(_), Side::One(n)) = (left, right)
            && a > b
            && let Some(n) = decimal::raised(n, a - b)
        {
            let truths = arguments.test2(left, Side::One(n), whole::<SIGN, i128>);
            return Some(Data::Bool(truths));
        }
    }
    let truth = |(a, b)| decimal::order(a, b).map(holds::<SIGN>);
    let truths = decimal::map2(arguments, truth)?;
    Some(Data::Bool(BooleanBuffer::from(truths)))
}

fn texts<'a, const SIGN: u8>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    if let Some(right) = arguments.one_text(1) {
        let truths = arguments.test_texts(0, |left| bytes::<SIGN>(left, right))?;
        return Some(Data::Bool(truths));
    }
    if let Some(left) = arguments.one_text(0) {
        let truths = arguments.test_texts(1, |right| bytes::<SIGN>(left, right))?;
        return Some(Data::Bool(truths));
    }
    let ((left, _), (right, _)) = (arguments.texts(0)?, arguments.texts(1)?);
    Some(Data::Bool(BooleanBuffer::collect_bool(
        arguments.count,
        |row| bytes::<SIGN>(left.get(row), right.get(row)),
    )))
}

fn padded<'a, const SIGN: u8>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let test =
        |left: &[u8], right: &[u8]| bytes::<SIGN>(without_padding(left), without_padding(right));
    if let Some(right) = arguments.one_text(1) {
        let right = without_padding(right);
        let truths = arguments.test_texts(0, |left| bytes::<SIGN>(without_padding(left), right))?;
        return Some(Data::Bool(truths));
    }
    if let Some(left) = arguments.one_text(0) {
        return Some(Data::Bool(
            arguments.test_texts(1, |right| test(left, right))?,
        ));
    }
    let ((left, _), (right, _)) = (arguments.texts(0)?, arguments.texts(1)?);
    Some(Data::Bool(BooleanBuffer::collect_bool(
        arguments.count,
        |row| test(left.get(row), right.get(row)),
    )))
}

fn truths<'a, const SIGN: u8>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let [left, right] = arguments.vectors else {
        return None;
    };
    let (Data::Bool(a), Data::Bool(b)) = (&left.data, &right.data) else {
        return None;
    };
    Some(Data::Bool(BooleanBuffer::collect_bool(
        arguments.count,
        |row| whole::<SIGN, bool>(a.value(left.place(row)), b.value(right.place(row))),
    )))
}

fn date_and_timestamp<'a, const SIGN: u8>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let (date, timestamp) = (arguments.ints(0)?, arguments.ints(1)?);
    let truths = arguments.test2(date, timestamp, |date, timestamp| {
        holds::<SIGN>(compare_date(date as i32, timestamp))
    });
    Some(Data::Bool(truths))
}

fn timestamp_and_date<'a, const SIGN: u8>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let (timestamp, date) = (arguments.ints(0)?, arguments.ints(1)?);
    let truths = arguments.test2(timestamp, date, |timestamp, date| {
        holds::<SIGN>(compare_date(date as i32, timestamp).reverse())
    });
    Some(Data::Bool(truths))
}

/// The order of two values of a type that are not NULL.
pub fn order(
    oid: u32,
    (left, row): (&Vector<'_>, usize),
    (right, other): (&Vector<'_>, usize),
) -> Option<Ordering> {
    let (at, beside) = (left.place(row), right.place(other));
    Some(match (&left.data, &right.data) {
        (Data::Bool(a), Data::Bool(b)) => a.value(at).cmp(&b.value(beside)),
        (Data::Int(a), Data::Int(b)) => a[at].cmp(&b[beside]),
        (Data::Float(a), Data::Float(b)) => compare_f64(a[at], b[beside]),
        (Data::Numeric(a), Data::Numeric(b)) => decimal::order(a.get(at), b.get(beside))?,
        (Data::Text(a), Data::Text(b)) => match oid {
            ids::BPCHAR => without_padding(a.get(at)).cmp(without_padding(b.get(beside))),
            ids::JSON | ids::XML => return None,
            _ => a.get(at).cmp(b.get(beside)),
        },
        (Data::Datum(a), Data::Datum(b)) => {
            thermocline_query::types::compare(oid, &a[at], &b[beside]).ok()?
        }
        _ => return None,
    })
}
