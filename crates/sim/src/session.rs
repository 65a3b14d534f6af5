//! Sessions: what clients do. Each is a future that runs a few transactions, each
//! statement of which may wait for the device, the log, memory or another transaction.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use thermocline_engine::{
    Catalog, Database, Error, IndexKind, Isolation, RunOptions, Savepoint, Scope, Table,
    Transaction,
};

use crate::definition;
use crate::model::{Effect, State};
use crate::numbers::{self, Owed};
use crate::procedure;
use crate::references;
use crate::schema::{SLOTS, large_row, name, random_row};
use crate::statement::{Done, Mark, Op, View, run};
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
    /// Steps of sequences that its commit tells.
    pub owed: RefCell<Owed>,
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
        pending.owed.take();
        if world.is_growing() {
            one_shot(&world, &db, &pending).await;
            world.yield_now().await;
            continue;
        }
        match world.below(100) {
            0..5 => definition::define(&world, &db, &pending).await,
            5..8 => numbers::count(&world, &db, &pending).await,
            8..40 => interactive(&world, &db, &pending).await,
            40..52 => procedure::call(&world, &db, &pending).await,
            52..80 if world.habits.references => references::change(&world, &db, &pending).await,
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
pub fn table(world: &World, catalog: &Catalog) -> Option<(usize, Arc<Table>)> {
    let first = world.below(SLOTS);
    (0..SLOTS)
        .map(|n| (first + n) % SLOTS)
        .find_map(|slot| Some((slot, catalog.table_by_name("public", &name(slot))?.clone())))
}

/// Random statements. `view`: of the open transaction that runs them; none: a one-shot.
fn random_ops(
    world: &World,
    slot: usize,
    table: &Table,
    count: usize,
    view: Option<&View>,
) -> Vec<Op> {
    let nothing = BTreeMap::new();
    let shape = world.shape(slot, view.map_or(&nothing, |view| &view.drafts));
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
                87..90 if view.is_none() => Op::Move(id, world.below(ids) as i64),
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

/// A statement that changes many rows, which are large: more, perhaps, than it may hold.
fn large_ops(world: &World, slot: usize, table: &Table, view: Option<&View>) -> Vec<Op> {
    let nothing = BTreeMap::new();
    let shape = world.shape(slot, view.map_or(&nothing, |view| &view.drafts));
    let deletes = world.percent(20);
    let mut ids: Vec<i64> = (0..world.ids() as i64).collect();
    ids.retain(|_| world.percent(70));
    let op = |id| {
        let small = random_ops(world, slot, table, 1, view);
        let row = || world.with_chance(|chance| large_row(chance, &shape, world.ids()));
        match world.below(10) {
            0 => small,
            _ if deletes => vec![Op::Delete(id)],
            _ => vec![Op::Put(id, Rc::new(row()))],
        }
    };
    ids.into_iter().flat_map(op).collect()
}

/// The partitions that these need.
fn scope(world: &World, table: &Table, ops: &[Op]) -> Scope {
    use thermocline_values::value::ValueRef;
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
    let Some((slot, table)) = table(world, &db.catalog()) else {
        return definition::define(world, db, pending).await;
    };
    let count = if world.percent(70) {
        1
    } else {
        1 + world.below(6)
    };
    let ops = match world.is_growing() {
        true => world.grow(slot),
        false if world.habits.large && world.percent(12) => large_ops(world, slot, &table, None),
        false => random_ops(world, slot, &table, count, None),
    };
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
            world.tell_owed(pending.owed.take());
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
    world.say(|| format!("session {} is {}", pending.session, txn.id()));
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

/// Goes back to the savepoint, as a client does after an error; `None` if that is not to be.
async fn back_to(
    world: &World,
    txn: &mut Transaction,
    pending: &Pending,
    view: &mut View,
    savepoint: &Option<(Savepoint, Mark)>,
) -> Option<()> {
    let (point, mark) = savepoint.as_ref()?;
    pending.doing.set("a rollback to a savepoint");
    let result = txn.rollback_to(point).await;
    world.say(|| format!("session {} goes back: {result:?}", pending.session));
    if let Err(error) = result {
        world.check_error("a rollback to a savepoint", &error, true);
        return None;
    }
    view.back_to(mark);
    Some(())
}

/// Whether a row of a transaction has a key that another's row has by now.
fn conflict(now: &State, view: &View) -> bool {
    let now = now.drafted(&view.drafts);
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
    let defines = world.percent(world.habits.definitions);
    let steps = 1 + world.below(if defines { 10 } else { 5 });
    for _ in 0..steps {
        world.yield_now().await;
        if world.is_over() {
            return None;
        }
        if world.percent(12) {
            match txn.savepoint(0) {
                Ok(point) => savepoint = Some((point, view.mark())),
                Err(error) => world.check_error("a savepoint", &error, true),
            }
            world.say(|| format!("session {} sets a savepoint", pending.session));
        } else if world.percent(8) && savepoint.is_some() {
            back_to(world, txn, pending, &mut view, &savepoint).await?;
            continue;
        }
        if world.percent(5) {
            numbers::count_in_transaction(world, db, pending);
        }
        if defines && world.percent(40) {
            if !definition::step(world, db, txn, &mut view, pending).await {
                back_to(world, txn, pending, &mut view, &savepoint).await?;
            }
            continue;
        }
        if world.percent(world.habits.locks) {
            if !definition::lock(world, db, txn, pending).await {
                back_to(world, txn, pending, &mut view, &savepoint).await?;
            }
            continue;
        }
        let Some((slot, table)) = table(world, &txn.catalog()) else {
            match defines {
                true => continue,
                false => return None,
            }
        };
        let count = 1 + world.below(4);
        let ops = match world.habits.large && world.percent(12) {
            true => large_ops(world, slot, &table, Some(&view)),
            false => random_ops(world, slot, &table, count, Some(&view)),
        };
        let options = match defines {
            true => definition::options(world, pending),
            false => options(world, pending),
        };
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
                    back_to(world, txn, pending, &mut view, &savepoint).await?;
                }
            }
        }
    }
    (!world.percent(15)).then_some(view)
}
