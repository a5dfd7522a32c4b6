//! Uploads to collectors that misbehave: which messages are retried, and that every message is counted once.

use std::io::Read;
use std::net::TcpListener;
use std::time::Duration;

use otlpprof_export::stats::{Fate, Loss, Tally, UploadStats};
use otlpprof_export::upload::{Compression, ConfigError, RetryPolicy, Room, Splitter};
use otlpprof_export::{ContentType, Endpoint, OutgoingMessage, UploadConfig, Uploader};
use otlpprof_otlp::read::decode_json;
use otlpprof_otlp::{Format, halve};
use otlpprof_sampling::own_threads;
use otlpprof_testkit::fault_server::{FaultServer, Step, message};
use otlpprof_testkit::small_profile::{FlatSample, flatten, json_message};
use otlpprof_testkit::warnings::{keep_warnings, warnings_with};

/// More time than any passing test needs.
const AMPLE: Duration = Duration::from_secs(120);

/// A configuration that retries without delay, for as long as a test may take.
fn config(endpoint: Endpoint) -> UploadConfig {
    let retry = RetryPolicy { initial: Duration::ZERO, longest: Duration::ZERO, total: AMPLE };
    UploadConfig { retry, timeout: AMPLE, ..UploadConfig::new(endpoint) }
}

fn start(server: &FaultServer) -> Uploader {
    Uploader::start(config(server.endpoint()), None, own_threads::spawn).unwrap()
}

fn tally(messages: u64, samples: u64, bytes: u64) -> Tally {
    Tally { messages, samples, bytes }
}

/// Uploads one message of 10 bytes and 3 samples to a server with these steps. Returns the final counters and
/// the number of requests that the server received.
fn upload_one(steps: Vec<Step>) -> (UploadStats, usize) {
    let server = FaultServer::start(steps);
    let uploader = start(&server);
    uploader.submit(message(10, 3));
    let stats = uploader.shutdown(AMPLE);
    assert_eq!(stats.accounted(), stats.submitted);
    assert_eq!(stats.pending, Tally::default());
    (stats, server.further_requests())
}

fn assert_lost(stats: &UploadStats, loss: Loss, expected: Tally) {
    for other in Loss::ALL {
        let expected = if other == loss { expected } else { Tally::default() };
        assert_eq!(stats.lost(other), expected, "{}", other.name());
    }
}

#[test]
fn a_request_follows_the_specification() {
    let server = FaultServer::start([]);
    let mut config = config(server.endpoint());
    config.headers = vec![("X-Tenant".to_owned(), " blue ".to_owned())];
    let uploader = Uploader::start(config, None, own_threads::spawn).unwrap();
    uploader.submit(message(5_000, 3));
    let request = server.request();
    assert_eq!(request.line, "POST /v1development/profiles HTTP/1.1");
    for (name, value) in [
        ("content-type", "application/x-protobuf"),
        ("content-encoding", "gzip"),
        ("otlp-profiles-development-version", "1"),
        ("user-agent", concat!("otlpprof/", env!("CARGO_PKG_VERSION"))),
        ("x-tenant", "blue"),
        ("host", &server.address.to_string()),
    ] {
        assert_eq!(request.header(name), [value], "{name}");
    }
    let mut body = Vec::new();
    flate2::read::GzDecoder::new(&request.body[..]).read_to_end(&mut body).unwrap();
    assert_eq!(body, [7; 5_000]);
    let stats = uploader.shutdown(AMPLE);
    assert_eq!(stats.sent, tally(1, 3, 5_000));
    assert_eq!(stats.accounted(), stats.submitted);
    assert_eq!((stats.retries, stats.wire_bytes), (0, request.body.len() as u64));
}

