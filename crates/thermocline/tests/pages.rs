//! The pages keep to some rules: each link leads somewhere, each page is linked, and the first
//! ones are short and plain.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Pages with a bound on their lines.
const SHORT_PAGES: &[(&str, usize)] = &[("README.md", 90), ("docs/benchmarks.md", 160)];

/// Pages whose sentences are short.
const PLAIN_PAGES: &[&str] = &["README.md"];

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
fn each_link_leads_somewhere_and_each_page_is_linked() {
    let mut wrong = Vec::new();
    let mut linked = BTreeSet::new();
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
            if file != page {
                linked.insert(file);
            }
        }
    }
    let known = [Path::new("README.md"), Path::new("CHANGELOG.md")];
    let alone = pages().into_iter();
    let alone = alone.filter(|page| !linked.contains(page) && !known.contains(&page.as_path()));
    wrong.extend(alone.map(|page| format!("{}: no page links to it", page.display())));
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn the_first_pages_are_short() {
    for (page, most) in SHORT_PAGES {
        let lines = text_of(Path::new(page)).lines().count();
        assert!(lines <= *most, "{page}: {lines} lines, at most {most}");
    }
}

#[test]
fn sentences_of_the_first_pages_are_short() {
    for page in PLAIN_PAGES {
        let mut in_code = false;
        let mut prose = String::new();
        for line in text_of(Path::new(page)).lines() {
            let line = line.trim();
            if line.starts_with("```") {
                in_code = !in_code;
            }
            let ends = line.is_empty() || line.starts_with(['|', '#', '*', '[', '!', '`']);
            if in_code || ends {
                prose.push_str(". ");
            }
            if !in_code && !line.starts_with(['|', '#', '[', '!']) {
                prose.push_str(line);
                prose.push(' ');
            }
        }
        let sentences = prose.split(". ").flat_map(|part| part.split("? "));
        for sentence in sentences {
            let words = sentence.split_whitespace().count();
            assert!(words <= WORDS_MAX, "{page}: {words} words: {sentence}");
        }
    }
}
