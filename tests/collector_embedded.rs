//! The embedded receiver, `otlpprof collect`: the requests that it accepts and refuses, and how it ends.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use otlpprof_cli::collect::{Server, Store, Stored};
use otlpprof_export::{Endpoint, OutgoingMessage, UploadConfig, Uploader};
use otlpprof_otlp::read;
use otlpprof_otlp::wire::{ExportProfilesServiceResponse, ProfilesData, Status};
use otlpprof_sampling::own_threads;
use otlpprof_testkit::commands::otlpprof;
use otlpprof_testkit::profcheck::assert_passes;
use otlpprof_testkit::small_profile::{flatten, json_message, profile, protobuf_message};
use prost::Message as _;

const AMPLE: Duration = Duration::from_secs(120);

struct Receiving {
    server: Server,
    address: SocketAddr,
    stored: Receiver<Stored>,
    failures: Receiver<ErrorKind>,
    folder: tempfile::TempDir,
}

impl Receiving {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, stored) = channel();
        let sender = Mutex::new(sender);
        let (failing, failures) = channel();
        let failing = Mutex::new(failing);
        let report = Arc::new(move |outcome: Result<&Stored, &std::io::Error>| match outcome {
            Ok(stored) => sender.lock().unwrap().send(stored.clone()).unwrap(),
            Err(error) => failing.lock().unwrap().send(error.kind()).unwrap(),
        });
        let server = Server::start(listener, Store::open(folder.path()).unwrap(), report).unwrap();
        Self { server, address, stored, failures, folder }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(AMPLE)).unwrap();
        stream
    }

    /// Sends a request on a connection of its own, and returns the answer.
    fn ask(&self, request: &[u8]) -> Answer {
        let mut stream = self.connect();
        stream.write_all(request).unwrap();
        read_answer(&mut stream)
    }

    fn files(&self) -> usize {
        std::fs::read_dir(self.folder.path()).unwrap().count()
    }
}

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn has(&self, header: &str) -> bool {
        self.head.lines().any(|line| line.eq_ignore_ascii_case(header))
    }

    fn status_message(&self) -> Status {
        assert!(self.has("content-type: application/x-protobuf"), "{self:?}");
        Status::decode(&self.body[..]).unwrap()
    }
}

/// Reads one answer and leaves the connection after it.
fn read_answer(stream: &mut TcpStream) -> Answer {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a whole answer");
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let length =
        head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).map_or("0", |length| length);
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).unwrap();
    Answer { status: head.split(' ').nth(1).unwrap().parse().unwrap(), head, body }
}

const PROTOBUF: &str = "Content-Type: application/x-protobuf\r\n";
const JSON: &str = "Content-Type: application/json\r\n";

