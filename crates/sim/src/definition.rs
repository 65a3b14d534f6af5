//! Definitions: tables, columns and indexes that come and go, alone or in the midst of a
//! transaction with statements and savepoints, committed, rolled back or cut off.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use thermocline_engine::catalog::Residence;
use thermocline_engine::{
    Catalog, Change, Database, Error, Isolation, LockMode, RunOptions, Table, TableDef, Transaction,
};

use crate::model::{Draft, Effect};
use crate::schema::{ADDED_MAX, IndexShape, SLOTS, added_column, name, table_def};
use crate::session::{self, Pending, acknowledge};
use crate::statement::{Done, View};
use crate::world::World;

/// A transaction that defines may wait for one that waits for it.
const LOCK_TIMEOUT: Duration = Duration::from_millis(20);

/// What a definition does.
#[derive(Debug)]
enum Definition {
    Change(Change),
    /// All rows are written anew, as they are.
    Rewrite(TableDef),
    /// All rows are spread without a key, and then get the only index again that the table has:
    /// its primary key.
    Rekey(TableDef),
}

impl Definition {
    async fn carry_out(
        self,
        db: &Arc<Database>,
        txn: &mut Transaction,
        options: &RunOptions,
    ) -> Result<(), Error> {
        let same = |old: &Table, tuple: &[u8], new: &Table, out: &mut Vec<u8>| {
            let values: Vec<_> = old.layouts.tuple(tuple).values().collect();
            new.encode_tuple(&values, out);
            Ok(())
        };
        match self {
            Definition::Change(change) => db.ddl(txn, options, change).await,
            Definition::Rewrite(def) => db.rewrite_table(txn, options, def, &same).await,
            Definition::Rekey(mut def) => {
                let (table, index) = (def.oid, def.indexes.remove(0));
                def.partition_key.clear();
                db.rewrite_table(txn, options, def, &same).await?;
                db.ddl(txn, options, Change::CreateIndex { table, index })
                    .await
            }
        }
    }
}

/// A random change of a table, what it does, and what it makes of the table; `None` where there
/// is nothing to change.
fn change(
    world: &World,
    db: &Database,
    catalog: &Catalog,
    slot: usize,
    drafts: &BTreeMap<usize, Draft>,
) -> (Definition, Option<Effect>, Draft) {
    let mut shape = world.shape(slot, drafts);
    let emptied = drafts.get(&slot).is_some_and(|draft| draft.emptied);
    let renewed = drafts.get(&slot).and_then(|draft| draft.renewed.clone());
    let Some(table) = catalog.table_by_name("public", &name(slot)) else {
        let draft = Draft {
            shape: Some(shape.clone()),
            emptied: true,
            renewed,
        };
        let change = {
            let options = world.with_chance(crate::policy::of_table);
            let mut def = table_def(db, slot, &shape, options);
            def.tablespace = crate::tablespace::any(world, catalog);
            Definition::Change(Change::CreateTable(def))
        };
        return (change, Some(Effect::Create(slot, shape)), draft);
    };
    let oid = table.def.oid;
    let secondary = &table.def.indexes[1..];
    let (change, effect) = match world.below(16) {
        13 => {
            let draft = Draft {
                shape: Some(shape),
                emptied,
                renewed,
            };
            let def = table.def.clone();
            let has_only_key =
                def.indexes.len() == 1 && def.partition_key == def.indexes[0].columns;
            let definition = match has_only_key && world.below(2) == 0 {
                true => Definition::Rekey(def),
                false => Definition::Rewrite(def),
            };
            return (definition, None, draft);
        }
        0 => {
            let draft = Draft {
                shape: None,
                emptied: true,
                renewed,
            };
            let change = Definition::Change(Change::DropTable(oid));
            return (change, Some(Effect::Drop(slot)), draft);
        }
        1..4 => {
            let change = Change::Truncate {
                tables: vec![oid],
                restart_identity: false,
            };
            let draft = Draft {
                shape: Some(shape),
                emptied: true,
                renewed,
            };
            let change = Definition::Change(change);
            return (change, Some(Effect::Truncate(slot)), draft);
        }
        4..6 if !secondary.is_empty() => {
            let index = &secondary[world.below(secondary.len())];
            shape.indexes.retain(|other| other.name != index.name);
            let change = Change::DropIndex {
                table: oid,
                index: index.oid,
            };
            (change, Some(Effect::DropIndex(slot, index.name.clone())))
        }
        6..9 if shape.added.len() < ADDED_MAX => {
            let missing = (!world.percent(40)).then(|| world.below(1000) as i32);
            let mut def = table.def.clone();
            let column = format!("c{}", def.columns.len());
            def.columns.push(added_column(&column, missing));
            shape.added.push(missing);
            let change = Change::AlterTable(def);
            (change, Some(Effect::AddColumn(slot, missing)))
        }
        14 | 15 => {
            let mut def = table.def.clone();
            def.options = world.with_chance(crate::policy::of_table);
            def.tablespace = crate::tablespace::any(world, catalog);
            if table.is_columns() {
                let priority = world.below(10).to_string();
                def.options.insert("unload_priority".into(), priority);
                for column in &mut def.columns {
                    let all = [Residence::ByUse, Residence::Hot, Residence::Warm];
                    column.residence = all[world.below(all.len())];
                }
            }
            (Change::AlterTable(def), None)
        }
        9 => {
            let mut def = table.def.clone();
            def.columns[1].name = format!("a{}", world.below(5));
            (Change::AlterTable(def), None)
        }
        n => {
            let unique = n == 12;
            let column = if unique { 2 } else { 1 };
            let index =
                world.with_chance(|chance| IndexShape::random(chance, slot, column, unique));
            shape.indexes.push(index.clone());
            let change = Change::CreateIndex {
                table: oid,
                index: index.def(db),
            };
            (change, Some(Effect::AddIndex(slot, index)))
        }
    };
    let draft = Draft {
        shape: Some(shape),
        emptied,
        renewed,
    };
    (Definition::Change(change), effect, draft)
}

