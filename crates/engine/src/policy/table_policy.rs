//! What a table says of its policy for itself (`WITH (identification = …, …)`); what it does
//! not say is the server's choice.
//!
//! The texts of a table's options are what is logged and checkpointed of it, as of any other option;
//! they were checked when they were set ([`check_option`]). So a build that does not know a choice
//! keeps it, and a table whose option it cannot read has the server's.

use std::collections::BTreeMap;

use super::{
    BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, Choice, ColdAccess, Compaction, Compression, Identification,
    Merge, MergeUnit, Policy, ReadUnit, Retrieval, Share, Timing,
};

/// Which set of choices a table begins with, in place of the server's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// [`Policy::generic`].
    Generic,
    /// [`Policy::of_papers`].
    Paper,
}

impl Choice for Preset {
    fn read(text: &str) -> Option<Self> {
        match text {
            "generic" => Some(Preset::Generic),
            "paper" => Some(Preset::Paper),
            _ => None,
        }
    }
}

impl Choice for BlockBytes {
    fn read(text: &str) -> Option<Self> {
        let lower = text.trim().to_ascii_lowercase();
        let digits = lower.trim_end_matches(|c: char| !c.is_ascii_digit());
        let unit = match lower[digits.len()..].trim() {
            "" | "b" => 1,
            "k" | "kb" => 1 << 10,
            "m" | "mb" => 1 << 20,
            _ => return None,
        };
        let bytes = digits.parse::<u32>().ok()?.checked_mul(unit)?;
        let fits = (BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&bytes);
        fits.then_some(BlockBytes(bytes))
    }
}

/// A block's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BlockBytes(u32);

/// What a table says; None where it is the preset's choice, or the server's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TablePolicy {
    preset: Option<Preset>,
    identification: Option<Identification>,
    alru_sample: Option<Share>,
    offline_sample: Option<Share>,
    timing: Option<Timing>,
    retrieval: Option<Retrieval>,
    read_unit: Option<ReadUnit>,
    access: Option<ColdAccess>,
    merge: Option<Merge>,
    merge_unit: Option<MergeUnit>,
    block_size: Option<BlockBytes>,
    compression: Option<Compression>,
    compaction: Option<Compaction>,
    fill_factor: Option<Share>,
}

/// The options of tables that are of their policy, each with what it may be.
pub const OPTIONS: [(&str, &str); 14] = [
    ("policy", "generic or paper"),
    ("identification", Identification::MAY_BE),
    ("alru_sample", "a share above 0 and at most 1, such as 0.01"),
    (
        "offline_sample",
        "a share above 0 and at most 1, such as 0.1",
    ),
    ("timing", "threshold or manual"),
    ("retrieval", "restart or sync"),
    ("read_unit", "sectors or block"),
    ("access", "block or byte"),
    ("merge", "warm, always, update_only or top(5%)"),
    ("merge_unit", "tuple or block"),
    ("block_size", "1kB to 1MB"),
    ("compression", "none or lz4"),
    ("compaction", "background or lazy"),
    ("fill_factor", "a share above 0 and at most 1, such as 0.5"),
];

/// Whether an option of this name is of the policy and may have this text; None: it is of
/// something else.
///
/// # Errors
/// What it may be.
pub fn check_option(name: &str, text: &str) -> Option<Result<(), &'static str>> {
    let (_, may_be) = OPTIONS.iter().find(|(known, _)| *known == name)?;
    let read = TablePolicy::default().set(name, text);
    Some(read.ok_or(*may_be))
}

/// The sets of choices that a table may begin with.
#[derive(Debug, Clone, Copy, Default)]
pub struct Policies {
    /// What the server is set to.
    pub server: Policy,
    /// What the papers found best for the device.
    pub paper: Policy,
    /// Whether the device is memory: evicted rows are used by the byte nowhere else, whoever says so.
    pub on_memory: bool,
}

impl TablePolicy {
    /// What a table's options say.
    #[must_use]
    pub fn of_options(options: &BTreeMap<String, String>) -> Self {
        let mut policy = TablePolicy::default();
        for (name, text) in options {
            // What it cannot be is as if it was not said.
            let _ = policy.set(name, text);
        }
        policy
    }

    fn set(&mut self, name: &str, text: &str) -> Option<()> {
        fn put<T: Choice>(place: &mut Option<T>, text: &str) -> Option<()> {
            *place = Some(T::read(text)?);
            Some(())
        }
        match name {
            "policy" => put(&mut self.preset, text),
            "identification" => put(&mut self.identification, text),
            "alru_sample" => put(&mut self.alru_sample, text),
            "offline_sample" => put(&mut self.offline_sample, text),
            "timing" => put(&mut self.timing, text),
            "retrieval" => put(&mut self.retrieval, text),
            "read_unit" => put(&mut self.read_unit, text),
            "access" => put(&mut self.access, text),
            "merge" => put(&mut self.merge, text),
            "merge_unit" => put(&mut self.merge_unit, text),
            "block_size" => put(&mut self.block_size, text),
            "compression" => put(&mut self.compression, text),
            "compaction" => put(&mut self.compaction, text),
            "fill_factor" => put(&mut self.fill_factor, text),
            _ => None,
        }
    }

