//! TATP's tables, and the rows that they begin with.

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use thermocline_values::value::Value;

use super::draw::number_of;
use crate::Result;
use crate::workload::Sink;
use crate::workload::cells::{int, text};
use crate::workload::chance::{alphanumeric, digits};
use crate::workload::schema::TableSpec;

const SUBSCRIBER: usize = 0;
const ACCESS_INFO: usize = 1;
const SPECIAL_FACILITY: usize = 2;
const CALL_FORWARDING: usize = 3;

/// Subscribers of one part.
const PIECE: i64 = 5000;

/// The index by which subscribers are found by their numbers. Numbers are unique; that is
/// checked after a run, since an index that promised it would have to hold all partitions.
pub(super) const BY_NUMBER: (&str, &str) = ("subscriber", "subscriber_by_number");

pub(super) fn tables() -> Vec<TableSpec> {
    vec![
        TableSpec {
            indexes: &[(BY_NUMBER.1, &["sub_nbr"])],
            ..TableSpec::new(
                BY_NUMBER.0,
                "s_id integer, sub_nbr varchar(15), bit_1 smallint, bit_2 smallint, \
                 bit_3 smallint, bit_4 smallint, bit_5 smallint, bit_6 smallint, \
                 bit_7 smallint, bit_8 smallint, bit_9 smallint, bit_10 smallint, \
                 hex_1 smallint, hex_2 smallint, hex_3 smallint, hex_4 smallint, \
                 hex_5 smallint, hex_6 smallint, hex_7 smallint, hex_8 smallint, \
                 hex_9 smallint, hex_10 smallint, byte2_1 smallint, byte2_2 smallint, \
                 byte2_3 smallint, byte2_4 smallint, byte2_5 smallint, byte2_6 smallint, \
                 byte2_7 smallint, byte2_8 smallint, byte2_9 smallint, byte2_10 smallint, \
                 msc_location bigint, vlr_location bigint",
                &["s_id"],
                &["s_id"],
            )
        },
        TableSpec::new(
            "access_info",
            "s_id integer, ai_type smallint, data1 smallint, data2 smallint, data3 char(3), \
             data4 char(5)",
            &["s_id", "ai_type"],
            &["s_id"],
        ),
        TableSpec {
            ordered: true,
            ..TableSpec::new(
                "special_facility",
                "s_id integer, sf_type smallint, is_active smallint, error_cntrl smallint, \
                 data_a smallint, data_b char(5)",
                &["s_id", "sf_type"],
                &["s_id"],
            )
        },
        TableSpec {
            ordered: true,
            ..TableSpec::new(
                "call_forwarding",
                "s_id integer, sf_type smallint, start_time smallint, end_time smallint, \
                 numberx varchar(15)",
                &["s_id", "sf_type", "start_time"],
                &["s_id"],
            )
        },
    ]
}

pub(super) fn parts(subscribers: i64) -> u64 {
    (subscribers as u64).div_ceil(PIECE as u64)
}

fn small(value: impl Into<i64>) -> Value {
    Value::SmallInt(value.into() as i16)
}

/// One to four of the types 1 to 4.
fn types(random: &mut StdRng) -> Vec<i64> {
    let mut types = vec![1, 2, 3, 4];
    types.shuffle(random);
    types.truncate(random.random_range(1..=4));
    types
}

pub(super) fn part(
    subscribers: i64,
    part: u64,
    random: &mut StdRng,
    sink: &mut Sink<'_>,
) -> Result<()> {
    let first = part as i64 * PIECE + 1;
    for id in first..=(first + PIECE - 1).min(subscribers) {
        let mut row = vec![int(id), text(number_of(id))];
        row.extend((0..10).map(|_| small(random.random_range(0..=1))));
        row.extend((0..10).map(|_| small(random.random_range(0..=15))));
        row.extend((0..10).map(|_| small(random.random_range(0..=255))));
        row.extend((0..2).map(|_| Value::BigInt(random.random_range(1..=i64::from(u32::MAX)))));
        sink(SUBSCRIBER, &row)?;
        for access in types(random) {
            let row = [
                int(id),
                small(access),
                small(random.random_range(0..=255)),
                small(random.random_range(0..=255)),
                text(alphanumeric(random, 3, 3)),
                text(alphanumeric(random, 5, 5)),
            ];
            sink(ACCESS_INFO, &row)?;
        }
        for facility in types(random) {
            let active = random.random_range(0..100) < 85;
            let row = [
                int(id),
                small(facility),
                small(active),
                small(random.random_range(0..=255)),
                small(random.random_range(0..=255)),
                text(alphanumeric(random, 5, 5)),
            ];
            sink(SPECIAL_FACILITY, &row)?;
            let mut starts = [0, 8, 16];
            starts.shuffle(random);
            let count = random.random_range(0..=3);
            for start in &starts[..count] {
                let row = [
                    int(id),
                    small(facility),
                    small(*start),
                    small(start + random.random_range(1..=8)),
                    text(digits(random, 15)),
                ];
                sink(CALL_FORWARDING, &row)?;
            }
        }
    }
    Ok(())
}
