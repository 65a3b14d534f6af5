//! 000, Figure 1: what an operation takes on each device.

use crate::figures::data::{Data, Measure};
use crate::figures::figure::{Claim, Figure, Form, Panel, Point, Series, Verdict};
use crate::figures::scale::Scale;
use crate::figures::setting::{Medium, What};

const ALL: [Medium; 6] = [
    Medium::Hdd,
    Medium::Smr,
    Medium::Ssd,
    Medium::Xpoint,
    Medium::Nvram,
    Medium::Dram,
];
const ONE: &str = "a 1 KB";
const MANY: &str = "b 64 KB";

pub(in crate::figures) const FIGURE: Figure = Figure {
    name: "000.1",
    title: "Storage comparison",
    finding: "64 KB take about as long as 1 KB on disks, and up to 20 times as long on DRAM and NVRAM; 3DX is up \
              to 10 times as fast as the SSD; a SSD's write of 64 KB takes 80 % longer than one of 1 KB; writes of \
              SMR vary most",
    theirs: "10 million tuples of 1 KB in a hash table on the device, 5 million operations, half of them writes \
             with their sync, Zipf, one thread, 1 or 64 tuples an operation",
    ours: |scale| {
        format!(
            "the same on emulated devices, as many keys as a file of 64 MB has, Zipf 1.0; {:.1} s a size; the \
             cache of SMR is 2 MB, so that it fills",
            scale.device_ms as f64 / 2e3
        )
    },
    panels,
    claims: &CLAIMS,
    remarks: &[
        "The devices are emulated by profiles that were set by this figure: it shows that the emulation \
                holds to them, no more.",
    ],
};

fn panels(scale: &Scale) -> Vec<Panel> {
    let what = |medium: Medium| What::Tuples {
        medium,
        smr_cache_bytes: 2 << 20,
        milliseconds: match medium.is_disk() {
            true => 3 * scale.device_ms,
            false => scale.device_ms,
        },
    };
    let series = |name: &str, value: &'static str| {
        let points = ALL.map(|medium| Point::new(medium.name(), what(medium), value));
        Series::new(name, points.to_vec())
    };
    let panel = |title: &str, read, write| Panel {
        title: title.into(),
        x: "device (emulated)",
        y: "mean latency, µs",
        form: Form::Bars,
        log: true,
        series: vec![series("read", read), series("write", write)],
    };
    vec![
        panel(ONE, "read_1kb_us", "write_1kb_us"),
        panel(MANY, "read_64kb_us", "write_64kb_us"),
    ]
}

/// The latency of 64 KB by that of 1 KB, of reads and of writes.
fn ratios(data: &Data, medium: Medium) -> Option<[f64; 2]> {
    let of = |series| -> Option<f64> {
        let many = data.at(MANY, series, medium.name())?;
        Some(many.over(&data.at(ONE, series, medium.name())?))
    };
    Some([of("read")?, of("write")?])
}

fn all_ratios(data: &Data, media: [Medium; 2]) -> Option<(Vec<f64>, String)> {
    let mut all = Vec::new();
    let mut words = Vec::new();
    for medium in media {
        let [read, write] = ratios(data, medium)?;
        words.push(format!("{} {read:.2} and {write:.2}", medium.name()));
        all.extend([read, write]);
    }
    Some((all, format!("{} (read, write)", words.join("; "))))
}

/// How far writes of 64 KB vary, by their mean, in the run.
fn deviation(data: &Data, medium: Medium) -> Option<f64> {
    data.counter(MANY, "write", medium.name(), "write_64kb_deviation_us")
}

const CLAIMS: [Claim; 4] = [
    Claim {
        says: "64 KB take at most 1.3 times as long as 1 KB on HDD and SMR",
        check: |data| {
            // Of SMR reads only: its writes are a matter of its cache.
            let (all, words) = all_ratios(data, [Medium::Hdd, Medium::Smr])?;
            Verdict::new(all[..3].iter().all(|ratio| *ratio <= 1.3), words)
        },
    },
    Claim {
        says: "and at least 4 times as long on NVRAM and DRAM",
        check: |data| {
            let (all, words) = all_ratios(data, [Medium::Nvram, Medium::Dram])?;
            Verdict::new(all.iter().all(|ratio| *ratio >= 4.0), words)
        },
    },
    Claim {
        says: "3DX is 5 to 10 times as fast as the SSD",
        check: |data| {
            let mut ratios = Vec::new();
            for (panel, series) in [
                (ONE, "read"),
                (ONE, "write"),
                (MANY, "read"),
                (MANY, "write"),
            ] {
                let of =
                    |medium: Medium| -> Option<Measure> { data.at(panel, series, medium.name()) };
                ratios.push(of(Medium::Ssd)?.over(&of(Medium::Xpoint)?));
            }
            let words: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.1}")).collect();
            // The means of few operations vary by some per cent.
            let holds = ratios.iter().all(|ratio| (4.8..=10.5).contains(ratio));
            Verdict::new(holds, format!("{} times", words.join(", ")))
        },
    },
    Claim {
        says: "writes of SMR vary most",
        check: |data| {
            let mut all = Vec::new();
            for medium in ALL {
                all.push((medium, deviation(data, medium)?));
            }
            let most = all.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
            let words: Vec<String> = all
                .iter()
                .map(|(medium, us)| format!("{} {us:.0}", medium.name()))
                .collect();
            Verdict::new(
                most.0 == Medium::Smr,
                format!("standard deviation of 64 KB, µs: {}", words.join(", ")),
            )
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests::{fails, passes};

    fn made_up(hdd_64: f64, dram_64: f64, xpoint: f64, smr_deviation: f64) -> Data {
        let mut data = Data::default();
        for series in ["read", "write"] {
            let one = [
                ("HDD", 12e3),
                ("SMR", 14e3),
                ("SSD", 88.0),
                ("3DX", xpoint),
                ("NVRAM", 2.0),
                ("DRAM", 0.5),
            ];
            let many = [
                ("HDD", hdd_64),
                ("SMR", 15e3),
                ("SSD", 160.0),
                ("3DX", 2.0 * xpoint),
                ("NVRAM", 40.0),
                ("DRAM", dram_64),
            ];
            data = data.with(ONE, series, &one).with(MANY, series, &many);
        }
        for medium in ALL {
            let deviation = if medium == Medium::Smr {
                smr_deviation
            } else {
                3e3
            };
            data = data.counting(
                MANY,
                "write",
                medium.name(),
                "write_64kb_deviation_us",
                deviation,
            );
        }
        data
    }

    #[test]
    fn claims_hold_of_the_papers_shape_and_of_no_other() {
        passes(&FIGURE, &made_up(12.5e3, 10.0, 11.0, 9e4));
        fails(&FIGURE, 0, &made_up(24e3, 10.0, 11.0, 9e4));
        fails(&FIGURE, 1, &made_up(12.5e3, 0.6, 11.0, 9e4));
        fails(&FIGURE, 2, &made_up(12.5e3, 10.0, 50.0, 9e4));
        fails(&FIGURE, 3, &made_up(12.5e3, 10.0, 11.0, 1e3));
    }
}
