//! How deep the tree of a statement can get, from its tokens: one pass, before anything walks the
//! statement on a stack. The depth is an estimate from above. A level is a parenthesis, a bracket, a
//! CASE, a SELECT, an operator of a chain, a join, a set operation, a comma in FROM. The expressions of
//! a WITH count all together, since each may stand in the next.
//!
//! Chains of AND and OR may have any length: parentheses that mean nothing make them a tree of
//! logarithmic depth. Two more things that double with each level are counted: what sqlparser
//! reads twice, and operands that a plan has twice (`x BETWEEN a AND b` is `x >= a AND x <= b`).

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{Result, SqlError, position_of};

/// The depth beyond which a statement is refused.
pub(crate) const DEPTH_MAX: u32 = 1000;

/// The dimensions that an array may have, as in PostgreSQL.
const DIMENSIONS_MAX: u32 = 6;
/// How often an operand may be doubled.
const COPIES_MAX: u32 = 10;
/// Conditions in a chain that are left as they are.
const CHAIN_MAX: usize = 64;
/// Conditions next to each other in a longer chain.
const LEAF: usize = 8;
/// A chain of conditions, as places of AND (false) and OR (true).
type Chain = Vec<(usize, bool)>;

/// What the tokens of a statement say of its tree.
#[derive(Debug)]
pub(super) struct Shape {
    /// The levels of the tree at their most.
    pub(super) depth: u32,
    /// Chains of conditions that want parentheses.
    chains: Vec<Chain>,
}

/// 54001, as PostgreSQL says it.
#[cold]
pub(crate) fn too_deep() -> SqlError {
    SqlError::new("54001", "stack depth limit exceeded").with_hint(format!(
        "The statement is nested more than {DEPTH_MAX} levels deep, or has a chain of more than \
         {DEPTH_MAX} operators. Parentheses within a chain make it less deep; so do several \
         statements."
    ))
}

/// Whether this is the name of a function whose plan has its argument twice.
fn copies(token: &TokenWithSpan) -> bool {
    matches!(&token.token, Token::Word(word)
        if ["nullif", "coalesce", "nvl", "ifnull"].iter().any(|name| word.value.eq_ignore_ascii_case(name)))
}

/// What is open: the statement, parentheses, brackets, or a CASE.
#[derive(Default)]
struct Group {
    /// Operators of the expression that is being read.
    chain: u32,
    /// The deepest group in it.
    inside: u32,
    /// The deepest expression before it.
    deepest: u32,
    /// Joins and set operations.
    spine: u32,
    /// BETWEENs whose AND has not come.
    betweens: u32,
    /// Names behind a dot, one after the other.
    dots: u32,
    conditions: Chain,
    conditions_depth: u32,
    in_from: bool,
    in_with: bool,
    is_case: bool,
    /// Of a CASE: it compares an operand, with so many values.
    has_operand: bool,
    whens: u32,
    /// A function whose plan has its argument twice.
    is_copied: bool,
    /// How often operands of the expression that is being read are doubled.
    copies: u32,
    copies_inside: u32,
    copies_before: u32,
    /// Of an array in brackets: how many it is in, with itself.
    dimensions: u32,
    /// It stands where a table does, and begins with another: sqlparser reads it twice.
    is_read_twice: bool,
}

impl Group {
    /// The next expression does not belong to this one.
    fn next_expression(&mut self) {
        self.deepest = self.deepest.max(self.chain + self.inside);
        self.copies_before = self.copies_before.max(self.copies + self.copies_inside);
        self.chain = 0;
        self.inside = 0;
        self.copies = 0;
        self.copies_inside = 0;
        self.betweens = 0;
        self.dots = 0;
    }

    /// The chain of conditions ends.
    fn end_conditions(&mut self, chains: &mut Vec<Chain>) {
        let length = self.conditions.len();
        let depth = if length <= CHAIN_MAX {
            length
        } else {
            chains.push(std::mem::take(&mut self.conditions));
            2 * (LEAF + 2 * length.ilog2() as usize + 4)
        };
        self.conditions.clear();
        self.conditions_depth = self.conditions_depth.max(depth as u32);
    }

    fn end(&mut self, chains: &mut Vec<Chain>) -> u32 {
        self.next_expression();
        self.end_conditions(chains);
        1 + self.deepest + self.spine + self.conditions_depth
    }

    /// How often an operand in it is doubled, at most; after its end.
    fn copies(&self) -> u32 {
        let of_case = match self.has_operand {
            true => u32::BITS - self.whens.leading_zeros(),
            false => 0,
        };
        self.copies_before + u32::from(self.is_copied) + of_case
    }
}

