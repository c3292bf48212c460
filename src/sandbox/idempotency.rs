//! What an idempotency key answers.
//!
//! The first answer of a request that began to execute is saved and given again, a 402 and a 500
//! included; a request that was refused before it began leaves its key unused. Another request
//! with the same key is refused: with other parameters for good, during the first one for now.

use std::collections::{HashMap, VecDeque};

use super::answer::Answer;
use super::core::AccountRef;

/// More keys than this are not kept, however young: the oldest go.
const MOST_KEYS: usize = 100_000;

#[derive(Debug, Default)]
pub(super) struct SavedAnswers {
    keys: HashMap<(AccountRef, String), Entry>,
    by_age: VecDeque<(i64, AccountRef, String)>,
}

#[derive(Debug)]
struct Entry {
    request: String,
    since_ms: i64,
    answer: Option<Answer>,
}

/// What to do with a request that names a key.
#[derive(Debug)]
pub(super) enum KeyState {
    /// The key is new, and taken from now on.
    Begun,
    /// The same request was answered before.
    Replay(Box<Answer>),
    /// The key belongs to another request.
    OtherRequest,
    /// The same request is under way.
    InProgress,
}

impl SavedAnswers {
    /// Takes the key for this request, or says whose it is.
    pub(super) fn begin(
        &mut self,
        account: &AccountRef,
        key: &str,
        request: &str,
        now_ms: i64,
        ttl_ms: i64,
    ) -> KeyState {
        self.expire(now_ms, ttl_ms);
        let full = (account.clone(), key.to_owned());
        if let Some(entry) = self.keys.get(&full) {
            return match (&entry.answer, entry.request == request) {
                (_, false) => KeyState::OtherRequest,
                (None, true) => KeyState::InProgress,
                (Some(answer), true) => KeyState::Replay(Box::new(answer.clone())),
            };
        }
        let entry = Entry { request: request.to_owned(), since_ms: now_ms, answer: None };
        self.keys.insert(full, entry);
        self.by_age.push_back((now_ms, account.clone(), key.to_owned()));
        KeyState::Begun
    }

    pub(super) fn save(&mut self, account: &AccountRef, key: &str, answer: Answer) {
        if let Some(entry) = self.keys.get_mut(&(account.clone(), key.to_owned())) {
            entry.answer = Some(answer);
        }
    }

    /// Gives the key free: the request did not begin to execute. A saved answer stays.
    pub(super) fn release(&mut self, account: &AccountRef, key: &str) {
        let full = (account.clone(), key.to_owned());
        if self.keys.get(&full).is_some_and(|entry| entry.answer.is_none()) {
            self.keys.remove(&full);
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn expire(&mut self, now_ms: i64, ttl_ms: i64) {
        while let Some((since_ms, account, key)) = self.by_age.front() {
            let young = now_ms.saturating_sub(*since_ms) < ttl_ms;
            if young && self.by_age.len() <= MOST_KEYS {
                return;
            }
            let full = (account.clone(), key.clone());
            if self.keys.get(&full).is_some_and(|entry| entry.since_ms == *since_ms) {
                self.keys.remove(&full);
            }
            self.by_age.pop_front();
        }
    }
}
