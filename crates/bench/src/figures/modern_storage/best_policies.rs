//! 000, Table 1: the best policy of each device, found among all cells of Figures 2 and 3.

use super::{merge_threshold, retrieval};
use crate::figures::data::Data;
use crate::figures::figure::{Claim, Figure, Form, Panel, Point, Series, Verdict};
use crate::figures::outcome::OPS;
use crate::figures::scale::Scale;
use crate::figures::setting::{Medium, What};

const THEIRS: &str = "the paper's cell";
const FOUND: &str = "the best of the papers' choices";
const OURS: &str = "ours";
const PANEL: &str = "YCSB, 90 % reads";

pub(in crate::figures) const FIGURE: Figure = Figure {
    name: "000.T1",
    title: "Policies by device",
    finding: "Best are blocks of 16 KB, SR and the top 5 % on HDD and SMR; blocks of 4 KB, SR and the top 5 % on SSD \
              and 3DX; SR, the top 5 % and access by byte on NVRAM",
    theirs: "the best of the settings of Figures 2 to 5",
    ours: |scale| {
        format!(
            "the best of the cells of our Figures 2 and 3; {}",
            scale.words_000()
        )
    },
    panels,
    claims: &CLAIMS,
    remarks: &["NVRAM's cell is the one with blocks of 4 KB; 000.5 has access by byte beside it."],
};

fn theirs(scale: &Scale, medium: Medium) -> What {
    let kb = if medium.is_disk() { 16 } else { 4 };
    merge_threshold::cell(scale, medium, "sync", kb, "top(5%)")
}

fn candidates(scale: &Scale, medium: Medium) -> Vec<What> {
    let mut all = Vec::new();
    for retrieval in ["restart", "sync"] {
        let blocks = scale.blocks.iter();
        all.extend(blocks.map(|bytes| retrieval::cell(scale, medium, retrieval, *bytes)));
    }
    let cells: &[(&str, u32)] = match medium.is_disk() {
        true => &[("restart", 1024), ("sync", 16)],
        false => &[("sync", 4)],
    };
    for (retrieval, kb) in cells {
        let merges = ["update_only", "top(5%)", "top(20%)", "always"].into_iter();
        all.extend(merges.map(|merge| merge_threshold::cell(scale, medium, retrieval, *kb, merge)));
    }
    all
}

fn panels(scale: &Scale) -> Vec<Panel> {
    let points = |of: &dyn Fn(Medium) -> Vec<What>| -> Vec<Point> {
        let points = Medium::COLD.into_iter().map(|medium| Point {
            x: medium.name().into(),
            of: of(medium),
            value: OPS,
        });
        points.collect()
    };
    vec![Panel {
        title: PANEL.into(),
        x: "device (emulated)",
        y: "operations/s",
        form: Form::Bars,
        log: true,
        series: vec![
            Series::new(THEIRS, points(&|medium| vec![theirs(scale, medium)])),
            Series::new(FOUND, points(&|medium| candidates(scale, medium))),
            Series::new(OURS, points(&|medium| vec![retrieval::ours(scale, medium)])),
        ],
    }]
}

fn compared(data: &Data, medium: Medium) -> Option<(bool, String)> {
    let theirs = data.at(PANEL, THEIRS, medium.name())?;
    let found = data.value(PANEL, FOUND, medium.name())?;
    let chosen = found.chosen.as_deref().unwrap_or("the only one");
    let choice = chosen.rsplit(", ").take(3).collect::<Vec<_>>();
    let choice: Vec<&str> = choice.into_iter().rev().collect();
    let share = theirs.over(&found.measure);
    let words = format!("{} {share:.2} of {}", medium.name(), choice.join(", "));
    Some((theirs.reaches(0.9, &found.measure), words))
}

const CLAIMS: [Claim; 1] = [Claim {
    says: "the paper's cell reaches 90 % of the best one found on at least four of the five devices",
    check: |data| {
        let mut reached = 0;
        let mut words = Vec::new();
        for medium in Medium::COLD {
            let (holds, of) = compared(data, medium)?;
            reached += usize::from(holds);
            words.push(of);
        }
        Verdict::new(reached >= 4, words.join("; "))
    },
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests::{fails, passes};

    fn made_up(low: [f64; 5]) -> Data {
        let points = |values: [f64; 5]| {
            let media = Medium::COLD.into_iter().zip(values);
            media
                .map(|(medium, value)| (medium.name(), value))
                .collect::<Vec<_>>()
        };
        Data::default()
            .with(PANEL, THEIRS, &points(low))
            .with(PANEL, FOUND, &points([100.0; 5]))
    }

    #[test]
    fn claims_hold_of_the_papers_shape_and_of_no_other() {
        passes(&FIGURE, &made_up([20.0, 95.0, 95.0, 100.0, 92.0]));
        fails(&FIGURE, 0, &made_up([20.0, 50.0, 95.0, 100.0, 92.0]));
    }
}
