//! One look while it is under way, and each row's evidence put together at its end.
//!
//! Evidence of a list is made here and nowhere else, so that "nothing" comes only from a window
//! read to its end in which everything that could be the row's was read whole.

use std::sync::Arc;

use crate::model::evidence::{
    Answer, Cause, CauseKind, CompleteSearch, Evidence, PspObject, Route,
};
use crate::model::time::Instant;
use crate::psp::account::{Account, Looked, Question};
use crate::psp::book::{Book, Neighbour, Wanted};
use crate::psp::lane::cause;
use crate::psp::stripe::ObjectKind;
use crate::psp::stripe_objects::Parts;

/// One window that was listed for some questions.
#[derive(Debug, Clone)]
pub(super) struct ListedWindow {
    pub(super) kinds: Vec<ObjectKind>,
    pub(super) from: Instant,
    pub(super) to: Instant,
    pub(super) asked_at: Option<Instant>,
    pub(super) skew_secs: Option<i64>,
    pub(super) listed: u64,
    /// Why it is not complete.
    pub(super) failed: Option<Cause>,
}

/// A look under way.
pub(super) struct Look {
    /// What single questions were answered, by question.
    pub(super) answers: Vec<Vec<Evidence>>,
    /// Near misses of searches, by question.
    pub(super) near: Vec<Vec<(String, String)>>,
    /// Of these objects, those that were read whole.
    pub(super) near_objects: Vec<Vec<PspObject>>,
    /// An object of the question's could not be read whole.
    pub(super) unread: Vec<Option<Cause>>,
    pub(super) windows: Vec<ListedWindow>,
    pub(super) window_of: Vec<Option<usize>>,
    pub(super) book: Book,
    pub(super) wanted: Arc<Wanted>,
    pub(super) pages: u64,
    pub(super) plan: String,
}

/// A task that ended without a result.
pub(super) fn left_halfway() -> Cause {
    cause(CauseKind::Incomplete, "a question was left halfway".to_owned())
}

