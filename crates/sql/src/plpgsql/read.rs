//! Blocks and statements of a body.

use std::sync::Arc;

use thermocline_query::analyze::{Conflict, Language, SqlFunction};
use thermocline_query::types::ids;

use super::source::{Source, folded};
use super::statements::read_statements;
use super::tree::{Block, Body, Declared, Expression, Kind, Name, Slot, Statement, Target};
use super::tree::{Dynamic, Source as Rows};
use crate::error::{Result, SqlError};
use crate::parse::scan::{Token, Tokens};

/// How deep blocks, loops and branches may stand in each other.
const NESTED_MAX: usize = 64;

/// What a body is the body of.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signature {
    /// The function's name, which is the label around its arguments; none for DO.
    pub(crate) name: Option<String>,
    /// The arguments: names and types.
    pub(crate) arguments: Vec<(Option<String>, u32)>,
    /// The columns of what it gives, where they are variables.
    pub(crate) columns: Vec<(String, u32)>,
    /// It gives rows.
    pub(crate) returns_set: bool,
    /// RETURN has no value: DO, `void`, OUT arguments.
    pub(crate) returns_nothing: bool,
    /// It is a trigger's function, or a trigger's condition.
    pub(crate) of_trigger: bool,
    /// Its body is statements of SQL, and it gives a value of this type.
    pub(crate) of_statements: Option<u32>,
}

impl Signature {
    /// Of a function.
    pub(crate) fn of(function: &SqlFunction) -> Self {
        let named = |name: &str, oid| (name.to_owned(), oid);
        let columns = function.columns.iter();
        // A query, too, is run as a statement where it is called.
        let is_statements = function.language != Language::PlPgSql;
        let columns: Vec<(String, u32)> = match &function.out {
            Some(out) => vec![named(out, function.result)],
            // Statements of SQL only know the arguments.
            None if is_statements => Vec::new(),
            None => columns
                .map(|column| named(&column.name, column.oid))
                .collect(),
        };
        Self {
            name: Some(function.name.to_string()),
            arguments: function
                .arguments
                .iter()
                .map(|of| (of.name.as_deref().map(str::to_owned), of.oid))
                .collect(),
            returns_set: function.returns_set,
            returns_nothing: function.result == ids::VOID || !columns.is_empty(),
            columns,
            of_trigger: function.result == ids::TRIGGER,
            of_statements: is_statements.then_some(function.result),
        }
    }
}

/// The state of reading a body.
pub(super) struct Reader<'a> {
    pub(super) source: Source<'a>,
    pub(super) slots: Vec<Slot>,
    pub(super) names: Vec<Name>,
    /// The last entry of the names that are known here.
    pub(super) known: Option<usize>,
    /// The aliases of the DECLARE section at hand.
    pub(super) declared_here: Vec<String>,
    pub(super) sites: usize,
    pub(super) signature: &'a Signature,
    /// The labels around, and whether a loop has them.
    pub(super) labels: Vec<(Option<Arc<str>>, bool)>,
    /// How many handlers are around.
    pub(super) handlers: usize,
    nested: usize,
    /// The slots of the columns of what the function gives.
    columns: Vec<usize>,
}

/// Reads a body, of either language. Its first slots are the arguments, then the columns of what it gives.
///
/// # Errors
/// 42601 as PostgreSQL; 0A000 for what is not done.
pub(crate) fn read(text: &str, signature: &Signature) -> Result<Body> {
    if let Some(result) = signature.of_statements {
        return read_statements(text, signature, result);
    }
    let mut reader = Reader::new(text, signature)?;
    let found = reader.slot("found", Declared::Known(ids::BOOL))?;
    reader.know("found", Some(found));
    let mut conflict = Conflict::Error;
    while reader.source.take_symbol("#") {
        conflict = reader.option()?.unwrap_or(conflict);
    }
    let block = reader.statement()?;
    if !matches!(block.kind, Kind::Block(_)) {
        return Err(SqlError::syntax("a body is a block: BEGIN … END"));
    }
    if reader.source.peek().is_some() {
        return Err(reader.source.unexpected());
    }
    Ok(reader.into_body(block, found, conflict))
}

