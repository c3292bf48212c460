//! What every request must be before anything is done for it, and what every answer says to the
//! browser.
//!
//! The host must be this site's: a name of another site that was made to point here would let
//! that site's pages read this one. What changes something must come from a page of this site, by
//! its origin and by a secret in the form. No script runs, nothing is fetched from elsewhere,
//! nobody frames it.

use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::Response;

use crate::web::error::Refused;
use crate::web::form::Fields;
use crate::web::sessions::Person;
use crate::web::site::Site;
use crate::web::token;

/// No script at all; styles from here.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; \
     base-uri 'none'; frame-ancestors 'none'";

/// Headers of every answer. Without a referrer the browser would call a form's origin `null`.
const ALWAYS: [(&str, &str); 6] = [
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
];

/// What a form's body calls itself.
const FORM: &str = "application/x-www-form-urlencoded";

/// Refuses what names another host, and what would change something from elsewhere.
pub fn check(site: &Site, parts: &Parts) -> Result<(), Refused> {
    let host = word(parts, "host").map(str::to_ascii_lowercase);
    let is_ours = |host: &str| site.hosts.iter().any(|known| known == host);
    let in_line = parts.uri.authority().map(|authority| authority.as_str().to_ascii_lowercase());
    let is_fine = host.as_deref().is_some_and(is_ours)
        && in_line.as_deref().is_none_or(is_ours)
        && parts.headers.get_all("host").iter().count() == 1;
    if !is_fine {
        return Err(Refused::new(
            StatusCode::MISDIRECTED_REQUEST,
            "The request names a host that is not this page's; nothing was done.",
            "open the address that `tieout serve` printed; behind a proxy, say in [web] origin \
             what browsers see",
        ));
    }
    match &parts.method {
        &Method::GET | &Method::HEAD => Ok(()),
        &Method::POST => check_post(site, parts),
        _other => Err(Refused::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "The page is read and sent, and nothing else; nothing was done.",
            "use a browser",
        )),
    }
}

fn check_post(site: &Site, parts: &Parts) -> Result<(), Refused> {
    let origin = word(parts, "origin").map(str::to_ascii_lowercase);
    let is_ours = |origin: &String| site.origins.contains(origin);
    let is_form = word(parts, "content-type").is_some_and(|kind| {
        kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(FORM)
    });
    if origin.as_ref().is_some_and(is_ours) && is_form {
        return Ok(());
    }
    Err(Refused::forbidden(
        "The form came from another site",
        "open the page itself and do it there; behind a proxy, say in [web] origin what browsers \
         see",
    ))
}

/// Refuses a form that was not made for this very session.
pub fn check_form(person: &Person, fields: &Fields) -> Result<(), Refused> {
    let given = fields.whole("csrf").unwrap_or_default();
    if token::is_same(given, &person.csrf) {
        return Ok(());
    }
    Err(Refused::forbidden(
        "The form was not made for this session",
        "go back, load the page again, and do it once more",
    ))
}

/// The session's id, where the browser sends one.
pub fn session_of<'a>(site: &Site, parts: &'a Parts) -> Option<&'a str> {
    let cookies = parts.headers.get_all("cookie").iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        (name == site.cookie()).then_some(value)
    });
    pairs.next()
}

/// Puts on what every answer says to the browser.
pub fn dressed(mut answer: Response) -> Response {
    let headers = answer.headers_mut();
    for (name, value) in ALWAYS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // What a case shows stays in no cache of a shared machine.
    if !headers.contains_key("cache-control") {
        headers.insert("cache-control", HeaderValue::from_static("no-store"));
    }
    answer
}

fn word<'a>(parts: &'a Parts, name: &str) -> Option<&'a str> {
    parts.headers.get(name).and_then(|value| value.to_str().ok())
}
