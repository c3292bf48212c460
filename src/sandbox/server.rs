//! The listening side: a door that opens, refuses or hangs, and a task for each connection.
//!
//! While the door is shut the port stays bound, so that nobody else on the machine gets it. Every
//! task is tracked and ends with the sandbox.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::rt::Executor;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::core::Core;
use super::exchange;
use super::settings::{ApiKey, Door, SandboxError, Settings};
use super::tls;
use super::wire::{Line, Wire};

/// Connections that wait for a seat while the door is open.
const BACKLOG: u32 = 1024;

/// What all tasks share.
#[derive(Debug)]
pub(super) struct Shared {
    core: Mutex<Core>,
    pub(super) tasks: TaskTracker,
    pub(super) stop: CancellationToken,
    pub(super) keys: Vec<ApiKey>,
    pub(super) control: bool,
    tls: Option<Arc<ServerConfig>>,
    seats: Arc<Semaphore>,
    door: watch::Sender<(Door, u64)>,
    cut: Mutex<CancellationToken>,
}

impl Shared {
    pub(super) fn new(settings: Settings) -> Result<Self, SandboxError> {
        let seats = settings.max_connections.clamp(1, Semaphore::MAX_PERMITS);
        Ok(Self {
            core: Mutex::new(Core::new(&settings)),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            tls: settings.tls.as_ref().map(tls::server_config).transpose()?,
            keys: settings.keys,
            control: settings.control,
            seats: Arc::new(Semaphore::new(seats)),
            door: watch::channel((Door::Open, 0)).0,
            cut: Mutex::new(CancellationToken::new()),
        })
    }

