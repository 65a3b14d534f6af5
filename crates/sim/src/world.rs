//! One life of the database, from a start to a crash or a clean stop: sessions, background
//! steps and the device, one of which goes on at a time, as the seed says.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use thermocline_device::{Clock, SimulatedClock, SimulatedDevice};
use thermocline_engine::steps::{Moment, Origin, Simulator, Steps};
use thermocline_engine::{Database, Error, Isolation, block_on};

use crate::backup::Places;
use crate::chance::Chance;
use crate::model::{Draft, Model, State};
use crate::numbers::{self, Books};
use crate::schema::Shape;
use crate::session::{Pending, client};
use crate::statement::View;

/// Turns without anybody able to go on, after which nobody ever will be: of about a millisecond
/// each, and who waits for memory gives up after five seconds.
const IDLE_TURNS_MAX: usize = 8000;
/// Turns of a hundred that bring a partition while some are to come after a start.
const LOADS_PERCENT: usize = 4;
/// Steps inside of steps.
const DEPTH_MAX: usize = 3;
const SESSIONS_MAX: usize = 6;

/// What a life is like.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    pub turns: usize,
    /// Keys are below this.
    pub ids: usize,
    /// Tuples have about this much memory, in bytes.
    pub memory_bytes: u64,
    /// Checkpoints in a thousand turns.
    pub checkpoints: usize,
    /// Asynchronous reads stall.
    pub stalls: bool,
    /// The device fails beside halting: errors that name it are in order.
    pub faulty: bool,
    /// How many writes it loses or puts elsewhere, saying that all is well.
    pub lies: usize,
    /// Transactions of a hundred that may define tables, too, as they go.
    pub definitions: usize,
    /// Steps of transactions that lock a table, in a hundred.
    pub locks: usize,
    /// Backups in a thousand turns, and steps of the archive.
    pub backups: usize,
    /// Some rows are large: up to a megabyte.
    pub large: bool,
    /// The tables grow to so many bytes before all else.
    pub grows_to: u64,
    /// The rows of a table together may be more than a statement may fetch at once.
    pub outgrows: bool,
    /// Before-images have no memory: snapshots end as soon as they need any.
    pub forgets: bool,
    /// There are tables that refer to each other.
    pub references: bool,
    /// Everything that is done is printed.
    pub trace: bool,
}

struct Session {
    future: Pin<Box<dyn Future<Output = ()>>>,
    pending: Rc<Pending>,
    woken: Arc<Woken>,
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A life.
pub struct World {
    pub db: Arc<Database>,
    pub steps: Steps,
    pub device: SimulatedDevice,
    pub clock: SimulatedClock,
    pub model: RefCell<Model>,
    pub habits: Habits,
    chance: RefCell<Chance>,
    sessions: RefCell<Vec<Option<Session>>>,
    failure: RefCell<Option<String>>,
    over: Cell<bool>,
    depth: Cell<usize>,
    idle: Cell<usize>,
    pub in_checkpoint: Cell<bool>,
    /// How many want no read to stall.
    unstalled: Cell<usize>,
    /// Commits that the log has according to the manifest to come.
    durable: Cell<usize>,
    /// Whose turn it is.
    pub polled: RefCell<Option<Rc<Pending>>>,
    /// Calls of procedures that succeeded.
    pub calls: Cell<u64>,
    /// Lies that are left.
    pub lies: Cell<usize>,
    /// Some wait for what a device that lied has lost.
    stuck: Cell<bool>,
    /// What is known of sequences.
    pub numbers: RefCell<Books>,
    /// Where backups go.
    pub places: Places,
    /// A backup is under way.
    pub backing_up: Cell<bool>,
    pub backups: Cell<u64>,
    /// Rows that a round which grows has put in, and their bytes.
    pub grown: Cell<(i64, u64)>,
    /// Errors of background steps and statements that the faults explain.
    pub errors: Cell<u64>,
}

thread_local! {
    static CURRENT: RefCell<Option<Rc<World>>> = const { RefCell::new(None) };
}

/// The life of this thread, while there is one.
pub fn current() -> Option<Rc<World>> {
    CURRENT.with_borrow(Clone::clone)
}

/// Hands the engine's pauses to the life of this thread.
#[derive(Default)]
pub struct Pauses {
    /// Where what only grows begins.
    pub origin: Origin,
}

impl Simulator for Pauses {
    fn pause(&self, moment: Moment) {
        if let Some(world) = current() {
            if moment == Moment::BlockTableWritten {
                // The log is durable up to here, and the manifest will say so.
                let commits = world.model.borrow().commits.len();
                world.durable.set(commits);
            }
            world.others();
        }
    }

