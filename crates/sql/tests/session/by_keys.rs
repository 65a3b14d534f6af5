//! Queries of several tables read by indexes where few rows are wanted: by constants and by what the
//! other side of a join has. The answers are those of tables without any index.

use std::cell::RefCell;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};

use crate::fixture::{Connection, Server};

const CUSTOMERS: i64 = 200;
const ORDERS: i64 = 1600;
const LINES: i64 = 3200;

/// `@a` and `@b` are numbers below the orders'.
const QUERIES: [&str; 27] = [
    "select o.id, c.region from orders o join customers c on c.id = o.customer where o.id = @a",
    "select o.id, c.region from orders o, customers c where c.id = o.customer and o.id in (@a, @b, -1)",
    "select o.id, l.item from orders o join lines l on l.order_id = o.id where o.id between @a and @a + 9",
    "select o.id, l.item from orders o left join lines l on l.order_id = o.id where o.customer = @a % 200",
    "select c.id, o.id, l.line from customers c join orders o on o.customer = c.id
     join lines l on l.order_id = o.id where c.id = @a % 200",
    "select c.id, o.id, l.line from customers c left join orders o on o.customer = c.id and o.id > @b
     left join lines l on l.order_id = o.id and l.line = 2 where c.id in (@a % 200, @b % 200)",
    "select count(*), sum(l.qty) from orders o join lines l on l.order_id = o.id where o.customer = @a % 200",
    "select c.region, count(*) from customers c join orders o on o.customer = c.id where c.id < @a % 20 group by 1",
    "select o.id from orders o where o.customer in (select id from customers where id between @a % 200 and @a % 200 + 2)",
    "select o.id from orders o where exists (select from lines l where l.order_id = o.id and l.item = 'item @b')",
    "select c.id from customers c where not exists (select from orders o where o.customer = c.id) and c.id > @a % 200",
    "select o.id from orders o where o.id > @a - 50 and o.id < @a and o.id not in (select order_id from lines where line = 1)",
    "select o.id, x.n from orders o, lateral (select count(*) n from lines l where l.order_id = o.id) x where o.id = @b",
    "select o.id, x.s from orders o join (select order_id, sum(qty) s from lines group by order_id) x
     on x.order_id = o.id where o.customer = @a % 200",
    "select o.id, c.region from orders o right join customers c on c.id = o.customer where c.id = @b % 200",
    "select o.id, c.id from orders o full join customers c on c.id = o.customer where o.id = @a or c.id = 7",
    "select l.order_id, o.total from lines l join orders o on o.id = l.order_id where l.item = 'item @a'",
    "select a.id, b.id from orders a join orders b on b.customer = a.customer and b.id <> a.id where a.id = @a",
    "select o.id, u.n from orders o join (select order_id o, line n from lines union all
     select id, -1 from orders) u on u.o = o.id where o.id = @a",
    "with w as (select id, customer from orders where id < @a % 100) select w.id, c.id from w join customers c on c.id = w.customer",
    "with recursive r(n) as (select @a % 200 union select (o.id % 200)::int from r join orders o on o.customer = r.n) select count(*) from r",
    "select o.id, c.region from orders o join customers c on c.region = o.note where o.id between @a and @a + 3",
    "select o.id, l.line from orders o join lines l on l.order_id = o.customer and l.line = 1 where o.id between @a and @b",
    "select count(*) from orders o join lines l on l.order_id = o.id where o.id > @a and o.note = 'region 3'",
    "select c.id, (select max(o.total) from orders o where o.customer = c.id) from customers c where c.id between @a % 200 and @a % 200 + 4",
    "select o.id, (select count(*) from lines l where l.order_id = o.id and l.qty > 9) from orders o
     where o.customer = @a % 200 and o.total >= (select avg(x.total) from orders x where x.customer = o.customer)",
    "select c.id, (select o.note from orders o where o.customer = c.id order by o.total desc limit 1) from customers c where c.id <> @b % 200",
];

/// Of both schemas alike.
const CHANGES: [&str; 7] = [
    "update orders set customer = (customer + @a) % 200 where id between @b and @b + 30",
    "delete from lines where order_id between @a and @a + 5",
    "insert into orders select @a * 10 + n + 4000000, n % 200, 1.5, 'region 3' from generate_series(1, 9) n on conflict do nothing",
    "insert into lines select @a, n + 1000 + @b, 'item @b', 3 from generate_series(1, 4) n on conflict do nothing",
    "update lines set item = 'item @a' where item = 'item @b'",
    "update customers set region = 'region 9' where id = @a % 200",
    "delete from orders where customer = @b % 200 and id > @a",
];

