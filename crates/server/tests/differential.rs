//! Random statements, answered three times: by the short path, by the
//! analytical path (`thermocline.path = analytical`) and, where PostgreSQL 15
//! is installed, by PostgreSQL. The answers must be the same: rows as text,
//! columns' names and types, command tags, errors by SQLSTATE.
//!
//! A round makes tables from a seed and runs statements over them. To repeat
//! one: THERMOCLINE_DIFFERENTIAL_SEED=<seed of the round>
//! THERMOCLINE_DIFFERENTIAL_STATEMENTS=<how many> cargo test -p
//! thermocline-server --test differential
//!
//! At a round's end some of its statements come again with other literals, several times: such a text
//! may run by the plan of one before it.
//!
//! In every third round all rows leave memory again and again, so that statements find them cold.
//! THERMOCLINE_SERVER=<address:port> asks a server that runs already, for a long run.

#[path = "support/postgres.rs"]
mod postgres;
#[path = "support/statements.rs"]
mod statements;
mod support;

use std::fmt::Write;

use bytes::Buf;
use postgres::Postgres;
use statements::{Kind, Order, Round, Statement};
use support::{Message, Running, Wire, server_under_test};

/// Seeds of rounds that once showed a difference; they always run first.
const ONCE_FAILED: &[u64] = &[20_000, 70_047, 70_133];
/// Likewise of rounds of queries.
const QUERIES_ONCE_FAILED: &[u64] = &[20_029];
/// The first seed, unless the environment says another.
const SEED: u64 = 20_000;
/// Statements of a run, unless the environment says how many.
const STATEMENTS: u64 = 2_400;
/// Queries of a run, unless the environment says how many.
const QUERIES: u64 = 1_200;
const STATEMENTS_A_ROUND: u64 = 80;
/// Behind so many statements one comes again with other literals.
const A_VARIATION: u64 = 4;
/// In each such round rows leave memory before each such statement.
const EVICTING: (u64, u64) = (3, 4);
/// A round's settings of how dates, times and numbers look: every other round has some.
const STYLES: [&str; 8] = [
    PLAIN,
    "set timezone = 'Europe/Berlin'",
    PLAIN,
    "set datestyle = 'SQL, DMY'; set timezone = 'America/New_York'",
    PLAIN,
    "set datestyle = 'Postgres, MDY'; set intervalstyle = 'iso_8601'",
    PLAIN,
    "set datestyle = 'German'; set intervalstyle = 'postgres_verbose'; set timezone = '+05:30'; \
     set extra_float_digits = 0; set bytea_output = escape",
];
const PLAIN: &str = "reset timezone; reset datestyle; reset intervalstyle; \
     reset extra_float_digits; reset bytea_output";
/// So many differences are shown with the statements that lead to them.
const SHOWN_IN_FULL: usize = 4;

/// A difference, and the statements before it.
struct Difference {
    seed: u64,
    before: String,
    shown: String,
}

/// What a server answers to one statement.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    Done {
        columns: Vec<(String, u32)>,
        rows: Vec<Vec<Option<String>>>,
        tag: String,
    },
    Error {
        sqlstate: String,
    },
}

impl Answer {
    fn of(messages: &[Message], order: Order) -> (Self, String) {
        let (mut columns, mut rows, mut tag) = (Vec::new(), Vec::new(), String::new());
        for message in messages {
            let mut body = message.body.clone();
            match message.tag {
                b'T' => {
                    for _ in 0..body.get_u16() {
                        let end = body.iter().position(|byte| *byte == 0).unwrap();
                        let name = String::from_utf8(body.split_to(end).to_vec()).unwrap();
                        body.advance(7);
                        columns.push((name, body.get_u32()));
                        body.advance(8);
                    }
                }
                b'D' => {
                    let values = (0..body.get_u16()).map(|_| {
                        let length = usize::try_from(body.get_i32()).ok()?;
                        Some(String::from_utf8(body.split_to(length).to_vec()).unwrap())
                    });
                    rows.push(values.collect());
                }
                b'C' => tag = String::from_utf8(body[..body.len() - 1].to_vec()).unwrap(),
                b'E' => {
                    let sqlstate = message.sqlstate();
                    let text = message.field(b'M').unwrap_or_default();
                    return (Self::Error { sqlstate }, text);
                }
                _ => {}
            }
        }
        if order == Order::Any {
            rows.sort();
        }
        (Self::Done { columns, rows, tag }, String::new())
    }

    fn is_error(&self) -> bool {
        matches!(self, Self::Error { .. })
    }
}

/// The servers under comparison.
struct Servers {
    ours: Wire,
    postgres: Option<Wire>,
}

