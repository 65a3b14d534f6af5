//! What sort of device it is: from what was measured, and from what the kernel says where
//! that can be believed.

use super::kernel::KernelWord;
use crate::DeviceKind;

/// No disk that turns answers sooner, and little else answers later.
const DISK_US_MIN: f64 = 1_500.0;
/// Flash from here on; faster ones are 3D XPoint.
const FLASH_US_MIN: f64 = 25.0;
/// From here on no file system call of the page cache takes so long.
const BLOCK_US_MIN: f64 = 5.0;
/// Memory that takes longer for 4 KB is not DRAM.
const DRAM_US_MAX: f64 = 1.7;
/// A disk whose writes vary so many times as much as its reads is shingled.
const ERRATIC: f64 = 2.5;

/// Fewer writes say nothing of how they vary.
const WRITES_MIN: u64 = 30;

/// What was measured.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// Median of a random read of 4 KB.
    pub read_us: f64,
    /// A cache line takes far less than 4 KB.
    pub by_line: bool,
    /// Standard deviation of reads and of writes, of 4 KB at random places.
    pub read_deviation_us: f64,
    pub write_deviation_us: f64,
    /// How many writes these are.
    pub writes: u64,
    /// Megabytes that were written at random places before those writes.
    pub written_mb: u64,
    /// Reads may come from the page cache.
    pub cached: bool,
    /// None for an emulated device, which is not the kernel's.
    pub kernel: Option<KernelWord>,
}

/// The sort of a device, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// The sort that its policy is chosen by.
    pub kind: DeviceKind,
    /// A disk that may be shingled: none shows before its cache is full.
    pub maybe_smr: bool,
    /// Why, in a sentence or two.
    pub why: String,
}

impl Class {
    /// The class as people read it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        if self.maybe_smr {
            "hdd, or smr within its cache"
        } else {
            self.kind.name()
        }
    }
}

pub(super) fn classify(seen: &Seen) -> Class {
    let unknown = KernelWord::default();
    let kernel = seen.kernel.as_ref().unwrap_or(&unknown);
    let us = seen.read_us;
    let (kind, why) = match kernel.zoned.as_deref() {
        Some("host-aware" | "host-managed") => (
            DeviceKind::Smr,
            "the kernel says that the disk is zoned".to_owned(),
        ),
        _ if us.is_nan() || us <= 0.0 => (DeviceKind::Generic, "no read was measured".to_owned()),
        _ if kernel.in_memory => (
            DeviceKind::Dram,
            "the file system lies in memory".to_owned(),
        ),
        _ if kernel.byte_addressable => (
            DeviceKind::Nvram,
            "the kernel says that it can be mapped and used by the byte".to_owned(),
        ),
        _ if us >= DISK_US_MIN => return disk(seen, kernel),
        // Cached reads of a disk are as fast as memory's: no policy is to follow from that.
        _ if seen.cached => (
            DeviceKind::Generic,
            "the file system takes no direct I/O: the page cache was measured, and not what lies below"
                .to_owned(),
        ),
        _ if seen.by_line && us < DRAM_US_MAX => (
            DeviceKind::Dram,
            format!("4 KB take {us:.2} us, a cache line far less"),
        ),
        _ if seen.by_line => (
            DeviceKind::Nvram,
            format!("4 KB take {us:.2} us, a cache line far less: memory, slower than DRAM"),
        ),
        _ if us < BLOCK_US_MIN => (
            DeviceKind::Dram,
            format!("4 KB take {us:.2} us: the page cache, or a device as fast"),
        ),
        _ if us < FLASH_US_MIN => (
            DeviceKind::Xpoint,
            format!("a random read of 4 KB takes {us:.1} us; flash takes longer"),
        ),
        _ => (DeviceKind::Ssd, flash(us, kernel)),
    };
    Class {
        kind,
        maybe_smr: false,
        why,
    }
}

fn flash(us: f64, kernel: &KernelWord) -> String {
    let measured = format!("a random read of 4 KB takes {us:.0} us; no disk that turns does that");
    if kernel.rotational == Some(true) {
        return format!(
            "{measured}, though the kernel says that it turns (in a virtual machine it often \
             does not know)"
        );
    }
    measured
}

