//! All policies alike: what they promise to the evictor.

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
        for (name, identification) in Identification::NAMES {
            let mut order = identification.order();
            let mut rounds = Rounds::default();
            let mut rows = Rows(vec![Seen::Gone; ROWS]);
            for step in &steps {
                match *step {
                    Step::Used(row) => {
                        if let Seen::Hot(warmth) = &mut rows.0[row as usize] {
                            *warmth = (*warmth + 1).min(7);
                            order.used(row);
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

#[test]
fn the_names_are_those_that_views_show() {
    for (name, identification) in Identification::NAMES {
        assert_eq!(format!("{identification:?}").to_lowercase(), name);
    }
}
