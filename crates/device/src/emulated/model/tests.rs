use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::DeviceKind;

const KINDS: [DeviceKind; 6] = [
    DeviceKind::Hdd,
    DeviceKind::Smr,
    DeviceKind::Ssd,
    DeviceKind::Xpoint,
    DeviceKind::Nvram,
    DeviceKind::Dram,
];
const SPAN: u64 = 1 << 30;

fn profile(kind: DeviceKind) -> EmulatedProfile {
    EmulatedProfile::of(kind).unwrap()
}

/// Clients that each have one request under way at any time, at random places.
struct Load {
    model: Model,
    random: SplitMix64,
    /// Tickets under way, and when they arrived.
    under_way: BTreeMap<u64, u64>,
    /// Those whose end is known: end and arrival.
    known: BTreeMap<(u64, u64), u64>,
    now: u64,
}

impl Load {
    fn new(profile: EmulatedProfile) -> Load {
        let mut model = Model::new(profile);
        if let Work::Disk(disk) = &mut model.work {
            // All of it is in use.
            let request = Request {
                operation: Access::Read,
                place: SPAN - 4096,
                bytes: 4096,
            };
            disk.arrive(0, u64::MAX, request);
        }
        Load {
            model,
            random: SplitMix64::new(7),
            under_way: BTreeMap::new(),
            known: BTreeMap::new(),
            now: 1_000_000_000,
        }
    }

    fn submit(&mut self, operation: Access, bytes: u64) {
        let request = Request {
            operation,
            place: self.random.below(SPAN / bytes) * bytes,
            bytes,
        };
        let ticket = self.model.arrive(self.now, request);
        self.under_way.insert(ticket, self.now);
    }

    /// Ends the next request, moving the time on: how long it took.
    fn end_one(&mut self) -> u64 {
        loop {
            let mut ask_again = u64::MAX;
            self.under_way
                .retain(|ticket, arrived| match self.model.end(self.now, *ticket) {
                    End::At(end) => {
                        self.known.insert((end, *ticket), *arrived);
                        false
                    }
                    End::NotBefore(then) => {
                        ask_again = ask_again.min(then);
                        true
                    }
                });
            match self.known.pop_first() {
                Some(((end, _), arrived)) => {
                    self.now = self.now.max(end);
                    return end - arrived;
                }
                None => {
                    assert!(ask_again > self.now, "time goes on");
                    self.now = ask_again;
                }
            }
        }
    }

    /// Times of `count` requests with `depth` always under way, and how many a second.
    fn run(
        &mut self,
        operation: Access,
        bytes: u64,
        depth: usize,
        count: usize,
    ) -> (Vec<f64>, f64) {
        (0..depth).for_each(|_| self.submit(operation, bytes));
        let begun = self.now;
        let mut times = Vec::new();
        for _ in 0..count {
            times.push(self.end_one() as f64);
            self.submit(operation, bytes);
        }
        let rate = count as f64 * 1e9 / (self.now - begun) as f64;
        for _ in 0..depth {
            self.end_one();
        }
        (times, rate)
    }
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len() as f64
}

fn deviation(times: &[f64]) -> f64 {
    let mean = mean(times);
    let squares = times.iter().map(|time| (time - mean).powi(2));
    (squares.sum::<f64>() / times.len() as f64).sqrt()
}

#[test]
fn latency_and_requests_a_second_are_the_profiles_at_every_depth() {
    for kind in KINDS {
        for depth in [1, 8, 32] {
            for (operation, bytes) in [
                (Access::Read, 4 << 10),
                (Access::Read, 64 << 10),
                (Access::Read, 1 << 20),
                (Access::Write, 4 << 10),
                (Access::Write, 64 << 10),
            ] {
                // A shingled disk's writes are the profile's while its cache has room.
                let mut profile = profile(kind);
                if kind == DeviceKind::Smr {
                    profile = EmulatedProfile::smr_with_cache(u64::MAX);
                }
                let mut load = Load::new(profile.clone());
                let (times, rate) = load.run(operation, bytes, depth, 4000);
                let case = format!("{kind:?} {operation:?} of {bytes} at depth {depth}");
                let wanted = profile.per_second(operation, bytes, depth);
                assert!(
                    (rate / wanted - 1.0).abs() < 0.1,
                    "{case}: {rate}, not {wanted}"
                );
                let wanted = profile.mean_ns(operation, bytes, depth);
                let took = mean(&times);
                assert!(
                    (took / wanted - 1.0).abs() < 0.1,
                    "{case}: {took}, not {wanted}"
                );
            }
        }
    }
}

#[test]
fn on_disks_64_kb_take_little_longer_than_1_kb() {
    let within_its_cache = EmulatedProfile::smr_with_cache(u64::MAX);
    for profile in [profile(DeviceKind::Hdd), within_its_cache] {
        for operation in [Access::Read, Access::Write] {
            let [small, large] = [1 << 10, 64 << 10].map(|bytes| {
                let mut load = Load::new(profile.clone());
                mean(&load.run(operation, bytes, 1, 3000).0)
            });
            let kind = profile.kind;
            assert!(
                large / small <= 1.3,
                "{kind:?} {operation:?}: {large} {small}"
            );
        }
    }
}