/// The object kinds of a question that this adapter lists.
pub(super) fn kinds_of(question: &Question) -> Vec<ObjectKind> {
    let mut kinds: Vec<_> =
        question.kinds.iter().filter_map(|kind| ObjectKind::parse(kind)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

impl ListedWindow {
    /// Its kinds and the seconds, both inclusive, that were read to their end.
    pub(super) fn seconds(&self) -> Option<(Vec<ObjectKind>, (i64, i64))> {
        let search = self.search()?;
        Some((self.kinds.clone(), (search.from.timestamp(), search.to.timestamp())))
    }

    fn search(&self) -> Option<CompleteSearch> {
        let asked_at = self.asked_at.filter(|_| self.failed.is_none())?;
        Some(CompleteSearch {
            route: Route::List,
            kinds: self.kinds.iter().map(|kind| kind.as_str().to_owned()).collect(),
            from: self.from,
            // What the PSP makes after it was asked is not in its answer.
            to: self.to.min(asked_at),
            asked_at,
            counts_as_miss: true,
            lag_secs: 0,
            psp_skew_secs: self.skew_secs,
            listed: self.listed,
            witness: None,
            lacks: None,
        })
    }
}

impl Look {
    pub(super) fn at(questions: &[Question]) -> Self {
        let mut wanted = Wanted::default();
        for question in questions {
            let (tag, reference) = (question.tag.as_deref(), question.reference.as_deref());
            wanted.add(tag, reference, kinds_of(question));
        }
        let count = questions.len();
        Self {
            answers: vec![Vec::new(); count],
            near: vec![Vec::new(); count],
            near_objects: vec![Vec::new(); count],
            unread: vec![None; count],
            windows: Vec::new(),
            window_of: vec![None; count],
            book: Book::default(),
            wanted: Arc::new(wanted),
            pages: 0,
            plan: String::new(),
        }
    }

    /// Notes that an object of these rows could not be read whole.
    pub(super) fn note_unread(&mut self, rows: &[u32], cause: &Cause) {
        for row in rows.iter().filter_map(|row| usize::try_from(*row).ok()) {
            if let Some(unread) = self.unread.get_mut(row) {
                *unread = Some(cause.clone());
            }
        }
    }

    /// Rows of listed windows that store a reference which no listed object has.
    pub(super) fn not_in_list(&self, questions: &[Question]) -> Vec<usize> {
        let mut seen = vec![false; questions.len()];
        for (rows, _, light) in self.book.of_rows() {
            for row in rows.iter().filter_map(|row| usize::try_from(*row).ok()) {
                let reference = questions.get(row).and_then(|q| q.reference.as_deref());
                let is_it = reference.is_some_and(|reference| is_named(light, reference));
                if let Some(seen) = seen.get_mut(row).filter(|_| is_it) {
                    *seen = true;
                }
            }
        }
        let listed = self.window_of.iter().zip(questions).zip(seen).enumerate();
        listed
            .filter(|(_, ((window, q), seen))| window.is_some() && q.reference.is_some() && !seen)
            .map(|(row, _)| row)
            .collect()
    }

    /// Puts each question's evidence together.
    pub(super) fn finish(mut self, account: &Account) -> Looked {
        let mut objects = self.objects(&account.stripe.tag_key);
        let now = account.now();
        let mut evidence = Vec::with_capacity(self.answers.len());
        for (row, answers) in self.answers.iter_mut().enumerate() {
            let window = self.window_of.get(row).copied().flatten();
            let window = window.and_then(|window| self.windows.get(window));
            let unread = self.unread.get(row).cloned().flatten();
            let objects = objects.get_mut(row).map(std::mem::take).unwrap_or_default();
            let mut own = match window {
                Some(window) => from_list(account, window, unread, objects, now),
                None => by_chance(account, answers, objects, now),
            };
            own.append(answers);
            evidence.push(own);
        }
        self.note_near(&account.stripe.tag_key);
        Looked {
            evidence,
            near: self.near,
            near_objects: self.near_objects,
            listed: self.book.ours_count(),
            pages: self.pages,
            why: self.plan,
            book: self.book,
        }
    }

    /// The payments of each question that were read whole; those that were not leave a cause.
    fn objects(&mut self, tag_key: &str) -> Vec<Vec<PspObject>> {
        let mut objects: Vec<Vec<PspObject>> = vec![Vec::new(); self.answers.len()];
        for (rows, parts, light) in self.book.take_rows() {
            let mut object = object_of(&parts, light, tag_key);
            let mut rows = rows.iter().filter_map(|row| usize::try_from(*row).ok()).peekable();
            while let Some(row) = rows.next() {
                // The last one has it without a copy; nearly always it is the only one.
                let object = if rows.peek().is_some() { object.clone() } else { object.take() };
                match (object, objects.get_mut(row), self.unread.get_mut(row)) {
                    (Some(object), Some(own), Some(None)) => {
                        // Nearly always the only one: no room for three more.
                        own.reserve_exact(1);
                        own.push(object);
                    }
                    (None, _, Some(unread)) => {
                        let detail = format!("{} cannot be read", light.reference);
                        unread.get_or_insert(cause(CauseKind::Unreadable, detail));
                    }
                    (_, _, _) => {}
                }
            }
        }
        objects
    }

    fn note_near(&mut self, tag_key: &str) {
        for (row, light, parts) in self.book.near() {
            let Some(tag) = &light.tag else { continue };
            let Ok(row) = usize::try_from(row) else { continue };
            let near = (light.reference.to_string(), tag.to_string());
            let slot = self.near.get_mut(row).filter(|slot| !slot.contains(&near));
            let Some(slot) = slot else { continue };
            slot.push(near);
            let whole = parts.filter(|parts| parts.is_whole());
            let object = whole.and_then(|parts| object_of(parts, light, tag_key));
            if let Some(objects) = self.near_objects.get_mut(row) {
                objects.extend(object);
            }
        }
    }
}

fn object_of(parts: &Parts, light: &Neighbour, tag_key: &str) -> Option<PspObject> {
    let mut object = parts.object(tag_key)?;
    for alias in &light.aliases {
        if !object.is_named(alias) {
            object.aliases.push(alias.to_string());
        }
    }
    Some(object)
}

fn is_named(light: &Neighbour, reference: &str) -> bool {
    *light.reference == *reference || light.aliases.iter().any(|alias| **alias == *reference)
}

/// What another row's window showed of a question that was asked by itself: a find is a find,
/// where its own answers do not have it already.
fn by_chance(
    account: &Account,
    answers: &[Evidence],
    objects: Vec<PspObject>,
    now: Instant,
) -> Vec<Evidence> {
    let is_told = |object: &PspObject| {
        answers.iter().any(|item| match &item.answer {
            Answer::Found { objects, .. } => objects.iter().any(|o| o.is_named(&object.reference)),
            Answer::Nothing(_) | Answer::UnknownReference(_) | Answer::NoAnswer(_) => false,
        })
    };
    let objects: Vec<PspObject> = objects.into_iter().filter(|o| !is_told(o)).collect();
    if objects.is_empty() {
        return Vec::new();
    }
    vec![account.evidence(Route::List, now, Answer::Found { objects, search: None })]
}

/// The evidence that a listed window is for one question.
fn from_list(
    account: &Account,
    window: &ListedWindow,
    unread: Option<Cause>,
    objects: Vec<PspObject>,
    now: Instant,
) -> Vec<Evidence> {
    let asked_at = window.asked_at.unwrap_or(now);
    let evidence = |answer| account.evidence(Route::List, asked_at, answer);
    match (window.search(), unread) {
        (Some(search), None) if objects.is_empty() => vec![evidence(Answer::Nothing(search))],
        (Some(search), None) => vec![evidence(Answer::Found { objects, search: Some(search) })],
        (_, unread) => {
            let found =
                (!objects.is_empty()).then(|| evidence(Answer::Found { objects, search: None }));
            let lost = unread.or_else(|| window.failed.clone()).unwrap_or_else(left_halfway);
            found.into_iter().chain([evidence(Answer::NoAnswer(lost))]).collect()
        }
    }
}
