//! Between the program and PostgreSQL: forwards bytes, and cuts the connection once at the COMMIT
//! of a transaction that wrote into the journal, or all of them for good.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// When the connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The server gets the COMMIT and carries it out; its answer is lost.
    AfterCommit,
    /// The server never gets the COMMIT.
    BeforeCommit,
    /// The COMMIT and all that follows, by whatever connection, gets no answer: neither side ends
    /// one.
    Silence,
    /// The same from the first statement of a connection on.
    SilenceAtFirst,
    /// Every connection ends, and no other is taken.
    Gone,
}

impl Cut {
    fn is_silence(self) -> bool {
        matches!(self, Self::Silence | Self::SilenceAtFirst)
    }
}

/// The first bytes of a simple query's COMMIT: its type, its length, its text.
const COMMIT: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";

/// Starts one before the server of this address; returns the address through it, and whether it
/// has cut a connection.
pub async fn before(url: &str, cut: Cut) -> (String, Arc<AtomicBool>) {
    let (head, rest) = url.split_once('@').unwrap();
    let (server, name) = rest.split_once('/').unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let through = format!("{head}@{}/{name}", listener.local_addr().unwrap());
    let has_cut = Arc::new(AtomicBool::new(false));
    let (server, cutting) = (server.to_owned(), Arc::clone(&has_cut));
    tokio::spawn(async move {
        let over = CancellationToken::new();
        let mut held = Vec::new();
        loop {
            let (client, _) = tokio::select! {
                biased;
                () = over.cancelled(), if cut == Cut::Gone => return,
                taken = listener.accept() => taken.unwrap(),
            };
            if over.is_cancelled() {
                held.push(client);
                continue;
            }
            let server = TcpStream::connect(&server).await.unwrap();
            let line = Line { client, server, cut, has_cut: Arc::clone(&cutting) };
            tokio::spawn(line.forward(over.clone()));
        }
    });
    (through, has_cut)
}

/// One connection.
struct Line {
    client: TcpStream,
    server: TcpStream,
    cut: Cut,
    has_cut: Arc<AtomicBool>,
}

impl Line {
    async fn forward(mut self, over: CancellationToken) {
        tokio::select! {
            biased;
            () = over.cancelled() => {}
            () = self.talk(&over) => {}
        }
        if over.is_cancelled() && self.cut.is_silence() {
            // The server lets go of the rows at once, and not when its own limit is over.
            drop(self.server);
            std::future::pending::<()>().await;
            drop(self.client);
        }
    }

    async fn talk(&mut self, over: &CancellationToken) {
        let Self { client, server, cut, has_cut } = self;
        let mut journals = false;
        let (mut asked, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
        loop {
            tokio::select! {
                count = client.read(&mut asked) => {
                    let Ok(count @ 1..) = count else { return };
                    let bytes = &asked[..count];
                    if *cut == Cut::SilenceAtFirst && bytes[0] == b'Q' {
                        has_cut.store(true, Ordering::SeqCst);
                        return over.cancel();
                    }
                    journals |= contains(bytes, b"copy tieout_journal");
                    let is_commit = contains(bytes, COMMIT);
                    if is_commit && journals && !has_cut.swap(true, Ordering::SeqCst) {
                        match cut {
                            Cut::BeforeCommit => {}
                            Cut::AfterCommit => {
                                server.write_all(bytes).await.unwrap();
                                // It answers once it has committed.
                                assert!(server.read(&mut answered).await.unwrap() > 0);
                            }
                            Cut::Silence | Cut::SilenceAtFirst | Cut::Gone => {
                                return over.cancel();
                            }
                        }
                        client.set_zero_linger().unwrap();
                        return;
                    }
                    // Another transaction may follow on this connection.
                    journals &= !is_commit;
                    if server.write_all(bytes).await.is_err() { return }
                }
                count = server.read(&mut answered) => {
                    let Ok(count @ 1..) = count else { return };
                    if client.write_all(&answered[..count]).await.is_err() { return }
                }
            }
        }
    }
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|some| some.eq_ignore_ascii_case(wanted))
}
