//! Procedures: transactions in Rust, and the commands that the log has of them.

mod fixture;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use fixture::*;
use proptest::prelude::*;
use thermocline_device::{Device, SimulatedDevice};
use thermocline_engine::catalog::{IndexDef, IndexKind, TableDef};
use thermocline_engine::{
    Call, Change, Config, Database, Direction, Error, Isolation, Procedure, Procedures, Reach,
    Result, RunOptions, Scope, Table, TriggerDef, TriggerEvent, block_on,
};
use thermocline_values::types::DataType;
use thermocline_values::value::Value;

const LIMIT: u64 = 64 << 30;

/// Accounts (branch, number) in the partition of their branch, with an ordered
/// index, so that a procedure on one branch holds one partition.
fn make_accounts(db: &Arc<Database>) -> Arc<Table> {
    let index = |name: &str, columns: Vec<usize>, kind, unique| IndexDef {
        oid: db.allocate_oid(),
        name: name.into(),
        columns,
        unique,
        primary: unique,
        constraint: unique,
        kind,
        include: Vec::new(),
        nulls_equal: false,
        order: Vec::new(),
    };
    let def = TableDef {
        indexes: vec![
            index("accounts_pkey", vec![0, 1], IndexKind::Hash, true),
            index("accounts_note", vec![0, 2], IndexKind::BTree, false),
        ],
        partition_key: vec![0],
        ..TableDef::new(
            db.allocate_oid(),
            "accounts",
            vec![
                column("branch", DataType::BigInt, true),
                column("number", DataType::BigInt, true),
                column("note", DataType::Text, false),
            ],
        )
    };
    ddl(db, Change::CreateTable(def)).expect("the table is made");
    table(db, "accounts")
}

/// The model: (branch, number) to note.
type Model = BTreeMap<(i64, i64), String>;

fn int(value: &Value) -> i64 {
    match value {
        Value::BigInt(value) => *value,
        other => panic!("{other:?} is no bigint"),
    }
}

fn text(value: &Value) -> &str {
    match value {
        Value::Text(value) => value,
        other => panic!("{other:?} is no text"),
    }
}

/// What the procedure `mix` does, on the model. An odd seed that ends in 7 fails
/// after all its changes.
fn mix_model(model: &mut Model, branch: i64, seed: i64) -> bool {
    let mut after = model.clone();
    for step in 0..6 {
        let number = (seed * 7 + step * 13) % 23;
        let note = format!("{seed}:{step}:{}", "n".repeat((seed % 300) as usize));
        match (seed + step) % 4 {
            0 => drop(after.remove(&(branch, number))),
            // Deleted and inserted again: it takes a number that became free.
            1 if after.remove(&(branch, number)).is_some() => {
                after.insert((branch, number + 100), note);
            }
            _ => drop(after.insert((branch, number), note)),
        }
    }
    let count = after.range((branch, 0)..(branch, i64::MAX)).count();
    after.insert((branch, -1), count.to_string());
    if seed % 10 == 7 {
        return false;
    }
    *model = after;
    true
}

/// The same in the database.
fn mix(call: &mut Call<'_, '_>, arguments: &[Value]) -> Result<Vec<Value>> {
    let accounts = call.table("accounts")?;
    let (branch, seed) = (int(&arguments[0]), int(&arguments[1]));
    let put = |call: &mut Call<'_, '_>, number: i64, note: String| {
        let key = [Value::BigInt(branch), Value::BigInt(number)];
        match call.get(&accounts, &key)? {
            Some(mut row) => {
                row.values[2] = Value::Text(note);
                call.update(&accounts, &row)
            }
            None => call.insert(
                &accounts,
                &[
                    Value::BigInt(branch),
                    Value::BigInt(number),
                    Value::Text(note),
                ],
            ),
        }
    };
    let take = |call: &mut Call<'_, '_>, number: i64| {
        let key = [Value::BigInt(branch), Value::BigInt(number)];
        match call.get(&accounts, &key)? {
            Some(row) => call.delete(&accounts, &row).map(|()| true),
            None => Ok(false),
        }
    };
    for step in 0..6 {
        let number = (seed * 7 + step * 13) % 23;
        let note = format!("{seed}:{step}:{}", "n".repeat((seed % 300) as usize));
        match (seed + step) % 4 {
            0 => drop(take(call, number)?),
            1 if take(call, number)? => put(call, number + 100, note)?,
            _ => put(call, number, note)?,
        }
    }
    let unbounded = (Bound::Unbounded, Bound::Unbounded);
    let rows = call.range(
        &accounts,
        "accounts_note",
        &arguments[..1],
        unbounded,
        Direction::Ascending,
        usize::MAX,
    )?;
    let count = rows.iter().filter(|row| int(&row.values[1]) >= 0).count();
    put(call, -1, count.to_string())?;
    if seed % 10 == 7 {
        return Err(Error::raised("P0001", "this seed is refused"));
    }
    Ok(vec![Value::BigInt(count as i64)])
}

