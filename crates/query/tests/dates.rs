//! Dates, times, timestamps and intervals in all their forms: what a running
//! PostgreSQL reads, writes and says of errors, we do, too. Tests of every
//! function with general samples are in `catalogue.rs`; here are texts that
//! dates alone have: forms, units, patterns, zones, styles.
//!
//! `ORACLE=host:port` names a PostgreSQL 15 that trusts `postgres`.

use thermocline_query::call::{Call, DateOrder, DateStyle, Environment, IntervalStyle, Settings};
use thermocline_query::datum::Datum;
use thermocline_query::error::{QueryError, Result};
use thermocline_query::functions::{self, Body};
use thermocline_query::types::datetime::zone;
use thermocline_query::types::{self, ids};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// A session whose transaction began when the oracle's did.
struct Session {
    settings: Settings,
    now: i64,
}

impl Environment for Session {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn transaction_time(&self) -> i64 {
        self.now
    }

    fn statement_time(&self) -> i64 {
        self.now
    }

    fn room(&self, bytes: usize) -> Result<()> {
        if bytes > 1 << 20 {
            return Err(QueryError::new("53200", "out of memory"));
        }
        Ok(())
    }

    fn check_interrupted(&self) -> Result<()> {
        Ok(())
    }

    fn call(&self, name: &str, _: &[Datum]) -> Result<Datum> {
        Err(QueryError::unsupported(name, ""))
    }
}

/// Texts of moments, good and bad.
const MOMENTS: &[&str] = &[
    "",
    " ",
    "1999-01-08",
    "January 8, 1999",
    "Jan 8 1999",
    "8 Jan 1999",
    "1999 Jan 08",
    "99-Jan-08",
    "08-Jan-99",
    "Jan-08-99",
    "1999-Jan-08",
    "08-Jan-1999",
    "Jan-08-1999",
    "1/8/1999",
    "1/18/1999",
    "18/1/1999",
    "01/02/03",
    "19990108",
    "990108",
    "1999.008",
    "1999.8.1",
    "8.1.1999",
    "J2451187",
    "J2451187.5",
    "julian 2451187",
    "J0",
    "J2451545+03",
    "January 8, 99 BC",
    "0044-03-15 BC",
    "0099-01-08 ad",
    "0000-01-01",
    "99 08 Jan",
    "08 Jan 99",
    "Mon Jan 08 17:32:01 1999 PST",
    "Feb 10 17:32:01 1997 -0800",
    "Feb 10 17:32:01.5 1997 PST",
    "Feb 10 5:32PM 1997",
    "1997/02/10 17:32:01-0800",
    "1997-02-10 17:32:01 PDT",
    "2000-Mar-15 17:32:01 America/New_York",
    "20000316 173201",
    "1997.041 17:32:01 UTC",
    "19970210 173201 America/New_York",
    "19970710 173201 America/New_York",
    "19970710 173201 America/Does_not_exist",
    "20011225T040506.789-07",
    "2001-12-25T04:05:06+08:30",
    "2001-12-25 04:05:06+08:30:15",
    "2001-12-25 04:05:06+16",
    "2001-12-25 04:05:06 +0830",
    "J2452271T040506+08",
    "J2452271 T 040506 +08",
    "y2001m12d25",
    "y2001m12d25h04mm05s06 PST",
    "Dec 25 2001 04:05:06.789 AM",
    "2001-12-25 12:30 AM",
    "2001-12-25 12:30 pm",
    "2001-12-25 13:30 PM",
    "2001-12-25 24:00:00",
    "2001-12-25 24:00:01",
    "2001-12-25 23:59:60",
    "2001-12-25 23:59:60.5",
    "2001-12-25 23:60",
    "1997-02-29",
    "1996-02-29",
    "1999-13-01",
    "1999-01-32",
    "1999-00-10",
    "epoch",
    "infinity",
    "-infinity",
    "+infinity",
    "now",
    "now now",
    "today",
    "tomorrow",
    "yesterday",
    "today 05:00",
    "tomorrow allballs",
    "yesterday 10:00 PST",
    "allballs",
    "today at noon",
    "now on",
    "2001-01-01 at 10:00",
    "2001-01-01 10:00 Z",
    "2001-01-01 10:00 zulu",
    "2001-01-01 10:00 MSK",
    "2014-11-01 10:00 MSK",
    "2011-01-01 10:00 MSD",
    "2001-01-01 10:00 FOO",
    "2001-01-01 10:00 EST5EDT",
    "2001-07-01 10:00 EST DST",
    "2001-07-01 10:00 GMT+3",
    "2001-07-01 10:00 Europe/Berlin",
    "2001-07-01 10:00 utc",
    "2024-03-31 02:30 Europe/Berlin",
    "2024-10-27 02:30 Europe/Berlin",
    "1800-01-01 00:00 Europe/Berlin",
    "9999-12-31 23:59:59.999999",
    "12024-07-01 00:00 Europe/Berlin",
    "294276-12-31 23:59:59.999999",
    "294277-01-01",
    "4714-11-24 BC",
    "4714-11-23 BC",
    "4714-11-24 00:00:00 BC",
    "5874897-12-31",
    "5874898-01-01",
    "99999999999-01-01",
    "2000-01-01 1:2:3",
    "2000-01-01 1:2",
    "2000-01-01 1",
    "2000-01-01 1:2:3.1234567",
    "2000-01-01 12:34:56.9999999",
    "2000-01-01 .5",
    "2000-01-01  \t 10:11 ",
    "2000-01-01 10:11:12,5",
    "(2000-01-01)",
    "2000-01-01 \u{e9}",
    "2000-01-01 10:00-",
    "2000-1-1",
    "2000-1",
    "200",
    "2000",
    "20000",
    "1-1-1",
    "1 1 1",
    "70-1-1",
    "69-1-1",
    "6 9 70",
    "Sat 01 Jan 2000",
    "Saturday, January 1, 2000 at 1:00",
    "sept 5 2000",
    "2000.366",
    "2001.366",
    "2000-366",
    "2000 366",
    "a b c d e f g h i j k l m n o p q r s t u v w x y z",
    "2000-01-01 10:00 America/New_York America/New_York",
    "2000-01-01 10:00 10:00",
    "dow 5",
    "microsecond 5",
    "2000-01-01t10:00",
    "2000-01-01tt10:00",
    "t10:00",
    "10:00 t",
    "infinity 2000-01-01",
    "epoch 10:00",
    "99999999999999999999",
    "1999-01-08 04:05:06 BC",
    "04:05:06.789",
    "04:05:06",
    "04:05",
    "040506",
    "0405",
    "040506.789",
    "4:05 am",
    "4:05 PM",
    "04:05:06.789-8",
    "04:05:06-08:00",
    "04:05-08:00",
    "040506-08",
    "040506+0730",
    "040506+07:30:00",
    "04:05:06 PST",
    "04:05:06 MSK",
    "04:05:06 Europe/Berlin",
    "2003-04-12 04:05:06 America/New_York",
    "2003-04-12 04:05:06",
    "04:05:06 UTC",
    "04:05:06 Etc/GMT-3",
    "04:05:06 <+03>-3",
    "04:05:06 FOO-3",
    "24:00",
    "24:00:00.000001",
    "23:59:60",
    "25:00",
    "10:60",
    "10:00:61",
    "1:2:3:4",
    "T040506",
    "h04mm05s06",
    "-01:00",
    "10",
    "1000000",
    "2003-04-12 10:00 -08",
    "15:36:39 America/New_York",
    "15:36:39 2000-06-01 America/New_York",
];

