//! 004, Figure 9b: the size of tuples.

use super::SKEW;
use crate::figures::figure::{Claim, Figure, Form, Panel, Point, Series, Verdict};
use crate::figures::outcome::OPS;
use crate::figures::scale::{Scale, skew};
use crate::figures::setting::{Choices, Medium, What, Work};
use crate::ycsb_core::Mix;

const SIZES: [usize; 4] = [128, 256, 512, 1024];
const TIMES: u64 = 2;
const PANELS: [(&str, Mix); 2] = [("a read-heavy", Mix::ReadHeavy), ("b read-only", Mix::C)];
const KEY_BYTES: u64 = 8;

pub(in crate::figures) const FIGURE: Figure = Figure {
    name: "004.9b",
    title: "Tuple size",
    finding: "Larger tuples are faster: less work of eviction for each byte",
    theirs: "YCSB, read-heavy in the text, data twice the memory, blocks of 1 MB, one disk",
    ours: |scale| {
        format!(
            "{}; as many rows as make the same bytes",
            scale.words_004(TIMES)
        )
    },
    panels,
    claims: &CLAIMS,
    remarks: &[
        "The same bytes of smaller rows are more rows, of which more indexes and words stay in memory.",
    ],
};

fn panels(scale: &Scale) -> Vec<Panel> {
    let of_mix = |(title, mix): (&str, Mix)| {
        let of_size = |row_bytes: usize| {
            let points = scale.skews.iter().map(|zipf| {
                let work = Work::Ycsb {
                    mix,
                    rows: TIMES * scale.memory_bytes / (row_bytes as u64 + KEY_BYTES),
                    row_bytes,
                    zipf: *zipf,
                };
                let on = scale.database(Medium::Hdd, work, Choices::generic());
                Point::new(skew(*zipf), What::Database(Box::new(on)), OPS)
            });
            Series::new(format!("{row_bytes} B"), points.collect())
        };
        Panel {
            title: title.into(),
            x: SKEW,
            y: "operations/s",
            form: Form::Lines,
            log: true,
            series: SIZES.into_iter().map(of_size).collect(),
        }
    };
    let panels = PANELS.into_iter().map(of_mix);
    match scale.is_quick {
        // The text's mix alone.
        true => panels.take(1).collect(),
        false => panels.collect(),
    }
}

const CLAIMS: [Claim; 1] = [Claim {
    says: "tuples of 1 KB are not below any other at any skew",
    check: |data| {
        let panel = PANELS[0].0;
        let mut holds = true;
        let mut words = Vec::new();
        for (x, largest) in data.line(panel, "1024 B")? {
            for bytes in &SIZES[..3] {
                let smaller = data.at(panel, &format!("{bytes} B"), x)?;
                holds &= largest.reaches(1.0, &smaller);
            }
            let smallest = data.at(panel, "128 B", x)?;
            words.push(format!("{x}: 1 KB by 128 B {:.2}", largest.over(&smallest)));
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
        let made_up = |largest: f64| {
            let mut data = Data::default();
            for bytes in &SIZES[..3] {
                data = data.with(PANELS[0].0, &format!("{bytes} B"), &[("1.5", 500.0)]);
            }
            data.with(PANELS[0].0, "1024 B", &[("1.5", largest)])
        };
        passes(&FIGURE, &made_up(900.0));
        fails(&FIGURE, 0, &made_up(300.0));
    }
}