fn post(headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST /v1development/profiles HTTP/1.1\r\nHost: c\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn chunked(headers: &str, body: &[u8], sizes: usize) -> Vec<u8> {
    let mut request = format!(
        "POST /v1development/profiles HTTP/1.1\r\nHost: c\r\n{headers}Transfer-Encoding: chunked\r\n\r\n"
    )
    .into_bytes();
    for chunk in body.chunks(sizes) {
        request.extend_from_slice(format!("{:x};ext=1\r\n", chunk.len()).as_bytes());
        request.extend_from_slice(chunk);
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"0\r\nTrailer: x\r\n\r\n");
    request
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn zlib(body: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn body() -> Vec<u8> {
    protobuf_message("shop").body
}

fn decoded(stored: &Stored) -> ProfilesData {
    let bytes = std::fs::read(stored.file.as_ref().unwrap()).unwrap();
    assert_passes("what the receiver stored", &bytes);
    let messages: Vec<_> = read::read(&bytes).map(Result::unwrap).collect();
    assert_eq!(messages.len(), 1);
    messages[0].data.clone()
}

#[test]
fn the_exporter_and_the_receiver_understand_each_other() {
    let receiving = Receiving::start();
    let config = UploadConfig::new(Endpoint::base(&format!("http://{}", receiving.address)).unwrap());
    let uploader = Uploader::start(config, None, own_threads::spawn).unwrap();
    uploader.submit(protobuf_message("shop"));
    uploader.submit(json_message("cart"));
    uploader.submit(OutgoingMessage { body: vec![0xff; 9], ..protobuf_message("") });
    let stats = uploader.shutdown(AMPLE);
    assert_eq!((stats.sent.messages, stats.sent.samples), (2, 4));
    assert_eq!(stats.lost_by(otlpprof_export::stats::Fate::Rejected).messages, 1);
    for (service, extension) in [("shop", "otlp"), ("cart", "json")] {
        let stored = receiving.stored.recv().unwrap();
        assert_eq!(
            (stored.services.as_slice(), stored.profiles, stored.samples),
            // Two entries, whose values count seven periods.
            (&[service.to_owned()][..], 1, 7)
        );
        let file = stored.file.as_ref().unwrap();
        assert_eq!(file.extension().unwrap(), extension);
        assert_eq!(stored.bytes as u64, file.metadata().unwrap().len());
        assert_eq!(flatten(&decoded(&stored)), flatten(&profile(service)));
        assert_eq!(
            stored.to_string(),
            format!("service={service} profiles=1 samples=7 bytes={} file={}", stored.bytes, file.display())
        );
    }
    assert_eq!(receiving.files(), 2, "what does not decode is not stored, and no temporary file is left");
}

#[test]
fn every_compression_and_both_framings_of_a_body_are_read() {
    let receiving = Receiving::start();
    let body = body();
    for (coding, bytes) in [
        ("", body.clone()),
        ("Content-Encoding: identity\r\n", body.clone()),
        ("Content-Encoding: gzip\r\n", gzip(&body)),
        ("Content-Encoding: GZIP\r\n", gzip(&body)),
        ("Content-Encoding: deflate\r\n", zlib(&body)),
    ] {
        let headers = format!("{PROTOBUF}{coding}");
        for request in
            [post(&headers, &bytes), chunked(&headers, &bytes, 7), chunked(&headers, &bytes, 100_000)]
        {
            let answer = receiving.ask(&request);
            assert_eq!(answer.status, 200, "{coding} {answer:?}");
            assert!(answer.has("content-type: application/x-protobuf"));
            let response = ExportProfilesServiceResponse::decode(&answer.body[..]).unwrap();
            assert_eq!(response.partial_success, None);
            assert_eq!(std::fs::read(receiving.stored.recv().unwrap().file.unwrap()).unwrap(), body);
        }
    }
    let answer =
        receiving.ask(&post("Content-Type: application/json; charset=utf-8\r\n", &json_message("x").body));
    assert!(answer.status == 200 && answer.has("content-type: application/json") && answer.body == b"{}");
}

#[test]
fn other_paths_methods_and_types_are_refused() {
    let receiving = Receiving::start();
    let ask = |text: &str| receiving.ask(text.as_bytes());
    for path in ["/", "/v1/traces", "/v1development/profiles/", "/v1development/profile"] {
        assert_eq!(ask(&format!("POST {path} HTTP/1.1\r\nHost: c\r\n\r\n")).status, 404, "{path}");
    }
    for method in ["GET", "PUT", "HEAD", "DELETE", "OPTIONS"] {
        let answer = ask(&format!("{method} /v1development/profiles HTTP/1.1\r\nHost: c\r\n\r\n"));
        assert!(answer.status == 405 && answer.has("allow: POST"), "{method}: {answer:?}");
    }
    for mime in ["", "Content-Type: text/plain\r\n", "Content-Type: application/protobuf\r\n"] {
        assert_eq!(receiving.ask(&post(mime, &body())).status, 415, "{mime}");
    }
    let answer = receiving.ask(&post(&format!("{PROTOBUF}Content-Encoding: br\r\n"), &body()));
    assert_eq!((answer.status, answer.status_message().code), (415, 3));
    assert_eq!(ask("hello\r\n\r\n").status, 400);
    let smuggled = format!("{PROTOBUF}Transfer-Encoding: chunked\r\n");
    assert_eq!(receiving.ask(&post(&smuggled, &body())).status, 400);
    assert_eq!(receiving.ask(&post(&format!("{PROTOBUF}Content-Length: 1\r\n"), &body())).status, 400);
    let long = format!("POST / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(40_000));
    assert_eq!(ask(&long).status, 431);
    assert_eq!(receiving.files(), 0);
}

#[test]
fn the_version_header_is_one_once_or_absent() {
    let receiving = Receiving::start();
    let header = "OTLP-Profiles-Development-Version:";
    for (lines, status) in [
        (String::new(), 200),
        (format!("{header} 1\r\n"), 200),
        (format!("{header} 2\r\n"), 400),
        (format!("{header} 01\r\n"), 400),
        (format!("{header} x\r\n"), 400),
        (format!("{header}\r\n"), 400),
        (format!("{header} 1, 1\r\n"), 400),
        (format!("{header} 1\r\n{header} 1\r\n"), 400),
    ] {
        let answer = receiving.ask(&post(&format!("{PROTOBUF}{lines}"), &body()));
        assert_eq!(answer.status, status, "{lines:?}");
        if status == 400 {
            let status = answer.status_message();
            assert!(status.code == 3 && status.message.contains("version"), "{status:?}");
        }
    }
}

#[test]
fn errors_are_returned_in_the_encoding_of_the_request() {
    let receiving = Receiving::start();
    let answer = receiving.ask(&post(PROTOBUF, b"\xff\xff"));
    assert_eq!((answer.status, answer.status_message().code), (400, 3));
    assert!(!answer.status_message().message.is_empty());
    let answer = receiving.ask(&post(JSON, b"{\"resourceProfiles\": 7}"));
    assert!(answer.status == 400 && answer.has("content-type: application/json"), "{answer:?}");
    let status: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(status["code"], 3);
    assert!(status["message"].as_str().is_some_and(|message| !message.is_empty()));
    let answer = receiving.ask(&post(&format!("{PROTOBUF}Content-Encoding: gzip\r\n"), b"no gzip"));
    assert_eq!((answer.status, answer.status_message().code), (400, 3));
    let answer = receiving.ask(&post(&format!("{PROTOBUF}Content-Encoding: gzip\r\n"), &gzip(b"\xff\xff")));
    let message = answer.status_message().message;
    assert!(message.contains(" at byte 0 after decompression "), "{message}");
    assert_eq!(receiving.files(), 0);
}

#[test]
fn bodies_over_the_limit_are_refused_in_every_form() {
    let receiving = Receiving::start();
    let large = vec![0; (20 << 20) + 1];
    let compressed = format!("{PROTOBUF}Content-Encoding: gzip\r\n");
    let declared =
        format!("POST /v1development/profiles HTTP/1.1\r\n{PROTOBUF}Content-Length: 20971521\r\n\r\n");
    let endless = format!(
        "POST /v1development/profiles HTTP/1.1\r\n{PROTOBUF}Content-Length: {}\r\n\r\n",
        "9".repeat(30)
    );
    let chunk = format!(
        "POST /v1development/profiles HTTP/1.1\r\n{PROTOBUF}Transfer-Encoding: chunked\r\n\r\n1400001\r\n"
    );
    for request in [post(&compressed, &gzip(&large)), declared.into(), endless.into(), chunk.into()] {
        let answer = receiving.ask(&request);
        assert_eq!(answer.status, 413, "{answer:?}");
        assert!(answer.status_message().message.contains("too large"));
    }
    // With one byte less the body does not exceed the limit, whatever else is wrong with it.
    let answer = receiving.ask(&post(&compressed, &gzip(&large[1..])));
    assert!(!answer.status_message().message.contains("too large"));
}

#[test]
fn a_connection_is_kept_and_requests_may_follow_closely() {
    let receiving = Receiving::start();
    let mut stream = receiving.connect();
    let requests =
        [post(PROTOBUF, &body()), chunked(PROTOBUF, &body(), 50), post(PROTOBUF, b"\xff")].concat();
    stream.write_all(&requests).unwrap();
    let answers: Vec<_> = (0..3).map(|_| read_answer(&mut stream).status).collect();
    assert_eq!(answers, [200, 200, 400]);
    stream.write_all(&post(&format!("{PROTOBUF}Connection: close\r\n"), &body())).unwrap();
    let answer = read_answer(&mut stream);
    assert!(answer.status == 200 && answer.has("connection: close"));
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
}

#[test]
fn a_client_that_expects_100_continue_gets_it_or_an_error() {
    let receiving = Receiving::start();
    let head = |mime: &str| {
        format!(
            "POST /v1development/profiles HTTP/1.1\r\nHost: c\r\n{mime}Expect: 100-continue\r\n\
             Content-Length: {}\r\n\r\n",
            body().len()
        )
    };
    let mut stream = receiving.connect();
    stream.write_all(head(PROTOBUF).as_bytes()).unwrap();
    assert_eq!(read_answer(&mut stream).status, 100);
    stream.write_all(&body()).unwrap();
    assert_eq!(read_answer(&mut stream).status, 200);
    stream.write_all(head("Content-Type: text/html\r\n").as_bytes()).unwrap();
    let answer = read_answer(&mut stream);
    assert!(answer.status == 415 && answer.has("connection: close"), "{answer:?}");
}

#[test]
fn slow_clients_do_not_hold_up_others() {
    let receiving = Receiving::start();
    let mut slow: Vec<_> = (0..20).map(|_| receiving.connect()).collect();
    for stream in &mut slow {
        stream.write_all(b"POST /v1development/pro").unwrap();
    }
    assert_eq!(receiving.ask(&post(PROTOBUF, &body())).status, 200);
    // A connection that closes in the middle of a request leaves nothing behind.
    slow[0].shutdown(Shutdown::Both).unwrap();
    assert_eq!(receiving.ask(&post(PROTOBUF, &body())).status, 200);
}

#[test]
fn connections_beyond_the_limit_are_asked_to_retry() {
    let receiving = Receiving::start();
    let mut streams: Vec<_> = (0..128).map(|_| receiving.connect()).collect();
    let answer = read_answer(&mut receiving.connect());
    assert!(answer.status == 503 && answer.has("retry-after: 1"), "{answer:?}");
    streams[127].write_all(&post(PROTOBUF, &body())).unwrap();
    assert_eq!(read_answer(&mut streams[127]).status, 200);
}

#[test]
fn a_request_without_samples_is_taken_and_not_stored() {
    let receiving = Receiving::start();
    for (headers, body) in [(PROTOBUF, &b""[..]), (JSON, b"{}")] {
        assert_eq!(receiving.ask(&post(headers, body)).status, 200);
        let stored = receiving.stored.recv().unwrap();
        assert_eq!((stored.samples, stored.file), (0, None));
    }
    assert_eq!(receiving.files(), 0);
}

#[test]
fn a_folder_that_cannot_be_written_asks_the_sender_to_come_again() {
    let receiving = Receiving::start();
    std::fs::remove_dir_all(receiving.folder.path()).unwrap();
    let answer = receiving.ask(&post(PROTOBUF, &body()));
    assert!(answer.status == 503 && answer.status_message().code == 14, "{answer:?}");
}

#[test]
fn a_full_store_is_reported_once_until_it_changes() {
    let receiving = Receiving::start();
    for _ in 0..2 {
        std::fs::remove_dir_all(receiving.folder.path()).unwrap();
        for _ in 0..3 {
            assert_eq!(receiving.ask(&post(PROTOBUF, &body())).status, 503);
        }
        assert_eq!(receiving.failures.try_iter().collect::<Vec<_>>(), [ErrorKind::NotFound]);
        std::fs::write(receiving.folder.path(), "no folder").unwrap();
        assert_eq!(receiving.ask(&post(PROTOBUF, &body())).status, 503);
        assert_eq!(receiving.failures.try_iter().collect::<Vec<_>>(), [ErrorKind::NotADirectory]);
        std::fs::remove_file(receiving.folder.path()).unwrap();
        std::fs::create_dir(receiving.folder.path()).unwrap();
        assert_eq!(receiving.ask(&post(PROTOBUF, &body())).status, 200);
        assert_eq!(receiving.failures.try_iter().count(), 0);
    }
}

#[test]
fn the_command_says_that_nothing_can_be_stored() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    std::fs::create_dir(&out).unwrap();
    let mut command = otlpprof();
    command.args(["collect", "--listen", "127.0.0.1:0", "--out"]).arg(&out);
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
    let address = lines.next().unwrap().strip_prefix("listening on http://").unwrap().to_owned();
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), 0, "the probe leaves nothing behind");
    std::fs::remove_dir(&out).unwrap();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(&post(PROTOBUF, &body())).unwrap();
        assert_eq!(read_answer(&mut stream).status, 503);
    }
    // SAFETY: kill accesses no memory of ours. The child has not been waited for, so the process id is still
    // its own.
    unsafe { libc::kill(process.id().cast_signed(), libc::SIGTERM) };
    let stderr = String::from_utf8(process.wait_with_output().unwrap().stderr).unwrap();
    let start = format!("otlpprof: --output {}: cannot store a message: No such file", out.display());
    assert!(stderr.lines().count() == 1 && stderr.starts_with(&start), "{stderr}");
}

