//! Every way a PSP can misbehave, against four rows of which each would be ended by the next look
//! at a PSP that is well: what becomes of them, what the program ends with, and that they end
//! rightly once the PSP is well again.
//!
//! Adding a fault: a line in the table where it belongs.

use std::time::Duration;

use futures_util::future::join_all;
use tieout::sandbox::faults::{Action, Change, FaultRule, PageSpot, Removed, SchemaFault, Which};
use tieout::sandbox::routes::Route;
use tieout::sandbox::seeds::Seed;
use tieout::sandbox::settings::{Behaviour, Door, RateLimit, RetryAfter, Settings, Tls};
use tieout::sandbox::situations::Situation;
use tieout::sandbox::{Handle, Sandbox};

use super::shop::{Engine, KEY, Payment, Shop, Words, on_both_databases, tieout_now};

on_both_databases!(
    no_answer_changes_no_row,
    an_answer_that_cannot_be_read_changes_no_row,
    a_list_that_is_not_whole_proves_nothing,
    an_account_that_refuses_stops_alone,
    a_refused_key_costs_no_row_its_turn,
    an_address_that_is_no_api_is_told_by_one_row,
    a_list_that_breaks_off_is_no_silence,
    an_outage_is_told_once_over_all_batches,
    what_the_answer_says_is_held_against_the_row,
);

/// The rows of a stage.
const CAPTURED: i64 = 1;
const ABSENT: i64 = 2;
const STORED: i64 = 3;
const DECLINED: i64 = 4;

/// What a look at a PSP that is well makes of them.
const CALM: [&str; 4] = [
    "succeeded captured",
    "retryable absent",
    "succeeded captured",
    "retryable declined_retryable",
];

const UNCHANGED: [&str; 4] = ["wait psp_unavailable"; 4];

