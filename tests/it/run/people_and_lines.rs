//! Cases of settlement lines that people decide: to leave a line is all that there is to say.

use super::files::{at_bank, bring};
use super::line_cases::{OPEN, cases, statement, words};
use super::people::confirmed;
use super::shop::{Engine, Shop, on_both_databases};

on_both_databases!(
    a_case_of_a_line_that_is_left_stays_left,
    what_is_proposed_of_a_line_ends_with_its_case,
);

async fn a_case_of_a_line_that_is_left_stays_left(engine: Engine) {
    let shop = Shop::open_with(engine, words("")).await;
    bring(&shop, "older.xml", &statement(2), 0).await;
    shop.run().await.ended(0);
    shop.run().await.ended(0);
    let proposed = ["cases", "propose", "C-2", "--as", "left", "--why", "a supplier's"];
    confirmed(&shop, &proposed).await.ended(0);
    confirmed(&shop, &["cases", "approve", "C-2", "--why", "so it is"]).await.ended(0);
    let left = cases(&shop).await.remove(1);
    assert!(left.starts_with("1:2 orphan closed EUR 10078 bank left as it is by "), "{left}");
    shop.run().await.ended(0);
    assert_eq!(cases(&shop).await, [OPEN[0].to_owned(), left]);
    // The line knows it by itself: what becomes of the case is nothing to it.
    let kept = "select position || ' ' || cased from tieout_lines where cased is not null \
                order by position";
    assert_eq!(shop.texts(kept).await, ["1 orphan", "2 left"]);
    shop.check(false).await;
}

async fn what_is_proposed_of_a_line_ends_with_its_case(engine: Engine) {
    let shop = Shop::open_with(engine, words("")).await;
    bring(&shop, "older.xml", &statement(2), 0).await;
    shop.run().await.ended(0);
    shop.run().await.ended(0);
    let proposed = ["cases", "propose", "C-1", "--as", "left", "--why", "no shop of ours"];
    confirmed(&shop, &proposed).await.ended(0);
    shop.insert(&[at_bank(77, "paid")]).await;
    shop.run().await.ended(0);
    let closed = "1:1 orphan closed EUR 10077 bank row 77 of payments has it";
    assert_eq!(cases(&shop).await, [closed, OPEN[1]]);
    let said = shop.texts("select state || ' ' || ended_why from tieout_proposals").await;
    assert!(said[0].starts_with("rejected "), "{said:?}");
    shop.check(false).await;
}
