//! Texts of the simple protocol that differ in their literals only: `… WHERE id = 5`, then
//! `… WHERE id = 7`. Drivers that put values into the text send nothing else. A shape is such a text
//! with parameters in the places of its literals. When it comes again it is planned once, as a
//! prepared statement, and each text of the shape is a run of it.
//!
//! A shape is taken only where that means the same. Its tree must be the text's own, constants for
//! parameters; its plan must find rows the same way. What the grammar or the analysis looks at
//! itself (`ORDER BY 1`, `numeric(10,2)`) fails there. A value that its type does not read sends the text on
//! its usual way, which knows how to complain.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use thermocline_engine::ChargeKind;
use thermocline_query::datum::Datum;
use thermocline_query::types::ids;
use thermocline_values::value::Value;

use super::charges::footprint;
use super::lookup::Lookup;
use super::parameters::{self, Texts};
use super::prepared::{Planned, Prepared};
use super::run::{Run, command_complete};
use super::transaction::{Block, Company};
use super::{Client, Session};
use crate::error::Result;
use crate::output::Formats;
use crate::parse;
use crate::parse::scan::{Token, Tokens};
use crate::plan::{Plan, ShortPlan};
use crate::stack;

/// The most literals that a shape has.
const LITERALS_MAX: usize = 64;
/// The longest text that is looked at, in bytes.
const TEXT_BYTES_MAX: usize = 2048;

/// Trees that are longer when they are printed are not compared, in bytes.
const TREE_BYTES_MAX: usize = 64 << 10;

/// Words that literals follow which are values.
const BEFORE_VALUES: [&str; 9] = [
    "where", "and", "or", "not", "between", "like", "then", "else", "when",
];
/// Words with which lists begin whose numbers are places, or which a plan depends on.
const BEFORE_PLACES: [&str; 5] = ["order", "group", "limit", "offset", "fetch"];
/// Types whose parentheses hold no values.
const WITH_MODIFIERS: [&str; 10] = [
    "numeric",
    "decimal",
    "varchar",
    "char",
    "character",
    "varying",
    "bit",
    "time",
    "timestamp",
    "interval",
];
/// Types of which a parameter reads what a literal reads.
const TYPES: [u32; 16] = [
    ids::BOOL,
    ids::INT2,
    ids::INT4,
    ids::INT8,
    ids::FLOAT4,
    ids::FLOAT8,
    ids::NUMERIC,
    ids::TEXT,
    ids::VARCHAR,
    ids::BPCHAR,
    ids::DATE,
    ids::TIME,
    ids::TIMESTAMP,
    ids::TIMESTAMPTZ,
    ids::UUID,
    ids::JSONB,
];

/// A statement for all texts of a shape; none where it would mean something else.
pub(super) struct Shape(Option<Arc<Prepared>>);

/// A literal in a text.
#[derive(Clone, Copy, Debug)]
struct Literal {
    /// Where it is, with its sign or its quotes.
    from: usize,
    to: usize,
    /// The type that it declares; 0 of a string.
    oid: u32,
}

/// The shape of the text that was read last; kept for its buffers.
#[derive(Default)]
pub(super) struct Reading {
    /// The text with its parameters, behind it the kinds of its literals.
    key: String,
    /// Where the kinds begin.
    kinds_at: usize,
    literals: Vec<Literal>,
    /// How many texts ran as one of their shape.
    runs: u64,
}

impl Reading {
    /// Reads the shape of a text; false if it has none.
    fn read(&mut self, sql: &str) -> bool {
        self.key.clear();
        self.literals.clear();
        if sql.len() > TEXT_BYTES_MAX {
            return false;
        }
        let mut tokens = Tokens::new(sql);
        let first = tokens.next();
        if !first.is_some_and(|first| {
            let words = ["select", "insert", "update", "delete"];
            words.iter().any(|word| first.is_word(word))
        }) {
            return false;
        }
        let mut before = first;
        let mut kinds = [0; LITERALS_MAX];
        // Numbers are no values up to the next closing parenthesis.
        let mut fixed = false;
        let mut copied = 0;
        let mut signed_at = None;
        while let Some(token) = tokens.next() {
            let sign_at = signed_at.take();
            match token {
                Token::Constant(text) if !fixed => {
                    let from = tokens.at() - text.len();
                    // `-5` is one literal where no value is before the sign.
                    let signed = sign_at.filter(|at| at + 1 == from);
                    let is_value = sign_at.is_some() || is_before_value(before);
                    let number = self.literals.len();
                    let kind = kind_of(text, signed.is_some());
                    if let Some((oid, kind)) = kind.filter(|_| is_value) {
                        if number == LITERALS_MAX {
                            return false;
                        }
                        let from = signed.unwrap_or(from);
                        let to = tokens.at();
                        self.key.push_str(&sql[copied..from]);
                        let _ = write!(self.key, "${}", number + 1);
                        copied = to;
                        kinds[number] = kind;
                        self.literals.push(Literal { from, to, oid });
                    }
                }
                // Another statement, or a parameter that nobody gave.
                Token::Parameter(_) => return false,
                _ if before == Some(Token::Symbol(";")) => return false,
                Token::Word(word) => {
                    fixed = fixed || is_one_of(word, &BEFORE_PLACES);
                }
                Token::Symbol("(") => {
                    fixed = fixed
                        || matches!(before, Some(Token::Word(word)) if is_one_of(word, &WITH_MODIFIERS));
                }
                Token::Symbol(")") => fixed = false,
                Token::Symbol("-") if is_before_value(before) => {
                    signed_at = Some(tokens.at() - 1);
                }
                _ => {}
            }
            before = Some(token);
        }
        if self.literals.is_empty() {
            return false;
        }
        self.key.push_str(&sql[copied..]);
        self.kinds_at = self.key.len();
        self.key.push('\0');
        let kinds = &kinds[..self.literals.len()];
        self.key.extend(kinds.iter().map(|kind| char::from(*kind)));
        true
    }

