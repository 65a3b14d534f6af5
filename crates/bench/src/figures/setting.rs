//! What is measured: all that a result depends on, but for the machine and the commit. As JSON
//! it is what a run is told to do, and what its result is found by.

use std::fmt;

use serde::{Deserialize, Serialize};
use thermocline_device::{DeviceKind, EmulatedProfile};
use thermocline_engine::{
    ColdAccess, Identification, Merge, MergeUnit, Policy, ReadUnit, Retrieval,
};

use crate::Result;
use crate::ycsb_core::Mix;

/// A device that is emulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Medium {
    Hdd,
    Smr,
    Ssd,
    Xpoint,
    Nvram,
    Dram,
}

impl Medium {
    /// The five that data can be cold on, in the papers' order.
    pub const COLD: [Medium; 5] = [
        Medium::Hdd,
        Medium::Smr,
        Medium::Ssd,
        Medium::Xpoint,
        Medium::Nvram,
    ];

    /// As the papers call it.
    pub fn name(self) -> &'static str {
        match self {
            Medium::Hdd => "HDD",
            Medium::Smr => "SMR",
            Medium::Ssd => "SSD",
            Medium::Xpoint => "3DX",
            Medium::Nvram => "NVRAM",
            Medium::Dram => "DRAM",
        }
    }

    pub fn kind(self) -> DeviceKind {
        match self {
            Medium::Hdd => DeviceKind::Hdd,
            Medium::Smr => DeviceKind::Smr,
            Medium::Ssd => DeviceKind::Ssd,
            Medium::Xpoint => DeviceKind::Xpoint,
            Medium::Nvram => DeviceKind::Nvram,
            Medium::Dram => DeviceKind::Dram,
        }
    }

    pub fn profile(self) -> Result<EmulatedProfile> {
        let none = || format!("{} is not emulated", self.name());
        Ok(EmulatedProfile::of(self.kind()).ok_or_else(none)?)
    }

    /// Whether it is a disk that turns.
    pub fn is_disk(self) -> bool {
        matches!(self, Medium::Hdd | Medium::Smr)
    }
}

/// A policy, by the names that its choices have in settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Choices {
    pub identification: String,
    pub retrieval: String,
    pub read_unit: String,
    /// Left out where it is by block, so that results from before are found.
    #[serde(default = "by_block", skip_serializing_if = "is_by_block")]
    pub access: String,
    pub merge: String,
    pub merge_unit: String,
    pub block_bytes: u32,
}

fn by_block() -> String {
    ColdAccess::Block.to_string()
}

fn is_by_block(access: &str) -> bool {
    access == by_block()
}

impl Choices {
    pub fn of(policy: &Policy) -> Self {
        Choices {
            identification: policy.identification.to_string(),
            retrieval: policy.retrieval.to_string(),
            read_unit: policy.read_unit.to_string(),
            access: policy.access.to_string(),
            merge: policy.merge.to_string(),
            merge_unit: policy.merge_unit.to_string(),
            block_bytes: policy.block_bytes,
        }
    }

    /// The papers' default.
    pub fn generic() -> Self {
        Self::of(&Policy::generic())
    }

    /// What the paper found best for a device (000, Table 1).
    pub fn of_papers(medium: Medium) -> Self {
        let profile = thermocline_device::DeviceProfile::typical(medium.kind());
        Self::of(&Policy::of_papers(&profile))
    }

    /// Ours as it comes.
    pub fn ours(medium: Medium) -> Self {
        let profile = thermocline_device::DeviceProfile::typical(medium.kind());
        Self::of(&Policy::for_device(&profile))
    }

    pub fn identification(self, name: &str) -> Self {
        Choices {
            identification: name.into(),
            ..self
        }
    }

    pub fn retrieval(self, name: &str) -> Self {
        Choices {
            retrieval: name.into(),
            ..self
        }
    }

    pub fn access(self, name: &str) -> Self {
        Choices {
            access: name.into(),
            ..self
        }
    }

    pub fn merge(self, name: &str) -> Self {
        Choices {
            merge: name.into(),
            ..self
        }
    }

    pub fn merge_unit(self, name: &str) -> Self {
        Choices {
            merge_unit: name.into(),
            ..self
        }
    }

