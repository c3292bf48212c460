//! Search: `query`, `limit`, `page`, over an index that may lag.
//!
//! The grammar is Stripe's: `field:"value"`, `field~"part"`, `amount>10`, `-` before a clause,
//! `null` for presence, clauses joined by AND or by OR but never by both. Exact matches do not
//! mind case, so a client has to compare again.

use serde::Serialize;

use super::answer::Answer;
use super::api::Reply;
use super::api_error::ApiError;
use super::call::{Call, Lens};
use super::faults::PageFacts;
use super::lists::limit_of;
use super::objects::Record;
use super::shelf::{Shelf, Spot};
use super::views::{Expand, SearchView};

const MOST_CLAUSES: usize = 10;
const LONGEST_QUERY: usize = 5_000;

/// A search's question, checked.
#[derive(Debug)]
pub(super) struct SearchAsk<'a> {
    pub(super) expand: Expand,
    limit: usize,
    clauses: Vec<Clause>,
    any: bool,
    after: Option<Spot>,
    token: Option<&'a str>,
    lens: Lens,
    url: &'a str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Clause {
    field: Field,
    op: Op,
    value: Option<String>,
    negated: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Field {
    Amount,
    Created,
    Currency,
    Customer,
    Status,
    Metadata(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    Is,
    Contains,
    Above,
    Below,
    AtLeast,
    AtMost,
}

impl<'a> SearchAsk<'a> {
    pub(super) fn read(call: &'a Call, expands: &[&'static str]) -> Result<Self, ApiError> {
        let params = &call.params;
        params.only(&["query", "limit", "page", "expand"])?;
        let query = params.required("query")?;
        let (clauses, any) =
            parse(query).map_err(|why| ApiError::invalid("query", why.to_owned()))?;
        let token = params.text("page");
        let after =
            match token {
                None => None,
                Some(text) => Some(spot_of(text).ok_or_else(|| {
                    ApiError::invalid("page", format!("Invalid page token: {text}"))
                })?),
            };
        Ok(Self {
            expand: Expand::read(&params.list("expand"), "data.", expands)?,
            limit: limit_of(params)?,
            clauses,
            any,
            after: if call.lens == Lens::FirstPage { None } else { after },
            token,
            lens: call.lens,
            url: &call.path,
        })
    }

    /// Answers from the part of the shelf that the index has seen.
    pub(super) fn answer<'s, T: Record, V: Serialize>(
        &self,
        shelf: &'s Shelf<T>,
        indexed: impl Fn(&T) -> bool,
        view: impl Fn(&'s T) -> V,
    ) -> Reply {
        // One exact tag answers nearly every search; the index gives its few candidates.
        let tag = self.clauses.iter().find_map(|clause| match (clause, self.any) {
            (
                Clause {
                    field: Field::Metadata(key),
                    op: Op::Is,
                    value: Some(value),
                    negated: false,
                },
                false,
            ) => Some((key.clone(), value.clone())),
            _ => None,
        });
        let candidates: Vec<&'s T> = match tag {
            Some((key, value)) => shelf.tagged(&key, &value),
            None => shelf.newest_first().collect(),
        };
        let unread = |object: &&'s T| {
            let spot = shelf.spot(object.id());
            self.after.is_none_or(|after| spot.is_some_and(|spot| spot < after))
        };
        let mut found: Vec<&'s T> = candidates
            .into_iter()
            .filter(|object| indexed(object) && self.accepts(*object))
            .filter(unread)
            .take(self.limit + 1)
            .collect();
        let has_more = found.len() > self.limit || self.lens == Lens::FirstPage;
        found.truncate(self.limit);
        let last = found.last().and_then(|object| shelf.spot(object.id()));
        let next_page = match self.lens {
            Lens::EndAtCursor => self.token.map(str::to_owned),
            Lens::True | Lens::NoCreated | Lens::FirstPage => {
                last.filter(|_| has_more).map(|spot| token_of(&spot))
            }
        };
        let has_more = has_more || next_page.is_some();
        let page = SearchView {
            object: "search_result",
            data: found.into_iter().map(view).collect(),
            has_more,
            next_page,
            url: self.url.to_owned(),
        };
        let facts = PageFacts { has_cursor: self.token.is_some(), has_more };
        Reply { page: Some(facts), ..Reply::plain(Answer::json(200, &page)) }
    }

    fn accepts<T: Record>(&self, object: &T) -> bool {
        if self.any {
            self.clauses.iter().any(|clause| clause.holds(object))
        } else {
            self.clauses.iter().all(|clause| clause.holds(object))
        }
    }
}

