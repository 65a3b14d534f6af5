//! What roles are told of privileges: `has_…_privilege`, `information_schema`.

use crate::fixture::Server;

#[test]
fn privileges_are_answered_as_they_are() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag(
        "create role alice; create role bob; create role staff; create role boss superuser;
         grant staff to bob with admin option;
         create table t (a int, b int); create sequence s; create schema private;
         grant select, update (b) on t to alice; grant insert on t to staff with grant option;
         grant usage on s to public",
    );
    let error = |sqlstate: &'static str| Err(sqlstate);
    for (question, answer) in [
        ("has_table_privilege('alice', 't', 'select')", Ok("t")),
        (
            "has_table_privilege('alice', 't', 'select with grant option')",
            Ok("f"),
        ),
        (
            "has_table_privilege('bob', 't', 'insert with grant option')",
            Ok("t"),
        ),
        ("has_table_privilege('bob', 't', 'delete, insert')", Ok("t")),
        (
            "has_table_privilege('boss', 't', 'delete with grant option')",
            Ok("t"),
        ),
        ("has_table_privilege('public', 't', 'select')", Ok("f")),
        ("has_table_privilege('alice', 't', 'see')", error("22023")),
        (
            "has_table_privilege('nobody', 't', 'select')",
            error("42704"),
        ),
        (
            "has_table_privilege('alice', 'pg_class', 'select')",
            Ok("t"),
        ),
        (
            "has_table_privilege('alice', 'pg_class', 'delete')",
            Ok("f"),
        ),
        ("has_any_column_privilege('alice', 't', 'update')", Ok("t")),
        ("has_column_privilege('alice', 't', 'b', 'update')", Ok("t")),
        ("has_column_privilege('alice', 't', 'a', 'update')", Ok("f")),
        (
            "has_column_privilege('alice', 't', 'b', 'update with grant option')",
            Ok("f"),
        ),
        ("has_sequence_privilege('public', 's', 'usage')", Ok("t")),
        ("has_schema_privilege('alice', 'private', 'usage')", Ok("f")),
        (
            "has_schema_privilege('alice', 'pg_catalog', 'create')",
            Ok("f"),
        ),
        (
            "has_database_privilege('alice', 'postgres', 'connect')",
            Ok("t"),
        ),
        (
            "has_database_privilege('alice', 'elsewhere', 'connect')",
            error("3D000"),
        ),
        (
            "has_function_privilege('alice', 'lower(text)', 'execute')",
            Ok("t"),
        ),
        (
            "has_function_privilege('alice', 'pg_catalog.version()', 'execute')",
            Ok("t"),
        ),
        (
            "has_function_privilege('alice', 'pg_reload_conf()', 'execute')",
            Ok("f"),
        ),
        (
            "has_function_privilege('boss', 'pg_reload_conf()', 'execute')",
            Ok("t"),
        ),
        (
            "has_function_privilege('alice', 'pg_stat_statements_reset', 'execute')",
            Ok("f"),
        ),
        (
            "has_function_privilege('alice', 'no_such()', 'execute')",
            error("42883"),
        ),
        ("has_type_privilege('alice', 'integer', 'usage')", Ok("t")),
        (
            "has_type_privilege('alice', 'no_such', 'usage')",
            error("42704"),
        ),
        (
            "has_tablespace_privilege('alice', 'pg_default', 'create')",
            Ok("f"),
        ),
        (
            "has_tablespace_privilege('alice', 'fast', 'create')",
            error("42704"),
        ),
        ("has_language_privilege('alice', 'sql', 'usage')", Ok("t")),
        ("has_language_privilege('alice', 'c', 'usage')", Ok("f")),
        (
            "has_parameter_privilege('alice', 'log_min_duration_statement', 'set')",
            Ok("f"),
        ),
        (
            "has_parameter_privilege('boss', 'log_min_duration_statement', 'set')",
            Ok("t"),
        ),
        ("pg_has_role('bob', 'staff', 'member')", Ok("t")),
        (
            "pg_has_role('bob', 'staff', 'usage with admin option')",
            Ok("t"),
        ),
        ("pg_has_role('alice', 'staff', 'usage')", Ok("f")),
        ("pg_has_role('alice', 'staff', 'own')", error("22023")),
    ] {
        let sql = format!("select {question}");
        match answer {
            Ok(answer) => assert_eq!(client.rows(&sql), [answer], "{question}"),
            Err(sqlstate) => {
                let error = client.error(&sql);
                assert!(error.starts_with(sqlstate), "{question}: {error}");
            }
        }
    }
}

