//! The typed query tree: what a statement means once every name, type,
//! operator and function is resolved. Executors see only this. Positions are
//! numbers; names are kept for EXPLAIN and for results.

use std::sync::Arc;

use crate::datum::Datum;
use crate::functions::Function;
pub use crate::with::CommonTable;

/// An expression with its type. What is printed of it for debugging is all that it means: not where
/// it stands.
#[derive(Clone)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// The number of its type.
    pub oid: u32,
    /// Its type's modifier; -1 for none.
    pub modifier: i32,
    /// Where it stands in the statement, in bytes; -1 for nowhere.
    pub location: i32,
}

/// The kinds of expressions.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A constant.
    Constant(Datum),
    /// `$n`, counted from 0.
    Parameter(usize),
    /// A column of a relation of the query `level` queries further out.
    Column {
        /// 0: of this query.
        level: usize,
        /// The relation, in [`Query::relations`].
        relation: usize,
        /// Its column.
        column: usize,
    },
    /// A row of all columns of a relation (its type is `record`).
    WholeRow {
        /// As in `Column`.
        level: usize,
        /// The relation.
        relation: usize,
    },
    /// A function, or the function of an operator.
    Call(Box<FunctionCall>),
    /// The same bits as another type (`varchar` as `text`).
    Relabel(Box<Expr>),
    /// Through the text form; `oid` is the type that comes of it.
    ThroughText(Box<Expr>),
    /// Fitted to this expression's modifier; the flag says that the cast is written (a text that is too long is cut).
    Fit(Box<Expr>, bool),
    /// As a value of this expression's type, a domain, which it must be.
    Checked(Box<Expr>),
    /// An array whose elements are cast one by one: the array, and the cast of [`ExprKind::Element`].
    ArrayCast(Box<Expr>, Box<Expr>),
    /// The element, within an `ArrayCast`.
    Element,
    /// A row whose columns are cast: the row, and for each column the cast of a `Field` of [`ExprKind::Element`].
    RowCast(Box<Expr>, Vec<Expr>),
    /// All are true.
    And(Vec<Expr>),
    /// Any is true.
    Or(Vec<Expr>),
    /// Not true.
    Not(Box<Expr>),
    /// `IS NULL`, `IS NOT NULL`: the expression, whether NULL is wanted. Of a row: all of its columns.
    IsNull(Box<Expr>, bool),
    /// `IS [NOT] TRUE`, `FALSE`, `UNKNOWN`: the value wanted (`None` for unknown), and whether it is.
    Is(Box<Expr>, Option<bool>, bool),
    /// `IS [NOT] DISTINCT FROM`: a call of `=`, and whether a difference is wanted.
    Distinct(Box<FunctionCall>, bool),
    /// `CASE`: the operand is found in the conditions as [`ExprKind::CaseOperand`].
    Case(Box<Case>),
    /// The operand, within the conditions of a `Case`.
    CaseOperand,
    /// The first that is not NULL.
    Coalesce(Vec<Expr>),
    /// The greatest (true) or the least of those that are not NULL, by their type's order.
    Extreme(Vec<Expr>, bool),
    /// NULL if the two are equal by the call's function, else the first.
    NullIf(Box<FunctionCall>),
    /// `ARRAY[…]`; the flag says that the elements are arrays, which become dimensions.
    Array(Vec<Expr>, bool),
    /// `ROW(…)`
    Row(Vec<Expr>),
    /// `x op ANY|ALL (array)`: the function of the operator, the value, the array; the flag is for ANY.
    AnyOfArray(Box<ArrayComparison>),
    /// A comparison of two rows column by column.
    RowComparison(Box<RowComparison>),
    /// `array[i]`, `array[i:j]`, `jsonb['key']`.
    Subscript(Box<Subscript>),
    /// A column of a row.
    Field(Box<Expr>, usize),
    /// A value with a part of it changed: `SET a[1] = …`, `SET c.f = …`.
    Store(Box<Store>),
    /// A query within an expression.
    Subquery(Box<Subquery>),
    /// A column of the subquery's row, within its test.
    SubqueryColumn(usize),
    /// An aggregate over the groups of the query `level` queries further out.
    Aggregate(Box<AggregateCall>),
    /// A function over a window.
    Window(Box<WindowCall>),
    /// `GROUPING(…)`: the grouping expressions, by their places in [`Query::group`] of the query so
    /// many queries further out.
    Grouping(Vec<usize>, usize),
    /// `CURRENT_DATE` and its like; a precision is in the expression's modifier.
    Now(Now),
}

