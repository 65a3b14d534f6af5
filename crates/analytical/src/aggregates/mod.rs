//! Aggregates of ours as DataFusion computes them: states of many groups side by side, in
//! several streams, and on disk where memory is short. They give what `query`'s states give.
//!
//! | module | what lives there |
//! |---|---|
//! | `kind` | what an aggregate is: a state of one group, and what is done with it |
//! | `grouped` | the states of all groups, as DataFusion feeds them |
//! | `function` | an aggregate as a function of DataFusion |
//! | `choose` | which aggregate is computed by what |
//! | `integers`, `numerics`, `floats`, `dispersions`, `extremes`, `plain` | those that are typed |
//! | `boxed` | any other whose states become one |

mod boxed;
mod choose;
mod dispersions;
mod extremes;
mod floats;
mod function;
mod grouped;
mod integers;
mod kind;
mod numerics;
mod plain;

pub use choose::{Own, first, own};
pub use function::Role;
