//! Files that a run fetches by itself: from an sshd and from folders, each loaded once, whatever
//! happens on the way, and nobody kept waiting by a source that does not answer.

use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use pgp::composed::{ArmorOptions, SignedSecretKey};
use serde_json::Value;

use super::files::{at_bank, camt, credit, with_bank};
use crate::run::shop::{Engine, Payment, Ran, Shop, on_both_databases, signal};
use crate::sources::decrypting::{Making, key};
use crate::sources::proxy::{Fault, Proxy};
use crate::sources::sshd::{Setup, Sshd, user};
use crate::support::events;
use crate::support::receiver::{Answer, Receiver};

on_both_databases!(
    what_a_database_does_not_take_keeps_no_other_file_waiting,
    a_run_fetches_loads_and_decides,
    what_is_fetched_is_narrowed_as_the_rows_are,
    a_source_that_fails_stops_nobody,
    ingest_fetches_and_decides_nothing,
    a_file_is_put_away_once_its_lines_are_committed,
    a_file_is_called_as_its_path_was_typed,
    names_that_are_never_read_are_told_in_one_line,
    a_kill_at_any_moment_of_fetching_loses_and_doubles_nothing,
    two_at_once_load_a_file_once,
    what_cannot_be_used_is_kept_and_not_fetched_again,
    what_no_key_opens_is_kept_and_opened_with_other_keys,
    a_source_says_the_currency_that_its_files_do_not_name,
    what_is_left_in_the_spool_goes_and_nothing_else,
    an_archive_is_known_once_all_of_it_is_there,
    a_source_says_where_the_tag_stands,
    a_signal_ends_fetching_at_once,
    a_damaged_file_of_an_archive_keeps_its_own_record,
);

/// A source at a server.
fn at(sshd: &Sshd, more: &str) -> String {
    format!(
        "[[source]]\nname = 'bank-a'\nkind = 'sftp'\nhost = '127.0.0.1'\nport = {}\n\
         user = '{}'\nkey_file = '{}'\nknown_hosts = '{}'\nready = 'rename'\n\
         connect_timeout = '2s'\ntimeout = '5s'\naccount = 'bank'\n{more}\n",
        sshd.port,
        user(),
        sshd.path("client").display(),
        sshd.path("known_hosts").display(),
    )
}

/// A source of this machine.
pub fn folder(name: &str, path: &Path, more: &str) -> String {
    format!(
        "[[source]]\nname = '{name}'\nkind = 'folder'\npath = '{}'\nready = 'rename'\n\
         account = 'bank'\n{more}\n",
        path.display(),
    )
}

/// A shop whose bank has these sources.
pub async fn shop(engine: Engine, sources: &str) -> Shop {
    let mut words = with_bank();
    words.more.push_str(sources);
    Shop::open_with(engine, words).await
}

fn packed(text: &str) -> Vec<u8> {
    let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
    gz.write_all(text.as_bytes()).unwrap();
    gz.finish().unwrap()
}

pub fn zipped(files: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, text) in files {
        zip.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// PostgreSQL has no NUL in a text, and no long text in an index: the one is shown by its sign, and
/// the other is for a person to look at. Either way the next run is not stopped by it.
async fn what_a_database_does_not_take_keeps_no_other_file_waiting(engine: Engine) {
    let inbox = tempfile::tempdir().unwrap();
    let shop = shop(engine, &folder("inbox", inbox.path(), "")).await;
    shop.insert(&[at_bank(1, "processing")]).await;
    let mut state = 1_u32;
    let long: String = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'A' + u8::try_from(state >> 27).unwrap())
    })
    .take(40_000)
    .collect();
    let put = |name: &str, text: &str| std::fs::write(inbox.path().join(name), text).unwrap();
    put("a_long.xml", &camt("camt.053", "S2", &[credit(5_000, &long)]));
    put("b_nul.xml", &camt("camt.053", "S3", &[credit(6_000, "o\0r")]));
    put("c.xml", &statement("S1", &[1]));
    let ran = shop.run().await;
    assert_eq!(ran.verdict(1), "succeeded settled");
    let names = "select name || ' ' || state from tieout_files order by name";
    let (of_long, code) = match engine {
        Engine::Postgres => ("a_long.xml quarantined", 3),
        Engine::Sqlite => ("a_long.xml loaded", 0),
    };
    assert_eq!(shop.texts(names).await, [of_long, "b_nul.xml loaded", "c.xml loaded"]);
    assert_eq!(ran.code, Some(code), "{}", ran.stderr);
    let tags = shop.texts("select tag from tieout_lines where amount_minor = 6000").await;
    assert_eq!(tags, ["o\u{2400}r"]);
    shop.run().await.ended(0);
    if engine == Engine::Postgres {
        let problem = "select problems::text from tieout_files where state = 'quarantined'";
        let said = shop.texts(problem).await.remove(0);
        assert!(said.contains("values that the database can hold"), "{said}");
        shop.tieout(&["files", "release", "2", "--reason", "all the same"]).await.ended(0);
        let refused = shop.run().await.ended(3);
        assert!(refused.stderr.contains("was not carried out"), "{}", refused.stderr);
        shop.run().await.ended(0);
    }
    shop.check(false).await;
}

