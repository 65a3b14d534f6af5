//! How a compiled expression is computed over a batch.

use std::cell::RefCell;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use thermocline_query::error::QueryError;
use thermocline_query::size;
use thermocline_query::tree::Expr;

use super::fit::fitted;
use super::input;
use super::kernels::{Arguments, Kernel, order};
use super::node::Node;
use super::vector::{Data, MADE_BYTES_MAX, NOWHERE, Source, Vector};
use crate::evaluate::{Context, PlacedRows};

/// Rows between two looks at whether the statement is to go on.
const ROWS_BETWEEN_CHECKS: usize = 16;

/// Why there is no column.
pub enum Stop {
    /// Something is unusual: the row evaluator is to compute the batch.
    GivenUp,
    /// The statement is not to go on.
    Failed(QueryError),
}

type Given<T> = Result<T, Stop>;

/// What was made, or given up.
fn made<T>(value: Option<T>) -> Given<T> {
    value.ok_or(Stop::GivenUp)
}

/// A batch.
pub struct Run<'a> {
    /// The columns' types.
    oids: &'a [(usize, u32)],
    arrays: &'a [ArrayRef],
    rows: &'a PlacedRows,
    context: &'a Context,
    /// Columns that were read whole.
    read: RefCell<Vec<Option<Vector<'a>>>>,
}

/// The rows that a node is computed for.
#[derive(Clone, Copy)]
struct Frame<'f, 'a> {
    /// Their places in the batch; all of them where there are none.
    rows: Option<&'f [u32]>,
    count: usize,
    /// The operand of the innermost CASE, for these rows.
    operand: Option<&'f Vector<'a>>,
}

/// Some rows of a frame.
struct Narrowed<'a> {
    rows: Vec<u32>,
    operand: Option<Vector<'a>>,
}

impl<'a> Frame<'_, 'a> {
    fn narrowed(&self, places: &[u32]) -> Narrowed<'a> {
        Narrowed {
            rows: match self.rows {
                Some(rows) => places.iter().map(|place| rows[*place as usize]).collect(),
                None => places.to_vec(),
            },
            operand: self.operand.map(|operand| operand.gather(places)),
        }
    }
}

impl<'a> Narrowed<'a> {
    fn frame(&self) -> Frame<'_, 'a> {
        Frame {
            rows: Some(&self.rows),
            count: self.rows.len(),
            operand: self.operand.as_ref(),
        }
    }
}

/// All places of so many rows.
fn all_places(count: usize) -> Vec<u32> {
    (0..count as u32).collect()
}

/// A column of truths.
fn truths<'a>(values: BooleanBuffer) -> Vector<'a> {
    Vector::new(Data::Bool(values), None)
}

impl<'a> Run<'a> {
    /// Over these columns.
    pub fn new(
        oids: &'a [(usize, u32)],
        arrays: &'a [ArrayRef],
        rows: &'a PlacedRows,
        context: &'a Context,
    ) -> Self {
        Self {
            oids,
            arrays,
            rows,
            context,
            read: RefCell::new(vec![None; arrays.len()]),
        }
    }

