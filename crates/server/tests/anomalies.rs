//! The anomalies of isolation levels, one small schedule each, through the wire: those that Adya's
//! thesis names, in the forms of Hermitage. Each schedule runs at each level. An anomaly must not
//! happen at the levels that exclude it, and where PostgreSQL is installed, it runs the same
//! schedule: what both let pass must have read and left the same, unless only
//! PostgreSQL's has the anomaly.

#[path = "support/postgres.rs"]
mod postgres;
mod support;

use std::fmt::Write;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use postgres::Postgres;
use support::{Message, PATIENCE, Running, Wire, rows_as_text};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// From the weakest on.
const LEVELS: [&str; 3] = ["read committed", "repeatable read", "serializable"];
const READ_COMMITTED: usize = 0;
const REPEATABLE_READ: usize = 1;
const SERIALIZABLE: usize = 2;

/// Every schedule begins with these rows.
const SETUP: &str = "drop table if exists test; \
     create table test (id int primary key, value int); insert into test values (1, 10), (2, 20)";
const SESSIONS: usize = 3;

/// A schedule: who says what, in this order. A step that waits for a lock waits beside the next.
struct Anomaly {
    name: &'static str,
    /// The weakest level that excludes it.
    excluded_from: usize,
    steps: &'static [(usize, &'static str)],
    happened: fn(&Outcome) -> bool,
}

/// What came of a schedule.
#[derive(Default)]
struct Outcome {
    /// Of each step: its rows, its tag or its SQLSTATE.
    steps: Vec<Step>,
    /// The rows in the end.
    left: String,
}

#[derive(Clone, Default, PartialEq, Eq)]
struct Step {
    rows: String,
    tag: String,
    sqlstate: Option<String>,
}

impl Step {
    fn of(messages: &[Message]) -> Self {
        let mut step = Self {
            rows: pairs(messages),
            ..Self::default()
        };
        for message in messages {
            match message.tag {
                b'C' => step.tag = text_of(message),
                b'E' => step.sqlstate = Some(message.sqlstate()),
                _ => {}
            }
        }
        step
    }
}

impl Outcome {
    /// The rows of a step; none if it failed.
    fn read(&self, step: usize) -> Option<&str> {
        let step = &self.steps[step];
        step.sqlstate.is_none().then_some(step.rows.as_str())
    }

    /// Whether a step, a COMMIT, has committed.
    fn committed(&self, step: usize) -> bool {
        self.steps[step].tag == "COMMIT"
    }

    /// Whether a transaction was refused because of others.
    fn refused(&self) -> bool {
        let refusals = ["40001", "40P01"];
        let mut states = self
            .steps
            .iter()
            .filter_map(|step| step.sqlstate.as_deref());
        states.any(|state| refusals.contains(&state))
    }

    /// Errors that no schedule should bring.
    fn unexpected(&self) -> Option<&str> {
        let known = ["40001", "40P01", "25P02"];
        let mut states = self
            .steps
            .iter()
            .filter_map(|step| step.sqlstate.as_deref());
        states.find(|state| !known.contains(state))
    }

    fn shown(&self, anomaly: &Anomaly) -> String {
        let mut out = String::new();
        for ((session, sql), step) in anomaly.steps.iter().zip(&self.steps) {
            let state = step.sqlstate.as_deref().unwrap_or("");
            let Step { rows, tag, .. } = step;
            let _ = writeln!(out, "  T{} {sql}: {rows} {tag} {state}", session + 1);
        }
        out + "  left: " + &self.left
    }
}

/// Rows of two columns, in order: `1=10 2=20`.
fn pairs(messages: &[Message]) -> String {
    let rows = rows_as_text(messages).into_iter();
    let texts = rows.map(|row| row.into_iter().map(Option::unwrap_or_default));
    let mut pairs: Vec<String> = texts.map(|row| row.collect::<Vec<_>>().join("=")).collect();
    pairs.sort_unstable();
    pairs.join(" ")
}

fn text_of(message: &Message) -> String {
    let text = String::from_utf8_lossy(&message.body);
    text.trim_end_matches('\0').to_owned()
}

