//! `otlpprof symbolize --listen … --forward …` between senders and a backend: what arrives has names, a full
//! queue is the sender's to retry, and what is lost is reported.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::file_server::Server;
use flate2::Compression;
use flate2::write::GzEncoder;
use otlpprof_otlp::read::{decode_json, decode_protobuf, read};
use otlpprof_otlp::to_json;
use otlpprof_otlp::wire::ProfilesData;
use otlpprof_testkit::binutils::linkage_tables;
use otlpprof_testkit::collector::Collector;
use otlpprof_testkit::commands::otlpprof;
use otlpprof_testkit::fault_server::{FaultServer, Step};
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::jdk::newest_or_all;
use otlpprof_testkit::otlp_fixture::Dictionary;
use otlpprof_testkit::profiles;
use otlpprof_testkit::stacks::{Stack, cpu_stacks};
use otlpprof_testkit::unnamed_frames::{
    Command, FrameForm, LIBRARY, Named, ProfiledObject, lines_of, message_of,
};
use prost::Message as _;

/// A running command that has printed the address at which it listens.
struct Listening {
    child: Child,
    address: String,
}

impl Listening {
    fn start(command: &Command, arguments: &[&str]) -> Self {
        let mut child = otlpprof()
            .args(arguments)
            .env("OTLPPROF_CACHE", command.path("cache"))
            .env("OTLPPROF_SYMBOLS", command.path("store"))
            .env_remove("DEBUGINFOD_URLS")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = lines.next().unwrap().unwrap();
        let address = line.strip_prefix("listening on http://").unwrap();
        Self { child, address: address.split(',').next().unwrap().to_owned() }
    }

    /// A filter in front of a backend.
    fn filter(command: &Command, backend: &str) -> Self {
        let objects = Path::new(LIBRARY).parent().unwrap().to_str().unwrap();
        Self::filter_with(command, backend, &["--path", objects])
    }

    /// A filter in front of a backend, which searches these places.
    fn filter_with(command: &Command, backend: &str, places: &[&str]) -> Self {
        let listen = ["symbolize", "--listen", "127.0.0.1:0", "--forward", backend];
        Self::start(command, &[&listen[..], places].concat())
    }

    /// Ends the command by SIGTERM. Returns its exit code and standard error.
    fn end(self) -> (i32, String) {
        // SAFETY: kill has no memory effects; the process is this test's own child and not waited for yet.
        unsafe { libc::kill(self.child.id().cast_signed(), libc::SIGTERM) };
        let output = self.child.wait_with_output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    }

    /// Posts a message. Returns the answer's status and head.
    fn post(&self, headers: &str, body: &[u8]) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let length = body.len();
        write!(
            stream,
            "POST /v1development/profiles HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\
             Content-Length: {length}\r\n\r\n"
        )
        .unwrap();
        stream.write_all(body).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let head = String::from_utf8_lossy(&answer).into_owned();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), head)
    }
}

/// A message with one frame, and its location.
fn message() -> (ProfilesData, i32) {
    let object = ProfiledObject::of(Path::new(LIBRARY), "/opt/libddproftest.so");
    let (start, _) = *otlpprof_testkit::debug_information::functions(Path::new(LIBRARY)).first().unwrap();
    let mut tables = Dictionary::new();
    let location = object.location(&mut tables, FrameForm::Agent, start);
    (message_of(tables, &[location]), location)
}

/// The message of a request's gzipped body.
fn decoded(body: &[u8]) -> ProfilesData {
    decode_protobuf(&unpacked(body)).unwrap().data
}

/// A request's gzipped body, decompressed.
fn unpacked(body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(body).read_to_end(&mut bytes).unwrap();
    bytes
}

const PROTOBUF: &str = "Content-Type: application/x-protobuf\r\n";

#[test]
fn messages_of_every_encoding_arrive_with_names_after_retries() {
    let command = Command::new();
    let backend = FaultServer::start([Step::status(503), Step::Reset, Step::status(200)]);
    let filter = Listening::filter(&command, &format!("http://{}", backend.address));
    let (message, location) = message();
    let protobuf = message.encode_to_vec();
    let json = to_json(&protobuf).unwrap();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(&protobuf).unwrap();
    let requests = [
        (PROTOBUF.to_owned(), protobuf),
        ("Content-Type: application/json\r\n".to_owned(), json),
        (format!("{PROTOBUF}Content-Encoding: gzip\r\n"), gzip.finish().unwrap()),
    ];
    for (headers, body) in &requests {
        let (status, answer) = filter.post(headers, body);
        assert_eq!(status, 200, "{answer}");
    }
    let arrived = (0..requests.len() + 2).map(|_| backend.request()).collect::<Vec<_>>();
    for request in &arrived {
        let arrived = decoded(&request.body);
        assert!(!lines_of(&arrived, location).is_empty());
        assert_eq!(arrived.resource_profiles, message.resource_profiles);
    }
    // A request that is none is refused, and not forwarded.
    assert_eq!(filter.post(PROTOBUF, b"\xff\xff").0, 400);
    assert_eq!(filter.post("Content-Type: text/plain\r\n", b"").0, 415);
    let (code, stderr) = filter.end();
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("3 messages forwarded\n"), "{stderr}");
    assert!(stderr.contains("3 of 3 native frames resolved"), "{stderr}");
    assert_eq!(backend.further_requests(), 0);
}

