//! Draws a figure as SVG, without font, script or style from anywhere else.
//!
//! | file | holds |
//! |---|---|
//! | `canvas.rs` | shapes and texts, and the box that a text takes |
//! | `axis.rs` | from values to places, and the ticks between |
//! | `looks.rs` | colour, dashes and mark of a series, the same in all figures |
//! | `panel.rs` | one chart: lines, bars, or seconds with their evictions |
//!
//! A series is told by its mark and its dashes, too, not by its colour alone. Labels that would
//! overlap are left out along an axis; a test looks at the boxes of every figure.

mod axis;
mod canvas;
mod looks;
mod panel;

use super::data::Data;
use super::figure::{Form, Panel};
use canvas::{Anchor, Canvas, text_width};
use looks::{Look, looks};

const PANEL_WIDTH: f64 = 380.0;
const PANEL_HEIGHT: f64 = 250.0;
const COLUMNS_MAX: usize = 3;
const TITLE_HEIGHT: f64 = 28.0;
const LEGEND_HEIGHT: f64 = 20.0;
/// Of a legend's entry: the sample and the space around.
const SAMPLE_WIDTH: f64 = 34.0;
const ENTRY_GAP: f64 = 18.0;
const MARGIN: f64 = 10.0;

/// A figure's SVG.
pub(super) fn draw(title: &str, panels: &[Panel], data: &Data) -> String {
    let columns = match panels.len() {
        4 => 2,
        count => count.clamp(1, COLUMNS_MAX),
    };
    let rows = panels.len().div_ceil(columns);
    let title_width = text_width(title, 14.0, true) + 2.0 * MARGIN;
    let width = (columns as f64 * PANEL_WIDTH + 2.0 * MARGIN).max(title_width);
    let looks = looks(panels);
    let entries = legend(&looks, width - 2.0 * MARGIN);
    let legend_rows = entries.last().map_or(0, |entry| entry.row + 1);
    let below = TITLE_HEIGHT + rows as f64 * PANEL_HEIGHT;
    let height = below + legend_rows as f64 * LEGEND_HEIGHT + MARGIN;
    let mut canvas = Canvas::new(width, height);
    canvas.text(MARGIN, 19.0, Anchor::Start, 14.0, true, title);
    for (place, panel) in panels.iter().enumerate() {
        let x = MARGIN + (place % columns) as f64 * PANEL_WIDTH;
        let y = TITLE_HEIGHT + (place / columns) as f64 * PANEL_HEIGHT;
        let frame = panel::Frame::new(x, y, PANEL_WIDTH, PANEL_HEIGHT);
        panel::draw(&mut canvas, frame, panel, data, &looks);
    }
    let bars = panels.iter().any(|panel| panel.form == Form::Bars);
    for entry in entries {
        let x = MARGIN + entry.x;
        let y = below + (entry.row as f64 + 0.5) * LEGEND_HEIGHT;
        match bars {
            true => looks::bar(&mut canvas, entry.look, (x, y - 6.0), (26.0, 12.0)),
            false => looks::sample(&mut canvas, entry.look, x, y),
        }
        let name = &entry.look.name;
        canvas.text(x + SAMPLE_WIDTH, y + 4.0, Anchor::Start, 11.0, false, name);
    }
    canvas.finish(&looks)
}

struct Entry<'a> {
    look: &'a Look,
    x: f64,
    row: usize,
}

/// The legend's entries, from left to right and then below.
fn legend(looks: &[Look], width: f64) -> Vec<Entry<'_>> {
    let (mut x, mut row) = (0.0, 0);
    let mut entries = Vec::new();
    for look in looks {
        let needed = SAMPLE_WIDTH + text_width(&look.name, 11.0, false) + ENTRY_GAP;
        if x > 0.0 && x + needed > width {
            x = 0.0;
            row += 1;
        }
        entries.push(Entry { look, x, row });
        x += needed;
    }
    entries
}

#[cfg(test)]
mod tests;
