//! `pg_stat_statements`: what is counted, for whom, and who sees it.

use crate::fixture::{Connection, Server};

fn counted(client: &mut Connection, like: &str) -> Vec<String> {
    client.rows(&format!(
        "select query, calls, rows from pg_stat_statements where query like '{like}' order by query"
    ))
}

#[test]
fn statements_are_counted_by_their_shape() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int primary key, b text)");
    for number in 0..10 {
        client.tag(&format!("insert into t values ({number}, 'x{number}')"));
    }
    client.tag("SELECT * from t where a = 3; select  *  from t where a=4 /* again */");
    client.tag("update t set b = 'y' where a in (1, 2, 3)");
    assert!(
        client
            .error("select * from t where a = 1/0")
            .starts_with("22012")
    );
    client
        .parse("s", "select * from t where a = $1 and b <> 'z'", &[])
        .unwrap();
    for number in ["5", "6", "77"] {
        client.bind("", "s", &[Some(number)]).unwrap();
        client.execute("", 0).unwrap();
        client.sync().unwrap();
    }
    client.tag("prepare q as select b from t where a = $1");
    client.tag("execute q(1)");
    client.tag("execute q(2)");
    client.tag("deallocate q");
    client.copy("copy t from stdin", &["100\tx\n101\ty\n"]);
    client.tag("create role someone password 'hunter2'");
    client.tag("select 1; alter role someone password 'hunter2'");
    let mut other = server.connect();
    other.tag("select * from t where a = 9");
    drop(other);
    assert_eq!(
        counted(&mut client, "insert into t%"),
        ["insert into t values ($1, $2)|10|10"]
    );
    assert_eq!(
        counted(&mut client, "SELECT%where a = $1"),
        ["SELECT * from t where a = $1|3|3"]
    );
    assert_eq!(
        counted(&mut client, "update%"),
        ["update t set b = $1 where a in ($2, $3, $4)|1|3"]
    );
    assert_eq!(
        counted(&mut client, "%<> $2"),
        ["select * from t where a = $1 and b <> $2|3|2"]
    );
    assert_eq!(counted(&mut client, "%xecute%"), [""; 0]);
    assert_eq!(
        counted(&mut client, "prepare%"),
        ["prepare q as select b from t where a = $1|2|2"]
    );
    assert_eq!(counted(&mut client, "copy%"), ["copy t from stdin|1|2"]);
    assert_eq!(counted(&mut client, "%hunter2%"), [""; 0]);
    assert_eq!(counted(&mut client, "<a command%").len(), 1);
    let times = "select count(*) from pg_stat_statements where not (min_exec_time <= mean_exec_time
        and mean_exec_time <= max_exec_time and max_exec_time <= total_exec_time
        and total_exec_time > 0 and stddev_exec_time >= 0 and toplevel and queryid <> 0)";
    assert_eq!(client.rows(times), ["0"]);
    let hits = "select shared_blks_hit, shared_blks_read from pg_stat_statements
        where query = 'SELECT * from t where a = $1'";
    assert_eq!(client.rows(hits), ["3|0"]);
    client.tag("set pg_stat_statements.track = 'none'");
    client.tag("select * from t where a = 9");
    client.tag("reset pg_stat_statements.track");
    assert_eq!(
        counted(&mut client, "SELECT%where a = $1"),
        ["SELECT * from t where a = $1|3|3"]
    );
    client.tag("select pg_stat_statements_reset()");
    assert_eq!(counted(&mut client, "insert%"), [""; 0]);
}

#[test]
fn a_portal_taken_in_parts_is_one_call() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int primary key)");
    client.tag("insert into t select generate_series(1, 10)");
    client.tag("begin");
    client.parse("", "select a from t", &[]).unwrap();
    client.bind("p", "", &[]).unwrap();
    for _ in 0..3 {
        client.execute("p", 4).unwrap();
    }
    client.tag("commit");
    assert_eq!(
        counted(&mut client, "select a from t"),
        ["select a from t|1|10"]
    );
}

#[test]
fn the_texts_of_others_are_for_those_who_may_see_them() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create role alice login; create role bob login");
    client.tag("create table secrets (a int)");
    client.tag("select * from secrets where a = 7");
    client.tag("set role alice; select 'as alice'; reset role");
    let query = "select count(*) from pg_stat_statements where query like '%secrets%'";
    let hidden = "select count(*) > 0 from pg_stat_statements
        where query = '<insufficient privilege>' and queryid is null";
    let own = "select query from pg_stat_statements where userid = 'alice'::regrole and query like 'select $1'";
    assert_ne!(client.rows(query), ["0"]);
    client.tag("set role alice");
    assert_eq!(client.rows(query), ["0"]);
    assert_eq!(client.rows(hidden), ["t"]);
    assert_eq!(client.rows(own), ["select $1"]);
    assert!(
        client
            .error("select pg_stat_statements_reset()")
            .starts_with("42501")
    );
    assert!(
        client
            .error("set pg_stat_statements.track = 'none'")
            .starts_with("42501")
    );
    // CREATEROLE does not let anybody in.
    client.tag("reset role; alter role bob createrole; set role bob");
    assert!(
        client
            .error("grant pg_read_all_stats to alice")
            .starts_with("42501")
    );
    assert!(
        client
            .error("create role carol in role pg_monitor")
            .starts_with("42501")
    );
    assert!(
        client
            .error("alter role pg_monitor login")
            .starts_with("42939")
    );
    assert!(
        client
            .error("alter role pg_monitor rename to m")
            .starts_with("42939")
    );
    assert!(client.error("drop role pg_monitor").starts_with("2BP01"));
    client.tag("reset role; grant pg_monitor to alice; set role alice");
    assert_ne!(client.rows(query), ["0"]);
    assert_eq!(client.rows(hidden), ["f"]);
    client.tag("reset role; revoke pg_monitor from alice; grant pg_read_all_stats to alice; set role alice");
    assert_ne!(client.rows(query), ["0"]);
}
