//! The frame around every page, and the shapes that pages share.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;

use crate::model::money::{Currency, grouped_text};
use crate::model::time::Instant;
use crate::web::error::Refused;
use crate::web::html::{El, Html, document, el, of_class};
use crate::web::link::Link;
use crate::web::sessions::Person;
use crate::web::site::Site;
use crate::web::token;

/// Characters of a case's words in a list and a heading: three lines.
const SHORT: usize = 240;

/// The one sheet of styles.
pub const STYLE: &str = include_str!("style.css");

/// The sign in the browser's tab.
pub const ICON: &str = include_str!("icon.svg");

/// What stands where there is nothing.
pub const NOTHING: &str = "–";

/// The parts of the site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Here {
    /// What waits for a person.
    Queue,
    /// What ran.
    Runs,
    /// Files to download.
    Reports,
    /// None of these.
    Elsewhere,
}

/// One page on its way.
#[derive(Debug)]
pub struct Page<'a> {
    site: &'a Site,
    person: Option<&'a Person>,
    here: Here,
    title: String,
    main: Html,
}

impl<'a> Page<'a> {
    /// A page for somebody who is signed in.
    pub fn of(site: &'a Site, person: &'a Person, here: Here, title: impl Into<String>) -> Self {
        Self { site, person: Some(person), here, title: title.into(), main: Html::new() }
    }

    /// A page for anybody.
    pub fn open(site: &'a Site, title: impl Into<String>) -> Self {
        let (here, title) = (Here::Elsewhere, title.into());
        Self { site, person: None, here, title, main: Html::new() }
    }

    /// Something more on it.
    #[must_use]
    pub fn with(mut self, more: impl Into<Html>) -> Self {
        self.main = self.main.with(more);
        self
    }

    /// The answer.
    pub fn answer(self, status: StatusCode) -> Response {
        let style = Link::to("/style.css").with("v", &version_of(STYLE));
        let head = Html::new()
            .with(el("meta").at("charset", "utf-8"))
            .with(
                el("meta")
                    .at("name", "viewport")
                    .at("content", "width=device-width, initial-scale=1"),
            )
            .with(el("title").then(format!("{} · tieout", self.title)))
            .with(el("link").at("rel", "icon").href(&Link::to("/icon.svg")))
            .with(el("link").at("rel", "stylesheet").href(&style));
        let skip = of_class("a", "skip").at("href", "#main").then("Skip to the page");
        let body = Html::new()
            .with(skip)
            .with(self.person.map(|person| top(person, self.here)))
            .with(el("main").at("id", "main").then(self.person.and_then(warned)).then(self.main))
            .with(foot(self.site, self.person.is_some()));
        whole(status, "text/html; charset=utf-8", document(head, body))
    }
}

/// Somebody whom the database lets do anything: said on each page, to whoever sits there.
fn warned(person: &Person) -> Option<El> {
    let unheld = person.unheld?;
    let words = format!(
        "{} is {unheld}: the server holds this login by nothing, and what it says here proves no \
         second person. Sign in by a login of the role tieout_people.",
        person.name
    );
    Some(note("note warn", words))
}

fn top(person: &Person, here: Here) -> El {
    let brand =
        of_class("a", "brand").href(&Link::to("/cases")).then("tie").then(el("span").then("out"));
    let item = |is: Here, link: &'static str, words: &str| {
        let anchor = el("a").href(&Link::to(link)).then(words);
        let anchor = if is == here { anchor.at("aria-current", "page") } else { anchor };
        el("li").then(anchor)
    };
    let list = el("ul")
        .then(item(Here::Queue, "/cases", "Queue"))
        .then(item(Here::Runs, "/runs", "Runs"))
        .then(item(Here::Reports, "/reports", "Reports"));
    let who = of_class("div", "who")
        .then(el("span").then("signed in as ").then(el("strong").then(&person.name)))
        .then(form(person, &Link::to("/logout")).then(of_class("button", "link").then("Sign out")));
    let nav = el("nav").at("aria-label", "Pages").then(list);
    of_class("header", "top").then(el("div").then(brand).then(nav).then(who))
}

fn foot(site: &Site, is_inside: bool) -> El {
    let text = format!(
        "All times are UTC. {} · tieout {}",
        site.service.kind(),
        env!("CARGO_PKG_VERSION")
    );
    // Before somebody signs in there is one card in the middle.
    if is_inside { el("footer").then(text) } else { of_class("footer", "alone").then(text) }
}

/// A form that sends, with this session's secret.
pub fn form(person: &Person, to: &Link) -> El {
    el("form").at("method", "post").action(to).then(hidden("csrf", &person.csrf))
}

/// A field that nobody sees.
pub fn hidden(name: &'static str, value: &str) -> El {
    el("input").at("type", "hidden").at("name", name).at("value", value)
}

/// A card with a heading.
pub fn card(heading: &str) -> El {
    of_class("section", "card").then(el("h2").then(heading))
}

