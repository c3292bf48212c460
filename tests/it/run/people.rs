//! Decisions by people, from the proposal to the row: what is shown is what is approved, the PSP is
//! asked again, and whatever stands against a decision stops it.

use std::collections::BTreeMap;

use serde_json::Value;
use tieout::sandbox::faults::{Action, FaultRule};
use tieout::sandbox::seeds::{Seed, SeedKind};
use tieout::sandbox::situations::Situation;

use super::files::{at_bank, bring, camt, credit, with_bank};
use super::given_back::braintree;
use super::shop::{Engine, Payment, Ran, Shop, Words, at_text, on_both_databases, tieout_now};
use crate::support::events;
use crate::support::postgres::login_role;
use crate::support::terminal::{answer, terminal};

on_both_databases!(
    a_duplicate_is_marked_by_the_object_that_was_named,
    what_people_ended_comes_back_with_news_alone,
    what_people_gave_up_is_no_news_as_it_was,
    what_was_not_seen_is_not_approved,
    a_psp_that_is_down_keeps_the_approval_for_the_next_run,
    money_that_appeared_stops_a_new_attempt,
    a_row_that_gave_up_is_handed_back_by_a_person,
    an_end_by_a_person_is_undone_by_another_decision,
    an_undo_says_that_the_row_keeps_its_reference,
    a_success_by_another_object_says_that_the_row_keeps_its_own,
    a_success_by_the_one_object_that_was_captured_says_so_too,
    an_undo_says_nothing_of_a_reference_that_nobody_wrote,
    a_hand_back_that_nobody_could_take_is_none,
    what_ends_a_case_ends_what_is_proposed_of_it,
    two_approve_at_once_and_one_of_them_does,
    what_was_approved_is_taken_back_before_a_run_does_it,
    two_reject_at_once_and_one_of_them_does,
    no_sentence_looks_like_another_entry,
    cases_of_time_are_looked_at_again_and_close_only_to_a_success,
    the_daily_look_asks_for_what_a_case_shows,
    one_alone_is_told_that_no_api_can_answer,
    a_refused_approval_takes_no_line_from_the_next_run,
    a_proposal_keeps_no_row_from_being_looked_at,
    what_went_back_since_is_not_closed_over,
    many_cases_are_given_away_and_told_of_at_once,
    a_case_that_is_left_leaves_its_row,
    nobody_decides_what_needs_two_alone,
    a_configuration_of_ones_own_makes_nobody_two,
    a_status_of_somebody_elses_is_theirs,
    a_mass_of_hand_backs_by_people_is_none,
    what_was_sent_to_review_is_decided_there,
    what_a_person_holds_is_not_decided,
    a_case_is_reviewed_by_keyboard,
    a_row_in_review_is_reviewed_by_keyboard,
    what_is_suggested_is_what_helps,
    what_stands_is_kept_and_what_was_refunded_is_over,
    what_has_nearly_the_tag_is_shown,
    what_the_psp_forgot_is_a_persons_to_judge,
    what_the_psp_forgot_is_given_up_by_two,
    what_the_psp_forgot_is_seen_before_it_is_given_up,
);

/// One person is enough for everything.
pub const ONE_IS_ENOUGH: &str = "[cases]\nfour_eyes_from = { \"*\" = \"never\" }\n";

fn words() -> Words {
    Words { more: ONE_IS_ENOUGH.to_owned(), ..Words::default() }
}

/// Gives the mapping a `review` value from now on.
fn hold(shop: &Shop) {
    let path = shop.folder().join("tieout.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let held = text.replace("retryable = \"retry\"", "retryable = \"retry\", review = \"held\"");
    assert_ne!(held, text);
    std::fs::write(&path, held).unwrap();
}

/// A payment that was captured twice, and its case.
async fn twice(engine: Engine, words: Words) -> Shop {
    twice_in(Shop::open_with(engine, words).await).await
}

async fn twice_in(shop: Shop) -> Shop {
    captured_twice(shop, Payment::stuck(1)).await
}

async fn captured_twice(mut shop: Shop, payment: Payment) -> Shop {
    shop.background(60).await;
    shop.insert(std::slice::from_ref(&payment)).await;
    let again = Seed { id: Some("pi_11".to_owned()), ..payment.captured() };
    shop.plant(vec![payment.captured(), again]);
    assert_eq!(shop.run().await.ended(0).verdict(1), "review duplicate_capture");
    shop
}

/// A payment that the PSP knows nothing of, given up at once: a person decides.
async fn gave_up(engine: Engine) -> Shop {
    let mut shop = Shop::open_with(engine, words().policy("max_retries", "0")).await;
    shop.background(60).await;
    shop.insert(&[Payment::stuck(1)]).await;
    for _ in 0..6 {
        if shop.run().await.ended(0).verdict(1).starts_with("review") {
            break;
        }
        shop.a_span_passes().await;
    }
    assert_eq!(shop.open_cases().await, ["1 gave_up"]);
    shop
}

async fn what_is_suggested_is_what_helps(engine: Engine) {
    let mut shop = Shop::open_with(engine, words()).await;
    shop.background(60).await;
    let at = |id: i64, situation| Payment::stuck(id).captured().standing(situation);
    let other = Seed { moved_amount: Some(1), ..at(2, Situation::Succeeded) };
    let open = Seed { id: Some("pi_44".to_owned()), ..at(4, Situation::Processing) };
    let seeds = [
        at(1, Situation::RequiresCapture),
        other,
        at(3, Situation::Disputed),
        at(4, Situation::Succeeded),
    ];
    shop.insert(&(1..=4).map(Payment::stuck).collect::<Vec<_>>()).await;
    shop.plant(seeds.into_iter().chain([open]).collect());
    let ran = shop.run().await;
    for (id, reason, words) in [
        (
            1,
            "authorized_uncaptured",
            "capture or cancel it at the PSP before the authorisation ends",
        ),
        (2, "amount_mismatch", "find out which amount is right; correct the row, or give the"),
        (3, "disputed", "answer the dispute at the PSP; decide the row when it is over"),
        (4, "duplicate_live", "cancel at the PSP what can still capture"),
    ] {
        assert_eq!(ran.verdict(id), format!("review {reason}"), "{}", ran.stdout);
        let number =
            format!("select cast(number as text) from tieout_cases where subject = '{id}'");
        let case = shop.texts(&number).await.remove(0);
        let shown = shop.tieout(&["cases", "show", &case]).await.ended(0).stdout;
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(shown.contains(&format!("suggested {words}")), "{reason}: {shown}");
        let look = format!(", then tieout run --id {id} ");
        assert_eq!(shown.contains(&look), reason != "disputed", "{reason}: {shown}");
    }
}

/// Of two captures the one that the row stores is kept, and the other one is not refunded twice.
async fn what_stands_is_kept_and_what_was_refunded_is_over(engine: Engine) {
    let mut shop = Shop::open_with(engine, words()).await;
    shop.background(60).await;
    let payment = Payment::stuck(1);
    shop.insert(std::slice::from_ref(&payment)).await;
    let first = Seed { charge_id: Some("ch_1".to_owned()), ..payment.captured() };
    let again =
        Seed { id: Some("pi_11".to_owned()), charge_id: Some("ch_11".to_owned()), ..first.clone() };
    shop.plant(vec![first, again]);
    assert_eq!(shop.run().await.ended(0).verdict(1), "review duplicate_capture");
    let last = "tieout cases propose C-1 --as succeeded --object";
    let shown = shown_of_one(&shop).await;
    let refund = format!("suggested refund pi_11 at the PSP, then {last} pi_1 --why TEXT");
    assert!(shown.contains(&refund), "the oldest, where the row stores none: {shown}");
    shop.raw.execute("update payments set psp_ref = 'pi_11' where id = 1").await;
    assert_eq!(shop.run_with(&["--id", "1"]).await.ended(0).verdict(1), "review duplicate_capture");
    let shown = shown_of_one(&shop).await;
    let refund = format!("suggested refund pi_1 at the PSP, then {last} pi_11 --why TEXT");
    assert!(shown.contains(&refund), "{shown}");
    assert!(!shown.contains("refunded 100.01"), "{shown}");
    // Somebody does what is suggested, and has it looked at again.
    shop.plant(vec![Seed {
        kind: SeedKind::Refund,
        id: Some("re_1".to_owned()),
        charge: Some("ch_1".to_owned()),
        amount: 10_001,
        currency: "eur".to_owned(),
        ..Seed::default()
    }]);
    assert_eq!(shop.run_with(&["--id", "1"]).await.ended(0).verdict(1), "review duplicate_capture");
    let shown = shown_of_one(&shop).await;
    let confirm = format!("suggested pi_1 was given back whole; {last} pi_11 --why TEXT");
    assert!(shown.contains(&confirm), "{shown}");
    assert!(shown.contains("money captured captured refunded 100.01 EUR – created"), "{shown}");
    assert!(shown.contains("captured 100.01 EUR, refunded 100.01 EUR created"), "{shown}");
    shop.check(false).await;
}

async fn what_has_nearly_the_tag_is_shown(engine: Engine) {
    let mut shop = Shop::open_with(engine, words()).await;
    shop.background(60).await;
    shop.insert(&[Payment::stuck(1)]).await;
    let metadata = BTreeMap::from([("order_id".to_owned(), "PAY_1".to_owned())]);
    shop.plant(vec![Seed { metadata, ..Payment::stuck(1).captured() }]);
    assert_eq!(shop.run().await.ended(0).verdict(1), "review tag_near_miss");
    let shown = shown_of_one(&shop).await;
    let near = "pi_1 has nearly the tag: PAY_1; succeeded (captured), captured 100.01 EUR, created";
    assert!(shown.contains(near), "{shown}");
    // That it is not the row's own one person alone does not say, whatever the amount.
    let again = ["cases", "propose", "C-1", "--as", "retryable", "--why", "not ours"];
    if engine == Engine::Sqlite {
        let why = "needs two people, since pi_1 carries the tag `PAY_1`";
        return no_two_are_told_apart(&shop, &again, why).await;
    }
    let said = shop.tieout(&[&again[..], &["--dry-run"]].concat()).await.ended(0).stdout;
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("; another person approves it, since pi_1 carries the tag `PAY_1`"),
        "{said}"
    );
    confirmed(&shop, &again).await.ended(0);
    assert_eq!(shop.count("tieout_proposals where four_eyes").await, 1);
    shop.check(false).await;
}