/// Regression: a sample without values resembles one of OTLP 1.9 in protobuf, so that the backend refused the
/// message, which was lost.
#[test]
fn a_json_message_that_protobuf_cannot_carry_arrives_as_json() {
    let command = Command::new();
    let backend = FaultServer::start([Step::status(200)]);
    let filter = Listening::filter(&command, &format!("http://{}", backend.address));
    let (mut message, location) = message();
    let profile = &mut message.resource_profiles[0].scope_profiles[0].profiles[0];
    let sample = &mut profile.samples[0];
    (sample.values, sample.attribute_indices) = (Vec::new(), vec![1]);
    let protobuf = message.encode_to_vec();
    assert!(decode_protobuf(&protobuf).is_err());
    let (status, answer) = filter.post("Content-Type: application/json\r\n", &to_json(&protobuf).unwrap());
    assert_eq!(status, 200, "{answer}");
    let arrived = backend.request();
    assert_eq!(arrived.header("content-type"), ["application/json"]);
    let arrived = decode_json(&unpacked(&arrived.body)).unwrap().data;
    assert!(!lines_of(&arrived, location).is_empty());
    assert_eq!(arrived.resource_profiles, message.resource_profiles);
    let (code, stderr) = filter.end();
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("1 messages forwarded\n"), "{stderr}");
}

/// The lines of a message's locations with a mapping.
fn lines_of_mapped(message: &ProfilesData) -> Vec<Vec<Named>> {
    let locations = (0..).zip(&message.dictionary.as_ref().unwrap().location_table);
    let mapped = locations.filter(|(_, location)| location.mapping_index > 0);
    mapped.map(|(index, _)| lines_of(message, index)).collect()
}

/// OpenTelemetry's collector decodes the messages, and writes them with the names.
#[test]
fn a_real_collector_writes_the_names() {
    let Some(collector) = Collector::start() else { return };
    let command = Command::new();
    let filter = Listening::filter(&command, &collector.endpoint());
    let protobuf = message().0.encode_to_vec();
    let json = to_json(&protobuf).unwrap();
    let requests = [(PROTOBUF, protobuf), ("Content-Type: application/json\r\n", json)];
    for (headers, body) in &requests {
        let (status, answer) = filter.post(headers, body);
        assert_eq!(status, 200, "{answer}");
    }
    let (code, stderr) = filter.end();
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("2 messages forwarded\n"), "{stderr}");
    let object = Path::new(LIBRARY);
    let (start, _) = *otlpprof_testkit::debug_information::functions(object).first().unwrap();
    for written in collector.files() {
        let messages = read(&written).map(|message| message.unwrap().data);
        let lines: Vec<_> = messages.flat_map(|message| lines_of_mapped(&message)).collect();
        assert_eq!(lines.len(), requests.len(), "a frame of each message");
        for chain in &lines {
            let functions: Vec<_> = chain.iter().map(|(_, function, ..)| function.clone()).collect();
            let has_line = chain.iter().all(|(_, _, file, line, _)| !file.is_empty() && *line > 0);
            assert!(has_line, "{chain:?}");
            assert_eq!(functions.last(), symbol_at(object, start).as_ref(), "{chain:?}");
        }
    }
}

/// The name of the function that begins at an address, by nm.
fn symbol_at(object: &Path, address: u64) -> Option<String> {
    let output = std::process::Command::new("nm").arg("--defined-only").arg(object).output().unwrap();
    let listing = String::from_utf8(output.stdout).unwrap();
    let start = format!("{address:016x}");
    let of_line = |line: &str| {
        let mut words = line.split(' ');
        let is_there = words.next() == Some(&start) && matches!(words.next(), Some("T" | "t"));
        is_there.then(|| words.next().map(str::to_owned)).flatten()
    };
    listing.lines().find_map(of_line)
}

