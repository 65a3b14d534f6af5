//! Procedures: a transaction in Rust, called by name. On one partition the log has it as a
//! command, and a restart runs it again: what it does follows from its arguments, its time
//! and the rows it finds, and the rows are compared as after any other transaction.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use thermocline_engine::{Call, Database, Error, Procedure, Procedures, Reach, Result, Table};
use thermocline_values::types::DataType;
use thermocline_values::value::{Value, ValueRef};

use crate::chance::Chance;
use crate::model::Effect;
use crate::schema::{Row, name, row_of_values, values_of_row};
use crate::session::{Pending, acknowledge, failed, options, table};
use crate::statement::Done;
use crate::world::{World, current};

/// The rows that a call names may lie in several partitions, but no others are looked at.
const BY_ROWS: &str = "work";
/// Holds all partitions, for tables whose writes need them.
const ANYWHERE: &str = "work_anywhere";
/// `id`s a call is given.
const IDS: usize = 3;
/// A call with a seed that ends in this changes its rows and then fails.
const REFUSED: u64 = 7;

/// What a call did to a row.
pub struct Did {
    pub id: i64,
    pub found: Option<Row>,
    pub left: Option<Row>,
}

/// The procedures of every database.
pub fn procedures() -> Procedures {
    let all = Procedures::new();
    let named = |name: &str| {
        let begin = Procedure::new(name, work).deterministic();
        ["slot", "seed", "bytes", "one", "two", "three"]
            .into_iter()
            .fold(begin, |p, parameter| {
                p.parameter(parameter, DataType::BigInt)
            })
    };
    let by_rows = named(BY_ROWS).reach(|arguments| {
        let table = name(number(&arguments[0]) as usize);
        let row = |id: &Value| (table.clone(), vec![id.clone()]);
        Ok(Reach::Rows(arguments[3..].iter().map(row).collect()))
    });
    for procedure in [by_rows, named(ANYWHERE)] {
        if let Err(error) = all.register(procedure) {
            panic!("{error}");
        }
    }
    all
}

fn number(value: &Value) -> i64 {
    match value {
        Value::BigInt(number) => *number,
        other => panic!("{other:?} is no bigint"),
    }
}

/// The life in which a client calls. A call that is run again from the log, while a partition
/// comes, is nobody's.
fn calling() -> Option<Rc<World>> {
    current().filter(|world| world.polled.borrow().is_some())
}

/// What becomes of a row; the same whenever it is asked the same.
fn becomes(found: Option<&Row>, chance: &mut Chance, bytes: usize, now: i64) -> Option<Row> {
    if chance.percent(25) {
        return None;
    }
    let before = found.map_or(0, |row| row.v.len() as u64 + row.a.unwrap_or(0) as u64);
    let stamp = format!("{:016x}.", chance.next() ^ now as u64 ^ before << 32);
    let length = bytes / 2 + chance.below(bytes);
    let mut v = stamp.repeat(length / stamp.len() + 1);
    v.truncate(length);
    Some(Row {
        a: found
            .and_then(|row| row.a)
            .map(|a| (a + 1) % 20)
            .or(Some(3)),
        u: chance.percent(60).then(|| chance.below(400) as i64),
        v,
        added: found.map_or(Vec::new(), |row| row.added.clone()),
    })
}

/// The body of both.
fn work(call: &mut Call<'_, '_>, arguments: &[Value]) -> Result<Vec<Value>> {
    let (slot, seed) = (number(&arguments[0]) as usize, number(&arguments[1]) as u64);
    let bytes = number(&arguments[2]) as usize;
    let table = call.table(&name(slot))?;
    let mut chance = Chance::new(seed);
    let mut did = Vec::with_capacity(IDS);
    let mut ids: Vec<i64> = arguments[3..].iter().map(number).collect();
    ids.sort_unstable();
    ids.dedup();
    for id in ids {
        let found = call.get(&table, &[Value::BigInt(id)])?;
        let was = found.as_ref().and_then(|row| row_of_values(&row.values));
        let left = becomes(was.as_ref(), &mut chance, bytes, call.now());
        let anew = chance.percent(20);
        let changed = match (found, &left) {
            (None, None) => Ok(()),
            (Some(row), None) => call.delete(&table, &row),
            (None, Some(left)) => call.insert(&table, &values_of_row(&table, id, left)),
            // Another row number, for the same key.
            (Some(row), Some(left)) if anew => call
                .delete(&table, &row)
                .and_then(|()| call.insert(&table, &values_of_row(&table, id, left))),
            (Some(mut row), Some(left)) => {
                row.values = values_of_row(&table, id, left);
                call.update(&table, &row)
            }
        };
        let one = Did {
            id,
            found: was,
            left,
        };
        if let Err(error) = changed {
            if !call.evicted()
                && let Some(world) = calling()
            {
                world.check_procedure_violation(slot, &did, &one, &error);
            }
            return Err(error);
        }
        did.push(one);
    }
    if seed % 10 == REFUSED {
        return Err(Error::raised("P0001", "this seed is refused"));
    }
    if !call.evicted()
        && let Some(world) = calling()
    {
        world.procedure_did(slot, did);
    }
    Ok(Vec::new())
}

