//! Stripe over its lane: one page of a list, one object by its reference, one search by tag.
//!
//! Every object is checked for its mode before anybody else sees it. A 404 is an answer only where
//! Stripe says `resource_missing` of the very object asked for; anywhere else it means that this
//! is not Stripe's API. Never sends anything but GET.
//! Sources: docs.stripe.com/api/{pagination,payment_intents/list,charges/list,refunds/list,
//! payment_intents/search,errors}.

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::OnceCell;

use crate::model::evidence::{Cause, CauseKind};
use crate::model::money::Money;
use crate::model::time::Instant;
use crate::psp::lane::{Ask, Body, Lane, Reply, StopKind, cause};
use crate::psp::probe::KeyKind;
use crate::psp::redact::plain_word;
use crate::psp::settings::{AccountSettings, OursField};
use crate::psp::stripe_objects::{Charge, Intent, Link, Page, Parts, Refund, SearchPage};
use crate::secret::{EnvLookup, KeySource, Secret};

/// Objects of one page; Stripe's most.
pub(super) const PAGE: usize = 100;

/// A search is read this many pages far: one tag has a handful of objects, not a thousand.
const SEARCH_PAGES_MAX: u32 = 10;

/// The object kinds that this adapter lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum ObjectKind {
    PaymentIntent,
    Charge,
    Refund,
}

impl ObjectKind {
    pub(super) fn parse(text: &str) -> Option<Self> {
        [Self::PaymentIntent, Self::Charge, Self::Refund].into_iter().find(|k| k.as_str() == text)
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::PaymentIntent => "payment_intent",
            Self::Charge => "charge",
            Self::Refund => "refund",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::PaymentIntent => "/v1/payment_intents",
            Self::Charge => "/v1/charges",
            Self::Refund => "/v1/refunds",
        }
    }

    /// What a page shall hold expanded, so that no object needs a second call.
    fn list_expand(self) -> Option<&'static str> {
        match self {
            Self::PaymentIntent => Some("data.latest_charge"),
            Self::Charge => Some("data.payment_intent"),
            Self::Refund => None,
        }
    }

    /// Whether Stripe's search knows this kind.
    pub(super) fn is_searchable(self) -> bool {
        matches!(self, Self::PaymentIntent | Self::Charge)
    }
}

/// One object as it came, with what folding and matching need at hand.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    /// The id it came under.
    pub(super) id: String,
    /// The id of the payment or refund that it is or belongs to.
    pub(super) parent: String,
    /// The kind it was listed as.
    pub(super) kind: ObjectKind,
    pub(super) created: i64,
    pub(super) tag: Option<String>,
    pub(super) captured: Option<Money>,
    /// By the account's `ours` filter.
    pub(super) ours: bool,
    pub(super) parts: Parts,
}

/// One page of a list.
#[derive(Debug)]
pub(super) struct ListPage {
    pub(super) asked_at: Instant,
    pub(super) skew_secs: Option<i64>,
    pub(super) pieces: Vec<Piece>,
    pub(super) has_more: bool,
}

/// What one page is asked for: creation seconds, both inclusive, newest first.
#[derive(Debug, Clone)]
pub(super) struct PageAsk {
    pub(super) kind: ObjectKind,
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) cursor: Option<String>,
    pub(super) limit: usize,
}

/// One object by its reference.
#[derive(Debug)]
pub(super) enum Fetched {
    Found {
        asked_at: Instant,
        piece: Box<Piece>,
    },
    /// Stripe knows no such object.
    Unknown {
        asked_at: Instant,
    },
}

/// A search by tag, read to its end.
#[derive(Debug)]
pub(super) struct SearchResult {
    pub(super) asked_at: Instant,
    pub(super) skew_secs: Option<i64>,
    pub(super) pieces: Vec<Piece>,
}

#[derive(Deserialize)]
struct ErrorBody {
    error: ErrorWords,
}

#[derive(Deserialize)]
struct ErrorWords {
    code: Option<String>,
    param: Option<String>,
}

