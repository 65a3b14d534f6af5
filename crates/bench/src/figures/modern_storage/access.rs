//! 000, Figure 5: by block and by byte.

use crate::figures::data::Data;
use crate::figures::figure::{Claim, Figure, Form, Panel, Point, Series, Verdict};
use crate::figures::outcome::OPS;
use crate::figures::scale::{Scale, TIMES_000, skew};
use crate::figures::setting::{Choices, Medium, What};
use crate::ycsb_core::Mix;

const MEDIA: [Medium; 2] = [Medium::Nvram, Medium::Dram];
const BLOCK: &str = "block";
const BYTE: &str = "byte";
/// The exponents whose gains are compared.
const LOW: &str = "0.5";
const HIGH: &str = "1.25";

pub(in crate::figures) const FIGURE: Figure = Figure {
    name: "000.5",
    title: "Access methods",
    finding: "By byte is better than by block on NVRAM and DRAM, most at low skew; at high skew one partition's core \
              is the limit",
    theirs: "as Figure 2, on DRAM and NVRAM, exponents 0.5 to 1.25",
    ours: |scale| format!("{}; SR, top 5 %, blocks of 4 KB", scale.words_000()),
    panels,
    claims: &CLAIMS,
    remarks: &[
        "By block the whole block is read, as in the paper. By byte a row is used where it lies, and its checksum is \
         checked at each use. `ours` is the default for the device: sectors are read, by block.",
        "NVRAM is emulated over a file system in memory, which is mapped; DRAM over memory of the process.",
        "By byte most uses end late (`emulated_late`): this machine's own time for a row, checksum included, is more \
         than that of the emulated lines.",
        "Callers run partitions, so no partition's core is the limit at high skew.",
    ],
};

fn panels(scale: &Scale) -> Vec<Panel> {
    let mut skews = scale.skews.clone();
    skews.retain(|zipf| *zipf <= 1.25);
    skews.reverse();
    if scale.is_quick {
        skews.push(1.25);
    }
    let of_device = |medium: Medium| {
        let series = |name: &str, choices: Choices| {
            let point = |zipf: &f64| {
                let work = scale.ycsb(Mix::ReadHeavy, TIMES_000, *zipf);
                let on = scale.database(medium, work, choices.clone());
                Point::new(skew(*zipf), What::Database(Box::new(on)), OPS)
            };
            Series::new(name, skews.iter().map(point).collect())
        };
        // What the paper has for NVRAM, on both.
        let theirs = || Choices::of_papers(Medium::Nvram);
        Panel {
            title: medium.name().into(),
            x: "Zipf's exponent (emulated device)",
            y: "operations/s",
            form: Form::Lines,
            log: false,
            series: vec![
                series(BLOCK, theirs().access("block")),
                series(BYTE, theirs().access("byte")),
                series("ours", Choices::ours(medium)),
            ],
        }
    };
    MEDIA.into_iter().map(of_device).collect()
}

/// How many times by block by byte is.
fn gain(data: &Data, medium: Medium, zipf: &str) -> Option<f64> {
    let byte = data.at(medium.name(), BYTE, zipf)?;
    Some(byte.over(&data.at(medium.name(), BLOCK, zipf)?))
}

const CLAIMS: [Claim; 2] = [
    Claim {
        says: "by byte is not below by block anywhere",
        check: |data| {
            let mut holds = true;
            let mut words = Vec::new();
            for medium in MEDIA {
                let mut gains = Vec::new();
                for zipf in ["0.5", "0.75", "1", "1.25"] {
                    // The quick form has fewer exponents.
                    let Some(byte) = data.at(medium.name(), BYTE, zipf) else {
                        continue;
                    };
                    holds &= byte.reaches(1.0, &data.at(medium.name(), BLOCK, zipf)?);
                    gains.push(format!("{:.2}", gain(data, medium, zipf)?));
                }
                if gains.is_empty() {
                    return None;
                }
                words.push(format!("{} {} times", medium.name(), gains.join(", ")));
            }
            Verdict::new(holds, words.join("; "))
        },
    },
    Claim {
        says: "by byte gains more at the lowest exponent than at the highest",
        check: |data| {
            let mut holds = true;
            let mut words = Vec::new();
            for medium in MEDIA {
                let (low, high) = (gain(data, medium, LOW)?, gain(data, medium, HIGH)?);
                holds &= low > high;
                words.push(format!("{} {low:.2} and {high:.2} times", medium.name()));
            }
            Verdict::new(holds, words.join("; "))
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests::{fails, passes};

    fn made_up(low: f64, high: f64) -> Data {
        let mut data = Data::default();
        for medium in MEDIA {
            let block = [(LOW, 100.0), (HIGH, 200.0)];
            let byte = [(LOW, 100.0 * low), (HIGH, 200.0 * high)];
            data = data
                .with(medium.name(), BLOCK, &block)
                .with(medium.name(), BYTE, &byte);
        }
        data
    }

    #[test]
    fn claims_hold_of_the_papers_shape_and_of_no_other() {
        passes(&FIGURE, &made_up(1.5, 1.1));
        fails(&FIGURE, 0, &made_up(0.8, 0.7));
        fails(&FIGURE, 1, &made_up(1.1, 1.5));
    }
}
