//! What errors say keeps to some rules. Whoever reads a message has not read the code: the first
//! line names the thing, and words that only the code has are for errors of class XX. What is
//! merely not there (0A000) says what to do in its place.
//!
//! The texts are read out of the sources: literals within calls that make an error.

use std::fs;
use std::path::{Path, PathBuf};

/// The crates whose errors a client or an operator sees.
const CRATES: [&str; 8] = [
    "analytical",
    "engine",
    "query",
    "server",
    "sql",
    "storage",
    "thermocline",
    "values",
];

/// What an error, or a part of one, is made with; the texts stand in the parentheses behind it.
const MAKERS: [&str; 14] = [
    "Error::unsupported(",
    "Error::new(",
    "Error::syntax(",
    "Error::protocol(",
    "Error::catalog(",
    "Error::raised(",
    "Error::invalid_parameter(",
    "Error::TooLarge(",
    "Error::OutOfMemory(",
    "Self::new(",
    "Wrong(",
    "refuse(",
    ".with_detail(",
    ".with_hint(",
];

/// Words of the code alone.
const WORDS_OF_THE_CODE: [&str; 10] = [
    "analysed", "arena", "binder", "memtable", "pre-pass", "prepass", "scope", "storage", "tuple",
    "tuples",
];

/// What says nothing where nobody sees the code.
const RIDDLES: [&str; 12] = [
    "here",
    "is none of",
    "only queries are",
    "somebody",
    "these types",
    "this build",
    "this command",
    "this expression",
    "this form",
    "this kind",
    "this statement",
    "this way",
];

/// PostgreSQL's own words, which people search for.
const POSTGRESQLS: [&str; 8] = [
    "tuple to be {what} was already modified by an operation triggered by the current command",
    "row expansion via \\\"*\\\" is not supported here",
    "SELECT ... INTO is not allowed here",
    "sequence must be in same schema as table it is linked to",
    "client uses authorization identity, but it is not supported",
    "The tuple structure of a not-yet-assigned record is indeterminate.",
    "there is no label \\\"{label}\\\" attached to any block or loop enclosing this statement",
    "variable \\\"{name}\\\" must have a default value, since it's declared NOT NULL",
];

/// Where 0A000 is made without `unsupported`, which asks for what to do: the two that have it, the
/// engine's errors, which have it as a field, and PostgreSQL's grammar's.
const FILES_WITH_0A000: [&str; 6] = [
    "crates/engine/src/define/definition.rs",
    "crates/engine/src/ground/error.rs",
    "crates/engine/src/procedure/call.rs",
    "crates/query/src/domain.rs",
    "crates/query/src/error.rs",
    "crates/sql/src/error.rs",
];

/// A call that makes an error: where, and its texts in their order.
struct Call {
    place: String,
    maker: &'static str,
    texts: Vec<String>,
}

/// The sources of what a client sees, without their tests.
fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().expect("the workspace is there");
    let crates = CRATES.iter().map(|name| root.join("crates").join(name));
    let mut waiting: Vec<PathBuf> = crates.map(|path| path.join("src")).collect();
    let mut found = Vec::new();
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
            let code = text.split("\n#[cfg(test)]\nmod ").next();
            let path = path.strip_prefix(&root).expect("below");
            let path = path.display().to_string();
            found.push((path, code.unwrap_or_default().to_owned()));
        }
    }
    assert!(found.len() > 300, "the sources were found");
    found
}

