//! The log's tail applied by several threads against the same by one: not only
//! the same rows, but the same images, byte for byte, when they are closed.

mod fixture;

use std::collections::BTreeMap;
use std::sync::Arc;

use fixture::*;
use proptest::prelude::*;
use thermocline_device::{Device, OpenMode, SECTOR_BYTES, SimulatedDevice};
use thermocline_engine::catalog::{IndexDef, IndexKind};
use thermocline_engine::steps::{Moment, Simulator, Steps};
use thermocline_engine::{
    Call, Change, Config, Database, Error, Isolation, Procedure, Procedures, Reach, Result,
    RunOptions, Table, Transaction, block_on,
};
use thermocline_values::types::DataType;
use thermocline_values::value::Value;

const PARTITIONS: u16 = 8;
const IDS: i64 = 400;

type Rows = BTreeMap<i64, String>;

/// What a row is after the procedure: it depends on what the row was.
fn appended(old: Option<&str>, seed: i64) -> String {
    let old = old.unwrap_or_default();
    format!("{seed}:{}", &old[..old.len().min(40)])
}

fn append(call: &mut Call<'_, '_>, arguments: &[Value]) -> Result<Vec<Value>> {
    let t = call.table("t")?;
    let [id, Value::BigInt(seed)] = arguments else {
        panic!("two bigints");
    };
    let found = call.get(&t, std::slice::from_ref(id))?;
    let old = found.as_ref().and_then(|row| match &row.values[1] {
        Value::Text(text) => Some(text.as_str()),
        _ => None,
    });
    let new = Value::Text(appended(old, *seed));
    match found {
        Some(mut row) => {
            row.values[1] = new;
            call.update(&t, &row)?;
        }
        None => drop(call.insert(&t, &[id.clone(), new])?),
    }
    Ok(Vec::new())
}

fn procedures() -> Procedures {
    let all = Procedures::new();
    let append = Procedure::new("append", append)
        .parameter("id", DataType::BigInt)
        .parameter("seed", DataType::BigInt)
        .reach(|arguments| Ok(Reach::row("t", &arguments[..1])))
        .deterministic();
    all.register(append).expect("its name is free");
    all
}

fn config(device: &SimulatedDevice, threads: usize, limit: u64) -> Config {
    let device: Arc<dyn Device> = Arc::new(device.clone());
    let mut config = Config::new(device)
        .memory_limit(limit)
        .partitions(PARTITIONS);
    config.background = false;
    config.recovery_threads = threads;
    config.log_segment_bytes = 128 << 10;
    config.procedures = procedures();
    config
}

/// Memory is what the arena holds then: the simulated devices are in memory, too.
struct Alone;

impl Simulator for Alone {
    fn pause(&self, _: Moment) {}
}

#[derive(Clone, Debug)]
enum Step {
    Put {
        id: i64,
        rows: i64,
        bytes: usize,
    },
    Delete {
        id: i64,
        rows: i64,
    },
    Call {
        id: i64,
        seed: i64,
    },
    /// A transaction over many partitions that inserts, updates and deletes.
    Transaction {
        id: i64,
        rows: i64,
        end: End,
    },
    Truncate,
    Index {
        kind: bool,
    },
    Evict,
    Checkpoint,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Commit,
    RollBack,
    /// It is open when the crash comes.
    Stay,
}

fn step() -> impl Strategy<Value = Step> {
    let id = 0..IDS;
    let end = prop_oneof![2 => Just(End::Commit), 1 => Just(End::RollBack), 1 => Just(End::Stay)];
    prop_oneof![
        8 => (id.clone(), 1i64..60, 0usize..400)
            .prop_map(|(id, rows, bytes)| Step::Put { id, rows, bytes }),
        3 => (id.clone(), 1i64..40).prop_map(|(id, rows)| Step::Delete { id, rows }),
        5 => (id.clone(), any::<i64>()).prop_map(|(id, seed)| Step::Call { id, seed }),
        5 => (id, 1i64..40, end).prop_map(|(id, rows, end)| Step::Transaction { id, rows, end }),
        1 => Just(Step::Truncate),
        1 => any::<bool>().prop_map(|kind| Step::Index { kind }),
        2 => Just(Step::Evict),
        2 => Just(Step::Checkpoint),
    ]
}

struct Run {
    db: Arc<Database>,
    steps: Steps,
    rows: Rows,
    open: Vec<Transaction>,
    writes: i64,
}

impl Run {
    fn value(&mut self, bytes: usize) -> String {
        self.writes += 1;
        format!("{}:{}", self.writes, "x".repeat(bytes))
    }

