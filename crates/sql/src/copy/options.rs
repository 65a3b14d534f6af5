//! The options of a COPY, with PostgreSQL's defaults, checks and words.

use crate::error::{Result, SqlError};

/// How the rows are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CopyFormat {
    /// Tabs and backslash escapes.
    #[default]
    Text,
    /// Commas and quotes.
    Csv,
    /// Lengths and PostgreSQL's binary values.
    Binary,
}

/// Columns chosen for an option such as `FORCE_QUOTE`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum ColumnChoice {
    /// None of them.
    #[default]
    None,
    /// `*`
    All,
    /// Those at these places in the COPY's column list (from 0).
    Some(Vec<usize>),
}

impl ColumnChoice {
    /// Whether the column at `index` is chosen.
    #[must_use]
    pub fn contains(&self, index: usize) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Some(columns) => columns.contains(&index),
        }
    }
}

/// The options of a COPY.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopyOptions {
    /// How the rows are written.
    pub format: CopyFormat,
    /// Between two values.
    pub delimiter: u8,
    /// How NULL is written.
    pub null: String,
    /// Whether a header line comes first.
    pub header: bool,
    /// Whether the header's names must be the columns' (`HEADER MATCH`).
    pub header_match: bool,
    /// csv: around values.
    pub quote: u8,
    /// csv: before a quote in a value.
    pub escape: u8,
    /// csv out: columns always quoted.
    pub force_quote: ColumnChoice,
    /// csv in: columns never NULL.
    pub force_not_null: ColumnChoice,
    /// csv in: columns NULL even if the NULL string was quoted.
    pub force_null: ColumnChoice,
}

impl CopyOptions {
    /// The options of a format that was given nothing else.
    #[must_use]
    pub fn of_format(format: CopyFormat) -> Self {
        let csv = format == CopyFormat::Csv;
        Self {
            format,
            delimiter: if csv { b',' } else { b'\t' },
            null: if csv { "" } else { "\\N" }.to_owned(),
            header: false,
            header_match: false,
            quote: b'"',
            escape: b'"',
            force_quote: ColumnChoice::None,
            force_not_null: ColumnChoice::None,
            force_null: ColumnChoice::None,
        }
    }

    /// Checks the options against each other.
    ///
    /// # Errors
    /// 22023, 42601 or 0A000 as PostgreSQL gives them.
    pub fn check(&self) -> Result<()> {
        let invalid = |message: &str| Err(SqlError::new("22023", message));
        if self.null.contains(['\r', '\n']) {
            return invalid("COPY null representation cannot use newline or carriage return");
        }
        if matches!(self.delimiter, b'\r' | b'\n') {
            return invalid("COPY delimiter cannot be newline or carriage return");
        }
        let delimiter = char::from(self.delimiter);
        if self.format == CopyFormat::Text
            && "\\.abcdefghijklmnopqrstuvwxyz0123456789".contains(delimiter)
        {
            return Err(SqlError::new(
                "22023",
                format!("COPY delimiter cannot be \"{delimiter}\""),
            ));
        }
        if self.format == CopyFormat::Csv {
            if self.delimiter == self.quote {
                return invalid("COPY delimiter and quote must be different");
            }
            if self.null.as_bytes().contains(&self.quote) {
                return invalid("CSV quote character must not appear in the NULL specification");
            }
        }
        if self.format != CopyFormat::Binary && self.null.as_bytes().contains(&self.delimiter) {
            return invalid("COPY delimiter must not appear in the NULL specification");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_contradict_are_refused() {
        let mut options = CopyOptions::of_format(CopyFormat::Csv);
        assert_eq!(options.check(), Ok(()));
        options.delimiter = b'"';
        assert_eq!(
            options.check().unwrap_err().message,
            "COPY delimiter and quote must be different"
        );
        let mut options = CopyOptions::of_format(CopyFormat::Text);
        options.delimiter = b'a';
        assert_eq!(
            options.check().unwrap_err().message,
            "COPY delimiter cannot be \"a\""
        );
        options.delimiter = b'\\';
        assert!(options.check().is_err());
    }
}
