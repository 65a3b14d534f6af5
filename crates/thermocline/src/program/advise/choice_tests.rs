//! The three ways to choose, on columns whose best place is known, and beside the best of all choices.

use proptest::prelude::*;

use super::State::{Cold, Hot, Warm};
use super::*;

const LIMITS: Limits = Limits {
    memory: 100,
    buffer: 10,
};

fn column(table: &str, name: &str, bytes: u64, uses: u64) -> Column {
    Column {
        table: table.to_owned(),
        name: name.to_owned(),
        bytes,
        uses,
        scan_ns: uses * 1000,
        ..Column::default()
    }
}

#[test]
fn what_fits_is_hot_and_what_nobody_used_is_cold() {
    let columns = [column("t", "a", 60, 5), column("t", "b", 50, 0)];
    let choice = by_frequency(&columns, LIMITS);
    assert_eq!(choice.states, [Hot, Cold]);
    assert_eq!(
        (choice.memory, choice.shortfall, choice.device_ns),
        (60, 0, 0)
    );
    assert_eq!(by_cost(&columns, LIMITS).states, [Hot, Cold]);
    // A table that is used goes as a whole, and this one does not fit.
    let choice = whole_tables(&columns, LIMITS);
    assert_eq!(choice.states, [Warm, Warm]);
    assert_eq!((choice.memory, choice.device_ns), (10, 5000));
    assert_eq!(by_frequency(&[], LIMITS).states, []);
}

#[test]
fn the_least_used_go_first_and_the_buffer_counts() {
    let columns = [
        column("t", "a", 50, 9),
        column("t", "b", 45, 7),
        column("u", "c", 30, 3),
    ];
    // Without c there are 95, and the buffer makes them 105.
    let choice = by_frequency(&columns, LIMITS);
    assert_eq!(choice.states, [Hot, Warm, Warm]);
    assert_eq!((choice.memory, choice.shortfall), (60, 0));
    let choice = whole_tables(&columns, LIMITS);
    assert_eq!(choice.states, [Warm, Warm, Warm]);
    // Scans need no buffer: c is cold, and the two others have all memory.
    let choice = by_cost(&columns, LIMITS);
    assert_eq!(choice.states, [Hot, Hot, Cold]);
    assert_eq!((choice.memory, choice.device_ns), (95, 3000));
}

#[test]
fn a_condition_without_an_index_comes_last_but_is_not_kept_for_good() {
    let mut rare = column("t", "rare", 60, 1);
    rare.has_open_condition = true;
    let columns = [rare.clone(), column("t", "often", 60, 1000)];
    assert_eq!(by_frequency(&columns, LIMITS).states, [Hot, Warm]);
    rare.bytes = 200;
    let columns = [rare, column("t", "often", 60, 1000)];
    let choice = by_frequency(&columns, LIMITS);
    assert_eq!(choice.states, [Warm, Warm]);
    assert_eq!((choice.memory, choice.shortfall), (10, 0));
}

#[test]
fn it_ends_and_names_what_is_missing_when_the_limit_is_out_of_reach() {
    let limits = Limits {
        memory: 5,
        buffer: 10,
    };
    let columns = [column("t", "a", 60, 5), column("t", "b", 60, 6)];
    for way in [by_frequency, whole_tables] {
        let choice = way(&columns, limits);
        assert_eq!(choice.states, [Warm, Warm]);
        assert_eq!((choice.memory, choice.shortfall), (10, 5));
    }
    // The device alone needs no buffer.
    let choice = by_cost(&columns, limits);
    assert_eq!((choice.states, choice.shortfall), (vec![Cold, Cold], 0));
}

#[test]
fn of_equals_the_larger_goes_first_and_then_the_name_decides() {
    let columns = [
        column("t", "small", 30, 5),
        column("t", "large", 40, 5),
        column("t", "b", 30, 5),
    ];
    let limits = Limits {
        memory: 70,
        buffer: 10,
    };
    assert_eq!(by_frequency(&columns, limits).states, [Hot, Warm, Hot]);
    let limits = Limits {
        memory: 40,
        buffer: 10,
    };
    assert_eq!(by_frequency(&columns, limits).states, [Hot, Warm, Warm]);
}

#[test]
fn single_rows_profit_from_the_buffer_and_scans_do_not() {
    let mut wide = column("t", "wide", 100, 5);
    (wide.scan_ns, wide.single_ns) = (7, 1000);
    let columns = [wide, column("t", "a", 90, 50)];
    let choice = by_cost(&columns, LIMITS);
    assert_eq!(choice.states, [Warm, Hot]);
    // A tenth of the pages is in the buffer.
    assert_eq!((choice.memory, choice.device_ns), (100, 907));
}

fn any_column() -> impl Strategy<Value = Column> {
    let counts = (0u64..40, 0u64..6, any::<bool>(), 0u64..50, 0u64..50);
    (0usize..3, 0usize..9, counts).prop_map(|(table, name, counts)| {
        let (bytes, uses, has_open_condition, scan_ns, single_ns) = counts;
        Column {
            table: format!("t{table}"),
            name: format!("c{name}"),
            bytes,
            uses,
            has_open_condition,
            scan_ns: scan_ns * uses.min(1),
            single_ns: single_ns * uses.min(1),
        }
    })
}

proptest! {
    #[test]
    fn every_way_keeps_the_limit_or_names_what_is_missing(
        columns in prop::collection::vec(any_column(), 0..10),
        memory in 0u64..200,
        buffer in 0u64..40,
    ) {
        let limits = Limits { memory, buffer };
        for way in [whole_tables, by_frequency, by_cost] {
            let choice = way(&columns, limits);
            prop_assert_eq!(choice.states.len(), columns.len());
            prop_assert_eq!(&choice, &Choice::of(&columns, limits, choice.states.clone()));
            prop_assert_eq!(choice.shortfall, choice.memory.saturating_sub(memory));
            prop_assert!(choice.shortfall == 0 || memory < buffer);
        }
        let choice = by_frequency(&columns, limits);
        for (place, column) in columns.iter().enumerate() {
            prop_assert_eq!(choice.states[place] == Cold, column.uses == 0);
        }
        let cost = by_cost(&columns, limits);
        for other in [choice, whole_tables(&columns, limits)] {
            prop_assert!((cost.shortfall, cost.device_ns) <= (other.shortfall, other.device_ns));
        }
    }

    #[test]
    fn by_cost_without_a_buffer_is_the_best_of_all_choices(
        columns in prop::collection::vec(any_column(), 0..10),
        memory in 0u64..200,
    ) {
        let limits = Limits { memory, buffer: 0 };
        let states = |set: u32| {
            let state = |place: usize| if set >> place & 1 == 1 { Hot } else { Cold };
            (0..columns.len()).map(state).collect()
        };
        let all = (0..1u32 << columns.len()).map(|set| Choice::of(&columns, limits, states(set)));
        let fitting = all.filter(|choice| choice.shortfall == 0);
        let least = fitting.map(|choice| choice.device_ns).min();
        prop_assert_eq!(Some(by_cost(&columns, limits).device_ns), least);
    }
}