/// What must come of a fault. Alternatives are parted by `|`.
struct Want {
    exit: i32,
    verdicts: [&'static str; 4],
}

/// A fault by its name.
struct Case {
    name: String,
    arrange: Box<dyn Fn(&mut Shop) + Send>,
    want: Want,
    /// Once it is gone, the next look ends all four as if it had never been.
    heals: bool,
    /// A second PSP that must never be asked.
    other: Option<Handle>,
}

fn case(name: &str, exit: i32, verdicts: [&'static str; 4]) -> Case {
    Case {
        name: name.to_owned(),
        arrange: Box::new(|_| ()),
        want: Want { exit, verdicts },
        heals: true,
        other: None,
    }
}

impl Case {
    fn by(mut self, arrange: impl Fn(&mut Shop) + Send + 'static) -> Self {
        self.arrange = Box::new(arrange);
        self
    }

    fn rule(self, rule: FaultRule) -> Self {
        self.by(move |shop| shop.sandbox.fault(rule.clone()))
    }

    fn rules(self, rules: Vec<FaultRule>) -> Self {
        self.by(move |shop| rules.iter().for_each(|rule| shop.sandbox.fault(rule.clone())))
    }

    fn behaving(self, change: impl Fn(&mut Behaviour) + Send + 'static) -> Self {
        self.by(move |shop| shop.sandbox.behave(&change))
    }

    fn for_good(mut self) -> Self {
        self.heals = false;
        self
    }
}

fn unchanged(name: &str, action: Action) -> Case {
    case(name, 3, UNCHANGED).rule(FaultRule::always(action))
}

/// How long an answer is waited for.
#[derive(Clone, Copy)]
enum Patience {
    /// Some of the table's faults are that none comes.
    Short,
    /// Each comes: on a busy machine it may be late, which is not what is tried.
    Long,
}

/// A shop whose four rows are ripe: asked before, their calls over, one miss kept.
async fn stage(engine: Engine, patience: Patience) -> Shop {
    let words = Words {
        account: "retry_after_max = \"1s\"\nbody_max_bytes = 1048576\n".to_owned(),
        ..Words::default()
    };
    // Three pages of each kind, so that there is one in the middle.
    let words = words.policy("object_before_row", "\"1h\"");
    let words = match patience {
        Patience::Short => words,
        Patience::Long => words.patient(),
    };
    let mut shop = Shop::open_with(engine, words).await;
    shop.background(360).await;
    let declined = Payment::stuck(DECLINED);
    let seed = declined.captured().standing(Situation::Declined);
    let seed = Seed { decline_code: Some("insufficient_funds".to_owned()), ..seed };
    shop.plant(vec![seed]);
    shop.insert(&[Payment::stuck(ABSENT), declined]).await;
    let first = shop.run().await;
    assert_eq!(first.verdict(ABSENT), "wait within_grace", "{first:?}");
    shop.a_span_passes().await;
    let only = ABSENT.to_string();
    let second = shop.run_with(&["--id", &only]).await;
    assert_eq!(second.verdict(ABSENT), "wait absence_unproven", "{second:?}");
    tokio::time::sleep(Duration::from_millis(1_300)).await;
    let stored = Payment { psp_ref: Some("pi_3".to_owned()), ..Payment::stuck(STORED) };
    shop.plant(vec![Payment::stuck(CAPTURED).captured(), stored.captured()]);
    shop.insert(&[Payment::stuck(CAPTURED), stored]).await;
    shop
}

/// Plays every case on a copy of one stage, and fails with all that went wrong.
async fn play(engine: Engine, patience: Patience, cases: Vec<Case>) {
    let mut stage = stage(engine, patience).await;
    let mut wrong = Vec::new();
    let mut cases = cases.into_iter().peekable();
    while cases.peek().is_some() {
        let mut some = Vec::new();
        for case in cases.by_ref().take(4) {
            some.push((stage.copy().await, case));
        }
        let played = join_all(some.into_iter().map(|(shop, case)| one(shop, case))).await;
        wrong.extend(played.into_iter().flatten());
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

async fn one(mut shop: Shop, case: Case) -> Vec<String> {
    let mut wrong = Vec::new();
    (case.arrange)(&mut shop);
    shop.write_words();
    shop.due_now().await;
    let ran = shop.run().await;
    if ran.code != Some(case.want.exit) {
        wrong.push(format!("{}: exit {:?}, wanted {}", case.name, ran.code, case.want.exit));
    }
    let ids = [CAPTURED, ABSENT, STORED, DECLINED];
    for (id, want) in ids.into_iter().zip(case.want.verdicts) {
        let got = ran.verdict(id);
        if !want.split('|').any(|want| want == got) {
            wrong.push(format!("{}: row {id} is {got}, wanted {want}", case.name));
        }
        let status = shop.status(id).await;
        let expected = match got.split_once(' ') {
            Some(("succeeded", _)) => "paid",
            Some(("retryable", _)) => "retry",
            _ => "processing",
        };
        if status != expected {
            wrong.push(format!("{}: row {id} is {status} after {got}", case.name));
        }
    }
    if let Some(other) = &case.other
        && other.total_requests() != 0
    {
        wrong.push(format!("{}: {:?} reached the other host", case.name, other.requests()));
    }
    if ran.stdout.contains(KEY) || ran.stderr.contains(KEY) {
        wrong.push(format!("{}: the key is shown", case.name));
    }
    shop.check(false).await;
    if case.heals {
        wrong.extend(healed(&mut shop, &case.name).await);
    }
    if !wrong.is_empty() {
        wrong.push(format!("    {}: {}", case.name, ran.stderr));
    }
    wrong
}

async fn healed(shop: &mut Shop, name: &str) -> Vec<String> {
    shop.sandbox.clear_faults();
    shop.sandbox.behave(|behaviour| *behaviour = Behaviour::default());
    shop.sandbox.door(Door::Open, None);
    shop.words.base_url = None;
    shop.write_words();
    let mut ends = Vec::new();
    // Where the fault let nothing count, what was kept before it still does.
    for _ in 0..2 {
        shop.due_now().await;
        let ran = shop.run().await;
        ends = Vec::new();
        for (id, calm) in [CAPTURED, ABSENT, STORED, DECLINED].into_iter().zip(CALM) {
            let status = shop.status(id).await;
            let want = if calm.starts_with("succeeded") { "paid" } else { "retry" };
            if status != want {
                let got = ran.verdict(id);
                ends.push(format!("{name}: once well again, row {id} is {status} ({got})"));
            }
        }
        if ends.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1_300)).await;
    }
    shop.check(false).await;
    ends
}

fn status(code: u16) -> Action {
    status_then(code, RetryAfter::Absent)
}

fn status_then(code: u16, retry_after: RetryAfter) -> Action {
    Action::Status { code, retry_after, reason: None }
}

async fn no_answer_changes_no_row(engine: Engine) {
    let mut cases = vec![
        case("calm", 0, CALM),
        case("a name that does not resolve", 3, UNCHANGED)
            .by(|shop| shop.words.base_url = Some("https://psp.invalid".to_owned())),
        case("connections refused", 3, UNCHANGED)
            .by(|shop| shop.sandbox.door(Door::Refusing, None)),
        case("connections hang", 3, UNCHANGED).by(|shop| shop.sandbox.door(Door::Hanging, None)),
        unchanged("silence", Action::NoAnswer),
        unchanged("a reset", Action::Reset),
        unchanged("a reset in the body", Action::ResetAfter { bytes: 100 }),
        unchanged("half a body, then silence", Action::HalfClose { bytes: 100 }),
        unchanged("a body that ends early", Action::EndStreamAfter { bytes: 100 }),
        unchanged("closed unanswered", Action::GoAway),
        unchanged("a byte a second", Action::Drip { bytes: 1, every_ms: 1_000 }),
        unchanged("an answer after the deadline", Action::Delay { ms: 4_000 }),
        unchanged("500", status(500)),
        unchanged("502", status(502)),
        unchanged("503", status(503)),
        unchanged("503, come back in 1 s", status_then(503, RetryAfter::Seconds(1))),
        unchanged("429", status(429)),
        unchanged("429, come back in 1 s", status_then(429, RetryAfter::Seconds(1))),
        unchanged("429, come back at a date", status_then(429, RetryAfter::DateIn(3_600))),
        unchanged("429, in 30 years", status_then(429, RetryAfter::Seconds(1_000_000_000))),
        unchanged("429, whenever", status_then(429, RetryAfter::Text("soon".to_owned()))),
        unchanged("409", status(409)),
    ];
    let refused =
        RateLimit { per_second: 1, burst: 1, per_route: None, retry_after: RetryAfter::Absent };
    // Some of the questions get through.
    let some = [
        "wait psp_unavailable|succeeded captured",
        "wait psp_unavailable|retryable absent",
        "wait psp_unavailable|succeeded captured",
        "wait psp_unavailable|retryable declined_retryable",
    ];
    cases.push(
        case("one request a second", 3, some)
            .behaving(move |behaviour| behaviour.rate_limit = Some(refused.clone())),
    );
    let flaky = FaultRule::always(status(500)).times(1);
    cases.push(case("one 500", 0, CALM).rule(flaky));
    cases.push(case("one reset", 0, CALM).rule(FaultRule::always(Action::Reset).times(1)));
    play(engine, Patience::Short, cases).await;
}

async fn an_answer_that_cannot_be_read_changes_no_row(engine: Engine) {
    let mut cases = vec![
        unchanged("a page of HTML", Action::Html { code: 200 }),
        unchanged("a page of HTML with 503", Action::Html { code: 503 }),
        unchanged("no body", Action::EmptyBody),
        unchanged("half of the JSON", Action::TruncatedJson { keep_per_mille: 500 }),
        unchanged("all of the JSON but its end", Action::TruncatedJson { keep_per_mille: 999 }),
        unchanged("64 MiB in 64 KiB", Action::GzipBomb { mib: 64 }),
        unchanged("a body of 8 MiB", Action::HugeBody { mib: 8 }),
        unchanged("ten thousand objects in a page", Action::ManyItems { count: 10_000 }),
        unchanged("JSON nested ten thousand deep", Action::DeepNesting { depth: 10_000 }),
    ];
    for fault in [
        SchemaFault::TopLevelArray,
        SchemaFault::TopLevelNull,
        SchemaFault::DataIsObject,
        SchemaFault::NoData,
        SchemaFault::NoHasMore,
        SchemaFault::NoId,
        SchemaFault::NoStatus,
        SchemaFault::AmountIsText,
        SchemaFault::AmountIsFraction,
        SchemaFault::CreatedIsText,
        SchemaFault::OtherObject,
    ] {
        // A fetched object has no `data` and no `has_more` to lack.
        let of_lists = [SchemaFault::DataIsObject, SchemaFault::NoData, SchemaFault::NoHasMore];
        let mut verdicts = UNCHANGED;
        if of_lists.contains(&fault) {
            verdicts[2] = "succeeded captured";
        }
        let rule = FaultRule::always(Action::WrongSchema(fault));
        cases.push(case(&format!("{fault:?}"), 3, verdicts).rule(rule));
    }
    for code in [301, 302, 303, 307, 308] {
        let other = Sandbox::start(Settings::default()).await.unwrap();
        let to = format!("{}/v1/payment_intents", other.base_url());
        let mut case =
            unchanged(&format!("sent elsewhere by {code}"), Action::Redirect { code, to });
        case.other = Some(other);
        cases.push(case);
    }
    play(engine, Patience::Short, cases).await;
}

/// On each kind of page: the first, one in the middle, the last.
fn on_pages(action: &Action) -> Vec<(PageSpot, Vec<FaultRule>)> {
    let spots = [PageSpot::First, PageSpot::Middle, PageSpot::Last];
    let rules = |spot| {
        [Route::ListIntents, Route::ListCharges]
            .map(|route| FaultRule::on(route, action.clone()).page(spot))
            .to_vec()
    };
    spots.map(|spot| (spot, rules(spot))).to_vec()
}

fn on_lists(action: &Action) -> Vec<FaultRule> {
    [Route::ListIntents, Route::ListCharges].map(|r| FaultRule::on(r, action.clone())).to_vec()
}

async fn a_list_that_is_not_whole_proves_nothing(engine: Engine) {
    // What the list may show of money is believed; what it does not show proves nothing.
    let broken = [
        "wait psp_unavailable|succeeded captured",
        "wait psp_unavailable",
        "succeeded captured",
        "wait psp_unavailable|wait failure_not_final",
    ];
    let mut cases = Vec::new();
    for (name, action) in [
        ("500", status(500)),
        ("a reset in the body", Action::ResetAfter { bytes: 300 }),
        ("half of the JSON", Action::TruncatedJson { keep_per_mille: 500 }),
        ("HTML", Action::Html { code: 200 }),
        ("no objects, and more", Action::EmptyPageWithMore),
    ] {
        for (spot, rules) in on_pages(&action) {
            cases.push(case(&format!("{name} on the {spot:?} page"), 3, broken).rules(rules));
        }
    }
    for (name, action) in [
        ("the same cursor for ever", Action::RepeatCursor),
        ("the first page for ever", Action::CursorLoop),
        ("every object twice", Action::Duplicate(Which::All)),
        ("an object twice", Action::Duplicate(Which::Place(3))),
        ("the end after the first page", Action::EndEarly),
        ("objects outside of the window", Action::IgnoreCreated),
        ("objects of 1970", Action::Alter { only: Which::All, change: Change::Created(0) }),
        (
            "objects of the year 9999",
            Action::Alter { only: Which::All, change: Change::Created(253_402_300_799) },
        ),
    ] {
        cases.push(case(name, 3, broken).rules(on_lists(&action)));
    }
    let removed = Action::RemoveBetweenPages(Removed::Cursor);
    let rules = on_lists(&removed).into_iter().map(|rule| rule.times(1)).collect();
    let gone = ["wait psp_unavailable|succeeded captured"; 4];
    let gone = [gone[0], "wait psp_unavailable|retryable absent", gone[2], broken[3]];
    cases.push(case("the object of the cursor is deleted", 3, gone).rules(rules).for_good());
    cases.push(case("pages of ten", 0, CALM).rules(on_lists(&Action::ShrinkPage { to: 10 })));
    let new = Seed::captured("order_id", "pay_900239", 739, "eur");
    let inserted = Action::InsertBetweenPages(Box::new(new.created_at(tieout_now() - 1)));
    let rules = on_lists(&inserted).into_iter().map(|rule| rule.times(1)).collect();
    cases.push(case("an object comes between two pages", 0, CALM).rules(rules));
    play(engine, Patience::Long, cases).await;
}

async fn an_account_that_refuses_stops_alone(engine: Engine) {
    let stopped = UNCHANGED;
    let mut cases = vec![
        case("401", 12, stopped).rule(FaultRule::always(status(401))),
        case("403", 12, stopped).rule(FaultRule::always(status(403))),
        case("a list that is not there", 10, stopped).rules(
            [Route::ListIntents, Route::ListCharges].map(|r| FaultRule::on(r, status(404))).into(),
        ),
        case("objects of the other mode", 12, stopped).rule(FaultRule::always(Action::Alter {
            only: Which::All,
            change: Change::FlipLivemode,
        })),
        case("a path that is no API", 10, stopped).by(|shop| {
            shop.words.base_url = Some(format!("{}/nowhere", shop.sandbox.base_url()));
        }),
    ];
    let mut wrong_key = case("a live key for test rows", 12, stopped)
        .by(|shop| shop.words.key = "sk_live_shop".to_owned());
    wrong_key.heals = false;
    cases.push(wrong_key);
    let authority = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/tls/authority.pem");
    for (name, identity) in [
        ("expired", include_str!("../../../fixtures/tls/expired.pem")),
        ("other host", include_str!("../../../fixtures/tls/other-host.pem")),
        ("self-signed", include_str!("../../../fixtures/tls/self-signed.pem")),
    ] {
        let tls = Some(Tls { identity_pem: identity.to_owned(), http2: false });
        let other = Sandbox::start(Settings { tls, ..Settings::default() }).await.unwrap();
        let address = other.base_url();
        let mut case =
            case(&format!("a certificate that is {name}"), 13, stopped).by(move |shop| {
                shop.words.base_url = Some(address.clone());
                shop.words.account.push_str(&format!("\nca_file = \"{authority}\""));
            });
        case.other = Some(other);
        case.heals = false;
        cases.push(case);
    }
    play(engine, Patience::Short, cases).await;
}

async fn a_refused_key_costs_no_row_its_turn(engine: Engine) {
    let mut shop = Shop::open_with(engine, Words::default().patient()).await;
    let row = Payment::stuck(1);
    shop.plant(vec![row.captured()]);
    shop.insert(&[row]).await;
    shop.sandbox.fault(FaultRule::always(status(401)));
    assert_eq!(shop.run().await.ended(12).verdict(1), "wait psp_unavailable");
    // At once again, and for as long as the key is wrong; one record of it is enough.
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        assert_eq!(shop.run().await.ended(12).verdict(1), "not decided");
    }
    shop.sandbox.clear_faults();
    assert_eq!(shop.run().await.ended(0).verdict(1), "succeeded captured");
    shop.check(false).await;
}

/// One row is searched for, and a 404 of the search alone could mean that the PSP has none.
async fn an_address_that_is_no_api_is_told_by_one_row(engine: Engine) {
    let mut shop = Shop::open_with(engine, Words::default().patient()).await;
    let row = Payment::stuck(1);
    shop.plant(vec![row.captured()]);
    shop.insert(&[row]).await;
    shop.words.base_url = Some(format!("{}/nowhere", shop.sandbox.base_url()));
    shop.write_words();
    let ran = shop.run_with(&["--id", "1"]).await.ended(10);
    assert_eq!(ran.verdict(1), "wait psp_unavailable");
    assert!(ran.stderr.contains("check base_url"), "{}", ran.stderr);
    shop.words.base_url = None;
    shop.write_words();
    // Where there is a list and no search, that is what is said.
    for route in [Route::SearchIntents, Route::SearchCharges] {
        shop.sandbox.fault(FaultRule::on(route, status(404)));
    }
    shop.due_now().await;
    let ran = shop.run_with(&["--id", "1"]).await.ended(3);
    assert_eq!(ran.verdict(1), "wait psp_unavailable");
    assert!(ran.stderr.contains("no answer for 1 of 1 row (unreadable)"), "{}", ran.stderr);
    shop.sandbox.clear_faults();
    shop.due_now().await;
    assert_eq!(shop.run().await.ended(0).verdict(1), "succeeded captured");
    shop.check(false).await;
}

/// However many batches ask an account that is silent: it is one outage, told once.
async fn an_outage_is_told_once_over_all_batches(engine: Engine) {
    let words = Words { limits: "batch = 10".to_owned(), ..Words::default() };
    let shop = Shop::open_with(engine, words.patient()).await;
    let rows: Vec<Payment> = (1..=25).map(Payment::stuck).collect();
    shop.insert(&rows).await;
    shop.sandbox.fault(FaultRule::always(status(500)));
    let ran = shop.run().await.ended(3);
    assert_eq!(ran.stderr.matches("no answer for").count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("no answer for 25 of 25 rows"), "{}", ran.stderr);
    let missed = ran.of_type("run_end")[0]["not_examined"].as_array().unwrap().len();
    assert_eq!((ran.of_type("not_examined").len(), missed), (1, 1));
    shop.check(false).await;
}

/// What one list showed is believed where another broke off: those rows were answered, and the
/// account is not silent. The others wait, and the run says so of them alone.
async fn a_list_that_breaks_off_is_no_silence(engine: Engine) {
    let mut shop = Shop::open_with(engine, Words::default().patient()).await;
    let paid = async |shop: &mut Shop, ids: std::ops::RangeInclusive<i64>| {
        let rows: Vec<Payment> = ids.map(Payment::stuck).collect();
        shop.plant(rows.iter().map(Payment::captured).collect());
        shop.insert(&rows).await;
    };
    let silent = "tieout_accounts where unanswered_since is not null";
    paid(&mut shop, 1..=25).await;
    let broken = Action::WrongSchema(SchemaFault::NoHasMore);
    shop.sandbox.fault(FaultRule::on(Route::ListCharges, broken.clone()));
    // Whatever else was not read: all of them were found.
    let ran = shop.run().await.ended(0);
    assert_eq!(ran.stderr, "");
    assert_eq!(shop.count("payments where status = 'paid'").await, 25);
    assert_eq!(shop.count(silent).await, 0);
    paid(&mut shop, 31..=55).await;
    shop.insert(&[Payment::stuck(56)]).await;
    let ran = shop.tieout(&["run", "--verbose"]).await.ended(3);
    let told = "account shop: the list of charges could not be read whole: 1 row without a find \
                waits (unreadable)";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    assert!(!ran.stderr.contains("no answer for"), "{}", ran.stderr);
    assert!(ran.stdout.contains(" 25/26 rows "), "{}", ran.stdout);
    assert_eq!(shop.count("payments where status = 'paid'").await, 50);
    assert_eq!(shop.count(silent).await, 0);
    // Nothing at all was answered: that is silence.
    shop.sandbox.clear_faults();
    shop.sandbox.fault(FaultRule::always(broken));
    shop.due_now().await;
    let ran = shop.run().await.ended(3);
    assert!(ran.stderr.contains("no answer for 1 of 1 row (unreadable)"), "{}", ran.stderr);
    assert_eq!(shop.count(silent).await, 1);
    shop.sandbox.clear_faults();
    shop.due_now().await;
    let verdict = shop.run().await.ended(0).verdict(56);
    assert!(verdict.starts_with("wait ") && !verdict.contains("unavailable"), "{verdict}");
    assert_eq!(shop.count(silent).await, 0);
    shop.check(false).await;
}

fn altered(change: Change) -> FaultRule {
    FaultRule::always(Action::Alter { only: Which::All, change })
}

async fn what_the_answer_says_is_held_against_the_row(engine: Engine) {
    let absent = CALM[1];
    // Two observations of the declined one differ then, which is for a person as well.
    let amount = "review amount_mismatch";
    let currency = "review currency_mismatch";
    let amounts = [amount, absent, amount, "review amount_mismatch|review evidence_conflict"];
    let currencies =
        [currency, absent, currency, "review currency_mismatch|review evidence_conflict"];
    let mut cases = vec![
        case("a cent more", 0, amounts).rule(altered(Change::AmountBy(1))).for_good(),
        case("a hundred times", 0, amounts).rule(altered(Change::AmountTimes(100))).for_good(),
        case("a hundredth", 0, amounts).rule(altered(Change::AmountPer(100))).for_good(),
        case("dollars", 0, currencies).rule(altered(Change::Currency("usd".to_owned()))).for_good(),
        case("yen", 0, currencies).rule(altered(Change::Currency("jpy".to_owned()))).for_good(),
    ];
    let unknown = "review psp_status_unknown|review evidence_conflict";
    let drift = altered(Change::Status("settling_elsewhere".to_owned()));
    let brake = "wait absence_brake|wait absence_unproven|wait psp_unavailable|retryable absent";
    cases.push(
        case("a status that nobody knows", 0, [unknown, brake, unknown, unknown])
            .rule(drift)
            .for_good(),
    );
    for (name, secs) in [("an hour", 3_600), ("a day", 86_400)] {
        for sign in [-1, 1] {
            let skewed = [CALM[0], "wait clock_skew", CALM[2], "wait clock_skew"];
            let name = format!("a clock that is {name} off ({sign})");
            cases.push(
                case(&name, 0, skewed)
                    .behaving(move |behaviour| behaviour.date_skew_secs = sign * secs),
            );
        }
    }
    cases.extend(duplicates());
    cases.extend(near_tags());
    cases.push(unchanged("answers of a stale cache", Action::StaleReplay));
    play(engine, Patience::Long, cases).await;
}

/// A second object under the tag of the captured row.
fn duplicates() -> Vec<Case> {
    let second = |change: fn(Seed) -> Seed| {
        move |shop: &mut Shop| {
            // In the very second of the first.
            let first = shop.seeds.iter().find(|seed| seed.id.as_deref() == Some("pi_1"));
            let second = Seed { id: Some("pi_second".to_owned()), ..first.unwrap().clone() };
            shop.sandbox.seed([change(second)]).unwrap();
        }
    };
    let [_, absent, stored, declined] = CALM;
    let found = |first| [first, absent, stored, declined];
    vec![
        case("captured twice", 0, found("review duplicate_capture")).by(second(|s| s)).for_good(),
        case("captured twice, in other amounts", 0, found("review duplicate_capture"))
            .by(second(|seed| Seed { amount: 77, ..seed }))
            .for_good(),
        case("captured, and another still may", 0, found("review duplicate_live"))
            .by(second(|seed| seed.standing(Situation::Processing)))
            .for_good(),
        case("captured, and another authorised", 0, found("review duplicate_live"))
            .by(second(|seed| seed.standing(Situation::RequiresCapture)))
            .for_good(),
        case("captured, and another cancelled", 0, found("succeeded captured"))
            .by(second(|seed| seed.standing(Situation::Canceled)))
            .for_good(),
        case("captured, and another declined", 0, found("succeeded captured"))
            .by(second(|seed| {
                let seed = seed.standing(Situation::Declined);
                Seed { decline_code: Some("insufficient_funds".to_owned()), ..seed }
            }))
            .for_good(),
    ]
}

/// Money for the absent row whose tag is not quite the row's.
fn near_tags() -> Vec<Case> {
    let [captured, _, stored, declined] = CALM;
    let found = |second| [captured, second, stored, declined];
    // Between the row's creation and its last attempt, whenever the stage was set.
    let paid = || Payment::stuck(ABSENT).captured().created_at(tieout_now() - 35 * 60);
    let money = move |change: fn(Seed) -> Seed| {
        move |shop: &mut Shop| {
            shop.sandbox.seed([change(paid())]).unwrap();
        }
    };
    let tagged = move |tag: &'static str| {
        move |shop: &mut Shop| {
            let mut seed = paid();
            seed.metadata.insert("order_id".to_owned(), tag.to_owned());
            shop.sandbox.seed([seed]).unwrap();
        }
    };
    let near = found("review tag_near_miss");
    let untagged = found("review possible_untagged_match");
    vec![
        case("a tag in capitals", 0, near).by(tagged("PAY_2")).for_good(),
        case("a tag with blanks around it", 0, near).by(tagged(" pay_2 ")).for_good(),
        case("money under another key", 0, untagged)
            .by(money(|mut seed| {
                let tag = seed.metadata.remove("order_id").unwrap();
                seed.metadata.insert("order".to_owned(), tag);
                seed
            }))
            .for_good(),
        case("money with the tag in its description", 0, untagged)
            .by(money(|mut seed| {
                seed.description = seed.metadata.remove("order_id");
                seed
            }))
            .for_good(),
        case("money under the tag of no row", 0, untagged).by(tagged("pay_77777")).for_good(),
        // By a clock that is behind the database's.
        case("money without a tag, of a minute before the row", 0, untagged)
            .by(money(|mut seed| {
                seed.metadata.clear();
                seed.created_at(tieout_now() - 41 * 60)
            }))
            .for_good(),
        case("the row's own tag after all", 0, found("succeeded captured"))
            .by(money(|seed| seed))
            .for_good(),
    ]
}
