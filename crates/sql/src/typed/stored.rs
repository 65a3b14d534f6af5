//! How tables hold values of the types that the storage knows only as bytes
//! (`values::other_type`). These bytes are on devices: no form ever changes.
//!
//! | types | bytes |
//! |---|---|
//! | `oid` | the number, the highest byte first |
//! | `"char"` | the byte |
//! | `name`, `json` | the text |
//! | `time` | microseconds, the highest byte first, the sign turned |
//! | `timetz` | the time in UTC as `time`, then the zone in seconds likewise |
//! | `interval` | how long it is, months as 30 days, in microseconds; then months, days, microseconds |
//! | `macaddr`, `macaddr8` | its bytes |
//! | an enum | its place, the highest byte first |
//! | composite types, and arrays with rows in them | `query::serial`, of all columns that there ever were, without names |
//! | `numeric` beyond its small form | `values::numeric::long` |
//! | `inet`, `cidr` | family, the network's address, the bits of the prefix, the address |
//! | ranges | `stored_range` |
//! | all others | `query::serial` |
//!
//! Where a type has an order, its bytes have the same (of an `interval` the first 16, of a
//! `numrange` all but the last 4).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use std::sync::Arc;

use thermocline_engine::TypeKind;
use thermocline_query::call::{Call, Plain};
use thermocline_query::casts::{self, Method};
use thermocline_query::datum::{Datum, Record};
use thermocline_query::error::{QueryError, Result};
use thermocline_query::functions::{self, Body, Function};
use thermocline_query::serial;
use thermocline_query::types::array::Array;
use thermocline_query::types::domain::{Condition, Domain, base, is_domain};
use thermocline_query::types::inet::Inet;
use thermocline_query::types::interval::Interval;
use thermocline_query::types::numeric::Numeric;
use thermocline_query::types::range;
use thermocline_query::types::time::TimeTz;
use thermocline_query::types::user::{self, Class, Columns, Kind, UserType};
use thermocline_query::types::{self, ids};
use thermocline_values::arithmetic::Operator;
use thermocline_values::numeric::long;
use thermocline_values::other_type::OtherForms;
use thermocline_values::types::DataType;
use thermocline_values::value::Value;
use thermocline_values::value_error::ValueError;

use super::stored_range;
use super::value::{of_numeric, to_query, to_stored};

const MICROS_A_SECOND: i64 = 1_000_000;
const MICROS_A_DAY: i128 = 86_400_000_000;
const DAYS_A_MONTH: i128 = 30;

/// Whether the bytes of a type's values are those of `query::serial`.
pub(crate) fn is_serial(oid: u32) -> bool {
    let made = match user::element(oid) {
        Some(element) if is_domain(element) => return !is_of_rows(oid),
        Some(element) => Class::of(element),
        None => Class::of(oid),
    };
    if made.is_some() {
        return matches!(made, Some(Class::Enum)) && Class::of(oid).is_none();
    }
    !matches!(
        oid,
        ids::CHAR
            | ids::NAME
            | ids::JSON
            | ids::TIME
            | ids::TIMETZ
            | ids::INTERVAL
            | ids::MACADDR
            | ids::MACADDR8
            | ids::INET
            | ids::CIDR
            | ids::OID
    ) && range::element_of(oid).is_none()
}

/// Appends the bytes of a value that is not NULL.
///
/// # Errors
/// XX000 for a value of another type.
pub(crate) fn encode(oid: u32, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    match value {
        Datum::Oid(number) => out.extend(number.to_be_bytes()),
        Datum::Enum(place) => out.extend(place.to_be_bytes()),
        Datum::Char(byte) => out.push(*byte),
        Datum::Text(text) => out.extend_from_slice(text.as_bytes()),
        Datum::Time(micros) => out.extend(ordered64(*micros)),
        Datum::TimeTz(time) => {
            let utc = time.micros + i64::from(time.zone) * MICROS_A_SECOND;
            out.extend(ordered64(utc));
            out.extend(ordered32(time.zone));
        }
        Datum::Interval(interval) => {
            let days = i128::from(interval.months) * DAYS_A_MONTH + i128::from(interval.days);
            let micros = days * MICROS_A_DAY + i128::from(interval.micros);
            out.extend((micros as u128 ^ 1 << 127).to_be_bytes());
            out.extend(interval.months.to_be_bytes());
            out.extend(interval.days.to_be_bytes());
            out.extend(interval.micros.to_be_bytes());
        }
        Datum::MacAddr(address) => match oid {
            ids::MACADDR => out.extend_from_slice(&address[..6]),
            _ => out.extend_from_slice(address),
        },
        Datum::Inet(inet) => {
            let (family, address) = match inet.address {
                IpAddr::V4(address) => (4, address.octets().to_vec()),
                IpAddr::V6(address) => (6, address.octets().to_vec()),
            };
            out.push(family);
            out.extend(network(&address, inet.prefix));
            out.push(inet.prefix);
            out.extend(address);
        }
        Datum::Range(value) => stored_range::encode(value, out)?,
        Datum::Null => return Err(broken(oid)),
        value if is_of_rows(oid) => serial::write(&widened(oid, value)?, out)?,
        value => serial::write(value, out)?,
    }
    Ok(())
}

