//! TATP's mix and its inputs.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::workload::chance::{digits, nurand};
use crate::workload::{Kind, place_by_share};

const fn kind(name: &'static str, percent: f64) -> Kind {
    Kind { name, percent }
}

/// The transactions and their shares.
pub(super) const KINDS: [Kind; 7] = [
    kind("get_subscriber_data", 35.0),
    kind("get_new_destination", 10.0),
    kind("get_access_data", 35.0),
    kind("update_subscriber_data", 2.0),
    kind("update_location", 14.0),
    kind("insert_call_forwarding", 2.0),
    kind("delete_call_forwarding", 2.0),
];

/// The failures that the specification expects.
pub(super) const NO_DESTINATION: &str = "no destination";
pub(super) const NO_ACCESS: &str = "no access";
pub(super) const NO_FACILITY: &str = "no special facility";
pub(super) const NO_FORWARDING: &str = "no call forwarding";

/// A transaction and its inputs.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the specification's own names")]
pub enum Operation {
    /// A subscriber's row.
    GetSubscriberData { subscriber: i32 },
    /// Where calls go that begin at `start` and last until `end`.
    GetNewDestination {
        subscriber: i32,
        facility: i16,
        start: i16,
        end: i16,
    },
    /// A row of access data.
    GetAccessData { subscriber: i32, access: i16 },
    /// A bit of the subscriber, and a number of a facility, or neither.
    UpdateSubscriberData {
        subscriber: i32,
        facility: i16,
        bit: i16,
        data: i16,
    },
    /// The place of the subscriber with a number.
    UpdateLocation { number: String, location: i64 },
    /// Calls that begin at `start` go elsewhere.
    InsertCallForwarding {
        number: String,
        facility: i16,
        start: i16,
        end: i16,
        to: String,
    },
    /// Calls that begin at `start` go there no longer.
    DeleteCallForwarding {
        number: String,
        facility: i16,
        start: i16,
    },
}

impl Operation {
    /// The place among [`KINDS`].
    pub(super) fn kind(&self) -> usize {
        match self {
            Operation::GetSubscriberData { .. } => 0,
            Operation::GetNewDestination { .. } => 1,
            Operation::GetAccessData { .. } => 2,
            Operation::UpdateSubscriberData { .. } => 3,
            Operation::UpdateLocation { .. } => 4,
            Operation::InsertCallForwarding { .. } => 5,
            Operation::DeleteCallForwarding { .. } => 6,
        }
    }
}

/// The telephone number of a subscriber.
pub(super) fn number_of(subscriber: i64) -> String {
    format!("{subscriber:015}")
}

/// The constant A of the law of subscribers, by how many there are.
fn spread_of(subscribers: i64) -> i64 {
    match subscribers {
        ..=1_000_000 => 65_535,
        1_000_001..=10_000_000 => 1_048_575,
        _ => 2_097_151,
    }
}

/// What one client does.
#[derive(Debug)]
pub struct Callers {
    subscribers: i64,
    non_uniform: bool,
    random: StdRng,
}

impl Callers {
    pub(super) fn new(subscribers: i64, non_uniform: bool, caller: usize, seed: u64) -> Self {
        Callers {
            subscribers,
            non_uniform,
            random: StdRng::seed_from_u64(seed.wrapping_add((caller as u64) << 20)),
        }
    }

    pub(super) fn subscriber(&mut self) -> i64 {
        let last = self.subscribers;
        match self.non_uniform {
            true => nurand(&mut self.random, spread_of(last), 1, last, 0),
            false => self.random.random_range(1..=last),
        }
    }
}

impl Iterator for Callers {
    type Item = Operation;

    fn next(&mut self) -> Option<Operation> {
        let place = place_by_share(&KINDS, self.random.random_range(0.0..100.0));
        let id = self.subscriber();
        let (subscriber, random) = (id as i32, &mut self.random);
        let facility = random.random_range(1..=4);
        let start = 8 * random.random_range(0..3);
        let end = random.random_range(1..=24);
        Some(match place {
            0 => Operation::GetSubscriberData { subscriber },
            1 => Operation::GetNewDestination {
                subscriber,
                facility,
                start,
                end,
            },
            2 => Operation::GetAccessData {
                subscriber,
                access: facility,
            },
            3 => Operation::UpdateSubscriberData {
                subscriber,
                facility,
                bit: random.random_range(0..=1),
                data: random.random_range(0..=255),
            },
            4 => Operation::UpdateLocation {
                number: number_of(id),
                location: random.random_range(0..=i64::from(u32::MAX)),
            },
            5 => Operation::InsertCallForwarding {
                number: number_of(id),
                facility,
                start,
                end: start + random.random_range(1..=8),
                to: digits(random, 15),
            },
            _ => Operation::DeleteCallForwarding {
                number: number_of(id),
                facility,
                start,
            },
        })
    }
}
