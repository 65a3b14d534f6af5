//! SQL for Thermocline: one [`Session`] a client. Short statements are bound
//! once and executed on tuples in place; everything else that is a pure SELECT
//! goes to DataFusion at one snapshot (feature `analytics`). PostgreSQL's
//! behaviour, words and codes are the measure.
//!
//! | module | what lives there |
//! |---|---|
//! | `parse` | from text to statements |
//! | `bind`, `expr`, `plan`, `exec` | what plans hold, and how the short path runs them |
//! | `analysis` | statements analysed against the catalog |
//! | `analytics`, `pg_catalog`, `system_views` | the bridge to DataFusion, the system catalogs |
//! | `ddl`, `copy` | changes of the catalog; rows in bulk |
//! | `plpgsql` | bodies of PL/pgSQL as trees |
//! | `short` | from typed trees to the short path's plans |
//! | `session`, `settings` | what one client does; SET and SHOW |
//! | `styles` | how dates, times and numbers look, by the session's settings |
//! | `temporary` | the schemas of what is a session's own |
//! | `stack` | room for statements that are nested deeply |
//! | `statement_statistics` | how often statements run, for how long |
//! | `privilege`, `password` | what a role may do; how passwords are kept |
//! | `output`, `messages`, `error` | rows, messages and errors as PostgreSQL's clients read them |

#![cfg_attr(
    not(feature = "analytics"),
    expect(
        dead_code,
        reason = "only analytical queries read the system's relations"
    )
)]

mod analysis;
#[cfg(feature = "analytics")]
pub mod analytics;
pub mod bind;
pub mod copy;
mod ddl;
pub mod error;
pub mod exec;
pub mod expr;
pub mod messages;
pub mod one_row;
pub mod output;
pub mod parse;
pub mod password;
pub mod pg_catalog;
pub mod plan;
mod plpgsql;
pub mod privilege;
pub mod session;
pub mod settings;
mod short;
mod stack;
mod statement_statistics;
pub mod styles;
mod system_views;
mod temporary;
pub(crate) mod typed;

pub use error::{Result, SqlError};
pub use output::{ColumnType, OtherType, OutputColumn, RowWriter};
pub use session::{
    Client, ClientLink, Engine, STATEMENT_LOG, Session, SystemSetting, SystemSettings,
};
pub use short::bind_text;
