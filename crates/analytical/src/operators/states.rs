//! Aggregates as operators compute them: which rows a state sees, in which order, and states
//! that subqueries need beside PostgreSQL's own.

use std::sync::Arc;

use thermocline_query::call::Call;
use thermocline_query::datum::Datum;
use thermocline_query::error::{QueryError, Result};
use thermocline_query::functions::{AggregateState, Body, Function, SortKey as FunctionOrder};
use thermocline_query::size;
use thermocline_query::tree::Expr;
use thermocline_query::types::{self, array::Array};

use crate::evaluate::{Context, RowValues};
use crate::sort_key::{self, Direction};

/// What is computed.
#[derive(Clone, Copy)]
pub enum What {
    /// One of PostgreSQL's aggregates.
    Function(&'static Function),
    /// A state of this file.
    Internal(Internal),
}

impl What {
    /// A state that nothing came to.
    ///
    /// # Errors
    /// XX000 for a function that is no aggregate.
    pub fn state(self, call: &Call<'_>) -> Result<Box<dyn AggregateState>> {
        match self {
            Self::Internal(kind) => Ok(kind.state()),
            Self::Function(function) => match &function.body {
                Body::Aggregate(aggregate) => Ok((aggregate.new)(call)),
                _ => Err(QueryError::internal(format!(
                    "{} is not an aggregate",
                    function.name
                ))),
            },
        }
    }
}

/// An aggregate over bound expressions.
#[derive(Clone)]
pub struct Aggregation {
    /// The column that it gives.
    pub id: usize,
    /// What it computes.
    pub what: What,
    /// Leaves out rows with a NULL argument.
    pub strict: bool,
    /// Arguments that are the same for the group.
    pub direct: Vec<Expr>,
    /// What is aggregated.
    pub arguments: Vec<Expr>,
    /// All arguments' types.
    pub types: Arc<[u32]>,
    /// The result's type.
    pub result: u32,
    /// In which order.
    pub order: Vec<(Expr, Direction)>,
    /// Each different value once.
    pub distinct: bool,
    /// Only rows of which this is true.
    pub filter: Option<Expr>,
    /// Arguments stand in the order only, and are taken from there (ordered sets).
    pub within_group: bool,
}

impl Aggregation {
    /// An aggregate of one argument by a state of this file.
    #[must_use]
    pub fn internal(id: usize, kind: Internal, argument: Vec<Expr>, result: u32) -> Self {
        let types: Arc<[u32]> = argument.iter().map(|argument| argument.oid).collect();
        Self {
            id,
            what: What::Internal(kind),
            strict: false,
            direct: Vec::new(),
            arguments: argument,
            types,
            result,
            order: Vec::new(),
            distinct: false,
            filter: None,
            within_group: false,
        }
    }

    /// Whether rows wait until all are there.
    fn waits(&self) -> bool {
        !self.order.is_empty() || self.distinct
    }

    /// All expressions in it.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.direct
            .iter()
            .chain(&self.arguments)
            .chain(self.order.iter().map(|(expr, _)| expr))
            .chain(&self.filter)
    }
}

/// An aggregate over one group.
pub struct Running {
    state: Box<dyn AggregateState>,
    /// Rows that wait for the order: their keys and their arguments.
    waiting: Vec<(Vec<u8>, Vec<Datum>)>,
    waiting_bytes: usize,
    direct: Option<Vec<Datum>>,
}

impl Running {
    /// Over no rows yet.
    ///
    /// # Errors
    /// As the maker's.
    pub fn new(of: &Aggregation, context: &Context) -> Result<Self> {
        let call = Call::new(context.environment.as_ref(), &of.types, of.result);
        Ok(Self {
            state: of.what.state(&call)?,
            waiting: Vec::new(),
            waiting_bytes: 0,
            direct: None,
        })
    }

    /// All that came so far, for [`Self::restore`]; `None` where the state is not saved.
    #[must_use]
    pub fn save(&self, of: &Aggregation) -> Option<Vec<Datum>> {
        let state = if of.waits() {
            Datum::Null
        } else {
            list(self.state.save()?)
        };
        let direct = self.direct.clone().map_or(Datum::Null, list);
        let mut saved = vec![state, direct];
        for (key, arguments) in &self.waiting {
            saved.push(Datum::bytes(key.as_slice()));
            saved.push(list(arguments.clone()));
        }
        Some(saved)
    }

