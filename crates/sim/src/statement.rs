//! Statements of a session, run inside the database and compared at once with the model:
//! what is read must be what the model says that this transaction sees.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::rc::Rc;

use thermocline_engine::{Access, Direction, Error, Result, Table};
use thermocline_values::value::ValueRef;

use crate::model::{Draft, Effect, State};
use crate::schema::{Row, decode, encode, key};
use crate::world::World;

/// A statement's part.
#[derive(Clone, Debug)]
pub enum Op {
    /// Reads a row by its key.
    Get(i64),
    /// Writes a row, whether it is there or not.
    Put(i64, Rc<Row>),
    /// Writes a row that must not be there.
    Insert(i64, Rc<Row>),
    /// Deletes a row if it is there.
    Delete(i64),
    /// Gives a row another key.
    Move(i64, i64),
    /// Reads rows between two keys of an index (by position): ids or `a`.
    Range(usize, i64, i64, bool),
    /// Reads all rows.
    Scan,
}

impl Op {
    /// Whether it changes something.
    pub fn writes(&self) -> bool {
        !matches!(self, Op::Get(_) | Op::Range(..) | Op::Scan)
    }
}

/// A row of a table, by slot and key.
pub type Key = (usize, i64);

/// Rows with their keys, in order.
pub type KeyedRows = Vec<(i64, Rc<Row>)>;

/// What an interactive transaction has written and read.
#[derive(Default)]
pub struct View {
    /// Its own rows; `None`: deleted.
    pub own: BTreeMap<Key, Option<Rc<Row>>>,
    /// What was there when it first wrote a row.
    pub bases: BTreeMap<Key, Option<Rc<Row>>>,
    /// It inserted a key that its snapshot still has, from before a delete by another:
    /// from here on it sees both.
    pub strange: bool,
    /// Rows read, and what was there beside its own changes.
    pub read_rows: Vec<(Key, Option<Rc<Row>>)>,
    /// Tables read in part: slot, what part, and the rows beside its own changes.
    pub read_parts: Vec<(usize, Part, KeyedRows)>,
    /// What its definitions have made of tables.
    pub drafts: BTreeMap<usize, Draft>,
    /// Its definitions, in their order.
    pub definitions: Vec<Effect>,
}

/// What a savepoint keeps of a view. What was read stays read.
#[derive(Clone)]
pub struct Mark {
    own: BTreeMap<Key, Option<Rc<Row>>>,
    bases: BTreeMap<Key, Option<Rc<Row>>>,
    drafts: BTreeMap<usize, Draft>,
    definitions: Vec<Effect>,
}

/// Which rows a scan is about.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    Ids(i64, i64),
    A(i64, i64),
    All,
}

impl Part {
    fn has(self, id: i64, row: &Row) -> bool {
        match self {
            Part::Ids(low, high) => (low..=high).contains(&id),
            Part::A(low, high) => row.a.is_some_and(|a| (low..=high).contains(&i64::from(a))),
            Part::All => true,
        }
    }

    /// The rows of a state that it is about.
    pub fn of(self, state: &State, slot: usize) -> Vec<(i64, Rc<Row>)> {
        let rows = state.tables[slot].iter().flat_map(|table| &table.rows);
        rows.filter(|(id, stored)| self.has(**id, &stored.row))
            .map(|(id, stored)| (*id, stored.row.clone()))
            .collect()
    }
}

/// What a statement did, once it has run to its end.
#[derive(Default)]
pub struct Done {
    pub view: View,
    /// Commits of this life whose rows it saw.
    pub saw: Vec<usize>,
}

impl Done {
    /// The changes as effects of a commit.
    pub fn effects(&self, world: &World) -> Vec<Effect> {
        self.view.effects(&world.model.borrow().now)
    }
}

impl View {
    /// Its own image of a row: `None` where it has none, or has taken back what it had
    /// made itself, so that others' may be seen.
    pub fn own(&self, key: &Key) -> Option<&Option<Rc<Row>>> {
        let row = self.own.get(key)?;
        let made_here = self.bases.get(key).is_some_and(Option::is_none);
        (row.is_some() || !made_here).then_some(row)
    }

    /// What it is now.
    pub fn mark(&self) -> Mark {
        Mark {
            own: self.own.clone(),
            bases: self.bases.clone(),
            drafts: self.drafts.clone(),
            definitions: self.definitions.clone(),
        }
    }

    /// Takes it back.
    pub fn back_to(&mut self, mark: &Mark) {
        let mark = mark.clone();
        (self.own, self.bases) = (mark.own, mark.bases);
        (self.drafts, self.definitions) = (mark.drafts, mark.definitions);
    }

