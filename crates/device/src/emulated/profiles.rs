//! The table of emulated devices: what each takes by operation and size, how many requests
//! it works on at once, and what follows from that for a load.
//!
//! Figures are those of the devices in *Larger-than-Memory Data Management* (DaMoN 2016, §5),
//! from their data sheets as far as those say them. [`EmulatedProfile::mean_ns`] and
//! [`EmulatedProfile::per_second`] are formulas of their own, not runs of the model: tests
//! hold the model, the device and `probe` to them.

use crate::{DeviceKind, DeviceProfile};

use super::Access;

/// A second, in nanoseconds.
const SECOND_NS: f64 = 1e9;
/// A core has so many cache lines on their way at once, of memory that it copies.
const LINES_AT_ONCE: u64 = 6;
const LINE_BYTES: u64 = 64;
/// What DRAM takes for a cache line.
const DRAM_LINE_NS: u64 = 100;
/// The mean over two random places of the root of their distance, on a stroke of length 1.
const MEAN_ROOT_OF_DISTANCE: f64 = 8.0 / 15.0;
/// The mean root of an exponential distance of mean 1.
const MEAN_ROOT_OF_GAP: f64 = 0.886_227;

/// What an emulated device takes. Times are in nanoseconds, rates in bytes a second.
#[derive(Clone, Debug, PartialEq)]
pub struct EmulatedProfile {
    /// What it is.
    pub kind: DeviceKind,
    /// Requests are rounded up to whole units of so many bytes.
    pub unit_bytes: u64,
    /// A read, without its bytes; of a disk: the command alone.
    pub read_ns: u64,
    /// A write, without its bytes.
    pub write_ns: u64,
    /// A sync after a write.
    pub sync_ns: u64,
    /// Requests that are worked on at once; a disk has one head.
    pub channels: usize,
    /// The bytes of one request pass at this rate …
    pub request_rate: u64,
    /// … and those of all reads together at this one …
    pub read_rate: u64,
    /// … or of all writes.
    pub write_rate: u64,
    /// `read_ns` and `write_ns` are drawn from so many per cent below to as many above.
    pub spread_percent: u64,
    /// Of a disk: how it moves.
    pub mechanics: Option<Mechanics>,
}

/// How a disk moves.
#[derive(Clone, Debug, PartialEq)]
pub struct Mechanics {
    /// One turn of the platter.
    pub turn_ns: u64,
    /// The shortest seek.
    pub settle_ns: u64,
    /// What a seek over the whole stroke takes beyond that; a shorter one takes the root of
    /// its share.
    pub stroke_ns: u64,
    /// What the head takes longer to settle before it writes.
    pub write_settle_ns: u64,
    /// Of a shingled disk: its cache.
    pub shingles: Option<Shingles>,
}

/// The persistent cache of a shingled disk, and what it takes to clean it.
#[derive(Clone, Debug, PartialEq)]
pub struct Shingles {
    /// Writes that are no stream go here, until it is full.
    pub cache_bytes: u64,
    /// Tracks that overlap and are written anew together: so many bytes of the files …
    pub band_bytes: u64,
    /// … which take so long to be read and written.
    pub clean_ns: u64,
}

impl EmulatedProfile {
    /// The emulated device of this kind; there is none of kind `Generic`.
    #[must_use]
    pub fn of(kind: DeviceKind) -> Option<EmulatedProfile> {
        match kind {
            DeviceKind::Hdd => Some(hdd()),
            DeviceKind::Smr => Some(smr()),
            DeviceKind::Ssd => Some(ssd()),
            DeviceKind::Xpoint => Some(xpoint()),
            DeviceKind::Nvram => Some(EmulatedProfile::nvram(4)),
            DeviceKind::Dram => Some(memory(DeviceKind::Dram, 1)),
            DeviceKind::Generic => None,
        }
    }

    /// NVRAM whose cache lines take `times` as long as DRAM's: 2, 4 or 8 in the paper, 4
    /// where it says nothing.
    ///
    /// # Panics
    /// When `times` is 0.
    #[must_use]
    pub fn nvram(times: u64) -> EmulatedProfile {
        assert!(times > 0, "a cache line takes time");
        memory(DeviceKind::Nvram, times)
    }

    /// A shingled disk with a persistent cache of this size.
    #[must_use]
    pub fn smr_with_cache(cache_bytes: u64) -> EmulatedProfile {
        let mut profile = smr();
        if let Some(shingles) = shingles(&mut profile) {
            shingles.cache_bytes = cache_bytes;
        }
        profile
    }

    /// Mean time of one request among `depth` that are always under way, at random places.
    /// Of a shingled disk: while its cache has room.
    #[must_use]
    pub fn mean_ns(&self, operation: Access, bytes: u64, depth: usize) -> f64 {
        depth as f64 * SECOND_NS / self.per_second(operation, bytes, depth)
    }

