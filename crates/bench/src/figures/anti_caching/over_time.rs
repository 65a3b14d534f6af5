//! 004, Figure 12: throughput second by second, and evictions.

use crate::figures::data::Data;
use crate::figures::figure::{Claim, Figure, Form, Panel, Point, Series, Verdict};
use crate::figures::outcome::OPS;
use crate::figures::scale::Scale;
use crate::figures::setting::{Choices, Medium, OnDatabase, What};
use crate::ycsb_core::Mix;

const TPCC: &str = "a TPC-C";
const YCSB: &str = "b YCSB, read-heavy";
const SERIES: &str = "aLRU";

pub(in crate::figures) const FIGURE: Figure = Figure {
    name: "004.12",
    title: "Evictions over time",
    finding: "TPC-C evicts more rarely than YCSB, and its throughput swings less",
    theirs: "60 s of TPC-C, and of YCSB, read-heavy, data twice the memory, Zipf 1.0; one disk",
    ours: |scale| {
        format!(
            "{} s each; {}; TPC-C with one warehouse, {} of memory for it, only HISTORY, ORDERS and \
             ORDER_LINE evictable, {} s before in which the device takes no time",
            scale.long_s,
            scale.words_004(2),
            crate::size::display(scale.tpcc_memory(scale.long_s)),
            scale.settling_s
        )
    },
    panels,
    claims: &CLAIMS,
    remarks: &["A bar for each second in which blocks were evicted."],
};

fn panels(scale: &Scale) -> Vec<Panel> {
    let panel = |title: &str, on: OnDatabase| Panel {
        title: title.into(),
        x: "seconds (emulated HDD)",
        y: "transactions/s",
        form: Form::Seconds,
        log: false,
        series: vec![Series::new(
            SERIES,
            vec![Point::new("run", What::Database(Box::new(on)), OPS)],
        )],
    };
    let (medium, seconds) = (Medium::Hdd, scale.long_s);
    let ycsb = scale.database(
        medium,
        scale.ycsb(Mix::ReadHeavy, 2, 1.0),
        Choices::generic(),
    );
    vec![
        panel(TPCC, scale.tpcc(medium, Choices::generic(), 3000, seconds)),
        panel(YCSB, OnDatabase { seconds, ..ycsb }),
    ]
}

fn both(data: &Data, counter: &str) -> Option<(f64, f64)> {
    let of = |panel| data.counter(panel, SERIES, "run", counter);
    Some((of(TPCC)?, of(YCSB)?))
}

const CLAIMS: [Claim; 2] = [
    Claim {
        says: "TPC-C evicts fewer blocks a second",
        check: |data| {
            let (tpcc, ycsb) = both(data, "blocks_per_s")?;
            Verdict::new(
                tpcc < ycsb,
                format!("{tpcc:.1} and {ycsb:.1} blocks a second"),
            )
        },
    },
    Claim {
        says: "its throughput swings less",
        check: |data| {
            let (tpcc, ycsb) = both(data, "deviation_by_mean")?;
            let words = format!("deviation by mean of its seconds: {tpcc:.3} and {ycsb:.3}");
            Verdict::new(tpcc < ycsb, words)
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests::{fails, passes};

    #[test]
    fn claims_hold_of_the_papers_shape_and_of_no_other() {
        let made_up = |blocks: f64, deviation: f64| {
            Data::default()
                .with(TPCC, SERIES, &[("run", 100.0)])
                .with(YCSB, SERIES, &[("run", 100.0)])
                .counting(TPCC, SERIES, "run", "blocks_per_s", blocks)
                .counting(YCSB, SERIES, "run", "blocks_per_s", 50.0)
                .counting(TPCC, SERIES, "run", "deviation_by_mean", deviation)
                .counting(YCSB, SERIES, "run", "deviation_by_mean", 0.2)
        };
        passes(&FIGURE, &made_up(5.0, 0.1));
        fails(&FIGURE, 0, &made_up(90.0, 0.1));
        fails(&FIGURE, 1, &made_up(5.0, 0.4));
    }
}
