//! ALTER DEFAULT PRIVILEGES: what new objects are granted by themselves.

use std::sync::Arc;

use thermocline_device::SimulatedDevice;

use crate::fixture::Server;

#[test]
fn new_objects_are_granted_by_who_makes_them_where() {
    let device = Arc::new(SimulatedDevice::new());
    let server = Server::on(&device);
    let mut client = server.connect();
    client.tag("create role maker; create role reader; create role writer; create schema app");
    client.tag(
        "grant create, usage on schema app, public to maker; grant usage on schema app to reader",
    );
    for sql in [
        "alter default privileges for role maker in schema app grant select on tables to reader",
        "alter default privileges for role maker grant insert, select on tables to writer with grant option",
        "alter default privileges in schema app grant usage on sequences to reader",
        "alter default privileges for role maker revoke execute on functions from public",
        "alter default privileges for role maker grant usage on schemas to reader",
    ] {
        assert_eq!(client.tag(sql), "ALTER DEFAULT PRIVILEGES", "{sql}");
    }
    let shown = "select defaclrole::regrole, n.nspname, defaclobjtype, defaclacl from pg_default_acl \
                 left join pg_namespace n on n.oid = defaclnamespace order by 1, 2, 3";
    // As PostgreSQL shows them.
    assert_eq!(
        client.rows(shown),
        [
            "postgres|app|S|{reader=U/postgres}",
            "maker|app|r|{reader=r/maker}",
            "maker|NULL|f|{maker=X/maker}",
            "maker|NULL|n|{maker=UC/maker,reader=U/maker}",
            "maker|NULL|r|{maker=arwdDxt/maker,writer=a*r*/maker}",
        ]
    );
    let make = "create table app.t (id serial primary key); create table public.u (id int); \
                create view app.v as select 1 as x; \
                create function app.f() returns int language sql as 'select 1'";
    client.tag(&format!("set role maker; {make}; reset role"));
    // Others make things without them.
    client.tag("create table app.own (id serial)");
    let acl = "select relname, relacl from pg_class \
               where relname in ('t', 'u', 'v', 'own', 't_id_seq', 'own_id_seq') order by 1";
    assert_eq!(
        client.rows(acl),
        [
            "own|NULL",
            "own_id_seq|{postgres=rwU/postgres,reader=U/postgres}",
            "t|{maker=arwdDxt/maker,writer=a*r*/maker,reader=r/maker}",
            "t_id_seq|NULL",
            "u|{maker=arwdDxt/maker,writer=a*r*/maker}",
            "v|{maker=arwdDxt/maker,writer=a*r*/maker,reader=r/maker}",
        ]
    );
    // They are in the log.
    drop(client);
    server.crash(&device);
    let server = Server::on(&device);
    let mut client = server.connect();
    assert_eq!(client.rows(shown).len(), 5);
    client.tag("set role reader");
    assert_eq!(client.rows("select count(*) from app.t"), ["0"]);
    assert!(client.error("select * from public.u").starts_with("42501"));
    assert!(client.error("select app.f()").starts_with("42501"));
    client.tag("reset role");
    // What is taken back is as if it had not been said.
    client.tag("alter default privileges for role maker grant execute on functions to public");
    client.tag(
        "alter default privileges for role maker in schema app revoke select on tables from reader",
    );
    assert_eq!(client.rows(shown).len(), 3);
    // A schema takes its defaults with it, a role cannot go before its own.
    client.tag("drop schema app cascade");
    assert_eq!(client.rows(shown).len(), 2);
    client.tag("drop table u");
    let error = client.error("drop role writer");
    assert!(error.starts_with("2BP01"), "{error}");
    client.tag("drop owned by writer, maker; drop role writer, maker");
    assert_eq!(client.rows(shown), [""; 0]);
}

#[test]
fn who_may_not_and_what_cannot_be_is_refused() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create role maker; create role other; create schema app");
    for (role, sql, error) in [
        (
            "postgres",
            "alter default privileges grant execute on tables to maker",
            "0LP01 invalid privilege type EXECUTE for relation",
        ),
        (
            "postgres",
            "alter default privileges in schema app grant usage on schemas to maker",
            "0LP01 cannot use IN SCHEMA clause when using GRANT/REVOKE ON SCHEMAS",
        ),
        (
            "postgres",
            "alter default privileges in schema nowhere grant select on tables to maker",
            "3F000 schema \"nowhere\" does not exist",
        ),
        (
            "postgres",
            "alter default privileges grant select on tables to nobody",
            "42704 role \"nobody\" does not exist",
        ),
        (
            "maker",
            "alter default privileges for role other grant select on tables to maker",
            "42501 must be member of role \"other\"",
        ),
        (
            "maker",
            "alter default privileges in schema app grant select on tables to other",
            "42501 permission denied for schema app",
        ),
    ] {
        client.tag(&format!("set role {role}"));
        let found = client.error(sql);
        assert!(found.starts_with(error), "{sql}: {found}");
        client.tag("reset role");
    }
}