/// What two people must say is proposed where two people are told apart: a file knows no users, and
/// what its command line proposes the page lets nobody approve.
async fn no_two_are_told_apart(shop: &Shop, propose: &[&str], why: &str) {
    let ran = shop.tieout(&[propose, &["--dry-run"]].concat()).await.ended(2);
    let said = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [why, "an SQLite file knows no users", "on the page of `tieout serve`"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(!said.contains("four_eyes_from"), "no amount is what it needs two for: {said}");
    assert_eq!(shop.count("tieout_proposals").await, 0);
}

/// The screen of the first case, its words apart by one blank each.
async fn shown_of_one(shop: &Shop) -> String {
    let shown = shop.tieout(&["cases", "show", "C-1"]).await.ended(0).stdout;
    shown.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What the preview of a command shows, by its hash.
async fn seen(shop: &Shop, args: &[&str]) -> String {
    let ran = shop.tieout(&[args, &["--dry-run", "--json"]].concat()).await.ended(0);
    events::check(&ran.stdout);
    let shown = ran.of_type("cases_preview");
    assert_eq!(shown.len(), 1, "{}", ran.stdout);
    shown[0]["seen"].as_str().unwrap().to_owned()
}

/// The command with the yes to what its preview shows.
pub async fn confirmed(shop: &Shop, args: &[&str]) -> Ran {
    let seen = seen(shop, args).await;
    shop.tieout(&[args, &["--yes", "--seen", &seen, "--json"]].concat()).await
}

async fn proposals(shop: &Shop) -> Vec<String> {
    let sql = "select what || ' ' || state || ' ' || coalesce(ended_why, '-') \
               from tieout_proposals order by number";
    shop.texts(sql).await
}

const CONFIRMED: &[&str] =
    &["cases", "propose", "C-1", "--as", "succeeded", "--object", "pi_1", "--why", "confirmed"];
const APPROVE: &[&str] = &["cases", "approve", "C-1", "--why", "checked"];

async fn a_duplicate_is_marked_by_the_object_that_was_named(engine: Engine) {
    let shop = twice(engine, words()).await;
    // Without its object it would be a guess, and without a yes to what was seen it is nothing.
    shop.tieout(&[CONFIRMED, &["--yes"]].concat()).await.ended(2);
    shop.tieout(&[CONFIRMED, &["--yes", "--seen", "0123456789abcdef"]].concat()).await.ended(2);
    assert_eq!(shop.count("tieout_proposals").await, 0);
    confirmed(&shop, CONFIRMED).await.ended(0);
    let shown = shop.tieout(&["cases", "show", "C-1"]).await.ended(0).stdout;
    for words in [
        "objects   [1] pi_1",
        "suggested refund ",
        "not done  no end was written",
        "proposed  succeeded with pi_1 by ",
        "tieout cases approve C-1 --why TEXT --yes --seen ",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    // A document is named by its hash, and nothing else of it is kept.
    std::fs::write(shop.folder().join("mail.txt"), "abc").unwrap();
    let comment = ["cases", "comment", "C-1", "--why", "called", "--attach", "mail.txt"];
    shop.tieout(&comment).await.ended(0);
    let text = shop.texts("select text from tieout_case_notes where kind = 'comment'").await;
    let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(text, [format!("called (attached mail.txt, sha256 {hash})")]);
    // The history is told in the order of its happening.
    let shown = shop.tieout(&["cases", "show", "C-1"]).await.ended(0).stdout;
    let place = |words: &str| shown.find(words).unwrap_or_else(|| panic!("{words}: {shown}"));
    let order = ["opened by run", "last decided by run", "proposed by", "comment by"].map(place);
    assert!(order.is_sorted(), "{order:?}: {shown}");
    // A second proposal beside it is none.
    shop.tieout(&[CONFIRMED, &["--dry-run"]].concat()).await.ended(3);
    assert_eq!(shop.status(1).await, "processing", "nothing happens before it is approved");
    let ran = confirmed(&shop, APPROVE).await.ended(0);
    events::check(&ran.stdout);
    assert_eq!(ran.of_type("proposal")[0]["state"], "carried_out", "{}", ran.stdout);
    assert_eq!(shop.status(1).await, "paid");
    assert_eq!(shop.texts("select psp_ref from payments where id = 1").await, ["pi_1"]);
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    let ended = shop.texts("select resolution from tieout_cases").await;
    assert!(ended[0].starts_with("succeeded by "), "{ended:?}");
    assert!(ended[0].ends_with(": confirmed"), "{ended:?}");
    let record = "select outcome || ' ' || reason || ' ' || applied from tieout_journal \
                  where key = '1' and reason = 'by_person'";
    assert_eq!(shop.texts(record).await, ["succeeded by_person yes"]);
    assert_eq!(proposals(&shop).await, ["succeeded carried_out carried out"]);
    let kinds = shop.texts("select kind from tieout_case_notes order by id").await;
    assert_eq!(kinds, ["proposed", "comment", "approved", "carried_out"]);
    shop.check(false).await;
}

/// As the case suggests: the other one is refunded, and the one that stays is named.
async fn what_people_ended_comes_back_with_news_alone(engine: Engine) {
    let shop = twice(engine, words()).await;
    shop.sandbox.move_to("pi_11", Situation::Refunded).unwrap();
    let other: Vec<&str> =
        CONFIRMED.iter().map(|word| if *word == "pi_1" { "pi_11" } else { word }).collect();
    confirmed(&shop, &other).await.ended(0);
    confirmed(&shop, APPROVE).await.ended(3);
    let states = proposals(&shop).await;
    assert!(states[0].contains(" refused nothing is left of pi_11: it went back"), "{states:?}");
    assert!(states[0].ends_with(" and pi_1 stands; name that one by --object"), "{states:?}");
    confirmed(&shop, CONFIRMED).await.ended(0);
    confirmed(&shop, APPROVE).await.ended(0);
    assert_eq!(shop.status(1).await, "paid");
    shop.due_now().await;
    let ran = shop.run().await.ended(0);
    assert_eq!(ran.verdict(1), "wait watched");
    let text = ran.of_type("verdict")[0]["text"].as_str().unwrap().to_owned();
    assert!(text.contains("as people knew who decided the row; next look "), "{text}");
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    shop.sandbox.move_to("pi_1", Situation::Disputed).unwrap();
    shop.due_now().await;
    assert!(shop.run().await.verdict(1).starts_with("review "), "that is news");
    shop.check(false).await;
}

async fn what_people_gave_up_is_no_news_as_it_was(engine: Engine) {
    let mut shop = Shop::open_with(engine, words()).await;
    shop.background(60).await;
    let payment = Payment::stuck(1);
    shop.insert(std::slice::from_ref(&payment)).await;
    shop.plant(vec![payment.captured().standing(Situation::Refunded)]);
    assert_eq!(shop.run().await.ended(0).verdict(1), "review refunded");
    let failed = ["cases", "propose", "C-1", "--as", "failed", "--why", "given back"];
    confirmed(&shop, &failed).await.ended(0);
    // Before that its call can still arrive.
    shop.a_span_passes().await;
    confirmed(&shop, APPROVE).await.ended(0);
    assert_eq!(shop.status(1).await, "failed");
    shop.due_now().await;
    assert_eq!(shop.run().await.ended(0).verdict(1), "wait watched");
    // Paid once more is another matter.
    shop.plant(vec![Seed { id: Some("pi_11".to_owned()), ..payment.captured() }]);
    shop.due_now().await;
    assert_eq!(shop.run().await.ended(0).verdict(1), "review late_contradiction");
    shop.check(false).await;
}

/// Whoever decides writes into the proposal whether it needs two people, by the configuration that
/// they have; who carries it out goes by their own.
async fn a_configuration_of_ones_own_makes_nobody_two(engine: Engine) {
    let shop = twice(engine, words()).await;
    confirmed(&shop, CONFIRMED).await.ended(0);
    confirmed(&shop, &[APPROVE, &["--later"]].concat()).await.ended(0);
    assert_eq!(proposals(&shop).await, ["succeeded approved -"]);
    let path = shop.folder().join("tieout.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let strict = text.replace(ONE_IS_ENOUGH, "");
    assert_ne!(strict, text);
    std::fs::write(&path, strict).unwrap();
    let ran = shop.run().await.ended(0);
    events::check(&ran.stdout);
    assert_eq!(ran.of_type("run_end")[0]["approvals_refused"], 1, "{}", ran.stdout);
    assert_eq!(shop.run().await.of_type("run_end")[0]["approvals_refused"], Value::Null);
    assert_eq!(shop.status(1).await, "processing", "one person alone decided");
    let states = proposals(&shop).await;
    assert!(states[0].starts_with("succeeded refused "), "{states:?}");
    assert!(states[0].contains("alone proposed and approved it"), "{states:?}");
    assert_eq!(shop.open_cases().await, ["1 duplicate_capture"]);
    shop.check(false).await;
}

async fn what_was_not_seen_is_not_approved(engine: Engine) {
    let shop = twice(engine, words()).await;
    confirmed(&shop, CONFIRMED).await.ended(0);
    let before = seen(&shop, APPROVE).await;
    // Somebody looks again: the case shows new evidence, which nobody proposed anything of.
    assert_eq!(shop.run_with(&["--id", "1"]).await.ended(0).verdict(1), "review duplicate_capture");
    let words = [APPROVE, &["--yes", "--seen", &before]].concat();
    let said = "proposed of other evidence than the case shows now: turn it down";
    for words in [words, [APPROVE, &["--dry-run"]].concat()] {
        let ran = shop.tieout(&words).await.ended(2);
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
    let shown = shop.tieout(&["cases", "show", "C-1"]).await.ended(0).stdout;
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(said), "{shown}");
    assert!(!shown.contains("cases approve"), "{shown}");
    let again = shop.tieout(&[CONFIRMED, &["--dry-run"]].concat()).await.ended(3);
    assert_eq!(again.stdout, "", "a preview counts what can be done");
    assert!(again.stderr.contains("tieout cases reject C-1 --why TEXT"), "{}", again.stderr);
    assert_eq!(shop.count("tieout_proposals where state = 'open'").await, 1);
    assert_eq!(shop.status(1).await, "processing");
    // It is taken back, and proposed of what the case shows now.
    shop.tieout(&["cases", "reject", "C-1", "--why", "anew", "--yes"]).await.ended(0);
    confirmed(&shop, CONFIRMED).await.ended(0);
    confirmed(&shop, APPROVE).await.ended(0);
    assert_eq!(shop.status(1).await, "paid");
    let states = proposals(&shop).await;
    assert_eq!(states, ["succeeded withdrawn anew", "succeeded carried_out carried out"]);
    shop.check(false).await;
}

async fn a_psp_that_is_down_keeps_the_approval_for_the_next_run(engine: Engine) {
    let shop = twice(engine, words()).await;
    confirmed(&shop, CONFIRMED).await.ended(0);
    shop.sandbox.fault(FaultRule::always(Action::Reset));
    let ran = confirmed(&shop, APPROVE).await.ended(3);
    assert!(ran.stderr.contains("approved and not carried out"), "{}", ran.stderr);
    assert_eq!(shop.status(1).await, "processing");
    assert_eq!(proposals(&shop).await, ["succeeded approved -"]);
    assert_eq!(shop.open_cases().await, ["1 duplicate_capture"]);
    shop.check(false).await;
    shop.sandbox.clear_faults();
    shop.run().await.ended(0);
    assert_eq!(shop.status(1).await, "paid");
    assert_eq!(proposals(&shop).await, ["succeeded carried_out carried out"]);
    shop.check(false).await;
}

const AGAIN: &[&str] = &["cases", "propose", "C-1", "--as", "retryable", "--why", "never sent"];

async fn money_that_appeared_stops_a_new_attempt(engine: Engine) {
    let mut shop = gave_up(engine).await;
    confirmed(&shop, AGAIN).await.ended(0);
    shop.plant(vec![Payment::stuck(1).captured()]);
    let evidence = "select evidence_sha256 from tieout_cases where number = 1";
    let (before, records) = (shop.texts(evidence).await, shop.count("tieout_journal").await);
    let ran = confirmed(&shop, APPROVE).await.ended(3);
    assert_eq!(ran.of_type("proposal")[0]["state"], "refused", "{}", ran.stdout);
    let states = proposals(&shop).await;
    assert!(states[0].contains("pi_1 captured"), "{states:?}");
    assert_eq!(shop.count("tieout_handbacks").await, 0);
    assert_eq!(shop.status(1).await, "processing");
    assert_eq!(shop.open_cases().await, ["1 gave_up"]);
    assert_eq!(shop.captures().get("pay_1"), Some(&1));
    // What was found is what the case shows, and the journal and `explain` tell it.
    assert_ne!(shop.texts(evidence).await, before);
    assert_eq!(shop.count("tieout_journal").await, records + 1);
    for words in [&["cases", "show", "C-1"][..], &["explain", "1"]] {
        let shown = shop.tieout(words).await.ended(0).stdout;
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(shown.contains("proposal 1 was refused: pi_1 captured"), "{shown}");
        assert!(shown.contains("a run would decide succeeded"), "{shown}");
    }
    shop.check(false).await;
    // It is there for the next look.
    assert_eq!(shop.run_with(&["--id", "1"]).await.ended(0).verdict(1), "succeeded captured");
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    shop.check(false).await;
}

async fn a_row_that_gave_up_is_handed_back_by_a_person(engine: Engine) {
    let shop = gave_up(engine).await;
    // Nothing succeeded: that nobody can say.
    let wrong = ["cases", "propose", "C-1", "--as", "succeeded", "--why", "surely"];
    confirmed(&shop, &wrong).await.ended(0);
    confirmed(&shop, APPROVE).await.ended(3);
    assert_eq!(shop.status(1).await, "processing");
    confirmed(&shop, AGAIN).await.ended(0);
    shop.a_span_passes().await;
    confirmed(&shop, APPROVE).await.ended(0);
    assert_eq!(shop.status(1).await, "retry");
    let hand_backs = "select key || ' ' || permit || ' ' || retry from tieout_handbacks";
    assert_eq!(shop.texts(hand_backs).await, ["1 person same_key"]);
    assert_eq!(shop.texts("select state from tieout_checks where key = '1'").await, ["watch"]);
    let last = "select payload from tieout_outbox order by version desc limit 1";
    let event = shop.raw.one(last).await;
    let event: Value = serde_json::from_str(&event).unwrap();
    assert_eq!(event["type"], "transaction.retryable");
    assert_eq!(event["reason"], "by_person");
    shop.check(false).await;
}

/// A row that gave up, and that a person called failed by mistake.
async fn called_failed(engine: Engine) -> Shop {
    let shop = gave_up(engine).await;
    let failed = ["cases", "propose", "C-1", "--as", "failed", "--why", "mistaken"];
    confirmed(&shop, &failed).await.ended(0);
    shop.a_span_passes().await;
    confirmed(&shop, APPROVE).await.ended(0);
    assert_eq!(shop.status(1).await, "failed");
    shop
}

async fn an_end_by_a_person_is_undone_by_another_decision(engine: Engine) {
    let shop = called_failed(engine).await;
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    // The case is closed: what takes the decision's place is a decision of its own.
    shop.tieout(&[AGAIN, &["--dry-run"]].concat()).await.ended(2);
    let left = ["cases", "undo", "C-1", "--as", "left", "--why", "x", "--dry-run"];
    let ran = shop.tieout(&left).await.ended(2);
    assert!(ran.stderr.contains("to leave the row as it is undoes nothing"), "{}", ran.stderr);
    // Whoever names it may say something of it; filters mean open cases.
    let comment = ["cases", "comment", "--table", "payments", "--why", "x", "--yes"];
    let ran = shop.tieout(&comment).await.ended(2);
    assert!(ran.stderr.contains("no case is meant by that"), "{}", ran.stderr);
    let comment = ["cases", "comment", "C-1", "--why", "x", "--yes"];
    let ran = shop.tieout(&[&comment[..], &["--seen", "000000000000"]].concat()).await.ended(2);
    assert!(ran.stderr.contains("something else by now"), "{}", ran.stderr);
    shop.tieout(&comment).await.ended(0);
    let undo = ["cases", "undo", "C-1", "--as", "retryable", "--why", "it was mistaken"];
    confirmed(&shop, &undo).await.ended(0);
    shop.a_span_passes().await;
    confirmed(&shop, APPROVE).await.ended(0);
    assert_eq!(shop.status(1).await, "retry");
    assert_eq!(shop.texts("select permit from tieout_handbacks").await, ["person"]);
    let states = proposals(&shop).await;
    assert_eq!(states, ["failed carried_out carried out", "retryable carried_out carried out"]);
    let records = shop.texts("select outcome from tieout_journal where reason = 'by_person'").await;
    assert_eq!(records.len(), 2, "{records:?}");
    // Whoever reads how it ended reads what took the place of that; the record stays as it was.
    let list = ["cases", "list", "--all", "--json"];
    for args in [&["cases", "show", "C-1"][..], &["cases", "export", "--all"], &list] {
        let told = shop.tieout(args).await.ended(0).stdout;
        let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains("; undone by "), "{told}");
        assert!(told.contains("): retryable: it was mistaken"), "{told}");
    }
    let kept = shop.texts("select resolution from tieout_cases").await;
    assert!(kept[0].ends_with(": mistaken") && !kept[0].contains("undone"), "{kept:?}");
    // What undid it is undone as well.
    let undo = ["cases", "undo", "C-1", "--as", "failed", "--why", "it was not"];
    confirmed(&shop, &undo).await.ended(0);
    shop.a_span_passes().await;
    confirmed(&shop, APPROVE).await.ended(0);
    assert_eq!(shop.status(1).await, "failed");
    shop.check(false).await;
}

/// The column of the reference is written only where it is empty: whoever decides that another
/// object is the one is told so before and after it.
async fn an_undo_says_that_the_row_keeps_its_reference(engine: Engine) {
    let shop = twice(engine, words()).await;
    confirmed(&shop, CONFIRMED).await.ended(0);
    confirmed(&shop, APPROVE).await.ended(0);
    assert_eq!(shop.texts("select psp_ref from payments where id = 1").await, ["pi_1"]);
    let undo =
        ["cases", "undo", "C-1", "--as", "succeeded", "--object", "pi_11", "--why", "that one"];
    let keeps = "where the row has a reference in `psp_ref` already, it keeps that one";
    let name = "where it shall name pi_11 and does not, write that into the row yourself";
    let said = shop.tieout(&[&undo[..], &["--dry-run"]].concat()).await.ended(0).stdout;
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(keeps) && said.contains(name), "{said}");
    confirmed(&shop, &undo).await.ended(0);
    let ran = confirmed(&shop, APPROVE).await.ended(0);
    assert_eq!(ran.of_type("proposal")[0]["state"], "carried_out", "{}", ran.stdout);
    // As it is approved, and once it is carried out.
    assert_eq!(ran.stderr.matches(keeps).count(), 2, "{}", ran.stderr);
    assert!(ran.stderr.contains(name), "{}", ran.stderr);
    assert_eq!(shop.texts("select psp_ref from payments where id = 1").await, ["pi_1"]);
    let shown = shown_of_one(&shop).await;
    assert!(shown.contains(keeps) && shown.contains(name), "{shown}");
    // To what it names already, nothing is left.
    let back = ["cases", "undo", "C-1", "--as", "succeeded", "--object", "pi_1", "--why", "back"];
    let said = shop.tieout(&[&back[..], &["--dry-run"]].concat()).await.ended(0).stdout;
    assert!(!said.contains("has a reference"), "{said}");
    // The run that carries one out says so, too, once.
    confirmed(&shop, &undo).await.ended(0);
    confirmed(&shop, &[APPROVE, &["--later"]].concat()).await.ended(0);
    let told = shop.tieout(&["run", "-v"]).await.ended(0).stdout;
    assert!(told.contains(&format!("kept     C-1: {keeps}")), "{told}");
    assert!(told.contains("where it shall name pi_11 and does not"), "{told}");
    let told = shop.tieout(&["run", "-v"]).await.ended(0).stdout;
    assert!(!told.contains("kept  "), "{told}");
    // Of another end there is nothing to say.
    let failed = ["cases", "undo", "C-1", "--as", "failed", "--why", "x", "--dry-run"];
    let said = shop.tieout(&failed).await.ended(0).stdout;
    assert!(!said.contains("has a reference"), "{said}");
    shop.check(false).await;
}

/// A payment was refunded and the other one stays: the row names the one that it stored itself.
async fn a_success_by_another_object_says_that_the_row_keeps_its_own(engine: Engine) {
    let shop = Shop::open_with(engine, words()).await;
    let stored = Payment { psp_ref: Some("pi_1".to_owned()), ..Payment::stuck(1) };
    let shop = captured_twice(shop, stored).await;
    let keeps = "the row has pi_1 in `psp_ref`, and keeps it";
    let name = "where it shall name pi_11, write that into the row yourself";
    for (object, is_told) in [("pi_1", false), ("pi_11", true)] {
        let args = ["cases", "propose", "C-1", "--as", "succeeded", "--why", "x"];
        let object = ["--object", object, "--dry-run"];
        let said = shop.tieout(&[&args[..], &object].concat()).await.ended(0).stdout;
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(said.contains(keeps) && said.contains(name), is_told, "{said}");
    }
    let other =
        ["cases", "propose", "C-1", "--as", "succeeded", "--object", "pi_11", "--why", "that one"];
    confirmed(&shop, &other).await.ended(0);
    // It waits, and whoever looks at it is told.
    let shown = shown_of_one(&shop).await;
    assert!(shown.contains(keeps) && shown.contains(name), "{shown}");
    confirmed(&shop, &[APPROVE, &["--later"]].concat()).await.ended(0);
    let told = shop.tieout(&["run", "-v"]).await.ended(0).stdout;
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains(keeps) && told.contains(name), "{told}");
    assert_eq!(shop.texts("select psp_ref from payments where id = 1").await, ["pi_1"]);
    let shown = shown_of_one(&shop).await;
    assert!(shown.contains(keeps), "{shown}");
    shop.check(false).await;
}

/// Nobody names an object where the PSP captured but one: the row names another all the same, and
/// keeps it whether the mapping writes references or not.
async fn a_success_by_the_one_object_that_was_captured_says_so_too(engine: Engine) {
    for set in ["succeeded = { psp_ref = \"{psp_reference}\" }", ""] {
        let mut shop = Shop::open_with(engine, words()).await;
        change(&shop, "succeeded = { psp_ref = \"{psp_reference}\" }", set);
        shop.background(60).await;
        let stored = Payment { psp_ref: Some("pi_99".to_owned()), ..Payment::stuck(1) };
        shop.plant(vec![stored.captured()]);
        shop.insert(&[stored]).await;
        assert_eq!(shop.run().await.ended(0).verdict(1), "review reference_mismatch");
        let keeps = "the row has pi_99 in `psp_ref`, and keeps it";
        let name = "where it shall name pi_1, write that into the row yourself";
        let propose = ["cases", "propose", "C-1", "--as", "succeeded", "--why", "it is that one"];
        let said = shop.tieout(&[&propose[..], &["--dry-run"]].concat()).await.ended(0).stdout;
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(keeps) && said.contains(name), "{said}");
        confirmed(&shop, &propose).await.ended(0);
        let shown = shown_of_one(&shop).await;
        assert!(shown.contains(keeps) && shown.contains(name), "{shown}");
        let ran = confirmed(&shop, APPROVE).await.ended(0);
        assert!(ran.stderr.contains(keeps), "{}", ran.stderr);
        assert_eq!(shop.texts("select psp_ref from payments where id = 1").await, ["pi_99"]);
        shop.check(false).await;
    }
}