fn mix_procedure(name: &str) -> Procedure {
    Procedure::new(name, mix)
        .parameter("branch", DataType::BigInt)
        .parameter("seed", DataType::BigInt)
        .result("rows", DataType::BigInt)
        .reach(|arguments| Ok(Reach::row("accounts", &arguments[..1])))
}

/// `mix` as a command, and the same logged by values.
fn procedures() -> Procedures {
    let all = Procedures::new();
    all.register(mix_procedure("mix").deterministic())
        .and_then(|()| all.register(mix_procedure("mix_by_values")))
        .expect("registered");
    all
}

fn try_open(device: &SimulatedDevice, procedures: Procedures) -> Result<Arc<Database>> {
    let device: Arc<dyn Device> = Arc::new(device.clone());
    let mut config = Config::new(device).memory_limit(LIMIT).partitions(4);
    config.background = false;
    config.log_segment_bytes = 256 << 10;
    config.procedures = procedures;
    Database::open(config)
}

fn call(db: &Database, name: &str, arguments: &[i64]) -> Result<Vec<Value>> {
    let arguments: Vec<Value> = arguments.iter().map(|a| Value::BigInt(*a)).collect();
    block_on(db.call(&RunOptions::new(), name, &arguments))
}

fn rows_of(db: &Arc<Database>) -> Model {
    let accounts = table(db, "accounts");
    let snapshot = db.snapshot();
    let mut rows = Model::new();
    for partition in 0..db.partitions() {
        let mut scan = snapshot.scan(&accounts, partition);
        while block_on(scan.next_chunk(&mut |_, tuple| {
            let value = |column| accounts.value(tuple, column).to_owned();
            let key = (int(&value(0)), int(&value(1)));
            let twice = rows.insert(key, text(&value(2)).to_owned());
            assert!(twice.is_none(), "row {key:?} was given twice");
        }))
        .expect("scans")
        {}
    }
    rows
}

/// Every row is found by its key too: the indexes agree.
fn check_indexes(db: &Arc<Database>, model: &Model) {
    let found = Procedure::new("found", |call, arguments| {
        let accounts = call.table("accounts")?;
        let row = call.get(&accounts, &arguments[..2])?;
        let row = row.map(|row| row.values[2].clone()).unwrap_or_default();
        let key = [arguments[0].clone(), row.clone()];
        let by_note = call.find(&accounts, "accounts_note", &key)?;
        assert!(call.evicted() || by_note.iter().any(|r| r.values[1] == arguments[1]));
        Ok(vec![row])
    })
    .parameter("branch", DataType::BigInt)
    .parameter("number", DataType::BigInt)
    .result("note", DataType::Text);
    let _ = db.register_procedure(found);
    for ((branch, number), note) in model {
        let found = call(db, "found", &[*branch, *number]).expect("reads");
        assert_eq!(found, [Value::Text(note.clone())], "row {branch} {number}");
    }
}