/// The literals from an opening parenthesis to its end.
fn literals(code: &str) -> Vec<String> {
    let bytes = code.as_bytes();
    let (mut at, mut depth) = (0, 0_usize);
    let mut found = Vec::new();
    while at < bytes.len() {
        match bytes[at] {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth -= 1;
                if depth == 0 {
                    break;
                }
            }
            b'/' if bytes[at..].starts_with(b"//") => {
                at += code[at..].find('\n').unwrap_or(code.len() - at);
                continue;
            }
            // A character may be a quote or a parenthesis.
            b'\'' if bytes.get(at + 2) == Some(&b'\'') => at += 2,
            b'\'' if bytes.get(at + 1) == Some(&b'\\') && bytes.get(at + 3) == Some(&b'\'') => {
                at += 3;
            }
            b'"' => {
                let begin = at + 1;
                at = begin;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += 1 + usize::from(bytes[at] == b'\\');
                }
                found.push(code[begin..at.min(code.len())].to_owned());
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// All calls that make errors of other classes than XX. A message that is made before, as
/// `let message = …`, is one, too.
fn calls() -> Vec<Call> {
    let mut calls = Vec::new();
    for (path, code) in sources() {
        for maker in MAKERS.into_iter().chain(["let message = ", "message: "]) {
            for (at, _) in code.match_indices(maker) {
                let line = 1 + code[..at].matches('\n').count();
                let texts = match maker.ends_with('(') {
                    true => literals(&code[at + maker.len() - 1..]),
                    false => {
                        let rest = &code[at + maker.len()..];
                        let end = rest.find([';', '\n']).unwrap_or(rest.len());
                        // A format!( may go on behind the line.
                        let open = rest[..end].ends_with('(').then(|| end - 1);
                        match open {
                            Some(open) => literals(&rest[open..]),
                            None => literals(&format!("({})", &rest[..end])),
                        }
                    }
                };
                if texts.iter().any(|text| text.starts_with("XX")) {
                    continue;
                }
                let place = format!("{path}:{line}");
                calls.push(Call {
                    place,
                    maker,
                    texts,
                });
            }
        }
    }
    assert!(calls.len() > 1000, "the errors were found");
    calls
}

/// Whether a text has words beside each other, whole. What is filled in has names of the code.
fn has(text: &str, words: &str) -> bool {
    let mut parts = text.split('{');
    let mut text = parts.next().unwrap_or_default().to_lowercase();
    text.extend(parts.filter_map(|part| Some(part.split_once('}')?.1.to_lowercase())));
    let is_letter = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    text.match_indices(words).any(|(at, _)| {
        let bytes = text.as_bytes();
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        !is_letter(before) && !is_letter(bytes.get(at + words.len()))
    })
}

#[test]
fn messages_have_no_words_of_the_code_and_no_riddles() {
    let mut wrong = Vec::new();
    for call in calls() {
        let is_hint = call.maker == ".with_hint(";
        for text in &call.texts {
            if POSTGRESQLS.contains(&text.as_str()) {
                continue;
            }
            let of_the_code = WORDS_OF_THE_CODE.iter();
            let riddles = RIDDLES.iter().filter(|_| !is_hint);
            for word in of_the_code.chain(riddles).filter(|word| has(text, word)) {
                wrong.push(format!("{}: \"{word}\" in \"{text}\"", call.place));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// The first line of an error names the thing. In "cannot … because … uses it", which is
/// PostgreSQL's form, it has done so.
#[test]
fn messages_name_the_thing() {
    let mut wrong = Vec::new();
    for call in calls() {
        let Some(first) = call.texts.iter().find(|text| text.contains(' ')) else {
            continue;
        };
        // Details and hints are sentences.
        let is_more = call.maker.starts_with(".with_") || first.ends_with('.');
        let is_postgresqls = POSTGRESQLS.contains(&first.as_str()) || has(first, "because");
        if !is_more && !is_postgresqls && has(first, "it") {
            wrong.push(format!("{}: \"{first}\"", call.place));
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// The compiler asks `unsupported` for what to do; this looks whether the texts are sentences.
#[test]
fn what_is_not_there_is_named_and_says_what_to_do() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for call in calls() {
        if call.maker != "Error::unsupported(" {
            continue;
        }
        seen += 1;
        let (first, last) = match call.texts.as_slice() {
            [] => continue,
            [one] => (one, one),
            [first, .., last] => (first, last),
        };
        let names = first.contains('{') || first.split_whitespace().count() > 1;
        let is_sentence = |text: &str| {
            text.ends_with('.') && text.starts_with(|first: char| first.is_ascii_uppercase())
        };
        // One text alone is a message whose advice is a constant, or the other way round.
        if !names || (call.texts.len() > 1 && !is_sentence(last)) || last.len() < 9 {
            wrong.push(format!("{}: \"{first}\", \"{last}\"", call.place));
        }
    }
    assert!(seen > 150, "the refusals were found");
    for (path, code) in sources() {
        for (number, line) in code.lines().enumerate() {
            let line = line.trim_start();
            let asks = line.contains("==") || line.contains("matches!");
            let is_code = line.contains("\"0A000\"") && !line.starts_with("//");
            if is_code && !asks && !FILES_WITH_0A000.contains(&path.as_str()) {
                wrong.push(format!("{path}:{}: 0A000 without advice", number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn literals_are_found() {
    let found = literals("(a('\"'), \"one\", // \"no\"\n format!(\"t{}o \\\"\", '\\n')) \"three\"");
    assert_eq!(found, ["one", "t{}o \\\""]);
}
