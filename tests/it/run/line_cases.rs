//! Cases of settlement lines that no row has: what opens one, and what ends it.

use super::files::{at_bank, bring, camt, credit, debit, with_bank};
use super::payouts::{bring_cards, stripe};
use super::people::ONE_IS_ENOUGH;
use super::shop::{Engine, Payment, Shop, Words, on_both_databases};

on_both_databases!(
    money_that_no_row_explains_is_a_case_the_day_after,
    a_case_of_a_line_ends_with_a_row,
    a_case_of_a_line_ends_with_another_report_that_tells_it,
    money_the_other_way_than_its_row_is_a_case_too,
    a_case_of_a_line_is_worth_what_the_shop_charged,
    a_text_that_is_nearly_a_uuid_stops_nobody,
    the_account_says_which_lines_open_cases,
);

/// The bank's account with more of its settings.
pub fn words(more: &str) -> Words {
    let with_bank = with_bank();
    let more = format!("{}{more}{ONE_IS_ENOUGH}", with_bank.more);
    Words { more, ..with_bank }
}

/// A statement of so many days ago: a tag of no row's, the same that went out, an invoice's number,
/// and no reference at all.
pub fn statement(days: u64) -> String {
    let bookings = [
        credit(10_077, "pay_77"),
        debit(10_078, "pay_78"),
        credit(3_000, "INV-2026-11"),
        credit(1_000, ""),
    ];
    let now = chrono::Utc::now();
    // The business day of the tests' shops.
    let today = now.with_timezone(&chrono_tz::Europe::Berlin).date_naive();
    let day = today.checked_sub_days(chrono::Days::new(days)).unwrap();
    let text = camt("camt.053", "S1", &bookings);
    text.replace(&now.date_naive().to_string(), &day.to_string())
}

/// The cases of lines, however they stand.
pub async fn cases(shop: &Shop) -> Vec<String> {
    shop.texts(
        "select subject || ' ' || reason || ' ' || state || ' ' || currency || ' ' || \
         cast(amount_minor as text) || ' ' || coalesce(account, '-') || ' ' || \
         coalesce(resolution, '-') from tieout_cases where subject_kind = 'line' order by number",
    )
    .await
}

pub const OPEN: [&str; 2] =
    ["1:1 orphan open EUR 10077 bank -", "1:2 orphan open EUR 10078 bank -"];