/// A session that runs what it is sent, one statement after the other.
struct Session {
    process_id: i32,
    statements: mpsc::UnboundedSender<(usize, &'static str)>,
    answers: mpsc::UnboundedReceiver<(usize, Step)>,
    task: JoinHandle<()>,
    /// Steps that are not answered yet.
    open: usize,
}

impl Session {
    async fn begin(address: SocketAddr, level: &str) -> Self {
        let mut wire = Wire::session(address).await;
        let process_id = wire.process_id;
        let begun = wire.query(&format!("begin isolation level {level}")).await;
        assert!(begun.iter().all(|message| message.tag != b'E'), "{begun:?}");
        let (statements, mut received) = mpsc::unbounded_channel();
        let (told, answers) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            while let Some((at, sql)) = received.recv().await {
                if told.send((at, Step::of(&wire.query(sql).await))).is_err() {
                    break;
                }
            }
        });
        Self {
            process_id,
            statements,
            answers,
            task,
            open: 0,
        }
    }

    /// Takes the answers that are there, or waits for all.
    async fn collect(&mut self, wait: bool, outcome: &mut Outcome) {
        while self.open > 0 {
            let answer = match wait {
                true => tokio::time::timeout(PATIENCE, self.answers.recv())
                    .await
                    .expect("a step ends"),
                false => self.answers.try_recv().ok(),
            };
            let Some((at, step)) = answer else { break };
            outcome.steps[at] = step;
            self.open -= 1;
        }
    }
}

