//! Uploads: a separate thread posts queued messages to a collector (OTLP/HTTP).
//!
//! A submitter only puts a message into a bounded queue, so no collector, dead or slow, makes it wait. Memory
//! stays within [`UploadConfig::queue_bytes`] plus the compressed copy of one message. When the queue is
//! full, the oldest message is dropped. Every message is counted in exactly one counter of [`UploadStats`].
//!
//! An attempt is retried only if OTLP calls the failure retryable: 429, 502, 503, 504 and broken connections.
//! `Retry-After` holds back all messages, not only the message that it answered.
//!
//! Proxies are taken from the environment as by other HTTP clients (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`,
//! `NO_PROXY`), except for a collector on this machine. Redirects are not followed.
//!
//! | Module | Duty |
//! |---|---|
//! | `ledger` | the queue, the counters and the shutdown, shared by submitters and the sending thread |

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use super::config_error::ConfigError;
use super::endpoint::Endpoint;
use super::http::{Answer, Client, ClientConfig, Encoded};
pub use super::http::{Compression, check_headers};
use super::message::{ContentType, OutgoingMessage};
use super::retry::Jitter;
pub use super::retry::RetryPolicy;
use super::stats::{Loss, Tally, UploadStats};

mod ledger;

pub use ledger::Room;
use ledger::{Ledger, Notice, Pause};

/// Splits the body of a message that a collector finds too large into two smaller ones, each with its number
/// of samples. They are sent in its place, in their order. Returns `None`, or a body that is not smaller, if
/// the message cannot be split. The message then counts as rejected.
///
/// The exporter's thread calls the splitter.
pub type Splitter = Box<dyn FnMut(&[u8], ContentType) -> Option<[(Vec<u8>, u64); 2]> + Send>;

/// The function that the exporter's thread runs.
pub type ThreadBody = Box<dyn FnOnce() + Send>;

/// The longest `Retry-After`. A longer one is cut to this, since a server's mistake must not end profiling.
/// The collector's waits extend the time that a message may be retried by at most this, too.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// How long a shutdown waits after its deadline for the interrupted thread to end.
const WAIT_AFTER_DEADLINE: Duration = Duration::from_millis(50);

/// Where and how to upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadConfig {
    /// The collector's URL.
    pub endpoint: Endpoint,
    /// Headers of every request, such as credentials: names and values.
    pub headers: Vec<(String, String)>,
    /// The compression of bodies.
    pub compression: Compression,
    /// PEM file of the CA certificates to trust instead of the system's; for `https` only.
    pub ca_certificate: Option<PathBuf>,
    /// PEM file of the certificate that identifies this client to the collector, and of the chain that
    /// certifies it. For `https` only, and only together with the certificate's key.
    pub client_certificate: Option<PathBuf>,
    /// PEM file of the client certificate's private key.
    pub client_key: Option<PathBuf>,
    /// Time limit of one attempt, from resolving the name to the end of the answer.
    pub timeout: Duration,
    /// The times between attempts, and the time after which a message is given up.
    pub retry: RetryPolicy,
    /// Bytes of memory that waiting messages may occupy.
    pub queue_bytes: usize,
    /// Number of messages that may wait.
    pub queue_messages: usize,
    /// Largest size of a request body in bytes, uncompressed. A larger message is split at once, without an
    /// attempt.
    pub max_request_bytes: usize,
}

impl UploadConfig {
    /// The defaults: gzip, 10 s for an attempt, a queue of 64 messages and 32 MiB, requests up to 20 MiB (the
    /// limit of OpenTelemetry collectors).
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            headers: Vec::new(),
            compression: Compression::Gzip,
            ca_certificate: None,
            client_certificate: None,
            client_key: None,
            timeout: Duration::from_secs(10),
            retry: RetryPolicy::default(),
            queue_bytes: 32 << 20,
            queue_messages: 64,
            max_request_bytes: 20 << 20,
        }
    }
}

/// The handle of the exporter's thread. Dropping it shuts the thread down without delay, and gives up pending
/// messages.
#[derive(Debug)]
pub struct Uploader {
    ledger: Arc<Ledger>,
    connections: ureq::Agent,
}

impl Uploader {
    /// Checks the configuration and starts the thread by `spawn`, which is passed the thread's name and
    /// function. The caller knows how to keep a thread free of signals. No connection is made before there is
    /// a message to send.
    ///
    /// # Errors
    /// A setting cannot work, or the thread could not be started.
    pub fn start(
        config: UploadConfig,
        splitter: Option<Splitter>,
        spawn: impl FnOnce(&str, ThreadBody) -> io::Result<JoinHandle<()>>,
    ) -> Result<Self, ConfigError> {
        let client = client(&config)?;
        let ledger =
            Arc::new(Ledger::new(config.queue_messages, config.queue_bytes, config.endpoint.shown()));
        let connections = client.agent();
        let exporter = Exporter { client, config, splitter, ledger: ledger.clone(), jitter: Jitter::new() };
        spawn("otlpprof-export", Box::new(move || exporter.run()))?;
        Ok(Self { ledger, connections })
    }

