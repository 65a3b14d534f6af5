//! Every point, not a sample: a fixed script of two hundred steps crosses inserts,
//! updates, deletes, transactions over partitions, eviction, merging, compaction,
//! checkpoints, log rotation and definitions. The device halts after each of its
//! operations in turn and the process is gone. After recovery the rows must be those of
//! the script up to the last step that was acknowledged, or one step further, and nothing
//! by half. Recovery itself is halted too, and done again.

mod fixture;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use fixture::*;
use thermocline_device::{Device, SimulatedClock, SimulatedDevice};
use thermocline_engine::catalog::{AccessMethod, IndexDef, IndexKind, TableDef};
use thermocline_engine::steps::{Moment, Simulator, Steps};
use thermocline_engine::{
    Access, Change, Config, Database, Error, Isolation, MaterializedDef, Merge, Policy, Result,
    RunOptions, Table,
};

type Rows = BTreeMap<i64, String>;

/// Nothing runs while a step pauses.
struct Alone;

impl Simulator for Alone {
    fn pause(&self, _: Moment) {}
}

/// A database in one thread, whose every device operation is the script's own: the same
/// number halts at the same place.
struct Script {
    db: Arc<Database>,
    steps: Steps,
    /// What the table's rows are kept in.
    method: AccessMethod,
}

impl Script {
    fn open(device: &SimulatedDevice, method: AccessMethod) -> Result<Script> {
        let device: Arc<dyn Device> = Arc::new(device.clone());
        let mut config = Config::new(device).partitions(2);
        config.background = false;
        config.clock = Arc::new(SimulatedClock::new());
        config.simulator = Some(Arc::new(Alone));
        config.memory_limit = thermocline_engine::MEMORY_LIMIT_MIN;
        config.log_segment_bytes = 64 << 10;
        config.policy = Some(Policy {
            merge: Merge::Always,
            block_bytes: 8 << 10,
            compaction_percent: 90,
            ..Policy::default()
        });
        let db = Database::open(config)?;
        let steps = Steps::new(&db);
        Ok(Script { db, steps, method })
    }

