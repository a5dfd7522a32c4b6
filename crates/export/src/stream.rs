//! Messages to readers in other processes, over connected sockets.
//!
//! A message is its length in bytes (u32, big-endian) and as many bytes of OTLP. A reader never delays the
//! caller: a reader that does not read loses whole messages, which are counted. A message of which a part has
//! been written is always completed before the next one, so that a reader never loses its place.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::stats::StreamStats;

/// The most readers at a time.
pub const MOST_READERS: usize = 8;

/// The most messages that wait for a reader, including the one of which a part has been written.
const MOST_WAITING: usize = 2;

/// The time between two attempts to write the rest of a message to a reader that reads.
const WRITE_AGAIN: Duration = Duration::from_millis(20);

/// The readers of one session.
#[derive(Debug, Default)]
pub struct Readers {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    readers: Vec<Reader>,
    sent: u64,
    lost: u64,
    /// Whether there has been a reader.
    had_reader: bool,
    /// Whether the session has ended.
    is_closed: bool,
}

#[derive(Debug)]
struct Reader {
    socket: UnixStream,
    /// The time between two messages.
    interval: Duration,
    next: Instant,
    /// Whether the reader receives the next message that is made for due readers.
    is_due: bool,
    /// Messages with their lengths, the oldest first.
    waiting: VecDeque<Arc<[u8]>>,
    /// The bytes of the oldest message that have been written.
    written: usize,
    /// Whether the last attempt to write has written anything.
    reads: bool,
}

/// A reader's connection is of no use any more.
struct Gone;

impl Readers {
    /// Adds a reader, which receives a message every `interval`, the first one at once. The socket must not
    /// block. Beyond [`MOST_READERS`], and after [`Readers::finish`], the connection is closed.
    pub fn add(&self, socket: UnixStream, interval: Duration) {
        let mut state = self.state.lock();
        state.had_reader = true;
        if !state.is_closed && state.readers.len() < MOST_READERS {
            state.readers.push(Reader {
                socket,
                interval,
                next: Instant::now(),
                is_due: false,
                waiting: VecDeque::new(),
                written: 0,
                reads: true,
            });
        }
    }

    /// Notes that a reader has gone before it could be added.
    pub fn note_missed(&self) {
        self.state.lock().had_reader = true;
    }

    /// Whether there is no room for another reader.
    pub fn is_full(&self) -> bool {
        self.state.lock().readers.len() >= MOST_READERS
    }

    /// Whether there is no reader.
    pub fn is_empty(&self) -> bool {
        self.state.lock().readers.is_empty()
    }

    /// Whether there have been readers, and all of them are gone.
    pub fn have_gone(&self) -> bool {
        let state = self.state.lock();
        state.had_reader && state.readers.is_empty()
    }

    /// Removes readers that are gone, and writes the rests of messages. Returns the time until the next call
    /// is of use, or until a reader's next message is due; `None` without readers.
    pub fn tend(&self) -> Option<Duration> {
        let mut state = self.state.lock();
        state.write();
        let now = Instant::now();
        let until = |reader: &Reader| {
            let until_next = reader.next.saturating_duration_since(now);
            let has_rest = !reader.waiting.is_empty() && reader.reads;
            if has_rest { until_next.min(WRITE_AGAIN) } else { until_next }
        };
        state.readers.iter().map(until).min()
    }

    /// Notes the readers whose next message is due now. Returns whether one of them has room for a message.
    pub fn note_due(&self) -> bool {
        let mut state = self.state.lock();
        let State { readers, lost, .. } = &mut *state;
        let now = Instant::now();
        for reader in readers.iter_mut() {
            reader.is_due = reader.next <= now;
            if reader.is_due {
                reader.next = (reader.next + reader.interval).max(now);
                if reader.waiting.len() >= MOST_WAITING {
                    reader.is_due = false;
                    *lost += 1;
                }
            }
        }
        readers.iter().any(|reader| reader.is_due)
    }

    /// Sends a message to the readers that [`Readers::note_due`] has noted.
    pub fn send_to_due(&self, message: &[u8]) {
        let mut state = self.state.lock();
        let whole = with_length(message);
        for reader in state.readers.iter_mut().filter(|reader| reader.is_due) {
            reader.is_due = false;
            reader.waiting.push_back(whole.clone());
        }
        state.write();
    }

    /// Sends a message to all readers that have room for it.
    pub fn send_to_all(&self, message: &[u8]) {
        let mut state = self.state.lock();
        let State { readers, lost, .. } = &mut *state;
        if readers.is_empty() {
            return;
        }
        let whole = with_length(message);
        for reader in readers.iter_mut() {
            if reader.waiting.len() < MOST_WAITING {
                reader.waiting.push_back(whole.clone());
            } else {
                *lost += 1;
            }
        }
        state.write();
    }

    /// The counters so far.
    pub fn stats(&self) -> StreamStats {
        let state = self.state.lock();
        StreamStats { readers: state.readers.len() as u64, sent: state.sent, lost: state.lost }
    }

    /// Writes the rests of messages within the time limit, and closes all connections.
    pub fn finish(&self, within: Duration) {
        let deadline = Instant::now() + within;
        loop {
            let mut state = self.state.lock();
            state.is_closed = true;
            state.write();
            let left = deadline.saturating_duration_since(Instant::now());
            let is_over = left.is_zero() || state.readers.iter().all(|reader| reader.waiting.is_empty());
            if is_over {
                let closed = mem::take(&mut state.readers);
                state.lost += closed.iter().map(Reader::waiting_messages).sum::<u64>();
                return;
            }
            drop(state);
            std::thread::sleep(WRITE_AGAIN.min(left));
        }
    }
}

