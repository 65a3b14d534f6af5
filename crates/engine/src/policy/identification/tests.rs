//! All policies alike: what they promise to the evictor.

use super::super::Policy;
use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// Rows that are what a test says.
pub(super) struct Rows(pub Vec<Seen>);

impl Rows {
    pub fn hot(rows: usize) -> Self {
        Rows(vec![Seen::Hot(0); rows])
    }
}

impl Words for Rows {
    fn end(&self) -> u32 {
        self.0.len() as u32
    }

    fn settled_from(&self, row: u32) -> u32 {
        let rest = &self.0[row as usize..];
        rest.iter()
            .take_while(|seen| matches!(seen, Seen::Cold(_)))
            .count() as u32
    }

    fn seen(&self, row: u32) -> Seen {
        self.0[row as usize]
    }

    fn cool(&mut self, row: u32, to: u8) {
        let (Seen::Hot(warmth) | Seen::Cold(warmth)) = &mut self.0[row as usize] else {
            panic!("row {row} is not there");
        };
        assert!(to <= *warmth, "row {row} becomes warmer");
        *warmth = to;
    }
}

/// The policies by which anything leaves.
fn finding() -> impl Iterator<Item = (&'static str, Identification)> {
    let all = Identification::NAMES.into_iter();
    all.filter(|(_, identification)| *identification != Identification::Off)
}

fn order_of(identification: Identification) -> Order {
    let policy = Policy {
        identification,
        ..Policy::default()
    };
    policy.order()
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Used(u32),
    ComesBack(u32),
    Dies(u32),
    /// A turn; what it gives out leaves, stays, or is put back.
    Turn(u8),
}

const ROWS: usize = 40;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let row = 0..ROWS as u32;
    let step = prop_oneof![
        6 => row.clone().prop_map(Step::Used),
        4 => row.clone().prop_map(Step::ComesBack),
        1 => row.prop_map(Step::Dies),
        3 => any::<u8>().prop_map(Step::Turn),
    ];
    proptest::collection::vec(step, 1..300)
}

/// Searches as the evictor does, until nothing is found for as long as it takes.
fn search(order: &mut Order, rows: &mut Rows, rounds: &mut Rounds) -> Option<u32> {
    // So many rounds that the warmest has become cool.
    for _ in 0..16 {
        let limit = u64::from(rows.end()) * order.rounds();
        let mut passed = 0;
        while passed < limit {
            let mut turn = Turn::new(8, passed);
            let found = order.next(rows, rounds, &mut turn);
            if found.is_some() {
                return found;
            }
            passed = turn.passed();
        }
        if rounds.passed(passed.min(limit), 0) {
            let hot = rows.0.iter().filter(|seen| matches!(seen, Seen::Hot(_)));
            let hot = hot.count() as u64;
            rounds.round_over(u64::from(rows.end()), hot, hot);
        }
    }
    None
}

proptest! {
    #[test]
    fn what_is_given_out_is_hot_and_whatever_is_hot_is_given_out(steps in steps()) {
        for (name, identification) in finding() {
            let mut order = order_of(identification);
            let mut uses = 0;
            let mut rounds = Rounds::default();
            let mut rows = Rows(vec![Seen::Gone; ROWS]);
            for step in &steps {
                match *step {
                    Step::Used(row) => {
                        if let Seen::Hot(warmth) = &mut rows.0[row as usize] {
                            *warmth = (*warmth + 1).min(7);
                            uses += 1;
                            order.used(row, uses);
                        }
                    }
                    Step::ComesBack(row) => {
                        if !matches!(rows.seen(row), Seen::Hot(_)) {
                            rows.0[row as usize] = Seen::Hot(2);
                            order.became_hot(row);
                        }
                    }
                    Step::Dies(row) => rows.0[row as usize] = Seen::Gone,
                    Step::Turn(what) => {
                        let Some(row) = search(&mut order, &mut rows, &mut rounds) else {
                            continue;
                        };
                        prop_assert!(matches!(rows.seen(row), Seen::Hot(_)), "{}", name);
                        match what % 3 {
                            0 => order.became_hot(row),
                            1 => {
                                order.is_next(row);
                                let mut turn = Turn::new(1000, 0);
                                let again = order.next(&mut rows, &mut rounds, &mut turn);
                                prop_assert_eq!(again, Some(row), "{}", name);
                                order.became_hot(row);
                            }
                            _ => {
                                rows.0[row as usize] = Seen::Cold(1);
                                order.left(row);
                            }
                        }
                    }
                }
            }
            let hot = |rows: &Rows| (0..).zip(&rows.0)
                .filter(|(_, seen)| matches!(seen, Seen::Hot(_)))
                .map(|(row, _)| row)
                .collect::<BTreeSet<u32>>();
            let expected = hot(&rows);
            let mut found = BTreeSet::new();
            while let Some(row) = search(&mut order, &mut rows, &mut rounds) {
                prop_assert!(found.insert(row), "{}: {} twice", name, row);
                rows.0[row as usize] = Seen::Cold(0);
                order.left(row);
            }
            prop_assert_eq!(found, expected, "{}", name);
        }
    }
}

/// A policy that is changed amid all this: what is hot then is given out by the new one, too,
/// though nobody told it before.
#[test]
fn a_policy_that_comes_later_adopts_what_is_hot() {
    for (name, identification) in finding() {
        let mut order = order_of(identification);
        let (mut rows, mut rounds) = (Rows::hot(ROWS), Rounds::default());
        order.used(3, 1);
        order.became_hot(7);
        rows.0[5] = Seen::Cold(0);
        order.left(5);
        (0..ROWS as u32)
            .filter(|row| *row != 5)
            .for_each(|row| order.adopt(row));
        let mut found = BTreeSet::new();
        while let Some(row) = search(&mut order, &mut rows, &mut rounds) {
            assert!(found.insert(row), "{name}: {row} twice");
            rows.0[row as usize] = Seen::Cold(0);
            order.left(row);
        }
        assert_eq!(found.len(), ROWS - 1, "{name}");
    }
}

/// Each table has an order in each partition, whatever its policy.
#[test]
fn a_policy_costs_nothing_where_it_is_not_chosen() {
    assert!(size_of::<Order>() <= size_of::<S3Fifo>() + size_of::<usize>());
}

#[test]
fn where_nothing_leaves_nothing_is_kept() {
    let mut order = order_of(Identification::Off);
    order.became_hot(1);
    order.used(1, 1);
    assert_eq!((order.bytes(), order.keeps_rows()), (0, false));
    assert_eq!(order.warmth_of_new(), temperature::MAX);
    let mut turn = Turn::new(100, 0);
    assert_eq!(
        order.next(&mut Rows::hot(2), &mut Rounds::default(), &mut turn),
        None
    );
    assert_eq!(turn.passed(), u64::MAX);
}
