//! Analytical statements and queries of the system catalogs, through sessions.

#![cfg(feature = "analytics")]
#![allow(missing_docs)]

mod admission;
mod catalog;
#[path = "../session/fixture.rs"]
#[allow(dead_code, reason = "shared with the tests of sessions")]
mod fixture;
mod nulls;
mod queries;
mod unread;
