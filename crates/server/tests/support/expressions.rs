//! Random values, conditions and expressions over the columns of
//! [`COLUMNS`].

use std::ops::RangeInclusive;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Integer,
    Bigint,
    Numeric,
    Text,
    Boolean,
    Date,
    Interval,
    Time,
    Jsonb,
    Array,
    Moment,
}

const TYPES: [Type; 11] = [
    Type::Integer,
    Type::Bigint,
    Type::Numeric,
    Type::Text,
    Type::Boolean,
    Type::Date,
    Type::Interval,
    Type::Time,
    Type::Jsonb,
    Type::Array,
    Type::Moment,
];

/// The columns beside the key, in every table.
pub const COLUMNS: [(&str, Type); 11] = [
    ("a", Type::Integer),
    ("b", Type::Bigint),
    ("n", Type::Numeric),
    ("t", Type::Text),
    ("f", Type::Boolean),
    ("d", Type::Date),
    ("i", Type::Interval),
    ("m", Type::Time),
    ("j", Type::Jsonb),
    ("v", Type::Array),
    ("z", Type::Moment),
];

/// No two are equal and look different, whatever is added to them.
const INTERVALS: [&str; 7] = [
    "0",
    "3 days",
    "-1 days",
    "00:10:00",
    "2 days 00:05:30.5",
    "-00:00:01",
    "100 days",
];
const TIMES: [&str; 5] = [
    "00:00:00",
    "12:34:56.789",
    "23:59:59.999999",
    "06:00",
    "12:00",
];
/// Among them are hours that a zone's clocks skip or show twice.
const MOMENTS: [&str; 8] = [
    "2024-03-31 02:30",
    "2024-10-27 02:30",
    "2024-03-10 02:30:00.1239",
    "1999-12-31 23:59:59.9999",
    "2024-02-29",
    "2024-07-01 12:00+02",
    "2023-11-05 01:30:00-05",
    "1970-01-01 00:00Z",
];
const OBJECTS: [&str; 7] = [
    "{}",
    r#"{"a": 1}"#,
    r#"{"a": 7, "b": [1, "x", null, {"c": true}]}"#,
    r#"{"b": [], "t": "it is"}"#,
    r#"{"a": null, "long key": {"x": {"y": -0.25}}}"#,
    r#"{"a": 1, "b": [2]}"#,
    r#"{"A": "日本", "z": false}"#,
];
const ARRAYS: [&str; 6] = ["{}", "{1}", "{1,2,3}", "{2,NULL}", "{-5,40}", "{1,1}"];

/// Numbers of more digits than most have; a column of two digits behind the point rounds them.
const LONG_NUMBERS: [&str; 4] = [
    "7.0000000000000000000000000000000000000000000000001",
    "-0.00000000000000000000000000000000000000000000000005",
    "3.00000000000000000000000000000000000000000000000000",
    "'NaN'::numeric",
];
/// Numbers outside of all columns with a precision.
const FAR_NUMBERS: [&str; 5] = [
    "99999999.99",
    "123456789012345678901234567890123456789012.5",
    "-1e45",
    "'Infinity'::numeric",
    "'-Infinity'::numeric",
];
const WORDS: [&str; 14] = [
    "",
    "a",
    "ab",
    "abc",
    "Ab",
    "b%",
    "x_y",
    "日本",
    "zebra",
    "it''s",
    "back\\slash",
    "a ",
    "10",
    "aXb",
];
const PATTERNS: [&str; 12] = [
    "a%", "%b", "%a%", "_b%", "a_c", "%", "", "x\\_y", "b\\%", "%本", "A%", "___",
];
const DATES: [&str; 9] = [
    "2024-02-29",
    "2000-01-01",
    "1999-12-31",
    "2026-11-20",
    "1970-01-01",
    "2023-03-01",
    "0001-01-01",
    "2024-12-31",
    "1900-02-28",
];

/// SplitMix64: its numbers do not change with a library.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub fn within(&mut self, range: RangeInclusive<i64>) -> i64 {
        let span = (range.end() - range.start() + 1) as usize;
        range.start() + self.below(span) as i64
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}