async fn connect(address: std::net::SocketAddr) -> Wire {
    let mut wire = Wire::connect(address).await;
    wire.startup(3 << 16, &[("user", "postgres"), ("database", "postgres")])
        .await;
    wire.until(b'Z').await;
    wire
}

async fn must(wire: &mut Wire, sql: &str) {
    let messages = wire.query(sql).await;
    assert!(
        messages.iter().all(|message| message.tag != b'E'),
        "{sql}: {messages:?}"
    );
}

impl Servers {
    /// The differences in the answers to one statement.
    async fn compare(&mut self, sql: &str, kind: Kind, order: Order) -> Vec<String> {
        let (ours, text) = Answer::of(&self.ours.query(sql).await, order);
        let mut differences = Vec::new();
        let mut differ = |against: &str, other: &Answer, other_text: &str| {
            let mut shown = format!("{sql};\n");
            let _ = writeln!(shown, "  thermocline: {} {text}", brief(&ours, other));
            let _ = writeln!(shown, "  {against}: {} {other_text}", brief(other, &ours));
            differences.push(shown);
        };
        // An error in a transaction leaves nothing to be asked again.
        let failed = self.in_failed_transaction(&ours).await;
        if kind == Kind::Read && !failed {
            must(&mut self.ours, "set thermocline.path = analytical").await;
            let (analytical, text) = Answer::of(&self.ours.query(sql).await, order);
            if analytical != ours {
                differ("analytical path", &analytical, &text);
            }
            if !self.in_failed_transaction(&analytical).await {
                must(&mut self.ours, "set thermocline.path = auto").await;
            }
        }
        if let Some(postgres) = &mut self.postgres {
            let (theirs, text) = Answer::of(&postgres.query(sql).await, order);
            if theirs != ours {
                differ("PostgreSQL", &theirs, &text);
            }
        }
        differences
    }

    async fn in_failed_transaction(&mut self, answer: &Answer) -> bool {
        if !answer.is_error() {
            return false;
        }
        let status = self.ours.query("").await;
        status.last().is_some_and(|ready| ready.body[..] == *b"E")
    }

    /// All rows of the tables leave memory, unless a transaction is open.
    async fn evict(&mut self, round: &Round) {
        let status = self.ours.query("").await;
        if status.last().is_none_or(|ready| ready.body[..] != *b"I") {
            return;
        }
        for name in round.names() {
            let all = format!("call thermocline.evict('{name}', {})", 1_u64 << 40);
            must(&mut self.ours, &all).await;
        }
    }

    async fn both(&mut self, sql: &str) {
        self.ours.query(sql).await;
        if let Some(postgres) = &mut self.postgres {
            postgres.query(sql).await;
        }
    }

    /// One round; its differences with the statements that lead to them.
    async fn round(&mut self, seed: u64, count: u64, mix: Mix) -> Vec<Difference> {
        let mut round = Round::new(seed);
        let mut written = String::new();
        let mut found = Vec::new();
        for table in round.definitions() {
            let _ = writeln!(written, "{}{};", table.sql, table.ours);
            must(&mut self.ours, &format!("{}{}", table.sql, table.ours)).await;
            if let Some(postgres) = &mut self.postgres {
                must(postgres, &table.sql).await;
            }
        }
        let styles = STYLES[usize::try_from(seed).unwrap_or(0) % STYLES.len()];
        self.both(styles).await;
        let _ = writeln!(written, "{styles};");
        let (mut literal, mut again) = (Vec::new(), Vec::<Statement>::new());
        for number in 0.. {
            if seed.is_multiple_of(EVICTING.0) && number % EVICTING.1 == 0 {
                self.evict(&round).await;
            }
            if number >= count && again.is_empty() {
                if number >= count + count / A_VARIATION || literal.is_empty() {
                    break;
                }
                again = round.variations(&literal);
            }
            let statement = match (again.pop(), mix) {
                (Some(again), _) => again,
                (None, Mix::Statements) => round.statement(),
                (None, Mix::Queries) => round.query(),
            };
            let differences = self
                .compare(&statement.sql, statement.kind, statement.order)
                .await;
            // After these the servers do not hold the same any more.
            let diverged = !differences.is_empty()
                && (statement.kind != Kind::Read
                    || differences.iter().any(|shown| shown.contains("Error")));
            found.extend(differences.into_iter().map(|shown| Difference {
                seed,
                before: written.clone(),
                shown,
            }));
            if statement.kind != Kind::Read {
                let _ = writeln!(written, "{};", statement.sql);
            }
            if diverged {
                break;
            }
            if number < count && round.note(&statement) {
                literal.push(statement);
            }
        }
        self.both("rollback").await;
        self.both(PLAIN).await;
        must(&mut self.ours, "set thermocline.path = auto").await;
        for name in round.names() {
            self.both(&format!("drop table {name}")).await;
        }
        found
    }
}

