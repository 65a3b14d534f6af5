//! A statement whose messages from Bind to Sync come at once is answered as one batch
//! (`server/src/batch.rs`). Random walks over two servers of the same state: one gets batches, the
//! other the same messages with a Flush between, which is no batch, and now and then one before the
//! Sync: then it is not known that nothing follows. All answers are the same bytes.
//! The unnamed statement is prepared each time: from the same text, which is kept, on one side, from
//! one that is too long for that on the other.

mod support;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use support::{Message, Running, Wire, execute, flush, message, parse, sync};

const STEPS: usize = 600;

/// Statements with the number of their parameters.
const STATEMENTS: [(&str, usize); 38] = [
    ("select a, b from t where a = $1::int4", 1),
    ("select a from t where a >= $1::int4 order by a limit 5", 1),
    ("select count(*), min(b) from t where a > $1::int4", 1),
    (
        "select t.a, u.c from t join u on u.a = t.a where t.a = $1::int4",
        1,
    ),
    (
        "select t.b, count(*) from t, u where u.c <> t.b group by 1 order by 1, 2 limit 3",
        0,
    ),
    ("select 100 / $1::int4", 1),
    ("select generate_series(1, $1::int4 % 40)", 1),
    ("select $1::int4 + $2::int4, current_setting('work_mem')", 2),
    ("insert into t values ($1::int4, $2)", 2),
    (
        "insert into t values ($1::int4, $2) on conflict (a) do nothing returning a",
        2,
    ),
    ("insert into u values ($1::int4, $2)", 2),
    ("update t set b = $2 where a = $1::int4", 2),
    ("update t set b = b || 'x' where a < $1::int4", 1),
    ("delete from t where a = $1::int4 returning b", 1),
    ("select a from t where a = $1::int4 for update", 1),
    ("select nextval('s')", 0),
    ("begin", 0),
    ("begin", 0),
    ("begin isolation level read committed", 0),
    ("commit", 0),
    ("commit", 0),
    ("rollback", 0),
    ("savepoint p", 0),
    ("rollback to p", 0),
    ("set work_mem = '5MB'", 0),
    ("set application_name = 'walk'", 0),
    ("show work_mem", 0),
    ("", 0),
    (
        "declare c cursor for select a from t where a > 0 order by a",
        0,
    ),
    ("fetch 2 from c", 0),
    (
        "declare h cursor with hold for select a from t order by a",
        0,
    ),
    ("close h", 0),
    ("lock table u in share mode", 0),
    ("set local work_mem = '6MB'", 0),
    ("set transaction isolation level repeatable read", 0),
    (
        "do 'begin insert into u values (1, ''done''); commit; update u set c = ''over'' where a = 1; end'",
        0,
    ),
    ("call p()", 0),
    ("explain (costs off) select a from t where a = 1", 0),
];

/// Spaces behind a text, which is not kept then (`sql/src/session/texts.rs`).
const PADDING: usize = 4097;

/// What is done beside them, by messages that are the same on both sides.
const BESIDE: [&str; 6] = [
    "alter table t add column if not exists z int default 3",
    "alter table t drop column if exists z",
    "create index if not exists ub on u (c)",
    "drop index if exists ub",
    "truncate u",
    "select count(*) from t",
];

/// A Bind of the unnamed portal.
fn bind(statement: &str, values: &[Option<String>], binary: bool) -> Vec<u8> {
    let mut body = vec![0];
    body.extend_from_slice(statement.as_bytes());
    body.extend_from_slice(&[0, 0, 0]);
    body.extend_from_slice(&(values.len() as u16).to_be_bytes());
    for value in values {
        match value {
            None => body.extend_from_slice(&(-1i32).to_be_bytes()),
            Some(value) => {
                body.extend_from_slice(&(value.len() as u32).to_be_bytes());
                body.extend_from_slice(value.as_bytes());
            }
        }
    }
    match binary {
        true => body.extend_from_slice(&[0, 1, 0, 1]),
        false => body.extend_from_slice(&[0, 0]),
    }
    message(b'B', &body)
}

