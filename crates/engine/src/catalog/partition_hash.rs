//! The hash that deals rows out to partitions by HASH. It is PostgreSQL's, so that rows which
//! `pg_dump` wrote of one partition belong there here, too: Bob Jenkins' `lookup3` with a seed, over
//! each column, combined. Types that have another form here are hashed by their keys.

use thermocline_storage::key::KeyShape;
use thermocline_values::binary_format::write_binary;
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
        ValueRef::Boolean(value) => word_hash(u32::from(value)),
        ValueRef::SmallInt(value) => word_hash(i32::from(value).cast_unsigned()),
        ValueRef::Integer(value) | ValueRef::Date(value) => word_hash(value.cast_unsigned()),
        ValueRef::BigInt(value) | ValueRef::Timestamp(value) | ValueRef::TimestampTz(value) => {
            long_hash(value)
        }
        ValueRef::Real(value) => double_hash(f64::from(value)),
        ValueRef::Double(value) => double_hash(value),
        ValueRef::Text(text) => bytes_hash(text.as_bytes()),
        ValueRef::Bytea(bytes) => bytes_hash(bytes),
        ValueRef::Uuid(bytes) => bytes_hash(bytes.as_ref()),
        ValueRef::Numeric(_) | ValueRef::Other(LONG, _) => numeric_hash(value, data_type),
        _ => {
            let mut key = Vec::with_capacity(32);
            shape.encode(&[value], &mut key);
            bytes_hash(&key)
        }
    }
}

fn long_hash(value: i64) -> u64 {
    let (low, high) = (value as u32, (value >> 32) as u32);
    word_hash(low ^ if value >= 0 { high } else { !high })
}

fn double_hash(value: f64) -> u64 {
    match value {
        0.0 => SEED,
        _ if value.is_nan() => bytes_hash(&f64::NAN.to_le_bytes()),
        _ => bytes_hash(&value.to_le_bytes()),
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
    bytes_hash(&bytes) ^ weight.cast_unsigned()
}

/// The three words that are mixed.
struct Mixed(u32, u32, u32);

impl Mixed {
    /// Of so many bytes.
    fn seeded(length: u32) -> Self {
        let start = 0x9e37_79b9_u32.wrapping_add(length).wrapping_add(3_923_095);
        let mut mixed = Self(
            start.wrapping_add((SEED >> 32) as u32),
            start.wrapping_add(SEED as u32),
            start,
        );
        mixed.mix();
        mixed
    }

    fn mix(&mut self) {
        fn step(x: &mut u32, y: &mut u32, z: u32, turn: u32) {
            *x = x.wrapping_sub(*y) ^ y.rotate_left(turn);
            *y = y.wrapping_add(z);
        }
        let Self(a, b, c) = self;
        step(a, c, *b, 4);
        step(b, a, *c, 6);
        step(c, b, *a, 8);
        step(a, c, *b, 16);
        step(b, a, *c, 19);
        step(c, b, *a, 4);
    }

    fn finish(self) -> u64 {
        let Self(mut a, mut b, mut c) = self;
        let step = |x: &mut u32, y: u32, turn: u32| {
            *x = (*x ^ y).wrapping_sub(y.rotate_left(turn));
        };
        step(&mut c, b, 14);
        step(&mut a, c, 11);
        step(&mut b, a, 25);
        step(&mut c, b, 16);
        step(&mut a, c, 4);
        step(&mut b, a, 14);
        step(&mut c, b, 24);
        u64::from(b) << 32 | u64::from(c)
    }
}

/// `hash_bytes_uint32_extended`
fn word_hash(word: u32) -> u64 {
    let mut mixed = Mixed::seeded(4);
    mixed.0 = mixed.0.wrapping_add(word);
    mixed.finish()
}

/// `hash_bytes_extended`
fn bytes_hash(bytes: &[u8]) -> u64 {
    let mut mixed = Mixed::seeded(bytes.len() as u32);
    let word = |bytes: &[u8]| {
        let places = bytes.iter().zip([0, 8, 16, 24]);
        places.fold(0, |word, (byte, place)| word | u32::from(*byte) << place)
    };
    let mut blocks = bytes.chunks_exact(12);
    for block in &mut blocks {
        mixed.0 = mixed.0.wrapping_add(word(&block[..4]));
        mixed.1 = mixed.1.wrapping_add(word(&block[4..8]));
        mixed.2 = mixed.2.wrapping_add(word(&block[8..]));
        mixed.mix();
    }
    let rest = blocks.remainder();
    let part = |from: usize, to: usize| word(&rest[from.min(rest.len())..to.min(rest.len())]);
    mixed.0 = mixed.0.wrapping_add(part(0, 4));
    mixed.1 = mixed.1.wrapping_add(part(4, 8));
    // The lowest byte of the third word is the length's.
    mixed.2 = mixed.2.wrapping_add(part(8, 12) << 8);
    mixed.finish()
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