#[test]
fn json_goes_uncompressed_where_that_is_asked_for() {
    let server = FaultServer::start([]);
    let mut config = config(Endpoint::signal(&format!("http://{}/my/path", server.address)).unwrap());
    config.compression = Compression::None;
    let uploader = Uploader::start(config, None, own_threads::spawn).unwrap();
    uploader.submit(OutgoingMessage { body: b"{}".to_vec(), content_type: ContentType::Json, samples: 0 });
    let request = server.request();
    assert_eq!(request.line, "POST /my/path HTTP/1.1");
    assert_eq!(request.header("content-type"), ["application/json"]);
    assert!(request.header("content-encoding").is_empty());
    assert_eq!(request.body, b"{}");
    assert_eq!(uploader.shutdown(AMPLE).sent, tally(1, 0, 2));
}

#[test]
fn the_four_retryable_statuses_are_retried() {
    let (stats, requests) = upload_one([429, 502, 503, 504].map(Step::status).to_vec());
    assert_eq!((stats.sent, stats.retries, requests), (tally(1, 3, 10), 4, 5));
}

#[test]
fn no_other_status_is_retried() {
    for status in [400, 401, 403, 404, 405, 415, 500, 501, 505] {
        let (stats, requests) = upload_one(vec![Step::status(status)]);
        assert_lost(&stats, Loss::Refused, tally(1, 3, 10));
        assert_eq!((stats.lost_by(Fate::Rejected), stats.retries, requests), (tally(1, 3, 10), 0, 1));
    }
}

#[test]
fn broken_connections_are_retried() {
    let half = b"HTTP/1.1 200 OK\r\nContent-Le";
    let (stats, requests) = upload_one(vec![Step::Reset, Step::Raw(b""), Step::Raw(half), Step::Reset]);
    assert_eq!((stats.sent, stats.retries, requests), (tally(1, 3, 10), 4, 5));
}

#[test]
fn an_answer_that_is_not_http_is_not_retried() {
    let (stats, requests) = upload_one(vec![Step::Raw(b"220 mail.example.com ESMTP\r\n\r\n")]);
    assert_lost(&stats, Loss::Protocol, tally(1, 3, 10));
    assert_eq!(requests, 1);
}

#[test]
fn an_attempt_that_takes_too_long_is_repeated() {
    let server = FaultServer::start([Step::Hang]);
    let mut config = config(server.endpoint());
    config.timeout = Duration::from_millis(200);
    let uploader = Uploader::start(config, None, own_threads::spawn).unwrap();
    uploader.submit(message(10, 3));
    server.request();
    server.request();
    let stats = uploader.shutdown(AMPLE);
    assert_eq!(stats.sent, tally(1, 3, 10));
    assert!(stats.retries >= 1);
}

#[test]
fn retries_end() {
    let server = FaultServer::start(vec![Step::status(503); 1_000]);
    let mut config = config(server.endpoint());
    config.retry.total = Duration::ZERO;
    let uploader = Uploader::start(config, None, own_threads::spawn).unwrap();
    uploader.submit(message(10, 3));
    uploader.submit(message(20, 4));
    let stats = uploader.shutdown(AMPLE);
    assert_lost(&stats, Loss::RetriesExhausted, tally(2, 7, 30));
    assert_eq!(server.further_requests(), 2);
}

#[test]
fn retry_after_comes_before_the_backoff() {
    let hour = Duration::from_secs(3_600);
    for header in ["Retry-After: 0\r\n", "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n"] {
        let server = FaultServer::start([Step::protobuf(429, header, b"")]);
        let mut config = config(server.endpoint());
        config.retry = RetryPolicy { initial: hour, longest: hour, total: 3 * hour };
        let uploader = Uploader::start(config, None, own_threads::spawn).unwrap();
        uploader.submit(message(10, 3));
        // With the configured backoff of an hour there would be no second request.
        server.request();
        server.request();
        let stats = uploader.shutdown(AMPLE);
        assert_eq!((stats.sent, stats.retries), (tally(1, 3, 10), 1));
    }
}

