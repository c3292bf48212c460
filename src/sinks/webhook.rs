//! HTTP by the scheme of Standard Webhooks: one POST an event, with its id, the time of sending and
//! a signature over both and the body. No redirect is followed, and no answer is read.
//!
//! 2xx: taken. 408, 425 and 5xx: failed, another time. 401, 403, 404, 410, 429, 503 and a redirect
//! are the receiver's whole answer: it is left alone. Any other: refused, this event for good.

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use hmac::{Hmac, KeyInit, Mac};
use reqwest::{Client, Response, Url};
use sha2::Sha256;

use crate::exit::Exit;
use crate::secret::{EnvLookup, KeySource};
use crate::sinks::settings::{HTTP, HttpPlace, is_loopback};
use crate::sinks::wire::cause;
use crate::sinks::{Answer, Down, Event, Sent, Streak, Until};

/// What a key begins with.
const KEY_PREFIX: &str = "whsec_";

/// The longest that a `Retry-After` is obeyed.
const PAUSE_MAX: Duration = Duration::from_secs(3_600);

/// A receiver.
pub struct Webhook {
    client: Client,
    url: Url,
    /// The key, and the one before it while both are valid.
    keys: Vec<Vec<u8>>,
    concurrency: usize,
}

impl Webhook {
    /// Reads its address and keys; sends nothing.
    ///
    /// # Errors
    /// Where one of them cannot be used.
    pub async fn open(to: &HttpPlace, most: Duration, env: &EnvLookup) -> Result<Self, Down> {
        let url = to.place.resolve(env, &HTTP).await?;
        let mut keys = vec![key(&to.key, env).await?];
        if let Some(old) = &to.old_key {
            keys.push(key(old, env).await?);
        }
        let client = client(to, &url, most)?;
        Ok(Self { client, url, keys, concurrency: to.concurrency })
    }

    /// Sends events, several at a time.
    pub async fn send(&self, events: &[Event], until: &Until) -> Sent {
        let mut sent = Sent::nothing(events.len());
        let mut streak = Streak::default();
        let mut waiting = events.iter().enumerate();
        let mut flying = FuturesUnordered::new();
        loop {
            while flying.len() < self.concurrency && sent.down.is_none() && !until.is_over() {
                let Some((index, event)) = waiting.next() else { break };
                flying.push(async move { (index, self.post(event).await) });
            }
            // Those on their way are waited for, whatever happened meanwhile.
            let Some((index, ended)) = flying.next().await else { return sent };
            match ended {
                Ok(answer) => {
                    if let Some(down) = streak.note(&answer) {
                        sent.down = sent.down.or(Some(down));
                    }
                    sent.note(index, answer);
                }
                Err(down) => sent.down = Some(down),
            }
        }
    }

    async fn post(&self, event: &Event) -> Result<Answer, Down> {
        let at = crate::clock::now().timestamp();
        let body = &event.payload;
        let signatures: Vec<String> =
            self.keys.iter().map(|key| signature(key, &event.id, at, body)).collect();
        let answer = self
            .client
            .post(self.url.clone())
            .header("content-type", "application/json")
            .header("webhook-id", &event.id)
            .header("webhook-timestamp", at.to_string())
            .header("webhook-signature", signatures.join(" "))
            .body(body.clone())
            .send()
            .await;
        match answer {
            Ok(answer) => said(&answer),
            Err(error) if error.is_connect() => Err(unreachable(&error)),
            Err(error) if error.is_timeout() => Ok(Answer::Failed("no answer in time".to_owned())),
            Err(_broken) => Ok(Answer::Failed("the connection broke".to_owned())),
        }
    }
}

/// What an answer says of the event, or of the receiver.
fn said(answer: &Response) -> Result<Answer, Down> {
    let status = answer.status().as_u16();
    let text = format!("answered {status}");
    match status {
        200..=299 => Ok(Answer::Taken),
        300..=399 => Err(Down::config(format!("{text}; redirects are not followed"))),
        401 | 403 => Err(Down::auth(text)),
        404 | 405 | 410 => Err(Down::config(text)),
        429 | 503 => Err(Down { pause: retry_after(answer), ..Down::partial(text) }),
        408 | 425 | 500..=599 => Ok(Answer::Failed(text)),
        _other => Ok(Answer::Refused(text)),
    }
}

