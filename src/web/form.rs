//! What a form or a query says: names and values in their order, decoded.

/// The fields of a form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields(Vec<(String, String)>);

impl Fields {
    /// Reads `a=1&b=2`. What cannot be decoded stays as it came.
    pub fn read(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let read = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        };
        Self(pairs.map(read).collect())
    }

    /// The value of a name, without the space around it; none where nothing is left.
    pub fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    }

    /// The value of a name exactly as it came.
    pub fn whole(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The names that are given, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// All values of a name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Decodes one name or value of a form, or one part of a path where `plus` is no space.
fn decoded(text: &str) -> String {
    of_percent(&text.replace('+', " "))
}

/// Decodes `%C3%BC`.
pub fn of_percent(text: &str) -> String {
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut ahead = bytes.clone();
        match (ahead.next().and_then(digit), ahead.next().and_then(digit)) {
            (Some(high), Some(low)) => {
                out.push((high << 4) | low);
                bytes = ahead;
            }
            _no_digits => out.push(byte),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn digit(byte: u8) -> Option<u8> {
    let value = char::from(byte).to_digit(16)?;
    u8::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_decoded_once_and_keep_their_order() {
        let fields = Fields::read("case=1&case=2&why=a+b%20%C3%BC%26&x=%2&y=%zz&empty=+&=&z");
        assert_eq!(fields.all("case").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(fields.text("why"), Some("a b ü&"));
        assert_eq!(fields.text("x"), Some("%2"));
        assert_eq!(fields.text("y"), Some("%zz"));
        assert_eq!(fields.text("empty"), None);
        assert_eq!(fields.whole("empty"), Some(" "));
        assert_eq!(fields.text("none"), None);
        assert_eq!(of_percent("%253C"), "%3C");
    }
}
