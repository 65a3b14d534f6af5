//! The binary forms of values, as the wire has them.

use super::Function;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::{self, ids};

/// One function: the body is the same for all types.
const fn of(oid: u32, name: &'static str, arguments: &'static [u32]) -> Function {
    Function::row(oid, name, arguments, ids::BYTEA, send)
}

/// The functions of this file.
pub(super) static FUNCTIONS: &[Function] = &[
    of(324, "json_send", &[ids::JSON]).stable(),
    of(2401, "array_send", &[ids::ANYARRAY]).stable(),
    of(2403, "record_send", &[ids::RECORD]).stable(),
    of(2405, "int2send", &[ids::INT2]),
    of(2407, "int4send", &[ids::INT4]),
    of(2409, "int8send", &[ids::INT8]),
    of(2413, "byteasend", &[ids::BYTEA]),
    of(2415, "textsend", &[ids::TEXT]).stable(),
    of(2419, "oidsend", &[ids::OID]),
    of(2423, "namesend", &[ids::NAME]).stable(),
    of(2425, "float4send", &[ids::FLOAT4]),
    of(2427, "float8send", &[ids::FLOAT8]),
    of(2431, "bpcharsend", &[ids::BPCHAR]).stable(),
    of(2433, "varcharsend", &[ids::VARCHAR]).stable(),
    of(2435, "charsend", &[ids::CHAR]),
    of(2437, "boolsend", &[ids::BOOL]),
    of(2457, "bit_send", &[ids::BIT]),
    of(2459, "varbit_send", &[ids::VARBIT]),
    of(2461, "numeric_send", &[ids::NUMERIC]),
    of(2469, "date_send", &[ids::DATE]),
    of(2471, "time_send", &[ids::TIME]),
    of(2473, "timetz_send", &[ids::TIMETZ]),
    of(2475, "timestamp_send", &[ids::TIMESTAMP]),
    of(2477, "timestamptz_send", &[ids::TIMESTAMPTZ]),
    of(2479, "interval_send", &[ids::INTERVAL]),
    of(2495, "macaddr_send", &[ids::MACADDR]),
    of(2497, "inet_send", &[ids::INET]),
    of(2499, "cidr_send", &[ids::CIDR]),
    of(2962, "uuid_send", &[ids::UUID]),
    of(3447, "macaddr8_send", &[ids::MACADDR8]),
    of(3533, "enum_send", &[ids::ANYENUM]).stable(),
    of(3803, "jsonb_send", &[ids::JSONB]),
    of(3837, "range_send", &[ids::ANYRANGE]).stable(),
    of(4004, "jsonpath_send", &[ids::JSONPATH]),
];

fn send(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let ([value], Some(oid)) = (arguments, call.arguments.first()) else {
        return Err(QueryError::internal("one value is sent"));
    };
    let mut out = Vec::new();
    types::send(call, *oid, value, &mut out)?;
    Ok(Datum::bytes(out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Plain;

    #[test]
    fn values_are_sent_as_the_wire_has_them() {
        let plain = Plain::default();
        for (oid, value, bytes) in [
            (ids::FLOAT4, Datum::Float4(-1.5), &[0xbf, 0xc0, 0, 0][..]),
            (ids::INT2, Datum::Int2(258), &[1, 2]),
            (ids::TEXT, Datum::text("é"), "é".as_bytes()),
            (ids::JSONB, Datum::text("[1]"), b"\x01[1]"),
        ] {
            let value = match oid {
                ids::JSONB => {
                    let call = Call::new(&plain, &[], oid);
                    types::input(&call, oid, "[1]", -1).unwrap()
                }
                _ => value,
            };
            let sent = send(&Call::new(&plain, &[oid], ids::BYTEA), &[value]);
            let expected = Datum::bytes(bytes);
            assert_eq!(
                format!("{:?}", sent.unwrap()),
                format!("{expected:?}"),
                "{oid}"
            );
        }
    }
}