/// A value of the transaction's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Now {
    /// `CURRENT_DATE`
    Date,
    /// `CURRENT_TIME`
    TimeTz,
    /// `LOCALTIME`
    Time,
    /// `CURRENT_TIMESTAMP`
    TimestampTz,
    /// `LOCALTIMESTAMP`
    Timestamp,
}

/// A call of a function with arguments of the types that it takes.
#[derive(Clone)]
pub struct FunctionCall {
    /// The function.
    pub function: &'static Function,
    /// The sign, where an operator was written.
    pub operator: Option<&'static str>,
    /// The arguments; those of a variadic function are gathered in an array already.
    pub arguments: Vec<Expr>,
    /// The numbers of the arguments' types.
    pub types: Box<[u32]>,
}

/// `CASE`
#[derive(Clone, Debug)]
pub struct Case {
    /// What is compared, if the conditions compare.
    pub operand: Option<Expr>,
    /// Conditions and values.
    pub branches: Vec<(Expr, Expr)>,
    /// The value where no condition is true.
    pub otherwise: Expr,
}

/// `x op ANY (array)`
#[derive(Clone)]
pub struct ArrayComparison {
    /// The operator's function.
    pub function: &'static Function,
    /// The operator's sign.
    pub operator: &'static str,
    /// ANY, else ALL.
    pub any: bool,
    /// The value.
    pub value: Expr,
    /// The array.
    pub array: Expr,
    /// The numbers of the value's and of an element's type.
    pub types: [u32; 2],
}

/// The comparisons of rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>=`
    GreaterOrEqual,
    /// `>`
    Greater,
}

/// `(a, b) < (c, d)`: by the first pair that is not equal. `=` and `<>` are written out as AND and OR.
#[derive(Clone, Debug)]
pub struct RowComparison {
    /// Which.
    pub comparison: Comparison,
    /// The pairs, of one type each.
    pub pairs: Vec<(Expr, Expr)>,
}

/// A subscript.
#[derive(Clone, Debug)]
pub struct Subscript {
    /// What is subscripted.
    pub value: Expr,
    /// Lower and upper bound of each dimension; a slice may leave out either, an element has the upper only.
    pub bounds: Vec<Bounds>,
    /// Whether it is a slice.
    pub slice: bool,
}

/// A value with a part of it changed.
#[derive(Clone, Debug)]
pub struct Store {
    /// The value as it was, which may be NULL.
    pub container: Expr,
    /// The part.
    pub part: Part,
    /// What the part becomes.
    pub value: Expr,
}

/// A part of a value.
#[derive(Clone, Debug)]
pub enum Part {
    /// A column of a row.
    Field(usize),
    /// What is at subscripts of an array or of `jsonb`; the flag says that it is a slice.
    Elements(Vec<Bounds>, bool),
}

/// The lower and the upper bound of one dimension.
pub type Bounds = (Option<Expr>, Option<Expr>);

/// How a subquery becomes a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SubqueryKind {
    /// Whether there is a row.
    Exists,
    /// The one column of its one row, NULL for none; 21000 for several.
    Scalar,
    /// Its one row, to be compared; 21000 for several.
    Row,
    /// Its one column as an array.
    Array,
    /// Whether the test is true of a row.
    Any,
    /// Whether the test is true of all rows.
    All,
}