/// Stripe, as one account of it is configured.
pub(super) struct Stripe {
    pub(super) lane: Lane,
    headers: OnceCell<HeaderMap>,
    key: KeySource,
    env: EnvLookup,
    livemode: bool,
    api_version: String,
    on_behalf: Option<String>,
    pub(super) tag_key: String,
    ours: Option<(OursField, String)>,
    /// Set once a list was answered as Stripe does.
    lists: OnceCell<()>,
}

impl Stripe {
    pub(super) fn new(
        settings: &AccountSettings,
        tag_key: &str,
        lane: Lane,
        env: EnvLookup,
    ) -> Self {
        let ours = settings.ours.as_ref();
        let ours = ours.and_then(|o| OursField::parse(&o.field).map(|f| (f, o.value.clone())));
        Self {
            lane,
            headers: OnceCell::new(),
            key: settings.key_source(),
            env,
            livemode: settings.livemode,
            api_version: settings.api_version.clone(),
            on_behalf: settings.stripe_account.clone(),
            tag_key: tag_key.to_owned(),
            ours,
            lists: OnceCell::new(),
        }
    }

    /// The headers of every request; the first question reads the secret.
    async fn headers(&self) -> Result<&HeaderMap, Cause> {
        if let Some(stop) = self.lane.stopped() {
            return Err(cause(CauseKind::AccountStopped, stop.text));
        }
        self.headers.get_or_try_init(|| self.make_headers()).await
    }

    async fn make_headers(&self) -> Result<HeaderMap, Cause> {
        let key = self.key.read(&self.env).await.map_err(|error| {
            let text = format!("{}: {error}; nothing was asked", self.key.field());
            self.lane.stop_account(StopKind::NoKey, text)
        })?;
        self.check_key(&key)?;
        let unfit = |what: &str| {
            let text = format!("the {what} cannot stand in a header; nothing was asked");
            self.lane.stop_account(StopKind::Misconfigured, text)
        };
        let mut headers = HeaderMap::new();
        let mut bearer = HeaderValue::from_str(&format!("Bearer {}", key.expose()))
            .map_err(|_bad| unfit("secret key"))?;
        bearer.set_sensitive(true);
        headers.insert(AUTHORIZATION, bearer);
        let version =
            HeaderValue::from_str(&self.api_version).map_err(|_bad| unfit("api_version"))?;
        headers.insert(HeaderName::from_static("stripe-version"), version);
        if let Some(account) = &self.on_behalf {
            let account = HeaderValue::from_str(account).map_err(|_bad| unfit("stripe_account"))?;
            headers.insert(HeaderName::from_static("stripe-account"), account);
        }
        Ok(headers)
    }

    /// A key says by its prefix which mode it opens.
    fn check_key(&self, key: &Secret) -> Result<(), Cause> {
        let key_is_live = match key.expose().get(..8) {
            Some("sk_live_" | "rk_live_") => Some(true),
            Some("sk_test_" | "rk_test_") => Some(false),
            Some(_) | None => None,
        };
        match key_is_live {
            Some(is_live) if is_live != self.livemode => Err(self.wrong_mode("the key", is_live)),
            Some(_) | None => Ok(()),
        }
    }

    /// What the key says of itself by its prefix.
    pub(super) async fn key_kind(&self) -> KeyKind {
        // Read once: what is read of a pipe is gone.
        let Ok(headers) = self.headers().await else { return KeyKind::Unknown };
        let shown = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let key = shown.and_then(|text| text.strip_prefix("Bearer "));
        match key.and_then(|key| key.get(..3)) {
            Some("sk_") => KeyKind::Secret,
            Some("rk_") => KeyKind::Restricted,
            Some(_) | None => KeyKind::Unknown,
        }
    }

    fn wrong_mode(&self, what: &str, is_live: bool) -> Cause {
        let word = |live: bool| if live { "live" } else { "test" };
        let text = format!(
            "{what} is of {} mode and the account is configured for {} mode; check livemode and \
             the key",
            word(is_live),
            word(self.livemode)
        );
        self.lane.stop_account(StopKind::WrongEnvironment, text)
    }

