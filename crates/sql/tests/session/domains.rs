//! Domains.

use std::sync::Arc;

use thermocline_device::SimulatedDevice;

use crate::fixture::{Connection, Server};

const DOMAINS: [&str; 4] = [
    "create domain positive as int default 7 check (value > 0)",
    "create domain small as positive constraint small_enough check (value < 100)",
    "create domain code as varchar(4) not null check (value ~ '^[a-z]+$')",
    "create table t (id positive primary key, n small, c code default 'abc', a positive[])",
];

fn with_domains(server: &Server) -> Connection {
    let mut client = server.connect();
    for statement in DOMAINS {
        client.query(statement);
    }
    client
}

fn refused(client: &mut Connection, sql: &str, sqlstate: &str, part: &str) {
    let error = client.error(sql);
    assert!(
        error.contains(sqlstate) && error.contains(part),
        "{sql}: {error}"
    );
}

#[test]
fn no_way_into_a_table_goes_round_a_domain() {
    let server = Server::new();
    let mut client = with_domains(&server);
    assert_eq!(
        client.tag("insert into t values (1, 5, 'x', '{1,2}')"),
        "INSERT 0 1"
    );
    let not_small = "value for domain small violates check constraint \"small_enough\"";
    let not_positive = "value for domain positive violates check constraint \"positive_check\"";
    let of_small = "value for domain small violates check constraint \"positive_check\"";
    for (sql, message) in [
        ("insert into t values (0, 5, 'x')", not_positive),
        ("insert into t values (2, 100, 'x')", not_small),
        ("insert into t select 2, 100, 'x'", not_small),
        ("insert into t select id - 1, n, c from t", not_positive),
        (
            "insert into t values (1, 1, 'x') on conflict (id) do update set n = 200",
            not_small,
        ),
        ("update t set n = 100", not_small),
        ("update t set n = n + 95 where id = 1", not_small),
        ("update t set n = s.n * 100 from (select 5 n) s", not_small),
        ("update t set (n, c) = (select 100, 'x')", not_small),
        ("update t set a[1] = 0", not_positive),
        ("update t set a = '{0}'", not_positive),
        (
            "with w as (update t set n = 100 returning n) select * from w",
            not_small,
        ),
        ("select 0::positive", not_positive),
        ("select (id - 1)::positive from t", not_positive),
        (
            "select sum((id - 1)::positive) from t group by n",
            not_positive,
        ),
        ("select '{1,0}'::positive[]", not_positive),
        ("select array[1, 0]::positive[]", not_positive),
        ("select cast(0 as small)", of_small),
    ] {
        let message = message.replace(of_small, not_positive);
        refused(&mut client, sql, "23514", &message);
    }
    let no_null = "domain code does not allow null values";
    refused(
        &mut client,
        "insert into t values (2, 5, null)",
        "23502",
        no_null,
    );
    refused(&mut client, "update t set c = null", "23502", no_null);
    refused(&mut client, "select null::code", "23502", no_null);
    refused(
        &mut client,
        "insert into t values (2, 5, 'toolong')",
        "22001",
        "varying(4)",
    );
    let copied = client
        .copy("copy t (id, n, c) from stdin", &["2\t100\tx\n"])
        .concat();
    assert!(copied.contains(not_small), "{copied}");
    let copied = client
        .copy("copy t (id, n) from stdin", &["2\t\\N\n"])
        .concat();
    assert!(copied.contains("COPY 1"), "{copied}");
    client.query("prepare p as update t set n = $1 where id = $2");
    assert_eq!(client.tag("execute p (99, 2)"), "UPDATE 1");
    refused(&mut client, "execute p (100, 2)", "23514", not_small);
    client.query("prepare q as select $1::small + 1");
    assert_eq!(client.rows("execute q (1)"), ["2"]);
    refused(&mut client, "execute q (0)", "23514", not_positive);
    assert_eq!(
        client.rows("select * from t order by id"),
        ["1|5|x|{1,2}", "2|99|abc|NULL"]
    );
}

