//! What the database ought to hold: the commits in the order of the log, and the state
//! after each.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::numbers::SEQUENCES;
use crate::schema::{IndexShape, Row, SLOTS, Shape};

/// What a commit does.
#[derive(Clone, Debug)]
pub enum Effect {
    Put(usize, i64, Rc<Row>),
    Delete(usize, i64),
    Create(usize, Shape),
    Drop(usize),
    Truncate(usize),
    AddIndex(usize, IndexShape),
    DropIndex(usize, String),
    /// And what rows from before have there.
    AddColumn(usize, Option<i32>),
    /// A sequence is made, with this object id, or dropped.
    Sequence(usize, Option<u32>),
}

/// A row and the commit that wrote it.
#[derive(Clone, Debug)]
pub struct Stored {
    pub row: Rc<Row>,
    /// Its number in this life; `None`: it was there before.
    pub commit: Option<usize>,
}

/// A table's shape and rows.
#[derive(Clone, Debug)]
pub struct TableState {
    pub shape: Shape,
    /// The engine's number of the commit that made it: DROP and CREATE are seen by everybody,
    /// whatever his snapshot.
    pub made_by: u64,
    pub rows: BTreeMap<i64, Stored>,
}

/// What an open transaction has made of a table.
#[derive(Clone, Debug)]
pub struct Draft {
    /// None: dropped.
    pub shape: Option<Shape>,
    /// It has none of the rows that others see in it.
    pub emptied: bool,
    /// It was written anew: the table as it was then. Until its end the transaction sees this,
    /// and not what its snapshot has, and nobody changes it.
    pub renewed: Option<Rc<TableState>>,
}

/// All tables. Copies share what is equal.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub tables: [Option<Rc<TableState>>; SLOTS],
    /// Object ids of the sequences.
    pub sequences: [Option<u32>; SEQUENCES],
}

impl State {
    /// A row.
    pub fn row(&self, slot: usize, id: i64) -> Option<&Stored> {
        self.tables[slot].as_ref()?.rows.get(&id)
    }

    /// What rows that were written before have in the columns that were added to a table.
    pub fn missing(&self, slot: usize) -> &[Option<i32>] {
        self.tables[slot]
            .as_ref()
            .map_or(&[], |table| &table.shape.added)
    }

    /// What a transaction that saw this state sees by its own definitions.
    pub fn drafted(&self, drafts: &BTreeMap<usize, Draft>) -> State {
        let mut seen = self.clone();
        for (slot, draft) in drafts {
            let before = seen.tables[*slot].take();
            let before = draft.renewed.clone().or(before);
            let before = before.filter(|_| !draft.emptied);
            seen.tables[*slot] = draft.shape.as_ref().map(|shape| {
                Rc::new(TableState {
                    shape: shape.clone(),
                    made_by: before.as_ref().map_or(0, |table| table.made_by),
                    rows: before.map_or(BTreeMap::new(), |table| table.rows.clone()),
                })
            });
        }
        seen
    }

    /// The same, as a new life finds it.
    fn of_before(&self) -> State {
        let table = |table: &Rc<TableState>| {
            let mut table = (**table).clone();
            table.made_by = 0;
            for stored in table.rows.values_mut() {
                stored.commit = None;
            }
            Rc::new(table)
        };
        State {
            tables: self.tables.each_ref().map(|t| t.as_ref().map(table)),
            sequences: self.sequences,
        }
    }

    /// What a transaction that saw this state finds after later definitions: a table
    /// that was made since has no row for it. One that was emptied since it must not read.
    pub fn under(&self, now: &State) -> State {
        let mut seen = self.clone();
        for (slot, now) in now.tables.iter().enumerate() {
            let made_by = |table: &Option<Rc<TableState>>| table.as_ref().map(|t| t.made_by);
            if let (Some(seen), Some(now)) = (&mut seen.tables[slot], now)
                && seen.made_by == now.made_by
                && seen.shape != now.shape
            {
                Rc::make_mut(seen).shape.clone_from(&now.shape);
            }
            if made_by(&seen.tables[slot]) != made_by(now) {
                seen.tables[slot] = now.as_ref().map(|now| {
                    Rc::new(TableState {
                        shape: now.shape.clone(),
                        made_by: now.made_by,
                        rows: BTreeMap::new(),
                    })
                });
            }
        }
        seen
    }

    fn table_mut(&mut self, slot: usize) -> Option<&mut TableState> {
        self.tables[slot].as_mut().map(Rc::make_mut)
    }

    /// Applies an effect; an error when it cannot be what a database did.
    fn apply(&mut self, effect: &Effect, place: usize, number: u64) -> Result<(), String> {
        match effect {
            Effect::Put(slot, id, row) => {
                let table = self
                    .table_mut(*slot)
                    .ok_or_else(|| format!("a row was written to t{slot}, which is not there"))?;
                if table.shape.unique_u()
                    && let Some(u) = row.u
                    && let Some((other, _)) = table
                        .rows
                        .iter()
                        .find(|(other, stored)| *other != id && stored.row.u == Some(u))
                {
                    return Err(format!("t{slot}: rows {other} and {id} both have u = {u}"));
                }
                table.rows.insert(
                    *id,
                    Stored {
                        row: row.clone(),
                        commit: Some(place),
                    },
                );
            }
            Effect::Delete(slot, id) => {
                let table = self.table_mut(*slot);
                if table.and_then(|table| table.rows.remove(id)).is_none() {
                    return Err(format!("t{slot}: row {id} was deleted and was not there"));
                }
            }
            Effect::Create(slot, shape) => {
                if self.tables[*slot].is_some() {
                    return Err(format!("t{slot} was made twice"));
                }
                self.tables[*slot] = Some(Rc::new(TableState {
                    shape: shape.clone(),
                    made_by: number,
                    rows: BTreeMap::new(),
                }));
            }
            Effect::Sequence(number, oid) => self.sequences[*number] = *oid,
            Effect::Drop(slot) => self.tables[*slot] = None,
            Effect::Truncate(slot) => {
                if let Some(table) = self.table_mut(*slot) {
                    table.rows.clear();
                }
            }
            Effect::AddIndex(slot, index) => {
                if let Some(table) = self.table_mut(*slot) {
                    table.shape.indexes.push(index.clone());
                }
            }
            Effect::DropIndex(slot, name) => {
                if let Some(table) = self.table_mut(*slot) {
                    table.shape.indexes.retain(|index| index.name != *name);
                }
            }
            Effect::AddColumn(slot, missing) => {
                if let Some(table) = self.table_mut(*slot) {
                    table.shape.added.push(*missing);
                }
            }
        }
        Ok(())
    }

