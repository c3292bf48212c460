//! Rows with one natural key that were all paid: the oldest succeeds, and each other is for a
//! person, in whatever order, batches and runs they are decided.

use tieout::sandbox::faults::{Action, FaultRule, Matches};
use tieout::sandbox::routes::Route;
use tieout::sandbox::seeds::Seed;
use tieout::sandbox::settings::RetryAfter;
use tieout::sandbox::situations::Situation;

use super::shop::{Engine, Payment, Shop, Words, at_text, on_both_databases, tieout_now};

on_both_databases!(
    of_rows_paid_twice_the_oldest_succeeds,
    of_rows_paid_twice_the_oldest_succeeds_in_batches_of_one,
    of_rows_paid_twice_at_two_accounts_the_oldest_succeeds,
    what_is_written_early_waits_for_an_older_row,
    what_a_mode_withholds_stands_against_a_second_payment,
    two_runs_at_once_pay_no_natural_key_twice,
    a_hand_back_ends_as_a_sibling_is_found_paid,
    a_hand_back_ends_as_money_is_found_for_a_sibling,
    a_hand_back_ends_where_the_application_marked_a_sibling_paid,
    a_hand_back_waits_for_a_sibling_that_may_still_be_paid,
    what_waited_for_a_sibling_is_handed_back_anew,
    a_hand_back_stays_beside_a_sibling_with_nothing_at_the_psp,
    a_hand_back_ends_though_the_paid_sibling_cannot_be_written,
    a_sibling_is_unpaid_only_where_the_mapping_says_so,
    a_payment_that_two_rows_paid_is_told_as_taken_twice,
    a_sibling_whose_word_says_paid_is_no_other_payments,
    an_older_row_that_is_paid_beside_a_case_is_told_as_taken_twice,
    of_rows_paid_in_other_amounts_the_oldest_goes_first,
    what_waited_for_a_sibling_goes_to_a_person_with_it,
    a_row_whose_charge_was_lost_waits_for_no_case,
    a_row_that_can_still_be_paid_stands_back_for_nobody,
    a_row_that_was_paid_late_stands_against_its_sibling,
    a_second_capture_after_the_end_of_a_list_is_seen,
    a_sibling_that_was_given_up_and_paid_is_seen,
    a_sibling_that_was_partly_refunded_is_paid,
    a_sibling_that_was_given_up_just_now_is_listed,
    a_hand_back_ends_as_a_sibling_that_was_given_up_is_paid,
    a_late_hand_back_ends_as_a_sibling_is_paid,
    a_sibling_whose_payment_began_before_its_row_is_seen,
    a_sibling_that_may_still_be_paid_is_waited_for,
    without_an_answer_about_a_sibling_nobody_is_handed_back,
);

/// Stuck, with a natural key; the greater its age in seconds over 40 minutes, the older.
fn of(id: i64, order: &str, age: i64) -> Payment {
    Payment { order_no: Some(order.to_owned()), age: 40 * 60 + age, ..Payment::stuck(id) }
}

async fn plant(shop: &mut Shop, rows: &[Payment]) {
    shop.plant(rows.iter().map(Payment::captured).collect());
    shop.insert(rows).await;
}

async fn one_of_each_succeeds(engine: Engine, limits: &str, is_rehearsed: bool) {
    let words = Words { limits: limits.to_owned(), ..Words::default() };
    let mut shop = Shop::open_with(engine, words).await;
    shop.background(60).await;
    // A: the one that is claimed first is older. B: the other one is. C: three, the middle one is.
    let keyed = [of(1, "A", 9), of(2, "A", 0), of(3, "B", 0), of(4, "B", 9)];
    let three = [of(5, "C", 1), of(6, "C", 9), of(7, "C", 0)];
    // Another key, and none at all, which is no key.
    let alone = [of(8, "D", 0), Payment::stuck(9), Payment::stuck(10)];
    // E: of one age, where the key says which is older. F: the older one was not paid.
    let (equal, unpaid) = ([of(11, "E", 0), of(12, "E", 0)], of(13, "F", 9));
    plant(&mut shop, &[&keyed[..], &three, &alone, &equal, &[of(14, "F", 0)]].concat()).await;
    shop.insert(&[unpaid]).await;
    let would = match is_rehearsed {
        true => Some(shop.run_with(&["--dry-run"]).await.ended(0).verdicts()),
        false => None,
    };
    let ran = shop.run().await.ended(0);
    for id in [1, 4, 6, 8, 9, 10, 11, 14] {
        assert_eq!(ran.verdict(id), "succeeded captured", "{id}");
        assert_eq!(shop.status(id).await, "paid", "{id}");
    }
    for id in [2, 3, 5, 7, 12] {
        assert_eq!(ran.verdict(id), "review sibling_row", "{id}");
        assert_eq!(shop.status(id).await, "processing", "{id}");
    }
    if let Some(would) = would {
        assert_eq!(would, ran.verdicts(), "a rehearsal foretells it");
    }
    let told = "select text from tieout_cases where subject in ('2', '3') order by subject";
    let why = |own: i64, other: i64| {
        format!("pi_{own} captured, and row {other} with the same natural key already succeeded")
    };
    assert_eq!(shop.texts(told).await, [why(2, 1), why(3, 4)]);
    assert_eq!(shop.count("tieout_journal where applied = 'superseded'").await, 0);
    shop.check(false).await;
}

