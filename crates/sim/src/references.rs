//! Tables that refer to each other by foreign keys, changed at once by several sessions, alone
//! and in transactions with savepoints. Whatever happens, and after each crash, no row refers to
//! one that is not there. What a row is, is not the model's affair: its commits change nothing
//! that the model knows.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use thermocline_engine::{
    Access, Catalog, Change, ColumnDef, Database, Error, ForeignKeyDef, IndexDef, IndexKind,
    Isolation, ReferenceAction, Referring, Result, RunOptions, Scope, Table, TableDef, Transaction,
    block_on,
};
use thermocline_values::types::DataType;
use thermocline_values::value::ValueRef;

use crate::schema::{Shape, table_def};
use crate::session::{Pending, acknowledge, failed, options};
use crate::statement::Done;
use crate::world::World;

/// The table that is referred to, and the one that refers to it.
const PARENT: &str = "parent";
const CHILD: &str = "child";
/// Rows of each have numbers below these.
const PARENTS: usize = 6;
const CHILDREN: usize = 24;

/// What is done with a row.
#[derive(Clone, Copy, Debug)]
enum Op {
    /// Stores a parent, if it is not there.
    Parent(i64),
    /// Stores a child of a parent, or gives the one that is there this parent.
    Child(i64, i64),
    /// Deletes a parent,
    Orphan(i64),
    /// or a child.
    Forget(i64),
}

fn random(world: &World) -> Op {
    let (parent, child) = (world.below(PARENTS) as i64, world.below(CHILDREN) as i64);
    match world.below(10) {
        0..2 => Op::Parent(parent),
        2..6 => Op::Child(child, parent),
        6..8 => Op::Orphan(parent),
        _ => Op::Forget(child),
    }
}

/// The tables, if they are there.
fn tables(catalog: &Catalog) -> Option<[Arc<Table>; 2]> {
    let table = |name| catalog.table_by_name("public", name).cloned();
    Some([table(PARENT)?, table(CHILD)?])
}

fn definitions(world: &World, db: &Database) -> [TableDef; 2] {
    let def = |name: &str, shape: &Shape| {
        let mut def = table_def(db, 0, shape, Default::default());
        def.name = name.into();
        def.indexes.truncate(1);
        def.indexes[0].name = format!("{name}_pkey");
        def.columns = vec![
            ColumnDef {
                not_null: true,
                ..ColumnDef::new("id", DataType::BigInt)
            },
            ColumnDef::new("parent", DataType::BigInt),
        ];
        def
    };
    let shapes = world.with_chance(|chance| [0, 1].map(|slot| Shape::random(chance, slot)));
    let [mut parent, mut child] = [def(PARENT, &shapes[0]), def(CHILD, &shapes[1])];
    let hash = world.percent(40);
    child.indexes.push(IndexDef {
        oid: db.allocate_oid(),
        name: "child_parent".into(),
        // A hash index over the referring columns, or an ordered one that begins with them.
        columns: if hash { vec![1] } else { vec![1, 0] },
        unique: false,
        primary: false,
        constraint: false,
        kind: if hash {
            IndexKind::Hash
        } else {
            IndexKind::BTree
        },
        include: Vec::new(),
        nulls_equal: false,
        order: Vec::new(),
    });
    child.foreign_keys.push(ForeignKeyDef {
        oid: db.allocate_oid(),
        name: "child_parent_fkey".into(),
        columns: vec![1],
        table: parent.oid,
        referenced: vec![0],
        match_full: false,
        on_update: ReferenceAction::NoAction,
        on_delete: ReferenceAction::NoAction,
        set_columns: Vec::new(),
        deferrable: true,
        deferred: world.percent(30),
        validated: true,
    });
    parent.referenced_by.push(child.oid);
    [parent, child]
}

