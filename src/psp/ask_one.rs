//! Asking for single rows: by reference, by search, and whatever a list left out of an object.
//!
//! A search hit is a pointer only: the index may be behind, so the object is read again by its id
//! before anybody judges it. A miss of the search never counts by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::task::JoinSet;

use crate::model::evidence::{
    Answer, Cause, CauseKind, CompleteSearch, Evidence, PspObject, Route,
};
use crate::model::time::Instant;
use crate::psp::account::{Account, Question, STRIPE_SEARCH_LAG};
use crate::psp::lane::cause;
use crate::psp::look::{Look, left_halfway};
use crate::psp::stripe::{Fetched, ObjectKind, Piece, Stripe, kind_of, wider_skew};
use crate::psp::stripe_objects::Parts;

/// The object kinds that a search by tag can cover for a question.
pub(super) fn search_kinds(account: &Account, question: &Question) -> Vec<ObjectKind> {
    if !account.settings.search || question.tag.is_none() {
        return Vec::new();
    }
    let kinds = question.kinds.iter().filter_map(|kind| ObjectKind::parse(kind));
    kinds.filter(|kind| kind.is_searchable()).collect()
}

/// Objects with nearly a row's tag that are read whole.
const NEAR_READ: usize = 3;

/// Whether refunds are asked for: no search knows them.
pub(super) fn is_of_refunds(question: &Question) -> bool {
    question.kinds.iter().all(|kind| ObjectKind::parse(kind) == Some(ObjectKind::Refund))
}

/// Runs one question each, as many at once as the account allows, and answers in order. `None`: a
/// task ended without a result.
pub(super) async fn side_by_side<Q, A, F, W>(
    account: &Account,
    asks: Vec<Q>,
    ask: F,
) -> Vec<Option<A>>
where
    Q: Clone + Send + Sync + 'static,
    A: Send + 'static,
    F: Fn(Arc<Stripe>, Q) -> W + Clone + Send + Sync + 'static,
    W: Future<Output = A> + Send + 'static,
{
    let asks = Arc::new(asks);
    let next = Arc::new(AtomicUsize::new(0));
    let mut workers: JoinSet<Vec<(usize, A)>> = JoinSet::new();
    let most = usize::try_from(account.settings.concurrency).unwrap_or(1).max(1);
    for _ in 0..most.min(asks.len()) {
        let (asks, next) = (Arc::clone(&asks), Arc::clone(&next));
        let (stripe, ask) = (Arc::clone(&account.stripe), ask.clone());
        workers.spawn(async move {
            let mut answers = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(question) = asks.get(index) else { return answers };
                answers.push((index, ask(Arc::clone(&stripe), question.clone()).await));
            }
        });
    }
    let mut answers: Vec<Option<A>> = Vec::new();
    answers.resize_with(asks.len(), || None);
    while let Some(done) = workers.join_next().await {
        for (index, answer) in done.unwrap_or_default() {
            if let Some(slot) = answers.get_mut(index) {
                *slot = Some(answer);
            }
        }
    }
    answers
}

/// What one row's own question brought.
#[derive(Debug, Default)]
struct Told {
    evidence: Vec<Evidence>,
    near: Vec<(String, String)>,
    near_objects: Vec<PspObject>,
}

impl Told {
    /// What was read under this id already.
    fn fetched(&self, reference: &str) -> Option<&PspObject> {
        self.evidence.iter().find_map(|item| match &item.answer {
            Answer::Found { objects, .. } => objects.iter().find(|o| o.reference == reference),
            Answer::Nothing(_) | Answer::UnknownReference(_) | Answer::NoAnswer(_) => None,
        })
    }
}

/// Asks for rows one by one: by reference where there is one, and by search where there is a tag.
/// A reference alone shows one object; a second one under the row's tag is seen by search, or
/// for a refund by the list of its payment's refunds.
pub(super) async fn ask_rows(
    account: &Account,
    questions: &[Question],
    rows: &[usize],
    look: &mut Look,
) {
    let asks = of_rows(account, questions, rows);
    let told = side_by_side(account, asks, |stripe, (question, kinds)| async move {
        let mut told = Told::default();
        if let Some(reference) = &question.reference {
            let payment = fetch(&stripe, reference, &mut told).await;
            if let Some(payment) = payment.filter(|_| is_of_refunds(&question)) {
                refunds_beside(&stripe, &question, &payment, &mut told).await;
            }
        }
        if !kinds.is_empty() {
            search(&stripe, &question, &kinds, &mut told).await;
        }
        told
    })
    .await;
    note(account, look, rows, told);
}

