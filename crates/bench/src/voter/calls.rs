//! Who calls, and for whom. Area codes and their states are made up: as many as the workload
//! has, spread over fifty states.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::ycsb::Scatter;

/// Area codes: so many, from this one on.
const AREA_CODE_COUNT: u64 = 305;
const AREA_CODE_FIRST: i16 = 201;
/// Phones of an area code.
const NUMBERS: u64 = 10_000_000;
/// Phones that can call.
pub(super) const PHONES: u64 = AREA_CODE_COUNT * NUMBERS;
/// One call in so many is for nobody.
const INVALID_EVERY: u32 = 100;
/// A contestant that there is not.
pub(super) const NOBODY: i32 = 999;

const STATES: [&str; 50] = [
    "AK", "AL", "AR", "AZ", "CA", "CO", "CT", "DE", "FL", "GA", "HI", "IA", "ID", "IL", "IN", "KS",
    "KY", "LA", "MA", "MD", "ME", "MI", "MN", "MO", "MS", "MT", "NC", "ND", "NE", "NH", "NJ", "NM",
    "NV", "NY", "OH", "OK", "OR", "PA", "RI", "SC", "SD", "TN", "TX", "UT", "VA", "VT", "WA", "WI",
    "WV", "WY",
];

/// All area codes.
pub(super) fn area_codes() -> impl Iterator<Item = i16> {
    AREA_CODE_FIRST..AREA_CODE_FIRST + AREA_CODE_COUNT as i16
}

/// The area code of a phone.
pub(super) fn area_code_of(phone: i64) -> i16 {
    (phone / NUMBERS as i64) as i16
}

/// The state of an area code; the workload's "XX" of none.
pub(super) fn state_of(area_code: i16) -> &'static str {
    let place = area_code - AREA_CODE_FIRST;
    match (0..AREA_CODE_COUNT as i16).contains(&place) {
        true => STATES[place as usize % STATES.len()],
        false => "XX",
    }
}

/// The phone with this number of so many: they are spread over all area codes.
pub(super) fn phone(number: u64, phones: u64) -> i64 {
    let place = Scatter::new(phones).key(number);
    // Each of fewer phones has its place among all.
    let place = place * (PHONES / phones);
    (u64::from(AREA_CODE_FIRST.unsigned_abs()) * NUMBERS + place) as i64
}

/// For whom a call is that is for somebody.
pub(super) fn contestant(contestants: usize, random: &mut StdRng) -> i32 {
    random.random_range(1..=contestants as i32)
}

/// A call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Vote {
    /// The phone.
    pub phone: i64,
    /// The contestant.
    pub contestant: i32,
}

/// Calls, one after the other.
#[derive(Debug)]
pub struct Calls {
    contestants: usize,
    phones: u64,
    random: StdRng,
}

impl Calls {
    pub(super) fn new(contestants: usize, phones: u64, caller: usize, seed: u64) -> Self {
        Calls {
            contestants,
            phones,
            random: StdRng::seed_from_u64(seed.wrapping_add((caller as u64) << 20)),
        }
    }
}

impl Iterator for Calls {
    type Item = Vote;

    fn next(&mut self) -> Option<Vote> {
        let number = self.random.random_range(0..self.phones);
        let nobody = self.random.random_range(0..INVALID_EVERY) == 0;
        Some(Vote {
            phone: phone(number, self.phones),
            contestant: match nobody {
                true => NOBODY,
                false => contestant(self.contestants, &mut self.random),
            },
        })
    }
}
