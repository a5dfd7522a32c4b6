//! Certificates: how an https endpoint is verified, and how the client identifies itself to the endpoint.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::config_error::ConfigError;

/// The configuration of TLS connections. It trusts the certificates of the file `trusted`, or else the
/// system's authorities. It sends the client's certificate if `client` names one with its key.
pub(super) fn client_config(
    trusted: Option<&Path>,
    client: Option<(&Path, &Path)>,
) -> Result<ClientConfig, ConfigError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone());
    // SANITY: the provider has cipher suites for all protocol versions.
    let builder = builder.with_safe_default_protocol_versions().expect("versions of TLS");
    let builder = match trusted {
        None => builder.with_root_certificates(of_system()),
        Some(path) => {
            let verifier = GivenCertificates::of_file(path, provider)?;
            builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
        }
    };
    let mut config = match client {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = certificates(certificate)?;
            let failed = |reason: String| ConfigError::ClientKey { path: PathBuf::from(key), reason };
            let pem = std::fs::read(key).map_err(|error| failed(error.to_string()))?;
            let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|error| failed(error.to_string()))?;
            builder.with_client_auth_cert(chain, key).map_err(|error| failed(error.to_string()))?
        }
    };
    // With this, a server that speaks only HTTP/2 rejects the handshake and says why.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    let failed = |reason: String| ConfigError::Certificate { path: PathBuf::from(path), reason };
    let pem = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let certificates = certificates.map_err(|error| failed(error.to_string()))?;
    if certificates.is_empty() {
        return Err(failed("no certificate in the file; a PEM file of certificates is needed".to_owned()));
    }
    Ok(certificates)
}

/// The authorities that the system trusts, or that SSL_CERT_FILE and SSL_CERT_DIR name. On a system without
/// any, such as a small container, the authorities that Mozilla trusts.
fn of_system() -> RootCertStore {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        log::debug!("the system's certificate authorities: {error}");
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        log::info!(
            "this system has no certificate authorities: https endpoints are checked against Mozilla's"
        );
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    roots
}

/// Trusts only the certificates of one file, as OTLP exporters define the setting. Each certificate is
/// trusted as an authority and as the server's own certificate.
///
/// The latter is needed for self-signed certificates that are marked as an authority's (CA:TRUE), as `openssl
/// req -x509` makes them. Such a certificate can certify others, so rustls refuses it as a server's own. The
/// user has named this very certificate, and a server that shows it must have its key, so no other
/// certificate is needed to certify it. The certificate's dates and names are checked all the same.
#[derive(Debug)]
struct GivenCertificates {
    authorities: Arc<WebPkiServerVerifier>,
    given: Vec<CertificateDer<'static>>,
}

impl GivenCertificates {
    fn of_file(path: &Path, provider: Arc<CryptoProvider>) -> Result<Self, ConfigError> {
        let given = certificates(path)?;
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(given.iter().cloned());
        let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        let authorities = authorities.map_err(|error| {
            let reason = format!("no certificate in the file can be used ({error})");
            ConfigError::Certificate { path: PathBuf::from(path), reason }
        })?;
        Ok(Self { authorities, given })
    }
}

impl ServerCertVerifier for GivenCertificates {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verdict =
            self.authorities.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verdict {
            // webpki checks a certificate's dates first (check_issuer_independent_properties). These two
            // errors come later, so the dates are right. Tests assert this order.
            Err(Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::Other(_)))
                if self.given.iter().any(|given| given == end_entity) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}