async fn of_rows_paid_twice_the_oldest_succeeds(engine: Engine) {
    one_of_each_succeeds(engine, "", true).await;
}

async fn of_rows_paid_twice_the_oldest_succeeds_in_batches_of_one(engine: Engine) {
    one_of_each_succeeds(engine, "batch = 1", false).await;
}

/// A second attempt went by another account, which is asked beside the first.
async fn of_rows_paid_twice_at_two_accounts_the_oldest_succeeds(engine: Engine) {
    let mut shop = Shop::open(engine).await;
    shop.words.accounts = ", other = \"other\"";
    shop.words.more = format!(
        "[[account]]\nname = \"other\"\npsp = \"stripe\"\nmode = \"full\"\nlivemode = false\n\
         key_env = \"SHOP_PSP_KEY\"\nbase_url = \"{}\"\ntag = \"metadata[order_id]\"\n\
         deadline = \"60s\"\nrequests_per_second = 500\n",
        shop.sandbox.base_url()
    );
    shop.write_words();
    shop.background(60).await;
    let at_other = |row: Payment| Payment { account: "other", ..row };
    let rows = [of(1, "A", 9), at_other(of(2, "A", 0)), of(3, "B", 0), at_other(of(4, "B", 9))];
    plant(&mut shop, &rows).await;
    let would = shop.run_with(&["--dry-run"]).await.ended(0).verdicts();
    let ran = shop.run().await.ended(0);
    assert_eq!(ran.verdicts(), would);
    assert_eq!([shop.status(1).await, shop.status(4).await], ["paid", "paid"]);
    assert_eq!(shop.open_cases().await, ["2 sibling_row", "3 sibling_row"]);
    shop.check(false).await;
}

/// What is paid is written while rows that are absent are still searched for.
async fn what_is_written_early_waits_for_an_older_row(engine: Engine) {
    let mut shop = Shop::open(engine).await;
    shop.background(60).await;
    shop.insert(&[Payment::stuck(20)]).await;
    for _ in 0..2 {
        shop.run().await.ended(0);
        shop.a_span_passes().await;
    }
    plant(&mut shop, &[of(1, "A", 0), of(2, "A", 9)]).await;
    shop.run().await.ended(0);
    assert_eq!([shop.status(1).await, shop.status(2).await], ["processing", "paid"]);
    assert_eq!(shop.open_cases().await, ["1 sibling_row"]);
    shop.check(false).await;
}

async fn what_a_mode_withholds_stands_against_a_second_payment(engine: Engine) {
    let words = Words { account_mode: "observe", table_mode: "observe", ..Words::default() };
    let mut shop = Shop::open_with(engine, words).await;
    shop.background(60).await;
    plant(&mut shop, &[of(1, "A", 9), of(2, "A", 0)]).await;
    let would = shop.run_with(&["--dry-run"]).await.ended(0).verdicts();
    let ran = shop.run().await.ended(0);
    assert_eq!(ran.verdicts(), would);
    assert_eq!(ran.verdict(1), "succeeded captured");
    assert_eq!(ran.verdict(2), "review sibling_row");
    assert_eq!([shop.status(1).await, shop.status(2).await], ["processing", "processing"]);
    shop.check(false).await;
}

/// A row that money was found for beside a paid one is taken twice; one that is absent is not.
async fn a_payment_that_two_rows_paid_is_told_as_taken_twice(engine: Engine) {
    let mut shop = Shop::open(engine).await;
    let file = shop.folder().join("tieout.prom");
    let textfile = file.display();
    shop.words.more = format!("[monitoring]\nprometheus = {{ textfile = \"{textfile}\" }}\n");
    shop.write_words();
    shop.background(60).await;
    let twice = || {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut lines = text.lines().filter(|line| line.starts_with("tieout_paid_twice{"));
        let line = lines.next().unwrap_or_else(|| panic!("{text}"));
        line.rsplit_once(' ').unwrap().1.to_owned()
    };
    shop.insert(&[of(1, "A", 0), Payment { status: "paid", ..of(2, "A", 9) }]).await;
    for _ in 0..4 {
        shop.run_with(&["--fail-on", "duplicates"]).await.ended(0);
        shop.a_span_passes().await;
    }
    assert_eq!(shop.open_cases().await, ["1 sibling_row"]);
    assert_eq!(twice(), "0");
    plant(&mut shop, &[of(3, "B", 9), of(4, "B", 0)]).await;
    shop.run_with(&["--fail-on", "duplicates"]).await.ended(4);
    assert_eq!(shop.open_cases().await, ["1 sibling_row", "4 sibling_row"]);
    assert_eq!(twice(), "1");
}

