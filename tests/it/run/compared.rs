//! `run --all`: three books held against each other, each row, object and line once.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tieout::sandbox::seeds::Seed;
use tieout::sandbox::situations::Situation;

use crate::run::fetching;
use crate::run::files::{
    REFUNDS, at_bank, bring, camt, coded, credit, debit, in_days, returned, with_bank,
};
use crate::run::payouts::{bring_cards, shop_with_cards_and_bank, stripe};
use crate::run::shop::{Engine, Payment, Ran, Shop, Words, at_text, on_both_databases, tieout_now};

on_both_databases!(
    rows_objects_and_lines_are_each_in_one_bucket,
    a_line_is_with_the_row_that_any_of_its_names_tells,
    a_line_that_two_rows_could_have_is_told_once,
    a_line_whose_row_is_older_than_the_window_is_of_another_one,
    money_under_a_tag_that_its_row_has_no_part_in_is_nobodys,
    what_is_dated_far_ahead_is_no_money_yet,
    nothing_is_compared_unless_all_is_asked_for,
    a_difference_is_an_exit_where_it_is_asked_for,
    an_account_that_does_not_answer_is_said_not_to_be_asked,
    fees_and_payouts_of_a_report_stand_alone,
    what_both_issues_of_a_statement_have_is_told_once,
    a_paid_row_that_stores_another_payments_id_is_a_difference,
    money_that_is_gone_again_is_a_difference,
    a_paid_row_that_a_bank_took_back_is_a_difference,
    what_another_report_tells_is_told_once_and_an_adjustment_is_a_difference,
    a_text_with_the_tags_of_two_rows_is_neithers,
    what_was_authorised_and_not_settled_yet_says_nothing,
    what_is_tolerated_is_no_difference,
    a_charge_that_the_bank_gave_back_is_no_second_payment,
);

/// Whether a run has matched it or not.
async fn a_line_whose_row_is_older_than_the_window_is_of_another_one(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank().patient()).await;
    let old = |id, status| Payment { age: 5 * 86_400, ..at_bank(id, status) };
    shop.insert(&[old(1, "failed"), old(2, "paid"), at_bank(3, "paid")]).await;
    let bookings = [credit(10_001, "pay_1"), credit(9_000, "pay_2"), credit(10_003, "pay_3")];
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &bookings), 0).await;
    let ran = shop.run_with(&["--all", "--since", "1d"]).await;
    let wanted = [
        "agrees 3 pay_3 100.03 - 100.03 -",
        "other_window - pay_1 - - 100.01 -",
        "other_window - pay_2 - - 90.00 -",
    ];
    assert_eq!(compared(&shop, &ran), wanted);
    shop.check(false).await;
}

/// A run took it so, or would; a cent beyond is one, and a row that was given up has no tolerance.
async fn what_is_tolerated_is_no_difference(engine: Engine) {
    let words = with_bank().policy("amount_tolerance", "{ EUR = \"0.02\" }");
    let shop = Shop::open_with(engine, words.patient()).await;
    let rows = [
        at_bank(1, "paid"),
        at_bank(2, "paid"),
        at_bank(3, "paid"),
        at_bank(4, "failed"),
        at_bank(5, "paid"),
    ];
    shop.insert(&rows).await;
    let bookings = [
        credit(9_999, "pay_1"),
        credit(10_004, "pay_2"),
        credit(10_006, "pay_3"),
        credit(10_005, "pay_4"),
        credit(10_005, "pay_5"),
    ];
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &bookings), 0).await;
    let ran = shop.run_with(&["--all", "--since", "1d"]).await;
    let wanted = [
        "agrees 1 pay_1 100.01 - 99.99 -",
        "agrees 2 pay_2 100.02 - 100.04 -",
        "agrees 5 pay_5 100.05 - 100.05 -",
        "amount_differs 3 pay_3 100.03 - 100.06 -",
        "status_differs 4 pay_4 100.04 - 100.05 -",
    ];
    assert_eq!(compared(&shop, &ran), wanted);
    assert_eq!(
        noted(&shop).await,
        [
            "payments 1 agrees: in files: 0.02 EUR less, within amount_tolerance",
            "payments 2 agrees: in files: 0.02 EUR more, within amount_tolerance",
            "payments 3 amount_differs: ",
            "payments 4 status_differs: ",
            "payments 5 agrees: ",
        ]
    );
    shop.check(false).await;
}

