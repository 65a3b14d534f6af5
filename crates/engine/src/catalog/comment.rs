//! Comments: the texts that COMMENT ON puts beside objects. They are part of the catalog, and go
//! with their objects.

use std::sync::Arc;

use imbl::OrdMap;
use serde::{Deserialize, Serialize};

/// The longest comment, in bytes: catalogs are in memory as a whole.
pub const COMMENT_BYTES_MAX: usize = 64 << 10;

/// What a comment is on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum CommentOn {
    /// A table, index, sequence or view (column 0), or a column of one, counted from 1.
    Relation {
        /// The relation's object id.
        oid: u32,
        /// The column's number.
        column: u32,
    },
    /// A constraint of a table.
    Constraint {
        /// The table's object id.
        table: u32,
        /// The constraint's name.
        name: String,
    },
    /// A schema, by its object id.
    Schema(u32),
    /// A role, by its object id.
    Role(u32),
    /// The database.
    Database,
    /// A type, by its number.
    Type(u32),
    /// A function or a procedure, by its object id.
    Function(u32),
    /// A trigger of a table.
    Trigger {
        /// The table's object id.
        table: u32,
        /// The trigger's name.
        name: String,
    },
}

/// Comments by what they are on.
pub type Comments = OrdMap<CommentOn, String>;

/// About what they take in memory, in bytes.
pub(crate) fn memory_bytes(comments: &Comments) -> u64 {
    let bytes = |text: &String| text.len() + 2 * size_of::<CommentOn>();
    comments.values().map(bytes).sum::<usize>() as u64
}

/// `theirs` with what `own` has changed since `base`.
pub(crate) fn merged(own: &Comments, base: &Comments, theirs: &Arc<Comments>) -> Arc<Comments> {
    let mut merged = Arc::clone(theirs);
    for (on, text) in own {
        if base.get(on) != Some(text) {
            Arc::make_mut(&mut merged).insert(on.clone(), text.clone());
        }
    }
    for on in base.keys().filter(|on| !own.contains_key(*on)) {
        Arc::make_mut(&mut merged).remove(on);
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_have_changed_is_put_together() {
        let of = |texts: &[(u32, &str)]| -> Comments {
            let on = |(oid, text): &(u32, &str)| (CommentOn::Schema(*oid), (*text).to_owned());
            texts.iter().map(on).collect()
        };
        let base = of(&[(1, "a"), (2, "b"), (3, "c")]);
        let own = of(&[(1, "x"), (3, "c"), (4, "d")]);
        let theirs = Arc::new(of(&[(1, "a"), (2, "y"), (3, "z")]));
        let expected = of(&[(1, "x"), (3, "z"), (4, "d")]);
        assert_eq!(*merged(&own, &base, &theirs), expected);
        assert!(Arc::ptr_eq(&merged(&base, &base, &theirs), &theirs));
    }
}