    /// The values of a node for all rows.
    pub fn all(&self, node: &'a Node, count: usize) -> Given<Vector<'a>> {
        let frame = Frame {
            rows: None,
            count,
            operand: None,
        };
        self.value(node, &frame)
    }

    fn value(&self, node: &'a Node, frame: &Frame<'_, 'a>) -> Given<Vector<'a>> {
        match node {
            Node::Column(place) => self.column(*place, frame),
            Node::Constant(value) => Ok(value.borrowed()),
            Node::Operand => made(frame.operand.cloned()),
            Node::Call(kernel, arguments, _) => {
                let arguments = self.values(arguments, frame)?;
                made(called(*kernel, &arguments, frame.count))
            }
            Node::Connected(parts, decisive) => self.connected(parts, *decisive, frame),
            Node::Not(inner) => {
                let mut value = self.value(inner, frame)?;
                let Data::Bool(values) = &value.data else {
                    return Err(Stop::GivenUp);
                };
                value.data = Data::Bool(!values);
                Ok(value)
            }
            Node::IsNull(inner, wanted) => {
                if let Node::Column(place) = &**inner {
                    let nulls = input::nulls(made(self.arrays.get(*place))?, frame.rows);
                    return Ok(is_null(nulls, *wanted, frame.count));
                }
                let value = self.value(inner, frame)?;
                if value.single {
                    let is = value.is_valid(0) != *wanted;
                    return Ok(truths(BooleanBuffer::collect_bool(frame.count, |_| is)));
                }
                Ok(is_null(value.nulls, *wanted, frame.count))
            }
            Node::Is(inner, wanted, positive) => {
                let value = self.value(inner, frame)?;
                Ok(truths(BooleanBuffer::collect_bool(frame.count, |row| {
                    (value.truth(row) == *wanted) == *positive
                })))
            }
            Node::Distinct(kernel, pair, wanted) => {
                let pair = self.values(&pair[..], frame)?;
                let equal = made(called(*kernel, &pair, frame.count))?;
                Ok(truths(BooleanBuffer::collect_bool(frame.count, |row| {
                    let distinct = match (pair[0].is_valid(row), pair[1].is_valid(row)) {
                        (false, false) => false,
                        (true, true) => equal.truth(row) != Some(true),
                        _ => true,
                    };
                    distinct == *wanted
                })))
            }
            Node::NullIf(kernel, pair) => {
                let mut pair = self.values(&pair[..], frame)?;
                let equal = made(called(*kernel, &pair, frame.count))?;
                let first = pair.swap_remove(0).spread(frame.count);
                let kept = BooleanBuffer::collect_bool(frame.count, |row| {
                    first.is_valid(row) && equal.truth(row) != Some(true)
                });
                Ok(Vector::new(first.data, Some(NullBuffer::new(kept))))
            }
            Node::Case(operand, branches, otherwise) => {
                let operand = match operand {
                    Some(operand) => Some(self.value(operand, frame)?),
                    None => None,
                };
                self.case(operand.as_ref(), branches, otherwise, frame)
            }
            Node::Coalesce(parts) => self.coalesce(parts, frame),
            Node::Extreme(parts, oid, greatest) => self.extreme(parts, *oid, *greatest, frame),
            Node::InSet(inner, set) => {
                let value = self.value(inner, frame)?;
                let count = if value.single { 1 } else { frame.count };
                made(set.holds(&value, count))
            }
            Node::Signed(inner, signed) => {
                let mut value = self.value(inner, frame)?;
                let Data::Int(numbers) = &value.data else {
                    return Err(Stop::GivenUp);
                };
                let turned = numbers.iter().map(|number| match signed {
                    true => i64::from(*number as u32 as i32),
                    false => i64::from(*number as i32 as u32),
                });
                value.data = Data::Int(turned.collect::<ScalarBuffer<i64>>());
                Ok(value)
            }
            Node::Fit(inner, oid, modifier, explicit) => {
                let value = self.value(inner, frame)?;
                let count = if value.single { 1 } else { frame.count };
                made(fitted(value, count, *oid, *modifier, *explicit))
            }
            Node::Rows(expr, single) => self.by_rows(expr, *single, frame),
        }
    }

    fn values(&self, nodes: &'a [Node], frame: &Frame<'_, 'a>) -> Given<Vec<Vector<'a>>> {
        nodes.iter().map(|node| self.value(node, frame)).collect()
    }

    fn column(&self, place: usize, frame: &Frame<'_, 'a>) -> Given<Vector<'a>> {
        let read = self.read.borrow().get(place).cloned().flatten();
        if let Some(whole) = read {
            return Ok(match frame.rows {
                Some(rows) => whole.gather(rows),
                None => whole,
            });
        }
        let (_, oid) = made(self.oids.get(place))?;
        let array = made(self.arrays.get(place))?;
        let vector = made(input::column(*oid, array, frame.rows))?;
        if frame.rows.is_none()
            && let Some(read) = self.read.borrow_mut().get_mut(place)
        {
            *read = Some(vector.clone());
        }
        Ok(vector)
    }

    fn by_rows(&self, expr: &Expr, single: bool, frame: &Frame<'_, 'a>) -> Given<Vector<'a>> {
        let count = if single { 1 } else { frame.count };
        let mut values = Vec::with_capacity(count);
        let mut bytes = 0;
        for at in 0..count {
            if at % ROWS_BETWEEN_CHECKS == 0 {
                let environment = &self.context.environment;
                environment.check_interrupted().map_err(Stop::Failed)?;
            }
            let row = frame.rows.map_or(at, |rows| rows[at] as usize);
            let value = self.context.evaluator.evaluate(expr, &self.rows.row(row));
            let value = made(value.ok())?;
            bytes += size::beyond(&value);
            if bytes > MADE_BYTES_MAX {
                return Err(Stop::GivenUp);
            }
            values.push(value);
        }
        let mut vector = made(input::datums(expr.oid, values))?;
        vector.single = single;
        Ok(vector)
    }

    /// AND and OR: a part is computed for the rows that no part before it decides, unless that
    /// costs more than it saves.
    fn connected(
        &self,
        parts: &'a [Node],
        decisive: bool,
        frame: &Frame<'_, 'a>,
    ) -> Given<Vector<'a>> {
        let count = frame.count;
        let mut decided = BooleanBuffer::new_unset(count);
        let mut unknown = BooleanBuffer::new_unset(count);
        for (at, part) in parts.iter().enumerate() {
            let open = count - decided.count_set_bits();
            if open == 0 && at > 0 {
                break;
            }
            if open == count || (part.is_sure() && open > count / 2) {
                let value = self.value(part, frame)?;
                let (now, null) = split(&value, decisive, count)?;
                decided = &decided | &now;
                if let Some(null) = null {
                    unknown = &unknown | &null;
                }
                continue;
            }
            let places: Vec<u32> = (0..count as u32)
                .filter(|place| !decided.value(*place as usize))
                .collect();
            let narrowed = frame.narrowed(&places);
            let value = self.value(part, &narrowed.frame())?;
            let mut more = vec![false; count];
            let mut null = vec![false; count];
            for (at, place) in places.iter().enumerate() {
                match value.truth(at) {
                    Some(truth) => more[*place as usize] = truth == decisive,
                    None => null[*place as usize] = true,
                }
            }
            decided = &decided | &BooleanBuffer::from(more);
            unknown = &unknown | &BooleanBuffer::from(null);
        }
        let known = &decided | &!&unknown;
        let values = if decisive { decided } else { !&decided };
        Ok(Vector::new(
            Data::Bool(values),
            Some(NullBuffer::new(known)),
        ))
    }