    async fn get<T: DeserializeOwned>(&self, ask: &Ask) -> Result<Reply<T>, Cause> {
        let headers = self.headers().await?;
        self.lane.get(headers, ask).await
    }

    /// One page of a list.
    pub(super) async fn list(&self, ask: &PageAsk) -> Result<ListPage, Cause> {
        match ask.kind {
            ObjectKind::PaymentIntent => self.list_as::<Intent>(ask).await,
            ObjectKind::Charge => self.list_as::<Charge>(ask).await,
            ObjectKind::Refund => self.list_as::<Refund>(ask).await,
        }
    }

    async fn list_as<T: DeserializeOwned + IntoPiece>(
        &self,
        page: &PageAsk,
    ) -> Result<ListPage, Cause> {
        let mut query = vec![
            ("created[gte]".to_owned(), page.from.to_string()),
            ("created[lte]".to_owned(), page.to.to_string()),
            ("limit".to_owned(), page.limit.to_string()),
        ];
        if let Some(cursor) = &page.cursor {
            query.push(("starting_after".to_owned(), cursor.clone()));
        }
        if let Some(expand) = page.kind.list_expand().filter(|_| page.limit > 1) {
            query.push(("expand[]".to_owned(), expand.to_owned()));
        }
        let path = page.kind.path();
        let reply = self.get::<Page<T>>(&Ask { path: path.to_owned(), query }).await?;
        match reply.body {
            Body::Ok(listed) if listed.object == "list" => Ok(ListPage {
                asked_at: reply.asked_at,
                skew_secs: reply.skew_secs,
                pieces: self.pieces(listed.data)?,
                has_more: listed.has_more,
            }),
            Body::Ok(_) => Err(not_a(path, "list")),
            Body::Refused { status, body } => Err(self.list_refused(page, status, &body)),
        }
    }

    fn list_refused(&self, page: &PageAsk, status: u16, body: &[u8]) -> Cause {
        let path = page.kind.path();
        let (code, param) = error_words(body);
        let about_cursor = param.as_deref() == Some("starting_after")
            || (status == 404 && code.as_deref() == Some("resource_missing"));
        if page.cursor.is_some() && about_cursor {
            let detail = format!("GET {path}: the PSP no longer knows the page's last object");
            return cause(CauseKind::Incomplete, detail);
        }
        if matches!(status, 400 | 404) {
            let code = code.map_or(String::new(), |code| format!(", {code}"));
            let text = format!(
                "GET {path} answered {status}{code}: this address does not list as Stripe's API \
                 does; check base_url and api_version"
            );
            return self.lane.stop_account(StopKind::Misconfigured, text);
        }
        cause(CauseKind::Unreadable, format!("GET {path} answered {status}"))
    }

    /// One object by its reference; a charge is answered with its intent in it.
    pub(super) async fn fetch(&self, reference: &str) -> Result<Fetched, Cause> {
        let Some(kind) = kind_of(reference) else {
            return Ok(Fetched::Unknown { asked_at: self.lane.db_now() });
        };
        match kind {
            ObjectKind::PaymentIntent => {
                self.fetch_as::<Intent>(kind, reference, Some("latest_charge")).await
            }
            ObjectKind::Charge => {
                self.fetch_as::<Charge>(kind, reference, Some("payment_intent")).await
            }
            ObjectKind::Refund => self.fetch_as::<Refund>(kind, reference, None).await,
        }
    }