    /// Notes a definition of its own, which makes this of a table.
    pub fn define(&mut self, effect: Option<Effect>, slot: usize, draft: Draft) {
        if matches!(effect, Some(Effect::Drop(_) | Effect::Truncate(_))) {
            self.own.retain(|key, _| key.0 != slot);
            self.bases.retain(|key, _| key.0 != slot);
        }
        self.definitions.extend(effect);
        self.drafts.insert(slot, draft);
    }

    /// The changes as effects on this state.
    pub fn effects(&self, now: &State) -> Vec<Effect> {
        let mut effects = self.definitions.clone();
        let now = now.drafted(&self.drafts);
        for (slot, id) in self.own.keys() {
            let Some(row) = self.own(&(*slot, *id)) else {
                continue;
            };
            match row {
                Some(row) => effects.push(Effect::Put(*slot, *id, row.clone())),
                None if now.row(*slot, *id).is_some() => effects.push(Effect::Delete(*slot, *id)),
                None => {}
            }
        }
        effects
    }

    /// Adds what a statement did.
    pub fn absorb(&mut self, other: View) {
        // A base that was noted anew is of a row that was no longer its own.
        self.bases.extend(other.bases);
        self.own.extend(other.own);
        self.read_rows.extend(other.read_rows);
        self.read_parts.extend(other.read_parts);
        self.strange |= other.strange;
    }
}

/// Runs a statement on a table. `before` is what its transaction did until now.
pub fn run(
    access: &mut Access<'_>,
    world: &World,
    slot: usize,
    table: &Table,
    ops: &[Op],
    before: &View,
) -> Result<Done> {
    let sees = access.sees_up_to();
    let Some(state) = world.model.borrow().at(sees) else {
        world.fail(format!(
            "a transaction sees commit {sees:?}, which was given up"
        ));
        return Ok(Done::default());
    };
    let state = state.drafted(&before.drafts);
    let mut run = Run {
        world,
        slot,
        table,
        state,
        before,
        done: Done::default(),
    };
    for op in ops {
        if let Err(error) = run.op(access, op) {
            if !access.evicted() {
                run.check_violation(op, &error);
            }
            return Err(error);
        }
        if access.evicted() && op.writes() {
            // What follows would build on what was not read.
            break;
        }
    }
    Ok(run.done)
}

struct Run<'a> {
    world: &'a World,
    slot: usize,
    table: &'a Table,
    /// What the transaction sees beside its own changes.
    state: State,
    before: &'a View,
    done: Done,
}