/// Parts of statements.
impl Random {
    pub fn sort(&mut self) -> String {
        let mut sort = String::new();
        for _ in 0..self.below(3) {
            let by = self.pick(&["a", "b", "n", "t", "f", "d", "length(t)", "a + b"]);
            let how = self.pick(&["", " desc", " nulls first", " desc nulls last"]);
            sort += &format!("{by}{how}, ");
        }
        sort
    }

    /// A condition that cannot fail, whatever of it is evaluated first.
    pub fn condition(&mut self, depth: u32) -> String {
        if depth > 0 && self.chance(40) {
            let left = self.condition(depth - 1);
            return match self.below(5) {
                0 | 1 => format!("{left} and {}", self.condition(depth - 1)),
                2 | 3 => format!("({left} or {})", self.condition(depth - 1)),
                _ => format!("not ({left})"),
            };
        }
        let (column, data_type) = COLUMNS[self.below(COLUMNS.len())];
        match self.below(10) {
            0 => format!("{column} is null"),
            1 => format!("{column} is not null"),
            2 => {
                let not = self.pick(&["", "not "]);
                let values: Vec<String> = (0..=self.below(4))
                    .map(|_| self.literal_or_null(data_type))
                    .collect();
                format!("{column} {not}in ({})", values.join(", "))
            }
            3 => {
                let not = self.pick(&["", "not "]);
                let how = self.pick(&["like", "ilike"]);
                let pattern = self.pick(&PATTERNS);
                format!("t {not}{how} '{pattern}'")
            }
            4 => self
                .pick(&["f", "not f", "f is true", "f is not false", "f is unknown"])
                .to_owned(),
            5 => format!(
                "{column} is {}distinct from {}",
                self.pick(&["", "not "]),
                self.literal_or_null(data_type)
            ),
            6 => format!(
                "{column} between {} and {}",
                self.literal(data_type),
                self.literal(data_type)
            ),
            7 => self
                .pick(&[
                    "a < b",
                    "a > n",
                    "b <> n",
                    "n <= a + 0.5",
                    "length(t) > 2",
                    "a % 2 = 0",
                    "d > '2000-01-01'",
                    "z > '2000-01-01'",
                    "z = z::date",
                    "z <= d",
                    "extract(year from d) = 2024",
                    "t > upper(t)",
                    "coalesce(a, 0) = 0",
                ])
                .to_owned(),
            _ => {
                let operator = self.pick(&["=", "<>", "<", "<=", ">", ">="]);
                format!("{column} {operator} {}", self.literal(data_type))
            }
        }
    }