#[test]
fn information_schema_lists_grants_to_those_they_concern() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag(
        "create role alice; create role bob;
         create table t (a int, b int); create sequence s;
         grant select on t to public; grant insert on t to alice with grant option;
         grant update (b) on t to bob; grant usage on s to alice",
    );
    let tables = "select grantor, grantee, privilege_type, is_grantable, with_hierarchy
        from information_schema.table_privileges where table_name = 't' and grantee <> 'postgres'
        order by grantee, privilege_type";
    let all = [
        "postgres|PUBLIC|SELECT|NO|YES",
        "postgres|alice|INSERT|YES|NO",
    ];
    assert_eq!(client.rows(tables), all);
    let own = "select privilege_type, is_grantable from information_schema.role_table_grants
        where table_name = 't' and grantee = 'postgres' order by 1";
    let own = client.rows(own);
    assert_eq!(own.len(), 7, "{own:?}");
    assert!(own.iter().all(|row| row.ends_with("|YES")), "{own:?}");
    let columns =
        "select grantee, column_name, privilege_type from information_schema.column_privileges
        where table_name = 't' and grantee <> 'postgres' order by 1, 2, 3";
    assert_eq!(
        client.rows(columns),
        [
            "PUBLIC|a|SELECT",
            "PUBLIC|b|SELECT",
            "alice|a|INSERT",
            "alice|b|INSERT",
            "bob|b|UPDATE"
        ]
    );
    let usage = "select grantee, object_name, object_type from information_schema.usage_privileges
        where grantee <> 'postgres'";
    assert_eq!(client.rows(usage), ["alice|s|SEQUENCE"]);
    client.tag("set role bob");
    assert_eq!(client.rows(tables), all[..1]);
    assert_eq!(client.rows(usage), [""; 0]);
    assert_eq!(
        client.rows("select grantee, column_name from information_schema.role_column_grants where table_name = 't'"),
        ["bob|b"]
    );
}

/// Wherever a column is named that may not be read, on each way that a query can take.
#[test]
fn a_hidden_column_is_read_by_no_way_around() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag(
        "create role alice; create table t (id int primary key, secret text);
         insert into t values (1, 'hush'), (2, 'also');
         create table mine (id int primary key, a text); insert into mine values (1, 'x');
         grant select (id) on t to alice; grant all on mine to alice;
         create view v as select id, secret from t; create view own as select * from v;
         alter view own owner to alice",
    );
    client.tag("set role alice");
    assert_eq!(client.rows("select id from t where id = 1"), ["1"]);
    assert_eq!(client.rows("select count(*) from t"), ["2"]);
    for sql in [
        "select secret from t where id = 1",
        "select id from t where secret = 'hush'",
        "select id from t order by secret",
        "select max(secret) from t",
        "select count(*) from t group by secret",
        "select * from t",
        "select t from t",
        "select s.id from (select id, secret from t) s where s.id = 1",
        "with s as (select * from t) select id from s where id = 1",
        "select (select secret from t where id = 1)",
        "select id from mine where a in (select secret from t)",
        "select m.id from mine m join t using (id) where t.secret > ''",
        "select id from t where id = 1 and secret is not null for update",
        "insert into mine select id + 10, secret from t where id = 1",
        "insert into mine select id + 10, secret from (select * from t) s",
        "with x as (insert into mine select 20, secret from t where id = 2 returning a) table x",
        "update mine set a = (select secret from t where id = 1)",
        "update mine set a = t.secret from t where t.id = mine.id",
        "delete from mine using t where t.id = mine.id and t.secret > ''",
        "select id from own where id = 1",
        "insert into mine select 30, secret from own",
        "update mine set a = own.secret from own",
        "copy (select secret from t) to stdout",
    ] {
        let answers = client.query(sql);
        let refused = |answer: &String| answer.starts_with("E 42501");
        assert!(answers.iter().any(refused), "{sql}: {answers:?}");
        client.tag("set thermocline.path = analytical");
        let answers = client.query(sql);
        assert!(answers.iter().any(refused), "{sql}: {answers:?}");
        client.tag("reset thermocline.path");
    }
    assert_eq!(client.rows("select * from mine"), ["1|x"]);
}

