//! What a session's settings say about how dates, times and numbers look as texts, and how such
//! texts are read: `TimeZone`, `DateStyle`, `IntervalStyle`, `extra_float_digits`,
//! `bytea_output`.
//!
//! The storage's own forms are those of a session that has set none of these ([`Styles::is_plain`]),
//! and it is asked as long as that is so: one test a value is all that is paid. For any other
//! session the forms are `thermocline_query`'s. Values themselves, their keys and their binary
//! forms depend on none of it.

use std::sync::{Arc, LazyLock};

use thermocline_query::call::{
    ByteaOutput, Call, DateOrder, DateStyle, Environment, IntervalStyle, Settings,
};
use thermocline_query::datum::Datum;
use thermocline_query::error::{QueryError, Result as QueryResult};
use thermocline_query::types;
use thermocline_query::types::datetime::zone;
use thermocline_query::types::timestamp::{
    date_of_timestamptz, timestamp_of_timestamptz, timestamptz_of_date, timestamptz_of_timestamp,
};
use thermocline_values::cast;
use thermocline_values::text_format;
use thermocline_values::types::DataType;
use thermocline_values::value::{Value, ValueRef};

use crate::error::Result;
use crate::expr::CastPath;
use crate::typed::value;

/// The settings that styles are made of, by their names in lower case.
const NAMES: [&str; 5] = [
    "timezone",
    "datestyle",
    "intervalstyle",
    "extra_float_digits",
    "bytea_output",
];

/// See the head of this file.
#[derive(Debug)]
pub struct Styles {
    settings: Settings,
    /// The settings' values, by which styles are told apart.
    values: [String; NAMES.len()],
    plain: bool,
}

static PLAIN: LazyLock<Arc<Styles>> = LazyLock::new(Arc::default);

fn default_of(name: &str) -> String {
    let setting = crate::settings::find(name);
    setting.map_or_else(String::new, |setting| setting.default.to_owned())
}

impl Default for Styles {
    fn default() -> Self {
        Self::of(default_of)
    }
}