    fn put(&mut self, t: &Table, id: i64, bytes: usize) {
        let new = self.value(bytes);
        if !set(&self.db, t, id, &new).expect("updates") {
            insert(&self.db, t, id, &new).expect("inserts");
        }
        self.rows.insert(id, new);
    }

    fn transaction(&mut self, t: &Table, first: i64, count: i64, end: End) {
        // Ids of its own: what is left open locks nobody out.
        let own = (1 + self.writes) * 1000;
        let mut after = self.rows.clone();
        let mut changes = Vec::new();
        for id in own..own + count {
            changes.push((id, Some(self.value(20))));
        }
        if !matches!(end, End::Stay) {
            for id in first..first + count {
                let new = (id % 3 > 0).then(|| self.value(30));
                changes.extend(after.contains_key(&id).then_some((id, new)));
            }
        }
        let mut txn = self.db.begin(Isolation::ReadCommitted, false);
        in_txn(&mut txn, &self.db, |access| {
            for (id, new) in &changes {
                match new {
                    Some(new) if *id >= own => {
                        access.insert(t, &tuple(t, *id, new))?;
                    }
                    Some(new) => drop(set_in(access, t, *id, new)?),
                    None => drop(delete_in(access, t, *id)?),
                }
            }
            Ok(())
        })
        .expect("changes rows");
        for (id, new) in changes {
            match new {
                Some(new) => after.insert(id, new),
                None => after.remove(&id),
            };
        }
        match end {
            End::Commit => {
                block_on(self.db.commit(txn, &RunOptions::new())).expect("commits");
                self.rows = after;
            }
            End::RollBack => block_on(self.db.rollback(txn)),
            End::Stay => self.open.push(txn),
        }
    }

    fn step(&mut self, step: Step) {
        let t = table(&self.db, "t");
        match step {
            Step::Put { id, rows, bytes } => {
                (id..id + rows).for_each(|id| self.put(&t, id, bytes));
            }
            Step::Delete { id, rows } => {
                for id in id..id + rows {
                    let there = delete(&self.db, &t, id).expect("deletes");
                    assert_eq!(there, self.rows.remove(&id).is_some(), "row {id}");
                }
            }
            Step::Call { id, seed } => {
                let arguments = [Value::BigInt(id), Value::BigInt(seed)];
                block_on(self.db.call(&RunOptions::new(), "append", &arguments)).expect("runs");
                let new = appended(self.rows.get(&id).map(String::as_str), seed);
                self.rows.insert(id, new);
            }
            Step::Transaction { id, rows, end } => self.transaction(&t, id, rows, end),
            // Definitions wait for open transactions.
            Step::Truncate | Step::Index { .. } if !self.open.is_empty() => {}
            Step::Truncate => {
                let change = Change::Truncate {
                    tables: vec![t.def.oid],
                    restart_identity: false,
                };
                ddl(&self.db, change).expect("truncates");
                self.rows.clear();
            }
            Step::Index { kind } => {
                let index = IndexDef {
                    oid: self.db.allocate_oid(),
                    name: format!("by_value_{}", t.def.indexes.len()),
                    columns: vec![1],
                    unique: false,
                    primary: false,
                    constraint: false,
                    kind: if kind {
                        IndexKind::Hash
                    } else {
                        IndexKind::BTree
                    },
                    include: Vec::new(),
                    nulls_equal: false,
                    order: Vec::new(),
                };
                let table = t.def.oid;
                ddl(&self.db, Change::CreateIndex { table, index }).expect("makes the index");
            }
            Step::Evict => {
                self.steps.leave_memory(0);
                for _ in 0..PARTITIONS {
                    self.steps.evict().expect("evicts");
                }
                self.steps.leave_memory(16 << 30);
            }
            Step::Checkpoint => block_on(self.db.checkpoint()).expect("checkpoints"),
        }
    }
}

