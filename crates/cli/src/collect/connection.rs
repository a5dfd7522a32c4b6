//! HTTP/1.1 on one connection: reads requests and sends answers, each within a time limit.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use super::memory::Share;
use super::message::{Answer, BodySize, Head};

/// Limits on the memory that a client can make the receiver occupy, and on the time.
const HEAD_LIMIT: usize = 32 * 1024;
const HEADERS: usize = 64;
const CHUNK_LINE_LIMIT: usize = 256;
const IDLE: Duration = Duration::from_secs(60);
const HEAD_TIME: Duration = Duration::from_secs(10);
const BODY_TIME: Duration = Duration::from_secs(60);
const ANSWER_TIME: Duration = Duration::from_secs(10);
/// The bytes and the time for which the rest of a refused body is read, so that the client sees the answer,
/// not a reset.
const LINGER_BYTES: usize = 1 << 20;
const LINGER_TIME: Duration = Duration::from_secs(1);

/// The reason why no request was read.
#[derive(Debug)]
pub(super) enum Failure {
    /// The client has closed the connection or sends nothing more. No answer is sent.
    Gone,
    /// The bytes are not HTTP, or not the supported HTTP.
    Bad(Answer),
    /// The body is over the limit.
    TooLarge,
    /// There is no memory for the body at present.
    TooMany,
}

impl From<io::Error> for Failure {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

/// The end of a chunk.
const CHUNK_END: &[u8] = b"\r\n";

/// A body that is being received.
struct Body<'s> {
    bytes: Vec<u8>,
    share: &'s mut Share,
    deadline: Instant,
}

