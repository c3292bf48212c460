//! `files quarantine` and `files release`, as the built program: what a person lets count, counts
//! once, and what was reported before stays as it was.

use sha2::{Digest, Sha256};

use super::fetching::{folder, shop, zipped};
use super::files::{Booking, at_bank, camt, credit, debit, with_bank};
use crate::run::shop::{Engine, Ran, Shop, at_text, on_both_databases, tieout_now};
use crate::support::events;
use crate::support::golden::golden;

on_both_databases!(
    a_quarantined_file_is_released_and_decides,
    a_file_is_released_in_the_encoding_that_was_said,
    a_correction_is_shown_and_only_its_difference_counts,
    a_case_is_decided_again_without_what_a_correction_took_out,
    money_that_did_not_come_back_after_all_leaves_no_case,
    a_row_that_was_paid_after_its_case_is_told_that_its_line_is_gone,
    each_file_of_an_archive_is_released_by_itself,
    what_does_not_tie_takes_the_place_of_nothing_that_does,
    what_cannot_be_carried_out_is_refused_and_said,
    an_older_issue_is_refused_once_a_later_one_counts,
    a_word_waits_for_a_run_of_its_account,
    a_word_waits_for_a_run_of_the_machine_that_has_the_bytes,
    a_row_is_due_once_the_word_is_carried_out,
    a_file_without_sides_cannot_be_let_count,
    a_file_of_no_line_cannot_be_let_count,
    of_issues_that_come_at_once_the_one_that_waited_came_later,
);

fn put(shop: &Shop, name: &str, text: &str) {
    std::fs::write(shop.folder().join(name), text).unwrap();
}

/// A screen's text without its line breaks.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

async fn ingest(shop: &Shop, name: &str, code: i32) {
    shop.tieout(&["ingest", name, "--account", "bank"]).await.ended(code);
}

async fn a_quarantined_file_is_released_and_decides(engine: Engine) {
    let mut shop = Shop::open_with(engine, with_bank()).await;
    shop.insert(&[at_bank(1, "processing"), at_bank(2, "processing")]).await;
    let bookings = [credit(10_001, "pay_1"), credit(10_002, "pay_2")];
    let bad = camt("camt.053", "S1", &bookings).replace("1200.03", "1300.03");
    put(&shop, "bad.xml", &bad);
    put(&shop, "notes.xml", "dear all");
    ingest(&shop, "bad.xml", 3).await;
    ingest(&shop, "notes.xml", 3).await;
    // The path is gone, the bytes are not.
    std::fs::remove_file(shop.folder().join("bad.xml")).unwrap();
    let listed = shop.tieout(&["files", "quarantine"]).await.ended(0);
    let date = regex::Regex::new(r"20\d\d-\d\d-\d\dT[\d:]+Z").unwrap();
    golden("fixtures/cli", "files_quarantine", &date.replace_all(&listed.stdout, "[time]"));
    let listed = shop.tieout(&["files", "quarantine", "--json"]).await.ended(0);
    events::check(&listed.stdout);
    assert_eq!(listed.of_type("settlement_file")[1]["problems"][0]["field"], "closing balance");
    let before = shop.dump().await;
    shop.tieout(&["files", "release", "1", "--reason", "x", "--dry-run"]).await.ended(0);
    shop.tieout(&["files", "release", "1", "--reason", " "]).await.ended(2);
    shop.tieout(&["files", "release", "9", "--reason", "x"]).await.ended(2);
    let none = shop.tieout(&["files", "release", "2", "--reason", "x"]).await.ended(3);
    assert!(none.stderr.contains("no format knows it"), "{}", none.stderr);
    assert_eq!(shop.dump().await, before);
    if engine == Engine::Postgres {
        shop.under_role("people").await;
    }
    let words = ["files", "release", "1", "--reason", "the bank confirms", "--json"];
    let done = shop.tieout(&words).await.ended(0);
    events::check(&done.stdout);
    let noted = &done.of_type("released")[0];
    assert_eq!([&noted["changed"], &noted["waits"]], [true, true]);
    let again = shop.tieout(&words).await.ended(0);
    let noted = &again.of_type("released")[0];
    assert_eq!([&noted["changed"], &noted["waits"]], [false, true]);
    let said = flat(&shop.tieout(&words[..5]).await.ended(0).stdout);
    let waits = ": the bank confirms; the next run carries it out; nothing was changed";
    assert!(said.contains(waits), "{said}");
    for words in [&["files", "show", "1"][..], &["files", "quarantine"]] {
        let shown = shop.tieout(words).await.ended(0).stdout;
        assert!(shown.contains("released    it was released"), "{shown}");
    }
    // The word alone lets nothing count.
    assert_eq!(shop.count("tieout_lines").await, 0);
    assert_eq!(shop.open_cases().await, ["1 file_quarantined", "2 file_quarantined"]);
    by(&mut shop, "run").await;
    shop.run_with(&["--dry-run"]).await;
    assert_eq!(shop.count("tieout_lines").await, 0, "a rehearsal carries nothing out");
    let ran = shop.run().await.ended(0);
    let carried = ran.of_type("released");
    assert_eq!(carried.len(), 1, "{carried:?}");
    assert_eq!((&carried[0]["added"], &carried[0]["waits"]), (&2.into(), &false.into()));
    assert_eq!(carried[0]["why"], "the bank confirms");
    assert_eq!(shop.open_cases().await, ["2 file_quarantined"]);
    assert_eq!(ran.verdict(1), "succeeded settled");
    assert_eq!(ran.verdict(2), "succeeded settled");
    let shown = shop.tieout(&["files", "show", "1"]).await.ended(0).stdout;
    assert!(shown.contains("file 1: released\n"), "{shown}");
    assert!(shown.contains(": the bank confirms\n"), "{shown}");
    let lines = flat(&shop.tieout(&["files", "show", "1", "--lines"]).await.ended(0).stdout);
    let said = ": the bank confirms; the file itself does not prove these lines";
    assert!(lines.contains("released untied by ") && lines.contains(said), "{lines}");
    let explained = flat(&shop.tieout(&["explain", "1"]).await.ended(0).stdout);
    assert!(explained.contains("file 1 (bad.xml) does not tie; "), "{explained}");
    assert!(explained.contains(": the bank confirms"), "{explained}");
    put(&shop, "bad.xml", &bad);
    ingest(&shop, "bad.xml", 0).await;
    assert_eq!(shop.count("tieout_lines").await, 2);
    by(&mut shop, "people").await;
    let again = flat(&shop.tieout(&words[..5]).await.ended(0).stdout);
    assert!(again.contains(": the bank confirms; nothing was changed"), "{again}");
    by(&mut shop, "run").await;
    assert_eq!(shop.run().await.of_type("released").len(), 0, "it is carried out once");
    shop.check(false).await;
}

