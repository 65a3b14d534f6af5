//! Analytical statements take turns: one that gets no room for its plan and batches
//! waits, hears its time limit while it waits, and is answered when there is room.

use thermocline_engine::ChargeKind;

use crate::fixture::Server;
use crate::queries::runtime;

#[test]
fn a_query_without_room_waits_for_its_turn_and_gives_it_back() {
    let runtime = runtime();
    let _entered = runtime.enter();
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (id int primary key, name text)");
    client.tag("insert into t values (1, 'a'), (2, 'b'), (3, 'a')");
    let query = "select count(*) from t a, t b where a.name = b.name";
    assert_eq!(client.rows(query), ["5"]);
    let clients = server.engine.database().clients();
    let share = clients.report().share;
    let before = clients.report();
    let held = [share / 2, share / 4 - (1 << 20)].map(|bytes| {
        let account = clients.open();
        account.charge(ChargeKind::Message, bytes).expect("room")
    });
    client.tag("set statement_timeout = '50ms'");
    let error = client.error(query);
    assert!(error.starts_with("57014"), "{error}");
    assert!(clients.report().waits > before.waits);
    assert_eq!(clients.report().waiting, 0, "nobody is left in the queue");
    // What is found by a key needs no turn.
    assert_eq!(client.rows("select name from t where id = 2"), ["b"]);
    drop(held);
    client.tag("set statement_timeout = 0");
    assert_eq!(client.rows(query), ["5"]);
    assert!(clients.report().granted < share / 8, "all is given back");
}
