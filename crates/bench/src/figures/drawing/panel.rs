//! One chart of a figure.

use super::super::data::{Data, Measure};
use super::super::figure::{Form, Panel};
use super::axis::{Axis, nice, shown};
use super::canvas::{Anchor, Canvas, text_width};
use super::looks::{self, Look};

const LEFT: f64 = 58.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 46.0;
const TEXT: f64 = 10.0;
/// The height of what shows evictions of one series.
const EVICTIONS_HEIGHT: f64 = 7.0;
/// Of a group of bars, the share that is bars.
const BARS_SHARE: f64 = 0.8;

/// Where a chart and what is in it lie.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl Frame {
    pub fn new(x: f64, y: f64, width: f64, height: f64) -> Self {
        Frame {
            x,
            y,
            width,
            height,
        }
    }

    fn left(&self) -> f64 {
        self.x + LEFT
    }

    fn across(&self) -> f64 {
        self.width - LEFT - RIGHT
    }

    fn floor(&self) -> f64 {
        self.y + self.height - BOTTOM
    }

    /// The height of a value.
    fn up(&self, axis: &Axis, value: f64) -> f64 {
        self.floor() - axis.share(value) * (self.height - TOP - BOTTOM)
    }
}

/// Draws a panel.
pub(super) fn draw(canvas: &mut Canvas, frame: Frame, panel: &Panel, data: &Data, all: &[Look]) {
    let (left, floor) = (frame.left(), frame.floor());
    canvas.text(
        left,
        frame.y + 16.0,
        Anchor::Start,
        12.0,
        true,
        &panel.title,
    );
    canvas.text(left, frame.y + 32.0, Anchor::Start, TEXT, false, panel.y);
    let axis = Axis::of(values(panel, data).into_iter(), panel.log);
    for tick in axis.ticks() {
        let y = frame.up(&axis, tick);
        canvas.line((left, y), (left + frame.across(), y), "stroke=\"#ddd\"");
        canvas.text(left - 5.0, y + 3.5, Anchor::End, TEXT, false, &shown(tick));
    }
    canvas.line(
        (left, floor),
        (left + frame.across(), floor),
        "stroke=\"#333\"",
    );
    let middle = left + frame.across() / 2.0;
    canvas.text(middle, floor + 34.0, Anchor::Middle, TEXT, false, panel.x);
    let looks = panel.series.iter().filter_map(|series| {
        let look = all.iter().find(|look| look.name == series.name);
        look.map(|look| (series.name.as_str(), look))
    });
    let looks: Vec<(&str, &Look)> = looks.collect();
    if values(panel, data).is_empty() {
        canvas.text(
            middle,
            floor - 60.0,
            Anchor::Middle,
            11.0,
            false,
            "not measured",
        );
        return;
    }
    match panel.form {
        Form::Seconds => seconds(canvas, frame, &axis, panel, data, &looks),
        form => {
            let places = places(panel);
            labels(canvas, frame, &places);
            for (number, (name, look)) in looks.iter().enumerate() {
                let found = |x: &String| data.at(&panel.title, name, x);
                let found: Vec<Option<Measure>> = places.iter().map(found).collect();
                match form {
                    Form::Bars => {
                        let of = (number, looks.len());
                        bars(canvas, frame, &axis, look, of, &found);
                    }
                    _ => line(canvas, frame, &axis, look, &found),
                }
            }
        }
    }
}

/// All values that the upright axis must have room for.
fn values(panel: &Panel, data: &Data) -> Vec<f64> {
    let mut values = Vec::new();
    for series in &panel.series {
        if panel.form == Form::Seconds {
            let moments = data.moments(&panel.title, &series.name).unwrap_or_default();
            values.extend(moments.iter().map(|moment| moment.ops_per_s));
        } else if let Some(line) = data.line(&panel.title, &series.name) {
            values.extend(line.iter().map(|(_, one)| one.mean + one.margin));
            // A margin may reach below all that is there; the axis ends before.
            values.extend(line.iter().map(|(_, one)| one.mean));
        }
    }
    values
}

/// The places along the axis, in the order of the series.
fn places(panel: &Panel) -> Vec<String> {
    let mut places: Vec<String> = Vec::new();
    for point in panel.series.iter().flat_map(|series| &series.points) {
        if !places.contains(&point.x) {
            places.push(point.x.clone());
        }
    }
    places
}

fn place(frame: Frame, number: usize, of: usize) -> f64 {
    frame.left() + frame.across() * (number as f64 + 0.5) / of as f64
}

