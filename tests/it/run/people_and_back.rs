//! What comes back of payments whose cases people have in hand.

use super::files::{at_bank, bring, with_bank};
use super::given_back::{Moved, PAYOUT, exceptions, gone, stripe, stuck};
use super::people::{ONE_IS_ENOUGH, confirmed};
use super::shop::{Engine, Payment, Shop, Words, on_both_databases};

on_both_databases!(
    what_is_back_ends_a_paid_rows_case_whatever_was_proposed,
    what_comes_for_a_row_that_was_left_is_told,
);

/// Three were paid; of the first the shop gave a part back besides. The second is of another sum.
async fn what_is_back_ends_a_paid_rows_case_whatever_was_proposed(engine: Engine) {
    let bank = with_bank();
    let more = format!("{}{ONE_IS_ENOUGH}", bank.more);
    let shop = Shop::open_with(engine, Words { more, ..bank }).await;
    let other = Payment { amount: Some(20_000), ..at_bank(2, "paid") };
    shop.insert(&[at_bank(1, "processing"), other, at_bank(3, "paid")]).await;
    let rows: &[Moved] = &[
        ("charge", "ch_1", 10_001, "ch_1", "pi_1", "pay_1"),
        ("dispute", "dp_1", -1_000, "ch_1", "pi_1", ""),
        ("refund", "re_1", -2_000, "ch_1", "pi_1", ""),
        ("charge", "ch_2", 10_002, "ch_2", "pi_2", "pay_2"),
        ("dispute", "dp_2", -1_000, "ch_2", "pi_2", ""),
        ("charge", "ch_3", 10_003, "ch_3", "pi_3", "pay_3"),
        ("dispute", "dp_3", -1_000, "ch_3", "pi_3", ""),
    ];
    bring(&shop, "first.csv", &stripe(PAYOUT, rows), 0).await;
    let ran = shop.run().await;
    assert_eq!(
        gone(&ran, 2),
        "10.00 EUR of pi_2 came back (charged back) after the row was `paid`; pi_2 captured \
         100.02 EUR; the row says 200.00 EUR"
    );
    assert_eq!(
        shop.open_cases().await,
        ["1 disputed", "2 late_contradiction", "3 late_contradiction"]
    );
    shop.raw.execute("update payments set status = 'paid' where id = 1").await;
    let case = "select 'C-' || number from tieout_cases where subject = '3'";
    let case = shop.texts(case).await.join("");
    let left = ["cases", "propose", &case, "--as", "left", "--why", "known"];
    confirmed(&shop, &left).await.ended(0);
    let back: &[Moved] = &[
        ("dispute_reversal", "dp_1", 1_000, "ch_1", "pi_1", ""),
        ("dispute_reversal", "dp_3", 1_000, "ch_3", "pi_3", ""),
    ];
    bring(&shop, "later.csv", &stripe(PAYOUT, back), 0).await;
    shop.run().await;
    assert_eq!(shop.open_cases().await, ["2 late_contradiction"]);
    // What was proposed of it ended with it.
    let states = "select what || ' ' || state from tieout_proposals";
    assert_eq!(shop.texts(states).await, ["left rejected"]);
    shop.check(true).await;
}

/// Nobody looks at it any more; the report tells what came, once.
async fn what_comes_for_a_row_that_was_left_is_told(engine: Engine) {
    let bank = with_bank();
    let more = format!("{}{ONE_IS_ENOUGH}", bank.more);
    let shop = Shop::open_with(engine, Words { more, ..bank }).await;
    stuck(&shop, 1).await;
    let first: &[Moved] = &[
        ("charge", "ch_1", 10_001, "ch_1", "pi_1", "pay_1"),
        ("refund", "re_1", -2_000, "ch_1", "pi_1", ""),
    ];
    bring(&shop, "first.csv", &stripe(PAYOUT, first), 0).await;
    shop.run().await;
    let left = ["cases", "propose", "C-1", "--as", "left", "--why", "by hand"];
    confirmed(&shop, &left).await.ended(0);
    let approve = ["cases", "approve", "C-1", "--why", "seen"];
    confirmed(&shop, &approve).await.ended(0);
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    let later: &[Moved] = &[("dispute", "dp_1", -3_000, "ch_1", "pi_1", "")];
    bring(&shop, "later.csv", &stripe(PAYOUT, later), 0).await;
    let ran = shop.run().await;
    assert!(exceptions(&shop, &ran).contains("late_contradiction"));
    let open = "select kind || ' ' || coalesce(reason, '-') from tieout_lines where state = 'open' \
                order by file_id, position";
    assert_eq!(shop.texts(open).await, ["chargeback late_contradiction"]);
    shop.check(false).await;
}
