//! Uploads over TLS: the certificates that the exporter trusts and rejects.
#![cfg(feature = "tls")]

use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use otlpprof_export::stats::{Loss, Tally, UploadStats};
use otlpprof_export::upload::ConfigError;
use otlpprof_export::{Endpoint, UploadConfig, Uploader};
use otlpprof_sampling::own_threads;
use otlpprof_testkit::collector::Collector;
use otlpprof_testkit::fault_server::{FaultServer, Step, message, read_request};
use otlpprof_testkit::skipped::not_tested;
use otlpprof_testkit::warnings::{keep_warnings, warnings_with};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;

const AMPLE: Duration = Duration::from_secs(60);
const ONE: Tally = Tally { messages: 1, samples: 3, bytes: 10 };

const NEW_KEY: &str = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost";

/// Runs `openssl` with these arguments in a folder. If it is missing, returns `None` and reports that the
/// test is skipped.
fn openssl(folder: &Path, arguments: &str) -> Option<()> {
    match Command::new("openssl").args(arguments.split_whitespace()).current_dir(folder).output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(())
        }
        Err(_) => {
            not_tested("openssl is missing");
            None
        }
    }
}

/// A self-signed certificate for `localhost`, and its key.
fn certificate(folder: &Path) -> Option<(PathBuf, PathBuf)> {
    self_signed(folder, "-addext basicConstraints=critical,CA:FALSE")
}

fn self_signed(folder: &Path, extensions: &str) -> Option<(PathBuf, PathBuf)> {
    let names = "-out certificate.pem -keyout key.pem -addext subjectAltName=DNS:localhost";
    openssl(folder, &format!("req -x509 {NEW_KEY} -days 2 {names} {extensions}"))?;
    Some((folder.join("certificate.pem"), folder.join("key.pem")))
}

/// A self-signed certificate of an authority (CA:TRUE), valid in this period, and its key.
fn dated_authority(folder: &Path, from: &str, until: &str) -> Option<(PathBuf, PathBuf)> {
    let configuration = "[ca]\ndefault_ca = own\n\
                         [own]\ndatabase = index\nnew_certs_dir = .\nserial = serial\ndefault_md = sha256\n\
                         policy = names\nx509_extensions = extensions\n\
                         [names]\ncommonName = supplied\n\
                         [extensions]\nsubjectAltName = DNS:localhost\nbasicConstraints = critical,CA:TRUE\n";
    for (name, text) in [("configuration", configuration), ("index", ""), ("serial", "01\n")] {
        std::fs::write(folder.join(name), text).unwrap();
    }
    openssl(folder, &format!("req -new {NEW_KEY} -out request.pem -keyout key.pem"))?;
    let dates = format!("-startdate {from} -enddate {until}");
    let files = "-config configuration -keyfile key.pem -in request.pem -out certificate.pem";
    openssl(folder, &format!("ca -batch -notext -selfsign {dates} {files}"))?;
    Some((folder.join("certificate.pem"), folder.join("key.pem")))
}

/// A server that answers every request over TLS with 200. Returns its port.
fn serve(certificate: &Path, key: &Path) -> u16 {
    serve_clients(certificate, key, None)
}

/// Like [`serve`], but accepts only clients with this certificate, if one is given.
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
            // A client that does not trust the certificate disconnects during the handshake.
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

/// Uploads, and checks that nothing arrives, that nothing is retried, and that a warning contains `says`.
fn assert_refused(port: u16, host: &str, trusted: &Path, says: &str) {
    let stats = upload(&format!("https://{host}:{port}"), Some(trusted));
    assert_eq!((stats.lost(Loss::Tls), stats.retries), (ONE, 0), "{says}: {stats:?}");
    let lines = warnings_with(&format!("{host}:{port}"));
    assert!(lines.iter().any(|line| line.contains(says)), "{says}: {lines:?}");
}

/// Regression: `openssl req -x509` makes certificates that are marked as an authority's. The exporter
/// rejected such a certificate of a server, although curl accepts it.
#[test]
fn a_self_signed_authority_is_accepted_if_its_certificate_is_given() {
    keep_warnings();
    let folders: Vec<_> = (0..4).map(|_| tempfile::tempdir().unwrap()).collect();
    let folder = |number: usize| folders[number].path();
    let usual = "-addext keyUsage=keyCertSign";
    let (Some(server), Some(other)) = (self_signed(folder(0), usual), self_signed(folder(1), usual)) else {
        return;
    };
    let text =
        Command::new("openssl").args(["x509", "-noout", "-text", "-in"]).arg(&server.0).output().unwrap();
    assert!(String::from_utf8_lossy(&text.stdout).contains("CA:TRUE"));
    let port = serve(&server.0, &server.1);
    // The server's certificate is also accepted among several.
    let both = folder(0).join("both.pem");
    let pem = [&other.0, &server.0].map(|path| std::fs::read_to_string(path).unwrap()).concat();
    std::fs::write(&both, pem).unwrap();
    for trusted in [&server.0, &both] {
        let stats = upload(&format!("https://localhost:{port}"), Some(trusted));
        assert_eq!(stats.sent, ONE, "{stats:?}");
    }
    assert_refused(port, "127.0.0.1", &server.0, "(subjectAltName)");
    // A certificate with the same names and a different key.
    assert_refused(port, "localhost", &other.0, "set certificate=PATH to this certificate");
    for (number, from, until) in
        [(2, "20000101000000Z", "20010101000000Z"), (3, "20900101000000Z", "20910101000000Z")]
    {
        let Some(dated) = dated_authority(folder(number), from, until) else { return };
        let port = serve(&dated.0, &dated.1);
        assert_refused(
            port,
            "localhost",
            &dated.0,
            "renew the server's certificate, or set this machine's clock",
        );
    }
    let Some(dated) = dated_authority(folder(2), "20000101000000Z", "20900101000000Z") else { return };
    let port = serve(&dated.0, &dated.1);
    assert_eq!(upload(&format!("https://localhost:{port}"), Some(&dated.0)).sent, ONE);
}