#[test]
fn retry_after_holds_back_all_messages() {
    for header in ["Retry-After: 3600\r\n", "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT\r\n"] {
        let server = FaultServer::start([Step::protobuf(503, header, b"")]);
        let uploader = start(&server);
        uploader.submit(message(10, 3));
        uploader.submit(message(20, 4));
        server.request();
        // Both messages have to wait, and the shutdown does not wait for them.
        let stats = uploader.shutdown(AMPLE);
        assert_lost(&stats, Loss::ShutDown, tally(2, 7, 30));
        assert_eq!(server.further_requests(), 0);
    }
}

#[test]
fn a_message_outlives_a_retry_after_beyond_the_time_of_retries() {
    // The time of retries is shorter than the delay that the server requests, and longer than an exchange
    // takes. On a busy machine an exchange may take longer than the shortest of these.
    for (total_ms, header) in
        [(500, "Retry-After: 1\r\n"), (4_000, "Retry-After: 5\r\n"), (29_000, "Retry-After: 30\r\n")]
    {
        let server = FaultServer::start([Step::protobuf(429, header, b"")]);
        let mut config = config(server.endpoint());
        config.retry.total = Duration::from_millis(total_ms);
        let uploader = Uploader::start(config, None, own_threads::spawn).unwrap();
        uploader.submit(message(10, 3));
        while uploader.stats().pending != Tally::default() {
            std::thread::sleep(Duration::from_millis(10));
        }
        let stats = uploader.shutdown(AMPLE);
        if stats.lost(Loss::RetriesExhausted) == Tally::default() {
            assert_eq!((stats.sent, stats.retries), (tally(1, 3, 10), 1));
            assert_eq!(server.further_requests(), 2);
            return;
        }
    }
    panic!("the message was given up each time");
}

#[test]
fn spare_capacity_of_a_body_takes_no_room_in_the_queue() {
    let server = FaultServer::start([]);
    let mut config = config(server.endpoint());
    config.queue_bytes = 1_000;
    let uploader = Uploader::start(config, None, own_threads::spawn).unwrap();
    let mut grown = message(900, 3);
    grown.body.reserve_exact(10_000);
    uploader.submit(grown);
    assert_eq!(uploader.shutdown(AMPLE).sent, tally(1, 3, 900));
}

#[test]
fn messages_of_more_than_the_queue_holds_arrive_one_after_the_other() {
    let server = FaultServer::start([]);
    let mut config = config(server.endpoint());
    config.queue_bytes = 1_000;
    let uploader = Uploader::start(config, None, own_threads::spawn).unwrap();
    for _ in 0..20 {
        assert_eq!(uploader.wait_for_room(900, AMPLE), Room::Free);
        uploader.submit(message(900, 1));
    }
    assert_eq!(uploader.wait_for_room(1_001, AMPLE), Room::Hopeless);
    assert_eq!(uploader.shutdown(AMPLE).sent, tally(20, 20, 20 * 900));
}

#[test]
fn no_thread_waits_for_room_if_the_collector_takes_nothing() {
    let server = FaultServer::start([Step::protobuf(503, "Retry-After: 3600\r\n", b"")]);
    let mut config = config(server.endpoint());
    config.queue_bytes = 1_000;
    let uploader = Uploader::start(config, None, own_threads::spawn).unwrap();
    uploader.submit(message(900, 1));
    assert_eq!(uploader.wait_for_room(900, AMPLE), Room::Hopeless);
    let silent = FaultServer::start([Step::Hang]);
    let uploader = start(&silent);
    uploader.submit(message(1, 1));
    silent.request();
    uploader.submit(message(32 << 20 >> 1, 1));
    assert_eq!(uploader.wait_for_room(32 << 20 >> 1, Duration::ZERO), Room::NotYet);
    uploader.shutdown(Duration::ZERO);
    assert_eq!(uploader.wait_for_room(1, AMPLE), Room::Free);
}

