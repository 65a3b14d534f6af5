//! PL/pgSQL: from the text of a body to a tree. The body is read by hand over the scanner that
//! cuts statements: the parser of libpg_query redirects the process's own stderr while it runs,
//! which no server of several threads can let it do. Expressions and statements of SQL in a body
//! are read by PostgreSQL's grammar.
//!
//! | file | what it does |
//! |---|---|
//! | `source` | the tokens of a body |
//! | `declare` | DECLARE sections, and which names are known |
//! | `read` | blocks and statements |
//! | `loops` | loops, EXIT and CONTINUE |
//! | `sql` | statements of SQL, and where their rows go |
//! | `raise` | RAISE, ASSERT, GET DIAGNOSTICS, the conditions of handlers |
//! | `conditions` | the names of errors |
//! | `trigger` | what the function of a trigger knows |
//! | `statements` | bodies of SQL of several statements |
//! | `types` | the types of variables |
//! | `tree` | what is read |
//!
//! What is not done is refused here, so by CREATE and by DO.

mod conditions;
mod declare;
mod loops;
mod raise;
mod read;
mod source;
mod sql;
mod statements;
pub(crate) mod tree;
mod trigger;
mod types;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use thermocline_engine::Catalog;
use thermocline_query::analyze::SqlFunction;

use crate::error::Result;
pub(crate) use declare::lookup;
pub(crate) use raise::{condition_codes, known_code};
pub(crate) use read::{Signature, read};
pub(crate) use trigger::TEXTS;
pub(crate) use types::{Type, types_of};

/// Reads the body of a function that is to be made, and looks its types up.
///
/// # Errors
/// As [`read`] and [`types_of`].
pub(crate) fn check(
    function: &SqlFunction,
    catalog: &Arc<Catalog>,
    search_path: &[String],
) -> Result<()> {
    let body = read(&function.body, &Signature::of(function))?;
    types_of(&body, catalog, search_path).map(drop)
}