    fn brings_partitions(&self) -> bool {
        true
    }

    fn origin(&self) -> Origin {
        self.origin
    }
}

impl World {
    /// A life of this database, which holds `state`.
    pub fn new(
        db: Arc<Database>,
        device: SimulatedDevice,
        clock: SimulatedClock,
        state: State,
        habits: Habits,
        places: Places,
        chance: Chance,
    ) -> Rc<World> {
        let numbers = numbers::begin(&db);
        let steps = Steps::new(&db);
        steps.leave_memory(habits.memory_bytes);
        let mut model = Model::beginning_with(state);
        model.last = steps.last_commit();
        Rc::new(World {
            steps,
            db,
            device,
            clock,
            model: RefCell::new(model),
            habits,
            chance: RefCell::new(chance),
            sessions: RefCell::default(),
            failure: RefCell::default(),
            over: Cell::new(false),
            depth: Cell::new(0),
            idle: Cell::new(0),
            in_checkpoint: Cell::new(false),
            unstalled: Cell::new(0),
            durable: Cell::new(0),
            polled: RefCell::default(),
            calls: Cell::new(0),
            lies: Cell::new(habits.lies),
            stuck: Cell::new(false),
            numbers: RefCell::new(numbers),
            places,
            backing_up: Cell::new(false),
            backups: Cell::new(0),
            grown: Cell::new((0, 0)),
            errors: Cell::new(0),
        })
    }

    /// Lives until its turns are used up, the device halts or something is wrong.
    pub fn live(self: &Rc<Self>) {
        CURRENT.set(Some(self.clone()));
        self.device.set_stalls(self.habits.stalls);
        for _ in 0..self.habits.turns {
            if self.must_stop() {
                break;
            }
            self.turn();
            // Some mistakes are seen for as long as a snapshot is open, and no longer.
            if self.with_chance(|chance| chance.below(1000) < 3) {
                self.verify_alive();
            }
        }
        if self.percent(30) {
            self.verify_alive();
        }
        self.over.set(true);
    }

    /// Commits that the last checkpoint found durable.
    pub fn durable_commits(&self) -> usize {
        self.durable.get()
    }

    /// Lets everybody finish, so that the database can be closed.
    pub fn finish(self: &Rc<Self>) {
        // From here on the close makes the only checkpoint.
        self.in_checkpoint.set(true);
        for _ in 0..100_000 {
            let left = self.sessions.borrow().iter().any(Option::is_some);
            if !left || self.must_stop() {
                break;
            }
            self.turn();
        }
        self.device.set_stalls(false);
        let held = self.db.clients().report().changes;
        // A rollback that met an error is tried again later.
        if held > 0 && !self.must_stop() && !self.habits.faulty && self.habits.lies == 0 {
            self.fail(format!(
                "nobody is left, and {held} bytes of changes are charged"
            ));
        }
    }

    /// The end: nobody is left. The failure, if there was one.
    pub fn end(self: Rc<Self>) -> (Model, Option<String>) {
        self.over.set(true);
        CURRENT.set(None);
        let sessions = self.sessions.take();
        drop(sessions);
        (self.model.take(), self.failure.take())
    }

