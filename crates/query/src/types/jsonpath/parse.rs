//! The grammar of paths.

use super::super::json::too_deep;
use super::super::numeric::Numeric;
use super::regex::Pattern;
use super::scan::{Keyword, Scanner, Word};
use super::{Chain, DEPTH_MAX, Item, JsonPath, Method, Operator};
use crate::error::{QueryError, Result};
use std::sync::Arc;

impl JsonPath {
    /// Reads a text.
    ///
    /// # Errors
    /// 42601 and others where it is no path.
    pub fn parse(text: &str) -> Result<Self> {
        let mut scanner = Scanner::new(text);
        let word = scanner.next()?;
        if word == Word::End {
            return Err(QueryError::invalid_text("jsonpath", text));
        }
        let mut parser = Parser {
            scanner,
            word,
            open: 0,
        };
        let lax = match parser.keyword() {
            Some(Keyword::Strict) => {
                parser.advance()?;
                false
            }
            Some(Keyword::Lax) => {
                parser.advance()?;
                true
            }
            _ => true,
        };
        let root = parser.any()?;
        if parser.word != Word::End {
            return Err(parser.wrong());
        }
        check(&root.chain, 0, false)?;
        Ok(Self {
            lax,
            root: root.chain,
            bytes: text.len() * size_of::<Item>(),
        })
    }
}

