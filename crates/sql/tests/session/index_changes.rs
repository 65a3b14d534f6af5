//! What becomes of indexes over expressions and of partial ones: with their table's definition, with
//! actions of foreign keys, savepoints and restarts.

use std::sync::Arc;

use thermocline_device::SimulatedDevice;

use crate::fixture::Server;

#[test]
fn definitions_change_with_their_table() {
    let device = Arc::new(SimulatedDevice::new());
    let server = Server::on(&device);
    let mut client = server.connect();
    client.tag("create table t (a int, b int, email varchar(20), s text)");
    client.tag("insert into t select i, i % 3, 'E' || i, 'open' from generate_series(1, 2000) i");
    client.tag("create unique index e on t (lower(email)) where b <> 1");
    client.tag("create index f on t ((a % 100)) include (b)");
    client.tag("create index g on t (s) where b <> 1");
    client.tag("create index h on t ((b + 1))");
    let all = "select (select a from t where lower(email) = 'e500' and b <> 1), (select count(*) from t where a % 100 = 7)";
    assert_eq!(client.rows(all), ["500|20"]);
    client.tag("call thermocline.evict('t', 100000000)");
    assert_eq!(client.rows(all), ["500|20"]);
    // A name goes into what is computed.
    client.tag("alter table t rename column email to \"E mail\"");
    client.tag("alter table t rename to u");
    assert_eq!(
        client.rows("select indexdef from pg_indexes where indexname = 'e'"),
        ["CREATE UNIQUE INDEX e ON public.u USING btree (lower(\"E mail\")) WHERE (b <> 1)"]
    );
    let all = "select (select a from u where lower(\"E mail\") = 'e500' and b <> 1), (select count(*) from u where a % 100 = 7)";
    assert_eq!(client.rows(all), ["500|20"]);
    // So does a type.
    client.tag("alter table u alter b type bigint, alter \"E mail\" type text");
    assert_eq!(client.rows(all), ["500|20"]);
    let names = "select string_agg(indexname, ' ' order by indexname) from pg_indexes where tablename = 'u'";
    assert_eq!(client.rows(names), ["e f g h"]);
    let error = client.error("insert into u values (0, 0, 'e500')");
    assert!(error.starts_with("23505"), "{error}");
    drop(client);
    server.crash(&device);
    let server = Server::on(&device);
    let mut client = server.connect();
    assert_eq!(client.rows(all), ["500|20"]);
    let error = client.error("insert into u values (0, 0, 'e500')");
    assert!(error.starts_with("23505"), "{error}");
    client.tag("insert into u values (0, 1, 'e500')");
    // A transaction that is rolled back leaves all as it was.
    client.tag("begin; create index k on u (upper(s)); insert into u values (-1, 1, 'k', 'K')");
    assert_eq!(client.rows("select a from u where upper(s) = 'K'"), ["-1"]);
    client.tag("rollback");
    assert_eq!(client.rows("select a from u where upper(s) = 'K'"), [""; 0]);
    assert_eq!(client.rows(names), ["e f g h"]);
    // A column takes its indexes with it.
    client.tag("alter table u drop column b");
    assert_eq!(client.rows(names), ["NULL"]);
    client.tag("create index on u (lower(s))");
    client.tag("drop index u_lower_idx");
    client.tag("truncate u");
    let left = "select count(*) from pg_attribute where attrelid = 'u'::regclass and attnum > 0 and not attisdropped";
    assert_eq!(client.rows(left), ["3"]);
}

#[test]
fn actions_of_foreign_keys_and_savepoints_keep_them() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table p (id int primary key)");
    client.tag("create table c (id int, p int references p on update cascade on delete set null)");
    client.tag("create index on c ((p * 2))");
    client.tag("create unique index on c (id) where p is null");
    client.tag("insert into p values (1), (2); insert into c values (1, 1), (1, 2), (2, 2)");
    client.tag("update p set id = 10 where id = 1");
    assert_eq!(client.rows("select id from c where p * 2 = 20"), ["1"]);
    client.tag("delete from p where id = 10");
    assert_eq!(
        client.rows("select id from c where p is null and id = 1"),
        ["1"]
    );
    let error = client.error("delete from p where id = 2");
    assert!(error.starts_with("23505"), "{error}");
    assert_eq!(client.rows("select count(*) from c where p * 2 = 4"), ["2"]);
    client.tag(
        "begin; savepoint s; drop index c_id_idx; insert into c values (1, null); rollback to s",
    );
    let error = client.error("insert into c values (1, null)");
    assert!(error.starts_with("23505"), "{error}");
    client.tag("rollback");
    client.tag("begin; savepoint s; create unique index again on c ((id + 1)) where p = 2; rollback to s; insert into c values (1, 2)");
    assert_eq!(client.rows("select count(*) from c where p * 2 = 4"), ["3"]);
    client.tag("savepoint t; create index again on c ((id + 1)); insert into c values (7, 2)");
    assert_eq!(client.rows("select id from c where id + 1 = 8"), ["7"]);
    client.tag("rollback to t; commit");
    assert_eq!(
        client.rows("select count(*), count(p) from c where p * 2 = 4 or id + 1 = 8"),
        ["3|3"]
    );
    server.is_sound();
}

#[test]
fn the_log_brings_them_back() {
    let device = Arc::new(SimulatedDevice::new());
    let server = Server::on(&device);
    let mut client = server.connect();
    client.tag("create table t (id int primary key, k int, gone boolean)");
    client.tag("create unique index on t ((k * 2)) where gone is null");
    client.tag("create index on t using hash (k) where gone");
    client.tag("insert into t select i, i, case when i % 3 = 0 then true end from generate_series(1, 300) i");
    // Out of the predicates, into them, with another key within, and gone.
    client.tag("update t set gone = true where id between 10 and 40");
    client.tag("update t set gone = null where id between 60 and 90");
    client.tag("update t set k = k + 1000 where id between 100 and 130");
    client.tag("delete from t where id between 150 and 170");
    client
        .tag("begin; update t set gone = false where id > 280; delete from t where id < 5; commit");
    let asked = [
        "select id from t where k * 2 between 20 and 2400 and gone is null order by id",
        "select id from t where k = 33 and gone",
        "select id, k, gone from t order by id",
    ];
    let before = asked.map(|query| client.rows(query));
    drop(client);
    server.crash(&device);
    let server = Server::on(&device);
    let mut client = server.connect();
    assert_eq!(asked.map(|query| client.rows(query)), before);
    server.is_sound();
    let error = client.error("insert into t values (1000, 7, null)");
    assert!(error.starts_with("23505"), "{error}");
    client.tag("insert into t values (1000, 7, true)");
}