/// The value of these bytes.
///
/// # Errors
/// XX000 for bytes that are no value of the type.
pub(crate) fn decode(oid: u32, bytes: &[u8]) -> Result<Datum> {
    let read = match oid {
        ids::CHAR => bytes.first().map(|byte| Datum::Char(*byte)),
        ids::NAME | ids::JSON => std::str::from_utf8(bytes).ok().map(Datum::text),
        ids::TIME => bytes
            .first_chunk()
            .map(|word| Datum::Time(from_ordered64(*word))),
        ids::TIMETZ => timetz(bytes),
        ids::INTERVAL => interval(bytes),
        ids::MACADDR | ids::MACADDR8 => {
            let mut address = [0; 8];
            if let Some(place) = address.get_mut(..bytes.len()) {
                place.copy_from_slice(bytes);
            }
            matches!(bytes.len(), 6 | 8).then_some(Datum::MacAddr(address))
        }
        ids::INET | ids::CIDR => inet(bytes),
        ids::NUMERIC => return long_numeric(bytes).map(Datum::Numeric),
        _ if Class::of(oid) == Some(Class::Enum) => bytes
            .first_chunk()
            .map(|word| Datum::Enum(u64::from_be_bytes(*word))),
        ids::OID => bytes
            .first_chunk()
            .map(|word| Datum::Oid(u32::from_be_bytes(*word))),
        _ if range::element_of(oid).is_some() => {
            stored_range::decode(oid, bytes).map(|value| Datum::Range(value.into()))
        }
        _ if is_of_rows(oid) => return narrowed(oid, serial::read(bytes)?),
        _ => return serial::read(bytes),
    };
    read.ok_or_else(|| broken(oid))
}

/// Whether values of the type are rows of a composite type, or arrays of them.
fn is_of_rows(oid: u32) -> bool {
    let oid = base(oid);
    Class::of(base(types::element_of(oid).unwrap_or(oid))) == Some(Class::Composite)
}

/// The elements of an array, each changed.
fn each(value: &Datum, element: u32, change: fn(u32, Datum) -> Result<Datum>) -> Result<Datum> {
    let array = value.as_array();
    let elements = array.elements.iter();
    let elements = elements.map(|value| change(element, value.clone()));
    Ok(Datum::Array(Arc::new(Array {
        element,
        dimensions: array.dimensions.clone(),
        elements: elements.collect::<Result<_>>()?,
    })))
}

/// A value as tables keep it: a row has no names, and NULLs in the places of columns that were
/// dropped.
fn widened(oid: u32, value: &Datum) -> Result<Datum> {
    if let Some(element) = types::element_of(oid) {
        return each(value, element, |oid, value| widened(oid, &value));
    }
    let Datum::Record(record) = value else {
        return Ok(value.clone());
    };
    let columns = user::columns_of(oid)?;
    let mut live = record.values.iter().zip(columns.types.iter());
    let mut wide = Record::default();
    let mut kept_types = Vec::with_capacity(columns.kept.len());
    for kept in columns.kept.iter() {
        let (value, oid) = match kept {
            true => live.next().ok_or_else(|| broken(oid))?,
            false => (&Datum::Null, &0),
        };
        kept_types.push(*oid);
        wide.values
            .push(match is_of_rows(*oid) && !value.is_null() {
                true => widened(*oid, value)?,
                false => value.clone(),
            });
    }
    wide.types = kept_types.into();
    Ok(Datum::Record(wide.into()))
}

