//! EXPLAIN: what operators counted, and plans as JSON.

use crate::fixture::{Connection, Server};

fn tables(server: &Server) -> Connection {
    let mut client = server.connect();
    client.tag("create table item (id int primary key, kind int, price int)");
    client.tag("insert into item select n, n % 7, n from generate_series(1, 700) n");
    client
}

/// The number behind a word in the first line that has both.
fn number_after(lines: &[String], line: &str, word: &str) -> u64 {
    let found = lines
        .iter()
        .find(|shown| shown.contains(line) && shown.contains(word));
    let found = found.unwrap_or_else(|| panic!("no {line} with {word} in {lines:?}"));
    let (_, behind) = found.split_once(word).unwrap();
    let end = behind
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(behind.len());
    behind[..end].parse().unwrap()
}

#[test]
fn operators_show_how_many_rows_they_gave() {
    let server = Server::new();
    let mut client = tables(&server);
    let query = "select kind, count(*) from item a join item b using (kind) where a.price > 690 \
                 group by kind";
    let plan = client.rows(&format!("explain {query}"));
    assert!(
        plan.iter().all(|line| !line.contains("(rows=")),
        "nothing ran: {plan:?}"
    );
    let lines = client.rows(&format!("explain analyze {query}"));
    assert_eq!(number_after(&lines, "SnapshotScan", "(rows="), 700);
    assert_eq!(number_after(&lines, "FilterExec", "(rows="), 10);
    assert_eq!(number_after(&lines, "HashJoinExec", "(rows="), 1_000);
    assert_eq!(
        number_after(&lines, "AggregateExec: mode=Final", "(rows="),
        7
    );
    assert_eq!(number_after(&lines, "Rows: ", "Rows: "), 7);
    // Each run counts anew, also of a prepared statement.
    client.tag(&format!("prepare of_kinds as {query}"));
    for _ in 0..2 {
        let lines = client.rows("explain analyze execute of_kinds");
        assert_eq!(number_after(&lines, "HashJoinExec", "(rows="), 1_000);
    }
    // So do queries over the catalogs.
    let lines = client.rows("explain analyze select count(*) from pg_am");
    assert_eq!(number_after(&lines, "AggregateExec", "(rows="), 1);
}

/// What stands at a path in a plan as JSON.
fn at(client: &mut Connection, plan: &str, path: &str) -> String {
    let plan = plan.replace('\'', "''");
    client
        .rows(&format!("select '{plan}'::json #>> '{path}'"))
        .remove(0)
}

#[test]
fn plans_are_json_too() {
    let server = Server::new();
    let mut client = tables(&server);
    // Lines are shown as bytes.
    let json = |client: &mut Connection, statement: &str| {
        let shown = client.rows(statement).remove(0);
        let bytes = shown.trim_matches(['[', ']']).split(", ");
        let bytes = bytes.map(|byte| u8::from_str_radix(byte, 16).unwrap());
        String::from_utf8(bytes.collect()).unwrap()
    };

    let plan = json(
        &mut client,
        "explain (format json) update item set price = 1 where id = 5",
    );
    for (path, value) in [
        ("{0,Plan,Node Type}", "Update"),
        ("{0,Plan,Relation Name}", "item"),
        ("{0,Plan,Plans,0,Node Type}", "Index Scan"),
        ("{0,Plan,Plans,0,Index Name}", "item_pkey"),
        ("{0,Plan,Plans,0,Index Cond}", "(id = 5)"),
        (
            "{0,Path}",
            "short (a unique key of item_pkey; one partition a key)",
        ),
    ] {
        assert_eq!(at(&mut client, &plan, path), value, "{path} of {plan}");
    }

    client.tag("set thermocline.path = analytical");
    let query = "select kind, count(*) from item where price > 690 group by kind order by 1";
    let plan = json(
        &mut client,
        &format!("explain (analyze, format json) {query}"),
    );
    assert_eq!(at(&mut client, &plan, "{0,Rows}"), "7", "{plan}");
    let kinds = "select string_agg(node ->> 'Node Type', ' ' order by depth), \
                 string_agg(node ->> 'Actual Rows', ' ' order by depth) from tree";
    let walked = format!(
        "with recursive tree as (select '{}'::jsonb -> 0 -> 'Plan' node, 0 depth union all \
         select node -> 'Plans' -> 0, depth + 1 from tree where node ? 'Plans') {kinds}",
        plan.replace('\'', "''")
    );
    let walked = client.rows(&walked).remove(0);
    assert!(walked.contains("AggregateExec"), "{walked}");
    assert!(walked.contains(" SnapshotScan|"), "{walked}");
    assert!(walked.ends_with(" 700"), "{walked}");

    client.tag("reset thermocline.path");

    // One column of type json, for clients that read it as such.
    client
        .parse("as_json", "explain (format json) select 1", &[])
        .unwrap();
    let described = client.describe("as_json").unwrap();
    assert!(
        described.iter().any(|line| line.contains("114")),
        "{described:?}"
    );
    client.sync().unwrap();

    // Two joins side by side are two children.
    let joined = "explain (format json) select count(*) from item a, item b where a.kind = b.price";
    let plan = json(&mut client, joined);
    let two = format!(
        "select bool_or(jsonb_array_length(n) = 2) from \
         jsonb_path_query('{}'::jsonb, '$.**.Plans') n",
        plan.replace('\'', "''")
    );
    assert_eq!(client.rows(&two), ["t"], "{plan}");

    assert!(
        client
            .error("explain (format yaml) select 1")
            .contains("0A000")
    );
    assert!(
        client
            .error("explain (format nonsense) select 1")
            .contains("22023")
    );
}
