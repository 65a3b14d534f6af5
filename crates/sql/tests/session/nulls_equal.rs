//! UNIQUE NULLS NOT DISTINCT: NULLs in the same places of a key are equal.

use std::sync::Arc;

use thermocline_device::SimulatedDevice;

use crate::fixture::{Connection, Server};

/// The statement is refused, in words that begin so.
fn refused(client: &mut Connection, sql: &str, begins: &str) {
    let error = client.error(sql);
    assert!(error.starts_with(begins), "{sql}: {error}");
}

#[test]
fn nulls_conflict_where_they_are_equal() {
    let device = Arc::new(SimulatedDevice::new());
    let server = Server::on(&device);
    let mut client = server.connect();
    client.tag(
        "create table t (id int primary key, a int, b text, \
         constraint u unique nulls not distinct (a, b), constraint d unique (b))",
    );
    client.tag("insert into t values (1, null, null), (2, 1, null), (3, null, 'x')");
    let taken = |key: &str| {
        format!(
            "23505 duplicate key value violates unique constraint \"u\" \
             [detail Key (a, b)=({key}) already exists.]"
        )
    };
    assert_eq!(
        client.error("insert into t values (4, null, null)"),
        taken("null, null")
    );
    assert_eq!(
        client.error("insert into t values (4, 1, null)"),
        taken("1, null")
    );
    assert_eq!(
        client.error("update t set b = null where id = 3"),
        taken("null, null")
    );
    assert_eq!(client.tag("update t set a = a where id = 1"), "UPDATE 1");
    client.tag("insert into t values (4, 2, null)");
    server.crash(&device);
    let server = Server::on(&device);
    let mut client = server.connect();
    assert_eq!(
        client.error("insert into t values (5, 2, null)"),
        taken("2, null")
    );
    let sql = "insert into t values (5, null, null) on conflict (a, b) do update set id = 50 \
               returning id";
    assert_eq!(client.rows(sql), ["50"]);
    assert_eq!(
        client.tag("insert into t values (5, 1, null) on conflict do nothing"),
        "INSERT 0 0"
    );
    client.tag("delete from t where id = 50");
    client.tag("insert into t values (6, null, null)");
    // Within a transaction, and back.
    client.tag("begin");
    client.tag("delete from t where id = 6");
    client.tag("insert into t values (7, null, null)");
    client.tag("rollback");
    assert_eq!(
        client.error("insert into t values (7, null, null)"),
        taken("null, null")
    );
    assert_eq!(
        client.rows("select id from t order by id"),
        ["2", "3", "4", "6"]
    );
    server.is_sound();
}

#[test]
fn indexes_say_that_nulls_are_equal() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int, b int, gone boolean)");
    client.tag("insert into t values (null, 1, false), (null, 2, true)");
    refused(
        &mut client,
        "create unique index i on t (a) nulls not distinct",
        "23505 could not create unique index \"i\"",
    );
    // Rows beyond a predicate conflict with none.
    client.tag("create unique index p on t (a) include (b) nulls not distinct where not gone");
    client.tag("insert into t values (null, 3, true)");
    refused(
        &mut client,
        "insert into t values (null, 3, false)",
        "23505",
    );
    refused(
        &mut client,
        "update t set gone = false where b = 2",
        "23505",
    );
    assert_eq!(
        client.rows("select pg_get_indexdef('p'::regclass)"),
        [
            "CREATE UNIQUE INDEX p ON public.t USING btree (a) INCLUDE (b) NULLS NOT DISTINCT \
          WHERE (NOT gone)"
        ]
    );
    client.tag("create unique index q on t (b) nulls not distinct");
    client.tag("alter table t add constraint k unique using index q");
    assert_eq!(
        client.rows("select pg_get_constraintdef(oid) from pg_constraint where conname = 'k'"),
        ["UNIQUE NULLS NOT DISTINCT (b)"]
    );
    client.tag("create table l (like t including all)");
    assert_eq!(
        client.rows(
            "select indrelid::regclass, indnullsnotdistinct from pg_index \
             where indrelid in ('t'::regclass, 'l'::regclass) order by 1, 2"
        ),
        ["t|t", "t|t", "l|t", "l|t"]
    );
    assert_eq!(
        client.rows(
            "select table_name, nulls_distinct from information_schema.table_constraints \
             where constraint_type = 'UNIQUE' order by 1"
        ),
        ["l|NO", "t|NO"]
    );
    server.is_sound();
}
