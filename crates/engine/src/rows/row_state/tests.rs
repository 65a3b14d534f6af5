//! The transitions against a model of what each row is, and what they refuse.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use thermocline_storage::arena::Arena;

use super::*;
use crate::policy::Identification;
use crate::policy::identification::{Rounds, Turn};

/// What the model says of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    Dirty,
    Copying(Copying),
    Clean(ColdAddress),
    Cold(ColdAddress),
    Dead(Word),
}

const ROWS: u32 = 12;

fn policy(identification: Identification) -> Policy {
    Policy {
        identification,
        ..Policy::default()
    }
}

fn rows() -> TablePartition {
    let arena = Arc::new(Arena::reserve(64 << 20).expect("address space"));
    TablePartition::new(
        &CommonPages::new(arena),
        Vec::new(),
        policy(Identification::Lru),
    )
}

/// No other copy lies there.
fn address() -> ColdAddress {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(1);
    ColdAddress {
        block: NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
        slot: 3,
        extent: 1,
    }
}

/// The hot row that leaves next.
fn next_to_leave(rows: &mut TablePartition) -> Option<u32> {
    let mut turn = Turn::new(u32::MAX, 0);
    let next = rows.next_to_leave(&mut Rounds::default(), &mut turn);
    next.map(|(row, _)| row)
}

fn hot(rows: &TablePartition, row: u32) -> HotWord {
    let word = rows.directory().get(row);
    word.as_hot().expect("it is hot")
}

/// Changes a row for good. Where the copy lies that its tuple had.
fn changed(rows: &mut TablePartition, row: u32, tuple: &[u8], warmer: u8) -> Option<ColdAddress> {
    let word = rows.directory().get(row);
    let changed = rows.change(row, word, tuple, warmer).expect("room");
    rows.free_aside(changed.past);
    changed.hole
}

/// All that a transition may change of a row, and the counts.
fn all_of(rows: &TablePartition, row: u32) -> (Word, Option<CopyWord>, Option<Vec<u8>>, u64, u64) {
    let word = rows.directory().get(row);
    let tuple = |hot: HotWord| rows.heap().payload(hot.pointer()).to_vec();
    (
        word,
        word.as_hot().map(|hot| rows.copy_word(hot)),
        word.as_hot().map(tuple),
        rows.live(),
        rows.cold(),
    )
}

/// One step of a row's life, of those that are possible, by `choice`.
fn step(rows: &mut TablePartition, row: u32, state: State, choice: u8) -> State {
    let word = rows.directory().get(row);
    let tuple = [choice; 40];
    match state {
        State::Free => {
            assert!(rows.take_number_again(row));
            rows.insert(row, &tuple, choice & 1 != 0).expect("room");
            match choice & 2 != 0 {
                true => State::Dirty,
                false => {
                    let word = rows.directory().get(row);
                    rows.undo_insert(row, word, Numbers::Restoring);
                    State::Free
                }
            }
        }
        State::Dead(word) => match choice % 3 {
            0 => {
                rows.bury(row, word, false, Numbers::Restoring);
                State::Free
            }
            // The model takes back what was cold or dirty only.
            _ => {
                rows.undo_die(row, word);
                match word.as_cold() {
                    Some(cold) => State::Cold(cold.address()),
                    None => State::Dirty,
                }
            }
        },
        State::Cold(copy) => step_of_cold(rows, row, copy, choice),
        State::Dirty => match choice % 4 {
            0 | 1 => {
                let copying = Copying::begin();
                rows.copy(row, hot(rows, row), copying, 3);
                assert!(rows.is_as_copied(hot(rows, row), copying, 3));
                State::Copying(copying)
            }
            2 => {
                assert_eq!(changed(rows, row, &tuple[..20], 0), None);
                State::Dirty
            }
            _ => {
                assert_eq!(rows.die(row, word), None);
                State::Dead(word)
            }
        },
        State::Copying(copying) => match choice % 4 {
            0 => {
                changed(rows, row, &tuple, 0);
                assert!(!rows.is_as_copied(hot(rows, row), copying, 3));
                State::Dirty
            }
            1 => {
                rows.not_copied(row, hot(rows, row));
                State::Dirty
            }
            2 => {
                let address = address();
                rows.stay_clean(row, hot(rows, row), address);
                State::Clean(address)
            }
            _ => {
                let address = address();
                rows.leave_copied(row, hot(rows, row), address, choice);
                State::Cold(address)
            }
        },
        State::Clean(copy) => step_of_clean(rows, row, copy, choice),
    }
}

