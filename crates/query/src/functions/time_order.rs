//! The order of dates, times, timestamps and intervals: among themselves and
//! of dates and timestamps with each other.

use std::cmp::Ordering;

use super::Function;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::Result;
use crate::types::ids;
use crate::types::timestamp::{compare_date, compare_date_zoned, compare_zoned};

/// The functions of this file.
pub(super) static FUNCTIONS: &[Function] = &[
    Function::row(
        1092,
        "date_cmp",
        &[ids::DATE, ids::DATE],
        ids::INT4,
        date_cmp,
    ),
    Function::row(
        2344,
        "date_cmp_timestamp",
        &[ids::DATE, ids::TIMESTAMP],
        ids::INT4,
        date_cmp_timestamp,
    ),
    Function::row(
        2357,
        "date_cmp_timestamptz",
        &[ids::DATE, ids::TIMESTAMPTZ],
        ids::INT4,
        date_cmp_timestamptz,
    )
    .stable(),
    Function::row(1086, "date_eq", &[ids::DATE, ids::DATE], ids::BOOL, date_eq),
    Function::row(
        2340,
        "date_eq_timestamp",
        &[ids::DATE, ids::TIMESTAMP],
        ids::BOOL,
        date_eq_timestamp,
    ),
    Function::row(
        2353,
        "date_eq_timestamptz",
        &[ids::DATE, ids::TIMESTAMPTZ],
        ids::BOOL,
        date_eq_timestamptz,
    )
    .stable(),
    Function::row(1090, "date_ge", &[ids::DATE, ids::DATE], ids::BOOL, date_ge),
    Function::row(
        2342,
        "date_ge_timestamp",
        &[ids::DATE, ids::TIMESTAMP],
        ids::BOOL,
        date_ge_timestamp,
    ),
    Function::row(
        2355,
        "date_ge_timestamptz",
        &[ids::DATE, ids::TIMESTAMPTZ],
        ids::BOOL,
        date_ge_timestamptz,
    )
    .stable(),
    Function::row(1089, "date_gt", &[ids::DATE, ids::DATE], ids::BOOL, date_gt),
    Function::row(
        2341,
        "date_gt_timestamp",
        &[ids::DATE, ids::TIMESTAMP],
        ids::BOOL,
        date_gt_timestamp,
    ),
    Function::row(
        2354,
        "date_gt_timestamptz",
        &[ids::DATE, ids::TIMESTAMPTZ],
        ids::BOOL,
        date_gt_timestamptz,
    )
    .stable(),
    Function::row(
        1138,
        "date_larger",
        &[ids::DATE, ids::DATE],
        ids::DATE,
        date_larger,
    ),
    Function::row(1088, "date_le", &[ids::DATE, ids::DATE], ids::BOOL, date_le),
    Function::row(
        2339,
        "date_le_timestamp",
        &[ids::DATE, ids::TIMESTAMP],
        ids::BOOL,
        date_le_timestamp,
    ),
    Function::row(
        2352,
        "date_le_timestamptz",
        &[ids::DATE, ids::TIMESTAMPTZ],
        ids::BOOL,
        date_le_timestamptz,
    )
    .stable(),
    Function::row(1087, "date_lt", &[ids::DATE, ids::DATE], ids::BOOL, date_lt),
    Function::row(
        2338,
        "date_lt_timestamp",
        &[ids::DATE, ids::TIMESTAMP],
        ids::BOOL,
        date_lt_timestamp,
    ),
    Function::row(
        2351,
        "date_lt_timestamptz",
        &[ids::DATE, ids::TIMESTAMPTZ],
        ids::BOOL,
        date_lt_timestamptz,
    )
    .stable(),
    Function::row(1091, "date_ne", &[ids::DATE, ids::DATE], ids::BOOL, date_ne),
    Function::row(
        2343,
        "date_ne_timestamp",
        &[ids::DATE, ids::TIMESTAMP],
        ids::BOOL,
        date_ne_timestamp,
    ),
    Function::row(
        2356,
        "date_ne_timestamptz",
        &[ids::DATE, ids::TIMESTAMPTZ],
        ids::BOOL,
        date_ne_timestamptz,
    )
    .stable(),
    Function::row(
        1139,
        "date_smaller",
        &[ids::DATE, ids::DATE],
        ids::DATE,
        date_smaller,
    ),
    Function::row(
        1315,
        "interval_cmp",
        &[ids::INTERVAL, ids::INTERVAL],
        ids::INT4,
        interval_cmp,
    ),
    Function::row(
        1162,
        "interval_eq",
        &[ids::INTERVAL, ids::INTERVAL],
        ids::BOOL,
        interval_eq,
    ),
    Function::row(
        1166,
        "interval_ge",
        &[ids::INTERVAL, ids::INTERVAL],
        ids::BOOL,
        interval_ge,
    ),
    Function::row(
        1167,
        "interval_gt",
        &[ids::INTERVAL, ids::INTERVAL],
        ids::BOOL,
        interval_gt,
    ),
    Function::row(
        1198,
        "interval_larger",
        &[ids::INTERVAL, ids::INTERVAL],
        ids::INTERVAL,
        interval_larger,
    ),
    Function::row(
        1165,
        "interval_le",
        &[ids::INTERVAL, ids::INTERVAL],
        ids::BOOL,
        interval_le,
    ),
    Function::row(
        1164,
        "interval_lt",
        &[ids::INTERVAL, ids::INTERVAL],
        ids::BOOL,
        interval_lt,
    ),
    Function::row(
        1163,
        "interval_ne",
        &[ids::INTERVAL, ids::INTERVAL],
        ids::BOOL,
        interval_ne,
    ),
    Function::row(
        1197,
        "interval_smaller",
        &[ids::INTERVAL, ids::INTERVAL],
        ids::INTERVAL,
        interval_smaller,
    ),
    Function::row(
        1107,
        "time_cmp",
        &[ids::TIME, ids::TIME],
        ids::INT4,
        time_cmp,
    ),
    Function::row(1145, "time_eq", &[ids::TIME, ids::TIME], ids::BOOL, time_eq),
    Function::row(1105, "time_ge", &[ids::TIME, ids::TIME], ids::BOOL, time_ge),
    Function::row(1104, "time_gt", &[ids::TIME, ids::TIME], ids::BOOL, time_gt),
    Function::row(
        1377,
        "time_larger",
        &[ids::TIME, ids::TIME],
        ids::TIME,
        time_larger,
    ),
    Function::row(1103, "time_le", &[ids::TIME, ids::TIME], ids::BOOL, time_le),
    Function::row(1102, "time_lt", &[ids::TIME, ids::TIME], ids::BOOL, time_lt),
    Function::row(1106, "time_ne", &[ids::TIME, ids::TIME], ids::BOOL, time_ne),
    Function::row(
        1378,
        "time_smaller",
        &[ids::TIME, ids::TIME],
        ids::TIME,
        time_smaller,
    ),
    Function::row(
        2045,
        "timestamp_cmp",
        &[ids::TIMESTAMP, ids::TIMESTAMP],
        ids::INT4,
        timestamp_cmp,
    ),
    Function::row(
        2370,
        "timestamp_cmp_date",
        &[ids::TIMESTAMP, ids::DATE],
        ids::INT4,
        timestamp_cmp_date,
    ),
    Function::row(
        2526,
        "timestamp_cmp_timestamptz",
        &[ids::TIMESTAMP, ids::TIMESTAMPTZ],
        ids::INT4,
        timestamp_cmp_timestamptz,
    )
    .stable(),
    Function::row(
        2052,
        "timestamp_eq",
        &[ids::TIMESTAMP, ids::TIMESTAMP],
        ids::BOOL,
        timestamp_eq,
    ),
    Function::row(
        2366,
        "timestamp_eq_date",
        &[ids::TIMESTAMP, ids::DATE],
        ids::BOOL,
        timestamp_eq_date,
    ),
    Function::row(
        2522,
        "timestamp_eq_timestamptz",
        &[ids::TIMESTAMP, ids::TIMESTAMPTZ],
        ids::BOOL,
        timestamp_eq_timestamptz,
    )
    .stable(),
    Function::row(
        2056,
        "timestamp_ge",
        &[ids::TIMESTAMP, ids::TIMESTAMP],
        ids::BOOL,
        timestamp_ge,
    ),
    Function::row(
        2368,
        "timestamp_ge_date",
        &[ids::TIMESTAMP, ids::DATE],
        ids::BOOL,
        timestamp_ge_date,
    ),
    Function::row(
        2524,
        "timestamp_ge_timestamptz",
        &[ids::TIMESTAMP, ids::TIMESTAMPTZ],
        ids::BOOL,
        timestamp_ge_timestamptz,
    )
    .stable(),
    Function::row(
        2057,
        "timestamp_gt",
        &[ids::TIMESTAMP, ids::TIMESTAMP],
        ids::BOOL,
        timestamp_gt,
    ),
    Function::row(
        2367,
        "timestamp_gt_date",
        &[ids::TIMESTAMP, ids::DATE],
        ids::BOOL,
        timestamp_gt_date,
    ),
    Function::row(
        2523,
        "timestamp_gt_timestamptz",
        &[ids::TIMESTAMP, ids::TIMESTAMPTZ],
        ids::BOOL,
        timestamp_gt_timestamptz,
    )
    .stable(),
    Function::row(
        2036,
        "timestamp_larger",
        &[ids::TIMESTAMP, ids::TIMESTAMP],
        ids::TIMESTAMP,
        timestamp_larger,
    ),
    Function::row(
        2055,
        "timestamp_le",
        &[ids::TIMESTAMP, ids::TIMESTAMP],
        ids::BOOL,
        timestamp_le,
    ),
    Function::row(
        2365,
        "timestamp_le_date",
        &[ids::TIMESTAMP, ids::DATE],
        ids::BOOL,
        timestamp_le_date,
    ),
    Function::row(
        2521,
        "timestamp_le_timestamptz",
        &[ids::TIMESTAMP, ids::TIMESTAMPTZ],
        ids::BOOL,
        timestamp_le_timestamptz,
    )
    .stable(),
    Function::row(
        2054,
        "timestamp_lt",
        &[ids::TIMESTAMP, ids::TIMESTAMP],
        ids::BOOL,
        timestamp_lt,
    ),
    Function::row(
        2364,
        "timestamp_lt_date",
        &[ids::TIMESTAMP, ids::DATE],
        ids::BOOL,
        timestamp_lt_date,
    ),
    Function::row(
        2520,
        "timestamp_lt_timestamptz",
        &[ids::TIMESTAMP, ids::TIMESTAMPTZ],
        ids::BOOL,
        timestamp_lt_timestamptz,
    )
    .stable(),
    Function::row(
        2053,
        "timestamp_ne",
        &[ids::TIMESTAMP, ids::TIMESTAMP],
        ids::BOOL,
        timestamp_ne,
    ),
    Function::row(
        2369,
        "timestamp_ne_date",
        &[ids::TIMESTAMP, ids::DATE],
        ids::BOOL,
        timestamp_ne_date,
    ),
    Function::row(
        2525,
        "timestamp_ne_timestamptz",
        &[ids::TIMESTAMP, ids::TIMESTAMPTZ],
        ids::BOOL,
        timestamp_ne_timestamptz,
    )
    .stable(),
    Function::row(
        2035,
        "timestamp_smaller",
        &[ids::TIMESTAMP, ids::TIMESTAMP],
        ids::TIMESTAMP,
        timestamp_smaller,
    ),
    Function::row(
        1314,
        "timestamptz_cmp",
        &[ids::TIMESTAMPTZ, ids::TIMESTAMPTZ],
        ids::INT4,
        timestamptz_cmp,
    ),
    Function::row(
        2383,
        "timestamptz_cmp_date",
        &[ids::TIMESTAMPTZ, ids::DATE],
        ids::INT4,
        timestamptz_cmp_date,
    )
    .stable(),
    Function::row(
        2533,
        "timestamptz_cmp_timestamp",
        &[ids::TIMESTAMPTZ, ids::TIMESTAMP],
        ids::INT4,
        timestamptz_cmp_timestamp,
    )
    .stable(),
    Function::row(
        1152,
        "timestamptz_eq",
        &[ids::TIMESTAMPTZ, ids::TIMESTAMPTZ],
        ids::BOOL,
        timestamptz_eq,
    ),
    Function::row(
        2379,
        "timestamptz_eq_date",
        &[ids::TIMESTAMPTZ, ids::DATE],
        ids::BOOL,
        timestamptz_eq_date,
    )
    .stable(),
    Function::row(
        2529,
        "timestamptz_eq_timestamp",
        &[ids::TIMESTAMPTZ, ids::TIMESTAMP],
        ids::BOOL,
        timestamptz_eq_timestamp,
    )
    .stable(),
    Function::row(
        1156,
        "timestamptz_ge",
        &[ids::TIMESTAMPTZ, ids::TIMESTAMPTZ],
        ids::BOOL,
        timestamptz_ge,
    ),
    Function::row(
        2381,
        "timestamptz_ge_date",
        &[ids::TIMESTAMPTZ, ids::DATE],
        ids::BOOL,
        timestamptz_ge_date,
    )
    .stable(),
    Function::row(
        2531,
        "timestamptz_ge_timestamp",
        &[ids::TIMESTAMPTZ, ids::TIMESTAMP],
        ids::BOOL,
        timestamptz_ge_timestamp,
    )
    .stable(),
    Function::row(
        1157,
        "timestamptz_gt",
        &[ids::TIMESTAMPTZ, ids::TIMESTAMPTZ],
        ids::BOOL,
        timestamptz_gt,
    ),
    Function::row(
        2380,
        "timestamptz_gt_date",
        &[ids::TIMESTAMPTZ, ids::DATE],
        ids::BOOL,
        timestamptz_gt_date,
    )
    .stable(),
    Function::row(
        2530,
        "timestamptz_gt_timestamp",
        &[ids::TIMESTAMPTZ, ids::TIMESTAMP],
        ids::BOOL,
        timestamptz_gt_timestamp,
    )
    .stable(),
    Function::row(
        1196,
        "timestamptz_larger",
        &[ids::TIMESTAMPTZ, ids::TIMESTAMPTZ],
        ids::TIMESTAMPTZ,
        timestamptz_larger,
    ),
    Function::row(
        1155,
        "timestamptz_le",
        &[ids::TIMESTAMPTZ, ids::TIMESTAMPTZ],
        ids::BOOL,
        timestamptz_le,
    ),
    Function::row(
        2378,
        "timestamptz_le_date",
        &[ids::TIMESTAMPTZ, ids::DATE],
        ids::BOOL,
        timestamptz_le_date,
    )
    .stable(),
    Function::row(
        2528,
        "timestamptz_le_timestamp",
        &[ids::TIMESTAMPTZ, ids::TIMESTAMP],
        ids::BOOL,
        timestamptz_le_timestamp,
    )
    .stable(),
    Function::row(
        1154,
        "timestamptz_lt",
        &[ids::TIMESTAMPTZ, ids::TIMESTAMPTZ],
        ids::BOOL,
        timestamptz_lt,
    ),
    Function::row(
        2377,
        "timestamptz_lt_date",
        &[ids::TIMESTAMPTZ, ids::DATE],
        ids::BOOL,
        timestamptz_lt_date,
    )
    .stable(),
    Function::row(
        2527,
        "timestamptz_lt_timestamp",
        &[ids::TIMESTAMPTZ, ids::TIMESTAMP],
        ids::BOOL,
        timestamptz_lt_timestamp,
    )
    .stable(),
    Function::row(
        1153,
        "timestamptz_ne",
        &[ids::TIMESTAMPTZ, ids::TIMESTAMPTZ],
        ids::BOOL,
        timestamptz_ne,
    ),
    Function::row(
        2382,
        "timestamptz_ne_date",
        &[ids::TIMESTAMPTZ, ids::DATE],
        ids::BOOL,
        timestamptz_ne_date,
    )
    .stable(),
    Function::row(
        2532,
        "timestamptz_ne_timestamp",
        &[ids::TIMESTAMPTZ, ids::TIMESTAMP],
        ids::BOOL,
        timestamptz_ne_timestamp,
    )
    .stable(),
    Function::row(
        1195,
        "timestamptz_smaller",
        &[ids::TIMESTAMPTZ, ids::TIMESTAMPTZ],
        ids::TIMESTAMPTZ,
        timestamptz_smaller,
    ),
    Function::row(
        1358,
        "timetz_cmp",
        &[ids::TIMETZ, ids::TIMETZ],
        ids::INT4,
        timetz_cmp,
    ),
    Function::row(
        1352,
        "timetz_eq",
        &[ids::TIMETZ, ids::TIMETZ],
        ids::BOOL,
        timetz_eq,
    ),
    Function::row(
        1356,
        "timetz_ge",
        &[ids::TIMETZ, ids::TIMETZ],
        ids::BOOL,
        timetz_ge,
    ),
    Function::row(
        1357,
        "timetz_gt",
        &[ids::TIMETZ, ids::TIMETZ],
        ids::BOOL,
        timetz_gt,
    ),
    Function::row(
        1379,
        "timetz_larger",
        &[ids::TIMETZ, ids::TIMETZ],
        ids::TIMETZ,
        timetz_larger,
    ),
    Function::row(
        1355,
        "timetz_le",
        &[ids::TIMETZ, ids::TIMETZ],
        ids::BOOL,
        timetz_le,
    ),
    Function::row(
        1354,
        "timetz_lt",
        &[ids::TIMETZ, ids::TIMETZ],
        ids::BOOL,
        timetz_lt,
    ),
    Function::row(
        1353,
        "timetz_ne",
        &[ids::TIMETZ, ids::TIMETZ],
        ids::BOOL,
        timetz_ne,
    ),
    Function::row(
        1380,
        "timetz_smaller",
        &[ids::TIMETZ, ids::TIMETZ],
        ids::TIMETZ,
        timetz_smaller,
    ),
];

