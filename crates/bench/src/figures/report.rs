//! What is written of the figures: a page, and a CSV beside each drawing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::data::{Data, Value};
use super::figure::{Agreement, Figure, Form, Panel, Verdict};
use super::outcome::Outcome;
use super::page::Part;
use super::scale::Scale;
use crate::{machine, size};

/// What was counted beside: in the CSV, and where a claim does not hold on the page.
const COUNTERS: [&str; 14] = [
    "misses_per_op",
    "evictions_per_op",
    "read_bytes_per_op",
    "written_bytes_per_op",
    "blocks_per_s",
    "cpu_us_per_op",
    "p50_us",
    "p99_us",
    "hot_bytes",
    "rss_max_bytes",
    "emulated_operations",
    "emulated_late",
    "emulated_spun_s",
    "others_cores",
];
/// Rows of counters on the page; all are in the CSV.
const ROWS_MAX: usize = 60;

/// A figure with all that came of it.
pub(super) struct Drawn<'a> {
    pub figure: &'a Figure,
    pub panels: Vec<Panel>,
    pub data: Data,
    pub verdicts: Vec<Option<Verdict>>,
}

impl Drawn<'_> {
    pub fn agreement(&self) -> Agreement {
        Agreement::of(&self.verdicts)
    }

    /// Whether a claim was found not to hold.
    pub fn fails(&self) -> bool {
        self.verdicts.iter().flatten().any(|verdict| !verdict.holds)
    }

    pub fn title(&self) -> String {
        format!("{} {}", self.figure.name, self.figure.title)
    }

    /// Each point once: panel, series, place, value.
    fn points(&self) -> Vec<(&str, &str, &str, &Value)> {
        let mut points = Vec::new();
        for panel in &self.panels {
            for series in &panel.series {
                for point in &series.points {
                    let value = self.data.value(&panel.title, &series.name, &point.x);
                    if let Some(value) = value {
                        let names = (panel.title.as_str(), series.name.as_str());
                        points.push((names.0, names.1, point.x.as_str(), value));
                    }
                }
            }
        }
        points
    }

    /// All points, with their trials and what was counted.
    pub fn csv(&self) -> String {
        let mut csv = format!(
            "panel,series,x,mean,margin,trials,chosen,{}\n",
            COUNTERS.join(",")
        );
        for (panel, series, x, value) in self.points() {
            let trials: Vec<String> = value.trials.iter().map(f64::to_string).collect();
            let chosen = value.chosen.as_deref().unwrap_or_default();
            let counters = COUNTERS.iter().map(|name| {
                let counter = value.counters.get(*name);
                counter.map_or(String::new(), |counter| format!("{counter:.6}"))
            });
            let counters: Vec<String> = counters.collect();
            // Writing to a string can't fail.
            let _ = writeln!(
                csv,
                "{},{},{},{:.6},{:.6},{},{},{}",
                quoted(panel),
                quoted(series),
                quoted(x),
                value.measure.mean,
                value.measure.margin,
                trials.join(" "),
                quoted(chosen),
                counters.join(",")
            );
        }
        csv
    }

    /// Second by second, where that is drawn.
    pub fn seconds_csv(&self) -> Option<String> {
        let mut csv = "panel,series,end_s,ops_per_s,blocks_evicted\n".to_owned();
        let mut some = false;
        for panel in self
            .panels
            .iter()
            .filter(|panel| panel.form == Form::Seconds)
        {
            for series in &panel.series {
                for moment in self
                    .data
                    .moments(&panel.title, &series.name)
                    .unwrap_or_default()
                {
                    some = true;
                    let _ = writeln!(
                        csv,
                        "{},{},{:.3},{:.1},{}",
                        quoted(&panel.title),
                        quoted(&series.name),
                        moment.end_s,
                        moment.ops_per_s,
                        moment.blocks
                    );
                }
            }
        }
        some.then_some(csv)
    }

    fn parts(&self, scale: &Scale) -> Vec<Part> {
        let figure = self.figure;
        let mut parts = vec![
            Part::Heading(2, self.title()),
            Part::Image {
                file: format!("{}.svg", figure.name),
                says: self.title(),
            },
        ];
        let two = |name: &str, text: String| vec![name.to_owned(), text];
        parts.push(Part::table(
            &["", ""],
            vec![
                two("the paper's finding", figure.finding.to_owned()),
                two("the paper's setting", figure.theirs.to_owned()),
                two("ours", (figure.ours)(scale)),
                two("the shape", self.agreement().words().to_owned()),
            ],
        ));
        let claims = figure.claims.iter().zip(&self.verdicts);
        let claims = claims.map(|(claim, verdict)| {
            let (holds, ours) = match verdict {
                Some(verdict) if verdict.holds => ("yes", verdict.ours.clone()),
                Some(verdict) => ("no", verdict.ours.clone()),
                None => ("not measured", String::new()),
            };
            vec![claim.says.to_owned(), holds.to_owned(), ours]
        });
        parts.push(Part::table(&["claim", "holds", "ours"], claims.collect()));
        let mut remarks: Vec<String> = figure
            .remarks
            .iter()
            .map(|text| (*text).to_owned())
            .collect();
        remarks.push(format!("All points and counters: `{}.csv`.", figure.name));
        parts.push(Part::List(remarks));
        if self.fails() {
            parts.extend(self.reasons());
        }
        parts
    }

    /// What was counted, where a claim does not hold.
    fn reasons(&self) -> Vec<Part> {
        let points = self.points();
        let counted = points
            .iter()
            .filter(|(.., value)| value.counters.contains_key("misses_per_op"));
        let rows: Vec<Vec<String>> = counted
            .take(ROWS_MAX)
            .map(|(panel, series, x, value)| {
                let counter = |name: &str| value.counters.get(name).copied();
                let shown = |value: Option<f64>, digits: usize| {
                    value.map_or("–".to_owned(), |value| format!("{value:.digits$}"))
                };
                let share = |part: &str, of: &str| {
                    let (part, of) = (counter(part)?, counter(of)?);
                    (of > 0.0).then_some(part * 100.0 / of)
                };
                vec![
                    (*panel).to_owned(),
                    (*series).to_owned(),
                    (*x).to_owned(),
                    shown(Some(value.measure.mean), 0),
                    shown(counter("misses_per_op"), 4),
                    shown(counter("read_bytes_per_op").map(|bytes| bytes / 1024.0), 2),
                    shown(counter("evictions_per_op"), 4),
                    shown(counter("cpu_us_per_op"), 1),
                    shown(
                        counter("hot_bytes").map(|bytes| bytes / f64::from(1 << 20)),
                        1,
                    ),
                    shown(share("emulated_late", "emulated_operations"), 1),
                    shown(counter("emulated_spun_s"), 2),
                ]
            })
            .collect();
        if rows.is_empty() {
            return Vec::new();
        }
        let head = [
            "panel",
            "series",
            "x",
            "value",
            "misses/op",
            "KB read/op",
            "evicted/op",
            "CPU µs/op",
            "MB hot",
            "late %",
            "spun s",
        ];
        vec![
            Part::Text("Why: what was counted. Late is the share of emulated operations that took over a tenth longer \
                        than the profile says; spun is processor time that emulation used up waiting.".into()),
            Part::table(&head, rows),
        ]
    }
}

