//! From a request to its answer: who asks, for what, and which page or action that is.

use std::net::IpAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, Request, StatusCode};
use axum::response::Response;

use crate::web::door::{no_chance, sign_in};
use crate::web::error::Refused;
use crate::web::form::{Fields, of_percent};
use crate::web::limit::WITHIN;
use crate::web::link::Link;
use crate::web::page::{self, ICON, STYLE};
use crate::web::sessions::Person;
use crate::web::site::Site;
use crate::web::{act, download, export, guard, token, view};

/// The largest form: a thousand cases, each with what was seen of it.
const FORM_MAX: usize = 1024 * 1024;

/// How long a form may take to arrive.
const FORM_PATIENCE: Duration = Duration::from_secs(15);

/// A year: the address of a style names its contents.
const FOR_GOOD: &str = "public, max-age=31536000, immutable";

/// Answers one request.
pub async fn respond(site: &Rc<Site>, request: Request<Body>, from: IpAddr) -> Response {
    let (parts, body) = request.into_parts();
    let person = person_of(site, &parts);
    let answer = match guard::check(site, &parts) {
        Ok(()) => Box::pin(route(site, person.as_ref(), &parts, body, from))
            .await
            .unwrap_or_else(|refused| page::refused(site, person.as_ref(), &refused)),
        // Who asks in another site's name is shown nothing of a session's.
        Err(refused) => page::refused(site, None, &refused),
    };
    guard::dressed(answer)
}

/// Where a request ended without an answer of its own.
pub fn broken() -> Response {
    let text = "tieout met a bug while it made this page; what was decided before stands.\n";
    let kind = "text/plain; charset=utf-8";
    guard::dressed(page::whole(StatusCode::INTERNAL_SERVER_ERROR, kind, text))
}

fn person_of(site: &Site, parts: &Parts) -> Option<Person> {
    let id = guard::session_of(site, parts)?;
    site.sessions.borrow_mut().find(id, Instant::now())
}

async fn route(
    site: &Rc<Site>,
    person: Option<&Person>,
    parts: &Parts,
    body: Body,
    from: IpAddr,
) -> Result<Response, Refused> {
    let path: Vec<String> = parts.uri.path().split('/').skip(1).map(of_percent).collect();
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let query = Fields::read(parts.uri.query().unwrap_or_default());
    if parts.method == Method::POST {
        let fields = read_form(body).await?;
        return match (path.as_slice(), person) {
            (["login"], _) => Box::pin(login(site, &fields, from)).await,
            (_, None) => Err(Refused::forbidden("Nobody is signed in", "sign in first")),
            (path, Some(person)) => Box::pin(post(site, person, parts, path, &fields)).await,
        };
    }
    match (path.as_slice(), person) {
        (["style.css"], _) => Ok(kept("text/css; charset=utf-8", STYLE)),
        (["icon.svg"], _) => Ok(kept("image/svg+xml", ICON)),
        (["healthz"], _) => Ok(page::whole(StatusCode::OK, "text/plain; charset=utf-8", "ok\n")),
        (["login"], None) => Ok(view::login::page(site, &query, StatusCode::OK, None)),
        (_, None) => Ok(view::login::instead(site, parts)),
        (path, Some(person)) => Box::pin(get(site, person, path, &query)).await,
    }
}

async fn get(
    site: &Rc<Site>,
    person: &Person,
    path: &[&str],
    query: &Fields,
) -> Result<Response, Refused> {
    // Nothing is called so, and not every database lets one ask.
    if path.iter().any(|part| part.contains(char::is_control)) {
        return Err(Refused::no_page());
    }
    match path {
        [""] | ["login"] => Ok(page::on_to(&Link::to("/cases"))),
        ["cases"] => Box::pin(view::queue::page(site, person, query)).await,
        ["cases.csv"] => Box::pin(export::cases(site, person, query)).await,
        ["cases", case] => Box::pin(view::case::page(site, person, number_of(case)?, query)).await,
        ["cases", case, "evidence.json"] => {
            Box::pin(download::evidence(person, number_of(case)?)).await
        }
        ["runs"] => Box::pin(view::runs::list(site, person)).await,
        ["runs", run] => Box::pin(view::runs::page(site, person, run)).await,
        ["reports"] => Box::pin(view::reports::page(site, person)).await,
        ["reports", day, run, file] => Box::pin(download::report(site, day, run, file)).await,
        _unknown => Err(Refused::no_page()),
    }
}

