//! Numbers that are the same in each run, and expressions made of them.

/// A source of numbers.
pub struct Random(pub u64);

impl Random {
    /// A number below a bound.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % bound as u64).unwrap_or(0)
    }

    /// One of these.
    pub fn pick<'p, T>(&mut self, from: &'p [T]) -> &'p T {
        &from[self.below(from.len())]
    }
}

/// What stands for an expression of a type: `{i}` whole number, `{f}` floating, `{n}` numeric,
/// `{t}` text, `{c}` bpchar, `{d}` date, `{s}` timestamp, `{b}` truth.
const SHAPES: &[(char, &[&str])] = &[
    (
        'b',
        &[
            "b",
            "e",
            "true",
            "null::bool",
            "({i} = {i})",
            "({i} < {i})",
            "({i} <> {i})",
            "({f} <= {f})",
            "({f} = {f})",
            "({n} > {n})",
            "({n} = {n})",
            "({n} between {n} and {n})",
            "({t} = {t})",
            "({t} < {t})",
            "({c} = {c})",
            "({c} >= {c})",
            "({d} <= {d})",
            "({s} < {s})",
            "({d} < {s})",
            "({s} >= {d})",
            "({b} and {b})",
            "({b} or {b})",
            "({b} and {b} and {b})",
            "(not {b})",
            "({i} is null)",
            "({n} is not null)",
            "({t} is null)",
            "({b} is true)",
            "({b} is not false)",
            "({b} is unknown)",
            "({i} is distinct from {i})",
            "({n} is not distinct from {n})",
            "({t} is distinct from {t})",
            "({i} in (1, 2, 3))",
            "({i} not in (1, null))",
            "({i} in (1,2,3,4,5,6,7,8,9,10,11,12))",
            "({n} in (1, 2.5, 0.05))",
            "({t} in ('a', 'ab', 'é'))",
            "({c} in ('a', 'RAIL'))",
            "({t} not in ('a', null))",
            "({t} like 'a%')",
            "({t} like '%a')",
            "({t} like '%a%')",
            "({t} like 'a_c')",
            "({t} not like '%b_%')",
            "({t} like '_')",
            "({t} like '')",
            "({t} like '%')",
            "({t} like 'P%O%SS')",
            "({t} like '%\\%\\_%')",
            "({c} like 'a%')",
            "({c} like '%L  ')",
            "({c} not like '_')",
            "({d} in ('1998-12-01', '1995-03-15'))",
            "({i} <> 0 and {i} / {i} > 1)",
            "(case when {b} then {b} else {b} end)",
            "({b} = {b})",
            "({b} < {b})",
            "({t} like {t})",
            "({t} ilike 'A%')",
            "({i} > any (array[1, 2]))",
            "(({i}, {n}) < ({i}, {n}))",
            "(o = 1)",
            "(o::int4 < {i})",
            "(tz < tz)",
            "(tz > ts)",
            "coalesce({b}, {b})",
            "({t} ~ '^a')",
        ],
    ),
    (
        'i',
        &[
            "i2",
            "j2",
            "i4",
            "j4",
            "i8",
            "j8",
            "1",
            "2",
            "null::int4",
            "7::int2",
            "3::int8",
            "({i} + {i})",
            "({i} - {i})",
            "({i} * {i})",
            "({i} / {i})",
            "({i} % {i})",
            "(- {i})",
            "{i}::int8",
            "{i}::int4",
            "{i}::int2",
            "{n}::int4",
            "{n}::int8",
            "{f}::int4",
            "{f}::int8",
            "length({t})",
            "length({c})",
            "char_length({t})",
            "octet_length({t})",
            "({d} - {d})",
            "(case when {b} then {i} else {i} end)",
            "(case when {b} then {i} when {b} then {i} end)",
            "(case {i} when 1 then {i} when {i} then {i} else {i} end)",
            "coalesce({i}, {i})",
            "nullif({i}, {i})",
            "greatest({i}, {i})",
            "least({i}, {i}, {i})",
            "abs({i})",
            "(case when {i} <> 0 then {i} / {i} end)",
            "(case {t} when 'a' then 1 when {t} then {i} end)",
            "(1 / {i})",
            "position('a' in {t})",
            "sign({n})::int4",
            "(select 1)",
        ],
    ),
    (
        'f',
        &[
            "r4",
            "f8",
            "g8",
            "1.5::float8",
            "null::float8",
            "({f} + {f})",
            "({f} - {f})",
            "({f} * {f})",
            "({f} / {f})",
            "(- {f})",
            "(r4 * r4)",
            "(r4 + r4)",
            "(r4 / r4)",
            "{i}::float8",
            "{n}::float8",
            "{f}::float4::float8",
            "(case when {b} then {f} else {f} end)",
            "coalesce({f}, {f})",
            "nullif({f}, {f})",
            "greatest({f}, {f})",
            "date_part('year', {d})",
            "date_part('month', {s})",
            "sqrt(4.0::float8)",
            "sqrt({f})",
            "{i}::float4",
        ],
    ),
    (
        'n',
        &[
            "n",
            "m",
            "q",
            "1",
            "0.07",
            "null::numeric",
            "100.00",
            "({n} + {n})",
            "({n} - {n})",
            "({n} * {n})",
            "({n} / {n})",
            "({n} % {n})",
            "(- {n})",
            "(n * (1 - m))",
            "(n * (1 - m) * (1 + m))",
            "{i}::numeric",
            "{f}::numeric",
            "({i} * {n})",
            "{n}::numeric(10,2)",
            "{n}::numeric(5,1)",
            "round({n}, 2)",
            "round({n})",
            "round({n}, 0)",
            "trunc({n}, 1)",
            "abs({n})",
            "floor({n})",
            "ceil({n})",
            "(case when {b} then {n} * {n} else 0 end)",
            "(case when {b} then {n} end)",
            "coalesce({n}, 0)",
            "coalesce({n}, {n}, {n})",
            "nullif({n}, 0)",
            "greatest({n}, {n})",
            "extract(year from {d})",
            "extract(month from {s})",
            "extract(day from {d})",
            "extract(quarter from {d})",
            "extract(dow from {d})",
            "extract(hour from {s})",
            "extract(year from tz)",
            "(case when {n} <> 0 then {n} / {n} else 0 end)",
            "power({n}, 2)",
        ],
    ),
    (
        't',
        &[
            "x",
            "y",
            "v",
            "v::text",
            "'ab'",
            "null::text",
            "'é'",
            "substring({t}, 1, 2)",
            "substring({t} from 2)",
            "substring({t}, -1, 3)",
            "substr({t}, 2, 1)",
            "substring({t}, {i}, 2)",
            "lower({t})",
            "upper({t})",
            "({t} || {t})",
            "({t} || 'z')",
            "{c}::text",
            "{t}::varchar(3)",
            "{t}::varchar",
            "btrim({t})",
            "ltrim({t})",
            "rtrim({t})",
            "(case when {b} then {t} else {t} end)",
            "(case {t} when 'a' then 'one' else {t} end)",
            "coalesce({t}, {t})",
            "nullif({t}, {t})",
            "greatest({t}, {t})",
            "{i}::text",
            "replace({t}, 'a', 'b')",
            "to_char({d}, 'YYYY')",
            "substring({c}, 1, 2)",
        ],
    ),
    (
        'c',
        &[
            "c",
            "d",
            "'a'::bpchar",
            "{t}::char(4)",
            "{c}::char(2)",
            "c::char(6)",
            "(case when {b} then {c} else {c} end)",
            "coalesce({c}, {c})",
            "nullif({c}, {c})",
            "greatest({c}, {c})",
            "{t}::bpchar",
        ],
    ),
    (
        'd',
        &[
            "da",
            "db",
            "date '1998-12-01'",
            "(date '1998-12-01' - 90)",
            "null::date",
            "({d} + 3)",
            "({d} - 90)",
            "({d} + i4)",
            "{s}::date",
            "(case when {b} then {d} else {d} end)",
            "coalesce({d}, {d})",
            "greatest({d}, {d})",
        ],
    ),
    (
        's',
        &[
            "ts",
            "tt",
            "timestamp '1998-12-01 10:00'",
            "({d} + interval '1 month')",
            "({s} - interval '1 day 2 hours')",
            "({s} + interval '1 year')",
            "({d} - interval '3 months')",
            "{d}::timestamp",
            "date_trunc('month', {s})",
            "date_trunc('year', {s})",
            "date_trunc('quarter', {s})",
            "date_trunc('hour', {s})",
            "({s} + iv)",
            "coalesce({s}, {s})",
            "(case when {b} then {s} end)",
            "least({s}, {s})",
        ],
    ),
];

/// A random expression of a type.
pub fn expression(random: &mut Random, kind: char, depth: usize) -> String {
    let shapes = SHAPES.iter().find(|(of, _)| *of == kind);
    let shapes = shapes.expect("a type's shapes").1;
    let shape = loop {
        let shape = *random.pick(shapes);
        if depth > 0 || !shape.contains('{') {
            break shape;
        }
    };
    let mut made = String::new();
    let mut rest = shape;
    while let Some(at) = rest.find('{') {
        made.push_str(&rest[..at]);
        let kind = rest[at + 1..].chars().next().expect("a type");
        made.push_str(&expression(random, kind, depth - 1));
        rest = &rest[at + 3..];
    }
    made.push_str(rest);
    made
}

/// An expression of each shape, over columns and constants.
pub fn each(random: &mut Random) -> Vec<String> {
    let mut all = Vec::new();
    for (kind, shapes) in SHAPES {
        for shape in *shapes {
            let mut made = (*shape).to_owned();
            while let Some(at) = made.find('{') {
                let of = made[at + 1..].chars().next().unwrap_or(*kind);
                let leaf = expression(random, of, 0);
                made.replace_range(at..at + 3, &leaf);
            }
            all.push(made);
        }
    }
    all
}
