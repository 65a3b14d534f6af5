//! How deep the tree of a statement can get, from its tokens: one pass, before anything walks the
//! statement on a stack. The depth is an estimate from above. A level is a parenthesis, a bracket, a
//! CASE, a SELECT, an operator of a chain, a join, a set operation, a comma in FROM. The expressions of
//! a WITH count all together, since each may stand in the next.
//!
//! Chains of AND and OR may have any length: the grammar makes one node of each, and planners halve
//! it again and again. What doubles with each level is counted, too: operands that a plan has twice
//! (`x BETWEEN a AND b` is `x >= a AND x <= b`).

use super::scan::{Token, Tokens};
use crate::error::{Result, SqlError};

/// The depth beyond which a statement is refused.
pub(crate) const DEPTH_MAX: u32 = 1000;

/// The dimensions that an array may have, as in PostgreSQL.
const DIMENSIONS_MAX: u32 = 6;
/// How often an operand may be doubled.
const COPIES_MAX: u32 = 10;
/// The longest word that means something here.
const KEYWORD_BYTES_MAX: usize = 12;
/// Conditions in a chain that may be a level each; more are a tree of logarithmic depth.
const CHAIN_MAX: u32 = 64;

/// 54001, as PostgreSQL says it.
#[cold]
pub(crate) fn too_deep() -> SqlError {
    SqlError::new("54001", "stack depth limit exceeded").with_hint(format!(
        "The statement is nested more than {DEPTH_MAX} levels deep, or has a chain of more than \
         {DEPTH_MAX} operators. Parentheses within a chain make it less deep; so do several \
         statements."
    ))
}

/// Functions whose plan has their argument twice.
const COPYING: [&str; 4] = ["nullif", "coalesce", "nvl", "ifnull"];

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
    /// ANDs and ORs of the chain that is being read.
    conditions: u32,
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
    fn end_conditions(&mut self) {
        let length = std::mem::take(&mut self.conditions);
        let depth = match length <= CHAIN_MAX {
            true => length,
            false => CHAIN_MAX / 4 + 4 * length.ilog2() + 8,
        };
        self.conditions_depth = self.conditions_depth.max(depth);
    }

    fn end(&mut self) -> u32 {
        self.next_expression();
        self.end_conditions();
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

/// A token and those around it.
#[derive(Clone, Copy)]
struct Window<'a> {
    /// The one before the last one.
    before_last: Option<Token<'a>>,
    last: Option<Token<'a>>,
    token: Token<'a>,
    next: Option<Token<'a>>,
}

impl Window<'_> {
    fn last_is(&self, symbols: &[&str]) -> bool {
        matches!(self.last, Some(Token::Symbol(last)) if symbols.contains(&last))
    }
}

/// The pass over the tokens.
struct Pass {
    groups: Vec<Group>,
    /// An operand is expected: a keyword may be a name there.
    wants_operand: bool,
    /// The most dimensions of an array.
    dimensions: u32,
    /// The most that an operand is doubled.
    copies: u32,
}

