//! Tablespaces: where the evicted rows of tables lie. A tablespace is a directory with one file of
//! blocks; rows in memory, indexes, the log and checkpoints are not in it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thermocline_device::DeviceKind;

use crate::policy::table_policy::{TablePolicy, check_option as check_policy_option};

/// A tablespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TablespaceDef {
    /// Object id.
    pub oid: u32,
    /// Its number in the Block Table; not 0, which is the database's own directory. The engine
    /// chooses it.
    pub number: u16,
    /// Name.
    pub name: String,
    /// The directory that it was made in; empty: in the database's own.
    pub location: String,
    /// `WITH (…)` options.
    pub options: BTreeMap<String, String>,
}

/// What the options of a tablespace say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TablespaceOptions {
    /// What its device is like; None: it is taken for what the server's is.
    pub device: Option<DeviceKind>,
    /// The device that is emulated over the one that is there.
    pub emulate: Option<DeviceKind>,
    /// Bytes that its blocks may take.
    pub capacity: Option<u64>,
    /// What its tables go by, as far as they do not say.
    pub policy: TablePolicy,
}

/// The smallest capacity, in bytes: a few of the largest blocks.
const CAPACITY_MIN: u64 = 16 << 20;
const KINDS: &str = "auto, hdd, smr, ssd, xpoint, nvram or dram";
const EMULATED: &str = "hdd, smr, ssd, xpoint or nvram";
const CAPACITY: &str = "a size of at least 16MB, such as 10GB";

/// Options of PostgreSQL's planner that are taken and mean nothing.
const FOREIGN: [&str; 4] = [
    "seq_page_cost",
    "random_page_cost",
    "effective_io_concurrency",
    "maintenance_io_concurrency",
];

impl TablespaceOptions {
    /// What the options say; those that cannot be read are as if they were not said.
    #[must_use]
    pub fn of(options: &BTreeMap<String, String>) -> Self {
        let text = |name: &str| options.get(name).map(String::as_str);
        TablespaceOptions {
            device: text("device").and_then(DeviceKind::from_name),
            emulate: text("emulate").and_then(DeviceKind::from_name),
            capacity: text("capacity").and_then(size),
            policy: TablePolicy::of_options(options),
        }
    }

    /// The kind of device that its policy is chosen by.
    #[must_use]
    pub fn kind(&self) -> Option<DeviceKind> {
        self.device.or(self.emulate)
    }

    /// Whether an option of this name may have this text. None: there is no such option.
    ///
    /// # Errors
    /// What it may be.
    pub fn check(name: &str, text: &str) -> Option<Result<(), &'static str>> {
        let kind = DeviceKind::from_name(text).filter(|kind| *kind != DeviceKind::Generic);
        match name {
            "device" if text == "auto" => Some(Ok(())),
            "device" => Some(kind.map(|_| ()).ok_or(KINDS)),
            "emulate" => {
                let emulated = kind.filter(|kind| *kind != DeviceKind::Dram);
                Some(emulated.map(|_| ()).ok_or(EMULATED))
            }
            "capacity" => {
                let enough = size(text).filter(|bytes| *bytes >= CAPACITY_MIN);
                Some(enough.map(|_| ()).ok_or(CAPACITY))
            }
            _ if FOREIGN.contains(&name) => Some(Ok(())),
            _ => check_policy_option(name, text),
        }
    }
}

/// A size in bytes, with PostgreSQL's units.
fn size(text: &str) -> Option<u64> {
    let lower = text.trim().to_ascii_lowercase();
    let digits = lower.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match lower[digits.len()..].trim() {
        "" | "b" => 0,
        "kb" => 10,
        "mb" => 20,
        "gb" => 30,
        "tb" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_option_says_what_it_may_be() {
        for (name, text) in [
            ("device", "auto"),
            ("device", "hdd"),
            ("emulate", "xpoint"),
            ("capacity", "10GB"),
            ("capacity", "16777216"),
            ("merge", "top(5%)"),
            ("random_page_cost", "1.1"),
        ] {
            assert_eq!(TablespaceOptions::check(name, text), Some(Ok(())), "{name}");
        }
        for (name, text) in [
            ("device", "tape"),
            ("device", "generic"),
            ("emulate", "dram"),
            ("emulate", "auto"),
            ("capacity", "1MB"),
            ("capacity", "10 furlongs"),
            ("capacity", "99999999999TB"),
            ("merge", "nonsense"),
        ] {
            let checked = TablespaceOptions::check(name, text);
            assert!(checked.is_some_and(|c| c.is_err()), "{name} = {text}");
        }
        assert_eq!(TablespaceOptions::check("colour", "blue"), None);
    }

    #[test]
    fn options_are_read() {
        let options = [("emulate", "hdd"), ("capacity", "1GB"), ("device", "auto")];
        let options = options.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let read = TablespaceOptions::of(&options.into());
        assert_eq!(read.kind(), Some(DeviceKind::Hdd));
        assert_eq!(read.capacity, Some(1 << 30));
        assert_eq!(read.device, None);
    }
}