/// Comparisons by one order.
macro_rules! comparisons {
    ($order:expr; $eq:ident $ne:ident $lt:ident $le:ident $gt:ident $ge:ident $cmp:ident) => {
        fn $eq(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            Ok(Datum::Bool($order(call, &a[0], &a[1])?.is_eq()))
        }
        fn $ne(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            Ok(Datum::Bool($order(call, &a[0], &a[1])?.is_ne()))
        }
        fn $lt(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            Ok(Datum::Bool($order(call, &a[0], &a[1])?.is_lt()))
        }
        fn $le(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            Ok(Datum::Bool($order(call, &a[0], &a[1])?.is_le()))
        }
        fn $gt(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            Ok(Datum::Bool($order(call, &a[0], &a[1])?.is_gt()))
        }
        fn $ge(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            Ok(Datum::Bool($order(call, &a[0], &a[1])?.is_ge()))
        }
        fn $cmp(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            Ok(Datum::Int4($order(call, &a[0], &a[1])? as i32))
        }
    };
}

/// The greater and the smaller one by an order; of equal ones the second.
macro_rules! extremes {
    ($order:expr; $larger:ident $smaller:ident) => {
        fn $larger(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            let larger = $order(call, &a[0], &a[1])?.is_gt();
            Ok(a[usize::from(!larger)].clone())
        }
        fn $smaller(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            let smaller = $order(call, &a[0], &a[1])?.is_lt();
            Ok(a[usize::from(!smaller)].clone())
        }
    };
}