/// A session calls one.
pub async fn call(world: &Rc<World>, db: &Arc<Database>, pending: &Pending) {
    let Some((slot, table)) = table(world, &db.catalog()) else {
        return;
    };
    let shape = world.shape(slot, &BTreeMap::new());
    let needs_all = |t: &Table| t.def.partition_key.is_empty() || t.insert_needs_all_partitions();
    let first = world.below(world.ids()) as i64;
    let home = |id: i64| table.partition_of_values(&[ValueRef::BigInt(id)]);
    let near = world.percent(70);
    let mut ids = vec![first];
    while ids.len() < IDS {
        let candidates = (0..8).map(|_| world.below(world.ids()) as i64);
        let candidates: Vec<i64> = candidates.collect();
        let beside = candidates.iter().find(|id| home(**id) == home(first));
        ids.push(match near {
            true => beside.copied().unwrap_or(first),
            false => candidates[0],
        });
    }
    let named = match needs_all(&table) || world.percent(15) {
        true => ANYWHERE,
        false => BY_ROWS,
    };
    let seed = world.with_chance(Chance::next) >> 1;
    let mut arguments = vec![slot as i64, seed as i64, shape.value_bytes as i64];
    arguments.extend(ids);
    let arguments: Vec<Value> = arguments.into_iter().map(Value::BigInt).collect();
    let options = options(world, pending);
    pending.doing.set("a procedure");
    let result = db.call(&options, named, &arguments).await;
    world.note_commit(pending);
    world.say(|| {
        let told = result.as_ref().map(|_| ());
        format!(
            "session {} calls {named} {arguments:?}: {told:?}",
            pending.session
        )
    });
    match result {
        Ok(_) => {
            world.calls.set(world.calls.get() + 1);
            if !pending.effects.borrow().is_empty() && pending.committed.get().is_none() {
                world.fail("a procedure was acknowledged and never committed".into());
            }
            let done = Done {
                saw: pending.saw.take(),
                ..Done::default()
            };
            acknowledge(world, pending, &options, &done);
        }
        Err(error) => {
            let now = db.catalog().table_by_name("public", &name(slot)).cloned();
            let in_order = match error.sqlstate() {
                "P0001" => seed % 10 == REFUSED,
                "42P01" => now.is_none(),
                // A unique index was made meanwhile.
                "38000" => now.is_some_and(|now| needs_all(&now)),
                _ => false,
            };
            if !in_order {
                failed(world, pending, "a procedure", &error);
            }
        }
    }
}

impl World {
    /// A run of a procedure comes to its end, and what it found must be so.
    fn procedure_did(&self, slot: usize, did: Vec<Did>) {
        let model = self.model.borrow();
        let (mut effects, mut saw) = (Vec::new(), Vec::new());
        for Did { id, found, left } in did {
            let stored = model.now.row(slot, id);
            let missing = model.now.missing(slot);
            let same = match (stored, &found) {
                (Some(stored), Some(found)) => stored.row.reads_as(found, missing),
                (stored, found) => stored.is_none() && found.is_none(),
            };
            if !same {
                let is = stored.map(|stored| &stored.row);
                self.fail(format!(
                    "t{slot}: a procedure found {found:?} at {id}, and it is {is:?}"
                ));
            }
            saw.extend(stored.and_then(|stored| stored.commit));
            match left {
                Some(row) => effects.push(Effect::Put(slot, id, Rc::new(row))),
                None if stored.is_some() => effects.push(Effect::Delete(slot, id)),
                None => {}
            }
        }
        if let Some(pending) = &*self.polled.borrow() {
            pending.effects.replace(effects);
            pending.saw.replace(saw);
        }
    }

    /// A unique violation must have a reason: another row has the key.
    fn check_procedure_violation(&self, slot: usize, did: &[Did], one: &Did, error: &Error) {
        let (Error::UniqueViolation { .. }, Some(row)) = (error, &one.left) else {
            return;
        };
        let model = self.model.borrow();
        let Some(table) = &model.now.tables[slot] else {
            return;
        };
        let of_others = table
            .rows
            .iter()
            .filter(|(id, _)| **id != one.id && !did.iter().any(|done| done.id == **id));
        let taken = of_others
            .map(|(_, stored)| stored.row.u)
            .chain(did.iter().filter_map(|done| Some(done.left.as_ref()?.u)))
            .any(|u| u.is_some() && u == row.u);
        if !(taken && table.shape.unique_u()) {
            self.fail(format!(
                "t{slot}: a procedure that writes row {} violates a unique index for no reason: \
                 {error}",
                one.id
            ));
        }
    }
}
