//! Results: a JSON list that is read again, so that a run can be stopped and taken
//! up, and a table of each cell.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thermocline_bench::{Result, size};

use crate::cell::{Cell, Durability};
use crate::system::System;

/// A system's result in a cell. What was not measured is `null`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The system.
    pub system: System,
    /// Bytes of data by memory limit.
    pub size_ratio: f64,
    /// Zipf's exponent.
    pub zipf: f64,
    /// The share of reads; 0 is inserts only.
    pub reads: f64,
    /// Bytes of a row.
    pub row_bytes: usize,
    /// Requests under way.
    pub in_flight: usize,
    /// Threads.
    pub threads: usize,
    /// What a commit promises.
    pub durability: Durability,
    /// Operations a second; the median of the repeats.
    pub ops_per_s: Option<f64>,
    /// 999 of 1000 operations took no longer; the median of the repeats.
    pub p999_us: Option<f64>,
    /// The largest resident memory of all repeats.
    pub rss_max_bytes: Option<u64>,
    /// Accesses that missed memory, where the system tells.
    pub miss_share: Option<f64>,
    /// What the host of a virtual machine took of its processors while it was measured, from
    /// 0 to 1; the median of the repeats.
    #[serde(default)]
    pub stolen_share: Option<f64>,
    /// Reads a second that the device was held to, if it was.
    #[serde(default)]
    pub device_reads_per_s: Option<u64>,
    /// What the device and the best static choice of tuples allow.
    pub bound_ops_per_s: Option<f64>,
    /// Its rate by that of the best rival in the cell.
    pub ratio_to_best_rival: Option<f64>,
    /// What was unusual.
    pub note: Option<String>,
}

impl Measurement {
    /// The cell that it belongs to.
    pub fn cell(&self) -> Cell {
        Cell {
            size_ratio: self.size_ratio,
            zipf: self.zipf,
            reads: self.reads,
            row_bytes: self.row_bytes,
            in_flight: self.in_flight,
            durability: self.durability,
        }
    }
}

/// All results, in the order of measuring, and the file that keeps them.
#[derive(Debug)]
pub struct Results {
    path: Option<PathBuf>,
    list: Vec<Measurement>,
}

impl Results {
    /// What the file has; nothing when it is not there.
    pub fn open(path: Option<&Path>) -> Result<Self> {
        let list = match path.map(fs::read) {
            Some(Ok(text)) => serde_json::from_slice(&text)?,
            Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => Vec::new(),
        };
        Ok(Results {
            path: path.map(Path::to_owned),
            list,
        })
    }

    /// All of them.
    pub fn list(&self) -> &[Measurement] {
        &self.list
    }

    /// Whether a system was measured in a cell, or tried.
    pub fn has(&self, cell: &Cell, system: System) -> bool {
        self.of(cell).any(|result| result.system == system)
    }

    fn of(&self, cell: &Cell) -> impl Iterator<Item = &Measurement> {
        self.list
            .iter()
            .filter(move |result| result.cell() == *cell)
    }

    /// Adds a cell's results and writes the file, all of it or nothing.
    pub fn add(&mut self, cell: &Cell, added: Vec<Measurement>) -> Result<()> {
        self.list.extend(added);
        let best = best_rival(self.of(cell));
        for result in self.list.iter_mut().filter(|result| result.cell() == *cell) {
            result.ratio_to_best_rival = result.ops_per_s.zip(best).map(|(ours, best)| ours / best);
        }
        let Some(path) = &self.path else {
            return Ok(());
        };
        let mut text = serde_json::to_string_pretty(&self.list)?;
        text.push('\n');
        let next = path.with_extension("json.next");
        fs::write(&next, text)?;
        Ok(fs::rename(&next, path)?)
    }