impl<'a> Reader<'a> {
    /// Of a text, with what the signature makes known.
    pub(super) fn new(text: &'a str, signature: &'a Signature) -> Result<Self> {
        let mut reader = Self {
            source: Source::new(text)?,
            slots: Vec::new(),
            names: Vec::new(),
            known: None,
            declared_here: Vec::new(),
            sites: 0,
            signature,
            labels: Vec::new(),
            handlers: 0,
            nested: 0,
            columns: Vec::new(),
        };
        reader.signature()?;
        Ok(reader)
    }

    /// What was read.
    pub(super) fn into_body(self, block: Statement, found: usize, conflict: Conflict) -> Body {
        Body {
            slots: self.slots,
            names: self.names,
            block,
            sites: self.sites,
            found,
            columns: self.columns,
            conflict,
        }
    }

    /// An option of a body, behind its `#`: what a name means that a variable has, and a column.
    fn option(&mut self) -> Result<Option<Conflict>> {
        let option = self.source.name()?;
        let value = self.source.name()?;
        match (option.as_str(), value.as_str()) {
            ("variable_conflict", "error") => Ok(Some(Conflict::Error)),
            ("variable_conflict", "use_column") => Ok(Some(Conflict::Column)),
            ("variable_conflict", "use_variable") => Ok(Some(Conflict::Variable)),
            // What is told beside errors, and how a body was read. No answer depends on it.
            ("print_strict_params", "on" | "off") | ("option", "dump") => Ok(None),
            _ => Err(self.source.unexpected()),
        }
    }

    fn signature(&mut self) -> Result<()> {
        let signature = self.signature;
        if let Some(name) = &signature.name {
            self.know(name, None);
        }
        if signature.of_trigger {
            self.trigger_variables()?;
        }
        let arguments = signature.arguments.iter().enumerate();
        for (at, (name, oid)) in arguments {
            let shown = name.clone().unwrap_or_else(|| format!("${}", at + 1));
            let slot = self.slot(&shown, Declared::Known(*oid))?;
            self.know(&format!("${}", at + 1), Some(slot));
            if let Some(name) = name {
                self.know(name, Some(slot));
            }
        }
        for (name, oid) in &signature.columns {
            // An INOUT argument is its column.
            let slot = match self.variable(std::slice::from_ref(name)) {
                Some((slot, 1)) => slot,
                _ => self.slot(name, Declared::Known(*oid))?,
            };
            self.know(name, Some(slot));
            self.columns.push(slot);
        }
        Ok(())
    }

    /// Statements up to one of these words, which is left.
    pub(super) fn statements(&mut self, ends: &[&str]) -> Result<Vec<Statement>> {
        let mut statements = Vec::new();
        while !ends.iter().any(|end| self.source.is_word(end)) {
            if self.source.peek().is_none() {
                return Err(self.source.unexpected());
            }
            statements.push(self.statement()?);
        }
        Ok(statements)
    }

    fn statement(&mut self) -> Result<Statement> {
        self.nested += 1;
        if self.nested > NESTED_MAX {
            let message = "stack depth limit exceeded";
            return Err(SqlError::new("54001", message).with_hint(format!(
                "Blocks, loops and branches of a body may stand in each other {NESTED_MAX} deep."
            )));
        }
        let known = self.known;
        let statement = self.statement_here();
        self.known = known;
        self.nested -= 1;
        statement
    }