/// From here on the program is one of the roles, where the database has roles.
async fn by(shop: &mut Shop, role: &str) {
    if shop.engine == Engine::Postgres {
        shop.under_role(role).await;
    }
}

/// The report of a run, built once more, file by file.
async fn report(shop: &Shop, run_id: &str, at: &str) -> Vec<(String, String)> {
    shop.tieout(&["report", "build", run_id, "--report-dir", at]).await.ended(0);
    let root = shop.folder().join(at);
    let of = shop.files().into_iter().filter(|file| file.starts_with(&root));
    let text = |file: &std::path::Path| std::fs::read_to_string(file).unwrap();
    of.map(|file| (file.strip_prefix(&root).unwrap().display().to_string(), text(&file))).collect()
}

/// A person's word cannot say of each line which way its money went.
async fn a_file_without_sides_cannot_be_let_count(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank().slow_calls()).await;
    shop.insert(&[at_bank(1, "processing")]).await;
    let day = chrono::Utc::now().date_naive().pred_opt().unwrap();
    let text = format!(
        "Date;Amount;Currency;Reference;Text\n{day};100.01;EUR;pay_1;paid out\n\
         {day};7.00;EUR;x;y\n"
    );
    put(&shop, "bank.csv", &text);
    ingest(&shop, "bank.csv", 3).await;
    for more in [&["--dry-run"][..], &[]] {
        let words = [&["files", "release", "1", "--reason", "x"][..], more].concat();
        let refused = shop.tieout(&words).await.ended(3);
        assert!(refused.stderr.contains("shows which way money went"), "{}", refused.stderr);
    }
    assert_eq!(shop.run().await.ended(0).verdict(1), "wait within_grace");
    assert_eq!(shop.open_cases().await, ["1 file_quarantined"]);
    shop.check(false).await;
}

