//! The row and what the sources showed, side by side: each field marked as equal or not, by a sign
//! and by a word.

use crate::model::evidence::{ObjectState, PspObject};
use crate::model::money::{Money, grouped_text};
use crate::model::time::{Instant, span_text};
use crate::report::back::{Back, looks_at, still_open};
use crate::report::exceptions::shown;
use crate::store::records::StoredInputs;
use crate::web::html::{El, Html, el, of_class};
use crate::web::page::{NOTHING, flush, id, row_head, scroll_of, unseen};
use crate::web::view::decide::Named;

/// The objects by name, for a choice.
pub fn named(inputs: &StoredInputs) -> Vec<Named> {
    let looks: Vec<&PspObject> = shown(inputs).collect();
    let words = |object: &PspObject| {
        let money = object.captured.or(object.amount).map(money_text);
        let money = money.unwrap_or_else(|| "amount unknown".to_owned());
        let back = Back::of(&looks_at(object, &looks)).words().into_iter();
        let back: String = back.chain(still_open(object)).map(|one| format!(", {one}")).collect();
        format!("{} · {money} {}{back}", object.reference, object.state.as_str())
    };
    let found = inputs.objects().into_iter();
    found.map(|(_, object)| (object.reference.clone(), words(object))).collect()
}

/// The comparison; none where nothing was found.
pub fn comparison(inputs: &StoredInputs) -> Option<El> {
    let found = inputs.objects();
    if found.is_empty() {
        return None;
    }
    let row = &inputs.row;
    let mut head = el("tr").then(el("th").at("scope", "col").then(unseen("Field")));
    let key = format!("{}/{}", row.key.table, row.key.id);
    head = head.then(column("Your row", &key));
    for (item, object) in &found {
        let source = format!("{}, by {}", item.account, item.route.as_str());
        head = head.then(column(&source, &object.reference));
    }
    let objects: Vec<&PspObject> = found.iter().map(|(_, object)| *object).collect();
    let table = of_class("table", "beside")
        .then(el("thead").then(head))
        .then(el("tbody").then(lines(inputs, &objects)));
    let heading = "Evidence, side by side";
    Some(flush(heading).then(scroll_of(heading, table)))
}

fn column(source: &str, reference: &str) -> El {
    el("th").at("scope", "col").then(source).then(id(reference))
}

fn lines(inputs: &StoredInputs, objects: &[&PspObject]) -> Vec<El> {
    let row = &inputs.row;
    let stored = row.psp_reference.as_deref();
    let each = |of: &dyn Fn(&PspObject) -> El| -> Vec<El> {
        objects.iter().map(|object| of(object).at("data-label", &object.reference)).collect()
    };
    let plain = |words: &str| cell("text", words);
    let wanted = row.money.map(money_text);
    let own_tag = row.tag.text();
    let looks: Vec<&PspObject> = shown(inputs).collect();
    let mut lines = vec![
        line("status", plain(&row.status), each(&|object| plain(&object.status))),
        line("meaning", plain("stuck"), each(&|object| plain(&meaning(&object.state)))),
        line(
            "amount",
            cell("num", wanted.unwrap_or_else(|| NOTHING.to_owned())),
            each(&|object| amount_cell(object, row.money)),
        ),
        line("taken back", plain(NOTHING), each(&|object| plain(&taken_back(object, &looks)))),
    ];
    lines.extend(open_line(objects));
    lines.extend([
        line(
            "created",
            plain(&row.created_at.format("%Y-%m-%d %H:%M:%SZ").to_string()),
            each(&|object| plain(&apart(row.created_at, object.created_at))),
        ),
        line(
            "tag",
            cell("text", id(if own_tag.is_empty() { NOTHING } else { own_tag })),
            each(&|object| tag_cell(object, own_tag)),
        ),
        line(
            "reference",
            cell("text", id(stored.unwrap_or(NOTHING))),
            each(&|object| reference_cell(object, stored)),
        ),
    ]);
    lines
}

fn line(label: &str, own: El, others: Vec<El>) -> El {
    el("tr").then(row_head(label)).then(own.at("data-label", "your row")).then(others)
}

/// The sign, with its word for who sees no sign.
fn mark(is_equal: bool) -> El {
    let (class, sign, word) = match is_equal {
        true => ("mark equal", "=", "equal"),
        false => ("mark differs", "≠", "differs"),
    };
    of_class("span", class)
        .at("title", word)
        .then(el("span").at("aria-hidden", "true").then(sign))
        .then(unseen(word))
}

/// A cell. What it says is one box: on a telephone it stands beside the column's name.
fn cell(class: &'static str, words: impl Into<Html>) -> El {
    of_class("td", class).then(el("div").then(words))
}

/// A cell whose value stands beside its mark.
fn marked(class: &'static str, words: impl Into<Html>, is_equal: bool) -> El {
    cell(class, words.into().with(mark(is_equal)))
}