fn step_of_cold(rows: &mut TablePartition, row: u32, copy: ColdAddress, choice: u8) -> State {
    let word = rows.directory().get(row);
    let tuple = [choice; 40];
    match choice % 5 {
        0 => {
            let cold = word.as_cold().expect("it is cold");
            assert!(rows.come_back(row, cold, &tuple).is_some());
            State::Clean(copy)
        }
        1 => {
            assert_eq!(changed(rows, row, &tuple, choice & 1), Some(copy));
            State::Dirty
        }
        2 => {
            let to = address();
            rows.move_copy(row, word, to);
            State::Cold(to)
        }
        3 => {
            assert_eq!(rows.die(row, word), Some(copy));
            State::Dead(word)
        }
        _ => {
            assert_eq!(rows.forget(row), Some(copy));
            State::Free
        }
    }
}

fn step_of_clean(rows: &mut TablePartition, row: u32, copy: ColdAddress, choice: u8) -> State {
    let word = rows.directory().get(row);
    let tuple = [choice; 40];
    match choice % 4 {
        0 => {
            assert_eq!(changed(rows, row, &tuple, 0), Some(copy));
            State::Dirty
        }
        1 => {
            let to = address();
            rows.move_copy(row, word, to);
            State::Clean(to)
        }
        2 => {
            assert_eq!(rows.forget(row), Some(copy));
            State::Free
        }
        _ => {
            rows.leave_clean(row, hot(rows, row), copy, choice);
            State::Cold(copy)
        }
    }
}

proptest! {
    #[test]
    fn rows_are_what_their_transitions_made_of_them(
        steps in prop::collection::vec((0..ROWS, any::<u8>()), 1..400),
    ) {
        let mut rows = rows();
        let mut states = [State::Free; ROWS as usize];
        for (row, choice) in steps {
            let at = row as usize;
            states[at] = step(&mut rows, row, states[at], choice);
            if choice & 16 != 0 && is_there(rows.directory().get(row)) {
                rows.used(row, rows.directory().get(row), 1);
            }
            for (row, state) in (0..).zip(states) {
                let word = rows.directory().get(row);
                let copy = rows.copy_of_row(word);
                match state {
                    State::Free => prop_assert!(word.is_free()),
                    State::Dead(_) => prop_assert_eq!(word, DEAD),
                    State::Dirty => prop_assert!(word.as_hot().is_some_and(|hot| rows.is_dirty(hot))),
                    State::Copying(copying) => {
                        prop_assert!(rows.is_as_copied(hot(&rows, row), copying, 3));
                        prop_assert_eq!(copy, None);
                    }
                    State::Clean(address) => {
                        prop_assert!(word.is_hot());
                        prop_assert_eq!(copy, Some(address));
                    }
                    State::Cold(address) => {
                        prop_assert!(word.is_cold());
                        prop_assert_eq!(copy, Some(address));
                    }
                }
            }
            let count = |is: fn(&State) -> bool| states.iter().filter(|state| is(state)).count() as u64;
            let gone = count(|state| matches!(state, State::Free | State::Dead(_)));
            let cold = count(|state| matches!(state, State::Cold(_)));
            prop_assert_eq!((rows.live(), rows.cold()), (u64::from(ROWS) - gone, cold));
            let dead_in_heap = count(|state| matches!(state, State::Dead(word) if word.is_hot()));
            prop_assert_eq!(rows.heap().tuples() as u64, rows.live() - cold + dead_in_heap);
        }
        // Whatever is hot may leave some time.
        let mut given_out = BTreeSet::new();
        while let Some(row) = next_to_leave(&mut rows) {
            given_out.insert(row);
        }
        for row in 0..ROWS {
            prop_assert!(!rows.directory().get(row).is_hot() || given_out.contains(&row));
        }
    }
}

/// A row that is locked, not committed, and warm.
fn marked(rows: &mut TablePartition) -> u32 {
    let row = rows.take_number().expect("a number");
    rows.insert(row, &[1; 40], true).expect("room");
    rows.set_locked(row, true);
    rows.used(row, rows.directory().get(row), 1);
    row
}