/// The messages of a step: for the side with batches, and for the other.
fn step(random: &mut StdRng) -> (Vec<u8>, Vec<u8>) {
    let which = random.random_range(0..STATEMENTS.len());
    let (text, parameters) = STATEMENTS[which];
    let number = |random: &mut StdRng| random.random_range(-3..30).to_string();
    let values = (0..parameters).map(|at| match random.random_range(0..12) {
        0 => None,
        1 => Some("nonsense".to_owned()),
        _ if at == 1 => Some(format!("v{}", random.random_range(0..9))),
        _ => Some(number(random)),
    });
    let mut values: Vec<Option<String>> = values.collect();
    if random.random_range(0..40) == 0 {
        values.push(None);
    }
    let (binary, describes) = (random.random_bool(0.2), random.random_bool(0.7));
    let name = match random.random_range(0..60) {
        0 => "unknown".to_owned(),
        1..20 => String::new(),
        _ => format!("s{which}"),
    };
    let mut batch = Vec::new();
    let mut others = Vec::new();
    if name.is_empty() {
        // Now and then what was the unnamed one before.
        if random.random_bool(0.9) {
            batch.extend_from_slice(&parse("", text));
            others.extend_from_slice(&parse("", &format!("{text}{:PADDING$}", "")));
        }
    } else if random.random_bool(0.4) {
        // A driver that prepares each time; the name is taken if it did before.
        let close = message(b'C', format!("S{name}\0").as_bytes());
        let prepare = [close, parse(&name, text)].concat();
        batch.extend_from_slice(&prepare);
        others.extend_from_slice(&prepare);
    }
    let describe = match describes {
        true => message(b'D', b"P\0"),
        false => Vec::new(),
    };
    let bound = bind(&name, &values, binary);
    let unknown = match random.random_bool(0.3) {
        true => flush(),
        false => Vec::new(),
    };
    batch.extend([&bound[..], &describe, &execute(), &sync()].concat());
    others.extend(
        [
            &bound[..],
            &flush(),
            &describe,
            &execute(),
            &unknown,
            &sync(),
        ]
        .concat(),
    );
    if random.random_range(0..10) == 0 {
        // The unnamed portal, once more: it is over, or gone.
        let again = [execute(), sync()].concat();
        batch.extend_from_slice(&again);
        others.extend_from_slice(&again);
    }
    (batch, others)
}

async fn answers(wire: &mut Wire, sent: &[u8], pieces: &[usize]) -> Vec<(u8, Vec<u8>)> {
    let mut begin = 0;
    for end in pieces.iter().copied().chain([sent.len()]) {
        wire.send(&sent[begin..end]).await;
        begin = end;
    }
    let syncs = count_of(sent, b'S');
    let mut all: Vec<Message> = Vec::new();
    for _ in 0..syncs {
        all.extend(wire.until(b'Z').await);
    }
    all.into_iter().map(|m| (m.tag, m.body.to_vec())).collect()
}

/// How many messages of this kind there are.
fn count_of(mut sent: &[u8], tag: u8) -> usize {
    let mut count = 0;
    while let [first, a, b, c, d, ..] = *sent {
        count += usize::from(first == tag);
        sent = &sent[1 + u32::from_be_bytes([a, b, c, d]) as usize..];
    }
    count
}

async fn prepared(server: &Running) -> Wire {
    let mut wire = server.client().await;
    for made in [
        "create table if not exists t (a int primary key, b text)",
        "create table if not exists u (a int, c text)",
        "create sequence if not exists s",
        "create or replace procedure p() language plpgsql as
            'begin insert into u values (2, ''called''); rollback; delete from u where a = 1; end'",
    ] {
        wire.query(made).await;
    }
    wire
}

