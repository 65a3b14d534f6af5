//! PostgreSQL's generator of random numbers, xoroshiro128**, so that a seed gives its numbers.

/// The state of a generator.
#[derive(Clone, Debug)]
pub struct Random {
    first: u64,
    second: u64,
}

impl Random {
    /// A generator of a seed.
    #[must_use]
    pub fn new(mut seed: u64) -> Self {
        let mut next = || {
            seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let value = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            value ^ (value >> 31)
        };
        let (first, second) = (next(), next());
        if first == 0 && second == 0 {
            return Self {
                first: 0x5851_f42d_4c95_7f2d,
                second: 0x1405_7b7e_f767_814f,
            };
        }
        Self { first, second }
    }

    /// A generator of what `setseed` takes, between -1 and 1.
    #[must_use]
    pub fn from_seed(seed: f64) -> Self {
        let whole = ((1u64 << 52) - 1) as f64 * seed;
        Self::new((whole as i64).cast_unsigned())
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let mixed = self.second ^ self.first;
        let value = self.first.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        self.first = self.first.rotate_left(24) ^ mixed ^ (mixed << 16);
        self.second = mixed.rotate_left(37);
        value
    }

    /// The next number from 0, below 1.
    pub fn next_f64(&mut self) -> f64 {
        (self.next_u64() >> 12) as f64 / (1u64 << 52) as f64
    }
}
