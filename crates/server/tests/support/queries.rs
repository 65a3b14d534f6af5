//! Random queries over two tables that have the columns of `expressions::COLUMNS`: joins of all
//! kinds with conditions over both sides, subqueries correlated and not, set operations, groups,
//! windows, WITH. Rows are compared without an order; where equal values may look different
//! (numerics) they are rounded first.

use super::expressions::{COLUMNS, Random, Type};

/// A scope: the names that columns can be asked of.
#[derive(Clone)]
pub struct Names(pub Vec<String>);

/// Queries of one seed.
pub struct Queries<'r> {
    pub random: &'r mut Random,
    /// The tables' names.
    pub tables: [&'static str; 2],
    number: usize,
}

impl<'r> Queries<'r> {
    pub fn new(random: &'r mut Random, tables: [&'static str; 2]) -> Self {
        Self {
            random,
            tables,
            number: 0,
        }
    }

    fn alias(&mut self) -> String {
        self.number += 1;
        format!("x{}", self.number)
    }

    /// The next query.
    pub fn query(&mut self) -> String {
        match self.random.below(12) {
            0..=3 => self.plain(&Names(Vec::new()), None, 2),
            4 | 5 => self.grouped(),
            6 => self.windowed(),
            7 => self.set_operation(),
            8 => self.with(),
            9 => self.recursive(),
            10 => self.ordered(),
            _ => self.casts(),
        }
    }

    fn column(&mut self, names: &Names, data_type: Type) -> String {
        let at = self.random.below(names.0.len());
        let column = COLUMNS.iter().find(|(_, of)| *of == data_type);
        format!("{}.{}", names.0[at], column.map_or("a", |(name, _)| *name))
    }

    fn any_type(&mut self) -> Type {
        COLUMNS[self.random.below(COLUMNS.len())].1
    }

    /// A tree of joins; its names come back.
    fn from(&mut self, outer: &Names, depth: usize) -> (String, Names) {
        if depth == 0 || self.random.chance(35) {
            return self.relation(outer, depth);
        }
        let (left, mut names) = self.from(outer, depth - 1);
        let (right, of_right) = self.relation(outer, depth - 1);
        let kind = self.random.pick(&[
            "join",
            "join",
            "left join",
            "left join",
            "right join",
            "full join",
            "cross join",
        ]);
        let equal = {
            let data_type = self.any_type();
            let (a, b) = (
                self.column(&names, data_type),
                self.column(&of_right, data_type),
            );
            format!("{a} = {b}")
        };
        names.0.extend(of_right.0);
        let on = match kind {
            "cross join" => String::new(),
            // PostgreSQL too wants an equality for it.
            "full join" => format!(" on {equal}"),
            _ => {
                let mut all = names.clone();
                all.0.extend(outer.0.iter().cloned());
                match self.random.below(3) {
                    0 => format!(" on {equal}"),
                    1 => format!(" on {equal} and {}", self.condition(&all, 1)),
                    _ => format!(" on {}", self.condition(&all, 1)),
                }
            }
        };
        (format!("({left} {kind} {right}{on})"), names)
    }

    fn relation(&mut self, outer: &Names, depth: usize) -> (String, Names) {
        let alias = self.alias();
        let table = self.tables[self.random.below(2)];
        let from = match self.random.below(8) {
            0 if depth > 0 => {
                let condition = self.condition(&Names(vec![table.to_owned()]), 1);
                format!("(select * from {table} where {condition}) {alias}")
            }
            1 if depth > 0 && !outer.0.is_empty() => {
                let mut names = outer.clone();
                names.0.push(table.to_owned());
                let condition = self.condition(&names, 1);
                format!("(select a, b, n, t, f, d from {table} where {condition}) {alias}")
            }
            2 if depth > 0 => format!(
                "(select a, count(*) as b, sum(n) as n, min(t) as t, bool_or(f) as f, max(d) as d \
                 from {table} group by a) {alias}"
            ),
            _ => format!("{table} {alias}"),
        };
        (from, Names(vec![alias]))
    }

    /// A condition that cannot fail.
    pub fn condition(&mut self, names: &Names, depth: u32) -> String {
        if depth > 0 && self.random.chance(45) {
            let left = self.condition(names, depth - 1);
            return match self.random.below(5) {
                0 | 1 => format!("{left} and {}", self.condition(names, depth - 1)),
                2 | 3 => format!("({left} or {})", self.condition(names, depth - 1)),
                _ => format!("not ({left})"),
            };
        }
        let data_type = self.any_type();
        let column = self.column(names, data_type);
        let operator = self.random.pick(&["=", "<>", "<", "<=", ">", ">="]);
        match self.random.below(12) {
            0 => format!("{column} is null"),
            1 => format!("{column} is not null"),
            2..=4 => {
                let other = self.column(names, data_type);
                format!("{column} {operator} {other}")
            }
            5 => {
                let other = self.column(names, data_type);
                format!("{column} is distinct from {other}")
            }
            6 if depth > 0 => self.within(names, data_type, &column),
            7 => {
                let (a, n) = (
                    self.column(names, Type::Integer),
                    self.column(names, Type::Numeric),
                );
                format!("{a} {operator} {n}")
            }
            8 => {
                let (a, t) = (
                    self.column(names, Type::Integer),
                    self.column(names, Type::Text),
                );
                format!("coalesce({a}, length({t})) {operator} 3")
            }
            _ => format!("{column} {operator} {}", self.random.literal(data_type)),
        }
    }

    /// A condition with a subquery.
    fn within(&mut self, names: &Names, data_type: Type, column: &str) -> String {
        let table = self.tables[self.random.below(2)];
        let inner = self.alias();
        let inner_column = {
            let name = COLUMNS.iter().find(|(_, of)| *of == data_type);
            format!("{inner}.{}", name.map_or("a", |(name, _)| *name))
        };
        let correlated = match self.random.chance(60) {
            true => {
                let mut all = names.clone();
                all.0.push(inner.clone());
                self.condition(&all, 0)
            }
            false => self.condition(&Names(vec![inner.clone()]), 0),
        };
        let rows = format!("from {table} {inner} where {correlated}");
        let operator = self.random.pick(&["=", "<>", "<", ">="]);
        match self.random.below(7) {
            0 => format!("exists (select 1 {rows})"),
            1 => format!("not exists (select {inner_column} {rows})"),
            2 => format!("{column} in (select {inner_column} {rows})"),
            3 => format!("{column} not in (select {inner_column} {rows})"),
            4 => format!("{column} {operator} any (select {inner_column} {rows})"),
            5 => format!("{column} {operator} all (select {inner_column} {rows})"),
            _ if data_type == Type::Boolean => format!("(select count(*) {rows}) > 1"),
            _ => format!("{column} {operator} (select max({inner_column}) {rows})"),
        }
    }

    /// An expression that cannot fail for the values that there are.
    fn expression(&mut self, names: &Names) -> String {
        let a = self.column(names, Type::Integer);
        let b = self.column(names, Type::Bigint);
        let n = self.column(names, Type::Numeric);
        let t = self.column(names, Type::Text);
        let d = self.column(names, Type::Date);
        let f = self.column(names, Type::Boolean);
        let condition = self.condition(names, 1);
        match self.random.below(24) {
            0 => a,
            1 => b,
            2 => format!("round({n}, 2)"),
            3 => t,
            4 => d,
            5 => f,
            6 => format!("case when {condition} then {a} else 0.5 end"),
            7 => format!("case when {condition} then {b} else {a} end"),
            8 => format!("coalesce({t}, {a}::text)"),
            9 => format!("{d} + {a}"),
            10 => format!("{t} || {a}"),
            11 => format!("extract(month from {d})"),
            12 => format!("{a}::float8 / 4"),
            13 => format!("{t}::char(3) || '|'"),
            14 => format!("{d}::timestamp - interval '36 hours'"),
            15 => format!("age({d}::timestamp, timestamp '2000-01-01')"),
            16 => format!("nullif({a}, 3)"),
            17 => format!("greatest({a}, {b}, 2)"),
            18 => format!("({a}, {t}) < (7, 'b')"),
            19 => format!("array[{a}, 1]"),
            20 => format!("to_char({d}, 'YYYY-MM')"),
            21 => format!("date_trunc('month', {d}::timestamp)"),
            22 => format!(
                "(select count(*) from {} q where q.a = {a})",
                self.tables[self.random.below(2)]
            ),
            _ => format!("({condition})"),
        }
    }

    fn plain(&mut self, outer: &Names, width: Option<usize>, depth: usize) -> String {
        let (from, mut names) = self.from(outer, depth);
        names.0.extend(outer.0.iter().cloned());
        let width = width.unwrap_or_else(|| self.random.below(3) + 1);
        let list: Vec<String> = (0..width).map(|_| self.expression(&names)).collect();
        let condition = self.condition(&names, 2);
        let distinct = self.random.pick(&["", "", "", "distinct "]);
        format!(
            "select {distinct}{} from {from} where {condition}",
            list.join(", ")
        )
    }

    fn aggregation(&mut self, names: &Names) -> String {
        let data_type = self.any_type();
        let any = self.column(names, data_type);
        let a = self.column(names, Type::Integer);
        let n = self.column(names, Type::Numeric);
        let t = self.column(names, Type::Text);
        let f = self.column(names, Type::Boolean);
        match self.random.below(14) {
            0 => "count(*)".to_owned(),
            1 => format!("count({any})"),
            2 => format!("count(distinct {any})"),
            3 => format!("sum({a})"),
            4 => format!("sum({n})"),
            5 => format!("avg({n})"),
            6 if data_type.has_extremes() => format!("min({any})"),
            7 if data_type.has_extremes() => format!("max({any})"),
            8 => format!("bool_and({f})"),
            9 => format!("string_agg({t}, ',' order by {t})"),
            10 => format!("sum({a}) filter (where {})", self.condition(names, 0)),
            11 => format!("array_agg({a} order by {a})"),
            12 => format!("round(stddev({a}), 6)"),
            _ => format!("sum(case when {f} then {a} else 0.5 end)"),
        }
    }

    fn grouped(&mut self) -> String {
        let (from, names) = self.from(&Names(Vec::new()), 1);
        let keys: Vec<String> = (0..=self.random.below(2))
            .map(|_| match self.random.below(6) {
                0 => self.column(&names, Type::Text),
                1 => self.column(&names, Type::Boolean),
                2 => format!("round({}, 1)", self.column(&names, Type::Numeric)),
                3 => self.column(&names, Type::Date),
                4 => format!("{} % 3", self.column(&names, Type::Integer)),
                _ => format!("{}::char(2)", self.column(&names, Type::Text)),
            })
            .collect();
        let list: Vec<String> = (0..=self.random.below(3))
            .map(|_| self.aggregation(&names))
            .collect();
        let condition = self.condition(&names, 1);
        let grouping = match self.random.below(6) {
            0 => format!("rollup ({})", keys.join(", ")),
            1 => format!("cube ({})", keys.join(", ")),
            2 => format!("grouping sets (({}), ())", keys.join(", ")),
            _ => keys.join(", "),
        };
        let having = match self.random.below(4) {
            0 => " having count(*) > 1".to_owned(),
            1 => format!(" having {} is not null", self.aggregation(&names)),
            _ => String::new(),
        };
        format!(
            "select {}, {} from {from} where {condition} group by {grouping}{having}",
            keys.join(", "),
            list.join(", ")
        )
    }

    fn windowed(&mut self) -> String {
        let (from, names) = self.from(&Names(Vec::new()), 1);
        let a = self.column(&names, Type::Integer);
        let n = self.column(&names, Type::Numeric);
        let f = self.column(&names, Type::Boolean);
        let call = match self.random.below(8) {
            0 => "rank()".to_owned(),
            1 => "dense_rank()".to_owned(),
            2 => format!("sum({n})"),
            3 => "count(*)".to_owned(),
            4 => format!("max({a})"),
            5 => "cume_dist()".to_owned(),
            6 => format!("sum({a}) filter (where {f})"),
            _ => "percent_rank()".to_owned(),
        };
        let partition = match self.random.below(3) {
            0 => String::new(),
            1 => format!("partition by {f} "),
            _ => format!("partition by {a} % 3 "),
        };
        let by = {
            let data_type = self.any_type();
            self.column(&names, data_type)
        };
        let how = self.random.pick(&["", " desc", " nulls first"]);
        // What peers share: which of them comes first is nobody's business.
        let frame = self.random.pick(&[
            "",
            " range between unbounded preceding and unbounded following",
            " groups between 1 preceding and 1 following",
            " groups between current row and unbounded following exclude group",
        ]);
        let frame = match call.contains("rank") || call.contains("cume") {
            true => "",
            false => frame,
        };
        let condition = self.condition(&names, 1);
        format!(
            "select {a}, {by}, {call} over ({partition}order by {by}{how}{frame}) from {from} \
             where {condition}"
        )
    }

    fn set_operation(&mut self) -> String {
        let kinds = [
            "union",
            "union all",
            "intersect",
            "intersect all",
            "except",
            "except all",
        ];
        let column = self
            .random
            .pick(&["a", "b", "round(n, 1)", "t", "f", "d", "a, t", "d, f"]);
        let mut sql = String::new();
        for part in 0..self.random.below(2) + 2 {
            if part > 0 {
                sql += &format!(" {} ", self.random.pick(&kinds));
            }
            let table = self.tables[self.random.below(2)];
            let condition = self.condition(&Names(vec![table.to_owned()]), 1);
            sql += &format!("(select {column} from {table} where {condition})");
        }
        sql
    }

    fn with(&mut self) -> String {
        let table = self.tables[self.random.below(2)];
        let condition = self.condition(&Names(vec![table.to_owned()]), 1);
        let names = Names(vec!["w".to_owned(), "v".to_owned()]);
        let list = [self.expression(&names), self.expression(&names)].join(", ");
        let on = self.condition(&names, 1);
        format!(
            "with w as (select * from {table} where {condition}), \
             v as (select a, max(b) as b, min(n) as n, max(t) as t, bool_and(f) as f, min(d) as d \
             from w group by a) \
             select {list} from w left join v on w.a = v.a where {on}"
        )
    }

    fn recursive(&mut self) -> String {
        let table = self.tables[self.random.below(2)];
        let all = self.random.pick(&["", "all "]);
        let step = self.random.pick(&["x + 1", "x + a % 3 + 1", "x * 2 + 1"]);
        format!(
            "with recursive w(x, y) as (select 0, min(t) from {table} union {all}\
             select {step}, t from w join {table} on a = x % 10 where x < 12) \
             select x, count(*), min(y) from w group by x"
        )
    }

    /// What an order decides.
    fn ordered(&mut self) -> String {
        let (from, names) = self.from(&Names(Vec::new()), 1);
        let a = self.column(&names, Type::Integer);
        let d = self.column(&names, Type::Date);
        let condition = self.condition(&names, 1);
        match self.random.below(3) {
            0 => format!(
                "select {a}, {d} from {from} where {condition} order by {a} desc nulls last, {d} \
                 limit {} offset {}",
                self.random.below(9),
                self.random.below(4)
            ),
            1 => format!(
                "select distinct on ({a}) {a}, {d} from {from} where {condition} order by {a}, {d}"
            ),
            _ => format!(
                "select {a} from {from} where {condition} order by {a} fetch first {} rows with ties",
                self.random.below(6) + 1
            ),
        }
    }

    /// Types on their way through subqueries.
    fn casts(&mut self) -> String {
        let (from, names) = self.from(&Names(Vec::new()), 1);
        let columns: Vec<String> = (0..3).map(|_| self.expression(&names)).collect();
        let condition = self.condition(&names, 1);
        let inner = format!(
            "select {} as p, {} as q, {} as r from {from} where {condition}",
            columns[0], columns[1], columns[2]
        );
        let outer = self.random.pick(&[
            "p, q, r",
            "p::text, q::text || '!', r is null",
            "count(*), count(distinct p), max(q::text)",
            "coalesce(p::text, '?'), r",
        ]);
        format!("select {outer} from ({inner}) y where p is not null or q is null")
    }
}