/// A value as queries have it. Rows that were kept before a column was added have NULL there.
fn narrowed(oid: u32, value: Datum) -> Result<Datum> {
    if let (Some(element), Datum::Array(_)) = (types::element_of(oid), &value) {
        return each(&value, element, narrowed);
    }
    let Datum::Record(record) = value else {
        return Ok(value);
    };
    let columns = user::columns_of(oid)?;
    let mut wide = Arc::unwrap_or_clone(record).values.into_iter();
    let mut values = Vec::with_capacity(columns.types.len());
    for kept in columns.kept.iter() {
        let value = wide.next().unwrap_or_default();
        if *kept {
            let oid = columns.types.get(values.len()).copied().unwrap_or(0);
            values.push(match is_of_rows(oid) {
                true => narrowed(oid, value)?,
                false => value,
            });
        }
    }
    Ok(Datum::Record(columns.row(values).into()))
}

/// The number of the bytes of a long one.
pub(crate) fn long_numeric(bytes: &[u8]) -> Result<Numeric> {
    let mut text = Vec::new();
    long::write_text(bytes, &mut text);
    let text = std::str::from_utf8(&text).map_err(|_| broken(ids::NUMERIC))?;
    Numeric::parse(text)
}

fn timetz(bytes: &[u8]) -> Option<Datum> {
    let (utc, zone) = bytes.split_first_chunk()?;
    let zone = from_ordered32(*zone.first_chunk()?);
    let micros = from_ordered64(*utc) - i64::from(zone) * MICROS_A_SECOND;
    Some(Datum::TimeTz(TimeTz { micros, zone }))
}

fn interval(bytes: &[u8]) -> Option<Datum> {
    let (months, rest) = bytes.get(16..)?.split_first_chunk()?;
    let (days, rest) = rest.split_first_chunk()?;
    Some(Datum::Interval(Interval {
        months: i32::from_be_bytes(*months),
        days: i32::from_be_bytes(*days),
        micros: i64::from_be_bytes(*rest.first_chunk()?),
    }))
}

fn inet(bytes: &[u8]) -> Option<Datum> {
    let (family, rest) = bytes.split_first()?;
    let length = if *family == 4 { 4 } else { 16 };
    let (prefix, address) = rest.get(length..)?.split_first()?;
    let address = match address.first_chunk::<16>() {
        Some(octets) => IpAddr::V6(Ipv6Addr::from(*octets)),
        None => IpAddr::V4(Ipv4Addr::from(*address.first_chunk::<4>()?)),
    };
    Some(Datum::Inet(Inet {
        address,
        prefix: *prefix,
    }))
}

/// An address with nothing behind its prefix.
fn network(address: &[u8], prefix: u8) -> Vec<u8> {
    let kept = |(at, byte): (usize, &u8)| {
        let bits = usize::from(prefix).saturating_sub(at * 8).min(8);
        byte & !(0xff_u16 >> bits) as u8
    };
    address.iter().enumerate().map(kept).collect()
}

pub(super) const fn ordered64(value: i64) -> [u8; 8] {
    (value ^ i64::MIN).to_be_bytes()
}

pub(super) const fn from_ordered64(bytes: [u8; 8]) -> i64 {
    i64::from_be_bytes(bytes) ^ i64::MIN
}

pub(super) const fn ordered32(value: i32) -> [u8; 4] {
    (value ^ i32::MIN).to_be_bytes()
}

pub(super) const fn from_ordered32(bytes: [u8; 4]) -> i32 {
    i32::from_be_bytes(bytes) ^ i32::MIN
}

#[cold]
fn broken(oid: u32) -> QueryError {
    QueryError::internal(format!("bytes that are no value of type {oid}"))
}

/// Reads and shows stored values for the storage.
struct Forms;

/// What is registered with the floors below, for all databases of the process.
pub(crate) fn register() {
    thermocline_values::other_type::set_forms(&Forms);
    thermocline_engine::user_type::set_teller(|def| {
        let kind = match &def.kind {
            TypeKind::Enum(labels) => {
                let labels = labels.iter();
                let labels = labels.map(|(place, label)| (*place, Arc::from(label.as_str())));
                Kind::Enum(labels.collect())
            }
            TypeKind::Composite(all) => Kind::Composite(Columns {
                names: def
                    .attributes()
                    .map(|one| Arc::from(one.name.as_str()))
                    .collect(),
                types: def.attributes().map(|one| one.type_oid).collect(),
                modifiers: def.attributes().map(|one| one.modifier).collect(),
                kept: all.iter().map(|one| !one.dropped).collect(),
            }),
            TypeKind::Domain(domain) => {
                let checks = domain.checks.iter();
                let checks = checks.map(|check| Condition::new(&check.name, &check.expression));
                Kind::Domain(Domain {
                    below: domain.below,
                    modifier: domain.modifier,
                    not_null: domain.not_null,
                    checks: checks.collect(),
                })
            }
        };
        user::register(UserType {
            oid: def.oid,
            name: Arc::from(def.name.as_str()),
            kind,
        })
    });
}

