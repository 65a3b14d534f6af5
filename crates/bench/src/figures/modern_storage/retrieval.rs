//! 000, Figure 2: abort-and-restart and synchronous retrieval, by the size of blocks.

use super::{of_each, panel};
use crate::figures::data::{Data, Measure};
use crate::figures::figure::{Claim, Figure, Form, Panel, Point, Series, Verdict};
use crate::figures::outcome::OPS;
use crate::figures::scale::{Scale, TIMES_000, kb};
use crate::figures::setting::{Choices, Medium, What};

const MEMORY: &str = "all in memory";
const OURS: &str = "ours";

pub(in crate::figures) const FIGURE: Figure = Figure {
    name: "000.2",
    title: "Cold tuple retrieval",
    finding: "On disks AR is best, with large blocks, and SR stalls. On the SSD both come to about the same, AR \
              varies less, and blocks below 4 KB hurt. 3DX is a little above the SSD. On NVRAM SR with small \
              blocks is best",
    theirs: "YCSB, 90 % reads, 10 GB with 1.25 GB of memory, rows of 1 KB, Zipf 1.0",
    ours: |scale| {
        let most = scale.blocks.iter().max().copied().unwrap_or_default();
        format!("{}; the largest block has {}", scale.words_000(), kb(most))
    },
    panels,
    claims: &CLAIMS,
    remarks: &[
        "Both read whole blocks and merge always, as in the paper; `ours` is the default: sectors are read, and a \
         row comes back when it is warm.",
        "Callers run partitions and wait in turns, so a partition that is held does not stop the others; the \
         paper's SR stops one of its few.",
    ],
};

/// What is measured for a device, a retrieval and a size of blocks.
pub(super) fn cell(scale: &Scale, medium: Medium, retrieval: &str, block_bytes: u32) -> What {
    let choices = Choices::generic()
        .retrieval(retrieval)
        .block_bytes(block_bytes);
    What::Database(Box::new(scale.database(medium, scale.ycsb_000(), choices)))
}

/// Ours as it comes, on a device.
pub(super) fn ours(scale: &Scale, medium: Medium) -> What {
    let on = scale.database(medium, scale.ycsb_000(), Choices::ours(medium));
    What::Database(Box::new(on))
}

fn panels(scale: &Scale) -> Vec<Panel> {
    let of_device = |medium: Medium| {
        let line = |of: &dyn Fn(u32) -> What| -> Vec<Point> {
            let blocks = scale.blocks.iter();
            blocks
                .map(|bytes| Point::new(kb(*bytes), of(*bytes), OPS))
                .collect()
        };
        Panel {
            title: panel(medium),
            x: "block (emulated device)",
            y: "operations/s",
            form: Form::Lines,
            log: medium.is_disk(),
            series: vec![
                Series::new("AR", line(&|bytes| cell(scale, medium, "restart", bytes))),
                Series::new("SR", line(&|bytes| cell(scale, medium, "sync", bytes))),
                Series::new(OURS, line(&|_| ours(scale, medium))),
                Series::new(
                    MEMORY,
                    line(&|_| scale.in_memory(scale.ycsb_000(), TIMES_000)),
                ),
            ],
        }
    };
    of_each(of_device)
}

/// The first and the last point of a series.
fn ends(data: &Data, medium: Medium, series: &str) -> Option<(Measure, Measure)> {
    let line = data.line(&panel(medium), series)?;
    Some((line.first()?.1, line.last()?.1))
}

/// The largest by the smallest of a series.
fn spread(data: &Data, medium: Medium, series: &str) -> Option<f64> {
    let line = data.line(&panel(medium), series)?;
    let means = line.iter().map(|(_, one)| one.mean);
    let low = means.clone().fold(f64::INFINITY, f64::min);
    Some(means.fold(0.0, f64::max) / low)
}

