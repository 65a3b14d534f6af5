//! Columns that are hot, warm and cold (LOAD, UNLOAD) as sessions see them.

use std::sync::Arc;

use thermocline_device::SimulatedDevice;

use crate::fixture::{Connection, Server};

const STATES: &str = "select attname, state from thermocline_columns where relname = 'w'";

/// A table of whose rows each has about 200 bytes that no other has.
fn wide(client: &mut Connection) {
    client.tag("create table w (id int primary key, note text, k int, seldom text) using columns");
    client.tag(
        "insert into w select n, repeat(md5(n::text), 6), n % 10, \
                case when n % 3 = 0 then repeat(md5((n * 7)::text), 3) end \
         from generate_series(1, 6000) n",
    );
    client.tag("vacuum w");
}

fn bytes(client: &mut Connection, what: &str, column: &str) -> u64 {
    let asked = format!(
        "select {what} from thermocline_columns where relname = 'w' and attname = '{column}'"
    );
    client.rows(&asked)[0].parse().expect("is a number")
}

#[test]
fn a_row_of_a_warm_column_takes_few_pages() {
    let server = Server::new();
    let mut client = server.connect();
    wide(&mut client);
    assert_eq!(client.tag("load w (note, seldom) warm"), "LOAD");
    assert_eq!(
        client.rows(STATES),
        ["id|cold", "note|warm", "k|cold", "seldom|warm"]
    );
    let whole = bytes(&mut client, "device_bytes", "note");
    assert_eq!(bytes(&mut client, "memory_bytes", "note"), 0);
    let one = "select note = repeat(md5('4321'), 6), k, seldom is null from w where id = 4321";
    assert_eq!(client.rows(one), ["t|1|t"]);
    let read = bytes(&mut client, "memory_bytes", "note");
    assert!(
        read > 0 && read < 8 * 4400 && read < whole / 10,
        "{read} of {whole}"
    );
    let one = "select note = repeat(md5('3000'), 6), seldom = repeat(md5('21000'), 3) from w where id = 3000";
    assert_eq!(client.rows(one), ["t|t"]);
    // Others' rows are as they were, read by pages or not.
    let many =
        "select count(*) from w where id between 100 and 220 and note = repeat(md5(id::text), 6)";
    assert_eq!(client.rows(many), ["121"]);
    // A scan leaves nothing of it behind.
    let before = bytes(&mut client, "memory_bytes", "note");
    client.tag("set thermocline.path = analytical");
    let all = "select count(*) from w where note = repeat(md5(id::text), 6)";
    assert_eq!(client.rows(all), ["6000"]);
    assert_eq!(bytes(&mut client, "memory_bytes", "note"), before);
    let held = "select name, bytes > 0 from thermocline_memory where name like 'warm%' order by 1";
    assert_eq!(client.rows(held), ["warm_buffer|t", "warm_buffer_max|t"]);
}

#[test]
fn columns_are_loaded_and_unloaded() {
    let server = Server::new();
    let mut client = server.connect();
    wide(&mut client);
    client.tag("unload w all");
    assert_eq!(
        client.rows(STATES),
        ["id|cold", "note|cold", "k|cold", "seldom|cold"]
    );
    assert_eq!(client.tag("load w (note)"), "LOAD");
    assert_eq!(
        client.rows(STATES),
        ["id|cold", "note|hot", "k|cold", "seldom|cold"]
    );
    let (there, all) = (
        bytes(&mut client, "memory_bytes", "note"),
        bytes(&mut client, "device_bytes", "note"),
    );
    assert!(there >= all, "{there} of {all}");
    // What is merged later comes into memory with it.
    client.tag("insert into w select n, md5(n::text), 1 from generate_series(6001, 7000) n");
    client.tag("vacuum w");
    assert_eq!(
        client.rows(STATES),
        ["id|cold", "note|hot", "k|cold", "seldom|cold"]
    );
    assert_eq!(client.tag("unload w (note)"), "UNLOAD");
    assert_eq!(client.rows(STATES)[1], "note|cold");
    client.tag("set thermocline.path = analytical");
    assert_eq!(client.rows("select count(note) from w"), ["7000"]);
    assert_eq!(client.rows(STATES)[1], "note|hot", "it is used");
}