/// A query within an expression.
#[derive(Clone, Debug)]
pub struct Subquery {
    /// How it becomes a value.
    pub kind: SubqueryKind,
    /// The query. It may refer to columns of queries further out.
    pub query: Query,
    /// For `Row`, `Any`, `All`: what is asked of a row, whose columns are [`ExprKind::SubqueryColumn`].
    pub test: Option<Expr>,
}

/// An aggregate.
#[derive(Clone)]
pub struct AggregateCall {
    /// The function.
    pub function: &'static Function,
    /// Of the query so many queries further out.
    pub level: usize,
    /// Arguments that are the same for the group (ordered-set aggregates).
    pub direct: Vec<Expr>,
    /// What is aggregated.
    pub arguments: Vec<Expr>,
    /// The numbers of all arguments' types, direct ones first.
    pub types: Box<[u32]>,
    /// In which order.
    pub order: Vec<SortKey>,
    /// Each different value once.
    pub distinct: bool,
    /// Only rows of which this is true.
    pub filter: Option<Expr>,
}

/// A function over a window: a window function or an aggregate.
#[derive(Clone)]
pub struct WindowCall {
    /// The function.
    pub function: &'static Function,
    /// The arguments.
    pub arguments: Vec<Expr>,
    /// The numbers of the arguments' types.
    pub types: Box<[u32]>,
    /// Only rows of which this is true (aggregates).
    pub filter: Option<Expr>,
    /// The window, in [`Query::windows`].
    pub window: usize,
}

/// How rows are ordered by one expression.
#[derive(Clone, Debug)]
pub struct SortKey {
    /// The expression.
    pub expr: Expr,
    /// From the greatest to the least.
    pub descending: bool,
    /// NULLs before all.
    pub nulls_first: bool,
}

/// A column of a result or of a relation.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name.
    pub name: Arc<str>,
    /// The number of its type; 0 for one that was dropped, which keeps its place only.
    pub oid: u32,
    /// Its type's modifier.
    pub modifier: i32,
    /// The relation's number and the column's place from 1 in it, where it is a column of a table.
    pub origin: Option<(u32, i16)>,
}

impl Column {
    /// Whether it was dropped: nothing names it, and no row shows it.
    #[must_use]
    pub fn is_dropped(&self) -> bool {
        self.oid == 0
    }
}

/// What a query's relation is.
#[derive(Clone, Debug)]
pub enum RelationKind {
    /// A table, a system relation or a sequence: its number.
    Table(u32),
    /// A query in FROM; with the flag it may refer to relations before it.
    Subquery(Box<Query>, bool),
    /// A query of a WITH: how many queries further out, and its place in [`Query::with`].
    Common {
        /// 0: of this query.
        level: usize,
        /// Its place.
        place: usize,
    },
    /// Functions side by side, with a number for each row if wanted.
    Functions {
        /// The calls: a function that gives rows or a value, or any other expression; the columns that each gives.
        calls: Vec<(Expr, usize)>,
        /// Whether the rows are numbered, in the last column.
        ordinality: bool,
    },
    /// Rows of expressions.
    Values(Vec<Vec<Expr>>, bool),
}

/// A relation of a query.
#[derive(Clone, Debug)]
pub struct Relation {
    /// What it is.
    pub kind: RelationKind,
    /// What the query calls it.
    pub alias: Arc<str>,
    /// Its columns under the names that the query gives them.
    pub columns: Vec<Column>,
    /// The role by whose rights it is read, where that is not the session's: a view's owner.
    pub reader: Option<u32>,
}

/// What the column is called that has the numbers of a table's rows; nobody sees it.
pub const ROW_NUMBER: &str = "row number";

/// Likewise that which has the numbers of rows' partitions.
pub const PARTITION_OID: &str = "partition oid";