#[test]
fn a_domain_s_default_is_that_of_columns_without_their_own() {
    let server = Server::new();
    let mut client = with_domains(&server);
    client.query("create table d (id int primary key, n small, own small default 3, none small default null)");
    client.query("insert into d (id) values (1)");
    client.query("insert into d values (2, default, default, default)");
    let copied = client.copy("copy d (id) from stdin", &["3\n"]).concat();
    assert!(copied.contains("COPY 1"), "{copied}");
    client.query("update d set own = 9");
    client.query("update d set own = default where id = 3");
    assert_eq!(
        client.rows("select * from d order by id"),
        ["1|7|9|NULL", "2|7|9|NULL", "3|7|3|NULL"]
    );
    client.query("alter table d add column more small");
    client.query("alter domain positive drop default");
    client.query("alter domain small set default 50");
    client.query("insert into d (id) values (4)");
    assert_eq!(
        client.rows("select n, more from d where id in (3, 4) order by id"),
        ["7|7", "50|50"]
    );
}

#[test]
fn a_value_is_one_of_the_type_below_but_knows_its_own() {
    let server = Server::new();
    let mut client = with_domains(&server);
    client.query("insert into t values (1, 5, 'b', '{3,4}'), (2, 6, 'a', null), (3, 5, 'c', null)");
    for path in ["auto", "analytical"] {
        client.query(&format!("set thermocline.path = {path}"));
        assert_eq!(
            client.rows("select id from t where n = 5 and c > 'a' order by c desc"),
            ["3", "1"]
        );
        assert_eq!(
            client.rows("select n, count(*), min(c), max(id) from t group by n order by n"),
            ["5|2|b|3", "6|1|a|2"]
        );
        assert_eq!(
            client.rows(
                "select pg_typeof(n), pg_typeof(n + 1), pg_typeof(c), pg_typeof(a), a[2], \
                 pg_typeof(a[2]), coalesce(n, 1) from t where id = 1"
            ),
            ["small|integer|code|positive[]|4|positive|5"]
        );
        assert_eq!(
            client.rows("select distinct n from t order by 1"),
            ["5", "6"]
        );
    }
    client.query("reset thermocline.path");
    let explained = client.rows("explain select * from t where id = 2").concat();
    assert!(explained.contains("Path: short"), "{explained}");
    let explained = client
        .rows("explain update t set n = 1 where id = 2")
        .concat();
    assert!(!explained.contains("all rows"), "{explained}");
    // Clients are told of the type below.
    client
        .parse("p", "select n, c from t where id = $1", &[])
        .unwrap();
    let described = client.describe("p").unwrap();
    client.sync().unwrap();
    assert_eq!(described, ["t 23", "T n:23 c:1043"]);
    client.query("create table made as select n, c, a from t where id = 1");
    client.query("create view seen as select n from t");
    assert_eq!(
        client.rows(
            "select attname, format_type(atttypid, atttypmod) from pg_attribute \
             where attrelid in ('made'::regclass, 'seen'::regclass) and attnum > 0 order by attrelid, attnum"
        ),
        ["n|small", "c|code", "a|positive[]", "n|small"]
    );
}

#[test]
fn what_is_there_is_asked_before_a_domain_changes() {
    let server = Server::new();
    let mut client = with_domains(&server);
    client.query("alter table t drop column a");
    client.query("insert into t values (1, 5, 'x'), (2, null, 'y')");
    let violated = "column \"n\" of table \"t\" contains values that violate the new constraint";
    refused(
        &mut client,
        "alter domain small add constraint tiny check (value < 5)",
        "23514",
        violated,
    );
    // Whatever is made of the domain, too.
    refused(
        &mut client,
        "alter domain positive add check (value <> 5)",
        "23514",
        violated,
    );
    refused(
        &mut client,
        "alter domain small set not null",
        "23502",
        "column \"n\" of table \"t\" contains null values",
    );
    client.tag("alter domain small add constraint tiny check (value < 5) not valid");
    refused(
        &mut client,
        "update t set n = 5 where id = 2",
        "23514",
        "\"tiny\"",
    );
    refused(
        &mut client,
        "alter domain small validate constraint tiny",
        "23514",
        violated,
    );
    client.tag("update t set n = 4 where id < 3");
    client.tag("alter domain small validate constraint tiny");
    client.tag("alter domain small rename constraint tiny to five");
    refused(
        &mut client,
        "alter domain small drop constraint tiny",
        "42704",
        "does not exist",
    );
    refused(
        &mut client,
        "alter domain small add constraint five check (true)",
        "42710",
        "already exists",
    );
    // The transaction that adds a condition is bound by it at once.
    client.query("begin");
    client.query("alter domain small add constraint even check (value % 2 = 0)");
    refused(
        &mut client,
        "insert into t values (3, 3, 'x')",
        "23514",
        "\"even\"",
    );
    client.query("rollback");
    assert_eq!(client.tag("insert into t values (3, 3, 'x')"), "INSERT 0 1");
    client.tag("alter domain small drop constraint five");
    client.tag("alter domain small drop constraint if exists five");
    assert_eq!(
        client.tag("insert into t values (4, 99, 'x')"),
        "INSERT 0 1"
    );
    client.tag("alter domain code drop not null");
    assert_eq!(
        client.tag("insert into t values (5, 99, null)"),
        "INSERT 0 1"
    );
    refused(
        &mut client,
        "alter domain positive set default 'x'",
        "22P02",
        "integer",
    );
    refused(
        &mut client,
        "alter domain positive add check (value[1] > 0)",
        "42804",
        "cannot subscript type integer",
    );
    // Columns that hold such values within others are not looked into.
    client.query("create table arrays (a positive[])");
    refused(
        &mut client,
        "alter domain positive add check (value > 1)",
        "0A000",
        "uses it",
    );
}

