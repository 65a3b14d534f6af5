//! Whatever the policies are, and however they change meanwhile, the same operations have the same
//! results and leave the same rows: one list of operations over pairwise combinations of all
//! choices, in memory so small that rows leave and come back all the time.

mod fixture;

use std::collections::BTreeMap;
use std::sync::Arc;

use fixture::*;
use thermocline_device::{Device, SimulatedDevice};
use thermocline_engine::catalog::IndexKind;
use thermocline_engine::steps::Steps;
use thermocline_engine::table_policy::OPTIONS;
use thermocline_engine::tablespace::TablespaceDef;
use thermocline_engine::{
    Change, Config, Database, Isolation, PolicyCounts, RunOptions, Scope, Table, block_on,
};

/// Where rows go that leave: no option of a policy, but changed as one.
const TABLESPACE: &str = "tablespace";

/// What each option of a policy may be; each pair of values of two options is in some combination.
const CHOICES: [(&str, &[&str]); 14] = [
    (
        "identification",
        &[
            "temperature",
            "clock",
            "fifo",
            "lru",
            "alru",
            "s3fifo",
            "offline",
            "off",
        ],
    ),
    (
        "merge",
        &["warm", "always", "update_only", "top(5%)", "top(60%)"],
    ),
    ("retrieval", &["restart", "sync"]),
    ("read_unit", &["sectors", "block"]),
    ("access", &["block", "byte"]),
    ("merge_unit", &["tuple", "block"]),
    ("block_size", &["1kB", "4kB", "64kB", "1MB"]),
    ("compression", &["none", "lz4"]),
    ("timing", &["threshold", "manual"]),
    ("alru_sample", &["0.01", "1"]),
    ("offline_sample", &["0.1", "1"]),
    ("compaction", &["background", "lazy"]),
    ("fill_factor", &["0.5", "1"]),
    (TABLESPACE, &["", "one", "two"]),
];

/// A value's place for each option.
type Combination = [usize; CHOICES.len()];

/// A small pseudo-random number.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % end
    }
}

/// Combinations in which each pair of values occurs: those that have most pairs that are
/// still to come, of some that are drawn, one after the other.
fn pairwise() -> Vec<Combination> {
    let mut chance = Chance(1);
    let mut open = std::collections::BTreeSet::new();
    for (a, (_, of_a)) in CHOICES.iter().enumerate() {
        for (b, (_, of_b)) in CHOICES.iter().enumerate().skip(a + 1) {
            for x in 0..of_a.len() {
                open.extend((0..of_b.len()).map(|y| (a, x, b, y)));
            }
        }
    }
    let pairs = |of: &Combination| {
        let of = *of;
        (0..of.len()).flat_map(move |a| (a + 1..of.len()).map(move |b| (a, of[a], b, of[b])))
    };
    let mut all = Vec::new();
    while !open.is_empty() {
        let drawn = (0..60).map(|_| CHOICES.map(|(_, values)| chance.below(values.len())));
        let best = drawn.max_by_key(|of| pairs(of).filter(|pair| open.contains(pair)).count());
        let best = best.expect("some are drawn");
        for pair in pairs(&best) {
            open.remove(&pair);
        }
        all.push(best);
    }
    all
}

fn open_small(device: &SimulatedDevice) -> Arc<Database> {
    let device: Arc<dyn Device> = Arc::new(device.clone());
    let mut config = Config::new(device).memory_limit(64 << 30).partitions(2);
    config.background = false;
    config.log_segment_bytes = 1 << 20;
    Database::open(config).expect("opens")
}

/// A table goes by this combination from now on.
fn set_policy(db: &Arc<Database>, combination: &Combination) {
    let mut def = table(db, "t").def.clone();
    for ((name, values), value) in CHOICES.iter().zip(combination) {
        if *name == TABLESPACE {
            let catalog = db.catalog();
            let space = catalog.tablespace_by_name(values[*value]);
            def.tablespace = space.map_or(0, |space| space.oid);
            continue;
        }
        def.options.insert((*name).into(), values[*value].into());
    }
    if def.tablespace == 0 {
        // The data directory's device is no memory.
        def.options.insert("access".into(), "block".into());
    }
    ddl(db, Change::AlterTable(def)).expect("the policy is changed");
}

