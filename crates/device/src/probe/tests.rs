use super::*;
use crate::{
    DeviceKind, EmulatedDevice, EmulatedProfile, FileDevice, IoEngine, MemoryDevice, Operation,
    SimulatedClock, SimulatedDevice,
};

fn silent(device: &dyn Device, how: &Probing) -> io::Result<Report> {
    probe(device, how, &mut |_, _| {})
}

/// A probe of an emulated device in simulated time.
fn of(profile: EmulatedProfile, seconds: f64) -> Report {
    let clock = SimulatedClock::new();
    let below = Arc::new(MemoryDevice::new());
    // A disk's requests are spread over many tracks.
    let file_bytes_max = if profile.mechanics.is_some() {
        64 << 20
    } else {
        16 << 20
    };
    let device = EmulatedDevice::simulated(below, profile, clock.clone()).unwrap();
    let how = Probing {
        clock: Arc::new(clock),
        threads: false,
        file_bytes_max,
        ..Probing::for_about(Duration::from_secs_f64(seconds))
    };
    let report = silent(&device, &how).unwrap();
    assert_eq!(device.list().unwrap(), Vec::<String>::new());
    report
}

fn profile(kind: DeviceKind) -> EmulatedProfile {
    EmulatedProfile::of(kind).unwrap()
}

/// Latency and rate of random reads of 4 KB are the profile's within 10%, and so is the
/// latency of other sizes and of writes.
fn holds_to_the_profile(report: &Report, profile: &EmulatedProfile) {
    let near = |what: &str, measured: f64, wanted: f64| {
        let kind = profile.kind;
        let off = (measured / wanted - 1.0).abs();
        assert!(off < 0.1, "{kind:?} {what}: {measured}, not {wanted}");
    };
    for depth in [1, 8, 32] {
        let cell = report
            .cell(Access::Read, Pattern::Random, 4096, depth)
            .unwrap();
        let wanted = profile.per_second(Access::Read, 4096, depth);
        near(&format!("rate at depth {depth}"), cell.per_second, wanted);
        let wanted = profile.mean_ns(Access::Read, 4096, depth) / 1e3;
        near(
            &format!("latency at depth {depth}"),
            cell.times.mean_us,
            wanted,
        );
    }
    for bytes in SIZES {
        let cell = report
            .cell(Access::Read, Pattern::Random, bytes, 1)
            .unwrap();
        let wanted = profile.mean_ns(Access::Read, bytes as u64, 1) / 1e3;
        near(&format!("a read of {bytes}"), cell.times.mean_us, wanted);
        if profile.kind != DeviceKind::Smr {
            let cell = report
                .cell(Access::Write, Pattern::Random, bytes, 1)
                .unwrap();
            let wanted = profile.mean_ns(Access::Write, bytes as u64, 1) / 1e3;
            near(&format!("a write of {bytes}"), cell.times.mean_us, wanted);
        }
    }
    let cell = report
        .cell(Access::Read, Pattern::Sequential, 1 << 20, 1)
        .unwrap();
    let rate = profile.read_rate.min(profile.request_rate) as f64 / 1e6;
    near("MB a second", cell.mb_s(), rate);
}

#[test]
fn flash_and_xpoint_are_known_and_hold_to_their_profiles() {
    for kind in [DeviceKind::Ssd, DeviceKind::Xpoint] {
        let report = of(profile(kind), 20.0);
        assert_eq!(report.class.kind, kind, "{:?}", report.class);
        assert!(report.profile.emulated && report.kernel.is_none());
        holds_to_the_profile(&report, &profile(kind));
    }
}

#[test]
fn memory_is_known_by_its_cache_lines_and_holds_to_its_profile() {
    for profile in [
        profile(DeviceKind::Dram),
        EmulatedProfile::nvram(2),
        EmulatedProfile::nvram(4),
        EmulatedProfile::nvram(8),
    ] {
        let report = of(profile.clone(), 0.3);
        assert_eq!(report.class.kind, profile.kind, "{:?}", report.class);
        holds_to_the_profile(&report, &profile);
        let line = report.cell(Access::Read, Pattern::Random, 64, 1).unwrap();
        let wanted = profile.mean_ns(Access::Read, 64, 1) / 1e3;
        assert!((line.times.mean_us / wanted - 1.0).abs() < 0.01);
        assert!(report.text().contains("64 B"));
    }
}

