//! HTML, escaped by construction.
//!
//! There is no way to put a value in as markup: names of elements and attributes are literals of
//! this program, and every text and every value is escaped where it enters. Addresses are made by
//! [`Link`], whose parts are encoded.

use std::fmt::{Display, Write as _};

use crate::web::link::Link;

/// Elements without an end.
const VOID: [&str; 5] = ["input", "meta", "link", "br", "hr"];

/// Finished markup.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Html(String);

impl Html {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with something after it.
    #[must_use]
    pub fn with(mut self, more: impl Into<Self>) -> Self {
        self.0.push_str(&more.into().0);
        self
    }

    /// The markup.
    pub fn into_string(self) -> String {
        self.0
    }
}

/// A text, whatever stands in it.
pub fn text(value: impl Display) -> Html {
    let mut escaped = String::new();
    escape(&mut escaped, &value.to_string());
    Html(escaped)
}

impl From<&str> for Html {
    fn from(value: &str) -> Self {
        text(value)
    }
}

impl From<String> for Html {
    fn from(value: String) -> Self {
        text(value)
    }
}

impl From<&String> for Html {
    fn from(value: &String) -> Self {
        text(value)
    }
}

impl From<El> for Html {
    fn from(element: El) -> Self {
        element.finished()
    }
}

impl<T: Into<Html>> From<Option<T>> for Html {
    fn from(some: Option<T>) -> Self {
        some.map(Into::into).unwrap_or_default()
    }
}

impl<T: Into<Html>> From<Vec<T>> for Html {
    fn from(several: Vec<T>) -> Self {
        several.into_iter().fold(Self::new(), |all, one| all.with(one))
    }
}

/// One element on its way.
#[derive(Debug, Clone)]
pub struct El {
    name: &'static str,
    attributes: String,
    inner: String,
}

/// An element.
pub fn el(name: &'static str) -> El {
    El { name, attributes: String::new(), inner: String::new() }
}

/// An element with classes.
pub fn of_class(name: &'static str, class: &'static str) -> El {
    el(name).at("class", class)
}

impl El {
    /// An attribute. Addresses are [`El::href`]'s and [`El::action`]'s.
    #[must_use]
    pub fn at(mut self, name: &'static str, value: impl Display) -> Self {
        self.put(name, &value.to_string());
        self
    }

    /// An attribute without a value, where it holds.
    #[must_use]
    pub fn flag(mut self, name: &'static str, holds: bool) -> Self {
        if holds {
            self.attributes.push(' ');
            self.attributes.push_str(name);
        }
        self
    }

    /// Where it leads.
    #[must_use]
    pub fn href(mut self, link: &Link) -> Self {
        self.put("href", link.as_str());
        self
    }

    /// Where a form goes.
    #[must_use]
    pub fn action(mut self, link: &Link) -> Self {
        self.put("action", link.as_str());
        self
    }

    /// Something within it.
    #[must_use]
    pub fn then(mut self, more: impl Into<Html>) -> Self {
        self.inner.push_str(&more.into().0);
        self
    }

    fn put(&mut self, name: &str, value: &str) {
        // Writing to a String cannot fail.
        let _ = write!(self.attributes, " {name}=\"");
        escape(&mut self.attributes, value);
        self.attributes.push('"');
    }

    fn finished(self) -> Html {
        let Self { name, attributes, inner } = self;
        if VOID.contains(&name) {
            return Html(format!("<{name}{attributes}>"));
        }
        Html(format!("<{name}{attributes}>{inner}</{name}>"))
    }
}

/// A whole document.
pub fn document(head: Html, body: Html) -> String {
    let page = el("html").at("lang", "en").then(el("head").then(head)).then(el("body").then(body));
    format!("<!doctype html>{}", page.finished().0)
}

fn escape(to: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => to.push_str("&amp;"),
            '<' => to.push_str("&lt;"),
            '>' => to.push_str("&gt;"),
            '"' => to.push_str("&quot;"),
            '\'' => to.push_str("&#39;"),
            // What a browser would not show, and what turns the order of letters around.
            c if is_hidden(c) => {
                let _ = write!(to, "\u{fffd}{:04X}", u32::from(c));
            }
            plain => to.push(plain),
        }
    }
}

/// Letters that nobody sees, or that let a text look like another one.
fn is_hidden(c: char) -> bool {
    let is_space = matches!(c, '\n' | '\t' | '\r');
    let turns = matches!(c, '\u{061c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}' | '\u{feff}');
    (c.is_control() && !is_space) || turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_and_value_is_escaped() {
        let hostile = "\"><script>alert('x')</script>&amp;";
        let made: Html = el("a")
            .at("title", hostile)
            .href(&Link::to("/cases").with("owner", hostile))
            .then(hostile)
            .then(text(hostile))
            .then(Some(hostile))
            .into();
        let made = made.into_string();
        assert!(!made.contains("<script"), "{made}");
        assert_eq!(made.matches('<').count(), 2, "{made}");
        assert_eq!(made.matches('"').count(), 4, "{made}");
        assert!(made.contains("&amp;amp;"), "{made}");
    }

    #[test]
    fn what_nobody_sees_is_shown() {
        let made = text("a\u{202e}b\u{0}c\nd").into_string();
        assert_eq!(made, "a\u{fffd}202Eb\u{fffd}0000c\nd");
    }

    #[test]
    fn elements_nest_and_void_ones_have_no_end() {
        let none: Option<El> = None;
        let list = el("ul").then(vec![el("li").then("1"), el("li").then("2")]).then(none);
        let input = el("input").at("name", "a").flag("required", true).flag("disabled", false);
        let made = Html::from(list).with(input).into_string();
        assert_eq!(made, "<ul><li>1</li><li>2</li></ul><input name=\"a\" required>");
    }
}
