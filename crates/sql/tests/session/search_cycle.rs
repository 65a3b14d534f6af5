//! SEARCH and CYCLE of WITH RECURSIVE. The rows are those that PostgreSQL 15 gives.

use crate::fixture::Server;

const WALK: &str = "with recursive g (f, t) as (select f, t from graph where f = 1 \
                    union all select n.f, n.t from graph n, g where n.f = g.t)";

#[test]
fn rows_come_in_the_order_they_were_reached_in() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table graph (f int, t int)");
    client.tag("insert into graph values (1, 2), (1, 3), (2, 3), (1, 4), (4, 5), (5, 1)");
    assert_eq!(
        client.rows(&format!(
            "{WALK} search depth first by f, t set o cycle f, t set is_cycle using path \
             select f, t, is_cycle, path from g order by o"
        )),
        [
            "1|2|f|{\"(1,2)\"}",
            "2|3|f|{\"(1,2)\",\"(2,3)\"}",
            "1|3|f|{\"(1,3)\"}",
            "1|4|f|{\"(1,4)\"}",
            "4|5|f|{\"(1,4)\",\"(4,5)\"}",
            "5|1|f|{\"(1,4)\",\"(4,5)\",\"(5,1)\"}",
            "1|2|f|{\"(1,4)\",\"(4,5)\",\"(5,1)\",\"(1,2)\"}",
            "2|3|f|{\"(1,4)\",\"(4,5)\",\"(5,1)\",\"(1,2)\",\"(2,3)\"}",
            "1|3|f|{\"(1,4)\",\"(4,5)\",\"(5,1)\",\"(1,3)\"}",
            "1|4|t|{\"(1,4)\",\"(4,5)\",\"(5,1)\",\"(1,4)\"}",
        ]
    );
    assert_eq!(
        client.rows(&format!(
            "{WALK} search breadth first by f, t set o \
             cycle f, t set mark to 'Y' default 'N' using path \
             select f, t, o, mark, cardinality(path) from g order by o, mark limit 7"
        )),
        [
            "1|2|(0,1,2)|N|1",
            "1|3|(0,1,3)|N|1",
            "1|4|(0,1,4)|N|1",
            "2|3|(1,2,3)|N|2",
            "4|5|(1,4,5)|N|2",
            "5|1|(2,5,1)|N|3",
            "1|2|(3,1,2)|N|4",
        ]
    );
    let distinct = WALK.replace("union all", "union");
    assert_eq!(
        client.rows(&format!(
            "{distinct} cycle f set c to 1 default 0 using p select * from g order by p, t"
        )),
        [
            "1|2|0|{(1)}",
            "1|3|0|{(1)}",
            "1|4|0|{(1)}",
            "2|3|0|{(1),(2)}",
            "4|5|0|{(1),(4)}",
            "5|1|0|{(1),(4),(5)}",
            "1|2|1|{(1),(4),(5),(1)}",
            "1|3|1|{(1),(4),(5),(1)}",
            "1|4|1|{(1),(4),(5),(1)}",
        ]
    );
    assert_eq!(
        client.rows(
            "with recursive x (a) as (select 1::bigint union all select a + 1 from x where a < 3) \
             search depth first by a set s select a, s, pg_typeof(s) from x order by s desc"
        ),
        [
            "3|{(1),(2),(3)}|record[]",
            "2|{(1),(2)}|record[]",
            "1|{(1)}|record[]"
        ]
    );
}

#[test]
fn what_the_clauses_cannot_mean_is_told() {
    let server = Server::new();
    let mut client = server.connect();
    let counts = "(select 1 union all select a + 1 from x where a < 3)";
    for (query, clauses, expected) in [
        (
            "(select 1)",
            "search depth first by a set s",
            "42601 WITH query is not recursive",
        ),
        (
            counts,
            "search depth first by b set s",
            "42601 search column \"b\" not in",
        ),
        (
            counts,
            "search depth first by a, a set s",
            "42701 search column \"a\" specified",
        ),
        (
            counts,
            "cycle a set m using m",
            "42601 cycle mark column name and cycle path",
        ),
        (
            counts,
            "cycle a set a using p",
            "42601 cycle mark column name \"a\" already used",
        ),
        (counts, "cycle a set m to 1 default 'q' using p", "22P02"),
        (
            counts,
            "search depth first by a set p cycle a set m using p",
            "42601 search sequence column name and cycle path",
        ),
        (
            "(select 1 union all (select a + 1 from x where a < 3 union all select 7))",
            "cycle a set m using p",
            "42601 with a SEARCH or CYCLE clause, the right side",
        ),
        (
            "(select 1 union all select a + 1 from (select * from x) y where a < 3)",
            "cycle a set m using p",
            "0A000 with a SEARCH or CYCLE clause, the recursive reference to WITH query \"x\"",
        ),
    ] {
        let statement = format!("with recursive x (a) as {query} {clauses} select * from x");
        let error = client.error(&statement);
        assert!(error.starts_with(expected), "{statement}: {error}");
    }
}
