//! `TimeZone`, `DateStyle`, `IntervalStyle` and their like on both paths, and types whose
//! modifier says how many digits of a second they keep. What is expected was printed by
//! PostgreSQL 15.

use crate::fixture::{Connection, Server};

const TABLE: &str = "create table st (id int primary key, z timestamptz, t timestamp, d date, \
     i interval, f4 float4, f8 float8, b bytea, za timestamptz[])";

fn filled(server: &Server, settings: &str) -> Connection {
    let mut client = server.connect();
    client.query(TABLE);
    client.query(settings);
    let row = "insert into st values (1, '2024-07-01 12:00', '2024-07-01 12:00', '2024-07-01', \
               '1 year 2 mons 3 days 04:05:06.789', 3.14159274, 12345678.123456789, '\\x00ff4142', \
               '{2024-07-01 12:00}'), (2, '2024-03-30 12:00', '2024-03-30 12:00', '2024-03-30', \
               '-1 day -02:03:04', 1e10, 0.1, 'abc', null)";
    assert_eq!(client.tag(row), "INSERT 0 2");
    client
}

/// The rows of a query by either path.
fn both(client: &mut Connection, sql: &str, expected: &[&str]) {
    for path in ["auto", "analytical"] {
        client.query(&format!("set thermocline.path = {path}"));
        assert_eq!(client.rows(sql), expected, "{sql}, {path}");
    }
    client.query("set thermocline.path = auto");
}

#[test]
fn a_zone_has_many_names_and_one_that_is_shown() {
    let server = Server::new();
    let mut client = server.connect();
    for (given, shown) in [
        ("'europe/berlin'", "Europe/Berlin"),
        ("-5", "<-05>+05"),
        ("'+02'", "<+02>-02"),
        ("'+05:30'", "+05:30"),
        ("5.5", "<+05:30>-05:30"),
        ("interval '+02:30' hour to minute", "<+02:30>-02:30"),
        ("interval '-08:00'", "<-08>+08"),
        ("interval '3' hour", "<+03>-03"),
        ("'EST5EDT'", "EST5EDT"),
        ("'etc/utc'", "Etc/UTC"),
        ("'gmt'", "GMT"),
        ("local", "UTC"),
        ("'zulu'", "Zulu"),
        ("default", "UTC"),
    ] {
        assert_eq!(
            client.tag(&format!("set time zone {given}")),
            "SET",
            "{given}"
        );
        assert_eq!(client.rows("show time zone"), [shown], "{given}");
    }
    for bad in ["'foo/bar'", "'PST'", "''", "interval '1 month'"] {
        let error = client.error(&format!("set time zone {bad}"));
        assert!(
            error.starts_with("22023 invalid value for parameter \"TimeZone\""),
            "{error}"
        );
    }
    let mut other = server.connect_with(&[("TimeZone", "Asia/Tokyo")]);
    assert_eq!(other.rows("show timezone"), ["Asia/Tokyo"]);
    other.query("set timezone = 'UTC'; reset timezone");
    assert_eq!(other.rows("show timezone"), ["Asia/Tokyo"]);
}

