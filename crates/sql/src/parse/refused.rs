//! What is said of a statement that none of our parsers reads. PostgreSQL's own grammar decides:
//! what it refuses is a syntax error in its words; what it takes is merely not there.

use thermocline_query::parse::parse;

use crate::error::{SEE_SQL_PAGE, SqlError};
use crate::typed::positioned;

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
const FIRST_OF_TWO: [&str; 9] = [
    "access",
    "default",
    "event",
    "foreign",
    "large",
    "materialized",
    "operator",
    "text",
    "user",
];

/// The error of a statement that was refused with `own`, a 42601.
#[cold]
pub(super) fn told(own: SqlError, text: &str) -> SqlError {
    let words = words(text);
    // PostgreSQL has no such command.
    if words.first().is_some_and(|first| first == "backup") {
        return own;
    }
    match parse(text) {
        Err(error) => positioned(error, text),
        Ok(_) if !own.message.starts_with("syntax error") => own,
        Ok(_) => {
            let command = command(&words);
            let part = part(&own, text);
            let names_it = part
                .split_whitespace()
                .next()
                .is_none_or(|first| command.contains(&first.to_uppercase()));
            let message = match names_it {
                true => format!("{command} is not supported"),
                false => format!("\"{part}\" in {command} is not supported"),
            };
            SqlError::unsupported(message, instead_of(&command)).with_position(own.position)
        }
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
    if matches!(first, "create" | "alter" | "drop") {
        for word in words.skip_while(|word| BETWEEN.contains(word)) {
            named.push(word.to_uppercase());
            if !FIRST_OF_TWO.contains(&word) {
                break;
            }
        }
    }
    named.join(" ")
}

/// 0A000 for a command that is not there.
#[cold]
pub(crate) fn command_missing(command: &str) -> SqlError {
    SqlError::unsupported(format!("{command} is not supported"), instead_of(command))
}

/// What does the same, or the page that lists what there is.
fn instead_of(command: &str) -> &'static str {
    match command.split_whitespace().last().unwrap_or_default() {
        "POLICY" => "Make a view of the rows that a role may see, and grant that.",
        "RULE" => "Make a view, or send both statements in one transaction.",
        "TRIGGER" => "Make both changes in one transaction, or in one statement by WITH.",
        "AGGREGATE" => "Use an aggregate that is built in, or array_agg and a function.",
        "EXTENSION" => "Leave it out; docs/reference/sql.md lists what is built in.",
        "DATABASE" => "Use a schema, or another data directory.",
        "STATISTICS" => "Leave it out: no statistics are needed.",
        "COLLATION" => "Leave it out: texts are compared by their bytes.",
        "SUBSCRIPTION" | "PUBLICATION" => "Copy the database with BACKUP TO.",
        "TABLESPACE" => "Put the data directory on the device.",
        _ => SEE_SQL_PAGE,
    }
}

/// The word at which it was refused, and the next one.
fn part(own: &SqlError, text: &str) -> String {
    let Some(position) = own.position else {
        return String::new();
    };
    let at = usize::try_from(position.saturating_sub(1)).unwrap_or(0);
    let rest: String = text.chars().skip(at).take(80).collect();
    let is_end = |character: char| !character.is_alphanumeric() && character != '_';
    let words = rest.split_whitespace().map(|word| {
        let end = word.find(is_end).unwrap_or(word.len());
        (&word[..end], end < word.len())
    });
    let mut shown = Vec::new();
    for (word, ends) in words.take(2) {
        if !word.is_empty() {
            shown.push(word);
        }
        if ends {
            break;
        }
    }
    shown.join(" ")
}