/// Texts of spans, good and bad.
const SPANS: &[&str] = &[
    "",
    "1",
    "-1",
    "1.5",
    "01:00",
    "+02:00",
    "10 days",
    "34 years",
    "3 months",
    "-14 seconds",
    "1 day 2 hours 3 minutes 4 seconds",
    "6 years",
    "5 months 12 hours",
    "@ 1 minute",
    "@ 5 hour",
    "@ 1 minute ago",
    "1 ago",
    "1 day ago ago",
    "badly formatted interval",
    "@ 30 eons ago",
    "1 2:03:04",
    "1 day -2:03:04",
    "-1 2:03:04",
    "-1 +2:03:04",
    "1 2:03",
    "1.5 weeks",
    "1.5 months",
    "1.5 years",
    "0.1 decades",
    "1 century",
    "2 millennia",
    "1 c",
    "1 mil",
    "1 milliseconds",
    "1.5 ms",
    "100 microseconds",
    "1.5 us",
    "1 quarter",
    "1-2",
    "-1-2",
    "+1-2",
    "1-12",
    "1-2 3",
    "1-2 3 4:05:06",
    "+1-2 -3 +4:05:06.789",
    "1y 2mon 3d 4h 5m 6s",
    "1 year 2 mons 3 days 04:05:06.789",
    "1 m",
    "1 mon -1 day +02:00:00",
    "1 month 1 month",
    "1 day 1 day",
    "1 2",
    "1 second 500 ms",
    "1.5 seconds 500 ms",
    "P1Y2M3DT4H5M6S",
    "P1Y2M3W4DT5H6M7.8S",
    "P1Y",
    "PT1H",
    "PT-1H",
    "P-1Y-2M3DT-4H",
    "P0002-06-07T01:30:00",
    "P0002-06-07",
    "P0002-06",
    "P0002",
    "P00020607T013000",
    "P00020607",
    "PT10:20:30.5",
    "PT10:20",
    "PT10",
    "PT102030",
    "P1.5Y",
    "P1.5M",
    "P0.5D",
    "PT0.0000005S",
    "P1.5W",
    "P",
    "P1",
    "PT",
    "P1YT",
    "P1H",
    "P1DT",
    "PY",
    "P1e3D",
    "p1d",
    "1000000000 years",
    "178956970 years 7 months",
    "178956970 years 8 months",
    "2147483647 days",
    "2147483648 days",
    "2147483647 days 1 day",
    "-2147483648 days",
    "2562047788:00:54.775807",
    "2562047788:00:54.775808",
    "-2562047788:00:54.775808",
    "9223372036854775807 us",
    "9223372036854775808 us",
    "-9223372036854775808 us",
    "0.1 millennium",
    "0.5 month",
    "0.000001 month",
    "1.0000000000001 day",
    "10:00:60",
    "10:60",
    "1:2:3.5",
    "1:2.5",
    ".5 seconds",
    "5. seconds",
    "1 hour 01:00",
    "01:00 1 day",
    "1 day 01:00 2 mons",
    "-1 day -01:00",
    "-1:00",
    "- 1:00",
    "2 w",
    "infinity",
    "epoch",
    "1 timezone",
    "1 day at",
    "\u{e9}",
    "1 year 1",
    "-0.1 seconds",
    "-1.5 days",
    "@ 1 year 2 mons -3 days 4 hours ago",
];

const UNITS: &[&str] = &[
    "microseconds",
    "milliseconds",
    "second",
    "minute",
    "hour",
    "day",
    "week",
    "month",
    "quarter",
    "year",
    "decade",
    "century",
    "millennium",
    "julian",
    "isoyear",
    "isodow",
    "dow",
    "doy",
    "epoch",
    "timezone",
    "timezone_hour",
    "timezone_minute",
    "HOUR",
    "now",
    "jan",
    "ago",
    "foo",
    "",
];