async fn two_runs_at_once_pay_no_natural_key_twice(engine: Engine) {
    let words = Words { limits: "batch = 1".to_owned(), ..Words::default() }.patient();
    let mut shop = Shop::open_with(engine, words).await;
    shop.background(60).await;
    let pairs = 20;
    let row = |id: i64| {
        let age = if id % 2 == 0 { id } else { -id };
        of(id, &format!("order-{}", id % pairs), age)
    };
    let rows: Vec<Payment> = (1..=2 * pairs).map(row).collect();
    plant(&mut shop, &rows).await;
    let _both = tokio::join!(shop.run(), shop.run());
    let twice = "select order_no from payments where status = 'paid' and order_no is not null \
                 group by order_no having count(*) > 1";
    assert_eq!(shop.texts(twice).await, Vec::<String>::new());
    // Whoever came second in the very moment of writing is decided by the next run.
    shop.due_now().await;
    shop.run().await.ended(0);
    assert_eq!(shop.texts(twice).await, Vec::<String>::new());
    let paid = shop.count("payments where status = 'paid' and order_no is not null").await;
    let cases = shop.count("tieout_cases where state = 'open' and reason = 'sibling_row'").await;
    assert_eq!((paid, cases), (pairs, pairs));
    shop.check(false).await;
}

/// One row is handed back, and not taken; then another row of its natural key gets stuck.
async fn one_handed_back(engine: Engine) -> Shop {
    let mut shop = Shop::open_with(engine, Words::default().policy("watch", "[\"1h\"]")).await;
    shop.background(60).await;
    shop.insert(&[of(1, "A", 9)]).await;
    shop.run_until_proven().await;
    assert_eq!(shop.status(1).await, "retry");
    assert_eq!(shop.texts(OPEN).await, ["1"]);
    shop
}

const OPEN: &str = "select key from tieout_handbacks where taken_at is null and ended_at is null";

async fn ends_beside(mut shop: Shop, sibling: Payment, seed: Seed, verdict: &str) {
    shop.insert(&[sibling]).await;
    shop.plant(vec![seed]);
    let ran = shop.run().await.ended(0);
    assert_eq!(ran.verdict(2), verdict);
    // Before anybody else looks: whoever comes now finds no hand-back to take.
    let reasons = "select end_reason from tieout_handbacks where key = '1' and taken_at is null";
    assert_eq!(shop.texts(reasons).await, ["sibling_row"]);
    shop.run().await.ended(0);
    let why = "select text from tieout_cases where subject = '1' and state = 'open'";
    let [why] = &shop.texts(why).await[..] else { panic!("no case of the row handed back") };
    assert!(why.starts_with("handed back (hand-back 1), and row 2"), "{why}");
    assert_eq!(shop.status(1).await, "retry", "its status stays as it is");
    shop.check(false).await;
}

async fn a_hand_back_ends_as_a_sibling_is_found_paid(engine: Engine) {
    let shop = one_handed_back(engine).await;
    let sibling = of(2, "A", 0);
    let seed = sibling.captured();
    ends_beside(shop, sibling, seed, "succeeded captured").await;
}

/// Money that is not to be taken for an end is money all the same. Its row does not count as paid,
/// and a person says what becomes of the row beside it.
async fn a_hand_back_ends_as_money_is_found_for_a_sibling(engine: Engine) {
    let mut shop = one_handed_back(engine).await;
    let sibling = of(2, "A", 0);
    shop.plant(vec![Seed { amount: 77, ..sibling.captured() }]);
    shop.insert(&[sibling]).await;
    assert_eq!(shop.run().await.ended(0).verdict(2), "review amount_mismatch");
    assert_eq!(shop.texts(OPEN).await, Vec::<String>::new());
    shop.run().await.ended(0);
    assert_eq!(shop.open_cases().await, ["1 sibling_row", "2 amount_mismatch"]);
    let why = "select text from tieout_cases where subject = '1'";
    let told = "handed back (hand-back 1), and row 2 with the same natural key has something at \
                the PSP since: nobody may charge this one";
    assert_eq!(shop.texts(why).await, [told]);
    shop.check(false).await;
}

const ENDS: &str =
    "select coalesce(end_reason, 'open') from tieout_handbacks where key = '1' order by number";

/// Row 1 is handed back; then row 2 of its natural key gets stuck, with this at the PSP.
async fn held_beside(engine: Engine, situation: Situation, verdict: &str) -> Shop {
    let mut shop = one_handed_back(engine).await;
    let sibling = of(2, "A", 0);
    shop.plant(vec![sibling.captured().standing(situation)]);
    shop.insert(&[sibling]).await;
    assert_eq!(shop.run().await.ended(0).verdict(2), verdict);
    // Before anybody else looks: whoever comes now finds no hand-back to take.
    assert_eq!(shop.texts(ENDS).await, ["sibling_pending"]);
    for _look in 0..3 {
        shop.a_span_passes().await;
        shop.run().await.ended(0);
        assert_eq!(shop.texts(OPEN).await, Vec::<String>::new());
    }
    shop.due_now().await;
    let ran = shop.run().await.ended(0);
    assert_eq!([ran.verdict(1), ran.verdict(2)], ["wait sibling_pending", verdict]);
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    assert_eq!(shop.texts(ENDS).await, ["sibling_pending"]);
    shop
}