#[inline]
fn dates(_: &Call<'_>, a: &Datum, b: &Datum) -> Result<Ordering> {
    Ok(a.as_date().cmp(&b.as_date()))
}

#[inline]
fn times(_: &Call<'_>, a: &Datum, b: &Datum) -> Result<Ordering> {
    Ok(a.as_time().cmp(&b.as_time()))
}

#[inline]
fn zoned_times(_: &Call<'_>, a: &Datum, b: &Datum) -> Result<Ordering> {
    Ok(a.as_timetz().order(&b.as_timetz()))
}

#[inline]
fn timestamps(_: &Call<'_>, a: &Datum, b: &Datum) -> Result<Ordering> {
    Ok(a.as_timestamp().cmp(&b.as_timestamp()))
}

#[inline]
fn zoned_timestamps(_: &Call<'_>, a: &Datum, b: &Datum) -> Result<Ordering> {
    Ok(a.as_timestamptz().cmp(&b.as_timestamptz()))
}

#[inline]
fn intervals(_: &Call<'_>, a: &Datum, b: &Datum) -> Result<Ordering> {
    Ok(a.as_interval().order(&b.as_interval()))
}

fn date_and_timestamp(_: &Call<'_>, a: &Datum, b: &Datum) -> Result<Ordering> {
    Ok(compare_date(a.as_date(), b.as_timestamp()))
}

