//! The log of slow statements: PostgreSQL's line for each that took `log_min_duration_statement`
//! or longer, those that fail included. The time is the client's: all statements of a Query
//! together, each Parse, Bind and Execute, a COPY with its rows.
//!
//! A line is bounded, whatever the statement: its text, its values, all of it. Texts with
//! passwords are not in it. Where nothing is logged it costs two looks at the clock.

use std::fmt::{self, Write};
use std::time::{Duration, Instant};

use thermocline_values::text_format::write_text;
use thermocline_values::value::{Value, ValueRef};

use super::Session;
use crate::error::SqlError;
use crate::parse::secret::{HIDDEN_TEXT, has_password};

/// The target of these lines: they are logged whatever else is.
pub const STATEMENT_LOG: &str = "statement";

/// The most of a statement's text that is logged, in bytes.
const TEXT_BYTES_MAX: usize = 8 << 10;
/// The most of all values of its parameters.
const PARAMETERS_BYTES_MAX: usize = 8 << 10;
/// The most of a name that the client chose, and of an error's message.
const NAME_BYTES_MAX: usize = 128;
const ERROR_BYTES_MAX: usize = 1 << 10;

/// What a client asked for that took its time.
pub(super) enum Step<'a> {
    /// A Query, with all its statements.
    Query,
    Parse {
        statement: &'a str,
    },
    Bind {
        statement: &'a str,
        portal: &'a str,
    },
    /// An Execute; `again` when the portal had given rows before.
    Execute {
        statement: &'a str,
        portal: &'a str,
        again: bool,
    },
}

impl fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, statement, portal) = match self {
            Step::Query => return f.write_str("statement"),
            Step::Parse { statement } => ("parse ", statement, ""),
            Step::Bind { statement, portal } => ("bind ", statement, *portal),
            Step::Execute {
                statement,
                portal,
                again: false,
            } => ("execute ", statement, *portal),
            Step::Execute {
                statement, portal, ..
            } => ("execute fetch from ", statement, *portal),
        };
        f.write_str(what)?;
        match statement.is_empty() {
            true => f.write_str("<unnamed>")?,
            false => write!(f, "{}", Shortened(statement, NAME_BYTES_MAX))?,
        }
        match portal.is_empty() {
            true => Ok(()),
            false => write!(f, "/{}", Shortened(portal, NAME_BYTES_MAX)),
        }
    }
}

/// A text, or its beginning and how long it is.
struct Shortened<'a>(&'a str, usize);

impl fmt::Display for Shortened<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shortened(text, most) = *self;
        if text.len() <= most {
            return f.write_str(text);
        }
        let begin = &text[..text.floor_char_boundary(most)];
        write!(f, "{begin}... ({} bytes)", text.len())
    }
}

impl Session {
    /// Logs a step that began at `began`, if it took long enough.
    pub(super) fn log_step(
        &self,
        began: Instant,
        step: &Step<'_>,
        text: &str,
        parameters: &[Value],
        error: Option<&SqlError>,
    ) {
        let least = self
            .context
            .settings(|settings| settings.log_min_duration_statement());
        let Some(least) = least else { return };
        let taken = began.elapsed();
        if taken >= least {
            self.write_step(taken, step, text, parameters, error);
        }
    }

    #[cold]
    fn write_step(
        &self,
        taken: Duration,
        step: &Step<'_>,
        text: &str,
        parameters: &[Value],
        error: Option<&SqlError>,
    ) {
        let was_parsed = error.is_none_or(|error| error.sqlstate != "42601");
        // What is not shown of a long text need not be looked at, but for the message of an
        // error, which may quote it.
        let begin = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
        let hidden = has_password(begin, was_parsed);
        let mute = hidden || !was_parsed && has_password(text, was_parsed);
        let text = if hidden { HIDDEN_TEXT } else { text };
        let (application, value_bytes_max) = self.context.settings(|settings| {
            let application = settings.get("application_name");
            (
                application.unwrap_or_default(),
                settings.log_parameter_max_length(),
            )
        });
        let detail = shown_parameters(parameters, value_bytes_max);
        let milliseconds = taken.as_secs_f64() * 1e3;
        let why = error.filter(|_| !mute).map(|error| &*error.message);
        tracing::info!(
            target: STATEMENT_LOG,
            duration_ms = milliseconds,
            user = self.context.user,
            process_id = self.context.process_id,
            application = %Shortened(&application, NAME_BYTES_MAX),
            detail,
            sqlstate = error.map(|error| error.sqlstate),
            error = why.map(|why| Shortened(why, ERROR_BYTES_MAX).to_string()),
            "duration: {milliseconds:.3} ms  {step}: {}",
            Shortened(text, TEXT_BYTES_MAX),
        );
    }
}

