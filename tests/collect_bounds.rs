//! Requests crafted to cost more than they should: the receiver's memory is bounded, whatever arrives.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use otlpprof_cli::collect::{Server, Store};
use otlpprof_testkit::peak_memory::{Counting, MIB, SERIAL, peak_of};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes of memory for the receiver and the senders together.
const MOST: usize = 256_000_000;
/// The number of concurrent requests.
const CONNECTIONS: usize = 12;
const AMPLE: Duration = Duration::from_secs(240);

/// A request: its headers and its body. The body is `head`, then `unit` repeated `times` times, then `tail`.
struct Request {
    what: &'static str,
    headers: &'static str,
    head: Vec<u8>,
    unit: Vec<u8>,
    times: usize,
    tail: Vec<u8>,
    /// The status of the answer, unless there are too many requests.
    status: u16,
}

const PROTOBUF: &str = "Content-Type: application/x-protobuf\r\n";
const JSON: &str = "Content-Type: application/json\r\n";
const GZIP_PROTOBUF: &str = "Content-Type: application/x-protobuf\r\nContent-Encoding: gzip\r\n";
const GZIP_JSON: &str = "Content-Type: application/json\r\nContent-Encoding: gzip\r\n";

fn request(
    what: &'static str,
    headers: &'static str,
    parts: [&[u8]; 3],
    times: usize,
    status: u16,
) -> Request {
    let [head, unit, tail] = parts.map(<[u8]>::to_vec);
    Request { what, headers, head, unit, times, tail, status }
}

/// Compresses the body, which makes it small.
fn compressed(request: Request) -> Request {
    let whole = [&request.head[..], &request.unit.repeat(request.times), &request.tail].concat();
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(&whole).unwrap();
    let head = out.finish().unwrap();
    Request { head, unit: Vec::new(), times: 0, tail: Vec::new(), ..request }
}

/// The key and length of a length-delimited field of `length` bytes.
fn field(number: u8, length: usize) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    prost::encoding::encode_varint(length as u64, &mut bytes);
    bytes
}

fn requests() -> Vec<Request> {
    const LENGTH: usize = 19 * MIB;
    let dictionary = field(2, LENGTH);
    let elements = |element: u8| [element << 3 | 2, 0];
    let json =
        |unit: &'static [u8]| -> [&[u8]; 3] { [br#"{"dictionary":{"locationTable":["#, unit, b"{}]}}"] };
    let texts: [&[u8]; 3] = [
        br#"{"dictionary":{"stringTable":["#,
        br#""0123456789012345678901234567890123456789","#,
        br#"""]}}"#,
    ];
    let gzip_of_locations: [&[u8]; 3] = [&dictionary, &elements(2), &[]];
    vec![
        compressed(request("locations", GZIP_PROTOBUF, gzip_of_locations, LENGTH / 2, 413)),
        compressed(request("attributes", GZIP_PROTOBUF, [&dictionary, &elements(6), &[]], LENGTH / 2, 413)),
        compressed(request("locations in JSON", GZIP_JSON, json(b"{},"), LENGTH / 3, 413)),
        compressed(request("texts in JSON", GZIP_JSON, texts, LENGTH / 43, 200)),
        compressed(request("zeros", GZIP_PROTOBUF, [&[], &[0], &[]], 64 * MIB, 413)),
        request("texts in JSON", JSON, texts, LENGTH / 43, 200),
        request("a text", PROTOBUF, [&[field(2, MIB + 4), field(5, MIB)].concat(), b"x", &[]], MIB, 200),
        request("no message", PROTOBUF, [&[], &[0; 1024], &[]], LENGTH / 1024, 400),
        request("too much", PROTOBUF, [&[], &[0; 1024], &[]], 21 * 1024, 413),
    ]
}

/// Sends a request as far as the receiver reads it. Returns the answer's status and text, or `None` if the
/// receiver closed the connection.
fn ask(address: SocketAddr, request: &Request) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(AMPLE)).unwrap();
    let length = request.head.len() + request.unit.len() * request.times + request.tail.len();
    let head = format!(
        "POST /v1development/profiles HTTP/1.1\r\n{}Content-Length: {length}\r\nConnection: close\r\n\r\n",
        request.headers
    );
    let part = request.unit.repeat(request.times.min(1024));
    let mut send = || -> std::io::Result<()> {
        stream.write_all(head.as_bytes())?;
        stream.write_all(&request.head)?;
        for _ in 0..request.times / 1024 {
            stream.write_all(&part)?;
        }
        stream.write_all(&request.unit.repeat(request.times % 1024))?;
        stream.write_all(&request.tail)
    };
    // The receiver does not read a refused request to its end, so sending may fail.
    let _ = send();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1)?.parse().ok()?;
    Some((status, answer))
}

/// Regression: a small request that decompresses to much took a gigabyte of memory, and several concurrent
/// requests took a gigabyte each.
#[test]
fn requests_take_little_memory_whatever_they_are_and_however_many() {
    let _serial = SERIAL.lock();
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = Server::start(listener, Store::open(folder.path()).unwrap(), Arc::new(|_| {})).unwrap();
    for request in requests() {
        let request = Arc::new(request);
        let what = request.what;
        let (alone, answer) = peak_of(|| ask(address, &request));
        let (status, answer) = answer.unwrap_or_else(|| panic!("{what}: no answer"));
        assert_eq!(status, request.status, "{what}: {answer:?}");
        assert!(alone < MOST, "{what}: {alone} bytes alone");
        let (together, ()) = peak_of(|| {
            let senders: Vec<_> = (0..CONNECTIONS)
                .map(|_| {
                    let request = request.clone();
                    std::thread::spawn(move || ask(address, &request).map(|(status, _)| status))
                })
                .collect();
            for sender in senders {
                // If a request's body is not read, the end of its connection may overtake the refusal.
                if let Some(status) = sender.join().unwrap() {
                    assert!([request.status, 503].contains(&status), "{what}: {status}");
                }
            }
        });
        assert!(together < MOST, "{what}: {together} bytes together");
    }
    server.stop(AMPLE);
}
