//! Rules of queries that PostgreSQL's own regression statements ask for: what is computed when, and
//! what names mean.

use crate::fixture::Server;

#[test]
fn what_changes_from_call_to_call_is_computed_of_ordered_rows_that_limit_leaves() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int); create sequence s");
    client.tag("insert into t select generate_series(1, 2000)");
    let next = "select a, nextval('s') from t order by";
    assert_eq!(
        client.rows(&format!("{next} -a limit 3")),
        ["2000|1", "1999|2", "1998|3"]
    );
    assert_eq!(client.rows("select currval('s')"), ["3"]);
    assert_eq!(client.rows(&format!("{next} a offset 1 limit 1")), ["2|5"]);
    // The order asks for it, so all rows have it.
    client.tag("alter sequence s restart");
    assert_eq!(
        client.rows("select nextval('s') as n from t order by n desc limit 2"),
        ["2000", "1999"]
    );
    client.tag("alter sequence s restart; create table few as select * from t where a < 4");
    assert_eq!(
        client.rows("select a, nextval('s') from few order by a desc"),
        ["3|1", "2|2", "1|3"]
    );
    assert_eq!(
        client.rows("select a, nextval('s') from few order by a desc limit 1"),
        ["3|4"]
    );
    assert_eq!(client.rows("select currval('s')"), ["4"]);
}

#[test]
fn nothing_is_computed_of_rows_that_a_filter_leaves_out() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (id int primary key, v text, n numeric, a int, b int, c int)");
    client.tag("insert into t values (1, 'a', 'NaN', 0, 0, 0), (2, 'b', 7, 1, 1, 1)");
    client.tag("set thermocline.path = analytical");
    for (sql, wanted) in [
        (
            "select id, n::bigint, v from t where not (v not in ('b')) order by n, a + b, id",
            "2|7|b",
        ),
        ("select id, 1 / a from t where v || 'x' = 'bx'", "2|1"),
        (
            "select max(1 / a), v from t where v || 'x' = 'bx' group by v",
            "1|b",
        ),
        (
            "select t.id, 1 / t.a from t join t u on t.v = u.v where t.v || u.v = 'bb'",
            "2|1",
        ),
    ] {
        assert_eq!(client.rows(sql), [wanted], "{sql}");
    }
}

#[test]
fn what_few_rows_show_is_computed_of_these_alone() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (id int primary key, v int)");
    client.tag("insert into t select n, n % 5 from generate_series(1, 100) n");
    client.tag("set thermocline.path = analytical");
    // Row 90 would divide by zero.
    let shown = "10 / (id - 90)";
    assert_eq!(
        client.rows(&format!("select id, {shown} from t order by id limit 2")),
        ["1|0", "2|0"]
    );
    assert_eq!(
        client.rows(&format!(
            "select id, {shown} from t order by id limit 2 offset 3"
        )),
        ["4|0", "5|0"]
    );
    assert_eq!(
        client.rows("select v, 10 / (max(id) - 96) from t group by v order by v limit 1"),
        ["0|2"]
    );
    for all in [
        format!("select id, {shown} from t order by id"),
        format!("select id, {shown} as s from t order by s limit 2"),
        format!("select distinct v, {shown} from t order by v limit 2"),
        format!("select id, {shown} from t order by id desc limit 20"),
    ] {
        let error = client.error(&all);
        assert!(error.starts_with("22012"), "{all}: {error}");
    }
}

#[test]
fn a_row_of_values_may_give_several_and_take_whole_rows() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int, b text default 'd', c int default 7)");
    assert_eq!(
        client.tag("insert into t values (generate_series(1, 3), 'x')"),
        "INSERT 0 3"
    );
    assert_eq!(
        client.rows("insert into t (c, a) values (1, generate_series(4, 5)) returning *"),
        ["4|d|1", "5|d|1"]
    );
    assert_eq!(
        client.rows("select * from t order by a"),
        ["1|x|7", "2|x|7", "3|x|7", "4|d|1", "5|d|1"]
    );
    let error = client.error("insert into t values (generate_series(1, 3)), (4)");
    assert!(error.starts_with("0A000"), "{error}");
    let error = client.error("values (generate_series(1, 3))");
    assert!(error.starts_with("0A000"), "{error}");
    assert_eq!(
        client.rows("select v.* from t, lateral (values (t.*), (t.a, 'y', 0)) v where a = 4 order by column2"),
        ["4|d|1", "4|y|0"]
    );
}