impl Clause {
    fn holds<T: Record>(&self, object: &T) -> bool {
        let number = |value: i64| self.holds_number(value);
        let held = match &self.field {
            Field::Amount => number(object.amount()),
            Field::Created => number(object.created()),
            Field::Currency => self.holds_text(Some(object.currency())),
            Field::Customer => self.holds_text(object.customer()),
            Field::Status => self.holds_text(Some(object.status())),
            Field::Metadata(key) => self.holds_text(object.metadata().get(key)),
        };
        held != self.negated
    }

    fn holds_text(&self, text: Option<&str>) -> bool {
        match (&self.value, text) {
            (None, text) => text.is_none(),
            (Some(_), None) => false,
            (Some(value), Some(text)) => match self.op {
                Op::Contains => text.to_lowercase().contains(&value.to_lowercase()),
                _ => text.to_lowercase() == value.to_lowercase(),
            },
        }
    }

    fn holds_number(&self, number: i64) -> bool {
        let Some(value) = self.value.as_deref().and_then(|text| text.parse::<i64>().ok()) else {
            return false;
        };
        match self.op {
            Op::Is | Op::Contains => number == value,
            Op::Above => number > value,
            Op::Below => number < value,
            Op::AtLeast => number >= value,
            Op::AtMost => number <= value,
        }
    }
}

/// Reads a query: its clauses, and whether any of them suffices.
fn parse(query: &str) -> Result<(Vec<Clause>, bool), &'static str> {
    if query.len() > LONGEST_QUERY {
        return Err("The query is longer than 5000 characters.");
    }
    let mut rest = query.trim();
    let mut clauses = Vec::new();
    let (mut ands, mut ors) = (0, 0);
    while !rest.is_empty() {
        if !clauses.is_empty() {
            let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            match word.to_ascii_uppercase().as_str() {
                "AND" => (ands, rest) = (ands + 1, after.trim_start()),
                "OR" => (ors, rest) = (ors + 1, after.trim_start()),
                // A space alone joins as AND does.
                _ => ands += 1,
            }
        }
        let (clause, after) = parse_clause(rest)?;
        clauses.push(clause);
        rest = after.trim_start();
    }
    match (clauses.len(), ands > 0 && ors > 0) {
        (0, _) => Err("The query is empty."),
        (_, true) => Err("AND and OR cannot be used in one query."),
        (more, _) if more > MOST_CLAUSES => Err("The query has too many clauses."),
        _ => Ok((clauses, ors > 0)),
    }
}

fn parse_clause(text: &str) -> Result<(Clause, &str), &'static str> {
    let (negated, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (field, text) = parse_field(text)?;
    let ops = [
        (">=", Op::AtLeast),
        ("<=", Op::AtMost),
        (":", Op::Is),
        ("~", Op::Contains),
        (">", Op::Above),
        ("<", Op::Below),
    ];
    let (op, text) = ops
        .iter()
        .find_map(|(word, op)| text.strip_prefix(word).map(|rest| (*op, rest)))
        .ok_or("An operator is missing after a field.")?;
    let (value, rest) = match text.strip_prefix('"').map(|inner| (inner, '"')) {
        Some((inner, quote)) => quoted(inner, quote)?,
        None => match text.strip_prefix('\'') {
            Some(inner) => quoted(inner, '\'')?,
            None => {
                let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
                let number = word.parse::<i64>().is_ok();
                if word != "null" && !number {
                    return Err("A text value must be in quotes.");
                }
                ((word != "null").then(|| word.to_owned()), rest)
            }
        },
    };
    Ok((Clause { field, op, value, negated }, rest))
}