    /// An expression; columns that it names are bounded so that it stays in
    /// range.
    pub fn expression(&mut self, wanted: Option<Type>, depth: u32) -> String {
        let data_type = wanted.unwrap_or_else(|| TYPES[self.below(TYPES.len())]);
        let at = TYPES.iter().position(|of| *of == data_type).unwrap_or(0);
        let column = COLUMNS[at].0;
        if depth == 0 || self.chance(20) {
            return if self.chance(80) || data_type.needs_name() {
                column.to_owned()
            } else {
                self.literal_in(data_type)
            };
        }
        match self.below(10) {
            0 => {
                let inner = self.expression(Some(data_type), depth - 1);
                let typed = match data_type {
                    Type::Date => "date ",
                    Type::Moment => "timestamptz ",
                    _ => "",
                };
                return format!("coalesce({inner}, {typed}{})", self.literal_in(data_type));
            }
            1 => {
                let condition = self.condition(1);
                let then = self.expression(Some(data_type), depth - 1);
                return format!("case when {condition} then {then} else {column} end");
            }
            2 => return format!("nullif({column}, {})", self.literal_in(data_type)),
            _ => {}
        }
        let inner = self.expression(Some(data_type), depth - 1);
        let small = self.within(1..=7);
        let forms: Vec<String> = match data_type {
            Type::Interval => vec![
                format!("{inner} + interval '{small} days'"),
                "-i".to_owned(),
                "i * 2".to_owned(),
                format!("make_interval(days => {small})"),
                "m - time '01:00'".to_owned(),
            ],
            Type::Time => vec![
                "m + interval '1 hour'".to_owned(),
                format!("m - interval '{small} minutes'"),
                "greatest(m, '10:00')".to_owned(),
                "date_trunc('minute', i)::time".to_owned(),
            ],
            Type::Jsonb => vec![
                format!("{inner} || jsonb '{{\"z\": {small}}}'"),
                "jsonb_build_object('a', a, 't', t, 'v', v)".to_owned(),
                format!("jsonb_build_object('x', {inner})"),
                "j - 'a'".to_owned(),
                format!("jsonb_set(j, '{{a}}', '{small}')"),
                "jsonb_strip_nulls(j)".to_owned(),
                "j #- '{b,0}'".to_owned(),
            ],
            Type::Array => vec![
                format!("{inner} || {small}"),
                "array_append(v, a)".to_owned(),
                "v[1:2]".to_owned(),
                "array_remove(v, 1)".to_owned(),
                format!("array[a, {small}]"),
            ],
            Type::Integer => vec![
                "(j ->> 'a')::int".to_owned(),
                "jsonb_array_length(coalesce(j -> 'b', '[]'))".to_owned(),
                "array_length(v, 1)".to_owned(),
                "v[1]".to_owned(),
                "cardinality(v)".to_owned(),
                "extract(hour from m)::int".to_owned(),
                "extract(hour from z)::int".to_owned(),
                format!("{inner} + {small}"),
                format!("{inner} - a"),
                format!("{inner} / {small}"),
                format!("{inner} % {small}"),
                format!("-({inner})"),
                format!("abs({inner})"),
                "length(t)".to_owned(),
                format!("greatest(a, {small})"),
                "d - date '2000-01-01'".to_owned(),
                format!("mod(a, {small})"),
                "position('b' in t)".to_owned(),
            ],
            Type::Bigint => vec![
                format!("{inner} / {small}"),
                format!("{inner} % {small}"),
                "a::bigint * 1000000".to_owned(),
                "b / 2 + a".to_owned(),
                "least(a, b)".to_owned(),
                "n::bigint".to_owned(),
            ],
            Type::Numeric => vec![
                format!("{inner} + {small}.25"),
                format!("{inner} * {small}"),
                format!("n / {small}"),
                format!("{inner} - a"),
                "round(n, 1)".to_owned(),
                "round(n)".to_owned(),
                "abs(n)".to_owned(),
                "trunc(n, 1)".to_owned(),
                "ceil(n)".to_owned(),
                "floor(n)".to_owned(),
                format!("n % {small}"),
                "a::numeric / 3".to_owned(),
                "n::numeric(8, 1)".to_owned(),
                "extract(day from d)".to_owned(),
            ],
            Type::Text => vec![
                "j ->> 'a'".to_owned(),
                "j -> 'b' ->> 1".to_owned(),
                "j::text".to_owned(),
                "i::text".to_owned(),
                "m::text".to_owned(),
                "v::text".to_owned(),
                "to_char(m, 'HH24:MI')".to_owned(),
                "jsonb_typeof(j -> 'b')".to_owned(),
                "array_to_string(v, ',', '*')".to_owned(),
                format!("{inner} || 'x'"),
                format!("upper({inner})"),
                format!("lower({inner})"),
                format!("substring(t from {small} for 2)"),
                "substr(t, 2)".to_owned(),
                "trim(t)".to_owned(),
                "replace(t, 'a', 'q')".to_owned(),
                format!("left(t, {small})"),
                format!("right(t, -{small})"),
                "a::text".to_owned(),
                "f::text".to_owned(),
                "d::text".to_owned(),
                "z::text".to_owned(),
                "z || t".to_owned(),
                "to_char(z, 'Day HH24:MI OF')".to_owned(),
                "array[z, d]::text".to_owned(),
                "(a::float8 / 3)::text".to_owned(),
                "to_jsonb(z)::text".to_owned(),
                "a || t".to_owned(),
                "concat(t, a, f)".to_owned(),
                "lpad(t, 4, '.')".to_owned(),
                "reverse(t)".to_owned(),
                "t::varchar(2)".to_owned(),
            ],
            Type::Boolean => vec![
                "j @> '{\"a\": 1}'".to_owned(),
                "j ? 'b'".to_owned(),
                "v @> array[1]".to_owned(),
                "a = any(v)".to_owned(),
                "2 <> all(v)".to_owned(),
                "i > '1 day'".to_owned(),
                "m < '12:00'".to_owned(),
                "z < d".to_owned(),
                "z >= '2024-03-31 03:00'".to_owned(),
                "z::timestamp = z".to_owned(),
                "(a, t) < (3, 'b')".to_owned(),
                "t similar to '(a|b)%'".to_owned(),
                "t ~ '^a.*b'".to_owned(),
                format!("({})", self.condition(1)),
                "a > 5".to_owned(),
                "not f".to_owned(),
                "f and a > 1".to_owned(),
                "f or a > 1".to_owned(),
                "f = (b > 3)".to_owned(),
            ],
            Type::Moment => vec![
                format!("{inner} + interval '{small} days'"),
                format!("{inner} - interval '{small} months'"),
                "z + i".to_owned(),
                "date_trunc('day', z)".to_owned(),
                "d::timestamptz".to_owned(),
                "d + timetz '10:00+01'".to_owned(),
                "(z at time zone 'UTC')::timestamptz".to_owned(),
                "z::timestamp::timestamptz".to_owned(),
                "greatest(z, '2000-01-01 12:00')".to_owned(),
                "z::timestamptz(0)".to_owned(),
            ],
            Type::Date => vec![
                "z::date".to_owned(),
                format!("{inner} + {small}"),
                format!("{inner} - {small}"),
                "greatest(d, '2000-01-01')".to_owned(),
                "date '2024-02-28' + a % 10".to_owned(),
            ],
        };
        let at = self.below(forms.len());
        let form = forms.into_iter().nth(at).unwrap_or_default();
        format!("({form})")
    }

