//! Running bound queries.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::WORK_MAX;
use super::eval::{Frame, aggregates, evaluate};
use super::expr::{Expr, Order};
use super::plan::{
    Body, Cte, Distinct, QueryPlan, Select, SetOperation, WindowCall, WindowFunction,
};
use super::text::Names;
use crate::error::{Result, SqlError};
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::session::SystemSession;

/// Values from here on are counted, in bytes.
const LARGE_VALUE_BYTES: u64 = 64 << 10;
/// The share of memory that large values may take: one part of so many.
const MADE_SHARE_DIVISOR: u64 = 8;

/// Rows of a query.
pub(crate) type Rows = Vec<Vec<Datum>>;

/// A setting that the query asks to change.
#[derive(Debug, Clone)]
pub(crate) struct SettingRequest {
    pub name: String,
    pub value: String,
    pub local: bool,
}

/// One run of a statement.
pub(crate) struct Run<'a> {
    session: &'a SystemSession<'a>,
    parameters: Vec<Datum>,
    ctes: RefCell<HashMap<usize, Arc<Rows>>>,
    settings: RefCell<Vec<SettingRequest>>,
    work: Cell<u64>,
    /// Bytes of the large values that were made.
    made: Cell<u64>,
}

impl<'a> Run<'a> {
    pub(crate) fn new(session: &'a SystemSession<'a>, parameters: Vec<Datum>) -> Self {
        Self {
            session,
            parameters,
            ctes: RefCell::default(),
            settings: RefCell::default(),
            work: Cell::new(0),
            made: Cell::new(0),
        }
    }

    pub(crate) fn session(&self) -> &'a SystemSession<'a> {
        self.session
    }

    pub(crate) fn names(&self) -> &dyn Names {
        self.session
    }

    pub(crate) fn parameters(&self) -> &[Datum] {
        &self.parameters
    }

    pub(crate) fn cte(&self, id: usize) -> Arc<Rows> {
        self.ctes.borrow().get(&id).cloned().unwrap_or_default()
    }

    pub(crate) fn request_setting(&self, request: SettingRequest) {
        self.settings.borrow_mut().push(request);
    }

    /// The value that an earlier `set_config` of this query has given.
    pub(crate) fn requested_setting(&self, name: &str) -> Option<String> {
        self.settings
            .borrow()
            .iter()
            .rev()
            .find(|request| request.name.eq_ignore_ascii_case(name))
            .map(|request| request.value.clone())
    }

    pub(crate) fn take_settings(&self) -> Vec<SettingRequest> {
        self.settings.take()
    }

    /// Counts rows and calls, so that no query of the catalogs runs away.
    pub(crate) fn work(&self, amount: u64) -> Result<()> {
        let work = self.work.get() + amount;
        self.work.set(work);
        if work > WORK_MAX {
            return Err(SqlError::new(
                "54000",
                format!("a system catalog query goes through more than {WORK_MAX} rows"),
            ));
        }
        Ok(())
    }

    /// Counts a value of so many bytes, if it is large.
    ///
    /// # Errors
    /// 53200 where large values take too much of memory.
    pub(crate) fn made(&self, bytes: u64) -> Result<()> {
        if bytes < LARGE_VALUE_BYTES {
            return Ok(());
        }
        self.room(bytes)?;
        self.made.set(self.made.get().saturating_add(bytes));
        Ok(())
    }

    /// Whether there is room for so many bytes beside the values that were made.
    ///
    /// # Errors
    /// As [`Self::made`].
    pub(crate) fn room(&self, bytes: u64) -> Result<()> {
        let made = self.made.get().saturating_add(bytes);
        if made > self.session.db.memory_limit() / MADE_SHARE_DIVISOR {
            return Err(
                SqlError::new("53200", "out of memory for a system catalog query")
                    .with_detail(format!("Its values take {made} bytes."))
                    .with_hint("Raise memory_limit, or have the query make shorter values."),
            );
        }
        Ok(())
    }