/// An answer without what the other has too.
fn brief(answer: &Answer, other: &Answer) -> String {
    let (
        Answer::Done { columns, rows, tag },
        Answer::Done {
            columns: other_columns,
            rows: other_rows,
            ..
        },
    ) = (answer, other)
    else {
        return match answer {
            Answer::Done { rows, tag, .. } => {
                format!("{tag}, {:?}", rows.iter().take(2).collect::<Vec<_>>())
            }
            error @ Answer::Error { .. } => format!("{error:?}"),
        };
    };
    let mut shown = tag.clone();
    if columns != other_columns {
        let _ = write!(shown, ", columns {columns:?}");
    }
    if let Some(at) = (0..rows.len()).find(|at| rows.get(*at) != other_rows.get(*at)) {
        let _ = write!(shown, ", row {at} {:?}", rows[at]);
    }
    shown
}

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is no number: {text}"))
    })
}

/// What a round consists of.
#[derive(Clone, Copy)]
enum Mix {
    /// Statements of all kinds.
    Statements,
    /// Queries over both tables.
    Queries,
}

/// Rounds from `first` on, until so many statements were compared, after those of `seeds`.
async fn compare(mix: Mix, seeds: &[u64], first: u64, statements: u64) {
    let postgres = Postgres::start();
    if let Err(reason) = &postgres {
        println!("Not compared with PostgreSQL: {reason}.");
    }
    let (address, server) = server_under_test().await;
    let mut servers = Servers {
        ours: connect(address).await,
        postgres: match &postgres {
            Ok(postgres) => Some(connect(postgres.address).await),
            Err(_) => None,
        },
    };
    // Durability is not under test here.
    servers.both("set synchronous_commit = off").await;
    servers
        .both("set default_transaction_isolation = 'repeatable read'")
        .await;
    let mut differences = Vec::new();
    for seed in seeds {
        differences.extend(servers.round(*seed, STATEMENTS_A_ROUND, mix).await);
    }
    let mut left = statements;
    for seed in first.. {
        if left == 0 {
            break;
        }
        let count = left.min(STATEMENTS_A_ROUND);
        differences.extend(servers.round(seed, count, mix).await);
        left -= count;
    }
    drop(servers);
    drop(server);
    let mut report = String::new();
    for difference in &differences {
        let _ = write!(report, "-- seed {}\n{}", difference.seed, difference.shown);
    }
    for difference in differences.iter().take(SHOWN_IN_FULL) {
        let Difference {
            seed,
            before,
            shown,
        } = difference;
        let _ = write!(report, "\n-- in full, seed {seed}\n{before}{shown}");
    }
    assert!(
        differences.is_empty(),
        "{} differences:\n{report}",
        differences.len()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_paths_and_postgresql_answer_alike() {
    let first = from_environment("THERMOCLINE_DIFFERENTIAL_SEED", SEED);
    let statements = from_environment("THERMOCLINE_DIFFERENTIAL_STATEMENTS", STATEMENTS);
    compare(Mix::Statements, ONCE_FAILED, first, statements).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_over_tables_are_answered_as_postgresql_answers_them() {
    let first = from_environment("THERMOCLINE_DIFFERENTIAL_SEED", SEED);
    let statements = from_environment("THERMOCLINE_DIFFERENTIAL_QUERIES", QUERIES);
    compare(Mix::Queries, QUERIES_ONCE_FAILED, first, statements).await;
}

#[tokio::test]
async fn the_setting_chooses_the_path() {
    let server = Running::start(|_| {}).await;
    let mut wire = connect(server.address).await;
    must(&mut wire, "create table t (id int primary key)").await;
    must(&mut wire, "prepare one as select id from t where id = 1").await;
    for (path, shown) in [("auto", "Path: short"), ("analytical", "Path: analytical")] {
        must(&mut wire, &format!("set thermocline.path = {path}")).await;
        let messages = wire.query("explain select id from t where id = 1").await;
        assert!(
            messages.iter().any(|message| {
                message.tag == b'D' && String::from_utf8_lossy(&message.body).contains(shown)
            }),
            "{path}: {messages:?}"
        );
        // Whatever the path, plans that were kept go on.
        must(&mut wire, "execute one").await;
        must(&mut wire, "insert into t select 2 on conflict do nothing").await;
        must(&mut wire, "select id from t where id = 2 for update").await;
    }
    let refused = wire.query("set thermocline.path = scenic").await;
    assert_eq!(refused[0].sqlstate(), "22023");
}
