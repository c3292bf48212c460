//! Other people's tables on PostgreSQL: each maps, reads exactly, is written once and only as
//! decided. Adding one: `fixtures/schemas/NAME.sql` and `NAME.toml`, and a test here that says how
//! its rows read and what must become of them.

mod world;
mod wrong;

use tieout::decide::decision::Decision;
use tieout::model::reason::Reason;
use tieout::store::driver::Driver;
use tieout::store::records::Claimed;

use crate::store::world::{failed, retryable, review, succeeded};
use world::{Foreign, done, noon};

/// How a row without a reference and a last attempt goes on.
const PLAIN: &str = " ref=- at=2026-11-19T08:00Z";

fn absent(claimed: &Claimed) -> Decision {
    Decision { reason: Reason::Absent, ..retryable(noon())(claimed) }
}

#[tokio::test]
async fn a_rails_application() {
    let foreign = Foreign::open("rails").await;
    assert_eq!(
        foreign.claimed("read").await,
        ["1 status=1 12.50 EUR account=stripe_live tag=1 ref=- at=2026-11-19T08:00Z \
          tried=2026-11-19T08:01:00.123456Z natural=100 key=payment-1-1"]
    );
    foreign.close("read").await;
    let table = "payments";
    foreign
        .is_written_once(
            foreign.table(),
            "1",
            &[(table, "id = 1")],
            &[
                (table, "order_id", "7"),
                (table, "amount_cents", "1251"),
                (table, "currency", "'USD'"),
                (table, "status", "2"),
                (table, "status", "0"),
                (table, "stripe_intent_id", "''"),
                (table, "attempt", "2"),
                (table, "attempted_at", "null"),
                (table, "attempted_at", "'2026-11-19 08:01:00.123457'"),
                (table, "created_at", "'2026-11-19 08:00:01'"),
            ],
        )
        .await;
    assert_eq!(
        foreign
            .rows(
                "select concat_ws(' ', id, status, stripe_intent_id, captured_at, lock_version, \
                 updated_at) from payments order by id"
            )
            .await,
        [
            "1 2 pi_1 2026-11-19 08:00:00 1 2026-11-19 12:00:00",
            "2 0 0 2026-11-19 08:00:00",
            "3 1 0 2026-11-19 08:00:00",
        ]
    );
}

#[tokio::test]
async fn quoted_names_and_an_enum_of_another_schema() {
    let foreign = Foreign::open("quoted").await;
    assert_eq!(
        foreign.claimed("read").await,
        [
            "6f1c7ad0-9d5b-4f3e-8a63-0d7a1c2b3e4f status=InFlight 12.50 EUR account=stripe_live \
             tag=pay_6f1c7ad0-9d5b-4f3e-8a63-0d7a1c2b3e4f ref=- at=2026-11-19T07:00Z \
             tried=2026-11-19T07:05:00.500000Z",
            "7f1c7ad0-9d5b-4f3e-8a63-0d7a1c2b3e4f status=InFlight (amount: `1500.50` is finer than \
             JPY allows (0 decimals)) account=?adyen tag=pay_7f1c7ad0-9d5b-4f3e-8a63-0d7a1c2b3e4f \
             ref=pi_1 at=2026-11-19T07:00Z",
        ]
    );
    foreign.close("read").await;
    let unmapped = foreign.store.unmapped_statuses(foreign.table()).await.unwrap();
    assert!(unmapped.is_empty(), "{unmapped:?}");
    let table = "\"Billing\".\"Payments\"";
    let id = "6f1c7ad0-9d5b-4f3e-8a63-0d7a1c2b3e4f";
    foreign
        .is_written_once(
            foreign.table(),
            id,
            &[(table, &format!("\"Id\" = '{id}'"))],
            &[
                (table, "Amount", "12.51"),
                (table, "Currency Code", "'usd'"),
                (table, "Status", "'Declined'"),
                (table, "Psp Reference", "'pi_9'"),
                (table, "Gateway", "'Stripe'"),
                (table, "CreatedAt", "\"CreatedAt\" + interval '1 microsecond'"),
                (table, "LastTry", "null"),
            ],
        )
        .await;
    let rows = "select concat_ws(' ', \"Status\", \"Psp Reference\") from \"Billing\".\"Payments\" \
                order by \"Id\"";
    assert_eq!(
        foreign.rows(rows).await,
        [format!("Paid pi_{id}"), "InFlight pi_1".into(), "Paid".into()]
    );
}