/// What cannot be opened within an archive is nothing that opens beside it.
async fn a_damaged_file_of_an_archive_keeps_its_own_record(engine: Engine) {
    let inbox = tempfile::tempdir().unwrap();
    let mut zip = zipped(&[("a.xml", &statement("S1", &[1])), ("b.xml", &statement("S2", &[2]))]);
    let name = zip.windows(5).position(|own| own == b"a.xml").unwrap();
    zip[name + 45] ^= 0x55;
    let path = inbox.path().join("all.zip");
    std::fs::write(&path, zip).unwrap();
    let shop = shop(engine, &folder("inbox", inbox.path(), "archive = 'done'")).await;
    shop.insert(&[at_bank(1, "processing"), at_bank(2, "processing")]).await;
    shop.run().await.ended(3);
    for _again in 0..2 {
        assert_eq!(shop.open_cases().await, ["1 file_quarantined"]);
        let files = "select name || ' ' || state from tieout_files order by id";
        let kept = ["all.zip/a.xml quarantined", "all.zip/b.xml loaded"];
        assert_eq!(shop.texts(files).await, kept);
        assert_eq!([shop.status(1).await, shop.status(2).await], ["processing", "paid"]);
        assert!(path.exists(), "it is not put away as long as not all of it counts");
        shop.due_now().await;
        shop.run().await;
    }
    shop.check(false).await;
}

fn statement(id: &str, tags: &[i64]) -> String {
    let bookings: Vec<_> = tags.iter().map(|n| credit(10_000 + n, &format!("pay_{n}"))).collect();
    camt("camt.053", id, &bookings)
}

/// `loaded known fetched` of the one source.
#[track_caller]
fn note(ran: &Ran) -> [u64; 3] {
    let notes = ran.of_type("fetched");
    assert_eq!(notes.len(), 1, "{}\n{}", ran.stdout, ran.stderr);
    ["loaded", "known", "fetched"].map(|field| notes[0][field].as_u64().unwrap())
}

fn spool(shop: &Shop) -> Vec<std::path::PathBuf> {
    shop.files().into_iter().filter(|file| file.starts_with(shop.folder().join("spool"))).collect()
}

async fn ingest(shop: &Shop, code: i32) -> Ran {
    let ran = shop.tieout(&["ingest", "--json"]).await.ended(code);
    events::check(&ran.stdout);
    ran
}

async fn a_run_fetches_loads_and_decides(engine: Engine) {
    let sshd = Sshd::plain();
    let shop = shop(engine, &at(&sshd, "glob = ['*.xml', '*.gz']")).await;
    shop.insert(&[at_bank(1, "processing"), at_bank(2, "processing")]).await;
    sshd.put("stmt.xml.gz", packed(&statement("S1", &[1])));
    sshd.put("stmt2.xml.part", "half");
    let ran = shop.run().await.ended(0);
    assert_eq!((ran.verdict(1), note(&ran)), ("succeeded settled".to_owned(), [1, 0, 1]));
    assert_eq!(ran.of_type("ingested")[0]["source"], "bank-a");
    assert_eq!(shop.status(1).await, "paid");
    assert_eq!(spool(&shop), Vec::<std::path::PathBuf>::new(), "what is committed is not kept");
    // Nothing new is there: nothing is fetched.
    let ran = shop.run().await.ended(0);
    assert_eq!(note(&ran), [0, 1, 0]);
    // The same statement under another name, unpacked; and a new one.
    sshd.put("again.xml", statement("S1", &[1]));
    sshd.put("stmt3.xml", statement("S3", &[2]));
    shop.due_now().await;
    let ran = shop.run().await.ended(0);
    assert_eq!((ran.verdict(2), note(&ran)), ("succeeded settled".to_owned(), [1, 2, 2]));
    assert_eq!(shop.count("tieout_lines").await, 2);
    // Touched and not changed: it is fetched once more, and known from then on.
    let file = std::fs::File::options().write(true).open(sshd.at("again.xml")).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000)).unwrap();
    assert_eq!(note(&shop.run().await.ended(0)), [0, 3, 1]);
    assert_eq!(note(&shop.run().await.ended(0)), [0, 3, 0]);
    shop.check(false).await;
}