#[test]
fn stopping_closes_idle_connections_and_lets_requests_end() {
    let receiving = Receiving::start();
    let (mut idle, mut busy) = (receiving.connect(), receiving.connect());
    idle.write_all(&post(PROTOBUF, &body())).unwrap();
    assert_eq!(read_answer(&mut idle).status, 200);
    let request = post(&format!("{PROTOBUF}Expect: 100-continue\r\n"), &body());
    let (head, rest) = request.split_at(request.len() - body().len());
    busy.write_all(head).unwrap();
    assert_eq!(read_answer(&mut busy).status, 100);
    let stopping = std::thread::spawn(move || receiving.server.stop(AMPLE));
    assert_eq!(idle.read(&mut [0]).unwrap(), 0, "closed by the receiver");
    busy.write_all(rest).unwrap();
    let answer = read_answer(&mut busy);
    assert!(answer.status == 200 && answer.has("connection: close"), "{answer:?}");
    drop(busy);
    stopping.join().unwrap();
}

#[test]
fn the_command_prints_its_address_and_each_request_and_ends_at_a_signal() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = otlpprof();
        command.args(["collect", "--listen", "127.0.0.1:0", "--out"]).arg(folder.path());
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        let address = lines.next().unwrap().strip_prefix("listening on ").unwrap().to_owned();
        let uploader =
            Uploader::start(UploadConfig::new(Endpoint::base(&address).unwrap()), None, own_threads::spawn)
                .unwrap();
        uploader.submit(protobuf_message("shop"));
        assert_eq!(uploader.shutdown(AMPLE).sent.samples, 2);
        let line = lines.next().unwrap();
        assert!(line.starts_with("service=shop profiles=1 samples=7 bytes="), "{line}");
        let file = line.split_once("file=").unwrap().1;
        assert!(std::fs::read(file).is_ok_and(|bytes| !bytes.is_empty()), "{line}");
        // SAFETY: kill accesses no memory of ours. The child has not been waited for, so the process id is
        // still its own.
        unsafe { libc::kill(process.id().cast_signed(), signal) };
        assert!(process.wait().unwrap().success());
        assert_eq!(lines.next(), None);
    }
}

#[test]
fn an_unusable_address_or_folder_is_one_line() {
    let busy = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = busy.local_addr().unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing/deeper");
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    for (listen, out, printed) in [
        ("127.0.0.1:0", missing.as_path(), "missing/deeper: No such file or directory"),
        ("127.0.0.1:0", file.as_path(), "file: not a folder"),
        // A folder in which no user can create files.
        ("127.0.0.1:0", Path::new("/proc/self"), "--output /proc/self: no file can be created in it: "),
        (&address, folder.path(), "--listen"),
        ("nowhere", folder.path(), "--listen nowhere"),
    ] {
        let mut command = otlpprof();
        let output = command.args(["collect", "--listen", listen, "--out"]).arg(out).output().unwrap();
        let line = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), &b""[..]), "{line}");
        assert!(line.lines().count() == 1 && line.contains(printed), "{line}");
    }
}
