//! 004, Figure 9a: the size of blocks.

use super::{OURS, SKEW, by_skew};
use crate::figures::figure::{Claim, Figure, Form, Panel, Verdict};
use crate::figures::scale::{Scale, kb};
use crate::figures::setting::{Choices, Medium};
use crate::ycsb_core::Mix;

const PANEL: &str = "YCSB, read-only";
const TIMES: u64 = 2;
const BLOCKS: [u32; 3] = [256 << 10, 512 << 10, 1 << 20];

pub(in crate::figures) const FIGURE: Figure = Figure {
    name: "004.9a",
    title: "Block size",
    finding: "Larger blocks are slower, most at high skew, since more is fetched",
    theirs: "YCSB, read-only, data twice the memory, blocks of 1, 2 and 4 MB (others cannot be read in the text), one \
             disk",
    ours: |scale| {
        format!(
            "{}; blocks of 256 KB, 512 KB and 1 MB",
            scale.words_004(TIMES)
        )
    },
    panels,
    claims: &CLAIMS,
    remarks: &[
        "A block has at most 1 MB here, so that all are a quarter of the paper's.",
        "`ours` reads sectors, whatever the block: it is the default with 1 MB.",
    ],
};

fn panels(scale: &Scale) -> Vec<Panel> {
    let blocks = BLOCKS.iter().map(|bytes| {
        let choices = Choices::generic().block_bytes(*bytes);
        by_skew(scale, &kb(*bytes), Mix::C, TIMES, &choices)
    });
    let mut series: Vec<_> = blocks.collect();
    series.push(by_skew(
        scale,
        OURS,
        Mix::C,
        TIMES,
        &Choices::ours(Medium::Hdd),
    ));
    vec![Panel {
        title: PANEL.into(),
        x: SKEW,
        y: "operations/s",
        form: Form::Lines,
        log: true,
        series,
    }]
}

const CLAIMS: [Claim; 1] = [Claim {
    says: "smaller blocks are not below larger ones at any skew, and the smallest is above the largest somewhere",
    check: |data| {
        let names = BLOCKS.map(kb);
        let (mut holds, mut somewhere) = (true, false);
        let mut words = Vec::new();
        for (x, smallest) in data.line(PANEL, &names[0])? {
            let middle = data.at(PANEL, &names[1], x)?;
            let largest = data.at(PANEL, &names[2], x)?;
            holds &= smallest.reaches(1.0, &middle) && middle.reaches(1.0, &largest);
            somewhere |= smallest.exceeds(1.0, &largest);
            words.push(format!(
                "{x}: smallest by largest {:.2}",
                smallest.over(&largest)
            ));
        }
        Verdict::new(holds && somewhere, words.join(", "))
    },
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::data::Data;
    use crate::figures::tests::{fails, passes};

    #[test]
    fn claims_hold_of_the_papers_shape_and_of_no_other() {
        let made_up = |smallest: f64, middle: f64| {
            let line = |high: f64| [("1.5", high), ("0.5", 100.0)];
            Data::default()
                .with(PANEL, "256 KB", &line(smallest))
                .with(PANEL, "512 KB", &line(middle))
                .with(PANEL, "1024 KB", &line(400.0))
        };
        passes(&FIGURE, &made_up(900.0, 600.0));
        fails(&FIGURE, 0, &made_up(900.0, 300.0));
        fails(&FIGURE, 0, &made_up(400.0, 400.0));
    }
}