/// What was called failed has a reference where that end writes one and the PSP showed something.
async fn an_undo_says_nothing_of_a_reference_that_nobody_wrote(engine: Engine) {
    let undo = ["cases", "undo", "C-1", "--as", "succeeded", "--why", "it came", "--dry-run"];
    let shop = called_failed(engine).await;
    for writes in [false, true] {
        if writes {
            write_with_failure(&shop);
        }
        let said = shop.tieout(&undo).await.ended(0).stdout;
        assert!(!said.contains("has a reference"), "{writes}: {said}");
    }
    let mut shop = Shop::open_with(engine, words()).await;
    write_with_failure(&shop);
    shop.background(60).await;
    let payment = Payment::stuck(1);
    let seed = payment.captured().standing(Situation::Declined);
    shop.plant(vec![Seed { decline_code: Some("never_heard_of".to_owned()), ..seed }]);
    shop.insert(&[payment]).await;
    assert_eq!(shop.run().await.ended(0).verdict(1), "review decline_unknown");
    let failed = ["cases", "propose", "C-1", "--as", "failed", "--why", "mistaken"];
    confirmed(&shop, &failed).await.ended(0);
    shop.a_span_passes().await;
    confirmed(&shop, APPROVE).await.ended(0);
    assert_eq!(shop.texts("select psp_ref from payments where id = 1").await, ["pi_1"]);
    let said = shop.tieout(&undo).await.ended(0).stdout;
    assert!(said.contains("where the row has a reference in `psp_ref` already"), "{said}");
}