fn amount_cell(object: &PspObject, wanted: Option<Money>) -> El {
    let money = object.captured.or(object.amount);
    let is_equal = money.is_some() && money == wanted;
    let words = money.map(money_text).unwrap_or_else(|| "unknown".to_owned());
    marked(if is_equal { "num" } else { "num differs" }, words, is_equal)
}

fn tag_cell(object: &PspObject, own: &str) -> El {
    match object.tag.as_deref() {
        Some(tag) => {
            let is_equal = tag == own;
            marked(if is_equal { "tagged" } else { "differs" }, id(tag), is_equal)
        }
        None => marked("differs", "none", false),
    }
}

fn reference_cell(object: &PspObject, stored: Option<&str>) -> El {
    let Some(stored) = stored else { return cell("text", NOTHING) };
    let is_equal = object.is_named(stored);
    marked(if is_equal { "tagged" } else { "differs" }, id(&object.reference), is_equal)
}

fn meaning(state: &ObjectState) -> String {
    let words = state.as_str().replace('_', " ");
    match state {
        ObjectState::Failed(failure) => format!("{words}: {}", failure.words()),
        _other => words,
    }
}

fn taken_back(object: &PspObject, looks: &[&PspObject]) -> String {
    let words = Back::of(&looks_at(object, looks)).words();
    if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
}

/// What can still be captured of each object; none where the PSP names no sum of any.
fn open_line(objects: &[&PspObject]) -> Option<El> {
    let sum =
        |object: &&PspObject| cell("num", open_sum(object)).at("data-label", &object.reference);
    let is_any = objects.iter().any(|object| object.capturable_minor > 0);
    let sums = || objects.iter().map(sum).collect();
    is_any.then(|| line("can still be captured", cell("num", NOTHING), sums()))
}

fn open_sum(object: &PspObject) -> String {
    match object.capturable() {
        Some(sum) => money_text(sum),
        None if object.capturable_minor > 0 => "some of it".to_owned(),
        None => "nothing".to_owned(),
    }
}

fn money_text(money: Money) -> String {
    let currency = money.currency;
    format!("{} {currency}", grouped_text(i128::from(money.minor), currency.exponent()))
}

fn apart(row: Instant, object: Instant) -> String {
    let span = object.signed_duration_since(row);
    let sign = if span < chrono::TimeDelta::zero() { "−" } else { "+" };
    let seconds = span.num_seconds().saturating_abs();
    format!("{sign}{}", span_text(chrono::TimeDelta::seconds(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_a_sign_and_a_word() {
        for (is_equal, word) in [(true, "equal"), (false, "differs")] {
            let made = Html::from(mark(is_equal)).into_string();
            assert!(made.contains(&format!(">{word}<")), "{made}");
            assert!(made.contains("aria-hidden"), "{made}");
        }
    }

    #[test]
    fn a_failure_is_told_with_its_code_and_its_advice() {
        let failed = |code: &str, advice: Option<&str>| {
            meaning(&ObjectState::Failed(crate::model::evidence::Failure {
                code: code.to_owned(),
                advice: advice.map(str::to_owned),
                network_advice: None,
                final_from: None,
                still_payable: false,
            }))
        };
        let said = failed("expired_card", Some("do_not_try_again"));
        assert_eq!(said, "failed: expired_card, advice do_not_try_again");
        assert_eq!(failed("expired_card", None), "failed: expired_card");
        assert_eq!(failed("", Some("do_not_try_again")), "failed: advice do_not_try_again");
    }

    fn object(capturable_minor: i64) -> PspObject {
        let eur = crate::model::money::Currency::parse("EUR").unwrap();
        PspObject {
            amount: Some(Money::new(200_000, eur)),
            capturable_minor,
            ..PspObject::plain("payment_intent", ObjectState::Unknown)
        }
    }

    #[test]
    fn what_can_still_be_captured_is_told_with_its_sum() {
        let grouped = money_text(object(150_000).capturable().unwrap());
        assert_eq!(open_sum(&object(150_000)), grouped);
        assert_eq!(open_sum(&object(0)), "nothing");
        assert_eq!(open_sum(&PspObject { amount: None, ..object(1) }), "some of it");
        let made = open_line(&[&object(0), &object(150_000)]).unwrap();
        let made = Html::from(made).into_string();
        for words in ["can still be captured", grouped.as_str(), "nothing"] {
            assert!(made.contains(words), "{words}: {made}");
        }
        assert!(open_line(&[&object(0)]).is_none());
    }

    #[test]
    fn instants_are_told_by_their_distance() {
        let at = |text: &str| crate::model::time::from_text(text).unwrap();
        let row = at("2026-11-19T08:00:00Z");
        assert_eq!(apart(row, at("2026-11-19T08:00:36Z")), "+36s");
        assert_eq!(apart(row, at("2026-11-19T07:00:00Z")), "−1h");
    }
}
