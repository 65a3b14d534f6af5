//! SmallBank's mix and its inputs.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::workload::{Kind, place_by_share};

pub(super) const DEPOSIT_CHECKING: usize = 2;
pub(super) const TRANSACT_SAVINGS: usize = 4;
pub(super) const WRITE_CHECK: usize = 5;

const fn kind(name: &'static str, percent: f64) -> Kind {
    Kind { name, percent }
}

/// The transactions and their shares: a fourth sends money, the others are equally frequent.
pub(super) const KINDS: [Kind; 6] = [
    kind("amalgamate", 15.0),
    kind("balance", 15.0),
    kind("deposit_checking", 15.0),
    kind("send_payment", 25.0),
    kind("transact_savings", 15.0),
    kind("write_check", 15.0),
];

/// A transaction and the customers that it is about.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs, reason = "the workload's own names")]
pub enum Operation {
    /// All that one has goes to another's checking.
    Amalgamate { from: i64, to: i64 },
    /// What one has in all.
    Balance { customer: i64 },
    /// A deposit.
    DepositChecking { customer: i64 },
    /// One sends to another, if there is enough.
    SendPayment { from: i64, to: i64 },
    /// The savings are lessened, if there is enough.
    TransactSavings { customer: i64 },
    /// A check is paid, with a penalty if there is not enough.
    WriteCheck { customer: i64 },
}

impl Operation {
    /// The place among [`KINDS`].
    pub(super) fn kind(&self) -> usize {
        match self {
            Operation::Amalgamate { .. } => 0,
            Operation::Balance { .. } => 1,
            Operation::DepositChecking { .. } => DEPOSIT_CHECKING,
            Operation::SendPayment { .. } => 3,
            Operation::TransactSavings { .. } => TRANSACT_SAVINGS,
            Operation::WriteCheck { .. } => WRITE_CHECK,
        }
    }
}

/// What one client does.
#[derive(Debug)]
pub struct Callers {
    customers: i64,
    hot: i64,
    hot_percent: u8,
    random: StdRng,
}

impl Callers {
    pub(super) fn new(customers: i64, hot: i64, hot_percent: u8, caller: usize, seed: u64) -> Self {
        Callers {
            customers,
            hot,
            hot_percent,
            random: StdRng::seed_from_u64(seed.wrapping_add((caller as u64) << 20)),
        }
    }
}

impl Iterator for Callers {
    type Item = Operation;

    fn next(&mut self) -> Option<Operation> {
        let random = &mut self.random;
        let place = place_by_share(&KINDS, random.random_range(0.0..100.0));
        // Both customers of a transaction are hot, or both may be anybody.
        let among = match random.random_range(0..100) < self.hot_percent {
            true => self.hot,
            false => self.customers,
        };
        let customer = random.random_range(0..among);
        let (from, to) = (customer, (customer + random.random_range(1..among)) % among);
        Some(match place {
            0 => Operation::Amalgamate { from, to },
            1 => Operation::Balance { customer },
            DEPOSIT_CHECKING => Operation::DepositChecking { customer },
            3 => Operation::SendPayment { from, to },
            TRANSACT_SAVINGS => Operation::TransactSavings { customer },
            _ => Operation::WriteCheck { customer },
        })
    }
}
