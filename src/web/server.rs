//! The listening side: so many connections, each with its deadlines, and a graceful end.
//!
//! What is done for a request is a task of its own: a browser that hangs up never cuts a step of
//! the database in two. A slow client holds a seat and nothing else.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use crate::web::routes;
use crate::web::site::Site;

/// Connections at a time.
const SEATS: usize = 128;

/// How long a client may take to say what it wants, and how long it may then say nothing more.
const HEADERS: Duration = Duration::from_secs(15);

/// Bytes of a request's head.
const HEAD_MAX: usize = 32 * 1024;

/// How long a connection may last: a large report on a slow line.
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// How often sessions are looked at that are over.
const SWEEP: Duration = Duration::from_secs(60);

/// After an error of the system's: out of file handles, say.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves until it is told to stop, then ends what it is doing.
pub async fn serve(site: &Rc<Site>, listener: TcpListener, stop: &CancellationToken) {
    let seats = Arc::new(Semaphore::new(SEATS));
    let mut sweep = tokio::time::interval(SWEEP);
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            _tick = sweep.tick() => {
                let ended = site.sessions.borrow_mut().sweep(Instant::now());
                site.end(ended);
            }
            accepted = listener.accept() => match accepted {
                Ok((stream, from)) => take(site, stream, from.ip(), &seats, stop),
                Err(_system) => tokio::time::sleep(PAUSE).await,
            },
        }
    }
    drop(listener);
    let ended = site.sessions.borrow_mut().end();
    site.tasks.close();
    site.tasks.wait().await;
    // No page is being made any more: nobody needs these connections.
    for person in ended.into_iter().filter(|person| person.is_own) {
        person.db.close().await;
    }
}

/// Begins a connection, where there is a seat; else it is closed at once.
fn take(
    site: &Rc<Site>,
    stream: TcpStream,
    from: IpAddr,
    seats: &Arc<Semaphore>,
    stop: &CancellationToken,
) {
    let Ok(seat) = Arc::clone(seats).try_acquire_owned() else { return };
    let (site, stop) = (Rc::clone(site), stop.clone());
    let tasks = site.tasks.clone();
    tasks.spawn_local(connection(site, stream, from, seat, stop));
}

async fn connection(
    site: Rc<Site>,
    stream: TcpStream,
    from: IpAddr,
    seat: OwnedSemaphorePermit,
    stop: CancellationToken,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let site = Rc::clone(&site);
        async move { Ok::<Response, Infallible>(answer(site, request.map(Body::new), from).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADERS).max_buf_size(HEAD_MAX);
    let mut served = pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        // A client that hangs up, or says nothing, is none of our troubles.
        _ended = served.as_mut() => {}
        () = tokio::time::sleep(LONGEST) => {}
        () = stop.cancelled() => {
            served.as_mut().graceful_shutdown();
            let _ended = served.await;
        }
    }
    drop(seat);
}

async fn answer(site: Rc<Site>, request: Request<Body>, from: IpAddr) -> Response {
    let (sender, receiver) = oneshot::channel();
    let tasks = site.tasks.clone();
    tasks.spawn_local(async move {
        let answer = routes::respond(&site, request, from).await;
        // A browser that hung up misses its answer; what it asked for has happened.
        let _ = sender.send(answer);
    });
    match receiver.await {
        Ok(answer) => answer,
        Err(_panicked) => routes::broken(),
    }
}