async fn a_file_of_no_line_cannot_be_let_count(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank()).await;
    let text = camt("camt.053", "S1", &[credit(10_001, "pay_1")]);
    let sides = "<CdtDbtInd>CRDT</CdtDbtInd>";
    let (head, entry) = text.split_once("<Ntry>").unwrap();
    assert!(entry.contains(sides), "{entry}");
    put(&shop, "open.xml", &format!("{head}<Ntry>{}", entry.replace(sides, "")));
    let both = camt("camt.053", "S2", &[credit(10_002, "pay_2"), credit(500, "x")]);
    put(&shop, "untied.xml", &both.replace("1105.02", "1300.03"));
    ingest(&shop, "open.xml", 3).await;
    ingest(&shop, "untied.xml", 3).await;
    let before = shop.dump().await;
    for more in [&["--dry-run"][..], &[]] {
        let words = [&["files", "release", "1", "--reason", "x"][..], more].concat();
        let refused = shop.tieout(&words).await.ended(3);
        assert!(refused.stderr.contains("no line that can be read"), "{}", refused.stderr);
    }
    let words = ["files", "release", "2", "--reason", "x", "--dry-run"];
    let plan = shop.tieout(&words).await.ended(0).stdout;
    assert!(plan.contains("2 lines of it would be loaded, marked as untied"), "{plan}");
    assert!(plan.contains("EUR  in 105.02  out 0.00"), "{plan}");
    assert_eq!(shop.dump().await, before);
    // A word that was noted by an earlier version is refused by the run.
    if engine == Engine::Postgres {
        return shop.check(false).await;
    }
    let note = format!(
        "insert into tieout_releases (file_id, what, at, by_whom, why, state) \
         values (1, 'quarantined', '{}', 'mara', 'x', 'waiting')",
        at_text(0)
    );
    shop.raw.execute(&note).await;
    let ran = shop.run().await.ended(3);
    let ended = &ran.of_type("released")[0];
    assert_eq!(ended["refused"], "it has no line that can be read");
    assert_eq!(shop.open_cases().await, ["1 file_quarantined", "2 file_quarantined"]);
    shop.check(false).await;
}

/// A server gives a file its number before it finds out that another issue is being loaded.
async fn of_issues_that_come_at_once_the_one_that_waited_came_later(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank()).await;
    shop.insert(&[at_bank(1, "processing"), at_bank(2, "processing")]).await;
    let issue = |id: i64| camt("camt.053", "S1", &[credit(10_000 + id, &format!("pay_{id}"))]);
    put(&shop, "other.xml", &camt("camt.053", "S0", &[credit(7, "x")]));
    put(&shop, "1.xml", &issue(1));
    put(&shop, "2.xml", &issue(2));
    ingest(&shop, "other.xml", 0).await;
    if engine == Engine::Postgres {
        let mut held = shop.begin_holding(0).await;
        let sha256: String =
            Sha256::digest(issue(1)).iter().map(|byte| format!("{byte:02x}")).collect();
        let name = format!(
            "insert into tieout_file_names (source, name, raw_sha256, raw_bytes, file_id, \
             first_seen_at, run_id) select 'local', '1.xml', '{sha256}', 1, id, now(), run_id \
             from tieout_files"
        );
        held.try_execute(&name).await.unwrap();
        let first = ["ingest", "1.xml", "--account", "bank"];
        let waiting = shop.program(&first).spawn().unwrap();
        shop.raw.until_a_lock_is_waited_for().await;
        ingest(&shop, "2.xml", 0).await;
        held.try_execute("rollback").await.unwrap();
        Ran::once_over(waiting).await.ended(3);
        let files = "select name from tieout_files order by id";
        assert_eq!(shop.texts(files).await, ["other.xml", "1.xml", "2.xml"]);
    } else {
        ingest(&shop, "2.xml", 0).await;
        ingest(&shop, "1.xml", 3).await;
    }
    assert_eq!(shop.run().await.ended(0).verdict(2), "succeeded settled");
    let held = "select cast(id as text) from tieout_files where name = '1.xml'";
    let held = shop.texts(held).await.remove(0);
    shop.tieout(&["files", "release", &held, "--reason", "confirmed"]).await.ended(0);
    shop.due_now().await;
    let ran = shop.run().await.ended(0);
    assert_eq!(ran.verdict(1), "succeeded settled");
    assert_eq!(ran.of_type("released")[0]["removed"], 1);
    let reason = "late_contradiction";
    assert!(shop.open_cases().await.iter().any(|case| case.ends_with(reason)), "2 lost its line");
    shop.check(false).await;
}