async fn money_that_no_row_explains_is_a_case_the_day_after(engine: Engine) {
    let shop = Shop::open_with(engine, words("")).await;
    bring(&shop, "today.xml", &statement(0), 0).await;
    for _ in 0..3 {
        shop.run().await.ended(0);
    }
    assert_eq!(cases(&shop).await, Vec::<String>::new(), "its row may still be written");
    let shop = Shop::open_with(engine, words("")).await;
    bring(&shop, "older.xml", &statement(2), 0).await;
    let ran = shop.run().await;
    assert_eq!(ran.of_type("run_end")[0]["lines"]["cases"], 0, "nobody looked for its row before");
    let dry = shop.run_with(&["--dry-run"]).await;
    assert_eq!(dry.of_type("run_end")[0]["lines"]["cases"], 0);
    assert_eq!(cases(&shop).await, Vec::<String>::new());
    let ran = shop.run().await;
    assert_eq!(ran.of_type("run_end")[0]["lines"]["cases"], 2);
    assert_eq!(ran.of_type("run_end")[0]["cases_new"], 2);
    assert_eq!(cases(&shop).await, OPEN);
    let ran = shop.run().await;
    assert_eq!(ran.of_type("run_end")[0]["lines"]["cases"], 0, "one open case per subject");
    assert_eq!(cases(&shop).await, OPEN);
    let shown = shop.tieout(&["cases", "show", "C-2"]).await.ended(0).stdout;
    for part in [
        "C-2  orphan  medium  -",
        "subject   line 1:2",
        "100.78 EUR went out on ",
        "(line F1:2), and no row is known by `pay_78`",
        "line      line ",
        "of older.xml (file 1), movement",
        "next      find out whose money it is. Where the shop's row is missing",
        "tieout cases propose C-2 --as left --why TEXT",
    ] {
        let part = part.trim_end_matches('-');
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let shown = shop.tieout(&["cases", "show", "C-2", "--json"]).await.ended(0);
    crate::support::events::check(&shown.stdout);
    assert_eq!(shown.events()[0]["line"]["position"], 2);
    let listed = shop.tieout(&["cases", "list"]).await.ended(0).stdout;
    assert!(listed.contains("100.77 EUR  line 1:1"), "{listed}");
    let refused = ["cases", "propose", "C-1", "--as", "succeeded", "--why", "x", "--dry-run"];
    let refused = shop.tieout(&refused).await;
    assert_ne!(refused.code, Some(0));
    assert!(refused.stderr.contains("it can only be left as it is"), "{}", refused.stderr);
    shop.check(false).await;
}

async fn a_case_of_a_line_ends_with_a_row(engine: Engine) {
    let shop = Shop::open_with(engine, words("")).await;
    bring(&shop, "older.xml", &statement(2), 0).await;
    shop.run().await.ended(0);
    shop.run().await.ended(0);
    assert_eq!(cases(&shop).await, OPEN);
    // One had been paid all the time; the other is decided by the same run that looks at it.
    shop.insert(&[at_bank(77, "paid")]).await;
    shop.run().await.ended(0);
    let closed = "1:1 orphan closed EUR 10077 bank row 77 of payments has it";
    assert_eq!(cases(&shop).await, [closed, OPEN[1]]);
    let cased = "select position || ' ' || cased from tieout_lines where cased is not null";
    assert_eq!(shop.texts(cased).await, ["2 orphan"]);
    let shown = shop.tieout(&["cases", "show", "C-1"]).await.ended(0).stdout;
    assert!(shown.contains("row 77 of payments has it"), "{shown}");
    shop.check(false).await;
}

/// Stripe's export of the balance names no order; the payout's report names it a day later.
async fn a_case_of_a_line_ends_with_another_report_that_tells_it(engine: Engine) {
    let shop = Shop::open_with(engine, words("line_cases = \"all\"\n")).await;
    shop.insert(&[Payment { age: 4 * 86_400, ..at_bank(1, "processing") }]).await;
    let day = chrono::Utc::now().date_naive() - chrono::TimeDelta::days(3);
    let export = format!(
        "id,Type,Source,Amount,Fee,Net,Currency,Created (UTC),Available On (UTC),Description,\
         Transfer\ntxn_1,charge,ch_1,100.01,0.00,100.01,eur,{day} 10:00,{day} 10:00,,po_1\n"
    );
    bring(&shop, "export.csv", &export, 0).await;
    for _ in 0..2 {
        shop.run().await;
    }
    let case = |end: &str| format!("1:1 orphan {end}");
    assert_eq!(cases(&shop).await, [case("open EUR 10001 bank -")]);
    let report = format!(
        "balance_transaction_id,created,available_on,currency,gross,fee,net,reporting_category,\
         source_id,charge_id,automatic_payout_id,payment_metadata[order_id]\n\
         txn_1,{day} 10:00:00,{day} 10:00:00,eur,100.01,0.00,100.01,charge,ch_1,ch_1,po_1,pay_1\n"
    );
    bring(&shop, "report.csv", &report, 0).await;
    shop.due_now().await;
    assert_eq!(shop.run().await.verdict(1), "succeeded settled");
    shop.run().await;
    let ended = case("closed EUR 10001 bank another report of the PSP tells it");
    assert_eq!(cases(&shop).await, [ended]);
    shop.check(false).await;
}

async fn the_account_says_which_lines_open_cases(engine: Engine) {
    for (setting, want) in [
        ("line_cases = \"none\"\n", vec![]),
        ("line_cases = \"named\"\n", vec!["1:1 orphan", "1:2 orphan"]),
        (
            "line_cases = \"all\"\n",
            vec!["1:1 orphan", "1:2 orphan", "1:3 orphan", "1:4 reference_missing"],
        ),
    ] {
        let shop = Shop::open_with(engine, words(setting)).await;
        bring(&shop, "older.xml", &statement(2), 0).await;
        shop.run().await.ended(0);
        shop.run().await.ended(0);
        assert_eq!(shop.open_cases().await, want, "{setting}");
        shop.check(false).await;
    }
}

/// Nothing was booked before that it could have taken back: the row is nobody's to look at for it.
async fn money_the_other_way_than_its_row_is_a_case_too(engine: Engine) {
    let shop = Shop::open_with(engine, words("")).await;
    bring(&shop, "older.xml", &statement(2), 0).await;
    shop.run().await.ended(0);
    shop.run().await.ended(0);
    assert_eq!(cases(&shop).await, OPEN);
    shop.insert(&[at_bank(78, "paid")]).await;
    for _ in 0..2 {
        shop.run().await.ended(0);
        let told = cases(&shop).await.remove(1);
        assert_eq!(told, "1:2 returned open EUR 10078 bank -", "it is the same case");
    }
    let shown = shop.tieout(&["cases", "show", "C-2"]).await.ended(0).stdout;
    assert!(shown.contains("(seen 2\u{d7})"), "{shown}");
    assert!(shown.contains("nothing was booked before that it could have taken back"), "{shown}");
    shop.check(false).await;
}

/// Four eyes and sums go by what the customer paid, and not by what the PSP left of it.
async fn a_case_of_a_line_is_worth_what_the_shop_charged(engine: Engine) {
    let cards = "[[account]]\nname = \"cards\"\npsp = \"files\"\nmode = \"full\"\nlivemode = true\n\
                 line_cases = \"all\"\n";
    let words =
        Words { accounts: ", cards = \"cards\"", more: cards.to_owned(), ..Words::default() };
    let shop = Shop::open_with(engine, words).await;
    let text = stripe(&[
        ("charge", "ch_77", "505.00", "14.90", "490.10", "po_1"),
        ("payout", "po_1", "-490.10", "0.00", "-490.10", "po_1"),
    ]);
    bring_cards(&shop, "po_1.csv", &text).await;
    shop.run().await.ended(0);
    shop.run().await.ended(0);
    let open = cases(&shop).await;
    assert_eq!(open.len(), 1, "{open:?}");
    assert!(open[0].contains(" orphan open EUR 50500 cards "), "{open:?}");
    let shown = shop.tieout(&["cases", "show", "C-1"]).await.ended(0).stdout;
    assert!(
        shown.contains("505.00 EUR came in") && shown.contains("490.10 EUR after fees"),
        "{shown}"
    );
    shop.check(false).await;
}

/// What no UUID column of the server can be compared with names no row, and the run goes on.
async fn a_text_that_is_nearly_a_uuid_stops_nobody(engine: Engine) {
    let shop = Shop::open_with(engine, words("")).await;
    let uuid = "550e8400-e29b-41d4-a716-446655440096";
    shop.raw
        .execute(match engine {
            Engine::Sqlite => "alter table payments add column ref text",
            Engine::Postgres => "alter table payments add column ref uuid",
        })
        .await;
    let path = shop.folder().join("tieout.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let by_ref = text.replace("tag = \"pay_{id}\"", "tag = \"{ref}\"");
    assert_ne!(by_ref, text);
    std::fs::write(&path, by_ref).unwrap();
    shop.insert(&[at_bank(1, "processing")]).await;
    shop.raw.execute(&format!("update payments set ref = '{uuid}' where id = 1")).await;
    let bookings = [
        credit(10_001, uuid),
        credit(500, &format!("urn:uuid:{uuid}")),
        credit(600, &format!("URN:UUID:{uuid}")),
        credit(700, &format!("{{{uuid}}}")),
    ];
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &bookings), 0).await;
    let ran = shop.run().await.ended(0);
    assert_eq!(ran.verdict(1), "succeeded settled");
    shop.check(false).await;
}