#[test]
fn what_is_said_of_columns_holds_over_a_start_and_changes_of_the_table() {
    let device = Arc::new(SimulatedDevice::new());
    let server = Server::on(&device);
    let mut client = server.connect();
    wide(&mut client);
    client.tag("load w (note) warm");
    client.tag("load w (k)");
    client.tag("alter table w set (unload_priority = 2)");
    client.tag("alter table w alter column seldom set (residence = warm, n_distinct = 5)");
    client.tag("alter table w alter column seldom reset (residence)");
    client.tag("alter table w rename column note to remark");
    let kept = "select attname, attoptions from pg_attribute \
                where attrelid = 'w'::regclass and attnum > 0 order by attnum";
    assert_eq!(
        client.rows(kept),
        [
            "id|NULL",
            "remark|{residence=warm}",
            "k|{residence=hot}",
            "seldom|NULL"
        ]
    );
    server.crash(&device);
    let server = Server::on(&device);
    let mut client = server.connect();
    let said = "select attname, state = 'warm', unload_priority from thermocline_columns";
    assert_eq!(
        client.rows(said),
        ["id|f|2", "remark|t|2", "k|f|2", "seldom|f|2"]
    );
    assert_eq!(
        client.rows("select remark = repeat(md5('17'), 6), k from w where id = 17"),
        ["t|7"]
    );
    client.tag("alter table w drop column k, add column younger int default 4");
    client.tag("load w all warm");
    assert_eq!(
        client.rows("select remark = repeat(md5('18'), 6), younger from w where id = 18"),
        ["t|4"]
    );
    client.tag("alter table w set access method heap");
    assert_eq!(client.rows("select count(*) from w"), ["6000"]);
    client.tag("alter table w set access method columns");
    client.tag("vacuum w");
    assert_eq!(
        client.rows("select remark = repeat(md5('19'), 6) from w where id = 19"),
        ["t"]
    );
}

#[test]
fn what_cannot_be_loaded_is_refused() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table w (id int, note text) using columns");
    client.tag("create table r (id int)");
    let refused = [
        (
            "load w (nosuch)",
            "42703 column \"nosuch\" of relation \"w\" does not exist",
        ),
        (
            "unload w (nosuch)",
            "42703 column \"nosuch\" of relation \"w\" does not exist",
        ),
        ("load r all", "42809 \"r\" is not a column table"),
        (
            "load nosuch all warm",
            "42P01 relation \"nosuch\" does not exist",
        ),
        ("load w", "42601 syntax error at end of input [position 7]"),
        (
            "load w all hot",
            "42601 syntax error at or near \"hot\" [position 12]",
        ),
        (
            "unload w all warm",
            "42601 syntax error at or near \"warm\" [position 14]",
        ),
        (
            "alter table w set (unload_priority = 10)",
            "22023 value 10 out of bounds for option \"unload_priority\" \
             [detail Valid values are between \"0\" and \"9\".]",
        ),
        (
            "alter table w alter column note set (residence = lukewarm)",
            "22023 invalid value for option \"residence\"",
        ),
        (
            "alter table r alter column id set (residence = warm)",
            "42809 \"r\" is not a column table",
        ),
    ];
    for (statement, message) in refused {
        assert_eq!(client.error(statement), message, "{statement}");
    }
    client.tag("begin");
    assert_eq!(
        client.error("load w all"),
        "25001 LOAD cannot run inside a transaction block"
    );
    client.tag("rollback");
    client.tag("create role guest login");
    client.tag("grant select on w to guest");
    client.tag("set role guest");
    for statement in ["load w all", "unload w (note)", "load w all warm"] {
        assert_eq!(client.error(statement), "42501 must be owner of table w");
    }
    client.tag("reset role");
    // PostgreSQL's own LOAD is another command.
    assert_ne!(client.error("load 'plpgsql'"), "");
}