#[test]
fn a_call_is_a_transaction_and_its_errors_are_postgresqls() {
    let db = try_open(&SimulatedDevice::new(), procedures()).expect("opens");
    make_accounts(&db);
    let mut model = Model::new();
    for seed in 0..40 {
        let done = mix_model(&mut model, seed % 3, seed);
        let called = call(&db, "mix", &[seed % 3, seed]);
        match done {
            true => assert_eq!(called.expect("runs").len(), 1),
            false => assert_eq!(called.expect_err("fails").sqlstate(), "P0001"),
        }
    }
    assert_eq!(rows_of(&db), model);
    check_indexes(&db, &model);
    let error = call(&db, "mix", &[1]).expect_err("too few");
    assert_eq!(error.sqlstate(), "42883");
    assert_eq!(error.to_string(), "procedure mix(bigint) does not exist");
    let error = call(&db, "nothing", &[]).expect_err("unknown");
    assert_eq!(error.to_string(), "procedure nothing() does not exist");
    let arguments = [Value::Boolean(true), Value::BigInt(1)];
    let error = block_on(db.call(&RunOptions::new(), "mix", &arguments)).expect_err("types");
    assert_eq!(error.sqlstate(), "42883");
    let error = db
        .register_procedure(mix_procedure("mix"))
        .expect_err("twice");
    assert_eq!(error.sqlstate(), "42723");
}

#[test]
fn a_table_with_triggers_is_changed_by_no_procedure() {
    let db = try_open(&SimulatedDevice::new(), procedures()).expect("opens");
    let accounts = make_accounts(&db);
    let trigger = |events: &[TriggerEvent]| Change::CreateTrigger {
        table: accounts.def.oid,
        trigger: TriggerDef {
            oid: db.allocate_oid(),
            name: "watch".into(),
            function: 1,
            before: true,
            row: true,
            events: events.to_vec(),
            columns: Vec::new(),
            condition: None,
            arguments: Vec::new(),
            disabled: false,
        },
    };
    for event in [TriggerEvent::Insert, TriggerEvent::Update] {
        ddl(&db, trigger(&[event])).expect("the trigger is made");
        for seed in 0..6 {
            let called = call(&db, "mix", &[1, seed]).expect_err("is refused");
            assert_eq!(called.sqlstate(), "0A000", "{called}");
        }
        // One for something else is in nobody's way.
        ddl(&db, trigger(&[TriggerEvent::Truncate])).expect("it is replaced");
        call(&db, "mix", &[1, 2]).expect("runs");
    }
}

#[test]
fn what_lies_outside_of_the_declared_reach_is_an_error_not_an_empty_result() {
    let db = try_open(&SimulatedDevice::new(), Procedures::new()).expect("opens");
    make_accounts(&db);
    let elsewhere = |name: &str, body: fn(&mut Call<'_, '_>, i64) -> Result<()>| {
        Procedure::new(name, move |call, arguments| {
            // Some other branch lies in another partition.
            for branch in 1..20 {
                body(call, int(&arguments[0]) + branch)?;
            }
            Ok(Vec::new())
        })
        .parameter("branch", DataType::BigInt)
        .reach(|arguments| Ok(Reach::row("accounts", arguments)))
    };
    let all = [
        elsewhere("reads", |call, branch| {
            let accounts = call.table("accounts")?;
            call.get(&accounts, &[Value::BigInt(branch), Value::BigInt(0)])
                .map(|_| ())
        }),
        elsewhere("ranges", |call, _| {
            let accounts = call.table("accounts")?;
            let all = (Bound::Unbounded, Bound::Unbounded);
            let ascending = Direction::Ascending;
            call.range(&accounts, "accounts_note", &[], all, ascending, 1)
                .map(|_| ())
        }),
        elsewhere("writes", |call, branch| {
            let accounts = call.table("accounts")?;
            call.insert(
                &accounts,
                &[Value::BigInt(branch), Value::BigInt(0), Value::Null],
            )
        }),
    ];
    for procedure in all {
        let name = procedure.name().to_owned();
        db.register_procedure(procedure).expect("registered");
        let error = call(&db, &name, &[1]).expect_err("outside");
        assert_eq!(error.sqlstate(), "38000", "{name}: {error}");
    }
    assert!(
        rows_of(&db).is_empty(),
        "nothing of the failed calls is kept"
    );
}

