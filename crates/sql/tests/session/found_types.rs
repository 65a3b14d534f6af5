//! What a query finds for a change, in the types of columns.

use crate::fixture::Server;

/// Values of every kind of type, found by a query on each of its ways into a row.
#[test]
fn what_a_query_finds_is_stored_in_every_type() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table o (f1 int); insert into o values (1), (2)");
    for (data_type, value) in [
        ("name", "'na'::name"),
        ("json", "'{\"b\": 1}'::json"),
        ("jsonb", "'{\"b\": 1}'::jsonb"),
        ("inet", "'1.2.3.4'::inet"),
        ("interval", "'1 day'::interval"),
        ("int4range", "int4range(1, 5)"),
        ("numrange", "'(1.50,)'::numrange"),
        ("daterange[]", "array['empty'::daterange]"),
        ("time", "'10:11'::time"),
        ("timetz", "'10:11+01'::timetz"),
        ("char(5)", "'ab'"),
        ("varchar(5)", "'ab'"),
        ("numeric(50, 2)", "1e40"),
        ("numeric", "1.50"),
        ("int[]", "array[1, 2]"),
        ("bit(3)", "b'101'"),
        ("uuid", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid"),
        ("bytea", "'\\x01'::bytea"),
        ("oid", "7::oid"),
        ("real", "1.5::real"),
        ("date", "'2024-01-02'::date"),
        ("timestamptz", "'2024-01-02 03:04+00'::timestamptz"),
        ("boolean", "true"),
    ] {
        client.tag(&format!(
            "drop table if exists q; create table q (id int, v {data_type});
             insert into q (id) values (1), (2), (3), (4), (5)"
        ));
        for change in [
            "update q set v = (select {} from o where o.f1 = q.id) where id = 1",
            "update q set v = (select {} limit 1) where id = 2",
            "update q set (id, v) = (select q.id, {} from o limit 1) where id = 3",
            "update q set v = x.v from (select f1 + 3 as id, {} as v from o) x where x.id = q.id",
            "insert into q select f1 + 5, {} from o",
            "with x as (select {} as v from o where f1 = 1 for update) insert into q select 8, v from x",
            "with x as (update q set v = {} where id = 4 returning v) insert into q select 9, v from x",
        ] {
            let sql = change.replace("{}", value);
            let answers = client.query(&sql);
            assert!(
                answers.iter().any(|answer| answer.starts_with("C ")),
                "{data_type}: {sql}: {answers:?}"
            );
        }
        let rows = client.rows(&format!(
            "select count(v), count(distinct v::text), min(v::text) = ({value})::{data_type}::text from q"
        ));
        assert_eq!(rows, ["9|1|t"], "{data_type}");
    }
}
