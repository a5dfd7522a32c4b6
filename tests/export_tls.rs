//! Uploads over TLS: whom the exporter trusts, and whom not.
#![cfg(feature = "tls")]

mod export_support;

use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use export_support::{message, missing, read_request};
use otlpprof::export::stats::{Loss, Tally, UploadStats};
use otlpprof::export::upload::ConfigError;
use otlpprof::export::{Endpoint, UploadConfig, Uploader};
use otlpprof::sampling::own_threads;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;

const AMPLE: Duration = Duration::from_secs(60);
const ONE: Tally = Tally { messages: 1, samples: 3, bytes: 10 };

/// A certificate for `localhost` that signs itself, and its key. None, said loudly, without `openssl`.
fn certificate(folder: &Path) -> Option<(PathBuf, PathBuf)> {
    let (certificate, key) = (folder.join("certificate.pem"), folder.join("key.pem"));
    let arguments = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
                     -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE";
    let mut command = Command::new("openssl");
    command.args(arguments.split_whitespace()).arg("-out").arg(&certificate).arg("-keyout").arg(&key);
    match command.output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some((certificate, key))
        }
        Err(_) => {
            missing("openssl");
            None
        }
    }
}

/// Answers every request 200, over TLS. Returns its port.
fn serve(certificate: &Path, key: &Path) -> u16 {
    serve_clients(certificate, key, None)
}

/// The same, and only for clients that this certificate vouches for, if there is one.
fn serve_clients(certificate: &Path, key: &Path, clients: Option<&Path>) -> u16 {
    let chain = vec![CertificateDer::from_pem_file(certificate).unwrap()];
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(clients) => {
            let mut known = rustls::RootCertStore::empty();
            known.add(CertificateDer::from_pem_file(clients).unwrap()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(known), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    let config = builder.with_single_cert(chain, PrivateKeyDer::from_pem_file(key).unwrap()).unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let connection = rustls::ServerConnection::new(config.clone()).unwrap();
            let mut stream = rustls::StreamOwned::new(connection, stream);
            // A client that does not trust the certificate leaves in the middle.
            if read_request(&mut stream).is_some() {
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                stream.write_all(answer).unwrap();
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
        }
    });
    port
}

fn upload(url: &str, trusted: Option<&Path>) -> UploadStats {
    let mut config = UploadConfig::new(Endpoint::base(url).unwrap());
    config.ca_certificate = trusted.map(Path::to_owned);
    upload_by(config)
}

fn upload_by(config: UploadConfig) -> UploadStats {
    let uploader = Uploader::start(config, None, own_threads::spawn).unwrap();
    uploader.submit(message(10, 3));
    uploader.shutdown(AMPLE)
}

#[test]
fn only_a_trusted_certificate_of_the_right_host_is_talked_to() {
    let folder = tempfile::tempdir().unwrap();
    let Some((certificate, key)) = certificate(folder.path()) else { return };
    let port = serve(&certificate, &key);
    let stats = upload(&format!("https://localhost:{port}"), Some(&certificate));
    assert_eq!(stats.sent, ONE, "{stats:?}");
    let stats = upload(&format!("https://localhost:{port}"), None);
    assert_eq!((stats.lost(Loss::Tls), stats.retries), (ONE, 0), "not trusted: {stats:?}");
    let stats = upload(&format!("https://127.0.0.1:{port}"), Some(&certificate));
    assert_eq!((stats.lost(Loss::Tls), stats.retries), (ONE, 0), "another host: {stats:?}");
}

/// The system's authorities are read where OpenSSL has them, which variables can move: in a process of its own.
#[test]
fn without_a_certificate_the_systems_authorities_are_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let Some((certificate, key)) = certificate(folder.path()) else { return };
    let port = serve(&certificate, &key);
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "upload_to_an_authority_of_the_system"])
        .env("SSL_CERT_FILE", &certificate)
        .env("UPLOAD_TO", format!("https://localhost:{port}"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{output:?}");
}

#[test]
#[ignore = "run by its parent, with the system's authorities replaced"]
fn upload_to_an_authority_of_the_system() {
    let stats = upload(&std::env::var("UPLOAD_TO").unwrap(), None);
    assert_eq!(stats.sent, ONE, "{stats:?}");
}

/// OTEL_EXPORTER_OTLP_CLIENT_KEY and ..._CLIENT_CERTIFICATE were not read, and nothing said so.
#[test]
fn a_collector_that_asks_for_a_certificate_gets_ours() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [Some(server), Some(client)] = folders.each_ref().map(|folder| certificate(folder.path())) else {
        return;
    };
    let port = serve_clients(&server.0, &server.1, Some(&client.0));
    let mut config = UploadConfig::new(Endpoint::base(&format!("https://localhost:{port}")).unwrap());
    config.ca_certificate = Some(server.0.clone());
    let without = upload_by(config.clone());
    assert_eq!(without.sent, Tally::default(), "{without:?}");
    config.client_certificate = Some(client.0.clone());
    config.client_key = Some(client.1.clone());
    let with = upload_by(config.clone());
    assert_eq!(with.sent, ONE, "{with:?}");
    // Not the certificate's key; no key; a key alone.
    for (certificate, key, says) in [
        (Some(&client.0), Some(&server.1), "client key "),
        (Some(&client.0), Some(&client.0), "client key "),
        (Some(&client.1), Some(&client.1), "certificate "),
        (Some(&client.0), None, "a client's certificate and its key go together"),
        (None, Some(&client.1), "a client's certificate and its key go together"),
    ] {
        config.client_certificate = certificate.cloned();
        config.client_key = key.cloned();
        let error = Uploader::check(&config).unwrap_err().to_string();
        assert!(error.starts_with(says), "{error}");
    }
}

#[test]
fn a_file_without_certificates_is_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "no certificate").unwrap();
    for path in [empty, folder.path().join("missing.pem")] {
        let mut config = UploadConfig::new(Endpoint::base("https://localhost:1").unwrap());
        config.ca_certificate = Some(path.clone());
        let error = Uploader::start(config, None, own_threads::spawn).unwrap_err();
        assert!(matches!(error, ConfigError::Certificate { .. }));
        assert!(error.to_string().starts_with(&format!("certificate {}: ", path.display())), "{error}");
    }
}
