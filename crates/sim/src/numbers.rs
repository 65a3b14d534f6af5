//! Sequences: made, dropped, asked for numbers and set, alone and in transactions. Each number
//! follows the one before, and none that was told comes again after a crash.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use thermocline_engine::{Change, Database, Error, Isolation, SequenceDef};
use thermocline_values::types::DataType;

use crate::model::Effect;
use crate::session::{Pending, acknowledge, options};
use crate::statement::Done;
use crate::world::World;

/// Sequences that a round may have, `s0` and so on.
pub const SEQUENCES: usize = 2;

/// Numbers that a crash may leave out.
const LEFT_OUT_MAX: usize = 33;

/// The sequence's name.
pub fn sequence_name(number: usize) -> String {
    format!("s{number}")
}

/// The last number given, or the first to give if none was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub value: i64,
    pub is_called: bool,
}

/// What is known of a sequence.
#[derive(Clone, Debug)]
pub struct Numbers {
    increment: i64,
    min: i64,
    max: i64,
    /// Where it was when this life began.
    base: Place,
    /// Where it was after each number and each setval since, and whether somebody was told.
    steps: Vec<(Place, bool)>,
    /// The commit of this life that made it.
    made: Option<usize>,
}

/// All sequences that may be there, by object id.
pub type Books = BTreeMap<u32, Numbers>;

impl Numbers {
    fn of(def: &SequenceDef, base: Place) -> Numbers {
        Numbers {
            increment: def.increment,
            min: def.min,
            max: def.max,
            base,
            steps: Vec::new(),
            made: None,
        }
    }

    /// Where it is.
    fn place(&self) -> Place {
        self.steps.last().map_or(self.base, |step| step.0)
    }

    /// Where the next number leads; `None`: there is none.
    fn after(&self, place: Place) -> Option<Place> {
        let value = match place.is_called {
            true => place.value.checked_add(self.increment)?,
            false => place.value,
        };
        (self.min..=self.max).contains(&value).then_some(Place {
            value,
            is_called: true,
        })
    }

    /// Steps that must be there after a crash.
    pub fn told(&self) -> usize {
        let last = self.steps.iter().rposition(|step| step.1);
        last.map_or(0, |last| last + 1)
    }

    /// Steps so far.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether a restart with at least `least` and at most `most` of the steps may find this.
    pub fn may_be_at(&self, least: usize, most: usize, found: Place) -> bool {
        (least..=most.min(self.steps.len())).any(|steps| {
            let from = match steps {
                0 => self.base,
                steps => self.steps[steps - 1].0,
            };
            let ahead = std::iter::successors(Some(from), |place| self.after(*place));
            ahead.take(LEFT_OUT_MAX + 1).any(|place| place == found)
        })
    }
}

/// Where a database has its sequences, with nothing done since.
pub fn begin(db: &Database) -> Books {
    let catalog = db.catalog();
    let place = |def| {
        let (value, is_called) = db.last_value(def).unwrap_or_default();
        Place { value, is_called }
    };
    let sequences = catalog.sequences.values();
    sequences
        .map(|def| (def.oid, Numbers::of(def, place(def))))
        .collect()
}

/// Compares the sequences of a database that came up with what was told of them. `of`: how many
/// steps of each it must have at least, and can have at most.
pub fn compare(
    db: &Database,
    books: &Books,
    of: impl Fn(u32, &Numbers) -> (usize, usize),
) -> Result<(), String> {
    for def in db.catalog().sequences.values() {
        let Some(numbers) = books.get(&def.oid) else {
            return Err(format!("sequence {} was never made", def.name));
        };
        let Some((value, is_called)) = db.last_value(def) else {
            return Err(format!("sequence {} has no value", def.name));
        };
        let found = Place { value, is_called };
        let (least, most) = of(def.oid, numbers);
        if !numbers.may_be_at(least, most, found) {
            let last = numbers.steps.get(least.saturating_sub(1));
            return Err(format!(
                "sequence {} is at {found:?}; {least} of {} steps were told, the last {last:?}",
                def.name,
                numbers.steps.len()
            ));
        }
    }
    Ok(())
}

/// Numbers that a transaction's commit tells: the sequence, and the step.
pub type Owed = Vec<(u32, usize)>;

impl World {
    /// Somebody was told of steps of a sequence: they outlive a crash, and so does the sequence.
    fn tell(&self, oid: u32, step: usize) {
        let made = {
            let mut books = self.numbers.borrow_mut();
            let Some(numbers) = books.get_mut(&oid) else {
                return;
            };
            if let Some(step) = numbers.steps.get_mut(step) {
                step.1 = true;
            }
            numbers.made
        };
        if let Some(commit) = made {
            self.acknowledge_seen(commit);
        }
    }

    /// A commit is acknowledged, and with it what its transaction got.
    pub fn tell_owed(&self, owed: Owed) {
        for (oid, step) in owed {
            self.tell(oid, step);
        }
    }

    /// Notes where a sequence is; the step's number.
    fn note_step(&self, oid: u32, place: Place) -> usize {
        let mut books = self.numbers.borrow_mut();
        let Some(numbers) = books.get_mut(&oid) else {
            return 0;
        };
        numbers.steps.push((place, false));
        numbers.steps.len() - 1
    }
}

