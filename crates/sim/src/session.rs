//! Sessions: what clients do. Each is a future that runs a few transactions, each
//! statement of which may wait for the device, the log, memory or another transaction.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use thermocline_engine::{
    Change, Database, Error, IndexKind, Isolation, RunOptions, Scope, Table, Transaction,
};

use crate::model::{Effect, State};
use crate::numbers;
use crate::procedure;
use crate::schema::{IndexShape, SLOTS, Shape, name, random_row, table_def};
use crate::statement::{Done, Op, View, run};
use crate::world::World;

/// What the world knows of a session's transaction under way.
#[derive(Default)]
pub struct Pending {
    pub session: usize,
    /// What its commit does.
    pub effects: RefCell<Vec<Effect>>,
    pub synchronous: Cell<bool>,
    /// The commit, in this life's order, once it was made.
    pub committed: Cell<Option<usize>>,
    /// For an interactive transaction: what must hold when it commits.
    pub view: RefCell<Option<(Isolation, View)>>,
    /// A key that it commits was another row's, when it was last tried.
    pub in_conflict: Cell<bool>,
    /// Commits of this life whose rows its procedure saw.
    pub saw: RefCell<Vec<usize>>,
    /// What it waits for, if it waits.
    pub doing: Cell<&'static str>,
}

impl Pending {
    /// Looks, after each step of a commit, whether it could fail for a key: once it
    /// has failed others go on while it is rolled back.
    pub fn note_conflict(&self, now: &State) {
        if let Some((_, view)) = &*self.view.borrow() {
            let before = self.in_conflict.get();
            self.in_conflict.set(before || conflict(now, view));
        }
    }
}

/// A client's whole life.
pub async fn client(world: Rc<World>, db: Arc<Database>, pending: Rc<Pending>) {
    let transactions = 1 + world.below(4);
    for _ in 0..transactions {
        if world.is_over() {
            return;
        }
        pending.committed.set(None);
        pending.effects.take();
        pending.view.take();
        pending.in_conflict.set(false);
        match world.below(100) {
            0..5 => define(&world, &db, &pending).await,
            5..7 => numbers::count(&world, &db, &pending).await,
            7..40 => interactive(&world, &db, &pending).await,
            40..52 => procedure::call(&world, &db, &pending).await,
            _ => one_shot(&world, &db, &pending).await,
        }
        world.yield_now().await;
    }
}

pub fn options(world: &World, pending: &Pending) -> RunOptions {
    let synchronous = !world.percent(15);
    pending.synchronous.set(synchronous);
    let mut options = RunOptions {
        synchronous_commit: synchronous,
        ..RunOptions::default()
    };
    if world.percent(5) {
        options.lock_timeout = Some(std::time::Duration::from_millis(20));
    }
    if world.percent(3) {
        options.deadline = Some(world.now() + std::time::Duration::from_millis(30));
    }
    options
}

/// A table to work on, as this transaction may know it.
pub fn table(world: &World, db: &Database) -> Option<(usize, Arc<Table>)> {
    let first = world.below(SLOTS);
    (0..SLOTS).map(|n| (first + n) % SLOTS).find_map(|slot| {
        Some((
            slot,
            db.catalog().table_by_name("public", &name(slot))?.clone(),
        ))
    })
}

fn random_ops(world: &World, slot: usize, table: &Table, count: usize, alone: bool) -> Vec<Op> {
    let shape = world.shape(slot);
    let ids = world.ids();
    (0..count)
        .map(|_| {
            let id = world.below(ids) as i64;
            let row = || Rc::new(world.with_chance(|chance| random_row(chance, &shape, ids)));
            match world.below(100) {
                0..30 => Op::Get(id),
                30..58 => Op::Put(id, row()),
                58..75 => Op::Insert(id, row()),
                75..87 => Op::Delete(id),
                // In an open transaction a key that a row was given is taken for others
                // only when it commits; only there they learn of each other.
                87..90 if alone => Op::Move(id, world.below(ids) as i64),
                87..92 => Op::Scan,
                _ => {
                    let ordered: Vec<usize> = (0..table.def.indexes.len())
                        .filter(|i| table.def.indexes[*i].kind == IndexKind::BTree)
                        .filter(|i| table.def.indexes[*i].columns[0] < 2)
                        .collect();
                    if ordered.is_empty() {
                        return Op::Get(id);
                    }
                    let index = ordered[world.below(ordered.len())];
                    let low = match table.def.indexes[index].columns[0] {
                        0 => id,
                        _ => world.below(20) as i64,
                    };
                    Op::Range(index, low, low + world.below(12) as i64, world.percent(50))
                }
            }
        })
        .collect()
}