    /// Requests a second with `depth` always under way, at random places.
    #[must_use]
    pub fn per_second(&self, operation: Access, bytes: u64, depth: usize) -> f64 {
        let bytes = self.whole_units(bytes) as f64;
        let at_once = depth.min(self.channels) as f64;
        match (operation, &self.mechanics) {
            (Access::Sync, _) => at_once * SECOND_NS / self.sync_ns as f64,
            (_, Some(mechanics)) => {
                let moves = mechanics.mean_move_ns(operation, depth);
                let transfer = bytes * SECOND_NS / self.rate(operation) as f64;
                SECOND_NS / (self.base_ns(operation) as f64 + moves + transfer)
            }
            (_, None) => {
                let one = self.base_ns(operation) as f64
                    + bytes * SECOND_NS / self.request_rate.min(self.rate(operation)) as f64;
                (at_once * SECOND_NS / one).min(self.rate(operation) as f64 / bytes)
            }
        }
    }

    /// The figures of which policies are made.
    #[must_use]
    pub fn summary(&self) -> DeviceProfile {
        let us = |operation| self.mean_ns(operation, 4096, 1) / 1e3;
        let turn_us = self
            .mechanics
            .as_ref()
            .map_or(0.0, |mechanics| mechanics.turn_ns as f64 / 1e3);
        DeviceProfile {
            kind: self.kind,
            read_latency_us: us(Access::Read),
            read_iops: self.per_second(Access::Read, 4096, 32),
            sequential_write_mb_s: self.write_rate.min(self.request_rate) as f64 / 1e6,
            sync_us: turn_us.max(us(Access::Write)) + us(Access::Sync),
            emulated: true,
        }
    }

    pub(super) fn whole_units(&self, bytes: u64) -> u64 {
        bytes.max(1).next_multiple_of(self.unit_bytes)
    }

    /// What a request takes without its bytes.
    pub(super) fn base_ns(&self, operation: Access) -> u64 {
        match operation {
            Access::Read => self.read_ns,
            Access::Write => self.write_ns,
            Access::Sync => self.sync_ns,
        }
    }

    /// Bytes a second, of all requests together.
    pub(super) fn rate(&self, operation: Access) -> u64 {
        match operation {
            Access::Read => self.read_rate,
            Access::Write | Access::Sync => self.write_rate,
        }
    }
}

impl Mechanics {
    /// Mean of seek and turn. Alone, a request comes at any distance. Where several wait the
    /// elevator goes one way: just before the head they wait twice as densely as on average,
    /// just behind it there are none; and it returns once a sweep.
    fn mean_move_ns(&self, operation: Access, depth: usize) -> f64 {
        let stroke = self.stroke_ns as f64;
        let alone = stroke * MEAN_ROOT_OF_DISTANCE;
        let dense = 2.0 * depth as f64;
        let swept = stroke * (MEAN_ROOT_OF_GAP / dense.sqrt() + 1.0 / dense);
        let seek = self.settle_ns as f64 + if depth > 1 { alone.min(swept) } else { alone };
        let settle = match operation {
            Access::Write => self.write_settle_ns,
            _ => 0,
        };
        seek + settle as f64 + self.turn_ns as f64 / 2.0
    }
}

fn shingles(profile: &mut EmulatedProfile) -> Option<&mut Shingles> {
    profile.mechanics.as_mut()?.shingles.as_mut()
}

/// Seagate Barracuda, 7200 rpm; its write cache is off, so what is written is on the platter.
fn hdd() -> EmulatedProfile {
    EmulatedProfile {
        kind: DeviceKind::Hdd,
        unit_bytes: 4096,
        read_ns: 100_000,
        write_ns: 100_000,
        sync_ns: 100_000,
        channels: 1,
        request_rate: 150_000_000,
        read_rate: 150_000_000,
        write_rate: 150_000_000,
        spread_percent: 0,
        mechanics: Some(Mechanics {
            turn_ns: 8_333_333,
            settle_ns: 1_000_000,
            stroke_ns: 14_000_000,
            write_settle_ns: 500_000,
            shingles: None,
        }),
    }
}

/// Seagate Archive v2, 5900 rpm. Its cache and the number of its bands are scaled down as
/// the databases here are (20 GB and bands of 20 MB on a disk of 5 TB). What one band takes
/// to be cleaned is not.
fn smr() -> EmulatedProfile {
    EmulatedProfile {
        kind: DeviceKind::Smr,
        mechanics: Some(Mechanics {
            turn_ns: 10_169_492,
            settle_ns: 1_000_000,
            stroke_ns: 16_000_000,
            write_settle_ns: 500_000,
            shingles: Some(Shingles {
                cache_bytes: 32 << 20,
                band_bytes: 2 << 20,
                clean_ns: 300_000_000,
            }),
        }),
        ..hdd()
    }
}