    async fn fetch_as<T: DeserializeOwned + IntoPiece>(
        &self,
        kind: ObjectKind,
        reference: &str,
        expand: Option<&str>,
    ) -> Result<Fetched, Cause> {
        let query = expand.map(|expand| ("expand[]".to_owned(), expand.to_owned()));
        let path = format!("{}/{reference}", kind.path());
        let ask = Ask { path, query: query.into_iter().collect() };
        let reply = self.get::<T>(&ask).await?;
        let asked_at = reply.asked_at;
        match reply.body {
            Body::Ok(object) => {
                let piece = self.piece(object)?;
                let is_it = piece.id == reference;
                let piece = Box::new(piece);
                is_it.then_some(Fetched::Found { asked_at, piece }).ok_or_else(|| {
                    let detail = format!("GET {} answered another object", ask.path);
                    cause(CauseKind::Unreadable, detail)
                })
            }
            Body::Refused { status: 404, body } => match error_words(&body) {
                (Some(code), _) if code == "resource_missing" => Ok(Fetched::Unknown { asked_at }),
                _other => Err(self.lane.stop_account(
                    StopKind::Misconfigured,
                    format!(
                        "GET {} answered 404 and not as Stripe's API does; check base_url",
                        ask.path
                    ),
                )),
            },
            Body::Refused { status, body: _ } => {
                let detail = format!("GET {} answered {status}", ask.path);
                Err(cause(CauseKind::Unreadable, detail))
            }
        }
    }

    /// Everything that the search index has under a tag. Compared again byte by byte by the
    /// caller: Stripe's `:` ignores case.
    pub(super) async fn search(&self, kind: ObjectKind, tag: &str) -> Result<SearchResult, Cause> {
        match kind {
            ObjectKind::PaymentIntent => self.search_as::<Intent>(kind, tag).await,
            ObjectKind::Charge | ObjectKind::Refund => self.search_as::<Charge>(kind, tag).await,
        }
    }

    async fn search_as<T: DeserializeOwned + IntoPiece>(
        &self,
        kind: ObjectKind,
        tag: &str,
    ) -> Result<SearchResult, Cause> {
        let path = format!("{}/search", kind.path());
        let clause = format!("metadata[\"{}\"]:\"{}\"", quoted(&self.tag_key), quoted(tag));
        let mut result: Option<SearchResult> = None;
        let mut page: Option<String> = None;
        for _ in 0..SEARCH_PAGES_MAX {
            let mut query =
                vec![("query".to_owned(), clause.clone()), ("limit".to_owned(), PAGE.to_string())];
            query.extend(page.take().map(|page| ("page".to_owned(), page)));
            let reply = self.get::<SearchPage<T>>(&Ask { path: path.clone(), query }).await?;
            let found = match reply.body {
                Body::Ok(found) if found.object == "search_result" => found,
                Body::Ok(_) => return Err(not_a(&path, "search_result")),
                Body::Refused { status, body } => {
                    return Err(self.no_search(kind, &path, status, &body).await);
                }
            };
            let so_far = result.get_or_insert_with(|| SearchResult {
                asked_at: reply.asked_at,
                skew_secs: None,
                pieces: Vec::new(),
            });
            so_far.skew_secs = wider_skew(so_far.skew_secs, reply.skew_secs);
            so_far.pieces.extend(self.pieces(found.data)?);
            match (found.has_more, found.next_page) {
                (false, _) => break,
                (true, Some(next)) => page = Some(next),
                (true, None) => {
                    let detail = format!("GET {path}: more pages are said to follow, and no way");
                    return Err(cause(CauseKind::Incomplete, detail));
                }
            }
        }
        match (result, page) {
            (Some(result), None) => Ok(result),
            (Some(_) | None, _) => {
                let detail = format!("GET {path}: no end after {SEARCH_PAGES_MAX} pages");
                Err(cause(CauseKind::Incomplete, detail))
            }
        }
    }

    /// Who offers no search answers 404, and so does an address that is no API of Stripe's: one
    /// page of a list tells them apart, and stops the account where the address is wrong.
    async fn no_search(&self, kind: ObjectKind, path: &str, status: u16, body: &[u8]) -> Cause {
        if status == 404 {
            let now = self.lane.db_now().timestamp();
            let page = PageAsk { kind, from: now, to: now, cursor: None, limit: 1 };
            let list = || async { self.list(&page).await.map(|_page| ()) };
            let listed = self.lists.get_or_try_init(list).await;
            if let (Err(why), Some(_)) = (listed, self.lane.stopped()) {
                return why;
            }
        }
        search_refused(path, status, body)
    }