#[test]
fn who_writes_meanwhile_holds_a_new_condition_up() {
    let server = Server::new();
    let mut client = with_domains(&server);
    let mut other = server.connect();
    other.query("begin");
    other.query("insert into t values (1, 50, 'x')");
    client.query("set lock_timeout = '50ms'");
    refused(
        &mut client,
        "alter domain small add check (value < 50)",
        "55P03",
        "lock",
    );
    other.query("commit");
    refused(
        &mut client,
        "alter domain small add check (value < 50)",
        "23514",
        "violate",
    );
}

#[test]
fn columns_become_of_a_domain_only_with_its_values() {
    let server = Server::new();
    let mut client = with_domains(&server);
    client.query("create table u (id int primary key, n int)");
    client.query("insert into u values (1, 0)");
    refused(
        &mut client,
        "alter table u alter n type positive",
        "23514",
        "positive_check",
    );
    refused(
        &mut client,
        "alter table u add c code",
        "23502",
        "domain code",
    );
    client.tag("update u set n = 1");
    client.tag("alter table u alter n type positive");
    refused(&mut client, "update u set n = 0", "23514", "positive_check");
    client.tag("alter table u add m small");
    assert_eq!(client.rows("select * from u"), ["1|1|7"]);
    client.tag("alter table u alter n type int");
    assert_eq!(client.tag("update u set n = 0"), "UPDATE 1");
}

#[test]
fn catalogs_show_domains_and_a_drop_says_what_hangs_on_them() {
    let device = Arc::new(SimulatedDevice::new());
    let server = Server::on(&device);
    let mut client = with_domains(&server);
    client.query("comment on domain small is 'a small one'");
    server.crash(&device);
    let server = Server::on(&device);
    let mut client = server.connect();
    assert_eq!(
        client.rows(
            "select typname, typtype, format_type(typbasetype, typtypmod), typnotnull, typdefault, \
             obj_description(oid, 'pg_type') from pg_type where typtype = 'd' \
             and typnamespace = 'public'::regnamespace order by 1"
        ),
        [
            "code|d|character varying(4)|t|NULL|NULL",
            "positive|d|integer|f|7|NULL",
            "small|d|positive|f|NULL|a small one"
        ]
    );
    assert_eq!(
        client.rows(
            "select domain_name, data_type, character_maximum_length, domain_default \
             from information_schema.domains where domain_schema = 'public' order by 1"
        ),
        [
            "code|character varying|4|NULL",
            "positive|integer|NULL|7",
            "small|integer|NULL|NULL"
        ]
    );
    assert_eq!(
        client.rows(
            "select column_name, data_type, domain_name, udt_name from information_schema.columns \
             where table_name = 't' order by ordinal_position"
        ),
        [
            "id|integer|positive|int4",
            "n|integer|small|int4",
            "c|character varying|code|varchar",
            "a|ARRAY|NULL|_positive"
        ]
    );
    assert_eq!(
        client.rows(
            "select conname, pg_get_constraintdef(oid) from pg_constraint \
             where contypid = 'code'::regtype"
        ),
        ["code_check|CHECK ((VALUE ~ '^[a-z]+$'))"]
    );
    let error = client.error("drop domain positive");
    for part in [
        "2BP01",
        "column id of table t",
        "type small",
        "column a of table t depends on type positive[]",
    ] {
        assert!(error.contains(part), "{error}");
    }
    refused(&mut client, "drop domain t", "42704", "does not exist");
    client.query("create type mood as enum ('ok')");
    refused(&mut client, "drop domain mood", "42809", "is not a domain");
    refused(
        &mut client,
        "alter domain mood drop not null",
        "42809",
        "is not a domain",
    );
    client.tag("alter domain small rename to little");
    client.tag("create schema s");
    client.tag("alter domain little set schema s");
    refused(
        &mut client,
        "insert into t values (1, 100, 'x')",
        "23514",
        "domain little",
    );
    client.tag("drop domain positive cascade");
    assert_eq!(
        client.rows("select column_name from information_schema.columns where table_name = 't'"),
        ["c"]
    );
    assert_eq!(
        client.rows("select count(*) from pg_type where typtype = 'd' and typname = 'little'"),
        ["0"]
    );
}

