//! Tablespaces: where the evicted rows of tables lie. A tablespace is a directory with one file of
//! blocks; rows in memory, indexes, the log and checkpoints are not in it.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use thermocline_device::{DeviceKind, DeviceProfile};

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
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TablespaceOptions {
    /// What its device is like; None: it is taken for what the server's is.
    pub device: Option<DeviceKind>,
    /// The device that is emulated over the one that is there.
    pub emulate: Option<DeviceKind>,
    /// Bytes that its blocks may take.
    pub capacity: Option<u64>,
    /// What its device was found to be like.
    pub measured: Option<Measured>,
    /// What its tables go by, as far as they do not say.
    pub policy: TablePolicy,
}

/// What a device was found to be like when its tablespace was made. It is kept as an option that nobody
/// sets: `ssd 64.3 39608 1742 987.7`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// Its sort.
    pub kind: DeviceKind,
    /// Microseconds of a random read of 4 KB, the median.
    pub read_us: f64,
    /// Such reads a second, 32 under way.
    pub reads_per_second: f64,
    /// MB a second, written in a row.
    pub write_mb_s: f64,
    /// Microseconds of a small write with its sync, the median.
    pub sync_us: f64,
}

/// The option that [`Measured`] is kept as.
pub const MEASURED: &str = "measured";

impl Measured {
    /// What a look at a device has given.
    #[must_use]
    pub fn of(profile: &DeviceProfile) -> Self {
        Measured {
            kind: profile.kind,
            read_us: profile.read_latency_us,
            reads_per_second: profile.read_iops,
            write_mb_s: profile.sequential_write_mb_s,
            sync_us: profile.sync_us,
        }
    }

    fn read(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let kind = DeviceKind::from_name(words.next()?)?;
        let mut figure = || words.next()?.parse().ok();
        Some(Measured {
            kind,
            read_us: figure()?,
            reads_per_second: figure()?,
            write_mb_s: figure()?,
            sync_us: figure()?,
        })
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, read, sync) = (self.kind.name(), self.read_us, self.sync_us);
        let (reads, written) = (self.reads_per_second, self.write_mb_s);
        write!(f, "{kind} {read:.1} {reads:.0} {written:.0} {sync:.1}")
    }
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
            measured: text(MEASURED).and_then(Measured::read),
            policy: TablePolicy::of_options(options),
        }
    }

    /// The kind of device that its policy is chosen by.
    #[must_use]
    pub fn kind(&self) -> Option<DeviceKind> {
        let measured = self.measured.map(|measured| measured.kind);
        let known = measured.filter(|kind| *kind != DeviceKind::Generic);
        self.device.or(self.emulate).or(known)
    }

    /// Whether its device is to be looked at: nothing says what it is.
    #[must_use]
    pub fn asks_the_device(&self) -> bool {
        self.device.is_none() && self.emulate.is_none()
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
        assert_eq!(TablespaceOptions::check(MEASURED, "ssd 1 1 1 1"), None);
    }

    #[test]
    fn what_was_measured_is_kept_and_what_is_said_goes_before_it() {
        let measured = Measured::of(&DeviceProfile::typical(DeviceKind::Xpoint));
        assert_eq!(Measured::read(&measured.to_string()), Some(measured));
        for wrong in ["", "tape 1 1 1 1", "ssd 1 1 1", "ssd 1 1 1 x"] {
            assert_eq!(Measured::read(wrong), None, "{wrong}");
        }
        let mut options = BTreeMap::from([(MEASURED.to_owned(), measured.to_string())]);
        let read = TablespaceOptions::of(&options);
        assert_eq!(read.kind(), Some(DeviceKind::Xpoint));
        assert!(read.asks_the_device());
        let unknown = DeviceProfile::typical(DeviceKind::Generic);
        options.insert(MEASURED.to_owned(), Measured::of(&unknown).to_string());
        assert_eq!(TablespaceOptions::of(&options).kind(), None);
        options.insert("device".to_owned(), "hdd".to_owned());
        let read = TablespaceOptions::of(&options);
        assert_eq!(read.kind(), Some(DeviceKind::Hdd));
        assert!(!read.asks_the_device());
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