const CLAIMS: [Claim; 6] = [
    Claim {
        says: "AR rises with the size of blocks on HDD and SMR",
        check: |data| {
            let (hdd, smr) = (
                ends(data, Medium::Hdd, "AR")?,
                ends(data, Medium::Smr, "AR")?,
            );
            let holds = hdd.1.exceeds(1.0, &hdd.0) && smr.1.exceeds(1.0, &smr.0);
            let words = format!(
                "HDD {:.0} to {:.0}, SMR {:.0} to {:.0}",
                hdd.0.mean, hdd.1.mean, smr.0.mean, smr.1.mean
            );
            Verdict::new(holds, words)
        },
    },
    Claim {
        says: "SR with the largest blocks is below SR with 16 KB on HDD and SMR",
        check: |data| {
            let mut holds = true;
            let mut words = Vec::new();
            for medium in [Medium::Hdd, Medium::Smr] {
                let (_, large) = ends(data, medium, "SR")?;
                let small = data.at(&panel(medium), "SR", "16 KB")?;
                holds &= small.exceeds(1.0, &large);
                words.push(format!(
                    "{} {:.0} and {:.0}",
                    medium.name(),
                    large.mean,
                    small.mean
                ));
            }
            Verdict::new(holds, words.join("; "))
        },
    },
    Claim {
        says: "on the SSD SR is best with blocks of 4 KB or more",
        check: |data| {
            let (x, best) = data.best(&panel(Medium::Ssd), "SR")?;
            Verdict::new(x != "1 KB", format!("best with {x}, {:.0}", best.mean))
        },
    },
    Claim {
        says: "on the SSD AR varies less with the size of blocks than SR",
        check: |data| {
            let (ar, sr) = (
                spread(data, Medium::Ssd, "AR")?,
                spread(data, Medium::Ssd, "SR")?,
            );
            Verdict::new(
                ar < sr,
                format!("largest by smallest: AR {ar:.2}, SR {sr:.2}"),
            )
        },
    },
    Claim {
        says: "on NVRAM SR is best with blocks of at most 16 KB, and is not below AR",
        check: |data| {
            let panel = panel(Medium::Nvram);
            let (x, sr) = data.best(&panel, "SR")?;
            let (_, ar) = data.best(&panel, "AR")?;
            let small = ["1 KB", "4 KB", "16 KB"].contains(&x);
            let words = format!("best with {x}, {:.0}; AR {:.0}", sr.mean, ar.mean);
            Verdict::new(small && sr.reaches(1.0, &ar), words)
        },
    },
    Claim {
        says: "nothing is above all data in memory",
        check: |data| {
            let mut most = 0.0f64;
            for medium in Medium::COLD {
                let panel = panel(medium);
                let (_, memory) = data.best(&panel, MEMORY)?;
                for series in ["AR", "SR", OURS] {
                    most = most.max(data.best(&panel, series)?.1.over(&memory));
                }
            }
            Verdict::new(most <= 1.0, format!("at most {most:.2} of it"))
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests::{fails, passes};

    /// The paper's shape, with one series of one device replaced.
    fn made_up(replaced: Option<(Medium, &str, [f64; 4])>) -> Data {
        let x = ["1 KB", "4 KB", "16 KB", "1024 KB"];
        let mut data = Data::default();
        for medium in Medium::COLD {
            let mut series = match medium {
                Medium::Hdd | Medium::Smr => [
                    ("AR", [100.0, 120.0, 200.0, 300.0]),
                    ("SR", [80.0, 90.0, 100.0, 20.0]),
                ],
                Medium::Nvram => [
                    ("AR", [800.0, 810.0, 800.0, 600.0]),
                    ("SR", [890.0, 900.0, 880.0, 500.0]),
                ],
                _ => [
                    ("AR", [500.0, 520.0, 510.0, 480.0]),
                    ("SR", [400.0, 530.0, 500.0, 100.0]),
                ],
            };
            if let Some((of, name, values)) = replaced
                && of == medium
            {
                for one in series.iter_mut().filter(|one| one.0 == name) {
                    one.1 = values;
                }
            }
            for (name, values) in series {
                let points: Vec<(&str, f64)> = x.into_iter().zip(values).collect();
                data = data.with(&panel(medium), name, &points);
            }
            let flat = |value| x.map(|x| (x, value));
            data = data.with(&panel(medium), OURS, &flat(950.0));
            data = data.with(&panel(medium), MEMORY, &flat(1000.0));
        }
        data
    }

    #[test]
    fn claims_hold_of_the_papers_shape_and_of_no_other() {
        passes(&FIGURE, &made_up(None));
        let cases: [(Medium, &str, [f64; 4]); 6] = [
            (Medium::Hdd, "AR", [300.0, 200.0, 120.0, 100.0]),
            (Medium::Smr, "SR", [80.0, 90.0, 100.0, 120.0]),
            (Medium::Ssd, "SR", [560.0, 530.0, 500.0, 100.0]),
            (Medium::Ssd, "AR", [5.0, 520.0, 510.0, 480.0]),
            (Medium::Nvram, "SR", [500.0, 600.0, 700.0, 900.0]),
            (Medium::Xpoint, "AR", [500.0, 2000.0, 510.0, 480.0]),
        ];
        for (claim, case) in cases.into_iter().enumerate() {
            fails(&FIGURE, claim, &made_up(Some(case)));
        }
    }
}
