//! Numbers of a sequence, of which none is told twice.

use std::rc::Rc;
use std::sync::Arc;

use thermocline_engine::{Change, Database, Isolation, RunOptions, SequenceDef};
use thermocline_storage::types::DataType;

use crate::session::{Pending, acknowledge, options};
use crate::statement::Done;
use crate::world::World;

/// The sequence.
pub const SEQUENCE: &str = "numbers";

/// Asks for numbers, which are told if the log is durable that keeps them from coming again.
pub async fn count(world: &Rc<World>, db: &Arc<Database>, pending: &Pending) {
    let options = options(world, pending);
    let catalog = db.catalog();
    let Some(def) = catalog.sequence_by_name("public", SEQUENCE).cloned() else {
        return make_sequence(world, db, pending, &options).await;
    };
    pending.doing.set("numbers");
    for _ in 0..1 + world.below(40) {
        let told = match db.next_value(&def) {
            Ok(given) => db
                .wait_for_log(&options, given.logged_to)
                .await
                .map(|()| given),
            Err(error) => Err(error),
        };
        match told {
            // Of several sessions the later number may be told first.
            Ok(given) => world.told.set(world.told.get().max(given.value)),
            Err(error) => return world.check_error("a number", &error, false),
        }
    }
}

async fn make_sequence(
    world: &Rc<World>,
    db: &Arc<Database>,
    pending: &Pending,
    options: &RunOptions,
) {
    let def = SequenceDef {
        oid: db.allocate_oid(),
        schema: "public".into(),
        name: SEQUENCE.into(),
        data_type: DataType::BigInt,
        start: 1,
        increment: 1,
        min: 1,
        max: i64::MAX,
        cache: 1,
        cycle: false,
        owned_by: None,
    };
    world.model.borrow_mut().begin_transaction();
    let mut txn = db.begin(Isolation::Serializable, false);
    pending.doing.set("a sequence is made");
    match db.ddl(&mut txn, options, Change::CreateSequence(def)).await {
        Ok(()) => {
            pending.effects.take();
            let result = db.commit(txn, options).await;
            world.note_commit(pending);
            match result {
                Ok(()) => acknowledge(world, pending, options, &Done::default()),
                Err(error) => world.check_error("a definition's commit", &error, true),
            }
        }
        Err(error) => {
            world.check_error("a definition", &error, true);
            db.rollback(txn).await;
        }
    }
    world.model.borrow_mut().end_transaction();
}
