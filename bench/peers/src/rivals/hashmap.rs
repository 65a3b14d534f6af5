//! What memory itself allows: a hash map in 64 parts, each behind its lock. A read
//! copies the value out, an update replaces it in place. It lies in huge pages, keeps
//! nothing, has no limit, and serves as the ceiling for data that fits.

use hashbrown::HashMap;
use parking_lot::Mutex;
use thermocline_bench::Result;

use super::{Key, Rival, RivalClient, Setup};

const SHARDS: usize = 64;

type Shard = Mutex<HashMap<u64, Box<[u8]>>>;

/// The map.
#[derive(Debug)]
pub struct Map {
    shards: Vec<Shard>,
}

impl Map {
    fn shard(&self, key: u64) -> &Shard {
        // The upper bits of a product by a large odd number: the map's own hash
        // uses others.
        let place = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58;
        &self.shards[place as usize]
    }
}

impl Rival for Map {
    type Client<'a> = &'a Map;

    fn open(_: &Setup<'_>) -> Result<Self> {
        Ok(Map {
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
        })
    }

    fn client(&self) -> Result<&Map> {
        Ok(self)
    }

    fn load(&self, rows: &[(Key, &[u8])]) -> Result<()> {
        let mut map = self;
        rows.iter()
            .try_for_each(|(key, value)| map.insert(key, value))
    }

    fn finish_load(&self) -> Result<()> {
        thermocline_device::join_all_memory();
        Ok(())
    }
}

impl RivalClient for &Map {
    fn read(&mut self, key: &Key, value: &mut Vec<u8>) -> Result<bool> {
        let key = u64::from_be_bytes(*key);
        let shard = self.shard(key).lock();
        let found = shard.get(&key);
        if let Some(found) = found {
            value.extend_from_slice(found);
        }
        Ok(found.is_some())
    }

    fn update(&mut self, key: &Key, value: &[u8]) -> Result<()> {
        let key = u64::from_be_bytes(*key);
        match self.shard(key).lock().get_mut(&key) {
            Some(found) if found.len() == value.len() => found.copy_from_slice(value),
            Some(found) => *found = value.into(),
            None => return Err(format!("row {key} is not there").into()),
        }
        Ok(())
    }

    fn insert(&mut self, key: &Key, value: &[u8]) -> Result<()> {
        let key = u64::from_be_bytes(*key);
        self.shard(key).lock().insert(key, value.into());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn rows_are_kept() {
        super::super::check::keeps_rows::<super::Map>(false);
    }
}
