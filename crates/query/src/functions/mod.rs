//! The functions: a row of `pg_proc` and a body each, one file a family. What
//! `pg_proc` shows, what names are resolved to and what is called is this one
//! table. Operators and casts are tables of their own that name functions by
//! their numbers.

mod aggregate;
mod array;
mod bit;
mod boolean;
mod bytea;
mod called;
mod date;
mod date_format;
mod date_part;
mod encoding;
mod enumeration;
pub mod extension;
mod float;
mod format;
mod hash;
mod integer;
mod interval;
mod json;
mod jsonb;
mod jsonpath;
mod network;
mod number_format;
mod numeric;
mod oid;
mod pattern;
mod range;
mod record;
pub(crate) mod sample;
mod send;
mod server;
mod set;
mod text;
mod time;
mod time_order;
mod time_range;
mod time_zone;
mod timestamp;
mod uuid;
mod window;

pub(crate) use self::json::POPULATING;
pub(crate) use self::pattern::{PathFlags, check_path_pattern, matches_path_pattern};

pub use called::{CALLED, CALLED_SET};
pub use format::quoted_literal;
use std::collections::HashMap;
use std::sync::LazyLock;
pub use timestamp::clock;

use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};

/// When a function's answer may change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Volatility {
    /// Never, for the same arguments.
    Immutable,
    /// Not within a statement.
    Stable,
    /// At any time.
    Volatile,
}