/// The pass over the tokens.
struct Pass {
    groups: Vec<Group>,
    chains: Vec<Chain>,
    /// An operand is expected: a keyword may be a name there.
    wants_operand: bool,
    /// A table is expected.
    wants_table: bool,
    /// Of the open groups, those that are read twice.
    doublings: u32,
    /// The most dimensions of an array.
    dimensions: u32,
    /// The most that an operand is doubled.
    copies: u32,
    /// Tokens that sqlparser reads, with those it reads again.
    reads: u64,
}

/// The shape of the statement that these tokens are.
///
/// # Errors
/// 54001 for one that is too deep.
pub(super) fn shape(sql: &str, tokens: &[TokenWithSpan]) -> Result<Shape> {
    let mut pass = Pass {
        groups: vec![Group::default()],
        chains: Vec::new(),
        wants_operand: true,
        wants_table: false,
        doublings: 0,
        dimensions: 0,
        copies: 0,
        reads: 0,
    };
    let reads_max = 100_000 + 16 * tokens.len() as u64;
    for at in 0..tokens.len() {
        pass.token(tokens, at);
        if pass.dimensions > DIMENSIONS_MAX {
            let message = format!(
                "number of array dimensions ({}) exceeds the maximum allowed ({DIMENSIONS_MAX})",
                pass.dimensions
            );
            return Err(SqlError::new("54000", message));
        }
        pass.reads += 1 << pass.doublings.min(40);
        if pass.groups.len() > DEPTH_MAX as usize
            || pass.reads > reads_max
            || pass.copies > COPIES_MAX
        {
            let start = tokens[at].span.start;
            return Err(too_deep().with_position(position_of(sql, start.line, start.column)));
        }
    }
    while pass.groups.len() > 1 {
        pass.close();
    }
    let Pass {
        mut groups,
        mut chains,
        ..
    } = pass;
    let depth = groups.first_mut().map_or(0, |group| group.end(&mut chains));
    let copies = groups.first().map_or(0, Group::copies);
    if depth > DEPTH_MAX || copies > COPIES_MAX {
        return Err(too_deep());
    }
    Ok(Shape { depth, chains })
}

impl Pass {
    fn top(&mut self) -> Option<&mut Group> {
        self.groups.last_mut()
    }

    fn with_top(&mut self, change: impl FnOnce(&mut Group)) {
        if let Some(top) = self.groups.last_mut() {
            change(top);
        }
    }

    fn open(&mut self, group: Group) {
        self.doublings += u32::from(group.is_read_twice);
        self.groups.push(group);
        self.wants_operand = true;
    }

    /// Closes the innermost group.
    fn close(&mut self) {
        let Some(mut group) = self.groups.pop() else {
            return;
        };
        self.doublings -= u32::from(group.is_read_twice);
        let depth = group.end(&mut self.chains);
        let copies = group.copies();
        self.copies = self.copies.max(copies);
        self.with_top(|parent| {
            parent.copies_inside = parent.copies_inside.max(copies);
            if parent.in_with {
                parent.spine += depth;
            } else {
                parent.inside = parent.inside.max(depth);
            }
        });
        self.wants_operand = false;
    }

    fn next_expression(&mut self) {
        if let Some(top) = self.groups.last_mut() {
            top.next_expression();
            top.end_conditions(&mut self.chains);
        }
    }

