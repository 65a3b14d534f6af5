//! Kinds of tables whose part of a commit the log only names. Each commits together with rows in
//! place, and after a halt at any device operation both are there, or neither.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use thermocline_device::{Device, SimulatedClock, SimulatedDevice};
use thermocline_values::types::DataType;
use thermocline_values::value::ValueRef;

use super::Kind;
use crate::access::Access;
use crate::catalog::ddl::Change;
use crate::catalog::{ColumnDef, IndexDef, IndexKind, Table, TableDef};
use crate::database::Database;
use crate::database::config::Config;
use crate::database::steps::{Simulator, Steps};
use crate::ground::error::{Error, Result};
use crate::ground::moment::Moment;
use crate::ground::row_id::RowId;
use crate::ground::scope::Scope;
use crate::transaction::{Isolation, RunOptions};

/// Pairs of integers with their checksum.
pub(super) fn encode(pairs: &[(i64, i64)]) -> Vec<u8> {
    let values = pairs.iter().flat_map(|(one, other)| [*one, *other]);
    let mut bytes: Vec<u8> = values.flat_map(i64::to_le_bytes).collect();
    bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
    bytes
}

pub(super) fn decode(bytes: &[u8], name: &str) -> Result<Vec<(i64, i64)>> {
    let damaged = || Error::Corrupt(format!("{name} is damaged"));
    let (pairs, crc) = bytes.split_last_chunk::<4>().ok_or_else(damaged)?;
    if crc32c::crc32c(pairs).to_le_bytes() != *crc {
        return Err(damaged());
    }
    let value = |bytes: &[u8]| i64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let pairs = pairs.chunks_exact(16);
    Ok(pairs
        .map(|pair| (value(&pair[..8]), value(&pair[8..])))
        .collect())
}

pub(super) fn exists(device: &dyn Device, name: &str) -> Result<bool> {
    let files = device.list().map_err(|e| Error::io(e, "listing files"))?;
    Ok(files.iter().any(|file| file == name))
}

type Entries = BTreeMap<i64, i64>;

/// What the two tables hold: it must be the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Both {
    rows: Entries,
    map: Entries,
}

struct Alone;

impl Simulator for Alone {
    fn pause(&self, _: Moment) {}
}

/// A database in one thread, with a table of rows in place and one of another kind.
struct Script {
    db: Arc<Database>,
    steps: Steps,
}

const STEPS: i64 = 24;
/// The map's partition: another than that of most rows.
const HOME: u16 = 1;

impl Script {
    fn open(device: &SimulatedDevice) -> Result<Script> {
        let device: Arc<dyn Device> = Arc::new(device.clone());
        let mut config = Config::new(device).partitions(2);
        config.background = false;
        config.clock = Arc::new(SimulatedClock::new());
        config.simulator = Some(Arc::new(Alone));
        let db = Database::open(config)?;
        let steps = Steps::new(&db);
        Ok(Script { db, steps })
    }

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

    fn make_tables(&self, kind: &str) -> Result<()> {
        let mut txn = self.db.begin(Isolation::Serializable, false);
        for (name, option) in [("rows", None), ("map", Some(kind))] {
            let mut def = definition(&self.db, name);
            let options = option.map(|kind| ("kind".to_owned(), kind.to_owned()));
            def.options.extend(options);
            let change = Change::CreateTable(def);
            self.drive(self.db.ddl(&mut txn, &RunOptions::new(), change))?;
        }
        self.drive(self.db.commit(txn, &RunOptions::new()))
    }

    fn table(&self, name: &str) -> Option<Arc<Table>> {
        self.db.catalog().table_by_name("public", name).cloned()
    }

