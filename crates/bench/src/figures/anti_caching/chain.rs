//! 004, Figure 10: what the chain of rows by their last use costs.

use super::SKEW;
use crate::figures::figure::{Claim, Figure, Form, Panel, Point, Series, Verdict};
use crate::figures::scale::{Scale, skew};
use crate::figures::setting::{Links, What};

const PANEL: &str = "updates of a chain";
const NONE: &str = "no chain";
const SINGLY: &str = "singly linked";
const DOUBLY: &str = "doubly linked";
const SKEWS: [f64; 5] = [1.5, 1.25, 1.0, 0.75, 0.5];

pub(in crate::figures) const FIGURE: Figure = Figure {
    name: "004.10",
    title: "Chain of rows by their last use",
    finding: "At high skew a doubly linked chain is within 5 % of none, and 20 times as fast as a singly linked one; \
              they converge as skew falls",
    theirs: "100 000 updates of tuples; a singly linked chain is searched from its oldest",
    ours: |scale| {
        format!(
            "{0} updates of {0} rows of 1 KB, each found by a hash index",
            scale.chain
        )
    },
    panels,
    claims: &CLAIMS,
    remarks: &[
        "Doubly linked is the engine's own chain (`crates/storage/src/chains.rs`); singly linked is of this program, \
         to compare.",
    ],
};

fn panels(scale: &Scale) -> Vec<Panel> {
    let line = |name: &str, links: Links| {
        let points = SKEWS.iter().map(|zipf| {
            let what = What::Chain {
                links,
                rows: scale.chain,
                updates: scale.chain,
                zipf: *zipf,
            };
            Point::new(skew(*zipf), what, "elapsed_ms")
        });
        Series::new(name, points.collect())
    };
    vec![Panel {
        title: PANEL.into(),
        x: SKEW,
        y: "milliseconds for all updates",
        form: Form::Lines,
        log: true,
        series: vec![
            line(SINGLY, Links::Singly),
            line(DOUBLY, Links::Doubly),
            line(NONE, Links::None),
        ],
    }]
}

const CLAIMS: [Claim; 3] = [
    Claim {
        says: "doubly linked takes at most 1.05 times as long as none at the highest skew",
        check: |data| {
            let (doubly, none) = (data.at(PANEL, DOUBLY, "1.5")?, data.at(PANEL, NONE, "1.5")?);
            Verdict::new(
                none.reaches(1.0 / 1.05, &doubly),
                format!("{:.2} times", doubly.over(&none)),
            )
        },
    },
    Claim {
        says: "and is at least 20 times as fast as singly linked there",
        check: |data| {
            let (singly, doubly) = (
                data.at(PANEL, SINGLY, "1.5")?,
                data.at(PANEL, DOUBLY, "1.5")?,
            );
            Verdict::new(
                singly.reaches(20.0, &doubly),
                format!("{:.0} times", singly.over(&doubly)),
            )
        },
    },
    Claim {
        says: "that ratio is smaller at the lowest skew",
        check: |data| {
            let ratio = |x| Some(data.at(PANEL, SINGLY, x)?.over(&data.at(PANEL, DOUBLY, x)?));
            let (high, low) = (ratio("1.5")?, ratio("0.5")?);
            Verdict::new(
                low < high,
                format!("{high:.0} times at 1.5, {low:.0} times at 0.5"),
            )
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::data::Data;
    use crate::figures::tests::{fails, passes};

    #[test]
    fn claims_hold_of_the_papers_shape_and_of_no_other() {
        let made_up = |doubly: f64, high: f64, low: f64| {
            Data::default()
                .with(PANEL, NONE, &[("1.5", 10.0), ("0.5", 10.0)])
                .with(PANEL, DOUBLY, &[("1.5", doubly), ("0.5", 20.0)])
                .with(PANEL, SINGLY, &[("1.5", high), ("0.5", low)])
        };
        passes(&FIGURE, &made_up(10.3, 300.0, 200.0));
        fails(&FIGURE, 0, &made_up(14.0, 300.0, 200.0));
        fails(&FIGURE, 1, &made_up(10.3, 100.0, 50.0));
        fails(&FIGURE, 2, &made_up(10.3, 300.0, 2000.0));
    }
}
