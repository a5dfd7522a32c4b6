//! An HTTP server that misbehaves in a specified way, with one step for each request.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use otlpprof_export::{ContentType, Endpoint, OutgoingMessage};

/// The server's reaction to the next request, after reading it.
#[derive(Clone, Debug)]
pub enum Step {
    /// Answers with this status, these further header lines, this content type and this body.
    Answer(u16, &'static str, &'static str, Vec<u8>),
    /// Resets the connection.
    Reset,
    /// Writes these bytes, which need not be HTTP, and closes the connection.
    Raw(&'static [u8]),
    /// Holds the connection without answering until the server is dropped.
    Hang,
}

impl Step {
    /// An answer with a protobuf body.
    pub fn protobuf(status: u16, headers: &'static str, body: &[u8]) -> Self {
        Self::Answer(status, headers, "application/x-protobuf", body.to_vec())
    }

    /// An answer without a body.
    pub fn status(status: u16) -> Self {
        Self::protobuf(status, "", b"")
    }
}

/// A received request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The request line.
    pub line: String,
    headers: Vec<(String, String)>,
    /// The body, by its Content-Length.
    pub body: Vec<u8>,
}

impl Request {
    /// All values of this header.
    pub fn header(&self, name: &str) -> Vec<&str> {
        let named = |(key, _): &&(String, String)| key.eq_ignore_ascii_case(name);
        self.headers.iter().filter(named).map(|(_, value)| value.as_str()).collect()
    }
}

/// The server. It answers requests after its last step with 200.
pub struct FaultServer {
    /// The address that the server listens at.
    pub address: SocketAddr,
    requests: Receiver<Request>,
    held: Arc<Mutex<Vec<TcpStream>>>,
}

impl FaultServer {
    /// Starts a server at a free port.
    pub fn start(steps: impl IntoIterator<Item = Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let steps = Arc::new(Mutex::new(steps.into_iter().collect::<VecDeque<_>>()));
        let held = Arc::new(Mutex::new(Vec::new()));
        let (sender, requests) = channel();
        let keep = held.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (steps, keep, sender) = (steps.clone(), keep.clone(), sender.clone());
                thread::spawn(move || serve(stream, &steps, &keep, &sender));
            }
        });
        Self { address, requests, held }
    }

    /// The server as an endpoint of the exporter.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::base(&format!("http://{}", self.address)).unwrap()
    }

    /// Waits for the next request. The time limit only keeps a failed test from hanging.
    #[track_caller]
    pub fn request(&self) -> Request {
        self.requests.recv_timeout(Duration::from_secs(60)).expect("a request within a minute")
    }

    /// The number of received requests that [`FaultServer::request`] has not returned.
    pub fn further_requests(&self) -> usize {
        self.requests.try_iter().count()
    }

    /// The number of connections held without an answer.
    pub fn held(&self) -> usize {
        self.held.lock().unwrap().len()
    }
}

fn serve(
    mut stream: TcpStream,
    steps: &Mutex<VecDeque<Step>>,
    keep: &Mutex<Vec<TcpStream>>,
    sent: &Sender<Request>,
) {
    let Some(request) = read_request(&stream) else { return };
    let step = steps.lock().unwrap().pop_front().unwrap_or(Step::status(200));
    // A held connection is counted before the request is reported.
    if let Step::Hang = step {
        keep.lock().unwrap().push(stream.try_clone().unwrap());
    }
    let _ = sent.send(request);
    match step {
        Step::Answer(status, headers, mime, body) => {
            let head = format!(
                "HTTP/1.1 {status} Because\r\nContent-Type: {mime}\r\nContent-Length: {}\r\n\
                 Connection: close\r\n{headers}\r\n",
                body.len()
            );
            let _ = stream.write_all(&[head.as_bytes(), &body].concat());
        }
        Step::Raw(bytes) => {
            let _ = stream.write_all(bytes);
        }
        Step::Reset => reset(&stream),
        Step::Hang => {}
    }
}

/// Makes closing the connection send a reset.
fn reset(stream: &TcpStream) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    // SAFETY: the descriptor is open, and the option's value and size describe a `linger`.
    let result = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            size_of_val(&linger) as libc::socklen_t,
        )
    };
    assert_eq!(result, 0);
}

/// Reads one request; `None` if the connection ends before the request is complete.
pub fn read_request(stream: impl Read) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok().filter(|bytes| *bytes > 0)?;
        let Some((name, value)) = header.trim().split_once(':') else { break };
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let mut request = Request { line: line.trim().to_owned(), headers, body: Vec::new() };
    let length = request.header("content-length").first().map_or(0, |length| length.parse().unwrap());
    request.body = vec![0; length];
    reader.read_exact(&mut request.body).ok()?;
    Some(request)
}

/// A protobuf message of `bytes` bytes that counts as `samples` samples.
pub fn message(bytes: usize, samples: u64) -> OutgoingMessage {
    OutgoingMessage { body: vec![7; bytes], content_type: ContentType::Protobuf, samples }
}