fn filled(client: &mut Connection) {
    for (schema, method) in [
        ("plain", "memory"),
        ("keyed", "memory"),
        ("grouped", "columns"),
    ] {
        let key = |columns: &str| match schema {
            "plain" => String::new(),
            _ => format!(", primary key ({columns})"),
        };
        client.tag(&format!("create schema {schema}"));
        client.tag(&format!("set search_path = {schema}"));
        client.tag(&format!(
            "create table customers (id int, region text{}) using {method}",
            key("id")
        ));
        client.tag(&format!(
            "create table orders (id bigint, customer int, total numeric(10,2), note text{}) using {method}",
            key("id")
        ));
        client.tag(&format!(
            "create table lines (order_id bigint, line int, item text, qty smallint{}) using {method}",
            key("order_id, line")
        ));
        if schema != "plain" {
            client.tag("create index on customers (region)");
            client.tag("create index on orders (customer)");
            client.tag("create index on lines using hash (item)");
        }
        client.tag(&format!(
            "insert into customers select n, 'region ' || n % 7 from generate_series(1, {CUSTOMERS}) n"
        ));
        client.tag(&format!(
            "insert into orders select n, (n * 7919 % {CUSTOMERS})::int, n / 4.0, 'region ' || n % 11
             from generate_series(1, {ORDERS}) n"
        ));
        client.tag(&format!(
            "insert into lines select n * 31 % {ORDERS}, n / {ORDERS}, 'item ' || n % 900, (n % 50)::smallint
             from generate_series(1, {LINES}) n on conflict do nothing"
        ));
    }
    client.tag("vacuum grouped.orders");
    client.tag("vacuum grouped.lines");
}

fn said(text: &str, (a, b): (i64, i64)) -> String {
    text.replace("@a", &a.to_string())
        .replace("@b", &b.to_string())
}

fn answer(client: &mut Connection, schema: &str, query: &str) -> Vec<String> {
    client.tag(&format!("set search_path = {schema}"));
    let mut rows = client.rows(query);
    rows.sort();
    rows
}