/// Intel DC S3700, SATA; a loss of power does not hurt its cache, so a sync is quick.
fn ssd() -> EmulatedProfile {
    EmulatedProfile {
        kind: DeviceKind::Ssd,
        unit_bytes: 4096,
        read_ns: 80_000,
        write_ns: 70_000,
        sync_ns: 100_000,
        channels: 8,
        request_rate: 500_000_000,
        read_rate: 500_000_000,
        write_rate: 460_000_000,
        spread_percent: 20,
        mechanics: None,
    }
}

/// 3D XPoint behind NVMe: 5.5 to 10 times as fast as that SSD (000 §5.1).
fn xpoint() -> EmulatedProfile {
    EmulatedProfile {
        kind: DeviceKind::Xpoint,
        unit_bytes: 4096,
        read_ns: 9_000,
        write_ns: 10_000,
        sync_ns: 10_000,
        channels: 6,
        request_rate: 2_400_000_000,
        read_rate: 2_400_000_000,
        write_rate: 2_200_000_000,
        spread_percent: 5,
        mechanics: None,
    }
}

/// Memory by the cache line: a first one takes its latency, those behind it come `LINES_AT_ONCE`
/// in that time.
fn memory(kind: DeviceKind, times: u64) -> EmulatedProfile {
    let line_ns = DRAM_LINE_NS * times;
    let rate = LINE_BYTES * LINES_AT_ONCE * 1_000_000_000 / line_ns;
    EmulatedProfile {
        kind,
        unit_bytes: LINE_BYTES,
        read_ns: line_ns - line_ns / LINES_AT_ONCE,
        write_ns: line_ns - line_ns / LINES_AT_ONCE,
        sync_ns: line_ns,
        channels: 8,
        request_rate: rate,
        read_rate: 4 * rate,
        write_rate: 4 * rate,
        spread_percent: 0,
        mechanics: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [DeviceKind; 6] = [
        DeviceKind::Hdd,
        DeviceKind::Smr,
        DeviceKind::Ssd,
        DeviceKind::Xpoint,
        DeviceKind::Nvram,
        DeviceKind::Dram,
    ];

    /// A tuple operation of the paper's microbenchmark: a write has its sync.
    fn tuple_ns(profile: &EmulatedProfile, operation: Access, bytes: u64) -> f64 {
        let sync = match operation {
            Access::Write => profile.mean_ns(Access::Sync, 0, 1),
            _ => 0.0,
        };
        profile.mean_ns(operation, bytes, 1) + sync
    }

    #[test]
    fn the_figures_have_the_papers_ratios() {
        let [hdd, smr, ssd, xpoint, nvram, dram] =
            KINDS.map(|kind| EmulatedProfile::of(kind).unwrap());
        for operation in [Access::Read, Access::Write] {
            let ratio = |profile: &EmulatedProfile| {
                tuple_ns(profile, operation, 64 << 10) / tuple_ns(profile, operation, 1 << 10)
            };
            assert!(ratio(&hdd) <= 1.3 && ratio(&smr) <= 1.3);
            assert!(ratio(&nvram) >= 4.0 && ratio(&dram) >= 4.0);
            for bytes in [1 << 10, 64 << 10] {
                let faster = tuple_ns(&ssd, operation, bytes) / tuple_ns(&xpoint, operation, bytes);
                assert!(
                    (5.5..=10.0).contains(&faster),
                    "{operation:?} {bytes}: {faster}"
                );
            }
        }
        let write = |bytes| tuple_ns(&ssd, Access::Write, bytes);
        let slower = write(64 << 10) / write(1 << 10);
        assert!((1.7..1.9).contains(&slower), "80% slower: {slower}");
        for times in [2, 4, 8] {
            let line = EmulatedProfile::nvram(times).mean_ns(Access::Read, 64, 1);
            let ratio = line / dram.mean_ns(Access::Read, 64, 1);
            assert!((ratio / times as f64 - 1.0).abs() < 0.01, "{ratio}");
        }
        assert_eq!(EmulatedProfile::of(DeviceKind::Generic), None);
    }

    #[test]
    fn depth_helps_until_the_channels_or_the_bytes_a_second_are_used_up() {
        for kind in KINDS {
            let profile = EmulatedProfile::of(kind).unwrap();
            let mut last = 0.0;
            for depth in [1, 2, 4, 8, 16, 32, 64] {
                let rate = profile.per_second(Access::Read, 4096, depth);
                assert!(rate >= last, "{kind:?} {depth}");
                assert!(rate * 4096.0 <= profile.read_rate as f64 * 1.0001);
                last = rate;
            }
        }
    }
}
