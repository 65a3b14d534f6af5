//! In which format a client wants the columns of a result.

use std::sync::Arc;

use crate::error::{Result, SqlError};

/// Which columns a client wants in binary.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Formats {
    /// All in text.
    #[default]
    Text,
    /// All in binary.
    Binary,
    /// One choice a column.
    Each(Arc<[bool]>),
}

impl Formats {
    /// The formats of a Bind message: none (text), one for all, or one each.
    ///
    /// # Errors
    /// 08P01 when the number of codes does not fit, 22023 for an unknown code.
    pub fn from_codes(codes: &[i16], columns: usize) -> Result<Self> {
        if let Some(code) = codes.iter().find(|code| !matches!(code, 0 | 1)) {
            return Err(SqlError::new(
                "22023",
                format!("unsupported format code: {code}"),
            ));
        }
        match codes {
            [] | [0] => Ok(Self::Text),
            [_] => Ok(Self::Binary),
            _ if codes.len() == columns => {
                Ok(Self::Each(codes.iter().map(|code| *code == 1).collect()))
            }
            _ => Err(SqlError::protocol(format!(
                "bind message has {} result formats but query has {columns} columns",
                codes.len()
            ))),
        }
    }

    /// Whether column `index` (from 0) is in binary.
    #[must_use]
    pub fn is_binary(&self, index: usize) -> bool {
        match self {
            Self::Text => false,
            Self::Binary => true,
            Self::Each(binary) => binary.get(index).copied().unwrap_or(false),
        }
    }
}
