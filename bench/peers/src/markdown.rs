//! Results as a table in Markdown, a line for each cell, and what they come to.
//!
//! Of each cell it has the rates, ours by the best rival's and by the bound, and ours
//! and the best rival's latency. `results` has the table of a single cell.

use std::path::PathBuf;

use thermocline_bench::{Result, size};

use crate::cell::Cell;
use crate::results::{Measurement, Results, cells};
use crate::run::RUN_AGAIN;
use crate::system::System;

/// `thermocline-peers table`.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Results that `run --json` wrote.
    pub file: PathBuf,
}

/// Prints the table and the summary.
pub fn run(options: &Options) -> Result<()> {
    let results = Results::open(Some(&options.file))?;
    if results.list().is_empty() {
        return Err(format!("{} has no results", options.file.display()).into());
    }
    print!("{}", table(results.list()));
    print!("\n{}", summary(results.list()));
    Ok(())
}

fn of_cell(list: &[Measurement], cell: Cell) -> impl Iterator<Item = &Measurement> {
    list.iter().filter(move |result| result.cell() == cell)
}

/// The fastest of ours or of the rivals.
fn best(list: &[Measurement], cell: Cell, which: fn(System) -> bool) -> Option<&Measurement> {
    of_cell(list, cell)
        .filter(|result| which(result.system))
        .filter_map(|result| Some((result.ops_per_s?, result)))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, result)| result)
}

/// What we say of ourselves: the default, where it was measured.
fn ours(list: &[Measurement], cell: Cell) -> Option<&Measurement> {
    let default = |system| system == System::Thermocline;
    best(list, cell, default).or_else(|| best(list, cell, System::is_ours))
}

fn table(list: &[Measurement]) -> String {
    let taking_part = |system: &System| list.iter().any(|result| result.system == *system);
    let systems: Vec<System> = System::ALL.into_iter().filter(taking_part).collect();
    let mut heads = vec!["cell"];
    heads.extend(systems.iter().map(|system| system.name()));
    heads.extend([
        "to the best rival",
        "of the bound",
        "missed",
        "p99.9 µs, ours / best rival's",
        "RSS max, ours / best rival's",
    ]);
    let mut lines = vec![line(heads.iter().map(|head| (*head).to_owned()))];
    let rules = heads.iter().enumerate();
    lines.push(line(rules.map(|(number, _)| {
        let rule = if number == 0 { "---" } else { "---:" };
        rule.to_owned()
    })));
    for cell in cells(list) {
        let (ours, rival) = (ours(list, cell), best(list, cell, System::is_rival));
        let mut fields = vec![cell.to_string()];
        fields.extend(systems.iter().map(|system| {
            let result = of_cell(list, cell).find(|result| result.system == *system);
            result.map_or("-".to_owned(), rate)
        }));
        let of_bound = ours.and_then(|ours| Some(ours.ops_per_s? / ours.bound_ops_per_s?));
        let latency = |result: Option<&Measurement>| {
            let latency = result.and_then(|result| result.p999_us);
            latency.map_or("-".to_owned(), |us| format!("{us:.0}"))
        };
        fields.extend([
            ours.and_then(|ours| ours.ratio_to_best_rival)
                .map_or("-".to_owned(), |ratio| format!("{ratio:.2}")),
            percent(of_bound, 0),
            percent(ours.and_then(|ours| ours.miss_share), 1),
            format!("{} / {}", latency(ours), latency(rival)),
            format!("{} / {}", resident(ours), resident(rival)),
        ]);
        lines.push(line(fields.into_iter()));
    }
    lines.join("\n") + "\n"
}

/// Operations a second, with a star where caches had to be smaller.
fn rate(result: &Measurement) -> String {
    let reduced = result.note.as_ref().is_some_and(|n| n.contains(RUN_AGAIN));
    match result.ops_per_s {
        None => "failed".to_owned(),
        Some(rate) => format!("{rate:.0}{}", if reduced { "*" } else { "" }),
    }
}

fn resident(result: Option<&Measurement>) -> String {
    let bytes = result.and_then(|result| result.rss_max_bytes);
    bytes.map_or("-".to_owned(), size::display)
}

fn line(fields: impl Iterator<Item = String>) -> String {
    format!("| {} |", fields.collect::<Vec<_>>().join(" | "))
}

fn percent(share: Option<f64>, decimals: usize) -> String {
    share.map_or("-".to_owned(), |share| {
        format!("{:.decimals$} %", share * 100.0)
    })
}

/// In how many cells we are ahead, the ratios' middle, and where we are behind.
fn summary(list: &[Measurement]) -> String {
    let ratio = |cell| ours(list, cell)?.ratio_to_best_rival;
    let mut ratios: Vec<(f64, Cell)> = cells(list)
        .into_iter()
        .filter_map(|cell| Some((ratio(cell)?, cell)))
        .collect();
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let Some((middle, _)) = ratios.get(ratios.len() / 2) else {
        return "no cell has a rival\n".to_owned();
    };
    let behind = ratios.iter().take_while(|(ratio, _)| *ratio < 1.0);
    let mut text = format!(
        "{} cells with a rival, ahead in {}; the ratio is {middle:.2} in the middle one\n",
        ratios.len(),
        ratios.len() - behind.clone().count()
    );
    for (ratio, cell) in behind {
        text += &format!("{ratio:.2}: {cell}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Matrix;
    use crate::results::tests::measurement;

    fn results() -> Vec<Measurement> {
        let cells = Matrix::Quick.cells();
        let mut results = Results::open(None).expect("nothing yet");
        for (cell, ours) in [(cells[0], 300.0), (cells[4], 90.0)] {
            let added = vec![
                measurement(&cell, System::Thermocline, Some(ours)),
                measurement(&cell, System::ThermoclineHash, Some(1000.0)),
                Measurement {
                    note: Some(format!(
                        "killed by its cgroup, {RUN_AGAIN} 80% of its caches"
                    )),
                    ..measurement(&cell, System::Lmdb, Some(100.0))
                },
                measurement(&cell, System::Sqlite, None),
            ];
            results.add(&cell, added).expect("kept");
        }
        results.list().to_vec()
    }

    #[test]
    fn a_cell_has_a_line_with_every_system_and_the_ratio() {
        let table = table(&results());
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 4);
        let columns = lines[0].matches('|').count();
        assert!(
            lines
                .iter()
                .all(|line| line.matches('|').count() == columns)
        );
        assert!(lines[2].contains("| 300 | 1000 | 100* | failed | 3.00 | 30 % |"));
        assert!(lines[3].contains("| 90 | 1000 | 100* | failed | 0.90 | 9 % |"));
    }

    #[test]
    fn the_summary_names_the_cells_where_we_are_behind() {
        let text = summary(&results());
        let behind = Matrix::Quick.cells()[4];
        assert!(text.starts_with("2 cells with a rival, ahead in 1"));
        assert!(text.ends_with(&format!("0.90: {behind}\n")));
    }
}
