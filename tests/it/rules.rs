//! Rules from outside: read, listed and tried without a database; then a code that no rule knows,
//! a rule begun from its case, what it would change, and the row that it settles.

use std::path::Path;

use serde_json::{Value, json};
use tieout::sandbox::seeds::Seed;
use tieout::sandbox::situations::{Decline, Situation};

use crate::run::files::{at_bank, bring, camt, credit, returned, shop_with_bank};
use crate::run::shop::{Engine, Payment, Ran, Shop, Words, on_both_databases};
use crate::support::{events, tieout_bin};

const OWN: &str = "version = \"2026-11\"\n\n[[rule]]\nid = \"own.call\"\npsp = \"stripe\"\n\
    when = \"failure\"\ncode = [\"call_issuer\"]\ncurrency = [\"EUR\"]\n\
    amount_at_least_minor = 5000\nage_below = \"30d\"\noutcome = \"retryable\"\n\
    not_before = \"2h\"\nlimit = 2\nmeans = \"their bank wants a call\"\n\
    source = \"our bank's letter\"\nexample = { code = \"call_issuer\", amount_minor = 6000 }\n";

/// Runs the program in a folder with nothing of tieout in its environment.
fn tieout(folder: &Path, words: &[&str]) -> Ran {
    let mut command = std::process::Command::new(tieout_bin());
    command.args(words).current_dir(folder).env_clear().env("COLUMNS", "1000");
    let ran = Ran::of(&command.output().unwrap());
    if words.contains(&"--json") {
        events::check(&ran.stdout);
    }
    ran
}

fn folder_with(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("own.toml"), text).unwrap();
    folder
}

#[test]
fn rules_are_looked_at_without_configuration_or_database() {
    let folder = tempfile::tempdir().unwrap();
    let at = |words: &[&str]| tieout(folder.path(), words).ended(0).stdout;
    let check = at(&["rules", "check"]);
    for file in ["stripe.rules.toml  ", "files.rules.toml  "] {
        assert!(check.contains(file), "{check}");
    }
    let list = at(&["rules", "list", "--psp", "files"]);
    let closed = "bank.returned.AC04  files · returned · code AC04 → review: the account is closed";
    assert!(list.lines().any(|line| line == closed), "{list}");
    assert!(!list.contains("stripe."), "{list}");
    assert_eq!(at(&["rules", "list", "--own"]), "");
    let show = at(&["rules", "show", "stripe.delayed"]);
    assert!(show.contains("shipped  stripe.rules.toml:"), "{show}");
    assert!(show.contains("\n  not_before = \"24h\"\n"), "{show}");
    assert!(show.trim_end().ends_with('}'), "what follows it is not its own: {show}");
    let near = tieout(folder.path(), &["rules", "show", "stripe.delaid"]).ended(2).stderr;
    assert!(near.contains("did you mean `stripe.delayed`?"), "{near}");
    let tried = at(&["rules", "test"]);
    assert!(tried.lines().count() > 80 && !tried.contains("wrong"), "{tried}");
    let schema: Value = serde_json::from_str(&at(&["rules", "schema"])).unwrap();
    assert!(schema["properties"]["rule"].is_object(), "{schema}");
    for words in [&["rules", "check", "--json"], &["rules", "list", "--json"]] {
        at(words);
    }
    at(&["rules", "show", "stripe.delayed", "--json"]);
    at(&["rules", "test", "--json"]);
}

#[test]
fn a_file_of_ones_own_is_tried_before_the_shipped_ones() {
    let folder = folder_with(OWN);
    let at = |words: &[&str]| tieout(folder.path(), words);
    let check = at(&["rules", "check", "own.toml"]).ended(0).stdout;
    assert!(check.starts_with("own.toml  2 rules, yours, "), "{check}");
    assert!(check.lines().next().unwrap().ends_with(", version 2026-11"), "{check}");
    let tried = at(&["rules", "test", "own.toml"]).ended(0).stdout;
    assert!(tried.contains("ok      own.toml:3  own.call\n"), "{tried}");
    assert!(tried.contains("ok      own.toml:3  own.call.capped\n"), "{tried}");
    // An example of another code: told by name, and the file is refused.
    let wrong = OWN.replace("{ code = \"call_issuer\"", "{ code = \"lost_card\"");
    std::fs::write(folder.path().join("own.toml"), wrong).unwrap();
    let tried = at(&["rules", "test", "own.toml"]).ended(10);
    assert!(tried.stdout.contains("wrong   own.toml:3  own.call  decided by stripe.final"));
    assert!(tried.stderr.contains("2 of "), "{}", tried.stderr);
    let check = at(&["rules", "check", "own.toml"]).ended(10).stderr;
    assert!(check.contains("own.toml:3: rule `own.call`: its example is decided by"), "{check}");
    let none = at(&["rules", "check", "none.toml"]).ended(10).stderr;
    assert!(none.contains("the rule file none.toml cannot be read"), "{none}");
    let latin = [OWN.as_bytes(), b"# caf\xe9\n"].concat();
    std::fs::write(folder.path().join("own.toml"), latin).unwrap();
    let said = at(&["rules", "check", "own.toml"]).ended(10).stderr;
    let line = OWN.lines().count() + 1;
    assert!(said.contains(&format!("own.toml:{line}: the byte 0xe9 is no letter")), "{said}");
    assert!(said.contains("expected UTF-8"), "{said}");
}

