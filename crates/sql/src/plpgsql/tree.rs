//! A body of PL/pgSQL as a tree. Names of variables are resolved to slots where they are
//! assigned. What stands in expressions is a text, with the names that are known there.

use std::sync::Arc;

use thermocline_query::analyze::Conflict;

/// A body: its variables and its outermost block.
#[derive(Debug)]
pub(crate) struct Body {
    /// Every variable of every block.
    pub(crate) slots: Vec<Slot>,
    /// What names mean, each entry behind those that it hides.
    pub(crate) names: Vec<Name>,
    /// The outermost block.
    pub(crate) block: Statement,
    /// How many expressions and statements of SQL there are; each has a number below this.
    pub(crate) sites: usize,
    /// The slot of `FOUND`.
    pub(crate) found: usize,
    /// The slots of the columns of what the function gives.
    pub(crate) columns: Vec<usize>,
    /// What a name means that a variable has, and a column, too.
    pub(crate) conflict: Conflict,
}

/// An entry of the names that are known.
#[derive(Debug)]
pub(crate) struct Name {
    /// The label of a block, or the name of a variable.
    pub(crate) name: Arc<str>,
    /// The variable; none for a block.
    pub(crate) slot: Option<usize>,
    /// The entry before it.
    pub(crate) before: Option<usize>,
}

/// A variable.
#[derive(Debug)]
pub(crate) struct Slot {
    /// Its name.
    pub(crate) name: Arc<str>,
    /// What it was declared as.
    pub(crate) declared: Declared,
    pub(crate) constant: bool,
    pub(crate) not_null: bool,
    /// What it is at first.
    pub(crate) default: Option<Expression>,
}

/// What a variable was declared as.
#[derive(Debug, Clone)]
pub(crate) enum Declared {
    /// A type by its text, or a table's row by its name.
    Type(String),
    /// `name%TYPE`: the parts of the name of a column.
    OfColumn(Vec<String>),
    /// `variable%TYPE`
    OfSlot(usize),
    /// `name%ROWTYPE`: the name as it is written.
    RowOf(String),
    /// `record`
    Record,
    /// An argument or a column of the function: the number of its type.
    Known(u32),
    /// The operand of a CASE: of the type of what it gets.
    Any,
    /// A cursor, by its query if it is bound to one.
    Cursor(Option<Expression>),
}

/// An expression or a statement of SQL.
#[derive(Debug, Clone)]
pub(crate) struct Expression {
    /// Its text, which is a whole statement.
    pub(crate) text: Arc<str>,
    /// What its author wrote.
    pub(crate) written: Arc<str>,
    /// The last entry of the names that it sees.
    pub(crate) names: Option<usize>,
    /// Its number in the body.
    pub(crate) site: usize,
}

/// A statement and its line.
#[derive(Debug)]
pub(crate) struct Statement {
    pub(crate) line: u32,
    pub(crate) kind: Kind,
}

/// `BEGIN … END`
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) label: Option<Arc<str>>,
    /// The slots that it declares, in order.
    pub(crate) declares: Vec<usize>,
    pub(crate) body: Vec<Statement>,
    pub(crate) handlers: Vec<Handler>,
    /// The slots of `SQLSTATE` and `SQLERRM`, where it has handlers.
    pub(crate) told: Option<(usize, usize)>,
}

/// `WHEN … THEN`
#[derive(Debug)]
pub(crate) struct Handler {
    pub(crate) conditions: Vec<Condition>,
    pub(crate) body: Vec<Statement>,
}

/// What a handler takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Condition {
    /// All but a cancel and a failed ASSERT.
    Others,
    /// An error of this code, or of its class.
    Code(String),
}

/// Where a value goes.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) slot: usize,
    /// The column of a row.
    pub(crate) field: Option<String>,
}

/// Where a row goes.
#[derive(Debug)]
pub(crate) struct Into {
    pub(crate) targets: Vec<Target>,
    pub(crate) strict: bool,
}

/// A query in a loop or a RETURN QUERY.
#[derive(Debug)]
pub(crate) enum Source {
    Query(Expression),
    /// `EXECUTE text USING …`
    Dynamic(Dynamic),
}

/// `EXECUTE text USING …`
#[derive(Debug)]
pub(crate) struct Dynamic {
    pub(crate) text: Expression,
    pub(crate) using: Vec<Expression>,
}

/// A loop's body and its label.
#[derive(Debug)]
pub(crate) struct Loop {
    pub(crate) label: Option<Arc<str>>,
    pub(crate) body: Vec<Statement>,
}

/// The bounds of a loop over integers.
#[derive(Debug)]
pub(crate) struct Bounds {
    pub(crate) slot: usize,
    pub(crate) reverse: bool,
    pub(crate) from: Expression,
    pub(crate) to: Expression,
    pub(crate) by: Option<Expression>,
}