#[test]
fn moments_are_read_and_shown_by_the_session_s_clocks() {
    let server = Server::new();
    let mut client = filled(&server, "set timezone = 'Europe/Berlin'");
    both(
        &mut client,
        "select z, t, d, za from st where id = 1",
        &["2024-07-01 12:00:00+02|2024-07-01 12:00:00|2024-07-01|{\"2024-07-01 12:00:00+02\"}"],
    );
    both(
        &mut client,
        "select z::text, z::timestamp, z::date, t::timestamptz, d::timestamptz from st where id = 2",
        &[
            "2024-03-30 12:00:00+01|2024-03-30 12:00:00|2024-03-30|2024-03-30 12:00:00+01|2024-03-30 00:00:00+01",
        ],
    );
    both(
        &mut client,
        "select z + interval '1 day', z + interval '24 hours', z - interval '1 month', z + '1 day' from st where id = 2",
        &[
            "2024-03-31 12:00:00+02|2024-03-31 13:00:00+02|2024-02-29 12:00:00+01|2024-03-31 12:00:00+02",
        ],
    );
    both(
        &mut client,
        "select extract(hour from z), date_trunc('day', z), date_part('timezone', z), \
         to_char(z, 'HH24:MI TZ OF'), age(z, '2020-01-01'), z || 'x' from st where id = 1",
        &[
            "12|2024-07-01 00:00:00+02|7200|12:00 CEST +02|4 years 6 mons 12:00:00|2024-07-01 12:00:00+02x",
        ],
    );
    for condition in [
        "z = '2024-03-30 12:00'",
        "z = timestamp '2024-03-30 12:00'",
        "z = '2024-03-30 11:00+00'",
        "z >= date '2024-03-30' and z < date '2024-03-31'",
        "id = 2 and z = t",
        "z = '2024-03-30 12:00 CET'",
    ] {
        both(
            &mut client,
            &format!("select id from st where {condition}"),
            &["2"],
        );
    }
    client.query("update st set t = z, d = z where z = '2024-07-01 12:00'");
    client.query("set timezone = 'America/New_York'");
    both(
        &mut client,
        "select z, t, d from st where id = 1",
        &["2024-07-01 06:00:00-04|2024-07-01 12:00:00|2024-07-01"],
    );
    assert_eq!(
        client.query("copy (select id, z from st order by id) to stdout")[1..3],
        [
            "d 1\t2024-07-01 06:00:00-04\n",
            "d 2\t2024-03-30 07:00:00-04\n"
        ]
    );
    client.copy("copy st (id, z) from stdin", &["3\t2024-07-04 00:00\n"]);
    client.query("set timezone = 'UTC'");
    both(
        &mut client,
        "select z from st where id = 3",
        &["2024-07-04 04:00:00+00"],
    );
}

#[test]
fn a_kept_plan_is_of_the_settings_that_it_was_made_under() {
    let server = Server::new();
    let mut client = filled(&server, "");
    let sql = "select z, '2024-01-01'::timestamptz, date '2024-01-01' = z from st where id = 1";
    let utc = ["2024-07-01 12:00:00+00|2024-01-01 00:00:00+00|f"];
    assert_eq!(client.rows(sql), utc);
    client.query("begin; set local timezone = 'Asia/Tokyo'");
    assert_eq!(
        client.rows(sql),
        ["2024-07-01 21:00:00+09|2024-01-01 00:00:00+09|f"]
    );
    client.query("commit");
    assert_eq!(client.rows(sql), utc);
    client.query("prepare p as select id, z::date from st where z > $1 order by id");
    client.query("set timezone = 'Asia/Tokyo'");
    assert_eq!(
        client.rows("execute p('2024-07-01 20:00')"),
        ["1|2024-07-01"]
    );
    client.query("set timezone = 'UTC'");
    assert!(client.rows("execute p('2024-07-01 20:00')").is_empty());
    client
        .parse("q", "select z, $1::timestamptz from st where z < $2", &[])
        .unwrap();
    client.query("set timezone = 'Asia/Tokyo'");
    client
        .bind("", "q", &[Some("2024-01-01"), Some("2024-04-01 00:00")])
        .unwrap();
    assert_eq!(
        client.execute("", 0).unwrap()[0],
        "D 2024-03-30 21:00:00+09|2024-01-01 00:00:00+09"
    );
}

