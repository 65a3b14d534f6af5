//! RAISE, ASSERT, GET DIAGNOSTICS, and the handlers of a block.

use super::conditions;
use super::read::Reader;
use super::source::string_value;
use super::tree::{Condition, Diagnostic, Handler, Kind, Level, Raise, RaiseOption};
use crate::error::{Result, SqlError};
use crate::parse::scan::Token;

/// The codes that a name of a condition means.
pub(crate) fn condition_codes(name: &str) -> impl Iterator<Item = &'static str> {
    conditions::all()
        .filter(move |(known, _)| *known == name)
        .map(|(_, code)| code)
}

/// A code of PostgreSQL's.
pub(crate) fn known_code(code: &str) -> Option<&'static str> {
    let mut all = conditions::all().map(|(_, known)| known);
    all.find(|known| *known == code)
}

#[cold]
fn unknown_condition(name: &str) -> SqlError {
    let message = format!("unrecognized exception condition \"{name}\"");
    SqlError::new("42704", message)
}

impl Reader<'_> {
    /// The handlers behind EXCEPTION.
    pub(super) fn exception_handlers(&mut self) -> Result<Vec<Handler>> {
        let mut handlers = Vec::new();
        while self.source.take_word("when") {
            let mut conditions = Vec::new();
            loop {
                self.condition(&mut conditions)?;
                if !self.source.take_word("or") {
                    break;
                }
            }
            self.source.need_word("then")?;
            let body = self.statements(&["when", "end"])?;
            handlers.push(Handler { conditions, body });
        }
        match handlers.is_empty() {
            true => Err(self.source.unexpected()),
            false => Ok(handlers),
        }
    }

    fn condition(&mut self, conditions: &mut Vec<Condition>) -> Result<()> {
        let name = self.source.name()?;
        match name.as_str() {
            "others" => conditions.push(Condition::Others),
            "sqlstate" => conditions.push(Condition::Code(self.sqlstate()?)),
            name => {
                let before = conditions.len();
                conditions
                    .extend(condition_codes(name).map(|code| Condition::Code(code.to_owned())));
                if conditions.len() == before {
                    return Err(unknown_condition(name));
                }
            }
        }
        Ok(())
    }

    /// The code behind SQLSTATE.
    fn sqlstate(&mut self) -> Result<String> {
        let code = self.string()?;
        let is_code = code.len() == 5
            && code
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
        match is_code {
            true => Ok(code),
            false => Err(SqlError::syntax("invalid SQLSTATE code")),
        }
    }

    fn string(&mut self) -> Result<String> {
        let value = self
            .source
            .peek()
            .and_then(|placed| string_value(placed.token));
        match value {
            Some(value) => {
                self.source.next();
                Ok(value)
            }
            None => Err(self.source.unexpected()),
        }
    }

    pub(super) fn raise(&mut self) -> Result<Kind> {
        self.source.next();
        let mut raise = Raise {
            level: Level::Exception,
            condition: None,
            format: None,
            arguments: Vec::new(),
            options: Vec::new(),
        };
        let mut has_level = true;
        raise.level = match () {
            () if self.source.take_word("debug") => Level::Debug,
            () if self.source.take_word("log") => Level::Log,
            () if self.source.take_word("info") => Level::Info,
            () if self.source.take_word("notice") => Level::Notice,
            () if self.source.take_word("warning") => Level::Warning,
            () if self.source.take_word("exception") => Level::Exception,
            () => {
                has_level = false;
                Level::Exception
            }
        };
        if self.source.take_symbol(";") {
            if has_level {
                return Err(SqlError::syntax("syntax error at or near \";\""));
            }
            if self.handlers == 0 {
                return Err(SqlError::new(
                    "0Z002",
                    "RAISE without parameters cannot be used outside an exception handler",
                ));
            }
            return Ok(Kind::Raise(raise));
        }
        match self.source.ahead(0) {
            Some(Token::Constant(_)) => self.raised_format(&mut raise)?,
            _ if self.source.is_word("using") => {}
            _ if self.source.take_word("sqlstate") => {
                let code = self.sqlstate()?;
                raise.condition = Some((code.clone(), code));
            }
            _ => {
                let name = self.source.name()?;
                let code = condition_codes(&name).next();
                let code = code.ok_or_else(|| unknown_condition(&name))?;
                raise.condition = Some((code.to_owned(), name));
            }
        }
        if self.source.take_word("using") {
            self.raise_options(&mut raise)?;
        }
        self.source.need_symbol(";")?;
        Ok(Kind::Raise(raise))
    }

    fn raised_format(&mut self, raise: &mut Raise) -> Result<()> {
        let format = self.string()?;
        while self.source.take_symbol(",") {
            raise
                .arguments
                .push(self.value_until(&[",", ";", "using"])?);
        }
        let wanted = placeholders(&format);
        let message = match wanted.cmp(&raise.arguments.len()) {
            std::cmp::Ordering::Greater => "too few parameters specified for RAISE",
            std::cmp::Ordering::Less => "too many parameters specified for RAISE",
            std::cmp::Ordering::Equal => {
                raise.format = Some(format);
                return Ok(());
            }
        };
        Err(SqlError::syntax(message))
    }

    fn raise_options(&mut self, raise: &mut Raise) -> Result<()> {
        loop {
            let name = self.source.name()?;
            let option = match name.as_str() {
                "errcode" => RaiseOption::Errcode,
                "message" => RaiseOption::Message,
                "detail" => RaiseOption::Detail,
                "hint" => RaiseOption::Hint,
                "column" => RaiseOption::Column,
                "constraint" => RaiseOption::Constraint,
                "datatype" => RaiseOption::Datatype,
                "table" => RaiseOption::Table,
                "schema" => RaiseOption::Schema,
                _ => return Err(SqlError::syntax("unrecognized RAISE statement option")),
            };
            if !self.source.take_symbol("=") {
                self.source.need_symbol(":=")?;
            }
            let value = self.value_until(&[",", ";"])?;
            raise.options.push((option, value));
            if !self.source.take_symbol(",") {
                return Ok(());
            }
        }
    }

    pub(super) fn assert(&mut self) -> Result<Kind> {
        self.source.next();
        let condition = self.value_until(&[",", ";"])?;
        let message = match self.source.take_symbol(",") {
            true => Some(self.value_until(&[";"])?),
            false => None,
        };
        self.source.need_symbol(";")?;
        Ok(Kind::Assert(condition, message))
    }

    pub(super) fn diagnostics(&mut self) -> Result<Kind> {
        self.source.next();
        let stacked = match () {
            () if self.source.take_word("stacked") => true,
            () => {
                self.source.take_word("current");
                false
            }
        };
        self.source.need_word("diagnostics")?;
        if stacked && self.handlers == 0 {
            return Err(SqlError::new(
                "0Z002",
                "GET STACKED DIAGNOSTICS cannot be used outside an exception handler",
            ));
        }
        let mut items = Vec::new();
        loop {
            let target = self.scalar_target()?;
            if !self.source.take_symbol("=") {
                self.source.need_symbol(":=")?;
            }
            let name = self.source.name()?;
            items.push((target, diagnostic(&name, stacked)?));
            if !self.source.take_symbol(",") {
                break;
            }
        }
        self.source.need_symbol(";")?;
        Ok(Kind::Diagnostics(stacked, items))
    }
}

