//! 004, Figure 11a: one block out and back, by phase.

use super::{fit, plane};
use crate::figures::data::Data;
use crate::figures::figure::{Claim, Figure, Form, Panel, Point, Series, Verdict};
use crate::figures::scale::{Scale, kb};
use crate::figures::setting::{Medium, MergesBack, What};

const BLOCKS: [u32; 5] = [64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20];
const PHASES: [(&str, &str); 4] = [
    ("construct", "construct_ms"),
    ("write", "write_ms"),
    ("fetch", "fetch_ms"),
    ("merge", "merge_ms"),
];
const BLOCK: &str = "a block merge";
const TUPLE: &str = "b tuple merge";

pub(in crate::figures) const FIGURE: Figure = Figure {
    name: "004.11a",
    title: "Costs of eviction and its undoing",
    finding: "All phases are linear in the size of the block; construct and merge take longer than reads and writes",
    theirs: "blocks of 1 to 16 MB of tuples of 1 KB, three runs",
    ours: |scale| {
        format!(
            "blocks of 64 KB to 1 MB on an emulated SSD, the mean of {} runs",
            scale.repetitions
        )
    },
    panels,
    claims: &CLAIMS,
    remarks: &[
        "Construct and merge update an index, as in the paper; the engine itself changes a word (004.11b).",
        "A block has at most 1 MB here.",
    ],
};

fn panels(scale: &Scale) -> Vec<Panel> {
    let panel = |title: &str, merges: MergesBack| {
        let of_phase = |(name, value): (&str, &'static str)| {
            let points = BLOCKS.iter().map(|bytes| {
                let what = What::Phases {
                    medium: Medium::Ssd,
                    merges,
                    block_bytes: *bytes,
                    repetitions: scale.repetitions,
                };
                Point::new(kb(*bytes), what, value)
            });
            Series::new(name, points.collect())
        };
        Panel {
            title: title.into(),
            x: "block (emulated SSD)",
            y: "milliseconds",
            form: Form::Bars,
            log: false,
            series: PHASES.into_iter().map(of_phase).collect(),
        }
    };
    vec![
        panel(BLOCK, MergesBack::Block),
        panel(TUPLE, MergesBack::Tuple),
    ]
}

fn largest(data: &Data, panel: &str, phase: &str) -> Option<f64> {
    Some(data.line(panel, phase)?.last()?.1.mean)
}

const CLAIMS: [Claim; 3] = [
    Claim {
        says: "every phase of the block merge is linear in the size of the block (R² at least 0.98)",
        check: |data| {
            let mut holds = true;
            let mut words = Vec::new();
            for (phase, _) in PHASES {
                let fit = fit(&plane(&data.line(BLOCK, phase)?));
                holds &= fit >= 0.98;
                words.push(format!("{phase} {fit:.3}"));
            }
            Verdict::new(holds, words.join(", "))
        },
    },
    Claim {
        says: "the merge of a tuple takes less than that of its block",
        check: |data| {
            let (block, tuple) = (
                largest(data, BLOCK, "merge")?,
                largest(data, TUPLE, "merge")?,
            );
            Verdict::new(
                tuple < block,
                format!("{tuple:.4} and {block:.3} ms at 1 MB"),
            )
        },
    },
    Claim {
        says: "construct and merge take longer than write and fetch",
        check: |data| {
            let of = |phase| largest(data, BLOCK, phase);
            let (construct, write) = (of("construct")?, of("write")?);
            let (fetch, merge) = (of("fetch")?, of("merge")?);
            let words = format!(
                "at 1 MB, ms: construct {construct:.2}, write {write:.2}, fetch {fetch:.2}, merge {merge:.2}"
            );
            Verdict::new(construct > write && merge > fetch, words)
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests::{fails, passes};

    fn made_up(bend: f64, tuple: f64, write: f64) -> Data {
        let mut data = Data::default();
        for (phase, times) in [
            ("construct", 3.0),
            ("write", write),
            ("fetch", 1.0),
            ("merge", 2.0),
        ] {
            let points: Vec<(String, f64)> = BLOCKS
                .iter()
                .map(|bytes| {
                    let size = f64::from(*bytes >> 10);
                    (kb(*bytes), times * size.powf(bend))
                })
                .collect();
            let points: Vec<(&str, f64)> = points.iter().map(|(x, y)| (x.as_str(), *y)).collect();
            data = data.with(BLOCK, phase, &points);
        }
        data.with(TUPLE, "merge", &[("1024 KB", tuple)])
    }

    #[test]
    fn claims_hold_of_the_papers_shape_and_of_no_other() {
        passes(&FIGURE, &made_up(1.0, 2.0, 1.0));
        fails(&FIGURE, 0, &made_up(3.0, 2.0, 1.0));
        fails(&FIGURE, 1, &made_up(1.0, 9e9, 1.0));
        fails(&FIGURE, 2, &made_up(1.0, 2.0, 5.0));
    }
}
