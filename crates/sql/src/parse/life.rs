//! How long what is made lives: TEMPORARY behind CREATE, ON COMMIT behind a table's columns.

use super::statement::OnCommit;
use super::tokens::Tokens;
use crate::error::Result;

/// Reads `[LOCAL | GLOBAL] TEMP[ORARY]`; both are the same.
pub(super) fn temporary(tokens: &mut Tokens<'_>) -> bool {
    tokens.one_of(&["temp", "temporary"]).is_some()
        || ["local", "global"].iter().any(|of| {
            ["temp", "temporary"]
                .iter()
                .any(|temporary| tokens.keywords(&[of, temporary]))
        })
}

/// Reads ON COMMIT, if it is next.
pub(super) fn on_commit(tokens: &mut Tokens<'_>) -> Result<Option<OnCommit>> {
    if !tokens.keywords(&["on", "commit"]) {
        return Ok(None);
    }
    if tokens.keywords(&["preserve", "rows"]) {
        Ok(Some(OnCommit::PreserveRows))
    } else if tokens.keywords(&["delete", "rows"]) {
        Ok(Some(OnCommit::DeleteRows))
    } else if tokens.keyword("drop") {
        Ok(Some(OnCommit::Drop))
    } else {
        Err(tokens.error())
    }
}