impl OtherForms for Forms {
    fn parse_text(
        &self,
        oid: u32,
        modifier: i32,
        text: &str,
    ) -> std::result::Result<Vec<u8>, ValueError> {
        let plain = Plain::default();
        let call = Call::new(&plain, &[], oid);
        let read = types::input(&call, oid, text, modifier);
        bytes_of(oid, read)
    }

    fn parse_binary(
        &self,
        oid: u32,
        modifier: i32,
        form: &[u8],
    ) -> std::result::Result<Vec<u8>, ValueError> {
        let plain = Plain::default();
        let call = Call::new(&plain, &[], oid);
        let read = types::receive(&call, oid, form, modifier);
        bytes_of(oid, read)
    }

    fn type_name(&self, oid: u32) -> String {
        types::format_type(oid, -1)
    }

    fn write_text(&self, oid: u32, bytes: &[u8], out: &mut Vec<u8>) {
        let plain = Plain::default();
        let call = Call::new(&plain, &[], oid);
        match decode(oid, bytes).and_then(|value| types::to_text(&call, oid, &value)) {
            Ok(text) => out.extend_from_slice(text.as_bytes()),
            // Bytes of a tuple have checksums: this is a defect, which must not look like a value.
            Err(error) => out.extend_from_slice(error.message.as_bytes()),
        }
    }

    fn write_binary(&self, oid: u32, bytes: &[u8], out: &mut Vec<u8>) {
        let plain = Plain::default();
        let call = Call::new(&plain, &[], oid);
        let start = out.len();
        let sent = decode(oid, bytes).and_then(|value| types::send(&call, oid, &value, out));
        if sent.is_err() {
            out.truncate(start);
        }
    }

    fn numeric_of_text(&self, modifier: i32, text: &str) -> std::result::Result<Value, ValueError> {
        let number = Numeric::parse_with(text, modifier);
        number.and_then(|number| of_numeric(&number)).map_err(told)
    }

    fn numeric_of_binary(
        &self,
        modifier: i32,
        form: &[u8],
    ) -> std::result::Result<Value, ValueError> {
        let plain = Plain::default();
        let call = Call::new(&plain, &[], ids::NUMERIC);
        let number = types::receive(&call, ids::NUMERIC, form, modifier);
        number
            .and_then(|number| of_numeric(number.as_numeric()))
            .map_err(told)
    }

    fn calculate(
        &self,
        operator: Operator,
        left: &Value,
        right: &Value,
    ) -> std::result::Result<Value, ValueError> {
        let function = match operator {
            Operator::Add => 1724,
            Operator::Subtract => 1725,
            Operator::Multiply => 1726,
            Operator::Divide => 1727,
            Operator::Remainder => 1729,
        };
        let result = converted(left, ids::NUMERIC).and_then(|left| {
            let right = converted(right, ids::NUMERIC)?;
            called(function, &[ids::NUMERIC; 2], &[left, right])
        });
        result
            .and_then(|number| of_numeric(number.as_numeric()))
            .map_err(told)
    }

    fn convert(&self, value: &Value, to: &DataType) -> std::result::Result<Value, ValueError> {
        let number = converted(value, to.oid()).map_err(told)?;
        match &number {
            Datum::Numeric(number) => {
                let fitted = number.fit(to.typmod());
                fitted.and_then(|number| of_numeric(&number)).map_err(told)
            }
            other => to_stored(other, to).map_err(|error| {
                let value = ValueError::new(error.sqlstate, error.message.clone());
                match &error.detail {
                    Some(detail) => value.with_detail(detail.as_str()),
                    None => value,
                }
            }),
        }
    }
}

