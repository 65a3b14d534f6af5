//! 004, Figure 7: TPC-C by the size of what was evicted.

use crate::figures::data::Measure;
use crate::figures::figure::{Claim, Figure, Form, Panel, Point, Series, Verdict};
use crate::figures::outcome::OPS;
use crate::figures::scale::Scale;
use crate::figures::setting::{Choices, Medium, OnDatabase, What};

const PANEL: &str = "TPC-C";
const ALRU: &str = "aLRU";
const OURS: &str = "ours";
const MEMORY: &str = "all in memory";
/// Orders at the beginning, as thousands of customers of a district.
const CUSTOMERS: [i32; 3] = [1000, 2000, 3000];

pub(in crate::figures) const FIGURE: Figure = Figure {
    name: "004.7",
    title: "TPC-C by size of data",
    finding: "Anti-caching is seven times as fast as the disk database; its throughput falls little as data grows; \
              memcached makes the disk database slower",
    theirs: "100 warehouses, 12 GB of memory for 10 GB at the beginning; HISTORY, ORDERS and ORDER_LINE evictable; \
             beside MySQL alone and with memcached",
    ours: |scale| {
        format!(
            "one warehouse, {} of memory for it, 1000 to 3000 customers and orders a district at the beginning, the \
             rest grows while it runs; on an emulated HDD, which takes no time in the first {} s; measured {} s",
            crate::size::display(scale.tpcc_memory(scale.seconds)),
            scale.settling_s,
            scale.seconds
        )
    },
    panels,
    claims: &CLAIMS,
    remarks: &[
        "Peers are not measured: nothing of MySQL and memcached is drawn, and the claims that need one are not made.",
        "Anything but 3000 customers is no TPC-C; the figure varies the size of data with them.",
    ],
};

fn panels(scale: &Scale) -> Vec<Panel> {
    let line = |name: &str, choices: Choices, fits: bool| {
        let points = CUSTOMERS.iter().map(|customers| {
            let on = scale.tpcc(Medium::Hdd, choices.clone(), *customers, scale.seconds);
            let memory_bytes = if fits { 1 << 30 } else { on.memory_bytes };
            let what = What::Database(Box::new(OnDatabase {
                fits,
                memory_bytes,
                ..on
            }));
            Point::new(customers.to_string(), what, OPS)
        });
        Series::new(name, points.collect())
    };
    vec![Panel {
        title: PANEL.into(),
        x: "orders a district at the beginning (emulated HDD)",
        y: "transactions/s",
        form: Form::Lines,
        log: false,
        series: vec![
            line(ALRU, Choices::generic(), false),
            line(OURS, Choices::ours(Medium::Hdd), false),
            line(MEMORY, Choices::generic().identification("off"), true),
        ],
    }]
}

const CLAIMS: [Claim; 1] = [Claim {
    says: "with the most data it has at least 85 % of the throughput of all in memory",
    check: |data| {
        let last = |series| -> Option<Measure> { Some(data.line(PANEL, series)?.last()?.1) };
        let (alru, memory) = (last(ALRU)?, last(MEMORY)?);
        Verdict::new(
            alru.reaches(0.85, &memory),
            format!("{:.2} of it", alru.over(&memory)),
        )
    },
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::data::Data;
    use crate::figures::tests::{fails, passes};

    #[test]
    fn claims_hold_of_the_papers_shape_and_of_no_other() {
        let made_up = |alru: f64| {
            Data::default()
                .with(PANEL, ALRU, &[("1000", 100.0), ("3000", alru)])
                .with(PANEL, MEMORY, &[("1000", 100.0), ("3000", 100.0)])
        };
        passes(&FIGURE, &made_up(92.0));
        fails(&FIGURE, 0, &made_up(60.0));
    }
}