/// The partitions that these need.
fn scope(world: &World, table: &Table, ops: &[Op]) -> Scope {
    use thermocline_storage::value::ValueRef;
    let writes = ops.iter().any(Op::writes);
    if table.def.partition_key.is_empty() || (writes && table.insert_needs_all_partitions()) {
        return Scope::All;
    }
    let mut partitions = Vec::new();
    for op in ops {
        let ids = match op {
            Op::Get(id) | Op::Put(id, _) | Op::Insert(id, _) | Op::Delete(id) => vec![*id],
            Op::Move(from, to) => vec![*from, *to],
            Op::Range(..) | Op::Scan => return Scope::All,
        };
        for id in ids {
            partitions.extend(table.partition_of_values(&[ValueRef::BigInt(id)]));
        }
    }
    partitions.sort_unstable();
    partitions.dedup();
    match partitions.len() {
        1 => Scope::One(partitions[0]),
        _ if world.percent(20) => Scope::All,
        _ => Scope::Many(partitions),
    }
}

async fn one_shot(world: &Rc<World>, db: &Arc<Database>, pending: &Pending) {
    let Some((slot, table)) = table(world, db) else {
        return define(world, db, pending).await;
    };
    let count = if world.percent(70) {
        1
    } else {
        1 + world.below(6)
    };
    let ops = random_ops(world, slot, &table, count, true);
    let options = options(world, pending);
    let scope = scope(world, &table, &ops);
    let nothing = View::default();
    pending.doing.set("a one-shot");
    let result = db
        .one_shot(&options, scope, |access| {
            let done = run(access, world, slot, &table, &ops, &nothing)?;
            if !access.evicted() {
                pending.effects.replace(done.effects(world));
            }
            Ok(done)
        })
        .await;
    world.note_commit(pending);
    world.say(|| {
        let told = result.as_ref().map(|_| ());
        format!("session {} t{slot} {ops:?}: {told:?}", pending.session)
    });
    match result {
        Ok(done) => {
            let logs = done.view.own.iter().any(|(_, row)| row.is_some())
                || !pending.effects.borrow().is_empty();
            if logs && pending.committed.get().is_none() {
                world.fail("a one-shot was acknowledged and never committed".into());
            }
            acknowledge(world, pending, &options, &done);
        }
        Err(error) => failed(world, pending, "a one-shot", &error),
    }
}

/// The client was told of an error: then nothing happened, unless it was while waiting for
/// the log.
pub fn failed(world: &World, pending: &Pending, of: &str, error: &Error) {
    let undone = matches!(
        error,
        Error::Io(..) | Error::LogFailed(_) | Error::DiskFull(_)
    );
    if pending.committed.get().is_some() && !undone && !matches!(error, Error::Cancelled) {
        world.fail(format!("{of} failed and was committed: {error}"));
    }
    world.check_error(of, error, false);
}

/// The client was told that all is well: what it made and saw must outlive a crash.
pub fn acknowledge(world: &World, pending: &Pending, options: &RunOptions, done: &Done) {
    if options.synchronous_commit {
        if let Some(commit) = pending.committed.get() {
            world.acknowledge(commit);
        }
        for commit in &done.saw {
            world.acknowledge_seen(*commit);
        }
    }
}

async fn interactive(world: &Rc<World>, db: &Arc<Database>, pending: &Pending) {
    let isolation = world.with_chance(|chance| {
        chance.pick(&[
            Isolation::ReadCommitted,
            Isolation::RepeatableRead,
            Isolation::Serializable,
            Isolation::Serializable,
        ])
    });
    world.model.borrow_mut().begin_transaction();
    world.say(|| format!("session {} begins {isolation:?}", pending.session));
    let mut txn = db.begin(isolation, false);
    world.say(|| format!("session {} is {}", pending.session, txn.number()));
    let outcome = statements(world, db, &mut txn, pending).await;
    match outcome {
        Some(view) if !world.is_over() => {
            let options = options(world, pending);
            pending
                .effects
                .replace(view.effects(&world.model.borrow().now));
            let writes = !pending.effects.borrow().is_empty();
            pending.view.replace(Some((isolation, view)));
            pending.doing.set("a commit");
            let result = db.commit(txn, &options).await;
            world.note_commit(pending);
            world.say(|| format!("session {} commits: {result:?}", pending.session));
            match result {
                Ok(()) => {
                    if pending.committed.get().is_none() && writes {
                        let none = pending.effects.borrow().is_empty();
                        if !none {
                            world.fail("a transaction was acknowledged and never committed".into());
                        }
                    }
                    acknowledge(world, pending, &options, &Done::default());
                }
                Err(error) => {
                    pending.note_conflict(&world.model.borrow().now);
                    pending.view.take();
                    let wrong = pending.in_conflict.get();
                    if matches!(error, Error::UniqueViolation { .. }) && !wrong {
                        world.fail(format!("a commit violates nothing and fails: {error}"));
                    }
                    world.check_error("a commit", &error, true);
                }
            }
        }
        _ => {
            world.say(|| format!("session {} rolls back", pending.session));
            pending.doing.set("a rollback");
            db.rollback(txn).await;
        }
    }
    world.model.borrow_mut().end_transaction();
}