impl Relation {
    /// Gives a table the numbers of its rows (`bigint`) as a column behind its own, if it has them
    /// not yet; the column's place. No name leads to it, and no whole row has it.
    pub fn number_rows(&mut self) -> usize {
        self.virtual_column(ROW_NUMBER)
    }

    /// Gives a partitioned table the number of each row's partition (`oid`) as a column behind those
    /// numbers, likewise.
    pub fn name_partitions(&mut self) -> usize {
        self.virtual_column(ROW_NUMBER);
        self.virtual_column(PARTITION_OID)
    }

    fn virtual_column(&mut self, name: &str) -> usize {
        let is_it = |column: &Column| column.is_dropped() && *column.name == *name;
        if let Some(place) = self.columns.iter().rposition(is_it) {
            return place;
        }
        self.columns.push(Column {
            name: Arc::from(name),
            oid: 0,
            modifier: -1,
            origin: None,
        });
        self.columns.len() - 1
    }
}

/// How two sides are joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JoinKind {
    /// `JOIN`
    Inner,
    /// `LEFT JOIN`
    Left,
    /// `RIGHT JOIN`
    Right,
    /// `FULL JOIN`
    Full,
}

/// The tree of joins.
#[derive(Clone, Debug)]
pub enum From {
    /// A relation, in [`Query::relations`].
    Relation(usize),
    /// A join. Both sides' columns keep their places in their relations; the merged
    /// columns of USING are written out where they are used.
    Join {
        /// How.
        kind: JoinKind,
        /// The left side.
        left: Box<From>,
        /// The right side, which may refer to the left one (LATERAL).
        right: Box<From>,
        /// What joins; `None` for all pairs.
        condition: Option<Expr>,
    },
}

/// A column of the result, or what ORDER BY, GROUP BY or DISTINCT ON needs beside them.
#[derive(Clone, Debug)]
pub struct Target {
    /// The expression.
    pub expr: Expr,
    /// Its name.
    pub name: Arc<str>,
    /// Needed for the order only, not shown.
    pub hidden: bool,
    /// Where it comes from, as in [`Column::origin`].
    pub origin: Option<(u32, i16)>,
}

/// `DISTINCT`
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Distinctness {
    /// All rows.
    #[default]
    All,
    /// Rows that differ in what is shown.
    Distinct,
    /// The first row of those that agree in these targets.
    On(Vec<usize>),
}

/// Groups.
#[derive(Clone, Debug, Default)]
pub struct Grouping {
    /// The expressions, over the query's rows. Expressions of targets, HAVING and ORDER BY
    /// contain them as they are here.
    pub exprs: Vec<Expr>,
    /// The sets of expressions, by their places; one with all of them where none are written.
    pub sets: Vec<Vec<usize>>,
}

/// The bound of a frame.
#[derive(Clone, Debug)]
pub enum Bound {
    /// `UNBOUNDED PRECEDING` or, as an end, `FOLLOWING`
    Unbounded,
    /// `n PRECEDING`
    Preceding(Expr),
    /// `CURRENT ROW`
    Current,
    /// `n FOLLOWING`
    Following(Expr),
}

/// What a frame's bounds count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameUnit {
    /// `ROWS`
    Rows,
    /// `RANGE`
    Range,
    /// `GROUPS`
    Groups,
}

/// What is left out of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exclusion {
    /// Nothing.
    None,
    /// The current row.
    Current,
    /// The current row and its peers.
    Group,
    /// The current row's peers.
    Ties,
}

/// A window.
#[derive(Clone, Debug)]
pub struct Window {
    /// Its name, where it has one.
    pub name: Option<Arc<str>>,
    /// Rows that agree in these are a partition.
    pub partition: Vec<Expr>,
    /// The order within it.
    pub order: Vec<SortKey>,
    /// What the bounds count.
    pub unit: FrameUnit,
    /// Where a frame begins.
    pub start: Bound,
    /// Where a frame ends.
    pub end: Bound,
    /// What is left out.
    pub exclusion: Exclusion,
    /// Whether a frame was written.
    pub framed: bool,
}

