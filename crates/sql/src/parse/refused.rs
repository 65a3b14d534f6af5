//! What is said of a statement that PostgreSQL's grammar takes and this database has not.

use crate::error::{SEE_SQL_PAGE, SqlError};

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
/// 0A000 that names the command.
#[cold]
pub(super) fn statement(text: &str) -> SqlError {
    let command = command(&words(text));
    SqlError::unsupported(format!("{command} is not supported"), instead_of(&command))
}

/// What does the same, or the page that lists what there is.
fn instead_of(command: &str) -> &'static str {
    match command.split_whitespace().last().unwrap_or_default() {
        "POLICY" => "Make a view of the rows that a role may see, and grant that.",
        "RULE" => "Make a view, or send both statements in one transaction.",
        "AGGREGATE" => "Use an aggregate that is built in, or array_agg and a function.",
        "DATABASE" => "Use a schema, or another data directory.",
        "STATISTICS" => "Leave it out: no statistics are needed.",
        "COLLATION" => "Leave it out: texts are compared by their bytes.",
        "SUBSCRIPTION" | "PUBLICATION" => "Copy the database with BACKUP TO.",
        "TYPE" => "Use an enum, a composite type or a domain.",
        "CONSTRAINTS" => "Leave it out: constraints are checked with each row.",
        _ => SEE_SQL_PAGE,
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