    /// Runs a future; whenever it waits, the log is written.
    fn drive<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..1000 {
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return output;
            }
            self.steps.flush_log();
        }
        panic!("a statement waits for something that never happens");
    }

    fn table(&self) -> Result<Arc<Table>> {
        let catalog = self.db.catalog();
        let found = catalog.table_by_name("public", "t").cloned();
        found.ok_or_else(|| Error::Internal("the table is not there".into()))
    }

    fn one_shot<R>(
        &self,
        id: i64,
        mut body: impl FnMut(&mut Access<'_>, &Table) -> Result<R>,
    ) -> Result<R> {
        let t = self.table()?;
        self.drive(
            self.db
                .one_shot(&RunOptions::new(), scope(&t, id), |access| body(access, &t)),
        )
    }

    fn define(&self, change: Change) -> Result<()> {
        let mut txn = self.db.begin(Isolation::Serializable, false);
        self.drive(self.db.ddl(&mut txn, &RunOptions::new(), change))?;
        self.drive(self.db.commit(txn, &RunOptions::new()))
    }

    fn evict(&self) -> Result<()> {
        self.steps.leave_memory(0);
        for _ in 0..6 {
            self.steps.evict()?;
        }
        self.steps.leave_memory(16 << 20);
        Ok(())
    }

    /// One transaction over all partitions.
    fn together(&self, number: i64, rows: &mut Rows) -> Result<()> {
        let t = self.table()?;
        let new: Vec<i64> = (1000 + number..1010 + number).collect();
        let mut txn = self.db.begin(Isolation::Serializable, false);
        let mut changed = rows.clone();
        self.drive(self.db.in_transaction(
            &mut txn,
            &RunOptions::new(),
            thermocline_engine::Scope::All,
            |access| {
                changed.clone_from(rows);
                for id in &new {
                    access.insert(&t, &tuple(&t, *id, &value(*id)))?;
                    changed.insert(*id, value(*id));
                }
                for (id, value) in changed.range_mut(..number).take(5) {
                    set_in(access, &t, *id, "changed together")?;
                    *value = "changed together".into();
                }
                if let Some(last) = changed.range(..number).next_back().map(|row| *row.0) {
                    delete_in(access, &t, last)?;
                    changed.remove(&last);
                }
                Ok(())
            },
        ))?;
        self.drive(self.db.commit(txn, &RunOptions::new()))?;
        *rows = changed;
        Ok(())
    }

    /// What a REFRESH of a materialized view is: other rows in new storage in the place of the old,
    /// and another definition, with a checkpoint between.
    fn put_anew(&self, number: i64, rows: &mut Rows) -> Result<()> {
        let options = RunOptions::new();
        let oid = self.table()?.def.oid;
        let mut txn = self.db.begin(Isolation::RepeatableRead, false);
        let emptied = Change::Truncate {
            tables: vec![oid],
            restart_identity: false,
        };
        self.drive(self.db.ddl(&mut txn, &options, emptied))?;
        let drafted = txn.catalog().table(oid).cloned();
        let t = drafted.ok_or_else(|| Error::Internal("the table is not there".into()))?;
        let new: Rows = (2000..2020).map(|id| (id, value(id))).collect();
        let scope = thermocline_engine::Scope::All;
        self.drive(self.db.in_transaction(&mut txn, &options, scope, |access| {
            for (id, value) in &new {
                access.insert(&t, &tuple(&t, *id, value))?;
            }
            Ok(())
        }))?;
        self.drive(self.db.checkpoint())?;
        let mut def = t.def.clone();
        def.materialized = Some(Box::new(MaterializedDef {
            query: format!("select {number}"),
            columns: Vec::new(),
            reads: Vec::new(),
            types: Vec::new(),
            functions: Vec::new(),
            depth: 3,
            populated: true,
        }));
        self.drive(self.db.ddl(&mut txn, &options, Change::AlterTable(def)))?;
        self.drive(self.db.commit(txn, &options))?;
        *rows = new;
        Ok(())
    }

    /// The steps of the script: each changes `rows` as it changes the database.
    fn step(&self, number: i64, rows: &mut Rows) -> Result<()> {
        match number {
            40 | 75 | 110 | 150 | 185 => self.drive(self.db.checkpoint()),
            120 => self
                .define(Change::Truncate {
                    tables: vec![self.table()?.def.oid],
                    restart_identity: false,
                })
                .map(|()| rows.clear()),
            135 => self.put_anew(number, rows),
            95 => self.define(Change::CreateIndex {
                table: self.table()?.def.oid,
                index: IndexDef {
                    oid: self.db.allocate_oid(),
                    name: "by_value".into(),
                    columns: vec![1],
                    unique: false,
                    primary: false,
                    constraint: false,
                    kind: IndexKind::Hash,
                    include: Vec::new(),
                    nulls_equal: false,
                    order: Vec::new(),
                },
            }),
            n if n % 30 == 29 => self.together(n, rows),
            n if n % 12 == 11 => self.evict(),
            n if n % 25 == 17 => self.steps.compact().map(|_| ()),
            n if n % 7 == 5 => {
                // What was evicted comes back.
                let id = n / 2;
                let found = self.one_shot(id, |access, t| get_in(access, t, id))?;
                assert_eq!(found.as_ref(), rows.get(&id), "step {n}: row {id}");
                Ok(())
            }
            n if n % 5 == 4 => {
                let id = n - 3 - n % 40;
                let new = value(n);
                let there = self.one_shot(id, |access, t| set_in(access, t, id, &new))?;
                assert_eq!(there, rows.contains_key(&id), "step {n}: row {id}");
                rows.entry(id).and_modify(|row| *row = new);
                Ok(())
            }
            n if n % 11 == 10 => {
                let id = n - 5;
                self.one_shot(id, |access, t| delete_in(access, t, id))?;
                rows.remove(&id);
                Ok(())
            }
            n => {
                let new = value(n);
                self.one_shot(n, |access, t| {
                    access.insert(t, &tuple(t, n, &new)).map(|_| ())
                })?;
                rows.insert(n, new);
                Ok(())
            }
        }
    }

    fn make_table(&self) -> Result<()> {
        self.define(Change::CreateTable(TableDef {
            access_method: self.method,
            tablespace: 0,
            foreign_keys: Vec::new(),
            referenced_by: Vec::new(),
            triggers: Vec::new(),
            ..table_def(&self.db, "t", IndexKind::Hash)
        }))
    }
}