    /// The text with parameters.
    fn text(&self) -> &str {
        &self.key[..self.kinds_at]
    }

    /// The literals' texts: numbers as they stand, strings without their quotes.
    fn values<'a>(&self, sql: &'a str) -> Vec<std::borrow::Cow<'a, str>> {
        let value = |literal: &Literal| {
            let text = &sql[literal.from..literal.to];
            match literal.oid {
                0 if text[1..text.len() - 1].contains('\'') => {
                    text[1..text.len() - 1].replace("''", "'").into()
                }
                0 => (&text[1..text.len() - 1]).into(),
                _ => text.into(),
            }
        };
        self.literals.iter().map(value).collect()
    }

    fn declared(&self) -> Vec<u32> {
        self.literals.iter().map(|literal| literal.oid).collect()
    }
}

fn is_one_of(word: &str, words: &[&str]) -> bool {
    words.iter().any(|other| word.eq_ignore_ascii_case(other))
}

/// Whether a literal behind this token may be a value, whatever it says.
fn is_before_value(before: Option<Token<'_>>) -> bool {
    match before {
        Some(Token::Symbol(symbol)) => !matches!(symbol, ")" | "]" | "[" | "." | "::" | ":" | ";"),
        Some(Token::Word(word)) => is_one_of(word, &BEFORE_VALUES),
        _ => false,
    }
}

/// The type that a literal declares, and its kind: with another the text would mean something
/// else. None of one that is left as it stands.
fn kind_of(text: &str, signed: bool) -> Option<(u32, u8)> {
    let kind = |oid, kind: u8| match signed {
        true => Some((oid, kind.to_ascii_uppercase())),
        false => Some((oid, kind)),
    };
    let bytes = text.as_bytes();
    if bytes[0] == b'\'' {
        // Quotes within are doubled, unless the last one is missing.
        let quotes = bytes.iter().filter(|byte| **byte == b'\'').count();
        let whole = quotes % 2 == 0 && bytes.ends_with(b"'");
        return kind(0, b's').filter(|_| whole && !signed);
    }
    let points = bytes.iter().filter(|byte| **byte == b'.').count();
    let digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
    if points + digits != bytes.len() || points > 1 || digits == 0 {
        return None;
    }
    if points == 1 {
        return kind(ids::NUMERIC, b'n');
    }
    let number = text.parse::<i64>().ok()?;
    let number = if signed { -number } else { number };
    match i32::try_from(number) {
        Ok(_) => kind(ids::INT4, b'i'),
        Err(_) => kind(ids::INT8, b'l'),
    }
}

impl Session {
    /// How many texts of the simple protocol ran by a plan that was made for others, which differ
    /// from them in their literals.
    #[must_use]
    pub const fn shaped_runs(&self) -> u64 {
        self.reading.runs
    }

    /// Whether a text has a shape, which is read now.
    pub(super) fn has_shape(&mut self, sql: &str) -> bool {
        self.reading.read(sql)
    }

