//! Joining what is in FROM. Inner items are taken in the order that keeps the
//! rows few: first what is smallest after its own conditions, then whatever is
//! connected to what is there by an equality (joined by hashing), a cross
//! product only when nothing else is left. A condition is applied as soon as
//! all it looks at is there. Left joins follow in the order they were written.

use std::collections::{BTreeSet, HashMap};

use super::eval::{Frame, evaluate};
use super::expr::Expr;
use super::plan::{Condition, From, Item, LeftJoin, Side, Source};
use super::run::{Rows, Run};
use crate::error::Result;
use crate::pg_catalog::datum::Datum;

impl Run<'_> {
    /// The joined rows of a FROM clause that satisfy its conditions.
    pub(crate) fn from(&self, from: &From, outer: Option<&Frame<'_>>) -> Result<Rows> {
        let mut there: BTreeSet<usize> = BTreeSet::new();
        let mut pending: Vec<&Condition> = from.conditions.iter().collect();
        let mut rows: Rows = vec![vec![Datum::Null; from.width]];
        rows = self.filter(rows, &mut pending, &there, outer)?;

        // The rows of items that do not depend on others, by their own conditions.
        let mut waiting: Vec<(&Item, Option<Rows>)> = Vec::new();
        for item in &from.inner {
            if !item.needs.is_empty() {
                waiting.push((item, None));
                continue;
            }
            let columns: BTreeSet<usize> = (item.offset..item.offset + item.width).collect();
            let mut own: Vec<&Condition> = pending
                .iter()
                .copied()
                .filter(|condition| condition.uses.is_subset(&columns))
                .collect();
            let found = self.item_rows(item, &[], from.width, outer)?;
            let found = self.filter(found, &mut own, &columns, outer)?;
            waiting.push((item, Some(found)));
        }
        while !waiting.is_empty() {
            let next = choose(&waiting, &pending, &there);
            let (item, found) = waiting.remove(next);
            rows = match found {
                Some(found) => self.join(rows, item, &found, &pending, &there, outer)?,
                None => self.join_dependent(rows, item, from.width, outer)?,
            };
            there.extend(item.offset..item.offset + item.width);
            rows = self.filter(rows, &mut pending, &there, outer)?;
        }
        for join in &from.left {
            rows = self.left_join(rows, join, from.width, outer)?;
            there.extend(join.item.offset..join.item.offset + join.item.width);
            rows = self.filter(rows, &mut pending, &there, outer)?;
        }
        Ok(rows)
    }

    /// Applies the conditions whose columns are all there, and drops them.
    fn filter(
        &self,
        rows: Rows,
        pending: &mut Vec<&Condition>,
        there: &BTreeSet<usize>,
        outer: Option<&Frame<'_>>,
    ) -> Result<Rows> {
        let (ready, rest): (Vec<&Condition>, Vec<&Condition>) = pending
            .iter()
            .partition(|condition| condition.uses.is_subset(there));
        *pending = rest;
        if ready.is_empty() {
            return Ok(rows);
        }
        self.work(rows.len() as u64)?;
        let mut kept = Vec::new();
        for row in rows {
            if self.holds(&ready, &row, outer)? {
                kept.push(row);
            }
        }
        Ok(kept)
    }

    fn holds(
        &self,
        conditions: &[&Condition],
        row: &[Datum],
        outer: Option<&Frame<'_>>,
    ) -> Result<bool> {
        let frame = Frame::of(row, outer);
        for condition in conditions {
            if !evaluate(&condition.expr, &frame, self)?.is_true() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The rows of an item, each as wide as the whole row, over `row`'s values.
    fn item_rows(
        &self,
        item: &Item,
        row: &[Datum],
        width: usize,
        outer: Option<&Frame<'_>>,
    ) -> Result<Rows> {
        let placed = |values: &[Datum]| {
            let mut full = if row.is_empty() {
                vec![Datum::Null; width]
            } else {
                row.to_vec()
            };
            for (at, value) in values.iter().take(item.width).enumerate() {
                full[item.offset + at] = value.clone();
            }
            full
        };
        let rows: Rows = match &item.source {
            Source::Relation(relation) => {
                let content = self.session().content(relation)?;
                content.iter().map(|values| placed(values)).collect()
            }
            Source::Cte(id) => self.cte(*id).iter().map(|values| placed(values)).collect(),
            Source::Query(plan) => {
                let frame = Frame::of(row, outer);
                let found = self.query(plan, Some(&frame))?;
                found.iter().map(|values| placed(values)).collect()
            }
            Source::Joined(from) => {
                // A tree's rows have its columns where the whole row has them.
                let found = self.from(from, outer)?;
                found
                    .iter()
                    .map(|values| placed(values.get(item.offset..).unwrap_or_default()))
                    .collect()
            }
            Source::Functions { calls, ordinality } => {
                let frame = Frame::of(row, outer);
                let lists = calls
                    .iter()
                    .map(|call| super::set_returning::rows(call, &frame, self))
                    .collect::<Result<Vec<_>>>()?;
                let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
                (0..longest)
                    .map(|turn| {
                        let mut values: Vec<Datum> = Vec::with_capacity(item.width);
                        for (call, list) in calls.iter().zip(&lists) {
                            match list.get(turn) {
                                Some(row) => values.extend(row.iter().cloned()),
                                None => {
                                    let types: Vec<_> =
                                        call.arguments.iter().map(|(_, t)| *t).collect();
                                    let width = call.function.columns("", &types).len();
                                    values.extend(std::iter::repeat_n(Datum::Null, width));
                                }
                            }
                        }
                        if *ordinality {
                            values.push(Datum::Int(turn as i64 + 1));
                        }
                        placed(&values)
                    })
                    .collect()
            }
        };
        self.work(rows.len() as u64)?;
        Ok(rows)
    }

    /// Joins `rows` with the rows of an item, by hashing where an equality
    /// connects them.
    fn join(
        &self,
        rows: Rows,
        item: &Item,
        found: &Rows,
        pending: &[&Condition],
        there: &BTreeSet<usize>,
        outer: Option<&Frame<'_>>,
    ) -> Result<Rows> {
        let columns: BTreeSet<usize> = (item.offset..item.offset + item.width).collect();
        let keys: Vec<(&Expr, &Expr)> = pending
            .iter()
            .filter_map(|condition| connection(condition, there, &columns))
            .collect();
        let mut joined = Vec::new();
        if keys.is_empty() {
            for row in &rows {
                self.work(found.len() as u64)?;
                joined.extend(found.iter().map(|other| merged(row, other, item)));
            }
            return Ok(joined);
        }
        let table = self.hash(found, keys.iter().map(|(_, new)| *new), outer)?;
        for row in &rows {
            let frame = Frame::of(row, outer);
            let key = keys
                .iter()
                .map(|(old, _)| evaluate(old, &frame, self))
                .collect::<Result<Vec<_>>>()?;
            let matches = table.get(&key).map_or(&[][..], Vec::as_slice);
            self.work(1 + matches.len() as u64)?;
            joined.extend(matches.iter().map(|&at| merged(row, &found[at], item)));
        }
        Ok(joined)
    }

    /// The positions of rows by their keys; rows with a NULL in the key match
    /// nothing.
    fn hash<'e>(
        &self,
        rows: &Rows,
        keys: impl Iterator<Item = &'e Expr> + Clone,
        outer: Option<&Frame<'_>>,
    ) -> Result<HashMap<Vec<Datum>, Vec<usize>>> {
        let mut table: HashMap<Vec<Datum>, Vec<usize>> = HashMap::new();
        self.work(rows.len() as u64)?;
        for (at, row) in rows.iter().enumerate() {
            let frame = Frame::of(row, outer);
            let key = keys
                .clone()
                .map(|key| evaluate(key, &frame, self))
                .collect::<Result<Vec<_>>>()?;
            if !key.iter().any(Datum::is_null) {
                table.entry(key).or_default().push(at);
            }
        }
        Ok(table)
    }

    fn join_dependent(
        &self,
        rows: Rows,
        item: &Item,
        width: usize,
        outer: Option<&Frame<'_>>,
    ) -> Result<Rows> {
        let mut joined = Vec::new();
        for row in &rows {
            joined.extend(self.item_rows(item, row, width, outer)?);
        }
        Ok(joined)
    }

    fn left_join(
        &self,
        rows: Rows,
        join: &LeftJoin,
        width: usize,
        outer: Option<&Frame<'_>>,
    ) -> Result<Rows> {
        let item = &join.item;
        let columns: BTreeSet<usize> = (item.offset..item.offset + item.width).collect();
        let there: BTreeSet<usize> = (0..width).filter(|at| !columns.contains(at)).collect();
        let conditions: Vec<&Condition> = join.conditions.iter().collect();
        let keys: Vec<(&Expr, &Expr)> = conditions
            .iter()
            .filter_map(|condition| connection(condition, &there, &columns))
            .collect();
        let dependent = !item.needs.is_empty();
        let found = if dependent {
            Vec::new()
        } else {
            self.item_rows(item, &[], width, outer)?
        };
        let table = self.hash(&found, keys.iter().map(|(_, new)| *new), outer)?;
        let all: Vec<usize> = (0..found.len()).collect();
        let mut joined = Vec::new();
        for row in rows {
            let before = joined.len();
            if dependent {
                for candidate in self.item_rows(item, &row, width, outer)? {
                    if self.holds(&conditions, &candidate, outer)? {
                        joined.push(candidate);
                    }
                }
            } else {
                let candidates = if keys.is_empty() {
                    &all
                } else {
                    let frame = Frame::of(&row, outer);
                    let key = keys
                        .iter()
                        .map(|(old, _)| evaluate(old, &frame, self))
                        .collect::<Result<Vec<_>>>()?;
                    match table.get(&key) {
                        Some(matches) => matches,
                        None => {
                            self.work(1)?;
                            joined.push(row);
                            continue;
                        }
                    }
                };
                self.work(1 + candidates.len() as u64)?;
                for &at in candidates {
                    let candidate = merged(&row, &found[at], item);
                    if self.holds(&conditions, &candidate, outer)? {
                        joined.push(candidate);
                    }
                }
            }
            if joined.len() == before {
                joined.push(row);
            }
        }
        Ok(joined)
    }
}

