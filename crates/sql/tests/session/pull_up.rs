//! Views, queries in FROM and in WITH that the short path reads as their table.

use crate::fixture::{Connection, Server};

/// A row by its key costs as much through a view as without.
#[test]
fn a_view_that_only_gives_rows_is_its_table() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag(
        "create table big (id int primary key, a text, n int);
         insert into big select g, 'a' || g, g % 7 from generate_series(1, 20000) g;
         create view v as select id as key, upper(a) as name, n + 1 as next from big where n < 6;
         create view w as select name, key, next * 2 as twice from v where key > 10",
    );
    let path = |client: &mut Connection, sql: &str| {
        let lines = client.rows(&format!("explain {sql}"));
        lines.last().cloned().unwrap_or_default()
    };
    for (sql, rows) in [
        ("select * from v where key = 9", &["9|A9|3"][..]),
        ("select * from v where key = 6", &[]),
        ("select twice, name from w where key = 15", &["4|A15"]),
        ("select name from w where key = 9", &[]),
        (
            "select count(*), max(twice) from w where key in (13, 14, 15)",
            &["2|4"],
        ),
        (
            "select next, count(*) from v where key between 1 and 9 group by next order by 1 desc limit 2",
            &["6|1", "5|1"],
        ),
        (
            "select s.x from (select n * 10 as x, id from big) s where s.id = 3 and s.x > 20",
            &["30"],
        ),
        (
            "with one as (select id, a from big where n = 2) select a from one where id = 9",
            &["a9"],
        ),
    ] {
        assert_eq!(client.rows(sql), rows, "{sql}");
        let path = path(&mut client, sql);
        assert!(path.starts_with("Path: short"), "{sql}: {path}");
        client.tag("set thermocline.path = analytical");
        assert_eq!(client.rows(sql), rows, "{sql}");
        client.tag("reset thermocline.path");
    }
    for sql in [
        "select * from v where next = 3",
        "select key from (select id as key from big limit 5) s where key = 9",
        "with one as materialized (select * from big) select a from one where id = 9",
    ] {
        let path = path(&mut client, sql);
        assert!(path.starts_with("Path: analytical"), "{sql}: {path}");
    }
    // The owner's rights, on all that the view names; the reader needs none on the table.
    client.tag(
        "create role reader; create role owner; grant select on v, w to reader;
         grant select (id, a) on big to owner; alter view v owner to owner",
    );
    client.tag("set role reader");
    let refused = client.error("select key from v where key = 9");
    assert!(refused.starts_with("42501"), "{refused}");
    client.tag("reset role; grant select (n) on big to owner; set role reader");
    assert_eq!(client.rows("select key from v where key = 9"), ["9"]);
    let refused = client.error("select id from big where id = 9");
    assert!(refused.starts_with("42501"), "{refused}");
}