    /// Of what [`Self::save`] gave.
    ///
    /// # Errors
    /// XX000 for anything else.
    pub fn restore(of: &Aggregation, context: &Context, saved: &[Datum]) -> Result<Self> {
        let mut running = Self::new(of, context)?;
        let [state, direct, waiting @ ..] = saved else {
            return Err(QueryError::internal("a saved aggregate without its state"));
        };
        if let Datum::Array(state) = state {
            let call = Call::new(context.environment.as_ref(), &of.types, of.result);
            running.state.merge(&call, &state.elements)?;
        }
        if let Datum::Array(direct) = direct {
            running.direct = Some(direct.elements.clone());
        }
        for pair in waiting.chunks_exact(2) {
            let (key, arguments) = (pair[0].as_bytes(), &pair[1].as_array().elements);
            running.wait(key.to_vec(), arguments.clone());
        }
        Ok(running)
    }

    fn wait(&mut self, key: Vec<u8>, arguments: Vec<Datum>) {
        self.waiting_bytes += key.len() + 64 + size::values(&arguments);
        self.waiting.push((key, arguments));
    }

    /// Takes a row; `group` is the same row as its group shows it, for direct arguments.
    /// `arguments` is used again and again.
    ///
    /// # Errors
    /// As the expressions' and the aggregate's.
    pub fn update(
        &mut self,
        of: &Aggregation,
        context: &Context,
        row: &dyn RowValues,
        group: &dyn RowValues,
        arguments: &mut Vec<Datum>,
    ) -> Result<()> {
        let evaluate = |expr: &Expr| context.evaluator.evaluate(expr, row);
        if let Some(filter) = &of.filter
            && !matches!(evaluate(filter)?, Datum::Bool(true))
        {
            return Ok(());
        }
        if self.direct.is_none() && !of.direct.is_empty() {
            let direct = of.direct.iter();
            let direct = direct.map(|expr| context.evaluator.evaluate(expr, group));
            self.direct = Some(direct.collect::<Result<_>>()?);
        }
        arguments.clear();
        for argument in &of.arguments {
            arguments.push(evaluate(argument)?);
        }
        if of.strict && arguments.iter().any(Datum::is_null) {
            return Ok(());
        }
        if !of.waits() {
            let call = Call::new(context.environment.as_ref(), &of.types, of.result);
            return self.state.update(&call, arguments);
        }
        let mut key = Vec::new();
        for (expr, direction) in &of.order {
            sort_key::directed(expr.oid, &evaluate(expr)?, *direction, &mut key)?;
        }
        if of.distinct {
            for (expr, value) in of.arguments.iter().zip(&*arguments) {
                sort_key::directed(expr.oid, value, Direction::default(), &mut key)?;
            }
        }
        self.wait(key, std::mem::take(arguments));
        Ok(())
    }

    /// The value over all rows that came.
    ///
    /// # Errors
    /// As the aggregate's.
    pub fn value(&mut self, of: &Aggregation, context: &Context) -> Result<Datum> {
        let call = Call::new(context.environment.as_ref(), &of.types, of.result);
        self.waiting.sort_by(|a, b| a.0.cmp(&b.0));
        if of.distinct {
            self.waiting.dedup_by(|later, earlier| later.0 == earlier.0);
        }
        for (_, arguments) in self.waiting.drain(..) {
            self.state.update(&call, &arguments)?;
        }
        self.waiting_bytes = 0;
        if of.within_group {
            let order: Vec<FunctionOrder> = of
                .order
                .iter()
                .map(|(_, direction)| FunctionOrder {
                    descending: direction.descending,
                    nulls_first: direction.nulls_first,
                })
                .collect();
            let none = vec![Datum::Null; of.direct.len()];
            let direct = self.direct.as_deref().unwrap_or(&none);
            self.state.finish(&call, direct, &order)?;
        }
        self.state.value(&call)
    }

    /// The bytes it holds.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.state.bytes() + self.waiting_bytes
    }
}

/// Values as one.
pub(super) fn list(elements: Vec<Datum>) -> Datum {
    Datum::Array(Arc::new(Array {
        element: 0,
        dimensions: Vec::new(),
        elements,
    }))
}

/// States that PostgreSQL has no aggregates for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Internal {
    /// The first value.
    First,
    /// The only value; 21000 for several.
    Single,
    /// How many rows.
    Count,
    /// Whether any is true, NULL where that is unknown.
    Any,
    /// Whether all are true, NULL where that is unknown.
    All,
    /// All values as an array of elements of this type.
    Array(u32),
}