fn timestamp_and_date(_: &Call<'_>, a: &Datum, b: &Datum) -> Result<Ordering> {
    Ok(compare_date(b.as_date(), a.as_timestamp()).reverse())
}

fn date_and_zoned(call: &Call<'_>, a: &Datum, b: &Datum) -> Result<Ordering> {
    let order = compare_date_zoned(a.as_date(), b.as_timestamptz(), call.settings());
    Ok(order)
}

fn zoned_and_date(call: &Call<'_>, a: &Datum, b: &Datum) -> Result<Ordering> {
    date_and_zoned(call, b, a).map(Ordering::reverse)
}

fn timestamp_and_zoned(call: &Call<'_>, a: &Datum, b: &Datum) -> Result<Ordering> {
    compare_zoned(a.as_timestamp(), b.as_timestamptz(), call.settings())
}

fn zoned_and_timestamp(call: &Call<'_>, a: &Datum, b: &Datum) -> Result<Ordering> {
    timestamp_and_zoned(call, b, a).map(Ordering::reverse)
}

comparisons!(dates; date_eq date_ne date_lt date_le date_gt date_ge date_cmp);
comparisons!(times; time_eq time_ne time_lt time_le time_gt time_ge time_cmp);
comparisons!(zoned_times; timetz_eq timetz_ne timetz_lt timetz_le timetz_gt timetz_ge timetz_cmp);
comparisons!(timestamps;
    timestamp_eq timestamp_ne timestamp_lt timestamp_le timestamp_gt timestamp_ge timestamp_cmp);