    /// A cell's table.
    pub fn table(&self, cell: &Cell) -> String {
        let mut lines = vec![format!("\n{cell}")];
        if let Some(bound) = self.of(cell).find_map(|result| result.bound_ops_per_s) {
            lines[0] += &format!("; bound {bound:.0}/s");
        }
        lines.push(format!(
            "{:<26}{:>12}{:>9}{:>9}{:>13}{:>10}{:>8}{:>8}  note",
            "system", "ops/s", "to best", "of bound", "p99.9 (us)", "RSS", "missed", "stolen"
        ));
        let figure = |value: Option<f64>, decimals: usize| match value {
            Some(value) => format!("{value:.decimals$}"),
            None => "-".into(),
        };
        let percent =
            |value: Option<f64>| value.map_or("-".into(), |v| format!("{:.1}%", v * 100.0));
        let mut results: Vec<_> = self.of(cell).collect();
        results.sort_by(|a, b| {
            b.ops_per_s
                .unwrap_or(0.0)
                .total_cmp(&a.ops_per_s.unwrap_or(0.0))
        });
        for result in results {
            let of_bound = result.ops_per_s.zip(result.bound_ops_per_s);
            lines.push(format!(
                "{:<26}{:>12}{:>9}{:>9}{:>13}{:>10}{:>8}{:>8}  {}",
                result.system.name(),
                figure(result.ops_per_s, 0),
                figure(result.ratio_to_best_rival, 2),
                percent(of_bound.map(|(ours, bound)| ours / bound)),
                figure(result.p999_us, 0),
                result.rss_max_bytes.map_or("-".into(), size::display),
                percent(result.miss_share),
                percent(result.stolen_share),
                result.note.as_deref().unwrap_or_default(),
            ));
        }
        lines.join("\n")
    }
}

/// The cells of results, in their order.
pub fn cells(list: &[Measurement]) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    for result in list {
        if !cells.contains(&result.cell()) {
            cells.push(result.cell());
        }
    }
    cells
}

fn best_rival<'a>(results: impl Iterator<Item = &'a Measurement>) -> Option<f64> {
    results
        .filter(|result| result.system.is_rival())
        .filter_map(|result| result.ops_per_s)
        .max_by(f64::total_cmp)
}

/// The one in the middle; of an even number the mean of the two.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::matrix::Matrix;

    pub fn measurement(cell: &Cell, system: System, ops_per_s: Option<f64>) -> Measurement {
        Measurement {
            system,
            size_ratio: cell.size_ratio,
            zipf: cell.zipf,
            reads: cell.reads,
            row_bytes: cell.row_bytes,
            in_flight: cell.in_flight,
            threads: 2,
            durability: cell.durability,
            ops_per_s,
            p999_us: None,
            rss_max_bytes: Some(1 << 20),
            miss_share: None,
            stolen_share: None,
            device_reads_per_s: None,
            bound_ops_per_s: Some(1000.0),
            ratio_to_best_rival: None,
            note: None,
        }
    }

    #[test]
    fn a_result_has_the_keys_that_are_documented_and_no_others() {
        let cell = Matrix::Quick.cells()[0];
        let json = serde_json::to_value(measurement(&cell, System::Lmdb, None)).expect("JSON");
        let mut keys: Vec<_> = json.as_object().expect("an object").keys().collect();
        keys.sort();
        let wanted = [
            "bound_ops_per_s",
            "device_reads_per_s",
            "durability",
            "in_flight",
            "miss_share",
            "note",
            "ops_per_s",
            "p999_us",
            "ratio_to_best_rival",
            "reads",
            "row_bytes",
            "rss_max_bytes",
            "size_ratio",
            "stolen_share",
            "system",
            "threads",
            "zipf",
        ];
        assert_eq!(keys, wanted);
        assert_eq!(json["durability"], "relaxed");
        assert!(json["ops_per_s"].is_null());
    }

    #[test]
    fn results_are_taken_up_again_and_compared_with_the_best_rival() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("peers.json");
        let cells = Matrix::Quick.cells();
        let mut results = Results::open(Some(&path)).expect("nothing yet");
        let first = vec![
            measurement(&cells[0], System::Thermocline, Some(300.0)),
            measurement(&cells[0], System::Hashmap, Some(1000.0)),
        ];
        results.add(&cells[0], first).expect("written");
        assert_eq!(results.list()[0].ratio_to_best_rival, None);
        let mut results = Results::open(Some(&path)).expect("read");
        assert!(results.has(&cells[0], System::Thermocline));
        assert!(!results.has(&cells[0], System::Lmdb));
        assert!(!results.has(&cells[1], System::Thermocline));
        let later = vec![
            measurement(&cells[0], System::Lmdb, Some(200.0)),
            measurement(&cells[0], System::Sqlite, Some(100.0)),
            measurement(&cells[0], System::Fjall, None),
        ];
        results.add(&cells[0], later).expect("written");
        let ratios: Vec<_> = results
            .list()
            .iter()
            .map(|r| r.ratio_to_best_rival)
            .collect();
        assert_eq!(ratios, [Some(1.5), Some(5.0), Some(1.0), Some(0.5), None]);
        let table = results.table(&cells[0]);
        assert!(
            table.contains("bound 1000/s") && table.contains("1.50"),
            "{table}"
        );
    }

    #[test]
    fn a_median_is_the_middle() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![3.0, 1.0]), Some(2.0));
    }
}
