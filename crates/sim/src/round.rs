//! A round: a database is made, lives, crashes at any operation of its device, comes up
//! again (perhaps crashing on the way, too), and is compared with what the model allows.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use thermocline_device::{Clock, Device, FaultCounts, SimulatedClock, SimulatedDevice};
use thermocline_engine::{
    Config, Database, Result as EngineResult, Snapshot, Table, TableDef, block_on,
};
use thermocline_storage::columns::{ColumnTest, Test};

use crate::backup::Places;
use crate::chance::Chance;
use crate::model::{Model, State};
use crate::numbers::{self, Books, Numbers, SEQUENCES, sequence_name};
use crate::origin::{self, GROWTH, GROWTH_MEMORY_MIN};
use crate::procedure::procedures;
use crate::references;
use crate::schema::{Row, SLOTS, decode, missing_of, name};
use crate::world::{Habits, Pauses, World};

/// What a round came to.
#[derive(Debug, Default)]
pub struct Outcome {
    pub failure: Option<String>,
    pub simulated: Duration,
    pub faults: FaultCounts,
    pub tally: Tally,
}

/// What was done in a round, counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub lives: u64,
    pub recoveries: u64,
    pub commits: u64,
    pub calls: u64,
    pub evictions: u64,
    pub merges: u64,
    pub overwrites: u64,
    pub in_place: u64,
    pub compacted: u64,
    pub pages: u64,
    pub checkpoints: u64,
    pub backups: u64,
    pub restores: u64,
    pub numbers: u64,
    /// Rounds that grew, and the bytes that they put in before all else.
    pub grown_rounds: u64,
    pub grown_bytes: u64,
    pub device_operations: u64,
    /// Damage that an error named; the rest met nothing that was needed.
    pub damage_named: u64,
}

impl Tally {
    /// Adds another's.
    pub fn add(&mut self, other: &Tally) {
        self.lives += other.lives;
        self.recoveries += other.recoveries;
        self.commits += other.commits;
        self.calls += other.calls;
        self.evictions += other.evictions;
        self.merges += other.merges;
        self.overwrites += other.overwrites;
        self.in_place += other.in_place;
        self.compacted += other.compacted;
        self.pages += other.pages;
        self.checkpoints += other.checkpoints;
        self.backups += other.backups;
        self.restores += other.restores;
        self.numbers += other.numbers;
        self.grown_rounds += other.grown_rounds;
        self.grown_bytes += other.grown_bytes;
        self.device_operations += other.device_operations;
        self.damage_named += other.damage_named;
    }