    /// Checks whether an uploader could start with these settings.
    ///
    /// # Errors
    /// A setting cannot work.
    pub fn check(config: &UploadConfig) -> Result<(), ConfigError> {
        client(config).map(drop)
    }

    /// Submits a message. Returns at once, whatever the collector does. The counters show what became of the
    /// message.
    pub fn submit(&self, message: OutgoingMessage) {
        self.ledger.submit(message);
    }

    /// Waits, for at most `within`, until the queue has room for a message of `bytes` bytes. For callers that
    /// have more messages than the queue holds, and can wait while the collector accepts those sent.
    pub fn wait_for_room(&self, bytes: usize, within: Duration) -> Room {
        self.ledger.wait_for_room(bytes, Instant::now() + within)
    }

    /// The counters.
    pub fn stats(&self) -> UploadStats {
        self.ledger.stats()
    }

    /// Sends pending messages, for at most `within`, then gives up the rest and ends the thread. Returns the
    /// final counters, in which nothing is pending. Messages submitted from now on are dropped.
    ///
    /// If a collector cannot be reached, the shutdown ends at once, so that the application's end does not
    /// wait for it.
    pub fn shutdown(&self, within: Duration) -> UploadStats {
        if !self.ledger.close(within) {
            // The deadline has passed and the thread is still sending. Its connection is broken, so that the
            // thread can end.
            self.connections.clone().shutdown();
            self.ledger.wait_for_end(WAIT_AFTER_DEADLINE);
        }
        self.ledger.stats()
    }
}

fn client(config: &UploadConfig) -> Result<Client, ConfigError> {
    Client::new(&ClientConfig {
        endpoint: &config.endpoint,
        headers: &config.headers,
        compression: config.compression,
        ca_certificate: config.ca_certificate.as_ref(),
        client_certificate: config.client_certificate.as_ref(),
        client_key: config.client_key.as_ref(),
    })
}

impl Drop for Uploader {
    fn drop(&mut self) {
        self.shutdown(Duration::ZERO);
    }
}

/// The state that the thread owns.
struct Exporter {
    client: Client,
    config: UploadConfig,
    splitter: Option<Splitter>,
    ledger: Arc<Ledger>,
    jitter: Jitter,
}

/// The outcome of the work on a message.
enum Outcome {
    Sent,
    Lost(Loss),
    TooLarge(String),
}

impl Exporter {
    fn run(mut self) {
        while let Some(message) = self.ledger.take() {
            // A panic must neither end the exporter nor leave a message unaccounted.
            let work = AssertUnwindSafe(|| self.process(&message));
            if catch_unwind(work).is_err() {
                self.ledger.lose(Tally::of(&message), Loss::Protocol);
                self.ledger.notice(Notice::Lost(Loss::Protocol), "the exporter panicked");
            }
        }
        self.ledger.ended();
    }

    fn process(&mut self, message: &OutgoingMessage) {
        let tally = Tally::of(message);
        let outcome = if message.body.len() > self.config.max_request_bytes {
            Outcome::TooLarge(format!("more than {} bytes", self.config.max_request_bytes))
        } else {
            let encoded = self.client.encode(message);
            self.deliver(&encoded)
        };
        match outcome {
            Outcome::Sent => self.ledger.sent(tally),
            Outcome::Lost(loss) => self.ledger.lose(tally, loss),
            Outcome::TooLarge(reason) => self.split(message, tally, &reason),
        }
    }

    fn split(&mut self, message: &OutgoingMessage, tally: Tally, reason: &str) {
        let content_type = message.content_type;
        let pieces = self.splitter.as_mut().and_then(|split| split(&message.body, content_type));
        let are_smaller =
            |pieces: &[(Vec<u8>, u64); 2]| pieces.iter().all(|(body, _)| body.len() < message.body.len());
        if let Some(pieces) = pieces.filter(are_smaller) {
            let pieces = pieces.map(|(body, samples)| OutgoingMessage { body, content_type, samples });
            self.ledger.split(tally, pieces.into());
        } else {
            self.ledger.lose(tally, Loss::TooLarge);
            let line =
                format!("a message of {} bytes is too large and cannot be split ({reason})", tally.bytes);
            self.ledger.notice(Notice::Lost(Loss::TooLarge), &line);
        }
    }

