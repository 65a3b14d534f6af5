//! PostgreSQL's hash of values: Bob Jenkins' `lookup3`, with a seed or without. Partitions are dealt out by
//! it, and applications lock by it (`hashtext`).

/// The three words that are mixed.
struct Mixed(u32, u32, u32);

impl Mixed {
    /// Of so many bytes.
    fn of(length: u32, seed: u64) -> Self {
        let start = 0x9e37_79b9_u32.wrapping_add(length).wrapping_add(3_923_095);
        let mut mixed = Self(start, start, start);
        if seed != 0 {
            mixed.0 = start.wrapping_add((seed >> 32) as u32);
            mixed.1 = start.wrapping_add(seed as u32);
            mixed.mix();
        }
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

/// `hash_bytes_uint32_extended`; the lower half without a seed (0) is `hash_bytes_uint32`.
#[must_use]
pub fn word(seed: u64, word: u32) -> u64 {
    let mut mixed = Mixed::of(4, seed);
    mixed.0 = mixed.0.wrapping_add(word);
    mixed.finish()
}

/// `hashint8extended`; the lower half without a seed is `hashint8`. A small number has an integer's hash.
#[must_use]
pub fn long(seed: u64, value: i64) -> u64 {
    let (low, high) = (value as u32, (value >> 32) as u32);
    word(seed, low ^ if value >= 0 { high } else { !high })
}

/// `hash_bytes_extended`; the lower half without a seed is `hash_bytes`.
#[must_use]
pub fn bytes(seed: u64, bytes: &[u8]) -> u64 {
    let mut mixed = Mixed::of(bytes.len() as u32, seed);
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
    use super::*;

    /// What PostgreSQL 15 gives for `hashtext`, `hashint4`, `hashint8` and `hashtextextended`.
    #[test]
    fn hashes_are_postgresqls() {
        let short = |hash: u64| (hash as u32).cast_signed();
        for (text, expected, seeded) in [
            ("", -1_477_818_771, 2_755_504_096_093_790_112),
            ("a", 1_075_015_857, 6_761_863_715_122_467_050),
            ("hello world!", 1_400_155_871, -8_022_711_853_793_683_377),
            ("hello world!!", -2_118_108_552, -6_830_954_804_732_588_943),
            (
                "a longer text of more than twelve bytes",
                -416_635_485,
                -5_651_963_745_863_378_784,
            ),
        ] {
            assert_eq!(short(bytes(0, text.as_bytes())), expected, "{text}");
            assert_eq!(bytes(7, text.as_bytes()).cast_signed(), seeded, "{text}");
        }
        for (number, expected, seeded) in [
            (0_i32, -272_711_505, -191_184_349_168_900_292_i64),
            (1, -1_905_060_026, -6_563_890_024_097_284_161),
            (-1, 385_747_274, 8_228_280_636_233_252_028),
            (i32::MAX, -96_758_253, -1_839_609_485_720_848_170),
        ] {
            assert_eq!(short(word(0, number.cast_unsigned())), expected, "{number}");
            assert_eq!(
                word(7, number.cast_unsigned()).cast_signed(),
                seeded,
                "{number}"
            );
        }
        for (number, expected, seeded) in [
            (0_i64, -272_711_505, 6_070_635_583_126_202_392_i64),
            (-1, 385_747_274, -4_439_390_734_192_008_633),
            (8_589_934_592, 1_134_484_726, 784_192_687_560_964_259),
            (i64::MIN, -96_758_253, -2_009_052_510_785_349_830),
        ] {
            assert_eq!(short(long(0, number)), expected, "{number}");
            assert_eq!(
                long((-7_i64).cast_unsigned(), number).cast_signed(),
                seeded,
                "{number}"
            );
        }
    }
}