const DATES: &[&str] = &[
    "2024-02-29",
    "2000-01-01",
    "2001-01-01",
    "1999-12-31",
    "2020-12-31",
    "2021-01-03",
    "0001-01-01",
    "0001-12-31 BC",
    "0100-06-15 BC",
    "0011-06-15 BC",
    "1001-06-15 BC",
    "4713-01-01 BC",
    "9999-12-31",
    "infinity",
    "-infinity",
];

const TIMESTAMPS: &[&str] = &[
    "2024-02-29 12:34:56.789012",
    "2000-01-01 00:00:00",
    "2000-12-31 23:59:59.999999",
    "1999-03-28 02:30:00.5",
    "2024-10-27 02:30:00",
    "2024-11-03 01:30:00",
    "2024-03-10 02:30:00",
    "1880-05-05 05:05:05",
    "0001-12-31 00:00:01 BC",
    "0044-03-15 10:00:00.25 BC",
    "0012-01-01 BC",
    "4713-01-01 00:00 BC",
    "30000-07-04 13:00",
    "294276-12-31 23:59:59.999999",
    "infinity",
    "-infinity",
];

const INTERVALS: &[&str] = &[
    "0",
    "1 day",
    "-1 mon",
    "1 year 2 mons 3 days 04:05:06.789",
    "-00:00:01",
    "-1 year -2 mons +3 days -04:05:06.789",
    "100 years",
    "1 mon -1 day +02:00:00",
    "25:00:00.000001",
    "2562047788:00:54.775807",
    "178956970 years 7 mons 2147483647 days",
    "-178956970 years -8 mons -2147483648 days",
    "00:00:01",
    "-0.5 seconds",
    "1-2",
    "40 days 26:00",
    "-35 days 30:00",
];

const TIMES: &[&str] = &["00:00", "12:34:56.789", "23:59:59.999999", "24:00"];

const ZONED_TIMES: &[&str] = &[
    "00:00+00",
    "12:34:56.789-08",
    "23:59:59.999999+05:30:15",
    "24:00-15:59",
];

const ZONES: &[&str] = &[
    "UTC",
    "utc",
    "America/New_York",
    "america/new_york",
    "Europe/Dublin",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "PST",
    "pdt",
    "MSK",
    "MSD",
    "ART",
    "LMT",
    "EST5EDT",
    "FOO3BAR",
    "FOO3BAR,M3.2.0/3,M10.5.0",
    "FOO+3:30",
    "<+03>-3",
    "+3",
    "-3:30",
    "5",
    "05:30",
    "Z",
    "GMT",
    "GMT+2",
    "Nowhere/Else",
    "",
    "posix/Europe/Berlin",
    "+99",
];

const PATTERNS: &[&str] = &[
    "DAY Day day DY Dy dy MONTH Month month RM MON Mon mon",
    "FMDAY FMDay FMday FMMONTH FMMonth FMmonth FMRM rm",
    "Y,YYY YYYY YYY YY Y CC Q MM WW DDD DD D J",
    "FMY,YYY FMYYYY FMYYY FMYY FMY FMCC FMQ FMMM FMWW FMDDD FMDD FMD FMJ",
    "HH HH12 HH24 MI SS SSSS SSSSS AM A.M. am p.m.",
    "FMHH FMHH12 FMHH24 FMMI FMSS FMSSSS",
    "\"HH:MI:SS is\" HH:MI:SS \"\\\"text between quote marks\\\"\"",
    "HH24--text--MI--text--SS",
    "YYYYTH YYYYth Jth DDTH ddth HH24th",
    "YYYY A.D. YYYY a.d. YYYY bc HH:MI:SS P.M. HH:MI:SS p.m. HH:MI:SS pm",
    "IYYY IYY IY I IW IDDD ID",
    "FMIYYY FMIYY FMIY FMI FMIW FMIDDD FMID",
    "MS US FF1 FF2 FF3 FF4 FF5 FF6 ff1 MSth FF2TH",
    "TZ tz TZH TZM OF FMOF",
    "TMMonth TMday TMMON TMDy",
    "\\YYYY \\\"YYYY foo \u{e9} W",
    "YYYYSP DDSP",
    "FX YYYY fm MM",
    "HH24:MI:SS.US",
    "YYYY-MM-DD\"T\"HH24:MI:SS",
    "xyz\"unclosed YYYY",
    "FM",
    "TM",
];