    fn statement_here(&mut self) -> Result<Statement> {
        let label = self.label()?;
        let line = self.source.line(self.source.place());
        let Some(first) = self.source.peek() else {
            return Err(self.source.unexpected());
        };
        let word = match first.token {
            Token::Word(word) => word.to_lowercase(),
            _ => String::new(),
        };
        let takes_label = matches!(
            word.as_str(),
            "declare" | "begin" | "loop" | "while" | "for" | "foreach"
        );
        if label.is_some() && !takes_label {
            return Err(self.source.unexpected());
        }
        if let Some(kind) = self.assignment()? {
            return Ok(Statement { line, kind });
        }
        let kind = match word.as_str() {
            "declare" | "begin" => self.block(label)?,
            "if" => self.branches()?,
            "case" => self.case()?,
            "loop" => {
                self.source.next();
                Kind::Loop(self.body_of_loop(label)?)
            }
            "while" => {
                self.source.next();
                let condition = self.value_until(&["loop"])?;
                self.source.next();
                Kind::While(condition, self.body_of_loop(label)?)
            }
            "for" => self.for_loop(label)?,
            "foreach" => self.for_each(label)?,
            "exit" | "continue" => self.leave(word == "exit")?,
            "return" => self.returned()?,
            "null"
                if self
                    .source
                    .ahead(1)
                    .is_some_and(|token| token.is_symbol(";")) =>
            {
                self.source.next();
                self.source.need_symbol(";")?;
                Kind::Null
            }
            _ => self.other(&word)?,
        };
        Ok(Statement { line, kind })
    }

    fn other(&mut self, word: &str) -> Result<Kind> {
        match word {
            "raise" => self.raise(),
            "assert" => self.assert(),
            "get" => self.diagnostics(),
            "execute" => self.execute(),
            "perform" => self.perform(),
            "open" => self.open(),
            "fetch" | "move" => self.fetch(word == "fetch"),
            "close" => self.close(),
            "call" | "do" => Err(SqlError::unsupported(
                format!("{} in PL/pgSQL is not supported", word.to_uppercase()),
                "Write a function, and call it.",
            )),
            "commit" | "rollback" => self.transaction(word == "commit"),
            _ => self.sql(),
        }
    }

    /// COMMIT or ROLLBACK.
    fn transaction(&mut self, commits: bool) -> Result<Kind> {
        self.source.next();
        if self.source.take_word("and") {
            if !self.source.take_word("no") {
                return Err(SqlError::unsupported(
                    "AND CHAIN in PL/pgSQL is not supported",
                    "Leave it out: the next transaction has the settings of the session.",
                ));
            }
            self.source.need_word("chain")?;
        }
        self.source.need_symbol(";")?;
        Ok(Kind::End { commits })
    }

    fn label(&mut self) -> Result<Option<Arc<str>>> {
        if !self.source.take_symbol("<<") {
            return Ok(None);
        }
        let name = self.source.name()?;
        self.source.need_symbol(">>")?;
        Ok(Some(Arc::from(name)))
    }

    /// The label behind END, which must be the one before the block.
    pub(super) fn end_label(&mut self, label: Option<&Arc<str>>) -> Result<()> {
        if self.source.take_symbol(";") {
            return Ok(());
        }
        if self.source.peek().is_none() {
            return Ok(());
        }
        let name = self.source.name()?;
        match label {
            Some(label) if **label == *name => {}
            Some(label) => {
                return Err(SqlError::syntax(format!(
                    "end label \"{name}\" differs from block's label \"{label}\""
                )));
            }
            None => {
                return Err(SqlError::syntax(format!(
                    "end label \"{name}\" specified for unlabeled block"
                )));
            }
        }
        match self.source.peek() {
            None => Ok(()),
            Some(_) => self.source.need_symbol(";"),
        }
    }

    fn assignment(&mut self) -> Result<Option<Kind>> {
        let Some(first) = self.source.peek().and_then(|placed| folded(placed.token)) else {
            return Ok(None);
        };
        let mut parts = vec![first];
        let mut at = 1;
        while self
            .source
            .ahead(at)
            .is_some_and(|token| token.is_symbol("."))
        {
            let Some(part) = self.source.ahead(at + 1).and_then(folded) else {
                return Ok(None);
            };
            parts.push(part);
            at += 2;
        }
        let is = |symbol: &str| {
            self.source
                .ahead(at)
                .is_some_and(|token| token.is_symbol(symbol))
        };
        let is_element = is("[") && self.variable(&parts).is_some();
        if !is(":=") && !is("=") && !is_element {
            return Ok(None);
        }
        let target = self.target()?;
        if is_element {
            return self.element(target).map(Some);
        }
        self.source.next();
        let value = self.value_until(&[";"])?;
        self.source.next();
        Ok(Some(Kind::Assign(target, value)))
    }

