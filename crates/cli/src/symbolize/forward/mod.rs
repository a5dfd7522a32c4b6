//! `otlpprof symbolize --listen … --forward …`: stands between senders and a backend.
//!
//! In: OTLP/HTTP requests as `otlpprof collect` takes them. Out: the messages, their frames resolved, as
//! OTLP/HTTP requests in protobuf, with retries; in JSON where protobuf cannot carry the message. A sender is
//! answered when its message is in the queue: 503, to be retried, when the queue is full. The queue grows
//! while the backend refuses, so a backend that is away for long makes the senders wait. At the end (SIGINT,
//! SIGTERM) messages in the queue are sent, with their frames resolved as far as the time allows. A message
//! that is lost is counted and reported.
//!
//! | Module | Duty |
//! |---|---|
//! | `queue` | the bounded queue of received messages |
//! | `log_lines` | the uploader's log on standard error |

mod log_lines;
mod queue;

use std::io::Write as _;
use std::net::TcpListener;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use otlpprof_export::message::{ContentType, OutgoingMessage};
use otlpprof_export::stats::{Loss, UploadStats};
use otlpprof_export::upload::{RetryPolicy, Room, check_headers};
use otlpprof_export::{Endpoint, UploadConfig, Uploader};
use otlpprof_otlp::encoded::EncodedMessage;
use otlpprof_otlp::{Format, halve, read};
use otlpprof_symbolize::Symbolizer;
use otlpprof_symbolize::summary::Summary;

use self::queue::{Pending, Queue};
use crate::collect::message::{Answer, Encoding};
use crate::collect::protocol::Received;
use crate::collect::server::{Server, Sink};
use crate::exit_codes::EXIT_FAILED;
use crate::signals::Signals;
use crate::terminal;

/// How long requests in progress may take after a signal to end.
const GRACE: Duration = Duration::from_secs(5);
/// How long frames are resolved after a signal to end.
const LAST_FRAMES: Duration = Duration::from_secs(5);
/// How long messages are sent after that.
const LAST_MESSAGES: Duration = Duration::from_secs(10);
/// How long a message is retried while the backend is away.
const RETRIED: Duration = Duration::from_secs(3_600);
/// Bytes and number of the resolved messages that wait for the backend.
const WAITING_BYTES: usize = 128 << 20;
const WAITING_MESSAGES: usize = 256;
/// The time between two looks for room.
const ROOM_WAIT: Duration = Duration::from_millis(100);

/// The options of a filter between senders and a backend.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct ForwardArgs {
    /// In place of files: receive OTLP/HTTP at this address. With port 0 the system chooses a port, which is
    /// printed
    #[arg(long, value_name = "HOST:PORT", requires = "forward", conflicts_with_all = ["files", "output"])]
    pub(super) listen: Option<String>,
    /// Send the messages to this backend: http://HOST:4318
    #[arg(long, value_name = "URL", requires = "listen", conflicts_with_all = ["files", "output"])]
    forward: Option<String>,
    /// With --forward: send this header with each request, such as credentials; may be given several times
    #[arg(long = "header", value_name = "NAME=VALUE", requires = "forward", value_parser = header)]
    headers: Vec<(String, String)>,
}

fn header(text: &str) -> anyhow::Result<(String, String)> {
    let Some((name, value)) = text.split_once('=') else { bail!("write it as NAME=VALUE") };
    let header = (name.to_owned(), value.to_owned());
    check_headers(std::slice::from_ref(&header))?;
    Ok(header)
}

/// Forwards messages until SIGINT or SIGTERM.
pub(super) fn run(listen: &str, args: &ForwardArgs, symbolizer: Symbolizer) -> anyhow::Result<ExitCode> {
    // SANITY: clap requires both options together.
    let url = args.forward.as_deref().unwrap_or_default();
    let endpoint = Endpoint::base(url).with_context(|| "--forward")?;
    let listener = TcpListener::bind(listen).with_context(|| format!("--listen {listen}"))?;
    let address = listener.local_addr().context("the listening socket has no address")?;
    log_lines::start();
    // The signals are blocked before the threads start, so that none of the threads receives them.
    let signals = Signals::block();
    let config = UploadConfig {
        headers: args.headers.clone(),
        queue_bytes: WAITING_BYTES,
        queue_messages: WAITING_MESSAGES,
        retry: RetryPolicy { total: RETRIED, ..RetryPolicy::default() },
        ..UploadConfig::new(endpoint.clone())
    };
    let spawn = |name: &str, body| thread::Builder::new().name(name.to_owned()).spawn(body);
    let uploader = Uploader::start(config, Some(Box::new(halves)), spawn).context("--forward")?;
    let (uploader, queue) = (Arc::new(uploader), Arc::new(Queue::default()));
    let worker = Worker { queue: Arc::clone(&queue), uploader: Arc::clone(&uploader), symbolizer };
    let worker = thread::Builder::new().name("symbolize".to_owned()).spawn(move || worker.run())?;
    let receiver = Box::new(Receiver { queue: Arc::clone(&queue) });
    let server = Server::start_with(listener, receiver).context("cannot start the receiver")?;
    say(&format!("listening on http://{address}, forwarding to {}", endpoint.shown()));
    signals.wait();
    server.stop(GRACE);
    queue.close();
    let summary = if queue.wait_until_settled(Instant::now() + LAST_FRAMES) {
        worker.join().ok()
    } else {
        // Better sent without names than lost. The worker may wait for a server: it ends with the process.
        queue.seize().iter().for_each(|message| uploader.submit(unresolved(message)));
        None
    };
    let stats = uploader.shutdown(LAST_MESSAGES);
    for line in lines(&stats, summary.as_ref()) {
        // A closed standard error is no reason to fail.
        let _ = writeln!(terminal::stderr(), "{line}");
    }
    Ok(if lost(&stats) == 0 { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FAILED) })
}