fn all_of(db: &Arc<Database>) -> BTreeMap<i64, String> {
    all(db, &table(db, "t"))
}

fn counts_of(db: &Database) -> PolicyCounts {
    db.policy_reports()[0].counts
}

/// A policy with these choices, and the rest as the server has it.
fn say(db: &Arc<Database>, choices: &[(&str, &str)]) {
    let mut def = table(db, "t").def.clone();
    def.options.clear();
    for (name, value) in choices {
        def.options.insert((*name).into(), (*value).into());
    }
    ddl(db, Change::AlterTable(def)).expect("the policy is changed");
}

/// A table of so many rows of a kilobyte, all of which have left memory.
fn evicted(choices: &[(&str, &str)], rows: i64) -> (SimulatedDevice, Arc<Database>, Arc<Table>) {
    let device = SimulatedDevice::new();
    let db = open_small(&device);
    let t = make_table(&db, "t", IndexKind::Hash);
    for id in 0..rows {
        insert(&db, &t, id, &"x".repeat(1000)).expect("inserts");
    }
    say(&db, choices);
    let t = table(&db, "t");
    let (left, _) = block_on(db.evict(&RunOptions::new(), &t, u64::MAX)).expect("evicts");
    assert_eq!(left, rows as u64);
    (device, db, t)
}

fn hot(db: &Database, t: &Table) -> u64 {
    db.hot_rows(t).0
}

/// A row of 200 bytes, as applications have them.
fn order(id: i64) -> String {
    let remark = "is to be delivered at the back door; ".repeat(4);
    format!("order {id}, customer {}: {remark}", id * 7919 % 977)
}

#[test]
fn compressed_rows_take_a_part_of_the_device_and_a_sector_each_to_come_back() {
    const ROWS: i64 = 2000;
    let mut written = Vec::new();
    for compression in ["none", "lz4"] {
        let device = SimulatedDevice::new();
        let db = open_small(&device);
        let t = make_table(&db, "t", IndexKind::Hash);
        for id in 0..ROWS {
            insert(&db, &t, id, &order(id)).expect("inserts");
        }
        say(
            &db,
            &[("compression", compression), ("merge", "update_only")],
        );
        let t = table(&db, "t");
        let evict = || block_on(db.evict(&RunOptions::new(), &t, u64::MAX)).expect("evicts");
        assert_eq!(evict().0, ROWS as u64);
        let before = counts_of(&db);
        written.push(before.bytes_written);
        for id in 0..ROWS {
            assert_eq!(get(&db, &t, id).expect("reads"), Some(order(id)));
        }
        let read = counts_of(&db).bytes_read - before.bytes_read;
        match compression {
            "lz4" => assert_eq!(read, ROWS as u64 * 4096, "a sector each"),
            _ => assert!(read > ROWS as u64 * 4096, "some lie across two"),
        }
        // Half of them change and leave again; blocks with holes are emptied; the rest of the rows is
        // written in the other way.
        for id in (0..ROWS).step_by(2) {
            assert!(set(&db, &t, id, &order(id + 1)).expect("updates"));
        }
        let other = if compression == "none" { "lz4" } else { "none" };
        say(&db, &[("compression", other)]);
        evict();
        let steps = Steps::new(&db);
        while steps.compact().expect("compacts") {}
        drop(steps);
        let expected: BTreeMap<_, _> = (0..ROWS).map(|id| (id, order(id | 1))).collect();
        assert_eq!(all_of(&db), expected);
        block_on(db.checkpoint()).expect("a checkpoint");
        assert!(db.verify().expect("verifies").is_sound());
        drop((t, db));
        device.crash(7);
        let db = open_small(&device);
        assert_eq!(all_of(&db), expected);
        assert!(db.verify().expect("verifies").is_sound());
    }
    assert!(written[1] * 2 < written[0], "{written:?}");
}

#[test]
fn a_row_that_is_read_while_the_partition_is_held_restarts_nothing() {
    let choices = [("retrieval", "sync"), ("merge", "update_only")];
    let (_, db, t) = evicted(&choices, 20);
    for id in 0..20 {
        assert!(get(&db, &t, id).expect("reads").is_some());
        assert!(set(&db, &t, id, "short").expect("updates"));
    }
    let counts = counts_of(&db);
    assert_eq!((counts.restarts, counts.sync_reads), (0, 40));
    assert_eq!(hot(&db, &t), 20, "what was changed is hot");
}