    /// Prints what is done, if that is wanted.
    pub fn say(&self, what: impl FnOnce() -> String) {
        if self.habits.trace {
            for problem in self.db.take_problems() {
                println!("{:10} problem: {problem}", self.clock.now().as_micros());
            }
            println!("{:10} {}", self.clock.now().as_micros(), what());
        }
    }

    /// Something is wrong; the first thing counts.
    pub fn fail(&self, what: String) {
        self.failure.borrow_mut().get_or_insert(what);
    }

    pub fn has_failed(&self) -> bool {
        self.failure.borrow().is_some()
    }

    /// Whether nobody can go on.
    pub fn must_stop(&self) -> bool {
        self.device.is_halted() || self.has_failed() || self.stuck.get()
    }

    /// Whether sessions should come to an end.
    pub fn is_over(&self) -> bool {
        self.over.get() || self.device.is_halted()
    }

    pub fn now(&self) -> Duration {
        self.clock.now()
    }

    pub fn ids(&self) -> usize {
        self.habits.ids
    }

    pub fn below(&self, bound: usize) -> usize {
        self.chance.borrow_mut().below(bound)
    }

    pub fn percent(&self, percent: usize) -> bool {
        self.chance.borrow_mut().percent(percent)
    }

    pub fn with_chance<R>(&self, f: impl FnOnce(&mut Chance) -> R) -> R {
        f(&mut self.chance.borrow_mut())
    }

    /// What rows of a table are to be like for a transaction that made these drafts.
    pub fn shape(&self, slot: usize, drafts: &BTreeMap<usize, Draft>) -> Shape {
        let now = self.model.borrow().now.drafted(drafts);
        match &now.tables[slot] {
            Some(table) => table.shape.clone(),
            None => Shape {
                large: self.habits.large && self.percent(60),
                ..Shape::random(&mut self.chance.borrow_mut(), slot)
            },
        }
    }

