//! What a browser sends and keeps, without one: a cookie, the secret of a form, an origin.

use std::io::{BufRead, BufReader};
use std::process::Child;

use reqwest::header::{HeaderMap, LOCATION, SET_COOKIE};
use reqwest::redirect::Policy;
use serde_json::Value;

/// The built program, serving the page; it ends with this value.
pub struct Site {
    child: Child,
    /// What browsers see: `http://127.0.0.1:PORT`, or the configured origin.
    pub url: String,
    /// Where it listens.
    pub address: String,
}

impl Site {
    /// Waits until a `tieout serve --json` says where it is.
    pub fn of(mut child: Child) -> Self {
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        if line.is_empty() {
            let output = child.wait_with_output().unwrap();
            panic!("nothing is served: {}", String::from_utf8_lossy(&output.stderr));
        }
        crate::support::events::check(&line);
        let event: Value = serde_json::from_str(&line).unwrap();
        let word = |name: &str| event[name].as_str().unwrap().to_owned();
        Self { child, url: word("url"), address: word("address") }
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end.
    pub fn ended(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: String,
}

impl Answer {
    /// Where it leads on to.
    pub fn location(&self) -> &str {
        self.headers.get(LOCATION).map_or("", |value| value.to_str().unwrap())
    }

    #[track_caller]
    pub fn ended(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.body);
        self
    }

    /// The secret of this page's forms.
    #[track_caller]
    pub fn csrf(&self) -> String {
        field(&self.body, "csrf").expect("a form with its secret")
    }

    /// What the form of an action keeps of the case.
    #[track_caller]
    pub fn seen(&self, act: &str) -> String {
        let form = format!("name=\"act\" value=\"{act}\"");
        let (_, form) = self.body.split_once(&form).unwrap_or_else(|| panic!("no form to {act}"));
        field(form, "seen").expect("a form that keeps what was seen")
    }
}

fn field(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("name=\"{name}\" value=\""))?;
    Some(rest.split('"').next().unwrap().to_owned())
}

/// Somebody's browser.
pub struct Browser {
    client: reqwest::Client,
    origin: String,
    url: String,
    cookie: Option<String>,
}

impl Browser {
    pub fn new(site: &Site) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().redirect(Policy::none()).no_proxy();
        let (origin, url) = (site.url.clone(), format!("http://{}", site.address));
        Self { client: client.build().unwrap(), origin, url, cookie: None }
    }

    /// Somebody who is signed in.
    pub async fn of(site: &Site, name: &str, secret: &str) -> Self {
        let mut browser = Self::new(site);
        let answer = browser.sign_in(name, secret).await.ended(303);
        assert_eq!(answer.location(), "/cases");
        browser
    }

    pub async fn sign_in(&mut self, name: &str, secret: &str) -> Answer {
        let answer = self.post("/login", &[("name", name), ("secret", secret)]).await;
        if let Some(cookie) = answer.headers.get(SET_COOKIE) {
            let cookie = cookie.to_str().unwrap();
            self.cookie = Some(cookie.split(';').next().unwrap().to_owned());
        }
        answer
    }

    pub fn cookie(&self) -> &str {
        self.cookie.as_deref().unwrap_or_default()
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.sent(self.client.get(format!("{}{path}", self.url))).await
    }

    /// As a page of the site sends it.
    pub async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        self.post_from(Some(&self.origin), path, fields).await
    }

    /// As a page of another site sends it.
    pub async fn post_from(
        &self,
        origin: Option<&str>,
        path: &str,
        fields: &[(&str, &str)],
    ) -> Answer {
        let mut request = self.client.post(format!("{}{path}", self.url)).form(fields);
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        self.sent(request).await
    }

    /// A request with one header more.
    pub async fn get_with(&self, path: &str, name: &'static str, value: &str) -> Answer {
        self.sent(self.client.get(format!("{}{path}", self.url)).header(name, value)).await
    }

    /// Opens a case, and sends the form of an action with more fields.
    pub async fn act(&self, case: i64, act: &str, fields: &[(&str, &str)]) -> Answer {
        let shown = self.get(&format!("/cases/C-{case}")).await.ended(200);
        let seen = shown.seen(act);
        self.act_seen(&shown.csrf(), &seen, act, fields).await
    }

    /// Sends an action with what was seen before.
    pub async fn act_seen(
        &self,
        csrf: &str,
        seen: &str,
        act: &str,
        fields: &[(&str, &str)],
    ) -> Answer {
        let own = [("csrf", csrf), ("act", act), ("seen", seen)];
        self.post("/cases/act", &[&own[..], fields].concat()).await
    }

    async fn sent(&self, request: reqwest::RequestBuilder) -> Answer {
        let request = match &self.cookie {
            Some(cookie) => request.header("cookie", cookie),
            None => request,
        };
        let answer = request.send().await.unwrap();
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        Answer { status, headers, body: answer.text().await.unwrap() }
    }
}