    fn case(
        &self,
        operand: Option<&Vector<'a>>,
        branches: &'a [(Node, Node)],
        otherwise: &'a Node,
        frame: &Frame<'_, 'a>,
    ) -> Given<Vector<'a>> {
        let mut open: Option<Vec<u32>> = None;
        let mut pieces = Pieces::new(frame.count);
        for (condition, value) in branches {
            let within = Frame {
                operand: operand.or(frame.operand),
                ..*frame
            };
            let truths = match &open {
                None => self.value(condition, &within)?,
                Some(places) => self.value(condition, &within.narrowed(places).frame())?,
            };
            let (mut taken, mut left) = (Vec::new(), Vec::new());
            let mut sort = |at: usize, place: u32| match truths.truth(at) {
                Some(true) => taken.push(place),
                _ => left.push(place),
            };
            match &open {
                None => (0..frame.count).for_each(|at| sort(at, at as u32)),
                Some(places) => places
                    .iter()
                    .enumerate()
                    .for_each(|(at, place)| sort(at, *place)),
            }
            if left.is_empty() && open.is_none() {
                return self.value(value, frame);
            }
            if !taken.is_empty() {
                let taken_value = self.value(value, &frame.narrowed(&taken).frame())?;
                pieces.add(taken_value, &taken);
            }
            let done = left.is_empty();
            open = Some(left);
            if done {
                return made(pieces.assembled());
            }
        }
        let places = open.unwrap_or_else(|| all_places(frame.count));
        if places.len() == frame.count {
            return self.value(otherwise, frame);
        }
        let value = self.value(otherwise, &frame.narrowed(&places).frame())?;
        pieces.add(value, &places);
        made(pieces.assembled())
    }

    fn coalesce(&self, parts: &'a [Node], frame: &Frame<'_, 'a>) -> Given<Vector<'a>> {
        let mut open: Option<Vec<u32>> = None;
        let mut pieces = Pieces::new(frame.count);
        for part in parts {
            let value = match &open {
                None => self.value(part, frame)?,
                Some(places) => self.value(part, &frame.narrowed(places).frame())?,
            };
            if open.is_none() && value.nulls.is_none() {
                return Ok(value);
            }
            let places = open.unwrap_or_else(|| all_places(frame.count));
            let left: Vec<u32> = places
                .iter()
                .enumerate()
                .filter(|(at, _)| !value.is_valid(*at))
                .map(|(_, place)| *place)
                .collect();
            pieces.add(value, &places);
            if left.is_empty() {
                return made(pieces.assembled());
            }
            open = Some(left);
        }
        made(pieces.assembled())
    }

    fn extreme(
        &self,
        parts: &'a [Node],
        oid: u32,
        greatest: bool,
        frame: &Frame<'_, 'a>,
    ) -> Given<Vector<'a>> {
        let values = self.values(parts, frame)?;
        let mut from: Vec<Source> = Vec::with_capacity(frame.count);
        for row in 0..frame.count {
            let mut best: Option<usize> = None;
            for (at, value) in values.iter().enumerate() {
                if !value.is_valid(row) {
                    continue;
                }
                let better = match best {
                    None => true,
                    Some(best) => {
                        let order = made(order(oid, (value, row), (&values[best], row)))?;
                        if greatest {
                            order.is_gt()
                        } else {
                            order.is_lt()
                        }
                    }
                };
                if better {
                    best = Some(at);
                }
            }
            from.push(best.map_or(NOWHERE, |best| (best as u32, row as u32)));
        }
        made(Vector::assembled(&values, &from))
    }
}

