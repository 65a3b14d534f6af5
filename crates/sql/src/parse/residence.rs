//! LOAD and UNLOAD of columns (002 §2.1), which PostgreSQL does not have. Its own grammar reads `LOAD 'file'`.

use super::own::Reader;
use super::scan::Token;
use super::statement::Statement;
use crate::error::Result;
use thermocline_engine::catalog::Residence;

/// The option of a column that says the same (`ALTER COLUMN … SET (residence = warm)`).
pub(crate) const RESIDENCE: &str = "residence";

/// `LOAD table {ALL | (column, …)} [WARM]`, `UNLOAD table {ALL | (column, …)}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResidenceCommand {
    /// The table, perhaps with its schema.
    pub table: Vec<String>,
    /// The columns; None: all.
    pub columns: Option<Vec<String>>,
    /// Where they are to be kept.
    pub to: Residence,
}

impl ResidenceCommand {
    /// What a client is told of it.
    #[must_use]
    pub fn tag(&self) -> &'static str {
        match self.to {
            Residence::ByUse => "UNLOAD",
            Residence::Hot | Residence::Warm => "LOAD",
        }
    }
}

/// Whether a text that begins so is one of these commands.
pub(super) fn is_residence(first: Token<'_>, second: Option<Token<'_>>) -> bool {
    first.is_word("unload")
        || first.is_word("load") && matches!(second, Some(Token::Word(_) | Token::Quoted(_)))
}

/// Reads the command.
pub(super) fn residence(text: &str) -> Result<Statement> {
    let mut reader = Reader::new(text);
    let is_load = reader.is_at_word("load");
    reader.advance();
    let table = reader.qualified()?;
    let mut columns = None;
    if reader.is_at_word("all") {
        reader.advance();
    } else {
        reader.symbol("(")?;
        let mut names = vec![reader.name()?];
        while reader.is_at(",") {
            reader.advance();
            names.push(reader.name()?);
        }
        reader.symbol(")")?;
        columns = Some(names);
    }
    let mut to = Residence::ByUse;
    if is_load {
        to = Residence::Hot;
        if reader.is_at_word("warm") {
            reader.advance();
            to = Residence::Warm;
        }
    }
    reader.end()?;
    Ok(Statement::Residence(ResidenceCommand {
        table,
        columns,
        to,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(text: &str) -> Option<ResidenceCommand> {
        match residence(text) {
            Ok(Statement::Residence(command)) => Some(command),
            _ => None,
        }
    }

    #[test]
    fn columns_are_loaded_and_unloaded() {
        let columns = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
        let of = |table: &[&str], columns, to| {
            let table = table.iter().map(|name| (*name).to_owned()).collect();
            Some(ResidenceCommand { table, columns, to })
        };
        assert_eq!(command("LOAD t ALL"), of(&["t"], None, Residence::Hot));
        let expected = of(&["s", "T"], columns(&["a", "b c"]), Residence::Warm);
        assert_eq!(command("load S.\"T\" (A, \"b c\") Warm;"), expected);
        let expected = of(&["t"], columns(&["a"]), Residence::ByUse);
        assert_eq!(command("unload t (a)"), expected);
        for wrong in [
            "LOAD t",
            "LOAD t ()",
            "LOAD t (a",
            "LOAD t (a) HOT",
            "UNLOAD t ALL WARM",
            "UNLOAD",
            "LOAD t ALL t",
        ] {
            assert_eq!(command(wrong), None, "{wrong}");
        }
    }
}