#[test]
fn what_is_marked_of_a_row_stays_wherever_it_is() {
    let mut rows = rows();
    let row = marked(&mut rows);
    let marks = |rows: &TablePartition| {
        let word = rows.directory().get(row);
        (word.is_aside(), word.is_uncommitted(), word.temperature())
    };
    let before = marks(&rows);
    assert_eq!(before, (true, true, temperature::WRITTEN + 1));
    rows.copy(row, hot(&rows, row), Copying::begin(), 0);
    rows.leave_copied(row, hot(&rows, row), address(), 7);
    assert_eq!(marks(&rows), before);
    let cold = rows.directory().get(row).as_cold().expect("it is cold");
    assert!(rows.come_back(row, cold, &[1; 40]).is_some());
    assert_eq!(marks(&rows), before);
    rows.leave_clean(row, hot(&rows, row), cold.address(), 7);
    assert_eq!(marks(&rows), before);
    rows.move_copy(row, rows.directory().get(row), address());
    assert_eq!(marks(&rows), before);
    changed(&mut rows, row, &[2; 80], 0);
    assert_eq!(marks(&rows), before);
    rows.commit_insert(row);
    rows.set_locked(row, false);
    assert_eq!(marks(&rows), (false, false, before.2));
}

#[test]
fn what_is_undone_was_never_done() {
    let mut rows = rows();
    let row = marked(&mut rows);
    // Dirty, copying, clean.
    for _ in 0..3 {
        let before = all_of(&rows, row);
        let (word, copy) = (before.0, rows.copy_word(hot(&rows, row)));
        for len in [40, 400] {
            let change = rows.change(row, word, &vec![9; len], 0).expect("room");
            let is_aside = matches!(change.past, Past::Aside(_));
            assert_eq!(is_aside, len == 400, "another size lies elsewhere");
            rows.undo_change(row, hot(&rows, row), change.past, &[1; 40]);
            assert_eq!(all_of(&rows, row), before);
        }
        rows.die(row, word);
        rows.undo_die(row, word);
        assert_eq!(all_of(&rows, row), before);
        match rows.is_dirty(hot(&rows, row)) {
            true => rows.copy(row, hot(&rows, row), Copying::begin(), 0),
            false if copy.is_under_way() => rows.stay_clean(row, hot(&rows, row), address()),
            false => {}
        }
    }
    let copy = rows.copy_of(hot(&rows, row)).expect("it is clean");
    rows.leave_clean(row, hot(&rows, row), copy, 7);
    let before = all_of(&rows, row);
    let cold = before.0.as_cold().expect("it is cold");
    let change = rows.change(row, before.0, &[9; 40], 1).expect("room");
    assert_eq!(change.past, Past::Cold(cold));
    rows.undo_change(row, hot(&rows, row), change.past, &[]);
    assert_eq!(all_of(&rows, row), before);
    rows.die(row, before.0);
    rows.undo_die(row, before.0);
    assert_eq!(all_of(&rows, row), before);
}

#[test]
fn a_dead_row_takes_no_lock() {
    let mut rows = rows();
    let row = marked(&mut rows);
    rows.die(row, rows.directory().get(row));
    rows.set_locked(row, true);
    assert_eq!(rows.directory().get(row), DEAD);
}

#[cfg(debug_assertions)]
#[test]
fn what_a_row_cannot_do_is_noticed() {
    let wrong: [fn(&mut TablePartition, u32); 7] = [
        |rows, row| rows.insert(row, &[1], false).expect("room"),
        |rows, row| rows.stay_clean(row, hot(rows, row), address()),
        |rows, row| rows.leave_copied(row, hot(rows, row), address(), 0),
        |rows, row| rows.leave_clean(row, hot(rows, row), address(), 0),
        |rows, row| rows.bury(row, rows.directory().get(row), false, Numbers::Listed),
        |rows, row| {
            let word = rows.directory().get(row);
            rows.die(row, word);
            rows.die(row, word);
        },
        |rows, row| {
            rows.copy(row, hot(rows, row), Copying::begin(), 0);
            rows.copy(row, hot(rows, row), Copying::begin(), 0);
        },
    ];
    for (number, wrong) in wrong.into_iter().enumerate() {
        let done = std::panic::catch_unwind(|| {
            let mut rows = rows();
            let row = marked(&mut rows);
            wrong(&mut rows, row);
        });
        assert!(done.is_err(), "number {number} went through");
    }
}