    /// The rows of `plan`.
    pub(crate) fn query(&self, plan: &QueryPlan, outer: Option<&Frame<'_>>) -> Result<Rows> {
        for cte in &plan.ctes {
            let rows = self.common_table(cte, outer)?;
            self.ctes.borrow_mut().insert(cte.id, rows);
        }
        let mut rows = match &plan.body {
            Body::Select(select) => self.select(select, outer)?,
            Body::Nested(plan) => self.query(plan, outer)?,
            Body::Values(lists) => {
                let frame = Frame::of(&[], outer);
                lists
                    .iter()
                    .map(|list| {
                        list.iter()
                            .map(|expr| evaluate(expr, &frame, self))
                            .collect()
                    })
                    .collect::<Result<Rows>>()?
            }
            Body::Set {
                operation,
                all,
                left,
                right,
            } => {
                let left = self.query(left, outer)?;
                let right = self.query(right, outer)?;
                combine(*operation, *all, left, right)
            }
        };
        if !plan.order.is_empty() {
            rows = self.sort(rows, &plan.order, outer)?;
        }
        let count = |expr: &Option<Expr>| -> Result<Option<usize>> {
            let Some(expr) = expr else { return Ok(None) };
            let value = evaluate(expr, &Frame::of(&[], outer), self)?;
            match value.as_int() {
                None => Ok(None),
                Some(count) => usize::try_from(count)
                    .map(Some)
                    .map_err(|_| SqlError::new("2201W", "LIMIT must not be negative")),
            }
        };
        if let Some(offset) = count(&plan.offset)? {
            rows.drain(..offset.min(rows.len()));
        }
        if let Some(limit) = count(&plan.limit)? {
            rows.truncate(limit);
        }
        Ok(rows)
    }

    fn common_table(&self, cte: &Cte, outer: Option<&Frame<'_>>) -> Result<Arc<Rows>> {
        let mut rows = self.query(&cte.start, outer)?;
        let Some((step, keep_duplicates)) = &cte.step else {
            return Ok(Arc::new(rows));
        };
        let mut seen: HashSet<Vec<Datum>> = HashSet::new();
        if !keep_duplicates {
            rows.retain(|row| seen.insert(row.clone()));
        }
        let mut working = Arc::new(rows.clone());
        while !working.is_empty() {
            self.ctes.borrow_mut().insert(cte.id, working);
            let mut found = self.query(step, outer)?;
            if !keep_duplicates {
                found.retain(|row| seen.insert(row.clone()));
            }
            self.work(1 + found.len() as u64)?;
            rows.extend(found.iter().cloned());
            working = Arc::new(found);
        }
        Ok(Arc::new(rows))
    }

    fn sort(&self, rows: Rows, order: &[Order], outer: Option<&Frame<'_>>) -> Result<Rows> {
        let mut keyed = rows
            .into_iter()
            .map(|row| {
                let keys = self.keys(order, &Frame::of(&row, outer))?;
                Ok((keys, row))
            })
            .collect::<Result<Vec<_>>>()?;
        keyed.sort_by(|a, b| order_key(order, &a.0, &b.0));
        Ok(keyed.into_iter().map(|(_, row)| row).collect())
    }

    fn keys(&self, order: &[Order], frame: &Frame<'_>) -> Result<Vec<Datum>> {
        order
            .iter()
            .map(|order| evaluate(&order.expr, frame, self))
            .collect()
    }