#[test]
fn a_key_in_every_set_lets_other_columns_through() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int primary key, b int, c int, d int)");
    client.tag("insert into t values (1, 1, 1, 10), (2, 2, 2, 20)");
    let sql = |sets: &str| {
        format!(
            "select a, d, grouping(a, b, c) from t group by grouping sets ({sets}) order by 3, 1"
        )
    };
    assert_eq!(
        client.rows(&sql("(a, b), (a, c)")),
        ["1|10|1", "2|20|1", "1|10|2", "2|20|2"]
    );
    let error = client.error(&sql("(a, b), (b, c)"));
    assert!(error.starts_with("42803"), "{error}");
}

#[test]
fn a_field_of_a_row_is_found_through_queries_of_with() {
    let server = Server::new();
    let mut client = server.connect();
    let with = "with one(c) as (select row(1, 'x'::text)), two(c) as (select * from one)";
    assert_eq!(
        client.rows(&format!("{with} select (c).f2, (c).f1 + 1 from two")),
        ["x|2"]
    );
    assert_eq!(
        client.rows(&format!(
            "{with} select (select (c1).f1 from (select c as c1) s) from two"
        )),
        ["1"]
    );
    let error = client.error(&format!("{with} select (c).f3 from two"));
    assert!(error.starts_with("42703"), "{error}");
    let error = client.error(
        "with recursive r(c) as (select row(1, 2) union all select c from r where false) \
         select (c).f9 from r",
    );
    assert!(error.starts_with("42703"), "{error}");
}

#[test]
fn an_array_has_no_seventh_subscript() {
    let server = Server::new();
    let mut client = server.connect();
    assert_eq!(
        client.rows("select ('{}'::int[])[1][2][3][4][5][6]"),
        ["NULL"]
    );
    let error = client.error("select ('{}'::int[])[1][2][3][4][5][6][7]");
    assert!(error.starts_with("54000"), "{error}");
}

#[test]
fn the_current_schema_may_be_the_systems() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("set search_path = pg_catalog");
    assert_eq!(client.rows("select current_schema"), ["pg_catalog"]);
    client.tag("set search_path = nothing, public");
    assert_eq!(client.rows("select current_schema"), ["public"]);
}

#[test]
fn having_without_aggregates_asks_nothing_of_the_rows() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int); insert into t values (0), (1)");
    assert_eq!(
        client.rows("select 1 as one from t where 1 / a = 1 having 1 < 2"),
        ["1"]
    );
    assert_eq!(client.rows("select 1 as one from t having 1 > 2"), [""; 0]);
    let error = client.error("select count(*) from t where 1 / a = 1");
    assert!(error.starts_with("22012"), "{error}");
}

#[test]
fn a_recursion_keeps_the_type_of_its_first_rows_and_merge_has_none() {
    let server = Server::new();
    let mut client = server.connect();
    let sum = |first: &str, next: &str| {
        format!(
            "with recursive r(i) as (select 1::{first} union all \
             select (i + 1)::{next} from r where i < 3) select * from r order by i"
        )
    };
    assert_eq!(
        client.rows(&sum("numeric(3,0)", "numeric(3,0)")),
        ["1", "2", "3"]
    );
    for next in ["numeric(10,0)", "numeric"] {
        let error = client.error(&sum("numeric(3,0)", next));
        assert!(error.starts_with("42804"), "{error}");
    }
    client.tag("create table m (k int primary key, v text)");
    let merge = "w as (select 1 as k) merge into m using w on m.k = w.k \
                 when not matched then insert values (w.k, 'new')";
    let error = client.error(&format!("with recursive {merge}"));
    assert!(error.starts_with("42601"), "{error}");
    assert_eq!(client.tag(&format!("with {merge}")), "MERGE 1");
}