/// What a run calls `returned` and leaves open is no money of the row's.
async fn a_charge_that_the_bank_gave_back_is_no_second_payment(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank().patient()).await;
    shop.insert(&[at_bank(1, "paid"), at_bank(2, "paid")]).await;
    let bookings = [
        credit(10_001, "pay_1"),
        credit(35, "pay_1"),
        credit(10_002, "pay_2"),
        credit(5_001, "pay_2"),
    ];
    let text = coded(&camt("camt.053", "S1", &bookings), "pay_1", 35, "PMNT/MDOP/CHRG");
    let text = coded(&text, "pay_2", 5_001, "PMNT/MDOP/CHRG");
    bring(&shop, "stmt.xml", &text, 0).await;
    let ran = shop.run_with(&["--all", "--since", "1d"]).await;
    let wanted = [
        "agrees 1 pay_1 100.01 - 100.01 -",
        "duplicate 2 pay_2 - - 50.01 -",
        "duplicate 2 pay_2 100.02 - 100.02 -",
        "only_in_file - pay_1 - - 0.35 -",
    ];
    assert_eq!(compared(&shop, &ran), wanted);
    shop.check(false).await;
}

/// The bank undoes a return that no file has: the row is of the window, and the money is not its.
async fn money_under_a_tag_that_its_row_has_no_part_in_is_nobodys(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank().patient()).await;
    shop.insert(&[at_bank(1, "paid")]).await;
    let both = camt("camt.053", "S1", &[credit(10_001, "pay_1"), credit(9_000, "pay_1")]);
    let (first, last) = both.rsplit_once("<Sts>").unwrap();
    let text = format!("{first}<RvslInd>true</RvslInd><Sts>{last}");
    bring(&shop, "stmt.xml", &text, 0).await;
    let ran = shop.run_with(&["--all", "--since", "1d", "--fail-on", "differs"]).await;
    let wanted = ["agrees 1 pay_1 100.01 - 100.01 -", "only_in_file - pay_1 - - 90.00 -"];
    assert_eq!(compared(&shop, &ran), wanted);
    assert_eq!(ran.code, Some(4));
    shop.check(false).await;
}

/// A shop whose account has files as well, and a second one that has files alone.
async fn shop_with_files(engine: Engine) -> Shop {
    let words = Words {
        accounts: ", bank = \"bank\"",
        more: "[[account]]\nname = \"bank\"\npsp = \"files\"\nmode = \"full\"\n\
               livemode = true\n"
            .to_owned(),
        ..Words::default()
    };
    Shop::open_with(engine, words.patient()).await
}

fn dir(shop: &Shop, ran: &Ran) -> PathBuf {
    let end = &ran.of_type("run_end")[0];
    shop.folder().join(end["report"].as_str().unwrap_or_else(|| panic!("no report: {end}")))
}

/// `bucket key tag local psp file` of each line, sorted.
fn compared(shop: &Shop, ran: &Ran) -> Vec<String> {
    let mut reader = csv::Reader::from_path(dir(shop, ran).join("compared.csv")).unwrap();
    let rows = reader.deserialize::<BTreeMap<String, String>>().map(Result::unwrap);
    let names =
        ["bucket", "internal_id", "tag", "local_amount", "psp_amount", "file_amount", "psp_txn_id"];
    let cell = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    let mut lines: Vec<String> =
        rows.map(|row| names.map(|name| cell(&row[name])).join(" ")).collect();
    lines.sort();
    lines
}

