//! What `--help` says besides what the flags themselves say: under which name the environment has
//! a setting, one example of each command, and the address of its page. The page on the program
//! is printed from the same rows (`reference.rs`).

use clap::{Arg, Command};

use super::flags::variable;

/// Where the pages are.
const ADDRESS: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/");

/// A command's example and page.
pub(super) struct More {
    /// The command's words behind the program's name.
    command: &'static str,
    /// A line that can be run.
    pub(super) example: &'static str,
    /// A page of the docs, from the root of the sources.
    pub(super) page: &'static str,
}

const fn more(command: &'static str, example: &'static str, page: &'static str) -> More {
    More {
        command,
        example,
        page,
    }
}

const SERVE: &str = "thermocline --data-dir /srv/thermocline --memory-limit 4GB";

/// All commands that are shown.
const COMMANDS: [More; 19] = [
    more("", SERVE, "docs/guides/run.md"),
    more(
        "serve",
        "thermocline serve --data-dir /srv/thermocline --memory-limit 4GB",
        "docs/guides/run.md",
    ),
    more(
        "bench",
        "thermocline bench tpcc --warehouses 4 --memory-limit 25%",
        "docs/benchmarks/workloads.md",
    ),
    more(
        "bench ycsb",
        "thermocline bench ycsb --rows 1000000 --reads 0.9 --memory-limit 256MB",
        "docs/benchmarks/method.md",
    ),
    more(
        "bench tpcc",
        "thermocline bench tpcc --warehouses 4 --memory-limit 25%",
        "docs/benchmarks/workloads.md",
    ),
    more(
        "bench ycsb-core",
        "thermocline bench ycsb-core a --memory-limit 25%",
        "docs/benchmarks/workloads.md",
    ),
    more(
        "bench tatp",
        "thermocline bench tatp --subscribers 100000 --memory-limit 25%",
        "docs/benchmarks/workloads.md",
    ),
    more(
        "bench smallbank",
        "thermocline bench smallbank --customers 100000 --memory-limit 25%",
        "docs/benchmarks/workloads.md",
    ),
    more(
        "bench voter",
        "thermocline bench voter --memory-limit 256MB",
        "docs/benchmarks/workloads.md",
    ),
    more(
        "bench identification",
        "thermocline bench identification",
        "docs/internals/policies.md",
    ),
    more(
        "bench figures",
        "thermocline bench figures 000.2 --quick",
        "docs/figures/figures.md",
    ),
    more(
        "probe",
        "thermocline probe /srv/thermocline --seconds 10",
        "docs/internals/devices.md",
    ),
    more(
        "check",
        "thermocline check /srv/thermocline",
        "docs/guides/check.md",
    ),
    more(
        "backup",
        "thermocline backup /backup/daily --max-rate 50MB",
        "docs/guides/backup.md",
    ),
    more(
        "restore",
        "thermocline restore /backup/daily /srv/restored",
        "docs/guides/restore.md",
    ),
    more(
        "advise",
        "thermocline advise columns --memory 2GB",
        "docs/explain/columns.md",
    ),
    more(
        "advise columns",
        "thermocline advise columns --memory 2GB",
        "docs/explain/columns.md",
    ),
    more(
        "certificate",
        "thermocline certificate --data-dir /srv/thermocline --name db.example.com",
        "docs/guides/access.md",
    ),
    more(
        "version",
        "thermocline version",
        "docs/reference/program.md",
    ),
];

/// The example and the page of a command.
pub(super) fn of(command: &str) -> Option<&'static More> {
    COMMANDS.iter().find(|more| more.command == command)
}

/// A command with all that its help says, and so its subcommands.
pub(crate) fn completed(command: Command) -> Command {
    complete(command, "")
}

fn complete(mut command: Command, name: &str) -> Command {
    if let Some(more) = of(name) {
        let text = format!("Example: {}\nDocs:    {ADDRESS}{}", more.example, more.page);
        command = command.after_help(text);
    }
    if matches!(name, "" | "serve") {
        command = command.mut_args(with_variable);
    }
    command.mut_subcommands(|inner| {
        let full = format!("{name} {}", inner.get_name());
        complete(inner, full.trim())
    })
}

/// A flag of the server, with its name in the environment.
fn with_variable(flag: Arg) -> Arg {
    let Some(long) = flag.get_long() else {
        return flag;
    };
    let named = format!(" [env: {}]", variable(&long.replace('-', "_")));
    let short = flag.get_help().map(ToString::to_string).unwrap_or_default();
    let whole = flag.get_long_help().map(ToString::to_string);
    let flag = flag.help(format!("{short}{named}"));
    match whole.as_deref().and_then(|whole| whole.split_once("\n\n")) {
        Some((first, rest)) => flag.long_help(format!("{first}{named}\n\n{rest}")),
        None => flag,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments;

    fn visit(command: &Command, name: &str, visited: &mut Vec<String>) {
        visited.push(name.to_owned());
        let about = command.get_about().map(ToString::to_string);
        let about = about.unwrap_or_default();
        assert!(about.len() > 4 && !about.ends_with('.'), "{name}: {about}");
        assert!(of(name).is_some(), "{name} has no example");
        for inner in command
            .get_subcommands()
            .filter(|inner| !inner.is_hide_set())
        {
            let full = format!("{name} {}", inner.get_name());
            visit(inner, full.trim(), visited);
        }
    }

    #[test]
    fn each_command_has_an_example_that_is_taken_and_a_page_that_is_there() {
        let mut visited = Vec::new();
        visit(&arguments(), "", &mut visited);
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for more in &COMMANDS {
            assert!(
                visited.iter().any(|name| name == more.command),
                "{}",
                more.command
            );
            assert!(root.join(more.page).exists(), "{}", more.page);
            let taken = arguments().try_get_matches_from(more.example.split(' '));
            assert!(taken.is_ok(), "{}: {taken:?}", more.example);
        }
    }

    #[test]
    fn help_says_defaults_environment_example_and_page() {
        for name in ["", "serve"] {
            let mut command = arguments();
            let command = match name {
                "" => &mut command,
                name => command.find_subcommand_mut(name).expect("a command"),
            };
            let help = command.render_help().to_string();
            let flags = command
                .get_opts()
                .filter(|flag| flag.get_long() != Some("help"));
            for flag in flags {
                let long = flag.get_long().expect("a long name");
                let shown = flag.get_help().map(ToString::to_string).unwrap_or_default();
                let variable = variable(&long.replace('-', "_"));
                assert!(shown.contains("[default: "), "{long}: {shown}");
                assert!(
                    shown.contains(&format!("[env: {variable}]")),
                    "{long}: {shown}"
                );
            }
            assert!(help.contains("Example: thermocline "), "{help}");
            assert!(help.contains("/docs/guides/run.md"), "{help}");
        }
    }
}