    /// Runs the text whose shape was read as one of that, if it is known. Whether it did.
    pub(super) async fn run_shaped(&mut self, sql: &str, client: &mut Client) -> Result<bool> {
        let Some(shape) = self.shapes.get(&self.reading.key) else {
            return Ok(false);
        };
        let Some(prepared) = &shape.0 else {
            return Ok(false);
        };
        let (Some(statement), Some(query)) = (&prepared.statement, prepared.query()) else {
            return Ok(false);
        };
        let began = Instant::now();
        self.begin_count();
        // Values may say `today`: this begins first.
        self.begin_text(&Arc::from(sql), statement, Company::Alone)?;
        let Some((planned, values)) = self.shaped(prepared, sql) else {
            return Ok(false);
        };
        let own = self.transaction.block() == Block::None;
        let run = Run {
            prepared,
            planned: Some(&planned),
            is_fresh: true,
            parameters: &values,
            formats: &Formats::Text,
            describe: true,
        };
        let mark = client.out.len();
        match self.run_query(query, &planned, &run, client).await {
            Ok(count) => {
                self.rows_processed = count;
                command_complete(client, planned.bound.command, count);
            }
            // A DDL came between; nothing was done.
            Err(error) if error.stale_plan => {
                client.out.truncate(mark);
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
        self.end_run(prepared, own, began);
        self.reading.runs += 1;
        Ok(true)
    }

    /// The plan of a shape's statement that still holds, and its parameters in a text.
    fn shaped(&self, prepared: &Prepared, sql: &str) -> Option<(Arc<Planned>, Vec<Value>)> {
        let planned = self.lookup().current_plan(prepared)?;
        let texts = self.reading.values(sql);
        let texts: Vec<Option<&[u8]>> = texts.iter().map(|text| Some(text.as_bytes())).collect();
        let values = parameters::decode(
            &planned.parameter_oids,
            &planned.parameters,
            "",
            (&[], &texts),
            Texts {
                styles: &planned.settings.styles,
                now_us: self.context.transaction_us(),
            },
        );
        Some((planned, values.ok()?))
    }

    /// Keeps the shape that was read of a text, which has run as it stood, if it came before.
    pub(super) fn keep_shape(&mut self, sql: &str, ran: &Prepared) {
        if ran.query().is_none() || stack::is_deep(ran.depth) {
            return;
        }
        let key = &self.reading.key;
        let is_refused = self.shapes.get(key).is_some_and(|shape| shape.0.is_none());
        if is_refused || !self.shapes.wants(key) {
            return;
        }
        let Ok(charge) = (self.account).charge(ChargeKind::Plan, footprint(self.reading.text()))
        else {
            return;
        };
        let shape = Shape(self.shape_of(sql, ran));
        let key = Arc::from(self.reading.key.as_str());
        self.shapes.keep(key, Arc::new(shape), charge);
    }

    /// The statement for the shape of a text, if each text of the shape means what that means.
    fn shape_of(&self, sql: &str, ran: &Prepared) -> Option<Arc<Prepared>> {
        let lookup = self.lookup();
        let own = lookup.current_plan(ran)?;
        let text: Arc<str> = Arc::from(self.reading.text());
        let (mut statements, depth) = parse::parse_measured(&text).ok()?;
        let statement = statements.pop().filter(|_| statements.is_empty())?;
        let declared = self.reading.declared();
        let prepared = Prepared::new(Arc::clone(&text), Some(statement), declared);
        let prepared = prepared
            .undescribed()
            .of_depth(depth)
            .of_query_id(ran.query_id());
        let planned = lookup.plan(&prepared, prepared.query()?).ok()?;
        let same = finds_rows_alike(&own, &planned)
            && self.means_the_same(&lookup, sql, &prepared, &planned);
        same.then(|| Arc::new(prepared))
    }

    /// Whether the tree of a text is that of its shape, with the text's literals as constants.
    fn means_the_same(
        &self,
        lookup: &Lookup<'_>,
        sql: &str,
        prepared: &Prepared,
        planned: &Planned,
    ) -> bool {
        let oids = &planned.parameter_oids;
        if oids.len() != self.reading.literals.len() || !oids.iter().all(|oid| TYPES.contains(oid))
        {
            return false;
        }
        let texts = self.reading.values(sql);
        let styles = &planned.settings.styles;
        let now_us = self.context.transaction_us();
        let values: Result<Vec<_>> = (oids.iter().zip(&texts))
            .map(|(oid, text)| styles.datum(*oid, text, now_us))
            .collect();
        let Ok(values) = values else { return false };
        let printed = |text: &str, declared: &[u32], values: &[Datum]| {
            let mut tree = lookup.tree(text, declared).ok().flatten()?;
            tree.give(values);
            let mut printed = Printed(String::new());
            write!(printed, "{tree:?}").ok().map(|()| printed.0)
        };
        let own = printed(sql, &[], &[]);
        own.is_some() && own == printed(&prepared.text, &prepared.declared, &values)
    }
}

/// A tree as it is printed, up to [`TREE_BYTES_MAX`].
struct Printed(String);

impl std::fmt::Write for Printed {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        if self.0.len() + text.len() > TREE_BYTES_MAX {
            return Err(std::fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// Whether two plans of short statements reach rows the same way; constants and conditions left out.
fn finds_rows_alike(one: &Planned, other: &Planned) -> bool {
    let ways = |planned: &Planned| -> Option<Vec<String>> {
        let plan = match &planned.bound.plan {
            Plan::Short(ShortPlan::OneRow(_) | ShortPlan::Computed(_))
            | Plan::Analytical { .. } => return None,
            Plan::Short(plan) => plan,
        };
        if planned.calls_functions() || planned.asked.is_some() || planned.of_the_moment {
            return None;
        }
        let lines = plan.explain();
        if lines.iter().any(|line| line.contains("Analytical")) {
            return None;
        }
        let way = |line: String| match line.split_once(": ") {
            Some((label, conditions)) if label != "Path" => {
                format!("{label}{}", conditions.matches(") AND (").count())
            }
            _ => line,
        };
        Some(lines.into_iter().map(way).collect())
    };
    one.columns == other.columns && ways(one).is_some_and(|way| Some(way) == ways(other))
}