fn parse_field(text: &str) -> Result<(Field, &str), &'static str> {
    if let Some(inner) = text.strip_prefix("metadata[") {
        let quote = inner.chars().next().ok_or("A metadata key is missing.")?;
        let inner = inner.strip_prefix(['"', '\'']).ok_or("A metadata key must be in quotes.")?;
        let (key, rest) = quoted(inner, quote)?;
        let rest = rest.strip_prefix(']').ok_or("A metadata key is not closed by ].")?;
        return Ok((Field::Metadata(key.unwrap_or_default()), rest));
    }
    let fields = [
        ("amount", Field::Amount),
        ("created", Field::Created),
        ("currency", Field::Currency),
        ("customer", Field::Customer),
        ("status", Field::Status),
    ];
    fields
        .into_iter()
        .find_map(|(word, field)| text.strip_prefix(word).map(|rest| (field, rest)))
        .ok_or("A field is unknown or cannot be searched.")
}

/// A quoted text up to its closing quote, with `\` before a quote that belongs to it.
fn quoted(text: &str, quote: char) -> Result<(Option<String>, &str), &'static str> {
    let mut value = String::new();
    let mut chars = text.chars();
    while let Some(next) = chars.next() {
        match next {
            '\\' => value.extend(chars.next()),
            other if other == quote => return Ok((Some(value), chars.as_str())),
            other => value.push(other),
        }
    }
    Err("A quoted text is not closed.")
}

fn token_of(spot: &Spot) -> String {
    format!("{}.{}", spot.created, spot.arrival)
}

fn spot_of(token: &str) -> Option<Spot> {
    let (created, arrival) = token.split_once('.')?;
    Some(Spot { created: created.parse().ok()?, arrival: arrival.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_read_or_refused() {
        let clause = |field, op, value: Option<&str>, negated| Clause {
            field,
            op,
            value: value.map(str::to_owned),
            negated,
        };
        let order = || Field::Metadata("order".to_owned());
        let good = [
            (
                r#"metadata["order"]:"a 1""#,
                vec![clause(order(), Op::Is, Some("a 1"), false)],
                false,
            ),
            (
                r#"metadata['order']:'x\'y'"#,
                vec![clause(order(), Op::Is, Some("x'y"), false)],
                false,
            ),
            (r#"-metadata["order"]:null"#, vec![clause(order(), Op::Is, None, true)], false),
            (
                r#"amount>=10 AND status:"succeeded""#,
                vec![
                    clause(Field::Amount, Op::AtLeast, Some("10"), false),
                    clause(Field::Status, Op::Is, Some("succeeded"), false),
                ],
                false,
            ),
            (
                r#"status~"req" or created<5"#,
                vec![
                    clause(Field::Status, Op::Contains, Some("req"), false),
                    clause(Field::Created, Op::Below, Some("5"), false),
                ],
                true,
            ),
        ];
        for (query, clauses, any) in good {
            assert_eq!(parse(query), Ok((clauses, any)), "{query}");
        }
        let bad = [
            "",
            "status",
            "status:succeeded",
            r#"colour:"red""#,
            r#"status:"open"#,
            r#"metadata[order]:"1""#,
            r#"amount:1 AND amount:2 OR amount:3"#,
        ];
        for query in bad {
            assert!(parse(query).is_err(), "{query}");
        }
    }

    #[test]
    fn a_page_token_comes_back_as_it_went() {
        let spot = Spot { created: -5, arrival: 77 };
        assert_eq!(spot_of(&token_of(&spot)), Some(spot));
        assert_eq!(spot_of("x"), None);
    }
}