    pub(super) fn speaks_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Does something with what the sandbox remembers. A panic elsewhere left it whole enough:
    /// no step leaves it half changed for longer than itself.
    pub(super) fn with<T>(&self, act: impl FnOnce(&mut Core) -> T) -> T {
        act(&mut self.core.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn door(&self) -> Door {
        self.door.borrow().0
    }

    /// Sets the door, and opens it again after a while if asked. Shutting it cuts every
    /// connection.
    pub(super) fn set_door(self: &Arc<Self>, door: Door, for_time: Option<Duration>) {
        let mut turn = 0;
        self.door.send_modify(|state| {
            *state = (door, state.1 + 1);
            turn = state.1;
        });
        if door == Door::Open {
            return;
        }
        let old = {
            let mut cut = self.cut.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *cut, CancellationToken::new())
        };
        old.cancel();
        let Some(time) = for_time else { return };
        let shared = Arc::clone(self);
        self.tasks.spawn(async move {
            tokio::select! {
                () = shared.stop.cancelled() => {}
                () = tokio::time::sleep(time) => {
                    // Whoever set the door since then knows better.
                    shared.door.send_if_modified(|state| {
                        let mine = state.1 == turn;
                        if mine {
                            *state = (Door::Open, turn + 1);
                        }
                        mine
                    });
                }
            }
        });
    }

    fn current_cut(&self) -> CancellationToken {
        self.cut.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Listens on an address.
pub(super) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    held(address)?.listen(BACKLOG)
}

/// Takes connections until the sandbox stops.
pub(super) async fn serve(shared: Arc<Shared>, listener: TcpListener, address: SocketAddr) {
    let mut door = shared.door.subscribe();
    let mut listener = Some(listener);
    while !shared.stop.is_cancelled() {
        let state = door.borrow_and_update().0;
        match (state, listener.take()) {
            (Door::Open, Some(open)) => {
                tokio::select! {
                    biased;
                    () = shared.stop.cancelled() => {}
                    _ = door.changed() => {}
                    accepted = accept(&shared, &open) => {
                        if let Ok((stream, permit)) = accepted {
                            let task = Arc::clone(&shared);
                            shared.tasks.spawn(async move {
                                connection(task, stream).await;
                                drop(permit);
                            });
                        }
                    }
                }
                listener = Some(open);
            }
            (Door::Open, None) => match listen(address) {
                Ok(open) => listener = Some(open),
                // The system may need a moment to let go of the port.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            },
            (Door::Refusing, was) => {
                drop(was);
                let socket = held(address);
                until_changed(&shared, &mut door).await;
                listener = socket.ok().and_then(|socket| socket.listen(BACKLOG).ok());
            }
            (Door::Hanging, was) => {
                drop(was);
                let stuffed = stuff(address).await;
                until_changed(&shared, &mut door).await;
                drop(stuffed);
            }
        }
    }
}

async fn until_changed(shared: &Shared, door: &mut watch::Receiver<(Door, u64)>) {
    tokio::select! {
        () = shared.stop.cancelled() => {}
        _ = door.changed() => {}
    }
}

async fn accept(
    shared: &Shared,
    listener: &TcpListener,
) -> io::Result<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let seats = Arc::clone(&shared.seats);
    let permit = seats.acquire_owned().await.map_err(io::Error::other)?;
    match listener.accept().await {
        Ok((stream, _)) => Ok((stream, permit)),
        Err(error) => {
            // Out of file handles, say: a pause keeps the loop from spinning.
            tokio::time::sleep(Duration::from_millis(5)).await;
            Err(error)
        }
    }
}

async fn connection(shared: Arc<Shared>, stream: TcpStream) {
    let cut = shared.current_cut();
    let stop = shared.stop.clone();
    let wire = Arc::new(Wire::default());
    let _ = stream.set_nodelay(true);
    let line = Line::new(stream, Arc::clone(&wire));
    // The stream is gone before a branch's handler runs, so it is told in the branch itself.
    let cut_off = async {
        cut.cancelled().await;
        wire.reset();
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = cut_off => {}
        () = talk(shared, line, Arc::clone(&wire)) => {}
    }
}

/// Answers what comes over one line. A client that hangs up, or that does not like the
/// certificate, is none of the sandbox's troubles.
async fn talk(shared: Arc<Shared>, line: Line, wire: Arc<Wire>) {
    let Some(config) = shared.tls.clone() else {
        return talk_http1(shared, TokioIo::new(line), wire).await;
    };
    let Ok(secured) = TlsAcceptor::from(config).accept(line).await else { return };
    if secured.get_ref().1.alpn_protocol() == Some(b"h2") {
        talk_http2(shared, TokioIo::new(secured), wire).await;
    } else {
        talk_http1(shared, TokioIo::new(secured), wire).await;
    }
}

async fn talk_http1<I>(shared: Arc<Shared>, io: TokioIo<I>, wire: Arc<Wire>)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let of_service = Arc::clone(&wire);
    let service = service_fn(move |request| {
        exchange::respond(Arc::clone(&shared), request, Arc::clone(&of_service))
    });
    let served = http1::Builder::new()
        .auto_date_header(false)
        .header_read_timeout(None)
        .serve_connection(io, service);
    tokio::select! {
        _ = served => {}
        () = wire.go_away.notified() => {}
    }
}

async fn talk_http2<I>(shared: Arc<Shared>, io: TokioIo<I>, wire: Arc<Wire>)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let tracked = Tracked { tasks: shared.tasks.clone(), stop: shared.stop.clone() };
    let of_service = Arc::clone(&wire);
    let service = service_fn(move |request| {
        exchange::respond(Arc::clone(&shared), request, Arc::clone(&of_service))
    });
    let mut builder = http2::Builder::new(tracked);
    builder.auto_date_header(false);
    let mut served = pin!(builder.serve_connection(io, service));
    tokio::select! {
        _ = served.as_mut() => return,
        () = wire.go_away.notified() => {}
    }
    served.as_mut().graceful_shutdown();
    // Streams that are never answered would keep it for ever: the frame leaves, then the line.
    let _ = tokio::time::timeout(Duration::from_millis(50), served).await;
}

/// Lets HTTP/2 have its tasks, and lets them end with the sandbox.
#[derive(Debug, Clone)]
struct Tracked {
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl<F> Executor<F> for Tracked
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, task: F) {
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = task => {}
            }
        });
    }
}

/// The address, bound but not listened on: connections are refused, and nobody else gets it.
fn held(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// A listener that nobody accepts from, with its backlog filled: the next connection hangs.
async fn stuff(address: SocketAddr) -> io::Result<(TcpListener, Vec<TcpStream>)> {
    let listener = held(address)?.listen(1)?;
    let mut fillers = Vec::new();
    for _ in 0..64 {
        let connecting = TcpStream::connect(address);
        match tokio::time::timeout(Duration::from_millis(100), connecting).await {
            Ok(Ok(stream)) => fillers.push(stream),
            Ok(Err(_)) | Err(_) => break,
        }
    }
    Ok((listener, fillers))
}
