//! 000, Figure 6: the default and the best policy of each device, in other workloads.

use super::panel_of;
use crate::figures::data::Data;
use crate::figures::figure::{Claim, Figure, Form, Panel, Point, Series, Verdict};
use crate::figures::outcome::OPS;
use crate::figures::scale::Scale;
use crate::figures::setting::{Choices, Medium, OnDatabase, What, Work};

const DEFAULT: &str = "default";
const BEST: &str = "best";
const OURS: &str = "ours";
const NAMES: [&str; 3] = ["Voter", "TPC-C", "TATP"];
/// Bytes of a subscriber of TATP with all that belongs to it.
const SUBSCRIBER_BYTES: u64 = 745;
/// Bytes of a vote.
const VOTE_BYTES: u64 = 60;

pub(in crate::figures) const FIGURE: Figure = Figure {
    name: "000.6",
    title: "Additional workloads",
    finding: "Voter is about equal, best a little below default. TPC-C gains 36 % on 3DX and 26 % on NVRAM. TATP is \
              always better, and the default erratic",
    theirs: "Voter, TPC-C and TATP with single-partition transactions; the default is Table 1's first row, the best \
             its others",
    ours: |scale| {
        format!(
            "Voter from {} votes on, with {} of memory; TPC-C with one warehouse of all 100 000 items, {} of memory, \
             only HISTORY, ORDERS and ORDER_LINE evictable; TATP of {} subscribers, which take \
             as much as there is memory, that of Voter; {} s each",
            votes(scale),
            crate::size::display(memory_of_small_rows(scale)),
            crate::size::display(scale.tpcc_memory(scale.seconds)),
            subscribers(scale),
            scale.seconds
        )
    },
    panels,
    claims: &CLAIMS,
    remarks: &[
        "NVRAM's best is by byte in the paper; here memory is not used by the byte, and it has blocks of 4 KB.",
        "Commits do not wait for the log, which is not on the emulated device.",
    ],
};

/// So many that with what belongs to them they fill memory, and the next ones have to leave.
fn votes(scale: &Scale) -> u64 {
    scale.memory_bytes / VOTE_BYTES
}

/// Of rows of 60 or 70 bytes directories and indexes take their part, the more the longer a run inserts.
fn memory_of_small_rows(scale: &Scale) -> u64 {
    2 * scale.memory_bytes
}

fn subscribers(scale: &Scale) -> i64 {
    (memory_of_small_rows(scale) / SUBSCRIBER_BYTES) as i64
}

fn panels(scale: &Scale) -> Vec<Panel> {
    let small_rows = |medium, work, choices| OnDatabase {
        memory_bytes: Scale::limit(memory_of_small_rows(scale)),
        ..scale.database(medium, work, choices)
    };
    let of_work = |number: usize, medium, choices| match number {
        0 => {
            let votes = votes(scale);
            small_rows(medium, Work::Voter { votes }, choices)
        }
        1 => scale.tpcc(medium, choices, 3000, scale.seconds),
        _ => {
            let subscribers = subscribers(scale);
            small_rows(medium, Work::Tatp { subscribers }, choices)
        }
    };
    let panel = |number: usize| {
        let series = |name: &str, choices: &dyn Fn(Medium) -> Choices| {
            let points = Medium::COLD.into_iter().map(|medium| {
                let on = of_work(number, medium, choices(medium));
                Point::new(medium.name(), What::Database(Box::new(on)), OPS)
            });
            Series::new(name, points.collect())
        };
        Panel {
            title: panel_of(number, NAMES[number]),
            x: "device (emulated)",
            y: "transactions/s",
            form: Form::Bars,
            log: false,
            series: vec![
                series(DEFAULT, &|_| Choices::generic()),
                series(BEST, &|medium| Choices::of_papers(medium).access("block")),
                series(OURS, &Choices::ours),
            ],
        }
    };
    (0..NAMES.len()).map(panel).collect()
}

/// The best by the default for each device, as words, and whether each reaches a share of it.
fn compared(data: &Data, panel: &str, least: f64, strictly: bool) -> Option<(bool, String)> {
    let mut holds = true;
    let mut words = Vec::new();
    for medium in Medium::COLD {
        let best = data.at(panel, BEST, medium.name())?;
        let default = data.at(panel, DEFAULT, medium.name())?;
        holds &= match strictly {
            true => best.exceeds(least, &default),
            false => best.reaches(least, &default),
        };
        words.push(format!("{} {:.2}", medium.name(), best.over(&default)));
    }
    Some((holds, format!("best by default: {}", words.join(", "))))
}

const CLAIMS: [Claim; 3] = [
    Claim {
        says: "Voter's best is within 5 % of the default on each device",
        check: |data| {
            let (holds, words) = compared(data, "a Voter", 0.95, false)?;
            let mut above = false;
            for medium in Medium::COLD {
                let best = data.at("a Voter", BEST, medium.name())?;
                above |= best.exceeds(1.05, &data.at("a Voter", DEFAULT, medium.name())?);
            }
            Verdict::new(holds && !above, words)
        },
    },
    Claim {
        says: "TPC-C's best is never below 0.97 of the default",
        check: |data| {
            let (holds, words) = compared(data, "b TPC-C", 0.97, false)?;
            Verdict::new(holds, words)
        },
    },
    Claim {
        says: "TATP's best is above the default on each device",
        check: |data| {
            let (holds, words) = compared(data, "c TATP", 1.0, true)?;
            Verdict::new(holds, words)
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests::{fails, passes};

    fn made_up(shares: [f64; 3]) -> Data {
        let mut data = Data::default();
        for (panel, share) in ["a Voter", "b TPC-C", "c TATP"].into_iter().zip(shares) {
            let points = |value: f64| Medium::COLD.map(|medium| (medium.name(), value));
            data = data.with(panel, DEFAULT, &points(100.0));
            data = data.with(panel, BEST, &points(100.0 * share));
        }
        data
    }

    #[test]
    fn claims_hold_of_the_papers_shape_and_of_no_other() {
        passes(&FIGURE, &made_up([0.98, 1.3, 2.0]));
        fails(&FIGURE, 0, &made_up([0.8, 1.3, 2.0]));
        fails(&FIGURE, 0, &made_up([1.3, 1.3, 2.0]));
        fails(&FIGURE, 1, &made_up([0.98, 0.9, 2.0]));
        fails(&FIGURE, 2, &made_up([0.98, 1.3, 1.0]));
    }
}