    fn select(&self, select: &Select, outer: Option<&Frame<'_>>) -> Result<Rows> {
        let rows = self.from(&select.from, outer)?;
        // Rows and their aggregates.
        let mut grouped: Vec<(Vec<Datum>, Vec<Datum>)> = match &select.group {
            None => rows.into_iter().map(|row| (row, Vec::new())).collect(),
            Some(keys) => self.group(select, keys, rows, outer)?,
        };
        if let Some(having) = &select.having {
            let mut kept = Vec::new();
            for (row, aggregates) in grouped {
                let mut frame = Frame::of(&row, outer);
                frame.aggregates = &aggregates;
                if evaluate(having, &frame, self)?.is_true() {
                    kept.push((row, aggregates));
                }
            }
            grouped = kept;
        }
        let windows = self.windows(&select.windows, &grouped, outer)?;
        let mut results: Vec<(Vec<Datum>, Vec<Datum>, Vec<Datum>)> = Vec::new();
        for (at, (row, aggregates)) in grouped.iter().enumerate() {
            let mut frame = Frame::of(row, outer);
            frame.aggregates = aggregates;
            frame.windows = windows.get(at).map_or(&[], Vec::as_slice);
            if select.sets.is_empty() {
                results.push(self.project(select, &frame)?);
                continue;
            }
            // Set-returning functions go on in lock-step, NULL where one ends.
            let lists = select
                .sets
                .iter()
                .map(|call| super::set_returning::rows(call, &frame, self))
                .collect::<Result<Vec<_>>>()?;
            let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
            for turn in 0..longest {
                let values: Vec<Datum> = lists
                    .iter()
                    .map(|list| match list.get(turn) {
                        None => Datum::Null,
                        Some(row) if row.len() == 1 => row[0].clone(),
                        Some(row) => Datum::Record(row.clone().into()),
                    })
                    .collect();
                let frame = Frame {
                    sets: &values,
                    ..frame
                };
                results.push(self.project(select, &frame)?);
            }
        }
        self.work(results.len() as u64)?;
        match &select.distinct {
            Distinct::No => {}
            Distinct::Rows => {
                let mut seen = HashSet::new();
                results.retain(|(row, ..)| seen.insert(row.clone()));
            }
            Distinct::On(_) => {
                results.sort_by(|a, b| order_key(&select.order, &a.1, &b.1));
                let mut seen = HashSet::new();
                results.retain(|(.., on)| seen.insert(on.clone()));
            }
        }
        if !select.order.is_empty() {
            results.sort_by(|a, b| order_key(&select.order, &a.1, &b.1));
        }
        Ok(results.into_iter().map(|(row, ..)| row).collect())
    }

    /// Output, order keys and DISTINCT ON keys of a row.
    fn project(
        &self,
        select: &Select,
        frame: &Frame<'_>,
    ) -> Result<(Vec<Datum>, Vec<Datum>, Vec<Datum>)> {
        let values = |expressions: &[Expr]| {
            expressions
                .iter()
                .map(|expr| evaluate(expr, frame, self))
                .collect::<Result<Vec<_>>>()
        };
        let output = values(&select.output)?;
        let order = self.keys(&select.order, frame)?;
        let on = match &select.distinct {
            Distinct::On(expressions) => values(expressions)?,
            _ => Vec::new(),
        };
        Ok((output, order, on))
    }

    fn group(
        &self,
        select: &Select,
        keys: &[Expr],
        rows: Rows,
        outer: Option<&Frame<'_>>,
    ) -> Result<Vec<(Vec<Datum>, Vec<Datum>)>> {
        let mut order: Vec<Vec<usize>> = Vec::new();
        let mut groups: HashMap<Vec<Datum>, usize> = HashMap::new();
        for (at, row) in rows.iter().enumerate() {
            let frame = Frame::of(row, outer);
            let key = keys
                .iter()
                .map(|key| evaluate(key, &frame, self))
                .collect::<Result<Vec<_>>>()?;
            let group = *groups.entry(key).or_insert_with(|| {
                order.push(Vec::new());
                order.len() - 1
            });
            order[group].push(at);
        }
        if keys.is_empty() && order.is_empty() {
            order.push(Vec::new());
        }
        let empty = vec![Datum::Null; select.from.width];
        order
            .into_iter()
            .map(|members| {
                let frames: Vec<Frame<'_>> = members
                    .iter()
                    .map(|&at| Frame::of(&rows[at], outer))
                    .collect();
                let aggregates = aggregates(&select.aggregates, &frames, self)?;
                let row = members
                    .first()
                    .map_or_else(|| empty.clone(), |&at| rows[at].clone());
                Ok((row, aggregates))
            })
            .collect()
    }

