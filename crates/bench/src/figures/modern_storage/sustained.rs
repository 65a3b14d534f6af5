//! 000, Figure 4: throughput second by second, and evictions.

use super::{of_each, panel};
use crate::figures::data::Data;
use crate::figures::figure::{Claim, Figure, Form, Panel, Point, Series, Verdict};
use crate::figures::outcome::OPS;
use crate::figures::scale::Scale;
use crate::figures::setting::{Choices, Medium, OnDatabase, What};

const SOLID: [Medium; 3] = [Medium::Ssd, Medium::Xpoint, Medium::Nvram];
const TOP: &str = "top 5%";
const ALWAYS: &str = "always";

pub(in crate::figures) const FIGURE: Figure = Figure {
    name: "000.4",
    title: "Sustained throughput",
    finding: "With the top 5 % the time between evictions is 6 times as long on average on solid-state devices, and \
              NVRAM's throughput drops least while tuples are evicted",
    theirs: "as Figure 3, second by second; bars where tuples are evicted",
    ours: |scale| {
        format!(
            "{}, but {} s; disks at AR with 1024 KB, the others at SR with 4 KB; a bar for each second in which \
             blocks were evicted, a row of them for each series",
            scale.words_000(),
            scale.long_s
        )
    },
    panels,
    claims: &CLAIMS,
    remarks: &[
        "The interval is the time in which a thousand tuples are evicted: the paper's evictions are of equally many. \
         A tuple that did not change since it was fetched is evicted without being written, so blocks are fewer.",
    ],
};

fn panels(scale: &Scale) -> Vec<Panel> {
    let of_device = |medium: Medium| {
        let choices = match medium.is_disk() {
            true => Choices::generic(),
            false => Choices::generic().retrieval("sync").block_bytes(4 << 10),
        };
        let series = |name: &str, merge| {
            let choices = choices.clone().merge(merge);
            let on = scale.database(medium, scale.ycsb_000(), choices);
            let what = What::Database(Box::new(OnDatabase {
                seconds: scale.long_s,
                ..on
            }));
            Series::new(name, vec![Point::new("run", what, OPS)])
        };
        Panel {
            title: panel(medium),
            x: "seconds (emulated device)",
            y: "operations/s",
            form: Form::Seconds,
            log: false,
            series: vec![series(ALWAYS, "always"), series(TOP, "top(5%)")],
        }
    };
    of_each(of_device)
}

/// The lowest second by the median one.
fn lowest(data: &Data, medium: Medium) -> Option<f64> {
    let moments = data.moments(&panel(medium), TOP)?;
    let mut rates: Vec<f64> = moments.iter().map(|moment| moment.ops_per_s).collect();
    rates.sort_by(f64::total_cmp);
    Some(rates.first()? / rates.get(rates.len() / 2)?)
}

fn lowest_of_all(data: &Data) -> Option<Vec<(Medium, f64)>> {
    let all = SOLID
        .into_iter()
        .map(|medium| Some((medium, lowest(data, medium)?)));
    all.collect()
}

fn words_of(lowest: &[(Medium, f64)]) -> String {
    let words = lowest
        .iter()
        .map(|(medium, share)| format!("{} {share:.2}", medium.name()));
    format!(
        "lowest second by the median: {}",
        words.collect::<Vec<_>>().join(", ")
    )
}

const CLAIMS: [Claim; 3] = [
    Claim {
        says: "the time between evictions is 6 times as long with the top 5 % on solid-state devices, on average",
        check: |data| {
            let mut ratios = Vec::new();
            for medium in SOLID {
                let interval =
                    |series| data.counter(&panel(medium), series, "run", "eviction_interval_s");
                ratios.push(interval(TOP)? / interval(ALWAYS)?);
            }
            let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
            let words: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.1}")).collect();
            Verdict::new(
                mean >= 6.0,
                format!("{} times, {mean:.1} on average", words.join(", ")),
            )
        },
    },
    Claim {
        says: "NVRAM's throughput drops least",
        check: |data| {
            let all = lowest_of_all(data)?;
            let best = all.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
            Verdict::new(best.0 == Medium::Nvram, words_of(&all))
        },
    },
    Claim {
        says: "no second is below 70 % of the median on solid-state devices",
        check: |data| {
            let all = lowest_of_all(data)?;
            Verdict::new(all.iter().all(|(_, share)| *share >= 0.7), words_of(&all))
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests::{fails, passes};

    fn made_up(interval: f64, nvram_low: f64, ssd_low: f64) -> Data {
        let mut data = Data::default();
        for medium in SOLID {
            let low = match medium {
                Medium::Nvram => nvram_low,
                Medium::Ssd => ssd_low,
                _ => 85.0,
            };
            let panel = panel(medium);
            for (series, interval) in [(ALWAYS, 0.1), (TOP, interval)] {
                data = data
                    .with(&panel, series, &[("run", 100.0)])
                    .counting(&panel, series, "run", "eviction_interval_s", interval)
                    .lasting(&panel, series, &[100.0, low, 100.0, 101.0]);
            }
        }
        data
    }

    #[test]
    fn claims_hold_of_the_papers_shape_and_of_no_other() {
        passes(&FIGURE, &made_up(0.7, 95.0, 80.0));
        fails(&FIGURE, 0, &made_up(0.3, 95.0, 80.0));
        fails(&FIGURE, 1, &made_up(0.7, 75.0, 80.0));
        fails(&FIGURE, 2, &made_up(0.7, 95.0, 40.0));
    }
}
