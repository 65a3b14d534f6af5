//! What clients send is understood, cut at the right semicolons.

use super::constraint::ColumnConstraint;
use super::copy::{CopySource, NamedColumns};
use super::function::FunctionCommand;
use super::sequence::SequenceOptions;
use super::statement::{
    AlterSequence, CreateSequence, Ddl, Direction, Fetch, IsolationLevel, Life, Modes, OnCommit,
    Set,
};
use super::table::Columns;
use super::*;
use crate::copy::CopyFormat;

fn one(sql: &str) -> Statement {
    let mut statements = parse(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    assert_eq!(statements.len(), 1, "{sql}");
    statements.remove(0)
}

fn error(sql: &str) -> SqlError {
    parse(sql).expect_err(sql)
}

fn set(sql: &str) -> (String, Option<Vec<String>>, bool) {
    match one(sql) {
        Statement::Set(Set { name, value, local }) => (name, value, local),
        other => panic!("{sql}: {other:?}"),
    }
}

fn values(values: &[&str]) -> Option<Vec<String>> {
    Some(values.iter().map(|value| (*value).to_owned()).collect())
}

#[test]
fn statements_are_cut_at_semicolons_outside_quotes_and_comments() {
    let count = |sql: &str| parse(sql).unwrap().len();
    assert_eq!(count("select 1; select 2"), 2);
    assert_eq!(count("select ';'; select $$;$$; select $x$ $$ ; $x$"), 3);
    assert_eq!(count("select 1 -- ; \n; select /* ; /* ; */ ; */ 2"), 2);
    assert_eq!(count("select \"a;b\" from t; select E'\\';'"), 2);
    for nothing in ["", ";", " ;; ", "-- ping", "/* nothing */"] {
        assert_eq!(count(nothing), 0, "{nothing:?}");
    }
}

#[test]
fn each_statement_of_many_is_a_text_of_its_own() {
    let parts = |sql| -> Vec<(String, u32)> {
        let parts = super::parse_parts(sql).unwrap();
        let shown = parts.iter().map(|part| (part.text.to_owned(), part.before));
        shown.collect()
    };
    let of = |text: &str, before| (text.to_owned(), before);
    assert_eq!(
        parts(";; select 'é;' ;\n -- ;\n ; update t\nset a = $$;$$;; select 3 -- x"),
        [
            of("select 'é;' ", 3),
            of("update t\nset a = $$;$$", 26),
            of("select 3 -- x", 51),
        ]
    );
    // One alone keeps all of it.
    assert_eq!(parts(" select 1 ; "), [of(" select 1 ; ", 0)]);
}

#[test]
fn errors_point_into_the_whole_text() {
    let error = error("select 1; selec 2");
    assert_eq!(error.message, "syntax error at or near \"selec\"");
    assert_eq!(error.position, Some(11));
    assert_eq!(super::tests::error("select 'abc").sqlstate, "42601");
}

#[test]
fn transaction_control() {
    let modes = |sql: &str| match one(sql) {
        Statement::Begin { modes, .. } => (modes.isolation, modes.read_only),
        other => panic!("{other:?}"),
    };
    assert_eq!(modes("BEGIN"), (None, None));
    assert_eq!(modes("begin work"), (None, None));
    assert_eq!(
        modes("start transaction isolation level serializable read only"),
        (Some(IsolationLevel::Serializable), Some(true))
    );
    assert_eq!(
        modes("begin isolation level read committed, read write, not deferrable"),
        (Some(IsolationLevel::ReadCommitted), Some(false))
    );
    assert!(matches!(one("END"), Statement::Commit { chain: false }));
    assert!(matches!(one("end transaction"), Statement::Commit { .. }));
    assert!(matches!(one("ABORT"), Statement::Rollback { chain: false }));
    assert!(matches!(
        one("commit and chain"),
        Statement::Commit { chain: true }
    ));
    assert!(
        matches!(one("rollback to savepoint \"A b\""), Statement::RollbackTo(name) if name == "A b")
    );
    assert!(matches!(one("ROLLBACK TO X"), Statement::RollbackTo(name) if name == "x"));
    assert!(matches!(one("release s"), Statement::Release(name) if name == "s"));
    assert_eq!(error("begin isolation level").sqlstate, "42601");
    assert_eq!(error("prepare transaction 'x'").sqlstate, "0A000");
    assert!(matches!(
        one("set session characteristics as transaction isolation level serializable"),
        Statement::SetSessionCharacteristics(Modes {
            isolation: Some(IsolationLevel::Serializable),
            read_only: None,
            deferrable: None
        })
    ));
    assert!(matches!(
        one("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"),
        Statement::SetTransaction(Modes {
            isolation: Some(IsolationLevel::RepeatableRead),
            read_only: Some(true),
            deferrable: None
        })
    ));
}

#[test]
fn settings() {
    assert_eq!(
        set("set search_path to a, \"B\", 'c'"),
        ("search_path".into(), values(&["a", "B", "c"]), false)
    );
    assert_eq!(
        set("SET LOCAL statement_timeout = 500"),
        ("statement_timeout".into(), values(&["500"]), true)
    );
    assert_eq!(
        set("set session extra_float_digits to -3"),
        ("extra_float_digits".into(), values(&["-3"]), false)
    );
    assert_eq!(set("SET x TO DEFAULT"), ("x".into(), None, false));
    assert_eq!(
        set("set time zone 'UTC'"),
        ("timezone".into(), values(&["UTC"]), false)
    );
    assert_eq!(
        set("set thermocline.a = on"),
        ("thermocline.a".into(), values(&["on"]), false)
    );
    assert!(
        matches!(one("show transaction isolation level"), Statement::Show(name) if name == "transaction_isolation")
    );
    assert!(matches!(one("SHOW TimeZone"), Statement::Show(name) if name == "timezone"));
    assert!(matches!(one("reset all"), Statement::ResetAll));
    assert!(matches!(one("discard all"), Statement::Discard("all")));
    assert!(matches!(one("deallocate all"), Statement::Deallocate(None)));
    assert!(
        matches!(one("DEALLOCATE PREPARE \"P_1\""), Statement::Deallocate(Some(name)) if name == "P_1")
    );
}

#[test]
fn cursors() {
    let fetch = |sql: &str| match one(sql) {
        Statement::Fetch(Fetch {
            cursor,
            direction,
            skip,
        }) => (cursor, direction, skip),
        other => panic!("{other:?}"),
    };
    assert!(matches!(
        one("DECLARE _psql_cursor NO SCROLL CURSOR FOR select 1"),
        Statement::Declare(declare) if declare.name == "_psql_cursor" && !declare.hold
    ));
    assert!(matches!(
        one("declare \"n\" binary cursor with hold for values (1)"),
        Statement::Declare(declare) if declare.hold && declare.binary
    ));
    for (sql, cursor, direction, skip) in [
        (
            "FETCH FORWARD 2 FROM \"n\"",
            "n",
            Direction::Forward(Some(2)),
            false,
        ),
        ("fetch next", "next", Direction::Forward(Some(1)), false),
        ("fetch all in c", "c", Direction::Forward(None), false),
        (
            "move forward all from c",
            "c",
            Direction::Forward(None),
            true,
        ),
        ("fetch c", "c", Direction::Forward(Some(1)), false),
        ("fetch -1 from c", "c", Direction::Backward(Some(1)), false),
        (
            "fetch backward -2 c",
            "c",
            Direction::Forward(Some(2)),
            false,
        ),
        (
            "fetch backward all in c",
            "c",
            Direction::Backward(None),
            false,
        ),
        (
            "fetch prior from c",
            "c",
            Direction::Backward(Some(1)),
            false,
        ),
        ("move last in c", "c", Direction::Absolute(-1), true),
        ("fetch absolute -3 c", "c", Direction::Absolute(-3), false),
        (
            "fetch relative 0 from c",
            "c",
            Direction::Relative(0),
            false,
        ),
    ] {
        assert_eq!(fetch(sql), (cursor.into(), direction, skip), "{sql}");
    }
    assert!(matches!(one("CLOSE ALL"), Statement::CloseCursor(None)));
}

#[test]
fn prepared_statements() {
    match one("prepare p (int, character varying(5)) as select $1, $2") {
        Statement::Prepare { name, types, .. } => {
            assert_eq!((name.as_str(), types.len()), ("p", 2))
        }
        other => panic!("{other:?}"),
    }
    match one("execute p(1, 'x', -3)") {
        Statement::Execute { name, arguments } => {
            assert_eq!((name.as_str(), arguments.len()), ("p", 3));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn maintenance_is_accepted() {
    for (sql, tag, tables) in [
        ("vacuum analyze pgbench_accounts", "VACUUM", 1),
        ("VACUUM", "VACUUM", 0),
        ("vacuum (full, analyze) a, b (x, y)", "VACUUM", 2),
        ("analyze", "ANALYZE", 0),
    ] {
        match one(sql) {
            Statement::Accepted(command) => {
                assert_eq!((command.tag, command.named.len()), (tag, tables), "{sql}");
            }
            other => panic!("{sql}: {other:?}"),
        }
    }
    assert!(matches!(one("checkpoint"), Statement::Checkpoint));
    let backup = one("backup to '/srv/b' with (max_rate = 2048)");
    assert!(
        matches!(backup, Statement::Backup { directory, max_rate: Some(2048) } if directory == "/srv/b")
    );
}

#[test]
fn locks_of_tables() {
    use thermocline_engine::LockMode;
    let lock = |sql: &str| match one(sql) {
        Statement::Lock(lock) => (lock.tables.len(), lock.mode, lock.nowait),
        other => panic!("{sql}: {other:?}"),
    };
    assert_eq!(
        lock("LOCK TABLE a, b IN ACCESS SHARE MODE"),
        (2, LockMode::AccessShare, false)
    );
    assert_eq!(
        lock("lock only s.t nowait"),
        (1, LockMode::AccessExclusive, true)
    );
    assert_eq!(
        lock("lock t in share row exclusive mode nowait"),
        (1, LockMode::ShareRowExclusive, true)
    );
    assert_eq!(error("lock t in some mode").sqlstate, "42601");
}

#[test]
fn copy_in_its_old_and_new_forms() {
    let copy = |sql: &str| match one(sql) {
        Statement::Copy(copy) => copy,
        other => panic!("{sql}: {other:?}"),
    };
    let plain = copy("copy pgbench_accounts from stdin with (freeze on)");
    assert!(plain.from && plain.options.format == CopyFormat::Text);
    let old = copy("COPY  app.orders TO STDOUT csv header");
    assert!(!old.from && old.options.header && old.options.delimiter == b',');
    let binary = copy("copy \"app\".\"orders\" ( \"cust\",\"qty\" ) from stdin binary;");
    assert_eq!(binary.options.format, CopyFormat::Binary);
    assert!(
        matches!(binary.source, CopySource::Table { name, columns } if name == ["app", "orders"] && columns == ["cust", "qty"])
    );
    let new = copy(
        "copy t(a,b) to stdout with (format csv, header true, delimiter ';', null 'x', quote '''', escape '\\', force_quote *)",
    );
    assert_eq!(
        (new.options.delimiter, new.options.quote, new.options.escape),
        (b';', b'\'', b'\\')
    );
    assert_eq!(new.forced.quote, NamedColumns::All);
    assert_eq!(new.options.null, "x");
    let delimited = copy("COPY t FROM STDIN DELIMITER AS ',' NULL AS ''");
    assert_eq!(delimited.options.delimiter, b',');
    assert_eq!(delimited.options.null, "");
    assert!(copy("copy t from stdin where a > 5").filter.is_some());
    let query = copy("copy (select 1; ) to stdout".replace("; ", "").as_str());
    assert!(matches!(query.source, CopySource::Query(_)));
    let file = copy("copy t from '/a/file' csv").file;
    assert_eq!(file.as_deref(), Some("/a/file"));
    for refused in [
        "copy t to '/a/file'",
        "copy t from program 'id'",
        "copy t to program 'id'",
    ] {
        assert_eq!(error(refused).sqlstate, "0A000", "{refused}");
    }
    assert_eq!(
        error("copy t from stdin (quote '\"')").message,
        "COPY quote available only in CSV mode"
    );
    assert_eq!(
        error("copy t from stdin (format xml)").message,
        "COPY format \"xml\" not recognized"
    );
}

#[test]
fn a_table_is_read_part_by_part() {
    let create = |sql: &str| match one(sql) {
        Statement::Ddl(Ddl::CreateTable(create)) => create,
        other => panic!("{sql}: {other:?}"),
    };
    let table = create(
        "create unlogged table t (a int primary key, b int generated always as identity \
         (start with 5 increment by 2), c int generated by default as identity) \
         using memory with (partition_key = 'a', fillfactor = 100)",
    );
    assert_eq!(table.access_method.as_deref(), Some("memory"));
    assert_eq!(table.columns.len(), 3);
    let options = |column: usize| match &table.columns[column] {
        Columns::One(column) => match column.constraints.as_slice() {
            [ColumnConstraint::Identity { always, options }] => (*always, options.clone()),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    assert_eq!(
        options(1),
        (
            true,
            SequenceOptions {
                start: Some(5),
                increment: Some(2),
                ..SequenceOptions::default()
            }
        )
    );
    assert_eq!(options(2), (false, SequenceOptions::default()));
    let given = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        table.options,
        [given("partition_key", "a"), given("fillfactor", "100")]
    );
    assert!(create("create table t (a int)").access_method.is_none());
}

#[test]
fn sequences() {
    match one(
        "create sequence if not exists s as int start 5 increment by -1 no maxvalue cache 10 cycle owned by t.a",
    ) {
        Statement::Ddl(Ddl::CreateSequence(CreateSequence {
            temporary: false,
            name,
            if_not_exists,
            options,
        })) => {
            assert_eq!(name, ["s"]);
            assert!(if_not_exists);
            assert_eq!(options.increment, Some(-1));
            assert_eq!(options.max, Some(None));
            assert_eq!(options.cycle, Some(true));
            assert_eq!(
                options.owned_by,
                Some(Some(vec!["t".to_owned(), "a".to_owned()]))
            );
        }
        other => panic!("{other:?}"),
    }
    match one("alter sequence s restart with 5") {
        Statement::Ddl(Ddl::AlterSequence {
            change: AlterSequence::Options(options),
            ..
        }) => assert_eq!(options.restart, Some(Some(5))),
        other => panic!("{other:?}"),
    }
    assert_eq!(
        error("create sequence s cycle no cycle").message,
        "conflicting or redundant options"
    );
}

#[test]
fn explain_takes_options_in_both_forms() {
    let analyze = |sql: &str| match one(sql) {
        Statement::Explain(explain) => explain.analyze,
        other => panic!("{other:?}"),
    };
    assert!(!analyze("explain select 1"));
    assert!(analyze("explain (analyze, costs off) select 1"));
    assert!(analyze("explain analyze verbose delete from t"));
    assert_eq!(error("explain (format xml) select 1").sqlstate, "0A000");
    assert_eq!(error("explain create table t (a int)").sqlstate, "42601");
}

#[test]
fn a_chain_too_long_for_the_stack_is_refused() {
    let sql = format!("select 1{}", "+1".repeat(5000));
    assert_eq!(error(&sql).sqlstate, "54001");
    let nested = format!("select {}1{}", "(".repeat(5000), ")".repeat(5000));
    assert_eq!(error(&nested).sqlstate, "54001");
    let explained = "explain ".repeat(50_000);
    assert_eq!(error(&explained).sqlstate, "42601");
    let rows = format!("insert into t values (1+1){}", ",(1+1)".repeat(5000));
    assert!(parse(&rows).is_ok());
}

#[test]
fn what_is_not_there_yet_is_said() {
    for (sql, words) in [
        (
            "create constraint trigger t after insert on a for each row execute function f()",
            "constraint triggers",
        ),
        (
            "create trigger t instead of insert on a for each row execute function f()",
            "INSTEAD OF",
        ),
        (
            "create trigger t after insert on a referencing new table as n execute function f()",
            "REFERENCING",
        ),
    ] {
        let error = error(sql);
        assert_eq!(error.sqlstate, "0A000", "{sql}");
        assert!(error.message.contains(words), "{sql}: {}", error.message);
        assert!(error.hint.is_some(), "{sql}");
    }
}

#[test]
fn functions_are_kept_as_their_texts() {
    let text = "create or replace function f() returns int as $$ select 1; $$ language sql";
    let sql = format!("select 1; {text} ; select 2");
    let statements = parse(&sql).unwrap();
    match statements.as_slice() {
        [
            _,
            Statement::Ddl(Ddl::Function(FunctionCommand::Create(kept))),
            _,
        ] => {
            assert_eq!(&**kept, text);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(
        error("select 1; create function f( returns int").sqlstate,
        "42601"
    );
}

#[test]
fn temporary_tables_and_their_commits() {
    let life = |sql: &str| match one(sql) {
        Statement::Ddl(Ddl::CreateTable(create)) => create.life,
        Statement::TableAs(create) => create.life,
        other => panic!("{other:?}"),
    };
    let of = |temporary, on_commit| Life {
        temporary,
        on_commit,
    };
    assert_eq!(life("create unlogged table t (a int)"), of(false, None));
    assert_eq!(life("create local temp table t (a int)"), of(true, None));
    assert_eq!(
        life("create temporary table t (a int) with (evictable = false) on commit delete rows"),
        of(true, Some(OnCommit::DeleteRows))
    );
    assert_eq!(
        life("create global temporary table t (a) on commit drop as select 1"),
        of(true, Some(OnCommit::Drop))
    );
    assert_eq!(life("select 1 as a into temp t"), of(true, None));
    assert_eq!(
        error("create temp table t (a int) on commit keep").sqlstate,
        "42601"
    );
}

#[test]
fn table_is_a_select() {
    assert!(matches!(one("table \"A\".t"), Statement::Query(_)));
    assert_eq!(error("table t t").sqlstate, "42601");
}

#[test]
fn what_is_merely_not_there_is_no_syntax_error() {
    let told = |sql: &str| {
        let error = error(sql);
        (error.sqlstate, error.message.clone(), error.position)
    };
    for (sql, message) in [
        (
            "create aggregate a (int4) (sfunc = f, stype = int4)",
            "CREATE AGGREGATE is not supported",
        ),
        (
            "create cast (int4 as x) without function",
            "CREATE CAST is not supported",
        ),
        (
            "alter table t enable row level security",
            "ALTER TABLE ... ROW LEVEL SECURITY is not supported",
        ),
    ] {
        assert_eq!(told(sql), ("0A000", message.to_owned(), None));
        assert!(error(sql).hint.is_some(), "{sql}");
    }
    // PostgreSQL's own words and places for what it refuses, too.
    assert_eq!(
        told("create table t (a int,, b int)"),
        (
            "42601",
            "syntax error at or near \",\"".to_owned(),
            Some(23)
        )
    );
    assert_eq!(
        told("create table t (a int"),
        ("42601", "syntax error at end of input".to_owned(), Some(22))
    );
    // A command that PostgreSQL has not.
    assert_eq!(error("backup to 1 2").sqlstate, "42601");
}
