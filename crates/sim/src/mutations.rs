//! The check of the check: each mistake that [`Mutation`] knows is made, and rounds are run
//! until one fails. A mistake that none finds is a failure of the simulator.

use thermocline_device::Mutation;

use crate::round;

/// Makes each mistake in turn whose name has `named` in it; `rounds` rounds at most are given to each. Prints how many it
/// took; false when one was not found.
pub fn check(first: u64, rounds: u64, named: &str) -> bool {
    let mut all_found = true;
    println!("| mistake | found in round | as |\n|---|---|---|");
    let chosen = |mutation: &Mutation| format!("{mutation:?}").contains(named);
    for mutation in Mutation::ALL.into_iter().filter(chosen) {
        Mutation::make(Some(mutation));
        let found = (0..rounds).find_map(|number| {
            let failure = round::run(first.wrapping_add(number), round::Scope::default()).failure?;
            Some((number + 1, failure))
        });
        Mutation::make(None);
        match found {
            Some((number, failure)) => {
                let short: String = failure.chars().take(90).collect();
                println!("| {mutation:?} | {number} | {} |", short.replace('\n', " "));
            }
            None => {
                println!("| {mutation:?} | **not in {rounds}** | |");
                all_found = false;
            }
        }
    }
    all_found
}
