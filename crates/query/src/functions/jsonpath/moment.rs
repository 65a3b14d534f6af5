//! Dates and times in paths: what `.datetime()` gives.

use std::cmp::Ordering;

use super::super::json::{
    DAY, date_text, offset_at, timestamp_text, timestamptz_text, write_offset, write_time,
};
use super::execute::{Execution, Found, Status, Value};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::datetime::pattern::read::{moment, parse};
use crate::types::datetime::{fields_of, zone};
use crate::types::jsonpath::Item;

/// A date or a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Moment {
    /// Days since 2000-01-01.
    Date(i32),
    /// Microseconds since midnight.
    Time(i64),
    /// Microseconds since midnight, and seconds to the east of Greenwich.
    TimeTz(i64, i64),
    /// Microseconds since 2000-01-01.
    Timestamp(i64),
    /// Microseconds since 2000-01-01 UTC, and seconds to the east of Greenwich.
    TimestampTz(i64, i64),
}

impl Moment {
    /// What `.type()` gives.
    pub(super) const fn type_name(self) -> &'static str {
        match self {
            Self::Date(_) => "date",
            Self::Time(_) => "time without time zone",
            Self::TimeTz(..) => "time with time zone",
            Self::Timestamp(_) => "timestamp without time zone",
            Self::TimestampTz(..) => "timestamp with time zone",
        }
    }

    /// The ISO text.
    pub(super) fn text(self) -> String {
        match self {
            Self::Date(days) => date_text(days),
            Self::Time(micros) => {
                let mut out = String::new();
                write_time(micros, &mut out);
                out
            }
            Self::TimeTz(micros, offset) => {
                let mut out = String::new();
                write_time(micros, &mut out);
                write_offset(offset, &mut out);
                out
            }
            Self::Timestamp(micros) => timestamp_text(micros),
            Self::TimestampTz(micros, offset) => timestamptz_text(micros, offset),
        }
    }

    /// The order of two moments; `None` where there is none.
    ///
    /// # Errors
    /// 0A000 where it depends on a time zone that may not be used.
    pub(super) fn compare(
        call: &Call<'_>,
        a: &Self,
        b: &Self,
        zoned: bool,
    ) -> Result<Option<Ordering>> {
        let date = |days: i32| i128::from(days) * i128::from(DAY);
        let needs_zone = |from: &str, to: &str| {
            if zoned {
                return Ok(());
            }
            Err(QueryError::unsupported(
                format!("cannot convert value from {from} to {to} without time zone usage"),
                "Use *_tz() function for time zone support.",
            ))
        };
        Ok(Some(match (*a, *b) {
            (Self::Date(a), Self::Date(b)) => a.cmp(&b),
            (Self::Date(a), Self::Timestamp(b)) => date(a).cmp(&i128::from(b)),
            (Self::Date(a), Self::TimestampTz(b, _)) => {
                needs_zone("date", "timestamptz")?;
                to_zone(call, date(a)).cmp(&i128::from(b))
            }
            (Self::Timestamp(a), Self::Timestamp(b)) => a.cmp(&b),
            (Self::Timestamp(a), Self::TimestampTz(b, _)) => {
                needs_zone("timestamp", "timestamptz")?;
                to_zone(call, i128::from(a)).cmp(&i128::from(b))
            }
            (Self::TimestampTz(a, _), Self::TimestampTz(b, _)) => a.cmp(&b),
            (Self::Time(a), Self::Time(b)) => a.cmp(&b),
            (Self::Time(a), Self::TimeTz(b, offset)) => {
                needs_zone("time", "timetz")?;
                let zone = &call.settings().time_zone;
                let now = offset_at(zone, call.environment.transaction_time());
                with_zone(a, now).cmp(&with_zone(b, offset))
            }
            (Self::TimeTz(a, offset), Self::TimeTz(b, other)) => {
                with_zone(a, offset).cmp(&with_zone(b, other))
            }
            (Self::Timestamp(_) | Self::TimestampTz(..), Self::Date(_))
            | (Self::TimestampTz(..), Self::Timestamp(_))
            | (Self::TimeTz(..), Self::Time(_)) => {
                return Ok(Self::compare(call, b, a, zoned)?.map(Ordering::reverse));
            }
            _ => return Ok(None),
        }))
    }
}