async fn what_is_fetched_is_narrowed_as_the_rows_are(engine: Engine) {
    let inbox = tempfile::tempdir().unwrap();
    std::fs::write(inbox.path().join("a.xml"), statement("S1", &[1])).unwrap();
    let shop = shop(engine, &folder("inbox", inbox.path(), "")).await;
    shop.insert(&[at_bank(1, "processing")]).await;
    let before = shop.dump().await;
    let ran = shop.run_with(&["--dry-run"]).await.ended(0);
    assert_eq!(ran.of_type("fetched"), Vec::<Value>::new());
    assert_eq!(shop.dump().await, before);
    assert!(!shop.folder().join("spool").exists());
    let ran = shop.run_with(&["--psp", "shop"]).await;
    assert_eq!(ran.of_type("fetched"), Vec::<Value>::new(), "it is another account's");
    let ran = shop.run_with(&["--id", "1"]).await.ended(0);
    assert_eq!((ran.verdict(1), note(&ran)), ("succeeded settled".to_owned(), [1, 0, 1]));
    shop.check(false).await;
}

async fn a_source_that_fails_stops_nobody(engine: Engine) {
    let mut sshd = Sshd::plain();
    sshd.put("late.xml", statement("S9", &[2]));
    let inbox = tempfile::tempdir().unwrap();
    std::fs::write(inbox.path().join("a.xml"), statement("S1", &[1])).unwrap();
    let receiver = Receiver::start(Answer::Status(200)).await;
    let alert = format!(
        "[[monitoring.alert]]\nname = \"ops\"\nkind = \"webhook\"\nurl = \"{}/ops\"\n\
         key_env = \"SHOP_PSP_KEY\"\nconditions = [\"source_unavailable\"]\n",
        receiver.url()
    );
    let strange = at(&sshd, "").replace("'bank-a'", "'bank-b'").replace("known_hosts'", "none'");
    let closed = at(&sshd, "").replace("'bank-a'", "'bank-c'").replace("/client'", "/stranger'");
    sshd.keygen("ed25519", "stranger", "");
    let sources = format!("{}{}{alert}", at(&sshd, ""), folder("inbox", inbox.path(), ""));
    let mut shop = shop(engine, &sources).await;
    shop.background(60).await;
    let by_api = Payment::stuck(3);
    shop.plant(vec![by_api.captured()]);
    shop.insert(&[at_bank(1, "processing"), at_bank(2, "processing"), by_api]).await;
    let whole = shop.words.clone();
    // A server that is another one, one that lets nobody in, and one that does not answer.
    for (source, code, says) in [
        (strange, 13, "tieout: trust: source bank-b: nothing is known yet of"),
        (closed, 12, "tieout: auth: source bank-c: "),
        (String::new(), 3, "tieout: partial: source bank-a: "),
    ] {
        shop.words = whole.clone();
        shop.words.more.push_str(&source);
        if source.is_empty() {
            sshd.stop();
        }
        shop.write_words();
        shop.due_now().await;
        let ran = shop.run().await.ended(code);
        assert!(ran.stderr.contains(says), "{}", ran.stderr);
        assert!(ran.stderr.contains("; next: "), "{}", ran.stderr);
        if code == 13 {
            assert_eq!(ran.verdict(1), "succeeded settled", "another source's file counts");
            assert_eq!(ran.verdict(3), "succeeded captured", "and so does the PSP's word");
            assert_eq!(ran.verdict(2), "succeeded settled");
        }
    }
    shop.run().await.ended(3);
    sshd.restart(Setup::default());
    shop.run().await.ended(0);
    shop.run().await.ended(0);
    let told: Vec<Value> = receiver
        .sent("/ops")
        .iter()
        .map(|sent| serde_json::from_str(&sent.body).unwrap())
        .collect();
    let of = |turn: &str| -> Vec<String> {
        let all = told.iter().flat_map(|body| body[turn].as_array().unwrap().clone());
        all.map(|one| one["condition"].as_str().unwrap().to_owned()).collect()
    };
    let all = ["bank-b", "bank-c", "bank-a"].map(|name| format!("source_unavailable/{name}"));
    assert_eq!((of("raised"), of("resolved").len()), (all.to_vec(), 3), "{told:?}");
    shop.check(false).await;
}

async fn ingest_fetches_and_decides_nothing(engine: Engine) {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(one.path().join("a.xml"), statement("S1", &[1])).unwrap();
    std::fs::write(two.path().join("b.xml"), statement("S2", &[2])).unwrap();
    let sources = format!("{}{}", folder("one", one.path(), ""), folder("two", two.path(), ""));
    let shop = shop(engine, &sources).await;
    shop.insert(&[at_bank(1, "processing"), at_bank(2, "processing")]).await;
    let ran = shop.tieout(&["ingest", "--source", "two", "--json"]).await.ended(0);
    events::check(&ran.stdout);
    assert_eq!(note(&ran), [1, 0, 1]);
    let ran = ingest(&shop, 0).await;
    assert_eq!(ran.of_type("fetched").len(), 2);
    assert_eq!(ran.of_type("ingest_end")[0]["loaded"], 1);
    assert_eq!(shop.count("tieout_lines where state = 'open'").await, 2);
    assert_eq!(shop.count("tieout_journal").await, 0);
    for words in [
        &["ingest", "--source", "thre"][..],
        &["ingest", "--account", "shop"],
        &["ingest", "--format", "camt.053"],
    ] {
        let ran = shop.tieout(words).await.ended(2);
        assert!(ran.stderr.to_lowercase().contains("nothing was done"), "{}", ran.stderr);
    }
    let said = shop.tieout(&["ingest"]).await.ended(0).stdout;
    assert!(said.contains("one          1 known\n"), "{said}");
    shop.check(false).await;
}