fn retry_after(answer: &Response) -> Option<Duration> {
    let text = answer.headers().get("retry-after")?.to_str().ok()?;
    let seconds: u64 = text.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(PAUSE_MAX))
}

fn unreachable(error: &reqwest::Error) -> Down {
    // A certificate that does not hold stands deep below, and so does why nobody is there. What
    // stands above quotes the address.
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    let (mut is_tls, mut why) = (false, None);
    while let Some(below) = next {
        is_tls |= below.is::<rustls::Error>();
        if let Some(io) = below.downcast_ref::<std::io::Error>() {
            is_tls |= io.get_ref().is_some_and(|inner| inner.is::<rustls::Error>());
            why = Some(cause(io));
        }
        next = below.source();
    }
    match why {
        _untrusted if is_tls => Down::of(Exit::Trust, "its certificate is not trusted"),
        _late if error.is_timeout() => Down::partial("cannot be reached in time"),
        Some(why) => Down::partial(format!("cannot be reached: {why}")),
        None => Down::partial("cannot be reached"),
    }
}

/// A key of Standard Webhooks: base64 behind `whsec_`, of 24 to 64 bytes.
async fn key(source: &KeySource, env: &EnvLookup) -> Result<Vec<u8>, Down> {
    let secret = source.read(env).await?;
    let text = secret.expose();
    let bytes = BASE64_STANDARD.decode(text.strip_prefix(KEY_PREFIX).unwrap_or(text));
    match bytes {
        Ok(bytes) if (24..=64).contains(&bytes.len()) => Ok(bytes),
        _unusable => {
            Err(Down::config("its signing key is no `whsec_` and base64 of 24 to 64 bytes"))
        }
    }
}

/// `v1,BASE64`: HMAC-SHA256 over `ID.SECONDS.BODY`.
fn signature(key: &[u8], id: &str, at: i64, body: &str) -> String {
    // HMAC takes a key of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return String::new() };
    mac.update(format!("{id}.{at}.{body}").as_bytes());
    format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes()))
}

fn client(to: &HttpPlace, url: &Url, most: Duration) -> Result<Client, Down> {
    // Once for the process; a second call changes nothing and says so, which is fine.
    let _already = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .user_agent(concat!("tieout/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .no_proxy()
        .connect_timeout(most)
        .timeout(most)
        .https_only(url.scheme() == "https");
    if let Some(proxy) = &to.proxy {
        let proxy = reqwest::Proxy::all(proxy);
        builder = builder.proxy(proxy.map_err(|_bad| Down::config("its proxy is no address"))?);
    }
    if let Some(path) = &to.place.ca_file {
        let unreadable = |why: String| Down::config(format!("ca_file {}: {why}", path.display()));
        let pem = std::fs::read(path).map_err(|error| unreadable(error.to_string()))?;
        let certificates = reqwest::Certificate::from_pem_bundle(&pem);
        let certificates = certificates.map_err(|_bad| unreadable("no certificate".to_owned()))?;
        builder = builder.tls_certs_only(certificates);
    } else if url.scheme() == "http" && is_loopback(url) {
        // No TLS will be spoken, and a bare machine has no certificates to load.
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|_error| Down::config("no HTTP client could be made"))
}

/// Asks for nothing but the head of its address: any answer shows that it is there.
///
/// # Errors
/// Where there is none, or a setting cannot be used.
pub async fn probe(to: &HttpPlace, most: Duration, env: &EnvLookup) -> Result<String, Down> {
    let webhook = Webhook::open(to, most, env).await?;
    match webhook.client.head(webhook.url.clone()).send().await {
        Ok(answer) => Ok(format!("answers {} to HEAD", answer.status().as_u16())),
        Err(error) if error.is_timeout() => Err(Down::partial("no answer in time")),
        Err(error) => Err(unreachable(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_as_the_reference_has_it() {
        // The example of the Standard Webhooks libraries.
        let key = BASE64_STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let body = "{\"test\": 2432232314}";
        let signed = signature(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}