/// Texts below the axis; where they would overlap only each so many of them.
fn labels(canvas: &mut Canvas, frame: Frame, places: &[String]) {
    let widest = places.iter().map(|place| text_width(place, TEXT, false));
    let widest = widest.fold(0.0, f64::max) + 6.0;
    let room = frame.across() / places.len().max(1) as f64;
    let every = (widest / room).ceil().max(1.0) as usize;
    for (number, text) in places.iter().enumerate().step_by(every) {
        let x = place(frame, number, places.len());
        canvas.text(x, frame.floor() + 17.0, Anchor::Middle, TEXT, false, text);
    }
}

/// How far a mean may be off.
fn margin(canvas: &mut Canvas, frame: Frame, axis: &Axis, x: f64, one: &Measure) {
    if one.margin <= 0.0 {
        return;
    }
    let (from, to) = (
        frame.up(axis, one.mean - one.margin),
        frame.up(axis, one.mean + one.margin),
    );
    canvas.line((x, from), (x, to), "stroke=\"#333\"");
    for y in [from, to] {
        canvas.line((x - 3.0, y), (x + 3.0, y), "stroke=\"#333\"");
    }
}

fn line(canvas: &mut Canvas, frame: Frame, axis: &Axis, look: &Look, found: &[Option<Measure>]) {
    let places = found.iter().enumerate();
    let places = places.filter_map(|(number, one)| {
        let x = place(frame, number, found.len());
        one.as_ref().map(|one| (x, frame.up(axis, one.mean), *one))
    });
    let places: Vec<(f64, f64, Measure)> = places.collect();
    let path: Vec<String> = places
        .iter()
        .map(|(x, y, _)| format!("{x:.1} {y:.1}"))
        .collect();
    if path.len() > 1 {
        let path = path.join("L");
        canvas.element(&format!("<path d=\"M{path}\" {}/>", looks::stroke(look)));
    }
    for (x, y, one) in places {
        margin(canvas, frame, axis, x, &one);
        looks::mark(canvas, look, x, y);
    }
}

fn bars(
    canvas: &mut Canvas,
    frame: Frame,
    axis: &Axis,
    look: &Look,
    (number, of): (usize, usize),
    found: &[Option<Measure>],
) {
    let group = frame.across() / found.len().max(1) as f64 * BARS_SHARE;
    let width = group / of.max(1) as f64;
    for (at, one) in found.iter().enumerate() {
        let Some(one) = one else { continue };
        let x = place(frame, at, found.len()) - group / 2.0 + number as f64 * width;
        let y = frame.up(axis, one.mean);
        looks::bar(canvas, look, (x, y), (width, frame.floor() - y));
        margin(canvas, frame, axis, x + width / 2.0, one);
    }
}

fn seconds(
    canvas: &mut Canvas,
    frame: Frame,
    axis: &Axis,
    panel: &Panel,
    data: &Data,
    looks: &[(&str, &Look)],
) {
    let all = looks
        .iter()
        .filter_map(|(name, _)| data.moments(&panel.title, name));
    let last = all.flatten().map(|moment| moment.end_s).fold(1.0, f64::max);
    let step = nice(last / 6.0);
    let across = |second: f64| frame.left() + frame.across() * second / last;
    for number in 0.. {
        let second = f64::from(number) * step;
        if second > last * 1.001 {
            break;
        }
        let (x, y) = (across(second), frame.floor() + 17.0);
        canvas.text(x, y, Anchor::Middle, TEXT, false, &shown(second));
    }
    for (number, (name, look)) in looks.iter().enumerate() {
        let moments = data.moments(&panel.title, name).unwrap_or_default();
        let places = moments.iter().map(|moment| {
            let (x, y) = (across(moment.end_s), frame.up(axis, moment.ops_per_s));
            format!("{x:.1} {y:.1}")
        });
        let path: Vec<String> = places.collect();
        if path.len() > 1 {
            let path = path.join("L");
            canvas.element(&format!("<path d=\"M{path}\" {}/>", looks::stroke(look)));
        }
        let floor = frame.floor() - number as f64 * (EVICTIONS_HEIGHT + 1.0);
        for moment in moments.iter().filter(|moment| moment.blocks > 0) {
            let x = across(moment.end_s);
            let style = format!("stroke=\"{}\" stroke-width=\"2\"", look.colour());
            canvas.line((x, floor), (x, floor - EVICTIONS_HEIGHT), &style);
        }
        if let Some(moment) = moments.get(moments.len() / 2) {
            looks::mark(
                canvas,
                look,
                across(moment.end_s),
                frame.up(axis, moment.ops_per_s),
            );
        }
    }
}