    fn token(&mut self, tokens: &[TokenWithSpan], at: usize) {
        let wants_table = std::mem::replace(&mut self.wants_table, false);
        let token = &tokens[at].token;
        match token {
            Token::LParen => {
                let is_next_open = tokens
                    .get(at + 1)
                    .is_some_and(|next| next.token == Token::LParen);
                let is_copied = at
                    .checked_sub(1)
                    .is_some_and(|before| copies(&tokens[before]));
                // What is in parentheses is an element as it is without them.
                let is_element = at.checked_sub(1).is_some_and(|before| {
                    let before = &tokens[before].token;
                    matches!(before, Token::LBracket | Token::LParen | Token::Comma)
                });
                let dimensions = match is_element {
                    true => self.top().map_or(0, |top| top.dimensions),
                    false => 0,
                };
                self.open(Group {
                    is_read_twice: wants_table && is_next_open,
                    is_copied,
                    dimensions,
                    ..Group::default()
                });
                self.wants_table = wants_table;
            }
            Token::LBracket | Token::LBrace => {
                self.with_top(|top| top.chain += 1);
                let outer = self.top().map_or(0, |top| top.dimensions);
                let begins_array = match at.checked_sub(1).map(|before| &tokens[before].token) {
                    Some(Token::Word(word)) => word.keyword == Keyword::ARRAY,
                    Some(Token::LBracket | Token::Comma) => outer > 0,
                    _ => false,
                };
                let dimensions = if begins_array { outer + 1 } else { 0 };
                self.dimensions = self.dimensions.max(dimensions);
                self.open(Group {
                    dimensions,
                    ..Group::default()
                });
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                while self.groups.len() > 1 && self.top().is_some_and(|top| top.is_case) {
                    self.close();
                }
                if self.groups.len() > 1 {
                    self.close();
                }
                self.wants_operand = false;
            }
            Token::Comma => {
                self.next_expression();
                let in_from = self.top().is_some_and(|top| top.in_from);
                self.with_top(|top| top.spine += u32::from(in_from));
                self.wants_table = in_from;
                self.wants_operand = true;
            }
            Token::Period => {
                self.with_top(|top| {
                    top.dots += 1;
                    top.inside = top.inside.max(top.dots);
                });
                self.wants_operand = true;
            }
            Token::Word(word) => {
                let behind_dot = at > 0 && tokens[at - 1].token == Token::Period;
                if behind_dot {
                    self.wants_operand = false;
                } else {
                    self.with_top(|top| top.dots = 0);
                    self.keyword(word.keyword, tokens, at);
                }
            }
            Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::DollarQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::NationalStringLiteral(_)
            | Token::HexStringLiteral(_)
            | Token::SingleQuotedByteStringLiteral(_)
            | Token::Placeholder(_) => {
                self.with_top(|top| top.dots = 0);
                self.wants_operand = false;
            }
            _ => self.operator(),
        }
    }

    fn operator(&mut self) {
        self.with_top(|top| {
            top.chain += 1;
            top.dots = 0;
        });
        self.wants_operand = true;
    }

    fn condition(&mut self, at: usize, is_or: bool) {
        self.with_top(|top| {
            top.next_expression();
            top.conditions.push((at, is_or));
        });
        self.wants_operand = true;
    }

    fn keyword(&mut self, keyword: Keyword, tokens: &[TokenWithSpan], at: usize) {
        let keyword_at = |at: Option<usize>| match at.and_then(|at| tokens.get(at)) {
            Some(TokenWithSpan {
                token: Token::Word(word),
                ..
            }) => word.keyword,
            _ => Keyword::NoKeyword,
        };
        match keyword {
            Keyword::AND if self.top().is_some_and(|top| top.betweens > 0) => {
                self.with_top(|top| top.betweens -= 1);
                self.operator();
            }
            Keyword::AND => self.condition(at, false),
            Keyword::OR => self.condition(at, true),
            // `a NOT BETWEEN b AND c`: what follows is still an operator.
            Keyword::NOT if !self.wants_operand => self.with_top(|top| top.chain += 1),
            Keyword::BETWEEN if !self.wants_operand => {
                self.operator();
                self.with_top(|top| {
                    top.betweens += 1;
                    top.copies += 1;
                });
            }
            Keyword::CASE if self.wants_operand => {
                let dimensions = self.top().map_or(0, |top| top.dimensions);
                self.open(Group {
                    is_case: true,
                    dimensions,
                    has_operand: keyword_at(Some(at + 1)) != Keyword::WHEN,
                    ..Group::default()
                });
            }
            Keyword::END if self.top().is_some_and(|top| top.is_case) => self.close(),
            Keyword::WHEN | Keyword::THEN | Keyword::ELSE
                if !self.wants_operand || self.top().is_some_and(|top| top.is_case) =>
            {
                self.next_expression();
                self.with_top(|top| top.whens += u32::from(keyword == Keyword::WHEN));
                self.wants_operand = true;
            }
            Keyword::NOTNULL => {
                self.operator();
                self.wants_operand = false;
            }
            Keyword::NOT
            | Keyword::IS
            | Keyword::IN
            | Keyword::LIKE
            | Keyword::ILIKE
            | Keyword::SIMILAR
            | Keyword::RLIKE
            | Keyword::REGEXP
            | Keyword::XOR
            | Keyword::DIV
            | Keyword::COLLATE
            | Keyword::ESCAPE
            | Keyword::AT
            | Keyword::OVERLAPS
            | Keyword::OPERATOR
            | Keyword::PRIOR
            | Keyword::INTERVAL
            | Keyword::EXPLAIN
            | Keyword::PIVOT
            | Keyword::UNPIVOT => self.operator(),
            Keyword::WITH
                if !matches!(
                    keyword_at(Some(at + 1)),
                    Keyword::TIME | Keyword::ORDINALITY | Keyword::TIES
                ) =>
            {
                self.with_top(|top| top.in_with = true);
                self.wants_operand = false;
            }
            Keyword::JOIN => {
                self.clause();
                self.with_top(|top| top.spine += 1);
                self.wants_table = true;
            }
            Keyword::FROM => {
                let distinct = keyword_at(at.checked_sub(1)) == Keyword::DISTINCT
                    && matches!(keyword_at(at.checked_sub(2)), Keyword::IS | Keyword::NOT);
                if distinct {
                    self.wants_operand = true;
                } else {
                    self.clause();
                }
                self.with_top(|top| top.in_from = true);
                self.wants_table = true;
            }
            Keyword::LATERAL => self.wants_table = true,
            Keyword::SELECT => {
                self.leave_from();
                self.with_top(|top| {
                    top.in_with = false;
                    top.spine += 1;
                });
            }
            Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT | Keyword::MINUS => {
                self.leave_from();
                self.with_top(|top| top.spine += 1);
            }
            Keyword::ON | Keyword::USING => self.clause(),
            Keyword::WHERE
            | Keyword::GROUP
            | Keyword::HAVING
            | Keyword::ORDER
            | Keyword::LIMIT
            | Keyword::OFFSET
            | Keyword::FETCH
            | Keyword::WINDOW
            | Keyword::RETURNING
            | Keyword::SET
            | Keyword::VALUES
            | Keyword::INSERT
            | Keyword::UPDATE
            | Keyword::DELETE => self.leave_from(),
            _ => self.wants_operand = false,
        }
    }

