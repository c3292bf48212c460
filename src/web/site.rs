//! What every request sees of the site: its configuration, its people, who is signed in.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::Duration;

use chrono::TimeDelta;
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::task::TaskTracker;

use crate::config::web::{WebSettings, host_of, is_hash};
use crate::config::{Config, named_secret};
use crate::store::database::Database;
use crate::store::people::PeopleDriver;
use crate::web::carrier::{Errand, Waits};
use crate::web::error::ServeError;
use crate::web::limit::Limiter;
use crate::web::sessions::{Person, Sessions};

/// The site. All of it lives on one thread: no borrow of a cell is held over an await.
#[derive(Debug)]
pub struct Site {
    /// The configuration.
    pub config: Config,
    /// The database, as the server's own login.
    pub service: Database,
    /// The server's own name at the database; none where it knows no users.
    pub service_name: Option<String>,
    /// People by name, with the hash of their token. SQLite alone.
    pub people: Vec<(String, String)>,
    /// Who is signed in.
    pub sessions: RefCell<Sessions>,
    /// Who tried to.
    pub limiter: RefCell<Limiter>,
    /// The hosts that a request may name.
    pub hosts: Vec<String>,
    /// The origins that a form may come from.
    pub origins: Vec<String>,
    /// Browsers reach it by TLS alone.
    pub is_secure: bool,
    /// Where what was approved or kicked goes to be carried out; none where this page does not.
    pub carrier: Option<UnboundedSender<Errand>>,
    /// What was approved and could not be carried out.
    pub waits: Waits,
    /// Everything that is being done.
    pub tasks: TaskTracker,
}

impl Site {
    /// Puts the site together. `address` is where it listens.
    ///
    /// # Errors
    /// Where nobody could sign in, or the database does not say who the server is.
    pub async fn open(
        config: Config,
        service: Database,
        address: SocketAddr,
        carrier: Option<UnboundedSender<Errand>>,
    ) -> Result<Self, ServeError> {
        let service_name = service.identity().await;
        let service_name = service_name.map_err(|source| ServeError::Store { source })?;
        let people = match &service_name {
            Some(_name) if config.web.person.is_empty() => Vec::new(),
            Some(_name) => return Err(ServeError::Persons),
            None => people_of(&config.web).await?,
        };
        if service_name.is_none() && people.is_empty() {
            return Err(ServeError::Nobody);
        }
        let origin = config.web.origin.as_deref();
        Ok(Self {
            hosts: hosts(address, origin),
            origins: origins(address, origin),
            is_secure: origin.is_some_and(|origin| origin.starts_with("https://")),
            sessions: RefCell::new(Sessions::new(
                std_span(config.web.session),
                std_span(config.web.idle),
            )),
            limiter: RefCell::default(),
            waits: Waits::default(),
            tasks: TaskTracker::new(),
            config,
            service,
            service_name,
            people,
            carrier,
        })
    }

    /// The cookie's name. The prefix keeps other hosts of the domain from setting it.
    pub fn cookie(&self) -> &'static str {
        if self.is_secure { "__Host-tieout" } else { "tieout" }
    }

    /// Ends connections of sessions that are over, beside everything else.
    pub fn end(&self, ended: Vec<Person>) {
        for person in ended.into_iter().filter(|person| person.is_own) {
            self.tasks.spawn_local(async move { person.db.close().await });
        }
    }
}

fn std_span(span: TimeDelta) -> Duration {
    span.to_std().unwrap_or_default()
}

async fn people_of(settings: &WebSettings) -> Result<Vec<(String, String)>, ServeError> {
    let mut people: Vec<(String, String)> = Vec::new();
    let env: crate::secret::EnvLookup = std::sync::Arc::new(named_secret);
    for person in &settings.person {
        let name = person.name.clone();
        let hash = match &person.token_sha256 {
            Some(hash) => hash.clone(),
            None => match person.source().read(&env).await {
                Ok(secret) => secret.expose().to_owned(),
                Err(source) => return Err(ServeError::Token { name, source }),
            },
        };
        if !is_hash(&hash) {
            return Err(ServeError::NoHash { name });
        }
        let hash = hash.to_ascii_lowercase();
        // What the configuration shows is refused there; a file or a variable is read here.
        if let Some((other, _)) = people.iter().find(|(_, known)| *known == hash) {
            return Err(ServeError::OneToken { name, other: other.clone() });
        }
        people.push((name, hash));
    }
    Ok(people)
}

/// What a request to this very address names as its host. Any other name was made to point here.
fn hosts(address: SocketAddr, origin: Option<&str>) -> Vec<String> {
    let port = address.port();
    let mut hosts: Vec<String> = Vec::new();
    for name in ["localhost", "127.0.0.1", "[::1]"] {
        hosts.push(format!("{name}:{port}"));
        if port == 80 {
            hosts.push(name.to_owned());
        }
    }
    if !address.ip().is_unspecified() {
        hosts.push(address.to_string());
    }
    hosts.extend(origin.and_then(host_of).map(str::to_ascii_lowercase));
    hosts
}

/// Where forms of the page come from: what browsers see, and nothing beside it.
fn origins(address: SocketAddr, origin: Option<&str>) -> Vec<String> {
    match origin {
        Some(origin) => vec![origin.to_ascii_lowercase()],
        None => hosts(address, None).into_iter().map(|host| format!("http://{host}")).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_was_made_to_point_here_is_no_host_of_ours() {
        let here: SocketAddr = "127.0.0.1:8042".parse().unwrap();
        let names = hosts(here, None);
        for fine in ["127.0.0.1:8042", "localhost:8042", "[::1]:8042"] {
            assert!(names.iter().any(|name| name == fine), "{fine}");
        }
        for bad in ["evil.example:8042", "localhost", "127.0.0.1", "localhost:80"] {
            assert!(!names.iter().any(|name| name == bad), "{bad}");
        }
        let behind = Some("https://Tieout.example.com");
        assert!(hosts(here, behind).contains(&"tieout.example.com".to_owned()));
        assert_eq!(origins(here, behind), ["https://tieout.example.com"]);
        assert!(origins(here, None).contains(&"http://localhost:8042".to_owned()));
        let any: SocketAddr = "0.0.0.0:80".parse().unwrap();
        assert!(!hosts(any, None).iter().any(|name| name.starts_with("0.0.0.0")));
    }
}