fn disk(seen: &Seen, kernel: &KernelWord) -> Class {
    let ms = seen.read_us / 1e3;
    if kernel.rotational == Some(false) {
        return Class {
            kind: DeviceKind::Ssd,
            maybe_smr: false,
            why: format!(
                "a random read of 4 KB takes {ms:.1} ms, but the kernel says that nothing turns: \
                 flash behind a network, or a busy one"
            ),
        };
    }
    let ratio = seen.write_deviation_us / seen.read_deviation_us.max(1.0);
    let erratic = ratio >= ERRATIC && seen.writes >= WRITES_MIN;
    let why = if seen.writes < WRITES_MIN {
        format!(
            "a random read of 4 KB takes {ms:.1} ms: a head moves; too few writes were measured to \
             say more (probe for longer)"
        )
    } else if erratic {
        format!(
            "a random read of 4 KB takes {ms:.1} ms: a head moves; random writes vary {ratio:.1} \
             times as much as reads"
        )
    } else {
        format!(
            "a random read of 4 KB takes {ms:.1} ms: a head moves; writes vary no more than reads \
             ({ratio:.1} times) after {} MB at random places, which a shingled disk's cache may \
             hold",
            seen.written_mb
        )
    };
    Class {
        kind: if erratic {
            DeviceKind::Smr
        } else {
            DeviceKind::Hdd
        },
        maybe_smr: !erratic,
        why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceProfile;

    fn of(read_us: f64, kernel: KernelWord) -> Class {
        classify(&Seen {
            read_us,
            kernel: Some(kernel),
            ..Seen::default()
        })
    }

    #[test]
    fn typical_block_devices_are_recognised_by_their_latency() {
        for kind in [
            DeviceKind::Hdd,
            DeviceKind::Ssd,
            DeviceKind::Xpoint,
            DeviceKind::Dram,
        ] {
            let class = of(
                DeviceProfile::typical(kind).read_latency_us,
                KernelWord::default(),
            );
            assert_eq!(class.kind, kind, "{class:?}");
            assert_eq!(class.maybe_smr, kind == DeviceKind::Hdd);
        }
        assert_eq!(of(0.0, KernelWord::default()).kind, DeviceKind::Generic);
        assert_eq!(
            of(f64::NAN, KernelWord::default()).kind,
            DeviceKind::Generic
        );
    }

    #[test]
    fn the_kernel_is_believed_where_measurements_do_not_speak_against_it() {
        let turns = KernelWord {
            rotational: Some(true),
            ..KernelWord::default()
        };
        let class = of(100.0, turns.clone());
        assert_eq!(class.kind, DeviceKind::Ssd);
        assert!(class.why.contains("virtual machine"), "{class:?}");
        assert_eq!(of(9_000.0, turns).name(), "hdd, or smr within its cache");
        let still = KernelWord {
            rotational: Some(false),
            ..KernelWord::default()
        };
        assert_eq!(of(9_000.0, still).kind, DeviceKind::Ssd);
        let zoned = KernelWord {
            zoned: Some("host-managed".to_owned()),
            ..KernelWord::default()
        };
        assert_eq!(of(9_000.0, zoned).name(), "smr");
        let mapped = KernelWord {
            byte_addressable: true,
            ..KernelWord::default()
        };
        assert_eq!(of(1.0, mapped).kind, DeviceKind::Nvram);
        let in_memory = KernelWord {
            in_memory: true,
            ..KernelWord::default()
        };
        assert_eq!(of(7.0, in_memory).kind, DeviceKind::Dram);
    }

    #[test]
    fn what_the_page_cache_gives_says_nothing_of_a_device() {
        let cached = |kernel| {
            classify(&Seen {
                read_us: 1.5,
                cached: true,
                kernel: Some(kernel),
                ..Seen::default()
            })
        };
        assert_eq!(cached(KernelWord::default()).kind, DeviceKind::Generic);
        let mapped = KernelWord {
            byte_addressable: true,
            ..KernelWord::default()
        };
        assert_eq!(cached(mapped).kind, DeviceKind::Nvram);
    }

    #[test]
    fn a_disk_with_erratic_writes_is_shingled() {
        let mut seen = Seen {
            read_us: 12_000.0,
            read_deviation_us: 4_000.0,
            write_deviation_us: 5_000.0,
            writes: 100,
            ..Seen::default()
        };
        assert!(classify(&seen).maybe_smr);
        seen.write_deviation_us = 20_000.0;
        let class = classify(&seen);
        assert_eq!((class.kind, class.maybe_smr), (DeviceKind::Smr, false));
        seen.writes = 5;
        assert!(classify(&seen).maybe_smr, "five writes say nothing");
    }
}