/// A connection with the bytes that were received and are not used yet.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_write_timeout(Some(ANSWER_TIME))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::new() })
    }

    /// Waits for the first byte of a request. Returns false if none arrives.
    pub(super) fn wait(&mut self) -> bool {
        !self.buffer.is_empty() || self.fill(Instant::now() + IDLE).is_ok()
    }

    /// Reads the head of a request.
    pub(super) fn read_head(&mut self) -> Result<Head, Failure> {
        let deadline = Instant::now() + HEAD_TIME;
        loop {
            if let Some((head, length)) = parse_head(&self.buffer[..self.buffer.len().min(HEAD_LIMIT)])? {
                self.buffer.drain(..length);
                return Ok(head);
            }
            if self.buffer.len() >= HEAD_LIMIT {
                return Err(Failure::Bad(Answer::plain(431, "", "the request's head is too large")));
            }
            self.fill_or_time_out(deadline)?;
        }
    }

    /// Tells a client that expects it to send the body.
    pub(super) fn send_continue(&mut self) -> io::Result<()> {
        self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
    }

    /// Reads a body of at most `limit` bytes. Its memory is accounted to `share`.
    pub(super) fn read_body(
        &mut self,
        size: BodySize,
        limit: usize,
        share: &mut Share,
    ) -> Result<Vec<u8>, Failure> {
        let mut body = Body { bytes: Vec::new(), share, deadline: Instant::now() + BODY_TIME };
        match size {
            BodySize::Bytes(length) => {
                let length = usize::try_from(length).map_err(|_| Failure::TooLarge)?;
                if length > limit {
                    return Err(Failure::TooLarge);
                }
                self.read_to(&mut body, length)?;
            }
            BodySize::Chunked => self.read_chunks(&mut body, limit)?,
        }
        Ok(body.bytes)
    }

    /// Sends an answer. `close` announces that it is the connection's last one.
    pub(super) fn answer(&mut self, answer: &Answer, close: bool) -> io::Result<()> {
        self.stream.write_all(&answer.to_bytes(close))
    }

    /// Closes the connection in such a way that the last answer arrives although the client may still be
    /// sending.
    pub(super) fn close(mut self) {
        let deadline = Instant::now() + LINGER_TIME;
        let _ = self.stream.shutdown(Shutdown::Write);
        let mut drained = 0;
        self.buffer.clear();
        while drained < LINGER_BYTES && self.fill(deadline).is_ok() {
            drained += self.buffer.len();
            self.buffer.clear();
        }
    }

    fn read_chunks(&mut self, body: &mut Body<'_>, limit: usize) -> Result<(), Failure> {
        let malformed = || Failure::Bad(Answer::plain(400, "", "malformed chunked body"));
        let deadline = body.deadline;
        loop {
            let line = self.read_line(CHUNK_LINE_LIMIT, deadline)?.ok_or_else(malformed)?;
            let size = match httparse::parse_chunk_size(&line) {
                Ok(httparse::Status::Complete((_, size))) => size,
                _ => return Err(malformed()),
            };
            let size = usize::try_from(size).map_err(|_| Failure::TooLarge)?;
            if size > limit - body.bytes.len() {
                return Err(Failure::TooLarge);
            }
            if size == 0 {
                break;
            }
            self.read_to(body, size)?;
            if self.read_line(CHUNK_END.len(), deadline)?.is_none_or(|line| line != CHUNK_END) {
                return Err(malformed());
            }
        }
        // Trailers are skipped: none of them matters here.
        let mut left = HEAD_LIMIT;
        loop {
            let line = self.read_line(left, deadline)?.ok_or_else(malformed)?;
            if line == CHUNK_END {
                return Ok(());
            }
            left -= line.len();
        }
    }

    /// Reads a line with its line end. Returns `None` if the line is longer than `limit`.
    fn read_line(&mut self, limit: usize, deadline: Instant) -> Result<Option<Vec<u8>>, Failure> {
        loop {
            if let Some(end) = self.buffer.iter().take(limit).position(|byte| *byte == b'\n') {
                return Ok(Some(self.buffer.drain(..=end).collect()));
            }
            if self.buffer.len() >= limit {
                return Ok(None);
            }
            self.fill_or_time_out(deadline)?;
        }
    }

    /// Moves bytes to the body as they arrive.
    fn read_to(&mut self, body: &mut Body<'_>, length: usize) -> Result<(), Failure> {
        let end = body.bytes.len() + length;
        while body.bytes.len() < end {
            if self.buffer.is_empty() {
                self.fill_or_time_out(body.deadline)?;
            }
            let part = self.buffer.len().min(end - body.bytes.len());
            if !body.share.grow(part) {
                return Err(Failure::TooMany);
            }
            if body.bytes.capacity() - body.bytes.len() < part {
                // Grows by a quarter rather than by doubling, to save memory.
                body.bytes.reserve_exact(part.max(body.bytes.len() / 4));
            }
            body.bytes.extend(self.buffer.drain(..part));
        }
        Ok(())
    }

    /// Reads available bytes, or reports that the client was too slow.
    fn fill_or_time_out(&mut self, deadline: Instant) -> Result<(), Failure> {
        self.fill(deadline).map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
                Failure::Bad(Answer::plain(408, "", "the request took too long"))
            }
            _ => Failure::Gone,
        })
    }

    /// Reads more bytes. The end of the stream is an error.
    fn fill(&mut self, deadline: Instant) -> io::Result<()> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        let mut bytes = [0; 16 * 1024];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    self.buffer.extend_from_slice(&bytes[..count]);
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Parses a head and returns it with its length in bytes. Returns `None` if the head is incomplete.
fn parse_head(bytes: &[u8]) -> Result<Option<(Head, usize)>, Failure> {
    let bad = |status, message| Failure::Bad(Answer::plain(status, "", message));
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(bad(431, "too many headers")),
        Err(_) => return Err(bad(400, "not an HTTP/1.1 request")),
    };
    let target = request.path.unwrap_or_default();
    let headers = request
        .headers
        .iter()
        .map(|header| {
            let value = String::from_utf8_lossy(header.value);
            (header.name.to_ascii_lowercase(), value.trim().to_owned())
        })
        .collect();
    let mut head = Head {
        method: request.method.unwrap_or_default().to_owned(),
        path: target.split('?').next().unwrap_or_default().to_owned(),
        headers,
        body: BodySize::Bytes(0),
        keep_alive: false,
        expects_continue: false,
    };
    head.body = body_size(&head).map_err(|(status, message)| bad(status, message))?;
    let says = |name, token: &str| {
        head.all(name).flat_map(|value| value.split(',')).any(|word| word.trim().eq_ignore_ascii_case(token))
    };
    let recent = request.version == Some(1);
    let keep_alive = if recent { !says("connection", "close") } else { says("connection", "keep-alive") };
    let expects_continue = recent && says("expect", "100-continue");
    Ok(Some((Head { keep_alive, expects_continue, ..head }, length)))
}

/// The length of the body. Contradicting headers are refused: a proxy may have followed the other header.
fn body_size(head: &Head) -> Result<BodySize, (u16, &'static str)> {
    let mut lengths = head.all("content-length");
    let mut transfer = head.all("transfer-encoding");
    match (transfer.next(), lengths.next()) {
        (None, None) => Ok(BodySize::Bytes(0)),
        (Some(coding), None) if transfer.next().is_none() && coding.eq_ignore_ascii_case("chunked") => {
            Ok(BodySize::Chunked)
        }
        (Some(_), None) => Err((501, "Transfer-Encoding must be chunked")),
        (Some(_), Some(_)) => Err((400, "both Content-Length and Transfer-Encoding")),
        (None, Some(length)) => {
            let digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
            if !digits || lengths.any(|other| other != length) {
                return Err((400, "malformed Content-Length"));
            }
            // A number too long for a u64 exceeds every limit.
            Ok(BodySize::Bytes(length.parse().unwrap_or(u64::MAX)))
        }
    }
}
