//! Bodies of SQL that are no single query: statements that run one after the other, as in a body
//! of PL/pgSQL. What the last one gives is what the function gives.

use thermocline_query::analyze::{self, Conflict};
use thermocline_query::types::ids;

use super::read::{Reader, Signature};
use super::tree::{Block, Body, Declared, Kind, Statement as Line};
use crate::error::Result;
use crate::parse;

/// Reads such a body of a function that gives `result`.
///
/// # Errors
/// As the parser's; 42P13 where the last statement gives nothing, and something is declared.
pub(crate) fn read_statements(text: &str, signature: &Signature, result: u32) -> Result<Body> {
    let mut reader = Reader::new("", signature)?;
    let parts = parse::parse_parts(text)?;
    let mut body = Vec::with_capacity(parts.len());
    let gives = result != ids::VOID;
    let last_gives = match parts.last() {
        Some(last) => analyze::gives_rows(last.text)?,
        None => false,
    };
    if gives && !last_gives {
        let detail = "Function's final statement must be SELECT or INSERT/UPDATE/DELETE RETURNING.";
        return Err(analyze::mismatch(result).with_detail(detail).into());
    }
    let last = parts.len().saturating_sub(1);
    for (at, part) in parts.iter().enumerate() {
        let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
        let expression = reader.expression("", part.text.trim(), number)?;
        let kind = match gives && at == last {
            true => Kind::Give(expression),
            false => Kind::Run(expression),
        };
        body.push(Line { line: number, kind });
    }
    let found = reader.slot("found", Declared::Known(ids::BOOL))?;
    let block = Block {
        label: None,
        declares: Vec::new(),
        body,
        handlers: Vec::new(),
        told: None,
    };
    let block = Line {
        line: 0,
        kind: Kind::Block(block),
    };
    Ok(reader.into_body(block, found, Conflict::Column))
}