fn value(step: i64) -> String {
    format!("{step}:{}", "v".repeat(200 + (step * 37 % 900) as usize))
}

const STEPS: i64 = 200;

/// What the script has made of the rows after each step.
fn states(method: AccessMethod) -> (Vec<Rows>, u64) {
    let device = SimulatedDevice::new();
    let script = Script::open(&device, method).expect("opens");
    script.make_table().expect("makes the table");
    let mut states = vec![Rows::new()];
    let mut rows = Rows::new();
    for number in 0..STEPS {
        script.step(number, &mut rows).expect("a step");
        states.push(rows.clone());
    }
    let counters = script.db.counters();
    let crossed = [
        ("evictions", counters.evictions),
        // What is in columns does not come back to the rows in place.
        (
            "merges",
            counters.merges + u64::from(method == AccessMethod::Columns),
        ),
        ("compacted tuples", counters.tuples_compacted),
        ("checkpoints", counters.checkpoints),
    ];
    for (what, number) in crossed {
        assert!(number > 0, "the script crosses no {what}");
    }
    let segments = device.list().expect("lists");
    assert!(
        segments
            .iter()
            .filter(|file| file.starts_with("log-"))
            .count()
            > 1,
        "the log rotates: {segments:?}"
    );
    (states, device.operations())
}

/// Runs the script until the device halts. How many steps were acknowledged, if the table
/// was made.
fn acknowledged(device: &SimulatedDevice, method: AccessMethod) -> Option<usize> {
    let script = Script::open(device, method).ok()?;
    script.make_table().ok()?;
    let mut rows = Rows::new();
    for number in 0..STEPS {
        if script.step(number, &mut rows).is_err() {
            return Some(number as usize);
        }
    }
    Some(STEPS as usize)
}

#[test]
fn a_halt_after_any_device_operation_loses_nothing_acknowledged() {
    halt_everywhere(AccessMethod::Memory);
}

#[test]
fn nor_does_one_of_a_column_table() {
    halt_everywhere(AccessMethod::Columns);
}

fn halt_everywhere(method: AccessMethod) {
    let (states, operations) = states(method);
    assert!(
        operations > 400,
        "{operations} operations are too few a script"
    );
    for halt in 0..operations {
        let device = SimulatedDevice::new();
        device.halt_after(halt);
        let done = acknowledged(&device, method);
        assert!(
            device.is_halted(),
            "the device halts after {halt} operations"
        );
        if halt % 2 == 0 {
            device.set_atomic_write_bytes(512);
        }
        device.crash(halt);
        if halt % 3 == 0 {
            // The first recovery does not get far either.
            device.halt_after(halt % 40);
            drop(Script::open(&device, method));
            device.crash(halt + 1);
        }
        let script = match Script::open(&device, method) {
            Ok(script) => script,
            Err(error) => panic!("halt {halt}: recovery failed: {error}"),
        };
        let verified = script.db.verify().expect("verifies");
        assert!(verified.is_sound(), "halt {halt}: {:?}", verified.problems);
        let Ok(t) = script.table() else {
            assert!(done.is_none(), "halt {halt}: the table is lost");
            continue;
        };
        let rows = all(&script.db, &t);
        let done = done.unwrap_or(0);
        assert_eq!(
            t.def.is_materialized(),
            rows.contains_key(&2000),
            "halt {halt}: rows that were put anew come with their definition"
        );
        let further = &states[(done + 1).min(states.len() - 1)];
        let keys = |rows: &Rows| rows.keys().copied().collect::<Vec<_>>();
        assert!(
            rows == states[done] || rows == *further,
            "halt {halt}, {done} steps acknowledged: found {:?}, not {:?} nor {:?}",
            keys(&rows),
            keys(&states[done]),
            keys(further)
        );
    }
    println!("{operations} crash points, one after each device operation");
}