/// Writes the reference with a failure, too.
fn write_with_failure(shop: &Shop) {
    let set = "succeeded = { psp_ref = \"{psp_reference}\" }";
    change(shop, set, &format!("{set}\n{}", set.replace("succeeded", "failed")));
}

/// Puts other words into the shop's configuration.
fn change(shop: &Shop, from: &str, to: &str) {
    let path = shop.folder().join("tieout.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{text}");
    std::fs::write(&path, text.replace(from, to)).unwrap();
}

/// Nobody could approve it any more: it ends with its case, and the history says so.
async fn what_ends_a_case_ends_what_is_proposed_of_it(engine: Engine) {
    let mut shop = gave_up(engine).await;
    confirmed(&shop, AGAIN).await.ended(0);
    shop.plant(vec![Payment::stuck(1).captured()]);
    shop.tieout(&["cases", "kick", "C-1", "--why", "it is there"]).await.ended(0);
    assert_eq!(shop.status(1).await, "paid");
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    let run = shop.texts("select id from tieout_runs where command = 'kick'").await.join("");
    let why = format!("its case was ended by run {run} before anybody approved it");
    assert_eq!(proposals(&shop).await, [format!("retryable rejected {why}")]);
    let notes = "select kind || ' ' || text from tieout_case_notes order by id";
    let notes = shop.texts(notes).await;
    assert_eq!(notes[1..], [format!("rejected {why}")], "{notes:?}");
    let none = shop.tieout(&[APPROVE, &["--dry-run"]].concat()).await.ended(3);
    assert!(none.stderr.contains("nothing is proposed of these cases"), "{}", none.stderr);
    shop.check(false).await;
}

