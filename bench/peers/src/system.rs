//! The systems that are measured, and which of them this program was built with.

use serde::{Deserialize, Serialize};

/// A system, in the configuration that its name says.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum System {
    /// Ours through the engine's own face, many tasks a thread; its primary key a B+tree,
    /// as SQL makes it.
    Thermocline,
    /// Ours with a hash index for its primary key, as `USING hash` makes it.
    ThermoclineHash,
    /// Ours, the requests of a thread together, by `get_many`; reads only.
    ThermoclineGetMany,
    /// RocksDB with a block cache and direct reads.
    Rocksdb,
    /// RocksDB with a row cache and direct reads.
    RocksdbRowCache,
    /// RocksDB with a block cache, through the page cache.
    RocksdbBuffered,
    /// RocksDB with a row cache, through the page cache.
    RocksdbRowCacheBuffered,
    /// LMDB.
    Lmdb,
    /// SQLite.
    Sqlite,
    /// redb.
    Redb,
    /// fjall.
    Fjall,
    /// bf-tree.
    BfTree,
    /// A hash map in memory: what memory itself allows. No rival, and no limit.
    Hashmap,
}

impl System {
    /// All of them, in the order of their turns.
    pub const ALL: [System; 13] = [
        System::Thermocline,
        System::ThermoclineHash,
        System::ThermoclineGetMany,
        System::Rocksdb,
        System::RocksdbRowCache,
        System::RocksdbBuffered,
        System::RocksdbRowCacheBuffered,
        System::Lmdb,
        System::Sqlite,
        System::Redb,
        System::Fjall,
        System::BfTree,
        System::Hashmap,
    ];

    /// The name in results and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            System::Thermocline => "thermocline",
            System::ThermoclineHash => "thermocline-hash",
            System::ThermoclineGetMany => "thermocline-get-many",
            System::Rocksdb => "rocksdb",
            System::RocksdbRowCache => "rocksdb-row-cache",
            System::RocksdbBuffered => "rocksdb-buffered",
            System::RocksdbRowCacheBuffered => "rocksdb-row-cache-buffered",
            System::Lmdb => "lmdb",
            System::Sqlite => "sqlite",
            System::Redb => "redb",
            System::Fjall => "fjall",
            System::BfTree => "bf-tree",
            System::Hashmap => "hashmap",
        }
    }

    /// The feature that brings it; None: it is always there.
    pub fn feature(self) -> Option<&'static str> {
        match self {
            ours if ours.is_ours() => None,
            System::Hashmap => None,
            System::Rocksdb
            | System::RocksdbRowCache
            | System::RocksdbBuffered
            | System::RocksdbRowCacheBuffered => Some("rocksdb"),
            other => Some(other.name()),
        }
    }

    /// Whether this program has it.
    pub fn is_built(self) -> bool {
        match self.feature() {
            None => true,
            Some("rocksdb") => cfg!(feature = "rocksdb"),
            Some("lmdb") => cfg!(feature = "lmdb"),
            Some("sqlite") => cfg!(feature = "sqlite"),
            Some("redb") => cfg!(feature = "redb"),
            Some("fjall") => cfg!(feature = "fjall"),
            Some("bf-tree") => cfg!(feature = "bf-tree"),
            Some(_) => false,
        }
    }

    /// Its cgroup's limit by the memory limit. One that keeps within the limit by
    /// itself gets a tenth for what it can't foresee. One whose cache is the page
    /// cache would fill that, too: the kernel keeps it within the limit.
    pub fn cgroup_share(self) -> f64 {
        match self {
            System::Lmdb | System::RocksdbBuffered | System::RocksdbRowCacheBuffered => 1.0,
            _ => 1.1,
        }
    }

    /// Whether a user could pick it instead of ours.
    pub fn is_rival(self) -> bool {
        self != System::Hashmap && !self.is_ours()
    }

    /// Whether it is ours.
    pub fn is_ours(self) -> bool {
        matches!(
            self,
            System::Thermocline | System::ThermoclineHash | System::ThermoclineGetMany
        )
    }

    /// The directory of its data: variants that differ in memory only share it.
    pub fn data_name(self) -> &'static str {
        match self {
            System::ThermoclineGetMany => System::Thermocline.name(),
            other => other.feature().unwrap_or(other.name()),
        }
    }
}

/// What to say of the systems that this program was built without; None when
/// all are there.
pub fn left_out() -> Option<String> {
    let mut features: Vec<_> = System::ALL
        .into_iter()
        .filter(|system| !system.is_built())
        .filter_map(System::feature)
        .collect();
    features.dedup();
    if features.is_empty() {
        return None;
    }
    Some(format!(
        "left out, because this program was built without them: {}\n\
         all of them: cargo run --release -p thermocline-peers --features all -- run --matrix quick\n\
         (rocksdb needs libclang and g++: apt-get install libclang-dev g++; nothing is installed by itself)",
        features.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_system_has_the_name_that_results_carry() {
        for system in System::ALL {
            let json = serde_json::to_value(system).expect("it can be written");
            assert_eq!(json, system.name());
            let value = clap::ValueEnum::to_possible_value(&system).expect("it is shown");
            assert_eq!(value.get_name(), system.name());
        }
    }

    #[test]
    fn what_is_left_out_is_said_with_the_way_to_get_it() {
        let missing = System::ALL.iter().any(|system| !system.is_built());
        assert_eq!(left_out().is_some(), missing);
        if let Some(text) = left_out() {
            assert!(text.contains("--features all") && text.contains("libclang-dev"));
        }
    }
}
