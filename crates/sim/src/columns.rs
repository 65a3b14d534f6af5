//! Columns of column tables that come into memory and leave it, at any moment: whatever is there, all read
//! the same.

use thermocline_engine::{Error, RunOptions, block_on};

use crate::session;
use crate::world::World;

/// Some columns of a table are loaded, or let go.
pub fn come_or_go(world: &World) {
    let Some((_, table)) = session::table(world, &world.db.catalog()) else {
        return;
    };
    if !table.is_columns() {
        return;
    }
    let all = 0..table.def.columns.len();
    let columns: Vec<usize> = all.filter(|_| world.percent(50)).collect();
    let comes = world.percent(50);
    world.say(|| format!("columns {columns:?} come: {comes}"));
    let options = RunOptions::new();
    let outcome = world.without_stalls(|| match comes {
        true => block_on(world.db.load_columns(&options, &table, &columns)),
        false => block_on(world.db.unload_columns(&options, &table, &columns)).map(drop),
    });
    // A life may be at its end.
    if !matches!(outcome, Err(Error::ShuttingDown)) {
        world.background("columns that come or go", outcome);
    }
}
