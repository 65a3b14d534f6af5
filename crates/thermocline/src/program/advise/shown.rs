//! Advice as lines of text: the columns with the three ways side by side, what each comes to, and the SQL
//! that does it.

use std::collections::BTreeMap;

use super::choice::{Choice, Column, Limits, State, by_cost, by_frequency, whole_tables};
use super::gather::Facts;
use super::size;

const WAYS: [&str; 3] = ["whole tables", "by frequency", "by cost"];

/// Without `memory` the columns may have what the server gives them at most.
pub(super) fn advice(facts: &Facts, memory: Option<u64>) -> Vec<String> {
    if facts.columns.is_empty() {
        return vec!["There are no column tables (CREATE TABLE … USING columns).".to_owned()];
    }
    if facts.columns.iter().all(|listed| listed.column.uses == 0) {
        return vec![
            "No statement has used a column since the start of the server. Ask again when your application has run."
                .to_owned(),
        ];
    }
    let limits = Limits {
        memory: memory.unwrap_or(facts.memory_limit / 4),
        buffer: facts.buffer,
    };
    let columns = facts.columns.iter().map(|listed| listed.column.clone());
    let columns: Vec<Column> = columns.collect();
    let ways = [whole_tables, by_frequency, by_cost];
    let choices = ways.map(|way| way(&columns, limits));
    let all: u64 = columns.iter().map(|column| column.bytes).sum();
    let mut lines = vec![
        format!(
            "{} columns take {}. They may have {} of memory.",
            columns.len(),
            size::show(all),
            size::show(limits.memory)
        ),
        format!(
            "As soon as one is warm, {} of that are for pages of warm columns (warm_buffer).",
            size::show(limits.buffer)
        ),
        "Times are the device's at most, for what was counted since the start of the server."
            .to_owned(),
        String::new(),
    ];
    lines.extend(by_column(facts, &choices));
    lines.push(String::new());
    lines.extend(sums(&choices, all));
    for (way, choice) in WAYS.iter().zip(&choices) {
        lines.push(String::new());
        lines.push(format!("-- {way}"));
        lines.extend(statements(&columns, &choice.states));
    }
    lines
}

fn by_column(facts: &Facts, choices: &[Choice; 3]) -> Vec<String> {
    let names = facts.columns.iter().map(|listed| {
        let column = &listed.column;
        format!("{}.{}", column.table, column.name)
    });
    let names: Vec<String> = names.collect();
    let width = names.iter().map(|name| name.chars().count()).max();
    let width = width.unwrap_or(0).max("column".len());
    let [tables, frequency, cost] = WAYS;
    let mut lines = vec![format!(
        "{:width$}  {:>10}  {:>8}  {:>10}  {:13}  {tables:12}  {frequency:12}  {cost}",
        "column", "bytes", "uses", "if not hot", "now"
    )];
    for (place, listed) in facts.columns.iter().enumerate() {
        let [tables, frequency, cost] = choices.each_ref().map(|c| name_of(c.states[place]));
        let (name, column) = (&names[place], &listed.column);
        lines.push(format!(
            "{name:width$}  {:>10}  {:>8}  {:>10}  {:13}  {tables:12}  {frequency:12}  {cost}",
            size::show(column.bytes),
            column.uses,
            seconds(column.scan_ns.saturating_add(column.single_ns)),
            listed.state,
        ));
    }
    lines
}

fn sums(choices: &[Choice; 3], all: u64) -> Vec<String> {
    let row = |name: &str, of: &dyn Fn(&Choice) -> String| {
        let [tables, frequency, cost] = choices.each_ref().map(of);
        format!("{name:24}  {tables:>14}  {frequency:>14}  {cost:>14}")
    };
    let counted = |state: State| {
        move |choice: &Choice| {
            let there = choice.states.iter().filter(|there| **there == state);
            there.count().to_string()
        }
    };
    let [tables, frequency, cost] = WAYS;
    let mut lines = vec![
        format!("{:24}  {tables:>14}  {frequency:>14}  {cost:>14}", ""),
        row("hot columns", &counted(State::Hot)),
        row("warm columns", &counted(State::Warm)),
        row("cold columns", &counted(State::Cold)),
        row("memory", &|choice| size::show(choice.memory)),
        row("saved beside all hot", &|choice| {
            size::show(all.saturating_sub(choice.memory))
        }),
        row("the device would work", &|choice| seconds(choice.device_ns)),
    ];
    if choices.iter().any(|choice| choice.shortfall > 0) {
        lines.push(row("short of memory by", &|choice| {
            size::show(choice.shortfall)
        }));
        lines.push("Where memory is short, raise --memory or lower warm_buffer.".to_owned());
    }
    lines
}

