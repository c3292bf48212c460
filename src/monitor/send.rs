//! One small POST with a deadline: https, no redirect, no proxy that nobody configured.
//!
//! Errors never quote an address or a body: either may be a secret.

use std::time::Duration;

use reqwest::{Client, Url};

use crate::monitor::settings::{Place, address, written};
use crate::secret::EnvLookup;

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(3);

/// The pause before a failed ping is tried again.
const PAUSE: Duration = Duration::from_millis(300);

/// What senders share.
#[derive(Clone)]
pub struct Post {
    /// Looks up the variables that settings name.
    pub env: EnvLookup,
    /// The schedule, for addresses that name it.
    pub scope: String,
    /// The configured proxy.
    pub proxy: Option<String>,
}

/// One request.
pub struct Letter {
    /// To whom.
    pub url: Url,
    /// Headers besides the usual.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: String,
}

impl Post {
    /// Reads an address.
    pub async fn resolve(&self, place: Option<Place>) -> Result<Url, String> {
        let text = match place {
            None => return Err("its address is not configured".to_owned()),
            Some(Place::Written(text)) => written(&text, &self.scope),
            Some(Place::Named(source)) => {
                let secret = source.read(&self.env).await.map_err(|error| error.to_string())?;
                secret.expose().replace("{scope}", &self.scope)
            }
        };
        address(&text).map_err(str::to_owned)
    }

    /// Sends one letter.
    pub async fn send(&self, letter: &Letter) -> Result<(), String> {
        let client = self.client(&letter.url)?;
        let mut request = client.post(letter.url.clone()).body(letter.body.clone());
        for (name, value) in &letter.headers {
            request = request.header(*name, value);
        }
        let answer = request.send().await.map_err(|error| plain(&error))?;
        match answer.status().as_u16() {
            200..=299 => Ok(()),
            status @ 300..=399 => Err(format!("answered {status}; redirects are not followed")),
            status => Err(format!("answered {status}")),
        }
    }

    /// Sends a letter that does no harm twice, up to three times.
    pub async fn insist(&self, letter: &Letter) -> Result<(), String> {
        for _again in 0..2 {
            if self.send(letter).await.is_ok() {
                return Ok(());
            }
            tokio::time::sleep(PAUSE).await;
        }
        self.send(letter).await
    }

    fn client(&self, url: &Url) -> Result<Client, String> {
        // Once for the process; a second call changes nothing and says so, which is fine.
        let _already = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .user_agent(concat!("tieout/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .no_proxy()
            .connect_timeout(CONNECT)
            .https_only(url.scheme() == "https");
        if let Some(proxy) = &self.proxy {
            builder = builder.proxy(reqwest::Proxy::all(proxy).map_err(|error| plain(&error))?);
        }
        if url.scheme() == "http" {
            // Loopback: no TLS will be spoken, and a bare machine has no certificates to load.
            builder = builder.tls_certs_only([]);
        }
        builder.build().map_err(|_error| "no HTTP client could be made".to_owned())
    }
}

fn plain(error: &reqwest::Error) -> String {
    let what = if error.is_timeout() {
        "no answer in time"
    } else if error.is_connect() {
        "cannot be reached"
    } else {
        "the connection broke"
    };
    what.to_owned()
}