/// The order of times with a zone: by the moment, then the westernmost last.
const fn with_zone(micros: i64, offset: i64) -> (i64, i64) {
    (micros - offset * 1_000_000, -offset)
}

/// The moment of a local time in the session's time zone.
fn to_zone(call: &Call<'_>, local: i128) -> i128 {
    let west = i64::try_from(local)
        .ok()
        .and_then(fields_of)
        .map_or(0, |fields| {
            zone::local_west(&call.settings().time_zone, &fields)
        });
    local + i128::from(west) * 1_000_000
}

/// The forms of ISO 8601, in the order in which they are tried.
const ISO: &[&str] = &[
    "yyyy-mm-dd",
    "HH24:MI:SS.USTZH:TZM",
    "HH24:MI:SS.USTZH",
    "HH24:MI:SSTZH:TZM",
    "HH24:MI:SSTZH",
    "HH24:MI:SS.US",
    "HH24:MI:SS",
    "yyyy-mm-dd HH24:MI:SS.USTZH:TZM",
    "yyyy-mm-dd HH24:MI:SS.USTZH",
    "yyyy-mm-dd HH24:MI:SSTZH:TZM",
    "yyyy-mm-dd HH24:MI:SSTZH",
    "yyyy-mm-dd\"T\"HH24:MI:SS.USTZH:TZM",
    "yyyy-mm-dd\"T\"HH24:MI:SS.USTZH",
    "yyyy-mm-dd\"T\"HH24:MI:SSTZH:TZM",
    "yyyy-mm-dd\"T\"HH24:MI:SSTZH",
    "yyyy-mm-dd HH24:MI:SS.US",
    "yyyy-mm-dd HH24:MI:SS",
    "yyyy-mm-dd\"T\"HH24:MI:SS.US",
    "yyyy-mm-dd\"T\"HH24:MI:SS",
];

/// A text by a template.
fn read(text: &str, template: &str) -> Result<Moment> {
    let parsed = parse(text, template, true)?;
    Ok(match parsed.value {
        Datum::Date(days) => Moment::Date(days),
        Datum::Time(micros) => Moment::Time(micros),
        Datum::TimeTz(time) => Moment::TimeTz(time.micros, -i64::from(time.zone)),
        Datum::TimestampTz(micros) => {
            let west = moment(text, template, true)?.west.unwrap_or(0);
            Moment::TimestampTz(micros, -i64::from(west))
        }
        Datum::Timestamp(micros) => Moment::Timestamp(micros),
        _ => return Err(QueryError::internal("a template gave no moment")),
    })
}

impl Execution<'_> {
    pub(super) fn datetime(
        &mut self,
        template: Option<&str>,
        rest: &[Item],
        value: &Value,
        found: &mut Found,
    ) -> Result<Status> {
        let Some(text) = value.as_string() else {
            return self.fail(|| {
                QueryError::new(
                    "22031",
                    "jsonpath item method .datetime() can only be applied to a string",
                )
            });
        };
        let moment = match template {
            Some(template) => match read(text, template) {
                Ok(moment) => moment,
                // A template that is none is told in any case.
                Err(error)
                    if error
                        .message
                        .starts_with("invalid datetime format separator") =>
                {
                    return Err(error);
                }
                Err(error) => return self.fail(|| error),
            },
            None => match ISO.iter().find_map(|form| read(text, form).ok()) {
                Some(moment) => moment,
                None => {
                    return self.fail(|| {
                        QueryError::new(
                            "22031",
                            format!("datetime format is not recognized: \"{text}\""),
                        )
                        .with_hint(
                            "Use a datetime template argument to specify the input data format.",
                        )
                    });
                }
            },
        };
        self.next(rest, &Value::Moment(moment), found)
    }
}