/// `@` stands within filters only, `last` within subscripts.
fn check(chain: &Chain, filters: usize, subscript: bool) -> Result<()> {
    for item in &chain.items {
        match item {
            Item::Current if filters == 0 => {
                return Err(QueryError::new(
                    "42601",
                    "@ is not allowed in root expressions",
                ));
            }
            Item::Last if !subscript => {
                return Err(QueryError::new(
                    "42601",
                    "LAST is allowed only in array subscripts",
                ));
            }
            Item::Binary(_, sides) => {
                check(&sides.0, filters, subscript)?;
                check(&sides.1, filters, subscript)?;
            }
            Item::Filter(inner) => check(inner, filters + 1, subscript)?,
            Item::Plus(inner)
            | Item::Minus(inner)
            | Item::Not(inner)
            | Item::IsUnknown(inner)
            | Item::Exists(inner)
            | Item::LikeRegex(inner, _) => check(inner, filters, subscript)?,
            Item::Subscripts(subscripts) => {
                for (from, to) in subscripts {
                    check(from, filters, true)?;
                    if let Some(to) = to {
                        check(to, filters, true)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// What was read: an expression that gives values, or a predicate.
struct Parsed {
    chain: Chain,
    predicate: bool,
}

struct Parser<'a> {
    scanner: Scanner<'a>,
    word: Word,
    /// How many expressions are being read within each other.
    open: usize,
}

impl Chain {
    fn of(item: Item) -> Result<Self> {
        let depth = depth_of(&item);
        if depth > DEPTH_MAX {
            return Err(too_deep());
        }
        Ok(Self {
            items: vec![item],
            depth,
        })
    }

    fn push(&mut self, item: Item) -> Result<()> {
        self.depth = self.depth.max(depth_of(&item));
        if self.depth > DEPTH_MAX {
            return Err(too_deep());
        }
        self.items.push(item);
        Ok(())
    }
}

fn depth_of(item: &Item) -> usize {
    1 + match item {
        Item::Binary(_, sides) => sides.0.depth.max(sides.1.depth),
        Item::Filter(inner)
        | Item::Plus(inner)
        | Item::Minus(inner)
        | Item::Not(inner)
        | Item::IsUnknown(inner)
        | Item::Exists(inner)
        | Item::LikeRegex(inner, _) => inner.depth,
        Item::Subscripts(subscripts) => subscripts
            .iter()
            .map(|(from, to)| from.depth.max(to.as_ref().map_or(0, |to| to.depth)))
            .max()
            .unwrap_or(0),
        _ => 0,
    }
}

impl Parser<'_> {
    fn advance(&mut self) -> Result<()> {
        self.word = self.scanner.next()?;
        Ok(())
    }

    fn keyword(&self) -> Option<Keyword> {
        match self.word {
            Word::Name(_, keyword) => keyword,
            _ => None,
        }
    }

    fn at_mark(&self, mark: &str) -> bool {
        matches!(self.word, Word::Mark(found) if found == mark)
    }

    #[cold]
    fn wrong(&self) -> QueryError {
        self.scanner.error("syntax error")
    }

    fn mark(&mut self, mark: &str) -> Result<()> {
        if !self.at_mark(mark) {
            return Err(self.wrong());
        }
        self.advance()
    }

    fn word(&mut self, keyword: Keyword) -> Result<()> {
        if self.keyword() != Some(keyword) {
            return Err(self.wrong());
        }
        self.advance()
    }

    fn enter(&mut self) -> Result<()> {
        self.open += 1;
        if self.open > DEPTH_MAX {
            return Err(too_deep());
        }
        Ok(())
    }

    /// An expression or a predicate.
    fn any(&mut self) -> Result<Parsed> {
        self.enter()?;
        let parsed = self.disjunction();
        self.open -= 1;
        parsed
    }

    /// A predicate.
    fn predicate(&mut self) -> Result<Chain> {
        let parsed = self.any()?;
        if !parsed.predicate {
            return Err(self.wrong());
        }
        Ok(parsed.chain)
    }

    /// An expression.
    fn expression(&mut self) -> Result<Chain> {
        self.enter()?;
        let parsed = self.sum()?;
        self.open -= 1;
        if parsed.predicate {
            return Err(self.wrong());
        }
        Ok(parsed.chain)
    }

    fn disjunction(&mut self) -> Result<Parsed> {
        let mut left = self.conjunction()?;
        while left.predicate && self.at_mark("||") {
            self.advance()?;
            let right = self.conjunction()?;
            left = self.connected(Operator::Or, left, right)?;
        }
        Ok(left)
    }

    fn conjunction(&mut self) -> Result<Parsed> {
        let mut left = self.comparison()?;
        while left.predicate && self.at_mark("&&") {
            self.advance()?;
            let right = self.comparison()?;
            left = self.connected(Operator::And, left, right)?;
        }
        Ok(left)
    }

    fn connected(&self, operator: Operator, left: Parsed, right: Parsed) -> Result<Parsed> {
        if !right.predicate {
            return Err(self.wrong());
        }
        Ok(Parsed {
            chain: Chain::of(Item::Binary(operator, Box::new((left.chain, right.chain))))?,
            predicate: true,
        })
    }

    /// A predicate without `&&` and `||`, or an expression.
    fn comparison(&mut self) -> Result<Parsed> {
        if self.at_mark("!") {
            self.advance()?;
            let inner = if self.keyword() == Some(Keyword::Exists) {
                self.exists()?
            } else {
                self.mark("(")?;
                let inner = self.predicate()?;
                self.mark(")")?;
                inner
            };
            return predicate(Item::Not(Box::new(inner)));
        }
        if self.keyword() == Some(Keyword::Exists) {
            return Ok(Parsed {
                chain: self.exists()?,
                predicate: true,
            });
        }
        let left = self.sum()?;
        if left.predicate {
            return Ok(left);
        }
        let operator = match self.word {
            Word::Mark("==") => Operator::Equal,
            Word::Mark("!=" | "<>") => Operator::NotEqual,
            Word::Mark("<") => Operator::Less,
            Word::Mark(">") => Operator::Greater,
            Word::Mark("<=") => Operator::LessOrEqual,
            Word::Mark(">=") => Operator::GreaterOrEqual,
            Word::Name(_, Some(Keyword::Starts)) => {
                self.advance()?;
                self.word(Keyword::With)?;
                let initial = match &self.word {
                    Word::String(text) => Item::String(Arc::clone(text)),
                    Word::Variable(name) => Item::Variable(Arc::clone(name)),
                    _ => return Err(self.wrong()),
                };
                self.advance()?;
                let sides = (left.chain, Chain::of(initial)?);
                return predicate(Item::Binary(Operator::StartsWith, Box::new(sides)));
            }
            Word::Name(_, Some(Keyword::LikeRegex)) => {
                self.advance()?;
                return self.like(left.chain);
            }
            _ => return Ok(left),
        };
        self.advance()?;
        let right = self.sum()?;
        if right.predicate {
            return Err(self.wrong());
        }
        predicate(Item::Binary(operator, Box::new((left.chain, right.chain))))
    }

    fn string(&mut self) -> Result<Arc<str>> {
        let Word::String(text) = &self.word else {
            return Err(self.wrong());
        };
        let text = Arc::clone(text);
        self.advance()?;
        Ok(text)
    }

    fn like(&mut self, operand: Chain) -> Result<Parsed> {
        let pattern = self.string()?;
        let flags = if self.keyword() == Some(Keyword::Flag) {
            self.advance()?;
            self.string()?
        } else {
            "".into()
        };
        let pattern = Arc::new(Pattern::new(pattern, &flags)?);
        predicate(Item::LikeRegex(Box::new(operand), pattern))
    }

    fn exists(&mut self) -> Result<Chain> {
        self.advance()?;
        self.mark("(")?;
        let inner = self.expression()?;
        self.mark(")")?;
        Chain::of(Item::Exists(Box::new(inner)))
    }

    fn sum(&mut self) -> Result<Parsed> {
        let mut left = self.product()?;
        loop {
            let operator = match self.word {
                Word::Mark("+") => Operator::Add,
                Word::Mark("-") => Operator::Subtract,
                _ => return Ok(left),
            };
            if left.predicate {
                return Err(self.wrong());
            }
            self.advance()?;
            let right = self.product()?;
            left = self.computed(operator, left, right)?;
        }
    }

    fn product(&mut self) -> Result<Parsed> {
        let mut left = self.signed()?;
        loop {
            let operator = match self.word {
                Word::Mark("*") => Operator::Multiply,
                Word::Mark("/") => Operator::Divide,
                Word::Mark("%") => Operator::Modulo,
                _ => return Ok(left),
            };
            if left.predicate {
                return Err(self.wrong());
            }
            self.advance()?;
            let right = self.signed()?;
            left = self.computed(operator, left, right)?;
        }
    }

    fn computed(&self, operator: Operator, left: Parsed, right: Parsed) -> Result<Parsed> {
        if right.predicate {
            return Err(self.wrong());
        }
        expression(Item::Binary(operator, Box::new((left.chain, right.chain))))
    }

    fn signed(&mut self) -> Result<Parsed> {
        let mut signs = Vec::new();
        loop {
            match self.word {
                Word::Mark("+") => signs.push(false),
                Word::Mark("-") => signs.push(true),
                _ => break,
            }
            self.advance()?;
        }
        let mut operand = self.accessed()?;
        if !signs.is_empty() && operand.predicate {
            return Err(self.wrong());
        }
        for minus in signs.into_iter().rev() {
            operand = match (minus, operand.chain.items.as_slice()) {
                (false, [Item::Number(_)]) => operand,
                (true, [Item::Number(number)]) => expression(Item::Number(number.negate()))?,
                (false, _) => expression(Item::Plus(Box::new(operand.chain)))?,
                (true, _) => expression(Item::Minus(Box::new(operand.chain)))?,
            };
        }
        Ok(operand)
    }

    /// A value or an expression in parentheses, and what is applied to it.
    fn accessed(&mut self) -> Result<Parsed> {
        let mut parsed = if self.at_mark("(") {
            self.advance()?;
            let inner = self.any()?;
            self.mark(")")?;
            if inner.predicate && self.keyword() == Some(Keyword::Is) {
                self.advance()?;
                self.word(Keyword::Unknown)?;
                return predicate(Item::IsUnknown(Box::new(inner.chain)));
            }
            inner
        } else {
            expression(self.primary()?)?
        };
        while let Some(item) = self.accessor()? {
            parsed.chain.push(item)?;
            parsed.predicate = false;
        }
        Ok(parsed)
    }

    fn primary(&mut self) -> Result<Item> {
        let item = match &self.word {
            Word::Mark("$") => Item::Root,
            Word::Mark("@") => Item::Current,
            Word::String(text) => Item::String(Arc::clone(text)),
            Word::Variable(name) => Item::Variable(Arc::clone(name)),
            Word::Integer(digits) | Word::Number(digits) => Item::Number(Numeric::parse(digits)?),
            Word::Name(_, Some(Keyword::Null)) => Item::Null,
            Word::Name(_, Some(Keyword::True)) => Item::Bool(true),
            Word::Name(_, Some(Keyword::False)) => Item::Bool(false),
            Word::Name(_, Some(Keyword::Last)) => Item::Last,
            _ => return Err(self.wrong()),
        };
        self.advance()?;
        Ok(item)
    }

    fn accessor(&mut self) -> Result<Option<Item>> {
        let item = match self.word {
            Word::Mark("?") => {
                self.advance()?;
                self.mark("(")?;
                let inner = self.predicate()?;
                self.mark(")")?;
                Item::Filter(Box::new(inner))
            }
            Word::Mark("[") => {
                self.advance()?;
                self.subscripts()?
            }
            Word::Mark(".") => {
                self.advance()?;
                self.member()?
            }
            _ => return Ok(None),
        };
        Ok(Some(item))
    }

    fn subscripts(&mut self) -> Result<Item> {
        if self.at_mark("*") {
            self.advance()?;
            self.mark("]")?;
            return Ok(Item::AnyArray);
        }
        let mut subscripts = Vec::new();
        loop {
            let from = self.expression()?;
            let to = if self.keyword() == Some(Keyword::To) {
                self.advance()?;
                Some(self.expression()?)
            } else {
                None
            };
            subscripts.push((from, to));
            if !self.at_mark(",") {
                break;
            }
            self.advance()?;
        }
        self.mark("]")?;
        Ok(Item::Subscripts(subscripts))
    }

    /// What stands behind a dot.
    fn member(&mut self) -> Result<Item> {
        match std::mem::replace(&mut self.word, Word::End) {
            Word::Mark("*") => {
                self.advance()?;
                Ok(Item::AnyKey)
            }
            Word::Mark("**") => {
                self.advance()?;
                self.levels()
            }
            Word::String(key) => {
                self.advance()?;
                Ok(Item::Key(key))
            }
            Word::Name(key, keyword) => {
                self.advance()?;
                if !self.at_mark("(") {
                    return Ok(Item::Key(key));
                }
                let method = match keyword {
                    Some(Keyword::Abs) => Method::Abs,
                    Some(Keyword::Size) => Method::Size,
                    Some(Keyword::Type) => Method::Type,
                    Some(Keyword::Floor) => Method::Floor,
                    Some(Keyword::Double) => Method::Double,
                    Some(Keyword::Ceiling) => Method::Ceiling,
                    Some(Keyword::KeyValue) => Method::KeyValue,
                    Some(Keyword::Datetime) => {
                        self.advance()?;
                        let template = match &self.word {
                            Word::String(_) => Some(self.string()?),
                            _ => None,
                        };
                        self.mark(")")?;
                        return Ok(Item::Datetime(template));
                    }
                    _ => return Err(self.wrong()),
                };
                self.advance()?;
                self.mark(")")?;
                Ok(Item::Method(method))
            }
            _ => Err(self.wrong()),
        }
    }

    /// The levels of `**`.
    fn levels(&mut self) -> Result<Item> {
        if !self.at_mark("{") {
            return Ok(Item::Any {
                first: 0,
                last: u32::MAX,
            });
        }
        self.advance()?;
        let first = self.level()?;
        let last = if self.keyword() == Some(Keyword::To) {
            self.advance()?;
            self.level()?
        } else {
            first
        };
        self.mark("}")?;
        Ok(Item::Any { first, last })
    }

    fn level(&mut self) -> Result<u32> {
        let level = match &self.word {
            Word::Integer(digits) => {
                let level: i32 = digits.parse().map_err(|_| {
                    QueryError::new(
                        "22003",
                        format!("value \"{digits}\" is out of range for type integer"),
                    )
                })?;
                level.unsigned_abs()
            }
            Word::Name(_, Some(Keyword::Last)) => u32::MAX,
            _ => return Err(self.wrong()),
        };
        self.advance()?;
        Ok(level)
    }
}

fn predicate(item: Item) -> Result<Parsed> {
    Ok(Parsed {
        chain: Chain::of(item)?,
        predicate: true,
    })
}

fn expression(item: Item) -> Result<Parsed> {
    Ok(Parsed {
        chain: Chain::of(item)?,
        predicate: false,
    })
}
