//! REASSIGN OWNED and DROP OWNED.

use crate::fixture::Server;

#[test]
fn a_role_can_be_dropped_when_what_it_owned_is_anothers() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create role alice; create role bob; grant create on schema public to alice");
    client.tag("set role alice; create table t (id serial, a int); grant select on t to bob");
    client.tag("reset role");
    assert!(client.error("drop role alice").starts_with("2BP01"));
    assert_eq!(
        client.tag("reassign owned by alice to bob"),
        "REASSIGN OWNED"
    );
    let owner = "select tableowner from pg_tables where tablename = 't'";
    assert_eq!(client.rows(owner), ["bob"]);
    // What it was granted is still there.
    assert!(client.error("drop role alice").starts_with("2BP01"));
    assert_eq!(client.tag("drop owned by alice"), "DROP OWNED");
    assert_eq!(client.tag("drop role alice"), "DROP ROLE");
    client.tag("set role bob; insert into t (a) values (1); reset role");
    assert_eq!(client.tag("drop owned by bob"), "DROP OWNED");
    assert!(client.error("select * from t").starts_with("42P01"));
    assert_eq!(client.rows("select count(*) from pg_sequences"), ["0"]);
    client.tag("drop role bob");
}

#[test]
fn what_others_need_stands_in_the_way() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag(
        "create role alice; create role bob; grant alice to bob;
         create schema authorized; alter schema authorized owner to alice;
         create table authorized.t (a int)",
    );
    let error = client.error("drop owned by alice");
    assert!(error.starts_with("2BP01"), "{error}");
    assert_eq!(client.rows("select count(*) from authorized.t"), ["0"]);
    assert!(client.error("drop owned by postgres").starts_with("2BP01"));
    assert!(
        client
            .error("reassign owned by postgres to bob")
            .starts_with("2BP01")
    );
    assert!(
        client
            .error("reassign owned by nobody to bob")
            .starts_with("42704")
    );
    client.tag("set role alice");
    assert!(client.error("drop owned by bob").starts_with("42501"));
    assert!(
        client
            .error("reassign owned by alice to bob")
            .starts_with("42501")
    );
    client.tag("set role bob");
    assert_eq!(
        client.tag("reassign owned by alice to bob"),
        "REASSIGN OWNED"
    );
    client.tag("reset role");
    assert_eq!(client.tag("drop owned by bob cascade"), "DROP OWNED");
    assert!(
        client
            .error("select * from authorized.t")
            .starts_with("42P01")
    );
}