    /// Deletes first: a row may take what another one of the same commit gives up.
    fn apply_all(&mut self, effects: &[Effect], place: usize, number: u64) -> Result<(), String> {
        let is_delete = |effect: &&Effect| matches!(effect, Effect::Delete(..));
        for effect in effects.iter().filter(is_delete) {
            self.apply(effect, place, number)?;
        }
        // Likewise what a row leaves when it is written anew.
        for effect in effects {
            if let Effect::Put(slot, id, _) = effect
                && let Some(table) = self.table_mut(*slot)
                && let Some(stored) = table.rows.get_mut(id)
            {
                let mut row = (*stored.row).clone();
                row.u = None;
                stored.row = Rc::new(row);
            }
        }
        for effect in effects.iter().filter(|effect| !is_delete(effect)) {
            self.apply(effect, place, number)?;
        }
        Ok(())
    }
}

/// A commit.
#[derive(Debug)]
pub struct Commit {
    pub effects: Vec<Effect>,
    /// Whoever made or saw it was told that it is durable.
    pub acknowledged: bool,
    /// It was made to be durable before it is acknowledged.
    pub synchronous: bool,
    /// The log's end when it was taken down: its record ends there or before, and behind that of
    /// the commit before it.
    pub log_end: u64,
}

/// The commits of a life, from one start of the database to its end.
#[derive(Debug, Default)]
pub struct Model {
    begin: State,
    pub now: State,
    pub commits: Vec<Commit>,
    /// How many commits the log has according to the last checkpoint's manifest.
    pub checkpointed: usize,
    /// The engine's number of the last commit.
    pub last: u64,
    /// States that open transactions may see, by the engine's number.
    versions: BTreeMap<u64, State>,
    /// Transactions that may look back.
    pub open: usize,
}

impl Model {
    /// The model of a life that begins with this state.
    pub fn beginning_with(state: State) -> Model {
        Model {
            begin: state.of_before(),
            now: state.of_before(),
            ..Model::default()
        }
    }

    /// A transaction begins that may look back to now.
    pub fn begin_transaction(&mut self) {
        if self.open == 0 {
            self.versions.clear();
        }
        self.open += 1;
        self.versions.insert(self.last, self.now.clone());
    }

    /// It has ended.
    pub fn end_transaction(&mut self) {
        self.open -= 1;
    }

    /// The state after the engine's commit of this number.
    pub fn at(&self, number: Option<u64>) -> Option<State> {
        match number {
            None => Some(self.now.clone()),
            Some(number) if number == self.last => Some(self.now.clone()),
            Some(number) => Some(self.versions.get(&number)?.under(&self.now)),
        }
    }

    /// Takes down a commit: its number in this life.
    pub fn commit(
        &mut self,
        number: u64,
        effects: Vec<Effect>,
        synchronous: bool,
        log_end: u64,
    ) -> Result<usize, String> {
        let place = self.commits.len();
        let applied = self.now.apply_all(&effects, place, number);
        self.last = number;
        if self.open > 0 {
            self.versions.insert(number, self.now.clone());
        }
        self.commits.push(Commit {
            effects,
            acknowledged: false,
            synchronous,
            log_end,
        });
        applied.map(|()| place)
    }

    /// How many commits must be there after a crash.
    pub fn acknowledged(&self) -> usize {
        let last = self.commits.iter().rposition(|c| c.acknowledged);
        last.map_or(0, |last| last + 1)
    }

    /// How many commits a log has that ends at `lsn`: at least, and at most.
    pub fn commits_at(&self, lsn: u64) -> (usize, usize) {
        let least = self.commits.partition_point(|commit| commit.log_end <= lsn);
        let begins = |place: usize| {
            place
                .checked_sub(1)
                .map(|before| self.commits[before].log_end)
        };
        let most = (0..self.commits.len())
            .take_while(|place| begins(*place).is_none_or(|begins| begins < lsn))
            .count();
        (least, most.max(least))
    }

    /// The states that may be found after a crash, from the one with `from` commits on.
    pub fn prefixes(&self, from: usize) -> impl Iterator<Item = State> + '_ {
        let mut state = self.begin.clone();
        for (place, commit) in self.commits.iter().enumerate().take(from) {
            let _ = state.apply_all(&commit.effects, place, 0);
        }
        let mut next = from;
        let mut first = true;
        std::iter::from_fn(move || {
            if !first {
                let commit = self.commits.get(next)?;
                let _ = state.apply_all(&commit.effects, next, 0);
                next += 1;
            }
            first = false;
            Some(state.clone())
        })
    }
}
