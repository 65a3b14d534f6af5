//! The hash that deals rows out to partitions by HASH. It is PostgreSQL's, so that rows which
//! `pg_dump` wrote of one partition belong there here, too: `thermocline_values::hash` with a seed, over
//! each column, combined. Types that have another form here are hashed by their keys.

use thermocline_storage::key::KeyShape;
use thermocline_values::binary_format::write_binary;
use thermocline_values::hash;
use thermocline_values::numeric::long::LONG;
use thermocline_values::types::DataType;
use thermocline_values::value::ValueRef;

/// `HASH_PARTITION_SEED`
const SEED: u64 = 0x7A5B_2236_7996_DCFD;

/// The hash of a key with these values, of the types of the shape.
pub(super) fn partition_hash(shape: &KeyShape, key: &[ValueRef<'_>]) -> u64 {
    let columns = shape.columns().iter().zip(key);
    let values = columns.filter(|(_, value)| !value.is_null());
    values.fold(0, |hash, (column, value)| {
        combined(hash, value_hash(*value, &column.data_type, shape))
    })
}

/// `hash_combine64`
fn combined(one: u64, other: u64) -> u64 {
    let moved = (one << 54).wrapping_add(one >> 7);
    one ^ other
        .wrapping_add(0x49a0_f4dd_15e5_a8e3)
        .wrapping_add(moved)
}

fn value_hash(value: ValueRef<'_>, data_type: &DataType, shape: &KeyShape) -> u64 {
    match value {
        ValueRef::Boolean(value) => hash::word(SEED, u32::from(value)),
        ValueRef::SmallInt(value) => hash::word(SEED, i32::from(value).cast_unsigned()),
        ValueRef::Integer(value) | ValueRef::Date(value) => hash::word(SEED, value.cast_unsigned()),
        ValueRef::BigInt(value) | ValueRef::Timestamp(value) | ValueRef::TimestampTz(value) => {
            hash::long(SEED, value)
        }
        ValueRef::Real(value) => double_hash(f64::from(value)),
        ValueRef::Double(value) => double_hash(value),
        ValueRef::Text(text) => hash::bytes(SEED, text.as_bytes()),
        ValueRef::Bytea(bytes) => hash::bytes(SEED, bytes),
        ValueRef::Uuid(bytes) => hash::bytes(SEED, bytes.as_ref()),
        ValueRef::Numeric(_) | ValueRef::Other(LONG, _) => numeric_hash(value, data_type),
        _ => {
            let mut key = Vec::with_capacity(32);
            shape.encode(&[value], &mut key);
            hash::bytes(SEED, &key)
        }
    }
}

fn double_hash(value: f64) -> u64 {
    match value {
        0.0 => SEED,
        _ if value.is_nan() => hash::bytes(SEED, &f64::NAN.to_le_bytes()),
        _ => hash::bytes(SEED, &value.to_le_bytes()),
    }
}

/// The digits of a number to the base 10000 without zeros around, and where the first stands.
fn numeric_hash(value: ValueRef<'_>, data_type: &DataType) -> u64 {
    const SPECIAL: u16 = 0xC000;
    let mut wire = Vec::with_capacity(32);
    write_binary(value, data_type, &mut wire);
    let words: Vec<u16> = wire
        .chunks_exact(2)
        .map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
        .collect();
    let [_, weight, sign, _, digits @ ..] = words.as_slice() else {
        return SEED;
    };
    if sign & SPECIAL == SPECIAL {
        return SEED;
    }
    let Some(first) = digits.iter().position(|digit| *digit != 0) else {
        return SEED.wrapping_sub(1);
    };
    let last = digits
        .iter()
        .rposition(|digit| *digit != 0)
        .unwrap_or(first);
    let digits = digits[first..=last].iter();
    let bytes: Vec<u8> = digits.flat_map(|digit| digit.to_le_bytes()).collect();
    let weight = i64::from(weight.cast_signed()) - first as i64;
    hash::bytes(SEED, &bytes) ^ weight.cast_unsigned()
}

#[cfg(test)]
mod tests {
    use thermocline_storage::key::KeyColumn;
    use thermocline_values::numeric::Numeric;

    use super::*;

    fn hash(value: ValueRef<'_>, data_type: DataType) -> i64 {
        let column = KeyColumn {
            data_type,
            nullable: true,
            descending: false,
        };
        let shape = KeyShape::new(vec![column]);
        value_hash(value, &data_type, &shape).cast_signed()
    }

    /// What PostgreSQL 15 gives for `hashint4extended(1, 8816678312871386365)` and the like.
    #[test]
    fn values_have_postgresqls_hashes() {
        let numeric = |text: &str| {
            hash(
                ValueRef::Numeric(Numeric::parse(text).unwrap()),
                DataType::NUMERIC,
            )
        };
        assert_eq!(
            hash(ValueRef::Integer(1), DataType::Integer),
            5_968_994_663_651_403_477
        );
        assert_eq!(
            hash(ValueRef::BigInt(-5), DataType::BigInt),
            5_466_844_944_386_338_076
        );
        assert_eq!(
            hash(ValueRef::Text("abc"), DataType::Text),
            3_628_778_498_291_917_250
        );
        assert_eq!(
            hash(ValueRef::Text("hello wide world"), DataType::Text),
            -1_866_345_623_148_261_238
        );
        assert_eq!(numeric("1.50"), 1_234_047_083_305_210_387);
        assert_eq!(numeric("-12345678.9"), 4_598_282_607_095_911_123);
        assert_eq!(numeric("0"), 8_816_678_312_871_386_364);
        assert_eq!(numeric("1000000"), -3_879_215_986_038_224_533);
        assert_eq!(
            hash(ValueRef::Double(1.5), DataType::Double),
            -2_826_383_321_045_882_978
        );
        assert_eq!(
            hash(ValueRef::Double(f64::NAN), DataType::Double),
            -6_475_869_854_796_787_835
        );
        let day = 24 * 365 * 86_400_000_000 + 6 * 86_400_000_000;
        assert_eq!(
            hash(ValueRef::Timestamp(day), DataType::Timestamp),
            -3_362_462_900_486_840_680
        );
        let uuid = *b"\xa0\xee\xbc\x99\x9c\x0b\x4e\xf8\xbb\x6d\x6b\xb9\xbd\x38\x0a\x11";
        assert_eq!(
            hash(ValueRef::Uuid(uuid), DataType::Uuid),
            424_513_190_990_560_493
        );
    }

    /// What `satisfies_hash_partition` says of `(int, numeric(4, 1))` there.
    #[test]
    fn columns_are_combined_as_there_and_nulls_left_out() {
        let column = |data_type| KeyColumn {
            data_type,
            nullable: true,
            descending: false,
        };
        let shape = KeyShape::new(vec![column(DataType::Integer), column(DataType::NUMERIC)]);
        let half = ValueRef::Numeric(Numeric::parse("0.5").unwrap());
        assert_eq!(
            partition_hash(&shape, &[ValueRef::Integer(1), half]) % 97,
            50
        );
        assert_eq!(partition_hash(&shape, &[ValueRef::Null, half]) % 97, 11);
    }
}