async fn walk(seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let (first, second) = (Running::start(|_| {}).await, Running::start(|_| {}).await);
    let (mut whole, mut single) = (prepared(&first).await, prepared(&second).await);
    let (mut beside, mut also) = (first.client().await, second.client().await);
    let mut kinds = [0; 256];
    for at in 0..STEPS {
        let (batch, others) = step(&mut random);
        let mut batch_sent = batch;
        let mut others_sent = others;
        while random.random_bool(0.3) {
            // A pipeline.
            let (batch, others) = step(&mut random);
            batch_sent.extend(batch);
            others_sent.extend(others);
        }
        // In one piece, or torn anywhere.
        let torn: Vec<usize> = match random.random_bool(0.2) {
            true => vec![random.random_range(0..batch_sent.len())],
            false => Vec::new(),
        };
        let answered = answers(&mut whole, &batch_sent, &torn).await;
        let expected = answers(&mut single, &others_sent, &[]).await;
        assert_eq!(answered, expected, "seed {seed}, step {at}: {batch_sent:?}");
        for (tag, _) in &answered {
            kinds[usize::from(*tag)] += 1;
        }
        // Definitions wait for transactions.
        let idle = answered.last().is_some_and(|(_, body)| body == b"I");
        if idle && random.random_range(0..12) == 0 {
            let sql = BESIDE.choose(&mut random).unwrap();
            let shown = |messages: Vec<Message>| -> Vec<(u8, Vec<u8>)> {
                let shown = messages.into_iter().map(|m| (m.tag, m.body.to_vec()));
                shown.collect()
            };
            let (done, same) = (beside.query(sql).await, also.query(sql).await);
            assert_eq!(shown(done), shown(same), "seed {seed}, step {at}: {sql}");
        }
    }
    for tag in b"12DTCEZn" {
        let seen = kinds[usize::from(*tag)];
        assert!(seen > 20, "{}: {seen}", char::from(*tag));
    }
}

#[tokio::test]
async fn a_batch_is_answered_as_its_messages_are() {
    let seed = std::env::var("THERMOCLINE_BATCHES_SEED");
    let seed: u64 = seed.map_or_else(|_| rand::random(), |seed| seed.parse().expect("a number"));
    for more in 0..4u64 {
        walk(seed.wrapping_add(more)).await;
    }
}

/// COPY takes in messages itself, and passes over the Sync that its client sends ahead.
#[tokio::test]
async fn a_copy_passes_over_the_sync_of_its_batch() {
    let (first, second) = (Running::start(|_| {}).await, Running::start(|_| {}).await);
    let (mut whole, mut single) = (prepared(&first).await, prepared(&second).await);
    let ends = [
        message(b'c', b""),
        message(b'f', b"enough\0"),
        message(b'c', b""),
    ];
    let rows: [&[u8]; 3] = [
        b"1\tone\n2\ttwo\n",
        b"3\tthree\n",
        b"4\tfour\nwrong\tno number\n",
    ];
    for (rows, end) in rows.iter().zip(&ends) {
        let prepare = [message(b'C', b"Sc\0"), parse("c", "copy t from stdin")].concat();
        let (bound, data) = (bind("c", &[], false), message(b'd', rows));
        let tail = [execute(), sync(), data, end.clone(), sync()].concat();
        let batch = [&prepare[..], &bound, &tail].concat();
        let others = [&prepare[..], &bound, &flush(), &tail].concat();
        let mut answered = Vec::new();
        for (wire, sent) in [(&mut whole, batch), (&mut single, others)] {
            wire.send(&sent).await;
            let messages = wire.until(b'Z').await;
            answered.push(
                messages
                    .into_iter()
                    .map(|m| (m.tag, m.body))
                    .collect::<Vec<_>>(),
            );
            // In step: the next statement has its own answer.
            let next = wire.query("select a, b from t order by a").await;
            answered.push(next.into_iter().map(|m| (m.tag, m.body)).collect());
        }
        assert_eq!(answered[0], answered[2]);
        assert_eq!(answered[1], answered[3]);
    }
}