    /// `a[i] := value`
    fn element(&mut self, target: Target) -> Result<Kind> {
        let mut subscripts = Vec::new();
        while self.source.take_symbol("[") {
            let line = self.source.line(self.source.place());
            let text = self.source.until(|token| token.is_symbol("]"))?;
            if Tokens::new(text).any(|token| token.is_symbol(":")) {
                return Err(SqlError::unsupported(
                    "the assignment of a slice of an array is not supported",
                    "Assign the elements one by one.",
                ));
            }
            subscripts.push(self.expression("SELECT ", text, line)?);
            self.source.need_symbol("]")?;
        }
        if self
            .source
            .ahead(0)
            .is_some_and(|token| token.is_symbol("."))
        {
            return Err(SqlError::unsupported(
                "the assignment of a column of an element is not supported",
                "Assign the whole element.",
            ));
        }
        if !self.source.take_symbol("=") {
            self.source.need_symbol(":=")?;
        }
        let value = self.value_until(&[";"])?;
        self.source.next();
        Ok(Kind::Element(target, subscripts, value))
    }

    fn block(&mut self, label: Option<Arc<str>>) -> Result<Kind> {
        self.know(label.as_deref().unwrap_or(""), None);
        self.declared_here.clear();
        let declares = match self.source.take_word("declare") {
            true => self.declarations()?,
            false => Vec::new(),
        };
        self.source.need_word("begin")?;
        self.labels.push((label.clone(), false));
        let known = self.known;
        let body = self.statements(&["end", "exception"])?;
        self.known = known;
        let mut told = None;
        let mut handlers = Vec::new();
        if self.source.take_word("exception") {
            let text = Declared::Known(ids::TEXT);
            let state = self.slot("sqlstate", text.clone())?;
            let message = self.slot("sqlerrm", text)?;
            self.know("sqlstate", Some(state));
            self.know("sqlerrm", Some(message));
            told = Some((state, message));
            self.handlers += 1;
            handlers = self.exception_handlers()?;
            self.handlers -= 1;
        }
        self.labels.pop();
        self.source.need_word("end")?;
        self.end_label(label.as_ref())?;
        Ok(Kind::Block(Block {
            label,
            declares,
            body,
            handlers,
            told,
        }))
    }

    fn branches(&mut self) -> Result<Kind> {
        self.source.next();
        let mut branches = Vec::new();
        let mut otherwise = Vec::new();
        loop {
            let condition = self.value_until(&["then"])?;
            self.source.next();
            let body = self.statements(&["elsif", "elseif", "else", "end"])?;
            branches.push((condition, body));
            if self.source.take_word("elsif") || self.source.take_word("elseif") {
                continue;
            }
            if self.source.take_word("else") {
                otherwise = self.statements(&["end"])?;
            }
            break;
        }
        self.source.need_word("end")?;
        self.source.need_word("if")?;
        self.source.need_symbol(";")?;
        Ok(Kind::If {
            branches,
            otherwise,
        })
    }

    fn case(&mut self) -> Result<Kind> {
        self.source.next();
        let operand = match self.source.is_word("when") {
            true => None,
            false => {
                let value = self.value_until(&["when"])?;
                let name = format!("__Case__Variable_{}__", self.slots.len());
                let slot = self.slot(&name, Declared::Any)?;
                self.know(&name, Some(slot));
                Some((slot, value))
            }
        };
        let mut branches = Vec::new();
        while self.source.take_word("when") {
            let line = self.source.line(self.source.place());
            let written = self.source.until(|token| token.is_word("then"))?;
            self.source.next();
            let condition = match &operand {
                None => self.expression("SELECT ", written, line)?,
                Some((slot, _)) => {
                    let name = Arc::clone(&self.slots[*slot].name);
                    self.expression("SELECT ", &format!("\"{name}\" IN ({written})"), line)?
                }
            };
            branches.push((condition, self.statements(&["when", "else", "end"])?));
        }
        let otherwise = match self.source.take_word("else") {
            true => Some(self.statements(&["end"])?),
            false => None,
        };
        self.source.need_word("end")?;
        self.source.need_word("case")?;
        self.source.need_symbol(";")?;
        Ok(Kind::Case {
            operand,
            branches,
            otherwise,
        })
    }