/// As it was read when it came: what a person said of it then.
async fn a_file_is_released_in_the_encoding_that_was_said(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank()).await;
    let day = chrono::Utc::now().date_naive().format("%y%m%d").to_string();
    // The letter is \u{105} in the one that is said, and a sign in the one that is taken for it.
    let text = format!(
        ":20:X\n:25:12030000/0000202051\n:28C:7/1\n:60F:C{day}EUR1000,00\n\
         :61:{day}C1,00NTRFNONREF\n:86:166?00SEPA?20EREF+p-@-1?21SVWZ+x\n\
         :62F:C{day}EUR1002,00\n-"
    );
    let bytes: Vec<u8> = text.bytes().map(|byte| if byte == b'@' { 0xb1 } else { byte }).collect();
    std::fs::write(shop.folder().join("x.sta"), bytes).unwrap();
    let words = ["ingest", "x.sta", "--account", "bank", "--encoding"];
    let refused = shop.tieout(&[&words[..], &["nix"]].concat()).await.ended(2);
    assert!(refused.stderr.contains("`nix` is no encoding"), "{}", refused.stderr);
    shop.tieout(&[&words[..], &["iso-8859-2"]].concat()).await.ended(3);
    let release = ["files", "release", "1", "--reason", "the bank confirms"];
    shop.tieout(&release).await.ended(0);
    shop.run().await.ended(0);
    assert_eq!(shop.texts("select tag from tieout_lines").await, ["p-\u{105}-1"]);
}

async fn a_correction_is_shown_and_only_its_difference_counts(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank()).await;
    let rows = [1, 2, 3, 4].map(|id| at_bank(id, "processing"));
    shop.insert(&rows).await;
    let first = [credit(10_001, "pay_1"), credit(10_002, "pay_2"), credit(10_003, "pay_3")];
    put(&shop, "first.xml", &camt("camt.053", "S1", &first));
    ingest(&shop, "first.xml", 0).await;
    let ran = shop.run().await.ended(0);
    assert_eq!(ran.verdict(3), "succeeded settled");
    let run_id = ran.of_type("run_end")[0]["run_id"].as_str().unwrap().to_owned();
    let built = report(&shop, &run_id, "before").await;
    assert!(built.len() > 3, "{built:?}");
    // The bank takes one back, puts another in, and changes an amount.
    let second = [credit(10_001, "pay_1"), credit(10_004, "pay_4"), credit(9_000, "pay_3")];
    put(&shop, "second.xml", &camt("camt.053", "S1", &second));
    ingest(&shop, "second.xml", 3).await;
    let before = shop.dump().await;
    let words = ["files", "release", "2", "--reason", "sent again"];
    let plan = shop.tieout(&[&words[..], &["--dry-run"]].concat()).await.ended(0);
    golden("fixtures/cli", "files_release_plan", &plan.stdout);
    assert_eq!(shop.dump().await, before);
    let done = shop.tieout(&[&words[..], &["--json"]].concat()).await.ended(0);
    events::check(&done.stdout);
    let difference = &done.of_type("settlement_difference")[0];
    assert_eq!(difference["same"], 1);
    assert_eq!(difference["removed"].as_array().unwrap().len(), 2);
    let released = &done.of_type("released")[0];
    assert_eq!((&released["added"], &released["removed"]), (&2.into(), &2.into()));
    let again = flat(&shop.tieout(&words).await.ended(0).stdout);
    assert!(again.contains("the next run carries it out; nothing was changed"), "{again}");
    assert_eq!(shop.open_cases().await, ["2 statement_corrected"]);
    shop.due_now().await;
    let ran = shop.run().await;
    let carried = &ran.of_type("released")[0];
    assert_eq!((&carried["added"], &carried["removed"]), (&2.into(), &2.into()));
    assert_eq!(ran.verdict(4), "succeeded settled", "what was added");
    assert_eq!(ran.verdict(3), "review reference_mismatch", "it was paid by a line that is gone");
    assert_eq!(ran.verdict(1), "not decided", "what both have");
    let says = "nothing says any more that it was paid";
    assert_eq!(ran.verdict(2), "review late_contradiction", "{says}");
    assert_eq!(shop.open_cases().await, ["2 late_contradiction", "3 reference_mismatch"]);
    assert_eq!(shop.status(2).await, "paid", "no row is changed by what is gone");
    shop.due_now().await;
    assert!(shop.run().await.verdicts().is_empty(), "it is said once");
    assert_eq!(report(&shop, &run_id, "after").await, built, "what was reported stays");
    shop.check(false).await;
}