/// Whether a row of a transaction has a key that another's row has by now.
fn conflict(now: &State, view: &View) -> bool {
    view.own.iter().any(|((slot, id), row)| {
        let (Some(row), Some(table)) = (row, &now.tables[*slot]) else {
            return false;
        };
        let made_here = view.bases.get(&(*slot, *id)).is_some_and(Option::is_none);
        (made_here && table.rows.contains_key(id))
            || table.shape.unique_u()
                && row.u.is_some()
                && table.rows.iter().any(|(other, stored)| {
                    other != id && view.own(&(*slot, *other)).is_none() && stored.row.u == row.u
                })
    })
}

/// The statements of an interactive transaction; `None`: to be rolled back.
async fn statements(
    world: &Rc<World>,
    db: &Arc<Database>,
    txn: &mut Transaction,
    pending: &Pending,
) -> Option<View> {
    let mut view = View::default();
    let mut savepoint = None;
    for _ in 0..1 + world.below(5) {
        world.yield_now().await;
        if world.is_over() {
            return None;
        }
        if world.percent(12) {
            let own = (view.own.clone(), view.bases.clone());
            match txn.savepoint(0) {
                Ok(point) => savepoint = Some((point, own)),
                Err(error) => world.check_error("a savepoint", &error, true),
            }
            world.say(|| format!("session {} sets a savepoint", pending.session));
        } else if world.percent(8)
            && let Some((point, (own, bases))) = &savepoint
        {
            pending.doing.set("a rollback to a savepoint");
            if let Err(error) = txn.rollback_to(point).await {
                world.check_error("a rollback to a savepoint", &error, true);
                return None;
            }
            world.say(|| format!("session {} goes back to its savepoint", pending.session));
            view.own = own.clone();
            // Row locks stay, and with them what the rows are.
            view.bases = bases.clone();
            continue;
        }
        let (slot, table) = table(world, db)?;
        let count = 1 + world.below(4);
        let ops = random_ops(world, slot, &table, count, false);
        let options = options(world, pending);
        let scope = scope(world, &table, &ops);
        pending.doing.set("a statement of a transaction");
        let result = db
            .in_transaction(txn, &options, scope, |access| {
                run(access, world, slot, &table, &ops, &view)
            })
            .await;
        world.say(|| {
            let told = result.as_ref().map(|_| ());
            format!(
                "session {} in its transaction t{slot} {ops:?}: {told:?}",
                pending.session
            )
        });
        match result {
            Ok(done) => {
                if options.synchronous_commit {
                    for commit in &done.saw {
                        world.acknowledge_seen(*commit);
                    }
                }
                view.absorb(done.view);
                if view.strange {
                    return None;
                }
            }
            Err(error) => {
                world.check_error("a statement", &error, true);
                let goes_on = matches!(error, Error::UniqueViolation { .. });
                if !goes_on || world.percent(50) {
                    return None;
                }
            }
        }
    }
    (!world.percent(15)).then_some(view)
}

async fn define(world: &Rc<World>, db: &Arc<Database>, pending: &Pending) {
    let slot = world.below(SLOTS);
    let found = db.catalog().table_by_name("public", &name(slot)).cloned();
    let (change, effect) = match found {
        None => {
            let shape = world.with_chance(|chance| Shape::random(chance, slot));
            let change = Change::CreateTable(table_def(db, slot, &shape));
            (change, Effect::Create(slot, shape))
        }
        Some(table) => {
            let oid = table.def.oid;
            let secondary: Vec<_> = table.def.indexes[1..].to_vec();
            match world.below(10) {
                0..1 => (Change::DropTable(oid), Effect::Drop(slot)),
                1..4 => {
                    let change = Change::Truncate {
                        tables: vec![oid],
                        restart_identity: false,
                    };
                    (change, Effect::Truncate(slot))
                }
                4..6 if !secondary.is_empty() => {
                    let index = secondary[world.below(secondary.len())].clone();
                    let change = Change::DropIndex {
                        table: oid,
                        index: index.oid,
                    };
                    (change, Effect::DropIndex(slot, index.name))
                }
                n => {
                    let unique = n == 9;
                    let column = if unique { 2 } else { 1 };
                    let index = world
                        .with_chance(|chance| IndexShape::random(chance, slot, column, unique));
                    let change = Change::CreateIndex {
                        table: oid,
                        index: index.def(db),
                    };
                    (change, Effect::AddIndex(slot, index))
                }
            }
        }
    };
    let options = options(world, pending);
    world.model.borrow_mut().begin_transaction();
    let mut txn = db.begin(Isolation::Serializable, false);
    pending.doing.set("a definition");
    let defined = db.ddl(&mut txn, &options, change).await;
    match defined {
        Ok(()) if !world.percent(15) => {
            world.yield_now().await;
            pending.effects.replace(vec![effect]);
            let result = db.commit(txn, &options).await;
            world.note_commit(pending);
            match result {
                Ok(()) => {
                    if pending.committed.get().is_none() {
                        world.fail("a definition was acknowledged and never committed".into());
                    }
                    acknowledge(world, pending, &options, &Done::default());
                }
                Err(error) => world.check_error("a definition's commit", &error, true),
            }
        }
        Ok(()) => db.rollback(txn).await,
        Err(error) => {
            world.check_error("a definition", &error, true);
            db.rollback(txn).await;
        }
    }
    world.model.borrow_mut().end_transaction();
}