#[test]
fn a_role_may_be_taken_in_the_transaction_that_makes_it() {
    let server = Server::new();
    let mut client = server.connect();
    assert_eq!(
        client.rows("create role carol; set role carol; select current_user; reset role"),
        ["carol"]
    );
    client.tag("begin; create role dave; set role dave");
    client.tag("rollback");
    assert_eq!(client.rows("select current_user"), ["postgres"]);
    assert!(client.error("set role dave").starts_with("22023"));
}

#[test]
fn of_what_is_not_there_nothing_is_known() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create role alice; create table t (a int, b int, c int); create sequence s");
    client.tag("alter table t drop column b; set role alice");
    for (question, answer) in [
        ("has_table_privilege(1, 'select')", "NULL"),
        ("has_column_privilege(1, 'a', 'select')", "NULL"),
        ("has_column_privilege('t', 2::int2, 'select')", "NULL"),
        ("has_column_privilege('t', 9::int2, 'select')", "NULL"),
        ("has_any_column_privilege(1, 'select')", "NULL"),
        ("has_sequence_privilege(1, 'usage')", "NULL"),
        ("has_schema_privilege(1, 'usage')", "NULL"),
        ("has_function_privilege(1, 'execute')", "NULL"),
        ("has_type_privilege(1, 'usage')", "NULL"),
        ("has_database_privilege(1, 'connect')", "NULL"),
        ("has_table_privilege('pg_authid', 'select')", "f"),
        ("has_table_privilege('pg_class', 'select')", "t"),
        ("has_column_privilege('pg_class', 'relname', 'select')", "t"),
        ("has_schema_privilege('pg_catalog', 'usage')", "t"),
        ("has_type_privilege('int4'::regtype::oid, 'usage')", "t"),
    ] {
        assert_eq!(
            client.rows(&format!("select {question}")),
            [answer],
            "{question}"
        );
    }
    for (question, sqlstate) in [
        ("has_sequence_privilege('t', 'select')", "42809"),
        ("has_sequence_privilege('s', 'insert')", "22023"),
        ("has_table_privilege('t', 'usage')", "22023"),
        (
            "has_column_privilege('pg_authid', 'nothing', 'select')",
            "42703",
        ),
    ] {
        let error = client.error(&format!("select {question}"));
        assert!(error.starts_with(sqlstate), "{question}: {error}");
    }
}

#[test]
fn on_conflict_needs_to_read_what_it_tells() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag(
        "create role alice; create table t (one int, two int unique, three int, four int unique);
         grant insert (one, two, four), select (two), update (three) on t to alice; set role alice",
    );
    client.tag("insert into t (two) values (2) on conflict (two) do update set three = 1");
    client
        .tag("insert into t (two) values (2) on conflict (two) do update set three = excluded.two");
    client.tag("insert into t (four) values (4) on conflict do nothing");
    for statement in [
        "insert into t (two) values (2) on conflict (two) do update set three = excluded.three",
        "insert into t (four) values (4) on conflict (four) do nothing",
        "insert into t (four) values (4) on conflict (four) do update set three = 3",
        "insert into t (four) values (4) on conflict on constraint t_four_key do update set three = 3",
    ] {
        let error = client.error(statement);
        assert!(error.starts_with("42501"), "{statement}: {error}");
    }
}