impl Styles {
    /// Those of a session that has set nothing.
    #[must_use]
    pub fn plain() -> &'static Self {
        &PLAIN
    }

    /// The same, shared.
    #[must_use]
    pub fn plain_shared() -> Arc<Self> {
        Arc::clone(&PLAIN)
    }

    /// Those of a session whose settings have these values, of which `before` may be.
    pub(crate) fn renewed(before: &Arc<Self>, value: impl Fn(&str) -> String) -> Arc<Self> {
        let values = NAMES.map(&value);
        let known = [before, &*PLAIN];
        for known in known {
            if known.values == values {
                return Arc::clone(known);
            }
        }
        Arc::new(Self::of(value))
    }

    fn of(value: impl Fn(&str) -> String) -> Self {
        let values = NAMES.map(value);
        let [
            time_zone,
            date_style,
            interval_style,
            float_digits,
            bytea_output,
        ] = &values;
        let mut settings = Settings::default();
        if let Some(found) = zone::named(time_zone) {
            settings.time_zone = found;
        }
        settings.time_zone_name.clone_from(time_zone);
        let (style, order) = date_style.split_once(", ").unwrap_or((date_style, ""));
        settings.date_style = match style {
            "SQL" => DateStyle::Sql,
            "Postgres" => DateStyle::Postgres,
            "German" => DateStyle::German,
            _ => DateStyle::Iso,
        };
        settings.date_order = match order {
            "DMY" => DateOrder::Dmy,
            "YMD" => DateOrder::Ymd,
            _ => DateOrder::Mdy,
        };
        settings.interval_style = match interval_style.as_str() {
            "postgres_verbose" => IntervalStyle::PostgresVerbose,
            "sql_standard" => IntervalStyle::SqlStandard,
            "iso_8601" => IntervalStyle::Iso8601,
            _ => IntervalStyle::Postgres,
        };
        settings.extra_float_digits = float_digits.parse().unwrap_or(1);
        if bytea_output == "escape" {
            settings.bytea_output = ByteaOutput::Escape;
        }
        let plain = zone::fixed_east(&settings.time_zone) == Some(0)
            && settings.date_style == DateStyle::Iso
            && settings.date_order == DateOrder::Mdy
            && settings.interval_style == IntervalStyle::Postgres
            && settings.extra_float_digits > 0
            && settings.bytea_output == ByteaOutput::Hex;
        Self {
            settings,
            values,
            plain,
        }
    }

    /// Whether the storage's forms are theirs.
    #[must_use]
    #[inline]
    pub const fn is_plain(&self) -> bool {
        self.plain
    }

    /// Whether they are the same.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.values == other.values
    }

    /// The settings as functions ask for them.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Reads a value from its text; `now_us` is the transaction's time, for words such as
    /// `today`, which are not read where it is not known.
    ///
    /// # Errors
    /// 22P02, 22003, 22007 and their like, in PostgreSQL's words.
    pub fn read(&self, data_type: &DataType, text: &str, now_us: Option<i64>) -> Result<Value> {
        if !reads(*data_type) {
            return Ok(text_format::parse_text(data_type, text)?);
        }
        // The usual form, for speed. All others have one reader, that of literals.
        if self.plain
            && data_type.other().is_none()
            && is_iso(text)
            && let Ok(read) = text_format::parse_text(data_type, text)
        {
            return Ok(read);
        }
        if now_us.is_none() && is_of_the_moment(text) {
            return Ok(text_format::parse_text(data_type, text)?);
        }
        self.parsed(data_type, text, now_us)
    }

    /// As [`Styles::read`], of the type's number, in the form of a typed tree.
    pub(crate) fn datum(&self, oid: u32, text: &str, now_us: i64) -> Result<Datum> {
        let at = At {
            styles: self,
            now_us,
        };
        Ok(types::input(&Call::new(&at, &[], oid), oid, text, -1)?)
    }

    fn parsed(&self, data_type: &DataType, text: &str, now_us: Option<i64>) -> Result<Value> {
        let at = At {
            styles: self,
            now_us: now_us.unwrap_or(0),
        };
        let oid = data_type.oid();
        let call = Call::new(&at, &[], oid);
        let read = types::input(&call, oid, text, data_type.typmod())?;
        value::to_stored(&read, data_type)
    }

    /// Appends the text of a value; nothing for NULL.
    ///
    /// # Errors
    /// For a value that has no text in these styles; then nothing is appended.
    pub fn write(
        &self,
        value: ValueRef<'_>,
        data_type: &DataType,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if self.plain || value.is_null() || !shows(*data_type) {
            text_format::write_text(value, data_type, out);
            return Ok(());
        }
        out.extend_from_slice(self.shown(value, data_type)?.as_bytes());
        Ok(())
    }

    fn shown(&self, value: ValueRef<'_>, data_type: &DataType) -> QueryResult<String> {
        let at = At {
            styles: self,
            now_us: 0,
        };
        let oid = data_type.oid();
        let call = Call::new(&at, &[], oid);
        types::to_text(&call, oid, &value::to_query(value, data_type)?)
    }

    /// Appends the binary form of a value that was written as a text.
    pub(crate) fn write_binary(&self, oid: u32, text: &str, out: &mut Vec<u8>) -> Result<()> {
        let at = At {
            styles: self,
            now_us: 0,
        };
        let call = Call::new(&at, &[], oid);
        let value = types::input(&call, oid, text, -1)?;
        Ok(types::send(&call, oid, &value, out)?)
    }

    /// Converts a value between types whose conversion depends on styles ([`matter`]).
    pub(crate) fn convert(&self, value: ValueRef<'_>, path: &CastPath) -> Result<Value> {
        let settings = &self.settings;
        let moment = match (value, path.to) {
            (ValueRef::Null, _) => Value::Null,
            (ValueRef::Text(text), to) if !to.is_text() => return self.read(&to, text, None),
            (value, to) if to.is_text() => {
                let mut text = Vec::new();
                self.write(value, &path.from, &mut text)?;
                Value::Text(String::from_utf8_lossy(&text).into_owned())
            }
            (ValueRef::Date(days), to) if is_zoned(to) => {
                Value::TimestampTz(timestamptz_of_date(days, settings)?)
            }
            (ValueRef::Timestamp(at), to) if is_zoned(to) => {
                Value::TimestampTz(timestamptz_of_timestamp(at, settings)?)
            }
            (ValueRef::TimestampTz(at), DataType::Date) => {
                Value::Date(date_of_timestamptz(at, settings)?)
            }
            (ValueRef::TimestampTz(at), to) if to.is_timestamp() && !is_zoned(to) => {
                Value::Timestamp(timestamp_of_timestamptz(at, settings)?)
            }
            (value, _) => value.to_owned(),
        };
        // A length or a precision is the storage's.
        let from = moment.data_type().unwrap_or(path.to);
        Ok(cast::coerce(moment, &from, &path.to, path.context)?)
    }

    /// What the session's clocks show.
    ///
    /// # Errors
    /// 22008 out of range.
    pub(crate) fn local(&self, now_us: i64) -> Result<i64> {
        match self.plain {
            true => Ok(now_us),
            false => Ok(timestamp_of_timestamptz(now_us, &self.settings)?),
        }
    }
}

