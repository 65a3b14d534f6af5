//! 004, Figure 8: the whole block becomes hot, or the tuple that was asked for.

use super::{OURS, SKEW, by_skew};
use crate::figures::figure::{Claim, Figure, Form, Panel, Verdict};
use crate::figures::scale::Scale;
use crate::figures::setting::{Choices, Medium};
use crate::ycsb_core::Mix;

const PANEL: &str = "YCSB, read-only";
const TIMES: u64 = 2;

pub(in crate::figures) const FIGURE: Figure = Figure {
    name: "004.8",
    title: "Merge strategies",
    finding: "Merging the tuple is above merging the block at every skew",
    theirs: "YCSB, read-only, data twice the memory, blocks of 1 MB, compaction at half holes, one disk",
    ours: |scale| scale.words_004(TIMES),
    panels,
    claims: &CLAIMS,
    remarks: &[
        "Both read whole blocks with AR and aLRU, and merge always; `ours` is the default.",
        "Holes are compacted in the background at the engine's own share, not when a block is read.",
    ],
};

fn panels(scale: &Scale) -> Vec<Panel> {
    let line = |name: &str, choices: Choices| by_skew(scale, name, Mix::C, TIMES, &choices);
    vec![Panel {
        title: PANEL.into(),
        x: SKEW,
        y: "operations/s",
        form: Form::Lines,
        log: true,
        series: vec![
            line("block", Choices::generic().merge_unit("block")),
            line("tuple", Choices::generic()),
            line(OURS, Choices::ours(Medium::Hdd)),
        ],
    }]
}

const CLAIMS: [Claim; 1] = [Claim {
    says: "merging the tuple is above merging the block at each skew",
    check: |data| {
        let mut holds = true;
        let mut words = Vec::new();
        for (x, tuple) in data.line(PANEL, "tuple")? {
            let block = data.at(PANEL, "block", x)?;
            holds &= tuple.exceeds(1.0, &block);
            words.push(format!("{x}: {:.2} times", tuple.over(&block)));
        }
        Verdict::new(holds, words.join(", "))
    },
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::data::Data;
    use crate::figures::tests::{fails, passes};

    #[test]
    fn claims_hold_of_the_papers_shape_and_of_no_other() {
        let made_up = |low: f64| {
            Data::default()
                .with(PANEL, "block", &[("1.5", 900.0), ("0.5", 100.0)])
                .with(PANEL, "tuple", &[("1.5", 1000.0), ("0.5", low)])
        };
        passes(&FIGURE, &made_up(150.0));
        fails(&FIGURE, 0, &made_up(90.0));
    }
}