/// A number as another type of numbers has it.
fn converted(value: &Value, to: u32) -> Result<Datum> {
    let data_type = value.data_type().unwrap_or(DataType::NUMERIC);
    let (from, value) = (data_type.oid(), to_query(value.as_ref(), &data_type)?);
    if from == to {
        return Ok(value);
    }
    match casts::between(from, to).map(|cast| cast.method) {
        Some(Method::Function(function)) => called(function, &[from], &[value]),
        _ => Err(QueryError::internal(format!(
            "no cast of type {from} to type {to}"
        ))),
    }
}

fn called(function: u32, types: &[u32], arguments: &[Datum]) -> Result<Datum> {
    match functions::by_oid(function) {
        Some(Function {
            body: Body::Row(body),
            result,
            ..
        }) => body(&Call::new(&Plain::default(), types, *result), arguments),
        _ => Err(QueryError::internal(format!("no function {function}"))),
    }
}

#[cold]
fn told(error: QueryError) -> ValueError {
    let value = ValueError::new(error.sqlstate, error.message.clone());
    match &error.detail {
        Some(detail) => value.with_detail(detail.as_str()),
        None => value,
    }
}

fn bytes_of(oid: u32, value: Result<Datum>) -> std::result::Result<Vec<u8>, ValueError> {
    let mut bytes = Vec::new();
    encode(oid, &value.map_err(told)?, &mut bytes).map_err(told)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use thermocline_values::other_type::{KeyPart, OtherType};

    use super::*;

    /// Samples of each type, in their order where they have one.
    const SAMPLES: &[(u32, &[&str])] = &[
        (ids::CHAR, &["a", "b"]),
        (ids::NAME, &["", "a", "ab", "b"]),
        (ids::OID, &["0", "1", "4294967295"]),
        (ids::JSON, &["{\"a\":  1}", "null"]),
        (
            ids::JSONB,
            &["{\"a\": [1.50, \"x\", null, true], \"bb\": {}}", "1"],
        ),
        (ids::TIME, &["00:00:00", "12:34:56.789012", "24:00:00"]),
        (
            ids::TIMETZ,
            &["00:00:00+02", "12:00:00+01", "11:00:00+00", "12:00:00-01"],
        ),
        (
            ids::INTERVAL,
            &[
                "-1 mons",
                "-00:00:01",
                "00:00:00",
                "29 days",
                "1 mon",
                "31 days",
                "1 year 00:00:01",
            ],
        ),
        (
            ids::INET,
            &[
                "10.0.0.0/8",
                "10.0.0.1/8",
                "10.0.0.0/16",
                "10.0.0.1",
                "10.1.0.0/16",
                "::1",
                "::2/64",
            ],
        ),
        (ids::CIDR, &["10.0.0.0/8", "10.1.0.0/16", "fe80::/10"]),
        (ids::MACADDR, &["08:00:2b:01:02:03", "08:00:2b:01:02:04"]),
        (ids::MACADDR8, &["08:00:2b:01:02:03:04:05"]),
        (ids::BIT, &["10110"]),
        (ids::VARBIT, &["", "1"]),
        (
            ids::INT4_ARRAY,
            &["{1,NULL,3}", "[2:3]={1,2}", "{{1,2},{3,4}}", "{}"],
        ),
        (ids::TEXT_ARRAY, &["{a,\"b c\",NULL,\"NULL\"}"]),
        (ids::NUMERIC_ARRAY, &["{1.50,NaN,-0.003}"]),
        (ids::TIMESTAMPTZ_ARRAY, &["{\"2020-01-01 00:00:00+00\"}"]),
        (
            ids::INT4RANGE,
            &[
                "empty",
                "(,1)",
                "(,)",
                "[-5,1)",
                "[1,2)",
                "[1,)",
                "[256,2147483647)",
            ],
        ),
        (
            ids::INT8RANGE,
            &["empty", "[-9223372036854775808,1)", "[1,256)"],
        ),
        (
            ids::NUMRANGE,
            &[
                "empty",
                "(,-1.50)",
                "(,0)",
                "(,0]",
                "(,0.00000000000000000000000000000000000000000001]",
                "(,)",
                "[-Infinity,0]",
                "[-1000000000000000000000000000000000000000000,1)",
                "[-2,-1)",
                "(-2,-1)",
                "[0,12)",
                "[0.00,123.450]",
                "[0.00,)",
                "(1.5,NaN]",
                "[NaN,NaN]",
            ],
        ),
        (
            ids::DATERANGE,
            &[
                "empty",
                "[-infinity,infinity)",
                "[-infinity,infinity]",
                "(-infinity,)",
                "[2000-01-01,2000-01-02)",
            ],
        ),
        (
            ids::TSRANGE,
            &[
                "(,\"2000-01-01 10:00:00\"]",
                "[\"2000-01-01 10:00:00\",infinity)",
            ],
        ),
        (
            ids::TSTZRANGE,
            &["(\"2000-01-01 10:00:00+00\",\"2000-01-01 10:00:00.000001+00\"]"],
        ),
        (ids::INT4RANGE_ARRAY, &["{\"[1,2)\",empty,NULL}"]),
        (ids::JSONPATH, &["$.\"a\"[*]?(@ > 1)"]),
    ];

    #[test]
    fn a_value_is_read_as_it_was_written_and_its_key_has_its_order() {
        for (oid, samples) in SAMPLES {
            let other = OtherType::of(*oid).unwrap();
            let mut last: Option<(Datum, Vec<u8>)> = None;
            for text in *samples {
                let bytes = Forms.parse_text(*oid, -1, text).unwrap();
                let mut shown = Vec::new();
                Forms.write_text(*oid, &bytes, &mut shown);
                if *oid != ids::JSONPATH {
                    assert_eq!(String::from_utf8(shown).unwrap(), *text);
                }
                let (mut form, mut again) = (Vec::new(), Vec::new());
                Forms.write_binary(*oid, &bytes, &mut form);
                again.extend(Forms.parse_binary(*oid, -1, &form).unwrap());
                assert_eq!(again, bytes, "{text}");
                if let Some(width) = other.width {
                    assert_eq!(bytes.len(), width);
                }
                let value = decode(*oid, &bytes).unwrap();
                if let (KeyPart::Whole | KeyPart::First(_), Some((before, key))) =
                    (other.key, &last)
                {
                    let expected = types::compare(*oid, before, &value).unwrap_or(Ordering::Equal);
                    let found = other.key_of(key).cmp(other.key_of(&bytes));
                    assert_eq!(found, expected, "{text}");
                }
                last = Some((value, bytes));
            }
        }
    }

    #[test]
    fn equal_intervals_of_other_words_have_equal_keys() {
        let other = OtherType::of(ids::INTERVAL).unwrap();
        let bytes = |text| Forms.parse_text(ids::INTERVAL, -1, text).unwrap();
        let (month, days) = (bytes("1 mon"), bytes("30 days"));
        assert_ne!(month, days);
        assert_eq!(other.key_of(&month), other.key_of(&days));
    }

    #[test]
    fn the_bytes_on_devices_stay_as_they_are() {
        let hex = |oid, text| -> String {
            let bytes = Forms.parse_text(oid, -1, text).unwrap();
            bytes.iter().map(|byte| format!("{byte:02x}")).collect()
        };
        assert_eq!(hex(ids::TIME, "00:00:01"), "80000000000f4240");
        assert_eq!(hex(ids::OID, "258"), "00000102");
        assert_eq!(
            hex(ids::INTERVAL, "1 mon 2 days 00:00:03"),
            "800000000000000000000283bb19c6c0000000010000000200000000002dc6c0"
        );
        assert_eq!(hex(ids::INET, "10.1.2.3/8"), "040a000000080a010203");
        assert_eq!(
            hex(ids::JSONB, "{\"a\": [1, \"x\", null, true]}"),
            "13050101610404020001000000000000000000030178000101"
        );
        assert_eq!(
            hex(ids::INT4_ARRAY, "{1,NULL}"),
            "151700000001020000000100000002040100000000"
        );
        assert_eq!(
            hex(ids::NUMERIC_ARRAY, "{123456789012345678901}"),
            "15a4060000010100000001000000010901356c362f819f4eb106000000000000000000"
        );
    }

    #[test]
    fn the_storage_s_names_and_lengths_are_pg_type_s() {
        for row in types::all() {
            if let Some(other) = OtherType::of(row.oid) {
                assert_eq!((other.typname, other.length), (row.name, row.length));
                assert_eq!(other.full_name, row.full_name);
            }
            if let Some(other) = OtherType::of(row.array) {
                assert_eq!(other.typname, format!("_{}", row.name));
                assert_eq!(other.full_name, format!("{}[]", row.full_name));
            }
        }
    }
}