/// Without a retryable value the status stays as it is, and a worker that takes hand-backs by the
/// outbox takes those of rows that are processing.
async fn a_hand_back_that_nobody_could_take_is_none(engine: Engine) {
    let shop = called_failed(engine).await;
    let undo = ["cases", "undo", "C-1", "--as", "retryable", "--why", "it was mistaken"];
    confirmed(&shop, &undo).await.ended(0);
    let path = shop.folder().join("tieout.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let without = text
        .replace(", retryable = \"retry\"", "")
        .replace("status = \"status\"\n", "status = \"status\"\nchannel = \"outbox\"\n");
    assert_ne!(without, text);
    std::fs::write(&path, without).unwrap();
    let said = "its status is `failed`, and the mapping has no retryable value";
    confirmed(&shop, APPROVE).await.ended(3);
    let states = proposals(&shop).await;
    assert!(states[1].starts_with(&format!("retryable refused {said}")), "{states:?}");
    let ran = shop.tieout(&[&undo[..], &["--dry-run"]].concat()).await.ended(2);
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    assert_eq!(shop.count("tieout_proposals").await, 2);
    assert_eq!(shop.count("tieout_handbacks").await, 0);
    assert_eq!(shop.status(1).await, "failed");
    shop.check(false).await;
}

async fn two_approve_at_once_and_one_of_them_does(engine: Engine) {
    let shop = twice(engine, words()).await;
    confirmed(&shop, CONFIRMED).await.ended(0);
    let seen = seen(&shop, APPROVE).await;
    let words = [APPROVE, &["--yes", "--seen", &seen, "--later"]].concat();
    let (one, other) = tokio::join!(shop.tieout(&words), shop.tieout(&words));
    let mut codes = [one.code, other.code];
    codes.sort_unstable();
    assert_eq!(codes[0], Some(0), "{one:?} {other:?}");
    assert!(matches!(codes[1], Some(2 | 3)), "{one:?} {other:?}");
    assert_eq!(shop.count("tieout_case_notes where kind = 'approved'").await, 1);
    assert_eq!(shop.status(1).await, "processing", "--later leaves it to the next run");
    shop.run().await.ended(0);
    assert_eq!(shop.status(1).await, "paid");
    shop.check(false).await;
}

async fn what_was_approved_is_taken_back_before_a_run_does_it(engine: Engine) {
    let shop = twice(engine, words()).await;
    confirmed(&shop, CONFIRMED).await.ended(0);
    confirmed(&shop, &[APPROVE, &["--later"]].concat()).await.ended(0);
    // Of all that the filters mean, only what nobody approved.
    let reject = ["cases", "reject", "--reason", "duplicate_capture", "--why", "x", "--yes"];
    shop.tieout(&reject).await.ended(3);
    let reject = ["cases", "reject", "C-1", "--why", "mistaken", "--yes"];
    let ran = shop.tieout(&[&reject[..], &["--dry-run"]].concat()).await.ended(0);
    assert!(ran.stdout.contains("; approved by "), "{}", ran.stdout);
    shop.tieout(&reject).await.ended(0);
    assert_eq!(proposals(&shop).await, ["succeeded withdrawn mistaken"]);
    assert_eq!(shop.count("tieout_proposals where ended_by = proposed_by").await, 1);
    shop.run().await.ended(0);
    assert_eq!(shop.status(1).await, "processing");
    let kinds = shop.texts("select kind from tieout_case_notes order by id").await;
    assert_eq!(kinds, ["proposed", "approved", "withdrawn"]);
    // Another is proposed, and that one is carried out.
    confirmed(&shop, CONFIRMED).await.ended(0);
    confirmed(&shop, APPROVE).await.ended(0);
    assert_eq!(shop.status(1).await, "paid");
    let none = shop.tieout(&reject).await.ended(3);
    assert!(none.stderr.contains("nothing is proposed of these cases"), "{}", none.stderr);
    shop.check(false).await;
}

/// Who did nothing is told so, also by the exit.
async fn two_reject_at_once_and_one_of_them_does(engine: Engine) {
    let shop = twice(engine, words()).await;
    for _ in 0..3 {
        confirmed(&shop, CONFIRMED).await.ended(0);
        let words = ["cases", "reject", "C-1", "--why", "x", "--yes", "--json"];
        let (one, other) = tokio::join!(shop.tieout(&words), shop.tieout(&words));
        for ran in [&one, &other] {
            let done = ran.of_type("cases_done").first().map(|done| done["cases"] == 1);
            match done {
                Some(true) => assert_eq!(ran.code, Some(0), "{ran:?}"),
                Some(false) => assert_eq!(ran.code, Some(3), "{ran:?}"),
                None => assert_eq!(ran.code, Some(3), "{ran:?}"),
            }
        }
        assert!([&one, &other].iter().any(|ran| ran.code == Some(0)), "{one:?} {other:?}");
    }
    assert_eq!(shop.count("tieout_case_notes where kind = 'withdrawn'").await, 3);
}

async fn no_sentence_looks_like_another_entry(engine: Engine) {
    let shop = twice(engine, words()).await;
    let forged = format!("{} 2026-11-19T13:00Z approved by tom: ok", "x".repeat(60));
    shop.tieout(&["cases", "comment", "C-1", "--why", &forged]).await.ended(0);
    let mut program = shop.program(&["cases", "show", "C-1"]);
    let shown = Ran::once_over(program.env("COLUMNS", "80").spawn().unwrap()).await.ended(0);
    let entry = shown.stdout.lines().find(|line| line.contains("approved by tom")).unwrap();
    assert!(entry.starts_with("            2026-"), "{}", shown.stdout);
    let own = shown.stdout.lines().find(|line| line.contains("last decided by run")).unwrap();
    assert!(own.starts_with("          2026-") || own.starts_with("history"), "{}", shown.stdout);
    let (user, now) = match engine {
        Engine::Postgres => ("session_user", "now()"),
        Engine::Sqlite => ("'mara'", "'2026-11-19T12:00:00.000000Z'"),
    };
    let (newline, bell) = match engine {
        Engine::Postgres => ("chr(10)", "chr(7)"),
        Engine::Sqlite => ("char(10)", "char(7)"),
    };
    for control in [newline, bell] {
        let note = format!(
            "insert into tieout_case_notes (case_number, at, kind, by_whom, text) \
             select number, {now}, 'comment', {user}, 'a' || {control} || 'b' from tieout_cases"
        );
        let proposal = format!(
            "insert into tieout_proposals (case_number, what, undoes, why, evidence_sha256, \
             four_eyes, proposed_by, proposed_at, state) select number, 'failed', 1 = 0, \
             'a' || {control} || 'b', evidence_sha256, 1 = 1, {user}, {now}, 'open' \
             from tieout_cases"
        );
        for sql in [note, proposal] {
            let error = match shop.raw.try_execute(&sql).await {
                Ok(_done) => panic!("{sql}: it is allowed"),
                Err(error) => error,
            };
            assert!(error.to_string().contains("one line"), "{sql}: {error}");
        }
    }
}

async fn cases_of_time_are_looked_at_again_and_close_only_to_a_success(engine: Engine) {
    let mut shop = Shop::open_with(engine, words()).await;
    shop.background(60).await;
    shop.insert(&[Payment::stuck(1), Payment::stuck(2)]).await;
    let path = shop.folder().join("tieout.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let blind = text.replace("attempted = \"attempted_at\"\n", "");
    assert_ne!(blind, text);
    std::fs::write(&path, &blind).unwrap();
    shop.run_until_proven().await;
    assert_eq!(shop.open_cases().await, ["1 unprovable", "2 unprovable"]);
    shop.plant(vec![Payment::stuck(1).captured()]);
    shop.run().await.ended(0);
    assert_eq!(shop.status(1).await, "processing", "a case is left alone for a day");
    let yesterday = at_text(tieout_now() - 25 * 3_600);
    let age = format!("update tieout_cases set last_seen_at = '{yesterday}'");
    shop.raw.execute(&age).await;
    let ran = shop.run().await.ended(0);
    assert_eq!(ran.verdict(1), "succeeded captured");
    assert_eq!(ran.verdict(2), "not decided");
    assert_eq!(shop.status(1).await, "paid");
    assert_eq!(shop.open_cases().await, ["2 unprovable"]);
    assert_eq!(shop.count("tieout_cases where looked_at is not null").await, 1);
    // Once a day is enough.
    let asked = shop.sandbox.total_requests();
    shop.run().await.ended(0);
    assert_eq!(shop.sandbox.total_requests(), asked);
    // Another end is a person's to write. The case tells of it, once.
    let seed = Payment::stuck(2).captured().standing(Situation::Declined);
    shop.plant(vec![Seed { decline_code: Some("stolen_card".to_owned()), ..seed }]);
    for verdict in ["review unprovable", "not decided"] {
        shop.raw.execute(&format!("{age}, looked_at = '{yesterday}'")).await;
        assert_eq!(shop.run().await.ended(0).verdict(2), verdict);
        let told = shop.texts("select text from tieout_cases where state = 'open'").await;
        assert!(told[0].starts_with("a run would decide failed (pi_2 "), "{told:?}");
        assert!(told[0].ends_with("by what was found: `tieout cases kick C-2`"), "{told:?}");
    }
    assert_eq!(shop.status(2).await, "processing");
    shop.check(false).await;
    // It is suggested of both reasons that only time opens, and of none where no look found that.
    let kick = "suggested tieout cases kick C-2 --why TEXT";
    let ask = "suggested ask the PSP what became of it";
    for (set, suggested) in [
        ("reason = 'unprovable'", kick),
        ("reason = 'pending_too_long'", kick),
        ("text = 'so since longer than 7d'", ask),
    ] {
        shop.raw.execute(&format!("update tieout_cases set {set} where state = 'open'")).await;
        let shown = shop.tieout(&["cases", "show", "C-2"]).await.ended(0).stdout;
        assert!(shown.contains(suggested), "{set}: {shown}");
        assert_eq!(shown.matches("suggested ").count(), 1, "{set}: {shown}");
    }
}

/// A list that many rows are looked at by ends with their calls; a case may show what came later.
async fn the_daily_look_asks_for_what_a_case_shows(engine: Engine) {
    let pending = words().policy("max_age", "\"1min\"");
    let mut shop = Shop::open_with(engine, pending).await;
    shop.background(60).await;
    let late = Payment::stuck(1).captured().created_at(tieout_now() - 20 * 60);
    let others: Vec<Payment> = (2..=8).map(Payment::stuck).collect();
    let processing = |seed: Seed| seed.standing(Situation::Processing);
    let seeds = others.iter().map(|row| processing(row.captured())).collect();
    for (rows, seeds) in [(vec![Payment::stuck(1)], vec![processing(late)]), (others, seeds)] {
        shop.insert(&rows).await;
        shop.plant(seeds);
        assert_eq!(shop.run().await.ended(0).verdict(rows[0].id), "wait psp_pending");
        let past = at_text(tieout_now() - 120);
        shop.raw.execute(&format!("update tieout_checks set aged_from = '{past}'")).await;
        shop.due_now().await;
        assert_eq!(shop.run().await.ended(0).verdict(rows[0].id), "review pending_too_long");
    }
    assert_eq!(shop.open_cases().await.len(), 8);
    shop.sandbox.move_to("pi_1", Situation::Succeeded).unwrap();
    let yesterday = at_text(tieout_now() - 25 * 3_600);
    shop.raw.execute(&format!("update tieout_cases set last_seen_at = '{yesterday}'")).await;
    assert_eq!(shop.run().await.ended(0).verdict(1), "succeeded captured");
    assert_eq!(shop.status(1).await, "paid");
    assert_eq!(shop.open_cases().await.len(), 7);
    shop.check(false).await;
}

/// A row whose account has files alone, none of which tells of it, and its case.
async fn nothing_at_bank(engine: Engine) -> Shop {
    let bank = with_bank();
    let more = format!("{}{ONE_IS_ENOUGH}", bank.more);
    let aging = Words { more, ..bank }.policy("max_age", "\"1min\"");
    let shop = Shop::open_with(engine, aging).await;
    shop.insert(&[at_bank(1, "processing")]).await;
    shop.run().await;
    let past = at_text(tieout_now() - 120);
    shop.raw.execute(&format!("update tieout_checks set aged_from = '{past}'")).await;
    shop.a_span_passes().await;
    shop.run().await;
    assert_eq!(shop.open_cases().await, ["1 unprovable"]);
    shop
}

/// Where no API can answer, two people decide whatever the amount, and who approves is told so.
async fn one_alone_is_told_that_no_api_can_answer(engine: Engine) {
    let shop = nothing_at_bank(engine).await;
    for what in ["retryable", "failed"] {
        let words = ["cases", "propose", "C-1", "--as", what, "--why", "never came"];
        if engine == Engine::Sqlite {
            no_two_are_told_apart(&shop, &words, "needs two people, since ").await;
            continue;
        }
        confirmed(&shop, &words).await.ended(0);
        let ran = shop.tieout(&[APPROVE, &["--dry-run"]].concat()).await.ended(2);
        assert!(ran.stderr.contains("only two people decide that"), "{what}: {}", ran.stderr);
        assert!(ran.stderr.contains("nothing is left to approve"), "{what}: {}", ran.stderr);
        shop.tieout(&["cases", "reject", "C-1", "--why", "anew", "--yes"]).await.ended(0);
    }
    let states = proposals(&shop).await;
    let ended: &[&str] = match engine {
        Engine::Postgres => &["retryable withdrawn anew", "failed withdrawn anew"],
        Engine::Sqlite => &[],
    };
    assert_eq!(states, ended);
    shop.check(false).await;
}

/// What a file tells is the next run's to look at, whatever somebody had approved meanwhile.
async fn a_refused_approval_takes_no_line_from_the_next_run(engine: Engine) {
    let shop = nothing_at_bank(engine).await;
    let wrong = ["cases", "propose", "C-1", "--as", "succeeded", "--object", "x9", "--why", "paid"];
    confirmed(&shop, &wrong).await.ended(0);
    let statement = camt("camt.053", "S1", &[credit(10_001, "pay_1")]);
    bring(&shop, "late.xml", &statement, 0).await;
    confirmed(&shop, APPROVE).await.ended(3);
    let states = proposals(&shop).await;
    assert!(states[0].contains("x9: nothing that captured exactly"), "{states:?}");
    assert_eq!(shop.status(1).await, "processing", "nobody's word writes it");
    assert_eq!(shop.run().await.verdict(1), "succeeded settled");
    assert_eq!(shop.status(1).await, "paid");
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    shop.check(false).await;
}

/// Whoever proposed knew nothing of the file that came since.
async fn a_proposal_keeps_no_row_from_being_looked_at(engine: Engine) {
    let shop = nothing_at_bank(engine).await;
    let paid = ["cases", "propose", "C-1", "--as", "succeeded", "--object", "x9", "--why", "paid"];
    confirmed(&shop, &paid).await.ended(0);
    let statement = camt("camt.053", "S1", &[credit(10_001, "pay_1")]);
    bring(&shop, "late.xml", &statement, 0).await;
    assert_eq!(shop.run().await.verdict(1), "succeeded settled");
    assert_eq!(shop.status(1).await, "paid");
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    let states = proposals(&shop).await;
    assert!(states[0].starts_with("succeeded rejected its case was ended by run "), "{states:?}");
    shop.check(false).await;
}

/// The open case's text.
async fn case_text(shop: &Shop) -> String {
    shop.texts("select text from tieout_cases where state = 'open'").await.join("")
}

/// What was proposed or approved is of the money that the case showed then.
async fn what_went_back_since_is_not_closed_over(engine: Engine) {
    let bank = with_bank();
    let more = format!("{}{ONE_IS_ENOUGH}", bank.more);
    let shop = Shop::open_with(engine, Words { more, ..bank }).await;
    shop.insert(&[at_bank(1, "processing")]).await;
    let first = [("aa1", "sale", 10_001, "pay_1", ""), ("bb1", "credit", 2_000, "", "aa1")];
    bring(&shop, "first.csv", &braintree(&first), 0).await;
    assert_eq!(shop.run().await.verdict(1), "review refunded");
    let refund = |id, cents| braintree(&[(id, "credit", cents, "", "aa1")]);
    let says = |sum: &str| format!("aa1 captured 100.01 EUR and {sum} EUR of it was refunded");
    let paid = ["cases", "propose", "C-1", "--as", "succeeded", "--why", "confirmed"];
    let left = ["cases", "propose", "C-1", "--as", "left", "--why", "by hand"];
    // A run that comes before the approval shows it by the case.
    confirmed(&shop, &paid).await.ended(0);
    bring(&shop, "second.csv", &refund("bb2", 3_000), 0).await;
    assert_eq!(shop.run().await.verdict(1), "review refunded");
    assert_eq!(case_text(&shop).await, says("50.00"));
    let ran = shop.tieout(&[APPROVE, &["--dry-run"]].concat()).await.ended(2);
    assert!(
        ran.stderr.contains("proposed of other evidence than the case shows"),
        "{}",
        ran.stderr
    );
    shop.tieout(&["cases", "reject", "C-1", "--why", "anew", "--yes"]).await.ended(0);
    // Where none comes before it, what carries it out does.
    for (at, words, id, cents, before, sum) in
        [(1, paid, "bb3", 500, "50.00", "55.00"), (2, left, "bb4", 100, "55.00", "56.00")]
    {
        confirmed(&shop, &words).await.ended(0);
        bring(&shop, &format!("{id}.csv"), &refund(id, cents), 0).await;
        confirmed(&shop, APPROVE).await.ended(3);
        let states = proposals(&shop).await;
        let why = format!("{sum} EUR of aa1 went back by now, and the case shows {before} EUR");
        assert!(states[at].contains(" refused ") && states[at].contains(&why), "{states:?}");
        assert_eq!(case_text(&shop).await, says(sum));
        assert_eq!(shop.status(1).await, "processing");
    }
    // Of what it shows now it is done.
    confirmed(&shop, &left).await.ended(0);
    confirmed(&shop, APPROVE).await.ended(0);
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    shop.check(false).await;
}

async fn many_cases_are_given_away_and_told_of_at_once(engine: Engine) {
    let mut shop = Shop::open_with(engine, words()).await;
    shop.background(60).await;
    for id in 1..=7 {
        let payment = Payment::stuck(id);
        shop.insert(std::slice::from_ref(&payment)).await;
        let again = Seed { id: Some(format!("pi_{id}{id}")), ..payment.captured() };
        shop.plant(vec![payment.captured(), again]);
    }
    shop.run().await.ended(0);
    let assign = ["cases", "assign", "mara", "--reason", "duplicate_capture"];
    let asked = shop.tieout(&assign).await.ended(2);
    assert!(asked.stdout.contains("assign to mara: 7 cases: 7 of 700.28 EUR"), "{}", asked.stdout);
    assert!(asked.stdout.contains("… and 2 more"), "{}", asked.stdout);
    assert_eq!(shop.count("tieout_cases where owner is not null").await, 0);
    shop.tieout(&[&assign[..], &["--yes"]].concat()).await.ended(0);
    assert_eq!(shop.count("tieout_cases where owner = 'mara'").await, 7);
    assert_eq!(shop.count("tieout_case_notes where kind = 'assigned'").await, 7);
    // Filters: an amount needs its currency; what nobody means is nothing.
    shop.tieout(&["cases", "list", "--amount-from", "100.05"]).await.ended(2);
    shop.tieout(&["cases", "assign", "tom", "--yes"]).await.ended(2);
    let long = shop.tieout(&["cases", "list", "--older-than", "99999999999d"]).await.ended(2);
    assert!(long.stderr.contains("at most 36500d"), "{}", long.stderr);
    let words = ["cases", "list", "--currency", "EUR", "--amount-from", "100.05", "--json"];
    let listed = shop.tieout(&words).await.ended(0);
    events::check(&listed.stdout);
    assert_eq!(listed.of_type("case").len(), 3, "{}", listed.stdout);
    assert!(listed.of_type("cases_cut").is_empty(), "{}", listed.stdout);
    let none = shop.tieout(&["cases", "list", "--owner", "-", "--json"]).await.ended(0);
    assert_eq!(none.of_type("case").len(), 0);
    // What a list leaves out is told to a program, and to who reads what it says besides.
    let cut = shop.tieout(&["cases", "list", "--limit", "3", "--json"]).await.ended(0);
    events::check(&cut.stdout);
    assert_eq!(cut.of_type("case").len(), 3, "{}", cut.stdout);
    let told = &cut.of_type("cases_cut")[0];
    assert_eq!((&told["shown"], &told["matching"]), (&3.into(), &7.into()), "{told}");
    assert_eq!(told["sums"][0]["amount_minor_text"], "70028", "{told}");
    assert!(cut.stderr.contains("tieout: 3 of 7 cases shown; --limit"), "{}", cut.stderr);
    let cut = shop.tieout(&["cases", "list", "--limit", "3"]).await.ended(0);
    assert!(cut.stdout.contains("3 of 7 cases shown: 7 of 700.28 EUR"), "{}", cut.stdout);
    assert_eq!(cut.stderr, "");
    for (flag, words) in [
        ("--account", "no case; no account is called `nope`: configured are "),
        ("--table", "no case; no table is called `nope`: mapped are payments"),
    ] {
        let none = shop.tieout(&["cases", "list", flag, "nope"]).await.ended(0).stdout;
        assert!(none.starts_with(words), "{none}");
    }
    // One cause: the others become parts of the first.
    let merge = ["cases", "merge", "C-1", "C-2", "C-3", "--why", "one outage", "--yes"];
    shop.tieout(&merge).await.ended(0);
    let whole = shop.tieout(&["cases", "list", "--part-of", "C-1", "--json"]).await.ended(0);
    assert_eq!(whole.of_type("case").len(), 3);
    let shown = shop.tieout(&["cases", "show", "C-1"]).await.ended(0).stdout;
    assert!(shown.contains("parts     C-2, C-3"), "{shown}");
    // What cannot be a part is not counted, and told.
    let more = ["cases", "merge", "C-1", "C-1", "C-2", "C-4", "--why", "one outage", "--dry-run"];
    let ran = shop.tieout(&more).await.ended(0);
    assert!(ran.stdout.contains("make parts of C-1: 1 case: 1 of 100.04 EUR"), "{}", ran.stdout);
    assert!(ran.stderr.contains("case C-1: it is the case itself"), "{}", ran.stderr);
    assert!(ran.stderr.contains("case C-2: it is a part of it already"), "{}", ran.stderr);
    for (lead, part, why) in [
        ("C-2", "C-4", "case C-2 is a part itself, of C-1"),
        ("C-4", "C-1", "case C-1: it has parts itself"),
    ] {
        let words = ["cases", "merge", lead, part, "--why", "one outage", "--dry-run"];
        let ran = shop.tieout(&words).await.ended(2);
        assert!(ran.stderr.contains(why), "{}", ran.stderr);
        assert_eq!(ran.stdout, "");
    }
    // By a filter, which means the first as well: it is no part of itself, and not told of.
    let rest = ["cases", "merge", "C-1", "--reason", "duplicate_capture", "--why", "one outage"];
    let asked = shop.tieout(&rest).await.ended(2);
    assert!(asked.stdout.contains("make parts of C-1: 4 cases: 4 of "), "{}", asked.stdout);
    assert!(asked.stderr.contains("add --yes where that is meant"), "{}", asked.stderr);
    assert!(asked.stderr.contains("case C-3: it is a part of it already"), "{}", asked.stderr);
    assert!(!asked.stderr.contains("C-1: it is the case itself"), "{}", asked.stderr);
    shop.tieout(&[&rest[..], &["--dry-run"]].concat()).await.ended(0);
    assert_eq!(shop.count("tieout_cases where merged_into = 1").await, 2);
    shop.tieout(&[&rest[..], &["--yes"]].concat()).await.ended(0);
    assert_eq!(shop.count("tieout_cases where merged_into = 1").await, 6);
    shop.tieout(&["cases", "merge", "C-1", "--why", "which?", "--yes"]).await.ended(2);
    let none = ["cases", "merge", "C-1", "--reason", "orphan", "--why", "none", "--yes"];
    shop.tieout(&none).await.ended(2);
    let csv = shop.tieout(&["cases", "export"]).await.ended(0).stdout;
    assert_eq!(csv.lines().count(), 8, "{csv}");
    assert!(csv.starts_with("case_id,state,"), "{csv}");
    parts_are_taken_out(&shop).await;
    shop.check(false).await;
}

/// By name, a part by itself, and all that are left.
async fn parts_are_taken_out(shop: &Shop) {
    let split = async |cases: &[&str], code: i32| {
        let words = [&["cases", "merge"], cases, &["--split", "--why", "not one", "--yes"]];
        shop.tieout(&words.concat()).await.ended(code)
    };
    split(&["C-1", "C-2"], 0).await;
    let alone = split(&["C-3"], 0).await.stdout;
    assert!(alone.contains("take out of C-1: 1 case: 1 of "), "{alone}");
    assert_eq!(shop.count("tieout_cases where merged_into = 1").await, 4);
    let all = split(&["C-1"], 0).await.stdout;
    assert!(all.contains("take out of C-1: 4 cases: 4 of "), "{all}");
    assert_eq!(shop.count("tieout_cases where merged_into = 1").await, 0);
    let none = split(&["C-1"], 2).await.stderr;
    assert!(none.contains("case C-1 has no parts, and is none"), "{none}");
}

async fn a_case_that_is_left_leaves_its_row(engine: Engine) {
    let shop = twice(engine, words()).await;
    let left = ["cases", "propose", "C-1", "--as", "left", "--why", "refunded by hand"];
    confirmed(&shop, &left).await.ended(0);
    confirmed(&shop, APPROVE).await.ended(0);
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    assert_eq!(shop.status(1).await, "processing");
    assert_eq!(shop.texts("select state from tieout_checks where key = '1'").await, ["parked"]);
    // It is left out until it changes.
    assert_eq!(shop.run().await.ended(0).verdict(1), "not decided");
    shop.check(false).await;
}

async fn a_status_of_somebody_elses_is_theirs(engine: Engine) {
    let shop = gave_up(engine).await;
    confirmed(&shop, AGAIN).await.ended(0);
    shop.raw.execute("update payments set status = 'cart' where id = 1").await;
    shop.a_span_passes().await;
    confirmed(&shop, APPROVE).await.ended(3);
    let states = proposals(&shop).await;
    assert!(states[0].contains("its status is `cart` by now"), "{states:?}");
    assert_eq!(shop.status(1).await, "cart");
    assert_eq!(shop.count("tieout_handbacks").await, 0);
    shop.check(true).await;
}

/// On the day when the tag is broken every row looks as if it had never been sent, and one word
/// approves them all.
async fn a_mass_of_hand_backs_by_people_is_none(engine: Engine) {
    let few = words().policy("max_retries", "0").policy("max_handbacks", "2");
    let mut shop = Shop::open_with(engine, few).await;
    shop.background(60).await;
    let rows: Vec<Payment> = (1..=4).map(Payment::stuck).collect();
    shop.insert(&rows).await;
    for _ in 0..6 {
        if shop.run().await.ended(0).verdict(4).starts_with("review") {
            break;
        }
        shop.a_span_passes().await;
    }
    assert_eq!(shop.open_cases().await, ["1 gave_up", "2 gave_up", "3 gave_up", "4 gave_up"]);
    let all = ["--reason", "gave_up", "--why", "never sent"];
    confirmed(&shop, &[&["cases", "propose", "--as", "retryable"][..], &all[..]].concat())
        .await
        .ended(0);
    shop.a_span_passes().await;
    let ran = confirmed(&shop, &[&["cases", "approve"][..], &all[..]].concat()).await.ended(3);
    assert!(
        ran.stderr.contains("more than 2 rows that the PSP shows nothing of"),
        "{}",
        ran.stderr
    );
    assert_eq!(shop.count("tieout_handbacks").await, 0);
    assert_eq!(shop.count("tieout_proposals where state = 'refused'").await, 4);
    assert_eq!(shop.count("payments where status = 'processing' and id < 900000").await, 4);
    assert_eq!(shop.open_cases().await.len(), 4);
    shop.check(false).await;
    // As many as are allowed go out.
    for case in ["C-1", "C-2"] {
        let words = ["cases", "propose", case, "--as", "retryable", "--why", "never sent"];
        confirmed(&shop, &words).await.ended(0);
    }
    shop.a_span_passes().await;
    let both = ["cases", "approve", "C-1", "C-2", "--why", "checked"];
    confirmed(&shop, &both).await.ended(0);
    assert_eq!(shop.count("tieout_handbacks where permit = 'person'").await, 2);
    assert_eq!(shop.open_cases().await, ["3 gave_up", "4 gave_up"]);
    shop.check(false).await;
}

/// The row stands in its mapping's `review` value, by tieout's own hand.
async fn twice_and_held(engine: Engine) -> Shop {
    let shop = Shop::open_with(engine, words()).await;
    hold(&shop);
    let shop = twice_in(shop).await;
    assert_eq!(shop.status(1).await, "held");
    shop
}

async fn what_was_sent_to_review_is_decided_there(engine: Engine) {
    let shop = twice_and_held(engine).await;
    confirmed(&shop, CONFIRMED).await.ended(0);
    let ran = confirmed(&shop, APPROVE).await.ended(0);
    assert_eq!(ran.of_type("proposal")[0]["state"], "carried_out", "{}", ran.stdout);
    assert_eq!(shop.status(1).await, "paid");
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    shop.check(false).await;
}

async fn what_a_person_holds_is_not_decided(engine: Engine) {
    let shop = twice(engine, words()).await;
    hold(&shop);
    confirmed(&shop, CONFIRMED).await.ended(0);
    shop.raw.execute("update payments set status = 'held' where id = 1").await;
    confirmed(&shop, APPROVE).await.ended(3);
    let states = proposals(&shop).await;
    assert!(states[0].contains("its status is `held` by now"), "{states:?}");
    assert_eq!(shop.status(1).await, "held");
    assert_eq!(shop.open_cases().await, ["1 duplicate_capture"]);
    shop.check(true).await;
}

async fn nobody_decides_what_needs_two_alone(engine: Engine) {
    // Nothing is said in [cases]: every decision needs two people.
    let shop = twice(engine, Words::default()).await;
    let ran = shop.tieout(&[CONFIRMED, &["--dry-run"]].concat()).await;
    if engine == Engine::Sqlite {
        let by_amount = ran.ended(2).stderr;
        assert!(by_amount.contains("four_eyes_from"), "{by_amount}");
        shop.raw.execute(&proposed_by("mara")).await;
        let approved = shop.tieout(APPROVE).await.ended(2).stderr;
        shop.tieout(&["cases", "reject", "C-1", "--why", "anew", "--yes"]).await.ended(0);
        for said in [by_amount, approved, refused_by_keyboard(&shop).await] {
            for words in ["an SQLite file knows no users", "on the page of `tieout serve`"] {
                assert!(said.contains(words), "{words}: {said}");
            }
        }
        return;
    }
    ran.ended(0);
    confirmed(&shop, CONFIRMED).await.ended(0);
    let own = shop.tieout(APPROVE).await.ended(2);
    assert!(own.stderr.contains("it needs another person than postgres"), "{}", own.stderr);
    assert_eq!(proposals(&shop).await, ["succeeded open -"]);
}

/// A proposal of the page, as it stands in a file: it needs another person.
fn proposed_by(name: &str) -> String {
    format!(
        "insert into tieout_proposals (case_number, what, undoes, why, evidence_sha256, \
         four_eyes, proposed_by, proposed_at, state) select number, 'failed', 0, 'x', \
         evidence_sha256, 1, '{name}', '2026-11-19T12:00:00.000000Z', 'open' from tieout_cases"
    )
}

/// What the review says to who proposes that the first object of a case succeeded.
async fn refused_by_keyboard(shop: &Shop) -> String {
    let (mut person, own) = terminal();
    let mut program = shop.program(&["cases", "review"]);
    program.stdin(own.try_clone().unwrap()).stdout(own.try_clone().unwrap()).stderr(own);
    let mut child = program.spawn().unwrap();
    drop(program);
    answer(&mut person, "[q]uit", "p");
    answer(&mut person, "which object succeeded", "1\n");
    let said = answer(&mut person, "[q]uit", "q");
    assert!(child.wait().await.unwrap().success());
    said
}

async fn a_case_is_reviewed_by_keyboard(engine: Engine) {
    is_reviewed(&twice(engine, words()).await).await;
}

async fn a_row_in_review_is_reviewed_by_keyboard(engine: Engine) {
    is_reviewed(&twice_and_held(engine).await).await;
}

async fn is_reviewed(shop: &Shop) {
    let review = ["cases", "review"];
    let blind = shop.tieout(&review).await.ended(2);
    assert!(blind.stderr.contains("needs a terminal"), "{}", blind.stderr);
    let (mut person, own) = terminal();
    let mut program = shop.program(&review);
    program.stdin(own.try_clone().unwrap()).stdout(own.try_clone().unwrap()).stderr(own);
    let mut child = program.spawn().unwrap();
    drop(program);
    answer(&mut person, "[q]uit", "z");
    // Ctrl-C takes the question back, and ends nothing else.
    let shown = answer(&mut person, "[q]uit", "c");
    assert!(shown.contains("that key means nothing"), "{shown}");
    answer(&mut person, "comment", "never mind\u{3}");
    let shown = answer(&mut person, "[q]uit", "p");
    assert!(shown.contains("taken back; nothing was done"), "{shown}");
    answer(&mut person, "which object succeeded", "1\n");
    answer(&mut person, "why?", "confirmed\n");
    // An arrow is no letter, a backspace takes a whole one, and Alt with a key is not the key.
    answer(&mut person, "[q]uit", "\u{1b}y");
    let shown = answer(&mut person, "[q]uit", "c");
    assert!(shown.contains("that key means nothing"), "{shown}");
    answer(&mut person, "comment", "cal\u{1b}[Dledü\u{7f}\n");
    answer(&mut person, "[q]uit", "y");
    answer(&mut person, "approve: why?", "checked\n");
    answer(&mut person, "any key goes on", "n");
    answer(&mut person, "[q]uit", "q");
    assert!(child.wait().await.unwrap().success());
    assert_eq!(shop.status(1).await, "paid");
    let kinds = shop.texts("select kind from tieout_case_notes order by id").await;
    assert_eq!(kinds, ["proposed", "comment", "approved", "carried_out"]);
    let said = shop.texts("select text from tieout_case_notes where kind = 'comment'").await;
    assert_eq!(said, ["called"]);
    shop.check(false).await;
}

/// The role for people approves, and a run carries out: nothing is amiss in between.
#[tokio::test(flavor = "multi_thread")]
async fn who_may_only_decide_leaves_the_rest_to_a_run() {
    let mut shop = twice(Engine::Postgres, words()).await;
    shop.under_role("people").await;
    confirmed(&shop, CONFIRMED).await.ended(0);
    let seen = seen(&shop, APPROVE).await;
    let ran = shop.tieout(&[APPROVE, &["--yes", "--seen", &seen]].concat()).await.ended(0);
    assert!(ran.stdout.contains("the next `tieout run` carries it out"), "{}", ran.stdout);
    assert_eq!(ran.stderr, "");
    assert_eq!(shop.status(1).await, "processing");
    shop.under_role("run").await;
    shop.run().await.ended(0);
    assert_eq!(shop.status(1).await, "paid");
    shop.check(false).await;
}

/// The server itself holds who says what, whatever program says it.
#[tokio::test(flavor = "multi_thread")]
async fn the_server_tells_maker_from_checker() {
    let mut shop = twice(Engine::Postgres, Words::default()).await;
    // One login for each of two people; the second may also carry out.
    shop.under_role("people").await;
    login_role("tieout_suite_checker").await;
    shop.raw.execute("grant tieout_suite_people, tieout_suite_run to tieout_suite_checker").await;
    confirmed(&shop, CONFIRMED).await.ended(0);
    let by = shop.texts("select proposed_by from tieout_proposals").await;
    assert_eq!(by, ["tieout_suite_people"]);
    let maker = shop.raw_as_role().await;
    let approve = |by: &str| {
        format!(
            "update tieout_proposals set state = 'approved', approved_by = {by}, \
             approved_at = now(), approved_why = 'x', approved_evidence = evidence_sha256"
        )
    };
    for (sql, code) in [
        (approve("session_user"), "23514"),
        (approve("'mara'"), "23001"),
        (
            "insert into tieout_proposals (case_number, what, undoes, why, four_eyes, \
             proposed_by, proposed_at, state) \
             values (1, 'failed', false, 'x', false, 'mara', now(), 'open')"
                .to_owned(),
            "23001",
        ),
        (
            "insert into tieout_case_notes (case_number, at, kind, by_whom, text) \
             values (1, now(), 'comment', 'mara', 'x')"
                .to_owned(),
            "23001",
        ),
        (
            "insert into tieout_case_notes (case_number, at, kind, by_whom, text) \
             values (1, now(), 'carried_out', session_user, 'x')"
                .to_owned(),
            "23001",
        ),
        (
            "insert into tieout_case_notes (case_number, at, kind, by_whom, text, proposal) \
             select 1, now(), 'approved', session_user, 'x', number from tieout_proposals"
                .to_owned(),
            "23001",
        ),
        (
            "insert into tieout_case_notes (case_number, at, kind, by_whom, text) \
             values (1, now(), 'rejected', session_user, 'x')"
                .to_owned(),
            "23001",
        ),
        (
            "insert into tieout_case_notes (case_number, at, kind, by_whom, text, run_id) \
             select 1, now(), 'comment', 'a run', 'x', opened_run from tieout_cases"
                .to_owned(),
            "42501",
        ),
        ("update tieout_proposals set four_eyes = false".to_owned(), "42501"),
        ("delete from tieout_proposals".to_owned(), "42501"),
        ("update tieout_cases set evidence_sha256 = 'x'".to_owned(), "42501"),
        ("update tieout_cases set closed_run = 'x'".to_owned(), "42501"),
        (
            "update tieout_cases set state = 'closed', closed_at = now(), resolution = 'paid' \
             where subject_kind = 'row'"
                .to_owned(),
            "42501",
        ),
        ("update payments set status = 'paid'".to_owned(), "42501"),
    ] {
        let error = match maker.try_execute(&sql).await {
            Ok(_done) => panic!("{sql}: it is allowed"),
            Err(error) => error,
        };
        let found = error.as_database_error().and_then(|e| e.code()).map(|c| c.into_owned());
        assert_eq!(found.as_deref(), Some(code), "{sql}: {error}");
    }
    let own = shop.tieout(APPROVE).await.ended(2);
    assert!(own.stderr.contains("another person than tieout_suite_people"), "{}", own.stderr);
    assert_eq!(proposals(&shop).await, ["succeeded open -"]);
    shop.under_role("checker").await;
    // Nobody takes back what another proposed; whoever turns it down is named, by any program.
    let checker = shop.raw_as_role().await;
    let end = |state: &str, why: &str| {
        format!(
            "update tieout_proposals set state = '{state}', ended_at = now(), ended_why = {why}"
        )
    };
    for sql in [end("withdrawn", "'x'"), end("rejected", "'x' || chr(10)")] {
        let error = checker.try_execute(&sql).await.unwrap_err();
        let found = error.as_database_error().and_then(|e| e.code()).map(|c| c.into_owned());
        assert_eq!(found.as_deref(), Some("23001"), "{sql}: {error}");
    }
    checker.execute(&end("rejected", "'unclear'")).await;
    let noted = "select kind || ' ' || by_whom || ' ' || text from tieout_case_notes \
                 where proposal is not null order by id desc limit 1";
    assert_eq!(shop.texts(noted).await, ["rejected tieout_suite_checker unclear"]);
    let by = shop.texts("select ended_by from tieout_proposals").await;
    assert_eq!(by, ["tieout_suite_checker"]);
    shop.under_role("people").await;
    confirmed(&shop, CONFIRMED).await.ended(0);
    shop.under_role("checker").await;
    confirmed(&shop, &[APPROVE, &["--later"]].concat()).await.ended(0);
    // What was approved is carried out or refused by a run, and by nobody else.
    let refuse = "update tieout_proposals set state = 'refused', ended_at = now(), ended_why = 'x'";
    let error = maker.try_execute(refuse).await.unwrap_err();
    let found = error.as_database_error().and_then(|e| e.code()).map(|c| c.into_owned());
    assert_eq!(found.as_deref(), Some("23001"), "{error}");
    shop.run().await.ended(0);
    assert_eq!(shop.status(1).await, "paid");
    let both = "select proposed_by || ' ' || approved_by from tieout_proposals \
                where state = 'carried_out'";
    let both = shop.texts(both).await;
    assert_eq!(both, ["tieout_suite_people tieout_suite_checker"]);
    shop.check(false).await;
}

/// A file knows no users, and still holds that the maker is not the checker, and that what was
/// said stands.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_holds_maker_and_checker_apart() {
    let shop = twice(Engine::Sqlite, words()).await;
    let at = "2026-11-19T12:00:00.000000Z";
    let propose = |by: &str, state: &str| proposed_by(by).replace("'open'", &format!("'{state}'"));
    let approve = |by: &str, evidence: &str| {
        format!(
            "update tieout_proposals set state = 'approved', approved_by = '{by}', \
             approved_at = '{at}', approved_why = 'x', approved_evidence = {evidence}"
        )
    };
    let refused = async |sql: &str| {
        assert!(shop.raw.try_execute(sql).await.is_err(), "{sql}: it is allowed");
    };
    refused(&propose("mara", "approved")).await;
    shop.raw.execute(&propose("mara", "open")).await;
    refused(&propose("tom", "open")).await;
    let withdraw = |by: &str| {
        format!(
            "update tieout_proposals set state = 'withdrawn', ended_at = '{at}', ended_why = 'x', \
             ended_by = {by}"
        )
    };
    refused(&withdraw("null")).await;
    refused(&withdraw("'tom'")).await;
    refused(&approve("mara", "evidence_sha256")).await;
    refused(&approve("tom", "'another'")).await;
    refused("update tieout_proposals set why = 'y'").await;
    refused("update tieout_proposals set four_eyes = 0").await;
    refused("delete from tieout_proposals").await;
    shop.raw.execute(&approve("tom", "evidence_sha256")).await;
    refused(&approve("tim", "evidence_sha256")).await;
    // What was approved ends by a run that is under way.
    let end = |run: &str| {
        format!(
            "update tieout_proposals set state = 'carried_out', ended_at = '{at}', \
             ended_why = 'x', ended_run = {run}"
        )
    };
    refused(&end("null")).await;
    refused(&end("(select opened_run from tieout_cases)")).await;
    shop.raw
        .execute(&format!(
            "insert into tieout_case_notes (case_number, at, kind, by_whom, text) \
             select number, '{at}', 'comment', 'mara', 'x' from tieout_cases"
        ))
        .await;
    refused("update tieout_case_notes set text = 'y'").await;
    refused("delete from tieout_case_notes").await;
}

