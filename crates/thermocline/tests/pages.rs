//! The pages keep to some rules: each link leads somewhere, a reader who begins at the first page
//! of the docs comes to each of them, and those for newcomers are short and plain.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Pages with a bound on their lines.
const SHORT_PAGES: &[(&str, usize)] = &[("README.md", 90), ("docs/benchmarks.md", 160)];

/// Where readers begin.
const FIRST_PAGE: &str = "docs/index.md";

/// Pages, and directories of pages, whose sentences are short.
const PLAIN_PAGES: &[&str] = &[
    "README.md",
    "docs/index.md",
    "docs/start.md",
    "docs/guides",
    "docs/explain",
];

/// The longest sentence of those, in words.
const WORDS_MAX: usize = 30;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the workspace is there")
}

/// The pages, as paths from the workspace's root.
fn pages() -> Vec<PathBuf> {
    let mut waiting = vec![root(), root().join("docs")];
    let mut found = Vec::new();
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).expect("a readable directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && path.starts_with(root().join("docs")) && directory != root() {
                waiting.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                found.push(path.strip_prefix(root()).expect("below").to_owned());
            }
        }
    }
    assert!(found.len() > 10, "the pages were found");
    found
}

fn text_of(page: &Path) -> String {
    fs::read_to_string(root().join(page)).expect("a text")
}

/// A path without `..` and `.`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// The links of a page that are not to the outside: file and heading.
fn links(page: &Path, text: &str) -> Vec<(PathBuf, String)> {
    let targets = text.split("](").skip(1).filter_map(|rest| {
        let target = rest.split(')').next()?;
        let outside = target.contains("://") || target.contains(char::is_whitespace);
        (!outside).then_some(target)
    });
    targets
        .map(|target| {
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let beside = page.parent().unwrap_or(Path::new(""));
            let file = match file {
                "" => page.to_owned(),
                file => plain(&beside.join(file)),
            };
            (file, heading.to_owned())
        })
        .collect()
}

/// The names by which a page's headings are linked.
fn headings(text: &str) -> BTreeSet<String> {
    let titles = text.lines().filter(|line| line.starts_with('#'));
    titles
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title.chars().filter_map(|character| match character {
                ' ' => Some('-'),
                '-' | '_' => Some(character),
                character => character.is_alphanumeric().then_some(character),
            });
            kept.collect()
        })
        .collect()
}

