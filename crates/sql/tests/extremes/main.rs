//! No input panics and none takes more than it may: every function, operator and cast with
//! extreme values of its types, and statements made at random. What panics, or is answered by
//! XX000, fails; so does a statement that goes on for long after its time limit.
//!
//! `THERMOCLINE_SECONDS` and `THERMOCLINE_SEED` make a long or a certain run.

#[path = "../session/fixture.rs"]
#[allow(dead_code)]
mod fixture;
mod functions;
mod fuzz;
mod large;
mod values;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, Once};
use std::time::{Duration, Instant};

use fixture::{Connection, Server};
use rand::SeedableRng;
use rand::rngs::StdRng;

/// How long a statement may take in all; its own limit is 2 s.
const TIME_MAX: Duration = Duration::from_secs(10);

/// The seconds that each test runs.
fn seconds() -> u64 {
    let given = std::env::var("THERMOCLINE_SECONDS").ok();
    given.and_then(|seconds| seconds.parse().ok()).unwrap_or(15)
}

/// A generator of the seed that is given, else always the same in a short run and any in a long
/// one; the seed is printed.
fn generator(what: &str) -> StdRng {
    let given = std::env::var("THERMOCLINE_SEED").ok();
    let seed = given.and_then(|seed| seed.parse().ok()).unwrap_or_else(|| {
        match std::env::var_os("THERMOCLINE_SECONDS") {
            Some(_) => rand::random::<u64>(),
            None => 1,
        }
    });
    println!("{what}: THERMOCLINE_SEED={seed}");
    StdRng::seed_from_u64(seed)
}

/// Runs a test as the server would run it.
fn on_runtime(run: impl FnOnce() + Send + 'static) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let handle = runtime.handle().clone();
    std::thread::spawn(move || {
        let _entered = handle.enter();
        run();
    })
    .join()
    .expect("the test");
}

/// What panicked last, where.
static PANICKED: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn note_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICKED.lock().unwrap().push(info.to_string());
            if std::env::var("RUST_BACKTRACE").is_ok() {
                before(info);
            }
        }));
    });
}

/// A client whose statements may do anything but take the server.
struct Victim {
    server: Arc<Server>,
    client: Connection,
    /// What it was asked before the statement that it did not survive.
    failures: Vec<String>,
}

impl Victim {
    fn new(server: Arc<Server>, set_up: &[&str]) -> Self {
        note_panics();
        let mut client = server.connect();
        for sql in set_up {
            // Some values are not for tables.
            let answers = client.query(sql);
            let failed = answers.iter().any(|a| a.starts_with('E'));
            assert!(!failed || sql.starts_with("insert"), "{sql}: {answers:?}");
        }
        client.query("set statement_timeout = '2s'");
        Self {
            server,
            client,
            failures: Vec::new(),
        }
    }

    /// Asks; the SQLSTATE, if it is an error. What may not be is noted.
    fn ask(&mut self, sql: &str) -> Option<String> {
        let began = Instant::now();
        let answers = catch_unwind(AssertUnwindSafe(|| self.client.query(sql)));
        let took = began.elapsed();
        let shown: String = sql.chars().take(600).collect();
        let panics = std::mem::take(&mut *PANICKED.lock().unwrap());
        let Ok(answers) = answers else {
            self.failures
                .push(format!("{shown}\n   panics: {panics:?}"));
            let lost = std::mem::replace(&mut self.client, self.server.connect());
            // Its transaction may be in the middle of anything.
            std::mem::forget(lost);
            self.client.query("set statement_timeout = '2s'");
            return Some("XX000".to_owned());
        };
        if !panics.is_empty() {
            self.failures
                .push(format!("{shown}\n   panics inside: {panics:?}"));
        }
        if took > TIME_MAX {
            self.failures.push(format!("{shown}\n   takes {took:?}"));
        }
        let error = answers.iter().find(|answer| answer.starts_with('E'));
        let state = error.map(|error| error.chars().skip(2).take(5).collect::<String>());
        if state.as_deref() == Some("XX000") && panics.is_empty() {
            self.failures
                .push(format!("{shown}\n   {}", error.unwrap()));
        }
        state
    }

    /// Fails if anything was noted.
    fn end(mut self) {
        self.client.query("rollback");
        assert_eq!(self.client.rows("select 41 + 1"), ["42"]);
        let count = self.failures.len();
        self.failures.truncate(200);
        assert!(
            count == 0,
            "{count} failures:\n{}",
            self.failures.join("\n")
        );
    }
}
