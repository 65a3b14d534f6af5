//! What is counted of each column of a column table (`thermocline_column_use`).

use crate::fixture::{Connection, Server};

/// 2,000 rows, all in row groups of four partitions, whose columns have nothing in common.
fn table(client: &mut Connection) {
    client.tag("create table t (id int primary key, state text, n int, note text) using columns");
    client.tag(
        "insert into t select n, 'state ' || n % 3, n * 7, md5(n::text) from generate_series(1, 2000) n",
    );
    client.tag("vacuum t");
}

fn used(client: &mut Connection, what: &str) -> Vec<String> {
    let asked = format!("select attname, {what} from thermocline_column_use where relname = 't'");
    client.rows(&asked)
}

const ASKED: &str = "projections, conditions";
const SCANNED: &str = "chunks, chunk_values";

#[test]
fn a_scan_counts_what_it_reads_and_what_it_has_conditions_on() {
    let server = Server::new();
    let mut client = server.connect();
    table(&mut client);
    client.tag("create table r (id int)");
    client.tag("set thermocline.path = analytical");
    let before = "select relname, attname, indexed, projections from thermocline_column_use";
    assert_eq!(
        client.rows(before),
        ["t|id|t|0", "t|state|f|0", "t|n|f|0", "t|note|f|0"]
    );
    assert_eq!(client.rows("select sum(n) from t"), ["14007000"]);
    assert_eq!(
        used(&mut client, ASKED),
        ["id|0|0", "state|0|0", "n|1|0", "note|0|0"]
    );
    assert_eq!(
        used(&mut client, SCANNED),
        ["id|0|0", "state|0|0", "n|4|2000", "note|0|0"]
    );
    // The condition is answered on all values, and the other column is read where it holds.
    let filtered = "select count(state) from t where n between 70 and 7000";
    assert_eq!(client.rows(filtered), ["991"]);
    assert_eq!(
        used(&mut client, ASKED),
        ["id|0|0", "state|1|0", "n|1|1", "note|0|0"]
    );
    assert_eq!(
        used(&mut client, SCANNED),
        ["id|0|0", "state|4|991", "n|8|4991", "note|0|0"]
    );
    // A condition that groups cannot answer is one, too.
    assert_eq!(
        client.rows("select count(*) from t where upper(note) = 'X'"),
        ["0"]
    );
    // No group has such a row: nothing is decoded.
    assert_eq!(
        client.rows("select sum(id) from t where n > 99999"),
        ["NULL"]
    );
    assert_eq!(
        used(&mut client, ASKED),
        ["id|1|0", "state|1|0", "n|1|2", "note|0|1"]
    );
    assert_eq!(
        used(&mut client, SCANNED),
        ["id|0|0", "state|4|991", "n|8|4991", "note|4|2000"]
    );
    // Rows are counted without their columns.
    assert_eq!(client.rows("select count(*) from t"), ["2000"]);
    client.rows("explain select id from t");
    assert_eq!(
        used(&mut client, ASKED),
        ["id|1|0", "state|1|0", "n|1|2", "note|0|1"]
    );
}

#[test]
fn a_row_by_its_key_counts_single_values_and_what_the_device_gave() {
    let server = Server::new();
    let mut client = server.connect();
    table(&mut client);
    let none = ["id|0|0", "state|0|0", "n|0|0", "note|0|0"];
    assert_eq!(used(&mut client, "single_values, device_reads"), none);
    let by_key = "select state, n from t where id = 7";
    assert_eq!(client.rows(by_key), ["state 1|49"]);
    assert_eq!(
        used(&mut client, ASKED),
        ["id|0|1", "state|1|0", "n|1|0", "note|0|0"]
    );
    assert_eq!(
        used(&mut client, "single_values, chunks"),
        ["id|1|0", "state|1|0", "n|1|0", "note|1|0"]
    );
    let read = used(
        &mut client,
        "device_reads > 0, device_bytes > 0, device_bytes < 100000",
    );
    assert_eq!(read, ["id|t|t|t", "state|t|t|t", "n|t|t|t", "note|t|t|t"]);
    // What is in memory by now is not read again.
    let before = used(&mut client, "device_reads");
    assert_eq!(client.rows(by_key), ["state 1|49"]);
    assert_eq!(used(&mut client, "device_reads"), before);
    assert_eq!(used(&mut client, "single_values")[1], "state|2");
    // A row in memory has no columns, and the query is counted all the same.
    client.tag("insert into t values (2001, 'new', 1, 'x')");
    assert_eq!(client.rows("select note from t where id = 2001"), ["x"]);
    assert_eq!(used(&mut client, "single_values")[1], "state|2");
    assert_eq!(
        used(&mut client, ASKED),
        ["id|0|3", "state|2|0", "n|2|0", "note|1|0"]
    );
}

#[test]
fn counts_stay_when_a_column_is_added_and_begin_again_when_the_table_is_rewritten() {
    let server = Server::new();
    let mut client = server.connect();
    table(&mut client);
    client.tag("set thermocline.path = analytical");
    client.rows("select max(n) from t");
    client.tag("alter table t add column younger int");
    client.rows("select max(younger), max(n) from t");
    assert_eq!(
        used(&mut client, "projections, chunks"),
        ["id|0|0", "state|0|0", "n|2|8", "note|0|0", "younger|1|0"]
    );
    client.tag("create index on t (n)");
    client.tag("alter table t drop column state");
    assert_eq!(
        used(&mut client, "indexed, projections"),
        ["id|t|0", "n|t|2", "note|f|0", "younger|f|1"]
    );
    client.tag("truncate t");
    assert_eq!(
        used(&mut client, "indexed, projections"),
        ["id|t|0", "n|t|0", "note|f|0", "younger|f|0"]
    );
}
