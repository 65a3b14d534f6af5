//! What the tests stand on: PostgreSQL's tables as tables of ours.

pub mod compare;
pub mod oracle;
pub mod session;
pub mod statements;