fn seconds(ns: u64) -> String {
    format!("{:.3} s", ns as f64 / 1e9)
}

/// How the state of a column is called.
fn name_of(state: State) -> &'static str {
    match state {
        State::Hot => "hot",
        State::Warm => "warm",
        State::Cold => "cold",
    }
}

/// What brings the columns there: first what makes room.
fn statements(columns: &[Column], states: &[State]) -> Vec<String> {
    let of_state = |wanted: State, verb: &str, behind: &str| {
        let mut tables: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (column, _) in columns.iter().zip(states).filter(|(_, s)| **s == wanted) {
            tables.entry(&column.table).or_default().push(&column.name);
        }
        let tables = tables.into_iter();
        let line = tables.map(|(table, names)| {
            let names = names.join(", ");
            format!("{verb} {table} ({names}){behind};")
        });
        line.collect::<Vec<String>>()
    };
    let mut lines = of_state(State::Cold, "UNLOAD", "");
    lines.extend(of_state(State::Warm, "LOAD", " WARM"));
    lines.extend(of_state(State::Hot, "LOAD", ""));
    lines
}

#[cfg(test)]
mod tests {
    use super::super::gather::Listed;
    use super::*;

    #[test]
    fn each_way_comes_with_its_columns_sums_and_statements() {
        let column = |name: &str, bytes: u64, uses: u64| Listed {
            state: "hot".to_owned(),
            column: Column {
                table: "public.t".to_owned(),
                name: name.to_owned(),
                bytes,
                uses,
                scan_ns: uses * 1_000_000,
                ..Column::default()
            },
        };
        let facts = Facts {
            columns: vec![
                column("a", 3 << 20, 9),
                column("\"B\"", 3 << 20, 2),
                column("c", 1 << 20, 0),
            ],
            memory_limit: 20 << 20,
            buffer: 1 << 20,
        };
        let said = advice(&facts, None);
        assert_eq!(
            said[4..],
            [
                "column             bytes      uses  if not hot  now            whole tables  by frequency  by cost",
                "public.t.a          3 MB         9     0.009 s  hot            warm          hot           hot",
                "public.t.\"B\"        3 MB         2     0.002 s  hot            warm          warm          cold",
                "public.t.c          1 MB         0     0.000 s  hot            warm          cold          cold",
                "",
                "                            whole tables    by frequency         by cost",
                "hot columns                            0               1               1",
                "warm columns                           3               1               0",
                "cold columns                           0               1               2",
                "memory                              1 MB            4 MB            3 MB",
                "saved beside all hot                6 MB            3 MB            4 MB",
                "the device would work            0.011 s         0.002 s         0.002 s",
                "",
                "-- whole tables",
                "LOAD public.t (a, \"B\", c) WARM;",
                "",
                "-- by frequency",
                "UNLOAD public.t (c);",
                "LOAD public.t (\"B\") WARM;",
                "LOAD public.t (a);",
                "",
                "-- by cost",
                "UNLOAD public.t (\"B\", c);",
                "LOAD public.t (a);",
            ]
        );
        // Less than the buffer: two ways cannot do with it.
        let said = advice(&facts, Some(512 << 10)).join("\n");
        let short = "short of memory by                512 kB          512 kB         0 bytes";
        assert!(said.contains(short), "{said}");
        let mut unused = facts;
        for listed in &mut unused.columns {
            listed.column.uses = 0;
        }
        let said = advice(&unused, None);
        assert!(said.len() == 1 && said[0].starts_with("No statement"));
        let none = Facts {
            columns: Vec::new(),
            ..unused
        };
        assert_eq!(advice(&none, None).len(), 1);
    }
}