/// A bank debit under way, or a customer who may still finish: charged beside it, the payment is
/// captured twice.
async fn a_hand_back_waits_for_a_sibling_that_may_still_be_paid(engine: Engine) {
    let cases =
        [(Situation::Processing, "wait psp_pending"), (Situation::RequiresAction, "wait rule")];
    for (situation, verdict) in cases {
        let shop = held_beside(engine, situation, verdict).await;
        shop.sandbox.move_to("pi_2", Situation::Succeeded).unwrap();
        shop.due_now().await;
        assert_eq!(shop.run().await.ended(0).verdict(2), "succeeded captured");
        shop.due_now().await;
        shop.run().await.ended(0);
        assert_eq!(shop.open_cases().await, ["1 sibling_row"]);
        assert_eq!(shop.texts(OPEN).await, Vec::<String>::new());
        shop.check(false).await;
    }
}

/// What the sibling waited for came to nothing: the payment is charged once after all.
async fn what_waited_for_a_sibling_is_handed_back_anew(engine: Engine) {
    let shop = held_beside(engine, Situation::RequiresAction, "wait rule").await;
    shop.sandbox.move_to("pi_2", Situation::Canceled).unwrap();
    for _look in 0..3 {
        shop.a_span_passes().await;
        shop.run().await.ended(0);
    }
    assert_eq!([shop.status(1).await, shop.status(2).await], ["retry", "failed"]);
    assert_eq!(shop.texts(OPEN).await, ["1"]);
    assert_eq!(shop.texts(ENDS).await, ["sibling_pending", "open"]);
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    shop.check(false).await;
}

/// Two rows that are both absent end each other's hand-backs for ever by no look at either.
async fn a_hand_back_stays_beside_a_sibling_with_nothing_at_the_psp(engine: Engine) {
    let shop = one_handed_back(engine).await;
    shop.insert(&[of(2, "A", 0)]).await;
    for _look in 0..4 {
        shop.a_span_passes().await;
        shop.run().await.ended(0);
        assert_eq!(shop.texts(OPEN).await, ["1"]);
    }
    assert_eq!(shop.open_cases().await, ["2 sibling_row"]);
    assert_eq!(shop.texts(ENDS).await, ["open"]);
    shop.check(false).await;
}

/// The table takes no change, and the row that was paid is left to the next run: nobody charges
/// beside it meanwhile.
async fn a_hand_back_ends_though_the_paid_sibling_cannot_be_written(engine: Engine) {
    let mut shop = one_handed_back(engine).await;
    let sibling = of(2, "A", 0);
    shop.plant(vec![sibling.captured()]);
    shop.insert(&[sibling]).await;
    let (broken, mended) = match engine {
        Engine::Sqlite => (
            "create trigger broken before update on payments
             begin insert into nowhere values (1); end",
            "drop trigger broken",
        ),
        Engine::Postgres => (
            "create function broken() returns trigger language plpgsql as $$ begin
               raise exception 'closed' using errcode = '42501'; end $$;
             create trigger broken before update on payments
             for each row execute function broken()",
            "drop trigger broken on payments",
        ),
    };
    shop.raw.execute(broken).await;
    assert_eq!(shop.run().await.ended(3).verdict(2), "succeeded captured");
    assert_eq!(shop.status(2).await, "processing");
    assert_eq!(shop.texts(ENDS).await, ["sibling_row"]);
    shop.run().await.ended(3);
    assert_eq!(shop.open_cases().await, ["1 sibling_row"]);
    shop.raw.execute(mended).await;
    shop.due_now().await;
    shop.run().await.ended(0);
    assert_eq!([shop.status(1).await, shop.status(2).await], ["retry", "paid"]);
    assert_eq!(shop.open_cases().await, ["1 sibling_row"]);
    shop.check(false).await;
}

async fn a_hand_back_ends_where_the_application_marked_a_sibling_paid(engine: Engine) {
    let shop = one_handed_back(engine).await;
    shop.insert(&[Payment { status: "paid", ..of(2, "A", 0) }]).await;
    shop.due_now().await;
    shop.run().await.ended(0);
    assert_eq!(shop.texts(OPEN).await, Vec::<String>::new());
    assert_eq!(shop.open_cases().await, ["1 sibling_row"]);
    shop.check(false).await;
}

/// Absent rows beside others: what may be paid or charged holds them up, what is over does not.
async fn a_sibling_is_unpaid_only_where_the_mapping_says_so(engine: Engine) {
    let words = Words {
        table: "unpaid = [\"void\"]\n".to_owned(),
        ignore: vec!["new", "cart", "settled", "canceled", "void"],
        ..Words::default()
    };
    let mut shop = Shop::open_with(engine, words).await;
    shop.background(60).await;
    let at = |id: i64, order: &str, status| Payment { status, ..of(id, order, 9) };
    let others =
        [at(1, "A", "settled"), at(2, "B", "new"), at(3, "C", "void"), at(4, "D", "failed")];
    shop.insert(&others).await;
    shop.insert(&[of(11, "A", 0), of(12, "B", 0), of(13, "C", 0), of(14, "D", 0)]).await;
    shop.run_until_proven().await;
    assert_eq!(shop.open_cases().await, ["11 sibling_row", "12 sibling_row"]);
    assert_eq!(shop.texts(&format!("{OPEN} order by key")).await, ["13", "14"]);
    let why = "select text from tieout_cases where subject = '11'";
    let told = "absent, but row 1 with the same natural key has a status of which the mapping does \
                not say whether it was paid";
    assert_eq!(shop.texts(why).await, [told]);
    shop.check(false).await;
}