#[test]
fn a_full_queue_is_the_senders_to_retry_and_losses_are_reported() {
    let command = Command::new();
    // Nobody listens at this address any more.
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let filter = Listening::filter(&command, &format!("http://{gone}"));
    let body = message().0.encode_to_vec();
    let mut accepted = 0;
    let answer = loop {
        let (status, answer) = filter.post(PROTOBUF, &body);
        if status != 200 {
            break answer;
        }
        accepted += 1;
        assert!(accepted < 10_000, "no bound");
    };
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("Retry-After: "), "{answer}");
    assert!(accepted > 0);
    let (code, stderr) = filter.end();
    assert_eq!(code, 1, "{stderr}");
    let line = stderr.lines().find(|line| line.contains("messages forwarded")).unwrap();
    let numbers = line.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse::<u32>().ok());
    let numbers: Vec<_> = numbers.collect();
    assert_eq!(numbers[0], 0, "{line}");
    assert_eq!(numbers[1..].iter().sum::<u32>(), accepted, "{line}");
}

/// The filter waits for a server that never answers. At its end, it sends what it has received all the same.
#[test]
fn messages_that_wait_for_a_silent_server_arrive_without_names() {
    let command = Command::new();
    let backend = FaultServer::start([Step::status(200)]);
    let asked = Arc::new(AtomicBool::new(false));
    let is_asked = Arc::clone(&asked);
    let silent = Server::start(move |_| {
        is_asked.store(true, Ordering::Relaxed);
        None
    });
    let places = ["--not-this-machine", "--debuginfod", &silent.url];
    let filter = Listening::filter_with(&command, &format!("http://{}", backend.address), &places);
    let (message, _) = message();
    for _ in 0..3 {
        let (status, answer) = filter.post(PROTOBUF, &message.encode_to_vec());
        assert_eq!(status, 200, "{answer}");
    }
    while !asked.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(10));
    }
    let (code, stderr) = filter.end();
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("3 messages forwarded\n"), "{stderr}");
    for _ in 0..3 {
        assert_eq!(decoded(&backend.request().body), message);
    }
}

#[test]
fn mistakes_have_one_line() {
    let command = Command::new();
    for (arguments, expected) in [
        (&["symbolize", "--listen", "127.0.0.1:0", "--forward", "ftp://x"][..], "--forward"),
        (&["symbolize", "--listen", "nowhere", "--forward", "http://127.0.0.1:1"], "--listen nowhere"),
        (&["symbolize", "--listen", "127.0.0.1:0"], "--forward"),
        (&["symbolize", "--forward", "http://127.0.0.1:1", "x", "-o", "y"], "cannot be used with"),
        (&["symbolize"], "required"),
        (&["symbolize", "-o", "x", "--path", "/does/not/exist", "y"], "/does/not/exist"),
    ] {
        let mut failed = command.prepared();
        let output = failed.args(arguments).assert().code(2).get_output().clone();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
    }
}

#[test]
fn a_real_agents_messages_are_collected_with_names() {
    for home in newest_or_all() {
        let command = Command::new();
        let out = command.path("collected");
        std::fs::create_dir(&out).unwrap();
        let collect = ["collect", "--listen", "127.0.0.1:0", "--out", out.to_str().unwrap()];
        let collector = Listening::start(&command, &collect);
        let filter = Listening::filter(&command, &format!("http://{}", collector.address));
        let options =
            format!("remotesym=true,cpu=1ms,interval=500ms,file=FILE,endpoint=http://{}", filter.address);
        let run = JavaRun::new(&home, "Demo").argument(1.5).agent(&options).run().expect_success();
        let label = run.label.clone();
        // The first messages wait until the libraries' indexes are made.
        let sent = run.messages().len();
        let arrived = || std::fs::read_dir(&out).unwrap().count();
        let give_up = Instant::now() + Duration::from_secs(240);
        while arrived() < sent && Instant::now() < give_up {
            std::thread::sleep(Duration::from_millis(50));
        }
        let (code, stderr) = filter.end();
        assert_eq!(code, 0, "{label}: {stderr}");
        assert_eq!(collector.end().0, 0, "{label}");
        let mut files: Vec<_> = std::fs::read_dir(&out).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        let collected: Vec<_> = files.iter().flat_map(|file| profiles::messages(file)).collect();
        assert_eq!(collected.len(), sent, "{label}: {stderr}");
        let (before, after) = (cpu_stacks(&run.messages()), cpu_stacks(&collected));
        let values = |stacks: &[Stack]| stacks.iter().map(|stack| stack.value).sum::<i64>();
        assert_eq!(values(&before), values(&after), "{label}");
        let linkage_tables = linkage_tables(LIBRARY);
        let remote = |stacks: &[Stack]| {
            let frames = stacks.iter().flat_map(|stack| stack.frames.iter());
            let remote = frames.filter(|frame| frame.object == LIBRARY && frame.name.is_empty());
            let has_symbol = |address| !linkage_tables.iter().any(|table| table.contains(address));
            remote.filter(|frame| has_symbol(&frame.address)).count()
        };
        assert!(remote(&before) > 0, "{label}");
        assert_eq!(remote(&after), 0, "{label}: {stderr}");
    }
}
