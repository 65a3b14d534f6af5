//! The value of `SET TIME ZONE`.

use super::tokens::Tokens;
use super::utility::value;
use crate::error::Result;

/// A time zone: as any value, or as a span of hours and minutes.
pub(super) fn zone(tokens: &mut Tokens<'_>) -> Result<String> {
    if !tokens.keyword("interval") {
        return value(tokens);
    }
    let text = tokens.try_string().ok_or_else(|| tokens.error())?;
    let mut unit = "second";
    if tokens.keyword("hour") {
        unit = "hour";
        if tokens.keyword("to") {
            tokens.expect_keyword("minute")?;
            unit = "minute";
        }
    }
    // A bare number is of the last unit.
    Ok(match text.trim().parse::<f64>() {
        Ok(number) => format!("INTERVAL '{number} {unit}'"),
        Err(_) => format!("INTERVAL '{text}'"),
    })
}