async fn rows_objects_and_lines_are_each_in_one_bucket(engine: Engine) {
    let mut shop = shop_with_files(engine).await;
    let with = |id, status| Payment { status, ..Payment::stuck(id) };
    let rows = [
        with(1, "paid"),
        with(2, "paid"),
        with(3, "failed"),
        with(4, "paid"),
        with(5, "processing"),
        with(6, "paid"),
        Payment { psp_ref: Some("pi_x".to_owned()), ..with(7, "paid") },
        Payment { age: 5 * 86_400, attempted: None, ..with(8, "paid") },
        with(9, "failed"),
        at_bank(11, "paid"),
        at_bank(12, "paid"),
        at_bank(13, "paid"),
        Payment { psp_ref: Some("ch_y".to_owned()), ..with(14, "paid") },
    ];
    shop.insert(&rows).await;
    let twice = Seed { id: Some("pi_6b".to_owned()), ..rows[5].captured() };
    let other = Payment { amount: Some(9_000), ..rows[3].clone() };
    let stranger = Payment { id: 99, ..rows[0].clone() };
    let untagged =
        Seed { id: Some("pi_x".to_owned()), metadata: BTreeMap::new(), ..rows[6].captured() };
    // The row stores the id of the charge, and the listing shows the intent.
    let by_charge = Seed {
        charge_id: Some("ch_y".to_owned()),
        metadata: BTreeMap::new(),
        ..rows[12].captured()
    };
    let seeds = vec![
        rows[0].captured(),
        rows[2].captured(),
        other.captured(),
        rows[4].captured(),
        rows[5].captured(),
        twice,
        stranger.captured(),
        untagged,
        by_charge,
    ];
    shop.plant(seeds);
    let bookings = [
        credit(10_011, "pay_11"),
        credit(10_012, "pay_12"),
        credit(1, "pay_12"),
        credit(777, "nobody"),
    ];
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &bookings), 0).await;
    let ran = shop.run_with(&["--all", "--since", "1d"]).await;
    assert_eq!(
        compared(&shop, &ran),
        [
            "agrees 1 pay_1 100.01 100.01 - pi_1",
            "agrees 11 pay_11 100.11 - 100.11 -",
            "agrees 14 pay_14 100.14 100.14 - pi_14",
            "agrees 5 pay_5 100.05 100.05 - pi_5",
            "agrees 7 pay_7 100.07 100.07 - pi_x",
            "agrees 9 pay_9 100.09 - - -",
            "amount_differs 4 pay_4 100.04 90.00 - pi_4",
            "duplicate 12 pay_12 - - 0.01 -",
            "duplicate 12 pay_12 100.12 - 100.12 -",
            "duplicate 6 pay_6 - 100.06 - pi_6b",
            "duplicate 6 pay_6 100.06 100.06 - pi_6",
            "only_at_psp - pay_99 - 100.01 - pi_99",
            "only_here 13 pay_13 100.13 - - -",
            "only_here 2 pay_2 100.02 - - -",
            "only_in_file - nobody - - 7.77 -",
            "status_differs 3 pay_3 100.03 100.03 - pi_3",
        ]
    );
    // What is stuck was repaired before, and what is reported was left alone.
    assert_eq!(ran.verdict(5), "succeeded captured");
    assert_eq!(shop.status(3).await, "failed");
    let counts = &ran.of_type("run_end")[0]["compared"];
    assert_eq!((counts["agrees"].as_u64(), counts["duplicate"].as_u64()), (Some(6), Some(4)));
    let report = dir(&shop, &ran);
    shop.tieout(&["report", "verify", report.to_str().unwrap()]).await.ended(0);
    let before = std::fs::read(report.join("compared.csv")).unwrap();
    let run_id = ran.of_type("run_end")[0]["run_id"].as_str().unwrap().to_owned();
    shop.tieout(&["report", "build", &run_id]).await.ended(0);
    assert_eq!(std::fs::read(report.join("compared.csv")).unwrap(), before);
    shop.check(false).await;
}

/// Whoever lets it count, only its day makes it money.
async fn what_is_dated_far_ahead_is_no_money_yet(engine: Engine) {
    let shop = shop_with_files(engine).await;
    shop.insert(&[at_bank(1, "paid"), at_bank(2, "paid")]).await;
    let text =
        |id: i64| camt("camt.053", &format!("S{id}"), &[credit(10_000 + id, &format!("pay_{id}"))]);
    bring(&shop, "1.xml", &text(1), 0).await;
    bring(&shop, "2.xml", &in_days(&text(2), 365), 3).await;
    shop.tieout(&["files", "release", "2", "--reason", "so it is"]).await.ended(0);
    let ran = shop.run_with(&["--all", "--since", "1d"]).await;
    assert_eq!(
        compared(&shop, &ran),
        ["agrees 1 pay_1 100.01 - 100.01 -", "status_differs 2 pay_2 100.02 - 100.02 -"]
    );
}

