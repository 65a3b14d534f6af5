//! The page on limits is printed from the constants that hold them, and compared with the page
//! that is there.

#[path = "support/printed.rs"]
mod printed;

use std::fs;
use std::path::Path;

/// How a limit is shown.
enum Shown {
    Number,
    Bytes,
    Seconds,
    /// A share of `memory_limit`: one of so many parts.
    Share,
}
use Shown::{Bytes, Number, Seconds, Share};

/// What has a limit; the file and the constant that hold it; what else there is to say.
type Limit = (
    &'static str,
    &'static str,
    &'static str,
    Shown,
    &'static str,
);

const OF_SQL: [Limit; 21] = [
    (
        "a row",
        "engine/src/access/write.rs",
        "TUPLE_BYTES_MAX",
        Bytes,
        "",
    ),
    (
        "columns of a table",
        "sql/src/ddl/create_table.rs",
        "COLUMNS_MAX",
        Number,
        "beyond it `54011`",
    ),
    (
        "columns of an index",
        "sql/src/ddl/create_table.rs",
        "INDEX_COLUMNS_MAX",
        Number,
        "beyond it `54011`",
    ),
    (
        "columns of a select list",
        "query/src/analyze/select.rs",
        "TARGETS_MAX",
        Number,
        "beyond it `54011`",
    ),
    (
        "attributes of a composite type",
        "sql/src/ddl/attribute.rs",
        "ATTRIBUTES_MAX",
        Number,
        "",
    ),
    (
        "a label of an enum",
        "sql/src/ddl/user_type.rs",
        "LABEL_BYTES_MAX",
        Bytes,
        "",
    ),
    (
        "a key of a B+tree",
        "storage/src/btree.rs",
        "KEY_BYTES_MAX",
        Bytes,
        "beyond it `54000`",
    ),
    (
        "a name",
        "sql/src/ddl/names.rs",
        "NAME_BYTES_MAX",
        Bytes,
        "longer ones are cut",
    ),
    (
        "a comment",
        "engine/src/catalog/comment.rs",
        "COMMENT_BYTES_MAX",
        Bytes,
        "",
    ),
    (
        "a statement",
        "sql/src/parse/mod.rs",
        "STATEMENT_BYTES_MAX",
        Bytes,
        "beyond it `54000`",
    ),
    (
        "the query of a view, the text of a function",
        "engine/src/catalog/view.rs",
        "DEFINITION_BYTES_MAX",
        Bytes,
        "beyond it `54000`",
    ),
    (
        "levels of a statement",
        "sql/src/parse/depth.rs",
        "DEPTH_MAX",
        Number,
        "parentheses, brackets, `CASE`, subqueries, joins, set operations, operators in a chain; beyond it `54001`. Chains of `AND` and `OR` have no limit",
    ),
    (
        "levels of `BETWEEN`, `NULLIF`, `COALESCE` and `CASE x WHEN` in each other's operands",
        "sql/src/parse/depth.rs",
        "COPIES_MAX",
        Number,
        "beyond it `54001`",
    ),
    (
        "dimensions of an array",
        "query/src/types/array.rs",
        "DIMENSIONS_MAX",
        Number,
        "beyond it `54000`",
    ),
    (
        "a value that an expression makes, a row of a result",
        "query/src/call.rs",
        "VALUE_BYTES_MAX",
        Bytes,
        "beyond it `54000`. Smaller ones get `53200` where the session or analytical statements have no room",
    ),
    (
        "levels of a `json` text",
        "query/src/types/json.rs",
        "DEPTH_MAX",
        Number,
        "beyond it `54001`",
    ),
    (
        "levels of a `jsonb`",
        "query/src/types/jsonb/tree.rs",
        "DEPTH_MAX",
        Number,
        "beyond it `54001`",
    ),
    (
        "a payload of `NOTIFY`",
        "sql/src/session/notify.rs",
        "PAYLOAD_BYTES",
        Bytes,
        "",
    ),
    (
        "cold rows that one short statement may need",
        "engine/src/access/mod.rs",
        "MISSING_MAX",
        Number,
        "by look-ups. Larger reads go to the analytical path, larger writes fail (`53200`)",
    ),
    (
        "partitions",
        "engine/src/parts/settings.rs",
        "PARTITIONS_MAX",
        Number,
        "a power of two",
    ),
    (
        "rows of a table in a partition",
        "storage/src/row_directory.rs",
        "ROWS_MAX",
        Number,
        "",
    ),
];