#[derive(Debug, Clone)]
enum Step {
    Ask(&'static str, (i64, i64)),
    /// By the session that asks, or by another.
    Change(&'static str, (i64, i64), bool),
    Begin(&'static str),
    End(&'static str),
    Leave,
}

fn step() -> impl Strategy<Value = Step> {
    let numbers = || (0..ORDERS, 0..ORDERS);
    prop_oneof![
        12 => (select(&QUERIES[..]), numbers()).prop_map(|(query, of)| Step::Ask(query, of)),
        3 => (select(&CHANGES[..]), numbers(), any::<bool>())
            .prop_map(|(change, of, own)| Step::Change(change, of, own)),
        1 => select(vec!["begin", "begin isolation level repeatable read"]).prop_map(Step::Begin),
        1 => select(vec!["commit", "rollback"]).prop_map(Step::End),
        1 => Just(Step::Leave),
    ]
}

fn walk(client: &mut Connection, other: &mut Connection, steps: &[Step]) {
    for step in steps {
        match step {
            Step::Ask(query, numbers) => {
                let query = said(query, *numbers);
                let expected = answer(client, "plain", &query);
                for schema in ["keyed", "grouped"] {
                    let given = answer(client, schema, &query);
                    assert_eq!(given, expected, "{schema}: {query}");
                }
            }
            Step::Change(change, numbers, own) => {
                // What a transaction has changed another one would wait for.
                let own = *own || client.status() != 'I';
                let by = if own { &mut *client } else { &mut *other };
                let change = said(change, *numbers);
                for schema in ["plain", "keyed", "grouped"] {
                    by.tag(&format!("set search_path = {schema}"));
                    by.tag(&change);
                }
            }
            Step::Begin(begin) if client.status() == 'I' => {
                client.tag(begin);
            }
            Step::End(end) if client.status() != 'I' => {
                client.tag(end);
            }
            Step::Begin(_) | Step::End(_) => {}
            Step::Leave => {
                for table in ["customers", "orders", "lines"] {
                    other.tag(&format!(
                        "call thermocline.evict('keyed.{table}', 100000000)"
                    ));
                }
            }
        }
    }
    if client.status() != 'I' {
        client.tag("rollback");
    }
}

#[test]
fn rows_by_keys_are_those_of_all_rows() {
    let server = Server::new();
    let mut client = server.connect();
    filled(&mut client);
    let state = RefCell::new((client, server.connect()));
    let mut runner = TestRunner::new(Config {
        cases: 16,
        max_shrink_iters: 0,
        failure_persistence: None,
        ..Config::default()
    });
    let steps = prop::collection::vec(step(), 1..16);
    let ran = runner.run(&steps, |steps| {
        let (client, other) = &mut *state.borrow_mut();
        walk(client, other, &steps);
        Ok(())
    });
    if let Err(error) = ran {
        panic!("{error}");
    }
}

#[test]
fn a_plan_says_by_which_index_rows_are_read() {
    let server = Server::new();
    let mut client = server.connect();
    filled(&mut client);
    client.tag("set search_path = keyed");
    client.tag("set thermocline.path = analytical");
    let plan = client
        .rows("explain select o.id, c.region from orders o join customers c on c.id = o.customer where o.id = 5")
        .join("\n");
    assert!(
        plan.contains("by orders_pkey (keys of constants)"),
        "{plan}"
    );
    let plan = client
        .rows("explain select l.item from orders o join lines l on l.order_id = o.id where o.customer = 5")
        .join("\n");
    assert!(
        plan.contains("by orders_customer_idx (keys of constants)"),
        "{plan}"
    );
    assert!(plan.contains("by lines_pkey (keys of a join)"), "{plan}");
    assert!(plan.contains("LearnKeys: of lines_pkey"), "{plan}");
    // All orders were read for the customers of a few, since nobody told how few they are.
    let of_each = "explain select c.region, (select count(*) from orders o where o.customer = c.id)
        from customers c where c.id between 5 and 9";
    let plan = client.rows(of_each).join("\n");
    assert!(
        plan.contains("by orders_customer_idx (keys of a join)"),
        "{plan}"
    );
}

/// Types that an index can be over, and how a value is made of `@`.
const TYPES: [(&str, &str); 25] = [
    ("smallint", "(@)::smallint"),
    ("int", "@"),
    ("bigint", "@ * 10000000000"),
    ("numeric", "@ / 7.0"),
    ("numeric(10,2)", "@ / 4.0"),
    ("real", "(@ / 8.0)::real"),
    ("float8", "@ / 8.0"),
    ("text", "'t' || @"),
    ("varchar(9)", "'v' || @"),
    ("char(9)", "'c' || @"),
    ("name", "('n' || @)::name"),
    ("\"char\"", "chr(33 + @ % 90)::\"char\""),
    ("oid", "(@)::oid"),
    ("date", "date '2020-01-01' + @"),
    ("time", "time '00:00' + @ * interval '1 second'"),
    ("timetz", "('00:00+01'::timetz + @ * interval '1 second')"),
    (
        "timestamp",
        "timestamp '2020-01-01' + @ * interval '1 hour'",
    ),
    (
        "timestamptz",
        "timestamptz '2020-01-01 00:00+00' + @ * interval '1 hour'",
    ),
    ("interval", "@ * interval '1 hour'"),
    ("bytea", "decode(lpad(to_hex(@), 6, '0'), 'hex')"),
    (
        "uuid",
        "('00000000-0000-0000-0000-' || lpad((@)::text, 12, '0'))::uuid",
    ),
    ("inet", "('10.0.0.0'::inet + @)"),
    ("int4range", "int4range(@, @ + 3)"),
    ("numrange", "numrange(@, @ + 0.50)"),
    (
        "tsrange",
        "tsrange(null, timestamp '2020-01-01' + @ * interval '1 hour')",
    ),
];

#[test]
fn keys_of_every_type_lead_to_their_rows() {
    let server = Server::new();
    let mut client = server.connect();
    let mut asked = 0;
    for (number, (of, value)) in TYPES.iter().enumerate() {
        let value = |n: &str| value.replace('@', n);
        client.tag(&format!("create table k{number} (id int, v {of})"));
        client.tag(&format!("create table d{number} (v {of})"));
        client.tag(&format!(
            "insert into k{number} select n, {} from generate_series(1, 1500) n",
            value("n")
        ));
        client.tag(&format!(
            "insert into d{number} values ({}), ({}), (null), ({})",
            value("77"),
            value("1200"),
            value("5000")
        ));
        let queries = [
            format!("select k.id from d{number} d join k{number} k on k.v = d.v order by 1"),
            format!(
                "select d.v::text, k.id from d{number} d left join k{number} k on k.v = d.v order by 2, 1"
            ),
            format!("select id from k{number} where v in (select v from d{number}) order by 1"),
            format!(
                "select k.id from k{number} k, d{number} d where k.v = {} and d.v is null order by 1",
                value("300")
            ),
        ];
        let all: Vec<_> = queries.iter().map(|query| client.rows(query)).collect();
        client.tag(&format!("create index on k{number} (v)"));
        for (query, all) in queries.iter().zip(all) {
            assert_eq!(client.rows(query), all, "{of}: {query}");
        }
        let plan = client.rows(&format!("explain {}", queries[0])).join("\n");
        asked += usize::from(plan.contains("(keys of a join)"));
    }
    assert!(asked >= 10, "only {asked} types have keys");
}
