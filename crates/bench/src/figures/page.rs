//! A page, written once and given as Markdown and as HTML.

/// A part of a page.
pub(super) enum Part {
    Heading(usize, String),
    Text(String),
    Image {
        file: String,
        says: String,
    },
    Table {
        head: Vec<String>,
        rows: Vec<Vec<String>>,
    },
    List(Vec<String>),
}

impl Part {
    /// A table; the head's texts are few.
    pub fn table(head: &[&str], rows: Vec<Vec<String>>) -> Self {
        Part::Table {
            head: head.iter().map(|text| (*text).to_owned()).collect(),
            rows,
        }
    }
}

/// As Markdown.
pub(super) fn markdown(parts: &[Part]) -> String {
    let cell = |text: &String| text.replace('|', "\\|").replace('\n', " ");
    let row = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(cell).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let of_part = |part: &Part| match part {
        Part::Heading(level, text) => format!("{} {text}\n", "#".repeat(*level)),
        Part::Text(text) => format!("{text}\n"),
        Part::Image { file, says } => format!("![{says}]({file})\n"),
        Part::Table { head, rows } => {
            let rule = format!("|{}\n", "---|".repeat(head.len()));
            let rows: String = rows.iter().map(|cells| row(cells)).collect();
            format!("{}{rule}{rows}", row(head))
        }
        Part::List(items) => items.iter().map(|item| format!("* {item}\n")).collect(),
    };
    let parts: Vec<String> = parts.iter().map(of_part).collect();
    parts.join("\n")
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;");
    let text = text.replace('<', "&lt;").replace('>', "&gt;");
    // Code between back ticks.
    let mut pieces = text.split('`');
    let mut html = pieces.next().unwrap_or_default().to_owned();
    for (number, piece) in pieces.enumerate() {
        html += if number % 2 == 0 { "<code>" } else { "</code>" };
        html += piece;
    }
    html
}

/// As HTML.
pub(super) fn html(title: &str, parts: &[Part]) -> String {
    let row = |cells: &[String], tag: &str| {
        let cells = cells.iter();
        let cells: String = cells
            .map(|text| format!("<{tag}>{}</{tag}>", escaped(text)))
            .collect();
        format!("<tr>{cells}</tr>\n")
    };
    let of_part = |part: &Part| match part {
        Part::Heading(level, text) => format!("<h{level}>{}</h{level}>\n", escaped(text)),
        Part::Text(text) => format!("<p>{}</p>\n", escaped(text)),
        Part::Image { file, says } => {
            format!(
                "<p><img src=\"{}\" alt=\"{}\"></p>\n",
                escaped(file),
                escaped(says)
            )
        }
        Part::Table { head, rows } => {
            let rows: String = rows.iter().map(|cells| row(cells, "td")).collect();
            format!("<table>\n{}{rows}</table>\n", row(head, "th"))
        }
        Part::List(items) => {
            let items: String = items
                .iter()
                .map(|item| format!("<li>{}</li>\n", escaped(item)))
                .collect();
            format!("<ul>\n{items}</ul>\n")
        }
    };
    let body: String = parts.iter().map(of_part).collect();
    let style = "body{font-family:sans-serif;max-width:75em;margin:2em auto;padding:0 1em}\
                 table{border-collapse:collapse}td,th{border:1px solid #bbb;padding:.25em .6em;\
                 text-align:left;vertical-align:top}img{max-width:100%}";
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <title>{}</title>\n<style>{style}</style>\n</head>\n<body>\n{body}</body>\n</html>\n",
        escaped(title)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_have_the_same_and_neither_is_broken_by_its_signs() {
        let parts = [
            Part::Heading(2, "a < b".into()),
            Part::Image {
                file: "a.svg".into(),
                says: "a chart".into(),
            },
            Part::table(&["one", "two"], vec![vec!["x | y".into(), "`code`".into()]]),
            Part::List(vec!["item".into()]),
        ];
        assert_eq!(
            markdown(&parts),
            "## a < b\n\n![a chart](a.svg)\n\n| one | two |\n|---|---|\n| x \\| y | `code` |\n\n* item\n"
        );
        let html = html("title", &parts);
        assert!(html.contains("<h2>a &lt; b</h2>"));
        assert!(html.contains("<td>x | y</td><td><code>code</code></td>"));
    }
}