    fn windows(
        &self,
        calls: &[WindowCall],
        rows: &[(Vec<Datum>, Vec<Datum>)],
        outer: Option<&Frame<'_>>,
    ) -> Result<Vec<Vec<Datum>>> {
        if calls.is_empty() {
            return Ok(Vec::new());
        }
        let mut results = vec![vec![Datum::Null; calls.len()]; rows.len()];
        let frames: Vec<Frame<'_>> = rows
            .iter()
            .map(|(row, aggregates)| {
                let mut frame = Frame::of(row, outer);
                frame.aggregates = aggregates;
                frame
            })
            .collect();
        for (number, call) in calls.iter().enumerate() {
            let mut keyed = Vec::with_capacity(rows.len());
            for (at, frame) in frames.iter().enumerate() {
                let partition = call
                    .partition
                    .iter()
                    .map(|expr| evaluate(expr, frame, self))
                    .collect::<Result<Vec<_>>>()?;
                keyed.push((partition, self.keys(&call.order, frame)?, at));
            }
            keyed.sort_by(|a, b| {
                a.0.cmp(&b.0)
                    .then_with(|| order_key(&call.order, &a.1, &b.1))
            });
            for partition in keyed.chunk_by(|a, b| a.0 == b.0) {
                let (mut rank, mut dense) = (0, 0);
                let mut position = 0;
                for peers in partition.chunk_by(|a, b| a.1 == b.1) {
                    rank = position + 1;
                    dense += 1;
                    let value = match &call.function {
                        WindowFunction::RowNumber => Datum::Null,
                        WindowFunction::Rank => Datum::Int(rank),
                        WindowFunction::DenseRank => Datum::Int(dense),
                        WindowFunction::Aggregate(aggregate) => {
                            let upto = position as usize + peers.len();
                            let members: Vec<Frame<'_>> = partition[..upto]
                                .iter()
                                .map(|(.., at)| frames[*at])
                                .collect();
                            super::aggregate::aggregate(aggregate, &members, self)?
                        }
                    };
                    for (.., at) in peers {
                        position += 1;
                        results[*at][number] = match call.function {
                            WindowFunction::RowNumber => Datum::Int(position),
                            _ => value.clone(),
                        };
                    }
                }
                debug_assert!(rank <= position);
            }
        }
        Ok(results)
    }
}

/// The order of two rows' keys.
pub(crate) fn order_key(order: &[Order], a: &[Datum], b: &[Datum]) -> std::cmp::Ordering {
    for ((order, a), b) in order.iter().zip(a).zip(b) {
        let compared = match (a.is_null(), b.is_null()) {
            (false, false) if order.descending => b.compare(a),
            (false, false) => a.compare(b),
            (a_null, b_null) if order.nulls_first => b_null.cmp(&a_null),
            (a_null, b_null) => a_null.cmp(&b_null),
        };
        if compared.is_ne() {
            return compared;
        }
    }
    std::cmp::Ordering::Equal
}

fn combine(operation: SetOperation, all: bool, left: Rows, right: Rows) -> Rows {
    if operation == SetOperation::Union {
        let mut rows = left;
        rows.extend(right);
        if !all {
            let mut seen = HashSet::new();
            rows.retain(|row| seen.insert(row.clone()));
        }
        return rows;
    }
    let mut counts: HashMap<Vec<Datum>, usize> = HashMap::new();
    for row in right {
        *counts.entry(row).or_default() += 1;
    }
    let mut seen = HashSet::new();
    let intersect = operation == SetOperation::Intersect;
    left.into_iter()
        .filter(|row| {
            if !all {
                return (counts.contains_key(row) == intersect) && seen.insert(row.clone());
            }
            match counts.get_mut(row) {
                Some(count) if *count > 0 => {
                    *count -= 1;
                    intersect
                }
                _ => !intersect,
            }
        })
        .collect()
}