async fn names_that_are_never_read_are_told_in_one_line(engine: Engine) {
    let inbox = tempfile::tempdir().unwrap();
    let shop = shop(engine, &folder("inbox", inbox.path(), "")).await;
    let link = |n: u32| {
        std::os::unix::fs::symlink("x", inbox.path().join(format!("l{n}.xml"))).unwrap();
    };
    link(0);
    let why = "it is no regular file; remove";
    let says = format!("source inbox: l0.xml is not read: {why} it there");
    assert!(ingest(&shop, 3).await.stderr.contains(&says));
    (1..30).for_each(link);
    let ran = ingest(&shop, 3).await;
    let says = format!("source inbox: 30 names are not read, as l0.xml: {why} them there");
    assert_eq!(ran.stderr.matches("not read").count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains(&says), "{}", ran.stderr);
    assert_eq!(ran.of_type("fetched")[0]["refused"], 30);
}

/// Files of one name in several folders are told apart by their paths alone.
async fn a_file_is_called_as_its_path_was_typed(engine: Engine) {
    let shop = shop(engine, "").await;
    for (folder, text) in
        [("a", statement("S1", &[1])), ("b", statement("S1", &[1])), ("c", "no".to_owned())]
    {
        std::fs::create_dir(shop.folder().join(folder)).unwrap();
        std::fs::write(shop.folder().join(folder).join("x.xml"), text).unwrap();
    }
    let (one, two) = (statement("S2", &[2]), statement("S3", &[3]));
    let zip = zipped(&[("1.xml", &one), ("2.xml", &two)]);
    std::fs::write(shop.folder().join("a/all.zip"), zip).unwrap();
    let words = ["ingest", "a/x.xml", "b/x.xml", "c/x.xml", "./d/x.xml", "a/all.zip"];
    let words = [&words[..], &["--account", "bank"]].concat();
    let ran = shop.tieout(&[&words[..], &["--json"]].concat()).await.ended(3);
    events::check(&ran.stdout);
    let told = ran.of_type("ingested");
    let told: Vec<String> = told.iter().map(|event| format!("{}", event["path"])).collect();
    let paths =
        ["a/x.xml", "b/x.xml", "c/x.xml", "./d/x.xml", "a/all.zip/1.xml", "a/all.zip/2.xml"];
    assert_eq!(told, paths.map(|path| format!("\"{path}\"")));
    assert_eq!(ran.of_type("ingested")[0]["file"], "x.xml");
    for says in ["tieout: partial: c/x.xml: quarantined", "tieout: partial: ./d/x.xml: it cannot"] {
        assert!(ran.stderr.contains(says), "{says}: {}", ran.stderr);
    }
    let ran = shop.tieout(&words).await.ended(3);
    for says in ["a/x.xml: known as file 1;", "b/x.xml: known as file 1;"] {
        assert!(ran.stdout.contains(says), "{says}: {}", ran.stdout);
    }
    let names = shop.texts("select distinct name from tieout_file_names order by name").await;
    assert_eq!(names, ["all.zip", "all.zip/1.xml", "all.zip/2.xml", "x.xml"]);
}