impl Session {
    /// Logs the statement that panicked; passwords are not in what is shown of it.
    pub fn log_panic(&self, words: &str) {
        let doing = self.context.activity();
        tracing::error!(
            user = self.context.user,
            process_id = self.context.process_id,
            statement = %Shortened(&doing.text, TEXT_BYTES_MAX),
            "internal error: a session panicked: {}",
            Shortened(words, ERROR_BYTES_MAX),
        );
    }
}

/// PostgreSQL's `parameters: $1 = 'a', $2 = NULL`; values are cut after `most` bytes (`None`:
/// not each by itself), and the whole is bounded.
fn shown_parameters(parameters: &[Value], most: Option<usize>) -> Option<String> {
    if parameters.is_empty() || most == Some(0) {
        return None;
    }
    let most = most.unwrap_or(usize::MAX).min(PARAMETERS_BYTES_MAX);
    let mut shown = String::from("parameters: ");
    for (at, value) in parameters.iter().enumerate() {
        if at > 0 {
            shown.push_str(", ");
        }
        if shown.len() >= PARAMETERS_BYTES_MAX {
            let _ = write!(shown, "... ({} in all)", parameters.len());
            break;
        }
        let _ = write!(shown, "${} = ", at + 1);
        push_value(&mut shown, value, most);
    }
    Some(shown)
}

fn push_value(shown: &mut String, value: &Value, most: usize) {
    let Some(data_type) = value.data_type() else {
        shown.push_str("NULL");
        return;
    };
    // What is cut is cut before it is written: values may be large.
    let (value, mut cut) = match value.as_ref() {
        ValueRef::Text(text) if text.len() > most => (
            ValueRef::Text(&text[..text.floor_char_boundary(most)]),
            true,
        ),
        ValueRef::Bytea(bytes) if bytes.len() > most => (ValueRef::Bytea(&bytes[..most]), true),
        value => (value, false),
    };
    let mut written = Vec::new();
    write_text(value, &data_type, &mut written);
    let written = String::from_utf8_lossy(&written);
    let begin = &written[..written.floor_char_boundary(most)];
    cut |= begin.len() < written.len();
    shown.push('\'');
    shown.push_str(&begin.replace('\'', "''"));
    shown.push_str(if cut { "...'" } else { "'" });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_named_as_postgresql_names_them() {
        let shown = |step: Step<'_>| step.to_string();
        assert_eq!(shown(Step::Query), "statement");
        assert_eq!(shown(Step::Parse { statement: "" }), "parse <unnamed>");
        let (statement, portal) = ("s", "p");
        assert_eq!(shown(Step::Bind { statement, portal }), "bind s/p");
        let again = false;
        let portal = "";
        let step = Step::Execute {
            statement,
            portal,
            again,
        };
        assert_eq!(shown(step), "execute s");
        let step = Step::Execute {
            statement: &"n".repeat(1000),
            portal: "p",
            again: true,
        };
        let expected = format!("execute fetch from {}... (1000 bytes)/p", "n".repeat(128));
        assert_eq!(shown(step), expected);
    }

    #[test]
    fn values_are_quoted_cut_and_bounded_together() {
        let text = |text: &str| Value::Text(text.to_owned());
        let values = [
            Value::Integer(7),
            Value::Null,
            text("it's"),
            text("äöü"),
            Value::Bytea(vec![0xab; 1 << 20]),
        ];
        assert_eq!(
            shown_parameters(&values, Some(5)).unwrap(),
            "parameters: $1 = '7', $2 = NULL, $3 = 'it''s', $4 = 'äö...', $5 = '\\xaba...'"
        );
        assert_eq!(shown_parameters(&values, Some(0)), None);
        assert_eq!(shown_parameters(&[], None), None);
        let whole = shown_parameters(&values, None).unwrap();
        assert!(whole.len() < 2 * PARAMETERS_BYTES_MAX, "{}", whole.len());
        let many = vec![text(&"'".repeat(100)); 65_535];
        let shown = shown_parameters(&many, None).unwrap();
        assert!(shown.len() < 4 * PARAMETERS_BYTES_MAX, "{}", shown.len());
        assert!(shown.ends_with("... (65535 in all)"));
    }
}
