//! Faults of the connection, seen through raw sockets where a client would hide them.

use std::time::{Duration, Instant};

use tieout::sandbox::faults::{Action, FaultRule};
use tieout::sandbox::settings::{Door, Settings};
use tieout::sandbox::{Handle, Sandbox};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{KEY, Rig};

const SOON: Duration = Duration::from_millis(300);

/// Sends one request for the balance and gives the socket.
async fn asked(sandbox: &Handle) -> TcpStream {
    let mut socket = TcpStream::connect(sandbox.address()).await.unwrap();
    let request =
        format!("GET /v1/balance HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    socket
}

/// Everything that comes until the connection ends, and how it ends.
async fn to_end(socket: &mut TcpStream) -> (String, Result<(), std::io::ErrorKind>) {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    let end = loop {
        match socket.read(&mut buffer).await {
            Ok(0) => break Ok(()),
            Ok(read) => bytes.extend_from_slice(&buffer[..read]),
            Err(error) => break Err(error.kind()),
        }
    };
    (String::from_utf8(bytes).unwrap(), end)
}

fn body_of(text: &str) -> &str {
    text.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

#[tokio::test]
async fn a_connection_is_reset_before_and_within_the_body() {
    let rig = Rig::new().await;
    rig.fault(Action::Reset);
    let (text, end) = to_end(&mut asked(&rig.sandbox).await).await;
    assert_eq!((text.as_str(), end), ("", Err(std::io::ErrorKind::ConnectionReset)));

    rig.sandbox.clear_faults();
    rig.fault(Action::ResetAfter { bytes: 12 });
    let (text, end) = to_end(&mut asked(&rig.sandbox).await).await;
    assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
    assert_eq!(body_of(&text).len(), 12);
    assert_eq!(end, Err(std::io::ErrorKind::ConnectionReset));
}

#[tokio::test]
async fn a_connection_is_half_closed_within_the_body() {
    let rig = Rig::new().await;
    rig.fault(Action::HalfClose { bytes: 12 });
    let mut socket = asked(&rig.sandbox).await;
    let (text, end) = to_end(&mut socket).await;
    assert_eq!((body_of(&text).len(), end), (12, Ok(())));
    let announced = text.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    assert!(announced.parse::<usize>().unwrap() > 12, "the body looks whole");
    socket.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
}

#[tokio::test]
async fn a_request_is_never_answered() {
    let rig = Rig::new().await;
    rig.fault(Action::NoAnswer);
    let mut socket = asked(&rig.sandbox).await;
    assert!(tokio::time::timeout(SOON, socket.read_u8()).await.is_err());
    assert_eq!(rig.sandbox.total_requests(), 1);
}

#[tokio::test]
async fn a_body_comes_in_drops() {
    let rig = Rig::new().await;
    rig.fault(Action::Drip { bytes: 1, every_ms: 30 });
    let mut socket = asked(&rig.sandbox).await;
    let mut seen = String::new();
    let started = Instant::now();
    while body_of(&seen).len() < 8 {
        seen.push(char::from(socket.read_u8().await.unwrap()));
    }
    assert!(started.elapsed() >= Duration::from_millis(30) * 7);
}

#[tokio::test]
async fn an_answer_comes_late() {
    let rig = Rig::new().await;
    rig.sandbox.fault(FaultRule::always(Action::Delay { ms: 400 }).times(1));
    let mut socket = asked(&rig.sandbox).await;
    let mut first = [0; 1];
    let early = tokio::time::timeout(Duration::from_millis(100), socket.peek(&mut first)).await;
    assert!(early.is_err());
    socket.readable().await.unwrap();
    assert_eq!(socket.read_u8().await.unwrap(), b'H');
}

#[tokio::test]
async fn connections_are_refused_until_the_door_opens() {
    let rig = Rig::new().await;
    let mut old = asked(&rig.sandbox).await;
    old.readable().await.unwrap();
    rig.sandbox.door(Door::Refusing, None);
    let (_, end) = to_end(&mut old).await;
    assert_eq!(end, Err(std::io::ErrorKind::ConnectionReset), "what was open is cut");
    let refused = loop {
        match TcpStream::connect(rig.sandbox.address()).await {
            Err(error) => break error.kind(),
            // The listener may still be on its way out.
            Ok(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    };
    assert_eq!(refused, std::io::ErrorKind::ConnectionRefused);
    rig.sandbox.door(Door::Open, None);
    reopened(&rig.sandbox).await;
}

#[tokio::test]
async fn connections_hang_until_the_door_opens() {
    let rig = Rig::new().await;
    rig.sandbox.door(Door::Hanging, None);
    let mut hung = false;
    for _ in 0..40 {
        let connecting = TcpStream::connect(rig.sandbox.address());
        hung = tokio::time::timeout(SOON, connecting).await.is_err();
        if hung {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(hung, "a connection is neither taken nor refused");
    rig.sandbox.door(Door::Open, None);
    reopened(&rig.sandbox).await;
}

#[tokio::test]
async fn a_fault_shuts_the_door_for_a_while() {
    for action in
        [Action::RefuseConnections { for_ms: 300 }, Action::HangConnections { for_ms: 300 }]
    {
        let rig = Rig::new().await;
        rig.sandbox.fault(FaultRule::always(action.clone()).times(1));
        let (text, _) = to_end(&mut asked(&rig.sandbox).await).await;
        assert_eq!(text, "", "{action:?}");
        reopened(&rig.sandbox).await;
    }
}

#[tokio::test]
async fn dropping_the_last_handle_stops_it() {
    let first = Sandbox::start(Settings::default()).await.unwrap();
    let second = first.clone();
    let address = first.address();
    drop(first);
    drop(asked(&second).await);
    drop(second);
    while TcpStream::connect(address).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }

    let other = Sandbox::start(Settings::default()).await.unwrap();
    other.fault(FaultRule::always(Action::NoAnswer));
    let mut waiting = asked(&other).await;
    let address = other.address();
    other.shutdown().await;
    assert!(TcpStream::connect(address).await.is_err());
    assert_ne!(to_end(&mut waiting).await.0, "HTTP");
}

#[tokio::test]
async fn a_taken_port_is_said_so() {
    let first = Sandbox::start(Settings::default()).await.unwrap();
    let port = first.address().port();
    let error = Sandbox::start(Settings { port, ..Settings::default() }).await.unwrap_err();
    assert!(error.to_string().contains("it was not started"), "{error}");
}

/// Waits until a request is answered again.
async fn reopened(sandbox: &Handle) {
    loop {
        let talk = async {
            let mut socket = TcpStream::connect(sandbox.address()).await.ok()?;
            let request = format!(
                "GET /v1/balance HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n\r\n"
            );
            socket.write_all(request.as_bytes()).await.ok()?;
            socket.read_u8().await.ok()
        };
        if let Ok(Some(b'H')) = tokio::time::timeout(SOON, talk).await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_proxy_says_200_to_a_tunnel_that_leads_nowhere() {
    let rig = Rig::new().await;
    let connect = b"CONNECT api.example.test:443 HTTP/1.1\r\nHost: api.example.test:443\r\n\r\n";
    let mut socket = TcpStream::connect(rig.sandbox.address()).await.unwrap();
    socket.write_all(connect).await.unwrap();
    let mut buffer = [0; 12];
    socket.read_exact(&mut buffer).await.unwrap();
    assert_eq!(&buffer, b"HTTP/1.1 404");

    rig.fault(Action::Html { code: 200 });
    let mut socket = TcpStream::connect(rig.sandbox.address()).await.unwrap();
    socket.write_all(connect).await.unwrap();
    socket.read_exact(&mut buffer).await.unwrap();
    assert_eq!(&buffer, b"HTTP/1.1 200");
}

#[tokio::test]
async fn an_answer_ends_before_its_length_without_a_reset() {
    let rig = Rig::new().await;
    rig.fault(Action::EndStreamAfter { bytes: 12 });
    let (text, end) = to_end(&mut asked(&rig.sandbox).await).await;
    assert_eq!((body_of(&text).len(), end), (12, Ok(())));

    rig.sandbox.clear_faults();
    rig.fault(Action::GoAway);
    let (text, end) = to_end(&mut asked(&rig.sandbox).await).await;
    assert_eq!((text.as_str(), end), ("", Ok(())));
}
