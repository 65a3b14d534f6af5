//! COPY FROM STDIN and TO STDOUT: pieces, errors with their line, columns and conditions.

use crate::fixture::{Connection, Server};

fn connection(server: &Server) -> Connection {
    let mut client = server.connect();
    client.tag("create table t (a int primary key, b text, c numeric(6,2) check (c >= 0))");
    client
}

#[test]
fn text_comes_in_whatever_its_pieces() {
    let server = Server::new();
    let mut client = connection(&server);
    let answers = client.copy(
        "copy t from stdin",
        &["1\tone\t1.5\n2\t", "\\N\t\\N\n3\ta\\tb\\", "\\\t0\n\\.\n"],
    );
    assert_eq!(answers, ["G 9", "C COPY 3"]);
    assert_eq!(
        client.rows("select a, c from t where a > 0 order by a"),
        ["1|1.50", "2|NULL", "3|0.00"]
    );
    let mut answers = client.query("copy t to stdout");
    assert_eq!(answers.pop().as_deref(), Some("C COPY 3"));
    assert_eq!(answers.pop().as_deref(), Some("c"));
    // Rows come partition by partition.
    answers.sort();
    assert_eq!(
        answers,
        [
            "H 9",
            "d 1\tone\t1.50\n",
            "d 2\t\\N\t\\N\n",
            "d 3\ta\\tb\\\\\t0.00\n"
        ]
    );
}

#[test]
fn an_error_names_its_line_and_stores_nothing() {
    let server = Server::new();
    let mut client = connection(&server);
    let error = |client: &mut Connection, input: &str| {
        let answers = client.copy("copy t from stdin (format csv)", &[input]);
        answers[1..].join("\n")
    };
    assert_eq!(
        error(&mut client, "1,x,1\nabc,y,2\n"),
        "E 22P02 invalid input syntax for type integer: \"abc\" \
         [context COPY t, line 2, column a: \"abc\"]"
    );
    assert_eq!(
        error(&mut client, "1,x\n"),
        "E 22P04 missing data for column \"c\" [context COPY t, line 1]"
    );
    let message = error(&mut client, "1,x,1\n2,y,2\n1,z,3\n");
    assert!(
        message.starts_with("E 23505 duplicate key value violates unique constraint \"t_pkey\""),
        "{message}"
    );
    assert!(message.ends_with("[context COPY t, line 3]"), "{message}");
    let message = error(&mut client, "1,x,1\n2,y,-2\n");
    assert!(message.starts_with("E 23514 "), "{message}");
    assert!(message.ends_with("[context COPY t, line 2]"), "{message}");
    assert_eq!(client.status(), 'I');
    assert_eq!(client.rows("select count(*) from t"), ["0"]);
    let answers = client.copy_fail("copy t from stdin", "1\tx\t1\n");
    assert!(answers[1].starts_with("E 57014 "), "{answers:?}");
    assert_eq!(client.rows("select count(*) from t"), ["0"]);
}

#[test]
fn columns_defaults_header_and_where() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table u (id serial primary key, name text not null, n int default 7)");
    let answers = client.copy(
        "copy u (name) from stdin with (format csv, header) where name <> 'skip'",
        &["name\nann\nskip\n\"b\"\"o\"\"b\"\n"],
    );
    assert_eq!(answers, ["G 5", "C COPY 2"]);
    assert_eq!(
        client.rows("select id, name, n from u order by id"),
        ["1|ann|7", "2|b\"o\"b|7"]
    );
    assert_eq!(
        client.query("copy (select name from u order by id) to stdout csv header"),
        [
            "H 5",
            "d name\n",
            "d ann\n",
            "d \"b\"\"o\"\"b\"\n",
            "c",
            "C COPY 2"
        ]
    );
    assert!(client.copy("copy u (none) from stdin", &[])[0].starts_with("E 42703 "));
    assert!(client.copy("copy none from stdin", &[])[0].starts_with("E 42P01 "));
}

#[test]
fn binary_goes_out_and_comes_back() {
    let server = Server::new();
    let mut client = connection(&server);
    client.tag("insert into t values (1, 'one', 1.25), (2, null, null)");
    let copied = client
        .session
        .simple_query("copy t to stdout binary", &mut client.client);
    thermocline_engine::block_on(copied);
    let mut bytes = Vec::new();
    let raw = client.raw();
    let mut rest = &raw[..];
    while let Some((head, tail)) = rest.split_first_chunk::<5>() {
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize - 4;
        if head[0] == b'd' {
            bytes.extend_from_slice(&tail[..length]);
        }
        rest = &tail[length..];
    }
    assert!(bytes.starts_with(b"PGCOPY\n\xff\r\n\0"));
    client.tag("truncate t");
    let (front, back) = bytes.split_at(25);
    assert_eq!(
        client.copy_bytes("copy t from stdin (format binary)", &[front, back]),
        ["G 9", "C COPY 2"]
    );
    assert_eq!(
        client.rows("select a, b, c from t order by a"),
        ["1|one|1.25", "2|NULL|NULL"]
    );
}

#[test]
fn a_copy_is_part_of_its_transaction() {
    let server = Server::new();
    let mut client = connection(&server);
    client.tag("begin");
    assert_eq!(client.tag("truncate table t"), "TRUNCATE TABLE");
    client.copy("copy t from stdin with (freeze on)", &["1\tx\t1\n"]);
    assert_eq!(client.rows("select count(*) from t"), ["1"]);
    client.tag("rollback");
    assert_eq!(client.rows("select count(*) from t"), ["0"]);
}

#[test]
fn many_rows_are_stored_in_batches_and_together() {
    let server = Server::new();
    let mut client = connection(&server);
    let mut input: String = (0..5000)
        .map(|row| format!("{row}\tname {row}\t1\n"))
        .collect();
    assert_eq!(
        client.copy("copy t from stdin", &[&input]),
        ["G 9", "C COPY 5000"]
    );
    assert_eq!(client.rows("select count(*) from t"), ["5000"]);
    client.tag("truncate t");
    input.push_str("17\tagain\t1\n");
    let answers = client.copy("copy t from stdin", &[&input]);
    assert!(
        answers[1].ends_with("[context COPY t, line 5001]"),
        "{answers:?}"
    );
    assert_eq!(client.rows("select count(*) from t"), ["0"]);
}

#[test]
fn a_superuser_copies_from_a_file_of_the_server() {
    let server = Server::new();
    let mut client = connection(&server);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rows");
    let shown = path.display();
    let lines = |count: i32| -> String { (0..count).map(|n| format!("{n}\tx\t1\n")).collect() };
    std::fs::write(&path, lines(20_000)).expect("writes");
    let sql = format!("copy t from '{shown}'");
    assert_eq!(client.tag(&sql), "COPY 20000");
    assert_eq!(
        client.rows("select count(*), max(a) from t"),
        ["20000|19999"]
    );
    let error = client.error(&sql);
    assert!(error.starts_with("23505"), "{error}");
    assert!(error.contains("COPY t, line 1"), "{error}");
    for (file, sqlstate) in [
        (folder.path().join("none").display().to_string(), "58P01"),
        (folder.path().display().to_string(), "42809"),
        ("rows".to_owned(), "42602"),
    ] {
        let error = client.error(&format!("copy t from '{file}'"));
        assert!(error.starts_with(sqlstate), "{file}: {error}");
    }
    let error = client.error(&format!("copy t to '{shown}'"));
    assert!(error.starts_with("0A000"), "{error}");
    client.tag("create role reader; grant all on t to reader; set role reader");
    let error = client.error(&sql);
    assert!(error.starts_with("42501"), "{error}");
}
