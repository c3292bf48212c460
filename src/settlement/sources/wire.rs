//! The line to an SSH server, as far as its greeting and its host key: every step within a limit
//! of time, and none of it trusted yet.

use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc;
use std::time::Duration;

use ssh2::{ErrorCode, MethodType, Session};

use crate::settlement::sources::offer::misfit;
use crate::settlement::sources::settings::Server;
use crate::settlement::sources::{Next, SourceError};

/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 4;

/// What saying goodbye may take; nobody waits for the answer.
const GOODBYE: Duration = Duration::from_millis(500);

/// Host key algorithms, a family a line: a server that has a key of one may have one of another.
pub(super) const FAMILIES: [&[&str]; 3] = [
    &["ssh-ed25519"],
    &["ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521"],
    &["rsa-sha2-512", "rsa-sha2-256"],
];

/// The algorithms that go by a key's type.
pub(super) fn algorithms_of(key_type: &str) -> &[&'static str] {
    let family = FAMILIES.iter().find(|family| family.contains(&key_type));
    match (key_type, family) {
        ("ssh-rsa", _) => FAMILIES[2],
        (_, Some(family)) => {
            let at = family.iter().position(|name| *name == key_type).unwrap_or(0);
            family.get(at..=at).unwrap_or_default()
        }
        (_, None) => &[],
    }
}

/// A connection whose keys are exchanged.
pub(super) struct Line {
    pub(super) session: Session,
    /// The server's public key, in its wire form.
    pub(super) key: Vec<u8>,
    socket: TcpStream,
}

impl Line {
    /// Connects; the server chooses a host key of these algorithms, in this order.
    pub(super) fn open(server: &Server, algorithms: &[&str]) -> Result<Self, SourceError> {
        let address = server.address();
        let stream = connect(server)?;
        let doing = || format!("greeting {address}");
        let unreachable = |problem: String| SourceError::Unreachable { doing: doing(), problem };
        let socket = stream.try_clone().map_err(|error| unreachable(error.to_string()))?;
        let mut session = Session::new().map_err(|error| told(doing(), &error))?;
        session.set_timeout(millis(server.timeout));
        let wanted = algorithms.join(",");
        session.method_pref(MethodType::HostKey, &wanted).map_err(|e| told(doing(), &e))?;
        session.set_tcp_stream(stream);
        session.handshake().map_err(|error| match error.code() {
            // The code is the same where the line was cut in between.
            ErrorCode::Session(NO_AGREEMENT) => match disagreement(server, &session, algorithms) {
                Some(problem) => SourceError::Trust { problem, next: Next::Wait },
                None => told(doing(), &error),
            },
            _other => told(doing(), &error),
        })?;
        let key = session.host_key().map(|(key, _kind)| key.to_vec());
        let key = key.ok_or_else(|| unreachable("it showed no host key".to_owned()))?;
        Ok(Self { session, key, socket })
    }

    /// Ends the connection at once: whoever frees the session or a handle after this does not
    /// wait for a peer that may be dead.
    pub(super) fn cut(&self) {
        self.session.set_timeout(millis(GOODBYE));
        // It may be gone already.
        let _gone = self.socket.shutdown(Shutdown::Both);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.cut();
    }
}

/// libssh2's code for "no common algorithm", among others.
const NO_AGREEMENT: i32 = -5;

/// What the server offers that tieout does not know any more, and the other way round.
fn disagreement(server: &Server, session: &Session, wanted: &[&str]) -> Option<String> {
    let stream = connect(server).ok()?;
    stream.set_read_timeout(Some(server.timeout)).ok()?;
    stream.set_write_timeout(Some(server.timeout)).ok()?;
    let misfit = misfit(stream, session, wanted)?;
    let address = server.address();
    Some(format!("{address} and tieout have no safe algorithm in common; it has, for the {misfit}"))
}

