//! TLS for rehearsals of broken certificates and of HTTP/2.
//!
//! The sandbox judges no certificate: an expired one, one of another host and one that nobody
//! signed are served like a good one, and it is the client that has to refuse.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::settings::{SandboxError, Tls};

/// How TLS connections are taken with this identity.
pub(super) fn server_config(tls: &Tls) -> Result<Arc<ServerConfig>, SandboxError> {
    let refused = |why: String| SandboxError::Identity { why };
    let pem = tls.identity_pem.as_bytes();
    let chain = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| refused(error.to_string()))?;
    let key = PrivateKeyDer::from_pem_slice(pem).map_err(|error| refused(error.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| refused(error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| refused(error.to_string()))?;
    config.alpn_protocols = if tls.http2 {
        vec![b"h2".to_vec(), b"http/1.1".to_vec()]
    } else {
        vec![b"http/1.1".to_vec()]
    };
    Ok(Arc::new(config))
}