const READ: &[(&str, &str)] = &[
    ("0097/Feb/16 --> 08:14:30", "YYYY/Mon/DD --> HH:MI:SS"),
    ("97/2/16 8:14:30", "FMYYYY/FMMM/FMDD FMHH:FMMI:FMSS"),
    ("2011$03!18 23_38_15", "YYYY-MM-DD HH24:MI:SS"),
    ("1985 January 12", "YYYY FMMonth DD"),
    ("1985 FMMonth 12", "YYYY \"FMMonth\" DD"),
    ("1985 \\ 12", "YYYY \\\\ DD"),
    (
        "My birthday-> Year: 1976, Month: May, Day: 16",
        "\"My birthday-> Year:\" YYYY, \"Month:\" FMMonth, \"Day:\" DD",
    ),
    ("1,582nd VIII 21", "Y,YYYth FMRM DD"),
    (
        "15 \"text between quote marks\" 98 54 45",
        "HH24 \"\\\"text between quote marks\\\"\" YY MI SS",
    ),
    ("05121445482000", "MMDDHH24MISSYYYY"),
    ("2000January09Sunday", "YYYYFMMonthDDFMDay"),
    ("97/Feb/16", "YYMonDD"),
    ("97/Feb/16", "YY:Mon:DD"),
    ("97/Feb/16", "FXYY:Mon:DD"),
    ("97/Feb/16", "FXYY/Mon/DD"),
    ("19971116", "YYYYMMDD"),
    ("20000-1116", "YYYY-MMDD"),
    ("1997 AD 11 16", "YYYY BC MM DD"),
    ("1997 BC 11 16", "YYYY BC MM DD"),
    ("1997 A.D. 11 16", "YYYY B.C. MM DD"),
    ("9-1116", "Y-MMDD"),
    ("95-1116", "YY-MMDD"),
    ("995-1116", "YYY-MMDD"),
    ("2005426", "YYYYWWD"),
    ("2005300", "YYYYDDD"),
    ("2005527", "IYYYIWID"),
    ("005527", "IYYIWID"),
    ("05527", "IYIWID"),
    ("5527", "IIWID"),
    ("2005364", "IYYYIDDD"),
    ("20050302", "YYYYMMDD"),
    ("2005 03 02", "YYYYMMDD"),
    (" 2005 03 02", "YYYYMMDD"),
    ("  20050302", "YYYYMMDD"),
    ("2011-12-18 11:38 AM", "YYYY-MM-DD HH12:MI PM"),
    ("2011-12-18 11:38 PM", "YYYY-MM-DD HH12:MI PM"),
    ("2011-12-18 11:38 A.M.", "YYYY-MM-DD HH12:MI P.M."),
    ("2011-12-18 11:38 +05", "YYYY-MM-DD HH12:MI TZH"),
    ("2011-12-18 11:38 -05", "YYYY-MM-DD HH12:MI TZH"),
    ("2011-12-18 11:38 +05:20", "YYYY-MM-DD HH12:MI TZH:TZM"),
    ("2011-12-18 11:38 -05:20", "YYYY-MM-DD HH12:MI TZH:TZM"),
    ("2011-12-18 11:38 20", "YYYY-MM-DD HH12:MI TZM"),
    ("2011-12-18 11:38 PST", "YYYY-MM-DD HH12:MI TZ"),
    ("2011-12-18 11:38 +20", "YYYY-MM-DD HH12:MI TZH"),
    ("2018-11-02 12:34:56.025", "YYYY-MM-DD HH24:MI:SS.MS"),
    ("2018-11-02 12:34:56.123456", "YYYY-MM-DD HH24:MI:SS.FF1"),
    ("2018-11-02 12:34:56.1234", "YYYY-MM-DD HH24:MI:SS.FF4"),
    ("2018-11-02 12:34:56.123456", "YYYY-MM-DD HH24:MI:SS.FF6"),
    ("2018-11-02 12:34:56.12", "YYYY-MM-DD HH24:MI:SS.US"),
    ("44-02-01 11:12:13 BC", "YYYY-MM-DD HH24:MI:SS BC"),
    ("-44-02-01 11:12:13", "YYYY-MM-DD HH24:MI:SS"),
    ("-44-02-01 11:12:13 BC", "YYYY-MM-DD HH24:MI:SS BC"),
    ("2011-12-18 23:38:15", "YYYY-MM-DD  HH24:MI:SS"),
    ("2011-12-18  23:38:15", "YYYY-MM-DD HH24:MI:SS"),
    ("2011-12-18   23:38:15", "YYYY-MM-DD  HH24:MI:SS"),
    ("2000+   JUN", "YYYY/MON"),
    ("  2000 +JUN", "YYYY/MON"),
    (" 2000 +JUN", "YYYY//MON"),
    ("2000  +JUN", "YYYY//MON"),
    ("2000 + JUN", "YYYY MON"),
    ("2000 ++ JUN", "YYYY  MON"),
    ("2000 + + JUN", "YYYY  MON"),
    ("2000 + + JUN", "YYYY   MON"),
    ("2000 -10", "YYYY TZH"),
    ("2000 -10", "YYYY  TZH"),
    ("2011 12  18", "YYYY MM DD"),
    ("2011 12  18", "YYYY MM  DD"),
    ("2011 12  18", "YYYYxMMxDD"),
    ("2011x 12x 18", "YYYYxMMxDD"),
    ("2011 x12 x18", "YYYYxMMxDD"),
    ("2005-02-29", "YYYY-MM-DD"),
    ("2005-1-12 24:00:00", "YYYY-MM-DD HH24:MI:SS"),
    ("2000 366", "YYYY DDD"),
    ("2001 366", "YYYY DDD"),
    ("2001 0", "YYYY DDD"),
    ("50", "DDD"),
    ("21 99", "CC YY"),
    ("20 5 BC", "CC YY BC"),
    ("19", "CC"),
    ("2 BC", "CC BC"),
    ("2451187", "J"),
    ("0", "J"),
    ("-5", "J"),
    ("86399", "SSSS"),
    ("3661", "SSSSS"),
    ("12:00", "HH12:MI"),
    ("00:10", "HH12:MI"),
    ("13:00", "HH12:MI"),
    ("13:00 pm", "HH24:MI am"),
    ("2000 Foo", "YYYY Mon"),
    ("20x0", "YYYY"),
    ("199", "YYYYMM"),
    ("1997 5 32", "YYYY MM DD"),
    ("1997 3", "YYYY Q"),
    ("99999999999", "FMYYYY"),
    ("2000 1 2", "YYYY IW ID"),
    ("1999 2000", "YYYY YYYY"),
    ("1999 1999", "YYYY YYYY"),
    ("10 11", "MM MM"),
    ("2000 3 W", "YYYY W"),
    ("2000 02 3", "YYYY MM W"),
    ("Saturday 2000", "Day YYYY"),
    ("sat 2000-05", "dy YYYY-MM"),
    ("iv 2000", "rm YYYY"),
    ("2000 xii", "YYYY RM"),
    ("1 2", "D ID"),
    ("  pad", "YYYY"),
    ("", "YYYY"),
    ("2000-01-01", ""),
    ("2000\u{e9}05", "YYYY\u{e9}MM"),
    ("10 2000", "foo MM YYYY"),
    ("5874898-01-01", "FMYYYY-MM-DD"),
    ("5874897-12-31", "FMYYYY-MM-DD"),
    ("300000-12-31", "FMYYYY-MM-DD"),
    ("4714-11-24 BC", "YYYY-MM-DD BC"),
    ("4714-11-23 BC", "YYYY-MM-DD BC"),
    ("1st 2nd 2000", "DDth MMth YYYY"),
    ("2,024 05", "Y,YYY MM"),
    ("x,024", "Y,YYY"),
    ("12 ff 5", "HH24 ff SS"),
];

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The oracle and a session of ours with its settings.
struct Pair {
    client: Client,
    session: Session,
    report: Vec<String>,
    calls: usize,
}