async fn a_file_is_put_away_once_its_lines_are_committed(engine: Engine) {
    let sshd = Sshd::plain();
    let mut shop = shop(engine, &at(&sshd, "")).await;
    sshd.put("a.xml", statement("S1", &[1]));
    sshd.put("bad.xml", "not a statement");
    ingest(&shop, 3).await;
    // As a run leaves it that is killed between its commit and the putting away.
    assert_eq!(shop.count("tieout_file_names where archived_at is not null").await, 0);
    shop.words.more = shop.words.more.replace("'bank-a'\n", "'bank-a'\narchive = 'done'\n");
    shop.write_words();
    sshd.put("b.xml", statement("S2", &[2]));
    let ran = ingest(&shop, 3).await;
    assert_eq!(ran.of_type("fetched")[0]["archived"], 2);
    assert!(sshd.at("bad.xml").exists(), "its lines are not committed");
    assert!(!sshd.at("a.xml").exists() && !sshd.at("b.xml").exists());
    assert_eq!(std::fs::read_dir(sshd.at("done")).unwrap().count(), 2);
    assert_eq!(shop.count("tieout_file_names where archived_at is not null").await, 2);
    // What is delivered once more is known, and put away once more.
    sshd.put("a.xml", statement("S1", &[1]));
    let ran = ingest(&shop, 0).await;
    assert_eq!(ran.of_type("fetched")[0]["archived"], 1);
    assert_eq!(shop.count("tieout_lines").await, 2);
    shop.check(false).await;
    // A server that forbids it: the lines count, and it is said.
    let sshd = Sshd::start(Setup { sftp: "-R", ..Setup::default() });
    sshd.put("c.xml", statement("S3", &[3]));
    sshd.put("d.xml", statement("S4", &[4]));
    let words = with_bank();
    shop.words.more = format!("{}{}", words.more, at(&sshd, "archive = 'done'"));
    shop.write_words();
    let ran = ingest(&shop, 3).await;
    let says = "source bank-a: 2 files were not put away: c.xml: making ./done at 127";
    let of_archive = ran.stderr.lines().filter(|line| line.contains(says)).count();
    let end = "permission denied; their lines count, and they lie where they were; next: let";
    assert!(of_archive == 1 && ran.stderr.contains(end), "{}", ran.stderr);
    let fetched = &ran.of_type("fetched")[0];
    assert_eq!([&fetched["archived"], &fetched["not_archived"]], [0, 2]);
    let problem = fetched["archive_problem"].as_str().unwrap();
    assert!(problem.ends_with("permission denied"), "{problem}");
    assert_eq!(shop.count("tieout_lines").await, 4);
    let said = shop.tieout(&["ingest"]).await.ended(3).stdout;
    assert!(said.contains("2 known, 2 not put away"), "{said}");
    shop.check(false).await;
}

async fn a_kill_at_any_moment_of_fetching_loses_and_doubles_nothing(engine: Engine) {
    const EACH: i64 = 1_500;
    let sshd = Sshd::plain();
    for n in 0..4 {
        let tags: Vec<i64> = (n * EACH..(n + 1) * EACH).collect();
        sshd.put(&format!("{n}.xml"), statement(&format!("S{n}"), &tags));
    }
    let shop = shop(engine, &at(&sshd, "archive = 'done'")).await;
    for millis in [30, 80, 140, 200, 280, 360, 450, 550, 700, 900] {
        let mut child = shop.program(&["ingest"]).spawn().unwrap();
        tokio::time::sleep(Duration::from_millis(millis)).await;
        child.kill().await.unwrap();
        shop.ten_minutes_pass().await;
        for file in shop.texts("select cast(lines as text) from tieout_files").await {
            assert_eq!(file, EACH.to_string(), "all of it, or nothing");
        }
    }
    ingest(&shop, 0).await;
    assert_eq!(shop.count("tieout_lines").await, 4 * EACH);
    assert_eq!(shop.count("tieout_files").await, 4);
    assert_eq!(std::fs::read_dir(sshd.at("done")).unwrap().count(), 4, "{}", sshd.log());
    // The next run takes out what the dead ones left.
    ingest(&shop, 0).await;
    assert_eq!(spool(&shop), Vec::<std::path::PathBuf>::new());
    shop.check(false).await;
}

async fn two_at_once_load_a_file_once(engine: Engine) {
    let sshd = Sshd::plain();
    for n in 0..3 {
        let tags: Vec<i64> = (n * 700..(n + 1) * 700).collect();
        sshd.put(&format!("{n}.xml"), statement(&format!("S{n}"), &tags));
    }
    let shop = shop(engine, &at(&sshd, "archive = 'done'")).await;
    let (one, two) = tokio::join!(shop.run(), shop.run());
    let (one, two) = (one.ended(0), two.ended(0));
    let loaded = note(&one)[0] + note(&two)[0];
    assert_eq!((loaded, shop.count("tieout_lines").await), (3, 2_100));
    assert_eq!(std::fs::read_dir(sshd.at("done")).unwrap().count(), 3);
    assert_eq!(spool(&shop), Vec::<std::path::PathBuf>::new());
    shop.check(false).await;
}

const FORMAT: &str = "[[format]]\nname = \"ours\"\ndelimiter = \";\"\ndate = \"Day\"\n\
     date_pattern = \"%d.%m.%Y\"\namount = \"Amount\"\ndecimal = \",\"\n\
     currency_is = \"EUR\"\ntag = [{ column = \"Ref\", kind = \"end_to_end_id\" }]\n";