#[tokio::test]
async fn a_composite_key_of_two_tenants() {
    let foreign = Foreign::open("tenants").await;
    assert_eq!(
        foreign.claimed("read").await,
        [
            r#"["acme","7"] status=sent 1.00 USD account=stripe_live tag=acme:7:r-7"#.to_owned()
                + PLAIN,
            r#"["acme","8"] status=sent 3.00 USD account=?NULL/NULL "#.to_owned()
                + r#"tag=Null("reference")"#
                + PLAIN,
            r#"["be\"ta","7"] status=sent 2.00 USD account=stripe_eu tag=be"ta:7:r-8"#.to_owned()
                + PLAIN,
        ]
    );
    foreign.close("read").await;
    let tags = ["acme:7:r-7", "be\"ta:7:r-8", "acme:9:r-9", "acme:7:r-8", "acme:x:r", "a:b:c:d"];
    let tags = tags.map(str::to_owned);
    let found = foreign.store.resolve_tags(foreign.table(), "stripe_live", &tags).await.unwrap();
    let mut found: Vec<String> = found.into_iter().collect();
    found.sort();
    assert_eq!(found, ["acme:7:r-7", "acme:9:r-9", "be\"ta:7:r-8"]);
    let table = "charges";
    foreign
        .is_written_once(
            foreign.table(),
            r#"["be\"ta","7"]"#,
            &[(table, "tenant = 'be\"ta' and number = 7")],
            &[
                (table, "reference", "null"),
                (table, "amount", "201"),
                (table, "currency", "'EUR'"),
                (table, "state", "'void'"),
                (table, "provider", "'adyen'"),
                (table, "gateway", "11"),
                (table, "created", "'2026-11-19 08:00:01Z'"),
            ],
        )
        .await;
    let rows = "select tenant || number || state from charges order by tenant, number";
    assert_eq!(foreign.rows(rows).await, ["acme7sent", "acme8sent", "acme9done", "be\"ta7done"]);
}

#[tokio::test]
async fn a_view_over_the_parent_and_its_table() {
    let foreign = Foreign::open("parent").await;
    assert_eq!(
        foreign.claimed("read").await,
        [
            "10 status=processing 12.34 USD account=stripe_live tag=R100-10 ref=- \
             at=2026-11-19T08:00Z tried=2026-11-19T08:00Z",
            "11 status=processing (currency: it is NULL) account=stripe_live tag=R200-11 ref=ch_1 \
             at=2026-11-19T08:00Z tried=2026-11-19T08:00Z",
        ]
    );
    foreign.close("read").await;
    let (child, parent) = ("order_payments", "orders");
    foreign
        .is_written_once(
            foreign.table(),
            "10",
            &[(child, "id = 10"), (parent, "id = 1")],
            &[
                (child, "value", "12350"),
                (child, "state", "'failed'"),
                (child, "external_id", "'ch_7'"),
                (child, "deleted_at", "created_at"),
                (child, "created_at", "'2026-11-19 08:00:01Z'"),
                (child, "sent_at", "null"),
                (parent, "currency", "'EUR'"),
                (parent, "decimals", "2"),
                (parent, "order_number", "'R101'"),
                // Not mapped itself, and it changes what the view reads.
                (child, "order_id", "2"),
            ],
        )
        .await;
    let rows = "select concat_ws(' ', id, state, external_id) from order_payments order by id";
    assert_eq!(
        foreign.rows(rows).await,
        ["10 completed pi_10", "11 processing ch_1", "12 processing"]
    );
}

