use super::*;
use crate::figures::data::Data;
use crate::figures::figures;
use crate::figures::scale::Scale;

/// A text's box: left, top, right, bottom.
type TextBox = (f64, f64, f64, f64, String);

/// The boxes of all texts in an SVG, from its own attributes.
fn boxes(svg: &str) -> Vec<TextBox> {
    let texts = svg.split("<text ").skip(1).map(|rest| {
        let (attributes, rest) = rest.split_once('>').expect("the element's end");
        let text = rest.split('<').next().expect("its text");
        let attribute = |name: &str| -> String {
            let (_, value) = attributes.split_once(&format!("{name}=\"")).expect(name);
            value.split('"').next().expect("its end").to_owned()
        };
        let number = |name: &str| attribute(name).parse::<f64>().expect("a number");
        let (x, y, size) = (number("x"), number("y"), number("font-size"));
        let text = text
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&");
        let width = text_width(&text, size, attribute("font-weight") == "bold");
        let left = match attribute("text-anchor").as_str() {
            "start" => x,
            "middle" => x - width / 2.0,
            _ => x - width,
        };
        (left, y - size * 0.8, left + width, y + size * 0.2, text)
    });
    texts.collect()
}

fn overlaps(a: &TextBox, b: &TextBox) -> bool {
    a.0 < b.2 && b.0 < a.2 && a.1 < b.3 && b.1 < a.3
}

/// Pairs of texts that overlap, and texts that leave the picture.
fn collisions(svg: &str) -> Vec<String> {
    let boxes = boxes(svg);
    let size = |name: &str| -> f64 {
        let (_, value) = svg.split_once(&format!(" {name}=\"")).expect(name);
        value
            .split('"')
            .next()
            .and_then(|text| text.parse().ok())
            .expect("a number")
    };
    let (width, height) = (size("width"), size("height"));
    let mut found = Vec::new();
    for (number, one) in boxes.iter().enumerate() {
        if one.0 < 0.0 || one.1 < 0.0 || one.2 > width || one.3 > height {
            found.push(format!("\"{}\" leaves the picture", one.4));
        }
        for other in &boxes[number + 1..] {
            if overlaps(one, other) {
                found.push(format!("\"{}\" lies over \"{}\"", one.4, other.4));
            }
        }
    }
    found
}

/// Data of all points of a figure, as large as they get.
fn full_of(panels: &[Panel]) -> Data {
    let mut data = Data::default();
    for panel in panels {
        for (number, series) in panel.series.iter().enumerate() {
            for (at, point) in series.points.iter().enumerate() {
                let value = 1_234_567.0 / (1.0 + (number * 7 + at) as f64);
                data = data.with(&panel.title, &series.name, &[(&point.x, value)]);
            }
            let seconds: Vec<f64> = (0..60).map(|at| f64::from(at) * 2e4).collect();
            data = data.lasting(&panel.title, &series.name, &seconds);
        }
    }
    data
}

#[test]
fn no_label_of_any_figure_lies_over_another() {
    for scale in [Scale::quick(), Scale::full()] {
        for figure in figures() {
            let panels = (figure.panels)(&scale);
            for data in [full_of(&panels), Data::default()] {
                let title = format!("{} {}", figure.name, figure.title);
                let found = collisions(&draw(&title, &panels, &data));
                assert!(found.is_empty(), "{}: {found:?}", figure.name);
            }
        }
    }
}

#[test]
fn labels_that_lie_over_each_other_are_noticed() {
    let mut canvas = Canvas::new(100.0, 50.0);
    canvas.text(10.0, 20.0, Anchor::Start, 10.0, false, "one");
    canvas.text(20.0, 22.0, Anchor::Start, 10.0, false, "two");
    canvas.text(90.0, 40.0, Anchor::Start, 10.0, false, "three");
    let found = collisions(&canvas.finish(&[]));
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn no_two_series_of_a_figure_look_alike() {
    for figure in figures() {
        let looks = looks(&(figure.panels)(&Scale::full()));
        let mut numbers: Vec<usize> = looks.iter().map(|look| look.number).collect();
        let count = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), count, "{}", figure.name);
        assert!(numbers.iter().all(|number| *number < 8), "{}", figure.name);
    }
}
