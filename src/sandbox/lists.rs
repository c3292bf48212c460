//! Lists: `limit`, `starting_after`, `ending_before`, `created[…]`, `expand[]`, newest first.
//!
//! A parameter that a list does not know is refused, as at Stripe: a filter that is silently
//! ignored would make an incomplete answer look complete.

use serde::Serialize;

use super::answer::Answer;
use super::api::Reply;
use super::api_error::ApiError;
use super::call::{Call, Lens};
use super::faults::PageFacts;
use super::form::{Params, parse_integer};
use super::objects::Record;
use super::shelf::{Cursor, Page, Shelf, Span};
use super::views::{Expand, ListView};

const MOST_PER_PAGE: i64 = 100;
const USUAL_PER_PAGE: i64 = 10;
const PAGING: &[&str] = &["limit", "starting_after", "ending_before", "expand"];

/// A list's question, checked.
#[derive(Debug)]
pub(super) struct ListAsk<'a> {
    pub(super) expand: Expand,
    span: Span,
    limit: usize,
    after: Option<&'a str>,
    before: Option<&'a str>,
    lens: Lens,
    url: &'a str,
}

impl<'a> ListAsk<'a> {
    pub(super) fn read(
        call: &'a Call,
        filters: &[&str],
        expands: &[&'static str],
    ) -> Result<Self, ApiError> {
        let params = &call.params;
        params.only(&[PAGING, filters].concat())?;
        let after = params.text("starting_after");
        let before = params.text("ending_before");
        if after.is_some() && before.is_some() {
            let message = "Received both starting_after and ending_before parameters. \
                           Please pass in only one.";
            return Err(ApiError::request(400, None, message.to_owned()));
        }
        let span = if call.lens == Lens::NoCreated { Span::ALL } else { span_of(params)? };
        let (after, before) =
            if call.lens == Lens::FirstPage { (None, None) } else { (after, before) };
        Ok(Self {
            expand: Expand::read(&params.list("expand"), "data.", expands)?,
            span,
            limit: limit_of(params)?,
            after,
            before,
            lens: call.lens,
            url: &call.path,
        })
    }

    /// Answers with a page of the shelf, or of those of its objects that `among` names.
    pub(super) fn answer<'s, T: Record, V: Serialize>(
        &self,
        shelf: &'s Shelf<T>,
        object: &str,
        among: Option<&[String]>,
        wanted: impl Fn(&T) -> bool,
        view: impl Fn(&'s T) -> V,
    ) -> Result<Reply, ApiError> {
        let cursor = self.cursor(shelf, object)?;
        let page = match (among, self.lens, cursor) {
            (None, Lens::EndAtCursor, Cursor::OlderThan(spot)) => {
                let newer = Cursor::NewerThan(spot);
                let mut page = shelf.page(self.span, newer, self.limit.saturating_sub(1), wanted);
                page.items.extend(self.after.and_then(|id| shelf.get(id)));
                Page { items: page.items, has_more: true }
            }
            (None, _, _) => shelf.page(self.span, cursor, self.limit, wanted),
            (Some(ids), _, _) => shelf.page_among(ids, self.span, cursor, self.limit, wanted),
        };
        let has_more = page.has_more || self.lens == Lens::FirstPage;
        let listed = ListView {
            object: "list",
            data: page.items.into_iter().map(view).collect::<Vec<V>>(),
            has_more,
            url: self.url.to_owned(),
        };
        let has_cursor = self.after.is_some() || self.before.is_some();
        let facts = PageFacts { has_cursor, has_more };
        Ok(Reply { page: Some(facts), ..Reply::plain(Answer::json(200, &listed)) })
    }

    fn cursor<T: Record>(&self, shelf: &Shelf<T>, object: &str) -> Result<Cursor, ApiError> {
        let spot_of = |id: &str, param: &str| {
            shelf.spot(id).ok_or_else(|| ApiError::no_such(400, object, id, param))
        };
        match (self.after, self.before) {
            (Some(id), _) => spot_of(id, "starting_after").map(Cursor::OlderThan),
            (None, Some(id)) => spot_of(id, "ending_before").map(Cursor::NewerThan),
            (None, None) => Ok(Cursor::Newest),
        }
    }
}

pub(super) fn limit_of(params: &Params) -> Result<usize, ApiError> {
    let limit = params.integer("limit")?.unwrap_or(USUAL_PER_PAGE);
    let bound = match limit {
        ..1 => "greater than or equal to 1",
        1..=MOST_PER_PAGE => return Ok(usize::try_from(limit).unwrap_or(1)),
        _ => "less than or equal to 100",
    };
    let mut error = ApiError::invalid("limit", format!("This value must be {bound}."));
    error.code = Some("parameter_invalid_integer".to_owned());
    Err(error)
}

fn span_of(params: &Params) -> Result<Span, ApiError> {
    if let Some(exact) = params.integer("created")? {
        return Ok(Span { from: exact, to: exact });
    }
    let mut span = Span::ALL;
    for (bound, text) in params.entries("created") {
        let second = parse_integer(&format!("created[{bound}]"), text)?;
        match bound {
            "gte" => span.from = span.from.max(second),
            "gt" => span.from = span.from.max(second.saturating_add(1)),
            "lte" => span.to = span.to.min(second),
            "lt" => span.to = span.to.min(second.saturating_sub(1)),
            other => return Err(ApiError::unknown_parameter(&format!("created[{other}]"))),
        }
    }
    Ok(span)
}
