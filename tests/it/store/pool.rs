//! What PostgreSQL's pool does with connections that come back.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;

use tieout::store::driver::Driver;
use tieout::store::postgres::PgStore;
use tieout::store::records::ClaimFilter;

use super::world::{World, at, noon};

const BACKENDS: &str = "select coalesce(string_agg(pid::text, ' '), '') from pg_stat_activity \
     where datname = current_database() and application_name = 'tieout'";

/// Every connection was closed once: what was asked whether it is within a transaction said yes
/// outside of one, and each statement paid for a connection of its own.
#[tokio::test]
async fn a_connection_serves_many_statements() {
    let w = World::<PgStore>::new().await;
    let backends = async || {
        for _ in 0..30 {
            w.store.now().await.unwrap();
        }
        w.raw.one(BACKENDS).await
    };
    let before = backends().await;
    assert_ne!(before, "");
    let after = backends().await;
    let after: Vec<&str> = after.split(' ').collect();
    assert!(before.split(' ').all(|pid| after.contains(&pid)), "{before} became {after:?}");
}

/// In sqlx 0.9.0 a cancelled `begin()` can leave a connection of the pool within a transaction.
#[tokio::test]
async fn what_is_written_after_a_cancelled_step_stands() {
    let w = World::<PgStore>::new().await;
    w.stuck(1..=1).await;
    w.start("r1", noon()).await;
    for polls in 1..40 {
        let filter = ClaimFilter::default();
        let claim = w.store.claim_due("r1", &w.table, &filter, 1, noon(), at(2));
        drop_after(polls, claim).await;
        let account = format!("after_{polls}");
        w.store.put_account_state(&account, Some(noon()), None).await.unwrap();
        let seen =
            format!("select count(*)::text from tieout_accounts where account = '{account}'");
        assert_eq!(w.raw.one(&seen).await, "1", "after {polls} polls");
    }
}

/// Polls a future so often, and drops it then.
async fn drop_after<F: Future>(polls: usize, future: F) {
    let mut future = pin!(future);
    let mut left = polls;
    std::future::poll_fn(|context| {
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(_) => Poll::Ready(()),
            Poll::Pending if left == 0 => Poll::Ready(()),
            Poll::Pending => Poll::Pending,
        }
    })
    .await;
}