/// Opens with so many threads, looks at all, and closes. The records applied, and
/// the images that the close has written.
fn replayed(files: &Files, threads: usize, rows: &Rows) -> (u64, Files) {
    let device = device_of(files);
    let db = Database::open(config(&device, threads, 64 << 30)).expect("opens");
    let t = table(&db, "t");
    let records = db.recovery_report().records;
    assert_eq!(all(&db, &t), *rows, "{threads} threads");
    assert_eq!(db.row_estimate(&t), rows.len() as u64);
    let verified = db.verify().expect("verifies");
    assert!(verified.is_sound(), "{:?}", verified.problems);
    db.close().expect("closes");
    let mut images = files_of(&device);
    // The Block Table is in no order.
    images.retain(|name, _| {
        name == "blocks" || name.starts_with("checkpoint-") && !name.ends_with("-blocks")
    });
    assert!(images.len() > 1);
    (records, images)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn threads_leave_what_one_leaves(
        steps in prop::collection::vec(step(), 1..50),
    ) {
        let device = SimulatedDevice::new();
        let db = Database::open(config(&device, 1, 64 << 30)).expect("opens");
        make_table(&db, "t", IndexKind::Hash);
        let mut run = Run {
            steps: Steps::new(&db),
            db,
            rows: Rows::new(),
            open: Vec::new(),
            writes: 0,
        };
        for step in steps {
            run.step(step);
        }
        run.put(&table(&run.db, "t"), 0, 10);
        run.open.drain(..).for_each(std::mem::forget);
        let files = files_of(&device);
        let one = replayed(&files, 1, &run.rows);
        prop_assert!(one.0 > 0, "there is something to replay");
        for threads in [2, 3, 8] {
            let several = replayed(&files, threads, &run.rows);
            prop_assert_eq!(one.0, several.0);
            for (name, file) in &one.1 {
                prop_assert!(several.1.get(name) == Some(file), "{} by {} threads", name, threads);
            }
            prop_assert_eq!(one.1.len(), several.1.len());
        }
    }
}

/// More than fits in memory is replayed: what is applied has to leave again.
#[test]
fn threads_keep_to_the_memory_limit() {
    let device = SimulatedDevice::new();
    let limit = thermocline_engine::MEMORY_LIMIT_MIN;
    let mut rows = Rows::new();
    {
        let db = Database::open(config(&device, 1, 64 << 30)).expect("opens");
        let t = make_table(&db, "t", IndexKind::Hash);
        for id in 0..30_000 {
            let new = format!("{id}:{}", "m".repeat(4000));
            insert(&db, &t, id, &new).expect("inserts");
            rows.insert(id, new);
        }
        for id in (0..30_000).step_by(7) {
            assert!(delete(&db, &t, id).expect("deletes"));
            rows.remove(&id);
        }
    }
    let mut evictions = Vec::new();
    for threads in [1, 4] {
        let mut config = config(&device_of(&files_of(&device)), threads, limit);
        config.simulator = Some(Arc::new(Alone));
        let db = Database::open(config).expect("opens");
        let t = table(&db, "t");
        let memory = db.memory_report();
        assert!(memory.resident_max < limit, "{memory:?}");
        evictions.push(db.counters().evictions);
        assert!(all(&db, &t) == rows, "{threads} threads");
        let verified = db.verify().expect("verifies");
        assert!(verified.is_sound(), "{:?}", verified.problems);
    }
    assert!(evictions.iter().all(|n| *n > 1000), "{evictions:?}");
}

#[test]
fn an_error_in_one_thread_is_the_error_of_all() {
    let device = SimulatedDevice::new();
    let db = Database::open(config(&device, 1, 64 << 30)).expect("opens");
    let t = make_table(&db, "t", IndexKind::Hash);
    for id in 0..2000 {
        insert(&db, &t, id, "x").expect("inserts");
        if id == 1000 {
            let arguments = [Value::BigInt(id), Value::BigInt(0)];
            block_on(db.call(&RunOptions::new(), "append", &arguments)).expect("runs");
        }
    }
    let files = files_of(&device);
    for threads in [1, 2, 8] {
        let mut config = config(&device_of(&files), threads, 64 << 30);
        config.procedures = Procedures::new();
        let error = Database::open(config).expect_err("the procedure is not there");
        assert_eq!(error.sqlstate(), "42883", "{error}");
    }
    // Damage that the reading thread finds, while others apply what was before.
    let mut damaged = files.clone();
    let first = damaged.keys().find(|name| name.starts_with("log-"));
    let name = first.expect("there is a segment").clone();
    let device = device_of(&damaged);
    let file = device.open(&name, OpenMode::Existing).expect("opens");
    let middle = damaged.remove(&name).expect("is there").1.len() / 2;
    let group = middle - middle % SECTOR_BYTES;
    // Two sectors: one may have what the other one has.
    for sector in [group, group + SECTOR_BYTES] {
        file.write_at(&[0xEE; 64], sector as u64).expect("writes");
    }
    for threads in [1, 2, 8] {
        let opened = Database::open(config(&device, threads, 64 << 30));
        let error = opened.expect_err("the log is damaged");
        assert!(matches!(error, Error::Corrupt(_)), "{error}");
        assert!(error.to_string().contains(&name), "{error}");
    }
}
