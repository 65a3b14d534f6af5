//! NULL equals NULL in some joins and not in others of the same query: what a subquery asks of
//! its outer row is joined by the one, what the query asks by the other.

use crate::fixture::Server;

#[test]
fn null_equals_null_only_where_the_query_says_so() {
    let server = Server::new();
    let mut client = server.connect();
    for table in ["a", "b"] {
        let sql = format!("create table {table} (k int primary key, x int, y int)");
        assert_eq!(client.tag(&sql), "CREATE TABLE");
    }
    client.tag("insert into a values (1,null,1), (2,5,null), (3,7,3), (4,2,2), (5,null,null)");
    client.tag("insert into b values (1,null,1), (2,5,4), (3,7,null), (4,9,2), (5,1,1)");
    client.query("set thermocline.path = analytical");
    let nothing: &[&str] = &[];
    for (sql, expected) in [
        // The greatest of none is NULL, and so is x.
        (
            "select k from a where x = (select max(b.x) from b where coalesce(b.y, a.y) < 1)",
            nothing,
        ),
        (
            "select k from a where x = (select max(b.x) from b where b.y < a.y)",
            nothing,
        ),
        (
            "select k from a where x is not distinct from \
             (select max(b.x) from b where b.y < a.y) order by k",
            &["1", "5"],
        ),
        (
            "select a.k, b.k, c.k from a, b, a c where c.y = b.y and \
             a.x = (select max(d.x) from b d where coalesce(d.y, a.y + b.k) < 1)",
            nothing,
        ),
        (
            "select a.k, b.k from a join b on a.x is not distinct from b.x where a.y = b.y",
            &["1|1"],
        ),
        (
            "select a.k, b.k, c.k from a join b on a.x is not distinct from b.x \
             join b c on c.y = b.y where c.y = a.y order by 3",
            &["1|1|1", "1|1|5"],
        ),
        (
            "select a.k, b.k, c.k from a join b on a.x = b.x join b c on c.y is not distinct from a.y",
            &["2|2|3"],
        ),
    ] {
        assert_eq!(client.rows(sql), expected, "{sql}");
    }
}