#[test]
fn dates_are_written_in_styles_and_read_in_orders() {
    let server = Server::new();
    let mut client = filled(&server, "");
    for (style, shown, expected) in [
        (
            "'SQL, DMY'",
            "SQL, DMY",
            "01/07/2024 12:00:00 UTC|01/07/2024 12:00:00|01/07/2024|{\"01/07/2024 12:00:00 UTC\"}|01/07/2024 12:00:00",
        ),
        (
            "postgres, mdy",
            "Postgres, MDY",
            "Mon Jul 01 12:00:00 2024 UTC|Mon Jul 01 12:00:00 2024|07-01-2024|{\"Mon Jul 01 12:00:00 2024 UTC\"}|Mon Jul 01 12:00:00 2024",
        ),
        (
            "german",
            "German, DMY",
            "01.07.2024 12:00:00 UTC|01.07.2024 12:00:00|01.07.2024|{\"01.07.2024 12:00:00 UTC\"}|01.07.2024 12:00:00",
        ),
        (
            "iso",
            "ISO, DMY",
            "2024-07-01 12:00:00+00|2024-07-01 12:00:00|2024-07-01|{\"2024-07-01 12:00:00+00\"}|2024-07-01 12:00:00",
        ),
    ] {
        client.query(&format!("set datestyle = {style}"));
        assert_eq!(client.rows("show datestyle"), [shown]);
        both(
            &mut client,
            "select z, t, d, za, t::text from st where id = 1",
            &[expected],
        );
    }
    // The order is still that of German.
    client.query("insert into st (id, d) values (7, '02/03/2024')");
    assert_eq!(
        client.rows("select id from st where d = '02.03.2024'"),
        ["7"]
    );
    client.copy("copy st (id, d) from stdin", &["8\t01/12/2024\n"]);
    both(
        &mut client,
        "select d from st where id > 6 order by id",
        &["2024-03-02", "2024-12-01"],
    );
    assert_eq!(
        client.error("set datestyle = sql, iso"),
        "22023 invalid value for parameter \"DateStyle\": \"sql, iso\" \
         [detail Conflicting \"datestyle\" specifications.]"
    );
    both(
        &mut client,
        "select to_jsonb(d) from st where id = 7",
        &["\"2024-03-02\""],
    );
}

#[test]
fn intervals_floats_and_bytes_have_styles() {
    let server = Server::new();
    let mut client = filled(&server, "");
    for (style, first, second) in [
        (
            "postgres_verbose",
            "@ 1 year 2 mons 3 days 4 hours 5 mins 6.789 secs",
            "@ 1 day 2 hours 3 mins 4 secs ago",
        ),
        ("sql_standard", "+1-2 +3 +4:05:06.789", "-1 2:03:04"),
        ("iso_8601", "P1Y2M3DT4H5M6.789S", "P-1DT-2H-3M-4S"),
    ] {
        client.query(&format!("set intervalstyle = {style}"));
        let expected = [format!("{first}|{first}"), format!("{second}|{second}")];
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        both(
            &mut client,
            "select i, i::text from st order by id",
            &expected,
        );
    }
    // One sign is for all fields.
    client.query("set intervalstyle = sql_standard");
    both(
        &mut client,
        "select t + interval '-1 2:00', t + '-1 2:00' from st where id = 1",
        &["2024-06-30 10:00:00|2024-06-30 10:00:00"],
    );
    client.query("reset intervalstyle; set extra_float_digits = 0");
    both(
        &mut client,
        "select f4, f8, f8::text, array[f4] from st order by id",
        &[
            "3.14159|12345678.1234568|12345678.1234568|{3.14159}",
            "1e+10|0.1|0.1|{1e+10}",
        ],
    );
    client.query("set extra_float_digits = -15");
    both(
        &mut client,
        "select f4, f8 from st order by id",
        &["3|1e+07", "1e+10|0.1"],
    );
    client.query("set bytea_output = escape");
    both(
        &mut client,
        "select b, b::text, array[b] from st order by id",
        &[
            "\\000\\377AB|\\000\\377AB|{\"\\\\000\\\\377AB\"}",
            "abc|abc|{abc}",
        ],
    );
}

