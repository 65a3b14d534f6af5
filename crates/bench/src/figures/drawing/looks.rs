//! Colour, dashes, mark and hatching of a series: the same for the same name in all figures.

use super::super::figure::Panel;
use super::canvas::Canvas;

/// Colours that are told apart by most people, from light to dark enough on white.
const COLOURS: [&str; 8] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#7b3294", "#333333",
];
const DASHES: [&str; 8] = [
    "", "6 3", "2 3", "8 3 2 3", "4 2", "10 4", "1 2", "12 3 3 3",
];
const MARKS: usize = 8;

/// Series that come in several figures, each with its look's number.
const KNOWN: [(&str, usize); 14] = [
    ("all in memory", 7),
    ("ours", 2),
    ("AR", 0),
    ("SR", 1),
    ("read", 0),
    ("write", 1),
    ("top 5%", 1),
    ("always", 0),
    ("default", 0),
    ("best", 1),
    ("block", 0),
    ("tuple", 1),
    ("aLRU", 0),
    ("LRU", 1),
];

/// How a series looks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Look {
    pub name: String,
    pub number: usize,
}

impl Look {
    pub fn colour(&self) -> &'static str {
        COLOURS[self.number % COLOURS.len()]
    }

    pub fn dashes(&self) -> &'static str {
        DASHES[self.number % DASHES.len()]
    }
}

/// The looks of all series, in the order in which they come first.
pub(super) fn looks(panels: &[Panel]) -> Vec<Look> {
    let mut names: Vec<&str> = Vec::new();
    for series in panels.iter().flat_map(|panel| &panel.series) {
        if !names.contains(&series.name.as_str()) {
            names.push(&series.name);
        }
    }
    let known = |name: &str| KNOWN.iter().find(|(one, _)| *one == name).map(|(_, n)| *n);
    let mut taken: Vec<usize> = names.iter().filter_map(|name| known(name)).collect();
    let mut look = |name: &&str| {
        let number = known(name).unwrap_or_else(|| {
            let free = (0..).find(|number| !taken.contains(number)).unwrap_or(0);
            taken.push(free);
            free
        });
        Look {
            name: (*name).to_owned(),
            number,
        }
    };
    names.iter().map(&mut look).collect()
}

/// A mark at a place.
pub(super) fn mark(canvas: &mut Canvas, look: &Look, x: f64, y: f64) {
    let colour = look.colour();
    let fill = format!("fill=\"{colour}\"");
    let open = format!("fill=\"#fff\" stroke=\"{colour}\" stroke-width=\"1.5\"");
    let path = |d: String, style: &str| format!("<path d=\"{d}\" {style}/>");
    let element = match look.number % MARKS {
        0 => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" {fill}/>"),
        1 => path(format!("M{:.1} {:.1}h7v7h-7z", x - 3.5, y - 3.5), &fill),
        2 => path(format!("M{x:.1} {:.1}l4 7h-8z", y - 4.5), &fill),
        3 => path(
            format!("M{x:.1} {:.1}l4.5 4.5l-4.5 4.5l-4.5 -4.5z", y - 4.5),
            &fill,
        ),
        4 => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" {open}/>"),
        5 => path(format!("M{:.1} {:.1}h7v7h-7z", x - 3.5, y - 3.5), &open),
        6 => path(format!("M{x:.1} {:.1}l4 7h-8z", y - 4.5), &open),
        _ => path(
            format!("M{:.1} {:.1}l7 7m0 -7l-7 7", x - 3.5, y - 3.5),
            &format!("stroke=\"{colour}\" stroke-width=\"1.5\""),
        ),
    };
    canvas.element(&element);
}

/// A piece of line with its mark.
pub(super) fn sample(canvas: &mut Canvas, look: &Look, x: f64, y: f64) {
    canvas.line((x, y), (x + 26.0, y), &stroke(look));
    mark(canvas, look, x + 13.0, y);
}

/// A line's attributes.
pub(super) fn stroke(look: &Look) -> String {
    format!(
        "fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\" stroke-dasharray=\"{}\"",
        look.colour(),
        look.dashes()
    )
}

/// A bar, hatched.
pub(super) fn bar(canvas: &mut Canvas, look: &Look, at: (f64, f64), size: (f64, f64)) {
    let style = format!(
        "fill=\"url(#p{})\" stroke=\"{}\"",
        look.number,
        look.colour()
    );
    canvas.rect(at, size, &style);
}

/// The hatching of a look.
pub(super) fn pattern(look: &Look) -> String {
    let colour = look.colour();
    let lines = match look.number % MARKS {
        0 => String::new(),
        1 => "<path d=\"M0 6L6 0\" stroke=\"#fff\" stroke-width=\"1.5\"/>".to_owned(),
        2 => "<path d=\"M0 0L6 6\" stroke=\"#fff\" stroke-width=\"1.5\"/>".to_owned(),
        3 => "<path d=\"M0 3H6\" stroke=\"#fff\" stroke-width=\"1.5\"/>".to_owned(),
        4 => "<path d=\"M3 0V6\" stroke=\"#fff\" stroke-width=\"1.5\"/>".to_owned(),
        5 => "<path d=\"M0 0L6 6M0 6L6 0\" stroke=\"#fff\"/>".to_owned(),
        6 => "<circle cx=\"3\" cy=\"3\" r=\"1.5\" fill=\"#fff\"/>".to_owned(),
        _ => "<path d=\"M0 3H6M3 0V6\" stroke=\"#fff\"/>".to_owned(),
    };
    format!(
        "<pattern id=\"p{}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">\
         <rect width=\"6\" height=\"6\" fill=\"{colour}\"/>{lines}</pattern>\n",
        look.number
    )
}
