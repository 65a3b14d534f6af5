//! Statements of growing size: each shape is doubled until it is refused, has the bytes of
//! [`BYTES_MAX`] or takes longer than [`PATIENCE`]. None takes the server, whichever of the three
//! compilers answers it. The long form (`THERMOCLINE_STATEMENT_BYTES`) has no such patience, and
//! what a statement takes must grow about as its text does.

#[path = "../session/fixture.rs"]
#[allow(dead_code)]
mod fixture;
mod kept;
mod shapes;

use std::time::{Duration, Instant};

use fixture::{Connection, Server};
use shapes::{SHAPES, Shape};

/// The longest statement, if the environment says no other. Without optimisation a megabyte of
/// each shape takes too long for every run of the tests; `scripts/statement-attacks.sh` goes to 64.
const BYTES_MAX: usize = 64 << 10;
/// In the short form a shape is left when a statement of it takes longer.
const PATIENCE: Duration = Duration::from_millis(300);
/// The short form begins no shape after this time.
const SHORT_FORM: Duration = Duration::from_secs(30);
/// What a doubling may take more than twice as long, where it takes long at all.
const RATIO_MAX: f64 = 3.5;
/// Below this a time says nothing.
const NOISE: Duration = Duration::from_millis(400);

/// The longest statement of the long form; none in the short one.
fn long_form_bytes() -> Option<usize> {
    std::env::var("THERMOCLINE_STATEMENT_BYTES")
        .ok()?
        .parse()
        .ok()
}

/// On a thread of its own, as large as the program's; DataFusion's tasks run on a runtime.
fn on_runtime(run: impl FnOnce() + Send + 'static) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let handle = runtime.handle().clone();
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    let ran = thread.spawn(move || {
        let _entered = handle.enter();
        run();
    });
    ran.expect("a thread").join().expect("no panic");
}

fn connection(server: &Server) -> Connection {
    let mut client = server.connect();
    for sql in [
        "set statement_timeout = '60s'",
        "create table t (id int primary key, a int, b bool, c text)",
        "create table u (id int primary key, a int)",
        "insert into t values (1, 2, true, 'x'), (2, 3, false, 'y')",
        "insert into u values (1, 2), (2, 3)",
    ] {
        client.tag_or_set(sql);
    }
    client
}

impl Connection {
    fn tag_or_set(&mut self, sql: &str) {
        let answers = self.query(sql);
        assert!(!answers.iter().any(|a| a.starts_with('E')), "{answers:?}");
    }
}

/// What the client is told: the error, or nothing.
fn refusal(answers: &[String]) -> Option<&String> {
    answers.iter().find(|answer| answer.starts_with('E'))
}

/// Around an expression or a query: how each compiler gets it.
const AROUND: [(&str, &str, &str); 5] = [
    ("catalogs", "", ""),
    ("a row by key", "", " from t where id = 1"),
    ("a join", "", " from t join u using (id)"),
    ("pg_catalog", "", " from pg_class t where relname = 't'"),
    ("explain", "explain ", " from t join u using (id)"),
];

fn statements(shape: &Shape, size: usize) -> Vec<(&'static str, String)> {
    match shape {
        Shape::Expression(make) => AROUND
            .iter()
            .map(|(name, before, after)| (*name, format!("{before}select {}{after}", make(size))))
            .collect(),
        Shape::Message(make) => vec![("message", make(size))],
        Shape::Query(make) => {
            let query = make(size);
            vec![
                ("query", query.clone()),
                ("explain", format!("explain {query}")),
                ("prepare", format!("deallocate all; prepare p as {query}")),
            ]
        }
    }
}

fn grow(name: &str, shape: &Shape) {
    let server = Server::new();
    let mut client = connection(&server);
    let mut ended = Vec::new();
    let mut before: Vec<(usize, Duration)> = Vec::new();
    for doubling in 0.. {
        let size = 1usize << doubling;
        let statements = statements(shape, size);
        let long_form = long_form_bytes();
        if statements[0].1.len() > long_form.unwrap_or(BYTES_MAX) {
            break;
        }
        for (at, (around, sql)) in statements.into_iter().enumerate() {
            if ended.contains(&at) {
                continue;
            }
            let began = Instant::now();
            let answers = client.query(&sql);
            let took = began.elapsed();
            if let Some(refused) = refusal(&answers) {
                let shown: String = refused.chars().take(100).collect();
                println!("{name} {around}: {size} refused: {shown} ({took:?})");
                assert!(
                    !refused.contains("57014"),
                    "{name} {around} {size}: {shown}"
                );
                assert!(
                    !refused.contains("XX000"),
                    "{name} {around} {size}: {shown}"
                );
                assert!(took < Duration::from_secs(20), "{name} {around}: {took:?}");
                ended.push(at);
                continue;
            }
            if long_form.is_none() && took > PATIENCE {
                println!("{name} {around}: left at {size} ({took:?})");
                ended.push(at);
                if before.len() <= at {
                    before.push((sql.len(), took));
                }
                continue;
            }
            if before.len() <= at {
                before.push((sql.len(), took));
            } else {
                let (length, time) = std::mem::replace(&mut before[at], (sql.len(), took));
                let growth = sql.len() as f64 / length as f64;
                let ratio = took.as_secs_f64() / time.max(NOISE).as_secs_f64() / growth;
                assert!(
                    ratio * 2.0 < RATIO_MAX,
                    "{name} {around}: {size} took {took:?}, half of it {time:?}"
                );
            }
        }
        if ended.len() == AROUND.len().min(before.len().max(1)) && ended.len() == before.len() {
            break;
        }
    }
    for (at, (length, time)) in before.iter().enumerate() {
        println!("{name} {at}: {length} bytes in {time:?}");
    }
    assert_eq!(client.rows("select 41 + 1"), ["42"]);
}

#[test]
fn no_size_and_no_depth_takes_the_server() {
    let only = std::env::var("THERMOCLINE_SHAPE").ok();
    let all_began = Instant::now();
    for (name, shape) in SHAPES {
        if only.as_deref().is_none_or(|only| only == *name) {
            if only.is_none() && long_form_bytes().is_none() && all_began.elapsed() > SHORT_FORM {
                println!("{name}: left to the long form");
                continue;
            }
            let began = Instant::now();
            on_runtime(move || grow(name, shape));
            println!("{name}: {:?}", began.elapsed());
        }
    }
}