impl State {
    /// Writes as much as the readers take. Removes readers that are gone.
    fn write(&mut self) {
        let Self { readers, sent, lost, .. } = self;
        readers.retain_mut(|reader| {
            let is_there = reader.is_there() && reader.write(sent).is_ok();
            if !is_there {
                *lost += reader.waiting_messages();
            }
            is_there
        });
    }
}

impl Reader {
    fn waiting_messages(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// Whether the other end still has the connection open.
    fn is_there(&self) -> bool {
        let mut entry = libc::pollfd { fd: self.socket.as_raw_fd(), events: libc::POLLRDHUP, revents: 0 };
        // SAFETY: the pointer is to one entry of this frame.
        let ready = unsafe { libc::poll(&raw mut entry, 1, 0) };
        ready <= 0
    }

    /// Writes as much as the socket takes without waiting. Counts the messages that are written whole.
    fn write(&mut self, sent: &mut u64) -> Result<(), Gone> {
        let waited = !self.waiting.is_empty();
        let mut total = 0;
        while let Some(message) = self.waiting.front() {
            let rest = &message[self.written..];
            let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            // SAFETY: the buffer is valid for its length.
            let count =
                unsafe { libc::send(self.socket.as_raw_fd(), rest.as_ptr().cast(), rest.len(), flags) };
            let Ok(count) = usize::try_from(count) else {
                match io::Error::last_os_error().kind() {
                    io::ErrorKind::Interrupted => continue,
                    io::ErrorKind::WouldBlock => break,
                    _ => return Err(Gone),
                }
            };
            total += count;
            self.written += count;
            if self.written == message.len() {
                self.waiting.pop_front();
                self.written = 0;
                *sent += 1;
            }
        }
        self.reads = !waited || total > 0;
        Ok(())
    }
}

/// The message after its length.
fn with_length(message: &[u8]) -> Arc<[u8]> {
    // SANITY: messages are limited to far less than 4 GiB.
    let length = u32::try_from(message.len()).expect("a message below 4 GiB");
    [&length.to_be_bytes(), message].concat().into()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    /// More than the buffers of a socket hold.
    const LARGE: usize = 8 << 20;
    const OFTEN: Duration = Duration::ZERO;
    const SELDOM: Duration = Duration::from_secs(3600);

    fn reader(readers: &Readers, interval: Duration) -> UnixStream {
        let (own, other) = UnixStream::pair().unwrap();
        own.set_nonblocking(true).unwrap();
        readers.add(own, interval);
        other
    }

    fn next(reader: &mut UnixStream) -> Vec<u8> {
        let mut length = [0; 4];
        reader.read_exact(&mut length).unwrap();
        let mut message = vec![0; u32::from_be_bytes(length) as usize];
        reader.read_exact(&mut message).unwrap();
        message
    }

    #[test]
    fn messages_go_to_the_readers_that_are_due() {
        let readers = Readers::default();
        assert!(!readers.note_due() && !readers.have_gone() && readers.tend().is_none());
        let (mut often, mut seldom) = (reader(&readers, OFTEN), reader(&readers, SELDOM));
        for text in [b"one", b"two"] {
            assert!(readers.note_due());
            readers.send_to_due(text);
        }
        readers.send_to_all(b"end");
        readers.finish(Duration::ZERO);
        for (reader, texts) in [(&mut often, vec!["one", "two", "end"]), (&mut seldom, vec!["one", "end"])] {
            for text in texts {
                assert_eq!(next(reader), text.as_bytes());
            }
            assert_eq!(reader.read(&mut [0]).unwrap(), 0, "closed");
        }
        assert_eq!(readers.stats(), StreamStats { readers: 0, sent: 5, lost: 0 });
    }

    #[test]
    fn a_reader_that_does_not_read_loses_whole_messages() {
        let readers = Readers::default();
        let mut slow = reader(&readers, OFTEN);
        let messages: Vec<_> = (0..5_u8).map(|byte| vec![byte; LARGE]).collect();
        for message in &messages {
            if readers.note_due() {
                readers.send_to_due(message);
            }
        }
        assert_eq!(readers.stats(), StreamStats { readers: 1, sent: 0, lost: 3 });
        let reading = std::thread::spawn(move || {
            let read = [next(&mut slow), next(&mut slow), next(&mut slow)];
            (read, slow)
        });
        while readers.stats().sent < 2 {
            readers.tend();
        }
        readers.send_to_all(b"end");
        let (read, _slow) = reading.join().unwrap();
        assert!(read[0] == messages[0] && read[1] == messages[1] && read[2] == b"end");
        assert_eq!(readers.stats(), StreamStats { readers: 1, sent: 3, lost: 3 });
    }

    #[test]
    fn a_reader_that_is_gone_is_removed_with_its_messages() {
        let readers = Readers::default();
        let gone = reader(&readers, OFTEN);
        readers.send_to_all(&vec![1; LARGE]);
        drop(gone);
        assert!(!readers.have_gone());
        assert!(readers.tend().is_none());
        assert!(readers.have_gone() && readers.is_empty());
        assert_eq!(readers.stats(), StreamStats { readers: 0, sent: 0, lost: 1 });
    }

    #[test]
    fn the_number_of_readers_is_bounded() {
        let readers = Readers::default();
        let _readers: Vec<_> = (0..MOST_READERS).map(|_| reader(&readers, SELDOM)).collect();
        assert!(readers.is_full());
        assert_eq!(reader(&readers, SELDOM).read(&mut [0]).unwrap(), 0, "closed");
        readers.finish(Duration::ZERO);
        assert_eq!(reader(&readers, SELDOM).read(&mut [0]).unwrap(), 0, "closed");
        assert!(readers.have_gone());
    }
}