    pub fn block_bytes(self, block_bytes: u32) -> Self {
        Choices {
            block_bytes,
            ..self
        }
    }

    pub fn policy(&self) -> Result<Policy> {
        Ok(Policy {
            identification: named(&Identification::NAMES, &self.identification)?,
            retrieval: named(&Retrieval::NAMES, &self.retrieval)?,
            read_unit: named(&ReadUnit::NAMES, &self.read_unit)?,
            access: named(&ColdAccess::NAMES, &self.access)?,
            merge: Merge::named(&self.merge).ok_or_else(|| unknown(&self.merge))?,
            merge_unit: named(&MergeUnit::NAMES, &self.merge_unit)?,
            block_bytes: self.block_bytes,
            ..Policy::default()
        })
    }
}

fn unknown(name: &str) -> String {
    format!("there is no choice {name}")
}

fn named<T: Copy>(names: &[(&str, T)], name: &str) -> Result<T> {
    let found = names.iter().find(|(known, _)| *known == name);
    Ok(found
        .map(|(_, choice)| *choice)
        .ok_or_else(|| unknown(name))?)
}

impl fmt::Display for Choices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let retrieval = match self.retrieval.as_str() {
            "restart" => "AR",
            _ => "SR",
        };
        let kb = self.block_bytes >> 10;
        write!(f, "{retrieval}, {kb} KB, merge {}", self.merge)?;
        match is_by_block(&self.access) {
            true => Ok(()),
            false => write!(f, ", by {}", self.access),
        }
    }
}

/// The work that a database does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Work {
    Ycsb {
        mix: Mix,
        rows: u64,
        row_bytes: usize,
        zipf: f64,
    },
    Tpcc {
        warehouses: i32,
        customers: i32,
        items: i32,
    },
    Tatp {
        subscribers: i64,
    },
    Voter {
        votes: u64,
    },
}

/// A database whose cold rows lie on an emulated device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct OnDatabase {
    pub medium: Medium,
    pub work: Work,
    pub choices: Choices,
    pub memory_bytes: u64,
    /// No row leaves memory: the papers' baseline. Nothing is loaded beforehand.
    pub fits: bool,
    pub callers: usize,
    /// Of the warm-up: how long the device takes no time.
    pub unpaced_s: u64,
    pub warmup_s: u64,
    pub seconds: u64,
    /// Whether the data is checked afterwards.
    pub check: bool,
}

/// How rows are chained by their last use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Links {
    None,
    Singly,
    Doubly,
}

/// What becomes of a block that is read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum MergesBack {
    Block,
    Tuple,
}

/// What is updated when tuples leave memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Updates {
    /// Each hash index, as in the paper.
    Hash,
    /// Each B+tree, as in the paper.
    BTree,
    /// The row's word, whatever indexes there are.
    Word,
}

/// What is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum What {
    /// The papers' microbenchmark of a device.
    Tuples {
        medium: Medium,
        smr_cache_bytes: u64,
        milliseconds: u64,
    },
    Database(Box<OnDatabase>),
    /// Updates of a chain of rows.
    Chain {
        links: Links,
        rows: u32,
        updates: u32,
        zipf: f64,
    },
    /// One block there and back, by phase.
    Phases {
        medium: Medium,
        merges: MergesBack,
        block_bytes: u32,
        repetitions: u32,
    },
    /// What the eviction of so many tuples updates.
    Indexes {
        updates: Updates,
        indexes: u32,
        tuples: u32,
    },
}

impl What {
    /// The device that must be emulated for it.
    pub fn medium(&self) -> Option<Medium> {
        match self {
            What::Tuples { medium, .. } | What::Phases { medium, .. } => Some(*medium),
            What::Database(on) => Some(on.medium),
            What::Chain { .. } | What::Indexes { .. } => None,
        }
    }

    /// What one load serves, so that those that share it are measured one after the other.
    pub fn load(&self) -> String {
        match self {
            What::Database(on) if !on.fits => on.load(),
            _ => String::new(),
        }
    }

    /// About how many bytes of disk it takes at most, load included.
    pub fn disk_bytes(&self) -> u64 {
        match self {
            What::Tuples { .. } | What::Phases { .. } => 300 << 20,
            What::Database(on) => {
                let data = on.data_bytes();
                // Two copies, each with its log and holes; small blocks are padded to sectors.
                let padding = if on.choices.block_bytes < 4096 { 4 } else { 2 };
                data.saturating_mul(2 * padding + 1)
            }
            What::Chain { .. } | What::Indexes { .. } => 0,
        }
    }
}

