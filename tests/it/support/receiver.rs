//! A web server that keeps what it was sent, and answers as it is told to.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, Response};
use tokio::task::JoinHandle;

/// How it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// With this status.
    Status(u16),
    /// With a redirect to `/elsewhere`.
    Redirect,
    /// Never.
    Hang,
}

/// One request.
#[derive(Debug, Clone)]
pub struct Sent {
    /// Path and query.
    pub path: String,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: String,
}

#[derive(Debug)]
struct Kept {
    answer: Answer,
    poison: Vec<String>,
    sent: Vec<Sent>,
    hung_up: usize,
}

/// The server.
pub struct Receiver {
    address: String,
    kept: Arc<Mutex<Kept>>,
    task: JoinHandle<()>,
}

/// Notes that the client went away without an answer.
struct HungUp(Arc<Mutex<Kept>>);

impl Drop for HungUp {
    fn drop(&mut self) {
        self.0.lock().unwrap().hung_up += 1;
    }
}

impl Receiver {
    /// Listens on a port of its own.
    pub async fn start(answer: Answer) -> Self {
        let poison = Vec::new();
        let kept = Arc::new(Mutex::new(Kept { answer, poison, sent: Vec::new(), hung_up: 0 }));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let keep = Arc::clone(&kept);
        let app = axum::Router::new().fallback(move |request| take(Arc::clone(&keep), request));
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, kept, task }
    }

    /// Its address, without a slash at its end.
    pub fn url(&self) -> &str {
        &self.address
    }

    /// From now on it answers so.
    pub fn answer(&self, answer: Answer) {
        self.kept.lock().unwrap().answer = answer;
    }

    /// Whatever else it answers: 500 to a body with one of these texts in it.
    pub fn poison(&self, texts: Vec<String>) {
        self.kept.lock().unwrap().poison = texts;
    }

    /// What was sent below a path, in order.
    pub fn sent(&self, below: &str) -> Vec<Sent> {
        let kept = self.kept.lock().unwrap();
        kept.sent.iter().filter(|sent| sent.path.starts_with(below)).cloned().collect()
    }

    /// The paths of everything that was sent, in order.
    pub fn paths(&self) -> Vec<String> {
        self.sent("").into_iter().map(|sent| sent.path).collect()
    }

    /// How many clients went away without an answer.
    pub fn hung_up(&self) -> usize {
        self.kept.lock().unwrap().hung_up
    }

    /// Until so many requests came below a path.
    pub async fn until(&self, below: &str, count: usize) {
        for _try in 0..600 {
            if self.sent(below).len() >= count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{below}: {:?}", self.paths());
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn take(kept: Arc<Mutex<Kept>>, request: Request<Body>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let path = head.uri.path_and_query().map_or(String::new(), ToString::to_string);
    let body = String::from_utf8(to_bytes(body, 1 << 20).await.unwrap().to_vec()).unwrap();
    let answer = {
        let mut kept = kept.lock().unwrap();
        let is_poison = kept.poison.iter().any(|text| body.contains(text));
        kept.sent.push(Sent { path, headers: head.headers, body });
        if is_poison { Answer::Status(500) } else { kept.answer }
    };
    let answered = |status: u16| Response::builder().status(status);
    match answer {
        Answer::Status(status) => answered(status).body(Body::from("ok")).unwrap(),
        Answer::Redirect => {
            answered(302).header("location", "/elsewhere").body(Body::empty()).unwrap()
        }
        Answer::Hang => {
            let _client = HungUp(kept);
            std::future::pending().await
        }
    }
}