const OF_MEMORY: [Limit; 5] = [
    (
        "`memory_limit`, at least",
        "engine/src/parts/settings.rs",
        "MEMORY_LIMIT_MIN",
        Bytes,
        "",
    ),
    (
        "what hot rows keep of `memory_limit`",
        "engine/src/memory/floor.rs",
        "FLOOR_SHARE",
        Share,
        "a statement that makes row directories, indexes or the catalog grow into it gets `53200`",
    ),
    (
        "what sessions hold",
        "engine/src/memory/account.rs",
        "CLIENTS_SHARE_DIVISOR",
        Share,
        "beyond it `53200`",
    ),
    (
        "changed rows kept for open snapshots",
        "engine/src/parts/mod.rs",
        "VERSIONS_SHARE",
        Share,
        "or less; beyond it the oldest snapshot ends, `72000`",
    ),
    (
        "all analytical queries",
        "sql/src/analytics/memory.rs",
        "SHARE_DIVISOR",
        Share,
        "beyond it `53200`",
    ),
];

const OF_THE_WIRE: [Limit; 5] = [
    (
        "a start-up packet",
        "server/src/config.rs",
        "STARTUP_PACKET_BYTES_MAX",
        Bytes,
        "",
    ),
    (
        "until a client's first message",
        "server/src/config.rs",
        "SILENCE_MAX",
        Seconds,
        "",
    ),
    (
        "messages that carry only names (Execute, Describe, Close, …)",
        "server/src/config.rs",
        "SMALL_MESSAGE_BYTES_MAX",
        Bytes,
        "",
    ),
    (
        "connections that are not let in yet: starting, cancelling, being refused",
        "server/src/config.rs",
        "PENDING_CONNECTIONS_MAX",
        Number,
        "one more replaces the oldest silent one of the address with most of them",
    ),
    (
        "answers collected before they are written",
        "server/src/config.rs",
        "FLUSH_BYTES",
        Bytes,
        "",
    ),
];

/// The value of a constant in a source: a number, perhaps shifted or less something.
fn value(file: &str, name: &str) -> u64 {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
    let text = fs::read_to_string(&path).expect("the source");
    let text = text.lines().find_map(|line| {
        let line = line.trim_start();
        let line = line
            .trim_start_matches("pub(super) ")
            .trim_start_matches("pub(crate) ");
        let rest = line.trim_start_matches("pub ").strip_prefix("const ")?;
        let rest = rest.strip_prefix(name)?.strip_prefix(": ")?;
        rest.split_once(" = ")
            .map(|(_, value)| value.trim_end_matches(';'))
    });
    let text = text.unwrap_or_else(|| panic!("{file} has no {name}"));
    let text = text.trim_start_matches("Duration::from_secs");
    let mut total: Option<u64> = None;
    let mut operator = "";
    for token in text.split_whitespace() {
        let token = token.trim_matches(['(', ')']).replace('_', "");
        if matches!(token.as_str(), "<<" | "-") {
            operator = if token == "-" { "-" } else { "<<" };
            continue;
        }
        let number = match (token.strip_prefix("0x"), token.as_str()) {
            (Some(digits), _) => u64::from_str_radix(digits, 16).ok(),
            (None, "u32::MAX") => Some(u64::from(u32::MAX)),
            (None, digits) => digits.parse().ok(),
        };
        let number = number.unwrap_or_else(|| panic!("{file}: {name} is {text}"));
        total = Some(match (total, operator) {
            (None, _) => number,
            (Some(total), "<<") => total << number,
            (Some(total), _) => total - number,
        });
    }
    total.expect("a number")
}

/// Digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::new();
    for (place, digit) in digits.char_indices() {
        let left = digits.len() - place;
        if place > 0 && left.is_multiple_of(3) && digits.len() > 4 {
            shown.push(' ');
        }
        shown.push(digit);
    }
    shown
}

fn bytes(number: u64) -> String {
    // PostgreSQL's longest value, 1 GB less a byte.
    match number {
        0x3fff_ffff => "1 GB".to_owned(),
        number if number % (1 << 20) == 0 => format!("{} MB", number >> 20),
        number if number % (1 << 10) == 0 => format!("{} kB", number >> 10),
        number => format!("{} bytes", grouped(number)),
    }
}

fn table(limits: &[Limit]) -> String {
    let mut table = String::from("| what | limit | |\n|---|---|---|\n");
    for (what, file, name, shown, more) in limits {
        let number = value(file, name);
        let number = match shown {
            Number => grouped(number),
            Bytes => bytes(number),
            Seconds => format!("{number} s"),
            Share => format!("`memory_limit` / {number}"),
        };
        table.push_str(&printed::row(&[
            (*what).to_owned(),
            number,
            (*more).to_owned(),
        ]));
    }
    table
}

#[test]
fn reference_limits_are_as_the_code_has_them() {
    let page = "docs/reference/limits.md";
    printed::compare(page, "sql", &table(&OF_SQL));
    printed::compare(page, "memory", &table(&OF_MEMORY));
    printed::compare(page, "wire", &table(&OF_THE_WIRE));
}
