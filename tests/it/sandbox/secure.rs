//! TLS that a client must refuse, and what only HTTP/2 can do wrong.
//!
//! The certificates of `fixtures/tls` were made once for these tests; the key of their authority
//! was thrown away. Each file holds a certificate and its key.

use std::error::Error;

use tieout::sandbox::Sandbox;
use tieout::sandbox::faults::{Action, FaultRule};
use tieout::sandbox::settings::{Settings, Tls};

use super::{KEY, Rig, read};

const AUTHORITY: &[u8] = include_bytes!("../../../fixtures/tls/authority.pem");
const GOOD: &str = include_str!("../../../fixtures/tls/good.pem");
const EXPIRED: &str = include_str!("../../../fixtures/tls/expired.pem");
const OTHER_HOST: &str = include_str!("../../../fixtures/tls/other-host.pem");
const SELF_SIGNED: &str = include_str!("../../../fixtures/tls/self-signed.pem");

/// A sandbox with this identity, and a client that trusts the tests' authority alone.
async fn rig(identity: &str, http2: bool) -> Rig {
    let tls = Tls { identity_pem: identity.to_owned(), http2 };
    let mut rig = Rig::with(Settings { tls: Some(tls), ..Settings::default() }).await;
    let authority = reqwest::Certificate::from_pem(AUTHORITY).unwrap();
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([authority]);
    rig.client = client.build().unwrap();
    rig
}

fn chain_of(error: &dyn Error) -> String {
    let cause = error.source().map(chain_of).unwrap_or_default();
    format!("{error}: {cause}")
}

#[tokio::test]
async fn bad_certificates_are_served_for_the_client_to_refuse() {
    for http2 in [false, true] {
        let good = rig(GOOD, http2).await;
        let answer = good.get("/v1/balance").send().await.unwrap();
        let version = answer.version();
        assert_eq!((answer.status().as_u16(), version == reqwest::Version::HTTP_2), (200, http2));
    }
    let cases =
        [(EXPIRED, "Expired"), (OTHER_HOST, "NotValidForName"), (SELF_SIGNED, "UnknownIssuer")];
    for (identity, expected) in cases {
        let rig = rig(identity, false).await;
        let error = rig.get("/v1/balance").send().await.unwrap_err();
        let said = format!("{} {error:?}", chain_of(&error));
        assert!(said.contains(expected), "{said}");
        assert_eq!(rig.sandbox.total_requests(), 0, "{expected}");
    }
    let tls = Tls { identity_pem: "no pem".to_owned(), http2: false };
    let error = Sandbox::start(Settings { tls: Some(tls), ..Settings::default() }).await;
    assert!(error.unwrap_err().to_string().contains("was not started"));
}

#[tokio::test]
async fn streams_and_connections_end_early_over_http2() {
    let rig = rig(GOOD, true).await;
    rig.sandbox.fault(FaultRule::always(Action::EndStreamAfter { bytes: 9 }).times(1));
    let answer = rig.get("/v1/balance").send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let error = answer.bytes().await.unwrap_err();
    assert!(chain_of(&error).contains("stream error"), "{}", chain_of(&error));

    rig.sandbox.fault(FaultRule::always(Action::GoAway).times(1));
    assert!(rig.get("/v1/balance").send().await.is_err());
    assert_eq!(rig.sandbox.total_requests(), 2);
    assert_eq!(read(rig.get("/v1/balance")).await.0, 200, "a new connection is taken");

    rig.sandbox.fault(FaultRule::always(Action::NoAnswer));
    let client = rig.client.clone();
    let url = rig.url("/v1/balance");
    let waiting = tokio::spawn(async move { client.get(url).bearer_auth(KEY).send().await });
    while rig.sandbox.total_requests() < 4 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    rig.sandbox.shutdown().await;
    assert!(waiting.await.unwrap().is_err(), "shutting down leaves nobody waiting");
}