/// A card that a table fills.
pub fn flush(heading: &str) -> El {
    of_class("section", "card flush").then(el("h2").then(heading))
}

/// A table that may be wider than its card: then it is slid, and nothing of it is cut off.
pub fn scroll(table: El) -> El {
    of_class("div", "scroll").then(table)
}

/// A scroll without a link in it: the keyboard slides it as well.
pub fn scroll_of(label: &str, table: El) -> El {
    scroll(table).at("tabindex", 0).at("role", "region").at("aria-label", label)
}

/// What stands at the top of a page.
pub fn title(words: impl Into<Html>, beside: impl Into<Html>) -> El {
    of_class("div", "title").then(el("h1").then(words)).then(beside)
}

/// A head's cell.
pub fn th(words: &str) -> El {
    el("th").at("scope", "col").then(words)
}

/// A row's own cell.
pub fn row_head(words: impl Into<Html>) -> El {
    el("th").at("scope", "row").then(words)
}

/// An id.
pub fn id(words: impl Into<Html>) -> El {
    of_class("span", "id").then(words)
}

/// Words under other words.
pub fn small(words: impl Into<Html>) -> El {
    of_class("p", "small soft").then(words)
}

/// Words that only a screen reader reads.
pub fn unseen(words: &str) -> El {
    of_class("span", "hidden").then(words)
}

/// A fact by its name.
pub fn fact(name: &str, value: impl Into<Html>) -> El {
    el("div").then(el("dt").then(name)).then(el("dd").then(value))
}

/// A note with a colour, which its words say as well.
pub fn note(class: &'static str, words: impl Into<Html>) -> El {
    of_class("div", class).at("role", "status").then(el("p").then(words))
}

/// `1,240.00`, and the currency.
pub fn amount(minor: i128, currency: &str) -> (String, String) {
    match Currency::parse(currency) {
        Ok(known) => (grouped_text(minor, known.exponent()), known.code().to_owned()),
        Err(_none) => (NOTHING.to_owned(), String::new()),
    }
}

/// What a case says in one line of a list, where a PSP's words may fill screens.
pub fn short(text: &str) -> String {
    match text.char_indices().nth(SHORT) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// `1,284`.
pub fn count(number: i64) -> String {
    grouped_text(i128::from(number), 0)
}

/// A cell with an amount.
pub fn amount_cell(minor: i128, currency: &str) -> El {
    let (figures, code) = amount(minor, currency);
    of_class("td", "num").then(figures).then(of_class("span", "code").then(code))
}

/// `2026-11-19 08:14Z`, with the whole instant for machines.
pub fn time(at: Instant) -> El {
    el("time")
        .at("datetime", at.format("%Y-%m-%dT%H:%M:%SZ"))
        .then(at.format("%Y-%m-%d %H:%MZ").to_string())
}

/// How long ago: `41 min`, `22 h`, `3 d`.
pub fn age(from: Instant, to: Instant) -> String {
    let span = to - from;
    match (span.num_days(), span.num_hours()) {
        (0, 0) => format!("{} min", span.num_minutes().max(0)),
        (0, hours) => format!("{hours} h"),
        (days, _) => format!("{days} d"),
    }
}

/// The page of a refusal.
pub fn refused(site: &Site, person: Option<&Person>, refused: &Refused) -> Response {
    let heading = match refused.status {
        StatusCode::NOT_FOUND => "Not found",
        StatusCode::CONFLICT => "It changed meanwhile",
        StatusCode::FORBIDDEN => "Refused",
        StatusCode::SERVICE_UNAVAILABLE => "The database does not answer",
        _other => "Not done",
    };
    let page = match person {
        Some(person) => Page::of(site, person, Here::Elsewhere, heading),
        None => Page::open(site, heading),
    };
    let words = of_class("div", "note bad")
        .at("role", "alert")
        .then(el("p").then(el("strong").then(&refused.text)))
        .then(el("p").then("Next: ").then(&refused.hint));
    let back = el("p").then(el("a").href(&Link::to("/cases")).then("To the queue"));
    page.with(title(heading, Html::new())).with(words).with(back).answer(refused.status)
}

/// A short name of a file's contents, so that browsers may keep it for good.
fn version_of(text: &str) -> String {
    token::hash_of(text).chars().take(12).collect()
}

/// An answer with a body that is known.
pub fn whole(status: StatusCode, kind: &'static str, text: impl Into<Body>) -> Response {
    let mut answer = Response::new(text.into());
    *answer.status_mut() = status;
    answer.headers_mut().insert("content-type", HeaderValue::from_static(kind));
    answer
}

/// Leads on to another page, so that a reload sends nothing twice.
pub fn on_to(link: &Link) -> Response {
    let mut answer = whole(StatusCode::SEE_OTHER, "text/plain; charset=utf-8", Body::empty());
    let to = HeaderValue::from_str(link.as_str());
    let to = to.unwrap_or_else(|_odd| HeaderValue::from_static("/cases"));
    answer.headers_mut().insert("location", to);
    answer
}
