//! What `pg_dump` of PostgreSQL 15 writes of a database of ours is loaded into another, and what
//! it writes of that one is the same. What it writes of PostgreSQL's own is loaded here. And
//! `pg_depend`, by which it orders objects, says what PostgreSQL's says. Skipped where PostgreSQL
//! is not installed.

#[path = "support/postgres.rs"]
mod postgres;
mod support;

use std::path::Path;
use std::process::{Command, Output};

use postgres::Postgres;
use support::Running;

/// The schema of an application, which PostgreSQL takes, too, its rows and rights, and what only
/// this database has.
const SHOP: &str = include_str!("dump/shop.sql");
const ROWS: &str = include_str!("dump/rows.sql");
const OURS: &str = include_str!("dump/ours.sql");
const ROLES: &str = "CREATE ROLE shop_reader; CREATE ROLE shop_clerk LOGIN;";
/// Names what depends on what, for objects in schema `shop`.
const DEPENDENCIES: &str = include_str!("dump/dependencies.sql");

/// A program of PostgreSQL's, connected to a server.
fn run(name: &str, port: u16, arguments: &[&str]) -> Output {
    Command::new(Path::new(postgres::PROGRAMS).join(name))
        .args(["-h", "127.0.0.1", "-U", "postgres", "-p", &port.to_string()])
        .args(arguments)
        .env("LC_ALL", "C.UTF-8")
        .output()
        .unwrap()
}

/// What a program prints that must succeed and have nothing to say. pg_dump may warn of foreign
/// keys that go in a circle.
fn printed(name: &str, port: u16, arguments: &[&str]) -> String {
    let output = run(name, port, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && (said.is_empty() || name == "pg_dump"),
        "{name} {arguments:?}: {said}"
    );
    String::from_utf8(output.stdout).unwrap()
}

/// What `pg_dump` writes, without the words that differ each time.
fn dumped(port: u16, arguments: &[&str]) -> String {
    let text = printed("pg_dump", port, &[arguments, &["postgres"]].concat());
    let same = |line: &&str| !line.starts_with("\\restrict") && !line.starts_with("\\unrestrict");
    // A carriage return before the end of a line is a value's.
    let lines: Vec<&str> = text.split('\n').filter(same).collect();
    lines.join("\n")
}

/// The same with the rows of each table in order: a table gives them in none.
fn ordered(dump: &str) -> String {
    let mut lines: Vec<&str> = dump.lines().collect();
    let mut rows_from = None;
    for at in 0..lines.len() {
        match rows_from {
            None if lines[at].starts_with("COPY ") => rows_from = Some(at + 1),
            Some(from) if lines[at] == "\\." => {
                lines[from..at].sort_unstable();
                rows_from = None;
            }
            _ => {}
        }
    }
    lines.join("\n")
}

/// Runs a script, which must run through.
fn load(port: u16, script: &str) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("script.sql");
    std::fs::write(&file, script).unwrap();
    let file = file.to_str().unwrap();
    let stop = "ON_ERROR_STOP=1";
    printed(
        "psql",
        port,
        &[
            "-X",
            "-q",
            "-o",
            "/dev/null",
            "-v",
            stop,
            "-f",
            file,
            "postgres",
        ],
    );
}

fn is_there() -> bool {
    let there = Path::new(postgres::PROGRAMS).join("pg_dump").exists();
    if !there {
        println!("Not run: there is no pg_dump.");
    }
    there
}

/// A server with roles, for what is loaded.
async fn server() -> Running {
    let server = Running::start(|_| {}).await;
    let port = server.address.port();
    tokio::task::block_in_place(|| load(port, ROLES));
    server
}

