//! Faults as data: which request, how often, and what goes wrong.
//!
//! A request takes the first rule of the list that fits it and has turns left; no request takes
//! two. Whether a fault lets a POST be carried out is part of the fault: an action that *replaces*
//! the answer (a status, HTML, silence, a reset before any byte) happens instead of the request,
//! one that *deforms* it (a delay, a cut after some bytes, a changed object) happens to the answer
//! of a request that was carried out, and `act_then` makes any action one of the second kind:
//! the lost answer.
//!
//! To add one: a variant here, its effect in `staging` (or `pages`, `alter`, `bodies`), a line in
//! `tests/it/sandbox.rs`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::mint::Mint;
use super::routes::Route;
use super::seeds::Seed;
use super::settings::RetryAfter;
use super::situations::Situation;

/// One fault: where, how often, what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultRule {
    /// A name for the log of requests; empty is fine.
    #[serde(default)]
    pub name: String,
    /// Which requests it fits.
    #[serde(default)]
    pub matches: Matches,
    /// How often it may happen; none: as long as the rule stands.
    #[serde(default)]
    pub times: Option<u64>,
    /// What goes wrong.
    pub action: Action,
}

impl FaultRule {
    /// This action on every request.
    #[must_use]
    pub fn always(action: Action) -> Self {
        Self { name: String::new(), matches: Matches::default(), times: None, action }
    }

    /// This action on every request to one route.
    #[must_use]
    pub fn on(route: Route, action: Action) -> Self {
        let matches = Matches { route: Some(route), ..Matches::default() };
        Self { matches, ..Self::always(action) }
    }

    /// The same, but only so many times.
    #[must_use]
    pub fn times(self, times: u64) -> Self {
        Self { times: Some(times), ..self }
    }

    /// The same, at these of the requests that fit.
    #[must_use]
    pub fn at(mut self, turn: Turn) -> Self {
        self.matches.turn = turn;
        self
    }

    /// The same, only on pages of this kind.
    #[must_use]
    pub fn page(mut self, page: PageSpot) -> Self {
        self.matches.page = Some(page);
        self
    }
}

/// Which requests a rule fits; what is left out fits all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Matches {
    /// The route.
    pub route: Option<Route>,
    /// The HTTP method, in capitals.
    pub method: Option<String>,
    /// How the path begins.
    pub path_prefix: Option<String>,
    /// The account.
    pub account: Option<String>,
    /// The object that the path names.
    pub object_id: Option<String>,
    /// A text that a parameter's name or value holds, such as a tag in the metadata.
    pub mentions: Option<String>,
    /// Where in a list's pages. Answers that are no page never fit.
    pub page: Option<PageSpot>,
    /// Which of the requests that fit all of the above, in their order.
    pub turn: Turn,
}

/// Where a page stands in its list. The only page of a list is its first and its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PageSpot {
    /// Asked for without a cursor.
    First,
    /// Asked for with a cursor, and not the last.
    Middle,
    /// With nothing after it.
    Last,
}

/// Which of the requests that fit, counted from 1. One that an earlier rule took is not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Turn {
    /// Each.
    #[default]
    Always,
    /// The n-th alone.
    Nth(u64),
    /// The n-th and all after it.
    From(u64),
    /// Every n-th.
    Every(u64),
    /// So many of a thousand, drawn from the seed.
    PerMille(u16),
}

