//! Random changes of a table by what a query over it and another finds. Where several rows of the
//! other match, they give the same value, since any of them may be taken.

use super::expressions::{COLUMNS, Random, Type};
use super::queries::{Names, Queries};

/// An UPDATE or DELETE of `target`; the other table is `other`.
pub fn change(random: &mut Random, target: &'static str, other: &'static str) -> String {
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
    match random.below(6) {
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