impl OnDatabase {
    /// About how many bytes are loaded.
    fn data_bytes(&self) -> u64 {
        match &self.work {
            Work::Ycsb {
                rows, row_bytes, ..
            } => rows.saturating_mul(*row_bytes as u64 + 8),
            // A warehouse has 75 MB by the specification, and grows while it is used.
            Work::Tpcc { warehouses, .. } => (*warehouses as u64) * (300 << 20),
            Work::Tatp { subscribers } => *subscribers as u64 * 900,
            Work::Voter { votes } => (votes + 1_000_000) * 100,
        }
    }

    /// The name of what is loaded for it.
    pub fn load(&self) -> String {
        let work = match &self.work {
            Work::Ycsb {
                rows, row_bytes, ..
            } => format!("ycsb-{rows}-{row_bytes}"),
            Work::Tpcc {
                warehouses,
                customers,
                items,
            } => format!("tpcc-{warehouses}-{customers}-{items}"),
            Work::Tatp { subscribers } => format!("tatp-{subscribers}"),
            Work::Voter { votes } => format!("voter-{votes}"),
        };
        let kb = self.choices.block_bytes >> 10;
        format!("{work}-{}m-{kb}k", self.memory_bytes >> 20)
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Tuples { medium, .. } => write!(f, "hash table on {}", medium.name()),
            What::Database(on) => {
                match &on.work {
                    Work::Ycsb {
                        mix,
                        row_bytes,
                        zipf,
                        ..
                    } => write!(f, "YCSB {mix:?}, Zipf {zipf}, rows of {row_bytes} B")?,
                    Work::Tpcc { warehouses, .. } => write!(f, "TPC-C, {warehouses} warehouses")?,
                    Work::Tatp { .. } => write!(f, "TATP")?,
                    Work::Voter { .. } => write!(f, "Voter")?,
                }
                match on.fits {
                    true => write!(f, ", all in memory"),
                    false => write!(f, ", {}, {}", on.medium.name(), on.choices),
                }
            }
            What::Chain { links, zipf, .. } => write!(f, "chain, {links:?}, Zipf {zipf}"),
            What::Phases {
                merges,
                block_bytes,
                ..
            } => write!(f, "phases, {merges:?} merge, {} KB", block_bytes >> 10),
            What::Indexes {
                updates, indexes, ..
            } => write!(f, "update of {indexes} indexes, {updates:?}"),
        }
    }
}

/// One of several trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Run {
    pub what: What,
    pub trial: u32,
}

impl Run {
    /// The name of its result's file: FNV-1a over its JSON.
    pub fn key(&self) -> Result<String> {
        let text = serde_json::to_string(self)?;
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Ok(format!("{hash:016x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_the_policy_they_were_made_of() {
        for medium in Medium::COLD {
            for choices in [
                Choices::generic(),
                Choices::ours(medium),
                Choices::of_papers(medium),
            ] {
                let policy = choices.policy().expect("a policy");
                assert_eq!(Choices::of(&policy), choices);
            }
        }
        let text = |choices: &Choices| serde_json::to_string(choices).expect("JSON");
        let (block, byte) = (Choices::generic(), Choices::generic().access("byte"));
        assert!(!text(&block).contains("access"));
        for choices in [block, byte] {
            let read = serde_json::from_str::<Choices>(&text(&choices));
            assert_eq!(read.expect("choices"), choices);
        }
        let wrong = Choices::generic().merge("sometimes");
        assert!(wrong.policy().is_err());
    }

    #[test]
    fn a_changed_setting_is_another_run() {
        let run = |milliseconds| Run {
            what: What::Tuples {
                medium: Medium::Ssd,
                smr_cache_bytes: 0,
                milliseconds,
            },
            trial: 0,
        };
        let key = |milliseconds| run(milliseconds).key().expect("JSON");
        assert_eq!(key(5), key(5));
        assert_ne!(key(5), key(6));
        let text = serde_json::to_string(&run(5)).expect("JSON");
        assert_eq!(serde_json::from_str::<Run>(&text).expect("a run"), run(5));
    }
}
