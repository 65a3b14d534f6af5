//! RAISE, ASSERT, diagnostics, and which handler takes an error.

use std::collections::HashSet;
use std::sync::LazyLock;

use parking_lot::Mutex;
use thermocline_query::datum::Datum;
use thermocline_query::types::ids;

use super::Machine;
use super::frame::Typed;
use crate::error::{Result, SqlError};
use crate::plpgsql::condition_codes;
use crate::plpgsql::tree::{
    Condition, Diagnostic, Expression, Handler, Level, Raise, RaiseOption, Target,
};

/// How many codes of RAISE the server knows beside PostgreSQL's.
const CODES_MAX: usize = 4096;
/// How many messages wait for the end of a statement.
const NOTICES_MAX: usize = 10_000;

/// A code that lives as long as the server.
fn kept_code(code: &str) -> Result<&'static str> {
    static CODES: LazyLock<Mutex<HashSet<&'static str>>> = LazyLock::new(Mutex::default);
    if let Some(known) = crate::plpgsql::known_code(code) {
        return Ok(known);
    }
    let mut codes = CODES.lock();
    if let Some(known) = codes.get(code) {
        return Ok(known);
    }
    if codes.len() >= CODES_MAX {
        let message = format!("RAISE has given more than {CODES_MAX} codes of its own");
        return Err(SqlError::new("54000", message));
    }
    let kept: &'static str = Box::leak(Box::from(code));
    codes.insert(kept);
    Ok(kept)
}

/// Whether a text may be a code.
fn is_code(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
    text.len() == 5 && text.bytes().all(is_part)
}

/// Whether a handler takes an error.
fn takes(handler: &Handler, error: &SqlError) -> bool {
    // A cancel and a time limit go on to hold.
    if error.sqlstate == "57014" {
        return false;
    }
    handler.conditions.iter().any(|condition| match condition {
        Condition::Others => error.sqlstate != "P0004",
        // A code that ends in three zeros is a whole class.
        Condition::Code(code) => match code.strip_suffix("000") {
            Some(class) => error.sqlstate.starts_with(class),
            None => error.sqlstate == code,
        },
    })
}

/// The handler that takes an error.
pub(super) fn handler_of<'h>(handlers: &'h [Handler], error: &SqlError) -> Option<&'h Handler> {
    handlers.iter().find(|handler| takes(handler, error))
}

