//! Random changes of a table by what a query over it and another finds. Where several rows of the
//! other match, they give the same value, since any of them may be taken.

use super::expressions::{COLUMNS, Random, Type};
use super::queries::{Names, Queries};

/// A change of `target`, whose primary key is `key`; the other table is `other`.
pub fn change(
    random: &mut Random,
    (target, key): (&'static str, &str),
    other: &'static str,
) -> String {
    let (column, data_type) = COLUMNS[random.below(COLUMNS.len())];
    let extreme = match data_type.has_extremes() {
        true => random.pick(&["max", "min"]),
        false => "any",
    };
    // Equal numbers may look different.
    let number = match data_type {
        Type::Numeric => "round(n, 2)",
        _ => column,
    };
    let literal = random.literal_in(data_type);
    let tail = match random.below(3) {
        0 => format!("{target}.a % 5"),
        1 => format!("{target}.b % 4"),
        _ => format!("length({target}.t) % 3"),
    };
    let names = |of: &[&str]| Names(of.iter().map(|name| (*name).to_owned()).collect());
    let mut queries = Queries::new(random, [target, other]);
    let of_target = queries.condition(&names(&[target]), 2);
    let of_both = queries.condition(&names(&[target, "o"]), 1);
    let of_other = queries.condition(&names(&["o"]), 1);
    let random = queries.random;
    let equal = random.pick(&["a", "t", "d", "b"]);
    let returning = match random.chance(50) {
        true => format!(" returning {target}.*"),
        false => String::new(),
    };
    let value = match extreme {
        "any" => format!("(select {literal} from {other} o where {of_both} limit 1)"),
        _ => format!("(select {extreme}({number}) from {other} o where {of_both})"),
    };
    let own = random.condition(1);
    let rows = random.below(4);
    let locking = random.pick(&["update", "no key update", "share", "update skip locked"]);
    let locked = match random.chance(50) {
        true => format!("order by {key} limit {rows} for {locking}"),
        false => format!("order by {key} for {locking} limit {rows}"),
    };
    let same_key: Vec<String> = key
        .split(", ")
        .map(|column| format!("w.{column} = {target}.{column}"))
        .collect();
    let same_key = same_key.join(" and ");
    match random.below(12) {
        6 => format!(
            "update {target} set {column} = {literal} where ({key}) in \
             (select {key} from {target} where {own} {locked}){returning}"
        ),
        7 => format!(
            "with w as (select * from {target} where {own} {locked}) \
             update {target} set {column} = w.{column}, a = w.a + 1 from w \
             where {same_key}{returning}"
        ),
        8 => format!(
            "with w as (delete from {target} where {own} and {tail} = 1 returning *) \
             select w.*, o.a, o.t from w left join {other} o on o.{equal} = w.{equal}"
        ),
        9 => format!(
            "with v as (select {key} from {target} where {own} {locked}), \
             w as (update {target} set {column} = {literal} from v \
             where {} returning {target}.*) select * from w",
            same_key.replace("w.", "v.")
        ),
        10 => format!(
            "select {target}.a, o.b from {target} join {other} o on {of_both} \
             where {of_target} for {locking} of {target}"
        ),
        11 => format!(
            "insert into {target} ({key}, d, b, n) select {}, '2021-03-04', 'true', null \
             from {target}, {other} o where {of_both} on conflict do nothing",
            key.split(", ")
                .map(|column| format!("{target}.{column}"))
                .collect::<Vec<_>>()
                .join(", ")
        ),
        0 => format!("update {target} set {column} = {value} where {of_target}{returning}"),
        1 if extreme != "any" => format!(
            "update {target} set {column} = w.x from (select {equal}, {extreme}({number}) as x \
             from {other} o where {of_other} group by {equal}) w \
             where w.{equal} = {target}.{equal} and {of_target}{returning}"
        ),
        2 => format!(
            "update {target} set (d, b) = (select max(o.d), min({target}.b + o.a) from {other} o \
             where {of_both}) where {of_target}{returning}"
        ),
        3 => format!(
            "delete from {target} using {other} o where {of_both} and o.{equal} = {target}.{equal} \
             and {tail} = 1{returning}"
        ),
        4 => format!(
            "delete from {target} where {of_target} and {tail} = 1 and \
             exists (select from {other} o where {of_both}){returning}"
        ),
        _ => format!(
            "update {target} set {column} = {literal} from {other} o where {of_both}{returning}"
        ),
    }
}
