//! Shapes and texts of an SVG.

use std::fmt::Write;

use super::looks::{self, Look};

/// A letter's width by its height, for the widest of the usual fonts.
const LETTER: f64 = 0.58;
const LETTER_BOLD: f64 = 0.63;

/// Where a text lies by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    pub fn name(self) -> &'static str {
        match self {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        }
    }
}

/// About how wide a text is, rather more than less.
pub(super) fn text_width(text: &str, size: f64, bold: bool) -> f64 {
    let letter = if bold { LETTER_BOLD } else { LETTER };
    text.chars().count() as f64 * letter * size
}

/// An SVG that is being drawn.
pub(super) struct Canvas {
    width: f64,
    height: f64,
    body: String,
}

/// What XML does not take as it is.
fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}

impl Canvas {
    pub fn new(width: f64, height: f64) -> Self {
        Canvas {
            width,
            height,
            body: String::new(),
        }
    }

    /// An element, as it is.
    pub fn element(&mut self, element: &str) {
        self.body.push_str(element);
        self.body.push('\n');
    }

    pub fn text(&mut self, x: f64, y: f64, anchor: Anchor, size: f64, bold: bool, text: &str) {
        let weight = if bold { "bold" } else { "normal" };
        let (anchor, text) = (anchor.name(), escaped(text));
        // Writing to a string can't fail.
        let _ = writeln!(
            self.body,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\" \
             font-weight=\"{weight}\">{text}</text>"
        );
    }

    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), attributes: &str) {
        let _ = writeln!(
            self.body,
            "<path d=\"M{:.1} {:.1}L{:.1} {:.1}\" {attributes}/>",
            from.0, from.1, to.0, to.1
        );
    }

    pub fn rect(&mut self, at: (f64, f64), size: (f64, f64), attributes: &str) {
        let _ = writeln!(
            self.body,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" {attributes}/>",
            at.0,
            at.1,
            size.0.max(0.0),
            size.1.max(0.0)
        );
    }

    /// The whole, with the patterns of these looks.
    pub fn finish(self, looks: &[Look]) -> String {
        let (width, height, body) = (self.width, self.height, self.body);
        let patterns: String = looks.iter().map(looks::pattern).collect();
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" \
             height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             font-family=\"sans-serif\">\n<defs>\n{patterns}</defs>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{body}</svg>\n"
        )
    }
}