impl Pair {
    async fn new() -> Option<Self> {
        let Ok(place) = std::env::var("ORACLE") else {
            eprintln!("skipped: ORACLE=host:port names no PostgreSQL");
            return None;
        };
        let (host, port) = place.split_once(':').expect("host:port");
        let parameters = format!("host={host} port={port} user=postgres dbname=postgres");
        let (client, connection) = tokio_postgres::connect(&parameters, NoTls)
            .await
            .expect("the oracle");
        tokio::spawn(connection);
        let session = Session {
            settings: Settings::default(),
            now: 0,
        };
        Some(Self {
            client,
            session,
            report: Vec::new(),
            calls: 0,
        })
    }

    async fn set(
        &mut self,
        time_zone: &str,
        (style, style_name): (DateStyle, &str),
        (order, order_name): (DateOrder, &str),
        (spans, spans_name): (IntervalStyle, &str),
    ) {
        let sql = format!(
            "rollback; set timezone = '{time_zone}'; set datestyle = '{style_name}, {order_name}'; \
             set intervalstyle = '{spans_name}'; begin"
        );
        self.client.batch_execute(&sql).await.expect("settings");
        let sql = "select (extract(epoch from now()) * 1000000)::bigint - 946684800000000";
        let now = self.ask(sql).await.expect("a time").expect("a time");
        self.session.now = now.parse().expect("a number");
        let settings = &mut self.session.settings;
        settings.time_zone = zone::named(time_zone).expect("a zone");
        settings.date_style = style;
        settings.date_order = order;
        settings.interval_style = spans;
    }

    async fn ask(&self, sql: &str) -> Result<Option<String>, String> {
        self.client
            .batch_execute("savepoint s")
            .await
            .map_err(|error| error.to_string())?;
        let answer = self.client.simple_query(sql).await;
        self.client
            .batch_execute("rollback to s; release s")
            .await
            .map_err(|error| error.to_string())?;
        match answer {
            Ok(messages) => Ok(messages.iter().find_map(|message| match message {
                SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                _ => None,
            })),
            Err(error) => match error.as_db_error() {
                Some(error) => Err(format!("{}: {}", error.code().code(), error.message())),
                None => Err(error.to_string()),
            },
        }
    }

    fn compare(
        &mut self,
        sql: &str,
        theirs: &Result<Option<String>, String>,
        ours: Result<Option<String>>,
    ) {
        self.calls += 1;
        let ours = ours.map_err(|error| format!("{}: {}", error.sqlstate, error.message));
        if *theirs != ours {
            let settings = &self.session.settings;
            self.report.push(format!(
                "{sql}\n    PostgreSQL {theirs:?}\n    ours       {ours:?}    ({:?} {:?} {:?} {:?})",
                settings.time_zone.iana_name(),
                settings.date_style,
                settings.date_order,
                settings.interval_style
            ));
        }
    }

    /// Reads and shows a text as a type.
    async fn text(&mut self, oid: u32, text: &str, modifier: i32) {
        let sql = format!(
            "select {}::{}",
            quoted(text),
            types::format_type(oid, modifier)
        );
        let theirs = self.ask(&sql).await;
        let ours = {
            let call = Call::new(&self.session, &[], oid);
            types::input(&call, oid, text, modifier)
                .and_then(|value| types::to_text(&call, oid, &value).map(Some))
        };
        self.compare(&sql, &theirs, ours);
    }

    /// Calls a function with texts of its arguments.
    async fn call(&mut self, name: &str, arguments: &[(u32, &str)]) {
        let typed: Vec<_> = arguments
            .iter()
            .map(|(oid, text)| format!("{}::{}", quoted(text), types::format_type(*oid, -1)))
            .collect();
        let sql = format!("select pg_catalog.\"{name}\"({})", typed.join(", "));
        let theirs = self.ask(&sql).await;
        let oids: Vec<_> = arguments.iter().map(|(oid, _)| *oid).collect();
        let function = functions::named(name)
            .iter()
            .find(|function| function.arguments == oids)
            .expect("a function");
        let ours = {
            let call = Call::new(&self.session, &oids, function.result);
            let run = || {
                let mut values = Vec::new();
                for (oid, text) in arguments {
                    values.push(match *oid {
                        ids::TEXT => Datum::text(*text),
                        ids::FLOAT8 => Datum::Float8(text.parse().expect("a number")),
                        ids::INT4 => Datum::Int4(text.parse().expect("a number")),
                        oid => types::input(&call, oid, text, -1)?,
                    });
                }
                let Body::Row(body) = function.body else {
                    panic!("a set")
                };
                match body(&call, &values)? {
                    Datum::Null => Ok(None),
                    Datum::Text(text) => Ok(Some(text.to_string())),
                    value => types::to_text(&call, function.result, &value).map(Some),
                }
            };
            run()
        };
        self.compare(&sql, &theirs, ours);
    }