/// Runs a schedule on a server.
async fn run(address: SocketAddr, anomaly: &Anomaly, level: &str) -> Outcome {
    let mut admin = Wire::session(address).await;
    let made = admin.query(SETUP).await;
    assert!(made.iter().all(|message| message.tag != b'E'), "{made:?}");
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        sessions.push(Session::begin(address, level).await);
    }
    let mut outcome = Outcome {
        steps: vec![Step::default(); anomaly.steps.len()],
        ..Outcome::default()
    };
    for (at, (number, sql)) in anomaly.steps.iter().enumerate() {
        // What waited goes on once others end; this one's answers come first.
        sessions[*number].collect(true, &mut outcome).await;
        let session = &mut sessions[*number];
        session.statements.send((at, sql)).unwrap();
        session.open += 1;
        let waits = format!(
            "select count(*), 0 from pg_stat_activity \
             where pid = {} and wait_event_type = 'Lock'",
            session.process_id
        );
        let begin = Instant::now();
        loop {
            session.collect(false, &mut outcome).await;
            if session.open == 0 || pairs(&admin.query(&waits).await) == "1=0" {
                break;
            }
            assert!(begin.elapsed() < PATIENCE, "{sql} neither ends nor waits");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    for session in &mut sessions {
        session.collect(true, &mut outcome).await;
    }
    for session in sessions {
        drop(session.statements);
        session.task.await.unwrap();
    }
    outcome.left = pairs(&admin.query("select id, value from test").await);
    outcome
}

const ANOMALIES: &[Anomaly] = &[
    Anomaly {
        name: "G0, dirty writes",
        excluded_from: READ_COMMITTED,
        steps: &[
            (0, "update test set value = 11 where id = 1"),
            (1, "update test set value = 12 where id = 1"),
            (0, "update test set value = 21 where id = 2"),
            (0, "commit"),
            (1, "update test set value = 22 where id = 2"),
            (1, "commit"),
        ],
        happened: |end| !["1=11 2=21", "1=12 2=22"].contains(&end.left.as_str()),
    },
    Anomaly {
        name: "G1a, aborted reads",
        excluded_from: READ_COMMITTED,
        steps: &[
            (0, "update test set value = 101 where id = 1"),
            (1, "select id, value from test"),
            (0, "rollback"),
            (1, "select id, value from test"),
            (1, "commit"),
        ],
        happened: |end| [1, 3].iter().any(|at| end.read(*at) != Some("1=10 2=20")),
    },
    Anomaly {
        name: "G1b, intermediate reads",
        excluded_from: READ_COMMITTED,
        steps: &[
            (0, "update test set value = 101 where id = 1"),
            (1, "select id, value from test"),
            (0, "update test set value = 11 where id = 1"),
            (0, "commit"),
            (1, "select id, value from test"),
            (1, "commit"),
        ],
        happened: |end| {
            let seen = [1, 4].map(|at| end.read(at).unwrap_or_default());
            seen.iter().any(|rows| rows.contains("101"))
        },
    },
    Anomaly {
        name: "G1c, circular information flow",
        excluded_from: READ_COMMITTED,
        steps: &[
            (0, "update test set value = 11 where id = 1"),
            (1, "update test set value = 22 where id = 2"),
            (0, "select id, value from test where id = 2"),
            (1, "select id, value from test where id = 1"),
            (0, "commit"),
            (1, "commit"),
        ],
        happened: |end| end.read(2) == Some("2=22") && end.read(3) == Some("1=11"),
    },
    Anomaly {
        name: "OTV, an observed transaction vanishes",
        excluded_from: READ_COMMITTED,
        steps: &[
            (0, "update test set value = 11 where id = 1"),
            (0, "update test set value = 19 where id = 2"),
            (1, "update test set value = 12 where id = 1"),
            (0, "commit"),
            (2, "select id, value from test where id = 1"),
            (1, "update test set value = 18 where id = 2"),
            (2, "select id, value from test where id = 2"),
            (1, "commit"),
            (2, "select id, value from test where id = 2"),
            (2, "select id, value from test where id = 1"),
            (2, "commit"),
        ],
        // Once something of T2 was seen, nothing of T1 may be.
        happened: |end| {
            let seen = [4, 6, 8, 9].map(|at| end.read(at).unwrap_or_default());
            let second = seen.iter().position(|rows| ["1=12", "2=18"].contains(rows));
            second.is_some_and(|at| {
                let later = &seen[at..];
                later.iter().any(|rows| ["1=11", "2=19"].contains(rows))
            })
        },
    },
    Anomaly {
        name: "PMP, a predicate meets more rows",
        excluded_from: REPEATABLE_READ,
        steps: &[
            (0, "select id, value from test where value = 30"),
            (1, "insert into test values (3, 30)"),
            (1, "commit"),
            (0, "select id, value from test where value % 3 = 0"),
            (0, "commit"),
        ],
        happened: |end| end.read(3).is_some_and(|rows| !rows.is_empty()),
    },
    Anomaly {
        name: "PMP, of a write's predicate",
        excluded_from: REPEATABLE_READ,
        steps: &[
            (0, "update test set value = value + 10"),
            (1, "delete from test where value = 20"),
            (0, "commit"),
            (1, "select id, value from test where value = 20"),
            (1, "commit"),
        ],
        // T2 deletes what had 20 and sees another row with 20.
        happened: |end| end.committed(4) && end.read(3).is_some_and(|rows| !rows.is_empty()),
    },
    Anomaly {
        name: "P4, a lost update",
        excluded_from: REPEATABLE_READ,
        steps: &[
            (0, "select id, value from test where id = 1"),
            (1, "select id, value from test where id = 1"),
            (0, "update test set value = 11 where id = 1"),
            (1, "update test set value = 12 where id = 1"),
            (0, "commit"),
            (1, "commit"),
        ],
        happened: |end| end.committed(4) && end.committed(5),
    },
    Anomaly {
        name: "G-single, read skew",
        excluded_from: REPEATABLE_READ,
        steps: &[
            (0, "select id, value from test where id = 1"),
            (1, "select id, value from test where id = 1"),
            (1, "select id, value from test where id = 2"),
            (1, "update test set value = 12 where id = 1"),
            (1, "update test set value = 18 where id = 2"),
            (1, "commit"),
            (0, "select id, value from test where id = 2"),
            (0, "commit"),
        ],
        happened: |end| end.read(0) == Some("1=10") && end.read(6) == Some("2=18"),
    },
    Anomaly {
        name: "G-single, read skew by a predicate",
        excluded_from: REPEATABLE_READ,
        steps: &[
            (0, "select id, value from test where value % 5 = 0"),
            (1, "update test set value = 12 where value = 10"),
            (1, "commit"),
            (0, "select id, value from test where value % 3 = 0"),
            (0, "commit"),
        ],
        happened: |end| end.read(3).is_some_and(|rows| !rows.is_empty()),
    },
    Anomaly {
        name: "G-single, read skew by a write's predicate",
        excluded_from: REPEATABLE_READ,
        steps: &[
            (0, "select id, value from test where id = 1"),
            (1, "select id, value from test"),
            (1, "update test set value = 12 where id = 1"),
            (1, "update test set value = 18 where id = 2"),
            (1, "commit"),
            (0, "delete from test where value = 20"),
            (0, "select id, value from test where id = 2"),
            (0, "commit"),
        ],
        // T1 read before T2, and its DELETE met what T2 had left.
        happened: |end| end.committed(7) && end.read(0) == Some("1=10"),
    },
    Anomaly {
        name: "G-single, by a write's predicate that waits",
        excluded_from: REPEATABLE_READ,
        steps: &[
            (0, "select id, value from test where id = 1"),
            (1, "select id, value from test"),
            (1, "update test set value = 12 where id = 1"),
            (1, "update test set value = 18 where id = 2"),
            (0, "delete from test where value = 20"),
            (1, "commit"),
            (0, "commit"),
        ],
        happened: |end| end.committed(5) && end.committed(6),
    },
    Anomaly {
        name: "G2-item, write skew",
        excluded_from: SERIALIZABLE,
        steps: &[
            (0, "select id, value from test where id in (1, 2)"),
            (1, "select id, value from test where id in (1, 2)"),
            (0, "update test set value = 11 where id = 1"),
            (1, "update test set value = 21 where id = 2"),
            (0, "commit"),
            (1, "commit"),
        ],
        happened: |end| end.committed(4) && end.committed(5),
    },
    Anomaly {
        name: "G2, phantoms in a circle",
        excluded_from: SERIALIZABLE,
        steps: &[
            (0, "select id, value from test where value % 3 = 0"),
            (1, "select id, value from test where value % 3 = 0"),
            (0, "insert into test values (3, 30)"),
            (1, "insert into test values (4, 42)"),
            (0, "commit"),
            (1, "commit"),
        ],
        happened: |end| end.committed(4) && end.committed(5),
    },
    Anomaly {
        name: "G2, a circle of two edges with a reader",
        excluded_from: SERIALIZABLE,
        steps: &[
            (0, "select id, value from test"),
            (1, "update test set value = value + 5 where id = 2"),
            (1, "commit"),
            (2, "select id, value from test"),
            (2, "commit"),
            (0, "update test set value = 0 where id = 1"),
            (0, "commit"),
        ],
        happened: |end| {
            let reader_saw = end.read(3) == Some("1=10 2=25") && end.committed(4);
            reader_saw && end.read(0) == Some("1=10 2=20") && end.committed(6)
        },
    },
];

#[tokio::test]
async fn no_anomaly_happens_at_a_level_that_excludes_it() {
    let server = Running::start(|_| {}).await;
    let oracle = match Postgres::start() {
        Ok(oracle) => Some(oracle),
        Err(why) => {
            eprintln!("without PostgreSQL: {why}");
            None
        }
    };
    let mut stricter = Vec::new();
    for anomaly in ANOMALIES {
        for (level, name) in LEVELS.into_iter().enumerate() {
            let ours = run(server.address, anomaly, name).await;
            let at = format!("{} at {name}\n{}", anomaly.name, ours.shown(anomaly));
            assert_eq!(ours.unexpected(), None, "{at}");
            let excluded = level >= anomaly.excluded_from;
            assert!(!(excluded && (anomaly.happened)(&ours)), "{at}");
            let Some(oracle) = &oracle else { continue };
            let theirs = run(oracle.address, anomaly, name).await;
            match (ours.refused(), theirs.refused()) {
                (false, false) => {
                    // A statement at READ COMMITTED that had to wait begins anew here. PostgreSQL
                    // goes on with the rows that it had found, and looks at these again.
                    let better = (anomaly.happened)(&theirs) && !(anomaly.happened)(&ours);
                    let same = ours.steps == theirs.steps && ours.left == theirs.left;
                    let both = format!("{at}\nPostgreSQL:\n{}", theirs.shown(anomaly));
                    assert!(same || better, "{both}");
                }
                (true, false) => stricter.push(format!("{} at {name}", anomaly.name)),
                (false, true) => assert!(
                    !(anomaly.happened)(&ours),
                    "{at}\nPostgreSQL:\n{}",
                    theirs.shown(anomaly)
                ),
                (true, true) => {}
            }
        }
    }
    println!("refused here, and not by PostgreSQL: {stricter:?}");
    assert!(stricter.is_empty(), "{stricter:?}");
}
