//! SQL for Thermocline: one [`Session`] a client. Short statements are bound
//! once and executed on tuples in place; everything else that is a pure SELECT
//! goes to DataFusion at one snapshot (feature `analytics`). PostgreSQL's
//! behaviour, words and codes are the measure.

pub mod copy;
pub mod error;
pub mod messages;
pub mod output;

pub use error::{Result, SqlError};
pub use output::{ColumnType, OtherType, OutputColumn, RowWriter};
