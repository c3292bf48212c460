//! Ports that no other test has, takes or answers at, though many run at once.

use rand::Rng as _;
use std::net::{SocketAddr, TcpListener};
use tokio::net::TcpSocket;

/// A port at which nobody listens: who connects is refused, for as long as this lives. A port that
/// was let go of is another test's a moment later, and answers.
pub struct Refusing(TcpSocket);

impl Refusing {
    pub fn new() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        Self(socket)
    }

    pub fn port(&self) -> u16 {
        self.0.local_addr().unwrap().port()
    }
}

/// A port for a server that is told its port: free a moment ago, and below the range from which
/// outgoing connections and whoever asks for any port get theirs.
pub fn free() -> u16 {
    loop {
        let port = rand::thread_rng().gen_range(10_000..20_000);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

#[tokio::test]
async fn a_refusing_port_is_nobody_elses() {
    let refusing = Refusing::new();
    let refused = std::net::TcpStream::connect(("127.0.0.1", refusing.port())).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    assert!(TcpListener::bind(("127.0.0.1", refusing.port())).is_err());
}
