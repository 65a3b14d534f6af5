//! Numbers of sequences in queries of many rows: each is drawn once, and one that somebody has seen
//! is not drawn again after a crash.

use std::sync::Arc;

use thermocline_device::SimulatedDevice;

use crate::fixture::Server;

#[test]
fn numbers_are_drawn_by_large_queries() {
    let device = Arc::new(SimulatedDevice::new());
    let server = Server::on(&device);
    let mut client = server.connect();
    for sql in [
        "create sequence s",
        "create table source (x int)",
        "insert into source select n from generate_series(1, 20000) n",
        "create table target (id bigint primary key, x int)",
    ] {
        client.tag(sql);
    }
    assert_eq!(
        client.tag("insert into target select nextval('s'), x from source"),
        "INSERT 0 20000"
    );
    let whole = "select count(*), min(id), max(id), count(distinct x) from target";
    assert_eq!(client.rows(whole), ["20000|1|20000|20000"]);
    let drawn = client.rows("select nextval('s') from generate_series(1, 500)");
    assert_eq!(drawn.len(), 500);
    assert_eq!(
        client.rows("select currval('s'), lastval()"),
        ["20500|20500"]
    );
    assert_eq!(
        client.rows("select max(n) from (select nextval('s') n from source) x"),
        ["40500"]
    );
    // Numbers are drawn in the order of the rows, which is not known there.
    let refused = client.error("select nextval('s'), x from source order by x");
    assert!(refused.starts_with("0A000"), "{refused}");
    client.tag("create role reader");
    client.tag("grant select on source to reader");
    client.tag("set role reader");
    let refused = client.error("select nextval('s') from source");
    assert!(refused.starts_with("42501"), "{refused}");
    client.tag("reset role");

    let seen =
        client.rows("select max(n) from (select nextval('s') n from source where x < 15000) x");
    let seen: i64 = seen[0].parse().unwrap();
    drop(client);
    server.crash(&device);
    let server = Server::on(&device);
    let mut client = server.connect();
    let next: i64 = client.rows("select nextval('s')")[0].parse().unwrap();
    assert!(next > seen, "{next} after {seen}");
}