/// What a call runs.
#[derive(Clone, Copy)]
pub enum Body {
    /// A value of values.
    Row(fn(&Call<'_>, &[Datum]) -> Result<Datum>),
    /// Rows of values; a row of one column is that column's value itself,
    /// of several a [`Datum::Record`].
    Set(fn(&Call<'_>, &[Datum]) -> Result<Vec<Datum>>),
    /// A value of the values of many rows.
    Aggregate(&'static Aggregate),
    /// A value of a row's place among others; executors compute it.
    Window(WindowKind),
    /// Asked of the server: `Environment::call` under the function's name.
    Server,
    /// As `Server`, with any number of rows: the answer is an array of them. A row of several
    /// columns is a record.
    ServerSet,
}

/// A function of windows. Arguments that a call leaves out have PostgreSQL's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WindowKind {
    /// The row's number, from 1.
    RowNumber,
    /// The number of the first of the row's peers.
    Rank,
    /// The number of the row's group of peers.
    DenseRank,
    /// (`rank` - 1) / (rows - 1); 0 for a single row.
    PercentRank,
    /// The part of the rows that are before the row or its peers.
    CumeDist,
    /// The number of the row's part of as many as the argument says; 22014 where that is not positive.
    Ntile,
    /// The value some rows before (1), or a default (NULL).
    Lag,
    /// The value some rows behind (1), or a default (NULL).
    Lead,
    /// The value at the first row of the frame.
    FirstValue,
    /// The value at the last row of the frame.
    LastValue,
    /// The value at a row of the frame, counted from 1; 22016 where the number is not positive.
    NthValue,
}

/// How an aggregate is computed: a state, fed row by row.
pub struct Aggregate {
    /// What it is fed with.
    pub kind: AggregateKind,
    /// A new state.
    pub new: fn(&Call<'_>) -> Box<dyn AggregateState>,
}

/// What an aggregate is fed with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AggregateKind {
    /// All its arguments, for each row.
    Normal,
    /// `aggregate(a, …) WITHIN GROUP (ORDER BY b, …)`: for each row what `ORDER BY` has. The first
    /// arguments of the function, so many, are direct: they are given once
    /// ([`AggregateState::finish`]).
    OrderedSet {
        /// How many arguments are direct.
        direct: usize,
    },
    /// As an ordered set; there are as many direct arguments as `ORDER BY` has keys, of the same
    /// types. The call's types are those of the direct arguments, then those of the keys.
    Hypothetical,
}

impl Aggregate {
    /// An aggregate that is fed with all its arguments.
    #[must_use]
    pub const fn normal(new: fn(&Call<'_>) -> Box<dyn AggregateState>) -> Self {
        Self {
            kind: AggregateKind::Normal,
            new,
        }
    }
}

/// How a key of `WITHIN GROUP (ORDER BY …)` sorts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SortKey {
    /// `DESC`
    pub descending: bool,
    /// `NULLS FIRST`
    pub nulls_first: bool,
}

/// The state of an aggregate over one group.
pub trait AggregateState: Send {
    /// Takes a row's arguments. Where the row's function is strict, none is NULL. Where the
    /// aggregate has an `ORDER BY`, also that of `WITHIN GROUP`, the rows come in this order.
    ///
    /// # Errors
    /// As the aggregate's in PostgreSQL.
    fn update(&mut self, call: &Call<'_>, arguments: &[Datum]) -> Result<()>;

    /// Takes the direct arguments and the order of an ordered set, at any time before
    /// [`Self::value`] is asked for.
    ///
    /// # Errors
    /// As the aggregate's in PostgreSQL.
    fn finish(&mut self, call: &Call<'_>, direct: &[Datum], order: &[SortKey]) -> Result<()> {
        let _ = (call, direct, order);
        Ok(())
    }

    /// The value over all that came. May be asked several times, with rows between (windows).
    ///
    /// # Errors
    /// As the aggregate's in PostgreSQL.
    fn value(&self, call: &Call<'_>) -> Result<Datum>;

    /// The bytes that the state holds beyond its own size.
    fn bytes(&self) -> usize {
        0
    }

    /// What the state has taken so far, for [`Self::merge`]; `None` where states do not become
    /// one, which no rows change.
    fn save(&self) -> Option<Vec<Datum>> {
        None
    }

    /// Whether the value depends on the order in which rows come. Then a saved state is merged
    /// only into one that nothing came to.
    fn keeps_order(&self) -> bool {
        false
    }

    /// Takes what another state of the same aggregate has taken: what its [`Self::save`] gave.
    ///
    /// # Errors
    /// As the aggregate's in PostgreSQL.
    fn merge(&mut self, call: &Call<'_>, saved: &[Datum]) -> Result<()> {
        let _ = (call, saved);
        Err(QueryError::internal("states that do not become one"))
    }
}

/// A function.
pub struct Function {
    /// Its number in `pg_proc`.
    pub oid: u32,
    /// Its name.
    pub name: &'static str,
    /// The numbers of its arguments' types.
    pub arguments: &'static [u32],
    /// How many of the last arguments may be left out; `defaults` gives their values.
    pub optional: usize,
    /// The values of the optional arguments, as texts of their types; `None` is NULL.
    pub defaults: &'static [Option<&'static str>],
    /// Names of arguments, for calls that use them.
    pub argument_names: &'static [&'static str],
    /// The last argument is an array that takes any number of arguments: its elements' type.
    pub variadic: u32,
    /// The number of its result's type.
    pub result: u32,
    /// The columns of its result, where it gives rows of several: names and types.
    pub columns: &'static [(&'static str, u32)],
    /// A NULL among the arguments makes the result NULL without a call.
    pub strict: bool,
    /// When its answer may change.
    pub volatility: Volatility,
    /// What a call runs.
    pub body: Body,
}

impl Function {
    /// A strict, immutable function of rows.
    #[must_use]
    pub const fn row(
        oid: u32,
        name: &'static str,
        arguments: &'static [u32],
        result: u32,
        body: fn(&Call<'_>, &[Datum]) -> Result<Datum>,
    ) -> Self {
        Self {
            oid,
            name,
            arguments,
            optional: 0,
            defaults: &[],
            argument_names: &[],
            variadic: 0,
            result,
            columns: &[],
            strict: true,
            volatility: Volatility::Immutable,
            body: Body::Row(body),
        }
    }

    /// A strict, immutable function that gives rows.
    #[must_use]
    pub const fn set(
        oid: u32,
        name: &'static str,
        arguments: &'static [u32],
        result: u32,
        body: fn(&Call<'_>, &[Datum]) -> Result<Vec<Datum>>,
    ) -> Self {
        let mut function = Self::row(oid, name, arguments, result, never);
        function.body = Body::Set(body);
        function
    }

    /// A strict, stable function that the server answers.
    #[must_use]
    pub const fn server(
        oid: u32,
        name: &'static str,
        arguments: &'static [u32],
        result: u32,
    ) -> Self {
        let mut function = Self::row(oid, name, arguments, result, never);
        function.body = Body::Server;
        function.volatility = Volatility::Stable;
        function
    }

    /// A strict, stable function that gives rows, which the server answers.
    #[must_use]
    pub const fn server_set(
        oid: u32,
        name: &'static str,
        arguments: &'static [u32],
        result: u32,
    ) -> Self {
        let mut function = Self::server(oid, name, arguments, result);
        function.body = Body::ServerSet;
        function
    }

    /// An aggregate that leaves rows with a NULL argument out.
    #[must_use]
    pub const fn aggregate(
        oid: u32,
        name: &'static str,
        arguments: &'static [u32],
        result: u32,
        aggregate: &'static Aggregate,
    ) -> Self {
        let mut function = Self::row(oid, name, arguments, result, never);
        function.body = Body::Aggregate(aggregate);
        function
    }

    /// A strict, immutable function of windows.
    #[must_use]
    pub const fn window(
        oid: u32,
        name: &'static str,
        arguments: &'static [u32],
        result: u32,
        kind: WindowKind,
    ) -> Self {
        let mut function = Self::row(oid, name, arguments, result, never);
        function.body = Body::Window(kind);
        function
    }

    /// Called with NULLs, too.
    #[must_use]
    pub const fn called_on_null(mut self) -> Self {
        self.strict = false;
        self
    }

    /// Its answer never changes.
    #[must_use]
    pub const fn immutable(mut self) -> Self {
        self.volatility = Volatility::Immutable;
        self
    }

    /// Its answer may change between statements.
    #[must_use]
    pub const fn stable(mut self) -> Self {
        self.volatility = Volatility::Stable;
        self
    }

    /// Its answer may change at any time.
    #[must_use]
    pub const fn volatile(mut self) -> Self {
        self.volatility = Volatility::Volatile;
        self
    }

    /// Its last argument, an array in `arguments`, takes any number of arguments of this type.
    #[must_use]
    pub const fn variadic(mut self, element: u32) -> Self {
        self.variadic = element;
        self
    }

    /// Its last arguments may be left out.
    #[must_use]
    pub const fn defaults(mut self, defaults: &'static [Option<&'static str>]) -> Self {
        self.optional = defaults.len();
        self.defaults = defaults;
        self
    }

    /// Its arguments have names.
    #[must_use]
    pub const fn named(mut self, names: &'static [&'static str]) -> Self {
        self.argument_names = names;
        self
    }

    /// Its rows have these columns.
    #[must_use]
    pub const fn columns(mut self, columns: &'static [(&'static str, u32)]) -> Self {
        self.columns = columns;
        self
    }