/// A debit under the tag of a payout and of a refund.
async fn a_line_that_two_rows_could_have_is_told_once(engine: Engine) {
    let mut words = with_bank();
    words.table.push_str("kind = { const = \"payout\" }\n");
    words.more.push_str(REFUNDS);
    let shop = Shop::open_with(engine, words.patient()).await;
    shop.insert(&[at_bank(1, "paid"), at_bank(2, "paid")]).await;
    let made = at_text(tieout_now() - 3_600);
    let columns = "insert into refunds (id, status, cents, made)";
    shop.raw.execute(&format!("{columns} values (1, 'done', 10001, '{made}')")).await;
    let bookings = [debit(10_001, "pay_1"), debit(10_002, "pay_2")];
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &bookings), 0).await;
    let ran = shop.run_with(&["--all", "--since", "1d"]).await;
    assert_eq!(
        compared(&shop, &ran),
        [
            "agrees 2 pay_2 -100.02 - -100.02 -",
            "ambiguous - pay_1 - - -100.01 -",
            "ambiguous 1 pay_1 -100.01 - - -",
            "ambiguous 1 pay_1 -100.01 - - -",
        ]
    );
    let report = dir(&shop, &ran);
    shop.tieout(&["report", "verify", report.to_str().unwrap()]).await.ended(0);
    shop.check(false).await;
}

async fn a_line_is_with_the_row_that_any_of_its_names_tells(engine: Engine) {
    let shop = shop_with_files(engine).await;
    let long_ago = Payment { age: 5 * 86_400, attempted: None, ..at_bank(4, "paid") };
    let rows = [1, 2, 3, 5].map(|id| at_bank(id, "paid"));
    shop.insert(&[&rows[..], &[long_ago]].concat()).await;
    // None of them agrees with a row, so that none becomes a row's own.
    let bookings = [credit(10_002, "their-1"), credit(10_003, "pay_2"), credit(10_006, "pay_4")];
    let text = camt("camt.053", "S1", &bookings);
    let further = [("their-1", "pay_1"), ("pay_2", "pay_3"), ("pay_4", "pay_5")];
    let text = further.iter().fold(text, |text, (first, further)| {
        let first = format!("<EndToEndId>{first}</EndToEndId>");
        text.replace(&first, &format!("<InstrId>{further}</InstrId>{first}"))
    });
    bring(&shop, "stmt.xml", &text, 0).await;
    // A dry run makes no line a row's own.
    let dry = shop.run_with(&["--all", "--since", "1d", "--dry-run"]).await;
    let counts = &dry.of_type("run_end")[0]["compared"];
    let of = ["amount_differs", "only_here", "other_window"].map(|word| counts[word].as_u64());
    assert_eq!(of, [Some(2), Some(2), Some(1)], "{counts}");
    let ran = shop.run_with(&["--all", "--since", "1d"]).await;
    assert_eq!(
        compared(&shop, &ran)[..4],
        [
            "amount_differs 1 pay_1 100.01 - 100.02 -",
            "amount_differs 2 pay_2 100.02 - 100.03 -",
            "only_here 3 pay_3 100.03 - - -",
            "only_here 5 pay_5 100.05 - - -",
        ]
    );
    shop.check(false).await;
}

async fn nothing_is_compared_unless_all_is_asked_for(engine: Engine) {
    let mut shop = shop_with_files(engine).await;
    let row = Payment::stuck(1);
    shop.insert(std::slice::from_ref(&row)).await;
    shop.plant(vec![row.captured()]);
    let dry = shop.run_with(&["--all", "--since", "1d", "--dry-run"]).await;
    assert_eq!(dry.of_type("run_end")[0]["compared"]["processing"], 1);
    assert_eq!(shop.count("tieout_compared").await, 0, "a dry run writes nothing");
    let ran = shop.run_with(&["--since", "1d"]).await;
    assert_eq!(compared(&shop, &ran), Vec::<String>::new());
    assert!(ran.of_type("run_end")[0].get("compared").is_none());
}