/// What is not there any more is nothing to refund, and keeps nobody waiting: while the account is
/// paused its case says so, and from then on the row is decided by what is left.
async fn a_case_is_decided_again_without_what_a_correction_took_out(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank()).await;
    shop.insert(&[1, 2, 3].map(|id| at_bank(id, "processing"))).await;
    put(&shop, "a.xml", &camt("camt.053", "S1", &[credit(10_001, "pay_1")]));
    ingest(&shop, "a.xml", 0).await;
    assert_eq!(shop.run().await.verdict(1), "succeeded settled");
    let own = || [credit(10_002, "pay_2"), credit(777, "else")].into_iter();
    let too_much = [credit(10_001, "pay_1"), credit(10_002, "pay_2"), credit(9_000, "pay_3")];
    let all: Vec<_> = too_much.into_iter().chain(own()).collect();
    put(&shop, "b.xml", &camt("camt.053", "S2", &all));
    ingest(&shop, "b.xml", 0).await;
    shop.due_now().await;
    shop.run().await;
    let cases = ["1 duplicate_capture", "2 duplicate_capture", "3 amount_mismatch"];
    assert_eq!(shop.open_cases().await, cases);
    put(&shop, "c.xml", &camt("camt.053", "S2", &own().collect::<Vec<_>>()));
    ingest(&shop, "c.xml", 3).await;
    shop.tieout(&["files", "release", "3", "--reason", "confirmed"]).await.ended(0);
    shop.tieout(&["pause", "bank", "--why", "a test"]).await.ended(0);
    shop.run().await;
    let said = "select text from tieout_cases where state = 'open' and subject = '1'";
    let said = shop.texts(said).await.remove(0);
    assert!(said.contains("a correction took line F2:1 out since"), "{said}");
    shop.tieout(&["resume", "bank"]).await.ended(0);
    let rehearsed = shop.run_with(&["--dry-run"]).await;
    let ran = shop.run().await;
    assert_eq!(rehearsed.verdict(2), "succeeded settled");
    assert_eq!(rehearsed.verdicts(), ran.verdicts());
    assert_eq!(ran.verdict(2), "succeeded settled");
    // Nothing is there of the third, and nothing proves it absent: a person has it as before.
    assert_eq!(shop.open_cases().await, ["3 amount_mismatch"]);
    let said = shop.texts("select text from tieout_cases where state = 'open'").await.remove(0);
    assert!(said.contains("a correction took line F2:3 out since"), "{said}");
    assert!(shop.run().await.verdicts().is_empty(), "it is decided once");
    shop.check(false).await;
}

/// A debit by which a payment was told to have come back is no row's; its correction is the row's.
async fn money_that_did_not_come_back_after_all_leaves_no_case(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank()).await;
    shop.insert(&[at_bank(1, "processing"), at_bank(2, "paid")]).await;
    let paid = || [credit(10_001, "pay_1"), credit(10_002, "pay_2")].into_iter();
    let back = [debit(10_001, "pay_1"), debit(10_002, "pay_2")];
    put(&shop, "a.xml", &camt("camt.053", "S1", &paid().chain(back).collect::<Vec<_>>()));
    ingest(&shop, "a.xml", 0).await;
    assert_eq!(shop.run().await.verdict(1), "review returned");
    shop.run().await;
    assert_eq!(shop.open_cases().await, ["1 returned", "2 late_contradiction"]);
    put(&shop, "b.xml", &camt("camt.053", "S1", &paid().collect::<Vec<_>>()));
    ingest(&shop, "b.xml", 3).await;
    shop.tieout(&["files", "release", "2", "--reason", "confirmed"]).await.ended(0);
    assert_eq!(shop.run().await.verdict(1), "succeeded settled");
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    assert!(shop.run().await.verdicts().is_empty(), "it is decided once");
    shop.check(false).await;
}

