//! S3-FIFO (Yang et al., SOSP 2023): a small queue of a tenth of memory sorts out what is
//! used once; what is used again, there or soon after it left, comes into the main queue.

use std::collections::VecDeque;

use super::Choice;

/// Counters are of two bits.
const COUNT_MAX: u8 = 3;
/// Uses in the small queue that lead to the main one.
const PROMOTE: u8 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Cold,
    Small,
    Main,
}

/// The two queues, and the ghosts of what has left the small one.
#[derive(Debug)]
pub struct S3Fifo {
    capacity: usize,
    small_length: usize,
    small: VecDeque<u32>,
    main: VecDeque<u32>,
    places: Vec<Place>,
    counts: Vec<u8>,
    /// When a tuple last became a ghost, in ghosts so far; it is one until as many
    /// others as the main queue is long have come after it.
    ghost_since: Vec<Option<u32>>,
    ghosts: u32,
}

impl S3Fifo {
    /// A tenth of the capacity is the small queue's.
    pub fn new(tuples: usize, capacity: usize) -> Self {
        S3Fifo {
            capacity,
            small_length: (capacity / 10).max(1),
            small: VecDeque::new(),
            main: VecDeque::new(),
            places: vec![Place::Cold; tuples],
            counts: vec![0; tuples],
            ghost_since: vec![None; tuples],
            ghosts: 0,
        }
    }

    fn is_ghost(&self, tuple: u32) -> bool {
        let main_length = self.capacity - self.small_length;
        self.ghost_since[tuple as usize]
            .is_some_and(|since| ((self.ghosts - since) as usize) < main_length)
    }

    fn let_in(&mut self, tuple: u32) {
        while self.hot() >= self.capacity {
            if self.small.len() >= self.small_length || self.main.is_empty() {
                self.evict_small();
            } else {
                self.evict_main();
            }
        }
        self.counts[tuple as usize] = 0;
        if self.is_ghost(tuple) {
            self.ghost_since[tuple as usize] = None;
            self.put_in_main(tuple);
        } else {
            self.places[tuple as usize] = Place::Small;
            self.small.push_back(tuple);
        }
    }

    fn put_in_main(&mut self, tuple: u32) {
        self.places[tuple as usize] = Place::Main;
        self.main.push_back(tuple);
    }

    fn evict_small(&mut self) {
        let Some(tuple) = self.small.pop_front() else {
            return;
        };
        let count = &mut self.counts[tuple as usize];
        if *count >= PROMOTE {
            *count = 0;
            self.put_in_main(tuple);
        } else {
            self.places[tuple as usize] = Place::Cold;
            self.ghost_since[tuple as usize] = Some(self.ghosts);
            self.ghosts += 1;
        }
    }

    fn evict_main(&mut self) {
        let Some(tuple) = self.main.pop_front() else {
            return;
        };
        let count = &mut self.counts[tuple as usize];
        if *count > 0 {
            *count -= 1;
            self.main.push_back(tuple);
        } else {
            self.places[tuple as usize] = Place::Cold;
        }
    }
}

impl Choice for S3Fifo {
    fn access(&mut self, tuple: u32) -> bool {
        if self.places[tuple as usize] == Place::Cold {
            self.let_in(tuple);
            return false;
        }
        let count = &mut self.counts[tuple as usize];
        *count = (*count + 1).min(COUNT_MAX);
        true
    }

    fn insert(&mut self, tuple: u32) {
        let tuples = self.places.len().max(tuple as usize + 1);
        self.places.resize(tuples, Place::Cold);
        self.counts.resize(tuples, 0);
        self.ghost_since.resize(tuples, None);
        self.access(tuple);
    }

    fn hot(&self) -> usize {
        self.small.len() + self.main.len()
    }

    fn is_hot(&self, tuple: u32) -> bool {
        self.places[tuple as usize] != Place::Cold
    }
}