    fn finish(self) {
        eprintln!("{} calls, {} different", self.calls, self.report.len());
        assert!(self.report.is_empty(), "\n{}", self.report.join("\n"));
    }
}

const STYLES: [(DateStyle, &str); 4] = [
    (DateStyle::Iso, "ISO"),
    (DateStyle::Sql, "SQL"),
    (DateStyle::Postgres, "Postgres"),
    (DateStyle::German, "German"),
];
const ORDERS: [(DateOrder, &str); 3] = [
    (DateOrder::Mdy, "MDY"),
    (DateOrder::Dmy, "DMY"),
    (DateOrder::Ymd, "YMD"),
];
const SPAN_STYLES: [(IntervalStyle, &str); 4] = [
    (IntervalStyle::Postgres, "postgres"),
    (IntervalStyle::PostgresVerbose, "postgres_verbose"),
    (IntervalStyle::SqlStandard, "sql_standard"),
    (IntervalStyle::Iso8601, "iso_8601"),
];

#[tokio::test]
async fn moments_are_read_and_written() {
    let Some(mut pair) = Pair::new().await else {
        return;
    };
    for (zone, order) in ["UTC", "America/Los_Angeles", "Europe/Moscow"]
        .iter()
        .zip(ORDERS)
    {
        pair.set(zone, STYLES[0], order, SPAN_STYLES[0]).await;
        for text in MOMENTS {
            for oid in [
                ids::DATE,
                ids::TIMESTAMP,
                ids::TIMESTAMPTZ,
                ids::TIME,
                ids::TIMETZ,
            ] {
                pair.text(oid, text, -1).await;
            }
        }
    }
    for style in STYLES {
        for (zone, order) in ["Asia/Kathmandu", "America/New_York", "Asia/Tokyo"]
            .iter()
            .zip(ORDERS)
        {
            pair.set(zone, style, order, SPAN_STYLES[0]).await;
            for text in TIMESTAMPS {
                pair.text(ids::TIMESTAMP, text, -1).await;
                pair.text(ids::TIMESTAMPTZ, text, -1).await;
                pair.text(ids::DATE, text, -1).await;
                pair.text(ids::TIMESTAMP, text, 2).await;
                pair.text(ids::TIMESTAMPTZ, text, 0).await;
            }
        }
    }
    pair.finish();
}

#[tokio::test]
async fn spans_are_read_and_written() {
    let Some(mut pair) = Pair::new().await else {
        return;
    };
    for style in SPAN_STYLES {
        pair.set("UTC", STYLES[0], ORDERS[0], style).await;
        for text in SPANS.iter().chain(INTERVALS) {
            pair.text(ids::INTERVAL, text, -1).await;
        }
    }
    let all = types::by_oid(ids::INTERVAL).expect("interval");
    let modifier_in = all.modifier_in.expect("modifiers");
    pair.set("UTC", STYLES[0], ORDERS[0], SPAN_STYLES[0]).await;
    let bits = |bits: &[i32]| bits.iter().map(|bit| 1 << bit).sum::<i32>();
    let fields = [
        bits(&[2]),
        bits(&[1]),
        bits(&[3]),
        bits(&[10]),
        bits(&[11]),
        bits(&[12]),
        bits(&[2, 1]),
        bits(&[3, 10]),
        bits(&[3, 10, 11]),
        bits(&[3, 10, 11, 12]),
        bits(&[10, 11]),
        bits(&[10, 11, 12]),
        bits(&[11, 12]),
        0x7fff,
    ];
    for fields in fields {
        let mut modifiers = vec![modifier_in(&[fields]).expect("a modifier")];
        if fields & (1 << 12) != 0 {
            modifiers.push(modifier_in(&[fields, 1]).expect("a modifier"));
        }
        for modifier in modifiers {
            for text in SPANS.iter().chain(INTERVALS) {
                pair.text(ids::INTERVAL, text, modifier).await;
            }
        }
    }
    pair.finish();
}

#[tokio::test]
async fn parts_of_moments_and_spans() {
    let Some(mut pair) = Pair::new().await else {
        return;
    };
    let lists = [
        (ids::DATE, DATES),
        (ids::TIMESTAMP, TIMESTAMPS),
        (ids::TIMESTAMPTZ, TIMESTAMPS),
        (ids::INTERVAL, INTERVALS),
        (ids::TIME, TIMES),
        (ids::TIMETZ, ZONED_TIMES),
    ];
    for zone in ["UTC", "Asia/Kathmandu", "America/New_York"] {
        pair.set(zone, STYLES[0], ORDERS[0], SPAN_STYLES[0]).await;
        for unit in UNITS {
            for (oid, texts) in lists {
                for text in texts {
                    pair.call("extract", &[(ids::TEXT, unit), (oid, text)])
                        .await;
                    pair.call("date_part", &[(ids::TEXT, unit), (oid, text)])
                        .await;
                    if matches!(oid, ids::TIMESTAMP | ids::TIMESTAMPTZ | ids::INTERVAL) {
                        pair.call("date_trunc", &[(ids::TEXT, unit), (oid, text)])
                            .await;
                    }
                }
            }
        }
        for text in TIMESTAMPS {
            for zone in ZONES {
                for unit in ["day", "hour", "week", "foo"] {
                    let arguments = [
                        (ids::TEXT, unit),
                        (ids::TIMESTAMPTZ, *text),
                        (ids::TEXT, *zone),
                    ];
                    pair.call("date_trunc", &arguments).await;
                }
            }
        }
    }
    pair.finish();
}