    fn one_shot<R>(&self, body: impl FnMut(&mut Access<'_>) -> Result<R>) -> Result<R> {
        let options = RunOptions::new();
        self.drive(self.db.one_shot(&options, Scope::All, body))
    }

    /// Puts a pair into both tables; in another order each other time.
    fn put(&self, pairs: &[(i64, i64)], fails: bool) -> Result<()> {
        let (rows, map) = (self.table("rows"), self.table("map"));
        let (rows, map) = (rows.expect("is there"), map.expect("is there"));
        self.one_shot(|access| {
            for (key, value) in pairs {
                if key % 2 == 0 {
                    put_row(access, &rows, *key, *value)?;
                }
                match access.kind_to_change(&map, HOME)? {
                    Kind::Rooted(map) => map.put(*key, *value),
                    Kind::Persistent(map) => map.put(*key, *value),
                    Kind::InPlace(_) => panic!("it is of a kind of tests"),
                }
                if key % 2 != 0 {
                    put_row(access, &rows, *key, *value)?;
                }
            }
            match fails {
                true => Err(Error::Serialization("the statement fails")),
                false => Ok(()),
            }
        })
    }

    fn step(&self, number: i64, both: &mut Entries) -> Result<()> {
        let pairs = [(number % 7, 1000 + number), (20 + number % 11, number + 1)];
        match number % 6 {
            3 => self.drive(self.db.checkpoint()),
            5 => {
                // What a statement changed before it failed is gone in both.
                let failed = self.put(&pairs, true);
                match failed {
                    Err(Error::Serialization(_)) => Ok(()),
                    other => other,
                }
            }
            _ => {
                self.put(&pairs, false)?;
                both.extend(pairs);
                Ok(())
            }
        }
    }

    fn both(&self) -> Both {
        let (rows, map) = (self.table("rows"), self.table("map"));
        let (rows, map) = (rows.expect("is there"), map.expect("is there"));
        let both = self.one_shot(|access| {
            let mut both = Both::default();
            for key in 0..40 {
                if let Some((_, value)) = row(access, &rows, key)? {
                    both.rows.insert(key, value);
                }
            }
            let state = access.guards.at_mut(usize::from(HOME));
            both.map = match state.kind_of(&map, self.db.device())? {
                Kind::Rooted(map) => map.entries().clone(),
                Kind::Persistent(map) => map.entries(),
                Kind::InPlace(_) => panic!("it is of a kind of tests"),
            };
            Ok(both)
        });
        both.expect("reads both")
    }
}

fn definition(db: &Database, name: &str) -> TableDef {
    let column = |name: &str| ColumnDef {
        not_null: true,
        ..ColumnDef::new(name, DataType::BigInt)
    };
    TableDef {
        indexes: vec![IndexDef {
            oid: db.allocate_oid(),
            name: format!("{name}_pkey"),
            columns: vec![0],
            unique: true,
            primary: true,
            constraint: true,
            kind: IndexKind::BTree,
            include: Vec::new(),
            nulls_equal: false,
            order: Vec::new(),
        }],
        partition_key: vec![0],
        ..TableDef::new(
            db.allocate_oid(),
            name,
            vec![column("key"), column("value")],
        )
    }
}

fn row(access: &mut Access<'_>, table: &Table, id: i64) -> Result<Option<(RowId, i64)>> {
    let mut key = Vec::new();
    table.encode_index_key(0, &[ValueRef::BigInt(id)], &mut key);
    let Some((row, tuple)) = access.get(table, 0, &key)? else {
        return Ok(None);
    };
    match table.value(tuple, 1) {
        ValueRef::BigInt(value) => Ok(Some((row, value))),
        _ => panic!("a value is a bigint"),
    }
}

fn put_row(access: &mut Access<'_>, table: &Table, id: i64, value: i64) -> Result<()> {
    let mut tuple = Vec::new();
    table.encode_tuple(&[ValueRef::BigInt(id), ValueRef::BigInt(value)], &mut tuple);
    match row(access, table, id)? {
        Some((row, _)) => access.update(table, row, &tuple).map(|_| ()),
        None => access.insert(table, &tuple).map(|_| ()),
    }
}

/// Runs the script until the device halts. How many steps were acknowledged, if the tables were
/// made.
fn acknowledged(device: &SimulatedDevice, kind: &str) -> Option<usize> {
    let script = Script::open(device).ok()?;
    script.make_tables(kind).ok()?;
    let mut entries = Entries::new();
    for number in 0..STEPS {
        if script.step(number, &mut entries).is_err() {
            return Some(number as usize);
        }
    }
    Some(STEPS as usize)
}

/// What holds after each number of steps, and how many operations of the device the script has.
fn states(kind: &str) -> (Vec<Entries>, u64) {
    let device = SimulatedDevice::new();
    let script = Script::open(&device).expect("opens");
    script.make_tables(kind).expect("makes the tables");
    let mut states = vec![Entries::new()];
    let mut entries = Entries::new();
    for number in 0..STEPS {
        script.step(number, &mut entries).expect("a step");
        let both = script.both();
        assert_eq!(both.rows, entries, "after step {number}");
        assert_eq!(both.map, entries, "after step {number}");
        states.push(entries.clone());
    }
    (states, device.operations())
}

fn is_right_after_each_crash_point(kind: &str) {
    let (states, operations) = states(kind);
    assert!(
        operations > 200,
        "{operations} operations are too few a script"
    );
    for halt in 0..operations {
        let device = SimulatedDevice::new();
        device.halt_after(halt);
        let done = acknowledged(&device, kind);
        device.crash(halt);
        if halt % 3 == 0 {
            // The first recovery does not get far either.
            device.halt_after(halt % 40);
            drop(Script::open(&device));
            device.crash(halt + 1);
        }
        let script = match Script::open(&device) {
            Ok(script) => script,
            Err(error) => panic!("halt {halt}: recovery failed: {error}"),
        };
        if script.table("map").is_none() {
            assert!(done.is_none(), "halt {halt}: the tables are lost");
            continue;
        }
        let both = script.both();
        assert_eq!(
            both.rows, both.map,
            "halt {halt}: one has what the other has not"
        );
        let done = done.unwrap_or(0);
        let further = &states[(done + 1).min(states.len() - 1)];
        assert!(
            both.rows == states[done] || both.rows == *further,
            "halt {halt}, {done} steps acknowledged: found {:?}",
            both.rows
        );
        // It goes on from there.
        let pairs = [(3, 77), (30, 78)];
        script.put(&pairs, false).expect("goes on");
        drop(script);
        let mut expected = both.rows;
        expected.extend(pairs);
        let again = Script::open(&device).expect("opens again").both();
        assert_eq!(
            (&again.rows, &again.map),
            (&expected, &expected),
            "halt {halt}"
        );
    }
    println!("{operations} crash points, one after each device operation");
}

#[test]
fn a_rooted_kind_commits_together_with_rows_at_each_crash_point() {
    is_right_after_each_crash_point("rooted");
}

#[test]
fn a_persistent_kind_commits_together_with_rows_at_each_crash_point() {
    is_right_after_each_crash_point("persistent");
}

/// A root is on the device before its name: one that is not there was lost, and that is told.
#[test]
fn a_root_that_the_log_names_and_the_device_has_not_is_told() {
    let device = SimulatedDevice::new();
    let script = Script::open(&device).expect("opens");
    script.make_tables("rooted").expect("makes the tables");
    script.put(&[(1, 2)], false).expect("puts");
    drop(script);
    let files = device.list().expect("lists");
    let root = files.iter().find(|file| file.contains("-root-"));
    device.remove(root.expect("a root")).expect("removes");
    assert!(Script::open(&device).is_err(), "it opens without the root");
}