/// The mapping ignores a word of success: a row that was paid beside one at it is for a person, and
/// told as taken twice.
async fn a_sibling_whose_word_says_paid_is_no_other_payments(engine: Engine) {
    let words = Words { ignore: vec!["new", "cart", "settled"], ..Words::default() };
    let mut shop = Shop::open_with(engine, words).await;
    shop.background(60).await;
    let at = |id: i64, order: &str, status| Payment { status, ..of(id, order, 9) };
    plant(&mut shop, &[at(1, "A", "settled"), of(2, "A", 0), of(4, "B", 0)]).await;
    shop.insert(&[at(3, "B", "new")]).await;
    let ran = shop.run_with(&["--fail-on", "duplicates"]).await.ended(4);
    assert_eq!(ran.verdict(2), "review sibling_row");
    assert_eq!(ran.verdict(4), "succeeded captured");
    let why = "select text from tieout_cases where subject = '2'";
    let told = "pi_2 captured, and row 1 with the same natural key has a status that says so too, \
                though the mapping does not";
    assert_eq!(shop.texts(why).await, [told]);
    assert_eq!(shop.status(2).await, "processing");
    shop.check(false).await;
}

const WHY: &str = "select text from tieout_cases where subject = '1' and state = 'open'";

/// The younger row went to a person while the older one was under way: who comes to pay second is
/// told, whatever its age.
async fn an_older_row_that_is_paid_beside_a_case_is_told_as_taken_twice(engine: Engine) {
    let mut shop = Shop::open(engine).await;
    shop.background(60).await;
    let (older, younger) = (of(1, "A", 9), of(2, "A", 0));
    let under_way = older.captured().standing(Situation::Processing);
    shop.plant(vec![under_way, Seed { amount: 77, ..younger.captured() }]);
    shop.insert(&[older, younger]).await;
    let ran = shop.run_with(&["--fail-on", "duplicates"]).await.ended(0);
    assert_eq!([ran.verdict(1), ran.verdict(2)], ["wait psp_pending", "review amount_mismatch"]);
    shop.sandbox.move_to("pi_1", Situation::Succeeded).unwrap();
    shop.due_now().await;
    let ran = shop.run_with(&["--fail-on", "duplicates"]).await.ended(4);
    assert_eq!(ran.verdict(1), "review sibling_row");
    assert_eq!(shop.status(1).await, "processing");
    assert_eq!(shop.open_cases().await, ["1 sibling_row", "2 amount_mismatch"]);
    let told = "pi_1 captured, and row 2 with the same natural key is a person's, with money \
                captured for it too";
    assert_eq!(shop.texts(WHY).await, [told]);
    // The other payment was given back, and its row closed by hand.
    shop.raw.execute("update payments set status = 'failed' where id = 2").await;
    shop.tieout(&["cases", "kick", "--reason", "sibling_row", "--yes"]).await.ended(0);
    assert_eq!([shop.status(1).await, shop.status(2).await], ["paid", "failed"]);
    shop.check(false).await;
}

/// In one run, too, with a rehearsal that foretells it.
async fn of_rows_paid_in_other_amounts_the_oldest_goes_first(engine: Engine) {
    let mut shop = Shop::open(engine).await;
    shop.background(60).await;
    let rows = [of(1, "A", 9), of(2, "A", 0), of(3, "B", 9), of(4, "B", 0)];
    let seeds = rows.iter().map(|row| match row.id {
        2 | 3 => Seed { amount: 77, ..row.captured() },
        _ => row.captured(),
    });
    shop.plant(seeds.collect());
    shop.insert(&rows).await;
    let would = shop.run_with(&["--dry-run"]).await.ended(0).verdicts();
    let ran = shop.run_with(&["--fail-on", "duplicates"]).await.ended(4);
    assert_eq!(ran.verdicts(), would);
    assert_eq!([ran.verdict(1), ran.verdict(2)], ["succeeded captured", "review sibling_row"]);
    assert_eq!([ran.verdict(3), ran.verdict(4)], ["review amount_mismatch", "review sibling_row"]);
    assert_eq!(shop.open_cases().await, ["2 sibling_row", "3 amount_mismatch", "4 sibling_row"]);
    assert_eq!(shop.count("tieout_journal where applied = 'superseded'").await, 0);
    shop.check(false).await;
}