async fn define(world: &Rc<World>, db: &Arc<Database>, pending: &Pending) {
    let options = options(world, pending);
    world.model.borrow_mut().begin_transaction();
    let mut txn = db.begin(Isolation::Serializable, false);
    pending.doing.set("tables with a foreign key are made");
    let mut defined = db.begin_ddl(&mut txn);
    for def in definitions(world, db) {
        if defined.is_ok() {
            defined = db.ddl(&mut txn, &options, Change::CreateTable(def)).await;
        }
    }
    match defined {
        Ok(()) => finish(world, db, txn, pending, &options).await,
        Err(error) => {
            world.check_error("a definition", &error, true);
            db.rollback(txn).await;
        }
    }
    world.model.borrow_mut().end_transaction();
}

/// Commits what the model knows nothing of.
async fn finish(
    world: &Rc<World>,
    db: &Arc<Database>,
    txn: Transaction,
    pending: &Pending,
    options: &RunOptions,
) {
    pending.doing.set("a commit");
    let result = db.commit(txn, options).await;
    world.note_commit(pending);
    world.say(|| format!("session {} commits references: {result:?}", pending.session));
    match result {
        Ok(()) => acknowledge(world, pending, options, &Done::default()),
        Err(Error::ForeignKeyViolation { .. }) => {}
        Err(error) => world.check_error("a commit", &error, true),
    }
}

/// What a session does with them.
pub async fn change(world: &Rc<World>, db: &Arc<Database>, pending: &Pending) {
    let Some(tables) = tables(&db.catalog()) else {
        return define(world, db, pending).await;
    };
    let op = random(world);
    if world.percent(30) && !matches!(op, Op::Orphan(_)) {
        let options = options(world, pending);
        pending.doing.set("a one-shot with references");
        let body = |access: &mut Access<'_>| run(access, &tables, op);
        let result = db.one_shot(&options, Scope::All, body).await;
        world.note_commit(pending);
        world.say(|| format!("session {} {op:?}: {result:?}", pending.session));
        return match result {
            Ok(()) => acknowledge(world, pending, &options, &Done::default()),
            Err(Error::ForeignKeyViolation { .. }) => {}
            Err(error) => failed(world, pending, "a one-shot", &error),
        };
    }
    world.model.borrow_mut().begin_transaction();
    let isolation = world.with_chance(|chance| {
        chance.pick(&[
            Isolation::ReadCommitted,
            Isolation::RepeatableRead,
            Isolation::Serializable,
        ])
    });
    let mut txn = db.begin(isolation, false);
    if world.percent(30) {
        txn.set_constraints(None, world.percent(60));
    }
    match statements(world, db, &tables, &mut txn, pending).await {
        true if !world.is_over() => {
            let options = options(world, pending);
            finish(world, db, txn, pending, &options).await;
        }
        _ => {
            pending.doing.set("a rollback");
            db.rollback(txn).await;
        }
    }
    world.model.borrow_mut().end_transaction();
}

/// The statements of a transaction; whether it is to be committed.
async fn statements(
    world: &Rc<World>,
    db: &Arc<Database>,
    tables: &[Arc<Table>; 2],
    txn: &mut Transaction,
    pending: &Pending,
) -> bool {
    let mut savepoint = None;
    for _ in 0..1 + world.below(5) {
        world.yield_now().await;
        if world.is_over() {
            return false;
        }
        if world.percent(20) {
            savepoint = txn.savepoint(0).ok();
        }
        let op = random(world);
        let options = options(world, pending);
        pending.doing.set("a statement with references");
        let body = |access: &mut Access<'_>| run(access, tables, op);
        let ran = match db.in_transaction(txn, &options, Scope::All, body).await {
            Ok(()) => settle(db, tables, txn, &options).await,
            failed => failed,
        };
        world.say(|| {
            format!(
                "session {} in its transaction {op:?}: {ran:?}",
                pending.session
            )
        });
        let failed = match &ran {
            Ok(()) => world.percent(8),
            Err(Error::ForeignKeyViolation { .. } | Error::UniqueViolation { .. }) => true,
            Err(error) => {
                world.check_error("a statement", error, true);
                return false;
            }
        };
        if failed {
            let Some(point) = &savepoint else {
                return false;
            };
            if let Err(error) = txn.rollback_to(point).await {
                world.check_error("a rollback to a savepoint", &error, true);
                return false;
            }
        }
    }
    !world.percent(15)
}