#[test]
fn a_shingled_disk_is_a_disk_until_its_cache_is_full_and_erratic_then() {
    let cache = 4 << 20;
    let bytes = 4096;
    let mut smr = Load::new(EmulatedProfile::smr_with_cache(cache));
    let mut hdd = Load::new(profile(DeviceKind::Hdd));
    let room = (cache / bytes) as usize - 1;
    let (within, _) = smr.run(Access::Write, bytes, 1, room);
    let (of_hdd, _) = hdd.run(Access::Write, bytes, 1, room);
    let ratio = deviation(&within) / deviation(&of_hdd);
    assert!((0.8..1.4).contains(&ratio), "{ratio}");
    let (beyond, _) = smr.run(Access::Write, bytes, 1, 4000);
    let ratio = deviation(&beyond) / deviation(&of_hdd);
    assert!(ratio >= 3.0, "{ratio}");
    let (reads, _) = smr.run(Access::Read, bytes, 1, 1000);
    let ratio = deviation(&reads) / deviation(&of_hdd);
    assert!(ratio < 1.4, "reads are a disk's: {ratio}");
}

#[test]
fn a_shingled_disk_cleans_its_cache_while_nobody_asks() {
    let mut smr = Load::new(EmulatedProfile::smr_with_cache(1 << 20));
    let slow = |times: &[f64]| times.iter().filter(|time| **time > 2e8).count();
    let (times, _) = smr.run(Access::Write, 4096, 1, 400);
    assert!(slow(&times) > 0);
    smr.now += 600_000_000_000;
    let (times, _) = smr.run(Access::Write, 4096, 1, 250);
    assert_eq!(slow(&times), 0);
}

#[test]
fn a_stream_runs_at_the_platters_speed_and_a_sync_costs_it_a_turn() {
    let profile = profile(DeviceKind::Hdd);
    let turn = profile.mechanics.as_ref().unwrap().turn_ns;
    let mut model = Model::new(profile);
    let mut write = |now, place| {
        let request = Request {
            operation: Access::Write,
            place,
            bytes: 1 << 20,
        };
        let ticket = model.arrive(now, request);
        let End::At(end) = model.end(now, ticket) else {
            panic!("the disk is free")
        };
        end
    };
    let first = write(0, 0);
    let second = write(first, 1 << 20);
    let third = write(second, 2 << 20);
    let rate = (1 << 20) as f64 * 1e3 / (third - second) as f64;
    assert!((140.0..150.0).contains(&rate), "{rate} MB a second");
    let sync = Request {
        operation: Access::Sync,
        place: 0,
        bytes: 0,
    };
    let ticket = model.arrive(third, sync);
    let End::At(synced) = model.end(third, ticket) else {
        panic!("a sync waits for nobody")
    };
    let request = Request {
        operation: Access::Write,
        place: 3 << 20,
        bytes: 4096,
    };
    let ticket = model.arrive(synced, request);
    let End::At(fourth) = model.end(synced, ticket) else {
        panic!("the disk is free")
    };
    let waited = fourth - third;
    assert!(
        waited > turn * 9 / 10 && waited < turn * 12 / 10,
        "{waited}"
    );
}

#[test]
fn the_elevator_takes_what_waits_in_its_way() {
    let mut model = Model::new(profile(DeviceKind::Hdd));
    let places = [500, 900, 100, 700, 300];
    let tickets = places.map(|megabytes| {
        let request = Request {
            operation: Access::Read,
            place: megabytes << 20,
            bytes: 4096,
        };
        model.arrive(0, request)
    });
    let mut order: Vec<_> = tickets
        .into_iter()
        .zip(places)
        .map(|(ticket, place)| {
            // Each is asked for when all are over.
            (model.end(10_000_000_000, ticket), place)
        })
        .map(|(end, place)| match end {
            End::At(end) => (end, place),
            End::NotBefore(_) => panic!("ten seconds are enough"),
        })
        .collect();
    order.sort_unstable();
    // The first finds the disk free and goes at once.
    let order: Vec<_> = order.into_iter().map(|(_, place)| place).collect();
    assert_eq!(order, [500, 700, 900, 100, 300]);
}

proptest! {
    #[test]
    fn every_request_ends_after_its_own_time_and_none_is_forgotten(
        kind in 0..KINDS.len(),
        requests in prop::collection::vec((0u8..3, 0u64..1 << 18, 1u64..1 << 21, 0u64..20_000_000), 1..60),
    ) {
        let profile = profile(KINDS[kind]);
        let mut model = Model::new(profile.clone());
        let mut now = 0;
        let mut under_way = Vec::new();
        for (operation, place, bytes, pause) in requests {
            now += pause;
            let operation = [Access::Read, Access::Write, Access::Sync][usize::from(operation)];
            let request = Request { operation, place: place << 12, bytes };
            under_way.push((model.arrive(now, request), now, operation, bytes));
        }
        let mut questions = 0;
        while !under_way.is_empty() {
            let mut next = u64::MAX;
            under_way.retain(|&(ticket, arrived, operation, bytes)| {
                match model.end(now, ticket) {
                    End::At(end) => {
                        let spread = profile.base_ns(operation) * profile.spread_percent / 100;
                        let transfer = match operation {
                            Access::Sync => 0,
                            _ => nanoseconds(bytes, profile.request_rate.min(profile.rate(operation))),
                        };
                        assert!(end >= arrived + profile.base_ns(operation) - spread + transfer);
                        false
                    }
                    End::NotBefore(then) => {
                        next = next.min(then);
                        true
                    }
                }
            });
            questions += 1;
            prop_assert!(questions < 1000, "the end of each is known some time");
            if next != u64::MAX {
                prop_assert!(next > now, "time goes on");
                now = next;
            }
        }
    }
}
