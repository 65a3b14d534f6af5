//! Thermocline in a process of your own: open a directory, run SQL.
//!
//! ```no_run
//! use thermocline::{Embedded, Options, Value};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let database = Embedded::open("data", &Options::default())?;
//! let mut connection = database.connect()?;
//! connection.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", &[])?;
//! connection.execute(
//!     "INSERT INTO t VALUES ($1, $2)",
//!     &[Value::Integer(1), Value::Text("warm".into())],
//! )?;
//! let rows = connection.execute("SELECT v FROM t WHERE id = $1", &[Value::Integer(1)])?;
//! assert_eq!(rows.get(0, "v"), Some(&Value::Text("warm".into())));
//! database.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `open.rs` | [`Embedded`]: a directory opened, locked, closed |
//! | `connection.rs` | [`Connection`]: statements, prepared statements, transactions |
//! | `rows.rs` | [`Rows`]: what a statement returned |
//!
//! Below SQL, [`Database`] is the engine itself: the same tables by keys and
//! tuples, asynchronous, without parsing or binding. The feature `server` (on
//! by default) adds the analytical path and the program; without it the
//! library has neither DataFusion nor a network in it.

mod connection;
mod open;
mod rows;

pub use connection::{Connection, Statement};
pub use open::{DISK_RESERVE_BYTES, Embedded, OpenError, Options, RECOVERY_TARGET};
pub use rows::{Column, Rows};
pub use thermocline_device::{FileDevice, IoEngine};
pub use thermocline_engine::{
    Call, Config, Database, Direction, Error, Identification, Merge, Procedure, Procedures, Reach,
    Row, RunOptions,
};
pub use thermocline_sql::SqlError;
pub use thermocline_values::types::DataType;
pub use thermocline_values::value::Value;

/// The program on the page about embedding is compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/embed.md")]
struct EmbedPage;