#[test]
fn a_partial_success_is_recorded_and_never_retried() {
    // Decoded: partial_success { rejected_profiles: 2, error_message: "too old" }.
    let body = b"\x0a\x0b\x08\x02\x12\x07too old";
    let server = FaultServer::start([Step::protobuf(200, "", body), Step::status(200)]);
    let uploader = start(&server);
    uploader.submit(message(10, 3));
    uploader.submit(message(10, 3));
    let stats = uploader.shutdown(AMPLE);
    assert_eq!((stats.sent, stats.retries), (tally(1, 3, 10), 0));
    assert_lost(&stats, Loss::RejectedInPart, tally(1, 3, 10));
    assert_eq!(stats.lost_by(Fate::Rejected), tally(1, 3, 10));
    assert_eq!(stats.accounted(), stats.submitted);
    assert_eq!((stats.partial_answers, stats.partial_rejected_profiles), (1, 2));
    let partial = stats.last_partial.unwrap();
    assert_eq!((partial.rejected_profiles, partial.error_message.as_str()), (2, "too old"));
    assert_eq!(server.further_requests(), 2);
}

#[test]
fn a_warning_without_anything_rejected_is_a_success() {
    // Decoded: partial_success { error_message: "deprecated" }.
    let (stats, _) = upload_one(vec![Step::protobuf(200, "", b"\x0a\x0c\x12\x0adeprecated")]);
    assert_eq!((stats.sent, stats.partial_answers), (tally(1, 3, 10), 1));
}

/// Regression: a message that was answered by a proxy's login page, for example, was counted as delivered.
#[test]
fn a_success_that_is_no_answer_of_otlp_is_a_failure() {
    keep_warnings();
    let page = b"<!DOCTYPE html><html><title>Sign in</title></html>".to_vec();
    for (mime, body, what) in [
        ("text/html; charset=utf-8", page.clone(), "text/html"),
        ("text/plain", b"OK".to_vec(), "text/plain"),
        ("", b"OK".to_vec(), "a body without a content type"),
        ("application/json", page.clone(), "application/json that cannot be decoded"),
        ("application/json", b"[]".to_vec(), "application/json that cannot be decoded"),
        ("application/x-protobuf", page, "application/x-protobuf that cannot be decoded"),
    ] {
        for status in [200, 202] {
            let server = FaultServer::start([Step::Answer(status, "", mime, body.clone())]);
            let uploader = start(&server);
            uploader.submit(message(10, 3));
            let stats = uploader.shutdown(AMPLE);
            assert_lost(&stats, Loss::NotOtlp, tally(1, 3, 10));
            assert_eq!((stats.lost_by(Fate::Rejected), stats.retries), (tally(1, 3, 10), 0));
            let lines = warnings_with(&server.address.to_string());
            let says = format!("answered {status} with {what}");
            assert!(lines.len() == 1 && lines[0].contains(&says), "{says}: {lines:?}");
        }
    }
    for (mime, body) in [
        ("text/html", &b""[..]),
        ("application/json; charset=utf-8", b"{}"),
        ("application/json", b"{\"partialSuccess\":{}}"),
        ("application/x-protobuf", b"\x0a\x00"),
        ("application/protobuf", b"\x0a\x00"),
    ] {
        let (stats, _) = upload_one(vec![Step::Answer(200, "", mime, body.to_vec())]);
        assert_eq!(stats.sent, tally(1, 3, 10), "{mime}");
    }
}

/// The samples of each part of a message that is halved.
const SAMPLES_OF_PART: u64 = 4;

/// Halves a message, down to parts of 10 bytes.
fn halves() -> Option<Splitter> {
    Some(Box::new(|body: &[u8], _| {
        let (first, second) = body.split_at(body.len() / 2);
        (first.len() >= 10).then(|| [(first.to_vec(), SAMPLES_OF_PART), (second.to_vec(), SAMPLES_OF_PART)])
    }))
}