#[test]
fn each_link_leads_somewhere() {
    let mut wrong = Vec::new();
    for page in pages() {
        for (file, heading) in links(&page, &text_of(&page)) {
            if !root().join(&file).exists() {
                wrong.push(format!("{}: no {}", page.display(), file.display()));
            } else if !heading.is_empty() && !headings(&text_of(&file)).contains(&heading) {
                let file = file.display();
                wrong.push(format!(
                    "{}: no heading {heading} in {file}",
                    page.display()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// The pages that links lead to from this one, itself included.
fn reached_from(page: &str) -> BTreeSet<PathBuf> {
    let mut reached = BTreeSet::from([PathBuf::from(page)]);
    let mut waiting = vec![PathBuf::from(page)];
    while let Some(page) = waiting.pop() {
        for (file, _) in links(&page, &text_of(&page)) {
            let is_page = file.extension().is_some_and(|end| end == "md");
            if is_page && root().join(&file).exists() && reached.insert(file.clone()) {
                waiting.push(file);
            }
        }
    }
    reached
}

#[test]
fn links_lead_from_the_first_page_to_all_pages() {
    let reached = reached_from(FIRST_PAGE);
    let known = [Path::new("README.md"), Path::new("CHANGELOG.md")];
    let pages = pages().into_iter();
    let alone = pages.filter(|page| !reached.contains(page) && !known.contains(&page.as_path()));
    let alone: Vec<_> = alone.map(|page| page.display().to_string()).collect();
    assert!(
        alone.is_empty(),
        "no links lead from {FIRST_PAGE} to\n{}\n",
        alone.join("\n")
    );
}

#[test]
fn the_first_pages_are_short() {
    for (page, most) in SHORT_PAGES {
        let lines = text_of(Path::new(page)).lines().count();
        assert!(lines <= *most, "{page}: {lines} lines, at most {most}");
    }
}

#[test]
fn the_readmes_commands_are_tried() {
    let readme = text_of(Path::new("README.md"));
    let mut blocks = readme.split("```\n").skip(1).step_by(2);
    let first = blocks.next().expect("the first command");
    let second = blocks.next().expect("the second command").trim();
    let ci = text_of(Path::new(".ci/run"));
    // It builds for release: `scripts/pages.py --readme` does it, by the page's own text.
    assert!(first.contains("cargo run --release"));
    let tried = text_of(Path::new("scripts/pages.py"));
    assert!(tried.contains("tasks = [readme]"));
    let steps = ci.lines().filter(|line| line.starts_with("step "));
    let mut steps = steps.filter(|step| step.ends_with(second));
    assert!(!second.is_empty() && steps.next().is_some(), "{second}");
}

/// Rates in the first table of the benchmarks stand in a page of cells or in a raw file.
#[test]
fn figures_of_the_benchmarks_have_cells_behind_them() {
    let page = text_of(Path::new("docs/benchmarks.md"));
    let (_, table) = page
        .split_once("| cell | Thermocline |")
        .expect("the table");
    let behind = [
        "docs/benchmarks/engines.md",
        "docs/benchmarks/raw/peers.csv",
    ];
    let behind: String = behind.iter().map(|file| text_of(Path::new(file))).collect();
    let cells: BTreeSet<&str> = behind
        .split(|character: char| !character.is_ascii_digit())
        .collect();
    let rows = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let mut seen = 0;
    for row in rows {
        for cell in row.split('|').skip(2).take(2) {
            let rate = cell.split('(').next().unwrap_or_default().replace(' ', "");
            assert!(cells.contains(rate.as_str()), "{rate} of {row}");
            seen += 1;
        }
    }
    assert!(seen >= 20, "the rates were found");
}

/// The sentences of a page, without code, tables, headings and links that stand alone. An item
/// of a list begins a sentence.
fn sentences(text: &str) -> Vec<String> {
    let mut in_code = false;
    let mut prose = String::new();
    for line in text.lines() {
        let line = line.trim();
        let is_fence = line.starts_with("```");
        if is_fence {
            in_code = !in_code;
        }
        let is_numbered = line.split_once(". ").is_some_and(|(number, _)| {
            !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
        });
        let is_item = line.starts_with("* ") || is_numbered;
        let is_prose = !line.starts_with(['|', '#', '[', '!']);
        if in_code || is_fence || is_item || !is_prose || line.is_empty() {
            prose.push_str(". ");
        }
        if !in_code && !is_fence && is_prose {
            prose.push_str(line);
            prose.push(' ');
        }
    }
    let parts = prose.split(". ").flat_map(|part| part.split("? "));
    parts.map(|sentence| sentence.trim().to_owned()).collect()
}

#[test]
fn sentences_of_pages_for_newcomers_are_short() {
    let plain = pages().into_iter();
    let plain = plain.filter(|page| PLAIN_PAGES.iter().any(|plain| page.starts_with(plain)));
    let mut wrong = Vec::new();
    for page in plain {
        for sentence in sentences(&text_of(&page)) {
            let words = sentence.split_whitespace().count();
            if words > WORDS_MAX {
                wrong.push(format!("{}: {words} words: {sentence}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn sentences_are_found() {
    let text =
        "# A heading\n\nOne. Two\ngoes on.\n* three\n1. four\n```\ncode\n```\n| a | table |\n";
    let mut found = sentences(text);
    found.retain(|sentence| !sentence.is_empty());
    assert_eq!(found, ["One", "Two goes on", "* three", "1", "four"]);
}

/// The page on error codes has all that the program raises, and no other.
#[test]
fn the_page_of_the_errors_is_the_programs() {
    let page = text_of(Path::new("docs/reference/errors.md"));
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let told: BTreeSet<&str> = rows.filter_map(|row| row.get(..5)).collect();
    let classes: BTreeSet<&str> = told.iter().map(|code| &code[..2]).collect();
    let is_code = |text: &str| {
        let shape = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
        let is_size = text.ends_with("MB") || text.ends_with("GB");
        text.len() == 5 && text.bytes().all(shape) && !is_size && classes.contains(&text[..2])
    };
    let crates = [
        "analytical",
        "engine",
        "query",
        "server",
        "sql",
        "storage",
        "thermocline",
    ];
    let mut waiting: Vec<PathBuf> = crates
        .iter()
        .map(|name| root().join("crates").join(name).join("src"))
        .collect();
    let mut raised = BTreeSet::new();
    while let Some(path) = waiting.pop() {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with("tests.rs") || name == "tests" {
            continue;
        }
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("a readable directory");
            waiting.extend(entries.map(|entry| entry.expect("an entry").path()));
        } else if name.ends_with(".rs") {
            let text = fs::read_to_string(&path).expect("a text");
            let literals = text.split('"').filter(|text| is_code(text));
            raised.extend(literals.map(str::to_owned));
        }
    }
    assert!(raised.contains("40001"), "the codes were found");
    let missing: Vec<&String> = raised
        .iter()
        .filter(|code| !told.contains(code.as_str()))
        .collect();
    let extra: Vec<&&str> = told
        .iter()
        .filter(|code| !raised.contains(**code))
        .collect();
    assert!(missing.is_empty(), "{missing:?} are not there");
    assert!(extra.is_empty(), "{extra:?} are raised nowhere");
}