/// The kinds of set operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetKind {
    /// `UNION`
    Union,
    /// `INTERSECT`
    Intersect,
    /// `EXCEPT`
    Except,
}

/// A set operation. Its sides' columns are of the same types.
#[derive(Clone, Debug)]
pub enum SetOperation {
    /// A query, which is a relation of this query.
    Leaf(usize),
    /// Two sides.
    Node {
        /// Which.
        kind: SetKind,
        /// `ALL`
        all: bool,
        /// The left side.
        left: Box<SetOperation>,
        /// The right side.
        right: Box<SetOperation>,
        /// Casts of each side's columns ([`ExprKind::SubqueryColumn`]) to the common types.
        casts: [Vec<Expr>; 2],
    },
}

/// `FOR UPDATE` and its like.
#[derive(Clone, Debug)]
pub struct RowLock {
    /// The relation.
    pub relation: usize,
    /// The strength: 1 FOR KEY SHARE, 2 FOR SHARE, 3 FOR NO KEY UPDATE, 4 FOR UPDATE.
    pub strength: u8,
    /// What to do about locked rows: 0 wait, 1 leave out, 2 fail.
    pub wait: u8,
}

/// A query.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// The queries of its WITH.
    pub with: Vec<CommonTable>,
    /// Its relations, by which columns are named.
    pub relations: Vec<Relation>,
    /// What it reads; empty for one row without columns. Members are multiplied from left to right.
    pub from: Vec<From>,
    /// Which rows.
    pub filter: Option<Expr>,
    /// The result's columns, and what is needed beside them.
    pub targets: Vec<Target>,
    /// Groups; `Some` too where there are aggregates without GROUP BY.
    pub group: Option<Grouping>,
    /// Which groups.
    pub having: Option<Expr>,
    /// Windows.
    pub windows: Vec<Window>,
    /// Whether a target gives rows (a set-returning function).
    pub has_set_targets: bool,
    /// Which of equal rows.
    pub distinct: Distinctness,
    /// The order: targets' places, and how.
    pub order: Vec<Order>,
    /// How many rows at most.
    pub limit: Option<Expr>,
    /// Rows equal to the last one by the order come, too.
    pub with_ties: bool,
    /// How many rows are left out first.
    pub offset: Option<Expr>,
    /// For UNION and its like: `targets` are then columns of its result, as `Column` of relation 0 of its first leaf.
    pub set_operation: Option<SetOperation>,
    /// Rows to lock.
    pub locks: Vec<RowLock>,
}

/// How rows are ordered by a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Order {
    /// The target.
    pub target: usize,
    /// From the greatest to the least.
    pub descending: bool,
    /// NULLs before all.
    pub nulls_first: bool,
}

impl Expr {
    /// A constant.
    #[must_use]
    pub const fn constant(value: Datum, oid: u32) -> Self {
        Self {
            kind: ExprKind::Constant(value),
            oid,
            modifier: -1,
            location: -1,
        }
    }

    /// An expression of a type without a modifier.
    #[must_use]
    pub const fn new(kind: ExprKind, oid: u32, location: i32) -> Self {
        Self {
            kind,
            oid,
            modifier: -1,
            location,
        }
    }

    /// The same, with a modifier.
    #[must_use]
    pub const fn with_modifier(mut self, modifier: i32) -> Self {
        self.modifier = modifier;
        self
    }
}

impl Query {
    /// The columns of its result.
    #[must_use]
    pub fn columns(&self) -> Vec<Column> {
        self.targets
            .iter()
            .filter(|target| !target.hidden)
            .map(|target| Column {
                name: Arc::clone(&target.name),
                oid: target.expr.oid,
                modifier: target.expr.modifier,
                origin: target.origin,
            })
            .collect()
    }
}