    pub fn literal_or_null(&mut self, data_type: Type) -> String {
        if self.chance(12) {
            "null".to_owned()
        } else {
            self.literal(data_type)
        }
    }

    /// A literal to compare with: at times out of the column's usual range.
    pub fn literal(&mut self, data_type: Type) -> String {
        if self.chance(4) {
            match data_type {
                Type::Integer => return "2147483647".to_owned(),
                Type::Bigint => return "-9223372036854775807".to_owned(),
                Type::Numeric => return self.pick(&FAR_NUMBERS).to_owned(),
                _ => {}
            }
        }
        self.literal_in(data_type)
    }

    /// A literal that a column of the type takes.
    pub fn literal_in(&mut self, data_type: Type) -> String {
        match data_type {
            Type::Integer => self.within(-12..=40).to_string(),
            Type::Bigint if self.chance(10) => "4000000000".to_owned(),
            Type::Bigint => self.within(-5..=30).to_string(),
            Type::Numeric if self.chance(2) => self.pick(&LONG_NUMBERS).to_owned(),
            Type::Numeric => {
                let scale = self.below(3);
                let whole = self.within(-9..=25);
                let digits = self.within(10..=99).to_string();
                if scale == 0 {
                    whole.to_string()
                } else {
                    format!("{whole}.{}", &digits[..scale])
                }
            }
            Type::Text => format!("'{}'", self.pick(&WORDS)),
            Type::Boolean => self.pick(&["true", "false"]).to_owned(),
            Type::Date => format!("'{}'", self.pick(&DATES)),
            Type::Interval => format!("'{}'", self.pick(&INTERVALS)),
            Type::Time => format!("'{}'", self.pick(&TIMES)),
            Type::Jsonb => format!("'{}'", self.pick(&OBJECTS)),
            Type::Array => format!("'{}'", self.pick(&ARRAYS)),
            Type::Moment => format!("'{}'", self.pick(&MOMENTS)),
        }
    }
}

impl Type {
    /// Whether a literal alone is a text, not of the type.
    const fn needs_name(self) -> bool {
        matches!(
            self,
            Self::Date | Self::Interval | Self::Time | Self::Jsonb | Self::Array | Self::Moment
        )
    }

    /// Whether there are a least and a greatest value of several.
    pub const fn has_extremes(self) -> bool {
        !matches!(self, Self::Boolean | Self::Jsonb)
    }
}

pub const fn type_name(data_type: Type) -> &'static str {
    match data_type {
        Type::Integer => "integer",
        Type::Bigint => "bigint",
        Type::Numeric => "numeric",
        Type::Text => "text",
        Type::Boolean => "boolean",
        Type::Date => "date",
        Type::Interval => "interval",
        Type::Time => "time",
        Type::Jsonb => "jsonb",
        Type::Array => "integer[]",
        Type::Moment => "timestamptz(3)",
    }
}