async fn a_difference_is_an_exit_where_it_is_asked_for(engine: Engine) {
    let mut shop = shop_with_files(engine).await;
    let row = Payment { status: "paid", ..Payment::stuck(1) };
    shop.insert(std::slice::from_ref(&row)).await;
    shop.plant(vec![row.captured()]);
    let asked = ["--all", "--since", "1d", "--fail-on", "differs"];
    shop.run_with(&asked).await.ended(0);
    // Money that no row explains; nothing of it is decided, and no case is opened.
    shop.plant(vec![Payment { id: 99, ..row.clone() }.captured()]);
    let ran = shop.run_with(&asked).await.ended(4);
    assert!(compared(&shop, &ran).iter().any(|line| line.starts_with("only_at_psp ")));
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    shop.run_with(&["--all", "--since", "1d"]).await.ended(0);
    // Nothing is compared without --all.
    shop.run_with(&["--since", "1d", "--fail-on", "differs"]).await.ended(0);
    // Another amount is one, too.
    let mut shop = shop_with_files(engine).await;
    shop.insert(std::slice::from_ref(&row)).await;
    shop.plant(vec![Payment { amount: Some(9_000), ..row.clone() }.captured()]);
    shop.run_with(&asked).await.ended(4);
}

async fn an_account_that_does_not_answer_is_said_not_to_be_asked(engine: Engine) {
    let mut shop = shop_with_files(engine).await;
    shop.insert(&[Payment { status: "paid", ..Payment::stuck(1) }, at_bank(2, "paid")]).await;
    shop.words.base_url = Some("http://127.0.0.1:9".to_owned());
    shop.write_words();
    let ran = shop.run_with(&["--all", "--since", "1d"]).await.ended(3);
    assert_eq!(
        compared(&shop, &ran),
        ["not_asked 1 pay_1 100.01 - - -", "only_here 2 pay_2 100.02 - - -"]
    );
}

/// Every line of a file is in it, also those that are no row's by their kind.
async fn fees_and_payouts_of_a_report_stand_alone(engine: Engine) {
    let shop = shop_with_cards_and_bank(engine).await;
    let report = stripe(&[
        ("charge", "ch_1", "10.00", "0.30", "9.70", "po_1"),
        ("fee", "fee_1", "-2.00", "0.00", "-2.00", "po_1"),
        ("payout", "po_1", "-7.70", "0.00", "-7.70", "po_1"),
    ]);
    let today = chrono::Utc::now().date_naive().to_string();
    let report = report.replace("2026-11-17", &today).replace("2026-11-19", &today);
    bring_cards(&shop, "report.csv", &report).await;
    // What is told again is not told twice.
    bring_cards(&shop, "again.csv", &report.replace('\n', "\r\n")).await;
    let ran = shop.run_with(&["--all", "--since", "1d"]).await;
    assert_eq!(
        compared(&shop, &ran),
        ["agrees - - - - -7.70 -", "agrees - fee_1 - - -2.00 -", "only_in_file - ch_1 - - 9.70 -"]
    );
    let text = std::fs::read_to_string(dir(&shop, &ran).join("compared.csv")).unwrap();
    assert!(text.contains("what the PSP took") && text.contains("what the PSP paid out"), "{text}");
    let report = dir(&shop, &ran);
    shop.tieout(&["report", "verify", report.to_str().unwrap()]).await.ended(0);
    shop.check(false).await;
}