#[test]
fn a_block_whose_tuple_is_asked_for_comes_back_whole_and_is_given_up() {
    for (retrieval, compression) in [("restart", "none"), ("sync", "none"), ("restart", "lz4")] {
        let choices = [
            ("retrieval", retrieval),
            ("compression", compression),
            ("merge_unit", "block"),
            ("merge", "always"),
        ];
        let (device, db, t) = evicted(&choices, 60);
        let partition_of = |id: i64| scope(&t, id);
        let ids: Vec<i64> = (0..60)
            .filter(|id| partition_of(*id) == partition_of(0))
            .collect();
        assert!(get(&db, &t, 0).expect("reads").is_some());
        let counts = counts_of(&db);
        assert_eq!(
            counts.merged + counts.came_along,
            ids.len() as u64,
            "{retrieval}"
        );
        assert_eq!(counts.restarts, u64::from(retrieval == "restart"));
        // Nothing lives in the block, and what came from it has no copy: to leave again is a write.
        let blocks = || db.table_reports()[0].blocks;
        let before = blocks();
        Steps::new(&db).compact().expect("compacts");
        assert_eq!(blocks(), before - 1, "{retrieval}");
        block_on(db.checkpoint()).expect("a checkpoint");
        drop(db);
        device.crash(3);
        let db = open_small(&device);
        assert_eq!(all_of(&db).len(), 60, "{retrieval}");
    }
}

/// 004 §5.1: only of a block with many holes, whatever the policy says of its rows; compaction by itself
/// leaves such a table alone.
#[test]
fn a_block_with_holes_is_emptied_when_one_of_its_tuples_is_asked_for() {
    for retrieval in ["restart", "sync"] {
        let choices = [
            ("retrieval", retrieval),
            ("merge", "update_only"),
            ("compaction", "lazy"),
            ("fill_factor", "0.5"),
        ];
        let (_, db, t) = evicted(&choices, 60);
        let together = (0..60).filter(|id| scope(&t, *id) == scope(&t, 0));
        let ids: Vec<i64> = together.collect();
        let blocks = || db.table_reports()[0].blocks;
        let before = blocks();
        // Half of them live: the block is no reason to bring any of them back.
        let (gone, rest) = ids.split_at(ids.len() / 2);
        for id in gone {
            assert!(delete(&db, &t, *id).expect("deletes"));
        }
        assert!(get(&db, &t, rest[0]).expect("reads").is_some());
        assert_eq!(hot(&db, &t), 0, "{retrieval}");
        // One more is gone. What is asked for then takes the others with it.
        assert!(delete(&db, &t, rest[0]).expect("deletes"));
        let steps = Steps::new(&db);
        steps.compact().expect("compacts");
        assert_eq!(blocks(), before, "{retrieval}: it is left alone");
        assert!(get(&db, &t, rest[1]).expect("reads").is_some());
        assert_eq!(hot(&db, &t), rest.len() as u64 - 1, "{retrieval}");
        steps.compact().expect("compacts");
        assert_eq!(blocks(), before - 1, "{retrieval}: nothing lives in it");
    }
}

#[test]
fn rows_of_a_table_whose_timing_is_manual_leave_when_it_is_said() {
    let device = SimulatedDevice::new();
    let db = open_small(&device);
    let t = make_table(&db, "t", IndexKind::BTree);
    for id in 0..100 {
        insert(&db, &t, id, &"x".repeat(1000)).expect("inserts");
    }
    say(&db, &[("timing", "manual")]);
    let steps = Steps::new(&db);
    steps.leave_memory(0);
    for _ in 0..20 {
        steps.evict().expect("looks");
    }
    let t = table(&db, "t");
    assert_eq!(hot(&db, &t), 100);
    let (rows, bytes) = block_on(db.evict(&RunOptions::new(), &t, 10_000)).expect("evicts");
    assert!(
        (10..60).contains(&rows) && bytes >= 10_000,
        "{rows} {bytes}"
    );
    assert_eq!(hot(&db, &t), 100 - rows);
    say(&db, &[("identification", "off")]);
    let t = table(&db, "t");
    let refused = block_on(db.evict(&RunOptions::new(), &t, 1)).expect_err("none may leave");
    assert_eq!(refused.sqlstate(), "55000");
}