#[test]
fn a_message_over_the_limit_is_split_until_it_fits() {
    let status = Step::protobuf(400, "", b"\x08\x03\x12\x21http: request body size too large");
    for refusal in [Step::status(413), status] {
        let server = FaultServer::start([refusal.clone(), refusal.clone()]);
        let mut config = config(server.endpoint());
        config.compression = Compression::None;
        let uploader = Uploader::start(config, halves(), own_threads::spawn).unwrap();
        uploader.submit(message(40, 9));
        let stats = uploader.shutdown(AMPLE);
        let sizes: Vec<_> = (0..5).map(|_| server.request().body.len()).collect();
        assert_eq!(sizes, [40, 20, 10, 10, 20]);
        assert_eq!(stats.submitted, tally(5, 9 + 4 * SAMPLES_OF_PART, 40 + 40 + 20));
        assert_eq!(stats.split, tally(2, 9 + SAMPLES_OF_PART, 40 + 20));
        assert_eq!(stats.sent, tally(3, 3 * SAMPLES_OF_PART, 40));
        assert_eq!(stats.accounted(), stats.submitted);
        assert_eq!(server.further_requests(), 0);
    }
}

/// The message has two samples. Only the sample that the server also rejects alone is lost.
#[test]
fn a_json_message_that_is_too_large_is_halved_and_each_sample_counted() {
    let server = FaultServer::start([Step::status(413), Step::status(413)]);
    let mut config = config(server.endpoint());
    config.compression = Compression::None;
    let splitter: Splitter = Box::new(|body: &[u8], content_type| {
        assert_eq!(content_type, ContentType::Json);
        halve(body, Format::Json)
    });
    let uploader = Uploader::start(config, Some(splitter), own_threads::spawn).unwrap();
    let whole = json_message("halved");
    uploader.submit(whole.clone());
    let stats = uploader.shutdown(AMPLE);
    let requests = [server.request(), server.request(), server.request()];
    assert!(requests.iter().all(|request| request.header("content-type") == ["application/json"]));
    let [all, first, second] = requests.map(|request| request.body);
    assert_eq!(all, whole.body);
    // Each half is a separate profile.
    let samples = |body: &[u8]| -> Vec<_> {
        let samples = flatten(&decode_json(body).unwrap().data).into_iter();
        samples.map(|sample| FlatSample { profile_id: Vec::new(), ..sample }).collect()
    };
    let [lost, sent] = [&first, &second].map(|body| samples(body));
    assert_eq!((lost.len(), sent.len()), (1, 1));
    assert_eq!([lost, sent].concat(), samples(&all));
    assert_lost(&stats, Loss::TooLarge, tally(1, 1, first.len() as u64));
    assert_eq!(stats.sent, tally(1, 1, second.len() as u64));
    assert_eq!(stats.split, tally(1, 2, all.len() as u64));
    assert_eq!(stats.accounted(), stats.submitted);
    assert_eq!(server.further_requests(), 0);
}

#[test]
fn a_message_that_cannot_be_split_is_rejected() {
    let same: Option<Splitter> =
        Some(Box::new(|body: &[u8], _| Some([(body.to_vec(), 1), (body.to_vec(), 2)])));
    for splitter in [None, same, halves()] {
        let server = FaultServer::start([Step::status(413)]);
        let uploader = Uploader::start(config(server.endpoint()), splitter, own_threads::spawn).unwrap();
        uploader.submit(message(19, 3));
        let stats = uploader.shutdown(AMPLE);
        assert_lost(&stats, Loss::TooLarge, tally(1, 3, 19));
        assert_eq!(stats.split, Tally::default());
        assert_eq!(server.further_requests(), 1);
    }
}

