//! Addresses within the site: a path of this program's, with encoded parts and parameters.

use std::fmt;

/// Where a login may lead on to.
const PAGES: [&str; 3] = ["/cases", "/runs", "/reports"];

/// The longest address that is led on to.
const LONGEST: usize = 2_000;

/// An address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    text: String,
    has_query: bool,
}

impl Link {
    /// A path as it stands in this program.
    pub fn to(path: &'static str) -> Self {
        Self { text: path.to_owned(), has_query: false }
    }

    /// The page of a case.
    pub fn case(number: i64) -> Self {
        Self::to("/cases").part(&format!("C-{number}"))
    }

    /// The page of a run.
    pub fn run(id: &str) -> Self {
        Self::to("/runs").part(id)
    }

    /// One step further down the path.
    #[must_use]
    pub fn part(mut self, text: &str) -> Self {
        self.text.push('/');
        encode(&mut self.text, text);
        self
    }

    /// A parameter.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        self.text.push(if self.has_query { '&' } else { '?' });
        self.has_query = true;
        self.text.push_str(name);
        self.text.push('=');
        encode(&mut self.text, value);
        self
    }

    /// Parameters that have a value.
    #[must_use]
    pub fn with_all<'a>(self, pairs: impl IntoIterator<Item = (&'static str, &'a str)>) -> Self {
        pairs.into_iter().fold(self, |link, (name, value)| link.with(name, value))
    }

    /// The address that a browser sent back, where it is one of the pages here and nothing else.
    pub fn back(text: &str) -> Option<Self> {
        let path = text.split('?').next().unwrap_or_default();
        let is_page = PAGES.iter().any(|page| {
            path.strip_prefix(page).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        let is_plain = text.bytes().all(|b| b.is_ascii_graphic() && b != b'\\');
        (is_page && is_plain && text.len() <= LONGEST && !text.contains("//"))
            .then(|| Self { text: text.to_owned(), has_query: text.contains('?') })
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn encode(to: &mut String, text: &str) {
    let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or_default();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            to.push(char::from(byte));
        } else {
            to.push('%');
            to.push(digit(byte >> 4).to_ascii_uppercase());
            to.push(digit(byte & 0x0f).to_ascii_uppercase());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_parameters_are_encoded() {
        let link = Link::to("/cases").part("a/b").with("owner", "\"<ü &").with("x", "1");
        assert_eq!(link.as_str(), "/cases/a%2Fb?owner=%22%3C%C3%BC%20%26&x=1");
    }

    #[test]
    fn a_login_leads_on_to_pages_here_alone() {
        for fine in ["/cases", "/cases/C-1?done=left", "/runs/x"] {
            assert_eq!(Link::back(fine).unwrap().as_str(), fine);
        }
        for bad in [
            "",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example/cases",
            "/casesx",
            "/cases//evil",
            "/cases\r\nSet-Cookie: a",
            "/logout",
        ] {
            assert_eq!(Link::back(bad), None, "{bad}");
        }
    }
}