async fn post(
    site: &Rc<Site>,
    person: &Person,
    parts: &Parts,
    path: &[&str],
    fields: &Fields,
) -> Result<Response, Refused> {
    guard::check_form(person, fields)?;
    match path {
        ["logout"] => Ok(logout(site, parts)),
        ["cases", "preview"] => Box::pin(view::preview::page(site, person, fields)).await,
        ["cases", "act"] => Box::pin(act::act(site, person, fields)).await,
        _unknown => Err(Refused::no_page()),
    }
}

/// `C-1043` or `1043`.
pub fn number_of(text: &str) -> Result<i64, Refused> {
    let digits = text.trim_start_matches(['C', 'c', '-']);
    let number = digits.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(Refused::no_page)
}

async fn read_form(body: Body) -> Result<Fields, Refused> {
    let cut = || Refused::words("The form did not arrive whole, or is too large");
    match tokio::time::timeout(FORM_PATIENCE, to_bytes(body, FORM_MAX)).await {
        Ok(Ok(bytes)) => Ok(Fields::read(&String::from_utf8_lossy(&bytes))),
        Ok(Err(_cut)) => Err(cut()),
        Err(_elapsed) => Err(cut()),
    }
}

fn kept(kind: &'static str, text: &'static str) -> Response {
    let mut answer = page::whole(StatusCode::OK, kind, text);
    answer.headers_mut().insert("cache-control", HeaderValue::from_static(FOR_GOOD));
    answer
}

async fn login(site: &Site, fields: &Fields, from: IpAddr) -> Result<Response, Refused> {
    let name = fields.text("name").unwrap_or_default();
    let secret = fields.whole("secret").unwrap_or_default();
    let person = match sign_in(site, name, secret, from).await {
        Ok(person) => person,
        Err(refused) => {
            let status = refused.status;
            let mut answer = view::login::page(site, fields, status, Some(&refused));
            if status == StatusCode::TOO_MANY_REQUESTS {
                let secs = HeaderValue::from(WITHIN.as_secs());
                answer.headers_mut().insert("retry-after", secs);
            }
            return Ok(answer);
        }
    };
    let id = token::fresh().ok_or_else(no_chance)?;
    let ended = site.sessions.borrow_mut().open(&id, person, Instant::now());
    site.end(ended);
    let next = fields.text("next").and_then(Link::back);
    let mut answer = page::on_to(&next.unwrap_or_else(|| Link::to("/cases")));
    put_cookie(site, &mut answer, &id, "");
    Ok(answer)
}

fn logout(site: &Site, parts: &Parts) -> Response {
    let id = guard::session_of(site, parts);
    let ended = id.and_then(|id| site.sessions.borrow_mut().close(id));
    site.end(ended.into_iter().collect());
    let mut answer = page::on_to(&Link::to("/login"));
    put_cookie(site, &mut answer, "", "; Max-Age=0");
    answer
}

/// The cookie goes with the browser; here the session ends by itself.
fn put_cookie(site: &Site, answer: &mut Response, id: &str, more: &str) {
    let secure = if site.is_secure { "; Secure" } else { "" };
    let text = format!("{}={id}; Path=/; HttpOnly; SameSite=Strict{secure}{more}", site.cookie());
    if let Ok(value) = HeaderValue::from_str(&text) {
        answer.headers_mut().insert("set-cookie", value);
    }
}