#[test]
fn a_message_known_to_be_too_large_is_split_before_it_is_sent() {
    let server = FaultServer::start([]);
    let mut config = config(server.endpoint());
    config.compression = Compression::None;
    config.max_request_bytes = 20;
    let uploader = Uploader::start(config, halves(), own_threads::spawn).unwrap();
    uploader.submit(message(40, 9));
    let stats = uploader.shutdown(AMPLE);
    assert_eq!([server.request(), server.request()].map(|request| request.body.len()), [20, 20]);
    let sent = tally(2, 2 * SAMPLES_OF_PART, 40);
    assert_eq!((stats.split, stats.sent, stats.wire_bytes), (tally(1, 9, 40), sent, 40));
}

#[test]
fn a_splitter_that_panics_costs_its_message_only() {
    let server = FaultServer::start([Step::status(413)]);
    let splitter: Splitter = Box::new(|_, _| panic!("this panic is part of a test"));
    let uploader = Uploader::start(config(server.endpoint()), Some(splitter), own_threads::spawn).unwrap();
    uploader.submit(message(10, 3));
    uploader.submit(message(20, 4));
    let stats = uploader.shutdown(AMPLE);
    assert_lost(&stats, Loss::Protocol, tally(1, 3, 10));
    assert_eq!(stats.sent, tally(1, 4, 20));
}

#[test]
fn redirects_are_not_followed() {
    let target = TcpListener::bind("127.0.0.1:0").unwrap();
    target.set_nonblocking(true).unwrap();
    let location = format!("Location: http://{}/\r\n", target.local_addr().unwrap());
    for status in [301, 302, 303, 307, 308] {
        let (stats, requests) = upload_one(vec![Step::protobuf(status, location.clone().leak(), b"")]);
        assert_lost(&stats, Loss::Redirected, tally(1, 3, 10));
        assert_eq!(requests, 1);
        assert!(target.accept().is_err(), "{status} was followed");
    }
}

#[test]
fn submitting_never_waits_and_the_oldest_goes() {
    let server = FaultServer::start(vec![Step::Hang; 10]);
    let mut config = config(server.endpoint());
    config.queue_messages = 4;
    let uploader = Uploader::start(config, None, own_threads::spawn).unwrap();
    uploader.submit(message(1, 1));
    server.request();
    for samples in 2..=9 {
        uploader.submit(message(samples as usize, samples));
    }
    // Every call of submit has returned, although the server still holds the first message.
    assert_eq!(server.held(), 1);
    let stats = uploader.stats();
    // Being sent: 1. Waiting: 7, 8, 9. Dropped: 2 to 6.
    assert_eq!(stats.pending, tally(4, 25, 25));
    assert_lost(&stats, Loss::QueueFull, tally(5, 20, 20));
    assert_eq!(stats.accounted(), stats.submitted);
    // The shutdown does not wait for the server either.
    let stats = uploader.shutdown(Duration::ZERO);
    assert_eq!(server.held(), 1);
    assert_eq!(stats.pending, Tally::default());
    assert_eq!(stats.lost(Loss::ShutDown), tally(4, 25, 25));
    assert_eq!(stats.lost_by(Fate::Dropped), tally(5, 20, 20));
    assert_eq!(stats.accounted(), stats.submitted);
    // Messages after the shutdown are dropped, and counted too.
    uploader.submit(message(10, 10));
    assert_eq!(uploader.stats().lost(Loss::Closed), tally(1, 10, 10));
    assert_eq!(uploader.stats().accounted(), uploader.stats().submitted);
}

#[test]
fn memory_is_bounded_by_bytes() {
    let server = FaultServer::start([Step::Hang]);
    let mut config = config(server.endpoint());
    config.queue_bytes = 100;
    let uploader = Uploader::start(config, None, own_threads::spawn).unwrap();
    uploader.submit(message(10, 1));
    server.request();
    for bytes in [40, 40, 20, 101] {
        uploader.submit(message(bytes, 1));
    }
    let stats = uploader.stats();
    assert_eq!(stats.pending, tally(3, 3, 10 + 40 + 20));
    assert_lost(&stats, Loss::QueueFull, tally(2, 2, 40 + 101));
}