fn diagnostic(name: &str, stacked: bool) -> Result<Diagnostic> {
    let item = match name {
        "row_count" => Diagnostic::RowCount,
        "returned_sqlstate" => Diagnostic::Sqlstate,
        "message_text" => Diagnostic::Message,
        "pg_exception_detail" => Diagnostic::Detail,
        "pg_exception_hint" => Diagnostic::Hint,
        "pg_exception_context" => Diagnostic::Context,
        "column_name" => Diagnostic::Column,
        "constraint_name" => Diagnostic::Constraint,
        "pg_datatype_name" => Diagnostic::Datatype,
        "table_name" => Diagnostic::Table,
        "schema_name" => Diagnostic::Schema,
        "pg_context" => {
            return Err(SqlError::unsupported(
                "PG_CONTEXT of GET DIAGNOSTICS is not supported",
                "Use PG_EXCEPTION_CONTEXT in a handler.",
            ));
        }
        _ => return Err(SqlError::syntax("unrecognized GET DIAGNOSTICS item")),
    };
    if (item == Diagnostic::RowCount) == stacked {
        let kind = if stacked { "STACKED" } else { "CURRENT" };
        let shown = name.to_uppercase();
        return Err(SqlError::syntax(format!(
            "diagnostics item {shown} is not allowed in GET {kind} DIAGNOSTICS"
        )));
    }
    Ok(item)
}

/// How many arguments a format takes: `%%` is a percent sign.
fn placeholders(format: &str) -> usize {
    let mut characters = format.chars().peekable();
    let mut count = 0;
    while let Some(character) = characters.next() {
        if character == '%' && characters.next_if_eq(&'%').is_none() {
            count += 1;
        }
    }
    count
}
