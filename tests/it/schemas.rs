//! Other people's tables on PostgreSQL: each maps, reads exactly, is written once and only as
//! decided. Adding one: `fixtures/schemas/NAME.sql` and `NAME.toml`, and a module here that names
//! its rows and what must become of them.

mod world;

use world::Foreign;

#[tokio::test]
async fn a_rails_application() {
    let foreign = Foreign::open("rails").await;
    assert_eq!(
        foreign.claimed("run-1").await,
        ["1 status=1 12.50 EUR account=stripe_live tag=1 ref=- at=2026-11-19T08:00:00.000000Z \
             tried=2026-11-19T08:01:00.123456Z natural=100 key=payment-1-1"]
    );
}