#[test]
fn a_domain_is_refused_where_it_has_no_meaning() {
    let server = Server::new();
    let mut client = server.connect();
    for (sql, sqlstate, part) in [
        (
            "create domain d as nothing",
            "42704",
            "type \"nothing\" does not exist",
        ),
        (
            "create domain d as anyelement",
            "42804",
            "not a valid base type",
        ),
        (
            "create domain d as int check (value > 'x')",
            "22P02",
            "integer",
        ),
        (
            "create domain d as int check (value)",
            "42804",
            "must be type boolean",
        ),
        (
            "create domain d as int check (other > 1)",
            "42703",
            "\"other\" does not exist",
        ),
        (
            "create domain d as int check (sum(value) > 1)",
            "42803",
            "aggregate",
        ),
        (
            "create domain d as int check (value in (select 1))",
            "0A000",
            "subqueries",
        ),
        (
            "create domain d as int check (value > $1)",
            "42P02",
            "parameter",
        ),
        ("create domain d as int default 'x'", "22P02", "integer"),
        ("create domain pg_temp.d as int", "0A000", "temporary"),
        (
            "create domain d as int unique",
            "42601",
            "not possible for domains",
        ),
    ] {
        refused(&mut client, sql, sqlstate, part);
    }
    let deep = format!(
        "create domain d as int check ({}true{})",
        "not (".repeat(30_000),
        ")".repeat(30_000)
    );
    refused(&mut client, &deep, "54001", "");
    client.query("create domain d as int");
    refused(
        &mut client,
        "create domain d as text",
        "42710",
        "already exists",
    );
    refused(
        &mut client,
        "create table d (x int)",
        "42710",
        "already exists",
    );
}

#[test]
fn a_domain_is_asked_when_all_parts_of_a_value_are_there() {
    let server = Server::new();
    let mut client = server.connect();
    for statement in [
        "create type pair as (a int, b text[])",
        "create domain whole as pair check ((value).b[1] is not null)",
        "create domain rising as int[] check (value[1] < value[2])",
        "create table t (id int primary key, w whole, n rising)",
        "create table u (id int primary key, all_of whole[])",
        "insert into t (id, w.a, w.b, n[1], n[2]) values (1, 1, '{x}', 1, 2)",
        "insert into t (id, w.b[1], w.b[2], n[1], n[2]) values (2, 'x', 'y', 1, 2), (3, 'z', 'y', 1, 2)",
        "insert into t (id, w.b[1], w.b[2], n[1], n[2]) select 4, 'x', 'y', 1, 2",
        "insert into u (id, all_of[1].b[1], all_of[1].b[2]) select 5, 'x', 'y'",
        "update t set n[1] = 7, n[2] = 8, w.b[1] = 'u' where id = 1",
    ] {
        client.tag(statement);
    }
    refused(
        &mut client,
        "insert into t (id, w.a) values (6, 1)",
        "23514",
        "whole",
    );
    refused(
        &mut client,
        "insert into t (id, n[1], n[2]) select 6, 2, 1",
        "23514",
        "rising",
    );
    refused(
        &mut client,
        "update t set n[1] = 8 where id = 1",
        "23514",
        "rising",
    );
    refused(
        &mut client,
        "update u set all_of[1].b = null",
        "23514",
        "whole",
    );
    assert_eq!(
        client.rows("select * from t order by id"),
        [
            "1|(1,{u})|{7,8}",
            "2|(,\"{x,y}\")|{1,2}",
            "3|(,\"{z,y}\")|{1,2}",
            "4|(,\"{x,y}\")|{1,2}"
        ]
    );
    let array = r#"5|{"(,\"{x,y}\")"}"#;
    assert_eq!(client.rows("select * from u"), [array]);
}