impl Machine<'_> {
    pub(super) async fn raise(&mut self, raise: &Raise) -> Result<()> {
        let is_again =
            raise.format.is_none() && raise.condition.is_none() && raise.options.is_empty();
        if is_again {
            self.frame.raises_again = true;
            return Err(match self.frame.caught.last() {
                Some(error) => error.clone(),
                None => SqlError::new(
                    "0Z002",
                    "RAISE without parameters cannot be used outside an exception handler",
                ),
            });
        }
        let (mut code, mut message) = (None, None);
        if let Some((of_name, name)) = &raise.condition {
            code = Some(of_name.clone());
            message = Some(name.clone());
        }
        if let Some(format) = &raise.format {
            message = Some(self.formatted(format, &raise.arguments).await?);
        }
        let mut error = SqlError::new("P0001", "");
        let mut told: Vec<RaiseOption> = Vec::new();
        for (option, value) in &raise.options {
            let value = self
                .text(value)
                .await?
                .ok_or_else(|| SqlError::new("22004", "RAISE statement option cannot be null"))?;
            let twice = told.contains(option)
                || *option == RaiseOption::Errcode && raise.condition.is_some()
                || *option == RaiseOption::Message && raise.format.is_some();
            if twice {
                let name = format!("{option:?}").to_uppercase();
                let message = format!("RAISE option already specified: {name}");
                return Err(SqlError::syntax(message));
            }
            told.push(*option);
            match option {
                RaiseOption::Errcode => code = Some(code_of(&value)?),
                RaiseOption::Message => message = Some(value),
                RaiseOption::Detail => error.detail = Some(value),
                RaiseOption::Hint => error.hint = Some(value),
                RaiseOption::Column => error.column = Some(value),
                RaiseOption::Constraint => error.constraint = Some(value),
                RaiseOption::Table => error.table = Some(value),
                RaiseOption::Schema => error.schema = Some(value),
                RaiseOption::Datatype => {
                    return Err(SqlError::unsupported(
                        "the option DATATYPE of RAISE is not supported",
                        "Leave it out.",
                    ));
                }
            }
        }
        let is_error = raise.level == Level::Exception;
        error.sqlstate = match code {
            Some(code) => kept_code(&code)?,
            None if is_error => "P0001",
            None if raise.level == Level::Warning => "01000",
            None => "00000",
        };
        error.message = message.unwrap_or_else(|| error.sqlstate.to_owned());
        if is_error {
            return Err(error);
        }
        self.tell(raise.level, error)
    }

    /// Keeps a message for the client.
    fn tell(&self, level: Level, mut notice: SqlError) -> Result<()> {
        let severity = match level {
            // They are the log's, as long as nobody asks for more.
            Level::Debug | Level::Log => return Ok(()),
            Level::Info => "INFO",
            Level::Warning => "WARNING",
            Level::Notice | Level::Exception => "NOTICE",
        };
        notice.context = Some(self.compiled.place(&self.frame));
        let context = self.context();
        let mut notices = context.notices.lock();
        if notices.len() >= NOTICES_MAX {
            let message = format!("a statement raises more than {NOTICES_MAX} messages");
            return Err(SqlError::new("54000", message));
        }
        notices.push((severity, notice));
        Ok(())
    }

    async fn formatted(&mut self, format: &str, arguments: &[Expression]) -> Result<String> {
        let mut out = String::with_capacity(format.len());
        let mut arguments = arguments.iter();
        let mut characters = format.chars().peekable();
        while let Some(character) = characters.next() {
            if character != '%' {
                out.push(character);
            } else if characters.next_if_eq(&'%').is_some() {
                out.push('%');
            } else if let Some(argument) = arguments.next() {
                let value = self.text(argument).await?;
                out.push_str(value.as_deref().unwrap_or("<NULL>"));
            }
        }
        Ok(out)
    }

    pub(super) async fn assert(
        &mut self,
        condition: &Expression,
        message: Option<&Expression>,
    ) -> Result<()> {
        if self.is_true(condition).await? {
            return Ok(());
        }
        let text = match message {
            Some(message) => self.text(message).await?,
            None => None,
        };
        let text = text.unwrap_or_else(|| "assertion failed".to_owned());
        Err(SqlError::new("P0004", text))
    }

    pub(super) async fn diagnostics(&mut self, items: &[(Target, Diagnostic)]) -> Result<()> {
        for (target, item) in items {
            let typed = match item {
                Diagnostic::RowCount => Typed {
                    value: Datum::Int8(i64::try_from(self.frame.row_count).unwrap_or(i64::MAX)),
                    oid: ids::INT8,
                    modifier: -1,
                },
                item => Typed {
                    value: Datum::text(self.of_caught(*item)?),
                    oid: ids::TEXT,
                    modifier: -1,
                },
            };
            self.assign(target, typed).await?;
        }
        Ok(())
    }

    /// What the error at hand says; nothing where it does not.
    fn of_caught(&self, item: Diagnostic) -> Result<String> {
        let Some(error) = self.frame.caught.last() else {
            return Err(SqlError::new(
                "0Z002",
                "GET STACKED DIAGNOSTICS cannot be used outside an exception handler",
            ));
        };
        let optional = match item {
            Diagnostic::Sqlstate => return Ok(error.sqlstate.to_owned()),
            Diagnostic::Message => return Ok(error.message.clone()),
            Diagnostic::Detail => &error.detail,
            Diagnostic::Hint => &error.hint,
            Diagnostic::Context => &error.context,
            Diagnostic::Column => &error.column,
            Diagnostic::Constraint => &error.constraint,
            Diagnostic::Table => &error.table,
            Diagnostic::Schema => &error.schema,
            Diagnostic::Datatype | Diagnostic::RowCount => &None,
        };
        Ok(optional.clone().unwrap_or_default())
    }
}

/// The code that ERRCODE says: a name or a code.
fn code_of(value: &str) -> Result<String> {
    if is_code(value) {
        return Ok(value.to_owned());
    }
    let named = condition_codes(value).next().map(str::to_owned);
    named.ok_or_else(|| {
        let message = format!("unrecognized exception condition \"{value}\"");
        SqlError::new("42704", message)
    })
}