/// Its line had a case first, and keeps the reason of that one.
async fn a_row_that_was_paid_after_its_case_is_told_that_its_line_is_gone(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank()).await;
    shop.insert(&[1, 2, 3].map(|id| at_bank(id, "processing"))).await;
    let own = || [credit(9_000, "pay_1"), credit(10_002, "pay_2"), credit(10_003, "pay_3")];
    let issue = |more: Vec<Booking>| {
        let all: Vec<Booking> = own().into_iter().chain(more).collect();
        camt("camt.053", "S1", &all)
    };
    put(&shop, "a.xml", &issue(vec![credit(10_002, "pay_2"), debit(10_003, "pay_3")]));
    ingest(&shop, "a.xml", 0).await;
    shop.run().await;
    let cases = ["1 amount_mismatch", "2 duplicate_capture", "3 returned"];
    assert_eq!(shop.open_cases().await, cases);
    shop.raw.execute("update payments set amount = 9000 where id = 1").await;
    put(&shop, "b.xml", &issue(vec![credit(1, "else")]));
    ingest(&shop, "b.xml", 3).await;
    shop.tieout(&["files", "release", "2", "--reason", "confirmed"]).await.ended(0);
    shop.run().await;
    let paid = "select status from payments order by id";
    assert_eq!(shop.texts(paid).await, ["paid"; 3]);
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    shop.run().await;
    assert_eq!(shop.open_cases().await, Vec::<String>::new(), "what was gone before is no news");
    put(&shop, "c.xml", &camt("camt.053", "S1", &[credit(1, "else")]));
    ingest(&shop, "c.xml", 3).await;
    shop.tieout(&["files", "release", "3", "--reason", "confirmed"]).await.ended(0);
    let ran = shop.run().await;
    for id in [1, 2, 3] {
        assert_eq!(ran.verdict(id), "review late_contradiction", "row {id}");
    }
    assert_eq!(shop.texts(paid).await, ["paid"; 3]);
    assert!(shop.run().await.verdicts().is_empty(), "it is told once");
    // It is back, and gone once more.
    put(&shop, "d.xml", &issue(vec![credit(2, "else")]));
    ingest(&shop, "d.xml", 3).await;
    shop.tieout(&["files", "release", "4", "--reason", "confirmed"]).await.ended(0);
    shop.run().await;
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    put(&shop, "e.xml", &camt("camt.053", "S1", &[credit(3, "else")]));
    ingest(&shop, "e.xml", 3).await;
    shop.tieout(&["files", "release", "5", "--reason", "confirmed"]).await.ended(0);
    let ran = shop.run().await;
    for id in [1, 2, 3] {
        assert_eq!(ran.verdict(id), "review late_contradiction", "row {id}");
    }
    shop.check(false).await;
}

async fn each_file_of_an_archive_is_released_by_itself(engine: Engine) {
    let inbox = tempfile::tempdir().unwrap();
    let bad = |id: &str, n: i64| {
        let text = camt("camt.053", id, &[credit(10_000 + n, &format!("pay_{n}"))]);
        text.replace(&format!("1100.0{n}"), "1234.00")
    };
    let (one, two) = (bad("S1", 1), bad("S2", 2));
    let good = camt("camt.053", "S3", &[credit(10_003, "pay_3")]);
    let files = [("1.xml", one.as_str()), ("2.xml", &two), ("3.xml", &good)];
    std::fs::write(inbox.path().join("all.zip"), zipped(&files)).unwrap();
    let shop = shop(engine, &folder("inbox", inbox.path(), "archive = 'done'")).await;
    shop.insert(&[at_bank(1, "processing"), at_bank(2, "processing")]).await;
    let ran = shop.run().await.ended(3);
    let note = &ran.of_type("fetched")[0];
    assert_eq!([&note["loaded"], &note["quarantined"], &note["archived"]], [1, 2, 0]);
    assert_eq!(shop.open_cases().await, ["1 file_quarantined", "2 file_quarantined"]);
    let kept = || {
        let root = shop.folder().join("spool");
        shop.files().into_iter().filter(|file| file.starts_with(&root)).count()
    };
    assert_eq!(kept(), 1);
    put(&shop, "known.xml", &good);
    for (file, left) in [("1", 1), ("2", 0)] {
        shop.tieout(&["files", "release", file, "--reason", "confirmed"]).await.ended(0);
        assert_eq!(kept(), 1, "the word alone reads nothing");
        ingest(&shop, "known.xml", 0).await;
        assert_eq!(kept(), left, "the bytes stay as long as one file needs them");
    }
    shop.due_now().await;
    let ran = shop.run().await.ended(0);
    assert_eq!(ran.verdict(1), "succeeded settled");
    assert_eq!(ran.verdict(2), "succeeded settled");
    assert_eq!(ran.of_type("fetched")[0]["archived"], 1, "all of it is committed now");
    assert_eq!(shop.open_cases().await, Vec::<String>::new());
    shop.check(false).await;
}

