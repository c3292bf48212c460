//! The psp room against the sandbox: every fault that the wire can show ends in no answer or in a
//! stopped account, never in "nothing"; and what it does find, it reads as it stands.

mod faults;
mod finding;
mod lane;

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use tieout::model::evidence::{Answer, CauseKind, CompleteSearch, Evidence, PspObject, Route};
use tieout::psp::account::{Account, Looked, Need, Question, Surroundings};
use tieout::psp::settings::AccountSettings;
use tieout::sandbox::seeds::Seed;
use tieout::sandbox::settings::Settings;
use tieout::sandbox::{Handle, Sandbox};
use tokio_util::sync::CancellationToken;

const KEY: &str = "sk_test_desk";
const TAG: &str = "tieout_id";

/// A sandbox and an account at it.
struct Desk {
    sandbox: Handle,
    account: Account,
    stop: CancellationToken,
}

/// Retries once and gives up soon, so that a fault that stays is told at once.
const QUICK: &str = "retries = 0\ndeadline = \"1s\"\nbreaker_after = 100\nconcurrency = 1\n\
                     requests_per_second = 1000\nretry_after_max = \"1s\"\n";

/// Intents alone, so that a list has one kind of page.
const INTENTS: &str = "charges_by = [\"payment_intent\"]\n";

fn settings(base_url: &str, more: &str) -> AccountSettings {
    let text = format!(
        "name = \"desk\"\npsp = \"stripe\"\nmode = \"full\"\nlivemode = false\n\
         key_env = \"KEY\"\nbase_url = \"{base_url}\"\n{more}"
    );
    toml::from_str(&text).unwrap()
}

fn account(base_url: &str, more: &str, stop: &CancellationToken) -> Account {
    account_until(base_url, more, stop, &CancellationToken::new())
}

fn account_until(
    base_url: &str,
    more: &str,
    stop: &CancellationToken,
    over: &CancellationToken,
) -> Account {
    let around = Surroundings {
        env: Arc::new(|name| (name == "KEY").then(|| KEY.to_owned())),
        db_now: Arc::new(Utc::now),
        stop: stop.clone(),
        grace: std::time::Duration::from_secs(6),
        over: over.clone(),
    };
    Account::open(settings(base_url, more), around).unwrap()
}

impl Desk {
    async fn new(more: &str) -> Self {
        Self::with(Settings::default(), more).await
    }

    async fn with(sandbox: Settings, more: &str) -> Self {
        let sandbox = Sandbox::start(sandbox).await.unwrap();
        let stop = CancellationToken::new();
        let account = account(&sandbox.base_url(), more, &stop);
        Self { sandbox, account, stop }
    }

    /// Captured payments `row-0`, `row-1`, … one a second, the last one an hour old.
    fn plant(&self, count: i64) {
        let first = dawn();
        let seeds = (0..count).map(|n| {
            let seed = Seed::captured(TAG, &format!("row-{n}"), 1_000 + n, "eur");
            Seed { id: Some(format!("pi_{n}")), ..seed.created_at(first.timestamp() + n) }
        });
        self.sandbox.seed(seeds).unwrap();
    }

    async fn look(&self, questions: &[Question], need: Need) -> Looked {
        self.account.look(questions, need).await
    }
}

/// When the first planted payment was made.
fn dawn() -> DateTime<Utc> {
    Utc::now() - TimeDelta::hours(1)
}

fn asked(tag: Option<&str>, reference: Option<&str>) -> Question {
    let kinds = vec!["payment_intent".to_owned(), "charge".to_owned()];
    let from = dawn() - TimeDelta::minutes(10);
    Question {
        row: 0,
        reference: reference.map(str::to_owned),
        tag: tag.map(str::to_owned),
        kinds,
        window: (from, from + TimeDelta::minutes(40)),
    }
}

/// As [`asked`], of intents alone.
fn by_intent(tag: &str) -> Question {
    Question { kinds: vec!["payment_intent".to_owned()], ..asked(Some(tag), None) }
}

fn refund(tag: &str) -> Question {
    Question { kinds: vec!["refund".to_owned()], ..asked(Some(tag), None) }
}

fn found(evidence: &[Evidence]) -> Vec<&PspObject> {
    let objects = evidence.iter().filter_map(|item| match &item.answer {
        Answer::Found { objects, .. } => Some(objects),
        _other => None,
    });
    objects.flatten().collect()
}

fn nothing(evidence: &[Evidence]) -> Option<&CompleteSearch> {
    evidence.iter().find_map(|item| match &item.answer {
        Answer::Nothing(search) => Some(search),
        _other => None,
    })
}

fn complete(evidence: &[Evidence]) -> Option<&CompleteSearch> {
    evidence.iter().find_map(|item| match &item.answer {
        Answer::Nothing(search) | Answer::Found { search: Some(search), .. }
            if search.route == Route::List =>
        {
            Some(search)
        }
        _other => None,
    })
}

fn causes(evidence: &[Evidence]) -> Vec<CauseKind> {
    let causes = evidence.iter().filter_map(|item| match &item.answer {
        Answer::NoAnswer(cause) => Some(cause.kind),
        _other => None,
    });
    causes.collect()
}

fn routes(evidence: &[Evidence]) -> Vec<Route> {
    evidence.iter().map(|item| item.route).collect()
}

/// Counts of the requests that the sandbox saw, by path.
fn paths(sandbox: &Handle) -> BTreeMap<String, usize> {
    let mut paths = BTreeMap::new();
    for request in sandbox.requests() {
        *paths.entry(request.path.clone()).or_default() += 1;
    }
    paths
}
