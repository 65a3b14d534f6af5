//! Changes of tables with triggers. Their rows leave the short path: they are found first and then
//! stored, changed or deleted one by one (`exec::one_by_one`), in one transaction.
//!
//! Before a row is changed, its BEFORE triggers are called in the order of their names. What they
//! make of it is stored, and what is generated and checked is so of that. A change that an AFTER
//! trigger is for is noted, and charged. It is called when the statement ends, behind what foreign
//! keys ask for. A trigger whose WHEN is not true is passed over.
//!
//! | file | what it does |
//! |---|---|
//! | `after` | what is noted until the statement ends |
//! | `call` | the calls before a row is changed |
//! | `change` | INSERT, UPDATE and DELETE, row by row |
//! | `statement` | triggers for each statement |

mod after;
mod call;
mod change;
mod statement;

pub(super) use after::{Mark, Queue};
pub(super) use statement::Does;
