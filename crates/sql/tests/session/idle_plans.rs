//! Prepared statements that are idle leave when memory is asked for, and are there again when
//! they are used: the same names, shapes and answers.

use thermocline_engine::ChargeKind;

use crate::fixture::{Connection, Server};

const STATEMENTS: usize = 120;

fn name(at: usize) -> String {
    format!("s{at}")
}

fn run(client: &mut Connection, at: usize) -> Vec<String> {
    client.bind("", &name(at), &[Some("7")]).unwrap();
    let rows = client.execute("", 0).unwrap();
    client.sync().unwrap();
    rows
}

#[test]
fn plans_leave_for_others_and_come_back_from_their_texts() {
    let server = Server::new();
    let clients = server.engine.database().clients();
    let mut client = server.connect();
    client.tag("create table t (id int primary key, name text)");
    client.tag("insert into t values (7, 'seven')");
    let mut idle = server.connect();
    let mut busy = server.connect();
    for client in [&mut idle, &mut busy] {
        for at in 0..STATEMENTS - 1 {
            let sql = format!(
                "select name, id + {at} from t where id = $1 and id <> {}",
                100 + at
            );
            client.parse(&name(at), &sql, &[]).unwrap();
        }
        client.tag(&format!(
            "prepare s{} as select name from t where id = $1",
            STATEMENTS - 1
        ));
        client.sync().unwrap();
    }
    let described = busy.describe("s3").unwrap();
    let plans = |client: &Connection| client.session.account().held(ChargeKind::Plan);
    let all = plans(&idle);
    assert!(all >= 120 * 8 * 1024 && all == plans(&busy), "{all}");

    // So much is taken that the next one who asks gets it only if plans leave.
    let share = clients.report().share;
    let first = clients.open();
    let _first = first.charge(ChargeKind::Message, share / 2).unwrap();
    let second = clients.open();
    let room = share - share / 4 - clients.report().granted;
    let _second = second.charge(ChargeKind::Message, room).unwrap();
    clients.reclaim_idle(1, None);
    let before = plans(&idle) + plans(&busy);
    assert!(before < 2 * all, "some left");
    for at in 0..STATEMENTS {
        run(&mut busy, at);
    }
    let busy_holds = plans(&busy);
    let asked = (plans(&idle) / 2).max(1 << 10);
    let third = second.charge(ChargeKind::Message, asked).unwrap();
    assert_eq!(plans(&busy), busy_holds, "they were used since");
    assert!(plans(&idle) <= all / 2, "{} of {all}", plans(&idle));
    drop(third);

    // Whatever left is as it was.
    clients.reclaim_idle(u64::MAX, None);
    assert_eq!((plans(&idle), plans(&busy)), (0, 0));
    assert_eq!(busy.describe("s3").unwrap(), described);
    for client in [&mut busy, &mut idle] {
        for at in 0..STATEMENTS - 1 {
            assert_eq!(
                run(client, at),
                [format!("D seven|{}", 7 + at), "C SELECT 1".to_owned()]
            );
        }
        assert_eq!(client.rows("execute s119(7)"), ["seven"]);
        assert_eq!(
            client.parse("s1", "select 1", &[]).unwrap_err().sqlstate,
            "42P05"
        );
        client.sync().unwrap();
    }
    // The shape that the client knows must not change, even if the plan has left.
    clients.reclaim_idle(u64::MAX, None);
    client.tag("drop table t");
    client.tag("create table t (id int primary key, name int)");
    client.tag("insert into t values (7, 7)");
    let error = busy.bind("", "s3", &[Some("7")]).unwrap_err();
    assert_eq!(error.message, "cached plan must not change result type");
    busy.sync().unwrap();
    busy.tag("deallocate s5");
    assert_eq!(busy.bind("", "s5", &[None]).unwrap_err().sqlstate, "26000");
    busy.sync().unwrap();
    // Texts that came twice are kept, charged, and leave, too.
    let held = plans(&client);
    for _ in 0..3 {
        assert_eq!(client.rows("select id from t where id = 7"), ["7"]);
    }
    assert!(plans(&client) > held);
    clients.reclaim_idle(u64::MAX, None);
    assert_eq!(plans(&client), 0);
    assert_eq!(client.rows("select id from t where id = 7"), ["7"]);
}

#[test]
fn a_session_with_many_statements_gives_up_its_own() {
    let server = Server::new();
    let clients = server.engine.database().clients();
    let mut client = server.connect();
    let account = client.session.account().clone();
    let room = clients.account_max() - account.total() - (1 << 20);
    let _rest = account.charge(ChargeKind::Message, room).unwrap();
    for at in 0..300 {
        client
            .parse(&name(at), &format!("select {at}, $1::int"), &[])
            .unwrap();
    }
    client.sync().unwrap();
    assert!(account.held(ChargeKind::Plan) <= 1 << 20);
    for at in [0, 299] {
        assert_eq!(
            run(&mut client, at),
            [format!("D {at}|7"), "C SELECT 1".to_owned()]
        );
    }
}