async fn what_cannot_be_used_is_kept_and_not_fetched_again(engine: Engine) {
    let inbox = tempfile::tempdir().unwrap();
    let put = |name: &str, bytes: &[u8]| std::fs::write(inbox.path().join(name), bytes).unwrap();
    put("cut.xml.gz", &packed(&statement("S1", &[1]))[..60]);
    put("ours.txt", b"Day;Amount;Ref\n18.11.2026;100,01;pay_1\n");
    let mut shop = shop(engine, &folder("inbox", inbox.path(), "")).await;
    let ran = ingest(&shop, 3).await;
    assert_eq!(ran.of_type("fetched")[0]["quarantined"], 2);
    let cases = ["1 file_quarantined", "2 file_quarantined"];
    assert_eq!(shop.open_cases().await, cases);
    assert_eq!(spool(&shop).len(), 2, "their bytes are kept");
    for (file, says) in [("1", "fetch it again"), ("2", "describe it as a [[format]]")] {
        let words = ["files", "release", file, "--reason", "x"];
        let refused = shop.tieout(&words).await.ended(3).stderr;
        assert!(refused.contains(says), "{refused}");
        assert_eq!(refused.contains("[[format]]"), file == "2", "{refused}");
    }
    let shown = shop.tieout(&["files", "show", "1"]).await.ended(0).stdout;
    assert!(shown.contains(" file: expected a file or an archive that opens"), "{shown}");
    assert_eq!(note(&ingest(&shop, 0).await), [0, 2, 0]);
    assert_eq!(spool(&shop).len(), 2);
    // Another version may know more: it looks once.
    shop.change_runs("version = '0.0.0'").await;
    assert_eq!(note(&ingest(&shop, 3).await), [0, 0, 2]);
    assert_eq!(note(&ingest(&shop, 0).await), [0, 2, 0]);
    assert_eq!(shop.open_cases().await, cases);
    // And so may another configuration.
    shop.words.more.push_str(FORMAT);
    shop.words.more = shop.words.more.replace("'inbox'\n", "'inbox'\nformat = 'ours'\n");
    shop.write_words();
    ingest(&shop, 3).await;
    assert_eq!(shop.open_cases().await, ["1 file_quarantined"]);
    assert_eq!(shop.texts("select state from tieout_files order by id").await[1], "loaded");
    assert_eq!(shop.texts("select tag from tieout_lines").await, ["pay_1"]);
    shop.check(false).await;
}

async fn a_source_says_the_currency_that_its_files_do_not_name(engine: Engine) {
    let inbox = tempfile::tempdir().unwrap();
    let put = |name: &str, rows: &str| {
        let day = chrono::Utc::now().date_naive().to_string();
        let rows = rows.replace("today", &day);
        let text = format!("Date,Text,Debit,Credit,Balance\n{rows}");
        std::fs::write(inbox.path().join(name), text).unwrap();
    };
    put("whole.csv", "today,pay_1,,100.01,600.01\ntoday,fees,0.01,,600.00\n");
    // The last row's balance is off.
    put("off.csv", "today,pay_2,,100.02,700.02\ntoday,fees,0.02,,699.00\n");
    let more = r"patterns = [{ in = 'text', find = '(pay_\d+)' }]";
    let mut shop = shop(engine, &folder("inbox", inbox.path(), more)).await;
    shop.insert(&[at_bank(1, "processing"), at_bank(2, "processing")]).await;
    ingest(&shop, 3).await;
    let said = shop.texts("select text from tieout_cases order by subject").await;
    assert!(said.iter().all(|text| text.contains("`currency` of a [[source]]")), "{said:?}");
    shop.words.more = shop.words.more.replace(more, &format!("currency = 'EUR'\n{more}"));
    shop.write_words();
    let shown = shop.tieout(&["sources", "list"]).await.ended(0).stdout;
    assert!(shown.contains("    currency  EUR\n"), "{shown}");
    ingest(&shop, 3).await;
    let files = "select state || ' ' || version from tieout_files order by name";
    assert_eq!(shop.texts(files).await, ["quarantined EUR", "loaded EUR"]);
    let ran = shop.run().await.ended(0);
    assert_eq!(ran.verdict(1), "succeeded settled");
    // A person who lets the other one count lets it count as what it was read.
    shop.words.more = shop.words.more.replace("currency = 'EUR'\n", "");
    shop.write_words();
    let off = shop.texts("select id || '' from tieout_files where state = 'quarantined'").await;
    shop.tieout(&["files", "release", &off[0], "--reason", "the bank confirms"]).await.ended(0);
    let ran = shop.run().await.ended(0);
    assert_eq!(ran.verdict(2), "succeeded settled");
    let money = "select tag || ' ' || currency || ' ' || amount_minor from tieout_lines \
                 where tag is not null order by tag";
    assert_eq!(shop.texts(money).await, ["pay_1 EUR 10001", "pay_2 EUR 10002"]);
    shop.check(false).await;
}