/// A function's value for each row.
fn called<'a>(kernel: Kernel, arguments: &[Vector<'a>], count: usize) -> Option<Vector<'a>> {
    let single = !arguments.is_empty() && arguments.iter().all(|argument| argument.single);
    let count = if single { 1 } else { count };
    let mut nulls: Option<NullBuffer> = None;
    for argument in arguments {
        match &argument.nulls {
            Some(_) if argument.single => nulls = Some(NullBuffer::new_null(count)),
            Some(of) => nulls = NullBuffer::union(nulls.as_ref(), Some(of)),
            None => {}
        }
    }
    let given = Arguments {
        vectors: arguments,
        nulls: nulls.as_ref(),
        count,
    };
    let mut vector = Vector::new(kernel(&given)?, nulls);
    vector.single = single;
    Some(vector)
}

fn is_null<'a>(nulls: Option<NullBuffer>, wanted: bool, count: usize) -> Vector<'a> {
    truths(match nulls {
        Some(nulls) if wanted => !nulls.inner(),
        Some(nulls) => nulls.inner().clone(),
        None if wanted => BooleanBuffer::new_unset(count),
        None => BooleanBuffer::new_set(count),
    })
}

/// Where a truth is the decisive one, and where there is none.
fn split(
    value: &Vector<'_>,
    decisive: bool,
    count: usize,
) -> Given<(BooleanBuffer, Option<BooleanBuffer>)> {
    if value.single {
        let is = |wanted| BooleanBuffer::collect_bool(count, |_| value.truth(0) == wanted);
        return Ok((is(Some(decisive)), Some(is(None))));
    }
    let Data::Bool(values) = &value.data else {
        return Err(Stop::GivenUp);
    };
    let is = if decisive { values.clone() } else { !values };
    Ok(match &value.nulls {
        Some(nulls) => (&is & nulls.inner(), Some(!nulls.inner())),
        None => (is, None),
    })
}

/// Values of some rows each, which become one column.
struct Pieces<'a> {
    values: Vec<Vector<'a>>,
    from: Vec<Source>,
}

impl<'a> Pieces<'a> {
    fn new(count: usize) -> Self {
        Self {
            values: Vec::new(),
            from: vec![NOWHERE; count],
        }
    }

    fn add(&mut self, value: Vector<'a>, places: &[u32]) {
        let part = self.values.len() as u32;
        for (at, place) in places.iter().enumerate() {
            self.from[*place as usize] = (part, at as u32);
        }
        self.values.push(value);
    }

    fn assembled(&self) -> Option<Vector<'a>> {
        Vector::assembled(&self.values, &self.from)
    }
}
