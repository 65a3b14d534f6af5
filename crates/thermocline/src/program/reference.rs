//! The pages on the program and its settings are printed from what clap knows, and compared with
//! the pages that are there.

#[path = "../../tests/support/printed.rs"]
mod printed;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use clap::{Arg, ArgAction, Command};

use super::flags::variable;
use super::help;
use crate::arguments;

/// A text of a flag for the page: names of pages in parentheses become links.
fn linked(text: &str) -> String {
    let mut parts = text.split("(docs/");
    let mut linked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (target, behind) = part.split_once(')').expect("a parenthesis");
        let _ = write!(linked, "({}){behind}", link(&format!("docs/{target}")));
    }
    linked
}

/// A link from a page of the reference.
fn link(target: &str) -> String {
    let file = target.split('#').next().unwrap_or_default();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join(file)).expect("the page");
    let title = page.lines().next().unwrap_or_default();
    let place = target.trim_start_matches("docs/");
    let place = match place.strip_prefix("reference/") {
        Some(beside) => beside.to_owned(),
        None => format!("../{place}"),
    };
    format!("[{}]({place})", title.trim_start_matches("# "))
}

/// What a flag's help says, and its default.
fn about(flag: &Arg) -> (String, String) {
    let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
    let help = help.split(" [env: ").next().unwrap_or_default().to_owned();
    let (first, default) = match help.split_once(" [default: ") {
        Some((first, rest)) => (first.to_owned(), rest.trim_end_matches(']').to_owned()),
        None => {
            let values = flag.get_default_values().iter();
            let values: Vec<_> = values.map(|value| value.to_string_lossy()).collect();
            (help, values.join(", "))
        }
    };
    let long = flag.get_long_help().map(ToString::to_string);
    let rest = long.as_deref().and_then(|long| long.split_once("\n\n"));
    let text = match rest {
        Some((_, rest)) => format!("{first}. {rest}"),
        None => first,
    };
    (linked(&text), default)
}

/// `-D`, `--data-dir DIRECTORY`; or an argument's name.
fn shown(flag: &Arg, with_value: bool) -> String {
    let value = flag.get_value_names().and_then(|names| names.first());
    let takes = matches!(flag.get_action(), ArgAction::Set | ArgAction::Append);
    let Some(long) = flag.get_long() else {
        let value = value.map_or_else(|| flag.get_id().as_str(), |value| value.as_str());
        return format!("`{}`", value.to_uppercase());
    };
    let value = match value {
        Some(value) if with_value && takes => format!(" {}", value.to_uppercase()),
        _ => String::new(),
    };
    match flag.get_short() {
        Some(short) => format!("`-{short}`, `--{long}{value}`"),
        None => format!("`--{long}{value}`"),
    }
}

fn is_shown(flag: &Arg) -> bool {
    !flag.is_hide_set() && !matches!(flag.get_id().as_str(), "help" | "version")
}

#[test]
fn reference_settings_are_as_the_code_has_them() {
    let command = arguments();
    let mut table = printed::row(&["flag", "file", "environment", "default", ""].map(String::from));
    table.push_str("|---|---|---|---|---|\n");
    for flag in command.get_arguments().filter(|flag| is_shown(flag)) {
        let name = flag.get_long().expect("a long name").replace('-', "_");
        let (text, default) = about(flag);
        let in_file = match name.as_str() {
            "config" => "–".to_owned(),
            name => format!("`{name}`"),
        };
        table.push_str(&printed::row(&[
            shown(flag, false),
            in_file,
            format!("`{}`", variable(&name)),
            default,
            text,
        ]));
    }
    printed::compare("docs/reference/settings.md", "settings", &table);
}

/// The commands below one, those that have commands themselves left out.
fn gather<'c>(command: &'c Command, name: &str, found: &mut Vec<(String, &'c Command)>) {
    for inner in command.get_subcommands() {
        if inner.is_hide_set() || inner.get_name() == "help" {
            continue;
        }
        let full = format!("{name} {}", inner.get_name()).trim().to_owned();
        if inner.has_subcommands() {
            gather(inner, &full, found);
        } else {
            found.push((full, inner));
        }
    }
}

#[test]
fn reference_commands_are_as_the_code_has_them() {
    let command = arguments();
    let mut commands = Vec::new();
    gather(&command, "", &mut commands);
    let mut table = String::from("| command | |\n|---|---|\n");
    let mut rest = String::new();
    for (name, command) in &commands {
        let what = command.get_about().map(ToString::to_string);
        let cells = [format!("`{name}`"), what.unwrap_or_default()];
        table.push_str(&printed::row(&cells));
        let more = help::of(name).expect("an example");
        let _ = writeln!(rest, "## {name}\n\n```\n{}\n```\n", more.example);
        let _ = writeln!(rest, "{}.\n", link(more.page));
        if name == "serve" {
            rest.push_str("The flags are the [settings](settings.md).\n\n");
            continue;
        }
        if name.starts_with("bench ") {
            let _ = writeln!(rest, "`thermocline {name} --help` lists its arguments.\n");
            continue;
        }
        let flags: Vec<&Arg> = command
            .get_arguments()
            .filter(|flag| is_shown(flag))
            .collect();
        if flags.is_empty() {
            continue;
        }
        rest.push_str("| argument | default | |\n|---|---|---|\n");
        for flag in flags {
            let (text, default) = about(flag);
            rest.push_str(&printed::row(&[shown(flag, true), default, text]));
        }
        rest.push('\n');
    }
    let page = "docs/reference/program.md";
    printed::compare(page, "commands", &table);
    printed::compare(page, "arguments", &rest);
}
