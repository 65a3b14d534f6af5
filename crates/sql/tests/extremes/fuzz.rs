//! Statements made at random from a small grammar, and mutations of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use crate::fixture::Server;
use crate::values::{COLUMNS, TYPES, column, tables, value};
use crate::{Victim, generator, on_runtime, seconds};

/// What an expression is.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Number,
    Text,
    Truth,
    Any,
}

/// A generator of statements.
struct Grammar<'a> {
    random: &'a mut StdRng,
    functions: &'a [String],
    /// What may still be nested.
    fuel: u32,
}

impl Grammar<'_> {
    fn one<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of.choose(self.random).unwrap()
    }

    fn number(&mut self, most: u32) -> u32 {
        self.random.random_range(0..=most)
    }

    fn spend(&mut self) -> bool {
        self.fuel = self.fuel.saturating_sub(1);
        self.fuel > 0
    }

    fn many(&mut self, least: u32, most: u32, item: impl Fn(&mut Self) -> String) -> String {
        let count = least + self.number(most - least);
        let items: Vec<String> = (0..count).map(|_| item(self)).collect();
        items.join(", ")
    }

    fn literal(&mut self) -> String {
        let data_type = TYPES.choose(self.random).unwrap().0;
        value(self.random, data_type)
    }

    fn column(&mut self, kind: Kind) -> String {
        let of = match kind {
            Kind::Number => ["k", "c_int", "c_bigint", "c_numeric", "c_float8"].as_slice(),
            Kind::Text => ["c_text", "c_varchar3", "c_char5"].as_slice(),
            Kind::Truth => ["c_boolean"].as_slice(),
            Kind::Any => {
                let data_type = self.one(COLUMNS);
                return column(data_type);
            }
        };
        self.one(of).to_owned()
    }

    /// An expression of any kind.
    fn expression(&mut self) -> String {
        let kind = *[Kind::Number, Kind::Text, Kind::Truth, Kind::Any]
            .choose(self.random)
            .unwrap();
        self.of(kind)
    }

    fn truth(&mut self) -> String {
        self.of(Kind::Truth)
    }

    fn of(&mut self, kind: Kind) -> String {
        if !self.spend() {
            return self.column(kind);
        }
        match (kind, self.number(11)) {
            (_, 0..=2) => self.column(kind),
            (_, 3) => {
                let (when, then, otherwise) = (self.truth(), self.of(kind), self.of(kind));
                format!("case when {when} then {then} else {otherwise} end")
            }
            (_, 4) => format!("coalesce({}, {})", self.of(kind), self.of(kind)),
            (Kind::Number, 5) => self.number(1_000_000).to_string(),
            (Kind::Number, 6..=8) => {
                let operator = self.one(&["+", "-", "*", "/", "%"]);
                format!("({} {operator} {})", self.of(kind), self.of(kind))
            }
            (Kind::Number, 9) => {
                let function =
                    self.one(&["abs", "ceil", "floor", "round", "sqrt", "length", "sign"]);
                let argument = if function == "length" {
                    Kind::Text
                } else {
                    Kind::Number
                };
                format!("{function}({})", self.of(argument))
            }
            (Kind::Number, 10) => format!("({})::int", self.of(Kind::Text)),
            (Kind::Text, 5) => self.one(&["''", "'a'", "'é'", "'%'"]).to_owned(),
            (Kind::Text, 6..=7) => format!("({} || {})", self.of(kind), self.of(kind)),
            (Kind::Text, 8) => {
                let function = self.one(&["repeat", "lpad", "rpad", "left", "right", "substr"]);
                format!(
                    "{function}({}, {}::int)",
                    self.of(kind),
                    self.of(Kind::Number)
                )
            }
            (Kind::Text, 9) => {
                let function = self.one(&["upper", "lower", "reverse", "btrim"]);
                format!("{function}({})", self.of(kind))
            }
            (Kind::Text, 10) => format!("({})::text", self.of(Kind::Any)),
            (Kind::Truth, 5) => format!("({} and {})", self.of(kind), self.of(kind)),
            (Kind::Truth, 6) => format!("({} or not {})", self.of(kind), self.of(kind)),
            (Kind::Truth, 7..=8) => {
                let side = *[Kind::Number, Kind::Text].choose(self.random).unwrap();
                let operator = self.one(&["=", "<", ">=", "<>", "is distinct from"]);
                format!("({} {operator} {})", self.of(side), self.of(side))
            }
            (Kind::Truth, 9) => format!("{} is null", self.expression()),
            (Kind::Truth, 10) => {
                let side = *[Kind::Number, Kind::Text].choose(self.random).unwrap();
                format!(
                    "{} in ({}, {})",
                    self.of(side),
                    self.of(side),
                    self.of(side)
                )
            }
            (Kind::Truth, _) => format!("exists ({})", self.query()),
            (Kind::Any, 5) => self.literal(),
            (Kind::Any, 6) => {
                let aggregate =
                    self.one(&["sum", "count", "min", "max", "avg", "array_agg", "stddev"]);
                format!("{aggregate}({})", self.of(Kind::Number))
            }
            (Kind::Any, 7) => format!("string_agg({}, ',')", self.of(Kind::Text)),
            (Kind::Any, 8) => {
                let function = self.one(&[
                    "row_number()",
                    "rank()",
                    "lag(k)",
                    "sum(k)",
                    "first_value(k)",
                ]);
                let (by, order) = (self.expression(), self.expression());
                format!("{function} over (partition by {by} order by {order})")
            }
            (Kind::Any, 9) => {
                let to = TYPES.choose(self.random).unwrap().0;
                format!("({})::{to}", self.expression())
            }
            (Kind::Any, 10) => {
                let name = self.functions.choose(self.random).unwrap().clone();
                format!("{name}({})", self.many(0, 3, Self::expression))
            }
            _ => format!("({} limit 1)", self.query()),
        }
    }

    fn table(&mut self) -> String {
        if !self.spend() {
            return "x".to_owned();
        }
        match self.number(9) {
            0..=2 => "x".to_owned(),
            3..=4 => "y".to_owned(),
            5 => format!("({}) q", self.query()),
            6 => self
                .one(&[
                    "pg_class",
                    "pg_attribute",
                    "pg_type",
                    "information_schema.columns",
                    "thermocline_memory",
                ])
                .to_owned(),
            7 => format!("generate_series(1, {}) s", self.number(1000)),
            8 => format!(
                "x {} join y on {}",
                self.one(&["", "left", "right", "full", "cross", "natural"]),
                self.truth()
            ),
            _ => "x join y using (k)".to_owned(),
        }
    }

    fn query(&mut self) -> String {
        let mut sql = String::new();
        if self.number(8) == 0 && self.spend() {
            let recursive = self.one(&["", "recursive "]);
            sql += &format!("with {recursive}w as ({}) ", self.query());
        }
        sql += self.one(&["select ", "select distinct "]);
        sql += &match self.number(4) {
            0 => "*".to_owned(),
            _ => self.many(1, 3, Self::expression),
        };
        if self.number(9) > 0 {
            sql += &format!(" from {}", self.many(1, 2, Self::table));
        }
        if self.number(1) == 0 {
            let key = self.number(12);
            sql += &match self.number(1) {
                0 => format!(" where x.k = {key}"),
                _ => format!(" where {}", self.truth()),
            };
        }
        if self.number(3) == 0 {
            sql += &format!(" group by {}", self.many(1, 2, Self::expression));
        }
        if self.number(6) == 0 {
            sql += &format!(" having {}", self.truth());
        }
        if self.number(6) == 0 && self.spend() {
            sql += &format!(
                " {} {}",
                self.one(&["union", "union all", "intersect", "except"]),
                self.query()
            );
        }
        if self.number(2) == 0 {
            sql += &format!(" order by {}", self.many(1, 2, Self::expression));
        }
        if self.number(3) == 0 {
            sql += &format!(
                " limit {}",
                self.one(&["0", "1", "10", "-1", "null", "9223372036854775807", "1e30"])
            );
        }
        if self.number(9) == 0 {
            sql += &format!(" offset {}", self.one(&["0", "1", "9223372036854775807"]));
        }
        sql
    }

    fn statement(&mut self) -> String {
        self.fuel = 4 + self.number(24);
        match self.number(12) {
            0 => format!(
                "insert into x (k, {}) values ({}, {}) on conflict do nothing",
                column("text"),
                self.number(50),
                self.expression()
            ),
            1 => format!(
                "update x set {} = {} where k = {}",
                column(COLUMNS[self.random.random_range(0..COLUMNS.len())]),
                self.expression(),
                self.number(12)
            ),
            2 => format!("delete from x where k > 12 and {}", self.expression()),
            3 => format!("explain {}", self.query()),
            4 => format!("deallocate all; prepare p as {}; execute p", self.query()),
            5 => format!(
                "insert into y select {}, 1 on conflict do nothing",
                self.expression()
            ),
            6 => format!(
                "begin; declare c cursor for {}; fetch 2 from c; rollback",
                self.query()
            ),
            7 => format!("copy ({}) to stdout", self.query()),
            _ => self.query(),
        }
    }

    /// Changes a statement by its words.
    fn mutate(&mut self, sql: &str) -> String {
        let mut words: Vec<String> = sql
            .split_inclusive([' ', '(', ')', ','])
            .map(str::to_owned)
            .collect();
        for _ in 0..=self.number(3) {
            if words.is_empty() {
                break;
            }
            let at = self.random.random_range(0..words.len());
            let other = self.random.random_range(0..words.len());
            match self.number(6) {
                0 => {
                    words.remove(at);
                }
                1 => words.insert(at, words[other].clone()),
                2 => words.swap(at, other),
                3 => words.truncate(at),
                4 => words[at] = format!("'{}' ", "x".repeat(1 << self.number(18))),
                5 => words[at] = format!("{} ", "9".repeat(1 << self.number(12))),
                _ => {
                    let word = self.one(&[
                        "select ", "from ", "null ", "not ", "( ", ") ", "case ", "end ", "as ",
                        "'", "\"", "/*", "$$", "$1 ", "::", "[", "]", "- ", ";",
                    ]);
                    words.insert(at, word.to_owned());
                }
            }
        }
        words.concat()
    }
}

#[test]
fn no_statement_made_at_random_takes_the_server() {
    on_runtime(|| {
        let mut random = generator("fuzz");
        let server = Arc::new(Server::new());
        let tables = tables(&mut random);
        let set_up: Vec<&str> = tables.iter().map(String::as_str).collect();
        let functions: Vec<String> = server
            .engine
            .function_names()
            .into_iter()
            .filter(|name| !name.starts_with("pg_") && *name != "||")
            .collect();
        let mut victim = Victim::new(Arc::clone(&server), &set_up);
        let until = Instant::now() + Duration::from_secs(seconds());
        let (mut asked, mut well) = (0u64, 0u64);
        while Instant::now() < until {
            let mut grammar = Grammar {
                random: &mut random,
                functions: &functions,
                fuel: 0,
            };
            let mut sql = grammar.statement();
            if grammar.number(2) == 0 {
                sql = grammar.mutate(&sql);
            }
            asked += 1;
            well += u64::from(victim.ask(&sql).is_none());
        }
        println!("{asked} statements, {well} without an error");
        victim.end();
    });
}