    /// Lets others go on.
    pub async fn yield_now(&self) {
        let mut yielded = false;
        std::future::poll_fn(|context| {
            if yielded {
                return Poll::Ready(());
            }
            yielded = true;
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// Takes down the commit that this session has just made, if it made one.
    pub fn note_commit(&self, pending: &Pending) {
        let number = self.steps.last_commit();
        let mut model = self.model.borrow_mut();
        if number == model.last {
            return;
        }
        if number != model.last + 1 {
            self.fail(format!("commit {number} follows commit {}", model.last));
        }
        if let Some((isolation, view)) = pending.view.take() {
            self.check_serial(&model.now, isolation, &view);
        }
        let effects = pending.effects.borrow().clone();
        self.say(|| format!("session {} commit {number}: {effects:?}", pending.session));
        let log_end = self.steps.log_end();
        match model.commit(number, effects, pending.synchronous.get(), log_end) {
            Ok(place) => pending.committed.set(Some(place)),
            Err(wrong) => self.fail(wrong),
        }
    }

    /// Whether a transaction that commits now may have been alone.
    fn check_serial(&self, now: &State, isolation: Isolation, view: &View) {
        let row = |slot, id| now.row(slot, id).map(|stored| stored.row.clone());
        // Where it emptied a table its rows replace nothing.
        let drafted = now.drafted(&view.drafts);
        for ((slot, id), base) in &view.bases {
            if view.own(&(*slot, *id)).is_none() {
                continue;
            }
            let stored = drafted.row(*slot, *id).map(|stored| &stored.row);
            if stored != base.as_ref() {
                self.fail(format!(
                    "{isolation:?}: an update of t{slot} row {id} was lost"
                ));
            }
        }
        if isolation != Isolation::Serializable {
            return;
        }
        for ((slot, id), base) in &view.read_rows {
            if row(*slot, *id) != *base {
                self.fail(format!(
                    "t{slot} row {id} was read, changed by another, and the reader committed"
                ));
            }
        }
        for (slot, part, base) in &view.read_parts {
            if part.of(now, *slot) != *base {
                self.fail(format!(
                    "t{slot} {part:?} was read, changed by another, and the reader committed"
                ));
            }
        }
    }

    /// A commit whose maker was told that it is durable.
    pub fn acknowledge(&self, commit: usize) {
        if let Some(commit) = self.model.borrow_mut().commits.get_mut(commit) {
            commit.acknowledged = true;
        }
    }

    /// A commit that somebody saw who waits for what he sees.
    pub fn acknowledge_seen(&self, commit: usize) {
        if let Some(commit) = self.model.borrow_mut().commits.get_mut(commit) {
            commit.acknowledged |= commit.synchronous;
        }
    }

    pub fn background<T>(&self, of: &str, result: Result<T, Error>) {
        if let Err(error) = result {
            self.check_error(of, &error, false);
        }
    }

    fn verify_alive(&self) {
        if !self.device.is_halted() && !self.has_failed() {
            self.verify("in life");
        }
    }

    /// Checks that everything agrees with everything.
    pub fn verify(&self, when: &str) {
        match self.without_stalls(|| self.db.verify()) {
            Ok(found) if found.is_sound() || self.habits.faulty => {}
            Ok(found) => self.fail(format!("{when}: {}", found.problems.join("; "))),
            Err(error) => self.check_error("verifying", &error, false),
        }
    }

    /// Others go on while a background step pauses.
    pub fn others(self: &Rc<Self>) {
        if self.depth.get() >= DEPTH_MAX || self.must_stop() {
            return;
        }
        self.depth.set(self.depth.get() + 1);
        let turns = match self.percent(50) {
            true => 0,
            false => self.below(12),
        };
        for _ in 0..turns {
            if self.must_stop() {
                break;
            }
            self.turn();
        }
        self.depth.set(self.depth.get() - 1);
    }

    /// Somebody takes a turn.
    fn turn(self: &Rc<Self>) {
        let runnable: Vec<usize> = {
            let sessions = self.sessions.borrow();
            let woken = |s: &Option<Session>| {
                let session = s.as_ref();
                session.is_some_and(|s| s.woken.0.load(Ordering::Relaxed))
            };
            (0..sessions.len())
                .filter(|n| woken(&sessions[*n]))
                .collect()
        };
        self.clock
            .advance(Duration::from_micros(self.below(2000) as u64));
        let waiting = self.sessions.borrow().iter().any(Option::is_some);
        // A partition that is being brought may be waited for by all.
        if runnable.is_empty() && waiting && !self.steps.is_loading() {
            self.idle.set(self.idle.get() + 1);
            if self.idle.get() > IDLE_TURNS_MAX {
                if self.habits.lies > 0 {
                    // A rollback that needs a row which the device has lost never ends.
                    self.stuck.set(true);
                    return;
                }
                let sessions = self.sessions.borrow();
                let waiting: Vec<_> = sessions.iter().flatten().collect();
                let doing = waiting.iter().map(|s| s.pending.doing.get());
                self.fail(format!(
                    "nobody can go on, and {} reads stall; waiting: {}",
                    self.device.stalled_reads(),
                    doing.collect::<Vec<_>>().join(", ")
                ));
                return;
            }
        } else {
            self.idle.set(0);
        }
        if self.habits.faulty && self.percent(2) {
            self.strike();
        }
        if self.idle.get() >= IDLE_TURNS_MAX / 2 {
            // Waits may last as long as the device fails, and no longer.
            self.device.forget_faults();
            self.device.set_capacity_bytes(None);
        }
        if self.habits.backups > 0 && self.below(1000) < self.habits.backups {
            // A backup waits for all partitions, as a checkpoint does.
            return match self.percent(30) && self.steps.has_all_partitions() {
                true => self.back_up(),
                false => self.archive(),
            };
        }
        let per_mille = self.below(1000);
        if !self.steps.has_all_partitions() && self.percent(LOADS_PERCENT) {
            let loaded = self.without_stalls(|| self.steps.load());
            self.say(|| format!("loads: {loaded}"));
            return;
        }
        if per_mille < self.habits.checkpoints {
            // It waits for all partitions, and nobody else could go on here.
            if self.steps.has_all_partitions() && !self.in_checkpoint.replace(true) {
                self.say(|| "checkpoint".into());
                let checkpoint = block_on(self.db.checkpoint());
                if checkpoint.is_ok() {
                    self.model.borrow_mut().checkpointed = self.durable.get();
                }
                self.background("a checkpoint", checkpoint);
                self.say(|| "checkpoint ends".into());
                self.in_checkpoint.set(false);
            }
            return;
        }
        match self.below(100) {
            0..60 if !runnable.is_empty() => self.poll(runnable[self.below(runnable.len())]),
            60..74 => {
                self.steps.flush_log();
            }
            74..82 => {
                if self.device.let_go(self.below(64)) {
                    self.idle.set(0);
                }
            }
            82..84 => {
                let merged = self.steps.merge();
                self.say(|| format!("merge {merged:?}"));
                self.background("a merge", merged);
            }
            84..90 => {
                let evicted = self.steps.evict();
                self.say(|| format!("evict {evicted:?}"));
                self.background("eviction", evicted);
            }
            90..93 => {
                let compacted = self.steps.compact();
                self.say(|| format!("compact {compacted:?}"));
                self.background("compaction", compacted);
            }
            93..94 => {
                self.steps.collect_versions();
                if self.habits.faulty {
                    self.without_stalls(|| self.steps.finish_rollbacks());
                }
            }
            94..96 => {
                self.clock
                    .advance(Duration::from_millis(self.below(50) as u64));
                self.steps.tick();
            }
            96 if self.percent(20) => self.steps.leave_memory(self.habits.memory_bytes),
            96 => crate::columns::come_or_go(self),
            _ => self.spawn(),
        }
    }

    /// Does what waits for reads with nobody to end their stalls.
    pub fn without_stalls<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = self.unstalled.get();
        self.unstalled.set(before + 1);
        self.device.set_stalls(false);
        let done = work();
        self.unstalled.set(before);
        if before == 0 {
            self.device
                .set_stalls(self.habits.stalls && !self.over.get());
        }
        done
    }

    fn spawn(self: &Rc<Self>) {
        if self.over.get() {
            return;
        }
        let place = {
            let mut sessions = self.sessions.borrow_mut();
            let free = sessions.iter().position(Option::is_none);
            let place = free.unwrap_or(sessions.len());
            if place >= SESSIONS_MAX {
                return;
            }
            if place == sessions.len() {
                sessions.push(None);
            }
            place
        };
        let pending = Rc::new(Pending {
            session: place,
            ..Pending::default()
        });
        let future = client(self.clone(), self.db.clone(), pending.clone());
        let session = Session {
            future: Box::pin(future),
            pending,
            woken: Arc::new(Woken(AtomicBool::new(true))),
        };
        self.sessions.borrow_mut()[place] = Some(session);
    }

    fn poll(&self, place: usize) {
        let session = self.sessions.borrow_mut()[place].take();
        let Some(mut session) = session else {
            return;
        };
        session.woken.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(session.woken.clone());
        self.polled.replace(Some(session.pending.clone()));
        let polled = session
            .future
            .as_mut()
            .poll(&mut Context::from_waker(&waker));
        self.polled.take();
        let clients = self.db.clients().report();
        if clients.changes > clients.share + clients.share / 4 {
            self.fail(format!(
                "changes hold {} of {}",
                clients.changes, clients.share
            ));
        }
        self.note_commit(&session.pending);
        session.pending.note_conflict(&self.model.borrow().now);
        if polled.is_pending() {
            let mut sessions = self.sessions.borrow_mut();
            match &sessions[place] {
                None => sessions[place] = Some(session),
                // Somebody came while this one made a checkpoint.
                Some(_) => sessions.push(Some(session)),
            }
        }
    }
}
