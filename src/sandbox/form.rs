//! Form-encoded parameters as Stripe reads them: `metadata[k]=v`, `created[gte]=1`, `expand[]=x`.
//!
//! It keeps the order and every repeated name, and it never fails: what cannot be decoded stays as
//! it came, so that the API's own checks can name it in their refusal.

use super::api_error::ApiError;

/// The parameters of one request: a path of names and a text, in the order of arrival.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Params(Vec<(Vec<String>, String)>);

impl Params {
    /// Reads a query string and a form body as one list.
    pub(super) fn read(query: &str, body: &str) -> Self {
        let pairs = query.split('&').chain(body.split('&')).filter(|pair| !pair.is_empty());
        Self(
            pairs
                .map(|pair| {
                    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                    (path_of(&decode(name)), decode(value))
                })
                .collect(),
        )
    }

    /// The text of a plain parameter; the last one wins, as at Stripe.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.find(|path| path.len() == 1 && path.first().is_some_and(|first| first == name))
    }

    /// The text of `name[key]`.
    pub(super) fn entry(&self, name: &str, key: &str) -> Option<&str> {
        self.find(|path| matches!(path, [first, second] if first == name && second == key))
    }

    /// All of `name[key]=value`, in order.
    pub(super) fn entries(&self, name: &str) -> Vec<(&str, &str)> {
        self.0
            .iter()
            .filter_map(|(path, value)| match path.as_slice() {
                [first, key] if first == name => Some((key.as_str(), value.as_str())),
                _ => None,
            })
            .collect()
    }

    /// All values of `name[]` or `name[0]`.
    pub(super) fn list(&self, name: &str) -> Vec<&str> {
        self.entries(name).into_iter().map(|(_, value)| value).collect()
    }

    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, ApiError> {
        match self.text(name) {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(other) => Err(ApiError::invalid(name, format!("Invalid boolean: {other}"))),
        }
    }

    pub(super) fn integer(&self, name: &str) -> Result<Option<i64>, ApiError> {
        self.text(name).map(|text| parse_integer(name, text)).transpose()
    }

    pub(super) fn required_integer(&self, name: &str) -> Result<i64, ApiError> {
        self.integer(name)?.ok_or_else(|| ApiError::missing(name))
    }

    pub(super) fn required(&self, name: &str) -> Result<&str, ApiError> {
        self.text(name).filter(|text| !text.is_empty()).ok_or_else(|| ApiError::missing(name))
    }

    /// Refuses the first parameter that the route does not know, in Stripe's words.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), ApiError> {
        for (path, _) in &self.0 {
            if let Some(name) = path.first()
                && !known.contains(&name.as_str())
            {
                return Err(ApiError::unknown_parameter(name));
            }
        }
        Ok(())
    }

    /// The parameters without order, to compare two requests that used one idempotency key.
    pub(super) fn canonical(&self) -> String {
        let mut pairs: Vec<String> =
            self.0.iter().map(|(path, value)| format!("{path:?}={value:?}")).collect();
        pairs.sort();
        pairs.join("&")
    }

    /// Whether any name or value holds the text; fault rules pick requests by it.
    pub(super) fn mention(&self, text: &str) -> bool {
        self.0
            .iter()
            .any(|(path, value)| value.contains(text) || path.iter().any(|name| name == text))
    }

    fn find(&self, wanted: impl Fn(&[String]) -> bool) -> Option<&str> {
        self.0.iter().rev().find(|(path, _)| wanted(path)).map(|(_, value)| value.as_str())
    }
}

pub(super) fn parse_integer(name: &str, text: &str) -> Result<i64, ApiError> {
    text.parse().map_err(|_| {
        let mut error = ApiError::invalid(name, format!("Invalid integer: {text}"));
        error.code = Some("parameter_invalid_integer".to_owned());
        error
    })
}

/// `a[b][c]` as `a`, `b`, `c`; anything else is one name.
fn path_of(name: &str) -> Vec<String> {
    let Some((first, rest)) = name.split_once('[') else { return vec![name.to_owned()] };
    let Some(inner) = rest.strip_suffix(']') else { return vec![name.to_owned()] };
    std::iter::once(first).chain(inner.split("][")).map(str::to_owned).collect()
}

/// Undoes percent-encoding and `+`; a broken escape stays as it is.
pub(super) fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let mut ahead = rest.clone();
                match (ahead.next().and_then(hex), ahead.next().and_then(hex)) {
                    (Some(high), Some(low)) => {
                        bytes.push(high * 16 + low);
                        rest = ahead;
                    }
                    _ => bytes.push(b'%'),
                }
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_names_and_escapes_are_read() {
        let params = Params::read(
            "created[gte]=10&created%5Blt%5D=20&expand[]=data.latest_charge",
            "metadata[order%20id]=a+b%2Bc&bad=%zz&amount=1&amount=2",
        );
        assert_eq!(params.entry("created", "gte"), Some("10"));
        assert_eq!(params.entry("created", "lt"), Some("20"));
        assert_eq!(params.list("expand"), ["data.latest_charge"]);
        assert_eq!(params.entry("metadata", "order id"), Some("a b+c"));
        assert_eq!(params.text("bad"), Some("%zz"));
        assert_eq!(params.text("amount"), Some("2"));
        assert_eq!(params.text("created"), None);
    }

    #[test]
    fn order_does_not_make_two_requests_differ() {
        let one = Params::read("", "a=1&b[c]=2");
        assert_eq!(one.canonical(), Params::read("", "b[c]=2&a=1").canonical());
        assert_ne!(one.canonical(), Params::read("", "b[c]=3&a=1").canonical());
    }
}
