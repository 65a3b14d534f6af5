//! A limit that is taken by something else than rows: the database goes on,
//! with hardly a row in memory. In a file of its own, because the limit is the
//! process's.

mod fixture;

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use fixture::*;
use thermocline_engine::catalog::IndexKind;

#[test]
fn statements_go_on_when_nothing_is_left_to_evict() {
    let ballast = vec![1u8; 200 << 20];
    let (_device, db) = simulated(64 << 20);
    let (done, finished) = channel();
    let thread = thread::spawn(move || {
        let t = make_table(&db, "t", IndexKind::Hash);
        for id in 0..300 {
            insert(&db, &t, id, &format!("value {id}")).expect("inserts");
        }
        for id in 0..300 {
            let found = get(&db, &t, id).expect("reads");
            assert_eq!(found, Some(format!("value {id}")));
        }
        db.close().expect("closes");
        done.send(()).expect("somebody waits");
    });
    finished
        .recv_timeout(Duration::from_secs(60))
        .expect("no statement waits for ever");
    thread.join().expect("the thread is done");
    assert_eq!(ballast[ballast.len() - 1], 1);
}