/// Asks for a number, or sets the next; the step, and up to where the log has to be durable
/// before anybody is told.
fn step(world: &World, db: &Database, def: &SequenceDef, sets: bool) -> Option<(usize, u64)> {
    let expected = {
        let books = world.numbers.borrow();
        let numbers = books.get(&def.oid)?;
        numbers.after(numbers.place())
    };
    let done = if sets {
        let value = def
            .start
            .saturating_add(world.below(500) as i64 * def.increment.signum());
        let place = Place {
            value: value.clamp(def.min, def.max),
            is_called: world.percent(50),
        };
        db.set_value(def, place.value, place.is_called)
            .map(|lsn| (place, lsn))
    } else {
        db.next_value(def).map(|given| {
            let place = Place {
                value: given.value,
                is_called: true,
            };
            if expected != Some(place) {
                world.fail(format!("{} gives {place:?}, not {expected:?}", def.name));
            }
            (place, given.logged_to)
        })
    };
    match done {
        Ok((place, lsn)) => Some((world.note_step(def.oid, place), lsn)),
        Err(Error::Catalog { .. }) if expected.is_none() => None,
        // Dropped meanwhile.
        Err(Error::Catalog { .. }) if !db.catalog().sequences.contains_key(&def.oid) => None,
        Err(error) => {
            world.check_error("a number", &error, false);
            None
        }
    }
}

/// Numbers on their own, each told as soon as the log keeps it from coming again.
pub async fn count(world: &Rc<World>, db: &Arc<Database>, pending: &Pending) {
    let number = world.below(SEQUENCES);
    let catalog = db.catalog();
    let def = catalog.sequence_by_name("public", &sequence_name(number));
    let Some(def) = def.cloned().filter(|_| !world.percent(8)) else {
        return define(world, db, pending, number).await;
    };
    let options = options(world, pending);
    pending.doing.set("numbers");
    for _ in 0..1 + world.below(40) {
        let Some((step, lsn)) = step(world, db, &def, world.percent(4)) else {
            return;
        };
        if world.percent(10) {
            // Its client has gone.
            continue;
        }
        match db.wait_for_log(&options, lsn).await {
            Ok(()) => world.tell(def.oid, step),
            Err(error) => return world.check_error("a number", &error, false),
        }
    }
}

/// Numbers in a transaction, whose commit tells them.
pub fn count_in_transaction(world: &World, db: &Database, pending: &Pending) {
    let name = sequence_name(world.below(SEQUENCES));
    let Some(def) = db.catalog().sequence_by_name("public", &name).cloned() else {
        return;
    };
    for _ in 0..1 + world.below(20) {
        let Some((step, _)) = step(world, db, &def, world.percent(5)) else {
            return;
        };
        pending.owed.borrow_mut().push((def.oid, step));
    }
}

fn random_sequence(world: &World, db: &Database, number: usize) -> SequenceDef {
    let increment = [1, 1, 1, 7, -1, -1000][world.below(6)];
    let start = [1, 1, -5, i64::MAX - 300, i64::MIN + 300][world.below(5)];
    let (min, max) = match world.percent(30) {
        true => (start.saturating_sub(400), start.saturating_add(400)),
        false => (i64::MIN, i64::MAX),
    };
    SequenceDef {
        oid: db.allocate_oid(),
        schema: "public".into(),
        name: sequence_name(number),
        data_type: DataType::BigInt,
        start,
        increment,
        min,
        max,
        cache: 1,
        cycle: false,
        owned_by: None,
        restarted_by: 0,
    }
}

/// Makes a sequence, and perhaps uses it at once, or drops it.
async fn define(world: &Rc<World>, db: &Arc<Database>, pending: &Pending, number: usize) {
    let options = options(world, pending);
    world.model.borrow_mut().begin_transaction();
    let mut txn = db.begin(Isolation::Serializable, false);
    pending.doing.set("a sequence is made");
    let begun = db.begin_ddl(&mut txn);
    let catalog = txn.catalog();
    let there = catalog.sequence_by_name("public", &sequence_name(number));
    let made = match there {
        Some(_) => None,
        None => Some(random_sequence(world, db, number)),
    };
    let change = match (there, &made) {
        (Some(there), _) => Change::DropSequence(there.oid),
        (None, Some(made)) => Change::CreateSequence(made.clone()),
        (None, None) => unreachable!("what is not there is made"),
    };
    let defined = match begun {
        Ok(()) => db.ddl(&mut txn, &options, change).await,
        Err(error) => Err(error),
    };
    if let Err(error) = defined {
        world.check_error("a definition", &error, true);
        db.rollback(txn).await;
        world.model.borrow_mut().end_transaction();
        return;
    }
    if let Some(def) = &made {
        let base = Place {
            value: def.start,
            is_called: false,
        };
        let numbers = Numbers::of(def, base);
        world.numbers.borrow_mut().insert(def.oid, numbers);
        while world.percent(70) {
            if let Some((step, _)) = step(world, db, def, world.percent(10)) {
                pending.owed.borrow_mut().push((def.oid, step));
            }
            world.yield_now().await;
        }
    }
    if world.percent(20) {
        db.rollback(txn).await;
        world.model.borrow_mut().end_transaction();
        return;
    }
    let oid = made.as_ref().map(|def| def.oid);
    pending.effects.replace(vec![Effect::Sequence(number, oid)]);
    let result = db.commit(txn, &options).await;
    world.note_commit(pending);
    if let Some(oid) = oid
        && let Some(numbers) = world.numbers.borrow_mut().get_mut(&oid)
    {
        numbers.made = pending.committed.get();
    }
    match result {
        Ok(()) => acknowledge(world, pending, &options, &Done::default()),
        Err(error) => world.check_error("a definition's commit", &error, true),
    }
    world.model.borrow_mut().end_transaction();
}
