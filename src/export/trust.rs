//! Whom an https endpoint is checked against, and what shows an endpoint who asks.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, parse_pem};

use super::http::ConfigError;

/// Only the certificates of that file, as OTLP exporters understand the setting.
pub(super) fn of_file(path: &Path) -> Result<RootCerts, ConfigError> {
    certificates(path).map(RootCerts::from)
}

fn certificates(path: &Path) -> Result<Vec<Certificate<'static>>, ConfigError> {
    let failed = |reason: String| ConfigError::Certificate { path: PathBuf::from(path), reason };
    let pem = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    let mut certificates = Vec::new();
    for item in parse_pem(&pem) {
        match item.map_err(|error| failed(error.to_string()))? {
            PemItem::Certificate(certificate) => certificates.push(certificate),
            _ => log::debug!("certificate {}: an item that is no certificate is ignored", path.display()),
        }
    }
    if certificates.is_empty() {
        return Err(failed("no certificate in it; a PEM file of certificates is needed".to_owned()));
    }
    Ok(certificates)
}

/// The certificate, with those that vouch for it, and the key of mutual TLS.
pub(super) fn of_client(certificate: &Path, key: &Path) -> Result<ClientCert, ConfigError> {
    let chain = certificates(certificate)?;
    let failed = |reason: String| ConfigError::ClientKey { path: PathBuf::from(key), reason };
    let pem = std::fs::read(key).map_err(|error| failed(error.to_string()))?;
    let key = PrivateKey::from_pem(&pem).map_err(|error| failed(error.to_string()))?;
    check_pair(&chain, &key).map_err(failed)?;
    Ok(ClientCert::new_with_certs(&chain, key))
}

/// ureq makes the same of them at the first connection, and panics if it cannot.
fn check_pair(chain: &[Certificate<'_>], key: &PrivateKey<'_>) -> Result<(), String> {
    let chain = chain.iter().map(|certificate| CertificateDer::from(certificate.der().to_vec())).collect();
    let key = PrivateKeyDer::try_from(key.der().to_vec())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map(|builder| builder.with_root_certificates(rustls::RootCertStore::empty()))
        .and_then(|builder| builder.with_client_auth_cert(chain, key))
        .map(drop)
        .map_err(|error| error.to_string())
}

/// The authorities that the system trusts, or that SSL_CERT_FILE and SSL_CERT_DIR name. On one that has none, such
/// as a small container, those that Mozilla does.
pub(super) fn of_system() -> RootCerts {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        log::debug!("the system's certificate authorities: {error}");
    }
    if found.certs.is_empty() {
        log::info!(
            "this system has no certificate authorities: https endpoints are checked against Mozilla's"
        );
        return RootCerts::WebPki;
    }
    let certificates = found.certs.iter().map(|found| Certificate::from_der(found).to_owned());
    RootCerts::from(certificates.collect::<Vec<_>>())
}