#[test]
fn what_is_kept_as_text_says_the_same_in_every_session() {
    let server = Server::new();
    let mut client = server.connect();
    client.query(
        "create table k (id int primary key, z timestamptz default '2024-01-01 00:00', d date default current_date, \
         t timestamp default now(), check (z < '2030-01-01'), check (extract(hour from z) < 20))",
    );
    client.query("create view kv as select z, z > '2024-01-01 00:00'::timestamptz as late from k");
    client.query("set timezone = 'Asia/Tokyo'; set datestyle = 'SQL, DMY'");
    assert_eq!(client.tag("insert into k (id) values (1)"), "INSERT 0 1");
    client.query("set datestyle = iso");
    assert_eq!(
        client.rows("select z, late from kv"),
        ["2024-01-01 09:00:00+09|f"]
    );
    assert_eq!(
        client.rows("select d = current_date, t = localtimestamp or true from k"),
        ["t|t"]
    );
    // The hour is that of the session's clocks.
    let error = client.error("insert into k (id, z) values (2, '2024-01-01 12:00+00')");
    assert!(error.starts_with("23514"), "{error}");
    client.query("set timezone = 'UTC'");
    assert_eq!(
        client.tag("insert into k (id, z) values (2, '2024-01-01 12:00+00')"),
        "INSERT 0 1"
    );
    client.query("set timezone = 'Asia/Tokyo'");
    for sql in [
        "create table l (z timestamptz default '2024-01-01')",
        "alter table k add check (z > '2020-01-01')",
        "alter table k alter z set default '2024-01-01'",
        "create view kw as select '2024-01-01'::timestamptz as z",
    ] {
        let error = client.error(sql);
        assert!(error.starts_with("0A000"), "{sql}: {error}");
    }
    assert_eq!(
        client.tag("create table l (z timestamptz default '2024-01-01 00:00+09')"),
        "CREATE TABLE"
    );
}

#[test]
fn digits_of_seconds_and_fields_are_of_the_type() {
    let server = Server::new();
    let mut client = server.connect();
    client.query(
        "create table p (id int primary key, a timestamp(3), b timestamptz(0), c time(2), d timetz(1), \
         e interval(2), f interval year to month, g interval day to second(3), h timestamp(6), \
         i interval hour, j timestamp(3)[])",
    );
    client.query(
        "insert into p values (1, '2024-01-01 12:00:00.123456', '2024-01-01 12:00:00.6+00', '12:00:00.999', \
         '12:00:00.99+02', '1 day 00:00:01.239', '1 year 2 mons 3 days', '1 mon 1 day 01:01:01.23456', \
         '2024-01-01 12:00:00.123456', '1 day 05:06:07', '{2024-01-01 12:00:00.123456}')",
    );
    both(
        &mut client,
        "select * from p where id = 1",
        &[
            "1|2024-01-01 12:00:00.123|2024-01-01 12:00:01+00|12:00:01|12:00:01+02|1 day 00:00:01.24|\
           1 year 2 mons|1 mon 1 day 01:01:01.235|2024-01-01 12:00:00.123456|1 day 05:00:00|\
           {\"2024-01-01 12:00:00.123\"}",
        ],
    );
    assert_eq!(
        client.rows(
            "update p set a = a + interval '0.0006 s', e = '1.999' where id = 1 returning a, e"
        ),
        ["2024-01-01 12:00:00.124|00:00:02"]
    );
    assert_eq!(
        client.rows("update p set f = interval '15 months 20 days' where id = 1 returning f"),
        ["1 year 3 mons"]
    );
    client.query("insert into p (id, a, b) select 2, timestamp '2024-01-01 12:00:00.5555', timestamptz '2024-01-01 12:00:00.5+00'");
    client.copy(
        "copy p (id, a) from stdin",
        &["3\t2024-01-01 12:00:00.9999\n"],
    );
    both(
        &mut client,
        "select a, b from p where id > 1 order by id",
        &[
            "2024-01-01 12:00:00.556|2024-01-01 12:00:01+00",
            "2024-01-01 12:00:01|NULL",
        ],
    );
    both(
        &mut client,
        "select a::timestamp(1), a::timestamptz(2), a::time(1), '1.55'::interval(1), interval '1.55' second(1), \
         '1 day 2 hours'::interval day, interval '1 12:30' day to hour from p where id = 2",
        &[
            "2024-01-01 12:00:00.6|2024-01-01 12:00:00.56+00|12:00:00.6|00:00:01.6|00:00:01.6|1 day|1 day 12:00:00",
        ],
    );
    assert_eq!(
        client.rows("select format_type(atttypid, atttypmod) from pg_attribute where attrelid = 'p'::regclass and attnum > 1 order by attnum"),
        [
            "timestamp(3) without time zone",
            "timestamp(0) with time zone",
            "time(2) without time zone",
            "time(1) with time zone",
            "interval(2)",
            "interval year to month",
            "interval day to second(3)",
            "timestamp(6) without time zone",
            "interval hour",
            "timestamp(3) without time zone[]",
        ]
    );
    assert_eq!(
        client.rows("select datetime_precision from information_schema.columns where table_name = 'p' and ordinal_position between 2 and 10 order by ordinal_position"),
        ["3", "0", "2", "1", "2", "6", "3", "6", "6"]
    );
    client.query("create index on p (a)");
    both(
        &mut client,
        "select id from p where a = timestamp '2024-01-01 12:00:00.556'",
        &["2"],
    );
    both(
        &mut client,
        "select min(a), max(b), pg_typeof(max(b)) from p",
        &["2024-01-01 12:00:00.124|2024-01-01 12:00:01+00|timestamp with time zone"],
    );
    both(
        &mut client,
        "select coalesce(a, h), greatest(a, b) from p where id = 2",
        &["2024-01-01 12:00:00.556|2024-01-01 12:00:01+00"],
    );
    client
        .query("alter table p add column z timestamptz(3) default '2024-01-01 00:00:00.12345+00'");
    both(
        &mut client,
        "select z from p where id = 1",
        &["2024-01-01 00:00:00.123+00"],
    );
}

