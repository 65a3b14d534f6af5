//! Random tables and random statements over them, the same ones for the same
//! seed. Statements have one right answer: rows come in a total order or are
//! compared without one, and an expression that may fail stands where it is
//! evaluated for certain.

#[path = "changes.rs"]
mod changes;
#[path = "expressions.rs"]
mod expressions;
#[path = "queries.rs"]
mod queries;
#[path = "variations.rs"]
mod variations;

use expressions::{COLUMNS, Random, Type, type_name};
use queries::Queries;
use variations::Variations;

/// Whether a statement may be answered again by the other path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Read,
    Write,
}

/// Whether the order of the rows is settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Total,
    Any,
}

/// A statement and how its answer is compared.
pub struct Statement {
    pub sql: String,
    pub kind: Kind,
    pub order: Order,
}

/// A definition; `ours` is what PostgreSQL does not understand.
pub struct Definition {
    pub sql: String,
    pub ours: &'static str,
}

/// How often a statement comes again with other literals.
const VARIATIONS: usize = 3;

struct Table {
    name: &'static str,
    /// Names and types of the primary key's columns.
    key: Vec<(&'static str, Type)>,
}

/// Columns that are computed by others: statements give them no value.
const GENERATED: [&str; 6] = [
    "g bigint generated always as (coalesce(a, 0)::bigint * 3 - length(t)) stored",
    "g text generated always as (t || '/' || a) stored",
    "g boolean generated always as (a is distinct from b) stored",
    "g numeric generated always as (coalesce(n, 0) + 1) stored not null",
    "g varchar(4) generated always as (substr(t, 1, 4)) stored",
    "g text generated always as (case when f then upper(t) else coalesce(t, '') end) stored",
];

/// Tables and statements of one seed.
pub struct Round {
    random: Random,
    /// For what was thought of later: rounds that are known stay what they are.
    later: Random,
    /// Likewise for partitions.
    latest: Random,
    /// Likewise for variations.
    varied: Random,
    variations: Variations,
    tables: Vec<Table>,
    /// How deep in a transaction: 0 none, 1 in a block, 2 after a savepoint.
    depth: u32,
}

impl Round {
    pub fn new(seed: u64) -> Self {
        Self {
            random: Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d)),
            later: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            latest: Random(seed.wrapping_mul(0xd134_2543_de82_ef95) | 1),
            varied: Random(seed.wrapping_mul(0xa076_1d64_78bd_642f) | 1),
            variations: Variations::default(),
            tables: Vec::new(),
            depth: 0,
        }
    }

    /// Notes a statement of the round; whether it may come again with other literals.
    pub fn note(&mut self, statement: &Statement) -> bool {
        self.variations.note(&statement.sql)
    }

    /// One of these statements with other literals, several times.
    pub fn variations(&mut self, of: &[Statement]) -> Vec<Statement> {
        let statement = &of[self.varied.below(of.len())];
        let varied = (0..VARIATIONS).map(|_| Statement {
            sql: self.variations.of(&statement.sql, &mut self.varied),
            kind: statement.kind,
            order: statement.order,
        });
        varied.collect()
    }

    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.tables.iter().map(|table| table.name)
    }

    /// The tables of the round, with their first rows.
    pub fn definitions(&mut self) -> Vec<Definition> {
        let mut definitions = Vec::new();
        for name in ["r", "s"] {
            let key = match self.random.below(6) {
                0 | 1 => vec![("k", Type::Integer)],
                2 => vec![("k", Type::Bigint)],
                3 => vec![("k", Type::Text)],
                4 => vec![("k", Type::Integer), ("l", Type::Text)],
                _ => vec![("k", Type::Date), ("l", Type::Numeric)],
            };
            let columns: Vec<String> = key
                .iter()
                .map(|(name, data_type)| format!("{name} {}", type_name(*data_type)))
                .chain(COLUMNS.iter().map(|(name, data_type)| {
                    let extra = match self.random.below(12) {
                        0 => format!(" default {}", self.random.literal_in(*data_type)),
                        1 if *data_type == Type::Integer => " check (a > -10)".to_owned(),
                        2 if *data_type == Type::Boolean => " not null".to_owned(),
                        _ => String::new(),
                    };
                    let declared = match data_type {
                        Type::Numeric if self.random.chance(50) => "numeric(12, 2)",
                        Type::Text if self.random.chance(30) => "varchar(10)",
                        _ => type_name(*data_type),
                    };
                    format!("{name} {declared}{extra}")
                }))
                .collect();
            let generated = match self.later.chance(40) {
                true => format!(", {}", self.later.pick(&GENERATED)),
                false => String::new(),
            };
            let names: Vec<&str> = key.iter().map(|(name, _)| *name).collect();
            let hash = self.random.chance(25);
            let (by, partitions) = match self.latest.chance(30) {
                true => self.partitions(name, key[0].1),
                false => (String::new(), Vec::new()),
            };
            definitions.push(Definition {
                sql: format!(
                    "create table {name} ({}{generated}, primary key ({})){by}",
                    columns.join(", "),
                    names.join(", ")
                ),
                ours: if hash {
                    " with (primary_key = hash)"
                } else {
                    ""
                },
            });
            definitions.extend(
                partitions
                    .into_iter()
                    .map(|sql| Definition { sql, ours: "" }),
            );
            if !generated.is_empty() && self.later.chance(50) {
                definitions.push(Definition {
                    sql: format!("create index {name}_g on {name} (g)"),
                    ours: "",
                });
            }
            let keys = [
                "(a)",
                "(d desc, b nulls first)",
                "(t desc nulls last)",
                "(b)",
                "using hash (a)",
                "(n, t desc)",
            ];
            for (number, on) in keys.iter().enumerate() {
                if self.random.chance(20) {
                    definitions.push(Definition {
                        sql: format!("create index {name}_{number} on {name} {on}"),
                        ours: "",
                    });
                }
            }
            self.tables.push(Table { name, key });
            let rows = self.random.below(40) + 5;
            let at = self.tables.len() - 1;
            let tuples: Vec<String> = (0..rows).map(|_| self.tuple(at, false)).collect();
            definitions.push(Definition {
                sql: format!(
                    "insert into {name} values {} on conflict do nothing",
                    tuples.join(", ")
                ),
                ours: "",
            });
        }
        definitions
    }

    /// How a table is partitioned by the first column of its key, and its partitions.
    fn partitions(&mut self, name: &str, data_type: Type) -> (String, Vec<String>) {
        let pivots = match data_type {
            Type::Text => ["'b'", "'x'"],
            Type::Date => ["'2000-01-01'", "'2024-02-29'"],
            _ => ["0", "3"],
        };
        let [one, two] = pivots;
        let (by, bounds) = match self.latest.below(3) {
            0 => (
                "range",
                vec![
                    format!("for values from (minvalue) to ({one})"),
                    format!("for values from ({one}) to ({two})"),
                    "default".to_owned(),
                ],
            ),
            1 => (
                "list",
                vec![
                    format!("for values in ({one}, {two})"),
                    "default".to_owned(),
                ],
            ),
            _ => {
                let of = |at| format!("for values with (modulus 3, remainder {at})");
                ("hash", (0..3).map(of).collect())
            }
        };
        let partition = |(at, bound): (usize, &String)| {
            format!("create table {name}_part_{at} partition of {name} {bound}")
        };
        let all = bounds.iter().enumerate().map(partition);
        (format!(" partition by {by} (k)"), all.collect())
    }

    /// The next statement.
    pub fn statement(&mut self) -> Statement {
        let read = |sql| Statement {
            sql,
            kind: Kind::Read,
            order: Order::Total,
        };
        let write = |sql| Statement {
            sql,
            kind: Kind::Write,
            order: Order::Any,
        };
        match self.random.below(100) {
            0..=27 => read(self.select()),
            28..=39 => read(self.by_key()),
            40..=49 => read(self.aggregate()),
            50..=56 => read(self.grouped()),
            57..=59 => read(self.two_tables()),
            60..=62 => read(self.joined_by_key()),
            63..=67 => read(self.whole()),
            68..=71 => read(self.wrong()),
            72..=79 => write(self.insert()),
            80..=85 => write(self.update()),
            86..=89 => write(self.delete()),
            90..=93 => write(self.upsert()),
            _ => write(self.transaction()),
        }
    }

    /// The next query over both tables, or a change of one by what the other holds.
    pub fn query(&mut self) -> Statement {
        if self.random.chance(10) {
            let table = self.table();
            let (target, other) = (self.tables[table].name, self.tables[1 - table].name);
            let key = self.key_list(table);
            return Statement {
                sql: changes::change(&mut self.random, (target, &key), other),
                kind: Kind::Write,
                order: Order::Any,
            };
        }
        Statement {
            sql: Queries::new(&mut self.random, ["r", "s"]).query(),
            kind: Kind::Read,
            order: Order::Any,
        }
    }

    fn table(&mut self) -> usize {
        self.random.below(self.tables.len())
    }

    fn transaction(&mut self) -> String {
        let (sql, depth) = match (self.depth, self.random.below(3)) {
            (0, _) => ("begin", 1),
            (1, 0) => ("savepoint p", 2),
            (2, 0) => ("rollback to p", 2),
            (2, 1) => ("release p", 1),
            (_, 1) => ("commit", 0),
            _ => ("rollback", 0),
        };
        self.depth = depth;
        sql.to_owned()
    }

    fn select(&mut self) -> String {
        let table = self.table();
        let list: Vec<String> = (0..=self.random.below(3))
            .map(|_| self.random.expression(None, 1))
            .collect();
        let distinct = self.random.chance(8);
        let condition = self.random.condition(2);
        let key = self.key_list(table);
        let mut sql = if distinct {
            let numbers: Vec<String> = (1..=list.len()).map(|at| at.to_string()).collect();
            format!(
                "select distinct {} from {} where {condition} order by {}",
                list.join(", "),
                self.tables[table].name,
                numbers.join(", ")
            )
        } else {
            let sort = self.random.sort();
            format!(
                "select {key}, {} from {} where {condition} order by {sort}{key}",
                list.join(", "),
                self.tables[table].name
            )
        };
        // Of rows that are left out, a cast that may fail is computed or not, by the plan.
        let may_fail = list.iter().any(|expr| expr.contains("n::bigint"));
        if self.random.chance(35) {
            let limit = format!(" limit {}", self.random.below(8));
            sql += if may_fail { "" } else { &limit };
        }
        if self.random.chance(15) {
            sql += &format!(" offset {}", self.random.below(4));
        }
        sql
    }

    /// The whole table: what the writes have made of it.
    fn whole(&mut self) -> String {
        let table = self.table();
        let key = self.key_list(table);
        format!("select * from {} order by {key}", self.tables[table].name)
    }

    /// Rows of a key, or of a range or a list of them.
    fn by_key(&mut self) -> String {
        let table = self.table();
        let key = self.key_list(table);
        let condition = self.key_condition(table);
        let list = if self.random.chance(40) {
            "*".to_owned()
        } else {
            format!("{key}, {}", self.random.expression(None, 2))
        };
        let descending = if self.random.chance(30) { " desc" } else { "" };
        format!(
            "select {list} from {} where {condition} order by {}{descending}",
            self.tables[table].name,
            key.replace(", ", &format!("{descending}, "))
        )
    }

    fn key_condition(&mut self, table: usize) -> String {
        let (name, data_type) = self.tables[table].key[0];
        let first = match self.random.below(6) {
            0 | 1 => format!("{name} = {}", self.random.literal(data_type)),
            2 => {
                let values: Vec<String> = (0..3).map(|_| self.random.literal(data_type)).collect();
                format!("{name} in ({})", values.join(", "))
            }
            3 => format!(
                "{name} between {} and {}",
                self.random.literal(data_type),
                self.random.literal(data_type)
            ),
            4 => format!(
                "{name} >= {} and {name} < {}",
                self.random.literal(data_type),
                self.random.literal(data_type)
            ),
            _ => {
                let operator = self.random.pick(&["<", "<=", ">", ">="]);
                format!("{name} {operator} {}", self.random.literal(data_type))
            }
        };
        let second = self.tables[table].key.get(1).copied();
        match second {
            Some((name, data_type)) if self.random.chance(60) => {
                format!("{first} and {name} = {}", self.random.literal(data_type))
            }
            _ => first,
        }
    }

    fn aggregate(&mut self) -> String {
        let table = self.table();
        let list: Vec<String> = (0..=self.random.below(3))
            .map(|_| self.aggregation())
            .collect();
        let condition = if self.random.chance(40) {
            self.key_condition(table)
        } else {
            self.random.condition(1)
        };
        let from = self.tables[table].name;
        format!("select {} from {from} where {condition}", list.join(", "))
    }

    fn aggregation(&mut self) -> String {
        let number = self
            .random
            .pick(&["a", "b", "n", "a + 1", "n * 2", "length(t)"]);
        let ordered = self.random.pick(&["a", "b", "n", "t", "d"]);
        match self.random.below(10) {
            0 => "count(*)".to_owned(),
            1 => format!("count({ordered})"),
            2 => format!("count(distinct {ordered})"),
            3 => format!("sum({number})"),
            4 => format!("avg({number})"),
            5 => format!("min({ordered})"),
            6 => format!("max({ordered})"),
            7 => self
                .random
                .pick(&["bool_and(f)", "bool_or(f)", "every(a > 0)"])
                .to_owned(),
            8 => format!("count(*) filter (where {})", self.random.condition(0)),
            _ => format!("coalesce(sum({number}), 0)"),
        }
    }

    fn grouped(&mut self) -> String {
        let table = self.table();
        let by = self
            .random
            .pick(&["a", "f", "t", "d", "a % 3", "length(t)", "n"]);
        let aggregation = self.aggregation();
        let having = if self.random.chance(30) {
            " having count(*) > 1"
        } else {
            ""
        };
        let condition = self.random.condition(1);
        let from = self.tables[table].name;
        // Which of equal numerics a group shows is nobody's promise.
        let shown = match by {
            "n" => "trim_scale(n)",
            by => by,
        };
        format!(
            "select {shown} as g, {aggregation} from {from} where {condition} \
             group by {by}{having} order by g"
        )
    }

    fn two_tables(&mut self) -> String {
        let on = self.random.pick(&["a", "b", "t", "d", "n"]);
        let key: Vec<String> = ["r", "s"]
            .iter()
            .enumerate()
            .flat_map(|(at, name)| {
                self.tables[at]
                    .key
                    .iter()
                    .map(move |(column, _)| format!("{name}.{column}"))
            })
            .collect();
        let key = key.join(", ");
        let of_r = self.key_list(0);
        match self.random.below(6) {
            0 => format!(
                "select {key}, r.n from r join s on r.{on} = s.{on} order by {key} limit 20"
            ),
            1 => format!(
                "select {key}, s.t from r left join s on r.{on} = s.{on} and s.f order by {key} limit 20"
            ),
            2 => format!(
                "select {of_r} from r where exists (select 1 from s where s.{on} = r.{on}) order by {of_r}"
            ),
            3 => format!(
                "select {of_r} from r where {on} not in (select {on} from s where {on} is not null) order by {of_r}"
            ),
            4 => format!(
                "select {of_r}, row_number() over (partition by f order by {of_r}) from r order by {of_r}"
            ),
            // Of equal numbers any may be the one that stays.
            _ if on == "n" => {
                "select round(n, 2) from r union select round(n, 2) from s order by 1".to_owned()
            }
            _ => format!("select {on} from r union select {on} from s order by 1"),
        }
    }

    /// A join of the rows that a key leads to.
    fn joined_by_key(&mut self) -> String {
        let (first, data_type) = self.tables[0].key[0];
        let (second, other_type) = self.tables[1].key[0];
        let mut value = || self.random.literal(data_type);
        let condition = match value().len() % 3 {
            0 => format!("r.{first} = {}", value()),
            1 => format!("r.{first} in ({}, {})", value(), value()),
            _ => format!("r.{first} between {} and {}", value(), value()),
        };
        let on = match data_type == other_type && self.random.chance(50) {
            true => format!("s.{second} = r.{first}"),
            false => {
                let on = self.random.pick(&["a", "b", "t", "d", "n"]);
                format!("s.{on} = r.{on}")
            }
        };
        let keys = format!("r.{first}, s.{second}");
        let all = self
            .random
            .pick(&["r.t, s.a, s.n", "s.t, r.b", "r.a, s.d, s.f"]);
        match self.random.below(6) {
            0 => format!(
                "select {all} from r join s on {on} where {condition} order by {keys}, {all}"
            ),
            1 => format!(
                "select {all} from s right join r on {on} and s.f where {condition} order by {keys}, {all} limit 7"
            ),
            2 => format!(
                "select {all} from r left join s on {on} where {condition} and (s.f or s.a is null) order by {keys}, {all}"
            ),
            3 => {
                format!("select count(*), max(s.a), min(r.t) from r, s where {on} and {condition}")
            }
            4 => format!(
                "select r.a, r.t from r where {condition} and not exists (select from s where {on} and s.b > 0) order by r.{first}, 1, 2"
            ),
            _ => format!(
                "select distinct s.a, r.b from r join s on {on} where {condition} order by 1, 2 offset 1"
            ),
        }
    }

    /// What must fail, and as what.
    fn wrong(&mut self) -> String {
        let table = self.table();
        let from = self.tables[table].name;
        match self.random.below(14) {
            0 => format!("select nothing from {from}"),
            1 => "select * from nowhere".to_owned(),
            2 => format!("select nonesuch(a) from {from}"),
            3 => format!("select a from {from} where a = 'x'"),
            4 => format!("select t + 1 from {from}"),
            5 => format!("select a from {from} where t = 1"),
            6 => format!("select a from {from} order by a limit -1"),
            7 => "select 1 / 0 from (values (1), (2)) v (a) order by a".to_owned(),
            8 => format!("select sum(t) from {from}"),
            9 => format!("select a, count(*) from {from}"),
            10 => format!("select a from {from} where d = '2024-02-30'"),
            11 => format!("select a from {from} where a and f"),
            12 => format!("select a frm {from} x y"),
            _ => format!("select cast('999999999999' as int) from {from}"),
        }
    }

    fn insert(&mut self) -> String {
        let table = self.table();
        let from = self.tables[table].name;
        let returning = self.returning(table);
        if self.random.chance(20) {
            let key: Vec<String> = self.key_values(table);
            let names = self.key_list(table);
            return format!(
                "insert into {from} ({names}, f) values ({}, true){returning}",
                key.join(", ")
            );
        }
        // One row may fail in one way; of more only the keys may collide.
        let rows = self.random.below(4);
        let tuples: Vec<String> = (0..=rows).map(|_| self.tuple(table, rows == 0)).collect();
        format!("insert into {from} values {}{returning}", tuples.join(", "))
    }

    fn upsert(&mut self) -> String {
        let table = self.table();
        let from = self.tables[table].name;
        let mut tuples = vec![self.tuple(table, false)];
        if self.latest.chance(60) {
            std::mem::swap(&mut self.random, &mut self.latest);
            let rows = self.random.below(4);
            tuples.extend((0..rows).map(|_| self.tuple(table, false)));
            // It comes to a row a second time, maybe after others in other partitions.
            if self.random.chance(60) {
                tuples.push(tuples[0].clone());
            }
            std::mem::swap(&mut self.random, &mut self.latest);
        }
        let tuples = tuples.join(", ");
        let key = self.key_list(table);
        let returning = self.returning(table);
        let action = match self.random.below(4) {
            0 => "on conflict do nothing".to_owned(),
            1 => format!("on conflict ({key}) do nothing"),
            2 => format!("on conflict ({key}) do update set a = excluded.a, t = {from}.t || 'x'"),
            _ => format!(
                "on conflict ({key}) do update set n = excluded.n, d = excluded.d \
                 where {from}.f is not false"
            ),
        };
        format!("insert into {from} values {tuples} {action}{returning}")
    }

    fn update(&mut self) -> String {
        let table = self.table();
        let from = self.tables[table].name;
        let returning = self.returning(table);
        let (column, data_type) = COLUMNS[self.random.below(COLUMNS.len())];
        let by_key = self.random.chance(60);
        let value = if by_key {
            self.random.expression(Some(data_type), 2)
        } else {
            self.random.literal_in(data_type)
        };
        let condition = if by_key {
            self.key_condition(table)
        } else {
            self.random.condition(1)
        };
        format!("update {from} set {column} = {value} where {condition}{returning}")
    }

    fn delete(&mut self) -> String {
        let table = self.table();
        let from = self.tables[table].name;
        let returning = self.returning(table);
        let condition = if self.random.chance(75) {
            self.key_condition(table)
        } else {
            format!("{} and a % 5 = 1", self.random.condition(1))
        };
        format!("delete from {from} where {condition}{returning}")
    }

    fn returning(&mut self, table: usize) -> String {
        match self.random.below(4) {
            0 => " returning *".to_owned(),
            1 => format!(" returning {}, n + 1 as more", self.key_list(table)),
            _ => String::new(),
        }
    }

    fn key_list(&self, table: usize) -> String {
        let names: Vec<&str> = self.tables[table]
            .key
            .iter()
            .map(|(name, _)| *name)
            .collect();
        names.join(", ")
    }

    fn key_values(&mut self, table: usize) -> Vec<String> {
        let types: Vec<Type> = self.tables[table].key.iter().map(|(_, of)| *of).collect();
        types
            .into_iter()
            .map(|of| self.random.literal(of))
            .collect()
    }

    fn tuple(&mut self, table: usize, may_fail: bool) -> String {
        let mut values = self.key_values(table);
        for (_, data_type) in COLUMNS {
            values.push(if data_type == Type::Boolean && !may_fail {
                self.random.pick(&["true", "false"]).to_owned()
            } else if self.random.chance(15) {
                "null".to_owned()
            } else if self.random.chance(5) {
                "default".to_owned()
            } else if data_type == Type::Integer && !may_fail {
                self.random.within(0..=30).to_string()
            } else {
                self.random.literal_in(data_type)
            });
        }
        // DEFAULT is NULL where there is none.
        if !may_fail {
            for (value, (_, data_type)) in values.iter_mut().rev().zip(COLUMNS.iter().rev()) {
                if *data_type == Type::Boolean && value == "default" {
                    *value = "true".to_owned();
                }
            }
        }
        format!("({})", values.join(", "))
    }
}
