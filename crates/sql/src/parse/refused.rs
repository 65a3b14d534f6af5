//! What is said of a statement that PostgreSQL's grammar takes and this database has not.

use crate::error::SqlError;

/// Words between CREATE and what is created.
const BETWEEN: [&str; 9] = [
    "or",
    "replace",
    "temp",
    "temporary",
    "local",
    "global",
    "unlogged",
    "unique",
    "trusted",
];
/// Words that name nothing alone.
const FIRST_OF_TWO: [&str; 11] = [
    "access",
    "constraint",
    "default",
    "event",
    "foreign",
    "large",
    "materialized",
    "operator",
    "procedural",
    "text",
    "user",
];
/// What to do instead, by what a command begins with.
const INSTEAD: [(&str, &str); 9] = [
    (
        "CREATE DATABASE",
        "A directory has one database: start another server on another directory.",
    ),
    (
        "CREATE TRIGGER",
        "Let the application or a procedure do it.",
    ),
    (
        "CREATE CONSTRAINT TRIGGER",
        "Let the application or a procedure do it.",
    ),
    (
        "CREATE EXTENSION",
        "What is built in needs no extension; docs/reference/sql.md lists it.",
    ),
    ("CREATE TABLESPACE", "All tables lie in the data directory."),
    ("CREATE TYPE", "Use an enum, a composite type or a domain."),
    ("CREATE RULE", "Use a view; simple views can be changed."),
    ("DO", "Let the application or a procedure do it."),
    ("SET CONSTRAINTS", "Constraints are checked with each row."),
];

/// 0A000 that names the command.
#[cold]
pub(super) fn statement(text: &str) -> SqlError {
    let command = command(&words(text));
    let error = SqlError::unsupported(format!("{command} is not supported"));
    match INSTEAD.iter().find(|(begin, _)| command == *begin) {
        Some((_, hint)) => error.with_hint(*hint),
        None => error.with_hint("docs/reference/sql.md lists the statements that are supported."),
    }
}

/// The words that a statement begins with, in lower case; none behind a comment.
fn words(text: &str) -> Vec<String> {
    const WORDS_MAX: usize = 8;
    let mut rest = text;
    let mut words = Vec::new();
    while words.len() < WORDS_MAX {
        rest = rest.trim_start();
        let is_end = |character: char| !character.is_ascii_alphabetic() && character != '_';
        let end = rest.find(is_end).unwrap_or(rest.len());
        if end == 0 {
            break;
        }
        words.push(rest[..end].to_lowercase());
        rest = &rest[end..];
    }
    words
}

/// What the command is called.
fn command(words: &[String]) -> String {
    let mut words = words.iter().map(String::as_str);
    let Some(first) = words.next() else {
        return "this command".to_owned();
    };
    let mut named = vec![first.to_uppercase()];
    if matches!(
        first,
        "create" | "alter" | "drop" | "set" | "refresh" | "security" | "import"
    ) {
        for word in words.skip_while(|word| BETWEEN.contains(word)) {
            named.push(word.to_uppercase());
            if !FIRST_OF_TWO.contains(&word) {
                break;
            }
        }
    }
    named.join(" ")
}
