//! Who is signed in. Nothing of it outlives the process.
//!
//! A browser holds a random id, and here only the id's hash is known. With PostgreSQL each session
//! has connections of its own, by the person's own login; they end with it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::store::database::Database;
use crate::web::token::hash_of;

/// Sessions at a time: each may hold connections of the database.
const MOST: usize = 50;

/// Somebody who is signed in.
#[derive(Debug, Clone)]
pub struct Person {
    /// The name in histories and records.
    pub name: String,
    /// The database, as this person.
    pub db: Database,
    /// Whether its connections are this session's alone.
    pub is_own: bool,
    /// What each of this person's forms holds.
    pub csrf: String,
    /// Why the database holds this login by nothing; none where it does.
    pub unheld: Option<&'static str>,
}

#[derive(Debug)]
struct Session {
    person: Person,
    began: Instant,
    seen: Instant,
}

/// All sessions.
#[derive(Debug)]
pub struct Sessions {
    by_hash: HashMap<String, Session>,
    longest: Duration,
    idle: Duration,
}

impl Sessions {
    /// None yet.
    pub fn new(longest: Duration, idle: Duration) -> Self {
        Self { by_hash: HashMap::new(), longest, idle }
    }

    /// Keeps somebody under an id. What ended by that comes back.
    pub fn open(&mut self, id: &str, person: Person, now: Instant) -> Vec<Person> {
        let mut ended = self.sweep(now);
        while self.by_hash.len() >= MOST {
            let oldest = self.by_hash.iter().min_by_key(|(_, session)| session.seen);
            let Some(hash) = oldest.map(|(hash, _)| hash.clone()) else { break };
            ended.extend(self.by_hash.remove(&hash).map(|session| session.person));
        }
        self.by_hash.insert(hash_of(id), Session { person, began: now, seen: now });
        ended
    }

    /// Who has this id, where the session is not over.
    pub fn find(&mut self, id: &str, now: Instant) -> Option<Person> {
        let (longest, idle) = (self.longest, self.idle);
        let session = self.by_hash.get_mut(&hash_of(id))?;
        if is_over(session, longest, idle, now) {
            return None;
        }
        session.seen = now;
        Some(session.person.clone())
    }

    /// Ends a session.
    pub fn close(&mut self, id: &str) -> Option<Person> {
        self.by_hash.remove(&hash_of(id)).map(|session| session.person)
    }

    /// Takes out what is over.
    pub fn sweep(&mut self, now: Instant) -> Vec<Person> {
        let (longest, idle) = (self.longest, self.idle);
        let over = |session: &Session| is_over(session, longest, idle, now);
        let hashes: Vec<String> = self
            .by_hash
            .iter()
            .filter(|(_, session)| over(session))
            .map(|(hash, _)| hash.clone())
            .collect();
        let mut ended = Vec::new();
        for hash in hashes {
            ended.extend(self.by_hash.remove(&hash).map(|session| session.person));
        }
        ended
    }

    /// Takes out all.
    pub fn end(&mut self) -> Vec<Person> {
        self.by_hash.drain().map(|(_, session)| session.person).collect()
    }
}

fn is_over(session: &Session, longest: Duration, idle: Duration, now: Instant) -> bool {
    now.saturating_duration_since(session.began) >= longest
        || now.saturating_duration_since(session.seen) >= idle
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn person(name: &str) -> (tempfile::TempDir, Person) {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}?mode=rwc", folder.path().join("a.db").display());
        let settings = crate::store::settings::DatabaseSettings::of_url(&url);
        let db = Database::connect(&settings).await.unwrap();
        let (name, csrf) = (name.to_owned(), String::new());
        let person = Person { name, db, is_own: false, csrf, unheld: None };
        (folder, person)
    }

    #[tokio::test]
    async fn a_session_ends_by_time_by_idleness_and_by_word() {
        let (_folder, mara) = person("mara").await;
        let start = Instant::now();
        let after = |secs: u64| start + Duration::from_secs(secs);
        let mut sessions = Sessions::new(Duration::from_secs(100), Duration::from_secs(10));
        assert!(sessions.open("a", mara.clone(), after(0)).is_empty());
        assert!(sessions.find("b", after(0)).is_none());
        for secs in (5..100).step_by(5) {
            assert_eq!(sessions.find("a", after(secs)).unwrap().name, "mara", "{secs}");
        }
        assert!(sessions.find("a", after(100)).is_none(), "the longest is over");
        assert_eq!(sessions.sweep(after(100)).len(), 1);
        sessions.open("c", mara.clone(), after(100));
        assert!(sessions.find("c", after(110)).is_none(), "nothing was done for too long");
        sessions.open("d", mara.clone(), after(111));
        assert!(sessions.close("d").is_some());
        assert!(sessions.find("d", after(111)).is_none());
        for number in 0..MOST {
            assert!(sessions.open(&format!("{number}"), mara.clone(), after(112)).is_empty());
        }
        assert_eq!(sessions.open("one more", mara, after(112)).len(), 1);
        assert_eq!(sessions.end().len(), MOST);
    }
}