fn merged(row: &[Datum], other: &[Datum], item: &Item) -> Vec<Datum> {
    let mut full = row.to_vec();
    let columns = item.offset..item.offset + item.width;
    full[columns.clone()].clone_from_slice(&other[columns]);
    full
}

/// For an equality between what is there and an item's columns: the side that
/// looks at what is there, and the item's.
fn connection<'c>(
    condition: &'c Condition,
    there: &BTreeSet<usize>,
    columns: &BTreeSet<usize>,
) -> Option<(&'c Expr, &'c Expr)> {
    let (left, right) = condition.equality.as_ref()?;
    let old = |side: &Side| side.uses.is_subset(there);
    let new = |side: &Side| !side.uses.is_empty() && side.uses.is_subset(columns);
    if old(left) && new(right) {
        Some((&left.expr, &right.expr))
    } else if old(right) && new(left) {
        Some((&right.expr, &left.expr))
    } else {
        None
    }
}

/// The item to join next.
fn choose(
    waiting: &[(&Item, Option<Rows>)],
    pending: &[&Condition],
    there: &BTreeSet<usize>,
) -> usize {
    let cost = |(item, found): &(&Item, Option<Rows>)| -> (u8, usize) {
        match found {
            // What depends on others is read once a row, when they are there.
            None if item.needs.is_subset(there) => (1, 0),
            None => (4, 0),
            Some(found) => {
                let columns: BTreeSet<usize> = (item.offset..item.offset + item.width).collect();
                let connected = pending
                    .iter()
                    .any(|condition| connection(condition, there, &columns).is_some());
                let class = match (there.is_empty(), connected) {
                    (true, _) | (_, true) => 0,
                    _ if found.len() <= 1 => 0,
                    _ => 2,
                };
                (class, found.len())
            }
        }
    };
    (0..waiting.len())
        .min_by_key(|&at| cost(&waiting[at]))
        .unwrap_or(0)
}
