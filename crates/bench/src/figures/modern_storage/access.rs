//! 000, Figure 5: by block and by byte. There is no access by byte: what can be drawn is ours by
//! block, and the claims are not measured.

use crate::figures::figure::{Claim, Figure, Form, Panel, Point, Series};
use crate::figures::outcome::OPS;
use crate::figures::scale::{Scale, TIMES_000, skew};
use crate::figures::setting::{Choices, Medium, What};
use crate::ycsb_core::Mix;

pub(in crate::figures) const FIGURE: Figure = Figure {
    name: "000.5",
    title: "Access methods",
    finding: "By byte is better than by block on NVRAM and DRAM, most at low skew; at high skew one partition's core \
              is the limit",
    theirs: "as Figure 2, on DRAM and NVRAM, exponents 0.5 to 1.25",
    ours: |scale| format!("{}; NVRAM, by block only", scale.words_000()),
    panels,
    claims: &[Claim {
        says: "by byte is not below by block anywhere, and gains more at 0.5 than at the highest exponent",
        check: |_| None,
    }],
    remarks: &[
        "Access by byte is not there, so there is nothing to compare with: only ours by block is drawn.",
    ],
};

fn panels(scale: &Scale) -> Vec<Panel> {
    let mut skews = scale.skews.clone();
    skews.retain(|zipf| *zipf <= 1.25);
    skews.reverse();
    if scale.is_quick {
        skews.push(1.25);
    }
    let points = |choices: Choices| -> Vec<Point> {
        let point = |zipf: &f64| {
            let work = scale.ycsb(Mix::ReadHeavy, TIMES_000, *zipf);
            let on = scale.database(Medium::Nvram, work, choices.clone());
            Point::new(skew(*zipf), What::Database(Box::new(on)), OPS)
        };
        skews.iter().map(point).collect()
    };
    vec![Panel {
        title: "NVRAM".into(),
        x: "Zipf's exponent (emulated device)",
        y: "operations/s",
        form: Form::Lines,
        log: false,
        series: vec![
            Series::new("block", points(Choices::of_papers(Medium::Nvram))),
            Series::new("ours", points(Choices::ours(Medium::Nvram))),
        ],
    }]
}
