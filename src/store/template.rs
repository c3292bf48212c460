//! Templates around columns: `{id}`, `pay_{external_id}`, `charge-{id}-{attempt}`.
//!
//! A template renders from a row's texts, and for tags it reads backwards: from a tag that came
//! back from a PSP to the column values that it must have been made from, so that looking the row
//! up can use an index on the column. It never guesses: where a tag could have been made from
//! several values, all of them are given and the caller compares what each row renders to.
//!
//! `{{` and `}}` stand for the braces themselves.

/// By how much a column is counted up: `+1`. No template, though it stands in its place.
pub(super) fn step_of(text: &str) -> Option<i64> {
    text.strip_prefix('+').and_then(|step| step.parse().ok())
}

/// A parsed template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Column(String),
}

/// Why a text is no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// `{id`
    #[error("`{{` is not closed (write `{{{{` for the brace itself)")]
    Unclosed,
    /// `id}`
    #[error("`}}` has no opening brace (write `}}}}` for the brace itself)")]
    Unopened,
    /// `{}`
    #[error("`{{}}` names no column")]
    Nameless,
}

/// A column in the template is NULL in this row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NullPart {
    /// The column.
    pub column: String,
}

/// A piece of a template, for drivers that render it in SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// This text.
    Literal(&'a str),
    /// This column's text.
    Column(&'a str),
}

impl Template {
    /// Reads a template.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '{' | '}' if chars.peek() == Some(&c) => {
                    chars.next();
                    literal.push(c);
                }
                '{' => {
                    if !literal.is_empty() {
                        parts.push(Part::Literal(std::mem::take(&mut literal)));
                    }
                    parts.push(Part::Column(column_name(&mut chars)?));
                }
                '}' => return Err(TemplateError::Unopened),
                other => literal.push(other),
            }
        }
        if !literal.is_empty() {
            parts.push(Part::Literal(literal));
        }
        Ok(Self { parts })
    }

    /// The columns that it names, in order; one named twice comes twice.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Column(name) => Some(name.as_str()),
            Part::Literal(_) => None,
        })
    }

    /// Its pieces, in order.
    pub fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        self.parts.iter().map(|part| match part {
            Part::Literal(text) => Piece::Literal(text),
            Part::Column(name) => Piece::Column(name),
        })
    }

    /// The text for one row; `cell` gives a column's text, `None` for NULL.
    pub fn render<'a>(&self, cell: impl Fn(&str) -> Option<&'a str>) -> Result<String, NullPart> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(literal) => text.push_str(literal),
                Part::Column(column) => match cell(column) {
                    Some(value) => text.push_str(value),
                    None => return Err(NullPart { column: column.clone() }),
                },
            }
        }
        Ok(text)
    }

    /// Whether [`Template::readings`] can tell the values of a tag.
    pub fn reads_backwards(&self) -> bool {
        let has_column = self.columns().next().is_some();
        let adjacent =
            self.parts.windows(2).any(|pair| matches!(pair, [Part::Column(_), Part::Column(_)]));
        has_column && !adjacent
    }

    /// All ways in which `text` can have been made: for each the columns' texts, in the order of
    /// [`Template::columns`]. `None`: more than `most`, or the template does not read backwards;
    /// then the tag must be looked up by rendering. No way: no row has this tag.
    pub fn readings(&self, text: &str, most: usize) -> Option<Vec<Vec<String>>> {
        if !self.reads_backwards() {
            return None;
        }
        let mut found = Vec::new();
        let complete = read(&self.parts, text, &mut Vec::new(), &mut found, most);
        complete.then_some(found)
    }
}

fn column_name(chars: &mut impl Iterator<Item = char>) -> Result<String, TemplateError> {
    let mut name = String::new();
    for c in chars {
        match c {
            '}' if name.is_empty() => return Err(TemplateError::Nameless),
            '}' => return Ok(name),
            '{' => return Err(TemplateError::Unclosed),
            other => name.push(other),
        }
    }
    Err(TemplateError::Unclosed)
}