    /// Every refund of one payment, whatever its tag.
    pub(super) async fn refunds_of(&self, payment: &str) -> Result<(Instant, Vec<Piece>), Cause> {
        let path = ObjectKind::Refund.path();
        let filter = match kind_of(payment) {
            Some(ObjectKind::PaymentIntent) => "payment_intent",
            Some(ObjectKind::Charge | ObjectKind::Refund) | None => "charge",
        };
        let mut first: Option<Instant> = None;
        let mut pieces: Vec<Piece> = Vec::new();
        for _ in 0..SEARCH_PAGES_MAX {
            let mut query = vec![
                (filter.to_owned(), payment.to_owned()),
                ("limit".to_owned(), PAGE.to_string()),
            ];
            query.extend(pieces.last().map(|last| ("starting_after".to_owned(), last.id.clone())));
            let reply = self.get::<Page<Refund>>(&Ask { path: path.to_owned(), query }).await?;
            let page = match reply.body {
                Body::Ok(page) if page.object == "list" => page,
                Body::Ok(_) => return Err(not_a(path, "list")),
                Body::Refused { status, body: _ } => {
                    let detail = format!("GET {path} of {payment} answered {status}");
                    return Err(cause(CauseKind::Unreadable, detail));
                }
            };
            if page.data.iter().any(|refund| refund.payment().as_deref() != Some(payment)) {
                let detail = format!("GET {path}: the server ignored that {payment} was asked for");
                return Err(cause(CauseKind::Unreadable, detail));
            }
            let asked_at = *first.get_or_insert(reply.asked_at);
            let has_more = page.has_more && !page.data.is_empty();
            pieces.extend(self.pieces(page.data)?);
            if !has_more {
                return Ok((asked_at, pieces));
            }
        }
        let detail = format!("GET {path} of {payment}: no end after {SEARCH_PAGES_MAX} pages");
        Err(cause(CauseKind::Incomplete, detail))
    }

    fn pieces<T: IntoPiece>(&self, objects: Vec<T>) -> Result<Vec<Piece>, Cause> {
        objects.into_iter().map(|object| self.piece(object)).collect()
    }

    fn piece<T: IntoPiece>(&self, object: T) -> Result<Piece, Cause> {
        if !object.is_of_its_kind() {
            let detail = format!("{} is not of the kind that was asked for", object.id());
            return Err(cause(CauseKind::Unreadable, detail));
        }
        match object.livemode() {
            Mode::Is(live) if live != self.livemode => {
                return Err(self.wrong_mode("an object that the PSP sent", live));
            }
            Mode::Missing => {
                let detail = format!("{} does not say its livemode", object.id());
                return Err(cause(CauseKind::Unreadable, detail));
            }
            Mode::Is(_) | Mode::NotStated => {}
        }
        Ok(object.into_piece(&self.tag_key, self.ours.as_ref()))
    }
}

/// The larger of two clock differences, by size.
pub(super) fn wider_skew(a: Option<i64>, b: Option<i64>) -> Option<i64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b.abs() > a.abs() { b } else { a }),
        (a, b) => a.or(b),
    }
}

fn not_a(path: &str, object: &str) -> Cause {
    cause(CauseKind::Unreadable, format!("GET {path}: the answer is no `{object}`"))
}

fn search_refused(path: &str, status: u16, body: &[u8]) -> Cause {
    let code = error_words(body).0.map_or(String::new(), |code| format!(", {code}"));
    let detail = format!(
        "GET {path} answered {status}{code}; where the PSP offers no search, set search = false"
    );
    cause(CauseKind::Unreadable, detail)
}

fn error_words(body: &[u8]) -> (Option<String>, Option<String>) {
    match serde_json::from_slice::<ErrorBody>(body) {
        Ok(ErrorBody { error }) => {
            let plain = |word: Option<String>| word.filter(|word| plain_word(word).is_some());
            (plain(error.code), plain(error.param))
        }
        Err(_not_stripes) => (None, None),
    }
}

