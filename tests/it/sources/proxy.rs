//! A line that is bad on purpose, between a client and a server.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// What the line does with what the server says.
#[derive(Debug, Clone, Copy)]
pub enum Fault {
    /// It is cut after so many bytes of the server's.
    CutAfter(u64),
    /// After so many bytes nothing passes any more, and the line stays open.
    FreezeAfter(u64),
}

/// A proxy that runs until the test ends.
pub struct Proxy {
    pub port: u16,
    /// Connections that were made.
    pub connections: Arc<AtomicU64>,
    /// When this is set, nothing passes any more, and the line stays open.
    pub frozen: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
}

impl Proxy {
    pub fn to(port: u16, fault: Fault) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicU64::new(0));
        let over = Arc::new(AtomicBool::new(false));
        let frozen = Arc::new(AtomicBool::new(false));
        let ends = Ends { over: Arc::clone(&over), frozen: Arc::clone(&frozen) };
        let counted = Arc::clone(&connections);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                counted.fetch_add(1, Ordering::SeqCst);
                let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
                let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || pass_all(from, to));
                let ends = ends.clone();
                std::thread::spawn(move || pass(server, client, fault, &ends));
            }
        });
        Self { port: own, connections, frozen, over }
    }
}

#[derive(Clone)]
struct Ends {
    over: Arc<AtomicBool>,
    frozen: Arc<AtomicBool>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
    }
}

fn pass_all(mut from: TcpStream, mut to: TcpStream) {
    // Either end may go first.
    let _ended = std::io::copy(&mut from, &mut to);
    let _gone = to.shutdown(Shutdown::Both);
}

fn pass(mut server: TcpStream, mut client: TcpStream, fault: Fault, ends: &Ends) {
    let (Fault::CutAfter(limit) | Fault::FreezeAfter(limit)) = fault;
    let mut left = limit;
    let mut buffer = vec![0_u8; 64 * 1024];
    while left > 0 {
        let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let Ok(read @ 1..) = server.read(&mut buffer[..most]) else { break };
        let frozen = ends.frozen.load(Ordering::SeqCst);
        if frozen || client.write_all(&buffer[..read]).is_err() {
            break;
        }
        left -= read as u64;
    }
    let frozen = ends.frozen.load(Ordering::SeqCst);
    if frozen || (left == 0 && matches!(fault, Fault::FreezeAfter(_))) {
        while !ends.over.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    for end in [server, client] {
        let _gone = end.shutdown(Shutdown::Both);
    }
}