/// A hand-back ended for a sibling that might still be paid, and that one goes to a person.
async fn what_waited_for_a_sibling_goes_to_a_person_with_it(engine: Engine) {
    let mut shop = one_handed_back(engine).await;
    let sibling = of(2, "A", 0);
    let open = sibling.captured().standing(Situation::RequiresAction);
    shop.plant(vec![Seed { amount: 77, ..open }]);
    shop.insert(&[sibling]).await;
    assert_eq!(shop.run().await.ended(0).verdict(2), "wait rule");
    assert_eq!(shop.texts(ENDS).await, ["sibling_pending"]);
    shop.sandbox.move_to("pi_2", Situation::Succeeded).unwrap();
    for _look in 0..4 {
        shop.a_span_passes().await;
        shop.run().await.ended(0);
    }
    assert_eq!(shop.open_cases().await, ["1 sibling_row", "2 amount_mismatch"]);
    let told = "absent, but row 2 with the same natural key is a person's, with money captured for \
                it";
    assert_eq!(shop.texts(WHY).await, [told]);
    assert_eq!(shop.texts(OPEN).await, Vec::<String>::new());
    shop.check(false).await;
}

/// Two rows were absent, and one was handed back; its worker came for it, and the call was lost.
/// The other is a person's for the one alone: the one is handed back anew, and never both.
async fn a_row_whose_charge_was_lost_waits_for_no_case(engine: Engine) {
    for stands_back in ["2", "3"] {
        let shop = one_handed_back(engine).await;
        // An older one, or a younger one.
        let age = if stands_back == "2" { 0 } else { 20 };
        shop.insert(&[of(stands_back.parse().unwrap(), "A", age)]).await;
        shop.run_until_proven().await;
        let case = format!("{stands_back} sibling_row");
        assert_eq!(shop.open_cases().await, [case.as_str()]);
        let taken = "update payments set status = 'processing', attempt = attempt + 1 where id = 1";
        shop.raw.execute(taken).await;
        for _look in 0..5 {
            shop.a_span_passes().await;
            shop.run().await.ended(0);
            let open = shop.texts(OPEN).await;
            assert!(open.is_empty() || open == ["1"], "{open:?}");
        }
        assert_eq!(shop.status(1).await, "retry", "beside {stands_back}");
        assert_eq!(shop.texts(OPEN).await, ["1"]);
        assert_eq!(shop.open_cases().await, [case.as_str()]);
        shop.check(false).await;
    }
}

/// As above, but for the other row something stands at the PSP that the customer may still pay: the
/// one is not handed back beside it, and it succeeds in the other's name, or not at all.
async fn a_row_that_can_still_be_paid_stands_back_for_nobody(engine: Engine) {
    let mut shop = one_handed_back(engine).await;
    let other = of(2, "A", 0);
    shop.plant(vec![other.captured().standing(Situation::Declined)]);
    shop.insert(&[other]).await;
    shop.run_until_proven().await;
    assert_eq!(shop.open_cases().await, ["2 sibling_row"]);
    let taken = "update payments set status = 'processing', attempt = attempt + 1 where id = 1";
    shop.raw.execute(taken).await;
    for look in 0..5 {
        if look == 2 {
            shop.sandbox.move_to("pi_2", Situation::Succeeded).unwrap();
        }
        shop.a_span_passes().await;
        shop.run().await.ended(0);
        assert_eq!(shop.texts(OPEN).await, Vec::<String>::new());
        assert_ne!(shop.status(1).await, "retry");
    }
    shop.tieout(&["audit", "verify"]).await.ended(0);
}

/// A row that ended unpaid was paid after all, which is a case of its own: nobody charges its
/// sibling, though its status says that it failed.
async fn a_row_that_was_paid_late_stands_against_its_sibling(engine: Engine) {
    let mut shop = Shop::open(engine).await;
    shop.background(60).await;
    let late = of(1, "A", 9);
    let seed = late.captured().standing(Situation::Declined);
    shop.plant(vec![Seed { decline_code: Some("stolen_card".to_owned()), ..seed }]);
    shop.insert(&[late]).await;
    shop.run_until_proven().await;
    assert_eq!(shop.status(1).await, "failed");
    shop.sandbox.move_to("pi_1", Situation::Succeeded).unwrap();
    shop.run_with(&["--all", "--since", "2d"]).await;
    assert_eq!(shop.open_cases().await, ["1 late_contradiction"]);
    shop.insert(&[of(2, "A", 0)]).await;
    shop.run_until_proven().await;
    assert_eq!(shop.status(2).await, "processing");
    assert_eq!(shop.open_cases().await, ["1 late_contradiction", "2 sibling_row"]);
    shop.check(false).await;
}

/// A list ends where the rows' calls are over. Who sent a payment again later captured it twice.
async fn a_second_capture_after_the_end_of_a_list_is_seen(engine: Engine) {
    // By another list, and by the search.
    for count in [40, 3] {
        let mut shop = Shop::open_with(engine, Words::default().patient()).await;
        shop.background(60).await;
        let rows: Vec<Payment> = (1..=count).map(Payment::stuck).collect();
        let again = Seed { id: Some("pi_again".to_owned()), ..rows[0].captured() };
        shop.plant(rows.iter().map(Payment::captured).collect());
        shop.plant(vec![again.created_at(tieout_now() - 5 * 60)]);
        shop.insert(&rows).await;
        // One that nobody finds, which is to be listed for.
        shop.insert(&[Payment::stuck(count + 1)]).await;
        let ran = shop.run_with(&["--fail-on", "duplicates"]).await.ended(4);
        assert_eq!(ran.verdict(1), "review duplicate_capture");
        for id in 2..=count {
            assert_eq!(ran.verdict(id), "succeeded captured", "{id}");
        }
        assert_eq!(shop.count("tieout_checks where state = 'watch'").await, 0);
        assert_eq!(shop.open_cases().await, ["1 duplicate_capture"]);
        shop.check(false).await;
    }
}