/// Escapes a text for a quoted string of Stripe's search language.
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// Which kind a reference names by its prefix; `None` for what this adapter cannot fetch, and for
/// text that no id of Stripe's is made of (a stored reference is data and never becomes a path).
pub(super) fn kind_of(reference: &str) -> Option<ObjectKind> {
    let is_id = reference.len() <= 255
        && reference.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    let (prefix, rest) = reference.split_once('_')?;
    if !is_id || rest.is_empty() {
        return None;
    }
    match prefix {
        "pi" => Some(ObjectKind::PaymentIntent),
        "ch" | "py" => Some(ObjectKind::Charge),
        "re" | "pyr" => Some(ObjectKind::Refund),
        _other => None,
    }
}

/// What an object says of its mode.
enum Mode {
    Is(bool),
    /// It should say, and does not.
    Missing,
    /// Its kind has no such field.
    NotStated,
}

impl From<Option<bool>> for Mode {
    fn from(livemode: Option<bool>) -> Self {
        livemode.map_or(Self::Missing, Self::Is)
    }
}

trait IntoPiece {
    fn id(&self) -> &str;
    fn is_of_its_kind(&self) -> bool;
    fn livemode(&self) -> Mode;
    fn into_piece(self, tag_key: &str, ours: Option<&(OursField, String)>) -> Piece;
}

fn is_ours(
    ours: Option<&(OursField, String)>,
    read: impl Fn(&OursField) -> Option<String>,
) -> bool {
    ours.is_none_or(|(field, value)| read(field).as_ref() == Some(value))
}

impl IntoPiece for Intent {
    fn id(&self) -> &str {
        &self.id
    }

    fn is_of_its_kind(&self) -> bool {
        self.object == ObjectKind::PaymentIntent.as_str()
    }

    fn livemode(&self) -> Mode {
        self.livemode.into()
    }

    fn into_piece(self, tag_key: &str, ours: Option<&(OursField, String)>) -> Piece {
        Piece {
            id: self.id.clone(),
            parent: self.id.clone(),
            kind: ObjectKind::PaymentIntent,
            created: self.created,
            tag: self.tag(tag_key),
            captured: self.captured(),
            ours: is_ours(ours, |field| self.field(field)),
            parts: Parts { intent: Some(self), ..Parts::default() },
        }
    }
}

impl IntoPiece for Charge {
    fn id(&self) -> &str {
        &self.id
    }

    fn is_of_its_kind(&self) -> bool {
        self.object == ObjectKind::Charge.as_str()
    }

    fn livemode(&self) -> Mode {
        self.livemode.into()
    }

    fn into_piece(mut self, tag_key: &str, ours: Option<&(OursField, String)>) -> Piece {
        let (tag, captured) = (self.tag(tag_key), self.captured_money());
        let ours = is_ours(ours, |field| self.field(field));
        let parent = self.intent_id().unwrap_or(&self.id).to_owned();
        // The intent stands once, beside its charges.
        let intent = match self.payment_intent.take() {
            Some(Link::Whole(intent)) => {
                self.payment_intent = Some(Link::Id(intent.id.clone()));
                Some(*intent)
            }
            link => {
                self.payment_intent = link;
                None
            }
        };
        Piece {
            id: self.id.clone(),
            parent,
            kind: ObjectKind::Charge,
            created: self.created,
            tag,
            captured,
            ours,
            parts: Parts { intent, charges: vec![self], ..Parts::default() },
        }
    }
}

impl IntoPiece for Refund {
    fn id(&self) -> &str {
        &self.id
    }

    fn is_of_its_kind(&self) -> bool {
        self.object == ObjectKind::Refund.as_str()
    }

    fn livemode(&self) -> Mode {
        Mode::NotStated
    }

    fn into_piece(self, tag_key: &str, ours: Option<&(OursField, String)>) -> Piece {
        Piece {
            id: self.id.clone(),
            parent: self.id.clone(),
            kind: ObjectKind::Refund,
            created: self.created,
            tag: self.tag(tag_key),
            captured: self.captured_money(),
            ours: is_ours(ours, |field| self.field(field)),
            parts: Parts { refund: Some(self), ..Parts::default() },
        }
    }
}