/// The levels of the tree of the statement of this text, at their most.
///
/// # Errors
/// 54001 for one that is too deep.
pub(crate) fn depth_of(text: &str) -> Result<u32> {
    let mut pass = Pass {
        groups: vec![Group::default()],
        wants_operand: true,
        dimensions: 0,
        copies: 0,
    };
    let mut tokens = Tokens::new(text);
    let (mut before_last, mut last) = (None, None);
    let mut token = tokens.next();
    let mut end = tokens.at();
    while let Some(this) = token {
        let next = tokens.next();
        pass.token(Window {
            before_last,
            last,
            token: this,
            next,
        });
        if pass.dimensions > DIMENSIONS_MAX {
            let message = format!(
                "number of array dimensions ({}) exceeds the maximum allowed ({DIMENSIONS_MAX})",
                pass.dimensions
            );
            return Err(SqlError::new("54000", message));
        }
        if pass.groups.len() > DEPTH_MAX as usize || pass.copies > COPIES_MAX {
            let place = super::place_of(text, end - this.text().len());
            return Err(too_deep().with_position(Some(place)));
        }
        (before_last, last, token) = (last, Some(this), next);
        end = tokens.at();
    }
    while pass.groups.len() > 1 {
        pass.close();
    }
    let Pass { mut groups, .. } = pass;
    let depth = groups.first_mut().map_or(0, Group::end);
    let copies = groups.first().map_or(0, Group::copies);
    if depth > DEPTH_MAX || copies > COPIES_MAX {
        return Err(too_deep());
    }
    Ok(depth)
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
        self.groups.push(group);
        self.wants_operand = true;
    }

    /// Closes the innermost group.
    fn close(&mut self) {
        let Some(mut group) = self.groups.pop() else {
            return;
        };
        let depth = group.end();
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
            top.end_conditions();
        }
    }

    fn token(&mut self, window: Window<'_>) {
        match window.token {
            Token::Symbol("(") => {
                let is_copied = window
                    .last
                    .is_some_and(|last| COPYING.iter().any(|name| last.is_word(name)));
                // What is in parentheses is an element as it is without them.
                let dimensions = match window.last_is(&["[", "(", ","]) {
                    true => self.top().map_or(0, |top| top.dimensions),
                    false => 0,
                };
                self.open(Group {
                    is_copied,
                    dimensions,
                    ..Group::default()
                });
            }
            Token::Symbol("[") => {
                self.with_top(|top| top.chain += 1);
                let outer = self.top().map_or(0, |top| top.dimensions);
                let begins_array = match window.last {
                    Some(last @ Token::Word(_)) => last.is_word("array"),
                    Some(Token::Symbol("[" | ",")) => outer > 0,
                    _ => false,
                };
                let dimensions = if begins_array { outer + 1 } else { 0 };
                self.dimensions = self.dimensions.max(dimensions);
                self.open(Group {
                    dimensions,
                    ..Group::default()
                });
            }
            Token::Symbol(")" | "]") => {
                while self.groups.len() > 1 && self.top().is_some_and(|top| top.is_case) {
                    self.close();
                }
                if self.groups.len() > 1 {
                    self.close();
                }
                self.wants_operand = false;
            }
            Token::Symbol(",") => {
                self.next_expression();
                let in_from = self.top().is_some_and(|top| top.in_from);
                self.with_top(|top| top.spine += u32::from(in_from));
                self.wants_operand = true;
            }
            Token::Symbol(".") => {
                self.with_top(|top| {
                    top.dots += 1;
                    top.inside = top.inside.max(top.dots);
                });
                self.wants_operand = true;
            }
            Token::Word(_) | Token::Quoted(_) if window.last_is(&["."]) => {
                self.wants_operand = false;
            }
            Token::Word(word) => {
                self.with_top(|top| top.dots = 0);
                let mut buffer = [0; KEYWORD_BYTES_MAX];
                match super::lower_case(word, &mut buffer) {
                    Some(word) => self.keyword(word, window),
                    None => self.wants_operand = false,
                }
            }
            Token::Quoted(_) | Token::Constant(_) | Token::Parameter(_) => {
                self.with_top(|top| top.dots = 0);
                self.wants_operand = false;
            }
            Token::Symbol(_) => self.operator(),
        }
    }

    fn operator(&mut self) {
        self.with_top(|top| {
            top.chain += 1;
            top.dots = 0;
        });
        self.wants_operand = true;
    }

    fn condition(&mut self) {
        self.with_top(|top| {
            top.next_expression();
            top.conditions = top.conditions.saturating_add(1);
        });
        self.wants_operand = true;
    }

    fn keyword(&mut self, word: &str, window: Window<'_>) {
        match word {
            "and" if self.top().is_some_and(|top| top.betweens > 0) => {
                self.with_top(|top| top.betweens -= 1);
                self.operator();
            }
            "and" | "or" => self.condition(),
            // `a NOT BETWEEN b AND c`: what follows is still an operator.
            "not" if !self.wants_operand => self.with_top(|top| top.chain += 1),
            "between" if !self.wants_operand => {
                self.operator();
                self.with_top(|top| {
                    top.betweens += 1;
                    top.copies += 1;
                });
            }
            "case" if self.wants_operand => {
                let dimensions = self.top().map_or(0, |top| top.dimensions);
                self.open(Group {
                    is_case: true,
                    dimensions,
                    has_operand: !window.next.is_some_and(|next| next.is_word("when")),
                    ..Group::default()
                });
            }
            "end" if self.top().is_some_and(|top| top.is_case) => self.close(),
            "when" | "then" | "else"
                if !self.wants_operand || self.top().is_some_and(|top| top.is_case) =>
            {
                self.next_expression();
                self.with_top(|top| top.whens += u32::from(word == "when"));
                self.wants_operand = true;
            }
            "isnull" | "notnull" => {
                self.operator();
                self.wants_operand = false;
            }
            "not" | "is" | "in" | "like" | "ilike" | "similar" | "collate" | "escape" | "at"
            | "overlaps" | "operator" => self.operator(),
            "with"
                if !window.next.is_some_and(|next| {
                    ["time", "ordinality", "ties"]
                        .iter()
                        .any(|word| next.is_word(word))
                }) =>
            {
                self.with_top(|top| top.in_with = true);
                self.wants_operand = false;
            }
            "join" => {
                self.clause();
                self.with_top(|top| top.spine += 1);
            }
            "from" => {
                let distinct = window.last.is_some_and(|last| last.is_word("distinct"))
                    && window
                        .before_last
                        .is_some_and(|before| before.is_word("is") || before.is_word("not"));
                match distinct {
                    true => self.wants_operand = true,
                    false => self.clause(),
                }
                self.with_top(|top| top.in_from = true);
            }
            "select" => {
                self.leave_from();
                self.with_top(|top| {
                    top.in_with = false;
                    top.spine += 1;
                });
            }
            "union" | "intersect" | "except" => {
                self.leave_from();
                self.with_top(|top| top.spine += 1);
            }
            "on" | "using" => self.clause(),
            "where" | "group" | "having" | "order" | "limit" | "offset" | "fetch" | "window"
            | "returning" | "set" | "values" | "insert" | "update" | "delete" => self.leave_from(),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn depth(sql: &str) -> u32 {
        depth_of(sql).unwrap()
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
            let error = depth_of(&sql).unwrap_err();
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
            assert!(depth_of(&sql).is_err(), "{sql}");
        }
        let many = " and a between 1 and 2".repeat(200);
        depth(&format!("select 1 from t where true{many}"));
    }
}
