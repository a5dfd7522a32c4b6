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
use super::message::{Answer, BodySize, Encoding};
use super::protocol::{self, BODY_LIMIT, Received};
use super::store::{Store, Stored};

/// Connections at once; a further one is told to come again.
const CONNECTIONS: usize = 128;

/// Called for every request that was taken, and for one that could not be stored, unless that is so for the same
/// reason as the last time and nothing was stored since.
pub type Report = Arc<dyn Fn(Result<&Stored, &io::Error>) + Send + Sync>;

/// A running receiver.
pub struct Server {
    shared: Arc<Shared>,
    acceptor: JoinHandle<()>,
    /// Closing it wakes the acceptor.
    wake: PipeWriter,
}

struct Shared {
    memory: Arc<Memory>,
    store: Store,
    report: Report,
    /// Why the last request could not be stored, if it could not.
    failing: Mutex<Option<String>>,
    connections: Mutex<Connections>,
    /// A connection has ended.
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
    /// Between two requests: nothing is lost if it is closed.
    idle: bool,
}

impl Server {
    /// Starts to accept connections.
    ///
    /// # Errors
    /// No pipe or no thread to be had.
    pub fn start(listener: TcpListener, store: Store, report: Report) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let (woken, wake) = io::pipe()?;
        let connections = Mutex::new(Connections::default());
        let (memory, failing, ended) = (Memory::new(), Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { memory, store, report, failing, connections, ended });
        let for_thread = shared.clone();
        let acceptor = std::thread::Builder::new()
            .name("accept".to_owned())
            .spawn(move || accept_until_woken(&listener, &woken, &for_thread))?;
        Ok(Self { shared, acceptor, wake })
    }

    /// Accepts nothing more, lets requests in progress end for as long as `grace`, and closes what is left.
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
        // SAFETY: the array is as long as said, and both descriptors are open as long as their owners.
        let ready = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, -1) };
        if ready > 0 && fds[1].revents != 0 {
            return;
        }
        match listener.accept() {
            Ok((stream, _)) => welcome(stream, shared),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // No descriptors left, or a client that gave up: the next one may have more luck, a little later.
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Gives a connection a thread, or a polite answer if there are too many.
fn welcome(stream: TcpStream, shared: &Arc<Shared>) {
    let Ok(()) = stream.set_nonblocking(false) else { return };
    let (Ok(copy), Ok(mut refused)) = (stream.try_clone(), stream.try_clone()) else { return };
    let started = shared.add(copy).is_some_and(|id| {
        let for_thread = shared.clone();
        let thread = std::thread::Builder::new().name("connection".to_owned()).spawn(move || {
            // A panic ends this connection only, and it must not stay in the list.
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

        // It is new, so its send buffer has room for this.
        let answer = Answer::plain(503, "Retry-After: 1\r\n", "too many connections");
        let _ = refused.set_nonblocking(true);
        let _ = refused.write_all(&answer.to_bytes(true));
        let _ = refused.shutdown(Shutdown::Both);
    }
}

/// Takes a connection off the list when its thread ends.
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

/// Reads one request. Returns its answer, and whether the connection can go on after it.
fn exchange(connection: &mut Connection, shared: &Shared) -> Result<(Answer, bool), Failure> {
    let head = connection.read_head()?;
    let accepted = match protocol::accept(&head) {
        Ok(accepted) => accepted,
        // The body was not read, so what follows on this connection is no request.
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
    let _place = shared.memory.place();
    let answer = match protocol::receive(accepted, body) {
        Ok(received) => store(&received, accepted.encoding, shared),
        Err(answer) => answer,
    };
    Ok((answer, head.keep_alive))
}

fn store(received: &Received, encoding: Encoding, shared: &Shared) -> Answer {
    match shared.store.put(received) {
        Ok(stored) => {
            *shared.failing.lock() = None;
            (shared.report)(Ok(&stored));
            Answer::accepted(encoding)
        }
        // A full disk may have room later: the sender keeps the message and comes again.
        Err(error) => {
            let before = shared.failing.lock().replace(error.to_string());
            if before.is_none_or(|before| before != error.to_string()) {
                (shared.report)(Err(&error));
            }
            Answer::error(encoding, 503, &format!("cannot store the message: {error}"))
        }
    }
}

impl Shared {
    /// Puts a connection on the list, unless there are too many.
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

    /// Says whether a request is in progress; false if the receiver is stopping and none is to begin.
    fn set_idle(&self, id: u64, idle: bool) -> bool {
        let mut connections = self.connections.lock();
        if let Some(open) = connections.open.get_mut(&id) {
            open.idle = idle;
        }
        !connections.stopping
    }
}
