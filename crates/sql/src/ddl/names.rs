//! The names that PostgreSQL gives to constraints, indexes and sequences:
//! `t_pkey`, `t_a_b_idx`, `t_a_seq`, shortened to 63 bytes and numbered when
//! they are taken.

use thermocline_engine::Catalog;

/// The longest name, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 63;

/// A name cut to what a name may have.
pub(crate) fn truncated(name: &str) -> String {
    cut(name, NAME_BYTES_MAX).to_owned()
}

fn cut(name: &str, bytes: usize) -> &str {
    let mut end = bytes.min(name.len());
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

/// PostgreSQL's `makeObjectName`: both names are shortened, the longer first.
fn made(first: &str, second: &str, label: &str) -> String {
    let separators = usize::from(!second.is_empty()) + usize::from(!label.is_empty());
    let room = NAME_BYTES_MAX - label.len() - separators;
    let (mut left, mut right) = (first.len(), second.len());
    while left + right > room {
        if left > right {
            left -= 1;
        } else {
            right -= 1;
        }
    }
    let mut name = cut(first, left).to_owned();
    for part in [cut(second, right), label] {
        if !part.is_empty() {
            name.push('_');
            name.push_str(part);
        }
    }
    name
}

/// The first of `t_label`, `t_label1`, `t_label2`, … that is not taken.
pub(super) fn choose(
    first: &str,
    second: &str,
    label: &str,
    taken: impl Fn(&str) -> bool,
) -> String {
    let mut number = 0u32;
    loop {
        let numbered = match number {
            0 => label.to_owned(),
            number => format!("{label}{number}"),
        };
        let name = made(first, second, &numbered);
        if !taken(&name) {
            return name;
        }
        number += 1;
    }
}

/// Whether a relation of the schema or one that the statement makes has the
/// name.
pub(super) fn is_taken(catalog: &Catalog, schema: &str, made: &[String], name: &str) -> bool {
    catalog.relation_exists(schema, name) || made.iter().any(|made| made == name)
}

/// The columns' names joined, as they stand in an index's name.
pub(super) fn joined<'a>(columns: impl Iterator<Item = &'a str>) -> String {
    let mut joined = String::new();
    for column in columns {
        if !joined.is_empty() {
            joined.push('_');
        }
        joined.push_str(column);
        if joined.len() >= NAME_BYTES_MAX {
            break;
        }
    }
    joined
}

/// The names that an index's columns have: one that is there already gets a number.
pub(crate) fn of_index_columns<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for name in names {
        let mut number = 0u32;
        let mut own = truncated(name);
        while all.contains(&own) {
            number += 1;
            let number = number.to_string();
            own = format!("{}{number}", cut(name, NAME_BYTES_MAX - number.len()));
        }
        all.push(own);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_numbered_and_shortened() {
        let free = |_: &str| false;
        assert_eq!(choose("t", "", "pkey", free), "t_pkey");
        assert_eq!(choose("t", "a_b", "idx", free), "t_a_b_idx");
        assert_eq!(
            choose("t", "a", "key", |name| name == "t_a_key"),
            "t_a_key1"
        );
        let long = "x".repeat(80);
        let name = choose(&long, "column", "seq", free);
        assert_eq!(name.len(), NAME_BYTES_MAX);
        assert!(name.ends_with("_column_seq"));
        assert_eq!(truncated(&"é".repeat(40)).len(), 62);
        assert_eq!(joined(["a", "b"].into_iter()), "a_b");
        let of_index = of_index_columns(["a", "a", "b", "a"].into_iter());
        assert_eq!(of_index, ["a", "a1", "b", "a2"]);
    }
}