    /// Whether it gives any number of rows.
    #[must_use]
    pub const fn returns_set(&self) -> bool {
        matches!(self.body, Body::Set(_) | Body::ServerSet)
    }

    /// Whether it is an aggregate.
    #[must_use]
    pub const fn is_aggregate(&self) -> bool {
        matches!(self.body, Body::Aggregate(_))
    }

    /// Whether it is a function of windows. Aggregates are called over windows, too.
    #[must_use]
    pub const fn is_window(&self) -> bool {
        matches!(self.body, Body::Window(_))
    }
}

fn never(_: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    Err(crate::error::QueryError::internal("not a function of rows"))
}

/// All functions, by family.
static FAMILIES: &[&[Function]] = &[
    aggregate::FUNCTIONS,
    array::FUNCTIONS,
    bit::FUNCTIONS,
    boolean::FUNCTIONS,
    bytea::FUNCTIONS,
    date::FUNCTIONS,
    date_format::FUNCTIONS,
    date_part::FUNCTIONS,
    encoding::FUNCTIONS,
    enumeration::FUNCTIONS,
    extension::FUNCTIONS,
    float::FUNCTIONS,
    format::FUNCTIONS,
    hash::FUNCTIONS,
    integer::FUNCTIONS,
    interval::FUNCTIONS,
    json::FUNCTIONS,
    jsonb::FUNCTIONS,
    jsonpath::FUNCTIONS,
    network::FUNCTIONS,
    number_format::FUNCTIONS,
    numeric::FUNCTIONS,
    oid::FUNCTIONS,
    pattern::FUNCTIONS,
    range::FUNCTIONS,
    record::FUNCTIONS,
    sample::FUNCTIONS,
    send::FUNCTIONS,
    server::administration::FUNCTIONS,
    server::catalog::FUNCTIONS,
    server::information::FUNCTIONS,
    server::privilege::FUNCTIONS,
    server::session::FUNCTIONS,
    server::statistics::FUNCTIONS,
    set::FUNCTIONS,
    text::FUNCTIONS,
    time::FUNCTIONS,
    time_order::FUNCTIONS,
    time_range::FUNCTIONS,
    time_zone::FUNCTIONS,
    timestamp::FUNCTIONS,
    uuid::FUNCTIONS,
    window::FUNCTIONS,
];

static BY_OID: LazyLock<HashMap<u32, &'static Function>> =
    LazyLock::new(|| all().map(|function| (function.oid, function)).collect());

static BY_NAME: LazyLock<HashMap<&'static str, Vec<&'static Function>>> = LazyLock::new(|| {
    let mut names: HashMap<_, Vec<_>> = HashMap::new();
    for function in all() {
        names.entry(function.name).or_default().push(function);
    }
    names
});

/// All functions.
pub fn all() -> impl Iterator<Item = &'static Function> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// The function with this number.
#[must_use]
pub fn by_oid(oid: u32) -> Option<&'static Function> {
    BY_OID.get(&oid).copied()
}

/// The functions of this name.
#[must_use]
pub fn named(name: &str) -> &'static [&'static Function] {
    BY_NAME.get(name).map_or(&[], Vec::as_slice)
}
