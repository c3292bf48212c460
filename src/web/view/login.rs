//! Signing in.

use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;

use crate::web::error::Refused;
use crate::web::form::Fields;
use crate::web::html::{El, Html, el, of_class};
use crate::web::link::Link;
use crate::web::page::{Page, hidden, small};
use crate::web::site::Site;

/// The page; with what was wrong, where somebody tried.
pub fn page(site: &Site, fields: &Fields, status: StatusCode, wrong: Option<&Refused>) -> Response {
    let next = fields.text("next").and_then(Link::back);
    let wrong = wrong.map(|refused| {
        of_class("div", "note bad")
            .at("role", "alert")
            .then(el("p").then(&refused.text))
            .then(el("p").then("Next: ").then(&refused.hint))
    });
    let box_of = of_class("div", "login stack").then(wrong).then(card(site, next.as_ref()));
    Page::open(site, "Sign in").with(box_of).answer(status)
}

/// In the place of a page that only people see. A browser leaves the cookie out where a link of
/// another site led here: then one more click is enough.
pub fn instead(site: &Site, parts: &Parts) -> Response {
    let asked = parts.uri.path_and_query().map(|path| path.as_str());
    let next = asked.and_then(Link::back);
    let go_on = next.as_ref().map(|next| {
        small(Html::from("Signed in already? ").with(el("a").href(next).then("Go on to the page")))
    });
    let box_of = of_class("div", "login stack").then(card(site, next.as_ref())).then(go_on);
    Page::open(site, "Sign in").with(box_of).answer(StatusCode::UNAUTHORIZED)
}

fn card(site: &Site, next: Option<&Link>) -> El {
    // SQLite has people with tokens, PostgreSQL logins with passwords.
    let (name, secret, says) = match site.service_name {
        None => ("Name", "Token", "The token that was made for you."),
        Some(_) => (
            "Database login",
            "Password",
            "Your own login of the database: it is who you are in every record.",
        ),
    };
    let brand = el("h1").then("tie").then(of_class("span", "soft").then("out"));
    let field = |id: &'static str, words: &str, input: El| {
        el("div").then(el("label").at("for", id).then(words)).then(input.at("id", id))
    };
    let name_input = el("input")
        .at("name", "name")
        .at("autocomplete", "username")
        .at("maxlength", "100")
        .flag("required", true)
        .flag("autofocus", true);
    let secret_input = el("input")
        .at("type", "password")
        .at("name", "secret")
        .at("autocomplete", "current-password")
        .flag("required", true);
    let form = of_class("form", "stack")
        .at("method", "post")
        .action(&Link::to("/login"))
        .then(next.map(|next| hidden("next", next.as_str())))
        .then(field("name", name, name_input))
        .then(field("secret", secret, secret_input))
        .then(small(says))
        .then(of_class("button", "main").then("Sign in"));
    of_class("div", "card").then(brand).then(small("What waits for a person.")).then(form)
}