/// Of a correction the difference alone counts: what both have stays where it counted first, in a
/// statement that counts no more.
async fn what_both_issues_of_a_statement_have_is_told_once(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank().patient()).await;
    shop.insert(&[at_bank(1, "paid"), at_bank(2, "paid")]).await;
    let issue = |cents| {
        let others = [credit(cents, "zz"), credit(555, "nobody")];
        let own = [credit(10_001, "pay_1"), credit(10_002, "pay_2")];
        camt("camt.053", "S1", &own.into_iter().chain(others).collect::<Vec<_>>())
    };
    bring(&shop, "first.xml", &issue(100), 0).await;
    bring(&shop, "second.xml", &issue(200), 3).await;
    shop.tieout(&["files", "release", "2", "--reason", "sent again"]).await.ended(0);
    let ran = shop.run_with(&["--all", "--since", "1d"]).await;
    assert_eq!(
        compared(&shop, &ran),
        [
            "agrees 1 pay_1 100.01 - 100.01 -",
            "agrees 2 pay_2 100.02 - 100.02 -",
            "only_in_file - nobody - - 5.55 -",
            "only_in_file - zz - - 2.00 -",
        ]
    );
    let places = "select file_id || ':' || position || ' ' || file_minor from tieout_compared \
                  where file_id is not null order by file_id, position";
    assert_eq!(shop.texts(places).await, ["1:1 10001", "1:2 10002", "1:4 555", "2:3 200"]);
    let report = dir(&shop, &ran);
    shop.tieout(&["report", "verify", report.to_str().unwrap()]).await.ended(0);
    shop.check(false).await;
}

/// Money and tags agree, and the ids that the rows store do not.
async fn a_paid_row_that_stores_another_payments_id_is_a_difference(engine: Engine) {
    let mut shop = shop_with_files(engine).await;
    let stores = |id, stored: &str| Payment {
        status: "paid",
        amount: Some(5_000),
        psp_ref: Some(stored.to_owned()),
        ..Payment::stuck(id)
    };
    let rows = [
        stores(1, "pi_8"),
        stores(2, "pi_2"),
        stores(3, "pi_4"),
        stores(4, "pi_3"),
        stores(5, "pi_nobodys"),
        stores(8, "pi_8"),
    ];
    shop.insert(&rows).await;
    shop.plant(rows.iter().map(Payment::captured).collect());
    let ran = shop.run_with(&["--all", "--since", "1d", "--fail-on", "differs"]).await.ended(4);
    assert_eq!(
        compared(&shop, &ran),
        [
            "agrees 2 pay_2 50.00 50.00 - pi_2",
            "agrees 8 pay_8 50.00 50.00 - pi_8",
            "status_differs 1 pay_1 50.00 50.00 - pi_1",
            "status_differs 3 pay_3 50.00 50.00 - pi_4",
            "status_differs 4 pay_4 50.00 50.00 - pi_3",
            "status_differs 5 pay_5 50.00 50.00 - pi_5",
        ]
    );
    let notes = "select key || ': ' || note from tieout_compared where note <> '' order by key";
    assert_eq!(
        shop.texts(notes).await,
        [
            "1: the row stores pi_8, and pi_1 was captured under its tag",
            "3: the row stores pi_4, whose tag is `pay_4` and not `pay_3`",
            "4: the row stores pi_3, whose tag is `pay_3` and not `pay_4`",
            "5: the row stores pi_nobodys, and pi_5 was captured under its tag",
        ]
    );
    shop.check(false).await;
}

/// `key bucket note` of each row.
async fn noted(shop: &Shop) -> Vec<String> {
    let own = "select table_name || ' ' || key || ' ' || bucket || ': ' || note \
               from tieout_compared where local_status is not null order by 1";
    shop.texts(own).await
}

/// What the PSP's own list shows of it: a dispute, or that nothing is left.
async fn money_that_is_gone_again_is_a_difference(engine: Engine) {
    let mut shop = shop_with_files(engine).await;
    let rows = [1, 2, 3].map(|id| Payment { status: "paid", ..Payment::stuck(id) });
    shop.insert(&rows).await;
    let refunded =
        |moved_amount| Seed { situation: Situation::Refunded, moved_amount, ..rows[1].captured() };
    shop.plant(vec![
        Seed { situation: Situation::DisputeLost, ..rows[0].captured() },
        refunded(None),
        Seed {
            id: Some("pi_3".to_owned()),
            metadata: rows[2].captured().metadata,
            amount: 10_003,
            ..refunded(Some(500))
        },
    ]);
    shop.run_with(&["--all", "--since", "1d", "--fail-on", "differs"]).await.ended(4);
    assert_eq!(
        noted(&shop).await,
        [
            "payments 1 status_differs: at the PSP: disputed",
            "payments 2 status_differs: at the PSP: refunded 100.02 EUR",
            "payments 3 agrees: at the PSP: refunded 5.00 EUR",
        ]
    );
    shop.check(false).await;
}