/// The name of a time zone as SHOW writes it, of one by which it is found.
pub(crate) fn zone_name(given: &str) -> Option<String> {
    let zone = zone::named(given)?;
    let known = zone.iana_name().unwrap_or_default();
    if known.eq_ignore_ascii_case(given) {
        return Some(known.to_owned());
    }
    if let Some((folder, rest)) = given.split_once('/')
        && folder.eq_ignore_ascii_case("posix")
    {
        return zone_name(rest).map(|name| format!("posix/{name}"));
    }
    let listed = zone::names().find(|name| name.eq_ignore_ascii_case(given));
    Some(listed.unwrap_or_else(|| given.to_ascii_uppercase()))
}

/// Whether a text of the type says what styles tell.
pub(crate) const fn reads(data_type: DataType) -> bool {
    matches!(
        data_type,
        DataType::Date
            | DataType::Timestamp
            | DataType::TimestampTz
            | DataType::TimestampTo(_)
            | DataType::TimestampTzTo(_)
            | DataType::Other { .. }
    )
}

/// Whether the text of a value of the type depends on styles.
pub(crate) const fn shows(data_type: DataType) -> bool {
    reads(data_type)
        || matches!(
            data_type,
            DataType::Real | DataType::Double | DataType::Bytea
        )
}

/// `timestamptz`
pub(crate) const fn is_zoned(data_type: DataType) -> bool {
    matches!(
        data_type,
        DataType::TimestampTz | DataType::TimestampTzTo(_)
    )
}

/// Whether what a value becomes in another type depends on styles.
pub(crate) fn matter(from: DataType, to: DataType) -> bool {
    if from.is_text() || to.is_text() {
        return from.is_text() && reads(to) || to.is_text() && shows(from);
    }
    is_zoned(from) != is_zoned(to)
}

/// Whether a text is a day, perhaps with a time and a zone, as ISO 8601 writes them in digits.
fn is_iso(text: &str) -> bool {
    let mut rest = text.as_bytes();
    // A nine stands for any digit.
    let mut takes = |form: &[u8]| {
        let fits = |(byte, form): (&u8, &u8)| match form {
            b'9' => byte.is_ascii_digit(),
            _ => byte == form,
        };
        let found = rest.len() >= form.len() && rest.iter().zip(form).all(fits);
        if found {
            rest = &rest[form.len()..];
        }
        found
    };
    if !takes(b"9999-99-99") {
        return false;
    }
    if takes(b" 99:99") || takes(b"T99:99") {
        if takes(b":99") && takes(b".9") {
            while takes(b"9") {}
        }
        if takes(b"+99") || takes(b"-99") {
            takes(b":99");
        }
    }
    rest.is_empty()
}

/// Whether a text may have a word whose meaning is of the moment. It may err.
fn is_of_the_moment(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    ["now", "today", "tomorrow", "yesterday"]
        .iter()
        .any(|word| lower.contains(word))
}

/// Styles, at a time.
struct At<'a> {
    styles: &'a Styles,
    now_us: i64,
}

impl Environment for At<'_> {
    fn settings(&self) -> &Settings {
        &self.styles.settings
    }

    fn transaction_time(&self) -> i64 {
        self.now_us
    }

    fn statement_time(&self) -> i64 {
        self.now_us
    }

    fn room(&self, _: usize) -> QueryResult<()> {
        Ok(())
    }

    fn check_interrupted(&self) -> QueryResult<()> {
        Ok(())
    }

    fn call(&self, name: &str, _: &[Datum]) -> QueryResult<Datum> {
        Err(QueryError::unsupported(
            format!("a constant that needs function {name} is not supported"),
            "Write the constant as a text or a number.",
        ))
    }
}

#[cfg(test)]
mod tests;