/// The first lines in which two texts differ.
fn assert_same(found: &str, expected: &str, what: &str) {
    let (found, expected) = (ordered(found), ordered(expected));
    let mut lines = found.lines().zip(expected.lines()).enumerate();
    let differs = lines.find(|(_, (found, expected))| found != expected);
    assert!(
        found == expected,
        "{what}: {differs:?}, of {} and {} lines",
        found.lines().count(),
        expected.lines().count()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_pg_dump_writes_is_loaded_and_written_again() {
    if !is_there() {
        return;
    }
    let from = server().await;
    let port = from.address.port();
    let whole = tokio::task::block_in_place(|| {
        for script in [SHOP, ROWS, OURS] {
            load(port, script);
        }
        dumped(port, &[])
    });
    for part in [
        "ALTER SEQUENCE shop.orders_id_seq OWNED BY shop.orders.id;",
        "ALTER TABLE shop.customers ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (",
        "number bigint DEFAULT nextval('shop.invoice_number'::regclass)",
        "history shop.state[] DEFAULT ARRAY['cart'::shop.state]",
        "CREATE DOMAIN shop.money_amount AS numeric(12,2) DEFAULT 0\n",
        "SELECT pg_catalog.setval('shop.invoice_number', 1019, true);",
        "tab\\tline\\nback\\\\slash",
        "GRANT UPDATE(stock) ON TABLE shop.products TO shop_clerk WITH GRANT OPTION;",
        "SET default_table_access_method = columns;",
    ] {
        assert!(whole.contains(part), "{part} is not in {whole}");
    }
    // Loaded in whole, in sections, and over what is not there.
    for parts in [
        &[&[] as &[&str]] as &[&[&str]],
        &[
            &["--section=pre-data"],
            &["--section=data"],
            &["--section=post-data"],
        ],
        &[&["--clean", "--if-exists"]],
    ] {
        let to = server().await;
        let second = tokio::task::block_in_place(|| {
            for part in parts {
                load(to.address.port(), &dumped(port, part));
            }
            dumped(to.address.port(), &[])
        });
        assert_same(&second, &whole, &format!("{parts:?}"));
    }
    // A file of its own format, over a database that has all that is in it.
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("dump");
    let file = file.to_str().unwrap();
    let to = server().await;
    let again = tokio::task::block_in_place(|| {
        printed("pg_dump", port, &["-Fc", "-f", file, "postgres"]);
        let there = to.address.port();
        printed("pg_restore", there, &["-e", "-d", "postgres", file]);
        // PostgreSQL's pg_restore does not drop keys of partitions, there either.
        load(there, "DROP TABLE shop.visits");
        let clean = ["-e", "--clean", "--if-exists", "-d", "postgres", file];
        printed("pg_restore", there, &clean);
        dumped(there, &[])
    });
    assert_same(&again, &whole, "pg_restore");
    // One table of it.
    let one = tokio::task::block_in_place(|| dumped(port, &["-t", "shop.order_lines"]));
    assert!(one.contains("CREATE TABLE shop.order_lines (") && !one.contains("shop.orders ("));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_pg_dump_writes_of_postgresql_is_loaded_here_and_depends_on_the_same() {
    if !is_there() {
        return;
    }
    let theirs = match Postgres::start() {
        Ok(theirs) => theirs,
        Err(why) => {
            println!("Not run: {why}.");
            return;
        }
    };
    let (from, ours, loaded) = (theirs.address.port(), server().await, server().await);
    tokio::task::block_in_place(|| {
        for script in [ROLES, SHOP, ROWS] {
            load(from, script);
        }
        for script in [SHOP, ROWS] {
            load(ours.address.port(), script);
        }
        load(loaded.address.port(), &dumped(from, &[]));
        let rows = |of: &Running| dumped(of.address.port(), &["--data-only"]);
        assert_same(&rows(&loaded), &rows(&ours), "rows of PostgreSQL's");
        let query = ["-X", "-A", "-t", "-c", DEPENDENCIES, "postgres"];
        let expected = printed("psql", from, &query);
        assert_same(
            &printed("psql", ours.address.port(), &query),
            &expected,
            "pg_depend",
        );
        assert_same(
            &printed("psql", loaded.address.port(), &query),
            &expected,
            "pg_depend, loaded",
        );
    });
}

/// Ways to write all that there is, and to load it: what pg_dump is told, and what pg_restore is
/// where it writes no script.
const FORMS: [(&[&str], Option<&[&str]>); 4] = [
    (&["--column-inserts"], None),
    (
        &[
            "--inserts",
            "--rows-per-insert=7",
            "--on-conflict-do-nothing",
        ],
        None,
    ),
    (&["-Fc"], Some(&["-e", "-j", "2"])),
    (&["-Ft", "--inserts"], Some(&["-1"])),
];

/// Loads what a server has into another, in one of the forms.
fn carry(from: u16, to: u16, (dump, restore): (&[&str], Option<&[&str]>)) {
    let Some(restore) = restore else {
        return load(to, &dumped(from, dump));
    };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("dump");
    let file = file.to_str().unwrap();
    printed("pg_dump", from, &[dump, &["-f", file, "postgres"]].concat());
    printed(
        "pg_restore",
        to,
        &[restore, &["-d", "postgres", file]].concat(),
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dumps_of_all_forms_are_loaded() {
    if !is_there() {
        return;
    }
    let ours = server().await;
    tokio::task::block_in_place(|| {
        for script in [SHOP, ROWS, OURS] {
            load(ours.address.port(), script);
        }
    });
    let theirs = Postgres::start();
    let mut sources = vec![("ours", ours.address.port())];
    match &theirs {
        Ok(theirs) => {
            let port = theirs.address.port();
            tokio::task::block_in_place(|| {
                for script in [ROLES, SHOP, ROWS] {
                    load(port, script);
                }
            });
            sources.push(("PostgreSQL's", port));
        }
        Err(why) => println!("Not run with PostgreSQL's: {why}."),
    }
    for (name, from) in sources {
        let plain = server().await;
        let expected = tokio::task::block_in_place(|| {
            carry(from, plain.address.port(), (&[], None));
            dumped(plain.address.port(), &[])
        });
        for form in FORMS {
            let to = server().await;
            let loaded = tokio::task::block_in_place(|| {
                carry(from, to.address.port(), form);
                dumped(to.address.port(), &[])
            });
            assert_same(&loaded, &expected, &format!("{name}: {form:?}"));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_of_a_database_is_carried_by_itself() {
    if !is_there() {
        return;
    }
    let from = server().await;
    let port = from.address.port();
    tokio::task::block_in_place(|| {
        for script in [SHOP, ROWS, OURS] {
            load(port, script);
        }
    });
    // First what there is, then its rows: but for tables whose keys refer to each other in a circle.
    let to = server().await;
    let there = to.address.port();
    let parts: [&[&str]; 2] = [&["-n", "public"], &["-n", "\"Odd Schema\""]];
    tokio::task::block_in_place(|| {
        load(there, &dumped(port, &["--schema-only"]));
        assert_same(
            &dumped(there, &["--schema-only"]),
            &dumped(port, &["--schema-only"]),
            "--schema-only",
        );
        for part in parts {
            load(there, &dumped(port, &[part, &["--data-only"]].concat()));
            assert_same(
                &dumped(there, part),
                &dumped(port, part),
                &format!("{part:?}"),
            );
        }
    });
    // Single tables.
    let tables = [
        "-t",
        "public.measured",
        "-t",
        "public.hashed",
        "-t",
        "shop.quotes",
    ];
    let to = server().await;
    let there = to.address.port();
    tokio::task::block_in_place(|| {
        load(there, "CREATE SCHEMA shop");
        load(there, &dumped(port, &tables));
        assert_same(&dumped(there, &tables), &dumped(port, &tables), "-t");
    });
}