/// A file that was cut off says less than the whole one, and is no correction of it.
async fn what_does_not_tie_takes_the_place_of_nothing_that_does(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank()).await;
    shop.insert(&[at_bank(1, "processing"), at_bank(2, "processing")]).await;
    let whole = camt("camt.053", "S1", &[credit(10_001, "pay_1"), credit(10_002, "pay_2")]);
    let cut = camt("camt.053", "S1", &[credit(10_001, "pay_1")]).replace("1100.01", "1200.03");
    put(&shop, "whole.xml", &whole);
    put(&shop, "cut.xml", &cut);
    ingest(&shop, "whole.xml", 0).await;
    ingest(&shop, "cut.xml", 3).await;
    let words = ["files", "release", "2", "--reason", "x"];
    shop.tieout(&words).await.ended(0);
    let ran = shop.tieout(&["ingest", "whole.xml", "--account", "bank"]).await.ended(3);
    let said = flat(&ran.stdout);
    assert!(said.contains("released file 2: 1 line loaded, marked as untied; 1 of its"), "{said}");
    let said = "file 2 is released, and 1 of its statements are held";
    assert!(flat(&ran.stderr).contains(said), "{}", ran.stderr);
    assert_eq!(shop.open_cases().await, ["2 statement_corrected"]);
    let before = shop.dump().await;
    let rest = "1 line of a statement that does would count no more";
    for words in [&words[..], &[&words[..], &["--dry-run"]].concat()] {
        let refused = flat(&shop.tieout(words).await.ended(3).stderr);
        assert!(refused.contains(rest), "{refused}");
    }
    assert_eq!(shop.dump().await, before);
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "succeeded settled");
    assert_eq!(ran.verdict(2), "succeeded settled");
    shop.check(false).await;
}

/// A word whose file's bytes are gone, or are others, ends with the run that meets it: the file's
/// case says why, and nothing else is changed.
async fn what_cannot_be_carried_out_is_refused_and_said(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank()).await;
    let bad = camt("camt.053", "S1", &[credit(10_001, "pay_1")]).replace("1100.01", "1300.03");
    put(&shop, "bad.xml", &bad);
    let words = ["files", "release", "1", "--reason", "the bank confirms"];
    let kept = || {
        let root = shop.folder().join("spool");
        let mut files = shop.files().into_iter().filter(|file| file.starts_with(&root));
        files.next().expect("the quarantined file's bytes")
    };
    for (is_gone, says) in [(true, "any more"), (false, "is another file")] {
        ingest(&shop, "bad.xml", 3).await;
        shop.tieout(&words).await.ended(0);
        let place = kept();
        match is_gone {
            true => std::fs::remove_file(place).unwrap(),
            false => std::fs::write(place, bad.replace("pay_1", "pay_2")).unwrap(),
        }
        let ran = shop.run().await.ended(3);
        let refused = &ran.of_type("released")[0];
        assert_eq!(refused["changed"], false);
        assert!(refused["refused"].as_str().unwrap().contains(says), "{refused}");
        assert!(ran.stderr.contains("was not carried out"), "{}", ran.stderr);
        let case = shop.texts("select reason || ' ' || text from tieout_cases").await;
        assert!(case[0].starts_with("file_quarantined bad.xml stays quarantined: "), "{case:?}");
        assert!(case[0].contains(says), "{case:?}");
        assert_eq!(shop.count("tieout_lines").await, 0);
        let ran = shop.run().await;
        assert_eq!(ran.of_type("released").len(), 0, "it is said once");
    }
    // The same bytes again, and another word.
    shop.insert(&[at_bank(1, "processing")]).await;
    ingest(&shop, "bad.xml", 3).await;
    shop.tieout(&words).await.ended(0);
    let ran = shop.run().await.ended(0);
    assert_eq!(ran.verdict(1), "succeeded settled");
    let ended = "select state from tieout_releases order by number";
    assert_eq!(shop.texts(ended).await, ["refused", "refused", "carried_out"]);
    shop.check(false).await;
}

