//! A connection to a server of lines and bytes: TCP, TLS or a Unix socket, every step with a
//! deadline, and no answer longer than it may be.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

use crate::exit::Exit;
use crate::sinks::Down;

/// The longest line of an answer.
const LINE_MAX: u64 = 64 * 1024;

/// The longest body of an answer.
const BODY_MAX: usize = 1024 * 1024;

/// What bytes go over.
trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}

/// An open connection.
pub struct Wire {
    stream: BufReader<Box<dyn Duplex>>,
    /// How long one step may take.
    most: Duration,
}

impl Wire {
    /// Connects: to a Unix socket where the scheme says so, by TLS where `tls` does.
    pub(super) async fn open(
        url: &Url,
        port: u16,
        tls: Option<&Option<PathBuf>>,
        most: Duration,
    ) -> Result<Self, Down> {
        let connecting = connected(url, port, tls);
        let stream = match tokio::time::timeout(most, connecting).await {
            Ok(connected) => connected?,
            Err(_elapsed) => return Err(Down::partial("cannot be reached in time")),
        };
        Ok(Self { stream: BufReader::new(stream), most })
    }

    /// Sends bytes.
    pub(super) async fn send(&mut self, bytes: &[u8]) -> Result<(), Down> {
        let most = self.most;
        let sending = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        within(most, sending).await
    }

    /// The next line, without its end.
    pub(super) async fn line(&mut self) -> Result<String, Down> {
        let most = self.most;
        let reading = async {
            let mut bytes = Vec::new();
            let mut limited = (&mut self.stream).take(LINE_MAX);
            limited.read_until(b'\n', &mut bytes).await?;
            Ok(bytes)
        };
        let bytes = within(most, reading).await?;
        let Some(line) = bytes.strip_suffix(b"\n") else {
            return Err(Down::partial("the connection broke"));
        };
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        Ok(String::from_utf8_lossy(line).into_owned())
    }

    /// So many bytes.
    pub(super) async fn exact(&mut self, count: usize) -> Result<Vec<u8>, Down> {
        if count > BODY_MAX {
            return Err(Down::partial("an answer is longer than any that is expected"));
        }
        let most = self.most;
        let reading = async {
            let mut bytes = vec![0_u8; count];
            self.stream.read_exact(&mut bytes).await?;
            Ok(bytes)
        };
        within(most, reading).await
    }
}

async fn connected(
    url: &Url,
    port: u16,
    tls: Option<&Option<PathBuf>>,
) -> Result<Box<dyn Duplex>, Down> {
    if url.scheme() == "unix" {
        let stream = UnixStream::connect(url.path()).await.map_err(unreachable)?;
        return Ok(Box::new(stream));
    }
    let host = url.host_str().unwrap_or("").trim_matches(['[', ']']);
    let port = url.port().unwrap_or(port);
    let stream = TcpStream::connect((host, port)).await.map_err(unreachable)?;
    // An event is small and its answer is waited for.
    let _slower = stream.set_nodelay(true);
    match tls {
        None => Ok(Box::new(stream)),
        Some(ca_file) => Ok(Box::new(secure(stream, host, ca_file.as_ref()).await?)),
    }
}

async fn within<T>(
    most: Duration,
    step: impl Future<Output = std::io::Result<T>>,
) -> Result<T, Down> {
    match tokio::time::timeout(most, step).await {
        Ok(done) => done.map_err(|_error| Down::partial("the connection broke")),
        Err(_elapsed) => Err(Down::partial("no answer in time")),
    }
}

fn unreachable(error: std::io::Error) -> Down {
    Down::partial(format!("cannot be reached: {}", cause(&error)))
}

/// Why nobody is there, in a few words that quote no address.
pub(super) fn cause(error: &std::io::Error) -> String {
    // The library has no kind for it.
    if error.to_string().starts_with("failed to lookup address information") {
        return "its host's name cannot be looked up".to_owned();
    }
    error.kind().to_string()
}

async fn secure(
    stream: TcpStream,
    host: &str,
    ca_file: Option<&PathBuf>,
) -> Result<tokio_rustls::client::TlsStream<TcpStream>, Down> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Down::config(error.to_string()))?
        .with_root_certificates(roots(ca_file)?)
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_bad| Down::config("its host is no name that a certificate could have"))?;
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, stream).await.map_err(|error| {
        // A certificate that does not hold is told from a line that broke.
        let is_tls = error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>());
        let exit = if is_tls { Exit::Trust } else { Exit::Partial };
        Down::of(exit, format!("TLS: {error}"))
    })
}

fn roots(ca_file: Option<&PathBuf>) -> Result<RootCertStore, Down> {
    let mut store = RootCertStore::empty();
    let certificates: Vec<CertificateDer<'static>> = match ca_file {
        Some(path) => {
            let unreadable =
                |why: String| Down::config(format!("ca_file {}: {why}", path.display()));
            let pem = std::fs::read(path).map_err(|error| unreadable(error.to_string()))?;
            CertificateDer::pem_slice_iter(&pem)
                .collect::<Result<_, _>>()
                .map_err(|error| unreadable(error.to_string()))?
        }
        None => rustls_native_certs::load_native_certs().certs,
    };
    let (added, _unread) = store.add_parsable_certificates(certificates);
    if added == 0 {
        let text = "no CA certificates are installed (package ca-certificates), and no ca_file \
                    is set";
        return Err(Down::config(text));
    }
    Ok(store)
}

/// Undoes the percent-encoding of a part of an address.
pub(super) fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let mut ahead = rest.clone();
        let pair = (ahead.next(), ahead.next());
        let hex = |b: Option<u8>| b.and_then(|b| char::from(b).to_digit(16));
        match (byte, hex(pair.0), hex(pair.1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(u8::try_from(high.saturating_mul(16).saturating_add(low)).unwrap_or(0));
                rest = ahead;
            }
            (other, ..) => bytes.push(other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_nobody_is_there_is_told_without_an_address() {
        use std::io::{Error, ErrorKind};
        let unknown = Error::other("failed to lookup address information: no such host s3cret");
        let refused = Error::new(ErrorKind::ConnectionRefused, "127.0.0.1:7/s3cret");
        for (error, want) in
            [(unknown, "its host's name cannot be looked up"), (refused, "connection refused")]
        {
            assert_eq!(cause(&error), want);
        }
    }

    #[test]
    fn passwords_in_addresses_are_decoded() {
        for (text, want) in [
            ("p%40ss", "p@ss"),
            ("plain", "plain"),
            ("%c3%bc", "\u{fc}"),
            ("50%", "50%"),
            ("%zz", "%zz"),
        ] {
            assert_eq!(decoded(text), want);
        }
    }
}