#[test]
fn what_a_start_restores_may_leave_as_all_that_is_hot() {
    let mut rows = rows();
    assert!(rows.take_number_again(5));
    let restored = rows.restore_dirty(5, &[1; 40], 3, true);
    restored.expect("room");
    let word = rows.directory().get(5);
    assert!(word.is_hot() && word.is_uncommitted() && word.temperature() == 3);
    assert_eq!(next_to_leave(&mut rows), Some(5));
    // Such rows are counted before they are there.
    assert_eq!((rows.live(), rows.cold()), (0, 0));
}

/// A row became smaller, and the page that it had was given back, and taken by another table. An
/// undo then found no room for what the row had been, and left it changed.
#[test]
fn what_a_row_was_comes_back_where_there_is_no_room() {
    const LARGE: usize = 300_000;
    let arena = Arc::new(Arena::reserve(16 << 20).expect("address space"));
    let pages = CommonPages::new(arena);
    let [mut rows, mut others] = [0; 2]
        .map(|_| TablePartition::new(&pages, Vec::new(), policy(Identification::Temperature)));
    let fill = |rows: &mut TablePartition, len: usize| {
        let mut last = None;
        loop {
            let row = rows.take_number().expect("a number");
            if rows.insert(row, &vec![row as u8; len], false).is_err() {
                return last;
            }
            last = Some(row);
        }
    };
    // There is a page for small ones.
    let small = rows.take_number().expect("a number");
    rows.insert(small, &[0; 100], false).expect("room");
    let row = fill(&mut rows, LARGE).expect("there is room for one");
    let before = all_of(&rows, row);
    // First to a smaller one, then where that lies.
    let first = rows.change(row, before.0, &[9; 100], 0).expect("room");
    let between = all_of(&rows, row);
    let second = rows.change(row, between.0, &[8; 99], 0).expect("room");
    for len in [LARGE, 20_000, 100] {
        fill(&mut others, len);
    }
    rows.undo_change(row, hot(&rows, row), second.past, &[9; 100]);
    assert_eq!(all_of(&rows, row), between);
    rows.undo_change(row, hot(&rows, row), first.past, &vec![row as u8; LARGE]);
    assert_eq!(all_of(&rows, row), before);
    assert_eq!(rows.heap().tuples() as u64, rows.live());
}

/// Each transition's bookkeeping is left out once: debug builds notice at the transition.
#[cfg(all(debug_assertions, feature = "mutations"))]
#[test]
fn bookkeeping_that_is_left_out_is_noticed() {
    // The life of a row, and of one whose changes are undone.
    let live = || {
        let mut rows = rows();
        let row = marked(&mut rows);
        for choice in 0..3 {
            let (word, copying) = (rows.directory().get(row), Copying::begin());
            let change = rows.change(row, word, &[9; 40], 0).expect("room");
            rows.undo_change(row, hot(&rows, row), change.past, &[1; 40]);
            rows.copy(row, hot(&rows, row), copying, 3);
            match choice {
                0 => rows.not_copied(row, hot(&rows, row)),
                1 => {
                    rows.stay_clean(row, hot(&rows, row), address());
                    let word = rows.directory().get(row);
                    let change = rows.change(row, word, &[9; 40], 0).expect("room");
                    rows.undo_change(row, hot(&rows, row), change.past, &[1; 40]);
                    changed(&mut rows, row, &[1; 40], 0);
                }
                _ => rows.leave_copied(row, hot(&rows, row), address(), 7),
            }
        }
        rows.move_copy(row, rows.directory().get(row), address());
        let cold = rows.directory().get(row).as_cold().expect("it is cold");
        assert!(rows.come_back(row, cold, &[1; 40]).is_some());
        rows.leave_clean(row, hot(&rows, row), cold.address(), 7);
        rows.commit_insert(row);
        let word = rows.directory().get(row);
        let change = rows.change(row, word, &[9; 40], 1).expect("room");
        rows.undo_change(row, hot(&rows, row), change.past, &[]);
        rows.die(row, word);
        rows.undo_die(row, word);
        let cold = word.as_cold().expect("it is cold");
        assert!(rows.come_home(row, cold, &[1; 40], false).is_some());
    };
    live();
    let books = Mutation::ALL.into_iter();
    let books = books.skip_while(|mistake| *mistake != Mutation::RowNotCounted);
    for mistake in books {
        Mutation::make(Some(mistake));
        let noticed = std::panic::catch_unwind(live);
        Mutation::make(None);
        let why = noticed.expect_err(&format!("{mistake:?} was not noticed"));
        let why = why.downcast_ref::<String>().cloned().unwrap_or_default();
        println!("| {mistake:?} | {why} |");
    }
}