/// What goes wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Cuts every connection and refuses new ones for so long. Replaces.
    RefuseConnections {
        /// How long; 0 means until the handle opens the sandbox again.
        for_ms: u64,
    },
    /// Cuts every connection and lets new ones hang unanswered for so long. Replaces.
    HangConnections {
        /// How long; 0 means until the handle opens the sandbox again.
        for_ms: u64,
    },
    /// Resets the connection before any byte of an answer. Replaces.
    Reset,
    /// Resets the connection after so many bytes of the body. Deforms.
    ResetAfter {
        /// How much of the body is sent.
        bytes: usize,
    },
    /// Ends the answer after so many bytes of the body without resetting the connection: over
    /// HTTP/2 RST_STREAM, over HTTP/1 a close. Deforms.
    EndStreamAfter {
        /// How much of the body is sent.
        bytes: usize,
    },
    /// Says GOAWAY over HTTP/2, or nothing over HTTP/1, and closes unanswered. Replaces.
    GoAway,
    /// Sends so many bytes of the body, then closes its own half and says no more. Deforms.
    HalfClose {
        /// How much of the body is sent.
        bytes: usize,
    },
    /// Takes the request and never answers. Replaces.
    NoAnswer,
    /// Sends the body in drops. Deforms.
    Drip {
        /// Bytes in a drop.
        bytes: usize,
        /// Time between two drops.
        every_ms: u64,
    },
    /// Answers so much later. Deforms.
    Delay {
        /// How much later.
        ms: u64,
    },
    /// Answers with this status and an error of Stripe's shape. Replaces.
    Status {
        /// The status: 500, 502, 503, 429, 401, 403, 404, …
        code: u16,
        /// The `Retry-After` header.
        #[serde(default)]
        retry_after: RetryAfter,
        /// The `Stripe-Rate-Limited-Reason` header.
        #[serde(default)]
        reason: Option<String>,
    },
    /// Answers with an HTML page. Replaces.
    Html {
        /// The status; 200 is the nasty one.
        code: u16,
    },
    /// Answers 200 with no body. Replaces.
    EmptyBody,
    /// Answers with the beginning of the JSON only. Deforms.
    TruncatedJson {
        /// How much of it, of a thousand.
        keep_per_mille: u16,
    },
    /// Answers with JSON of another shape. Deforms.
    WrongSchema(SchemaFault),
    /// Answers with a little gzip that unpacks to so much. Replaces.
    GzipBomb {
        /// Unpacked size.
        mib: u32,
    },
    /// Answers with a body of that size. Replaces.
    HugeBody {
        /// Size on the wire.
        mib: u32,
    },
    /// Answers with a page of so many objects. Replaces.
    ManyItems {
        /// How many.
        count: u32,
    },
    /// Answers with JSON nested so deep. Replaces.
    DeepNesting {
        /// How deep.
        depth: u32,
    },
    /// Sends the client elsewhere. Replaces.
    Redirect {
        /// The status: 301, 302, 307, 308.
        code: u16,
        /// The `Location`.
        to: String,
    },
    /// Answers a GET with what the same GET got the first time. Deforms.
    StaleReplay,
    /// Carries the request out and then does this: the lost answer.
    ActThen(Box<Action>),
    /// Does this at once, and carries the request out so much later: the late-landing call.
    ActLate {
        /// How much later.
        after_ms: u64,
        /// What the client sees meanwhile.
        meanwhile: Box<Action>,
    },
    /// Answers as if it were carried out, and keeps nothing of it.
    Forget,
    /// After this page was read, another object is there. Deforms nothing in the page itself.
    InsertBetweenPages(Box<Seed>),
    /// After this page was read, an object is gone.
    RemoveBetweenPages(Removed),
    /// Answers with the page that ends at the cursor, so that the next cursor is the same again.
    RepeatCursor,
    /// Answers with the first page although a cursor was given, and says that there is more.
    CursorLoop,
    /// Answers with no object and says that there is more.
    EmptyPageWithMore,
    /// Leaves `has_more` false although there is more.
    EndEarly,
    /// Answers with so many objects at most, whatever was asked for.
    ShrinkPage {
        /// How many.
        to: usize,
    },
    /// Lists as if no `created` filter had been sent.
    IgnoreCreated,
    /// Leaves objects out of the answer, as a replica that has not seen them. A fetch gets 404.
    Hide(Which),
    /// Lists objects twice.
    Duplicate(Which),
    /// Changes objects in the answer, not in the books. Deforms.
    Alter {
        /// Which objects.
        #[serde(default)]
        only: Which,
        /// What about them.
        change: Change,
    },
    /// Before each answer, moves an object in the books to the next of these situations.
    Progress {
        /// The intent or charge.
        id: String,
        /// One after the other; the last one stays.
        steps: Vec<Situation>,
    },
}

/// JSON of another shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SchemaFault {
    /// The whole answer is an array.
    TopLevelArray,
    /// The whole answer is `null`.
    TopLevelNull,
    /// `data` is an object.
    DataIsObject,
    /// There is no `data`.
    NoData,
    /// There is no `has_more`.
    NoHasMore,
    /// Objects have no `id`.
    NoId,
    /// Objects have no `status`.
    NoStatus,
    /// Amounts are text.
    AmountIsText,
    /// Amounts have a fraction.
    AmountIsFraction,
    /// `created` is text without a zone.
    CreatedIsText,
    /// Objects are of a kind that was not asked for.
    OtherObject,
}

/// Which object goes between two pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Removed {
    /// The last of this page, at which the next one would start.
    Cursor,
    /// The first of the next page.
    Next,
    /// That one.
    Id(String),
}

/// Which objects of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Which {
    /// All.
    #[default]
    All,
    /// That one.
    Id(String),
    /// Those with this value somewhere in their metadata.
    Tagged(String),
    /// The n-th of the page, counted from 0.
    Place(usize),
}