fn tuple(table: &Table, id: i64, parent: Option<i64>) -> Vec<u8> {
    let mut tuple = Vec::new();
    let parent = parent.map_or(ValueRef::Null, ValueRef::BigInt);
    table.encode_tuple(&[ValueRef::BigInt(id), parent], &mut tuple);
    tuple
}

fn key(table: &Table, id: i64) -> Vec<u8> {
    let mut key = Vec::new();
    table.encode_index_key(0, &[ValueRef::BigInt(id)], &mut key);
    key
}

fn run(access: &mut Access<'_>, [parent, child]: &[Arc<Table>; 2], op: Op) -> Result<()> {
    let mut found = Vec::new();
    let (table, id) = match op {
        Op::Parent(id) | Op::Orphan(id) => (parent, id),
        Op::Child(id, _) | Op::Forget(id) => (child, id),
    };
    access.find(table, 0, &key(table, id), &mut found)?;
    let found = found.first().copied();
    match (op, found) {
        (Op::Parent(id), None) => access.insert(parent, &tuple(parent, id, None)).map(|_| ()),
        (Op::Child(id, of), found) => {
            let tuple = tuple(child, id, Some(of));
            let row = match found {
                Some(row) => access.update(child, row, &tuple)?,
                None => access.insert(child, &tuple)?,
            };
            if access.evicted() {
                return Ok(());
            }
            access.expect_parent((child, row, &tuple), 0, (parent, &key(parent, of)))
        }
        (Op::Orphan(_) | Op::Forget(_), Some(row)) => access.delete(table, row),
        _ => Ok(()),
    }
}

/// Does what a session does when a statement ends.
async fn settle(
    db: &Arc<Database>,
    [parent, child]: &[Arc<Table>; 2],
    txn: &mut Transaction,
    options: &RunOptions,
) -> Result<()> {
    for removed in txn.take_removed_keys() {
        let index = &child.def.indexes[1];
        let mut key = Vec::new();
        child.encode_index_key(1, &[parent.value(&removed.old, 0)], &mut key);
        let referring = Referring {
            index: index.oid,
            key: key.into(),
            whole: index.columns.len() == 1,
        };
        txn.expect_no_child((parent, &removed.old), (child, 0), referring, false)?;
    }
    match txn.has_unseen() {
        true => db.verify_expected(txn, options).await,
        false => Ok(()),
    }
}

/// Looks for rows that refer to none.
pub fn check(db: &Arc<Database>) -> std::result::Result<(), String> {
    let Some([parent, child]) = tables(&db.catalog()) else {
        return Ok(());
    };
    let snapshot = db.snapshot();
    let read = |table: &Arc<Table>, column: usize| -> Result<BTreeSet<i64>> {
        let mut values = BTreeSet::new();
        for partition in 0..db.partitions() {
            let mut scan = snapshot.scan(table, partition);
            while block_on(scan.next_chunk(&mut |_, tuple| {
                if let ValueRef::BigInt(value) = table.value(tuple, column) {
                    values.insert(value);
                }
            }))? {}
        }
        Ok(values)
    };
    let parents = read(&parent, 0).map_err(|error| format!("reading parents: {error}"))?;
    let referred = read(&child, 1).map_err(|error| format!("reading children: {error}"))?;
    let orphans: Vec<_> = referred.difference(&parents).collect();
    match orphans.is_empty() {
        true => Ok(()),
        false => Err(format!("rows refer to {orphans:?}, which are not there")),
    }
}
