//! The library in a process of its own: SQL, transactions, durability, and one
//! process a directory.
#![allow(
    clippy::result_large_err,
    reason = "closures return the library's error"
)]

use std::path::Path;

use thermocline::{
    Call, DataType, Embedded, Error, IoEngine, OpenError, Options, Procedure, Procedures, Reach,
    Value,
};

fn open(path: &Path) -> Embedded {
    let options = Options {
        memory_limit: 1 << 30,
        partitions: 4,
        io: IoEngine::Threads,
        ..Options::default()
    };
    Embedded::open(path, &options).unwrap()
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

#[test]
fn statements_take_values_and_return_them() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path());
    let mut connection = database.connect().unwrap();
    let created = connection
        .execute(
            "CREATE TABLE t (id bigint PRIMARY KEY, v varchar(10), price numeric(8,2), at date)",
            &[],
        )
        .unwrap();
    assert_eq!(created.tag(), "CREATE TABLE");
    assert!(created.columns().is_empty() && created.is_empty());
    let insert = connection
        .prepare("INSERT INTO t VALUES ($1, $2, $3, $4)")
        .unwrap();
    assert_eq!(insert.parameters()[0], Some(DataType::BigInt));
    for id in 0..10 {
        // Values are converted: an int for a bigint, texts for what they say.
        let values = [Value::Integer(id), text("warm"), text("12.5"), Value::Null];
        let inserted = connection.run(&insert, &values).unwrap();
        assert_eq!(inserted.affected(), 1);
    }
    let select = "SELECT id, v, price, at FROM t WHERE id = $1";
    let rows = connection.execute(select, &[Value::Integer(7)]).unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows.get(0, "id"), Some(&Value::BigInt(7)));
    assert_eq!(rows.get(0, "v"), Some(&text("warm")));
    assert_eq!(rows.get(0, "at"), Some(&Value::Null));
    assert!(
        matches!(rows.get(0, "price"), Some(Value::Numeric(price)) if price.to_string() == "12.50")
    );
    assert_eq!(rows.columns()[1].data_type, Some(DataType::Varchar(10)));
    let none = connection.execute(select, &[Value::Integer(70)]).unwrap();
    assert_eq!((none.len(), none.affected()), (0, 0));
    let error = connection.execute(select, &[]).unwrap_err();
    assert_eq!(error.sqlstate, "08P01");
    let error = connection.run(
        &insert,
        &[Value::Integer(7), Value::Null, Value::Null, Value::Null],
    );
    assert_eq!(error.unwrap_err().sqlstate, "23505");
    let error = connection.execute("SELEC 1", &[]).unwrap_err();
    assert_eq!(error.sqlstate, "42601");
}

#[test]
fn a_long_result_is_whole() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path());
    let mut connection = database.connect().unwrap();
    connection
        .execute("CREATE TABLE t (id int PRIMARY KEY, v text)", &[])
        .unwrap();
    let insert = connection.prepare("INSERT INTO t VALUES ($1, $2)").unwrap();
    let filler = "x".repeat(100);
    connection
        .transaction(|connection| {
            for id in 0..5_000 {
                connection.run(&insert, &[Value::Integer(id), text(&filler)])?;
            }
            Ok(())
        })
        .unwrap();
    let rows = connection
        .execute("SELECT id, v FROM t ORDER BY id", &[])
        .unwrap();
    assert_eq!(rows.len(), 5_000);
    for (id, row) in rows.iter().enumerate() {
        assert_eq!(row[0], Value::Integer(id as i32));
        assert_eq!(row[1], text(&filler));
    }
}

#[test]
fn a_transaction_is_whole_or_not_at_all() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path());
    let mut connection = database.connect().unwrap();
    connection
        .execute("CREATE TABLE t (id int PRIMARY KEY)", &[])
        .unwrap();
    let failed = connection.transaction(|connection| {
        connection.execute("INSERT INTO t VALUES (1)", &[])?;
        connection.execute("INSERT INTO t VALUES (1)", &[])
    });
    assert_eq!(failed.unwrap_err().sqlstate, "23505");
    connection
        .transaction(|connection| connection.execute("INSERT INTO t VALUES (2)", &[]))
        .unwrap();
    // One that is left open is rolled back with its connection.
    let mut other = database.connect().unwrap();
    other.execute("BEGIN", &[]).unwrap();
    other.execute("INSERT INTO t VALUES (3)", &[]).unwrap();
    drop(other);
    let rows = connection.execute("SELECT id FROM t", &[]).unwrap();
    assert_eq!(rows.iter().collect::<Vec<_>>(), [[Value::Integer(2)]]);
}

