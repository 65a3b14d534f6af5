//! TABLESAMPLE.

use crate::fixture::{Connection, Server};

fn count(client: &mut Connection, sql: &str) -> u64 {
    client.rows(sql).concat().parse().unwrap()
}

#[test]
fn a_share_of_the_rows_is_kept_and_the_seed_says_which() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (id int primary key, v int); create view w as select id from t");
    client.tag("insert into t select n, n % 7 from generate_series(1, 20000) n");
    for method in ["bernoulli", "system"] {
        let all = format!("select count(*) from t tablesample {method} (100)");
        assert_eq!(count(&mut client, &all), 20_000);
        let none = format!("select count(*) from t tablesample {method} (0)");
        assert_eq!(count(&mut client, &none), 0);
        // About a quarter; five standard deviations of single rows, and of groups of 64.
        let some = format!("select count(*) from t tablesample {method} (25) repeatable (3)");
        let kept = count(&mut client, &some);
        assert!((3_000..7_000).contains(&kept), "{method}: {kept}");
        // The same rows again, in memory or not, and others by another seed.
        let sum = |seed: u32| {
            format!("select sum(id) from t tablesample {method} (25) repeatable ({seed})")
        };
        let first = client.rows(&sum(3));
        assert_eq!(client.rows(&sum(3)), first);
        client.tag("call thermocline.evict('t', 1000000000)");
        assert_eq!(client.rows(&sum(3)), first);
        assert_ne!(client.rows(&sum(4)), first);
    }
    // Without a seed the rows are others each time.
    let chance = "select sum(id) from t tablesample bernoulli (50)";
    assert_ne!(client.rows(chance), client.rows(chance));
    // With an alias, in a join, by a row before it, in a change.
    assert_eq!(
        count(
            &mut client,
            "select count(*) from t as a (x) tablesample bernoulli (100) join t b on a.x = b.id where b.v = 1"
        ),
        2_858
    );
    let lateral = "select s.p, count(x.id) from (values (0), (100)) s (p), \
                   lateral (select id from t tablesample bernoulli (s.p)) x group by 1";
    assert_eq!(client.rows(lateral), ["100|20000"]);
    let half =
        "delete from t where id in (select id from t tablesample bernoulli (50) repeatable (1))";
    let deleted: u64 = client.tag(half)[7..].parse().unwrap();
    assert_eq!(
        count(&mut client, "select count(*) from t"),
        20_000 - deleted
    );
}

#[test]
fn what_cannot_be_sampled_is_refused() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (id int primary key); insert into t values (1), (2)");
    client.tag("create view w as select id from t");
    for (sql, error) in [
        (
            "select * from t tablesample bernoulli (101)",
            "2202H sample percentage must be between 0 and 100",
        ),
        (
            "select * from t tablesample bernoulli (-1)",
            "2202H sample percentage must be between 0 and 100",
        ),
        (
            "select * from t tablesample system (null)",
            "2202H TABLESAMPLE parameter cannot be null",
        ),
        (
            "select * from t tablesample system (1) repeatable (null)",
            "2202G TABLESAMPLE REPEATABLE parameter cannot be null",
        ),
        (
            "select * from t tablesample system (1, 2)",
            "2202H tablesample method system requires 1 argument, not 2",
        ),
        (
            "select * from t tablesample other (1)",
            "42704 tablesample method other does not exist",
        ),
        (
            "select * from w tablesample system (1)",
            "42809 TABLESAMPLE clause can only be applied to tables and materialized views",
        ),
        (
            "with c as (select 1) select * from c tablesample system (1)",
            "42809 TABLESAMPLE clause can only be applied to tables and materialized views",
        ),
        (
            "select * from t tablesample system ('much')",
            "22P02 invalid input syntax for type real: \"much\"",
        ),
        (
            "select * from t tablesample system (true)",
            "42804 argument of TABLESAMPLE must be type real, not type boolean",
        ),
        (
            "select * from pg_class tablesample system (1)",
            "0A000 TABLESAMPLE of a system catalog is not supported",
        ),
    ] {
        let found = client.error(sql);
        assert!(found.starts_with(error), "{sql}: {found}");
    }
}