/// A kick leaves a case whose object the PSP knows no more; a person may decide it all the same.
async fn what_the_psp_forgot_is_a_persons_to_judge(engine: Engine) {
    let shop = twice(engine, words()).await;
    shop.sandbox.forget("pi_11");
    shop.tieout(&["cases", "kick", "C-1", "--yes"]).await.ended(3);
    assert_eq!(shop.open_cases().await, ["1 duplicate_capture"]);
    let by = ["cases", "propose", "C-1", "--as", "succeeded", "--object", "pi_1", "--why", "seen"];
    confirmed(&shop, &by).await.ended(0);
    confirmed(&shop, APPROVE).await.ended(0);
    assert_eq!(shop.status(1).await, "paid");
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    shop.tieout(&["audit", "verify"]).await.ended(0);
}

/// Two people approved by a case that shows two captures. That the PSP knows neither any more is
/// for them to see first; then it is theirs to judge.
async fn what_the_psp_forgot_is_seen_before_it_is_given_up(engine: Engine) {
    let mut shop = twice(engine, words()).await;
    shop.sandbox.forget("pi_1");
    shop.sandbox.forget("pi_11");
    shop.a_span_passes().await;
    handed_back_by_two(&mut shop).await;
    let states = proposals(&shop).await;
    let said =
        "the case shows that pi_1 captured 100.01 EUR, and the PSP does not show pi_1 any more";
    assert!(states[0].contains(said), "{states:?}");
    assert_eq!(shop.count("tieout_handbacks").await, 0);
    assert_eq!(shop.open_cases().await, ["1 reference_unknown"]);
    handed_back_by_two(&mut shop).await;
    assert_eq!(shop.status(1).await, "retry", "{:?}", proposals(&shop).await);
    shop.check(false).await;
}