#[test]
fn a_text_that_comes_again_means_the_moment_when_it_comes() {
    let server = Server::new();
    let mut client = server.connect();
    client.query("create table m (a int primary key, at timestamptz)");
    client.query("insert into m values (1, 'now'), (2, 'now')");
    let statements = [
        "select 'now'::timestamptz = now()",
        "select timestamp 'now' = localtimestamp",
        "select time 'now' = localtime",
        "select '{now}'::timestamptz[] = array[now()]",
        "select date_trunc('day', timestamptz 'tomorrow') = current_date + 1 and 'now' = now()",
        "values ('now'::timestamptz = now())",
        "select 'now'::timestamptz = now() from m where a = 1",
        "select bool_and(x.at <= 'now' and 'now'::timestamptz = now()) from m x join m y on x.a <> y.a",
        "update m set at = 'now' where a = 1 returning at = now()",
        "insert into m values (3, 'now') on conflict (a) do update set at = excluded.at returning at = now()",
        "with w as (update m set at = 'now' where a = 2 returning at) select at = now() from w",
    ];
    for sql in statements {
        for time in 0..5 {
            assert_eq!(client.rows(sql), ["t"], "{sql}, time {time}");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
    // So does a parameter.
    client.parse("q", "select $1::timestamptz", &[]).unwrap();
    let mut told = Vec::new();
    for _ in 0..5 {
        client.bind("", "q", &[Some("now")]).unwrap();
        told.push(client.execute("", 0).unwrap()[0].clone());
        client.sync().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert!(told.is_sorted(), "{told:?}");
    told.dedup();
    assert_eq!(told.len(), 5, "{told:?}");
    // So does the unnamed statement, which is kept, too.
    for sql in [
        "select 'now'::timestamptz",
        "update m set at = 'now' where a = 1 returning at",
        "select '{now}'::timestamptz[]",
    ] {
        let mut told = Vec::new();
        for _ in 0..5 {
            client.parse("", sql, &[]).unwrap();
            client.bind("", "", &[]).unwrap();
            told.push(client.execute("", 0).unwrap()[0].clone());
            client.sync().unwrap();
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(told.is_sorted() && told[0].starts_with("D "), "{told:?}");
        told.dedup();
        assert_eq!(told.len(), 5, "{sql}: {told:?}");
    }
    // A statement that is prepared goes on to mean what it meant then, as in PostgreSQL.
    client.query("prepare p as select 'now'::timestamptz");
    let first = client.rows("execute p");
    std::thread::sleep(std::time::Duration::from_millis(1));
    assert_eq!(client.rows("execute p"), first);
    client
        .parse("s", "select 'now'::timestamptz, a from m where a = $1", &[])
        .unwrap();
    let mut seen = Vec::new();
    for _ in 0..3 {
        client.bind("", "s", &[Some("1")]).unwrap();
        seen.push(client.execute("", 0).unwrap());
        client.sync().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert!(seen.iter().all(|rows| *rows == seen[0]), "{seen:?}");
}
