//! DECLARE, FETCH, MOVE.

use pg_raw_parse::nodes::{DeclareCursorStmt, FetchDirection, FetchStmt};

use super::query;
use super::statement::{Declare, Direction, Fetch};
use crate::error::{Result, SqlError};

/// PostgreSQL's CURSOR_OPT_BINARY and so on.
const BINARY: i32 = 1;
const SCROLL: i32 = 2;
const NO_SCROLL: i32 = 4;
const HOLD: i32 = 32;
/// PostgreSQL's FETCH_ALL.
const ALL: i64 = i64::MAX;

pub(super) fn declare(statement: &DeclareCursorStmt) -> Result<Declare> {
    let query = query::within(statement.query(), "DECLARE CURSOR")?;
    if !query.is_query() {
        return Err(SqlError::syntax("DECLARE CURSOR takes SELECT or VALUES"));
    }
    let has = |option: i32| statement.options & option != 0;
    Ok(Declare {
        name: statement.portalname().unwrap_or_default().to_owned(),
        hold: has(HOLD),
        binary: has(BINARY),
        scroll: match (has(SCROLL), has(NO_SCROLL)) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        },
        query,
    })
}

pub(super) fn fetch(statement: &FetchStmt) -> Fetch {
    let count = statement.how_many;
    let rows = |count: i64| (count != ALL).then_some(count.unsigned_abs());
    let direction = match statement.direction {
        FetchDirection::FETCH_ABSOLUTE => Direction::Absolute(count),
        FetchDirection::FETCH_RELATIVE => Direction::Relative(count),
        FetchDirection::FETCH_BACKWARD if count >= 0 => Direction::Backward(rows(count)),
        FetchDirection::FETCH_BACKWARD => Direction::Forward(rows(count)),
        _ if count >= 0 => Direction::Forward(rows(count)),
        _ => Direction::Backward(rows(count)),
    };
    Fetch {
        cursor: statement.portalname().unwrap_or_default().to_owned(),
        direction,
        skip: statement.ismove,
    }
}