#[test]
fn a_panic_in_a_body_takes_the_call_back_and_leaves_the_partition_whole() {
    let db = try_open(&SimulatedDevice::new(), procedures()).expect("opens");
    make_accounts(&db);
    let mut model = Model::new();
    assert!(mix_model(&mut model, 1, 4));
    call(&db, "mix", &[1, 4]).expect("runs");
    let panics = mix_then("panics", |_| panic!("a body's mistake"));
    db.register_procedure(panics).expect("registered");
    let error = call(&db, "panics", &[1, 5]).expect_err("panics");
    assert_eq!(error.sqlstate(), "XX000");
    assert_eq!(rows_of(&db), model);
    assert!(mix_model(&mut model, 1, 6));
    call(&db, "mix", &[1, 6]).expect("the partition works");
    assert_eq!(rows_of(&db), model);
}

/// `mix`, and then something else.
fn mix_then(
    name: &str,
    then: impl Fn(&mut Call<'_, '_>) -> Result<()> + Send + Sync + 'static,
) -> Procedure {
    Procedure::new(name, move |call, arguments| {
        let results = mix(call, arguments)?;
        then(call)?;
        Ok(results)
    })
    .parameter("branch", DataType::BigInt)
    .parameter("seed", DataType::BigInt)
    .result("rows", DataType::BigInt)
    .reach(|arguments| Ok(Reach::row("accounts", &arguments[..1])))
}

#[test]
fn a_command_takes_less_log_than_its_values() {
    let db = try_open(&SimulatedDevice::new(), procedures()).expect("opens");
    make_accounts(&db);
    let logged = |name: &str, branch: i64| {
        let before = db.counters().log_bytes;
        for seed in (200..290).filter(|seed| seed % 10 != 7) {
            call(&db, name, &[branch, seed]).expect("runs");
        }
        db.counters().log_bytes - before
    };
    let (commands, values) = (logged("mix", 1), logged("mix_by_values", 2));
    assert!(commands * 5 < values, "{commands} bytes against {values}");
}

#[test]
fn a_log_with_an_unknown_or_changed_procedure_is_refused_by_name() {
    let device = SimulatedDevice::new();
    let db = try_open(&device, procedures()).expect("opens");
    make_accounts(&db);
    call(&db, "mix", &[1, 4]).expect("runs");
    device.crash(1);
    drop(db);
    let error = try_open(&device, Procedures::new()).expect_err("refused");
    assert_eq!(error.sqlstate(), "42883");
    assert!(error.to_string().contains("procedure mix,"), "{error}");
    let changed = Procedures::new();
    let another = mix_then("mix", |call| {
        let accounts = call.table("accounts")?;
        call.insert(
            &accounts,
            &[Value::BigInt(1), Value::BigInt(-2), Value::Null],
        )
    });
    changed
        .register(another.deterministic())
        .expect("registered");
    let error = try_open(&device, changed).expect_err("refused");
    assert_eq!(error.sqlstate(), "XX001");
    assert!(error.to_string().contains("procedure mix "), "{error}");
    // Neither attempt has done any harm.
    let db = try_open(&device, procedures()).expect("opens");
    let mut model = Model::new();
    assert!(mix_model(&mut model, 1, 4));
    assert_eq!(rows_of(&db), model);
}

#[test]
fn a_procedure_that_is_not_deterministic_is_found_at_recovery() {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let device = SimulatedDevice::new();
    let procedures = Procedures::new();
    let body = |call: &mut Call<'_, '_>, _: &[Value]| {
        let accounts = call.table("accounts")?;
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let note = Value::Text(format!("run {run}"));
        call.insert(&accounts, &[Value::BigInt(1), Value::BigInt(1), note])?;
        Ok(Vec::new())
    };
    let counts = Procedure::new("counts", body)
        .reach(|_| Ok(Reach::row("accounts", &[Value::BigInt(1)])))
        .deterministic();
    procedures.register(counts).expect("registered");
    let db = try_open(&device, procedures.clone()).expect("opens");
    make_accounts(&db);
    call(&db, "counts", &[]).expect("runs");
    device.crash(1);
    drop(db);
    let error = try_open(&device, procedures).expect_err("refused");
    assert!(error.to_string().contains("procedure counts"), "{error}");
}