/// A port that sends `bytes` when a client connects or, if it `asks`, when the client has sent a byte, and
/// then closes the connection.
fn speaks(bytes: &'static [u8], asks: bool) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            if asks {
                let _ = std::io::Read::read(&mut stream, &mut [0; 1]);
            }
            let _ = stream.write_all(bytes);
        }
    });
    port
}

fn assert_says(endpoint: &str, says: &str) {
    keep_warnings();
    // The second message is larger than a connection takes while nobody reads.
    for bytes in [10, 8 << 20] {
        let mut config = UploadConfig::new(Endpoint::base(endpoint).unwrap());
        config.compression = otlpprof_export::upload::Compression::None;
        let uploader = Uploader::start(config, None, own_threads::spawn).unwrap();
        uploader.submit(message(bytes, 3));
        let stats = uploader.shutdown(AMPLE);
        assert_eq!(stats.lost(Loss::Protocol).messages, 1, "{endpoint}: {stats:?}");
    }
    let lines = warnings_with(endpoint);
    assert!(!lines.is_empty() && lines.iter().all(|line| line.contains(says)), "{says}: {lines:?}");
}

#[test]
fn https_to_a_port_of_plain_http_says_so() {
    let port = speaks(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", true);
    assert_says(&format!("https://localhost:{port}"), "speaks plain HTTP: write http://");
}

#[test]
fn http_to_a_port_of_tls_says_so() {
    let says = "speaks TLS: write https://";
    let folder = tempfile::tempdir().unwrap();
    let Some((certificate, key)) = certificate(folder.path()) else { return };
    assert_says(&format!("http://localhost:{}", serve(&certificate, &key)), says);
    // A TLS alert: decode_error.
    assert_says(&format!("http://localhost:{}", speaks(&[0x15, 3, 1, 0, 2, 2, 50], true)), says);
    // The OpenTelemetry collector's answer.
    let text = b"Client sent an HTTP request to an HTTPS server.\n".to_vec();
    for mime in ["text/plain", ""] {
        let server = FaultServer::start(vec![Step::Answer(400, "", mime, text.clone()); 2]);
        assert_says(&format!("http://{}", server.address), says);
    }
}

#[test]
fn a_port_of_grpc_alone_says_so() {
    let says = "as gRPC does: name the port of OTLP over HTTP";
    let settings = &[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0x40, 0];
    for asks in [false, true] {
        assert_says(&format!("http://127.0.0.1:{}", speaks(settings, asks)), says);
    }
    let Some(collector) = Collector::start_grpc() else { return };
    assert_says(&collector.endpoint(), says);
}

/// The port does not answer the handshake. No loss is reported: the message is retried.
#[test]
fn an_interrupted_handshake_names_possible_causes() {
    keep_warnings();
    let port = speaks(b"", true);
    let uploader = Uploader::start(
        UploadConfig::new(Endpoint::base(&format!("https://localhost:{port}")).unwrap()),
        None,
        own_threads::spawn,
    );
    let uploader = uploader.unwrap();
    uploader.submit(message(10, 3));
    while warnings_with(&format!("localhost:{port}")).is_empty() {
        thread::yield_now();
    }
    let stats = uploader.shutdown(Duration::ZERO);
    assert_eq!(stats.lost(Loss::ShutDown), ONE, "{stats:?}");
    let lines = warnings_with(&format!("localhost:{port}"));
    let says = "ended in the TLS handshake; if the port speaks plain HTTP, write http://";
    assert!(lines[0].contains(says), "{lines:?}");
}

/// The system's authorities are read from OpenSSL's locations, which environment variables can change. So the
/// upload runs in its own process.
#[test]
fn without_a_certificate_the_systems_authorities_are_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let Some((certificate, key)) = certificate(folder.path()) else { return };
    let port = serve(&certificate, &key);
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "child_uploads_to_an_authority_of_the_system"])
        .env("SSL_CERT_FILE", &certificate)
        .env("UPLOAD_TO", format!("https://localhost:{port}"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{output:?}");
}

#[test]
#[ignore = "run by its parent, with the system's authorities replaced"]
fn child_uploads_to_an_authority_of_the_system() {
    let stats = upload(&std::env::var("UPLOAD_TO").unwrap(), None);
    assert_eq!(stats.sent, ONE, "{stats:?}");
}

/// Regression: OTEL_EXPORTER_OTLP_CLIENT_KEY and ..._CLIENT_CERTIFICATE were ignored without a warning.
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
    assert_eq!((without.lost(Loss::Tls), without.retries), (ONE, 0), "{without:?}");
    config.client_certificate = Some(client.0.clone());
    config.client_key = Some(client.1.clone());
    let with = upload_by(config.clone());
    assert_eq!(with.sent, ONE, "{with:?}");
    // A key of another certificate, two certificates, two keys, no key, and only a key.
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
