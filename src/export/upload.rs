//! Uploads: a thread of its own that posts queued messages to a collector (OTLP/HTTP).
//!
//! Whoever submits only puts a message into a bounded queue: no collector, dead or slow, makes it wait, and
//! memory stays within [`UploadConfig::queue_bytes`] plus the compressed copy of one message. When the queue is
//! full, the oldest message goes. Every message ends in exactly one counter of [`UploadStats`].
//!
//! Only what OTLP calls retryable is retried: 429, 502, 503, 504 and broken connections. `Retry-After` holds
//! back all messages, not only the one that it answered.
//!
//! Proxies are taken from the environment as by other HTTP clients (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`,
//! `NO_PROXY`), except for a collector on this machine. Redirects are not followed.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::http::{Answer, Client, ClientConfig, Encoded};
pub use super::http::{Compression, ConfigError, check_headers};
use super::retry::Jitter;
pub use super::retry::RetryPolicy;
use super::stats::{Loss, Tally, UploadStats};
use super::{Endpoint, Message};

mod ledger;

pub use ledger::Room;
use ledger::{Ledger, Notice, Pause};

/// Splits a message that a collector finds too large into smaller ones, which are sent in its place, in their
/// order. None, or one that is no smaller, if it cannot be split: then the message counts as rejected.
///
/// It is called in the exporter's thread.
pub type Splitter = Box<dyn FnMut(&Message) -> Vec<Message> + Send>;

/// What the exporter's thread does.
pub type ThreadBody = Box<dyn FnOnce() + Send>;

/// A `Retry-After` beyond this is taken as this: a slip of a server must not end profiling. So long, too, a message is
/// kept at most beyond the time that it may be retried, for a collector that asks for patience.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// How long a shutdown waits, after its deadline, for the interrupted thread to go.
const FAREWELL: Duration = Duration::from_millis(50);

/// Where and how to upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadConfig {
    /// Where to.
    pub endpoint: Endpoint,
    /// Headers of every request, such as credentials: names and values.
    pub headers: Vec<(String, String)>,
    /// How bodies are compressed.
    pub compression: Compression,
    /// PEM file of the CA certificates to trust instead of the system's; for `https` only.
    pub ca_certificate: Option<PathBuf>,
    /// PEM file of the certificate by which the collector knows us, and of those that vouch for it; for `https`
    /// only, and only with its key.
    pub client_certificate: Option<PathBuf>,
    /// PEM file of that certificate's private key.
    pub client_key: Option<PathBuf>,
    /// Time limit of one attempt, from resolving the name to the end of the answer.
    pub timeout: Duration,
    /// How long to retry.
    pub retry: RetryPolicy,
    /// Bytes of memory that waiting messages may occupy.
    pub queue_bytes: usize,
    /// Number of messages that may wait.
    pub queue_messages: usize,
    /// A message of more bytes, uncompressed, is not tried at all but split at once.
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

/// The exporter's thread, seen from outside. Dropping it is a shutdown without time: what is pending is given up.
#[derive(Debug)]
pub struct Uploader {
    ledger: Arc<Ledger>,
    connections: ureq::Agent,
}

impl Uploader {
    /// Checks the configuration and starts the thread, by `spawn`, which gets the thread's name and what it does:
    /// how a thread comes to be left alone by signals is the caller's knowledge. No connection is made before
    /// there is something to send.
    ///
    /// # Errors
    /// A setting that cannot work, or no thread to be had.
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

    /// Looks whether an uploader could start with these settings.
    ///
    /// # Errors
    /// A setting that cannot work.
    pub fn check(config: &UploadConfig) -> Result<(), ConfigError> {
        client(config).map(drop)
    }

    /// Hands over a message. Returns at once, whatever the collector does; what becomes of the message is in the
    /// counters.
    pub fn submit(&self, message: Message) {
        self.ledger.submit(message);
    }

    /// Waits for room in the queue for a message of so many bytes, for as long as `within` at most: for those who have
    /// more than the queue holds, and can spare the time while the collector takes what is sent.
    pub fn wait_for_room(&self, bytes: usize, within: Duration) -> Room {
        self.ledger.wait_for_room(bytes, Instant::now() + within)
    }

    /// The counters.
    pub fn stats(&self) -> UploadStats {
        self.ledger.stats()
    }

    /// Sends what is pending, for as long as `within` at most; gives up the rest and ends the thread. Returns
    /// the final counters, in which nothing is pending. What is submitted from now on is dropped.
    ///
    /// A collector that cannot be reached ends it at once: the end of the application does not wait for it.
    pub fn shutdown(&self, within: Duration) -> UploadStats {
        if !self.ledger.close(within) {
            // The time is over, and the thread still at it: break its connection, so that it can go.
            self.connections.clone().shutdown();
            self.ledger.wait_for_end(FAREWELL);
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

/// What the thread owns.
struct Exporter {
    client: Client,
    config: UploadConfig,
    splitter: Option<Splitter>,
    ledger: Arc<Ledger>,
    jitter: Jitter,
}

/// How the work on a message ended.
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

    fn process(&mut self, message: &Message) {
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

    fn split(&mut self, message: &Message, tally: Tally, reason: &str) {
        let pieces = self.splitter.as_mut().map(|split| split(message)).unwrap_or_default();
        let smaller = pieces.iter().all(|piece| piece.body.len() < message.body.len());
        if pieces.is_empty() || !smaller {
            self.ledger.lose(tally, Loss::TooLarge);
            let line =
                format!("a message of {} bytes is too large and cannot be split ({reason})", tally.bytes);
            self.ledger.notice(Notice::Lost(Loss::TooLarge), &line);
        } else {
            self.ledger.split(tally, pieces);
        }
    }

    /// Tries until there is an outcome. Why a message is lost is logged here.
    fn deliver(&mut self, message: &Encoded) -> Outcome {
        let given_up = |ledger: &Ledger, loss, line| {
            ledger.notice(Notice::Lost(loss), line);
            Outcome::Lost(loss)
        };
        let no_time = "a message is given up at shutdown: no time for another attempt";
        if self.ledger.wait_for_throttle() == Pause::Over {
            return given_up(&self.ledger, Loss::ShutDown, no_time);
        }
        let first = Instant::now();
        let mut failures = 0;
        // How long the collector has asked to wait, which is not held against the message.
        let mut told = Duration::ZERO;
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
                        let line = "a message is given up at shutdown: no collector can be reached";
                        return given_up(&self.ledger, Loss::ShutDown, line);
                    }
                    failures += 1;
                    match after.map(|after| after.min(LONGEST_PAUSE)) {
                        Some(after) => {
                            self.ledger.throttle(after);
                            told = told.saturating_add(after).min(LONGEST_PAUSE);
                            after
                        }
                        None => self.config.retry.backoff(failures, &mut self.jitter),
                    }
                }
            };
            if first.elapsed().saturating_add(wait) > self.config.retry.total.saturating_add(told) {
                let line = "a message is given up: retried for as long as allowed";
                return given_up(&self.ledger, Loss::RetriesExhausted, line);
            }
            if self.ledger.wait_for_retry(Instant::now() + wait) == Pause::Over {
                return given_up(&self.ledger, Loss::ShutDown, no_time);
            }
        }
    }

    /// What an answer means for its message. Logs it, once per kind.
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
                    "answered {status} with {found}, which is no answer of OTLP: nothing counts as delivered; is it a \
                     proxy's page, or is the path of the URL wrong?"
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

/// What an answer means.
enum Verdict {
    Final(Outcome),
    Retry { after: Option<Duration>, unreachable: bool },
}
