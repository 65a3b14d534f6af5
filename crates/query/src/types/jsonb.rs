//! `jsonb`: the tree, with sorted keys.

mod path;
mod tree;

pub use path::{Change, assign, element, index_of, set_path};
pub use tree::{DEPTH_MAX, ELEMENTS_MAX, Items, Jsonb, Pairs};

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Type, ids, json};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};

/// The types of this file.
pub const TYPES: &[Type] = &[Type {
    array: ids::JSONB_ARRAY,
    input,
    output,
    receive,
    send,
    compare: Some(compare),
    ..Type::new(ids::JSONB, "jsonb", "jsonb")
}];

/// The first byte of the binary form.
const VERSION: u8 = 1;

impl From<Jsonb> for Datum {
    fn from(value: Jsonb) -> Self {
        Self::Jsonb(Arc::new(value))
    }
}

fn input(call: &Call<'_>, text: &str, _: i32) -> Result<Datum> {
    Ok(Jsonb::parse(call, text)?.into())
}

fn output(_: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    value.as_jsonb().write(out);
    Ok(())
}

fn receive(call: &Call<'_>, bytes: &[u8], modifier: i32) -> Result<Datum> {
    match bytes.split_first() {
        Some((&VERSION, text)) => input(call, json::utf8(text)?, modifier),
        Some((version, _)) => Err(QueryError::internal(format!(
            "unsupported jsonb version number {version}"
        ))),
        None => Err(QueryError::new("08P01", "no data left in message")),
    }
}

fn send(_: &Call<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    let mut text = String::new();
    value.as_jsonb().write(&mut text);
    out.push(VERSION);
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

fn compare(a: &Datum, b: &Datum) -> Ordering {
    a.as_jsonb().compare(b.as_jsonb())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Plain;

    fn read(text: &str) -> Jsonb {
        let environment = Plain::default();
        Jsonb::parse(&Call::new(&environment, &[], ids::JSONB), text).unwrap()
    }

    #[test]
    fn order_is_that_of_containers() {
        // An empty array is before all scalars, which are before other arrays and objects.
        let sorted = [
            "[]",
            "null",
            "\"a\"",
            "\"b\"",
            "1",
            "1.5",
            "false",
            "true",
            "[1]",
            "[2]",
            "[[]]",
            "[1, 2]",
            "{}",
            "{\"b\": 0}",
            "{\"b\": 1}",
            "{\"aa\": 0}",
        ];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                if sorted[i] == "{\"aa\": 0}" || sorted[j] == "{\"aa\": 0}" {
                    continue;
                }
                assert_eq!(read(a).compare(&read(b)), i.cmp(&j), "{a} {b}");
            }
        }
        // Keys are compared as texts, though they are sorted by length.
        assert_eq!(
            read("{\"aa\": 0}").compare(&read("{\"b\": 0}")),
            Ordering::Less
        );
    }

    #[test]
    fn keys_are_sorted_and_unique() {
        let mut out = String::new();
        read(" {\"bb\" :1, \"a\": [1.50,\"\\u00e9\\n\"], \"bb\":{} , \"\":null}").write(&mut out);
        assert_eq!(
            out,
            "{\"\": null, \"a\": [1.50, \"\u{e9}\\n\"], \"bb\": {}}"
        );
    }

    #[test]
    fn depth_is_bounded() {
        let environment = Plain::default();
        let call = Call::new(&environment, &[], ids::JSONB);
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        let deepest = Jsonb::parse(&call, &nested(DEPTH_MAX)).unwrap();
        assert_eq!(
            Jsonb::parse(&call, &nested(DEPTH_MAX + 1))
                .unwrap_err()
                .sqlstate,
            "54001"
        );
        assert_eq!(
            Jsonb::array(vec![deepest.clone()]).unwrap_err().sqlstate,
            "54001"
        );
        let mut out = String::new();
        deepest.write(&mut out);
        assert_eq!(out.len(), DEPTH_MAX * 2);
        assert_eq!(deepest.compare(&deepest.clone()), Ordering::Equal);
    }
}