    fn returned(&mut self) -> Result<Kind> {
        self.source.next();
        let (returns_set, nothing) = (self.signature.returns_set, self.signature.returns_nothing);
        if self.source.is_word("next") || self.source.is_word("query") {
            let word = if self.source.is_word("next") {
                "NEXT"
            } else {
                "QUERY"
            };
            if !returns_set {
                let message = format!("cannot use RETURN {word} in a non-SETOF function");
                return Err(SqlError::new("42804", message));
            }
            self.source.next();
            return match word {
                "NEXT" => Ok(Kind::ReturnNext(self.optional_value(
                    "RETURN NEXT cannot have a parameter in function with OUT parameters",
                    "RETURN NEXT must have a parameter",
                )?)),
                _ => self.return_query(),
            };
        }
        if returns_set {
            if !self.source.take_symbol(";") {
                return Err(SqlError::new(
                    "42804",
                    "RETURN cannot have a parameter in function returning set",
                )
                .with_hint("Use RETURN NEXT or RETURN QUERY."));
            }
            return Ok(Kind::Return(None));
        }
        let has_columns = match nothing && self.signature.columns.is_empty() {
            true => "RETURN cannot have a parameter in function returning void",
            false => "RETURN cannot have a parameter in function with OUT parameters",
        };
        Ok(Kind::Return(
            self.optional_value(has_columns, "missing expression")?,
        ))
    }

    /// A value where the function's rows are no variables of its own; else none.
    fn optional_value(&mut self, given: &str, missing: &str) -> Result<Option<Expression>> {
        let is_there = !self.source.take_symbol(";");
        match (is_there, self.signature.returns_nothing) {
            (true, true) => Err(SqlError::new("42804", given)),
            (false, false) => Err(SqlError::syntax(format!("{missing} at or near \";\""))),
            (false, true) => Ok(None),
            (true, false) => {
                let value = self.value_until(&[";"])?;
                self.source.next();
                Ok(Some(value))
            }
        }
    }

    fn return_query(&mut self) -> Result<Kind> {
        Ok(Kind::ReturnQuery(self.rows()?))
    }

    /// A query or an EXECUTE, to the statement's end.
    pub(super) fn rows(&mut self) -> Result<Rows> {
        let rows = match self.source.take_word("execute") {
            true => Rows::Dynamic(self.dynamic(&[";"])?),
            false => {
                let line = self.source.line(self.source.place());
                let text = self.source.until(|token| token.is_symbol(";"))?;
                Rows::Query(self.expression("", text, line)?)
            }
        };
        self.source.need_symbol(";")?;
        Ok(rows)
    }

    /// The text and the USING of an EXECUTE, up to one of these.
    pub(super) fn dynamic(&mut self, ends: &[&str]) -> Result<Dynamic> {
        let mut until = ends.to_vec();
        until.extend(["into", "using"]);
        let text = self.value_until(&until)?;
        let using = self.using(ends)?;
        Ok(Dynamic { text, using })
    }

    /// What USING gives, if it is there.
    pub(super) fn using(&mut self, ends: &[&str]) -> Result<Vec<Expression>> {
        let mut using = Vec::new();
        if !self.source.take_word("using") {
            return Ok(using);
        }
        let mut until = ends.to_vec();
        until.extend([",", "into"]);
        loop {
            using.push(self.value_until(&until)?);
            if !self.source.take_symbol(",") {
                return Ok(using);
            }
        }
    }
}