#[test]
fn the_time_of_a_call_is_the_same_at_recovery() {
    let device = SimulatedDevice::new();
    let procedures = Procedures::new();
    let stamps = Procedure::new("stamps", |call, _| {
        let accounts = call.table("accounts")?;
        let now = call.now();
        let values = [
            Value::BigInt(1),
            Value::BigInt(now),
            Value::Text(now.to_string()),
        ];
        call.insert(&accounts, &values)?;
        Ok(vec![Value::TimestampTz(now)])
    })
    .result("at", DataType::TimestampTz)
    .reach(|_| Ok(Reach::row("accounts", &[Value::BigInt(1)])))
    .deterministic();
    procedures.register(stamps).expect("registered");
    let db = try_open(&device, procedures.clone()).expect("opens");
    make_accounts(&db);
    let Value::TimestampTz(at) = call(&db, "stamps", &[]).expect("runs")[0] else {
        panic!("not a time");
    };
    device.crash(1);
    drop(db);
    let db = try_open(&device, procedures).expect("opens");
    assert_eq!(rows_of(&db), Model::from([((1, at), at.to_string())]));
}

/// How an interactive transaction ends.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Commit,
    Rollback,
    /// The database crashes while it is open.
    Crash,
}

/// What a history is made of.
#[derive(Debug, Clone)]
enum Step {
    /// A call: as a command or by values.
    Call {
        command: bool,
        branch: i64,
        seed: i64,
    },
    /// An interactive transaction that runs `mix` on a branch of its own, around
    /// the calls of the next steps; committed or rolled back.
    Interactive {
        end: End,
        first: i64,
    },
    /// A snapshot is held open over the next steps.
    Snapshot,
    Checkpoint,
    AddIndex,
    Truncate,
    Restart {
        crash_seed: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (any::<bool>(), 0..4i64, 0..400i64).prop_map(|(command, branch, seed)| Step::Call {
            command: command || seed % 3 == 0,
            branch,
            seed,
        }),
        3 => (0..3u8, 0..23i64).prop_map(|(end, first)| Step::Interactive {
            end: [End::Commit, End::Rollback, End::Crash][usize::from(end)],
            first,
        }),
        1 => Just(Step::Snapshot),
        1 => Just(Step::Checkpoint),
        1 => Just(Step::AddIndex),
        1 => Just(Step::Truncate),
        2 => any::<u64>().prop_map(|crash_seed| Step::Restart { crash_seed }),
    ]
}

