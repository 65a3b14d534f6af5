//! 004, Figure 11b: what the eviction of a block's tuples updates.

use super::{fit, plane};
use crate::figures::figure::{Claim, Figure, Form, Panel, Point, Series, Verdict};
use crate::figures::scale::Scale;
use crate::figures::setting::{Updates, What};

const PANEL: &str = "1000 tuples";
const HASH: &str = "hash indexes";
const TREE: &str = "B+trees";
const OURS: &str = "ours";

pub(in crate::figures) const FIGURE: Figure = Figure {
    name: "004.11b",
    title: "Costs of index updates",
    finding: "The time is linear in the number of indexes, and no bottleneck",
    theirs: "1 to 8 indexes, 1000 tuples, hash and B-tree, three runs",
    ours: |_| {
        "the same in a table of 100 000 rows, the mean of nine runs; `ours` is what the engine does"
            .into()
    },
    panels,
    claims: &CLAIMS,
    remarks: &[
        "In the paper each entry of a tuple comes to lead to its tombstone; ours changes one word of the row.",
    ],
};

fn panels(_: &Scale) -> Vec<Panel> {
    let line = |name: &str, updates: Updates| {
        let points = (1..=8).map(|indexes| {
            let what = What::Indexes {
                updates,
                indexes,
                tuples: 1000,
            };
            Point::new(indexes.to_string(), what, "elapsed_ms")
        });
        Series::new(name, points.collect())
    };
    vec![Panel {
        title: PANEL.into(),
        x: "indexes",
        y: "milliseconds",
        form: Form::Lines,
        log: false,
        series: vec![
            line(HASH, Updates::Hash),
            line(TREE, Updates::BTree),
            line(OURS, Updates::Word),
        ],
    }]
}

const CLAIMS: [Claim; 2] = [
    Claim {
        says: "the paper's way is linear in the number of indexes (R² at least 0.98)",
        check: |data| {
            let hash = fit(&plane(&data.line(PANEL, HASH)?));
            let tree = fit(&plane(&data.line(PANEL, TREE)?));
            Verdict::new(
                hash >= 0.98 && tree >= 0.98,
                format!("hash {hash:.3}, B+tree {tree:.3}"),
            )
        },
    },
    Claim {
        says: "ours does not grow: with 8 indexes it takes less than the paper's way with one",
        check: |data| {
            let ours = data.at(PANEL, OURS, "8")?;
            let (hash, tree) = (data.at(PANEL, HASH, "1")?, data.at(PANEL, TREE, "1")?);
            let words = format!(
                "{:.4} ms with 8; {:.4} (hash) and {:.4} (B+tree) with one",
                ours.mean, hash.mean, tree.mean
            );
            Verdict::new(ours.mean < hash.mean.min(tree.mean), words)
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
        let names: Vec<String> = (1..=8).map(|number| number.to_string()).collect();
        let line = |bend: f64| -> Vec<(&str, f64)> {
            let of = |x: &str| super::super::number(x).powf(bend);
            names.iter().map(|x| (x.as_str(), of(x))).collect()
        };
        let made_up = |bend: f64, ours: f64| {
            Data::default()
                .with(PANEL, HASH, &line(bend))
                .with(PANEL, TREE, &line(1.0))
                .with(PANEL, OURS, &[("8", ours)])
        };
        passes(&FIGURE, &made_up(1.0, 0.1));
        fails(&FIGURE, 0, &made_up(4.0, 0.1));
        fails(&FIGURE, 1, &made_up(1.0, 2.0));
    }
}
