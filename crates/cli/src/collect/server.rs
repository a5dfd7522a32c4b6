//! The listening socket and the threads of its connections.

use std::collections::HashMap;
use std::io::{self, PipeReader, PipeWriter};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::connection::{Connection, Failure};
use super::memory::Memory;
use super::message::{Answer, BodySize};
use super::protocol::{self, BODY_LIMIT, Received};
use super::store::{Store, Stored};

/// The most connections at a time. A client beyond them is asked to retry.
const CONNECTIONS: usize = 128;

/// Called for every request that was accepted, and for every one that could not be stored. Not called for a
/// failure that repeats the previous one if nothing was stored between them.
pub type Report = Arc<dyn Fn(Result<&Stored, &io::Error>) + Send + Sync>;

/// A running receiver.
pub struct Server {
    shared: Arc<Shared>,
    acceptor: JoinHandle<()>,
    /// The end of a pipe. Closing it wakes the acceptor.
    wake: PipeWriter,
}

/// The destination of requests.
pub(crate) trait Sink: Send + Sync {
    /// Takes a request, and returns the answer to its sender.
    fn put(&self, received: Received) -> Answer;
}

/// A folder as the destination of requests.
struct Folder {
    store: Store,
    report: Report,
    /// The error of the last request, if it could not be stored.
    failing: Mutex<Option<String>>,
}

struct Shared {
    memory: Arc<Memory>,
    sink: Box<dyn Sink>,
    connections: Mutex<Connections>,
    /// Notified when a connection has ended.
    ended: Condvar,
}

#[derive(Default)]
struct Connections {
    stopping: bool,
    next: u64,
    open: HashMap<u64, Open>,
}

struct Open {
    stream: TcpStream,
    /// Whether the connection is between two requests, so that closing it loses nothing.
    idle: bool,
}

impl Server {
    /// Starts to accept connections. Requests are stored.
    ///
    /// # Errors
    /// The pipe or the thread could not be created.
    pub fn start(listener: TcpListener, store: Store, report: Report) -> io::Result<Self> {
        Self::start_with(listener, Box::new(Folder { store, report, failing: Mutex::default() }))
    }

    /// Starts to accept connections.
    ///
    /// # Errors
    /// The pipe or the thread could not be created.
    pub(crate) fn start_with(listener: TcpListener, sink: Box<dyn Sink>) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let (woken, wake) = io::pipe()?;
        let connections = Mutex::new(Connections::default());
        let (memory, ended) = (Memory::new(), Condvar::new());
        let shared = Arc::new(Shared { memory, sink, connections, ended });
        let for_thread = shared.clone();
        let acceptor = std::thread::Builder::new()
            .name("accept".to_owned())
            .spawn(move || accept_until_woken(&listener, &woken, &for_thread))?;
        Ok(Self { shared, acceptor, wake })
    }

    /// Stops accepting connections, waits up to `grace` for requests in progress, and closes the remaining
    /// connections.
    pub fn stop(self, grace: Duration) {
        drop(self.wake);
        let _ = self.acceptor.join();
        let deadline = Instant::now() + grace;
        let mut connections = self.shared.connections.lock();
        connections.stopping = true;
        for open in connections.open.values().filter(|open| open.idle) {
            let _ = open.stream.shutdown(Shutdown::Both);
        }
        while !connections.open.is_empty() {
            if self.shared.ended.wait_until(&mut connections, deadline).timed_out() {
                break;
            }
        }
        for open in connections.open.values() {
            let _ = open.stream.shutdown(Shutdown::Both);
        }
    }
}

