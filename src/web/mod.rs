//! The review page: what waits for a person, in a browser, over the verbs of the command line.
//!
//! It decides nothing. What people say goes through the store's own gates, which hold maker and
//! checker apart; what was approved is carried out by the code that carries out every decision, by
//! fresh evidence. It runs no script, fetches nothing from elsewhere, and keeps nothing beside the
//! database: who is signed in is forgotten with the process.
//!
//! All of it lives on one thread: a few people look at it, and a page waits for the database.
//!
//! Adding a page: a file in [`view`], a line in [`routes`], a test in `tests/it/web/`.

pub mod html;
pub mod link;
pub mod form;
pub mod token;
pub mod limit;
pub mod error;
pub mod sessions;
pub mod site;
pub mod door;
pub mod guard;
pub mod page;
pub mod filter;
pub mod act;
pub mod download;
pub mod export;
pub mod view;
pub mod routes;
pub mod carrier;
pub mod server;

use std::net::SocketAddr;
use std::rc::Rc;

use tokio::net::TcpListener;
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::LocalSet;

use crate::config::Config;
use crate::run::shutdown::Stop;
use crate::store::database::Database;
use crate::web::error::ServeError;
use crate::web::site::Site;

/// Where it is served.
#[derive(Debug, Clone)]
pub struct Served {
    /// The address that it listens on.
    pub address: SocketAddr,
    /// What to open in a browser.
    pub url: String,
}

/// Serves the page until `stop` is requested; `ready` is told where.
///
/// # Errors
/// Where it would be reached by whom it must not be, or cannot listen, or nobody could sign in.
pub async fn serve(
    config: Config,
    db: Database,
    beyond_loopback: bool,
    stop: &Stop,
    ready: impl FnOnce(&Served),
) -> Result<(), ServeError> {
    let wanted = config.web.listen;
    may_listen(&config, wanted, beyond_loopback)?;
    let failed = |source| ServeError::Listen { address: wanted, source };
    let listener = TcpListener::bind(wanted).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let (sender, errands) = unbounded_channel();
    let sender = config.web.carry_out.then_some(sender);
    let site = Rc::new(Site::open(config.clone(), db.clone(), address, sender).await?);
    let url = config.web.origin.clone().unwrap_or_else(|| format!("http://{address}"));
    ready(&Served { address, url });
    let token = stop.token();
    let both = async {
        tokio::join!(
            server::serve(&site, listener, &token),
            carrier::carry(errands, &config, &db, &site.waits, stop),
        );
    };
    Box::pin(LocalSet::new().run_until(both)).await;
    Ok(())
}

/// Other machines reach it only where that is said, and only by TLS of a proxy.
fn may_listen(
    config: &Config,
    address: SocketAddr,
    beyond_loopback: bool,
) -> Result<(), ServeError> {
    if address.ip().is_loopback() {
        return Ok(());
    }
    if !beyond_loopback {
        return Err(ServeError::Beyond { address });
    }
    let is_tls = config.web.origin.as_deref().is_some_and(|o| o.starts_with("https://"));
    if is_tls { Ok(()) } else { Err(ServeError::Plain { address }) }
}
