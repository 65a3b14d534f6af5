//! Charts of results: an SVG for each size of data, a block of bars for each cell,
//! and a line where the bound is. No font, script or style from anywhere else.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use thermocline_bench::Result;

use crate::cell::Cell;
use crate::results::{Measurement, Results, cells};
use crate::system::System;

const WIDTH: f64 = 760.0;
const NAMES_WIDTH: f64 = 190.0;
const FIGURES_WIDTH: f64 = 90.0;
const BAR_HEIGHT: f64 = 14.0;
const LINE_HEIGHT: f64 = 18.0;
const TITLE_HEIGHT: f64 = 26.0;

/// `thermocline-peers chart`.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Results that `run --json` wrote.
    pub file: PathBuf,
    /// The directory of the charts.
    #[arg(long, default_value = "docs/charts")]
    pub out: PathBuf,
}

/// Writes the charts.
pub fn run(options: &Options) -> Result<()> {
    let results = Results::open(Some(&options.file))?;
    if results.list().is_empty() {
        return Err(format!("{} has no results", options.file.display()).into());
    }
    fs::create_dir_all(&options.out)?;
    for (name, text) in charts(results.list()) {
        let path = options.out.join(name);
        fs::write(&path, text)?;
        println!("{}", path.display());
    }
    Ok(())
}

/// File names and contents.
fn charts(list: &[Measurement]) -> Vec<(String, String)> {
    let mut cells = cells(list);
    cells.sort_by(|a, b| {
        (b.row_bytes.cmp(&a.row_bytes)).then(a.size_ratio.total_cmp(&b.size_ratio))
    });
    let same = |a: &Cell, b: &Cell| (a.row_bytes, a.size_ratio) == (b.row_bytes, b.size_ratio);
    cells
        .chunk_by(same)
        .map(|group| {
            let name = format!("peers-{}x-{}B.svg", group[0].size_ratio, group[0].row_bytes);
            (name, chart(group, list))
        })
        .collect()
}

fn chart(cells: &[Cell], list: &[Measurement]) -> String {
    let (mut body, mut y) = (String::new(), 6.0);
    for cell in cells {
        let of_cell = list.iter().filter(|result| result.cell() == *cell);
        let results: Vec<_> = of_cell.collect();
        block(&mut body, &mut y, cell, &results);
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{y}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{body}</svg>\n"
    )
}

fn block(svg: &mut String, y: &mut f64, cell: &Cell, results: &[&Measurement]) {
    let bound = results.iter().find_map(|result| result.bound_ops_per_s);
    let rates = results.iter().filter_map(|result| result.ops_per_s);
    let most = rates.chain(bound).fold(1.0, f64::max);
    let scale = (WIDTH - NAMES_WIDTH - FIGURES_WIDTH) / most;
    *y += TITLE_HEIGHT;
    let title = format!("{cell}, operations/s");
    text(svg, 8.0, *y - 8.0, "font-weight=\"bold\"", &title);
    let top = *y;
    for result in results {
        let rate = result.ops_per_s.unwrap_or(0.0);
        let colour = match result.system {
            ours if ours.is_ours() => "#0b6e99",
            System::Hashmap => "#ccc",
            _ => "#d9a05b",
        };
        let width = rate * scale;
        text(svg, 16.0, *y + 11.0, "", result.system.name());
        // Writing to a string can't fail.
        let _ = writeln!(
            svg,
            "<rect x=\"{NAMES_WIDTH}\" y=\"{:.0}\" width=\"{width:.1}\" height=\"{BAR_HEIGHT}\" fill=\"{colour}\"/>",
            *y
        );
        let figure = result
            .ops_per_s
            .map_or("none".into(), |rate| format!("{rate:.0}"));
        text(svg, NAMES_WIDTH + width + 5.0, *y + 11.0, "", &figure);
        *y += LINE_HEIGHT;
    }
    if let Some(bound) = bound {
        let x = NAMES_WIDTH + bound * scale;
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} {top:.0}V{:.0}\" stroke=\"#b00\" stroke-dasharray=\"4 3\"/>",
            *y
        );
        text(
            svg,
            x + 4.0,
            *y - 2.0,
            "fill=\"#b00\"",
            &format!("bound {bound:.0}"),
        );
    }
    *y += 6.0;
}

/// The texts are names and figures of this program: nothing needs escaping.
fn text(svg: &mut String, x: f64, y: f64, attributes: &str, text: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.0}\" {attributes}>{text}</text>"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Matrix;
    use crate::results::tests::measurement;

    #[test]
    fn each_size_of_data_has_a_chart_with_a_bar_for_each_result() {
        let cells = Matrix::Quick.cells();
        let mut list: Vec<_> = (cells.iter())
            .map(|cell| measurement(cell, System::Thermocline, Some(500.0)))
            .collect();
        list.push(measurement(&cells[0], System::Lmdb, None));
        let charts = charts(&list);
        let names: Vec<_> = charts.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["peers-0.5x-1000B.svg", "peers-8x-1000B.svg"]);
        let bars: usize = charts
            .iter()
            .map(|(_, svg)| svg.matches("height=\"14\"").count())
            .sum();
        assert_eq!(bars, list.len());
        assert!(
            charts
                .iter()
                .all(|(_, svg)| svg.starts_with("<svg") && svg.ends_with("</svg>\n"))
        );
    }
}
