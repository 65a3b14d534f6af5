//! The log on stderr: lines for people, or one JSON object a line for collectors.
//!
//! Whatever is in an event, nobody can forge another by it: in JSON it is escaped, in text a
//! line that goes on begins with a tab, and what moves a terminal's cursor is written in digits. What the program says before it ends, and a panic, are
//! events as well.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt::{self, Write as _};
use std::io::{self, Write};
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use thermocline_sql::STATEMENT_LOG;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::settings::Settings;

/// Whether events are JSON.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Begins to log; the filter was parsed before, when the settings were read.
pub(crate) fn start(settings: &Settings) {
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter(&settings.log))
        .with_writer(|| Continued(io::stderr()))
        .with_ansi(false);
    IS_JSON.store(settings.log_json, Relaxed);
    match settings.log_json {
        true => log.event_format(Json).init(),
        false => log.init(),
    }
    std::panic::set_hook(Box::new(log_panic));
}

/// Statements have a setting of their own: `log_min_duration_statement` is not to be said twice.
fn filter(log: &str) -> EnvFilter {
    let filter = EnvFilter::new(log);
    match format!("{STATEMENT_LOG}={}", LevelFilter::INFO).parse() {
        Ok(statements) => filter.add_directive(statements),
        Err(_) => filter,
    }
}

/// The one line of a program that ends, or does not start.
pub(crate) fn last_words(why: &dyn fmt::Display) {
    match IS_JSON.load(Relaxed) {
        true => {
            let mut fields = Fields::of(Level::ERROR, "thermocline");
            fields.put("message", why.to_string());
            eprintln!("{fields}");
        }
        false => eprintln!("thermocline: {why}"),
    }
}

fn log_panic(panic: &PanicHookInfo<'_>) {
    let backtrace = Backtrace::capture();
    let backtrace = (backtrace.status() == BacktraceStatus::Captured).then_some(backtrace);
    tracing::error!(
        thread = thread::current().name(),
        place = panic.location().map(ToString::to_string),
        backtrace = backtrace.map(|backtrace| backtrace.to_string()),
        "a thread panicked: {}",
        panic.payload_as_str().unwrap_or("no message")
    );
}

/// Takes an event a call, and writes it so that it is one to whoever reads: see the head of
/// this file.
struct Continued<W>(W);

impl<W: Write> Write for Continued<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let (body, end) = match event {
            [body @ .., b'\n'] => (body, &b"\n"[..]),
            body => (body, &b""[..]),
        };
        if !body.iter().any(|byte| is_control(*byte)) {
            self.0.write_all(event)?;
            return Ok(event.len());
        }
        let mut marked = Vec::with_capacity(event.len() + 64);
        for byte in body {
            match byte {
                b'\n' => marked.extend_from_slice(b"\n\t"),
                byte if is_control(*byte) => write!(marked, "\\x{byte:02x}")?,
                byte => marked.push(*byte),
            }
        }
        marked.extend_from_slice(end);
        self.0.write_all(&marked)?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

const fn is_control(byte: u8) -> bool {
    byte.is_ascii_control() && byte != b'\t'
}

/// One object a line: `timestamp` (seconds since 1970), `level`, `target`, `message`, and
/// the event's other fields.
struct Json;

impl<S, N> FormatEvent<S, N> for Json
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let about = event.metadata();
        let mut fields = Fields::of(*about.level(), about.target());
        event.record(&mut fields);
        writeln!(writer, "{fields}")
    }
}

struct Fields(serde_json::Map<String, serde_json::Value>);

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let object = serde_json::to_string(&self.0).map_err(|_| fmt::Error)?;
        // JSON lets these be; who cuts lines by Unicode's rules takes some for a line's end.
        for character in object.chars() {
            match character {
                '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' => {
                    write!(f, "\\u{:04x}", u32::from(character))?;
                }
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

impl Fields {
    fn of(level: Level, target: &str) -> Self {
        let mut fields = Self(serde_json::Map::new());
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let seconds = now.map_or(0.0, |since| since.as_secs_f64());
        fields.put("timestamp", seconds);
        fields.put("level", level.as_str());
        fields.put("target", target);
        fields
    }

    fn put(&mut self, name: &str, value: impl Into<serde_json::Value>) {
        self.0.insert(name.to_owned(), value.into());
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field.name(), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field.name(), value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field.name(), value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field.name(), value);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(json: bool, filter: EnvFilter, events: impl FnOnce()) -> Vec<String> {
        let kept = Kept::default();
        let writer = kept.clone();
        let log = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(move || Continued(writer.clone()))
            .with_ansi(false);
        match json {
            true => tracing::subscriber::with_default(log.event_format(Json).finish(), events),
            false => tracing::subscriber::with_default(log.finish(), events),
        }
        let bytes = kept.0.lock().unwrap().clone();
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'), "{text:?}");
        text.lines().map(str::to_owned).collect()
    }

    const HOSTILE: &str =
        "a\n2026-01-01 ERROR b\r\n\"}\n{\"level\":\"ERROR\"}\u{0}\u{1b}[31m\u{2028}\u{85}é";

    #[test]
    fn an_event_in_json_is_one_object_and_one_line_whatever_is_in_it() {
        let lines = logged(true, EnvFilter::new("info"), || {
            tracing::info!(
                text = HOSTILE,
                shown = %HOSTILE,
                debugged = ?HOSTILE,
                number = -7,
                large = u64::MAX,
                time = 0.25,
                none = f64::NAN,
                truth = true,
                absent = None::<&str>,
                "{HOSTILE}"
            );
            tracing::warn!("second");
        });
        assert_eq!(lines.len(), 2, "{lines:?}");
        for line in &lines {
            let breaks = |character: char| character.is_control() || character == '\u{2028}';
            assert!(!line.contains(breaks), "{line:?}");
        }
        let event: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
        for field in ["message", "text", "shown"] {
            assert_eq!(event[field], HOSTILE, "{field}");
        }
        assert_eq!(event["debugged"], format!("{HOSTILE:?}"));
        assert_eq!(event["level"], "INFO");
        assert_eq!(event["number"], -7);
        assert_eq!(event["large"], u64::MAX);
        assert_eq!(event["time"], 0.25);
        assert!(event["none"].is_null());
        assert_eq!(event["truth"], true);
        assert!(event.get("absent").is_none());
        assert!(event["timestamp"].as_f64().unwrap() > 1.7e9);
        let event: serde_json::Value = serde_json::from_str(&lines[1]).unwrap();
        assert_eq!(event["message"], "second");
    }

    #[test]
    fn no_line_of_text_can_be_forged() {
        let lines = logged(false, EnvFilter::new("info"), || {
            tracing::info!(text = HOSTILE, shown = %HOSTILE, "{HOSTILE}");
            tracing::warn!("second");
        });
        let events = lines.iter().filter(|line| !line.starts_with('\t'));
        assert_eq!(events.count(), 2, "{lines:?}");
        assert!(
            !lines.concat().contains(['\r', '\0', '\u{1b}']),
            "{lines:?}"
        );
    }

    #[test]
    fn statements_are_logged_whatever_else_is() {
        for (log, others) in [("off", 0), ("warn", 0), ("statement=off,info", 1)] {
            let lines = logged(false, filter(log), || {
                tracing::info!(target: STATEMENT_LOG, "a statement");
                tracing::info!("something else");
            });
            assert_eq!(lines.len(), 1 + others, "{log}: {lines:?}");
        }
    }
}