fn quoted(text: &str) -> String {
    match text.contains([',', '"']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

/// Words of different results, each once.
fn distinct(words: impl Iterator<Item = String>) -> String {
    let words: BTreeSet<String> = words.collect();
    words.into_iter().collect::<Vec<_>>().join(", ")
}

/// Descriptions of devices in few words: emulated kinds by what they are over, paths left out.
fn kinds(descriptions: impl Iterator<Item = String>) -> String {
    let mut by_below: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for text in descriptions {
        let text = text.trim_start_matches("blocks on ");
        let (kind, below) = text.split_once(" over ").unwrap_or((text, ""));
        let below = match below.find(" (") {
            Some(at) => format!("files{}", &below[at..]),
            None => below.to_owned(),
        };
        let kinds = by_below.entry(below).or_default();
        let _ = kinds.insert(kind.trim_start_matches("emulated ").to_owned());
    }
    let words = by_below.into_iter().map(|(below, kinds)| {
        let kinds = kinds.into_iter().collect::<Vec<_>>().join(", ");
        match below.is_empty() {
            true => kinds,
            false => format!("emulated {kinds} over {below}"),
        }
    });
    words.collect::<Vec<_>>().join("; ")
}

/// The page of these figures.
pub(super) fn parts<'a>(
    drawn: &[Drawn<'_>],
    scale: &Scale,
    outcomes: impl Iterator<Item = &'a Outcome>,
    failed: &[String],
) -> Vec<Part> {
    let outcomes: Vec<&Outcome> = outcomes.collect();
    let machine = machine::machine();
    let unknown = || "unknown".to_owned();
    let commits = outcomes.iter().filter_map(|one| one.commit.clone());
    let days = outcomes.iter().filter_map(|one| one.date.as_deref());
    let days = days
        .filter_map(|date| date.split(' ').next())
        .map(str::to_owned);
    let devices = outcomes.iter().filter_map(|one| one.device.clone());
    let others = outcomes
        .iter()
        .filter_map(|one| one.values.get("others_cores"));
    let others: Vec<f64> = others.copied().collect();
    let others = match others.len() {
        0 => unknown(),
        count => {
            let mean = others.iter().sum::<f64>() / count as f64;
            let most = others.iter().copied().fold(0.0, f64::max);
            format!("{mean:.2} on average, {most:.2} at most")
        }
    };
    let two = |name: &str, text: String| vec![name.to_owned(), text];
    let names: Vec<&str> = drawn.iter().map(|one| one.figure.name).collect();
    let names = match names.len() == super::figures().len() {
        true => "all".to_owned(),
        false => names.join(" "),
    };
    let command = match scale.is_quick {
        true => format!("`thermocline bench figures {names} --quick`: small sizes, short times"),
        false => format!("`thermocline bench figures {names}`"),
    };
    let mut parts = vec![
        Part::Heading(1, "The papers' figures, from our own runs".into()),
        Part::Text(
            "000 is *Larger-than-Memory Data Management on Modern Storage Hardware* (DaMoN 2016), 004 is \
             *Anti-Caching* (PVLDB 2013). Each figure is drawn from runs of this program; what the paper found is \
             checked by code, on our data. All devices are *emulated*."
                .into(),
        ),
        Part::table(
            &["", ""],
            vec![
                two("command", command),
                two("machine", machine.cpu.unwrap_or_else(unknown)),
                two("cores", machine.cores.map_or_else(unknown, |cores| cores.to_string())),
                two("memory", machine.memory_bytes.map_or_else(unknown, size::display)),
                two("kernel", machine.kernel.unwrap_or_else(unknown)),
                two("devices", kinds(devices)),
                two("memory_limit", scale.words_of_limit()),
                two("date", distinct(days)),
                two("commit", distinct(commits)),
                two("trials", scale.trials.to_string()),
                two("cores that others used meanwhile", others),
            ],
        ),
    ];
    if scale.trials == 1 {
        parts.push(Part::Text(
            "With one trial the margin of a rate is the standard error of its seconds; other values have none.".into(),
        ));
    }
    let rows = drawn.iter().map(|one| {
        let holding = one
            .verdicts
            .iter()
            .flatten()
            .filter(|verdict| verdict.holds)
            .count();
        vec![
            one.figure.name.to_owned(),
            one.figure.title.to_owned(),
            one.agreement().words().to_owned(),
            format!("{holding} of {}", one.verdicts.len()),
        ]
    });
    parts.push(Part::table(
        &["figure", "", "the shape", "claims that hold"],
        rows.collect(),
    ));
    if !failed.is_empty() {
        parts.push(Part::Text("These runs failed, and are missing:".into()));
        parts.push(Part::List(failed.to_vec()));
    }
    for one in drawn {
        parts.extend(one.parts(scale));
    }
    parts
}