/// An application that took a time-out for a failure gave up the row, whose money moved, and made
/// another one for the payment: that one is not charged.
async fn a_sibling_that_was_given_up_and_paid_is_seen(engine: Engine) {
    let mut shop = Shop::open(engine).await;
    shop.background(60).await;
    let failed = |id, order, age| Payment { status: "failed", ..of(id, order, age) };
    let given_up =
        [failed(1, "A", 90), failed(3, "B", 90), failed(5, "C", -60), failed(7, "D", 90)];
    let [paid, unpaid, younger, refunded] = given_up.each_ref().map(Payment::captured);
    shop.plant(vec![
        paid,
        unpaid.standing(Situation::Declined),
        younger,
        refunded.standing(Situation::Refunded),
    ]);
    shop.insert(&given_up).await;
    shop.insert(&[of(2, "A", 0), of(4, "B", 0), of(6, "C", 0), of(8, "D", 0)]).await;
    shop.run_until_proven().await;
    let cases = shop.open_cases().await;
    assert_eq!(cases, ["2 sibling_row", "6 sibling_row"]);
    let told = "select text from tieout_cases where subject = '2'";
    let why = "absent, but row 1 with the same natural key was paid at the PSP, whatever its \
               status says";
    assert_eq!(shop.texts(told).await, [why]);
    for (id, status) in [(2, "processing"), (4, "retry"), (6, "processing"), (8, "retry")] {
        assert_eq!(shop.status(id).await, status, "{id}");
    }
    shop.check(false).await;
}

/// The customer who has a part back paid all the same.
async fn a_sibling_that_was_partly_refunded_is_paid(engine: Engine) {
    let mut shop = Shop::open(engine).await;
    shop.background(60).await;
    let rows = [of(1, "A", 9), of(2, "A", 0), of(3, "B", 9), of(4, "B", 0)];
    shop.insert(&[rows[0].clone(), rows[2].clone()]).await;
    let back = |row: &Payment| row.captured().standing(Situation::Refunded);
    let part = Seed { moved_amount: Some(300), ..back(&rows[0]) };
    shop.plant(vec![part, back(&rows[2])]);
    shop.run().await;
    assert_eq!(shop.open_cases().await, ["1 refunded", "3 refunded"]);
    let told = "select text from tieout_cases order by subject";
    let texts = [
        "pi_1 captured 100.01 EUR and 3.00 EUR of it was refunded",
        "pi_3 captured 100.03 EUR and was refunded",
    ];
    assert_eq!(shop.texts(told).await, texts);
    plant(&mut shop, &[rows[1].clone(), rows[3].clone()]).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(2), "review sibling_row", "the customer paid twice, but for 3.00");
    assert_eq!(ran.verdict(4), "succeeded captured", "all of the first was given back");
    shop.check(false).await;
}

/// What it paid minutes ago the search may not know yet.
async fn a_sibling_that_was_given_up_just_now_is_listed(engine: Engine) {
    let mut shop = Shop::open(engine).await;
    shop.background(60).await;
    shop.sandbox.behave(|behaviour| behaviour.search_lag_secs = 600);
    let given_up = Payment { status: "failed", age: 180, attempted: Some(120), ..of(1, "A", 0) };
    shop.plant(vec![given_up.captured()]);
    shop.insert(&[given_up, of(2, "A", 0)]).await;
    shop.run_until_proven().await;
    assert_eq!(shop.open_cases().await, ["2 sibling_row"]);
    assert_eq!(shop.count("tieout_handbacks").await, 0);
    shop.check(false).await;
}

/// A checkout makes the intent, and the row when the customer pays.
async fn a_sibling_whose_payment_began_before_its_row_is_seen(engine: Engine) {
    for sent in [120, 35 * 60] {
        let mut shop = Shop::open(engine).await;
        shop.background(60).await;
        let given_up =
            Payment { status: "failed", age: sent + 60, attempted: Some(sent), ..of(1, "A", 0) };
        let begun = tieout_now() - given_up.age - 10 * 60;
        shop.plant(vec![given_up.captured().created_at(begun)]);
        shop.insert(&[given_up, of(2, "A", 0)]).await;
        shop.run_until_proven().await;
        assert_eq!(shop.open_cases().await, ["2 sibling_row"], "sent {sent} s ago");
        assert_eq!(shop.count("tieout_handbacks").await, 0);
        shop.check(false).await;
    }
}