/// The file that the page shows is one.
#[test]
fn the_rules_of_the_page_hold() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/rules.md");
    let page = std::fs::read_to_string(page).unwrap();
    let block = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let folder = folder_with(block);
    let check = tieout(folder.path(), &["rules", "check", "own.toml"]).ended(0).stdout;
    assert!(check.starts_with("own.toml  2 rules, yours, "), "{check}");
    let said = tieout(folder.path(), &["rules", "test", "own.toml"]).ended(0).stdout;
    assert!(said.contains("own.call_issuer.capped\n"), "{said}");
}

/// A shop where the code of row 2 is known to no rule.
async fn shop_with_an_unknown_code(engine: Engine) -> Shop {
    let mut shop = Shop::open_with(engine, Words::default().patient()).await;
    shop.background(30).await;
    let rows = [Payment::stuck(1), Payment::stuck(2), Payment::stuck(3)];
    let declined = |row: &Payment, code: &str| {
        let seed = row.captured().standing(Situation::Declined);
        Seed { decline_code: Some(code.to_owned()), ..seed }
    };
    shop.plant(vec![
        rows[0].captured(),
        declined(&rows[1], "never_heard_of"),
        declined(&rows[2], "stolen_card"),
    ]);
    shop.insert(&rows).await;
    assert_eq!(shop.run().await.verdict(2), "review decline_unknown");
    shop
}

/// What `rules diff` says, held against the published events; nothing else may have changed.
async fn diff(shop: &Shop, more: &[&str]) -> Ran {
    let before = shop.dump().await;
    let mut words = vec!["rules", "diff", "own.toml", "--json"];
    words.extend(more);
    let ran = shop.tieout(&words).await.ended(0);
    events::check(&ran.stdout);
    assert_eq!(shop.dump().await, before, "it moved something");
    ran
}

fn of_cases(ran: &Ran) -> Vec<Value> {
    ran.of_type("rule_change").into_iter().filter(|change| change["case_id"].is_string()).collect()
}

/// Rules go by the PSP's advice as by its code: both are seen where people look.
async fn advice_is_shown_beside_the_code(engine: Engine) {
    let mut shop = Shop::open_with(engine, Words::default().patient()).await;
    shop.background(30).await;
    let seed = Payment::stuck(1).captured().standing(Situation::Declined);
    let decline = Decline {
        code: "card_declined".to_owned(),
        decline_code: Some("never_heard_of".to_owned()),
        advice_code: Some("ask_the_moon".to_owned()),
    };
    shop.plant(vec![Seed { decline: Some(decline), ..seed }]);
    shop.insert(&[Payment::stuck(1)]).await;
    assert_eq!(shop.run().await.verdict(1), "review decline_unknown");
    let beside = "(failed: never_heard_of, advice ask_the_moon)";
    let shown = shop.tieout(&["cases", "show", "C-1"]).await.ended(0).stdout;
    let line = |label: &str| {
        let words: Vec<Vec<&str>> = shown.lines().map(|l| l.split_whitespace().collect()).collect();
        words.into_iter().find(|words| words.first() == Some(&label)).unwrap_or_default().join(" ")
    };
    assert_eq!(line("code"), "code never_heard_of", "{shown}");
    assert_eq!(line("advice"), "advice ask_the_moon", "{shown}");
    assert!(shown.contains(beside), "{shown}");
    let explained = shop.tieout(&["explain", "1"]).await.ended(0).stdout;
    assert!(explained.contains(beside), "{explained}");
}

