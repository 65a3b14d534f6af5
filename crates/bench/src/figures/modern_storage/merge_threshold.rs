//! 000, Figure 3: which of the tuples that were fetched become hot.

use crate::figures::data::{Data, Measure};
use crate::figures::figure::{Claim, Figure, Form, Panel, Point, Series, Verdict};
use crate::figures::outcome::OPS;
use crate::figures::scale::Scale;
use crate::figures::setting::{Choices, Medium, What};

const MERGES: [(&str, &str); 4] = [
    ("update only", "update_only"),
    ("top 5%", "top(5%)"),
    ("top 20%", "top(20%)"),
    ("always", "always"),
];
const OURS: &str = "ours";
const DISKS: &str = "a disks";
const SOLID: &str = "b solid state";

pub(in crate::figures) const FIGURE: Figure = Figure {
    name: "000.3",
    title: "Merging threshold",
    finding: "On solid-state devices merging only what is asked for most is always better. On disks it hurts AR with \
              blocks of 1 MB, and brings SR with 16 KB up to about AR's level",
    theirs: "as Figure 2; disks at AR with 1024 KB and SR with 16 KB, the others at the best of Figure 2",
    ours: |scale| {
        format!(
            "{}; solid-state devices at SR with 4 KB, the paper's best",
            scale.words_000()
        )
    },
    panels,
    claims: &CLAIMS,
    remarks: &["`ours` is the default of the device: temperature, AR, reads of sectors."],
};

/// What is measured for a device, a retrieval and a merge.
pub(super) fn cell(scale: &Scale, medium: Medium, retrieval: &str, kb: u32, merge: &str) -> What {
    let choices = Choices::generic()
        .retrieval(retrieval)
        .block_bytes(kb << 10)
        .merge(merge);
    What::Database(Box::new(scale.database(medium, scale.ycsb_000(), choices)))
}

fn panels(scale: &Scale) -> Vec<Panel> {
    let disks = [
        ("HDD, AR", Medium::Hdd, "restart", 1024),
        ("HDD, SR", Medium::Hdd, "sync", 16),
        ("SMR, AR", Medium::Smr, "restart", 1024),
        ("SMR, SR", Medium::Smr, "sync", 16),
    ];
    let solid = [Medium::Ssd, Medium::Xpoint, Medium::Nvram];
    let solid = solid.map(|medium| (medium.name(), medium, "sync", 4));
    let panel = |title: &str, places: &[(&str, Medium, &str, u32)], log| {
        let of_merge = |(name, merge): &(&str, &str)| {
            let points = places.iter().map(|(x, medium, retrieval, kb)| {
                Point::new(*x, cell(scale, *medium, retrieval, *kb, merge), OPS)
            });
            Series::new(*name, points.collect())
        };
        let mut series: Vec<Series> = MERGES.iter().map(of_merge).collect();
        let ours = places
            .iter()
            .map(|(x, medium, ..)| Point::new(*x, super::retrieval::ours(scale, *medium), OPS));
        series.push(Series::new(OURS, ours.collect()));
        Panel {
            title: title.into(),
            x: "device (emulated), retrieval",
            y: "operations/s",
            form: Form::Bars,
            log,
            series,
        }
    };
    vec![panel(DISKS, &disks, true), panel(SOLID, &solid, false)]
}

fn pair(data: &Data, panel: &str, x: &str) -> Option<(Measure, Measure)> {
    Some((data.at(panel, "top 5%", x)?, data.at(panel, "always", x)?))
}

const CLAIMS: [Claim; 3] = [
    Claim {
        says: "the top 5 % is above always on SSD, 3DX and NVRAM",
        check: |data| {
            let mut holds = true;
            let mut words = Vec::new();
            for x in ["SSD", "3DX", "NVRAM"] {
                let (top, always) = pair(data, SOLID, x)?;
                holds &= top.exceeds(1.0, &always);
                words.push(format!("{x} {:.2} times", top.over(&always)));
            }
            Verdict::new(holds, words.join(", "))
        },
    },
    Claim {
        says: "with AR on the HDD the top 5 % is below always",
        check: |data| {
            let (top, always) = pair(data, DISKS, "HDD, AR")?;
            Verdict::new(
                always.exceeds(1.0, &top),
                format!("{:.2} times", top.over(&always)),
            )
        },
    },
    Claim {
        says: "with SR on the HDD the top 5 % is above always",
        check: |data| {
            let (top, always) = pair(data, DISKS, "HDD, SR")?;
            Verdict::new(
                top.exceeds(1.0, &always),
                format!("{:.2} times", top.over(&always)),
            )
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests::{fails, passes};

    fn made_up(solid: f64, ar: f64, sr: f64) -> Data {
        let x = [("SSD", 100.0), ("3DX", 100.0), ("NVRAM", 100.0)];
        let top = x.map(|(x, value)| (x, value * solid));
        let disks = [("HDD, AR", 100.0), ("HDD, SR", 100.0)];
        Data::default()
            .with(SOLID, "always", &x)
            .with(SOLID, "top 5%", &top)
            .with(DISKS, "always", &disks)
            .with(
                DISKS,
                "top 5%",
                &[("HDD, AR", 100.0 * ar), ("HDD, SR", 100.0 * sr)],
            )
    }

    #[test]
    fn claims_hold_of_the_papers_shape_and_of_no_other() {
        passes(&FIGURE, &made_up(1.5, 0.5, 2.0));
        fails(&FIGURE, 0, &made_up(0.9, 0.5, 2.0));
        fails(&FIGURE, 1, &made_up(1.5, 1.1, 2.0));
        fails(&FIGURE, 2, &made_up(1.5, 0.5, 0.9));
    }
}
