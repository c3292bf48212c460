//! A transaction that a deadlock ended is done again: nothing was wrong with it.

use std::time::Duration;

use chrono::TimeDelta;
use tieout::store::driver::Driver as _;
use tieout::store::postgres::PgStore;

use super::world::{World, at, noon};
use crate::support::raw::Raw;

const THE_RUN: &str = "select 1 from tieout_runs where id = 'dead' for update";
const ITS_ROWS: &str = "select 1 from tieout_checks where lease_run = 'dead' for update";

/// Three rows whose lease ran out with the run that held them.
async fn left_behind() -> World<PgStore> {
    let w = World::<PgStore>::new().await;
    w.stuck(1..=3).await;
    w.start("dead", noon()).await;
    assert_eq!(w.claim("dead", 3, noon()).await.len(), 3);
    w.start("alive", at(3)).await;
    w
}

/// Locks the one, lets `theirs` wait for it, and asks for the other, which `theirs` has: the
/// server ends `theirs`, since this transaction is far more patient.
async fn crossed<T>(
    w: &World<PgStore>,
    one: &'static str,
    other: &'static str,
    theirs: impl Future<Output = T>,
) -> T {
    let Raw::Postgres(pool) = &w.raw else { panic!("PostgreSQL's alone") };
    let mut tx = pool.begin().await.unwrap();
    sqlx::query("set local deadlock_timeout = '5min'").execute(&mut *tx).await.unwrap();
    sqlx::query(one).execute(&mut *tx).await.unwrap();
    let ours = async {
        w.raw.until_a_lock_is_waited_for().await;
        sqlx::query(other).execute(&mut *tx).await.unwrap();
        tx.rollback().await.unwrap();
    };
    let (theirs, ()) = tokio::join!(theirs, ours);
    let ended = "select deadlocks::text from pg_stat_database where datname = current_database()";
    while w.raw.one(ended).await == "0" {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    theirs
}

/// It leased what a dead run held while another one closed that run: `run` ended with
/// "deadlock detected" and exit code 14.
#[tokio::test]
async fn a_claim_that_a_deadlock_ended_is_done_again() {
    let w = left_behind().await;
    let claim = w.claim("alive", 3, at(3));
    assert_eq!(crossed(&w, THE_RUN, ITS_ROWS, claim).await.len(), 3);
    w.totals("dead").await;
    w.finish().await;
}

#[tokio::test]
async fn a_closing_that_a_deadlock_ended_is_done_again() {
    let w = left_behind().await;
    let closing = w.store.abandon_run("dead", at(3), TimeDelta::minutes(2));
    let closed = crossed(&w, ITS_ROWS, THE_RUN, closing).await.unwrap().unwrap();
    assert_eq!((closed.decided, closed.released), (0, 3));
    assert_eq!(w.claim("alive", 3, at(4)).await.len(), 3);
    w.totals("dead").await;
    w.finish().await;
}