comparisons!(zoned_timestamps;
    timestamptz_eq timestamptz_ne timestamptz_lt timestamptz_le timestamptz_gt timestamptz_ge
    timestamptz_cmp);
comparisons!(intervals;
    interval_eq interval_ne interval_lt interval_le interval_gt interval_ge interval_cmp);
comparisons!(date_and_timestamp;
    date_eq_timestamp date_ne_timestamp date_lt_timestamp date_le_timestamp date_gt_timestamp
    date_ge_timestamp date_cmp_timestamp);
comparisons!(timestamp_and_date;
    timestamp_eq_date timestamp_ne_date timestamp_lt_date timestamp_le_date timestamp_gt_date
    timestamp_ge_date timestamp_cmp_date);
comparisons!(date_and_zoned;
    date_eq_timestamptz date_ne_timestamptz date_lt_timestamptz date_le_timestamptz
    date_gt_timestamptz date_ge_timestamptz date_cmp_timestamptz);
comparisons!(zoned_and_date;
    timestamptz_eq_date timestamptz_ne_date timestamptz_lt_date timestamptz_le_date
    timestamptz_gt_date timestamptz_ge_date timestamptz_cmp_date);
comparisons!(timestamp_and_zoned;
    timestamp_eq_timestamptz timestamp_ne_timestamptz timestamp_lt_timestamptz
    timestamp_le_timestamptz timestamp_gt_timestamptz timestamp_ge_timestamptz
    timestamp_cmp_timestamptz);
comparisons!(zoned_and_timestamp;
    timestamptz_eq_timestamp timestamptz_ne_timestamp timestamptz_lt_timestamp
    timestamptz_le_timestamp timestamptz_gt_timestamp timestamptz_ge_timestamp
    timestamptz_cmp_timestamp);

extremes!(dates; date_larger date_smaller);
extremes!(times; time_larger time_smaller);
extremes!(zoned_times; timetz_larger timetz_smaller);
extremes!(timestamps; timestamp_larger timestamp_smaller);
extremes!(zoned_timestamps; timestamptz_larger timestamptz_smaller);
extremes!(intervals; interval_larger interval_smaller);