    /// A keyword that no expression goes beyond, unless it is a name here.
    fn clause(&mut self) {
        if !self.wants_operand {
            self.next_expression();
        }
        self.wants_operand = true;
    }

    fn leave_from(&mut self) {
        if !self.wants_operand {
            self.with_top(|top| top.in_from = false);
        }
        self.clause();
    }
}

impl Shape {
    /// Puts parentheses into long chains of conditions. The tokens keep their places.
    pub(super) fn balance(&self, tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
        if self.chains.is_empty() {
            return tokens;
        }
        let mut parentheses = Parentheses::default();
        for chain in &self.chains {
            parentheses.put(chain);
        }
        parentheses.into(tokens)
    }
}

/// Parentheses to be put into the tokens.
#[derive(Default)]
struct Parentheses {
    /// Before these tokens.
    opening: Vec<usize>,
    /// Behind these.
    closing: Vec<usize>,
}

impl Parentheses {
    /// The first and last expressions of a chain may begin before and end behind what is known of
    /// it, so they stay outside.
    fn put(&mut self, chain: &Chain) {
        let length = chain.len() + 1;
        let ors: Vec<usize> = (0..chain.len()).filter(|at| chain[*at].1).collect();
        // The operands of the ORs: ranges of expressions.
        let mut operands = Vec::with_capacity(ors.len() + 1);
        let mut begin = 0;
        for or in &ors {
            operands.push((begin, or + 1));
            begin = or + 1;
        }
        operands.push((begin, length));
        for (begin, end) in &operands {
            let inner = ((*begin).max(1), (*end).min(length - 1));
            let expressions: Vec<(usize, usize)> =
                (inner.0..inner.1).map(|at| (at, at + 1)).collect();
            if expressions.len() > LEAF {
                if inner != (*begin, *end) {
                    self.around(chain, inner);
                }
                self.balance(chain, &expressions);
            }
        }
        if operands.len() > LEAF + 2 {
            let inner = &operands[1..operands.len() - 1];
            self.around(chain, (inner[0].0, inner[inner.len() - 1].1));
            self.balance(chain, inner);
        }
    }

    fn balance(&mut self, chain: &Chain, operands: &[(usize, usize)]) {
        if operands.len() <= LEAF {
            return;
        }
        let (left, right) = operands.split_at(operands.len() / 2);
        for half in [left, right] {
            self.around(chain, (half[0].0, half[half.len() - 1].1));
            self.balance(chain, half);
        }
    }

    /// Around these expressions of the chain, of which neither is its first nor its last.
    fn around(&mut self, chain: &Chain, (begin, end): (usize, usize)) {
        self.opening.push(chain[begin - 1].0 + 1);
        self.closing.push(chain[end - 1].0 - 1);
    }