fn connect(server: &Server) -> Result<TcpStream, SourceError> {
    let address = server.address();
    let failed = |problem: String| SourceError::Unreachable {
        doing: format!("connecting to {address}"),
        problem,
    };
    let mut last = "its name has no address".to_owned();
    for place in resolve(server).map_err(failed)?.iter().take(ADDRESSES_MAX) {
        match TcpStream::connect_timeout(place, server.connect_timeout) {
            Ok(stream) => {
                // Requests are small; each would wait for the answer to the one before it.
                let delayed = stream.set_nodelay(true);
                return delayed.map(|()| stream).map_err(|error| failed(error.to_string()));
            }
            Err(error) => last = error.to_string(),
        }
    }
    Err(failed(last))
}

/// The system's resolver knows no limit of time of ours; it is left alone after one.
fn resolve(server: &Server) -> Result<Vec<SocketAddr>, String> {
    let (tell, told) = mpsc::channel();
    let place = (server.host.clone(), server.port);
    let asked = std::thread::Builder::new().name("resolve".to_owned()).spawn(move || {
        let found = (place.0.as_str(), place.1).to_socket_addrs();
        // Nobody listens any more once it took too long.
        let _late = tell.send(found.map(Iterator::collect::<Vec<_>>));
    });
    asked.map_err(|error| format!("no thread to look its name up: {error}"))?;
    match told.recv_timeout(server.connect_timeout) {
        Ok(found) => found.map_err(|error| format!("its name cannot be looked up: {error}")),
        Err(_late) => Err("its name could not be looked up in time".to_owned()),
    }
}

pub(super) fn millis(span: Duration) -> u32 {
    // Zero would mean: wait for ever.
    u32::try_from(span.as_millis()).unwrap_or(u32::MAX).max(1)
}

/// What libssh2 says, as what happened to the source.
pub(super) fn told(doing: String, error: &ssh2::Error) -> SourceError {
    let problem = match error.code() {
        ErrorCode::Session(TIMED_OUT) => "it did not answer in time".to_owned(),
        // Also of a port where something else answers than SSH.
        ErrorCode::Session(_) if error.message().contains("banner") => {
            format!("the line was cut: {}; is that the port of its SSH?", error.message())
        }
        ErrorCode::Session(_) => format!("the line was cut: {}", error.message()),
        ErrorCode::SFTP(NO_SUCH_FILE) => "there is no such file or folder".to_owned(),
        ErrorCode::SFTP(DENIED) => "permission denied".to_owned(),
        ErrorCode::SFTP(UNSUPPORTED) => "the server does not offer that".to_owned(),
        ErrorCode::SFTP(_) => format!("the server says: {}", error.message()),
    };
    match error.code() {
        ErrorCode::Session(_) | ErrorCode::SFTP(NO_CONNECTION | CONNECTION_LOST) => {
            SourceError::Unreachable { doing, problem }
        }
        ErrorCode::SFTP(_) => SourceError::Gone { doing, problem },
    }
}

/// libssh2's code for the end of its patience.
pub(super) const TIMED_OUT: i32 = -9;

/// Codes of draft-ietf-secsh-filexfer-02, section 7.
pub(super) const NO_SUCH_FILE: i32 = 2;
const DENIED: i32 = 3;
const NO_CONNECTION: i32 = 6;
const CONNECTION_LOST: i32 = 7;
const UNSUPPORTED: i32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_type_asks_for_its_own_algorithms() {
        assert_eq!(algorithms_of("ssh-ed25519"), ["ssh-ed25519"]);
        assert_eq!(algorithms_of("ssh-rsa"), ["rsa-sha2-512", "rsa-sha2-256"]);
        assert_eq!(algorithms_of("ecdsa-sha2-nistp384"), ["ecdsa-sha2-nistp384"]);
        assert_eq!(algorithms_of("ssh-dss"), [""; 0]);
    }

    #[test]
    fn no_span_becomes_a_wait_without_end() {
        assert_eq!(millis(Duration::ZERO), 1);
        assert_eq!(millis(Duration::from_secs(30)), 30_000);
        assert_eq!(millis(Duration::MAX), u32::MAX);
    }
}
