//! What a device is like: the figures from which policies are chosen (anti-caching on
//! non-volatile memories, Table 1).

/// The kinds of devices that policies know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceKind {
    /// A hard disk.
    Hdd,
    /// A shingled hard disk: as a hard disk, with slow and erratic writes.
    Smr,
    /// Flash behind a block interface.
    Ssd,
    /// 3D XPoint behind a block interface.
    Xpoint,
    /// Byte-addressable non-volatile memory.
    Nvram,
    /// Memory.
    Dram,
    /// Not known.
    Generic,
}

impl DeviceKind {
    /// Whether it is memory: a processor can address its bytes.
    #[must_use]
    pub fn is_memory(self) -> bool {
        matches!(self, DeviceKind::Nvram | DeviceKind::Dram)
    }

    /// All kinds, with the names that people write.
    pub const NAMES: [(&'static str, DeviceKind); 7] = [
        ("hdd", DeviceKind::Hdd),
        ("smr", DeviceKind::Smr),
        ("ssd", DeviceKind::Ssd),
        ("xpoint", DeviceKind::Xpoint),
        ("nvram", DeviceKind::Nvram),
        ("dram", DeviceKind::Dram),
        ("generic", DeviceKind::Generic),
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        let found = Self::NAMES.into_iter().find(|(_, kind)| *kind == self);
        found.map_or("generic", |(name, _)| name)
    }

    /// The kind with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<DeviceKind> {
        let found = Self::NAMES.into_iter().find(|(known, _)| *known == name);
        found.map(|(_, kind)| kind)
    }
}

/// What a device is like.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceProfile {
    /// Its kind, as told or as guessed from the latency.
    pub kind: DeviceKind,
    /// Median latency of one 4 KB random read at depth 1, in microseconds.
    pub read_latency_us: f64,
    /// 4 KB random reads a second at depth 32.
    pub read_iops: f64,
    /// Large sequential writes in MB (10^6 bytes) a second, including their sync.
    pub sequential_write_mb_s: f64,
    /// Median latency of a small write with its sync, in microseconds.
    pub sync_us: f64,
    /// Whether the figures are emulated over another device.
    pub emulated: bool,
}

impl DeviceProfile {
    /// What a device of this kind is typically like; a stand-in until `probe` has measured.
    #[must_use]
    pub fn typical(kind: DeviceKind) -> DeviceProfile {
        let (read_latency_us, read_iops, sequential_write_mb_s, sync_us) = match kind {
            DeviceKind::Hdd => (8_300.0, 200.0, 150.0, 8_300.0),
            DeviceKind::Smr => (8_300.0, 200.0, 40.0, 16_600.0),
            DeviceKind::Ssd | DeviceKind::Generic => (90.0, 100_000.0, 500.0, 1_000.0),
            DeviceKind::Xpoint => (10.0, 500_000.0, 2_400.0, 20.0),
            DeviceKind::Nvram => (0.4, 10_000_000.0, 8_000.0, 1.0),
            DeviceKind::Dram => (0.1, 20_000_000.0, 10_000.0, 0.1),
        };
        DeviceProfile {
            kind,
            read_latency_us,
            read_iops,
            sequential_write_mb_s,
            sync_us,
            emulated: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_name_of_its_own() {
        for (name, kind) in DeviceKind::NAMES {
            assert_eq!(kind.name(), name);
            assert_eq!(DeviceKind::from_name(name), Some(kind));
        }
        assert_eq!(DeviceKind::from_name("tape"), None);
    }
}