impl Run<'_> {
    fn expected(&self, id: i64) -> Option<Rc<Row>> {
        let key = (self.slot, id);
        match self.own(&key) {
            Some(row) => row.clone(),
            None => self.base(id),
        }
    }

    /// The transaction's own image, by this statement or one before.
    fn own(&self, key: &Key) -> Option<&Option<Rc<Row>>> {
        let Some(row) = self.done.view.own.get(key) else {
            return self.before.own(key);
        };
        let bases = [&self.done.view.bases, &self.before.bases];
        let base = bases.into_iter().find_map(|bases| bases.get(key));
        let made_here = base.is_some_and(Option::is_none);
        (row.is_some() || !made_here).then_some(row)
    }

    fn base(&self, id: i64) -> Option<Rc<Row>> {
        self.state
            .row(self.slot, id)
            .map(|stored| stored.row.clone())
    }

    fn is_own(&self, id: i64) -> bool {
        self.own(&(self.slot, id)).is_some()
    }

    fn wrong(&self, what: String) {
        if self.done.view.strange {
            return;
        }
        self.world.fail(format!("t{}: {what}", self.slot));
    }

    /// The row with this key, compared with the model.
    fn find(
        &mut self,
        access: &mut Access<'_>,
        id: i64,
    ) -> Result<Option<thermocline_engine::RowId>> {
        let mut rows = Vec::new();
        access.find(self.table, 0, &key(self.table, id), &mut rows)?;
        if rows.len() > 1 {
            self.wrong(format!("key {id} leads to {} rows", rows.len()));
        }
        let mut found = None;
        if let Some(row) = rows.first() {
            found = access
                .tuple(self.table, *row)?
                .map(|tuple| decode(self.table, tuple));
        }
        if access.evicted() {
            return Ok(rows.first().copied());
        }
        self.compare(id, found);
        Ok(rows.first().copied())
    }

    /// Replaces the row with this key.
    fn overwrite(&mut self, access: &mut Access<'_>, id: i64, tuple: &[u8]) -> Result<bool> {
        let row = access.overwrite(self.table, 0, &key(self.table, id), tuple)?;
        self.check_there(access, id, row.is_some());
        Ok(row.is_some())
    }

    /// Compares with the model whether a row was there to be changed.
    fn check_there(&mut self, access: &Access<'_>, id: i64, found: bool) {
        if access.evicted() {
            return;
        }
        let there = self.expected(id).is_some();
        if found != there {
            self.wrong(format!("row {id} was changed: {found}, is there: {there}"));
        }
        self.note_seen(id);
    }

    fn compare(&mut self, id: i64, found: Option<Option<(i64, Row)>>) {
        let expected = self.expected(id);
        let same = match (&found, &expected) {
            (None, None) => true,
            (Some(Some((found_id, found))), Some(expected)) => {
                *found_id == id && expected.reads_as(found, self.state.missing(self.slot))
            }
            _ => false,
        };
        if !same {
            self.wrong(format!("row {id} reads {found:?}, and is {expected:?}"));
        }
        self.note_seen(id);
    }

    /// Whether nobody else can see what this transaction has in the table.
    fn is_emptied(&self) -> bool {
        let draft = self.before.drafts.get(&self.slot);
        draft.is_some_and(|draft| draft.emptied)
    }

    fn note_seen(&mut self, id: i64) {
        if !self.is_own(id) && !self.is_emptied() {
            let seen = self.state.row(self.slot, id);
            self.done.saw.extend(seen.and_then(|stored| stored.commit));
            let base = self.base(id);
            self.done.view.read_rows.push(((self.slot, id), base));
        }
    }

    fn note(&mut self, id: i64, row: Option<Rc<Row>>) {
        let key = (self.slot, id);
        if self.own(&key).is_none() {
            let base = self.base(id);
            self.done.view.bases.insert(key, base);
        }
        self.done.view.own.insert(key, row);
    }

    fn check_inserted(&mut self, access: &Access<'_>, id: i64) {
        let was = self.expected(id).is_some();
        if was && access.sees_up_to().is_none() {
            self.wrong(format!("row {id} was inserted twice"));
        }
        self.done.view.strange |= was;
    }

    fn op(&mut self, access: &mut Access<'_>, op: &Op) -> Result<()> {
        match op {
            Op::Get(id) => {
                let key = key(self.table, *id);
                let found = access.get(self.table, 0, &key)?;
                let found = found.map(|(_, tuple)| decode(self.table, tuple));
                if !access.evicted() {
                    self.compare(*id, found);
                }
            }
            Op::Put(id, row) => {
                let tuple = encode(self.table, *id, row);
                let found = if id % 2 == 0 {
                    self.overwrite(access, *id, &tuple)?
                } else {
                    let found = self.find(access, *id)?;
                    if let Some(found) = found {
                        access.update(self.table, found, &tuple)?;
                    }
                    found.is_some()
                };
                if access.evicted() {
                    return Ok(());
                }
                if !found {
                    access.insert(self.table, &tuple)?;
                }
                self.note(*id, Some(row.clone()));
            }
            Op::Insert(id, row) => {
                access.insert(self.table, &encode(self.table, *id, row))?;
                if !access.evicted() {
                    self.check_inserted(access, *id);
                }
                self.note(*id, Some(row.clone()));
            }
            Op::Delete(id) => {
                let found = if id % 2 == 0 {
                    let found = access.delete_by_key(self.table, 0, &key(self.table, *id))?;
                    self.check_there(access, *id, found);
                    found
                } else {
                    let found = self.find(access, *id)?;
                    if let Some(found) = found {
                        access.delete(self.table, found)?;
                    }
                    found.is_some()
                };
                if found {
                    self.note(*id, None);
                }
            }
            Op::Move(from, to) => {
                let row = self.expected(*from);
                if let Some(found) = self.find(access, *from)?
                    && let Some(row) = row
                {
                    access.update(self.table, found, &encode(self.table, *to, &row))?;
                    if !access.evicted() && from != to {
                        self.check_inserted(access, *to);
                    }
                    self.note(*from, None);
                    self.note(*to, Some(row));
                }
            }
            Op::Range(index, low, high, up) => self.range(access, *index, (*low, *high), *up)?,
            Op::Scan => {
                let mut found = Vec::new();
                access.scan(self.table, &mut |_, tuple| {
                    found.push(decode(self.table, tuple));
                    Ok(ControlFlow::Continue(()))
                })?;
                self.compare_part(access, Part::All, found);
            }
        }
        Ok(())
    }

    fn range(
        &mut self,
        access: &mut Access<'_>,
        index: usize,
        (low, high): (i64, i64),
        up: bool,
    ) -> Result<()> {
        let by_id = self.table.def.indexes[index].columns == [0];
        let key = |value: i64| {
            let mut key = Vec::new();
            let value = match by_id {
                true => ValueRef::BigInt(value),
                false => ValueRef::Integer(value as i32),
            };
            self.table.encode_index_key(index, &[value], &mut key);
            key
        };
        let (lower, upper) = (key(low), key(high));
        let direction = match up {
            true => Direction::Ascending,
            false => Direction::Descending,
        };
        let mut found = Vec::new();
        access.range(
            self.table,
            index,
            Bound::Included(&lower),
            Bound::Included(&upper),
            direction,
            &mut |_, tuple| {
                found.push(decode(self.table, tuple));
                Ok(ControlFlow::Continue(()))
            },
        )?;
        if access.evicted() {
            return Ok(());
        }
        let order: Vec<Option<i64>> = found
            .iter()
            .map(|row| {
                let (id, row) = row.as_ref()?;
                if by_id {
                    Some(*id)
                } else {
                    row.a.map(i64::from)
                }
            })
            .collect();
        let sorted = match up {
            true => order.is_sorted(),
            false => order.iter().rev().is_sorted(),
        };
        if !sorted {
            self.wrong(format!("a range is out of order: {order:?}"));
        }
        let part = match by_id {
            true => Part::Ids(low, high),
            false => Part::A(low, high),
        };
        self.compare_part(access, part, found);
        Ok(())
    }

    fn compare_part(&mut self, access: &Access<'_>, part: Part, found: Vec<Option<(i64, Row)>>) {
        if access.evicted() {
            return;
        }
        let base = part.of(&self.state, self.slot);
        let mut expected: BTreeMap<i64, Rc<Row>> = base.iter().cloned().collect();
        let keys = self.before.own.keys().chain(self.done.view.own.keys());
        for (slot, id) in keys {
            if *slot == self.slot
                && let Some(row) = self.own(&(*slot, *id))
            {
                expected.remove(id);
                if let Some(row) = row
                    && part.has(*id, row)
                {
                    expected.insert(*id, row.clone());
                }
            }
        }
        let count = found.len();
        let missing = self.state.missing(self.slot);
        let found: BTreeMap<i64, Row> = found.into_iter().flatten().collect();
        let same = found.len() == count
            && found.len() == expected.len()
            && found
                .iter()
                .all(|(id, row)| expected.get(id).is_some_and(|e| e.reads_as(row, missing)));
        if !same {
            let (found, expected): (Vec<_>, Vec<_>) =
                (found.keys().collect(), expected.keys().collect());
            self.wrong(format!(
                "{part:?} reads {count} rows {found:?}, and is {expected:?} (own {:?})",
                self.before.own.keys().collect::<Vec<_>>()
            ));
        }
        for (id, _) in &base {
            let seen = self.state.row(self.slot, *id);
            self.done.saw.extend(seen.and_then(|stored| stored.commit));
        }
        if !self.is_emptied() {
            self.done.view.read_parts.push((self.slot, part, base));
        }
    }

    /// A unique violation must have a reason.
    fn check_violation(&self, op: &Op, error: &Error) {
        if !matches!(error, Error::UniqueViolation { .. }) {
            return;
        }
        let (id, row, itself) = match op {
            Op::Put(id, row) => (*id, row.clone(), Some(*id)),
            Op::Insert(id, row) => (*id, row.clone(), None),
            Op::Move(from, to) => match self.expected(*from) {
                Some(row) => (*to, row, Some(*from)),
                None => return,
            },
            _ => {
                self.wrong(format!("{op:?} violates a unique index"));
                return;
            }
        };
        // What is stored now counts, not what a snapshot sees.
        let now = self.world.model.borrow().now.drafted(&self.before.drafts);
        let own = |id: i64| self.own(&(self.slot, id));
        let Some(table) = &now.tables[self.slot] else {
            return;
        };
        let stored = table.rows.iter().filter(|(id, _)| own(**id).is_none());
        let stored = stored.map(|(id, stored)| (*id, stored.row.clone()));
        let keys = self.before.own.keys().chain(self.done.view.own.keys());
        let mine = keys.filter_map(|(slot, id)| {
            let row = self.own(&(*slot, *id))?.clone();
            Some((*id, row.filter(|_| *slot == self.slot)?))
        });
        let unique_u = table.shape.unique_u();
        let conflict = stored.chain(mine).any(|(other, other_row)| {
            (other == id && itself != Some(id))
                || (unique_u
                    && row.u.is_some()
                    && other_row.u == row.u
                    && Some(other) != itself
                    && other != id)
        });
        // A snapshot may not see the row that is in the way of an insert.
        let hidden = matches!(op, Op::Put(..)) && table.rows.contains_key(&id);
        if !conflict && !hidden {
            self.wrong(format!(
                "{op:?} violates a unique index for no reason: {error}"
            ));
        }
    }
}
