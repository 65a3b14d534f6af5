//! 004, Figure 6: YCSB by mix, size of data and skew.

use super::{OURS, SKEW, by_skew};
use crate::figures::data::Data;
use crate::figures::figure::{Claim, Figure, Form, Panel, Point, Series, Verdict};
use crate::figures::outcome::OPS;
use crate::figures::scale::{Scale, skew};
use crate::figures::setting::{Choices, Medium};
use crate::ycsb_core::Mix;

const MIXES: [(&str, Mix); 3] = [
    ("read-only", Mix::C),
    ("read-heavy", Mix::ReadHeavy),
    ("write-heavy", Mix::A),
];
/// What is all in memory has the data of this many times the limit of the others.
const FITS: u64 = 2;
const ALRU: &str = "aLRU";
const LRU: &str = "LRU";
const MEMORY: &str = "all in memory";

pub(in crate::figures) const FIGURE: Figure = Figure {
    name: "004.6",
    title: "YCSB by skew and size of data",
    finding: "With 8 times the data and exponents of 1.25 and more anti-caching is 9, 18 and 10 times as fast as the \
              disk database, and 2, 4 and 9 times as fast as it with memcached; aLRU is 2 to 7 % below the default \
              where all fits, and LRU suffers at low skew",
    theirs: "20 million rows of 1 KB, data 1 to 8 times the memory, one disk, beside MySQL alone and with memcached",
    ours: |scale| {
        format!(
            "data 2, 4 and 8 times the memory (1 in the full set, too); {}",
            scale.words_004(8)
        )
    },
    panels,
    claims: &CLAIMS,
    remarks: &[
        "Peers are not measured: nothing of MySQL and memcached is drawn, and the claims that need one are not made.",
        "What is all in memory has as many rows as the data of twice the memory, in all panels.",
        "LRU and aLRU read whole blocks of 1 MB with AR and merge always; `ours` is the default.",
    ],
};

fn times(scale: &Scale) -> &'static [u64] {
    match scale.is_quick {
        true => &[2, 4, 8],
        false => &[1, 2, 4, 8],
    }
}

fn panel_name(mix: &str, times: u64) -> String {
    format!("{mix}, {times} times")
}

fn panels(scale: &Scale) -> Vec<Panel> {
    let mut panels = Vec::new();
    for (name, mix) in MIXES {
        for times in times(scale) {
            let line = |name: &str, choices: Choices| by_skew(scale, name, mix, *times, &choices);
            let in_memory = scale.skews.iter().map(|zipf| {
                let what = scale.in_memory(scale.ycsb(mix, FITS, *zipf), FITS);
                Point::new(skew(*zipf), what, OPS)
            });
            panels.push(Panel {
                title: panel_name(name, *times),
                x: SKEW,
                y: "operations/s",
                form: Form::Lines,
                log: true,
                series: vec![
                    line(ALRU, Choices::generic()),
                    line(LRU, Choices::generic().identification("lru")),
                    line(OURS, Choices::ours(Medium::Hdd)),
                    Series::new(MEMORY, in_memory.collect()),
                ],
            });
        }
    }
    panels
}

/// The titles of the panels that there is data of.
fn measured(data: &Data) -> Vec<String> {
    let all = MIXES
        .iter()
        .flat_map(|(mix, _)| [1, 2, 4, 8].map(|times| panel_name(mix, times)));
    all.filter(|panel| data.line(panel, ALRU).is_some())
        .collect()
}

const CLAIMS: [Claim; 3] = [
    Claim {
        says: "aLRU is not below LRU in at least 90 % of the cells",
        check: |data| {
            let (mut cells, mut reached) = (0, 0);
            for panel in measured(data) {
                for (x, alru) in data.line(&panel, ALRU)? {
                    cells += 1;
                    reached += usize::from(alru.reaches(1.0, &data.at(&panel, LRU, x)?));
                }
            }
            if cells == 0 {
                return None;
            }
            Verdict::new(reached * 10 >= cells * 9, format!("{reached} of {cells}"))
        },
    },
    Claim {
        says: "throughput falls with the size of data, from 2 to 8 times",
        check: |data| {
            let (mut cells, mut falls) = (0, 0);
            for (mix, _) in MIXES {
                for (x, small) in data.line(&panel_name(mix, 2), ALRU)? {
                    let large = data.at(&panel_name(mix, 8), ALRU, x)?;
                    cells += 1;
                    falls += usize::from(small.reaches(1.0, &large));
                }
            }
            Verdict::new(falls == cells, format!("in {falls} of {cells} cells"))
        },
    },
    Claim {
        says: "and with lower skew",
        check: |data| {
            let panels = measured(data);
            if panels.is_empty() {
                return None;
            }
            let mut falls = 0;
            for panel in &panels {
                let line = data.line(panel, ALRU)?;
                falls += usize::from(line.first()?.1.exceeds(1.0, &line.last()?.1));
            }
            Verdict::new(
                falls == panels.len(),
                format!("in {falls} of {} panels", panels.len()),
            )
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests::{fails, passes};

    fn made_up(lru: f64, by_size: f64, low_skew: f64) -> Data {
        let mut data = Data::default();
        for (mix, _) in MIXES {
            for (times, size) in [(2, 1.0), (8, by_size)] {
                let points = |share: f64| {
                    [
                        ("1.5", 1000.0 * size * share),
                        ("0.5", low_skew * size * share),
                    ]
                };
                let panel = panel_name(mix, times);
                data = data
                    .with(&panel, ALRU, &points(1.0))
                    .with(&panel, LRU, &points(lru));
            }
        }
        data
    }

    #[test]
    fn claims_hold_of_the_papers_shape_and_of_no_other() {
        passes(&FIGURE, &made_up(0.8, 0.5, 100.0));
        fails(&FIGURE, 0, &made_up(1.2, 0.5, 100.0));
        fails(&FIGURE, 1, &made_up(0.8, 1.5, 100.0));
        fails(&FIGURE, 2, &made_up(0.8, 0.5, 2000.0));
    }
}