/// A payment that went back whole, and a refund that did; a part that the shop's own refund took.
async fn a_paid_row_that_a_bank_took_back_is_a_difference(engine: Engine) {
    let mut words = with_bank();
    words.more.push_str(REFUNDS);
    let shop = Shop::open_with(engine, words.patient()).await;
    shop.insert(&[at_bank(1, "paid"), at_bank(2, "paid"), at_bank(3, "paid")]).await;
    let made = at_text(tieout_now() - 3_600);
    for (id, cents) in [(2, 4_000), (4, 10_004)] {
        let columns = "insert into refunds (id, status, cents, made)";
        let sql = format!("{columns} values ({id}, 'done', {cents}, '{made}')");
        shop.raw.execute(&sql).await;
    }
    let bookings = [
        credit(10_001, "pay_1"),
        returned(10_001, "pay_1", "MD06"),
        credit(10_002, "pay_2"),
        debit(4_000, "pay_2"),
        credit(10_003, "pay_3"),
        debit(10_004, "pay_4"),
    ];
    let text = camt("camt.053", "S1", &bookings);
    bring(&shop, "stmt.xml", &text, 0).await;
    let back = camt("camt.053", "S2", &[credit(10_004, "pay_4")]);
    let why = "<RtrInf><Rsn><Cd>AC04</Cd></Rsn></RtrInf></TxDtls>";
    bring(&shop, "back.xml", &back.replace("</TxDtls>", why), 0).await;
    shop.run_with(&["--all", "--since", "1d", "--fail-on", "differs"]).await.ended(4);
    assert_eq!(
        noted(&shop).await,
        [
            "payments 1 status_differs: in files: returned 100.01 EUR (MD06)",
            "payments 2 agrees: ",
            "payments 3 agrees: ",
            "refunds 2 agrees: ",
            "refunds 4 status_differs: in files: returned 100.04 EUR (AC04)",
        ]
    );
    shop.check(false).await;
}

/// Stripe's payout reconciliation has the orders, and its balance history the transactions alone.
async fn what_another_report_tells_is_told_once_and_an_adjustment_is_a_difference(engine: Engine) {
    let shop = shop_with_cards_and_bank(engine).await;
    let on_cards = |id| Payment { account: "cards", status: "paid", ..Payment::stuck(id) };
    shop.insert(&[1, 2].map(on_cards)).await;
    let today = chrono::Utc::now().date_naive();
    let row = |n: i64, kind: &str, cents: &str| {
        format!("txn_{n},{today} 10:00:00,{today} 10:00:00,eur,{cents},0.00,{cents},{kind}")
    };
    let head = "balance_transaction_id,created,available_on,currency,gross,fee,net,\
                reporting_category";
    let mut full = format!("{head},source_id,charge_id,automatic_payout_id,");
    full.push_str("payment_metadata[order_id]\n");
    let mut short = "id,Type,Source,Amount,Fee,Net,Currency,Created (UTC),Available On (UTC),\
                     Description,Transfer\n"
        .to_owned();
    for (n, kind, cents, source, order) in [
        (1, "charge", "100.01", "ch_1", 1),
        (2, "charge", "100.02", "ch_2", 2),
        (3, "other_adjustment", "-100.02", "adj_2", 2),
    ] {
        let row = row(n, kind, cents);
        full.push_str(&format!("{row},{source},ch_{order},po_1,pay_{order}\n"));
        let kind = kind.trim_start_matches("other_");
        short.push_str(&format!(
            "txn_{n},{kind},{source},{cents},0.00,{cents},eur,{today} 10:00,{today} 10:00,,po_1\n"
        ));
    }
    bring_cards(&shop, "full.csv", &full).await;
    bring_cards(&shop, "short.csv", &short).await;
    shop.run().await;
    let ran = shop.run_with(&["--all", "--since", "1d"]).await;
    let mut found: Vec<String> = compared(&shop, &ran);
    found.sort();
    assert_eq!(
        found,
        [
            "agrees - adj_2 - - -100.02 -",
            "agrees - ch_1 - - 100.01 -",
            "agrees - ch_2 - - 100.02 -",
            "agrees 1 pay_1 100.01 - 100.01 -",
            "status_differs 2 pay_2 - - -100.02 -",
            "status_differs 2 pay_2 100.02 - 100.02 -",
        ]
    );
    let text = std::fs::read_to_string(dir(&shop, &ran).join("compared.csv")).unwrap();
    assert!(text.contains("what line F1:2 tells, by another report"), "{text}");
    assert!(text.contains("in files: adjusted by -100.02 EUR"), "{text}");
    shop.check(false).await;
}