#[tokio::test]
async fn no_outcome_has_a_value() {
    let foreign = Foreign::open("wallet").await;
    let line = |id, money: &str| {
        format!(
            "{id} status=pending {money} account=stripe_live tag={id} ref=- at=2026-11-19T08:00Z"
        )
    };
    assert_eq!(
        foreign.claimed("read").await,
        [
            line(1, "10.00 GBP"),
            line(2, "20.00 GBP"),
            line(3, "(amount: `20.005` is finer than GBP allows (2 decimals))"),
            line(4, "(amount: `NaN` is not a decimal number)"),
        ]
    );
    foreign.close("read").await;
    let verdict = |claimed: &Claimed| match claimed.row.key.id.as_str() {
        "1" => succeeded(claimed),
        "2" => retryable(noon())(claimed),
        _unreadable => review(claimed),
    };
    assert_eq!(foreign.decide("run", foreign.table(), verdict).await, done(4, 0, 0));
    let rows = "select distinct status from wallet_top_ups";
    assert_eq!(foreign.rows(rows).await, ["pending"], "the application must act itself");
    let checks = "select key || ' ' || state from tieout_checks order by key";
    assert_eq!(foreign.rows(checks).await, ["1 parked", "2 watch", "3 case", "4 case"]);
    let events = "select key || ' ' || kind from tieout_outbox order by key";
    assert_eq!(
        foreign.rows(events).await,
        [
            "1 transaction.succeeded",
            "2 transaction.retryable",
            "3 transaction.review",
            "4 transaction.review",
        ]
    );
    // Nothing is due again until a row changes.
    assert!(foreign.claimed("later").await.is_empty());
    foreign.database.execute("update wallet_top_ups set amount = 11 where id = 1").await;
    assert_eq!(foreign.claimed("changed").await, [line(1, "11.00 GBP")]);
}

#[tokio::test]
async fn targets_by_the_value_they_come_from() {
    let foreign = Foreign::open("capture").await;
    let verdict = |claimed: &Claimed| match claimed.row.key.id.as_str() {
        "1" => retryable(noon())(claimed),
        "2" => failed(claimed),
        "3" => absent(claimed),
        "4" => succeeded(claimed),
        _other => review(claimed),
    };
    assert_eq!(foreign.decide("run", foreign.table(), verdict).await, done(5, 0, 0));
    assert_eq!(
        foreign.rows("select status from transactions order by id").await,
        ["CAPTURE RETRY", "CAPTURE ERROR", "ABANDONED", "PAID", "ON HOLD"]
    );
    let handed_back = foreign.rows("select key from tieout_handbacks").await;
    assert_eq!(handed_back, ["1"], "an abandoned row is nobody's to charge again");
    let journal = "select key || ' ' || status_before || ' > ' || status_after from tieout_journal \
                   order by key";
    assert_eq!(
        foreign.rows(journal).await,
        [
            "1 CAPTURE READY > CAPTURE RETRY",
            "2 CAPTURE SUBMITTED > CAPTURE ERROR",
            "3 PENDING > ABANDONED",
            "4 PENDING > PAID",
            "5 CAPTURE READY > ON HOLD",
        ]
    );
}

#[tokio::test]
async fn a_history_that_refuses_a_second_record() {
    let foreign = Foreign::open("events").await;
    let verdict = |claimed: &Claimed| match claimed.row.key.id.as_str() {
        "3" => failed(claimed),
        _other => succeeded(claimed),
    };
    assert_eq!(foreign.decide("run", foreign.table(), verdict).await, done(3, 0, 0));
    let rows = "select concat_ws(' ', id, state, changed_by, changed_on) from charges order by id";
    // 21:00 in Tokyo is still the same day.
    assert_eq!(
        foreign.rows(rows).await,
        ["1 paid tieout 2026-11-19", "2 sent", "3 failed tieout 2026-11-19"]
    );
    let events = "select concat_ws(' ', charge_id, was, state, reason, reference, at) \
                  from charge_events order by charge_id";
    assert_eq!(
        foreign.rows(events).await,
        [
            "1 sent paid captured pi_1 2026-11-19 21:00:00",
            "2 paid 2026-11-19 08:00:00",
            "3 sent failed declined_final 2026-11-19 21:00:00",
        ]
    );
    assert_eq!(
        foreign.rows("select reason || ': ' || text from tieout_cases").await,
        ["write_refused: the database refused the change: duplicate key value violates unique \
          constraint \"charge_events_charge_id_state_key\" (23505, \
          charge_events_charge_id_state_key)"]
    );
}

