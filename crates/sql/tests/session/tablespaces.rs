//! Tablespaces as clients see them: the commands, what they refuse, the catalogs, the view.

use std::sync::Arc;

use thermocline_device::SimulatedDevice;

use crate::fixture::Server;

const WHERE: &str = "select relname, coalesce(spcname, 'home') from pg_class c \
                     left join pg_tablespace s on s.oid = c.reltablespace \
                     where relname like 't_' and relkind = 'r' order by 1";

#[test]
fn a_table_has_a_tablespace_and_moves_to_another() {
    let device = Arc::new(SimulatedDevice::new());
    let server = Server::on(&device);
    let mut client = server.connect();
    assert_eq!(
        client.tag("create tablespace cold location ''"),
        "CREATE TABLESPACE"
    );
    client.tag("create tablespace far location '' with (device = hdd, capacity = '1GB')");
    client.tag("create table t1 (id int primary key, v text) tablespace cold");
    client.tag("create table t2 (id int) with (cold_tablespace = far)");
    client.tag("create table t3 (id int)");
    client.tag("set default_tablespace = cold");
    client.tag("create table t4 (id int)");
    client.tag("create table t5 as select 1 as id");
    client.tag("create table t6 (id int) tablespace pg_default");
    client.tag("create temporary table t7 (id int)");
    client.tag("reset default_tablespace");
    let expected = [
        "t1|cold", "t2|far", "t3|home", "t4|cold", "t5|cold", "t6|home", "t7|home",
    ];
    assert_eq!(client.rows(WHERE), expected);
    client.tag("insert into t1 select n, repeat('x', 1000) from generate_series(1, 500) n");
    client.rows("call thermocline.evict('t1', 100000000)");
    let blocks = "select spcname, blocks > 0, tables, state, device from thermocline_tablespaces";
    assert_eq!(
        client.rows(blocks),
        [
            "pg_default|f|3|there|",
            "cold|t|3|there|",
            "far|f|1|there|hdd"
        ]
    );
    assert_eq!(
        client.rows(
            "select pg_tablespace_size('cold') >= 500000, pg_tablespace_size(oid), pg_tablespace_location(oid) \
             from pg_tablespace where spcname = 'far'"
        ),
        ["t|0|"]
    );
    client.tag("drop table t7");
    drop(client);
    server.crash(&device);
    let server = Server::on(&device);
    let mut client = server.connect();
    assert_eq!(client.rows(WHERE), expected[..6]);
    assert_eq!(
        client.rows("select count(*), sum(length(v)) from t1"),
        ["500|500000"]
    );
    client.tag("alter table t1 set tablespace pg_default");
    client.tag("alter table t2 reset (cold_tablespace)");
    client.tag("alter table t3 set (cold_tablespace = far)");
    client.tag("alter tablespace far rename to farther");
    client.tag("alter tablespace farther set (capacity = '2GB', random_page_cost = 2)");
    client.tag("alter tablespace farther reset (random_page_cost)");
    let moved = [
        "t1|home",
        "t2|home",
        "t3|farther",
        "t4|cold",
        "t5|cold",
        "t6|home",
    ];
    assert_eq!(client.rows(WHERE), moved);
    assert_eq!(
        client.rows("select spcname, spcoptions from pg_tablespace where oid > 16000 order by 1"),
        ["cold|NULL", "farther|{capacity=2GB,device=hdd}"]
    );
    assert_eq!(
        client.rows(
            "select tablename, tablespace from pg_tables where tablespace is not null order by 1"
        ),
        ["t3|farther", "t4|cold", "t5|cold"]
    );
    for table in ["t4", "t5"] {
        client.tag(&format!("alter table {table} set tablespace pg_default"));
    }
    // The background moves what is still there.
    let mut dropped = client.query("drop tablespace cold");
    for _ in 0..600 {
        if !dropped.iter().any(|answer| answer.starts_with("E 55000")) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
        dropped = client.query("drop tablespace cold");
    }
    assert!(
        dropped.contains(&"C DROP TABLESPACE".to_owned()),
        "{dropped:?}"
    );
    assert_eq!(
        client.rows("select count(*), sum(length(v)) from t1"),
        ["500|500000"]
    );
    assert_eq!(
        client.rows("select spcname from thermocline_tablespaces"),
        ["pg_default", "farther"]
    );
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create tablespace one location ''");
    for (statement, error) in [
        (
            "create tablespace one location ''",
            "42710 tablespace \"one\" already exists",
        ),
        (
            "create tablespace pg_mine location ''",
            "42939 unacceptable tablespace name \"pg_mine\" [detail The prefix \"pg_\" is reserved for system tablespaces.]",
        ),
        (
            "create tablespace x location 'here'",
            "42P17 tablespace location must be an absolute path",
        ),
        (
            "create tablespace x location '/nowhere/at/all'",
            "58P01 directory \"/nowhere/at/all\" does not exist",
        ),
        (
            "create tablespace x location '' with (emulate = tape)",
            "22023 invalid value for option \"emulate\": \"tape\"; valid values: hdd, smr, ssd, xpoint or nvram",
        ),
        (
            "create tablespace x location '' with (colour = red)",
            "22023 unrecognized parameter \"colour\"",
        ),
        (
            "create table t (id int) tablespace nowhere",
            "42704 tablespace \"nowhere\" does not exist",
        ),
        (
            "create table t (id int) tablespace pg_global",
            "22023 only shared relations can be placed in pg_global tablespace",
        ),
        (
            "drop tablespace nowhere",
            "42704 tablespace \"nowhere\" does not exist",
        ),
        (
            "drop tablespace pg_default",
            "2BP01 cannot drop tablespace pg_default because it is required by the database system",
        ),
        (
            "alter tablespace nowhere set (capacity = '1GB')",
            "42704 tablespace \"nowhere\" does not exist",
        ),
    ] {
        assert_eq!(client.error(statement), error, "{statement}");
    }
    client.tag("create table t (id int) tablespace one");
    assert!(
        client
            .error("drop tablespace one")
            .starts_with("55000 tablespace \"one\" is not empty: table \"t\"")
    );
    client.tag("drop tablespace if exists nowhere");
    client.tag("begin");
    assert_eq!(
        client.error("create tablespace two location ''"),
        "25001 CREATE TABLESPACE cannot run inside a transaction block"
    );
    client.tag("rollback");
    client.tag("create role somebody");
    client.tag("grant create on schema public to somebody");
    client.tag("set role somebody");
    let denied = client.error("create tablespace two location ''");
    assert!(
        denied.starts_with("42501 permission denied to create tablespace \"two\""),
        "{denied}"
    );
    let denied = client.error("create table u (id int) tablespace one");
    assert!(
        denied.starts_with("42501 permission denied for tablespace one"),
        "{denied}"
    );
    let denied = client.error("drop tablespace one");
    assert!(denied.starts_with("42501"), "{denied}");
    client.tag("set default_tablespace = one");
    client.tag("create table u (id int)");
    client.tag("reset role");
    assert_eq!(
        client.rows(
            "select tablename, tablespace from pg_tables where tablename in ('t', 'u') order by 1"
        ),
        ["t|one", "u|NULL"]
    );
    client.tag("drop table t");
    client.tag("drop tablespace one");
}