/// Collects every split of `rest` over `parts`; false as soon as there are more than `most`.
fn read(
    parts: &[Part],
    rest: &str,
    values: &mut Vec<String>,
    found: &mut Vec<Vec<String>>,
    most: usize,
) -> bool {
    match parts {
        [] if rest.is_empty() => {
            found.push(values.clone());
            found.len() <= most
        }
        [] => true,
        [Part::Literal(literal), tail @ ..] => match rest.strip_prefix(literal.as_str()) {
            Some(rest) => read(tail, rest, values, found, most),
            None => true,
        },
        [Part::Column(_)] => read_value(&[], rest, "", values, found, most),
        [Part::Column(_), tail @ ..] => {
            let literal = match tail {
                [Part::Literal(literal), ..] => literal.as_str(),
                [Part::Column(_), ..] | [] => return false,
            };
            // At a literal at the very end only its last place can be meant.
            let places: Vec<usize> = match tail {
                [_] => rest.strip_suffix(literal).map(str::len).into_iter().collect(),
                _several => rest.match_indices(literal).map(|(at, _)| at).collect(),
            };
            places.into_iter().all(|at| {
                rest.split_at_checked(at).is_none_or(|(value, after)| {
                    read_value(tail, value, after, values, found, most)
                })
            })
        }
    }
}

fn read_value(
    tail: &[Part],
    value: &str,
    after: &str,
    values: &mut Vec<String>,
    found: &mut Vec<Vec<String>>,
    most: usize,
) -> bool {
    values.push(value.to_owned());
    let within = read(tail, after, values, found, most);
    values.pop();
    within
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(text: &str) -> Template {
        Template::parse(text).unwrap()
    }

    #[test]
    fn renders_and_names_the_null_part() {
        let cells = [("id", Some("7")), ("external_id", Some("a-b")), ("attempt", None)];
        let cell =
            |name: &str| cells.iter().find(|(n, _)| *n == name).and_then(|(_, value)| *value);
        for (text, expected) in [
            ("{id}", Ok("7")),
            ("pay_{external_id}", Ok("pay_a-b")),
            ("{{{id}}}", Ok("{7}")),
            ("fixed", Ok("fixed")),
            ("", Ok("")),
            ("{id}{id}", Ok("77")),
            ("charge-{id}-{attempt}", Err("attempt")),
        ] {
            let rendered = template(text).render(cell);
            let expected = expected
                .map(str::to_owned)
                .map_err(|column| NullPart { column: column.to_owned() });
            assert_eq!(rendered, expected, "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_template() {
        for (text, error) in [
            ("{id", TemplateError::Unclosed),
            ("{a{b}", TemplateError::Unclosed),
            ("id}", TemplateError::Unopened),
            ("pay_{}", TemplateError::Nameless),
        ] {
            assert_eq!(Template::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn reads_tags_backwards() {
        for (text, tag, expected) in [
            ("{id}", "7", Some(vec![vec!["7"]])),
            ("pay_{id}", "pay_7", Some(vec![vec!["7"]])),
            ("pay_{id}", "7", Some(vec![])),
            ("{id}-x", "7-x-x", Some(vec![vec!["7-x"]])),
            ("{id}-x", "7", Some(vec![])),
            ("{a}-{b}", "1-2", Some(vec![vec!["1", "2"]])),
            ("{a}-{b}", "1-2-3", Some(vec![vec!["1", "2-3"], vec!["1-2", "3"]])),
            ("c-{a}-{b}!", "c-1-2!", Some(vec![vec!["1", "2"]])),
            ("{a}-{b}", "1-2-3-4-5", None),
            ("{a}{b}", "12", None),
            ("fixed", "fixed", None),
            ("{a}é{b}", "1é2", Some(vec![vec!["1", "2"]])),
        ] {
            let expected = expected.map(|ways| {
                ways.into_iter()
                    .map(|way: Vec<&str>| way.into_iter().map(str::to_owned).collect())
                    .collect::<Vec<Vec<String>>>()
            });
            assert_eq!(template(text).readings(tag, 3), expected, "{text} of {tag}");
        }
    }
}
