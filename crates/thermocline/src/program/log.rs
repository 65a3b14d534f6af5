//! The log on stderr: lines for people, or one JSON object a line for collectors.

use std::fmt;
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::settings::Settings;

/// Begins to log; the filter was parsed before, when the settings were read.
pub(crate) fn start(settings: &Settings) {
    let log = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(&settings.log))
        .with_writer(io::stderr)
        .with_ansi(false);
    match settings.log_json {
        true => log.event_format(Json).init(),
        false => log.init(),
    }
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
        let mut fields = Fields(serde_json::Map::new());
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let seconds = now.map_or(0.0, |since| since.as_secs_f64());
        let about = event.metadata();
        fields.put("timestamp", seconds);
        fields.put("level", about.level().as_str());
        fields.put("target", about.target());
        event.record(&mut fields);
        writeln!(writer, "{}", serde_json::Value::Object(fields.0))
    }
}

struct Fields(serde_json::Map<String, serde_json::Value>);

impl Fields {
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

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field.name(), value);
    }
}
