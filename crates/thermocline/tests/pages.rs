//! The pages keep to some rules: each link leads somewhere, every page is two links from the
//! README, sentences are short, and figures have raw results behind them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Pages with a bound on their lines.
const SHORT_PAGES: &[(&str, usize)] = &[("README.md", 90), ("docs/benchmarks.md", 160)];

/// Where readers begin.
const FIRST_PAGE: &str = "README.md";

/// How many links a reader follows from there to any page.
const LINKS_MAX: usize = 2;

/// What the program prints as a whole, with the papers' words.
const PRINTED_PAGES: &str = "docs/figures";

/// The words that a reader of the code has to learn.
const GLOSSARY_WORDS: usize = 20;

/// The longest sentence of a page, in words.
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

#[test]
fn every_page_is_two_links_from_the_first() {
    let mut reached = BTreeSet::from([PathBuf::from(FIRST_PAGE)]);
    for _ in 0..LINKS_MAX {
        let next = reached.iter().flat_map(|page| links(page, &text_of(page)));
        let next = next.map(|(file, _)| file).filter(|file| {
            let is_page = file.extension().is_some_and(|end| end == "md");
            is_page && root().join(file).exists()
        });
        let next: Vec<PathBuf> = next.collect();
        reached.extend(next);
    }
    let alone = pages().into_iter().filter(|page| !reached.contains(page));
    let alone: Vec<_> = alone.map(|page| page.display().to_string()).collect();
    assert!(
        alone.is_empty(),
        "more than {LINKS_MAX} links from {FIRST_PAGE}:\n{}\n",
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
fn the_readme_says_first_what_a_newcomer_asks_first() {
    let readme = text_of(Path::new("README.md"));
    let order = [
        "A PostgreSQL-compatible SQL database, server or Rust library,",
        "](docs/charts/by-size.svg)",
        "cargo run --release -- --memory-limit 256MB",
        "cargo test --workspace",
        "tuples_hot | tuples_cold",
        "| good for | not for",
        "| operations a second |",
        "](docs/benchmarks.md)",
    ];
    let places = order.map(|part| readme.find(part).unwrap_or_else(|| panic!("no {part}")));
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn the_readmes_two_commands_run_in_ci() {
    let readme = text_of(Path::new("README.md"));
    let mut blocks = readme.split("```\n").skip(1).step_by(2);
    let first = blocks.next().expect("the first command");
    let second = blocks.next().expect("the second command").trim();
    let ci = text_of(Path::new(".ci/run"));
    // It reads the first command from the page.
    assert!(first.contains("cargo run --release") && ci.contains("scripts/pages.py --readme"));
    let steps = ci.lines().filter(|line| line.starts_with("step "));
    let mut steps = steps.filter(|step| step.ends_with(second));
    assert!(!second.is_empty() && steps.next().is_some(), "{second}");
}

/// The columns of its tables with what was measured.
const MEASURED: [&str; 7] = [
    "Thermocline",
    "best rival",
    "µs",
    "PostgreSQL",
    "PostgreSQL 15",
    "ours",
    "theirs",
];

/// The numbers of a text. A blank between digits is theirs.
fn numbers(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let mut found = vec![String::new()];
    for (at, character) in characters.iter().enumerate() {
        let is_digit = |at: usize| characters.get(at).is_some_and(char::is_ascii_digit);
        let is_inside = at > 0 && is_digit(at - 1) && is_digit(at + 1);
        match character {
            '0'..='9' => found.last_mut().expect("one").push(*character),
            '.' if is_inside => found.last_mut().expect("one").push('.'),
            ' ' if is_inside => {}
            _ => found.push(String::new()),
        }
    }
    found.retain(|number| !number.is_empty());
    found
}

/// The cells of a row of a table.
fn cells(row: &str) -> Vec<&str> {
    let row = row.trim().trim_start_matches('|').trim_end_matches('|');
    row.split('|').map(str::trim).collect()
}

#[test]
fn figures_of_the_benchmarks_have_raw_results_behind_them() {
    let folder = root().join("docs/benchmarks/raw");
    let mut raw = BTreeSet::new();
    for entry in fs::read_dir(folder).expect("the raw results") {
        let text = fs::read_to_string(entry.expect("an entry").path()).expect("a text");
        let of_words =
            text.split(|character: char| !character.is_ascii_digit() && character != '.');
        raw.extend(of_words.map(str::to_owned));
    }
    let page = text_of(Path::new("docs/benchmarks.md"));
    let (mut header, mut seen, mut wrong) = (Vec::new(), 0, Vec::new());
    for line in page.lines() {
        if !line.starts_with('|') {
            header.clear();
            continue;
        }
        let row = cells(line);
        if header.is_empty() {
            header = row;
            continue;
        }
        let measured = header.iter().zip(&row).skip(1);
        let measured = measured.filter(|(name, _)| MEASURED.contains(name));
        let figures: Vec<String> = measured.flat_map(|(_, cell)| numbers(cell)).collect();
        if figures.is_empty() {
            continue;
        }
        seen += figures.len();
        let missing: Vec<&String> = figures.iter().filter(|one| !raw.contains(*one)).collect();
        if !missing.is_empty() {
            wrong.push(format!("{missing:?} of {line}"));
        }
    }
    assert!(seen > 60, "{seen} figures were found");
    assert!(
        wrong.is_empty(),
        "no raw results of\n{}\n",
        wrong.join("\n")
    );
}

#[test]
fn figures_of_the_readme_are_those_of_the_benchmarks() {
    let readme = text_of(Path::new("README.md"));
    let page = text_of(Path::new("docs/benchmarks.md"));
    let known: BTreeSet<String> = page
        .lines()
        .flat_map(|line| cells(line))
        .flat_map(numbers)
        .collect();
    let (_, table) = readme
        .split_once("| operations a second |")
        .expect("the table");
    let rows = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let figures: Vec<String> = rows
        .flat_map(|row| cells(row).split_off(1))
        .flat_map(numbers)
        .collect();
    assert_eq!(figures.len(), 12, "six rows, each beside a rival");
    let missing: Vec<_> = figures.iter().filter(|one| !known.contains(*one)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn numbers_are_found() {
    assert_eq!(
        numbers("8 931/s, 1.4 to 57.9 ms (x86)."),
        ["8931", "1.4", "57.9", "86"]
    );
}

/// Whether a word is the short name of a commit.
fn is_commit(word: &str) -> bool {
    let word = word.trim_matches(|character: char| !character.is_ascii_alphanumeric());
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let has = |kind: fn(&u8) -> bool| word.as_bytes().iter().any(kind);
    word.len() == 7
        && word.bytes().all(is_hex)
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_lowercase)
}

/// Machine and commit stand in tables. A reader of sentences need not step over them.
#[test]
fn no_sentence_about_figures_has_a_commit() {
    let mut wrong = Vec::new();
    for page in pages() {
        let is_about = [
            "docs/benchmarks",
            "docs/explain",
            "docs/guides",
            "docs/reliability",
        ];
        if !is_about
            .iter()
            .any(|place| page.to_string_lossy().starts_with(place))
        {
            continue;
        }
        for sentence in sentences(&text_of(&page)) {
            if sentence.split_whitespace().any(is_commit) {
                wrong.push(format!("{}: {sentence}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// The longest line of the changelog, in words.
const CHANGE_WORDS_MAX: usize = 25;

#[test]
fn the_changelog_has_a_line_for_each_change() {
    let page = text_of(Path::new("CHANGELOG.md"));
    let (_, changes) = page.split_once("\n## ").expect("a version");
    let mut wrong = Vec::new();
    for line in changes.lines().skip(1).filter(|line| !line.is_empty()) {
        let is_item = line.starts_with("* ") && line.ends_with('.');
        let is_heading = line.starts_with("### ") || line.split(' ').count() == 1;
        let is_first = line == "The first version.";
        if !(is_item || is_heading || is_first) {
            wrong.push(format!("no item: {line}"));
        }
        let words = line.split_whitespace().count();
        if line.contains(". ") || words > CHANGE_WORDS_MAX {
            wrong.push(format!("{words} words: {line}"));
        }
    }
    let sections = ["### Added", "### Changed", "### Fixed"];
    assert!(sections.iter().all(|section| changes.contains(section)));
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
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
fn sentences_are_short() {
    let ours = pages().into_iter();
    let ours = ours.filter(|page| !page.starts_with(PRINTED_PAGES));
    let mut wrong = Vec::new();
    for page in ours {
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
fn the_glossary_is_short() {
    let page = text_of(Path::new("ARCHITECTURE.md"));
    let (_, glossary) = page.split_once("## Glossary").expect("a glossary");
    let words = glossary.lines().filter(|line| line.starts_with("| "));
    // Its head is no word.
    assert_eq!(words.count() - 1, GLOSSARY_WORDS);
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
    // PostgreSQL's own, so that the first code of a class is found, too.
    let conditions = root().join("crates/sql/src/plpgsql/conditions.rs");
    let conditions = fs::read_to_string(conditions).expect("PostgreSQL's conditions");
    let conditions: BTreeSet<&str> = conditions.split_whitespace().collect();
    let is_code = |text: &str| {
        let shape = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
        let is_size = text.ends_with("MB") || text.ends_with("GB");
        let is_shaped = text.len() == 5 && text.bytes().all(shape) && !is_size;
        is_shaped && (classes.contains(&text[..2]) || conditions.contains(text))
    };
    let crates = [
        "analytical",
        "engine",
        "query",
        "server",
        "sql",
        "storage",
        "thermocline",
        "values",
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