    /// The policy in force.
    #[must_use]
    pub fn over(&self, policies: &Policies) -> Policy {
        let base = match self.preset {
            None => policies.server,
            Some(Preset::Generic) => Policy::generic(),
            Some(Preset::Paper) => policies.paper,
        };
        Policy {
            identification: self.identification.unwrap_or(base.identification),
            alru_sample: self.alru_sample.unwrap_or(base.alru_sample),
            offline_sample: self.offline_sample.unwrap_or(base.offline_sample),
            timing: self.timing.unwrap_or(base.timing),
            retrieval: self.retrieval.unwrap_or(base.retrieval),
            read_unit: self.read_unit.unwrap_or(base.read_unit),
            access: match policies.on_memory {
                true => self.access.unwrap_or(base.access),
                false => ColdAccess::Block,
            },
            merge: self.merge.unwrap_or(base.merge),
            merge_unit: self.merge_unit.unwrap_or(base.merge_unit),
            block_bytes: self.block_size.map_or(base.block_bytes, |size| size.0),
            compression: self.compression.unwrap_or(base.compression),
            compaction: self.compaction.unwrap_or(base.compaction),
            fill_factor: self.fill_factor.unwrap_or(base.fill_factor),
            compaction_percent: policies.server.compaction_percent,
        }
    }

    /// Whether it says that evicted rows are used where they lie.
    #[must_use]
    pub fn says_byte(&self) -> bool {
        self.access == Some(ColdAccess::Byte)
    }

    /// What it begins with: `server`, or the preset that the table names.
    #[must_use]
    pub fn base(&self) -> &'static str {
        match self.preset {
            None => "server",
            Some(Preset::Generic) => "generic",
            Some(Preset::Paper) => "paper",
        }
    }

    /// The names of the options that the table says itself, but for what it begins with.
    pub fn said(&self) -> impl Iterator<Item = &'static str> {
        let said = [
            ("identification", self.identification.is_some()),
            ("alru_sample", self.alru_sample.is_some()),
            ("offline_sample", self.offline_sample.is_some()),
            ("timing", self.timing.is_some()),
            ("retrieval", self.retrieval.is_some()),
            ("read_unit", self.read_unit.is_some()),
            ("access", self.access.is_some()),
            ("merge", self.merge.is_some()),
            ("merge_unit", self.merge_unit.is_some()),
            ("block_size", self.block_size.is_some()),
            ("compression", self.compression.is_some()),
            ("compaction", self.compaction.is_some()),
            ("fill_factor", self.fill_factor.is_some()),
        ];
        let said = said.into_iter().filter(|(_, is_said)| *is_said);
        said.map(|(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(all: &[(&str, &str)]) -> BTreeMap<String, String> {
        let all = all.iter().map(|(name, text)| (*name, *text));
        all.map(|(name, text)| (name.into(), text.into())).collect()
    }

    #[test]
    fn what_a_table_does_not_say_is_the_servers_choice() {
        let server = Policy {
            merge: Merge::UpdateOnly,
            ..Policy::default()
        };
        let policies = Policies {
            server,
            ..Policies::default()
        };
        let table = TablePolicy::of_options(&options(&[("identification", "lru")]));
        let expected = Policy {
            identification: Identification::Lru,
            ..server
        };
        assert_eq!(table.over(&policies), expected);
        assert_eq!(table.said().collect::<Vec<_>>(), ["identification"]);
        assert_eq!(table.base(), "server");
        let table = TablePolicy::of_options(&options(&[("policy", "generic"), ("merge", "warm")]));
        let expected = Policy {
            merge: Merge::Warm,
            ..Policy::generic()
        };
        assert_eq!(table.over(&policies), expected);
        assert_eq!(table.base(), "generic");
        assert_eq!(table.said().collect::<Vec<_>>(), ["merge"]);
    }

    #[test]
    fn rows_are_used_by_the_byte_on_memory_alone() {
        let table = TablePolicy::of_options(&options(&[("access", "byte")]));
        for (on_memory, access) in [(true, ColdAccess::Byte), (false, ColdAccess::Block)] {
            let policies = Policies {
                on_memory,
                ..Policies::default()
            };
            assert_eq!(table.over(&policies).access, access);
        }
    }

    #[test]
    fn each_option_says_what_it_may_be() {
        for (name, text) in [
            ("policy", "paper"),
            ("identification", "s3fifo"),
            ("alru_sample", "0.5"),
            ("offline_sample", "0.1"),
            ("timing", "manual"),
            ("retrieval", "sync"),
            ("read_unit", "block"),
            ("access", "byte"),
            ("merge", "top(20%)"),
            ("merge_unit", "block"),
            ("block_size", "64kB"),
            ("compression", "lz4"),
            ("compaction", "lazy"),
            ("fill_factor", "0.4"),
        ] {
            assert_eq!(check_option(name, text), Some(Ok(())), "{name}");
            assert!(check_option(name, "nonsense").is_some_and(|r| r.is_err()));
        }
        assert_eq!(check_option("fillfactor", "50"), None);
        for wrong in ["0", "2", "-1"] {
            for name in ["alru_sample", "offline_sample"] {
                assert!(check_option(name, wrong).is_some_and(|r| r.is_err()));
            }
        }
        for wrong in ["0", "512", "32MB", "1025kB", "1 furlong", "99999999999"] {
            assert!(check_option("block_size", wrong).is_some_and(|r| r.is_err()));
        }
        let size = |text| TablePolicy::of_options(&options(&[("block_size", text)])).block_size;
        assert_eq!(size("1 MB"), size("1048576"));
        // What cannot be read is not said.
        assert_eq!(size("x"), None);
    }
}