    /// Repeats attempts until there is an outcome. Logs the reason if the message is lost.
    fn deliver(&mut self, message: &Encoded) -> Outcome {
        let given_up = |ledger: &Ledger, loss, line| {
            ledger.notice(Notice::Lost(loss), line);
            Outcome::Lost(loss)
        };
        let no_time = "a message is dropped at shutdown: no time for another attempt";
        if self.ledger.wait_for_throttle() == Pause::Over {
            return given_up(&self.ledger, Loss::ShutDown, no_time);
        }
        let first = Instant::now();
        let mut failures = 0;
        // The sum of the waits that the collector asked for. They do not count against the message's time for
        // retries.
        let mut requested_wait = Duration::ZERO;
        loop {
            let Some(timeout) = self.ledger.time_left(self.config.timeout) else {
                return given_up(&self.ledger, Loss::ShutDown, no_time);
            };
            self.ledger.attempt(failures > 0, message.body.len());
            let answer = self.client.post(message, timeout);
            let wait = match self.judge(answer) {
                Verdict::Final(outcome) => return outcome,
                Verdict::Retry { after, unreachable } => {
                    self.ledger.failed();
                    if unreachable && self.ledger.is_closing() {
                        let line = "a message is dropped at shutdown: no collector can be reached";
                        return given_up(&self.ledger, Loss::ShutDown, line);
                    }
                    failures += 1;
                    match after.map(|after| after.min(LONGEST_PAUSE)) {
                        Some(after) => {
                            self.ledger.throttle(after);
                            requested_wait = requested_wait.saturating_add(after).min(LONGEST_PAUSE);
                            after
                        }
                        None => self.config.retry.backoff(failures, &mut self.jitter),
                    }
                }
            };
            if first.elapsed().saturating_add(wait) > self.config.retry.total.saturating_add(requested_wait) {
                let line = "a message is dropped: retried for as long as allowed";
                return given_up(&self.ledger, Loss::RetriesExhausted, line);
            }
            if self.ledger.wait_for_retry(Instant::now() + wait) == Pause::Over {
                return given_up(&self.ledger, Loss::ShutDown, no_time);
            }
        }
    }

    /// Turns an answer into a verdict on its message. Logs failures, as a warning once per kind.
    fn judge(&self, answer: Answer) -> Verdict {
        let lost = |loss, line: String| {
            self.ledger.notice(Notice::Lost(loss), &line);
            Verdict::Final(Outcome::Lost(loss))
        };
        let retry = |notice, line: String, after, unreachable| {
            self.ledger.notice(notice, &line);
            Verdict::Retry { after, unreachable }
        };
        match answer {
            Answer::Accepted(partial) => {
                let rejects = partial.as_ref().is_some_and(|partial| partial.rejected_profiles > 0);
                if let Some(partial) = partial {
                    self.ledger.partial(partial);
                }
                Verdict::Final(if rejects { Outcome::Lost(Loss::RejectedInPart) } else { Outcome::Sent })
            }
            Answer::NotOtlp { status, found } => lost(
                Loss::NotOtlp,
                format!(
                    "answered {status} with {found}, which is not an OTLP response: nothing counts as \
                     delivered; is it a proxy's page, or is the path of the URL wrong?"
                ),
            ),
            Answer::TooLarge(message) => Verdict::Final(Outcome::TooLarge(message)),
            Answer::Busy { status, retry_after, message } => retry(
                Notice::Busy,
                format!("answered {status}, to be retried: {message}"),
                retry_after,
                false,
            ),
            Answer::Unreachable(reason) => {
                retry(Notice::Unreachable, format!("cannot be reached: {reason}"), None, true)
            }
            Answer::Broken(reason) => retry(Notice::Broken, format!("no answer: {reason}"), None, false),
            Answer::Redirected { status } => lost(
                Loss::Redirected,
                format!("answered {status}; redirects are not followed, set the final URL"),
            ),
            Answer::Refused { status, message } => {
                let hint = if status == 404 { "; is its profiles pipeline enabled?" } else { "" };
                lost(Loss::Refused, format!("answered {status}: {message}{hint}"))
            }
            Answer::Tls(reason) => lost(Loss::Tls, format!("TLS failed: {reason}")),
            Answer::OtherProtocol(advice) => lost(Loss::Protocol, advice.to_owned()),
            Answer::Protocol(reason) => lost(Loss::Protocol, format!("no HTTP answer: {reason}")),
        }
    }
}

/// The consequence of an answer.
enum Verdict {
    Final(Outcome),
    Retry { after: Option<Duration>, unreachable: bool },
}