/// A change of an object in an answer; nested objects change with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Every amount becomes this.
    Amount(i64),
    /// Every amount is so much more.
    AmountBy(i64),
    /// Every amount is multiplied: minor units where major were meant.
    AmountTimes(i64),
    /// Every amount is divided: major units where minor were meant.
    AmountPer(i64),
    /// Another currency.
    Currency(String),
    /// Another status, known or not.
    Status(String),
    /// `livemode` turned round.
    FlipLivemode,
    /// Created at this Unix second: 1970, 9999.
    Created(i64),
    /// Created so much later.
    CreatedBy(i64),
    /// The tag nearly as it was.
    NearMiss(NearMiss),
    /// No metadata.
    DropTag,
    /// Any member, by its path from the object on, parted by dots.
    Set {
        /// The path.
        path: String,
        /// The value.
        value: Value,
    },
}

/// How a tag is nearly right; every value of the metadata changes so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NearMiss {
    /// In capitals.
    UpperCase,
    /// In small letters.
    LowerCase,
    /// Cut to so many characters: 22 and 40 are the usual ones.
    Truncated(usize),
    /// With spaces before and after.
    Padded,
    /// With a zero before it.
    ZeroBefore,
    /// Whole, but under another key.
    UnderKey(String),
    /// Whole, but in the description instead.
    InDescription,
}

/// What a rule is asked about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts<'a> {
    pub(super) route: Route,
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) account: &'a str,
    pub(super) object_id: Option<&'a str>,
    pub(super) mentions: &'a dyn Mentions,
    pub(super) page: Option<PageFacts>,
}

/// What a request says; a rule may look for a text in it.
pub(super) trait Mentions: std::fmt::Debug {
    fn mention(&self, text: &str) -> bool;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageFacts {
    pub(super) has_cursor: bool,
    pub(super) has_more: bool,
}

/// The rules in force, each with its counters.
#[derive(Debug, Default)]
pub(super) struct FaultBook(Vec<Standing>);

#[derive(Debug)]
struct Standing {
    rule: FaultRule,
    seen: u64,
    fired: u64,
}

/// The rule that a request takes.
#[derive(Debug, Clone)]
pub(super) struct Picked {
    pub(super) name: String,
    pub(super) action: Action,
    /// How often the rule has fired, this time included.
    pub(super) fired: u64,
}

impl FaultBook {
    pub(super) fn new(rules: Vec<FaultRule>) -> Self {
        let mut book = Self::default();
        rules.into_iter().for_each(|rule| book.add(rule));
        book
    }

    pub(super) fn add(&mut self, rule: FaultRule) {
        self.0.push(Standing { rule, seen: 0, fired: 0 });
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The rules with how often each has fired.
    pub(super) fn standing(&self) -> Vec<(FaultRule, u64)> {
        self.0.iter().map(|standing| (standing.rule.clone(), standing.fired)).collect()
    }

    pub(super) fn wants_replays(&self) -> bool {
        self.0.iter().any(|standing| standing.rule.action == Action::StaleReplay)
    }

    /// The first rule that fits and has turns left.
    pub(super) fn pick(&mut self, facts: &Facts, mint: &mut Mint) -> Option<Picked> {
        for standing in &mut self.0 {
            if !fits(&standing.rule.matches, facts) {
                continue;
            }
            standing.seen += 1;
            let spent = standing.rule.times.is_some_and(|times| standing.fired >= times);
            let due = match standing.rule.matches.turn {
                Turn::Always => true,
                Turn::Nth(n) => standing.seen == n,
                Turn::From(n) => standing.seen >= n,
                Turn::Every(n) => n > 0 && standing.seen.is_multiple_of(n),
                Turn::PerMille(share) => mint.draw(1000) < u64::from(share),
            };
            if spent || !due {
                continue;
            }
            standing.fired += 1;
            return Some(Picked {
                name: standing.rule.name.clone(),
                action: standing.rule.action.clone(),
                fired: standing.fired,
            });
        }
        None
    }
}

fn fits(matches: &Matches, facts: &Facts) -> bool {
    let same = |asked: &Option<String>, fact: Option<&str>| {
        asked.as_deref().is_none_or(|asked| fact == Some(asked))
    };
    matches.route.is_none_or(|route| route == facts.route)
        && same(&matches.method, Some(facts.method))
        && same(&matches.account, Some(facts.account))
        && same(&matches.object_id, facts.object_id)
        && matches.path_prefix.as_deref().is_none_or(|start| facts.path.starts_with(start))
        && matches.mentions.as_deref().is_none_or(|text| facts.mentions.mention(text))
        && matches.page.is_none_or(|spot| facts.page.is_some_and(|page| stands_at(page, spot)))
}

fn stands_at(page: PageFacts, spot: PageSpot) -> bool {
    match spot {
        PageSpot::First => !page.has_cursor,
        PageSpot::Middle => page.has_cursor && page.has_more,
        PageSpot::Last => !page.has_more,
    }
}