#[test]
fn what_was_committed_is_there_again_and_one_process_has_it() {
    let directory = tempfile::tempdir().unwrap();
    for round in 0..3 {
        let database = open(directory.path());
        let second = Embedded::open(directory.path(), &Options::default());
        assert!(matches!(second, Err(OpenError::InUse(_))));
        let mut connection = database.connect().unwrap();
        connection
            .execute("CREATE TABLE IF NOT EXISTS t (id int PRIMARY KEY)", &[])
            .unwrap();
        let rows = connection.execute("SELECT id FROM t", &[]).unwrap();
        assert_eq!(rows.len(), round);
        let id = Value::Integer(round as i32);
        connection
            .execute("INSERT INTO t VALUES ($1)", &[id])
            .unwrap();
        drop(connection);
        if round == 1 {
            database.close().unwrap();
        }
    }
}

#[cfg(feature = "server")]
#[test]
fn analytical_statements_find_a_runtime() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path());
    let mut connection = database.connect().unwrap();
    connection
        .execute("CREATE TABLE t (id int PRIMARY KEY, kind int)", &[])
        .unwrap();
    for id in 0..20 {
        connection
            .execute(
                "INSERT INTO t VALUES ($1, $2)",
                &[Value::Integer(id), Value::Integer(id % 2)],
            )
            .unwrap();
    }
    let rows = connection
        .execute(
            "SELECT kind, count(*) AS n FROM t GROUP BY kind ORDER BY kind",
            &[],
        )
        .unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows.get(1, "n"), Some(&Value::BigInt(10)));
}

/// Adds to a counter and returns what it is then.
fn add(call: &mut Call<'_, '_>, arguments: &[Value]) -> Result<Vec<Value>, Error> {
    let counters = call.table("counters")?;
    let Some(mut row) = call.get(&counters, &arguments[..1])? else {
        return Err(Error::raised("P0002", "no such counter"));
    };
    let (Value::BigInt(old), Value::BigInt(more)) = (&row.values[1], &arguments[1]) else {
        return Err(Error::raised("22004", "a number is wanted"));
    };
    row.values[1] = Value::BigInt(old + more);
    call.update(&counters, &row)?;
    Ok(vec![row.values[1].clone(), text("added")])
}

#[test]
fn procedures_are_called_from_rust_and_from_sql() {
    let directory = tempfile::tempdir().unwrap();
    let procedures = Procedures::new();
    let procedure = Procedure::new("add", add)
        .parameter("id", DataType::BigInt)
        .parameter("more", DataType::BigInt)
        .result("total", DataType::BigInt)
        .result("did", DataType::Text)
        .reach(|arguments| Ok(Reach::row("counters", &arguments[..1])))
        .deterministic();
    procedures.register(procedure).unwrap();
    let options = Options {
        memory_limit: 1 << 30,
        partitions: 4,
        io: IoEngine::Threads,
        procedures,
        ..Options::default()
    };
    let database = Embedded::open(directory.path(), &options).unwrap();
    let nothing = Procedure::new("nothing", |_, _| Ok(Vec::new()));
    database.register_procedure(nothing).unwrap();
    let mut connection = database.connect().unwrap();
    let mut run = |sql: &str, parameters: &[Value]| connection.execute(sql, parameters);
    run(
        "CREATE TABLE counters (id bigint PRIMARY KEY, n bigint)",
        &[],
    )
    .unwrap();
    run("INSERT INTO counters VALUES (1, 0)", &[]).unwrap();
    let returned = database
        .call("add", &[Value::Integer(1), Value::Integer(2)])
        .unwrap();
    assert_eq!(returned, [Value::BigInt(2), text("added")]);
    let rows = run("CALL add(1, 2 + 3)", &[]).unwrap();
    assert_eq!((rows.tag(), rows.len()), ("CALL", 1));
    assert_eq!(rows.get(0, "total"), Some(&Value::BigInt(7)));
    assert_eq!(rows.get(0, "did"), Some(&text("added")));
    let rows = run("CALL public.add('1', $1)", &[Value::Integer(10)]).unwrap();
    assert_eq!(rows.get(0, "total"), Some(&Value::BigInt(17)));
    let rows = run("CALL nothing()", &[]).unwrap();
    assert_eq!((rows.tag(), rows.len()), ("CALL", 0));
    let mut refused = |sql: &str| run(sql, &[]).unwrap_err().sqlstate.to_owned();
    assert_eq!(refused("CALL add(2, 1)"), "P0002");
    assert_eq!(refused("CALL add(1)"), "42883");
    assert_eq!(refused("CALL no_such()"), "42883");
    assert_eq!(refused("CALL add(1, 'x')"), "22P02");
    assert_eq!(refused("CALL add(1, true)"), "42883");
    assert_eq!(refused("CALL add(1, 1"), "42601");
    connection.execute("BEGIN", &[]).unwrap();
    let error = connection.execute("CALL add(1, 1)", &[]).unwrap_err();
    assert_eq!(error.sqlstate, "0A000");
    connection.execute("ROLLBACK", &[]).unwrap();
    drop(connection);
    database.close().unwrap();
    let database = Embedded::open(directory.path(), &options).unwrap();
    let returned = database
        .call("add", &[Value::Integer(1), Value::Integer(0)])
        .unwrap();
    assert_eq!(returned[0], Value::BigInt(17));
}
