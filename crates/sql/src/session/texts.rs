//! Texts that come again: what was made of them is kept, by session. A text is kept when it comes
//! the second time: clients that put values into the text must not drive out those that repeat it.
//! The simple protocol's texts are kept parsed. Of Parse of the unnamed statement, which many
//! drivers send each time, the prepared statement is kept with its plan.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use hashbrown::HashMap;
use thermocline_engine::{Account, Charge, ChargeKind};

use super::charges::footprint;
use super::prepared::Prepared;
use super::shelf::{Place, Shelf};
use crate::error::Result;
use crate::parse;
use crate::parse::secret::HIDDEN_TEXT;

/// How many texts are kept a session, of each kind.
const TEXTS_MAX: usize = 128;
/// The longest text that is kept, in bytes.
const TEXT_BYTES_MAX: usize = 4096;
/// How many hashes of texts seen once are kept.
const SEEN_SLOTS: usize = 256;

/// What was made of texts. It leaves memory while nobody uses it, and is made again.
pub(super) struct KeptTexts<T: ?Sized> {
    texts: HashMap<Arc<str>, Arc<Place<T>>>,
    shelf: Arc<Shelf>,
    account: Account,
    /// Made when the first text is kept or not.
    seen: Box<[u64]>,
    hasher: RandomState,
}

impl<T: ?Sized + Send + Sync + 'static> KeptTexts<T> {
    pub(super) fn new(shelf: Arc<Shelf>, account: Account) -> Self {
        Self {
            texts: HashMap::new(),
            shelf,
            account,
            seen: Box::default(),
            hasher: RandomState::new(),
        }
    }

    /// What was made of `sql`, if it is kept.
    pub(super) fn get(&self, sql: &str) -> Option<Arc<T>> {
        if sql.len() > TEXT_BYTES_MAX {
            return None;
        }
        self.texts.get(sql)?.get(&self.shelf)
    }

    /// Whether what is made of this text should be kept: it came before, and there is a place.
    pub(super) fn wants(&mut self, text: &str) -> bool {
        if text.len() > TEXT_BYTES_MAX || !self.was_seen(text) {
            return false;
        }
        if self.texts.len() >= TEXTS_MAX {
            // What is in use stays, and goes on to be charged.
            self.texts.retain(|_, place| place.is_in_use());
        }
        self.texts.len() < TEXTS_MAX
    }

    /// Keeps what was made of a text, which holds no charge itself.
    pub(super) fn keep(&mut self, text: Arc<str>, made: Arc<T>, charge: Charge) {
        let place = self.shelf.place(made, charge);
        self.texts.insert(text, place);
    }

    fn was_seen(&mut self, text: &str) -> bool {
        if self.seen.is_empty() {
            self.seen = vec![0; SEEN_SLOTS].into_boxed_slice();
        }
        let hash = self.hasher.hash_one(text) | 1;
        let slot = &mut self.seen[hash as usize / 2 % SEEN_SLOTS];
        std::mem::replace(slot, hash) == hash
    }

    pub(super) fn clear(&mut self) {
        self.texts.clear();
    }
}

impl KeptTexts<[Arc<Prepared>]> {
    /// The statements of a text of the simple protocol, parsed now or before.
    pub(super) fn parse(&mut self, sql: &str) -> Result<Arc<[Arc<Prepared>]>> {
        if let Some(statements) = self.get(sql) {
            return Ok(statements);
        }
        let text: Arc<str> = Arc::from(sql);
        let statements = prepare_all(&text)?;
        let bytes = footprint(sql) * statements.len().max(1) as u64;
        // Without room for it, it is parsed each time.
        if self.wants(sql)
            && let Ok(charge) = self.account.charge(ChargeKind::Plan, bytes)
        {
            self.keep(text, Arc::clone(&statements), charge);
        }
        Ok(statements)
    }
}

fn prepare_all(text: &Arc<str>) -> Result<Arc<[Arc<Prepared>]>> {
    let parts = parse::parse_parts(text)?;
    // All statements of a message have its text.
    if parts.iter().any(|part| part.statement.is_secret()) {
        let hidden: Arc<str> = Arc::from(HIDDEN_TEXT);
        let simple = |part: parse::Part<'_>| {
            let text = HIDDEN_TEXT;
            let before = 0;
            Arc::new(Prepared::simple(
                &hidden,
                parse::Part {
                    text,
                    before,
                    ..part
                },
            ))
        };
        return Ok(parts.into_iter().map(simple).collect());
    }
    let simple = |part| Arc::new(Prepared::simple(text, part));
    Ok(parts.into_iter().map(simple).collect())
}

#[cfg(test)]
mod tests {
    use thermocline_device::SimulatedDevice;
    use thermocline_engine::{Config, Database};

    use super::*;

    #[test]
    fn a_text_is_kept_when_it_comes_again() {
        let config = Config::new(Arc::new(SimulatedDevice::new())).memory_limit(1 << 30);
        let db = Database::open(config).unwrap();
        let account = db.clients().open();
        let mut cache = KeptTexts::new(Arc::default(), account.clone());
        let first = cache.parse("select 1; select 2").unwrap();
        assert_eq!((first.len(), cache.texts.len()), (2, 0));
        let second = cache.parse("select 1; select 2").unwrap();
        let third = cache.parse("select 1; select 2").unwrap();
        assert!(!Arc::ptr_eq(&first, &second));
        assert!(Arc::ptr_eq(&second, &third));
        for number in 0..1000 {
            cache.parse(&format!("select {number}")).unwrap();
        }
        assert!(cache.texts.len() <= TEXTS_MAX);
    }

    #[test]
    fn what_is_in_use_stays_and_stays_charged() {
        let config = Config::new(Arc::new(SimulatedDevice::new())).memory_limit(1 << 30);
        let db = Database::open(config).unwrap();
        let account = db.clients().open();
        let mut kept: KeptTexts<u32> = KeptTexts::new(Arc::default(), account.clone());
        let mut keep = |number: usize, made: &Arc<u32>| {
            let text: Arc<str> = Arc::from(format!("select {number}"));
            kept.wants(&text);
            if kept.wants(&text) {
                let charge = account.charge(ChargeKind::Plan, 100).unwrap();
                kept.keep(text, Arc::clone(made), charge);
            }
            kept.texts.len()
        };
        let mut used: Vec<Arc<u32>> = (0..TEXTS_MAX as u32).map(Arc::new).collect();
        for (at, made) in used.iter().enumerate() {
            assert_eq!(keep(at, made), at + 1);
        }
        assert_eq!(keep(TEXTS_MAX, &Arc::new(0)), TEXTS_MAX);
        assert_eq!(account.total(), TEXTS_MAX as u64 * 100);
        used.truncate(3);
        assert_eq!(keep(TEXTS_MAX, &Arc::new(0)), 4);
        assert_eq!(account.total(), 400);
        kept.clear();
        assert_eq!(account.total(), 0);
    }
}