/// What the card network advises stands beside it, as a code and no more.
async fn the_networks_advice_is_shown_beside_the_psps(engine: Engine) {
    let mut shop = Shop::open_with(engine, Words::default().patient()).await;
    shop.background(30).await;
    let seed = Payment::stuck(1).captured().standing(Situation::Declined);
    let seed = Seed { decline_code: Some("never_heard_of".to_owned()), ..seed };
    let network = json!({ "last_payment_error": { "network_advice_code": "02" } });
    let overlay = network.as_object().unwrap().clone();
    shop.plant(vec![Seed { overlay, ..seed }]);
    shop.insert(&[Payment::stuck(1)]).await;
    assert_eq!(shop.run().await.verdict(1), "review decline_unknown");
    let beside = "(failed: never_heard_of, network advice 02)";
    let shown = shop.tieout(&["cases", "show", "C-1"]).await.ended(0).stdout;
    let is_line = |line: &str| line.split_whitespace().eq(["network", "02"]);
    assert!(shown.lines().any(is_line) && shown.contains(beside), "{shown}");
    let explained = shop.tieout(&["explain", "1"]).await.ended(0).stdout;
    assert!(explained.contains(beside), "{explained}");
}

/// An intent of a status that the shop's own rule calls failed.
fn strange(row: &Payment, situation: Situation) -> Seed {
    let overlay = json!({ "status": "frob" }).as_object().unwrap().clone();
    Seed { overlay, ..row.captured().standing(situation) }
}

/// No rule ends what the PSP says can still be captured, whatever its status is called.
async fn no_rule_ends_what_can_still_be_captured(engine: Engine) {
    let mut shop = Shop::open_with(engine, Words::default().patient()).await;
    shop.background(30).await;
    let own = "[[rule]]\nid = \"own.frob\"\npsp = \"stripe\"\nwhen = \"unknown_status\"\n\
               kind = [\"charge\"]\nstatus = [\"frob\"]\noutcome = \"failed\"\n\
               means = \"it never comes back\"\nsource = \"x\"\n\
               example = { status = \"frob\", kind = \"charge\" }\n";
    std::fs::write(shop.folder().join("own.toml"), own).unwrap();
    let config = shop.folder().join("tieout.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{text}\n[rules]\nfiles = [\"own.toml\"]\n")).unwrap();
    let (held, gone) = (Payment::stuck(1), Payment::stuck(2));
    shop.plant(vec![
        strange(&held, Situation::RequiresCapture),
        strange(&gone, Situation::RequiresAction),
    ]);
    shop.insert(&[held, gone]).await;
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "review authorized_uncaptured", "{}", ran.stdout);
    let mut ended = ran.verdict(2);
    for _look in 0..9 {
        if !ended.starts_with("wait ") {
            break;
        }
        shop.a_span_passes().await;
        ended = shop.run_with(&["--id", "2"]).await.verdict(2);
    }
    assert_eq!(ended, "failed rule", "nothing can be captured of this one");
    assert_eq!(shop.status(1).await, "processing");
    let shown = shop.tieout(&["cases", "show", "C-1"]).await.ended(0).stdout;
    let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = |line: &str| line.split_whitespace().eq(["capturable", "100.01", "EUR"]);
    assert!(shown.lines().any(line), "{shown}");
    for words in [
        "and pi_1 can still capture 100.01 EUR",
        "amount 100.01 EUR, 100.01 EUR can still be captured",
        "suggested capture or cancel it at the PSP before the authorisation ends",
    ] {
        assert!(flat.contains(words), "{words}: {shown}");
    }
    let explained = shop.tieout(&["explain", "1"]).await.ended(0).stdout;
    let flat = explained.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("100.01 EUR can still be captured"), "{explained}");
    shop.check(false).await;
}