    fn into(mut self, tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
        self.opening.sort_unstable();
        self.closing.sort_unstable();
        let (mut opening, mut closing) = (
            self.opening.into_iter().peekable(),
            self.closing.into_iter().peekable(),
        );
        let added = opening.len() + closing.len();
        let mut balanced = Vec::with_capacity(tokens.len() + added);
        for (at, token) in tokens.into_iter().enumerate() {
            let span = token.span;
            while opening.next_if_eq(&at).is_some() {
                balanced.push(TokenWithSpan::new(Token::LParen, span));
            }
            balanced.push(token);
            while closing.next_if_eq(&at).is_some() {
                balanced.push(TokenWithSpan::new(Token::RParen, span));
            }
        }
        balanced
    }
}

#[cfg(test)]
mod tests {
    use super::super::tokens::tokenize;
    use super::*;

    fn depth(sql: &str) -> u32 {
        shape(sql, &tokenize(sql).unwrap()).unwrap().depth
    }

    #[test]
    fn what_nests_counts_and_what_follows_does_not() {
        let shallow = depth("select 1");
        for sql in [
            "select 1, 2, 3, 4, 5, 6",
            "select f from t where a in (1, 2, 3)",
            "select case when a then 1 when b then 2 when c then 3 end",
        ] {
            assert!(depth(sql) <= shallow + 6, "{sql}: {}", depth(sql));
        }
        for (one, more) in [
            ("select 1+1", "select 1+1+1+1+1+1+1"),
            ("select (1)", "select ((((((1))))))"),
            ("select array[1]", "select array[array[array[1]]]"),
            ("select not a", "select not not not not a"),
            ("select 1::int", "select 1::int::int::int"),
            ("select a.b", "select a.b.c.d.e.f.g.h"),
            (
                "select 1 union select 1",
                "select 1 union select 1 union select 1 union select 1",
            ),
            ("select 1 from a, b", "select 1 from a, b, c, d, e"),
            (
                "select 1 from a join b using (x)",
                "select 1 from a join b using (x) join c using (y) join d using (z)",
            ),
            (
                "select a between 1 and 2",
                "select a between 1 and 2 between 1 and 2 between 1 and 2",
            ),
            (
                "with a as (select 1) select 2",
                "with a as (select 1), b as (select 1), c as (select 1) select 2",
            ),
            (
                "select a is distinct from b",
                "select a is distinct from b is distinct from c is distinct from d",
            ),
        ] {
            assert!(depth(more) >= depth(one) + 2, "{more}");
        }
        // The deepest part of an expression may be its first.
        assert!(depth("select ((((((1)))))) + 1 + 1 + 1 + 1") >= 10);
    }

    #[test]
    fn a_statement_beyond_the_limit_is_refused_where_it_is_known() {
        for sql in [
            format!("select {}1{}", "(".repeat(2000), ")".repeat(2000)),
            format!("select {}1{}", "(".repeat(2000), ""),
            format!("select 1{}", "+1".repeat(1001)),
            format!("select 1{}", " union select 1".repeat(1001)),
            format!("select {}", "case when ".repeat(2000)),
        ] {
            let error = shape(&sql, &tokenize(&sql).unwrap()).unwrap_err();
            assert_eq!(error.sqlstate, "54001");
            assert!(error.hint.is_some());
        }
    }

    #[test]
    fn operands_that_a_plan_doubles_at_each_level_are_refused() {
        for (open, close) in [
            ("(", " between false and true)"),
            ("nullif(", ", 1)"),
            ("case ", " when 1 then 2 when 3 then 4 else 5 end"),
            ("coalesce(", ", 2)"),
        ] {
            let nested =
                |levels| format!("select {}a{}", open.repeat(levels), close.repeat(levels));
            depth(&nested(3));
            let sql = nested(30);
            assert!(shape(&sql, &tokenize(&sql).unwrap()).is_err(), "{sql}");
        }
        let many = " and a between 1 and 2".repeat(200);
        depth(&format!("select 1 from t where true{many}"));
    }

    #[test]
    fn parentheses_that_double_the_work_are_refused() {
        let mut sql = "t a".to_owned();
        for level in 0..40 {
            sql = format!("((select * from {sql}) x{level} join t on true)");
        }
        let sql = format!("select * from {sql}");
        assert!(shape(&sql, &tokenize(&sql).unwrap()).is_err());
        depth("select * from ((a join b on true) join (c join d on true) on true)");
    }
}