/// 000 §3.1: what a log of uses calls cold leaves first, though it came last.
#[test]
fn rows_that_a_log_of_uses_has_often_stay() {
    let device = SimulatedDevice::new();
    let db = open_small(&device);
    make_table(&db, "t", IndexKind::Hash);
    say(
        &db,
        &[("identification", "offline"), ("offline_sample", "1")],
    );
    let t = table(&db, "t");
    for id in 0..400 {
        insert(&db, &t, id, &"x".repeat(1000)).expect("inserts");
    }
    for _ in 0..5 {
        for id in 0..100 {
            assert!(get(&db, &t, id).expect("reads").is_some());
        }
    }
    let (left, _) = block_on(db.evict(&RunOptions::new(), &t, 250_000)).expect("evicts");
    assert!((250..=300).contains(&left), "{left}");
    for id in 0..100 {
        assert!(get(&db, &t, id).expect("reads").is_some());
    }
    assert_eq!(counts_of(&db).fetched, 0);
    let (left, _) = block_on(db.evict(&RunOptions::new(), &t, u64::MAX)).expect("evicts");
    assert_eq!(
        (left > 100, hot(&db, &t)),
        (true, 0),
        "in the end all leave"
    );
}

/// What a table does not say is the server's, and comes back when it is no longer said; what
/// was counted stays.
#[test]
fn a_policy_is_changed_and_taken_back_without_losing_counts() {
    let (_, db, _) = evicted(&[("identification", "lru"), ("block_size", "4kB")], 50);
    let before = counts_of(&db);
    assert_eq!((before.evicted, before.identified), (50, 50));
    // Four rows of a kilobyte do not fit with what a block has beside them.
    assert!(db.table_reports()[0].blocks >= 50 / 3);
    say(&db, &[]);
    let report = &db.policy_reports()[0];
    assert_eq!(report.policy, db.policy());
    assert_eq!(report.counts, before);
    for id in 0..50 {
        assert!(get(&db, &table(&db, "t"), id).expect("reads").is_some());
    }
    say(&db, &[("identification", "lru")]);
    let t = table(&db, "t");
    let hot_before = hot(&db, &t);
    assert!(hot_before > 0);
    let (left, _) = block_on(db.evict(&RunOptions::new(), &t, u64::MAX)).expect("evicts");
    assert_eq!(
        (left, hot(&db, &t)),
        (hot_before, 0),
        "a new chain knows all that is hot"
    );
    assert_eq!(counts_of(&db).evicted_clean, hot_before);
}

/// Upkeep as the threads would do it.
fn keep(db: &Arc<Database>, steps: &Steps, chance: &mut Chance) {
    steps.leave_memory((chance.below(4) as u64) << 16);
    for _ in 0..4 {
        steps.evict().expect("evicts");
    }
    let t = table(db, "t");
    if chance.below(4) == 0 && db.policy_of(&t).identification.to_string() != "off" {
        let evicted = block_on(db.evict(&RunOptions::new(), &t, 50_000));
        evicted.expect("evicts");
    }
    if chance.below(6) == 0 {
        block_on(db.checkpoint()).expect("a checkpoint");
    }
    steps.compact().expect("compacts");
    steps.leave_memory(64 << 30);
}