async fn a_case_becomes_a_rule_and_the_rule_settles_it(engine: Engine) {
    let shop = shop_with_an_unknown_code(engine).await;
    let cases = shop.tieout(&["cases", "list", "--json"]).await.ended(0).of_type("case");
    assert_eq!(cases.len(), 1, "{cases:?}");
    let case = cases[0]["case_id"].as_str().unwrap().to_owned();
    let shown = shop.tieout(&["cases", "show", &case]).await.ended(0).stdout;
    let shown: Vec<&str> = shown.split_whitespace().collect();
    let next = format!("tieout rules new --from-case {case}");
    assert!(shown.join(" ").contains(&next), "{shown:?}");
    let draft = shop.tieout(&["rules", "new", "--from-case", &case]).await.ended(0).stdout;
    let own = shop.folder().join("own.toml");
    std::fs::write(&own, &draft).unwrap();
    shop.tieout(&["rules", "check", "own.toml"]).await.ended(0);
    // As it is begun it says what the case is: a person's.
    let changes = of_cases(&diff(&shop, &[]).await);
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert_eq!(changes[0]["today"]["reason"], "decline_unknown");
    assert_eq!(changes[0]["other"]["outcome"], "review");
    assert_eq!(changes[0]["other"]["rule"], "own.failure.never_heard_of");

    let edited = draft.replace("outcome = \"review\"", "outcome = \"failed\"");
    assert_ne!(edited, draft);
    std::fs::write(&own, edited).unwrap();
    let would_be = |ran: &Ran| {
        let changes = of_cases(ran);
        assert_eq!(changes.len(), 1, "{changes:?}");
        assert_eq!(changes[0]["case_id"], case.as_str());
        assert_eq!(changes[0]["txn_id"], "2");
        let other = &changes[0]["other"];
        assert_eq!(other["rule"], "own.failure.never_heard_of");
        format!("{} {}", other["outcome"].as_str().unwrap(), other["reason"].as_str().unwrap())
    };
    // The gates hold for what is only said, too: the first look was within the call's time.
    let early = diff(&shop, &[]).await;
    assert_eq!(would_be(&early), "wait failure_not_final");
    assert_eq!(of_cases(&early)[0]["other"]["once_asked_afresh"], "failed");
    assert_eq!(of_cases(&early)[0]["today"]["once_asked_afresh"], Value::Null);
    let screen = shop.tieout(&["rules", "diff", "own.toml"]).await.ended(0).stdout;
    let screen = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(screen.contains(" → failed · declined_final, once asked afresh "), "{screen}");
    let mut looks = 0;
    loop {
        let ran = diff(&shop, &[]).await;
        if would_be(&ran) == "failed declined_final" {
            let end = &ran.of_type("rules_diff")[0];
            assert_eq!((&end["cases"], &end["cases_changed"]), (&1.into(), &1.into()));
            assert!(end["decisions"].as_u64().unwrap() > 2, "{end}");
            break;
        }
        looks += 1;
        assert!(looks < 9, "{}", ran.stdout);
        shop.a_span_passes().await;
        assert_eq!(shop.run_with(&["--id", "2"]).await.verdict(2), "review decline_unknown");
    }
    let screen = shop.tieout(&["rules", "diff", "own.toml"]).await.ended(0).stdout;
    assert!(screen.contains(&format!("{case}  payments/2  100.02 EUR  ")), "{screen}");
    assert!(screen.contains("    needs a person · decline_unknown → failed · declined_final\n"));
    assert!(screen.contains("nothing was moved"), "{screen}");

    let config = shop.folder().join("tieout.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{text}\n[rules]\nfiles = [\"own.toml\"]\n")).unwrap();
    assert_eq!(of_cases(&diff(&shop, &[]).await).len(), 0, "it is in force");
    assert_eq!(shop.run_with(&["--id", "2"]).await.verdict(2), "failed declined_final");
    let stats = shop.tieout(&["rules", "stats", "--json"]).await.ended(0);
    events::check(&stats.stdout);
    let own = |stat: &&Value| stat["rule"] == "own.failure.never_heard_of";
    let stats = stats.of_type("rule_stats");
    let own = stats.iter().find(own).unwrap_or_else(|| panic!("{stats:?}"));
    assert_eq!((&own["in_force"], &own["rows"]), (&true.into(), &1.into()));
    assert!(stats.iter().any(|stat| stat["rule"].is_null() && stat["reason"] == "decline_unknown"));
    shop.check(false).await;
}

async fn what_is_not_shown_is_counted(engine: Engine) {
    let shop = shop_with_an_unknown_code(engine).await;
    let rule = OWN.replace("call_issuer", "never_heard_of").replace("retryable", "wait");
    let rule = rule.replace("not_before = \"2h\"\nlimit = 2\n", "");
    std::fs::write(shop.folder().join("own.toml"), rule).unwrap();
    let ran = diff(&shop, &["--limit", "0"]).await;
    assert_eq!(ran.of_type("rule_change").len(), 0);
    let end = &ran.of_type("rules_diff")[0];
    assert_eq!(end["cases_changed"], 1, "{end}");
    assert_eq!(end["changes"][0]["from"], "needs a person · decline_unknown");
    assert_eq!(end["changes"][0]["to"], "still processing · rule");
    // Rows that were decided before that are not replayed; open cases always are.
    let late = diff(&shop, &["--since", "1s"]).await;
    assert_eq!(late.of_type("rules_diff")[0]["cases"], 1);
    shop.tieout(&["rules", "diff", "own.toml", "--since", "soon"]).await.ended(2);
    shop.tieout(&["rules", "new", "--from-case", "C-999"]).await.ended(2);
}