async fn an_older_issue_is_refused_once_a_later_one_counts(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank()).await;
    shop.insert(&[1, 2, 3].map(|id| at_bank(id, "processing"))).await;
    for (id, code) in [(1, 0), (2, 3), (3, 3)] {
        let bookings = [credit(10_000 + id, &format!("pay_{id}"))];
        put(&shop, &format!("{id}.xml"), &camt("camt.053", "S1", &bookings));
        ingest(&shop, &format!("{id}.xml"), code).await;
    }
    // Both words are said before either is carried out: the later issue's came first.
    for file in ["3", "2"] {
        shop.tieout(&["files", "release", file, "--reason", "sent again"]).await.ended(0);
    }
    let ran = shop.run().await.ended(3);
    assert_eq!(ran.verdict(3), "succeeded settled");
    assert_ne!(ran.verdict(2), "succeeded settled", "the bank has corrected that since");
    let ends = ran.of_type("released");
    assert_eq!([&ends[0]["file"], &ends[1]["file"]], [3, 2]);
    assert_eq!(ends[1]["refused"], "file 3 came later with the same, and counts");
    assert_eq!(shop.open_cases().await, ["2 statement_corrected"]);
    let before = shop.dump().await;
    for more in [&["--dry-run"][..], &[]] {
        let words = [&["files", "release", "2", "--reason", "x"], more].concat();
        let refused = shop.tieout(&words).await.ended(3);
        assert!(refused.stderr.contains("file 3 came later"), "{}", refused.stderr);
        assert!(refused.stdout.contains("statement 1 stays held: file 3"), "{}", refused.stdout);
    }
    assert_eq!(shop.dump().await, before);
    shop.check(false).await;
}

/// A run that is narrowed to another account leaves the word for one that is not.
async fn a_word_waits_for_a_run_of_its_account(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank()).await;
    shop.insert(&[at_bank(1, "processing")]).await;
    let bad = camt("camt.053", "S1", &[credit(10_001, "pay_1")]).replace("1100.01", "1300.03");
    put(&shop, "bad.xml", &bad);
    ingest(&shop, "bad.xml", 3).await;
    shop.tieout(&["files", "release", "1", "--reason", "confirmed"]).await.ended(0);
    shop.run_with(&["--psp", "shop"]).await;
    assert_eq!(shop.texts("select state from tieout_releases").await, ["waiting"]);
    assert_eq!(shop.count("tieout_lines").await, 0);
    let ran = shop.run_with(&["--psp", "bank"]).await.ended(0);
    assert_eq!(ran.verdict(1), "succeeded settled");
    shop.check(false).await;
}

async fn a_word_waits_for_a_run_of_the_machine_that_has_the_bytes(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank()).await;
    let bad = camt("camt.053", "S1", &[credit(10_001, "pay_1")]).replace("1100.01", "1300.03");
    put(&shop, "bad.xml", &bad);
    ingest(&shop, "bad.xml", 3).await;
    shop.change_runs("host = 'another'").await;
    let root = shop.folder().join("spool");
    std::fs::rename(&root, shop.folder().join("there")).unwrap();
    shop.tieout(&["files", "release", "1", "--reason", "confirmed"]).await.ended(0);
    for _again in 0..2 {
        let ran = shop.run().await.ended(3);
        assert!(ran.stderr.contains("its bytes were kept on another"), "{}", ran.stderr);
        assert_eq!(shop.texts("select state from tieout_releases").await, ["waiting"]);
    }
    // Brought in here it needs no other word.
    ingest(&shop, "bad.xml", 3).await;
    shop.insert(&[at_bank(1, "processing")]).await;
    let ran = shop.run().await.ended(0);
    assert_eq!(ran.verdict(1), "succeeded settled");
}

/// A run that cannot carry a word out looks at the rows all the same, later than it was said.
async fn a_row_is_due_once_the_word_is_carried_out(engine: Engine) {
    let shop = Shop::open_with(engine, with_bank()).await;
    shop.insert(&[at_bank(1, "processing")]).await;
    let bad = camt("camt.053", "S1", &[credit(10_001, "pay_1")]).replace("1100.01", "1300.03");
    put(&shop, "bad.xml", &bad);
    ingest(&shop, "bad.xml", 3).await;
    shop.change_runs("host = 'another'").await;
    let (root, there) = (shop.folder().join("spool"), shop.folder().join("there"));
    std::fs::rename(&root, &there).unwrap();
    shop.tieout(&["files", "release", "1", "--reason", "confirmed"]).await.ended(0);
    let _looked_at = shop.run().await.ended(3);
    let later = at_text(tieout_now() + 7_200);
    let wait = format!("update tieout_checks set next_check_at = '{later}' where state = 'open'");
    shop.raw.execute(&wait).await;
    let _made_by_it = std::fs::remove_dir_all(&root);
    std::fs::rename(&there, &root).unwrap();
    let ran = shop.run().await.ended(0);
    assert_eq!(ran.verdict(1), "succeeded settled");
}