/// Nor is it the first one's, in whatever order the text has them.
async fn a_text_with_the_tags_of_two_rows_is_neithers(engine: Engine) {
    let inbox = tempfile::tempdir().unwrap();
    let patterns = r"patterns = [{ in = 'text', find = '(pay_\d+)' }]";
    let source = fetching::folder("inbox", inbox.path(), patterns);
    let shop = fetching::shop(engine, &source).await;
    let same = |id| Payment { amount: Some(999), ..at_bank(id, "paid") };
    shop.insert(&[1, 2, 3, 4].map(same)).await;
    let text = camt("camt.053", "S1", &[credit(999, "none_1"), credit(999, "none_2")]);
    let said = |text: String, own: &str, says: &str| {
        let own = format!("<EndToEndId>{own}</EndToEndId></Refs>");
        let both = "<EndToEndId>NOTPROVIDED</EndToEndId></Refs>";
        text.replace(&own, &format!("{both}<RmtInf><Ustrd>{says}</Ustrd></RmtInf>"))
    };
    let text = said(said(text, "none_1", "pay_2 pay_1"), "none_2", "pay_3 pay_4");
    std::fs::write(inbox.path().join("stmt.xml"), text).unwrap();
    shop.run().await.ended(0);
    let ran = shop.run_with(&["--all", "--since", "1d"]).await;
    let row = |id: i64| format!("ambiguous {id} pay_{id} 9.99 - - -");
    let line = |tag: &str| format!("ambiguous - {tag} - - 9.99 -");
    assert_eq!(
        compared(&shop, &ran),
        [line("pay_2"), line("pay_3"), row(1), row(2), row(3), row(4)]
    );
    shop.check(false).await;
}

/// A report of attempts: the one that has the money comes days later.
async fn what_was_authorised_and_not_settled_yet_says_nothing(engine: Engine) {
    let shop = shop_with_cards_and_bank(engine).await;
    let on_cards = |id, status| Payment { account: "cards", status, ..Payment::stuck(id) };
    shop.insert(&[on_cards(1, "paid"), on_cards(2, "paid"), on_cards(3, "failed")]).await;
    let today = chrono::Utc::now().date_naive();
    let mut text = "Company Account,Merchant Account,Psp Reference,Merchant Reference,\
                    Payment Method,Creation Date,TimeZone,Currency,Amount,Type\n"
        .to_owned();
    for (id, kind) in [(1, "Authorised"), (2, "Refused"), (3, "Authorised")] {
        text.push_str(&format!(
            "Acme,AcmeEU,PSP{id},pay_{id},visa,{today} 00:00:01,UTC,EUR,100.0{id},{kind}\n"
        ));
    }
    bring_cards(&shop, "received.csv", &text).await;
    let ran = shop.run_with(&["--all", "--since", "1d"]).await;
    assert_eq!(
        compared(&shop, &ran),
        [
            "agrees 3 pay_3 100.03 - - -",
            "only_here 1 pay_1 100.01 - - -",
            "status_differs 2 pay_2 100.02 - - -",
        ]
    );
    shop.check(false).await;
}
