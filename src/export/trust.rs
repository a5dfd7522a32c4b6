//! Whom an https endpoint is checked against.

use std::path::{Path, PathBuf};

use ureq::tls::{Certificate, PemItem, RootCerts, parse_pem};

use super::http::ConfigError;

/// Only the certificates of that file, as OTLP exporters understand the setting.
pub(super) fn of_file(path: &Path) -> Result<RootCerts, ConfigError> {
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
        return Err(failed("no certificate in it; a PEM file of CA certificates is needed".to_owned()));
    }
    Ok(RootCerts::from(certificates))
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