impl Internal {
    fn state(self) -> Box<dyn AggregateState> {
        Box::new(InternalState {
            kind: self,
            value: match self {
                Self::Any => Datum::Bool(false),
                Self::All => Datum::Bool(true),
                _ => Datum::Null,
            },
            rows: 0,
            values: Vec::new(),
            held: 0,
        })
    }
}

struct InternalState {
    kind: Internal,
    value: Datum,
    rows: i64,
    values: Vec<Datum>,
    held: usize,
}

impl AggregateState for InternalState {
    fn update(&mut self, _: &Call<'_>, arguments: &[Datum]) -> Result<()> {
        self.rows = self.rows.saturating_add(1);
        let value = arguments.first().cloned().unwrap_or_default();
        match (self.kind, &self.value, &value) {
            (Internal::Single, ..) if self.rows > 1 => {
                return Err(QueryError::new(
                    "21000",
                    "more than one row returned by a subquery used as an expression",
                ));
            }
            (Internal::First, ..) if self.rows > 1 => {}
            (Internal::First | Internal::Single, ..) => self.value = value,
            (Internal::Count, ..) => {}
            (Internal::Any, Datum::Bool(true), _) | (Internal::All, Datum::Bool(false), _) => {}
            (Internal::Any, _, Datum::Bool(true)) => self.value = Datum::Bool(true),
            (Internal::All, _, Datum::Bool(false)) => self.value = Datum::Bool(false),
            (Internal::Any | Internal::All, _, Datum::Null) => self.value = Datum::Null,
            (Internal::Any | Internal::All, ..) => {}
            (Internal::Array(_), ..) => {
                self.held += size_of::<Datum>() + size::beyond(&value);
                self.values.push(value);
            }
        }
        Ok(())
    }

    fn value(&self, _: &Call<'_>) -> Result<Datum> {
        match self.kind {
            Internal::Count => Ok(Datum::Int8(self.rows)),
            Internal::Array(element) => array_of(element, &self.values),
            _ => Ok(self.value.clone()),
        }
    }

    fn bytes(&self) -> usize {
        self.held + size::beyond(&self.value)
    }

    fn save(&self) -> Option<Vec<Datum>> {
        let first = [Datum::Int8(self.rows), self.value.clone()];
        Some(first.into_iter().chain(self.values.clone()).collect())
    }

    fn keeps_order(&self) -> bool {
        matches!(self.kind, Internal::Array(_))
    }

    fn merge(&mut self, call: &Call<'_>, saved: &[Datum]) -> Result<()> {
        let rows = saved[0].as_int8();
        if rows == 0 {
            return Ok(());
        }
        if self.keeps_order() {
            return saved[2..]
                .iter()
                .try_for_each(|value| self.update(call, std::slice::from_ref(value)));
        }
        self.update(call, &saved[1..2])?;
        self.rows = self.rows.saturating_add(rows - 1);
        Ok(())
    }
}

/// An array of values; arrays become dimensions.
fn array_of(element: u32, values: &[Datum]) -> Result<Datum> {
    let Some(inner) = types::element_of(element) else {
        return Ok(Datum::Array(Arc::new(Array::of(element, values.to_vec()))));
    };
    let mut dimensions: Option<Vec<(i32, i32)>> = None;
    let mut elements = Vec::new();
    let mut outer = 0_i32;
    for value in values {
        let Datum::Array(array) = value else {
            return Err(QueryError::new("22004", "cannot accumulate null arrays"));
        };
        if array.dimensions.is_empty() {
            return Err(QueryError::new("2202E", "cannot accumulate empty arrays"));
        }
        match &dimensions {
            Some(dimensions) if *dimensions != array.dimensions => {
                return Err(QueryError::new(
                    "2202E",
                    "cannot accumulate arrays of different dimensionality",
                ));
            }
            Some(_) => {}
            None => dimensions = Some(array.dimensions.clone()),
        }
        elements.extend(array.elements.iter().cloned());
        outer = outer.saturating_add(1);
    }
    let dimensions = match dimensions {
        Some(inner) => std::iter::once((outer, 1)).chain(inner).collect(),
        None => Vec::new(),
    };
    Ok(Datum::Array(Arc::new(Array {
        element: inner,
        dimensions,
        elements,
    })))
}