#[tokio::test]
async fn zones() {
    let Some(mut pair) = Pair::new().await else {
        return;
    };
    for zone in ["UTC", "Europe/Dublin", "America/New_York"] {
        pair.set(zone, STYLES[0], ORDERS[0], SPAN_STYLES[0]).await;
        for zone in ZONES {
            for text in TIMESTAMPS {
                pair.call("timezone", &[(ids::TEXT, zone), (ids::TIMESTAMP, text)])
                    .await;
                pair.call("timezone", &[(ids::TEXT, zone), (ids::TIMESTAMPTZ, text)])
                    .await;
            }
            for text in ZONED_TIMES {
                pair.call("timezone", &[(ids::TEXT, zone), (ids::TIMETZ, text)])
                    .await;
            }
            let mut arguments = vec![(ids::INT4, "2014"), (ids::INT4, "7")];
            arguments.extend([(ids::INT4, "10"), (ids::INT4, "2"), (ids::INT4, "30")]);
            arguments.extend([(ids::FLOAT8, "5.5"), (ids::TEXT, *zone)]);
            pair.call("make_timestamptz", &arguments).await;
        }
        for text in INTERVALS {
            pair.call(
                "timezone",
                &[(ids::INTERVAL, text), (ids::TIMESTAMP, TIMESTAMPS[0])],
            )
            .await;
            pair.call(
                "timezone",
                &[(ids::INTERVAL, text), (ids::TIMETZ, ZONED_TIMES[1])],
            )
            .await;
            for timestamp in TIMESTAMPS {
                for name in ["timestamptz_pl_interval", "timestamptz_mi_interval"] {
                    pair.call(
                        name,
                        &[(ids::TIMESTAMPTZ, timestamp), (ids::INTERVAL, text)],
                    )
                    .await;
                }
            }
        }
        for text in TIMESTAMPS {
            pair.call("timestamp", &[(ids::TIMESTAMPTZ, text)]).await;
            pair.call("timestamptz", &[(ids::TIMESTAMP, text)]).await;
            pair.call("date", &[(ids::TIMESTAMPTZ, text)]).await;
            pair.call("time", &[(ids::TIMESTAMPTZ, text)]).await;
            pair.call("timetz", &[(ids::TIMESTAMPTZ, text)]).await;
            pair.call("age", &[(ids::TIMESTAMPTZ, text)]).await;
            pair.call("age", &[(ids::TIMESTAMP, text)]).await;
            for other in TIMESTAMPS {
                pair.call(
                    "age",
                    &[(ids::TIMESTAMPTZ, text), (ids::TIMESTAMPTZ, other)],
                )
                .await;
                let pair_of = [(ids::TIMESTAMPTZ, *text), (ids::TIMESTAMP, *other)];
                pair.call("timestamptz_cmp_timestamp", &pair_of).await;
            }
            for date in DATES {
                let pair_of = [(ids::TIMESTAMPTZ, *text), (ids::DATE, *date)];
                pair.call("timestamptz_cmp_date", &pair_of).await;
            }
        }
        for text in DATES {
            pair.call("timestamptz", &[(ids::DATE, text)]).await;
        }
        for text in TIMES {
            pair.call("timetz", &[(ids::TIME, text)]).await;
        }
    }
    pair.finish();
}

#[tokio::test]
async fn patterns() {
    let Some(mut pair) = Pair::new().await else {
        return;
    };
    for zone in ["UTC", "Asia/Kathmandu", "America/New_York"] {
        pair.set(zone, STYLES[0], ORDERS[0], SPAN_STYLES[0]).await;
        let whole = PATTERNS.iter().copied();
        for pattern in whole.chain(PATTERNS.iter().flat_map(|pattern| pattern.split(' '))) {
            for text in TIMESTAMPS {
                pair.call("to_char", &[(ids::TIMESTAMP, text), (ids::TEXT, pattern)])
                    .await;
                pair.call("to_char", &[(ids::TIMESTAMPTZ, text), (ids::TEXT, pattern)])
                    .await;
            }
            for text in INTERVALS {
                pair.call("to_char", &[(ids::INTERVAL, text), (ids::TEXT, pattern)])
                    .await;
            }
        }
        for (text, pattern) in READ {
            pair.call("to_timestamp", &[(ids::TEXT, text), (ids::TEXT, pattern)])
                .await;
            pair.call("to_date", &[(ids::TEXT, text), (ids::TEXT, pattern)])
                .await;
        }
    }
    pair.finish();
}

