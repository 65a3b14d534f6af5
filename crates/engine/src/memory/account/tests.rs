//! The account of a session: what is charged comes back, nobody takes more than the
//! share, small sessions go on, and who waits is served or told.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use std::{pin::pin, thread};

use thermocline_device::{SimulatedDevice, block_on};

use super::*;
use crate::database::Database;
use crate::database::config::Config;
use crate::transaction::RunOptions;

const LIMIT: u64 = 64 << 20;

fn pool() -> Arc<ClientPool> {
    ClientPool::new(LIMIT)
}

fn database() -> Arc<Database> {
    // Roomy: these tests are about the pool, not about what is resident.
    let config = Config::new(Arc::new(SimulatedDevice::new())).memory_limit(4 << 30);
    Database::open(config).expect("a new database")
}

#[test]
fn what_is_charged_comes_back_however_it_was_held() {
    let pool = pool();
    let account = pool.open();
    let mut charge = account.charge(ChargeKind::Statement, 100_000).unwrap();
    let other = charge.split(40_000);
    charge.resize(200_000).unwrap();
    assert_eq!(account.held(ChargeKind::Statement), 240_000);
    assert_eq!(account.held(ChargeKind::Plan), 0);
    assert!(pool.granted() >= account.total());
    charge.resize(10).unwrap();
    drop((charge, other));
    assert_eq!(account.total(), 0);
    assert!(pool.granted() <= 2 * CHUNK_BYTES_MAX);
    drop(account);
    assert_eq!(pool.granted(), 0);
}

#[test]
fn a_session_has_half_of_the_share_and_hears_what_it_holds() {
    let pool = pool();
    let account = pool.open();
    let half = pool.report().share / 2;
    let plan = account.charge(ChargeKind::Plan, 1000).unwrap();
    let error = account.charge(ChargeKind::Message, half).unwrap_err();
    assert_eq!(error.sqlstate(), "53200");
    let detail = error.detail().unwrap();
    assert!(detail.contains("plan 1000"), "{detail}");
    assert!(detail.contains(&format!("{half} bytes are asked for")));
    assert!(error.hint().unwrap().contains("memory_limit"));
    drop(plan);
    assert!(account.charge(ChargeKind::Message, half).is_ok());
    assert_eq!(pool.report().refused, 1);
}

#[test]
fn large_sessions_leave_a_quarter_to_small_ones() {
    let pool = pool();
    let share = pool.report().share;
    let large: Vec<_> = (0..100)
        .map_while(|_| pool.open().charge(ChargeKind::Portal, share / 8).ok())
        .collect();
    assert_eq!(large.len(), 6);
    let small: Vec<_> = (0..100_000)
        .map_while(|_| pool.open().charge(ChargeKind::Session, 16 << 10).ok())
        .collect();
    assert_eq!(small.len() as u64, share / 4 / (16 << 10));
    assert_eq!(pool.granted(), share);
}

#[test]
fn what_is_idle_leaves_before_anybody_is_refused() {
    struct Idle(Mutex<Vec<Charge>>);
    impl Reclaim for Idle {
        fn reclaim(&self, bytes: u64, of: Option<&Account>) -> u64 {
            if of.is_some() {
                return 0;
            }
            let mut given = 0;
            while given < bytes
                && let Some(charge) = self.0.lock().pop()
            {
                given += charge.bytes();
            }
            given
        }
    }
    let pool = pool();
    let share = pool.report().share;
    let plans = pool.open();
    let charge = |_| plans.charge(ChargeKind::Plan, share / 64).unwrap();
    let idle = Arc::new(Idle(Mutex::new((0..32).map(charge).collect())));
    pool.on_shortage(Arc::downgrade(&idle) as Weak<dyn Reclaim>);
    let other = pool.open().charge(ChargeKind::Message, share / 2).unwrap();
    assert_eq!(idle.0.lock().len(), 0, "all that was asked for");
    drop(other);
    assert_eq!(pool.report().refused, 0);
}

#[test]
fn threads_that_charge_one_account_lose_nothing() {
    let pool = pool();
    let account = pool.open();
    let most = AtomicU64::new(0);
    thread::scope(|scope| {
        for seed in 1..5u64 {
            let (account, pool, most) = (&account, &pool, &most);
            scope.spawn(move || {
                let mut charge = account.nothing(ChargeKind::Value);
                for step in 0..20_000u64 {
                    let bytes = (step * seed * 7919) % 300_000;
                    let _ = charge.resize(bytes);
                    most.fetch_max(pool.granted(), Relaxed);
                }
            });
        }
    });
    assert_eq!(account.total(), 0);
    assert!(most.load(Relaxed) <= pool.report().share);
    drop(account);
    assert_eq!(pool.granted(), 0);
}

#[test]
fn who_waits_is_served_in_order_when_others_give() {
    let db = database();
    let share = db.clients().report().share;
    let options = RunOptions::new();
    let (holder, first, second) = (
        db.clients().open(),
        db.clients().open(),
        db.clients().open(),
    );
    let held = holder.charge(ChargeKind::Message, share / 3).unwrap();
    let (mut one, mut two) = (
        first.nothing(ChargeKind::Message),
        second.nothing(ChargeKind::Message),
    );
    let mut context = Context::from_waker(Waker::noop());
    {
        let mut wait_one = pin!(db.charge_waiting(&mut one, share / 2, &options));
        assert!(wait_one.as_mut().poll(&mut context).is_pending());
        // It would fit, but somebody was there before.
        let mut wait_two = pin!(db.charge_waiting(&mut two, share / 2, &options));
        assert!(wait_two.as_mut().poll(&mut context).is_pending());
        assert_eq!(db.clients().report().waiting, 2);
        drop(held);
        assert!(wait_two.as_mut().poll(&mut context).is_pending());
        block_on(wait_one).unwrap();
        assert!(wait_two.as_mut().poll(&mut context).is_pending());
    }
    assert_eq!(one.bytes(), share / 2);
    drop(one);
    block_on(db.charge_waiting(&mut two, share / 2, &options)).unwrap();
    assert_eq!(db.clients().report().waiting, 0);
    db.close().unwrap();
}

#[test]
fn a_wait_ends_with_cancel_with_the_deadline_and_with_who_can_never_get_it() {
    let db = database();
    let share = db.clients().report().share;
    let held = db.clients().open();
    let _held = held.charge(ChargeKind::Message, share / 2).unwrap();
    let _more = (db.clients().open()).charge(ChargeKind::Message, share / 4);
    let account = db.clients().open();
    let mut charge = account.nothing(ChargeKind::Message);
    let mut options = RunOptions::new();
    let error = block_on(db.charge_waiting(&mut charge, share, &options)).unwrap_err();
    assert_eq!(error.sqlstate(), "53200");
    options.deadline = Some(db.now() + Duration::from_millis(30));
    let error = block_on(db.charge_waiting(&mut charge, share / 4, &options)).unwrap_err();
    assert!(matches!(error, Error::Timeout), "{error}");
    options.deadline = None;
    options.cancel.cancel();
    let mut context = Context::from_waker(Waker::noop());
    let mut waits = pin!(db.charge_waiting(&mut charge, share / 4, &options));
    assert!(matches!(
        waits.as_mut().poll(&mut context),
        Poll::Ready(Err(Error::Cancelled))
    ));
    assert_eq!(db.clients().report().waiting, 0);
    db.close().unwrap();
}