#[test]
fn disks_are_known_and_a_shingled_one_when_its_cache_is_full() {
    let hdd = of(profile(DeviceKind::Hdd), 400.0);
    assert_eq!(hdd.class.name(), "hdd, or smr within its cache");
    assert_eq!(hdd.class.kind, DeviceKind::Hdd);
    holds_to_the_profile(&hdd, &profile(DeviceKind::Hdd));
    let smr = of(EmulatedProfile::smr_with_cache(8 << 20), 400.0);
    assert_eq!(smr.class.name(), "smr", "{:?}", smr.class);
    holds_to_the_profile(&smr, &profile(DeviceKind::Smr));
    let within = of(EmulatedProfile::smr_with_cache(u64::MAX), 400.0);
    assert_eq!(within.class.name(), "hdd, or smr within its cache");
    let (one, sixty_four) = (&hdd.tuples[0], &hdd.tuples[1]);
    assert_eq!((one.tuples, sixty_four.tuples), (1, 64));
    let read = sixty_four.read.mean_us / one.read.mean_us;
    let write = sixty_four.write.mean_us / one.write.mean_us;
    assert!(read <= 1.3 && write <= 1.3, "{read} {write}");
    let ratio = smr.tuples[0].write.deviation_us / hdd.tuples[0].write.deviation_us;
    assert!(ratio >= 3.0, "{ratio}");
}

#[test]
fn the_papers_ratios_hold_for_tuples() {
    let [ssd, xpoint, nvram] = [
        (DeviceKind::Ssd, 20.0),
        (DeviceKind::Xpoint, 5.0),
        (DeviceKind::Nvram, 0.3),
    ]
    .map(|(kind, seconds)| of(profile(kind), seconds));
    for (slow, fast) in ssd.tuples.iter().zip(&xpoint.tuples) {
        for (slow, fast) in [(&slow.read, &fast.read), (&slow.write, &fast.write)] {
            let faster = slow.mean_us / fast.mean_us;
            assert!((5.0..=10.0).contains(&faster), "{faster}");
        }
    }
    let [one, sixty_four] = &nvram.tuples[..] else {
        panic!("two sizes")
    };
    assert!(sixty_four.read.mean_us / one.read.mean_us >= 4.0);
}

#[test]
fn a_probe_of_a_directory_measures_every_figure_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let device = FileDevice::open(directory.path(), IoEngine::Auto).unwrap();
    let mut shares = Vec::new();
    let how = Probing {
        file_bytes_max: 16 << 20,
        ..Probing::for_about(Duration::from_millis(900))
    };
    let report = probe(&device, &how, &mut |_, share| shares.push(share)).unwrap();
    let profile = &report.profile;
    assert!(profile.read_latency_us > 0.0, "{profile:?}");
    assert!(profile.read_iops > 0.0, "{profile:?}");
    assert!(profile.sequential_write_mb_s > 0.0, "{profile:?}");
    assert!(profile.sync_us > 0.0, "{profile:?}");
    assert!(!profile.emulated && report.kernel.is_some());
    assert!(
        report
            .cell(Access::Write, Pattern::Random, 4096, 64)
            .is_some()
    );
    assert!(
        shares.is_sorted() && shares.last() == Some(&1.0),
        "{shares:?}"
    );
    let text = report.text();
    for part in [
        "class",
        "read latency",
        "64 KB",
        "hash table",
        "kernel says",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_probe_that_fails_says_so_and_leaves_no_file() {
    let how = || Probing {
        file_bytes_max: 8 << 20,
        ..Probing::for_about(Duration::from_millis(5))
    };
    for (operation, kind) in [
        (Operation::Write, io::ErrorKind::StorageFull),
        (Operation::Sync, io::ErrorKind::Other),
        (Operation::Read, io::ErrorKind::TimedOut),
    ] {
        let device = SimulatedDevice::new();
        device.fail_next(operation, kind);
        let failed = silent(&device, &how()).unwrap_err();
        assert_eq!(failed.kind(), kind);
        assert_eq!(device.list().unwrap(), Vec::<String>::new());
    }
    let device = SimulatedDevice::new();
    device.set_capacity_bytes(Some(10 << 20));
    let failed = silent(&device, &how()).unwrap_err();
    assert_eq!(failed.kind(), io::ErrorKind::StorageFull);
    assert!(failed.to_string().contains("10 MB are free"), "{failed}");
}

#[test]
fn a_glance_tells_the_sort_as_a_probe_does() {
    for kind in [
        DeviceKind::Hdd,
        DeviceKind::Ssd,
        DeviceKind::Xpoint,
        DeviceKind::Nvram,
    ] {
        let clock = SimulatedClock::new();
        let below = Arc::new(MemoryDevice::new());
        let device = EmulatedDevice::simulated(below, profile(kind), clock.clone()).unwrap();
        let how = Probing {
            clock: Arc::new(clock.clone()),
            threads: false,
            file_bytes_max: 16 << 20,
            ..Probing::for_about(Duration::from_secs(3))
        };
        let begun = clock.now();
        let (class, found) = glance(&device, &how).unwrap();
        let took = clock.now() - begun;
        assert!(took < Duration::from_secs(2), "{kind:?} took {took:?}");
        assert_eq!((class.kind, found.kind), (kind, kind), "{class:?}");
        assert!(found.read_iops > 0.0 && found.sync_us > 0.0, "{found:?}");
        assert!(found.sequential_write_mb_s > 0.0, "{found:?}");
        assert_eq!(device.list().unwrap(), Vec::<String>::new());
    }
}