#[tokio::test]
async fn numbers_make_moments() {
    let Some(mut pair) = Pair::new().await else {
        return;
    };
    pair.set("UTC", STYLES[0], ORDERS[0], SPAN_STYLES[0]).await;
    for (year, month, day) in [
        ("2013", "7", "15"),
        ("-44", "3", "15"),
        ("0", "7", "15"),
        ("2013", "2", "30"),
        ("2013", "13", "1"),
        ("-44", "13", "1"),
        ("-2147483648", "1", "1"),
        ("2147483647", "1", "1"),
        ("5874898", "1", "1"),
        ("300000", "1", "1"),
        ("-4714", "11", "24"),
        ("-4714", "11", "23"),
    ] {
        let date = [(ids::INT4, year), (ids::INT4, month), (ids::INT4, day)];
        pair.call("make_date", &date).await;
        for (hour, minute, second) in [
            ("8", "20", "0"),
            ("24", "0", "0"),
            ("24", "0", "0.1"),
            ("10", "55", "100.1"),
            ("23", "59", "60"),
            ("-1", "59", "60"),
            ("1", "-9", "1e30"),
            ("1", "2", "3.9999999"),
        ] {
            let time = [
                (ids::INT4, hour),
                (ids::INT4, minute),
                (ids::FLOAT8, second),
            ];
            pair.call("make_time", &time).await;
            let all: Vec<_> = date.iter().chain(&time).copied().collect();
            pair.call("make_timestamp", &all).await;
            pair.call("make_timestamptz", &all).await;
        }
    }
    for seconds in [
        "0",
        "1262349296.7890123",
        "-1e12",
        "1e15",
        "-210866803200",
        "-210866803201",
        "9224318015999",
        "9224318016000",
    ] {
        pair.call("to_timestamp", &[(ids::FLOAT8, seconds)]).await;
    }
    for text in INTERVALS {
        for name in [
            "justify_hours",
            "justify_days",
            "justify_interval",
            "interval_um",
        ] {
            pair.call(name, &[(ids::INTERVAL, text)]).await;
        }
        for factor in ["0", "1.5", "-0.3", "1e10", "0.0001", "3"] {
            pair.call(
                "interval_mul",
                &[(ids::INTERVAL, text), (ids::FLOAT8, factor)],
            )
            .await;
            pair.call(
                "interval_div",
                &[(ids::INTERVAL, text), (ids::FLOAT8, factor)],
            )
            .await;
        }
        for other in INTERVALS {
            for name in ["interval_pl", "interval_mi", "interval_cmp"] {
                pair.call(name, &[(ids::INTERVAL, text), (ids::INTERVAL, other)])
                    .await;
            }
        }
        for (timestamp, origin) in [
            ("2020-02-11 15:44:17.71393", "2001-01-01"),
            ("1960-02-11 15:44:17.71393", "2001-01-01"),
            ("infinity", "2001-01-01"),
            ("2020-02-11", "infinity"),
            ("4714-11-24 BC", "294276-12-31"),
        ] {
            let arguments = [
                (ids::INTERVAL, *text),
                (ids::TIMESTAMP, timestamp),
                (ids::TIMESTAMP, origin),
            ];
            pair.call("date_bin", &arguments).await;
        }
        for timestamp in TIMESTAMPS {
            for name in ["timestamp_pl_interval", "timestamp_mi_interval"] {
                pair.call(name, &[(ids::TIMESTAMP, timestamp), (ids::INTERVAL, text)])
                    .await;
            }
        }
    }
    pair.finish();
}

/// The rows of a function, each as text.
fn rows(session: &Session, name: &str, arguments: &[(u32, &str)]) -> Result<Vec<String>> {
    let oids: Vec<_> = arguments.iter().map(|(oid, _)| *oid).collect();
    let function = functions::named(name)
        .iter()
        .find(|function| function.arguments == oids)
        .expect("a function");
    let call = Call::new(session, &oids, function.result);
    let mut values = Vec::new();
    for (oid, text) in arguments {
        values.push(types::input(&call, *oid, text, -1)?);
    }
    let Body::Set(body) = function.body else {
        panic!("not a set")
    };
    let show = |oid: u32, value: &Datum| match value {
        Datum::Text(text) => Ok(text.to_string()),
        Datum::Bool(value) => Ok(value.to_string()),
        value => types::to_text(&call, oid, value),
    };
    body(&call, &values)?
        .iter()
        .map(|row| match row {
            Datum::Record(record) => {
                let values = record.types.iter().zip(&record.values);
                let values: Result<Vec<_>> = values.map(|(oid, value)| show(*oid, value)).collect();
                values.map(|values| values.join(" "))
            }
            value => show(function.result, value),
        })
        .collect()
}

#[tokio::test]
async fn series_and_lists_of_zones() {
    let Some(mut pair) = Pair::new().await else {
        return;
    };
    pair.set("America/New_York", STYLES[0], ORDERS[0], SPAN_STYLES[0])
        .await;
    for (start, end, step) in [
        ("2024-03-09 02:30", "2024-03-12", "1 day"),
        ("2024-03-09 02:30", "2024-03-10 12:00", "90 minutes"),
        ("2024-03-31", "2023-10-01", "-1 month"),
        ("2024-01-31", "2024-06-01", "1 mon"),
        ("2024-01-31", "2024-06-01", "-1 mon"),
        ("2024-01-31", "2024-06-01", "0"),
        ("2024-01-31", "2024-06-01", "1 mon -30 days"),
        ("294276-12-30", "infinity", "1 day"),
    ] {
        for (oid, name) in [
            (ids::TIMESTAMP, "timestamp"),
            (ids::TIMESTAMPTZ, "timestamptz"),
        ] {
            let sql = format!(
                "select string_agg(x::text, ',') from generate_series('{start}'::{name}, '{end}', '{step}') x"
            );
            let theirs = pair.ask(&sql).await;
            let arguments = [(oid, start), (oid, end), (ids::INTERVAL, step)];
            let ours = rows(&pair.session, "generate_series", &arguments)
                .map(|rows| (!rows.is_empty()).then(|| rows.join(",")));
            pair.compare(&sql, &theirs, ours);
        }
    }
    let sql = "select string_agg(concat_ws(' ', abbrev, utc_offset, is_dst::text), ',') from pg_timezone_abbrevs";
    let theirs = pair.ask(sql).await;
    let ours = rows(&pair.session, "pg_timezone_abbrevs", &[]).map(|rows| Some(rows.join(",")));
    pair.compare(sql, &theirs, ours);
    let names = rows(&pair.session, "pg_timezone_names", &[]).expect("zones");
    assert!(names.len() > 400, "{}", names.len());
    let here = names
        .iter()
        .find(|name| name.starts_with("Asia/Kathmandu "));
    assert_eq!(
        here.map(String::as_str),
        Some("Asia/Kathmandu +0545 05:45:00 false")
    );
    pair.finish();
}