/// An endpoint at which no server listens. No program is given a port below 1024 by chance.
fn dead_endpoint() -> Endpoint {
    Endpoint::base("http://127.0.0.1:1").unwrap()
}

#[test]
fn a_dead_collector_is_given_up_at_shutdown_without_waiting() {
    let uploader = Uploader::start(config(dead_endpoint()), None, own_threads::spawn).unwrap();
    for _ in 0..10 {
        uploader.submit(message(10, 3));
    }
    // The deadline is later than any test may take.
    let stats = uploader.shutdown(Duration::MAX);
    assert_lost(&stats, Loss::ShutDown, tally(10, 30, 100));
    assert_eq!(stats.accounted(), stats.submitted);
}

#[test]
fn a_dead_collector_is_retried_as_long_as_the_policy_says() {
    let mut config = config(dead_endpoint());
    config.retry.total = Duration::ZERO;
    let uploader = Uploader::start(config, None, own_threads::spawn).unwrap();
    uploader.submit(message(10, 3));
    while uploader.stats().pending != Tally::default() {
        std::thread::yield_now();
    }
    assert_lost(&uploader.stats(), Loss::RetriesExhausted, tally(1, 3, 10));
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let with = |name: &str, value: &str| {
        let mut config = config(dead_endpoint());
        config.headers = vec![(name.to_owned(), value.to_owned())];
        Uploader::start(config, None, own_threads::spawn).unwrap_err()
    };
    for (name, value) in [("a b", "x"), ("", "x"), ("a", "x\r\nb: y"), ("a", "\u{7f}secret")] {
        let error = with(name, value);
        assert!(matches!(&error, ConfigError::Header { .. } | ConfigError::HeaderName), "{error}");
        assert!(!error.to_string().contains("secret"));
    }
    for name in ["Content-Type", "otlp-profiles-development-version", "host"] {
        assert!(matches!(with(name, "x"), ConfigError::ReservedHeader { .. }));
    }
}

#[test]
#[cfg(not(feature = "tls"))]
fn a_build_without_tls_says_so() {
    let error = Uploader::start(config(Endpoint::base("https://c:4318").unwrap()), None, own_threads::spawn)
        .unwrap_err();
    assert!(matches!(error, ConfigError::NoTls { .. }));
}

#[test]
fn the_exporters_thread_takes_no_signals() {
    let server = FaultServer::start([Step::Hang]);
    let uploader = start(&server);
    uploader.submit(message(10, 3));
    server.request();
    let masks: Vec<u64> = std::fs::read_dir("/proc/self/task")
        .unwrap()
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("status")).ok())
        .filter(|status| status.starts_with("Name:\totlpprof-export\n"))
        .map(|status| {
            let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
            u64::from_str_radix(mask.trim(), 16).unwrap()
        })
        .collect();
    assert!(!masks.is_empty());
    // Threads of other tests are among these. A thread that is ending also blocks the signals of faults; the
    // unit test of `own_threads` covers those.
    for mask in masks {
        assert!([libc::SIGPROF, libc::SIGVTALRM, libc::SIGRTMIN()].iter().all(|s| mask & 1 << (s - 1) != 0));
    }
}

#[test]
fn each_kind_of_failure_is_logged_once() {
    // Other tests of this process also log. The address identifies a line's test.
    keep_warnings();
    let refusal = Step::protobuf(403, "", b"\x12\x0ano\nlicense");
    let steps = [Step::status(503), Step::status(503), refusal.clone(), refusal.clone(), refusal];
    let server = FaultServer::start(steps);
    let uploader = start(&server);
    for _ in 0..3 {
        uploader.submit(message(10, 3));
    }
    let stats = uploader.shutdown(AMPLE);
    assert_lost(&stats, Loss::Refused, tally(3, 9, 30));
    let lines = warnings_with(&server.address.to_string());
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains("answered 503"), "{lines:?}");
    assert!(lines[1].contains("answered 403: no license"), "{lines:?}");
}