/// Settings of the statements of a transaction that defines.
pub fn options(world: &World, pending: &Pending) -> RunOptions {
    RunOptions {
        lock_timeout: Some(LOCK_TIMEOUT),
        ..session::options(world, pending)
    }
}

/// Mostly locks a table before its definition is looked at, as SQL does; otherwise the engine
/// has to see that a change was made out of an old one.
async fn begin(
    world: &World,
    db: &Database,
    txn: &mut Transaction,
    options: &RunOptions,
    slot: usize,
) -> Result<(), Error> {
    let table = txn.catalog().table_by_name("public", &name(slot)).cloned();
    match table {
        Some(table) if !world.percent(25) => {
            let exclusive = LockMode::AccessExclusive;
            db.lock_to_define(txn, options, &table, exclusive).await?;
        }
        _ => {}
    }
    db.begin_ddl(txn)
}

/// LOCK TABLE in the midst of a transaction. Whether it got the lock.
pub async fn lock(
    world: &Rc<World>,
    db: &Arc<Database>,
    txn: &mut Transaction,
    pending: &Pending,
) -> bool {
    let options = options(world, pending);
    let mode = LockMode::ALL[world.below(LockMode::ALL.len())];
    let Some((slot, table)) = session::table(world, &txn.catalog()) else {
        return true;
    };
    pending.doing.set("a table lock");
    let waits = world.percent(70);
    let locked = db.lock_table(txn, &options, &table, mode, waits).await;
    world.say(|| {
        format!(
            "session {} locks t{slot} {mode:?}: {locked:?}",
            pending.session
        )
    });
    match locked {
        Ok(()) => true,
        Err(error) => {
            world.check_error("a table lock", &error, true);
            false
        }
    }
}

/// A definition in the midst of a transaction. Whether it succeeded.
pub async fn step(
    world: &Rc<World>,
    db: &Arc<Database>,
    txn: &mut Transaction,
    view: &mut View,
    pending: &Pending,
) -> bool {
    let slot = world.below(SLOTS);
    let options = options(world, pending);
    pending.doing.set("a definition in a transaction");
    let begun = begin(world, db, txn, &options, slot).await;
    let (change, effect, mut draft) = change(world, db, &txn.catalog(), slot, &view.drafts);
    let told = format!("{change:?}");
    let rewritten = matches!(change, Definition::Rewrite(_) | Definition::Rekey(_));
    let defined = match begun {
        Ok(()) => change.carry_out(db, txn, &options).await,
        Err(error) => Err(error),
    };
    if rewritten && defined.is_ok() {
        draft.renewed = world.model.borrow().now.tables[slot].clone();
    }
    if let Some(Effect::Truncate(_)) = effect {
        // Whatever it was before.
        draft.shape = Some(world.shape(slot, &view.drafts));
    }
    world.say(|| {
        let short: String = told.chars().take(60).collect();
        let session = pending.session;
        format!("session {session} defines t{slot} {effect:?} {short}: {defined:?}")
    });
    match defined {
        Ok(()) => {
            view.define(effect, slot, draft);
            true
        }
        Err(error) => {
            world.check_error("a definition", &error, true);
            false
        }
    }
}

/// A transaction that defines, and nothing else.
pub async fn define(world: &Rc<World>, db: &Arc<Database>, pending: &Pending) {
    if world.percent(12) {
        return crate::tablespace::define(world, db, pending).await;
    }
    let slot = world.below(SLOTS);
    let options = session::options(world, pending);
    world.model.borrow_mut().begin_transaction();
    let mut txn = db.begin(Isolation::Serializable, false);
    pending.doing.set("a definition");
    let begun = begin(world, db, &mut txn, &options, slot).await;
    let (change, effect, _) = change(world, db, &txn.catalog(), slot, &BTreeMap::new());
    let defined = match begun {
        Ok(()) => change.carry_out(db, &mut txn, &options).await,
        Err(error) => Err(error),
    };
    match defined {
        Ok(()) if !world.percent(15) => {
            world.yield_now().await;
            pending.effects.replace(effect.into_iter().collect());
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