/// The operations, with the policies before and after; the results of all, and the rows that
/// there are in the end.
fn run(
    before: &Combination,
    after: &Combination,
    counts: &mut PolicyCounts,
) -> (Vec<String>, BTreeMap<i64, String>) {
    const ROWS: usize = 400;
    let device = SimulatedDevice::new();
    let mut db = open_small(&device);
    let mut steps = Steps::new(&db);
    make_table(&db, "t", IndexKind::Hash);
    for name in ["one", "two"] {
        let space = TablespaceDef {
            oid: db.allocate_oid(),
            number: 0,
            name: name.into(),
            location: String::new(),
            options: [("device".to_owned(), "nvram".to_owned())].into(),
        };
        let space = db.make_tablespace(space).expect("makes a tablespace");
        ddl(&db, Change::CreateTablespace(space)).expect("makes a tablespace");
    }
    set_policy(&db, before);
    // What is drawn for rows and for upkeep is the same for all.
    let (mut chance, mut upkeep) = (Chance(7), Chance(9));
    let mut results = Vec::new();
    let text = |id: i64, at: usize| format!("{id}:{at}:{}", "z".repeat(20 + (at * 37) % 3000));
    for id in 0..ROWS as i64 {
        insert(&db, &table(&db, "t"), id, &text(id, 0)).expect("inserts");
    }
    for at in 1..900 {
        if at == 450 {
            set_policy(&db, after);
        }
        if at == 600 {
            // What a table says of its policy is there after a crash.
            counts.add(&counts_of(&db));
            drop((steps, db));
            device.crash(1);
            db = open_small(&device);
            steps = Steps::new(&db);
            let says = table(&db, "t").policy.said().count();
            assert_eq!(says, CHOICES.len() - 1);
        }
        if at % 5 == 0 {
            keep(&db, &steps, &mut upkeep);
        }
        let t = table(&db, "t");
        let id = (chance.below(ROWS) * chance.below(ROWS) / ROWS) as i64;
        let result = match chance.below(8) {
            0 => format!(
                "{:?}",
                set(&db, &t, id, &text(id, at)).map_err(|e| e.to_string())
            ),
            1 => format!("{:?}", delete(&db, &t, id).map_err(|e| e.to_string())),
            2 => format!(
                "{:?}",
                insert(&db, &t, id, &text(id, at)).map_err(|e| e.to_string())
            ),
            3 => several(&db, &t, id),
            4 => in_a_transaction(&db, &t, id, &text(id, at)),
            5 if at % 10 == 0 => format!("{}", all_of(&db).len()),
            _ => format!("{:?}", get(&db, &t, id).map_err(|e| e.to_string())),
        };
        results.push(result);
    }
    let rows = all_of(&db);
    counts.add(&counts_of(&db));
    let verified = db.verify().expect("all can be read");
    assert!(verified.problems.is_empty(), "{:?}", verified.problems);
    (results, rows)
}

/// Many rows in one statement.
fn several(db: &Arc<Database>, t: &Table, id: i64) -> String {
    let found = block_on(db.one_shot(&RunOptions::new(), Scope::All, |access| {
        let mut bytes = 0;
        for id in id..id + 30 {
            bytes += get_in(access, t, id)?.map_or(0, |text| text.len());
        }
        Ok(bytes)
    }));
    format!("{:?}", found.map_err(|error| error.to_string()))
}

/// A transaction that reads some rows and changes one, or is taken back.
fn in_a_transaction(db: &Arc<Database>, t: &Table, id: i64, text: &str) -> String {
    let mut txn = db.begin(Isolation::Serializable, false);
    let done = in_txn(&mut txn, db, |access| {
        let read = get_in(access, t, id + 1)?.map(|text| text.len());
        Ok((read, set_in(access, t, id, text)?))
    });
    let told = format!("{:?}", done.map_err(|error| error.to_string()));
    match id % 3 {
        0 => block_on(db.rollback(txn)),
        _ => block_on(db.commit(txn, &RunOptions::new())).expect("commits"),
    }
    told
}

#[test]
fn the_same_operations_have_the_same_results_under_all_policies() {
    let names = CHOICES.iter().map(|(name, _)| *name);
    let names: Vec<&str> = names.filter(|name| *name != TABLESPACE).collect();
    let all = OPTIONS.iter().map(|(name, _)| *name);
    assert!(
        all.filter(|name| *name != "policy")
            .all(|name| names.contains(&name))
    );
    let combinations = pairwise();
    let mut counts = PolicyCounts::default();
    let mut first: Option<(Vec<String>, BTreeMap<i64, String>)> = None;
    for (at, before) in combinations.iter().enumerate() {
        let after = &combinations[(at + 1) % combinations.len()];
        let (results, rows) = run(before, after, &mut counts);
        let (expected, expected_rows) =
            first.get_or_insert_with(|| (results.clone(), rows.clone()));
        for (number, (result, expected)) in results.iter().zip(&*expected).enumerate() {
            assert_eq!(
                result, expected,
                "operation {number} of {before:?}, then {after:?}"
            );
        }
        assert!(
            rows == *expected_rows,
            "other rows after {before:?}, then {after:?}"
        );
    }
    // All of it was done.
    for (name, count) in counts.each() {
        assert!(count > 0, "{name}");
    }
    assert!(combinations.len() >= 35);
}
