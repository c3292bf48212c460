//! Signing in.
//!
//! SQLite knows no users: a person is who has the person's token. With PostgreSQL a person is who
//! the server lets in by a login and password of their own, and stays that at every statement: the
//! server holds maker and checker apart, whatever this program says. The password stays in memory,
//! with the session's connections, and goes with them; no file and no log has it.

use std::net::IpAddr;
use std::time::Instant;

use axum::http::StatusCode;
use chrono::TimeDelta;

use crate::config::web::is_name;
use crate::store::database::Database;
use crate::store::error::StoreError;
use crate::store::inspect::{Inspect, Rights};
use crate::store::people::PeopleDriver;
use crate::store::settings::DatabaseSettings;
use crate::web::error::Refused;
use crate::web::sessions::Person;
use crate::web::site::Site;
use crate::web::token;

/// Tries a minute by name, …
const TRIES_OF_NAME: usize = 10;

/// … and by address.
const TRIES_OF_ADDRESS: usize = 30;

/// The longest password.
const PASSWORD_MAX: usize = 1_000;

/// Connections of one person: a page asks one thing after the other.
const CONNECTIONS: u32 = 2;

/// How long the server may take to let somebody in.
const PATIENCE: TimeDelta = TimeDelta::seconds(10);

/// Lets somebody in, or says why not. Neither says whether there is such a person.
///
/// # Errors
/// With what is told to whoever tries.
pub async fn sign_in(
    site: &Site,
    name: &str,
    secret: &str,
    from: IpAddr,
) -> Result<Person, Refused> {
    may_try(site, name, from)?;
    if !is_name(name) || secret.is_empty() || secret.len() > PASSWORD_MAX {
        return Err(not_let_in());
    }
    let person = match &site.service_name {
        None => by_token(site, name, secret),
        Some(own) => Box::pin(by_login(site, own, name, secret)).await,
    };
    match &person {
        Ok(person) => tracing::info!(person = person.name, from = %from, "Signed in"),
        Err(refused) => {
            tracing::warn!(person = name, from = %from, why = refused.text, "Not let in");
        }
    }
    person
}

fn may_try(site: &Site, name: &str, from: IpAddr) -> Result<(), Refused> {
    let now = Instant::now();
    let mut limiter = site.limiter.borrow_mut();
    let may = limiter.may(&format!("from {from}"), TRIES_OF_ADDRESS, now)
        && limiter.may(&format!("name {name}"), TRIES_OF_NAME, now);
    if may {
        return Ok(());
    }
    Err(Refused::new(
        StatusCode::TOO_MANY_REQUESTS,
        "Too many tries to sign in; this one was not looked at.",
        "wait for a minute",
    ))
}

fn not_let_in() -> Refused {
    Refused::new(
        StatusCode::UNAUTHORIZED,
        "That name and secret do not go together.",
        "try again, or ask whoever keeps tieout",
    )
}

fn person_of(name: String, db: Database, is_own: bool) -> Result<Person, Refused> {
    let csrf = token::fresh().ok_or_else(no_chance)?;
    Ok(Person { name, db, is_own, csrf, unheld: None })
}

/// The system gives no random numbers: nothing is safe then.
pub fn no_chance() -> Refused {
    let text = "The system gives no random numbers; nobody was signed in.";
    Refused::new(StatusCode::INTERNAL_SERVER_ERROR, text, "look at the machine")
}

/// Every known hash is compared, whoever asks, so that time tells no names.
fn by_token(site: &Site, name: &str, secret: &str) -> Result<Person, Refused> {
    let hash = token::hash_of(secret);
    let mut found = None;
    for (known, known_hash) in &site.people {
        let is_secret = token::is_same(known_hash, &hash);
        if is_secret && known == name {
            found = Some(known.clone());
        }
    }
    let name = found.ok_or_else(not_let_in)?;
    person_of(name, site.service.clone(), false)
}

async fn by_login(site: &Site, own: &str, name: &str, secret: &str) -> Result<Person, Refused> {
    // The server's own login carries decisions out: it is nobody who makes them.
    if name == own {
        return Err(not_let_in());
    }
    let settings = as_person(&site.config.database, name, secret)?;
    let db = opened(&settings).await?;
    let wrong = token::fresh().ok_or_else(no_chance)?;
    let open_to_all = as_person(&site.config.database, name, &wrong)?;
    let checked = checks_passwords(&open_to_all).await;
    let known = match checked {
        Ok(()) => named(&db, own).await,
        Err(refused) => Err(refused),
    };
    match known {
        Ok((name, unheld)) => Ok(Person { unheld, ..person_of(name, db, true)? }),
        Err(refused) => {
            db.close().await;
            Err(refused)
        }
    }
}