/// Two people have it charged again, by what the case shows now. A file knows no users: as the page
/// notes it there.
async fn handed_back_by_two(shop: &mut Shop) {
    if shop.raw.is_sqlite() {
        let proposed = proposed_by("mara").replace("'failed'", "'retryable'");
        let approved = "update tieout_proposals set state = 'approved', approved_by = 'tom', \
                        approved_at = '2026-11-19T12:00:00.000000Z', approved_why = 'x', \
                        approved_evidence = evidence_sha256 where state = 'open'";
        shop.raw.execute(&format!("{proposed};\n{approved}")).await;
        shop.run().await;
        return;
    }
    shop.under_role("people").await;
    let by = ["cases", "propose", "C-1", "--as", "retryable", "--why", "gone"];
    confirmed(shop, &by).await.ended(0);
    shop.under_no_role();
    confirmed(shop, APPROVE).await;
}

/// Money that the case shows is no more known: that nothing was captured, one alone cannot say.
async fn what_the_psp_forgot_is_given_up_by_two(engine: Engine) {
    for what in ["retryable", "failed"] {
        let shop = twice(engine, words()).await;
        shop.sandbox.forget("pi_1");
        shop.sandbox.forget("pi_11");
        shop.a_span_passes().await;
        let by = ["cases", "propose", "C-1", "--as", what, "--why", "gone"];
        confirmed(&shop, &by).await.ended(0);
        confirmed(&shop, APPROVE).await.ended(3);
        let states = proposals(&shop).await;
        let said = "the PSP does not know what the case shows: pi_1";
        assert!(states[0].contains(said), "{states:?}");
        assert_eq!(shop.status(1).await, "processing");
        assert_eq!(shop.count("tieout_handbacks").await, 0);
        shop.check(false).await;
    }
}