    /// Each count with its name.
    pub fn by_kind(&self) -> [(&'static str, u64); 18] {
        [
            ("lives", self.lives),
            ("recoveries", self.recoveries),
            ("commits", self.commits),
            ("procedure_calls", self.calls),
            ("tuples_evicted", self.evictions),
            ("tuples_merged", self.merges),
            ("tuples_overwritten_unread", self.overwrites),
            ("tuples_used_in_place", self.in_place),
            ("tuples_compacted", self.compacted),
            ("column_pages_read", self.pages),
            ("checkpoints", self.checkpoints),
            ("backups", self.backups),
            ("restores", self.restores),
            ("numbers", self.numbers),
            ("grown_rounds", self.grown_rounds),
            ("grown_bytes", self.grown_bytes),
            ("device_operations", self.device_operations),
            ("damage_named", self.damage_named),
        ]
    }
}

thread_local! {
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Keeps what a panic says for the round's outcome, instead of printing it.
pub fn keep_panics() {
    std::panic::set_hook(Box::new(|info| {
        let backtrace = match std::env::var_os("RUST_BACKTRACE") {
            Some(_) => format!("\n{}", std::backtrace::Backtrace::force_capture()),
            None => String::new(),
        };
        let text = format!("{info}{backtrace}");
        PANIC.with_borrow_mut(|kept| kept.get_or_insert(text).clone());
    }));
}

/// What may happen in a round.
#[derive(Debug, Clone, Copy, Default)]
pub struct Scope {
    /// Everything that is done is printed.
    pub trace: bool,
    /// Crashes, torn and lost writes, late reads; but the device neither fails nor lies
    /// while it runs.
    pub crashes_only: bool,
}

/// Runs the round of a seed.
pub fn run(seed: u64, scope: Scope) -> Outcome {
    PANIC.set(None);
    // A read that falls short leaves its buffer as the last round has left it.
    thermocline_device::AlignedBuffer::free_kept();
    thermocline_device::go_on_after_panics();
    let device = SimulatedDevice::new();
    let clock = SimulatedClock::new();
    let mut tally = Tally::default();
    let lived = catch_unwind(AssertUnwindSafe(|| {
        Round::new(seed, &device, &clock, scope).lives(&mut tally)
    }));
    let failure = match lived {
        Ok(Ok(())) => None,
        Ok(Err(failure)) => Some(failure),
        Err(_) => Some(PANIC.take().unwrap_or_else(|| "it panicked".into())),
    };
    tally.device_operations = device.operations();
    Outcome {
        failure,
        simulated: clock.now(),
        faults: device.fault_counts(),
        tally,
    }
}

pub struct Round {
    pub chance: Chance,
    pub device: SimulatedDevice,
    clock: SimulatedClock,
    pub config: Config,
    pub habits: Habits,
    /// At last the device says that it wrote what it did not.
    lies: bool,
    /// What the last life knew of sequences.
    pub numbers: Books,
    pub places: Places,
}

impl Round {
    fn new(seed: u64, device: &SimulatedDevice, clock: &SimulatedClock, scope: Scope) -> Round {
        let mut chance = Chance::new(seed);
        let shared: Arc<dyn Device> = Arc::new(device.clone());
        let mut config = Config::new(shared).partitions(chance.pick(&[1, 2, 4]));
        config.clock = Arc::new(clock.clone());
        config.memory_limit = thermocline_engine::MEMORY_LIMIT_MIN;
        config.background = false;
        // Nearly nothing: every long transaction loses its snapshot. Not drawn, so that the
        // rest of the round is what it was.
        config.versions_bytes_max = seed.is_multiple_of(8).then_some(0);
        config.log_segment_bytes = chance.pick(&[32 << 10, 64 << 10, 256 << 10]);
        config.procedures = procedures();
        config.policy = Some(crate::policy::of_server(&mut chance));
        let backs_up = chance.percent(12);
        let large = chance.percent(6);
        let grows = chance.percent(1);
        config.simulator = Some(Arc::new(Pauses {
            origin: origin::random(&mut chance, config.log_segment_bytes, grows),
        }));
        let mut places = Places::default();
        if backs_up && chance.percent(40) {
            let archive = SimulatedDevice::new();
            config.archive = Some(Arc::new(archive.clone()));
            places.archive = Some(archive);
        }
        let mut habits = Habits {
            turns: 100 + chance.below(700),
            ids: chance.pick(&[6, 30, 100, 400]),
            memory_bytes: chance.pick(&[0, 64 << 10, 256 << 10, 1 << 20]),
            checkpoints: chance.pick(&[0, 2, 5, 15]),
            stalls: chance.percent(60),
            // Drawn in any case: the rest of the round is the same.
            faulty: chance.percent(20) && !scope.crashes_only,
            lies: 0,
            definitions: chance.pick(&[0, 0, 10, 50]),
            locks: chance.pick(&[0, 0, 8, 20]),
            backups: if backs_up { 5 + chance.below(30) } else { 0 },
            large,
            grows_to: 0,
            outgrows: large || grows,
            forgets: config.versions_bytes_max.is_some(),
            // Not drawn, either.
            references: seed % 5 == 2,
            trace: scope.trace,
        };
        if large {
            habits.ids = habits.ids.min(30);
            // Some have room for statements that change all rows, others refuse them.
            habits.memory_bytes += chance.pick(&[0, 8 << 20, 30 << 20]);
        }
        if grows {
            habits.ids = 4000;
            habits.turns *= 4;
            habits.grows_to = GROWTH * habits.memory_bytes.max(GROWTH_MEMORY_MIN);
        }
        Round {
            lies: chance.percent(8) && !scope.crashes_only,
            numbers: Books::new(),
            places,
            chance,
            device: device.clone(),
            clock: clock.clone(),
            config,
            habits,
        }
    }

    fn lives(mut self, tally: &mut Tally) -> Result<(), String> {
        let mut state = State::default();
        let lives = 1 + self.chance.below(4);
        let mut db = self.open("the first start")?;
        for _ in 0..lives {
            tally.lives += 1;
            if self.chance.percent(65) {
                let operations = self.chance.below(400) as u64;
                self.device.halt_after(operations);
            }
            let world = self.world(db, state);
            if self.chance.percent(30) {
                world.steps.warm_up();
            }
            world.live();
            let closed = self.chance.percent(25) && self.close(&world);
            self.count(&world, tally);
            if self.chance.percent(10) {
                self.device.crash_losing_all();
            } else {
                self.crash();
            }
            self.device.set_stalls(false);
            self.device.set_capacity_bytes(None);
            let (model, failure) = world.end();
            if let Some(failure) = failure {
                return Err(failure);
            }
            if self.chance.percent(3) {
                return self.rot(&model, tally);
            }
            if self.chance.percent(5) {
                return self.cut(&model, tally);
            }
            self.check_backups(&model, tally)?;
            if self.chance.percent(8)
                && let Some(found) = self.check()
            {
                return Err(format!("a check after a crash finds {found}"));
            }
            db = self.recover(tally)?;
            state = self.compare(&db, &model, closed)?;
            // A fault that is still to come would meet it.
            let backs_up = self.habits.backups > 0 && !self.habits.faulty;
            if backs_up && self.chance.percent(20) {
                self.back_up_at_rest(&db, &state)?;
            }
            if self.chance.percent(60) {
                // It holds the same, and lives while its partitions come.
                drop(db);
                if self.chance.percent(50) {
                    self.crash();
                }
                db = self.open("another start")?;
            }
            // They have grown.
            self.habits.grows_to = 0;
        }
        match self.lies {
            true => self.lied_to(db, state, tally),
            false => Ok(()),
        }
    }

    /// A life of the database, which holds `state`.
    pub fn world(&mut self, db: Arc<Database>, state: State) -> Rc<World> {
        World::new(
            db,
            self.device.clone(),
            self.clock.clone(),
            state,
            self.habits,
            self.places.clone(),
            Chance::new(self.chance.next()),
        )
    }

    /// Stops in an orderly way. Whether that succeeded.
    pub fn close(&self, world: &Rc<World>) -> bool {
        world.finish();
        if world.must_stop() {
            return false;
        }
        match world.db.close() {
            Ok(()) => true,
            Err(error) => {
                world.check_error("closing", &error, false);
                false
            }
        }
    }

    pub fn count(&mut self, world: &World, tally: &mut Tally) {
        self.numbers = world.numbers.take();
        tally.numbers += self.numbers.values().map(|of| of.len() as u64).sum::<u64>();
        tally.backups += world.backups.get();
        let grown = world.grown.get().1;
        tally.grown_rounds += u64::from(grown > 0);
        tally.grown_bytes += grown;
        let counters = world.db.counters();
        tally.commits += world.model.borrow().commits.len() as u64;
        tally.calls += world.calls.get();
        tally.evictions += counters.evictions;
        tally.merges += counters.merges;
        tally.overwrites += counters.overwrites;
        let reports = world.db.policy_reports();
        tally.in_place += reports.iter().map(|of| of.counts.byte_reads).sum::<u64>();
        tally.compacted += counters.tuples_compacted;
        tally.pages += world.db.column_pages_read();
        tally.checkpoints += counters.checkpoints;
    }

    pub fn crash(&mut self) {
        let torn = self.chance.pick(&[512, 4096]);
        self.device.set_atomic_write_bytes(torn);
        self.device.crash(self.chance.next());
    }

    fn open(&self, when: &str) -> Result<Arc<Database>, String> {
        open(&self.config).map_err(|error| format!("{when} failed: {error}"))
    }

    /// Comes up again; the device may halt on the way, more than once.
    fn recover(&mut self, tally: &mut Tally) -> Result<Arc<Database>, String> {
        for _ in 0..3 {
            if !self.chance.percent(30) {
                break;
            }
            tally.recoveries += 1;
            self.device.halt_after(self.chance.below(60) as u64);
            match open(&self.config) {
                // What it needs may lie beyond the halt.
                Ok(db) => match db.wait_for_partitions() {
                    Err(error) if !self.device.is_halted() => {
                        return Err(format!("a partition of a recovery failed: {error}"));
                    }
                    _ => drop(db),
                },
                Err(_) if self.device.is_halted() => {}
                Err(error) => return Err(format!("a recovery failed: {error}")),
            }
            self.crash();
        }
        tally.recoveries += 1;
        self.open("a recovery")
    }

    /// What was found must be a prefix of the commits with all acknowledged ones.
    fn compare(&self, db: &Arc<Database>, model: &Model, closed: bool) -> Result<State, String> {
        match db.verify() {
            Ok(found) if found.is_sound() => {}
            Ok(found) => return Err(format!("after recovery: {}", found.problems.join("; "))),
            Err(error) => return Err(format!("verifying after recovery: {error}")),
        }
        let found = Found::read(db).map_err(|e| format!("reading after recovery: {e}"))?;
        references::check(db)?;
        numbers::compare(db, &self.numbers, |_, of: &Numbers| (of.told(), of.len()))?;
        let from = match closed {
            true => model.commits.len(),
            false => model.acknowledged(),
        };
        let mut differences = Vec::new();
        for (further, state) in model.prefixes(from).enumerate() {
            match found.difference(&state) {
                None => return Ok(state),
                Some(difference) if differences.len() < 3 => {
                    differences.push(format!("not {} commits: {difference}", from + further));
                }
                Some(_) => {}
            }
        }
        Err(format!(
            "of {} commits {from} were acknowledged; found: {}",
            model.commits.len(),
            differences.join("; ")
        ))
    }
}

/// Opens the database of this configuration.
pub fn open(config: &Config) -> EngineResult<Arc<Database>> {
    Database::open(config.clone())
}

/// Has the rows of a table counted without a scan.
fn counted_alike(snapshot: &Snapshot, table: &Arc<Table>, rows: usize) -> EngineResult<()> {
    let mut counted = 0;
    for partition in 0..snapshot.database().partitions() {
        let Some(count) = block_on(snapshot.count(table, partition))? else {
            return Ok(());
        };
        counted += count;
    }
    if counted == rows as u64 {
        return Ok(());
    }
    let table = &table.def.name;
    let what = format!("{table}: {counted} rows are counted, {rows} are there");
    Err(thermocline_engine::Error::Corrupt(what))
}

/// Asks the row groups of a column table for some of its rows: what is asked for is there, and nothing
/// is there that the whole table has not.
fn asked_alike(
    snapshot: &Snapshot,
    table: &Arc<Table>,
    rows: &BTreeMap<i64, Row>,
) -> EngineResult<()> {
    let Some(middle) = rows
        .keys()
        .nth(rows.len() / 2)
        .filter(|_| table.is_columns())
    else {
        return Ok(());
    };
    type Has<'a> = &'a dyn Fn(i64, &Row) -> bool;
    let asked: [(usize, Test, Has<'_>); 2] = [
        (0, Test::Integers(vec![(*middle, i64::MAX)]), &|id, _| {
            id >= *middle
        }),
        (1, Test::Null(true), &|_, row| row.a.is_none()),
    ];
    let columns: Vec<usize> = (0..table.def.columns.len()).collect();
    for (column, test, has) in asked {
        let tests = [ColumnTest { column, test }].into();
        let mut found = BTreeMap::new();
        for partition in 0..snapshot.database().partitions() {
            let mut scan = snapshot.scan_columns(table, partition, &columns, &tests);
            while block_on(scan.next_chunk(&mut |_, tuple| found.extend(decode(table, tuple))))? {}
        }
        let is_alike = found.iter().all(|(id, row)| rows.get(id) == Some(row));
        let wanted = rows.iter().filter(|(id, row)| has(**id, row));
        if let Some((id, _)) = { wanted }.find(|(id, _)| !found.contains_key(id)) {
            let table = &table.def.name;
            let what =
                format!("{table}: row {id} has what column {column} was asked, and is not given");
            return Err(thermocline_engine::Error::Corrupt(what));
        }
        if !is_alike {
            let what = format!("{}: rows differ where columns are asked", table.def.name);
            return Err(thermocline_engine::Error::Corrupt(what));
        }
    }
    Ok(())
}

/// What a database holds, read out of it.
pub struct Found {
    tables: Vec<Option<FoundTable>>,
    sequences: [Option<u32>; SEQUENCES],
}

/// Rows and definition.
type FoundTable = (BTreeMap<i64, Row>, TableDef);

impl Found {
    /// Reads all tables through a snapshot.
    pub fn read(db: &Arc<Database>) -> EngineResult<Found> {
        db.wait_for_partitions()?;
        let snapshot = db.snapshot();
        let mut tables = Vec::new();
        for slot in 0..SLOTS {
            let Some(table) = db.catalog().table_by_name("public", &name(slot)).cloned() else {
                tables.push(None);
                continue;
            };
            let mut rows = BTreeMap::new();
            let mut twice = None;
            for partition in 0..db.partitions() {
                let mut scan = snapshot.scan(&table, partition);
                while block_on(scan.next_chunk(&mut |_, tuple| {
                    if let Some((id, row)) = decode(&table, tuple)
                        && rows.insert(id, row).is_some()
                    {
                        twice = Some(id);
                    }
                }))? {}
            }
            if let Some(id) = twice {
                return Err(thermocline_engine::Error::Corrupt(format!(
                    "t{slot}: row {id} is there twice"
                )));
            }
            counted_alike(&snapshot, &table, rows.len())?;
            asked_alike(&snapshot, &table, &rows)?;
            tables.push(Some((rows, table.def.clone())));
        }
        let catalog = db.catalog();
        let sequences = std::array::from_fn(|number| {
            let def = catalog.sequence_by_name("public", &sequence_name(number));
            def.map(|def| def.oid)
        });
        Ok(Found { tables, sequences })
    }

    /// How it differs from a state; `None`: not at all.
    pub fn difference(&self, state: &State) -> Option<String> {
        if self.sequences != state.sequences {
            let (found, expected) = (self.sequences, state.sequences);
            return Some(format!("sequences are {found:?} and not {expected:?}"));
        }
        for (slot, (found, expected)) in self.tables.iter().zip(&state.tables).enumerate() {
            match (found, expected) {
                (None, None) => {}
                (Some(_), None) => return Some(format!("t{slot} is there")),
                (None, Some(_)) => return Some(format!("t{slot} is not there")),
                (Some((rows, def)), Some(expected)) => {
                    let indexes = &def.indexes;
                    let same_indexes = indexes.len() == expected.shape.indexes.len() + 1
                        && indexes[1..]
                            .iter()
                            .zip(&expected.shape.indexes)
                            .all(|(def, shape)| shape.is(def));
                    if !same_indexes {
                        return Some(format!("t{slot} has other indexes"));
                    }
                    let missing = &expected.shape.added;
                    if missing_of(def) != *missing {
                        return Some(format!("t{slot} has other columns"));
                    }
                    let same = |id: &i64| match (rows.get(id), expected.rows.get(id)) {
                        (Some(found), Some(stored)) => stored.row.reads_as(found, missing),
                        (found, stored) => found.is_none() && stored.is_none(),
                    };
                    let ids = rows.keys().chain(expected.rows.keys());
                    let wrong: Vec<i64> = ids.copied().filter(|id| !same(id)).collect();
                    if !wrong.is_empty() {
                        return Some(format!(
                            "t{slot}: rows {wrong:?} of {} found, {} expected",
                            rows.len(),
                            expected.rows.len()
                        ));
                    }
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_round() {
        for seed in 0..12 {
            let (one, two) = (run(seed, Scope::default()), run(seed, Scope::default()));
            assert_eq!(one.failure, None, "seed {seed}");
            assert_eq!(one.tally.by_kind(), two.tally.by_kind(), "seed {seed}");
            assert_eq!(one.faults, two.faults, "seed {seed}");
            assert_eq!(one.simulated, two.simulated, "seed {seed}");
        }
    }
}