/// A rule begun from a code that reads as a family, or from none, would take others with it.
async fn no_rule_is_begun_that_takes_more_than_the_case(engine: Engine) {
    let mut shop = Shop::open_with(engine, Words::default().patient()).await;
    shop.background(30).await;
    let rows = [Payment::stuck(1), Payment::stuck(2)];
    let declined = |(row, code): (&Payment, &str)| Seed {
        decline_code: Some(code.to_owned()),
        ..row.captured().standing(Situation::Declined)
    };
    shop.plant(rows.iter().zip(["never*", ""]).map(declined).collect());
    shop.insert(&rows).await;
    shop.run().await.ended(0);
    for (row, why) in [("1", "`never*`, which a rule would read as a family"), ("2", "no code")] {
        let case = format!("select 'C-' || number from tieout_cases where subject = '{row}'");
        let case = shop.texts(&case).await.join("");
        let ran = shop.tieout(&["rules", "new", "--from-case", &case]).await.ended(2);
        assert!(ran.stderr.contains(why), "{}", ran.stderr);
        assert_eq!(ran.stdout, "");
    }
}

/// A bank's code is told in words, too, of a row that was paid before.
async fn what_came_back_later_is_told_in_words(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[at_bank(4, "paid")]).await;
    let bookings = [credit(10_004, "pay_4"), returned(10_004, "pay_4", "AC04")];
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &bookings), 0).await;
    shop.run().await;
    assert_eq!(shop.open_cases().await, ["4 late_contradiction"]);
    let shown = shop.tieout(&["cases", "show", "C-1"]).await.ended(0).stdout;
    let told = "means     AC04: the account is closed (rule bank.returned.AC04)";
    assert!(shown.lines().any(|line| line == told), "{shown}");
    let own = "[[rule]]\nid = \"own.closed\"\npsp = \"files\"\nwhen = \"returned\"\n\
               code = [\"AC04\"]\noutcome = \"review\"\nmeans = \"they moved banks\"\n\
               source = \"x\"\nexample = { code = \"AC04\" }\n";
    std::fs::write(shop.folder().join("own.toml"), own).unwrap();
    let config = shop.folder().join("tieout.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{text}\n[rules]\nfiles = [\"own.toml\"]\n")).unwrap();
    let shown = shop.tieout(&["cases", "show", "C-1"]).await.ended(0).stdout;
    assert!(shown.contains("AC04: they moved banks (rule own.closed)"), "{shown}");
}

/// The case of a file says by which commands it ends.
async fn a_files_case_says_what_ends_it(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[at_bank(4, "processing")]).await;
    let bad = camt("camt.053", "S1", &[credit(10_004, "pay_4")]).replace("1100.04", "1300.04");
    bring(&shop, "bad.xml", &bad, 3).await;
    let shown = shop.tieout(&["cases", "show", "C-1"]).await.ended(0).stdout;
    let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("next `tieout files quarantine` says what is wrong"), "{shown}");
    assert!(flat.contains("tieout files release 1 --reason TEXT"), "{shown}");
    assert!(!flat.contains("suggested"), "{shown}");
}

/// A bank's code says what it means, and decides nothing of money that came back.
async fn what_came_back_is_told_in_words(engine: Engine) {
    let shop = shop_with_bank(engine).await;
    shop.insert(&[at_bank(4, "processing")]).await;
    let bookings = [credit(10_004, "pay_4"), returned(10_004, "pay_4", "AC04")];
    bring(&shop, "stmt.xml", &camt("camt.053", "S1", &bookings), 0).await;
    assert_eq!(shop.run().await.verdict(4), "review returned");
    let why = shop.tieout(&["explain", "4"]).await.ended(0).stdout;
    let told = "came back (AC04); rule bank.returned.AC04: the account is closed";
    assert!(why.contains(told), "{why}");
    assert_eq!(shop.status(4).await, "processing");
    shop.check(false).await;
}

on_both_databases!(
    a_case_becomes_a_rule_and_the_rule_settles_it,
    advice_is_shown_beside_the_code,
    the_networks_advice_is_shown_beside_the_psps,
    no_rule_ends_what_can_still_be_captured,
    what_is_not_shown_is_counted,
    what_came_back_is_told_in_words,
    what_came_back_later_is_told_in_words,
    no_rule_is_begun_that_takes_more_than_the_case,
    a_files_case_says_what_ends_it,
);