/// Puts requests into the queue.
struct Receiver {
    queue: Arc<Queue>,
}

impl Sink for Receiver {
    fn put(&self, received: Received) -> Answer {
        let Received { encoding, body, samples, .. } = received;
        match self.queue.push(Pending { body, encoding, samples }) {
            true => Answer::accepted(encoding),
            false => Answer::error(encoding, 503, "the queue is full: retry later"),
        }
    }
}

/// Resolves the frames of the messages in the queue, and hands them to the uploader.
struct Worker {
    queue: Arc<Queue>,
    uploader: Arc<Uploader>,
    symbolizer: Symbolizer,
}

impl Worker {
    fn run(mut self) -> Summary {
        while let Some(message) = self.queue.take() {
            // A panic must neither end the filter nor lose the message.
            let resolve = AssertUnwindSafe(|| resolved(&message, &mut self.symbolizer));
            let resolved = catch_unwind(resolve).unwrap_or_else(|_| unresolved(&message));
            // While there is no room, the queue fills, and senders are asked to retry.
            let mut room = Room::NotYet;
            while room != Room::Free && resolved.body.len() < WAITING_BYTES && !self.queue.is_seized() {
                room = self.uploader.wait_for_room(resolved.body.len(), ROOM_WAIT);
                if room == Room::Hopeless {
                    thread::sleep(ROOM_WAIT);
                }
            }
            if self.queue.settle() {
                self.uploader.submit(resolved);
            }
        }
        self.symbolizer.summary()
    }
}

/// The message with its frames resolved.
fn resolved(message: &Pending, symbolizer: &mut Symbolizer) -> OutgoingMessage {
    let decoded = match message.encoding {
        Encoding::Protobuf => EncodedMessage::of_protobuf(message.body.clone()),
        Encoding::Json => read::encoded_json(&message.body),
    };
    // The receiver has checked the message.
    let Ok(decoded) = decoded else { return unresolved(message) };
    let named = symbolizer.symbolize(decoded);
    let (body, content_type) = if named.is_readable_protobuf() {
        (named.into_bytes(), ContentType::Protobuf)
    } else {
        let Some(json) = named.to_json() else { return unresolved(message) };
        (json, ContentType::Json)
    };
    OutgoingMessage { body, content_type, samples: message.samples }
}

/// The message as it was received.
fn unresolved(message: &Pending) -> OutgoingMessage {
    let content_type = match message.encoding {
        Encoding::Protobuf => ContentType::Protobuf,
        Encoding::Json => ContentType::Json,
    };
    OutgoingMessage { body: message.body.clone(), content_type, samples: message.samples }
}

/// The two bodies that replace one that the backend finds too large.
fn halves(body: &[u8], content_type: ContentType) -> Option<[(Vec<u8>, u64); 2]> {
    let format = match content_type {
        ContentType::Protobuf => Format::Proto,
        ContentType::Json => Format::Json,
    };
    halve(body, format)
}

fn lost(stats: &UploadStats) -> u64 {
    Loss::ALL.into_iter().map(|loss| stats.lost(loss).messages).sum()
}

/// A line about all messages, and the lines about their frames.
fn lines(stats: &UploadStats, summary: Option<&Summary>) -> Vec<String> {
    let mut line = format!("{} messages forwarded", stats.sent.messages);
    for loss in Loss::ALL {
        let messages = stats.lost(loss).messages;
        if messages > 0 {
            line.push_str(&format!(", {messages} lost ({})", loss.name()));
        }
    }
    std::iter::once(line).chain(summary.map(Summary::lines).into_iter().flatten()).collect()
}

/// Prints a line at once. Ignores errors, since a closed standard output is no reason to end.
fn say(line: &str) {
    let mut stdout = terminal::stdout();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}
