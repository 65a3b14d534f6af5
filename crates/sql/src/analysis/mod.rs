//! Analysis of statements against the catalog, by `thermocline_query`. Nothing is run here.
//!
//! | file | what lives there |
//! |---|---|
//! | `bind` | queries, changes of rows and views, analysed |
//! | `indexed` | the columns of indexes in place of what they compute |
//! | `relations` | what names mean, and the rights that it takes to read |
//! | `facts` | what is known of the session |

mod bind;
mod facts;
mod indexed;
mod relations;

pub(crate) use bind::{
    Around, BoundStatement, NeededByView, answered, bind_statement, bind_view, columns_of_view,
    create_function, may_read_all, needed_by_view, of_functions,
};
pub use facts::{Activity, CursorFacts, Own, SessionFacts, SettingChange, StatementFacts};
pub(crate) use facts::{Calls, Numbers};
pub(crate) use relations::{FRESH, called, composite, functions_named};