/// Fetches rows by their references.
pub(super) async fn fetch_rows(
    account: &Account,
    questions: &[Question],
    rows: &[usize],
    look: &mut Look,
) {
    let asks = of_rows(account, questions, rows);
    let told = side_by_side(account, asks, |stripe, (question, _)| async move {
        let mut told = Told::default();
        if let Some(reference) = &question.reference {
            fetch(&stripe, reference, &mut told).await;
        }
        told
    })
    .await;
    note(account, look, rows, told);
}

/// Searches rows by their tags.
pub(super) async fn search_rows(
    account: &Account,
    questions: &[Question],
    rows: &[usize],
    look: &mut Look,
) {
    let asks = of_rows(account, questions, rows);
    let told = side_by_side(account, asks, |stripe, (question, kinds)| async move {
        let mut told = Told::default();
        if !kinds.is_empty() {
            search(&stripe, &question, &kinds, &mut told).await;
        }
        told
    })
    .await;
    note(account, look, rows, told);
}

fn of_rows(
    account: &Account,
    questions: &[Question],
    rows: &[usize],
) -> Vec<(Question, Vec<ObjectKind>)> {
    let questions = rows.iter().filter_map(|row| questions.get(*row));
    questions.map(|question| (question.clone(), search_kinds(account, question))).collect()
}

fn note(account: &Account, look: &mut Look, rows: &[usize], told: Vec<Option<Told>>) {
    for (row, told) in rows.iter().zip(told) {
        let told = told.unwrap_or_else(|| {
            let now = account.now();
            let lost = account.evidence(Route::Fetch, now, Answer::NoAnswer(left_halfway()));
            Told { evidence: vec![lost], ..Told::default() }
        });
        if let Some(answers) = look.answers.get_mut(*row) {
            answers.extend(told.evidence);
        }
        if let Some(near) = look.near.get_mut(*row) {
            near.extend(told.near);
        }
        if let Some(objects) = look.near_objects.get_mut(*row) {
            objects.extend(told.near_objects);
        }
    }
}

/// Fetches by reference; says which payment it is a refund of, if it is one.
async fn fetch(stripe: &Stripe, reference: &str, told: &mut Told) -> Option<String> {
    let account = stripe.lane.account().to_owned();
    let sent_at = stripe.lane.db_now();
    let mut payment = None;
    let (asked_at, answer) = match fetch_parts(stripe, reference).await {
        Ok((asked_at, Some((object, parts)))) => {
            payment = parts.refund.and_then(|refund| refund.payment());
            (asked_at, Answer::Found { objects: vec![object], search: None })
        }
        Ok((asked_at, None)) => (asked_at, Answer::UnknownReference(reference.to_owned())),
        Err(cause) => (sent_at, Answer::NoAnswer(cause)),
    };
    told.evidence.push(Evidence { account, route: Route::Fetch, asked_at, answer });
    payment
}

/// Looks at the other refunds of the same payment: another one under the row's tag is the row's
/// as well. Finding none says nothing, as it may stand on another payment.
async fn refunds_beside(stripe: &Stripe, question: &Question, payment: &str, told: &mut Told) {
    let Some(tag) = question.tag.as_deref() else { return };
    let account = stripe.lane.account().to_owned();
    let sent_at = stripe.lane.db_now();
    let (asked_at, answer) = match stripe.refunds_of(payment).await {
        Ok((asked_at, pieces)) => {
            let own = |piece: &Piece| {
                piece.tag.as_deref() == Some(tag) && told.fetched(&piece.id).is_none()
            };
            let others = pieces.iter().filter(|piece| own(piece));
            let others = others.map(|piece| object_of(stripe, &piece.id, &piece.parts));
            match others.collect::<Result<Vec<PspObject>, Cause>>() {
                Ok(others) if others.is_empty() => return,
                Ok(objects) => (asked_at, Answer::Found { objects, search: None }),
                Err(cause) => (asked_at, Answer::NoAnswer(cause)),
            }
        }
        Err(cause) => (sent_at, Answer::NoAnswer(cause)),
    };
    told.evidence.push(Evidence { account, route: Route::List, asked_at, answer });
}

async fn fetch_object(
    stripe: &Stripe,
    reference: &str,
) -> Result<(Instant, Option<PspObject>), Cause> {
    let (asked_at, found) = fetch_parts(stripe, reference).await?;
    Ok((asked_at, found.map(|(object, _)| object)))
}

async fn fetch_parts(
    stripe: &Stripe,
    reference: &str,
) -> Result<(Instant, Option<(PspObject, Parts)>), Cause> {
    match stripe.fetch(reference).await? {
        Fetched::Unknown { asked_at } => Ok((asked_at, None)),
        Fetched::Found { asked_at, piece } => {
            let parts = whole(stripe, &piece.parent, piece.parts).await?;
            let object = object_of(stripe, reference, &parts)?;
            Ok((asked_at, Some((object, parts))))
        }
    }
}