async fn what_no_key_opens_is_kept_and_opened_with_other_keys(engine: Engine) {
    let (inbox, keys) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (own, other) = (key("shop", None), key("other", None));
    let holds = |key: &SignedSecretKey| {
        let armored = key.to_armored_string(ArmorOptions::default()).unwrap();
        std::fs::write(keys.path().join("own.asc"), armored).unwrap();
    };
    let put = |name: &str, bytes: &[u8]| std::fs::write(inbox.path().join(name), bytes).unwrap();
    let to = own.to_public_key();
    let plain = Making { to: &to, by: None, packed: false, armored: false };
    // Two messages of one statement, and one that was cut.
    let text = statement("S1", &[1]);
    let cut = plain.of(statement("S2", &[2]).repeat(50).as_bytes());
    put("a.pgp", &plain.of(text.as_bytes()));
    put("b.pgp", &plain.of(text.as_bytes()));
    put("cut.pgp", &cut[..cut.len() - 30]);
    let file = keys.path().join("own.asc");
    let decrypt = format!("[source.decrypt]\nkey_file = '{}'\n", file.display());
    let shop = shop(engine, &folder("inbox", inbox.path(), &decrypt)).await;
    holds(&other);
    let ran = ingest(&shop, 3).await;
    assert_eq!(
        (note(&ran), ran.of_type("fetched")[0]["quarantined"].as_u64()),
        ([0, 0, 3], Some(3))
    );
    let all = ["1 file_quarantined", "2 file_quarantined", "3 file_quarantined"];
    assert_eq!(shop.open_cases().await, all);
    let said = shop.texts("select text from tieout_cases order by subject").await;
    assert!(said[0].contains("not encrypted to the key of this source"), "{said:?}");
    assert_eq!(spool(&shop).len(), 3, "their bytes are kept");
    // The same keys would say the same of them: none is fetched.
    assert_eq!(note(&ingest(&shop, 0).await), [0, 3, 0]);
    assert_eq!(spool(&shop).len(), 3);
    let shut = shop.tieout(&["files", "release", "1", "--reason", "x"]).await.ended(3).stderr;
    assert!(shut.contains("[source.decrypt]") && !shut.contains("[[format]]"), "{shut}");
    // Another key in the same file: the same numbers, and what is in them.
    holds(&own);
    assert_eq!(note(&ingest(&shop, 3).await), [1, 1, 3]);
    assert_eq!(shop.open_cases().await, ["3 file_quarantined"]);
    let states = shop.texts("select state from tieout_files order by id").await;
    assert_eq!(states, ["loaded", "loaded", "quarantined"]);
    assert_eq!(shop.texts("select tag from tieout_lines").await, ["pay_1"]);
    assert_eq!(note(&ingest(&shop, 0).await), [0, 3, 0]);
    assert_eq!(spool(&shop).len(), 1);
    // What was opened once stays that, whoever has the key now.
    holds(&other);
    let touched = std::fs::File::options().write(true).open(inbox.path().join("a.pgp")).unwrap();
    touched.set_modified(std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000)).unwrap();
    assert_eq!(note(&ingest(&shop, 3).await), [0, 2, 2], "and the cut one is tried again");
    assert_eq!(shop.open_cases().await, ["3 file_quarantined"]);
    shop.check(false).await;
}

async fn what_is_left_in_the_spool_goes_and_nothing_else(engine: Engine) {
    let inbox = tempfile::tempdir().unwrap();
    let cut = &packed(&statement("S1", &[1]))[..60];
    std::fs::write(inbox.path().join("cut.xml.gz"), cut).unwrap();
    let shop = shop(engine, &folder("inbox", inbox.path(), "")).await;
    ingest(&shop, 3).await;
    let kept = spool(&shop);
    assert_eq!(kept.len(), 1);
    // Many other files are quarantined, and none of their bytes is here.
    shop.raw
        .execute(
            "insert into tieout_files (sha256, source, name, account, raw_sha256, raw_bytes, \
             format, state, received_at, run_id) with recursive n(i) as (select 1 union all \
             select i + 1 from n where i < 1100) select 'many ' || cast(n.i as text), f.source, \
             f.name, f.account, f.raw_sha256, f.raw_bytes, f.format, f.state, f.received_at, \
             f.run_id from tieout_files f, n where f.name = 'cut.xml.gz'",
        )
        .await;
    // What a dead run left beside the kept bytes, and what lies there of runs of elsewhere.
    let left = kept[0].with_file_name("a".repeat(64));
    let elsewhere = shop.folder().join("spool").join("01990000-0000-7000-8000-000000000001/other");
    std::fs::create_dir_all(&elsewhere).unwrap();
    let own = shop.folder().join("spool/mine.part");
    let (whole, old) = (elsewhere.join("b".repeat(64)), elsewhere.join("other.7.part"));
    let fresh = elsewhere.join("other.8.part");
    for file in [&left, &own, &whole, &old, &fresh] {
        std::fs::write(file, "x").unwrap();
        let file = std::fs::File::options().write(true).open(file).unwrap();
        let at = std::time::SystemTime::now() - Duration::from_secs(25 * 3_600);
        file.set_modified(at).unwrap();
    }
    std::fs::write(&fresh, "x").unwrap();
    ingest(&shop, 0).await;
    let mut stays = vec![kept[0].clone(), own, whole, fresh];
    stays.sort();
    let mut there = spool(&shop);
    there.sort();
    assert_eq!(there, stays);
}