/// Numbers that interactive transactions insert, in branches that calls use.
const INTERACTIVE: i64 = 100;

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn any_history_of_calls_is_recovered(steps in prop::collection::vec(step(), 1..40)) {
        let device = SimulatedDevice::new();
        let mut db = try_open(&device, procedures()).expect("opens");
        make_accounts(&db);
        let mut model = Model::new();
        let mut snapshot = None;
        let mut indexes = 0;
        for step in &steps {
            match step {
                Step::Call { command, branch, seed } => {
                    let done = mix_model(&mut model, *branch, *seed);
                    let name = if *command { "mix" } else { "mix_by_values" };
                    prop_assert_eq!(call(&db, name, &[*branch, *seed]).is_ok(), done);
                }
                Step::Interactive { end, first } => {
                    let accounts = table(&db, "accounts");
                    let mut txn = db.begin(Isolation::ReadCommitted, false);
                    let own: Vec<i64> = (*first..first + 3).map(|n| n + INTERACTIVE).collect();
                    let encode = |number: i64, note: &str| {
                        let values = [Value::BigInt(2), Value::BigInt(number), Value::Text(note.into())];
                        let values: Vec<_> = values.iter().map(Value::as_ref).collect();
                        let mut tuple = Vec::new();
                        accounts.encode_tuple(&values, &mut tuple);
                        tuple
                    };
                    let inserted = in_txn(&mut txn, &db, |access| {
                        for number in &own {
                            access.insert(&accounts, &encode(*number, "interactive"))?;
                        }
                        Ok(())
                    });
                    // A call between its insert and its end.
                    let seed = first * 2;
                    let done = mix_model(&mut model, 3, seed);
                    prop_assert_eq!(call(&db, "mix", &[3, seed]).is_ok(), done);
                    match end {
                        End::Commit if inserted.is_ok() => {
                            block_on(db.commit(txn, &RunOptions::new())).expect("commits");
                            for number in own {
                                model.insert((2, number), "interactive".into());
                            }
                        }
                        End::Commit | End::Rollback => block_on(db.rollback(txn)),
                        End::Crash => {
                            drop(snapshot.take());
                            device.crash(*first as u64);
                            std::mem::forget(txn);
                            drop(db);
                            db = try_open(&device, procedures()).expect("recovers");
                            prop_assert_eq!(&rows_of(&db), &model);
                        }
                    }
                }
                Step::Snapshot => snapshot = Some(db.snapshot()),
                Step::Checkpoint => block_on(db.checkpoint()).expect("checkpoints"),
                Step::AddIndex => {
                    indexes += 1;
                    let accounts = table(&db, "accounts");
                    let index = IndexDef {
                        oid: db.allocate_oid(),
                        name: format!("another_{indexes}"),
                        columns: vec![0, 1, 2],
                        unique: true,
                        primary: false,
                        constraint: false,
                        kind: IndexKind::BTree,
                        include: Vec::new(),
                        nulls_equal: false,
                        order: Vec::new(),
                    };
                    let change = Change::CreateIndex { table: accounts.def.oid, index };
                    ddl(&db, change).expect("the index is made");
                }
                Step::Truncate => {
                    drop(snapshot.take());
                    let tables = vec![table(&db, "accounts").def.oid];
                    ddl(&db, Change::Truncate { tables, restart_identity: false })
                        .expect("truncates");
                    model.clear();
                }
                Step::Restart { crash_seed } => {
                    drop(snapshot.take());
                    device.crash(*crash_seed);
                    drop(db);
                    db = try_open(&device, procedures()).expect("recovers");
                    prop_assert_eq!(&rows_of(&db), &model);
                }
            }
        }
        drop(snapshot);
        device.crash(7);
        drop(db);
        let db = try_open(&device, procedures()).expect("recovers");
        prop_assert_eq!(&rows_of(&db), &model);
        check_indexes(&db, &model);
    }
}

/// At the first command after CREATE INDEX a restart built the index of what was committed
/// by then: rows of a transaction that committed later in the log were never in it.
#[test]
fn an_index_completed_for_a_command_leads_to_rows_that_commit_after_it() {
    let device = SimulatedDevice::new();
    let db = try_open(&device, procedures()).expect("opens");
    let accounts = make_accounts(&db);
    for branch in 1..=2 {
        call(&db, "mix", &[branch, 2]).expect("called");
    }
    let index = IndexDef {
        oid: db.allocate_oid(),
        name: "accounts_number".into(),
        columns: vec![1],
        unique: false,
        primary: false,
        constraint: false,
        kind: IndexKind::BTree,
        include: Vec::new(),
        nulls_equal: false,
        order: Vec::new(),
    };
    let change = Change::CreateIndex {
        table: accounts.def.oid,
        index,
    };
    ddl(&db, change).expect("makes the index");
    let accounts = table(&db, "accounts");
    let mut txn = db.begin(Isolation::Serializable, false);
    let mut row = Vec::new();
    let values = [
        Value::BigInt(2),
        Value::BigInt(500),
        Value::Text("late".into()),
    ];
    let values: Vec<_> = values.iter().map(Value::as_ref).collect();
    accounts.encode_tuple(&values, &mut row);
    let options = RunOptions::new();
    let inserted = db.in_transaction(&mut txn, &options, Scope::All, |access| {
        access.insert(&accounts, &row).map(|_| ())
    });
    block_on(inserted).expect("inserts");
    call(&db, "mix", &[1, 4]).expect("called");
    block_on(db.commit(txn, &RunOptions::new())).expect("commits");
    let before = rows_of(&db);
    drop(db);
    device.crash_losing_all();

    let db = try_open(&device, procedures()).expect("opens again");
    let found = db.verify().expect("reads");
    assert!(found.is_sound(), "{:?}", found.problems);
    assert_eq!(rows_of(&db), before);
}
