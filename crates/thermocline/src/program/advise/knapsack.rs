//! Which of some things are worth the room: those of the greatest value together that fit in.
//!
//! Branch and bound over the things in the order of their value by weight. It gives the best choice, unless
//! that takes more than [`STEPS_MAX`] steps. Then it gives the best that it has seen. That is no worse than
//! taking whatever fits in that order.

/// A thing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub weight: u64,
    pub value: u64,
}

/// So many things are looked at before it ends with what it has.
const STEPS_MAX: u64 = 4_000_000;

/// Which of these are taken.
pub(super) fn best(items: &[Item], room: u64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..items.len()).filter(|i| items[*i].value > 0).collect();
    let across = |a: usize, b: usize| u128::from(items[a].value) * u128::from(items[b].weight);
    order.sort_by(|a, b| across(*b, *a).cmp(&across(*a, *b)));
    let sorted: Vec<Item> = order.iter().map(|place| items[*place]).collect();
    let mut search = Search {
        items: &sorted,
        room,
        value: 0,
        taken: Vec::new(),
        steps: 0,
    };
    let (mut best, mut best_value) = (Vec::new(), 0);
    let mut next = 0;
    loop {
        next = search.take_what_fits(next, best_value);
        if next == sorted.len() && search.value > best_value {
            best_value = search.value;
            best.clone_from(&search.taken);
        }
        match search.give_back() {
            Some(place) if search.steps < STEPS_MAX => next = place + 1,
            _ => break,
        }
    }
    let mut is_taken = vec![false; items.len()];
    for place in best {
        is_taken[order[place]] = true;
    }
    is_taken
}

struct Search<'i> {
    items: &'i [Item],
    room: u64,
    value: u128,
    /// Places of what is taken, ascending.
    taken: Vec<usize>,
    steps: u64,
}

impl Search<'_> {
    /// Takes what fits from a place on, as long as it may get better than what there is. The number of
    /// things: it has come to the end.
    fn take_what_fits(&mut self, from: usize, best: u128) -> usize {
        if self.at_most(from) <= best {
            return from;
        }
        let mut place = from;
        while let Some(item) = self.items.get(place) {
            self.steps += 1;
            if item.weight <= self.room {
                self.room -= item.weight;
                self.value += u128::from(item.value);
                self.taken.push(place);
            } else if self.at_most(place) <= best {
                return place;
            }
            place += 1;
        }
        place
    }

    /// What may come out at most, if things could be cut: from this one on.
    fn at_most(&mut self, from: usize) -> u128 {
        let (mut room, mut value) = (self.room, self.value);
        for item in &self.items[from..] {
            self.steps += 1;
            if item.weight > room {
                let part = u128::from(item.value) * u128::from(room);
                return value + part / u128::from(item.weight);
            }
            room -= item.weight;
            value += u128::from(item.value);
        }
        value
    }

    /// Gives back what was taken last. None: there is nothing.
    fn give_back(&mut self) -> Option<usize> {
        let place = self.taken.pop()?;
        self.room += self.items[place].weight;
        self.value -= u128::from(self.items[place].value);
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sums(items: &[Item], taken: impl Fn(usize) -> bool) -> (u64, u64) {
        let there = items.iter().enumerate().filter(|(place, _)| taken(*place));
        there.fold((0, 0), |(weight, value), (_, item)| {
            (weight + item.weight, value + item.value)
        })
    }

    fn items(of: &[(u64, u64)]) -> Vec<Item> {
        let item = |(weight, value): &(u64, u64)| Item {
            weight: *weight,
            value: *value,
        };
        of.iter().map(item).collect()
    }

    proptest! {
        #[test]
        fn it_is_as_good_as_the_best_of_all_choices(
            of in prop::collection::vec((0u64..30, 0u64..30), 0..11),
            room in 0u64..150,
        ) {
            let items = items(&of);
            let sets = 0..1u32 << items.len();
            let all = sets.map(|set| sums(&items, |place| set >> place & 1 == 1));
            let fitting = all.filter(|(weight, _)| *weight <= room);
            let wanted = fitting.map(|(_, value)| value).max();
            let taken = best(&items, room);
            let (weight, value) = sums(&items, |place| taken[place]);
            prop_assert!(weight <= room);
            prop_assert_eq!(Some(value), wanted);
        }
    }

    #[test]
    fn many_things_are_no_worse_than_taking_whatever_fits() {
        let of: Vec<(u64, u64)> = (0..5000u64)
            .map(|n| (1000 + n * 7919 % 100_003, 1000 + n * 104_729 % 99_991))
            .collect();
        let items = items(&of);
        let room = 80_000_000;
        let taken = best(&items, room);
        let (weight, value) = sums(&items, |place| taken[place]);
        let mut order = items.clone();
        order.sort_by_key(|item| item.weight * 1_000_000 / item.value);
        let (mut left, mut greedy) = (room, 0);
        for item in order.iter().filter(|item| item.value > 0) {
            if item.weight <= left {
                left -= item.weight;
                greedy += item.value;
            }
        }
        assert!(weight <= room && value >= greedy, "{value} {greedy}");
        // All of them fit: nothing has to be tried.
        assert_eq!(best(&items, u64::MAX), vec![true; 5000]);
    }

    #[test]
    fn extremes_do_not_overflow() {
        let of = items(&[(u64::MAX, u64::MAX), (0, 1), (u64::MAX, u64::MAX)]);
        assert_eq!(best(&[], 5), [false; 0]);
        assert_eq!(best(&of, 10), [false, true, false]);
        assert_eq!(best(&of[..2], u64::MAX), [true, true]);
    }
}
