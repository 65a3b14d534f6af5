//! Tablespaces come and go while rows are in them: made, given to tables, left and dropped, in the
//! data directory. Wherever rows lie they are the same: the model knows nothing of it.

use std::rc::Rc;
use std::sync::Arc;

use thermocline_engine::tablespace::TablespaceDef;
use thermocline_engine::{Catalog, Change, Database, Error, Isolation, RunOptions};

use crate::session::{self, Pending, acknowledge};
use crate::statement::Done;
use crate::world::World;

/// More than these are not made.
const TABLESPACES_MAX: usize = 3;

/// Where a table's rows may go.
pub fn any(world: &World, catalog: &Catalog) -> u32 {
    let all: Vec<u32> = catalog.tablespaces.keys().copied().collect();
    match all.is_empty() || world.percent(40) {
        true => 0,
        false => all[world.below(all.len())],
    }
}

/// A transaction that makes a tablespace, or drops one.
pub async fn define(world: &Rc<World>, db: &Arc<Database>, pending: &Pending) {
    let options = session::options(world, pending);
    let catalog = db.catalog();
    let all: Vec<Arc<TablespaceDef>> = catalog.tablespaces.values().cloned().collect();
    world.model.borrow_mut().begin_transaction();
    pending.doing.set("a tablespace");
    let makes = all.is_empty() || (all.len() < TABLESPACES_MAX && world.percent(50));
    let outcome = match makes {
        true => make(world, db, pending, &options).await,
        false => {
            let def = &all[world.below(all.len())];
            drop_one(world, db, pending, &options, def).await
        }
    };
    world.say(|| format!("session {}: a tablespace: {outcome:?}", pending.session));
    match outcome {
        Ok(()) => {
            if pending.committed.get().is_none() {
                world.fail("a tablespace was acknowledged and never committed".into());
            }
            acknowledge(world, pending, &options, &Done::default());
        }
        // A table has it, or its blocks are still being moved.
        Err(error) if error.sqlstate() == "55000" => {}
        Err(error) => world.check_error("a tablespace", &error, true),
    }
    world.model.borrow_mut().end_transaction();
}

async fn make(
    world: &Rc<World>,
    db: &Arc<Database>,
    pending: &Pending,
    options: &RunOptions,
) -> Result<(), Error> {
    let oid = db.allocate_oid();
    let mut def = TablespaceDef {
        oid,
        number: 0,
        name: format!("space{oid}"),
        location: String::new(),
        options: Default::default(),
    };
    if world.percent(30) {
        def.options.insert("capacity".into(), "16MB".into());
    }
    let def = db.make_tablespace(def)?;
    let made = commit(
        world,
        db,
        pending,
        options,
        Change::CreateTablespace(def.clone()),
    )
    .await;
    db.settle_tablespace(def.oid);
    made
}

async fn commit(
    world: &Rc<World>,
    db: &Arc<Database>,
    pending: &Pending,
    options: &RunOptions,
    change: Change,
) -> Result<(), Error> {
    let mut txn = db.begin(Isolation::Serializable, false);
    let drops = match &change {
        Change::DropTablespace(oid) => db.catalog().tablespaces.get(oid).cloned(),
        _ => None,
    };
    let mut changed = match db.begin_ddl(&mut txn) {
        Ok(()) => db.ddl(&mut txn, options, change).await,
        Err(error) => Err(error),
    };
    if let (Ok(()), Some(def)) = (&changed, drops) {
        changed = vacate(world, db, &def).await;
    }
    if let Err(error) = changed {
        db.rollback(txn).await;
        return Err(error);
    }
    world.yield_now().await;
    pending.effects.replace(Vec::new());
    let committed = db.commit(txn, options).await;
    world.note_commit(pending);
    committed
}

/// It makes checkpoints, and there is one at a time.
async fn vacate(world: &Rc<World>, db: &Arc<Database>, def: &TablespaceDef) -> Result<(), Error> {
    if world.in_checkpoint.replace(true) {
        return Err(Error::catalog("55000", "a checkpoint is under way"));
    }
    let before = db.checkpoint_report().number;
    let vacated = db.vacate_tablespace(def).await;
    if db.checkpoint_report().number > before {
        world.model.borrow_mut().checkpointed = world.durable_commits();
    }
    world.in_checkpoint.set(false);
    vacated
}

async fn drop_one(
    world: &Rc<World>,
    db: &Arc<Database>,
    pending: &Pending,
    options: &RunOptions,
    def: &TablespaceDef,
) -> Result<(), Error> {
    let dropped = commit(world, db, pending, options, Change::DropTablespace(def.oid)).await;
    db.settle_tablespace(def.oid);
    dropped
}
