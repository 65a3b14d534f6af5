//! What sessions keep so as not to parse and bind it again: prepared statements, texts of
//! simple queries. It is idle most of the time, and leaves when somebody asks for memory and
//! there is none, what was used least lately first, whichever session's it is. Its owner makes
//! it again from its text.
//!
//! Time is counted in rounds: one passes with each call for memory, so that a use is two loads
//! and seldom a store, and nothing that sessions share is written or locked by it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use thermocline_engine::{Account, Charge, Reclaim};

/// How much leaves at least when anything does, in bytes: looking for it has a price.
const LEAVES_BYTES_MIN: u64 = 256 << 10;
/// Places that are kept between two looks for those that are gone.
const PLACES_MIN: usize = 256;

/// The places of all sessions.
#[derive(Default)]
pub(crate) struct Shelf {
    round: AtomicU64,
    places: Mutex<Places>,
}

#[derive(Default)]
struct Places {
    known: Vec<Weak<dyn Leaves>>,
    looked_at: usize,
}

/// A place with something in it, or not.
trait Leaves: Send + Sync {
    /// The round in which it was used last; none if there is nothing to give up, or it is
    /// another account's.
    fn used(&self, of: Option<&Account>) -> Option<u64>;

    /// Gives up what is idle; its bytes.
    fn leave(&self) -> u64;
}

/// A place for one thing that can be made again.
pub(super) struct Place<T: ?Sized> {
    item: Mutex<Option<(Arc<T>, Charge)>>,
    used: AtomicU64,
}

impl Shelf {
    /// A place for `item`, which is charged as long as it is there.
    pub(super) fn place<T>(&self, item: Arc<T>, charge: Charge) -> Arc<Place<T>>
    where
        T: ?Sized + Send + Sync + 'static,
    {
        let place = Arc::new(Place {
            item: Mutex::new(Some((item, charge))),
            used: AtomicU64::new(self.round.load(Relaxed)),
        });
        let mut places = self.places.lock();
        if places.known.len() >= places.looked_at.max(PLACES_MIN) {
            places.known.retain(|place| place.strong_count() > 0);
            places.looked_at = 2 * places.known.len();
        }
        let known: Arc<dyn Leaves> = Arc::<Place<T>>::clone(&place);
        places.known.push(Arc::downgrade(&known));
        place
    }
}

impl Reclaim for Shelf {
    fn reclaim(&self, bytes: u64, of: Option<&Account>) -> u64 {
        self.round.fetch_add(1, Relaxed);
        let mut there: Vec<(u64, Arc<dyn Leaves>)> = {
            let places = self.places.lock();
            let there = places.known.iter().filter_map(Weak::upgrade);
            there
                .filter_map(|place| Some((place.used(of)?, place)))
                .collect()
        };
        there.sort_by_key(|(used, _)| *used);
        let wanted = bytes.max(LEAVES_BYTES_MIN);
        let mut left = 0;
        for (_, place) in there {
            if left >= wanted {
                break;
            }
            left += place.leave();
        }
        left
    }
}

impl<T: ?Sized> Place<T> {
    /// What is there, which is used now.
    pub(super) fn get(&self, shelf: &Shelf) -> Option<Arc<T>> {
        let round = shelf.round.load(Relaxed);
        if self.used.load(Relaxed) != round {
            self.used.store(round, Relaxed);
        }
        let item = self.item.lock();
        item.as_ref().map(|(item, _)| Arc::clone(item))
    }

    /// Puts back what was made again.
    pub(super) fn put(&self, item: Arc<T>, charge: Charge) {
        *self.item.lock() = Some((item, charge));
    }

    /// Whether somebody has what is there.
    pub(super) fn is_in_use(&self) -> bool {
        let item = self.item.lock();
        item.as_ref()
            .is_some_and(|(item, _)| Arc::strong_count(item) > 1)
    }

    /// What is there; that is no use of it.
    pub(super) fn look(&self) -> Option<Arc<T>> {
        self.item.lock().as_ref().map(|(item, _)| Arc::clone(item))
    }
}

impl<T: ?Sized + Send + Sync> Leaves for Place<T> {
    fn used(&self, of: Option<&Account>) -> Option<u64> {
        let item = self.item.try_lock()?;
        let (_, charge) = item.as_ref()?;
        let wanted = of.is_none_or(|account| account.is(charge.account()));
        wanted.then(|| self.used.load(Relaxed))
    }

    fn leave(&self) -> u64 {
        let Some(mut item) = self.item.try_lock() else {
            return 0;
        };
        // One that runs, or that a portal has, would not leave memory.
        let idle = item.take_if(|(item, _)| Arc::strong_count(item) == 1);
        drop(item);
        idle.map_or(0, |(_, charge)| charge.bytes())
    }
}

#[cfg(test)]
mod tests {
    use thermocline_device::SimulatedDevice;
    use thermocline_engine::{ChargeKind, Config, Database};

    use super::*;

    #[test]
    fn what_was_used_least_lately_leaves_first_and_nothing_that_runs() {
        let config = Config::new(Arc::new(SimulatedDevice::new())).memory_limit(1 << 30);
        let db = Database::open(config).unwrap();
        let account = db.clients().open();
        let shelf = Shelf::default();
        let place = |number: u32| {
            let charge = account.charge(ChargeKind::Plan, LEAVES_BYTES_MIN / 2);
            shelf.place(Arc::new(number), charge.unwrap())
        };
        let places: Vec<_> = (0..6).map(place).collect();
        let there = || -> Vec<bool> { places.iter().map(|p| p.look().is_some()).collect() };
        let running = places[0].get(&shelf);
        let stranger = db.clients().open();
        assert_eq!(shelf.reclaim(1, Some(&stranger)), 0);
        assert_eq!(shelf.reclaim(1, Some(&account)), LEAVES_BYTES_MIN);
        assert_eq!(there(), [true, false, false, true, true, true]);
        drop(running);
        for at in [3, 4] {
            assert_eq!(places[at].get(&shelf).as_deref(), Some(&(at as u32)));
        }
        assert_eq!(shelf.reclaim(1, None), LEAVES_BYTES_MIN);
        assert_eq!(there(), [false, false, false, true, true, false]);
        assert_eq!(account.total(), LEAVES_BYTES_MIN);
        assert_eq!(places[1].get(&shelf), None);
        let again = account.charge(ChargeKind::Plan, 1).unwrap();
        places[1].put(Arc::new(7), again);
        assert_eq!(places[1].get(&shelf).as_deref(), Some(&7));
        drop(places);
        assert_eq!((shelf.reclaim(1, None), account.total()), (0, 0));
        drop(shelf);
        db.close().unwrap();
    }
}