async fn an_archive_is_known_once_all_of_it_is_there(engine: Engine) {
    let inbox = tempfile::tempdir().unwrap();
    let (one, two) = (statement("S1", &[1]), statement("S2", &[2]));
    std::fs::write(inbox.path().join("all.zip"), zipped(&[("1.xml", &one), ("2.xml", &two)]))
        .unwrap();
    let shop = shop(engine, &folder("inbox", inbox.path(), "archive = 'done'")).await;
    let ran = ingest(&shop, 0).await;
    assert_eq!(note(&ran), [2, 0, 1]);
    assert_eq!(ran.of_type("fetched")[0]["archived"], 1);
    let names = shop.texts("select name from tieout_file_names order by name").await;
    assert_eq!(names, ["all.zip", "all.zip/1.xml", "all.zip/2.xml"]);
    // Half of it came before the crash: it is fetched again, and the other half loaded.
    std::fs::write(inbox.path().join("all.zip"), zipped(&[("1.xml", &one), ("2.xml", &two)]))
        .unwrap();
    shop.raw
        .execute(
            "delete from tieout_file_names where name <> 'all.zip/1.xml';
             delete from tieout_lines where file_id = 2;
             delete from tieout_line_tags where file_id = 2;
             delete from tieout_statements where file_id = 2;
             delete from tieout_files where id = 2",
        )
        .await;
    assert_eq!(note(&ingest(&shop, 0).await), [1, 1, 1]);
    assert_eq!(shop.count("tieout_lines").await, 2);
    shop.check(false).await;
}

async fn a_source_says_where_the_tag_stands(engine: Engine) {
    let inbox = tempfile::tempdir().unwrap();
    let today = chrono::Utc::now();
    let (day, month) = (today.format("%y%m%d"), today.format("%m%d"));
    let text = format!(
        ":20:X\n:25:10020030/1234567\n:28C:00042/001\n:60F:C{day}EUR0,00\n\
         :61:{day}{month}C100,01NTRFNONREF//B1\n\
         :86:166?00GUTSCHRIFT?20your order 0001 of pay_1, thanks\n\
         :62F:C{day}EUR100,01\n-\n"
    );
    std::fs::write(inbox.path().join("a.sta"), text).unwrap();
    let more =
        "tags = ['customer_reference']\npatterns = [{ in = 'text', find = 'of (pay_\\d+)' }]";
    let mut shop = shop(engine, &folder("inbox", inbox.path(), more)).await;
    shop.insert(&[at_bank(1, "processing")]).await;
    let ran = shop.run().await.ended(0);
    assert_eq!(ran.verdict(1), "succeeded settled");
    assert_eq!(shop.texts("select tag from tieout_lines").await, ["pay_1"]);
    shop.check(false).await;
    // What cannot be meant is told with its line, before anything is done.
    shop.words.more = shop.words.more.replace("of (pay_\\d+)", "of pay_\\d+");
    shop.write_words();
    let ran = shop.tieout(&["config", "check"]).await.ended(10);
    let toml = std::fs::read_to_string(shop.folder().join("tieout.toml")).unwrap();
    let line = toml.lines().position(|line| line.starts_with("patterns =")).unwrap() + 1;
    assert!(ran.stderr.contains(&format!("tieout.toml:{line}:")), "{}", ran.stderr);
    assert!(ran.stderr.contains("expected one group in round brackets, found 0"), "{}", ran.stderr);
}

async fn a_signal_ends_fetching_at_once(engine: Engine) {
    let sshd = Sshd::plain();
    sshd.put("a.xml", statement("S1", &[1]));
    // Nothing comes back after the greeting, for as long as the time-outs allow.
    let proxy = Proxy::to(sshd.port, Fault::FreezeAfter(10));
    let frozen = at(&sshd, "").replace(&sshd.port.to_string(), &proxy.port.to_string());
    let frozen = frozen.replace("timeout = '5s'", "timeout = '9min'");
    let frozen = frozen.replace("connect_timeout = '2s'", "connect_timeout = '9min'");
    let shop = shop(engine, &frozen).await;
    let mut child = shop.program(&["run"]).spawn().unwrap();
    while proxy.connections.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    signal(child.id().unwrap(), "TERM").await;
    let ended = tokio::time::timeout(Duration::from_secs(60), child.wait()).await;
    assert_eq!(ended.expect("it waits without end").unwrap().code(), Some(143));
    assert_eq!(shop.texts("select state from tieout_runs").await, ["interrupted"]);
    shop.check(false).await;
}