#[tokio::test]
async fn blank_padded_keys_and_seconds_since_1970() {
    let foreign = Foreign::open("padded").await;
    assert_eq!(
        foreign.claimed("read").await,
        [
            "A-1 status=10 12.50 CHF account=stripe_live tag=A-1 ref=- \
             at=2026-11-19T08:00Z tried=2026-11-19T08:01Z",
            "A-2 status=11 7.00 CHF account=stripe_live tag=A-2 ref=- \
             at=2026-11-19T08:00Z",
        ]
    );
    foreign.close("read").await;
    let tags = ["A-1", "A-1   ", "a-1"].map(str::to_owned);
    let found = foreign.store.resolve_tags(foreign.table(), "stripe_live", &tags).await.unwrap();
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["A-1"]);
    let table = "pay";
    foreign
        .is_written_once(
            foreign.table(),
            "A-1",
            &[(table, "ref = 'A-1'")],
            &[
                (table, "sum", "'12.51'"),
                (table, "cur", "'EUR'"),
                (table, "st", "11"),
                (table, "made", "1795075201"),
                (table, "tried", "0"),
                (table, "psp", "'pi_x'"),
            ],
        )
        .await;
    let rows = "select concat_ws(' ', trim(ref), st, done, trim(psp)) from pay order by ref";
    // A time that is there already (0) stays; only NULL is written over.
    assert_eq!(foreign.rows(rows).await, ["A-1 20 0 pi_A-1", "A-2 11 0", "A-3 99 0"]);
}

#[tokio::test]
async fn wall_clock_times_and_a_boolean_status() {
    let foreign = Foreign::open("local").await;
    assert_eq!(
        foreign.claimed("read").await,
        [
            // That hour happened twice; the later one is the safe one.
            "1 status=false 5.00 USD account=stripe_live tag=don-1 ref=- \
             at=2026-11-01T06:30Z tried=2026-11-01T06:45Z",
            "2 status=false 5.00 USD account=stripe_live tag=don-2 ref=- \
             at=2026-11-19T08:00Z kind=refund",
        ]
    );
    foreign.close("read").await;
    let table = "donations";
    foreign
        .is_written_once(
            foreign.table(),
            "1",
            &[(table, "id = 1")],
            &[
                (table, "amount_minor", "501"),
                (table, "currency", "null"),
                (table, "settled", "null"),
                (table, "settled", "true"),
                (table, "is_refund", "true"),
                (table, "created", "created + interval '1 hour'"),
                (table, "sent", "null"),
            ],
        )
        .await;
    let rows = "select concat_ws(' ', id, settled, settled_at) from donations order by id";
    assert_eq!(foreign.rows(rows).await, ["1 t 2026-11-19 07:00:00", "2 f", "3 t", "4"]);
}

#[tokio::test]
async fn two_tables_in_one_run() {
    let foreign = Foreign::open("two").await;
    let mut writer = foreign.start("run").await;
    let [payments, refunds] = foreign.tables.as_slice() else { panic!("two tables") };
    for (table, lines) in [
        (
            payments,
            ["1 status=sent 10.00 EUR account=stripe_live tag=p1 ref=- at=2026-11-19T08:00Z"],
        ),
        (
            refunds,
            ["1 status=sent 4.00 EUR account=stripe_eu tag=r1 \
                 ref=- at=2026-11-19T08:00Z kind=refund"],
        ),
    ] {
        let claimed = foreign.claim("run", table).await;
        let read: Vec<String> = claimed.iter().map(|c| world::line(&c.row)).collect();
        assert_eq!(read, lines);
        let batch = foreign.effects("run", table, &claimed, succeeded_by_table);
        let end = foreign.store.apply("run", &mut writer, table, batch, noon()).await.unwrap();
        assert_eq!(end, done(1, 0, 0));
    }
    foreign.close("run").await;
    let rows = "select 'p' || id || status from payments \
                union all select 'r' || id || status from refund_rows order by 1";
    assert_eq!(foreign.rows(rows).await, ["p1paid", "r1paid", "r2sent"]);
    let totals = foreign.store.run_totals("run").await.unwrap();
    let totals: Vec<String> = totals
        .iter()
        .map(|t| format!("{} {} {} {} {}", t.table, t.currency, t.bucket, t.rows, t.amount_minor))
        .collect();
    assert_eq!(
        totals,
        [
            "payments EUR claimed 1 1000",
            "payments EUR succeeded 1 1000",
            // Money back counts the other way.
            "refunds EUR claimed 1 -400",
            "refunds EUR succeeded 1 -400",
        ]
    );
    assert!(foreign.store.verify_audit().await.unwrap().breaks.is_empty());
}

fn succeeded_by_table(claimed: &Claimed) -> Decision {
    let reference = format!("{}_{}", claimed.row.key.table, claimed.row.key.id);
    crate::store::world::succeeded_by(claimed, &reference)
}