async fn opened(settings: &DatabaseSettings) -> Result<Database, Refused> {
    match Database::connect(settings).await {
        Ok(db) => Ok(db),
        Err(StoreError::Refused { .. }) => Err(not_let_in()),
        Err(other) => Err(Refused::from(other)),
    }
}

/// A server that lets in by a password that nobody chose looks at none: `trust`, `peer`, or a
/// certificate of this program's. Then anybody could be anybody.
async fn checks_passwords(settings: &DatabaseSettings) -> Result<(), Refused> {
    match Database::connect(settings).await {
        Ok(db) => {
            db.close().await;
            Err(Refused::new(
                StatusCode::FORBIDDEN,
                "The database lets this login in whatever its password is, so that nobody here \
                 can be told from anybody else; nobody was signed in.",
                "in pg_hba.conf, scram-sha-256 for the people in place of trust or peer",
            ))
        }
        Err(StoreError::Refused { .. }) => Ok(()),
        // Nothing is known then: nobody is let in on a guess.
        Err(other) => Err(Refused::from(other)),
    }
}

/// Who it is, and whether the server holds that login to anything.
async fn named(db: &Database, own: &str) -> Result<(String, Option<&'static str>), Refused> {
    db.require_schema().await?;
    let name = name_of(db, own).await?;
    let unheld = unheld(&db.rights().await?);
    if unheld.is_some() {
        tracing::warn!(person = name, "Signed in by a login that the database holds by nothing");
    }
    Ok((name, unheld))
}

/// Why nothing holds maker and checker apart for this login.
fn unheld(rights: &Rights) -> Option<&'static str> {
    match (rights.is_superuser, rights.owns_journal) {
        (true, _) => Some("a superuser of the database"),
        (false, true) => Some("the owner of tieout's tables"),
        (false, false) => None,
    }
}

async fn name_of(db: &Database, own: &str) -> Result<String, Refused> {
    match db.identity().await? {
        Some(name) if name != own => Ok(name),
        Some(_) | None => Err(not_let_in()),
    }
}

/// The database's settings with another login.
fn as_person(
    settings: &DatabaseSettings,
    name: &str,
    secret: &str,
) -> Result<DatabaseSettings, Refused> {
    let address = settings.address()?;
    let mut login = address.to_owned();
    login.push(if address.contains('?') { '&' } else { '?' });
    login.push_str("user=");
    // The last word about the user counts, wherever the address names another one.
    for byte in name.bytes() {
        login.push_str(&format!("%{byte:02X}"));
    }
    Ok(DatabaseSettings {
        url: Some(login),
        password: Some(secret.to_owned()),
        password_env: None,
        password_file: None,
        password_command: None,
        connections: CONNECTIONS,
        connect_timeout: settings.connect_timeout.min(PATIENCE),
        ..settings.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_owns_the_tables_or_all_is_held_by_nothing() {
        let of = |is_superuser, owns_journal| {
            unheld(&Rights { is_superuser, owns_journal, ..Rights::default() })
        };
        assert_eq!(of(true, true), Some("a superuser of the database"));
        assert_eq!(of(false, true), Some("the owner of tieout's tables"));
        assert_eq!(of(false, false), None);
    }

    #[test]
    fn the_login_is_the_persons_and_the_password_shows_nowhere() {
        for (url, want) in [
            ("postgres://run:x@db/pay", "postgres://run:x@db/pay?user=%6D%61%26"),
            (
                "postgres://db/pay?sslmode=require",
                "postgres://db/pay?sslmode=require&user=%6D%61%26",
            ),
        ] {
            let mut settings = DatabaseSettings::of_url(url);
            settings.password_env = Some("PW".to_owned());
            let person = as_person(&settings, "ma&", "s3cret").unwrap();
            assert_eq!(person.url.as_deref(), Some(want));
            assert_eq!(person.password.as_deref(), Some("s3cret"));
            assert_eq!(person.password_env, None);
            assert!(!format!("{person:?}").contains("s3cret"));
        }
    }
}