fn accept_until_woken(listener: &TcpListener, woken: &PipeReader, shared: &Arc<Shared>) {
    loop {
        let poll = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut fds = [poll(listener.as_raw_fd()), poll(woken.as_raw_fd())];
        // SAFETY: the length is the length of the array, and both descriptors stay open while their owners
        // exist.
        let ready = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, -1) };
        if ready > 0 && fds[1].revents != 0 {
            return;
        }
        match listener.accept() {
            Ok((stream, _)) => welcome(stream, shared),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // No descriptors are left, or the client has given up. A retry a little later may succeed.
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Starts a thread for a connection, or answers 503 if there are too many.
fn welcome(stream: TcpStream, shared: &Arc<Shared>) {
    let Ok(()) = stream.set_nonblocking(false) else { return };
    let (Ok(copy), Ok(mut refused)) = (stream.try_clone(), stream.try_clone()) else { return };
    let started = shared.add(copy).is_some_and(|id| {
        let for_thread = shared.clone();
        let thread = std::thread::Builder::new().name("connection".to_owned()).spawn(move || {
            // A panic ends only this connection, and the connection must not stay in the list.
            let _leave = Leave { shared: &for_thread, id };
            if let Ok(connection) = Connection::new(stream) {
                serve(connection, &for_thread, id);
            }
        });
        if thread.is_err() {
            shared.remove(id);
        }
        thread.is_ok()
    });
    if !started {
        use io::Write as _;

        // The connection is new, so its send buffer has room for the answer.
        let answer = Answer::plain(503, "Retry-After: 1\r\n", "too many connections");
        let _ = refused.set_nonblocking(true);
        let _ = refused.write_all(&answer.to_bytes(true));
        let _ = refused.shutdown(Shutdown::Both);
    }
}

/// Removes a connection from the list when its thread ends.
struct Leave<'a> {
    shared: &'a Shared,
    id: u64,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.shared.remove(self.id);
    }
}

/// Answers the requests of a connection until it ends.
fn serve(mut connection: Connection, shared: &Shared, id: u64) {
    while connection.wait() && shared.set_idle(id, false) {
        let (answer, keep) = match exchange(&mut connection, shared) {
            Ok(answered) => answered,
            Err(Failure::Bad(answer)) => (answer, false),
            Err(Failure::Gone | Failure::TooLarge | Failure::TooMany) => return,
        };
        let keep = keep && !shared.connections.lock().stopping;
        if connection.answer(&answer, !keep).is_err() {
            return;
        }
        if !keep || !shared.set_idle(id, true) {
            return connection.close();
        }
    }
}

/// Reads one request. Returns its answer, and whether the connection can be kept.
fn exchange(connection: &mut Connection, shared: &Shared) -> Result<(Answer, bool), Failure> {
    let head = connection.read_head()?;
    let accepted = match protocol::accept(&head) {
        Ok(accepted) => accepted,
        // The body was not read, so the next bytes of this connection are not a request.
        Err(answer) => return Ok((answer, head.keep_alive && head.body == BodySize::Bytes(0))),
    };
    if head.expects_continue {
        connection.send_continue()?;
    }
    let mut share = shared.memory.share();
    let body = match connection.read_body(head.body, BODY_LIMIT, &mut share) {
        Ok(body) => body,
        Err(Failure::TooMany) => return Ok((protocol::too_many(accepted.encoding), false)),
        Err(Failure::TooLarge) => return Ok((protocol::too_large(accepted.encoding), false)),
        Err(failure) => return Err(failure),
    };
    let _permit = shared.memory.permit();
    let answer = match protocol::receive(accepted, body) {
        Ok(received) => shared.sink.put(received),
        Err(answer) => answer,
    };
    Ok((answer, head.keep_alive))
}

impl Sink for Folder {
    fn put(&self, received: Received) -> Answer {
        match self.store.put(&received) {
            Ok(stored) => {
                *self.failing.lock() = None;
                (self.report)(Ok(&stored));
                Answer::accepted(received.encoding)
            }
            // A full disk may have room later. The sender keeps the message and retries.
            Err(error) => {
                let before = self.failing.lock().replace(error.to_string());
                if before.is_none_or(|before| before != error.to_string()) {
                    (self.report)(Err(&error));
                }
                Answer::error(received.encoding, 503, &format!("cannot store the message: {error}"))
            }
        }
    }
}

impl Shared {
    /// Adds a connection to the list, unless there are too many.
    fn add(&self, stream: TcpStream) -> Option<u64> {
        let mut connections = self.connections.lock();
        if connections.open.len() >= CONNECTIONS {
            return None;
        }
        let id = connections.next;
        connections.next += 1;
        connections.open.insert(id, Open { stream, idle: true });
        Some(id)
    }

    fn remove(&self, id: u64) {
        self.connections.lock().open.remove(&id);
        self.ended.notify_all();
    }

    /// Records whether a request is in progress. Returns false if the receiver is stopping, and no request
    /// may start.
    fn set_idle(&self, id: u64, idle: bool) -> bool {
        let mut connections = self.connections.lock();
        if let Some(open) = connections.open.get_mut(&id) {
            open.idle = idle;
        }
        !connections.stopping
    }
}