fn object_of(stripe: &Stripe, reference: &str, parts: &Parts) -> Result<PspObject, Cause> {
    parts
        .object(&stripe.tag_key)
        .ok_or_else(|| cause(CauseKind::Unreadable, format!("{reference} has no readable time")))
}

/// Reads what is missing of one payment: its intent anew, and the intent's latest charge.
pub(super) async fn whole(
    stripe: &Stripe,
    reference: &str,
    mut parts: Parts,
) -> Result<Parts, Cause> {
    if parts.is_whole() {
        return Ok(parts);
    }
    if kind_of(reference) == Some(ObjectKind::PaymentIntent) && !parts.lacks_charge_only() {
        match stripe.fetch(reference).await? {
            Fetched::Found { piece, .. } => parts.take_fresh(piece.parts),
            // A charge of an intent that the PSP does not know stands for itself.
            Fetched::Unknown { .. } => return Ok(parts),
        }
    }
    if let Some(charge) = parts.missing_charge().map(str::to_owned) {
        match stripe.fetch(&charge).await? {
            Fetched::Found { piece, .. } => parts.charges.extend(piece.parts.charges),
            Fetched::Unknown { .. } => {
                let detail = format!("{reference} names {charge}, which the PSP does not know");
                return Err(cause(CauseKind::Unreadable, detail));
            }
        }
    }
    Ok(parts)
}

async fn search(stripe: &Stripe, question: &Question, kinds: &[ObjectKind], told: &mut Told) {
    let account = stripe.lane.account().to_owned();
    let sent_at = stripe.lane.db_now();
    let (asked_at, answer) = match search_tag(stripe, question, kinds, told).await {
        Ok((objects, search)) if objects.is_empty() => (search.asked_at, Answer::Nothing(search)),
        Ok((objects, search)) => (search.asked_at, Answer::Found { objects, search: Some(search) }),
        Err(cause) => (sent_at, Answer::NoAnswer(cause)),
    };
    told.evidence.push(Evidence { account, route: Route::Search, asked_at, answer });
}

/// Reads what has nearly the tag as whole as a case shows it: a search leaves the charge out. A
/// question that gets no answer leaves the name alone.
async fn show_near(stripe: &Stripe, parent: &str, parts: &Parts, told: &mut Told) {
    let object = match parts.is_whole() {
        true => parts.object(&stripe.tag_key),
        false if told.near_objects.len() < NEAR_READ => {
            fetch_object(stripe, parent).await.ok().and_then(|(_, object)| object)
        }
        false => None,
    };
    told.near_objects.extend(object);
}

async fn search_tag(
    stripe: &Stripe,
    question: &Question,
    kinds: &[ObjectKind],
    told: &mut Told,
) -> Result<(Vec<PspObject>, CompleteSearch), Cause> {
    let tag = question.tag.as_deref().unwrap_or("");
    let mut search = CompleteSearch {
        route: Route::Search,
        kinds: kinds.iter().map(|kind| kind.as_str().to_owned()).collect(),
        from: question.window.0,
        to: question.window.1,
        asked_at: stripe.lane.db_now(),
        counts_as_miss: false,
        lag_secs: STRIPE_SEARCH_LAG.num_seconds(),
        psp_skew_secs: None,
        listed: 0,
        witness: None,
        lacks: None,
    };
    let mut parents: Vec<String> = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    for (index, kind) in kinds.iter().enumerate() {
        let result = stripe.search(*kind, tag).await?;
        if index == 0 {
            search.asked_at = result.asked_at;
        }
        search.psp_skew_secs = wider_skew(search.psp_skew_secs, result.skew_secs);
        for piece in result.pieces {
            if !seen.contains(&piece.parent) {
                seen.push(piece.parent.clone());
            }
            // The index ignores case; a row's tag does not.
            match piece.tag {
                Some(seen) if seen == tag => {
                    if !parents.contains(&piece.parent) {
                        parents.push(piece.parent);
                    }
                }
                Some(seen) => {
                    let near = (piece.parent, seen);
                    if !told.near.contains(&near) {
                        show_near(stripe, &near.0, &piece.parts, told).await;
                        told.near.push(near);
                    }
                }
                None => {
                    let detail = format!("the search answered {}, which has no tag", piece.id);
                    return Err(cause(CauseKind::Unreadable, detail));
                }
            }
        }
    }
    search.listed = u64::try_from(seen.len()).unwrap_or(u64::MAX);
    let mut objects = Vec::new();
    for parent in parents {
        if let Some(object) = told.fetched(&parent) {
            objects.push(object.clone());
            continue;
        }
        match fetch_object(stripe, &parent).await? {
            (_, Some(object)) => objects.push(object),
            (_, None) => {
                let detail = format!("the search answered {parent}, which cannot be fetched");
                return Err(cause(CauseKind::Unreadable, detail));
            }
        }
    }
    Ok((objects, search))
}