/// `RAISE`
#[derive(Debug)]
pub(crate) struct Raise {
    pub(crate) level: Level,
    /// The code that a name or SQLSTATE says.
    pub(crate) condition: Option<(String, String)>,
    pub(crate) format: Option<String>,
    pub(crate) arguments: Vec<Expression>,
    pub(crate) options: Vec<(RaiseOption, Expression)>,
}

/// How much a RAISE is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Debug,
    Log,
    Info,
    Notice,
    Warning,
    Exception,
}

/// What USING gives to a RAISE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RaiseOption {
    Errcode,
    Message,
    Detail,
    Hint,
    Column,
    Constraint,
    Datatype,
    Table,
    Schema,
}

/// What GET DIAGNOSTICS tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Diagnostic {
    RowCount,
    Sqlstate,
    Message,
    Detail,
    Hint,
    Context,
    Column,
    Constraint,
    Datatype,
    Table,
    Schema,
}

/// What a statement is.
#[derive(Debug)]
pub(crate) enum Kind {
    Block(Block),
    Assign(Target, Expression),
    /// `target[…] := …`, by its subscripts.
    Element(Target, Vec<Expression>, Expression),
    If {
        branches: Vec<(Expression, Vec<Statement>)>,
        otherwise: Vec<Statement>,
    },
    /// The operand goes to a slot, which the conditions name.
    Case {
        operand: Option<(usize, Expression)>,
        branches: Vec<(Expression, Vec<Statement>)>,
        otherwise: Option<Vec<Statement>>,
    },
    Loop(Loop),
    While(Expression, Loop),
    ForIntegers(Bounds, Loop),
    ForRows(Into, Source, Loop),
    ForEach(Target, Expression, Loop),
    /// EXIT (true) or CONTINUE.
    Leave {
        exits: bool,
        label: Option<Arc<str>>,
        when: Option<Expression>,
    },
    Return(Option<Expression>),
    ReturnNext(Option<Expression>),
    ReturnQuery(Source),
    Raise(Raise),
    Assert(Expression, Option<Expression>),
    Sql(Expression, Option<Into>),
    Perform(Expression),
    /// A statement of a body of SQL, whose rows nobody takes.
    Run(Expression),
    /// The last one of a body of SQL: what it gives is what the function gives.
    Give(Expression),
    Execute(Dynamic, Option<Into>),
    Diagnostics(bool, Vec<(Target, Diagnostic)>),
    Open(usize, Option<Source>),
    /// FETCH into, or MOVE.
    Fetch(usize, Option<Into>),
    Close(usize),
    /// COMMIT or ROLLBACK.
    End {
        commits: bool,
    },
    Null,
}

impl Statement {
    /// Where an error is, as PostgreSQL says it in the CONTEXT.
    pub(crate) const fn name(&self) -> &'static str {
        match &self.kind {
            Kind::Block(_) => "at statement block",
            Kind::Assign(..) | Kind::Element(..) => "at assignment",
            Kind::If { .. } => "at IF",
            Kind::Case { .. } => "at CASE",
            Kind::Loop(_) => "at LOOP",
            Kind::While(..) => "at WHILE",
            Kind::ForIntegers(..) => "at FOR with integer loop variable",
            Kind::ForRows(_, Source::Query(_), _) => "at FOR over SELECT rows",
            Kind::ForRows(_, Source::Dynamic(_), _) => "at FOR over EXECUTE statement",
            Kind::ForEach(..) => "at FOREACH over array",
            Kind::Leave { exits: true, .. } => "at EXIT",
            Kind::Leave { exits: false, .. } => "at CONTINUE",
            Kind::Return(_) => "at RETURN",
            Kind::ReturnNext(_) => "at RETURN NEXT",
            Kind::ReturnQuery(_) => "at RETURN QUERY",
            Kind::Raise(_) => "at RAISE",
            Kind::Assert(..) => "at ASSERT",
            Kind::Sql(..) | Kind::Run(_) | Kind::Give(_) => "at SQL statement",
            Kind::Perform(_) => "at PERFORM",
            Kind::Execute(..) => "at EXECUTE",
            Kind::Diagnostics(false, _) => "at GET DIAGNOSTICS",
            Kind::Diagnostics(true, _) => "at GET STACKED DIAGNOSTICS",
            Kind::Open(..) => "at OPEN",
            Kind::Fetch(_, Some(_)) => "at FETCH",
            Kind::Fetch(_, None) => "at MOVE",
            Kind::Close(_) => "at CLOSE",
            Kind::End { commits: true } => "at COMMIT",
            Kind::End { commits: false } => "at ROLLBACK",
            Kind::Null => "at NULL",
        }
    }
}
