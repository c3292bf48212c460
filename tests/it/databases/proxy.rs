//! Between the program and PostgreSQL: forwards bytes, and cuts the connection once at the COMMIT
//! of a transaction that wrote into the journal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// When the connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The server gets the COMMIT and carries it out; its answer is lost.
    AfterCommit,
    /// The server never gets the COMMIT.
    BeforeCommit,
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
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(&server).await.unwrap();
            tokio::spawn(forward(client, server, cut, Arc::clone(&cutting)));
        }
    });
    (through, has_cut)
}

async fn forward(mut client: TcpStream, mut server: TcpStream, cut: Cut, has_cut: Arc<AtomicBool>) {
    let mut journals = false;
    let (mut asked, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            count = client.read(&mut asked) => {
                let Ok(count @ 1..) = count else { return };
                let bytes = &asked[..count];
                journals |= contains(bytes, b"copy tieout_journal");
                let is_commit = contains(bytes, COMMIT);
                if is_commit && journals && !has_cut.swap(true, Ordering::SeqCst) {
                    if cut == Cut::AfterCommit {
                        server.write_all(bytes).await.unwrap();
                        // It answers once it has committed.
                        assert!(server.read(&mut answered).await.unwrap() > 0);
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

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|some| some.eq_ignore_ascii_case(wanted))
}