/// Its call may still arrive, or its customer may still confirm it.
async fn a_sibling_that_may_still_be_paid_is_waited_for(engine: Engine) {
    let mut shop = Shop::open(engine).await;
    shop.background(60).await;
    let failed = |id, order| Payment { status: "failed", ..of(id, order, 0) };
    // By a clock that is a minute ahead.
    let just_now = Payment { age: 180, attempted: Some(-60), ..failed(1, "A") };
    let asks = failed(3, "B");
    shop.plant(vec![asks.captured().standing(Situation::RequiresAction)]);
    shop.insert(&[just_now, asks, of(2, "A", 0), of(4, "B", 0)]).await;
    for _look in 0..4 {
        shop.a_span_passes().await;
        shop.run().await;
    }
    let waits = "select key || ' ' || last_reason from tieout_checks order by key";
    assert_eq!(shop.texts(waits).await, ["2 sibling_pending", "4 sibling_pending"]);
    assert_eq!(shop.count("tieout_handbacks").await, 0);
    shop.sandbox.move_to("pi_3", Situation::Succeeded).unwrap();
    shop.a_span_passes().await;
    shop.run().await;
    assert_eq!(shop.open_cases().await, ["4 sibling_row"]);
    shop.check(false).await;
}

/// An error is no answer, about a sibling as little as about the row itself: it is told, and ends
/// no hand-back.
async fn without_an_answer_about_a_sibling_nobody_is_handed_back(engine: Engine) {
    let words = Words::default().policy("watch", "[\"1s\", \"2s\", \"1h\"]");
    let mut shop = Shop::open_with(engine, words).await;
    shop.background(60).await;
    let given_up = Payment { status: "failed", age: 90 * 60, ..of(2, "A", 0) };
    shop.insert(&[of(1, "A", 9), given_up]).await;
    let broken = FaultRule::on(
        Route::SearchIntents,
        Action::Status { code: 503, retry_after: RetryAfter::Absent, reason: None },
    );
    let matches = Matches { mentions: Some("pay_2".to_owned()), ..broken.matches.clone() };
    let broken = FaultRule { matches, ..broken };
    shop.sandbox.fault(broken.clone());
    for _look in 0..4 {
        shop.a_span_passes().await;
        shop.run().await;
    }
    let last = "select last_reason from tieout_checks where key = '1'";
    assert_eq!(shop.texts(last).await, ["psp_unavailable"]);
    assert_eq!(shop.count("tieout_handbacks").await, 0);
    shop.sandbox.clear_faults();
    shop.run_until_proven().await;
    assert_eq!(shop.texts(OPEN).await, ["1"]);
    shop.sandbox.fault(broken);
    shop.a_span_passes().await;
    assert_eq!(shop.run().await.ended(3).verdict(1), "wait psp_unavailable");
    assert_eq!(shop.texts(OPEN).await, ["1"], "an error takes nothing from anybody");
    shop.check(false).await;
}

/// Row 1 is handed back beside row 2, which the application gave up and nothing is known of.
async fn handed_back_beside_one_given_up(engine: Engine) -> (Shop, Payment) {
    let words = Words::default().policy("watch", "[\"1s\", \"2s\", \"1h\"]");
    let mut shop = Shop::open_with(engine, words).await;
    shop.background(60).await;
    let given_up = Payment { status: "failed", ..of(2, "A", 0) };
    shop.insert(&[of(1, "A", 9), given_up.clone()]).await;
    shop.run_until_proven().await;
    assert_eq!(shop.texts(OPEN).await, ["1"]);
    (shop, given_up)
}

/// While nobody came for a hand-back, its watch looks at the other attempts of the payment, too.
async fn a_hand_back_ends_as_a_sibling_that_was_given_up_is_paid(engine: Engine) {
    let (mut shop, given_up) = handed_back_beside_one_given_up(engine).await;
    // A watch begins with the row as tieout left it.
    assert_eq!(shop.count("tieout_checks where fingerprint_seen_at <= watch_from").await, 1);
    shop.plant(vec![given_up.captured()]);
    shop.a_span_passes().await;
    assert_eq!(shop.run().await.ended(0).verdict(1), "review sibling_row");
    assert_eq!(shop.texts(OPEN).await, Vec::<String>::new());
    let told = "handed back (hand-back 1), and row 2 with the same natural key was paid at the \
                PSP, whatever its status says: nobody may charge this one";
    assert_eq!(shop.texts(WHY).await, [told]);
    assert_eq!([shop.status(1).await, shop.status(2).await], ["retry", "failed"]);
    shop.check(false).await;
}

/// Also when somebody should have come for it by then.
async fn a_late_hand_back_ends_as_a_sibling_is_paid(engine: Engine) {
    let (mut shop, given_up) = handed_back_beside_one_given_up(engine).await;
    shop.plant(vec![given_up.captured()]);
    let long_ago = at_text(tieout_now() - 25 * 3_600);
    shop.raw.execute(&format!("update tieout_handbacks set at = '{long_ago}'")).await;
    shop.due_now().await;
    assert_eq!(shop.run().await.ended(0).verdict(1), "review sibling_row");
    assert_eq!(shop.texts(OPEN).await, Vec::<String>::new());
    shop.check(false).await;
}
